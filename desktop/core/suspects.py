"""Trials that do not fit: one that was disturbed moves every effect, and small ones are believed for it.

If nothing is active and one of n runs is off by D, all effects have the size D / (n / 2) (Daniel 1959). So a
trial is judged beside the effects that stand out and the blocks, by its externally studentized residual, and
what stands out is chosen without the trial that fits worst, which would hide it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from desktop.core.arrays import Flags, Floats
from desktop.core.effect_limits import LEVEL, lenth_of, lenth_ratios, t_limit

#: Level of the effects that a trial is judged beside: few that are none, whose size would be missing in the
#: noise.
_ACTIVE = 0.01
#: Experiments without such a trial that are simulated where it is close.
_DRAWS = 200
#: Beyond so many times the quantile it is not close.
_SURE = 1.35


@dataclass(frozen=True)
class Suspect:
    """A trial that does not fit the effects that stand out. `limit`: |t| that one or more of all trials pass
    in 5 % where all are as they should be."""

    label: str
    value: float
    expected: float
    t: float
    limit: float


@dataclass(frozen=True, eq=False)
class _Judged:
    """Externally studentized residuals (N,) with the limit of each, what each trial would be by all others,
    the logarithm of the likelihood without the worst, and the mean (N,) of the model without that, with
    blocks and without; noise of a trial is `sigma` times `scale`."""

    t: Floats
    limit: Floats
    expected: Floats
    likelihood: float
    mean: Floats
    plain: Floats
    sigma: float
    scale: Floats

    @property
    def size(self) -> Floats:
        """(N,) |t| in units of its limit: degrees of freedom differ with what a trial is judged beside."""
        return np.abs(self.t) / self.limit


def suspects(labels: tuple[str, ...], y: Floats, terms: Floats, shifts: Floats) -> tuple[Suspect, ...]:
    """Trials above what the largest of so many passes in 5 %, the worst first.

    y : (N,). terms : (N, 1 + m) columns of mean and effects. shifts : (N, b) of blocks, independent of these.

    The quantile is that of t, with Bonferroni's bound for N trials; where a trial is not far beyond, the
    chance is that in simulated experiments like this one, since the choices of effects and of noise (the
    same for all, or in proportion to the response) are made by the same data.
    """
    judged = _judged(y, terms, shifts)
    if judged is None:
        return ()
    size, bound = judged.size, 1.0
    if 1 < size.max() < _SURE:
        # What acts makes little difference to the limit, unless noise grows with it; where it seems to, it
        # may be the same for all as well.
        even = np.full(len(y), judged.sigma * np.sqrt((judged.scale**2).mean()))
        nulls = [(np.full(len(y), y.mean()), even)]
        if np.ptp(judged.scale) > 0:
            nulls.append((judged.mean, judged.sigma * judged.scale))
        for mean, noise in nulls:
            if bound < size.max():
                bound = max(bound, _simulated(judged, mean, noise, terms, shifts))
    columns = y, judged.expected, judged.t, bound * judged.limit
    order = [i for i in np.argsort(-size).tolist() if size[i] > bound]
    return tuple(Suspect(labels[i], *(float(column[i]) for column in columns)) for i in order)


def _simulated(judged: _Judged, mean: Floats, noise: Floats, terms: Floats, shifts: Floats) -> float:
    """What the largest, in units of its limit, passes in 5 % of experiments with that mean and noise (N,) in
    which all trials are as they should be; infinite as soon as that is above what it is here."""
    # Of so many draws and this one, the largest are the one in twenty.
    top, beyond = judged.size.max(), int(LEVEL * (_DRAWS + 1)) - 1
    # The same data have the same limit, and others are not all judged by the same few draws.
    generator = np.random.default_rng(np.frombuffer(judged.t.tobytes(), np.uint32))
    largest: list[float] = []
    for _ in range(_DRAWS):
        drawn = _judged(mean + noise * generator.standard_normal(len(noise)), terms, shifts)
        largest.append(0.0 if drawn is None else float(drawn.size.max()))
        if sum(one >= top for one in largest) > beyond:
            return np.inf
    return sorted(largest)[-1 - beyond]


def _judged(y: Floats, terms: Floats, shifts: Floats) -> _Judged | None:
    """By the noise that is more likely: with the wrong one, long runs are named for being long."""
    even = _beside_active(y, terms, shifts, np.ones(len(y)))
    if even is None:
        return None
    scale = even.plain
    for _ in range(2):  # what is small is fitted well only where it counts for more
        if not (scale > 0).all() or np.ptp(scale) == 0:
            return even
        grown = _beside_active(y, terms, shifts, 1 / scale)
        if grown is None:
            return even
        last, scale = grown, grown.plain
    return last if last.likelihood > even.likelihood + 2 else even  # not by chance


def _beside_active(y: Floats, terms: Floats, shifts: Floats, weight: Floats) -> _Judged | None:
    """None where fewer than three degrees of freedom are left, or nothing but what rounding leaves."""
    rounding = 1e-24 * float(np.mean((y * weight) ** 2))
    every = np.concatenate([terms, shifts], axis=1)
    chosen = _active(y * weight, every * weight[:, None], terms.shape[1])
    if chosen is None:
        return None
    t, limit, expected, variance = np.zeros(len(y)), np.full(len(y), np.inf), y.copy(), np.zeros(len(y))
    for one in {row.tobytes(): row for row in chosen}.values():
        columns = np.concatenate([terms[:, one], shifts], axis=1)
        df = len(y) - columns.shape[1] - 1
        if df < 3:
            continue
        fit, here = _Fit(y * weight, columns * weight[:, None]), (chosen == one).all(axis=1)
        without = fit.without() / df
        here &= (without > max(1e-12 * fit.squares, rounding)) & np.isfinite(fit.left)
        t[here] = fit.rest[here] / np.sqrt(without * fit.left)[here]
        expected[here] = (y - fit.rest / fit.left / weight)[here]
        limit[here], variance[here] = t_limit(df, LEVEL / len(y)), without[here]
    if not (variance > 0).any():
        return None
    worst = int(np.argmax(np.where(variance > 0, np.abs(t) / limit, -1)))
    one, least = chosen[worst], float(variance[worst])
    columns = np.concatenate([terms[:, one], shifts], axis=1)
    fit, count = _Fit(y * weight, columns * weight[:, None]), int(one.sum())
    values = fit.values - fit.moved(worst)
    likelihood = float(-len(y) / 2 * np.log(least) + np.log(weight).sum())
    return _Judged(
        t, limit, expected, likelihood, columns @ values, columns[:, :count] @ values[:count],
        float(np.sqrt(least)), 1 / weight,
    )  # fmt: skip


def _active(y: Floats, x: Floats, count: int) -> Flags | None:
    """(N, count) which of the first columns of x, mean and effects, are more than noise by all trials but
    that one; None where nothing tells."""
    every = _Fit(y, x)
    df = len(y) - x.shape[1] - 1
    unit = (every.inverse**2).sum(1)
    if df >= 3:
        unit = unit + (every.q @ every.inverse.T) ** 2 / every.left[:, None]
        error = np.sqrt(unit * every.without()[:, None] / df)
        beyond = np.abs(every.values - every.moved()) > t_limit(df, _ACTIVE) * error
    else:
        scaled = np.zeros(len(unit))
        scaled[1:] = every.values[1:] * np.sqrt(np.median(unit[1:count]) / unit[1:])
        lenth = lenth_of(scaled[1:count])
        if lenth is None:
            return None
        beyond = np.abs(scaled) > lenth_ratios(lenth.count)[0].quantile(_ACTIVE) * lenth.pse
        beyond = np.tile(beyond, (len(y), 1))
    beyond[:, 0] = True
    return np.asarray(beyond[:, :count])


class _Fit:
    """Least squares of y (N,) on columns x (N, c), and what each trial does to it."""

    def __init__(self, y: Floats, x: Floats) -> None:
        self.q, r = np.linalg.qr(x)
        self.inverse = np.linalg.inv(r)
        inside = self.q.T @ y
        self.values = self.inverse @ inside
        self.rest = y - self.q @ inside
        left = 1 - (self.q**2).sum(1)
        self.left = np.where(
            left > 1e-9, left, np.inf
        )  # nothing is told of a trial that is a term of its own
        self.squares = float(self.rest @ self.rest)

    def without(self) -> Floats:
        """(N,) sum of squares that is left without each trial."""
        return np.maximum(self.squares - self.rest**2 / self.left, 0.0)

    def moved(self, trial: int | slice = slice(None)) -> Floats:
        """By how much one trial moves the values (c,), or each of them (N, c)."""
        ratio = np.asarray(self.rest[trial] / self.left[trial])
        return np.asarray(self.q[trial] @ self.inverse.T * ratio[..., None])

"""Outliers: trials that were disturbed, which change every effect and may make small ones significant.

If no effect is active and one of n runs is off by D, all effects have the size D / (n / 2) (Daniel 1959). So
a trial is judged by its externally studentized residual in a model of the active effects and the blocks, and
these are chosen without the trial that fits worst, which would otherwise hide itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from desktop.core.arrays import Flags, Floats
from desktop.core.effect_limits import LEVEL, lenth_of, lenth_ratios, t_limit

#: Level of active effects: few that are only noise, as these would reduce the residuals.
_ACTIVE = 0.01
#: Simulated experiments without outliers, for close decisions.
_DRAWS = 200
#: Beyond so many times the limit the decision is not close.
_SURE = 1.35


@dataclass(frozen=True)
class Suspect:
    """A trial that does not fit the active effects. `limit`: |t| that one or more of all trials exceed in 5 %
    of experiments without outliers."""

    label: str
    value: float
    expected: float
    t: float
    limit: float


@dataclass(frozen=True, eq=False)
class _Judged:
    """Externally studentized residuals `t` (N,) with the limit of each, the prediction of each trial by all
    others (`expected`), the log likelihood without the worst trial, and the mean (N,) of the model without
    it, with blocks (`mean`) and without (`plain`); the noise of a trial is `sigma` times `scale`."""

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
        """(N,) |t| in units of its limit, as degrees of freedom differ with the model of each trial."""
        return np.abs(self.t) / self.limit


def suspects(labels: tuple[str, ...], y: Floats, terms: Floats, shifts: Floats) -> tuple[Suspect, ...]:
    """Trials beyond what the largest of N residuals exceeds in 5 % of experiments, the worst first.

    y : (N,). terms : (N, 1 + m) columns of mean and effects. shifts : (N, b) of blocks, independent of these.

    The quantile is that of t, with Bonferroni's bound for N trials. Where a trial is not far beyond it, the
    limit is simulated with experiments like this one, as the same data chose the effects and the noise
    (constant, or proportional to the response).
    """
    judged = _judged(y, terms, shifts)
    if judged is None:
        return ()
    size, bound = judged.size, 1.0
    if 1 < size.max() < _SURE:
        # Effects change the limit little unless noise grows with the response; if that seems so, noise may
        # still be constant, so both are simulated.
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
    """The value that the largest residual, in units of its limit, exceeds in 5 % of experiments without
    outliers with that mean and noise (N,); infinite as soon as it is certain to be above the observed one."""
    # Among the draws and this experiment, one in twenty has a larger residual.
    top, beyond = judged.size.max(), int(LEVEL * (_DRAWS + 1)) - 1
    # Seeded with the data: equal data have equal limits, different data different draws.
    generator = np.random.default_rng(np.frombuffer(judged.t.tobytes(), np.uint32))
    largest: list[float] = []
    for _ in range(_DRAWS):
        drawn = _judged(mean + noise * generator.standard_normal(len(noise)), terms, shifts)
        largest.append(0.0 if drawn is None else float(drawn.size.max()))
        if sum(one >= top for one in largest) > beyond:
            return np.inf
    return sorted(largest)[-1 - beyond]


def _judged(y: Floats, terms: Floats, shifts: Floats) -> _Judged | None:
    """Judge trials with the more likely kind of noise: with the wrong one, long runs would be outliers."""
    even = _beside_active(y, terms, shifts, np.ones(len(y)))
    if even is None:
        return None
    scale = even.plain
    for _ in range(2):  # weights follow from the fit, and the fit of small responses from weights
        if not (scale > 0).all() or np.ptp(scale) == 0:
            return even
        grown = _beside_active(y, terms, shifts, 1 / scale)
        if grown is None:
            return even
        last, scale = grown, grown.plain
    return last if last.likelihood > even.likelihood + 2 else even  # 2: not by chance


def _beside_active(y: Floats, terms: Floats, shifts: Floats, weight: Floats) -> _Judged | None:
    """Judge every trial with the active effects, trials weighted with `weight` (N,); None with fewer than
    three degrees of freedom, or residuals within rounding."""
    rounding = 1e-24 * float(np.mean((y * weight) ** 2))
    every = np.concatenate([terms, shifts], axis=1)
    sets = _active(y * weight, every * weight[:, None], terms.shape[1])
    if sets is None:
        return None
    t, limit, expected, variance = np.zeros(len(y)), np.full(len(y), np.inf), y.copy(), np.zeros(len(y))
    for one in {row.tobytes(): row for row in sets}.values():
        columns = np.concatenate([terms[:, one], shifts], axis=1)
        df = len(y) - columns.shape[1] - 1
        if df < 3:
            continue
        fit, in_set = _Fit(y * weight, columns * weight[:, None]), (sets == one).all(axis=1)
        without = fit.without() / df
        in_set &= (without > max(1e-12 * fit.squares, rounding)) & np.isfinite(fit.left)
        t[in_set] = fit.residual[in_set] / np.sqrt(without * fit.left)[in_set]
        expected[in_set] = (y - fit.residual / fit.left / weight)[in_set]
        limit[in_set], variance[in_set] = t_limit(df, LEVEL / len(y)), without[in_set]
    if not (variance > 0).any():
        return None
    worst = int(np.argmax(np.where(variance > 0, np.abs(t) / limit, -1)))
    one, least = sets[worst], float(variance[worst])
    columns = np.concatenate([terms[:, one], shifts], axis=1)
    fit, count = _Fit(y * weight, columns * weight[:, None]), int(one.sum())
    values = fit.values - fit.moved(worst)
    likelihood = float(-len(y) / 2 * np.log(least) + np.log(weight).sum())
    return _Judged(
        t, limit, expected, likelihood, columns @ values, columns[:, :count] @ values[:count],
        float(np.sqrt(least)), 1 / weight,
    )  # fmt: skip


def _active(y: Floats, x: Floats, count: int) -> Flags | None:
    """(N, count) which of the first columns of x (mean and effects) are active by all trials but that one;
    None if that cannot be decided."""
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
    """Least squares of y (N,) on columns x (N, c), and the influence of each trial."""

    def __init__(self, y: Floats, x: Floats) -> None:
        self.q, r = np.linalg.qr(x)
        self.inverse = np.linalg.inv(r)
        inside = self.q.T @ y
        self.values = self.inverse @ inside
        self.residual = y - self.q @ inside
        left = 1 - (self.q**2).sum(1)
        # a trial that the model fits by a term of its own has no residual
        self.left = np.where(left > 1e-9, left, np.inf)
        self.squares = float(self.residual @ self.residual)

    def without(self) -> Floats:
        """(N,) residual sum of squares without each trial."""
        return np.maximum(self.squares - self.residual**2 / self.left, 0.0)

    def moved(self, trial: int | slice = slice(None)) -> Floats:
        """Change of the values (c,) by one trial, or (N, c) by each."""
        ratio = np.asarray(self.residual[trial] / self.left[trial])
        return np.asarray(self.q[trial] @ self.inverse.T * ratio[..., None])

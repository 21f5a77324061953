"""Trials that do not fit: one that was disturbed moves every effect, and small ones are believed for it.

If nothing is active and one of n runs is off by D, all effects have the size D / (n / 2) (Daniel 1959). So a
trial is judged beside the effects that stand out and the blocks, by its externally studentized residual, and
what stands out is chosen without the trial that fits worst, which would hide it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from desktop.core.effect_limits import LEVEL, Array, lenth_of, lenth_ratios, t_limit

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
    """Externally studentized residuals (N,) with their degrees of freedom, what each trial would be by all
    others, the logarithm of the likelihood without the worst, and the mean (N,) of the model without that,
    with blocks and without; noise of a trial is `sigma` times `scale`."""

    t: Array
    df: int
    expected: Array
    likelihood: float
    mean: Array
    plain: Array
    sigma: float
    scale: Array | float


def suspects(labels: tuple[str, ...], y: Array, terms: Array, shifts: Array) -> tuple[Suspect, ...]:
    """Trials above what the largest of so many passes in 5 %, the worst first.

    y : (N,). terms : (N, 1 + m) columns of mean and effects. shifts : (N, b) of blocks, independent of these.

    The quantile is that of t, with Bonferroni's bound for N trials; where a trial is not far beyond, the
    chance is that in simulated experiments like this one, since the choices of effects and of noise (the
    same for all, or in proportion to the response) are made by the same data.
    """
    found = _judged(y, terms, shifts)
    if found is None:
        return ()
    limit = t_limit(found.df, LEVEL / len(y))
    size = np.abs(found.t)
    if limit < size.max() < _SURE * limit:
        limit = max(limit, _simulated(found, terms, shifts))
    return tuple(
        Suspect(labels[i], float(y[i]), float(found.expected[i]), float(found.t[i]), limit)
        for i in np.argsort(-size)
        if size[i] > limit
    )


def _simulated(null: _Judged, terms: Array, shifts: Array) -> float:
    """What the largest |t| passes in 5 % of experiments in which all trials are as they should be."""
    generator = np.random.default_rng(1959)
    largest = []
    for _ in range(_DRAWS):
        noise = null.sigma * null.scale * generator.standard_normal(len(null.t))
        drawn = _judged(null.mean + noise, terms, shifts)
        # In units of its own quantile: the number of active effects differs.
        largest.append(0.0 if drawn is None else float(np.abs(drawn.t).max()) / t_limit(drawn.df))
    # Of n draws and this one, the largest are the one in twenty.
    return sorted(largest)[int(np.ceil((1 - LEVEL) * (_DRAWS + 1))) - 1] * t_limit(null.df)


def _judged(y: Array, terms: Array, shifts: Array) -> _Judged | None:
    """By the noise that is more likely: with the wrong one, long runs are named for being long."""
    found = _beside_active(y, terms, shifts, np.ones(len(y)))
    if found is None:
        return None
    scale = found.plain
    for _ in range(2):  # what is small is fitted well only where it counts for more
        if not (scale > 0).all():
            return found
        grown = _beside_active(y, terms, shifts, 1 / scale)
        if grown is None:
            return found
        last, scale = grown, grown.plain
    return last if last.likelihood > found.likelihood + 2 else found  # not by chance


def _beside_active(y: Array, terms: Array, shifts: Array, weight: Array) -> _Judged | None:
    """None where fewer than three degrees of freedom are left."""
    every = np.concatenate([terms, shifts], axis=1)
    chosen = _active(y * weight, every * weight[:, None], terms.shape[1])
    if chosen is None:
        return None
    count = int(chosen.sum())
    columns = np.concatenate([terms[:, chosen], shifts], axis=1)
    df = len(y) - columns.shape[1] - 1
    if df < 3:
        return None
    one = _Fit(y * weight, columns * weight[:, None])
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = one.without() / df
        usable = (variance > 1e-12 * max(one.squares, 1e-300)) & (one.left > 1e-9)
        t = np.where(usable, one.rest / np.sqrt(variance * one.left), 0.0)
        worst = int(np.argmax(np.abs(t)))
        least = float(variance[worst])
        likelihood = float(-len(y) / 2 * np.log(least) + np.log(weight).sum()) if least > 0 else np.inf
        expected = np.where(usable, y - one.rest / one.left / weight, y)
    values = one.values - (one.moved(worst) if usable[worst] else 0.0)
    return _Judged(
        t, df, expected, likelihood, columns @ values, columns[:, :count] @ values[:count],
        float(np.sqrt(max(least, 0.0))), 1 / weight,
    )  # fmt: skip


def _active(y: Array, x: Array, count: int) -> NDArray[np.bool_] | None:
    """(count,) which of the first columns of x, mean and effects, are more than noise; None where nothing
    tells."""
    every = _Fit(y, x)
    df = len(y) - x.shape[1] - 1
    unit = (every.inverse**2).sum(1)
    values = every.values
    if df >= 3:
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = every.without() / df
            worst = int(np.argmax(np.nan_to_num(every.rest**2 / (variance * every.left))))
            values = values - every.moved(worst)
            unit = unit + (every.inverse @ every.q[worst]) ** 2 / every.left[worst]
            beyond = np.abs(values) > t_limit(df, _ACTIVE) * np.sqrt(unit * variance[worst])
    else:
        scaled = np.zeros(len(values))
        scaled[1:] = values[1:] * np.sqrt(np.median(unit[1:count]) / unit[1:])
        lenth = lenth_of(scaled[1:count])
        if lenth is None:
            return None
        beyond = np.abs(scaled) > lenth_ratios(lenth.count)[0].quantile(_ACTIVE) * lenth.pse
    beyond[0] = True
    return np.asarray(beyond[:count])


class _Fit:
    """Least squares of y (N,) on columns x (N, c), and what each trial does to it."""

    def __init__(self, y: Array, x: Array) -> None:
        self.q, r = np.linalg.qr(x)
        self.inverse = np.linalg.inv(r)
        inside = self.q.T @ y
        self.values = self.inverse @ inside
        self.rest = y - self.q @ inside
        self.left = 1 - (self.q**2).sum(1)
        self.squares = float(self.rest @ self.rest)

    def without(self) -> Array:
        """(N,) sum of squares that is left without each trial."""
        return np.maximum(self.squares - self.rest**2 / self.left, 0.0)

    def moved(self, trial: int) -> Array:
        """By how much one trial moves the values."""
        return np.asarray(self.inverse @ self.q[trial] * (self.rest[trial] / self.left[trial]))

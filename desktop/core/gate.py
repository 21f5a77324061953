"""Repeated runs before and after a change: which times differ by more than the scatter of the runs.

For each time (the whole run, each phase) the logarithms of the two sides are compared by least squares with
one variance for both, so that one side may be a single run:

    log t = a + b [new] (+ c order) + noise,      change = exp(b) - 1

The p-values are Student's, times 1.5 and the ratio of the larger to the smaller number of runs (as skewed
noise of few runs is not cancelled by that of many), and corrected for multiple tests: the whole run has half
of the level, whatever the number of phases, and the phases share the other half (S. Holm, Scand. J. Statist.
6, 1979). If nothing changed, at most `LEVEL` of all comparisons report a difference; the rates found by
simulation are in the handbook, page Comparing runs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from desktop.core.arrays import Floats

#: At most this part of all comparisons of equal sides reports any difference.
LEVEL = 0.05
# A factor, found by simulation, that keeps exponential noise within the level.
_STRICTER = 1.5
# Relative precision of clocks and sums of clock readings.
_EXACT = 1e-12


class Difference(NamedTuple):
    """One time on both sides, in seconds.

    `base_s`, `new_s`: geometric means of the runs that have it (NaN: none has it); `change` = new / base - 1,
    with the interval `low` to `high` at `1 - LEVEL` for this time alone; `p` corrected for all compared
    times. `significant` is None, and `low`, `high`, `p` are NaN, where the scatter is not known as fewer than
    three runs have the time.
    """

    base_s: float
    new_s: float
    change: float
    low: float
    high: float
    p: float
    significant: bool | None


def differences(base: Floats, new: Floats, *, in_order: bool = False) -> list[Difference]:
    """Compare each time of the two sides, that of the whole run first.

    Parameters
    ----------
    base, new : (times, runs of the side), seconds, NaN where a run does not have the time.
    in_order : the runs were made one after the other, first `base`, then `new`, each in the given order: a
        linear drift over them is removed. The sides then have to differ twice as much.

    Raises
    ------
    ValueError : the sides do not have equally many times.
    """
    if base.ndim != 2 or new.ndim != 2 or len(base) != len(new):
        raise ValueError(
            f"the times of the sides are {base.shape} and {new.shape}, they must have equally many rows"
        )
    tests = [_difference(b, n, in_order) for b, n in zip(base, new, strict=True)]
    p = np.array([one.p for one in tests])
    corrected = np.full(p.size, np.nan)
    for times in (np.arange(p.size) < 1, np.arange(p.size) >= 1):
        tested = np.flatnonzero(times & ~np.isnan(p))
        order = tested[np.argsort(p[tested], kind="stable")]
        each = 2 * p[order] * np.arange(order.size, 0, -1)
        corrected[order] = np.minimum(np.maximum.accumulate(each), 1.0)
    return [
        one._replace(p=float(at), significant=None if np.isnan(at) else bool(at <= LEVEL))
        for one, at in zip(tests, corrected, strict=True)
    ]


def _difference(base: Floats, new: Floats, in_order: bool) -> Difference:
    from scipy.special import stdtr, stdtrit

    values = np.concatenate([base, new])
    side = np.repeat([0.0, 1.0], [base.size, new.size])
    held = values > 0  # not NaN
    with np.errstate(invalid="ignore", divide="ignore"):
        y = np.log(values)
    means = [
        float(np.exp(y[held & (side == k)].mean())) if (held & (side == k)).any() else np.nan for k in (0, 1)
    ]
    columns = [np.ones(values.size), side, *([np.arange(values.size, dtype=float)] if in_order else [])]
    x = np.stack(columns, axis=1)[held]
    y = y[held]
    df = len(y) - x.shape[1]
    plain = Difference(means[0], means[1], means[1] / means[0] - 1, np.nan, np.nan, np.nan, None)
    if np.isnan(plain.change) or df < 1 or np.linalg.matrix_rank(x) < x.shape[1]:
        return plain
    inverse = np.linalg.inv(x.T @ x)
    of = inverse @ (x.T @ y)
    spread = float(np.sum((y - x @ of) ** 2)) / df
    b, se = float(of[1]), max(float(np.sqrt(spread * inverse[1, 1])), _EXACT)
    wide = float(stdtrit(df, 1 - LEVEL / 2)) * se
    counts = np.bincount(x[:, 1].astype(int))
    stricter = _STRICTER * float(counts.max() / counts.min())
    p = min(stricter * float(2 * stdtr(df, -abs(b) / se)), 1.0)
    return plain._replace(change=np.expm1(b), low=np.expm1(b - wide), high=np.expm1(b + wide), p=p)

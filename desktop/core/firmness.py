"""Confidence intervals of breakpoints, from their positions in repetitions: iterations of a run, or runs.

The interval is that of order statistics for the median (H. A. David, H. N. Nagaraja, *Order Statistics*, 3rd
ed., 2003, section 7.1): of n ordered positions the r-th from below and from above enclose the median of their
distribution unless fewer than r lie on one side of it. No distribution is assumed. The number on one side is
binomial with probability 1/2 if positions are independent. Where the state of the machine persists,
successive positions are correlated: then it is the number of visits to one state of a two-state Markov chain,
whose mean over n has the variance of that of the signs of a normal AR(1) process; its signs at lag k have the
correlation (2/π) asin ρ^k. ρ is not known: the probability is the mean over ρ, weighted with the restricted
likelihood of the positions' normal scores, mean and scale eliminated (D. A. Harville, *Maximum likelihood
approaches to variance component estimation*, 1977), and a prior of one half for ρ = 0. The interval is the
shortest with a level of at least `LEVEL`, if n allows it, and is reported with its level. Fewer positions
than `TESTED` do not show correlation: they are taken to be independent, which is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from desktop.core.arrays import Floats
from desktop.core.iterations import laid, means
from desktop.core.phase_stats import Firm

if TYPE_CHECKING:
    from desktop.core.contrast import Alignment, Phased
    from desktop.core.curve import StepCurve
    from desktop.core.iterations import Repeat
    from desktop.core.phases import PhaseFit


#: Level of intervals where there are repetitions enough; with fewer than `LEAST` there is no interval.
LEVEL, LEAST = 0.95, 3
#: From so many positions on correlation is estimated; possible correlations of successive positions, and the
#: prior probability of none.
TESTED, _ALIKE, _NONE = 12, np.arange(20) / 20, 0.5
#: The largest correlation that is considered where there are too few positions to estimate it.
MOST_ALIKE = 0.8
#: Equal parts of an iteration in which its breakpoints are searched, and largest number of iterations.
_BINS, _MOST = 1024, 1024
#: Breakpoints this close (parts of an iteration) are one position, if this part of iterations has it.
_SAME, _OFTEN = 0.01, 0.7
#: Parts on either side of a breakpoint that are needed to find it again.
_SIDE = 8


def median_interval(places: Floats) -> tuple[float, float, float, float] | None:
    """Low, high and level of an interval for the median of `places` (n,), positions in order of time, and the
    least possible level: with fewer than `TESTED`, that for the correlation `MOST_ALIKE`. None with fewer
    than `LEAST`."""
    n = places.size
    if n < LEAST:
        return None
    level = np.zeros((n + 1) // 2)
    for rho, part in zip(_ALIKE.tolist(), _likely(places).tolist(), strict=True):
        if part > 1e-4:
            level += part * _enclosed(n, rho)
    inner = np.flatnonzero(level >= LEVEL)
    rank = int(inner[-1]) if inner.size else 0
    ordered = np.sort(places)
    least = level[rank] if n >= TESTED else _enclosed(n, MOST_ALIKE)[rank]
    return float(ordered[rank]), float(ordered[n - 1 - rank]), float(level[rank]), float(least)


def _likely(places: Floats) -> Floats:
    """Posterior probability of each correlation in `_ALIKE`, from positions in order of time."""
    n = places.size
    before = np.where(_ALIKE == 0, _NONE, (1 - _NONE) / (_ALIKE.size - 1))
    _, which, count = np.unique(places, return_inverse=True, return_counts=True)
    if n < TESTED or count.size == 1:
        return np.where(_ALIKE == 0, 1.0, 0.0)
    below = (np.cumsum(count) - (count - 1) / 2 - 0.375) / (n + 0.25)
    score = np.array([NormalDist().inv_cdf(one) for one in below.tolist()])[which]
    left = np.sqrt(1 - _ALIKE**2)[:, None]
    # Innovations of the scores and of their mean: what does not follow from the one before.
    new = np.hstack([np.full((_ALIKE.size, 1), score[0]), (score[1:] - _ALIKE[:, None] * score[:-1]) / left])
    one = np.hstack([np.ones((_ALIKE.size, 1)), np.repeat((1 - _ALIKE[:, None]) / left, n - 1, axis=1)])
    norm2 = (one**2).sum(axis=1)
    squares = ((new - one * ((one * new).sum(axis=1) / norm2)[:, None]) ** 2).sum(axis=1)
    fits = -0.5 * ((n - 1) * np.log(left[:, 0] ** 2 * squares) + np.log(norm2))
    part = before * np.exp(fits - fits.max())
    return np.asarray(part / part.sum())


@lru_cache(maxsize=256)
def _enclosed(n: int, rho: float) -> Floats:
    """((n + 1) // 2,) probability that the median lies between the r-th of n positions from below and from
    above, r from 1; successive positions have the correlation `rho`."""
    distance = np.arange(1, n)
    alike = 2 / np.pi * np.arcsin(rho**distance)
    low, high = 0.0, 1.0
    for _ in range(40):  # the Markov chain whose mean has the same variance
        middle = (low + high) / 2
        more = ((middle**distance - alike) * (1 - distance / n)).sum() > 0
        low, high = (low, middle) if more else (middle, high)
    stays = (1 + low) / 2 if rho else 0.5
    count = np.zeros((2, n + 1))  # probability that so many are below, with the last one above or below
    count[0, 0] = count[1, 1] = 0.5
    for _ in range(n - 1):
        above, below = stays * count + (1 - stays) * count[::-1]
        count[0] = above
        count[1, 1:], count[1, 0] = below[:-1], 0.0
    return 1 - 2 * np.cumsum(count.sum(axis=0))[: (n + 1) // 2]


def over_iterations(
    curve: StepCurve, loop: Repeat, breakpoints: Floats, degree: Sequence[int]
) -> tuple[Firm | None, ...]:
    """Intervals of the inner ones of the `breakpoints` of an iteration, seconds of its period including both
    ends. Each is searched again in every iteration, as the position that separates two levels, or lines, with
    the least squared error. degree : of the phases."""
    laid_out, rows = laid(curve, loop, _BINS, _MOST)
    at = breakpoints / loop.period * _BINS
    scale = loop.period / _BINS
    intervals: list[Firm | None] = []
    for i in range(1, at.size - 1):
        half = int(min(at[i] - at[i - 1], at[i + 1] - at[i]))
        first = max(round(at[i]) - half, 0)
        interval = None
        if half >= _SIDE:
            places = first + splits(rows[:, first : first + 2 * half], max(degree[i - 1 : i + 1]))
            interval = median_interval(places)
        if interval is None:
            intervals.append(None)
            continue
        # Positions are known to one part, and the interval has to contain the shown breakpoint.
        low, high = float(min(interval[0] - 0.5, at[i])), float(max(interval[1] + 0.5, at[i]))
        tested, (level, least) = laid_out.size >= TESTED, interval[2:]
        ends = low * scale, high * scale
        intervals.append(Firm(*ends, level, laid_out.size, loop.count, "iterations", tested, least))
    return tuple(intervals)


def in_the_run(curve: StepCurve, loop: Repeat, fit: PhaseFit) -> tuple[Firm | None, ...]:
    """Intervals of the inner breakpoints of a run: of those that recur at one position in most iterations,
    the interval over the iterations, moved to each iteration; else None."""
    inner = fit.breaks[1:-1]
    k = np.searchsorted(loop.bounds, inner, side="right") - 1
    k = np.where((k < 0) | (k >= loop.count), -1, k)
    place = np.where(k < 0, np.nan, (inner - loop.bounds[k]) / loop.durations[k])
    inside = np.flatnonzero((place > _SAME) & (place < 1 - _SAME))
    order = inside[np.argsort(place[inside])]
    groups = np.split(order, np.flatnonzero(np.diff(place[order]) > _SAME) + 1)
    groups = [g for g in groups if np.unique(k[g]).size >= max(_OFTEN * loop.count, LEAST)]
    intervals: list[Firm | None] = [None] * inner.size
    if not groups:
        return tuple(intervals)
    middles = [float(np.median(place[g])) * loop.period for g in groups]
    degree = [int(fit.degree[g].max()) for g in groups]
    ends = np.array([0.0, *middles, loop.period])
    degree.append(int(fit.degree[groups[-1] + 1].max()))
    for group, one in zip(groups, over_iterations(curve, loop, ends, degree), strict=True):
        if one is None:
            continue
        for i in group.tolist():
            start, lasts = float(loop.bounds[k[i]]), float(loop.durations[k[i]]) / loop.period
            intervals[i] = one._replace(low_s=start + lasts * one.low_s, high_s=start + lasts * one.high_s)
    return tuple(intervals)


def splits(rows: Floats, degree: int) -> Floats:
    """(k,) index at which each row (k, m) is best divided into two constants (degree 0) or lines (1)."""
    m = rows.shape[1]
    x = np.arange(m) - (m - 1) / 2
    rows = rows - rows.mean(axis=1, keepdims=True)
    places = np.arange(_SIDE // 2, m - _SIDE // 2 + 1)
    whole, moment = (np.cumsum(v, axis=1)[:, [*(places - 1), -1]] for v in (rows, rows * x))
    gained = np.zeros((rows.shape[0], places.size))
    for right in (False, True):
        size = (m - places if right else places).astype(float)
        sums, moments = ((v[:, -1:] - v[:, :-1]) if right else v[:, :-1] for v in (whole, moment))
        gained += sums**2 / size
        if degree:
            centre = places / 2 if right else (places - m) / 2
            gained += (moments - centre * sums) ** 2 / (size * (size * size - 1) / 12)
    return np.asarray(places[gained.argmax(axis=1)], float)


def over_runs(alignment: Alignment, run: int) -> tuple[Firm | None, ...]:
    """Intervals of the inner breakpoints of a run over all compared runs of the same program on as many
    processors, itself included; a breakpoint corresponds where the same two phases follow one another.
    Positions are seconds from each run's start; intervals are on the time axis of `run`. Runs are assumed to
    be in the order in which they were made."""
    this = alignment.runs[run]
    row_of = {int(phase): row for row, phase in enumerate(alignment.rows[:, run].tolist()) if phase >= 0}
    others = [k for k, other in enumerate(alignment.runs) if repeats(this, other)]
    intervals: list[Firm | None] = []
    for i in range(1, this.fit.n):
        places = []
        for k in others:
            a, b = (int(alignment.rows[row_of[p], k]) for p in (i - 1, i))
            if a >= 0 and b == a + 1:
                places.append(_place(alignment.runs[k], b) - alignment.runs[k].curve.start)
        interval = median_interval(np.array(places))
        if interval is None:
            intervals.append(None)
            continue
        low, high = (t + this.curve.start for t in interval[:2])
        tested, (level, least) = len(places) >= TESTED, interval[2:]
        intervals.append(Firm(low, high, level, len(places), len(others), "runs", tested, least))
    return tuple(intervals)


def repeats(one: Phased, other: Phased) -> bool:
    """Whether two runs are of the same program on as many processors: nine tenths of all regions are in
    both."""
    both, either = len(one.program & other.program), len(one.program | other.program)
    same = one.curve.quantity == other.curve.quantity and one.curve.capacity == other.curve.capacity
    return same and 10 * both >= 9 * either


def _place(run: Phased, i: int) -> float:
    """Position (s) of breakpoint `i` of a run. If it was found by the least largest error, which may put it
    anywhere in its range and under noise toward the middle of both phases, it is searched again."""
    before, at, after = run.fit.breaks[i - 1 : i + 2].tolist()
    if not run.fit.searched:
        return float(at)
    half = min(at - before, after - at)
    edges = np.linspace(at - half, at + half, _BINS + 1)
    degree = min(int(run.fit.degree[i - 1 : i + 1].max()), 1)
    return float(at + half * (2 * splits(means(run.curve, edges[None]), degree)[0] / _BINS - 1))

"""How firm a breakpoint is: where it lies in the repeats of what it divides, iterations of a run or runs of a
program, and an interval for it.

The interval is that of order statistics for the median (H. A. David, H. N. Nagaraja, *Order Statistics*, 3rd
ed., 2003, section 7.1): of n places in order the r-th from below and from above enclose the median of what
they are drawn from unless fewer than r lie on one side of it. It asks for no distribution. How many lie on a
side is a binomial of n draws with odds 1/2 if places are independent. Where the machine's state lasts, those
that follow one another are alike: then it is how often a chain of two states is in one of them, whose mean
over n varies as that of the signs of a normal process of first order does; signs k apart have the correlation
(2/π) asin ρ^k there. How alike they are is not known: the probability is the mean over ρ, each weighed with
the likelihood of the places' normal scores, mean and scale left out (D. A. Harville, *Maximum likelihood
approaches to variance component estimation*, 1977), and one half beforehand for ρ = 0. The interval is the
shortest of at least `LEVEL`, where n allows it, and its probability is told. Fewer places than `TESTED` do
not show whether they are alike: they are taken to be independent, which is told.
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


#: The least level where there are repeats enough; of fewer than these there is no interval.
LEVEL, LEAST = 0.95, 3
#: From so many places on it is looked whether they are alike; correlations of neighbours that are looked at,
#: and how likely none is beforehand.
TESTED, _ALIKE, _NONE = 12, np.arange(20) / 20, 0.5
#: The largest correlation of neighbours that is thought of where there are too few places to see it.
MOST_ALIKE = 0.8
#: Equal parts of an iteration in which its breakpoints are looked for, and iterations looked at.
_BINS, _MOST = 1024, 1024
#: Breakpoints this close (parts of an iteration) are one place, that counts if so many iterations have it.
_SAME, _OFTEN = 0.01, 0.7
#: Parts on either side of a breakpoint that are needed to find it again.
_SIDE = 8


def median_interval(places: Floats) -> tuple[float, float, float, float] | None:
    """Low, high, and level of an interval for the median of places that follow one another in time, and what
    the level is at least: of fewer than `TESTED`, which do not show whether they are alike, that of places
    whose neighbours have the correlation `MOST_ALIKE`. None of fewer than `LEAST`."""
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
    """How likely each of the correlations of neighbours is, by places that follow one another in time."""
    n = places.size
    before = np.where(_ALIKE == 0, _NONE, (1 - _NONE) / (_ALIKE.size - 1))
    _, which, count = np.unique(places, return_inverse=True, return_counts=True)
    if n < TESTED or count.size == 1:
        return np.where(_ALIKE == 0, 1.0, 0.0)
    below = (np.cumsum(count) - (count - 1) / 2 - 0.375) / (n + 0.25)
    score = np.array([NormalDist().inv_cdf(one) for one in below.tolist()])[which]
    left = np.sqrt(1 - _ALIKE**2)[:, None]
    # What the one before does not say, of the scores and of their mean.
    new = np.hstack([np.full((_ALIKE.size, 1), score[0]), (score[1:] - _ALIKE[:, None] * score[:-1]) / left])
    one = np.hstack([np.ones((_ALIKE.size, 1)), np.repeat((1 - _ALIKE[:, None]) / left, n - 1, axis=1)])
    known = (one**2).sum(axis=1)
    squares = ((new - one * ((one * new).sum(axis=1) / known)[:, None]) ** 2).sum(axis=1)
    fits = -0.5 * ((n - 1) * np.log(left[:, 0] ** 2 * squares) + np.log(known))
    part = before * np.exp(fits - fits.max())
    return np.asarray(part / part.sum())


@lru_cache(maxsize=256)
def _enclosed(n: int, rho: float) -> Floats:
    """((n + 1) // 2,) how likely the median of n places lies between the r-th from below and from above, r
    from 1; neighbours have the correlation `rho`."""
    distance = np.arange(1, n)
    alike = 2 / np.pi * np.arcsin(rho**distance)
    low, high = 0.0, 1.0
    for _ in range(40):  # the chain of which the mean varies as much
        middle = (low + high) / 2
        more = ((middle**distance - alike) * (1 - distance / n)).sum() > 0
        low, high = (low, middle) if more else (middle, high)
    stays = (1 + low) / 2 if rho else 0.5
    count = np.zeros((2, n + 1))  # how likely so many are below, the last one above or below
    count[0, 0] = count[1, 1] = 0.5
    for _ in range(n - 1):
        above, below = stays * count + (1 - stays) * count[::-1]
        count[0] = above
        count[1, 1:], count[1, 0] = below[:-1], 0.0
    return 1 - 2 * np.cumsum(count.sum(axis=0))[: (n + 1) // 2]


def over_iterations(
    curve: StepCurve, loop: Repeat, breaks: Floats, degree: Sequence[int]
) -> tuple[Firm | None, ...]:
    """Of each inner one of these breakpoints of an iteration, seconds of its period with both ends: looked
    for again in every iteration, as the place between which two levels, or lines, leave least squared error.

    degree : of the phases.
    """
    laid_out, rows = laid(curve, loop, _BINS, _MOST)
    at = breaks / loop.period * _BINS
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
        # A place is known to one part, and the breakpoint that is shown is one of those that fit.
        low, high = float(min(interval[0] - 0.5, at[i])), float(max(interval[1] + 0.5, at[i]))
        tested, (level, least) = laid_out.size >= TESTED, interval[2:]
        ends = low * scale, high * scale
        intervals.append(Firm(*ends, level, laid_out.size, loop.count, "iterations", tested, least))
    return tuple(intervals)


def in_the_run(curve: StepCurve, loop: Repeat, fit: PhaseFit) -> tuple[Firm | None, ...]:
    """Of each inner breakpoint of a run: of those that come again at one place of the iterations, in most of
    them, the interval over the iterations, where they stand."""
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
    """(k,) where each of the rows (k, m) is best divided into two constants (degree 0) or lines (1)."""
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
    """Of each inner breakpoint of a run, over it and those compared with it that are the same program on as
    many processors: the end of a phase that is followed by the next one in both. Places are seconds from each
    run's start; intervals are told on the axis of `run`. Runs are taken to stand in the order in which they
    were made."""
    own = alignment.runs[run]
    row_of = {int(phase): row for row, phase in enumerate(alignment.rows[:, run].tolist()) if phase >= 0}
    others = [k for k, other in enumerate(alignment.runs) if repeats(own, other)]
    intervals: list[Firm | None] = []
    for i in range(1, own.fit.n):
        places = []
        for k in others:
            a, b = (int(alignment.rows[row_of[p], k]) for p in (i - 1, i))
            if a >= 0 and b == a + 1:
                places.append(_place(alignment.runs[k], b) - alignment.runs[k].curve.start)
        interval = median_interval(np.array(places))
        if interval is None:
            intervals.append(None)
            continue
        low, high = (t + own.curve.start for t in interval[:2])
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
    """Where breakpoint `i` of a run lies (s). Where the least largest error placed it, which may be anywhere
    in its range and is drawn to the middle of both phases by noise, it is looked for again."""
    before, at, after = run.fit.breaks[i - 1 : i + 2].tolist()
    if not run.fit.searched:
        return float(at)
    half = min(at - before, after - at)
    edges = np.linspace(at - half, at + half, _BINS + 1)
    degree = min(int(run.fit.degree[i - 1 : i + 1].max()), 1)
    return float(at + half * (2 * splits(means(run.curve, edges[None]), degree)[0] / _BINS - 1))

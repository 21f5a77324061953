"""How firm a breakpoint is: where it lies in the repeats of what it divides, iterations of a run or runs of a
program, and an interval for it.

The interval is that of order statistics for the median (H. A. David, H. N. Nagaraja, *Order Statistics*, 3rd
ed., 2003, section 7.1): of n places in order the r-th from below and from above enclose the median of what
they are drawn from with the probability 1 - 2 P(B < r), B binomial of n draws with odds 1/2. It asks for no
distribution. The level that is told is this one, at least `LEVEL` where n allows it (from 6 on). Places that
follow one another in time are alike where the machine's state lasts: then n counts as n/τ, where τ is the sum
of the correlations of the signs of places at all distances, (2/π) asin ρ^k each if ρ is that of neighbours (a
normal process of first order; the sign's is (2/π) asin ρ, from which ρ is had). Fewer places than `TESTED` do
not show whether they are alike: they are taken to be independent, which is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import asin, comb, pi, sin
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from desktop.core.iterations import laid, means
from desktop.core.phase_stats import Firm
from desktop.core.phases import BY_HAND
from desktop.core.selection import AS_SUGGESTED

if TYPE_CHECKING:
    from desktop.core.contrast import Alignment, Phased
    from desktop.core.curve import StepCurve
    from desktop.core.iterations import Repeat
    from desktop.core.phases import PhaseFit

Floats = NDArray[np.float64]

#: The least level where there are repeats enough; of fewer than these there is no interval.
LEVEL, LEAST = 0.95, 3
#: From so many places on it is looked whether they are alike; correlations of signs that are none.
TESTED, _NONE, _MOST_ALIKE = 12, 0.15, 0.9
#: Equal parts of an iteration in which its breakpoints are looked for, and iterations looked at.
_BINS, _MOST = 1024, 1024
#: Breakpoints this close (parts of an iteration) are one place, that counts if so many iterations have it.
_SAME, _OFTEN = 0.01, 0.7
#: Parts on either side of a breakpoint that are needed to find it again.
_SIDE = 8


def median_interval(places: Floats) -> tuple[float, float, float] | None:
    """Low, high, and level of an interval for the median of places that follow one another in time; None of
    fewer than `LEAST`."""
    n = places.size
    if n < LEAST:
        return None
    worth = n if n < TESTED else max(round(n / _together(places)), LEAST)
    below = np.cumsum([comb(worth, k) / 2.0**worth for k in range(worth // 2 + 1)])
    inner = np.flatnonzero(1 - 2 * below >= LEVEL)
    rank = int(inner[-1]) if inner.size else 0
    ordered = np.sort(places)
    at = int(np.floor((rank + 0.5) / worth * n)) if worth < n else rank
    return float(ordered[at]), float(ordered[n - 1 - at]), float(1 - 2 * below[rank])


def _together(places: Floats) -> float:
    """How many neighbours are worth one place."""
    x = np.sign(places - np.median(places))
    x -= x.mean()
    alike = float((x[1:] * x[:-1]).sum() / max((x * x).sum(), 1e-300))
    alike += (1 + 4 * alike) / x.size  # what so few say too little
    if alike < _NONE:
        return 1.0
    rho, k, total = sin(pi / 2 * min(alike, _MOST_ALIKE)), 1, 1.0
    while rho**k > 1e-3:
        total += 4 / pi * asin(rho**k)
        k += 1
    return total


def over_iterations(
    curve: StepCurve, loop: Repeat, breaks: Floats, degree: Sequence[int]
) -> tuple[Firm | None, ...]:
    """Of each inner one of these breakpoints of an iteration, seconds of its period with both ends: looked
    for again in every iteration, as the place between which two levels, or lines, leave least squared error.

    degree : of the phases.
    """
    kept, rows = laid(curve, loop, _BINS, _MOST)
    at = breaks / loop.period * _BINS
    scale = loop.period / _BINS
    found: list[Firm | None] = []
    for i in range(1, at.size - 1):
        half = int(min(at[i] - at[i - 1], at[i + 1] - at[i]))
        first = max(round(at[i]) - half, 0)
        interval = None
        if half >= _SIDE:
            places = first + splits(rows[:, first : first + 2 * half], max(degree[i - 1 : i + 1]))
            interval = median_interval(places)
        if interval is None:
            found.append(None)
            continue
        # A place is known to one part, and the breakpoint that is shown is one of those that fit.
        low, high = float(min(interval[0] - 0.5, at[i])), float(max(interval[1] + 0.5, at[i]))
        told = Firm(low * scale, high * scale, interval[2], kept.size, loop.count, "iterations")
        found.append(told._replace(tested=kept.size >= TESTED))
    return tuple(found)


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
    found: list[Firm | None] = [None] * inner.size
    if not groups:
        return tuple(found)
    middles = [float(np.median(place[g])) * loop.period for g in groups]
    degree = [int(fit.degree[g].max()) for g in groups]
    ends = np.array([0.0, *middles, loop.period])
    degree.append(int(fit.degree[groups[-1] + 1].max()))
    for group, one in zip(groups, over_iterations(curve, loop, ends, degree), strict=True):
        if one is None:
            continue
        for i in group.tolist():
            start, lasts = float(loop.bounds[k[i]]), float(loop.durations[k[i]]) / loop.period
            found[i] = one._replace(low_s=start + lasts * one.low_s, high_s=start + lasts * one.high_s)
    return tuple(found)


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
    return places[gained.argmax(axis=1)].astype(float)


def over_runs(alignment: Alignment, run: int) -> tuple[Firm | None, ...]:
    """Of each inner breakpoint of a run, over it and those compared with it that are the same program on as
    many processors: the end of a phase that is followed by the next one in both. Places are seconds from each
    run's start; intervals are told on the axis of `run`. Runs are taken to stand in the order in which they
    were made."""
    own = alignment.runs[run]
    row_of = {int(phase): row for row, phase in enumerate(alignment.rows[:, run].tolist()) if phase >= 0}
    others = [k for k, other in enumerate(alignment.runs) if repeats(own, other)]
    found: list[Firm | None] = []
    for i in range(1, own.fit.n):
        places = []
        for k in others:
            a, b = (int(alignment.rows[row_of[p], k]) for p in (i - 1, i))
            if a >= 0 and b == a + 1:
                places.append(_place(alignment.runs[k], b) - alignment.runs[k].curve.start)
        interval = median_interval(np.array(places))
        if interval is None:
            found.append(None)
            continue
        low, high = (t + own.curve.start for t in interval[:2])
        tested = len(places) >= TESTED
        found.append(Firm(low, high, interval[2], len(places), len(others), "runs", tested))
    return tuple(found)


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
    if run.fit.note in (AS_SUGGESTED, BY_HAND):
        return float(at)
    half = min(at - before, after - at)
    edges = np.linspace(at - half, at + half, _BINS + 1)
    degree = min(int(run.fit.degree[i - 1 : i + 1].max()), 1)
    return float(at + half * (2 * splits(means(run.curve, edges[None]), degree)[0] / _BINS - 1))

"""Loops of a run: iterations found in the order of events and in the curve, and folded onto one another.

A loop appears in the events of a location as an *anchor*: a symbol (a region entered, a message to one
partner, a collective) that recurs with the same symbols in each *stretch*, from one occurrence to the next.
Each symbol is tried as an anchor. Inner loops do not disturb outer ones: of symbols with a varying number of
occurrences only the presence is compared. An anchor is accepted if the stretches hold the same events or last
equally long, and if most locations agree at about the same times; a period of a curve without events if the
curve resembles itself from one period to the next. All limits were set on ``tests/benchmarks/iterations.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from desktop.core.arrays import AnyArray, Flags, Floats, Ints
from desktop.core.curve import StepCurve
from desktop.core.jit import arithmetic, kernel, place_in
from desktop.core.quantity import PROCESSORS, CurveQuantity

#: Smallest number of iterations of a loop.
LEAST = 4
#: The same where the trace itself names iterations.
LEAST_NAMED = 2
#: Limit of the work for all anchors of a location together, in elements; and of the number of anchors.
_WORK = 1 << 27
_CANDIDATES = 96
#: Largest number of stretches in one iteration where no symbol occurs just once in it.
_GROUP = 64
#: Stretches in the middle of the run from which that number is determined.
_GROUPED = 1 << 16
#: Part of the stretches that must hold a symbol that belongs to the loop; that must hold all of these
#: symbols; that must hold a symbol equally often to count it; and that must agree in all those counts.
_CORE, _ALIKE, _FIXED, _SAME = 0.8, 0.6, 0.8, 0.7
#: Part of the events between two anchors that must belong to the loop for the events alone to be enough.
_COVERED = 0.75
#: Mean difference of neighbours' durations, as a part of their mean, from which on several stretches may be
#: one iteration, and the part of that to which it must fall.
_UNEVEN, _EVENER = 0.05, 0.4
#: Counts in an iteration from this on are not distinguished.
_OFTEN = 1 << 12
#: Events before an anchor that may belong to its iteration.
_AHEAD = 64
#: Largest logarithm of the ratio of neighbours' durations (for 80 % of them): with the same events in each
#: (of 16 iterations or more, of fewer), at one location, and otherwise by the number of iterations.
_SPREAD_SAME, _SPREAD_SAME_FEW = np.log(4.0), np.log(2.0)
_SPREAD_LOOSE = 0.7
_SPREAD = ((20, 0.35), (10, 0.25), (6, 0.15), (LEAST, 0.08))
#: Part of the run (of the outer iteration) that a loop must fill.
_FILLS, _FILLS_INSIDE = 0.1, 0.3
#: Least mean number of inner iterations in an outer one.
_INSIDE = 2.5
#: Part of a loop's time that one of many iterations may take.
_LARGEST = 0.5
#: Part of the locations that must agree, and without the curve; how far begins may scatter, in periods.
_AGREE, _AGREE_ALONE, _APART = 0.6, 0.75, 0.5
#: Mean correlation of neighbouring iterations from which on the curve confirms a loop.
AGREES = 0.3
#: Largest spread of a loop that is accepted although the curve does not show it.
EVEN = 0.1
_BINS = 64
#: Parts of a period in which a curve without events is followed.
_FOLLOWED = 512
#: Largest number of iterations that are folded, evenly chosen.
_FOLDED = 4096
#: An iteration is odd if it is longer than its neighbours by this part and by so many of their deviations.
_ODD, _ODD_SPREADS = 0.1, 8.0


@dataclass(frozen=True, eq=False)
class Repeat:
    """A loop. Times in seconds.

    bounds : (k+1,) begins of the k iterations and the end of the last one, increasing.
    usual : (k,) whether an iteration holds the symbols that most hold and its end is certain; the end of the
        last one is not where no event shows that the loop is left.
    more : (k,) whether an iteration holds symbols that most do not; None where that is not known.
    symbol : the anchor at the location on which `bounds` were found; -1: found in the curve.
    grouped : occurrences of the anchor in an iteration.
    strong : whether the events alone are enough to accept the loop.
    same : part of the iterations that hold exactly the same events.
    spread : logarithm of the ratio of the durations of neighbours, which 80 % of them do not exceed.
    agree : part of the examined locations that have the loop.
    likeness : mean correlation of the curve in an iteration with that in the next one; NaN if not computed.
    named : whether the trace itself names iterations.
    """

    bounds: Floats
    usual: Flags
    more: Flags | None = None
    symbol: int = -1
    grouped: int = 1
    same: float = 0.0
    strong: bool = False
    named: bool = False
    spread: float = 0.0
    agree: float = 1.0
    likeness: float = float("nan")

    @property
    def count(self) -> int:
        return self.bounds.size - 1

    @cached_property
    def durations(self) -> Floats:
        """(k,) durations of the iterations (s)."""
        return np.diff(self.bounds)

    @cached_property
    def period(self) -> float:
        """The mean duration of the iterations (s), which unlike a median is the same at all locations even if
        these wait for each other at times. Unusual iterations, and odd ones that hold more symbols than most
        or last twice as long, are replaced by the running median of the others, so that a drift of the
        duration is kept. Those that last longer by chance, or wait for the one before, count.
        """
        durations = self.durations
        usual = self.usual if self.usual.any() else np.ones(self.count, bool)
        typical = np.flatnonzero(usual)
        excess, long = self.excess if typical.size == self.count else _excess(durations[typical])
        if self.more is not None:
            long = long & (self.more[typical] | (2 * excess >= durations[typical]))
        typical = typical[~long]
        if typical.size == self.count:
            return float(durations.mean())
        filled = np.interp(np.arange(self.count), typical, _running_median(durations[typical]))
        filled[typical] = durations[typical]
        return float(filled.mean())

    @cached_property
    def excess(self) -> tuple[Floats, Flags]:
        """(k,) by how much each is longer than its neighbours (s), and whether it is odd."""
        return _excess(self.durations)

    def noted(self, **changes: object) -> Repeat:
        """A copy with other values of fields that are not times; cached properties are kept."""
        changed = copy(self)
        changed.__dict__.update(changes)
        return changed

    @property
    def drift(self) -> float:
        """Relative increase of the median duration from the first fifth of the iterations to the last."""
        usual = self.durations[self.usual] if self.usual.any() else self.durations
        part = max(usual.size // 5, 1)
        first = float(np.median(usual[:part]))
        return float(np.median(usual[-part:])) / first - 1.0 if first > 0 else 0.0


# --- in the events ---


@kernel
def _present(symbol: Ints, places: Ints, seen: Ints, stretches: Ints) -> None:
    """Add to `stretches` (symbols,) in how many stretches between two `places` each symbol occurs. seen
    (symbols,): work space, -1 each."""
    for j in range(places.size - 1):
        for i in range(places[j], places[j + 1]):
            s = symbol[i]
            if seen[s] != j:
                seen[s] = j
                stretches[s] += 1


@kernel
def _count(
    symbol: Ints, places: Ints, column: Ints, counts: AnyArray, often: Ints, usual: Flags, more: Flags
) -> None:
    """Set `counts` (columns, stretches): occurrences of each symbol with a column in each stretch, the last
    one up to the end. Of all but the last, `often` (columns, limit + 1): number of stretches by count, up to
    its limit; `usual`: whether all these symbols occur; `more`: whether symbols without a column do."""
    last = places.size - 1
    for j in range(places.size):
        stop = places[j + 1] if j < last else symbol.size
        for i in range(places[j], stop):
            if column[symbol[i]] >= 0:
                counts[column[symbol[i]], j] += 1
            elif j < last:
                more[j] = True
        if j < last:
            usual[j] = True
            for c in range(counts.shape[0]):
                often[c, min(counts[c, j], often.shape[1] - 1)] += 1
                usual[j] &= counts[c, j] > 0


@arithmetic
def _medians(values: Floats, half: int, held: Floats, left: Floats, out: Floats) -> None:
    """Running median of each value and `half` on both sides; at the ends the window is moved inwards.
    `held`: the first 2 half + 1 values in order, between -inf and inf; `left`: work space of its size."""
    size = 2 * half + 1
    first = 0
    for i in range(values.size):
        a = min(max(i - half, 0), values.size - size)
        if a != first:  # one value leaves the ordered window, one is inserted, without a branch
            gone, new = values[first], values[a + size - 1]
            for k in range(size + 1):
                left[k] = held[k] if held[k] < gone else held[k + 1]
            for k in range(1, size + 1):
                held[k] = max(left[k - 1], min(left[k], new))
            first = a
        out[i] = held[half + 1]


def _running_median(values: Floats, half: int = 4) -> Floats:
    """(k,) medians of each value (k,) and `half` on both sides."""
    if values.size <= 2 * half + 1:
        return np.full(values.size, np.median(values))
    out = np.empty(values.size)
    held = np.concatenate([[-np.inf], np.sort(values[: 2 * half + 1]), [np.inf]])
    _medians(np.ascontiguousarray(values), half, held, np.empty(held.size), out)
    return out


def _excess(durations: Floats) -> tuple[Floats, Flags]:
    """(k,) by how much each is longer than its neighbours (s), and whether it is odd (`_ODD`)."""
    expected = _running_median(durations, 8)
    excess = durations - expected
    scatter = 1.4826 * float(np.median(np.abs(excess)))
    return excess, excess > np.maximum(_ODD * expected, _ODD_SPREADS * scatter)


def _spread(durations: Floats) -> float:
    """Logarithm of the ratio to the running median of neighbours that 80 % do not exceed."""
    logs = np.log(np.maximum(durations, 1e-300))
    return float(np.quantile(np.abs(logs - _running_median(logs)), 0.8, method="higher"))


def _group(durations: Floats) -> int:
    """Number of stretches that make one iteration, such as a few short ones and a long one."""
    durations = _some(durations, _GROUPED)
    held = np.minimum(durations, np.quantile(durations, 0.9))
    groups = range(1, min(_GROUP, durations.size // LEAST) + 1)
    apart = [float(np.abs(held[g:] - held[:-g]).mean() / held.mean()) for g in groups]
    if not apart or apart[0] <= _UNEVEN:
        return 1
    return next((g for g, d in zip(groups, apart, strict=True) if d < _EVENER * apart[0]), 1)


def _try_anchor(symbol: Ints, time: Floats, end: float, anchor: int, named: bool) -> Repeat | None:
    """The loop with the anchor once in each iteration, or several times where once is not accepted."""
    places = np.flatnonzero(symbol == anchor)
    durations = np.diff(time[places])
    if not (durations > 0).all():
        return None
    loop = _at(symbol, time, end, places, named)
    sure = loop is not None and (named or loop.strong)
    if not sure and (group := _group(durations)) > 1:
        # The iteration begins after the longest stretch, so that short ones stay together.
        phase = [float(np.median(durations[j::group])) for j in range(group)]
        loop = _at(symbol, time, end, places[(int(np.argmax(phase)) + 1) % group :: group], False, group)
    return loop if loop is not None and _believed(loop, loosely=True) else None


def _at(symbol: Ints, time: Floats, end: float, places: Ints, named: bool, group: int = 1) -> Repeat | None:
    """The loop whose iterations begin at `places`, occurrences of the anchor; None if it is none."""
    k, anchor = places.size, int(symbol[places[0]])
    if k < (LEAST_NAMED if named else LEAST):
        return None
    symbols = int(symbol.max()) + 1
    stretches = np.zeros(symbols, np.int64)
    places = np.ascontiguousarray(places)
    _present(symbol, places, np.full(symbols, -1, np.int64), stretches)
    core = np.flatnonzero(stretches >= _CORE * (k - 1))
    core = core[np.argsort(-stretches[core], kind="stable")][: max(_WORK // (8 * k), 1)]
    core = np.union1d(core, [anchor])
    column = np.full(symbols, -1, np.int64)
    column[core] = np.arange(core.size)
    counts = np.zeros((core.size, k), np.int32)
    often, usual, more = np.zeros((core.size, _OFTEN + 1), np.int64), np.empty(k - 1, bool), np.zeros(k, bool)
    _count(symbol, places, column, counts, often, usual, more)
    full = counts[:, :-1]
    usual |= named
    if usual.mean() < _ALIKE:
        return None
    # The most frequent count of each symbol, and whether nearly all stretches have it.
    value = often.argmax(axis=1)
    fixed = (value < _OFTEN) & (often.max(axis=1) / (k - 1) >= _FIXED)
    same = float(np.logical_and.reduce(full[fixed] == value[fixed, None]).mean())
    inside = np.flatnonzero(usual)
    a, b = int(inside[0]), int(inside[-1]) + 1
    complete = False  # the last iteration has no anchor behind it: complete if it holds what all hold
    if b == k - 1:
        missing = np.where(fixed, value, 1) - counts[:, -1]
        ahead = _ahead(symbol, int(places[a]), column, missing)
        complete = named or ahead >= 0
        if ahead > 0 and (np.diff(places)[a:b] > ahead).all():
            places = places - ahead
    typical = int(np.median(np.diff(places)[inside]))
    begins = time[places]
    bounds, flags = begins[a : b + 1], usual[a:b]
    if complete:
        stop = _left(symbol, int(places[-1]), column, np.where(fixed, value, 1), typical)
        lasted = np.diff(begins)[inside]
        expected = float(np.median(lasted[-9:]))
        left = float(time[stop]) if stop < time.size else np.inf
        ratio = np.log(max(left - float(begins[-1]), 1e-300) / expected)
        sure = abs(ratio) <= 0.1 or (abs(ratio) <= 0.5 and abs(ratio) <= 2 * _spread(lasted))
        last = left if sure else min(left, float(begins[-1]) + expected, end)
        if last > begins[-1]:
            bounds, flags = np.append(bounds, last), np.append(flags, named or sure)
    durations = np.diff(bounds)
    if not (durations > 0).all():
        return None
    strong = same >= _SAME and int(fixed.sum()) >= 3
    if strong:
        strong = full[:, usual].sum() / np.diff(places)[usual].sum() >= _COVERED
    first = int(symbol[places[a]])
    more = more[a : a + flags.size]
    return Repeat(bounds, flags, more, first, group, same, bool(strong), named, _spread(durations[flags]))


def _ahead(symbol: Ints, first: int, column: Ints, missing: AnyArray) -> int:
    """Number of events before the first anchor that belong to its iteration, as they are what is missing
    after the last anchor; -1 if they are not found there."""
    missing = np.maximum(missing, 0)
    for ahead in range(min(first, _AHEAD) + 1):
        if not missing.any():
            return ahead
        before = first - ahead - 1
        at = column[symbol[before]] if before >= 0 else -1
        if at < 0:
            return -1
        missing[at] = max(missing[at] - 1, 0)
    return -1


def _left(symbol: Ints, begin: int, column: Ints, held: Ints, typical: int) -> int:
    """Index of the first event after the last iteration, which starts at `begin`: the first that does not
    belong to the loop once the iteration is complete, else `typical` events later."""
    missing = held.copy()
    for i in range(begin, min(begin + 2 * typical, symbol.size)):
        at = column[symbol[i]]
        if at >= 0:
            missing[at] -= 1
        elif (missing <= 0).all():
            return i
    return begin + typical


def _believed(loop: Repeat, loosely: bool = False) -> bool:
    """Whether the iterations are about equally long. `loosely`: of one of several locations, which may wait
    for one another in turn."""
    k = loop.count
    if loop.named:
        return k >= LEAST_NAMED
    if k < LEAST or (k >= 8 and loop.durations.max() > _LARGEST * (loop.bounds[-1] - loop.bounds[0])):
        return False
    if loop.strong:
        return bool(loop.spread <= (_SPREAD_SAME if k >= 16 else _SPREAD_SAME_FEW))
    if loosely:
        return loop.spread <= _SPREAD_LOOSE
    return loop.spread <= next(limit for least, limit in _SPREAD if k >= least)


def in_events(
    symbol: Ints, time: Floats, start: float, end: float, preferred: Flags | None = None
) -> list[Repeat]:
    """Loops in the events of one location, outermost (longest period) first.

    symbol : (n,) of each event, from 0; time : (n,) of each, in seconds, not decreasing. start, end : of the
    run. preferred : (symbols,) those that the trace itself names iterations.
    """
    if symbol.size <= LEAST:
        return []
    counts = np.bincount(symbol)
    liked = np.zeros(counts.size, bool) if preferred is None else preferred[: counts.size]
    candidates = np.flatnonzero(counts >= np.where(liked, LEAST_NAMED, LEAST))
    first = np.full(counts.size, symbol.size)
    np.minimum.at(first, symbol, np.arange(symbol.size))
    # For each number of occurrences, preferred symbols first, then in order of first occurrence.
    order = candidates[np.lexsort((first[candidates], ~liked[candidates], counts[candidates]))]
    rank = np.arange(order.size) - np.searchsorted(counts[order], counts[order])
    order = order[np.lexsort((counts[order], rank))]
    order = order[: max(min(_CANDIDATES, _WORK // symbol.size), 1)]
    attempts = (_try_anchor(symbol, time, end, int(a), bool(liked[a])) for a in order)
    return _levels([one for one in attempts if one is not None], end - start)


def _levels(loops: list[Repeat], run: float) -> list[Repeat]:
    """One anchor for each loop, and only loops that fill much of the run or of an iteration around them."""

    def worth(one: Repeat) -> tuple[bool, bool, int, int, float]:
        return not one.named, not one.strong, one.grouped, -one.count, float(one.bounds[0])

    levels: list[Repeat] = []
    for one in sorted(loops, key=worth):
        if not any(_like(one, other) or _made_of(one, other) for other in levels):
            levels.append(one)
    levels.sort(key=lambda one: -one.period)
    nested: list[Repeat] = []
    for one in levels:
        around = next((o for o in reversed(nested) if _inside(one, o)), None)
        if around is None:
            fills = one.bounds[-1] - one.bounds[0] >= _FILLS * run
        else:
            least = _FILLS_INSIDE * float(around.bounds[-1] - around.bounds[0])
            fills = one.count >= _INSIDE * around.count and one.durations[one.usual].sum() >= least
        if fills:
            nested.append(one)
    return nested


def _overlap(one: Repeat, other: Repeat) -> float:
    """Overlap in time, as a part of the shorter loop."""
    both = min(one.bounds[-1], other.bounds[-1]) - max(one.bounds[0], other.bounds[0])
    least = min(one.bounds[-1] - one.bounds[0], other.bounds[-1] - other.bounds[0])
    return float(both / least)


def _like(one: Repeat, other: Repeat) -> bool:
    """Whether both are the same loop."""
    return abs(np.log(one.period / other.period)) < np.log(1.35) and _overlap(one, other) > 0.5


def _made_of(one: Repeat, other: Repeat) -> bool:
    """Whether iterations of `one` are only groups of several iterations of `other`, each with the same
    events, that were grouped for their different durations."""
    several = round(other.count / one.count)
    alike = one.grouped > 1 and other.strong and other.grouped == 1 and several > 1
    return alike and abs(other.count - several * one.count) <= 1 and _overlap(one, other) > 0.8


def _inside(one: Repeat, other: Repeat) -> bool:
    return one.period < other.period and _overlap(one, other) > 0.8


class Loop(NamedTuple):
    """A loop of the run. `place`: index of the location, of those examined, to whose symbols it refers; `by`:
    whether it was found by the events, by the curve, or by both."""

    repeat: Repeat
    place: int
    by: Literal["events", "curve", "both"]


class Verdict(NamedTuple):
    """The loops of a run, outermost first. `single`: some location has a loop, whether or not others agree;
    `doubted`: number of loops rejected as they are too uneven and the curve does not show them."""

    loops: tuple[Loop, ...]
    single: bool = False
    doubted: int = 0


def judge(by_location: Sequence[Sequence[Repeat]], curve: StepCurve) -> Verdict:
    """The accepted loops of those in the events of some locations (`in_events`); without any location, the
    loop of the curve alone."""
    if not by_location:
        alone = in_curve(curve)
        return Verdict(() if alone is None else (Loop(alone, 0, "curve"),))
    loops = []
    doubted = 0
    for place, one in agreed(by_location):
        like = likeness(curve, one.bounds)
        by_curve = like >= AGREES
        sure = one.agree >= _AGREE_ALONE and (one.strong or one.spread < EVEN)
        if by_curve or sure or one.named:
            loops.append(Loop(one.noted(likeness=like), place, "both" if by_curve else "events"))
        else:
            doubted += 1
    return Verdict(tuple(loops), any(by_location), doubted)


def agreed(by_location: Sequence[Sequence[Repeat]]) -> list[tuple[int, Repeat]]:
    """Loops that most of the examined locations have at about the same times, outermost first.

    Returns
    -------
    The index in `by_location` of the location whose anchor represents the loop, and the loop; its bounds are
    the means over the middle half of the locations that agree.
    """
    result: list[tuple[int, Repeat]] = []
    many = len(by_location)
    for place, levels in enumerate(by_location):
        for one in levels:
            if any(_like(one, other) for _, other in result):
                continue
            same = [o for o in (_matching(one, other) for other in by_location) if o is not None]
            if len(same) < max(_AGREE * many, min(2, many)):
                continue
            whole = one.noted(agree=len(same) / many)
            equal = [o.bounds for o in same if o.count == one.count]
            # The mean of the middle half: as robust as a median, with less variance.
            ordered = np.sort(equal, axis=0)[len(equal) // 4 : len(equal) - len(equal) // 4]
            bounds = ordered.mean(axis=0) if len(equal) > 1 else one.bounds
            durations = np.diff(bounds)
            if len(equal) > 1 and (durations > 0).all():
                whole = replace(whole, bounds=bounds, spread=_spread(durations[one.usual]))
            if _believed(whole) and not any(_like(whole, other) for _, other in result):
                result.append((place, whole))
    return sorted(result, key=lambda pair: -pair[1].period)


def _matching(one: Repeat, others: Sequence[Repeat]) -> Repeat | None:
    """The same loop as `one` at another location, with the loops `others`; None if it has none."""
    for other in others:
        if abs(one.count - other.count) > max(1, 0.02 * one.count):
            continue
        same = one.count == other.count and one.strong and other.strong
        # An iteration that is odd on one need not be odd on the other, so compare the total duration.
        a, b = ((x.bounds[-1] - x.bounds[0] if same else x.period) for x in (one, other))
        if abs(b / a - 1.0) > 0.1 or _overlap(one, other) < 0.5:
            continue
        at = np.searchsorted(other.bounds, one.bounds)
        near = np.stack([np.clip(at - 1, 0, other.count), np.clip(at, 0, other.count)])
        n = min(one.bounds.size, other.bounds.size)
        apart = (
            (other.bounds[:n] - one.bounds[:n])
            if one.count == other.count
            else np.min(np.abs(other.bounds[near] - one.bounds), axis=0)
        )
        apart = np.abs(apart - np.median(apart))
        # A location that waits for a slow neighbour lags behind for a while; the same events are enough then.
        # Neighbours in an exchange may be a whole iteration apart.
        limit = 2 * _APART if same else _APART
        if np.quantile(apart, 0.5 if one.strong and other.strong else 0.9) <= limit * one.period:
            return other
    return None


# --- in the curve ---


@arithmetic
def _means(edges: Floats, level: Floats, at: Floats, out: Floats) -> None:
    """Set `out` to the means of the curve between the times in each row of `at`, which do not decrease."""
    last = level.size - 1
    for row in range(at.shape[0]):
        j = min(max(place_in(edges, at[row, 0]) - 1, 0), last)
        before = min(max(at[row, 0], edges[0]), edges[-1])
        for i in range(out.shape[1]):
            total = 0.0
            stop = min(max(at[row, i + 1], edges[0]), edges[-1])
            while j < last and edges[j + 1] <= stop:
                total += level[j] * (edges[j + 1] - before)
                j += 1
                before = edges[j]
            total += level[j] * (stop - before)
            before = stop
            out[row, i] = total / max(at[row, i + 1] - at[row, i], 1e-300)


def means(curve: StepCurve, at: Floats) -> Floats:
    """(k, n-1) means of the curve between n increasing times (s) in each row of `at`."""
    out = np.empty((at.shape[0], at.shape[1] - 1))
    _means(curve.edges, curve.level, at / curve.unit, out)
    return out


def profiles(curve: StepCurve, begin: Floats, end: Floats, bins: int) -> Floats:
    """(k, bins) means of the curve in equal parts of each iteration."""
    return means(curve, begin[:, None] + (end - begin)[:, None] * (np.arange(bins + 1) / bins))


def _pairs(curve: StepCurve, bounds: Floats) -> Floats:
    """(k-1,) correlations of the curve in each iteration with that in the next one."""
    shape = profiles(curve, bounds[:-1], bounds[1:], _BINS)
    shape = shape - shape.mean(axis=1, keepdims=True)
    norm = np.sqrt((shape**2).sum(axis=1))
    products = (shape[1:] * shape[:-1]).sum(axis=1)
    return np.asarray(products / np.maximum(norm[1:] * norm[:-1], 1e-300))


def likeness(curve: StepCurve, bounds: Floats) -> float:
    """Mean correlation of the curve in each iteration with that in the next one."""
    pairs = _pairs(curve, _some(bounds, 512))
    return float(pairs.mean()) if pairs.size else 0.0


def _some(bounds: Floats, most: int) -> Floats:
    """The bounds of at most `most` iterations in the middle."""
    spare = max(bounds.size - 1 - most, 0)
    return bounds[spare // 2 : bounds.size - (spare - spare // 2)]


def in_curve(curve: StepCurve) -> Repeat | None:
    """The loop of a curve without events; None if it is not certain.

    Candidates come from the autocorrelation of exact means, from coarse to fine; then the periods are
    followed one by one, so that they may drift.
    """
    if curve.segments < 4 * LEAST:
        return None
    n = 1 << 15
    start, end = curve.span
    fine = means(curve, np.linspace(start, end, n + 1)[None])[0]
    if float(fine.std()) < 1e-9 * max(float(np.abs(fine).max()), 1e-300):
        return None
    best: Repeat | None = None
    for size in (256, 1024, 4096, n):
        x = fine.reshape(size, -1).mean(axis=1)
        for lag in (lag / part for lag in _peaks(x) for part in (6, 5, 4, 3, 2, 1)):
            bounds = _follow(fine, lag * n / size)
            if bounds is None:
                continue
            checked = _checked(curve, start + bounds * (end - start) / n)
            if checked is not None and (best is None or checked.likeness > best.likeness + 0.1):
                best = checked
        if best is not None:
            return best
    return None


def _peaks(x: Floats) -> list[int]:
    """Lags (bins) at which a signal resembles itself: the first three of those with about the best
    correlation."""
    n = x.size
    width = max(n // LEAST, 8)
    padded = np.concatenate([np.full(width, x[:width].mean()), x, np.full(width, x[-width:].mean())])
    sums = np.concatenate([[0.0], np.cumsum(padded)])
    x = x - (sums[2 * width : 2 * width + n] - sums[:n]) / (2 * width)  # slow changes are no period
    f = np.fft.rfft(x, 2 * n)
    r = np.fft.irfft(f * np.conj(f))[:n]
    squares = np.concatenate([[0.0], np.cumsum(x * x)])
    k = np.arange(n)
    r = r / np.sqrt(np.maximum(squares[n - k] * (squares[n] - squares[k]), 1e-300))
    most = n // LEAST + 1
    inner = r[1:most]
    top = np.flatnonzero((inner > r[: most - 1]) & (inner >= r[2 : most + 1])) + 1
    top = top[(top >= 8) & (r[top] > 0.3)]
    if not top.size:
        return []
    good = top[r[top] >= 0.85 * r[top].max()]
    return [int(lag) for lag in good[:3]]


def _follow(x: Floats, period: float) -> Floats | None:
    """Bounds of successive periods in bins, each where the next one resembles the last most; None if there
    are too few."""
    coarse = max(int(period / _FOLLOWED), 1)
    x = x[: x.size - x.size % coarse].reshape(-1, coarse).mean(axis=1)
    n = x.size
    p = round(period / coarse)
    if p < 8 or n // p < LEAST:
        return None
    at, bounds = 0, [0]
    slack = max(p // 12, 2)
    while at + 2 * p + slack <= n:
        this = x[at : at + p] - x[at : at + p].mean()
        norm = float(np.sqrt(this @ this))
        best, shift = -2.0, 0
        for s in range(-slack, slack + 1):
            ahead = x[at + p + s : at + 2 * p + s]
            ahead = ahead - ahead.mean()
            ahead_norm = float(np.sqrt(ahead @ ahead))
            c = float(this @ ahead) / (norm * ahead_norm) if norm * ahead_norm > 0 else 0.0
            if c > best + 1e-9 or (c > best - 1e-9 and abs(s) < abs(shift)):
                best, shift = c, s
        at += p + shift
        bounds.append(at)
    bounds.append(min(at + p, n))
    return np.array(bounds, float) * coarse


def _checked(curve: StepCurve, bounds: Floats) -> Repeat | None:
    """The loop with these bounds (s) if most periods resemble the next one, else None."""
    k = bounds.size - 1
    if k < LEAST + 1 or not (np.diff(bounds) > 0).all():
        return None
    pairs = _pairs(curve, bounds)
    low = float(np.quantile(pairs, 0.1))
    mean = float(pairs.mean())
    need = 0.75 if k >= 8 else 0.9
    if mean < need or low < need - 0.35:
        return None
    spread = _spread(np.diff(bounds))
    return Repeat(bounds, np.ones(k, bool), spread=spread, likeness=mean)


# --- what follows ---


class Fold(NamedTuple):
    """A typical iteration: `middle`, `low` and `high` are (bins,) medians and quantiles over `folded`
    iterations, in equal parts of `period` seconds; `of`: the quantity."""

    period: float
    middle: Floats
    low: Floats
    high: Floats
    folded: int
    quantile: float
    of: CurveQuantity = PROCESSORS

    def curve(self, capacity: float) -> StepCurve:
        """The median as a curve over [0, period], to which phases can be fitted."""
        edges = np.linspace(0.0, self.period, self.middle.size + 1)
        return StepCurve(edges, self.middle, capacity, quantity=self.of)


def fold(curve: StepCurve, loop: Repeat, quantile: float = 0.1, bins: int = 256) -> Fold:
    """The iterations of a loop, each scaled to the same length, and summarised.

    quantile : of the band's lower edge; its upper one is 1 - quantile.
    """
    selected, rows = laid(curve, loop, bins, _FOLDED)
    low, middle, high = np.quantile(rows, (quantile, 0.5, 1.0 - quantile), axis=0)
    return Fold(loop.period, middle, low, high, selected.size, quantile, curve.quantity)


def laid(curve: StepCurve, loop: Repeat, bins: int, most: int) -> tuple[Ints, Floats]:
    """Indices of at most `most` iterations, evenly chosen of the usual ones, (k,), and the curve's means in
    equal parts of each, (k, bins)."""
    selected = np.flatnonzero(loop.usual)
    if not selected.size:
        selected = np.arange(loop.count)
    if selected.size > most:
        selected = selected[np.linspace(0, selected.size - 1, most).astype(int)]
    return selected, profiles(curve, loop.bounds[selected], loop.bounds[selected + 1], bins)


def unfolded(loop: Repeat, times: Floats) -> Floats:
    """(k, n) times in the run of `times` (n,) in one iteration (seconds of the period)."""
    return loop.bounds[:-1, None] + loop.durations[:, None] * (times / loop.period)


def odd(loop: Repeat, structural: Flags | None = None) -> list[tuple[int, float]]:
    """Odd iterations, longer than their neighbours, the largest excess first: index, seconds too long.

    structural : (k,) those that an outer loop interrupts, which explains their duration; left out.
    """
    excess, strange = loop.excess
    if structural is not None:
        strange = strange & ~structural
    rows = np.flatnonzero(strange)
    return [(int(i), float(excess[i])) for i in rows[np.argsort(-excess[rows], kind="stable")]]


def interrupted(inner: Repeat, outer: Repeat) -> Flags:
    """(k,) iterations of the inner loop in which one of the outer loop ends."""
    return np.histogram(outer.bounds, inner.bounds)[0] > 0

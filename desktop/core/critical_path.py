"""The critical path of a run: the chain of work and messages that determined its duration; and slack.

Source: D. Böhme, F. Wolf, B. R. de Supinski, M. Schulz, M. Geimer, "Scalable critical-path based performance
analysis", IPDPS 2012, section III: backward in time from the end of the process that ended last; where the
process has waited, the path continues at the process it waited for, at the time when that one arrived. So
it contains no waiting, and is as long as the run. Its profile is of section IV there.

Slack is how much longer something could have taken without making the run longer, all else being equal: the
total float of the critical path method (J. E. Kelley, "Critical-path planning and scheduling: mathematical
basis", Operations Research 9, 1961), for programs B. P. Miller and J. K. Hollingsworth, "Slack: a new
performance metric for parallel programs", 1994. It is 0 on the critical path. Elsewhere, a delay is absorbed
by later waiting of the same location, and by messages that lie until they are received.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from desktop.core.arrays import AnyArray, Floats, Ints
from desktop.core.delay_costs import WaitStates, backward
from desktop.core.jit import kernel


class CriticalPath(NamedTuple):
    """The segments of a critical path in order of time, (n,) each: location, begin and end in ticks. Each
    begins when the one before ends; where the location changes, the new one waited for the old one."""

    location: Ints
    begin: Ints
    end: Ints


def critical_path(waits: WaitStates, start: int, ends: Ints) -> CriticalPath:
    """The critical path of a run from tick `start` to the `ends` (p,) of locations. Linear in waits."""
    if not ends.size:
        return CriticalPath(*np.zeros((3, 0), np.int64))
    _, rank = backward(waits, ends.size)
    first = np.searchsorted(waits.location, np.arange(ends.size + 1))
    out = np.empty((3, waits.location.size + 1), np.int64)
    n = walk_back(first, waits.partner, waits.end, rank, start, int(ends.argmax()), int(ends.max()), out)
    return CriticalPath(*out[:, :n][:, ::-1])


class PathLine(NamedTuple):
    """A critical path to be drawn: location (n,), begin and end (n,) in seconds, in order of time."""

    location: Ints
    begin: Floats
    end: Floats

    def lines(self, row: Floats, a: float, b: float, columns: int) -> tuple[Floats, bool]:
        """The path between the times `a` and `b` (s) as lines to draw in `columns` columns of pixels.

        row : (p,) where each location is drawn, NaN where it is not.

        Returns
        -------
        Lines (k, 4): time and row, to time and row. If there are more than two segments a column, they are
        condensed: one line a column from the highest to the lowest row of the path. And whether they are.
        """
        first = int(np.searchsorted(self.end, a, side="right"))
        last = int(np.searchsorted(self.begin, b))
        if last <= first:
            return np.empty((0, 4)), False
        begin, end, rows = self.begin[first:last], self.end[first:last], row[self.location[first:last]]
        if last - first <= 2 * columns:
            along = np.stack([np.maximum(begin, a), rows, np.minimum(end, b), rows], axis=1)
            over = np.stack([begin[1:], rows[:-1], begin[1:], rows[1:]], axis=1)
            segments = np.concatenate([along, over])
            return segments[np.isfinite(segments).all(axis=1)], False
        edges = np.linspace(a, b, columns + 1)
        low = np.searchsorted(end, edges[:-1], side="right")
        high = np.searchsorted(begin, edges[1:])
        covered = low < high
        ends = np.stack([low[covered], high[covered]], axis=1).ravel()
        top, bottom = (
            least(np.append(np.where(np.isfinite(rows), rows, none), none), ends)[::2]
            for least, none in ((np.minimum.reduceat, np.inf), (np.maximum.reduceat, -np.inf))
        )
        middle = 0.5 * (edges[:-1] + edges[1:])[covered]
        segments = np.stack([middle, top, middle, bottom], axis=1)
        return segments[top <= bottom], True


@kernel
def walk_back(
    first: Ints, partner: Ints, end: Ints, rank: Ints, start: int, location: int, time: int, out: Ints
) -> int:
    """Set `out` (3, n) to the segments from the last to the first; returns their number."""
    n = 0
    now = -1
    while True:
        a = first[location]
        j = a + np.searchsorted(end[a : first[location + 1]], time, side="right") - 1
        while j >= a and (partner[j] < 0 or rank[j] <= now):
            j -= 1
        begin = end[j] if j >= a else min(start, time)
        if begin < time or j < a:
            out[0, n], out[1, n], out[2, n] = location, begin, time
            n += 1
        if j < a:
            return n
        time, now = end[j], rank[j]
        location = partner[j]


@kernel
def float_of(
    time: Ints, first: Ints, wait: AnyArray, since: Ints, start: AnyArray, source: AnyArray, spare: Ints
) -> int:
    """Slack of every node of the event graph of a run, computed backward along its dependences.

    Parameters
    ----------
    time, wait : (n,) ticks of each node, by location and order; which wait ends there, -1: none.
    since : (waits,) when each began.
    first : (p + 1,) index of the first of each location; nodes after the last index have no location.
    start, source : (n + 1,) and (edges,): the nodes on which each one depends, besides the one before it.
    spare : (n,) slack, result; on entry that of the last node of each location, `UNKNOWN` for others.

    Returns
    -------
    Number of nodes in a dependence cycle, or with one depending on them; their slack is `UNKNOWN`.
    """
    n = time.size
    behind = np.zeros(n, np.int32)  # number of unfinished nodes that depend on each
    follows = np.zeros(n, np.bool_)
    for p in range(first.size - 1):
        for i in range(first[p] + 1, first[p + 1]):
            follows[i] = True
            behind[i - 1] += 1
    for i in range(source.size):
        behind[source[i]] += 1
    ready = np.empty(n, np.int32)
    count = done = 0
    for i in range(n):
        if behind[i] == 0:
            ready[count] = i
            count += 1
    while count:
        count -= 1
        i = ready[count]
        done += 1
        if follows[i]:
            j = i - 1
            gained = 0
            if wait[i] >= 0:
                gained = max(0, time[i] - max(since[wait[i]], time[j]))
            spare[j] = min(spare[j], added(spare[i], gained))
            behind[j] -= 1
            if behind[j] == 0:
                ready[count] = j
                count += 1
        for k in range(start[i], start[i + 1]):
            j = source[k]
            spare[j] = min(spare[j], added(spare[i], max(0, time[i] - time[j])))
            behind[j] -= 1
            if behind[j] == 0:
                ready[count] = j
                count += 1
    if done < n:
        for i in range(n):
            if behind[i] > 0:
                spare[i] = UNKNOWN
    return n - done


#: Slack that is not known, or not limited.
UNKNOWN = np.iinfo(np.int64).max


@kernel
def added(spare: int, more: int) -> int:
    """The sum of a slack and `more`, limited to `UNKNOWN`."""
    return UNKNOWN if spare > UNKNOWN - more else spare + more


@kernel
def along(
    location: Ints, begin: Ints, end: Ints, first: Ints, since: Ints, until: Ints, region: AnyArray, a: int,
    b: int, places: Floats, regions: Floats,
) -> None:  # fmt: skip
    """Add to `places` (p,) and `regions` (regions,) the ticks from `a` to `b` of a path (n,) by location and
    region; `first` to `region` as of `desktop.core.delay_costs.Segments`."""
    for k in range(np.searchsorted(end, a, side="right"), begin.size):
        if begin[k] >= b:
            break
        p, low, high = location[k], max(begin[k], a), min(end[k], b)
        places[p] += high - low
        last = first[p + 1] - 1
        i = first[p] + np.searchsorted(until[first[p] : last], low, side="right")
        while i < last and since[i] < high:
            regions[region[i]] += min(until[i], high) - max(since[i], low)
            i += 1


@kernel
def least_float(
    first: Ints, since: Ints, until: Ints, region: AnyArray, wait: AnyArray, first_stretch: Ints, end: Ints,
    spare: Ints, a: int, b: int, places: Ints, regions: Ints,
) -> None:  # fmt: skip
    """Lower `places` (p,) and `regions` (regions,) to the least slack of segments that are no waiting from
    tick `a` to `b`. Segments as in `along`; stretches (n,) and their slack as of `float_of`."""
    for p in range(places.size):
        last = first[p + 1] - 1
        i = first[p] + np.searchsorted(until[first[p] : last], a, side="right")
        j = first_stretch[p]
        while i < last and since[i] < b:
            while j < first_stretch[p + 1] - 1 and end[j] < until[i]:
                j += 1
            if wait[i] < 0 and j < first_stretch[p + 1]:
                places[p] = min(places[p], spare[j])
                regions[region[i]] = min(regions[region[i]], spare[j])
            i += 1


@kernel
def running_latest(key: AnyArray, time: Ints) -> Ints:
    """(n,) running maximum of `time` (n,) within consecutive rows of the same key."""
    latest = time.copy()
    for i in range(1, time.size):
        if key[i] == key[i - 1]:
            latest[i] = max(latest[i], latest[i - 1])
    return latest

"""The forest of waiting locations at each instant; waiting is charged to its roots, which do not wait.

At an instant every waiting location has one partner, so the locations are a forest whose roots do not wait.
The activity of a root is the cause of the waiting of all below it, instant by instant. (Scalasca's delay
costs distribute whole waits instead: Böhme, Geimer, Wolf, Arnold, "Identifying the root causes of wait states
in large-scale parallel applications", 2010.) Two passes: `hang` goes through all waits in order of time and
records how many wait below each location whenever that changes while it is a root; `charge` goes through the
activities of one location and adds up the time of those below.

The locations below one are counted by the kind of wait (family, see `FAMILIES`) of its direct partners: those
that wait for it directly, and those that wait for these: columns ``2 * family`` and ``2 * family + 1``.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from desktop.core.arrays import AnyArray, Flags, Ints
from desktop.core.jit import kernel

Indices: TypeAlias = NDArray[np.int32]

#: Waiting for the sender of a message, whose location is before one's own, or after it; for a receiver; for
#: all at a barrier; for others in another collective operation; for its root.
FAMILIES = ("sender before", "sender after", "receiver", "barrier", "together", "root")
COLUMNS = 2 * len(FAMILIES)
_ROWS = 1 << 16


def who_hangs(
    begin: Ints, end: Ints, who: AnyArray, partner: AnyArray, family: AnyArray, locations: int
) -> tuple[Ints, Indices, Indices, Indices, Flags]:
    """Numbers of waiting locations below each one: time, location, column, and the number from then on,
    (rows,) each, by location and time; and which waits (waits,) are left out, as their partner is not known
    (-1) or they are in a cycle, which contradicting clocks cause.

    begin, end, who, partner, family : (waits,) of each wait; those of a location do not overlap.
    """
    # At one time ends come before begins.
    order = np.argsort(np.concatenate([end, begin]), kind="stable")
    parent, link = np.full(locations, -1, np.int64), np.zeros(locations, np.int64)
    below, last = np.zeros((2, locations, COLUMNS), np.int32)
    left_out = partner < 0
    times, rest = [np.zeros(0, np.int64)], [np.zeros((3, 0), np.int32)]
    at = 0
    while at < order.size:
        time, out = np.empty(_ROWS, np.int64), np.empty((3, _ROWS), np.int32)
        rows, at = hang(
            order, at, begin, end, who, partner, family, parent, link, below, last, left_out, time, out
        )
        times.append(time[:rows].copy())
        rest.append(out[:, :rows].copy())
    del order
    out = np.concatenate(rest, axis=1)
    rest.clear()
    by_place = np.argsort(out[0], kind="stable")
    location, column, number = out[:, by_place]
    return np.concatenate(times)[by_place], location, column, number, left_out


@kernel
def hang(
    order: Ints, at: int, begin: Ints, end: Ints, who: AnyArray, partner: AnyArray, family: AnyArray,
    parent: Ints, link: Ints, below: AnyArray, last: AnyArray, left_out: Flags, times: Ints, out: AnyArray,
) -> tuple[int, int]:  # fmt: skip
    """Go on from row `at` of `order` (ends of the waits, then their begins) while `times` (rows,) and `out`
    (3, rows) have room; returns the rows written and the next `at`. parent, link (locations,): the partner
    of each, and the family of the wait; below, last (locations, COLUMNS): current numbers, and those written
    last."""
    rows = 0
    waits = begin.size
    columns = below.shape[1]
    while at < order.size and rows + 2 * columns <= out.shape[1]:
        ends = order[at] < waits
        wait = order[at] if ends else order[at] - waits
        time = end[wait] if ends else begin[wait]
        node = np.int64(who[wait])
        at += 1
        if left_out[wait]:
            continue
        if not ends:
            top = partner[wait]
            while parent[top] >= 0:
                top = parent[top]
            if top == node:
                left_out[wait] = True
                continue
            parent[node] = partner[wait]
            link[node] = family[wait]
        size = 1
        for column in range(columns):
            size += below[node, column]
        sign = -1 if ends else 1
        child = node
        above = parent[node]
        below[above, 2 * link[node]] += sign
        below[above, 2 * link[node] + 1] += sign * (size - 1)
        while parent[above] >= 0:
            child = above
            above = parent[above]
            below[above, 2 * link[child] + 1] += sign * size
        if ends:
            parent[node] = -1
        for one in (above, node):
            if parent[one] >= 0:
                continue
            for column in range(columns):
                if below[one, column] != last[one, column]:
                    times[rows] = time
                    out[0, rows] = one
                    out[1, rows] = column
                    out[2, rows] = below[one, column]
                    last[one, column] = below[one, column]
                    rows += 1
    return rows, at


@kernel
def charge(
    begin: Ints, end: Ints, state: Ints, cuts: Ints, time: Ints, column: AnyArray, number: AnyArray,
    out: Ints, seen: Ints,
) -> None:  # fmt: skip
    """Add up the costs of one location, by time segment and activity.

    begin, end, state : (intervals,) its activities, in order and without overlap; -1: it waits itself.
    cuts : (segments + 1,) ascending. time, column, number : (rows,) from `who_hangs`.
    out : (segments, states, 1 + COLUMNS) ticks of its own, and of those below it. seen : (segments, states)
        number of intervals with a location below it.
    """
    now = np.zeros(out.shape[2] - 1, np.int64)
    row = 0
    segment = 0
    for i in range(begin.size):
        at = begin[i]
        doing = state[i]
        counted = False
        while at < end[i]:
            while row < time.size and time[row] <= at:
                now[column[row]] = number[row]
                row += 1
            until = end[i]
            if row < time.size and time[row] < until:
                until = time[row]
            if doing < 0 or until <= cuts[0] or at >= cuts[cuts.size - 1]:
                at = until
                continue
            at = max(at, cuts[0])
            while cuts[segment + 1] <= at:
                segment += 1
            until = min(until, cuts[segment + 1])
            out[segment, doing, 0] += until - at
            for k in range(now.size):
                out[segment, doing, k + 1] += now[k] * (until - at)
                if now[k] and not counted:
                    seen[segment, doing] += 1
                    counted = True
            at = until

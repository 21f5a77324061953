"""Corrections of clocks: shifts that satisfy the bounds between them.

Two events on processes s and r, the one of which cannot be later than the other, bound the unknown
corrections: ``d_s - d_r <= B[s, r]``. Shifts that satisfy all such bounds exist if and only if their graph
has no negative cycle, and shortest paths give the interval of every one (Cormen et al., Introduction to
Algorithms, "Difference constraints and shortest paths").

Of all feasible shifts, the smallest are taken: the least sum of squares. If the clocks are wrong by constants
at all, the truth is feasible, and that point is no farther from it than the recorded clocks, neither in the
root mean square (a projection onto a convex set moves towards all of its points) nor in the maximum: bounds
of differences are a lattice, so the projection preserves order and constants (D. M. Topkis, Oper. Res. 26,
1978), and such a map moves no two points apart (M. G. Crandall, L. Tartar, Proc. AMS 78, 1980). The middle
of the feasible set has no such guarantee; it is taken where it cannot be farther from the truth than the
recorded clocks, wherever the truth lies.

`desktop.core.clock_rates` does the same for lines, a shift and a rate for each process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from desktop.core.arrays import Flags, Floats, Ints
from desktop.core.jit import arithmetic, kernel

DENSE = 1024  # up to so many processes the bounds are a matrix
INFINITE = 1 << 62
#: Largest number of sweeps of a projection; remaining violations are then removed exactly.
_SWEEPS = 400


@dataclass(frozen=True, eq=False)
class Shifts:
    """Shifts that satisfy all bounds. `least`: the smallest; `middle`: the midpoints (n,), ticks.
    `low`, `high`: (n,) ticks, the interval of each relative to the first process, infinite where they are not
    bound. `forced`: ticks that at least two processes must be moved apart, wherever the truth lies.
    `middle_is_safe`: it is no farther from the truth than no shift at all."""

    least: Ints
    middle: Ints
    low: Floats
    high: Floats
    forced: int
    middle_is_safe: bool


class Bounds:
    """The constraints d_s - d_r <= B[s, r] between `n` processes."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.nodes = n  # beyond n: those of collectives, if there are too many processes for a matrix
        self.matrix = np.full((n, n), INFINITE, np.int64) if n <= DENSE else None
        self.edges: list[Ints] = [np.empty((3, 0), np.int64)]

    def add_messages(self, sender: Ints, receiver: Ints, travel: Ints) -> None:
        """Add messages (n,) that take ticks `travel` by the recorded clocks."""
        if self.matrix is not None:
            lower(self.matrix, sender, receiver, travel)
            return
        order = np.lexsort((receiver, sender))
        sender, receiver, travel = sender[order], receiver[order], travel[order]
        new = np.flatnonzero(np.r_[sender.size > 0, (np.diff(sender) != 0) | (np.diff(receiver) != 0)])
        if new.size:
            self.edges.append(np.stack([sender[new], receiver[new], np.minimum.reduceat(travel, new)]))

    def add_collectives(self, held: Held) -> None:
        if self.matrix is not None:
            lower_by_collectives(self.matrix, held)
            return
        # begin_s + d_s <= x <= end_r + d_r: with x, the instant of the operation, as a node of its own
        # an instance of p members needs 2p edges instead of p * p; ordered ones need a node for each member.
        members = np.diff(held.start)
        ordered = np.repeat(held.ordered, members)
        instance = np.repeat(np.arange(members.size), members)
        nodes = np.cumsum(np.where(held.ordered, members, 1))
        x = self.nodes + np.r_[0, nodes][instance]
        x += np.where(ordered, np.arange(held.begin.size) - np.repeat(held.start[:-1], members), 0)
        self.nodes += int(nodes[-1]) if nodes.size else 0
        first = np.zeros(ordered.size, bool)
        first[held.start[:-1]] = True
        after = x - (ordered & ~first)  # the first in order does not wait
        source, target = held.source, held.target & ~(ordered & first)
        chain = ordered & ~first
        self.edges += [
            np.stack([held.process[source], x[source], -held.begin[source]]),
            np.stack([after[target], held.process[target], held.end[target]]),
            np.stack([after[chain], x[chain], np.zeros(int(chain.sum()), np.int64)]),
        ]

    def solve(self) -> Shifts | None:
        """Shifts that satisfy all bounds; None if there are none."""
        if not self.n:
            return Shifts(*(np.empty(0, np.int64),) * 2, *(np.empty(0),) * 2, 0, True)
        relax: Callable[[Ints, bool], Ints | None]
        closed = self.matrix
        if closed is not None:
            np.fill_diagonal(closed, 0)
            close(closed)
            if (np.diag(closed) < 0).any():
                return None

            def relax(labels: Ints, reverse: bool) -> Ints | None:
                return nearest(np.ascontiguousarray(closed.T) if reverse else closed, labels)

        else:
            edges = np.concatenate(self.edges, axis=1)
            edges = edges[:, np.lexsort((edges[0], edges[1]))]
            r, s, weight = (np.ascontiguousarray(column) for column in edges)

            def relax(labels: Ints, reverse: bool) -> Ints | None:
                relaxed = labels.copy()
                ends = (s, r) if reverse else (r, s)
                rooted = bool(labels[1:].min(initial=INFINITE) == INFINITE)
                return relaxed if bellman_ford(*ends, weight, relaxed, rooted) else None

        first = np.where(np.arange(self.nodes) == 0, 0, INFINITE)
        above, below = relax(first, False), relax(first, True)  # d_r <= above, d_r >= -below
        if above is None or below is None or above[0] < 0 or below[0] < 0:
            return None
        high, low = above < INFINITE, below < INFINITE
        n = self.n
        zero = np.where(np.arange(self.nodes) < n, 0, INFINITE)
        # The largest feasible shifts below 0 and the smallest above it.
        down, up = relax(zero, False), relax(zero, True)
        if down is None or up is None:
            return None
        if closed is None:
            # Their mean preserves order and constants too; least squares would need all pairs.
            least = (down[:n] - up[:n]) // 2
            # The mean of two solutions, rounded alike, is a solution.
            forced = int(max((-down[:n]).max(), (-up[:n]).max(), 0))
            middle, safe = least, False
        else:
            near = np.rint(project(closed, _SWEEPS)).astype(np.int64) if down.min() < 0 else zero
            least = nearest(closed, near)
            forced = -int(closed.min())
            middle, safe = least, False
            if (high & low).all():
                middle = (above - below) // 2  # rounded alike, differences keep their bounds
                safe = is_safe(closed, least, middle)
        return Shifts(
            least,
            middle,
            np.where(low, -below.astype(np.float64), -np.inf)[:n],
            np.where(high, above.astype(np.float64), np.inf)[:n],
            forced,
            safe,
        )


def is_safe(closed: Ints, least: Ints, middle: Ints) -> bool:
    """Whether `middle` is no farther from any feasible shifts than no shift at all, in root mean square and
    maximum, and most processes have to move farther than its possible error. `closed`: as from `close`."""
    apart = (middle[:, None] - middle[None, :]).astype(np.float64)
    off = np.maximum(closed - apart, closed.T + apart)  # (n, n) possible error of the difference of two
    moved = np.abs(least - np.median(least))
    return bool(
        off.max() <= -closed.min()
        and np.sqrt((off**2).sum(axis=0).min()) <= np.linalg.norm(least - least.mean())
        and np.median(off.min(axis=1, where=~np.eye(len(off), dtype=bool), initial=np.inf))
        <= np.median(moved)
    )


class Held(NamedTuple):
    """Operations: the i-th has the rows start[i] to start[i + 1]. No `target` can have left (`end`) before
    each `source` has entered (`begin`); where `ordered` (instances,), only before sources of earlier rows."""

    start: Ints
    process: Ints
    begin: Ints
    end: Ints
    source: Flags
    target: Flags
    ordered: Flags

    def only(self, keep: Flags) -> Held:
        """The instances where `keep` (instances,) is true."""
        members = np.diff(self.start)
        rows = np.repeat(keep, members)
        columns = [column[rows] for column in self[1:-1]]
        return Held._make([np.r_[0, np.cumsum(members[keep])], *columns, self.ordered[keep]])


@arithmetic
def lower(bounds: Ints, r: Ints, s: Ints, weight: Ints) -> None:
    """Lower `bounds` (processes, processes) by messages (n,) from r to s, which bound d_r - d_s."""
    for i in range(r.size):
        if r[i] != s[i] and weight[i] < bounds[r[i], s[i]]:
            bounds[r[i], s[i]] = weight[i]


@kernel
def lower_by_collectives(bounds: Ints, held: Held) -> None:
    start, process, begin, end, source, target, ordered = held
    for i in range(start.size - 1):
        for a in range(start[i], start[i + 1]):
            if not source[a]:
                continue
            r, own_begin = process[a], begin[a]
            for b in range(a + 1 if ordered[i] else start[i], start[i + 1]):
                s = process[b]
                if target[b] and r != s and end[b] - own_begin < bounds[r, s]:
                    bounds[r, s] = end[b] - own_begin


@kernel
def late_sources(held: Held, late: Ints) -> None:
    """Set `late` (instances,) to the ticks by which the latest source of each instance enters after a target
    that waits for it has left; 0 if none does. Sources of the target's own process do not count."""
    start, process, begin, end, source, target, ordered = held
    for i in range(start.size - 1):
        worst = 0
        a, b = start[i], start[i + 1]
        for turn in range(1 if ordered[i] else 2):
            who, latest, other = -1, -INFINITE, -INFINITE  # the latest source, and that of another process
            for k in range(b - a):
                row = b - 1 - k if turn else a + k
                if target[row]:
                    before = other if process[row] == who else latest
                    if before > -INFINITE:
                        worst = max(worst, before - end[row])
                if source[row]:
                    if process[row] == who:
                        latest = max(latest, begin[row])
                    elif begin[row] > latest:
                        who, latest, other = process[row], begin[row], latest
                    else:
                        other = max(other, begin[row])
        late[i] = worst


@arithmetic
def close(bounds: Ints) -> None:
    """Floyd-Warshall: tighten `bounds` to the tightest that follow from all together."""
    n = bounds.shape[0]
    for k in range(n):
        for r in range(n):
            first = bounds[r, k]
            if first < INFINITE:
                for s in range(n):
                    if bounds[k, s] < INFINITE and first + bounds[k, s] < bounds[r, s]:
                        bounds[r, s] = first + bounds[k, s]


def nearest(closed: Ints, labels: Ints) -> Ints:
    """(n,) min over s of closed[r, s] + labels[s]."""
    lowered = np.full(labels.size, INFINITE, np.int64)
    lower_to(closed, labels, lowered)
    return lowered


@arithmetic
def lower_to(closed: Ints, labels: Ints, lowered: Ints) -> None:
    """Lower `lowered` (n,) to at most closed[r, s] + labels[s]."""
    for r in range(labels.size):
        for s in range(labels.size):
            if closed[r, s] < INFINITE and labels[s] < INFINITE:
                lowered[r] = min(lowered[r], closed[r, s] + labels[s])


@kernel
def project(closed: Ints, sweeps: int) -> Floats:
    """The shifts (n,) of least squares that satisfy closed bounds, approximately (C. Hildreth, Naval Res.
    Logist. Q. 4, 1957)."""
    n = closed.shape[0]
    shift = np.zeros(n)
    pull = np.zeros((n, n))
    for _ in range(sweeps):
        most = 0.0
        for r in range(n):
            for s in range(n):
                if closed[r, s] < INFINITE and r != s:
                    change = max((shift[r] - shift[s] - closed[r, s]) / 2, -pull[r, s])
                    if change != 0.0:
                        pull[r, s] += change
                        shift[r] -= change
                        shift[s] += change
                        most = max(most, abs(change))
        if most < 0.25:
            break
    return shift


@kernel
def bellman_ford(r: Ints, s: Ints, weight: Ints, labels: Ints, rooted: bool) -> bool:
    """Lower labels[r] to labels[s] + weight until nothing changes; False on a negative cycle. `rooted`: only
    the first label is set, to 0.

    Every second pass goes backwards (Yen 1970), so that chains of neighbours need few passes instead of one
    for each process.
    """
    for turn in range(labels.size):
        changed = False
        for i in range(r.size):
            e = i if turn % 2 == 0 else r.size - 1 - i
            if labels[s[e]] < INFINITE and labels[s[e]] + weight[e] < labels[r[e]]:
                labels[r[e]] = labels[s[e]] + weight[e]
                changed = True
        if not changed:
            return True
        if rooted and labels[0] < 0:
            return False  # the first process would have to be earlier than itself
    return False

"""A run replayed on a modelled machine: its duration, and the times of its operations there.

Between operations every location is busy for a given time (`Schedule.gap`); at an operation it waits for
what that needs: a receive for its message, an n-to-n collective for all arrivals, a one-to-all for its root,
the root of an all-to-one for all others, a scan for those before it in order.

The network is the linear model of Dimemas (Badia, Labarta, Gimenez, Escale: "Dimemas: Predicting MPI
Applications Behaviour in Grid Environments", 2003; its source where the paper leaves something open):

* a message arrives its bytes over the bandwidth after it was sent;
* the latency is processor time: of the sender before it sends, of the receiver when it posts its receive;
* a message above the eager limit is sent when its receive has been posted, and a blocking sender goes on when
  it has arrived (rendezvous; in Dimemas when it departs, though its buffer is still in use then);
* at most `buses` messages are under way, further ones wait in the order in which they are ready;
* a collective costs `collective_cost`, and uses no buses.

Without latency, at infinite bandwidth, this is the ideal network by which the POP Centre of Excellence
defines the transfer efficiency. Times are ticks as float64: whole ticks below 2**53 are exact, and without
buses more latency or less bandwidth never makes a time smaller, not even by rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from desktop.core.arrays import AnyArray, Bytes, Flags, Floats, Ints
from desktop.core.jit import arithmetic, inlined, kernel
from desktop.progress import Progress

#: Kinds of operations. `MARK`: a position whose time is wanted; `POST`: a receive that is posted before it
#: completes; `COMPLETE`: the completion of a send that does not block.
SEND, RECEIVE, N_TO_N, ONE_TO_ALL, ALL_TO_ONE, PREFIX, MARK, POST, COMPLETE = range(9)

#: How the sender of a message goes on: at once, when the receive is posted and the message has arrived, or
#: at once while the message waits for the receive to be posted (its `COMPLETE` waits).
EAGER, BLOCKING, DEFERRED = range(3)

#: Duration that `replay` returns if no location can go on (a deadlock).
STUCK = -1.0

#: Operations between two steps of progress.
STRIDE = 1 << 20

_ELSEWHERE = -np.inf  # time of operations outside of the replay: already sent, already posted


@dataclass(frozen=True)
class Machine:
    """A network.

    latency_s : seconds of a processor to send or receive a message; bandwidth : bytes per second; eager :
    largest message (bytes) that is sent before its receive is posted (larger ones use rendezvous); buses :
    messages that can be under way at a time, 0 for any number.

    Raises
    ------
    ValueError : a negative latency, eager limit or number of buses, or a bandwidth that is not above 0.
    """

    latency_s: float = 0.0
    bandwidth: float = math.inf
    eager: float = math.inf
    buses: int = 0

    def __post_init__(self) -> None:
        if not (self.latency_s >= 0 and math.isfinite(self.latency_s)):
            raise ValueError(f"a latency of {self.latency_s:g} s is not possible, it must be 0 or more")
        if not self.bandwidth > 0:
            raise ValueError(f"a bandwidth of {self.bandwidth:g} B/s is not possible, it must be above 0")
        if not self.eager >= 0:
            raise ValueError(f"an eager limit of {self.eager:g} B is not possible, it must be 0 or more")
        if self.buses < 0:
            raise ValueError(f"{self.buses} buses are not possible, 0 stands for any number")


#: No latency, infinite bandwidth, no eager limit, any number of buses.
IDEAL = Machine()


class Schedule(NamedTuple):
    """The operations of p locations, n in all.

    first, last : (p,) the operations of each location; those of different ones do not overlap.
    kind, key : (n,) of each; number of its message or of its collective (of a mark: any).
    gap : (n,) ticks between the previous operation and this one.
    extra : (n,) ticks that it takes once all it waits for is there.
    free : (n,) whether it waits for nothing.
    begin, tail : (p,) begin of each location, and ticks after its last operation.
    """

    first: Ints
    last: Ints
    kind: Bytes
    key: NDArray[np.int32]
    gap: Floats
    extra: Floats
    free: Flags
    begin: Floats
    tail: Floats


class Network(NamedTuple):
    """receiver, transfer, manner : (messages,) location, ticks under way, and one of `EAGER` ... `DEFERRED`.
    root, cost : (collectives,) location or -1, and ticks; latency : ticks; buses : as in `Machine`."""

    receiver: NDArray[np.int32]
    transfer: Floats
    manner: Bytes
    root: Ints
    cost: Floats
    latency: float = 0.0
    buses: int = 0


class Replay(NamedTuple):
    """duration : ticks until the last location has ended, or `STUCK`. went : (n,) end of each operation
    (empty if not wanted); ends : (p,) end of each location."""

    duration: float
    went: Floats
    ends: Floats


def collective_cost(members: Ints, sent: Ints, received: Ints, latency: float, per_byte: float) -> Floats:
    """Ticks of collective operations: sent data go up a binary tree of the members, received data come down
    one, with a latency and a transfer on each level (the LOG model of Dimemas)."""
    levels = np.ceil(np.log2(np.maximum(members, 1)))
    return np.asarray(levels * (2 * latency + (sent + received) * per_byte))


def replay(
    operations: Schedule, network: Network, progress: Progress | None = None, times: bool = True
) -> Replay:
    """Replay operations on a network, in time proportional to their number (with buses: times log p).
    `times`: whether the end of every operation is wanted."""
    progress = progress or Progress()
    p, n = operations.first.size, operations.kind.size
    messages, collectives = network.receiver.size, network.root.size
    went, came = np.full(n if times else 0, np.nan), np.zeros(p)
    arrival, posted = np.full(messages, _ELSEWHERE), np.full(messages, _ELSEWHERE)
    members, arrived = np.zeros(collectives, np.int64), np.zeros(collectives, np.int64)
    root_here = np.zeros(collectives, np.bool_)
    scan = np.full(collectives, -1, np.int64)
    scanned = prepare(*operations[:4], network.root, arrival, posted, members, root_here, scan)
    who, reached = np.full(scanned, -1, np.int64), np.full(scanned, np.nan)
    order_scans(*operations[:4], scan, np.zeros(collectives, np.int64), who)
    clock = operations.begin.astype(np.float64)
    # the stack of locations that can go on, or with buses a heap, and its size in state[0]
    keys, ready = np.zeros(p + 1), np.arange(p - 1, -1, -1)
    ready = np.append(ready, 0)
    state = np.array([p, 0], np.int64)
    if network.buses:
        state[0] = 0
        fill_heap(*operations[:5], network.latency, clock, posted, keys, ready, state)
    at = operations.first.copy()
    inside = np.zeros(p, np.bool_)  # the location has reached its operation and waits in it
    awaited = np.full(p, -1, np.int64)  # the message that it waits for
    # For messages that wait for their receives: the sender that waits for each, and when it was ready.
    waiting = messages if network.manner.any() else 0
    blocked, requested = np.full(waiting, -1, np.int64), np.full(waiting, np.nan)
    queue, behind = np.full(collectives, -1, np.int64), np.full(p, -1, np.int64)
    latest, root_came = np.full(collectives, -np.inf), np.zeros(collectives, np.bool_)
    front = np.zeros(collectives, np.int64)
    buses = np.zeros(network.buses)
    while advance(
        *operations, *network, STRIDE, came, went, arrival, posted, requested, members, arrived, root_here,
        scan, who, reached, clock, keys, ready, state, at, inside, awaited, blocked, queue, behind, latest,
        root_came, front, buses,
    ):  # fmt: skip
        progress.step(int(state[1]), n, "replay")
    if (at < operations.last).any():
        return Replay(STUCK, went, clock)
    ends = clock + operations.tail
    return Replay(float(ends.max(initial=0.0)), went, ends)


@kernel
def prepare(
    first: Ints, last: Ints, kind: Bytes, key: AnyArray, root: Ints, arrival: Floats, posted: Floats,
    members: Ints, root_here: Flags, scan: Ints,
) -> int:  # fmt: skip
    """Mark what is in the replay: sends and receives of messages (NaN: not yet), members of collectives, and
    where the members of each scan begin; returns the number of members of all scans."""
    for p in range(first.size):
        for i in range(first[p], last[p]):
            number = key[i]
            if kind[i] == SEND:
                arrival[number] = np.nan
            elif kind[i] == RECEIVE or kind[i] == POST:
                posted[number] = np.nan
            elif kind[i] < MARK:
                members[number] += 1
                if root[number] == p:
                    root_here[number] = True
                if kind[i] == PREFIX:
                    scan[number] = 0
    scanned = 0
    for number in range(root.size):
        if scan[number] == 0:
            scan[number] = scanned
            scanned += members[number]
    return scanned


@kernel
def order_scans(
    first: Ints, last: Ints, kind: Bytes, key: AnyArray, scan: Ints, filled: Ints, who: Ints
) -> None:
    """Set `who` to the members of each scan, in order of their locations."""
    for p in range(first.size):
        for i in range(first[p], last[p]):
            if kind[i] == PREFIX:
                who[scan[key[i]] + filled[key[i]]] = p
                filled[key[i]] += 1


@kernel
def fill_heap(
    first: Ints, last: Ints, kind: Bytes, key: AnyArray, gap: Floats, latency: float, clock: Floats,
    posted: Floats, keys: Floats, ready: Ints, state: Ints,
) -> None:  # fmt: skip
    """Fill the heap with every location and the time of its first operation."""
    for p in range(first.size):
        if first[p] < last[p]:
            i = first[p]
            push(keys, ready, state, due(kind[i], gap[i], latency, clock[p], posted, key[i]), p)


@inlined
def due(kind: int, gap: float, latency: float, clock: float, posted: Floats, number: int) -> float:
    """Time at which an operation is reached or is ready to send or receive, after latency."""
    begins = kind in (SEND, POST) or (kind == RECEIVE and np.isnan(posted[number]))
    return clock + gap + (latency if begins else 0.0)


@inlined
def earlier(a: float, p: int, b: float, q: int) -> bool:
    """Whether location p with time a comes before q with b in the heap."""
    return a < b or (a == b and p < q)


@inlined
def push(keys: Floats, ready: Ints, state: Ints, time: float, p: int) -> None:
    """Add a location to the heap."""
    k = state[0]
    state[0] += 1
    while k > 0 and earlier(time, p, keys[(k - 1) // 2], ready[(k - 1) // 2]):
        keys[k], ready[k] = keys[(k - 1) // 2], ready[(k - 1) // 2]
        k = (k - 1) // 2
    keys[k], ready[k] = time, p


@inlined
def pop(keys: Floats, ready: Ints, state: Ints) -> None:
    """Remove the first location of the heap (least time, then least number)."""
    state[0] -= 1
    sink(keys[state[0]], ready[state[0]], keys, ready, state)


@inlined
def sink(time: float, p: int, keys: Floats, ready: Ints, state: Ints) -> None:
    """Replace the first location of the heap."""
    n, k = state[0], 0
    while 2 * k + 1 < n:
        child = 2 * k + 1
        if child + 1 < n and earlier(keys[child + 1], ready[child + 1], keys[child], ready[child]):
            child += 1
        if not earlier(keys[child], ready[child], time, p):
            break
        keys[k], ready[k] = keys[child], ready[child]
        k = child
    keys[k], ready[k] = time, p


@inlined
def wake(p: int, now: float, ordered: bool, keys: Floats, ready: Ints, state: Ints) -> None:
    """Add a location to those that can go on."""
    if ordered:
        push(keys, ready, state, now, p)
    else:
        ready[state[0]] = p
        state[0] += 1


@inlined
def wake_all(
    number: int, now: float, ordered: bool, keys: Floats, ready: Ints, state: Ints, queue: Ints, behind: Ints
) -> None:
    """Wake all locations that wait in a collective."""
    p = queue[number]
    queue[number] = -1
    while p >= 0:
        wake(p, now, ordered, keys, ready, state)
        p = behind[p]


@inlined
def carried(start: float, transfer: float, buses: Floats) -> float:
    """Arrival time of a message that is ready at `start`; it takes the bus that is free first."""
    if not buses.size:
        return start + transfer
    first = 0
    for k in range(1, buses.size):
        if buses[k] < buses[first]:
            first = k
    buses[first] = max(start, buses[first]) + transfer
    return float(buses[first])


# Long: one walk, as calls for each event would take a third of the time.
@arithmetic
def advance(
    first: Ints, last: Ints, kind: Bytes, key: AnyArray, gap: Floats, extra: Floats, free: Flags,
    begin: Floats, tail: Floats, receiver: AnyArray, transfer: Floats, manner: Bytes, root: Ints,
    cost: AnyArray, latency: float, several: int, most: int, came: Floats, went: Floats, arrival: Floats,
    posted: Floats, requested: Floats, members: Ints, arrived: Ints, root_here: Flags, scan: Ints, who: Ints,
    reached: Floats, clock: Floats, keys: Floats, ready: Ints, state: Ints, at: Ints, inside: Flags,
    awaited: Ints, blocked: Ints, queue: Ints, behind: Ints, latest: Floats, root_came: Flags, front: Ints,
    buses: Floats,
) -> bool:  # fmt: skip
    """Do up to about `most` operations; returns whether any location can go on."""
    ordered = several > 0
    left = most
    while state[0] > 0 and left > 0:
        if ordered:  # stays the first of the heap until it has gone on
            p = ready[0]
            keys[0] = -np.inf
        else:
            state[0] -= 1
            p = ready[state[0]]
        goes_on = False
        while at[p] < last[p]:
            i = at[p]
            k, number = kind[i], key[i]
            arrives = not inside[p]
            if arrives:
                came[p] = clock[p] + gap[i]
                clock[p] = due(k, gap[i], latency, clock[p], posted, number)
                inside[p] = True
            now = clock[p]
            if k == SEND:
                if arrives:
                    if manner[number] == EAGER or not np.isnan(posted[number]):
                        ready_at = now if manner[number] == EAGER else max(now, posted[number])
                        arrival[number] = carried(ready_at, transfer[number], buses)
                        target = receiver[number]
                        if awaited[target] == number:
                            awaited[target] = -1
                            wake(target, now, ordered, keys, ready, state)
                    else:
                        requested[number] = now
                if manner[number] == BLOCKING and not free[i]:
                    if np.isnan(arrival[number]):
                        blocked[number] = p
                        break
                    clock[p] = max(now, arrival[number])
            elif k in (POST, RECEIVE):
                if np.isnan(posted[number]):
                    posted[number] = now
                    if requested.size and not np.isnan(requested[number]):
                        arrival[number] = carried(max(now, requested[number]), transfer[number], buses)
                        if blocked[number] >= 0:
                            wake(blocked[number], now, ordered, keys, ready, state)
                            blocked[number] = -1
                if k == RECEIVE and not free[i]:
                    if np.isnan(arrival[number]):
                        awaited[p] = number
                        break
                    clock[p] = max(now, arrival[number])
            elif k == COMPLETE:
                if manner[number] == DEFERRED and not free[i]:
                    if np.isnan(arrival[number]):
                        blocked[number] = p
                        break
                    clock[p] = max(now, arrival[number])
            elif k == N_TO_N:
                if arrives:
                    arrived[number] += 1
                    latest[number] = max(latest[number], now)
                    if arrived[number] == members[number]:
                        wake_all(number, now, ordered, keys, ready, state, queue, behind)
                if not free[i]:
                    if arrived[number] < members[number]:
                        behind[p] = queue[number]
                        queue[number] = p
                        break
                    clock[p] = latest[number]
                clock[p] += cost[number]
            elif k == ONE_TO_ALL:
                if p == root[number]:
                    latest[number] = now
                    root_came[number] = True
                    wake_all(number, now, ordered, keys, ready, state, queue, behind)
                elif root_here[number] and not free[i]:
                    if not root_came[number]:
                        behind[p] = queue[number]
                        queue[number] = p
                        break
                    clock[p] = max(now, latest[number])
                clock[p] += cost[number]
            elif k == PREFIX:
                start = scan[number]
                place = np.searchsorted(who[start : start + members[number]], p)
                if arrives:
                    reached[start + place] = now
                    before = front[number]
                    while front[number] < members[number] and not np.isnan(reached[start + front[number]]):
                        j = start + front[number]
                        if front[number] > 0:  # from here on: the latest of all up to it
                            reached[j] = max(reached[j], reached[j - 1])
                        front[number] += 1
                    if front[number] > before:
                        wake_all(number, now, ordered, keys, ready, state, queue, behind)
                if place > 0 and not free[i]:
                    if front[number] < place:
                        behind[p] = queue[number]
                        queue[number] = p
                        break
                    clock[p] = max(now, reached[start + place - 1])
                clock[p] += cost[number]
            elif k == ALL_TO_ONE:
                if p != root[number]:
                    arrived[number] += 1
                    latest[number] = max(latest[number], now)
                    if root_here[number] and arrived[number] == members[number] - 1:
                        wake_all(number, now, ordered, keys, ready, state, queue, behind)
                elif not free[i]:
                    if arrived[number] < members[number] - 1:
                        behind[p] = queue[number]
                        queue[number] = p
                        break
                    clock[p] = max(now, latest[number])
                clock[p] += cost[number]
            clock[p] += extra[i]
            if extra[i] < 0.0:  # where clocks contradict each other
                clock[p] = max(clock[p], came[p])
            if went.size:
                went[i] = clock[p]
            inside[p] = False
            at[p] += 1
            left -= 1
            if ordered:
                goes_on = at[p] < last[p]
                break
            if left <= 0 and at[p] < last[p]:  # goes on in the next round
                wake(p, 0.0, ordered, keys, ready, state)
                break
        if goes_on:
            j = at[p]
            sink(due(kind[j], gap[j], latency, clock[p], posted, key[j]), p, keys, ready, state)
        elif ordered:
            pop(keys, ready, state)
    state[1] += most - left
    return bool(state[0] > 0)

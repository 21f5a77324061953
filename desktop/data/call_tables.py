"""Tables of calls, operations, messages and waits, as `desktop.data.causality` describes them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from desktop.core.arrays import Bytes, Flags, Ints
from desktop.core.open_regions import BEGIN
from desktop.core.wait_kernels import put_in_places, spent_until, sums_of, within
from desktop.data.events import MessageKind
from desktop.data.store import TraceStore

Indices = NDArray[np.int32]

#: Intervals between two stored sums.
_EVERY = 256


# Columns: see `desktop.data.causality`.


class Calls(NamedTuple):
    start: Ints
    begin: Ints
    end: Ints
    region: NDArray[np.int32]


class Operations(NamedTuple):
    start: Ints
    time: Ints
    kind: Bytes
    key: Indices
    done: Ints
    call: Indices


class MatchedMessages(NamedTuple):
    sender: NDArray[np.int32]
    receiver: NDArray[np.int32]
    sent: Ints
    arrived: Ints
    posted: Ints
    bytes: Ints
    send: Indices
    receive: Indices


class Collectives(NamedTuple):
    root: Ints
    barrier: Flags
    operation: Ints
    sent: Ints
    received: Ints


class Waits(NamedTuple):
    start: Ints
    call: Indices
    until: Ints
    account: Bytes
    partner: NDArray[np.int32]
    released: Ints
    partner_call: Indices
    key: Indices


class Intervals(NamedTuple):
    """Intervals of a location by kind, in order and without overlap; `sums` as in `spent_until`."""

    begin: Ints
    end: Ints
    kind: Bytes
    sums: Ints

    @classmethod
    def of(cls, begin: Ints, end: Ints, kind: Bytes, kinds: int) -> Intervals:
        sums = np.zeros((begin.size // _EVERY + 1, kinds), np.int64)
        sums_of(begin, end, kind, _EVERY, sums)
        return cls(begin, end, kind, sums)

    def between(self, begin: Ints, end: Ints) -> Ints:
        """(ranges, kinds) ticks of each kind."""
        cuts = np.concatenate([begin, end])
        until = np.zeros((cuts.size, self.sums.shape[1]), np.int64)
        spent_until(self.begin, self.end, self.kind, _EVERY, self.sums, cuts, until)
        inside: Ints = until[begin.size :] - until[: begin.size]
        return inside


class CallParts(NamedTuple):
    """Of a location: the communication that moves no data (waits by account, and calls of unknown kind), its
    calls, its waits, and how much contradicting clocks may change these."""

    pieces: Intervals
    calls: Intervals
    waits: Intervals
    doubted: Intervals


def entered(store: TraceStore, regions: Flags) -> Ints:
    """(locations,) how often each location enters any of the `regions` (regions,)."""
    counts = np.zeros(len(store.locations), np.int64)
    for i in range(counts.size):
        for region, count in store.blocks("calls", i, "region", "count"):
            counts[i] += count[regions[region]].sum()
    return counts


def in_places(location: NDArray[np.int32], time: Ints, places: int) -> tuple[Ints, Ints]:
    """Order (n,) by location and time (stable); where each location begins (places + 1,)."""
    start = np.concatenate([[0], np.cumsum(np.bincount(location, minlength=places))]).astype(np.int64)
    order = np.empty(location.size, np.int64)
    put_in_places(location, start[:-1].copy(), order)
    for a, b in zip(start[:-1].tolist(), start[1:].tolist(), strict=True):
        part = order[a:b]
        when = time[part]
        if (when[1:] < when[:-1]).any():
            order[a:b] = part[np.argsort(when, kind="stable")]
    return order, start


def call_at(time: Ints, over: Flags, begin: Ints, end: Ints, first: int) -> Ints:
    """The call in which each time (n,) is, -1 for none; `first` is the number of the first one of `begin`. If
    one call ends as another begins, what is `over` then belongs to the first, if nothing else does."""
    call = np.empty(time.size, np.int64)
    within(time, over, begin, end, first, np.zeros(begin.size, np.uint8), call)
    return call


def request_times(kind: Bytes, request: NDArray[np.uint64], time: Ints) -> Ints:
    """For each row (n,) of a location's messages the time when an IRECV was posted or an ISEND was completed;
    `BEGIN` if unknown. A request belongs to the latest row that started it."""
    times = np.full(kind.size, BEGIN)
    for first, last, of_first in (
        (MessageKind.IRECV_POST, MessageKind.IRECV, False),
        (MessageKind.ISEND, MessageKind.ISEND_COMPLETE, True),
    ):
        rows = np.flatnonzero((kind == first) | (kind == last))
        rows = rows[np.argsort(request[rows], kind="stable")]
        a, b = rows[:-1], rows[1:]
        pairs = (request[a] == request[b]) & (kind[a] == first) & (kind[b] == last)
        begin, over = a[pairs], b[pairs]
        if of_first:
            times[begin] = time[over]
        else:
            times[over] = time[begin]
    return times

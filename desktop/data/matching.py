"""Matching the messages and collective operations of a trace.

Sends are paired with their receives, and members of collective operations with each other, in bounded memory
and one pass over the records of each location.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import NamedTuple

import numpy as np

from desktop.core.arrays import AnyArray, Bytes, Ints
from desktop.core.jit import arithmetic, inlined
from desktop.data.events import NO_COMMUNICATOR, TABLES, EventSource, MessageKind
from desktop.data.spill import Interner, Sorted, Spill, by_time, joined, mixed
from desktop.data.store import DERIVED, StoreWriter, TraceStore
from desktop.errors import StoreError, explained
from desktop.progress import Progress

ROWS = 1 << 17  # rows matched at a time
PARTS = 64  # into which they are divided, so that no channel is too long to be matched
_STEP = 256  # locations between two steps of progress


class Matches(NamedTuple):
    """Matched messages: location indices, ticks as recorded, bytes sent, tag; all (n,).

    `certain`: 0 if another message may have been received there, see `pair_up`, else 1. `order`: among
    messages sent by one location at one time, by receiver and its receives; 0 if they come in order.
    """

    sender: Ints
    receiver: Ints
    sent: Ints
    received: Ints
    bytes: Ints
    tag: Ints
    certain: Ints
    order: Ints


@contextmanager
def links_of(writer: StoreWriter) -> Iterator[Links]:
    """The table ``links`` of a store, written when the block ends.

    Raises
    ------
    StoreError : it cannot be written.
    """
    hint = "make room there and in the temporary folder"
    explaining = explained(StoreError, "cannot be written", file=writer.path, hint=hint)
    with explaining, closing(Links(writer)) as links:
        yield links
        links.keep()


class Links:
    """The table ``links``: matched messages, sorted by sender and time."""

    _ROW = np.dtype([(name, "i8") for name in (*DERIVED["links"], "order")])

    def __init__(self, writer: StoreWriter) -> None:
        self._writer = writer
        self._spill = Spill(writer.path.parent, self._ROW)

    def close(self) -> None:
        self._spill.close()

    def add(self, matches: Matches) -> None:
        """Add messages in any order."""
        rows = np.empty(matches.sent.size, self._ROW)
        rows["time"], rows["arrival"] = matches.sent, matches.received
        rows["peer"], rows["bytes"], rows["tag"] = matches.receiver, matches.bytes, matches.tag
        rows["order"] = matches.order
        self._spill.add(rows, matches.sender, len(self._writer.locations))

    def keep(self) -> None:
        """Write all messages, at equal times of a location in the order of `Matches`."""
        for sender in range(len(self._writer.locations)):
            if not self._spill.size(sender):
                continue
            with closing(by_time(self._spill, sender, ROWS)) as ordered:
                for rows in ordered.chunks():
                    if (rows["time"][1:] == rows["time"][:-1]).any():
                        rows = rows[np.lexsort((rows["order"], rows["time"]))]
                    columns = {name: rows[name].astype(dtype) for name, dtype in DERIVED["links"].items()}
                    self._writer.derive("links", sender, **columns)


def process_of(source: EventSource) -> Ints:
    """(p,) process number of each location; the first location's process is 0. Locations without a rank are
    processes of their own."""
    ranks: dict[tuple[str, int], int] = {}
    return np.array(
        [
            ranks.setdefault(("rank", at.rank) if at.rank >= 0 else ("location", i), len(ranks))
            for i, at in enumerate(source.locations)
        ],
        np.int64,
    )


def address_of(source: EventSource) -> Ints:
    """(p,) the location that messages name for each one: itself, or the only one of its process they name.

    Formats whose messages name a process (an MPI rank, a PICL node) use one of its locations for it, so the
    others are never named; if messages name locations, those with messages are named. Nothing is read if only
    the first locations of processes have messages.
    """
    itself, process = np.arange(len(source.locations)), process_of(source)
    first = np.unique(process, return_index=True)[1][process]
    talking = np.array([source.rows("messages", i) > 0 for i in itself.tolist()], bool)
    if not (talking & (first != itself)).any():
        return itself
    named = np.zeros(itself.size, bool)
    for location in np.flatnonzero(talking).tolist():
        for (peer,) in source.blocks("messages", location, "peer"):
            named[peer[peer >= 0]] = True
    only = np.flatnonzero(named & (np.bincount(process, named)[process] == 1))
    address = np.full(itself.size, -1)
    address[process[only]] = only
    return np.where(address[process] < 0, itself, address[process])


@arithmetic
def choose_shares(rows: Ints, width: int, shares: int, share: Ints) -> None:
    """Set `share` (n,): the one of `shares` that each of `rows` (n, columns) is in, by `width` columns."""
    for i in range(rows.shape[0]):
        share[i] = np.int64(mixed(rows, i, width, np.uint64(0)) >> np.uint64(33)) % shares


@arithmetic
def count_up(channel: Ints, following: Ints, number: Ints) -> None:
    """Number the entries of each channel, continuing from `following`, which is updated."""
    for i in range(channel.size):
        number[i] = following[channel[i]]
        following[channel[i]] += 1


class _Count:
    """Numbers the entries of each channel from 0 on."""

    def __init__(self, width: int) -> None:
        self._channels = Interner(width=width)
        self._next = np.zeros(0, np.int64)

    def __call__(self, rows: Ints) -> Ints:
        channel = self._channels(rows)
        if self._next.size < self._channels.used:
            self._next = np.pad(self._next, (0, 2 * self._channels.used - self._next.size))
        number = np.empty_like(channel)
        count_up(channel, self._next, number)
        return number


def _in_shares(
    source: EventSource,
    table: str,
    rows: int,
    width: int,
    take: Callable[[int], Iterator[Ints]],
    progress: Progress | None,
) -> Iterator[Ints]:
    """Divide what `take` finds in the rows of each location into shares of about `rows`.

    `take` gives rows (n, columns), whose first `width` numbers are a name; equal names are in the same share,
    in the order of locations and rows. Every location is read once: what does not fit into one share goes to
    a temporary file.
    """
    places = [i for i in range(len(source.locations)) if source.rows(table, i)]
    shares = -(-sum(source.rows(table, i) for i in places) // rows)
    whole: list[Ints] = []
    spill = None
    with ExitStack() as stack:
        for number, i in enumerate(places):
            if progress is not None and number % _STEP == 0:
                progress.step(0, 0, "comparing clocks")
            for ends in take(i):
                if shares == 1:
                    whole.append(ends)
                    continue
                if spill is None:
                    spill = stack.enter_context(closing(_spill(ends)))
                share = np.empty(len(ends), np.int64)
                choose_shares(ends, width, shares, share)
                spill.add(ends.view(spill.dtype)[:, 0], share, shares)
        if whole:
            yield np.concatenate(whole)
        if spill is not None:
            for k in range(shares):
                yield spill.read(k)["columns"]


def _spill(rows: Ints) -> Spill:
    """A spill for rows (n, columns) like these."""
    return Spill(Path(gettempdir()), np.dtype([("columns", "i8", (rows.shape[1],))]))


#: Columns of a message end: its channel, a part of which has so many (until then its position in the
#: process), time, bytes, and owner: twice the location, plus 1 for a send.
_SENDER, _RECEIVER, _COMMUNICATOR, _TAG, _PART, _TIME, _BYTES, _END = range(8)
#: A message of one of a process's threads.
_ROW = np.dtype([*TABLES["messages"].items(), ("location", "i8")], align=True)


def match_messages(
    source: EventSource, rows: int = ROWS, progress: Progress | None = None, tally: Ints | None = None
) -> Iterator[Matches]:
    """Match sends with receives: the k-th with the k-th for each sender, receiver, communicator and tag.

    Non-blocking receives count in the order of posting (MPI 4.0, section 3.5). If messages name processes,
    channels are those of processes, in time order over their threads (`address_of`); the ends are still the
    threads. Ends without a partner are left out. About `rows` rows are matched at a time, part of a long
    channel. `tally` (3,) counts sends and receives, with or without a partner, and pairs of unequal length.
    """
    counted = np.zeros(3, np.int64) if tally is None else tally
    length = max(1, rows // PARTS)
    address = address_of(source)
    together: dict[int, list[int]] = {}
    for location, name in enumerate(address.tolist()):
        if source.rows("messages", location):
            together.setdefault(name, []).append(location)
    threads_of = {threads[0]: threads for threads in together.values()}

    def take(location: int) -> Iterator[Ints]:
        if location not in threads_of:  # it was done with another of its threads
            return
        threads = threads_of[location]
        count = sum(source.rows("messages", thread) for thread in threads)
        counts = None if count <= length else (_Count(_PART), _Count(_PART))
        for ends, outward in _ends(_rows(source, threads, rows), count, int(address[location]), rows):
            ends[:, _PART] = 0 if counts is None else counts[outward](ends) // length
            yield ends

    yield from _in_parts(source, take, rows, progress, counted)


def matched(store: TraceStore) -> Iterator[Matches]:
    """The messages matched on import; if none were stored, they are matched now."""
    if not store.has("links"):
        yield from match_messages(store)
        return
    for sender in range(len(store.locations)):
        for time, arrival, peer, size, tag in store.blocks("links", sender):
            who, certain, order = (np.full(time.size, value, np.int64) for value in (sender, 1, 0))
            yield Matches(who, peer.astype(np.int64), time, arrival, size, tag, certain, order)


def _in_parts(
    source: EventSource,
    take: Callable[[int], Iterator[Ints]],
    rows: int,
    progress: Progress | None,
    counted: Ints,
) -> Iterator[Matches]:
    for ends in _in_shares(source, "messages", rows, _PART + 1, take, progress):
        channels = Interner(width=_PART + 1)
        channel = channels(ends)
        matches = np.empty((len(Matches._fields), len(ends) // 2), np.int64)
        work, queue = np.zeros((6, channels.used + 1), np.int64), np.empty(len(ends), np.int64)
        n = pair_up(channel, ends, channels.used, matches, counted, queue, *work)
        yield Matches(*matches[:, :n])


def _rows(source: EventSource, threads: list[int], rows: int) -> Iterator[tuple[AnyArray, ...]]:
    """The columns of ``messages`` and their locations, by time (at equal times by thread)."""
    if len(threads) == 1:
        for block in source.blocks("messages", threads[0], *TABLES["messages"], rows=rows):
            yield *block, np.full(block[0].size, threads[0], np.int64)
        return
    waiting: list[AnyArray] = []  # most processes have so few rows that no file is needed
    held = 0
    with closing(Sorted(Path(gettempdir()), rows)) as merged:
        for thread in threads:
            for block in source.blocks("messages", thread, *TABLES["messages"], rows=rows):
                part = np.empty(block[0].size, _ROW)
                for name, column in zip(TABLES["messages"], block, strict=True):
                    part[name] = column
                part["location"] = thread
                waiting.append(part)
                held += part.size
                if held >= rows:
                    merged.add(joined(waiting))
                    waiting, held = [], 0
        if waiting:
            merged.add(joined(waiting))
            waiting = []
        for part in merged.chunks():
            yield tuple(np.ascontiguousarray(part[name]) for name in _ROW.names or ())


def _ends(
    blocks: Iterable[tuple[AnyArray, ...]],
    count: int,
    name: int,
    rows: int,
    row: int = 0,
    posted: Ints | None = None,
    held: Ints | None = None,
) -> Iterator[tuple[Ints, bool]]:
    """Sends (True) and receives (n, columns) of threads that messages name by one, each in matching order,
    about `rows` at most at a time.

    `blocks`: the last of `count` rows, from `row` on. `posted` (2, n): request and row of posted receives
    that are not complete; `held`: receives that wait for these.
    """
    posted = np.empty((2, 0), np.int64) if posted is None else posted
    with ExitStack() as stack:
        late = None  # receives, by where they were posted
        if held is not None and len(held):
            late = stack.enter_context(closing(_spill(held)))
            late.add(held.view(late.dtype)[:, 0], held[:, _PART] // rows, row // rows + 1)
        for *block, request, location in blocks:
            place, posted = _posted(block[1], request, row, posted)
            row += place.size
            sends, receives = np.empty((2, place.size, _END + 1), np.int64)
            n_sent, n_received = tabulate(name, *block, location, place, sends, receives)
            if n_sent:
                yield sends[:n_sent], True
            received = receives[:n_received]
            if late is None and (not posted.size or row == count):
                yield _in_order(received), False
                continue
            if late is None:
                late = stack.enter_context(closing(_spill(received)))
            late.add(received.view(late.dtype)[:, 0], received[:, _PART] // rows, row // rows + 1)
        if late is not None:
            for group in range(row // rows + 1):
                yield _in_order(late.read(group)["columns"]), False


_SEND, _ISEND = int(MessageKind.SEND), int(MessageKind.ISEND)
_RECV, _IRECV = int(MessageKind.RECV), int(MessageKind.IRECV)


@arithmetic
def tabulate(
    name: int, time: Ints, kind: Bytes, peer: AnyArray, comm: AnyArray, tag: Ints, size: Ints, location: Ints,
    place: Ints, sends: Ints, receives: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Write the message ends among the rows into two tables, by the name of their process; returns their
    numbers."""
    sent = received = 0
    for i in range(time.size):
        outward = kind[i] == _SEND or kind[i] == _ISEND
        if peer[i] < 0 or not (outward or kind[i] == _RECV or kind[i] == _IRECV):
            continue
        end = sends[sent] if outward else receives[received]
        sent += outward
        received += not outward
        end[_SENDER] = name if outward else peer[i]
        end[_RECEIVER] = peer[i] if outward else name
        end[_COMMUNICATOR] = comm[i]
        end[_TAG] = tag[i]
        end[_PART] = place[i]
        end[_TIME] = time[i]
        end[_BYTES] = size[i]
        end[_END] = 2 * location[i] + outward
    return sent, received


def _posted(kind: AnyArray, request: AnyArray, row: int, posted: Ints) -> tuple[Ints, Ints]:
    """The place (n,) of each row among all rows of the process: a receive gets that of the latest posting of
    its request. The first row is `row`; `posted` before and after these rows."""
    order = row + np.arange(kind.size)
    waits = np.flatnonzero((kind == MessageKind.IRECV) | (kind == MessageKind.IRECV_POST))
    if not waits.size:
        return order, posted
    before = posted.shape[1]
    requests = np.concatenate([posted[0], request[waits].astype(np.int64)])
    place = np.concatenate([posted[1], order[waits]])
    post = np.concatenate([np.ones(before, bool), kind[waits] == MessageKind.IRECV_POST])
    by_request = np.lexsort((place, requests))
    former, latter = by_request[:-1], by_request[1:]
    same = requests[former] == requests[latter]
    matched = same & post[former] & ~post[latter]
    order[waits[latter[matched] - before]] = place[former[matched]]
    last = by_request[np.append(~same, True)]
    last = last[post[last]]
    return order, np.stack([requests[last], place[last]])


def _in_order(ends: Ints) -> Ints:
    place = ends[:, _PART]
    return ends if (place[1:] > place[:-1]).all() else ends[np.argsort(place, kind="stable")]


@arithmetic
def pair_up(
    channel: Ints, ends: Ints, channels: int, matches: Ints, tally: Ints, queue: Ints, start: Ints,
    sends: Ints, receives: Ints, before: Ints, several: Ints, back: Ints,
) -> int:  # fmt: skip
    """Pair the k-th send with the k-th receive of every channel, in the order of the receives.

    channel (n,) of each of `ends` (n, columns); matches (columns of `Matches`, n // 2), result. Returns the
    number of matches. tally (3,): sends, receives and pairs of unequal length are added. queue (n,); the
    rest, (channels + 1,) zeros, is scratch.

    If several threads receive on a channel, the order of their receives is undefined (MPI 4.0, section 3.5).
    In time order, no pair contradicts the clocks unless every order would; otherwise pairs are not `certain`.
    """
    for i in range(channel.size):
        start[channel[i] + 1] += ends[i, _END] & 1
    for c in range(channels):
        start[c + 1] += start[c]
        sends[c] = receives[c] = start[c]
        before[c] = -1  # the receive before
    tally[0] += start[channels]
    tally[1] += channel.size - start[channels]
    for i in range(channel.size):
        c = channel[i]
        if ends[i, _END] & 1:
            queue[sends[c]] = i
            sends[c] += 1
        else:
            if before[c] >= 0:
                several[c] |= ends[i, _END] != ends[before[c], _END]
                back[c] |= ends[i, _TIME] < ends[before[c], _TIME]
            before[c] = i
    n = 0
    for i in range(channel.size):
        c = channel[i]
        if not ends[i, _END] & 1 and receives[c] < start[c + 1]:
            sent = queue[receives[c]]
            receives[c] += 1
            matches[0, n] = ends[sent, _END] >> 1
            matches[1, n] = ends[i, _END] >> 1
            matches[2, n] = ends[sent, _TIME]
            matches[3, n] = ends[i, _TIME]
            matches[4, n] = ends[sent, _BYTES]
            matches[5, n] = ends[sent, _TAG]
            matches[6, n] = not (several[c] and back[c])
            matches[7, n] = 0
            tally[2] += ends[sent, _BYTES] != ends[i, _BYTES]
            n += 1
    return n


# ------------------------------------------------------------------ matching in one parallel pass


def match_in_passing(
    source: EventSource, rows: int = ROWS, progress: Progress | None = None, tally: Ints | None = None
) -> Iterator[Matches]:
    """As `match_messages`, in another order, and faster: locations are read in parallel, so most ends meet
    soon and few have to wait. If more than twice `rows` wait, or messages name processes of several threads,
    the rest is left to the method of `match_messages`.
    """
    address = address_of(source)
    places = [i for i in range(len(source.locations)) if source.rows("messages", i)]
    counted = np.zeros(3, np.int64) if tally is None else tally
    if (address[places] != places).any():
        yield from match_messages(source, rows, progress, counted)
        return
    size = min(1 << 14, max(1, rows // 32, 4 * rows // max(1, len(places))))
    streams = {i: _Stream(source, i, size) for i in places}
    meeting = _Meeting(2 * rows)
    heap = [(stream.reached, i) for i, stream in streams.items()]
    heapq.heapify(heap)
    while heap:
        if progress is not None:
            progress.step(0, 0, "comparing clocks")
        _, location = heap[0]
        stream = streams[location]
        if not stream.advance():
            heapq.heappop(heap)
        else:
            heapq.heapreplace(heap, (stream.reached, location))
        while stream.ready:
            out, done = meeting.take(location, stream.ready[0], counted)
            if out.shape[1]:
                yield Matches(*out)
            if done < stream.ready[0][0].size:
                stream.ready[0] = tuple(column[done:] for column in stream.ready[0])
                yield from _leftover(source, streams, meeting, rows, progress, counted)
                return
            stream.ready.pop(0)
        if stream.held_rows > rows:
            yield from _leftover(source, streams, meeting, rows, progress, counted)
            return
    waiting = meeting.waiting()
    outward = int((waiting[:, _END] & 1).sum())
    counted[:2] += outward, len(waiting) - outward


def _leftover(
    source: EventSource,
    streams: dict[int, _Stream],
    meeting: _Meeting,
    rows: int,
    progress: Progress | None,
    counted: Ints,
) -> Iterator[Matches]:
    """The rest when too many ends wait: first the waiting ones, then those not read yet."""
    waiting = meeting.waiting()
    owner = waiting[:, _END] >> 1
    length = max(1, rows // PARTS)

    def take(location: int) -> Iterator[Ints]:
        counts = _Count(_PART), _Count(_PART)
        of_location = waiting[owner == location]
        for outward in (True, False):
            ends = of_location[(of_location[:, _END] & 1) == outward]
            ends[:, _PART] = counts[outward](ends) // length
            yield ends
        for ends, outward in streams[location].remaining(rows):
            ends[:, _PART] = counts[outward](ends) // length
            yield ends

    yield from _in_parts(source, take, rows, progress, counted)


class _Stream:
    """The messages of a location, block by block: sends, and receives in the order of posting.

    ready : columns time, kind, peer, communicator, tag, bytes, place of rows that can be matched now.
    reached : ticks of the location up to which everything was read; clocks may be far apart.
    """

    def __init__(self, source: EventSource, location: int, size: int) -> None:
        self._here, self._count = location, source.rows("messages", location)
        self._blocks = source.blocks("messages", location, *TABLES["messages"], rows=size)
        self._row = 0
        self._posted = np.empty((2, 0), np.int64)
        self._held: list[tuple[AnyArray, ...]] = []
        self.held_rows = 0
        self.ready: list[tuple[AnyArray, ...]] = []
        self.reached = -1
        self._first = source.locations[location].first or 0

    def advance(self) -> bool:
        """Read the next block; False if there is none."""
        next_columns = next(self._blocks, None)
        if next_columns is None:
            return False
        *block, request = next_columns
        time, kind = block[:2]
        self.reached = int(time[-1]) - self._first
        waits = (kind == _IRECV) | (kind == MessageKind.IRECV_POST)
        if not self._posted.size and not waits.any():
            place = np.arange(self._row, self._row + time.size)
            self._row += time.size
            self.ready.append((*block, place))
            return True
        place, self._posted = _posted(kind, request, self._row, self._posted)
        self._row += time.size
        outward = (kind == _SEND) | (kind == _ISEND)
        self.ready.append(tuple(column[outward] for column in (*block, place)))
        inward = (kind == _RECV) | (kind == _IRECV)
        self._held.append(tuple(column[inward] for column in (*block, place)))
        # Receives posted after an incomplete one have to wait for it.
        over = self._row == self._count or not self._posted.size
        before = self._row if over else int(self._posted[1].min())
        columns = tuple(np.concatenate(column) for column in zip(*self._held, strict=True))
        order = np.argsort(columns[-1], kind="stable")
        n = int(np.searchsorted(columns[-1], before, sorter=order))
        self.ready.append(tuple(column[order[:n]] for column in columns))
        self._held = [tuple(column[order[n:]] for column in columns)]
        self.held_rows = order.size - n
        return True

    def remaining(self, rows: int) -> Iterator[tuple[Ints, bool]]:
        """Everything that was not taken, as `_ends`."""
        for block in self.ready:
            for outward, ends in enumerate(self._ends(block)):
                if len(ends):
                    yield ends, not outward
        held = self._ends(self._held[0])[1] if self._held else None
        location = self._here
        blocks = ((*block, np.full(block[0].size, location, np.int64)) for block in self._blocks)
        yield from _ends(blocks, self._count, location, rows, self._row, self._posted, held)

    def _ends(self, block: tuple[AnyArray, ...]) -> tuple[Ints, Ints]:
        *columns, place = block
        sends, receives = np.empty((2, place.size, _END + 1), np.int64)
        location = np.full(place.size, self._here, np.int64)
        sent, received = tabulate(self._here, *columns, location, place, sends, receives)
        return sends[:sent], receives[:received]


class _Meeting:
    """Message ends that wait for their partner, first in, first out on each channel; at most `most`."""

    def __init__(self, most: int) -> None:
        self._most = most
        # Random, so that nobody can write a file whose names all collide.
        self._salt = np.uint64(int.from_bytes(os.urandom(8), "little"))
        self._state = np.zeros(4, np.int64)
        self._state[_FREE] = -1
        self._make_table(min(most, 1 << 8))
        self._pool = np.empty((min(most, 1 << 8), 4), np.int64)

    def _make_table(self, names: int) -> None:
        self._slots = np.zeros(1 << (2 * names - 1).bit_length(), np.int64)
        self._names = np.zeros((names, 4), np.int64)
        self._queues = np.zeros((names, 3), np.int64)

    def take(self, location: int, block: tuple[AnyArray, ...], tally: Ints) -> tuple[Ints, int]:
        """Matches (columns, n) of a location's rows with waiting ends, and the number of rows taken: not all
        if too many would have to wait."""
        out = np.empty((len(Matches._fields), block[0].size), np.int64)
        self._state[_MET] = 0
        row = 0
        while True:
            row = meet(
                row, location, *block, self._slots, self._names, self._queues, self._pool, self._state,
                self._salt, out, tally,
            )  # fmt: skip
            if row == block[0].size or not self._make_room():
                return out[:, : self._state[_MET]], row

    def _make_room(self) -> bool:
        """Make space for names and waiting ends, up to the limit; names without waiting ends are removed."""
        pool, names = self._pool, len(self._names)
        if self._state[_POOLED] == len(pool) and self._state[_FREE] < 0:
            if len(pool) == self._most:
                return False
            self._pool = np.empty((min(4 * len(pool), self._most), 4), np.int64)
            self._pool[: len(pool)] = pool
        if self._state[_NAMES] == names:
            old_names, old_queues = self._names, self._queues
            used = old_queues[:, 0] >= 0
            if 2 * int(used.sum()) >= self._most:
                return False
            self._make_table(min(max(4 * int(used.sum()), names), self._most))
            self._state[_NAMES] = take_over(
                old_names[used], old_queues[used], self._slots, self._names, self._queues, self._salt
            )
        return True

    def waiting(self) -> Ints:
        """(n, columns) all waiting ends, in the form of `tabulate`."""
        ends = np.empty((len(self._pool), _END + 1), np.int64)
        return ends[: list_waiting(self._names[: self._state[_NAMES]], self._queues, self._pool, ends)]


# State of a meeting: names in the table, first free place of the pool, places used, matches of a block.
_NAMES, _FREE, _POOLED, _MET = range(4)


@inlined
def name_at(
    sender: int, receiver: int, comm: int, tag: int, slots: Ints, names: Ints, salt: np.uint64
) -> int:
    """The place of a channel in the table, or where it would be inserted."""
    mask = slots.size - 1
    h = salt
    for part in (sender, receiver, comm, tag):
        h = (h ^ np.uint64(part)) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    at = np.int64(h >> np.uint64(33)) & mask
    while slots[at] != 0:
        c = slots[at] - 1
        if names[c, 0] == sender and names[c, 1] == receiver and names[c, 2] == comm and names[c, 3] == tag:
            break
        at = (at + 1) & mask
    return int(at)


@arithmetic
def meet(
    begin: int, location: int, time: Ints, kind: Bytes, peer: AnyArray, comm: AnyArray, tag: Ints, size: Ints,
    place: Ints, slots: Ints, names: Ints, queues: Ints, pool: Ints, state: Ints, salt: int, out: Ints,
    tally: Ints,
) -> int:  # fmt: skip
    """Match ends of a location from row `begin` on with waiting ones, or add them to these; returns where it
    stopped: at the end, or where there is no space.

    queues (names, 3): first and last waiting end (-1: none), and whether they are sends. pool (n, 4): next
    end, time, bytes, order. The rest as in `pair_up`.
    """
    n = state[_MET]
    for i in range(begin, time.size):
        outward = kind[i] == _SEND or kind[i] == _ISEND
        if peer[i] < 0 or not (outward or kind[i] == _RECV or kind[i] == _IRECV):
            continue
        partner = np.int64(peer[i])
        sender = location if outward else partner
        receiver = partner if outward else location
        at = name_at(sender, receiver, np.int64(comm[i]), tag[i], slots, names, salt)
        if slots[at] == 0:
            c = state[_NAMES]
            if c == names.shape[0]:
                state[_MET] = n
                return i
            names[c, 0] = sender
            names[c, 1] = receiver
            names[c, 2] = comm[i]
            names[c, 3] = tag[i]
            queues[c, 0] = -1
            state[_NAMES] += 1
            slots[at] = c + 1
        c = slots[at] - 1
        first = queues[c, 0]
        if first >= 0 and queues[c, 2] != outward:
            queues[c, 0] = pool[first, 0]
            pool[first, 0] = state[_FREE]
            state[_FREE] = first
            out[0, n] = sender
            out[1, n] = receiver
            out[2, n] = time[i] if outward else pool[first, 1]
            out[3, n] = pool[first, 1] if outward else time[i]
            out[4, n] = size[i] if outward else pool[first, 2]
            out[5, n] = tag[i]
            out[6, n] = 1
            out[7, n] = receiver << 40 | (pool[first, 3] if outward else place[i])
            tally[0] += 1
            tally[1] += 1
            tally[2] += size[i] != pool[first, 2]
            n += 1
            continue
        new = state[_FREE]
        if new >= 0:
            state[_FREE] = pool[new, 0]
        elif state[_POOLED] < pool.shape[0]:
            new = state[_POOLED]
            state[_POOLED] += 1
        else:
            state[_MET] = n
            return i
        pool[new, 0] = -1
        pool[new, 1] = time[i]
        pool[new, 2] = size[i]
        pool[new, 3] = place[i]
        if first >= 0:
            pool[queues[c, 1], 0] = new
        else:
            queues[c, 0] = new
            queues[c, 2] = outward
        queues[c, 1] = new
    state[_MET] = n
    return time.size


@arithmetic
def take_over(old_names: Ints, old_queues: Ints, slots: Ints, names: Ints, queues: Ints, salt: int) -> int:
    """Insert channels into an empty table; returns their number."""
    for c in range(old_names.shape[0]):
        key = old_names[c]
        at = name_at(key[0], key[1], key[2], key[3], slots, names, salt)
        for k in range(4):
            names[c, k] = key[k]
        for k in range(3):
            queues[c, k] = old_queues[c, k]
        slots[at] = c + 1
    return len(old_names)


@arithmetic
def list_waiting(names: Ints, queues: Ints, pool: Ints, ends: Ints) -> int:
    """List all waiting ends, those of each channel in order; returns their number."""
    n = 0
    for c in range(names.shape[0]):
        at = queues[c, 0]
        while at >= 0:
            for k in range(4):
                ends[n, k] = names[c, k]
            ends[n, _PART] = pool[at, 3]
            ends[n, _TIME] = pool[at, 1]
            ends[n, _BYTES] = pool[at, 2]
            ends[n, _END] = 2 * names[c, 0] + 1 if queues[c, 2] else 2 * names[c, 1]
            n += 1
            at = pool[at, 0]
    return n


class Instances(NamedTuple):
    """Collective operations with two or more members: the i-th has the rows start[i] to start[i + 1].

    location, begin, end, root, sent, received : of each row, those of an instance in order of their
        locations; `root` is a location or -1, `sent` and `received` are bytes.
    communicator : of each instance.
    operation : of each instance, index into the texts of the source.
    disagreeing : rows left out because the members name different operations.
    """

    start: Ints
    location: Ints
    begin: Ints
    end: Ints
    root: Ints
    sent: Ints
    received: Ints
    communicator: Ints
    operation: Ints
    disagreeing: int


def match_collectives(
    source: EventSource, test: Callable[[str], object], rows: int = ROWS, progress: Progress | None = None
) -> Iterator[Instances]:
    """Match operations whose names pass `test`: the k-th of each member on a communicator, if all members
    name the same one. About `rows` rows are matched at a time."""
    selected = np.array([bool(test(text)) for text in source.texts], bool)

    def take(location: int) -> Iterator[Ints]:
        count = _Count(1)
        columns = ("communicator", "operation", "begin", "end", "root", "sent", "received")
        for block in source.blocks("collectives", location, *columns, rows=rows):
            which = np.flatnonzero(selected[block[1]] & (block[0] != NO_COMMUNICATOR))
            comm, operation, *others = (column[which].astype(np.int64) for column in block)
            k = count(comm[:, None])
            yield np.stack([comm, k, operation, np.full_like(k, location), *others], axis=1)

    for calls in _in_shares(source, "collectives", rows, 2, take, progress):
        comm, k, operation, *others = np.ascontiguousarray(calls.T)
        order = np.lexsort((k, comm))
        comm, k, operation = comm[order], k[order], operation[order]
        new = (
            np.flatnonzero(np.r_[True, (np.diff(comm) != 0) | (np.diff(k) != 0)])
            if comm.size
            else np.empty(0, np.int64)
        )
        members = np.diff(np.r_[new, comm.size])
        if not members.size:
            continue
        agreed = np.minimum.reduceat(operation, new) == np.maximum.reduceat(operation, new)
        matched = agreed & (members > 1)
        order = order[np.repeat(matched, members)]
        start = np.r_[0, np.cumsum(members[matched])]
        location, begin, end, root, sent, received = (column[order] for column in others)
        yield Instances(
            start, location, begin, end, root, sent, received, comm[new][matched], operation[new][matched],
            int(members[~agreed].sum()),
        )  # fmt: skip

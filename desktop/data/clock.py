"""Do the clocks of the processes contradict each other, and can constant shifts repair them?

Two facts hold in any run, whatever the clocks say. Nobody leaves an operation in which all wait for all
before the last one has entered it; no message is received before it is sent. Each gives, for the unknown
shifts d of two processes, a bound ``d_r - d_s <= B[r, s]``. Such a system of difference constraints has a
solution if and only if its graph has no negative cycle, and shortest paths give the interval of every shift
(Cormen et al., Introduction to Algorithms, "Difference constraints and shortest paths").
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from desktop.core.jit import inlined, kernel
from desktop.data.events import TABLES, EventSource, MessageKind
from desktop.data.spill import Sorted, Spill, joined
from desktop.data.store import DERIVED, StoreWriter
from desktop.progress import Progress

#: Operations in which every member waits for all others, by the name importers give them.
SYNCHRONISING = frozenset(
    (
        *("Barrier", "Allreduce", "Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Alltoallw"),
        *("Reduce_scatter", "Reduce_scatter_block", "all-to-all"),
    )
)
NO_COMMUNICATOR = 0xFFFFFFFF  # a collective of a process with itself
DENSE = 1024  # up to so many processes the bounds are a matrix
ROWS = 1 << 17  # rows that are matched at a time
PARTS = 64  # into which they are divided, so that no channel is too long to be matched
INFINITE = 1 << 62
_STEP = 256  # locations between two steps of progress

Ints = NDArray[np.int64]


class Matches(NamedTuple):
    """Messages whose two ends are known: location indices, ticks as recorded, bytes sent, tag; all (n,).

    `certain`: 0 where another message may have been received there, see `pair_up`, else 1.
    """

    sender: Ints
    receiver: Ints
    sent: Ints
    received: Ints
    bytes: Ints
    tag: Ints
    certain: Ints


@dataclass(frozen=True)
class ClockResult:
    """What the clock check found.

    `collectives`, `messages`: how many instances were compared (messages that are not `certain` say nothing
    about clocks). `unmatched`: sends and receives for which no other end was found in the trace. `unequal`:
    messages of which the two ends say different numbers of bytes. `violations_before`, `violations_after`: of
    these (collectives, messages) contradict the clocks as recorded and with `shift`. `repair`: ``"none"``
    needed, ``"shift"``, or ``"impossible"`` (the clocks drift). `shift`, `half_width`: (p,) ticks for each
    location, relative to the first one; the shift is certain to +- `half_width` (infinite where nothing ties
    a location to the first). `low`, `high`: (p,) ticks, the shifts that are possible; a shift is their
    midpoint, and 0 if none is needed.
    """

    checked: bool
    collectives: int
    messages: int
    unmatched: tuple[int, int]
    unequal: int
    violations_before: tuple[int, int]
    violations_after: tuple[int, int]
    repair: Literal["none", "shift", "impossible"]
    shift: Ints
    half_width: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


class Links:
    """The table ``links``: matched messages, put in order of their senders and of time."""

    _ROW = np.dtype([(name, "i8") for name in DERIVED["links"]])

    def __init__(self, writer: StoreWriter) -> None:
        self._writer = writer
        self._spill = Spill(writer.path.parent, self._ROW)

    def __enter__(self) -> Links:
        return self

    def __exit__(self, *_: object) -> None:
        self._spill.close()

    def add(self, matches: Matches) -> None:
        """Messages in any order."""
        rows = np.empty(matches.sent.size, self._ROW)
        rows["time"], rows["arrival"] = matches.sent, matches.received
        rows["peer"], rows["bytes"], rows["tag"] = matches.receiver, matches.bytes, matches.tag
        self._spill.add(rows, matches.sender, len(self._writer.locations))

    def keep(self) -> None:
        """Write what was added, each location's in the order in which it was added where times are equal."""
        for sender in range(len(self._writer.locations)):
            with closing(Sorted(self._spill.folder, ROWS)) as by_time:
                for rows in self._spill.parts(sender, ROWS) if self._spill.size(sender) else ():
                    by_time.add(rows)
                for rows in by_time.chunks():
                    columns = {name: rows[name].astype(dtype) for name, dtype in DERIVED["links"].items()}
                    self._writer.derive("links", sender, **columns)


def check_clocks(
    source: EventSource,
    progress: Progress | None = None,
    matched: Callable[[Matches], None] | None = None,
) -> ClockResult:
    """Compare the clocks of all processes, and find the constant shifts that reconcile them.

    Threads of one process share its clock and its shift. Memory: some `ROWS` rows, the channels of one
    location, and the bounds. `matched` is given every message whose two ends are known, once.
    """
    progress = progress or Progress()
    locations = len(source.locations)
    process = process_of(source)
    graph = _Bounds(int(process.max()) + 1 if locations else 0)
    nothing = np.zeros(locations, np.int64)
    tally = np.zeros(3, np.int64)

    def count(shift: Ints, bounds: _Bounds | None) -> tuple[int, int, int, int]:
        instances = wrong = messages = late = 0
        for c in match_collectives(source, progress=progress):
            progress.step(0, 0, "comparing clocks")
            instances += c.start.size - 1
            wrong += late_begins(c.start, c.begin + shift[c.location], c.end + shift[c.location])
            if bounds is not None:
                bounds.add_collectives(c.start, process[c.location], c.begin, c.end)
        for m in match_messages(source, progress=progress, tally=None if bounds is None else tally):
            progress.step(0, 0, "comparing clocks")
            messages += m.sent.size
            sure = m.certain > 0
            late += int((sure & (m.received + shift[m.receiver] < m.sent + shift[m.sender])).sum())
            if bounds is not None:
                sender, receiver, passed = process[m.sender], process[m.receiver], m.received - m.sent
                bounds.add_messages(sender[sure], receiver[sure], passed[sure])
                if matched is not None:
                    matched(m)
        return instances, messages, wrong, late

    instances, messages, wrong, late = count(nothing, graph)
    solution = graph.solve()
    shift = nothing
    repair: Literal["none", "shift", "impossible"] = "none"
    low, high = np.full(locations, -np.inf), np.full(locations, np.inf)
    if solution is not None:
        low, high = solution[1][process], solution[2][process]
    after = (wrong, late)
    if (wrong or late) and solution is None:
        repair = "impossible"
    elif (wrong or late) and solution is not None:
        repair = "shift"
        shift = solution[0][process]
        after = count(shift, None)[2:]
    sends, receives, unequal = tally.tolist()
    return ClockResult(
        checked=instances + messages > 0,
        collectives=instances,
        messages=messages,
        unmatched=(sends - messages, receives - messages),
        unequal=unequal,
        violations_before=(wrong, late),
        violations_after=after,
        repair=repair,
        shift=shift,
        half_width=(high - low) / 2,
        low=low,
        high=high,
    )


def process_of(source: EventSource) -> Ints:
    """(p,) number of the process of each location; the first location's process is 0. Locations
    without a rank are processes of their own."""
    ranks: dict[tuple[str, int], int] = {}
    return np.array(
        [
            ranks.setdefault(("rank", at.rank) if at.rank >= 0 else ("location", i), len(ranks))
            for i, at in enumerate(source.locations)
        ],
        np.int64,
    )


def address_of(source: EventSource) -> Ints:
    """(p,) the location by which messages name each one: itself, or the only one of its process they name.

    Formats whose messages name a process (a rank of MPI, a node of PICL) put one of its locations for it, so
    the others are never named; where messages name locations, those that have messages are. Nothing is read
    where only the first locations of processes have any.
    """
    own, process = np.arange(len(source.locations)), process_of(source)
    first = np.unique(process, return_index=True)[1][process]
    talking = np.array([source.rows("messages", i) > 0 for i in own.tolist()], bool)
    if not (talking & (first != own)).any():
        return own
    named = np.zeros(own.size, bool)
    for here in np.flatnonzero(talking).tolist():
        for (peer,) in source.blocks("messages", here, "peer"):
            named[peer[peer >= 0]] = True
    only = np.flatnonzero(named & (np.bincount(process, named)[process] == 1))
    address = np.full(own.size, -1)
    address[process[only]] = only
    return np.where(address[process] < 0, own, address[process])


# ------------------------------------------------------------------ matching


class _Channels:
    """Numbers names in the order of their first appearance; a name is a few numbers."""

    def __init__(self, width: int) -> None:
        self._slots = np.zeros(1 << 8, np.int64)
        self._known = np.zeros((1 << 7, width), np.int64)
        # Nobody can write a file whose names all want the same place.
        self._salt = np.uint64(int.from_bytes(os.urandom(8), "little"))
        self.used = 0

    def __call__(self, rows: Ints) -> Ints:
        """(n,) the numbers of rows (n, columns) that begin with a name."""
        found = np.empty(len(rows), np.int64)
        done = 0
        while done < len(rows):
            if 2 * self.used == self._slots.size:  # it is full, as far as it may be
                known, self._slots = self._known, np.zeros(4 * self._slots.size, np.int64)
                self._known = np.zeros((4 * self.used, known.shape[1]), np.int64)
                numbers = np.empty(len(known), np.int64)
                number_names(known, self._slots, self._known, 0, self._salt, numbers)
            more, self.used = number_names(
                rows[done:], self._slots, self._known, self.used, self._salt, found[done:]
            )
            done += more
        return found


@kernel
def number_names(
    rows: Ints, slots: Ints, known: Ints, used: int, salt: Any, found: Ints
) -> tuple[int, int]:  # fmt: skip
    """Numbers of names by open addressing (`slots` holds number + 1), until half of the slots are in use;
    how many rows that were, and how many names are known. Places depend on `salt`, numbers do not."""
    mask = slots.size - 1
    width = known.shape[1]
    for i in range(rows.shape[0]):
        at = np.int64(mixed(rows, i, width, salt)) & mask
        while slots[at] != 0:
            j = slots[at] - 1
            k = 0
            while k < width and known[j, k] == rows[i, k]:
                k += 1
            if k == width:
                break
            at = (at + 1) & mask
        if slots[at] == 0:
            if used == known.shape[0]:
                return i, used
            for k in range(width):
                known[used, k] = rows[i, k]
            used += 1
            slots[at] = used
        found[i] = slots[at] - 1
    return rows.shape[0], used


@inlined
def mixed(rows: Ints, i: int, width: int, salt: Any) -> Any:
    """A number of 31 bits, as good as by chance, that follows from the first numbers of a row and `salt`."""
    h = salt
    for k in range(width):
        h = (h ^ np.uint64(rows[i, k])) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    return h >> np.uint64(33)


@kernel
def choose_shares(rows: Ints, width: int, shares: int, found: Ints) -> None:
    """`found` (n,): in which of `shares` each of `rows` (n, columns) is, by its first `width` columns."""
    for i in range(rows.shape[0]):
        found[i] = np.int64(mixed(rows, i, width, np.uint64(0))) % shares


@kernel
def count_up(channel: Ints, following: Ints, found: Ints) -> None:
    """The next number of each channel, which moves on."""
    for i in range(channel.size):
        found[i] = following[channel[i]]
        following[channel[i]] += 1


class _Count:
    """Numbers what comes on each channel from 0 on."""

    def __init__(self, width: int) -> None:
        self._channels = _Channels(width)
        self._next = np.zeros(0, np.int64)

    def __call__(self, rows: Ints) -> Ints:
        channel = self._channels(rows)
        if self._next.size < self._channels.used:
            self._next = np.pad(self._next, (0, 2 * self._channels.used - self._next.size))
        found = np.empty_like(channel)
        count_up(channel, self._next, found)
        return found


def _in_shares(
    source: EventSource,
    table: str,
    rows: int,
    width: int,
    take: Callable[[int], Iterator[Ints]],
    progress: Progress | None,
) -> Iterator[Ints]:
    """What `take` finds in the rows of each location, in shares of about `rows`.

    `take` gives rows (n, columns), of which the first `width` numbers are a name; equal names come in one
    share, in the order of locations and in that of their rows. Every location is read once: what does not fit
    into one share waits in a temporary file.
    """
    places = [i for i in range(len(source.locations)) if source.rows(table, i)]
    shares = -(-sum(source.rows(table, i) for i in places) // rows)
    whole: list[Ints] = []
    spill = None
    with ExitStack() as stack:
        for number, i in enumerate(places):
            if progress is not None and number % _STEP == 0:
                progress.step(0, 0, "comparing clocks")
            for found in take(i):
                if shares == 1:
                    whole.append(found)
                    continue
                if spill is None:
                    spill = stack.enter_context(closing(_spill(found)))
                share = np.empty(len(found), np.int64)
                choose_shares(found, width, shares, share)
                spill.add(found.view(spill.dtype)[:, 0], share, shares)
        if whole:
            yield np.concatenate(whole)
        if spill is not None:
            for chosen in range(shares):
                yield spill.read(chosen)["columns"]


def _spill(rows: Ints) -> Spill:
    """For rows (n, columns) as these."""
    return Spill(Path(gettempdir()), np.dtype([("columns", "i8", (rows.shape[1],))]))


#: Columns of an end of a message: its channel, of which so many are one part (as yet its place in the
#: process), when it was, how much it carried, and whose it is: twice the location, and 1 more for a send.
_SENDER, _RECEIVER, _COMMUNICATOR, _TAG, _PART, _TIME, _BYTES, _END = range(8)
#: A message of one of the threads of a process.
_ROW = np.dtype([*TABLES["messages"].items(), ("location", "i8")], align=True)


def match_messages(
    source: EventSource,
    rows: int = ROWS,
    progress: Progress | None = None,
    tally: Ints | None = None,
) -> Iterator[Matches]:
    """Sends with their receives: the k-th with the k-th for each sender, receiver, communicator and tag.

    Non-blocking receives count in the order in which they were posted (MPI 4.0, section 3.5). Where messages
    name processes, channels are those of processes, in order of time over their threads (`address_of`); the
    ends are the threads all the same. Ends without a partner are left out. What is matched at a time are
    about `rows` rows, of a long channel a part. `tally` (3,) counts sends and receives, with a partner or
    without, and pairs of unequal length.
    """
    counted = np.zeros(3, np.int64) if tally is None else tally
    length = max(1, rows // PARTS)
    address = address_of(source)
    together: dict[int, list[int]] = {}
    for here, name in enumerate(address.tolist()):
        if source.rows("messages", here):
            together.setdefault(name, []).append(here)
    threads_of = {threads[0]: threads for threads in together.values()}

    def take(here: int) -> Iterator[Ints]:
        if here not in threads_of:  # it was among those of another
            return
        threads = threads_of[here]
        count = sum(source.rows("messages", thread) for thread in threads)
        counts = None if count <= length else (_Count(_PART), _Count(_PART))
        for found, outward in _ends(source, threads, int(address[here]), rows):
            found[:, _PART] = 0 if counts is None else counts[outward](found) // length
            yield found

    for found in _in_shares(source, "messages", rows, _PART + 1, take, progress):
        channels = _Channels(_PART + 1)
        channel = channels(found)
        matches = np.empty((len(Matches._fields), len(found) // 2), np.int64)
        yield Matches(*matches[:, : pair_up(channel, found, channels.used, matches, counted)])


def _rows(source: EventSource, threads: list[int], rows: int) -> Iterator[tuple[NDArray[Any], ...]]:
    """The columns of ``messages`` and their locations, by time (and thread, where times are equal)."""
    if len(threads) == 1:
        for block in source.blocks("messages", threads[0], *TABLES["messages"], rows=rows):
            yield *block, np.full(block[0].size, threads[0], np.int64)
        return
    waiting: list[NDArray[Any]] = []  # most processes have so few rows that no file is needed
    held = 0
    with closing(Sorted(Path(gettempdir()), rows)) as by_time:
        for thread in threads:
            for block in source.blocks("messages", thread, *TABLES["messages"], rows=rows):
                part = np.empty(block[0].size, _ROW)
                for name, column in zip(TABLES["messages"], block, strict=True):
                    part[name] = column
                part["location"] = thread
                waiting.append(part)
                held += part.size
                if held >= rows:
                    by_time.add(joined(waiting))
                    waiting, held = [], 0
        if waiting:
            by_time.add(joined(waiting))
            waiting = []
        for part in by_time.chunks():
            yield tuple(np.ascontiguousarray(part[name]) for name in _ROW.names or ())


def _ends(source: EventSource, threads: list[int], name: int, rows: int) -> Iterator[tuple[Ints, bool]]:
    """Sends (True) and receives (n, columns) of threads that messages name by one, each in matching order,
    about `rows` at most at a time."""
    count = sum(source.rows("messages", thread) for thread in threads)
    posted = np.empty((2, 0), np.int64)  # request and row of the receives that are posted and not over
    row = 0
    with ExitStack() as stack:
        late = None  # receives, by where they were posted
        for *block, request, location in _rows(source, threads, rows):
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


@kernel
def tabulate(
    name: int, time: Any, kind: Any, peer: Any, comm: Any, tag: Any, size: Any, location: Any, place: Any,
    sends: Ints, receives: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Put the ends of messages among rows into two tables, by the name of their process; how many these
    are."""
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


def _posted(kind: NDArray[Any], request: NDArray[Any], row: int, posted: Ints) -> tuple[Ints, Ints]:
    """The place (n,) of each row among all of the process: a receive takes that of the latest posting of
    its request. The first is at `row`; `posted` as before and after these rows."""
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
    taken = same & post[former] & ~post[latter]
    order[waits[latter[taken] - before]] = place[former[taken]]
    last = by_request[np.append(~same, True)]
    last = last[post[last]]
    return order, np.stack([requests[last], place[last]])


def _in_order(ends: Ints) -> Ints:
    place = ends[:, _PART]
    return ends if (place[1:] > place[:-1]).all() else ends[np.argsort(place, kind="stable")]


@kernel
def pair_up(channel: Ints, ends: Ints, channels: int, matches: Ints, tally: Ints) -> int:
    """The k-th send with the k-th receive of every channel, in the order of the receives.

    channel (n,) of each of `ends` (n, columns); matches (columns of `Matches`, n // 2), result. How many.
    tally (3,): sends, receives and pairs of unequal length are added.

    Where several threads receive on a channel, the order of their receives is not defined (MPI 4.0, section
    3.5). If they are in order of time, no pair contradicts the clocks that another order would not; else
    pairs are not `certain`.
    """
    start = np.zeros(channels + 1, np.int64)
    for i in range(channel.size):
        start[channel[i] + 1] += ends[i, _END] & 1
    for c in range(channels):
        start[c + 1] += start[c]
    queue = np.empty(start[channels], np.int64)
    tally[0] += queue.size
    tally[1] += channel.size - queue.size
    sends, receives = start.copy(), start.copy()
    before = np.full(channels, -1, np.int64)  # the receive before
    several, back = np.zeros(channels, np.bool_), np.zeros(channels, np.bool_)
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
            tally[2] += ends[sent, _BYTES] != ends[i, _BYTES]
            n += 1
    return n


class Instances(NamedTuple):
    """Collective operations of two or more members: the i-th has the rows start[i] to start[i + 1].

    location, begin, end, root : of each row; `root` is a location or -1.
    operation : of each instance, index into the texts of the source.
    disagreeing : rows that were left out, as members name different operations.
    """

    start: Ints
    location: Ints
    begin: Ints
    end: Ints
    root: Ints
    operation: Ints
    disagreeing: int


def match_collectives(
    source: EventSource,
    operations: Collection[str] = SYNCHRONISING,
    rows: int = ROWS,
    progress: Progress | None = None,
) -> Iterator[Instances]:
    """Operations of the given names: the k-th of them on a communicator, wherever all members name the
    same one. What is matched at a time are about `rows` rows."""
    wanted = np.array([text in operations for text in source.texts], bool)

    def take(here: int) -> Iterator[Ints]:
        count = _Count(1)
        columns = ("communicator", "operation", "begin", "end", "root")
        for block in source.blocks("collectives", here, *columns, rows=rows):
            which = np.flatnonzero(wanted[block[1]] & (block[0] != NO_COMMUNICATOR))
            comm, operation, begin, end, root = (column[which].astype(np.int64) for column in block)
            k = count(comm[:, None])
            yield np.stack([comm, k, operation, np.full_like(k, here), begin, end, root], axis=1)

    for found in _in_shares(source, "collectives", rows, 2, take, progress):
        comm, k, operation, here, begin, end, root = np.ascontiguousarray(found.T)
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
        kept = agreed & (members > 1)
        order = order[np.repeat(kept, members)]
        start = np.r_[0, np.cumsum(members[kept])]
        yield Instances(
            start, here[order], begin[order], end[order], root[order], operation[new][kept],
            int(members[~agreed].sum()),
        )  # fmt: skip


@kernel
def late_begins(start: Ints, begin: Ints, end: Ints) -> int:
    """In how many instances the latest begin lies after the earliest end."""
    wrong = 0
    for i in range(start.size - 1):
        latest, earliest = begin[start[i]], end[start[i]]
        for row in range(start[i] + 1, start[i + 1]):
            latest = max(latest, begin[row])
            earliest = min(earliest, end[row])
        wrong += latest > earliest
    return wrong


# ------------------------------------------------------------------ bounds and their solution


class _Bounds:
    """The constraints d_r - d_s <= B[r, s] between `n` processes."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.nodes = n  # beyond n: one for each collective, if there are too many processes for a matrix
        self.matrix = np.full((n, n), INFINITE, np.int64) if n <= DENSE else None
        self.edges: list[Ints] = [np.empty((3, 0), np.int64)]

    def add_messages(self, sender: Ints, receiver: Ints, travel: Ints) -> None:
        if self.matrix is not None:
            lower(self.matrix, sender, receiver, travel)
            return
        order = np.lexsort((receiver, sender))
        sender, receiver, travel = sender[order], receiver[order], travel[order]
        new = np.flatnonzero(np.r_[sender.size > 0, (np.diff(sender) != 0) | (np.diff(receiver) != 0)])
        if new.size:
            self.edges.append(np.stack([sender[new], receiver[new], np.minimum.reduceat(travel, new)]))

    def add_collectives(self, start: Ints, process: Ints, begin: Ints, end: Ints) -> None:
        if self.matrix is not None:
            lower_by_collectives(self.matrix, start, process, begin, end)
            return
        # begin_r + d_r <= x <= end_s + d_s: with x, the instant of the operation, as a node of its own
        # an instance of p members needs 2p edges instead of p * p.
        x = self.nodes + np.repeat(np.arange(start.size - 1), np.diff(start))
        self.nodes += start.size - 1
        self.edges += [np.stack([process, x, -begin]), np.stack([x, process, end])]

    def solve(self) -> tuple[Ints, NDArray[np.float64], NDArray[np.float64]] | None:
        """Shift, lowest and highest shift of each process relative to the first; None: there is none.

        A process that is tied to the first one from both sides gets the midpoint of its interval; all
        midpoints together satisfy all bounds, being the mean of two solutions. Others get the shift
        nearest to none that the bounds leave.
        """
        if not self.n:
            return np.empty(0, np.int64), np.empty(0), np.empty(0)
        relax: Callable[[Ints, bool], Ints | None]
        if self.matrix is not None:
            closed = self.matrix
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
                found = labels.copy()
                return found if bellman_ford(*((s, r) if reverse else (r, s)), weight, found) else None

        here = np.arange(self.nodes)
        first = np.where(here == 0, 0, INFINITE)
        above, below = relax(first, False), relax(first, True)  # d_r <= above, d_r >= -below
        if above is None or below is None or above[0] < 0 or below[0] < 0:
            return None
        high, low = above < INFINITE, below < INFINITE
        shift = np.zeros(self.nodes, np.int64)
        tied = high & low
        shift[tied] = (above[tied] - below[tied]) // 2  # rounded alike, differences keep their bounds
        only_high = high & ~low
        labels = relax(np.where(tied, shift, np.where(only_high, 0, INFINITE)), False)
        if labels is None:
            return None
        shift[only_high] = labels[only_high]
        labels = relax(np.where(high, -shift, 0), True)
        if labels is None:
            return None
        shift[~high] = -labels[~high]
        n = self.n
        return (
            shift[:n],
            np.where(low, -below.astype(np.float64), -np.inf)[:n],
            np.where(high, above.astype(np.float64), np.inf)[:n],
        )


@kernel
def lower(bounds: Ints, r: Ints, s: Ints, weight: Ints) -> None:
    """Bounds (processes, processes) by messages (n,): a travel from r to s bounds shift r less shift s."""
    for i in range(r.size):
        if r[i] != s[i] and weight[i] < bounds[r[i], s[i]]:
            bounds[r[i], s[i]] = weight[i]


@kernel
def lower_by_collectives(bounds: Ints, start: Ints, process: Ints, begin: Ints, end: Ints) -> None:
    """The same by collectives, of which `start` (instances + 1,) tells the members (n,): none may have ended
    before another has begun."""
    for i in range(start.size - 1):
        for a in range(start[i], start[i + 1]):
            r, own_begin = process[a], begin[a]
            for b in range(start[i], start[i + 1]):
                s = process[b]
                if r != s and end[b] - own_begin < bounds[r, s]:
                    bounds[r, s] = end[b] - own_begin


@kernel
def close(bounds: Ints) -> None:
    """Floyd-Warshall: the tightest bounds that follow from all together."""
    n = bounds.shape[0]
    for k in range(n):
        for r in range(n):
            first = bounds[r, k]
            if first < INFINITE:
                for s in range(n):
                    if bounds[k, s] < INFINITE and first + bounds[k, s] < bounds[r, s]:
                        bounds[r, s] = first + bounds[k, s]


@kernel
def nearest(closed: Ints, labels: Ints) -> Ints:
    """min over s of closed[r, s] + labels[s]."""
    n = labels.size
    found = np.full(n, INFINITE, np.int64)
    for r in range(n):
        for s in range(n):
            if closed[r, s] < INFINITE and labels[s] < INFINITE:
                found[r] = min(found[r], closed[r, s] + labels[s])
    return found


@kernel
def bellman_ford(r: Ints, s: Ints, weight: Ints, labels: Ints) -> bool:
    """Lower labels[r] to labels[s] + weight until nothing changes; False on a negative cycle.

    Every second pass goes backwards (Yen 1970), so that chains of neighbours need few passes and not one for
    each process.
    """
    first = labels[0]
    for turn in range(labels.size):
        changed = False
        for i in range(r.size):
            e = i if turn % 2 == 0 else r.size - 1 - i
            if labels[s[e]] < INFINITE and labels[s[e]] + weight[e] < labels[r[e]]:
                labels[r[e]] = labels[s[e]] + weight[e]
                changed = True
        if not changed:
            return True
        if labels[0] < first and first == 0:
            return False  # the first process would have to be earlier than itself
    return False

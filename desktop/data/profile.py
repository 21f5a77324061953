"""Summaries of every location's call paths and messages, made on import, and positions in them.

While events are replayed on import (`desktop.data.digest`), `PathNotes` notes every `ROWS` rows what was
added to each call path since the last note. The exact profile up to any time is the sum of the notes before
it and a replay of less than one block of rows (`Profile.at`); that of a range is the difference of two.
Messages are summed up in the same way, by partner.

Tables (rows belong to their location)::

    paths    parent, region              node 1, 2, ... of the tree; parent 0: no region, -1: folded
    profile  row, time, top, ...         before event `row`, the last one being at `time`, and the path to
                                         node `top` being open: ticks and calls of `node` since the last note
    folded   row, node                   what is open inside `top` at that row, but folded
    traffic  row, time, peer, ...        before message `row`, the last one being at `time`: number and bytes
                                         of messages sent to and received from `peer` since the last note

The activity of a path follows from the user's rules, so it is not part of the notes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from typing import NamedTuple

import numpy as np

from desktop.core import callpaths
from desktop.core.arrays import AnyArray, Bytes, Ints
from desktop.core.jit import arithmetic, kernel, put_in_order
from desktop.core.open_regions import OpenRegions, PathRoom, no_classes
from desktop.data import memory
from desktop.data.digest import ROWS, DerivedRows, DigestTarget, EventDigest, Events, States
from desktop.data.events import MessageKind
from desktop.data.store import DERIVED, TraceStore
from desktop.progress import Progress

#: A note of many nodes is delayed until it is small compared with the rows.
ROWS_FOR_EACH = 4
#: Most call paths of a location that are distinguished.
PATHS = 1 << 14
#: Notes (in rows) that are collected before they are written.
_WAITING = 1 << 14
#: Share of the memory for caches that positions kept by a `Profile` may take.
KEPT = 0.5

FOLDED_PATHS = "call paths folded"


class _Notes:
    """Collected rows of a derived table: (columns, room), of which `used` (1,) are filled."""

    def __init__(self, target: DigestTarget, table: str) -> None:
        self._target, self._table = target, table
        self.used = np.zeros(1, np.int64)
        self.rows = np.empty((len(DERIVED[table]), _WAITING), np.int64)

    def make_room(self, location: int, rows: int) -> None:
        """Make space for `rows` more rows."""
        if int(self.used[0]) + rows > self.rows.shape[1]:
            self.flush(location)
            if rows > self.rows.shape[1]:
                self.rows = np.empty((self.rows.shape[0], rows), np.int64)

    def flush(self, location: int) -> None:
        used = int(self.used[0])
        if used:
            types = zip(DERIVED[self._table].items(), self.rows, strict=True)
            columns = {name: row[:used].astype(dtype) for (name, dtype), row in types}
            self._target.derive(self._table, location, **columns)
        self.used[0] = 0


class PathNotes:
    """Notes on call paths, from the replay by `desktop.data.digest`. Memory: the notes of one location."""

    def __init__(self, target: DigestTarget) -> None:
        self._target, self.limit = target, PATHS
        self._profile = _Notes(target, "profile")
        self._folded = _Notes(target, "folded")
        self._noted = np.zeros(1, np.int64)
        self._folding = 0

    def begin(self, location: int, first: int) -> None:
        self._location, self._noted[0] = location, 0
        self._profile.make_room(location, 1)
        self._profile.rows[:, self._profile.used[0]] = 0, first, 0, 0, 0, 0
        self._profile.used += 1

    def _room(self, regions: OpenRegions) -> PathRoom:
        profile, folded = self._profile, self._folded
        profile.make_room(self._location, regions.nodes)
        folded.make_room(self._location, regions.folded)
        return PathRoom(self._noted, profile.used, profile.rows, folded.used, folded.rows)

    def replay(self, row: int, regions: OpenRegions, events: Events, states: States) -> bool:
        return regions.feed_noting(row, events, states, (ROWS, ROWS_FOR_EACH), lambda: self._room(regions))

    def close(self, row: int, regions: OpenRegions) -> None:
        regions.note(row, self._room(regions))
        self._profile.flush(self._location)
        self._folded.flush(self._location)
        tree = regions.paths.tree[:, 1 : regions.nodes]
        if tree.size:
            self._target.derive(
                "paths", self._location, parent=tree[0].astype(np.int32), region=tree[1].astype(np.uint32)
            )
        self._folding += regions.folds

    def finish(self) -> None:
        """All locations are complete: write the rest."""
        if self._folding:
            self._target.report.add(
                FOLDED_PATHS,
                "notice",
                f"Locations call regions on more than {PATHS} paths; the calls on further paths are known by "
                "region only, and are missing from the inclusive time of their callers.",
                count=self._folding,
            )


class TrafficDigest:
    """A `desktop.data.store.Digest`: notes on messages. Memory: the notes of one location."""

    def __init__(self, target: DigestTarget) -> None:
        self._target = target
        self._location = -1
        self._state = np.zeros(5, np.int64)
        self._sums = np.zeros((4, 1), np.int64)
        # Partners with messages since the last note, so that not all are searched.
        self._met = np.empty(1, np.int64)
        self._notes = _Notes(target, "traffic")

    def take(self, table: str, location: int, block: Mapping[str, AnyArray]) -> None:
        if table != "messages":
            return
        if location != self._location:
            self.finish()
            self._location = location
        peers = len(self._target.locations) + 1
        if peers > self._sums.shape[1]:
            self._sums = np.pad(self._sums, ((0, 0), (0, 2 * peers - self._sums.shape[1])))
            self._met = np.pad(self._met, (0, 2 * peers - self._met.size))
        # Fields of records, as importers leave them, would need a kernel of their own.
        columns = [np.ascontiguousarray(block[name]) for name in ("time", "kind", "peer", "bytes")]
        self._state[_AT] = 0
        while not note_messages(*columns, ROWS, ROWS_FOR_EACH, *self._room()):
            pass

    def _room(self) -> tuple[AnyArray, ...]:
        self._notes.make_room(self._location, int(self._state[_MEETINGS]) + 1)
        return self._sums, self._met, self._state, self._notes.used, self._notes.rows

    def finish(self) -> None:
        """The location's messages are complete: write the rest."""
        if self._location < 0:
            return
        note_traffic(0, 0, *self._room())
        self._notes.flush(self._location)
        self._location = -1
        self._state[:] = 0

    def release(self) -> None: ...


_SEND, _ISEND = int(MessageKind.SEND), int(MessageKind.ISEND)
_RECV, _IRECV = int(MessageKind.RECV), int(MessageKind.IRECV)


#: State of notes on messages: next row of a block, messages of the location, how many of them are noted,
#: partners since then, time of the last one.
_AT, _MESSAGES, _NOTED, _MEETINGS, _TIME = range(5)


@arithmetic
def note_traffic(
    at_least: int, for_each: int, sums: Ints, met: Ints, state: Ints, used: Ints, notes: Ints
) -> bool:
    """Write the sums (4, partners), by rising partner, and clear them, if there are `at_least` messages, and
    `for_each` for each partner; False if there is no space. notes (7, room), of which `used` (1,) are filled.
    """
    rows, meetings = state[_MESSAGES] - state[_NOTED], state[_MEETINGS]
    if rows == 0 or rows < at_least or rows < for_each * meetings:
        return True
    if used[0] + max(meetings, 1) > notes.shape[1]:
        return False
    put_in_order(met, meetings)
    for i in range(max(meetings, 1)):
        at = met[i] if meetings else 0
        notes[0, used[0]] = state[_MESSAGES]
        notes[1, used[0]] = state[_TIME]
        notes[2, used[0]] = at - 1
        for k in range(4):
            notes[3 + k, used[0]] = sums[k, at]
            sums[k, at] = 0
        used[0] += 1
    state[_MEETINGS] = 0
    state[_NOTED] = state[_MESSAGES]
    return True


@arithmetic
def note_messages(
    time: Ints, kind: Bytes, peer: AnyArray, size: Ints, every: int, for_each: int, sums: Ints, met: Ints,
    state: Ints, used: Ints, notes: Ints,
) -> bool:  # fmt: skip
    """Add messages, from row ``state[_AT]`` on, to sent, bytes sent, received, bytes received (4, partners)
    of partner + 1; calls `note_traffic` at the end and after `every` rows. False if it has no space. met
    (partners,): those with messages.
    """
    while True:
        begin = state[_AT]
        if begin and not note_traffic(every, for_each, sums, met, state, used, notes):
            return False
        if begin == time.size:
            return True
        end = min(begin + every, time.size)
        for i in range(begin, end):
            at = peer[i] + 1
            if kind[i] == _SEND or kind[i] == _ISEND:
                k = 0
            elif kind[i] == _RECV or kind[i] == _IRECV:
                k = 2
            else:
                continue
            if sums[0, at] == 0 and sums[2, at] == 0:
                met[state[_MEETINGS]] = at
                state[_MEETINGS] += 1
            sums[k, at] += 1
            sums[k + 1, at] += size[i]
        state[_MESSAGES] += end - begin
        state[_TIME] = time[end - 1]
        state[_AT] = end


@kernel
def add_notes(noted: Ints, place: Ints, begin: int, end: int, sums: Ints) -> None:
    """Add rows `begin` to `end` of the notes (4, rows) to the sums (4, partners)."""
    for k in range(sums.shape[0]):
        for i in range(begin, end):
            sums[k, place[i]] += noted[k, i]


@kernel
def all_below(values: AnyArray, start: Ints, count: Ints, limit: Ints) -> bool:
    """Whether the values of each location, `count` from `start` on, are at least 0 and below its limit."""
    good = True
    for i in range(start.size):
        for k in range(start[i], start[i] + count[i]):
            value = np.int64(values[k])
            good &= (value >= 0) & (value < limit[i])
    return good


@kernel
def add_until(time: Ints, kind: Bytes, peer: AnyArray, size: Ints, cut: int, peers: Ints, sums: Ints) -> bool:
    """Add the messages before `cut` to the sums (4, partners); False if one is with none of `peers`."""
    for i in range(time.size):
        if time[i] >= cut:
            break
        if kind[i] == _SEND or kind[i] == _ISEND:
            k = 0
        elif kind[i] == _RECV or kind[i] == _IRECV:
            k = 2
        else:
            continue
        at = np.searchsorted(peers, peer[i])
        if at == peers.size or peers[at] != peer[i]:
            return False
        sums[k, at] += 1
        sums[k + 1, at] += size[i]
    return True


# ------------------------------------------------------------------ positions


_Position = tuple[Ints, Ints]


class Tree(NamedTuple):
    """Call paths of a location; node 0 is no region.

    tree : (2, nodes) parent and region. A folded node's parent is -1.
    folding : whether some are folded.
    """

    tree: Ints
    folding: bool


class Profile:
    """The notes of a store, and the profile at any time from them.

    For a store imported before there were notes, they are made in one pass and kept in memory. Several
    threads may query at once, each other locations.

    Raises
    ------
    StoreError : the notes contradict the events (a damaged file).
    """

    def __init__(self, store: TraceStore, progress: Progress | None = None) -> None:
        self._store = store
        self._idle: list[OpenRegions] = []  # currently unused
        self._lock = Lock()
        self._positions = memory.Recent[tuple[str, int, int], _Position](
            lambda position: sum(part.nbytes for part in position), lambda: KEPT * memory.limit()
        )
        whole: TraceStore | DerivedRows = store
        missing = not store.has("profile") and store.has("events")
        if missing or (not store.has("traffic") and store.has("messages")):

            def digests(target: DigestTarget) -> tuple[EventDigest, TrafficDigest]:
                return EventDigest(target, notes=PathNotes(target)), TrafficDigest(target)

            whole = DerivedRows(store, digests, progress or Progress(), "call paths")
        self._paths = _Table(whole, "paths")
        self._profile = _Table(whole, "profile")
        self._folded = _Table(whole, "folded")
        self._traffic = _Table(whole, "traffic")
        self._check()

    def _check(self) -> None:
        """Check that all references are valid, so that kernels may use them as unchecked indices."""
        nodes = self._paths.count + 1
        events, messages = (self._store.places(table)[:, 1] for table in ("events", "messages"))
        good = True
        for table, rows in ((self._profile, events), (self._folded, events), (self._traffic, messages)):
            good &= all_below(table.columns["row"], table.start, table.count, rows + 1)
            for name in {"node", "top"} & table.columns.keys():
                good &= all_below(table.columns[name], table.start, table.count, nodes)
        # Notes of locations with events say where they begin and end.
        ends = (self._profile.start + self._profile.count)[events > 0] - 1
        good &= bool(((events > 0) == (self._profile.count > 0)).all())
        good = good and bool((self._profile.columns["row"][ends] == events[events > 0]).all())
        if not good:
            raise self._store.damaged("its call paths are damaged")

    def tree(self, location: int) -> Tree:
        """The call paths of a location."""
        paths = self._paths.of(location)
        tree = np.empty((2, paths["parent"].size + 1), np.int64)
        tree[:, 0] = -1
        tree[0, 1:], tree[1, 1:] = paths["parent"], paths["region"]
        return Tree(tree, bool((tree[0, 1:] < 0).any()))

    def at(self, location: int, cuts: Ints) -> tuple[Ints, Ints]:
        """(cuts, nodes) ticks on each path up to each of `cuts`, and calls before it.

        Ticks count from the first event; before it they are negative, so only differences between two cuts
        are meaningful. `cuts`: distinct ticks as recorded.
        """
        positions = self._remembered("events", location, cuts, self._find)
        return np.stack([ticks for ticks, _ in positions]), np.stack([calls for _, calls in positions])

    def _remembered(
        self, table: str, location: int, cuts: Ints, find: Callable[[int, Ints], list[_Position]]
    ) -> list[_Position]:
        """Positions of cuts: cached ones, and those computed by `find` from rising cuts."""
        names = [(table, location, cut) for cut in cuts.tolist()]
        positions = list(map(self._positions.get, names))
        missing = np.array([i for i, position in enumerate(positions) if position is None], np.int64)
        if missing.size:
            order = missing[np.argsort(cuts[missing], kind="stable")]
            for i, position in zip(order, find(location, cuts[order]), strict=True):
                positions[i] = position
                self._positions.put(names[i], position)
        return [position for position in positions if position is not None]

    def _find(self, location: int, cuts: Ints) -> list[_Position]:
        """Positions of rising cuts."""
        about = self._store.locations[location]
        assert about.first is not None and about.last is not None
        times = np.clip(cuts, about.first, about.last)
        notes = self._profile.of(location)
        tree = self.tree(location).tree
        nodes = tree.shape[1]
        ticks, calls = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
        if not notes["row"].size:
            return [(np.array([time - about.first]), calls) for time in times.tolist()]
        begins, ends, before = _noted_before(notes, cuts)
        columns = [np.ascontiguousarray(notes[name]) for name in ("node", "ticks", "calls")]
        folded = self._folded.of(location)
        with self._lock:
            regions = (
                self._idle.pop() if self._idle else OpenRegions(no_classes(max(1, len(self._store.regions))))
            )
        if not regions.follow(tree):
            raise self._store.damaged("its call paths are damaged")
        positions = []
        summed = 0
        for cut, time, count in zip(cuts.tolist(), times.tolist(), before.tolist(), strict=True):
            if not count:
                position = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
                position[0][0] = time - notes["time"][0]
                positions.append(position)
                continue
            upto = int(ends[count - 1])
            callpaths.accumulate(*(column[summed:upto] for column in columns), ticks, calls)
            summed = upto
            note = int(begins[count - 1])
            row = int(notes["row"][note])
            a, b = np.searchsorted(folded["row"], [row, row + 1])
            inside = folded["node"][a:b].astype(np.int64)
            path = np.concatenate([callpaths.path(int(notes["top"][note]), tree), inside])
            regions.reopen(tree[1, path], path)
            regions.resume(int(notes["time"][note]), ticks, calls)
            if count < begins.size:
                end = int(notes["row"][begins[count]])
                when, kind, region = self._store.part("events", location, row, end, "time", "kind", "region")
                if not regions.feed(when, kind, region, cut):
                    raise self._store.damaged("the call paths contradict the events")
            now, node = regions.now
            regions.paths.ticks[node] += time - now
            positions.append((regions.paths.ticks.copy(), regions.paths.calls.copy()))
        regions.reopen(*np.empty((2, 0), np.int64))
        self._idle.append(regions)
        return positions

    def traffic(self, location: int, cuts: Ints) -> tuple[Ints, Ints]:
        """Partners (k,) of a location, ascending, and (4, cuts, k) the number of messages sent, bytes sent,
        messages received and bytes received before `cuts`: distinct ticks as recorded."""
        positions = self._remembered("messages", location, cuts, self._find_messages)
        return positions[0][0], np.stack([counts for _, counts in positions], axis=1)

    def _find_messages(self, location: int, cuts: Ints) -> list[_Position]:
        """Partners and counts (4, partners) at rising cuts."""
        notes = self._traffic.of(location)
        peers = np.unique(notes["peer"]).astype(np.int64)
        if not peers.size:
            return [(peers, np.zeros((4, 0), np.int64))] * cuts.size
        positions = []
        place = np.searchsorted(peers, notes["peer"])
        noted = np.stack([notes[name] for name in ("sent", "bytes_sent", "received", "bytes_received")])
        begins, ends, before = _noted_before(notes, cuts)
        sums = np.zeros((4, peers.size), np.int64)
        summed = 0
        for cut, count in zip(cuts.tolist(), before.tolist(), strict=True):
            upto = int(ends[count - 1]) if count else 0
            add_notes(noted, place, summed, upto, sums)
            summed = upto
            counts = sums.copy()
            if count < begins.size:
                row = int(notes["row"][begins[count - 1]]) if count else 0
                end = int(notes["row"][begins[count]])
                part = self._store.part("messages", location, row, end, "time", "kind", "peer", "bytes")
                if not add_until(*part, cut, peers, counts):
                    raise self._store.damaged("its call paths are damaged")
            positions.append((peers, counts))
        return positions


def _noted_before(notes: Mapping[str, AnyArray], cuts: Ints) -> tuple[Ints, Ints, Ints]:
    """Begin and end of the rows of each note (notes,), and number of notes before each cut (cuts,)."""
    begins = np.flatnonzero(np.r_[True, notes["row"][1:] != notes["row"][:-1]])
    ends = np.r_[begins[1:], notes["row"].size]
    return begins, ends, np.searchsorted(notes["time"][begins], cuts, side="left")


class _Table:
    """A derived table in memory."""

    def __init__(self, store: TraceStore | DerivedRows, table: str) -> None:
        names = tuple(DERIVED[table])
        index, columns = store.whole(table, *names)
        self.start, self.count = index[:, 0], index[:, 1]
        self.columns = dict(zip(names, columns, strict=True))

    def of(self, location: int) -> dict[str, AnyArray]:
        begin = self.start[location]
        end = begin + self.count[location]
        return {name: column[begin:end] for name, column in self.columns.items()}

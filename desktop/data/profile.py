"""Summaries of every location's call paths and messages, made on import, and positions in them.

While events are replayed on import (`desktop.data.digest`), `PathNotes` notes every `ROWS` rows what has come
to each call path since the last time. The exact profile up to any time is the sum of
the notes before it and a replay of the rows of less than one block (`Profile.at`); that of a range is the
difference of two. Messages are summed up in the same way, by partner.

Tables (rows belong to their location)::

    paths    parent, region              node 1, 2, ... of the tree; parent 0: no region, -1: folded
    profile  row, time, top, ...         before event `row`, the last one being at `time`, and the path to
                                         node `top` being open: ticks and calls of `node` since the last note
    folded   row, node                   what is open inside `top` at that row, but folded
    traffic  row, time, peer, ...        before message `row`, the last one being at `time`: number and bytes
                                         of messages sent to and received from `peer` since the last note

Which activity a path is follows from the user's rules, so they are no part of the notes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from desktop.core import callpaths
from desktop.core.jit import kernel
from desktop.core.open_regions import OpenRegions, no_classes
from desktop.data import memory
from desktop.data.digest import ROWS, EventDigest
from desktop.data.events import EventSource, ImportReport, Location, MessageKind, Region
from desktop.data.store import DERIVED, TraceStore
from desktop.errors import StoreError
from desktop.progress import Progress

Ints = NDArray[np.int64]

#: A note of many nodes waits until it is small beside the rows.
ROWS_FOR_EACH = 4
#: Call paths of a location that are kept apart.
PATHS = 1 << 14
#: Notes (in rows) that are collected before they are handed on.
_WAITING = 1 << 14
#: What positions that a `Profile` keeps may take of all memory for caches.
KEPT = 0.5

FOLDED_PATHS = "call paths folded"


class Summaries(Protocol):
    """Where notes go; implemented by `desktop.data.store.StoreWriter`."""

    @property
    def regions(self) -> Sequence[Region]: ...

    @property
    def locations(self) -> Sequence[Location]: ...

    @property
    def report(self) -> ImportReport: ...

    def derive(self, table: str, location: int, **columns: NDArray[Any]) -> None: ...


class TrafficDigest:
    """A `desktop.data.store.Digest`: notes on messages. Memory: those of one location."""

    def __init__(self, target: Summaries) -> None:
        self._traffic = _TrafficNotes(target)

    def take(self, table: str, location: int, block: Mapping[str, NDArray[Any]]) -> None:
        if table == "messages":
            self._traffic.take(location, block["time"], block["kind"], block["peer"], block["bytes"])

    def finish(self) -> None:
        self._traffic.close()

    def release(self) -> None: ...


class _Notes:
    """Rows of a derived table that wait to be handed on."""

    def __init__(self, target: Summaries, table: str) -> None:
        self._target, self._table = target, table
        self._rows = 0
        self._make_room(_WAITING)

    def _make_room(self, rows: int) -> None:
        self._columns = {name: np.empty(rows, dtype) for name, dtype in DERIVED[self._table].items()}
        self._room = rows

    def add(self, location: int, rows: int, *columns: Any) -> None:
        """So many rows; of each column its values, or one value for all rows."""
        if self._rows + rows > self._room:
            self.flush(location)
            if rows > self._room:
                self._make_room(rows)
        part = slice(self._rows, self._rows + rows)
        for column, values in zip(self._columns.values(), columns, strict=True):
            column[part] = values
        self._rows += rows

    def flush(self, location: int) -> None:
        if self._rows:
            rows = {name: column[: self._rows].copy() for name, column in self._columns.items()}
            self._target.derive(self._table, location, **rows)
        self._rows = 0


class PathNotes:
    """Notes on call paths, while `desktop.data.digest` replays the events. Memory: those of one location."""

    def __init__(self, target: Summaries) -> None:
        self._target, self.limit = target, PATHS
        self._profile = _Notes(target, "profile")
        self._folded = _Notes(target, "folded")
        self._folding = 0

    def begin(self, location: int, first: int) -> None:
        self._location, self._noted = location, 0
        self._profile.add(location, 1, 0, first, 0, 0, 0, 0)

    def note(self, row: int, regions: OpenRegions, at_any_price: bool = False) -> None:
        rows = row - self._noted
        ticks, calls = regions.ticks[: regions.nodes], regions.calls[: regions.nodes]
        changed = np.flatnonzero(ticks | calls)
        if not rows or (not at_any_price and rows < ROWS_FOR_EACH * (changed.size + regions.folded)):
            return
        if not changed.size:
            changed = np.zeros(1, np.int64)
        top, folded = regions.path()
        time, _ = regions.now
        self._profile.add(
            self._location, changed.size, row, time, top, changed, ticks[changed], calls[changed]
        )
        ticks[changed] = 0
        calls[changed] = 0
        if folded.size:
            self._folded.add(self._location, folded.size, row, folded)
        self._noted = row

    def close(self, regions: OpenRegions) -> None:
        self._profile.flush(self._location)
        self._folded.flush(self._location)
        tree = regions.tree[:, 1 : regions.nodes]
        if tree.size:
            self._target.derive(
                "paths", self._location, parent=tree[0].astype(np.int32), region=tree[1].astype(np.uint32)
            )
        self._folding += regions.folds

    def finish(self) -> None:
        """All locations are complete."""
        if self._folding:
            self._target.report.add(
                FOLDED_PATHS,
                "notice",
                f"Locations call regions on more than {PATHS} paths; the calls on further paths are known by "
                "region only, and are missing from the inclusive time of their callers.",
                count=self._folding,
            )


class _TrafficNotes:
    def __init__(self, target: Summaries) -> None:
        self._target = target
        self._location = -1
        self._rows = 0
        self._noted = 0
        self._time = 0
        self._sums = np.zeros((4, 1), np.int64)
        # Those with whom there were messages since the last note, so that nobody looks through all.
        self._met = np.empty(1, np.int64)
        self._meetings = 0
        self._notes = _Notes(target, "traffic")

    def take(
        self, location: int, time: Ints, kind: NDArray[Any], peer: NDArray[Any], size: NDArray[Any]
    ) -> None:
        if location != self._location:
            self.close()
            self._location = location
        peers = len(self._target.locations) + 1
        if peers > self._sums.shape[1]:
            self._sums = np.pad(self._sums, ((0, 0), (0, 2 * peers - self._sums.shape[1])))
            self._met = np.pad(self._met, (0, 2 * peers - self._met.size))
        for begin in range(0, time.size, ROWS):
            part = slice(begin, begin + ROWS)
            # Fields of records, as importers leave them, would need a kernel of their own.
            columns = (np.ascontiguousarray(column[part]) for column in (kind, peer, size))
            self._meetings = add_messages(*columns, self._sums, self._met, self._meetings)
            self._rows += time[part].size
            self._time = int(time[part][-1])
            if self._rows - self._noted >= ROWS:
                self._note(at_any_price=False)

    def _note(self, at_any_price: bool) -> None:
        if not at_any_price and self._rows - self._noted < ROWS_FOR_EACH * self._meetings:
            return
        changed = np.sort(self._met[: self._meetings]) if self._meetings else np.zeros(1, np.int64)
        self._notes.add(
            self._location, changed.size, self._rows, self._time, changed - 1, *self._sums[:, changed]
        )
        self._sums[:, changed] = 0
        self._meetings = 0
        self._noted = self._rows

    def close(self) -> None:
        """The location's messages are complete."""
        if self._location < 0:
            return
        if self._rows > self._noted:
            self._note(at_any_price=True)
        self._notes.flush(self._location)
        self._location, self._rows, self._noted = -1, 0, 0


_SEND, _ISEND = int(MessageKind.SEND), int(MessageKind.ISEND)
_RECV, _IRECV = int(MessageKind.RECV), int(MessageKind.IRECV)


@kernel
def add_messages(kind: Any, peer: Any, size: Any, sums: Any, met: Any, meetings: int) -> int:
    """Add to sent, bytes sent, received, bytes received (4, partners) of partner + 1.

    met (partners,): those, of whom `meetings` are known, that have any; returns how many are known then.
    """
    for i in range(kind.size):
        at = peer[i] + 1
        if kind[i] == _SEND or kind[i] == _ISEND:
            k = 0
        elif kind[i] == _RECV or kind[i] == _IRECV:
            k = 2
        else:
            continue
        if sums[0, at] == 0 and sums[2, at] == 0:
            met[meetings] = at
            meetings += 1
        sums[k, at] += 1
        sums[k + 1, at] += size[i]
    return meetings


@kernel
def add_notes(noted: Any, place: Any, begin: int, end: int, sums: Any) -> None:
    """Add rows `begin` to `end` of the notes (4, rows) to the sums (4, partners)."""
    for k in range(sums.shape[0]):
        for i in range(begin, end):
            sums[k, place[i]] += noted[k, i]


@kernel
def all_below(values: Any, start: Ints, count: Ints, limit: Ints) -> bool:
    """Whether the values of each location, `count` from `start` on, are from 0 to below its limit."""
    good = True
    for i in range(start.size):
        for k in range(start[i], start[i] + count[i]):
            value = np.int64(values[k])
            good &= (value >= 0) & (value < limit[i])
    return good


@kernel
def add_until(time: Any, kind: Any, peer: Any, size: Any, cut: int, peers: Any, sums: Any) -> bool:
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


def _bytes(position: _Position) -> int:
    return sum(part.nbytes for part in position)


class Tree(NamedTuple):
    """Call paths of a location; node 0 is no region.

    tree : (2, nodes) parent and region. A folded node's parent is -1.
    folding : whether some are folded.
    """

    tree: Ints
    folding: bool


class Profile:
    """The notes of a store, and what they say of any time.

    A store that was imported before there were notes is gone through once, and they are kept in memory.
    Several threads may ask at once, each about other locations.

    Raises
    ------
    StoreError : the notes contradict the events (a damaged file).
    """

    def __init__(self, store: TraceStore, progress: Progress | None = None) -> None:
        self._store = store
        self._idle: list[OpenRegions] = []  # of which nobody uses one now
        self._lock = Lock()
        self._positions: dict[tuple[str, int, int], _Position] = {}  # the latest used last
        self._size = 0
        whole: Any = store
        missing = not store.has("profile") and store.has("events")
        if missing or (not store.has("traffic") and store.has("messages")):
            whole = _GoneThrough(store, progress or Progress())
        self._paths = _Table(whole, "paths")
        self._profile = _Table(whole, "profile")
        self._folded = _Table(whole, "folded")
        self._traffic = _Table(whole, "traffic")
        self._check()

    def _check(self) -> None:
        """References point at something, so that kernels may use them as indices unchecked."""
        places = range(len(self._store.locations))
        nodes = self._paths.count + 1
        events = np.array([self._store.rows("events", i) for i in places], np.int64)
        messages = np.array([self._store.rows("messages", i) for i in places], np.int64)
        good = True
        for table, rows in ((self._profile, events), (self._folded, events), (self._traffic, messages)):
            good &= all_below(table.columns["row"], table.start, table.count, rows + 1)
            for name in {"node", "top"} & table.columns.keys():
                good &= all_below(table.columns[name], table.start, table.count, nodes)
        # Those that have events say where they begin and end.
        ends = (self._profile.start + self._profile.count)[events > 0] - 1
        good &= bool(((events > 0) == (self._profile.count > 0)).all())
        good = good and bool((self._profile.columns["row"][ends] == events[events > 0]).all())
        if not good:
            raise self._damaged()

    def _damaged(self) -> StoreError:
        return StoreError("its call paths are damaged", file=self._store.path, hint="import the source again")

    def tree(self, location: int) -> Tree:
        """The call paths of a location."""
        paths = self._paths.of(location)
        tree = np.empty((2, paths["parent"].size + 1), np.int64)
        tree[:, 0] = -1
        tree[0, 1:], tree[1, 1:] = paths["parent"], paths["region"]
        return Tree(tree, bool((tree[0, 1:] < 0).any()))

    def at(self, location: int, cuts: Ints) -> tuple[Ints, Ints]:
        """(cuts, nodes) ticks on each path up to a time, and calls before it.

        Ticks count from the first event: between location's first time and that they are negative, so that
        only differences between two cuts mean something. `cuts`: distinct ticks as recorded.
        """
        found = self._remembered("events", location, cuts, self._find)
        return np.stack([ticks for ticks, _ in found]), np.stack([calls for _, calls in found])

    def _remembered(
        self, table: str, location: int, cuts: Ints, find: Callable[[int, Ints], list[_Position]]
    ) -> list[_Position]:
        """Positions of cuts: those known from before, and those that `find`, given rising cuts, finds."""
        names = [(table, location, cut) for cut in cuts.tolist()]
        with self._lock:
            found = [self._positions.pop(name, None) for name in names]
            self._size -= sum(_bytes(position) for position in found if position is not None)
        missing = np.array([i for i, position in enumerate(found) if position is None], np.int64)
        if missing.size:
            order = missing[np.argsort(cuts[missing], kind="stable")]
            for i, position in zip(order, find(location, cuts[order]), strict=True):
                found[i] = position
        known = [position for position in found if position is not None]
        with self._lock:
            self._positions.update(zip(names, known, strict=True))
            self._size += sum(map(_bytes, known))
            while self._size > KEPT * memory.limit() and len(self._positions) > 1:
                self._size -= _bytes(self._positions.pop(next(iter(self._positions))))
        return known

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
        begins = np.flatnonzero(np.r_[True, notes["row"][1:] != notes["row"][:-1]])
        ends = np.r_[begins[1:], notes["row"].size]
        before = np.searchsorted(notes["time"][begins], cuts, side="left")
        columns = [np.ascontiguousarray(notes[name]) for name in ("node", "ticks", "calls")]
        folded = self._folded.of(location)
        with self._lock:
            regions = (
                self._idle.pop() if self._idle else OpenRegions(no_classes(max(1, len(self._store.regions))))
            )
        if not regions.follow(tree):
            raise self._damaged()
        found = []
        summed = 0
        for cut, time, count in zip(cuts.tolist(), times.tolist(), before.tolist(), strict=True):
            if not count:
                position = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
                position[0][0] = time - notes["time"][0]
                found.append(position)
                continue
            upto = int(ends[count - 1])
            callpaths.accumulate(*(column[summed:upto] for column in columns), ticks, calls)
            summed = upto
            note = int(begins[count - 1])
            row = int(notes["row"][note])
            a, b = np.searchsorted(folded["row"], [row, row + 1])
            inside = folded["node"][a:b].astype(np.int64)
            way = np.concatenate([callpaths.way(int(notes["top"][note]), tree), inside])
            regions.reopen(tree[1, way], way)
            regions.resume(int(notes["time"][note]), ticks, calls)
            if count < begins.size:
                end = int(notes["row"][begins[count]])
                when, kind, region = self._store.part("events", location, row, end, "time", "kind", "region")
                if not regions.feed(when, kind, region, cut):
                    raise StoreError(
                        "the call paths contradict the events",
                        hint="the file is damaged, import the source again",
                    )
            now, node = regions.now
            regions.ticks[node] += time - now
            found.append((regions.ticks.copy(), regions.calls.copy()))
        regions.reopen(*np.empty((2, 0), np.int64))
        self._idle.append(regions)
        return found

    def traffic(self, location: int, cuts: Ints) -> tuple[Ints, Ints]:
        """Partners (k,) of a location, ascending, and (4, cuts, k) the number of messages sent, bytes sent,
        messages received and bytes received before `cuts`: distinct ticks as recorded."""
        found = self._remembered("messages", location, cuts, self._find_messages)
        return found[0][0], np.stack([counts for _, counts in found], axis=1)

    def _find_messages(self, location: int, cuts: Ints) -> list[_Position]:
        """Partners and counts (4, partners) at rising cuts."""
        notes = self._traffic.of(location)
        peers = np.unique(notes["peer"]).astype(np.int64)
        if not peers.size:
            return [(peers, np.zeros((4, 0), np.int64))] * cuts.size
        found = []
        place = np.searchsorted(peers, notes["peer"])
        noted = np.stack([notes[name] for name in ("sent", "bytes_sent", "received", "bytes_received")])
        begins = np.flatnonzero(np.r_[True, notes["row"][1:] != notes["row"][:-1]])
        ends = np.r_[begins[1:], notes["row"].size]
        before = np.searchsorted(notes["time"][begins], cuts, side="left")
        sums = np.zeros((4, peers.size), np.int64)
        summed = 0
        for cut, count in zip(cuts.tolist(), before.tolist(), strict=True):
            upto = int(ends[count - 1]) if count else 0
            add_notes(noted, place, summed, upto, sums)
            summed = upto
            here = sums.copy()
            if count < begins.size:
                row = int(notes["row"][begins[count - 1]]) if count else 0
                end = int(notes["row"][begins[count]])
                part = self._store.part("messages", location, row, end, "time", "kind", "peer", "bytes")
                if not add_until(*part, cut, peers, here):
                    raise self._damaged()
            found.append((peers, here))
        return found


class _Table:
    """A derived table in memory."""

    def __init__(self, store: Any, table: str) -> None:
        names = tuple(DERIVED[table])
        index, columns = store.whole(table, *names)
        self.start, self.count = index[:, 0], index[:, 1]
        self.columns = dict(zip(names, columns, strict=True))

    def of(self, location: int) -> dict[str, NDArray[Any]]:
        begin = self.start[location]
        end = begin + self.count[location]
        return {name: column[begin:end] for name, column in self.columns.items()}


class _GoneThrough:
    """Notes made of what is stored already; what `_Table` needs."""

    def __init__(self, source: EventSource, progress: Progress) -> None:
        self.regions, self.locations, self.nesting = source.regions, source.locations, source.nesting
        self.report = ImportReport()
        self._rows: dict[tuple[str, int], list[dict[str, NDArray[Any]]]] = {}
        notes = PathNotes(self)
        digests = EventDigest(self, notes=notes), TrafficDigest(self)
        tables = {"events": ("time", "kind", "region"), "messages": ("time", "kind", "peer", "bytes")}
        for location in range(len(self.locations)):
            for table, columns in tables.items():
                for block in source.blocks(table, location, *columns):
                    progress.step(location, len(self.locations), "call paths")
                    for digest in digests:
                        digest.take(table, location, dict(zip(columns, block, strict=True)))
        for digest in digests:
            digest.finish()

    def derive(self, table: str, location: int, **columns: NDArray[Any]) -> None:
        self._rows.setdefault((table, location), []).append(columns)

    def whole(self, table: str, *columns: str) -> tuple[Ints, tuple[NDArray[Any], ...]]:
        index = np.zeros((len(self.locations), 2), np.int64)
        parts = []
        for location in range(len(self.locations)):
            own = self._rows.get((table, location), [])
            index[location] = (
                index[location - 1].sum() if location else 0,
                sum(p[columns[0]].size for p in own),
            )
            parts += own
        return index, tuple(
            np.concatenate([np.empty(0, DERIVED[table][name]), *(part[name] for part in parts)])
            for name in columns
        )

"""The activity of every location over time, at any magnification: the summary behind the Gantt view.

While events are replayed on import (`desktop.data.digest`), `Strips` stores for every location
(`desktop.core.gantt`)

* a *strip* (tables ``strips`` and ``timeline``): bins of a power of two ticks, at most a quarter as many as
  there are states and at most `BINS`, each with the region and the activity of most of its time and the set
  of all that occur in it, however short; and coarser levels, each with bins four times as wide, down to at
  most `COARSEST`. The cells of all levels follow each other, the finest first;
* *checkpoints*: before every `STEP`-th event the open regions, after a row without a region, so that any
  position is reached without reading everything before it. Where very many regions are open, a checkpoint
  waits until `ROWS_FOR_EACH` times as many events have followed the last one: checkpoints of a recursion of
  any depth together are no larger than its events.

Times are as recorded; clocks are repaired when a picture is made. The digest needs memory for one location's
entries. A store without these tables, or rules that classify regions differently, cost one pass over the
events (by `Timeline`).
"""

from __future__ import annotations

import heapq
import time as clock
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import chain
from typing import overload

import numpy as np
from numpy.typing import NDArray

from desktop.core import gantt
from desktop.core.arrays import AnyArray, Bytes, Flags, Floats, Ints
from desktop.core.clock_kernels import corrected
from desktop.core.clock_line import columns
from desktop.core.open_regions import BASE, CODES, OpenRegions
from desktop.data import memory
from desktop.data.digest import STEP, DerivedRows, DigestTarget, EventDigest
from desktop.data.events import SENDS, Activity, EventKind, EventSource
from desktop.data.message_filter import MessageFilter
from desktop.data.naming import communicator_names
from desktop.data.store import DERIVED, TraceStore
from desktop.data.utilization import Rules, region_rule, resolve_of
from desktop.progress import Progress

#: Most bins of the finest level, and of the coarsest.
BINS = 1 << 15
COARSEST = 16
#: Least number of events between two checkpoints, for each open region.
ROWS_FOR_EACH = 4
#: Open regions of one instant that are listed: half of them the outermost, half the innermost.
LEVELS = 1 << 10
#: Entries (bin, state) of a location held in memory before bins are joined.
ENTRIES = 1 << 20
#: Most events read to show one picture exactly (fewer if memory is limited, at so many bytes per event), and
#: to look for the end of an open region.
EXACT_ROWS, ROW_BYTES = 1 << 24, 32
FORWARD_ROWS = 1 << 18
#: Bytes per message (or collective) kept in memory; none are drawn if there is not enough memory for all.
MESSAGE_BYTES = 128


# --- building ---


class _Strip:
    """Builds the bins of one location after the other from its states."""

    def __init__(self) -> None:
        self._slot = np.zeros(0, np.int64)
        self._entries: tuple[Ints, ...] = (np.empty(0, np.int64),) * 3
        self._spent = np.zeros(0, np.int64)
        self.begin(0)

    def begin(self, first: int) -> None:
        """Start another location, whose first event is at this time; memory is reused."""
        self._state = np.array([0, 0, first, first, -1], np.int64)
        self._rows = 0

    def know(self, regions: int) -> None:
        """Set the number of defined regions. There must be space for all of them in a single bin."""
        keys = (regions + 1) * CODES
        if keys > self._slot.size:
            self._slot = np.pad(self._slot, (0, 2 * keys - self._slot.size))
            self._spent = np.zeros(self._slot.size // CODES + 1, np.int64)
            self._room(4 * keys)

    def _room(self, entries: int) -> None:
        have = self._entries[0].size
        if entries > have:
            more = max(entries - have, have)
            self._entries = tuple(np.pad(e, (0, more)) for e in self._entries)

    @property
    def key(self) -> int:
        """The state after the last event so far."""
        return int(self._state[gantt.KEY])

    def add(self, time: Ints, top: NDArray[np.int32], code: Bytes) -> None:
        """Add states that begin at these times."""
        self._rows += time.size
        most = min(max(2 * self._rows, 256), BINS)
        # Every state has one entry, and one more for every further bin that it reaches.
        self._room(min(int(self._state[gantt.USED]) + time.size + 2 * most, ENTRIES))
        gantt.fill(np.ascontiguousarray(time), top, code, self._state, self._slot, *self._entries, most)

    def close(self, last: int, resolve: Bytes) -> tuple[int, dict[str, AnyArray]]:
        """Finish the location: width of the finest bins (a power of two) and the cells of all levels."""
        bins, keys, ticks = self._entries
        width, n, first = (int(self._state[k]) for k in (gantt.WIDTH, gantt.USED, gantt.FIRST))
        if n == 0 or bins[n - 1] != last >> width:
            # The last state ends where the next bin begins; that bin shows it too.
            bins[n] = last >> width
            keys[n] = keys[n - 1] if n else self._state[gantt.KEY]
            ticks[n] = 0
            n += 1
        most = min(max(self._rows // 4, COARSEST), BINS)
        while (last >> width) - (first >> width) >= most:
            n = gantt.coarsen(bins, keys, ticks, n, self._slot)
            width += 1
        finest = width
        parts: list[tuple[AnyArray, ...]] = []
        while True:
            count = (last >> width) - (first >> width) + 1
            part = tuple(np.empty(count, dtype) for dtype in DERIVED["timeline"].values())
            gantt.cells(bins, keys, ticks, n, resolve, self._spent, np.empty(8, np.int64), *part)
            parts.append(part)
            if count <= COARSEST:
                break
            for _ in range(gantt.FAN_BITS):
                n = gantt.coarsen(bins, keys, ticks, n, self._slot)
            width += gantt.FAN_BITS
        columns = (np.concatenate(column) for column in zip(*parts, strict=True))
        return finest, dict(zip(DERIVED["timeline"], columns, strict=True))


class Strips:
    """Strips and checkpoints of all locations, one after the other, from the replay of their events by
    `desktop.data.digest`."""

    def __init__(self, target: DigestTarget) -> None:
        self._target = target
        self._strip = _Strip()

    def begin(self, location: int, first: int) -> None:
        self._location, self._first, self._marked = location, first, 0
        self._strip.begin(first)

    def mark(self, time: int, row: int, regions: OpenRegions) -> None:
        if row and row - self._marked < ROWS_FOR_EACH * regions.depth:
            return
        self._marked = row
        stack, since = regions.open
        self._target.derive(
            "checkpoints",
            self._location,
            time=np.full(stack.size + 1, time, np.int64),
            row=np.full(stack.size + 1, row, np.int64),
            region=np.concatenate([[-1], stack]).astype(np.int32),
            since=np.concatenate([[time], since]).astype(np.int64),
        )

    def add(self, time: Ints, top: NDArray[np.int32], code: Bytes, regions: int) -> None:
        self._strip.know(regions)
        self._strip.add(time, top, code)

    def close(self, last: int, worked: bool) -> None:
        resolve = resolve_of(self._target.locations[self._location], worked)
        width, cells = self._strip.close(last, resolve)
        self._target.derive(
            "strips",
            self._location,
            first=np.array([self._first], np.int64),
            last=np.array([last], np.int64),
            width=np.array([width], np.uint8),
            region=np.array([self._strip.key // CODES - 1], np.int32),
            activity=resolve[[self._strip.key % CODES]],
        )
        self._target.derive("timeline", self._location, **cells)


def summarize(source: EventSource, rules: Rules | None, progress: Progress) -> DerivedRows:
    """Strips and checkpoints in a pass over the events, for a source without them or for other rules."""

    def digests(rows: DerivedRows) -> list[EventDigest]:
        return [EventDigest(rows, rules, Strips(rows))]

    return DerivedRows(source, digests, progress, "timeline", tables=("events",))


# --- queries ---


@dataclass(frozen=True, eq=False)
class Tile:
    """A picture of some rows over some time, ready to be painted.

    Row r merges the locations ``members[starts[r] : starts[r + 1]]``. `dominant` (rows, columns) is the class
        with most time in a column, `gantt.ABSENT` where no location is present; bit k of `hidden` says that
        class k occurs in it. Classes are activities, or the classes of regions in `by_region` (regions + 1),
        no region first. `edges` (columns + 1,) in ticks; `a`, `b` in seconds. `pending` are rows whose
        columns are narrower than their bins, so that reading their events would show more.
    """

    a: float
    b: float
    edges: Ints
    starts: Ints
    members: Ints
    by_region: Bytes | None
    dominant: Bytes
    hidden: NDArray[np.uint16]
    pending: tuple[int, ...] = ()


@dataclass(frozen=True)
class SummaryLevel:
    """An open region of a call stack; `end_s` None: the end was not found in the events searched."""

    region: int
    begin_s: float
    end_s: float | None


@dataclass(frozen=True)
class Moment:
    """The activity of a location at an instant. `levels`: outermost first; of more than `LEVELS` open regions
    those in the middle are left out, `depth` is the number of open ones. `begin_s`, `end_s`: of the state, in
    which nothing is entered or left; `present`: whether the location is present."""

    location: int
    time_s: float
    activity: Activity
    levels: tuple[SummaryLevel, ...]
    begin_s: float
    end_s: float
    present: bool = True
    depth: int = 0


@dataclass(frozen=True, eq=False)
class TimelineMessages:
    """Messages between locations, (n,) each; times in seconds, -1 for an unknown partner."""

    sender: Ints
    receiver: Ints
    sent_s: Floats
    received_s: Floats
    bytes: Ints
    tag: Ints

    def only(self, which: AnyArray) -> TimelineMessages:
        """The selected messages."""
        return TimelineMessages(*(getattr(self, f.name)[which] for f in fields(self)))


@dataclass(frozen=True)
class Collective:
    """A collective operation of one location. `communicator`: as in the trace; `root`: location or -1."""

    location: int
    operation: str
    communicator: int
    root: int
    begin_s: float
    end_s: float
    sent: int
    received: int


@dataclass(frozen=True, eq=False)
class _Stretches:
    """Events of locations in pieces: rows `first` to below `last` of a location, at ticks `begin` to `end` as
    recorded; pieces of a location follow each other. `entered`: pairs (piece, region), None if unknown."""

    location: Ints
    first: Ints
    last: Ints
    begin: Ints
    end: Ints
    entered: tuple[Ints, Ints] | None = None

    def holding(self, regions: Flags, locations: Ints) -> _Stretches:
        """Pieces of some locations in which any of these regions may be entered."""
        may = np.isin(self.location, locations)
        if self.entered is not None:
            piece, region = self.entered
            listed = np.zeros(may.size, bool)
            listed[piece[regions[region]]] = True
            may &= listed
        return self.only(np.flatnonzero(may))

    def only(self, which: Ints) -> _Stretches:
        """The selected pieces, in this order, without `entered`."""
        return _Stretches(*(getattr(self, f.name)[which] for f in fields(self)[:5]))


class Timeline:
    """All queries of the Gantt view to a store; times in seconds on the axis of its curve.

    Created and used in one thread at a time. Opening reads the summary (or builds it, if there is none);
    after that only `refine`, `at` and `find` read events.

    Raises
    ------
    StoreError : the summary contradicts the store (a damaged file).
    """

    def __init__(
        self, store: TraceStore, rules: Rules | None = None, progress: Progress | None = None
    ) -> None:
        rules = rules or Rules()
        self.store = store
        count = len(store.locations)
        self._rule = region_rule(store, rules)
        # A location with nothing but metrics has no activity to draw.
        present = [x.first is not None and x.last is not None and x.kind != "metric" for x in store.locations]
        self.present = np.array(present, bool)
        self._clocks = rules.clocks(store)
        self._repair = columns(self._clocks)
        self._begin = np.array([0 if x.first is None else x.first for x in store.locations], np.int64)
        self._end = np.array([-1 if x.last is None else x.last for x in store.locations], np.int64)
        cpu = self.present & np.array([x.kind == "cpu" for x in store.locations], bool)
        every = np.arange(count)
        begins = self._common(every, self._begin)[cpu if cpu.any() else self.present]
        self.start = int(begins.min()) if begins.size else 0
        self.unit = 1.0 / store.ticks_per_second
        ends = self._common(every, self._end)[self.present]
        #: when the last location ends, seconds
        self.end_s = self.seconds(int(ends.max())) if ends.size else 0.0
        events = store.places("events")[:, 1]
        index, strips = store.whole("strips", *DERIVED["strips"])
        source: TraceStore | DerivedRows = store
        if rules.overrides or not np.array_equal(index[:, 1] > 0, events > 0):
            source = summarize(store, rules, progress or Progress())
            index, strips = source.whole("strips", *DERIVED["strips"])
        self._arrange(index, strips, source)
        self._arrange_checkpoints(source, events)
        self._entered = self._calls()
        parallel = np.flatnonzero(self._rule.active).tolist()
        self._workers = frozenset(x for r in parallel for x in self.entering(r).tolist())
        self._idle = np.array([self._resolved(i)[BASE] for i in range(count)], np.uint8)
        self._stretches: _Stretches | None = None
        self._links: TimelineMessages | None = None
        self._filtered: tuple[MessageFilter, TimelineMessages] | None = None
        self._communicators: Ints | None = None
        self._collectives: tuple[AnyArray, ...] | None = None

    def _arrange(self, index: Ints, strips: Sequence[AnyArray], source: TraceStore | DerivedRows) -> None:
        """Set where each strip begins; check that it has the right number of cells."""
        has = index[:, 1] > 0
        rows = index[has, 0]
        self._first, self._last, self._width, self._final_region, self._final_activity = (
            np.full(has.size, -(k == 1), column.dtype) for k, column in enumerate(strips)
        )
        mine = (self._first, self._last, self._width, self._final_region, self._final_activity)
        for column, values in zip(mine, strips, strict=True):
            column[has] = values[rows]
        self._width = self._width.astype(np.int64)
        places, cells = source.whole("timeline", *DERIVED["timeline"])
        self._region, self._activity, self._regions, self._activities = cells
        self._at = places[:, 0].copy()
        size, levels = np.zeros(has.size, np.int64), np.zeros(has.size, np.int64)
        w, left = self._width.copy(), has.copy()
        while left.any():
            bins = (self._last >> w) - (self._first >> w) + 1
            size[left] += bins[left]
            levels[left] += 1
            left &= bins > COARSEST
            w = np.minimum(w + gantt.FAN_BITS, 62)
        self._levels = levels
        outside = has & ((self._first < self._begin) | (self._last > self._end) | (self._first > self._last))
        if outside.any() or not np.array_equal(size, places[:, 1]):
            raise self.store.damaged("its timeline does not cover its locations")

    def _arrange_checkpoints(self, source: TraceStore | DerivedRows, events: Ints) -> None:
        places, columns = source.whole("checkpoints", "time", "row", "region", "since")
        self._mark_time, self._mark_row, self._mark_region, self._mark_since = columns
        self._mark_at = np.flatnonzero(self._mark_region < 0)
        owner = np.searchsorted(self._mark_at, places[:, 0]), np.searchsorted(self._mark_at, places.sum(1))
        self._mark_of = np.stack(owner, axis=1)
        marks = np.diff(self._mark_of)[:, 0]
        number = np.arange(marks.sum()) - np.repeat(np.cumsum(marks) - marks, marks)
        # The locations may have been read in another order than they are numbered.
        row = self._mark_row[self._mark_at[np.repeat(self._mark_of[:, 0], marks) + number]]
        ahead = np.diff(row, prepend=0)[number > 0]
        good = np.array_equal(marks > 0, events > 0) and not (row[number == 0].any() or (row % STEP).any())
        if not (good and (ahead > 0).all() and (row < np.repeat(events, marks)).all()):
            raise self.store.damaged("the checkpoints of its timeline are not where they should be")

    def _calls(self) -> dict[int, Ints]:
        """The locations that enter each region, by region."""
        index, (region,) = self.store.whole("calls", "region")
        owner = self._owners(index, region.size)
        order = np.argsort(region, kind="stable")
        cuts = np.flatnonzero(np.diff(region[order])) + 1
        return {int(region[group[0]]): np.sort(owner[group]) for group in np.split(order, cuts) if group.size}

    @cached_property
    def communicators(self) -> dict[int, str]:
        """Names of communicators, as far as the trace has them."""
        return communicator_names(self.store.notes)

    def close(self) -> None:
        self.store.close()

    # times

    @overload
    def seconds(self, tick: int) -> float: ...

    @overload
    def seconds(self, tick: Ints) -> Floats: ...

    def seconds(self, tick: int | Ints) -> float | AnyArray:
        """Seconds of a tick of the common clock."""
        return (tick - self.start) * self.unit

    def ticks(self, seconds: Floats) -> Ints:
        """(n,) the ticks of the common clock that contain these instants."""
        exact = seconds / self.unit
        # The result of `seconds` maps back to the same tick, whatever the rounding.
        return np.floor(exact + np.maximum(1e-9, np.abs(exact) * 1e-15)).astype(np.int64) + self.start

    def _tick(self, time_s: float) -> int:
        return int(self.ticks(np.array([time_s]))[0])

    def _common(self, location: Ints, tick: Ints) -> Ints:
        """Ticks (n,) recorded by locations (n,), on the common clock."""
        common: Ints = corrected(tick, location, *self._repair)
        return common

    def _last_local(self, location: int, tick: int) -> int:
        """The last tick recorded by a location that is not after a tick of the common clock."""
        return int(self._clocks[location].local(tick + 1)) - 1

    def first_s(self, location: int) -> float:
        return self.seconds(self._clocks[location].common(int(self._begin[location])))

    def _resolved(self, location: int) -> Bytes:
        return resolve_of(self.store.locations[location], location in self._workers)

    # pictures

    def tile(
        self,
        groups: Sequence[Sequence[int]],
        a_s: float,
        b_s: float,
        columns: int,
        by_region: Bytes | None = None,
    ) -> Tile:
        """Rows of merged locations from `a_s` to `b_s`, from the summary alone.

        The cost is the number of locations times that of columns, for any trace. `by_region` (regions + 1,)
        gives the class (0 to 13) of every region, no region first; None: classes are activities.
        """
        edges = self.ticks(np.linspace(a_s, b_s, columns + 1))
        edges[-1] = max(int(edges[-1]), int(edges[0]) + 1)
        starts = np.concatenate([[0], np.cumsum([len(g) for g in groups])]).astype(np.int64)
        members = np.fromiter(chain.from_iterable(groups), np.int64, int(starts[-1]))
        rows = len(groups)
        dominant = np.empty((rows, columns), np.uint8)
        hidden = np.empty((rows, columns), np.uint16)
        lut = self._lut(by_region)
        if by_region is None:
            value, present, bits = self._activity, self._activities, np.empty(0, np.uint16)
            before, after = self._idle, self._final_activity
        else:
            value, present, bits = self._region, self._regions, self._bits(lut)
            before, after = np.full(self._idle.size, lut[0], np.uint8), lut[self._final_region + 1]
        gantt.add_strips(
            starts,
            members,
            edges,
            *self._repair,
            self._width,
            self._first,
            self._last,
            self._levels,
            self._at,
            value,
            present,
            lut,
            bits,
            self._begin,
            self._end,
            before,
            after,
            dominant,
            hidden,
        )
        pixel = max(int(edges[-1] - edges[0]) // columns, 1)
        coarse = (self._levels[members] > 0) & ((np.int64(1) << self._width[members]) > pixel)
        every = np.arange(self._first.size)
        inside = self._common(every, self._first) < edges[-1]
        inside &= self._common(every, self._last) >= edges[0]
        coarse &= inside[members]
        owner = np.repeat(np.arange(rows), np.diff(starts))
        pending = tuple(np.unique(owner[coarse]).tolist())
        return Tile(a_s, b_s, edges, starts, members, by_region, dominant, hidden, pending)

    def _lut(self, by_region: Bytes | None) -> Bytes:
        if by_region is not None:
            return np.ascontiguousarray(by_region, np.uint8)
        return np.concatenate([[gantt.ABSENT], np.arange(CODES)]).astype(np.uint8)

    def _bits(self, lut: Bytes) -> NDArray[np.uint16]:
        """The classes that each bit of a set of regions may represent."""
        bits = np.zeros(gantt.BITS + 1, np.uint16)
        bits[-1] = 1 << int(lut[0])
        regions = np.fromiter(self._entered, np.int64, len(self._entered))
        np.bitwise_or.at(bits, regions % gantt.BITS, np.uint16(1) << lut[regions + 1].astype(np.uint16))
        return bits

    @property
    def entered(self) -> tuple[int, ...]:
        """The regions that any location enters."""
        return tuple(sorted(self._entered))

    def weights(self) -> Floats:
        """(regions + 1,) seconds in bins in which each region, no region first, lasts longest."""
        total = np.zeros(len(self.store.regions) + 1)
        for location in np.flatnonzero(self._levels).tolist():
            w, at = int(self._width[location]), int(self._at[location])
            bins = (int(self._last[location]) >> w) - (int(self._first[location]) >> w) + 1
            total += np.bincount(self._region[at : at + bins] + 1, minlength=total.size) * float(1 << w)
        return total * self.unit

    def refine(self, tile: Tile, progress: Progress | None = None, seconds: float = 0.2) -> Tile:
        """The tile with some (after `seconds`) or all pending rows drawn exactly, from their events.

        Rows that would need too many events (more than `EXACT_ROWS` in all) stay as they are.
        """
        progress = progress or Progress()
        until = clock.monotonic() + seconds
        dominant, hidden = tile.dominant.copy(), tile.hidden.copy()
        columns = tile.edges.size - 1
        acc, mask = np.zeros((columns, gantt.CLASSES)), np.zeros(columns, np.int64)
        lut, by_region = self._lut(tile.by_region), tile.by_region is not None
        done, most = 0, min(EXACT_ROWS, memory.limit() // ROW_BYTES)
        rows = []
        for row in tile.pending:
            members = tile.members[tile.starts[row] : tile.starts[row + 1]].tolist()
            spans = [self._span(m, int(tile.edges[0]), int(tile.edges[-1])) for m in members]
            rows.append((row, members, spans, sum(last - first for _, first, last in spans) <= most))
        if self.store.elsewhere is not None:  # with one request, not one for each
            begin = self.store.places("events")
            events = [
                (int(begin[m, 0]) + first, int(begin[m, 0]) + min(last, int(begin[m, 1])))
                for _, members, spans, few in rows
                if few
                for m, (_, first, last) in zip(members, spans, strict=True)
                if first < last
            ]
            self.store.bring("events", events, ("time", "kind", "region"))
        for row, members, spans, few in rows:
            done += 1
            if not few:
                continue
            for member, span in zip(members, spans, strict=True):
                self._add_exactly(member, span, tile.edges, lut, by_region, acc, mask)
                progress.step(done, len(tile.pending), "timeline")
            gantt.settle(tile.edges, acc, mask, dominant[row], hidden[row])
            if clock.monotonic() > until:
                break
        return replace(tile, dominant=dominant, hidden=hidden, pending=tile.pending[done:])

    def spent(
        self,
        groups: Sequence[Sequence[int]],
        edges: Ints,
        by_region: Bytes | None = None,
        progress: Progress | None = None,
    ) -> Ints:
        """(rows, columns, `gantt.CLASSES`) exact ticks that rows of merged locations spend in each class.

        `edges` (columns + 1,): rising ticks since `start`. Classes as in `tile`. Reads all events between the
        first and the last edge, once.
        """
        progress = progress or Progress()
        edges = np.ascontiguousarray(edges, np.int64) + self.start
        columns, total = edges.size - 1, sum(len(group) for group in groups)
        lut = self._lut(by_region)
        ticks = np.zeros((len(groups), columns, gantt.CLASSES), np.int64)
        acc, mask = np.zeros((columns, gantt.CLASSES)), np.zeros(columns, np.int64)
        done = 0
        for row, members in enumerate(groups):
            for member in members:
                progress.step(done, total, "timeline")
                span = self._span(member, int(edges[0]), int(edges[-1]))
                self._add_exactly(member, span, edges, lut, by_region is not None, acc, mask)
                done += 1
            ticks[row] = acc  # whole numbers below 2**53
            acc[:] = 0.0
        return ticks

    def _add_exactly(
        self,
        location: int,
        span: tuple[int, int, int],
        edges: Ints,
        lut: Bytes,
        by_region: bool,
        acc: Floats,
        mask: Ints,
    ) -> None:
        line, begin, end = self._clocks[location], int(self._begin[location]), int(self._end[location])
        resolve = self._resolved(location)

        def add(times: Ints, keys: Ints, until: int) -> None:
            since, then = line.common(times), line.common(until)
            gantt.add_states(since, keys, then, edges, lut, resolve, by_region, acc, mask)

        _, first, last = span
        now, key = begin, BASE
        for time, top, code in self._states(location, span):
            if now < time[0] and (first == 0 or now > begin):
                add(np.array([now]), np.array([key]), int(time[0]))
            keys = (top.astype(np.int64) + 1) * CODES + code
            now, key = int(time[-1]), int(keys[-1])
            add(time[:-1], keys[:-1], now)
        # A state lasts until the next event, or the end of the location.
        until = end if last >= self.store.rows("events", location) else line.local(int(edges[-1]))
        if now < until:
            add(np.array([now]), np.array([key]), until)

    # single states

    def _span(self, location: int, a: int, b: int) -> tuple[int, int, int]:
        """Checkpoint and events (first, last) needed for the states of a location from tick `a` to `b`."""
        lo, hi = (int(v) for v in self._mark_of[location])
        rows = self.store.rows("events", location)
        if lo == hi:
            return -1, 0, 0
        marks = self._mark_at[lo:hi]
        times = self._mark_time[marks]
        k = max(int(np.searchsorted(times, self._clocks[location].local(a), side="left")) - 1, 0)
        end = int(np.searchsorted(times, self._last_local(location, b), side="right"))
        last = int(self._mark_row[marks[end]]) if end < marks.size else rows
        return lo + k, int(self._mark_row[marks[k]]), last

    def _open_at(self, mark: int) -> OpenRegions:
        """The open regions at a checkpoint."""
        at = int(self._mark_at[mark])
        end = int(self._mark_at[mark + 1]) if mark + 1 < self._mark_at.size else self._mark_region.size
        regions = OpenRegions(self._rule)
        inside = self._mark_region[at + 1 : end].astype(np.int64)
        regions.reopen(inside, np.zeros_like(inside), self._mark_since[at + 1 : end])
        return regions

    def _unfolded(
        self, regions: OpenRegions, time: Ints, kind: Bytes, region: NDArray[np.uint32]
    ) -> tuple[NDArray[np.int32], Bytes]:
        """Innermost region and code after each of these events."""
        states = regions.states(time, kind, region)
        if states is None:
            raise self.store.damaged("its events are out of order")
        return states

    def _events(self, location: int, first: int, last: int) -> Iterator[tuple[AnyArray, ...]]:
        last = min(last, self.store.rows("events", location))
        for at in range(first, last, STEP):
            yield self.store.part("events", location, at, min(at + STEP, last), "time", "kind", "region")

    def _states(
        self, location: int, span: tuple[int, int, int]
    ) -> Iterator[tuple[Ints, NDArray[np.int32], Bytes]]:
        mark, first, last = span
        if last <= first:
            return
        regions = self._open_at(mark)
        for time, kind, region in self._events(location, first, last):
            top, code = self._unfolded(regions, time, kind, region)
            yield time, top, code

    def at(self, location: int, time_s: float, *, whole: bool = True) -> Moment:
        """The state and the call stack of a location at an instant.

        `whole`: find the end of all open regions (within the next `FORWARD_ROWS` events); else only of the
        innermost, which is faster.
        """
        tick = self._tick(time_s)
        line, begin, end = self._clocks[location], int(self._begin[location]), int(self._end[location])
        t = self._last_local(location, tick)
        if not begin <= t <= end:
            return Moment(location, time_s, Activity.UNMEASURED, (), time_s, time_s, present=False)
        mark, first, last = self._span(location, tick + 1, tick + 1)
        resolve = self._resolved(location)
        since, until, code = begin, end, BASE
        stack, entered = np.empty(0, np.int64), np.empty(0, np.int64)
        after = last
        if last > first:
            regions = self._open_at(mark)
            row = first
            for time, kind, region in self._events(location, first, last):
                n = int(np.searchsorted(time, t, side="right"))
                if n:
                    _, codes = self._unfolded(regions, time[:n], kind[:n], region[:n])
                    since, code = int(time[n - 1]), int(codes[-1])
                row += n
                if n < time.size:
                    until = int(time[n])
                    break
            else:
                following = next(self._events(location, row, row + 1), None)
                until = end if following is None else int(following[0][0])
            stack, entered = regions.open
            after = row
        rows = np.arange(stack.size)
        if stack.size > LEVELS:
            rows = np.r_[rows[: LEVELS // 2], rows[-LEVELS // 2 :]]
        needed = rows if whole else rows[-1:]
        ends: list[int | None] = [None] * (rows.size - needed.size)
        ends += self._leave_times(location, after, stack, needed)
        levels = tuple(
            SummaryLevel(
                int(r),
                self.seconds(line.common(int(b))),
                None if e is None else self.seconds(line.common(e)),
            )
            for r, b, e in zip(stack[rows], entered[rows], ends, strict=True)
        )
        return Moment(
            location,
            time_s,
            Activity(int(resolve[code])),
            levels,
            self.seconds(line.common(since)),
            self.seconds(line.common(until)),
            depth=stack.size,
        )

    def _leave_times(self, location: int, row: int, stack: Ints, which: Ints) -> list[int | None]:
        """End ticks of the open regions `which`, positions in the stack; None if an end is too far away."""
        none = np.iinfo(np.int64).min
        ends = np.full(which.size, none)
        left = which.size
        ident = np.full(stack.size, -1, np.int64)
        ident[which] = np.arange(left)
        regions = OpenRegions(self._rule)
        regions.reopen(stack, ident)
        rows = self.store.rows("events", location)
        for time, kind, region in self._events(location, row, row + FORWARD_ROWS):
            left = regions.leave_times(time, kind, region, ends, left)
            row += time.size
            if left == 0:
                break
        if left and row >= rows:  # open until the end of the location
            ends[ends == none] = self._end[location]
        return [None if e == none else int(e) for e in ends.tolist()]

    # search

    def entering(self, region: int) -> Ints:
        return self._entered.get(region, np.empty(0, np.int64))

    def find(
        self,
        regions: Sequence[int],
        time_s: float,
        *,
        forward: bool = True,
        but: int | None = None,
        among: Sequence[int] | None = None,
        progress: Progress | None = None,
    ) -> tuple[int, float, int] | None:
        """The nearest enter of one of some regions after (before) an instant: location, time and region.

        At the instant itself only enters in locations after (before) location `but` count, so that coinciding
        ones are found one after the other; None: none of them. `among`: only in these locations. The notes of
        call paths say where a region is entered, strips say when it may have been: only events that may
        contain the nearest enter are read.
        """
        progress = progress or Progress()
        tick, step = self._tick(time_s), 1 if forward else -1
        selected = np.zeros(len(self.store.regions), bool)
        selected[list(regions)] = True
        held = np.unique(np.concatenate([np.empty(0, np.int64), *(self.entering(r) for r in regions)]))
        if self._stretches is None:
            self._stretches = self._arrange_stretches()
        spans = self._stretches.holding(selected, held if among is None else np.intersect1d(held, among))
        begin, end = (self._common(spans.location, v) for v in (spans.begin, spans.end))
        spans = spans.only(np.flatnonzero(end >= tick) if forward else np.flatnonzero(begin <= tick)[::-1])
        nearest, farthest = (self._common(spans.location, v) for v in (spans.begin, spans.end)[::step])
        # The next stretch of each location: its least distance, whether its strip was checked, its number.
        heap: list[tuple[int, int, bool, int]] = []

        def push(k: int) -> None:
            distance = max(step * (int(nearest[k]) - tick), 0)
            heapq.heappush(heap, (distance, step * int(spans.location[k]), False, k))

        for k in np.unique(spans.location, return_index=True)[1].tolist():
            push(k)
        best: tuple[int, int, int] | None = None
        while heap and (best is None or heap[0][:2] < best[:2]):
            distance, signed, refined, k = heapq.heappop(heap)
            location = step * signed
            progress.step(0, 0, "finding")
            hit: tuple[int, int] | None = None
            if refined:
                rows = int(spans.first[k]), int(spans.last[k])
                hit = self._enters(location, rows, selected, tick, step, but)
            else:
                near = self._near(location, tick + step * distance, step, selected)
                if near is not None and step * near <= step * int(farthest[k]):
                    heapq.heappush(heap, (step * (near - tick), signed, True, k))
                    continue
            if hit is not None:
                candidate = step * (hit[0] - tick), signed, hit[1]
                best = candidate if best is None else min(best, candidate)
            elif k + 1 < spans.location.size and spans.location[k + 1] == location:
                push(k + 1)
        if best is None:
            return None
        return step * best[1], self.seconds(tick + step * best[0]), best[2]

    def _near(self, location: int, tick: int, step: int, selected: Flags) -> int | None:
        """The nearest tick, from `tick` on, at which by its strip a location may enter one of the regions."""
        line, w = self._clocks[location], int(self._width[location])
        first, last = int(self._first[location]), int(self._last[location])
        origin = first >> w
        now = line.local(tick) if step > 0 else self._last_local(location, tick)
        if step * now > (step * last if step > 0 else step * first):
            return None
        now = min(max(now, first), last)
        bits = np.bitwise_or.reduce(np.uint64(1) << (np.flatnonzero(selected) % gantt.BITS).astype(np.uint64))
        count, cell = (last >> w) - origin + 1, int(self._at[location])
        k = int(gantt.next_bin(self._regions, cell, count, (now >> w) - origin, step, bits))
        near = []
        if k >= 0:
            edge = (k + origin) << w if step > 0 else ((k + origin + 1) << w) - 1
            near.append(max(edge, now) if step > 0 else min(edge, now))
        # A region entered by the last event has no time, so it is in no bin.
        final = int(self._final_region[location])
        if final >= 0 and selected[final] and step * (last - now) >= 0:
            near.append(last)
        return int(line.common(min(near) if step > 0 else max(near))) if near else None

    def _enters(
        self,
        location: int,
        rows: tuple[int, int],
        selected: Flags,
        tick: int,
        step: int,
        but: int | None,
    ) -> tuple[int, int] | None:
        """The nearest enter within some events: its tick on the common clock, and its region."""
        ties = but is not None and step * (location - but) > 0
        line = self._clocks[location]
        for at in range(*rows, STEP)[::step]:
            end = min(at + STEP, rows[1])
            time, kind, region = self.store.part("events", location, at, end, "time", "kind", "region")
            hits = np.flatnonzero((kind == EventKind.ENTER) & selected[region])
            far = step * (line.common(time[hits]) - tick)
            hits = hits[(far >= 0) if ties else (far > 0)]
            if hits.size:
                hit = hits[0 if step > 0 else -1]
                return int(line.common(int(time[hit]))), int(region[hit])
        return None

    def _arrange_stretches(self) -> _Stretches:
        """Stretches between the notes of call paths; without these, between checkpoints."""
        store = self.store
        entered: tuple[Ints, Ints] | None = None
        if store.has("profile"):
            index, (row, time, node, calls) = store.whole("profile", "row", "time", "node", "calls")
            places, (paths,) = store.whole("paths", "region")
            owner = self._owners(index, row.size)
            head = np.append(True, (row[1:] != row[:-1]) | (owner[1:] != owner[:-1]))
            some = np.flatnonzero(calls)
            which = node[some].astype(np.int64) - 1
            if np.any((which < 0) | (which >= places[owner[some], 1])):
                raise self.store.damaged("its call paths are damaged")
            # A note lists the regions entered since the one before.
            entered = np.cumsum(head)[some] - 2, paths[places[owner[some], 0] + which]
            owner, row, time = owner[head], row[head], time[head]
        else:
            marks = np.stack([self._mark_of[:, 0], np.diff(self._mark_of)[:, 0]], axis=1)
            row, time = self._mark_row[self._mark_at], self._mark_time[self._mark_at]
            owner = self._owners(marks, row.size)
        goes_on = np.append(owner[1:] == owner[:-1], False)
        rows = store.places("events")[:, 1]
        last = np.where(goes_on, np.roll(row, -1), rows[owner])
        if np.any((row < 0) | (row > last) | (last > rows[owner])):
            raise self.store.damaged("its call paths are damaged")
        end = np.where(goes_on, np.roll(time, -1), self._last[owner])
        return _Stretches(owner, row, last, time, end, entered)

    def _owners(self, index: Ints, size: int) -> Ints:
        """The location of each row of a table. `index`: first row and number of rows of each location."""
        order = np.argsort(index[:, 0], kind="stable")
        owner = np.repeat(order, index[order, 1])
        if owner.size != size:
            raise self.store.damaged("its rows belong to no location")
        return owner

    # messages

    def filtered_messages(self, criteria: MessageFilter) -> TimelineMessages | None:
        """The messages that pass a filter, as in `messages`."""
        if self._filtered is None or self._filtered[0] != criteria:
            messages = self.messages()
            if messages is None or criteria == MessageFilter():
                return messages
            self._filtered = criteria, messages.only(self._meets(messages, criteria))
        return self._filtered[1]

    def _meets(self, messages: TimelineMessages, criteria: MessageFilter) -> Flags:
        which = np.full(messages.tag.size, criteria.shown)
        which &= messages.bytes >= criteria.least_bytes
        if criteria.least_s > 0:
            # A flight time equal to the limit as typed counts, whatever the rounding of the difference.
            which &= messages.received_s - messages.sent_s >= criteria.least_s * (1 - 1e-9)
        if criteria.tag is not None:
            which &= messages.tag == criteria.tag
        if criteria.partner is not None:
            of_rank = np.array([x.rank == criteria.partner for x in self.store.locations] + [False], bool)
            which &= of_rank[messages.sender] | of_rank[messages.receiver]
        if criteria.communicator is not None:
            if self._communicators is None:
                self._communicators = self._look_up_communicators(messages)
            which &= self._communicators == criteria.communicator
        return which

    def _look_up_communicators(self, messages: TimelineMessages) -> Ints:
        """The communicator of each message, -1 if not found: from the sender's records of the same time, tag
        and size, in order."""
        import pandas as pd

        store, key = self.store, ["time", "tag", "bytes"]
        communicators = np.full(messages.tag.size, -1, np.int64)
        ticks = np.rint(messages.sent_s / self.unit).astype(np.int64) + self.start
        table = pd.DataFrame({"time": ticks, "tag": messages.tag, "bytes": messages.bytes})
        for location, mine in table.groupby(messages.sender):
            rows = store.rows("messages", location)
            kind, time, tag, size, number = store.part(
                "messages", location, 0, rows, "kind", *key, "communicator"
            )
            columns = {
                "time": self._clocks[location].common(time),
                "tag": tag,
                "bytes": size,
                "number": number,
            }
            records = pd.DataFrame(columns)[np.isin(kind, SENDS)]
            records, sent = (one.assign(turn=one.groupby(key).cumcount()) for one in (records, mine))
            numbers = sent.merge(records, "left", [*key, "turn"])["number"]
            communicators[mine.index] = numbers.fillna(-1)
        return communicators

    def messages(self) -> TimelineMessages | None:
        """All matched messages, sorted by the time of sending; None if there are too many to be kept."""
        if self._links is None:
            if self._too_many("links"):
                return None
            index, columns = self.store.whole("links", "time", "arrival", "peer", "bytes", "tag")
            sent, arrived, peer, size, tag = columns
            sender, receiver = self._owners(index, sent.size), peer.astype(np.int64)
            at = self.seconds(self._common(sender, sent))
            received = self._common(np.maximum(receiver, 0), arrived)
            order = np.argsort(at, kind="stable")
            self._links = TimelineMessages(
                sender[order],
                receiver[order],
                at[order],
                self.seconds(np.where(receiver >= 0, received, arrived))[order],
                size[order],
                tag[order],
            )
        return self._links

    def _too_many(self, table: str) -> bool:
        """Whether the rows of a table do not fit into memory."""
        return self.store.count(table) > memory.limit() // MESSAGE_BYTES

    def collectives(
        self, a_s: float, b_s: float, limit: int, location: int | None = None
    ) -> list[Collective] | None:
        """Collective operations that overlap a time range; None if there are more than `limit`."""
        if self._collectives is None:
            if self._too_many("collectives"):
                return None
            names = ("operation", "communicator", "root", "begin", "end", "sent", "received")
            index, columns = self.store.whole("collectives", *names)
            owner = self._owners(index, columns[0].size)
            ends = (self.seconds(self._common(owner, v)) for v in columns[3:5])
            self._collectives = (owner, *columns[:3], *ends, *columns[5:])
        owner, _, _, _, begin, end, *_ = self._collectives
        inside = (begin <= b_s) & (end >= a_s)
        if location is not None:
            inside &= owner == location
        rows = np.flatnonzero(inside)
        if rows.size > limit:
            return None
        operations = zip(*(column[rows].tolist() for column in self._collectives), strict=True)
        return [Collective(i, self.store.texts[operation], *values) for i, operation, *values in operations]

    def messages_of(self, location: int, a_s: float, b_s: float) -> TimelineMessages | None:
        """Messages that a location sends or receives in a time range, as in `messages`."""
        messages = self.messages()
        if messages is None:
            return None
        mine = (messages.sender == location) & (messages.sent_s >= a_s) & (messages.sent_s <= b_s)
        mine |= (messages.receiver == location) & (messages.received_s >= a_s) & (messages.received_s <= b_s)
        return messages.only(mine)


def open_timeline(
    store: TraceStore, rules: Rules | None = None, progress: Progress | None = None
) -> Timeline | None:
    """The timeline of a store; None if it has no locations with events (a source that is a curve)."""
    return Timeline(store, rules, progress) if store.has("events") else None

"""The single replay of events while a trace is imported, from which all summaries are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from desktop.core.arrays import AnyArray, Bytes, Ints
from desktop.core.open_regions import NO_PATHS, OpenRegions
from desktop.data.events import EventSource, ImportReport, Location, Nesting, Region
from desktop.data.steps import ReplayedSteps, Steps
from desktop.data.store import DERIVED, Digest
from desktop.data.utilization import Rules, classes_of, parallel_regions, rule_of
from desktop.errors import StoreError
from desktop.progress import Progress

#: Least number of rows between two notes on call paths, and between two checkpoints, which is a multiple.
ROWS = 1 << 12
STEP = 1 << 14


class DigestTarget(Protocol):
    """What digests need of a trace, and where they write rows: a `StoreWriter`, or `DerivedRows`."""

    @property
    def regions(self) -> Sequence[Region]: ...

    @property
    def locations(self) -> Sequence[Location]: ...

    @property
    def nesting(self) -> Nesting: ...

    @property
    def report(self) -> ImportReport: ...

    def derive(self, table: str, location: int, **columns: AnyArray) -> None: ...


#: Time, kind and region of events; region and activity of the states between them.
Events = tuple[Ints, Bytes, NDArray[np.uint32]]
States = tuple[NDArray[np.int32], Bytes]


class DigestStrips(Protocol):
    """The timeline's part, `desktop.data.timeline.Strips`."""

    def begin(self, location: int, first: int) -> None:
        """Start another location, whose first event is at this time."""

    def mark(self, time: int, row: int, regions: OpenRegions) -> None:
        """Called before the `row`-th event, a multiple of `STEP`."""

    def add(self, time: Ints, top: NDArray[np.int32], code: Bytes, regions: int) -> None:
        """Add events with the innermost region and the code after each; `regions`: how many are defined."""

    def close(self, last: int, worked: bool) -> None:
        """Finish the location, whose last event was at this time."""


class Notes(Protocol):
    """The part of call paths, `desktop.data.profile.PathNotes`."""

    limit: int

    def begin(self, location: int, first: int) -> None:
        """Start another location, whose first event is at this time."""

    def replay(self, row: int, regions: OpenRegions, events: Events, states: States) -> bool:
        """As `OpenRegions.feed`, for events from the `row`-th on, with notes at multiples of `ROWS`."""

    def close(self, row: int, regions: OpenRegions) -> None:
        """Finish the location, which had `row` events."""

    def finish(self) -> None:
        """All locations are finished."""


class EventDigest:
    """A `desktop.data.store.Digest`: replays the events of each location once, for all its users.

    steps : kept for the curve (`desktop.data.utilization.keep`).
    """

    def __init__(
        self,
        source: DigestTarget,
        rules: Rules | None = None,
        strips: DigestStrips | None = None,
        notes: Notes | None = None,
        steps: Steps | None = None,
    ) -> None:
        self._source, self._rules = source, rules or Rules()
        self._strips, self._notes, self.steps = strips, notes, steps
        self._classes = self._active = np.zeros(0, np.uint8)
        self._synthetic: list[int] = []
        self._open: OpenRegions | None = None
        self._location = -1

    def take(self, table: str, location: int, block: Mapping[str, AnyArray]) -> None:
        if table != "events" or not block["time"].size:
            return
        time, kind, region = (np.ascontiguousarray(block[name]) for name in ("time", "kind", "region"))
        regions = self._know()
        if location != self._location:
            self._close()
            self._begin(location, int(time[0]), regions)
        top, code = np.empty(time.size, np.int32), np.empty(time.size, np.uint8)
        at = 0
        while at < time.size:
            if self._rows % STEP == 0 and self._strips is not None:
                self._strips.mark(int(time[at]), self._rows, regions)
            part = slice(at, min(time.size, at + STEP - self._rows % STEP))
            events, states = (time[part], kind[part], region[part]), (top[part], code[part])
            if self._notes is None:
                good = regions.feed(*events, states=states)
            else:
                good = self._notes.replay(self._rows, regions, events, states)
            if not good:
                raise StoreError(
                    "the call paths contradict the events",
                    hint="the file is damaged, import the source again",
                )
            self._rows += part.stop - at
            at = part.stop
        # All rows at once: at the end of each kernel this thread may have to wait for the importer's.
        if self._strips is not None:
            self._strips.add(time, top, code, self._classes.size)
        if self.steps is not None:
            self.steps.add(time, code)
        self._last = int(time[-1])

    def finish(self) -> None:
        self._close()
        if self._notes is not None:
            self._notes.finish()
        if self.steps is not None:
            self.steps.finish(self._classes)

    def release(self) -> None:
        if self.steps is not None:
            self.steps.release()

    def _begin(self, location: int, first: int, regions: OpenRegions) -> None:
        self._location, self._rows = location, 0
        regions.begin(first)
        for part in (self._strips, self._notes):
            if part is not None:
                part.begin(location, first)
        if self.steps is not None:
            self.steps.begin(location)

    def _know(self) -> OpenRegions:
        # The importer's thread may define more at any time: a slice of the list is made atomically.
        former = self._classes.size
        more = self._source.regions[former:]
        if more or self._open is None:
            self._classes = np.concatenate([self._classes, classes_of(more, self._rules)])
            self._active = np.concatenate([self._active, parallel_regions(more)])
            self._synthetic += [former + i for i, region in enumerate(more) if region.synthetic]
            rule = rule_of(self._classes, self._active, self._source.nesting)
            if self._open is None:
                self._open = OpenRegions(rule, NO_PATHS if self._notes is None else self._notes.limit)
            else:
                self._open.know(rule)
        return self._open

    def _close(self) -> None:
        if self._location < 0:
            return
        self._location = -1
        regions = self._open
        assert regions is not None
        if self._strips is not None:
            self._strips.close(self._last, regions.worked)
        if self._notes is not None:
            self._notes.close(self._rows, regions)
        if self.steps is not None:
            unclosed = regions.depth - regions.count_open(np.array(self._synthetic, np.int64))
            self.steps.close(ReplayedSteps(regions.worked, regions.stray, unclosed))


class DerivedRows:
    """Derived tables in memory: made by digests for a store without them, in a pass over the rows of all
    locations or of some. `text`: their name for the progress."""

    def __init__(
        self,
        source: EventSource,
        digests: Callable[[Self], Sequence[Digest]],
        progress: Progress,
        text: str,
        locations: Sequence[int] | None = None,
        tables: Sequence[str] = ("events", "messages"),
    ) -> None:
        self.regions, self.locations, self.nesting = source.regions, source.locations, source.nesting
        self.report = ImportReport()
        #: blocks of rows by table and location
        self.rows: dict[tuple[str, int], list[dict[str, AnyArray]]] = {}
        takers = digests(self)
        locations = range(len(self.locations)) if locations is None else locations
        needed = {"events": ("time", "kind", "region"), "messages": ("time", "kind", "peer", "bytes")}
        for done, location in enumerate(locations):
            for table in tables:
                columns = needed[table]
                for block in source.blocks(table, location, *columns):
                    progress.step(done, len(locations), text)
                    for digest in takers:
                        digest.take(table, location, dict(zip(columns, block, strict=True)))
        for digest in takers:
            digest.finish()

    def derive(self, table: str, location: int, **columns: AnyArray) -> None:
        self.rows.setdefault((table, location), []).append(columns)

    def whole(self, table: str, *columns: str) -> tuple[Ints, tuple[AnyArray, ...]]:
        """As `TraceStore.whole`."""
        by_location = [self.rows.get((table, location), []) for location in range(len(self.locations))]
        count = np.array([sum(part[columns[0]].size for part in parts) for parts in by_location], np.int64)
        every = [part for parts in by_location for part in parts]
        return np.stack([np.cumsum(count) - count, count], axis=1), tuple(
            np.concatenate([np.empty(0, DERIVED[table][name]), *(part[name] for part in every)])
            for name in columns
        )

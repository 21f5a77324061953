"""What every importer delivers: locations, regions, columns of records and a report.

An importer (one file in `desktop.data.importers`) is a descriptor `Importer`; its `read` hands the contents
of a source to a `Sink`. It never sees HDF5. Tables and their columns are declared in `TABLES`; the store's
schema, its reader and its writer follow from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from desktop.core.arrays import AnyArray
from desktop.core.clock_line import Clock
from desktop.core.plain import JSON
from desktop.progress import Progress


class Activity(IntEnum):
    """The activity of a processor; the classes of the utilization curve (ORNL/TM-11637, section 1)."""

    COMPUTING = 0
    OVERHEAD = 1  # moving data, starting operations
    IDLE = 2  # waiting for another processor
    IO = 3
    UNMEASURED = 4  # tracing was off, or the tracer was busy with itself


class EventKind(IntEnum):
    """Kinds of events in the table ``events``."""

    ENTER = 0
    LEAVE = 1


class MessageKind(IntEnum):
    """What happened to a message or request, in the table ``messages``."""

    SEND = 0  # blocking send
    ISEND = 1  # non-blocking send is posted
    ISEND_COMPLETE = 2
    RECV = 3  # receive has completed: blocking, or never posted
    IRECV_POST = 4  # non-blocking receive is posted (request only)
    IRECV = 5  # non-blocking receive has completed
    CANCELLED = 6


#: Those that are ends of messages.
SENDS = (MessageKind.SEND, MessageKind.ISEND)
RECEIVES = (MessageKind.RECV, MessageKind.IRECV)


#: table -> column -> dtype. Rows belong to one location, are contiguous per location and sorted by time
#: (``collectives``: by begin). Times are the trace's own ticks as recorded (after the trace's own clock
#: offsets); `Location.clock` is applied on reading.
TABLES: dict[str, dict[str, str]] = {
    "events": {"time": "i8", "kind": "u1", "region": "u4"},
    # peer: index of the other location (-1 unknown); if the trace only names its process, that of the first
    # location of the process (`clock.address_of`); communicator and tag as in the trace
    "messages": {
        "time": "i8",
        "kind": "u1",
        "peer": "i4",
        "communicator": "u4",
        "tag": "i8",
        "bytes": "i8",
        "request": "u8",
    },
    # operation: index into the store's texts, e.g. "Allreduce"; root: location index or -1
    "collectives": {
        "begin": "i8",
        "end": "i8",
        "operation": "u4",
        "communicator": "u4",
        "root": "i4",
        "sent": "i8",
        "received": "i8",
    },
    # user marks and comments; text: index into the store's texts
    "marks": {"time": "i8", "text": "u4"},
    # metric: index into the store's texts
    "metrics": {"time": "i8", "metric": "u4", "value": "f8"},
    # a source that is itself a curve: edges and levels (the last row is the end; its level is unused)
    "curve": {"time": "f8", "level": "f8"},
}

Severity = Literal["info", "notice", "loss", "error"]
#: Units of time, and how many of them are a second.
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}

SEVERITIES: tuple[Severity, ...] = ("info", "notice", "loss", "error")

#: Communicator of an operation if it is unknown, or every process's own.
NO_COMMUNICATOR = 0xFFFFFFFF

#: More ticks than any run has.
EVERYTHING = 1 << 61

#: Role of a region that the trace uses but does not define.
UNDEFINED = "undefined"

#: Which of several open regions determines the activity of a location, see `Sink.describe`.
Nesting = Literal["outermost", "strongest"]

LocationKind = Literal["cpu", "accelerator", "metric", "host"]

#: Meaning of a metric's values: totals since the start, absolute values, or increments.
MetricMode = Literal["accumulated", "absolute", "relative"]
#: When a value holds: from its sample to the next one, or from the previous sample to its own.
MetricTiming = Literal["next", "last"]


@dataclass
class Location:
    """One thread of execution. Only kind ``"cpu"`` counts as a processor.

    `id` is the trace's own number (up to 64 bits), the index in the store is dense. `records` counts all
    records of the location as the format's reference reader does. `base` is its activity outside of all
    regions. `first`/`last` are ticks as recorded (of any record). `shift`, `drift`, `origin` repair its
    clock, see `Clock`, which may then be off by `half_width` ticks. `damage` is shown in the window: "no
    data", "ends early" etc., or empty. `doubt`: most ticks in which its activity is uncertain; `EVERYTHING`
    if those are all.
    """

    id: int
    name: str = ""
    rank: int = -1
    thread: int = 0
    kind: LocationKind = "cpu"
    process: str = ""
    base: Activity = Activity.COMPUTING
    records: int = 0
    first: int | None = None
    last: int | None = None
    shift: int = 0
    drift: float = 0.0
    origin: int = 0
    half_width: float = 0.0
    damage: str = ""
    doubt: int = 0

    def clock(self, repaired: bool) -> Clock:
        """The clock that converts ticks as recorded to the common clock; the identity unless `repaired`."""
        return Clock(self.shift, self.drift, self.origin) if repaired else Clock()

    def span(self, repaired: bool) -> tuple[int, int] | None:
        """First and last tick on the common clock; None if it has no records."""
        if self.first is None or self.last is None:
            return None
        clock = self.clock(repaired)
        return clock.common(self.first), clock.common(self.last)

    def doubt_for(self, ticks: int | None = None) -> None:
        """Its activity is uncertain in at least so many ticks; None: from its first to its last one."""
        first, last = self.span(repaired=False) or (0, 0)
        self.doubt = max(self.doubt, last - first if ticks is None else ticks)


@dataclass
class Region:
    """A piece of code or a state. `activity` None: by `desktop.data.classify`. `role` and `paradigm` are
    lower-case names ("function", "barrier", "coll_all2all", ...; "mpi", "user", ...). `synthetic`: the
    importer made its enters and leaves from other records, so they are not counted."""

    name: str
    role: str = ""
    paradigm: str = ""
    activity: Activity | None = None
    synthetic: bool = False


@dataclass(frozen=True)
class MetricAbout:
    """Properties of a metric besides its name. `unit` is "" if the trace gives none."""

    unit: str = ""
    mode: MetricMode = "absolute"
    timing: MetricTiming = "next"


@dataclass
class Finding:
    """One kind of finding: its count, its first place, and one sentence on its meaning and what was done."""

    name: str
    severity: Severity
    text: str
    count: int = 0
    where: str = ""


#: Possible findings of a format, by name: severity, what it means and what was done.
Findings = Mapping[str, tuple[Severity, str]]


@dataclass
class ImportReport:
    """Findings by name. ``loss`` means that part of the input is not in the store."""

    findings: dict[str, Finding] = field(default_factory=dict)

    def add(self, name: str, severity: Severity, text: str, *, count: int = 1, where: str = "") -> None:
        """Count a finding; text and first place of the first call are kept, and the worst severity."""
        finding = self.findings.setdefault(name, Finding(name, severity, text, 0, where))
        finding.count += count
        finding.severity = max(finding.severity, severity, key=SEVERITIES.index)

    def tell(
        self, findings: Findings, name: str, count: int = 1, where: str = "", severity: Severity | None = None
    ) -> None:
        """Count a finding of `findings`, if `count` is not 0; with its own severity unless given."""
        if count:
            usual, text = findings[name]
            self.add(name, severity or usual, text, count=count, where=where)

    @property
    def lossy(self) -> bool:
        return any(f.severity in ("loss", "error") for f in self.findings.values())

    def __iter__(self) -> Iterator[Finding]:
        """Worst first."""
        return iter(sorted(self.findings.values(), key=lambda f: -SEVERITIES.index(f.severity)))


class Sink(Protocol):
    """Receives what an importer reads. Implemented by `desktop.data.store.StoreWriter`."""

    @property
    def report(self) -> ImportReport: ...

    def describe(
        self,
        *,
        ticks_per_second: float,
        nesting: Nesting = "outermost",
        repair: bool = False,
        notes: JSON | None = None,
    ) -> None:
        """Facts about the whole trace; to be called before the first `append`.

        `nesting`: with several open regions, the outermost that is not computing decides, or the strongest of
        all (idle over overhead over computing). `repair`: whether a repair of the clocks is applied by
        default if one is found (for traces without clock offsets of their own). `notes`: the format's own
        information; ``reordered`` lists communicators whose ranks are not in the order of locations,
        ``communicator_names`` has their names by number (as text).
        """

    def location(self, location: Location) -> int:
        """Define a location; returns its dense index. The sink keeps the object: fields may be set later."""

    def region(self, region: Region) -> int:
        """Define a region; returns its dense index. Regions equal in name, role and paradigm are one."""

    def text(self, text: str) -> int:
        """Index of a text (metric or operation name, mark)."""

    def metric(self, name: str, about: MetricAbout) -> int:
        """Define a metric; returns the index of its text. It gets another name if that name has other
        properties."""

    def wants(self, location: int) -> bool:
        """Whether the records of a location belong into this sink; to be called before they are read.

        A divided import (`Importer.divisible`) reads one trace into several sinks. Findings reported before
        the first call are about the whole trace, later ones about the locations.
        """

    def append(self, table: str, location: int, **columns: AnyArray) -> None:
        """Append rows of one location, in time order. Blocks of different locations must not interleave
        within a table: once another location has begun, a former one is closed (ValueError)."""


class EventSource(Protocol):
    """Events to read: a `StoreWriter` once everything was appended, or a `TraceStore`.

    The clock check and the utilization read through this, so that they work during an import as well as on a
    finished file.
    """

    @property
    def ticks_per_second(self) -> float: ...

    @property
    def nesting(self) -> Nesting: ...

    @property
    def repair(self) -> bool: ...

    @property
    def notes(self) -> JSON: ...

    @property
    def locations(self) -> Sequence[Location]: ...

    @property
    def regions(self) -> Sequence[Region]: ...

    @property
    def texts(self) -> Sequence[str]: ...

    def rows(self, table: str, location: int) -> int:
        """Number of rows of a location in a table."""

    def blocks(
        self, table: str, location: int, *columns: str, rows: int = 1 << 16
    ) -> Iterator[tuple[AnyArray, ...]]:
        """The rows of a location in order, at most `rows` at a time, as a tuple of the given columns (by
        default all, in declared order). Times are as recorded: `Location.clock` is not applied."""


@dataclass(frozen=True)
class Importer:
    """A trace format.

    `detect(path, head)` decides by the content whether the source has this format (`head`: first 64 KiB,
    empty for a directory). `read(path, sink, progress)` delivers it, in bounded memory, and raises
    `TraceFormatError` only when nothing usable can be read. `files(path)` lists the files of the source (for
    size and hash), largest scope first found by the importer. `divisible`: `read` asks `Sink.wants` for every
    location and reads (nearly) nothing of unwanted ones. `takes_unit`: sources may not define the length of a
    tick, and `read` accepts it as its last argument `unit`. `folders`: a trace is a folder, and none of its
    files can be opened alone.
    """

    id: str
    title: str
    version: str
    detect: Callable[[Path, bytes], bool]
    read: Callable[[Path, Sink, Progress], None]
    files: Callable[[Path], list[Path]]
    patterns: tuple[str, ...] = ()
    divisible: bool = False
    takes_unit: bool = False
    unit: str = "s"
    folders: bool = False

    def in_unit(self, unit: str) -> Importer:
        """The importer for sources with ticks of that length, one of `UNITS`.

        Raises
        ------
        ValueError : sources of this format always define it themselves.
        """
        if unit == self.unit:
            return self
        if not self.takes_unit:
            raise ValueError(f"{self.title} says its own unit of time")
        version = f"{self.version} ({unit})"
        read = partial(self.read, unit=unit)  # type: ignore[call-arg]  # it has one, as `takes_unit` says
        return replace(self, version=version, read=read, unit=unit)


def occurring(source: EventSource, table: str, column: str) -> list[int]:
    """The values of a column that occur at any location, rising."""
    occurs: set[int] = set()
    for i in range(len(source.locations)):
        for (values,) in source.blocks(table, i, column):
            occurs.update(np.unique(values).tolist())
    return sorted(occurs)


def events_at(time: int | None, kind: EventKind, regions: ArrayLike) -> dict[str, AnyArray]:
    """Columns of enters or leaves of regions, all at the same time."""
    region = np.asarray(regions)
    times = np.full(region.size, time, np.int64)
    return {"time": times, "kind": np.full(region.size, kind, np.uint8), "region": region.astype(np.uint32)}


def columns_like(table: str, rows: int) -> dict[str, AnyArray]:
    """Empty columns of a table, with `rows` rows."""
    return {name: np.empty(rows, dtype) for name, dtype in TABLES[table].items()}

"""The event store: one HDF5 file per imported trace, and the only module that knows HDF5.

Layout (schema 2)::

    /                       attributes: format, schema
    /description            JSON (bytes): source, importer, clock, locations, regions, texts, report
    /tables/TABLE/COLUMN    one 1-D dataset for each column that `events.TABLES` declares
    /tables/TABLE/index     (locations, 2) int64: first row, number of rows
    /derived/TABLE/...      the same for `DERIVED`: what can be computed again, kept so that opening a
                            store needs no pass over its events

Columns have chunks of `CHUNK` rows, byte shuffle and gzip (`desktop.data.packing`), so any HDF5 program reads
them. Rows of a location are contiguous. Stores may come from strangers: everything is checked against the
declaration before it is used, and nothing in a store is ever executed.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

import h5py
import numpy as np
from numpy.typing import NDArray

from desktop.core.jit import kernel
from desktop.data.atomic import PartFile
from desktop.data.events import (
    SEVERITIES,
    TABLES,
    Activity,
    EventKind,
    Finding,
    Importer,
    ImportReport,
    Location,
    MessageKind,
    Nesting,
    Region,
)
from desktop.data.lines import in_order
from desktop.data.packing import Packer, unpack
from desktop.data.reading import head
from desktop.errors import StoreError, TraceFormatError

FORMAT = "phasewright"
SCHEMA = 2  # 1 had no `links`
SUFFIX = ".h5"
#: Rows in a chunk of a column: what is read at least to know one row.
CHUNK = 1 << 14
FORMER_CHUNKS = (1 << 16,)
#: Rows of a block from which on the digests look at it in a thread of their own, and how many blocks
#: they may be behind.
BESIDE = 1 << 12
BEHIND = 4
#: Bytes of chunks that stay unpacked, for many locations side by side are read a few rows at a time. A trace
#: of up to two million events is hardly unpacked while it is imported.
KEPT = 1 << 25
HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
#: Largest description that is written or read, in bytes; 10^5 locations need some 40 MB.
DESCRIPTION_LIMIT = 1 << 28

#: Times beyond this many ticks (73 years of nanoseconds) are damage; sums of two stay far within int64.
TICK_LIMIT = 1 << 61

#: Tables that follow from the others. ``calls``: how often a location entered a region, never-entered ones
#: left out. ``utilization`` (all rows belong to location 0): processors in each activity from `time` on
#: (ticks since the first event) with the default rules; the last row is the end. ``links``: the sender's
#: messages whose two ends are known, sent at `time`, received by `peer` at `arrival` (each as recorded).
#: ``strips``, ``timeline``, ``checkpoints``: see `desktop.data.timeline`; ``paths``, ``profile``, ``folded``,
#: ``traffic``: see `desktop.data.profile`.
DERIVED: dict[str, dict[str, str]] = {
    "calls": {"region": "u4", "count": "i8"},
    "utilization": {"time": "i8"} | {a.name.lower(): "i4" for a in Activity},
    "links": {"time": "i8", "arrival": "i8", "peer": "i4", "bytes": "i8", "tag": "i8"},
    "strips": {"first": "i8", "last": "i8", "width": "u1", "region": "i4", "activity": "u1"},
    "timeline": {"region": "i4", "activity": "u1", "regions": "u8", "activities": "u1"},
    "checkpoints": {"time": "i8", "row": "i8", "region": "i4", "since": "i8"},
    "paths": {"parent": "i4", "region": "u4"},
    "profile": {"row": "i8", "time": "i8", "top": "u4", "node": "u4", "ticks": "i8", "calls": "i8"},
    "folded": {"row": "i8", "node": "u4"},
    "traffic": {"row": "i8", "time": "i8", "peer": "i4"}
    | dict.fromkeys(("sent", "bytes_sent", "received", "bytes_received"), "i8"),
}

#: The column by which the rows of a location are sorted; "" if by none.
_KEYS = {
    "collectives": "begin",
    "calls": "region",
    "strips": "first",
    "timeline": "",
    "paths": "",
    "profile": "row",
    "folded": "row",
    "traffic": "row",
}
#: Columns whose values must be below a fixed number, or refer to one of these lists.
_BOUNDS: dict[tuple[str, str], int | str] = {
    ("events", "kind"): len(EventKind),
    ("events", "region"): "regions",
    ("messages", "kind"): len(MessageKind),
    ("messages", "peer"): "locations",
    ("collectives", "operation"): "texts",
    ("collectives", "root"): "locations",
    ("marks", "text"): "texts",
    ("metrics", "metric"): "texts",
    ("calls", "region"): "regions",
    ("links", "peer"): "locations",
    ("strips", "width"): 62,
    ("strips", "region"): "regions",
    ("strips", "activity"): len(Activity),
    ("timeline", "region"): "regions",
    ("timeline", "activity"): len(Activity),
    ("timeline", "activities"): 1 << len(Activity),
    ("checkpoints", "region"): "regions",
    ("paths", "region"): "regions",
    ("traffic", "peer"): "locations",
}
#: Columns in which -1 stands for "none".
_OPTIONAL = {
    ("messages", "peer"),
    ("collectives", "root"),
    ("strips", "region"),
    ("timeline", "region"),
    ("checkpoints", "region"),
    ("traffic", "peer"),
}


@dataclass
class Source:
    """What was imported. `files`: path, size in bytes and modification time in ns of every file of it."""

    path: str
    name: str
    size: int = 0
    sha256: str = ""
    files: list[tuple[str, int, int]] = field(default_factory=list)


@dataclass
class ImporterInfo:
    id: str
    version: str


@dataclass
class Tally:
    """What a location holds. `sent` counts send and isend, `received` completed receives."""

    enter: int = 0
    leave: int = 0
    sent: int = 0
    received: int = 0
    collectives: int = 0


@dataclass
class ClockSummary:
    """Outcome of the clock check (`desktop.data.clock`) with the default rules: how many instances were
    compared and how many contradict the clocks; the shifts stand in the locations."""

    checked: int = 0
    violations_before: int = 0
    violations_after: int = 0
    repair: str = "none"
    details: dict[str, Any] = field(default_factory=dict)


@dataclass
class Description:
    """Everything about a trace but its rows."""

    source: Source
    importer: ImporterInfo
    ticks_per_second: float = 0.0
    nesting: Nesting = "outermost"
    repair: bool = False
    notes: dict[str, Any] = field(default_factory=dict)
    clock: ClockSummary = field(default_factory=ClockSummary)
    locations: list[Location] = field(default_factory=list)
    tallies: list[Tally] = field(default_factory=list)
    #: ticks in each `Activity` with the default rules, per location
    totals: list[list[int]] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    report: ImportReport = field(default_factory=ImportReport)


class _Described:
    """The attributes that writer and reader share."""

    description: Description

    @property
    def source(self) -> Source:
        return self.description.source

    @property
    def importer(self) -> ImporterInfo:
        return self.description.importer

    @property
    def ticks_per_second(self) -> float:
        return self.description.ticks_per_second

    @property
    def nesting(self) -> Nesting:
        return self.description.nesting

    @property
    def repair(self) -> bool:
        return self.description.repair

    @property
    def notes(self) -> dict[str, Any]:
        return self.description.notes

    @property
    def clock(self) -> ClockSummary:
        return self.description.clock

    @property
    def locations(self) -> Sequence[Location]:
        return self.description.locations

    @property
    def tallies(self) -> Sequence[Tally]:
        return self.description.tallies

    @property
    def totals(self) -> Sequence[Sequence[int]]:
        return self.description.totals

    @property
    def regions(self) -> Sequence[Region]:
        return self.description.regions

    @property
    def texts(self) -> Sequence[str]:
        return self.description.texts

    @property
    def report(self) -> ImportReport:
        return self.description.report


class _Chunks:
    """Unpacked chunks, by column and number: those used last, in `KEPT` bytes. Not to be changed. Several
    threads may ask."""

    def __init__(self) -> None:
        self._chunks: dict[tuple[str, str, int], NDArray[Any]] = {}  # the latest used last
        self._size = 0
        self._lock = RLock()

    def get(self, key: tuple[str, str, int]) -> NDArray[Any] | None:
        with self._lock:
            chunk = self._chunks.pop(key, None)
            if chunk is not None:
                self._chunks[key] = chunk
            return chunk

    def put(self, key: tuple[str, str, int], chunk: NDArray[Any]) -> None:
        with self._lock:
            former = self._chunks.pop(key, None)
            self._chunks[key] = chunk
            self._size += chunk.nbytes - (0 if former is None else former.nbytes)
            while self._size > KEPT:
                self._size -= self._chunks.pop(next(iter(self._chunks))).nbytes


# --- writing ---


class Digest(Protocol):
    """A summary of rows made while they pass by on their way into the file, so that nothing is read twice.
    It may work in a thread of its own, while more is defined and appended."""

    def take(self, table: str, location: int, block: Mapping[str, NDArray[Any]]) -> None:
        """Rows of a location in their order, as `Sink.append` got them (times as recorded)."""

    def finish(self) -> None:
        """All rows were taken, the locations are complete: `StoreWriter.derive` what is left."""


class StoreWriter(_Described):
    """A `desktop.data.events.Sink` and `EventSource` that becomes the file `path` when its block ends.

    The file appears whole when the ``with`` block is left normally; on an error, `Cancelled` or a kill the
    old file, if any, is still there. `digests` see every block of rows on its way. `only` says which
    locations are wanted; their file is a partial store, in which they are numbered anew but for references in
    rows (`take_over`). Memory: one chunk per column, `KEPT` bytes of others that the pass over the rows after
    the import need not unpack, the description, and what the digests need.

    Raises
    ------
    ValueError : an importer breaks the rules of `Sink` (a programming error).
    StoreError : the file cannot be written.
    """

    def __init__(
        self,
        path: Path,
        source: Source,
        importer: Importer | ImporterInfo,
        digests: Sequence[Callable[[StoreWriter], Digest]] = (),
        only: Callable[[int], bool] | None = None,
    ) -> None:
        self.path = path
        self._only = only
        self.description = Description(source, ImporterInfo(importer.id, importer.version))
        self._digests = [digest(self) for digest in digests]
        self._beside = ThreadPoolExecutor(1, "digests")
        self._behind: deque[Future[None]] = deque()  # blocks that the digests have not seen yet
        self._completed = False
        self._regions: dict[tuple[str, str, str], int] = {}
        self._texts: dict[str, int] = {}
        self._tables: dict[str, _TableWriter] = {}
        self._kept = _Chunks()
        self._enters = np.zeros(0, np.int64)  # per region, of the location whose events are being appended
        self._recorded = np.zeros(0, bool)  # per region: not made up by the importer
        self._span: list[tuple[int, int] | None] = []

    def __enter__(self) -> Self:
        with _writing(self.path):
            self._part = PartFile(self.path)
            try:
                # The part is locked already; HDF5's own lock of the same file would collide with that.
                # Since 1.10 all that HDF5 notes about its data has check sums: damage is found, not followed.
                self._file = h5py.File(self._part.part, "w", locking=False, libver=("v110", "v110"))
            except OSError:
                self._part.discard()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                with _writing(self.path):
                    self._finish()
        except BaseException:
            self._discard()
            raise
        if error is not None:
            self._discard()

    # Sink

    def describe(
        self,
        *,
        ticks_per_second: float,
        nesting: Nesting = "outermost",
        repair: bool = False,
        notes: dict[str, Any] | None = None,
    ) -> None:
        if not (math.isfinite(ticks_per_second) and ticks_per_second > 0):
            raise ValueError(f"ticks_per_second is {ticks_per_second}, it must be a positive number")
        d = self.description
        d.ticks_per_second, d.nesting, d.repair = float(ticks_per_second), nesting, repair
        d.notes = dict(notes or {})

    def location(self, location: Location) -> int:
        self.description.locations.append(location)
        self.description.tallies.append(Tally())
        self._span.append(None)
        return len(self.description.locations) - 1

    def region(self, region: Region) -> int:
        key = (region.name, region.role, region.paradigm)
        index = self._regions.setdefault(key, len(self._regions))
        if index == len(self.description.regions):
            self.description.regions.append(region)
        return index

    def text(self, text: str) -> int:
        index = self._texts.setdefault(text, len(self._texts))
        if index == len(self.description.texts):
            self.description.texts.append(text)
        return index

    def wants(self, location: int) -> bool:
        return self._only is None or self._only(location)

    def append(self, table: str, location: int, **columns: NDArray[Any]) -> None:
        if not self.ticks_per_second:
            raise ValueError("describe() must be called before the first append()")
        if not 0 <= location < len(self.locations):
            raise ValueError(f"{table}: there is no location {location}")
        if table not in TABLES:
            raise ValueError(f"there is no table {table!r}")
        block = _block(table, columns)
        rows = block[next(iter(block))].size
        if rows == 0:
            return
        _check_values(table, block, self._bound, ValueError)
        with _writing(self.path):
            writer = self._table("tables", table)
            if table == "events" and writer.location != location:
                self._close_calls()
            writer.append(location, block)
        self._count(table, location, block)
        if self._digests:
            self._digest(table, location, block)

    def _digest(self, table: str, location: int, block: dict[str, NDArray[Any]]) -> None:
        def take() -> None:
            for digest in self._digests:
                digest.take(table, location, block)

        if block[next(iter(block))].size < BESIDE:
            self._catch_up(0)
            take()
        else:
            self._catch_up(BEHIND)
            # The importer may use its arrays again.
            block = {name: column.copy() for name, column in block.items()}
            self._behind.append(self._beside.submit(take))

    def _catch_up(self, most: int) -> None:
        """Wait until the digests are at most so many blocks behind."""
        while len(self._behind) > most:
            self._behind.popleft().result()

    # EventSource

    def rows(self, table: str, location: int) -> int:
        writer = self._tables.get(table)
        return 0 if writer is None else writer.index.get(location, (0, 0))[1]

    def blocks(
        self, table: str, location: int, *columns: str, rows: int = 1 << 16
    ) -> Iterator[tuple[NDArray[Any], ...]]:
        names = columns or tuple((TABLES | DERIVED)[table])
        writer = self._tables.get(table)
        if writer is not None:
            start, count = writer.index.get(location, (0, 0))
            for a in range(start, start + count, rows):
                b = min(a + rows, start + count)
                yield tuple(writer.read(name, a, b) for name in names)

    # what follows from the rows

    def derive(self, table: str, location: int, **columns: NDArray[Any]) -> None:
        """Rows of a table of `DERIVED`; the same rules as for `append`."""
        with _writing(self.path):
            self._table("derived", table).append(location, _block(table, columns, DERIVED))

    def take_over(self, parts: Sequence[tuple[TraceStore, NDArray[np.int64], NDArray[np.uint32]]]) -> None:
        """Copy all rows of partial stores, in the order of the locations here.

        Parameters
        ----------
        parts : of each the store, the indices (n,) that its locations have here, and the numbers that its
            texts have here. Their regions must be those here.

        Raises
        ------
        StoreError : a part is damaged, or the file cannot be written.
        """
        for group, declared in (("tables", TABLES), ("derived", DERIVED)):
            for table in declared:
                # part, first row and number of rows of every location
                places = np.zeros((len(self.locations), 3), np.int64)
                for number, (store, own, _) in enumerate(parts):
                    places[own, 0] = number
                    places[own, 1:] = store.places(table)
                used = np.flatnonzero(places[:, 2])
                if used.size:
                    with _writing(self.path):
                        self._table(group, table).take_over(parts, used, places[used], self._bound)

    def _table(self, group: str, table: str) -> _TableWriter:
        if table not in self._tables:
            columns = (TABLES | DERIVED)[table]
            self._tables[table] = _TableWriter(
                self._file.require_group(group).create_group(table),
                columns,
                table,
                self._kept if group == "tables" else None,
            )
        return self._tables[table]

    def _bound(self, kind: str) -> int:
        return len(getattr(self.description, kind))

    def _count(self, table: str, location: int, block: dict[str, NDArray[Any]]) -> None:
        tally = self.description.tallies[location]
        if table == "events":
            if self._recorded.size < len(self.regions):
                self._recorded = np.array([not region.synthetic for region in self.regions], bool)
                self._enters = np.pad(self._enters, (0, self._recorded.size - self._enters.size))
            kind, region = (np.ascontiguousarray(block[name]) for name in ("kind", "region"))
            entered, left = count_events(kind, region, self._recorded, self._enters)
            tally.enter += entered
            tally.leave += left
        elif table == "messages":
            kinds = np.bincount(block["kind"], minlength=len(MessageKind))
            tally.sent += int(kinds[MessageKind.SEND] + kinds[MessageKind.ISEND])
            tally.received += int(kinds[MessageKind.RECV] + kinds[MessageKind.IRECV])
        elif table == "collectives":
            tally.collectives += block["begin"].size
        if table == "curve":
            return
        begin = block[_KEYS.get(table, "time")]
        first = int(begin[0])
        last = int(block["end"].max()) if table == "collectives" else int(begin[-1])
        if not -TICK_LIMIT < first <= last < TICK_LIMIT:
            raise TraceFormatError(
                f"has times from {first} to {last} ticks",
                file=self.source.path,
                where=f"location {self.locations[location].id}, {table}",
                hint="the file is damaged",
            )
        known = self.description.locations[location]
        known.first = first if known.first is None else min(known.first, first)
        known.last = last if known.last is None else max(known.last, last)
        span = self._span[location] or (first, last)
        self._span[location] = (min(span[0], first), max(span[1], last))

    def _close_calls(self) -> None:
        """Keep the enter counts of the location whose events are complete."""
        used = np.flatnonzero(self._enters)
        if used.size:
            self.derive(
                "calls",
                self._tables["events"].location,
                region=used.astype(np.uint32),
                count=self._enters[used],
            )
        self._enters[:] = 0

    def complete(self) -> None:
        """Say that the importer has delivered everything: counts are final, locations cover their rows."""
        if self._completed:
            return
        self._completed = True
        self._catch_up(0)
        with _writing(self.path):
            self._close_calls()
        for location, tally, span in zip(self.locations, self.tallies, self._span, strict=True):
            if span is not None:
                # An importer may have set them late, from other records than those it stored.
                location.first = min(span[0], span[0] if location.first is None else location.first)
                location.last = max(span[1], span[1] if location.last is None else location.last)
            if not location.records:
                location.records = tally.enter + tally.leave + tally.sent + tally.received + tally.collectives
        for digest in self._digests:
            digest.finish()

    def _finish(self) -> None:
        self.complete()
        self._beside.shutdown()
        own = [i for i in range(len(self.locations)) if self._only is None or self._only(i)]
        for writer in self._tables.values():
            writer.finish(own)
        d = self.description
        text = _encode(
            replace(d, locations=[d.locations[i] for i in own], tallies=[d.tallies[i] for i in own])
        )
        if len(text) > DESCRIPTION_LIMIT:
            raise StoreError("the trace defines too many names to be stored", file=self.path)
        self._file.create_dataset(
            "description",
            data=np.frombuffer(text, np.uint8),
            chunks=(min(len(text), 1 << 20),),
            compression="gzip",
            compression_opts=1,
        )
        self._file.attrs["format"] = np.bytes_(FORMAT)  # of fixed length; others lie in a heap without sums
        self._file.attrs["schema"] = SCHEMA
        self._file.close()
        self._part.commit()

    def _discard(self) -> None:
        self._beside.shutdown(cancel_futures=True)
        with suppress(OSError, RuntimeError):  # closing flushes, which fails again on a full disk
            self._file.close()
        self._part.discard()


class _TableWriter:
    """Columns of one table: buffers of one chunk, compressed here and stored as they are."""

    def __init__(self, group: h5py.Group, columns: dict[str, str], table: str, kept: _Chunks | None) -> None:
        self.group = group
        self.table = table
        self._kept = kept  # None: these rows are not read again
        self.index: dict[int, tuple[int, int]] = {}
        self.location = -1
        self.flushed = 0
        self.filled = 0
        self._key = _KEYS.get(table, "time")
        self._last: Any = None
        self.buffers = {name: np.zeros(CHUNK, dtype) for name, dtype in columns.items()}
        self._packers = {name: Packer() for name in columns}
        self._room = 0  # rows that the datasets have room for
        self.datasets = {
            name: group.create_dataset(
                name,
                (0,),
                dtype,
                maxshape=(None,),
                chunks=(CHUNK,),
                shuffle=True,
                compression="gzip",
                compression_opts=1,
            )
            for name, dtype in columns.items()
        }

    def append(self, location: int, block: dict[str, NDArray[Any]]) -> None:
        rows = next(iter(block.values())).size
        self._begin(location, block[self._key] if self._key else np.zeros(0))
        self._put(block, rows)
        start, count = self.index[location]
        self.index[location] = (start, count + rows)

    def take_over(
        self,
        parts: Sequence[tuple[TraceStore, NDArray[np.int64], NDArray[np.uint32]]],
        locations: NDArray[np.int64],
        places: NDArray[np.int64],
        bound: Callable[[str], int],
    ) -> None:
        """Rows of `locations`, which lie at `places`: (n, 3) part, first row and number of rows."""
        part, start, count = places.T
        at = self.flushed + self.filled + np.cumsum(count) - count
        self.index.update(zip(locations.tolist(), zip(at.tolist(), count.tolist(), strict=True), strict=True))
        # Neighbours that are neighbours there too are read in one go.
        begin = np.flatnonzero(np.r_[True, (part[1:] != part[:-1]) | (start[1:] != (start + count)[:-1])])
        end = np.r_[begin[1:], part.size] - 1
        for a, b in zip(begin, end, strict=True):
            store, _, texts = parts[part[a]]
            for block in store.stretch(self.table, int(start[a]), int(start[b] + count[b])):
                for name, values in block.items():
                    if _BOUNDS.get((self.table, name)) == "texts":
                        block[name] = texts[values]
                _check_values(self.table, block, bound, store._damaged)
                self._put(block, next(iter(block.values())).size)

    def _put(self, block: Mapping[str, NDArray[Any]], rows: int) -> None:
        done = 0
        while done < rows:
            take = min(rows - done, CHUNK - self.filled)
            for name, buffer in self.buffers.items():
                buffer[self.filled : self.filled + take] = block[name][done : done + take]
            self.filled += take
            done += take
            if self.filled == CHUNK:
                self._flush()

    def _begin(self, location: int, key: NDArray[Any]) -> None:
        if location != self.location:
            if location in self.index:
                raise ValueError(
                    f"{self.table}: location {location} goes on after another one; "
                    "the rows of a location must be appended in one go"
                )
            self.index[location] = (self.flushed + self.filled, 0)
            self.location, self._last = location, None
        if key.size and self._last is not None and not key[0] >= self._last:
            raise ValueError(
                f"{self.table}: location {location} goes back in time from {self._last} to {key[0]}"
            )
        steps = key[1:] >= key[:-1]
        if not steps.all():
            j = int(np.argmin(steps))
            raise ValueError(
                f"{self.table}: location {location} goes back in time from {key[j]} to {key[j + 1]}"
            )
        if key.size:
            self._last = key[-1]

    def read(self, name: str, start: int, stop: int) -> NDArray[Any]:
        """Rows of a column, from the file or, where they are not there yet, from the buffer."""
        pieces = [
            self._chunk(name, number)[max(start - number * CHUNK, 0) : stop - number * CHUNK]
            for number in range(start // CHUNK, -(-min(stop, self.flushed) // CHUNK))
        ]
        if stop > self.flushed:
            pieces.append(self.buffers[name][max(start - self.flushed, 0) : stop - self.flushed])
        return np.concatenate(pieces)

    def _chunk(self, name: str, number: int) -> NDArray[Any]:
        key = (self.table, name, number)
        chunk = self._kept.get(key) if self._kept is not None else None
        if chunk is None:
            _, packed = self.datasets[name].id.read_direct_chunk((number * CHUNK,))
            chunk = unpack(packed, CHUNK, self.buffers[name].dtype)
            if self._kept is not None:
                self._kept.put(key, chunk)
        return chunk

    def _flush(self) -> None:
        if self.flushed == self._room:
            self._room += CHUNK * max(1, min(self.flushed // CHUNK, 64))
            for dataset in self.datasets.values():
                dataset.resize((self._room,))
        for name, dataset in self.datasets.items():
            buffer = self.buffers[name]
            dataset.id.write_direct_chunk((self.flushed,), self._packers[name](buffer))
            if self._kept is not None:
                self._kept.put((self.table, name, self.flushed // CHUNK), buffer)
                self.buffers[name] = np.empty_like(buffer)
        self.flushed += self.filled
        self.filled = 0

    def finish(self, locations: Sequence[int]) -> None:
        rows = self.flushed + self.filled
        if self.filled:
            for buffer in self.buffers.values():
                buffer[self.filled :] = 0
            self._flush()
        for dataset in self.datasets.values():
            dataset.resize((rows,))
        index = np.array([self.index.get(location, (0, 0)) for location in locations], np.int64)
        index = index.reshape(-1, 2)
        self.group.create_dataset("index", data=index)


def _block(
    table: str, columns: Mapping[str, NDArray[Any]], declared: Mapping[str, dict[str, str]] = TABLES
) -> dict[str, NDArray[Any]]:
    """Columns as declared, none missing, none too many, all of one length, no value changed."""
    types = declared[table]
    if columns.keys() != types.keys():
        raise ValueError(f"{table}: has columns {', '.join(types)}, got {', '.join(columns)}")
    block = {}
    size = None
    for name, dtype in types.items():
        given = np.asarray(columns[name])
        size = given.size if size is None else size
        if given.shape != (size,):
            raise ValueError(f"{table}.{name}: has shape {given.shape}, expected ({size},)")
        block[name] = given.astype(dtype, copy=False)
        if not np.can_cast(given.dtype, dtype) and not np.array_equal(block[name], given):
            raise ValueError(f"{table}.{name}: has values that do not fit into {dtype}")
    return block


def _check_values(
    table: str,
    block: Mapping[str, NDArray[Any]],
    bound: Callable[[str], int],
    error: Callable[[str], Exception],
) -> None:
    """References point at something, so that kernels may use them as indices unchecked."""
    for name, values in block.items():
        limit = _BOUNDS.get((table, name))
        if limit is None or not values.size:
            continue
        least = -1 if (table, name) in _OPTIONAL else 0
        most = (bound(limit) if isinstance(limit, str) else limit) - 1
        low, high = int(values.min()), int(values.max())
        if low < least or high > most:
            raise error(f"{table}.{name} is {low if low < least else high}, allowed are {least} to {most}")


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise StoreError(
            f"cannot be written ({reason})", file=path, hint="choose another folder or make room"
        ) from error


_ENTER = int(EventKind.ENTER)


@kernel
def count_events(kind: Any, region: Any, recorded: Any, enters: Any) -> tuple[int, int]:
    """How many enters and leaves are of regions that are recorded; adds to the enters (regions,) of each."""
    entered = left = 0
    for i in range(kind.size):
        if kind[i] == _ENTER:
            enters[region[i]] += 1
            entered += recorded[region[i]]
        else:
            left += recorded[region[i]]
    return entered, left


# --- reading ---


class TraceStore(_Described):
    """An imported trace, read-only; a `desktop.data.events.EventSource`. Made by `open_store`.

    May be used from several threads: calls into HDF5 take turns.
    """

    def __init__(
        self,
        path: Path,
        file: h5py.File,
        description: Description,
        tables: dict[str, dict[str, h5py.Dataset]],
        index: dict[str, NDArray[np.int64]],
    ) -> None:
        self.path = path
        self.description = description
        self._file = file
        self._lock = RLock()
        self._tables = tables
        self._index = index
        self._chunks = _Chunks()
        #: type and rows in a chunk of each column, and whether it is packed as we do it
        self._packed = {
            (table, name): (dataset.dtype, int(dataset.chunks[0]), tuple(_filters(dataset)) == _OUR_FILTERS)
            for table, columns in tables.items()
            for name, dataset in columns.items()
        }

    def rows(self, table: str, location: int) -> int:
        return int(self._index[table][location, 1]) if table in self._index else 0

    def blocks(
        self, table: str, location: int, *columns: str, rows: int = 1 << 16
    ) -> Iterator[tuple[NDArray[Any], ...]]:
        names = columns or tuple((TABLES | DERIVED)[table])
        if table not in self._tables:
            return
        start, count = (int(v) for v in self._index[table][location])
        for a in range(start, start + count, rows):
            yield self._read(table, a, min(a + rows, start + count), names)

    def _read(self, table: str, a: int, b: int, names: Sequence[str]) -> tuple[NDArray[Any], ...]:
        block = {}
        for name in names:
            _, size, _ = self._packed[table, name]
            pieces = [
                self._chunk(table, name, number)[max(a - number * size, 0) : b - number * size]
                for number in range(a // size, -(-b // size))
            ]
            # A copy, as what is kept must not change.
            block[name] = pieces[0].copy() if len(pieces) == 1 else np.concatenate(pieces)
        _check_values(table, block, self._bound, self._damaged)
        return tuple(block[name] for name in names)

    def has(self, table: str) -> bool:
        """Whether there is such a table; one without rows is not kept."""
        return table in self._tables

    def part(
        self, table: str, location: int, begin: int, end: int, *columns: str
    ) -> tuple[NDArray[Any], ...]:
        """The rows `begin` to `end` (counted from its first) of a location, as `blocks` gives them.

        For few rows here and there: the latest chunks stay unpacked, and are unpacked beside other threads.
        """
        if not 0 <= begin <= end <= self.rows(table, location):
            raise ValueError(f"location {location} has no rows {begin} to {end} of {table}")
        if begin == end:
            return tuple(np.empty(0, (TABLES | DERIVED)[table][name]) for name in columns)
        start = int(self._index[table][location, 0])
        return self._read(table, start + begin, start + end, columns)

    def _chunk(self, table: str, name: str, number: int) -> NDArray[Any]:
        """A whole chunk of a column; what lies beyond the column's end in the last one means nothing."""
        key = (table, name, number)
        with self._lock:
            known = self._chunks.get(key)
        if known is not None:
            return known
        chunk = self._unpacked(table, name, number)
        with self._lock:
            self._chunks.put(key, chunk)
        return chunk

    def _unpacked(self, table: str, name: str, number: int) -> NDArray[Any]:
        """The same, from the file."""
        dataset = self._tables[table][name]
        dtype, size, ours = self._packed[table, name]
        try:
            with self._lock:
                mask, packed = dataset.id.read_direct_chunk((number * size,))
                if mask or not ours:
                    return np.asarray(dataset[number * size : (number + 1) * size])
            return unpack(packed, size, dtype)
        except (OSError, RuntimeError, ValueError) as error:
            raise self._damaged(f"rows from {number * size} of {table} cannot be read") from error

    def whole(self, table: str, *columns: str) -> tuple[NDArray[np.int64], tuple[NDArray[Any], ...]]:
        """Some columns of a table for all locations, and (locations, 2) the first row and number of rows
        of each. Only for tables known to fit into memory."""
        if table not in self._tables:
            nothing = tuple(np.empty(0, (TABLES | DERIVED)[table][name]) for name in columns)
            return np.zeros((len(self.locations), 2), np.int64), nothing
        block = {
            name: np.empty(self._tables[table][name].size, (TABLES | DERIVED)[table][name])
            for name in columns
        }
        chunks = [
            (name, number)
            for name in columns
            for number in range(-(-block[name].size // self._packed[table, name][1]))
        ]

        def unpacked(chunk: tuple[str, int]) -> None:
            name, number = chunk
            begin = number * self._packed[table, name][1]
            rows = block[name][begin : begin + self._packed[table, name][1]]
            rows[:] = self._unpacked(table, name, number)[: rows.size]

        for _ in in_order(unpacked, chunks):
            pass
        _check_values(table, block, self._bound, self._damaged)
        return self._index[table], tuple(block[name] for name in columns)

    def places(self, table: str) -> NDArray[np.int64]:
        """(locations, 2) the first row and the number of rows of each location."""
        return self._index.get(table, np.zeros((len(self.locations), 2), np.int64))

    def stretch(self, table: str, begin: int, end: int) -> Iterator[dict[str, NDArray[Any]]]:
        """Rows `begin` to `end` of the whole table, whoever's they are, some at a time. References in them
        are not checked: in a partial store they mean the whole."""
        datasets = self._tables[table]
        for a in range(begin, end, 1 << 16):
            with self._lock:
                try:
                    block = {name: data[a : min(a + (1 << 16), end)] for name, data in datasets.items()}
                except (OSError, RuntimeError, ValueError) as error:
                    raise self._damaged(f"rows from {a} of {table} cannot be read") from error
            yield block

    def column(self, table: str, name: str, location: int = 0) -> NDArray[Any]:
        """A whole column of a location."""
        parts = [block[0] for block in self.blocks(table, location, name)]
        if not parts:
            return np.empty(0, (TABLES | DERIVED)[table][name])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _bound(self, kind: str) -> int:
        return len(getattr(self.description, kind))

    def _damaged(self, what: str) -> StoreError:
        return StoreError(what, file=self.path, hint="the file is damaged, import the source again")


def is_store(path: Path) -> bool:
    """Whether a file is HDF5, by its first bytes."""
    try:
        return head(path, len(HDF5_SIGNATURE)) == HDF5_SIGNATURE
    except OSError:
        return False


def open_store(path: Path) -> TraceStore:
    """Open an imported trace after checking all of its structure.

    Raises
    ------
    StoreError : it cannot be read, is no store, is damaged, or was written by a newer version.
    """
    try:
        # A finished store is only ever replaced as a whole, so it needs no lock (some network file
        # systems have none).
        file = h5py.File(path, "r", locking=False)
    except OSError as error:
        reason = error.strerror or "it is no complete HDF5 file"
        raise StoreError(f"cannot be opened ({reason})", file=path) from None
    try:
        return _checked(path, file)
    except StoreError:
        file.close()
        raise
    except (
        OSError,
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RuntimeError,
    ) as error:
        # RuntimeError: of HDF5, or a description nested beyond recursion.
        file.close()
        raise StoreError(
            f"is damaged ({str(error).splitlines()[0] if str(error) else type(error).__name__})",
            file=path,
            hint="import the source again",
        ) from error


def _checked(path: Path, file: h5py.File) -> TraceStore:
    if file.attrs.get("format") not in (FORMAT.encode(), FORMAT):
        raise StoreError(
            "is an HDF5 file, but not an imported trace",
            file=path,
            hint="choose a trace or a .h5 file of ours",
        )
    schema = file.attrs.get("schema")
    if not isinstance(schema, (int, np.integer)) or schema < 1:
        raise StoreError(f"has no valid schema number ({schema!r})", file=path)
    if schema > SCHEMA:
        raise StoreError(
            f"was written by a newer version (schema {schema}, this version reads up to {SCHEMA})",
            file=path,
            hint="update Phasewright or import the source again",
        )
    text = _dataset(file, "description", "u1", False, DESCRIPTION_LIMIT)
    description = _decode(text[:].tobytes())
    locations = len(description.locations)
    tables: dict[str, dict[str, h5py.Dataset]] = {}
    index: dict[str, NDArray[np.int64]] = {}
    for folder, declared in (("tables", TABLES), ("derived", DERIVED)):
        parent = _child(file, folder, h5py.Group)
        if parent is None:
            continue
        for table, columns in declared.items():
            group = _child(parent, table, h5py.Group)
            if group is None:
                continue
            tables[table], index[table] = _checked_table(group, columns, locations)
    return TraceStore(path, file, description, tables, index)


def _checked_table(
    group: h5py.Group, columns: dict[str, str], locations: int
) -> tuple[dict[str, h5py.Dataset], NDArray[np.int64]]:
    places = _child(group, "index", h5py.Dataset)
    if places is None or places.dtype != np.int64 or places.shape != (locations, 2):
        raise ValueError(f"{group.name} has no index of its locations")
    _plain(places)
    index: NDArray[np.int64] = places[:]
    datasets = {name: _dataset(group, name, dtype, True, None) for name, dtype in columns.items()}
    rows = {dataset.size for dataset in datasets.values()}
    if len(rows) != 1:
        raise ValueError(f"the columns of {group.name} differ in length")
    if (index < 0).any():
        raise ValueError(f"the index of {group.name} has negative rows")
    used = index[index[:, 1] > 0]
    used = used[np.argsort(used[:, 0], kind="stable")]
    ends = np.cumsum(used[:, 1])
    starts = np.concatenate([[0], ends])
    if not np.array_equal(used[:, 0], starts[:-1]) or starts[-1] != rows.pop():
        raise ValueError(f"the index of {group.name} does not cover its rows once")
    return datasets, index


_Kind = TypeVar("_Kind", h5py.Group, h5py.Dataset)


def _child(group: h5py.Group, name: str, kind: type[_Kind]) -> _Kind | None:
    """A member of a group. Links to other places and other files are never followed."""
    link = group.get(name, getlink=True)
    if link is None:
        return None
    if not isinstance(link, h5py.HardLink):
        raise ValueError(f"{group.name}/{name} is a link to another place, which is not allowed")
    found = group.get(name)
    if not isinstance(found, kind):
        raise ValueError(f"{group.name}/{name} is not a {kind.__name__.lower()}")
    return found


def _dataset(group: h5py.Group, name: str, dtype: str, column: bool, limit: int | None) -> h5py.Dataset:
    found = _child(group, name, h5py.Dataset)
    if found is None:
        raise ValueError(f"{group.name}/{name} is missing")
    if found.dtype != np.dtype(dtype) or len(found.shape) != 1:
        raise ValueError(f"{group.name}/{name} is not a column of type {dtype}")
    if limit is not None and found.size > limit:
        raise ValueError(f"{group.name}/{name} is larger than the allowed {limit} bytes")
    if column and found.chunks not in ((CHUNK,), *((rows,) for rows in FORMER_CHUNKS)):
        raise ValueError(f"{group.name}/{name} is not in chunks of {CHUNK} rows")
    _plain(found)
    if found.chunks is not None:
        if found.chunks[0] > max(CHUNK, 1 << 20):
            raise ValueError(f"{group.name}/{name} is in chunks of {found.chunks[0]} rows")
        # Rows that were never written would be invented by HDF5, without limit.
        if found.id.get_num_chunks() != -(-found.size // found.chunks[0]):
            raise ValueError(f"{group.name}/{name} is incomplete")
    return found


def _plain(dataset: h5py.Dataset) -> None:
    """Data lie in this very file and need none but the standard filters."""
    if not set(_filters(dataset)) <= set(_OUR_FILTERS):
        raise ValueError(f"{dataset.name} uses filters that are not allowed")
    if dataset.is_virtual or dataset.external:
        raise ValueError(f"{dataset.name} refers to another file, which is not allowed")


_OUR_FILTERS = (h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE)


def _filters(dataset: h5py.Dataset) -> list[int]:
    """In the order in which they are applied on writing."""
    properties = dataset.id.get_create_plist()
    return [properties.get_filter(i)[0] for i in range(properties.get_nfilters())]


# --- the description as JSON ---


def _encode(description: Description) -> bytes:
    d = description
    # Not `asdict` as a whole: of many locations that takes longer than all else.
    plain = vars(d) | {
        "source": asdict(d.source),
        "importer": asdict(d.importer),
        "clock": asdict(d.clock),
        # JSON has no infinity
        "locations": [
            vars(at) if math.isfinite(at.half_width) else vars(at) | {"half_width": None}
            for at in d.locations
        ],
        "tallies": [vars(tally) for tally in d.tallies],
        "regions": [vars(region) for region in d.regions],
        "report": [vars(finding) for finding in d.report],
    }
    return json.dumps(plain, separators=(",", ":"), allow_nan=False).encode("utf-8", "surrogateescape")


def _decode(text: bytes) -> Description:
    """Raises ValueError, KeyError or TypeError when it is not what `_encode` writes."""
    plain = json.loads(text.decode("utf-8", "surrogateescape"))
    report = ImportReport()
    for item in plain["report"]:
        finding = _record(Finding, item)
        if finding.severity not in SEVERITIES:
            raise ValueError(f"{finding.severity!r} is no severity")
        report.findings[finding.name] = finding
    source = _record(Source, plain["source"])
    source.files = [(str(name), int(size), int(time)) for name, size, time in source.files]
    for item in plain["locations"]:
        if item["half_width"] is None:
            item["half_width"] = math.inf
    locations = [_record(Location, item) for item in plain["locations"]]
    for location in locations:
        location.base = Activity(location.base)
        _check_location(location)
    regions = [_record(Region, item) for item in plain["regions"]]
    for region in regions:
        region.activity = None if region.activity is None else Activity(region.activity)
    ticks_per_second = float(plain["ticks_per_second"])
    if not (math.isfinite(ticks_per_second) and ticks_per_second > 0):
        raise ValueError(f"ticks_per_second is {ticks_per_second}")
    if plain["nesting"] not in ("outermost", "strongest"):
        raise ValueError(f"{plain['nesting']!r} is no rule of nesting")
    tallies = [_record(Tally, item) for item in plain["tallies"]]
    totals = [[int(ticks) for ticks in row] for row in plain["totals"]]
    fair = all(len(row) == len(Activity) and all(0 <= t <= 2 * TICK_LIMIT for t in row) for row in totals)
    if len(tallies) != len(locations) or not fair:
        raise ValueError("counts and locations differ in number")
    if totals and len(totals) != len(locations):
        raise ValueError("totals and locations differ in number")
    return Description(
        source=source,
        importer=_record(ImporterInfo, plain["importer"]),
        ticks_per_second=ticks_per_second,
        nesting=plain["nesting"],
        repair=bool(plain["repair"]),
        notes=dict(plain["notes"]),
        clock=_record(ClockSummary, plain["clock"]),
        locations=locations,
        tallies=tallies,
        totals=totals,
        regions=regions,
        texts=[str(item) for item in plain["texts"]],
        report=report,
    )


@cache
def _fields(kind: type[Any]) -> tuple[frozenset[str], list[tuple[str, str, type | tuple[type, ...]]]]:
    """The names of a dataclass, and those of simple types with what they must be."""
    types = {f.name: str(f.type) for f in fields(kind)}
    return frozenset(types), [(name, of, _PLAIN[of]) for name, of in types.items() if of in _PLAIN]


_Record = TypeVar("_Record")
_PLAIN: dict[str, type | tuple[type, ...]] = {
    "int": int,
    "float": (int, float),
    "str": str,
    "bool": bool,
}


def _record(kind: type[_Record], plain: dict[str, Any]) -> _Record:
    """A dataclass from its plain form, all fields present and those of simple types of that type."""
    names, checks = _fields(kind)  # type: ignore[arg-type]  # a class is hashable
    if plain.keys() != names:
        raise ValueError(f"{kind.__name__} has not the fields {', '.join(sorted(names))}")
    for name, annotation, wanted in checks:
        if not isinstance(plain[name], wanted):
            raise ValueError(f"{kind.__name__}.{name} is {plain[name]!r}, not of type {annotation}")
    return kind(**plain)


def _check_location(location: Location) -> None:
    times = (location.first, location.last)
    if (times[0] is None) != (times[1] is None) or location.kind not in (
        "cpu",
        "accelerator",
        "metric",
        "host",
    ):
        raise ValueError(f"location {location.id} is not described well")
    if times[0] is not None and times[1] is not None:
        limit = TICK_LIMIT
        inside = all(type(t) is int and -limit < t < limit for t in (*times, location.shift))
        if not inside or times[0] > times[1]:
            raise ValueError(f"location {location.id} ends before it begins, or out of range")

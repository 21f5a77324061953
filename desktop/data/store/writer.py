"""Writing a store: rows are checked, counted and packed on their way into the file."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import h5py
import numpy as np
from numpy.typing import NDArray

from desktop.core.arrays import AnyArray, Bytes, Flags, Ints
from desktop.core.jit import arithmetic
from desktop.core.plain import JSON
from desktop.data.atomic import PartFile
from desktop.data.events import (
    TABLES,
    EventKind,
    Importer,
    Location,
    MessageKind,
    MetricAbout,
    Nesting,
    Region,
)
from desktop.data.packing import Chunks, Packer, unpack
from desktop.data.store.description import Description, ImporterInfo, Source, Tally, encode
from desktop.data.store.layout import (
    BOUNDS,
    CHUNK,
    COLUMNS,
    DERIVED,
    DESCRIPTION_LIMIT,
    FORMAT,
    KEYS,
    SCHEMA,
    TICK_LIMIT,
    as_declared,
    check_values,
)
from desktop.data.store.reader import TraceStore
from desktop.data.store.slot import NAME, room
from desktop.errors import DesktopError, StoreError, TraceFormatError, reason

#: Packed chunks smaller than this, in bytes, are looked up among those unpacked before.
ALIKE = 1 << 12
#: Blocks with at least so many rows are given to the digests in a separate thread, which may be at most
#: `BEHIND` blocks behind.
BESIDE = 1 << 12
BEHIND = 4


class Digest(Protocol):
    """A summary of rows computed while they are written, so that nothing is read twice. It may run in a
    thread of its own while more is defined and appended."""

    def take(self, table: str, location: int, block: Mapping[str, AnyArray]) -> None:
        """Rows of a location in their order, as passed to `Sink.append` (times as recorded)."""

    def finish(self) -> None:
        """All rows were taken and the locations are complete: write what is left by `StoreWriter.derive`."""

    def release(self) -> None:
        """The store is complete or discarded: free resources."""


class StoreWriter(Description):
    """A `desktop.data.events.Sink` and `EventSource` that becomes the file `path` when its block ends.

    The file appears whole when the ``with`` block ends normally; after an error, `Cancelled` or a kill the
    old file, if any, is still there. `digests` see every block of rows that is written. `only` selects
    locations: the file is then a partial store, in which locations are numbered anew except in references in
    rows (`take_over`). Memory: one chunk per column, `KEPT` bytes of chunks for the pass over the rows after
    the import, the description, and what the digests need.

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
        super().__init__(source, ImporterInfo(importer.id, importer.version))
        self.digests = [digest(self) for digest in digests]
        self._beside = ThreadPoolExecutor(1, "digests")
        self._behind: deque[Future[None]] = deque()  # blocks that the digests have not seen yet
        self._completed = False
        self._regions: dict[tuple[str, str, str], int] = {}
        self._texts: dict[str, int] = {}
        self._tables: dict[str, _TableWriter] = {}
        self._recent = Chunks()
        self._enters = np.zeros(0, np.int64)  # per region, of the location whose events are being appended
        self._recorded = np.zeros(0, bool)  # per region: whether it was recorded, not made up by the importer
        self._span: list[tuple[int, int] | None] = []

    def __enter__(self) -> Self:
        with _writing(self.path):
            self._part = PartFile(self.path)
            try:
                # The part is locked already; HDF5's own lock of the same file would collide with that.
                # Since 1.10 HDF5's metadata have checksums, so damage is detected.
                self._file = h5py.File(self._part.part, "w", locking=False, libver=("v110", "v110"))
            except BaseException:
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
        notes: JSON | None = None,
    ) -> None:
        if not (math.isfinite(ticks_per_second) and ticks_per_second > 0):
            raise ValueError(f"ticks_per_second is {ticks_per_second}, it must be a positive number")
        self.ticks_per_second, self.nesting, self.repair = float(ticks_per_second), nesting, repair
        self.notes = dict(notes or {})

    def location(self, location: Location) -> int:
        self.locations.append(location)
        self.tallies.append(Tally())
        self._span.append(None)
        return len(self.locations) - 1

    def region(self, region: Region) -> int:
        key = (region.name, region.role, region.paradigm)
        index = self._regions.setdefault(key, len(self._regions))
        if index == len(self.regions):
            self.regions.append(region)
        return index

    def text(self, text: str) -> int:
        index = self._texts.setdefault(text, len(self._texts))
        if index == len(self.texts):
            self.texts.append(text)
        return index

    def metric(self, name: str, about: MetricAbout) -> int:
        metrics, named, more = self.metrics, name, 1
        while metrics.setdefault(named, about) != about:
            more += 1
            named = f"{name} ({more})"
        return self.text(named)

    def take_texts(self, store: TraceStore) -> NDArray[np.uint32]:
        """Define the texts and metrics of another store; returns their numbers here."""
        metrics = store.metrics
        numbers = [self.metric(t, metrics[t]) if t in metrics else self.text(t) for t in store.texts]
        return np.array(numbers, np.uint32)

    def wants(self, location: int) -> bool:
        return self._only is None or self._only(location)

    def append(self, table: str, location: int, **columns: AnyArray) -> None:
        if not self.ticks_per_second:
            raise ValueError("describe() must be called before the first append()")
        if not 0 <= location < len(self.locations):
            raise ValueError(f"{table}: there is no location {location}")
        if table not in TABLES:
            raise ValueError(f"there is no table {table!r}")
        block = as_declared(table, columns)
        rows = block[next(iter(block))].size
        if rows == 0:
            return
        beside = bool(self.digests) and rows >= BESIDE
        if beside:
            # The importer may reuse its arrays.
            block = {n: column.copy() if column is columns[n] else column for n, column in block.items()}
        check_values(table, block, self._bound, ValueError)
        with _writing(self.path):
            writer = self._table("tables", table)
            if table == "events" and writer.location != location:
                self._close_calls()
            writer.append(location, block)
        self._count(table, location, block)
        if self.digests:
            self._digest(table, location, block, beside)

    def _digest(self, table: str, location: int, block: dict[str, AnyArray], beside: bool) -> None:
        def take() -> None:
            for digest in self.digests:
                digest.take(table, location, block)

        if not beside:
            self._catch_up(0)
            take()
        else:
            self._catch_up(BEHIND)
            self._behind.append(self._beside.submit(take))

    def _catch_up(self, most: int) -> None:
        """Wait until the digests are at most `most` blocks behind."""
        while len(self._behind) > most:
            self._behind.popleft().result()

    def _release(self) -> None:
        for digest in self.digests:
            digest.release()

    # EventSource

    def rows(self, table: str, location: int) -> int:
        writer = self._tables.get(table)
        return 0 if writer is None else writer.index.get(location, (0, 0))[1]

    def blocks(
        self, table: str, location: int, *columns: str, rows: int = 1 << 16
    ) -> Iterator[tuple[AnyArray, ...]]:
        names = columns or tuple(COLUMNS[table])
        writer = self._tables.get(table)
        if writer is not None:
            start, count = writer.index.get(location, (0, 0))
            a, end = start, start + count
            while a < end:
                a, begin = min(a // rows * rows + rows, end), a  # aligned: few chunks are unpacked twice
                yield tuple(writer.read(name, begin, a) for name in names)

    # derived tables

    def derive(self, table: str, location: int, **columns: AnyArray) -> None:
        """Append rows to a table of `DERIVED`: contiguous columns (n,), by the same rules as for `append`."""
        with _writing(self.path):
            self._table("derived", table).append(location, as_declared(table, columns, DERIVED))

    def drop(self, table: str) -> None:
        """Discard all rows of a table of `DERIVED`."""
        with _writing(self.path):
            if self._tables.pop(table, None) is not None:
                del self._file["derived"][table]

    def take_over(self, parts: Sequence[tuple[TraceStore, Ints, NDArray[np.uint32]]]) -> None:
        """Copy all rows of partial stores, in the order of the locations of this store.

        Parameters
        ----------
        parts : for each the store, the indices (n,) of its locations in this store, and the numbers of its
            texts in this store. Its regions must be those of this store.

        Raises
        ------
        StoreError : a part is damaged, or the file cannot be written.
        """
        for group, declared in (("tables", TABLES), ("derived", DERIVED)):
            for table in declared:
                # partial store, first row and number of rows of every location
                places = np.zeros((len(self.locations), 3), np.int64)
                for number, (store, targets, _) in enumerate(parts):
                    places[targets, 0] = number
                    places[targets, 1:] = store.places(table)
                used = np.flatnonzero(places[:, 2])
                if used.size:
                    with _writing(self.path):
                        self._table(group, table).take_over(parts, used, places[used], self._bound)

    def _table(self, group: str, table: str) -> _TableWriter:
        if table not in self._tables:
            columns = COLUMNS[table]
            self._tables[table] = _TableWriter(
                self._file.require_group(group).create_group(table),
                columns,
                table,
                self._recent if group == "tables" else None,
            )
        return self._tables[table]

    def _count(self, table: str, location: int, block: dict[str, AnyArray]) -> None:
        tally = self.tallies[location]
        if table == "events":
            more = [not region.synthetic for region in self.regions[self._recorded.size :]]
            if more:
                self._recorded = np.append(self._recorded, more)
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
        begin = block[KEYS.get(table, "time")]
        first = int(begin[0])
        last = int(block["end"].max()) if table == "collectives" else int(begin[-1])
        if not -TICK_LIMIT < first <= last < TICK_LIMIT:
            raise TraceFormatError(
                f"has times from {first} to {last} ticks",
                file=self.source.path,
                where=f"location {self.locations[location].id}, {table}",
                hint="the file is damaged",
            )
        place = self.locations[location]
        place.first = first if place.first is None else min(place.first, first)
        place.last = last if place.last is None else max(place.last, last)
        span = self._span[location] or (first, last)
        self._span[location] = (min(span[0], first), max(span[1], last))

    def _close_calls(self) -> None:
        """Store the enter counts of the location whose events are complete."""
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
        """The importer has delivered everything: finish the counts, make locations cover their rows."""
        if self._completed:
            return
        self._completed = True
        self._catch_up(0)
        with _writing(self.path):
            self._close_calls()
        for location, tally, span in zip(self.locations, self.tallies, self._span, strict=True):
            if span is not None:
                # An importer may have set these late, from records that it did not store.
                location.first = min(span[0], span[0] if location.first is None else location.first)
                location.last = max(span[1], span[1] if location.last is None else location.last)
            if not location.records:
                location.records = tally.enter + tally.leave + tally.sent + tally.received + tally.collectives
        for digest in self.digests:
            digest.finish()

    def _finish(self) -> None:
        self.complete()
        self._beside.shutdown()
        self._release()
        owned = [i for i in range(len(self.locations)) if self._only is None or self._only(i)]
        for writer in self._tables.values():
            writer.finish(owned)
        text = encode(self, owned)
        if len(text) > DESCRIPTION_LIMIT:
            raise StoreError("the trace defines too many names to be stored", file=self.path)
        self._file.create_dataset(
            "description",
            data=np.frombuffer(text, np.uint8),
            chunks=(min(len(text), 1 << 20),),
            compression="gzip",
            compression_opts=1,
        )
        if self._only is None and "curve" not in self._tables:
            _lay_out(self._file, room(len(owned), len(self.regions)))
        self._file.attrs["format"] = np.bytes_(FORMAT)  # fixed length; others lie in a heap without checksums
        self._file.attrs["schema"] = SCHEMA
        self._file.close()
        self._part.commit()

    def _discard(self) -> None:
        try:
            self._beside.shutdown(cancel_futures=True)
            self._release()
            with suppress(OSError, RuntimeError):  # closing flushes, which fails again on a full disk
                self._file.close()
        finally:
            self._part.discard()


class _TableWriter:
    """Columns of one table: buffers of one chunk, compressed in this process and stored directly."""

    def __init__(self, group: h5py.Group, columns: dict[str, str], table: str, recent: Chunks | None) -> None:
        self.group = group
        self.table = table
        self._recent = recent  # None: these rows are not read again
        self.index: dict[int, tuple[int, int]] = {}
        self.location = -1
        self.flushed = 0
        self.filled = 0
        self._key = KEYS.get(table, "time")
        self._last: np.generic | None = None
        self.buffers = {name: np.zeros(CHUNK, dtype) for name, dtype in columns.items()}
        self._packers = {name: Packer() for name in columns}
        self._room = -1  # rows that the datasets are allocated for; -1 before they are created
        self.datasets: dict[str, h5py.Dataset] = {}

    def append(self, location: int, block: dict[str, AnyArray]) -> None:
        rows = next(iter(block.values())).size
        self._begin(location, block[self._key] if self._key else np.zeros(0))
        self._put(block, rows)
        start, count = self.index[location]
        self.index[location] = (start, count + rows)

    def take_over(
        self,
        parts: Sequence[tuple[TraceStore, Ints, NDArray[np.uint32]]],
        locations: Ints,
        places: Ints,
        bound: Callable[[str], int],
    ) -> None:
        """Copy the rows of `locations` from `places`: (n, 3) part, first row and number of rows."""
        part, start, count = places.T
        at = self.flushed + self.filled + np.cumsum(count) - count
        self.index.update(zip(locations.tolist(), zip(at.tolist(), count.tolist(), strict=True), strict=True))
        # Locations that are also neighbours in their part are read in one go.
        begin = np.flatnonzero(np.r_[True, (part[1:] != part[:-1]) | (start[1:] != (start + count)[:-1])])
        end = np.r_[begin[1:], part.size] - 1
        for a, b in zip(begin, end, strict=True):
            store, _, texts = parts[part[a]]
            for block in store.stretch(self.table, int(start[a]), int(start[b] + count[b])):
                for name, values in block.items():
                    if BOUNDS.get((self.table, name)) == "texts":
                        block[name] = texts[values]
                check_values(self.table, block, bound, store.damaged)
                self._put(block, next(iter(block.values())).size)

    def _put(self, block: Mapping[str, AnyArray], rows: int) -> None:
        done = 0
        while done < rows:
            take = min(rows - done, CHUNK - self.filled)
            if take == CHUNK and self._recent is None:  # directly, without a copy
                self.filled = take
                self._flush({name: block[name][done : done + take] for name in self.buffers})
                done += take
                continue
            for name, buffer in self.buffers.items():
                buffer[self.filled : self.filled + take] = block[name][done : done + take]
            self.filled += take
            done += take
            if self.filled == CHUNK:
                self._flush(self.buffers)

    def _begin(self, location: int, key: AnyArray) -> None:
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

    def read(self, name: str, start: int, stop: int) -> AnyArray:
        """Rows of a column, from the file or from the buffer if they are not written yet; must not be
        changed."""
        pieces = [
            self._chunk(name, number)[max(start - number * CHUNK, 0) : stop - number * CHUNK]
            for number in range(start // CHUNK, -(-min(stop, self.flushed) // CHUNK))
        ]
        if stop <= self.flushed and len(pieces) == 1:
            return pieces[0]
        if stop > self.flushed:
            pieces.append(self.buffers[name][max(start - self.flushed, 0) : stop - self.flushed])
        return np.concatenate(pieces)

    def _chunk(self, name: str, number: int) -> AnyArray:
        recent = self._recent or Chunks()
        key = (self.table, name, number)
        chunk = recent.get(key)
        if chunk is None:
            _, packed = self.datasets[name].id.read_direct_chunk((number * CHUNK,))
            # Message columns of regular programs are the same in many chunks.
            alike = (self.table, name, packed)
            chunk = recent.get(alike) if len(packed) < ALIKE else None
            if chunk is None:
                chunk = unpack(packed, CHUNK, self.buffers[name].dtype)
                if len(packed) < ALIKE:
                    recent.put(alike, chunk)
            recent.put(key, chunk)
        return chunk

    def _make_room(self, rows: int) -> None:
        """Resize the datasets to `rows`, rarely, as this takes a call of HDF5 for every column."""
        if rows == self._room:
            return
        self._room = rows
        for dataset in self.datasets.values():
            dataset.resize((rows,))
        if not self.datasets:
            self.datasets = {
                name: self.group.create_dataset(
                    name,
                    (rows,),
                    buffer.dtype,
                    maxshape=(None,),
                    chunks=(CHUNK,),
                    shuffle=True,
                    compression="gzip",
                    compression_opts=1,
                )
                for name, buffer in self.buffers.items()
            }

    def _flush(self, chunk: Mapping[str, AnyArray]) -> None:
        if self.flushed >= self._room:
            self._make_room(self.flushed + CHUNK * max(1, min(self.flushed // CHUNK, 64)))
        for name, dataset in self.datasets.items():
            buffer = chunk[name]
            dataset.id.write_direct_chunk((self.flushed,), self._packers[name](buffer))
            if self._recent is not None:
                self._recent.put((self.table, name, self.flushed // CHUNK), buffer)
                self.buffers[name] = np.empty_like(buffer)
        self.flushed += self.filled
        self.filled = 0

    def finish(self, locations: Sequence[int]) -> None:
        rows = self.flushed + self.filled
        if self.filled:
            for buffer in self.buffers.values():
                buffer[self.filled :] = 0
            if self.flushed >= self._room:
                self._make_room(rows)
            self._flush(self.buffers)
        self._make_room(rows)
        index = np.array([self.index.get(location, (0, 0)) for location in locations], np.int64)
        index = index.reshape(-1, 2)
        self.group.create_dataset("index", data=index)


def _lay_out(file: h5py.File, size: int) -> None:
    """Allocate the space for results found later (`Slot`). On file systems with sparse files it takes no disk
    space before something is written."""
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    how.set_layout(h5py.h5d.CONTIGUOUS)
    how.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    how.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    h5py.h5d.create(file.id, NAME.encode(), h5py.h5t.STD_U8LE, h5py.h5s.create_simple((size,)), how)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError) as error:
        if isinstance(error, DesktopError):
            raise
        why = reason(error, "the file became unusable while it was written")
        raise StoreError(
            f"cannot be written ({why})", file=path, hint="choose another folder or make room"
        ) from error


_ENTER = int(EventKind.ENTER)


@arithmetic
def count_events(kind: Bytes, region: AnyArray, recorded: Flags, enters: Ints) -> tuple[int, int]:
    """Numbers of enters and leaves of recorded regions; adds the enters of each region to `enters`
    (regions,)."""
    entered = left = 0
    for i in range(kind.size):
        if kind[i] == _ENTER:
            enters[region[i]] += 1
            entered += recorded[region[i]]
        else:
            left += recorded[region[i]]
    return entered, left

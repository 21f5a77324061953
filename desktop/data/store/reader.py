"""Reading a store, which may come from anyone: its structure is checked before any row is read."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Self, TypeVar

import h5py
import numpy as np

from desktop.core.arrays import AnyArray, Ints
from desktop.data.atomic import hold_file
from desktop.data.events import TABLES
from desktop.data.lines import in_order
from desktop.data.packing import Chunks, unpack
from desktop.data.reading import head
from desktop.data.store.blocks import Blocks
from desktop.data.store.description import Description, decode
from desktop.data.store.layout import (
    CHUNK,
    COLUMNS,
    DERIVED,
    DESCRIPTION_LIMIT,
    FORMAT,
    FORMER_CHUNKS,
    SCHEMA,
    check_values,
)
from desktop.data.store.slot import MOST, NAME, Slot
from desktop.errors import StoreError, reason

#: Rows fetched at once from another machine when all are read in sequence, and largest derived column, in
#: bytes, that is fetched with the skeleton.
_AHEAD, _SMALL = 1 << 19, 1 << 16
HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"


class TraceStore(Description):
    """An imported trace, read-only; a `desktop.data.events.EventSource`. Made by `open_store`.

    May be used from several threads: calls into HDF5 take turns.
    """

    def __init__(
        self,
        path: Path,
        file: h5py.File,
        description: Description,
        tables: dict[str, dict[str, h5py.Dataset]],
        index: dict[str, Ints],
        identity: str = "",
        slot: Slot | None = None,
        blocks: Blocks | None = None,
    ) -> None:
        self.path = path
        #: SHA-256 of the description, which contains that of the source: the same after the file is moved
        self.identity = identity
        #: space for results found later; None if the file has none, or is on another machine
        self.slot = slot
        #: for a store on another machine: the blocks of it that are here
        self.elsewhere = blocks
        self._places: dict[tuple[str, str], Ints] = {}
        vars(self).update(vars(description))
        self._file = file
        self._lock = RLock()
        self._tables = tables
        self._index = index
        self._chunks = Chunks()
        #: type and rows in a chunk of each column, and whether it is packed as `packing` does it
        self._packed = {
            (table, name): (dataset.dtype, int(dataset.chunks[0]), tuple(_filters(dataset)) == _OUR_FILTERS)
            for table, columns in tables.items()
            for name, dataset in columns.items()
        }
        self._let_go = None if blocks is None else weakref.finalize(self, blocks.close)
        if self._let_go is not None:  # also if nobody closes it, such as a result that came too late
            self._let_go.atexit = False

    def rows(self, table: str, location: int) -> int:
        return int(self._index[table][location, 1]) if table in self._index else 0

    def blocks(
        self, table: str, location: int, *columns: str, rows: int = 1 << 16
    ) -> Iterator[tuple[AnyArray, ...]]:
        names = columns or tuple(COLUMNS[table])
        if table not in self._tables:
            return
        start, count = (int(v) for v in self._index[table][location])
        for a in range(start, start + count, rows):
            if self.elsewhere is not None and (a - start) % _AHEAD < rows:
                self.bring(table, [(a, min(a + _AHEAD, start + count))], names)
            yield self._read(table, a, min(a + rows, start + count), names)

    def bring(self, table: str, spans: Sequence[tuple[int, int]], names: Sequence[str]) -> None:
        """Fetch these rows (first, end) of the whole table, if the store is on another machine. One request
        for all saves the round trip that each of them would take.

        Raises
        ------
        StoreError : they cannot be fetched.
        """
        if self.elsewhere is not None and table in self._tables:
            ranges = [
                self._chunk_places(table, name)[
                    a // self._packed[table, name][1] : -(-b // self._packed[table, name][1])
                ]
                for name in names
                for a, b in spans
            ]
            self.elsewhere.bring([(int(at), int(size)) for part in ranges for at, size, _ in part])

    def brought(self, table: str) -> bool:
        """Whether all rows of a table are on this machine."""
        if self.elsewhere is None or table not in self._tables:
            return True
        places = [self._chunk_places(table, name) for name in self._tables[table]]
        return self.elsewhere.has([(int(at), int(size)) for part in places for at, size, _ in part])

    def _chunk_places(self, table: str, name: str) -> Ints:
        """(chunks, 3) of a column: where each chunk begins in the file, its bytes, the filters it skips."""
        places = self._places.get((table, name))
        if places is None:
            dataset, (_, size, _) = self._tables[table][name], self._packed[table, name]
            places = np.zeros((-(-dataset.size // size), 3), np.int64)

            def note(chunk: h5py.h5d.StoreInfo) -> None:
                number = chunk.chunk_offset[0] // size
                if number < len(places):
                    places[number] = chunk.byte_offset, chunk.size, chunk.filter_mask

            try:
                with self._lock:
                    dataset.id.chunk_iter(note)
            except (OSError, RuntimeError, ValueError) as error:
                raise self.damaged(f"chunks of {table} cannot be found") from error
            self._places[table, name] = places
        return places

    def skeleton(self) -> Ints:
        """(n, 2) first byte and bytes of what another machine fetches first: the whole file but the slot and
        the rows of tables; rows of small derived columns are included."""
        chunks = [
            self._chunk_places(table, name)[:, :2]
            for table, columns in self._tables.items()
            for name, dataset in columns.items()
            if table not in DERIVED or dataset.id.get_storage_size() > _SMALL
        ]
        slot = [] if self.slot is None else [self.slot.place]
        lazy = np.concatenate([np.array(slot, np.int64).reshape(-1, 2), *chunks])
        lazy = lazy[np.argsort(lazy[:, 0])]
        begin = np.append(0, lazy.sum(1))
        end = np.append(lazy[:, 0], self.path.stat().st_size)
        return np.stack([begin, end - begin], axis=1)[end > begin]

    def _read(self, table: str, a: int, b: int, names: Sequence[str]) -> tuple[AnyArray, ...]:
        self.bring(table, [(a, b)], names)
        block = {}
        for name in names:
            _, size, _ = self._packed[table, name]
            pieces = [
                self._chunk(table, name, number)[max(a - number * size, 0) : b - number * size]
                for number in range(a // size, -(-b // size))
            ]
            # A copy, as cached chunks must not change.
            block[name] = pieces[0].copy() if len(pieces) == 1 else np.concatenate(pieces)
        check_values(table, block, self._bound, self.damaged)
        return tuple(block[name] for name in names)

    def has(self, table: str) -> bool:
        """Whether the table is in the store; tables without rows are not stored."""
        return table in self._tables

    def part(self, table: str, location: int, begin: int, end: int, *columns: str) -> tuple[AnyArray, ...]:
        """Rows `begin` to `end` (counted from its first) of a location, as `blocks` gives them.

        For few rows in many places: the latest chunks stay unpacked, and other threads go on meanwhile.

        Raises
        ------
        ValueError : the location has no such rows.
        StoreError : the rows are damaged.
        """
        if not 0 <= begin <= end <= self.rows(table, location):
            raise ValueError(f"location {location} has no rows {begin} to {end} of {table}")
        if begin == end:
            return tuple(np.empty(0, COLUMNS[table][name]) for name in columns)
        start = int(self._index[table][location, 0])
        return self._read(table, start + begin, start + end, columns)

    def _chunk(self, table: str, name: str, number: int) -> AnyArray:
        """A whole chunk of a column; in the last one, values beyond the column's end are meaningless."""
        key = (table, name, number)
        chunk = self._chunks.get(key)
        if chunk is None:
            chunk = self._unpacked(table, name, number)
            self._chunks.put(key, chunk)
        return chunk

    def _unpacked(self, table: str, name: str, number: int) -> AnyArray:
        """As `_chunk`, read from the file."""
        dataset = self._tables[table][name]
        dtype, size, ours = self._packed[table, name]
        try:
            if self.elsewhere is not None:
                at, length, mask = (int(v) for v in self._chunk_places(table, name)[number])
                if length > 2 * size * dtype.itemsize + 1024:
                    raise ValueError("a chunk is longer than its rows")
                packed = self.elsewhere.read(at, length)
                if ours and not mask:
                    return unpack(packed, size, dtype)
            with self._lock:
                mask, packed = dataset.id.read_direct_chunk((number * size,))
                if mask or not ours:
                    return np.asarray(dataset[number * size : (number + 1) * size])
            return unpack(packed, size, dtype)
        except (OSError, RuntimeError, ValueError) as error:
            raise self.damaged(f"rows from {number * size} of {table} cannot be read") from error

    def whole(self, table: str, *columns: str) -> tuple[Ints, tuple[AnyArray, ...]]:
        """Some columns of a table for all locations, after (locations, 2) the first row and number of rows of
        each. Only for tables known to fit into memory.

        Raises
        ------
        StoreError : the rows are damaged.
        """
        if table not in self._tables:
            nothing = tuple(np.empty(0, COLUMNS[table][name]) for name in columns)
            return np.zeros((len(self.locations), 2), np.int64), nothing
        block = {name: np.empty(self._tables[table][name].size, COLUMNS[table][name]) for name in columns}
        chunks = [
            (name, number)
            for name in columns
            for number in range(-(-block[name].size // self._packed[table, name][1]))
        ]

        self.bring(table, [(0, max((rows.size for rows in block.values()), default=0))], columns)

        def unpacked(chunk: tuple[str, int]) -> None:
            name, number = chunk
            begin = number * self._packed[table, name][1]
            rows = block[name][begin : begin + self._packed[table, name][1]]
            rows[:] = self._unpacked(table, name, number)[: rows.size]

        for _ in in_order(unpacked, chunks):
            pass
        check_values(table, block, self._bound, self.damaged)
        return self._index[table], tuple(block[name] for name in columns)

    def places(self, table: str) -> Ints:
        """(locations, 2) the first row and the number of rows of each location."""
        return self._index.get(table, np.zeros((len(self.locations), 2), np.int64))

    def count(self, table: str) -> int:
        """Number of rows of all locations."""
        return int(self.places(table)[:, 1].sum())

    def stretch(self, table: str, begin: int, end: int) -> Iterator[dict[str, AnyArray]]:
        """Rows `begin` to `end` of the whole table, of all locations, in blocks of columns (n,). References
        in them are not checked: in a partial store they refer to the whole.

        Raises
        ------
        StoreError : the rows are damaged.
        """
        datasets = self._tables[table]
        for a in range(begin, end, 1 << 16):
            self.bring(table, [(a, min(a + (1 << 16), end))], tuple(datasets))
            with self._lock:
                try:
                    block = {name: data[a : min(a + (1 << 16), end)] for name, data in datasets.items()}
                except (OSError, RuntimeError, ValueError) as error:
                    raise self.damaged(f"rows from {a} of {table} cannot be read") from error
            yield block

    def column(self, table: str, name: str, location: int = 0) -> AnyArray:
        """A whole column (rows,) of a location; errors as for `part`."""
        parts = [block[0] for block in self.blocks(table, location, name)]
        if not parts:
            return np.empty(0, COLUMNS[table][name])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def reads(self, file: int) -> bool:
        """Whether this open file (its descriptor) is the one read here, not one that has taken its place."""
        with self._lock:
            return os.path.samestat(os.fstat(file), os.fstat(self._file.id.get_vfd_handle()))

    def close(self) -> None:
        with self._lock:
            self._file.close()
        if self._let_go is not None:
            self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def damaged(self, what: str) -> StoreError:
        """The error that reports damage in this store."""
        return StoreError(what, file=self.path, hint="the file is damaged, import the source again")


def is_store(path: Path) -> bool:
    """Whether a file is HDF5, by its first bytes."""
    try:
        return head(path, len(HDF5_SIGNATURE)) == HDF5_SIGNATURE
    except OSError:
        return False


def open_store(path: Path) -> TraceStore:
    """Open an imported trace after checking its whole structure.

    Raises
    ------
    StoreError : the file cannot be read, is no store, is damaged, or was written by a newer version.
    """
    blocks = Blocks.of(Path(path))
    try:
        return _opened(Path(path), blocks)
    except BaseException:
        if blocks is not None:
            blocks.close()
        raise


def _opened(path: Path, blocks: Blocks | None) -> TraceStore:
    try:
        # A finished store is only ever replaced as a whole, so it needs no lock (some network file
        # systems have none).
        file = h5py.File(path, "r", locking=False)
    except OSError as error:
        why = reason(error, "it is no complete HDF5 file")
        raise StoreError(f"cannot be opened ({why})", file=path) from None
    try:
        hold_file(file.id.get_vfd_handle())
        return _checked(path, file, blocks)
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
        why = reason(error, "")
        raise StoreError(
            f"is damaged ({why})" if why else "is damaged", file=path, hint="import the source again"
        ) from error


def _checked(path: Path, file: h5py.File, blocks: Blocks | None) -> TraceStore:
    if file.attrs.get("format") not in (FORMAT.encode(), FORMAT):
        raise StoreError(
            "is an HDF5 file, but not an imported trace",
            file=path,
            hint="choose a trace or a .h5 file of Phasewright",
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
    described = text[:].tobytes()
    description = decode(described)
    locations = len(description.locations)
    tables: dict[str, dict[str, h5py.Dataset]] = {}
    index: dict[str, Ints] = {}
    for folder, declared in (("tables", TABLES), ("derived", DERIVED)):
        parent = _child(file, folder, h5py.Group)
        if parent is None:
            continue
        for table, columns in declared.items():
            group = _child(parent, table, h5py.Group)
            if group is None:
                continue
            tables[table], index[table] = _checked_table(group, columns, locations)
    slot = None if blocks is not None else _slot(path, file)
    return TraceStore(path, file, description, tables, index, sha256(described).hexdigest(), slot, blocks)


def _slot(path: Path, file: h5py.File) -> Slot | None:
    """The slot of the file; None if there is none, or it is not one contiguous stretch of this file."""
    if _child(file, NAME, h5py.Dataset) is None:
        return None
    room = _dataset(file, NAME, "u1", False, MOST)
    at = room.id.get_offset()
    if at is None or room.id.get_create_plist().get_layout() != h5py.h5d.CONTIGUOUS:
        return None
    return Slot(path, file.id.get_vfd_handle, at, room.size)


def _checked_table(
    group: h5py.Group, columns: dict[str, str], locations: int
) -> tuple[dict[str, h5py.Dataset], Ints]:
    places = _child(group, "index", h5py.Dataset)
    if places is None or places.dtype != np.int64 or places.shape != (locations, 2):
        raise ValueError(f"{group.name} has no index of its locations")
    _plain(places, places.id.get_create_plist())
    index: Ints = places[:]
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
    links = group.id.links
    if not links.exists(name.encode()):
        return None
    if links.get_info(name.encode()).type != h5py.h5l.TYPE_HARD:
        raise ValueError(f"{group.name}/{name} is a link to another place, which is not allowed")
    member = group[name]
    if not isinstance(member, kind):
        raise ValueError(f"{group.name}/{name} is not a {kind.__name__.lower()}")
    return member


def _dataset(group: h5py.Group, name: str, dtype: str, column: bool, limit: int | None) -> h5py.Dataset:
    dataset = _child(group, name, h5py.Dataset)
    if dataset is None:
        raise ValueError(f"{group.name}/{name} is missing")
    if dataset.dtype != np.dtype(dtype) or len(dataset.shape) != 1:
        raise ValueError(f"{group.name}/{name} is not a column of type {dtype}")
    (size,) = dataset.shape
    if limit is not None and size > limit:
        raise ValueError(f"{group.name}/{name} is larger than the allowed {limit} bytes")
    properties = dataset.id.get_create_plist()  # once: h5py creates it again with every property
    chunks = properties.get_chunk() if properties.get_layout() == h5py.h5d.CHUNKED else None
    if column and chunks not in ((CHUNK,), *((rows,) for rows in FORMER_CHUNKS)):
        raise ValueError(f"{group.name}/{name} is not in chunks of {CHUNK} rows")
    _plain(dataset, properties)
    if chunks is not None:
        if chunks[0] > max(CHUNK, 1 << 20):
            raise ValueError(f"{group.name}/{name} is in chunks of {chunks[0]} rows")
        # HDF5 would make up rows that were never written, without limit.
        if dataset.id.get_num_chunks() != -(-size // chunks[0]):
            raise ValueError(f"{group.name}/{name} is incomplete")
    return dataset


def _plain(dataset: h5py.Dataset, properties: h5py.h5p.PropDCID) -> None:
    """Check that data lie in this very file and need only the standard filters."""
    filters = {properties.get_filter(i)[0] for i in range(properties.get_nfilters())}
    if not filters <= set(_OUR_FILTERS):
        raise ValueError(f"{dataset.name} uses filters that are not allowed")
    if properties.get_layout() == h5py.h5d.VIRTUAL or properties.get_external_count():
        raise ValueError(f"{dataset.name} refers to another file, which is not allowed")


_OUR_FILTERS = (h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE)


def _filters(dataset: h5py.Dataset) -> list[int]:
    """The numbers of the filters, in the order in which they are applied on writing."""
    properties = dataset.id.get_create_plist()
    return [properties.get_filter(i)[0] for i in range(properties.get_nfilters())]

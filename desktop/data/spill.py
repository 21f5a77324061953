"""Records by group in bounded memory: a temporary file of segments, and sorting by time.

While a trace is parsed, its records are sorted batch by batch by their group (a processor) and written to one
file; an index holds the position of each group's pieces. Afterwards a group is read back in line order.
Groups too large for memory use memory-mapped temporary files.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock

import numpy as np

from desktop.core.arrays import AnyArray, Ints, Records
from desktop.core.jit import arithmetic, inlined
from desktop.data.atomic import naming

#: Rows sorted by group at once: the more, the longer the pieces in the file.
BATCH = 1 << 17
#: Most records of one group held in memory.
IN_MEMORY = 1 << 21
#: Most parts of a group that wait for what comes before them; more are sorted into a file of their own.
OVERLAP = 4


@inlined
def mixed(rows: Ints, i: int, width: int, salt: np.uint64) -> np.uint64:
    """A 64-bit hash of the first `width` numbers of a row and `salt`; its upper bits are well mixed."""
    h = salt
    for k in range(width):
        h = (h ^ np.uint64(rows[i, k])) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    return h


@arithmetic
def _intern(rows: Ints, slots: Ints, names: Ints, used: int, salt: np.uint64, out: Ints) -> tuple[int, int]:
    """Number the names at the start of `rows`, by open addressing; `slots` holds number + 1, `names` the
    names.

    Stops when half of the slots are in use; returns how many rows were done, and the number of names. salt:
    places depend on it, numbers do not.
    """
    mask, width = len(slots) - 1, names.shape[1]
    for i in range(len(rows)):
        h = mixed(rows, i, width, salt) * np.uint64(0xBF58476D1CE4E5B9)
        at = np.int64(h >> np.uint64(32)) & mask
        while slots[at] != 0:
            j = slots[at] - 1
            k = 0
            while k < width and names[j, k] == rows[i, k]:
                k += 1
            if k == width:
                break
            at = (at + 1) & mask
        if slots[at] == 0:
            if used == len(names):
                return i, used
            for k in range(width):
                names[used, k] = rows[i, k]
            used += 1
            slots[at] = used
        out[i] = slots[at] - 1
    return len(rows), used


class Interner:
    """Numbers names in the order of their first appearance; a name is an int64, or the first `width` of a
    row."""

    def __init__(self, width: int = 1) -> None:
        self._slots: Ints = np.zeros(1 << 8, np.int64)
        self._values: Ints = np.zeros((1 << 7, width), np.int64)
        # Random, so that nobody can write a file whose names all collide.
        self._salt = np.uint64(int.from_bytes(os.urandom(8), "little"))
        self.used = 0

    def __call__(self, values: Ints) -> Ints:
        """(n,) the numbers of values (n,), or of rows (n, columns) that start with a name."""
        rows = np.ascontiguousarray(values if values.ndim == 2 else values[:, None])
        out = np.empty(len(rows), np.int64)
        done = 0
        while done < len(rows):
            if self.used == len(self._values):
                slots = np.zeros(8 * self.used, np.int64)
                names = np.zeros((4 * self.used, self._values.shape[1]), np.int64)
                _intern(self._values, slots, names, 0, self._salt, np.empty(self.used, np.int64))
                self._slots, self._values = slots, names  # only now, as other threads may read the values
            more, self.used = _intern(
                rows[done:], self._slots, self._values, self.used, self._salt, out[done:]
            )
            done += more
        return out

    @property
    def values(self) -> Ints:
        """The value of every number; any thread may read it while another one adds values."""
        return self._values[: self.used, 0]


class Numbers:
    """Maps numbers of a trace to numbers of the program; `find` is called once for each."""

    def __init__(self, find: Callable[[int], int]) -> None:
        self._find = find
        self._dense = Interner()
        self._values: Ints = np.empty(0, np.int64)

    @property
    def used(self) -> int:
        """How many different numbers there were."""
        return self._dense.used

    def __call__(self, numbers: AnyArray) -> Ints:
        dense = self._dense(numbers.astype(np.int64))
        new = self._dense.values[len(self._values) :].tolist()
        if new:
            self._values = np.append(self._values, [self._find(number) for number in new])
        return self._values[dense]


@arithmetic
def _by_group(words: AnyArray, groups: Ints, starts: Ints, out: AnyArray) -> None:
    """Rows (N, words of a row) sorted by group (stable); `starts` (G,) is advanced to the ends."""
    width = words.shape[1]
    for i in range(len(groups)):
        at = starts[groups[i]]
        starts[groups[i]] = at + 1
        for k in range(width):
            out[at, k] = words[i, k]


def _words(rows: AnyArray) -> AnyArray:
    """Rows of any dtype as a table of words, so that one kernel moves them all, and numpy ten times faster
    than by field."""
    size = rows.dtype.itemsize
    word = np.dtype(np.uint8 if size % 8 else np.int64)
    return rows.view(word).reshape(len(rows), size // word.itemsize)


def copied(rows: AnyArray) -> AnyArray:
    """A copy of the rows."""
    return _words(rows).copy().view(rows.dtype).reshape(-1)


def joined(parts: Sequence[AnyArray]) -> AnyArray:
    """The rows concatenated."""
    return np.concatenate([_words(rows) for rows in parts]).view(parts[0].dtype).reshape(-1)


class Spill:
    """Rows of one dtype, written in any order of groups, read back group by group in order of writing."""

    def __init__(self, folder: Path, dtype: np.dtype[np.generic]) -> None:
        self.dtype = dtype
        self.folder = folder
        with naming(folder):
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  lives as long as the object
        self._index: list[Ints] = []
        self._rows = 0
        self._groups = 0
        self._waiting: list[tuple[AnyArray, Ints]] = []
        self._waiting_rows = 0
        self._writer = ThreadPoolExecutor(1)
        self._written: Future[None] | None = None
        # Reused, as fresh memory costs as much as filling it.
        self._out = np.empty(0, dtype)
        self._lock, self._sorting = Lock(), Lock()
        self._sorted: Ints | None = None
        self._bounds: Ints = np.zeros(1, np.int64)

    def add(self, rows: AnyArray, groups: Ints, count: int) -> None:
        """Add rows of the groups 0 .. count - 1. They are kept for a while: do not change them afterwards."""
        if len(rows):
            self._waiting.append((np.ascontiguousarray(rows), groups))
            self._waiting_rows += len(rows)
            self._groups = max(self._groups, count)
            # Many groups need longer batches, or the index of the pieces would outgrow the rows.
            if self._waiting_rows >= max(BATCH, 8 * self._groups):
                self._hand_over()

    def _hand_over(self) -> None:
        """Write the waiting rows in a thread, after the previous ones."""
        self._settle()
        waiting, self._waiting, self._waiting_rows = self._waiting, [], 0
        self._written = self._writer.submit(self._write, waiting, self._groups)

    def _settle(self) -> None:
        """Wait until everything handed over is written; raises its error, on every call."""
        if self._written is not None:
            self._written.result()

    def _write(self, waiting: list[tuple[AnyArray, Ints]], count: int) -> None:
        """Write waiting rows, group by group."""
        sizes = np.zeros(count, np.int64)
        for _, groups in waiting:
            sizes += np.bincount(groups, minlength=len(sizes))
        starts = np.cumsum(sizes) - sizes
        present = np.flatnonzero(sizes)
        self._index.append(np.stack((present, self._rows + starts[present], sizes[present]), axis=1))
        total = int(sizes.sum())
        if total > len(self._out):
            self._out = np.empty(total, self.dtype)
        out = self._out[:total]
        for rows, groups in waiting:
            _by_group(_words(rows), groups, starts, _words(out))
        self._append(out)

    def _append(self, rows: AnyArray) -> None:
        with self._lock, naming(self.folder):
            self._file.seek(0, 2)
            self._file.write(rows.view(np.uint8).data)
        self._rows += len(rows)

    def close(self) -> None:
        """Close the file, after everything handed over is written."""
        self._writer.shutdown()
        self._file.close()

    def _pieces(self, group: int) -> Ints:
        with self._sorting:
            if self._sorted is None:
                self._hand_over()
                self._settle()
                self._out = np.empty(0, self.dtype)
                index = np.concatenate(self._index)
                self._index = []
                self._sorted = index = index[np.argsort(index[:, 0], kind="stable")]
                groups = int(index[-1, 0]) + 1 if len(index) else 0
                self._bounds = np.searchsorted(index[:, 0], np.arange(groups + 1))
            if group + 1 >= len(self._bounds):
                return np.empty((0, 3), np.int64)
            return self._sorted[self._bounds[group] : self._bounds[group + 1]]

    def size(self, group: int) -> int:
        """Number of rows of a group."""
        return int(self._pieces(group)[:, 2].sum())

    def read(self, group: int) -> AnyArray:
        """The rows of a group in order of writing; a memory-mapped temporary file if there are many."""
        rows = room(self.folder, self.size(group), self.dtype)
        at = 0
        for _, start, count in self._pieces(group).tolist():
            self._load(rows[at : at + count], start)
            at += count
        return rows

    def parts(self, group: int, most: int) -> Iterator[AnyArray]:
        """The rows of a group in parts of at most `most` rows, all of them in memory."""
        left = self.size(group)
        rows = np.empty(min(most, left), self.dtype)
        at = 0
        for _, start, count in self._pieces(group).tolist():
            while count:
                take = min(count, len(rows) - at)
                self._load(rows[at : at + take], start)
                start, count, at, left = start + take, count - take, at + take, left - take
                if at == len(rows):
                    yield rows
                    rows, at = np.empty(min(most, left), self.dtype), 0

    def _load(self, rows: AnyArray, start: int) -> None:
        with self._lock:
            self._file.seek(start * self.dtype.itemsize)
            if self._file.readinto(rows.view(np.uint8).data) != rows.nbytes:
                raise OSError(errno.EIO, "a temporary file has lost its end")


def room(folder: Path, rows: int, dtype: np.dtype[np.generic]) -> AnyArray:
    """An array in memory, or in an unnamed temporary file if it is large.

    Raises
    ------
    OSError : there is no room for it on the disk.
    """
    if rows <= IN_MEMORY:
        return np.empty(rows, dtype)
    with naming(folder), tempfile.TemporaryFile(dir=folder) as file:
        size = rows * dtype.itemsize
        if hasattr(os, "posix_fallocate"):  # or a full disk would end the process where the rows are set
            os.posix_fallocate(file.fileno(), 0, size)
        file.truncate(size)
        return np.asarray(np.memmap(file, dtype, "r+", shape=(rows,)))


@arithmetic
def rising(rows: Records) -> bool:
    """Whether rows are sorted by time."""
    sorted_so_far = True
    for i in range(1, len(rows)):
        sorted_so_far = sorted_so_far and rows[i]["time"] >= rows[i - 1]["time"]
    return sorted_so_far


def _in_order(rows: AnyArray) -> AnyArray:
    """Rows sorted by time (stable)."""
    return rows if rising(rows) else np.take(rows, np.argsort(rows["time"], kind="stable"))


class _Nearly:
    """The rows of a group of a spill as from `Sorted`, part by part; rows that are too early wait."""

    def __init__(self, spill: Spill, group: int, most: int) -> None:
        self._spill, self._most, self._pieces = spill, most, spill._pieces(group)
        self._ends = self._pieces[:, 2].cumsum()
        spans = np.array([(rows["time"].min(), rows["time"].max()) for rows in spill.parts(group, most)])
        #: for every part the first time after it
        self._after = np.minimum.accumulate(spans[:0:-1, 0])[::-1]
        first = np.searchsorted(np.maximum.accumulate(spans[:-1, 1]), self._after)
        #: most parts waiting at once
        self.overlap = int((np.arange(1, len(spans)) - first).max())

    def _load(self, rows: AnyArray, at: int) -> None:
        """Add the rows of the group whose first one has number `at`."""
        for k in range(int(np.searchsorted(self._ends, at, "right")), len(self._ends)):
            _, start, count = self._pieces[k].tolist()
            skip = at - (int(self._ends[k]) - count)
            part, rows = np.split(rows, [count - skip])
            self._spill._load(part, start + skip)
            at += len(part)
            if not len(rows):
                return

    def chunks(self) -> Iterator[AnyArray]:
        """All rows, cut between different times; may be iterated again."""
        held: AnyArray = np.empty(0, self._spill.dtype)
        for number, horizon in enumerate([*self._after.tolist(), None]):
            begin = number * self._most
            rows = np.empty(len(held) + min(self._most, int(self._ends[-1]) - begin), held.dtype)
            _words(rows[: len(held)])[:] = _words(held)
            self._load(rows[len(held) :], begin)
            rows = _in_order(rows)
            cut = len(rows) if horizon is None else int(np.searchsorted(rows["time"], horizon))
            if cut:
                yield rows[:cut]
            held = rows[cut:]

    def close(self) -> None:
        """Does nothing: the spill is owned by others."""


class Sorted:
    """Rows sorted by time (stable), in bounded memory: few rows stay in memory, more are written to a file.

    Each addition is sorted; runs that do not continue each other are merged when read.
    """

    def __init__(self, folder: Path, most: int) -> None:
        self._folder, self._most = folder, most
        self._first: AnyArray | None = None
        self._spill: Spill | None = None
        self._runs: list[tuple[int, int, int, int]] = []  # first row, last + 1, first and last time

    def add(self, rows: AnyArray, in_order: bool = False) -> None:
        """in_order: whether they are known to be sorted."""
        if not len(rows):
            return
        rows = rows if in_order else _in_order(rows)
        if self._first is None:
            self._first = rows
            return
        if self._spill is None:
            self._spill = Spill(self._folder, rows.dtype)
            self._store(self._first)
        self._store(rows)

    def _store(self, rows: AnyArray) -> None:
        assert self._spill is not None
        start, end = self._spill._rows, self._spill._rows + len(rows)
        first, last = int(rows[0]["time"]), int(rows[-1]["time"])
        if self._runs and self._runs[-1][3] <= first:
            self._runs[-1] = (self._runs[-1][0], end, self._runs[-1][2], last)
        else:
            self._runs.append((start, end, first, last))
        self._spill._append(rows)

    def close(self) -> None:
        if self._spill is not None:
            self._spill.close()

    def chunks(self) -> Iterator[AnyArray]:
        """All rows, cut between different times; may be iterated again."""
        if self._spill is None:
            if self._first is not None:
                yield self._first
            return
        runs, spill = self._runs, self._spill
        firsts, lasts = (np.sort([run[k] for run in runs]) for k in (2, 3))
        overlap = int((np.arange(1, len(runs) + 1) - np.searchsorted(lasts, firsts)).max())
        share = max(self._most // min(overlap, 16), 1)
        held: dict[int, AnyArray] = {}  # rows of a run that are read but not yielded
        read = [start for start, _, _, _ in runs]
        waiting = sorted(range(len(runs)), key=lambda k: runs[k][2], reverse=True)
        while held or waiting:
            # Nothing still in the file comes before the horizon.
            ends = {k: int(rows[-1]["time"]) for k, rows in held.items() if read[k] < runs[k][1]}
            ends |= {k: runs[k][2] for k in waiting[-1:]}
            horizon = min(ends.values(), default=None)
            parts = []
            for k in sorted(held):
                time = held[k]["time"]
                cut = len(time) if horizon is None else int(np.searchsorted(time, horizon))
                parts.append(held[k][:cut])
                held[k] = held[k][cut:]
                if not len(held[k]) and read[k] == runs[k][1]:
                    del held[k]
            if any(map(len, parts)):
                rows = joined(parts)
                yield _in_order(rows)
            for k in [k for k, end in ends.items() if end == horizon]:
                if k in waiting:
                    waiting.remove(k)
                more = np.empty(min(share, runs[k][1] - read[k]), spill.dtype)
                spill._load(more, read[k])
                read[k] += len(more)
                held[k] = joined((held[k], more)) if k in held else more


def by_time(spill: Spill, group: int, most: int) -> Sorted | _Nearly:
    """The rows of a group by time, in chunks of about `most`; not copied if they are sorted or nearly so."""
    if spill.size(group) > most:
        nearly = _Nearly(spill, group, most)
        if nearly.overlap <= OVERLAP:
            return nearly
    in_time = Sorted(spill.folder, most)
    try:
        for rows in spill.parts(group, most):
            in_time.add(rows)
    except BaseException:
        in_time.close()
        raise
    return in_time

"""Records by group in bounded memory: a temporary file of segments, and sorting by time.

While a trace is parsed, each block's records are put in order of their group (a processor) and written to
one file; an index remembers where each group's pieces lie. Afterwards a group is read back in line order.
Groups too large for memory live in mapped temporary files.
"""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from desktop.core.jit import kernel

#: Largest number of records of one group that is held in memory.
IN_MEMORY = 1 << 21


@kernel
def _intern(values: Any, slots: Any, keys: Any, used: int, out: Any) -> int:
    """Dense numbers of `values` by open addressing; `slots` holds number + 1, `keys` its value."""
    mask = len(slots) - 1
    for i in range(len(values)):
        value = values[i]
        h = np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)
        at = np.int64(h >> np.uint64(20)) & mask
        while slots[at] != 0 and keys[slots[at] - 1] != value:
            at = (at + 1) & mask
        if slots[at] == 0:
            keys[used] = value
            used += 1
            slots[at] = used
        out[i] = slots[at] - 1
    return used


class Interner:
    """Numbers int64 values in the order of their first appearance."""

    def __init__(self) -> None:
        self._slots: NDArray[np.int64] = np.zeros(1 << 10, np.int64)
        self._keys: NDArray[np.int64] = np.zeros(1 << 9, np.int64)
        self.used = 0

    def __call__(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Dense number of each value."""
        out = np.empty(len(values), np.int64)
        for start in range(0, len(values), 1 << 16):
            part = np.ascontiguousarray(values[start : start + (1 << 16)])
            self._reserve(len(part))
            self.used = int(_intern(part, self._slots, self._keys, self.used, out[start : start + len(part)]))
        return out

    @property
    def values(self) -> NDArray[np.int64]:
        """The value of every number."""
        return self._keys[: self.used]

    def _reserve(self, more: int) -> None:
        need = self.used + more
        if 2 * need <= len(self._slots):
            return
        known = self.values.copy()
        size = 1 << int(4 * need - 1).bit_length()
        self._slots = np.zeros(size, np.int64)
        self._keys = np.zeros(size // 2, np.int64)
        _intern(known, self._slots, self._keys, 0, np.empty(len(known), np.int64))


@kernel
def _by_group(groups: Any, starts: Any, order: Any) -> None:
    """Stable order by group; `starts` (G,) is advanced to the ends."""
    for i in range(len(groups)):
        g = groups[i]
        order[starts[g]] = i
        starts[g] += 1


class Spill:
    """Rows of one dtype, written in any order of groups, read back group by group in order of writing."""

    def __init__(self, folder: Path, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.folder = folder
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  lives as long as the object
        self._index: list[NDArray[np.int64]] = []
        self._rows = 0
        self._sorted: NDArray[np.int64] | None = None
        self._bounds: NDArray[np.int64] = np.zeros(1, np.int64)

    def add(self, rows: NDArray[Any], groups: NDArray[np.int64], count: int) -> None:
        """Write rows of the groups 0 .. count - 1."""
        if not len(rows):
            return
        sizes = np.bincount(groups, minlength=count)
        starts = np.zeros(count, np.int64)
        np.cumsum(sizes[:-1], out=starts[1:])
        present = np.flatnonzero(sizes)
        index = np.empty((len(present), 3), np.int64)
        index[:, 0] = present
        index[:, 1] = self._rows + starts[present]
        index[:, 2] = sizes[present]
        order = np.empty(len(rows), np.int64)
        _by_group(groups, starts, order)
        rows[order].tofile(self._file)
        self._index.append(index)
        self._rows += len(rows)

    def close(self) -> None:
        self._file.close()

    def _pieces(self, group: int) -> NDArray[np.int64]:
        if self._sorted is None:
            self._file.flush()
            index = np.concatenate(self._index) if self._index else np.empty((0, 3), np.int64)
            self._index = []
            index = index[np.argsort(index[:, 0], kind="stable")]
            groups = int(index[-1, 0]) + 1 if len(index) else 0
            self._bounds = np.searchsorted(index[:, 0], np.arange(groups + 1))
            self._sorted = index
        if group + 1 >= len(self._bounds):
            return np.empty((0, 3), np.int64)
        return self._sorted[self._bounds[group] : self._bounds[group + 1]]

    def size(self, group: int) -> int:
        """How many rows a group has."""
        return int(self._pieces(group)[:, 2].sum())

    def read(self, group: int) -> NDArray[Any]:
        """The rows of a group in order of writing; a mapped temporary file when they are many."""
        rows = room(self.folder, self.size(group), self.dtype)
        at = 0
        for _, start, count in self._pieces(group).tolist():
            self._file.seek(start * self.dtype.itemsize)
            self._file.readinto(rows[at : at + count].view(np.uint8).data)
            at += count
        return rows


def room(folder: Path, rows: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array in memory, or in a nameless temporary file when it is large."""
    if rows <= IN_MEMORY:
        return np.empty(rows, dtype)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.truncate(rows * dtype.itemsize)
        return np.asarray(np.memmap(file, dtype, "r+", shape=(rows,)))


@kernel
def _rising(rows: Any) -> bool:
    sorted_so_far = True
    for i in range(1, len(rows)):
        sorted_so_far = sorted_so_far and rows[i]["time"] >= rows[i - 1]["time"]
    return sorted_so_far


@kernel
def _merge(rows: Any, bounds: Any, out: Any) -> None:
    """Merge the sorted runs rows[bounds[k]:bounds[k+1]] by time; of equal times the earlier run first."""
    heads = bounds[:-1].copy()
    for i in range(len(rows)):
        best = -1
        for k in range(len(heads)):
            if heads[k] < bounds[k + 1] and (best < 0 or rows[heads[k]]["time"] < rows[heads[best]]["time"]):
                best = k
        out[i] = rows[heads[best]]
        heads[best] += 1


def by_time(folder: Path, rows: NDArray[Any]) -> NDArray[Any]:
    """Rows by (time, order given); sorted runs are merged through a file when they are many."""
    if _rising(rows):
        return rows
    if len(rows) <= IN_MEMORY:
        return rows[np.argsort(rows["time"], kind="stable")]
    bounds = np.append(np.arange(0, len(rows), IN_MEMORY), len(rows)).astype(np.int64)
    for begin, end in pairwise(bounds.tolist()):
        run = rows[begin:end]
        rows[begin:end] = run[np.argsort(run["time"], kind="stable")]
    out = room(folder, len(rows), rows.dtype)
    _merge(rows, bounds, out)
    return out

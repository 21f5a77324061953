"""The states of every location, in a temporary file from the import's replay until the curve is made.

A step is a tick as recorded and the code (`desktop.core.open_regions`) of the location's state from then on.
Clocks are repaired and codes resolved on reading, as neither clocks nor activities of regions are known
before the whole trace was read.
"""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedRandom
from pathlib import Path
from typing import NamedTuple

import numpy as np

from desktop.core.arrays import Bytes, Ints
from desktop.core.open_regions import steps
from desktop.data.atomic import naming

#: Steps held in memory.
_ROWS = 1 << 16


class ReplayedSteps(NamedTuple):
    """For a location: whether it has entered an active region, its leaves without enter, and the regions open
    at its end, except synthetic ones."""

    worked: bool
    stray: int
    unclosed: int


class Steps:
    """The steps of all locations, one after the other, in a temporary file beside `target`, which errors
    name."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._file: BufferedRandom | None = None
        self._classes = np.zeros(0, np.uint8)
        self._about: dict[int, ReplayedSteps] = {}
        self._pieces: dict[int, list[tuple[int, int]]] = {}  # for each location: place in the file, rows
        self._written = 0
        self._time, self._code = np.empty(0, np.int64), np.empty(0, np.uint8)
        self._state = np.zeros(3, np.int64)
        self._filled = 0

    def begin(self, location: int) -> None:
        """Start the next location."""
        self._location = location
        self._pieces[location] = []
        self._state[:] = -1

    def add(self, time: Ints, code: Bytes) -> None:
        """Add events of the location and the codes after them."""
        if self._filled + time.size + 1 > self._time.size:
            self._flush()
            if time.size + 1 > self._time.size:
                rows = max(_ROWS, time.size + 1)
                self._time, self._code = np.empty(rows, np.int64), np.empty(rows, np.uint8)
        a = self._filled
        self._filled += steps(np.ascontiguousarray(time), code, self._state, self._time[a:], self._code[a:])

    def close(self, about: ReplayedSteps) -> None:
        """The location's events are complete."""
        time, code, written = self._state.tolist()
        if code != written:
            self._time[self._filled], self._code[self._filled] = time, code
            self._filled += 1
        self._flush()
        self._about[self._location] = about

    def _flush(self) -> None:
        if not self._filled:
            return
        with naming(self._target):
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._target.parent)  # noqa: SIM115  lives on
            self._file.seek(self._written)
            self._file.write(self._time[: self._filled].data)
            self._file.write(self._code[: self._filled].data)
            self._file.flush()  # here, where errors are reported
        self._pieces[self._location].append((self._written, self._filled))
        self._written += self._filled * (self._time.itemsize + self._code.itemsize)
        self._filled = 0

    def finish(self, classes: Bytes) -> None:
        """All locations are complete; `classes`: the activities of regions behind the codes."""
        self._classes = classes

    def hold(self, classes: Bytes) -> bool:
        """Whether the codes were found with these activities of regions (ignoring regions without events)."""
        return np.array_equal(self._classes, classes[: self._classes.size])

    def about(self, location: int) -> ReplayedSteps:
        return self._about.get(location, ReplayedSteps(False, 0, 0))

    def rows(self, location: int) -> int:
        return sum(count for _, count in self._pieces.get(location, ()))

    def blocks(self, location: int, rows: int) -> Iterator[tuple[Ints, Bytes]]:
        """Ticks and codes of a location's steps, at most `rows` at a time.

        Raises
        ------
        OSError : the file cannot be read.
        """
        width = self._time.itemsize
        for place, count in self._pieces.get(location, ()):
            for a in range(0, count, rows):
                time = np.empty(min(rows, count - a), np.int64)
                code = np.empty(time.size, np.uint8)
                self._load(time, place + width * a)
                self._load(code, place + width * count + a)
                yield time, code

    def _load(self, values: Ints | Bytes, place: int) -> None:
        assert self._file is not None
        self._file.seek(place)
        if self._file.readinto(values.view(np.uint8).data) != values.nbytes:
            raise OSError(errno.EIO, "a temporary file has lost its end")

    def release(self) -> None:
        """Close and remove the file."""
        if self._file is not None:
            with suppress(OSError):  # nobody needs what it could not write
                self._file.close()

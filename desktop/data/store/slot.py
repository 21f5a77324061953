"""Space in a store for results found later: a ring of entries, written in place without HDF5.

HDF5 cannot change a file that others have open, and a file is lost if the process is killed while it does. So
the writer of a store lays out one dataset of bytes, ``/kept``, which HDF5 never touches again: its bytes are
written directly to their place in the file. HDF5 reads the file whatever they are.

An entry begins at a multiple of `STEP` and wraps around at the end of the space. It is `_HEAD` (mark, key,
number, bytes of content, SHA-256 of these and the content), then the content. It is written after the entry
with the highest number and never over it: a failed write cannot lose the latest result. Two processes that
write at once may spoil each other's entry; its checksum shows that, and it is ignored.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

NAME = "kept"
STEP = 512
MOST = 1 << 24
_MARK = b"PW kept\n"
_HEAD = struct.Struct("<8s32sQQ32s")
#: Phases for which there is space twice, and packed bytes of a phase and of each location and region in it.
#: Recorded runs of 4 to 32 locations take 440 to 5200 per phase, between a third and twice this estimate.
_PHASES, _PHASE, _LOCATION, _REGION = 12, 1200, 130, 24
#: Entries of one key that are tried: more than one are damaged only if somebody made them so.
_TRIES = 8


def room(locations: int, regions: int) -> int:
    """Bytes of the slot in a new store."""
    size = 2 * (_PHASES + 1) * (_PHASE + _LOCATION * locations + _REGION * regions)
    return min(-(-size // STEP) * STEP, MOST)


class _Entry(NamedTuple):
    at: int
    key: bytes
    number: int
    length: int
    total: bytes


class Slot:
    """The `size` bytes from `at` on in the file at `path`. `handle`: of the open file, if it is."""

    def __init__(self, path: Path, handle: Callable[[], int], at: int, size: int) -> None:
        self._path, self._handle, self._at = path, handle, at
        self._size = min(size, MOST) // STEP * STEP

    @property
    def place(self) -> tuple[int, int]:
        """First byte in the file, and number of bytes."""
        return self._at, self._size

    def get(self, key: bytes) -> bytes | None:
        """The latest undamaged content stored for a `key` of 32 bytes; None if there is none."""
        with suppress(OSError), self._open("rb") as file:
            held = self._held(file)
            contents = [
                _content(held, one) for one in [one for one in _entries(held) if one.key == key][:_TRIES]
            ]
            return next((content for content in contents if content is not None), None)
        return None

    def put(self, key: bytes, content: bytes) -> bool:
        """Store `content`; False if the slot is too small or the file must not or cannot be written. The
        file's time of modification stays, as the trace has not changed."""
        entry = _HEAD.size + len(content)
        if entry > self._size // 2 // STEP * STEP:
            return False
        with suppress(OSError), self._open("r+b") as file:
            before = os.fstat(file.fileno())
            if not before.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
                return False  # the superuser can write, but must not
            held = self._held(file)
            last = next((one for one in _entries(held)[:_TRIES] if _content(held, one) is not None), None)
            at, number = (0, 1) if last is None else (_end(last) % self._size, last.number + 1)
            about = _MARK, key, number % (1 << 64), len(content)
            total = sha256(_HEAD.pack(*about, b"") + content).digest()
            whole = _HEAD.pack(*about, total) + content
            for place, part in ((at, whole[: self._size - at]), (0, whole[self._size - at :])):
                file.seek(self._at + place)
                if file.write(part) < len(part):
                    raise OSError("the disk is full")
            with suppress(OSError):  # the file may belong to somebody else
                os.utime(self._path, ns=(before.st_atime_ns, before.st_mtime_ns))
            return True
        return False

    @contextmanager
    def _open(self, mode: str) -> Iterator[IO[bytes]]:
        """The open file, if it is still the one at its path.

        Raises
        ------
        OSError : it is not, or cannot be opened in this mode.
        """
        with self._path.open(mode, buffering=0) as file:
            try:
                ours = os.fstat(self._handle())
            except ValueError:
                raise OSError("the store was closed") from None
            if not os.path.samestat(ours, os.fstat(file.fileno())):
                raise OSError("the file was replaced")
            yield file

    def _held(self, file: IO[bytes]) -> bytes:
        file.seek(self._at)
        held = file.read(self._size)
        if len(held) < self._size:
            raise OSError("the file is too short")
        return held


def _entries(held: bytes) -> list[_Entry]:
    """Everything that looks like an entry, the latest first; checksums are not checked."""
    marks = np.frombuffer(held, np.dtype("S8"))[:: STEP // 8]
    places = np.flatnonzero(marks == _MARK) * STEP
    entries = [_Entry(int(at), *_HEAD.unpack_from(held, int(at))[1:]) for at in places]
    return sorted((one for one in entries if _end(one) - one.at <= len(held)), key=lambda one: -one.number)


def _end(entry: _Entry) -> int:
    """Where the next entry may begin; beyond the end of the slot if this one wraps around."""
    return entry.at + -(-(_HEAD.size + entry.length) // STEP) * STEP


def _content(held: bytes, entry: _Entry) -> bytes | None:
    """The content of an entry; None if its checksum is wrong."""
    begin = entry.at + _HEAD.size
    end = begin + entry.length
    content = held[begin:end] + held[: max(end - len(held), 0)]
    head = _HEAD.pack(_MARK, entry.key, entry.number, entry.length, b"")
    return content if sha256(head + content).digest() == entry.total else None

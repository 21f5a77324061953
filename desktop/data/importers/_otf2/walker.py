"""Where an event file stops being sound.

Behind the end of a cut file the library goes on in memory that holds another location's records, and it
skips what it does not know. Therefore the framing is followed here first, and no more is read than that.

Source: OTF2 3.2 (score-p.org), layout of the chunks and records of an event file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from desktop.core.jit import kernel

#: What is wrong with an event file.
INTACT, BACKWARDS, OUT_OF_RANGE, CUT, UNKNOWN, MALFORMED, HEADLESS = range(7)
FAULTS = (
    "",
    "a time lies before the one ahead of it",
    "a time is far outside of the run",
    "the file is cut",
    "a record is of unknown type",
    "a number or record has an impossible length",
    "a chunk has no header",
)

AT, SEEN, SETTLED, NOW, BEFORE, START = range(6)  # words of a walk: next byte; records so far, and those
# ahead of the latest change of time; the time, the different one before it, and the first one
#: Event records that are one compressed number without a length: most bytes of that number.
BARE = {12: 4, 13: 4, 16: 8, 17: 8, 20: 8, 21: 8, 24: 4, 28: 8, 29: 8, 30: 8}
BARE_BYTES = np.array([BARE.get(kind, 0) for kind in range(256)], np.int64)
FIRST_RECORD, LAST_RECORD = 10, 92
CHUNK_HEADER = 18
FILL, END_OF_BUFFER, END_OF_FILE, CHUNK, TIME, ATTRIBUTES = 0, 1, 2, 3, 5, 6


@kernel
def big_number(data: NDArray[np.uint8], at: int, big_endian: bool) -> Any:
    """Eight bytes as a signed number."""
    value = np.int64(0)
    for i in range(8):
        value = (value << 8) | np.int64(data[at + (i if big_endian else 7 - i)])
    return value


@kernel
def walk(
    data: NDArray[np.uint8],
    bare_bytes: NDArray[np.int64],
    chunk: int,
    big_endian: bool,
    span: int,
    most: int,
    state: NDArray[np.int64],
) -> tuple[bool, int]:
    """Follow the framing over `most` records more: whether the end is reached, and what is wrong there."""
    at = state[AT]
    until = state[SEEN] + most
    while state[SEEN] < until:
        state[AT] = at
        if at >= data.size:
            return True, CUT
        if at % chunk == 0:
            if data.size - at < CHUNK_HEADER or data[at] != CHUNK:
                return True, HEADLESS
            at += CHUNK_HEADER
            continue
        border = min((at // chunk + 1) * chunk, data.size)
        too_long = MALFORMED if border < data.size else CUT
        kind = data[at]
        if kind == END_OF_FILE:
            return True, INTACT
        if kind in (FILL, END_OF_BUFFER):
            at = (at // chunk + 1) * chunk
            continue
        if kind == TIME:
            if border - at < 9:
                return True, too_long
            now = big_number(data, at + 1, big_endian)
            if state[START] < 0:
                state[START] = now
            if now < 0 or now - state[START] > span:
                return True, OUT_OF_RANGE
            if now < state[NOW]:
                if now >= state[BEFORE]:  # then it was the time before that lay too late
                    state[SEEN] = state[SETTLED]
                return True, BACKWARDS
            if now > state[NOW]:
                state[SETTLED] = state[SEEN]
                state[BEFORE], state[NOW] = state[NOW], now
            at += 9
            continue
        if kind != ATTRIBUTES and not FIRST_RECORD <= kind <= LAST_RECORD:
            return True, UNKNOWN
        if border - at < 2:
            return True, too_long
        length: Any = np.int64(data[at + 1])
        at += 2
        if bare_bytes[kind] > 0:
            if length == 255:
                length = 0
            elif length > bare_bytes[kind]:
                return True, MALFORMED
        elif length == 255:
            if border - at < 8:
                return True, too_long
            length = big_number(data, at, big_endian)
            at += 8
        if length < 0 or length > border - at:
            return True, too_long
        at += length
        if kind != ATTRIBUTES:
            state[SEEN] += 1
    state[AT] = at
    return False, INTACT


class Walker:
    """Follows an event file ahead of the library. `sound`: so many records are surely as written."""

    def __init__(self, file: Path, chunk: int, big_endian: bool, span: int) -> None:
        self._data = np.memmap(file, np.uint8, "r")
        self._of_file = (chunk, big_endian, span)
        self._state = np.array([0, 0, 0, -1, -1, -1], np.int64)
        self.ended, self.fault = False, INTACT

    def advance(self, records: int) -> None:
        self.ended, self.fault = walk(self._data, BARE_BYTES, *self._of_file, records, self._state)

    @property
    def at(self) -> int:
        return int(self._state[AT])

    @property
    def sound(self) -> int:
        # Should the latest time turn out to be wrong, then its records are not wanted.
        return int(self._state[SEEN if self.ended else SETTLED])

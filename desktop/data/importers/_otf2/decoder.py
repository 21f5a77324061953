"""Event files, decoded by one compiled loop.

A file is read chunk by chunk into memory (a memory-mapped file that shrinks meanwhile would end the process).
No byte is trusted: the length of each number and record is checked against what is there. A fault is reported
with its position, and what came before it is kept.

Source: OTF2 3.2 (score-p.org), layout of the chunks and records of an event file.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from io import RawIOBase
from pathlib import Path

import numpy as np

from desktop.core.arrays import Bytes, Floats, Ints
from desktop.core.jit import arithmetic, inlined
from desktop.data.importers._otf2 import records as rc
from desktop.data.importers._otf2.engine import CALLING_CONTEXT, COMM, DENSE, METRIC, NO_MAP, REGION, Local
from desktop.data.importers._otf2.tables import MESSAGES
from desktop.errors import reason

# Words of the buffer used by the decoder: next byte in the chunk; time of the next records, and the byte
# where it was set; the interval of the clock offsets it lies in; the numbers of the chunk's first and last
# records, as it announces them; and the fields of the current record.
AT, NOW, TIME_AT, INTERVAL, FIRST_OF_CHUNK, LAST_OF_CHUNK, FIELD = range(rc.OWN, rc.OWN + 7)

CHUNK_HEADER = 18
LITTLE, BIG = 0x42, 0x23
# What can start a record in an event file.
FILL, END_OF_BUFFER, END_OF_FILE, CHUNK, TIME, ATTRIBUTES = 0, 1, 2, 3, 5, 6
FIRST_RECORD, LAST_RECORD = 10, 92
FLUSH, ON_OFF, ENTER, LEAVE = 10, 11, 12, 13
COLLECTIVE_BEGIN, COLLECTIVE_END, METRIC_VALUES, CONTEXT_ENTER, CONTEXT_LEAVE = 22, 23, 31, 66, 67
#: Fields of the records that are read: most bytes of a compressed number, a raw byte, a raw word.
C4, C8, BYTE, WORD = 4, 8, 1, 9
LAYOUT = {
    FLUSH: (WORD,),
    ON_OFF: (BYTE,),
    ENTER: (C4,),
    LEAVE: (C4,),
    14: (C4, C4, C4, C8),  # MpiSend
    15: (C4, C4, C4, C8, C8),  # MpiIsend
    16: (C8,),  # MpiIsendComplete
    17: (C8,),  # MpiIrecvRequest
    18: (C4, C4, C4, C8),  # MpiRecv
    19: (C4, C4, C4, C8, C8),  # MpiIrecv
    20: (C8,),  # MpiRequestTest
    21: (C8,),  # MpiRequestCancelled
    COLLECTIVE_END: (BYTE, C4, C4, C8, C8),
    24: (C4,),  # OmpFork, and other former records of OpenMP
    28: (C8,),
    29: (C8,),
    30: (C8,),
    METRIC_VALUES: (C4, BYTE),
    CONTEXT_ENTER: (C4, C4),
    CONTEXT_LEAVE: (C4,),
}
FIELDS = np.zeros((256, 6), np.int64)
for _kind, _fields in LAYOUT.items():
    FIELDS[_kind, : len(_fields)] = _fields
#: Records without a length, which consist of one field.
BARE = np.isin(np.arange(256), [12, 13, 16, 17, 20, 21, 24, 28, 29, 30])
#: Message kind of a record; -1: none.
MESSAGE = np.full(256, -1, np.int64)
MESSAGE[list(MESSAGES.values())] = list(MESSAGES)
#: Non-blocking collectives and matched probes, which have no place in the tables.
NOT_STORED = np.isin(np.arange(256), [85, 86, 89, 90, 91, 92])

#: Masks of the low bytes, by number of bytes.
LOW_BYTES = np.array([(1 << 8 * size) - 1 for size in range(8)] + [-1], np.int64)

PAUSED, NEXT_CHUNK, ENDED = range(3)
BLOCK_BYTES = 1 << 22  # most bytes of a file read between two blocks, besides a chunk
TOO_SHORT, IMPOSSIBLE = -1, -2
MARGIN = CHUNK_HEADER  # bytes after a chunk that may be read, but are not used


@inlined
def word(data: Bytes, start: int, big_endian: bool) -> int:
    """The eight bytes from `start` on as a number. Written out, as it becomes one instruction then."""
    at = np.uint64(start)
    if big_endian:
        return int(
            np.int64(data[at]) << 56
            | np.int64(data[at + np.uint64(1)]) << 48
            | np.int64(data[at + np.uint64(2)]) << 40
            | np.int64(data[at + np.uint64(3)]) << 32
            | np.int64(data[at + np.uint64(4)]) << 24
            | np.int64(data[at + np.uint64(5)]) << 16
            | np.int64(data[at + np.uint64(6)]) << 8
            | np.int64(data[at + np.uint64(7)])
        )
    return int(
        np.int64(data[at])
        | np.int64(data[at + np.uint64(1)]) << 8
        | np.int64(data[at + np.uint64(2)]) << 16
        | np.int64(data[at + np.uint64(3)]) << 24
        | np.int64(data[at + np.uint64(4)]) << 32
        | np.int64(data[at + np.uint64(5)]) << 40
        | np.int64(data[at + np.uint64(6)]) << 48
        | np.int64(data[at + np.uint64(7)]) << 56
    )


@inlined
def part(data: Bytes, at: int, size: int, big_endian: bool) -> int:
    """The `size` (0 to 8) bytes from `at` on as a number; eight bytes must be readable there."""
    if size == 0:
        return 0
    value = word(data, at, big_endian)
    if big_endian:
        value >>= 64 - 8 * size
    return int(value & LOW_BYTES[size])


@inlined
def compressed(data: Bytes, at: int, stop: int, most: int, big_endian: bool, words: Ints, to: int) -> int:
    """Read a number of at most `most` bytes into ``words[to]``; returns its end, TOO_SHORT or IMPOSSIBLE."""
    if at >= stop:
        return TOO_SHORT
    size = np.int64(data[at])
    at += 1
    if size == 255:
        words[to] = rc.UNDEFINED if most == C4 else -1
        return at
    if size > most:
        return IMPOSSIBLE
    if size > stop - at:
        return TOO_SHORT
    words[to] = part(data, at, size, big_endian)
    return int(at + size)


@inlined
def read_fields(data: Bytes, at: int, stop: int, kind: int, big_endian: bool, words: Ints) -> int:
    """Read the fields of a record into `words`; returns their end, TOO_SHORT or IMPOSSIBLE."""
    for i in range(FIELDS.shape[1]):
        form = FIELDS[kind, i]
        if form == 0 or at < 0:
            break
        if form in (C4, C8):
            at = compressed(data, at, stop, form, big_endian, words, FIELD + i)
            continue
        size = 1 if form == BYTE else 8
        if size > stop - at:
            return TOO_SHORT
        words[FIELD + i] = part(data, at, size, big_endian)
        at += size
    return at


@arithmetic
def metric_value(data: Bytes, at: int, stop: int, big_endian: bool, words: Ints) -> int:
    """Read type and bits of a metric's value into fields 2 and 3; returns their end, or what is wrong."""
    if at >= stop:
        return TOO_SHORT
    words[FIELD + 2] = data[at]
    return compressed(data, at + 1, stop, C8, big_endian, words, FIELD + 3)


@inlined
def translate(maps: Ints, slot: int, local: int) -> int:
    """The global number of a local one; the same number if the location has no translation."""
    mode, start, n = maps[3 * slot], maps[3 * slot + 1], maps[3 * slot + 2]
    if mode == NO_MAP:
        return local
    if mode == DENSE:
        return maps[start + local] if local < n else local
    low, high = 0, n
    while low < high:
        middle = (low + high) >> 1
        if maps[start + middle] < local:
            low = middle + 1
        else:
            high = middle
    return maps[start + n + low] if low < n and maps[start + low] == local else local


@inlined
def corrected(time: int, offsets: Ints, words: Ints) -> int:
    """A time on the global clock: linear between clock offsets, the outer lines extended."""
    n = offsets.shape[1]
    if n < 2:
        return time
    i = words[INTERVAL]
    while i + 2 < n and time >= offsets[0, i + 1]:
        i += 1
    words[INTERVAL] = i
    slope = np.float64(offsets[1, i + 1] - offsets[1, i]) / np.float64(offsets[0, i + 1] - offsets[0, i])
    shift = np.rint(slope * np.float64(time - offsets[0, i])) + np.float64(offsets[1, i])
    if not abs(shift) < rc.TIME_LIMIT:
        return -1
    return time + int(shift)


# Long: a branch for each kind of record.
@arithmetic
def decode(
    data: Bytes, border: int, partial: bool, newer: bool, maps: Ints, offsets: Ints, words: Ints,
    reals: Floats, most: int,
) -> int:  # fmt: skip
    """Decode at most `most` records of a chunk: PAUSED, NEXT_CHUNK, or ENDED (by FAULT, at AT).

    `border`: bytes of the chunk in `data` (followed by MARGIN more); `partial`: the file ends inside the
    chunk. `newer`: there may be kinds of records that only a later library knows.
    """
    at = words[AT]
    if at == 0:
        if border < CHUNK_HEADER or data[0] != CHUNK or (data[1] != LITTLE and data[1] != BIG):
            words[rc.FAULT] = rc.CUT if border < CHUNK_HEADER else rc.HEADLESS
            return ENDED
        words[FIRST_OF_CHUNK] = word(data, 2, data[1] == BIG)
        words[LAST_OF_CHUNK] = word(data, 10, data[1] == BIG)
        at = np.int64(CHUNK_HEADER)
    big_endian = data[1] == BIG
    too_long = rc.CUT if partial else rc.MALFORMED
    now = words[NOW]
    until = words[rc.RECORDS] + most
    while words[rc.RECORDS] < until and not rc.crowded(words):
        words[AT] = at
        if at >= border:
            words[rc.FAULT] = rc.CUT if partial else rc.INTACT
            return ENDED if partial else NEXT_CHUNK
        kind = np.int64(data[at])
        if kind == TIME:
            if border - at < 9:
                words[rc.FAULT] = too_long
                return ENDED
            now = corrected(word(data, at + 1, big_endian), offsets, words)
            words[NOW], words[TIME_AT] = now, at
            at += 9
            continue
        if kind < FIRST_RECORD and kind != ATTRIBUTES:
            if kind == END_OF_FILE:
                return ENDED
            if kind in (FILL, END_OF_BUFFER):
                words[rc.FAULT] = rc.CUT if partial else rc.INTACT
                return ENDED if partial else NEXT_CHUNK
            words[rc.FAULT] = rc.UNKNOWN
            return ENDED
        if kind > LAST_RECORD and not newer:
            words[rc.FAULT] = rc.UNKNOWN
            return ENDED
        at += 1
        stop = border
        if not BARE[kind]:
            if at >= border:
                words[rc.FAULT] = too_long
                return ENDED
            length = int(np.int64(data[at]))
            at += 1
            if length == 255:
                if border - at < 8:
                    words[rc.FAULT] = too_long
                    return ENDED
                length = word(data, at, big_endian)
                at += 8
            if length < 0 or length > border - at:
                words[rc.FAULT] = too_long
                return ENDED
            stop = at + length
        if kind == ATTRIBUTES:
            at = stop
            continue
        end = read_fields(data, at, stop, kind, big_endian, words)
        values = end
        if kind == METRIC_VALUES and end >= 0:
            for _ in range(words[FIELD + 1]):
                end = metric_value(data, end, stop, big_endian, words)
                if end < 0:
                    break
        if end < 0:
            words[rc.FAULT] = too_long if BARE[kind] and end == TOO_SHORT else rc.MALFORMED
            return ENDED
        if not rc.arrive(words, now):
            words[AT] = words[TIME_AT]
            return ENDED
        at = end if BARE[kind] else stop
        first = words[FIELD]
        if kind in (ENTER, LEAVE):
            rc.put_event(words, now, kind - ENTER, translate(maps, REGION, first))
        elif MESSAGE[kind] >= 0 and BARE[kind]:
            rc.put_message(words, now, MESSAGE[kind], rc.UNDEFINED, rc.UNDEFINED, -1, 0, first)
        elif MESSAGE[kind] >= 0:
            request = words[FIELD + 4] if FIELDS[kind, 4] else 0
            comm = translate(maps, COMM, words[FIELD + 1])
            rc.put_message(
                words, now, MESSAGE[kind], first, comm, words[FIELD + 2], words[FIELD + 3], request
            )
        elif kind == COLLECTIVE_BEGIN:
            words[rc.BEGIN] = now
        elif kind == COLLECTIVE_END:
            comm = translate(maps, COMM, words[FIELD + 1])
            rc.put_collective(words, now, first, comm, words[FIELD + 2], words[FIELD + 3], words[FIELD + 4])
        elif kind == METRIC_VALUES:
            metric = translate(maps, METRIC, first)
            for i in range(words[FIELD + 1]):
                values = metric_value(data, values, stop, big_endian, words)
                rc.put_metric(words, reals, now, metric, i, words[FIELD + 2], words[FIELD + 3])
        elif kind in (CONTEXT_ENTER, CONTEXT_LEAVE):
            context = translate(maps, CALLING_CONTEXT, first)
            rc.put_event(words, now, kind - CONTEXT_ENTER, rc.CONTEXTS + context)
        elif kind == ON_OFF:
            rc.put_event(words, now, 0 if first == 2 else 1, rc.NOT_MEASURED)
        elif kind == FLUSH:
            rc.put_flush(words, now, corrected(first, offsets, words))
        elif NOT_STORED[kind] or kind > LAST_RECORD:
            words[rc.UNSTORED] += 1
    words[AT] = at
    return PAUSED


class EventFile:
    """Reads event files one after the other, into the same buffer."""

    def __init__(self, chunk: int, newer: bool, records: int, span: int) -> None:
        """`chunk`: bytes of a chunk. `records`: read at a time; `span`: most ticks a location may cover."""
        self._chunk, self._newer = chunk, newer
        self._buffer = rc.Buffer(records, span)

    def blocks(self, file: Path, local: Local) -> Generator[rc.Block, None, None]:
        """The rows of a file. The last block has its fault, if any."""
        self._buffer.start()
        try:
            with file.open("rb", buffering=0) as stream:
                yield from self._read(stream, local)
        except OSError as error:
            last = self._buffer.take(ended=True)
            last.fault = f"the file cannot be read ({reason(error)})"
            yield last

    def _read(self, stream: RawIOBase, local: Local) -> Generator[rc.Block, None, None]:
        buffer, words = self._buffer, self._buffer.words
        size = min(self._chunk, os.fstat(stream.fileno()).st_size)
        data = np.zeros(size + MARGIN, np.uint8)
        base = border = delivered = 0
        number = ahead = 0  # latest announced record number, and records read by then
        miscounted: list[int] = []
        status = NEXT_CHUNK
        while status != ENDED:
            if status == NEXT_CHUNK:
                base += border
                border = fill(stream, data[:size])
                words[AT] = 0
            room = buffer.room
            if not room or base - delivered > BLOCK_BYTES:
                delivered = base
                block = buffer.take()
                block.at = base + int(words[AT])
                yield block
                buffer.drop()
                room = buffer.room
            status = decode(
                data, border, border < self._chunk, self._newer, local.maps, local.offsets, words,
                buffer.reals, room,
            )  # fmt: skip
            if status != PAUSED and not words[rc.FAULT] and words[LAST_OF_CHUNK]:
                first, last = int(words[FIRST_OF_CHUNK]), int(words[LAST_OF_CHUNK])
                if first != number + 1 or last - number != words[rc.RECORDS] - ahead:
                    miscounted.append(base)
                number, ahead = last, int(words[rc.RECORDS])
        block = buffer.take(ended=True)
        block.at, block.fault = base + int(words[AT]), rc.FAULTS[words[rc.FAULT]]
        block.miscounted = tuple(miscounted)
        yield block


def fill(stream: RawIOBase, data: Bytes) -> int:
    """Read until `data` is full or the file ends; returns the number of bytes."""
    view, n = data.data, 0
    while n < data.size and (read := stream.readinto(view[n:])):
        n += read
    return n

"""From records to rows: one buffer of plain columns, and the natively compiled callbacks that fill it.

The library calls a function for every record; Python empties the buffer every so many records.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import carray, types
from numpy.typing import NDArray

from desktop.core.jit import callback, kernel
from desktop.data.events import MessageKind
from desktop.data.importers._otf2.library import GO_ON, STOP
from desktop.data.importers._otf2.tables import PASSING, UNSTORED_RECORDS
from desktop.data.importers._otf2.walker import BACKWARDS, OUT_OF_RANGE

# The buffer is one int64 array: HEADER words, then the columns of each table, one after the other.

EVENTS, MESSAGES, COLLECTIVES, METRICS = range(4)
TABLE_NAMES = ("events", "messages", "collectives", "metrics")
WIDTH = (2, 6, 7, 3)  # words of a row; the first one is its time
#: Rows there is room for: FACTOR * RECORDS + SPARE. A buffer flush gives two rows of events; a metric
#: record has up to 255 values, therefore its callback interrupts the reading before the table is full.
FACTOR = (2, 1, 1, 4)
SPARE = (2, 0, 0, 255)

HEADER = 32
COUNT = 0  # + table: rows filled
SIZE, CAPACITY = 4, 5  # of the whole buffer in words; records read at a time
FIRST, LAST = 6, 7  # times of the first and of the latest record
SPAN = 8  # no time may be later than FIRST by more
FAULT = 9
BEGIN, FLUSHED = 10, 11  # begin of the open collective; end of a buffer flush not yet written; -1: none
ORPHANS, SKIPPED, UNSTORED = 12, 13, 14  # collective ends without begin, messages to nobody, others

# Numbers of regions beyond 32 bits are ours; calling contexts (sampling) follow from CONTEXTS on.
NOT_MEASURED, FLUSHING, CONTEXTS = 1 << 32, (1 << 32) + 1, 1 << 33
UNDEFINED = 0xFFFFFFFF
PROC_NULL = 0xFFFFFFFE  # EZTrace writes messages to MPI_PROC_NULL as they are


@kernel
def arrive(words: NDArray[np.int64], time: int) -> bool:
    """Note the time of a record; False, with FAULT set, if no intact file has it here."""
    now = np.int64(time)
    if words[FIRST] < 0 and now >= 0:
        words[FIRST] = now
    if now < 0 or now - words[FIRST] > words[SPAN]:
        words[FAULT] = OUT_OF_RANGE
        return False
    if now < words[LAST]:
        words[FAULT] = BACKWARDS
        return False
    words[LAST] = now
    return True


@kernel
def new_row(words: NDArray[np.int64], table: int) -> tuple[int, int]:
    """Take the next row: the place of its first word and the distance to the next column."""
    at = HEADER
    for t in range(table):
        at += WIDTH[t] * (FACTOR[t] * words[CAPACITY] + SPARE[t])
    at += words[COUNT + table]
    words[COUNT + table] += 1
    return at, FACTOR[table] * words[CAPACITY] + SPARE[table]


@kernel
def put_event(words: NDArray[np.int64], time: int, kind: int, region: int) -> None:
    if words[FLUSHED] >= 0:  # a flush ends at the latest where the next region changes
        at, stride = new_row(words, EVENTS)
        words[at] = min(words[FLUSHED], time)
        words[at + stride] = (1 << 56) | FLUSHING
        words[FLUSHED] = -1
    at, stride = new_row(words, EVENTS)
    words[at] = time
    words[at + stride] = (kind << 56) | region


@kernel
def buffer(data: Any) -> NDArray[np.int64]:
    return carray(data, (carray(data, (HEADER,), np.int64)[SIZE],), np.int64)


# The callbacks. The library passes location, time, position, our buffer and attributes first.

U8, U32, U64, POINTER = types.uint8, types.uint32, types.uint64, types.voidptr
I64 = np.int64
Make = Callable[..., Any]


def region_callback(kind: int, offset: int) -> Make:
    def changed(location, time, position, data, attributes, region):
        words = buffer(data)
        if not arrive(words, time):
            return STOP
        put_event(words, I64(time), kind, I64(region) + offset)
        return GO_ON

    return changed


def context_enter(location, time, position, data, attributes, context, unwound):
    words = buffer(data)
    if not arrive(words, time):
        return STOP
    put_event(words, I64(time), 0, I64(context) + CONTEXTS)
    return GO_ON


def measurement_on_off(location, time, position, data, attributes, mode):
    words = buffer(data)
    if not arrive(words, time):
        return STOP
    put_event(words, I64(time), 0 if mode == 2 else 1, NOT_MEASURED)
    return GO_ON


def buffer_flush(location, time, position, data, attributes, stop):
    words = buffer(data)
    if not arrive(words, time):
        return STOP
    put_event(words, I64(time), 0, FLUSHING)
    words[FLUSHED] = max(I64(stop), I64(time))
    return GO_ON


@kernel
def message(data: Any, time: int, kind: int, peer: int, comm: int, tag: int, size: int, request: int) -> int:
    words = buffer(data)
    if not arrive(words, time):
        return STOP
    if peer == PROC_NULL:
        words[SKIPPED] += 1
        return GO_ON
    at, stride = new_row(words, MESSAGES)
    words[at] = I64(time)
    words[at + stride] = (kind << 56) | I64(peer)
    words[at + 2 * stride] = I64(comm)
    words[at + 3 * stride] = I64(tag)
    words[at + 4 * stride] = I64(size)
    words[at + 5 * stride] = I64(request)
    return GO_ON


def message_callback(kind: int) -> Make:
    def blocking(location, time, position, data, attributes, peer, comm, tag, size):
        return message(data, time, kind, peer, comm, tag, size, 0)

    return blocking


def posted_callback(kind: int) -> Make:
    def posted(location, time, position, data, attributes, peer, comm, tag, size, request):
        return message(data, time, kind, peer, comm, tag, size, request)

    return posted


def request_callback(kind: int) -> Make:
    def request(location, time, position, data, attributes, request):
        return message(data, time, kind, UNDEFINED, UNDEFINED, -1, 0, request)

    return request


def collective_begin(location, time, position, data, attributes):
    words = buffer(data)
    if not arrive(words, time):
        return STOP
    words[BEGIN] = I64(time)
    return GO_ON


def collective_end(location, time, position, data, attributes, operation, comm, root, sent, received):
    words = buffer(data)
    if not arrive(words, time):
        return STOP
    if words[BEGIN] < 0:
        words[ORPHANS] += 1
        return GO_ON
    at, stride = new_row(words, COLLECTIVES)
    words[at] = words[BEGIN]
    words[at + stride] = I64(time)
    words[at + 2 * stride] = I64(operation)
    words[at + 3 * stride] = I64(comm)
    words[at + 4 * stride] = I64(root)
    words[at + 5 * stride] = I64(sent)
    words[at + 6 * stride] = I64(received)
    words[BEGIN] = -1
    return GO_ON


def metric(location, time, position, data, attributes, metric, number, kinds, values):
    words = buffer(data)
    if not arrive(words, time):
        return STOP
    kind = carray(kinds, (number,), np.uint8)
    unsigned = carray(values, (number,), np.uint64)
    signed = carray(values, (number,), np.int64)
    real = carray(values, (number,), np.float64)
    reals = carray(data, (words[SIZE],), np.float64)
    for i in range(number):
        at, stride = new_row(words, METRICS)
        words[at] = I64(time)
        words[at + stride] = (I64(metric) << 8) | I64(i)
        if kind[i] == 10:  # OTF2_TYPE_DOUBLE, _INT64; the only other kind is _UINT64
            reals[at + 2 * stride] = real[i]
        elif kind[i] == 8:
            reals[at + 2 * stride] = np.float64(signed[i])
        else:
            reals[at + 2 * stride] = np.float64(unsigned[i])
    return STOP if words[COUNT + METRICS] > FACTOR[METRICS] * words[CAPACITY] else GO_ON


def passing(location, time, position, data, attributes):
    return GO_ON if arrive(buffer(data), time) else STOP


def unstored(location, time, position, data, attributes):
    words = buffer(data)
    words[UNSTORED] += 1
    return GO_ON if arrive(words, time) else STOP


CALLBACKS: dict[str, tuple[Make, tuple[Any, ...]]] = {
    "Enter": (region_callback(0, 0), (U32,)),
    "Leave": (region_callback(1, 0), (U32,)),
    "CallingContextEnter": (context_enter, (U32, U32)),
    "CallingContextLeave": (region_callback(1, CONTEXTS), (U32,)),
    "MeasurementOnOff": (measurement_on_off, (U8,)),
    "BufferFlush": (buffer_flush, (U64,)),
    "MpiSend": (message_callback(int(MessageKind.SEND)), (U32, U32, U32, U64)),
    "MpiRecv": (message_callback(int(MessageKind.RECV)), (U32, U32, U32, U64)),
    "MpiIsend": (posted_callback(int(MessageKind.ISEND)), (U32, U32, U32, U64, U64)),
    "MpiIrecv": (posted_callback(int(MessageKind.IRECV)), (U32, U32, U32, U64, U64)),
    "MpiIsendComplete": (request_callback(int(MessageKind.ISEND_COMPLETE)), (U64,)),
    "MpiIrecvRequest": (request_callback(int(MessageKind.IRECV_POST)), (U64,)),
    "MpiRequestCancelled": (request_callback(int(MessageKind.CANCELLED)), (U64,)),
    "MpiCollectiveBegin": (collective_begin, ()),
    "MpiCollectiveEnd": (collective_end, (U8, U32, U32, U64, U64)),
    "Metric": (metric, (U32, U8, POINTER, POINTER)),
}


@cache
def compiled() -> dict[str, Any]:
    """Record name -> native callback. Kept for ever, since the library keeps their addresses."""
    common = (U64, U64, U64, POINTER, POINTER)
    native = {
        name: callback(types.int32(*common, *arguments))(function)
        for name, (function, arguments) in CALLBACKS.items()
    }
    native |= dict.fromkeys(PASSING, callback(types.int32(*common))(passing))
    native |= dict.fromkeys(UNSTORED_RECORDS, callback(types.int32(*common))(unstored))
    return native


class Buffer:
    """The words that the callbacks fill, for reading `records` records at a time."""

    def __init__(self, records: int) -> None:
        rows = [FACTOR[t] * records + SPARE[t] for t in range(4)]
        size = HEADER + sum(width * n for width, n in zip(WIDTH, rows, strict=True))
        self.words = np.zeros(size, np.int64)
        self.words[[SIZE, CAPACITY]] = size, records
        self.columns = []
        at = HEADER
        for width, n in zip(WIDTH, rows, strict=True):
            self.columns.append(self.words[at : at + width * n].reshape(width, n))
            at += width * n

    def start(self, span: int) -> None:
        """Forget everything: another location begins, whose times reach over at most `span` ticks."""
        self.words[:SIZE] = 0
        self.words[FIRST:HEADER] = 0
        self.words[[FIRST, LAST, BEGIN, FLUSHED]] = -1
        self.words[SPAN] = span

    def take(self) -> list[NDArray[np.int64]]:
        """The rows of each table, (width, n), since the last call."""
        taken = [table[:, : self.words[t]].copy() for t, table in enumerate(self.columns)]
        self.words[:SIZE] = 0
        return taken

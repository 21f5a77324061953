"""From records to rows: one buffer of plain columns, and the kernels that fill it.

Each record of any engine ends in one of the functions here; Python empties the buffer every so many records.
A record is *settled* once a later time follows: a damaged time that is too late only shows when the next one
is earlier, and then its records are discarded with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from desktop.core.arrays import Floats, Ints
from desktop.core.jit import inlined
from desktop.data.events import MessageKind

# The buffer is one int64 array: HEADER words, then the columns of each table, one after the other.

EVENTS, MESSAGES, COLLECTIVES, METRICS = range(4)
TABLE_NAMES = ("events", "messages", "collectives", "metrics")
WIDTH = (2, 6, 7, 3)  # words of a row; the first one is its time
#: Space for rows: FACTOR * records + SPARE. A buffer flush gives two rows of events; a metric record has up
#: to 255 values, so reading pauses before the table is full.
FACTOR = (2, 1, 1, 4)
SPARE = (3, 0, 0, 255)

HEADER = 64
# State that grows with each record, followed by a copy as of the latest change of time.
COUNT = 0  # + table: rows filled
RECORDS = 4
FIRST, LAST = 5, 6  # times of the first and of the latest record; -1: none
BEGIN, FLUSHED = 7, 8  # begin of the open collective; end of a buffer flush not yet written; -1: none
ORPHANS, SKIPPED, UNSTORED = 9, 10, 11  # orphaned collective ends, messages to MPI_PROC_NULL, others
STATE = 12
SETTLED = 16
# Description of the buffer and the reading.
SIZE, CAPACITY = 32, 33  # of the whole buffer in words; records read at a time
SPAN = 34  # no time may be later than FIRST by more
FAULT = 35
OWN = 40  # words from here on belong to the engine

#: Faults of an event file.
INTACT, BACKWARDS, OUT_OF_RANGE, CUT, UNKNOWN, MALFORMED, HEADLESS = range(7)
FAULTS = (
    "",
    "a time is earlier than the one before it",
    "a time is far outside of the run",
    "the file is cut",
    "a record is of unknown type",
    "a number or record has an impossible length",
    "a chunk has no header",
)

#: No clock has counted this far: a later time is damage.
TIME_LIMIT = 1 << 61

# Region numbers beyond 32 bits are not of the trace; calling contexts (sampling) start at CONTEXTS.
NOT_MEASURED, FLUSHING, CONTEXTS = 1 << 32, (1 << 32) + 1, 1 << 33
UNDEFINED = 0xFFFFFFFF
# EZTrace keeps messages to MPI_PROC_NULL unchanged: -2 for Open MPI, -1 for MPICH, which is UNDEFINED.
PROC_NULL = 0xFFFFFFFE
NO_TAG = 0xFFFFFFFF  # of a receive from MPI_PROC_NULL: MPI_ANY_TAG, without bytes
TYPE_INT64, TYPE_DOUBLE = 8, 10  # OTF2_Type of a metric's value; the only other one is unsigned


@inlined
def arrive(words: Ints, time: int) -> bool:
    """Count a record and store its time; False, with FAULT set, if no intact file can have it here."""
    now = np.int64(time)
    last = words[LAST]
    if now != last or now < 0:
        if not 0 <= now < TIME_LIMIT or (words[FIRST] >= 0 and now - words[FIRST] > words[SPAN]):
            words[FAULT] = OUT_OF_RANGE
            return False
        if now < last:
            words[FAULT] = BACKWARDS
            if now >= words[SETTLED + LAST]:  # the time before was the one that is too late
                for i in range(STATE):
                    words[i] = words[SETTLED + i]
            return False
        for i in range(STATE):
            words[SETTLED + i] = words[i]
        words[LAST] = now
        if words[FIRST] < 0:
            words[FIRST] = now
    words[RECORDS] += 1
    return True


@inlined
def new_row(words: Ints, table: int) -> tuple[int, int]:
    """Take the next row: the position of its first word and the distance to the next column."""
    at = HEADER
    for t in range(table):
        at += WIDTH[t] * (FACTOR[t] * words[CAPACITY] + SPARE[t])
    at += words[COUNT + table]
    words[COUNT + table] += 1
    return at, FACTOR[table] * words[CAPACITY] + SPARE[table]


@inlined
def end_flush(words: Ints, time: int) -> None:
    """Write the end of an open buffer flush, at `time` at the latest."""
    at, stride = new_row(words, EVENTS)
    words[at] = min(words[FLUSHED], time)
    words[at + stride] = (1 << 56) | FLUSHING
    words[FLUSHED] = -1


@inlined
def put_event(words: Ints, time: int, kind: int, region: int) -> None:
    if words[FLUSHED] >= 0:  # a flush ends at the latest where the next region changes
        end_flush(words, time)
    at, stride = new_row(words, EVENTS)
    words[at] = time
    words[at + stride] = (kind << 56) | region


@inlined
def put_flush(words: Ints, time: int, stop: int) -> None:
    put_event(words, time, 0, FLUSHING)
    words[FLUSHED] = max(stop, time)


@inlined
def put_message(
    words: Ints, time: int, kind: int, peer: int, comm: int, tag: int, size: int, request: int
) -> None:
    # The sender knows the receiver, unless it is MPI_PROC_NULL.
    sends = kind == MessageKind.SEND or kind == MessageKind.ISEND
    if peer == PROC_NULL or (
        peer == UNDEFINED and comm != UNDEFINED and (sends or (tag == NO_TAG and size == 0))
    ):
        words[SKIPPED] += 1
        return
    at, stride = new_row(words, MESSAGES)
    words[at] = time
    words[at + stride] = (kind << 56) | peer
    words[at + 2 * stride] = comm
    words[at + 3 * stride] = tag
    words[at + 4 * stride] = size
    words[at + 5 * stride] = request


@inlined
def put_collective(
    words: Ints, time: int, operation: int, comm: int, root: int, sent: int, received: int
) -> None:
    if words[BEGIN] < 0:
        words[ORPHANS] += 1
        return
    at, stride = new_row(words, COLLECTIVES)
    words[at] = words[BEGIN]
    words[at + stride] = time
    words[at + 2 * stride] = operation
    words[at + 3 * stride] = comm
    words[at + 4 * stride] = root
    words[at + 5 * stride] = sent
    words[at + 6 * stride] = received
    words[BEGIN] = -1


@inlined
def put_metric(words: Ints, reals: Floats, time: int, metric: int, i: int, kind: int, value: int) -> None:
    """The i-th value of a metric record; `value`: its 64 bits, of any type. `reals`: `words` as floats."""
    at, stride = new_row(words, METRICS)
    words[at] = time
    words[at + stride] = (metric << 8) | i
    if kind == TYPE_DOUBLE:
        words[at + 2 * stride] = value
    elif kind == TYPE_INT64:
        reals[at + 2 * stride] = np.float64(value)
    else:
        reals[at + 2 * stride] = np.float64(np.uint64(value))


@inlined
def crowded(words: Ints) -> bool:
    """Whether the next metric record may not fit."""
    return bool(words[COUNT + METRICS] > FACTOR[METRICS] * words[CAPACITY])


@dataclass
class Block:
    """What was read of a location at a time.

    `rows`: columns of each table, (width, n), valid until the next block is requested. `state`: the words of
    the buffer up to STATE, for the whole location so far. `at`: bytes of its file so far, or of its `fault`
    (else empty). `miscounted`: where chunks begin that announce another number of records than they have.
    """

    rows: list[Ints]
    state: Ints
    at: int = 0
    fault: str = ""
    miscounted: tuple[int, ...] = ()


class Buffer:
    """The words that the kernels fill, `records` at a time, for a location of at most `span` ticks."""

    def __init__(self, records: int, span: int) -> None:
        rows = [FACTOR[t] * records + SPARE[t] for t in range(4)]
        size = HEADER + sum(width * n for width, n in zip(WIDTH, rows, strict=True))
        self.words = np.zeros(size, np.int64)
        self.reals = self.words.view(np.float64)
        self.words[[SIZE, CAPACITY, SPAN]] = size, records, span
        self.columns = []
        at = HEADER
        for width, n in zip(WIDTH, rows, strict=True):
            self.columns.append(self.words[at : at + width * n].reshape(width, n))
            at += width * n
        self.start()

    def start(self) -> None:
        """Clear everything for another location."""
        self.words[:SIZE] = 0
        self.words[FAULT:HEADER] = 0
        self.words[[FIRST, LAST, BEGIN, FLUSHED]] = -1
        self.words[SETTLED : SETTLED + STATE] = self.words[:STATE]

    @property
    def room(self) -> int:
        """Number of records that certainly fit; 0 when the rows should be taken."""
        filled, capacity = self.words[:4].tolist(), int(self.words[CAPACITY])
        left = min(capacity - -(-n // factor) for n, factor in zip(filled, FACTOR, strict=True))
        return left if left >= max(capacity // 2, 1) else 0

    def take(self, *, ended: bool = False) -> Block:
        """The settled rows (all of them at the end). They are views: `drop` them before the next record."""
        state, settled = self.words[:STATE], self.words[SETTLED : SETTLED + STATE]
        if ended and state[FLUSHED] >= 0:
            if state[FLUSHED] - state[FIRST] <= self.words[SPAN]:
                state[LAST] = max(state[LAST], state[FLUSHED])
            end_flush(self.words, state[LAST])
        waiting = (state - settled)[: len(TABLE_NAMES)]
        # Half a buffer of records at one time is a clock that stands still, not a damaged time.
        if ended or (waiting > np.array(FACTOR) * (self.words[CAPACITY] // 2)).any():
            settled[:] = state
        return Block([table[:, : settled[t]] for t, table in enumerate(self.columns)], state.copy())

    def drop(self) -> None:
        """Free the space of the rows that were taken; the others move up."""
        state, settled = self.words[:STATE], self.words[SETTLED : SETTLED + STATE]
        for t, table in enumerate(self.columns):
            used, filled = int(settled[t]), int(state[t])
            table[:, : filled - used] = table[:, used:filled].copy()
            state[t], settled[t] = filled - used, 0

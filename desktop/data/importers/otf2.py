"""OTF2 archives, read through the C library that the ``otf2`` wheel ships.

The library calls natively compiled functions for every record; they write plain columns into one buffer,
which Python empties every `RECORDS` records. Locations are read one after the other, so memory stays at
one buffer and one event chunk of the library, however long the trace is.

Layout and meaning of the records: OTF2 3.2 reference (score-p.org). Tools that write archives (Score-P,
EZTrace, APEX) differ in what they leave out and in what they get wrong; comments name them where it shows.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numba import carray, types
from numpy.typing import NDArray

from desktop.core.jit import callback, kernel
from desktop.data.events import Activity, Importer, Location, LocationKind, MessageKind, Region, Sink
from desktop.errors import TraceFormatError
from desktop.progress import Progress


def listed(names: str) -> tuple[str, ...]:
    return tuple(names.split())


RECORDS = 1 << 16  # records read at a time: the step of progress and cancel

# ------------------------------------------------------------------ the buffer that the callbacks fill
# One int64 array: HEADER words, then the columns of each table, one after the other.

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

#: What is wrong with an event file, FAULT and `walk`.
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

# Numbers of regions beyond 32 bits are ours; calling contexts (sampling) follow from CONTEXTS on.
NOT_MEASURED, FLUSHING, CONTEXTS = 1 << 32, (1 << 32) + 1, 1 << 33
UNDEFINED = 0xFFFFFFFF
PROC_NULL = 0xFFFFFFFE  # EZTrace writes messages to MPI_PROC_NULL as they are
ROOT_SELF = 0xFFFFFFFE
GO_ON, STOP = 0, 1
INTERRUPTED = 92  # the error code when a callback has answered STOP


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
def put_message(
    words: NDArray[np.int64], time: int, kind: int, peer: int, comm: int, tag: int, size: int, request: int
) -> None:
    at, stride = new_row(words, MESSAGES)
    words[at] = time
    words[at + stride] = (kind << 56) | peer
    words[at + 2 * stride] = comm
    words[at + 3 * stride] = tag
    words[at + 4 * stride] = size
    words[at + 5 * stride] = request


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


def message_callback(kind: int) -> Make:
    def blocking(location, time, position, data, attributes, peer, comm, tag, size):
        words = buffer(data)
        if not arrive(words, time):
            return STOP
        if peer == PROC_NULL:
            words[SKIPPED] += 1
        else:
            put_message(words, I64(time), kind, I64(peer), I64(comm), I64(tag), I64(size), 0)
        return GO_ON

    return blocking


def posted_callback(kind: int) -> Make:
    def posted(location, time, position, data, attributes, peer, comm, tag, size, request):
        words = buffer(data)
        if not arrive(words, time):
            return STOP
        if peer == PROC_NULL:
            words[SKIPPED] += 1
        else:
            put_message(words, I64(time), kind, I64(peer), I64(comm), I64(tag), I64(size), I64(request))
        return GO_ON

    return posted


def request_callback(kind: int) -> Make:
    def request(location, time, position, data, attributes, request):
        words = buffer(data)
        if not arrive(words, time):
            return STOP
        put_message(words, I64(time), kind, UNDEFINED, UNDEFINED, -1, 0, I64(request))
        return GO_ON

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
#: Records of which only the time counts: the first and the last of a location say when it is there. Their
#: further arguments differ, but the caller clears them away (System V calling convention, the only one the
#: wheel is built for), so that one function of the common five serves them all.
PASSING = listed(
    """Unknown MpiRequestTest ThreadFork ThreadJoin ThreadTeamBegin ThreadTeamEnd ThreadAcquireLock
ThreadReleaseLock ThreadTaskCreate ThreadTaskSwitch ThreadTaskComplete ThreadCreate ThreadBegin ThreadWait
ThreadEnd OmpFork OmpJoin OmpAcquireLock OmpReleaseLock OmpTaskCreate OmpTaskSwitch OmpTaskComplete
ParameterString ParameterInt ParameterUnsignedInt CallingContextSample RmaWinCreate RmaWinDestroy
RmaCollectiveBegin RmaCollectiveEnd RmaGroupSync RmaRequestLock RmaAcquireLock RmaTryLock RmaReleaseLock
RmaSync RmaWaitChange RmaPut RmaGet RmaAtomic RmaOpCompleteBlocking RmaOpCompleteNonBlocking RmaOpTest
RmaOpCompleteRemote IoCreateHandle IoDestroyHandle IoDuplicateHandle IoSeek IoChangeStatusFlags IoDeleteFile
IoOperationBegin IoOperationTest IoOperationIssued IoOperationComplete IoOperationCancelled IoAcquireLock
IoReleaseLock IoTryLock ProgramBegin ProgramEnd CommCreate CommDestroy"""
)
#: Messages and collectives that the tables cannot hold as they are: counted and said.
UNSTORED_RECORDS = listed(
    """NonBlockingCollectiveRequest NonBlockingCollectiveComplete MpiProbe MpiMrecv
MpiImrecvRequest MpiImrecv"""
)


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


@kernel
def look_up(keys: NDArray[np.int64], sorted_keys: NDArray[np.int64], values: NDArray[np.int64]) -> Any:
    """values[i] where sorted_keys[i] == key, -1 where there is none. Runs of equal keys cost one search."""
    found = np.empty(keys.size, np.int64)
    known, value = -1, -1
    for k in range(keys.size):
        key = keys[k]
        if key != known:
            low, high = 0, sorted_keys.size
            while low < high:
                middle = (low + high) >> 1
                if sorted_keys[middle] < key:
                    low = middle + 1
                else:
                    high = middle
            known = key
            value = values[low] if low < sorted_keys.size and sorted_keys[low] == key else -1
        found[k] = value
    return found


# ------------------------------------------------------------------ where an event file stops being sound
# Behind the end of a cut file the library goes on in memory that holds another location's records, and it
# skips what it does not know. Therefore the framing is followed here first, and no more is read than that.

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


# ------------------------------------------------------------------ the C library

Handle = ctypes.c_void_p
u8, u32, u64, i64, text = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64, ctypes.c_char_p
number = ctypes.POINTER(u64)

#: name (without OTF2_) -> result, arguments. A result of None: an error code, 0 is success.
PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "Error_RegisterCallback": (Handle, (Handle, Handle)),
    "Error_GetDescription": (text, (ctypes.c_int,)),
    "Reader_Open": (Handle, (text,)),
    "Reader_Close": (None, (Handle,)),
    "Reader_SetSerialCollectiveCallbacks": (None, (Handle,)),
    "Reader_GetGlobalDefReader": (Handle, (Handle,)),
    "Reader_RegisterGlobalDefCallbacks": (None, (Handle, Handle, Handle, Handle)),
    "Reader_ReadAllGlobalDefinitions": (None, (Handle, Handle, number)),
    "GlobalDefReaderCallbacks_New": (Handle, ()),
    "GlobalDefReaderCallbacks_Delete": (None, (Handle,)),
    "Reader_GetCreator": (None, (Handle, ctypes.POINTER(Handle))),
    "Reader_GetMachineName": (None, (Handle, ctypes.POINTER(Handle))),
    "Reader_SelectLocation": (None, (Handle, u64)),
    "Reader_OpenDefFiles": (None, (Handle,)),
    "Reader_CloseDefFiles": (None, (Handle,)),
    "Reader_OpenEvtFiles": (None, (Handle,)),
    "Reader_CloseEvtFiles": (None, (Handle,)),
    "Reader_GetDefReader": (Handle, (Handle, u64)),
    "Reader_RegisterDefCallbacks": (None, (Handle, Handle, Handle, Handle)),
    "Reader_ReadAllLocalDefinitions": (None, (Handle, Handle, number)),
    "Reader_CloseDefReader": (None, (Handle, Handle)),
    "DefReaderCallbacks_New": (Handle, ()),
    "DefReaderCallbacks_Delete": (None, (Handle,)),
    "Reader_GetEvtReader": (Handle, (Handle, u64)),
    "Reader_RegisterEvtCallbacks": (None, (Handle, Handle, Handle, Handle)),
    "Reader_ReadLocalEvents": (None, (Handle, Handle, u64, number)),
    "Reader_CloseEvtReader": (None, (Handle, Handle)),
    "EvtReaderCallbacks_New": (Handle, ()),
    "EvtReaderCallbacks_Delete": (None, (Handle,)),
    "Reader_GetMarkerReader": (Handle, (Handle,)),
    "Reader_RegisterMarkerCallbacks": (None, (Handle, Handle, Handle, Handle)),
    "Reader_ReadAllMarkers": (None, (Handle, Handle, number)),
    "Reader_CloseMarkerReader": (None, (Handle, Handle)),
    "MarkerReaderCallbacks_New": (Handle, ()),
    "MarkerReaderCallbacks_Delete": (None, (Handle,)),
}
MISSING = TraceFormatError(
    "is an OTF2 archive, which cannot be read here",
    hint="install the Python package otf2, which exists for Linux on x86-64 with Python 3.11",
)


class Library:
    """The functions of libotf2, with errors collected instead of printed."""

    def __init__(self, file: Path) -> None:
        # A handle of our own: the wheel's Python modules set other argument types on theirs.
        self.file = str(file)
        self._library = ctypes.CDLL(self.file)
        self._said = threading.local()
        self._keep = ctypes.CFUNCTYPE(ctypes.c_int, Handle, text, u64, text, ctypes.c_int, text, Handle)(
            self._note
        )
        for name, (result, arguments) in PROTOTYPES.items():
            function = self._library[f"OTF2_{name}"]
            function.restype, function.argtypes = result or ctypes.c_int, arguments
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"libotf2 has no function {name}")

    def _note(self, _data: Any, _file: Any, _line: Any, _function: Any, code: int, *_format: Any) -> int:
        self._said.code = code
        return code

    def silence(self) -> None:
        """Errors are noted; whoever used the library before may have set a reporter of his own."""
        self._said.code = 0
        self.Error_RegisterCallback(self._keep, None)

    def why(self, code: int = 0) -> str:
        """The description of an error code, or of the latest error of this thread."""
        said = self.Error_GetDescription(code or getattr(self._said, "code", 0))
        return said.decode("utf-8", "replace").strip().rstrip(".").lower() if said else "unknown error"

    def set_callback(self, kind: str, record: str, callbacks: int, address: Any) -> None:
        """Register a callback; records that this version of the library does not know are left out."""
        try:
            function = self._library[f"OTF2_{kind}Callbacks_Set{record}Callback"]
        except AttributeError:
            return
        function.restype, function.argtypes = ctypes.c_int, (Handle, Handle)
        function(callbacks, address)


@cache
def library() -> Library:
    """The library of the installed wheel; TraceFormatError if there is none for this system."""
    found = find_spec("_otf2")
    for folder in found.submodule_search_locations or [] if found else []:
        for file in sorted(Path(folder).glob("_otf2.*.so")):
            try:
                return Library(file)
            except (OSError, AttributeError):
                continue  # built for another system, or not the library
    raise MISSING


# ------------------------------------------------------------------ definitions

ROLES = listed(
    """unknown function wrapper loop code parallel sections section workshare single single_sblock master
critical critical_sblock atomic barrier implicit_barrier flush ordered ordered_sblock task task_create
task_wait coll_one2all coll_all2one coll_all2all coll_other file_io point2point rma data_transfer artificial
thread_create thread_wait task_untied allocate deallocate reallocate file_io_metadata cancel kernel"""
)
PARADIGMS = listed(
    """unknown user compiler openmp mpi cuda measurement_system pthread hmpp ompss hardware gaspi upc
shmem winthread qtthread acethread tbbthread openacc opencl mtapi sampling none hip kokkos
openmp_target"""
)
OPERATIONS = listed(
    """Barrier Bcast Gather Gatherv Scatter Scatterv Allgather Allgatherv Alltoall Alltoallv
Alltoallw Allreduce Reduce Reduce_scatter Scan Exscan Reduce_scatter_block Create_handle Destroy_handle
Allocate Deallocate Create_handle_and_allocate Destroy_handle_and_deallocate"""
)
KINDS: dict[int, LocationKind] = {2: "accelerator", 3: "metric"}
COMM_LOCATIONS, COMM_GROUP, COMM_SELF = 4, 5, 6
GLOBAL_MEMBERS = 1  # flag of a group: ranks in records count in the COMM_LOCATIONS group itself
MPI = 4

#: Definition records that are kept, and the C types of their fields.
DEFINITIONS: dict[str, tuple[Any, ...]] = {
    "ClockProperties": (u64, u64, u64, u64),
    "String": (u32, text),
    "LocationGroup": (u32, u32, u8, u32, u32),
    "Location": (u64, u32, u8, u64, u32),
    "Region": (u32, u32, u32, u32, u8, u8, u32, u32, u32, u32),
    "Group": (u32, u32, u8, u8, u32, u32, number),
    "Comm": (u32, u32, u32, u32, u32),
    "MetricMember": (u32, u32, u32, u8, u8, u8, u8, i64, u32),
    "MetricClass": (u32, u8, ctypes.POINTER(u32), u8, u8),
    "MetricInstance": (u32, u32, u64, u8, u64),
    "CallingContext": (u32, u32, u32, u32),
}


class Definitions:
    """The global definitions by record and number; of several with one number the last one counts."""

    def __init__(self) -> None:
        self.by: dict[str, dict[Any, tuple[Any, ...]]] = {record: {} for record in DEFINITIONS}
        self.repeated = 0

    def handler(self, record: str) -> Callable[..., int]:
        table = self.by[record]

        def define(_data: Any, *fields: Any) -> int:
            key = fields[0]
            if record == "Group":  # EZTrace gives two groups of different type one number
                key = (fields[0], fields[2])
                fields = (*fields[:6], np.array(fields[6][: fields[5]], np.uint64))
            elif record == "MetricClass":
                fields = (*fields[:2], tuple(fields[2][: fields[1]]))
            elif record == "ClockProperties":
                key = 0
            self.repeated += key in table
            table[key] = fields
            return GO_ON

        return define

    def name(self, string: int, otherwise: str) -> str:
        """A string by its number; `otherwise` if it is not defined or empty."""
        found = self.by["String"].get(string)
        return (found[1].decode("utf-8", "replace") if found and found[1] else "") or otherwise

    def comm_locations(self, paradigm: int) -> NDArray[np.uint64]:
        """Location numbers by world rank of a paradigm."""
        for (_, kind), group in self.by["Group"].items():
            if kind == COMM_LOCATIONS and group[3] == paradigm:
                members: NDArray[np.uint64] = group[6]
                return members
        return np.empty(0, np.uint64)

    def members(self, comm: int) -> NDArray[np.uint64] | None:
        """Location numbers by rank within a communicator; None: every caller's own, empty: unknown."""
        group_number = self.by["Comm"][comm][2]
        for kind in (COMM_GROUP, COMM_SELF, COMM_LOCATIONS):
            group = self.by["Group"].get((group_number, kind))
            if group is None:
                continue
            if kind == COMM_SELF:
                return None
            world = self.comm_locations(group[3])
            if kind == COMM_LOCATIONS or group[4] & GLOBAL_MEMBERS:
                return world
            ranks: NDArray[np.uint64] = group[6]
            return world[ranks.astype(np.int64)] if (ranks < world.size).all() else world[:0]
        return np.empty(0, np.uint64)


@dataclass
class Space:
    """Sparse numbers of the trace -> dense indices, for `look_up`."""

    keys: NDArray[np.int64]
    values: NDArray[np.int64]

    @staticmethod
    def of(pairs: dict[int, int]) -> Space:
        keys = np.array(sorted(pairs), np.int64)
        return Space(keys, np.array([pairs[key] for key in keys.tolist()], np.int64))

    def __call__(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        found: NDArray[np.int64] = look_up(np.ascontiguousarray(numbers), self.keys, self.values)
        return found

    def add(self, pairs: dict[int, int]) -> None:
        both = Space.of(dict(zip(self.keys.tolist(), self.values.tolist(), strict=True)) | pairs)
        self.keys, self.values = both.keys, both.values


@dataclass
class Place:
    """A location, and what reading it needs."""

    location: Location
    group: int
    declared: int
    index: int = -1


class Archive:
    """One archive on its way into a sink."""

    def __init__(self, anchor: Path, sink: Sink, progress: Progress) -> None:
        self.anchor, self.sink, self.progress = anchor, sink, progress
        self.folder = anchor.with_suffix("")
        self.library = library()
        self.library.silence()
        self.definitions = Definitions()
        self.places: list[Place] = []

    # ---- opening

    def refuse(self, what: str, where: str = "", hint: str = "") -> TraceFormatError:
        return TraceFormatError(what, file=self.anchor, where=where, hint=hint)

    def check_anchor(self) -> dict[str, Any]:
        """What the anchor file says of the whole archive."""
        head = self.anchor.read_bytes()[:64]
        try:
            order = "<" if head[1] == 0x42 else ">"
            _, _, *version, chunk, definition_chunk, substrate, compression, self.declared_locations, _ = (
                struct.unpack_from(f"{order}BB3BQQBBQQ", head, 7)
            )
        except (IndexError, struct.error):
            raise self.refuse(
                "the anchor file of the OTF2 archive is cut", f"at byte {len(head)}", "copy it again"
            ) from None
        if substrate != 1 or compression != 1:
            raise self.refuse(
                "is an OTF2 archive in a SION container or compressed, which is not supported",
                "in the anchor file",
                "write it with the POSIX substrate and without compression",
            )
        if not 1 << 8 <= min(chunk, definition_chunk) <= max(chunk, definition_chunk) <= 1 << 24:
            raise self.refuse(
                "the anchor file of the OTF2 archive is damaged",
                f"its chunks have {chunk} and {definition_chunk} bytes",
                "copy it again",
            )
        self.chunk, self.big_endian = chunk, order == ">"
        return {"otf2_version": ".".join(map(str, version))}

    def open(self, stack: ExitStack) -> int:
        lib = self.library
        reader = lib.Reader_Open(bytes(self.anchor))
        if not reader:
            raise self.refuse(
                "the anchor file of the OTF2 archive cannot be read",
                lib.why(),
                "copy it again",
            )
        stack.callback(lib.Reader_Close, reader)
        lib.Reader_SetSerialCollectiveCallbacks(reader)
        return int(reader)

    def read_definitions(self, reader: int, stack: ExitStack) -> None:
        lib, read = self.library, u64()
        callbacks = lib.GlobalDefReaderCallbacks_New()
        stack.callback(lib.GlobalDefReaderCallbacks_Delete, callbacks)
        keep = []
        for record, fields in DEFINITIONS.items():
            function = ctypes.CFUNCTYPE(ctypes.c_int, Handle, *fields)(self.definitions.handler(record))
            keep.append(function)
            lib.set_callback("GlobalDefReader", record, callbacks, ctypes.cast(function, Handle))
        definitions = lib.Reader_GetGlobalDefReader(reader)
        code = 0
        if definitions:
            lib.Reader_RegisterGlobalDefCallbacks(reader, definitions, callbacks, None)
            code = lib.Reader_ReadAllGlobalDefinitions(reader, definitions, ctypes.byref(read))
        keep.clear()
        if not definitions or code or not self.definitions.by["Location"]:
            file = self.folder.with_suffix(".def").name
            raise self.refuse(
                f"the global definitions ({file}) are missing or damaged, so the locations are unknown",
                f"after {read.value} definitions: {lib.why(code)}",
                "copy the archive again",
            )

    def note(self, function: Callable[..., int], reader: int) -> str:
        value = Handle()
        if function(reader, ctypes.byref(value)) or not value.value:
            return ""
        return (ctypes.string_at(value.value) or b"").decode("utf-8", "replace")

    # ---- what the definitions mean

    def define(self) -> None:
        self.define_locations()
        self.define_regions()
        self.define_communicators()
        report, defined = self.sink.report, self.definitions
        if defined.repeated:
            report.add(
                "repeated definitions",
                "notice",
                "definitions have the number of an earlier one; the last one was taken",
                count=defined.repeated,
            )
        if self.declared_locations != len(self.places):
            report.add(
                "locations",
                "notice",
                f"the anchor file announces {self.declared_locations} locations, "
                f"{len(self.places)} are defined",
            )

    def define_locations(self) -> None:
        groups, named = self.definitions.by["LocationGroup"], self.definitions.name
        world = self.definitions.comm_locations(MPI).tolist()
        order = {number: rank for rank, number in enumerate(world)}
        locations = self.definitions.by["Location"]
        ranks = {locations[number][4]: rank for number, rank in order.items() if number in locations}
        for group in sorted({fields[4] for fields in locations.values() if fields[2] not in KINDS}):
            ranks.setdefault(group, max(ranks.values(), default=-1) + 1)
        for identity, (_, string, kind, declared, group) in locations.items():
            fields = groups.get(group)
            of_device = fields is not None and fields[2] == 2
            location = Location(
                id=identity,
                name=named(string, f"location {identity}"),
                rank=ranks.get(group, -1),
                kind="accelerator" if of_device and kind != 3 else KINDS.get(kind, "cpu"),
                process=named(fields[1], "") if fields else "",
            )
            self.places.append(Place(location, group, declared))
        # Ranks in order, within a rank its processors first, the one that speaks MPI before its threads.
        self.places.sort(
            key=lambda p: (
                p.location.rank if p.location.rank >= 0 else len(self.places),
                p.location.kind != "cpu",
                order.get(p.location.id, len(order)),
                p.location.id,
            )
        )
        threads: dict[tuple[int, str], int] = {}
        for place in self.places:
            key = (place.group, place.location.kind)
            place.location.thread = threads.get(key, 0)
            threads[key] = place.location.thread + 1
        for place in self.places:
            place.index = self.sink.location(place.location)
        self.dense = {place.location.id: place.index for place in self.places}

    def define_regions(self) -> None:
        sink, named = self.sink, self.definitions.name
        region: dict[int, int] = {}
        for identity, (_, string, _, _, role, paradigm, *_) in self.definitions.by["Region"].items():
            name = named(string, f"region {identity}")
            region[identity] = sink.region(
                Region(
                    name,
                    ROLES[role] if role < len(ROLES) else "unknown",
                    PARADIGMS[paradigm] if paradigm < len(PARADIGMS) else "unknown",
                )
            )
        for context, (_, identity, *_) in self.definitions.by["CallingContext"].items():
            if identity in region:
                region[CONTEXTS + context] = region[identity]
        for key, name in ((NOT_MEASURED, "MEASUREMENT OFF"), (FLUSHING, "TRACE BUFFER FLUSH")):
            region[key] = sink.region(
                Region(name, "artificial", "measurement_system", Activity.UNMEASURED, synthetic=True)
            )
        self.regions = Space.of(region)
        self.operations: dict[int, int] = {}
        self.metric_names: dict[int, int] = {}

    def define_communicators(self) -> None:
        """Members of all communicators in one array: rank r of the i-th is `members[start[i] + r]`."""
        members: list[NDArray[np.int64]] = []
        start, own, found = [0], [], {}
        locations = Space.of(self.dense)
        for i, comm in enumerate(self.definitions.by["Comm"]):
            numbers = self.definitions.members(comm)
            found[comm] = i
            own.append(numbers is None)
            members.append(locations((np.empty(0) if numbers is None else numbers).astype(np.int64)))
            start.append(start[-1] + members[-1].size)
        self.communicators = Space.of(found)
        self.members = np.concatenate([*members, np.empty(0, np.int64)])
        self.start, self.own = np.array(start, np.int64), np.array(own, bool)

    def peers(
        self, comm: NDArray[np.int64], rank: NDArray[np.int64], here: int
    ) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Location index of each rank within its communicator (-1 unknown); where that is MPI_COMM_SELF."""
        i = self.communicators(comm)
        known = i >= 0
        i = np.where(known, i, 0)
        if not self.own.size:
            return np.full(rank.size, -1, np.int32), known
        own = known & self.own[i]
        inside = known & (rank < self.start[i + 1] - self.start[i])
        index = np.full(rank.size, -1, np.int32)
        index[inside] = self.members[(self.start[i] + rank)[inside]]
        index[own & (rank == 0)] = here
        return index, own

    # ---- local definitions

    def read_local_definitions(self, reader: int, stack: ExitStack) -> None:
        """Load number translations and clock offsets; `self.whole`: where that succeeded."""
        lib, read = self.library, u64()
        offsets: list[int] = []

        def clock_offset(_data: Any, time: int, _offset: int, _deviation: float) -> int:
            offsets.append(time)
            return GO_ON

        function = ctypes.CFUNCTYPE(ctypes.c_int, Handle, u64, i64, ctypes.c_double)(clock_offset)
        callbacks = lib.DefReaderCallbacks_New()
        stack.callback(lib.DefReaderCallbacks_Delete, callbacks)
        lib.set_callback("DefReader", "ClockOffset", callbacks, ctypes.cast(function, Handle))
        self.whole: set[int] = set()
        self.synchronised = False
        report = self.sink.report
        if lib.Reader_OpenDefFiles(reader):
            return
        for place in self.places:
            identity = place.location.id
            where = f"{self.folder.name}/{identity}.def"
            definitions = lib.Reader_GetDefReader(reader, identity)
            if not definitions:
                continue
            offsets.clear()
            lib.Reader_RegisterDefCallbacks(reader, definitions, callbacks, None)
            code = lib.Reader_ReadAllLocalDefinitions(reader, definitions, ctypes.byref(read))
            lib.Reader_CloseDefReader(reader, definitions)
            if not code:
                self.whole.add(identity)
            # One offset alone has no effect in the library.
            self.synchronised |= len(offsets) > 1
            if len(set(offsets)) < len(offsets):
                report.add(
                    "clock offsets",
                    "notice",
                    "several clock offsets hold for the same time; times around it may be wrong",
                    count=len(offsets) - len(set(offsets)),
                    where=where,
                )
        lib.Reader_CloseDefFiles(reader)

    # ---- events

    def read_events(self, reader: int, stack: ExitStack) -> None:
        lib = self.library
        callbacks = lib.EvtReaderCallbacks_New()
        stack.callback(lib.EvtReaderCallbacks_Delete, callbacks)
        for record, native in compiled().items():
            lib.set_callback("EvtReader", record, callbacks, native.address)
        if lib.Reader_OpenEvtFiles(reader):
            raise self.refuse(
                "the event files of the OTF2 archive cannot be opened",
                f"in folder {self.folder.name}",
                "copy the archive again, with its folder",
            )
        buffer = Buffer(RECORDS)
        sizes = [file_size(self.folder / f"{place.location.id}.evt") for place in self.places]
        total, done = sum(sizes), 0
        for place, size in zip(self.places, sizes, strict=True):
            location = place.location

            def step(at: int, before: int = done, name: str = location.name) -> None:
                self.progress.step(before + at, total, f"reading {name}")

            step(0)
            done += size
            if self.whole and location.id not in self.whole:
                location.damage = "no local definitions"
                self.sink.report.add(
                    "local definitions",
                    "loss",
                    "local definitions are missing or damaged, without which numbers and times of the events "
                    "mean something else; the location was left out",
                    where=f"{self.folder.name}/{location.id}.def",
                )
                continue
            events = lib.Reader_GetEvtReader(reader, location.id)
            if not events:
                location.damage = "no data"
                self.sink.report.add(
                    "event file",
                    "loss",
                    "an event file is missing, empty or has no valid header; its location has no data",
                    where=f"{self.folder.name}/{location.id}.evt: {lib.why()}",
                )
                continue
            try:
                lib.Reader_RegisterEvtCallbacks(reader, events, callbacks, buffer.words.ctypes.data)
                self.read_location(reader, events, place, buffer, step)
            finally:
                lib.Reader_CloseEvtReader(reader, events)
        lib.Reader_CloseEvtFiles(reader)

    def read_location(
        self, reader: int, events: int, place: Place, buffer: Buffer, step: Callable[[int], None]
    ) -> None:
        lib, location, words, read = self.library, place.location, buffer.words, u64()
        buffer.start(self.span)
        file = self.folder / f"{location.id}.evt"
        walker = Walker(file, self.chunk, self.big_endian, self.span)
        wrong, wanted = "", 0
        while not wrong:
            walker.advance(RECORDS)
            wanted = walker.sound - location.records
            while wanted and not wrong:
                code = lib.Reader_ReadLocalEvents(reader, events, min(wanted, RECORDS), ctypes.byref(read))
                location.records += read.value
                wanted -= read.value
                self.deliver(place, buffer.take())
                if words[FAULT]:
                    wrong = FAULTS[words[FAULT]]
                elif code not in (0, INTERRUPTED) or not read.value:
                    wrong = lib.why(code)
            step(walker.at)
            if walker.ended:
                break
        wrong = wrong or FAULTS[walker.fault]
        if words[FLUSHED] >= 0:
            stop = int(words[FLUSHED])
            if stop - words[FIRST] <= self.span:
                words[LAST] = max(words[LAST], stop)
            rows = np.array([[words[LAST]], [1 << 56 | FLUSHING]])
            self.sink.append("events", place.index, **self.event_rows(place, rows))
        if words[FIRST] >= 0:
            location.first, location.last = int(words[FIRST]), int(words[LAST])
        self.judge(place, words, f"byte {walker.at}: {wrong}" if wrong else "")

    def judge(self, place: Place, words: NDArray[np.int64], wrong: str) -> None:
        """Say what the reading of a location has shown."""
        location, report = place.location, self.sink.report
        where = f"{self.folder.name}/{location.id}.evt"
        records = location.records
        if wrong:
            location.damage = "no data" if location.first is None else "ends early"
            report.add(
                "damaged events",
                "loss",
                "an event file is cut or damaged; what came before the damage was kept",
                where=f"{where}, {wrong}",
            )
        elif location.first is None and location.kind == "cpu":
            location.damage = "no data"
            report.add("no events", "notice", "a location has no events at all", where=where)
        if place.declared > records:
            report.add(
                "missing events",
                "loss",
                "fewer events were read than the definitions announce",
                count=place.declared - records,
                where=where,
            )
        elif place.declared < records:
            report.add(
                "event counts",
                "info",
                "the definitions announce fewer events than there are; the announced number was ignored",
                where=where,
            )
        for counter, name, sentence in (
            (ORPHANS, "collectives", "collective operations end without a begin; they were left out"),
            (UNSTORED, "other records", "non-blocking collectives and matched probes are not stored"),
        ):
            if words[counter]:
                report.add(name, "notice", sentence, count=int(words[counter]), where=where)
        if words[BEGIN] >= 0:
            report.add(
                "collectives", "notice", "a collective operation has no end; it was left out", where=where
            )

    # ---- rows into the sink

    def deliver(self, place: Place, block: list[NDArray[np.int64]]) -> None:
        for table, columns in enumerate(block):
            if columns.shape[1]:
                rows = (self.event_rows, self.message_rows, self.collective_rows, self.metric_rows)[table]
                self.sink.append(TABLE_NAMES[table], place.index, **rows(place, columns))

    def event_rows(self, place: Place, columns: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        time, packed = columns
        keys = packed & 0xFFFFFFFFFFFFFF
        region = self.regions(keys)
        unknown = np.unique(keys[region == -1]).tolist()
        if unknown:
            names = {
                key: f"calling context {key - CONTEXTS}" if key >= CONTEXTS else f"region {key}"
                for key in unknown
            }
            self.sink.report.add(
                "regions",
                "notice",
                "regions are not defined; they are called by their number and count as computing",
                count=len(unknown),
                where=f"{names[unknown[0]]} in {self.folder.name}/{place.location.id}.evt",
            )
            new = {key: self.sink.region(Region(name, "unknown", "unknown")) for key, name in names.items()}
            self.regions.add(new)
            region = self.regions(keys)
        return {"time": time, "kind": (packed >> 56).astype("u1"), "region": region.astype("u4")}

    def message_rows(self, place: Place, columns: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        time, packed, comm, tag, size, request = columns
        kind, rank = packed >> 56, packed & UNDEFINED
        peer, _ = self.peers(comm, rank, place.index)
        unresolved = int(((peer < 0) & (comm != UNDEFINED)).sum())
        if unresolved:
            self.sink.report.add(
                "peers",
                "notice",
                "messages name a communicator or rank that is not defined; their partner is unknown",
                count=unresolved,
                where=f"{self.folder.name}/{place.location.id}.evt",
            )
        return {
            "time": time,
            "kind": kind.astype("u1"),
            "peer": peer,
            "communicator": comm.astype("u4"),
            "tag": tag,
            "bytes": size,
            "request": request.view("u8"),
        }

    def collective_rows(self, place: Place, columns: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        begin, end, operation, comm, root, sent, received = columns
        root_index, own = self.peers(comm, root, place.index)
        root_index[root == ROOT_SELF] = place.index
        for code in np.unique(operation).tolist():
            if code not in self.operations:
                known = code < len(OPERATIONS)
                self.operations[code] = self.sink.text(OPERATIONS[code] if known else f"operation {code}")
        return {
            "begin": begin,
            "end": end,
            "operation": np.array([self.operations[code] for code in operation.tolist()], "u4"),
            # Every process has a communicator of its own under the one number of MPI_COMM_SELF.
            "communicator": np.where(own, UNDEFINED, comm).astype("u4"),
            "root": root_index,
            "sent": sent,
            "received": received,
        }

    def metric_rows(self, _place: Place, columns: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        time, key, value = columns
        known, which = np.unique(key, return_inverse=True)
        for number in known.tolist():
            if number not in self.metric_names:
                self.metric_names[number] = self.sink.text(self.metric_name(number >> 8, number & 0xFF))
        names = np.array([self.metric_names[number] for number in known.tolist()], "u4")
        return {"time": time, "metric": names[which], "value": np.ascontiguousarray(value).view("f8")}

    def metric_name(self, metric: int, i: int) -> str:
        """Name of the i-th value of a metric class, or of an instance of one."""
        by = self.definitions.by
        instance = by["MetricInstance"].get(metric)
        members = by["MetricClass"].get(instance[1] if instance else metric)
        member = by["MetricMember"].get(members[2][i]) if members and i < len(members[2]) else None
        otherwise = f"metric {metric}.{i}"
        return self.definitions.name(member[1], otherwise) if member else otherwise

    # ---- marks

    def read_marks(self, reader: int, stack: ExitStack) -> None:
        file = self.folder.with_suffix(".marker")
        if not file.exists():
            return
        lib, read = self.library, u64()
        categories: dict[int, str] = {}
        marks: list[tuple[int, int, str]] = []

        def define(_data: Any, number: int, _group: bytes, category: bytes, _severity: int) -> int:
            categories[number] = (category or b"").decode("utf-8", "replace")
            return GO_ON

        def mark(_data: Any, time: int, _duration: int, number: int, scope: int, of: int, said: bytes) -> int:
            words = (said or b"").decode("utf-8", "replace") or categories.get(number, f"mark {number}")
            marks.append((self.dense.get(of, 0) if scope == 1 else 0, time, words))
            return GO_ON

        keep = (
            ctypes.CFUNCTYPE(ctypes.c_int, Handle, u32, text, text, u8)(define),
            ctypes.CFUNCTYPE(ctypes.c_int, Handle, u64, u64, u32, u8, u64, text)(mark),
        )
        callbacks = lib.MarkerReaderCallbacks_New()
        stack.callback(lib.MarkerReaderCallbacks_Delete, callbacks)
        for record, function in zip(("DefMarker", "Marker"), keep, strict=True):
            lib.set_callback("MarkerReader", record, callbacks, ctypes.cast(function, Handle))
        markers = lib.Reader_GetMarkerReader(reader)
        code = 0
        if markers:
            lib.Reader_RegisterMarkerCallbacks(reader, markers, callbacks, None)
            code = lib.Reader_ReadAllMarkers(reader, markers, ctypes.byref(read))
            lib.Reader_CloseMarkerReader(reader, markers)
        if not markers or code:
            self.sink.report.add("marks", "loss", "the marks cannot all be read", where=file.name)
        marks = sorted(m for m in marks if 0 <= m[1] < 1 << 63)
        for index in sorted({m[0] for m in marks}):
            here = [m for m in marks if m[0] == index]
            self.sink.append(
                "marks",
                index,
                time=np.array([m[1] for m in here], "i8"),
                text=np.array([self.sink.text(m[2]) for m in here], "u4"),
            )

    def read(self) -> None:
        notes = self.check_anchor()
        compiled()  # before anything of the library is open
        with ExitStack() as stack:
            reader = self.open(stack)
            self.read_definitions(reader, stack)
            notes["creator"] = self.note(self.library.Reader_GetCreator, reader)
            notes["machine"] = self.note(self.library.Reader_GetMachineName, reader)
            resolution, _, length = (*self.definitions.by["ClockProperties"].get(0, (0, 0, 0)), 0)[:3]
            if not resolution:
                self.sink.report.add(
                    "clock", "notice", "the clock's resolution is not defined; a tick is taken as 1 ns"
                )
                resolution = 1_000_000_000
            # No trace lasts longer than 400 days or a thousand times what it says itself.
            self.span = min(max(400 * 86400 * resolution, 1000 * length), 1 << 62)
            self.define()
            for place in self.places:
                self.library.Reader_SelectLocation(reader, place.location.id)
            self.read_local_definitions(reader, stack)
            self.sink.describe(ticks_per_second=float(resolution), repair=not self.synchronised, notes=notes)
            self.read_events(reader, stack)
            self.read_marks(reader, stack)
        if all(place.location.first is None for place in self.places):
            raise self.refuse(
                "the OTF2 archive has no readable events",
                f"in {len(self.places)} locations",
                "copy the archive again, with its folder",
            )


# ------------------------------------------------------------------ the importer


def file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def anchor_of(path: Path) -> Path | None:
    """The anchor file: the path itself, or the only ``*.otf2`` in the directory."""
    if not path.is_dir():
        return path
    found = sorted(path.glob("*.otf2"))
    return found[0] if len(found) == 1 else None


def detect(path: Path, head: bytes) -> bool:
    anchor = anchor_of(path)
    if anchor is None:
        return False
    if anchor != path:
        try:
            with anchor.open("rb") as file:
                head = file.read(16)
        except OSError:
            return False
    return head[:1] == b"\x03" and head[1:2] in (b"\x42", b"\x23") and head[2:7] == b"OTF2\0"


def read(path: Path, sink: Sink, progress: Progress) -> None:
    anchor = anchor_of(path)
    if anchor is None:
        raise TraceFormatError(
            "holds not exactly one OTF2 anchor file", file=path, hint="choose one *.otf2 file"
        )
    try:
        archive = Archive(anchor, sink, progress)
    except TraceFormatError as error:
        raise TraceFormatError(error.what, file=anchor, hint=error.hint) from None
    archive.read()


def files(path: Path) -> list[Path]:
    anchor = anchor_of(path)
    if anchor is None:
        return []
    folder = anchor.with_suffix("")
    beside = [folder.with_suffix(end) for end in (".def", ".marker", ".thumb")]
    inside = sorted(file for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else []
    return [anchor, *(file for file in beside if file.is_file()), *inside]


IMPORTER = Importer(
    id="otf2",
    title="OTF2 archive",
    version="1",
    detect=detect,
    read=read,
    files=files,
    patterns=("*.otf2",),
)

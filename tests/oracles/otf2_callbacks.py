"""Natively compiled callbacks: libotf2 calls one for every record, and the record ends in the buffer."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import carray, cfunc, types
from numpy.typing import NDArray

from desktop.core.jit import kernel
from desktop.data.events import MessageKind
from desktop.data.importers._otf2.records import (
    BEGIN,
    CONTEXTS,
    HEADER,
    NOT_MEASURED,
    SIZE,
    UNDEFINED,
    UNSTORED,
    arrive,
    crowded,
    put_collective,
    put_event,
    put_flush,
    put_message,
    put_metric,
)
from desktop.data.importers._otf2.tables import listed

#: What a callback answers.
GO_ON, STOP = 0, 1

# The library passes location, time, position, our buffer and attributes first.
U8, U32, U64, POINTER = types.uint8, types.uint32, types.uint64, types.voidptr
I64 = np.int64
Make = Callable[..., Any]

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


@kernel
def buffer(data: Any) -> NDArray[np.int64]:
    return carray(data, (carray(data, (HEADER,), np.int64)[SIZE],), np.int64)


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
    put_flush(words, I64(time), I64(stop))
    return GO_ON


@kernel
def message(data: Any, time: int, kind: int, peer: int, comm: int, tag: int, size: int, request: int) -> int:
    words = buffer(data)
    if not arrive(words, time):
        return STOP
    put_message(words, I64(time), kind, I64(peer), I64(comm), I64(tag), I64(size), I64(request))
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
    put_collective(words, I64(time), I64(operation), I64(comm), I64(root), I64(sent), I64(received))
    return GO_ON


def metric(location, time, position, data, attributes, metric, number, kinds, values):
    words = buffer(data)
    if not arrive(words, time):
        return STOP
    kind = carray(kinds, (number,), np.uint8)
    value = carray(values, (number,), np.int64)
    reals = carray(data, (words[SIZE],), np.float64)
    for i in range(number):
        put_metric(words, reals, I64(time), I64(metric), I64(i), I64(kind[i]), value[i])
    return STOP if crowded(words) else GO_ON


def passing(location, time, position, data, attributes):
    return GO_ON if arrive(buffer(data), time) else STOP


def unstored(location, time, position, data, attributes):
    words = buffer(data)
    if not arrive(words, time):
        return STOP
    words[UNSTORED] += 1
    return GO_ON


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
        name: cfunc(types.int32(*common, *arguments), cache=True)(function)
        for name, (function, arguments) in CALLBACKS.items()
    }
    native |= dict.fromkeys(PASSING, cfunc(types.int32(*common), cache=True)(passing))
    native |= dict.fromkeys(UNSTORED_RECORDS, cfunc(types.int32(*common), cache=True)(unstored))
    return native

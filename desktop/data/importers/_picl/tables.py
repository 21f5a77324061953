"""Names and classes of what PICL traces record.

Sources: the event types of MPICL's headers (format B), the node library of PICL 1.x (format A); the classes
busy, overhead and idle are those of ParaGraph, as the split of B's codes into blocked and not blocked
suggests them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from desktop.data.events import Activity, MessageKind, Region
from desktop.data.importers._picl import lines as ln
from desktop.data.importers._picl import states as st

#: Event types of format B.
EVENTS_B = {
    -11: "open", -12: "close", -13: "who", -14: "receive info", -15: "set buffering",
    -16: "communication status", -21: "send", -22: "buffered send", -23: "synchronous send",
    -24: "ready send", -27: "begin send", -28: "test send, done", -29: "test send, not done",
    -30: "wait for send, not blocked", -31: "wait for send, blocked", -32: "cancel send",
    -33: "begin buffered send", -34: "test buffered send, done", -35: "test buffered send, not done",
    -36: "wait for buffered send, not blocked", -37: "wait for buffered send, blocked",
    -38: "cancel buffered send", -39: "begin synchronous send", -40: "test synchronous send, done",
    -41: "test synchronous send, not done", -42: "wait for synchronous send, not blocked",
    -43: "wait for synchronous send, blocked", -44: "cancel synchronous send", -45: "begin ready send",
    -46: "test ready send, done", -47: "test ready send, not done", -48: "wait for ready send, not blocked",
    -49: "wait for ready send, blocked", -50: "cancel ready send", -51: "receive, not blocked",
    -52: "receive, blocked", -53: "probe, found", -54: "probe, not found",
    -55: "blocking probe, not blocked", -56: "blocking probe, blocked", -57: "begin receive",
    -58: "test receive, done", -59: "test receive, not done", -60: "wait for receive, not blocked",
    -61: "wait for receive, blocked", -62: "cancel receive", -201: "file open", -202: "file close",
    -221: "file write", -251: "file read", -401: "clock synchronization", -402: "barrier",
    -501: "allocate", -502: "release", -503: "spawn", -601: "idle", -602: "system overhead",
    -603: "user overhead", -756: "pack", -773: "unpack", -780: "allgather", -782: "allreduce",
    -783: "alltoall", -785: "bcast", -786: "gather", -790: "reduce", -791: "reduce_scatter", -792: "scan",
    -793: "scatter", -804: "comm create", -805: "comm dup", -806: "comm free", -812: "comm split",
    -826: "intercomm create", -827: "intercomm merge", -841: "cart create", -846: "cart sub",
    -849: "graph create", -901: "trace", -902: "statistics", -903: "trace files", -904: "trace level",
    -905: "trace info", -911: "trace message", -912: "trace flush", -913: "trace buffer full",
    -914: "trace buffer overwritten",
}  # fmt: skip
#: Aliases of subsets of events, in statistics and definitions.
ALIASES_B = frozenset(
    {-1, -1001, -1002, -1011, -1012, -1013, -1014, -1201, -1401, -1501, -1601, -1901, -1902}
)

#: Barriers and collectives mix transfer and waiting, which a trace cannot split: idle is a choice.
IDLE_B = frozenset({-31, -37, -43, -49, -52, -56, -61, -401, -402, -601}) | {
    e for e in EVENTS_B if -793 <= e <= -780
}
SENDS_B = {
    **dict.fromkeys((-21, -22, -23, -24), MessageKind.SEND),
    **dict.fromkeys((-27, -33, -39, -45), MessageKind.ISEND),
}
RECEIVES_B = {-51: MessageKind.RECV, -52: MessageKind.RECV, -60: MessageKind.IRECV, -61: MessageKind.IRECV}
#: Collectives of which the fields are bytes, root, subset; of the others bytes, subset.
ROOTED_B = frozenset({-785, -786, -790, -793})
#: Sends 1, receives 2, others 0: by record type and negated event, which is 0 in A; in B entries send and
#: exits receive.
SIDES = np.zeros((9, 65), np.int8)
SIDES[[4, 6, 8], 0] = 1, 2, 2
SIDES[3, [-e for e in SENDS_B]] = 1
SIDES[4, [-e for e in RECEIVES_B]] = 2
#: `MessageKind` by negated event of B.
KINDS_B = np.zeros(65, np.uint8)
KINDS_B[[-e for e in (*SENDS_B, *RECEIVES_B)]] = [*SENDS_B.values(), *RECEIVES_B.values()]
#: Record types of A that are shown as marks.
MARKS_A = np.isin(np.arange(26), (9, 15, 17, 18, 22))
#: Events of B of the trace itself: tracing, flushes, lost buffers.
WATCHED_B = (-901, -912, -913, -914)
EVENT_TABLE = np.isin(np.arange(2048), [-e for e in (*EVENTS_B, *ALIASES_B)])
#: Known record types.
RECORDS = {
    ln.FORMAT_A: np.isin(np.arange(256), range(25)),
    ln.FORMAT_B: np.isin(np.arange(256), list(ln.RECORDS_B)),
}
STATISTICS = {101: "seconds", 102: "count", 103: "bytes sent", 104: "bytes received", 105: "size"}

#: Block types of the library in format A; types from 0 on are the user's.
BLOCKS_A = {-1: "barrier0", -2: "bcast0", -3: "bcast1", -4: "gcomb", -5: "gather0"}

#: States of a processor of format A as regions.
STATES: tuple[tuple[int, Region], ...] = (
    (st.COMMUNICATION, Region("communication", "message", "picl", Activity.OVERHEAD)),
    (st.WAITING, Region("waiting for a message", "point2point", "picl", Activity.IDLE)),
    (st.BARRIER, Region("sync", "barrier", "picl", Activity.IDLE)),
    (st.FLUSH, Region("writing the trace", "flush", "picl", Activity.OVERHEAD)),
    (st.NO_DATA, Region("no data", "artificial", "picl", Activity.UNMEASURED)),
    (st.NOT_TRACED, Region("not traced", "artificial", "picl", Activity.UNMEASURED)),
    (st.UNCLEAR, Region("statistics restarted", "artificial", "picl", Activity.UNMEASURED)),
)


def _roles(entries: tuple[int, ...], exits: tuple[int, ...]) -> NDArray[np.int8]:
    roles = np.zeros(1 << 15, np.int8)
    roles[list(entries)] = 1
    roles[list(exits)] = 2
    return roles


ROLES = {ln.FORMAT_A: _roles((7, 20), (8, 21)), ln.FORMAT_B: _roles((3,), (4,))}


def role(name: str) -> str:
    """Roles by the names that all formats use."""
    if "barrier" in name:
        return "barrier"
    if name in ("bcast", "bcast0", "bcast1", "scatter"):
        return "coll_one2all"
    if name in ("reduce", "gather", "gather0"):
        return "coll_all2one"
    if name in ("allreduce", "allgather", "alltoall", "gcomb", "reduce_scatter"):
        return "coll_all2all"
    if name in ("scan",):
        return "coll_other"
    if "send" in name or "receive" in name or "probe" in name:
        return "point2point"
    if name.startswith("file "):
        return "file_io"
    return "function"


def describe(form: int, event: int) -> tuple[str, Activity, bool, bool]:
    """Name and activity of an event of B or a block type of A, whether it is not the user's, and whether it
    is a collective operation. User events, blocks and the trace itself are computing."""
    if form == ln.FORMAT_A:
        own = event in BLOCKS_A
        return BLOCKS_A.get(event, f"block {event}"), Activity.COMPUTING, own, own
    if event >= 0:
        return f"event {event}", Activity.COMPUTING, False, False
    activity = Activity.IDLE if event in IDLE_B else Activity.OVERHEAD
    activity = Activity.COMPUTING if event == -901 else activity
    together = event == -402 or -793 <= event <= -780
    return EVENTS_B.get(event, f"unknown event {event}"), activity, True, together

"""Constants of PICL traces: the record types of both formats in one table, events, states, findings.

Sources: the event types of MPICL's headers (format B), the node library of PICL 1.x (format A); the classes
busy, overhead and idle are those of ParaGraph, as suggested by B's codes for blocked and not blocked.
"""

from __future__ import annotations

import numpy as np

from desktop.data.events import Activity, Findings, MessageKind, Region, Severity

FORMAT_A, FORMAT_B = 0, 1
HOST = -32768

#: The role of a record for a call, a block or a wait.
ENTERS, LEAVES = 1, 2

# Kinds of records: the keys of format A, then those of B, by record type and event.
(
    UNKNOWN, TRACE_START, OPEN, LOAD, SEND, PROBE, RECV, RECV_BLOCKING, RECV_WAKING, MESSAGE, SYNC,
    COMPSTATS, COMMSTATS, CLOSE, TRACE_LEVEL, TRACE_MARK, TRACE_MESSAGE, TRACE_STOP, TRACE_FLUSH, TRACE_EXIT,
    BLOCK_BEGIN, BLOCK_END, TRACE_MARKS, CLOCK_SYNC, TRACE_FILES,
    MARK, USER_MARK, FLUSH_MARK, LOST_MARK, ENTRY, TRACING, FLUSH, LOST, SENDING, STARTING, EXIT, TRACED,
    RECEIVED, COMPLETED, LABEL,
) = range(40)  # fmt: skip
#: The kinds of B's other records follow: record types 5 to 7 from `LABEL` on, 101 to 105 from here on.
STATISTICS = LABEL + 3
KINDS = STATISTICS + 5


#: Names of format A by key; the last one is another name of `TRACE_MARKS`.
NAMES = (
    "", "trace_start", "open", "load", "send", "probe", "recv", "recv_blocking", "recv_waking", "message",
    "sync", "compstats", "commstats", "close", "trace_level", "trace_mark", "trace_message", "trace_stop",
    "trace_flush", "trace_exit", "block_begin", "block_end", "trace_marks", "clock_sync", "trace_files",
    "trace_mark_array",
)  # fmt: skip
#: Fields after the node that a key of A must have; -1: any (text, or unknown).
FIELDS = np.array([-1, 3, -1, -1, 3, 1, 3, 1, 3, 0, 0, 2, 5, 0, 3, 1, -1, -1, 2, 1, 3, 3, -1, 0, 2])

#: By kind: its role for a call, a block or a wait, its `MessageKind`, whether it is a mark.
ROLES, MESSAGES, SHOWN = np.zeros(KINDS, np.int8), np.full(KINDS, -1, np.int8), np.zeros(KINDS, np.bool_)
ROLES[[RECV_BLOCKING, BLOCK_BEGIN, ENTRY, TRACING, FLUSH, LOST, SENDING, STARTING]] = ENTERS
ROLES[[RECV_WAKING, BLOCK_END, EXIT, TRACED, RECEIVED, COMPLETED]] = LEAVES
MESSAGES[[SEND, SENDING]], MESSAGES[STARTING] = MessageKind.SEND, MessageKind.ISEND
MESSAGES[[RECV, RECV_WAKING, RECEIVED]], MESSAGES[COMPLETED] = MessageKind.RECV, MessageKind.IRECV
SHOWN[[MESSAGE, TRACE_MARK, TRACE_STOP, TRACE_FLUSH, TRACE_MARKS, USER_MARK, FLUSH_MARK, LOST_MARK]] = True

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
#: Event numbers for subsets of events, in statistics and definitions.
ALIASES_B = (-1, -1001, -1002, -1011, -1012, -1013, -1014, -1201, -1401, -1501, -1601, -1901, -1902)
EVENT_TABLE = np.isin(np.arange(2048), [-e for e in (*EVENTS_B, *ALIASES_B)])
BARRIER_B, ALLREDUCE_B, TRACE_B, TRACE_MESSAGE_B = -402, -782, -901, -911
#: Barriers and collectives mix transfer and waiting, which a trace cannot separate: idle is a choice.
COLLECTIVES_B = {BARRIER_B, *(e for e in EVENTS_B if -793 <= e <= -780)}
IDLE_B = {-31, -37, -43, -49, -52, -56, -61, -401, -601} | COLLECTIVES_B
#: Collectives with the fields bytes, root, subset; others have bytes, subset.
ROOTED_B = (-785, -786, -790, -793)
#: Events of B that concern the trace itself: tracing, flushes, lost buffers.
WATCHED_B = (TRACE_B, -912, -913, -914)
#: Record types of B.
RECORDS_B = frozenset((2, 3, 4, 5, 6, 7, 101, 102, 103, 104, 105, 201, 202, 203))
STATISTICS_B = ("seconds", "count", "bytes sent", "bytes received", "size")

#: Kinds of B's record types 2 to 4 by negated event; 0: user events, the last one: all beyond.
KINDS_B = np.repeat(np.array([[MARK], [ENTRY], [EXIT]], np.int8), 1024, axis=1)
KINDS_B[0, [0, 912, 913, 914]] = USER_MARK, FLUSH_MARK, LOST_MARK, LOST_MARK
KINDS_B[1, [901, 912, 913, 914]] = TRACING, FLUSH, LOST, LOST
KINDS_B[1, [21, 22, 23, 24]], KINDS_B[1, [27, 33, 39, 45]] = SENDING, STARTING
KINDS_B[2, [51, 52]], KINDS_B[2, [60, 61]], KINDS_B[2, 901] = RECEIVED, COMPLETED, TRACED

#: The library's block types in format A; types from 0 on are the user's.
BLOCKS_A = {-1: "barrier0", -2: "bcast0", -3: "bcast1", -4: "gcomb", -5: "gather0"}

# States of a processor; as regions: in format A all of them, in B those that are unknown.
BUSY, COMMUNICATION, WAITING, BARRIER, FLUSHING, NO_DATA, NOT_TRACED, UNCLEAR, STATES = range(9)
STATE_REGIONS = {
    COMMUNICATION: Region("communication", "message", "picl", Activity.OVERHEAD),
    WAITING: Region("waiting for a message", "point2point", "picl", Activity.IDLE),
    BARRIER: Region("sync", "barrier", "picl", Activity.IDLE),
    FLUSHING: Region("writing the trace", "flush", "picl", Activity.OVERHEAD),
    NO_DATA: Region("no data", "artificial", "picl", Activity.UNMEASURED),
    NOT_TRACED: Region("not traced", "artificial", "picl", Activity.UNMEASURED),
    UNCLEAR: Region("statistics restarted", "artificial", "picl", Activity.UNMEASURED),
}

_ROLES = {
    **dict.fromkeys(("bcast", "bcast0", "bcast1", "scatter"), "coll_one2all"),
    **dict.fromkeys(("reduce", "gather", "gather0"), "coll_all2one"),
    **dict.fromkeys(("allreduce", "allgather", "alltoall", "gcomb", "reduce_scatter"), "coll_all2all"),
    "barrier": "barrier",
    "barrier0": "barrier",
    "scan": "coll_other",
}


def role(name: str) -> str:
    """Role of a call by its name, which is the same in all formats."""
    if name in _ROLES:
        return _ROLES[name]
    if "send" in name or "receive" in name or "probe" in name:
        return "point2point"
    return "file_io" if name.startswith("file ") else "function"


def describe(form: int, event: int) -> tuple[str, Activity, bool, bool]:
    """Name and activity of an event of B or a block type of A, whether it is not the user's, and whether it
    is a collective operation. User events, user blocks and the trace itself are computing."""
    if form == FORMAT_A:
        library = event in BLOCKS_A
        return BLOCKS_A.get(event, f"block {event}"), Activity.COMPUTING, library, library
    if event >= 0:
        return f"event {event}", Activity.COMPUTING, False, False
    activity = Activity.IDLE if event in IDLE_B else Activity.OVERHEAD
    activity = Activity.COMPUTING if event == TRACE_B else activity
    together = event == BARRIER_B or -793 <= event <= -780
    return EVENTS_B.get(event, f"unknown event {event}"), activity, True, together


#: Findings of the kernels: count and first line of each, in the order of the names in `FINDINGS`.
(
    GARBAGE, COMMENT, SHORT, CUT, UNENDED, FOREIGN, COMMA, CORRUPT, DIGITS, DEFINITION, BACK,
    DESCENTS, ORPHANS, OPENED, PARTIAL, GROWN, RESTARTS, BACKWARD, BARE, INSIDE, FOUND,
) = range(21)  # fmt: skip

#: Possible findings: what each means and what was done.
_TEXTS = {
    "unreadable lines": "Lines that are no record were left out.",
    "comments": "Lines beginning with # were skipped.",
    "lines with missing fields": "Only time, processor and type were kept.",
    "last line cut off": "The last line is incomplete and was left out.",
    "last line without end": "The last line has no line end; it was kept.",
    "lines of the other format": "Lines of PICL format {other} were left out.",
    "decimal commas": "Lines with a decimal comma were left out.",
    "raw trace data": "The tracer met a corrupt record and wrote raw numbers; these lines were left out.",
    "times rounded": (
        "Times have too many digits to be kept: they end at the 18th or are rounded to {decimals} decimals."
    ),
    "records of all processors": "Definitions and records that name no single processor were counted only.",
    "lines out of time order": "Lines were sorted by time; the largest step back is {step:g} s.",
    "odd times": (
        "Single lines of a processor are earlier than the one before them, unlike its other lines; their "
        "times, or those before, are damaged. Lines were sorted by time."
    ),
    "exits without entry": "Ends of events or waits without a begin were ignored.",
    "entries without exit": (
        "Events or waits that never end were closed at their processor's last record (user events where "
        "tracing ends)."
    ),
    "intervals partly computing": (
        "Statistics at both ends of an interval say that only a part of it was communication; it counts as "
        "computing when that is less than half."
    ),
    "impossible statistics": (
        "A running total of the time in communication grows by more than the time that passes; records are "
        "missing or changed there."
    ),
    "statistics restarted": (
        "A running total of the time in communication decreases; the interval is unknown unless the total "
        "wrapped at 32 bits."
    ),
    "negative durations": "A trace flush ends before it begins; it was taken as 0.",
    "statistics missing": (
        "Statistics are missing for single messages or barriers, all others have them; records are missing "
        "or changed."
    ),
    "call within itself": (
        "Calls of the library are entered while the same call is open, which others never are; records are "
        "missing or changed there."
    ),
    "single lines out of time order": (
        "Lines are sorted by time but for single ones, whose times, or those before, are damaged; the "
        "largest step back is {step:g} s."
    ),
    "clock jump": "Records from before the clocks were synchronized are on another clock and were left out.",
    "several runs": (
        "The file holds several runs, one appended to the other; the last one was read. To see another one, "
        "split the file at the line named here."
    ),
    "statistics only": (
        "There are statistics but no events, so there is no curve. Totals of {place}: "
        "computing {computing:g} s, communicating {communicating:g} s."
    ),
    "no events": "There are statistics or marks but no events of some processors, so their curve is unknown.",
    "sends without duration": (
        "Sends and non-blocking receives have no duration in this trace: only waiting is known."
    ),
    "statistics disagree": (
        "Totals in the trace differ from the sums of its events (first: {first}); the events are believed."
    ),
    "trace buffer full": (
        "The trace buffer was full; from there on nothing is known of the processor until tracing ends."
    ),
    "trace flushes": "The program was held up while its trace was written; the time counts as overhead.",
    "messages missing": (
        "The totals of messages in the trace differ from its sends and receives; records are missing, "
        "repeated or changed."
    ),
    "tracing without end": "The end of tracing ({end}) is missing; a processor ends with its last record.",
    "tracing without begin": (
        "The beginning of tracing is missing for processors that have its end, or while others have it; "
        "first records are lost."
    ),
    "tracing ends apart": (
        "The end of tracing is missing for processors, others have it; their last records are lost."
    ),
    "statistics of some": (
        "Processors have no statistics of their communication, others have them; records are lost."
    ),
    "no close of some": (
        "The end of the program (close) is missing for processors, most have it; last records are lost."
    ),
    "processors without records": (
        "Processors are named by the messages of others and have no records of their own."
    ),
    "repeated lines": (
        "More than half of the lines occur twice, as when a file was appended to itself. The curve is the "
        "same without the repeated lines, counts of messages are not: remove them."
    ),
}
_INFO = ("comments", "last line without end", "records of all processors", "lines out of time order")
_NOTICE = (
    "times rounded", "intervals partly computing", "negative durations", "sends without duration",
    "statistics disagree", "trace flushes", "tracing without end", "repeated lines",
)  # fmt: skip
_ERROR = ("statistics only", "no events")


def _severity(name: str) -> Severity:
    if name in _INFO:
        return "info"
    return "notice" if name in _NOTICE else "error" if name in _ERROR else "loss"


FINDINGS: Findings = {name: (_severity(name), text) for name, text in _TEXTS.items()}
NAMED = tuple(FINDINGS)

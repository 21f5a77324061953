"""Lines of a .prv file to rows, in compiled code.

A line is a kind and decimal fields between colons::

    1:cpu:app:task:thread:begin:end:state
    2:cpu:app:task:thread:time:type:value[:type:value...]
    3:cpu:app:task:thread:send:physical send:cpu:app:task:thread:receive:physical receive:bytes:tag
"""

from __future__ import annotations

import numpy as np

from desktop.core.arrays import AnyArray, Bytes, Ints, Records
from desktop.core.jit import arithmetic, inlined
from desktop.data.events import MessageKind
from desktop.data.lines import byte
from desktop.data.spill import copied

#: A state (`type` is -1 - state, `value` its end) or an event of a thread.
ACT = np.dtype([("time", "i8"), ("type", "i8"), ("value", "i8")])
#: One end of a message, or the posting of its receive; kind as in `MessageKind`. The posting and the
#: completion of a receive have the same `request`, the number of their line.
MESSAGE = np.dtype(
    [("time", "i8"), ("bytes", "i8"), ("tag", "i8"), ("request", "i8"), ("peer", "i4"), ("kind", "i4")]
)
_SEND, _RECV = int(MessageKind.SEND), int(MessageKind.RECV)
_POST, _IRECV = int(MessageKind.IRECV_POST), int(MessageKind.IRECV)

#: Rows parsed at a time. An event line with more events than this is invalid.
ROWS = 1 << 16
_FIELDS = 14  # of a message, without the kind
#: Times from here on (73 years of nanoseconds) are damage.
LATEST = 1 << 61

# Counts of lines.
(
    LINES,  # that are not empty
    STATES,
    EVENTS,
    MESSAGES,
    COMMUNICATORS,
    COMMENTS,
    OLD,  # global operations, kind 4
    UNENDED,  # the last line has no end
    FIELDS,  # bad: a wrong number of fields
    NUMBER,  # bad: a field is no number, or a time is beyond `LATEST`
    BACKWARD,  # bad: a state ends before it begins
    THREAD,  # bad: a thread that is not in the header
    KIND,  # bad: a line of unknown kind
    COUNTS,
) = range(14)
BAD = (FIELDS, NUMBER, BACKWARD, THREAD, KIND)


@inlined
def _thread(first_task: Ints, first_thread: Ints, app: int, task: int, thread: int) -> int:
    """Index of a thread from its numbers, which start at 1; -1: there is none."""
    if app < 1 or app >= len(first_task):
        return -1
    t = first_task[app - 1] + task - 1
    if task < 1 or t >= first_task[app]:
        return -1
    index = first_thread[t] + thread - 1
    return index if thread >= 1 and index < first_thread[t + 1] else -1


@inlined
def _note_time(spans: Ints, thread: int, time: int) -> None:
    if time < spans[thread, 0]:
        spans[thread, 0] = time
    if time > spans[thread, 1]:
        spans[thread, 1] = time


@inlined
def _put(m: np.void, time: int, kind: int, peer: int, tag: int, size: int, request: int) -> None:
    m["time"] = time
    m["bytes"] = size
    m["tag"] = tag
    m["request"] = request
    m["peer"] = peer
    m["kind"] = kind


# Long: a branch for each kind of record.
@arithmetic
def parse(
    buf: Bytes, at: int, final: bool, f: Ints, first_task: Ints, first_thread: Ints, acts: Records,
    act_threads: Ints, messages: Records, message_threads: Ints, spans: Ints, records: Ints, counts: Ints,
    firsts: Ints, line: int,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Parse lines of `buf` from byte `at` on, until the end or until there is no space for further rows.

    f (_FIELDS,): scratch. spans (threads, 2): first and last time, records (threads,): their number, both
    updated, as are `counts` and `firsts` (line of the first). Returns the next byte, rows, message rows,
    lines so far.
    """
    n = len(buf)
    used = 0
    sent = 0
    i = at
    while i < n and used < len(acts) and sent + 3 <= len(messages):
        c = buf[i]
        kind = KIND
        record = 0
        p = i
        nf = 0
        thread = 0
        if c == 10 or (c == 13 and i + 1 < n and buf[i + 1] == 10):
            line += 1
            i += 1 if c == 10 else 2
            continue
        if c == 35:
            kind = COMMENTS
        elif i + 1 < n and buf[i + 1] == 58:
            if c == 99 or c == 105:
                kind = COMMUNICATORS
            elif c == 52:
                kind = OLD
            elif 49 <= c <= 51:
                record = c - 48
                kind = STATES + record - 1
        if record != 0:
            p = i + 2
            room = len(acts) - used
            over = False
            while True:
                q = p
                negative = q < n and buf[q] == 45
                if negative:
                    q += 1
                digits = q
                value = np.int64(0)
                while q < n:
                    d = byte(buf, q) - 48
                    if d < 0 or d > 9:
                        break
                    value = value * 10 + d
                    q += 1
                digits = q - digits
                # 19 digits beyond 2^63 become negative.
                if digits == 0 or digits > 19 or value < 0:
                    kind = NUMBER
                    break
                if negative:
                    value = -value
                if record == 2 and nf >= 5:
                    k = (nf - 5) >> 1
                    if k >= room:
                        over = True
                        kind = FIELDS
                        break
                    if nf & 1:
                        acts[used + k]["type"] = value
                        if value < 0:
                            kind = NUMBER
                            break
                    else:
                        acts[used + k]["value"] = value
                elif nf < _FIELDS:
                    f[nf] = value
                else:
                    kind = FIELDS
                    break
                nf += 1
                p = q
                if q == n or buf[q] == 10:
                    break
                if buf[q] == 58:
                    p = q + 1
                    continue
                while q < n and (buf[q] == 13 or buf[q] == 32 or buf[q] == 9):
                    q += 1
                p = q
                if q < n and buf[q] != 10:
                    kind = NUMBER
                break
            if over and used > 0:
                return i, used, sent, line  # the next call has space for it
        while p < n and buf[p] != 10:
            p += 1
        line += 1
        counts[LINES] += 1
        if p == n and final:
            counts[LINES] -= 1
            kind = UNENDED
        rows = 0
        if kind == STATES:
            thread = _thread(first_task, first_thread, f[1], f[2], f[3])
            if nf != 7:
                kind = FIELDS
            elif f[4] < 0 or f[5] >= LATEST or f[6] < 0:
                kind = NUMBER
            elif f[4] > f[5]:
                kind = BACKWARD
            elif thread < 0:
                kind = THREAD
            else:
                acts[used]["type"] = -1 - f[6]
                acts[used]["value"] = f[5]
                rows = 1
                _note_time(spans, thread, f[5])
        elif kind == EVENTS:
            thread = _thread(first_task, first_thread, f[1], f[2], f[3])
            if nf < 7 or nf & 1 == 0:
                kind = FIELDS
            elif f[4] < 0 or f[4] >= LATEST:
                kind = NUMBER
            elif thread < 0:
                kind = THREAD
            else:
                rows = (nf - 5) >> 1
        elif kind == MESSAGES:
            thread = _thread(first_task, first_thread, f[1], f[2], f[3])
            receiver = _thread(first_task, first_thread, f[7], f[8], f[9])
            if nf != 14:
                kind = FIELDS
            elif min(f[4], f[11]) < 0 or max(f[4], f[11]) >= LATEST:
                kind = NUMBER
            elif thread < 0 or receiver < 0:
                kind = THREAD
            else:
                # Time 0 stands for an unknown call.
                posted = 0 < f[10] < f[11]
                _put(messages[sent], f[4], _SEND, receiver, f[13], f[12], 0)
                kind_of, request = (_IRECV, line) if posted else (_RECV, 0)
                _put(messages[sent + 1], f[11], kind_of, thread, f[13], f[12], request)
                message_threads[sent], message_threads[sent + 1] = thread, receiver
                sent += 2
                if posted:
                    _put(messages[sent], f[10], _POST, -1, -1, 0, line)
                    message_threads[sent] = receiver
                    sent += 1
                    _note_time(spans, receiver, f[10])
                records[thread] += 1
                _note_time(spans, thread, f[4])
                _note_time(spans, receiver, f[11])
        if rows > 0:
            for k in range(used, used + rows):
                acts[k]["time"] = f[4]
                act_threads[k] = thread
            used += rows
            records[thread] += 1
            _note_time(spans, thread, f[4])
        counts[kind] += 1
        if firsts[kind] == 0:
            firsts[kind] = line
        i = p + 1
    return min(i, n), used, sent, line


#: Rows and their threads, message rows and their threads.
Rows = tuple[AnyArray, Ints, AnyArray, Ints]


class LineReader:
    """Parses blocks of whole lines, in any order, and collects counts and time spans."""

    def __init__(self, first_task: Ints, first_thread: Ints) -> None:
        threads = int(first_thread[-1])
        self.threads = first_task, first_thread
        self.counts = np.zeros(COUNTS, np.int64)
        self.firsts = np.zeros(COUNTS, np.int64)
        #: (threads, 2) first and last time; first > last where there is none
        self.spans = np.tile(np.array([np.iinfo(np.int64).max, -1]), (threads, 1))
        self.records = np.zeros(threads, np.int64)
        self._fields = np.empty(_FIELDS, np.int64)
        self._acts, self._act_threads = np.empty(ROWS, ACT), np.empty(ROWS, np.int64)
        self._messages, self._message_threads = np.empty(ROWS, MESSAGE), np.empty(ROWS, np.int64)

    def parse(self, block: Bytes, at: int, final: bool, line: int) -> list[Rows]:
        """Parse the lines from byte `at` on; `line`: number of lines before them."""
        parts = []
        firsts = np.zeros(COUNTS, np.int64)
        while at < len(block):
            at, used, sent, line = parse(
                block, at, final, self._fields, *self.threads,
                self._acts, self._act_threads, self._messages, self._message_threads,
                self.spans, self.records, self.counts, firsts, line,
            )  # fmt: skip
            acts, messages = copied(self._acts[:used]), copied(self._messages[:sent])
            parts.append(
                (acts, self._act_threads[:used].copy(), messages, self._message_threads[:sent].copy())
            )
        self._note_firsts(firsts)
        return parts

    def _note_firsts(self, firsts: Ints) -> None:
        earlier = np.where(self.firsts, self.firsts, firsts)
        self.firsts = np.where(firsts, np.minimum(earlier, firsts), earlier)

    def add(self, other: LineReader) -> None:
        """Add what another reader found in other blocks of the same file."""
        self.counts += other.counts
        self._note_firsts(other.firsts)
        self.spans[:, 0] = np.minimum(self.spans[:, 0], other.spans[:, 0])
        self.spans[:, 1] = np.maximum(self.spans[:, 1], other.spans[:, 1])
        self.records += other.records

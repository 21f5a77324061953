"""From bytes to records: the grammar of OTF event files.

A block of whole lines goes in, rows of five tables come out; nothing is built per line in Python. Numbers are
hexadecimal in lower case and keywords are in capitals, so they may follow each other without a blank. Time
and process stand in lines of their own and hold until they change; the state keeps them from block to block.

Source: the Open Trace Format 1.12 (TU Dresden), its short and its long keywords.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from desktop.core.jit import kernel
from desktop.data.events import EventKind, MessageKind

EVENT = np.dtype([("time", "i8"), ("region", "u4"), ("kind", "u1")], align=True)
MESSAGE = np.dtype(
    [("time", "i8"), ("bytes", "i8"), ("tag", "i8"), ("peer", "u4"), ("communicator", "u4"), ("kind", "u1")],
    align=True,
)
#: time: of the begin
COLLECTIVE = np.dtype(
    [
        ("time", "i8"),
        ("end", "i8"),
        ("sent", "i8"),
        ("received", "i8"),
        ("operation", "u4"),
        ("communicator", "u4"),
        ("root", "u4"),
    ],
    align=True,
)
#: value: its 64 bits as they stand
METRIC = np.dtype([("time", "i8"), ("value", "i8"), ("metric", "u4")], align=True)
#: a comment: where it begins in the block, and its length
NOTE = np.dtype([("time", "i8"), ("at", "i8"), ("size", "i8")])
ROWS = (EVENT, MESSAGE, COLLECTIVE, METRIC, NOTE)
EVENTS, MESSAGES, COLLECTIVES, METRICS, NOTES = range(5)

# Processes whose records are wanted are groups 0, 1, ...; the others:
UNWANTED, UNLISTED, NOBODY = -1, -2, -3

# Positions in the state that goes from block to block.
(
    TIME,
    GROUP,
    PROCESS,  # the number in the last line with a process
    LINE,
    OPEN,  # collectives that have begun
    ENDING,  # 1 after a time, 2 after the process that follows it, 0 after any record
    RECORDED,  # time of the last record
    BAD,
    FIRST_BAD,  # its line
    BACK,  # times that go back
    FIRST_BACK,
    UNKNOWN,  # keywords
    UNSTORED,
    FOREIGN,  # records of processes that are not listed for the stream
    LOST,  # records of nobody
    ORPHANS,  # ends of collectives that have not begun
    STATE,
) = range(17)

# What is known of each group: records, their first and last time, whether it has ended, leaves that name no
# region, time of the last enter, whether a collective ends with the next leave.
RECORDS, FIRST, LAST, ENDED, BARE, ENTERED, PENDING, KNOWN = range(8)

#: So many collectives may be open at a time in one stream.
OPENED = (1 << 12, 8)
#: Times and sizes are below this, as in the store.
LIMIT = 1 << 61
#: Numbers of processes, functions and the like have 32 bits.
TOKENS = 1 << 32
NOT_GIVEN = 0xFFFFFFFF
_ENTER_ROW, _LEAVE_ROW = int(EventKind.ENTER), int(EventKind.LEAVE)
_SEND_ROW, _RECEIVE_ROW = int(MessageKind.SEND), int(MessageKind.RECV)
# In place of matching ids: the operation ends with the region around it; its end is known.
_UNTIL_LEAVE, _AT_ONCE = -1, -2


def _words(pairs: str) -> NDArray[np.int64]:
    """Keywords, the short and the long one in a row, as numbers of five bits a letter."""
    words = [pair.split() for pair in pairs.split(",")]
    codes = np.zeros((len(words), 2), np.int64)
    for row, pair in enumerate(words):
        for form, word in enumerate(pair):
            for letter in word:
                codes[row, form] = codes[row, form] << 5 | (ord(letter) - 64)
    return codes


_LETTERS = 12  # the longest of these keywords
_RECORDS = _words(
    """E ENTER, L LEAVE, S SEND, R RECEIVE, CNT COUNTER, COP COLLOP, COPB COLLOPBEGIN, COPE COLLOPEND,
    PB PROCESSBEGIN, PE PROCESSEND"""
)
_ENTERS, _LEAVES, _SENDS, _RECEIVES, _COUNTS, _WHOLE, _BEGINS, _ENDS, _STARTS, _STOPS = range(10)
# More kinds of records, which need not be read: files, remote memory and snapshots; comments; values that
# belong to the next record; all others.
_OTHERS, _COMMENT, _ADDENDUM, _STRANGE = range(10, 14)
#: Within a record. S was also the source (the line of code) of any record.
_FIELDS = _words("L LEN, T TAG, C COMM, X SCL, RT ROOT, S SENT, R RECVD, D DUR, H HANDLEID, V VALUE")
_SIZED, _TAGGED, _COMMUNICATOR, _AT, _ROOTED, _GAVE, _GOT, _LASTED, _MATCHED, _VALUED = range(10)
#: Fields that a record must have, as bits.
_NEEDS = np.zeros(_STOPS + 1, np.int64)
_NEEDS[[_SENDS, _RECEIVES]] = 1 << _TAGGED | 1 << _SIZED
_NEEDS[_BEGINS] = 1 << _MATCHED
_NEEDS[_COUNTS] = 1 << _VALUED


@kernel
def _which(words: Any, word: int) -> int:
    """The row of a keyword, short or long; -1: it is none of them."""
    for i in range(len(words)):
        if word == words[i, 0] or word == words[i, 1]:
            return i
    return -1


@kernel
def _kind(word: int, letter: int) -> int:
    """Which record begins with a keyword, `letter` being the first of it."""
    found = _which(_RECORDS, word)
    if found < 0:
        found = _STRANGE
        if letter == 75:  # K
            found = _ADDENDUM
        elif letter in (70, 71, 77, 84, 85):  # F G M T U
            found = _OTHERS
    return found


# All of these rely on the line feed at the end of the block.


@kernel
def _skip(buf: Any, p: int) -> int:
    while buf[p] == 32 or buf[p] == 9:
        p += 1
    return p


@kernel
def _digit(c: int) -> bool:
    return 48 <= c <= 57 or 97 <= c <= 102


@kernel
def _number(buf: Any, p: int) -> Any:
    """Bits and end of the number at p, blanks before it skipped; end -1: there is none of 16 digits."""
    p = _skip(buf, p)
    start = p
    value = np.int64(0)
    while True:
        c = np.int64(buf[p])
        if 48 <= c <= 57:
            value = value << 4 | (c - 48)
        elif 97 <= c <= 102:
            value = value << 4 | (c - 87)
        else:
            break
        p += 1
    if p == start or p - start > 16:
        return np.int64(0), -1
    return value, p


@kernel
def _word(buf: Any, p: int) -> Any:
    """Code and end of the capitals at p; 0: there are none or too many."""
    code = np.int64(0)
    start = p
    while 65 <= buf[p] <= 90:
        code = code << 5 | (np.int64(buf[p]) - 64)
        p += 1
    return (code if p - start <= _LETTERS else np.int64(0)), p


@kernel
def _ends(buf: Any, p: int) -> bool:
    """Nothing but blanks up to the end of the line."""
    p = _skip(buf, p)
    if buf[p] == 13:
        p += 1
    return bool(buf[p] == 10)


@kernel
def _fields(buf: Any, p: int, values: Any) -> int:
    """Read the fields of a record up to the end of its line: which there are, as bits; -1: it is damaged."""
    present = 0
    values[:] = 0
    while not _ends(buf, p):
        word, p = _word(buf, _skip(buf, p))
        field = _which(_FIELDS, word)
        if field < 0:
            return -1
        value, p = _number(buf, p)
        if p < 0 or (field != _VALUED and not 0 <= value < LIMIT):
            return -1
        if field in (_COMMUNICATOR, _ROOTED) and value >= TOKENS:
            return -1
        values[field] = value
        present |= 1 << field
    return present


@kernel
def _group(processes: Any, groups: Any, process: int) -> int:
    at = np.searchsorted(processes, process)
    found = UNLISTED
    if at < len(processes) and processes[at] == process:
        found = groups[at]
    return found


@kernel
def _place(table: int, group: int, time: int, owners: Any, n: Any, last: Any, unsorted: Any) -> int:
    """The place of a new row."""
    i = n[table]
    owners[table, i] = group
    n[table] = i + 1
    if time < last[group, table]:
        unsorted[group, table] = 1
    last[group, table] = time
    return i


@kernel
def _find(opened: Any, count: int, group: int, handle: int) -> int:
    """The latest open collective of that group and matching id; -1: none."""
    at = count - 1
    while at >= 0 and (opened[at, 0] != group or opened[at, 1] != handle):
        at -= 1
    return at


@kernel
def _begin(opened: Any, state: Any, group: int, handle: int, time: int, operation: int, values: Any) -> int:
    """The place of a new open collective; -1: there are too many."""
    at = state[OPEN]
    if at == len(opened):
        state[ORPHANS] += 1
        return -1
    state[OPEN] += 1
    comm = values[_COMMUNICATOR]
    opened[at, 0], opened[at, 1], opened[at, 2], opened[at, 3] = group, handle, time, operation
    opened[at, 4], opened[at, 5] = (comm if comm else NOT_GIVEN), values[_ROOTED]
    opened[at, 6], opened[at, 7] = values[_GAVE], values[_GOT]
    return at


@kernel
def _end(
    opened: Any, at: int, end: int, state: Any, rows: Any, owners: Any, n: Any, last: Any, unsorted: Any
) -> None:
    """Make a row of an open collective."""
    i = _place(COLLECTIVES, opened[at, 0], opened[at, 2], owners, n, last, unsorted)
    rows[i]["time"] = opened[at, 2]
    rows[i]["end"] = max(end, opened[at, 2])
    rows[i]["operation"] = opened[at, 3]
    rows[i]["communicator"] = opened[at, 4]
    rows[i]["root"] = opened[at, 5]
    rows[i]["sent"] = opened[at, 6]
    rows[i]["received"] = opened[at, 7]
    state[OPEN] -= 1
    opened[at] = opened[state[OPEN]]


@kernel
def step(
    buf: Any,
    p: int,
    span: int,
    processes: Any,
    groups: Any,
    state: Any,
    known: Any,
    last: Any,
    unsorted: Any,
    opened: Any,
    events: Any,
    messages: Any,
    collectives: Any,
    metrics: Any,
    notes: Any,
    owners: Any,
    n: Any,
) -> int:
    """Read lines from position p until the block ends or the tables may be full; where it stopped.

    buf (bytes): whole lines. span: a time that is so many ticks later than the one before is no time.
    processes, groups (k,): sorted numbers and their groups. state (`STATE`,), known (g, `KNOWN`). last,
    unsorted (g, 5): time of the last row in each table, and whether any is out of order. opened `OPENED`:
    collectives that have begun. events .. notes: rows, each table as long as owners (5, rows), which gets
    their groups; n (5,) gets how many there are.
    """
    n[:] = 0
    end = len(buf)
    lines = owners.shape[1]  # a line makes one row of a table at most
    values = np.zeros(len(_FIELDS), np.int64)
    while p < end and lines > 0:
        lines -= 1
        state[LINE] += 1
        p = _skip(buf, p)
        c = np.int64(buf[p])
        sound = True
        if _digit(c):
            value, at = _number(buf, p)
            before = state[TIME]
            sound = at > 0 and _ends(buf, at) and 0 <= value < LIMIT and (before < 0 or value - before < span)
            if sound:
                if value < before:
                    state[BACK] += 1
                    if state[BACK] == 1:
                        state[FIRST_BACK] = state[LINE]
                state[TIME] = value
                state[ENDING] = 1
        elif c == 42:  # *
            value, at = _number(buf, p + 1)
            sound = at > 0 and _ends(buf, at) and 0 <= value < TOKENS
            if not sound:
                state[PROCESS], state[GROUP] = -1, NOBODY
            elif value != state[PROCESS]:
                state[PROCESS], state[GROUP] = value, _group(processes, groups, value)
            state[ENDING] = 2 if sound and state[ENDING] == 1 else 0
        elif c == 35 or 65 <= c <= 90:  # a comment or a keyword
            word, at = _word(buf, p)
            kind = _COMMENT if c == 35 else _kind(word, c)
            first = np.int64(0)
            if kind <= _STOPS:
                if _digit(np.int64(buf[_skip(buf, at)])):
                    first, at = _number(buf, at)
                    sound = at > 0 and 0 <= first < TOKENS
                else:
                    sound = kind == _LEAVES or kind >= _STARTS
                if sound:
                    present = _fields(buf, at, values)
                    sound = present >= 0 and present & _NEEDS[kind] == _NEEDS[kind]
                    sound = sound and state[TIME] + values[_LASTED] < LIMIT
            if kind == _STRANGE:
                state[UNKNOWN] += 1
            elif sound and kind != _ADDENDUM:
                time, group = state[TIME], state[GROUP]
                if time < 0:
                    group = NOBODY
                state[ENDING] = 0
                state[RECORDED] = time
                state[FOREIGN] += group == UNLISTED
                state[LOST] += group == NOBODY
                if kind == _COMMENT:
                    i = n[NOTES]
                    n[NOTES] += 1
                    owners[NOTES, i] = group
                    notes[i]["time"], notes[i]["at"] = time, p
                    while buf[p] != 10:
                        p += 1
                    notes[i]["size"] = p - notes[i]["at"]
                if group >= 0:
                    about = known[group]
                    about[RECORDS] += 1
                    about[FIRST] = min(about[FIRST], time)
                    about[LAST] = max(about[LAST], time)
                    done = -1  # which of the open collectives ends here, and when
                    ends = time
                    if kind <= _LEAVES:
                        i = _place(EVENTS, group, time, owners, n, last, unsorted)
                        events[i]["time"] = time
                        events[i]["region"] = first
                        events[i]["kind"] = _ENTER_ROW if kind == _ENTERS else _LEAVE_ROW
                        if kind == _ENTERS:
                            about[ENTERED] = time
                        else:
                            about[BARE] += first == 0
                            if about[PENDING]:
                                about[PENDING] = 0
                                done = _find(opened, state[OPEN], group, _UNTIL_LEAVE)
                    elif kind <= _RECEIVES:
                        i = _place(MESSAGES, group, time, owners, n, last, unsorted)
                        comm = values[_COMMUNICATOR]
                        messages[i]["time"] = time
                        messages[i]["bytes"] = values[_SIZED]
                        messages[i]["tag"] = values[_TAGGED]
                        messages[i]["peer"] = first
                        messages[i]["communicator"] = comm if comm else NOT_GIVEN
                        messages[i]["kind"] = _SEND_ROW if kind == _SENDS else _RECEIVE_ROW
                    elif kind == _COUNTS:
                        i = _place(METRICS, group, time, owners, n, last, unsorted)
                        metrics[i]["time"] = time
                        metrics[i]["metric"] = first
                        metrics[i]["value"] = values[_VALUED]
                    elif kind == _WHOLE and values[_LASTED] > 0:
                        done = _begin(opened, state, group, _AT_ONCE, time, first, values)
                        ends = time + values[_LASTED]
                    elif kind == _WHOLE:
                        # Without a duration it lasts as long as the call around it.
                        if about[PENDING]:
                            done = _find(opened, state[OPEN], group, _UNTIL_LEAVE)
                        begin = min(max(about[ENTERED], about[FIRST]), time)
                        _begin(opened, state, group, _UNTIL_LEAVE, begin, first, values)
                        about[PENDING] = 1
                    elif kind == _BEGINS:
                        _begin(opened, state, group, values[_MATCHED], time, first, values)
                    elif kind == _ENDS:
                        done = _find(opened, state[OPEN], group, first)
                        state[ORPHANS] += done < 0
                    elif kind == _STOPS:
                        about[ENDED] = 1
                    elif kind == _OTHERS:
                        state[UNSTORED] += 1
                    if done >= 0:
                        _end(opened, done, ends, state, collectives, owners, n, last, unsorted)
        else:
            sound = _ends(buf, p)
        if not sound:
            state[BAD] += 1
            if state[BAD] == 1:
                state[FIRST_BAD] = state[LINE]
        while buf[p] != 10:
            p += 1
        p += 1
    return p

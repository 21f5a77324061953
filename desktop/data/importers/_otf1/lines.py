"""From bytes to records: the grammar of OTF event files.

A block of whole lines goes in, rows of five tables come out; Python builds nothing per line. Numbers are
hexadecimal in lower case and keywords are upper case, so they need no blank between them. Time and process
have lines of their own and hold until they change; the state carries them from block to block.

Source: the Open Trace Format 1.12 (TU Dresden), its short and its long keywords.
"""

from __future__ import annotations

import numpy as np

from desktop.core.arrays import Bytes, Ints, Records
from desktop.core.jit import arithmetic, inlined, place_in
from desktop.data.events import EventKind, MessageKind

EVENT = np.dtype([("time", "i8"), ("region", "u4"), ("kind", "u1")], align=True)
MESSAGE = np.dtype(
    [("time", "i8"), ("bytes", "i8"), ("tag", "i8"), ("peer", "u4"), ("communicator", "u4"), ("kind", "u1")],
    align=True,
)
#: time: of the begin; within: the function entered last before it
COLLECTIVE = np.dtype(
    [
        ("time", "i8"),
        ("end", "i8"),
        ("sent", "i8"),
        ("received", "i8"),
        ("operation", "u4"),
        ("communicator", "u4"),
        ("root", "u4"),
        ("within", "u4"),
    ],
    align=True,
)
#: value: its 64 bits, uninterpreted
METRIC = np.dtype([("time", "i8"), ("value", "i8"), ("metric", "u4")], align=True)
#: a comment: its position in the block, and its length
NOTE = np.dtype([("time", "i8"), ("at", "i8"), ("size", "i8")])
ROWS = (EVENT, MESSAGE, COLLECTIVE, METRIC, NOTE)
EVENTS, MESSAGES, COLLECTIVES, METRICS, NOTES = range(5)

# Processes whose records are wanted are groups 0, 1, ...; the others:
UNWANTED, UNLISTED, NOBODY = -1, -2, -3

# Positions in the state that is carried from block to block.
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
    LOST,  # records without a process
    ORPHANS,  # ends of collectives that have not begun
    GAPS,  # times without a process; lines of processes and times that change nothing
    FIRST_GAP,
    STATE,
) = range(19)

# Facts about each group: records, their first and last time, whether it has ended, leaves without a region,
# time of the last enter, whether a collective ends with the next leave, begin of the collective that ended
# last, collectives that ended after ones that began later, function of the last enter, enters minus leaves.
RECORDS, FIRST, LAST, ENDED, BARE, ENTERED, PENDING, BEGUN, OVERTAKEN, WITHIN, DEPTH, FACTS = range(12)

#: Most collectives open at a time in one stream, and their columns.
OPENED = (1 << 12, 10)
#: Times and sizes are below this, as in the store.
LIMIT = 1 << 61
#: Numbers of processes, functions and the like have 32 bits.
TOKENS = 1 << 32
NOT_GIVEN = 0xFFFFFFFF
_ENTER_ROW, _LEAVE_ROW = int(EventKind.ENTER), int(EventKind.LEAVE)
_SEND_ROW, _RECEIVE_ROW = int(MessageKind.SEND), int(MessageKind.RECV)
# Used as matching id of an operation with known end that ends with the region around it.
_UNTIL_LEAVE, _AT_ONCE = -1, -2


def _words(pairs: str) -> Ints:
    """Keywords, pairs of the short and the long one, as numbers with five bits per letter."""
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
# More kinds of records, which are not read: files, remote memory and snapshots; comments; values that belong
# to the next record; all others.
_OTHERS, _COMMENT, _ADDENDUM, _STRANGE = range(10, 14)
#: Fields of a record. S was once also the source (line of code) of any record.
_FIELDS = _words("L LEN, T TAG, C COMM, X SCL, RT ROOT, S SENT, R RECVD, D DUR, H HANDLEID, V VALUE")
_SIZED, _TAGGED, _COMMUNICATOR, _AT, _ROOTED, _GAVE, _GOT, _LASTED, _MATCHED, _VALUED = range(10)
#: Fields that a record must have, as a bit mask.
_NEEDS = np.zeros(_STOPS + 1, np.int64)
_NEEDS[[_SENDS, _RECEIVES]] = 1 << _TAGGED | 1 << _SIZED
_NEEDS[_BEGINS] = 1 << _MATCHED
_NEEDS[_COUNTS] = 1 << _VALUED


FIELDS = len(_FIELDS)


def _letters(words: Ints) -> Ints:
    """The row of each one-letter keyword, by its number; -1: none."""
    rows = np.full(32, -1, np.int64)
    for row, word in enumerate(words[:, 0]):
        if word < len(rows):
            rows[word] = row
    return rows


_RECORD_LETTERS, _FIELD_LETTERS = _letters(_RECORDS), _letters(_FIELDS)


@inlined
def _which(words: Ints, letters: Ints, word: int) -> int:
    """The row of a keyword, short or long; -1: unknown."""
    if word < 32:
        return int(letters[word])
    for i in range(len(words)):
        if word == words[i, 0] or word == words[i, 1]:
            return i
    return -1


@inlined
def _kind(word: int, letter: int) -> int:
    """The kind of record that a keyword starts, `letter` being its first letter."""
    kind = _which(_RECORDS, _RECORD_LETTERS, word)
    if kind < 0:
        kind = _STRANGE
        if letter == 75:  # K
            kind = _ADDENDUM
        elif letter in (70, 71, 77, 84, 85):  # F G M T U
            kind = _OTHERS
    return kind


#: The value of each byte as a digit, or -1.
_HEXADECIMAL = np.full(256, -1, np.int64)
_HEXADECIMAL[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)

# The functions below rely on the line feed at the end of the block.


@inlined
def _skip(buf: Bytes, p: int) -> int:
    while buf[p] == 32 or buf[p] == 9:
        p += 1
    return p


@inlined
def _number(buf: Bytes, p: int) -> tuple[int, int]:
    """Bits and end of the number at p, blanks before it skipped; end -1: none, or more than 16 digits."""
    p = _skip(buf, p)
    start = p
    value = 0
    while True:
        digit = _HEXADECIMAL[buf[p]]
        if digit < 0:
            break
        value = value << 4 | digit
        p += 1
    if p == start or p - start > 16:
        return 0, -1
    return value, p


@inlined
def _word(buf: Bytes, p: int) -> tuple[int, int]:
    """Code and end of the upper-case word at p; 0: none, or too long."""
    code = 0
    start = p
    while 65 <= buf[p] <= 90:
        code = code << 5 | (buf[p] - 64)
        p += 1
    return (code if p - start <= _LETTERS else 0), p


@inlined
def _ends(buf: Bytes, p: int) -> bool:
    """Whether there are only blanks up to the end of the line."""
    p = _skip(buf, p)
    if buf[p] == 13:
        p += 1
    return bool(buf[p] == 10)


@inlined
def _fields(buf: Bytes, p: int, values: Ints) -> tuple[int, int]:
    """Read the fields of a record up to the end of its line; returns them as a bit mask, and where the line
    ends, -1 if the record is damaged."""
    present = 0
    for field in range(len(values)):
        values[field] = 0
    while not _ends(buf, p):
        word, p = _word(buf, _skip(buf, p))
        field = _which(_FIELDS, _FIELD_LETTERS, word)
        if field < 0:
            return -1, -1
        value, p = _number(buf, p)
        if p < 0 or (field != _VALUED and not 0 <= value < LIMIT):
            return -1, -1
        if field in (_COMMUNICATOR, _ROOTED) and value >= TOKENS:
            return -1, -1
        values[field] = value
        present |= 1 << field
    return present, p


@inlined
def _group(processes: Ints, groups: Ints, process: int) -> int:
    at = place_in(processes, process)
    group = UNLISTED
    if at < len(processes) and processes[at] == process:
        group = groups[at]
    return group


@inlined
def _find(opened: Ints, count: int, group: int, handle: int) -> int:
    """The latest open collective of that group and matching id; -1: none."""
    row, latest = -1, 0
    for at in range(count):
        if opened[at, 0] == group and opened[at, 1] == handle and opened[at, 8] > latest:
            row, latest = at, opened[at, 8]
    return row


@inlined
def _begin(
    opened: Ints, state: Ints, facts: Ints, group: int, handle: int, time: int, operation: int, values: Ints
) -> int:
    """Add an open collective; returns its place, -1: there are too many."""
    at = int(state[OPEN])
    if at == len(opened):
        state[ORPHANS] += 1
        return -1
    state[OPEN] += 1
    comm = values[_COMMUNICATOR]
    opened[at, 0], opened[at, 1], opened[at, 2], opened[at, 3] = group, handle, time, operation
    opened[at, 4], opened[at, 5] = (comm if comm else NOT_GIVEN), values[_ROOTED]
    opened[at, 6], opened[at, 7] = values[_GAVE], values[_GOT]
    opened[at, 8] = state[LINE]
    opened[at, 9] = facts[group, WITHIN]
    return at


@inlined
def _end(
    opened: Ints, at: int, end: int, state: Ints, facts: Ints, rows: Records, owners: Ints, n: Ints
) -> None:
    """Make a row of an open collective that ends."""
    i = n[COLLECTIVES]
    n[COLLECTIVES] = i + 1
    begin = opened[at, 2]
    rows[i]["time"] = begin
    rows[i]["end"] = max(end, begin)
    rows[i]["operation"] = opened[at, 3]
    rows[i]["communicator"] = opened[at, 4]
    rows[i]["root"] = opened[at, 5]
    rows[i]["sent"] = opened[at, 6]
    rows[i]["received"] = opened[at, 7]
    rows[i]["within"] = opened[at, 9]
    owner = opened[at, 0]
    owners[COLLECTIVES, i] = owner
    facts[owner, OVERTAKEN] += begin < facts[owner, BEGUN]
    facts[owner, BEGUN] = begin
    state[OPEN] -= 1
    for k in range(opened.shape[1]):
        opened[at, k] = opened[state[OPEN], k]


# Long: a branch for each kind of record.
@arithmetic
def step(
    buf: Bytes, p: int, span: int, values: Ints, processes: Ints, groups: Ints, state: Ints, facts: Ints,
    opened: Ints, events: Records, messages: Records, collectives: Records, metrics: Records, notes: Records,
    owners: Ints, n: Ints,
) -> int:  # fmt: skip
    """Read lines from position p until the block ends or the tables may be full; returns where it stopped.

    buf (bytes): whole lines. span: no call and no pause lasts as many ticks. values (`FIELDS`,): scratch.
    processes, groups (k,): sorted numbers and their groups. state (`STATE`,), facts (g, `FACTS`). opened
    `OPENED`: open collectives. events .. notes: rows, each table as long as owners (5, rows), which gets
    their groups; n (5,) gets the number of rows.
    """
    # One long function: passing all these arrays to another one takes longer than reading a line.
    n[:] = 0
    end = len(buf)
    lines = owners.shape[1]  # a line makes at most one row of a table
    time, group, ending = state[TIME], state[GROUP], state[ENDING]
    while p < end and lines > 0:
        lines -= 1
        state[LINE] += 1
        p = _skip(buf, p)
        c = np.int64(buf[p])
        at = p
        sound = True
        gap = False
        if _HEXADECIMAL[c] >= 0:
            value, at = _number(buf, p)
            sound = at > 0 and 0 <= value < LIMIT and (time < 0 or value - time < span) and _ends(buf, at)
            if sound:
                if value < time:
                    state[BACK] += 1
                    if state[BACK] == 1:
                        state[FIRST_BACK] = state[LINE]
                time = value
                ending = 1
        elif c == 42:  # *
            value, at = _number(buf, p + 1)
            sound = at > 0 and 0 <= value < TOKENS and _ends(buf, at)
            if not sound:
                state[PROCESS], group = -1, NOBODY
            elif value == state[PROCESS]:
                gap = ending != 1
            else:
                state[PROCESS], group = value, _group(processes, groups, value)
            ending = 2 if sound and ending == 1 else 0
        elif c == 35 or 65 <= c <= 90:  # a comment or a keyword
            word, at = _word(buf, p)
            kind = _COMMENT if c == 35 else _kind(word, c)
            first = 0
            if kind <= _STOPS:
                if _HEXADECIMAL[buf[_skip(buf, at)]] >= 0:
                    first, at = _number(buf, at)
                    sound = at > 0 and 0 <= first < TOKENS
                else:
                    sound = kind == _LEAVES or kind >= _STARTS
                if sound and not (kind <= _LEAVES and buf[at] == 10):
                    present, at = _fields(buf, at, values)
                    sound = present >= 0 and present & _NEEDS[kind] == _NEEDS[kind]
                    sound = sound and values[_LASTED] < min(span, LIMIT - time)
            if kind == _STRANGE:
                state[UNKNOWN] += 1
            elif sound and kind != _ADDENDUM:
                owner = group if time >= 0 else NOBODY
                gap = ending == 1 or (ending == 2 and time == state[RECORDED] and time > 0)
                ending = 0
                state[RECORDED] = time
                if kind == _COMMENT:
                    at = p
                    while buf[at] != 10:
                        at += 1
                    i = n[NOTES]
                    n[NOTES] = i + 1
                    owners[NOTES, i] = owner
                    notes[i]["time"] = time
                    notes[i]["at"] = p
                    notes[i]["size"] = at - p
                if owner < 0:
                    state[FOREIGN] += owner == UNLISTED
                    state[LOST] += owner == NOBODY
                else:
                    facts[owner, RECORDS] += 1
                    facts[owner, FIRST] = min(facts[owner, FIRST], time)
                    facts[owner, LAST] = max(facts[owner, LAST], time)
                    done = -1  # the open collective that ends here; `ends`: when
                    ends = time
                    if kind <= _LEAVES:
                        i = n[EVENTS]
                        n[EVENTS] = i + 1
                        owners[EVENTS, i] = owner
                        events[i]["time"] = time
                        events[i]["region"] = first
                        events[i]["kind"] = _ENTER_ROW if kind == _ENTERS else _LEAVE_ROW
                        facts[owner, DEPTH] += 1 if kind == _ENTERS else -1
                        if kind == _ENTERS:
                            facts[owner, ENTERED] = time
                            facts[owner, WITHIN] = first
                        else:
                            facts[owner, BARE] += first == 0
                            if facts[owner, PENDING]:
                                facts[owner, PENDING] = 0
                                done = _find(opened, state[OPEN], owner, _UNTIL_LEAVE)
                    elif kind <= _RECEIVES:
                        i = n[MESSAGES]
                        n[MESSAGES] = i + 1
                        owners[MESSAGES, i] = owner
                        comm = values[_COMMUNICATOR]
                        messages[i]["time"] = time
                        messages[i]["bytes"] = values[_SIZED]
                        messages[i]["tag"] = values[_TAGGED]
                        messages[i]["peer"] = first
                        messages[i]["communicator"] = comm if comm else NOT_GIVEN
                        messages[i]["kind"] = _SEND_ROW if kind == _SENDS else _RECEIVE_ROW
                    elif kind == _COUNTS:
                        i = n[METRICS]
                        n[METRICS] = i + 1
                        owners[METRICS, i] = owner
                        metrics[i]["time"] = time
                        metrics[i]["metric"] = first
                        metrics[i]["value"] = values[_VALUED]
                    elif kind == _WHOLE and values[_LASTED] > 0:
                        done = _begin(opened, state, facts, owner, _AT_ONCE, time, first, values)
                        ends = time + values[_LASTED]
                    elif kind == _WHOLE:
                        # Without a duration it lasts until the call around it ends.
                        if facts[owner, PENDING]:
                            done = _find(opened, state[OPEN], owner, _UNTIL_LEAVE)
                        begin = min(max(facts[owner, ENTERED], facts[owner, FIRST]), time)
                        _begin(opened, state, facts, owner, _UNTIL_LEAVE, begin, first, values)
                        facts[owner, PENDING] = 1
                    elif kind == _BEGINS:
                        _begin(opened, state, facts, owner, values[_MATCHED], time, first, values)
                    elif kind == _ENDS:
                        done = _find(opened, state[OPEN], owner, first)
                        state[ORPHANS] += done < 0
                    elif kind == _STOPS:
                        facts[owner, ENDED] = 1
                    elif kind == _OTHERS:
                        state[UNSTORED] += 1
                    if done >= 0:
                        _end(opened, done, ends, state, facts, collectives, owners, n)
        else:
            sound = _ends(buf, p)
        if gap:
            state[GAPS] += 1
            if state[GAPS] == 1:
                state[FIRST_GAP] = state[LINE]
        if not sound:
            state[BAD] += 1
            if state[BAD] == 1:
                state[FIRST_BAD] = state[LINE]
        p = max(p, at)
        while buf[p] != 10:
            p += 1
        p += 1
    state[TIME], state[GROUP], state[ENDING] = time, group, ending
    return p

"""From bytes to records: the line grammars of PICL 1 (format A) and PICL 2 (format B).

A block of whole lines goes in, one structured array of `RECORD` comes out; nothing is built per line in
Python. Both formats share the record: `record` is the key of A or the negated record type of B, and a
send or receive has bytes, tag, partner (and in B a fourth field) in `d0` .. `d3`.

Sources: the node library of PICL 1.x (A), ORNL/TM-12125 as MPICL and others write it (B).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from desktop.core.jit import arithmetic, inlined
from desktop.data.lines import byte

FORMAT_A, FORMAT_B = 0, 1
HOST = -32768
CLOCK_SYNC = 23  # a record type of A
#: Keys of records of A that are no block: none, and waiting for a message.
NONE, WAIT = -1, -2

#: time is in units of 10**-scale seconds; nd: how many of d0.. were in the line, -1: d0 is the number of a
#: text; key: dense number of what entries and exits must share to belong together, -1 none.
RECORD = np.dtype(
    [
        ("time", "i8"),
        ("line", "i8"),
        ("d0", "i8"),
        ("d1", "i8"),
        ("d2", "i4"),
        ("d3", "i4"),
        ("key", "i4"),
        ("record", "i2"),
        ("nd", "i1"),
        ("scale", "i1"),
    ],
    align=True,
)

#: Names of format A by key; 22 has two.
NAMES = (
    "", "trace_start", "open", "load", "send", "probe", "recv", "recv_blocking", "recv_waking", "message",
    "sync", "compstats", "commstats", "close", "trace_level", "trace_mark", "trace_message", "trace_stop",
    "trace_flush", "trace_exit", "block_begin", "block_end", "trace_marks", "clock_sync", "trace_files",
    "trace_mark_array",
)  # fmt: skip
_NAME_BYTES = np.frombuffer("".join(NAMES).encode(), np.uint8).copy()
_NAME_ENDS = np.cumsum([len(name) for name in NAMES]).astype(np.int64)
_PHRASE = np.frombuffer(b"is not a legal record type", np.uint8).copy()

#: Fields after the node that a key of A must have; -1: any (text, or not known).
FIELDS = np.array(
    [-1, 3, -1, -1, 3, 1, 3, 1, 3, 0, 0, 2, 5, 0, 3, 1, -1, -1, 2, 1, 3, 3, -1, 0, 2], dtype=np.int64
)

#: Record types of B.
RECORDS_B = frozenset((2, 3, 4, 5, 6, 7, 101, 102, 103, 104, 105, 201, 202, 203))

# What can be wrong with a line: index into the counts and first lines.
GARBAGE, COMMENT, SHORT, CUT, FOREIGN, COMMA, CORRUPT, DIGITS, DEFINITION, UNENDED, ODDITIES = range(11)
_FINE = -1

# A line as numbers. A: key, seconds, microseconds, node, fields; B: record, event, time, processor, process,
# number of data, descriptor, data.
_NUMBERS = 16
_FIELDS, _DATA = 4, 7


@inlined
def _blank(c: int) -> bool:
    return c == 32 or c == 9 or c == 11 or c == 12


@inlined
def _skip(buf: Any, p: int, end: int) -> int:
    while p < end and _blank(byte(buf, p)):
        p += 1
    return p


@inlined
def _token_end(buf: Any, p: int, end: int) -> int:
    while p < end and not _blank(byte(buf, p)):
        p += 1
    return p


@inlined
def _integer(buf: Any, p: int, end: int) -> Any:
    """Value and end of the next token from p on; end -1 if it is no integer of 18 digits, or p is -1."""
    negative = False
    if p < 0:
        return np.int64(0), -1
    p = _skip(buf, p, end)
    if p < end and (byte(buf, p) == 45 or byte(buf, p) == 43):
        negative = byte(buf, p) == 45
        p += 1
    start = p
    value = np.int64(0)
    while p < end and 48 <= byte(buf, p) <= 57:
        if p - start >= 18:
            return np.int64(0), -1
        value = value * 10 + (byte(buf, p) - 48)
        p += 1
    if p == start or (p < end and not _blank(byte(buf, p))):
        return np.int64(0), -1
    return (-value if negative else value), p


@inlined
def _decimal(buf: Any, p: int, end: int) -> Any:
    """Mantissa, decimals, end and remark of the number at p.

    The number is mantissa * 10**-decimals. end -1: no number. remark 1: digits beyond the 18th were
    dropped, 2: a comma stands where the point should.
    """
    negative = False
    remark = 0
    if p < end and (byte(buf, p) == 45 or byte(buf, p) == 43):
        negative = byte(buf, p) == 45
        p += 1
    value: Any = np.int64(0)
    decimals: Any = np.int64(0)
    kept = 0
    digits = 0
    point = False
    while p < end:
        c = byte(buf, p)
        if 48 <= c <= 57:
            digits += 1
            if kept < 18:
                value = value * 10 + (c - 48)
                if value != 0:
                    kept += 1
                if point:
                    decimals += 1
            else:
                if c != 48:
                    remark = 1
                if not point:
                    decimals -= 1
        elif c == 46 and not point:
            point = True
        elif c == 44 and digits > 0:
            return np.int64(0), np.int64(0), -1, 2
        else:
            break
        p += 1
    if digits == 0:
        return np.int64(0), np.int64(0), -1, 0
    if p < end and (byte(buf, p) == 69 or byte(buf, p) == 101 or byte(buf, p) == 68 or byte(buf, p) == 100):
        exponent, p = _integer(buf, p + 1, end)
        if p < 0 or exponent > 40 or exponent < -40:
            return np.int64(0), np.int64(0), -1, 0
        decimals -= exponent
    elif p < end and not _blank(byte(buf, p)):
        return np.int64(0), np.int64(0), -1, 0
    while decimals < 0 and abs(value) < 10**17:
        value *= 10
        decimals += 1
    if value == 0:
        decimals = min(max(decimals, 0), 6)
    if decimals < 0 or decimals > 40:
        return np.int64(0), np.int64(0), -1, 0
    return (-value if negative else value), decimals, p, remark


@inlined
def _name_key(buf: Any, p: int, q: int) -> int:
    """Key of format A whose name stands in buf[p:q], 0 when there is none."""
    for key in range(1, len(_NAME_ENDS)):
        begin = _NAME_ENDS[key - 1]
        if _NAME_ENDS[key] - begin == q - p and _same(buf, p, _NAME_BYTES[begin : _NAME_ENDS[key]]):
            return 22 if key == 25 else key
    return 0


@inlined
def _same(buf: Any, p: int, text: Any) -> bool:
    i = 0
    while i < len(text) and buf[p + i] == text[i]:
        i += 1
    return i == len(text)


@inlined
def _word(buf: Any, p: int, end: int, first: int, length: int) -> int:
    """End of a label of that first letter and length at p (blanks before it are skipped), or -1."""
    p = _skip(buf, p, end)
    q = _token_end(buf, p, end)
    return q if q - p == length and buf[p] == first else -1


@inlined
def mix(a: int, b: int, c: int) -> Any:
    """One number, not negative, for three; two triples have the same one as rarely as chance allows."""
    h = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(29))) + np.uint64(b) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(31))) + np.uint64(c) * np.uint64(0x94D049BB133111EB)
    h ^= h >> np.uint64(30)
    return np.int64(h >> np.uint64(1))


@inlined
def _line_a(buf: Any, s: int, e: int, numbers: Any) -> Any:
    """A line of format A, compact or verbose, as numbers.

    Returns an oddity, how many fields there are, where the free text begins, and whether there are only
    fields.
    """
    verbose = (65 <= buf[s] <= 90) or (97 <= buf[s] <= 122) or buf[s] == 95
    if verbose:
        p = _token_end(buf, s, e)
        numbers[0] = _name_key(buf, s, p)
        p = _word(buf, p, e, 99, 5)
    else:
        numbers[0], p = _integer(buf, s, e)
        if p >= 0 and numbers[0] < 1:
            _other, q = _integer(buf, p, e)
            if q >= 0:
                _value, _scale, q, _remark = _decimal(buf, _skip(buf, q, e), e)
            return (FOREIGN if q >= 0 and numbers[0] < 0 else GARBAGE), 0, e, False
    numbers[1], p = _integer(buf, p, e)
    numbers[2], p = _integer(buf, p, e)
    if verbose and p >= 0:
        p = _word(buf, p, e, 110, 4)
    numbers[3], p = _integer(buf, p, e)
    if p < 0 or not _head_a(numbers):
        return GARBAGE, 0, e, False
    p = _skip(buf, p, e)
    if numbers[0] == 16 or numbers[0] == 22:
        return _FINE, 0, p, False
    count = 0
    while p < e and count < _NUMBERS - _FIELDS:
        value, q = _integer(buf, p, e)
        if q >= 0:
            numbers[_FIELDS + count] = value
            count += 1
        elif verbose:
            q = _token_end(buf, p, e)
        else:
            break
        p = _skip(buf, q, e)
    return _FINE, count, e, verbose or p >= e


@inlined
def _head_a(numbers: Any) -> bool:
    node = numbers[3]
    return abs(numbers[1]) < 9 * 10**11 and abs(numbers[2]) < 10**6 and (-1 <= node < 2**31 or node == HOST)


@inlined
def _line_b(buf: Any, s: int, e: int, numbers: Any) -> Any:
    """A line of format B as numbers: an oddity, how many data, decimals of the time, where text begins, and
    whether digits of the time were dropped."""
    numbers[0], p = _integer(buf, s, e)
    if p < 0 or numbers[0] >= 0:
        return (FOREIGN if _like_a(buf, s, e) else GARBAGE), 0, 0, e, False
    numbers[1], p = _integer(buf, p, e)
    if p < 0:
        return GARBAGE, 0, 0, e, False
    numbers[2], scale, p, remark = _decimal(buf, _skip(buf, p, e), e)
    for field in range(3, 6):
        numbers[field], p = _integer(buf, p, e)
    if p < 0 or not _head_b(numbers):
        return (COMMA if remark == 2 else GARBAGE), 0, 0, e, remark == 1
    p = _skip(buf, p, e)
    text = p
    count = np.int64(0)
    if _spoken_b(numbers) or numbers[5] == 0:
        return _FINE, count, scale, text, remark == 1
    quoted = p < e and buf[p] == 34
    if quoted:
        p += 1
        while p < e and buf[p] != 34:
            p += 1
        p += p < e
    elif p < e:
        code, p = _integer(buf, p, e)
        if p < 0 or code == 0:
            return _FINE, count, scale, text, remark == 1
    while p < e and (quoted or count < numbers[5]):
        value, decimals, p, _remark = _decimal(buf, _skip(buf, p, e), e)
        if p < 0:
            break
        while decimals > 0:
            value = value // 10 if value >= 0 else -(-value // 10)
            decimals -= 1
        if count < 4:
            numbers[_DATA + count] = value
        count += 1
    short = not quoted and count < numbers[5]
    return (SHORT if short else _FINE), min(count, 4), scale, text, remark == 1


@inlined
def _head_b(numbers: Any) -> bool:
    return (
        -(2**31) <= numbers[1] < 2**31
        and -1 <= numbers[3] < 2**31
        and abs(numbers[4]) < 2**31
        and numbers[5] >= 0
    )


@inlined
def _spoken_b(numbers: Any) -> bool:
    """Whether a line of B carries a text: statistics, a message."""
    return -105 <= numbers[0] <= -101 or numbers[0] == -7


@inlined
def _like_a(buf: Any, s: int, e: int) -> bool:
    """Whether a line that is none of B looks like one of A."""
    kind, p = _integer(buf, s, e)
    if p >= 0:
        for _ in range(3):
            _value, p = _integer(buf, p, e)
        return kind > 0 and p >= 0
    p = _token_end(buf, s, e)
    if p - s <= 3:
        return False
    p = _word(buf, p, e, 99, 5)
    _second, p = _integer(buf, p, e)
    return p >= 0


@inlined
def _narrow(value: int) -> Any:
    """A number as 32 bits; beyond them the least, which is nobody's number."""
    return np.int32(value) if -(2**31) <= value < 2**32 else np.int32(-(2**31))


@inlined
def _fill_a(r: Any, numbers: Any, count: int) -> Any:
    """A record of format A and what it must share with its counterpart."""
    key = numbers[0]
    r["time"] = numbers[1] * 1000000 + numbers[2]
    r["scale"] = 6
    a, b, c = numbers[4], numbers[5], numbers[6]
    if key == 11 and count >= 4:
        # Verbose lines, and one published description, give busy and idle: idle is the last pair.
        a, b = numbers[6], numbers[7]
    shared = np.int64(NONE)
    if (key == 4 or key == 6 or key == 8) and count >= 3:
        a, c = c, a
    elif (key == 11 or key == 18 or key == 24) and count >= 2:
        a = a * 1000000 + b
    elif (key == 20 or key == 21) and count >= 3:
        if -(2**31) <= a < 2**31:
            shared = mix(a, b, c)
            b, c = c, b
        else:
            count = 0
    if key == 7 or key == 8:
        shared = np.int64(WAIT)
    r["record"] = min(key, 32000) if key > 0 else 32000
    r["nd"] = min(count, 8)
    r["d0"] = a if count > 0 else 0
    r["d1"] = b if count > 1 else 0
    r["d2"] = _narrow(c) if count > 2 else 0
    r["d3"] = 0
    return shared


@inlined
def _fill_b(r: Any, numbers: Any, count: int, scale: int) -> None:
    r["time"] = numbers[2]
    r["scale"] = scale
    r["record"] = min(-numbers[0], 32000)
    r["nd"] = count
    r["d0"] = numbers[7] if count > 0 else 0
    r["d1"] = numbers[8] if count > 1 else 0
    r["d2"] = _narrow(numbers[9]) if count > 2 else 0
    r["d3"] = np.int32(numbers[10]) if count > 3 else 0


@inlined
def _count(oddity: int, line: int, odd: Any) -> None:
    odd[oddity, 0] += 1
    if odd[oddity, 1] == 0:
        odd[oddity, 1] = line


@arithmetic
def parse(
    buf: Any,
    form: int,
    final: bool,
    corrupt: bool,
    line: int,
    numbers: Any,
    rows: Any,
    units: Any,
    keyed: Any,
    keys: Any,
    texts: Any,
    odd: Any,
) -> Any:
    """Lines to records; returns how many, how many with a key, how many texts, the first line with a record
    (0: none), and whether the last line is part of what a corrupt record left.

    units (N,): processor << 32 | process + 1 (0: none). keyed, keys (N,): records of entries and exits (in B
    all), and what they must share.
    texts (N, 3): record, begin and end of free text: of keys 16 and 22 of A; in B of messages, and of
    statistics (record types 101 .. 105) all that follows NDATA. odd (ODDITIES, 2): count and first line of
    what is wrong. final: the file ends with this block, so a line without an end may be cut. corrupt: the
    block before ended so. line: the number of lines before.
    """
    n = len(buf)
    used = locked = spoken = 0
    first: Any = np.int64(0)
    i = 0
    while i < n:
        line += 1
        e = i
        while e < n and byte(buf, e) != 10 and byte(buf, e) != 13:
            e += 1
        cut = final and e == n and line > 1
        s = _skip(buf, i, e)
        i = e + 2 if e + 1 < n and buf[e] == 13 and buf[e + 1] == 10 else e + 1
        while e > s and _blank(buf[e - 1]):
            e -= 1
        if s == e:
            continue
        dropped = exact = False
        oddity, count, text = COMMENT, 0, 0
        scale: Any = np.int64(0)
        if buf[s] != 35:
            if form == FORMAT_A:
                oddity, count, text, exact = _line_a(buf, s, e, numbers)
            else:
                oddity, count, scale, text, dropped = _line_b(buf, s, e, numbers)
        if dropped:
            _count(DIGITS, line, odd)
        good = oddity in (_FINE, SHORT)
        if corrupt:
            want = FIELDS[numbers[0]] if good and 1 <= numbers[0] <= 24 else -1
            corrupt = not (exact and want >= 0 and (count == want or (numbers[0] == 11 and count == 4)))
            if corrupt:
                good, oddity = False, CORRUPT
        elif oddity == GARBAGE and not cut and form == FORMAT_A:
            for k in range(s, e - len(_PHRASE) + 1):
                corrupt = corrupt or _same(buf, k, _PHRASE)
            if corrupt:
                oddity = CORRUPT
        if good and form == FORMAT_A and numbers[0] <= 24 and count < FIELDS[numbers[0]]:
            oddity, count = SHORT, 0
        if cut and oddity != COMMENT:
            statistic = form == FORMAT_B and -105 <= numbers[0] <= -101
            good = good and oddity == _FINE and not statistic
            oddity = UNENDED if good else (CORRUPT if corrupt else CUT)
        if oddity >= 0:
            _count(oddity, line, odd)
        if not good:
            continue
        first = line if first == 0 else first
        processor: Any = numbers[3]
        if processor == -1 or (form == FORMAT_B and -203 <= numbers[0] <= -201):
            _count(DEFINITION, line, odd)
            continue
        r = rows[used]
        r["line"] = line
        r["key"] = -1
        if form == FORMAT_A:
            shared = _fill_a(r, numbers, count)
            units[used] = processor << 32
        else:
            if oddity == SHORT:
                count = 0
            _fill_b(r, numbers, count, scale)
            shared = numbers[1]
            units[used] = (processor << 32) | (max(numbers[4], -1) + 1)
        if form == FORMAT_B or shared != NONE:
            keyed[locked], keys[locked] = used, shared
            locked += 1
        carries = form == FORMAT_A or _spoken_b(numbers) or numbers[1] == -911
        if carries and 0 < text < e:
            texts[spoken, 0], texts[spoken, 1], texts[spoken, 2] = used, text, e
            spoken += 1
        used += 1
    return used, locked, spoken, first, corrupt


@dataclass
class Parsed:
    """What a block holds: records (their keys are not dense yet), the unit of each, which have a key and what
    it is, texts by record."""

    rows: NDArray[Any]
    units: NDArray[np.int64]
    keyed: NDArray[np.int64]
    keys: NDArray[np.int64]
    texts: list[tuple[int, str]]
    odd: NDArray[np.int64]
    first: int
    corrupt: bool


def read_lines(
    block: bytes, form: int, final: bool, lines: int, before: int, corrupt: bool = False
) -> Parsed:
    """Records of a block of that many whole lines, with so many lines before it. May run in any thread."""
    rows = np.empty(lines, RECORD)
    units, keyed, keys = (np.empty(lines, np.int64) for _ in range(3))
    texts = np.empty((lines, 3), np.int64)
    odd = np.zeros((ODDITIES, 2), np.int64)
    buf = np.frombuffer(block, np.uint8)
    used, locked, spoken, first, corrupt = parse(
        buf, form, final, corrupt, before, np.zeros(_NUMBERS, np.int64), rows, units, keyed, keys, texts, odd
    )
    found = [(row, block[begin:end].decode("latin-1")) for row, begin, end in texts[:spoken].tolist()]
    return Parsed(rows[:used], units[:used], keyed[:locked], keys[:locked], found, odd, first, corrupt)

"""From bytes to records: the line grammars of PICL 1 (format A) and PICL 2 (format B).

A block of whole lines goes in, one structured array of `RECORD` comes out; Python builds nothing per line. A
record has a kind (`_picl.tables`) and up to four numbers; for sends and receives of both formats these are
bytes, tag, partner (and in B a fourth field).

Sources: the node library of PICL 1.x (A), ORNL/TM-12125 as MPICL and others write it (B).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from desktop.core.arrays import AnyArray, Bytes, Floats, Ints
from desktop.core.jit import arithmetic, inlined
from desktop.data.events import MessageKind
from desktop.data.importers._picl import tables as tb
from desktop.data.importers._picl.tables import FORMAT_A, FORMAT_B
from desktop.data.lines import blank, byte, decimal, integer, skip_blanks, token_end

#: Key of all waits for a message in A, where blocks are keyed by type, place and parameter: no block type.
WAIT = 1 << 40
#: Numbers in a key, by format: in B it is an event.
WIDTHS = (3, 1)

#: time is in units of 10**-scale seconds; nd: how many of d0.. were in the line, -1: d0 is the number of a
#: text; key: dense number that an entry and its exit share, -1 none; d3: for a record of unknown type, the
#: type.
RECORD = np.dtype(
    [
        ("time", "i8"), ("line", "i8"), ("d0", "i8"), ("d1", "i8"), ("d2", "i4"), ("d3", "i4"), ("key", "i4"),
        ("kind", "i2"), ("nd", "i1"), ("scale", "i1"),
    ], align=True,
)  # fmt: skip

_NAME_BYTES = np.frombuffer("".join(tb.NAMES).encode(), np.uint8).copy()
_NAME_ENDS = np.cumsum([len(name) for name in tb.NAMES]).astype(np.int64)
_PHRASE = np.frombuffer(b"is not a legal record type", np.uint8).copy()
_POWERS = 10.0 ** -np.arange(64)
_RECEIVES = int(MessageKind.RECV)
_FINE = -1

# Notes of `parse` about a block: number of records, keys and texts, the first line with a record (0: none),
# whether the last line is part of the rest of a corrupt record, most decimals, clocks that were set (A),
# records of unknown types, partners named; fourth fields of sends and of receives, and those without one.
USED, KEYED, SPOKEN, FIRST, TAINTED, SCALE, CLOCKS, ODD, NAMED, FOURTH, BARE, NOTED = *range(10), 11, 13
# Its times: of the first and the last record, the largest step back, the largest absolute time.
BEGIN, END, STEP, FURTHEST, TIMES = range(5)

# A line as numbers. A: key, seconds, microseconds, node, fields; B: record, event, time, processor, process,
# number of data, descriptor, data.
_NUMBERS = 16
_FIELDS, _DATA = 4, 7


@inlined
def _decimal(buf: Bytes, p: int, end: int) -> tuple[int, int, int, bool, bool]:
    """As `decimal`, for the next token; the last result: whether it has a decimal comma."""
    value, decimals, q, dropped = decimal(buf, skip_blanks(buf, p, end), end, True)
    if 0 <= q < end and not blank(buf[q]):
        return value, decimals, -1, False, buf[q] == 44
    return value, decimals, q, dropped, False


@inlined
def _name_key(buf: Bytes, p: int, q: int) -> int:
    """Key of format A whose name is buf[p:q]; 0 if there is none."""
    for key in range(1, len(_NAME_ENDS)):
        begin = _NAME_ENDS[key - 1]
        if _NAME_ENDS[key] - begin == q - p and _same(buf, p, _NAME_BYTES[begin : _NAME_ENDS[key]]):
            return tb.TRACE_MARKS if key > tb.TRACE_FILES else key
    return 0


@inlined
def _same(buf: Bytes, p: int, text: Bytes) -> bool:
    i = 0
    while i < len(text) and buf[p + i] == text[i]:
        i += 1
    return i == len(text)


@inlined
def _word(buf: Bytes, p: int, end: int, first: int, length: int) -> int:
    """End of a label with that first letter and length at p (after blanks), or -1."""
    p = skip_blanks(buf, p, end)
    q = token_end(buf, p, end)
    return q if q - p == length and buf[p] == first else -1


@inlined
def _line_a(buf: Bytes, s: int, e: int, numbers: Ints) -> tuple[int, int, int, int, bool, bool]:
    """Read a line of format A, compact or verbose, into `numbers`.

    Returns a finding, the number of fields, decimals of the time, where the free text begins, whether there
    are only fields, and whether digits of the time were dropped.
    """
    verbose = (65 <= buf[s] <= 90) or (97 <= buf[s] <= 122) or buf[s] == 95
    if verbose:
        p = token_end(buf, s, e)
        numbers[0] = _name_key(buf, s, p)
        p = _word(buf, p, e, 99, 5)
    else:
        numbers[0], p = integer(buf, s, e)
        if numbers[0] < 1:
            p = -1
    numbers[1], p = integer(buf, p, e)
    numbers[2], p = integer(buf, p, e)
    if verbose and p >= 0:
        p = _word(buf, p, e, 110, 4)
    numbers[3], p = integer(buf, p, e)
    node = numbers[3]
    if not (p >= 0 and abs(numbers[1]) < 9 * 10**11 and abs(numbers[2]) < 10**6) or not (
        -1 <= node < 2**31 or node == tb.HOST
    ):
        return tb.GARBAGE, 0, 6, e, False, False
    p = skip_blanks(buf, p, e)
    if numbers[0] == tb.TRACE_MESSAGE or numbers[0] == tb.TRACE_MARKS:
        return _FINE, 0, 6, p, False, False
    count = 0
    while p < e and count < _NUMBERS - _FIELDS:
        value, q = integer(buf, p, e)
        if q >= 0:
            numbers[_FIELDS + count] = value
            count += 1
        elif verbose:
            q = token_end(buf, p, e)
        else:
            break
        p = skip_blanks(buf, q, e)
    return _FINE, count, 6, e, verbose or p >= e, False


@inlined
def _line_b(buf: Bytes, s: int, e: int, numbers: Ints) -> tuple[int, int, int, int, bool, bool]:
    """As `_line_a`, for a line of format B."""
    numbers[0], p = integer(buf, s, e)
    numbers[1], p = integer(buf, p if numbers[0] < 0 else -1, e)
    if p < 0:
        return tb.GARBAGE, 0, 0, e, False, False
    numbers[2], scale, p, dropped, comma = _decimal(buf, p, e)
    for field in range(3, 6):
        numbers[field], p = integer(buf, p, e)
    event, processor, process = numbers[1], numbers[3], numbers[4]
    if not (p >= 0 and -(2**31) <= event < 2**31 and -1 <= processor < 2**31) or not (
        abs(process) < 2**31 and numbers[5] >= 0
    ):
        return (tb.COMMA if comma else tb.GARBAGE), 0, 0, e, False, dropped
    p = skip_blanks(buf, p, e)
    text = p
    count = 0
    if _spoken(numbers) or numbers[5] == 0:
        return _FINE, count, scale, text, False, dropped
    quoted = p < e and buf[p] == 34
    if quoted:
        p += 1
        while p < e and buf[p] != 34:
            p += 1
        p += p < e
    elif p < e:
        code, p = integer(buf, p, e)
        if p < 0 or code == 0:
            return _FINE, count, scale, text, False, dropped
    while p < e and (quoted or count < numbers[5]):
        value, decimals, p, _dropped, _comma = _decimal(buf, p, e)
        if p < 0:
            break
        while decimals > 0:
            value = value // 10 if value >= 0 else -(-value // 10)
            decimals -= 1
        if count < 4:
            numbers[_DATA + count] = value
        count += 1
    short = not quoted and count < numbers[5]
    return (tb.SHORT if short else _FINE), min(count, 4), scale, text, False, dropped


@inlined
def _spoken(numbers: Ints) -> bool:
    """Whether a line of B contains a text: statistics, a message."""
    return bool(-105 <= numbers[0] <= -101 or numbers[0] == -7)


@inlined
def _narrow(value: int) -> np.int32:
    """A number as 32 bits; outside their range the least one, which no processor has."""
    return np.int32(value) if -(2**31) <= value < 2**32 else np.int32(-(2**31))


@inlined
def _fill_a(r: np.void, numbers: Ints, count: int, key: Ints) -> bool:
    """Fill in a record of format A; returns whether it is an entry or exit; then key (3,) is set."""
    code = numbers[0]
    kind = code if code <= tb.TRACE_FILES else tb.UNKNOWN
    a, b, c = numbers[4], numbers[5], numbers[6]
    if kind == tb.COMPSTATS and count >= 4:
        # Verbose lines, and one published description, have busy and idle: idle is the last pair.
        a, b = numbers[6], numbers[7]
    if tb.MESSAGES[kind] >= 0 and count >= 3:
        a, c = c, a
    elif (kind == tb.COMPSTATS or kind == tb.TRACE_FLUSH or kind == tb.TRACE_FILES) and count >= 2:
        a = a * 1000000 + b
    elif (kind == tb.BLOCK_BEGIN or kind == tb.BLOCK_END) and count >= 3:
        if -(2**31) <= a < 2**31:
            key[0], key[1], key[2] = a, b, c
            b, c = c, b
        else:
            count = 0
    r["kind"], r["time"], r["nd"] = kind, numbers[1] * 1000000 + numbers[2], min(count, 8)
    r["d0"] = a if count > 0 else 0
    r["d1"] = b if count > 1 else 0
    r["d2"] = _narrow(c) if count > 2 else 0
    r["d3"] = (min(code, 32000) if code > 0 else 32000) if kind == tb.UNKNOWN else 0
    if kind == tb.RECV_BLOCKING or kind == tb.RECV_WAKING:
        key[0], key[1], key[2] = WAIT, 0, 0
        return True
    return tb.ROLES[kind] != 0 and count >= 3


@inlined
def _fill_b(r: np.void, numbers: Ints, count: int) -> None:
    """Fill in a record of format B."""
    record, event = -numbers[0], numbers[1]
    kind = tb.UNKNOWN
    if 2 <= record <= 4:
        kind = tb.KINDS_B[record - 2, min(max(-event, 0), tb.KINDS_B.shape[1] - 1)]
    elif 5 <= record <= 7:
        kind = tb.LABEL + record - 5
    elif 101 <= record <= 105:
        kind = tb.STATISTICS + record - 101
    r["kind"], r["time"], r["nd"] = kind, numbers[2], count
    r["d0"] = numbers[7] if count > 0 else 0
    r["d1"] = numbers[8] if count > 1 else 0
    r["d2"] = _narrow(numbers[9]) if count > 2 else 0
    r["d3"] = np.int32(numbers[10]) if count > 3 else 0
    if kind == tb.UNKNOWN:
        r["d3"] = -min(record, 32000)


@inlined
def count(findings: Ints, finding: int, line: int) -> None:
    """Count a finding (`tables.FINDINGS`); findings (FOUND, 2): count, and smallest line number."""
    findings[finding, 0] += 1
    if findings[finding, 1] == 0 or line < findings[finding, 1]:
        findings[finding, 1] = line


@inlined
def _note(
    r: np.void, event: int, partners: Ints, fourth: Ints, findings: Ints, notes: Ints, seconds: Floats
) -> None:
    """Note the time, the partner and the kind of a record."""
    t = r["time"] * _POWERS[r["scale"]]
    if notes[USED] == 0:
        seconds[BEGIN] = t
    elif t < seconds[END]:
        seconds[STEP] = max(seconds[STEP], seconds[END] - t)
        count(findings, tb.BACK, r["line"])
    seconds[END], seconds[FURTHEST] = t, max(seconds[FURTHEST], abs(t))
    notes[SCALE] = max(notes[SCALE], r["scale"])
    kind = r["kind"]
    notes[CLOCKS] += kind == tb.CLOCK_SYNC
    defined = event >= 0 or (-len(tb.EVENT_TABLE) < event and tb.EVENT_TABLE[-event])
    notes[ODD] += kind == tb.UNKNOWN or not defined
    if tb.MESSAGES[kind] >= 0 and r["nd"] >= 3:
        side = 1 if tb.MESSAGES[kind] >= _RECEIVES else 0
        if r["d2"] >= 0 or r["d2"] == tb.HOST:
            partners[notes[NAMED]] = r["d2"]
            notes[NAMED] += 1
        if r["nd"] >= 4:
            fourth[side, notes[FOURTH + side]] = r["d3"]
            notes[FOURTH + side] += 1
        else:
            notes[BARE + side] += 1


# Long: all that may be wrong with a line.
@arithmetic
def parse(
    buf: Bytes, form: int, final: bool, line: int, numbers: Ints, rows: AnyArray, units: Ints, keyed: Ints,
    keys: Ints, texts: Ints, partners: Ints, fourth: Ints, findings: Ints, notes: Ints, seconds: Floats,
) -> None:  # fmt: skip
    """Parse lines to records.

    units (N,): processor << 32 | process + 1 (0: none). keyed (N,), keys (N, 3; in B 1): records of entries
    and exits (in B all), and what both share. texts (N, 3): record, begin and end of free text: of keys 16
    and 22 of A; in B of messages, and of statistics all that follows NDATA. partners (N,), fourth (2, N):
    partner and communicator named by sends and receives. findings (FOUND, 2), notes (NOTED,), seconds
    (TIMES,): all 0, but for TAINTED if the block before ended so. final: the file ends with this block, so a
    line without an end may be incomplete. line: the number of lines before.
    """
    n = len(buf)
    i = 0
    while i < n:
        line += 1
        e = i
        while e < n and byte(buf, e) != 10 and byte(buf, e) != 13:
            e += 1
        cut = final and e == n and line > 1
        s = skip_blanks(buf, i, e)
        i = e + 2 if e + 1 < n and buf[e] == 13 and buf[e + 1] == 10 else e + 1
        while e > s and blank(buf[e - 1]):
            e -= 1
        if s == e:
            continue
        dropped = exact = False
        oddity, data, text = tb.COMMENT, 0, 0
        scale = 0
        if buf[s] != 35:
            # A line that is not of this format may be of the other one.
            for attempt in range(2):
                if (form == FORMAT_A) == (attempt == 0):
                    oddity, data, scale, text, exact, dropped = _line_a(buf, s, e, numbers)
                else:
                    oddity, data, scale, text, exact, dropped = _line_b(buf, s, e, numbers)
                if attempt == 1:
                    foreign = oddity == _FINE or oddity == tb.SHORT
                    oddity, dropped = tb.FOREIGN if foreign else tb.GARBAGE, False
                if oddity != tb.GARBAGE:
                    break
        if dropped:
            count(findings, tb.DIGITS, line)
        good = oddity == _FINE or oddity == tb.SHORT
        if notes[TAINTED]:
            want = tb.FIELDS[numbers[0]] if good and 1 <= numbers[0] <= tb.TRACE_FILES else -1
            exempt = numbers[0] == tb.COMPSTATS and data == 4
            notes[TAINTED] = not (exact and want >= 0 and (data == want or exempt))
            if notes[TAINTED]:
                good, oddity = False, tb.CORRUPT
        elif oddity == tb.GARBAGE and not cut and form == FORMAT_A:
            for k in range(s, e - len(_PHRASE) + 1):
                if _same(buf, k, _PHRASE):
                    notes[TAINTED], oddity = 1, tb.CORRUPT
        if good and form == FORMAT_A and numbers[0] <= tb.TRACE_FILES and data < tb.FIELDS[numbers[0]]:
            oddity, data = tb.SHORT, 0
        if cut and oddity != tb.COMMENT:
            statistic = form == FORMAT_B and -105 <= numbers[0] <= -101
            good = good and oddity == _FINE and not statistic
            oddity = tb.UNENDED if good else (tb.CORRUPT if notes[TAINTED] else tb.CUT)
        if oddity >= 0:
            count(findings, oddity, line)
        if not good:
            continue
        notes[FIRST] = line if notes[FIRST] == 0 else notes[FIRST]
        processor = numbers[3]
        if processor == -1 or (form == FORMAT_B and -203 <= numbers[0] <= -201):
            count(findings, tb.DEFINITION, line)
            continue
        used = notes[USED]
        r = rows[used]
        r["line"], r["key"], r["scale"] = line, -1, scale
        event = 0
        if form == FORMAT_A:
            shared = _fill_a(r, numbers, data, keys[notes[KEYED]])
            units[used] = processor << 32
        else:
            event, shared = numbers[1], True
            _fill_b(r, numbers, 0 if oddity == tb.SHORT else data)
            units[used] = (processor << 32) | (max(numbers[4], -1) + 1)
            keys[notes[KEYED], 0] = event
        keyed[notes[KEYED]] = used
        notes[KEYED] += shared
        carries = form == FORMAT_A or _spoken(numbers) or event == tb.TRACE_MESSAGE_B
        if carries and 0 < text < e:
            spoken = notes[SPOKEN]
            texts[spoken, 0], texts[spoken, 1], texts[spoken, 2] = used, text, e
            notes[SPOKEN] += 1
        _note(r, event, partners, fourth, findings, notes, seconds)
        notes[USED] += 1


@dataclass
class Parsed:
    """The contents of a block, see `parse`: records (their keys are not dense yet), the unit of each, which
    records have a key and the keys, texts by record, partners, fourth fields of sends and of receives."""

    rows: AnyArray
    units: Ints
    keyed: Ints
    keys: Ints
    texts: list[tuple[int, str]]
    partners: Ints
    fourth: tuple[Ints, Ints]
    findings: Ints
    notes: Ints
    seconds: Floats


def read_lines(
    block: bytes, form: int, final: bool, lines: int, before: int, tainted: bool = False
) -> Parsed:
    """Records of a block of `lines` whole lines, with `before` lines before it. May run in any thread."""
    rows = np.empty(lines, RECORD)
    units, keyed, partners = np.empty((3, lines), np.int64)
    keys, fourth = np.empty((lines, WIDTHS[form]), np.int64), np.empty((2, lines), np.int64)
    texts = np.empty((lines, 3), np.int64)
    spoken_texts, notes, seconds = (
        np.zeros((tb.FOUND, 2), np.int64),
        np.zeros(NOTED, np.int64),
        np.zeros(TIMES),
    )
    notes[TAINTED] = tainted
    buf, numbers = np.frombuffer(block, np.uint8), np.zeros(_NUMBERS, np.int64)
    parse(
        buf, form, final, before, numbers, rows, units, keyed, keys, texts, partners, fourth, spoken_texts,
        notes, seconds,
    )  # fmt: skip
    used, locked, spoken = notes[: SPOKEN + 1].tolist()
    words = [(row, block[begin:end].decode("latin-1")) for row, begin, end in texts[:spoken].tolist()]
    return Parsed(
        rows[:used], units[:used], keyed[:locked], keys[:locked], words, partners[: notes[NAMED]],
        (fourth[0, : notes[FOURTH]], fourth[1, : notes[FOURTH + 1]]), spoken_texts, notes, seconds,
    )  # fmt: skip

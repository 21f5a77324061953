"""From bytes to records: the line grammars of PICL 1 (format A) and PICL 2 (format B).

A block of whole lines goes in, one structured array of `RECORD` comes out; nothing is built per line in
Python. Both formats share the record: `record` is the key of A or the negated record type of B, and a
send or receive has bytes, tag, partner (and in B a fourth field) in `d0` .. `d3`.

Sources: the node library of PICL 1.x (A), ORNL/TM-12125 as MPICL and others write it (B).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from desktop.core.jit import kernel

FORMAT_A, FORMAT_B = 0, 1
HOST = -32768
#: Keys of records that are no block: none, and waiting for a message.
NONE, WAIT = -1, -2

#: time is in units of 10**-scale seconds; nd: how many of d0.. were in the line.
RECORD = np.dtype(
    [
        ("time", "i8"),
        ("line", "i8"),
        ("unit", "i8"),  # processor << 32 | process + 1 (0: none)
        ("key", "i8"),  # what entries and exits must share to belong together
        ("d0", "i8"),
        ("d1", "i8"),
        ("d2", "i8"),
        ("d3", "i8"),
        ("event", "i4"),
        ("record", "i2"),
        ("nd", "i1"),
        ("scale", "i1"),
    ],
    align=True,
)

#: Names of format A by key; 22 has two.
NAMES = (
    "",
    "trace_start",
    "open",
    "load",
    "send",
    "probe",
    "recv",
    "recv_blocking",
    "recv_waking",
    "message",
    "sync",
    "compstats",
    "commstats",
    "close",
    "trace_level",
    "trace_mark",
    "trace_message",
    "trace_stop",
    "trace_flush",
    "trace_exit",
    "block_begin",
    "block_end",
    "trace_marks",
    "clock_sync",
    "trace_files",
    "trace_mark_array",
)
_TEXTS = b"".join(name.encode() for name in NAMES)
_NAME_BYTES = np.frombuffer(_TEXTS, np.uint8).copy()
_NAME_ENDS = np.cumsum([len(name) for name in NAMES]).astype(np.int64)

#: Fields after the node that a key of A must have; -1: any (text, or not known).
FIELDS = np.array(
    [-1, 3, -1, -1, 3, 1, 3, 1, 3, 0, 0, 2, 5, 0, 3, 1, -1, -1, 2, 1, 3, 3, -1, 0, 2], dtype=np.int64
)

#: Record types of B.
RECORDS_B = frozenset((2, 3, 4, 5, 6, 7, 101, 102, 103, 104, 105, 201, 202, 203))

# What can be wrong with a line: index into `counts` and `firsts`.
GARBAGE, COMMENT, SHORT, CUT, FOREIGN, COMMA, CORRUPT, DIGITS, DEFINITION, UNENDED, ODDITIES = range(11)

# Positions in the state that goes from block to block.
LINE, CORRUPTED, FIRST_RECORD, RECORDS, STATE = range(5)


@kernel
def _blank(c: int) -> bool:
    return c == 32 or c == 9 or c == 11 or c == 12


@kernel
def _skip(buf: Any, p: int, end: int) -> int:
    while p < end and _blank(buf[p]):
        p += 1
    return p


@kernel
def _token_end(buf: Any, p: int, end: int) -> int:
    while p < end and not _blank(buf[p]):
        p += 1
    return p


@kernel
def _integer(buf: Any, p: int, end: int) -> Any:
    """Value and end of the integer token at p; end -1 when the token is no integer of 18 digits."""
    negative = False
    if p < end and (buf[p] == 45 or buf[p] == 43):
        negative = buf[p] == 45
        p += 1
    start = p
    value = np.int64(0)
    while p < end and 48 <= buf[p] <= 57:
        if p - start >= 18:
            return np.int64(0), -1
        value = value * 10 + (buf[p] - 48)
        p += 1
    if p == start or (p < end and not _blank(buf[p])):
        return np.int64(0), -1
    return (-value if negative else value), p


@kernel
def _decimal(buf: Any, p: int, end: int) -> Any:
    """Mantissa, decimals, end and remark of the number at p.

    The number is mantissa * 10**-decimals. end -1: no number. remark 1: digits beyond the 18th were
    dropped, 2: a comma stands where the point should.
    """
    negative = False
    remark = 0
    if p < end and (buf[p] == 45 or buf[p] == 43):
        negative = buf[p] == 45
        p += 1
    value: Any = np.int64(0)
    decimals: Any = np.int64(0)
    kept = 0
    digits = 0
    point = False
    while p < end:
        c = buf[p]
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
    if p < end and (buf[p] == 69 or buf[p] == 101 or buf[p] == 68 or buf[p] == 100):
        exponent, p = _integer(buf, p + 1, end)
        if p < 0 or exponent > 40 or exponent < -40:
            return np.int64(0), np.int64(0), -1, 0
        decimals -= exponent
    elif p < end and not _blank(buf[p]):
        return np.int64(0), np.int64(0), -1, 0
    while decimals < 0 and abs(value) < 10**17:
        value *= 10
        decimals += 1
    if value == 0:
        decimals = min(max(decimals, 0), 6)
    if decimals < 0 or decimals > 40:
        return np.int64(0), np.int64(0), -1, 0
    return (-value if negative else value), decimals, p, remark


@kernel
def _name_key(buf: Any, p: int, q: int, names: Any, ends: Any) -> int:
    """Key of format A whose name stands in buf[p:q], 0 when there is none."""
    for key in range(1, len(ends)):
        begin = ends[key - 1]
        if ends[key] - begin != q - p:
            continue
        same = True
        for i in range(q - p):
            if buf[p + i] != names[begin + i]:
                same = False
                break
        if same:
            return 22 if key == 25 else key
    return 0


@kernel
def _word(buf: Any, p: int, end: int, first: int, length: int) -> int:
    """End of a label of that first letter and length at p (blanks before it are skipped), or -1."""
    p = _skip(buf, p, end)
    q = _token_end(buf, p, end)
    return q if q - p == length and buf[p] == first else -1


@kernel
def _mentions_corruption(buf: Any, p: int, end: int, phrase: Any) -> bool:
    for i in range(p, end - len(phrase) + 1):
        same = True
        for k in range(len(phrase)):
            if buf[i + k] != phrase[k]:
                same = False
                break
        if same:
            return True
    return False


@kernel
def _mix(a: int, b: int, c: int) -> Any:
    """One number for a triple (block type, location, parameter)."""
    h = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ (h >> np.uint64(29))) + np.uint64(b) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(31))) + np.uint64(c) * np.uint64(0x94D049BB133111EB)
    h ^= h >> np.uint64(30)
    return np.int64(h >> np.uint64(1))


@kernel
def parse_a(
    buf: Any,
    final: bool,
    out: Any,
    state: Any,
    counts: Any,
    firsts: Any,
    texts: Any,
    fields: Any,
    names: Any,
    ends: Any,
    phrase: Any,
) -> Any:
    """Lines of format A to records; returns how many records and texts.

    `texts` (K, 3) gets record index, begin and end of the free text of keys 16 and 22. `final`: the file
    ends with this block, so a line without an end may be cut.
    """
    n = len(buf)
    rows = 0
    spoken = 0
    i = 0
    values = np.empty(8, np.int64)
    while i < n:
        j = i
        while j < n and buf[j] != 10 and buf[j] != 13:
            j += 1
        s, e = i, j
        i = j + 2 if j + 1 < n and buf[j] == 13 and buf[j + 1] == 10 else j + 1
        state[LINE] += 1
        line = state[LINE]
        s = _skip(buf, s, e)
        while e > s and _blank(buf[e - 1]):
            e -= 1
        if s == e:
            continue
        oddity = -1
        cut = final and j == n and line > 1
        if buf[s] == 35:
            oddity = COMMENT
        c = buf[s]
        key: Any = np.int64(0)
        p = s
        verbose = (65 <= c <= 90) or (97 <= c <= 122) or c == 95
        good = oddity < 0
        if good and verbose:
            p = _token_end(buf, s, e)
            key = _name_key(buf, s, p, names, ends)
            p = _word(buf, p, e, 99, 5)
            good = p >= 0
        elif good:
            key, p = _integer(buf, s, e)
            good = p >= 0
            if good and key < 1:
                good = False
                _other, q = _integer(buf, _skip(buf, p, e), e)
                if q >= 0:
                    _value, _scale, q, _remark = _decimal(buf, _skip(buf, q, e), e)
                    if q >= 0 and key < 0:
                        oddity = FOREIGN
        second = np.int64(0)
        micro = np.int64(0)
        node = np.int64(0)
        if good:
            second, p = _integer(buf, _skip(buf, p, e), e)
            good = p >= 0 and abs(second) < 9 * 10**11
        if good:
            micro, p = _integer(buf, _skip(buf, p, e), e)
            good = p >= 0 and abs(micro) < 1000000
        if good and verbose:
            p = _word(buf, p, e, 110, 4)
            good = p >= 0
        if good:
            node, p = _integer(buf, _skip(buf, p, e), e)
            good = p >= 0 and (-1 <= node < 2**31 or node == HOST)
        nd = 0
        text_from = 0
        want = np.int64(-1)
        if good:
            if key > 24 or key < 1:
                key = 32000 if key > 32000 or key < 1 else key
            else:
                want = fields[key]
            if key == 16 or key == 22:
                text_from = _skip(buf, p, e)
            else:
                while nd < 8:
                    p = _skip(buf, p, e)
                    if p >= e:
                        break
                    value, q = _integer(buf, p, e)
                    if q < 0:
                        if not verbose:
                            break
                        p = _token_end(buf, p, e)
                        continue
                    values[nd] = value
                    nd += 1
                    p = q
            if key == 11 and nd >= 4:
                # Verbose lines, and one published description, give busy and idle: idle is the last pair.
                values[0], values[1] = values[2], values[3]
            if state[CORRUPTED] == 1:
                exact = want >= 0 and (nd == want or (key == 11 and nd == 4))
                if exact and (verbose or p >= e):
                    state[CORRUPTED] = 0
                else:
                    good = False
            elif want >= 0 and nd < want:
                oddity = SHORT
                nd = 0
                if cut:
                    good = False
        if not good:
            if state[CORRUPTED] == 1:
                oddity = CORRUPT
            elif cut and oddity != COMMENT:
                oddity = CUT
            elif oddity < 0:
                oddity = GARBAGE
                if _mentions_corruption(buf, s, e, phrase):
                    oddity = CORRUPT
                    state[CORRUPTED] = 1
        elif cut:
            oddity = UNENDED
        if oddity >= 0:
            counts[oddity] += 1
            if firsts[oddity] == 0:
                firsts[oddity] = line
        if not good:
            continue
        if state[FIRST_RECORD] == 0:
            state[FIRST_RECORD] = line
        if node == -1:
            counts[DEFINITION] += 1
            if firsts[DEFINITION] == 0:
                firsts[DEFINITION] = line
            continue
        r = out[rows]
        r["time"] = second * 1000000 + micro
        r["line"] = line
        r["unit"] = node << 32
        r["key"] = WAIT if key == 7 or key == 8 else NONE
        r["record"] = key
        r["event"] = 0
        r["scale"] = 6
        r["nd"] = nd
        r["d0"] = values[0] if nd > 0 else 0
        r["d1"] = values[1] if nd > 1 else 0
        r["d2"] = values[2] if nd > 2 else 0
        r["d3"] = 0
        if (key == 4 or key == 6 or key == 8) and nd >= 3:
            r["d0"] = values[2]
            r["d2"] = values[0]
        elif (key == 11 or key == 18 or key == 24) and nd >= 2:
            r["d0"] = values[0] * 1000000 + values[1]
        elif (key == 20 or key == 21) and nd >= 3:
            if -(2**31) <= values[0] < 2**31:
                r["event"] = values[0]
                r["d0"] = values[1]
                r["d1"] = values[2]
                r["key"] = _mix(values[0], values[1], values[2])
            else:
                r["nd"] = 0
        if text_from > 0 and text_from < e and spoken < len(texts):
            texts[spoken, 0] = rows
            texts[spoken, 1] = text_from
            texts[spoken, 2] = e
            spoken += 1
        rows += 1
    state[RECORDS] += rows
    return rows, spoken


@kernel
def parse_b(buf: Any, final: bool, out: Any, state: Any, counts: Any, firsts: Any, texts: Any) -> Any:
    """Lines of format B to records; returns how many records and texts.

    `texts` gets the free text of message records and tracemsg events, and of statistics (record types
    101 .. 105) all that follows NDATA.
    """
    n = len(buf)
    rows = 0
    spoken = 0
    i = 0
    values = np.empty(4, np.int64)
    while i < n:
        j = i
        while j < n and buf[j] != 10 and buf[j] != 13:
            j += 1
        s, e = i, j
        i = j + 2 if j + 1 < n and buf[j] == 13 and buf[j + 1] == 10 else j + 1
        state[LINE] += 1
        line = state[LINE]
        s = _skip(buf, s, e)
        while e > s and _blank(buf[e - 1]):
            e -= 1
        if s == e:
            continue
        oddity = -1
        cut = final and j == n and line > 1
        if buf[s] == 35:
            oddity = COMMENT
        good = oddity < 0
        kind, p = _integer(buf, s, e)
        if good and (p < 0 or kind >= 0):
            good = False
            if p >= 0 and kind > 0:
                q = p
                ints = 0
                while q >= 0 and ints < 3:
                    _other, q = _integer(buf, _skip(buf, q, e), e)
                    if q >= 0:
                        ints += 1
                if ints == 3:
                    oddity = FOREIGN
            elif _token_end(buf, s, e) - s > 3:
                q = _word(buf, _token_end(buf, s, e), e, 99, 5)
                if q >= 0:
                    _second, q = _integer(buf, _skip(buf, q, e), e)
                    if q >= 0:
                        oddity = FOREIGN
        event = np.int64(0)
        time = np.int64(0)
        scale = np.int64(0)
        processor = np.int64(0)
        process: Any = np.int64(0)
        ndata = np.int64(0)
        if good:
            event, p = _integer(buf, _skip(buf, p, e), e)
            good = p >= 0 and -(2**31) <= event < 2**31
        if good:
            time, scale, p, remark = _decimal(buf, _skip(buf, p, e), e)
            good = p >= 0
            if remark == 2:
                oddity = COMMA
            elif remark == 1:
                counts[DIGITS] += 1
                if firsts[DIGITS] == 0:
                    firsts[DIGITS] = line
        if good:
            processor, p = _integer(buf, _skip(buf, p, e), e)
            good = p >= 0 and -1 <= processor < 2**31
        if good:
            process, p = _integer(buf, _skip(buf, p, e), e)
            good = p >= 0 and abs(process) < 2**31
        if good:
            ndata, p = _integer(buf, _skip(buf, p, e), e)
            good = p >= 0 and ndata >= 0
        nd = 0
        rest = 0
        if good:
            kind = -kind
            if kind > 32000:
                kind = 32000
            p = _skip(buf, p, e)
            rest = p
            statistic = 101 <= kind <= 105
            if not statistic and kind != 7 and ndata > 0:
                quoted = p < e and buf[p] == 34
                text = False
                if quoted:
                    p += 1
                    while p < e and buf[p] != 34:
                        p += 1
                    if p < e:
                        p += 1
                elif p < e:
                    code, p = _integer(buf, p, e)
                    text = p < 0 or code == 0
                want = ndata if not text and not quoted else np.int64(0)
                seen = np.int64(0)
                while not text and p < e and (quoted or seen < ndata):
                    p = _skip(buf, p, e)
                    value, decimals, q, remark = _decimal(buf, p, e)
                    if q < 0:
                        break
                    while decimals > 0:
                        value = value // 10 if value >= 0 else -(-value // 10)
                        decimals -= 1
                    if nd < 4:
                        values[nd] = value
                        nd += 1
                    seen += 1
                    p = q
                if seen < want:
                    oddity = SHORT
                    nd = 0
            if statistic and cut:
                oddity = SHORT
            if oddity == SHORT and cut:
                good = False
        if not good:
            if cut and oddity != COMMENT:
                oddity = CUT
            elif oddity < 0:
                oddity = GARBAGE
        elif cut:
            oddity = UNENDED
        if oddity >= 0:
            counts[oddity] += 1
            if firsts[oddity] == 0:
                firsts[oddity] = line
        if not good:
            continue
        if state[FIRST_RECORD] == 0:
            state[FIRST_RECORD] = line
        if processor == -1 or kind == 201 or kind == 202 or kind == 203:
            counts[DEFINITION] += 1
            if firsts[DEFINITION] == 0:
                firsts[DEFINITION] = line
            continue
        r = out[rows]
        r["time"] = time
        r["line"] = line
        r["unit"] = (processor << 32) | (max(process, -1) + 1)
        r["key"] = event
        r["record"] = kind
        r["event"] = event
        r["scale"] = scale
        r["nd"] = nd
        r["d0"] = values[0] if nd > 0 else 0
        r["d1"] = values[1] if nd > 1 else 0
        r["d2"] = values[2] if nd > 2 else 0
        r["d3"] = values[3] if nd > 3 else 0
        spoken_line = statistic or kind == 7 or event == -911
        if spoken_line and rest < e and spoken < len(texts):
            texts[spoken, 0] = rows
            texts[spoken, 1] = rest
            texts[spoken, 2] = e
            spoken += 1
        rows += 1
    state[RECORDS] += rows
    return rows, spoken


class LineReader:
    """Parses blocks of whole lines of one format, remembering counts and line numbers between them."""

    def __init__(self, form: int) -> None:
        self.form = form
        self.state = np.zeros(STATE, np.int64)
        self.counts = np.zeros(ODDITIES, np.int64)
        self.firsts = np.zeros(ODDITIES, np.int64)
        self._phrase = np.frombuffer(b"is not a legal record type", np.uint8).copy()

    def parse(self, block: bytes, final: bool) -> tuple[np.ndarray[Any, Any], list[tuple[int, str]]]:
        """Records of the block, and (record index, text) of those that carry free text.

        A line of the very last block without a line end counts as cut unless it is complete.
        """
        buf = np.frombuffer(block, np.uint8)
        lines = int(np.count_nonzero(buf == 10) + np.count_nonzero(buf == 13)) + 1
        out = np.empty(lines, RECORD)
        texts = np.empty((lines, 3), np.int64)
        if self.form == FORMAT_A:
            rows, spoken = parse_a(
                buf,
                final,
                out,
                self.state,
                self.counts,
                self.firsts,
                texts,
                FIELDS,
                _NAME_BYTES,
                _NAME_ENDS,
                self._phrase,
            )
        else:
            rows, spoken = parse_b(buf, final, out, self.state, self.counts, self.firsts, texts)
        found = [
            (int(row), block[begin:end].decode("latin-1")) for row, begin, end in texts[:spoken].tolist()
        ]
        return out[:rows], found

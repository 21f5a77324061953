"""A plain curve: two columns, time and processors computing; the last row gives the end time.

These are the "ordered pairs" of ORNL/TM-11637, section 3.2. Columns are separated by white space, commas,
semicolons or tabs; ``#`` starts a comment; one line of column names may come first.

Rows of two plain numbers, which are nearly all, are read by a kernel; Python reads the others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from desktop.core.arrays import Bytes, Floats, Ints
from desktop.core.jit import arithmetic, inlined, kernel
from desktop.data.events import UNITS, Importer, ImportReport, Location, Sink
from desktop.data.lines import NumberedBlock, decimal, detected, in_order, numbered
from desktop.errors import TraceFormatError
from desktop.progress import Progress

LONGEST_LINE = 1 << 16
_HINT = "every row needs a time and a number of processors"
_SEPARATOR = re.compile(r"[,;\s]+")
_POWERS = 10.0 ** np.arange(23)


def detect(path: Path, head: bytes) -> bool:
    """Whether `head` is text whose rows, comments and a line of column names apart, begin with a number."""
    return detected(path, head, _is_curve)


def _is_curve(head: bytes, _whole: bool) -> bool:
    if b"\0" in head:
        return False
    lines = head.decode("utf-8-sig", errors="replace").splitlines()
    rows = [row for row in map(_fields, lines) if row][:2]
    # A file that is wrong further on is recognised too, so that the error can say what is wrong.
    return any(_is_number(row[0]) for row in rows)


@kernel
def _scaled(value: int, decimals: int, powers: Floats) -> tuple[float, bool]:
    """value / 10**decimals, and whether it is surely correctly rounded; both >= 0, below 10**18 and 23.

    Below 2**53 both numbers are exact, so the division is correctly rounded (Clinger, PLDI 1990). Above, the
    value is held in two float64 and the result known to about 100 bits (Dekker, Numer. Math. 18, 1971), which
    is enough unless it is that close to the middle of two float64.
    """
    high, power = np.float64(value), powers[decimals]
    result = high / power
    if value < 1 << 53:
        return result, True
    low = np.float64(value - np.int64(high))
    split = 134217729.0 * result
    a_high = split - (split - result)
    split = 134217729.0 * power
    b_high = split - (split - power)
    a_low, b_low = result - a_high, power - b_high
    product = result * power
    rest = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    correction = ((high - product) - rest + low) / power
    doubt = result * 2.0**-95
    return result + correction, result + (correction - doubt) == result + (correction + doubt)


@kernel
def _number(buf: Bytes, i: int, end: int, powers: Floats) -> tuple[float, int]:
    """The number at i and where it ends; -1 if there is none, or its rounding is not certain."""
    value, decimals, after, dropped = decimal(buf, i, end, False)
    if after < 0 or dropped or decimals > 22:
        return 0.0, -1
    number, sure = _scaled(abs(value), decimals, powers)
    return (-number if buf[i] == 45 else number), (after if sure else -1)


@inlined
def _plain(buf: Bytes, i: int, powers: Floats, time: Floats, level: Floats, row: int) -> int:
    """Read the line at i if it is two short numbers separated by one byte; the begin of the next, else -1.

    The buffer must contain a line feed at or after i.
    """
    for field in range(2):
        digit = np.int64(buf[i]) - 48
        value = np.int64(0)
        decimals = 0
        start = i
        while 0 <= digit <= 9:
            value = value * 10 + digit
            i += 1
            digit = np.int64(buf[i]) - 48
        size = i - start
        if digit == -2:
            i += 1
            start = i
            digit = np.int64(buf[i]) - 48
            while 0 <= digit <= 9:
                value = value * 10 + digit
                i += 1
                digit = np.int64(buf[i]) - 48
            decimals = i - start
            size += decimals
        if size == 0 or size > 15:
            return -1
        if field == 0:
            time[row] = value / powers[decimals]
            if digit != -16 and digit != -4 and digit != -39:
                return -1
            i += 1
        else:
            level[row] = value / powers[decimals]
    if digit == -35:
        i += 1
    return i + 1 if buf[i] == 10 else -1


@arithmetic
def _rows(buf: Bytes, line: int, powers: Floats, time: Floats, level: Floats, odd: Ints) -> tuple[int, int]:
    """Read a block of whole lines; returns the number of rows and of odd lines.

    odd (K, 4), result: for each line that is not two plain numbers its row, line number, begin and end; its
    row is left unset. line: the number of lines before the block.
    """
    n = len(buf)
    safe = n
    while safe > 0 and buf[safe - 1] != 10:
        safe -= 1
    used = strange = 0
    i = 0
    while i < n:
        line += 1
        following = _plain(buf, i, powers, time, level, used) if i < safe else -1
        if following >= 0:
            used += 1
            i = following
            continue
        begin = i
        fields = 0
        while fields < 3:
            while i < n and (buf[i] == 32 or buf[i] == 44 or buf[i] == 9 or buf[i] == 59):
                i += 1
            if i == n or buf[i] == 10 or buf[i] == 13 or buf[i] == 35:
                break
            number, after = _number(buf, i, n, powers)
            if after < 0 or (after < n and buf[after] > 35 and buf[after] != 44 and buf[after] != 59):
                fields = 3
            elif fields == 0:
                time[used] = number
            elif fields == 1:
                level[used] = number
            fields += 1
            i = after if fields < 3 else i
        while i < n and buf[i] != 10 and buf[i] != 13:
            i += 1
        if fields != 0 and fields != 2:
            odd[strange, 0], odd[strange, 1], odd[strange, 2], odd[strange, 3] = used, line, begin, i
            strange += 1
        if fields != 0:
            used += 1
        i += 2 if i + 1 < n and buf[i] == 13 and buf[i + 1] == 10 else 1
    return used, strange


def read_curve(
    path: Path, progress: Progress | None = None, report: ImportReport | None = None
) -> Iterator[tuple[Floats, Floats]]:
    """Blocks of times, as they are in the file, and levels; the level of the very last row has no meaning.

    Raises
    ------
    TraceFormatError : a line is no row of a curve; it names the line.
    """
    progress, report = progress or Progress(), report or ImportReport()
    total = path.stat().st_size
    last = -math.inf
    rows = names = 0
    for block, before, done, time, level, odd in in_order(_parse, numbered(path, report)):
        empty: list[int] = []
        for row, number, begin, end in odd.tolist():
            if end - begin > LONGEST_LINE:
                raise TraceFormatError(
                    "has a line that is too long", file=path, where=f"line {number}", hint=_HINT
                )
            fields = _fields(block[begin:end].decode("utf-8", "replace"))
            if fields and not names and rows + row == len(empty) and not _is_number(fields[0]):
                names = _names(path, fields, number)
            elif not fields:
                empty.append(row)
            elif _wrong(fields, -math.inf):
                raise _explain(path, block, before, last, names)
            else:
                time[row], level[row] = map(float, fields)
            if names == number:
                empty.append(row)
        if empty:
            time, level = np.delete(time, empty), np.delete(level, empty)
        if time.size:
            if not (time[0] > last and (time[1:] > time[:-1]).all() and (level >= 0).all()):
                raise _explain(path, block, before, last, names)
            rows += time.size
            last = float(time[-1])
            yield time, level
        progress.step(done, total, "reading rows")
    if rows < 2:
        reason = "has only one row" if rows else "has no row of numbers"
        hint = "a curve needs at least two rows, the last one gives the end time"
        raise TraceFormatError(reason, file=path, hint=hint)


def _parse(item: NumberedBlock) -> tuple[bytes, int, int, Floats, Floats, Ints]:
    """The block, lines before, bytes read, times, levels, and the lines that are odd."""
    block, _, lines, before, done = item
    time, level, odd = np.empty(lines), np.empty(lines), np.empty((lines, 4), np.int64)
    used, strange = _rows(np.frombuffer(block, np.uint8), before, _POWERS, time, level, odd)
    return block, before, done, time[:used], level[:used], odd[:strange]


def _names(path: Path, fields: list[str], number: int) -> int:
    """The number of the line of column names, if there are two of them."""
    if len(fields) != 2:
        raise TraceFormatError(
            f"names {len(fields)} columns instead of 2", file=path, where=f"line {number}", hint=_HINT
        )
    return number


def _explain(path: Path, block: bytes, before: int, last: float, names: int) -> TraceFormatError:
    """The error of the first wrong line; `names`: the line of column names, which is not wrong."""
    for place, line in enumerate(re.split("\r\n|\n|\r", block.decode("utf-8", "replace")), before + 1):
        fields = _fields(line)
        if fields and place != names:
            wrong = _wrong(fields, last)
            if wrong:
                return TraceFormatError(wrong, file=path, where=f"line {place}", hint=_HINT)
            last = float(fields[0])
    return TraceFormatError(
        "has a row that cannot be read", file=path, where=f"after line {before}", hint=_HINT
    )


def _wrong(fields: list[str], last: float) -> str:
    if len(fields) != 2:
        return f"has {len(fields)} column{'s' * (len(fields) != 1)} instead of 2"
    values = []
    for name, field in zip(("time", "level"), fields, strict=True):
        try:
            # float() alone would also take 1_000.
            values.append(float(field if "_" not in field else "_"))
        except ValueError:
            return f"the {name} {field[:40]!r} is not a number"
        if not math.isfinite(values[-1]):
            return f"the {name} {field[:40]!r} is not a finite number"
    time, level = values
    if not time > last:
        return f"the time {time!r} does not come after {last!r}"
    if level < 0:
        return f"the level {level!r} is negative"
    return ""


def _fields(line: str) -> list[str]:
    return [field for field in _SEPARATOR.split(line.split("#", 1)[0].strip()) if field]


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def read(path: Path, sink: Sink, progress: Progress, unit: str = "s") -> None:
    sink.describe(ticks_per_second=UNITS[unit])
    location = Location(0, name=path.name, kind="host")
    curve = sink.location(location)
    for time, level in read_curve(path, progress, sink.report):
        sink.append("curve", curve, time=time, level=level)
        location.records += time.size


IMPORTER = Importer(
    id="curve",
    title="curve (two columns: time, processors)",
    version="2",
    detect=detect,
    read=read,
    files=lambda path: [path],
    takes_unit=True,
    patterns=("*.csv", "*.txt", "*.dat"),
)

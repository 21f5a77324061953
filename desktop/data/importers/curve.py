"""A plain curve: two columns, time and processors computing; the last row gives the end time.

These are the "ordered pairs" of ORNL/TM-11637, section 3.2. Columns are parted by white space, commas,
semicolons or tabs; ``#`` begins a comment; one line of column names may come first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from desktop.data.events import Importer, Location, Sink
from desktop.errors import TraceFormatError
from desktop.progress import Progress

#: Units in which times may be given: how many of them are a second.
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}

READ_AT_ONCE = 1 << 21  # characters: the step of progress and cancel
LONGEST_LINE = 1 << 16
_HINT = "every row needs a time and a number of processors"
_SEPARATOR = re.compile(r"[,;\s]+")


def detect(path: Path, head: bytes) -> bool:
    """Text whose rows, comments and a line of column names apart, begin with a number."""
    if path.is_dir() or b"\0" in head:
        return False
    lines = head.decode("utf-8-sig", errors="replace").splitlines()
    rows = [row for row in map(_fields, lines) if row][:2]
    # Rows that are wrong further on are recognised too, so that the sentence can say what is wrong.
    return any(_is_number(row[0]) for row in rows)


def read_curve(
    path: Path, progress: Progress | None = None
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Blocks of times, as they stand in the file, and levels; the level of the very last row has no meaning.

    Raises
    ------
    TraceFormatError : naming the line that is no row of a curve.
    Cancelled : by `progress`.
    """
    progress = progress or Progress()
    total = path.stat().st_size
    last = -math.inf
    rows = done = passed = 0
    for lines in _lines(path):
        start = passed + 1
        passed += len(lines)
        done += sum(map(len, lines))
        if not rows:
            names = _names(path, lines, start)
            lines, start = lines[names:], start + names
        time, level = _parse(path, lines, start, last)
        if time.size:
            rows += time.size
            last = float(time[-1])
            yield time, level
        progress.step(done, total, "reading rows")
    if rows < 2:
        raise TraceFormatError(
            "has only one row" if rows else "has no row of numbers",
            file=path,
            hint="a curve needs at least two rows, the last one gives the end time",
        )


def _lines(path: Path) -> Iterator[list[str]]:
    """Blocks of whole lines."""
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        rest, passed = "", 0
        while block := file.read(READ_AT_ONCE):
            lines = (rest + block).split("\n")
            rest = lines.pop()
            if len(rest) > LONGEST_LINE:
                raise TraceFormatError(
                    "has a line that is too long",
                    file=path,
                    where=f"line {passed + len(lines) + 1}",
                    hint=_HINT,
                )
            if lines:
                passed += len(lines)
                yield lines
        if rest:
            yield [rest]


def _names(path: Path, lines: list[str], number: int) -> int:
    """How many lines to pass over because column names end there; 0 if there are none."""
    for passed, line in enumerate(lines):
        fields = _fields(line)
        if not fields:
            continue
        if number > 1 or _is_number(fields[0]):
            return 0
        if len(fields) != 2:
            raise TraceFormatError(
                f"names {len(fields)} columns instead of 2",
                file=path,
                where=f"line {number + passed}",
                hint=_HINT,
            )
        return passed + 1
    return 0


def _parse(
    path: Path, lines: list[str], number: int, last: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows of the lines, the first of which has that number and must come after time `last`."""
    text = "\n".join(lines).replace(",", " ").replace(";", " ")
    if "#" in text:
        text = re.sub(r"#[^\n]*", "", text)
    try:
        # loadtxt wants the same number of columns in each row and skips empty lines.
        rows = np.loadtxt(text.split("\n"), ndmin=2) if text.strip() else np.empty((0, 2))
    except ValueError:
        rows = None
    if rows is not None and rows.shape[1] == 2:
        time, level = np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 1])
        good = np.isfinite(rows).all() and (level >= 0).all() and (np.diff(time, prepend=last) > 0).all()
        if good:
            return time, level
    raise _explain(path, lines, number, last)


def _explain(path: Path, lines: list[str], number: int, last: float) -> TraceFormatError:
    """The first line that is wrong, and why."""
    for place, line in enumerate(lines, number):
        fields = _fields(line)
        if fields:
            wrong = _wrong(fields, last)
            if wrong:
                return TraceFormatError(wrong, file=path, where=f"line {place}", hint=_HINT)
            last = float(fields[0])
    return TraceFormatError(
        "has a row that cannot be read", file=path, where=f"after line {number}", hint=_HINT
    )


def _wrong(fields: list[str], last: float) -> str:
    if len(fields) != 2:
        return f"has {len(fields)} column{'s' * (len(fields) != 1)} instead of 2"
    values = []
    for name, field in zip(("time", "level"), fields, strict=True):
        try:
            # float() alone would also take what loadtxt does not, such as 1_000.
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
    for time, level in read_curve(path, progress):
        sink.append("curve", curve, time=time, level=level)
        location.records += time.size


IMPORTER = Importer(
    id="curve",
    title="curve (two columns: time, processors)",
    version="1",
    detect=detect,
    read=read,
    files=lambda path: [path],
    patterns=("*.csv", "*.txt", "*.dat"),
)


def importer_in(unit: str) -> Importer:
    """The importer for files whose times are in that unit, one of `UNITS`."""
    return replace(IMPORTER, version=f"{IMPORTER.version} ({unit})", read=partial(read, unit=unit))

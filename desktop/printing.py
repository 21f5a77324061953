"""Safe output of text from strangers: one line without control characters, cells of spreadsheets that are no
formulas, and streams for terminals without escape sequences."""

from __future__ import annotations

import csv
import io
import math
import re
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TextIO

from desktop.progress import Progress

_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff"
    "\ufdd0-\ufdef\ufeff\ufff9-\ufffb\ufffe\uffff]"
)
#: A number, perhaps with its unit.
_NUMBER = re.compile(r"[+-](\d+\.?\d*|\.\d+)([eE][+-]?\d+)?( ?[A-Za-zµ°%/²]{1,12})?")
_FORMULA = ("=", "+", "-", "@")


def printable(text: str, most: int = 200) -> str:
    """One line that every document can hold and that shows as it reads.

    Control characters, which XML forbids, and those that turn the direction of reading become U+FFFD;
    whitespace becomes single blanks; what is longer than `most` characters is cut with an ellipsis.

    >>> printable("a\\x00b\\n c"), printable("abcdef", 4)
    ('a\ufffdb c', 'abc…')
    """
    if len(text) <= most and text.isascii() and text.isprintable() and " " not in text:
        return text  # most cells
    line = " ".join(_UNPRINTABLE.sub("\ufffd", text[: 4 * most]).split())
    return line if len(line) <= most else line[: most - 1] + "…"


class Printed:
    """A stream to a terminal: characters that move the cursor, colour, hide or turn text become U+FFFD.

    Ends of lines and tabs stay; what the stream's encoding lacks is spelled out. `beneath`: the stream.
    """

    def __init__(self, beneath: TextIO) -> None:
        self.beneath = beneath

    def write(self, text: str) -> int:
        safe = _UNPRINTABLE.sub("\ufffd", text).replace("\r", "\ufffd")
        encoding = getattr(self.beneath, "encoding", None)
        if encoding:
            safe = safe.encode(encoding, "backslashreplace").decode(encoding)
        self.beneath.write(safe)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self.beneath, name)


# ---- cells


def guarded(text: str) -> str:
    """The text of a cell, which no spreadsheet takes for a formula; `unguarded` is the way back.

    >>> guarded("=1+1"), guarded("-2+1"), guarded("-2.5e-3 s"), guarded("a")
    ("'=1+1", "'-2+1", '-2.5e-3 s', 'a')
    """
    line = printable(text)
    # Also what looks as if it were guarded, so that it comes back as it was.
    if line.lstrip("'").startswith(_FORMULA) and not _NUMBER.fullmatch(line):
        return f"'{line}"
    return line


def unguarded(text: str) -> str:
    """What was `guarded`.

    >>> unguarded("'=1+1"), unguarded("'tis")
    ('=1+1', "'tis")
    """
    return text[1:] if text.startswith("'") and text.lstrip("'").startswith(_FORMULA) else text


def as_csv(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Lines of a CSV file, in pieces: text is `guarded`, numbers are in full, infinite ones and NaN empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for k, row in enumerate(rows):
        writer.writerow([_cell(value) for value in row])
        if k % 4096 == 4095:
            yield out.getvalue()
            out.seek(0)
            out.truncate()
    yield out.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else ""
    return guarded(value) if isinstance(value, str) else value


class TerminalProgress(Progress):
    """A line on standard error, only if that is a terminal."""

    def __init__(self) -> None:
        super().__init__()
        # It overwrites its line, which `Printed` does not let through.
        self._stream = getattr(sys.stderr, "beneath", sys.stderr)
        # What replaces a console's stream may lack methods of files.
        self._visible = bool(getattr(self._stream, "isatty", bool)())
        self._next = 0.0
        self._width = 0

    def show(self, done: float, total: float, text: str) -> None:
        now = time.monotonic()
        if not self._visible or now < self._next:
            return
        self._next = now + 0.1
        share = f" {100 * done / total:.0f} %" if total > 0 else ""
        line = printable(f"{text or 'working'}{share}", 78)
        print(f"\r{line:<{self._width}}", end="", file=self._stream, flush=True)
        self._width = len(line)

    def clear(self) -> None:
        if self._width:
            print("\r" + " " * self._width + "\r", end="", file=self._stream, flush=True)
            self._width = 0

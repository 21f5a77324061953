"""Find the places in a program's sources that were prepared for artificial delays.

A place is a conditional block ``#ifdef NAME`` (or ``#if defined(NAME)``) whose lines call the delay.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from desktop.data.experiment import Factor, Switch
from desktop.errors import ExperimentError, reason

_OPEN = re.compile(r"^\s*#\s*(?:ifdef\s+(\w+)|if\s+defined\s*\(?\s*(\w+)\s*\)?\s*$)")
_NESTED = re.compile(r"^\s*#\s*if")
_ELSE = re.compile(r"^\s*#\s*(?:else|elif)")
_CLOSE = re.compile(r"^\s*#\s*endif")
_NOISE = re.compile(r"//.*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|__attribute__\s*\(\(.*?\)\)")
_HEADER = re.compile(r"\b([A-Za-z_]\w*)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*(?:const|noexcept|override)?\s*$")
_LOOP = re.compile(r"\b(for|while|do|switch|if|else)\b")
_FORTRAN = re.compile(r"^\s*(?:\w+\s+)*?(?:subroutine|function|program)\s+(\w+)", re.IGNORECASE)
_FORTRAN_LOOP = re.compile(
    r"^\s*(?:\w+\s*:\s*)?(do|if)\b(?:.*\bthen\b|\s+\w+\s*=|\s+while|\s*$)", re.IGNORECASE
)
_FORTRAN_END = re.compile(r"^\s*end\s*(do|if)\b", re.IGNORECASE)
_FORTRAN_SUFFIXES = {".f", ".for", ".f90", ".f95", ".f03", ".f08", ".fpp"}
_LARGEST = 16 << 20
#: As much of a line, and of what stands before a brace, as is looked at; generated files have longer ones.
_LONGEST = 4000


@dataclass(frozen=True)
class Place:
    """A prepared place: macro, file, line (from 1), enclosing routine and construct ("" where not seen)."""

    macro: str
    file: str
    line: int
    routine: str
    construct: str

    def factor(self, delay: int = 0) -> Factor:
        """Switched on by its macro."""
        return Factor(
            self.macro, Switch((f"-D{self.macro}",)), Switch(), self.file, self.line, self.routine,
            self.construct, delay,
        )  # fmt: skip


def find_places(folder: Path, sources: Sequence[str], call: str = "spt_delay") -> tuple[Place, ...]:
    """Places in `sources` (names below `folder`) that call `call`, one for every macro, in order.

    A routine that calls the delay by itself (an artificial critical section, say) is as good as the delay.

    Raises
    ------
    ExperimentError : a source cannot be read.
    """
    texts: list[tuple[str, list[str], bool]] = []
    for name in sources:
        path = Path(folder) / name
        try:
            if path.stat().st_size > _LARGEST:
                raise ExperimentError(
                    f"is larger than {_LARGEST >> 20} MB", file=path, hint="is it a source?"
                )
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            raise ExperimentError(f"cannot be read ({reason(error)})", file=path) from None
        texts.append((name, lines, path.suffix.lower() in _FORTRAN_SUFFIXES))
    calls = {call}
    while True:
        found: dict[str, Place] = {}
        wrappers: set[str] = set()
        for name, lines, fortran in texts:
            places, callers = _walk(lines, name, calls, fortran)
            wrappers |= callers
            for place in places:
                found.setdefault(place.macro, place)
        if wrappers <= calls:
            return tuple(found.values())
        calls |= wrappers


def _walk(lines: list[str], name: str, calls: set[str], fortran: bool) -> tuple[list[Place], set[str]]:
    """Places of one source, and routines that call the delay whatever is defined."""
    names = "|".join(map(re.escape, sorted(calls)))
    called = re.compile(rf"\b(?:{names})\b", re.IGNORECASE if fortran else 0)
    blocks: list[tuple[str, int] | None] = []
    scope = _FortranScope() if fortran else _CScope()
    found: list[Place] = []
    callers: set[str] = set()
    for number, line in enumerate(lines, 1):
        opened = _OPEN.match(line)
        if opened:
            # A block around whole routines chooses a variant of the program; it is no place.
            blocks.append((opened[1] or opened[2], number) if scope.routine else None)
        elif _NESTED.match(line):
            blocks.append(None)
        elif _ELSE.match(line) and blocks:
            blocks[-1] = None
        elif _CLOSE.match(line) and blocks:
            blocks.pop()
        elif not line.lstrip().startswith("#"):
            line = line[:_LONGEST]
            plain = line.split("!")[0] if fortran else _NOISE.sub(" ", line)
            inner = next((block for block in reversed(blocks) if block is not None), None)
            before = scope.routine
            scope.read(plain)
            if scope.routine and called.search(plain) and (before or "{" in plain):
                if inner is None:
                    if scope.routine not in calls:
                        callers.add(scope.routine)
                elif all(place.macro != inner[0] for place in found):
                    found.append(Place(inner[0], name, inner[1], scope.routine, scope.construct))
    return found, callers


class _CScope:
    """Which routine and construct a line of C or C++ stands in, by its braces."""

    def __init__(self) -> None:
        self.routine = ""
        self._before = ""
        self._open: list[str] = []

    @property
    def construct(self) -> str:
        loops = [word for word in self._open[1:] if word]
        return f"{loops[-1]} block" if loops and loops[-1] in ("if", "else", "switch") else (
            f"{loops[-1]} loop" if loops else "function"
        )  # fmt: skip

    def read(self, line: str) -> None:
        for sign in re.split(r"([{};])", line):
            if sign == "{":
                header = _HEADER.search(self._before.strip())
                if not self._open and header and header[1] not in ("if", "for", "while", "switch"):
                    self.routine = header[1]
                word = _LOOP.search(self._before) if self._open else None
                self._open.append(word[1] if word else "")
                self._before = ""
            elif sign == "}":
                if self._open:
                    self._open.pop()
                if not self._open:
                    self.routine = ""
                self._before = ""
            elif sign == ";":
                # The semicolons in the head of a for loop do not end a statement.
                if self._before.count("(") == self._before.count(")"):
                    self._before = ""
            else:
                self._before = f"{self._before} {sign}"[-_LONGEST:]


class _FortranScope:
    """The same for Fortran, by its words."""

    def __init__(self) -> None:
        self.routine = ""
        self._open: list[str] = []

    @property
    def construct(self) -> str:
        return (
            f"{self._open[-1]} {'loop' if self._open[-1] == 'do' else 'block'}" if self._open else "routine"
        )

    def read(self, line: str) -> None:
        header = _FORTRAN.match(line)
        if header and not re.match(r"^\s*end\b", line, re.IGNORECASE):
            self.routine, self._open = header[1], []
        elif _FORTRAN_END.match(line) and self._open:
            self._open.pop()
        elif opened := _FORTRAN_LOOP.match(line):
            self._open.append(opened[1].lower())

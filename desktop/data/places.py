"""Places for artificial delays in a program's sources: prepared ones, and those that can be prepared.

A prepared place is a conditional block ``#ifdef NAME`` (or ``#if defined(NAME)``) whose lines call the delay,
or in Python the call itself. Every routine and every loop can become one: the delay is written into a copy.
"""

from __future__ import annotations

import os
import re
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from desktop.data.experiment import Factor, Switch
from desktop.data.syntax import Piece, language_of, parse, parts_of, read_source, without_templates

if TYPE_CHECKING:
    from tree_sitter import Node

#: The function called at a place, and its modules.
DELAY = "spt_delay"
_LINE = re.compile(rb"^[ \t]*#[ \t]*line[ \t]+(\d+)", re.MULTILINE)
#: Written by `_written` into Python, where no directive sets line numbers.
_OURS = b"  # a place of Phasewright"
#: Routines without place for a delay: evaluated at compile time, without side effects, or on a device.
_PURE = re.compile(r"\b(constexpr|consteval|pure|elemental|__device__|__global__)\b", re.IGNORECASE)
#: Statements of Fortran that precede the first executable one.
_DECLARATIONS = re.compile(
    r"(function|subroutine|program|use|include|import|implicit|parameter|variable|variable_declaration|"
    r"variable_modification|interface|derived_type|derived_type_definition|enum|enumeration_type|comment|"
    r"common|equivalence|namelist|save|data|preproc_include|preproc_def|preproc_call|preproc_function_def|"
    r"external|procedure_declaration|statement_function|format|\n|;|,|&)(_statement|_declaration|_definition)?$"
)


@dataclass(frozen=True)
class Place:
    """A place: its macro ("" if it is not prepared), file, line (from 1, as in the program's own source),
    enclosing routine ("" if none) and construct."""

    macro: str
    file: str
    line: int
    routine: str
    construct: str

    def factor(self, delay: int = 0) -> Factor:
        """The factor switched on by its macro; in Python by the name in an environment variable."""
        at = (self.file, self.line, self.routine, self.construct)
        if language_of(self.file) == "python":
            on = (("SPT_FACTORS", f"{self.macro}:{{delay}}" if delay else self.macro),)
            return Factor(self.macro, Switch(environment=on), Switch(), *at, delay)
        return Factor(self.macro, Switch((f"-D{self.macro}",)), Switch(), *at, delay)


def find_places(folder: Path, sources: Sequence[str], call: str = DELAY) -> tuple[Place, ...]:
    """Prepared places in `sources` (names below `folder`) that call `call`, one per macro, in order.

    A routine that calls the delay unconditionally (an artificial critical section, say) counts as the delay.
    Files that are no sources of C, C++, Fortran or Python have no places.

    Raises
    ------
    ExperimentError : a source cannot be read.
    """
    read = []
    for name in sources:
        text = read_source(Path(folder) / name)
        if language := language_of(name):
            read.append((name, text, language, [p for p in parts_of(text, language) if p.kind == "call"]))
    delays = {call.casefold()}
    while True:
        places: dict[str, Place] = {}
        wrappers: set[str] = set()
        for name, text, language, calls in read:
            lines = _lines(text, language)
            for part in calls:
                if part.name.casefold() not in delays:
                    continue
                place, routine = _prepared(part, name, language, lines)
                if place is not None:
                    places.setdefault(place.macro, place)
                elif routine:
                    wrappers.add(routine.casefold())
        if wrappers <= delays:
            return tuple(places.values())
        delays |= wrappers


def _prepared(call: Piece, name: str, language: str, lines: _Lines) -> tuple[Place | None, str]:
    """The place of a call of the delay; if no macro switches it, the routine that always calls it."""
    routine = call.enclosing("routine")
    if routine is None:
        return None, ""
    if language == "python":
        arguments = call.node.parent.child_by_field_name("arguments") if call.node.parent else None
        first = arguments.named_child(0) if arguments is not None else None
        if first is None or first.type != "string" or first.text is None:
            return None, ""
        macro = first.text.decode("utf-8", "replace").strip("\"'")
        return Place(macro, name, lines.original(call.line), routine.name, call.construct), ""
    # A block around whole routines selects a variant of the program; it is no place.
    condition = call.enclosing("condition", "routine")
    while condition is not None and condition.kind == "condition":
        if condition.name:
            at = lines.place(condition)
            return Place(condition.name, name, at, routine.name, call.construct), ""
        while condition is not None and condition.node.type in ("preproc_else", "preproc_elif"):
            condition = condition.enclosing("condition")  # what its macro does not enable
        condition = condition.enclosing("condition", "routine") if condition is not None else None
    return None, routine.name.rpartition("::")[2]


class _Lines:
    """Maps lines of a copy to lines of the program's own source."""

    def __init__(self, at: list[int], shift: list[int]) -> None:
        self._at, self._shift = at, shift

    def place(self, block: Piece) -> int:
        """The line of a conditional block; if it was written into a copy, that of the code after it."""
        last = block.node.end_point[0] + (block.node.end_point[1] > 0)
        for follows in (last + 1, last + 2):
            if follows in self._at:
                return self.original(follows)
        return self.original(block.line)

    def original(self, line: int) -> int:
        k = bisect(self._at, line) - 1
        return line + self._shift[k] if k >= 0 else line


def _lines(text: bytes, language: str) -> _Lines:
    at, shift = [], []
    if language == "python":
        for line, content in enumerate(text.split(b"\n"), 1):
            if content.endswith(_OURS):
                at.append(line + 1)
                shift.append(-len(at))
        return _Lines(at, shift)
    for directive in _LINE.finditer(text):
        line = text.count(b"\n", 0, directive.start()) + 1
        at.append(line + 1)
        shift.append(int(directive[1]) - line - 1)
    return _Lines(at, shift)


# --- places that are not prepared yet ---


@dataclass(frozen=True)
class Spot:
    """A place where a delay can be inserted: `at` its offset in the source's bytes, `end` the line where its
    routine or loop ends. `share`: share of the time of a trace spent in its routine, exclusive (None:
    unknown)."""

    place: Place
    at: int
    end: int
    share: float | None = None

    @property
    def key(self) -> str:
        """Its name for users: ``qsort.c:175``."""
        return f"{self.place.file}:{self.place.line}"


def offered(folder: Path, sources: Sequence[str]) -> tuple[Spot, ...]:
    """Routines and loops of `sources` (names below `folder`) that can be delayed, in order.

    Raises
    ------
    ExperimentError : a source cannot be read.
    """
    spots: list[Spot] = []
    for name in sources:
        language = language_of(name)
        text = read_source(Path(folder) / name) if language else b""
        for part in parts_of(text, language) if language else ():
            routine = part if part.kind == "routine" else part.enclosing("routine")
            if part.kind not in ("routine", "loop") or routine is None or _is_pure(routine, text, language):
                continue
            at = _entry(part, language)
            if at is not None:
                place = Place("", name, part.line, routine.name, part.construct)
                spots.append(Spot(place, at, part.node.end_point[0] + 1))
    return tuple(spots)


def hottest(offers: Sequence[Spot], seconds: Mapping[str, float]) -> tuple[Spot, ...]:
    """The offers with the share of their routines in a profile (region -> exclusive seconds), the largest
    first; a routine before its loops. Regions are matched by their names without qualifiers."""
    total = sum(seconds.values())
    plain: dict[str, float] = {}
    for region, value in seconds.items():
        plain[_plain(region)] = plain.get(_plain(region), 0.0) + value
    # Traces do not distinguish lambdas from the function that contains them.
    with_share = [
        replace(
            one,
            share=0.0
            if one.place.routine.startswith("lambda ") or not total
            else plain.get(_plain(one.place.routine), 0.0) / total,
        )
        for one in offers
    ]
    return tuple(sorted(with_share, key=lambda one: -(one.share or 0.0)))


def chosen(offers: Sequence[Spot], names: Sequence[str]) -> tuple[Spot, ...]:
    """The named offers: by routine (``swap``, with or without its classes) or by ``file:line``.

    Raises
    ------
    ValueError : there is none with a name.
    """
    spots: dict[Spot, None] = {}
    for name in names:
        same = [o for o in offers if name in (o.key, f"{PurePosixPath(o.place.file).name}:{o.place.line}")]
        same = same or [o for o in offers if o.place.routine == name][:1]
        same = same or [o for o in offers if _plain(o.place.routine) == _plain(name)][:1]
        if not same:
            raise ValueError(
                f"there is no routine or loop {name!r} in the sources; name a routine or FILE:LINE"
            )
        spots |= dict.fromkeys(same)
    return tuple(spots)


def first_choice(offers: Sequence[Spot], most: int) -> tuple[Spot, ...]:
    """The default: routines with most of the time, if known, else the first ones; a program's main only if
    there is nothing else, as it runs once."""
    routines = [o for o in offers if o.place.construct in ("function", "routine")]
    several = [o for o in routines if _plain(o.place.routine) not in ("main", "__init__")]
    return tuple((several or routines or list(offers))[:most])


def prepare(folder: Path, offers: Sequence[Spot], root: str = "") -> tuple[Place, ...]:
    """Write delays into the sources below `folder`, which are a copy; returns the prepared places.

    `root`: the folder below it that contains the helper files of the delay. Line numbers stay those of the
    program's own sources, for compilers and for Phasewright.

    Raises
    ------
    ExperimentError : a source cannot be read or written.
    """
    by_file: dict[str, list[tuple[str, Spot]]] = {}
    places = []
    files = {offer.place.file for offer in offers}
    used = {word for name in files for word in re.findall(rb"\bF\d+\b", read_source(Path(folder) / name))}
    free = (name for number in count(1) if (name := f"F{number}").encode() not in used)
    for offer, macro in zip(offers, free, strict=False):
        by_file.setdefault(offer.place.file, []).append((macro, offer))
        places.append(replace(offer.place, macro=macro))
    for name, inside in by_file.items():
        path = Path(folder) / name
        text, language = read_source(path), language_of(name)
        ends = b"\r\n" if b"\r\n" in text[:4096] else b"\n"
        for macro, offer in sorted(inside, key=lambda one: -one[1].at):
            text = _written(text, offer.at, macro, language, ends)
        if language == "fortran":
            text = _uses(text, ends)
        elif language == "python":
            text = _imports(text, ends)
        else:
            helper = os.path.relpath(PurePosixPath(root) / "spt_delay.h", PurePosixPath(name).parent)
            helper = PurePosixPath(*Path(helper).parts).as_posix()
            text = ends.join((f'#include "{helper}"'.encode(), b"#line 1", b"")) + text
        path.write_bytes(text)
    return tuple(places)


def _plain(name: str) -> str:
    """The last part of a region's name: ``void n::V<int>::g(int)`` is ``g``."""
    plain = without_templates(name.casefold()).partition("(")[0]
    return re.split(r"::|\.|\s|\$", plain.strip().rstrip("_"))[-1]


def _is_pure(routine: Piece, text: bytes, language: str) -> bool:
    body = routine.node.child_by_field_name("body")
    first = routine.node.named_child(0)
    if language == "fortran":
        end = first.end_byte if first is not None else routine.node.start_byte
    else:
        end = body.start_byte if body is not None else routine.node.end_byte
    return bool(_PURE.search(text[routine.node.start_byte : end].decode("utf-8", "replace")))


def _entry(part: Piece, language: str) -> int | None:
    """The offset for a statement before the first one of a routine or loop; None: nowhere."""
    if language == "fortran":
        return _first_of_fortran(part)
    body = part.node.child_by_field_name("body")
    if body is None or (part.node.has_error and body.is_missing):
        return None
    if language == "python":
        statements = [c for c in body.named_children if c.type != "comment"]
        if statements and part.kind == "routine" and _is_text(statements[0]):
            del statements[0]
        return statements[0].start_byte if statements else None
    return body.start_byte + 1 if body.type == "compound_statement" else None


def _is_text(node: Node) -> bool:
    """Whether a node is a docstring."""
    inner = node.named_child(0) if node.type == "expression_statement" else None
    return inner is not None and inner.type == "string"


def _first_of_fortran(part: Piece) -> int | None:
    for child in part.node.children:
        if not child.is_named or _DECLARATIONS.match(child.type):
            continue
        if child.type in (
            "loop_control_expression",
            "block_label_start_expression",
            "do_statement",
            "statement_label",
        ):
            continue
        if child.type.startswith("preproc") and _only_declares(child):
            continue
        if child.type.startswith("end_") or child.type == "internal_procedures":
            return None
        return child.start_byte
    return None


def _only_declares(node: Node) -> bool:
    """Whether a conditional block of Fortran contains declarations."""
    inner = [c for c in node.named_children if c.type != "identifier"]
    return bool(inner) and all(_DECLARATIONS.match(c.type) for c in inner)


def _written(text: bytes, at: int, macro: str, language: str, ends: bytes) -> bytes:
    """Insert the delay at an offset; the next line keeps its number."""
    line = text.count(b"\n", 0, at) + 1
    begin = text.rfind(b"\n", 0, at) + 1
    indent = re.match(rb"[ \t]*", text[begin:])
    blank = indent[0] if indent else b""
    if language == "python":
        call = f'{DELAY}("{macro}")'.encode()
        if text[begin:at].strip():  # on the same line as its head
            return text[:at] + call + b"; " + text[at:]
        return text[:at] + call + _OURS + ends + blank + text[at:]
    if language == "fortran":
        call, at = b"      call spt_delay(int(SPT_DELAY, spt_long))", begin
    else:
        call = blank + b"    spt_delay(SPT_DELAY);"
    block = ends.join((f"#ifdef {macro}".encode(), call, b"#endif", f"#line {line}".encode(), b""))
    return text[:at] + (b"" if language == "fortran" else ends) + block + text[at:]


def _uses(text: bytes, ends: bytes) -> bytes:
    """Fortran: every routine with a delay uses its module, right after its first statement."""
    parts = parts_of(text, "fortran")
    needing = {
        id(routine): routine
        for part in parts
        if part.kind == "call" and part.name.casefold() == DELAY and (routine := part.enclosing("routine"))
    }
    lines = _lines(text, "fortran")
    for routine in sorted(needing.values(), key=lambda one: -one.node.start_byte):
        head = routine.node.named_child(0)
        if head is None:
            continue
        # The statement's node may end before a comment on its line.
        at = text.find(b"\n", head.end_byte - 1) + 1
        line = lines.original(text.count(b"\n", 0, at) + 1)
        use = b"      use spt_delay_module, only: spt_delay, spt_long => c_long"
        text = text[:at] + use + ends + f"#line {line}".encode() + ends + text[at:]
    return text


def _imports(text: bytes, ends: bytes) -> bytes:
    """Python: import the module after the docstring and the future statements."""
    at = 0
    for statement in parse(text, "python").named_children:
        if statement.type == "comment" or _is_text(statement) or statement.type == "future_import_statement":
            continue
        at = text.rfind(b"\n", 0, statement.start_byte) + 1
        break
    return text[:at] + f"from {DELAY} import {DELAY}".encode() + _OURS + ends + text[at:]

"""The numbers of an OTF trace and what they stand for: the master file and the definition files.

Source: the Open Trace Format 1.12 (TU Dresden), its short and its long keywords.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from desktop.core import machine
from desktop.data.classify import is_stream, mpi_call
from desktop.data.collectives import depends
from desktop.data.events import Activity, Location, MetricAbout, MetricMode, MetricTiming, Region
from desktop.data.importers._otf1.lines import TOKENS
from desktop.data.importers._otf1.text import Text

#: More definitions, or a longer name, are damage.
MOST = 1 << 20
LONGEST_NAME = 1 << 12

STREAM = re.compile(rb"\s*([0-9a-f]{1,8})\s*:([0-9a-f, \t]*)\s*$")


@dataclass
class Master:
    """The processes of each stream, in the order of the file, and what was wrong with the master file."""

    streams: dict[int, list[int]] = field(default_factory=dict)
    damaged: int = 0  # lines
    repeated: int = 0  # processes that an earlier line already has
    elsewhere: int = 0  # lines that refer to files of another kind


def read_master(path: Path) -> Master:
    """Raises OSError."""
    master = Master()
    seen: set[int] = set()
    with path.open("rb") as file:
        lines = file.read(MOST * 16).splitlines()
    for line in lines:
        if line.startswith(b"i"):
            master.elsewhere += 1
        elif match := STREAM.match(line):
            listed = [int(number, 16) for number in match[2].replace(b",", b" ").split()]
            mine = master.streams.setdefault(int(match[1], 16), [])
            for process in listed:
                if process in seen or process >= TOKENS:
                    master.repeated += 1
                else:
                    seen.add(process)
                    mine.append(process)
        elif b":" in line:
            master.damaged += 1
    return master


_RECORD = re.compile(rb"\s*(?:DEF|D)([A-Z]+)\s*([0-9a-f]+)?\s*")
_FIELD = re.compile(rb"([A-Z]*)\s*(?:\"([^\"]*)\"|([0-9a-f]+))[\s,]*")
#: Definition records that are read, by their short and their long keyword without prefix.
_KINDS = {
    word: kind
    for kind, words in {
        "resolution": (b"TR", b"TIMERRESOLUTION"),
        "process": (b"P", b"PROCESS"),
        "function": (b"F", b"FUNCTION"),
        "group": (b"FG", b"FUNCTIONGROUP"),
        "operation": (b"CO", b"COLLOP"),
        "processes": (b"PG", b"PROCESSGROUP"),
        "counter": (b"CNT", b"COUNTER"),
        "creator": (b"CR", b"CREATOR"),
        "comment": (b"CMT", b"COMMENT"),
        "version": (b"V", b"VERSION"),
    }.items()
    for word in words
}
_FIELDS = {
    word: name
    for name, words in {
        "name": (b"NM", b"NAME"),
        "parent": (b"PT", b"PARENT"),
        "group": (b"G", b"GROUP"),
        "type": (b"Y", b"TYPE"),
        "properties": (b"P", b"PROPERTIES"),
        "unit": (b"U", b"UNIT"),
    }.items()
    for word in words
}


Fields = dict[str, str | int]


class Otf1Definitions:
    """The definitions of one file, on top of those of `beneath`, which hold where this file has none.

    notes: creator, comment and version. repeated: definitions in this file of a number that had one. damaged:
    lines. cut: why the file could not be read to its end, or empty.
    """

    def __init__(self, file: Path | None = None, beneath: Otf1Definitions | None = None) -> None:
        self.beneath = beneath
        self.by: dict[str, dict[int, Fields]] = {}
        self.notes: dict[str, str] = {}
        self.resolution = 0
        self.repeated = self.damaged = 0
        self.cut = ""
        if file is not None:
            self._read(file)

    def _read(self, file: Path) -> None:
        text = Text(file)
        count = 0
        for block in text.blocks():
            for line in block.splitlines():
                count += self._take(line)
            if count > MOST:
                self.cut = f"more than {MOST} definitions"
                return
        self.damaged += text.overlong
        self.cut = text.wrong or ("the last line is cut" if text.unended else "")

    def _take(self, line: bytes) -> bool:
        """Store what a line defines, if it is used here; whether it is a definition."""
        match = _RECORD.match(line)
        if match is None:
            self.damaged += bool(line.strip()) and not line.lstrip().startswith(b"K")
            return False
        kind = _KINDS.get(match[1])
        if kind is None:
            return False
        if kind in ("creator", "comment", "version"):
            text = _string(line[match.end(1) :].replace(b'"', b" ").strip())
            self.notes[kind] = f"{self.notes[kind]}; {text}"[:LONGEST_NAME] if kind in self.notes else text
            return False
        if kind == "processes" and match[2]:  # their lists of members are not needed
            self.by.setdefault(kind, {})[int(match[2][:16], 16)] = {"name": "process group"}
            return True
        fields: Fields = {}
        at = match.end()
        while at < len(line) and (part := _FIELD.match(line, at)) is not None:
            if name := _FIELDS.get(part[1]):
                fields[name] = _string(part[2]) if part[3] is None else int(part[3][:16], 16)
            at = part.end()
        number = int(match[2][:16], 16) if match[2] else 0
        if at < len(line) or not number or (kind != "resolution" and "name" not in fields):
            self.damaged += 1
            return False
        if kind == "resolution":
            self.resolution = number
            return False
        entries = self.by.setdefault(kind, {})
        self.repeated += number in entries
        entries[number] = fields
        return True

    def _find(self, kind: str, number: int) -> Fields:
        """The definition of a number; empty if there is none."""
        fields = self.by.get(kind, {}).get(number)
        if fields is None and self.beneath is not None:
            return self.beneath._find(kind, number)
        return fields or {}

    def region(self, number: int) -> Region | None:
        """The region of a function; None if it is not defined."""
        fields = self._find("function", number)
        if not fields:
            return None
        name, group = str(fields["name"]), fields.get("group", 0)
        of_mpi = self._find("group", int(group)).get("name") == "MPI" or mpi_call(name)
        return Region(name, "function", "mpi" if of_mpi else "user")

    def knows(self, kind: str, number: int | None = None) -> bool:
        """Whether a number is defined; None: whether any of its kind is."""
        numbers = self.by.get(kind, {})
        defined = bool(numbers) if number is None else number in numbers
        return defined or (self.beneath is not None and self.beneath.knows(kind, number))

    def operation(self, number: int, within: int = 0) -> str:
        """The name of a collective operation, such as Allreduce. One without a known name ("all-to-all" is
        none) has that of the MPI call around it, if that is of its type, else that of its type. A barrier by
        type or name is always a barrier."""
        fields = self._find("operation", number)
        name = str(fields.get("name", "")) or f"operation {number}"
        if mpi_call(name):
            name = name[name.index("_") + 1 :].rstrip("_")
        kind = OPERATION_TYPES.get(int(fields.get("type", 0)), "")
        if depends(name) is not None and (name == "Barrier" or name not in OPERATION_TYPES.values()):
            return name
        if kind in ("", "Barrier"):
            return kind or name
        rule, call = depends(kind), str(self._find("function", within).get("name", ""))
        inside = depends(call) if mpi_call(call) else None
        if rule is not None and inside is not None and inside.pattern in (rule.pattern, machine.PREFIX):
            return mpi_call(call).capitalize()
        return kind

    def counter(self, number: int) -> tuple[str, int]:
        """Name of a counter, and type of its values: `FLOAT`, `DOUBLE`, one of `SIGNED`, else unsigned."""
        fields = self._find("counter", number)
        return str(fields.get("name", "")) or f"counter {number}", int(fields.get("properties", 0)) & 0x1E0

    def metric(self, number: int) -> MetricAbout:
        """Meaning of a counter's values."""
        fields = self._find("counter", number)
        properties = int(fields.get("properties", 0))
        timing: MetricTiming = "last" if properties & 12 == 8 else "next"
        mode: MetricMode = "absolute" if properties & 3 else "accumulated"
        return MetricAbout(str(fields.get("unit", "")).replace("#", ""), mode, timing)


#: Types of collective operations: who waits for whom, independent of the name.
OPERATION_TYPES = {1: "Barrier", 2: "one-to-all", 3: "all-to-one", 4: "all-to-all"}

#: Value types of a counter by its properties: 32-bit floats, 64-bit floats and signed integers; all others
#: are unsigned.
FLOAT, DOUBLE, SIGNED = 256, 288, (32, 96, 160)


def _string(raw: bytes) -> str:
    return raw[:LONGEST_NAME].decode("utf-8", "replace")


def locations(definitions: list[Otf1Definitions], listed: Iterable[int]) -> tuple[list[Location], int]:
    """The processes that are defined or listed in the master file, by rank and thread, and how many name a
    parent that does not exist.

    Ranks number the processes that are no threads, in order of their process numbers (which start at 1).
    """
    defined: dict[int, Fields] = {}
    for each in reversed(definitions):  # the global ones, which are first, have priority
        defined |= each.by.get("process", {})
    numbers = sorted(defined.keys() | set(listed))
    present = set(numbers)
    orphans = set()

    def master(process: int) -> int:
        """The process of a thread; the process itself if it is no thread or its parents form a cycle."""
        number, seen = process, {process}
        while parent := int(defined.get(number, {}).get("parent", 0)):
            if parent not in present:
                orphans.add(number)
                return number
            if parent in seen:
                orphans.add(process)
                return process
            seen.add(parent)
            number = parent
        return number

    masters = {number: master(number) for number in numbers}
    ranks = {number: rank for rank, number in enumerate(n for n in numbers if masters[n] == n)}
    threads: dict[int, int] = {}

    def name(number: int) -> str:
        rank = f"rank {ranks[masters[number]]}"  # as it is called where ranks and threads are counted
        thread = f" thread {threads[masters[number]]}" if masters[number] != number else ""
        return str(defined.get(number, {}).get("name", "")) or rank + thread

    processes = []
    for number in sorted(numbers, key=lambda n: (ranks[masters[n]], masters[n] != n, n)):
        of = masters[number]
        threads[of] = threads.get(of, -1) + 1
        location = Location(number, name(number), ranks[of], threads[of], process=name(of))
        if is_stream(location.name):
            location.kind, location.base = "accelerator", Activity.IDLE
        processes.append(location)
    return processes, len(orphans)

"""The description of a Paraver trace: the header, its communicators, the labels (.pcf), the names (.row).

The three files belong together by name. Labels and names are optional: what cannot be read in them is
ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

import numpy as np

from desktop.core.arrays import Ints
from desktop.errors import TraceFormatError

MOST_THREADS = 10_000_000
#: Labels and names beyond this many bytes are not read.
LARGEST = 64 << 20
LONGEST_NAME = 200
_UNITS = {b"": 1e6, b"_us": 1e6, b"_ns": 1e9}

_START = re.compile(rb"#Paraver\s*\([^)]*\):\s*(\d{1,18})(_\w+)?:(\d*)(?:\([\d,\s]*\))?:(\d{1,8})(?=[:\s])")
_APPLICATION = re.compile(rb":(\d{1,8})\(([\d:,\s]*)\)(?:,(\d+))?")


@dataclass
class Header:
    """`threads`: how many each task has, in order of tasks; `tasks`: how many each application has."""

    total: int
    ticks_per_second: float
    tasks: list[int]
    threads: list[int]

    @property
    def first_task(self) -> Ints:
        """(applications + 1,) number of the first task of each application."""
        return np.array([0, *accumulate(self.tasks)], np.int64)

    @property
    def first_thread(self) -> Ints:
        """(tasks + 1,) number of the first thread of each task."""
        return np.array([0, *accumulate(self.threads)], np.int64)


def read_header(line: bytes, path: Path) -> Header:
    """The first line of a .prv file.

    Raises
    ------
    TraceFormatError : it is no header, or contradicts itself.
    """

    def refuse(what: str) -> TraceFormatError:
        return TraceFormatError(
            what,
            file=path,
            where="line 1",
            hint="expected is #Paraver (date):TIME[_ns]:NODES:APPLICATIONS:TASKS(THREADS:NODE,...)",
        )

    start = _START.match(line)
    if start is None:
        raise refuse(f"has no header of a Paraver trace: {line[:60].decode('latin-1').strip()!r}")
    unit = start[2] or b""
    if unit not in _UNITS:
        raise refuse(f"has times in an unknown unit, {unit[1:].decode('latin-1')}")
    tasks: list[int] = []
    threads: list[int] = []
    at = start.end()
    for number in range(1, int(start[4]) + 1):
        match = _APPLICATION.match(line, at)
        if match is None:
            raise refuse(f"names {int(start[4])} applications but describes {number - 1}")
        objects = [entry.split(b":")[0].strip() for entry in match[2].split(b",") if entry.strip()]
        if len(objects) != int(match[1]) or not all(entry.isdigit() for entry in objects):
            raise refuse(f"describes {len(objects)} of {int(match[1])} tasks of application {number}")
        tasks.append(len(objects))
        threads += [int(entry) for entry in objects]
        at = match.end()
        if sum(threads) > MOST_THREADS:
            raise refuse(f"describes more than {MOST_THREADS} threads")
    if not sum(threads):
        raise refuse("describes no threads")
    return Header(int(start[1]), _UNITS[unit], tasks, threads)


def communicators(block: bytes) -> list[tuple[int, int]]:
    """Number and size of the communicators that follow the header at the beginning of `block`."""
    numbers = []
    at = 0
    while block[at : at + 2] in (b"c:", b"i:"):
        end = block.find(b"\n", at)
        fields = block[at : end if end >= 0 else len(block)].split(b":", 4)
        if len(fields) > 3 and fields[2].isdigit() and fields[3].isdigit():
            numbers.append((int(fields[2][:18]), int(fields[3][:18])))
        if end < 0:
            break
        at = end + 1
    return numbers


def companion(path: Path, suffix: str) -> Path:
    """The file with that suffix that belongs to a trace: NAME.pcf to NAME.prv and to NAME.prv.gz."""
    name = path.name
    for ending in (".gz", ".xz", ".bz2"):
        name = name.removesuffix(ending)
    return path.with_name(name.removesuffix(".prv") + suffix)


def _lines(path: Path) -> list[str]:
    with path.open("rb") as file:
        return file.read(LARGEST).decode("utf-8", "replace").splitlines()


@dataclass
class Labels:
    """Names of states by number, of event types, and of the values of each event type; `again`: further names
    of states that already had one."""

    states: dict[int, str] = field(default_factory=dict)
    again: dict[int, list[str]] = field(default_factory=dict)
    types: dict[int, str] = field(default_factory=dict)
    values: dict[int, dict[int, str]] = field(default_factory=dict)


_NUMBER = re.compile(r"-?\d{1,18}$")


def read_labels(path: Path) -> Labels:
    """A .pcf file: sections that start with a word and contain lines of numbers and labels."""
    labels = Labels()
    section = ""
    types: list[int] = []
    for line in _lines(path):
        words = line.split(None, 1)
        if not words:
            continue
        if not _NUMBER.match(words[0]):
            section = words[0]
            if section == "EVENT_TYPE":
                types = []
            continue
        if len(words) < 2:
            continue
        number, label = int(words[0]), words[1].strip()
        if section == "STATES":
            if labels.states.setdefault(number, label[:LONGEST_NAME]) != label[:LONGEST_NAME]:
                labels.again.setdefault(number, []).append(label[:LONGEST_NAME])
        elif section == "EVENT_TYPE":
            parts = label.split(None, 1)
            if _NUMBER.match(parts[0]):
                types.append(int(parts[0]))
                if len(parts) > 1:
                    labels.types[types[-1]] = parts[1].strip()[:LONGEST_NAME]
        elif section == "VALUES":
            for kind in types:
                labels.values.setdefault(kind, {})[number] = label[:LONGEST_NAME]
    return labels


def read_names(path: Path) -> dict[str, list[str]]:
    """A .row file: the names of the objects of each level ("THREAD", "TASK", ...)."""
    names: dict[str, list[str]] = {}
    level: list[str] = []
    left = 0
    for line in _lines(path):
        words = line.split()
        if len(words) == 4 and (words[0], words[2]) == ("LEVEL", "SIZE") and _NUMBER.match(words[3]):
            level = names.setdefault(words[1], [])
            left = int(words[3])
        elif left > 0:
            level.append(line.strip()[:LONGEST_NAME])
            left -= 1
    return names

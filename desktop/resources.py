"""Files that come with the program."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

#: What the desktop knows the program by: the name of its entry, its icon and its metadata.
DESKTOP_ID = "io.github.phasewright"


@dataclass(frozen=True)
class Sample:
    """A bundled trace: its title, one sentence on it, and where it is."""

    title: str
    text: str
    path: Path


def folder() -> Path:
    """The resources: inside the installed package, or beside it in a source tree."""
    inside = Path(str(files("desktop"))) / "resources"
    return inside if inside.is_dir() else inside.parent.parent / "resources"


def samples() -> tuple[Sample, ...]:
    """The bundled traces, the main one first."""
    home = folder() / "samples"
    entries = json.loads((home / "samples.json").read_text(encoding="utf-8"))
    return tuple(Sample(entry["title"], entry["text"], home / entry["path"]) for entry in entries)


def example_table() -> Path:
    """Run times of four codes on four systems, for the factor model: constructed values, no measurements."""
    return folder() / "examples" / "npb_class_a_constructed.csv"

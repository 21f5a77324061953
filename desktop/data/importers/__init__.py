"""The trace formats, in the order in which they are tried. A new format is one file and one name here."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from desktop.data.events import Importer
from desktop.data.reading import head
from desktop.errors import TraceFormatError, explained

FORMATS = ("otf2", "otf1", "paraver", "picl", "recorded", "curve")
HEAD = 1 << 16


def importer(format_id: str) -> Importer:
    """The importer with that id; ValueError if there is none."""
    if format_id not in FORMATS:
        raise ValueError(f"there is no format {format_id!r}, known are {', '.join(FORMATS)}")
    one: Importer = import_module(f"desktop.data.importers.{format_id}").IMPORTER
    return one


def detect(path: Path) -> Importer:
    """The first importer that recognises the source by its content.

    Raises
    ------
    TraceFormatError : the source does not exist, cannot be read, is empty, or has no known format.
    """
    with explained(TraceFormatError, file=path):
        first = b"" if path.is_dir() else head(path, HEAD)
    if not first and not path.is_dir():
        raise TraceFormatError("the file is empty", file=path, hint="choose a trace or a curve")
    for format_id in FORMATS:
        candidate = importer(format_id)
        if candidate.detect(path, first):
            return candidate
    if path.is_dir():
        raise TraceFormatError("no trace is directly in this folder", file=path, hint="name the trace file")
    titles = ", ".join(importer(format_id).title for format_id in FORMATS)
    raise TraceFormatError(
        "its first bytes match no format that can be imported", file=path, hint=f"known are: {titles}"
    )

"""Which traces a folder holds, whatever else lies there."""

from __future__ import annotations

import os
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from desktop.data import importers
from desktop.data.events import Importer
from desktop.data.store import is_store
from desktop.errors import TraceFormatError
from desktop.progress import Progress

#: How deep below a folder traces are looked for; an archive of a Score-P run has them two levels down.
DEPTH = 6


class Found(NamedTuple):
    """`traces`: the file to open of each, with its importer. `others`: files that belong to none of them."""

    traces: list[tuple[Path, Importer]]
    others: list[Path]


def traces_in(folder: Path, progress: Progress) -> Found:
    """Look for traces by the content of the files, up to `DEPTH` folders down.

    Raises
    ------
    Cancelled : by `progress`.
    """
    patterns = [
        pattern
        for name in importers.FORMATS
        for pattern in importers.importer(name).patterns
        if pattern != "*"
    ]
    files = _files(folder, progress)
    # Those with a name that a trace has come first: what belongs to them need not be looked into.
    files.sort(key=lambda file: not any(fnmatch(file.name, pattern) for pattern in patterns))
    traces: list[tuple[Path, Importer]] = []
    others: list[Path] = []
    taken: set[Path] = set()
    for number, file in enumerate(files):
        progress.step(number, len(files), "looking for traces")
        if file in taken:
            continue
        try:
            importer = importers.detect(file)
            belonging = importer.files(file)
        except (TraceFormatError, OSError):
            if not is_store(file):
                others.append(file)
            continue
        traces.append((file, importer))
        taken.update(belonging)
    return Found(sorted(traces, key=lambda found: found[0]), [file for file in others if file not in taken])


def _files(folder: Path, progress: Progress) -> list[Path]:
    found = []
    for place, folders, names in os.walk(folder):
        progress.step(0, 0, "looking for traces")
        here = Path(place)
        deep = len(here.relative_to(folder).parts)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and deep < DEPTH)
        found += [here / name for name in sorted(names) if (here / name).is_file()]
    return found

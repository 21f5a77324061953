"""Finds the traces in folders named by the user, whatever other files are there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from desktop.data import importers
from desktop.data.archive import is_archive
from desktop.data.events import Importer
from desktop.data.importers import curve
from desktop.data.store import is_store
from desktop.errors import TraceFormatError
from desktop.progress import Progress

#: Depth below a folder to search for traces; an archive of a Score-P run has them two levels down.
DEPTH = 6
#: Files of a folder that are looked at, at most: more than a trace of 100,000 locations has.
MOST_FILES = 300_000


class SourceFiles(NamedTuple):
    """`traces`: the file or folder to open for each, with its importer. `archives`: their contents are
    unknown. `others`: files that belong to none of them."""

    traces: list[tuple[Path, Importer]]
    archives: list[Path]
    others: list[Path]


def traces_in(folder: Path, progress: Progress) -> SourceFiles:
    """Find traces by the content of the files, up to `DEPTH` folders down.

    Raises
    ------
    TraceFormatError : there are more than `MOST_FILES` files.
    """
    every = [importers.importer(name) for name in importers.FORMATS]
    files = _files(folder, progress)
    # Files with typical names of traces first: files that belong to them need not be read.
    files.sort(key=lambda file: not any(_is_named(file, one.patterns) for one in every))
    traces: list[tuple[Path, Importer]] = []
    archives: list[Path] = []
    others: list[Path] = []
    used: set[Path] = set()
    for one in (one for one in every if one.folders):
        whole = [place for place in sorted({file.parent for file in files}) if one.detect(place, b"")]
        traces += [(place, one) for place in whole]
        used.update(file for place in whole for file in one.files(place))
    for number, file in enumerate(files):
        progress.step(number, len(files), "looking for traces")
        if file in used:
            continue
        if is_archive(file):
            archives.append(file)
            continue
        try:
            importer = importers.detect(file)
            # Text files with tables are common; only one with a typical name is taken for a curve.
            if importer.id == curve.IMPORTER.id and not _is_named(file, importer.patterns):
                others.append(file)
                continue
            used.update(importer.files(file))
            traces.append((file, importer))
        except (TraceFormatError, OSError):
            if not is_store(file):
                others.append(file)
    traces.sort(key=lambda trace: trace[0])
    return SourceFiles(traces, sorted(archives), [file for file in others if file not in used])


def _is_named(file: Path, patterns: Sequence[str]) -> bool:
    return any(fnmatch(file.name, pattern) for pattern in patterns)


def _files(folder: Path, progress: Progress) -> list[Path]:
    paths = []
    for place, folders, names in os.walk(folder):
        progress.step(0, 0, "looking for traces")
        current = Path(place)
        deep = len(current.relative_to(folder).parts)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and deep < DEPTH)
        paths += [current / name for name in sorted(names) if (current / name).is_file()]
        if len(paths) > MOST_FILES:
            raise TraceFormatError(
                f"holds more than {MOST_FILES:,} files", file=folder, hint="name the trace in it"
            )
    return paths


class Sources(NamedTuple):
    """`paths`: what to open, each with a distinct name. `strange`: files of the folders that are no trace and
    belong to none."""

    paths: list[tuple[Path, str]]
    strange: list[Path]


def expand(paths: Sequence[Path], progress: Progress) -> Sources:
    """Replace folders by the traces and archives in them; a folder that is one trace stays."""
    sources: list[tuple[Path, str]] = []
    strange: list[Path] = []
    for path in paths:
        if not path.is_dir():
            sources.append((path, path.name))
            continue
        inside = traces_in(path, progress)
        traces = [trace for trace, _ in inside.traces]
        if len(traces) + len(inside.archives) < 2 and (opens(path) or not traces + inside.archives):
            sources.append((path, path.absolute().name))
            continue
        strange += inside.others
        sources += [
            (one, "-".join(one.relative_to(path).parts)) for one in sorted([*traces, *inside.archives])
        ]
    seen: dict[str, int] = {}
    named = []
    for path, name in sources:
        seen[name] = seen.get(name, 0) + 1
        named.append((path, name if seen[name] == 1 else f"{name}-{seen[name]}"))
    return Sources(named, strange)


def opens(folder: Path) -> bool:
    """Whether a folder is one trace, as for OTF2."""
    try:
        importers.detect(folder)
    except TraceFormatError:
        return False
    return True

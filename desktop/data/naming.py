"""Display names of traces, in titles, lists, reports, and names of files to be saved; how an experiment's is
called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from desktop.data.events import Location

#: The description of an experiment in its folder.
DESCRIPTION = "experiment.toml"
#: Names, without suffixes, that tracing tools give to every trace, or people to the folder of one.
_OF_EVERY_RUN = {"eztrace_log", "extrae_paraver_trace", "scorep", "tau", "trace", "tracefile", "traces"}


def named_by(trace: Path, member: str | None = None) -> Path:
    """The file or folder whose name distinguishes a trace: itself, else the nearest folder with such a name.

    `member`: which of the traces in an archive it is. If all folders have common names, it is the trace.

    >>> named_by(Path("/runs/cholesky_16/traces.otf2")).name, named_by(Path("/runs/lu.prv.gz")).name
    ('cholesky_16', 'lu.prv.gz')
    """
    whole = _whole(trace, member)
    places = (whole, *whole.parents)
    return next((p for p in places if p.name and _stem(p.name).lower() not in _OF_EVERY_RUN), whole)


def run_name(trace: Path, member: str | None = None) -> str:
    """The name of a run, after its trace."""
    return named_by(trace, member).name


def file_stem(trace: Path, member: str | None = None) -> str:
    """The same as a stem of file names: without suffixes (folders have none)."""
    place = named_by(trace, member)
    return _stem(place.name) if place == _whole(trace, member) else place.name


def location_name(about: Location) -> str:
    """The display name of a location: its rank and thread or stream, or its name in the trace.

    >>> from desktop.data.events import Location
    >>> [location_name(x) for x in (Location(7, rank=2, thread=1), Location(7, "GPU"), Location(7))]
    ['rank 2 thread 1', 'GPU', 'location 7']
    >>> location_name(Location(7, rank=2, kind="accelerator"))
    'rank 2 stream 0'
    """
    if about.rank >= 0 and about.kind == "accelerator":
        return f"rank {about.rank} stream {about.thread}"
    if about.rank >= 0:
        return f"rank {about.rank}" + (f" thread {about.thread}" if about.thread else "")
    return about.name or f"location {about.id}"


def location_labels(locations: Sequence[Location]) -> list[str]:
    """Short names for rows: ranks by their number, followed by that of the thread if there are several.

    >>> from desktop.data.events import Location
    >>> location_labels([Location(1, rank=0), Location(2, rank=1), Location(3, rank=1, thread=1)])
    ['0', '1.0', '1.1']
    """
    several = Counter(about.rank for about in locations if about.kind == "cpu")
    return [
        location_name(about)
        if about.rank < 0
        else f"{about.rank}.s{about.thread}"
        if about.kind == "accelerator"
        else f"{about.rank}.{about.thread}"
        if several[about.rank] > 1
        else str(about.rank)
        for about in locations
    ]


def communicator_names(notes: Mapping[str, object]) -> dict[int, str]:
    """Names of communicators by number, followed by the number where several have the same name, or the name
    is a number itself. `notes`: of the trace.

    >>> communicator_names({"communicator_names": {"0": "world", "3": "row", "4": "row"}})
    {0: 'world', 3: 'row (3)', 4: 'row (4)'}
    """
    noted = notes.get("communicator_names")
    noted = noted if isinstance(noted, dict) else {}
    named = {
        int(key): str(name) for key, name in noted.items() if len(key) <= 10 and key.isdecimal() and name
    }
    often = Counter(named.values())
    alone = {name for name, count in often.items() if count == 1 and not name.isdecimal()}
    return {number: name if name in alone else f"{name} ({number})" for number, name in named.items()}


def _whole(trace: Path, member: str | None) -> Path:
    return (trace / (member or "")).absolute()


def _stem(name: str) -> str:
    return name.split(".")[0] or name


def listed(ranks: tuple[int, ...]) -> str:
    """Ranks, neighbours as a range: 0-3, 7."""
    parts: list[list[int]] = []
    for rank in ranks:
        if parts and rank == parts[-1][1] + 1:
            parts[-1][1] = rank
        else:
            parts.append([rank, rank])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)

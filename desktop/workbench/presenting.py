"""What the user has asked for about a trace, as figures and reports want to hear it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from desktop.workbench.model import Project

if TYPE_CHECKING:  # brings numba, which the window loads only after it is on screen
    from desktop.data.material import Mark, Subject
    from desktop.data.store import TraceStore


def marks(project: Project, locations: Sequence[str]) -> tuple[Mark, ...]:
    """Its annotations, but for those that are hidden. `locations`: what those of the trace are called."""
    from desktop.data.material import Mark

    shown = (note for note in project.annotations if not note.hidden)
    return tuple(
        Mark(note.start_s, note.text, note.end_s, note.colour, note.where(locations)) for note in shown
    )


def subject(project: Project, store: TraceStore | None, title: str) -> Subject:
    """A run of a project to be reported on. `store` None: only to tell the command that does it."""
    from desktop.data.material import Subject
    from desktop.data.naming import location_name
    from desktop.data.utilization import Rules

    phases = project.phases
    locations = () if store is None else tuple(map(location_name, store.locations))
    return Subject(
        store=store,
        title=title,
        rules=project.rules or Rules(),
        model=phases.model,
        n=phases.n,
        locked=phases.locked,
        breaks=None if phases.breaks is None else phases.breaks[1:-1],
        degrees=phases.degrees,
        marks=marks(project, locations),
        names=project.names,
        limit=project.limit,
    )

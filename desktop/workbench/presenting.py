"""Settings of a trace in the form that figures and reports take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from desktop.core.labels import FIGURES, TABLES
from desktop.data.naming import location_name
from desktop.workbench.model import Annotation, Project, ReportChoices, marks_of

if TYPE_CHECKING:  # brings numba, which the window loads only after it is on screen
    from desktop.data.material import Mark, Predicted, Subject
    from desktop.data.report import Contents
    from desktop.data.store import TraceStore
    from desktop.workbench.what_if import WhatIf


def marks(annotations: Iterable[Annotation], locations: Sequence[str]) -> tuple[Mark, ...]:
    """Annotations, but for those that are hidden. `locations`: what those of the trace are called."""
    visible = [note for note in annotations if not note.hidden]
    if not visible:
        return ()
    from desktop.data.material import Mark

    return tuple(
        Mark(one.start_s, one.text, one.end_s, one.colour, one.location_name(locations)) for one in visible
    )


def prediction_of(what_if: WhatIf, names: Mapping[str, str]) -> Predicted | None:
    """The run with changes, if any are asked for; `names`: what regions are called."""
    prediction = what_if.drawn
    curve = None if prediction is None else prediction.curve
    if prediction is None or curve is None:
        return None
    from desktop.data.material import Predicted

    changes = prediction.changes.called(names).sentence
    return Predicted(curve, prediction.breaks_s, prediction.duration_s, changes or "no change")


def contents_of(choices: ReportChoices) -> Contents:
    """What a report holds by these choices."""
    from desktop.data.report import Contents

    return Contents(
        figures=tuple(key for key in FIGURES if key not in choices.without),
        statistics=choices.statistics,
        tables=tuple(key for key in TABLES if f"table {key}" not in choices.without),
        appendix=choices.appendix,
        by_region=choices.by_region,
    )


def subject(project: Project, store: TraceStore | None, title: str) -> Subject:
    """A run of a project to be reported on. `store` None: only to write the command line of the report."""
    from desktop.data.material import Subject
    from desktop.data.utilization import Rules

    phases = project.phases
    locations = () if store is None else tuple(map(location_name, store.locations))
    return Subject(
        store=store,
        title=title,
        rules=project.rules or Rules(),
        model=phases.model,
        basis=phases.basis,
        n=phases.n,
        locked=phases.locked,
        breaks=None if phases.breaks is None else phases.breaks[1:-1],
        degrees=phases.degrees,
        suggested=phases.suggested,
        marks=marks(project.annotations, locations),
        names=project.names,
        limit=project.limit,
        pure=phases.pure,
        phase_names=tuple(project.user_names),
        curve=project.curve,
        tracks=project.tracks,
        spoken=tuple(project.speaker_notes),
        events=marks_of(project.annotations),
    )

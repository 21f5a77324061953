"""What the figures of a run are drawn from: curve, fit, error by n, timeline; and the same as CSV.

The window has most of it at hand; the command line gathers it from a store. Texts that come from a trace
stay as they are here; whoever writes them into a document makes them `printable` and escapes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from desktop.core.contrast import Cell, Contrast, table
from desktop.core.curve import StepCurve
from desktop.core.gantt import ABSENT
from desktop.core.phase_stats import PhaseRow, phase_table
from desktop.core.phases import PhaseFit, Sweep, fit_breaks, sweep
from desktop.core.selection import Suggestion, suggest
from desktop.data.events import Activity
from desktop.data.naming import location_name
from desktop.data.store import TraceStore
from desktop.data.timeline import open_timeline
from desktop.data.utilization import Rules, Utilization, build
from desktop.progress import Progress, Share

#: The classes of a stack from its bottom, with their names.
CLASSES = {
    "computing": "Computing",
    "overhead": "Overhead",
    "io": "I/O",
    "idle": "Idle",
    "unmeasured": "Not measured",
}
#: Figures that can be drawn, in the order of a report.
FIGURES = {
    "curve": "Utilization and its phases",
    "stack": "What the processors do",
    "residual": "What the phases leave over",
    "epsilon": "Error by number of phases",
    "timeline": "Timeline",
    "phases": "Phase table",
    "comparison": "Runs compared",
}
# The error is computed for every n up to these, as the window does it.
_SWEEP, _SWEEP_PARAMETERS = 20, 60
# A timeline has no more rows and columns than a page can show.
_ROWS, _COLUMNS = 64, 720


@dataclass(frozen=True)
class Mark:
    """An annotation: a moment, or a stretch if `end_s` is given, in seconds on the curve's axis.

    `colour`: its place among those of annotations. `where`: the location that it is on, "" for all.
    """

    start_s: float
    text: str
    end_s: float | None = None
    colour: int = 0
    where: str = ""

    @property
    def told(self) -> str:
        """Its text, after the location that it is on."""
        return f"{self.where}: {self.text}" if self.where else self.text


@dataclass(frozen=True)
class Subject:
    """A run to be shown, as a command line, a window or a project asks for it.

    `model`, `n` (None: the suggested number), `locked` and `breaks` (all inner ones, set by hand; seconds)
    are the fit; `marks` are drawn on the curve; `names`: what regions are called instead. `store` None: there
    is nothing to draw yet.
    """

    store: TraceStore | None
    title: str
    rules: Rules = field(default_factory=Rules)
    model: str = "mixed"
    n: int | None = None
    locked: tuple[float, ...] = ()
    breaks: tuple[float, ...] | None = None
    marks: tuple[Mark, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Bars:
    """A timeline to be drawn: what each row does most in each column.

    `names` (rows,); `activity` (rows, columns) with `ABSENT` where a row is not there; `start_s`, `end_s`.
    `left_out`: how many rows are not here, as there are too many.
    """

    names: tuple[str, ...]
    activity: NDArray[np.uint8]
    start_s: float
    end_s: float
    left_out: int = 0

    def stretches(self, row: int) -> Iterator[tuple[float, float, Activity]]:
        """Neighbouring columns of one activity together: start, end (s), activity; gaps left out."""
        cells = self.activity[row]
        cut = np.flatnonzero(np.diff(cells)) + 1
        columns = np.concatenate([[0], cut, [cells.size]])
        times = self.start_s + columns * ((self.end_s - self.start_s) / cells.size)
        for i, first in enumerate(columns[:-1].tolist()):
            if cells[first] != ABSENT:
                yield float(times[i]), float(times[i + 1]), Activity(int(cells[first]))


@dataclass(frozen=True, eq=False)
class Material:
    """Everything that figures of one run need. `stack`: classes that occur, ``computing`` first.

    `sweep`, `suggestion` and `bars` are None where they are not known (a source that is a curve has no
    timeline); `contrast` where the run is not compared with others.
    """

    title: str
    curve: StepCurve
    stack: dict[str, StepCurve]
    fit: PhaseFit
    rows: tuple[PhaseRow, ...]
    sweep: Sweep | None = None
    suggestion: Suggestion | None = None
    bars: Bars | None = None
    marks: tuple[Mark, ...] = ()
    contrast: Contrast | None = None

    def figures(self) -> tuple[str, ...]:
        """The keys of `FIGURES` that can be drawn."""
        missing = {
            "stack": len(self.stack) < 2,
            "epsilon": self.sweep is None,
            "timeline": self.bars is None,
            "comparison": self.contrast is None,
        }
        return tuple(key for key in FIGURES if not missing.get(key))


def gather(
    subject: Subject, progress: Progress | None = None, stop: NDArray[Any] | None = None
) -> tuple[Material, Utilization]:
    """All that there is to draw of a run, from its store.

    Parameters
    ----------
    stop : array of one byte; a fit ends soon after it becomes nonzero.

    Raises
    ------
    ValueError : n or a break is impossible.
    StoreError : the store is damaged.
    Cancelled : by `progress` or `stop`.
    """
    progress = progress or Progress()
    rules, store = subject.rules, subject.store
    if store is None:
        raise ValueError(f"the trace of {subject.title} is not open")
    use = build(store, rules, Share(progress, 0, 0.4))
    curve = use.curve()
    progress.step(0.4, 1, "fitting every n")
    budget = subject.model == "budget"
    largest = max(
        _SWEEP_PARAMETERS if budget else _SWEEP,
        subject.n or 0,
        (len(subject.locked) + 1) * (2 if budget else 1),
    )
    swept = sweep(curve, subject.model, largest, locked=subject.locked, stop=stop)
    suggestion = suggest(swept)
    if subject.breaks is not None:
        ends = curve.start, curve.start + curve.duration
        outside = [t for t in subject.breaks if not ends[0] < t < ends[1]]
        if outside:
            raise ValueError(
                f"the break at {outside[0]:g} s is not inside the curve, which runs from {ends[0]:g} s to "
                f"{ends[1]:g} s"
            )
        fit = fit_breaks(curve, (ends[0], *subject.breaks, ends[1]), subject.model)
    else:
        n = suggestion.n if subject.n is None else subject.n
        if n < int(swept.n[0]):
            raise ValueError(f"{n} is fewer than the {int(swept.n[0])} that model and locked breaks need")
        fit = swept.fit(n)
    progress.step(0.7, 1, "timeline")
    found = Material(
        title=subject.title,
        curve=curve,
        stack=stack(use),
        fit=fit,
        rows=tuple(phase_table(curve, fit)),
        sweep=swept,
        suggestion=suggestion,
        bars=bars(store, rules, curve, Share(progress, 0.7, 1.0)),
        marks=subject.marks,
    )
    progress.step(1, 1)
    return found, use


def stack(use: Utilization) -> dict[str, StepCurve]:
    """Processors by class over time, those that occur; what counts as computing is one class."""
    found = {"computing": use.curve()}
    for name in list(CLASSES)[1:]:
        drawn_as = frozenset({Activity[name.upper()]}) - use.rules.computing
        level = replace(use, rules=replace(use.rules, computing=drawn_as)).curve()
        if level.level.any():
            found[name] = level
    return found


def bars(store: TraceStore, rules: Rules, curve: StepCurve, progress: Progress | None = None) -> Bars | None:
    """The timeline of a store; of too many processors, some at even distances. None of a curve."""
    timeline = open_timeline(store, rules, progress)
    if timeline is None:
        return None
    places = [i for i, x in enumerate(store.locations) if x.kind == "cpu" and timeline.there[i]]
    if not places:
        return None
    count = len(places)
    if count > _ROWS:
        places = [places[k * count // _ROWS] for k in range(_ROWS)]
    start, end = curve.start, curve.start + curve.duration
    tile = timeline.tile([[i] for i in places], start, end, _COLUMNS)
    names = tuple(location_name(store.locations[i]) for i in places)
    return Bars(names, tile.dominant, start, end, count - len(places))


def tables(material: Material, figure: str) -> dict[str, Iterable[tuple[object, ...]]]:
    """The data behind a figure: rows by the name of a table, headings first; numbers in full precision.

    Columns end in their unit: ``_s`` seconds; levels are processors.
    """
    found: dict[str, Iterable[tuple[object, ...]]] = {}
    if figure in ("curve", "residual"):
        found = {"curve": _steps(material.curve), "fit": _fit(material.fit)}
    if figure in ("curve", "phases"):
        found["phases"] = _phases(material)
    if figure == "stack":
        found = {name: _steps(curve) for name, curve in material.stack.items()}
    if figure == "epsilon" and material.sweep is not None:
        swept = material.sweep
        found["epsilon"] = [
            ("n", "epsilon", "lower", "upper"),
            *((fit.requested, fit.epsilon, fit.lower, fit.upper) for fit in swept.fits),
        ]
    if figure == "timeline" and material.bars is not None:
        found["timeline"] = _bars(material.bars)
    if figure == "comparison" and material.contrast is not None:
        found = _compared(material.contrast)
    return found


def _steps(curve: StepCurve) -> Iterator[tuple[object, ...]]:
    yield ("start_s", "end_s", "processors")
    for at in range(0, curve.segments, 1 << 16):
        edges = (curve.edges[at : at + (1 << 16) + 1] * curve.unit).tolist()
        yield from zip(edges[:-1], edges[1:], curve.level[at : at + (1 << 16)].tolist(), strict=True)


def _fit(fit: PhaseFit) -> Iterator[tuple[object, ...]]:
    yield (
        *("phase", "start_s", "end_s", "start_low_s", "start_high_s"),
        *("degree", "c0", "c1_per_s", "c2_per_s2", "error"),
    )
    for k in range(fit.n):
        spans = (fit.breaks[k], fit.breaks[k + 1], fit.break_low[k], fit.break_high[k])
        yield (k + 1, *map(float, spans), int(fit.degree[k]), *fit.powers[k].tolist(), float(fit.error[k]))


def _phases(material: Material) -> Iterator[tuple[object, ...]]:
    names = ("start_s", "end_s", "degree", "mean", "min", "max", "efficiency", "work_s", "error", "rms")
    yield ("phase", *names)
    for k, row in enumerate(material.rows, 1):
        yield (k, *(getattr(row, name) for name in names))


def _compared(contrast: Contrast) -> dict[str, Iterable[tuple[object, ...]]]:
    """The table of phases, and by the numbers of the runs their curves and differences on the axis."""
    placement = contrast.placement
    found: dict[str, Iterable[tuple[object, ...]]] = {"cells": [Cell._fields, *table(contrast.alignment)]}
    for kind, curves in (("run", placement.curves), ("difference", placement.differences)):
        found |= {f"{kind}{k}": _steps(curve) for k, curve in enumerate(curves, 1) if curve is not None}
    return found


def _bars(found: Bars) -> Iterator[tuple[object, ...]]:
    yield ("row", "start_s", "end_s", "activity")
    for row, name in enumerate(found.names):
        for start, end, activity in found.stretches(row):
            yield name, start, end, activity.name.lower()

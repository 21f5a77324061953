"""The data of a run's figures: curve, fit, error by n, timeline; and the same as CSV.

The window has most of it in memory; the command line gathers it from a store. Texts of a trace are kept
unchanged here; writers of documents make them `printable` and escape them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from desktop.core.arrays import Bytes, Floats, Ints
from desktop.core.contrast import Cell, Contrast, table
from desktop.core.critical_path import PathLine
from desktop.core.curve import StepCurve
from desktop.core.density import DRAWN, apart, line_density
from desktop.core.gantt import NO_REGION, NO_REGION_NAME, OTHER_REGION, region_classes, region_shares
from desktop.core.labels import ACTIVITIES, FIGURES
from desktop.core.phase_names import phase_names
from desktop.core.phase_stats import Firm, PhaseRow, phase_table
from desktop.core.phases import AS_SUGGESTED, PhaseFit, Sweep, fit_breakpoints
from desktop.core.selection import Suggestion, at_events, search
from desktop.core.spaces import Basis
from desktop.data.consistency import doubt
from desktop.data.curves import DEFAULT, build_curve
from desktop.data.events import Activity
from desktop.data.iterations import find, firm_breakpoints
from desktop.data.message_filter import MessageFilter
from desktop.data.naming import location_labels, location_name
from desktop.data.presence import structure
from desktop.data.store import TraceStore
from desktop.data.timeline import Timeline, open_timeline
from desktop.data.utilization import Rules, Utilization, build
from desktop.progress import Progress, Share

# Most rows, columns and cells of a timeline: what a page can show.
_ROWS, _COLUMNS, _LEAST_COLUMNS, _CELLS = 64, 720, 240, 23040
#: Points down the picture in which dense messages are counted; twice as many across.
_POINTS = 600
_OTHER_REGIONS = "(other regions)"


@dataclass(frozen=True)
class Mark:
    """An annotation: an instant, or an interval if `end_s` is given, in seconds on the curve's axis.

    `colour`: its index among those of annotations. `where`: the location that it refers to, "" for all.
    """

    start_s: float
    text: str
    end_s: float | None = None
    colour: int = 0
    where: str = ""

    @property
    def located_text(self) -> str:
        """Its text, preceded by the location that it refers to."""
        return f"{self.where}: {self.text}" if self.where else self.text


@dataclass(frozen=True, eq=False)
class Predicted:
    """A run predicted with the changes in `words`: its `curve`, the inner breakpoints of its phases and its
    duration (s)."""

    curve: StepCurve
    breaks_s: Floats
    duration_s: float
    words: str


@dataclass(frozen=True)
class Subject:
    """A run to be shown, as requested by a command line, a window or a project.

    `model`, `basis`, `n` (None: the suggested number), `locked` and `breaks` (all inner breakpoints, set by
    hand; seconds) define the fit, with `degrees` of the phases between `breaks` as for `fit_breakpoints`, and
    `suggested` if the breakpoints are the suggested ones; `marks` are drawn on the curve; `events`: times (s)
    and texts of what the user marked, structure events whether drawn or not. `names`: other names of regions.
    `limit`: the time range (seconds) that is analysed, None for the whole run. `pure`: fits and suggestion
    use the curve alone; `phase_names`: the user's names of phases, each with a time inside the
    phase (s). `store` None: there is nothing to draw yet. `curve`: the fitted one, and `tracks` those drawn
    below it, as in `desktop.data.curves`. `firm`: firmness of its inner breakpoints over other runs, if
    known. `spoken`: a speaker's own notes, each with a time inside its phase (s; None: of the run).
    """

    store: TraceStore | None
    title: str
    rules: Rules = field(default_factory=Rules)
    model: str = "mixed"
    basis: Basis | str | None = None
    n: int | None = None
    locked: tuple[float, ...] = ()
    breaks: tuple[float, ...] | None = None
    degrees: tuple[int, ...] | None = None
    suggested: bool = False
    marks: tuple[Mark, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    limit: tuple[float, float] | None = None
    pure: bool = False
    phase_names: tuple[tuple[float, str], ...] = ()
    curve: str = "computing"
    tracks: tuple[str, ...] = ()
    firm: tuple[Firm | None, ...] = ()
    spoken: tuple[tuple[float | None, str], ...] = ()
    events: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True, eq=False)
class Drawn:
    """Messages and collectives of a timeline. `lines` (n, 4): sent (s), row, received (s), row, where rows
    are given by their middle from the top; if lines would be indistinguishable, `density` (rows of points,
    columns): number of messages through each point of the picture. `collectives` (n, 2): begin (s), top
    of the row."""

    count: int
    lines: Floats
    density: NDArray[np.int32] | None = None
    collectives: Floats = field(default_factory=lambda: np.empty((0, 2)))


@dataclass(frozen=True, eq=False)
class Bars:
    """A timeline to be drawn: the exact time of each row in each class, per column.

    names (rows,) : of the processors; for neighbours that share a row, of the first and the last one.
    merged (rows,) : number of processors in each row.
    edges (columns + 1,) : ticks of `unit` seconds since the curve's start. Every breakpoint is one of them.
    ticks (rows, columns, classes) : processor-ticks. A row that is not present all the time has fewer.
    classes : activities by their keys in `ACTIVITIES`, or names of regions; then `shades` are their colours
        (numbers of `desktop.core.gantt`; regions without a colour of their own share one class).
    labels (rows,) : text beside the rows.
    path (k, 4) : lines of the critical path, times (s) and rows by their middle from the top; None: none.
    """

    names: tuple[str, ...]
    merged: tuple[int, ...]
    edges: Ints
    unit: float
    ticks: Ints
    classes: tuple[str, ...]
    shades: tuple[int, ...] = ()
    messages: Drawn | None = None
    labels: tuple[str, ...] = ()
    path: Floats | None = None

    @property
    def times(self) -> Floats:
        """(columns + 1,) the edges in seconds."""
        return self.edges * np.float64(self.unit)

    @property
    def shares(self) -> Floats:
        """(rows, columns, classes) shares of the time of a row in a column."""
        room = np.outer(self.merged, np.diff(self.edges))
        return self.ticks / room[:, :, None]


@dataclass(frozen=True, eq=False)
class Material:
    """Everything needed for the figures of one run. `stack`: classes that occur, ``computing`` first.

    `sweep`, `suggestion` and `bars` are None if unknown (a source that is a curve has no timeline),
    `contrast` if the run is not compared with others. `locked`: breakpoints that are held, `limit`: the range
    analysed (seconds); `doubt`: the doubtful share of the curve, in words; `predicted`: the run with changes;
    `tracks`: curves drawn below; `firm`: of the inner breakpoints, over iterations or runs; `boundaries`: of
    iterations (seconds), if they are drawn.
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
    locked: tuple[float, ...] = ()
    limit: tuple[float, float] | None = None
    doubt: str = ""
    tracks: tuple[StepCurve, ...] = ()
    predicted: Predicted | None = None
    firm: tuple[Firm | None, ...] = ()
    boundaries: tuple[float, ...] = ()

    @property
    def by_hand(self) -> PhaseFit | None:
        """The fit that is shown if it is not in the sweep: with another n, or breakpoints set by hand."""
        if self.sweep is None:
            return None
        same = (fit.epsilon for fit in self.sweep.fits if fit.requested == self.fit.requested)
        in_sweep = any(math.isclose(e, self.fit.epsilon, rel_tol=1e-9, abs_tol=1e-12) for e in same)
        return None if in_sweep else self.fit

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
    subject: Subject, progress: Progress | None = None, stop: Bytes | None = None, *, by_region: bool = False
) -> tuple[Material, Utilization]:
    """Everything to draw of a run, from its store.

    Parameters
    ----------
    stop : array of one byte; a fit ends soon after it becomes nonzero.
    by_region : whether the timeline shows regions instead of activities.

    Raises
    ------
    ValueError : n or a breakpoint is impossible.
    Cancelled : by `progress` or `stop`.
    """
    progress = progress or Progress()
    rules, store = subject.rules, subject.store
    if store is None:
        raise ValueError(f"the trace of {subject.title} is not open")
    use = build(store, rules, Share(progress, 0, 0.4))
    curve = build_curve(store, use, subject.curve, Share(progress, 0.4, 0.4))
    if subject.limit is not None:
        curve = curve.window(*subject.limit)
    progress.step(0.4, 1, "fitting every n")
    events = structure(store, use, progress)
    landmarks = None if subject.pure else events.landmarks(curve, subject.events)
    sweep, suggestion = search(
        curve,
        subject.model,
        locked=subject.locked,
        to=subject.n or 0,
        stop=stop,
        landmarks=landmarks,
        basis=subject.basis,
    )
    if subject.breaks is not None:
        ends = curve.span
        outside = [t for t in subject.breaks if not ends[0] < t < ends[1]]
        if outside:
            raise ValueError(
                f"the breakpoint at {outside[0]:g} s is not inside the curve, which runs from "
                f"{ends[0]:g} s to {ends[1]:g} s"
            )
        breakpoints = (ends[0], *subject.breaks, ends[1])
        fit = fit_breakpoints(curve, breakpoints, subject.model, degrees=subject.degrees, basis=subject.basis)
        if subject.suggested:
            fit = replace(fit, note=AS_SUGGESTED)
    else:
        n = suggestion.n if subject.n is None else subject.n
        if n < int(sweep.n[0]):
            raise ValueError(
                f"{n} is fewer than the {int(sweep.n[0])} that model and locked breakpoints need"
            )
        if subject.n is None:
            fit = suggestion.fit(curve, sweep)
        else:
            fit = at_events(curve, sweep.fit(n), landmarks, subject.locked)
    part = use.curve() if subject.limit is None else use.curve().window(*subject.limit)
    names = phase_names(events.doings(part), fit.breaks, subject.phase_names, subject.names)
    fit = replace(fit, names=names)
    progress.step(0.7, 1, "timeline")
    gathered = Material(
        title=subject.title,
        curve=curve,
        stack=stack(use, subject.limit) if subject.curve == DEFAULT else {"computing": curve},
        fit=fit,
        rows=tuple(phase_table(curve, fit)),
        sweep=sweep,
        suggestion=suggestion.called(subject.names),
        bars=bars(
            store,
            rules,
            curve,
            Share(progress, 0.7, 1.0),
            breakpoints=fit.breaks[1:-1],
            by_region=by_region,
            names=subject.names,
        ),
        marks=subject.marks,
        locked=subject.locked,
        limit=subject.limit,
        doubt=lost.short if (lost := doubt(store)) else "",
    )
    progress.step(1, 1)
    tracks = [build_curve(store, use, name) for name in subject.tracks]
    if subject.limit is not None:
        tracks = [track.window(*subject.limit) for track in tracks]
    loops = find(store, use, progress, curve, explained=False) if fit.n > 1 else None
    firm = firm_breakpoints(loops, curve, fit)
    if len(subject.firm) == fit.n - 1:
        firm = subject.firm
    return replace(gathered, tracks=tuple(tracks), firm=firm), use


def stack(use: Utilization, limit: tuple[float, float] | None = None) -> dict[str, StepCurve]:
    """Processors by class over time, for classes that occur; what counts as computing is one class. Only
    within `limit` (seconds), if given."""
    curves = {"computing": use.curve()}
    for name in list(ACTIVITIES)[1:]:
        doing = Activity[name.upper()]
        if doing not in use.rules.computing and use.counts[doing].any():
            drawn_as = replace(use.rules, computing=frozenset({doing}))
            curves[name] = replace(use, rules=drawn_as).curve()
    if limit is not None:
        parts = {name: level.window(*limit) for name, level in curves.items()}
        curves = {name: part for name, part in parts.items() if name == "computing" or part.level.any()}
    return curves


# Many: the options of a timeline figure.
def bars(
    store: TraceStore,
    rules: Rules,
    curve: StepCurve,
    progress: Progress | None = None,
    *,
    span: tuple[float, float] | None = None,
    breakpoints: Iterable[float] = (),
    by_region: bool = False,
    names: Mapping[str, str] | None = None,
    messages: MessageFilter | None = None,
    path: PathLine | None = None,
    cells: int = _CELLS,
) -> Bars | None:
    """The timeline of a store, from all its events; None for a curve.

    Parameters
    ----------
    span : the range drawn, in seconds; None: the whole curve.
    breakpoints : times (s) that must be ends of columns, so that each phase consists of whole columns.
    messages : filter of the messages to be drawn; None: none.
    path : the critical path, if it is to be drawn.
    by_region : whether to show the innermost region instead of the activity, named by `names` if included
        there.
    cells : approximate limit of their number.

    Raises
    ------
    ValueError : the span holds no tick of the curve.
    """
    progress = progress or Progress()
    timeline = open_timeline(store, rules, Share(progress, 0, 0.3))
    if timeline is None:
        return None
    places = [i for i, x in enumerate(store.locations) if x.kind == "cpu" and timeline.present[i]]
    if not places:
        return None
    groups = [group.tolist() for group in np.array_split(places, min(len(places), _ROWS))]
    edges = _columns(
        curve, span, breakpoints, max(_LEAST_COLUMNS, min(_COLUMNS * cells // _CELLS, cells // len(groups)))
    )
    rows, labels = (
        tuple(
            called[group[0]] if len(group) == 1 else f"{called[group[0]]} – {called[group[-1]]}"
            for group in groups
        )
        for called in ([location_name(x) for x in store.locations], location_labels(store.locations))
    )
    if by_region:
        classes, shades, lut = _regions(store, timeline.weights(), names or {})
        order = np.arange(len(classes))
    else:
        classes, shades, lut = tuple(ACTIVITIES), (), None
        order = np.array([Activity[name.upper()] for name in classes])
    spent = timeline.spent(groups, edges, lut, Share(progress, 0.3, 1))[:, :, order]
    seen = np.flatnonzero(spent.any(axis=(0, 1))).tolist()
    times = edges * np.float64(curve.unit)
    span_s = float(times[0]), float(times[-1])
    return Bars(
        rows,
        tuple(map(len, groups)),
        edges,
        curve.unit,
        np.ascontiguousarray(spent[:, :, seen]),
        tuple(classes[k] for k in seen),
        tuple(shades[k] for k in seen if shades),
        None if messages is None else _messages(timeline, messages, groups, times),
        labels,
        None if path is None else path.lines(_middles(store, groups), *span_s, _POINTS)[0],
    )


def _middles(store: TraceStore, groups: list[list[int]]) -> Floats:
    """(locations,) the middle of the row in which each is drawn; NaN if in none."""
    row = np.full(len(store.locations), np.nan)
    for k, group in enumerate(groups):
        row[group] = k + 0.5
    return row


def _messages(
    timeline: Timeline, criteria: MessageFilter, groups: list[list[int]], times: Floats
) -> Drawn | None:
    """The messages between the rows of a figure, as lines or as a density, and the collectives."""
    drawn = timeline.filtered_messages(criteria) if criteria.shown else None
    a, b = float(times[0]), float(times[-1])
    row = _middles(timeline.store, groups)
    begins = [(c.begin_s, row[c.location] - 0.5) for c in timeline.collectives(a, b, DRAWN) or ()]
    collectives = np.array([(at, top) for at, top in begins if a <= at <= b and top >= 0]).reshape(-1, 2)
    if drawn is None:
        return Drawn(0, np.empty((0, 4)), None, collectives) if collectives.size else None
    ends = np.stack([drawn.sent_s, row[drawn.sender], drawn.received_s, row[drawn.receiver]], axis=1)
    ends = ends[(drawn.sent_s <= b) & (drawn.received_s >= a) & np.isfinite(ends).all(axis=1)]
    high = max(_POINTS, len(groups))
    x, y = (ends[:, ::2].T - a) / (b - a) * 2 * _POINTS, ends[:, 1::2].T / len(groups) * high
    density = line_density(x, y, 2 * _POINTS, high)
    if apart(density, len(ends)):
        return Drawn(len(ends), ends, None, collectives)
    return Drawn(len(ends), ends[:0], density, collectives)


def _columns(curve: StepCurve, span: tuple[float, float] | None, cuts: Iterable[float], count: int) -> Ints:
    """Ends of about `count` columns, in ticks, rounded like the ends of ranges in statistics."""
    ends = np.rint(curve.edges[[0, -1]])
    first, last = span or curve.span
    a, b = np.clip(np.rint(np.array([first, last]) / curve.unit), *ends)
    if not a < b:
        raise ValueError(
            f"the range {first:.9g} s to {last:.9g} s holds no tick of the trace, show more of it"
        )
    between = np.rint(np.fromiter(cuts, float) / curve.unit)
    even = np.rint(np.linspace(a, b, count + 1))
    return np.unique(np.concatenate([even, between[(between > a) & (between < b)]])).astype(np.int64)


def _regions(
    store: TraceStore, weights: Floats, names: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[int, ...], Bytes]:
    """The regions that take most time, all others together, and no region: their names, their colours, and
    the class (regions + 1,) of each region, no region first."""
    regions = [region.name for region in store.regions]
    called = [names.get(name, name) for name in regions]
    most = [one for one in region_shares(called, region_classes(regions, weights), weights) if one[0] >= 0]
    lut = np.full(weights.size, len(most), np.uint8)
    lut[0] = len(most) + 1
    lut[np.array([region for region, _, _ in most], np.int64) + 1] = np.arange(len(most))
    classes, shades = (name for _, name, _ in most), (shade for _, _, shade in most)
    return (*classes, _OTHER_REGIONS, NO_REGION_NAME), (*shades, OTHER_REGION, NO_REGION), lut


def tables(
    material: Material, figure: str, span: tuple[float, float] | None = None
) -> dict[str, Iterable[tuple[object, ...]]]:
    """The data of a figure: rows by the name of a table, headings first; numbers in full precision.

    Names of columns end in their unit: ``_s`` seconds; levels are processors. Of curves only the part in
    `span` (seconds; None: all); the timeline is `Material.bars`, phases and errors are those of the run.
    """
    rows_of: dict[str, Iterable[tuple[object, ...]]] = {}
    if figure in ("curve", "residual"):
        rows_of = {"curve": _steps(_within(material, material.curve, span)), "fit": _fit(material.fit)}
    if figure in ("curve", "phases"):
        rows_of["phases"] = _phases(material)
    if figure in ("curve", "stack") and material.predicted is not None:
        rows_of["predicted"] = _steps(_within(material, material.predicted.curve, span))
    if figure == "stack":
        rows_of = {name: _steps(_within(material, curve, span)) for name, curve in material.stack.items()}
    if figure == "epsilon" and material.sweep is not None:
        sweep = material.sweep
        rows_of["epsilon"] = [
            ("n", "epsilon", "lower", "upper", "shown"),
            *((f.requested, f.epsilon, f.lower, f.upper, mark) for f, mark in _errors(material, sweep)),
        ]
    if figure == "timeline" and material.bars is not None:
        rows_of["timeline"] = _bars(material.bars)
    if figure == "comparison" and material.contrast is not None:
        rows_of = _compared(material.contrast)
    return rows_of


def _steps(curve: StepCurve) -> Iterator[tuple[object, ...]]:
    yield ("start_s", "end_s", "processors")
    for at in range(0, curve.segments, 1 << 16):
        edges = (curve.edges[at : at + (1 << 16) + 1] * curve.unit).tolist()
        yield from zip(edges[:-1], edges[1:], curve.level[at : at + (1 << 16)].tolist(), strict=True)


def _within(material: Material, curve: StepCurve, span: tuple[float, float] | None) -> StepCurve:
    if span is None:
        return curve
    a, b = max(span[0], curve.start), min(span[1], curve.start + curve.duration)
    if material.bars is not None:  # of a trace: ranges are whole ticks
        a, b = (float(np.rint(t / curve.unit)) * curve.unit for t in (a, b))
    return curve.window(a, b) if a < b else curve


def _errors(material: Material, sweep: Sweep) -> list[tuple[PhaseFit, str]]:
    """The best fit of every n that was computed, and the fit that is shown, which may have another n or
    breakpoints set by hand. With each "yes" if it is shown, else ""."""
    if material.by_hand is None:
        return [(fit, "yes" if fit.requested == material.fit.requested else "") for fit in sweep.fits]
    every = [*((fit, "") for fit in sweep.fits), (material.by_hand, "yes")]
    return sorted(every, key=lambda row: row[0].requested)


_POWERS = ("c0", "c1_per_s", "c2_per_s2")


def _fit(fit: PhaseFit) -> Iterator[tuple[object, ...]]:
    terms: tuple[str, ...] = _POWERS
    scale: dict[str, float] = {}
    if fit.basis is not None:
        terms, scale = (*_POWERS[:2], *fit.basis.space.columns), fit.basis.scale
    yield (
        *("phase", "start_s", "end_s", "start_low_s", "start_high_s"),
        "degree",
        *terms,
        *scale,
        "error",
    )
    for k in range(fit.n):
        spans = (fit.breaks[k], fit.breaks[k + 1], fit.breakpoint_low[k], fit.breakpoint_high[k])
        powers = fit.powers[k, : len(terms)].tolist()
        yield (
            *(k + 1, *map(float, spans), int(fit.degree[k])),
            *powers,
            *scale.values(),
            float(fit.error[k]),
        )


def _phases(material: Material) -> Iterator[tuple[object, ...]]:
    names = ("start_s", "end_s", "degree", "mean", "min", "max", "efficiency", "work_s", "error", "rms")
    yield ("phase", *names)
    for k, row in enumerate(material.rows, 1):
        yield (k, *(getattr(row, name) for name in names))


def _compared(contrast: Contrast) -> dict[str, Iterable[tuple[object, ...]]]:
    """The table of phases, and, by the numbers of the runs, their curves and differences on the axis."""
    placement = contrast.placement
    rows_of: dict[str, Iterable[tuple[object, ...]]] = {"cells": [Cell._fields, *table(contrast.alignment)]}
    for kind, curves in (("run", placement.curves), ("difference", placement.differences)):
        rows_of |= {f"{kind}{k}": _steps(curve) for k, curve in enumerate(curves, 1) if curve is not None}
    return rows_of


def _bars(drawn: Bars) -> Iterator[tuple[object, ...]]:
    heading = "region" if drawn.shades else "activity"
    yield ("row", "processors", "start_s", "end_s", heading, "time_s")
    times, seconds = drawn.times.tolist(), drawn.ticks * drawn.unit
    for row, (name, merged) in enumerate(zip(drawn.names, drawn.merged, strict=True)):
        for column, k in np.argwhere(drawn.ticks[row]).tolist():
            spent = float(seconds[row, column, k])
            yield name, merged, times[column], times[column + 1], drawn.classes[k], spent

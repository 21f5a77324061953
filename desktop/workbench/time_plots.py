"""What the plots over time state: axes, values in columns, fit, phases, breakpoints, notes, legend, in words.

One description stands behind a plot of the window and the same plot on a sheet of paper, PDF or SVG: the
window's kernels and `desktop.ui.figures` only paint it. Times are seconds, levels processors, unless said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from desktop.core import ticks
from desktop.core.arrays import Flags, Floats, Ints
from desktop.core.curve import StepCurve
from desktop.core.envelope import Columns, envelope
from desktop.core.labels import ACTIVITIES, FIGURES
from desktop.core.matching import NONE
from desktop.core.pieces import Breakpoints, breakpoints, residual, visible
from desktop.core.quantity import PROCESSORS, CurveQuantity
from desktop.core.ticks import Ticks
from desktop.core.units import common, format_number, grouped
from desktop.workbench.levels import (
    AT_FIRST,
    ROOM,
    Levels,
    V,
    heights_of,
    limits,
    note,
    residual_reach,
    share,
)

if TYPE_CHECKING:
    from desktop.core.contrast import Contrast
    from desktop.core.phase_stats import Firm
    from desktop.core.phases import PhaseFit
    from desktop.data.material import Bars, Mark, Material, Predicted

Measure = Callable[[str], float]

#: Words of plots over time, by the keys under which they may be replaced.
WORDS = {
    "time": "Time",
    "processors": "Processors",
    "utilization": "Utilization",
    **ACTIVITIES,
    "extremes": "Min to max",
    "fit": "Fit: {0} ({1})",
    "predicted": "What if: {0}",
    "break": "Breakpoint and its range",
    "break alone": "Breakpoint",
    "firm": "Its interval over {0}",
    "residual axis": "Residual",
    "residual": "Curve − fit, mean",
    "rms": "± r.m.s. of each phase",
    "epsilon": "ε = {0} {1}",
    "phase error": "phase {0}: r.m.s. {1} {3}, local error {2} {4}",
    "location": "Location",
    "rank": "Rank",
    "message": "Message",
    "messages": "Messages, 1 to {0} at a point",
    "collective": "Collective begins",
    "path": "Critical path",
    "shared rows": "{0} locations in {1} rows: neighbours share a row",
    "absolute": "Time",
    "start": "Time from each run's start",
    "normalised": "Part of each run",
    "phases": "Time of the phases of {0}",
    "run": "{0}: {1} processors, {2}",
    "reference": "{0} (reference)",
    "difference": "Difference",
    "integrated": "Difference to {0}, integrated: {1}",
    "of processors": "of {0} processors",
}
#: Lines of text and widths of a label that a tick takes of its axis.
_LINES, _LABELS = 1.9, 1.5
#: Height of a curve below the one that is fitted, as a part of that.
TRACK = 0.3
#: Room around the number of a phase, in heights of text.
_AROUND = 0.3


class Words:
    """Says the words of a plot or what replaces them; `spoken`: by their keys.

    `time_unit`: seconds and name of the unit of time asked for; `quantity`: writes a number in a unit.
    """

    def __init__(
        self,
        replaced: Mapping[str, str] | None = None,
        time_unit: tuple[float, str] | None = None,
        quantity: Callable[[float, str], str] = lambda value, unit: f"{format_number(value)} {unit}",
    ) -> None:
        self._replaced = replaced or {}
        self.time_unit, self.quantity = time_unit, quantity
        self.spoken: dict[str, str] = {}

    def __call__(self, key: str, *values: object) -> str:
        """The words of `WORDS` with what they are about."""
        return self.name(key, WORDS[key].format(*values))

    def name(self, key: str, text: str) -> str:
        """A text that is not one of the program's words."""
        self.spoken[key] = self._replaced.get(key, text)
        return self.spoken[key]


@dataclass(frozen=True)
class AxisData:
    """An axis from `low` to `high`: seconds (`time`), or levels, of which labels count `factor` times as much
    in `unit`. `top`: a level that always has a tick, of all processors. `time_unit`: seconds and name of
    the unit of time that was asked for."""

    title: str
    low: float
    high: float
    unit: str = ""
    factor: float = 1.0
    log: bool = False
    time: bool = False
    whole: bool = False
    top: float | None = None
    time_unit: tuple[float, str] | None = None

    def share(self, value: V) -> V:
        """How far along the axis values lie, 0 to 1."""
        return share(value, self.low, self.high, self.log)

    @property
    def words(self) -> str:
        """Its title with the unit of its labels."""
        unit = ticks.time_unit(self.high - self.low, self.time_unit)[1] if self.time else self.unit
        return f"{self.title} ({unit})" if unit and self.title else self.title

    def across(self, length: float, width: Measure) -> Ticks:
        """Ticks of a level axis so long, whose labels are so wide."""
        label = "000.000"
        if self.time_unit is not None:  # whose numbers may be long
            long = f"{max(abs(self.low), abs(self.high)) / self.time_unit[0]:,.1f}"
            label = max(label, long, key=len)
        return _ticks(self, max(length / (width(label) * _LABELS), 1.5))

    def upright(self, length: float, line: float) -> Ticks:
        """Ticks of an upright axis so long, where a line of text is so high."""
        return _upright(self, length, line)


@lru_cache(maxsize=32)  # the grid has those of the axes, and the next picture often the same
def _upright(axis: AxisData, length: float, line: float) -> Ticks:
    marks = _ticks(axis, max(length / (line * _LINES), 1.5))
    if axis.top is None or not axis.low <= axis.top <= axis.high:
        return marks
    at = axis.share(axis.top)
    apart = [k for k, v in enumerate(marks.positions) if abs(axis.share(v) - at) * length > line]
    labels = [*(marks.labels[k] for k in apart), format_number(axis.top * axis.factor)]
    return Ticks([*(marks.positions[k] for k in apart), axis.top], labels)


@lru_cache(maxsize=32)
def _ticks(axis: AxisData, room: float) -> Ticks:
    if axis.time:
        return ticks.time_ticks(axis.low, axis.high, room, axis.time_unit)
    low, high = axis.low * axis.factor, axis.high * axis.factor
    if axis.log:
        marks = ticks.power_ticks(math.log10(low), math.log10(high), room)
        places = [10.0**v for v in marks.positions]
    else:
        marks = ticks.level_ticks(low, high, room, whole=axis.whole)
        places = marks.positions
    return Ticks([v / axis.factor for v in places], marks.labels)


@dataclass(frozen=True)
class LegendData:
    """A line of a legend: `words` for what is drawn as `ink`. `key`: what a click switches ("" nothing), and
    what is seen now if `shown`."""

    words: str
    ink: str
    key: str = ""
    shown: bool = True


@dataclass(frozen=True, eq=False)
class SeriesData:
    """Values in the W columns between the times `x` (W+1,), drawn as `ink`.

    `look`: "filled" down to the lower end, "stacked" upon the series before it, or a "line"; but for stacked
    ones with their extremes. `seen` (W,): where there are values; None: wherever they are finite.
    """

    ink: str
    x: Floats
    columns: Columns
    look: Literal["filled", "stacked", "line"] = "line"
    seen: Flags | None = None

    @property
    def seen_columns(self) -> Flags:
        """(W,) where there are values."""
        return np.isfinite(self.columns.mean) if self.seen is None else self.seen

    @property
    def exact(self) -> bool:
        """Whether every step is seen by itself, so that there are no extremes beside the mean."""
        return int(self.columns.steps.max(initial=0)) <= 2


@dataclass(frozen=True, eq=False)
class Spread:
    """Levels ± `level` (K,) from `a` to `b` (seconds): what the curve differs from the fit by in a phase."""

    a: Floats
    b: Floats
    level: Floats


@dataclass(frozen=True, eq=False)
class LaneData:
    """Curves over an upright axis. `fitted`: with the fit; `zero`: a line there. `part`: of the height that
    all lanes have. `entries` and `note`: of this lane alone, where several stand below each other. `moved`:
    where breakpoints come to lie in a predicted run (s)."""

    axis: AxisData
    series: tuple[SeriesData, ...]
    fitted: bool = False
    zero: bool = False
    spread: Spread | None = None
    entries: tuple[LegendData, ...] = ()
    note: str = ""
    part: float = 1.0
    moved: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def exact(self) -> bool:
        return all(series.exact for series in self.series if series.ink != "predicted")


@dataclass(frozen=True, eq=False)
class Strip:
    """The phases of a run above the lanes, (n, 2) seconds, with their numbers. `ink`: of the run, "" if it
    is the only one. `marked`: one of them; `alone`: (n,) those that no other run has.
    `names`: what they are called, () if nothing; `by_hand`: those that were matched so, which have a star."""

    spans: Floats
    ink: str = ""
    marked: int | None = None
    alone: Flags | None = None
    names: Sequence[str] = ()
    by_hand: frozenset[int] = frozenset()

    def label(self, phase: int) -> str:
        """Its number."""
        return f"{phase + 1}{'*' if phase in self.by_hand else ''}"

    def seen(self, axis: AxisData) -> Iterator[tuple[int, float, float]]:
        """The phases within an axis: place, and from where to where along it, 0 to 1."""
        places, ends = self._ends(axis)
        for k, (a, b) in zip(places.tolist(), ends.tolist(), strict=True):
            yield k, a, b

    def _ends(self, axis: AxisData) -> tuple[Ints, Floats]:
        """Places (k,) of those within an axis, and (k, 2) from where to where along it, 0 to 1."""
        places = np.flatnonzero((self.spans[:, 1] > axis.low) & (self.spans[:, 0] < axis.high))
        return places, np.clip(axis.share(self.spans[places]), 0.0, 1.0)

    def labelled(
        self, axis: AxisData, length: float, em: float, width: Measure
    ) -> Iterator[tuple[int, float, float, str]]:
        """The phases that are marked, or have room for their number along an axis so long: place, from where
        to where, and number and name as far as there is room."""
        least = width("1") + _AROUND * em
        places, ends = self._ends(axis)
        ends *= length
        # Hundreds have no room for a number; those need not be asked one by one.
        wide = (ends[:, 1] - ends[:, 0] > least) | (places == self.marked)
        for k, (a, b) in zip(places[wide].tolist(), ends[wide].tolist(), strict=True):
            label = self.label(k)
            fits = b - a - _AROUND * em
            named = f"{label} {self.names[k]}" if self.names and self.names[k] else label
            # The whole name, or the region alone, or the number.
            words = (named, named.partition(":")[0], label)
            yield k, a, b, next((text for text in words if width(text) < fits), "")


@dataclass(frozen=True)
class Link:
    """Phases of neighbouring strips that belong together: that of strip `upper` from `a` to `b`, that of the
    next one from `c` to `d`; `alike`: 0 to 1. `row`: of the table of matches."""

    upper: int
    row: int
    a: float
    b: float
    c: float
    d: float
    alike: float


@dataclass(frozen=True, eq=False)
class CellData:
    """What the `rows` of a timeline do most between the times `x` (C + 1,): `most` (rows, C) are places in
    `inks`, -1 or beyond where a row is not there."""

    rows: Sequence[str]
    x: Floats
    most: Ints
    inks: Sequence[str]

    def stretches(self, row: int) -> Iterator[tuple[float, float, int]]:
        """What a row does most one after the other: from when to when, and the place of what."""
        most = self.most[row]
        cut = np.concatenate([[0], np.flatnonzero(np.diff(most)) + 1, [most.size]])
        for a, b in zip(cut[:-1].tolist(), cut[1:].tolist(), strict=True):
            if b > a and 0 <= most[a] < len(self.inks):
                yield float(self.x[a]), float(self.x[b]), int(most[a])


@dataclass(frozen=True, eq=False)
class PlotData:
    """One plot over time.

    `lanes` from top to bottom, all over `axis`, below `strips` of phases. `ranges`: where breakpoints may lie
    is shown. `phase`: a chosen one. `notes`: remarks on times. `limit`: what alone is analysed (seconds).
    `remarks`: sentences on what is seen; `doubt`: how much of it may be wrong. `cells`: what the `rows` of a
    timeline, from the top, do most; `bars`: the same in exact shares, on paper. `reference`: the run that
    others are compared with. `firm`: intervals of breakpoints over repeats, `boundaries` of iterations (s),
    those that are seen.
    """

    figure: str
    title: str
    axis: AxisData
    lanes: tuple[LaneData, ...] = ()
    legend: tuple[LegendData, ...] = ()
    strips: tuple[Strip, ...] = ()
    links: tuple[Link, ...] = ()
    fit: PhaseFit | None = None
    breakpoints: Breakpoints | None = None
    ranges: bool = False
    phase: int | None = None
    notes: tuple[Mark, ...] = ()
    limit: tuple[float, float] | None = None
    remarks: tuple[str, ...] = ()
    doubt: str = ""
    bars: Bars | None = None
    cells: CellData | None = None
    rows: tuple[str, ...] = ()
    reference: int = 0
    firm: tuple[Firm, ...] = ()
    boundaries: Floats = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True, eq=False)
class OverData:
    """What lies over the values of one run in all its plots: fit, with a chosen `phase` and breakpoints that
    are `locked`; what alone is analysed, `limit` (s); how much of it is in `doubt`, in words; the run with
    changes, `predicted`; intervals of the inner breakpoints over repeats, `firm`; `boundaries` of iterations
    (s)."""

    fit: PhaseFit | None = None
    locked: tuple[float, ...] = ()
    phase: int | None = None
    limit: tuple[float, float] | None = None
    doubt: str = ""
    predicted: Predicted | None = None
    firm: tuple[Firm | None, ...] = ()
    boundaries: Sequence[float] | Floats = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class RunData(OverData):
    """What a plot of one run is made of. `stack`: the levels of its activities; `tracks`: curves below."""

    curve: StepCurve
    stack: Mapping[str, StepCurve] = field(default_factory=dict)
    notes: tuple[Mark, ...] = ()
    levels: Levels = AT_FIRST
    tracks: tuple[StepCurve, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether the curve is the utilization."""
        return self.curve.quantity == PROCESSORS


def column_times(curve: StepCurve, a: float, b: float, count: int) -> Floats:
    """The times between the columns from `a` to `b`: those of the steps, or of `count` equal parts where
    there are more steps."""
    first = int(np.searchsorted(curve.edges, a / curve.unit, "right"))
    last = int(np.searchsorted(curve.edges, b / curve.unit, "left"))
    if last - first < count:
        return np.unique(np.concatenate([[a], curve.edges[first:last] * curve.unit, [b]]))
    return np.linspace(a, b, count + 1)


def time_axis(a: float, b: float, say: Words) -> AxisData:
    return AxisData(say("time"), a, b, time=True, time_unit=say.time_unit)


# ------------------------------------------------------------------ one run


def level_axis(run: RunData, x: Floats, say: Words) -> AxisData:
    low, high = limits(run.levels, heights_of(run.curve, x[0], x[-1]))
    of = run.curve.quantity
    if of.counted:
        title, top = say.name("processors", of.axis), run.curve.capacity
        return AxisData(title, low, high, log=run.levels.log, whole=True, top=top)
    return replace(quantity_axis(of, low, high, say.name("processors", of.axis)), log=run.levels.log)


def quantity_axis(of: CurveQuantity, low: float, high: float, title: str, *, whole: bool = False) -> AxisData:
    """An axis of levels in their unit, with a prefix where it takes one; `whole`: as numbers of things."""
    most = max(abs(low), abs(high))
    if of.physical:
        prefix = common((most,), of.unit)
        return AxisData(title, low, high, prefix.symbol, 1 / prefix.factor)
    return AxisData(title, low, high, "" if of.axis.lower().startswith(of.unit) else of.unit, whole=whole)


def track_lane(curve: StepCurve, x: Floats, say: Words, key: str) -> LaneData:
    """A curve of its own below the one that is fitted, from 0 or its least level to its largest of all."""
    least, most, _ = envelope(curve).range(-math.inf, math.inf)
    of = curve.quantity
    low, high = min(least, 0.0), max(most, 0.0, curve.capacity if of.counted else 0.0)
    high = high if high > low else low + 1.0
    room = (high - low) * ROOM
    axis = quantity_axis(of, low - room * (low < 0), high + room, of.axis)
    # Its name would be higher than it is.
    axis = replace(axis, title="", whole=of.counted, top=curve.capacity if of.counted else None)
    series = SeriesData("computing", x, envelope(curve).columns(x), "filled")
    name = f"{of.name} ({axis.unit})" if axis.unit else of.name
    return LaneData(axis, (series,), note=say.name(key, name), part=TRACK)


def percent_axis(axis: AxisData, capacity: float, say: Words) -> AxisData:
    """The same in parts of all processors."""
    return replace(axis, title=say("utilization"), unit="%", factor=100 / capacity, top=None)


def curve_lane(run: RunData, x: Floats, say: Words) -> LaneData:
    """The curve with its extremes, and the fit."""
    series = SeriesData("computing", x, envelope(run.curve).columns(x), "filled")
    every = (series, *_predicted(run, x))
    return LaneData(level_axis(run, x, say), every, fitted=run.fit is not None, moved=_moved(run))


def _predicted(run: RunData, x: Floats) -> Iterator[SeriesData]:
    """The curve with changes, over the recorded one; where it has ended there is nothing."""
    if run.predicted is not None and run.plain:
        curve = run.predicted.curve
        c = envelope(curve).columns(x)
        yield SeriesData("predicted", x, c, "line", x[:-1] < curve.span[1])


def _moved(run: RunData) -> Floats:
    return np.empty(0) if run.predicted is None else run.predicted.breaks_s


def stack_lane(run: RunData, x: Floats, activities: Iterable[str], say: Words) -> LaneData:
    """The activities upon each other, and the fit, which belongs to the first."""
    drawn = [name for name in ACTIVITIES if name in activities and name in run.stack]
    series = [SeriesData(name, x, envelope(run.stack[name]).columns(x), "stacked") for name in drawn]
    fitted = run.fit is not None and "computing" in drawn
    if "computing" in drawn:
        series += _predicted(run, x)
    return LaneData(level_axis(run, x, say), tuple(series), fitted=fitted, moved=_moved(run))


def residual_lane(run: RunData, x: Floats, say: Words, columns: Columns | None = None) -> LaneData:
    """The curve less the fit, with the r.m.s. of every phase. `columns`: of the curve, if they are known."""
    curve, fit = run.curve, run.fit
    assert fit is not None
    left = residual(envelope(curve), fit, x, columns)
    outside = (x[1:] <= fit.breaks[0]) | (x[:-1] >= fit.breaks[-1])
    rms = fit.error / np.sqrt(fit.duration)
    show = visible(fit, float(x[0]), float(x[-1]))
    low, high, mean = (np.where(outside, np.nan, v) for v in left)  # of a limited analysis
    # Means and r.m.s. set the scale; a rare peak far beyond them runs to the rim instead of pressing all else
    # flat. The bound moves in steps, so that panning does not make it breathe.
    some = np.isfinite(mean)
    extreme = float(max(high[some].max(initial=0.0), -low[some].min(initial=0.0)))
    reach = min(extreme, max(float(np.abs(mean[some]).max(initial=0.0)), 4 * float(rms[show].max(initial=0))))
    reach = residual_reach(reach, run.levels, heights_of(run.curve, x[0], x[-1]))
    top = round_reach(reach * 1.02) if reach > 1e-9 * max(curve.capacity, 1e-300) else 1.0
    steps = np.where(low < high, 9, 1)
    values = Columns(low, high, mean, mean, mean, steps)
    ends = np.clip([fit.breaks[show], fit.breaks[show + 1]], x[0], x[-1])
    series = SeriesData("residual", x, values)
    inks = {"residual": "residual", "extremes": "residual extremes", "rms": "rms"}
    entries = tuple(LegendData(say(key), ink) for key, ink in inks.items())
    if run.phase is not None and 0 <= run.phase < rms.size:
        error = fit.error[run.phase]
        numbers = map(format_number, (float(rms[run.phase]), float(error)))
        note = say("phase error", run.phase + 1, *numbers, curve.quantity.unit, curve.quantity.of_error)
    else:
        note = say("epsilon", format_number(float(fit.epsilon)), curve.quantity.of_error)
    axis = quantity_axis(curve.quantity, -top, top, say("residual axis"))
    return LaneData(
        axis if curve.quantity.physical else replace(axis, unit=curve.quantity.short),
        (series,),
        zero=True,
        spread=Spread(ends[0], ends[1], rms[show]),
        entries=entries,
        note=note,
    )


def run_legend(
    run: RunData, say: Words, *, exact: bool = False, activities: frozenset[str] | None = None
) -> tuple[LegendData, ...]:
    """Of the curve, or of what is stacked (`activities`: of these, None: all); `exact`: there are
    no extremes to be seen."""
    names = [name for name in ACTIVITIES if name in run.stack]
    alone = activities == frozenset({"computing"}) or not names or (not run.plain and names == ["computing"])
    entries = [LegendData(say(name), name, name, activities is None or name in activities) for name in names]
    if alone:
        named = say("computing") if run.plain else say.name("computing", run.curve.quantity.name)
        entries[:1] = [LegendData(named, "computing", "computing" if names else "")]
        if not exact:
            entries.insert(1, LegendData(say("extremes"), "extremes"))
    fit = run.fit
    if fit is not None:
        count = f"{fit.n} phase{'' if fit.n == 1 else 's'}"
        ranges = bool((fit.ranges > 0).any())
        entries.append(LegendData(say("break" if ranges else "break alone"), "break"))
        repeats = next((one.what for one in run.firm if one is not None), "")
        if repeats:
            entries.append(LegendData(say("firm", repeats), "firm"))
        entries.append(LegendData(say("fit", count, fit.model), "fit"))
    if run.predicted is not None and run.plain:
        lasts = say.quantity(run.predicted.duration_s, "s")
        entries.append(LegendData(say("predicted", lasts), "predicted"))
    return tuple(entries)


def phase_strip(fit: PhaseFit, phase: int | None) -> Strip:
    """The phases of the only run, by their numbers."""
    return Strip(np.stack([fit.breaks[:-1], fit.breaks[1:]], axis=1), marked=phase, names=fit.names)


def run_plot(
    figure: str,
    run: RunData,
    axis: AxisData,
    lanes: Sequence[LaneData],
    legend: Sequence[LegendData],
    *,
    title: str = "",
    ranges: bool = True,
) -> PlotData:
    """Lanes of a run with all that stands in and above them."""
    over_levels = figure in ("curve", "stack")
    range_note = note(run.levels, heights_of(run.curve, axis.low, axis.high)) if over_levels else ""
    prediction = "" if run.predicted is None else WORDS["predicted"].format(run.predicted.words)
    fit = run.fit
    return PlotData(
        figure,
        title,
        axis,
        tuple(lanes),
        tuple(legend),
        strips=() if fit is None else (phase_strip(fit, run.phase),),
        fit=fit,
        breakpoints=None if fit is None else breakpoints(fit, run.locked),
        ranges=ranges,
        phase=run.phase,
        notes=notes_in(run.notes, axis),
        limit=run.limit,
        remarks=tuple(filter(None, (range_note, prediction))),
        doubt=run.doubt,
        firm=firm_in(run.firm, axis),
        boundaries=boundaries_in(run.boundaries, axis),
    )


def boundaries_in(times: Sequence[float] | Floats, axis: AxisData) -> Floats:
    """Those of the visible range, increasing."""
    every = np.asarray(times, float)
    return every[np.searchsorted(every, axis.low) : np.searchsorted(every, axis.high, side="right")]


def firm_in(firm: Iterable[Firm | None], axis: AxisData) -> tuple[Firm, ...]:
    """The intervals of which any part is in the visible range."""
    return tuple(one for one in firm if one is not None and one.high_s >= axis.low and one.low_s <= axis.high)


def notes_in(notes: Iterable[Mark], axis: AxisData) -> tuple[Mark, ...]:
    """Those of the visible range, in order of time."""
    seen = (
        note
        for note in notes
        if note.start_s <= axis.high and (note.start_s if note.end_s is None else note.end_s) >= axis.low
    )
    return tuple(sorted(seen, key=lambda note: note.start_s))


# Many: what is chosen of a figure, which callers name one by one.
def figure_plot(
    figure: str,
    material: Material,
    say: Words,
    columns: int,
    *,
    span: tuple[float, float] | None = None,
    levels: Levels = AT_FIRST,
    phase: int | None = None,
    how: Comparing | None = None,
    activities: frozenset[str] | None = None,
) -> PlotData:
    """A figure over time of `FIGURES`, with values in about so many columns. `span`:
    the time that is seen (seconds), None: all; `activities`: those of a stack, None: all."""
    if figure == "comparison":
        assert material.contrast is not None
        c = material.contrast.placement

        def times(curve: StepCurve) -> Floats:
            return column_times(curve, max(curve.start, c.start), min(curve.span[1], c.end), columns)

        return comparison(material.contrast, how or Comparing(), times, say)
    shows = FIGURES[figure]
    if figure == "curve" and material.curve.quantity != PROCESSORS:
        shows = f"{material.curve.quantity.name} and its phases"
    title = say.name("title", f"{shows}: {material.title}")
    over = {one.name: getattr(material, one.name) for one in fields(OverData) if one.name != "phase"}
    run = RunData(
        **over, phase=phase, curve=material.curve, stack=material.stack, notes=material.marks, levels=levels,
        tracks=material.tracks,
    )  # fmt: skip
    a, b = seen_span(run.curve, span)
    axis = time_axis(a, b, say)
    if figure == "timeline":
        assert material.bars is not None
        return _timeline(run, material.bars, axis, title, say, columns)
    even = np.linspace(a, b, columns + 1)
    if figure == "residual":
        lane = residual_lane(run, even, say)
        plot = run_plot(figure, run, axis, [lane], lane.entries, title=title)
        return replace(plot, remarks=(lane.note,))
    if figure == "stack":
        # Alone, computing is the other figure.
        drawn = frozenset(material.stack) if activities in (None, {"computing"}) else activities
        lane = stack_lane(run, even, drawn or (), say)
        legend = run_legend(run, say, activities=drawn)
    else:
        lane = curve_lane(run, column_times(run.curve, a, b, columns), say)
        legend = run_legend(run, say, exact=lane.exact, activities=frozenset({"computing"}))
    below = run.tracks if figure == "curve" else ()
    lanes = [track_lane(c, column_times(c, a, b, columns), say, f"track {k}") for k, c in enumerate(below, 1)]
    return run_plot(figure, run, axis, [lane, *lanes], legend, title=title)


def seen_span(curve: StepCurve, span: tuple[float, float] | None) -> tuple[float, float]:
    """The part of a range of time (seconds) that a curve has, else all of it."""
    start, end = curve.span
    a, b = (start, end) if span is None else (max(span[0], start), min(span[1], end))
    return (a, b) if a < b else (start, end)


# ------------------------------------------------------------------ timeline


def _timeline(run: RunData, bars: Bars, axis: AxisData, title: str, say: Words, columns: int) -> PlotData:
    inks = [f"shade {k}" for k in bars.shades] if bars.shades else list(bars.classes)
    legend = class_legend(bars.classes, inks, say, by_region=bool(bars.shades))
    drawn = bars.messages
    if drawn is not None:
        densest = 0 if drawn.density is None else int(drawn.density.max(initial=0))
        some = bool(sparse(len(drawn.collectives), len(bars.names), columns) and len(drawn.collectives))
        if not some:
            drawn = replace(drawn, collectives=drawn.collectives[:0])
        legend += mark_legend(say, messages=len(drawn.lines), densest=densest, collectives=some)
        bars = replace(bars, messages=drawn)
    if bars.path is not None:
        legend += path_legend(say)
    shared = shared_rows(sum(bars.merged), len(bars.names), say)
    rows = AxisData(say(row_title(bars.names)), float(len(bars.names)), 0.0)
    plot = run_plot("timeline", run, axis, [LaneData(rows, ())], legend, title=title, ranges=False)
    named = bars.labels or bars.names
    most = np.where(bars.ticks.any(axis=2), bars.ticks.argmax(axis=2), -1)
    cells = CellData(named, bars.times, most, inks)
    return replace(plot, bars=bars, cells=cells, rows=named, remarks=(shared,) if shared else ())


def sparse(marks: int, rows: int, pixels: float) -> bool:
    """Whether there is room for so many marks between what rows of so many pixels show."""
    return marks <= pixels / 24 * max(rows, 1)


def row_title(names: Iterable[str]) -> str:
    """The key of what all rows of these locations are."""
    return "rank" if all(name.startswith("rank ") for name in names) else "location"


def class_legend(
    names: Sequence[str], inks: Sequence[str], say: Words, *, by_region: bool
) -> list[LegendData]:
    """Of the classes of a timeline: activities by their keys, or regions by their names."""
    words = [say.name(f"region {k}", n) if by_region else say(n) for k, n in enumerate(names, 1)]
    return [LegendData(text, ink) for text, ink in zip(words, inks, strict=True)]


def mark_legend(
    say: Words, *, messages: int, densest: int = 0, collectives: bool = False
) -> list[LegendData]:
    """Of what connects the rows: so many messages one by one, or `densest` at a point at most."""
    entries = []
    if densest:
        entries.append(LegendData(say("messages", grouped(densest)), "density"))
    elif messages:
        entries.append(LegendData(say("message"), "message"))
    if collectives:
        entries.append(LegendData(say("collective"), "collective"))
    return entries


def path_legend(say: Words) -> list[LegendData]:
    """Of the critical path."""
    return [LegendData(say("path"), "path")]


def shared_rows(locations: int, rows: int, say: Words) -> str:
    """What is said of rows that stand for several locations; "" where none does."""
    return say("shared rows", locations, rows) if rows < locations else ""


# ------------------------------------------------------------------ compared runs


@dataclass(frozen=True)
class Comparing:
    """How compared runs are seen: below each other instead of upon each other, differences in percent of the
    reference; pairs of phases that were matched by hand, by run; a marked row of matches; the `levels`
    from and to that were asked for."""

    side_by_side: bool = False
    relative: bool = False
    by_hand: Mapping[int, frozenset[int]] = field(default_factory=dict)
    row: int = -1
    levels: tuple[float, float] | None = None


def comparison(
    contrast: Contrast,
    how: Comparing,
    times: Callable[[StepCurve], Floats],
    say: Words,
    *,
    span: tuple[float, float] | None = None,
    difference: bool = True,
    previous: PlotData | None = None,
) -> PlotData:
    """Runs over one axis with their differences to the reference. `times`: between the columns of a curve;
    without `difference` there is no room for those. `previous`: the same, over another range."""
    alignment, placement = contrast.alignment, contrast.placement
    reference = alignment.reference
    others = [k for k in range(len(alignment.runs)) if k != reference]
    name = alignment.runs[reference].name
    title = say.name("title", f"Runs compared with {name}")
    a, b = span or (placement.start, placement.end)
    words = say.name("time", WORDS[placement.axis].format(name))
    normalised = placement.axis == "normalised"
    axis = AxisData(
        words, a, b, "%" if normalised else "", 100.0 if normalised else 1.0,
        time=not normalised, time_unit=None if normalised else say.time_unit,
    )  # fmt: skip
    legend = []
    for k, run in enumerate(alignment.runs):
        called = WORDS["reference"].format(run.name) if k == reference else run.name
        text = WORDS["run"].format(
            called, format_number(run.curve.capacity), say.quantity(run.curve.duration, "s")
        )
        legend.append(LegendData(say.name(f"run {k + 1}", text), f"run {k}"))
    series = []
    for k, curve in enumerate(placement.curves):
        x = times(curve)
        columns = envelope(curve).columns(x)
        series.append(SeriesData(f"run {k}", x, columns, seen=_in_phases(contrast, k, columns, x)))
    level = _level_axis(contrast, how, say)
    if how.side_by_side:
        lanes = [LaneData(level, (one,)) for one in series]
    else:  # the reference lies over the others
        lanes = [LaneData(level, (*(series[k] for k in others), series[reference]))]
    if difference:
        part = 0.68 / len(lanes)
        lanes = [replace(lane, part=part) for lane in lanes]
        lanes.append(_difference_lane(contrast, how, times, say))
    return PlotData(
        "comparison",
        title,
        axis,
        tuple(lanes),
        tuple(legend),
        strips=tuple(_strips(contrast, how)) if previous is None else previous.strips,
        links=tuple(_links(contrast)) if previous is None else previous.links,
        reference=reference,
    )


def _level_axis(contrast: Contrast, how: Comparing, say: Words) -> AxisData:
    placement = contrast.placement
    if placement.share:
        return AxisData(say("utilization"), *(how.levels or (0.0, 1.05)), "%", 100.0, whole=True)
    of = _compared(contrast)
    if how.levels is not None:
        return quantity_axis(of, *how.levels, say.name("processors", of.axis), whole=of.counted)
    low = min(float(envelope(c).nodes[-1, 0]) for c in placement.curves)
    high = max(max(c.capacity, float(envelope(c).nodes[-1, 1])) for c in placement.curves)
    ends = min(low, 0.0), (high if high > 0 else 1.0) * 1.05
    return quantity_axis(of, *ends, say.name("processors", of.axis), whole=of.counted)


def _compared(contrast: Contrast) -> CurveQuantity:
    """What the curves of all runs count; of different things their bare levels."""
    quantities = {run.curve.quantity for run in contrast.alignment.runs}
    return (
        quantities.pop() if len(quantities) == 1 else CurveQuantity("Level", "Level", "", "", counted=False)
    )


def _in_phases(contrast: Contrast, run: int, c: Columns, x: Floats) -> Flags:
    """Which columns a run is in: neither before, nor after it, nor in a gap of its phases."""
    placement = contrast.placement
    spans, middle = placement.spans[run], (x[:-1] + x[1:]) / 2
    at = np.clip(np.searchsorted(spans[:, 0], middle, side="right") - 1, 0, len(spans) - 1)
    # Neighbouring phases touch but for rounding.
    slack = 1e-9 * (placement.end - placement.start)
    inside: Flags = (c.steps > 0) & (middle >= spans[0, 0]) & (middle <= spans[at, 1] + slack)
    return inside


def _difference_lane(
    contrast: Contrast, how: Comparing, times: Callable[[StepCurve], Floats], say: Words
) -> LaneData:
    alignment, placement = contrast.alignment, contrast.placement
    reference, of = alignment.reference, _compared(contrast)
    series = []
    for k, apart in enumerate(placement.differences):
        if apart is None:
            continue
        x = times(apart)
        c = envelope(apart).columns(x)
        if how.relative:
            under = envelope(placement.curves[reference]).columns(x).mean
            mine = np.nan_to_num(envelope(placement.curves[k]).columns(x).mean)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(under > 0, mine / under - 1, np.nan)
            c = Columns(ratio, ratio, ratio, ratio, ratio, np.ones(ratio.size, np.int64))
        series.append(SeriesData(f"run {k}", x, c))
    every = np.abs(np.concatenate([one.columns.mean for one in series]))
    every = every[np.isfinite(every)]
    most = float(every.max(initial=0.0))
    if how.relative and most > 0:  # rare peaks run to the rim
        most = min(most, max(4 * float(np.quantile(every, 0.75)), 1.0))
    unit = "%" if how.relative else "% pts" if placement.share else of.short
    factor = 1.0 if unit == of.short else 100.0
    top = round_reach(most * factor * 1.02) / factor if most > 0 else 1.0
    parts = []
    of_area = ("%" if placement.share else "proc") + ("" if placement.axis == "normalised" else "·s")
    of_area = of.per(of_area)
    for run, areas in zip(alignment.runs, placement.areas, strict=True):
        if areas is not None:
            if of_area == "proc·s":  # with the prefix of the run's size
                value = say.quantity(areas.signed, of_area)
            else:
                value = f"{format_number(areas.signed * (100 if placement.share else 1), 3)} {of_area}"
            if areas.reference:
                value += f" ({100 * areas.signed / areas.reference:+.3g} %)".replace("-", "−")
            parts.append(f"{run.name}: {value}")
    note = say("integrated", alignment.runs[reference].name, "; ".join(parts))
    axis = AxisData(say("difference"), -top, top, unit, factor)
    return LaneData(axis, tuple(series), zero=True, note=note, part=0.32)


def _strips(contrast: Contrast, how: Comparing) -> Iterator[Strip]:
    rows, spans = contrast.alignment.rows, contrast.placement.spans
    for k, phases in enumerate(spans):
        # Rows without a phase of it come first.
        row_of = np.argsort(rows[:, k], kind="stable")[-len(phases) :]
        marked = int(rows[how.row, k]) if 0 <= how.row < len(rows) else NONE
        alone = (rows[row_of] != NONE).sum(axis=1) == 1
        by_hand = how.by_hand.get(k, frozenset())
        yield Strip(phases, f"run {k}", None if marked == NONE else marked, alone, by_hand=by_hand)


def _links(contrast: Contrast) -> Iterator[Link]:
    """Wherever two neighbouring runs both have a phase in the same row."""
    alignment, spans = contrast.alignment, contrast.placement.spans
    for k in range(1, len(spans)):
        for row, (upper, lower) in enumerate(alignment.rows[:, k - 1 : k + 1].tolist()):
            if NONE in (upper, lower):
                continue
            phase = int(alignment.rows[row, alignment.reference])
            alike = [
                float(m.alike[phase]) if m is not None and phase != NONE else 1.0
                for m in alignment.matchings[k - 1 : k + 1]
            ]
            (a, b), (c, d) = spans[k - 1][upper].tolist(), spans[k][lower].tolist()
            yield Link(k - 1, row, a, b, c, d, float(np.nan_to_num(min(alike))))


def round_reach(value: float) -> float:
    """The next of 1, 1.5, 2, 3, 5, 7.5, 10 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next((m * power for m in (1, 1.5, 2, 3, 5, 7.5) if m * power >= value), 10 * power)

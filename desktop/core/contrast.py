"""Comparison of runs: their phases matched to those of a reference, and their curves on one axis.

`align` finds corresponding phases, `table` states their differences, `place` puts the curves on a common axis
and subtracts the reference's from each of the others, exactly, as the difference of step functions is a step
function. Outside of a run (before its start, after its end, in a gap of its phases) its curve counts as 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from desktop.core.arrays import Floats, Ints
from desktop.core.curve import StepCurve
from desktop.core.frames import TABLES, frame
from desktop.core.jit import kernel
from desktop.core.matching import NONE, Matching, match, shapes
from desktop.core.phase_stats import PhaseRow, phase_table
from desktop.core.phases import PhaseFit

if TYPE_CHECKING:
    from pandas import DataFrame

    from desktop.core.charges import RunCosts


#: Axes: times as in the traces; from each run's start; in parts of each run; corresponding phases aligned and
#: scaled to the reference's, with gaps where a run has no such phase.
AXES = ("absolute", "start", "normalised", "phases")


@dataclass(frozen=True, eq=False)
class Phased:
    """A run with its phases. `program`: names of its regions; `system`: what it ran on, "" if unknown;
    `costs`: where its time goes, None if unknown; `called`: other names of its regions there."""

    name: str
    curve: StepCurve
    fit: PhaseFit
    program: frozenset[str] = frozenset()
    system: str = ""
    costs: RunCosts | None = None
    called: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def rows(self) -> tuple[PhaseRow, ...]:
        return tuple(phase_table(self.curve, self.fit))


@dataclass(frozen=True, eq=False)
class Alignment:
    """`rows` (R, runs): corresponding phases, one for each row and run, or `NONE`. Every phase of every run
    is in one row, in order of time. `matchings`: of each run with the reference, None for the reference."""

    runs: tuple[Phased, ...]
    reference: int
    matchings: tuple[Matching | None, ...]
    rows: Ints

    def label(self, row: int) -> str:
        """The name of a row: of the reference's phase, else of the phase of the only run that has it."""
        phase = int(self.rows[row, self.reference])
        if phase != NONE:
            return f"phase {phase + 1}"
        run = int(np.flatnonzero(self.rows[row] != NONE)[0])
        return f"phase {self.rows[row, run] + 1} of {self.runs[run].name}"


def align(
    runs: Sequence[Phased], reference: int = 0, fixed: Mapping[int, Sequence[tuple[int, int]]] | None = None
) -> Alignment:
    """Match the phases of every run to those of the reference.

    Parameters
    ----------
    fixed : by the number of a run, pairs (phase of the reference, own phase) as `desktop.core.matching.match`
        takes them.

    Raises
    ------
    ValueError : fewer than two runs, no such reference, or contradicting pairs.
    """
    if len(runs) < 2:
        raise ValueError(f"a comparison needs two runs or more, there are {len(runs)}")
    if not 0 <= reference < len(runs):
        raise ValueError(f"there is no run {reference + 1} to be the reference, there are {len(runs)}")
    mine = shapes(runs[reference].curve, runs[reference].fit)
    matchings: list[Matching | None] = []
    for k, run in enumerate(runs):
        pairs = (fixed or {}).get(k, ())
        matchings.append(None if k == reference else match(mine, shapes(run.curve, run.fit), pairs))
    # A phase that only one run has comes after the last one before it that has a partner.
    rows: list[list[int]] = []
    for i in range(-1, mine.n):
        if i >= 0:
            rows.append([i if m is None else int(m.of_a[i]) for m in matchings])
        for k, m in enumerate(matchings):
            before = 0 if i < 0 else NONE if m is None or m.of_a[i] == NONE else int(m.of_a[i]) + 1
            while m is not None and before != NONE and before < m.of_b.size and m.of_b[before] == NONE:
                rows.append([before if other == k else NONE for other in range(len(runs))])
                before += 1
    return Alignment(tuple(runs), reference, tuple(matchings), np.array(rows, np.int64))


class Cell(NamedTuple):
    """A phase of a run in its row, compared with the reference's.

    `phase` counts from 1; 0 is the whole run, None a gap, whose numbers are NaN. Times in seconds (`start_s`
    on the run's own axis), `mean` in processors, work in processor-seconds. Differences are this run minus
    the reference, ratios this run divided by the reference. `alike` as in `Matching`.
    """

    label: str
    run: str
    phase: int | None
    start_s: float
    duration_s: float
    mean: float
    efficiency: float
    work_s: float
    duration_difference_s: float
    duration_ratio: float
    mean_difference: float
    mean_ratio: float
    efficiency_difference: float
    work_difference_s: float
    work_ratio: float
    alike: float


def cells_frame(cells: Sequence[Cell]) -> DataFrame:
    """``TABLES["comparison"]``, one row a cell."""
    columns = dict(zip(Cell._fields, zip(*cells, strict=True), strict=True)) if cells else {}
    return frame(TABLES["comparison"], {name: columns.get(name, ()) for name in Cell._fields})


def table(alignment: Alignment) -> list[Cell]:
    """Cells of the whole runs, then of each row and run."""
    runs, reference = alignment.runs, alignment.reference
    wholes = [
        (run.curve.start, run.curve.duration, run.curve.mean, _share(run.curve), run.curve.integral)
        for run in runs
    ]
    cells = [_cell("run", run.name, 0, wholes[k], wholes[reference]) for k, run in enumerate(runs)]
    for r, row in enumerate(alignment.rows.tolist()):
        label = alignment.label(r)
        facts = [
            None if phase == NONE else _facts(run.rows[phase]) for run, phase in zip(runs, row, strict=True)
        ]
        for k, run in enumerate(runs):
            matching, alike = alignment.matchings[k], np.nan
            if matching is not None and row[reference] != NONE:
                alike = float(matching.alike[row[reference]])
            phase = None if row[k] == NONE else row[k] + 1
            cells.append(_cell(label, run.name, phase, facts[k], facts[reference], alike))
    return cells


def _share(curve: StepCurve) -> float:
    if not curve.quantity.counted:
        return float("nan")
    return curve.mean / curve.capacity if curve.capacity else 0.0


_Facts = tuple[float, float, float, float, float]


def _facts(row: PhaseRow) -> _Facts:
    return row.start_s, row.end_s - row.start_s, row.mean, row.efficiency, row.work_s


def _cell(
    label: str, run: str, phase: int | None, one: _Facts | None, other: _Facts | None, alike: float = np.nan
) -> Cell:
    nothing = (np.nan,) * 5
    mine, theirs = np.array(one or nothing), np.array(other or nothing)
    apart = mine - theirs
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(theirs != 0, mine / theirs, np.nan)
    beside = (apart[1], ratio[1], apart[2], ratio[2], apart[3], apart[4], ratio[4])
    return Cell(label, run, phase, *map(float, (*mine, *beside, alike)))


class Areas(NamedTuple):
    """Areas of a difference over the axis, in its unit times that of the axis (processor-seconds; with
    shares, seconds; on the normalised axis without the seconds).

    `signed` = `more` - `less`; `more` is the area where the run is above the reference, `less` where it is
    below; `reference` is the area under the reference's curve, to divide by.
    """

    signed: float
    more: float
    less: float
    reference: float


@dataclass(frozen=True, eq=False)
class Placement:
    """Runs on one axis from `start` to `end` in seconds, or parts of each run for ``normalised``.

    `sources`: the reference's own curve, then those of all runs. `curves`: on the axis, 0 in gaps; in
    processors, or (`share`) in parts of each run's capacity. `spans`: (n, 2) begin and end of the phases of
    each run. `differences`: each run minus the reference, with their `areas`; None for the reference.
    """

    axis: str
    share: bool
    start: float
    end: float
    sources: tuple[StepCurve, ...]
    curves: tuple[StepCurve, ...]
    spans: tuple[Floats, ...]
    differences: tuple[StepCurve | None, ...]
    areas: tuple[Areas | None, ...]


@dataclass(frozen=True, eq=False)
class Contrast:
    """A comparison: corresponding phases, and curves on one axis."""

    alignment: Alignment
    placement: Placement


def place(
    alignment: Alignment, axis: str = "start", *, share: bool = False, before: Placement | None = None
) -> Placement:
    """Put all runs on one of `AXES`, and subtract, in O(steps of all runs).

    Parameters
    ----------
    before : a previous placement; if its curves are the same, they are not subtracted again.

    Raises
    ------
    ValueError : there is no such axis.
    """
    if axis not in AXES:
        raise ValueError(f"the axis is {axis!r}, it must be one of {', '.join(AXES)}")
    runs, reference = alignment.runs, alignment.reference
    sources = (runs[reference].curve, *(run.curve for run in runs))
    reusable = before is not None and (before.axis, before.share, before.sources) == (axis, share, sources)
    if before is not None and reusable and axis != "phases":
        return replace(before, spans=tuple(_spans(run, axis) for run in runs))
    spans = _layout(alignment) if axis == "phases" else [_spans(run, axis) for run in runs]
    curves = []
    for run, span in zip(runs, spans, strict=True):
        curve = _stretched(run, span) if axis == "phases" else _moved(run.curve, axis)
        if share:
            level = curve.level / (run.curve.capacity or 1.0)
            curve = StepCurve(curve.edges, _still(level), 1.0, curve.unit)
        curves.append(curve)
    differences = [None if k == reference else difference(curves[reference], c) for k, c in enumerate(curves)]
    under = curves[reference].integral
    sums = tuple(None if d is None else areas(d, under) for d in differences)
    start = min(*(c.start for c in curves), *(float(s[0, 0]) for s in spans))
    end = max(*(c.start + c.duration for c in curves), *(float(s[-1, 1]) for s in spans))
    return Placement(axis, share, start, end, sources, tuple(curves), tuple(spans), tuple(differences), sums)


def _layout(alignment: Alignment) -> list[Floats]:
    """Begin and end (n, 2) of the phases of each run on an axis on which corresponding phases coincide."""
    runs, reference = alignment.runs, alignment.reference
    spans = [np.zeros((run.fit.n, 2)) for run in runs]
    at = 0.0
    for row in alignment.rows.tolist():
        leads = reference if row[reference] != NONE else next(k for k, p in enumerate(row) if p != NONE)
        end = at + float(runs[leads].fit.duration[row[leads]])
        for span, phase in zip(spans, row, strict=True):
            if phase != NONE:
                span[phase] = at, end
        at = end
    return spans


def _spans(run: Phased, axis: str) -> Floats:
    """Begin and end (n, 2) of the phases of a run that is moved, or moved and scaled."""
    places = run.fit.breaks
    if axis != "absolute":
        places = places - places[0]
    if axis == "normalised":
        places = places / places[-1]
    return np.stack([places[:-1], places[1:]], axis=1)


def _moved(curve: StepCurve, axis: str) -> StepCurve:
    """The curve moved, or moved and scaled; moving keeps whole ticks."""
    first, length = float(curve.edges[0]), float(curve.edges[-1] - curve.edges[0])
    if axis == "absolute" or (axis == "start" and first == 0):
        return curve
    if axis == "start":
        return _wide_steps(curve.edges - first, curve.level, curve.capacity, curve.unit)
    return _wide_steps((curve.edges - first) / length, curve.level, curve.capacity)


def _stretched(run: Phased, spans: Floats) -> StepCurve:
    """The curve with every phase scaled to its span, 0 between spans that do not touch."""
    curve, fit = run.curve, run.fit
    edges: list[Floats] = []
    level: list[Floats] = []
    for k, (at, end) in enumerate(spans.tolist()):
        # Relative to the edges beside breakpoints, as far from 0 a time has no digits left for its offset.
        (j, i), (begins, ends) = fit.index[k : k + 2].tolist(), fit.offset[k : k + 2].tolist()
        first, last = j + (begins >= 0), i + (ends > 0)
        gone = (curve.edges[first:last] - curve.edges[j]) - begins
        long = float(curve.edges[i] - curve.edges[j]) + (ends - begins)
        inner = at + gone * ((end - at) / max(long, 1e-300))
        if edges and edges[-1][-1] < at:
            level.append(np.zeros(1))
        elif edges:
            edges[-1] = edges[-1][:-1]
        edges += [np.array([at]), np.clip(inner, at, end), np.array([end])]
        level.append(curve.level[first - 1 : last])
    return _wide_steps(np.concatenate(edges), np.concatenate(level), curve.capacity)


def _wide_steps(edges: Floats, level: Floats, capacity: float, unit: float = 1.0) -> StepCurve:
    """A curve without the steps that are narrower than the resolution of its axis."""
    wide = edges[1:] > edges[:-1]
    if wide.all():
        return StepCurve(_still(edges), _still(level), capacity, unit)
    if not wide.any():  # the whole run becomes the shortest possible step
        return StepCurve([edges[0], np.nextafter(edges[0], np.inf)], level[:1], capacity, unit)
    inner = np.append(edges[:-1][wide], edges[-1])
    return StepCurve(_still(inner), _still(level[wide]), capacity, unit)


def _still(values: Floats) -> Floats:
    """The array made read-only, so that a curve need not copy it."""
    values.flags.writeable = False
    return values


def difference(a: StepCurve, b: StepCurve) -> StepCurve:
    """b minus a, over the time of both; outside of its own time each is 0. Equal neighbours are merged."""
    unit = a.unit
    first, second = a.edges, b.edges
    if a.unit != b.unit:
        unit, first, second = 1.0, a.edges * a.unit, b.edges * b.unit
    edges, level = np.empty(first.size + second.size), np.empty(first.size + second.size)
    count = _subtract(first, a.level, second, b.level, edges, level)
    # Copies of the used parts, so that the rest is freed.
    used = _still(edges[: count + 1].copy()), _still(level[:count].copy())
    return StepCurve(*used, max(a.capacity, b.capacity), unit)


def areas(apart: StepCurve, reference: float = np.nan) -> Areas:
    """The areas of a difference; `reference`: the area under the curve that was subtracted."""
    more, less = _sides(apart.edges, apart.level)
    return Areas((more - less) * apart.unit, more * apart.unit, less * apart.unit, float(reference))


@kernel
def _subtract(first: Floats, low: Floats, second: Floats, high: Floats, edges: Floats, level: Floats) -> int:
    i, j, count = 0, 0, 0
    a, b = 0.0, 0.0
    while True:
        t = np.inf
        if i < first.size:
            t = first[i]
        if j < second.size:
            t = min(t, second[j])
        if i < first.size and first[i] == t:
            a = low[i] if i < low.size else 0.0
            i += 1
        if j < second.size and second[j] == t:
            b = high[j] if j < high.size else 0.0
            j += 1
        if i == first.size and j == second.size:
            edges[count] = t
            return count
        if count == 0 or level[count - 1] != b - a:
            edges[count], level[count] = t, b - a
            count += 1


@kernel
def _sides(edges: Floats, level: Floats) -> tuple[float, float]:
    more, less = 0.0, 0.0
    for k in range(level.size):
        part = level[k] * (edges[k + 1] - edges[k])
        if part > 0:
            more += part
        else:
            less -= part
    return more, less

"""A chart as data: its contents, and the layout of its parts in a picture of any size.

`Content` is the only description of a chart. `lay_out` places it in a rectangle, in any unit of length; the
window's charts and the sheets of figures are both drawn from the result (`desktop.ui.chart_sheet`).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from desktop.core import ticks
from desktop.core.arrays import Bytes, Floats, Ints
from desktop.core.ticks import Ticks
from desktop.core.units import format_number

Kind = Literal["band", "bars", "segments", "line", "whiskers", "points", "boxes"]
#: Kinds of series in the order of drawing, the lowest first.
KINDS: tuple[Kind, ...] = ("band", "bars", "segments", "line", "whiskers", "points", "boxes")
Mark = Literal["circle", "square", "diamond", "triangle", "cross", "plus"]
MARKS: tuple[Mark, ...] = ("circle", "square", "diamond", "triangle", "cross", "plus")
#: Corners of marks, relative to their radius; those of open marks are lines.
OUTLINES: dict[Mark, tuple[tuple[tuple[float, float], ...], ...]] = {
    "square": (((-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)),),
    "diamond": (((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0), (0, -1.3)),),
    "triangle": (((0, -1.2), (1.2, 1.2), (-1.2, 1.2), (0, -1.2)),),
    "cross": (((-1, -1), (1, 1)), ((-1, 1), (1, -1))),
    "plus": (((-1, 0), (1, 0)), ((0, -1), (0, 1))),
}
#: Number of series with a colour of their own.
SERIES = 6
#: Points or segments of a series beyond which they are drawn as a cloud of dots.
MANY = 3000
#: Most rows of a legend; most cells with numbers written into them.
_LEGEND_ROWS, _NUMBERED = 4, 1024
AxisName = Literal["x", "y"]
#: Colours of cells from the least to the most, at equal steps. Cividis has uniform lightness and is safe for
#: the colour-blind; Viridis is reversed on a light background.
_RAMPS = {
    "cividis": (
        (0, 34, 78), (18, 53, 112), (59, 73, 109), (87, 93, 109), (112, 113, 115), (138, 134, 120),
        (165, 156, 116), (195, 179, 105), (254, 232, 56),
    ),
    "viridis": ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)),
}  # fmt: skip


def ramp(colours: str, parts: ArrayLike, dark: bool) -> Bytes:
    """(..., 3) red, green, blue for shares (...) of the range, on a dark or a light background."""
    table = _ramp_table(colours, colours == "viridis" and not dark)
    within = np.fmin(np.fmax(np.asarray(parts, np.float64), 0.0), 1.0)  # unknown values as 0
    return np.asarray(table[np.rint(within * (len(table) - 1)).astype(np.intp)])


@cache
def _ramp_table(colours: str, turned: bool) -> Bytes:
    """(1021, 3): finer than the 255 levels of a colour, so that neighbours differ by at most one."""
    ramp = np.array(_RAMPS[colours], np.float64)[:: -1 if turned else 1]
    places = np.linspace(0, len(ramp) - 1, 1021)
    levels = [np.interp(places, np.arange(len(ramp)), column) for column in ramp.T]
    return np.asarray(np.rint(np.stack(levels, axis=1)), np.uint8)


@dataclass(frozen=True, eq=False)
class Series:
    """A group of marks, lines or bars drawn alike.

    x, y : (K,). `low`, `high` (K,): error bars of points, edges of a band, ends of whiskers, or base of bars
        (`low`). `segments` are lines between two positions; `boxes` are framed names, filled up to `high` (0
        to 1). `names` (K,): shown on hover, or the basis of a position's name; `keys` (K,): emitted on a
        click; `labels`: which marks show their name. `colour`: index into the theme's `series`, or the name
        of a theme token. `faint`: left out or out of focus. `thickness`: of bars, in categories. `size`: of
        marks, relative to the usual; `hollow`: outline only. `opacity`: of the area of bars; below 1, of that
        of a band.
    """

    kind: Kind
    x: Floats
    y: Floats
    label: str = ""
    colour: int | str = 0
    mark: Mark = "circle"
    dashed: bool = False
    low: Floats | None = None
    high: Floats | None = None
    names: Sequence[str] | Callable[[int], str] = ()
    keys: Sequence[int] | Ints = ()
    labels: frozenset[int] = frozenset()
    faint: frozenset[int] = frozenset()
    width: float = 1.6
    thickness: float = 0.72
    size: float = 1.0
    hollow: bool = False
    opacity: float = 1.0

    def name(self, k: int) -> str:
        if callable(self.names):
            return self.names(k)
        return self.names[k] if self.names else ""

    def picked(self, selected: frozenset[int]) -> Ints:
        """Indices of the marks whose keys are selected."""
        if not selected or not len(self.keys):
            return np.empty(0, np.int64)
        return np.flatnonzero(np.isin(np.asarray(self.keys), np.fromiter(selected, np.int64, len(selected))))


def band_opacity(series: Series) -> float:
    """Opacity of the area of a band: low by default."""
    return 0.17 if series.opacity == 1.0 else series.opacity


@dataclass(frozen=True)
class Axis:
    """`title` with its unit. `categories`: names at 0, 1, 2, ... instead of numbers. `doubling`: ticks of a
    logarithmic axis at powers of two (processors). `time`: seconds, in a suitable unit. `down`: from the top.
    `floor`: values that a logarithmic axis cannot show are placed at its low end. `low`, `high`: requested
    ends, in the axis' own unit. `tight`: no margin beyond the values, half a step beyond whole numbers.
    """

    title: str
    log: bool = False
    categories: tuple[str, ...] = ()
    zero: bool = False
    low: float | None = None
    high: float | None = None
    whole: bool = False
    doubling: bool = False
    time: bool = False
    down: bool = False
    floor: bool = False
    tight: bool = False

    def place(self, values: ArrayLike, low: float = math.nan) -> Floats:
        """Positions of values on the axis: log10 if it is logarithmic, `low` or NaN where undefined."""
        numbers = np.asarray(values, np.float64)
        if not self.log:
            return numbers
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(numbers > 0, np.log10(numbers), low)


@dataclass(frozen=True, eq=False)
class Cells:
    """A map of values (rows, columns), NaN: no cell; rows from the top.

    `colours`: see `ramp`. `log`: colours by the logarithm, none for values that are not positive. `selected`:
    (row, column); `across`: begin of the first column and end of the last one on a numeric axis; `start`:
    cell where the arrow keys start. `limits`: values of the first and the last colour, if not those of the
    map. `text`: formats a value; `words`: describes a cell. `numbers`: written in the cells, else there is a
    colour scale beside the map. `measure`: name of the values.
    """

    values: Floats
    text: Callable[[float], str]
    words: Callable[[int, int], str]
    colours: Literal["cividis", "viridis"] = "cividis"
    log: bool = False
    selected: tuple[int, int] | None = None
    start: tuple[int, int] = (0, 0)
    numbers: bool = True
    measure: str = ""
    across: tuple[float, float] | None = None
    limits: tuple[float, float] | None = None

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The values of the first and the last colour."""
        if self.limits is not None:
            return self.limits
        finite = self.values[np.isfinite(self.values) & ((self.values > 0) | (not self.log))]
        if not finite.size:
            return (1.0, 1.0)
        low = float(finite.min())
        return low if self.log else min(0.0, low), float(finite.max())

    @cached_property
    def parts(self) -> Floats:
        """(rows, columns) position of each value on the colour scale, 0 to 1; NaN if it has none."""
        low, high = self.ends
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.log:
                values = np.where(self.values > 0, self.values, np.nan)
                # If all are equal, they get the last colour.
                part = np.log(values / low) / math.log(high / low) if high > low else values * 0.0 + 1.0
            else:
                part = (self.values - low) / (high - low) if high > low else self.values * 0.0 + 0.5
        return np.clip(part, 0.0, 1.0)


@dataclass(frozen=True)
class Highlight:
    """The selection along the first axis, which may change often: a line at `x` with a mark at `y`, or a band
    over row number `row`, and a fainter one over the row at the pointer. `label`: its text in the legend."""

    x: float | None = None
    y: float | None = None
    row: float | None = None
    pointed: float | None = None
    label: str = ""


@dataclass(frozen=True, eq=False)
class Content:
    """A whole chart. `levels`: horizontal lines with a name (limits). `empty`: text shown without series.

    `notes`: texts at a position (x, y). `axes`: whether there are any. `square`: equal units on both axes.
    `legend_rows`: least number of rows kept free, so that changing texts move nothing. `heading` is above the
    chart, `title` on sheets of paper only. `data` is the table of the chart, headings first, if that of its
    marks contains less.
    """

    x: Axis
    y: Axis
    series: tuple[Series, ...] = ()
    levels: tuple[tuple[float, str], ...] = ()
    verticals: tuple[tuple[float, str], ...] = ()
    empty: str = ""
    horizontal_bars: bool = False
    selected: frozenset[int] = field(default_factory=frozenset)
    cells: Cells | None = None
    chosen: Highlight | None = None
    notes: tuple[tuple[float, float, str], ...] = ()
    axes: bool = True
    square: bool = False
    legend_rows: int = 0
    heading: str = ""
    title: str = ""
    data: Callable[[], Iterable[tuple[object, ...]]] | None = None

    @property
    def shown(self) -> bool:
        """Whether there is anything to draw."""
        if self.cells is not None:
            return bool(np.isfinite(self.cells.parts).any())
        return bool(self.series)

    def coloured_anew(self, other: Content) -> bool:
        """Whether it differs from another chart only in colours, and both are maps without numbers and
        without anything drawn over them."""
        a, b = self.cells, other.cells
        if a is None or b is None or a.numbers or not (self.shown and other.shown):
            return False
        if any((self.series, self.levels, self.verticals, self.notes, self.chosen)):
            return False
        alike = [
            (c.values.shape, c.colours, c.log, c.ends, c.selected, c.start, c.numbers, c.measure, c.across)
            for c in (a, b)
        ]
        fields = [vars(content) | {"cells": None, "empty": ""} for content in (self, other)]
        return alike[0] == alike[1] and fields[0] == fields[1]

    def values(self, series: Series) -> tuple[Floats, Floats]:
        """(K,) each: positions of all marks along the axes of the picture."""
        return (series.y, series.x) if self.horizontal_bars else (series.x, series.y)

    @property
    def legend(self) -> tuple[tuple[int, str], ...]:
        """The series in the legend, by index, with their texts; -1 is the selection."""
        named = tuple((i, s.label) for i, s in enumerate(self.series) if s.label)
        return ((-1, self.chosen.label), *named) if self.chosen and self.chosen.label else named


# ------------------------------------------------------------------ the user's choices for axes


@dataclass(frozen=True)
class AxisChoice:
    """Requested settings of an axis: its ends (None: by the values), and whether it is logarithmic (None: as
    in the chart)."""

    low: float | None = None
    high: float | None = None
    log: bool | None = None


def may_log(content: Content, which: AxisName) -> bool:
    """Whether an axis can be logarithmic: it has numbers, some of them positive, and no bars or times."""
    axis = content.x if which == "x" else content.y
    if axis.categories or axis.time or not content.axes or content.cells is not None or not content.series:
        return False
    along = "y" if content.horizontal_bars else "x"
    if which != along and any(s.kind == "bars" for s in content.series):
        return False
    values = np.concatenate([v[np.isfinite(v)] for v in _along(content, which)] or [np.empty(0)])
    return bool(values.size and (values > 0).any() and (axis.floor or (values > 0).all()))


def with_choices(content: Content, choices: Mapping[AxisName, AxisChoice]) -> Content:
    """The chart with the requested axes, as far as possible."""
    axes = {"x": content.x, "y": content.y}
    for which, choice in choices.items():
        axis = axes[which]
        if choice.log is not None and (not choice.log or may_log(content, which)):
            axis = replace(axis, log=choice.log)
        ends = (choice.low, choice.high)
        if not axis.categories and all(v is None or not axis.log or v > 0 for v in ends):
            low, high = (
                v if v is not None else old for v, old in zip(ends, (axis.low, axis.high), strict=True)
            )
            if low is None or high is None or low < high:
                axis = replace(axis, low=low, high=high)
        axes[which] = axis
    return replace(content, x=axes["x"], y=axes["y"])


def words(content: Content) -> dict[str, str]:
    """The replaceable texts, by key."""
    texts = {"title": content.title}
    if content.heading:
        texts["heading"] = content.heading
    if content.axes:
        texts |= {key: axis.title for key, axis in (("x", content.x), ("y", content.y)) if axis.title}
    if content.chosen and content.chosen.label:
        texts["chosen"] = content.chosen.label
    return texts | {f"series {i + 1}": label for i, label in content.legend if i >= 0}


def with_words(content: Content, changes: Mapping[str, str]) -> Content:
    """The chart with replaced texts, see `words`."""
    texts = words(content) | dict(changes)
    chosen = content.chosen
    if chosen is not None and "chosen" in texts:
        chosen = replace(chosen, label=texts["chosen"])
    return replace(
        content,
        title=texts["title"],
        heading=texts.get("heading", content.heading),
        x=replace(content.x, title=texts.get("x", content.x.title)),
        y=replace(content.y, title=texts.get("y", content.y.title)),
        chosen=chosen,
        series=tuple(
            replace(s, label=texts.get(f"series {i}", s.label)) for i, s in enumerate(content.series, 1)
        ),
    )


def table(content: Content) -> Iterator[tuple[object, ...]]:
    """The values shown, headings first: of cells, or of all marks by series."""
    cells = content.cells
    if content.data is not None:
        yield from content.data()
        return
    if cells is not None:
        rows, columns = content.y.categories, content.x.categories
        if cells.across is not None:
            first, last = cells.across
            columns = tuple(np.linspace(first, last, cells.values.shape[1], endpoint=False).tolist())
        if cells.numbers:
            yield content.heading, *columns
            for name, row in zip(rows, cells.values.tolist(), strict=True):
                yield name, *row
        else:
            yield content.y.title, content.x.title, cells.measure
            for i, j in np.argwhere(np.isfinite(cells.parts)).tolist():
                value = float(cells.values[i, j])
                yield rows[i], columns[j], int(value) if value.is_integer() else value
        return
    yield "series", content.x.title or "x", content.y.title or "y", "low", "high", "name"
    for series in content.series:
        for k, (x, y) in enumerate(zip(series.x.tolist(), series.y.tolist(), strict=True)):
            names = content.x.categories
            at = names[int(x)] if names and x == int(x) and 0 <= x < len(names) else x
            ends = (None if v is None else float(v[k]) for v in (series.low, series.high))
            yield series.label, at, y, *ends, series.name(k)


# ------------------------------------------------------------------ layout


def _along(content: Content, which: AxisName) -> list[Floats]:
    """All values that determine the range of an axis."""
    # A band may exceed the picture: the series it belongs to determines the range.
    firm = [s for s in content.series if s.kind != "band"] or list(content.series)
    if which == ("y" if content.horizontal_bars else "x"):
        return [s.x for s in firm]
    values = [v for s in firm for v in (s.y, s.low, s.high if s.kind != "boxes" else None) if v is not None]
    return [*values, np.array([v for v, _ in content.levels])]


def _range(content: Content, which: AxisName) -> tuple[float, float]:
    """The ends of an axis, log10 of them if it is logarithmic."""
    axis = content.x if which == "x" else content.y
    if axis.categories:
        return (-0.5, len(axis.categories) - 0.5) if content.cells else (-0.6, len(axis.categories) - 0.4)
    if which == "x" and content.cells is not None and content.cells.across is not None:
        return content.cells.across
    values = _along(content, which) + ([np.array([v for v, _ in content.verticals])] if which == "x" else [])
    flat = np.concatenate([v.ravel() for v in values] or [np.empty(0)])
    flat = axis.place(flat[np.isfinite(flat)])
    flat = flat[np.isfinite(flat)]
    low, high = (float(flat.min()), float(flat.max())) if flat.size else (0.0, 1.0)
    if axis.tight:
        low, high = low - 0.5 * axis.whole, high + 0.5 * axis.whole
    else:
        firm = axis.zero and not axis.log
        if firm:
            low, high = min(low, 0.0), max(high, 0.0)
        if high - low < 1e-12 * max(abs(low), abs(high), 1e-300):
            low, high = low - 0.5, high + 0.5
        room = 0.05 * (high - low)
        low, high = low - room * (low != 0 or not firm), high + room * (high != 0 or not firm)
    ends = axis.place([v if v is not None else math.nan for v in (axis.low, axis.high)], math.nan).tolist()
    low, high = (e if math.isfinite(e) else v for e, v in zip(ends, (low, high), strict=True))
    return (low, high) if high > low else (low - 0.5, low + 0.5)


@dataclass(frozen=True)
class Word:
    """A text in a picture: `x`, `y` is its middle, `width` its width."""

    text: str
    x: float
    y: float
    width: float


@dataclass(frozen=True)
class Entry:
    """A name in the legend: its series (-1: the selection), where it begins, the middle of its row, and its
    cell in the table of `row` and `column`."""

    series: int
    text: str
    x: float
    y: float
    row: int
    column: int


@dataclass(frozen=True, eq=False)
class Layout:
    """Positions of all parts of a chart, in the renderer's unit of length, y downwards.

    `left` .. `height`: the rectangle of the values. `x`, `y`: values at its ends, log10 on logarithmic axes.
    `line`: height of a line of text. `names`: of marks, beside them; `limits`: of levels and verticals.
    `columns`: widths of the legend's columns. `cell_words`: in cells; `scale`: the rectangle of a colour
    scale, with texts beside it.
    """

    content: Content
    line: float
    left: float
    top: float
    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]
    x_ticks: Ticks
    y_ticks: Ticks
    x_title: str
    y_title: str
    legend: tuple[Entry, ...] = ()
    columns: tuple[float, ...] = ()
    names: tuple[Word, ...] = ()
    limits: tuple[Word, ...] = ()
    cell_words: tuple[tuple[int, int, Word], ...] = ()
    scale: tuple[float, float, float, float] | None = None
    scale_words: tuple[Word, ...] = ()
    heading: Word | None = None

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def along_x(self, places: ArrayLike) -> Floats:
        """Distances from the left of values on the first axis (log10 if it is logarithmic)."""
        a, b = self.x
        return self.left + (np.asarray(places, np.float64) - a) / (b - a) * self.width

    def along_y(self, places: ArrayLike) -> Floats:
        a, b = self.y
        part = (np.asarray(places, np.float64) - a) / (b - a)
        return self.top + (part if self.content.y.down else 1 - part) * self.height

    def px(self, values: ArrayLike) -> Floats:
        return self.along_x(self.content.x.place(values, self.x[0] if self.content.x.floor else math.nan))

    def py(self, values: ArrayLike) -> Floats:
        return self.along_y(self.content.y.place(values, self.y[0] if self.content.y.floor else math.nan))

    def marks(self, series: Series) -> tuple[Floats, Floats]:
        """(K,) each: positions of the marks of a series; NaN where there is none."""
        x, y = self.content.values(series)
        return self.px(x), self.py(y)

    def dots(self, series: Series, side: float, *, faint: bool = False) -> Ints:
        """(K, 2) columns and rows of the squares with this side that contain marks or segments; each square
        once."""
        points = np.stack(self.marks(series), axis=1)
        if series.faint or faint:
            points = points[np.isin(np.arange(len(points)), list(series.faint), invert=not faint)]
        if series.kind == "segments":
            ends = points.reshape(-1, 2, 2)
            ends = ends[np.isfinite(ends).all(axis=(1, 2))]
            steps = np.ceil(np.abs(ends[:, 1] - ends[:, 0]).max(axis=1, initial=0) / side).astype(int) + 1
            part = np.arange(steps.sum()) - np.repeat(np.cumsum(steps) - steps, steps)
            ends, part = np.repeat(ends, steps, axis=0), part / np.repeat(np.maximum(steps - 1, 1), steps)
            points = ends[:, 0] + (ends[:, 1] - ends[:, 0]) * part[:, None]
        at = np.floor(points[np.isfinite(points).all(axis=1)] / side).astype(np.int64)
        return np.stack(np.divmod(np.unique(at[:, 0] << 32 | at[:, 1]), 1 << 32), axis=1)

    def ends(self, series: Series) -> tuple[Floats, Floats]:
        """(K,) each: positions of `low` and `high` on the axis of the values, clipped far outside of the
        picture."""
        assert series.low is not None and series.high is not None
        across = self.content.horizontal_bars
        axis, span = (self.content.x, self.x) if across else (self.content.y, self.y)
        along = self.along_x if across else self.along_y
        reach = 4 * (span[1] - span[0])
        low, high = (
            np.clip(axis.place(v, span[0] - reach), span[0] - reach, span[1] + reach)
            for v in (series.low, series.high)
        )
        return along(low), along(high)

    def bars(self, series: Series) -> Floats:
        """(K, 4) rectangles x, y, w, h of bars."""
        base = np.zeros(series.x.size) if series.low is None else series.low
        half = series.thickness / 2
        if self.content.horizontal_bars:
            x0, x1 = np.sort([self.px(base), self.px(series.y)], axis=0)
            y0, y1 = np.sort([self.along_y(series.x - half), self.along_y(series.x + half)], axis=0)
        else:
            x0, x1 = np.sort([self.along_x(series.x - half), self.along_x(series.x + half)], axis=0)
            y0, y1 = np.sort([self.py(base), self.py(series.y)], axis=0)
        return np.stack([x0, y0, x1 - x0, y1 - y0], axis=1)

    def cell(self, row: int, column: int) -> tuple[float, float, float, float]:
        """The rectangle x, y, w, h of a cell."""
        assert self.content.cells is not None
        rows, columns = self.content.cells.values.shape
        wide, high = self.width / columns, self.height / rows
        return self.left + column * wide, self.top + row * high, wide, high


Measure = Callable[[str], float]


def elided(text: str, room: float, measure: Measure) -> str:
    """`text`, with its middle left out if it is wider than `room`."""

    def cut(letters: int) -> str:
        tail = letters // 2
        return f"{text[: letters - tail]}…{text[len(text) - tail :]}"

    if measure(text) <= room:
        return text
    return cut(bisect_right(range(1, len(text)), room, key=lambda letters: measure(cut(letters))))


def lay_out(
    content: Content,
    width: float,
    height: float,
    line: float,
    measure: Measure,
    unit: tuple[float, str] | None = None,
    *,
    whole: bool = False,
    start: float = 0.0,
) -> Layout:
    """Place a chart in a rectangle.

    Parameters
    ----------
    line, measure : the height of a line of text, and the width of words, in the unit of `width`, `height`.
    unit : requested unit of time, seconds and name.
    whole : whether the rectangle of the values has whole numbers as edges.
    start : space above, within the height.
    """
    columns, entries = _legend(content, width, line, measure)
    rows = max((e.row + 1 for e in entries), default=0)
    heading = elided(content.heading, width - line, measure) if content.heading else ""
    above = 0.6 + 1.3 * (max(rows, content.legend_rows) + bool(heading))
    entries = [replace(e, y=start + (0.9 + 1.3 * (e.row + bool(heading))) * line) for e in entries]
    x, y = _range(content, "x"), _range(content, "y")
    top = start + above * line
    if not content.axes:
        return _free(content, width, height, line, measure, (x, y), top, tuple(entries), tuple(columns))
    below = (2.85 if content.x.title or not content.x.categories else 1.5) * line
    tall = max(height - top - below, 1.0)
    rows_fit = max(2.0, tall / (2.4 * line))
    left = (2.3 if content.y.title else 1.1) * line
    if content.y.categories:
        y_ticks = ticks.name_ticks(content.y.categories, max(2.0, tall / (0.85 * line)))
        room = min(max(map(measure, y_ticks.labels), default=0.0) * 1.001, width / 3)
        y_ticks = Ticks(y_ticks.positions, [elided(s, room, measure) for s in y_ticks.labels])
    else:
        y_ticks = _ticks(content.y, y, rows_fit, unit)
        room = max(map(measure, y_ticks.labels), default=0.0)
    left += room
    wide = max(width - left - line, 1.0)
    scale_words = _scale_words(content, tall, line)
    beside = 2.4 * line + max((measure(text) for text, _ in scale_words), default=0.0)
    scaled = bool(scale_words) and wide - beside >= 3 * line
    wide -= beside * scaled
    if content.square:
        wide = tall = max(min(wide, tall), 1.0)
    if content.x.categories:
        each = wide / max(len(content.x.categories), 1)
        if each < 2.2 * line:  # too close even when elided: only some are shown, in full
            widest = max(map(measure, content.x.categories))
            each *= math.ceil(min(widest + 0.6 * line, 8 * line) / each)
        x_ticks = ticks.name_ticks(content.x.categories, math.ceil(wide / each - 1e-9))
        x_ticks = Ticks(x_ticks.positions, [elided(s, each - 0.3 * line, measure) for s in x_ticks.labels])
    else:
        apart = line + 1.6 * max(room if not content.y.categories else 0.0, 2 * line)
        if content.x.time:
            apart = 1.5 * measure("000.000")
        x_ticks = _ticks(content.x, x, max(wide / apart, 1.5), unit)
    if whole:
        left, top = float(math.ceil(left)), float(math.ceil(top))
        wide, tall = (float(max(math.ceil(v - 1), 1)) for v in (wide, tall))
    titles = [
        f"{axis.title} ({tick_marks.unit})" if axis.time and tick_marks.unit else axis.title
        for axis, tick_marks in ((content.x, x_ticks), (content.y, y_ticks))
    ]
    laid = Layout(
        content, line, left, top, wide, tall, x, y, x_ticks, y_ticks, titles[0], titles[1],
        tuple(entries), tuple(columns),
    )  # fmt: skip
    if heading:
        across = measure(heading)
        laid = replace(laid, heading=Word(heading, left + across / 2, start + 0.9 * line, across))
    limits = tuple(_limits(laid, measure))
    names = tuple(_names(laid, measure))
    laid = replace(laid, limits=limits, names=names, cell_words=tuple(_cell_words(laid, measure)))
    if not scaled:
        return laid
    scale_words = _scale_words(content, tall, line)
    at = (laid.right + line, top, 0.8 * line, tall)
    marks = (
        Word(t, at[0] + at[2] + 0.35 * line + measure(t) / 2, top + v, measure(t)) for t, v in scale_words
    )
    return replace(laid, scale=at, scale_words=tuple(marks))


# Many: intermediate results of `lay_out`.
def _free(
    content: Content, width: float, height: float, line: float, measure: Measure,
    ends: tuple[tuple[float, float], tuple[float, float]], top: float, entries: tuple[Entry, ...],
    columns: tuple[float, ...],
) -> Layout:  # fmt: skip
    """A drawing without axes, with equal units on both, and space for texts around it."""
    (x0, x1), (y0, y1) = ends
    wide, tall = max(width - 9.0 * line, line), max(height - top - 3.4 * line, line)
    each = min(wide / (x1 - x0), tall / (y1 - y0))
    w, h = each * (x1 - x0), each * (y1 - y0)
    laid = Layout(
        content, line, (width - w) / 2, top + line + (tall - h) / 2, w, h, *ends,
        Ticks([], []), Ticks([], []), "", "", entries, columns,
    )  # fmt: skip
    names = [
        Word(series.name(k), float(px), float(py), measure(series.name(k)))
        for series in content.series if series.kind == "boxes"
        for k, (px, py) in enumerate(zip(*laid.marks(series), strict=True))
    ]  # fmt: skip
    notes = [Word(t, float(laid.px(x)), float(laid.py(y)), measure(t)) for x, y, t in content.notes]
    return replace(laid, names=tuple(names), limits=tuple(notes))


def _ticks(axis: Axis, span: tuple[float, float], count: float, unit: tuple[float, str] | None) -> Ticks:
    low, high = span
    if axis.time:
        return ticks.time_ticks(low, high, count, unit)
    if axis.log:
        return (ticks.doubling_ticks if axis.doubling else ticks.power_ticks)(low, high, count)
    marks = ticks.level_ticks(low, high, count, whole=axis.whole)
    if not (axis.whole and axis.tight):
        return marks
    # The first number is always shown; others too close to a shown one are not.
    first = math.ceil(low)
    step = marks.positions[1] - marks.positions[0] if len(marks.positions) > 1 else 1.0
    later = [v for v in marks.positions if v - first >= 0.8 * step and v <= high]
    return Ticks([float(first), *later], [format_number(v) for v in (first, *later)])


def _legend(content: Content, width: float, line: float, measure: Measure) -> tuple[list[float], list[Entry]]:
    """Widths of columns, and entries; if there are too many names the last one says so."""
    named = content.legend
    if not named:
        return [], []
    room = width - 3.5 * line
    texts = [elided(text, width - 4.5 * line, measure) for _, text in named]
    wide = [measure(text) + 2.8 * line for text in texts]
    count = len(named)
    while count > 1 and sum(max(wide[c::count]) for c in range(count)) > room + line:
        count -= 1
    if len(named) > count * _LEGEND_ROWS:
        named, texts = named[: count * _LEGEND_ROWS], [*texts[: count * _LEGEND_ROWS - 1], "and more"]
    columns = [max(wide[c::count]) for c in range(count)]
    starts = np.concatenate([[0.0], np.cumsum(columns)])
    # Right of the axis' title, which may be longer than the axis.
    return columns, [
        Entry(i, text, 2.2 * line + float(starts[k % count]), 0.0, k // count, k % count)
        for k, ((i, _), text) in enumerate(zip(named, texts, strict=True))
    ]


def _limits(laid: Layout, measure: Measure) -> Iterator[Word]:
    """Names of levels and verticals, at their ends."""
    content, line = laid.content, laid.line
    upright = [(float(laid.px(v)), name) for v, name in content.verticals]
    for v, name in content.levels:
        if content.horizontal_bars:
            upright.append((float(laid.px(v)), name))
        elif name:
            wide = measure(name)
            yield Word(name, laid.right - 0.3 * line - wide / 2, float(laid.py(v)) - 0.6 * line, wide)
    for x, name in upright:
        if name:
            wide = measure(name)
            direction = 1 if x + wide + 0.3 * line <= laid.right else -1
            # The shortest bars are at the bottom.
            y = laid.bottom - 0.6 * line if content.horizontal_bars else laid.top + 0.5 * line
            yield Word(name, x + direction * (0.3 * line + wide / 2), y, wide)


def _names(laid: Layout, measure: Measure) -> Iterator[Word]:
    """Names beside marks, placed where they do not cover each other if possible."""
    line = laid.line
    occupied: list[tuple[float, float, float, float]] = []
    for series in laid.content.series:
        xs, ys = laid.marks(series) if series.labels else (np.empty(0), np.empty(0))
        for k in sorted(series.labels):
            x, y, text = float(xs[k]), float(ys[k]), series.name(k).split("\n")[0]
            if not (math.isfinite(x) and math.isfinite(y)):
                continue
            w, across, up = measure(text), 0.65 * line, 0.5 * line
            centres = (
                (x + w / 2 + across, y),
                (x - w / 2 - across, y),
                (x, y - line / 2 - up),
                (x, y + line / 2 + up),
            )
            boxes = [(a - w / 2, b - line / 2, a + w / 2, b + line / 2) for a, b in centres]
            inside = [
                b for b in boxes
                if b[0] >= laid.left and b[2] <= laid.right and b[1] >= laid.top and b[3] <= laid.bottom
            ] or boxes[:1]  # fmt: skip
            box = next((b for b in inside if not any(_meet(b, other) for other in occupied)), inside[0])
            occupied.append(box)
            yield Word(text, (box[0] + box[2]) / 2, (box[1] + box[3]) / 2, w)


def _meet(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _cell_words(laid: Layout, measure: Measure) -> Iterator[tuple[int, int, Word]]:
    """Numbers in the cells that have space for them."""
    cells = laid.content.cells
    if cells is None or not cells.numbers or cells.values.size > _NUMBERED:
        return
    for (row, column), value in np.ndenumerate(cells.values):
        if math.isfinite(value):
            text = cells.text(value)
            x, y, w, h = laid.cell(row, column)
            wide = measure(text)
            if w - 2 > wide and h >= laid.line:
                yield row, column, Word(text, x + w / 2, y + h / 2, wide)


def _scale_words(content: Content, tall: float, line: float) -> list[tuple[str, float]]:
    """Texts of a colour scale and their distance from its top: the most, the middle, the least."""
    cells = content.cells
    if cells is None or cells.numbers:
        return []
    low, high = cells.ends
    middle = math.sqrt(low * high) if cells.log else (low + high) / 2
    worded = [(high, line / 2), (middle, tall / 2), (low, tall - line / 2)]
    if low == high:
        worded = worded[:1]
    elif tall < 4 * line:
        worded = worded[::2]
    return [(cells.text(value), at) for value, at in worded]

"""Figures for paper, report and projector, laid out in mm: what the window's plots show, for readers.

`draw` puts one figure of `desktop.data.material.FIGURES` on a sheet; `svg`, `image`, `pdf` give it as a file.
A `Look` says how large, with what text size, in colour, in grey or with patterns (areas told apart by hatches
and lines by dashes as well), and which texts stand in place of the usual ones (`texts`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QMarginsF, QSizeF, QUuid
from PySide6.QtGui import QColor, QImage, QImageWriter, QPageSize, QPainter, QPdfWriter

from desktop.core.contrast import Contrast
from desktop.core.curve import StepCurve
from desktop.core.density import ink as density_ink
from desktop.core.envelope import envelope
from desktop.core.gantt import COLOURS as REGION_COLOURS
from desktop.core.gantt import NO_REGION, OTHER_REGION
from desktop.core.matching import NONE
from desktop.core.pieces import pieces
from desktop.data.chart import Chosen, Content, with_words, words
from desktop.data.material import CLASSES, FIGURES, Bars, Drawn, Mark, Material
from desktop.data.sweep_charts import epsilon_chart, epsilon_words
from desktop.ui import chart_sheet
from desktop.ui.drawing import (
    MM_PER_POINT,
    Fill,
    Hatch,
    QtSheet,
    Sheet,
    Stroke,
    SvgSheet,
    fitted,
    text_width,
)
from desktop.ui.plots import fit_overlay, scales
from desktop.ui.plots.notes import COLOURS
from desktop.ui.plots.raster import mix
from desktop.ui.plots.scales import Ticks
from desktop.ui.theme import DARK, LIGHT, Theme, coloured
from desktop.ui.units import digits, time_scale
from desktop.workbench.levels import AT_FIRST, Heights, Levels, limits, line_heights, share
from desktop.workbench.levels import note as levels_note

Style = Literal["colour", "grey", "patterns"]
#: The smallest sheet that holds every figure, mm.
SMALLEST = (40.0, 30.0)
_COLUMNS_PER_MM = 5
_ALL_COLUMNS = 2400


@dataclass(frozen=True)
class Look:
    """How a figure is drawn. `lines` multiplies the widths of lines; `span` is the time shown, seconds (None:
    all), `levels` how processors are shown; `phase` is a chosen one; `words` replaces texts by their key in
    `texts`; `colours` is the set of `desktop.ui.theme`. The curve alone can be drawn in layers, so that what
    lies `below` its fit is drawn once while the fit above it changes."""

    width: float = 160.0
    height: float = 90.0
    points: float = 9.0
    style: Style = "colour"
    dark: bool = False
    colours: str = "soft"
    lines: float = 1.0
    span: tuple[float, float] | None = None
    levels: Levels = AT_FIRST
    phase: int | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    layer: Literal["all", "below", "above"] = "all"


@dataclass(frozen=True)
class Ink:
    """The colours of a look. `regions`: by the numbers of `desktop.core.gantt`. `dashed`: lines differ by
    dashes too."""

    ground: str
    text: str
    muted: str
    border: str
    grid: str
    curve: str
    fit: str
    residual: str
    mark: str
    areas: Mapping[str, Fill]
    regions: Mapping[int, Fill]
    dashed: bool
    runs: tuple[str, ...]


_GREY = {
    "computing": "#8c8c8c",
    "overhead": "#c4c4c4",
    "io": "#4d4d4d",
    "idle": "#f0f0f0",
    "unmeasured": "#dadada",
}
_GREY_RUNS = ("#000000", "#6e6e6e", "#3c3c3c", "#909090", "#1e1e1e", "#7f7f7f")
#: Dashes of compared runs, in multiples of the line's width; the reference is solid in every style.
_RUN_DASHES = ((6.0, 2.0), (2.0, 2.0), (9.0, 2.0, 2.0, 2.0), (1.0, 1.5), (4.0, 1.0, 1.0, 1.0))
_HATCH: dict[str, Hatch] = {"computing": "", "overhead": "/", "io": "x", "idle": ".", "unmeasured": "\\"}


def ink(look: Look) -> Ink:
    """Grey and patterns are for paper: white ground and black text whatever the theme."""
    theme = coloured(DARK if look.dark and look.style == "colour" else LIGHT, look.colours)
    areas = {name: Fill(getattr(theme, name)) for name in CLASSES}
    regions = _region_fills(theme, look.style)
    if look.style == "grey":
        areas = {name: Fill(_GREY[name]) for name in CLASSES}
        return Ink("#ffffff", "#000000", "#404040", "#606060", "#d8d8d8", "#5a5a5a", "#000000", "#404040",
                   "#000000", areas, regions, True, _GREY_RUNS)  # fmt: skip
    if look.style == "patterns":
        areas = {name: Fill(getattr(theme, name), 1.0, _HATCH[name], "#30363d") for name in CLASSES}
    strong = "#ffffff" if theme.dark else "#000000"
    return Ink(theme.background, strong, theme.muted, theme.border, theme.grid, theme.curve, theme.fit,
               theme.residual, theme.selection, areas, regions, look.style == "patterns",
               theme.series)  # fmt: skip


def _region_fills(theme: Theme, style: Style) -> dict[int, Fill]:
    """Areas of regions; colours as the window has them."""
    rest = {
        NO_REGION: Fill(mix(theme.border, theme.background, 0.25).name()),
        OTHER_REGION: Fill(theme.muted),
    }
    if style == "grey":
        greys = (round(60 + 150 * k / (REGION_COLOURS - 1)) for k in range(REGION_COLOURS))
        every = {k: Fill(f"#{grey:02x}{grey:02x}{grey:02x}") for k, grey in enumerate(greys)}
        return every | {NO_REGION: Fill("#f0f0f0"), OTHER_REGION: Fill("#202020")}
    share = 0.78 if theme.dark else 0.85
    colours = {k: mix(colour, theme.background, share).name() for k, colour in enumerate(theme.regions)}
    if style == "patterns":
        hatches = [hatch for hatch in get_args(Hatch) for _ in range(2)]
        return {k: Fill(c, 1.0, hatches[k], "#30363d") for k, c in colours.items()} | rest
    return {k: Fill(colour) for k, colour in colours.items()} | rest


def texts(figure: str, material: Material) -> dict[str, str]:
    """The texts of a figure that may be replaced, by key."""
    n, model = material.fit.n, material.fit.model
    common = {"title": f"{FIGURES[figure]}: {material.title}"}
    axes = {"time": "Time", "processors": "Processors computing"}
    fit = {"fit": f"{n} phase{'' if n == 1 else 's'} ({model})"}
    if figure == "curve":
        return common | axes | fit | {
            "computing": "Computing",
            "extremes": "Least and largest",
            "break": "Break, and where it may lie",
        }  # fmt: skip
    if figure == "stack":
        return common | axes | {"processors": "Processors"} | {name: CLASSES[name] for name in material.stack}
    if figure == "residual":
        return common | axes | {
            "processors": "Curve − fit",
            "residual": "Mean",
            "extremes": "Least and largest",
            "rms": "± root of the mean square, by phase",
        }  # fmt: skip
    if figure == "epsilon":
        return words(epsilon_content(material)) | common
    if figure == "timeline":
        assert material.bars is not None
        named = zip(_class_keys(material.bars), material.bars.classes, strict=True)
        return common | {"time": "Time"} | {key: CLASSES.get(name, name) for key, name in named}
    if figure == "comparison":
        return common | _comparison_texts(material.contrast)
    return common


def _class_keys(bars: Bars) -> list[str]:
    """Under which texts the names of a timeline's classes stand; a region may be called anything."""
    return [f"region {k}" for k, _ in enumerate(bars.classes, 1)] if bars.shades else list(bars.classes)


def _comparison_texts(contrast: Contrast | None) -> dict[str, str]:
    assert contrast is not None
    alignment, placement = contrast.alignment, contrast.placement
    reference = alignment.runs[alignment.reference].name
    names = [run.name + (" (reference)" if run.name == reference else "") for run in alignment.runs]
    axes = {
        "absolute": "Time",
        "start": "Time from each run's start",
        "normalised": "Part of each run (%)",
        "phases": f"Time of the phases of {reference}",
    }
    return {
        "title": f"Runs compared with {reference}",
        "time": axes[placement.axis],
        "processors": "Of all (%)" if placement.share else "Processors",
        "difference": "Difference",
    } | {f"run {k}": name for k, name in enumerate(names, 1)}


# ------------------------------------------------------------------ files

#: Draws on a sheet.
Paint = Callable[[Sheet], None]


def svg(figure: str, material: Material, look: Look, *, inline: bool = False, prefix: str = "") -> str:
    """The figure as SVG; `inline` to stand in HTML, then with a `prefix` of its own."""
    sheet = SvgSheet(look.width, look.height, prefix)
    draw(sheet, figure, material, look)
    return sheet.svg(_words(figure, material, look)["title"], inline=inline)


def image(figure: str, material: Material, look: Look, dpi: float) -> QImage:
    """The figure as pixels."""
    return image_of(lambda sheet: draw(sheet, figure, material, look), look, dpi)


def png(figure: str, material: Material, look: Look, dpi: float) -> bytes:
    """The figure as a PNG file that knows its size in mm."""
    return _png(image(figure, material, look, dpi))


def pdf(figure: str, material: Material, look: Look) -> bytes:
    """The figure as a PDF page of its size."""
    title = _words(figure, material, look)["title"]
    return _pdf(lambda sheet: draw(sheet, figure, material, look), look, title)


def draw_chart(sheet: Sheet, content: Content, look: Look) -> None:
    """Draw a chart over the whole sheet, with the texts of `look`.

    Raises
    ------
    ValueError : the sheet is smaller than `SMALLEST`.
    """
    _check_size(look)
    content = with_words(content, look.words)
    _Frame(sheet, look, {"title": content.title}).chart(content)


def chart_file(content: Content, look: Look, kind: str, dpi: float = 300) -> bytes:
    """A chart as a file; `kind`: ``svg``, ``pdf`` or ``png``. The same chart gives the same bytes."""
    title = with_words(content, look.words).title

    def paint(sheet: Sheet) -> None:
        draw_chart(sheet, content, look)

    if kind == "png":
        return _png(image_of(paint, look, dpi))
    if kind == "pdf":
        return _pdf(paint, look, title)
    sheet = SvgSheet(look.width, look.height)
    paint(sheet)
    return sheet.svg(title).encode()


def image_of(paint: Paint, look: Look, dpi: float) -> QImage:
    """What is painted on a sheet as pixels."""
    scale = dpi / 25.4
    made = QImage(round(look.width * scale), round(look.height * scale), QImage.Format.Format_RGB32)
    made.fill(QColor(ink(look).ground))  # the sheet may end within a pixel
    made.setDotsPerMeterX(round(1000 * scale))
    made.setDotsPerMeterY(round(1000 * scale))
    with QPainter(made) as painter:
        paint(QtSheet(painter, look.width, look.height, scale))
    return made


def _png(image: QImage) -> bytes:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    QImageWriter(buffer, QByteArray(b"png")).write(image)
    return bytes(buffer.data().data())


#: When a PDF says that it was made: Qt asks the clock, and the same figure shall give the same bytes.
_MADE = (b"(D:20000101000000Z)", b'"2000-01-01T00:00:00+00:00"')


def _pdf(paint: Paint, look: Look, title: str) -> bytes:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setResolution(1200)
    writer.setTitle(title)
    writer.setCreator("Phasewright")
    writer.setDocumentId(QUuid.createUuidV5(QUuid(), title.encode()))
    size = QSizeF(look.width, look.height)
    writer.setPageSize(QPageSize(size, QPageSize.Unit.Millimeter, "", QPageSize.SizeMatchPolicy.ExactMatch))
    writer.setPageMargins(QMarginsF(0, 0, 0, 0))
    with QPainter(writer) as painter:
        paint(QtSheet(painter, look.width, look.height, 1200 / 25.4))
    made = bytes(buffer.data().data())
    # As long as before: the file says where its parts begin.
    fixed = lambda found: (found[1] + _MADE[b"D:" not in found[2]]).ljust(len(found[0]))  # noqa: E731
    made = re.sub(rb"(/(?:Creation|Mod)Date )(\(D:[^)]*\))", fixed, made)
    return re.sub(rb'(xmp:(?:Create|Modify|Metadata)Date=)("[^"]*")', fixed, made)


# ------------------------------------------------------------------ drawing


def _words(figure: str, material: Material, look: Look) -> dict[str, str]:
    return texts(figure, material) | dict(look.words)


def draw(sheet: Sheet, figure: str, material: Material, look: Look) -> None:
    """Draw a figure over the whole sheet, ground included.

    Raises
    ------
    ValueError : there is nothing to draw it from, or the sheet is smaller than `SMALLEST`.
    """
    if figure not in material.figures():
        raise ValueError(f"there is no figure {figure!r} of this run")
    _check_size(look)
    frame = _Frame(sheet, look, _words(figure, material, look))
    {
        "curve": _curve,
        "stack": _stack,
        "residual": _residual,
        "epsilon": _epsilon,
        "timeline": _timeline,
        "phases": _phases,
        "comparison": _comparison,
    }[figure](frame, material)


def _check_size(look: Look) -> None:
    if look.width < SMALLEST[0] or look.height < SMALLEST[1]:
        raise ValueError(f"a figure needs {SMALLEST[0]:g} x {SMALLEST[1]:g} mm or more")


@dataclass(frozen=True)
class Box:
    """A rectangle of the sheet with its axes: `x0`..`x1` and `y0`..`y1` are the values at its edges."""

    left: float
    top: float
    width: float
    height: float
    x0: float = 0.0
    x1: float = 1.0
    y0: float = 0.0
    y1: float = 1.0
    log: bool = False

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    def x(self, value):
        return self.left + (value - self.x0) / (self.x1 - self.x0) * self.width

    def y(self, value):
        return self.bottom - share(value, self.y0, self.y1, self.log) * self.height

    def points(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.stack([self.x(x), self.y(y)], axis=1)


class _Frame:
    """The sheet with its ground and title; `top` is where free space begins."""

    def __init__(self, sheet: Sheet, look: Look, words: Mapping[str, str]) -> None:
        self.sheet, self.look, self.words = sheet, look, words
        self.ink = ink(look)
        self.em = look.points * MM_PER_POINT
        self.pad = 0.6 * self.em
        self.top = self.pad
        if look.layer != "above":
            sheet.rects([[0, 0, sheet.width, sheet.height]], Fill(self.ink.ground))
        if words["title"]:
            size = 1.15 * self.em
            line = fitted(words["title"], size, sheet.width - 2 * self.pad, bold=True)
            self.top += size
            if look.layer != "above":
                sheet.text(self.pad, self.top, line, size, self.ink.text, bold=True)
            self.top += 0.55 * self.em

    def stroke(self, colour: str, points: float, dash: tuple[float, ...] = ()) -> Stroke:
        """A line so many points wide, dashed only where lines are to differ by that."""
        width = points * MM_PER_POINT * self.look.lines
        return Stroke(colour, width, dash if self.ink.dashed else ())

    def outline(self) -> Stroke:
        return Stroke(self.ink.border, 0.5 * MM_PER_POINT)

    def legend(self, entries: list[tuple[Fill | None, Stroke | None, str]]) -> None:
        """A row of swatches and names under the title, in as many lines as it takes."""
        em, sheet, swatch = self.em, self.sheet, 2.2 * self.em
        x, shown = self.pad, self.look.layer != "above"
        self.top += em
        for fill, stroke, name in entries:
            name = fitted(name, em, sheet.width - 2 * self.pad - swatch - em)
            wide = swatch + 0.5 * em + text_width(name, em) + 1.4 * em
            if x + wide - 1.4 * em > sheet.width - self.pad and x > self.pad:
                x = self.pad
                self.top += 1.45 * em
            if fill is not None and shown:
                sheet.rects([[x, self.top - 0.75 * em, swatch, 0.85 * em]], fill)
            if stroke is not None and shown:
                middle = self.top - 0.33 * em
                sheet.lines([[x, middle, x + swatch, middle]], stroke)
            elif fill is not None and shown:
                self._frame_of(x, self.top - 0.75 * em, swatch, 0.85 * em)
            if shown:
                sheet.text(x + swatch + 0.5 * em, self.top, name, em, self.ink.text)
            x += wide
        self.top += 0.6 * em

    def _frame_of(self, x: float, y: float, w: float, h: float) -> None:
        self.sheet.line([[x, y], [x + w, y], [x + w, y + h], [x, y + h], [x, y]], self.outline())

    def room(self, labels: list[str], *, rail: float = 0.0) -> Box:
        """The box that is left for a plot whose vertical axis has these labels, below a rail so high."""
        em = self.em
        widest = max((text_width(label, em) for label in labels), default=0.0)
        left = self.pad + 1.5 * em + widest + 0.9 * em
        top = self.top + 0.5 * em + rail
        bottom = self.sheet.height - self.pad - 2.9 * em
        return Box(left, top, self.sheet.width - self.pad - 1.4 * em - left, max(bottom - top, 1.0))

    def time_axis(self, box: Box) -> Ticks:
        em, sheet = self.em, self.sheet
        count = box.width / (text_width("000.000", em) * 1.5)
        ticks = scales.time_ticks(box.x0, box.x1, max(count, 1.5))
        self.horizontal(box, ticks, f"{self.words['time']} ({ticks.unit})")
        if ticks.offset:
            sheet.text(box.left, box.bottom + 2.75 * em, ticks.offset, em, self.ink.muted)
        return ticks

    def horizontal(self, box: Box, ticks: Ticks, title: str) -> None:
        em, sheet = self.em, self.sheet
        for value, label in zip(ticks.positions, ticks.labels, strict=True):
            half = text_width(label, em) / 2
            x = min(float(box.x(value)), sheet.width - 0.3 * em - half)
            sheet.text(x, box.bottom + 1.4 * em, label, em, self.ink.muted, "middle")
        title = fitted(title, em, sheet.width - 2 * self.pad)
        half = text_width(title, em) / 2
        centre = min(max(box.left + box.width / 2, self.pad + half), sheet.width - self.pad - half)
        sheet.text(centre, box.bottom + 2.75 * em, title, em, self.ink.text, "middle")
        places = [float(box.x(v)) for v in ticks.positions]
        sheet.lines([[x, box.bottom, x, box.bottom + 0.35 * em] for x in places], self.outline())

    def vertical(self, box: Box, ticks: Ticks, title: str) -> None:
        em, sheet = self.em, self.sheet
        ys = [float(box.y(v)) for v in ticks.positions]
        sheet.lines([[box.left - 0.35 * em, y, box.left, y] for y in ys], self.outline())
        for y, label in zip(ys, ticks.labels, strict=True):
            sheet.text(box.left - 0.6 * em, y + 0.36 * em, label, em, self.ink.muted, "end")
        # A title longer than the axis may reach over its ends, as far as the sheet does.
        title = fitted(title, em, sheet.height - 2 * self.pad)
        half = text_width(title, em) / 2
        middle = min(max(box.top + box.height / 2, self.pad + half), sheet.height - self.pad - half)
        sheet.text(self.pad + 0.85 * em, middle, title, em, self.ink.text, "middle", upright=True)

    def grid(self, box: Box, x: Ticks, y: Ticks) -> None:
        stroke = Stroke(self.ink.grid, 0.4 * MM_PER_POINT)
        self.sheet.lines([[box.x(v), box.top, box.x(v), box.bottom] for v in x.positions], stroke)
        self.sheet.lines([[box.left, box.y(v), box.right, box.y(v)] for v in y.positions], stroke)

    def border(self, box: Box) -> None:
        self._frame_of(box.left, box.top, box.width, box.height)

    def chart(self, content: Content) -> None:
        """A chart in all the room that is left."""
        chart_sheet.paint(self.sheet, content, self.ink, self.em, self.top, self.look.lines)

    def levels(self, low: float, high: float, height: float, log: bool = False) -> Ticks:
        room = max(height / (1.9 * self.em), 1.5)
        return scales.log_ticks(low, high, room) if log else scales.level_ticks(low, high, room, whole=True)

    def processors(self, curve: StepCurve, a: float, b: float) -> tuple[float, float, str]:
        """The ends of an axis of processors over the time `a` to `b`, and what is said of it if it does not
        show all of them."""
        env = envelope(curve)
        low, high, _ = env.range(a, b)
        least, most, _ = env.range(-math.inf, math.inf)
        known = Heights(curve.capacity, least, most, *line_heights(curve), low, high)
        return *limits(self.look.levels, known), levels_note(self.look.levels, known)

    def span(self, material: Material) -> tuple[float, float]:
        curve = material.curve
        start, end = curve.start, curve.start + curve.duration
        if self.look.span is None:
            return start, end
        a, b = max(self.look.span[0], start), min(self.look.span[1], end)
        return (a, b) if a < b else (start, end)


def _times(material: Material, a: float, b: float, width: float) -> tuple[NDArray[np.float64], bool]:
    """Where the picture's columns begin and end, and whether each is a single step of the curve."""
    curve = material.curve
    count = int(min(max(width * _COLUMNS_PER_MM, 50), _ALL_COLUMNS))
    first = int(np.searchsorted(curve.edges, a / curve.unit, "right"))
    last = int(np.searchsorted(curve.edges, b / curve.unit, "left"))
    if last - first < count:
        return np.unique(np.concatenate([[a], curve.edges[first:last] * curve.unit, [b]])), True
    return np.linspace(a, b, count + 1), False


def _paint_curve(frame: _Frame, material: Material, box: Box, x: NDArray[np.float64], exact: bool) -> None:
    """The curve in columns between the times `x`, with its extremes unless each is one step (`exact`)."""
    columns = envelope(material.curve).columns(x)
    sheet, places = frame.sheet, box.x(x)
    mean, low, high = (box.y(np.nan_to_num(v)) for v in (columns.mean, columns.minimum, columns.maximum))
    sheet.band(places, np.full(mean.size, box.bottom), mean, frame.ink.areas["computing"])
    if not exact:
        sheet.band(places, low, high, Fill(frame.ink.curve, 0.3))
    # Wider lines are for the fit: a curve that jumps about would fill its area with them.
    sheet.steps(places, mean, frame.stroke(frame.ink.curve, 0.8 / math.sqrt(frame.look.lines)))


def _paint_fit(frame: _Frame, material: Material, box: Box) -> None:
    fit, sheet, look = material.fit, frame.sheet, frame.look
    step = 0.5 * (box.x1 - box.x0) / box.width if box.log else None  # short parts are straight
    found = list(zip(*(v.tolist() for v in pieces(fit, box.x0, box.x1, step)), strict=True))
    # First in the colour of the ground and wider: the fit stands off a curve as dark as itself.
    for colour, more in ((frame.ink.ground, 1.6), (frame.ink.fit, 0.0)):
        for phase, a, b, first, middle, last in found:
            stroke = frame.stroke(colour, (3.6 if phase == look.phase else 2.0) + more)
            if more:
                stroke = replace(stroke, dash=())
            start, end = (float(box.x(a)), float(box.y(first))), (float(box.x(b)), float(box.y(last)))
            if fit.degree[phase] < 2 or box.log:
                sheet.line([start, end], stroke)
            else:
                sheet.bend(start, (float(box.x((a + b) / 2)), float(box.y(middle))), end, stroke)


def _break_stroke(frame: _Frame) -> Stroke:
    return frame.stroke(frame.ink.text, 0.8, (4.0, 2.0))


def _paint_breaks(frame: _Frame, material: Material, box: Box, *, ranges: bool = True) -> None:
    fit = material.fit
    low, high = (np.clip(v[1:-1], box.x0, box.x1) for v in (fit.break_low, fit.break_high))
    inside = (fit.breaks[1:-1] > box.x0) & (fit.breaks[1:-1] < box.x1)
    if ranges:
        bands = [
            [box.x(x0), box.top, box.x(x1) - box.x(x0), box.height]
            for x0, x1 in zip(low.tolist(), high.tolist(), strict=True)
            if x1 > x0
        ]
        if bands:
            frame.sheet.rects(bands, Fill(frame.ink.fit, 0.15))
    places = [float(box.x(t)) for t in fit.breaks[1:-1][inside]]
    frame.sheet.lines([[x, box.top, x, box.bottom] for x in places], _break_stroke(frame))


def _paint_rail(frame: _Frame, material: Material, box: Box) -> None:
    """The phases and their numbers above the plot, where a number fits."""
    fit, sheet, em = material.fit, frame.sheet, frame.em
    top, height = box.top - 1.5 * em, 1.5 * em
    for phase in fit_overlay.visible(fit, box.x0, box.x1).tolist():
        x0 = float(box.x(max(fit.breaks[phase], box.x0)))
        x1 = float(box.x(min(fit.breaks[phase + 1], box.x1)))
        chosen = phase == frame.look.phase
        if chosen or phase % 2 == 0:
            sheet.rects([[x0, top, x1 - x0, height]], Fill(frame.ink.fit if chosen else frame.ink.grid))
        label = str(phase + 1)
        if text_width(label, em, bold=chosen) + 0.3 * em < x1 - x0:
            colour = frame.ink.ground if chosen else frame.ink.text
            sheet.text((x0 + x1) / 2, top + 1.1 * em, label, em, colour, "middle", bold=chosen)
    line = [[box.left, top], [box.right, top], [box.right, box.top], [box.left, box.top], [box.left, top]]
    sheet.line(line, frame.outline())


@dataclass(frozen=True)
class _Note:
    """Where the text of an annotation stands: in which row above the plot, and from where, mm."""

    mark: Mark
    row: int
    left: float
    text: str


_NOTE_ROW = 1.6  # height of a row of notes, em


def _place_notes(frame: _Frame, marks: Sequence[Mark], box: Box, most: int) -> list[_Note]:
    """Texts of annotations in at most so many rows above the plot, where no curve is; shortened if need be.
    Those for which there is no room are counted in the last row."""
    em = frame.em
    for part in (0.6, 0.35, 0.2, 0.1):
        ends: list[float] = []  # where the text of each row ends
        placed: list[_Note] = []
        for mark in marks:
            text = fitted(mark.told, em, part * box.width)
            wide = text_width(text, em) + 1.2 * em
            left = max(min(float(box.x(max(mark.start_s, box.x0))), box.right - wide), box.left)
            row = next((k for k, end in enumerate(ends) if end <= left), len(ends))
            if row < most:
                ends[row : row + 1] = [left + wide]
                placed.append(_Note(mark, row, left, text))
        if len(placed) == len(marks):
            return placed
    more, last = len(marks) - len(placed), max(len(ends) - 1, 0)
    wide = text_width("… and 999 more", em)
    kept = [note for note in placed if note.row < last or note.left + text_width(note.text, em) + em
            < box.right - wide]  # fmt: skip
    more += len(placed) - len(kept)
    return [*kept, _Note(Mark(math.nan, ""), last, box.right - wide, f"… and {more} more")]


def _paint_marks(frame: _Frame, marks: Sequence[Mark], notes: list[_Note], box: Box, rows: int) -> None:
    """Annotations: a line or a band in the plot, its text above the phases."""
    em, sheet = frame.em, frame.sheet
    top = box.top - 1.5 * em - rows * _NOTE_ROW * em  # of the first row
    row_of = {id(note.mark): note.row for note in notes}
    for mark in marks:
        until = mark.start_s if mark.end_s is None else mark.end_s
        x0, x1 = (float(box.x(min(max(t, box.x0), box.x1))) for t in (mark.start_s, until))
        if x1 > x0:
            sheet.rects([[x0, box.top, x1 - x0, box.height]], Fill(_note_colour(frame, mark), 0.15))
        stroke = frame.stroke(_note_colour(frame, mark), 1.0, (1.0, 1.5))
        high = top + (row_of[id(mark)] + 0.15) * _NOTE_ROW * em if id(mark) in row_of else box.top
        ends = [[x1, box.top, x1, box.bottom]] if x1 > x0 else []
        sheet.lines([[x0, high, x0, box.bottom], *ends], stroke)
    for note in notes:
        y = top + note.row * _NOTE_ROW * em
        if math.isnan(note.mark.start_s):
            sheet.text(note.left, y + 1.15 * em, note.text, em, frame.ink.muted)
            continue
        wide = text_width(note.text, em) + 0.8 * em
        sheet.rects([[note.left, y + 0.15 * em, wide, 1.4 * em]], Fill(frame.ink.ground))
        # The colour is beside the text, which has to be read on every ground.
        sheet.rects([[note.left, y + 0.15 * em, 0.25 * em, 1.4 * em]], Fill(_note_colour(frame, note.mark)))
        sheet.text(note.left + 0.55 * em, y + 1.15 * em, note.text, em, frame.ink.text)


def _note_colour(frame: _Frame, mark: Mark) -> str:
    return frame.ink.mark if frame.look.style == "grey" else COLOURS[mark.colour % len(COLOURS)]


def _curve(frame: _Frame, material: Material) -> None:
    words, look = frame.words, frame.look
    a, b = frame.span(material)
    x, exact = _times(material, a, b, look.width)
    band = [(Fill(frame.ink.curve, 0.3), None, words["extremes"])]
    low, high, shown = frame.processors(material.curve, a, b)
    frame.legend(
        [
            (frame.ink.areas["computing"], frame.stroke(frame.ink.curve, 0.8), words["computing"]),
            *([] if exact else band),
            (None, frame.stroke(frame.ink.fit, 2.0), words["fit"]),
            (Fill(frame.ink.fit, 0.15), _break_stroke(frame), words["break"]),
            *([(None, None, shown)] if shown else []),
        ]
    )
    log = look.levels.log
    ticks = frame.levels(low, high, look.height - frame.top, log)
    box = frame.room(ticks.labels, rail=1.5 * frame.em)
    marks = [m for m in material.marks if m.start_s <= b and max(m.start_s, m.end_s or a) >= a]
    marks.sort(key=lambda mark: mark.start_s)
    most = max(1, int(0.35 * box.height / (_NOTE_ROW * frame.em)))
    notes = _place_notes(frame, marks, replace(box, x0=a, x1=b), most)
    rows = max((note.row for note in notes), default=-1) + 1
    box = frame.room(ticks.labels, rail=(1.5 + _NOTE_ROW * rows) * frame.em)
    box = Box(box.left, box.top, box.width, box.height, a, b, low, high, log)
    ticks = frame.levels(box.y0, box.y1, box.height, log)
    if look.layer != "above":
        with frame.sheet.clipped(box.left, box.top, box.width, box.height):
            _paint_curve(frame, material, box, x, exact)
        frame.grid(box, frame.time_axis(box), ticks)
        frame.vertical(box, ticks, words["processors"])
    if look.layer == "below":
        return
    with frame.sheet.clipped(box.left, box.top, box.width, box.height):
        _paint_breaks(frame, material, box)
        _paint_fit(frame, material, box)
    _paint_rail(frame, material, box)
    _paint_marks(frame, marks, notes, box, rows)
    frame.border(box)


def _stack(frame: _Frame, material: Material) -> None:
    words, look = frame.words, frame.look
    names = list(material.stack)
    a, b = frame.span(material)
    low, high, shown = frame.processors(material.curve, a, b)
    entries: list[tuple[Fill | None, Stroke | None, str]] = [
        (frame.ink.areas[name], None, words[name]) for name in names
    ]
    frame.legend([*entries, *([(None, None, shown)] if shown else [])])
    log = look.levels.log
    ticks = frame.levels(low, high, look.height - frame.top, log)
    box = frame.room(ticks.labels, rail=1.5 * frame.em)
    box = Box(box.left, box.top, box.width, box.height, a, b, low, high, log)
    ticks = frame.levels(box.y0, box.y1, box.height, log)
    # One grid of columns for all classes, so that what lies on another fits it.
    x = np.linspace(a, b, int(min(max(box.width * _COLUMNS_PER_MM, 50), _ALL_COLUMNS)) + 1)
    below = np.zeros(x.size - 1)
    for name in names:
        above = below + np.nan_to_num(envelope(material.stack[name]).columns(x).mean)
        with frame.sheet.clipped(box.left, box.top, box.width, box.height):
            frame.sheet.band(box.x(x), box.y(below), box.y(above), frame.ink.areas[name])
            if (above > below).any():
                frame.sheet.steps(box.x(x), box.y(above), Stroke(frame.ink.border, 0.3 * MM_PER_POINT))
        below = above
    frame.grid(box, frame.time_axis(box), ticks)
    _paint_breaks(frame, material, box, ranges=False)
    _paint_rail(frame, material, box)
    frame.border(box)
    frame.vertical(box, ticks, words["processors"])


def _residual(frame: _Frame, material: Material) -> None:
    words, look, fit = frame.words, frame.look, material.fit
    a, b = frame.span(material)
    frame.legend(
        [
            (Fill(frame.ink.residual, 0.3), None, words["extremes"]),
            (None, frame.stroke(frame.ink.residual, 0.9), words["residual"]),
            (None, frame.stroke(frame.ink.text, 0.9, (5.0, 2.5)), words["rms"]),
        ]
    )
    x = np.linspace(a, b, int(min(max(look.width * _COLUMNS_PER_MM, 50), _ALL_COLUMNS)) + 1)
    left = fit_overlay.residual(envelope(material.curve), fit, x)
    most = float(np.nanmax(np.abs([left.minimum, left.maximum]), initial=0.0)) or 1.0
    ticks = frame.levels(-1.05 * most, 1.05 * most, look.height - frame.top)
    box = frame.room(ticks.labels, rail=1.5 * frame.em)
    box = Box(box.left, box.top, box.width, box.height, a, b, -1.05 * most, 1.05 * most)
    ticks = frame.levels(box.y0, box.y1, box.height)
    frame.grid(box, frame.time_axis(box), ticks)
    low, high, mean = (box.y(np.nan_to_num(v)) for v in (left.minimum, left.maximum, left.mean))
    frame.sheet.band(box.x(x), low, high, Fill(frame.ink.residual, 0.3))
    frame.sheet.steps(box.x(x), mean, frame.stroke(frame.ink.residual, 0.9))
    frame.sheet.lines([[box.left, box.y(0.0), box.right, box.y(0.0)]], frame.outline())
    spread = []
    for phase in fit_overlay.visible(fit, a, b).tolist():
        x0, x1 = (box.x(min(max(float(t), a), b)) for t in fit.breaks[phase : phase + 2])
        rms = material.rows[phase].rms
        spread += [[x0, box.y(sign * rms), x1, box.y(sign * rms)] for sign in (-1, 1)]
    with frame.sheet.clipped(box.left, box.top, box.width, box.height):
        frame.sheet.lines(spread, frame.stroke(frame.ink.text, 0.9, (5.0, 2.5)))
        _paint_breaks(frame, material, box, ranges=False)
    _paint_rail(frame, material, box)
    frame.border(box)
    frame.vertical(box, ticks, words["processors"])


def epsilon_content(material: Material) -> Content:
    """The error of every n, as the window shows it."""
    assert material.sweep is not None
    first, errors, fit = int(material.sweep.n[0]), material.sweep.epsilon, material.fit
    beyond = None if fit.requested in material.sweep.n.tolist() else (fit.requested, fit.epsilon)
    said = epsilon_words(
        errors, first, fit.requested, fit.epsilon, by_hand=material.by_hand is not None and not beyond
    )
    chosen = Chosen(x=float(fit.requested), y=fit.epsilon, label=said)
    suggested = material.suggestion.n if material.suggestion else None
    return epsilon_chart(errors, first, fit.model, suggested, beyond, chosen)


def _epsilon(frame: _Frame, material: Material) -> None:
    content = with_words(epsilon_content(material), {k: v for k, v in frame.words.items() if k != "title"})
    frame.chart(content)


def _timeline(frame: _Frame, material: Material) -> None:
    bars = material.bars
    assert bars is not None
    words, em, sheet = frame.words, frame.em, frame.sheet
    fills = _bar_fills(frame, bars)
    entries: list[tuple[Fill | None, Stroke | None, str]] = [
        (fill, None, words[name]) for fill, name in zip(fills, _class_keys(bars), strict=True)
    ]
    drawn, thin = bars.messages, Stroke(frame.ink.text, 0.4 * MM_PER_POINT)
    if drawn is not None and drawn.density is not None:
        most = f"{int(drawn.density.max()):,}".replace(",", " ")
        entries.append((None, thin, f"messages, up to {most} at a point"))
    elif drawn is not None and len(drawn.lines):
        entries.append((None, thin, "message"))
    frame.legend(entries)
    if max(bars.merged) > 1:
        note = f"{sum(bars.merged)} processors in {len(bars.names)} rows: neighbours share a row"
        frame.top += 0.7 * em
        sheet.text(frame.pad, frame.top, fitted(note, em, sheet.width), em, frame.ink.muted)
    names = [fitted(name, em, 0.25 * sheet.width) for name in bars.names]
    a, b = frame.span(material)
    box = frame.room(names, rail=1.5 * em)
    # Rows carry their names; the axis has no title.
    left = box.left - 1.2 * em
    box = Box(left, box.top, box.right - left, box.height, a, b, float(len(names)), 0.0)
    row = box.height / len(names)
    with sheet.clipped(box.left, box.top, box.width, box.height):
        _paint_bars(frame, bars, box, fills)
    if row > 0.8:
        rules = [[box.left, box.top + k * row, box.right, box.top + k * row] for k in range(1, len(names))]
        sheet.lines(rules, Stroke(frame.ink.ground, 0.25))
    if drawn is not None:
        with sheet.clipped(box.left, box.top, box.width, box.height):
            _paint_messages(frame, bars, drawn, box, thin)
    every = max(1, math.ceil(1.25 * em / row))
    for k in range(0, len(names), every):
        y = box.top + (k + 0.5) * row + 0.36 * em
        sheet.text(box.left - 0.6 * em, y, names[k], em, frame.ink.muted, "end")
    frame.time_axis(box)
    _paint_breaks(frame, material, box, ranges=False)
    _paint_rail(frame, material, box)
    frame.border(box)


def _paint_messages(frame: _Frame, bars: Bars, drawn: Drawn, box: Box, thin: Stroke) -> None:
    """Lines from send to receive, or how many there are by their ink, as in the window."""
    if drawn.density is not None:
        x0, x1 = (float(box.x(t)) for t in (bars.times[0], bars.times[-1]))
        frame.sheet.shade(density_ink(drawn.density), frame.ink.text, (x0, box.top, x1 - x0, box.height))
    elif len(drawn.lines):
        sent, above, received, below = drawn.lines.T
        frame.sheet.lines(np.stack([box.x(sent), box.y(above), box.x(received), box.y(below)], axis=1), thin)


def _bar_fills(frame: _Frame, bars: Bars) -> list[Fill]:
    """Areas of the classes of a timeline."""
    if not bars.shades:
        return [frame.ink.areas[name] for name in bars.classes]
    return [frame.ink.regions[shade] for shade in bars.shades]


def _paint_bars(frame: _Frame, bars: Bars, box: Box, fills: list[Fill]) -> None:
    """In each column of a row the classes stand on each other, as high as their part of its time."""
    row = box.height / len(bars.names)
    # As fine as a sheet is drawn: columns that look alike are one.
    above = np.rint(np.cumsum(bars.shares, axis=2) * row * 100) / 100
    x = np.clip(box.x(bars.times), box.left, box.right)
    for k in range(len(bars.names)):
        bottom = box.top + (k + 1) * row
        # The highest first, so that where two meet no ground is seen between them.
        for c in range(len(fills) - 1, -1, -1):
            high, below = above[k, :, c], above[k, :, c - 1] if c else 0.0
            if (high > below).any():
                cut = np.concatenate([[0], np.flatnonzero(np.diff(high)) + 1, [high.size]])
                top = bottom - high[cut[:-1]]
                frame.sheet.band(x[cut], np.full(top.size, bottom), top, fills[c])


def _phases(frame: _Frame, material: Material) -> None:
    em, sheet = frame.em, frame.sheet
    curve, rows = material.curve, material.rows
    times = time_scale(curve.duration)
    kinds = ("constant", "linear", "quadratic")
    table = [
        ("Phase", f"Start ({times.symbol})", f"Length ({times.symbol})", "Kind", "Mean", "of P", "RMS")
    ] + [
        (
            str(k),
            digits(row.start_s / times.factor),
            digits((row.end_s - row.start_s) / times.factor),
            kinds[row.degree],
            digits(row.mean),
            f"{100 * row.efficiency:.0f} %",
            digits(row.rms, 3),
        )
        for k, row in enumerate(rows, 1)
    ]
    step = 1.75 * em
    room = int((sheet.height - frame.top - 2 * frame.pad) / step)
    left_out = max(0, len(table) - room)
    if left_out:
        left_out += 1  # the line that says so takes one
        table = table[: max(len(table) - left_out, 1)]
    widths = [max(text_width(line[c], em, bold=True) for line in table) + 1.5 * em for c in range(7)]
    # What is too wide is set smaller rather than cut.
    size = em * min(1.0, (sheet.width - 2 * frame.pad) / sum(widths))
    widths = [w * size / em for w in widths]
    y = frame.top + step
    for k, line in enumerate(table):
        if k % 2 == 0 and k:
            sheet.rects([[frame.pad, y - 0.72 * step, sum(widths), step]], Fill(frame.ink.grid, 0.5))
        x = frame.pad
        for c, cell in enumerate(line):
            x += widths[c]
            sheet.text(x - 0.75 * size, y, cell, size, frame.ink.text, "end", bold=k == 0)
        if k == 0:
            below = y + 0.28 * step
            sheet.lines([[frame.pad, below, frame.pad + sum(widths), below]], frame.outline())
        y += step
    if left_out:
        sheet.text(frame.pad, y, f"… and {left_out} more", em, frame.ink.muted)


def _comparison(frame: _Frame, material: Material) -> None:
    contrast = material.contrast
    assert contrast is not None
    alignment, placement = contrast.alignment, contrast.placement
    em, sheet, words = frame.em, frame.sheet, frame.words
    count = len(alignment.runs)
    strokes = _run_strokes(frame, alignment.reference, count)
    frame.legend([(None, strokes[k], words[f"run {k + 1}"]) for k in range(count)])
    factor = 100.0 if placement.share else 1.0
    low, high = (
        pick([envelope(c).range(c.start, c.start + c.duration)[k] for c in placement.curves])
        for k, pick in ((0, min), (1, max))
    )
    low, high = min(low, 0.0), max(high, *(c.capacity for c in placement.curves))
    high = 1.04 * (high if high > low else low + 1)
    others = [(k, d) for k, d in enumerate(placement.differences) if d is not None]
    most = max(float(np.abs(d.level).max()) for _, d in others) or 1.0
    strips = count * 1.3 * em + (count - 1) * 0.8 * em
    labels = [
        *frame.levels(low * factor, high * factor, sheet.height).labels,
        *frame.levels(-most * factor, most * factor, sheet.height).labels,
    ]
    whole = frame.room(labels, rail=strips + 0.4 * em)
    apart = 0.32 * whole.height if whole.height > 14 * em else 0.0  # else there is no room for differences
    gap = 0.9 * em if apart else 0.0
    box = replace(
        whole, height=whole.height - apart - gap, x0=placement.start, x1=placement.end, y0=low, y1=high
    )
    _paint_matches(frame, contrast, box, strips, strokes)
    boxes = [(box, list(enumerate(placement.curves)), "processors")]
    if apart:
        below = replace(box, top=whole.bottom - apart, height=apart, y0=-1.05 * most, y1=1.05 * most)
        boxes.append((below, others, "difference"))
    bottom = boxes[-1][0]
    across = _across(frame, bottom, placement.axis)
    for place, curves, title in boxes:
        ticks = frame.levels(place.y0 * factor, place.y1 * factor, place.height)
        ticks = Ticks([v / factor for v in ticks.positions], ticks.labels)
        frame.grid(place, across, ticks)
        for k, curve in curves:
            _paint_run(frame, curve, place, strokes[k])
        if title == "difference":
            sheet.lines([[place.left, place.y(0.0), place.right, place.y(0.0)]], frame.outline())
        frame.border(place)
        frame.vertical(place, ticks, words[title])


def _run_strokes(frame: _Frame, reference: int, count: int) -> list[Stroke]:
    """The reference is solid, the others in turn, whatever the style."""
    width = 1.1 * MM_PER_POINT * frame.look.lines
    return [
        Stroke(
            frame.ink.runs[k % len(frame.ink.runs)],
            width,
            () if k == reference else _RUN_DASHES[(k - (k > reference)) % len(_RUN_DASHES)],
        )
        for k in range(count)
    ]


def _across(frame: _Frame, box: Box, axis: str) -> Ticks:
    """The axis that all runs share."""
    if axis != "normalised":
        return frame.time_axis(box)
    ticks = scales.level_ticks(100 * box.x0, 100 * box.x1, max(box.width / (3.5 * frame.em), 1.5))
    ticks = Ticks([v / 100 for v in ticks.positions], ticks.labels)
    frame.horizontal(box, ticks, frame.words["time"])
    return ticks


def _paint_run(frame: _Frame, curve: StepCurve, box: Box, stroke: Stroke) -> None:
    """A curve over its own time, in columns with its extremes if it has too many steps."""
    count = int(min(max(box.width * _COLUMNS_PER_MM, 50), _ALL_COLUMNS))
    a, b = max(curve.start, box.x0), min(curve.start + curve.duration, box.x1)
    exact = curve.segments < count
    x = curve.edges * curve.unit if exact else np.linspace(a, b, count + 1)
    columns = envelope(curve).columns(x)
    mean, low, high = (box.y(np.nan_to_num(v)) for v in (columns.mean, columns.minimum, columns.maximum))
    if not exact:
        frame.sheet.band(box.x(x), low, high, Fill(stroke.colour, 0.18))
    frame.sheet.steps(box.x(x), mean, stroke)


def _paint_matches(frame: _Frame, contrast: Contrast, box: Box, strips: float, strokes: list[Stroke]) -> None:
    """A strip of phases for each run above the plot, and lines between those that belong together."""
    em, sheet, alignment = frame.em, frame.sheet, contrast.alignment
    tops = [box.top - strips - 0.2 * em + k * 2.1 * em for k in range(len(strokes))]
    thin = Stroke(frame.ink.muted, 0.5 * MM_PER_POINT)
    for k, (top, stroke) in enumerate(zip(tops, strokes, strict=True)):
        for phase, (a, b) in enumerate(contrast.placement.spans[k].tolist()):
            x0, x1 = float(box.x(a)), float(box.x(b))
            row = alignment.rows[alignment.rows[:, k] == phase][0]
            alone = int((row != NONE).sum()) == 1
            sheet.rects([[x0, top, x1 - x0, 1.3 * em]], Fill(stroke.colour, 0.05 if alone else 0.25))
            sheet.line([[x0, top], [x1, top], [x1, top + 1.3 * em], [x0, top + 1.3 * em], [x0, top]], thin)
            label = str(phase + 1)
            if text_width(label, 0.9 * em) + 0.3 * em < x1 - x0:
                sheet.text((x0 + x1) / 2, top + 0.98 * em, label, 0.9 * em, frame.ink.text, "middle")
    for k in range(1, len(strokes)):
        lines = []
        for upper, lower in alignment.rows[:, k - 1 : k + 1].tolist():
            if NONE not in (upper, lower):
                ends = zip(
                    contrast.placement.spans[k - 1][upper], contrast.placement.spans[k][lower], strict=True
                )
                lines += [[box.x(u), tops[k - 1] + 1.3 * em, box.x(v), tops[k]] for u, v in ends]
        if lines:
            sheet.lines(lines, thin)

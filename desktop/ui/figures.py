"""Figures for paper, report and projector, laid out in mm: what the window's plots show, for readers.

`draw` puts one figure of `desktop.core.labels.FIGURES`, or a chart, on a sheet; `file` gives it as a file.
A `Look` says how large, with what text size, in colour, in grey or with patterns (areas told apart by hatches
and lines by dashes as well), and which texts stand in place of the usual ones (`texts`).
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, TypeAlias, get_args
from uuid import UUID

import numpy as np
from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QMarginsF, QSizeF, QUuid
from PySide6.QtGui import QColor, QImage, QImageWriter, QPageSize, QPainter, QPdfWriter

from desktop.core.arrays import Floats
from desktop.core.density import ink as density_ink
from desktop.core.gantt import COLOURS as REGION_COLOURS
from desktop.core.gantt import NO_REGION, OTHER_REGION
from desktop.core.labels import ACTIVITIES, FIGURES
from desktop.core.phases import AS_SUGGESTED
from desktop.core.pieces import Breakpoints, pieces
from desktop.core.ticks import Ticks
from desktop.data.chart import Content, Highlight, with_words
from desktop.data.chart import words as chart_words
from desktop.data.material import Bars, Drawn, Mark, Material
from desktop.data.sweep_charts import epsilon_chart, epsilon_words
from desktop.ui import chart_sheet
from desktop.ui.chart_sheet import LINE, MIDDLE
from desktop.ui.drawing import (
    MM_PER_POINT,
    Fill,
    Hatch,
    Ink,
    QtSheet,
    Sheet,
    Stroke,
    SvgSheet,
    around,
    fitted,
    text_width,
)
from desktop.ui.pages import set_up
from desktop.ui.panels.table import phase_sheet
from desktop.ui.plots.legend import samples
from desktop.ui.plots.notes import COLOURS
from desktop.ui.plots.scales import words
from desktop.ui.theme import DARK, LIGHT, Theme, coloured
from desktop.workbench.levels import AT_FIRST, Levels, V, share
from desktop.workbench.time_plots import AxisData, Comparing, LaneData, PlotData, SeriesData, figure_plot

Style = Literal["colour", "grey", "patterns"]
#: The smallest sheet that holds every figure, mm.
SMALLEST = (40.0, 30.0)
#: Columns of a plot over time: of a millimetre, at least, at most.
_COLUMNS_PER_MM, _FEWEST_COLUMNS, _MOST_COLUMNS = 5, 50, 2400
#: Stands for the identity of a PDF while it is made.
_NO_ID = "9d2f0c5e-61b7-4a38-8e4d-7c1a5b903f26"
_OVER_TIME = ("curve", "stack", "residual", "timeline", "comparison")


Layer: TypeAlias = Literal["all", "below", "above"]


@dataclass(frozen=True)
class Look:
    """How a figure is drawn. `lines` multiplies the widths of lines; `span`: the time shown, seconds (None:
    all); `levels`: how processors are drawn; `how`: how compared runs are; `phase`: the chosen one;
    `activities`: those that are stacked (None: all); `words`: texts by their key in `texts`; `colours`: the
    set of `desktop.ui.theme`. Plots over time can be drawn in layers, so that the one `below` the fit is
    drawn once while the fit changes."""

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
    activities: frozenset[str] | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    how: Comparing = field(default_factory=Comparing)
    layer: Layer = "all"


_GREY = {"computing": "#8c8c8c", "overhead": "#c4c4c4", "io": "#4d4d4d", "idle": "#f0f0f0",
         "unmeasured": "#dadada"}  # fmt: skip
_GREY_RUNS = ("#000000", "#6e6e6e", "#3c3c3c", "#909090", "#1e1e1e", "#7f7f7f")
#: Dashes of compared runs, in multiples of the line's width; the reference is solid in every style.
_RUN_DASHES = ((6.0, 2.0), (2.0, 2.0), (9.0, 2.0, 2.0, 2.0), (1.0, 1.5), (4.0, 1.0, 1.0, 1.0))
_HATCH: dict[str, Hatch] = {"computing": "", "overhead": "/", "io": "x", "idle": ".", "unmeasured": "\\"}


def ink(look: Look) -> Ink:
    """The colours of a look; grey and patterns are for paper, white with black text in any theme."""
    theme = coloured(DARK if look.dark and look.style == "colour" else LIGHT, look.colours)
    areas = {name: Fill(getattr(theme, name)) for name in ACTIVITIES}
    regions = _region_fills(theme, look.style)
    if look.style == "grey":
        areas = {name: Fill(_GREY[name]) for name in ACTIVITIES}
        return Ink("#ffffff", "#000000", "#404040", "#606060", "#d8d8d8", "#5a5a5a", "#000000", "#404040",
                   "#000000", "#000000", areas, regions, True, _GREY_RUNS)  # fmt: skip
    if look.style == "patterns":
        areas = {name: Fill(getattr(theme, name), 1.0, _HATCH[name], "#30363d") for name in ACTIVITIES}
    strong = "#ffffff" if theme.dark else "#000000"
    return Ink(theme.background, strong, theme.muted, theme.border, theme.grid, theme.curve, theme.fit,
               theme.residual, theme.selection, strong, areas, regions, look.style == "patterns",
               theme.series)  # fmt: skip


def _region_fills(theme: Theme, style: Style) -> dict[int, Fill]:
    """Fills of regions; their colours are those of the window."""
    if style == "grey":
        greys = (round(60 + 150 * k / (REGION_COLOURS - 1)) for k in range(REGION_COLOURS))
        every = {k: Fill(f"#{grey:02x}{grey:02x}{grey:02x}") for k, grey in enumerate(greys)}
        return every | {NO_REGION: Fill("#f0f0f0"), OTHER_REGION: Fill("#202020")}
    numbers = (*range(REGION_COLOURS), NO_REGION, OTHER_REGION)
    every = {k: Fill(samples(theme)[f"shade {k}"].colour.name()) for k in numbers}
    if style == "patterns":
        hatches = enumerate(hatch for hatch in get_args(Hatch) for _ in range(2))
        every |= {k: replace(every[k], hatch=hatch, ink="#30363d") for k, hatch in hatches}
    return every


def texts(figure: str, material: Material) -> dict[str, str]:
    """The texts of a figure that may be replaced, by key."""
    if figure in _OVER_TIME:
        say = words()
        figure_plot(figure, material, say, _FEWEST_COLUMNS)
        return say.spoken
    common = {"title": f"{FIGURES[figure]}: {material.title}"}
    return chart_words(epsilon_content(material)) | common if figure == "epsilon" else common


def _title(figure: str, material: Material | Content, look: Look) -> str:
    if isinstance(material, Content):
        return with_words(material, look.words).title or figure
    return look.words.get("title", texts(figure, material)["title"])


# ------------------------------------------------------------------ files


def svg(
    figure: str, material: Material | Content, look: Look, *, inline: bool = False, prefix: str = ""
) -> str:
    """The figure as SVG; `inline`: for HTML, then with a `prefix` of its own."""
    sheet = SvgSheet(look.width, look.height, prefix)
    draw(sheet, figure, material, look)
    return sheet.svg(_title(figure, material, look), inline=inline)


def image(figure: str, material: Material | Content, look: Look, dpi: float) -> QImage:
    """The figure as an image."""
    scale = dpi / 25.4
    pixels = QImage(round(look.width * scale), round(look.height * scale), QImage.Format.Format_RGB32)
    pixels.fill(QColor(ink(look).ground))  # the sheet may end within a pixel
    pixels.setDotsPerMeterX(round(1000 * scale))
    pixels.setDotsPerMeterY(round(1000 * scale))
    with QPainter(pixels) as painter:
        draw(QtSheet(painter, look.width, look.height, scale), figure, material, look)
    return pixels


def file(figure: str, material: Material | Content, look: Look, kind: str, dpi: float = 300) -> bytes:
    """The figure as a file; `kind`: ``svg``, ``pdf`` (a page of its size) or ``png`` (with its size in mm).
    The same figure gives the same bytes."""
    if kind == "svg":
        return svg(figure, material, look).encode()
    if kind == "png":
        return png(image(figure, material, look, dpi))
    buffer = QBuffer()
    writer = pdf_writer(buffer, _title(figure, material, look), 1200)
    size = QSizeF(look.width, look.height)
    writer.setPageSize(QPageSize(size, QPageSize.Unit.Millimeter, "", QPageSize.SizeMatchPolicy.ExactMatch))
    writer.setPageMargins(QMarginsF(0, 0, 0, 0))
    with QPainter(writer) as painter:
        draw(QtSheet(painter, look.width, look.height, 1200 / 25.4), figure, material, look)
    return dated_pdf(bytes(buffer.data().data()))


def png(picture: QImage) -> bytes:
    """A picture as a PNG file."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    QImageWriter(buffer, QByteArray(b"png")).write(picture)
    return bytes(buffer.data().data())


def pdf_writer(buffer: QBuffer, title: str, resolution: int) -> QPdfWriter:
    """A writer of a PDF, for `dated_pdf`."""
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = set_up(QPdfWriter(buffer), resolution=resolution, title=title, creator="Phasewright")
    writer.setDocumentId(QUuid(_NO_ID))
    return writer


def dated_pdf(pdf: bytes, date: datetime | None = None) -> bytes:
    """A PDF with this date, or none, for the time of writing, and with an identity made of its content, so
    that equal contents give equal files. No byte moves, so that its table of offsets stays valid."""
    end = pdf.index(b"endstream")  # the end of its metadata
    dates = rb'/(?:Creation|Mod)Date \([^)]*\)|xmp:\w+Date="[^"]*"'

    def stamped(match: re.Match[bytes]) -> bytes:
        if date is None:
            return b" " * len(match[0])
        dated = re.sub(rb"D:\d{14}", date.strftime("D:%Y%m%d%H%M%S").encode(), match[0])
        iso = date.strftime("%Y-%m-%dT%H:%M:%S").encode()
        return re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", iso, dated)

    pdf = re.sub(dates, stamped, pdf[:end]) + pdf[end:]
    identity = str(UUID(hex=hashlib.md5(pdf, usedforsecurity=False).hexdigest()))
    for old, new in ((_NO_ID, identity), (_NO_ID.encode().hex(), identity.encode().hex())):
        pdf = pdf.replace(old.encode(), new.encode())
    return pdf


# ------------------------------------------------------------------ drawing


def draw(sheet: Sheet, figure: str, material: Material | Content, look: Look) -> None:
    """Draw a figure, or the chart given as `material`, over the whole sheet, ground included.

    Raises
    ------
    ValueError : there is nothing to draw it from, or the sheet is smaller than `SMALLEST`.
    """
    if isinstance(material, Material) and figure not in material.figures():
        raise ValueError(f"there is no figure {figure!r} of this run")
    if look.width < SMALLEST[0] or look.height < SMALLEST[1]:
        raise ValueError(f"a figure needs {SMALLEST[0]:g} x {SMALLEST[1]:g} mm or more")
    if isinstance(material, Content):
        content = with_words(material, look.words)
        _Frame(sheet, look, {"title": content.title}).chart(content)
    elif figure in _OVER_TIME:
        plot = describe(figure, material, look)
        _paint_plot(_Frame(sheet, look, {"title": plot.title}), plot)
    else:
        frame = _Frame(sheet, look, texts(figure, material) | dict(look.words))
        if figure == "phases":
            _phases(frame, material)
        else:
            words = {key: text for key, text in frame.words.items() if key != "title"}
            frame.chart(with_words(epsilon_content(material), words))


def describe(figure: str, material: Material, look: Look) -> PlotData:
    """The description of a figure over time."""
    columns = int(min(max(look.width * _COLUMNS_PER_MM, _FEWEST_COLUMNS), _MOST_COLUMNS))
    return figure_plot(
        figure, material, words(look.words), columns, span=look.span, levels=look.levels, phase=look.phase,
        how=look.how, activities=look.activities,
    )  # fmt: skip


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

    def x(self, value: V) -> V:
        """Places on the sheet of values of the horizontal axis."""
        return self.left + (value - self.x0) / (self.x1 - self.x0) * self.width

    def y(self, value: V) -> V:
        """Places on the sheet of values of the vertical axis, which may be logarithmic."""
        return self.bottom - share(value, self.y0, self.y1, self.log) * self.height

    def over(self, x: AxisData, y: AxisData) -> Box:
        """The same rectangle with these axes."""
        return replace(self, x0=x.low, x1=x.high, y0=y.low, y1=y.high, log=y.log)

    def points(self, x: Floats, y: Floats) -> Floats:
        """Places on the sheet, (n, 2), of values of both axes."""
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
        """A line of a width in points; dashed only in styles in which lines differ by dashes."""
        width = points * MM_PER_POINT * self.look.lines
        return Stroke(colour, width, dash if self.ink.dashed else ())

    def outline(self) -> Stroke:
        return Stroke(self.ink.border, 0.5 * MM_PER_POINT)

    def legend(self, entries: list[tuple[Fill | None, Stroke | None, str]]) -> None:
        """Swatches and names under the title, in as many lines as they need."""
        em, sheet, swatch = self.em, self.sheet, 2.2 * self.em
        x, visible = self.pad, self.look.layer != "above"
        self.top += em
        for fill, stroke, name in entries:
            name = fitted(name, em, sheet.width - 2 * self.pad - swatch - em)
            wide = swatch + 0.5 * em + text_width(name, em) + 1.4 * em
            if x + wide - 1.4 * em > sheet.width - self.pad and x > self.pad:
                x = self.pad
                self.top += 1.45 * em
            if fill is not None and visible:
                sheet.rects([[x, self.top - 0.75 * em, swatch, 0.85 * em]], fill)
            if stroke is not None and visible:
                middle = self.top - 0.33 * em
                sheet.lines([[x, middle, x + swatch, middle]], stroke)
            elif fill is not None and visible:
                sheet.line(around(x, self.top - 0.75 * em, swatch, 0.85 * em), self.outline())
            if visible:
                sheet.text(x + swatch + 0.5 * em, self.top, name, em, self.ink.text)
            x += wide
        self.top += 0.6 * em

    def room(self, labels: list[str], *, rail: float = 0.0) -> Box:
        """The box for a plot whose vertical axis has these labels, below a rail of a height."""
        em = self.em
        widest = max((text_width(label, em) for label in labels), default=0.0)
        left = self.pad + 1.5 * em + widest + 0.9 * em
        bottom = self.sheet.height - self.pad - 2.9 * em
        top = min(self.top + 0.5 * em + rail, bottom - 1.0)
        return Box(left, top, self.sheet.width - self.pad - 1.4 * em - left, bottom - top)

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
            sheet.text(box.left - 0.6 * em, y + MIDDLE * em, label, em, self.ink.muted, "end")
        # A title longer than the axis may reach over its ends, as far as the sheet does.
        title = fitted(title, em, sheet.height - 2 * self.pad)
        half = text_width(title, em) / 2
        middle = min(max(box.top + box.height / 2, self.pad + half), sheet.height - self.pad - half)
        sheet.text(self.pad + 0.85 * em, middle, title, em, self.ink.text, "middle", upright=True)

    def grid(self, box: Box, x: Ticks, y: Ticks) -> None:
        stroke = Stroke(self.ink.grid, 0.4 * MM_PER_POINT)
        self.sheet.lines([[box.x(v), box.top, box.x(v), box.bottom] for v in x.positions], stroke)
        self.sheet.lines([[box.left, box.y(v), box.right, box.y(v)] for v in y.positions], stroke)

    def chart(self, content: Content) -> None:
        """Draw a chart in all the room that is left."""
        chart_sheet.paint(self.sheet, content, self.ink, self.em, self.top, self.look.lines)


# ------------------------------------------------------------------ plots over time

#: Heights in em: the phases of a single run; those of one of several runs, and from one to the next; a row of
#: notes; the gap above a lane below another one, without and with a heading.
_RAIL, _STRIP, _APART, _NOTE_ROW, _GAP, _HEADING = 1.5, 1.3, 2.1, 1.6, 0.9, 2.3


def _paint_plot(frame: _Frame, plot: PlotData) -> None:
    """Paint a description, from back to front."""
    em, look = frame.em, frame.look
    marks = _marks(frame, plot)
    _paint_legend(frame, plot, marks)
    labels = [label for lane in plot.lanes for label in _labels(frame, plot, lane, look.height - frame.top)]
    strips = _STRIP + 0.2 + (len(plot.strips) - 1) * _APART if plot.links or len(plot.strips) > 1 else _RAIL
    rail = strips * em if plot.strips else 0.0
    area = replace(frame.room(labels, rail=rail), x0=plot.axis.low, x1=plot.axis.high)
    limit = max(1, int(0.35 * area.height / (_NOTE_ROW * em))) if area.height > 2 * em else 0
    notes = _place_notes(frame, plot.notes, area, limit) if limit else []
    rows = max((note.row for note in notes), default=-1) + 1
    area = replace(frame.room(labels, rail=rail + _NOTE_ROW * rows * em), x0=area.x0, x1=area.x1)
    boxes = _boxes(frame, plot, area)
    across = plot.axis.across(area.width, lambda text: text_width(text, em))
    for k, (lane, box) in enumerate(boxes):
        if look.layer != "above":
            _paint_values(frame, plot, lane, box, marks)
            _paint_axes(frame, plot, lane, box, across, headed=k > 0)
        if look.layer != "below":
            _paint_over(frame, plot, lane, box, marks)
    if look.layer != "above":
        frame.horizontal(boxes[-1][1], across, plot.axis.words)
        if across.offset:
            frame.sheet.text(area.left, area.bottom + 2.75 * em, across.offset, em, frame.ink.muted)
    if look.layer != "below":
        _paint_strips(frame, plot, boxes[0][1], rail, marks)
        _paint_notes(frame, plot, notes, boxes, rail, rows)


def _boxes(frame: _Frame, plot: PlotData, area: Box) -> list[tuple[LaneData, Box]]:
    """The lanes with their rectangles, one below the other; the last one only if there is room."""
    lanes, em = list(plot.lanes), frame.em
    if len(lanes) > 1 and area.height < 14 * em:
        lanes = [lane for lane in lanes if not lane.zero] or lanes[:1]
    above = [0.0, *(em * (_HEADING if lane.note else _GAP) for lane in lanes[1:])]
    room, parts = area.height - sum(above), sum(lane.part for lane in lanes)
    boxes, top = [], area.top
    for lane, gap in zip(lanes, above, strict=True):
        height = max(room * lane.part / parts, 1.0)
        boxes.append((lane, replace(area, top=top + gap, height=height).over(plot.axis, lane.axis)))
        top += gap + height
    return boxes


def _labels(frame: _Frame, plot: PlotData, lane: LaneData, height: float) -> list[str]:
    """The labels on the left of a lane of a height."""
    if plot.rows:
        return [fitted(name, frame.em, 0.25 * frame.sheet.width) for name in plot.rows]
    return lane.axis.upright(height, LINE * frame.em).labels


@dataclass(frozen=True)
class _Mark:
    """How one ink of a description is drawn."""

    fill: Fill | None = None
    stroke: Stroke | None = None


def _marks(frame: _Frame, plot: PlotData) -> dict[str, _Mark]:
    """The marks by their ink in the description."""
    ink, thin = frame.ink, Stroke(frame.ink.text, 0.4 * MM_PER_POINT)
    marks = {name: _Mark(fill) for name, fill in ink.areas.items()}
    marks |= {f"shade {k}": _Mark(fill) for k, fill in ink.regions.items()}
    if any(series.look == "filled" for lane in plot.lanes for series in lane.series):
        # Wider lines are for the fit: a curve that jumps about would fill its area with them.
        line = frame.stroke(ink.curve, 0.8 / math.sqrt(frame.look.lines))
        marks["computing"] = _Mark(ink.areas["computing"], line)
    marks |= {
        "extremes": _Mark(Fill(ink.curve, 0.3)),
        "fit": _Mark(None, frame.stroke(ink.fit, 2.0)),
        "break": _Mark(Fill(ink.fit, 0.15), frame.stroke(ink.text, 0.8, (4.0, 2.0))),
        "residual": _Mark(None, frame.stroke(ink.residual, 0.9)),
        "residual extremes": _Mark(Fill(ink.residual, 0.3)),
        "rms": _Mark(None, frame.stroke(ink.text, 0.9, (5.0, 2.5))),
        "predicted": _Mark(None, frame.stroke(ink.mark, 1.1, (1.5, 1.0))),
        "firm": _Mark(None, Stroke(ink.text, 1.2 * MM_PER_POINT)),
        "message": _Mark(None, thin),
        "density": _Mark(None, thin),
        "collective": _Mark(None, Stroke(ink.mark, 0.8 * MM_PER_POINT)),
        "path": _Mark(None, frame.stroke(ink.fit, 1.2)),
    }
    if plot.figure == "comparison":
        marks |= {f"run {k}": _Mark(None, line) for k, line in enumerate(_run_strokes(frame, plot))}
    return marks


def _run_strokes(frame: _Frame, plot: PlotData) -> list[Stroke]:
    """The lines of compared runs: the reference solid, the others in turn, in every style."""
    width, runs = 1.1 * MM_PER_POINT * frame.look.lines, frame.ink.runs
    places = (None if k == plot.reference else k - (k > plot.reference) for k in range(len(plot.strips)))
    dashes = [() if place is None else _RUN_DASHES[place % len(_RUN_DASHES)] for place in places]
    return [Stroke(runs[k % len(runs)], width, dash) for k, dash in enumerate(dashes)]


def _extremes(frame: _Frame, ink: str, marks: Mapping[str, _Mark]) -> Fill | None:
    """The fill between the extremes of values drawn as `ink`."""
    mark = marks.get({"computing": "extremes"}.get(ink, f"{ink} extremes"))
    if mark is not None:
        return mark.fill
    line = marks[ink].stroke
    return None if line is None else Fill(line.colour, 0.18)


def _paint_legend(frame: _Frame, plot: PlotData, marks: Mapping[str, _Mark]) -> None:
    entries = [(marks[e.ink].fill, marks[e.ink].stroke, e.words) for e in plot.legend if e.shown]
    frame.legend([*entries, *((None, None, text) for text in (*plot.remarks, plot.doubt) if text)])


def _paint_values(
    frame: _Frame, plot: PlotData, lane: LaneData, box: Box, marks: Mapping[str, _Mark]
) -> None:
    with frame.sheet.clipped(box.left, box.top, box.width, box.height):
        below: Floats | None = None
        for series in lane.series:
            if series.look == "stacked":
                base = np.zeros(series.x.size - 1) if below is None else below
                below = base + np.nan_to_num(series.columns.mean)
                frame.sheet.band(box.x(series.x), box.y(base), box.y(below), _filled(marks[series.ink]))
                if (below > base).any():
                    outline = Stroke(frame.ink.border, 0.3 * MM_PER_POINT)
                    frame.sheet.steps(box.x(series.x), box.y(below), outline)
            else:
                _paint_series(frame, series, box, marks)
        if plot.bars is not None:
            fills = [_filled(marks[e.ink]) for e in plot.legend[: len(plot.bars.classes)]]
            _paint_bars(frame, plot.bars, box, fills)


def _filled(mark: _Mark) -> Fill:
    return mark.fill or Fill("#ffffff", 0.0)


def _paint_series(frame: _Frame, series: SeriesData, box: Box, marks: Mapping[str, _Mark]) -> None:
    """A line with its extremes, and its area if it has one, wherever there are values."""
    c, mark = series.columns, marks[series.ink]
    ends = np.flatnonzero(np.diff(series.seen_columns.astype(np.int8), prepend=0, append=0))
    mean, low, high = (box.y(np.nan_to_num(v)) for v in (c.mean, c.minimum, c.maximum))
    places, band = box.x(series.x), _extremes(frame, series.ink, marks)
    for a, b in ends.reshape(-1, 2).tolist():
        x = places[a : b + 1]
        if series.look == "filled" and mark.fill is not None:
            frame.sheet.band(x, np.full(b - a, box.bottom), mean[a:b], mark.fill)
        if band is not None and not series.exact:
            frame.sheet.band(x, low[a:b], high[a:b], band)
        if mark.stroke is not None:
            frame.sheet.steps(x, mean[a:b], mark.stroke)


def _paint_axes(
    frame: _Frame, plot: PlotData, lane: LaneData, box: Box, across: Ticks, *, headed: bool
) -> None:
    em, sheet = frame.em, frame.sheet
    if plot.rows:
        _paint_rows(frame, plot, box)
        frame.vertical(box, Ticks([], []), lane.axis.words)
        return
    ticks = lane.axis.upright(box.height, LINE * em)
    frame.grid(box, across, ticks)
    frame.vertical(box, ticks, lane.axis.words)
    if headed and lane.note:
        text = fitted(lane.note, em, sheet.width - frame.pad - box.left)
        sheet.text(box.left, box.top - 0.6 * em, text, em, frame.ink.text)


def _paint_over(frame: _Frame, plot: PlotData, lane: LaneData, box: Box, marks: Mapping[str, _Mark]) -> None:
    """Paint over the values of a lane: breakpoints, fit, ± r.m.s., zero, times that are not analysed."""
    sheet = frame.sheet
    with sheet.clipped(box.left, box.top, box.width, box.height):
        if plot.bars is not None and plot.bars.messages is not None:
            _paint_messages(frame, plot.bars, plot.bars.messages, box)
        if plot.bars is not None and plot.bars.path is not None:
            t0, r0, t1, r1 = plot.bars.path.T
            path = np.stack([box.x(t0), box.y(r0), box.x(t1), box.y(r1)], axis=1)
            sheet.lines(path, frame.stroke(frame.ink.ground, 2.4))
            sheet.lines(path, frame.stroke(frame.ink.fit, 1.2))
        if plot.fit is not None and plot.phase is not None and plot.phase < plot.fit.n:
            begin, end = np.clip(plot.fit.breaks[plot.phase : plot.phase + 2], box.x0, box.x1)
            a, b = float(box.x(begin)), float(box.x(end))
            sheet.rects([[a, box.top, b - a, box.height]] if a < b else [], Fill(frame.ink.fit, 0.12))
        if not lane.zero:
            _paint_boundaries(frame, plot.boundaries, box)
        if plot.breakpoints is not None:
            _paint_breakpoints(frame, plot.breakpoints, box, marks["break"], ranges=plot.ranges)
        if lane.moved.size and (line := marks["predicted"].stroke) is not None:
            places = box.x(lane.moved[(lane.moved > box.x0) & (lane.moved < box.x1)])
            sheet.lines([[x, box.top, x, box.bottom] for x in places.tolist()], line)
        if lane.fitted and plot.fit is not None:
            _paint_fit(frame, plot, box)
        if lane is plot.lanes[0] and not (plot.rows or lane.zero) and (line := marks["firm"].stroke):
            y, end = box.bottom - 0.7 * frame.em, 0.3 * frame.em
            for firm in plot.firm:
                a, b = (float(box.x(min(max(t, box.x0), box.x1))) for t in (firm.low_s, firm.high_s))
                sheet.lines([[a, y, b, y], *([x, y - end, x, y + end] for x in (a, b))], line)
        if lane.zero:
            sheet.lines([[box.left, box.y(0.0), box.right, box.y(0.0)]], frame.outline())
        if lane.spread is not None:
            left, right, level = box.x(lane.spread.a), box.x(lane.spread.b), lane.spread.level
            lines = [np.stack([left, box.y(v), right, box.y(v)], axis=1) for v in (-level, level)]
            sheet.lines(np.concatenate(lines), marks["rms"].stroke or frame.outline())
        if plot.limit is not None:
            ends = ((box.x0, plot.limit[0]), (plot.limit[1], box.x1))
            outside = [(float(box.x(a)), float(box.x(b))) for a, b in ends if a < b]
            rects = [[a, box.top, b - a, box.height] for a, b in outside]
            sheet.rects(rects, Fill(frame.ink.ground, 0.6))
    sheet.line(around(box.left, box.top, box.width, box.height), frame.outline())


def _paint_fit(frame: _Frame, plot: PlotData, box: Box) -> None:
    assert plot.fit is not None
    sheet = frame.sheet
    parts = pieces(plot.fit, box.x0, box.x1, 0.5 * (box.x1 - box.x0) / box.width if box.log else None)
    places = [box.points(t, v).tolist() for t, v in (
        (parts.a, parts.start), ((parts.a + parts.b) / 2, parts.middle), (parts.b, parts.end)
    )]  # fmt: skip
    bent = (plot.fit.degree[parts.phase] >= 2) & (not box.log)
    wide = np.where(parts.phase == plot.phase, 3.6, 2.0)
    # First wider and in the colour of the ground, so that the fit is seen on a curve as dark as itself.
    for colour, extra in ((frame.ink.ground, 1.6), (frame.ink.fit, 0.0)):
        for start, middle, end, curved, width in zip(*places, bent, wide.tolist(), strict=True):
            stroke = frame.stroke(colour, width + extra)
            if extra:
                stroke = replace(stroke, dash=())
            if curved:
                sheet.bend(start, middle, end, stroke)
            else:
                sheet.line([start, end], stroke)


def _paint_boundaries(frame: _Frame, times: Floats, box: Box) -> None:
    """Boundaries of iterations, the fainter the closer they stand."""
    wide = 0.8 * MM_PER_POINT
    faint = Fill(frame.ink.fit, min(0.5, 0.25 * box.width / (wide * max(times.size, 1))))
    lefts = (box.x(times) - wide / 2).tolist()
    frame.sheet.rects([[left, box.top, wide, box.height] for left in lefts], faint)


def _paint_breakpoints(frame: _Frame, points: Breakpoints, box: Box, mark: _Mark, *, ranges: bool) -> None:
    low, high = (box.x(np.clip(v, box.x0, box.x1)) for v in (points.low, points.high))
    if ranges and mark.fill is not None and (wide := high > low).any():
        top, height = np.full(low.size, box.top), np.full(low.size, box.height)
        frame.sheet.rects(np.stack([low, top, high - low, height], axis=1)[wide], mark.fill)
    inside = points.time[(points.time > box.x0) & (points.time < box.x1)]
    if mark.stroke is not None:
        frame.sheet.lines([[x, box.top, x, box.bottom] for x in box.x(inside).tolist()], mark.stroke)


def _paint_strips(frame: _Frame, plot: PlotData, box: Box, rail: float, marks: Mapping[str, _Mark]) -> None:
    """The phases of each run with their numbers above the lanes, and lines between those that match."""
    sheet, em, ink = frame.sheet, frame.em, frame.ink
    several = bool(plot.links) or len(plot.strips) > 1
    high, thin = (_STRIP if several else _RAIL) * em, Stroke(ink.muted, 0.5 * MM_PER_POINT)
    tops = [box.top - rail + k * _APART * em for k in range(len(plot.strips))]
    size = (0.9 if several else 1.0) * em
    for strip, top in zip(plot.strips, tops, strict=True):
        for k, a, b in strip.seen(plot.axis):
            x0, x1, marked = box.left + a * box.width, box.left + b * box.width, k == strip.marked
            colour = ink.grid if not strip.ink else (marks[strip.ink].stroke or thin).colour
            if marked:
                sheet.rects([[x0, top, x1 - x0, high]], Fill(ink.fit))
            elif several:
                alone = strip.alone is not None and bool(strip.alone[k])
                sheet.rects([[x0, top, x1 - x0, high]], Fill(colour, 0.05 if alone else 0.25))
            elif k % 2 == 0:
                sheet.rects([[x0, top, x1 - x0, high]], Fill(colour))
            if several:
                sheet.line(around(x0, top, x1 - x0, high), thin)
        labels = strip.labelled(plot.axis, box.width, em, lambda text: text_width(text, size, bold=True))
        for k, a, b, label in labels:
            x, y, marked = box.left + (a + b) / 2, top + high / 2 + MIDDLE * size, k == strip.marked
            shade = ink.ground if marked else ink.text
            sheet.text(x, y, label, size, shade, "middle", bold=marked)
        if not several:
            sheet.line(around(box.left, top, box.width, high), frame.outline())
    if plot.breakpoints is not None and plot.strips:
        locked = plot.breakpoints.time[plot.breakpoints.locked]
        for t in locked[(locked >= box.x0) & (locked <= box.x1)].tolist():
            _paint_padlock(frame, float(box.x(t)), box.top - 0.15 * em)
    for k in range(len(plot.strips) - 1):
        ends = [
            (x, y) for link in plot.links if link.upper == k for x, y in ((link.a, link.c), (link.b, link.d))
        ]
        inside = [(a, c) for a, c in ends if box.x0 <= a <= box.x1 and box.x0 <= c <= box.x1]
        sheet.lines([[box.x(a), tops[k] + high, box.x(c), tops[k + 1]] for a, c in inside], thin)


def _paint_padlock(frame: _Frame, x: float, bottom: float) -> None:
    size, sheet = 0.7 * frame.em, frame.sheet
    ring = [[x - 0.3 * size, bottom - 0.6 * size], [x - 0.3 * size, bottom - 1.1 * size]]
    ring += [[2 * x - a, b] for a, b in reversed(ring)]
    sheet.line(ring, Stroke(frame.ink.text, 0.15 * size))
    sheet.rects([[x - size / 2, bottom - 0.65 * size, size, 0.65 * size]], Fill(frame.ink.text))


@dataclass(frozen=True)
class _Note:
    """The text of an annotation with its row above the plot, and its left edge, mm."""

    mark: Mark
    row: int
    left: float
    text: str


def _place_notes(frame: _Frame, marks: Sequence[Mark], box: Box, limit: int) -> list[_Note]:
    """Place texts of annotations in at most `limit` rows above the plot, shortened if necessary. Those
    without room are counted in the last row."""
    em = frame.em
    for part in (0.6, 0.35, 0.2, 0.1):
        ends: list[float] = []  # where the text of each row ends
        placed: list[_Note] = []
        for mark in marks:
            text = fitted(mark.located_text, em, part * box.width)
            wide = text_width(text, em) + 1.2 * em
            left = max(min(float(box.x(max(mark.start_s, box.x0))), box.right - wide), box.left)
            row = next((k for k, end in enumerate(ends) if end <= left), len(ends))
            if row < limit:
                ends[row : row + 1] = [left + wide]
                placed.append(_Note(mark, row, left, text))
        if len(placed) == len(marks):
            return placed
    missing, last = len(marks) - len(placed), max(len(ends) - 1, 0)
    wide = text_width("… and 999 more", em)
    fitting = [note for note in placed if note.row < last or note.left + text_width(note.text, em) + em
            < box.right - wide]  # fmt: skip
    missing += len(placed) - len(fitting)
    return [*fitting, _Note(Mark(math.nan, ""), last, box.right - wide, f"… and {missing} more")]


def _paint_notes(
    frame: _Frame,
    plot: PlotData,
    notes: list[_Note],
    boxes: list[tuple[LaneData, Box]],
    rail: float,
    rows: int,
) -> None:  # fmt: skip
    """Annotations: a line or a band in the lanes, its text above the phases."""
    em, sheet, box = frame.em, frame.sheet, boxes[0][1]
    top = box.top - rail - rows * _NOTE_ROW * em  # of the first row
    row_of = {id(note.mark): note.row for note in notes}
    for mark in plot.notes:
        until = mark.start_s if mark.end_s is None else mark.end_s
        x0, x1 = (float(box.x(min(max(t, box.x0), box.x1))) for t in (mark.start_s, until))
        stroke = frame.stroke(_note_colour(frame, mark), 1.0, (1.0, 1.5))
        for _, lane in boxes:
            if x1 > x0:
                tint = Fill(_note_colour(frame, mark), 0.15)
                sheet.rects([[x0, lane.top, x1 - x0, lane.height]], tint)
                sheet.lines([[x1, lane.top, x1, lane.bottom]], stroke)
        high = top + (row_of[id(mark)] + 0.15) * _NOTE_ROW * em if id(mark) in row_of else box.top
        sheet.lines([[x0, high, x0, boxes[-1][1].bottom]], stroke)
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


def _paint_rows(frame: _Frame, plot: PlotData, box: Box) -> None:
    """Lines between the rows of a timeline, and the names of as many rows as have room."""
    em, row = frame.em, box.height / len(plot.rows)
    if row > 0.8:
        between = (box.top + k * row for k in range(1, len(plot.rows)))
        rules = [[box.left, y, box.right, y] for y in between]
        frame.sheet.lines(rules, Stroke(frame.ink.ground, 0.25))
    for k in range(0, len(plot.rows), max(1, math.ceil(1.25 * em / row))):
        name = fitted(plot.rows[k], em, 0.25 * frame.sheet.width)
        y = box.top + (k + 0.5) * row + MIDDLE * em
        frame.sheet.text(box.left - 0.6 * em, y, name, em, frame.ink.muted, "end")


def _paint_messages(frame: _Frame, bars: Bars, drawn: Drawn, box: Box) -> None:
    """Lines from send to receive, or their density as ink, as in the window."""
    if drawn.density is not None:
        x0, x1 = (float(box.x(t)) for t in (bars.times[0], bars.times[-1]))
        frame.sheet.shade(density_ink(drawn.density), frame.ink.text, (x0, box.top, x1 - x0, box.height))
    elif len(drawn.lines):
        sent, above, received, below = drawn.lines.T
        ends = np.stack([box.x(sent), box.y(above), box.x(received), box.y(below)], axis=1)
        frame.sheet.lines(ends, Stroke(frame.ink.text, 0.4 * MM_PER_POINT))
    time, top = drawn.collectives.T
    high = min(0.35 * frame.em, box.height / len(bars.names))
    begins = np.stack([box.x(time), box.y(top), box.x(time), box.y(top) + high], axis=1)
    frame.sheet.lines(begins, Stroke(frame.ink.mark, 0.8 * MM_PER_POINT))


def _paint_bars(frame: _Frame, bars: Bars, box: Box, fills: list[Fill]) -> None:
    """Stack the classes in each column of a row, each as high as its part of the time."""
    row = box.height / len(bars.names)
    # In hundredths of mm, so that columns that look alike are one.
    above = np.rint(np.cumsum(bars.shares, axis=2) * row * 100) / 100
    x = np.clip(box.x(bars.times), box.left, box.right)
    for k in range(len(bars.names)):
        bottom = box.top + (k + 1) * row
        # The highest first, so that no ground is seen where two meet.
        for c in range(len(fills) - 1, -1, -1):
            high, below = above[k, :, c], above[k, :, c - 1] if c else 0.0
            if (high > below).any():
                cut = np.concatenate([[0], np.flatnonzero(np.diff(high)) + 1, [high.size]])
                top = bottom - high[cut[:-1]]
                frame.sheet.band(x[cut], np.full(top.size, bottom), top, fills[c])


# ------------------------------------------------------------------ other figures


def epsilon_content(material: Material) -> Content:
    """The error of every n, as the window shows it."""
    assert material.sweep is not None
    first, errors, fit = int(material.sweep.n[0]), material.sweep.epsilon, material.fit
    beyond = None if fit.requested in material.sweep.n.tolist() else (fit.requested, fit.epsilon / 1.2)
    apart = material.by_hand is not None and not beyond
    how = fit.note if fit.note == AS_SUGGESTED else "set by hand"
    words = epsilon_words(errors, first, fit.requested, fit.epsilon, set_=how if apart else "")
    mark = Highlight(x=float(fit.requested), y=fit.epsilon, label=words)
    suggested = material.suggestion.n if material.suggestion else None
    unit = material.curve.quantity.of_error
    return epsilon_chart(errors, first, fit.model, suggested, beyond, mark, unit=unit)


def _phases(frame: _Frame, material: Material) -> None:
    em, sheet = frame.em, frame.sheet
    table = phase_sheet(material.rows, material.fit, material.curve.quantity)
    step = 1.75 * em
    room = int((sheet.height - frame.top - 2 * frame.pad) / step)
    left_out = max(0, len(table) - room)
    if left_out:
        left_out += 1  # the line that says so takes one
        table = table[: max(len(table) - left_out, 1)]
    columns = zip(*table, strict=True)
    widths = [max(text_width(cell, em, bold=True) for cell in column) + 1.5 * em for column in columns]
    # A table that is too wide is set smaller.
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

"""The window's charts: the items of pyqtgraph that show a `desktop.data.chart.Content`, with names on hover
and a click that selects.

For results (effects, residuals, run times), up to some hundred thousand points. Scripts may add items to
`Chart.plot`, in the values of its axes (log10 of them on a logarithmic axis); they stay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QEvent, QLineF, QPoint, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QColor,
    QContextMenuEvent,
    QFontMetricsF,
    QHelpEvent,
    QImage,
    QKeyEvent,
    QLinearGradient,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QPolygonF,
    QTransform,
)
from PySide6.QtWidgets import QGraphicsItem, QToolTip

from desktop.core.units import asked_unit
from desktop.data import chart
from desktop.data.chart import MANY, AxisChoice, Content, Layout, Mark, Series, Way, Word
from desktop.printing import printable
from desktop.ui.guard import guarded, in_ems
from desktop.ui.plots import plot_menu, scales
from desktop.ui.plots.raster import mix
from desktop.ui.plots.scales import LaneBox
from desktop.ui.plots.scene import (
    Draw,
    DrawnAxis,
    PixelItem,
    PlotView,
    QuietBox,
    lane_plot,
    place_lane,
    saved,
)
from desktop.ui.theme import SERIES, Theme, faded, paint_focus, paint_note

Floats = chart.Floats


def _safe(kind: Any) -> Any:
    """An item of pyqtgraph from which no error leaves."""
    ways = {"paint": guarded(kind.paint), "boundingRect": guarded(otherwise=QRectF)(kind.boundingRect)}
    return type(kind.__name__, (kind,), ways)


_Curve, _Scatter, _Bars = _safe(pg.PlotCurveItem), _safe(pg.ScatterPlotItem), _safe(pg.BarGraphItem)
_Errors, _Between, _Line = _safe(pg.ErrorBarItem), _safe(pg.FillBetweenItem), _safe(pg.InfiniteLine)
_Image = _safe(pg.ImageItem)
#: How far marks reach over the edge of the values, logical pixels.
_OVER = 6
#: Side of a dot where marks are many, logical pixels; opacity of what is left out.
_DOT, _FAINT = 2, 0.27
_CENTRE = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextDontClip
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextDontClip


class _Box(QuietBox):
    """Whose marks on the edge are whole."""

    @guarded(otherwise=QPainterPath)
    def shape(self) -> QPainterPath:
        path = QPainterPath()
        path.addRect(QRectF(self.rect()).adjusted(-_OVER, -_OVER, _OVER, _OVER))
        return path


class Chart(PlotView):
    """Draws a `Content`; emits the key of a mark that is clicked, with whether Ctrl was held, and the row and
    column of a cell. `help_at`: its place in the handbook, if the panel around it does not say it."""

    clicked = Signal(int, bool)
    cellClicked = Signal(int, int)

    def __init__(self, name: str, help_at: str = "") -> None:
        self._content = Content(chart.Axis(""), chart.Axis(""))
        self._choices: dict[Way, AxisChoice] = {}
        self._grid = True
        self._laid: Layout | None = None
        self._built: Any = None
        self._mine: list[QGraphicsItem] = []
        self._map: pg.ImageItem | None = None  # of cells
        self._within = False  # no more is painted than the map
        self._whole_view: list[PixelItem] = []  # grid, words, what is chosen, what is above all
        self._cloud: QImage | None = None  # where there are too many marks for items
        self._hover: tuple[int, int] | None = None
        self._dpr = 1.0
        self._still: QImage | None = None  # all but what is chosen along an axis
        super().__init__()
        if help_at:
            self.HELP = help_at
        self.setAccessibleName(name)
        self.setAccessibleDescription("")

    @cached_property
    def plot(self) -> pg.PlotItem:
        """Axes and the box of the marks; made with the first content, as that takes some milliseconds."""
        # Titles and labels may be longer than their axes.
        left = DrawnAxis("left", self._where_laid(self._paint_left), 1000)
        bottom = DrawnAxis("bottom", self._where_laid(self._paint_bottom), 1000)
        plot = lane_plot(left, bottom=bottom, box=_Box())
        self.scene().addItem(plot)
        PixelItem(self._paint_cloud, plot.vb, 5.0)
        # In the scene, as the box has a clip, in which all takes ten times as long.
        draws = {-50: self._paint_grid, 20: self._paint_words, 30: self._paint_chosen, 50: self._paint_over}
        self._whole_view = [PixelItem(self._where_laid(draw), z=z) for z, draw in draws.items()]
        for item in self._whole_view:
            self.scene().addItem(item)
        return plot

    def _where_laid(self, draw: Callable[[QPainter, Layout], None]) -> Draw:
        """Draws while there is anything to be seen."""

        def painted(painter: QPainter, _rect: QRectF) -> None:
            if self._laid is not None and self._laid.content.shown:
                draw(painter, self._laid)

        return painted

    def set_content(self, content: Content, description: str = "") -> None:
        """Show another chart; the description says the same in words, for those who cannot see it."""
        before, self._content = self._content, content
        if description or content.empty != before.empty:
            self.setAccessibleDescription(description or content.empty)
        if self._map is not None and self._built is not None and content.placed_like(before):
            laid = self._laid = replace(self.laid, content=self.content)
            self._map.setImage(self._colours(laid), autoLevels=False)
            self.dirty(QRectF(laid.left, laid.top, laid.width, laid.height))
            return
        self._hover = None
        self._rebuild()

    @property
    def content(self) -> Content:
        """What is shown, with the axes that were asked for."""
        return chart.with_choices(self._content, self._choices) if self._choices else self._content

    def table(self) -> Iterable[plot_menu.Row]:
        """The places of all marks, by series, or the values of cells."""
        return chart.table(self._content)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._rebuild()

    def _rebuild(self) -> None:
        """Draw anew when it is next seen."""
        self._built = None
        self.dirty()

    sizeHint = in_ems(26, 17)
    minimumSizeHint = in_ems(12, 7)

    @guarded
    def changeEvent(self, event: QEvent) -> None:
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._rebuild()
        super().changeEvent(event)

    # ---- axes, as the menu has them

    def axis_options(self) -> list[plot_menu.AxisOption]:
        """The axes whose range can be asked for."""
        content, laid = self.content, self.laid
        if not content.shown or not content.axes or content.cells is not None:
            return []
        found = []
        ways: tuple[tuple[Way, chart.Axis, tuple[float, float]], ...] = (
            ("x", content.x, laid.x), ("y", content.y, laid.y),
        )  # fmt: skip
        for way, axis, ends in ways:
            if not axis.categories:
                low, high = (10.0**v if axis.log else v for v in ends)
                choice = self._choices.get(way, AxisChoice())
                log = axis.log if chart.may_log(self._content, way) else None
                free = choice.low is None and choice.high is None
                found.append(plot_menu.AxisOption(way, axis.title, low, high, free, log))
        return found

    def choose_axis(self, way: Way, choice: AxisChoice) -> None:
        """Show an axis otherwise; without any ends by the values again."""
        self._choices = self._choices | {way: choice}
        self._rebuild()

    def show_all(self) -> None:
        """All values, on axes as the chart has them at first."""
        self._choices = {}
        self._rebuild()

    @property
    def grid(self) -> bool:
        return self._grid

    def set_grid(self, shown: bool) -> None:
        self._grid = shown
        self.dirty()

    @guarded
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        plot_menu.popup(self, event)

    # ---- items

    @property
    def laid(self) -> Layout:
        """Where everything stands now."""
        self.prepare(self._dpr)
        assert self._laid is not None
        return self._laid

    def items_changed(self) -> None:
        """What is not of this chart is painted when Qt finds that it has changed."""
        others = set(self.plot.vb.childGroup.childItems()) - set(self._mine)
        modes = self.ViewportUpdateMode
        self.setViewportUpdateMode(modes.MinimalViewportUpdate if others else modes.NoViewportUpdate)
        self.dirty()

    def prepare(self, dpr: float) -> None:
        size, font = self.viewport().size(), self.font()
        wanted = (size.width(), size.height(), font.key(), self._theme, dpr, asked_unit())
        if wanted == self._built:
            return
        self._built, self._dpr, self._still = wanted, dpr, None
        metrics = QFontMetricsF(font)
        measure = lambda text: metrics.horizontalAdvance(printable(text))  # noqa: E731 - handed on
        content = self.content
        laid = chart.lay_out(
            content, size.width(), size.height(), metrics.height(), measure, asked_unit(), whole=True
        )
        self._laid = laid
        for item in self._mine:
            self.scene().removeItem(item)
        self._mine, self._map, self._cloud = [], None, None
        if not content.shown:
            if "plot" in vars(self):
                self.plot.hide()
            return
        box = self.plot.vb
        self.plot.show()
        for item in self._whole_view:
            item.place(QRectF(self.viewport().rect()))
        for name in ("left", "bottom"):
            self.plot.showAxis(name, content.axes)
        box.invertY(content.y.down)
        if content.axes:
            below = max(size.height() - laid.bottom, 0.0)
            place_lane(self.plot, QRectF(laid.left, laid.top, laid.width, laid.height), below=below)
        else:
            self.plot.setGeometry(QRectF(laid.left, laid.top, laid.width, laid.height))
        box.show_range(*laid.x, *laid.y)
        if content.cells is not None:
            self._add_cells(laid)
        for kind in chart.KINDS:
            for series in content.series:
                if series.kind == kind:
                    getattr(self, f"_add_{kind}")(laid, series)
        self._add_levels(laid)

    def _add(self, item: Any, z: float = 0.0) -> None:
        """Put an item of this chart into the box; Qt need not watch it."""
        item.setZValue(z)
        self._mine.append(item)
        pg.ViewBox.addItem(self.plot.vb, item, True)

    def _colour(self, series: Series, opacity: float = 1.0) -> QColor:
        if isinstance(series.colour, str):
            colour = QColor(getattr(self._theme, series.colour))
        else:
            colour = QColor(self._theme.series[series.colour % SERIES])
        colour.setAlphaF(opacity)
        return colour

    def _pen(self, colour: QColor | str, width: float, style: Any = Qt.PenStyle.SolidLine) -> QPen:
        """So many logical pixels wide, whatever the values' scale."""
        pen = QPen(QColor(colour), width * self._dpr, style)
        pen.setCosmetic(True)
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        return pen

    def _line_pen(self, series: Series, width: float) -> QPen:
        style = Qt.PenStyle.DashLine if series.dashed else Qt.PenStyle.SolidLine
        return self._pen(self._colour(series), width, style)

    def _in_box(self, laid: Layout, series: Series) -> tuple[Floats, Floats]:
        """(K,) each: the places of marks in the box."""
        x, y = laid.content.values(series)
        across, up = laid.content.x, laid.content.y
        return (
            across.place(x, laid.x[0] if across.floor else math.nan),
            up.place(y, laid.y[0] if up.floor else math.nan),
        )

    def _spread(self, laid: Layout, series: Series) -> tuple[Floats, Floats]:
        """(K,) each: `low` and `high` in the box."""
        low, high = laid.ends(series)
        across = laid.content.horizontal_bars
        start, length, (a, b) = (laid.left, laid.width, laid.x) if across else (laid.top, laid.height, laid.y)
        parts = [(v - start) / length for v in (low, high)]
        if not across and not laid.content.y.down:
            parts = [1 - v for v in parts]
        return a + parts[0] * (b - a), a + parts[1] * (b - a)

    def _add_band(self, laid: Layout, series: Series) -> None:
        x, _ = self._in_box(laid, series)
        low, high = self._spread(laid, series)
        self._add(
            _Between(
                _Curve(x, high),
                _Curve(x, low),
                brush=QBrush(self._colour(series, chart.band_opacity(series))),
            )
        )

    def _add_line(self, laid: Layout, series: Series) -> None:
        x, y = self._in_box(laid, series)
        pen = self._line_pen(series, series.width)
        self._add(_Curve(x, y, pen=pen, antialias=True, connect="finite"), 3)

    def _add_segments(self, laid: Layout, series: Series) -> None:
        x, y = self._in_box(laid, series)
        if x.size > 2 * MANY:
            self._add_cloud(laid, series)
        elif x.size:
            pen = self._line_pen(series, series.width)
            self._add(_Curve(x, y, pen=pen, antialias=True, connect="pairs"), 2)

    def _add_bars(self, laid: Layout, series: Series) -> None:
        if not series.x.size:
            return
        theme, picked = self._theme, set(series.picked(laid.content.selected).tolist())
        x, y = self._in_box(laid, series)
        base = np.zeros(x.size) if series.low is None else series.low
        ends = (x, base) if laid.content.horizontal_bars else (y, base)
        low, high = np.minimum(*ends), np.maximum(*ends)
        whole, faint = self._colour(series, series.opacity), self._colour(series, 0.31)
        plain = self._pen(theme.border, 0.0) if series.opacity == 1 else QPen(Qt.PenStyle.NoPen)
        chosen = self._pen(theme.text, 2.0)
        how: dict[str, Any] = {"brush": QBrush(whole), "pen": plain}
        if picked or series.faint:  # one look for all is drawn in a tenth of the time
            how = {
                "brushes": [QBrush(faint if k in series.faint else whole) for k in range(x.size)],
                "pens": [chosen if k in picked else plain for k in range(x.size)],
            }
        if laid.content.horizontal_bars:
            self._add(_Bars(x0=low, x1=high, y=y, height=series.thickness, **how), 1)
        else:
            self._add(_Bars(x=x, y0=low, y1=high, width=series.thickness, **how), 1)

    def _add_whiskers(self, laid: Layout, series: Series, width: float = 1.4, cap: float = 0.22) -> None:
        low, high = self._spread(laid, series)
        seen = np.isfinite(low) & np.isfinite(high)
        if not seen.any():
            return
        x, y = (v[seen] for v in self._in_box(laid, series))
        low, high = low[seen], high[seen]
        pen = self._pen(self._colour(series), width)
        # A beam is as long as a part of a line of text, in the values of its axis.
        beam = max(3.0, cap * laid.line) * 2 if cap else 0.0
        if laid.content.horizontal_bars:
            beam *= (laid.y[1] - laid.y[0]) / laid.height
            self._add(_Errors(x=x, y=y, left=x - low, right=high - x, beam=beam or None, pen=pen), 4)
        else:
            beam *= (laid.x[1] - laid.x[0]) / laid.width
            self._add(_Errors(x=x, y=y, bottom=y - low, top=high - y, beam=beam or None, pen=pen), 4)

    def _add_points(self, laid: Layout, series: Series) -> None:
        if series.low is not None and series.high is not None:
            self._add_whiskers(laid, series, 1.0, 0.0)
        x, y = self._in_box(laid, series)
        seen = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
        size = 2 * self._reach(series)
        if seen.size > MANY:
            self._add_cloud(laid, series)
            seen = seen[:0]
        dim = np.isin(seen, list(series.faint)) if series.faint else np.zeros(seen.size, bool)
        for part, opacity in ((seen[~dim], 1.0), (seen[dim], _FAINT)):
            if part.size:
                self._add(_Scatter(x[part], y[part], **self._look(series, size, opacity)), 5)
        picked = series.picked(laid.content.selected)
        picked = picked[np.isfinite(x[picked]) & np.isfinite(y[picked])]
        if picked.size:
            ring = {"size": size + 8, "pen": self._pen(self._theme.text, 2.0), "brush": None}
            self._add(_Scatter(x[picked], y[picked], antialias=True, **ring), 6)

    def _add_cloud(self, laid: Layout, series: Series) -> None:
        """Dots instead of marks, into one picture: as many items would take half a second."""
        side = max(1, round(_DOT * self._dpr))
        if self._cloud is None:
            wide, high = (math.ceil(v * self._dpr) for v in (laid.width + 2 * _OVER, laid.height + 2 * _OVER))
            self._cloud = QImage(wide, high, QImage.Format.Format_ARGB32_Premultiplied)
            self._cloud.setDevicePixelRatio(self._dpr)
            self._cloud.fill(Qt.GlobalColor.transparent)
        pixels = np.ndarray((self._cloud.height(), self._cloud.width()), np.uint32, self._cloud.bits())
        corner = np.round(np.array([laid.left - _OVER, laid.top - _OVER]) * self._dpr).astype(int) + side // 2
        for faint, opacity in ((True, _FAINT), (False, 1.0)):
            columns, rows = (laid.dots(series, 1 / self._dpr, faint=faint) - corner).T
            inside = (columns >= 0) & (rows >= 0)
            inside &= (columns < pixels.shape[1] - side) & (rows < pixels.shape[0] - side)
            columns, rows = columns[inside], rows[inside]
            colour = self._colour(series, opacity)
            a, *rgb = colour.alpha(), colour.red(), colour.green(), colour.blue()
            r, g, b = (v * a // 255 for v in rgb)
            ink = a << 24 | r << 16 | g << 8 | b  # premultiplied
            for k in range(
                side if series.kind == "segments" else side * side
            ):  # those are pixels along lines
                pixels[rows + k // side, columns + k % side] = ink

    def _paint_cloud(self, painter: QPainter, _rect: QRectF) -> None:
        if self._cloud is not None and self._laid is not None:
            painter.drawImage(QPointF(self._laid.left - _OVER, self._laid.top - _OVER), self._cloud)

    def _reach(self, series: Series) -> float:
        """From the middle of a mark to its edge, logical pixels."""
        return max(3.2, self.fontMetrics().height() * 0.24) * series.size

    def _look(self, series: Series, size: float, opacity: float = 1.0) -> dict[str, Any]:
        """How a mark is drawn that is so large."""
        colour = self._colour(series, opacity)
        hollow = series.hollow or series.mark in ("cross", "plus")
        return {
            "symbol": SYMBOLS[series.mark], "size": size, "antialias": True,
            "pen": self._pen(colour, 2.0 if series.hollow else 1.4),
            "brush": QBrush() if hollow else QBrush(colour),
        }  # fmt: skip

    def _add_boxes(self, laid: Layout, series: Series) -> None:
        """Words in frames, which `_add_words` places."""

    def _add_cells(self, laid: Layout) -> None:
        cells = laid.content.cells
        assert cells is not None
        self._map = _Image(self._colours(laid), axisOrder="row-major", levels=None)
        rows, columns = cells.values.shape
        first, last = cells.across or (-0.5, columns - 0.5)
        self._map.setRect(QRectF(first, -0.5, last - first, rows))
        self._add(self._map)

    def _colours(self, laid: Layout) -> np.ndarray:
        """(rows, columns, 4) red, green, blue and opacity of cells."""
        cells = laid.content.cells
        assert cells is not None
        rgba = np.zeros((*cells.values.shape, 4), np.uint8)
        rgba[..., :3] = chart.ramp(cells.colours, cells.parts, self._theme.dark)
        rgba[..., 3] = np.where(np.isfinite(cells.parts), 255, 0)
        return rgba

    def _add_levels(self, laid: Layout) -> None:
        content = laid.content
        upright = [v for v, _ in content.levels] if content.horizontal_bars else []
        lines = [(float(content.x.place(v)), 90) for v in (*upright, *(v for v, _ in content.verticals))]
        if not content.horizontal_bars:
            lines += [(float(content.y.place(v)), 0) for v, _ in content.levels]
        for at, angle in lines:
            if math.isfinite(at):
                pen = self._pen(self._theme.break_line, 1.0, Qt.PenStyle.DashLine)
                self._add(_Line(at, angle=angle, pen=pen, movable=False), 7)

    # ---- words

    def _paint_words(self, painter: QPainter, laid: Layout) -> None:
        """Names of marks and limits, the heading, the legend, and what colours of cells stand for."""
        if self._within and not laid.cell_words:
            return  # they stand around a map
        theme, content, line = self._theme, laid.content, laid.line
        boxed = [(s, k) for s in content.series if s.kind == "boxes" for k in range(s.x.size)]
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for word, (series, k) in zip(laid.names, boxed, strict=bool(boxed)):
            part = float(series.high[k]) if series.high is not None else 0.0
            painter.setBrush(mix(self._colour(series).name(), theme.background, 0.15 + 0.85 * part))
            painter.setPen(QPen(QColor(theme.text if part == 1.0 else theme.border), 1.2))
            wide, high = word.width + 0.7 * line, 1.7 * line
            painter.drawRect(QRectF(word.x - wide / 2, word.y - high / 2, wide, high))
        for several, colour in (
            ((*laid.names, *laid.scale_words), theme.text),
            (laid.limits, theme.break_line if content.axes else theme.text),
        ):
            painter.setPen(QColor(colour))
            for word in several:
                self._paint_word(painter, word, line)
        painter.setPen(QColor(theme.text))
        if laid.heading:
            wide = QFontMetricsF(self.font()).horizontalAdvance(laid.heading)
            middle = laid.left + wide / 2 if content.axes else self.width() / 2
            self._paint_word(painter, Word(laid.heading, middle, 0.9 * line, wide), line)
        for entry in laid.legend:
            if entry.series >= 0:
                self._paint_sample(painter, content.series[entry.series], entry, line)
                self._paint_entry(painter, entry, entry.text, line)
        if laid.scale is not None:
            self._paint_scale(painter, laid)

    def _paint_word(self, painter: QPainter, word: Word, line: float) -> None:
        box = QRectF(
            round(word.x - word.width / 2) - line, round(word.y - line / 2), word.width + 2 * line, line
        )
        painter.drawText(box, _CENTRE, printable(word.text))

    def _paint_entry(self, painter: QPainter, entry: chart.Entry, text: str, line: float) -> None:
        """A name of the legend."""
        painter.setPen(QColor(self._theme.text))
        box = QRectF(round(entry.x + 1.9 * line), round(entry.y - line / 2), self.width(), line)
        painter.drawText(box, _LEFT, printable(text))

    def _paint_sample(self, painter: QPainter, series: Series, entry: chart.Entry, line: float) -> None:
        """What stands before a name of the legend."""
        at = QPointF(round(entry.x + 0.8 * line), round(entry.y))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if series.kind in ("line", "segments"):
            painter.setPen(self._line_pen(series, 1.8))
            painter.drawLine(QPointF(at.x() - 0.7 * line, at.y()), QPointF(at.x() + 0.7 * line, at.y()))
        elif series.kind == "points":
            look = self._look(series, 0.56 * line)
            painter.setPen(look["pen"])
            painter.setBrush(look["brush"])
            draw_mark(painter, series.mark, at, 0.28 * line)
        else:
            opacity = max(chart.band_opacity(series) if series.kind == "band" else series.opacity, 0.27)
            side = 0.56 * line
            box = QRectF(at.x() - side / 2, at.y() - side / 2, side, side)
            painter.fillRect(box, self._colour(series, opacity))

    # ---- what is chosen along an axis: it follows fast changes

    def _paint_chosen(self, painter: QPainter, laid: Layout) -> None:
        theme, chosen, line = self._theme, laid.content.chosen, laid.line
        if chosen is None:
            return
        entry = laid.legend[0] if chosen.label else None
        if entry is not None:
            text = chart.elided(
                chosen.label, self.width() - 4.5 * line, QFontMetricsF(self.font()).horizontalAdvance
            )
            self._paint_entry(painter, entry, text, line)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme.fit))
        if entry is not None:
            painter.drawEllipse(
                QPointF(round(entry.x + 0.8 * line), round(entry.y)), 0.25 * line, 0.25 * line
            )
        for row, opacity in ((chosen.row, 46), (chosen.pointed, 16)):
            if row is not None:
                low, high = sorted(laid.along_y([row - 0.5, row + 0.5]).tolist())
                painter.fillRect(QRectF(laid.left, low, laid.width, high - low), faded(theme.accent, opacity))
        x = math.nan if chosen.x is None else float(laid.px(chosen.x))
        if laid.left - 1 <= x <= laid.right + 1:
            if chosen.y is not None:
                y = min(max(float(laid.py(chosen.y)), laid.top), laid.bottom)
                painter.drawEllipse(QPointF(x, y), 4, 4)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
            painter.setPen(QPen(QColor(theme.fit), 1))
            painter.drawLine(QLineF(x, laid.top, x, laid.bottom))

    def set_chosen(self, chosen: chart.Chosen | None) -> None:
        """Move what is chosen, which leaves all else as it is."""
        old = self._content.chosen
        if chosen == old:
            return
        self._content = replace(self._content, chosen=chosen)
        if self._built is None or old is None or chosen is None or bool(old.label) != bool(chosen.label):
            self._rebuild()
            return
        assert self._laid is not None
        laid = self._laid = replace(self._laid, content=self.content)
        super().dirty(*(rect for one in (old, chosen) for rect in self._reached(laid, one)))

    def dirty(self, *rects: QRectF) -> None:
        self._still = None
        super().dirty(*rects)

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:
        """What is chosen along an axis moves over a picture of all else."""
        laid = self._laid
        self._within = (
            laid is not None
            and self._map is not None
            and self._built is not None
            and QRectF(laid.left, laid.top, laid.width, laid.height).contains(
                QRectF(event.region().boundingRect())
            )
        )
        watched = self.viewportUpdateMode() != self.ViewportUpdateMode.NoViewportUpdate  # items of scripts
        if self._content.chosen is None or not self._content.shown or self.closed or watched:
            super().paintEvent(event)
            return
        dpr = self.viewport().devicePixelRatioF()
        self.prepare(dpr)
        self._whole = False
        if self._still is None or self._still.devicePixelRatio() != dpr:
            still = QImage(self.viewport().size() * dpr, QImage.Format.Format_RGB32)
            still.setDevicePixelRatio(dpr)
            self._whole_view[2].setVisible(False)
            try:
                self.paint_on(still)
            finally:
                self._whole_view[2].setVisible(True)
            self._still = still
        with QPainter(self.viewport()) as painter:
            painter.setFont(self.font())
            painter.setClipRegion(event.region())
            painter.drawImage(0, 0, self._still)
            with saved(painter):
                self._where_laid(self._paint_chosen)(painter, QRectF())
            paint_focus(painter, self, self._theme)

    def _reached(self, laid: Layout, chosen: chart.Chosen) -> Iterable[QRectF]:
        """Where what is chosen is drawn."""
        if chosen.label:
            yield QRectF(0, 0, self.width(), laid.top - _OVER)
        if chosen.x is not None:
            x = float(laid.px(chosen.x))
            yield QRectF(x - 2 * _OVER, laid.top - _OVER, 4 * _OVER, laid.height + 2 * _OVER)
        for row in (chosen.row, chosen.pointed):
            if row is not None:
                low, high = sorted(laid.along_y([row - 0.5, row + 0.5]).tolist())
                yield QRectF(laid.left - 1, low - 2, laid.width + 2, high - low + 4)

    # ---- mouse and keys

    def mark_at(self, place: QPointF) -> tuple[int, int] | None:
        """The mark under the pointer: series and index."""
        laid = self.laid
        best, found = 12.0, None
        for i, series in enumerate(laid.content.series):
            if series.kind == "bars":
                x, y, w, h = laid.bars(series).T
                hit = (x <= place.x()) & (place.x() <= x + w) & (y <= place.y()) & (place.y() <= y + h)
                if hit.any():
                    return i, int(np.argmax(hit))
            if series.kind != "points" or not series.x.size:
                continue
            xs, ys = laid.marks(series)
            distance = np.hypot(xs - place.x(), ys - place.y())
            distance = np.where(np.isfinite(distance), distance, np.inf)
            k = int(np.argmin(distance))
            if distance[k] < best:
                best, found = float(distance[k]), (i, k)
        return found

    def cell_at(self, place: QPointF) -> tuple[int, int] | None:
        """The cell under the pointer: row and column."""
        laid, cells = self.laid, self._content.cells
        if cells is None or not QRectF(laid.left, laid.top, laid.width, laid.height).contains(place):
            return None
        rows, columns = cells.values.shape
        row = (place.y() - laid.top) / laid.height * rows
        column = (place.x() - laid.left) / laid.width * columns
        return min(int(row), rows - 1), min(int(column), columns - 1)

    def place_of(self, at: tuple[int, int]) -> QPointF:
        """Where a mark (series and index) or a cell (row and column) is."""
        laid = self.laid
        if laid.content.cells is not None:
            x, y, w, h = laid.cell(*at)
            return QPointF(x + w / 2, y + h / 2)
        xs, ys = laid.marks(laid.content.series[at[0]])
        return QPointF(float(xs[at[1]]), float(ys[at[1]]))

    def name_of(self, at: tuple[int, int] | None) -> str:
        """A mark or a cell in words."""
        if at is None:
            return ""
        cells = self._content.cells
        return cells.told(*at) if cells is not None else self._content.series[at[0]].name(at[1])

    def _at(self, place: QPointF) -> tuple[int, int] | None:
        if not self._content.shown:
            return None
        return self.mark_at(place) if self._content.cells is None else self.cell_at(place)

    def _can_choose(self, at: tuple[int, int] | None) -> bool:
        if at is None or self._content.cells is not None:
            return at is not None and self.receivers("2cellClicked(int,int)") > 0
        return len(self._content.series[at[0]].keys) > 0

    def _point_at(self, at: tuple[int, int] | None, tip: QPoint | None = None) -> None:
        if at == self._hover:
            return
        self._hover = at
        name = self.name_of(at)
        if name and at is not None:
            if tip is None:
                tip = self.viewport().mapToGlobal(self.place_of(at).toPoint())
            QToolTip.showText(tip, name, self)
        else:
            QToolTip.hideText()
        shape = Qt.CursorShape.PointingHandCursor if self._can_choose(at) else Qt.CursorShape.ArrowCursor
        self.viewport().setCursor(shape)
        self.dirty()

    @guarded
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._point_at(self._at(event.position()), event.globalPosition().toPoint())

    @guarded(otherwise=lambda: False)
    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Leave:
            self._leave()
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), self.name_of(self._hover) or self.toolTip(), self)
            return True
        return bool(super().viewportEvent(event))

    def _leave(self) -> None:
        self._point_at(None)

    @guarded
    def mousePressEvent(self, event: QMouseEvent) -> None:
        at = self._at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and at is not None:
            self._choose(at, bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier))

    @guarded
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()

    @guarded
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.mousePressEvent(event)

    @guarded
    def wheelEvent(self, event: Any) -> None:
        event.ignore()

    @guarded
    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Left and right step through the marks, all arrows through cells; Return chooses."""
        step = _STEPS.get(Qt.Key(event.key()))
        at = self._next(step) if step is not None and self._content.shown else None
        if at is not None:
            self._point_at(at)
            if self._content.cells is not None:
                self.setAccessibleDescription(self.name_of(at))
        elif self._hover is not None and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Space):
            self._choose(self._hover, bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier))
        else:
            event.ignore()

    def _next(self, step: tuple[int, int]) -> tuple[int, int] | None:
        """Where an arrow key leads, from one end to the other."""
        cells = self._content.cells
        if cells is not None:
            rows, columns = cells.values.shape
            if self._hover is None and cells.selected is None and cells.numbers:
                return cells.start
            row, column = self._hover or cells.selected or cells.start
            row, column = row + step[0], column + step[1]
            if cells.numbers:
                return row % rows, column % columns
            return min(max(row, 0), rows - 1), min(max(column, 0), columns - 1)
        marks = [
            (i, s.x.size)
            for i, s in enumerate(self._content.series)
            if s.kind in ("points", "bars") and s.x.size and len(s.keys)
        ]
        return _neighbour(marks, self._hover, step[1]) if marks and step[1] else None

    def _choose(self, at: tuple[int, int], more: bool) -> None:
        if self._content.cells is not None:
            self.cellClicked.emit(*at)
        elif len(keys := self._content.series[at[0]].keys):
            self.clicked.emit(int(keys[at[1]]), more)

    # ---- painting: axes, grid, and what follows the pointer

    def _paint_left(self, painter: QPainter, laid: Layout) -> None:
        ends = laid.y[::-1] if laid.content.y.down else laid.y
        lane = LaneBox(QRectF(laid.left, laid.top, laid.width, laid.height), *ends)
        scales.level_axis(painter, lane, laid.y_ticks, self._theme, laid.y_title, self.height())

    def _paint_bottom(self, painter: QPainter, laid: Layout) -> None:
        theme, em, bottom = self._theme, laid.line, laid.bottom
        xs = laid.along_x(laid.x_ticks.positions).tolist()
        painter.setPen(QColor(theme.border))
        painter.drawLines([QLineF(x, bottom, x, bottom + 4) for x in xs])
        painter.setPen(QColor(theme.muted))
        for x, label in zip(xs, laid.x_ticks.labels, strict=True):
            painter.drawText(
                QRectF(x - 200, bottom + 5, 400, em), Qt.AlignmentFlag.AlignCenter, printable(label)
            )
        painter.setPen(QColor(theme.text))
        row = QRectF(0, bottom + 5 + em, self.width(), em + 4)
        row.setLeft(max(0.0, 2 * (laid.left + laid.width / 2) - self.width()))
        painter.drawText(row, Qt.AlignmentFlag.AlignCenter, printable(laid.x_title))
        if laid.x_ticks.offset:
            painter.drawText(row.translated(laid.left - row.left(), 0), 0, laid.x_ticks.offset)

    def _paint_grid(self, painter: QPainter, laid: Layout) -> None:
        content = laid.content
        if not content.axes:
            return
        if content.cells is not None:
            self._paint_missing(painter, laid, content.cells)
        painter.setPen(QPen(QColor(self._theme.border), 0))
        painter.drawRect(QRectF(laid.left, laid.top, laid.width, laid.height))
        if self._grid and content.cells is None:
            xs = [] if content.x.categories else laid.along_x(laid.x_ticks.positions).tolist()
            ys = laid.along_y(laid.y_ticks.positions).tolist()
            lane = LaneBox(QRectF(laid.left, laid.top, laid.width, laid.height))
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
            scales.grid(painter, lane, self._theme, xs, ys)

    def _paint_missing(self, painter: QPainter, laid: Layout, cells: chart.Cells) -> None:
        """Cells of a map with numbers in which there is nothing."""
        if not cells.numbers:
            return
        for row, column in np.argwhere(~np.isfinite(cells.parts)).tolist():
            box = QRectF(*laid.cell(row, column))
            painter.fillRect(box, QColor(self._theme.surface))
            painter.fillRect(box, QBrush(QColor(self._theme.muted), Qt.BrushStyle.BDiagPattern))

    def _paint_over(self, painter: QPainter, laid: Layout) -> None:
        theme, content = self._theme, laid.content
        if content.cells is not None:
            self._paint_cells(painter, laid, content.cells)
        elif self._hover is not None:
            i, k = self._hover
            series = content.series[i]
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, series.kind == "points")
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(theme.text), 1))
            if series.kind == "bars":
                painter.drawRect(QRectF(*laid.bars(series)[k]))
            else:
                reach = self._reach(series) + 4
                painter.drawEllipse(self.place_of((i, k)), reach, reach)

    def _paint_cells(self, painter: QPainter, laid: Layout, cells: chart.Cells) -> None:
        theme = self._theme
        dark = np.zeros(0)
        if laid.cell_words:
            rgb = chart.ramp(cells.colours, cells.parts, theme.dark)
            dark = (rgb.max(axis=-1).astype(int) + rgb.min(axis=-1)) / 510 < 0.5
        for row, column, word in laid.cell_words:
            painter.setPen(QColor("#ffffff" if dark[row, column] else "#101010"))
            box = QRectF(*laid.cell(row, column))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, word.text)
        if cells.numbers:
            painter.setPen(QPen(QColor(theme.background), 2))
            rows, columns = cells.values.shape
            ys = laid.top + laid.height * np.arange(1, rows) / rows
            xs = laid.left + laid.width * np.arange(1, columns) / columns
            painter.drawLines([QLineF(laid.left, y, laid.right, y) for y in ys])
            painter.drawLines([QLineF(x, laid.top, x, laid.bottom) for x in xs])
        painter.setBrush(Qt.BrushStyle.NoBrush)
        # A frame that is seen on every colour: the ground's inside the selection's.
        at = self._hover if self._hover or not self.hasFocus() or cells.numbers else cells.start
        for cell, colour, width, inset in (
            (cells.selected, theme.selection, 3.0, 0.5), (cells.selected, theme.background, 1.5, 2.5),
            (at, theme.text if cells.numbers else theme.fit, 1.5, 1.0),
        ):  # fmt: skip
            if cell is not None:
                painter.setPen(QPen(QColor(colour), width))
                painter.drawRect(QRectF(*laid.cell(*cell)).adjusted(inset, inset, -inset, -inset))

    def _paint_scale(self, painter: QPainter, laid: Layout) -> None:
        """What the colours of cells stand for."""
        cells = laid.content.cells
        assert cells is not None and laid.scale is not None
        r = QRectF(*laid.scale)
        gradient = QLinearGradient(r.bottomLeft(), r.topLeft())
        low, high = cells.ends
        for part in np.linspace(0, 1, 9):
            colour = chart.ramp(cells.colours, part if high > low else 1.0, self._theme.dark)
            gradient.setColorAt(float(part), QColor(*colour.tolist()))
        painter.fillRect(r, gradient)
        painter.setPen(QPen(QColor(self._theme.border), 0))
        painter.drawRect(r)

    @guarded
    def drawForeground(self, painter: QPainter, rect: QRectF) -> None:
        if not self._content.shown:
            paint_note(painter, self, self._theme, self._content.empty)
        super().drawForeground(painter, rect)

    # ---- showing to others

    def picture(self, scale: float = 2.0) -> QImage:
        """The chart at `scale` times its size, on white whatever the theme."""
        theme, hover = self._theme, self._hover
        self._theme, self._hover, self._built = theme.on_white, None, None
        image = QImage(self.size() * scale, QImage.Format.Format_RGB32)
        image.setDevicePixelRatio(scale)
        try:
            self.paint_on(image)
        finally:
            self._theme, self._hover = theme, hover
            self._rebuild()
        return image


_STEPS = {
    Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0),
}  # fmt: skip


def _neighbour(marks: list[tuple[int, int]], hover: tuple[int, int] | None, step: int) -> tuple[int, int]:
    """The next or last mark among series and their sizes, from one end to the other."""
    starts = np.cumsum([0, *(size for _, size in marks)])
    order = [i for i, _ in marks]
    at = -1 if step > 0 else 0
    if hover is not None and hover[0] in order:
        at = int(starts[order.index(hover[0])]) + hover[1]
    at = (at + step) % int(starts[-1])
    which = int(np.searchsorted(starts, at, side="right")) - 1
    return order[which], at - int(starts[which])


def _path(mark: Mark) -> QPainterPath:
    """A mark in a square of side 1, as the sheets draw it."""
    path = QPainterPath()
    for line in chart.OUTLINES[mark]:
        path.addPolygon(QPolygonF([QPointF(x / 2, y / 2) for x, y in line]))
    return path


def draw_mark(painter: QPainter, mark: Mark, p: QPointF, s: float) -> None:
    """A mark about `p` that reaches `s` far, with the painter's pen and brush."""
    if mark == "circle":
        painter.drawEllipse(p, s, s)
    else:
        painter.drawPath(QTransform(2 * s, 0, 0, 2 * s, p.x(), p.y()).map(_path(mark)))


#: Symbols of marks; a diamond and a triangle reach farther than the square.
SYMBOLS: dict[Mark, Any] = {mark: _path(mark) for mark in chart.OUTLINES} | {"circle": "o"}

"""The window's charts: a `desktop.data.chart.Content` with names on hover and a click that selects.

For results (effects, residuals, run times), up to some hundred thousand points. They are drawn as on paper
(`desktop.ui.chart_sheet`), once, into a picture over which what is chosen and pointed at moves. Scripts may
add items of pyqtgraph to `Chart.plot`, in the values of its axes (log10 of logarithmic ones); they stay.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

import numpy as np
import pyqtgraph as pg
from numpy.typing import ArrayLike
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFontMetricsF,
    QHelpEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QWheelEvent,
)
from PySide6.QtWidgets import QToolTip

from desktop.core.arrays import Bytes, Flags, Floats
from desktop.core.units import preferred_unit
from desktop.data import chart
from desktop.data.chart import AxisChoice, AxisName, Content, Layout, Series
from desktop.printing import printable
from desktop.ui.chart_sheet import LINE, MIDDLE, OVER, PIXEL, Painter
from desktop.ui.drawing import Fill, Ink, Outlines, QtSheet, SheetText, Stroke
from desktop.ui.guard import guarded, in_ems, saved
from desktop.ui.plots import plot_menu
from desktop.ui.plots.raster import mix
from desktop.ui.plots.scene import DrawnAxis, PixelItem, PlotView, lane_plot, place_lane
from desktop.ui.theme import Theme, paint_note

#: Side of a dot where marks are many, logical pixels.
_DOT = 2


class _WindowSheet(QtSheet):
    """A sheet in logical pixels of a view and in its font; edges and letters stand on whole pixels."""

    unit = PIXEL

    def __init__(self, painter: QPainter, width: float, height: float) -> None:
        super().__init__(painter, width, height, 1.0)
        self._dpr = painter.device().devicePixelRatioF()

    def _write(self, text: SheetText) -> None:
        painter, metrics = self._painter, self._painter.fontMetrics()
        shift = text.lead * metrics.horizontalAdvance(text.words)
        painter.setPen(QColor(text.colour))
        if text.upright:
            with saved(painter):
                painter.translate(round(text.x), round(text.y))
                painter.rotate(-90)
                painter.drawText(QPointF(round(-shift), 0), text.words)
        else:
            top = round(text.y - MIDDLE * text.size - metrics.height() / 2)
            painter.drawText(QPointF(round(text.x - shift), top + metrics.ascent()), text.words)

    def rects(self, rects: ArrayLike, fill: Fill) -> None:
        self._sharp(True)
        super().rects(rects, fill)
        self._sharp(False)

    def line(self, points: ArrayLike, stroke: Stroke) -> None:
        self._sharp(_level(np.diff(np.asarray(points, float), axis=0)))
        super().line(points, stroke)
        self._sharp(False)

    def lines(self, lines: ArrayLike, stroke: Stroke) -> None:
        ends = np.asarray(lines, float).reshape(-1, 4)
        self._sharp(_level(ends[:, 2:] - ends[:, :2]))
        super().lines(ends, stroke)
        self._sharp(False)

    def _sharp(self, sharp: bool) -> None:
        self._painter.setRenderHint(QPainter.RenderHint.Antialiasing, not sharp)

    def _pen(self, stroke: Stroke) -> QPen:
        aliased = not self._painter.testRenderHint(QPainter.RenderHint.Antialiasing)
        width = max(round(stroke.width) if aliased else stroke.width, 1.0)
        return super()._pen(replace(stroke, width=width))

    def marks(
        self, places: ArrayLike, outlines: Outlines, reach: float, fill: Fill | None, stroke: Stroke
    ) -> None:
        """Draw one and stamp it: thousands one by one take ten times as long."""
        dpr = self._dpr
        half = math.ceil((1.5 * reach + stroke.width) * dpr)
        stamp = QPixmap(2 * half, 2 * half)
        stamp.fill(Qt.GlobalColor.transparent)
        with QPainter(stamp) as painter:
            middle = half / dpr
            QtSheet(painter, 2 * half, 2 * half, dpr).marks([[middle, middle]], outlines, reach, fill, stroke)
        stamp.setDevicePixelRatio(dpr)
        corners = (np.rint(np.asarray(places, float).reshape(-1, 2) * dpr) - half) / dpr
        for x, y in corners.tolist():
            self._painter.drawPixmap(QPointF(x, y), stamp)

    def dots(self, places: ArrayLike, side: float, fill: Fill) -> None:
        """Draw them into one picture: as many squares would take half a second."""
        dpr, colour = self._dpr, QColor(fill.colour)
        picture = QImage(
            round(self.width * dpr), round(self.height * dpr), QImage.Format.Format_ARGB32_Premultiplied
        )
        picture.setDevicePixelRatio(dpr)
        picture.fill(Qt.GlobalColor.transparent)
        pixels = np.ndarray((picture.height(), picture.width()), np.uint32, picture.bits())
        wide = max(1, round(side * dpr))
        columns, rows = np.rint(np.asarray(places).T * dpr).astype(int) - wide // 2
        inside = (columns >= 0) & (rows >= 0)
        inside &= (columns < pixels.shape[1] - wide) & (rows < pixels.shape[0] - wide)
        columns, rows = columns[inside], rows[inside]
        alpha = round(255 * fill.opacity)
        r, g, b = (v * alpha // 255 for v in (colour.red(), colour.green(), colour.blue()))
        for k in range(wide * wide):
            pixels[rows + k // wide, columns + k % wide] = alpha << 24 | r << 16 | g << 8 | b  # premultiplied
        self._painter.drawImage(0, 0, picture)

    def cells(self, colours: Bytes, filled: Flags, box: tuple[float, float, float, float]) -> None:
        rows, columns = filled.shape
        red, green, blue = np.moveaxis(colours.astype(np.uint32), 2, 0)
        pixels = np.where(filled, 0xFF000000 | red << 16 | green << 8 | blue, 0).astype(np.uint32)
        # The format that is scaled at once; others are converted span by span, in several threads.
        picture = QImage(pixels.data, columns, rows, 4 * columns, QImage.Format.Format_ARGB32_Premultiplied)
        self._painter.drawImage(QRectF(*box), picture)


def _level(steps: Floats) -> bool:
    """Whether all of these steps (K, 2) are horizontal or vertical."""
    return bool((np.abs(steps) < 1e-9).any(axis=1).all())


class _WindowPainter(Painter):
    """Draws a chart in the window; `mark`: the colour of what is selected."""

    dotted_segments = True

    def __init__(
        self, painter: QPainter, size: QSize | QSizeF, layout: Layout, theme: Theme, mark: str
    ) -> None:
        sheet, ground = _WindowSheet(painter, size.width(), size.height()), theme.background
        ink = Ink(
            ground, theme.text, theme.muted, theme.border, mix(theme.text, ground, 24 / 255).name(),
            theme.curve, theme.fit, theme.residual, mark, theme.breakpoint, {}, {}, False, theme.series,
        )  # fmt: skip
        super().__init__(sheet, layout, ink, layout.line / LINE, 1.0, 1.0)
        self.dot = (1 / painter.device().devicePixelRatioF(), _DOT)
        self._theme = theme

    def colour(self, series: Series) -> str:
        named = isinstance(series.colour, str)
        return str(getattr(self._theme, str(series.colour))) if named else super().colour(series)


class Chart(PlotView):
    """Draws a `Content`; emits the key of a mark that is clicked, with whether Ctrl was held, and the row and
    column of a cell. `help_at`: its place in the handbook, if the panel around it does not say it."""

    clicked = Signal(int, bool)
    cellClicked = Signal(int, int)

    def __init__(self, name: str, help_at: str = "") -> None:
        self._content = Content(chart.Axis(""), chart.Axis(""))
        self._choices: dict[AxisName, AxisChoice] = {}
        self._grid = True
        self._layout: Layout | None = None
        self._built: object = None
        self._still: QImage | None = None  # all but what moves over it
        self._hover: tuple[int, int] | None = None
        self._dpr = 1.0
        super().__init__()
        self._layers = [
            PixelItem(draw, z=z) for draw, z in ((self._paint_still, -50), (self._paint_over, 50))
        ]
        for item in self._layers:
            self.scene().addItem(item)
        if help_at:
            self.HELP = help_at
        self.setAccessibleName(name)
        self.setAccessibleDescription("")

    @cached_property
    def plot(self) -> pg.PlotItem:
        """The plot that scripts put items into: a box over the chart in the values of its axes. Made at its
        first use, as that takes some milliseconds."""
        plot = lane_plot(DrawnAxis("left", lambda *_: None))
        self.scene().addItem(plot)
        if self._layout is not None:
            self._place_plot(plot, self._layout)
        return plot

    def _place_plot(self, plot: pg.PlotItem, layout: Layout) -> None:
        plot.vb.invertY(layout.content.y.down)
        place_lane(plot, QRectF(layout.left, layout.top, layout.width, layout.height))
        plot.vb.show_range(*layout.x, *layout.y)
        plot.setVisible(layout.content.shown)

    def set_content(self, content: Content, description: str = "") -> None:
        """Show another chart; `description`: the same in words, for screen readers."""
        former, self._content = self._content, content
        if description or content.empty != former.empty:
            self.setAccessibleDescription(description or content.empty)
        if self._built is not None and self._still is not None and content.coloured_anew(former):
            self._layout = replace(self.current_layout, content=self.content)
            with QPainter(self._still) as painter:
                self._drawer(painter, self._layout).paint_map()
            self.dirty(QRectF(self._layout.left, self._layout.top, self._layout.width, self._layout.height))
            return
        self._hover = None
        self._rebuild()

    @property
    def content(self) -> Content:
        """The content, with the axes that the user has chosen."""
        return chart.with_choices(self._content, self._choices) if self._choices else self._content

    def table(self) -> Iterable[plot_menu.Row]:
        """The places of all marks, by series, or the values of cells."""
        return chart.table(self._content)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._rebuild()

    def _rebuild(self) -> None:
        """Draw it again when it is next painted."""
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
        """The axes whose range can be chosen."""
        content, layout = self.content, self.current_layout
        if not content.shown or not content.axes or content.cells is not None:
            return []
        options = []
        axes: tuple[tuple[AxisName, chart.Axis, tuple[float, float]], ...] = (
            ("x", content.x, layout.x), ("y", content.y, layout.y),
        )  # fmt: skip
        for name, axis, ends in axes:
            if not axis.categories:
                low, high = (10.0**v if axis.log else v for v in ends)
                choice = self._choices.get(name, AxisChoice())
                log = axis.log if chart.may_log(self._content, name) else None
                free = choice.low is None and choice.high is None
                options.append(plot_menu.AxisOption(name, axis.title, low, high, free, log))
        return options

    def choose_axis(self, axis: AxisName, choice: AxisChoice) -> None:
        """Choose range and scale of an axis; without ends it follows the values again."""
        self._choices = self._choices | {axis: choice}
        self._rebuild()

    def show_all(self) -> None:
        """Show all values, on axes as the chart has them at first."""
        self._choices = {}
        self._rebuild()

    @property
    def grid(self) -> bool:
        """Whether lines are drawn across at the ticks."""
        return self._grid

    def set_grid(self, shown: bool) -> None:
        self._grid = shown
        self._rebuild()

    @guarded
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        plot_menu.popup(self, event)

    # ---- what is drawn once

    @property
    def current_layout(self) -> Layout:
        """The layout at the present size and font."""
        self.prepare(self._dpr)
        assert self._layout is not None
        return self._layout

    def prepare(self, dpr: float) -> None:
        size, font = self.viewport().size(), self.font()
        key = (size.width(), size.height(), font, self._theme, dpr, preferred_unit())
        if key == self._built:
            return
        self._built, self._dpr, self._still = key, dpr, None
        metrics = QFontMetricsF(font)
        layout = self._layout = chart.lay_out(
            self.content, size.width(), size.height(), metrics.height(),
            lambda text: metrics.horizontalAdvance(printable(text)), preferred_unit(), whole=True,
        )  # fmt: skip
        for item in self._layers:
            item.place(QRectF(self.viewport().rect()))
        if "plot" in vars(self):
            self._place_plot(self.plot, layout)
        if layout.content.shown:
            still = QImage(size * dpr, QImage.Format.Format_RGB32)
            still.setDevicePixelRatio(dpr)
            still.fill(QColor(self._theme.background))
            with QPainter(still) as painter:
                painter.setFont(font)
                self._drawer(painter, layout).paint(grid=self._grid)
            self._still = still

    def _drawer(self, painter: QPainter, layout: Layout) -> _WindowPainter:
        """The painter of the still picture."""
        return _WindowPainter(painter, self.viewport().size(), layout, self._theme, self._theme.selection)

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:
        """Without a box of scripts the scene is left out, as it takes several times as long."""
        if "plot" in vars(self) or self.closed:
            super().paintEvent(event)
            return
        self.prepare(self.viewport().devicePixelRatioF())
        self._all_dirty = False
        area = QRectF(self.viewport().rect())
        with QPainter(self.viewport()) as painter:
            painter.setFont(self.font())
            painter.setClipRegion(event.region())
            if self._still is None:
                painter.fillRect(area, QColor(self._theme.background))
            self._paint_still(painter, area)
            with saved(painter):
                self._paint_over(painter, area)
            self.drawForeground(painter, area)

    def _paint_still(self, painter: QPainter, _rect: QRectF) -> None:
        if self._still is not None:
            painter.drawImage(0, 0, self._still)

    # ---- what is chosen along an axis: it follows fast changes

    def set_chosen(self, chosen: chart.Highlight | None) -> None:
        """Move the chosen mark without drawing anything else again."""
        old = self._content.chosen
        if chosen == old:
            return
        self._content = replace(self._content, chosen=chosen)
        if self._built is None or old is None or chosen is None or bool(old.label) != bool(chosen.label):
            self._rebuild()
            return
        assert self._layout is not None
        layout = self._layout = replace(self._layout, content=self.content)
        if chosen.label:
            line, measure = layout.line, QFontMetricsF(self.font()).horizontalAdvance
            text = chart.elided(chosen.label, self.width() - 4.5 * line, measure)
            legend = (replace(layout.legend[0], text=text), *layout.legend[1:])
            layout = self._layout = replace(layout, legend=legend)
        self.dirty(*(rect for mark in (old, chosen) for rect in self._reached(layout, mark)))

    def _reached(self, layout: Layout, chosen: chart.Highlight) -> Iterable[QRectF]:
        """The rectangles in which the chosen mark is drawn."""
        if chosen.label:
            yield QRectF(0, 0, self.width(), layout.top - OVER)
        if chosen.x is not None:
            x = float(layout.px(chosen.x))
            yield QRectF(x - 2 * OVER, layout.top - OVER, 4 * OVER, layout.height + 2 * OVER)
        for row in (chosen.row, chosen.pointed):
            if row is not None:
                low, high = sorted(layout.along_y([row - 0.5, row + 0.5]).tolist())
                yield QRectF(layout.left - 1, low - 2, layout.width + 2, high - low + 4)

    # ---- mouse and keys

    def mark_at(self, place: QPointF) -> tuple[int, int] | None:
        """The mark under the pointer: series and index."""
        layout = self.current_layout
        best, nearest = 12.0, None
        for i, series in enumerate(layout.content.series):
            if series.kind == "bars":
                x, y, w, h = layout.bars(series).T
                hit = (x <= place.x()) & (place.x() <= x + w) & (y <= place.y()) & (place.y() <= y + h)
                if hit.any():
                    return i, int(np.argmax(hit))
            if series.kind != "points" or not series.x.size:
                continue
            xs, ys = layout.marks(series)
            distance = np.hypot(xs - place.x(), ys - place.y())
            distance = np.where(np.isfinite(distance), distance, np.inf)
            k = int(np.argmin(distance))
            if distance[k] < best:
                best, nearest = float(distance[k]), (i, k)
        return nearest

    def cell_at(self, place: QPointF) -> tuple[int, int] | None:
        """The cell under the pointer: row and column."""
        layout, cells = self.current_layout, self._content.cells
        if cells is None or not QRectF(layout.left, layout.top, layout.width, layout.height).contains(place):
            return None
        rows, columns = cells.values.shape
        row = (place.y() - layout.top) / layout.height * rows
        column = (place.x() - layout.left) / layout.width * columns
        return min(int(row), rows - 1), min(int(column), columns - 1)

    def place_of(self, at: tuple[int, int]) -> QPointF:
        """Where a mark (series and index) or a cell (row and column) is."""
        layout = self.current_layout
        if layout.content.cells is not None:
            x, y, w, h = layout.cell(*at)
            return QPointF(x + w / 2, y + h / 2)
        xs, ys = layout.marks(layout.content.series[at[0]])
        return QPointF(float(xs[at[1]]), float(ys[at[1]]))

    def name_of(self, at: tuple[int, int] | None) -> str:
        """A mark or a cell in words."""
        if at is None:
            return ""
        cells = self._content.cells
        return cells.words(*at) if cells is not None else self._content.series[at[0]].name(at[1])

    def _target_at(self, place: QPointF) -> tuple[int, int] | None:
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
        self._point_at(self._target_at(event.position()), event.globalPosition().toPoint())

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
        at = self._target_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and at is not None:
            self._choose(at, bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier))

    @guarded
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        event.accept()

    @guarded
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.mousePressEvent(event)

    @guarded
    def wheelEvent(self, event: QWheelEvent) -> None:
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
        """The mark or cell that an arrow key leads to; from one end to the other."""
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

    # ---- painting: what follows the pointer

    def _paint_over(self, painter: QPainter, rect: QRectF) -> None:
        """Paint the chosen mark, and the one at the pointer."""
        layout, theme = self._layout, self._theme
        if layout is None or not layout.content.shown:
            return
        if layout.content.chosen is not None:
            _WindowPainter(painter, rect.size(), layout, theme, theme.accent).paint_chosen()
        cells, at = layout.content.cells, self._hover
        if cells is not None and at is None and self.hasFocus() and not cells.numbers:
            at = cells.start
        if at is None:
            return
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(theme.text), 1))
        if cells is not None:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
            painter.setPen(QPen(QColor(theme.text if cells.numbers else theme.fit), 1.5))
            painter.drawRect(QRectF(*layout.cell(*at)).adjusted(1, 1, -1, -1))
            return
        series = layout.content.series[at[0]]
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, series.kind == "points")
        if series.kind == "bars":
            painter.drawRect(QRectF(*layout.bars(series)[at[1]]))
        else:
            reach = 0.24 * layout.line * series.size + 4
            painter.drawEllipse(self.place_of(at), reach, reach)

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
    mark = int(np.searchsorted(starts, at, side="right")) - 1
    return order[mark], at - int(starts[mark])

"""What all plots over time have in common: the visible range, the cursor, a selection, and their gestures."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFocusEvent,
    QFontMetrics,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPen,
    QWheelEvent,
)
from PySide6.QtWidgets import QMenu, QSizePolicy

from desktop.data.chart import AxisChoice
from desktop.ui.guard import guarded, saved
from desktop.ui.plots import plot_menu, scales
from desktop.ui.plots.navigation import Navigation
from desktop.ui.plots.raster import Raster
from desktop.ui.plots.scales import LaneBox, TimeMap
from desktop.ui.plots.scene import Draw, DrawnAxis, PixelItem, PlotView, lane_plot
from desktop.ui.theme import Theme, faded
from desktop.workbench.bench import changed
from desktop.workbench.time_plots import AxisData, OverData

GRAB = 5  # logical pixels around a line within which it can be dragged
MOVED_PIXELS = 4  # a press that moves less than this is a click


@dataclass
class Drag:
    """A drag in progress: its kind, where it began, the state it began from, and its present `value`."""

    kind: str  # "select", "pan", "zoom", or what a plot has of its own
    press: QPointF
    button: Qt.MouseButton
    a: float = 0.0
    b: float = 0.0
    index: int = 0
    value: float = math.nan
    moved: bool = False


def margins(metrics: QFontMetrics, percent: bool) -> tuple[float, float]:
    """Logical pixels left and right of the time axis, the same in all plots of a window."""
    em = metrics.height()
    side = metrics.horizontalAdvance("−0.0000") + em + 14
    return side, side if percent else em


#: Device pixels of a plot from which on changes are first drawn at half the resolution, and the milliseconds
#: without a change after which it is drawn exactly.
MANY_PIXELS, REST = 3_500_000, 150


class TimePlot(PlotView):
    """A picture over a range of time; those given the same `Navigation` always show the same range.

    Times are seconds on the curve's own axis. Setters change the picture without signals, except
    `rangeChanged`, which follows every change of the visible range that is made here.

    `lanes`: plots of pyqtgraph by name. What is added to one by `addItem` is drawn over its picture, in
    seconds and in what its vertical axis counts (of a logarithmic one, the power of ten).
    """

    selectionChanged = Signal(object)
    cursorMoved = Signal(float)
    pictureRequested = Signal()
    rangeChanged = Signal(float, float)
    limitAsked = Signal(object)  # start and end (s) of what alone is to be analysed; None: the whole run

    def __init__(self, navigation: Navigation | None = None) -> None:
        super().__init__()
        self._nav = navigation or Navigation()
        self._selection: tuple[float, float] | None = None
        self._over = OverData()
        self._mode = "select"
        self._percent = False
        self._grid = True
        self._cursor = math.nan
        self._space = False
        self._drag: Drag | None = None
        self.lanes: dict[str, pg.PlotItem] = {}
        self._sheets: dict[str, Raster] = {}  # the pictures of lanes
        self._above = PixelItem(self._draw_marks, z=50)
        self.scene().addItem(self._above)
        self._marked: list[QRectF] | None = []  # where the marks were painted last; None: anywhere
        self._stale = self._base_stale = True  # all pictures; those that depend on the range alone
        self._layout_key: tuple[object, ...] = ()  # what the geometry was made for
        self._coarse = 1  # device pixels to a drawn one, each way
        self._exact = False  # while a picture is made
        self._rest_timer = QTimer(self, singleShot=True, interval=REST)
        self._rest_timer.timeout.connect(self._sharpen)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    # ---- what a plot says of itself ------------------------------------------------------------

    @property
    @abstractmethod
    def _ready(self) -> bool:
        """Whether there is a range of time to show."""

    @abstractmethod
    def _map(self) -> TimeMap:
        """The map from the visible range to the widget."""

    @abstractmethod
    def _region(self, p: QPointF) -> str:
        """ "plot" where time is selected, "axis" where it is moved, other names or "" elsewhere."""

    @abstractmethod
    def _layout(self, dpr: float) -> None:
        """Compute the rectangles of all parts, on device pixels."""

    @abstractmethod
    def _arrange(self) -> None:
        """Place the items of the scene in the rectangles of `_layout`."""

    @abstractmethod
    def _draw_anew(self, dpr: float) -> None:
        """Draw the pictures that are out of date, with `dpr` of their pixels to a logical one."""

    @abstractmethod
    def _paint_marks(self, painter: QPainter) -> None:
        """Paint what follows the mouse: cursor, selection, what is dragged."""

    def _mark_rects(self) -> list[QRectF] | None:
        """The rectangles in which `_paint_marks` paints now; None: anywhere."""
        return None

    def _spans(self) -> list[tuple[float, float, str]]:
        """Tinted ranges of time, from and to, and their colour: the selection, the range of a zoom."""
        drag, spans = self._drag, []
        if self._selection is not None:
            spans.append((*self._selection, self._theme.selection))
        if drag is not None and drag.kind == "zoom" and drag.moved:
            spans.append((drag.a, drag.b, self._theme.accent))
        return spans

    def _span_rects(self, lanes: Sequence[QRectF]) -> list[QRectF]:
        """The rectangles of `_spans`, with their end lines, in lanes."""
        m = self._map()
        ends = [
            sorted(min(max(float(m.x(v)), m.left), m.left + m.width) for v in s[:2]) for s in self._spans()
        ]
        return [QRectF(x0 - 2, r.top(), x1 - x0 + 4, r.height()) for x0, x1 in ends for r in lanes]

    def _band(self, dpr: float) -> Callable[[float, float], QRectF]:
        """A function that makes the rectangle of a lane of its top and height: between the margins, with
        edges on device pixels, so that pictures need no scaling."""
        left, right = margins(self.fontMetrics(), self._percent)

        def snapped(v: float) -> float:
            return round(v * dpr) / dpr

        left, right = snapped(left), snapped(self.width() - right)

        def band(top: float, height: float) -> QRectF:
            top = snapped(top)
            return QRectF(left, top, max(right - left, 1.0), max(snapped(top + height) - top, 1.0))

        return band

    def _sheet(self, name: str, rect: QRectF, dpr: float) -> Raster:
        """The reused pixels of a lane."""
        sheet = self._sheets[name] = Raster.of(rect, dpr, self._sheets.get(name))
        return sheet

    def _local(self, lane: LaneBox) -> tuple[LaneBox, TimeMap]:
        """A lane and the visible range with the lane at the origin, as in its picture."""
        rect = QRectF(0, 0, lane.rect.width(), lane.rect.height())
        return replace(lane, rect=rect), TimeMap(self._nav.a, self._nav.b, 0.0, rect.width())

    def _add_strips(self, *draws: Draw) -> list[PixelItem]:
        """Items of the scene between and around lanes; `_arrange` places them."""
        strips = [PixelItem(draw) for draw in draws]
        for item in strips:
            self.scene().addItem(item)
        return strips

    def _add_lane(self, name: str, picture: Draw, left: Draw, right: Draw | None = None) -> pg.PlotItem:
        """A plot with a picture, and functions that paint its vertical axes."""
        beside = None if right is None else DrawnAxis("right", right)
        plot = self.lanes[name] = lane_plot(DrawnAxis("left", left), beside)
        PixelItem(picture, plot.vb)
        self.scene().addItem(plot)
        return plot

    def _add_time_axis(self, draw: Draw, lane: str = "") -> DrawnAxis:
        """An axis below, of a lane if there is one already."""
        axis = DrawnAxis("bottom", draw, reach=60)
        if lane:
            axis.linkToView(self.lanes[lane].vb)
        self.scene().addItem(axis)
        return axis

    def _paint_upright(
        self,
        painter: QPainter,
        lane: LaneBox,
        axis: AxisData,
        title: str | None = None,
        *,
        right: bool = False,
    ) -> None:
        """A vertical axis beside a lane, under its own name unless another is given."""
        ticks = axis.upright(lane.rect.height(), self.fontMetrics().height())
        words = axis.words if title is None else title
        scales.level_axis(painter, lane, ticks, self._theme, words, self.height(), right=right)

    @property
    def _cursor_x(self) -> float | None:
        """x of the cursor on the widget; None if it is out of view."""
        m = self._map()
        return float(m.x(self._cursor)) if m.a <= self._cursor <= m.b else None

    def _cursor_rects(self, lanes: Sequence[QRectF]) -> list[QRectF]:
        """The rectangles of the cursor's line in lanes."""
        x = self._cursor_x
        return [] if x is None else [QRectF(x - 2, r.top(), 4, r.height()) for r in lanes]

    def _paint_cursor(self, painter: QPainter, lanes: Sequence[QRectF]) -> float | None:
        """Paint the cursor as a dashed line through lanes; its x."""
        x = self._cursor_x
        if x is not None:
            pen = QPen(QColor(self._theme.text), 0, Qt.PenStyle.DashLine)
            self._uprights(painter, [math.floor(x) + 0.5], lanes, pen)
        return x

    def _paint_spans(self, painter: QPainter, lanes: tuple[QRectF, ...]) -> None:
        for a, b, colour in self._spans():
            self._tint_range(painter, (min(a, b), max(a, b)), colour, lanes)

    def _lay_grid(
        self, painter: QPainter, lane: LaneBox, m: TimeMap, across: AxisData, upright: AxisData
    ) -> None:
        """Lines at the ticks of both axes, if the grid is on."""
        if self._grid:
            metrics = self.fontMetrics()
            xs = [m.x(v) for v in across.across(m.width, metrics.horizontalAdvance).positions]
            ys = [lane.y(v) for v in upright.upright(lane.rect.height(), metrics.height()).positions]
            scales.grid(painter, lane, self._theme, xs, ys)

    def _point(self, shape: Qt.CursorShape) -> None:
        """Give the pointer a shape."""
        if self.cursor().shape() != shape:
            self.setCursor(shape)

    def _changing(self, *, base: bool) -> list[QRectF]:
        """The rectangles that another range (`base`) or another fit changes; empty: all."""
        return []

    def _take(self, drag: Drag, region: str, t: float) -> bool:
        """Whether a left press begins a drag of a kind that only this plot has."""
        return False

    def _pull(self, drag: Drag, p: QPointF, t: float) -> None:
        """Continue a drag that `_take` began."""

    def _drop(self, drag: Drag) -> None:
        """Complete a drag that `_take` began."""

    def _abandon(self, drag: Drag) -> None:
        """Undo a drag that `_take` began."""

    def _clicked(self, drag: Drag, t: float) -> None:
        """A left press in the plot that did not move."""

    def _hover_at(self, p: QPointF, region: str) -> None:
        """Show by the shape of the pointer, while no button is held, what a press would do."""

    @abstractmethod
    def menu_at(self, p: QPointF) -> QMenu:
        """The context menu for a place in the plot, with what every plot offers."""

    @abstractmethod
    def table(self) -> Iterable[plot_menu.Row]:
        """The numbers that are shown of the visible range, headings first."""

    @guarded
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Open it by key only: with the mouse it opens on release, as a right drag zooms."""
        if event.reason() == QContextMenuEvent.Reason.Keyboard:
            plot_menu.popup(self, event)
        else:
            event.accept()

    # ---- what is shown -------------------------------------------------------------------------

    def set_selection(self, selection: tuple[float, float] | None) -> None:
        """Mark a range in seconds as selected; None: nothing."""
        self._selection = selection
        self._marks_moved()

    def show_over(self, **layers: object) -> None:
        """Change fields of `OverData`, which is drawn over the values; draw only what differs."""
        previous, self._over = self._over, changed(self._over, layers)
        fields = {
            name for name, value in layers.items()
            if value is not (v := getattr(previous, name)) and (name in ("fit", "predicted") or value != v)
        }  # fmt: skip
        if fields:
            self._over_changed(fields, previous)

    def _over_changed(self, changed: set[str], previous: OverData) -> None:
        """Draw again after a change of these fields."""
        self._redraw()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._redraw()
        self.dirty()

    def set_mode(self, mode: str) -> None:
        """What a left drag does: "select", "pan" or "zoom"."""
        if mode not in ("select", "pan", "zoom"):
            raise ValueError(f"the mode is {mode!r}, it must be 'select', 'pan' or 'zoom'")
        self._mode = mode

    @property
    def grid(self) -> bool:
        """Whether lines are drawn across at the ticks."""
        return self._grid

    def set_grid(self, shown: bool) -> None:
        """Lines across the plot at the ticks of its axes."""
        if shown != self._grid:
            self._grid = shown
            self._redraw()

    def axis_options(self) -> list[plot_menu.AxisOption]:
        """The axes whose range can be chosen."""
        if not self._ready:
            return []
        (a, b), scale = self.visible_range(), self._time_scale[1]
        full = (a, b) == (self._nav.start, self._nav.end)
        return [plot_menu.AxisOption("x", self._time_scale[0], a * scale, b * scale, full, None)]

    def choose_axis(self, axis: str, choice: AxisChoice) -> None:
        """Choose the range of an axis."""
        if axis == "x":
            a, b = self._nav.start, self._nav.end
            low, high = (None if v is None else v / self._time_scale[1] for v in (choice.low, choice.high))
            self.zoom_to(a if low is None else low, b if high is None else high)

    @property
    def _time_scale(self) -> tuple[str, float]:
        """The title of the horizontal axis, and the factor from seconds to its unit."""
        return "Time (s)", 1.0

    def set_percent(self, shown: bool) -> None:
        """Leave room for a scale on the right."""
        self._percent = shown
        self._layout_key = ()
        self._redraw()
        self.dirty()

    def set_cursor(self, seconds: float) -> None:
        """Put the cursor line at a time; NaN takes it away."""
        if seconds != self._cursor and not (math.isnan(seconds) and math.isnan(self._cursor)):
            self._cursor = seconds
            self._marks_moved()

    # ---- what part of it -----------------------------------------------------------------------

    @property
    def navigation(self) -> Navigation:
        """The visible range with its history."""
        return self._nav

    def follow(self) -> None:
        """Redraw, as another plot has changed the range."""
        self._redraw()

    def visible_range(self) -> tuple[float, float]:
        """Start and end in seconds."""
        return self._nav.a, self._nav.b

    def show_all(self) -> None:
        """Show the whole run."""
        self._nav.settle()
        self._show(self._nav.start, self._nav.end)

    def zoom_to(self, a: float, b: float) -> None:
        """Show a range in seconds; `back` returns to the one before."""
        self._nav.settle()
        self._show(a, b)

    def zoom(self, factor: float) -> None:
        """Show 1/`factor` of the range, about the cursor if it is in view, else about the centre."""
        a, b = self.visible_range()
        self._zoom_at(self._cursor if a <= self._cursor <= b else (a + b) / 2, factor)

    def pan(self, fraction: float) -> None:
        """Move by a fraction of the visible range; back if negative."""
        a, b = self.visible_range()
        self._show(a + fraction * (b - a), b + fraction * (b - a))

    def back(self) -> None:
        """Show the range before this one, if there was one."""
        if self._nav.back():
            self._ranged()

    def forward(self) -> None:
        """Show the range that `back` left, if there is one."""
        if self._nav.forward():
            self._ranged()

    def _show(self, a: float, b: float, *, remember: bool = True) -> None:
        if self._ready and self._nav.show(a, b, remember=remember):
            self._ranged()

    def _ranged(self) -> None:
        self._redraw()
        self.rangeChanged.emit(self._nav.a, self._nav.b)

    def _zoom_at(self, t: float, factor: float) -> None:
        a, b = self.visible_range()
        self._show(t - (t - a) / factor, t + (b - t) / factor)

    # ---- painting ------------------------------------------------------------------------------

    def _frame(self, painter: QPainter, r: QRectF) -> None:
        """A hair line around a lane, outside its pixels."""
        half = 0.5 / painter.device().devicePixelRatioF()
        painter.setPen(QPen(QColor(self._theme.border), 0))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(r.adjusted(-half, -half, half, half))

    def prepare(self, dpr: float) -> None:
        key = (self.size(), dpr, self.devicePixelRatioF())
        if key != self._layout_key:
            self._layout(dpr)
            self._arrange()
            self._layout_key = key
            self._stale = self._base_stale = True
        if self._stale:
            self._draw_anew(dpr)
            self._stale = self._base_stale = False
            if self._coarse > 1:
                self._rest_timer.start()  # after the frame, which may be slow

    def _redraw(self, *, base: bool = True) -> None:
        """Draw the pictures again; without `base`, except those that depend on the range alone."""
        self._stale = True
        self._base_stale |= base
        dpr, coarse = self.devicePixelRatioF(), 1
        if not self._exact and self.width() * self.height() * dpr * dpr > MANY_PIXELS:
            coarse = 2
        self._rest_timer.stop()
        self._base_stale |= coarse != self._coarse
        self._coarse = coarse
        self.dirty(*self._changing(base=self._base_stale))
        self._marks_moved()

    def _draw_marks(self, painter: QPainter, _rect: QRectF) -> None:
        if self._ready:
            self._paint_marks(painter)

    def _marks_moved(self) -> None:
        """Repaint where the marks were and where they are."""
        old, self._marked = self._marked, self._mark_rects()
        if old is None or self._marked is None:
            self.dirty()
        elif old or self._marked:
            self.dirty(*old, *self._marked)

    @guarded
    def _sharpen(self) -> None:
        """Draw at full resolution after the last change."""
        self._exact = True
        self._redraw()
        self._exact = False

    def picture(self, scale: float = 2.0) -> QImage:
        """The plot on white at `scale` times the screen's size, without cursor and focus."""
        image = QImage(
            round(self.width() * scale),
            round(self.height() * scale),
            QImage.Format.Format_ARGB32_Premultiplied,
        )
        image.setDevicePixelRatio(scale)
        theme, cursor = self._theme, self._cursor
        self._exact = True
        self.set_theme(theme.on_white)
        self._cursor = math.nan
        self.paint_on(image)
        self._cursor = cursor
        self._exact = False
        self.set_theme(theme)
        return image

    def _grey_outside(self, painter: QPainter, lanes: Iterable[QRectF], m: TimeMap) -> None:
        """A veil over times that are not analysed, with lines at the ends of the limit."""
        if self._over.limit is None:
            return
        veil = faded(self._theme.surface, 205)
        x0, x1 = (min(max(m.x(v), m.left), m.left + m.width) for v in self._over.limit)
        ends = [m.x(v) for v in self._over.limit if m.a < v < m.b]
        for r in lanes:
            painter.fillRect(QRectF(m.left, r.top(), x0 - m.left, r.height()), veil)
            painter.fillRect(QRectF(x1, r.top(), m.left + m.width - x1, r.height()), veil)
            scales.verticals(painter, ends, r.top(), r.bottom(), QPen(QColor(self._theme.text), 1))

    def _add_limit(self, menu: QMenu, t: float) -> None:
        """Add to a context menu: analyse the selected range only, or the whole run again."""
        span = self._selection or self._phase_span(t)
        text = "Limit anal&ysis to this range"
        if self._selection is None and span is not None:
            text = "Limit anal&ysis to this phase"
        menu.addAction(text, lambda: self.limitAsked.emit(span)).setEnabled(span is not None)
        gone = menu.addAction("Remove li&mit of the analysis", lambda: self.limitAsked.emit(None))
        gone.setEnabled(self._over.limit is not None)

    def _phase_span(self, t: float) -> tuple[float, float] | None:
        """The phase at a time, where phases are shown."""
        return None

    def _tint_range(
        self, painter: QPainter, span: tuple[float, float], colour: str, lanes: tuple[QRectF, ...]
    ) -> None:
        """Tint a range of time, with lines at those of its ends that are in view."""
        m = self._map()
        a, b = max(span[0], m.a), min(span[1], m.b)
        if not a <= b:
            return
        x0, x1 = m.x(a), m.x(b)
        for r in lanes:
            painter.fillRect(QRectF(x0, r.top(), x1 - x0, r.height()), faded(colour, 46))
        self._uprights(painter, [m.x(v) for v in span if m.a <= v <= m.b], lanes, QPen(QColor(colour), 1))

    @staticmethod
    def _uprights(painter: QPainter, xs: list[float], lanes: Sequence[QRectF], pen: QPen) -> None:
        """Lines through lanes, clipped to them, so that repainting the lanes removes the lines."""
        with saved(painter):
            for r in lanes:
                painter.setClipRect(r)
                scales.verticals(painter, xs, r.top(), r.bottom(), pen)

    # ---- mouse ---------------------------------------------------------------------------------

    def _time(self, x: float) -> float:
        """The time at a place, within the visible range."""
        return min(max(self._map().time(x), self._nav.a), self._nav.b)

    @guarded
    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self._drag is not None:
            return  # a second button does not disturb the first
        p, button = event.position(), event.button()
        region, t = self._region(p), self._time(p.x())
        drag = Drag("", p, button, *self.visible_range())
        if button == Qt.MouseButton.MiddleButton and region:
            drag.kind = "pan"
        elif button == Qt.MouseButton.RightButton:
            drag.kind, drag.a, drag.b = ("zoom" if region in ("plot", "rail") else "menu"), t, t
        elif button == Qt.MouseButton.LeftButton:
            self._press(drag, region, t, event.modifiers())
        if drag.kind:
            self._drag = drag
            self._nav.settle()
            if drag.kind == "pan":
                self.setCursor(Qt.CursorShape.ClosedHandCursor)
        self._marks_moved()

    def _press(self, drag: Drag, region: str, t: float, modifiers: Qt.KeyboardModifier) -> None:
        in_time = region in ("plot", "rail")
        if region == "axis" or (in_time and (self._space or self._mode == "pan")):
            drag.kind = "pan"
        elif in_time and self._mode == "zoom":
            drag.kind, drag.a, drag.b = "zoom", t, t
        elif in_time and modifiers & Qt.KeyboardModifier.ShiftModifier and self._selection is not None:
            a, b = self._selection
            drag.kind = "select"
            drag.a, drag.moved = (b if abs(t - a) < abs(t - b) else a), True
            self._select(drag.a, t)
        elif self._take(drag, region, t):
            return
        elif region == "plot":
            edge = self._edge_near(drag.press.x())
            drag.kind = "select"
            drag.a = t if edge is None or self._selection is None else self._selection[1 - edge]

    def _edge_near(self, x: float) -> int | None:
        """0 or 1 for the end of the selection near `x`."""
        if self._selection is None:
            return None
        distance = [abs(self._map().x(v) - x) for v in self._selection]
        i = 0 if distance[0] <= distance[1] else 1
        return i if distance[i] <= GRAB else None

    def _select(self, a: float, b: float) -> None:
        self._selection = (min(a, b), max(a, b)) if a != b else None
        self.selectionChanged.emit(self._selection)
        self._marks_moved()

    @guarded
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        p = event.position()
        region, t = self._region(p), self._time(p.x())
        drag = self._drag
        if drag is None:
            self._hover_at(p, region)
        else:
            drag.moved = drag.moved or (p - drag.press).manhattanLength() >= MOVED_PIXELS
            if drag.moved:
                self._move(drag, p, t)
        kind = "" if drag is None else drag.kind
        inside = region in ("plot", "rail", "axis") or kind in ("select", "breakpoint")
        self._move_cursor(t if inside else math.nan)

    def _move(self, drag: Drag, p: QPointF, t: float) -> None:
        if drag.kind == "select":
            self._select(drag.a, t)
        elif drag.kind == "zoom":
            drag.b = t
            self._marks_moved()
        elif drag.kind == "menu":
            pass
        elif drag.kind == "pan":
            shift = (drag.press.x() - p.x()) / self._map().width * (drag.b - drag.a)
            self._show(drag.a + shift, drag.b + shift)
        else:
            self._pull(drag, p, t)

    def _move_cursor(self, t: float) -> None:
        if t != self._cursor and not (math.isnan(t) and math.isnan(self._cursor)):
            self._cursor = t
            self.cursorMoved.emit(t)
            self._marks_moved()

    @guarded
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        drag = self._drag
        if drag is None or event.button() != drag.button:
            return
        self._drag = None
        if drag.kind == "zoom" and drag.moved:
            if drag.a != drag.b:
                self.zoom_to(min(drag.a, drag.b), max(drag.a, drag.b))
        elif drag.kind in ("zoom", "menu") and drag.button == Qt.MouseButton.RightButton:
            self.menu_at(drag.press).popup(event.globalPosition().toPoint())
        elif drag.kind == "select" and not drag.moved:
            self._clicked(drag, self._time(drag.press.x()))
        elif drag.kind not in ("zoom", "select", "pan", "menu"):
            self._drop(drag)
        self._nav.settle()
        self._hover_at(event.position(), self._region(event.position()))
        self._marks_moved()

    def cancel_drag(self) -> bool:
        """Cancel the drag in progress; whether there was one."""
        drag, self._drag = self._drag, None
        if drag is None:
            return False
        if drag.kind == "select":
            self._select(0, 0)
        elif drag.kind == "pan":
            self._show(drag.a, drag.b, remember=False)
        elif drag.kind not in ("zoom", "menu"):
            self._abandon(drag)
        self.unsetCursor()
        self._marks_moved()
        return True

    @guarded
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        self.mousePressEvent(event)

    @guarded
    def wheelEvent(self, event: QWheelEvent) -> None:
        p, turn = event.position(), event.angleDelta()
        if not self._ready or not (turn.x() or turn.y()):
            return
        sideways = event.modifiers() & Qt.KeyboardModifier.ShiftModifier or abs(turn.x()) > abs(turn.y())
        if sideways:
            self.pan(-(turn.y() or turn.x()) / 120 * 0.1)
        else:
            self._zoom_at(self._zoom_centre(p), 1.25 ** (turn.y() / 120))
        event.accept()

    def _zoom_centre(self, p: QPointF) -> float:
        """The time that stays in place when the wheel zooms."""
        return self._time(p.x())

    @guarded
    def leaveEvent(self, event: QEvent) -> None:
        self._move_cursor(math.nan)

    # ---- keys and focus ------------------------------------------------------------------------

    @guarded
    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Space held turns a left drag into a pan; all other keys belong to the window's actions."""
        if event.key() == Qt.Key.Key_Space:
            if not event.isAutoRepeat():
                self._space = True
                self.setCursor(Qt.CursorShape.OpenHandCursor)
            return
        event.ignore()

    @guarded
    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Space:
            if not event.isAutoRepeat():
                self._space = False
                self.unsetCursor()
            return
        event.ignore()

    @guarded
    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.dirty()

    @guarded
    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._space = False
        super().focusOutEvent(event)
        self.dirty()

    @guarded
    def changeEvent(self, event: QEvent) -> None:
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._layout_key = ()
            self._redraw()
            self.dirty()
        super().changeEvent(event)


def stacked(pictures: Sequence[QImage]) -> QImage:
    """Pictures of one width, one below the other."""
    image = QImage(pictures[0].width(), sum(picture.height() for picture in pictures), pictures[0].format())
    top = 0
    with QPainter(image) as painter:
        for picture in pictures:
            painter.drawImage(QRectF(0, top, picture.width(), picture.height()), picture)
            top += picture.height()
    image.setDevicePixelRatio(pictures[0].devicePixelRatio())
    return image


def box_of(metrics: QFontMetrics, rows: list[str], x: float, top: float, bounds: QRectF) -> QRectF:
    """The box of lines of text, right of `x`, or left of it where there is no room."""
    w = max(map(metrics.horizontalAdvance, rows)) + 14
    h = metrics.height() * len(rows) + 8
    left = x + 10 if x + 10 + w <= bounds.right() else x - w - 10
    left = max(left, bounds.left())
    top = max(min(top, bounds.bottom() - h), bounds.top())
    return QRectF(math.floor(left) + 0.5, math.floor(top) + 0.5, w, h)


def paint_box(
    painter: QPainter, rows: list[str], x: float, top: float, bounds: QRectF, theme: Theme
) -> QRectF:
    """Paint lines of text in a box, see `box_of`; returns the box."""
    metrics = painter.fontMetrics()
    box = box_of(metrics, rows, x, top, bounds)
    painter.setPen(QPen(QColor(theme.border), 1))
    painter.setBrush(faded(theme.raised, 235))
    painter.drawRect(box)
    painter.setPen(QColor(theme.text))
    for k, text in enumerate(rows):
        painter.drawText(
            QPointF(box.left() + 7, box.top() + 4 + metrics.ascent() + k * metrics.height()), text
        )
    return box

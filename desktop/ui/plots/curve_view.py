"""The centre of the window: curve, fit, residual and overview over one time axis."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QGuiApplication, QImage, QPainter, QPen, QPixmap
from PySide6.QtWidgets import QMenu, QSizePolicy, QWidget

from desktop.core.curve import StepCurve
from desktop.core.envelope import Columns, envelope
from desktop.ui.plots import fit_overlay, scales
from desktop.ui.plots.navigation import Navigation
from desktop.ui.plots.raster import Raster, mix
from desktop.ui.plots.scales import Lane, Ticks, TimeMap
from desktop.ui.theme import LIGHT, Theme

if TYPE_CHECKING:
    from desktop.core.phases import PhaseFit

# From the bottom of the stack to its top; the fit belongs to the first.
ACTIVITIES = ("computing", "overhead", "io", "idle", "unmeasured")
_GRAB = 5  # logical pixels around a line within which it is taken hold of
_STILL = 4  # a press that moves less than this is a click
# Shares of the fill between mean and maximum, and between minimum and mean.
_FAINT, _HALF = 0.32, 0.6
_MIDDLE = Qt.AlignmentFlag.AlignVCenter


@dataclass
class _Drag:
    """What the pressed mouse button is doing: its kind, where it began, and the state it began from."""

    kind: str  # "select", "edge", "break", "pan", "zoom", "frame", "frame-a", "frame-b"
    press: QPointF
    button: Qt.MouseButton
    a: float = 0.0
    b: float = 0.0
    index: int = 0
    now: float = math.nan
    moved: bool = False


class CurveView(QWidget):
    """Utilization of one run with its phases; all lanes share one time axis, cursor and selection.

    Times are seconds on the curve's own axis. Signals tell what the user did with the mouse; setters change
    the picture without signals, except `rangeChanged`, which follows every change of the visible range.
    `breakDragged` follows the mouse (and ends with the old time if the drag is given up), `breakDropped`
    comes once, when the button is released.
    """

    selectionChanged = Signal(object)
    phaseSelected = Signal(int)
    breakDragged = Signal(int, float)
    breakDropped = Signal(int, float)
    breakAddRequested = Signal(float)
    breakRemoveRequested = Signal(int)
    breakLockToggled = Signal(int)
    cursorMoved = Signal(float)
    rangeChanged = Signal(float, float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme: Theme = LIGHT
        self._curve: StepCurve | None = None
        self._stack: dict[str, StepCurve] = {}
        self._fit: PhaseFit | None = None
        self._locked: tuple[float, ...] = ()
        self._phase: int | None = None
        self._selection: tuple[float, float] | None = None
        self._shown = frozenset({"computing"})
        self._mode = "select"
        self._vertical_locked = True
        self._percent = False
        self._cursor = math.nan
        self._hover: int | None = None
        self._space = False
        self._drag: _Drag | None = None
        self._nav = Navigation()
        self._base: QPixmap | None = None  # what depends on the visible range only
        self._scene: QImage | None = None  # that, with the fit
        self._base_key: tuple[object, ...] = ()
        self._overview: Raster | None = None
        self._rasters: dict[str, Raster] = {}
        self._columns: Columns | None = None
        self._main = Lane(QRectF())
        self._residual = Lane(QRectF())
        self._run = Lane(QRectF())
        self._rail = QRectF()
        self._axis = QRectF()
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(self.tr("Processor-utilization curve"))
        self._describe()

    # ---- what is shown -------------------------------------------------------------------------

    def set_curve(self, curve: StepCurve | None, stack: Mapping[str, StepCurve] | None = None) -> None:
        """Show another curve, in whole; `stack` gives the levels of the activities on the same time axis.

        A curve over the same time (rebuilt by other rules) keeps the visible range and its history.
        """
        same_time = (
            curve is not None
            and self._curve is not None
            and (curve.start, curve.duration) == (self._curve.start, self._curve.duration)
        )
        self._curve = curve
        self._stack = dict(stack or {})
        self._fit = None
        self._phase = None
        if not same_time:
            self._selection = None
            self._cursor = math.nan
            self._drag = None
            if curve is not None:
                self._nav.reset(curve.start, curve.start + curve.duration)
                self.rangeChanged.emit(self._nav.a, self._nav.b)
        self._describe()
        self._redraw()

    def set_fit(self, fit: PhaseFit | None) -> None:
        self._fit = fit
        self._describe()
        self._redraw(base=False)

    def set_locked(self, times: tuple[float, ...]) -> None:
        """Breaks at these times (seconds) are drawn as locked."""
        self._locked = tuple(times)
        self._redraw(base=False)

    def set_phase(self, phase: int | None) -> None:
        """Highlight a phase, counted from 0."""
        if phase != self._phase:
            self._phase = phase
            self._redraw(base=False)

    def set_selection(self, selection: tuple[float, float] | None) -> None:
        self._selection = selection
        self.update()

    def set_shown(self, activities: frozenset[str]) -> None:
        """Which of `ACTIVITIES` are drawn; computing alone gives the plain curve with its extremes."""
        self._shown = frozenset(activities)
        self._redraw()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._overview = None
        self._redraw()

    def set_mode(self, mode: str) -> None:
        """What a left drag does: "select", "pan" or "zoom"."""
        if mode not in ("select", "pan", "zoom"):
            raise ValueError(f"the mode is {mode!r}, it must be 'select', 'pan' or 'zoom'")
        self._mode = mode

    def set_vertical_locked(self, locked: bool) -> None:
        """Processors from 0 to all of them, or else what the visible part needs."""
        self._vertical_locked = locked
        self._redraw()

    def set_percent(self, shown: bool) -> None:
        """Also give the share of all processors, on the right."""
        self._percent = shown
        self._redraw()

    def set_cursor(self, seconds: float) -> None:
        """Put the cursor line at a time; NaN takes it away."""
        self._cursor = seconds
        self.update()

    # ---- what part of it -----------------------------------------------------------------------

    def visible_range(self) -> tuple[float, float]:
        return self._nav.a, self._nav.b

    def show_all(self) -> None:
        self._nav.settle()
        self._show(self._nav.start, self._nav.end)

    def zoom_to(self, a: float, b: float) -> None:
        self._nav.settle()
        self._show(a, b)

    def zoom(self, factor: float) -> None:
        """Show a `factor`-th of the time, about the cursor if it is in view, else about the centre."""
        a, b = self.visible_range()
        self._zoom_at(self._cursor if a <= self._cursor <= b else (a + b) / 2, factor)

    def pan(self, fraction: float) -> None:
        """Go on by a fraction of what is visible; back if negative."""
        a, b = self.visible_range()
        self._show(a + fraction * (b - a), b + fraction * (b - a))

    def back(self) -> None:
        if self._nav.back():
            self._ranged()

    def forward(self) -> None:
        if self._nav.forward():
            self._ranged()

    def _show(self, a: float, b: float, *, remember: bool = True) -> None:
        if self._curve is not None and self._nav.show(a, b, remember=remember):
            self._ranged()

    def _ranged(self) -> None:
        self._redraw()
        self.rangeChanged.emit(self._nav.a, self._nav.b)

    def _zoom_at(self, t: float, factor: float) -> None:
        a, b = self.visible_range()
        self._show(t - (t - a) / factor, t + (b - t) / factor)

    # ---- geometry ------------------------------------------------------------------------------

    def sizeHint(self) -> QSize:
        return QSize(900, 560)

    def minimumSizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(em * 26, em * 22)

    def _map(self) -> TimeMap:
        return TimeMap(self._nav.a, self._nav.b, self._main.rect.left(), self._main.rect.width())

    def _run_map(self) -> TimeMap:
        return TimeMap(self._nav.start, self._nav.end, self._run.rect.left(), self._run.rect.width())

    def _layout(self, dpr: float) -> None:
        """Stack the lanes; all their edges fall on device pixels so that images need no scaling."""
        metrics = self.fontMetrics()
        em = metrics.height()

        def whole(v: float) -> float:
            return round(v * dpr) / dpr

        side = metrics.horizontalAdvance("−0.000") + em + 14
        left = whole(side)
        right = whole(self.width() - (side if self._percent else em))
        width = max(right - left, 1.0)

        def band(top: float, height: float) -> QRectF:
            top = whole(top)
            return QRectF(left, top, width, max(whole(top + height) - top, 1.0))

        self._run = Lane(band(em * 0.5, em * 2.4))
        rail_top = self._run.rect.bottom() + em * 3.0
        self._rail = band(rail_top, em * 1.35)
        bottom = self.height() - (2 * em + 12)
        room = max(bottom - self._rail.bottom() - em * 1.9, 2.0)
        self._main.rect = band(self._rail.bottom(), room * 0.74)
        self._residual.rect = band(self._main.rect.bottom() + em * 1.9, room * 0.26)
        self._axis = QRectF(
            left, self._residual.rect.bottom(), width, self.height() - self._residual.rect.bottom()
        )

    def _limits(self) -> tuple[float, float]:
        """Vertical range of the main lane, processors."""
        assert self._curve is not None
        env = envelope(self._curve)
        whole_low, whole_high, _ = env.range(self._nav.start, self._nav.end)
        if self._vertical_locked or self._stacked:
            low, high = min(0.0, whole_low), max(self._curve.capacity, whole_high)
        else:
            low, high, _ = env.range(self._nav.a, self._nav.b)
        if not high > low:
            low, high = low - 0.5, high + 0.5
        room = (high - low) * 0.05
        return (low - room if low != 0 else 0.0), high + room

    @property
    def _stacked(self) -> bool:
        return bool(self._stack) and self._shown != {"computing"}

    # ---- painting ------------------------------------------------------------------------------

    def paintEvent(self, _event: QEvent) -> None:
        with QPainter(self) as painter:
            self._paint(painter)

    def _paint(self, painter: QPainter) -> None:
        dpr = painter.device().devicePixelRatioF()
        key = (self.size(), dpr, self._nav.a, self._nav.b)
        if self._base is None or key != self._base_key:
            self._layout(dpr)
            self._base, self._base_key, self._scene = self._make_base(dpr), key, None
        if self._scene is None:
            self._scene = self._make_scene(self._base)
        painter.drawImage(0, 0, self._scene)
        if self._curve is not None:
            self._paint_marks(painter)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(self._theme.focus), 1))
            painter.drawRect(QRectF(0.5, 0.5, self.width() - 1, self.height() - 1))

    def _redraw(self, *, base: bool = True) -> None:
        if base:
            self._base = None
        self._scene = None
        self.update()

    def _make_base(self, dpr: float) -> QPixmap:
        pixmap = QPixmap(round(self.width() * dpr), round(self.height() * dpr))
        pixmap.setDevicePixelRatio(dpr)
        t = self._theme
        pixmap.fill(QColor(t.background))
        with QPainter(pixmap) as painter:
            painter.setFont(self.font())
            if self._curve is None:
                painter.setPen(QColor(t.muted))
                message = self.tr("No curve is open. File > Open shows one.")
                painter.drawText(QRectF(self.rect()), Qt.AlignmentFlag.AlignCenter, message)
            else:
                self._main.low, self._main.high = self._limits()
                self._paint_curve(painter, dpr)
                self._paint_overview(painter, dpr)
                self._paint_axes(painter)
        return pixmap

    def _make_scene(self, base: QPixmap) -> QImage:
        image = QImage(base.size(), QImage.Format.Format_RGB32)
        image.setDevicePixelRatio(base.devicePixelRatio())
        with QPainter(image) as painter:
            painter.setFont(self.font())
            painter.drawPixmap(0, 0, base)
            if self._curve is not None:
                self._paint_legend(painter)
                self._paint_residual(painter, self._map())
        if self._curve is not None and self._fit is not None:
            # Between two painters, as it goes at the pixels themselves.
            fit_overlay.draw_breaks(image, self._fit, self._map(), [self._main, self._residual], self._theme)
            with QPainter(image) as painter:
                painter.setFont(self.font())
                self._paint_fit(painter, self._fit)
        return image

    def _raster(self, name: str, lane: Lane, dpr: float) -> Raster:
        """The reused pixel buffer of a lane."""
        w, h = round(lane.rect.width() * dpr), round(lane.rect.height() * dpr)
        raster = self._rasters.get(name)
        if raster is None or (raster.image.width(), raster.image.height()) != (w, h):
            raster = self._rasters[name] = Raster(w, h)
        return raster

    def _curve_raster(self, raster: Raster, lane: Lane, c: Columns, thickness: int) -> None:
        """Solid up to the minimum, lighter to the mean, lightest to the maximum; a line along the mean."""
        t = self._theme
        low, high = lane.low, lane.high
        y = {name: raster.scale(getattr(c, name), low, high) for name in ("minimum", "maximum", "mean")}
        base = np.full(c.mean.size, raster.image.height() * min(high / (high - low), 1.0))
        limits = [np.minimum(v, base) for v in (y["maximum"], y["mean"], y["minimum"])]
        colours = [mix(t.computing, t.background, share) for share in (_FAINT, _HALF, 1.0)]
        raster.areas([*limits, base], colours, QColor(t.background))
        # A column with one jump is drawn as the step it is; where many fall together, their mean.
        single = c.steps <= 2
        enter = np.where(single, raster.scale(c.first, low, high), y["mean"])
        leave = np.where(single, raster.scale(c.last, low, high), y["mean"])
        raster.line(enter, leave, thickness, QColor(t.curve))

    def _paint_curve(self, painter: QPainter, dpr: float) -> None:
        assert self._curve is not None
        raster = self._raster("main", self._main, dpr)
        x = scales.column_edges(self._map(), raster.image.width())
        thickness = max(1, round(dpr))
        self._columns = envelope(self._curve).columns(x)
        if self._stacked:
            self._stack_raster(raster, x, thickness)
        elif "computing" in self._shown:
            self._curve_raster(raster, self._main, self._columns, thickness)
        else:
            raster.image.fill(QColor(self._theme.background))
        raster.draw(painter, self._main.rect.left(), self._main.rect.top())

    def _stack_raster(self, raster: Raster, x: np.ndarray, thickness: int) -> None:
        """Areas to their means, one upon the other; the dips of computing stay visible as a lighter part."""
        t = self._theme
        low, high = self._main.low, self._main.high
        names = [a for a in ACTIVITIES if a in self._shown and a in self._stack]
        total = np.zeros(x.size - 1)
        rows = [raster.scale(total, low, high)]
        colours: list[QColor] = []
        outlines: list[tuple[np.ndarray, QColor]] = []
        for name in names:
            c = envelope(self._stack[name]).columns(x)
            fill = QColor(getattr(t, name))
            if name == "computing":
                rows.append(raster.scale(c.minimum, low, high))
                colours.append(fill)
                fill = mix(t.computing, t.background, _HALF)
            total = total + np.nan_to_num(c.mean)
            rows.append(raster.scale(total, low, high))
            colours.append(fill)
            edge = QColor(t.curve) if name == "computing" else mix(getattr(t, name), t.text, 0.6)
            outlines.append((rows[-1], edge))
        raster.areas(rows[::-1], colours[::-1], QColor(t.background))
        for y, colour in reversed(outlines):
            raster.line(y, y, thickness, colour)

    def _paint_overview(self, painter: QPainter, dpr: float) -> None:
        assert self._curve is not None
        lane = self._run
        raster = self._raster("run", lane, dpr)
        if raster is not self._overview or self._overview_of is not self._curve:
            c = envelope(self._curve).columns(scales.column_edges(self._run_map(), raster.image.width()))
            whole_low, whole_high = float(np.nanmin(c.minimum)), float(np.nanmax(c.maximum))
            lane.low = min(0.0, whole_low)
            lane.high = max(self._curve.capacity, whole_high, lane.low + 1e-9) * 1.08
            self._curve_raster(raster, lane, c, max(1, round(dpr)))
            self._overview, self._overview_of = raster, self._curve
        raster.draw(painter, lane.rect.left(), lane.rect.top())

    _overview_of: StepCurve | None = None

    def _paint_axes(self, painter: QPainter) -> None:
        assert self._curve is not None
        t, m, em = self._theme, self._map(), self.fontMetrics().height()
        ticks = scales.level_ticks(
            self._main.low, self._main.high, self._main.rect.height() / (em * 2.2), whole=True
        )
        ticks = _with_top(ticks, self._curve.capacity, self._main, em)
        scales.level_axis(painter, self._main, ticks, t, self.tr("Processors"))
        if self._percent and self._curve.capacity > 0:
            share = Lane(
                self._main.rect,
                self._main.low / self._curve.capacity * 100,
                self._main.high / self._curve.capacity * 100,
            )
            percent = scales.level_ticks(share.low, share.high, share.rect.height() / (em * 2.2), whole=True)
            scales.level_axis(painter, share, percent, t, self.tr("Share of all (%)"), right=True)
        vertical = scales.time_ticks(
            m.a, m.b, m.width / (self.fontMetrics().horizontalAdvance("000.000") * 1.5)
        )
        xs = [m.x(p) for p in vertical.positions]
        scales.grid(painter, self._main, t, xs, [self._main.y(v) for v in ticks.positions])
        painter.setPen(QPen(QColor(t.border), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        scales.time_axis(painter, self._axis, m, t, self.tr("Time"))
        run = self._run.rect
        scales.time_axis(painter, QRectF(run.left(), run.bottom(), run.width(), em), self._run_map(), t, "")
        painter.setPen(QColor(t.muted))
        gutter = QRectF(0, run.top(), run.left() - 7, run.height())
        painter.drawText(gutter, Qt.AlignmentFlag.AlignRight | _MIDDLE, self.tr("Whole run"))
        for lane in (self._run, self._main):
            self._frame(painter, lane.rect)

    def _frame(self, painter: QPainter, r: QRectF) -> None:
        """A hair line around a lane, outside its pixels."""
        dpr = painter.device().devicePixelRatioF()
        half = 0.5 / dpr
        pen = QPen(QColor(self._theme.border), 0)
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(r.adjusted(-half, -half, half, half))

    def _paint_legend(self, painter: QPainter) -> None:
        t, metrics = self._theme, self.fontMetrics()
        em = metrics.height()
        row = QRectF(self._main.rect.left(), self._rail.top() - em * 1.4, self._main.rect.width(), em * 1.3)
        names = {
            "computing": self.tr("computing"),
            "overhead": self.tr("overhead"),
            "io": self.tr("input/output"),
            "idle": self.tr("idle"),
            "unmeasured": self.tr("not measured"),
        }
        if self._stacked:
            entries = [
                (QColor(getattr(t, a)), names[a]) for a in ACTIVITIES if a in self._shown and a in self._stack
            ]
        else:
            entries = [(QColor(t.computing), self.tr("computing, its mean as a line"))]
            entries.append((mix(t.computing, t.background, _FAINT), self.tr("up to its maximum")))
            entries.append((mix(t.computing, t.background, _HALF), self.tr("down to its minimum")))
        x = row.left()
        steps = (
            int(self._columns.steps.max()) if self._columns is not None and self._columns.steps.size else 0
        )
        note = (
            self.tr("1 pixel stands for up to %n steps", "", steps)
            if steps > 2
            else self.tr("every step is drawn")
        )
        note = note.replace("%n", f"{steps:,}")
        limit = row.right() - metrics.horizontalAdvance(note) - em
        for colour, label in entries:
            w = em * 0.8 + 5 + metrics.horizontalAdvance(label)
            if x + w > limit:
                break
            painter.setPen(QPen(QColor(t.border), 0))
            painter.setBrush(colour)
            painter.drawRect(QRectF(x + 0.5, row.center().y() - em * 0.35, em * 0.7, em * 0.7))
            painter.setPen(QColor(t.text))
            painter.drawText(QRectF(x + em * 0.7 + 5, row.top(), w, row.height()), _MIDDLE, label)
            x += w + em
        if self._fit is not None:
            self._paint_fit_legend(painter, QRectF(x, row.top(), limit - x, row.height()))
        painter.setPen(QColor(t.muted))
        painter.drawText(row, Qt.AlignmentFlag.AlignRight | _MIDDLE, note)

    def _paint_fit_legend(self, painter: QPainter, row: QRectF) -> None:
        t, metrics = self._theme, self.fontMetrics()
        em, y, x = metrics.height(), row.center().y(), row.left()
        for label in (self.tr("fit"), self.tr("break and its range")):
            w = em * 1.1 + 5 + metrics.horizontalAdvance(label)
            if x + w > row.right():
                return
            if x == row.left():
                painter.setPen(QPen(QColor(t.fit), 2))
                painter.drawLine(QLineF(x, y, x + em, y))
            else:
                tint = QColor(t.band)
                tint.setAlpha(60)
                painter.fillRect(QRectF(x, y - em * 0.4, em, em * 0.8), tint)
                painter.setPen(QPen(QColor(t.break_line), 1))
                painter.drawLine(QLineF(x + em / 2, y - em * 0.4, x + em / 2, y + em * 0.4))
            painter.setPen(QColor(t.text))
            painter.drawText(QRectF(x + em + 5, row.top(), w, row.height()), _MIDDLE, label)
            x += w + em

    def _paint_fit(self, painter: QPainter, fit: PhaseFit) -> None:
        t, m = self._theme, self._map()
        em = self.fontMetrics().height()
        if self._phase is not None and 0 <= self._phase < fit.breaks.size - 1:
            x0, x1 = (
                float(v)
                for v in np.clip(m.x(fit.breaks[self._phase : self._phase + 2]), m.left, m.left + m.width)
            )
            tint = QColor(t.accent)
            tint.setAlpha(40 if t.dark else 28)
            for lane in (self._main, self._residual):
                painter.fillRect(QRectF(x0, lane.rect.top(), x1 - x0, lane.rect.height()), tint)
        run = self._run_map()
        xs = run.x(fit.breaks[1:-1]).tolist()
        painter.setPen(QPen(QColor(t.break_line), 0))
        painter.drawLines([QLineF(x, self._run.rect.top(), x, self._run.rect.bottom()) for x in xs])
        if "computing" in self._shown:
            fit_overlay.draw_pieces(painter, fit, m, self._main, t, self._phase)
        self._paint_rail(painter, fit, m, em)

    def _paint_rail(self, painter: QPainter, fit: PhaseFit, m: TimeMap, em: int) -> None:
        """Phase numbers, centred on what is visible of each phase, and a handle for every break."""
        t, r, metrics = self._theme, self._rail, self.fontMetrics()
        painter.fillRect(r, QColor(t.surface))
        show = fit_overlay.visible(fit, m.a, m.b)
        x0 = np.clip(m.x(fit.breaks[show]), r.left(), r.right()).tolist()
        x1 = np.clip(m.x(fit.breaks[show + 1]), r.left(), r.right()).tolist()
        for i, a, b in zip(show.tolist(), x0, x1, strict=True):
            chosen = i == self._phase
            if chosen:
                painter.fillRect(QRectF(a, r.top(), b - a, r.height()), QColor(t.accent))
            label = str(i + 1)
            if b - a > metrics.horizontalAdvance(label) + 8:
                painter.setPen(QColor(t.background if chosen else t.text))
                painter.drawText(QRectF(a, r.top(), b - a, r.height()), Qt.AlignmentFlag.AlignCenter, label)
        inner = [(i, x) for i, x in enumerate(x0, int(show[0]) if show.size else 0) if i > 0 and x > r.left()]
        painter.setPen(QPen(QColor(t.break_line), 1))
        painter.drawLines(
            [QLineF(math.floor(x) + 0.5, r.top(), math.floor(x) + 0.5, r.bottom()) for _, x in inner]
        )
        self._frame(painter, r)
        held = self._held(fit)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for i, x in inner:
            if i in held:
                self._padlock(painter, x, r.bottom() - em * 0.15, em * 0.7)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)

    def _padlock(self, painter: QPainter, x: float, bottom: float, size: float) -> None:
        t = self._theme
        body = QRectF(x - size / 2, bottom - size * 0.65, size, size * 0.65)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(t.break_line), 1.5))
        ring = QRectF(x - size * 0.3, bottom - size * 1.15, size * 0.6, size)
        painter.drawArc(ring, 0, 180 * 16)
        painter.setPen(QPen(QColor(t.surface), 1))
        painter.setBrush(QColor(t.break_line))
        painter.drawRect(body)

    def _held(self, fit: PhaseFit) -> set[int]:
        """Interior breaks that are locked; times may differ by rounding only."""
        if not self._locked or fit.breaks.size < 3:
            return set()
        near = 1e-9 * (fit.breaks[-1] - fit.breaks[0])
        inner = fit.breaks[1:-1]
        nearest = [int(np.argmin(np.abs(inner - t))) for t in self._locked]
        return {i + 1 for i, t in zip(nearest, self._locked, strict=True) if abs(inner[i] - t) <= near}

    def _paint_residual(self, painter: QPainter, m: TimeMap) -> None:
        assert self._curve is not None
        t, lane, fit, metrics = self._theme, self._residual, self._fit, self.fontMetrics()
        em, dpr = metrics.height(), painter.device().devicePixelRatioF()
        head = QRectF(lane.rect.left(), lane.rect.top() - em * 1.5, lane.rect.width(), em * 1.4)
        if fit is None:
            self._frame(painter, lane.rect)
            painter.setPen(QColor(t.muted))
            painter.drawText(
                lane.rect, Qt.AlignmentFlag.AlignCenter, self.tr("The residual appears with a fit.")
            )
            return
        raster = self._raster("residual", lane, dpr)
        x = scales.column_edges(m, raster.image.width())
        r = fit_overlay.residual(envelope(self._curve), fit, x)
        rms = fit.error / np.sqrt(fit.duration)
        show = fit_overlay.visible(fit, m.a, m.b)
        # Means and r.m.s. set the scale; a rare peak far beyond them runs to the rim instead of
        # pressing everything else flat. The bound moves in steps, so that panning does not make it breathe.
        extreme = float(max(np.nanmax(r.maximum), -np.nanmin(r.minimum), 0.0))
        reach = min(extreme, max(float(np.nanmax(np.abs(r.mean))), 4 * float(rms[show].max(initial=0.0))))
        top = _round_up(reach * 1.02) if reach > 1e-9 * max(self._curve.capacity, 1e-300) else 1.0
        lane.low, lane.high = -top, top
        rows = [raster.scale(v, -top, top) for v in (r.maximum, r.minimum)]
        # At least a pixel high, or a column of a single step would have no area at all.
        raster.areas(
            [rows[0], np.maximum(rows[1], rows[0] + 1)],
            [mix(t.residual, t.background, 0.42)],
            QColor(t.background),
        )
        mean = raster.scale(r.mean, -top, top)
        raster.line(mean, mean, max(1, round(dpr)), QColor(t.residual))
        raster.draw(painter, lane.rect.left(), lane.rect.top())
        ticks = scales.level_ticks(-top, top, max(2.0, lane.rect.height() / (em * 1.6)))
        scales.level_axis(painter, lane, ticks, t, self.tr("Residual (proc)"))
        scales.grid(painter, lane, t, [], [lane.y(v) for v in ticks.positions])
        painter.setPen(QPen(QColor(t.break_line), 0))
        painter.drawLine(QLineF(lane.rect.left(), lane.y(0), lane.rect.right(), lane.y(0)))
        self._frame(painter, lane.rect)
        x0 = np.maximum(m.x(fit.breaks[show]), m.left).tolist()
        x1 = np.minimum(m.x(fit.breaks[show + 1]), m.left + m.width).tolist()
        lines = []
        for a, b, v in zip(x0, x1, rms[show].tolist(), strict=True):
            lines += [QLineF(a, lane.y(v), b, lane.y(v)), QLineF(a, lane.y(-v), b, lane.y(-v))]
        painter.setPen(QPen(QColor(t.fit), 1))
        painter.drawLines(lines)
        painter.setPen(QColor(t.text))
        text = self.tr("Curve minus fit: mean, least and greatest")
        painter.drawText(head, _MIDDLE, text)
        at = head.left() + metrics.horizontalAdvance(text) + em
        painter.setPen(QPen(QColor(t.fit), 1))
        painter.drawLine(QLineF(at, head.center().y(), at + em, head.center().y()))
        painter.setPen(QColor(t.text))
        painter.drawText(
            QRectF(at + em + 5, head.top(), 300, head.height()),
            _MIDDLE,
            self.tr("± r.m.s. of each phase"),
        )
        if self._phase is not None and 0 <= self._phase < rms.size:
            note = self.tr("phase {0}: r.m.s. {1} processors, local error {2} processors·√s").format(
                self._phase + 1,
                scales.format_number(float(rms[self._phase])),
                scales.format_number(float(fit.error[self._phase])),
            )
        else:
            note = self.tr("ε = {0} processors·√s").format(scales.format_number(float(fit.epsilon)))
        painter.setPen(QColor(t.muted))
        if at + em * 2 + metrics.horizontalAdvance(self.tr("± r.m.s. of each phase") + note) < head.right():
            painter.drawText(head, Qt.AlignmentFlag.AlignRight | _MIDDLE, note)

    def _paint_marks(self, painter: QPainter) -> None:
        """What follows the mouse: selection, dragged things, visible frame, cursor."""
        t, m, drag = self._theme, self._map(), self._drag
        run = self._run_map()
        both = (self._main.rect, self._residual.rect)
        if self._selection is not None:
            self._paint_range(painter, m, self._selection, t.selection)
            a, b = (
                float(np.clip(run.x(v), self._run.rect.left(), self._run.rect.right()))
                for v in self._selection
            )
            tint = QColor(t.selection)
            tint.setAlpha(80)
            painter.fillRect(QRectF(a, self._run.rect.top(), max(b - a, 1), self._run.rect.height()), tint)
        if drag is not None and drag.kind == "zoom" and drag.moved:
            self._paint_range(painter, m, (drag.a, drag.b), t.accent)
        r = self._run.rect
        veil = QColor(t.background)
        veil.setAlpha(150)
        x0, x1 = run.x(self._nav.a), run.x(self._nav.b)
        if (self._nav.a, self._nav.b) != (self._nav.start, self._nav.end):
            painter.fillRect(QRectF(r.left(), r.top(), x0 - r.left(), r.height()), veil)
            painter.fillRect(QRectF(x1, r.top(), r.right() - x1, r.height()), veil)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(t.accent), 2))
            painter.drawRect(QRectF(x0, r.top(), max(x1 - x0, 3), r.height()))
        line = None
        if drag is not None and drag.kind == "break" and drag.moved:
            line = drag.now
        elif (
            drag is None
            and self._hover is not None
            and self._fit is not None
            and self._hover < self._fit.breaks.size - 1
        ):
            line = float(self._fit.breaks[self._hover])
        if line is not None and m.a <= line <= m.b:
            painter.setPen(QPen(QColor(t.accent), 2))
            x = m.x(line)
            painter.drawLine(QLineF(x, self._rail.top(), x, self._residual.rect.bottom()))
        if m.a <= self._cursor <= m.b:
            x = math.floor(m.x(self._cursor)) + 0.5
            painter.setPen(QPen(QColor(t.text), 0, Qt.PenStyle.DashLine))
            painter.drawLines([QLineF(x, q.top(), x, q.bottom()) for q in both])
            self._paint_readout(painter, m)

    def _paint_range(self, painter: QPainter, m: TimeMap, span: tuple[float, float], colour: str) -> None:
        a, b = max(span[0], m.a), min(span[1], m.b)
        if not a <= b:
            return
        tint = QColor(colour)
        tint.setAlpha(46)
        x0, x1 = m.x(a), m.x(b)
        for r in (self._main.rect, self._residual.rect):
            painter.fillRect(QRectF(x0, r.top(), x1 - x0, r.height()), tint)
            painter.setPen(QPen(QColor(colour), 1))
            ends = [m.x(v) for v in span if m.a <= v <= m.b]
            painter.drawLines([QLineF(x, r.top(), x, r.bottom()) for x in ends])
        metrics = self.fontMetrics()
        label = scales.format_time(span[1] - span[0], (span[1] - span[0]) / 1000 or m.b - m.a)
        w, h = metrics.horizontalAdvance(label) + 10, metrics.height() + 2
        r = self._main.rect
        x = min(max((x0 + x1 - w) / 2, r.left()), r.right() - w)
        painter.setPen(QPen(QColor(colour), 1))
        painter.setBrush(QColor(self._theme.raised))
        box = QRectF(x, r.bottom() - h - 4, w, h)
        painter.drawRect(box)
        painter.setPen(QColor(self._theme.text))
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, label)

    def _paint_readout(self, painter: QPainter, m: TimeMap) -> None:
        """Time, level, phase, fit and residual beside the cursor."""
        assert self._curve is not None
        t, metrics, pixel = self._theme, self.fontMetrics(), (m.b - m.a) / m.width
        c = envelope(self._curve).columns(np.array([self._cursor, self._cursor + pixel]))
        if not c.steps[0]:
            return
        number = scales.format_number
        rows = [scales.format_time(self._cursor, pixel)]
        level = number(float(c.mean[0]))
        if c.minimum[0] != c.maximum[0]:
            level = self.tr("{0} on average ({1} to {2})").format(
                level, number(float(c.minimum[0])), number(float(c.maximum[0]))
            )
        rows.append(self.tr("computing {0}").format(level))
        if self._fit is not None:
            i = self._phase_at(self._cursor)
            value, _ = fit_overlay.polynomial(self._fit, np.array([i]), np.array([self._cursor]))
            rows.append(
                self.tr("phase {0}: fit {1}, residual {2}").format(
                    i + 1, number(float(value[0])), number(float(c.mean[0] - value[0]))
                )
            )
        w = max(map(metrics.horizontalAdvance, rows)) + 14
        h = metrics.height() * len(rows) + 8
        x = m.x(self._cursor) + 10
        if x + w > self._main.rect.right():
            x -= w + 20
        box = QRectF(math.floor(x) + 0.5, self._main.rect.top() + 8.5, w, h)
        ground = QColor(t.raised)
        ground.setAlpha(235)
        painter.setPen(QPen(QColor(t.border), 1))
        painter.setBrush(ground)
        painter.drawRect(box)
        painter.setPen(QColor(t.text))
        for k, text in enumerate(rows):
            painter.drawText(
                QPointF(box.left() + 7, box.top() + 4 + metrics.ascent() + k * metrics.height()), text
            )

    def picture(self, scale: float = 2.0) -> QImage:
        """The view on white at `scale` times the screen's size, without cursor and focus."""
        image = QImage(
            round(self.width() * scale),
            round(self.height() * scale),
            QImage.Format.Format_ARGB32_Premultiplied,
        )
        image.setDevicePixelRatio(scale)
        theme, cursor, hover = self._theme, self._cursor, self._hover
        self.set_theme(LIGHT)
        self._cursor, self._hover = math.nan, None
        with QPainter(image) as painter:
            painter.setFont(self.font())
            self._paint(painter)
        self.set_theme(theme)
        self._cursor, self._hover = cursor, hover
        return image

    def copy_picture(self) -> None:
        """The picture onto the clipboard."""
        QGuiApplication.clipboard().setImage(self.picture())

    def _describe(self) -> None:
        """A sentence for screen readers; the table of phases says the same in numbers."""
        if self._curve is None:
            self.setAccessibleDescription(self.tr("No curve is open."))
            return
        text = self.tr("{0} processors over {1}, on average {2} computing.").format(
            scales.format_number(self._curve.capacity),
            scales.format_time(self._curve.duration, self._curve.duration / 1000),
            scales.format_number(envelope(self._curve).range(-math.inf, math.inf)[2] / self._curve.duration),
        )
        if self._fit is not None:
            text += " " + self.tr("Fitted with {0} phases.").format(self._fit.breaks.size - 1)
        self.setAccessibleDescription(text)

    # ---- mouse ---------------------------------------------------------------------------------

    def _phase_at(self, t: float) -> int:
        assert self._fit is not None
        breaks = self._fit.breaks
        return int(np.clip(np.searchsorted(breaks, t, side="right") - 1, 0, breaks.size - 2))

    def _break_near(self, x: float, reach: float = _GRAB) -> int | None:
        """The interior break within `reach` logical pixels of `x`."""
        if self._fit is None or self._fit.breaks.size < 3:
            return None
        distance = np.abs(self._map().x(self._fit.breaks[1:-1]) - x)
        i = int(np.argmin(distance))
        return i + 1 if distance[i] <= reach else None

    def _edge_near(self, x: float) -> int | None:
        """0 or 1 for the end of the selection near `x`."""
        if self._selection is None:
            return None
        distance = [abs(self._map().x(v) - x) for v in self._selection]
        i = int(np.argmin(distance))
        return i if distance[i] <= _GRAB else None

    def _region(self, p: QPointF) -> str:
        """ "run", "rail", "plot", "axis" or "" for a place in the view."""
        r = self._main.rect
        if not (r.left() - 1 <= p.x() <= r.right() + 1) or self._curve is None:
            return ""
        if self._run.rect.top() <= p.y() <= self._run.rect.bottom():
            return "run"
        if self._rail.top() <= p.y() < self._rail.bottom():
            return "rail"
        if self._rail.bottom() <= p.y() <= self._residual.rect.bottom():
            return "plot"
        return "axis" if p.y() > self._residual.rect.bottom() else ""

    def _time(self, x: float) -> float:
        """The time at a place, within the visible range."""
        return min(max(self._map().time(x), self._nav.a), self._nav.b)

    def mousePressEvent(self, event) -> None:
        if self._drag is not None:
            return  # a second button does not disturb the first
        p, button = event.position(), event.button()
        region, t = self._region(p), self._time(p.x())
        a, b = self.visible_range()
        drag = _Drag("", p, button, a, b)
        if button == Qt.MouseButton.MiddleButton and region:
            drag.kind = "pan"
        elif button == Qt.MouseButton.RightButton and region in ("plot", "rail"):
            drag.kind, drag.a, drag.b = "zoom", t, t
        elif button == Qt.MouseButton.LeftButton:
            if region == "run":
                self._press_overview(drag)
            elif region == "axis" or (region and (self._space or self._mode == "pan")):
                drag.kind = "pan"
            elif region in ("plot", "rail"):
                self._press_plot(drag, region, t, event.modifiers())
        if drag.kind:
            self._drag = drag
            self._nav.settle()
            if drag.kind == "pan":
                self.setCursor(Qt.CursorShape.ClosedHandCursor)
        self.update()

    def _press_overview(self, drag: _Drag) -> None:
        run = self._run_map()
        x, x0, x1 = drag.press.x(), run.x(drag.a), run.x(drag.b)
        whole = (drag.a, drag.b) == (self._nav.start, self._nav.end)
        if abs(x - x0) <= _GRAB:
            drag.kind = "frame-a"
        elif abs(x - x1) <= _GRAB:
            drag.kind = "frame-b"
        elif whole:
            drag.kind, drag.index = "frame-new", 0
        else:
            drag.kind = "frame"
            if not x0 < x < x1:
                t, half = run.time(x), (drag.b - drag.a) / 2
                self._nav.settle()
                self._show(t - half, t + half)
                drag.a, drag.b = self.visible_range()

    def _press_plot(self, drag: _Drag, region: str, t: float, modifiers: Qt.KeyboardModifier) -> None:
        index = self._break_near(drag.press.x())
        edge = self._edge_near(drag.press.x())
        if self._mode == "zoom":
            drag.kind, drag.a, drag.b = "zoom", t, t
        elif modifiers & Qt.KeyboardModifier.ShiftModifier and self._selection is not None:
            a, b = self._selection
            drag.kind = "select"
            drag.a, drag.moved = (b if abs(t - a) < abs(t - b) else a), True
            self._select(drag.a, t)
        elif index is not None and self._fit is not None:
            drag.kind, drag.index, drag.now = "break", index, float(self._fit.breaks[index])
            drag.a = drag.now
        elif edge is not None and self._selection is not None and region == "plot":
            drag.kind, drag.a = "select", self._selection[1 - edge]
        elif region == "plot":
            drag.kind, drag.a = "select", t
        elif self._fit is not None:
            self.phaseSelected.emit(self._phase_at(t))

    def _select(self, a: float, b: float) -> None:
        self._selection = (min(a, b), max(a, b)) if a != b else None
        self.selectionChanged.emit(self._selection)
        self.update()

    def mouseMoveEvent(self, event) -> None:
        p = event.position()
        region = self._region(p)
        drag = self._drag
        if drag is None:
            self._hover_at(p, region)
        else:
            drag.moved = drag.moved or (p - drag.press).manhattanLength() >= _STILL
            if drag.moved:
                self._move(drag, p)
        inside = region in ("plot", "rail", "axis") or (drag is not None and drag.kind in ("select", "break"))
        self._move_cursor(self._time(p.x()) if inside else math.nan)

    def _hover_at(self, p: QPointF, region: str) -> None:
        hover = self._break_near(p.x()) if region in ("plot", "rail") and self._mode == "select" else None
        if hover != self._hover:
            self._hover = hover
            self.update()
        shape = Qt.CursorShape.ArrowCursor
        if self._space or (self._mode == "pan" and region in ("plot", "rail")):
            shape = Qt.CursorShape.OpenHandCursor
        elif region == "run":
            run, x = self._run_map(), p.x()
            ends = min(abs(run.x(v) - x) for v in self.visible_range())
            shape = Qt.CursorShape.SizeHorCursor if ends <= _GRAB else Qt.CursorShape.OpenHandCursor
        elif hover is not None or (region == "plot" and self._edge_near(p.x()) is not None):
            shape = Qt.CursorShape.SplitHCursor
        elif region == "rail":
            shape = Qt.CursorShape.PointingHandCursor
        elif region == "plot":
            shape = Qt.CursorShape.CrossCursor
        if self.cursor().shape() != shape:
            self.setCursor(shape)

    def _move_cursor(self, t: float) -> None:
        if t != self._cursor and not (math.isnan(t) and math.isnan(self._cursor)):
            self._cursor = t
            self.cursorMoved.emit(t)
            self.update()

    def _move(self, drag: _Drag, p: QPointF) -> None:
        m, run, t = self._map(), self._run_map(), self._time(p.x())
        if drag.kind == "select":
            self._select(drag.a, t)
        elif drag.kind == "zoom":
            drag.b = t
            self.update()
        elif drag.kind == "break":
            self._move_break(drag, t)
        elif drag.kind == "pan":
            shift = (drag.press.x() - p.x()) / m.width * (drag.b - drag.a)
            self._show(drag.a + shift, drag.b + shift)
        else:
            shift = (p.x() - drag.press.x()) / run.width * (run.b - run.a)
            here = min(max(run.time(p.x()), run.a), run.b)
            if drag.kind == "frame":
                self._show(drag.a + shift, drag.b + shift)
            elif drag.kind == "frame-a":
                self._show(min(drag.a + shift, drag.b), drag.b)
            elif drag.kind == "frame-b":
                self._show(drag.a, max(drag.b + shift, drag.a))
            else:
                there = run.time(drag.press.x())
                self._show(min(here, there), max(here, there))

    def _move_break(self, drag: _Drag, t: float) -> None:
        fit = self._fit
        if fit is None or drag.index > fit.breaks.size - 2:
            self._drag = None  # the fit under the drag has gone
            return
        # Never onto a neighbour: a phase keeps some width, a pixel if there is room.
        low, high = float(fit.breaks[drag.index - 1]), float(fit.breaks[drag.index + 1])
        keep = min((self._nav.b - self._nav.a) / self._map().width, (high - low) / 4)
        drag.now = min(max(t, low + keep), high - keep)
        self.breakDragged.emit(drag.index, drag.now)
        self.update()

    def mouseReleaseEvent(self, event) -> None:
        drag = self._drag
        if drag is None or event.button() != drag.button:
            return
        self._drag = None
        if drag.kind == "break" and drag.moved:
            self.breakDropped.emit(drag.index, drag.now)
        elif drag.kind == "zoom" and drag.moved:
            if drag.a != drag.b:
                self.zoom_to(min(drag.a, drag.b), max(drag.a, drag.b))
        elif drag.kind == "zoom" and drag.button == Qt.MouseButton.RightButton:
            self.menu_at(drag.press).popup(event.globalPosition().toPoint())
        elif drag.kind == "select" and not drag.moved and self._selection is not None:
            self._select(0, 0)
        self._nav.settle()
        self._hover_at(event.position(), self._region(event.position()))
        self.update()

    def cancel_drag(self) -> bool:
        """Give up what the mouse is doing; whether there was anything to give up."""
        drag, self._drag = self._drag, None
        if drag is None:
            return False
        if drag.kind == "break" and drag.moved:
            self.breakDragged.emit(drag.index, drag.a)
        elif drag.kind == "select":
            self._select(0, 0)
        elif drag.kind in ("pan", "frame", "frame-a", "frame-b", "frame-new"):
            self._show(drag.a, drag.b, remember=False)
        self.unsetCursor()
        self.update()
        return True

    def mouseDoubleClickEvent(self, event) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        region = self._region(event.position())
        if region in ("axis", "run"):
            self.show_all()
        elif region and self._fit is not None:
            self.phaseSelected.emit(self._phase_at(self._time(event.position().x())))

    def wheelEvent(self, event) -> None:
        p, turn = event.position(), event.angleDelta()
        if self._curve is None or not (turn.x() or turn.y()):
            return
        sideways = event.modifiers() & Qt.KeyboardModifier.ShiftModifier or abs(turn.x()) > abs(turn.y())
        if sideways:
            self.pan(-(turn.y() or turn.x()) / 120 * 0.1)
        elif self._region(p) == "run":
            a, b = self.visible_range()
            self._zoom_at((a + b) / 2, 1.25 ** (turn.y() / 120))
        else:
            self._zoom_at(self._time(p.x()), 1.25 ** (turn.y() / 120))
        event.accept()

    def leaveEvent(self, event) -> None:
        self._hover = None
        self._move_cursor(math.nan)
        super().leaveEvent(event)

    def keyPressEvent(self, event) -> None:
        """Space held turns a left drag into a pan; all other keys belong to the window's actions."""
        if event.key() == Qt.Key.Key_Space:
            if not event.isAutoRepeat():
                self._space = True
                self.setCursor(Qt.CursorShape.OpenHandCursor)
            return
        super().keyPressEvent(event)

    def keyReleaseEvent(self, event) -> None:
        if event.key() == Qt.Key.Key_Space:
            if not event.isAutoRepeat():
                self._space = False
                self.unsetCursor()
            return
        super().keyReleaseEvent(event)

    def focusInEvent(self, event) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event) -> None:
        self._space = False
        super().focusOutEvent(event)
        self.update()

    def changeEvent(self, event) -> None:
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._redraw()
        super().changeEvent(event)

    def menu_at(self, p: QPointF) -> QMenu:
        """The context menu for a place in the plot."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        t, near, fit = self._time(p.x()), self._break_near(p.x(), 2 * _GRAB), self._fit
        add = menu.addAction(self.tr("&Add break here"), lambda: self.breakAddRequested.emit(t))
        add.setEnabled(fit is not None and near is None)
        number = near or 0
        remove = menu.addAction(self.tr("&Remove break"), lambda: self.breakRemoveRequested.emit(number))
        held = fit is not None and near in self._held(fit)
        label = self.tr("Un&lock break") if held else self.tr("&Lock break")
        lock = menu.addAction(label, lambda: self.breakLockToggled.emit(number))
        for action in (remove, lock):
            action.setEnabled(near is not None)
        menu.addSeparator()
        to_phase = menu.addAction(self.tr("&Zoom to phase"), lambda: self._zoom_to_phase(t))
        to_phase.setEnabled(fit is not None)
        menu.addAction(self.tr("&Show all"), self.show_all)
        menu.addSeparator()
        menu.addAction(self.tr("&Copy picture"), self.copy_picture)
        return menu

    def _zoom_to_phase(self, t: float) -> None:
        if self._fit is not None:
            i = self._phase_at(t)
            self.zoom_to(float(self._fit.breaks[i]), float(self._fit.breaks[i + 1]))


def _with_top(ticks: Ticks, top: float, lane: Lane, em: int) -> Ticks:
    """The ticks with one at `top`, the number of all processors, in place of any too near to it."""
    if not lane.low <= top <= lane.high:
        return ticks
    kept = [
        (p, s)
        for p, s in zip(ticks.positions, ticks.labels, strict=True)
        if abs(lane.y(p) - lane.y(top)) > em
    ]
    kept.append((top, scales.format_number(top)))
    return Ticks([p for p, _ in kept], [s for _, s in kept])


def _round_up(value: float) -> float:
    """The next of 1, 1.5, 2, 3, 5, 7.5, 10 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next((m * power for m in (1, 1.5, 2, 3, 5, 7.5) if m * power >= value), 10 * power)

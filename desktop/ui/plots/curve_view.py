"""The upper part of the window's centre: curve, fit, residual and overview over one time axis."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QImage, QMouseEvent, QPainter, QPaintEvent, QPen, QRegion, QWheelEvent
from PySide6.QtWidgets import QMenu

from desktop.core.curve import StepCurve
from desktop.core.envelope import Columns, envelope
from desktop.core.pieces import breakpoints, fitted, residual
from desktop.core.quantity import PROCESSORS
from desktop.core.units import format_number, grouped, signed
from desktop.data.chart import AxisChoice
from desktop.ui.guard import guarded, in_ems, in_pixels, saved
from desktop.ui.pages import passing_menu
from desktop.ui.plots import curve_lanes, fit_overlay, plot_menu, scales
from desktop.ui.plots.legend import Legend
from desktop.ui.plots.notes import NoteItems, plain
from desktop.ui.plots.raster import Raster
from desktop.ui.plots.scales import LaneBox, TimeMap, words
from desktop.ui.plots.scene import Draw, blit, place_lane, title_reach
from desktop.ui.plots.time_plot import GRAB, Drag, TimePlot, box_of, paint_box
from desktop.ui.theme import Theme, faded
from desktop.workbench.levels import (
    AT_FIRST,
    Heights,
    Levels,
    heights_of,
    limits,
    moved,
    note,
    stretched,
    zoomed,
)
from desktop.workbench.model import Annotation
from desktop.workbench.time_plots import (
    AxisData,
    LaneData,
    LegendData,
    OverData,
    PlotData,
    RunData,
    curve_lane,
    percent_axis,
    residual_lane,
    run_legend,
    run_plot,
    stack_lane,
    time_axis,
    track_lane,
)

if TYPE_CHECKING:
    from desktop.core.phases import PhaseFit

_MIDDLE = Qt.AlignmentFlag.AlignVCenter
#: Heights, in lines of text, from which on the overview and the residual are shown.
_OVERVIEW, _RESIDUAL = 16, 21
#: Height of a track in lines of text, and of all tracks together as a part of the room for lanes.
_TRACK, _LEAST_TRACK, _TRACKS = 4.5, 2.8, 0.6
#: What a click in the legend switches, where there is room for the overview or the residual.
_RESIDUAL_LANE = "residual lane"


@dataclass(frozen=True)
class Reading:
    """The curve at an instant, and over the pixel column in which it lies; processors.

    `phase` from 0, None without a fit; `fit` its value at the instant.
    """

    level: float
    mean: float
    minimum: float
    maximum: float
    phase: int | None = None
    fit: float = math.nan


def _first_other(old: Columns, c: Columns) -> int:
    """The first column in which they differ; their number if none does."""
    differs = np.zeros(c.steps.size, bool)
    for a, b in zip(old, c, strict=True):
        differs |= a.view(np.int64) != b.view(np.int64)  # NaN is like NaN
    return int(np.argmax(differs)) if differs.any() else differs.size


class CurveView(TimePlot):
    """Utilization of one run with its phases; all lanes share one time axis, cursor and selection.

    Signals follow the mouse: `breakpointDragged` every move (the last one has the old time if the drag is
    cancelled), `breakpointDropped` once, when the button is released.
    """

    FIGURE, HELP = "curve", "guide.md#the-curve"
    phaseSelected = Signal(int)
    breakpointDragged = Signal(int, float)
    breakpointDropped = Signal(int, float)
    breakpointAddRequested = Signal(float)
    breakpointRemoveRequested = Signal(int)
    breakpointLockToggled = Signal(int)
    classToggled = Signal(str)
    noteAsked = Signal(float)
    noteActivated = Signal(int)
    curvesAsked = Signal()
    levelsChanged = Signal(object)  # how levels are shown, by a gesture: `desktop.workbench.levels.Levels`

    def __init__(
        self, without: str = "No curve is open. File > Open shows one.", *, one_beside: bool = False
    ) -> None:
        """`without`: the text shown without a curve. `one_beside`: overview or residual, never both; the
        hidden one is not computed."""
        super().__init__()
        self._without, self._one_beside = without, one_beside
        self._curve: StepCurve | None = None
        self._stack: dict[str, StepCurve] = {}
        self._activities = frozenset({"computing"})
        self._levels = AT_FIRST
        self._hover: int | None = None
        self._overview: Raster | None = None
        self._grown: list[tuple[QRectF, Draw]] = []  # what alone is to be painted, and by what
        self._drawn: dict[
            str, tuple[tuple[object, ...], Columns, float]
        ] = {}  # on sheets: how, what, its end
        self._columns: Columns | None = None
        self._main = LaneBox(QRectF())
        self._residual = LaneBox(QRectF())
        self._residual_first = self._room_for_one = False
        self._parts: tuple[object, ...] = ()  # what there was to be seen
        self._run = LaneBox(QRectF())
        self._rail = QRectF()
        self._axis = QRectF()
        self._tracks: tuple[StepCurve, ...] = ()
        self._track_boxes: list[LaneBox] = []
        self._track_lanes: list[LaneData] = []
        self._legend = Legend()
        self._notes = NoteItems()
        self._plot: PlotData | None = None  # what the pictures show
        self._described: LaneData | None = None  # and the base of that of the curve
        self._build()
        self.setAccessibleName("Processor-utilization curve")
        self._describe()

    # ---- what is shown -------------------------------------------------------------------------

    def set_curve(self, curve: StepCurve | None, stack: Mapping[str, StepCurve] | None = None) -> None:
        """Show another curve, all of it; `stack`: the levels of the activities on the same time axis.

        A curve over the same time (rebuilt by other rules) keeps the visible range and its history.
        """
        same_time = curve is not None and self._curve is not None and curve.span == self._curve.span
        self._curve = curve
        self._stack = dict(stack or {})
        if curve is not None and curve.quantity != PROCESSORS:
            self._stack = {}
        self._over = replace(self._over, fit=None, phase=None)
        if not same_time:
            self._selection = None
            self._cursor = math.nan
            self._drag = None
            if curve is not None:
                self._nav.reset(*curve.span)
                self.rangeChanged.emit(self._nav.a, self._nav.b)
        self._describe()
        self._redraw()
        self.dirty()

    def grow(
        self, curve: StepCurve, stack: Mapping[str, StepCurve], fit: PhaseFit | None, until: float
    ) -> None:
        """Show a run that has grown: its curve with its fit, on an axis up to `until` (s). A view of the
        whole run stays whole. While the axis stays the same, only what differs is painted."""
        first, same_axis = self._curve is None, self._nav.end == until
        self._curve, self._stack, self._over = curve, dict(stack), replace(self._over, fit=fit)
        if first:
            self._nav.reset(curve.start, until)
        if first or (not same_axis and self._nav.reach(until)):
            self.rangeChanged.emit(self._nav.a, self._nav.b)
        self._describe()
        if not self.isVisible() or not self._layout_key or first or not same_axis:
            self._redraw()
            self.dirty()
            return
        old, seen, steps = self._plot, self._levels_seen, self._steps_note
        self._rest_timer.stop()
        self._coarse = 1  # it would be drawn twice
        self._stale = self._base_stale = True
        self.prepare(self.viewport().devicePixelRatioF())
        rects = self._differing(old, seen, steps)
        self.dirty(*(rect for rect, _ in rects))
        self._grown = rects
        self._marks_moved()

    def _differing(
        self, old: PlotData | None, seen: tuple[float, float, bool], steps: str
    ) -> list[tuple[QRectF, Draw]]:
        """The rectangles that a grown run changes on the same time axis, with their paint functions; empty:
        all."""
        new, second = self._plot, [] if old is None else old.lanes[1:]
        if old is None or new is None or seen != self._levels_seen or self._tracks:
            return []
        if (old.fit is None) != (new.fit is None):
            return []
        rects: list[tuple[QRectF, Draw]] = [
            (self._main.rect, self._draw_main),
            (self._run.rect, self._draw_run),
        ]
        if self._over.fit is not None:
            rects.append((self._rail, self._draw_rail))
        if self._residual.rect.height():
            rects.append((self._residual.rect, self._draw_residual))
        if [lane.note for lane in new.lanes[1:]] != [lane.note for lane in second]:
            rects.append((self._heading_rect, self._on_ground(self._paint_heading)))
        if [lane.axis for lane in new.lanes[1:]] != [lane.axis for lane in second]:
            r, beside = self._residual.rect, (self._paint_residual_axis, self._paint_levels, self._paint_time)
            reach = title_reach(r.height())
            gutter = QRectF(0, r.top() - reach, r.left(), r.height() + 2 * reach)
            rects.append((gutter, self._on_ground(*beside)))
        if (new.legend, new.doubt, self._steps_note) != (old.legend, old.doubt, steps):
            rects.append((self._head_rect, self._on_ground(self._paint_legend)))
        return rects

    def _on_ground(self, *draws: Draw) -> Draw:
        """A function that paints the ground and then these."""

        def drawn(painter: QPainter, rect: QRectF) -> None:
            painter.fillRect(rect, QColor(self._theme.background))
            for draw in draws:
                draw(painter, rect)

        return drawn

    def dirty(self, *rects: QRectF) -> None:
        self._grown = []
        super().dirty(*rects)

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the changes of a grown run without the scene, which takes five times as long."""
        parts, self._grown = self._grown, []
        uncovered = QRegion(event.region())
        for rect, _ in parts:
            uncovered -= QRegion(rect.toAlignedRect())
        watched = self.viewportUpdateMode() != self.ViewportUpdateMode.NoViewportUpdate  # items of scripts
        if not parts or watched or not uncovered.isEmpty():
            super().paintEvent(event)
            return
        with QPainter(self.viewport()) as painter:
            painter.setFont(self.font())
            for rect, draw in parts:
                painter.setClipRect(rect)
                draw(painter, rect)
            painter.setClipRegion(event.region())
            self._paint_frames(painter, QRectF())
            self._paint_marks(painter)

    def set_tracks(self, curves: Sequence[StepCurve]) -> None:
        """Show more curves over the same time below, each with an axis of its own."""
        if tuple(curves) != self._tracks:
            self._tracks = tuple(curves)
            self._layout_key = ()
            self._redraw()
            self.dirty()

    def _over_changed(self, changed: set[str], previous: OverData) -> None:
        if "predicted" in changed and self._curve is not None:
            # The axis is as long as the longer of the two runs.
            start, predicted = self._curve.start, self._over.predicted
            longer = 0.0 if predicted is None else predicted.duration_s
            if self._nav.reach(start + max(self._curve.duration, longer)):
                self.rangeChanged.emit(self._nav.a, self._nav.b)
        if changed & {"fit", "doubt"}:
            self._describe()
        self._redraw(base=not changed <= {"fit", "firm", "locked", "phase"})
        named = [None if f is None else (f.n, f.model) for f in (self._over.fit, previous.fit)]
        if None in named and named[0] != named[1]:
            self.dirty()  # the rail comes or goes as well
        elif named[0] != named[1] or "firm" in changed:
            self.dirty(self._head_rect)  # the legend says it

    def set_annotations(self, annotations: tuple[Annotation, ...], locations: Sequence[str] = ()) -> None:
        """Draw these annotations; `locations`: the names that theirs refer to."""
        self._notes.set(annotations, locations)
        self._redraw(base=False)

    def set_shown(self, activities: frozenset[str]) -> None:
        """Choose the activities drawn; computing alone gives the plain curve with its extremes."""
        self._activities = frozenset(activities)
        self._redraw()
        self.dirty()

    @property
    def activities(self) -> frozenset[str]:
        """The activities that are drawn."""
        return self._activities

    def set_theme(self, theme: Theme) -> None:
        self._overview = None
        super().set_theme(theme)

    @property
    def levels(self) -> Levels:
        """How levels are shown."""
        return self._levels

    def set_levels(self, levels: Levels) -> None:
        """Choose how levels are shown; unlike a choice of the user it emits no `levelsChanged`."""
        if levels != self._levels:
            self._levels = levels
            self._redraw()

    def _change_levels(self, levels: Levels) -> None:
        if levels != self._levels:
            self.set_levels(levels)
            self.levelsChanged.emit(levels)

    @property
    def heights(self) -> Heights | None:
        """The heights for a vertical axis of the visible range; None without a curve."""
        curve = self._curve
        return None if curve is None else heights_of(curve, self._nav.a, self._nav.b)

    @property
    def levels_note(self) -> str:
        """A note on an axis that does not show all processors; "" if it does."""
        heights = self.heights
        return "" if heights is None else note(self._levels, heights)

    def zoom_levels(self, factor: float, about: float | None = None) -> None:
        """Zoom in on levels by `factor`, about one of them or from the lower end."""
        heights = self.heights
        if heights is not None:
            self._change_levels(zoomed(self._levels, heights, factor, about))

    def move_levels(self, part: float) -> None:
        """Move up by a part of the visible levels; down if negative."""
        heights = self.heights
        if heights is not None:
            self._change_levels(moved(self._levels, heights, part))

    def fit_levels(self) -> None:
        """Fit the vertical axis to the visible part."""
        self._change_levels(Levels("fit", log=self._levels.log))

    def show_all_levels(self) -> None:
        """Show 0 to all processors."""
        self._change_levels(Levels("all", log=self._levels.log))

    def reset_levels(self) -> None:
        """Show the first range: all processors, or that of a low curve."""
        self._change_levels(Levels("start", log=self._levels.log))

    def axis_options(self) -> list[plot_menu.AxisOption]:
        options = super().axis_options()
        heights = self.heights
        if heights is not None:
            free, log = self._levels.mode != "hand", self._levels.log
            ends = limits(self._levels, heights)
            options.append(plot_menu.AxisOption("y", self._curve_axis, *ends, free, log))
        return options

    @property
    def _curve_axis(self) -> str:
        return "" if self._curve is None else self._curve.quantity.axis

    def choose_axis(self, axis: str, choice: AxisChoice) -> None:
        if axis == "x":
            super().choose_axis(axis, choice)
        elif choice.low is None or choice.high is None:
            mode = "start" if self._levels.mode == "hand" else self._levels.mode
            self._change_levels(Levels(mode, log=bool(choice.log)))
        else:
            self._change_levels(Levels("hand", choice.low, choice.high, bool(choice.log)))

    def set_logarithmic(self, log: bool) -> None:
        """Make the axis logarithmic or linear; this ends a range set by hand."""
        mode = "start" if self._levels.mode == "hand" else self._levels.mode
        self._change_levels(Levels(mode, log=log))

    @property
    def _ready(self) -> bool:
        return self._curve is not None

    # ---- geometry ------------------------------------------------------------------------------

    sizeHint = in_pixels(900, 560)
    minimumSizeHint = in_ems(20, 10)

    def _map(self) -> TimeMap:
        return TimeMap(self._nav.a, self._nav.b, self._main.rect.left(), self._main.rect.width())

    @property
    def residual_first(self) -> bool:
        """Whether the residual is drawn above the curve."""
        return self._residual_first

    def set_residual_first(self, first: bool) -> None:
        """Show the residual instead of the overview where there is no room for both."""
        self._residual_first = first
        self._layout_key = ()
        self._redraw()
        self.dirty()

    def _run_map(self) -> TimeMap:
        return TimeMap(self._nav.start, self._nav.end, self._run.rect.left(), self._run.rect.width())

    def _layout(self, dpr: float) -> None:
        """Stack the lanes.

        With little height the residual is left out first, or the overview if the user prefers the residual
        (it is then out of sight, above); then the other.
        """
        em, band = self.fontMetrics().height(), self._band(dpr)
        height = self.height() - _LEAST_TRACK * em * len(self._tracks)
        enough, both = height >= _OVERVIEW * em, height >= _RESIDUAL * em and not self._one_beside
        overview, residual = (
            both or (enough and not self._residual_first),
            both or (enough and self._residual_first),
        )
        self._room_for_one = enough and not both
        self._run = LaneBox(band(em * (0.5 if overview else -5), em * 2.4))
        rail_top = self._run.rect.bottom() + em * 3.0 if overview else em * 1.5
        self._rail = band(rail_top, em * 1.35)
        bottom = self.height() - (2 * em + 12)
        gap = em * 1.9 if residual else 0.0
        room = max(bottom - self._rail.bottom() - gap, 2.0)
        # The curve that is fitted keeps most of the height.
        track = min(_TRACK * em, _TRACKS * room / max(len(self._tracks), 1))
        room -= len(self._tracks) * track
        self._main.rect = band(self._rail.bottom(), room * (0.74 if residual else 1.0))
        main = self._main.rect
        self._residual.rect = QRectF(main.left(), main.bottom(), main.width(), 0.0)
        if residual:
            self._residual.rect = band(main.bottom() + gap, room * 0.26)
        top = self._residual.rect.bottom()
        space = min(0.5 * em, 0.2 * track)
        self._track_boxes = [
            LaneBox(band(top + k * track + space, track - space)) for k in range(len(self._tracks))
        ]
        top = self._bottom
        self._axis = QRectF(main.left(), top, main.width(), self.height() - top)

    @property
    def _bottom(self) -> float:
        """The bottom of the lowest lane."""
        return (self._track_boxes[-1] if self._track_boxes else self._residual).rect.bottom()

    @property
    def _tracks_rect(self) -> QRectF:
        """The rectangle of all tracks with their axes."""
        if not self._track_boxes:
            return QRectF()
        first, last = self._track_boxes[0].rect, self._track_boxes[-1].rect
        return QRectF(0, first.top() - 4, first.right() + 1, last.bottom() - first.top() + 8)

    @property
    def _lanes(self) -> tuple[QRectF, ...]:
        """The lanes over the visible range that have room."""
        lanes = (self._main, self._residual, *self._track_boxes)
        return tuple(lane.rect for lane in lanes if lane.rect.height())

    @property
    def _stacked(self) -> bool:
        return bool(self._stack) and self._activities != {"computing"}

    # ---- painting ------------------------------------------------------------------------------

    def _build(self) -> None:
        """Make the items of the scene: a plot for each lane, and strips between them."""
        self._tracks_item, self._head, self._rail_item, self._heading, self._frames, self._empty = (
            self._add_strips(
                self._paint_tracks, self._paint_legend, self._draw_rail, self._paint_heading,
                self._paint_frames, self._paint_empty,
            )
        )  # fmt: skip
        self._add_lane("overview", self._draw_run, self._paint_name)
        self._add_lane("curve", self._draw_main, self._paint_levels, self._paint_shares)
        self._add_lane("residual", self._draw_residual, self._paint_residual_axis)
        self._time_axes = [
            self._add_time_axis(self._paint_whole_time, "overview"),
            self._add_time_axis(self._paint_time, "curve"),
        ]
        self._frames.setZValue(40)

    def _arrange(self) -> None:
        em, area = self.fontMetrics().height(), QRectF(self.rect())
        main, residual, run = self._main.rect, self._residual.rect, self._run.rect
        place_lane(self.lanes["overview"], run)
        place_lane(self.lanes["curve"], main, right=area.right() - main.right())
        if residual.height():
            self.lanes["residual"].setVisible(
                True
            )  # pyqtgraph leaves the axes of a hidden plot where they are
            place_lane(self.lanes["residual"], residual)
        self._time_axes[0].place(QRectF(run.left(), run.bottom(), run.width(), em + 8))
        self._time_axes[1].place(self._axis)
        self._head.place(self._head_rect)
        self._rail_item.place(self._rail)
        self._tracks_item.place(self._tracks_rect)
        self._heading.place(self._heading_rect)
        for item in (self._frames, self._empty, self._above):
            item.place(area)
        self._parts = ()
        self._show_parts()

    def _show_parts(self) -> None:
        """Show the items of what there is to be seen."""
        open_, low = self._curve is not None, bool(self._residual.rect.height())
        parts = open_, self._over.fit is not None, self._lanes
        if parts == self._parts:
            return
        self._parts = parts
        self._empty.setVisible(not open_)
        self.set_opaque(*(self._lanes if open_ else ()))
        for item in (*self.lanes.values(), *self._time_axes, self._head, self._frames):
            item.setVisible(open_)
        self._tracks_item.setVisible(open_ and bool(self._track_boxes))
        self.lanes["residual"].setVisible(open_ and low)
        self._heading.setVisible(open_ and low and self._over.fit is not None)
        self._rail_item.setVisible(open_ and self._over.fit is not None)

    def _changing(self, *, base: bool) -> list[QRectF]:
        if self._curve is None or not self._layout_key:
            return []
        em, main, residual = self.fontMetrics().height(), self._main.rect, self._residual.rect
        # The residual has a range of its own with every fit.
        rects = [main.united(self._rail).adjusted(0, -1, 0, 0), self._run.rect]
        if residual.height():
            reach = title_reach(residual.height())
            rects.append(QRectF(0, residual.top() - reach, residual.left(), residual.height() + 2 * reach))
            rects.append(residual.adjusted(0, -1.6 * em, 0, 0))
        if self._track_boxes:
            rects.append(self._tracks_rect)
        if base:
            rects.append(QRectF(0, self._axis.top(), self.width(), self._axis.height()))
            rects.append(self._head_rect)
            heights = self.heights
            assert heights is not None
            if (*limits(self._levels, heights), self._levels.log) != self._levels_seen:
                rects.append(self._run.rect.adjusted(0, 0, 0, 6))  # with the ticks that touch it
                rects += self._gutters
        return rects

    @property
    def _levels_seen(self) -> tuple[float, float, bool]:
        """The vertical axis of the last drawing."""
        return self._main.low, self._main.high, self._main.log

    @property
    def _head_rect(self) -> QRectF:
        """The rectangle of the legend."""
        em = self.fontMetrics().height()
        return QRectF(self._main.rect.left(), self._rail.top() - em * 1.4, self._main.rect.width(), em * 1.3)

    @property
    def _heading_rect(self) -> QRectF:
        """The rectangle of the residual's heading."""
        em, r = self.fontMetrics().height(), self._residual.rect
        return QRectF(r.left(), r.top() - em * 1.5, r.width(), em * 1.4)

    @property
    def _gutters(self) -> list[QRectF]:
        """The rectangles beside the curve with its vertical axes."""
        r = self._main.rect
        reach = title_reach(r.height())
        top, height = r.top() - reach, r.height() + 2 * reach
        return [QRectF(0, top, r.left(), height), QRectF(r.right(), top, self.width() - r.right(), height)]

    def _draw_anew(self, dpr: float) -> None:
        self._marked = self._mark_rects()
        self._show_parts()
        if self._curve is None:
            return
        heights = self.heights
        assert heights is not None
        seen = (*limits(self._levels, heights), self._levels.log)
        if seen != self._levels_seen:
            self._log_items(seen[2])
        for lane in (self._main, self._run):
            lane.low, lane.high, lane.log = seen
        if self._base_stale:
            self._draw_curve(dpr / self._coarse)
            self._draw_overview(dpr / self._coarse)
            self._draw_track_bases(dpr / self._coarse)
        self._draw_fit(dpr)
        a, b = self._nav.a, self._nav.b
        low, high = (math.log10(v) for v in seen[:2]) if seen[2] else seen[:2]
        self.lanes["curve"].vb.show_range(a, b, low, high)
        self.lanes["overview"].vb.show_range(self._nav.start, self._nav.end, low, high)
        self.lanes["residual"].vb.show_range(a, b, self._residual.low, self._residual.high)

    def _log_items(self, log: bool) -> None:
        """Let items in data coordinates follow a logarithmic axis."""
        for name in ("curve", "overview"):
            if self.lanes[name].ctrl.logYCheck.isChecked() != log:
                self.lanes[name].setLogMode(y=log)
                self.lanes[name].vb.disableAutoRange()

    def _draw_curve(self, dpr: float) -> None:
        assert self._curve is not None
        sheet = self._sheet("base", self._main.rect, dpr)
        lane, m = self._local(self._main)
        x = scales.column_edges(m, sheet.image.width())
        thickness, run, say = max(1, round(dpr)), self._run_shown(), words()
        if self._activities == {"computing"} or (not self._stack and "computing" in self._activities):
            described = curve_lane(run, x, say)
            self._columns = described.series[0].columns
            first = self._draw_steps("base", sheet, lane, m, self._columns, thickness, described)
        else:
            first = 0
            self._drawn.pop("base", None)
            self._columns = envelope(self._curve).columns(x)
            described = stack_lane(run, x, self._activities, say)
            stacked = [s for s in described.series if s.look == "stacked"]
            curve_lanes.draw_stack(sheet, lane, stacked, thickness, self._theme)
        self._end_here(sheet, m)
        for series in described.series:
            if series.ink == "predicted":
                curve_lanes.draw_predicted(sheet, lane, series, 2 * thickness, self._theme)
        self._described = described
        with QPainter(sheet.image) as painter:
            painter.setClipRect(QRectF(first / dpr, 0, m.width, lane.rect.height()))
            self._lay_grid(painter, lane, m, time_axis(m.a, m.b, say), described.axis)

    def _draw_steps(
        self,
        name: str,
        sheet: Raster,
        lane: LaneBox,
        m: TimeMap,
        c: Columns,
        thickness: int,
        described: LaneData | None,
    ) -> int:
        """Draw the curve's columns on a sheet, of a grown curve only those that differ; returns the first one
        drawn."""
        assert self._curve is not None
        end = m.x(self._curve.span[1]) * sheet.image.devicePixelRatio()
        axes = None if described is None else (described.axis, time_axis(m.a, m.b, words()))
        how = (
            sheet, m, lane.low, lane.high, lane.log, thickness, self._theme, self._grid,
            self._over.predicted, axes,
        )  # fmt: skip
        last, self._drawn[name] = self._drawn.get(name), (how, c, end)
        first = 0
        if last is not None and last[0] == how and self._over.predicted is None:
            # A line begins in the column before, and a steep one reaches back by `thickness`.
            first = max(min(_first_other(last[1], c), math.floor(min(last[2], end)) - 1) - thickness - 1, 0)
        if not first:
            curve_lanes.draw_curve(sheet, lane, c, thickness, self._theme)
            return 0
        part = sheet.part(first)
        new = Columns._make(v[first:] for v in c)
        curve_lanes.draw_curve(part, lane, new, thickness, self._theme)
        sheet.put(part, first + 1)
        return first + 1

    def _draw_track_bases(self, dpr: float) -> None:
        """Draw the curves below, without the fit's breakpoints."""
        self._track_lanes = []
        say = words()
        for k, (curve, box) in enumerate(zip(self._tracks, self._track_boxes, strict=True), 1):
            sheet = self._sheet(f"track base {k}", box.rect, dpr)
            _, m = self._local(box)
            described = track_lane(curve, scales.column_edges(m, sheet.image.width()), say, f"track {k}")
            box.low, box.high = described.axis.low, described.axis.high
            lane, _ = self._local(box)
            columns, thickness = described.series[0].columns, max(1, round(dpr))
            curve_lanes.draw_curve(sheet, lane, columns, thickness, self._theme)
            with QPainter(sheet.image) as painter:
                self._lay_grid(painter, lane, m, time_axis(m.a, m.b, say), described.axis)
            self._track_lanes.append(described)

    def _draw_tracks(self, dpr: float) -> None:
        for k, box in enumerate(self._track_boxes, 1):
            sheet = self._sheet(f"track {k}", box.rect, dpr)
            sheet.take(self._sheets[f"track base {k}"])
            _, m = self._local(box)
            ink = QColor(self._theme.accent)
            fit_overlay.draw_boundaries(sheet.image, self._over.boundaries, m, ink)
            self._draw_breakpoints(sheet.image, m)
            self._veil(sheet.image, m)

    def _paint_tracks(self, painter: QPainter, rect: QRectF) -> None:
        metrics = self.fontMetrics()
        for k, (box, described) in enumerate(zip(self._track_boxes, self._track_lanes, strict=False), 1):
            blit(painter, box.rect, self._sheets[f"track {k}"].image)
            self._frame(painter, box.rect)
            r = box.rect
            self._paint_upright(painter, box, described.axis, "")
            name = metrics.elidedText(
                described.note, Qt.TextElideMode.ElideMiddle, max(int(r.width()) - 24, 1)
            )
            box_ = QRectF(r.left() + 4, r.top() + 2, metrics.horizontalAdvance(name) + 8, metrics.height())
            painter.fillRect(box_, faded(self._theme.background, 200))
            painter.setPen(QColor(self._theme.text))
            painter.drawText(box_, Qt.AlignmentFlag.AlignCenter, name)

    def _run_shown(self) -> RunData:
        """All that is shown, as the data of a run."""
        assert self._curve is not None
        return RunData(
            **vars(self._over), curve=self._curve, stack=self._stack, notes=self._notes.marks,
            levels=self._levels, tracks=self._tracks,
        )  # fmt: skip

    def _state(self, residual: LaneData | None) -> PlotData:
        """The description of all lanes."""
        run, say = self._run_shown(), words()
        assert self._described is not None
        fitting = self._over.fit is not None and "computing" in self._activities
        lane = replace(self._described, fitted=fitting)
        legend = run_legend(run, say, exact=lane.exact, activities=self._activities)
        lanes = [lane, *([] if residual is None else [residual]), *self._track_lanes]
        axis = time_axis(self._nav.a, self._nav.b, say)
        figure = "stack" if self._stacked else "curve"
        return run_plot(figure, run, axis, lanes, legend)

    def description(self) -> PlotData | None:
        """The description of the plot shown; None without a curve."""
        self.prepare(self.viewport().devicePixelRatioF())
        return None if self._curve is None else self._plot

    def _draw_overview(self, dpr: float) -> None:
        assert self._curve is not None
        lane, _ = self._local(self._run)
        sheet = self._sheet("run base", self._run.rect, dpr)
        key = (self._curve, lane.low, lane.high, lane.log, self._nav.end)
        if sheet is not self._overview or self._overview_key != key:
            c = envelope(self._curve).columns(scales.column_edges(self._run_map(), sheet.image.width()))
            m = replace(self._run_map(), left=0.0)
            self._draw_steps("run base", sheet, lane, m, c, max(1, round(dpr)), None)
            self._end_here(sheet, m)
            self._overview, self._overview_key = sheet, key

    _overview_key: tuple[StepCurve, float, float, bool, float] | None = None

    def _end_here(self, sheet: Raster, m: TimeMap) -> None:
        """Clear what lies behind the end of the run, where the axis is longer."""
        assert self._curve is not None
        over = m.x(self._curve.span[1])
        if over < m.left + m.width - 1:
            with QPainter(sheet.image) as painter:
                painter.fillRect(QRectF(over, 0, m.width - over, 1e4), QColor(self._theme.background))

    def _draw_fit(self, dpr: float) -> None:
        """Draw the pictures of all lanes, with what depends on the fit."""
        fit, t, fine = self._over.fit, self._theme, dpr / self._coarse
        sheet = self._sheet("curve", self._main.rect, fine)
        sheet.take(self._sheets["base"])
        lane, m = self._local(self._main)
        fit_overlay.draw_boundaries(sheet.image, self._over.boundaries, m, QColor(t.accent))
        if self._described is not None:
            fit_overlay.draw_boundaries(sheet.image, self._described.moved, m, QColor(t.selection))
        self._draw_breakpoints(sheet.image, m)
        if fit is not None:
            if "computing" in self._activities:
                fit_overlay.draw_pieces(sheet.image, fit, m, lane, t, self._over.phase)
            fit_overlay.draw_firm(sheet.image, self._over.firm, m, t)
        self._veil(sheet.image, m)
        self._draw_tracks(fine)
        self._plot = self._state(self._draw_left_over(fine) if self._residual.rect.height() else None)
        overview = self._sheet("overview", self._run.rect, fine)
        overview.take(self._sheets["run base"])
        local, _ = self._local(self._run)
        m = TimeMap(self._nav.start, self._nav.end, 0.0, local.rect.width())
        self._draw_breakpoints(overview.image, m, ranges=False)
        self._veil(overview.image, m)
        if fit is not None:
            self._draw_phases(fit, dpr)

    def _veil(self, image: QImage, m: TimeMap) -> None:
        if self._over.limit is not None:
            with QPainter(image) as painter:
                self._grey_outside(painter, [QRectF(0, 0, m.width, image.height())], m)

    def _draw_left_over(self, dpr: float) -> LaneData | None:
        """Draw the residual's picture; returns its description, if there is a fit."""
        sheet = self._sheet("residual", self._residual.rect, dpr)
        fit, t, described = self._over.fit, self._theme, None
        lane, m = self._local(self._residual)
        if fit is None:
            sheet.clear(QColor(t.background))
        else:
            x = scales.column_edges(m, sheet.image.width())
            described = residual_lane(self._run_shown(), x, words(), self._columns)
            for box in (lane, self._residual):
                box.low, box.high = described.axis.low, described.axis.high
            em = self.fontMetrics().height()
            curve_lanes.draw_residual(sheet, lane, described, m, t, em, grid=self._grid)
            self._end_here(sheet, m)
            self._draw_breakpoints(sheet.image, m)
        self._veil(sheet.image, m)
        return described

    def _draw_phases(self, fit: PhaseFit, dpr: float) -> None:
        """Draw the rail: phase numbers, centred in the visible parts of phases, and locks on breakpoints."""
        assert self._plot is not None and self._plot.breakpoints is not None
        sheet, (strip,) = self._sheet("rail", self._rail, dpr), self._plot.strips
        t, em, width = self._theme, self.fontMetrics().height(), self.fontMetrics().horizontalAdvance
        r = QRectF(0, 0, self._rail.width(), self._rail.height())
        m = TimeMap(self._nav.a, self._nav.b, 0.0, r.width())
        sheet.clear(QColor(t.surface))
        with QPainter(sheet.image) as painter:
            for k, a, b, label in strip.labelled(self._plot.axis, r.width(), em, width):
                box, marked = QRectF(a, 0, b - a, r.height()), k == strip.marked
                if marked:
                    painter.fillRect(box, QColor(t.accent))
                painter.setPen(QColor(t.background if marked else t.text))
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, label)
        self._draw_breakpoints(sheet.image, m, ranges=False)
        locked = self._plot.breakpoints.time[self._plot.breakpoints.locked]
        with QPainter(sheet.image) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            for time in locked[(locked >= m.a) & (locked <= m.b)].tolist():
                self._padlock(painter, m.x(time), r.bottom() - em * 0.15, em * 0.7)
        self._veil(sheet.image, m)

    # What the items of the scene paint, in the view's pixels.

    def _draw_main(self, painter: QPainter, rect: QRectF) -> None:
        blit(painter, self._main.rect, self._sheets["curve"].image)
        self._notes.paint(painter, self._map(), self._lanes, self._theme)
        self._paint_levels_note(painter)

    def _draw_residual(self, painter: QPainter, rect: QRectF) -> None:
        blit(painter, self._residual.rect, self._sheets["residual"].image)
        if self._over.fit is None:
            painter.setPen(QColor(self._theme.muted))
            text = "The residual appears with a fit."
            painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, text)
        painter.setClipRect(self._residual.rect)
        self._notes.paint(painter, self._map(), self._lanes, self._theme)

    def _draw_run(self, painter: QPainter, rect: QRectF) -> None:
        blit(painter, self._run.rect, self._sheets["overview"].image)

    def _draw_rail(self, painter: QPainter, rect: QRectF) -> None:
        blit(painter, self._rail, self._sheets["rail"].image)

    def _paint_empty(self, painter: QPainter, rect: QRectF) -> None:
        painter.setPen(QColor(self._theme.muted))
        painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, self._without)

    def _paint_frames(self, painter: QPainter, rect: QRectF) -> None:
        for lane in (self._run.rect, *self._lanes):
            self._frame(painter, lane)
        if self._over.fit is not None:
            self._frame(painter, self._rail.united(self._main.rect))

    @property
    def _has_residual(self) -> bool:
        """Whether the second lane is the residual."""
        return self._over.fit is not None and bool(self._residual.rect.height())

    def _paint_heading(self, painter: QPainter, rect: QRectF) -> None:
        if self._plot is not None and self._has_residual:
            curve_lanes.residual_heading(painter, rect, self._plot.lanes[1], self._theme)

    def _lane_words(self, lane: LaneBox, axis: AxisData) -> str:
        """The title of a lane's axis; only its unit where there is no room for its name."""
        # Only the time axis is below the last lane, unless there are tracks with labels of their own.
        high = lane.rect.height()
        room = high if self._track_boxes else high + 2 * title_reach(high)
        long = axis.words != axis.title and self.fontMetrics().horizontalAdvance(axis.words) > room
        return axis.unit if long else axis.words  # the legend says the rest

    def _paint_levels(self, painter: QPainter, rect: QRectF) -> None:
        if self._plot is not None:
            axis = self._plot.lanes[0].axis
            self._paint_upright(painter, self._main, axis, self._lane_words(self._main, axis))

    def _paint_shares(self, painter: QPainter, rect: QRectF) -> None:
        curve = self._curve
        counted = curve is not None and curve.quantity.counted and curve.capacity > 0
        if self._percent and self._plot is not None and curve is not None and counted:
            axis = percent_axis(self._plot.lanes[0].axis, curve.capacity, words())
            self._paint_upright(painter, self._main, axis, self._lane_words(self._main, axis), right=True)

    def _paint_residual_axis(self, painter: QPainter, rect: QRectF) -> None:
        if self._plot is not None and self._has_residual:
            axis = self._plot.lanes[1].axis
            self._paint_upright(painter, self._residual, axis, self._lane_words(self._residual, axis))

    def _paint_name(self, painter: QPainter, rect: QRectF) -> None:
        painter.setPen(QColor(self._theme.muted))
        gutter = QRectF(0, self._run.rect.top(), self._run.rect.left() - 7, self._run.rect.height())
        painter.drawText(gutter, Qt.AlignmentFlag.AlignRight | _MIDDLE, "Whole run")

    def _paint_time(self, painter: QPainter, rect: QRectF) -> None:
        if self._plot is not None:
            scales.across_axis(painter, self._axis, self._map(), self._theme, self._plot.axis)

    def _paint_whole_time(self, painter: QPainter, rect: QRectF) -> None:
        axis = replace(time_axis(self._nav.start, self._nav.end, words()), title="")
        scales.across_axis(painter, rect, self._run_map(), self._theme, axis)

    def _paint_levels_note(self, painter: QPainter) -> None:
        """A note in the upper corner if not all processors are shown."""
        if self._plot is None or not self._plot.remarks:
            return
        t, r, metrics = self._theme, self._main.rect, self.fontMetrics()
        text = metrics.elidedText(
            self._plot.remarks[0], Qt.TextElideMode.ElideRight, max(int(r.width()) - 24, 1)
        )
        box = QRectF(0, 0, metrics.horizontalAdvance(text) + 12, metrics.height() + 4)
        box.moveTopRight(QPointF(r.right() - 6, r.top() + 6))
        painter.setPen(QPen(QColor(t.accent), 1))
        painter.setBrush(faded(t.raised, 225))
        painter.drawRect(box)
        painter.setPen(QColor(t.text))
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)

    def _paint_legend(self, painter: QPainter, row: QRectF) -> None:
        if self._plot is None:
            return
        t, metrics = self._theme, self.fontMetrics()
        em = metrics.height()
        note = self._steps_note
        entries = self._plot.legend
        if self._room_for_one:
            # First, as the others change their widths while a run grows, and a click would miss it.
            entries = LegendData("Residual", "residual", _RESIDUAL_LANE, self._residual_first), *entries
        note = self._plot.doubt or note  # matters more than how it is drawn
        if self._legend.width(metrics, entries, t) + metrics.horizontalAdvance(note) > row.width():
            note, detail, _ = self._plot.doubt.partition(":")
            note = note if detail or not note else "partly in doubt"
        limit = row.right() - metrics.horizontalAdvance(note) - em * bool(note)
        self._legend.paint(painter, row.adjusted(0, 0, limit - row.right(), 0), entries, t)
        painter.setPen(QColor(t.warning if self._plot.doubt else t.muted))
        painter.drawText(row, Qt.AlignmentFlag.AlignRight | _MIDDLE, note)

    @property
    def _steps_note(self) -> str:
        """How many steps a pixel stands for, in words."""
        steps = int(self._columns.steps.max(initial=0)) if self._columns is not None else 0
        return f"1 pixel stands for up to {grouped(steps)} steps" if steps > 2 else "every step is drawn"

    def _draw_breakpoints(self, image: QImage, m: TimeMap, *, ranges: bool = True) -> None:
        """Draw the breakpoints into the pixels; with their `ranges` the tint of the chosen phase too."""
        fit, phase = self._over.fit, self._over.phase
        if fit is None:
            return
        fit_overlay.draw_breakpoints(image, fit, m, self._theme, ranges=ranges)
        if ranges and phase is not None and 0 <= phase < fit.n:
            ends = np.clip(m.x(fit.breaks[phase : phase + 2]), m.left, m.left + m.width)
            tint = faded(self._theme.accent, 40 if self._theme.dark else 28)
            with QPainter(image) as painter:
                painter.fillRect(QRectF(ends[0], 0, ends[1] - ends[0], image.height()), tint)

    def _padlock(self, painter: QPainter, x: float, bottom: float, size: float) -> None:
        t = self._theme
        body = QRectF(x - size / 2, bottom - size * 0.65, size, size * 0.65)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(t.breakpoint), 1.5))
        ring = QRectF(x - size * 0.3, bottom - size * 1.15, size * 0.6, size)
        painter.drawArc(ring, 0, 180 * 16)
        painter.setPen(QPen(QColor(t.surface), 1))
        painter.setBrush(QColor(t.breakpoint))
        painter.drawRect(body)

    def _marked_line(self) -> float | None:
        """The time of the breakpoint that is dragged or under the pointer."""
        drag, fit = self._drag, self._over.fit
        if drag is not None and drag.kind == "breakpoint" and drag.moved:
            return drag.value
        if drag is None and self._hover is not None and fit is not None and self._hover < fit.breaks.size - 1:
            return float(fit.breaks[self._hover])
        return None

    def _mark_rects(self) -> list[QRectF] | None:
        if self._curve is None:
            return []
        m, em, r = self._map(), self.fontMetrics().height(), self._main.rect
        rects = self._span_rects(self._lanes)
        if rects:
            # Its length, and the same of the whole run.
            rects += [QRectF(r.left(), r.bottom() - em - 8, r.width(), em + 8), self._run.rect]
        line = self._marked_line()
        if line is not None and m.a <= line <= m.b:
            top, bottom = self._rail.top(), self._residual.rect.bottom()
            rects.append(QRectF(m.x(line) - 2, top, 4, bottom - top))
        x = self._cursor_x
        if x is not None and self._readout():
            box = box_of(self.fontMetrics(), self._readout(), x, r.top() + 8, r)
            rects.append(box.adjusted(-1, -1, 1, 1))
        return rects + self._cursor_rects(self._lanes)

    def _paint_marks(self, painter: QPainter) -> None:
        """Paint what follows the mouse: selection, drags, frame of the view, cursor."""
        t, m = self._theme, self._map()
        run, r = self._run_map(), self._run.rect
        for a, b, colour in self._spans():
            self._paint_range(painter, m, (a, b), colour)
        if self._selection is not None:
            a, b = (float(np.clip(run.x(v), r.left(), r.right())) for v in self._selection)
            painter.fillRect(QRectF(a, r.top(), max(b - a, 1), r.height()), faded(t.selection, 80))
        veil = faded(t.background, 150)
        x0, x1 = run.x(self._nav.a), run.x(self._nav.b)
        if (self._nav.a, self._nav.b) != (self._nav.start, self._nav.end):
            painter.fillRect(QRectF(r.left(), r.top(), x0 - r.left(), r.height()), veil)
            painter.fillRect(QRectF(x1, r.top(), r.right() - x1, r.height()), veil)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(t.accent), 2))
            with saved(painter):
                painter.setClipRect(r)
                painter.drawRect(QRectF(x0, r.top() + 1, max(x1 - x0, 3), r.height() - 2))
        line = self._marked_line()
        if line is not None and m.a <= line <= m.b:
            through = QRectF(m.left, self._rail.top(), m.width, self._bottom - self._rail.top())
            self._uprights(painter, [m.x(line)], [through], QPen(QColor(t.accent), 2))
        x = self._paint_cursor(painter, self._lanes)
        if x is not None and self._readout():
            paint_box(painter, self._readout(), x, self._main.rect.top() + 8, self._main.rect, self._theme)

    def _paint_range(self, painter: QPainter, m: TimeMap, span: tuple[float, float], colour: str) -> None:
        """A tinted range with its length below."""
        self._tint_range(painter, span, colour, self._lanes)
        a, b = max(span[0], m.a), min(span[1], m.b)
        if not a <= b:
            return
        x0, x1 = m.x(a), m.x(b)
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

    def reading(self, t: float) -> Reading | None:
        """The reading of the curve at `t`; None outside of it."""
        if self._curve is None:
            return None
        m = self._map()
        pixel = (m.b - m.a) / max(m.width, 1.0)
        c = envelope(self._curve).columns(np.array([t, t + pixel]))
        if not c.steps[0]:
            return None
        phase, value = None, math.nan
        if self._over.fit is not None and self._over.fit.breaks[0] <= t <= self._over.fit.breaks[-1]:
            phase = self._phase_at(t)
            value = float(fitted(self._over.fit, np.array([phase]), np.array([t]))[0][0])
        return Reading(
            float(c.first[0]), float(c.mean[0]), float(c.minimum[0]), float(c.maximum[0]), phase, value
        )

    def _readout(self) -> list[str]:
        """Lines with time, level, phase and fit at the cursor; the mean where a pixel has several levels."""
        m = self._map()
        key = (self._cursor, m, self._curve, self._over.fit, self._over.firm)
        if self._read_key != key:
            self._read_key, self._read = key, self._tell(self._cursor, m)
        return self._read

    _read_key: tuple[object, ...] = ()
    _read: list[str] = []

    def _tell(self, t: float, m: TimeMap) -> list[str]:
        reading = self.reading(t)
        if reading is None:
            return []
        number = format_number
        rows = [scales.format_time(t, (m.b - m.a) / m.width)]
        assert self._curve is not None
        kind = self._curve.quantity
        named = kind.name.lower() if kind == PROCESSORS else kind.name
        unit = "" if kind.counted else f" {kind.unit}".rstrip()
        rows.append(f"{named} {number(reading.level)}{unit} at this instant")
        if reading.minimum != reading.maximum:
            rows.append(
                f"{number(reading.mean)} on average in this pixel "
                f"({number(reading.minimum)} to {number(reading.maximum)})"
            )
        for curve in self._tracks:
            level = float(curve.at([t])[0])
            rows.append(f"{curve.quantity.name} {number(level)} {curve.quantity.unit}".rstrip())
        if reading.phase is not None:
            rows.append(
                f"phase {reading.phase + 1}: fit {number(reading.fit)}, "
                f"residual {signed(reading.level - reading.fit)}"
            )
        near = self._breakpoint_near(m.x(t), 2 * GRAB)
        firm = self._over.firm[near - 1] if near is not None and near <= len(self._over.firm) else None
        if firm is not None:
            rows.append(f"breakpoint {near}, median: {firm.words}")
        return rows

    def picture(self, scale: float = 2.0) -> QImage:
        hover, self._hover = self._hover, None
        image = super().picture(scale)
        self._hover = hover
        return image

    def _describe(self) -> None:
        """Set the description for screen readers; the phase table has its numbers."""
        if self._curve is None:
            self.setAccessibleDescription("No curve is open.")
            return
        duration = self._curve.duration
        mean = envelope(self._curve).range(-math.inf, math.inf)[2] / duration
        kind, long = self._curve.quantity, scales.format_time(duration, duration / 1000)
        text = (
            f"{format_number(self._curve.capacity)} processors over {long}, on average {format_number(mean)} "
            "computing."
        )
        if kind != PROCESSORS:
            text = f"{kind.name} over {long}, on average {format_number(mean)} {kind.unit}".rstrip() + "."
        if self._over.fit is not None:
            text += f" Fitted with {self._over.fit.breaks.size - 1} phases."
        if self._over.doubt:
            text += f" {self._over.doubt[:1].upper()}{self._over.doubt[1:]}."
        self.setAccessibleDescription(text)

    # ---- mouse ---------------------------------------------------------------------------------

    def _phase_at(self, t: float) -> int:
        assert self._over.fit is not None
        times = self._over.fit.breaks
        return int(np.clip(np.searchsorted(times, t, side="right") - 1, 0, times.size - 2))

    def _breakpoint_near(self, x: float, reach: float = GRAB) -> int | None:
        """The inner breakpoint within `reach` logical pixels of `x`."""
        if self._over.fit is None or self._over.fit.breaks.size < 3:
            return None
        distance = np.abs(self._map().x(self._over.fit.breaks[1:-1]) - x)
        i = int(np.argmin(distance))
        return i + 1 if distance[i] <= reach else None

    def _region(self, p: QPointF) -> str:
        """ "run", "rail", "plot", "axis", "levels" (the vertical axis) or "" for a place in the view."""
        r = self._main.rect
        if p.x() < r.left() - 1 and r.top() <= p.y() <= r.bottom() and self._curve is not None:
            return "levels"
        if not (r.left() - 1 <= p.x() <= r.right() + 1) or self._curve is None:
            return ""
        if self._run.rect.top() <= p.y() <= self._run.rect.bottom():
            return "run"
        if self._rail.top() <= p.y() < self._rail.bottom():
            return "rail"
        if self._rail.bottom() <= p.y() <= self._bottom:
            return "plot"
        return "axis" if p.y() > self._bottom else ""

    @guarded
    def mousePressEvent(self, event: QMouseEvent) -> None:
        key = self._legend.key_at(event.position())
        if key and event.button() == Qt.MouseButton.LeftButton and self._drag is None:
            if key == _RESIDUAL_LANE:
                self.set_residual_first(not self._residual_first)
            else:
                self.classToggled.emit(key)
        else:
            super().mousePressEvent(event)

    def _move(self, drag: Drag, p: QPointF, t: float) -> None:
        heights = self.heights
        if drag.kind == "pan" and heights is not None and self._region(drag.press) == "levels":
            if not drag.index:
                drag.index, self._levels_before = 1, self._levels
            part = (p.y() - drag.press.y()) / max(self._main.rect.height(), 1.0)
            self._change_levels(moved(self._levels_before, heights, part))
        else:
            super()._move(drag, p, t)

    def _press(self, drag: Drag, region: str, t: float, modifiers: Qt.KeyboardModifier) -> None:
        if region == "run":
            self._press_overview(drag)
        elif region == "levels":
            drag.kind = "levels"
            drag.a, drag.value = self._main.value(drag.press.y()), 0.0
            self._levels_before = self._levels
        else:
            super()._press(drag, region, t, modifiers)

    def _press_overview(self, drag: Drag) -> None:
        run = self._run_map()
        x, x0, x1 = drag.press.x(), run.x(drag.a), run.x(drag.b)
        all_visible = (drag.a, drag.b) == (self._nav.start, self._nav.end)
        if abs(x - x0) <= GRAB:
            drag.kind = "frame-a"
        elif abs(x - x1) <= GRAB:
            drag.kind = "frame-b"
        elif all_visible:
            drag.kind, drag.index = "frame-new", 0
        else:
            drag.kind = "frame"
            if not x0 < x < x1:
                t, half = run.time(x), (drag.b - drag.a) / 2
                self._nav.settle()
                self._show(t - half, t + half)
                drag.a, drag.b = self.visible_range()

    def _take(self, drag: Drag, region: str, t: float) -> bool:
        index = self._breakpoint_near(drag.press.x())
        if index is not None and self._over.fit is not None:
            drag.kind, drag.index, drag.value = "breakpoint", index, float(self._over.fit.breaks[index])
            drag.a = drag.value
        elif region == "rail" and self._phase_span(t) is not None:
            self.phaseSelected.emit(self._phase_at(t))
        else:
            return False
        return True

    def _clicked(self, drag: Drag, t: float) -> None:
        if self._selection is not None:
            self._select(0, 0)

    def _hover_at(self, p: QPointF, region: str) -> None:
        hover = (
            self._breakpoint_near(p.x()) if region in ("plot", "rail") and self._mode == "select" else None
        )
        if hover != self._hover:
            self._hover = hover
            self._marks_moved()
        flag = self._notes.at(p)
        self.setToolTip("" if flag is None else plain(flag.full_text))
        shape = Qt.CursorShape.ArrowCursor
        if self._space or (self._mode == "pan" and region in ("plot", "rail")):
            shape = Qt.CursorShape.OpenHandCursor
        elif region == "run":
            run, x = self._run_map(), p.x()
            ends = min(abs(run.x(v) - x) for v in self.visible_range())
            shape = Qt.CursorShape.SizeHorCursor if ends <= GRAB else Qt.CursorShape.OpenHandCursor
        elif hover is not None or (region == "plot" and self._edge_near(p.x()) is not None):
            shape = Qt.CursorShape.SplitHCursor
        elif region == "rail":
            shape = Qt.CursorShape.PointingHandCursor
        elif region == "plot":
            shape = Qt.CursorShape.CrossCursor
        elif region == "levels":
            shape = Qt.CursorShape.SizeVerCursor
        elif self._legend.key_at(p):
            shape = Qt.CursorShape.PointingHandCursor
        self._point(shape)

    def _pull(self, drag: Drag, p: QPointF, t: float) -> None:
        if drag.kind == "breakpoint":
            self._move_breakpoint(drag, t)
            return
        if drag.kind == "levels":
            heights, r = self.heights, self._main.rect
            if heights is not None:
                part = min(max((r.bottom() - p.y()) / max(r.height(), 1.0), 0.0), 1.0)
                self._change_levels(stretched(self._levels_before, heights, drag.a, part))
            return
        run = self._run_map()
        shift = (p.x() - drag.press.x()) / run.width * (run.b - run.a)
        current = min(max(run.time(p.x()), run.a), run.b)
        if drag.kind == "frame":
            self._show(drag.a + shift, drag.b + shift)
        elif drag.kind == "frame-a":
            self._show(min(drag.a + shift, drag.b), drag.b)
        elif drag.kind == "frame-b":
            self._show(drag.a, max(drag.b + shift, drag.a))
        else:
            start = run.time(drag.press.x())
            self._show(min(current, start), max(current, start))

    def _move_breakpoint(self, drag: Drag, t: float) -> None:
        fit = self._over.fit
        if fit is None or drag.index > fit.breaks.size - 2:
            self._drag = None  # the fit under the drag has gone
            return
        # Never onto a neighbour: a phase keeps some width, a pixel if there is room.
        low, high = float(fit.breaks[drag.index - 1]), float(fit.breaks[drag.index + 1])
        keep = min((self._nav.b - self._nav.a) / self._map().width, (high - low) / 4)
        drag.value = min(max(t, low + keep), high - keep)
        self.breakpointDragged.emit(drag.index, drag.value)
        self._marks_moved()

    def _drop(self, drag: Drag) -> None:
        if drag.kind == "breakpoint" and drag.moved:
            self.breakpointDropped.emit(drag.index, drag.value)

    def _abandon(self, drag: Drag) -> None:
        if drag.kind == "breakpoint" and drag.moved:
            self.breakpointDragged.emit(drag.index, drag.a)
        elif drag.kind == "levels":
            self._change_levels(self._levels_before)
        elif drag.kind.startswith("frame"):
            self._show(drag.a, drag.b, remember=False)

    @guarded
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() != Qt.MouseButton.LeftButton:
            return
        region = self._region(event.position())
        flag = self._notes.at(event.position())
        if flag is not None:
            self.noteActivated.emit(flag.index)
        elif region in ("axis", "run"):
            self.show_all()
        elif region == "levels":
            self.reset_levels()
        elif region and self._phase_span(self._time(event.position().x())) is not None:
            self.phaseSelected.emit(self._phase_at(self._time(event.position().x())))

    @guarded
    def wheelEvent(self, event: QWheelEvent) -> None:
        p, turn = event.position(), event.angleDelta().y()
        if self._ready and turn and self._region(p) == "levels":
            if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
                self.move_levels(turn / 120 * 0.1)
            else:
                self.zoom_levels(1.25 ** (turn / 120), self._main.value(p.y()))
            event.accept()
        else:
            super().wheelEvent(event)

    def _zoom_centre(self, p: QPointF) -> float:
        a, b = self.visible_range()
        return (a + b) / 2 if self._region(p) == "run" else super()._zoom_centre(p)

    @guarded
    def leaveEvent(self, event: QEvent) -> None:
        self._hover = None
        super().leaveEvent(event)

    def menu_at(self, p: QPointF) -> QMenu:
        """The context menu for a place in the plot."""
        menu = passing_menu(self)
        t, near, fit = self._time(p.x()), self._breakpoint_near(p.x(), 2 * GRAB), self._over.fit
        add = menu.addAction("&Add breakpoint here", lambda: self.breakpointAddRequested.emit(t))
        add.setEnabled(self._phase_span(t) is not None and near is None)
        number = near or 0
        remove = menu.addAction("&Remove breakpoint", lambda: self.breakpointRemoveRequested.emit(number))
        locked = fit is not None and near is not None and breakpoints(fit, self._over.locked).locked[near - 1]
        label = "Un&lock breakpoint" if locked else "&Lock breakpoint"
        lock = menu.addAction(label, lambda: self.breakpointLockToggled.emit(number))
        for action in (remove, lock):
            action.setEnabled(near is not None)
        menu.addAction("A&nnotate here…", lambda: self.noteAsked.emit(t))
        menu.addAction("&Curves…", self.curvesAsked.emit)
        menu.addSeparator()
        to_phase = menu.addAction("&Zoom to phase", lambda: self._zoom_to_phase(t))
        to_phase.setEnabled(self._phase_span(t) is not None)
        menu.addSeparator()
        self._add_limit(menu, t)
        menu.addSeparator()
        menu.addAction("&Fit levels to the visible part", self.fit_levels)
        menu.addAction("All &processors", self.show_all_levels)
        menu.addAction("Reset &levels", self.reset_levels)
        log = menu.addAction("Lo&garithmic", lambda: self.set_logarithmic(not self._levels.log))
        log.setCheckable(True)
        log.setChecked(self._levels.log)
        return plot_menu.finish(menu, self)

    def table(self) -> Iterable[plot_menu.Row]:
        """The steps of the curve in the visible range, cut at breakpoints, with the fit at their ends; if
        they are too many, the columns that are drawn."""
        curve, fit = self._curve, self._over.fit
        if curve is None:
            return
        yield "start_s", "end_s", "computing", "minimum", "maximum", "fit_at_start", "fit_at_end", "residual"
        a, b = self._nav.a, self._nav.b
        edges = curve.edges * curve.unit
        first, last = np.searchsorted(edges, [a, b], side="right")
        times = np.empty(0) if fit is None else fit.breaks[(fit.breaks > a) & (fit.breaks < b)]
        x = np.unique(np.concatenate([[a], edges[first:last], times, [b]]))
        x = x[(x >= edges[0]) & (x <= edges[-1])]
        if x.size > plot_menu.MOST_STEPS:
            x = scales.column_edges(self._map(), max(round(self._main.rect.width()), 1))
        env = envelope(curve)
        c = env.columns(x)
        nothing = np.full(x.size - 1, math.nan)
        of_fit = [nothing, nothing, nothing]
        if fit is not None:
            inside = np.searchsorted(fit.breaks[1:-1], (x[:-1] + x[1:]) / 2, side="right")
            beyond = (x[:-1] >= fit.breaks[-1]) | (x[1:] <= fit.breaks[0])  # of a limited analysis
            ends = [fitted(fit, inside, t)[0] for t in (x[:-1], x[1:])]
            of_fit = [np.where(beyond, math.nan, v) for v in (*ends, residual(env, fit, x, c).mean)]
        yield from zip(x[:-1], x[1:], c.mean, c.minimum, c.maximum, *of_fit, strict=True)

    def _phase_span(self, t: float) -> tuple[float, float] | None:
        if self._over.fit is None or not self._over.fit.breaks[0] <= t <= self._over.fit.breaks[-1]:
            return None
        i = self._phase_at(t)
        return float(self._over.fit.breaks[i]), float(self._over.fit.breaks[i + 1])

    def _zoom_to_phase(self, t: float) -> None:
        span = self._phase_span(t)
        if span is not None:
            self.zoom_to(*span)

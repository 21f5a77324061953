"""Compared runs over one axis: strips of their phases with the matches between them, curves, differences."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QPainter, QPen, QPolygonF
from PySide6.QtWidgets import QGraphicsItem, QMenu

from desktop.core.contrast import Contrast
from desktop.core.curve import StepCurve
from desktop.core.envelope import envelope
from desktop.core.matching import NONE
from desktop.core.units import digits, format_number, quantity
from desktop.data.chart import MARKS, OUTLINES, SERIES, AxisChoice
from desktop.ui.guard import in_ems, in_pixels, saved
from desktop.ui.pages import passing_menu
from desktop.ui.plots import plot_menu, scales
from desktop.ui.plots.raster import Raster, mix
from desktop.ui.plots.scales import LaneBox, TimeMap, words
from desktop.ui.plots.scene import blit, place_lane
from desktop.ui.plots.time_plot import Drag, TimePlot, paint_box
from desktop.ui.theme import faded
from desktop.workbench.time_plots import Comparing, PlotData, comparison
from desktop.workbench.time_plots import LaneData as LaneOf

if TYPE_CHECKING:
    from desktop.core.contrast import Alignment, Placement

_MIDDLE = Qt.AlignmentFlag.AlignVCenter
_CENTRE = Qt.AlignmentFlag.AlignCenter
#: Dashes of the runs' lines, in logical pixels: so many drawn out of so many. The reference is solid.
DASHES = ((1, 1), (10, 14), (4, 8), (16, 20), (2, 5), (7, 12))
#: Logical pixels between the marks on a line.
_APART = 150
# In lines of text: heights of a strip of phases and between two of them; from which on differences are shown.
_STRIP, _LINK, _DIFFERENCE = 1.35, 1.2, 16


class RunsView(TimePlot):
    """Runs of a comparison, over each other or one below the other, coupled by one axis.

    Signals: `rowSelected` (a row of the alignment, or -1); `pairDropped` (number of a run, phase of the
    reference, own phase), when one phase is dragged onto another.
    """

    FIGURE, HELP = "comparison", "compare.md"
    rowSelected = Signal(int)
    pairDropped = Signal(int, int, int)

    def __init__(self) -> None:
        super().__init__()
        self._alignment: Alignment | None = None
        self._placement: Placement | None = None
        self._side_by_side = self._relative = False
        self._by_hand: dict[int, frozenset[int]] = {}
        self._row = -1
        self._range: tuple[float, float] | None = None  # the levels from and to that were asked for
        self._dragged: tuple[int, int] | None = None  # a phase that is dragged: run, phase
        self._pulled = QPointF()
        self._lanes: list[LaneBox] = []
        self._strips: list[QRectF] = []
        self._apart = LaneBox(QRectF())
        self._legend = QRectF()
        self._row_of: list[dict[int, int]] = []
        self._plot: PlotData | None = None  # what the pictures show
        self._plot_key: tuple[object, ...] = ()
        self._build()
        self.setAccessibleName("Compared runs")

    # ---- what is shown

    def set_runs(
        self,
        alignment: Alignment | None,
        placement: Placement | None,
        by_hand: dict[int, frozenset[int]] | None = None,
    ) -> None:
        """Show other runs, or the same in another way. `by_hand`: phases matched by hand, by run."""
        previous, self._alignment, self._placement = self._placement, alignment, placement
        self._by_hand = by_hand or {}
        if alignment is not None and placement is not None:
            self._row_of = [
                {int(phase): r for r, phase in enumerate(column) if phase != NONE}
                for column in alignment.rows.T
            ]
            if previous is not None and previous.share != placement.share:
                self._range = None
            if previous is None or (previous.start, previous.end) != (placement.start, placement.end):
                self._selection, self._cursor, self._drag = None, math.nan, None
                self._nav.reset(placement.start, placement.end)
                self.rangeChanged.emit(self._nav.a, self._nav.b)
        text = "Nothing is compared"
        if alignment is not None:
            names = ", ".join(run.name for run in alignment.runs)
            text = f"{names}; {len(alignment.rows)} rows of matched phases, which the table below lists"
        self.setAccessibleDescription(text)
        self._anew()

    def set_look(self, *, side_by_side: bool, relative: bool) -> None:
        """Draw runs below each other instead of over one another, differences in percent of the reference."""
        self._side_by_side, self._relative = side_by_side, relative
        self._anew()

    @property
    def how(self) -> Comparing:
        """How the runs are drawn."""
        return Comparing(self._side_by_side, self._relative, self._by_hand, self._row, self._range)

    def set_row(self, row: int) -> None:
        """Mark a row of the alignment; -1: none."""
        if row != self._row:
            self._row = row
            self._redraw()

    @property
    def _ready(self) -> bool:
        return self._placement is not None

    # ---- geometry

    sizeHint = in_pixels(900, 480)
    minimumSizeHint = in_ems(20, 17)  # a lane is left below the strips of four runs

    def _map(self) -> TimeMap:
        r = self._lanes[0].rect if self._lanes else QRectF(0, 0, 1, 1)
        return TimeMap(self._nav.a, self._nav.b, r.left(), r.width())

    def _layout(self, dpr: float) -> None:
        em, band = self.fontMetrics().height(), self._band(dpr)
        count = 0 if self._alignment is None else len(self._alignment.runs)

        self._legend = band(em * 0.3, em * 1.5)
        link = em * (_LINK if count < 4 else 0.6)
        top = em * 2.0
        self._strips = [band(top + k * (em * _STRIP + link), em * _STRIP) for k in range(count)]
        top = (self._strips[-1].bottom() if self._strips else top) + em * 0.6
        bottom = self.height() - (2 * em + 12)
        lanes = count if self._side_by_side else 1
        roomy = self.height() >= (_DIFFERENCE + 1.2 * count + 1.6 * lanes) * em
        heading = em * 1.7 if roomy else 0.0
        room = max(bottom - top - heading, 4.0)
        upper = room * (0.68 if roomy else 1.0)
        gap = em * 0.5
        high = max((upper - gap * (lanes - 1)) / max(lanes, 1), 2.0)
        self._lanes = [LaneBox(band(top + k * (high + gap), high)) for k in range(lanes)]
        below = self._lanes[-1].rect.bottom() if self._lanes else top
        self._apart = LaneBox(QRectF(self._legend.left(), below, self._legend.width(), 0.0))
        if roomy:
            self._apart.rect = band(below + heading, max(bottom - below - heading, 2.0))

    def _region(self, p: QPointF) -> str:
        if not self._ready or not self._lanes:
            return ""
        if any(r.contains(p) for r in self._strips):
            return "strip"
        if any(lane.rect.contains(p) for lane in (*self._lanes, self._apart)):
            return "plot"
        return "axis" if p.y() > self._apart.rect.bottom() else ""

    def _phase_of(self, run: int, t: float) -> int:
        """The phase of a run at a value of the axis; -1: none."""
        assert self._placement is not None
        spans = self._placement.spans[run]
        phase = int(np.searchsorted(spans[:, 0], t, side="right")) - 1
        return phase if phase >= 0 and t < spans[phase, 1] else -1

    def _phase_at(self, p: QPointF) -> tuple[int, int] | None:
        """The run and phase of a strip under a place."""
        run = next((k for k, r in enumerate(self._strips) if r.contains(p)), None)
        if self._placement is None or run is None:
            return None
        phase = self._phase_of(run, self._map().time(p.x()))
        return (run, phase) if phase >= 0 else None

    # ---- painting

    def _build(self) -> None:
        """Make the items of the scene; plots of single runs are made with the runs."""
        self._head, self._bands, self._heading, self._frames = strips = self._add_strips(
            self._draw_legend, self._draw_strips, self._draw_heading, self._draw_frames
        )
        self._frames.setZValue(40)
        self._time_axis = self._add_time_axis(self._draw_axis)
        self._parts: list[QGraphicsItem] = [*strips, self._time_axis]
        self._add_lane("difference", self._draw_apart, self._draw_apart_axis)

    def _arrange(self) -> None:
        while len(self.lanes) <= len(self._lanes):
            k = len(self.lanes) - 1
            of_run = partial(self._draw_curves, k), partial(self._draw_levels, k)
            plot = self._add_lane(f"curve {k + 1}", *of_run)
            if k == 0:
                self._time_axis.linkToView(plot.vb)
        for name, plot in self.lanes.items():
            lane = self._lane_of(name)
            plot.setVisible(self._ready and lane is not None)
            if lane is not None:
                place_lane(plot, lane.rect)
        for item in self._parts:
            item.setVisible(self._ready)
        area, apart = QRectF(self.rect()), self._apart.rect
        em = self.fontMetrics().height()
        self._head.place(self._legend)
        top = self._strips[0].top() if self._strips else 0.0
        self._bands.place(QRectF(0, top, area.right(), (self._strips[-1].bottom() if top else 0.0) - top))
        self._heading.place(QRectF(apart.left(), apart.top() - em * 1.6, apart.width(), em * 1.5))
        self._heading.setVisible(self._ready and bool(apart.height()))
        self._time_axis.place(
            QRectF(apart.left(), apart.bottom(), apart.width(), area.bottom() - apart.bottom())
        )
        self._frames.place(area)
        self._above.place(area)
        self.set_opaque(*self._rects)

    def _lane_of(self, name: str) -> LaneBox | None:
        """The lane of a plot; None if there is no room, or no such run."""
        if name == "difference":
            return self._apart if self._apart.rect.height() else None
        k = int(name.removeprefix("curve ")) - 1
        return self._lanes[k] if k < len(self._lanes) else None

    @property
    def _rects(self) -> tuple[QRectF, ...]:
        """All lanes for which there is room."""
        if not self._ready:
            return ()
        return tuple(lane.rect for lane in (*self._lanes, self._apart) if lane.rect.height())

    def _anew(self) -> None:
        """Lay out and draw again for other runs or another arrangement."""
        self._layout_key = ()
        self._redraw()

    def _draw_anew(self, dpr: float) -> None:
        self._marked = self._mark_rects()
        alignment, placement = self._alignment, self._placement
        if alignment is None or placement is None:
            return
        fine = dpr / self._coarse
        m = TimeMap(self._nav.a, self._nav.b, 0.0, self._lanes[0].rect.width())
        x = scales.column_edges(m, max(round(m.width * fine), 1))
        how = self.how
        key = (alignment, placement, how)
        old = self._plot if key == self._plot_key else None
        self._plot = plot = comparison(
            Contrast(alignment, placement), how, lambda curve: x, words(), span=(self._nav.a, self._nav.b),
            difference=bool(self._apart.rect.height()), previous=old,
        )  # fmt: skip
        self._plot_key = key
        places = [*self._lanes, *([self._apart] if plot.lanes[-1].zero else [])]
        for lane, described in zip(places, plot.lanes, strict=True):
            lane.low, lane.high = described.axis.low, described.axis.high
        self._make_curves(plot, fine)
        if plot.lanes[-1].zero:
            self._make_difference(plot.lanes[-1], fine)
        for name, item in self.lanes.items():
            lane_box = self._lane_of(name)
            if lane_box is not None:
                axis = plot.lanes[-1 if name == "difference" else 0].axis
                low, high = axis.low * axis.factor, axis.high * axis.factor
                item.vb.show_range(self._nav.a, self._nav.b, low, high)

    def description(self) -> PlotData | None:
        """The description of the plot shown; None if nothing is compared."""
        self.prepare(self.viewport().devicePixelRatioF())
        return self._plot if self._ready else None

    def _clean(self, name: str, lane: LaneBox, dpr: float) -> Raster:
        """The cleared pixels of a lane."""
        sheet = self._sheet(name, lane.rect, dpr)
        sheet.clear(QColor(self._theme.background))
        return sheet

    # What the items of the scene paint, in the view's pixels.

    def _draw_legend(self, painter: QPainter, rect: QRectF) -> None:
        if self._alignment is not None and self._plot is not None:
            self._paint_legend(painter, self._alignment)

    def _draw_strips(self, painter: QPainter, rect: QRectF) -> None:
        if self._alignment is not None and self._plot is not None:
            self._paint_strips(painter, self._alignment, self._plot, self._map())

    def _draw_curves(self, k: int, painter: QPainter, rect: QRectF) -> None:
        em = self.fontMetrics().height()
        blit(painter, self._lanes[k].rect, self._sheets[f"curve {k + 1}"].image)
        if self._side_by_side and rect.height() > 2.5 * em:
            self._paint_name(painter, k, self._lanes[k].rect)

    def _draw_levels(self, k: int, painter: QPainter, rect: QRectF) -> None:
        if self._plot is None or k >= len(self._lanes):
            return
        axis, em = self._plot.lanes[k].axis, self.fontMetrics().height()
        # Lanes that are too low for the name of their axis have it once, in the middle.
        shared = self._side_by_side and k == (len(self._lanes) - 1) // 2
        title = None if shared or self._lanes[k].rect.height() > 5 * em else ""
        self._paint_upright(painter, self._lanes[k], axis, title)

    def _draw_apart(self, painter: QPainter, rect: QRectF) -> None:
        blit(painter, self._apart.rect, self._sheets["difference"].image)

    def _draw_apart_axis(self, painter: QPainter, rect: QRectF) -> None:
        if self._plot is not None and self._plot.lanes[-1].zero:
            self._paint_upright(painter, self._apart, self._plot.lanes[-1].axis)

    def _draw_heading(self, painter: QPainter, head: QRectF) -> None:
        if self._plot is not None:
            painter.setPen(QColor(self._theme.text))
            text, mode = self._plot.lanes[-1].note, Qt.TextElideMode.ElideRight
            painter.drawText(head, _MIDDLE, self.fontMetrics().elidedText(text, mode, int(head.width())))

    def _draw_axis(self, painter: QPainter, rect: QRectF) -> None:
        if self._plot is not None:
            m, top = self._map(), self._apart.rect.bottom()
            box = QRectF(m.left, top, m.width, self.height() - top)
            scales.across_axis(painter, box, m, self._theme, self._plot.axis)

    def _draw_frames(self, painter: QPainter, rect: QRectF) -> None:
        for lane in self._rects:
            self._frame(painter, lane)

    def colour(self, run: int) -> QColor:
        """The colour of a run, the same in strips, lines and table."""
        return QColor(self._theme.series[run % SERIES])

    def _sample(self, painter: QPainter, run: int, x: float, y: float, width: float) -> None:
        """A piece of a run's line with its mark."""
        on, period = DASHES[self._dash(run)]
        painter.setPen(QPen(self.colour(run), 2))
        offset = 0.0
        while offset < width:
            painter.drawLine(QLineF(x + offset, y, x + min(offset + on if period > 1 else width, width), y))
            offset += period if period > 1 else width
        self._draw_mark(painter, run, QPointF(x + width / 2, y))

    def _dash(self, run: int) -> int:
        """The dash of a run's line: solid for the reference, the others in turn."""
        assert self._alignment is not None
        reference = self._alignment.reference
        return 0 if run == reference else 1 + (run - (run > reference)) % (len(DASHES) - 1)

    def _draw_mark(self, painter: QPainter, run: int, place: QPointF) -> None:
        with saved(painter):
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(self.colour(run), 1.6))
            painter.setBrush(QColor(self._theme.background))
            mark, reach = MARKS[run % len(MARKS)], 0.24 * self.fontMetrics().height()
            if mark == "circle":
                painter.drawEllipse(place, reach, reach)
            for outline in OUTLINES.get(mark, ()):
                painter.drawPolygon(QPolygonF([place + reach * QPointF(x, y) for x, y in outline]))

    def _paint_legend(self, painter: QPainter, alignment: Alignment) -> None:
        metrics = self.fontMetrics()
        em, row = metrics.height(), self._legend
        x, sample = row.left(), 2.6 * em
        assert self._plot is not None
        legend_words = [entry.words for entry in self._plot.legend]
        about = [
            words.removeprefix(run.name) for run, words in zip(alignment.runs, legend_words, strict=True)
        ]
        names = [metrics.horizontalAdvance(run.name) + 1.0 for run in alignment.runs]
        samples = (sample + 1.9 * em) * len(about)
        needed = samples + sum(min(name, 6.0 * em) for name in names)
        if sum(map(metrics.horizontalAdvance, about)) + needed > row.width():
            about = [words.partition(":")[0] for words in about]  # rather than no names
        fixed = sum(map(metrics.horizontalAdvance, about)) + samples
        for k, room in enumerate(_shares(names, row.width() - fixed)):
            # Only the name gives way, and only one that is longer than its share.
            name = alignment.runs[k].name
            text = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, int(room)) + about[k]
            self._sample(painter, k, x, row.center().y(), sample)
            painter.setPen(QColor(self._theme.text))
            w = metrics.horizontalAdvance(text)
            painter.drawText(QRectF(x + sample + 0.5 * em, row.top(), w + 2, row.height()), _MIDDLE, text)
            x += sample + w + 1.9 * em

    def _paint_strips(self, painter: QPainter, alignment: Alignment, plot: PlotData, m: TimeMap) -> None:
        t, metrics = self._theme, self.fontMetrics()
        em, left, right = metrics.height(), m.left, m.left + m.width
        self._paint_links(painter, plot, m)
        # Names that do not fit all stand in the legend, by these samples.
        named = all(metrics.horizontalAdvance(run.name) <= left - 12 for run in alignment.runs)
        for k, (r, strip) in enumerate(zip(self._strips, plot.strips, strict=True)):
            gutter = QRectF(4, r.top(), r.left() - 10, r.height())
            if named:
                painter.setPen(QColor(t.muted))
                painter.drawText(gutter, Qt.AlignmentFlag.AlignRight | _MIDDLE, alignment.runs[k].name)
            else:
                self._sample(painter, k, gutter.right() - 2.6 * em, r.center().y(), 2.6 * em)
            assert strip.alone is not None
            with saved(painter):
                painter.setClipRect(r)
                for phase, _, _ in strip.seen(plot.axis):
                    a, b = strip.spans[phase].tolist()
                    box = QRectF(max(m.x(a), left - 9), r.top(), 0, r.height())
                    box.setRight(max(min(m.x(b), right + 9), box.left() + 1))
                    share = 0.12 if strip.alone[phase] else 0.4 if phase % 2 else 0.26
                    painter.fillRect(box, mix(self.colour(k).name(), t.background, share))
                    if strip.alone[phase]:
                        painter.fillRect(box, QBrush(QColor(t.border), Qt.BrushStyle.BDiagPattern))
                    marked = phase == strip.marked
                    if marked or box.width() >= 4:
                        painter.setPen(QPen(QColor(t.text if marked else t.border), 2 if marked else 0))
                        painter.setBrush(Qt.BrushStyle.NoBrush)
                        painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5))
                for phase, a, b, label in strip.labelled(plot.axis, r.width(), em, metrics.horizontalAdvance):
                    inside = QRectF(left + a, r.top(), b - a, r.height())
                    if strip.alone[phase] and label:
                        room = QRectF(0, 0, metrics.horizontalAdvance(label) + 6, r.height() - 2)
                        room.moveCenter(inside.center())
                        painter.fillRect(room, QColor(t.background))
                    painter.setPen(QColor(t.text))
                    painter.drawText(inside, _CENTRE, label)

    def _paint_links(self, painter: QPainter, plot: PlotData, m: TimeMap) -> None:
        """A band between the strips of two runs wherever both have a phase in the same row."""
        with saved(painter):
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            for link in plot.links:
                upper, lower = self._strips[link.upper : link.upper + 2]
                painter.setClipRect(
                    QRectF(upper.left(), upper.bottom(), upper.width(), lower.top() - upper.bottom())
                )
                xs = [float(m.x(v)) for v in (link.a, link.b, link.c, link.d)]
                # Coordinates far out of sight would overflow.
                xs = [min(max(v, m.left - 1e5), m.left + m.width + 1e5) for v in xs]
                if max(xs) < m.left or min(xs) > m.left + m.width:
                    continue
                marked = link.row == self._row
                t, share = self._theme, 30 + round(70 * link.alike)
                colour = faded(t.accent, 150) if marked else faded(t.muted, share)
                painter.setPen(QPen(colour, 1))
                painter.setBrush(colour)
                above, below = ([QPointF(x, y) for x in two] for two, y in (
                    (xs[:2], upper.bottom()), (xs[:1:-1], lower.top())))  # fmt: skip
                painter.drawPolygon(QPolygonF([*above, *below]))

    @property
    def _time_scale(self) -> tuple[str, float]:
        if self._placement is not None and self._placement.axis == "normalised":
            return "Part of each run (%)", 100.0
        return super()._time_scale

    def axis_options(self) -> list[plot_menu.AxisOption]:
        options = super().axis_options()
        plot = self.description()
        if plot is not None:
            axis = plot.lanes[0].axis
            low, high = axis.low * axis.factor, axis.high * axis.factor
            options.append(plot_menu.AxisOption("y", axis.words, low, high, self._range is None, None))
        return options

    def choose_axis(self, axis: str, choice: AxisChoice) -> None:
        plot = self.description()
        if axis == "x" or plot is None:
            super().choose_axis(axis, choice)
            return
        factor, low, high = plot.lanes[0].axis.factor, choice.low, choice.high
        self._range = None if low is None or high is None else (low / factor, high / factor)
        self._anew()

    def _make_curves(self, plot: PlotData, dpr: float) -> None:
        thickness = max(1, round(1.6 * dpr))
        for i, (lane, described) in enumerate(zip(self._lanes, plot.lanes, strict=False)):
            raster, low, high = self._clean(f"curve {i + 1}", lane, dpr), lane.low, lane.high
            runs = [(int(s.ink.removeprefix("run ")), s.columns, s.seen_columns) for s in described.series]
            for k, c, seen in runs:
                top, bottom = (raster.scale(v, low, high) for v in (c.maximum, c.minimum))
                raster.veil(np.where(seen, top, bottom), bottom, self.colour(k), 0.22)
            for k, c, seen in runs:
                mean, single = raster.scale(c.mean, low, high), c.steps <= 2
                enter = np.where(single, raster.scale(c.first, low, high), mean)
                leave = np.where(single, raster.scale(c.last, low, high), mean)
                on, period = (round(v * dpr) for v in DASHES[self._dash(k)])
                raster.trace(enter, leave, seen, thickness, self.colour(k), (on, max(period, 1)))
            local, m = self._local(lane)
            with QPainter(raster.image) as painter:
                for k, c, seen in runs:
                    self._paint_line_marks(painter, local, k, c.mean, seen, dpr)
                self._lay_grid(painter, local, m, plot.axis, described.axis)

    def _paint_name(self, painter: QPainter, run: int, r: QRectF) -> None:
        """Paint the run's name in its lane, on a translucent ground."""
        assert self._alignment is not None
        metrics, name = self.fontMetrics(), self._alignment.runs[run].name
        em, room = metrics.height(), int(r.width() / 3)
        name = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, room)
        box = QRectF(r.left() + 4, r.top() + 4, metrics.horizontalAdvance(name) + 3.6 * em, 1.25 * em)
        painter.fillRect(box, faded(self._theme.background, 215))
        self._sample(painter, run, box.left() + 4, box.center().y(), 2.6 * em)
        painter.setPen(QColor(self._theme.text))
        painter.drawText(box.adjusted(3.2 * em, 0, 0, 0), _MIDDLE, name)

    def _paint_line_marks(
        self, painter: QPainter, lane: LaneBox, run: int, mean: np.ndarray, seen: np.ndarray, dpr: float
    ) -> None:
        assert self._alignment is not None
        apart = _APART * dpr
        first = apart * (0.25 + run / len(self._alignment.runs)) % apart
        for k in np.arange(first, mean.size, apart).astype(int).tolist():
            if seen[k]:
                self._draw_mark(painter, run, QPointF(lane.rect.left() + k / dpr, float(lane.y(mean[k]))))

    def _make_difference(self, described: LaneOf, dpr: float) -> None:
        assert self._alignment is not None
        t, lane, reference = self._theme, self._apart, self._alignment.reference
        raster = self._clean("difference", lane, dpr)
        thickness = max(1, round(1.4 * dpr))
        for series in described.series:
            c, k = series.columns, int(series.ink.removeprefix("run "))
            seen, zero = np.isfinite(c.mean), np.full(c.mean.size, raster.image.height() / 2)
            rows, high, low = (raster.scale(v, lane.low, lane.high) for v in (c.mean, c.maximum, c.minimum))
            if len(described.series) == 1:
                # The area has the colour of the run that is above the other.
                level = np.where(seen, rows, zero)
                raster.veil(np.minimum(level, zero), zero, self.colour(k), 0.4)
                raster.veil(zero, np.maximum(level, zero), self.colour(reference), 0.4)
            raster.veil(np.where(seen, high, zero), np.where(seen, low, zero), self.colour(k), 0.16)
            on, period = (round(v * dpr) for v in DASHES[self._dash(k)])
            raster.trace(rows, rows, seen, thickness, self.colour(k), (on, max(period, 1)))
        local, _ = self._local(lane)
        ticks = described.axis.upright(lane.rect.height(), self.fontMetrics().height())
        with QPainter(raster.image) as painter:
            if self._grid:
                scales.grid(painter, local, t, [], [local.y(v) for v in ticks.positions])
            painter.setPen(QPen(QColor(t.breakpoint), 0))
            painter.drawLine(QLineF(0, local.y(0), local.rect.right(), local.y(0)))

    # ---- cursor, selection, and what the mouse holds

    def _mark_rects(self) -> list[QRectF] | None:
        if self._alignment is None or not self._layout_key:
            return []
        if self._drag is not None and self._drag.kind == "match":
            return None
        rects = self._span_rects(self._rects) + self._cursor_rects(self._rects)
        if self._cursor_x is not None:
            em, r = self.fontMetrics().height(), self._rects[0]
            box = QRectF(r.left(), r.top(), r.width(), (1 + len(self._alignment.runs)) * em + 20)
            rects.append(box)
        return rects

    def _paint_marks(self, painter: QPainter) -> None:
        lanes, drag = self._rects, self._drag
        self._paint_spans(painter, lanes)
        if drag is not None and drag.kind == "match" and drag.moved:
            painter.setPen(QPen(QColor(self._theme.accent), 2))
            painter.drawLine(QLineF(drag.press, self._pulled))
        x = self._paint_cursor(painter, lanes)
        if x is not None:
            bounds = QRectF(
                lanes[0].left(), lanes[0].top(), lanes[0].width(), lanes[-1].bottom() - lanes[0].top()
            )
            paint_box(painter, self.reading(self._cursor), x, lanes[0].top() + 6, bounds, self._theme)

    def reading(self, t: float) -> list[str]:
        """The values of all runs at `t` on the axis, a line each."""
        alignment, placement = self._alignment, self._placement
        if alignment is None or placement is None:
            return []
        a, b = self.visible_range()
        lines = [
            f"{100 * t:.4g} %" if placement.axis == "normalised" else scales.format_time(t, (b - a) / 2000)
        ]
        levels = [float(curve.at([t])[0]) for curve in placement.curves]
        for k, (run, level) in enumerate(zip(alignment.runs, levels, strict=True)):
            value = f"{100 * level:.4g} %" if placement.share else format_number(level)
            phase = self._phase_of(k, t)
            line = f"{run.name}: {value}" + (f", phase {phase + 1}" if phase >= 0 else "")
            if k != alignment.reference:
                apart = (level - levels[alignment.reference]) * (100 if placement.share else 1)
                line += f" ({apart:+.4g})".replace("-", "−")
            lines.append(line)
        return lines

    def _take(self, drag: Drag, region: str, t: float) -> bool:
        if region != "strip":
            return False
        self._dragged = self._phase_at(drag.press)
        if self._dragged is not None:
            drag.kind, self._pulled = "match", drag.press
        return True

    def _pull(self, drag: Drag, p: QPointF, t: float) -> None:
        self._pulled = p
        self._marks_moved()

    def _drop(self, drag: Drag) -> None:
        dragged, self._dragged = self._dragged, None
        assert dragged is not None and self._alignment is not None
        if not drag.moved:
            self.rowSelected.emit(self._row_of[dragged[0]][dragged[1]])
            return
        target, reference = self._phase_at(self._pulled), self._alignment.reference
        if target is None or (dragged[0] == reference) == (target[0] == reference):
            return  # one of the two has to be the reference's
        of_reference, of_run = (dragged, target) if dragged[0] == reference else (target, dragged)
        self.pairDropped.emit(of_run[0], of_reference[1], of_run[1])

    def _abandon(self, drag: Drag) -> None:
        self._dragged = None

    def _clicked(self, drag: Drag, t: float) -> None:
        self._select(0, 0)

    def _hover_at(self, p: QPointF, region: str) -> None:
        phase_there = self._phase_at(p) if region == "strip" else None
        self.setCursor(Qt.CursorShape.PointingHandCursor if phase_there else Qt.CursorShape.ArrowCursor)
        self.setToolTip(self._phase_words(*phase_there) if phase_there else "")

    def _phase_words(self, run: int, phase: int) -> str:
        """A phase and its match, in words."""
        alignment = self._alignment
        assert alignment is not None
        this, reference = alignment.runs[run], alignment.runs[alignment.reference]
        about = this.rows[phase]
        long, mean = quantity(about.end_s - about.start_s, "s"), digits(about.mean)
        lines = [f"Phase {phase + 1} of {this.name}: {long}, {mean} processors on average"]
        partner = int(alignment.rows[self._row_of[run][phase], alignment.reference])
        matching = alignment.matchings[run]
        if matching is not None and partner != NONE:
            alike = f"{100 * matching.alike[partner]:.0f} % alike"
            lines.append(f"Matched with phase {partner + 1} of {reference.name}, {alike}")
        elif matching is not None:
            lines.append("The reference has no such phase")
        lines.append("Drag it onto a phase of the reference, or one of those onto it, to match them")
        return "\n".join(lines)

    def menu_at(self, p: QPointF) -> QMenu:
        menu = passing_menu(self)
        if self._selection is not None:
            menu.addAction("&Zoom to selection", lambda: self.zoom_to(*self._selection))
        return plot_menu.finish(menu, self)

    def table(self) -> Iterable[plot_menu.Row]:
        """The mean of every run in each column that is drawn."""
        if self._alignment is None or self._placement is None:
            return
        yield "start", "end", *(run.name for run in self._alignment.runs)
        m = self._map()
        x = scales.column_edges(m, max(round(m.width), 1))
        yield from zip(
            x[:-1], x[1:], *(envelope(curve).columns(x).mean for curve in self._placement.curves), strict=True
        )

    @property
    def selection(self) -> tuple[float, float] | None:
        """The selected range, in the unit of the time axis; None if there is none."""
        return self._selection


def sums(curves: tuple[StepCurve, ...], span: tuple[float, float]) -> list[float]:
    """The integral of each curve over a range of the axis."""
    return [envelope(curve).range(*span)[2] for curve in curves]


def _shares(widths: list[float], room: float) -> list[float]:
    """What each of some widths gets of `room`, in order: all, or an equal part among those that are cut.

    >>> _shares([10, 90, 30], 100)
    [10, 60.0, 30]
    """
    shares = [0.0] * len(widths)
    for served, k in enumerate(sorted(range(len(widths)), key=widths.__getitem__)):
        shares[k] = min(widths[k], max(room, 0.0) / (len(widths) - served))
        room -= shares[k]
    return shares

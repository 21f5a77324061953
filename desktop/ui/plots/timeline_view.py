"""The Gantt picture: a row per location, coloured by what it does, on the time axis of the curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QImage, QKeyEvent, QMouseEvent, QPainter, QPen, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QMenu, QScrollBar

from desktop.core import gantt
from desktop.core.arrays import Flags, Floats, Ints
from desktop.core.density import ink
from desktop.core.gantt import NO_REGION_NAME, region_classes, region_shares
from desktop.core.labels import ACTIVITIES
from desktop.core.pieces import breakpoints
from desktop.core.units import grouped
from desktop.data.events import Activity
from desktop.data.message_filter import MessageFilter
from desktop.data.naming import location_name
from desktop.ui.drawing import shaded
from desktop.ui.guard import guarded, in_ems, in_pixels, saved
from desktop.ui.pages import passing_menu
from desktop.ui.plots import fit_overlay, plot_menu, scales
from desktop.ui.plots.legend import Legend, samples
from desktop.ui.plots.navigation import Navigation
from desktop.ui.plots.notes import NoteItems, plain
from desktop.ui.plots.raster import Raster
from desktop.ui.plots.scales import LaneBox, TimeMap, words
from desktop.ui.plots.scene import blit, place_lane
from desktop.ui.plots.time_plot import Drag, TimePlot, box_of, paint_box
from desktop.ui.plots.timeline_rows import TimelineRow, TimelineRows
from desktop.ui.plots.timeline_tiles import Placed, TileMarks, Tiles, TileView
from desktop.ui.theme import faded
from desktop.workbench.model import Annotation
from desktop.workbench.time_plots import (
    AxisData,
    CellData,
    LaneData,
    LegendData,
    PlotData,
    Words,
    boundaries_in,
    class_legend,
    mark_legend,
    notes_in,
    path_legend,
    row_title,
    shared_rows,
    sparse,
    time_axis,
)

if TYPE_CHECKING:
    from desktop.core.critical_path import PathLine
    from desktop.data.timeline import Tile, Timeline

_CODES = tuple(a.name.lower() for a in Activity)
_MIDDLE = Qt.AlignmentFlag.AlignVCenter
#: Highest row that is chosen unless asked for, logical pixels.
_COMFORT = 40.0
_NO_ROWS = TimelineRows((), (), (), ())


@dataclass(frozen=True, eq=False)
class OpenTimeline:
    """The queries to a trace, and its rows; seconds of each region (regions + 1,), no region first, and of
    each activity (activities,)."""

    timeline: Timeline
    rows: TimelineRows
    weights: Floats
    rarity: Floats


class TimelineView(TimePlot):
    """Rows of locations over time. It paints `Tiles`, and emits requests as signals."""

    FIGURE, HELP = "timeline", "guide.md#the-timeline"
    looked = Signal(int, float)  # location and time under the pointer; -1 where there is none
    stackAsked = Signal(int, float)
    noteActivated = Signal(int)  # an annotation, by its place in the project
    noteAsked = Signal(int, float)  # a remark on a location at a time is wanted
    pathWanted = Signal(bool)  # the critical path is to be shown, or not
    ordered = Signal()  # the user has put rows in an order of their own

    def __init__(self, tiles: Callable[[Callable[[], None]], Tiles], navigation: Navigation) -> None:
        super().__init__(navigation)
        self._grid = False  # rows are lines enough
        self._tiles = tiles(self._arrived)
        self._timeline: Timeline | None = None
        self._rows = _NO_ROWS
        self._by_region = False
        self._heading = "location"  # what all rows are
        self._classes = np.zeros(1, np.uint8)
        self._weights = np.zeros(1)
        self._rarity = np.zeros(len(Activity))
        self._per = 1  # rows in a band; more than one only where rows are lower than a pixel
        self._bands = 0
        self._arranged = False  # whether bands are those of the rows
        self._height = 0.0  # of a row, logical pixels; 0 lets all rows be seen
        self._scroll = 0.0  # rows above the upper edge
        self._raster: Raster | None = None
        self._drawn: Raster | None = None  # the rows with all that lies on them
        self._around: tuple[object, ...] = ()  # what the labels and the legend were painted of
        self._screen = 1.0  # device pixels to a logical one, for which the rows are arranged
        self._plot = QRectF()
        self._legend = Legend()
        self._tip: list[str] = []
        self._tip_y = 0.0
        self._moving = -1  # the process that keys move, while the pointer rests
        self._under_pointer = (-1, math.nan)
        self._pointed: tuple[int, ...] = ()  # the locations of the row under the pointer
        self._clicked_row: tuple[int, ...] = ()  # of the state whose call stack was asked for
        self._stack: tuple[int, float, list[str]] | None = None
        self._marked_rows: frozenset[int] = frozenset()
        self._occurrence: tuple[int, float, float] | None = None
        self._messages = MessageFilter()
        self._path: PathLine | None = None
        self._path_shown = False
        self._inked: tuple[tuple[TileMarks, str], QImage] | None = None
        self._notes = NoteItems()
        self._names: Mapping[str, str] = {}
        self._bar = QScrollBar(Qt.Orientation.Vertical, self)
        self._bar.setAccessibleName("Rows")
        self._bar.setAutoFillBackground(True)  # or what lies below is painted with it
        self._bar.valueChanged.connect(self._scrolled)
        self._build()
        self.setAccessibleName("Timeline of all locations")

    # ---- what is shown -------------------------------------------------------------------------

    @property
    def rows(self) -> TimelineRows:
        """The rows of the timeline; none without a run."""
        return self._rows

    @property
    def timeline(self) -> Timeline | None:
        """The queries to the trace; None until it is open."""
        return self._timeline

    @property
    def tiles(self) -> Tiles:
        return self._tiles

    def set_timeline(self, opened: OpenTimeline | None) -> None:
        """Show another trace, or none."""
        self._tiles.show(None, (), None)
        self._timeline, self._rows = (None, _NO_ROWS) if opened is None else (opened.timeline, opened.rows)
        if opened is not None:
            self._weights, self._rarity = opened.weights, opened.rarity
            store = opened.timeline.store
            self._heading = row_title(location_name(x) for x in store.locations if x.kind == "cpu")
            self._classes = region_classes([region.name for region in store.regions], opened.weights)
        self._stack = self._occurrence = None
        self._pointed = self._clicked_row = ()
        self._moving = -1
        self._tip, self._marked_rows = [], frozenset()
        self._height, self._scroll = 0.0, 0.0
        self.rows_changed()
        self.setAccessibleDescription(f"{self._count} rows, one for each location or process.")

    def rows_changed(self) -> None:
        """Draw again for other rows, or another order."""
        self._arranged = False
        self._anew()

    def _anew(self) -> None:
        """Draw the rows, and what is beside them, again."""
        self._redraw()
        self.dirty()

    def set_annotations(self, annotations: tuple[Annotation, ...], locations: Sequence[str] = ()) -> None:
        """Draw these annotations; `locations`: the names that theirs refer to."""
        self._notes.set(annotations, locations)
        self._redraw()

    def set_names(self, names: Mapping[str, str]) -> None:
        """Names of regions in place of those in the trace."""
        self._names = dict(names)
        self._redraw()

    @property
    def path_shown(self) -> bool:
        """Whether the critical path is switched on; it is drawn once it is computed."""
        return self._path_shown

    def show_path(self, shown: bool) -> None:
        """Draw the critical path or not."""
        self._path_shown = shown
        self._anew()

    def set_path(self, path: PathLine | None) -> None:
        """Set the critical path of the run, if it is computed."""
        if path is not self._path:
            self._path = path
            if self._path_shown:
                self._anew()

    @property
    def message_filter(self) -> MessageFilter:
        """The criteria for messages to be drawn."""
        return self._messages

    def set_messages(self, criteria: MessageFilter) -> None:
        """Choose the messages that are drawn."""
        self._messages = criteria
        self._tiles.set_messages(criteria)
        self._redraw()

    @property
    def name_of(self) -> Callable[[int], str]:
        """A function from a region's number to its name; it stays valid for this trace, in any thread."""
        regions = () if self._timeline is None else self._timeline.store.regions
        names = self._names
        return lambda region: names.get(regions[region].name, regions[region].name)

    @property
    def by_region(self) -> bool:
        """Whether colours stand for regions, not for activities."""
        return self._by_region

    def set_by_region(self, by_region: bool) -> None:
        """Let colours stand for regions, or for activities."""
        self._by_region = by_region
        self.rows_changed()

    def set_marked(self, locations: frozenset[int]) -> None:
        """Mark the rows of locations that enter the regions searched for."""
        self._marked_rows = locations
        self._anew()

    def show_occurrence(self, location: int, begin: float, end: float) -> None:
        """Frame an occurrence, and bring its beginning into the middle of the view."""
        self._occurrence = (location, begin, end)
        a, b = self.visible_range()
        half = (b - a) / 2
        self.zoom_to(begin - half, begin + half)
        self.bring_row(location)
        self._redraw()

    def bring_row(self, location: int) -> None:
        """Scroll until the row of a location is in view."""
        row = self._rows.row_of(location)
        first, last = self._in_view()
        if not first + 1 <= row < last - 1:
            self._scroll_to(row - (last - first) / 2)

    @property
    def chosen_place(self) -> tuple[int, float] | None:
        """The location and time under the pointer, else of the call stack shown."""
        if self._pointed and not math.isnan(self._cursor):
            return self._pointed[0], self._cursor
        return None if self._stack is None else self._stack[:2]

    @property
    def chosen_row(self) -> tuple[int, ...]:
        """The locations of the row under the pointer, else of the clicked state; else ()."""
        return self._pointed or self._clicked_row

    def show_tip(self, location: int, time_s: float, rows: list[str]) -> None:
        """Show lines on the state under the pointer, if the pointer is still there."""
        if self._under_pointer == (location, time_s):
            self._tip = rows
            self._marks_moved()

    def show_stack(self, location: int, time_s: float, rows: list[str]) -> None:
        """Show a call stack until a click elsewhere or Esc."""
        self._stack = (location, time_s, rows)
        self._marks_moved()

    def hide_stack(self) -> None:
        """Close the call stack that was opened in a row."""
        self._stack = None
        self._marks_moved()

    def dismiss(self) -> bool:
        """Hide the call stack, else the marks of a search; whether there was one."""
        had = self._stack is not None or self._occurrence is not None or bool(self._marked_rows)
        if self._stack is not None:
            self._stack, self._clicked_row = None, ()
        else:
            self._occurrence, self._marked_rows = None, frozenset()
        self._anew()
        return had

    # ---- geometry ------------------------------------------------------------------------------

    @property
    def _ready(self) -> bool:
        return self._timeline is not None

    sizeHint = in_pixels(900, 260)
    minimumSizeHint = in_ems(20, 5)

    def _map(self) -> TimeMap:
        return TimeMap(self._nav.a, self._nav.b, self._plot.left(), self._plot.width())

    def _layout(self, dpr: float) -> None:
        em = self.fontMetrics().height()
        plot = self._plot = self._band(dpr)(em * 1.5, self.height() - 3 - em * 1.5)
        right = round(plot.right())
        wide = max(min(self._bar.sizeHint().width(), self.width() - right - 3), 6)
        self._bar.setGeometry(right + 2, round(plot.top()), wide, round(plot.height()))
        count = self._count
        if not self._arranged:
            self._arranged = True
            self._per = max(1, math.ceil(1 / (self._row_height * dpr) - 1e-9)) if count else 1
            rows = self._rows.rows
            groups = [
                tuple(dict.fromkeys(m for row in rows[k : k + self._per] for m in row.locations))
                for k in range(0, count, self._per)
            ]
            self._bands = len(groups)
            locations = 0 if self._timeline is None else len(self._timeline.store.locations)
            row_of = [self._rows.row_of(i) for i in range(locations)]
            classes = self._classes if self._by_region else None
            self._tiles.show(self._timeline, groups, classes, np.array(row_of, np.int64))
        self._place_scroll()

    def _place_scroll(self) -> None:
        """Keep rows in view, and set the scroll bar."""
        count, page = self._count, self._plot.height() / self._row_height
        self._scroll = min(max(self._scroll, 0.0), max(count - page, 0.0))
        self._bar.blockSignals(True)
        self._bar.setRange(0, max(math.ceil((count - page) * 16), 0))
        self._bar.setPageStep(max(int(page * 16), 1))
        self._bar.setSingleStep(16)
        self._bar.setValue(round(self._scroll * 16))
        self._bar.setVisible(count > page + 0.01)
        self._bar.blockSignals(False)

    @property
    def _count(self) -> int:
        return len(self._rows.rows)

    @property
    def _row_height(self) -> float:
        """Height of a row, logical pixels."""
        if self._height:
            return self._height
        return min(self._plot.height() / max(self._count, 1), _COMFORT)

    def _y(self, row: float) -> float:
        return self._plot.top() + (row - self._scroll) * self._row_height

    def _row_box(self, location: int) -> QRectF | None:
        """The rectangle of a location's row; None if none of it is in view."""
        row = self._rows.row_of(location)
        first, last = self._in_view()
        if not first <= row < last:
            return None
        return QRectF(self._plot.left(), self._y(row), self._plot.width(), max(self._row_height, 3))

    def _row_at(self, y: float) -> int:
        """The row at `y`; -1 if there is none."""
        row = math.floor((y - self._plot.top()) / self._row_height + self._scroll)
        return row if 0 <= row < self._count and self._plot.top() <= y <= self._plot.bottom() else -1

    def _in_view(self) -> tuple[int, int]:
        """The rows in view, also in part: the first, and that after the last."""
        first = max(math.floor(self._scroll), 0)
        last = math.ceil(self._scroll + self._plot.height() / self._row_height)
        return first, max(min(last, self._count), first)

    def _scrolled(self, value: int) -> None:
        self._scroll_to(value / 16)

    def _scroll_to(self, row: float) -> None:
        self._scroll = row
        if self._arranged:
            self._place_scroll()  # now, or the bar is painted after the rows, by itself
        self._anew()

    def scroll_rows(self, by: float) -> None:
        """Move down by some rows, or up."""
        self._scroll_to(self._scroll + by)

    def scale_rows(self, factor: float, y: float | None = None) -> None:
        """Make rows higher or lower; what is at `y` stays there."""
        anchor = self._plot.center().y() if y is None else y
        row = self._scroll + (anchor - self._plot.top()) / self._row_height
        all_rows = self._plot.height() / max(self._count, 1)
        height = min(max(self._row_height * factor, min(all_rows, _COMFORT)), 120.0)
        self._height = 0.0 if height <= min(all_rows, _COMFORT) * 1.001 else height
        self._scroll = row - (anchor - self._plot.top()) / self._row_height
        self.rows_changed()

    # ---- painting ------------------------------------------------------------------------------

    @guarded
    def resizeEvent(self, event: QResizeEvent | None) -> None:
        self._arranged = False
        super().resizeEvent(event)

    def _build(self) -> None:
        """Make the items of the scene. Items added to the plot count rows downwards from 0."""
        self._add_lane("rows", self._draw_rows, self._draw_labels).vb.invertY(True)
        self._head, self._frames = self._add_strips(self._draw_legend, self._draw_frame)
        self._frames.setZValue(40)

    def _arrange(self) -> None:
        """Place the frame and the marks; `_draw_anew` places the rest."""
        for item in (self._frames, self._above):
            item.place(QRectF(self.rect()))

    def _arrived(self) -> None:
        """Draw new tiles of the same view."""
        self._stale = self._base_stale = True
        self.dirty(self._plot)

    def _changing(self, *, base: bool) -> list[QRectF]:
        # Labels and legend stay the same while time is moved.
        return [self._plot] if self._timeline is not None and self._plot.height() else []

    def _draw_anew(self, dpr: float) -> None:
        screen = self.devicePixelRatioF()
        if screen != self._screen:
            self._screen, self._arranged = screen, False
        self._layout(screen)
        plot, box = self._plot, self.lanes["rows"].vb
        place_lane(self.lanes["rows"], plot)
        self._head.place(QRectF(0, 0, plot.right(), plot.top()))
        for item in (self.lanes["rows"], self._head, self._frames):
            item.setVisible(self._timeline is not None)
        self._marked = self._mark_rects()
        self.set_opaque(*([] if self._timeline is None else [plot]))
        if self._timeline is None:
            return
        box.show_range(
            self._nav.a, self._nav.b, self._scroll, self._scroll + plot.height() / self._row_height
        )
        self._make_rows(dpr)
        around = (
            dpr, self._theme, self.font(), plot, self._scroll, self._row_height, self._marked_rows,
            self._note(), self._legend_of(words()),
        )  # fmt: skip
        if around != self._around:
            self._around = around
            self.dirty()

    def _make_rows(self, dpr: float) -> None:
        """Draw the rows and what lies on them, in the pixels of the plot."""
        # Rows of a larger picture are those of the screen enlarged: it has tiles for no more.
        rows = self._draw_states(self._screen / self._coarse)
        plot, fit, t, fine = self._plot, self._over.fit, self._theme, dpr / self._coarse
        sheet = rows
        if fine != rows.image.devicePixelRatio():
            sheet = Raster(round(plot.width() * fine), round(plot.height() * fine), fine)
            with QPainter(sheet.image) as painter:
                blit(painter, QRectF(0, 0, plot.width(), plot.height()), rows.image)
        self._drawn = sheet
        m = TimeMap(self._nav.a, self._nav.b, 0.0, plot.width())
        fit_overlay.draw_boundaries(sheet.image, self._over.boundaries, m, QColor(t.accent))
        if fit is not None:
            if self._over.phase is not None and self._over.phase < fit.n:
                span = float(fit.breaks[self._over.phase]), float(fit.breaks[self._over.phase + 1])
                with self._upon(sheet) as painter:
                    self._tint_range(painter, span, t.accent, (plot,))
            fit_overlay.draw_breakpoints(sheet.image, fit, m, t)
        with self._upon(sheet) as painter:
            if self._grid:
                m, width = self._map(), self.fontMetrics().horizontalAdvance
                places = time_axis(m.a, m.b, words()).across(m.width, width).positions
                scales.grid(painter, LaneBox(plot), t, [m.x(v) for v in places], [])
            self._paint_links(painter)
            self._paint_path(painter)
            self._grey_outside(painter, [plot], self._map())

    @contextmanager
    def _upon(self, sheet: Raster) -> Iterator[QPainter]:
        """A painter on the picture of the rows, in the view's pixels."""
        with QPainter(sheet.image) as painter:
            painter.translate(-self._plot.topLeft())
            yield painter

    # What the items of the scene paint, in the view's pixels.

    def _draw_rows(self, painter: QPainter, rect: QRectF) -> None:
        if self._drawn is not None and self._timeline is not None:
            blit(painter, self._plot, self._drawn.image)
            self._notes.paint(painter, self._map(), [self._plot], self._theme, self._row_box)

    def _draw_labels(self, painter: QPainter, rect: QRectF) -> None:
        if self._timeline is not None:
            self._paint_labels(painter)

    def _draw_legend(self, painter: QPainter, rect: QRectF) -> None:
        if self._timeline is not None:
            # Here, as the axis below is cut off where its rows end.
            painter.setPen(QColor(self._theme.text))
            head = QRectF(3, 0, self._plot.left() - 10, self._plot.top())
            painter.drawText(head, Qt.AlignmentFlag.AlignRight | _MIDDLE, words()(self._heading))
            self._paint_legend(painter, self._legend_of(words()), self._note())

    def _draw_frame(self, painter: QPainter, rect: QRectF) -> None:
        self._frame(painter, self._plot)

    def _colours(self) -> list[QColor]:
        t = self._theme
        table = [QColor(t.background)] * gantt.CLASSES
        if self._by_region:
            styles = samples(t)
            for k in (*range(gantt.COLOURS), gantt.NO_REGION):
                table[k] = styles[f"shade {k}"].colour
        else:
            table[: len(_CODES)] = [QColor(getattr(t, a)) for a in _CODES]
        return table

    def _order(self) -> Ints:
        """The order in which a column that holds several classes shows them: the rarest first."""
        spent = np.full(gantt.CLASSES, np.inf)
        if self._by_region:
            weighed = np.bincount(self._classes, self._weights, minlength=gantt.CLASSES)
            spent[: weighed.size] = weighed
        else:
            spent[: self._rarity.size] = self._rarity
        return np.argsort(spent[: gantt.ABSENT], kind="stable").astype(np.int64)

    @property
    def _device_columns(self) -> int:
        """Columns in the screen's pixels, in which tiles are requested, also for coarse pictures."""
        return max(round(self._plot.width() * self._screen), 1)

    def _draw_states(self, dpr: float) -> Raster:
        plot = self._plot
        self._raster = Raster.of(plot, dpr, self._raster)
        ground = QColor(self._theme.background)
        self._raster.image.fill(ground)
        first, last = self._in_view()
        bands = np.arange(first // self._per, min(-(-last // self._per), self._bands))
        if bands.size:
            step = self._per * self._row_height * dpr
            origin = self._scroll * self._row_height * dpr
            tops = np.rint(bands * step - origin).astype(np.int64)
            bottoms = np.rint((bands + 1) * step - origin).astype(np.int64)
            end = round(self._count * self._row_height * dpr - origin)
            bottoms = np.minimum(bottoms, max(end, 0))
            screen, ends = self._row_height * self._screen, (int(bands[0]), int(bands[-1]) + 1)
            height = round(plot.height() * self._screen)
            target = TileView(
                self._nav.a, self._nav.b, self._device_columns, *ends, screen, self._scroll * screen, height
            )
            view = replace(target, columns=self._raster.image.width())
            layers = []
            for placed in self._tiles.get(target):
                rows = bands - placed.first
                rows[(rows < 0) | (rows >= placed.tile.dominant.shape[0])] = -1
                layers.append((placed.tile, rows, _columns(placed, view)))
            colours, order = self._colours(), self._order()
            for tile, rows, columns in _uncovered(layers):
                band = (tops, bottoms, rows)
                self._raster.tile(tile, band, columns, colours, order, max(1, round(dpr)), ground)
        return self._raster

    def _paint_labels(self, painter: QPainter) -> None:
        t, plot, metrics = self._theme, self._plot, self.fontMetrics()
        em, h = metrics.height(), self._row_height
        first, last = self._in_view()
        every = max(1, math.ceil(em * 0.95 / h))
        with saved(painter):
            painter.setClipRect(QRectF(0, plot.top() - 1, plot.left(), plot.height() + 2))
            for k in range(first - first % every, last, every):
                row = self._rows.rows[k]
                y = self._y(k + 0.5 if every == 1 else k)
                text = row.label
                if row.opened is not None:
                    text = f"{'▾' if row.opened else '▸'} {text}"
                marked = bool(self._marked_rows & set(row.locations))
                colour = t.accent if marked else t.muted if row.level or every > 1 else t.text
                painter.setPen(QColor(colour))
                box = QRectF(3, y - em / 2, plot.left() - 10, em)
                if every > 1:
                    top = min(max(y, plot.top()), plot.bottom() - em)
                    if y - top > em / 2:
                        continue  # cut off at the bottom, or over the one before
                    box.moveTop(top)
                text = metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, int(box.width()))
                painter.drawText(box, Qt.AlignmentFlag.AlignRight | _MIDDLE, text)
            for k in range(first, last) if self._marked_rows else ():
                if self._marked_rows & set(self._rows.rows[k].locations):
                    painter.fillRect(QRectF(plot.left() - 4, self._y(k), 3, max(h - 1, 1)), QColor(t.accent))

    def _paint_legend(self, painter: QPainter, entries: Sequence[LegendData], note: str) -> None:
        plot, metrics = self._plot, self.fontMetrics()
        row = QRectF(plot.left(), 0, plot.width(), plot.top())
        painter.setPen(QColor(self._theme.muted))
        painter.drawText(row, Qt.AlignmentFlag.AlignRight | _MIDDLE, note)
        room = row.adjusted(0, 0, -metrics.horizontalAdvance(note) - metrics.height(), 0)
        self._legend.paint(painter, room, entries, self._theme)

    def description(self) -> PlotData | None:
        """The description of the plot shown; None without a timeline."""
        if self._timeline is None:
            return None
        self.prepare(self.viewport().devicePixelRatioF())
        say, fit = words(), self._over.fit
        axis = time_axis(self._nav.a, self._nav.b, say)
        first, last = self._in_view()
        rows = [row.label for row in self._rows.rows[first:last]]
        lane = LaneData(AxisData(say(self._heading), float(last), float(first)), ())
        return PlotData(
            "timeline", "", axis, (lane,), tuple(self._legend_of(say)),
            fit=fit, breakpoints=None if fit is None else breakpoints(fit), phase=self._over.phase,
            notes=notes_in(self._notes.marks, axis), limit=self._over.limit,
            remarks=tuple(self._remarks(say)), cells=self._cells(), rows=tuple(rows),
            boundaries=boundaries_in(self._over.boundaries, axis),
        )  # fmt: skip

    def _cells(self) -> CellData | None:
        """The dominant class of each row in view in each drawn column; None before there are tiles."""
        first, last = self._in_view()
        begin, end = first // self._per, min(-(-last // self._per), self._bands)
        a, b = self.visible_range()
        tiles = self._tiles.available(TileView(a, b, self._device_columns, begin, end))
        if not tiles or begin == end:
            return None
        placed, tile = tiles[-1], tiles[-1].tile
        cut = np.clip(
            [math.floor((a - tile.a) / placed.pixel + 1e-6), math.ceil((b - tile.a) / placed.pixel - 1e-6)],
            0,
            tile.dominant.shape[1],
        )
        x = np.clip(tile.a + placed.pixel * np.arange(cut[0], cut[1] + 1), a, b)
        dominant = tile.dominant[begin - placed.first : end - placed.first, cut[0] : cut[1]]
        inks = _CODES if not self._by_region else [f"shade {k}" for k in range(gantt.ABSENT)]
        rows = [self._rows.rows[k * self._per].label for k in range(begin, end)]
        return CellData(rows, x, dominant.astype(np.int64), inks)

    def _legend_of(self, say: Words) -> list[LegendData]:
        assert self._timeline is not None
        if self._by_region:
            names = [self.name_of(region) for region in range(len(self._timeline.store.regions))]
            shares = region_shares(names, self._classes, self._weights)
            names, inks = [name for _, name, _ in shares], [f"shade {shade}" for _, _, shade in shares]
        else:
            names = [a for a in ACTIVITIES if self._rarity[_CODES.index(a)] > 0]
            inks = names
        items = class_legend(names, inks, say, by_region=self._by_region)
        if self._path_shown and self._path is not None:
            items += path_legend(say)
        marks = self._tiles.marks
        if marks is None:
            return items
        densest = 0 if marks.density is None else int(marks.density.max(initial=0))
        single = 0 if marks.messages is None else marks.messages.sent_s.size
        collectives = bool(marks.collectives) and self._sparse(len(marks.collectives))
        return items + mark_legend(say, messages=single, densest=densest, collectives=collectives)

    def _note(self) -> str:
        return "; ".join(self._remarks(words()))

    def _remarks(self, say: Words) -> list[str]:
        """Notes on what is not drawn, for want of room or as chosen."""
        notes = []
        marks = self._tiles.marks
        if not self._messages.shown:
            notes.append("messages are hidden")
        elif not self._messages.everything:
            notes.append(f"{grouped(0 if marks is None else marks.count)} messages meet the filter")
        if self._path_shown and self._path is None:
            notes.append("the critical path is not known yet")
        if self._per > 1:
            notes.append(shared_rows(self._count, self._bands, say))
        return notes

    def _paint_links(self, painter: QPainter) -> None:
        """Messages from senders to receivers, and the begins of collective operations."""
        marks = self._tiles.marks
        if marks is None:
            return
        t, m, plot = self._theme, self._map(), self._plot
        with saved(painter):
            painter.setClipRect(plot)
            if marks.density is not None:
                self._paint_density(painter, marks)
            elif marks.messages is not None:
                half = self._row_height / 2
                messages = marks.messages
                inside = np.flatnonzero((messages.sent_s <= m.b) & (messages.received_s >= m.a))
                row_of = self._rows.row_of
                y0 = [self._y(row_of(s)) + half for s in messages.sender[inside].tolist()]
                y1 = [self._y(row_of(r)) + half for r in messages.receiver[inside].tolist()]
                x0, x1 = m.x(messages.sent_s[inside]).tolist(), m.x(messages.received_s[inside]).tolist()
                lines = [QLineF(*ends) for ends in zip(x0, y0, x1, y1, strict=True)]
                painter.setPen(QPen(faded(t.text, 255 if inside.size < 200 else 150), 0))
                painter.drawLines(lines)
            if self._row_height < 3:
                return
            painter.setPen(QPen(QColor(t.selection), 2))
            ticks = []
            for c in marks.collectives if self._sparse(len(marks.collectives)) else ():
                if m.a <= c.begin_s <= m.b:
                    y = self._y(self._rows.row_of(c.location))
                    x = m.x(c.begin_s)
                    ticks.append(QLineF(x, y, x, y + min(self._row_height, 5)))
            painter.drawLines(ticks)

    def _paint_path(self, painter: QPainter) -> None:
        """The critical path as a line through the rows; zoomed out, the rows that it is in for each pixel."""
        if not self._path_shown or self._path is None or self._timeline is None:
            return
        m, plot, t = self._map(), self._plot, self._theme
        places = np.array([self._rows.row_of(i) for i in range(len(self._timeline.store.locations))], float)
        columns = max(1, round(plot.width()))
        segments, _ = self._path.lines(np.where(places < 0, np.nan, places + 0.5), m.a, m.b, columns)
        x0, x1 = m.x(segments[:, 0]).tolist(), m.x(segments[:, 2]).tolist()
        y0, y1 = ((plot.top() + (v - self._scroll) * self._row_height).tolist() for v in segments.T[1::2])
        lines = [QLineF(*ends) for ends in zip(x0, y0, x1, y1, strict=True)]
        with saved(painter):
            painter.setClipRect(plot)
            for colour, width in ((t.background, 4.0), (t.fit, 2.0)):
                pen = QPen(QColor(colour), width)
                pen.setCapStyle(Qt.PenCapStyle.SquareCap)
                painter.setPen(pen)
                painter.drawLines(lines)

    def _paint_density(self, painter: QPainter, marks: TileMarks) -> None:
        """The number of messages through each pixel, for the view in which they were counted; while time is
        moved, stretched until they are counted again."""
        view, m = marks.view, self._map()
        assert marks.density is not None
        dpr = self._screen
        if (view.step, view.height) != (self._row_height * dpr, marks.density.shape[0]):
            return  # the rows are others by now
        key = (marks, self._theme.text)
        if self._inked is None or self._inked[0] != key:
            self._inked = key, shaded(ink(marks.density), self._theme.text)
        top = self._plot.top() + view.scrolled / dpr - self._scroll * self._row_height
        x0, x1 = float(m.x(view.a)), float(m.x(view.b))
        painter.drawImage(QRectF(x0, top, x1 - x0, view.height / dpr), self._inked[1])

    def _sparse(self, marks: int) -> bool:
        """Whether so many marks are few enough to be drawn."""
        first, last = self._in_view()
        return sparse(marks, last - first, self._plot.width())

    def _boxes(self) -> list[tuple[list[str], float, float]]:
        """Lines of text in boxes, each with the place that it belongs to."""
        m, plot, drag = self._map(), self._plot, self._drag
        if self._stack is not None:
            location, time_s, rows = self._stack
            x = min(max(m.x(time_s), plot.left()), plot.right())
            return [(rows, x, self._y(self._rows.row_of(location) + 0.5) + 8)]
        if self._tip and drag is None and m.a <= self._cursor <= m.b:
            return [(self._tip, m.x(self._cursor), self._tip_y + 12)]
        return []

    @property
    def _bounds(self) -> QRectF:
        """The rectangle in which boxes may lie."""
        return QRectF(self._plot.left(), 0, self._plot.width(), self.height())

    def _mark_rects(self) -> list[QRectF] | None:
        plot, drag = self._plot, self._drag
        if self._timeline is None or not self._layout_key:
            return []
        if self._occurrence is not None or (drag is not None and drag.kind == "row"):
            return None
        rects = self._span_rects([plot]) + self._cursor_rects([plot])
        for rows, x, y in self._boxes():
            box = box_of(self.fontMetrics(), rows, x, y, self._bounds)
            rects += [box.adjusted(-1, -1, 1, 1), QRectF(x - 6, y - 14, 12, 12)]
        return rects

    def _paint_marks(self, painter: QPainter) -> None:
        """Paint what follows the mouse: selection, cursor, the box on a state."""
        t, plot, drag = self._theme, self._plot, self._drag
        self._paint_spans(painter, (plot,))
        if drag is not None and drag.kind == "row" and drag.moved and not math.isnan(drag.value):
            painter.setPen(QPen(QColor(t.accent), 2))
            y = self._landing(drag)
            painter.drawLine(QLineF(0, y, plot.right(), y))
        if self._occurrence is not None:
            self._outline(painter, *self._occurrence)
        self._paint_cursor(painter, [plot])
        for rows, x, y in self._boxes():
            if self._stack is not None:
                painter.setPen(QPen(QColor(t.accent), 2))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.drawEllipse(QPointF(x, y - 8), 4, 4)
            paint_box(painter, rows, x, y, self._bounds, t)

    def _outline(self, painter: QPainter, location: int, begin: float, end: float) -> None:
        m = self._map()
        row = self._rows.row_of(location)
        x0, x1 = (min(max(m.x(v), m.left - 2), m.left + m.width + 2) for v in (begin, end))
        if row >= 0 and end >= m.a and begin <= m.b:
            with saved(painter):
                painter.setClipRect(self._plot.adjusted(-3, -3, 3, 3))
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(QColor(self._theme.accent), 2))
                h = max(self._row_height, 3)
                painter.drawRect(QRectF(x0 - 1, self._y(row) - 1, max(x1 - x0, 3) + 2, h + 1))

    # ---- mouse and keys ------------------------------------------------------------------------

    def _region(self, p: QPointF) -> str:
        if self._timeline is None:
            return ""
        if self._plot.adjusted(-1, 0, 1, 0).contains(p):
            return "plot"
        return "labels" if p.x() < self._plot.left() and p.y() >= self._plot.top() else ""

    def _press(self, drag: Drag, region: str, t: float, modifiers: Qt.KeyboardModifier) -> None:
        if region == "labels":
            row = self._row_at(drag.press.y())
            if row >= 0:
                drag.kind, drag.index = "row", self._rows.rows[row].process
        else:
            super()._press(drag, region, t, modifiers)

    def _pull(self, drag: Drag, p: QPointF, t: float) -> None:
        row = self._row_at(p.y())
        if row >= 0:
            drag.value = self._y(row)
            self._marks_moved()

    def _landing(self, drag: Drag) -> float:
        """y of the place where a dragged process would be put: above the one that is there if it comes from
        below, else below."""
        first, last = self._rows.extent(self._rows.rows[max(self._row_at(drag.value + 1), 0)].process)
        return self._y(first if first < self._rows.extent(drag.index)[0] else last)

    def _drop(self, drag: Drag) -> None:
        row = self._row_at(drag.press.y())
        if not drag.moved:
            if row >= 0 and self._rows.rows[row].opened is not None:
                self._rows.toggle(drag.index)
                self.rows_changed()
            return
        target = self._row_at(drag.value + 1)
        if target >= 0 and self._rows.rows[target].process != drag.index:
            self._rows.move(drag.index, self._rows.rows[target].process)
            self.rows_changed()
            self.ordered.emit()

    def move_row(self, by: int) -> None:
        """Move the row under the pointer by some places; the same one again until the pointer moves."""
        row = self._row_at(self._tip_y)
        if row >= 0:
            if self._moving < 0:
                self._moving = self._rows.rows[row].process
            self._rows.step(self._moving, by)
            self.rows_changed()
            self.ordered.emit()

    def _clicked(self, drag: Drag, t: float) -> None:
        row = self._row_at(drag.press.y())
        self._stack, self._clicked_row = None, ()
        if row >= 0:
            self._clicked_row = self._rows.rows[row].locations
            self.stackAsked.emit(self._clicked_row[0], t)

    def _hover_at(self, p: QPointF, region: str) -> None:
        shape = Qt.CursorShape.ArrowCursor
        if self._space or (self._mode == "pan" and region == "plot"):
            shape = Qt.CursorShape.OpenHandCursor
        elif region == "plot":
            near = self._edge_near(p.x()) is not None
            shape = Qt.CursorShape.SplitHCursor if near else Qt.CursorShape.CrossCursor
        elif region == "labels":
            shape = Qt.CursorShape.PointingHandCursor
        self._point(shape)
        self._look(p, region)

    def _look(self, p: QPointF, region: str) -> None:
        """Describe what is under the pointer: first by the picture, then by the events."""
        row = self._row_at(p.y()) if region in ("plot", "labels") else -1
        self._tip_y, self._moving = p.y(), -1
        self._pointed = self._rows.rows[row].locations if row >= 0 else ()
        if row < 0 or region != "plot":
            self.setToolTip(self._rows.rows[row].title if row >= 0 else "")
            self._tip, self._under_pointer = [], (-1, math.nan)
            self.looked.emit(-1, math.nan)
            return
        flag = self._notes.at(p)
        self.setToolTip("" if flag is None else plain(flag.full_text))
        t, under = self._time(p.x()), self._rows.rows[row]
        self._tip = self._roughly(under, row, t)
        alone = len(under.locations) == 1 and self._per == 1
        self._under_pointer = (under.locations[0] if alone else -1, t)
        self.looked.emit(*self._under_pointer)
        self._marks_moved()

    def _roughly(self, under: TimelineRow, row: int, t: float) -> list[str]:
        """The classes in the column under the pointer, by the picture alone."""
        rows = [under.title]
        if self._per > 1:
            band = row // self._per * self._per
            last = self._rows.rows[min(band + self._per, self._count) - 1].title
            rows = [f"{self._rows.rows[band].title} to {last}, {self._per} rows in one"]
        elif len(under.locations) > 1:
            rows = [f"{under.title}, {len(under.locations)} threads in one row"]
        rows.append(scales.format_time(t, (self._nav.b - self._nav.a) / max(self._plot.width(), 1)))
        band = row // self._per
        view = TileView(self._nav.a, self._nav.b, self._device_columns, band, band + 1)
        for placed in reversed(self._tiles.available(view)):
            column = int((t - placed.tile.a) / placed.pixel)
            if not 0 <= column < placed.tile.dominant.shape[1]:
                continue
            k = band - placed.first
            hidden, dominant = int(placed.tile.hidden[k, column]), int(placed.tile.dominant[k, column])
            names = [self._class_name(dominant)]
            others = [c for c in range(gantt.CLASSES - 1) if hidden >> c & 1 and c != dominant]
            if others:
                names.append("also in this column: {}".format(", ".join(map(self._class_name, others))))
            return rows + names
        return rows

    def _class_name(self, number: int) -> str:
        if number == gantt.ABSENT:
            return "not there"
        if not self._by_region:
            return Activity(number).name.lower().replace("io", words()("io"))
        if number == gantt.NO_REGION:
            return NO_REGION_NAME
        assert self._timeline is not None
        named = [r for r in self._timeline.entered if self._classes[r + 1] == number]
        names = [self.name_of(r) for r in named[:3]]
        return " or ".join(names) + (" …" if len(named) > 3 else "")

    @guarded
    def leaveEvent(self, event: QEvent) -> None:
        self._tip, self._under_pointer, self._pointed = [], (-1, math.nan), ()
        super().leaveEvent(event)

    @guarded
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        flag = self._notes.at(event.position())
        if flag is not None:
            self.noteActivated.emit(flag.index)
        elif self._region(event.position()) == "labels":
            self.fit_rows()

    @guarded
    def wheelEvent(self, event: QWheelEvent) -> None:
        turn, p = event.angleDelta().y(), event.position()
        if self._ready and turn and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.scale_rows(1.25 ** (turn / 120), p.y())
            event.accept()
        elif self._ready and turn and p.x() < self._plot.left():
            self.scroll_rows(-turn / 120 * max(3.0, self._plot.height() / self._row_height / 10))
            event.accept()
        else:
            super().wheelEvent(event)

    @guarded
    def keyPressEvent(self, event: QKeyEvent) -> None:
        page, key = self._plot.height() / self._row_height, Qt.Key
        steps: dict[int, float]
        steps = {key.Key_Up: -1.0, key.Key_Down: 1.0, key.Key_PageUp: -page, key.Key_PageDown: page}
        by = steps.get(event.key())
        if by is None:
            super().keyPressEvent(event)
        elif event.modifiers() & Qt.KeyboardModifier.AltModifier:
            self.move_row(1 if by > 0 else -1)
        else:
            self.scroll_rows(by)

    def menu_at(self, p: QPointF) -> QMenu:
        """The context menu for a place in the plot."""
        menu = passing_menu(self)
        row, t = self._row_at(p.y()), self._time(p.x())
        stack = menu.addAction(
            "Call &stack here", lambda: self._clicked(Drag("", p, Qt.MouseButton.LeftButton), t)
        )
        stack.setEnabled(row >= 0)
        rows = () if row < 0 else self._rows.rows[row].locations
        remark = menu.addAction("Add &remark to this location…", lambda: self.noteAsked.emit(rows[0], t))
        remark.setEnabled(bool(rows))
        menu.addSeparator()
        path = menu.addAction("Critical &path", lambda: self.pathWanted.emit(not self._path_shown))
        path.setCheckable(True)
        path.setChecked(self._path_shown)
        menu.addAction("&All rows in view", self.fit_rows)
        for text, opened in (("&Open all processes", True), ("&Close all processes", False)):
            action = menu.addAction(text, partial(self._open_all, opened))
            action.setEnabled(self._rows.grouped)
        menu.addSeparator()
        self._add_limit(menu, t)
        return plot_menu.finish(menu, self)

    def table(self) -> Iterable[plot_menu.Row]:
        """The dominant class of each row in view, as ranges of drawn columns."""
        yield "row", "name", "start_s", "end_s", "state"
        cells = self._cells()
        if cells is None:
            return
        first = self._in_view()[0] // self._per
        for k, label in enumerate(cells.rows):
            title = self._rows.rows[(first + k) * self._per].title
            for begin, end, place in cells.stretches(k):
                yield label, title, begin, end, self._class_name(place)

    def fit_rows(self) -> None:
        """Make rows as high as lets all of them be in view."""
        self._height = 0.0
        self.rows_changed()

    def _open_all(self, opened: bool) -> None:
        self._rows.open_all(opened)
        self.rows_changed()


#: A tile, its row of every band (-1: none) and the columns (from, to) of it that each pixel column shows.
_Layer = tuple["Tile", Ints, tuple[Ints, Ints]]


def _uncovered(layers: list[_Layer]) -> list[_Layer]:
    """Layers from back to front, without columns that a layer in front of them paints in all bands."""
    seen: list[_Layer] = []
    covered: Flags | bool = False
    for tile, rows, (low, high) in reversed(layers):
        seen.append((tile, rows, (low, np.where(covered, low, high))))
        if rows.min() >= 0:
            covered = covered | (high > low)
    return seen[::-1]


def _columns(placed: Placed, view: TileView) -> tuple[Ints, Ints]:
    """The columns of a tile (from, to) that each pixel column shows; the same where there are none."""
    tile, pixel = placed.tile, (view.b - view.a) / view.columns
    edges = (view.a + pixel * np.arange(view.columns + 1) - tile.a) / placed.pixel
    count = tile.dominant.shape[1]
    if abs(placed.pixel / pixel - 1) < 1e-6:
        low = np.rint(edges[:-1])
        high = low + 1
    else:
        low = np.floor(edges[:-1] + 1e-6)
        high = np.maximum(np.ceil(edges[1:] - 1e-6), low + 1)
    outside = (low < 0) | (low >= count)
    high = np.where(outside, low, np.minimum(high, count))
    return low.astype(np.int64), high.astype(np.int64)

"""The timeline with its controls: opens the summary of a trace, asks it beside the window, shows answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QEvent, QStringListModel, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QCompleter,
    QHBoxLayout,
    QLineEdit,
    QMenu,
    QToolButton,
    QVBoxLayout,
    QWidget,
    QWidgetAction,
)

from desktop.core.arrays import Floats
from desktop.core.units import quantity
from desktop.data.message_filter import MessageFilter
from desktop.ui.elided import Elided
from desktop.ui.guard import guarded
from desktop.ui.pages import choices, fill_layout, set_up, titled
from desktop.ui.plots import scales
from desktop.ui.plots.message_form import MessageForm
from desktop.ui.plots.navigation import Navigation
from desktop.ui.plots.timeline_rows import ORDERS, TimelineRows
from desktop.ui.plots.timeline_tiles import Tiles
from desktop.ui.plots.timeline_view import OpenTimeline, TimelineView
from desktop.workbench.jobs import Deliver, Job, Lane

if TYPE_CHECKING:
    from desktop.data.timeline import SummaryLevel, Timeline, TimelineMessages
    from desktop.data.utilization import Rules
    from desktop.workbench.tracing import Document

_ORDER_TITLES = {
    "trace": "Trace order",
    "busy": "Most busy first",
    "first": "Earliest first",
    "hand": "By hand",
}
#: Milliseconds of searching before that is shown.
_LONG = 400
#: Regions searched for at once when a part of a name matches several.
_MOST_MATCHES = 64
#: Between the names of several regions to search for.
_OR = " | "


class _FindField(QLineEdit):
    """Return finds the next, Shift+Return the previous, Esc clears: also while the list of names is open.

    That list hands its keys to the field past event filters and shortcuts, so they are handled here.
    """

    findAsked = Signal(bool)  # forward
    left = Signal()

    @guarded(otherwise=bool)
    def event(self, event: QEvent) -> bool:
        """Take Esc before the window's shortcut does."""
        escape = isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape
        if escape and event.type() == QEvent.Type.ShortcutOverride:
            event.accept()
            return True
        return super().event(event)

    @guarded
    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, shift = event.key(), bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        completer = self.completer()
        assert completer is not None
        listed = completer.popup()
        assert listed is not None
        returned = key in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        find = QKeySequence.StandardKey.FindNext, QKeySequence.StandardKey.FindPrevious
        if returned or any(event.matches(keys) for keys in find):
            entry = listed.currentIndex()
            if returned and listed.isVisible() and entry.isValid():
                self.setText(entry.data())
            listed.hide()
            self.findAsked.emit(not shift)
        elif key == Qt.Key.Key_Escape and not listed.isVisible():
            self.clear()
            self.left.emit()
        else:
            super().keyPressEvent(event)


class TimelinePane(QWidget):
    """The timeline with its bar. `failed` gets the errors of its jobs. A `Timeline` is used by one thread."""

    opened = Signal(bool)  # whether there is a timeline now
    filtered = Signal()  # other messages are shown

    def __init__(
        self, navigation: Navigation, deliver: Deliver, failed: Callable[[BaseException], None]
    ) -> None:
        super().__init__()
        thread = ThreadPoolExecutor(1, thread_name_prefix="phasewright-timeline")

        def lane(name: str) -> Lane:
            return Lane(name, latest=True, deliver=deliver, executor=thread)

        self._thread = thread
        self._failed = failed
        self._opening, self._hovering, self._asking = lane("open"), lane("hover"), lane("ask")
        tiles = lane("tiles")
        self._lanes = (self._opening, self._hovering, self._asking, tiles)
        self._timeline: Timeline | None = None
        self._key: tuple[object, ...] | None = None
        # Where the search goes on: a location, a time, and the words found there ("": it was clicked).
        self._place: tuple[int, float, str] | None = None
        self._finding = False
        self._marked_names: tuple[str, ...] = ()  # names that were put into the field from elsewhere
        self.view = TimelineView(lambda changed: Tiles(tiles, changed, failed), navigation)
        self.view.looked.connect(self._look)
        self.view.stackAsked.connect(self._ask_stack)
        self.view.ordered.connect(lambda: self._order.setCurrentIndex(ORDERS.index("hand")))
        self._make_bar()
        fill_layout(QVBoxLayout(self), self._bar, (self.view, 1), margins=0, spacing=0)

    def _make_bar(self) -> None:
        self._bar = QWidget()
        row = fill_layout(QHBoxLayout(self._bar), margins=(6, 2, 6, 2), spacing=6)
        self._colour = choices({False: "Activity", True: "Region"}, objectName="timeline_colour")
        self._colour.currentIndexChanged.connect(lambda k: self.view.set_by_region(k == 1))
        self._order = choices({order: _ORDER_TITLES[order] for order in ORDERS}, objectName="timeline_order")
        self._order.currentIndexChanged.connect(lambda k: self._sort(ORDERS[k]))
        wide = self.fontMetrics().averageCharWidth()
        self._search = set_up(
            _FindField(), objectName="timeline_search", placeholderText="Name of a region",
            clearButtonEnabled=True, minimumWidth=14 * wide, maximumWidth=26 * wide, textChanged=self._mark,
            findAsked=self.find_next, left=self.view.setFocus,
        )  # fmt: skip
        self._names = QStringListModel(self)
        completer = set_up(QCompleter(self._names, self), caseSensitivity=Qt.CaseSensitivity.CaseInsensitive)
        completer.setFilterMode(Qt.MatchFlag.MatchContains)
        self._search.setCompleter(completer)
        self._result = Elided()
        self._make_messages()
        for text, widget in (("&Colours", self._colour), ("Ro&ws", self._order), ("&Find", self._search)):
            fill_layout(row, titled(text, widget), widget)
        for arrow, tip, forward in (
            (Qt.ArrowType.LeftArrow, "Previous occurrence (Shift+F3)", False),
            (Qt.ArrowType.RightArrow, "Next occurrence (F3)", True),
        ):
            button = set_up(QToolButton(), arrowType=arrow, toolTip=tip, accessibleName=tip, autoRaise=True)
            button.clicked.connect(lambda _=False, forward=forward: self.find_next(forward))
            row.addWidget(button)
        fill_layout(row, (self._result, 1), self.messages)

    def _make_messages(self) -> None:
        """A button that shows and hides messages; its arrow opens the form of their filter."""
        self.message_form = MessageForm()
        self.message_form.changed.connect(self._filtered)
        menu = QMenu(self)
        holder = set_up(QWidgetAction(menu), defaultWidget=self.message_form)
        menu.addAction(holder)
        self.messages = set_up(
            QToolButton(), objectName="timeline_messages", text="Messages", checkable=True, checked=True,
            toolTip="Show or hide messages (M); the arrow: which of them", autoRaise=True, menu=menu,
            popupMode=QToolButton.ToolButtonPopupMode.MenuButtonPopup, clicked=self.show_messages,
        )  # fmt: skip

    @property
    def message_filter(self) -> MessageFilter:
        """The filter of the messages shown."""
        return self.view.message_filter

    def set_message_filter(self, criteria: MessageFilter) -> None:
        """Show only messages that meet these criteria, in the form too."""
        self.message_form.show_filter(criteria)
        self._filtered(criteria)

    def show_messages(self, shown: bool) -> None:
        """Draw messages or not; the other criteria of the filter stay."""
        self.set_message_filter(replace(self.message_filter, shown=shown))

    def _filtered(self, criteria: MessageFilter) -> None:
        self.messages.setChecked(criteria.shown)
        text = "Messages" if criteria.everything else "Messages (filtered)"
        self.messages.setText(text)
        if criteria != self.view.message_filter:
            self.view.set_messages(criteria)
            self.filtered.emit()

    # ---- what is shown -------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether a result is still awaited."""
        return any(lane.busy for lane in self._lanes) or (self.isVisible() and self.view.tiles.busy)

    def show_trace(
        self, document: Document | None, rules: Rules | None = None, seconds: Floats | None = None
    ) -> None:
        """Show the timeline of a trace by these rules, None: none; `seconds`: (locations, activities)."""
        # At the same place there may be another trace by now.
        key = None if document is None else (document.store, document.identity, _shape(rules))
        if key == self._key:
            return
        same_trace = self._key is not None and key is not None and self._key[:2] == key[:2]
        self._key = key
        if not same_trace:
            self._opening.cancel()
            self._replace(None)
        if document is not None and seconds is not None:
            self._opening.submit(
                "Timeline", lambda job: _open(document, rules, seconds, job), self._replace, self._failed
            )

    def _replace(self, current: OpenTimeline | None) -> None:
        for lane in self._lanes[1:]:
            lane.cancel()
        former, self._timeline = self._timeline, None if current is None else current.timeline
        if former is not None and current is not None:
            current.rows.take_over(self.view.rows)
        self.view.set_timeline(current)
        self.message_form.set_communicators({} if current is None else current.timeline.communicators)
        if former is not None:
            # In the thread that may be reading it.
            self._thread.submit(former.close)
        self._list_names()
        if current is None:
            self._order.setCurrentIndex(0)
        self._search.setText(_OR.join(self._marked_names))
        self.opened.emit(current is not None)

    def set_names(self, names: Mapping[str, str]) -> None:
        """Names of regions in place of those in the trace, by which they are drawn, listed and found."""
        self.view.set_names(names)
        self._list_names()

    def _list_names(self) -> None:
        entered = [] if self._timeline is None else self._timeline.entered
        name_of = self.view.name_of
        self._names.setStringList(sorted({name_of(r) for r in entered}))

    def close_trace(self) -> None:
        """End all jobs and close the file."""
        former, self._timeline = self._timeline, None
        for lane in self._lanes:
            lane.cancel()
        self.view.set_timeline(None)
        self._thread.shutdown(wait=True)
        if former is not None:
            former.close()

    def set_order(self, order: str) -> None:
        """Sort the rows, if there is such an order."""
        if order in ORDERS:
            self._order.setCurrentIndex(ORDERS.index(order))

    def _sort(self, order: str) -> None:
        if self.view.rows.order != order:
            self.view.rows.sort(order)
            self.view.rows_changed()

    # ---- states --------------------------------------------------------------------------------

    def _look(self, location: int, time_s: float) -> None:
        """Describe the state under the pointer, from the events."""
        timeline = self._timeline
        self._hovering.cancel()
        if location < 0 or timeline is None or math.isnan(time_s):
            return
        a, b = self.view.visible_range()
        pixel, names = (b - a) / max(self.view.width(), 1), self.view.name_of
        self._hovering.submit(
            "Looking",
            lambda job: describe(timeline, location, time_s, pixel, names),
            lambda rows: self.view.show_tip(location, time_s, rows),
            self._failed,
        )

    def _ask_stack(self, location: int, time_s: float) -> None:
        timeline = self._timeline
        if timeline is None:
            return
        self._place, self._finding = (location, time_s, ""), False
        a, b = self.view.visible_range()
        pixel, names = (b - a) / max(self.view.width(), 1), self.view.name_of
        self._asking.submit(
            "Call stack",
            lambda job: describe_stack(timeline, location, time_s, pixel, names),
            lambda rows: self.view.show_stack(location, time_s, rows),
            self._failed,
        )

    # ---- finding -------------------------------------------------------------------------------

    def seek(self, names: Sequence[str]) -> None:
        """Put names of regions into the field: rows that enter them are marked, and F3 goes to them."""
        if names or self._marked_names:
            self._search.setText(_OR.join(names))
            self._search.setCursorPosition(0)
        self._marked_names = tuple(names)

    def start_search(self) -> None:
        """Put the focus into the search field."""
        self._search.setFocus()
        self._search.selectAll()

    def _matches(self) -> list[int]:
        """The regions that match the words in the field."""
        words, timeline = self._search.text().strip().lower(), self._timeline
        if not words or timeline is None:
            return []
        name_of = self.view.name_of
        names = {r: name_of(r).lower() for r in timeline.entered}
        several = {words, *words.split(_OR)}
        exact = [r for r, name in names.items() if name in several]
        return exact or [r for r, name in names.items() if words in name][:_MOST_MATCHES]

    def _mark(self) -> None:
        """Mark the rows that enter the regions being typed."""
        timeline, regions = self._timeline, self._matches()
        if self._finding:  # for other words
            self._asking.cancel()
            self._finding = False
        if self._place is not None and self._place[2]:
            self._place = None
        if timeline is None or not regions:
            self._result.setText("no such region is entered" if self._search.text().strip() else "")
            self.view.set_marked(frozenset())
            return
        marked = frozenset(np.unique(np.concatenate([timeline.entering(r) for r in regions])).tolist())
        self.view.set_marked(marked)
        self._result.setText(f"in {len(marked)} of {int(timeline.present.sum())} locations")

    def find_next(self, forward: bool = True) -> None:
        """Go to the next (previous) time that the region is entered in the chosen row, under the pointer or
        with the clicked state; if there is none, in any row.

        It starts at the last one found, or the clicked state, if that is in view, else at the view's edge.
        """
        timeline, regions, words = self._timeline, self._matches(), self._search.text()
        if timeline is None or not regions:
            self.start_search()
            return
        a, b = self.view.visible_range()
        pixel, names = (b - a) / max(self.view.width(), 1), self.view.name_of
        start, but = (a, -1) if forward else (b, len(timeline.store.locations))
        row, place = self.view.chosen_row, self._place
        if place is not None and a <= place[1] <= b:
            but, start, _ = place

        def waiting() -> None:
            if self._finding:
                self._result.setText("looking…")

        def failed(error: BaseException) -> None:
            self._finding = False
            self._result.clear()
            self._failed(error)

        def done(hit: _Occurrence | None) -> None:
            self._finding = False
            if hit is None:
                side = "after here" if forward else "before here"
                self._result.setText(f"none {side}")
                return
            self._place = hit.location, hit.begin_s, words
            self._result.setText(f"{names(hit.region)}, {scales.format_time(hit.begin_s, pixel)}, {hit.name}")
            self.view.show_occurrence(hit.location, hit.begin_s, hit.end_s)
            self.view.show_stack(hit.location, hit.begin_s, hit.stack)

        self._finding = True
        search = partial(timeline.find, regions, start, forward=forward, but=but)
        self._asking.submit(
            "Finding", lambda job: _find(timeline, search, row, pixel, names, job), done, failed
        )
        QTimer.singleShot(_LONG, self, waiting)


# ---- the work itself: functions of what they are given


def _shape(rules: Rules | None) -> tuple[object, ...]:
    """The part of the rules that a timeline depends on."""
    return () if rules is None else (tuple(sorted(rules.overrides.items())), rules.repaired)


def _open(document: Document, rules: Rules | None, seconds: Floats, job: Job) -> OpenTimeline | None:
    from desktop.data.timeline import open_timeline

    store = document.open_again()
    try:
        timeline = open_timeline(store, rules, job)
        if timeline is None:
            store.close()
            return None
        first = [timeline.first_s(i) for i in range(len(store.locations))]
        rows = TimelineRows(store.locations, timeline.present.tolist(), seconds[:, 0].tolist(), first)
        # Loads the kernels of the first picture, which would be done by the window's thread.
        for by_region in (None, np.zeros(len(store.regions) + 1, np.uint8)):
            timeline.tile([[0]], 0.0, 1.0, 1, by_region)
        return OpenTimeline(timeline, rows, timeline.weights(), seconds.sum(0))
    except BaseException:
        store.close()
        raise


#: What a region is called.
Names = Callable[[int], str]


@dataclass(frozen=True)
class _Occurrence:
    """An occurrence of a region: location, time, and the lines of its call stack."""

    location: int
    name: str
    region: int
    begin_s: float
    end_s: float
    stack: list[str]


def _find(
    timeline: Timeline,
    search: Callable[..., tuple[int, float, int] | None],
    row: tuple[int, ...],
    pixel: float,
    names: Names,
    job: Job,
) -> _Occurrence | None:
    hit = None
    for among in (row, None) if row else (None,):
        hit = hit or search(among=among, progress=job)
    if hit is None:
        return None
    location, begin, region = hit
    levels = [x for x in timeline.at(location, begin).levels if x.region == region and x.begin_s == begin]
    end = begin
    if levels:
        end = timeline.end_s if levels[-1].end_s is None else levels[-1].end_s
    stack = describe_stack(timeline, location, begin, pixel, names)
    return _Occurrence(location, _called(timeline, location), region, begin, end, stack)


def _called(timeline: Timeline, location: int) -> str:
    about = timeline.store.locations[location]
    return " – ".join(dict.fromkeys(t for t in (about.process, about.name) if t))


def describe(timeline: Timeline, location: int, time_s: float, pixel: float, names: Names) -> list[str]:
    """Lines about the state of a location at an instant: region, duration, begin, depth, messages."""
    moment = timeline.at(location, time_s, whole=False)
    rows = [_called(timeline, location)]
    if not moment.present:
        return [*rows, "not there"]
    if not moment.levels:
        begin, end = moment.begin_s, moment.end_s
        rows.append(f"in no region: {moment.activity.name.lower()}")
    else:
        level = moment.levels[-1]
        begin, end = level.begin_s, timeline.end_s if level.end_s is None else level.end_s
        rows.append(f"{names(level.region)}: {moment.activity.name.lower()}")
    rows.append(f"lasts {quantity(end - begin, 's')} from {scales.format_time(begin, pixel)}")
    if (moment.begin_s, moment.end_s) != (begin, end):
        rows.append(f"exclusive time here: {quantity(moment.end_s - moment.begin_s, 's')}")
    if moment.levels:
        rows.append(f"call depth {moment.depth}")
    for c in timeline.collectives(time_s, time_s, 8, location) or []:
        root = "" if c.root < 0 else f", root {_rank(timeline, c.root)}"
        called = timeline.communicators.get(c.communicator, f"communicator {c.communicator}")
        rows.append(
            f"{c.operation} in {called}{root}, "
            f"sends {quantity(c.sent, 'B')}, receives {quantity(c.received, 'B')}"
        )
    if moment.levels:
        messages = timeline.messages_of(location, moment.begin_s, moment.end_s)
        rows += _message_rows(timeline, location, messages)
    return rows


def _message_rows(timeline: Timeline, location: int, messages: TimelineMessages | None) -> list[str]:
    if messages is None:
        return []
    rows = []
    for k in range(min(messages.sender.size, 3)):
        out = messages.sender[k] == location
        partner = _rank(timeline, int(messages.receiver[k] if out else messages.sender[k]))
        flight = quantity(float(messages.received_s[k] - messages.sent_s[k]), "s")
        word = "to" if out else "from"
        rows.append(
            f"message {word} rank {partner}: {quantity(float(messages.bytes[k]), 'B')}, {flight} on its way"
        )
    if messages.sender.size > 3:
        rows.append(f"and {messages.sender.size - 3} more messages")
    return rows


def _rank(timeline: Timeline, location: int) -> str:
    about = timeline.store.locations[location]
    return str(about.rank) if about.rank >= 0 else about.name


def describe_stack(timeline: Timeline, location: int, time_s: float, pixel: float, names: Names) -> list[str]:
    """The call stack at an instant, the outermost first."""
    moment = timeline.at(location, time_s)
    rows = [f"{_called(timeline, location)} at {scales.format_time(time_s, pixel)}"]
    if not moment.present:
        return [*rows, "not there"]
    if not moment.levels:
        return [*rows, "in no region"]
    limit = 24
    levels = moment.levels
    for depth, level in enumerate(levels):
        if len(levels) > limit and depth == limit // 2:
            rows.append(f"… {moment.depth - limit} more …")
        if len(levels) <= limit or not limit // 2 <= depth < len(levels) - limit // 2:
            rows.append(f"{'  ' * min(depth, 8)}{_level(names(level.region), level, pixel)}")
    return rows


def _level(name: str, level: SummaryLevel, pixel: float) -> str:
    begin = scales.format_time(level.begin_s, pixel)
    if level.end_s is None:
        return f"{name}: from {begin}, for long"
    return f"{name}: {quantity(level.end_s - level.begin_s, 's')} from {begin}"

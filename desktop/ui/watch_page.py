"""The page that watches a run: its curve with the phases so far, its processors, where the time goes."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from PySide6.QtCore import QSize, Qt, QTimer
from PySide6.QtGui import QFont, QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QSlider, QToolBar, QWidget

from desktop.core.labels import ACTIVITIES, DEGREES, MODELS
from desktop.core.phase_stats import phase_table
from desktop.core.selection import SWEEP
from desktop.core.units import count, digits, percent, quantity
from desktop.data.chart import Axis, Cells, Content
from desktop.data.columns import Column, TableRow
from desktop.printing import printable
from desktop.ui import commands
from desktop.ui.commands import When, moves, with_common
from desktop.ui.guard import guarded
from desktop.ui.page import Page
from desktop.ui.pages import button, choices, divided, labelled, set_up
from desktop.ui.plots.chart import Chart
from desktop.ui.plots.curve_view import CurveView
from desktop.ui.tables import FrameView
from desktop.workbench.watching import Watcher, WatchSnapshot

if TYPE_CHECKING:
    from desktop.data.following import Followed
    from desktop.ui.frame import Frame
    from desktop.workbench.workbench import Snapshot

WatchCommand: TypeAlias = commands.Command["WatchPage", WatchSnapshot]

#: Milliseconds between two looks; while the page cannot be seen, only one of so many is taken.
_INTERVAL, _UNSEEN = 490, 5
#: Rows of the map at most; of more processors, neighbours share one.
_ROWS = 256
#: Calls that are listed, those that take the most time.
_CALLS = 6
_MODELS = ("constant", "linear", "quadratic", "mixed")
_LATER = "Appears when all processes have made their first calls"
_COLUMNS = (
    Column("Phase", whole=True),
    Column("Start", unit="s", tip="Since the first process began"),
    Column("Duration", unit="s"),
    Column("Kind"),
    Column("Mean", unit="proc", tip="Processors that compute"),
    Column("Efficiency", unit="%", significant=3, tip="The same as a share of all processors"),
)

_going = When[WatchSnapshot](lambda s: not s.over, "a run that goes on")
_started_here = When[WatchSnapshot](lambda s: s.running, "a program that was started from here")
_seen = When[WatchSnapshot](lambda s: s.followed.curve is not None, "a curve")
WATCH_COMMANDS: tuple[WatchCommand, ...] = with_common((
    commands.Command("stop_program", "Stop the program", "File", "End the program; what was recorded is kept",
                     lambda w: w.watcher.stop(), ("Ctrl+.",), _started_here),
    commands.Command("pause", "Pause", "Watch", "Freeze the picture; what arrives is shown later",
                     lambda w: w.watcher.pause(not w.snapshot.paused), ("Space",), _going,
                     mark=lambda w: w.snapshot.paused),
    commands.Command("more", "One phase more", "Watch", "Fit with one phase more",
                     lambda w: w.step(1), ("Up",), _seen, rule=True),
    commands.Command("fewer", "One phase fewer", "Watch", "Fit with one phase fewer",
                     lambda w: w.step(-1), ("Down",), _seen),
    commands.Command("suggested", "Suggested number", "Watch", "Use the suggested number of phases",
                     lambda w: w.watcher.choose(), ("Ctrl+G",), _seen),
    *moves(lambda w: w.curve, _seen),
    commands.Command("show_all", "Whole run", "View", "Show the run from its beginning, and follow it",
                     lambda w: w.curve.show_all(), ("Home", "Ctrl+0"), _seen),
))  # fmt: skip


class _Words(QWidget):
    """Paragraphs that change at each look: labels would have the whole window laid out with every text."""

    def __init__(self, name: str, sample: str, align: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignTop) -> None:
        """`sample`: a text that it has room for."""
        super().__init__()
        self._sample, self._align = sample, align | Qt.TextFlag.TextWordWrap
        self._lines: tuple[tuple[str, bool, bool], ...] = ()
        set_up(self, objectName=name.lower(), accessibleName=name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)

    def say(self, text: str, bold: str = "", italic: str = "") -> None:
        """Show them: the bold one above, the italic one below."""
        lines = tuple(p for p in ((bold, True, False), (text, False, False), (italic, False, True)) if p[0])
        if lines != self._lines:
            self._lines = lines
            self.setAccessibleDescription(self.text())
            self.update()

    def text(self) -> str:
        """What is shown."""
        return "\n".join(text for text, _, _ in self._lines)

    @guarded
    def paintEvent(self, _event: QPaintEvent) -> None:
        free, font = self.rect(), QFont(self.font())
        with QPainter(self) as painter:
            for text, bold, italic in self._lines:
                font.setBold(bold)
                font.setItalic(italic)
                painter.setFont(font)
                free.setTop(free.top() + painter.drawText(free, self._align, text).height())

    @guarded(otherwise=QSize)
    def sizeHint(self) -> QSize:
        return self.fontMetrics().size(0, self._sample)

    @guarded(otherwise=QSize)
    def minimumSizeHint(self) -> QSize:
        return QSize(1, self.sizeHint().height())


class WatchPage(Page):
    """Follows one run; when it has ended the trace is opened, and the page closes."""

    KIND = NAME = "watch"
    COMMANDS = WATCH_COMMANDS
    MENUS = ("File", "Edit", "Watch", "View", "Help")
    MOUSE = (("Wheel", "Zoom in and out"), ("Drag", "Select a range"))
    PAGE = "getting-traces.md"

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame)
        self.setWindowTitle("Watch – Phasewright")
        self.watcher = Watcher(self._show_snapshot, self._results.deliver)
        self._make_centre()
        self._make_controls()
        self._make_actions()
        sample = "999.99 s, 9999 of 9999 processes, 9 999 999 999 records, ended, its trace is being opened"
        self._selected = _Words("State", sample, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.status = (self._selected,)
        self._timer = set_up(
            QTimer(self), interval=_INTERVAL, timerType=Qt.TimerType.PreciseTimer, timeout=self._look
        )
        self._passed = 0
        self._begin()
        self.show_anew()

    def _make_centre(self) -> None:
        self.curve = CurveView(_LATER, one_beside=True)
        self.rows = Chart("Processors over time", help_at="getting-traces.md#watching-a-run")
        self.phases = FrameView("Phases of the run so far")
        self.accounts = _Words("Accounts", 60 * "0" + (_CALLS + 1) * "\n0")
        below = divided(Qt.Orientation.Horizontal, (self.phases, 3), (self.accounts, 2), sizes=[600, 400])
        parts = (self.curve, 45), (self.rows, 30), (below, 25)
        down = divided(Qt.Orientation.Vertical, *parts, objectName="down", sizes=[450, 300, 220])
        self.setCentralWidget(down)

    def _make_controls(self) -> None:
        bar = set_up(QToolBar("Watch"), objectName="watch_bar", movable=False)
        self.model = choices(
            {key: MODELS[key] for key in _MODELS}, objectName="model", toolTip="Kind of the phases",
            act=lambda model: self.watcher.choose(n=self.snapshot.n, model=model),
        )  # fmt: skip
        self.slider = set_up(
            QSlider(Qt.Orientation.Horizontal), objectName="n", minimum=1, maximum=SWEEP,
            accessibleName="Number of phases", minimumWidth=220, valueChanged=self._slid,
        )  # fmt: skip
        self.number = set_up(QLabel("–"), objectName="number", minimumWidth=180)
        self.stop = button("Stop the program", self.watcher.stop, name="stop")
        for text, widget in (("&Model", self.model), ("&Phases", self.slider)):
            bar.addWidget(labelled(text, widget, margins=(6, 0, 6, 0)))
        bar.addWidget(self.number)
        self._may_stop = bar.addWidget(self.stop)  # a button in a bar is seen as its action is
        self.addToolBar(bar)

    # ---- what the frame asks

    @property
    def snapshot(self) -> WatchSnapshot:
        return self.watcher.snapshot

    @property
    def name(self) -> str:
        return self.snapshot.folder.name if self.snapshot.folder else ""

    @property
    def running(self) -> str:
        return "The program that is being recorded is stopped." if self.snapshot.running else ""

    def open_paths(self, paths: list[Path]) -> None:
        self.frame.trace.open_paths(paths)

    def show_anew(self) -> None:
        self._show_snapshot(WatchSnapshot(), self.snapshot)
        self._refresh_actions()

    def _end(self) -> None:
        self._timer.stop()
        self.watcher.close()

    # ---- following

    def start(self, folder: Path, command: list[str] | None) -> None:
        """Follow what is recorded into a folder, by a command that is run if one is given."""
        self.watcher.start(folder, command)
        self._timer.start()
        self.watcher.look()

    def _look(self) -> None:
        self._passed += 1
        window = self.window().windowHandle()
        seen = self.isVisible() and window is not None and window.isExposed()
        if self._passed >= _UNSEEN or (seen and not self.window().isMinimized()):
            self._passed = 0
            self.watcher.look()

    @guarded
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._passed = _UNSEEN  # what was missed is seen at once

    def step(self, by: int) -> None:
        """Fit `by` more phases."""
        fit = self.snapshot.fit
        if fit is not None:
            self.watcher.choose(n=min(max(fit.requested + by, 1), SWEEP))

    def _slid(self, n: int) -> None:
        fit = self.snapshot.fit
        if fit is not None and n != fit.requested:
            self.watcher.choose(n=n)

    def _show_snapshot(self, old: WatchSnapshot, new: WatchSnapshot) -> None:
        """Draw what differs."""
        seen = new.followed
        if seen is not old.followed:
            self._show_curve(new)
            self.rows.set_content(_processors(new.followed))
            self._show_accounts(new)
        fit = new.fit
        if fit is not old.fit:
            if seen is old.followed:  # else it has come with its curve
                self.curve.show_over(fit=fit)
            self._show_phases(new)
        self.slider.setEnabled(fit is not None)
        if fit is not None:
            self.slider.blockSignals(True)
            self.slider.setValue(fit.requested)
            self.slider.blockSignals(False)
            self.number.setText(f"{fit.requested} ({'suggested' if new.n is None else 'chosen'})")
        self.model.setCurrentIndex(self.model.findData(new.model))
        self._may_stop.setVisible(new.running)
        ended = "ended" if new.problem else "ended, its trace is being opened"
        state = "paused" if new.paused else ended if new.over else "running"
        self._selected.say(
            f"{new.doing}, once" if new.doing else
            f"{quantity(seen.latest_s, 's')}, {seen.processes} of {seen.expected} processes, "
            f"{count(seen.records, 'record')}, {state}"
        )  # fmt: skip
        if new.problem != old.problem:
            self.tell_problem(new.problem, lambda: None)
        if new.over and not old.over:
            self._timer.stop()
            if not new.problem and new.folder is not None:
                self._open(new.folder, new.code)
        states = [(s.over, s.running, s.paused, s.followed.curve is None) for s in (old, new)]
        if states[0] != states[1]:  # all that conditions and marks depend on
            self._refresh_actions()

    def _open(self, folder: Path, code: int | None) -> None:
        """At the end of the run: open its trace, and close this page as soon as it is open."""
        frame = self.frame.main
        bench = frame.trace.workbench

        def opened(_: Snapshot, new: Snapshot) -> None:
            if new.opening is not None:
                return
            bench.unsubscribe(opened)
            if frame.current is self:
                frame.go_to(frame.trace)
            if self in frame.all_pages:
                QTimer.singleShot(0, self, lambda: frame.close_page(self))
            if code:
                frame.trace.tell("ended", "notice", f"The program ended with exit code {code}.", settled=True)

        frame.trace.open_paths([folder])
        bench.subscribe(opened)
        opened(bench.snapshot, bench.snapshot)  # not begun where something is asked first

    def _show_curve(self, new: WatchSnapshot) -> None:
        """The grown curve; a view of the whole run stays whole, any other stays where it is."""
        curve = new.followed.curve
        if curve is not None:
            self.curve.grow(curve, new.followed.curves, new.fit, new.followed.until_s)

    def _show_accounts(self, new: WatchSnapshot) -> None:
        """Where the time has gone so far; who waited for whom is only known after the run."""
        seen = new.followed
        total = sum(seen.seconds.values())
        if not total:
            self.accounts.say(_LATER)
            return
        parts = [
            f"{ACTIVITIES[name]} {percent(spent / total)} ({quantity(spent, 'proc·s')})"
            for name, spent in seen.seconds.items()
        ]
        calls = [
            f"{printable(name, 60)}: {quantity(spent, 'proc·s')}, {count(number, 'call')}"
            for name, number, spent in seen.calls[:_CALLS]
        ]
        self.accounts.say(
            "\n".join(calls),
            bold=f"{'; '.join(parts)}.",
            italic="Waiting and moving data are distinguished when the run has ended.",
        )

    def _show_phases(self, new: WatchSnapshot) -> None:
        fit, curve = new.fit, new.followed.curve
        if fit is None or curve is None or fit.breaks[-1] > curve.start + curve.duration * (1 + 1e-12):
            return
        rows = [
            TableRow((k, row.start_s, row.end_s - row.start_s, DEGREES[row.degree], row.mean,
                      100 * row.efficiency), k)
            for k, row in enumerate(phase_table(curve, fit), 1)
        ]  # fmt: skip
        self.phases.show_rows(_COLUMNS, rows, f"{count(fit.n, 'phase')}, {digits(fit.epsilon)} largest error")


@lru_cache(maxsize=1)  # the same at every look
def _printable(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(printable(name, 40) for name in names)


def _processors(seen: Followed) -> Content:
    """How much each processor computes over time; where processors share a row, their mean."""
    share, names = seen.share, seen.names
    if share.shape[0] > _ROWS:
        groups = np.array_split(np.arange(share.shape[0]), _ROWS)
        share = np.stack([share[group].mean(axis=0) for group in groups])
        names = tuple(f"{names[group[0]]} – {names[group[-1]]}" for group in groups)
    edges, filled = seen.edges_s, share.shape[1]
    if filled:  # the rest of the axis has no values yet
        columns = max(math.ceil(seen.until_s / float(edges[1] - edges[0])), filled)
        cells = np.full((share.shape[0], columns), np.nan)
        cells[:, :filled] = share
        share = cells

    def cell_words(row: int, column: int) -> str:
        if column >= filled:
            return ""
        return (
            f"{names[row]}, {edges[column]:.4g} to {edges[column + 1]:.4g} s: "
            f"{percent(float(share[row, column]))} computing"
        )

    return Content(
        Axis("Time", time=True),
        Axis("", categories=_printable(names), down=True),
        heading="Share of the time that each processor computes",
        cells=Cells(
            share, percent, cell_words, numbers=False, measure="Computing", limits=(0.0, 1.0),
            across=(0.0, share.shape[1] * float(edges[1] - edges[0])),
        ) if filled else None,
        empty=_LATER,
    )  # fmt: skip

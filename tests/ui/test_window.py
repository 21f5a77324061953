"""The real window, without a display: what the user does, and what is then shown."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QMimeData, QObject, QPoint, QPointF, QSettings, QSize, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication, QImage, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QDialog,
    QMenu,
    QPushButton,
    QSpinBox,
    QTabBar,
    QTableView,
    QTextBrowser,
    QToolButton,
)
from pytestqt.qtbot import QtBot

from desktop.core import phases
from desktop.core.curve import StepCurve
from desktop.core.spaces import Basis
from desktop.core.units import digits, quantity
from desktop.data.events import Activity
from desktop.resources import samples
from desktop.ui.actions import COMMANDS
from desktop.ui.exporting import ReportDialog
from desktop.ui.frame import Frame
from desktop.ui.mnemonics import plain
from desktop.ui.panels import panels
from desktop.ui.panels.phases import PhasesPanel
from desktop.ui.plots.chart import Chart
from desktop.ui.plots.sweep_plots import BreakpointPicture, EpsilonPlot, SweepPlot
from desktop.ui.settings import Settings
from desktop.ui.snapshot import snapshot as take_snapshot
from desktop.ui.tables import FrameView
from desktop.ui.trace_page import TracePage

LEVELS = (2.0, 7.0, 4.0, 8.0)
STEPS = 400  # of each level


pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture
def curve_file(tmp_path: Path) -> Path:
    """Four levels with a little noise, one second each: four phases, whoever looks."""
    rng = np.random.default_rng(7)
    level = np.repeat(LEVELS, STEPS) + rng.choice([0.0, 1.0], 4 * STEPS, p=[0.8, 0.2])
    time = np.arange(4 * STEPS + 1) / STEPS
    rows = [f"{t:.6f},{h:g}" for t, h in zip(time, [*level, 0.0], strict=True)]
    file = tmp_path / "four levels.csv"
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return file


@pytest.fixture
def window(qtbot: QtBot, settings: Settings, no_thread_left: None) -> Iterator[TracePage]:
    """pytest-qt fails a test whose slots raise."""
    made = Frame(settings).trace
    qtbot.addWidget(made.frame)
    made.frame.resize(1280, 720)
    made.frame.show()
    yield made
    made.frame.close_unasked()


def settle(qtbot: QtBot, window: TracePage) -> None:
    qtbot.waitUntil(lambda: not window.workbench.busy, timeout=60_000)


@pytest.fixture
def opened(qtbot: QtBot, window: TracePage, curve_file: Path) -> TracePage:
    window.open_path(curve_file)
    settle(qtbot, window)
    assert window.workbench.snapshot.problem is None
    return window


def spin_box(window: TracePage) -> QSpinBox:
    found = window.findChild(QSpinBox, "n")
    assert isinstance(found, QSpinBox)
    return found


def shown_n(window: TracePage) -> int:
    """Phases of the fit that is drawn."""
    fit = window.workbench.snapshot.fit
    assert fit is not None and fit is window.curve_view._over.fit
    return fit.n


def trigger(window: TracePage, command: str) -> None:
    action = window.actions_by_id[command]
    assert action.isEnabled(), command
    action.trigger()


def test_start_page_offers_samples_and_recent_files(
    qtbot: QtBot, window: TracePage, settings: Settings, tmp_path: Path
) -> None:
    texts = [b.text() for b in window.start_page.findChildren(QPushButton)]
    for sample in samples():
        assert sample.title in texts
        assert sample.path.exists()
    assert all(dock.isHidden() for dock in window._docks.values()), "panels without a trace would be empty"
    there, gone = tmp_path / "there.csv", tmp_path / "gone.csv"
    there.write_text("0 1\n1 1\n")
    for path in (gone, there):
        settings.add_recent(path)
    window.start_page.show_recent(settings.recent)
    QApplication.processEvents()
    links = {b.text(): b for b in window.start_page.findChildren(QPushButton) if b.isVisibleTo(window)}
    assert links["there.csv"].isEnabled() and not links["gone.csv"].isEnabled()
    links["Clear this list"].click()
    assert settings.recent == []


def test_opening_shows_curve_fit_table_and_title_at_once(opened: TracePage, curve_file: Path) -> None:
    snapshot = opened.workbench.snapshot
    assert snapshot.run is not None and snapshot.suggestion is not None
    assert snapshot.suggestion.n == 4
    assert shown_n(opened) == 4
    assert opened.panel("table").model.rowCount() == 4
    assert opened.windowTitle() == "four levels.csv[*] – Phasewright"
    assert opened.settings.recent == [curve_file]
    breaks = snapshot.fit.breaks if snapshot.fit is not None else ()
    assert breaks == pytest.approx([0, 1, 2, 3, 4], abs=0.02)
    means = [row.mean for row in snapshot.rows]
    assert means == pytest.approx([level + 0.2 for level in LEVELS], abs=0.1)


def test_the_first_trace_lays_the_page_out_once(
    qtbot: QtBot, window: TracePage, curve_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not with each dock that it shows."""
    sizes: list[QSize] = []

    class Watched(QObject):
        def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
            if isinstance(event, QResizeEvent):
                sizes.append(event.size())
            return False

    watched, show = Watched(), window._show_document
    counted: list[int] = []

    def shown(*snapshots: Any) -> None:
        sizes.clear()
        show(*snapshots)
        counted.append(len(sizes))

    monkeypatch.setattr(window, "_show_document", shown)
    window.centralWidget().installEventFilter(watched)
    window.open_path(curve_file)
    settle(qtbot, window)
    assert counted[0] == 1
    for panel in ("phases", "table"):
        assert not window._docks[panel].visibleRegion().isEmpty()


def test_n_by_typing_wheel_keys_slider_and_picture(qtbot: QtBot, opened: TracePage) -> None:
    box = spin_box(opened)
    box.setFocus()
    box.selectAll()
    qtbot.keyClicks(box, "12")
    qtbot.keyClick(box, Qt.Key.Key_Return)
    assert shown_n(opened) == 12
    middle = QPointF(box.rect().center())
    QApplication.sendEvent(
        box,
        QWheelEvent(
            middle, QPointF(box.mapToGlobal(middle.toPoint())), QPoint(), QPoint(0, 120),
            Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
        ),
    )  # fmt: skip
    assert shown_n(opened) == 13
    # Brackets write no number, so they act although the box has the focus.
    qtbot.keyClick(box, "[")
    qtbot.keyClick(box, "[")
    assert shown_n(opened) == 11
    qtbot.keyClick(box, "]")
    assert shown_n(opened) == 12 == box.value()
    opened.panel("phases").slider.setValue(5)
    assert shown_n(opened) == 5
    opened.panel("phases").epsilon_plot.nClicked.emit(9)
    assert shown_n(opened) == 9
    plot, slider = opened.panel("phases").epsilon_plot, opened.panel("phases").slider
    for n, known in ((33, 40), (150, 160), (300, 200)):
        box.selectAll()
        qtbot.keyClicks(box, str(n))
        qtbot.keyClick(box, Qt.Key.Key_Return)
        settle(qtbot, opened)
        assert shown_n(opened) == n and plot._count == known == slider.maximum()
        fit = opened.workbench.snapshot.fit
        assert fit is not None and plot._epsilon_of(n) == pytest.approx(fit.epsilon)
        mark, laid = plot._selection(), plot.current_layout
        assert mark is not None and mark.x == n and mark.y == pytest.approx(fit.epsilon)
        assert laid.x[0] <= (math.log10(n) if laid.content.x.log else n) <= laid.x[1], "it is on the axis"


def test_epsilon_plot_and_break_picture_take_clicks(qtbot: QtBot, opened: TracePage) -> None:
    panel = opened.panel("phases")
    for plot in (panel.epsilon_plot, panel.breakpoint_picture):
        panel.pictures.setCurrentWidget(plot)
        with qtbot.waitSignal(plot.nClicked) as asked:
            qtbot.mouseClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=plot.rect().center())
        assert shown_n(opened) == asked.args[0]


def test_what_is_suggested_cannot_be_taken_twice(qtbot: QtBot, opened: TracePage) -> None:
    button, bench = opened.panel("phases")._suggested, opened.workbench
    bench.use_suggestion()
    settle(qtbot, opened)
    assert bench.snapshot.as_suggested and not button.isEnabled()
    bench.set_n(bench.snapshot.project.phases.n + 2)
    settle(qtbot, opened)
    assert button.isEnabled()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    settle(qtbot, opened)
    assert shown_n(opened) == bench.snapshot.suggestion.n and not button.isEnabled()


def test_every_model_is_fitted_and_the_shown_fit_is_the_right_one(qtbot: QtBot, opened: TracePage) -> None:
    run = opened.workbench.snapshot.run
    assert run is not None
    for model in phases.MODELS:
        trigger(opened, f"model_{model}")
        settle(qtbot, opened)
        opened.workbench.set_n(8)
        settle(qtbot, opened)
        fit = opened.workbench.snapshot.fit
        assert fit is not None and fit.model == model
        assert fit.epsilon == pytest.approx(phases.fit(run.curve, 8, model).epsilon, rel=1e-9)
        shown = opened.panel("phases")._values["epsilon"].text()
        assert float(shown.split()[0]) == pytest.approx(fit.epsilon, rel=1e-3)


def test_a_period_is_searched_or_typed(qtbot: QtBot, opened: TracePage) -> None:
    panel, workbench = opened.panel("phases"), opened.workbench
    assert panel.seconds.isHidden()
    trigger(opened, "model_periodic")
    settle(qtbot, opened)
    run = workbench.snapshot.run
    assert run is not None
    searched = phases.basis_of(run.curve, "periodic")
    assert workbench.snapshot.fit.basis == searched
    assert not panel.seconds.isHidden() and panel.seconds.text() == quantity(searched.seconds, "s", 5)
    typed = quantity(2 * searched.seconds, "s", 5)
    panel.seconds.selectAll()
    qtbot.keyClicks(panel.seconds, typed)
    qtbot.keyClick(panel.seconds, Qt.Key.Key_Return)
    settle(qtbot, opened)
    fit = workbench.snapshot.fit
    assert fit.basis.seconds == pytest.approx(2 * searched.seconds, rel=1e-4)
    assert fit.epsilon == pytest.approx(phases.fit(run.curve, fit.n, "periodic", basis=fit.basis).epsilon)
    trigger(opened, "undo")
    settle(qtbot, opened)
    assert workbench.snapshot.fit.basis == searched
    assert panel.seconds.text() == quantity(searched.seconds, "s", 5)
    qtbot.keyClicks(panel.seconds, "soon")
    qtbot.keyClick(panel.seconds, Qt.Key.Key_Return)
    assert panel.seconds.text() == quantity(searched.seconds, "s", 5)
    trigger(opened, "model_mixed")
    settle(qtbot, opened)
    assert panel.seconds.isHidden()


def test_a_sweep_of_the_wheel_is_one_undo_step(qtbot: QtBot, opened: TracePage) -> None:
    first = shown_n(opened)
    for _ in range(3):
        trigger(opened, "more")
    assert opened.actions_by_id["undo"].text() == f"Undo set {first + 3} phases"
    trigger(opened, "undo")
    assert shown_n(opened) == first
    assert not opened.actions_by_id["undo"].isEnabled()
    trigger(opened, "redo")
    assert shown_n(opened) == first + 3


def test_breaks_by_hand_move_lock_add_remove_and_undo(qtbot: QtBot, opened: TracePage) -> None:
    bench = opened.workbench
    free = bench.snapshot.fit
    assert free is not None
    opened.curve_view.breakpointDragged.emit(2, 2.3)
    held = bench.snapshot.fit
    assert held is not None and bench.snapshot.preview
    assert held.breaks[2] == pytest.approx(2.3)
    assert held.sse > free.sse, "the error follows the hand"
    assert opened.panel("phases").epsilon_plot._by_hand == held.epsilon, "and so does its mark"
    assert not opened.actions_by_id["undo"].isEnabled(), "a drag is no edit before it is dropped"
    opened.curve_view.breakpointDropped.emit(2, 2.3)
    assert opened.actions_by_id["undo"].text() == "Undo move breakpoint 2"
    assert opened.panel("phases").epsilon_plot._by_hand == held.epsilon
    opened.curve_view.breakpointLockToggled.emit(2)
    trigger(opened, "refit")
    settle(qtbot, opened)
    assert opened.panel("phases").epsilon_plot._by_hand is None
    fit = bench.snapshot.fit
    assert fit is not None and 2.3 in fit.breaks.round(9), "a locked breakpoint stays where it is"
    opened.curve_view.breakpointAddRequested.emit(0.5)
    assert shown_n(opened) == 5 and opened.actions_by_id["undo"].text() == "Undo add breakpoint 1"
    opened.curve_view.breakpointRemoveRequested.emit(1)
    assert shown_n(opened) == 4
    for _ in range(5):
        trigger(opened, "undo")
        settle(qtbot, opened)
    assert bench.snapshot.fit is not None
    assert bench.snapshot.fit.breaks == pytest.approx(free.breaks)
    assert bench.history.undo_label is None


def test_a_break_is_dragged_with_the_mouse(qtbot: QtBot, opened: TracePage) -> None:
    view, bench = opened.curve_view, opened.workbench
    fit = bench.snapshot.fit
    assert fit is not None
    start, end = (
        QPoint(round(view._map().x(t)), round(view._main.rect.center().y())) for t in (fit.breaks[1], 1.4)
    )
    qtbot.mousePress(view.viewport(), Qt.MouseButton.LeftButton, pos=start)
    for share in (0.3, 0.6, 1.0):
        qtbot.mouseMove(view.viewport(), start + (end - start) * share)
    assert bench.snapshot.preview
    qtbot.keyClick(view, Qt.Key.Key_Escape)
    assert not bench.snapshot.preview and bench.snapshot.fit is fit, "Esc gives the drag up"
    qtbot.mousePress(view.viewport(), Qt.MouseButton.LeftButton, pos=start)
    for share in (0.3, 0.6, 1.0):
        qtbot.mouseMove(view.viewport(), start + (end - start) * share)
    qtbot.mouseRelease(view.viewport(), Qt.MouseButton.LeftButton, pos=end)
    assert bench.snapshot.fit is not None
    assert bench.snapshot.fit.breaks[1] == pytest.approx(1.4, abs=0.02)
    assert bench.history.undo_label == "move breakpoint 1"


def test_table_plot_and_keys_select_each_other(qtbot: QtBot, opened: TracePage) -> None:
    table, view = opened.panel("table").view, opened.curve_view
    table.selectRow(2)
    assert view._over.phase == 2
    view.phaseSelected.emit(1)
    assert table.currentIndex().row() == 1
    view.setFocus()
    qtbot.keyClick(view, ".")
    assert (view._over.phase, table.currentIndex().row()) == (2, 2)
    qtbot.keyClick(view, ",")
    qtbot.keyClick(view, "z")
    assert view.visible_range() == pytest.approx((1.0, 2.0), abs=0.05)
    qtbot.keyClick(view, Qt.Key.Key_Escape)
    assert view._over.phase is None and not table.selectionModel().hasSelection()


def test_the_table_stays_where_it_is_when_n_changes(qtbot: QtBot, opened: TracePage) -> None:
    table = opened.panel("table").view
    for n in (60, 61, 59):
        opened.workbench.set_n(n)
        settle(qtbot, opened)
        QApplication.processEvents()
        if n == 60:
            table.scrollTo(table.model().index(30, 0), table.ScrollHint.PositionAtTop)
        assert table.model().rowCount() == n == len(opened.workbench.snapshot.rows)
        assert table.rowAt(2) == 30
        shown, row = table.model().index(30, 2).data(), opened.workbench.snapshot.rows[30]
        assert float(shown) == pytest.approx(row.start_s, rel=1e-4)


def test_only_a_fit_that_takes_long_is_announced(qtbot: QtBot, opened: TracePage) -> None:
    panel, bench = opened.panel("phases"), opened.workbench
    shown = panel._values["epsilon"]
    quick = bench.snapshot
    bench._publish(replace(quick, refining=True))
    assert "refining" not in shown.text()
    qtbot.waitUntil(lambda: "refining" in shown.text())
    bench._publish(quick)
    assert "refining" not in shown.text()


def test_table_cells_are_painted_as_they_read(qtbot: QtBot, opened: TracePage) -> None:
    """A selected row in the colours of a selection, and a text too wide for its cell within it."""
    table = opened.panel("table").view
    opened.workbench.select_phase(1)
    table.setFocus()

    def cell(row: int, column: int) -> QImage:
        return table.viewport().grab(table.visualRect(table.model().index(row, column))).toImage()

    def ink(row: int, column: int) -> set[str]:
        image = cell(row, column)
        return {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}

    text, chosen = table.palette().text().color().name(), table.palette().highlight().color().name()
    assert text in ink(0, 4) and chosen in ink(1, 4)
    assert chosen not in ink(0, 4) | ink(2, 4)
    header = table.horizontalHeader()
    header.setSectionResizeMode(header.ResizeMode.Fixed)
    header.setMinimumSectionSize(8)
    before = cell(0, 1)
    table.setColumnWidth(2, 12)
    assert cell(0, 1) == before, "not over its neighbour"
    table.setColumnHidden(2, True)
    assert cell(0, 1) == before and text in ink(0, 3)


def test_moving_in_time_by_keys(qtbot: QtBot, opened: TracePage) -> None:
    view = opened.curve_view
    view.setFocus()
    whole = view.visible_range()
    qtbot.keyClick(view, "w")
    closer = view.visible_range()
    assert closer[1] - closer[0] == pytest.approx((whole[1] - whole[0]) / 2)
    qtbot.keyClick(view, "d")
    assert view.visible_range()[0] > closer[0]
    qtbot.keyClick(view, Qt.Key.Key_Home)
    assert view.visible_range() == whole
    qtbot.keyClick(view, Qt.Key.Key_Left, Qt.KeyboardModifier.AltModifier)
    assert view.visible_range() != whole


def test_arrows_move_the_view_unless_a_widget_uses_them(qtbot: QtBot, opened: TracePage) -> None:
    view, slider = opened.curve_view, opened.panel("phases").slider
    view.zoom_to(1.0, 2.0)
    view.setFocus()
    qtbot.waitUntil(view.hasFocus)
    qtbot.keyClick(view, Qt.Key.Key_Right)
    assert view.visible_range() == pytest.approx((1.25, 2.25))
    qtbot.keyClick(view, Qt.Key.Key_Left)
    assert view.visible_range() == pytest.approx((1.0, 2.0))
    slider.setFocus()
    qtbot.waitUntil(slider.hasFocus)
    before = slider.value()
    qtbot.keyClick(slider, Qt.Key.Key_Right)
    assert slider.value() == before + 1 and view.visible_range() == pytest.approx((1.0, 2.0))
    table = opened.panel("table").view
    table.setFocus()
    qtbot.waitUntil(table.hasFocus)
    qtbot.keyClick(table, Qt.Key.Key_Right)
    assert view.visible_range() == pytest.approx((1.0, 2.0))


def test_single_letters_are_text_where_text_is_written(qtbot: QtBot, opened: TracePage) -> None:
    opened.show_panel("classes")
    search = opened.panel("classes").search
    search.setFocus()
    qtbot.waitUntil(search.hasFocus)
    before = opened.curve_view.visible_range()
    qtbot.keyClicks(search, "was")
    assert search.text() == "was" and opened.curve_view.visible_range() == before


def test_cursor_is_read_out(opened: TracePage) -> None:
    opened.curve_view.cursorMoved.emit(1.5)
    text = opened._cursor_text.text()
    assert text.startswith("1.500 s") and "phase 2" in text and "processors" in text
    opened.curve_view.cursorMoved.emit(math.nan)
    assert "on average" in opened._cursor_text.text()


def test_copied_table_is_what_a_spreadsheet_takes(opened: TracePage) -> None:
    trigger(opened, "copy_table")
    lines = [line.split("\t") for line in QGuiApplication.clipboard().text().splitlines()]
    assert len(lines) == 5 and len({len(line) for line in lines}) == 1
    head = lines[0]
    durations = [float(line[head.index("Duration [ms]")]) for line in lines[1:]]
    assert sum(durations) == pytest.approx(4000)
    assert [line[0] for line in lines[1:]] == ["1", "2", "3", "4"]


def test_a_small_window_stays_small_and_holds_everything(qtbot: QtBot, opened: TracePage) -> None:
    """800 x 500 logical pixels: a screen of 1600 x 1000 at scale 2."""
    small = QSize(800, 500)
    opened.frame.resize(small)
    for n in (2, 9):
        opened.workbench.set_n(n)
        for panel in ("trace", "classes", "statistics", "profile", "messages", "table", "phases"):
            opened.show_panel(panel)
            settle(qtbot, opened)
            QApplication.processEvents()
            assert opened.frame.size() == small, panel
    panel = opened.panel("phases")
    for wide in (340, 300, 280, 260, 240, 200):
        opened.resizeDocks([opened._docks["phases"]], [wide], Qt.Orientation.Horizontal)
        for _ in range(3):  # parts within parts are laid out one after the other
            QApplication.processEvents()
        assert panel.width() == wide
        assert panel.horizontalScrollBar().maximum() == 0, "nothing is cut off"
    value, title = panel._values["epsilon"], panel._titles["epsilon"]
    assert value.y() > title.y()
    views = opened.panel("views")
    opened.show_panel("views")
    QApplication.processEvents()
    # Beside a scroll bar for what is too high.
    assert views.width() <= 200 and all(
        button.geometry().right() < views.width() for button in views.findChildren(QToolButton)
    ), "buttons go on in a second row"
    opened.show_panel("phases")
    bars = [bar for bar in opened.findChildren(QTabBar) if bar.isVisible() and bar.parent() is opened]
    assert len({bar.tabText(0) for bar in bars}) == len(bars) == 2, "one for each side"
    opened.frame.resize(1600, 1000)
    QApplication.processEvents()
    assert panel.width() > 300, "it grows with the window"
    assert value.y() <= title.y() + 8
    opened.resizeDocks([opened._docks["phases"]], [500], Qt.Orientation.Horizontal)
    opened.frame.resize(1700, 1000)
    QApplication.processEvents()
    assert panel.width() == 500, "it is as wide as it was made"


@pytest.mark.parametrize("anew", [False, True], ids=["closed trace", "another start"])
def test_panels_grow_with_a_window_that_showed_none(
    qtbot: QtBot, opened: TracePage, settings: Settings, curve_file: Path, anew: bool
) -> None:
    opened.frame.resize(800, 500)
    QApplication.processEvents()
    opened.resizeDocks([opened._docks["phases"]], [180], Qt.Orientation.Horizontal)
    QApplication.processEvents()
    assert opened.panel("phases").width() == 180
    window = opened
    if anew:
        opened.frame.close_unasked()
        window = Frame(settings).trace
        qtbot.addWidget(window.frame)
        window.frame.show()
        assert window.frame.width() <= 800
    else:
        trigger(opened, "close")
        settle(qtbot, opened)
    window.frame.resize(1600, 1000)
    QApplication.processEvents()
    window.open_path(curve_file)
    settle(qtbot, window)
    qtbot.waitUntil(lambda: window.panel("phases").width() > 300)
    window.frame.close_unasked()


def test_copied_picture_is_twice_the_screen(opened: TracePage) -> None:
    trigger(opened, "copy_picture")
    image = QGuiApplication.clipboard().image()
    assert image.width() == 2 * opened.curve_view.width()


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "empty"), (b"0 1\n5 oops\n", "bad.csv"), (bytes(range(256)) * 40, "bad.csv")],
)
def test_a_bad_file_is_one_sentence_and_changes_nothing(
    qtbot: QtBot, window: TracePage, tmp_path: Path, content: bytes, words: str
) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_bytes(content)
    window.open_path(bad)
    settle(qtbot, window)
    assert window.frame.problem_bar.isVisible()
    sentence = window.frame.problem_bar.sentence
    assert words in sentence and "Traceback" not in sentence and "\n" not in sentence
    assert window.workbench.snapshot.document is None
    buttons = {b.text(): b for b in window.frame.problem_bar.findChildren(QPushButton)}
    buttons["Copy"].click()
    assert sentence in QGuiApplication.clipboard().text()
    buttons["Dismiss"].click()
    assert not window.frame.problem_bar.isVisible()


def test_cancel_leaves_what_was(qtbot: QtBot, window: TracePage, monkeypatch: pytest.MonkeyPatch) -> None:
    from desktop.data import opening

    started, ended = threading.Event(), threading.Event()
    real = opening.importers.detect

    def held(path: Path) -> object:
        """The real importer, at the mercy of the test: it reports progress until it is cancelled."""
        found = real(path)

        def read(path: Path, sink: object, progress: object) -> None:
            try:
                while True:
                    started.set()
                    progress.step(10, 100, "reading")  # type: ignore[attr-defined]  # it is a Progress
            finally:
                ended.set()

        from dataclasses import replace

        return replace(found, read=read)

    monkeypatch.setattr(opening.importers, "detect", held)
    window.open_path(samples()[0].path)
    qtbot.waitUntil(lambda: started.is_set() and "reading" in window.frame.task_list.text, timeout=20_000)
    assert window.frame.task_list.lines[0].cancel.isVisible()
    window.frame.task_list.lines[0].cancel.click()
    assert ended.wait(20), "Cancel acts"
    assert not window.frame.task_list.isVisible() and window.workbench.snapshot.document is None
    assert window.workbench.snapshot.problem is None


def test_a_long_fit_stands_among_the_tasks_and_is_cancelled(
    qtbot: QtBot, window: TracePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    from desktop.progress import Cancelled

    window.open_path(samples()[0].path)
    settle(qtbot, window)
    n, ended = window.workbench.snapshot.project.phases.n, threading.Event()

    def endless(*_: object, stop: np.ndarray, **__: object) -> None:
        while not stop[0]:
            time.sleep(0.005)
        ended.set()
        raise Cancelled

    monkeypatch.setattr(phases, "fit", endless)
    window.workbench._fits.pace["mixed"] = 1.0
    qtbot.waitUntil(lambda: not window.frame.task_list.isVisible(), timeout=20_000)
    window.workbench.set_n(300)
    assert not window.frame.task_list.isVisible(), "a fit of a moment would flicker there"
    qtbot.waitUntil(
        lambda: any("Fitting 300 phases" in line.text for line in window.frame.task_list.lines),
        timeout=20_000,
    )
    lines = [line for line in window.frame.task_list.lines if "300" in line.text]
    lines[0].cancel.click()
    assert ended.wait(20), "Cancel acts"
    assert window.workbench.snapshot.project.phases.n == n and window.workbench.snapshot.problem is None
    monkeypatch.undo()
    qtbot.waitUntil(lambda: not window.frame.task_list.isVisible(), timeout=20_000)


def test_the_curve_says_what_is_in_doubt(qtbot: QtBot, window: TracePage, tmp_path: Path) -> None:
    """On the curve itself, as its bar can be dismissed; a whole trace says nothing."""
    lines = (Path(__file__).parents[1] / "data/paraver/farm_6.prv").read_bytes().splitlines(keepends=True)
    cut = tmp_path / "cut.prv"
    cut.write_bytes(b"".join(lines[: len(lines) // 2]))
    window.open_path(cut)
    settle(qtbot, window)
    assert (
        "processor-seconds" in window.frame.notice_bar.sentence
        and "in doubt" in window.frame.notice_bar.sentence
    )
    assert "are in doubt" in window.curve_view.accessibleDescription()
    doubted = window.curve_view.picture(1.0)
    window.curve_view.show_over(doubt="")
    assert window.curve_view.picture(1.0) != doubted  # it is painted
    window.open_path(samples()[0].path)
    settle(qtbot, window)
    assert "doubt" not in window.curve_view.accessibleDescription()


def test_a_real_trace_its_clocks_report_and_classes(qtbot: QtBot, window: TracePage) -> None:
    sample = next(s for s in samples() if "EZTrace" in s.title)
    window.open_path(sample.path)
    settle(qtbot, window)
    snapshot = window.workbench.snapshot
    if snapshot.problem is not None and "otf2" in snapshot.problem.sentence.lower():
        pytest.skip("the OTF2 library has no wheel for this Python")
    assert snapshot.run is not None and snapshot.document is not None
    repaired = snapshot.run.curve
    assert window.frame.notice_bar.isVisible() and "Import report" in window.frame.notice_bar.sentence
    next(b for b in window.frame.notice_bar.findChildren(QPushButton) if b.text() == "Show report").click()
    panel = window.panel("trace")
    qtbot.waitUntil(panel.isVisible)
    clock = snapshot.document.info["clock"]
    assert clock["violations_before"] > clock["violations_after"]
    assert f"{clock['violations_before']:,}" in panel._clocks_text.text()
    assert "Import report" in panel.text.toPlainText()

    window.workbench.set_repaired(False)
    settle(qtbot, window)
    run = window.workbench.snapshot.run
    assert run is not None and run.curve.duration != repaired.duration
    trigger(window, "undo")
    settle(qtbot, window)
    run = window.workbench.snapshot.run
    assert run is not None and run.curve.duration == repaired.duration

    # Whatever was idle now counts as computing: the integral grows by exactly that.
    idle = run.stack["idle"].integral
    window.panel("classes").boxes[Activity.IDLE].click()
    settle(qtbot, window)
    more = window.workbench.snapshot.run
    assert more is not None
    assert more.curve.integral == pytest.approx(run.curve.integral + idle)
    assert window.actions_by_id["undo"].text() == "Undo change what counts as computing"


def test_dropped_files_open_and_further_ones_ask_for_windows(
    qtbot: QtBot, window: TracePage, curve_file: Path
) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(curve_file))])
    middle = window.rect().center()
    none, copy = Qt.KeyboardModifier.NoModifier, Qt.DropAction.CopyAction
    enter = QDragEnterEvent(middle, copy, data, Qt.MouseButton.LeftButton, none)
    QApplication.sendEvent(window.frame, enter)
    assert enter.isAccepted() and window.frame._drop_hint.isVisible()
    QApplication.sendEvent(
        window.frame, QDropEvent(QPointF(middle), copy, data, Qt.MouseButton.LeftButton, none)
    )
    assert not window.frame._drop_hint.isVisible()
    settle(qtbot, window)
    assert window.workbench.snapshot.document is not None
    with qtbot.waitSignal(window.frame.newWindowRequested) as asked:
        window.open_path(curve_file)
    assert asked.args[0] == [curve_file]


def test_close_goes_back_to_the_start_page(qtbot: QtBot, opened: TracePage) -> None:
    trigger(opened, "close")
    assert opened.start_page.isVisible() and opened.windowTitle() == "Phasewright"
    assert all(dock.isHidden() for dock in opened._docks.values())


def darkness(image: QImage) -> float:
    """Share of pixels darker than mid grey."""
    small = image.scaled(160, 90).convertToFormat(QImage.Format.Format_Grayscale8)
    values = np.frombuffer(small.constBits(), np.uint8)
    return float((values < 128).mean())


def test_theme_switch_reaches_everything(qtbot: QtBot, opened: TracePage) -> None:
    trigger(opened, "theme_dark")
    assert darkness(opened.grab().toImage()) > 0.7
    trigger(opened, "theme_light")
    assert darkness(opened.grab().toImage()) < 0.3
    assert opened.settings.theme == "light"


def test_layout_is_kept_and_can_be_reset(qtbot: QtBot, opened: TracePage, settings: Settings) -> None:
    opened._docks["table"].close()
    opened.frame.close()
    again = Frame(settings).trace
    qtbot.addWidget(again.frame)
    again.frame.show()
    again.open_path(settings.recent[0])
    settle(qtbot, again)
    assert again._docks["table"].isHidden() and not again._docks["phases"].isHidden()
    trigger(again, "reset_layout")
    assert not again._docks["table"].isHidden()
    again.frame.close()


def test_tab_bars_are_those_of_the_panels_that_are_there(
    qtbot: QtBot, window: TracePage, curve_file: Path
) -> None:
    def in_view() -> list[str]:
        for _ in range(3):
            QApplication.processEvents()
        bars = window.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly)
        shown = [bar for bar in bars if bar.isVisible() and window.rect().intersects(bar.geometry())]
        return sorted(bar.tabText(0) for bar in shown)

    both = ["Phase table", "Phases"]
    assert in_view() == [], "the start page has none"
    window.open_path(curve_file)
    settle(qtbot, window)
    assert in_view() == both
    for _ in range(2):
        trigger(window, "reset_layout")
        window.show_panel("views")
        window.show_panel("statistics")
        assert in_view() == both
    window._docks["project"].close()
    assert in_view() == both, "also where one has fewer tabs than before"
    window.workbench.close_document()
    assert in_view() == []
    window.open_path(curve_file)
    settle(qtbot, window)
    assert in_view() == both


def test_broken_settings_are_no_reason_not_to_start(qtbot: QtBot, tmp_path: Path) -> None:
    store = QSettings(str(tmp_path / "broken.ini"), QSettings.Format.IniFormat)
    for key in ("recent", "theme", "text_size", "geometry", "state"):
        store.setValue(key, "nonsense")
    made = Frame(Settings(store)).trace
    qtbot.addWidget(made.frame)
    made.frame.show()
    assert made.isVisible()
    made.frame.close()


def test_keys_are_unique_and_all_listed(opened: TracePage) -> None:
    keys = [key for command in COMMANDS for key in command.keys]
    assert len(keys) == len(set(keys)), "two commands share a key"
    assert len({command.id for command in COMMANDS}) == len(COMMANDS)
    browser = QTextBrowser()
    browser.setHtml(opened.keys_html())
    listed = browser.toPlainText()
    for command in COMMANDS:
        assert all(key in listed for key in command.keys)
        assert opened.actions_by_id[command.id].statusTip()
    browser.deleteLater()


def test_f1_lists_the_keys(qtbot: QtBot, opened: TracePage) -> None:
    trigger(opened, "keys")
    dialog = opened.findChild(QDialog, "keys")
    assert isinstance(dialog, QDialog) and dialog.isVisible()
    dialog.reject()


def test_calls_into_qt_keep_the_references_to_none(window: TracePage) -> None:
    """Some PySide6 releases lose one reference per call on Python 3.11, and abort after enough of them."""
    before = sys.getrefcount(None)
    for number in range(1000):
        window.setWindowTitle(str(number))
    assert sys.getrefcount(None) > before - 500


def test_snapshot_is_the_window_in_the_size_asked_for(
    qapp: QApplication, curve_file: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.png"
    curve, fit = take_snapshot(curve_file, output, n=6, model="constant", size=(1280, 720), theme="dark")
    assert (fit.n, fit.model) == (6, "constant")
    assert fit.epsilon == pytest.approx(phases.fit(curve, 6, "constant").epsilon)
    image = QImage(str(output))
    assert (image.width(), image.height()) == (1280, 720)
    assert darkness(image) > 0.7
    curve, fit = take_snapshot(curve_file, output, n=3, model="periodic", period=0.75)
    assert fit.basis == Basis.of("periodic", 0.75)
    assert fit.epsilon == pytest.approx(phases.fit(curve, 3, "periodic", basis=fit.basis).epsilon)


def test_the_start_page_lists_what_was_opened_before(qtbot, settings, tmp_path):
    trace = tmp_path / "before.csv"
    trace.write_text("0 1\n1 0\n")
    settings.add_recent(trace)
    window = Frame(settings).trace
    qtbot.addWidget(window.frame)
    assert any(trace.name in button.text() for button in window.start_page.findChildren(QAbstractButton))
    window.frame.close()


def test_a_trace_with_the_name_of_every_trace_is_called_after_its_folder(
    qtbot: QtBot, window: TracePage, curve_file: Path, tmp_path: Path
) -> None:
    trace = tmp_path / "jacobi & co" / "traces.csv"
    trace.parent.mkdir()
    trace.write_bytes(curve_file.read_bytes())
    window.open_path(trace)
    settle(qtbot, window)
    assert window.windowTitle() == "jacobi & co[*] – Phasewright"
    assert window.panel("project").model.text(0, 0) == "jacobi & co"
    recent = window.findChild(QMenu, "recent")
    assert recent is not None
    recent.aboutToShow.emit()
    first = recent.actions()[0]
    assert plain(first.text()).startswith("jacobi & co – ") and first.toolTip() == str(trace)
    dialog = ReportDialog(window.workbench.snapshot, lambda call: call(), window)
    assert dialog.title.text() == "jacobi & co"
    dialog.close()


def test_what_counts_most_and_the_table_follow_the_size_of_text(opened: TracePage) -> None:
    panel, table = opened.panel("phases"), opened.findChild(QTableView, "phase_table")
    assert table is not None

    def sizes() -> tuple[float, ...]:
        for _ in range(3):
            QApplication.processEvents()
        fonts = (panel.n.font(), panel.why.font())
        assert fonts[0].bold()
        rows, columns = table.verticalHeader(), table.horizontalHeader()
        return *(font.pointSizeF() for font in fonts), rows.defaultSectionSize(), columns.minimumSectionSize()

    before = sizes()
    opened.frame.choose_text_size(150)
    assert all(1.35 < now / then < 1.7 for now, then in zip(sizes(), before, strict=True))
    opened.frame.choose_text_size(100)
    assert sizes() == before


def test_figures_beside_the_fit_keep_their_room_whatever_they_say(opened: TracePage) -> None:
    panel = opened.panel("phases")
    QApplication.processEvents()
    sizes = lambda: [w.size() for w in (panel.epsilon_plot, *panel._values.values())]  # noqa: E731 - thrice
    before, value = sizes(), panel._values["suggestion"]
    long = "n = 4: 3 of 3 breakpoints at structure events, such as 876.4 ms (<b>solve</b> begins); " * 4
    for figure in panel._values.values():
        figure.say(long)
    QApplication.processEvents()
    assert sizes() == before
    assert value.text() == "n = 4: 3 of 3 breakpoints at\nstructure events", "the clauses that fit"
    assert "begins);" in value.toolTip() and "<b>" not in value.toolTip(), "all of it, and no markup"
    for figure in panel._values.values():
        figure.say("–")
    QApplication.processEvents()
    assert sizes() == before and "begins" not in value.toolTip()
    opened.frame.resize(1900, 1150)
    QApplication.processEvents()
    value.say(long[: len(long) // 2])
    assert not value.text().endswith("…"), "there is room for all of it"


def test_the_best_possible_error_is_no_higher_than_the_sweep_found() -> None:
    curve = StepCurve([0, 2, 3, 5, 7], [4, 1, 2, 5], 5)
    swept, by_hand = (
        phases.sweep(curve, "constant", 4),
        phases.fit_breakpoints(curve, [0, 0.5, 7], "constant"),
    )
    best = swept.fit(2)
    assert best.upper < by_hand.upper
    said = PhasesPanel._certificate_text(*swept.bounds(by_hand), "proc·√s")
    assert digits(float(best.upper)) in said and digits(float(by_hand.upper)) not in said


def test_bytes_are_counted() -> None:
    assert [quantity(v, "B") for v in (0.0, 1.0, 999.0, 1.5, 1000.0)] == [
        "0 B",
        "1 B",
        "999 B",
        "1.500 B",
        "1.000 kB",
    ]


def test_a_panel_behind_another_comes_to_the_front_and_one_in_front_goes(opened: TracePage) -> None:
    turn, dock = opened._turns["statistics"], opened._docks["statistics"]
    opened.show_panel("table")
    QApplication.processEvents()
    assert turn.isChecked() and dock.visibleRegion().isEmpty(), "there, behind another tab"
    turn.trigger()
    QApplication.processEvents()
    assert turn.isChecked() and not dock.visibleRegion().isEmpty()
    focus = opened.focusWidget()
    assert focus is not None and opened.panel("statistics").isAncestorOf(focus)
    turn.trigger()
    assert not turn.isChecked() and dock.isHidden()
    turn.trigger()
    QApplication.processEvents()
    assert turn.isChecked() and not dock.visibleRegion().isEmpty()


def test_a_number_with_little_room_is_rounded_and_not_cut(opened: TracePage) -> None:
    table = opened.panel("table").model
    numbers = [k for k, column in enumerate(table.columns) if k and column.name != "name"]
    whole = [table.text(0, column) for column in numbers]
    fewer = [table.text(0, column, 2) for column in numbers]
    for long, short in zip(whole, fewer, strict=True):
        assert len(short) <= len(long)
        exact, rounded = (float(text.replace("−", "-")) for text in (long, short))
        assert rounded == pytest.approx(exact, rel=0.06)


def test_a_drag_of_n_draws_only_what_can_be_seen(
    qtbot: QtBot, opened: TracePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Panels behind others, their tables and their charts wait until they come to the front."""
    bench, seen = opened.workbench, {"phases", "table"}
    qtbot.waitUntil(lambda: bench.snapshot.sweep is not None and not bench.busy, timeout=60_000)
    told: list[str] = []
    drawn: list[Any] = []
    assert set(opened._panels) == seen, "others are made when they first come to the front"
    for spec in panels():
        panel = opened.panel(spec.id)
        show = panel.show_snapshot
        monkeypatch.setattr(
            panel, "show_snapshot", lambda *given, name=spec.id, show=show: (told.append(name), show(*given))
        )
    for kind, name in ((Chart, "set_content"), (Chart, "prepare"), (FrameView, "show_frame")):
        whole = getattr(kind, name)

        def counted(self: Any, *given: object, whole: Any = whole, **named: object) -> object:
            drawn.append(self)
            return whole(self, *given, **named)

        monkeypatch.setattr(kind, name, counted)
    for tab in (1, 0):  # each has been seen once
        opened.panel("phases").pictures.setCurrentIndex(tab)
        QApplication.processEvents()
    contents = [plot.content.series for plot in opened.findChildren(SweepPlot)]
    drawn.clear()
    for n in (3, 4, 5, 6, 7, 6, 5):
        bench.set_n(n)
        settle(qtbot, opened)
        QApplication.processEvents()
    assert set(told) == seen and told.count("table") >= 7
    assert not [one for one in drawn if not one.isVisible() or one.viewport().visibleRegion().isEmpty()]
    assert {type(one) for one in drawn} == {FrameView, EpsilonPlot}
    after = [plot.content.series for plot in opened.findChildren(SweepPlot)]
    assert len(after) == 2 and all(a is b for a, b in zip(contents, after, strict=True)), (
        "no chart was rebuilt"
    )
    opened.panel("phases").pictures.setCurrentIndex(1)
    QApplication.processEvents()
    assert type(drawn[-1]) is BreakpointPicture, "it waited behind its tab"
    told.clear()
    opened.show_panel("changes")
    qtbot.waitUntil(lambda: "changes" in told)
    assert opened._seen["changes"] is bench.snapshot
    opened.show_panel("table")
    bench.set_n(3)
    settle(qtbot, opened)
    assert opened._seen["changes"] is not bench.snapshot
    assert opened.panel("changes") is opened._panels["changes"]
    assert opened._seen["changes"] is bench.snapshot, "asked for it is up to date too"

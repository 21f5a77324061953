"""One window for each project: its pages in tabs, and once for all of them palette, undo, tasks, problems,
sessions, closing."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QSize, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMessageBox, QWidget
from pytestqt.qtbot import QtBot

from desktop.resources import example_table, folder, samples
from desktop.ui.commands import KINDS
from desktop.ui.compare_page import ComparePage
from desktop.ui.experiment_page import ExperimentPage
from desktop.ui.frame import Frame
from desktop.ui.model_page import ModelPage
from desktop.ui.palette import Palette
from desktop.ui.settings import Settings
from desktop.ui.trace_page import TracePage
from desktop.workbench.jobs import Task
from desktop.workbench.workbench import Problem
from tests.ui.scene import wait

#: Of the offscreen platform, which has one screen and no window manager.
pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints", "This plugin does not support")
RUNS = "0,{0}\n1,2\n2,{0}\n3,1\n4,0\n"


@pytest.fixture
def frame(qtbot: QtBot, own_places: None, settings: Settings) -> Iterator[Frame]:
    made = Frame(settings)
    qtbot.addWidget(made)
    made.resize(1280, 760)
    made.show()
    yield made
    made.close_unasked()


@pytest.fixture
def traces(tmp_path: Path) -> list[Path]:
    files = [tmp_path / f"{name}.csv" for name in ("first", "second", "third")]
    for file, level in zip(files, (5, 6, 7), strict=True):
        file.write_text(RUNS.format(level))
    return files


def settle(qtbot: QtBot, frame: Frame) -> None:
    def busy() -> bool:
        return any(page.bench.busy if hasattr(page, "bench") else page.busy for page in frame.all_pages)  # type: ignore[attr-defined]  # each page has one of the two

    qtbot.waitUntil(lambda: not busy(), timeout=60_000)
    QApplication.processEvents()


def opened(qtbot: QtBot, frame: Frame, *paths: Path) -> TracePage:
    frame.trace.open_path(paths[0])
    settle(qtbot, frame)
    for path in paths[1:]:
        frame.trace.desk.projects.add_run(path)
        settle(qtbot, frame)
    return frame.trace


def model(qtbot: QtBot, frame: Frame) -> ModelPage:
    page = frame.open_model(example_table())
    settle(qtbot, frame)
    return page


def tabs(frame: Frame) -> list[str]:
    return [frame.strip.tabText(k) for k in range(frame.strip.count())]


# ---- pages


def test_the_four_kinds_are_there_and_made_when_first_shown(qtbot: QtBot, frame: Frame) -> None:
    assert tabs(frame) == list(KINDS.values()) and [type(page) for page in frame.pages] == [TracePage]
    for number, (kind, title) in enumerate(KINDS.items(), 1):
        key = Qt.Key(Qt.Key.Key_0 + number)
        QTest.keyClick(frame, key, Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.ShiftModifier)
        page = frame.current
        assert page is not None and (page.KIND, page.isVisible()) == (kind, True)
        assert frame.strip.tabText(frame.strip.currentIndex()) == title
        menus = [action.text().replace("&", "") for action in frame.menuBar().actions()]
        assert menus == list(page.MENUS)
        assert page.actions_by_id[f"page_{kind}"].isChecked()
    assert len(frame.pages) == 4
    frame.step_page(1)
    assert frame.current is frame.trace
    frame.strip.setCurrentIndex(3)
    assert isinstance(frame.current, ModelPage)


def test_nothing_of_other_pages_is_loaded_before_they_are_shown(tmp_path: Path) -> None:
    import subprocess

    words = (
        "import sys; from desktop.ui.app import application; from desktop.ui.frame import Frame;"
        "from desktop.ui.settings import Settings; application(); Frame(Settings.passing()).show();"
        "print(*sorted(m for m in sys.modules if m.startswith('desktop.ui.') and m.endswith('_page')))"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["desktop.ui.start_page", "desktop.ui.trace_page"]


def test_tables_and_experiments_have_a_tab_each(qtbot: QtBot, frame: Frame, tmp_path: Path) -> None:
    first = model(qtbot, frame)
    other = Path(shutil.copy(example_table(), tmp_path / "other.csv"))
    second = frame.open_model(other)
    settle(qtbot, frame)
    assert second is not first and frame.current is second
    assert tabs(frame)[-1] == "Model: other.csv" and len(frame.of_kind("model")) == 2
    assert frame.open_model(other) is second, "what is open is shown and not opened again"
    assert frame.open_model(example_table()) is first
    first.actions_by_id["close"].trigger()
    assert frame.of_kind("model") == [second]
    second.close_shown()
    assert tabs(frame) == list(KINDS.values()), "the kind stays within reach"
    assert frame.current is not None and frame.current.isVisible()


# ---- once for all pages


def test_the_palette_goes_to_the_page_of_a_command(qtbot: QtBot, frame: Frame) -> None:
    page = model(qtbot, frame)
    frame.go_to(frame.trace)
    frame.show_palette()
    palette = next(one for one in frame.findChildren(Palette) if one.isVisible())
    palette.words.setText("every cell by itself")
    entry = palette.current_entry()
    assert entry is not None and entry.page is page
    QTest.keyClick(palette.words, Qt.Key.Key_Return)
    assert frame.current is page and not page.bench.snapshot.project.settings.joint


def test_steps_are_taken_back_across_pages_in_their_order(
    qtbot: QtBot, frame: Frame, traces: list[Path]
) -> None:
    trace, page = opened(qtbot, frame, traces[0]), model(qtbot, frame)
    n = trace.workbench.snapshot.project.phases.n
    trace.workbench.annotate("one", 1.0)
    page.bench.set_joint(False)
    trace.workbench.annotate("two", 2.0)
    texts = lambda: [note.text for note in trace.workbench.snapshot.project.annotations]  # noqa: E731 - asked thrice
    undo = page.actions_by_id["undo"]
    assert undo.text().replace("&", "") == "Undo add annotation"
    undo.trigger()
    assert texts() == ["one"] and frame.current is trace, "where the change is seen"
    trace.actions_by_id["undo"].trigger()
    assert page.bench.snapshot.project.settings.joint and frame.current is page
    frame.undo()
    assert texts() == [] and frame.history.undo_label is None and not undo.isEnabled()
    for _ in range(3):
        frame.redo()
    assert texts() == ["one", "two"] and not page.bench.snapshot.project.settings.joint
    frame.undo()
    page.bench.set_joint(True)
    assert frame.history.redo_label is None, "another change was made since"
    assert trace.workbench.snapshot.project.phases.n == n


def test_every_task_has_its_progress_and_cancel(qtbot: QtBot, frame: Frame) -> None:
    stopped: list[str] = []
    page = frame.show_kind("model")
    frame.trace.show_task("opening", Task("Opening a", done=1, total=2), lambda: stopped.append("a"))
    page.show_task("task", Task("Fitting b"), lambda: stopped.append("b"))
    frame.show_task("warm-up", Task("Getting ready"), lambda: stopped.append("c"))
    lines = frame.task_list.lines
    assert [line.text for line in lines] == ["Fitting b", "Trace: Opening a", "Getting ready"]
    assert lines[0].isVisible() and not lines[1].isVisible(), "of the page in front"
    frame.task_list.more.click()
    assert all(line.isVisible() for line in lines) and frame.task_list.list.isVisible()
    assert lines[1].progress.value() == 500 and lines[0].progress.maximum() == 0
    for line in lines:
        line.cancel.click()
    assert stopped == ["b", "a", "c"]
    QTest.keyClick(frame, Qt.Key.Key_Escape)
    assert not frame.task_list.list.isVisible() and lines[0].isVisible()
    for where in (page, frame.trace):
        for key in list(where.tasks):
            where.show_task(key, None)
    frame.show_task("warm-up", None)
    assert not frame.task_list.isVisible() and not frame.task_list.lines


def test_a_menus_tip_and_a_running_task_are_not_written_over_each_other(qtbot: QtBot, frame: Frame) -> None:
    bar, tasks = frame.statusBar(), frame.task_list

    def progress(done: int) -> None:
        frame.trace.show_task("opening", Task("Opening", done=done, total=9), None)

    progress(1)
    assert tasks.isVisible() and tasks.text.startswith("Opening")
    menu = next(action.menu() for action in frame.menuBar().actions() if action.text() == "&File")
    tipped = next(action for action in menu.actions() if action.statusTip() and action.isEnabled())
    menu.popup(frame.mapToGlobal(frame.rect().topLeft()))
    menu.setActiveAction(tipped)
    assert bar.currentMessage() == tipped.statusTip() and not tasks.isVisible()
    progress(2)
    assert bar.currentMessage() and not tasks.isVisible(), "progress goes on below the tip"
    menu.close()
    bar.clearMessage()
    assert tasks.isVisible() and tasks.lines[0].progress.value() == round(2000 / 9)
    bar.showMessage("The log is there", 8000)
    frame.trace.show_task("opening", None)
    bar.clearMessage()
    assert not tasks.isVisible(), "a task that ended meanwhile does not come back"
    bar.showMessage("The log is there", 8000)
    progress(3)
    assert not tasks.isVisible()
    bar.clearMessage()
    assert tasks.isVisible()


def test_a_problem_stays_until_it_is_dismissed_or_solved(qtbot: QtBot, frame: Frame) -> None:
    trace, bar = frame.trace, frame.problem_bar
    trace.workbench._show(problem=Problem("The trace is broken.", "details"))
    assert bar.sentence == "The trace is broken." and bar.isVisible()
    page = frame.show_kind("model")
    assert isinstance(page, ModelPage)
    assert bar.sentence == "Trace: The trace is broken."
    page.bench.complain("the table is odd")
    assert bar.sentence == "The table is odd.", "first that of the page in front"
    bar.dismissed.emit()
    assert page.bench.snapshot.problem == "" and bar.sentence == "Trace: The trace is broken."
    trace.workbench.dismiss_problem()
    assert not bar.isVisible()


def test_notices_do_not_move_the_page(qtbot: QtBot, frame: Frame) -> None:
    trace = opened(qtbot, frame, samples()[0].path)
    trace.tell("report", "notice", "Import report: one message is without its end.", action="Show report")
    QApplication.processEvents()
    before = trace.curve_view.mapTo(frame, trace.curve_view.rect().topLeft())
    assert frame.notice_bar.isVisible()
    frame.notice_bar.dismissed.emit()
    QApplication.processEvents()
    assert not frame.notice_bar.isVisible()
    assert trace.curve_view.mapTo(frame, trace.curve_view.rect().topLeft()) == before


def test_the_import_report_has_room_of_its_own_and_gives_it_back(qtbot: QtBot, frame: Frame) -> None:
    trace, bar = opened(qtbot, frame, samples()[0].path), frame.notice_bar
    QApplication.processEvents()
    edge = lambda: trace.curve_view.mapTo(frame, trace.curve_view.rect().topLeft()).y()  # noqa: E731 - twice
    before = edge()
    trace.tell("report", "notice", "Import report: 1 notice.", action="Show report", settled=True)
    QApplication.processEvents()
    assert bar.isVisible() and edge() >= bar.mapTo(frame, bar.rect().bottomLeft()).y()
    trace.workbench._show(
        problem=Problem("The file has gone.")
    )  # comes at any time, so that it moves nothing
    QApplication.processEvents()
    moved = edge()
    assert frame.problem_bar.isVisible() and moved - before <= bar.height() + 2
    page = frame.show_kind("model")
    QApplication.processEvents()
    assert page.centralWidget().contentsMargins().top() == 0, "notices of other pages wait"
    frame.go_to(trace)
    frame.notice_bar.dismissed.emit()
    qtbot.waitUntil(lambda: edge() == before and not bar.isVisible())


def covered(frame: Frame, bar: QWidget) -> list[QWidget]:
    """Widgets of the page in front that begin above the lower edge of a bar."""
    QApplication.processEvents()
    bottom = bar.mapTo(frame, bar.rect().bottomLeft()).y()
    assert bar.isVisible() and bottom > 0 and frame.current is not None
    widgets = frame.current.centralWidget().findChildren(QWidget)
    return [w for w in widgets if w.isVisible() and w.mapTo(frame, w.rect().topLeft()).y() <= bottom]


def test_what_answers_the_user_or_comes_with_a_page_covers_nothing(
    qtbot: QtBot, frame: Frame, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("no trace")
    frame.trace.open_path(tmp_path / "notes.txt")
    qtbot.waitUntil(frame.problem_bar.isVisible)
    assert not covered(frame, frame.problem_bar)
    page = frame.show_kind("model")
    assert isinstance(page, ModelPage)
    rows = [f"NAS{k}BT,SP2,{p},{100 / p}" for k in "-_" for p in (1, 2, 4, 8)]
    (tmp_path / "times.csv").write_text("\n".join(["code,system,p,time", *rows]))
    page.open_path(tmp_path / "times.csv")
    settle(qtbot, frame)
    frame.trace.workbench.dismiss_problem()
    assert "Are they the same?" in frame.notice_bar.sentence and not covered(frame, frame.notice_bar)
    page.bench.complain("the table is odd")
    assert frame.notice_bar.isVisible() and not covered(frame, frame.problem_bar)
    for bar in (frame.problem_bar, frame.notice_bar):
        bar.dismissed.emit()
    QApplication.processEvents()
    assert not frame.notice_bar.isVisible() and page.centralWidget().contentsMargins().top() == 0
    frame.tell("start", "Work was recovered.")
    assert not covered(frame, frame.notice_bar)


def test_closing_asks_once_for_all_pages(
    qtbot: QtBot, frame: Frame, traces: list[Path], tmp_path: Path
) -> None:
    from tests.experiments import small

    opened(qtbot, frame, traces[0]).workbench.annotate("mine", 1.0)
    folder = small(tmp_path / "e").folder
    page = frame.open_experiment(folder)
    settle(qtbot, frame)
    assert isinstance(page, ExperimentPage) and page.bench.snapshot.project.experiment is not None
    page.bench.new_seed()
    frame.close()
    boxes = [box for box in frame.findChildren(QMessageBox) if box.isVisible()]
    assert len(boxes) == 1 and frame.isVisible()
    assert "the changes to first.csv and the description of" in boxes[0].text()
    boxes[0].button(QMessageBox.StandardButton.Cancel).click()
    assert frame.isVisible()
    page.close_shown()
    (box,) = [box for box in frame.findChildren(QMessageBox) if box.isVisible()]
    assert "first.csv" not in box.text()
    box.button(QMessageBox.StandardButton.Discard).click()
    assert not frame.of_kind("experiment")
    frame.close()
    (box,) = [box for box in frame.findChildren(QMessageBox) if box.isVisible()]
    box.button(QMessageBox.StandardButton.Discard).click()
    assert not frame.isVisible()


def test_esc_never_closes_a_window(qtbot: QtBot, frame: Frame, traces: list[Path]) -> None:
    opened(qtbot, frame, traces[0])
    for kind in KINDS:
        page = frame.show_kind(kind)
        QTest.keyClick(page.focusWidget() or frame, Qt.Key.Key_Escape)
        assert frame.isVisible() and frame.current is page
    frame.trace.workbench.select((1.0, 2.0))
    frame.go_to(frame.trace)
    QTest.keyClick(frame.trace.curve_view, Qt.Key.Key_Escape)
    assert frame.trace.workbench.snapshot.project.view.selection is None


# ---- a page in a window of its own


def test_a_page_is_moved_to_its_own_window_and_back(qtbot: QtBot, frame: Frame) -> None:
    page = model(qtbot, frame)
    page.actions_by_id["detach"].trigger()
    (beside,) = frame.torn
    assert page.frame is beside and page.window() is beside and page.isVisible()
    assert frame.current is frame.trace and "Model" not in tabs(frame), "it would make another one"
    assert not beside.strip.isVisible() and "npb_class_a" in beside.windowTitle()
    assert [a.text().replace("&", "") for a in beside.menuBar().actions()] == list(page.MENUS)
    assert not page.actions_by_id["detach"].isEnabled() and page.actions_by_id["attach"].isEnabled()
    # What is once for all pages is so across windows.
    page.bench.set_joint(False)
    frame.undo()
    assert page.bench.snapshot.project.settings.joint
    page.bench.complain("it is odd")
    assert beside.problem_bar.isVisible() and not frame.problem_bar.isVisible()
    page.show_task("task", Task("Fitting"))
    assert frame.task_list.text == "Model: npb_class_a_constructed.csv: Fitting"
    assert beside.task_list.text == "Fitting"
    page.show_task("task", None)
    assert frame.show_kind("model") is page, "its key leads there"
    beside.close()
    assert page.frame is frame and frame.current is page and not frame.torn
    assert page.isVisible() and frame.problem_bar.isVisible() and page.actions_by_id["detach"].isEnabled()


def test_the_trace_may_stand_beside_and_closing_the_main_window_ends_all(
    qtbot: QtBot, frame: Frame, traces: list[Path]
) -> None:
    trace = opened(qtbot, frame, traces[0])
    frame.show_kind("compare")
    frame.go_to(trace)
    beside = frame.detach(trace)
    assert isinstance(frame.current, ComparePage) and trace.isVisible()
    trace.workbench.set_n(2)
    settle(qtbot, frame)
    assert len(trace.workbench.snapshot.rows) == 2
    frame.close_unasked()
    assert not frame.isVisible() and not beside.isVisible()


# ---- traces of the project


def test_opened_traces_have_tabs_with_their_own_n_view_and_selection(
    qtbot: QtBot, frame: Frame, traces: list[Path]
) -> None:
    trace = opened(qtbot, frame, *traces)
    bar, projects = trace.run_tabs, trace.desk.projects
    assert [bar.tabText(k) for k in range(bar.count())] == [path.name for path in traces]
    assert bar.isVisible() and bar.currentIndex() == 2
    trace.workbench.set_n(3)
    trace.workbench.select((1.0, 2.0))
    trace.curve_view.zoom_to(0.5, 2.5)
    settle(qtbot, frame)
    third = trace.workbench.snapshot.run
    bar.setCurrentIndex(0)
    settle(qtbot, frame)
    document = trace.workbench.snapshot.document
    assert document is not None and document.source == traces[0]
    assert trace.workbench.snapshot.project.view.selection is None
    trace.workbench.set_n(2)
    trace.step_run(-1)
    assert trace.workbench.snapshot.run is third, "it was kept, and is there at once"
    assert trace.workbench.snapshot.project.phases.n == 3
    assert trace.workbench.snapshot.project.view.selection == (1.0, 2.0)
    assert trace.curve_view.visible_range() == pytest.approx((0.5, 2.5))
    trace.actions_by_id["close"].trigger()
    settle(qtbot, frame)
    assert len(projects.workspace.runs) == 3 and projects.open_runs == (0, 1), "it stays in the project"
    assert bar.count() == 2
    projects.show_run(2)
    settle(qtbot, frame)
    assert projects.open_runs == (0, 1, 2)


def test_of_traces_put_aside_few_are_kept_and_a_changed_file_is_read_anew(
    qtbot: QtBot, frame: Frame, traces: list[Path], tmp_path: Path
) -> None:
    more = [tmp_path / f"more{k}.csv" for k in range(4)]
    for file in more:
        file.write_text(RUNS.format(3))
    trace = opened(qtbot, frame, *traces, *more)
    assert len(trace.workbench._parked) == 4
    traces[2].write_text(RUNS.format(9) + "5,0\n")
    trace.run_tabs.setCurrentIndex(2)
    settle(qtbot, frame)
    run = trace.workbench.snapshot.run
    assert run is not None and run.curve.level.max() == 9
    trace.workbench.close_document()
    assert not trace.workbench._parked


# ---- sessions


def test_a_session_goes_on_with_its_pages(
    qtbot: QtBot, own_places: None, settings: Settings, traces: list[Path], tmp_path: Path
) -> None:
    first = Frame(settings)
    qtbot.addWidget(first)
    first.show()
    trace = opened(qtbot, first, *traces[:2])
    project = tmp_path / "p.phasewright"
    trace.desk.projects.save(project)
    settings.add_recent(project)
    page = model(qtbot, first)
    page.split.setSizes([300, 900])
    parts = page.split.sizes()
    first.show_kind("compare")
    first.detach(page)
    first.go_to(trace)
    first.show_kind("compare")
    first.close_unasked()

    again = Frame(settings)
    qtbot.addWidget(again)
    again.show()
    again.trace.open_path(project)
    settle(qtbot, again)
    qtbot.waitUntil(lambda: bool(again.torn), timeout=10_000)
    settle(qtbot, again)
    assert isinstance(again.current, ComparePage)
    (beside,) = again.torn
    (restored,) = beside.pages
    assert isinstance(restored, ModelPage) and restored.source == example_table()
    assert restored.split.sizes() == pytest.approx(parts, rel=0.2)
    assert again.trace.run_tabs.count() == 2
    again.close_unasked()


def test_a_session_that_makes_no_sense_is_left_out(qtbot: QtBot, frame: Frame) -> None:
    odd = '{"pages": [1, {"kind": "x"}, {"kind": "model", "path": "/no"}], "front": 9, "runs": ["a", 7]}'
    for told in ("", "{", "[]", '{"pages": 3}', odd):
        frame.settings.keep_session(None, told)
        frame.restore_session(None)
        assert frame.pages == [frame.trace] and frame.current is frame.trace


def test_what_another_process_has_opened_stays_known(settings: Settings, tmp_path: Path) -> None:
    settings.add_recent(tmp_path / "ours")
    settings._store.sync()
    script = f"""
from pathlib import Path
from PySide6.QtCore import QSettings
from desktop.ui.settings import Settings
store = QSettings({settings._store.fileName()!r}, QSettings.Format.IniFormat)
theirs = Settings(store)
theirs.add_recent(Path({str(tmp_path)!r}, "theirs"))
theirs.keep_session(Path("their project"), "1")
store.sync()
"""
    subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[2], check=True)
    settings.add_recent(tmp_path / "ours again")
    settings.keep_session(None, "2")
    assert [path.name for path in settings.recent] == ["ours again", "theirs", "ours"]
    assert settings.session(Path("their project")) == "1" and settings.session(None) == "2"


# ---- room


def test_tabs_get_the_room_that_longer_names_need(qtbot: QtBot, frame: Frame) -> None:
    frame.resize(QSize(1366, 768))
    page = frame.open_model()
    page.open_example()
    qtbot.waitUntil(lambda: "npb" in frame.strip.tabText(frame.strip.currentIndex()), timeout=20_000)
    qtbot.waitUntil(lambda: frame.strip.width() == frame.strip.sizeHint().width())


def test_names_of_tabs_and_words_have_the_room_of_a_large_window(qtbot: QtBot, frame: Frame) -> None:
    trace = opened(qtbot, frame, samples()[0].path)
    page = frame.open_model()
    frame.resize(QSize(900, 600))
    page.open_example()
    qtbot.waitUntil(lambda: "…" in frame.strip.tabText(frame.strip.currentIndex()), timeout=20_000)
    frame.resize(QSize(3840, 2100))
    assert frame.strip.tabText(frame.strip.currentIndex()) == frame.title_of(page)
    frame.resize(QSize(900, 600))
    assert "…" in frame.strip.tabText(frame.strip.currentIndex())
    frame.go_to(trace)
    frame.resize(QSize(3840, 2100))
    panel = trace.panel("phases")
    qtbot.waitUntil(lambda: panel.why.height() > 0.35 * panel.height())
    panel._parts.moveSplitter(500, 1)
    frame.resize(QSize(3800, 2060))
    assert panel.why.height() < 0.3 * panel.height(), "as the user divided it"


def test_the_residual_is_one_click_away_where_there_is_no_room_for_it(qtbot: QtBot, frame: Frame) -> None:
    """A word in the legend, and a command; the curve keeps its place and the overview comes back."""
    frame.resize(QSize(1366, 768))
    trace = opened(qtbot, frame, samples()[0].path)
    wait(50)
    view = trace.curve_view

    def seen() -> tuple[bool, bool]:
        view.grab()
        return view._run.rect.top() >= 0, view.lanes["residual"].isVisible()

    assert seen() == (True, False)
    place = next(place for place, key in view._legend._places if key == "residual lane")
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place.center().toPoint())
    assert seen() == (False, True) and view._residual.rect.height() > 30
    trace.actions_by_id["residual"].trigger()
    assert seen() == (True, False)
    view.resize(view.width(), 500)
    assert seen() == (True, True), "there is room for both"
    assert not any(key == "residual lane" for _, key in view._legend._places)


@pytest.mark.parametrize("size", [QSize(1366, 768), QSize(1920, 1080)], ids=lambda size: f"{size.width()}")
def test_plots_and_table_have_room_at_first(qtbot: QtBot, frame: Frame, size: QSize) -> None:
    frame.resize(size)
    trace = opened(qtbot, frame, samples()[0].path)
    wait(50)
    assert frame.size() == size
    high = frame.height()
    assert trace.curve_view.height() >= high / 3
    assert trace.timeline.height() >= high / 4
    view = trace.panel("table").view
    rows = view.viewport().height() / view.rowHeight(0)
    assert rows >= 8


def test_no_panel_takes_the_room_of_the_plots(qtbot: QtBot, frame: Frame) -> None:
    frame.resize(1260, 715)
    trace = opened(qtbot, frame, samples()[0].path)
    for panel in ("statistics", "profile", "messages", "project"):
        trace.show_panel(panel)
        wait(50)
        assert trace.curve_view.height() >= frame.height() / 3, panel
        assert trace.timeline.height() >= frame.height() / 4, panel


@pytest.fixture
def ended(qtbot: QtBot, own_places: None) -> Iterator[None]:
    """What is made after it has ended its threads; those that export end when they have drawn."""
    before = set(threading.enumerate())

    def left() -> list[str]:
        return [t.name for t in set(threading.enumerate()) - before if t.name.startswith("phasewright")]

    yield
    qtbot.waitUntil(lambda: not left(), timeout=20_000)


@pytest.mark.parametrize(("torn", "working"), [(False, True), (True, False)], ids=["working", "torn off"])
def test_a_frame_that_closes_ends_all_pages_and_what_they_share(
    qtbot: QtBot, ended: None, frame: Frame, tmp_path: Path, torn: bool, working: bool
) -> None:
    """Pages made late, torn off, closed before, and benches that the project and several pages use."""
    for kind in KINDS:
        frame.show_kind(kind)
    first = model(qtbot, frame)
    frame.keep_in_project(first)
    frame.open_model(first.bench)
    other = frame.open_experiment(folder() / "examples" / "quicksort")
    settle(qtbot, frame)
    frame.keep_in_project(other)
    frame.close_page(other)
    frame.open_experiment(other.bench)
    other_table = tmp_path / "other.csv"
    other_table.write_bytes(example_table().read_bytes())
    late = frame.open_model(other_table)
    if torn:
        for page in frame.all_pages[1:]:
            frame.detach(page)
    if not working:
        settle(qtbot, frame)
    assert late in frame.all_pages and any(
        t.name.startswith("phasewright-model") for t in threading.enumerate()
    )
    frame.close_unasked()

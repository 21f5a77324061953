"""Projects in the real window: saving, the question before closing, views, annotations, chips, runs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, QSettings, Qt
from PySide6.QtWidgets import QApplication, QFileDialog, QInputDialog, QMessageBox, QToolButton
from pytestqt.qtbot import QtBot

from desktop import resources
from desktop.data.events import Activity
from desktop.data.project_file import SCHEMA
from desktop.data.store import open_store
from desktop.data.utilization import build
from desktop.resources import example_table, samples
from desktop.ui.app import load_font
from desktop.ui.bundle import BundleDialog
from desktop.ui.experiment_page import ExperimentPage
from desktop.ui.frame import Frame
from desktop.ui.mnemonics import plain
from desktop.ui.model_page import ModelPage
from desktop.ui.panels.project import ProjectPanel
from desktop.ui.panels.views import NoteDialog
from desktop.ui.part import PartDialog
from desktop.ui.plots.timeline_pane import describe
from desktop.ui.settings import Settings
from desktop.ui.theme import DARK
from desktop.ui.trace_page import TracePage
from desktop.ui.windows import Windows
from desktop.workbench.keeping import read_workspace, recoveries
from desktop.workbench.model import View

SPT = Path(__file__).parent.parent / "data" / "spt"


pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture
def traces(tmp_path: Path) -> list[Path]:
    rng = np.random.default_rng(7)
    files = []
    for name, levels in (("first", (2.0, 7.0, 4.0)), ("second", (5.0, 1.0))):
        level = np.repeat(levels, 200) + rng.choice([0.0, 1.0], 200 * len(levels), p=[0.8, 0.2])
        rows = [f"{t:.6f},{h:g}" for t, h in zip(np.arange(level.size + 1) / 200, [*level, 0.0], strict=True)]
        files.append(tmp_path / f"{name}.csv")
        files[-1].write_text("\n".join(rows) + "\n", encoding="utf-8")
    return files


def make(qtbot: QtBot, tmp_path: Path) -> TracePage:
    made = Frame(Settings(QSettings(str(tmp_path / "settings.ini"), QSettings.Format.IniFormat))).trace
    qtbot.addWidget(made.frame, before_close_func=Frame.close_unasked)
    made.frame.resize(1280, 800)
    made.frame.show()
    return made


@pytest.fixture
def window(
    qtbot: QtBot, qapp: QApplication, no_thread_left: None, tmp_path: Path, traces: list[Path]
) -> Iterator[TracePage]:
    load_font(qapp)
    made = make(qtbot, tmp_path)
    opened(qtbot, made, traces[0])
    yield made
    made.frame.close_unasked()
    QApplication.processEvents()


def settle(qtbot: QtBot, window: TracePage) -> None:
    qtbot.waitUntil(lambda: not window.workbench.busy and not window.desk.projects.busy, timeout=60_000)


def opened(qtbot: QtBot, window: TracePage, path: Path) -> TracePage:
    window.open_path(path)
    settle(qtbot, window)
    assert window.workbench.snapshot.problem is None
    return window


def asked_for(monkeypatch: pytest.MonkeyPatch, path: Path | None) -> None:
    """What the user chooses in the next file dialogs."""
    name = "" if path is None else str(path)
    for method in ("getSaveFileName", "getOpenFileName"):
        monkeypatch.setattr(QFileDialog, method, staticmethod(lambda *_: (name, "")))
    names = [] if path is None else [name]
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", staticmethod(lambda *_: (names, "")))


def question(window: TracePage) -> QMessageBox:
    (found,) = (box for box in window.frame.findChildren(QMessageBox, "save_question") if box.isVisible())
    return found


def test_save_marks_open_and_everything_is_back(
    qtbot: QtBot, window: TracePage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, file = window.workbench, tmp_path / "p.phasewright"
    assert not window.isWindowModified()
    bench.set_n(5)
    assert not window.isWindowModified(), "a number of phases alone is no work of the hand"
    bench.annotate("the peak", 1.5)
    bench.set_n(4)
    window.curve_view.zoom_to(0.5, 2.5)
    assert window.isWindowModified()
    asked_for(monkeypatch, None)
    window.actions_by_id["save"].trigger()
    assert window.isWindowModified(), "giving up the dialog saves nothing"
    asked_for(monkeypatch, tmp_path / "p")
    window.actions_by_id["save"].trigger()
    assert file.exists() and not window.isWindowModified()
    assert window.windowTitle() == "first.csv – p.phasewright[*] – Phasewright"
    assert window.settings.recent[0] == file
    bench.set_n(3)
    assert window.isWindowModified(), "with a project every change counts"
    bench.undo()
    assert not window.isWindowModified()
    bench.set_n(6)
    window.actions_by_id["save"].trigger()

    renamed = file.rename(tmp_path / "anything.bin")
    other = opened(qtbot, make(qtbot, tmp_path), renamed)
    assert other.workbench.snapshot.project.phases.n == 6
    assert other.curve_view.visible_range() == pytest.approx((0.5, 2.5))
    assert [note.text for note in other.workbench.snapshot.project.annotations] == ["the peak"]
    assert other.windowTitle() == "first.csv – anything.bin[*] – Phasewright"
    other.frame.close()
    assert not other.isVisible(), "nothing to ask"


def test_closing_asks_save_discard_or_cancel(
    qtbot: QtBot, window: TracePage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.workbench.annotate("here", 1.0)
    button = QMessageBox.StandardButton
    window.frame.close()
    window.frame.close()
    assert window.isVisible()
    qtbot.mouseClick(question(window).button(button.Cancel), Qt.MouseButton.LeftButton)
    assert window.isVisible() and window.workbench.snapshot.project.annotations
    window.frame.close()
    qtbot.keyClick(question(window), Qt.Key.Key_Escape)
    assert window.isVisible()
    asked_for(monkeypatch, None)
    window.frame.close()
    qtbot.mouseClick(question(window).button(button.Save), Qt.MouseButton.LeftButton)
    assert window.isVisible(), "it could not be saved"
    asked_for(monkeypatch, tmp_path / "kept.phasewright")
    window.actions_by_id["close"].trigger()
    qtbot.mouseClick(question(window).button(button.Save), Qt.MouseButton.LeftButton)
    assert window.workbench.snapshot.document is None and window.isVisible()
    assert len(read_workspace(tmp_path / "kept.phasewright").runs) == 1
    assert window.windowTitle() == "Phasewright"


def test_discarding_closes_and_leaves_nothing_behind(qtbot: QtBot, window: TracePage) -> None:
    window.workbench.annotate("here", 1.0)
    window.desk.autosave()
    settle(qtbot, window)
    window.frame.close()
    button = question(window).button(QMessageBox.StandardButton.Discard)
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert not window.isVisible() and recoveries() == []


def test_changes_are_kept_for_recovery_by_the_clock(qtbot: QtBot, window: TracePage, tmp_path: Path) -> None:
    folder = tmp_path / "state" / "phasewright" / "recovery"
    window.desk._timer.setInterval(30)
    qtbot.wait(100)
    assert not folder.exists()
    window.workbench.annotate("here", 1.0)
    qtbot.waitUntil(lambda: folder.exists() and len(list(folder.glob("*.phasewright"))) == 1)


def test_views_are_kept_and_returned_to_by_keys(qtbot: QtBot, window: TracePage) -> None:
    view, bench, panel = window.curve_view, window.workbench, window.panel("views")
    view.setFocus()
    view.zoom_to(0.5, 1.25)
    bench.select((0.75, 1.0))
    bench.toggle_class("idle")
    qtbot.keyClick(view, Qt.Key.Key_3, Qt.KeyboardModifier.ControlModifier)
    shown = bench.snapshot.project.view.shown
    view.show_all()
    bench.select(None)
    bench.toggle_class("idle")
    qtbot.keyClick(view, Qt.Key.Key_3)
    assert view.visible_range() == pytest.approx((0.5, 1.25))
    assert bench.snapshot.project.view.selection == (0.75, 1.0)
    assert bench.snapshot.project.view.shown == shown
    before = bench.snapshot
    qtbot.keyClick(view, Qt.Key.Key_7)
    assert bench.snapshot is before and "Ctrl+7" in window.frame.statusBar().currentMessage()
    window.show_panel("views")
    panel.keep()
    assert [kept.number for kept in panel._views] == [1, 3]
    panel.view_table.selectRow(1)
    view.show_all()
    panel.go_to_view()
    assert view.visible_range() == pytest.approx((0.5, 1.25))
    panel.delete_view()
    assert [kept.number for kept in panel._views] == [1]
    window.actions_by_id["undo"].trigger()
    assert [kept.number for kept in panel._views] == [1, 3]
    panel.view_table.selectRow(1)
    panel.rename_view()
    (dialog,) = panel.findChildren(QInputDialog)
    dialog.setTextValue("the peak")
    dialog.accept()
    assert panel._views[1].name == "the peak"


def test_classes_are_drawn_by_alt_and_digit(qtbot: QtBot, window: TracePage) -> None:
    before = window.workbench.snapshot.project.view.shown
    qtbot.keyClick(window.curve_view, Qt.Key.Key_1, Qt.KeyboardModifier.AltModifier)
    assert window.workbench.snapshot.project.view.shown == before ^ {"computing"}


def note_dialog(window: TracePage) -> NoteDialog:
    found = [d for d in window.findChildren(NoteDialog) if d.isVisible()]
    assert len(found) == 1
    return found[0]


def test_annotations_at_the_pointer_and_over_the_selection(qtbot: QtBot, window: TracePage) -> None:
    view, bench, panel = window.curve_view, window.workbench, window.panel("views")
    place = QPoint(round(view._map().x(1.5)), round(view._main.rect.center().y()))
    qtbot.mouseMove(view.viewport(), place)
    qtbot.keyClick(view, Qt.Key.Key_I)
    dialog = note_dialog(window)
    dialog.accept()
    assert dialog.isVisible() and "Write what" in dialog.problem.text()
    dialog.text.setPlainText("<b>peak</b> & more")
    dialog.accept()
    bench.select((0.5, 1.25))
    qtbot.keyClick(view, Qt.Key.Key_I)
    dialog = note_dialog(window)
    assert (dialog.start.text(), dialog.end.text()) == ("0.5", "1.25")
    dialog.end.setText("0.25")
    dialog.text.setPlainText("calm")
    dialog.accept()
    assert "ends before" in dialog.problem.text()
    dialog.end.setText("1.0")
    dialog.colour.setCurrentIndex(4)
    dialog.accept()
    first, second = bench.snapshot.project.annotations
    assert first.start_s == pytest.approx(1.5, abs=0.01) and first.end_s is None
    assert (second.text, second.start_s, second.end_s, second.colour) == ("calm", 0.5, 1.0, 4)
    window.show_panel("views")
    assert (
        panel.note_table.model().rowCount() == 2
        and window.actions_by_id["undo"].text() == "Undo add annotation"
    )

    view.grab()
    flags = {flag.index: flag for flag in view._notes._flags}
    assert flags[1].text == "calm" and flags[0].text == "<b>peak</b> & more"
    at = flags[0].box.center().toPoint()
    qtbot.mouseMove(view.viewport(), at)
    assert "&lt;b&gt;" in view.toolTip() and "<b>" not in view.toolTip(), "text from outside is no markup"
    qtbot.mouseDClick(view.viewport(), Qt.MouseButton.LeftButton, pos=at)
    dialog = note_dialog(window)
    dialog.text.setPlainText("peak")
    dialog.accept()
    assert bench.snapshot.project.annotations[0].text == "peak"
    panel.note_table.select_key(1)
    panel.go_to_note()
    assert view.visible_range() == pytest.approx((0.375, 1.125))
    panel.hide_note()
    view.grab()
    assert [flag.index for flag in view._notes._flags] == []
    panel.delete_note()
    assert [note.text for note in bench.snapshot.project.annotations] == ["peak"]
    for _ in range(5):
        window.actions_by_id["undo"].trigger()
    assert bench.snapshot.project.annotations == ()


def test_flags_do_not_cover_each_other_and_none_is_left_out(window: TracePage) -> None:
    for k in range(40):
        window.workbench.annotate(
            f"a remark with some length {k}", 0.05 * k, None if k % 3 else 0.05 * k + 0.4
        )
    window.curve_view.grab()
    flags = window.curve_view._notes._flags
    assert len(flags) == 40
    with_text = [flag.box for flag in flags if flag.text]
    assert len(with_text) >= 4
    for i, one in enumerate(with_text):
        assert not any(one.intersects(other) for other in with_text[i + 1 :])
        assert window.curve_view._main.rect.contains(one)


def test_chips_say_what_holds_and_end_it(qtbot: QtBot, window: TracePage) -> None:
    bench, chips = window.workbench, window.chips
    assert not chips.texts and not chips.findChildren(QToolButton)
    bench.select((0.5, 1.0))
    assert len(chips.texts) == 1 and chips.texts[0].startswith("statistics: selection 500.")
    bench.set_activity("MPI_Send", Activity.IDLE)
    bench.set_repaired(not window.workbench.snapshot.document.repaired)
    bench.set_computing(frozenset({Activity.COMPUTING, Activity.IO}))
    settle(qtbot, window)
    keys = [chip.key for chip in chips._chips]
    assert keys == ["clocks", "regions", "computing", "selection"]
    wide = window.minimumSizeHint().width()
    for key in keys:
        button = chips.findChild(QToolButton, f"chip_{key}")
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
        settle(qtbot, window)
        assert key not in [chip.key for chip in chips._chips]
    assert not chips.texts
    assert window.minimumSizeHint().width() == wide, "chips do not make the window wider"
    assert bench.snapshot.project.view.selection is None


def test_a_second_run_and_the_way_back(
    qtbot: QtBot, window: TracePage, traces: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    window.workbench.annotate("in the first", 1.0)
    asked_for(monkeypatch, traces[1])
    window.actions_by_id["add_run"].trigger()
    settle(qtbot, window)
    assert window.workbench.snapshot.document.source == traces[1]
    window._contents_menu.aboutToShow.emit()
    names = [plain(action.text()) for action in window._contents_menu.actions() if action.isCheckable()]
    assert names == ["first.csv", "second.csv"]
    window._contents_menu.actions()[0].trigger()
    settle(qtbot, window)
    assert window.workbench.snapshot.document.source == traces[0]
    assert window.workbench.snapshot.project.annotations[0].text == "in the first"
    assert window.actions_by_id["undo"].text() == "Undo add second.csv"
    window.actions_by_id["undo"].trigger()
    assert window.actions_by_id["undo"].text() == "Undo add annotation"
    assert len(window.desk.projects.workspace.runs) == 1


def test_tables_and_experiments_are_kept_and_listed(
    qtbot: QtBot, window: TracePage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, other = tmp_path / "times.csv", tmp_path / "letter.txt"
    table.write_text("code,system,p,time\nLU,a,1,10\nLU,a,2,6\nLU,b,1,9\n")
    other.write_text("Dear Sir\n")
    names = [str(table), str(other)]
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", staticmethod(lambda *_: (names, "")))
    window.actions_by_id["add_files"].trigger()
    assert [one.path for one in window.desk.projects.workspace.tables] == [table]
    assert "letter.txt is neither" in window.frame.notice_bar.sentence
    window._contents_menu.aboutToShow.emit()
    (listed,) = [action for action in window._contents_menu.actions() if plain(action.text()) == "times.csv"]
    listed.trigger()
    page = window.frame.current
    assert isinstance(page, ModelPage)
    qtbot.waitUntil(lambda: page.source == table, timeout=60_000)


def listed(panel: ProjectPanel, column: int) -> list[str]:
    """A column of the contents of the project."""
    return [panel.model.text(row, column) for row in range(panel.model.rowCount())]


def test_the_panel_lists_opens_finds_and_takes_out(
    qtbot: QtBot, window: TracePage, traces: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel, projects = window.panel("project"), window.desk.projects
    table = tmp_path / "times.csv"
    table.write_text("code,system,p,time\nLU,a,1,10\nLU,a,2,6\n")
    asked_for(monkeypatch, traces[1])
    panel.buttons["trace"].click()
    settle(qtbot, window)
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", staticmethod(lambda *_: ([str(table)], "")))
    panel.buttons["file"].click()
    rows = list(zip(listed(panel, 1), listed(panel, 0), listed(panel, 2), strict=True))
    assert rows == [
        ("Trace", "first.csv", ""), ("Trace", "second.csv", "shown"), ("Table of run times", "times.csv", "")
    ]  # fmt: skip
    assert not panel.buttons["open"].isEnabled(), "nothing is chosen"
    panel.table.selectRow(1)
    assert not panel.buttons["open"].isEnabled() and panel.buttons["remove"].isEnabled()
    panel.table.selectRow(0)
    panel.buttons["open"].click()
    settle(qtbot, window)
    assert listed(panel, 2) == ["shown", "", ""]
    table.rename(tmp_path / "moved.csv")
    window.workbench.annotate("so that it is looked again", 1.0)
    assert listed(panel, 2) == ["shown", "", "not found"]
    panel.table.selectRow(2)
    asked_for(monkeypatch, tmp_path / "moved.csv")
    panel.buttons["place"].click()
    assert listed(panel, 0) == ["first.csv", "second.csv", "moved.csv"]
    assert window.actions_by_id["undo"].text() == "Undo find times.csv elsewhere"
    panel.table.selectRow(1)
    panel.buttons["remove"].click()
    assert listed(panel, 0) == ["first.csv", "moved.csv"]
    panel.table.selectRow(0)
    assert not panel.buttons["remove"].isEnabled(), "a project of traces keeps one"
    for _ in range(3):
        window.actions_by_id["undo"].trigger()
    assert listed(panel, 0) == ["first.csv", "second.csv", "times.csv"]
    assert len(projects.workspace.runs) == 2


def test_what_is_done_in_windows_of_their_own_is_kept(
    qtbot: QtBot, qapp: QApplication, traces: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A factor model and an experiment are changed in their windows, and come back as they were left."""
    load_font(qapp)
    settings = Settings(QSettings(str(tmp_path / "settings.ini"), QSettings.Format.IniFormat))
    windows, file = Windows(qapp, settings), tmp_path / "p.phasewright"
    table = Path(shutil.copy(example_table(), tmp_path / "times.csv"))
    runs = Path(shutil.copy(SPT / "measured_2026-11-21_screen_2p6m2.csv", tmp_path))

    def wait() -> None:
        others = [page for frame in windows._open for page in frame.all_pages if hasattr(page, "bench")]
        qtbot.waitUntil(lambda: not any(one.bench.busy for one in others), timeout=60_000)

    def two(home: TracePage) -> tuple[ModelPage, ExperimentPage]:
        home.desk.open_item("tables", 0)
        home.desk.open_item("experiments", 0)
        wait()
        _, experiment, model = home.frame.pages[0], home.frame.pages[-2], home.frame.pages[-1]
        assert isinstance(model, ModelPage) and isinstance(experiment, ExperimentPage)
        return model, experiment

    def close_all() -> None:
        for one in windows._open[:]:
            one.close_unasked()

    windows.open([traces[0]])
    (home,) = (frame.trace for frame in windows._open)
    settle(qtbot, home)
    projects = home.desk.projects
    projects.add_files(experiments=(runs,), tables=(table,))
    projects.save(file)
    model, experiment = two(home)
    assert not projects.modified, "opening them is no change"
    model.bench.set_functions(("1/p", "1"))
    wait()
    assert projects.modified and home.isWindowModified()
    experiment.bench.set_analysis("halve", half=True)
    model.bench.open("code,system,p,time\nLU,a,1,10\nLU,a,2,6\nLU,a,4,4\n")
    wait()
    assert projects.workspace.tables[0].path == table, "another table in its window is none of the project's"
    model.actions_by_id["to_project"].trigger()
    assert [one.name for one in projects.workspace.tables] == ["times.csv", "pasted table"]
    model.bench.set_positive(True)
    wait()
    projects.save()
    lent = projects.bench("tables", 1)
    lent.share()
    close_all()
    lent.set_positive(False)  # a bench that outlives its project is not heard any more
    lent.release()

    windows.open([file])
    (home,) = (frame.trace for frame in windows._open)
    settle(qtbot, home)
    model, experiment = two(home)
    assert model.bench.snapshot.project.settings.functions == ("1/p", "1")
    assert experiment.bench.snapshot.project.analysis.half
    pasted = home.desk.projects.workspace.tables[1]
    assert pasted.settings is not None and pasted.settings.positive
    assert not home.desk.projects.modified
    close_all()


def test_a_project_of_tables_alone(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path, traces: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    load_font(qapp)
    window = make(qtbot, tmp_path)
    table = tmp_path / "times.csv"
    table.write_text("code,system,p,time\nLU,a,1,10\nLU,a,2,6\n")
    window.desk.projects.add_files(tables=(table,))
    assert window.panel("project").isVisible() and window.isWindowModified()
    asked_for(monkeypatch, tmp_path / "p.phasewright")
    window.actions_by_id["save"].trigger()
    assert window.windowTitle() == "p.phasewright[*] – Phasewright" and not window.isWindowModified()
    other = opened(qtbot, make(qtbot, tmp_path), tmp_path / "p.phasewright")
    assert listed(other.panel("project"), 0) == ["times.csv"]
    asked_for(monkeypatch, traces[0])
    other.actions_by_id["add_run"].trigger()
    settle(qtbot, other)
    assert other.windowTitle() == "first.csv – p.phasewright[*] – Phasewright" and other.isWindowModified()
    other.actions_by_id["undo"].trigger()
    assert other.workbench.snapshot.document is None and not other.isWindowModified()
    other.frame.close_unasked()
    window.frame.close_unasked()


def test_moved_changed_and_newer_in_the_window(
    qtbot: QtBot, window: TracePage, traces: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.workbench.annotate("here", 1.0)
    folder = tmp_path / "saved"
    folder.mkdir()
    window.desk.projects.save(folder / "p.phasewright")
    traces[0].rename(tmp_path / "elsewhere.csv")
    asked_for(monkeypatch, None)
    lost = make(qtbot, tmp_path)
    lost.open_path(folder / "p.phasewright")
    settle(qtbot, lost)
    assert "first.csv: is not where it was" in lost.frame.problem_bar.sentence
    panel = lost.panel("project")
    assert listed(panel, 2) == ["not found"] and panel.isVisible()
    assert "press Find in the panel Project" in lost.frame.problem_bar.sentence
    find = panel.buttons["place"]
    assert find.isEnabled() and find.visibleRegion().boundingRect() == find.rect(), (
        "it can be pressed at once"
    )
    asked_for(monkeypatch, tmp_path / "elsewhere.csv")
    qtbot.mouseClick(find, Qt.MouseButton.LeftButton)
    panel.table.selectRow(0)
    panel.buttons["open"].click()
    settle(qtbot, lost)
    assert [note.text for note in lost.workbench.snapshot.project.annotations] == ["here"]
    lost.desk.projects.save()
    lost.frame.close()
    (tmp_path / "elsewhere.csv").write_text("0,1\n1,5\n2,0\n")
    changed = opened(qtbot, make(qtbot, tmp_path), folder / "p.phasewright")
    assert "elsewhere.csv is not as it was" in changed.frame.notice_bar.sentence
    changed.frame.close_unasked()
    file = folder / "p.phasewright"
    file.write_text(file.read_text().replace(f'"schema": {SCHEMA}', f'"schema": {SCHEMA + 1}'))
    newer = make(qtbot, tmp_path)
    newer.open_path(file)
    settle(qtbot, newer)
    assert (
        "newer version" in newer.frame.problem_bar.sentence
        and "update Phasewright" in newer.frame.problem_bar.sentence
    )
    newer.frame.close_unasked()


def test_bundle_and_part_from_the_menu(
    qtbot: QtBot, window: TracePage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not window.actions_by_id["save_part"].isEnabled()
    window.workbench.select((0.5, 1.5))
    asked_for(monkeypatch, tmp_path / "part.h5")
    window.actions_by_id["save_part"].trigger()
    (dialog,) = window.findChildren(PartDialog)
    assert not dialog.ranks.isEnabled(), "a curve has none"
    qtbot.keyClick(dialog, Qt.Key.Key_Return)
    settle(qtbot, window)
    with open_store(tmp_path / "part.h5") as part:
        assert build(part).curve().duration == pytest.approx(1.0)
    asked_for(monkeypatch, tmp_path / "archive")
    window.actions_by_id["export_trace"].trigger()
    settle(qtbot, window)
    assert "is a curve and has no events" in window.frame.problem_bar.sentence
    window.frame.problem_bar.hide()
    window.workbench.annotate("sent", 1.0)
    asked_for(monkeypatch, tmp_path / "b.zip")
    window.actions_by_id["export_bundle"].trigger()
    settle(qtbot, window)
    (asking,) = window.findChildren(BundleDialog)
    assert asking.files.topLevelItemCount() == 1 and not asking.ticked and not (tmp_path / "b.zip").exists()
    assert "0 of 1 files" in asking.total.text()
    qtbot.keyClick(asking, Qt.Key.Key_Escape)
    settle(qtbot, window)
    assert not (tmp_path / "b.zip").exists()
    window.actions_by_id["export_bundle"].trigger()
    settle(qtbot, window)
    asking = window.findChildren(BundleDialog)[-1]
    asking.every.click()
    assert "1 of 1 files" in asking.total.text()
    qtbot.keyClick(asking, Qt.Key.Key_Return)
    settle(qtbot, window)
    other = opened(qtbot, make(qtbot, tmp_path), tmp_path / "b.zip")
    assert other.workbench.snapshot.project.annotations[0].text == "sent"
    assert other.workbench.snapshot.project.view == View(
        (0.5, 1.5), span=None, shown=window.workbench.snapshot.project.view.shown
    )


def test_some_ranks_of_a_phase_become_a_trace(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_font(qapp)
    window = opened(qtbot, make(qtbot, tmp_path), samples()[0].path)
    window.workbench.set_n(4)
    settle(qtbot, window)
    window.workbench.select_phase(1)
    asked_for(monkeypatch, tmp_path / "part.h5")
    window.actions_by_id["save_part"].trigger()
    (dialog,) = window.findChildren(PartDialog)
    for wrong, says in (("none", "no list of ranks"), ("3-99", "no rank 16")):
        dialog.ranks.setText(wrong)
        qtbot.keyClick(dialog.ranks, Qt.Key.Key_Return)
        assert dialog.isVisible() and says in dialog.problem.text()
    dialog.ranks.setText("0-2, 5")
    qtbot.keyClick(dialog.ranks, Qt.Key.Key_Return)
    settle(qtbot, window)
    row = window.workbench.snapshot.rows[1]
    part = opened(qtbot, make(qtbot, tmp_path), tmp_path / "part.h5")
    document = part.workbench.snapshot.document
    assert document is not None and part.workbench.snapshot.run is not None
    assert [one["rank"] for one in document.info["locations"]] == [0, 1, 2, 5]
    assert part.workbench.snapshot.run.curve.duration == pytest.approx(row.end_s - row.start_s, abs=1e-8)


def test_a_remark_is_over_the_phase_that_is_selected(qtbot: QtBot, window: TracePage) -> None:
    window.workbench.set_n(2)
    settle(qtbot, window)
    window.workbench.select_phase(1)
    row = window.workbench.snapshot.rows[1]
    window.desk.annotate()
    (dialog,) = window.findChildren(NoteDialog)
    dialog.text.setPlainText("the second")
    dialog.buttons.accepted.emit()
    (note,) = window.workbench.snapshot.project.annotations
    assert (note.start_s, note.end_s) == pytest.approx((row.start_s, row.end_s))


def test_a_region_is_called_otherwise_wherever_regions_are_listed(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path
) -> None:
    load_font(qapp)
    window = opened(qtbot, make(qtbot, tmp_path), samples()[0].path)
    table, profile = window.panel("classes").table.frames, window.panel("profile")
    window.show_panel("profile")
    qtbot.waitUntil(lambda: profile.model.rowCount() > 0, timeout=60_000)
    row = next(k for k in range(table.rowCount()) if table.index(k, 0).data() == "MPI_Recv")
    table.setData(table.index(row, 0), " wait for the panel ")
    window.panel("classes")  # drawn anew when it is asked for
    (row,) = table.rows_of(["MPI_Recv"])  # which is sorted by its other name
    assert table.index(row, 0).data() == "wait for the panel"
    assert "MPI_Recv" in table.index(row, 0).data(Qt.ItemDataRole.ToolTipRole)

    def regions() -> list[str]:
        return [] if profile.model.frame is None else list(profile.model.frame["region"])

    names = regions()
    assert "wait for the panel" in names and "MPI_Recv" not in names
    assert window.actions_by_id["undo"].text() == "Undo rename MPI_Recv"
    pane, new = window.timeline, "wait for the panel"
    qtbot.waitUntil(lambda: pane.view.timeline is not None and not window.busy, timeout=60_000)
    timeline = pane.view.timeline
    assert timeline is not None
    assert new in pane._names.stringList() and "MPI_Recv" not in pane._names.stringList()
    number = next(r for r in timeline.entered if timeline.store.regions[r].name == "MPI_Recv")
    found = timeline.find([number], 0.0)
    assert found is not None
    assert describe(timeline, *found[:2], 1e-9, pane.view.name_of)[1].startswith(new)
    pane._colour.setCurrentIndex(1)
    plot = pane.view.description()
    assert plot is not None and new in [entry.words for entry in plot.legend]
    changes = window.panel("changes")
    window.show_panel("changes")
    window.workbench.set_n(5)
    qtbot.waitUntil(lambda: not window.busy and new in changes.text.toPlainText(), timeout=60_000)
    assert "MPI_Recv" not in changes.text.toPlainText()
    window.workbench.undo()
    window.workbench.undo()
    window.show_panel("profile")
    qtbot.waitUntil(lambda: "MPI_Recv" in regions(), timeout=60_000)
    window.frame.close_unasked()


def test_looks(qtbot: QtBot, qapp: QApplication, tmp_path: Path) -> None:
    """Nothing but drawn: a real trace in the dark with everything on it; looked at by eye when it changes."""
    window = make(qtbot, tmp_path)
    load_font(qapp)
    opened(qtbot, window, samples()[0].path)
    window.frame.use_theme(DARK)
    run = window.workbench.snapshot.run
    assert run is not None
    length = run.curve.duration
    window.workbench.annotate("the factorisation begins to starve", 0.3 * length)
    window.workbench.annotate("tail", 0.8 * length, 0.95 * length)
    window.workbench.select((0.4 * length, 0.5 * length))
    window.show_panel("views")
    image = window.grab().toImage()
    flag = window.curve_view._notes._flags[0]
    stripe = window.curve_view.mapTo(window, flag.box.topLeft() + QPointF(2, 6))
    ratio = image.devicePixelRatio()
    assert image.pixelColor((stripe * ratio).toPoint()).name() == "#0072b2"
    rows = window.timeline.view
    qtbot.waitUntil(lambda: rows.timeline is not None and not window.busy, timeout=60_000)
    image = window.grab().toImage()
    assert [flag.note.text for flag in rows._notes._flags] == ["the factorisation begins to starve", "tail"]
    stripe = rows.mapTo(window, rows._notes._flags[0].box.topLeft() + QPointF(2, 6))
    assert image.pixelColor((stripe * ratio).toPoint()).name() == "#0072b2", "in the timeline too"
    window.workbench.change_annotation(0, hidden=True)
    window.grab()
    assert [flag.index for flag in rows._notes._flags] == [1]
    at = rows._notes._flags[0].box.center().toPoint()
    qtbot.mouseDClick(rows.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert note_dialog(window).text.toPlainText() == "tail"


@pytest.mark.parametrize("answer", ["Recover", "Discard", "Later"])
def test_a_crashed_session_is_offered_at_the_next_start(
    answer: str, qtbot: QtBot, qapp: QApplication, traces: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f"""
import os
import subprocess
import sys
from pathlib import Path
from tests.workbench.test_keeping import Desk
desk = Desk()
desk.bench.open(Path({str(traces[0])!r}))
desk.bench.annotate("not saved", 1.0)
desk.projects.autosave()
os._exit(1)
"""
    root = Path(__file__).parent.parent.parent
    assert subprocess.run([sys.executable, "-c", script], cwd=root, check=False).returncode == 1
    asked: list[str] = []

    def choose(box: QMessageBox) -> int:
        asked.append(box.text())
        next(button for button in box.buttons() if button.text() == answer).click()
        return 0

    monkeypatch.setattr(QMessageBox, "exec", choose)
    windows = Windows(qapp)
    windows.offer_recoveries()
    assert asked == ["Recover the work on first.csv?"]
    assert len(recoveries()) == (answer == "Later")
    assert len(windows._open) == (answer == "Recover")
    for window in [frame.trace for frame in windows._open]:
        settle(qtbot, window)
        assert [note.text for note in window.workbench.snapshot.project.annotations] == ["not saved"]
        assert window.isWindowModified()
        window.frame.close_unasked()


# --- several traces at once ---


def answer(window: TracePage, text: str) -> None:
    """Press a button of the question about several traces."""
    (box,) = (one for one in window.frame.findChildren(QMessageBox, "several_question") if one.isVisible())
    next(button for button in box.buttons() if button.text() == text).click()


def runs_of(window: TracePage) -> list[str]:
    return [run.trace.name for run in window.desk.projects.workspace.runs]


def test_several_traces_become_runs_of_one_project(
    qtbot: QtBot, window: TracePage, traces: list[Path]
) -> None:
    third = traces[0].with_name("third.csv")
    third.write_text(traces[1].read_text())
    window.open_paths([traces[1], third])
    assert runs_of(window) == ["first.csv"]  # nothing before it is answered
    answer(window, "In one project")
    qtbot.waitUntil(lambda: len(runs_of(window)) == 3, timeout=60_000)
    settle(qtbot, window)
    assert runs_of(window) == ["first.csv", "second.csv", "third.csv"]
    document = window.workbench.snapshot.document
    assert document is not None and document.source.name == "third.csv"
    window.workbench.undo()
    settle(qtbot, window)
    assert runs_of(window) == ["first.csv", "second.csv"]


def test_what_cannot_be_read_is_told_and_the_others_are_added(
    qtbot: QtBot, window: TracePage, traces: list[Path]
) -> None:
    empty = traces[0].with_name("empty.csv")
    empty.touch()
    window.open_paths([empty, traces[1]])
    answer(window, "In one project")
    qtbot.waitUntil(lambda: len(runs_of(window)) == 2, timeout=60_000)
    settle(qtbot, window)
    assert "empty.csv" in window.frame.notice_bar.sentence


def test_cancel_gives_up_all_that_wait(qtbot: QtBot, window: TracePage, traces: list[Path]) -> None:
    window.open_paths([traces[1], traces[0], traces[1]])
    answer(window, "In one project")
    window.workbench.cancel_opening()
    qtbot.wait(50)
    settle(qtbot, window)
    assert runs_of(window) == ["first.csv"]


def test_several_traces_may_have_a_window_each(qtbot: QtBot, window: TracePage, traces: list[Path]) -> None:
    asked: list[list[Path]] = []
    window.frame.newWindowRequested.connect(asked.append)
    window.open_paths(traces)
    answer(window, "In separate windows")
    assert asked == [[path] for path in traces]
    window.open_paths(traces)
    answer(window, "Cancel")
    assert len(asked) == 2 and runs_of(window) == ["first.csv"]


def test_a_trace_is_exported_from_the_menu(
    qtbot: QtBot, window: TracePage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(parent: object, title: str, place: str, filters: str) -> tuple[str, str]:
        return str(tmp_path / "run"), filters.split(";;")[1]

    monkeypatch.setattr(QFileDialog, "getSaveFileName", staticmethod(asked))
    window.workbench.open(resources.folder() / "samples" / "fft_16_picl" / "v1-fft16-upshot.trf")
    settle(qtbot, window)
    window.actions_by_id["export_trace"].trigger()
    settle(qtbot, window)
    assert sorted(file.name for file in (tmp_path / "run").iterdir()) == [
        "trace.pcf",
        "trace.prv",
        "trace.row",
    ]
    assert str(tmp_path / "run" / "trace.prv") in window.frame.statusBar().currentMessage()

"""Every dialog and every window ends, however it is closed, with work running and without; what worked for it
has ended then, and it can be opened again."""

from __future__ import annotations

import ast
import threading
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QCloseEvent
from PySide6.QtPrintSupport import QPrintDialog
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QMainWindow,
    QMessageBox,
    QWidget,
    QWidgetItem,
)
from pytestqt.qtbot import QtBot
from shiboken6 import Shiboken, isValid

import desktop.ui
from desktop.resources import example_table, folder, samples
from desktop.ui.commands import KINDS
from desktop.ui.compare_page import ComparePage
from desktop.ui.experiment_page import ExperimentPage
from desktop.ui.exporting import ChartDialog, ExportDialog, FigureDialog, ReportDialog
from desktop.ui.flow import Flow
from desktop.ui.frame import Frame
from desktop.ui.handbook import Handbook, handbook
from desktop.ui.model_page import ModelPage
from desktop.ui.panels import panels
from desktop.ui.presentation import Presentation
from desktop.ui.settings import Settings
from desktop.ui.trace_page import TracePage
from desktop.ui.watch_page import WatchPage
from desktop.ui.windows import Windows
from desktop.workbench.model import OpenOptions
from tests.ui.scene import OPENERS, Scene, classes, free, open_handbook, shown

Way = Callable[[QWidget], None]


def esc(widget: QWidget) -> None:
    QTest.keyClick(widget.focusWidget() or widget, Qt.Key.Key_Escape)


def title_bar(widget: QWidget) -> None:
    """What the button there and Alt+F4 send to the window."""
    QApplication.sendEvent(widget.windowHandle(), QCloseEvent())


def button(widget: QWidget) -> None:
    """Close, Cancel or what it is called there; the palette has none."""
    roles = QDialogButtonBox.ButtonRole
    for box in widget.findChildren(QDialogButtonBox):
        for one in box.buttons():
            if box.buttonRole(one) == roles.RejectRole or one.text() == "&Continue":
                one.click()
                return
    esc(widget)


WAYS: dict[str, Way] = {"Esc": esc, "button": button, "title bar": title_bar}


def twice(way: Way, widget: QWidget) -> None:
    """A second time before the program has had time for anything; it may be gone by then."""
    for _ in range(2):
        if isValid(widget) and widget.isVisible():
            way(widget)


def gone(widget: QWidget) -> bool:
    free()
    return not isValid(widget) or not widget.isVisible()


def ended(qtbot: QtBot) -> None:
    """Threads of exports end, at the latest when they have drawn what they are drawing."""

    def left() -> bool:
        return any(t.name.startswith("phasewright-export") for t in threading.enumerate())

    qtbot.waitUntil(lambda: not left(), timeout=20_000)


def test_no_dialog_or_window_is_forgotten() -> None:
    assert classes(QDialog) == set(OPENERS)
    assert classes(QMainWindow) == set(WINDOWS)


def test_every_dialog_ends_in_the_same_way() -> None:
    """Nothing but `desktop.ui.dialogs` derives from Qt's dialog or makes one, nor has an end of its own."""
    found = set()
    for file in Path(desktop.ui.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            name = node.id if isinstance(node, ast.Name) else ""
            if name == "QDialog" and file.name != "dialogs.py":
                found.add(f"{file.name}: QDialog")
    for kind in OPENERS:
        own = {"reject", "done", "closeEvent"} & set(vars(kind)) | {"closeEvent"} & set(vars(ExportDialog))
        found |= {f"{kind.__name__}.{name}" for name in own}
    assert not found


@pytest.mark.parametrize("kind", OPENERS, ids=lambda kind: kind.__name__)
def test_a_dialog_ends_in_every_way_and_opens_again(qtbot: QtBot, scene: Scene, kind: type[QDialog]) -> None:
    for k, way in enumerate(WAYS):
        scene.main.workbench.set_n(3 + 2 * (k % 2))  # work in the window below it
        dialog = OPENERS[kind](scene)
        assert isinstance(dialog, kind) and dialog.isVisible()
        twice(WAYS[way], dialog)
        assert gone(dialog), f"{way} does not close it"
        assert not isValid(dialog), "it is not freed"
        ended(qtbot)
        scene.settle()
    assert all(window.isVisible() for window in scene.windows._open)


def test_no_item_of_a_layout_has_an_object_that_outlives_it(scene: Scene) -> None:
    """PySide makes one when a layout that is filled is added to one of a widget. When Qt has freed the item,
    PySide takes what is made at its address for it: wrong objects, and crashes."""

    def items() -> list[QWidgetItem]:
        return [item for item in Shiboken.getAllValidWrappers() if type(item) is QWidgetItem]

    before = items()  # of other tests
    frame = scene.windows.open([samples()[0].path])
    for kind in KINDS:
        frame.show_kind(kind)
    frame.go_to(frame.trace)
    for panel in panels():
        frame.trace.show_panel(panel.id)
        scene.settle()
    for opener in OPENERS.values():
        dialog = opener(scene)
        flows = [flow for widget in QApplication.allWidgets() for flow in widget.findChildren(Flow)]
        other = {id(item) for item in before} | {id(item) for flow in flows for item in flow._items}
        assert not [item.widget() for item in items() if id(item) not in other]
        dialog.close()
        free()
    frame.close_unasked()


def open_dialogs() -> list[QDialog]:
    return [one for one in QApplication.topLevelWidgets() if isinstance(one, QDialog) and one.isVisible()]


def test_whatever_a_command_of_any_page_opens_ends(
    qtbot: QtBot, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command with three dots, of every kind of page, with work running: also Qt's own dialogs and
    questions. Files are asked for by the system, which is given none."""
    for name in ("getOpenFileName", "getSaveFileName", "getOpenFileNames"):
        monkeypatch.setattr(QFileDialog, name, lambda *_: ("", ""))
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: "")
    monkeypatch.setattr(QPrintDialog, "exec", lambda _: 0)
    ways = cycle(WAYS)
    found: dict[str, set[str]] = {}
    for page in {type(page): page for page in scene.pages if page.frame is scene.main.frame}.values():
        page.frame.go_to(page)
        scene.settle()
        for command, action in page.actions_by_id.items():
            if not action.isEnabled() or not action.text().endswith("…"):
                continue
            scene.main.workbench.set_n(3 + scene.main.workbench.snapshot.project.phases.n % 2)
            action.trigger()
            for dialog in open_dialogs():
                found.setdefault(type(dialog).__name__, set()).add(command)
                way = next(ways)
                twice(WAYS[way], dialog)
                assert gone(dialog), f"{way} does not end {type(dialog).__name__} of {command}"
            assert not open_dialogs() and page.frame.isVisible()
    ended(qtbot)
    assert {"FigureDialog", "ReportDialog", "CurvesDialog", "NewExperimentDialog", "AddRuns"} <= set(found)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [FigureDialog, ChartDialog, ReportDialog], ids=lambda kind: kind.__name__)
def test_an_export_ends_with_its_dialog_and_saves_in_the_next(
    qtbot: QtBot, scene: Scene, tmp_path: Path, kind: type[ExportDialog], way: str
) -> None:
    dialog = OPENERS[kind](scene)
    assert isinstance(dialog, ExportDialog)
    dialog.save_to(tmp_path / "stopped.pdf")
    assert dialog.lane.busy
    twice(WAYS[way], dialog)
    assert gone(dialog)
    ended(qtbot)
    assert not list(tmp_path.glob("*.part")), "nothing half written is left"
    again = OPENERS[kind](scene)
    assert isinstance(again, ExportDialog)
    qtbot.waitUntil(lambda: not again.lane.busy, timeout=60_000)
    if isinstance(again, ReportDialog):
        again.statistics.setChecked(False)
    again.save_to(tmp_path / f"whole.{again.format.currentData()}")
    qtbot.waitUntil(lambda: not again.lane.busy, timeout=60_000)
    assert "Written to" in again.status.text() and list(tmp_path.glob("whole.*"))
    twice(WAYS[way], again)
    assert gone(again)
    ended(qtbot)


def test_a_window_ends_what_its_dialogs_do(qtbot: QtBot, scene: Scene, tmp_path: Path) -> None:
    """A window may be closed by the program while a dialog stands above it."""
    window = scene.windows.open([samples()[1].path])
    scene.settle()
    window.trace.export_figure()
    dialog = shown(FigureDialog, window)
    window.close_unasked()
    assert gone(dialog)
    ended(qtbot)


def trace_page(windows: Windows) -> QWidget:
    return windows.open([samples()[0].path]).trace


def model_page(windows: Windows) -> QWidget:
    return windows.open([example_table()]).open_model()


def experiment_page(windows: Windows) -> QWidget:
    return windows.open([folder() / "examples" / "quicksort"]).open_experiment()


def compare_page(windows: Windows) -> QWidget:
    return windows.open().show_kind("compare")


def watch_page(windows: Windows) -> QWidget:
    """Of a folder in which nothing has been recorded yet."""
    frame = windows.open()
    frame.watch(folder() / "not there", None)
    assert frame.current is not None
    return frame.current


def handbook_window(windows: Windows) -> QWidget:
    handbook().show_place("index.md")
    return handbook()


WINDOWS: dict[type[QWidget], Callable[[Windows], QWidget]] = {
    Frame: lambda windows: windows.open([samples()[0].path]),
    TracePage: trace_page,
    ModelPage: model_page,
    ExperimentPage: experiment_page,
    ComparePage: compare_page,
    WatchPage: watch_page,
    Handbook: handbook_window,
}


@pytest.fixture
def windows(qtbot: QtBot, qapp: QApplication, own_places: None, settings: Settings) -> Iterator[Windows]:
    before = set(threading.enumerate())
    made = Windows(qapp, settings)
    yield made
    for window in tuple(made._open):
        window.close()
    free()
    left = set(threading.enumerate()) - before
    assert not [t.name for t in left if t.name.startswith("phasewright")]


def test_a_window_goes_at_once_however_long_its_work_takes_to_end(
    qtbot: QtBot, windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = WINDOWS[TracePage](windows)
    window, visible = made.window(), []
    finish = TracePage.finish
    monkeypatch.setattr(TracePage, "finish", lambda page: (visible.append(window.isVisible()), finish(page)))
    assert window.isVisible()
    title_bar(window)
    assert visible == [False]


@pytest.mark.parametrize("kind", WINDOWS, ids=lambda kind: kind.__name__)
def test_a_window_ends_and_opens_again(qtbot: QtBot, windows: Windows, kind: type[QWidget]) -> None:
    """While it works, then when it is idle."""

    def busy() -> bool:
        return any(Scene._busy(page) for window in windows._open for page in window.all_pages)

    for working in (True, False):
        made = WINDOWS[kind](windows)
        assert isinstance(made, kind) and made.isVisible()
        window = made.window()
        if not working:
            qtbot.waitUntil(lambda: not busy(), timeout=60_000)
        for _ in range(2):
            title_bar(window)
            window.close()  # as the program does when it ends
        assert gone(made) and gone(window) and window not in windows._open
    for other in tuple(windows._open):
        title_bar(other)
        other.close()
    assert not windows._open


def test_the_handbook_and_the_presentation_end_by_esc(scene: Scene) -> None:
    for _ in range(2):
        book = open_handbook(scene)
        QTest.qWaitForWindowActive(book)
        twice(esc, book)
        assert gone(book) and Handbook.last is None
        scene.main.present()
        shown_whole = scene.main.presentation
        assert isinstance(shown_whole, Presentation)
        twice(esc, shown_whole)
        assert gone(shown_whole) and scene.main.presentation is None


@pytest.mark.parametrize("way", WAYS)
def test_questions_end_and_nothing_is_done(scene: Scene, way: str) -> None:
    main = scene.main
    for _ in range(2):
        main.workbench.annotate("something to lose", 0.2)
        title_bar(main.frame)
        box = shown(QMessageBox, main.frame)
        assert box.objectName() == "save_question"
        title_bar(main.frame)  # a second question is none
        assert len([one for one in main.frame.findChildren(QMessageBox) if one.isVisible()]) == 1
        twice(WAYS[way], box)
        assert gone(box) and main.isVisible()
        main.open_paths([samples()[0].path, samples()[1].path])
        box = shown(QMessageBox, main)
        assert box.objectName() == "several_question"
        twice(WAYS[way], box)
        assert gone(box) and len(main.desk.projects.workspace.runs) == 1


def test_a_trace_that_cannot_be_read_leaves_no_empty_window(
    qtbot: QtBot, windows: Windows, tmp_path: Path
) -> None:
    """The window from which it was opened says why; one that can be read gets a window as before."""
    first = windows.open([samples()[0].path])
    idle = lambda: not any(Scene._busy(page) for frame in windows._open for page in frame.all_pages)  # noqa: E731
    qtbot.waitUntil(idle, timeout=60_000)
    bad = tmp_path / "bad.otf2"
    bad.write_bytes(b"no trace")
    for open_it in (
        lambda: first.trace.open_paths([bad]),
        lambda: first.trace.open_with(bad, OpenOptions(format_id="otf2")),
    ):
        open_it()
        qtbot.waitUntil(lambda: len(windows._open) == 1 and idle(), timeout=60_000)
        problem = first.trace.snapshot.problem
        assert problem is not None and "bad.otf2" in problem.sentence and first.problem_bar.isVisible()
        first.trace.workbench.dismiss_problem()
    first.trace._open_each([samples()[1].path, bad])
    qtbot.waitUntil(lambda: len(windows._open) == 2 and idle(), timeout=60_000)
    assert windows._open[1].trace.snapshot.document is not None
    windows._open[1].trace.open_path(bad)
    qtbot.waitUntil(lambda: len(windows._open) == 2 and idle(), timeout=60_000)
    assert "bad.otf2" in windows._open[1].trace.snapshot.problem.sentence

"""All pages of the program with something in them, and all its dialogs, opened as a user opens them."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from PySide6.QtCore import QEvent, QEventLoop, QTimer
from PySide6.QtWidgets import QApplication, QDialog, QTabWidget, QWidget

import desktop.ui
from desktop.resources import example_table, folder, samples
from desktop.ui.about import About
from desktop.ui.bundle import BundleDialog
from desktop.ui.commands import KINDS
from desktop.ui.compare.systems_dialog import SystemsDialog
from desktop.ui.compare_page import ComparePage
from desktop.ui.crashes import Trouble
from desktop.ui.curves import CurvesDialog
from desktop.ui.dialogs import Dialog
from desktop.ui.experiment.new import NewExperimentDialog
from desktop.ui.experiment.parts import ErrandDialog
from desktop.ui.experiment_page import ExperimentPage
from desktop.ui.exporting import ChartDialog, ExportDialog, FigureDialog, ReportDialog, SheetDialog
from desktop.ui.frame import Frame
from desktop.ui.handbook import Handbook, handbook
from desktop.ui.model.dialogs import AddRuns, AssignColumns
from desktop.ui.model_page import ModelPage
from desktop.ui.opening import ChoiceDialog, OpenDialog, RemoteDialog
from desktop.ui.page import KeyList, Page
from desktop.ui.palette import Palette
from desktop.ui.panels import panels
from desktop.ui.panels.views import NoteDialog
from desktop.ui.part import PartDialog
from desktop.ui.plots import plot_menu
from desktop.ui.plots.plot_menu import AxisDialog
from desktop.ui.preferences import Preferences
from desktop.ui.settings import Settings
from desktop.ui.trace_page import TracePage
from desktop.ui.watch_page import WatchPage
from desktop.ui.windows import Windows
from tests.data_layer.recordings import written

SPT = Path(__file__).parent.parent / "data" / "spt"
W = TypeVar("W", bound=QWidget)
P = TypeVar("P", bound=Page)


def alone(kind: type[P], settings: Settings, *more: Any) -> P:
    """A page in front of a window of its own project."""
    return beside(kind, Frame(settings).trace, *more)


def beside(kind: type[P], page: Page, *more: Any) -> P:
    """Another page in front of the window that a page is in."""
    made = kind(page.frame, *more)
    page.frame.take(made)
    page.frame.go_to(made)
    return made


def wait(milliseconds: int) -> None:
    """Let the window work for so long. `QTest.qWait` sleeps with the interpreter's lock: threads beside it
    stand still, and a test of a second took five."""
    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()


class Scene:
    """All pages of the program with something in them in one window, and with nothing in another."""

    def __init__(self, app: QApplication, settings: Settings, place: Path) -> None:
        self.windows = Windows(app, settings)
        self.place = place
        frame, empty = self.windows.open([samples()[0].path]), self.windows.open([])
        self.main = frame.trace
        frame.open_model(example_table())
        frame.open_experiment(SPT / "measured_2026-11-21_screen_2p6m2.csv")
        frame.open_experiment(folder() / "examples" / "quicksort")
        for kind in KINDS:
            empty.show_kind(kind)
        self.settle()
        self.main.workbench.set_n(4)
        self.main.workbench.select_phase(1)
        self.main.workbench.annotate("a remark", 0.1)
        self.main.desk.keep_view(1)
        runs = SPT / "measured_2026-11-21_screen_2p6m2.csv"
        self.main.desk.projects.add_files(experiments=(runs,), tables=(example_table(),))
        frame.show_kind("compare")
        self.watched(frame)
        self.settle()
        frame.go_to(self.main)

    def watched(self, frame: Frame) -> WatchPage:
        """A page of a run of two ranks that goes on, and stands still."""
        for rank in (0, 1):
            calls = [(1000 + 10**7 * k, 4 * 10**6, 2, 0, 1 - rank, 7, 8) for k in range(100)]
            written(self.place / "run", calls, rank=rank, state=0, tick1=10**8, monotonic1=10**8)
        frame.watch(self.place / "run", None)
        page = frame.current
        assert isinstance(page, WatchPage)
        end = time.monotonic() + 60
        while page.snapshot.fit is None and time.monotonic() < end:
            wait(10)
        return page

    @property
    def pages(self) -> list[Page]:
        """Of all windows."""
        return [page for frame in self.windows._open for page in frame.all_pages]

    def settle(self) -> None:
        """Until nothing is being computed, and a little longer. TimeoutError: it goes on for minutes."""
        end = time.monotonic() + 300  # where much else runs, kernels are compiled for long
        QApplication.processEvents()
        while busy := [page for page in self.pages if self._busy(page)]:
            if time.monotonic() > end:
                raise TimeoutError(f"{busy} are still busy")
            wait(10)
        for _ in range(5):  # a panel makes what shows results in one turn and fills it in the next
            wait(1)

    @staticmethod
    def _busy(window: QWidget) -> bool:
        bench = getattr(window, "bench", None)
        return bool(getattr(window, "busy", False) or getattr(bench, "busy", False))

    def page(self, kind: type[P], number: int = 0) -> P:
        """One of the pages of a kind, brought to the front."""
        page = [page for page in self.pages if isinstance(page, kind)][number]
        page.frame.go_to(page)
        return page

    def looks(self, *, dialogs: bool = True) -> Iterator[tuple[str, QWidget]]:
        """Every window with each of its pages, panels and steps in front; every dialog."""
        main = self.main
        main.frame.go_to(main)
        for spec in panels():
            main.show_panel(spec.id)
            self.settle()
            yield f"panel {spec.id}", main.frame
        for page in self.pages:
            if page is main:
                continue
            page.frame.go_to(page)
            self.settle()
            yield type(page).__name__, page.frame
            for tabs in page.findChildren(QTabWidget):
                for k in range(tabs.count()) if tabs.isVisible() else ():
                    tabs.setCurrentIndex(k)
                    self.settle()
                    yield f"{type(page).__name__} {tabs.tabText(k)}", page.frame
        for made in (*OPENERS.values(), open_handbook) if dialogs else ():
            dialog = made(self)
            QApplication.processEvents()
            yield type(dialog).__name__, dialog
            for tabs in dialog.findChildren(QTabWidget):
                for k in range(1, tabs.count()):
                    tabs.setCurrentIndex(k)
                    QApplication.processEvents()
                    yield f"{type(dialog).__name__} {tabs.tabText(k)}", dialog
            dialog.close()
            free()

    def close(self) -> None:
        for frame in tuple(self.windows._open):
            frame.close_unasked()
        QApplication.processEvents()


def free() -> None:
    """Free what is to be freed; without an event loop of the program nothing else does."""
    QApplication.processEvents()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def shown(kind: type[W], parent: QWidget) -> W:
    """The widget of a kind that is open above a window."""
    return next(found for found in parent.findChildren(kind) if found.isVisible())


def _by(command: str, kind: type[QDialog], of: type[Page] = TracePage) -> Callable[[Scene], QDialog]:
    """What a command of a window opens."""

    def made(scene: Scene) -> QDialog:
        page = scene.page(of)
        page.actions_by_id[command].trigger()
        return shown(kind, page.frame)

    return made


def _of_several(scene: Scene) -> QDialog:
    ChoiceDialog(("one/run.csv", "two/run.csv"), lambda _: None, scene.main).open()
    return shown(ChoiceDialog, scene.main)


def _columns(scene: Scene) -> QDialog:
    window = scene.page(ModelPage, 1)
    file = scene.place / "unnamed.csv"
    file.write_text("what,where\n1,2\n")
    window.open_path(file)
    scene.settle()
    return shown(AssignColumns, window)


def _part(scene: Scene) -> QDialog:
    scene.main.workbench.select((0.1, 0.2))
    return _by("save_part", PartDialog)(scene)


def _bundle(scene: Scene) -> QDialog:
    scene.main.desk.projects.find_outside(
        lambda found: scene.main.desk._ask_for_files(scene.place / "sent.zip", found)
    )
    scene.settle()
    return shown(BundleDialog, scene.main)


def _systems(scene: Scene) -> QDialog:
    page = scene.page(ComparePage)
    page.choose_systems()
    return shown(SystemsDialog, page.frame)


def _pilot(scene: Scene) -> QDialog:
    window = scene.page(ExperimentPage, 1)
    window.actions_by_id["pilot"].trigger()
    return shown(ErrandDialog, window)


def _of_chart(ask: Callable[[Any], None], kind: type[QDialog]) -> Callable[[Scene], QDialog]:
    """What the menu of a chart opens."""

    def made(scene: Scene) -> QDialog:
        chart = scene.page(ModelPage).plots.scaling
        ask(chart)
        return shown(kind, chart)

    return made


def _trouble(scene: Scene) -> QDialog:
    scene.main.frame.activateWindow()
    made = Trouble("Something went wrong.", "More about it.", "The report.")
    made.open()
    return made


def open_handbook(scene: Scene) -> Handbook:
    scene.main.show_help()
    return handbook()


#: How each dialog of the program is opened.
OPENERS: dict[type[QDialog], Callable[[Scene], QDialog]] = {
    NoteDialog: _by("annotate", NoteDialog),
    RemoteDialog: _by("open_remote", RemoteDialog),
    SystemsDialog: _systems,
    OpenDialog: _by("open_with", OpenDialog),
    ChoiceDialog: _of_several,
    FigureDialog: _by("export_figure", FigureDialog),
    ChartDialog: _of_chart(plot_menu.export, ChartDialog),
    AxisDialog: _of_chart(plot_menu.ask_axes, AxisDialog),
    ReportDialog: _by("report", ReportDialog),
    PartDialog: _part,
    CurvesDialog: _by("curves", CurvesDialog),
    BundleDialog: _bundle,
    Preferences: _by("preferences", Preferences),
    KeyList: _by("keys", KeyList),
    About: _by("about", About),
    Palette: _by("palette", Palette),
    AssignColumns: _columns,
    AddRuns: _by("add_runs", AddRuns, ModelPage),
    ErrandDialog: _pilot,
    NewExperimentDialog: _by("new", NewExperimentDialog, ExperimentPage),
    Trouble: _trouble,
}
#: What others derive from.
BASES = {Dialog, ExportDialog, Page, SheetDialog}


def classes(of: type[QWidget]) -> set[type[QWidget]]:
    """All classes of the program that derive from a class of Qt's, but for those only derived from."""
    found = set()
    for module in pkgutil.walk_packages(desktop.ui.__path__, "desktop.ui."):
        for _, made in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(made, of) and made.__module__.startswith("desktop.") and made not in BASES:
                found.add(made)
    return found

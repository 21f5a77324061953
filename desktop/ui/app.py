"""The program around its windows: application object, font, crash log, start."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QTimer, Signal, qInstallMessageHandler
from PySide6.QtGui import QFileOpenEvent, QFont, QFontDatabase, QIcon
from PySide6.QtWidgets import QApplication, QMessageBox

import desktop
from desktop import resources, stopping
from desktop.data.runs import holds_experiment
from desktop.data.tables import Row, holds_measurements
from desktop.ui.crashes import Session, Watch, crashes, qt_says, start_log, tell_of
from desktop.ui.ending import ending
from desktop.ui.page import Page
from desktop.ui.settings import APPLICATION, ORGANISATION, Settings
from desktop.ui.sizes import stand_beside
from desktop.ui.trace_page import TracePage
from desktop.ui.warming import WarmUp
from desktop.workbench.experimenting import ExperimentBench
from desktop.workbench.keeping import recoveries
from desktop.workbench.modelling import ModelBench

if TYPE_CHECKING:  # loaded with the first window of their kind
    from desktop.ui.experiment_page import ExperimentPage
    from desktop.ui.model_page import ModelPage


class Application(QApplication):
    """Says which file the desktop asks the running program to open, as macOS does; others start it anew."""

    fileAsked = Signal(str)

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QFileOpenEvent) and event.file():
            self.fileAsked.emit(event.file())
            return True
        return super().event(event)


def application() -> QApplication:
    """The one QApplication, with names, style and the bundled font."""
    app = QApplication.instance()
    if isinstance(app, QApplication):
        return app
    QCoreApplication.setOrganizationName(ORGANISATION)
    QCoreApplication.setApplicationName(APPLICATION)
    QCoreApplication.setApplicationVersion(desktop.__version__)
    qInstallMessageHandler(qt_says)
    app = Application(sys.argv[:1])
    app.setApplicationDisplayName("Phasewright")
    app.setDesktopFileName(resources.DESKTOP_ID)
    app.setWindowIcon(QIcon(str(resources.folder() / "icons" / "phasewright.svg")))
    app.setStyle("Fusion")
    load_font(app)
    Garbage(app)
    return app


class Garbage(QObject):
    """Collects Python's garbage in the window's thread, and only there.

    Python collects in whichever thread happens to allocate. A closed window is often part of a cycle, and a
    widget that is freed by a worker's thread aborts the program.
    """

    INTERVAL_MS = 500

    def __init__(self, app: QApplication) -> None:
        super().__init__(app)
        gc.disable()
        self._timer = QTimer(self)
        self._timer.timeout.connect(self.collect)
        self._timer.start(self.INTERVAL_MS)

    def collect(self) -> None:
        """What Python would have collected by now."""
        for generation, (count, limit) in enumerate(zip(gc.get_count(), gc.get_threshold(), strict=True)):
            if limit and count > limit:
                gc.collect(generation)


def load_font(app: QApplication) -> None:
    """Use the bundled font: text and pictures are alike on all machines, and exist where no font is."""
    families: list[str] = []
    for file in sorted((resources.folder() / "fonts").glob("*.ttf")):
        number = QFontDatabase.addApplicationFont(str(file))
        families += QFontDatabase.applicationFontFamilies(number)
    if families:
        font = QFont(families[0])
        font.setPointSizeF(max(9.0, app.font().pointSizeF()))
        app.setFont(font)


class Windows:
    """All windows; a file that does not fit into one gets its own."""

    def __init__(self, app: QApplication, settings: Settings | None = None) -> None:
        self._app = app
        self._settings = settings
        self._open: list[Page] = []

    def open(self, files: Iterable[Path] = ()) -> Page:
        """A window per file; one window if there is none. The first of them."""
        before, paths = len(self._open), list(files)
        if not paths:
            self._make()
        for path in paths:
            if holds_measurements(path):
                self.open_model(path)
            elif holds_experiment(path):
                self.open_experiment(path)
            else:
                self._make().open_path(path)
        return self._open[before]

    def go_on(self, first: Page, *, reopen: bool) -> None:
        """Tell of a crash, offer what it has left, else open the project that was open last."""
        crashed = crashes()
        if crashed:
            tell_of(max(crashed, key=lambda crash: crash.begun)).exec()
        for crash in crashed:
            crash.forget()
        recovered = self.offer_recoveries()
        last = first.settings.last_project
        # What was open at a crash may be why.
        if reopen and not (crashed or recovered) and last is not None and isinstance(first, TracePage):
            first.open_path(last)

    def offer_recoveries(self) -> bool:
        """Ask what to do with what sessions that crashed have left; whether the user goes on with any."""
        recovered = False
        for file, found in recoveries():
            names = [run.trace.title for run in found.workspace.runs]
            what = found.of.name if found.of is not None else ", ".join(names) or "a project"
            when = datetime.fromtimestamp(found.kept).strftime("%Y-%m-%d %H:%M")
            box = QMessageBox(QMessageBox.Icon.Question, "Phasewright", f"Go on with the work on {what}?")
            box.setObjectName("recovery_question")
            box.setInformativeText(
                f"A session ended unexpectedly. What was not saved was kept at {when}; "
                "the saved project is as it was."
            )
            recover = box.addButton("Recover", QMessageBox.ButtonRole.AcceptRole)
            discard = box.addButton("Discard", QMessageBox.ButtonRole.DestructiveRole)
            box.setEscapeButton(box.addButton("Later", QMessageBox.ButtonRole.RejectRole))
            box.exec()
            if box.clickedButton() is recover:
                self._make().desk.keeper.recover(file, found)
                recovered = True
            elif box.clickedButton() is discard:
                file.unlink(missing_ok=True)
        return recovered

    def open_model(self, wanted: Path | ModelBench | tuple[Row, ...] | None = None) -> None:
        """A window for the factor model, with a table of run times, one of a project, or rows if given."""
        from desktop.ui.model_page import ModelPage

        window = ModelPage(self._settings, bench=wanted if isinstance(wanted, ModelBench) else None)
        self._begin(window, wanted)
        if isinstance(wanted, tuple) and wanted:
            window.bench.add_rows(wanted)

    def open_experiment(self, wanted: Path | ExperimentBench | str = "") -> None:
        """A window for experiments: one that is named, one of a project, or the dialog of a command."""
        from desktop.ui.experiment_page import ExperimentPage

        bench = wanted if isinstance(wanted, ExperimentBench) else None
        window = ExperimentPage(self._settings, bench=bench)
        if bench is not None:
            bench.pin_kept()
        self._begin(window, wanted)
        if isinstance(wanted, str) and wanted:
            window.actions_by_id[wanted].trigger()

    def _begin(self, window: ModelPage | ExperimentPage, wanted: object) -> None:
        """Show a window whose work may be kept in a project, with a file if it is to open one."""
        self._add(window)
        window.projectAsked.connect(lambda: self.keep_in_project(window))
        if isinstance(wanted, Path):
            window.open_path(wanted)

    def keep_in_project(self, window: ModelPage | ExperimentPage) -> None:
        """Keep what a window shows in a project that is open, asking for one if there are several."""
        kept = window.bench.kept()
        if kept is None:
            window.statusBar().showMessage(
                "Save the experiment first, so that a project can refer to it", 8000
            )
            return
        homes = [one for one in self._open if isinstance(one, TracePage)]
        names = [one.desk.name for one in homes]
        # Numbers in the order in which the windows were opened tell those of one name apart.
        known = {
            f"{name} ({names[: k + 1].count(name)})" if names.count(name) > 1 else name: one
            for k, (name, one) in enumerate(zip(names, homes, strict=True))
        }

        def take(home: TracePage, name: str) -> None:
            home.desk.take_in(kept, window.bench)
            window.statusBar().showMessage(f"Kept in {name}; save it there", 8000)

        if len(known) > 1:
            from desktop.ui.opening import ChoiceDialog

            question = "Several projects are open. Which one is to keep it?"
            ChoiceDialog(
                "Add to project", question, list(known), lambda name: take(known[name], name), window
            ).open()
        else:
            home = homes[0] if homes else self._make()
            take(home, home.desk.name)

    def open_comparison(self, owner: TracePage) -> None:
        """A window that compares the runs of the project in another."""
        from desktop.ui.compare_page import ComparePage

        window = ComparePage(owner)
        window.modelRequested.connect(self.open_model)
        self._add(window)

    def _make(self) -> TracePage:
        window = TracePage(self._settings)
        window.openRequested.connect(lambda path, options: self._make().open_with(path, options))
        window.modelRequested.connect(self.open_model)
        window.experimentRequested.connect(self.open_experiment)
        window.compareRequested.connect(self.open_comparison)
        window.quitRequested.connect(self.quit)
        self._add(window)
        window.warm_up()
        return window

    def _add(self, window: Page) -> None:
        window.newWindowRequested.connect(self.open)
        window.settingsChanged.connect(lambda: self._follow(window))
        window.closed.connect(lambda: self._open.remove(window))
        window.closed.connect(window.deleteLater)
        if self._open:
            stand_beside(window, self._open[-1])
        self._open.append(window)
        window.show()
        window.keep_on_screen()

    def _follow(self, source: Page) -> None:
        for window in self._open:
            if window is not source:
                window.apply_settings()

    def save_copies_and_quit(self) -> bool:
        """After an error: save copies of what is worth it and close all; False if the user gives that up."""
        for window in self._open:
            if isinstance(window, TracePage) and window.desk.worth_saving and not window.desk.save_copy():
                return False
        self.quit()
        return True

    def keep_now(self) -> None:
        """Keep for recovery what is worth saving: the program is about to be ended."""
        for window in self._open:
            if isinstance(window, TracePage):
                window.desk.keep_now()

    def quit(self) -> None:
        for window in tuple(self._open):
            window.close()


@dataclass(frozen=True)
class Start:
    """How to start. `safe`: settings as at first, nothing recovered or reopened, neither settings nor logs
    written. `notice`: a sentence for the first window."""

    safe: bool = False
    log_level: str = "info"
    log_file: Path | None = None
    notice: str = ""


_AS_USUAL = Start()


def run(files: list[str], how: Start = _AS_USUAL) -> int:
    """Show a window per file (one with the start page if there is none) until all are closed.

    OSError: the file that is to be logged to cannot be written.
    """
    app = application()
    log = start_log(how.log_level, how.log_file, passing=how.safe)
    settings = Settings.passing() if how.safe else Settings()
    windows = Windows(app, settings)
    if isinstance(app, Application):
        app.fileAsked.connect(lambda name: windows.open([Path(name)]))
    watch = Watch(windows.save_copies_and_quit)
    session = None
    if not how.safe:
        with suppress(OSError), stopping.making:  # where nothing can be written, nothing can be told of
            session = Session(log)
            stopping.leave_no(session, session.end)
    with ending(windows.keep_now):
        first = windows.open(Path(name) for name in files)
        notices = [how.notice] if how.notice else []
        if settings.aside is not None:
            notices.append(
                f"The settings could not be read; they are in {settings.aside}, and all is as at first."
            )
        if notices and isinstance(first, TracePage):
            first.notice_bar.show_message(" ".join(notices))
        warming = None
        if not how.safe:
            warming = WarmUp(first)
            QTimer.singleShot(0, lambda: windows.go_on(first, reopen=settings.reopen and not files))
        code = app.exec()
        if warming is not None:
            warming.close()
    watch.close()
    if session is not None:
        session.end()
        stopping.left(session)
    return code

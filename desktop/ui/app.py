"""The program around its windows: application object, font, crash log, start."""

from __future__ import annotations

import gc
import logging
import sys
import threading
from collections.abc import Iterable
from datetime import datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import platformdirs
from PySide6.QtCore import (
    QCoreApplication,
    QMessageLogContext,
    QObject,
    QTimer,
    QtMsgType,
    Signal,
    qInstallMessageHandler,
)
from PySide6.QtGui import QFont, QFontDatabase, QIcon
from PySide6.QtWidgets import QApplication, QMessageBox

import desktop
from desktop import resources
from desktop.data.runs import holds_experiment
from desktop.data.tables import Row, holds_measurements
from desktop.ui.lending import Borrower, Lent
from desktop.ui.program_window import ProgramWindow
from desktop.ui.settings import APPLICATION, ORGANISATION
from desktop.ui.shell import MainWindow
from desktop.workbench.keeping import recoveries

if TYPE_CHECKING:  # loaded with the first window of their kind
    from desktop.ui.experiment_window import ExperimentWindow
    from desktop.ui.model_window import ModelWindow

_log = logging.getLogger("phasewright")


def application() -> QApplication:
    """The one QApplication, with names, style and the bundled font."""
    app = QApplication.instance()
    if isinstance(app, QApplication):
        return app
    QCoreApplication.setOrganizationName(ORGANISATION)
    QCoreApplication.setApplicationName(APPLICATION)
    QCoreApplication.setApplicationVersion(desktop.__version__)
    qInstallMessageHandler(_qt_says)
    app = QApplication(sys.argv[:1])
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


def _qt_says(kind: QtMsgType, _: QMessageLogContext, text: str) -> None:
    """Qt's own messages go to the log; the offscreen platform's remark on every window tells nothing."""
    if "propagateSizeHints" not in text:
        _log.log(logging.DEBUG if kind == QtMsgType.QtDebugMsg else logging.WARNING, "Qt: %s", text)


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

    def __init__(self, app: QApplication) -> None:
        self._app = app
        self._open: list[ProgramWindow] = []

    def open(self, files: Iterable[Path] = ()) -> None:
        """A window per file; one window if there is none."""
        paths = list(files)
        if not paths:
            self._make()
        for path in paths:
            if holds_measurements(path):
                self.open_model(path)
            elif holds_experiment(path):
                self.open_experiment(path)
            else:
                self._make().open_path(path)

    def offer_recoveries(self) -> None:
        """Ask what to do with what sessions that crashed have left."""
        for file, found in recoveries():
            names = [run.trace.name for run in found.workspace.runs]
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
            elif box.clickedButton() is discard:
                file.unlink(missing_ok=True)

    def open_model(self, wanted: Path | Lent | tuple[Row, ...] | None = None) -> None:
        """A window for the factor model, with a table of run times, one of a project, or rows if given."""
        from desktop.ui.model_window import ModelWindow

        window = ModelWindow()
        self._add(window)
        window.projectAsked.connect(lambda: self.keep_in_project(window))
        if isinstance(wanted, Lent):
            Borrower(window.bench, wanted).open()
        elif isinstance(wanted, Path):
            window.open_path(wanted)
        elif wanted:
            window.bench.add_rows(wanted)

    def open_experiment(self, wanted: Path | Lent | str = "") -> None:
        """A window for experiments: one that is named, one of a project, or the dialog of a command."""
        from desktop.ui.experiment_window import ExperimentWindow

        window = ExperimentWindow()
        self._add(window)
        window.projectAsked.connect(lambda: self.keep_in_project(window))
        if isinstance(wanted, Lent):
            Borrower(window.bench, wanted).open()
        elif isinstance(wanted, Path):
            window.open_path(wanted)
        elif wanted:
            window.actions_by_id[wanted].trigger()

    def keep_in_project(self, window: ModelWindow | ExperimentWindow) -> None:
        """Keep what a window shows in the project of the newest window of traces."""
        kept = window.bench.kept()
        if kept is None:
            window.statusBar().showMessage(
                "Save the experiment first, so that a project can refer to it", 8000
            )
            return
        homes = [one for one in self._open if isinstance(one, MainWindow)]
        home = homes[-1] if homes else self._make()
        Borrower(window.bench, home.desk.take_in(kept))
        window.statusBar().showMessage(f"Kept in {home.desk.name}; save it there", 8000)

    def open_comparison(self, owner: MainWindow) -> None:
        """A window that compares the runs of the project in another."""
        from desktop.ui.compare_window import CompareWindow

        window = CompareWindow(owner)
        window.newWindowRequested.connect(self.open)
        window.modelRequested.connect(self.open_model)
        self._add(window)

    def _make(self) -> MainWindow:
        window = MainWindow()
        window.newWindowRequested.connect(self.open)
        window.openRequested.connect(lambda path, options: self._make().open_with(path, options))
        window.modelRequested.connect(self.open_model)
        window.experimentRequested.connect(self.open_experiment)
        window.compareRequested.connect(self.open_comparison)
        window.quitRequested.connect(self.quit)
        self._add(window)
        window.warm_up()
        return window

    def _add(self, window: ProgramWindow) -> None:
        window.settingsChanged.connect(lambda: self._follow(window))
        window.closed.connect(lambda: self._open.remove(window))
        window.closed.connect(window.deleteLater)
        if self._open:
            window.move(self._open[-1].x() + 32, self._open[-1].y() + 32)
        self._open.append(window)
        window.show()

    def _follow(self, source: ProgramWindow) -> None:
        for window in self._open:
            if window is not source:
                window.apply_settings()

    def quit(self) -> None:
        for window in tuple(self._open):
            window.close()


class _Crashes(QObject):
    """Uncaught exceptions go to the log, and once to a dialog that lets the user go on."""

    _happened = Signal(str)

    def __init__(self, log_file: Path) -> None:
        super().__init__()
        self._log_file = log_file
        self._shown = False
        self._happened.connect(self._tell)
        sys.excepthook = self._caught
        threading.excepthook = lambda args: self._caught(args.exc_type, args.exc_value, args.exc_traceback)

    def _caught(
        self, kind: type[BaseException], value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if issubclass(kind, KeyboardInterrupt):
            QCoreApplication.quit()
            return
        _log.error("uncaught", exc_info=(kind, value or kind(), trace))
        self._happened.emit(f"{kind.__name__}: {value}")

    def _tell(self, what: str) -> None:
        if self._shown:
            return
        self._shown = True
        box = QMessageBox(QMessageBox.Icon.Warning, "Phasewright", "Something went wrong inside the program.")
        box.setInformativeText(
            f"{what}\n\nYou can go on; what you see may be incomplete. The log is in {self._log_file}."
        )
        box.exec()
        self._shown = False


def _start_log() -> Path:
    folder = Path(platformdirs.user_log_dir(APPLICATION, appauthor=False))
    file = folder / "phasewright.log"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handler: logging.Handler = RotatingFileHandler(
            file, maxBytes=1 << 20, backupCount=2, encoding="utf-8"
        )
    except OSError:
        handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    _log.addHandler(handler)
    return file


def run(files: list[str]) -> int:
    """Show a window per file (one with the start page if there is none) until all are closed."""
    app = application()
    crashes = _Crashes(_start_log())
    windows = Windows(app)
    windows.open(Path(name) for name in files)
    QTimer.singleShot(0, windows.offer_recoveries)
    code = app.exec()
    sys.excepthook, threading.excepthook = sys.__excepthook__, threading.__excepthook__
    del crashes, windows
    return code

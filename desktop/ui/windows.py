"""The main windows of the program, and its start and end around them."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QMessageBox

from desktop import remote, stopping
from desktop.data.tables import holds_measurements
from desktop.ui.app import Application, application
from desktop.ui.crashes import Session, Watch, crashes, start_log, tell_of
from desktop.ui.ending import ending
from desktop.ui.frame import Frame
from desktop.ui.settings import Settings
from desktop.ui.sizes import stand_beside
from desktop.ui.warming import WarmUp
from desktop.workbench.keeping import recoveries
from desktop.workbench.model import OpenOptions
from desktop.workbench.workbench import Snapshot


class Windows:
    """The main windows, one for each project; a file that does not belong to one gets its own."""

    def __init__(self, app: QApplication, settings: Settings | None = None) -> None:
        self._app = app
        self._settings = settings
        self._open: list[Frame] = []

    def open(self, files: Iterable[Path] = ()) -> Frame:
        """Open a window per file, with its page in front; an empty one without files. Returns the first."""
        from desktop.data.runs import holds_experiment

        first = len(self._open)
        for path in [*files] or (None,):
            trace = self._make().trace
            if path is None or not (holds_measurements(path) or holds_experiment(path)):
                trace.warm_up()
            if path is not None:
                trace.open_path(path)
        return self._open[first]

    def go_on(self, first: Frame, *, reopen: bool) -> None:
        """Report a crash and offer to recover its work, else open the last project."""
        crashed = crashes()
        if crashed:
            tell_of(max(crashed, key=lambda crash: crash.started)).exec()
        for crash in crashed:
            crash.forget()
        recovered = self.offer_recoveries()
        last = first.settings.last_project
        # What was open at a crash may be why.
        if reopen and not (crashed or recovered):
            if last is not None:
                first.trace.open_path(last)
            else:
                first.restore_session(None)

    def offer_recoveries(self) -> bool:
        """Ask what to do with the unsaved work of crashed sessions; whether the user recovers any."""
        recovered = False
        for file, recovery in recoveries():
            names = [run.trace.title for run in recovery.workspace.runs]
            name = recovery.of.name if recovery.of is not None else ", ".join(names) or "a project"
            when = datetime.fromtimestamp(recovery.kept).strftime("%Y-%m-%d %H:%M")
            box = QMessageBox(QMessageBox.Icon.Question, "Phasewright", f"Recover the work on {name}?")
            box.setObjectName("recovery_question")
            box.setInformativeText(
                f"A session ended unexpectedly. Unsaved work was kept at {when}; "
                "the saved project is as it was."
            )
            recover = box.addButton("Recover", QMessageBox.ButtonRole.AcceptRole)
            discard = box.addButton("Discard", QMessageBox.ButtonRole.DestructiveRole)
            box.setEscapeButton(box.addButton("Later", QMessageBox.ButtonRole.RejectRole))
            box.exec()
            if box.clickedButton() is recover:
                self._make().trace.desk.projects.recover(file, recovery)
                recovered = True
            elif box.clickedButton() is discard:
                file.unlink(missing_ok=True)
        return recovered

    def _make(self, *, other_screen: bool = False) -> Frame:
        window = Frame(self._settings)
        window.openRequested.connect(partial(self._open_beside, window))
        window.quitRequested.connect(self.quit)
        window.newWindowRequested.connect(partial(self._open_for, window))
        window.settingsChanged.connect(lambda: self._follow(window))
        for act in (lambda: self._open.remove(window), window.deleteLater, gc.unfreeze):
            window.closed.connect(act)
        if self._open:
            stand_beside(window, self._open[-1], other_screen=other_screen)
        self._open.append(window)
        window.show()
        window.keep_on_screen()
        return window

    def _open_beside(self, asking: Frame, path: Path, options: OpenOptions) -> None:
        """Another trace beside those that are open, on a second screen if there is one."""
        window = self._make(other_screen=True)
        window.trace.open_with(path, options)
        self._close_if_unread(window, asking)

    def _open_for(self, asking: Frame, files: list[Path]) -> None:
        """Windows that another one asks for."""
        count = len(self._open)
        self.open(files)
        for window in self._open[count:] if files else ():
            self._close_if_unread(window, asking)

    def _close_if_unread(self, window: Frame, asking: Frame) -> None:
        """Close a window whose file turns out not to be readable; the one that asked for it says why."""
        bench = window.trace.workbench

        def look(_: Snapshot, new: Snapshot) -> None:
            if new.opening is not None or (new.problem is not None and new.problem.choices):
                return
            bench.unsubscribe(look)
            if new.document is None and new.problem is not None and asking in self._open:
                asking.trace.workbench.report(new.problem)
                QTimer.singleShot(0, window, window.close_unasked)

        bench.subscribe(look)
        look(bench.snapshot, bench.snapshot)

    def _follow(self, source: Frame) -> None:
        for window in self._open:
            if window is not source:
                window.apply_settings()

    def save_copies_and_quit(self) -> bool:
        """After an error: save copies of unsaved work and close all; False if the user cancels that."""
        for window in self._open:
            if window.trace.desk.worth_saving and not window.trace.desk.save_copy():
                return False
        self.quit()
        return True

    def keep_now(self) -> None:
        """Keep unsaved work for recovery, as the program is about to be ended."""
        for window in self._open:
            window.trace.desk.keep_now()

    def quit(self) -> None:
        """Close all windows; one that asks about unsaved work may stay."""
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


def run(
    files: list[str], how: Start = _AS_USUAL, *, watch: tuple[Path, list[str] | None] | None = None
) -> int:
    """Show a window per file (one with the start page if there is none) until all are closed. `watch`: a
    folder to follow, and the command that is recorded into it, if we run it.

    OSError: the file that is to be logged to cannot be written.
    """
    app = application()
    log = start_log(how.log_level, how.log_file, passing=how.safe)
    settings = Settings.passing() if how.safe else Settings()
    windows = Windows(app, settings)
    if isinstance(app, Application):
        app.fileAsked.connect(lambda name: windows.open([Path(name)]))
    crash_watch = Watch(windows.save_copies_and_quit)
    session = None
    if not how.safe:
        with suppress(OSError), stopping.making:  # where nothing can be written, nothing can be told of
            session = Session(log)
            stopping.leave_no(session, session.end)
    with ending(windows.keep_now):
        remote.how.patient = True
        first = windows.open(remote.named(name) for name in files)
        if watch is not None:
            first.watch(*watch)
        notices = [how.notice] if how.notice else []
        if settings.aside is not None:
            notices.append(
                f"The settings could not be read; they are in {settings.aside}, defaults are used."
            )
        if notices:
            first.tell("start", " ".join(notices))
        warming = None
        if not how.safe:
            warming = WarmUp(first)
            QTimer.singleShot(
                0, lambda: windows.go_on(first, reopen=settings.reopen and not files and watch is None)
            )
        code = app.exec()
        if warming is not None:
            warming.close()
    crash_watch.close()
    if session is not None:
        session.end()
        stopping.left(session)
    return code

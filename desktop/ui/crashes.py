"""Errors of the program itself, and crashes: the user's work is kept, a report offered.

An uncaught exception, wherever it is raised, is logged as critical; each such record opens a dialog, once. A
crash of the interpreter writes its stack into a file of this session; the next start reports files whose
session has ended. Nothing is sent anywhere.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from logging.handlers import RotatingFileHandler
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import IO

from PySide6.QtCore import QLockFile, QMessageLogContext, QObject, QSize, Qt, QtMsgType, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QDialogButtonBox, QLabel, QPlainTextEdit
from shiboken6 import isValid

from desktop.ui.about import versions_text
from desktop.ui.dialogs import Dialog
from desktop.ui.pages import lay_out, set_up
from desktop.ui.settings import log_folder
from desktop.ui.sizes import fitting

_log = logging.getLogger("phasewright")
_FORMAT = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
LOG = "phasewright.log"
_BEGIN = "INFO started"  # how the log of a session begins
_QT_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.ERROR,  # after which Qt ends the program
}
#: Bytes of a log before the next one is begun, and how many former ones are kept.
LOG_SIZE, LOGS = 1 << 20, 2
#: Lines of the log in a report, and how often one and the same error is logged.
LINES, REPEATS = 60, 20


# ---- the log


def start_log(level: str = "info", file: Path | None = None, *, passing: bool = False) -> Path | None:
    """Log to `file`, else into the log folder; if `passing`, or where that cannot be, to standard error.

    OSError: `file` cannot be written.
    """
    place = file or (None if passing else log_folder() / LOG)
    handler: logging.Handler = logging.StreamHandler()
    if file is not None:
        handler = logging.FileHandler(file, encoding="utf-8")
    elif place is not None:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            handler = _Rotating(place, maxBytes=LOG_SIZE, backupCount=LOGS, encoding="utf-8")
        except OSError:
            place = None
    handler.setFormatter(_FORMAT)
    _log.addHandler(handler)
    _log.setLevel(level.upper())
    _log.info("started\n%s", versions_text())
    return place


class _Rotating(RotatingFileHandler):
    """Goes on in the same file where it cannot be renamed, as on Windows while another window has it open."""

    def doRollover(self) -> None:
        with suppress(OSError):
            super().doRollover()


def qt_says(kind: QtMsgType, _: QMessageLogContext, text: str) -> None:
    """Log Qt's own messages, but for the offscreen platform's useless one on every window."""
    if "propagateSizeHints" not in text:
        _log.log(_QT_LEVELS.get(kind, logging.WARNING), "Qt: %s", text)


class _Last(logging.Handler):
    """The last lines, wherever the log goes."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(_FORMAT)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines = [*self.lines, *self.format(record).splitlines()][-LINES:]


def report(event: str, lines: list[str]) -> str:
    """The text of a report: versions, the event, the last lines of the log; the home folder as ``~``."""
    text = "\n\n".join((versions_text(), event.strip(), "Last lines of the log:\n" + "\n".join(lines)))
    home = os.path.expanduser("~")  # "~" where it is unknown, "/" of some services
    return text.replace(home, "~") if len(home) > 1 else text


# ---- crashes


@dataclass(frozen=True)
class Crash:
    """A session that has crashed; `started` and `ended` in seconds since 1970, `log`: its log file, `stack`:
    what it wrote when it crashed."""

    file: Path
    started: float
    ended: float
    log: str
    stack: str

    def report(self) -> str:
        """The text of a report: versions, the stack, and the last lines that the session logged."""
        started = datetime.fromtimestamp(self.started).strftime("%Y-%m-%d %H:%M")
        ended = datetime.fromtimestamp(self.ended).strftime("%Y-%m-%d %H:%M:%S,%f")
        lines: list[str] = []
        with suppress(OSError, ValueError):
            lines = Path(self.log).read_text(encoding="utf-8", errors="replace").splitlines()
        # The session that asks, or another one, may have gone on in the same file.
        session = takewhile(lambda line: not (line.endswith(_BEGIN) and line > ended), lines)
        return report(f"A session begun at {started} has crashed.\n{self.stack}", [*session][-LINES:])

    def forget(self) -> None:
        """Delete the session's file and its lock."""
        for file in (self.file, _lock_of(self.file)):
            with suppress(OSError):
                file.unlink(missing_ok=True)


class Session:
    """This run of the program, so that the next one knows whether it has crashed. `log`: where it logs."""

    def __init__(self, log: Path | None = None, folder: Path | None = None) -> None:
        folder = folder or log_folder()
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / f"session-{token_hex(4)}.crash"
        self._lock = set_up(QLockFile(str(_lock_of(self._path))), staleLockTime=0)
        self._lock.tryLock(0)
        self._file: IO[str] = self._path.open("w", encoding="utf-8")
        json.dump({"begun": datetime.now().timestamp(), "log": str(log or "")}, self._file)
        self._file.write("\n")
        self._file.flush()
        faulthandler.enable(self._file)

    def end(self) -> None:
        """End without a crash: the file is deleted, so that no later session reports it."""
        faulthandler.disable()
        self._file.close()
        self._path.unlink(missing_ok=True)
        self._lock.unlock()


def _lock_of(file: Path) -> Path:
    return file.with_suffix(".lock")


def crashes(folder: Path | None = None) -> list[Crash]:
    """Sessions that have crashed and were not reported yet. Those that were killed left nothing to report."""
    crashed = []
    for file in sorted((folder or log_folder()).glob("session-*.crash")):
        lock = set_up(QLockFile(str(_lock_of(file))), staleLockTime=0)
        if not lock.tryLock(0):
            continue  # it is running
        lock.unlock()
        try:
            head, _, stack = file.read_text(encoding="utf-8", errors="replace").partition("\n")
            header, ended = json.loads(head), file.stat().st_mtime
            crash = Crash(file, float(header["begun"]), ended, str(header["log"]), stack.strip())
        except (OSError, ValueError, LookupError, TypeError):
            crash = Crash(file, 0.0, 0.0, "", "")
        if crash.stack:
            crashed.append(crash)
        else:
            crash.forget()
    return crashed


# ---- errors


class Watch(QObject):
    """Logs uncaught exceptions of all threads, and shows a dialog on what is logged as critical.

    `keep` saves a copy of the user's work and ends the program; it says whether that was done.
    """

    _happened = Signal(str, str)

    def __init__(self, keep: Callable[[], bool]) -> None:
        super().__init__()
        self._keep = keep
        self._seen: dict[str, int] = {}
        self._last = _Last()
        self._teller = _Teller(self._happened.emit)
        self.dialog: Trouble | None = None
        self._happened.connect(self._tell, Qt.ConnectionType.QueuedConnection)
        for handler in (self._last, self._teller):
            _log.addHandler(handler)
        sys.excepthook = self._caught
        threading.excepthook = self._caught_in_thread
        sys.unraisablehook = lambda args: self._caught(args.exc_type, args.exc_value, args.exc_traceback)

    def close(self) -> None:
        """Restore the hooks and handlers."""
        sys.excepthook, threading.excepthook = sys.__excepthook__, threading.__excepthook__
        sys.unraisablehook = sys.__unraisablehook__
        for handler in (self._last, self._teller):
            _log.removeHandler(handler)

    def _caught(
        self, kind: type[BaseException], value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if issubclass(kind, KeyboardInterrupt | SystemExit):
            QApplication.quit()
            return
        place = kind.__name__
        for frame, line in deque(traceback.walk_tb(trace), 1):
            place += f" {frame.f_code.co_filename}:{line}"
        times = self._seen[place] = self._seen.get(place, 0) + 1
        # An error in painting is raised again with every picture.
        if times <= REPEATS:
            level = logging.CRITICAL if times == 1 else logging.ERROR
            _log.log(level, "uncaught, %s", place, exc_info=(kind, value or kind(), trace))

    def _caught_in_thread(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_type is not SystemExit:  # which ends the thread and nothing else
            self._caught(args.exc_type, args.exc_value, args.exc_traceback)

    def _tell(self, sentence: str, details: str) -> None:
        if self._open:
            return
        self.dialog = Trouble(
            "Something went wrong inside the program.",
            f"{sentence}\n\nYou can go on, but what you see may be incomplete. Nothing has "
            "been sent anywhere; the report may name files, read it before you give it to somebody.",
            report(details, self._last.lines),
        )
        role = QDialogButtonBox.ButtonRole.ActionRole
        self.dialog.add("&Save a copy and quit", role, clicked=self._save)
        self.dialog.finished.connect(lambda: setattr(self, "dialog", None))
        self.dialog.open()

    @property
    def _open(self) -> bool:
        """Whether the dialog is open; it is freed with its parent window."""
        return self.dialog is not None and isValid(self.dialog)

    def _save(self) -> None:
        if self._keep() and self._open and self.dialog is not None:
            self.dialog.accept()


class _Teller(logging.Handler):
    """Calls `tell` with a sentence and the traceback of every critical record."""

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        super().__init__(logging.CRITICAL)
        self._tell = tell
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        sentence = record.getMessage() if error is None else type(error).__name__
        with suppress(Exception):  # an error may fail to say what it is
            sentence += "" if error is None else f": {error}"
        self._tell(sentence[:500], self.format(record))


class Trouble(Dialog):
    """A sentence on what happened, the folded report, and buttons for what can be done."""

    def __init__(self, sentence: str, details: str, report_text: str) -> None:
        super().__init__(QApplication.activeWindow(), "trouble", "Phasewright")
        head = set_up(QLabel(f"<b>{sentence}</b>"), wordWrap=True)
        body = set_up(QLabel(details), textFormat=Qt.TextFormat.PlainText, wordWrap=True)
        self.report = set_up(
            QPlainTextEdit(report_text), readOnly=True, accessibleName="Report", visible=False,
            lineWrapMode=QPlainTextEdit.LineWrapMode.NoWrap,
        )  # fmt: skip
        self._buttons = set_up(QDialogButtonBox(), accepted=self.accept)
        role = QDialogButtonBox.ButtonRole
        self.add("&Continue", role.AcceptRole, default=True)
        copy = lambda: QGuiApplication.clipboard().setText(report_text)  # noqa: E731 - handed on
        self.add("Copy &report", role.ActionRole, clicked=copy)
        self.add("S&how report", role.ActionRole, checkable=True, toggled=self._unfold)
        lay_out(self, head, body, (self.report, 1), self._buttons)
        self.resize(34 * self.fontMetrics().height(), self.sizeHint().height())

    def add(self, text: str, role: QDialogButtonBox.ButtonRole, **settings: object) -> None:
        """A button, set up."""
        set_up(self._buttons.addButton(text, role), autoDefault=False, **settings)

    def _unfold(self, visible: bool) -> None:
        self.report.setVisible(visible)
        self.resize(fitting(self, 34, 40) if visible else QSize(self.width(), self.sizeHint().height()))


def tell_of(crash: Crash) -> Trouble:
    """The dialog on a session that has crashed."""
    return Trouble(
        "The last session ended in a crash.",
        "Unsaved work is kept every two minutes; if there is any, you are asked next whether to recover "
        "it. The report says where in the program the crash was. Nothing has been sent anywhere.",
        crash.report(),
    )

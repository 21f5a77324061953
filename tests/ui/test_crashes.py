"""Errors of the program and crashes: told once, work kept, a report offered."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import shiboken6
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QApplication, QDialog, QPushButton
from pytestqt.qtbot import QtBot

from desktop.ui import crashes
from desktop.ui.app import load_font
from desktop.ui.crashes import Session, Trouble, Watch, start_log
from desktop.workbench.jobs import Lane

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "log.txt"
    logger = logging.getLogger("phasewright")
    before, level = list(logger.handlers), logger.level
    start_log("info", file)
    yield file
    for handler in logger.handlers[:]:
        if handler not in before:
            logger.removeHandler(handler)
            handler.close()
    logger.setLevel(level)


class ProjectStore:
    """Stands for the windows: counts how often a copy was wanted."""

    def __init__(self) -> None:
        self.asked, self.answer = 0, True

    def __call__(self) -> bool:
        self.asked += 1
        return self.answer


@pytest.fixture
def projects() -> ProjectStore:
    return ProjectStore()


@pytest.fixture
def watch(qapp: QApplication, log: Path, projects: ProjectStore) -> Iterator[Watch]:
    load_font(qapp)
    made = Watch(projects)
    yield made
    if made.dialog is not None:
        made.dialog.accept()
    made.close()


class Sender(QObject):
    sent = Signal()


def fail() -> None:
    raise RuntimeError("the hand of the test")


def told(qtbot: QtBot, watch: Watch) -> Trouble:
    qtbot.waitUntil(lambda: watch.dialog is not None, timeout=10_000)
    assert watch.dialog is not None and watch.dialog.isVisible()
    return watch.dialog


def button(dialog: Trouble, text: str) -> QPushButton:
    return next(b for b in dialog.findChildren(QPushButton) if b.text().replace("&", "") == text)


def test_an_exception_in_a_slot_is_told_once(qtbot: QtBot, watch: Watch, log: Path) -> None:
    sender = Sender()
    sender.sent.connect(fail)
    # Not through pytest-qt, which would take the exception for its own.
    sys.excepthook = watch._caught
    sender.sent.emit()
    dialog = told(qtbot, watch)
    report = dialog.report.toPlainText()
    assert "RuntimeError: the hand of the test" in report and "in fail" in report, "type, message and place"
    assert "Phasewright: " in report and "numpy: " in report and "CRITICAL" in report, "versions and log"
    button(dialog, "Copy report").click()
    assert QApplication.clipboard().text() == report
    assert not dialog.report.isVisible()
    button(dialog, "Show report").click()
    assert dialog.report.isVisible()
    button(dialog, "Continue").click()
    qtbot.waitUntil(lambda: watch.dialog is None)
    for _ in range(50):
        sender.sent.emit()
    qtbot.wait(50)
    assert watch.dialog is None, "what was told is not told again"
    assert log.read_text().count("the hand of the test") < 50, "nor does it fill the log"


def test_an_exception_in_a_thread_is_told(qtbot: QtBot, watch: Watch, log: Path) -> None:
    thread = threading.Thread(target=fail)
    # pytest watches threads too.
    threading.excepthook = watch._caught_in_thread
    thread.start()
    thread.join()
    assert "the hand of the test" in told(qtbot, watch).report.toPlainText()
    assert "CRITICAL" in log.read_text()


def test_an_error_of_the_program_in_a_job_is_told_and_one_of_the_user_is_not(
    qtbot: QtBot, watch: Watch, log: Path
) -> None:
    answers: list[BaseException] = []

    def work(error: Exception) -> None:
        lane = Lane("test", latest=False)

        def job(_: object) -> None:
            raise error

        lane.submit("Reading secret.trf", job, lambda _: None, answers.append)
        lane.close()

    work(OSError("secret.trf cannot be read"))
    qtbot.wait(50)
    assert watch.dialog is None and len(answers) <= 1
    work(ZeroDivisionError("never"))
    report = told(qtbot, watch).report.toPlainText()
    assert "ZeroDivisionError" in report and "secret" not in report, "no names of traces"
    assert "secret" not in log.read_text()


def test_a_copy_is_saved_before_quitting_or_the_dialog_stays(
    qtbot: QtBot, watch: Watch, projects: ProjectStore
) -> None:
    logging.getLogger("phasewright").critical("a test")
    dialog = told(qtbot, watch)
    projects.answer = False
    button(dialog, "Save a copy and quit").click()
    assert projects.asked == 1 and watch.dialog is dialog and dialog.isVisible()
    projects.answer = True
    button(dialog, "Save a copy and quit").click()
    qtbot.waitUntil(lambda: watch.dialog is None)
    assert projects.asked == 2


class _Speechless(RuntimeError):
    def __str__(self) -> str:
        raise ValueError("not even this")


def test_whatever_an_error_is_a_storm_of_it_is_told_once(qtbot: QtBot, watch: Watch, log: Path) -> None:
    def deep(n: int) -> None:
        if n:
            deep(n - 1)
        raise _Speechless

    for _ in range(1000):
        try:
            deep(100)
        except _Speechless as error:
            watch._caught(type(error), error, error.__traceback__)
    assert "_Speechless" in told(qtbot, watch).report.toPlainText()
    assert log.read_text().count("uncaught") == crashes.REPEATS


def test_the_dialog_may_go_with_its_window(qtbot: QtBot, watch: Watch, projects: ProjectStore) -> None:
    above = QDialog()
    logging.getLogger("phasewright").critical("one")
    dialog = told(qtbot, watch)
    dialog.setParent(above, dialog.windowFlags())
    shiboken6.delete(above)
    assert not shiboken6.isValid(dialog)
    logging.getLogger("phasewright").critical("two")
    qtbot.waitUntil(lambda: watch.dialog is not dialog)
    assert "two" in told(qtbot, watch).report.toPlainText()


def test_a_thread_may_end_itself(qtbot: QtBot, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[str] = []
    monkeypatch.setattr(QApplication, "quit", lambda: left.append("the program"))
    threading.excepthook = watch._caught_in_thread  # pytest watches threads too
    thread = threading.Thread(target=sys.exit)
    thread.start()
    thread.join()
    qtbot.wait(20)
    assert left == [] and watch.dialog is None


def test_a_log_that_cannot_be_renamed_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("another program has it open")

    monkeypatch.setattr(os, "rename", refuse)
    file = tmp_path / "log.txt"
    handler = crashes._Rotating(file, maxBytes=100, backupCount=2, encoding="utf-8")
    for k in range(20):
        handler.emit(logging.LogRecord("", logging.INFO, "", 0, f"line {k} of the log", None, None))
    handler.close()
    assert file.read_text().splitlines() == [f"line {k} of the log" for k in range(20)]
    assert capsys.readouterr().err == ""


def test_the_end_of_the_log_is_that_of_the_session_that_crashed(tmp_path: Path) -> None:
    file, log = tmp_path / "session-1.crash", tmp_path / "log.txt"
    file.write_text(json.dumps({"begun": time.time() - 60, "log": str(log)}) + "\nFatal error: here\n")

    def line(seconds: float, text: str) -> str:
        at = time.localtime(file.stat().st_mtime + seconds)
        return f"{time.strftime('%Y-%m-%d %H:%M:%S', at)},000 INFO {text}\n"

    before = line(-3600, "started") + line(-60, "started") + line(-1, "the last step")
    for after in ("", line(5, "started") + line(6, "another session")):
        log.write_text(before + after)
        (crash,) = crashes.crashes(tmp_path)
        assert "Fatal error: here" in crash.report()
        assert crash.report().rstrip().endswith("the last step"), "whether or not another has gone on there"


def run(code: str, home: Path) -> subprocess.CompletedProcess[str]:
    """`code` in a process of its own, whose home is `home`."""
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, env=environment(home), cwd=ROOT
    )


def environment(home: Path) -> dict[str, str]:
    places = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("STATE", "CONFIG", "DATA")}
    # Kernels are compiled once for all tests: the cache stays.
    return {**os.environ, "HOME": str(home), "QT_QPA_PLATFORM": "offscreen", **places}


CRASH = """
import faulthandler
from PySide6.QtCore import QTimer
from desktop.data import warming
from desktop.ui import app, windows
warming.needed = lambda: False  # a process beside each would take most of the time
def deep_inside():
    faulthandler._sigsegv()
app.application()
QTimer.singleShot(300, deep_inside)
windows.run([])
"""
NEXT = """
import json, sys
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QLabel
from desktop.data import warming
from desktop.ui import app, windows
from desktop.ui.crashes import Trouble
warming.needed = lambda: False
found = []
def look():
    dialog = next((w for w in QApplication.topLevelWidgets() if isinstance(w, Trouble)), None)
    found.append(None if dialog is None else [
        " ".join(label.text() for label in dialog.findChildren(QLabel)), dialog.report.toPlainText()])
    if dialog is not None:
        dialog.accept()
    QTimer.singleShot(0, QApplication.closeAllWindows)
app.application()
QTimer.singleShot(1500, look)
code = windows.run([], windows.Start(safe="--safe" in sys.argv))
print(json.dumps(found[0]))
"""


def safe_mode_writes_nothing(place: Path) -> None:
    """Nor does it tell of a crash, which the next usual start tells of."""
    config = place / "config" / "Phasewright"
    config.mkdir(parents=True, exist_ok=True)
    for file in config.iterdir():
        file.unlink()
    (config / "phasewright.ini").write_text("[General]\ntheme=dark\n")
    before = {file: file.stat().st_mtime_ns for file in place.rglob("*") if file.is_file()}
    safe = subprocess.run(
        [sys.executable, "-c", NEXT, "--safe"], capture_output=True, text=True, timeout=60,
        env=environment(place), cwd=ROOT,
    )  # fmt: skip
    assert safe.returncode == 0 and json.loads(safe.stdout) is None, safe.stderr
    after = {file: file.stat().st_mtime_ns for file in place.rglob("*") if file.is_file()}
    assert after == before, "nothing was written"


def test_the_start_after_a_crash_tells_of_it_once(tmp_path: Path) -> None:
    died = run(CRASH, tmp_path)
    assert died.returncode in (-11, 139), died.stderr
    left = list((tmp_path / "state").rglob("session-*.crash"))
    assert len(left) == 1
    safe_mode_writes_nothing(tmp_path)
    after = run(NEXT, tmp_path)
    assert after.returncode == 0, after.stderr
    words, report = json.loads(after.stdout)
    assert "ended in a crash" in words and "sent" in words
    assert "Segmentation fault" in report and "deep_inside" in report, "where it was"
    log = report.partition("Last lines of the log:")[2]
    assert log.count("started") == 1 and "uncaught" not in log, (
        "the end of that session's log, not of this one's"
    )
    assert not list((tmp_path / "state").rglob("session-*")), "told of once, and itself ended well"
    assert json.loads(run(NEXT, tmp_path).stdout) is None


def test_a_running_session_and_one_that_was_killed_are_no_crash(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    was_enabled = crashes.faulthandler.is_enabled()
    session = Session(folder=folder)
    try:
        assert crashes.crashes(folder) == [] and len(list(folder.glob("*.crash"))) == 1
    finally:
        session.end()
        if was_enabled:
            crashes.faulthandler.enable(sys.__stderr__)
    assert list(folder.iterdir()) == []
    code = "import sys, time; from pathlib import Path; from desktop.ui.crashes import Session; "
    code += "s = Session(folder=Path(sys.argv[1])); print(flush=True); time.sleep(60)"
    killed = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, cwd=ROOT, env=environment(tmp_path)
    )
    assert killed.stdout is not None and killed.stdout.readline()
    killed.kill()
    killed.wait()
    killed.stdout.close()
    time.sleep(0.05)
    assert crashes.crashes(folder) == [], "it says nothing that could be told"
    assert list(folder.iterdir()) == []

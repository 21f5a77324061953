"""Requests to end from outside: what was not saved is kept at once, and the program ends as usual."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from desktop.workbench.keeping import recoveries
from desktop.workbench.model import Recovery

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows ends a process without asking it")

#: A window that says when its trace is open and remarked upon, and then waits, if asked so in a dialog.
WINDOW = """
import sys
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QMessageBox
from desktop.data import warming
from desktop.ui import app, windows
from desktop.ui.frame import Frame
warming.needed = lambda: False  # a process beside each would take most of the time
def look():
    frame = next(w for w in QApplication.topLevelWidgets() if isinstance(w, Frame))
    window = frame.trace
    if window.workbench.snapshot.run is None:
        QTimer.singleShot(20, look)
        return
    if "remark" in sys.argv:
        window.workbench.annotate("not saved", 0.5)
    print("ready", flush=True)
    if "dialog" in sys.argv:
        QMessageBox(window).exec()
app.application()
QTimer.singleShot(0, look)
QTimer.singleShot(180_000, QApplication.quit)
windows.run([sys.argv[1]])
"""


def ended_by(number: int, home: Path, *how: str, ignored: bool = False) -> tuple[int, str, list[Recovery]]:
    """How the process ended, what it said, and what it keeps for the next start; it leaves nothing else."""
    trace = home / "curve.txt"
    trace.write_text("0 1\n1 4\n2 2\n3 0\n")
    places = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("STATE", "CONFIG", "DATA")}
    # The cache of compiled kernels is that of all tests.
    environment = {**os.environ, "HOME": str(home), "QT_QPA_PLATFORM": "offscreen", **places}
    # Whoever runs the tests in the background has it ignored, and the child would inherit that.
    taken = signal.SIG_IGN if ignored else signal.SIG_DFL
    child = subprocess.Popen(
        [sys.executable, "-c", WINDOW, str(trace), *how],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment,
        preexec_fn=lambda: signal.signal(number, taken),
    )  # fmt: skip
    with child:
        assert child.stdout is not None and child.stderr is not None
        try:
            assert child.stdout.readline() == "ready\n"
            child.send_signal(number)
            # A kernel that is being compiled is waited for, long where much else runs.
            code = child.wait(2 if ignored else 120)
        except subprocess.TimeoutExpired:
            code = 0
        finally:
            child.kill()
        said = child.stderr.read()
    state = home / "state" / "phasewright"
    if not ignored:
        assert not [*state.rglob("session-*"), *home.rglob("*.part"), *home.rglob("*.work")]
    return code, said, [found for _, found in recoveries(state / "recovery")]


@pytest.mark.parametrize(
    ("number", "how"), [(signal.SIGTERM, "dialog"), (signal.SIGHUP, ""), (signal.SIGINT, "")]
)
def test_what_was_not_saved_is_kept_at_once(tmp_path: Path, number: int, how: str) -> None:
    code, said, (left,) = ended_by(number, tmp_path, "remark", how)
    assert code == 128 + number and said == ""
    (run,) = left.workspace.runs
    assert [note.text for note in run.project.annotations] == ["not saved"]
    assert run.trace.path == tmp_path / "curve.txt" and run.project.view.span is not None


def test_nothing_is_left_of_what_was_not_worth_it(tmp_path: Path) -> None:
    assert ended_by(signal.SIGINT, tmp_path) == (130, "", [])


def test_a_request_that_is_ignored_stays_so(tmp_path: Path) -> None:
    code, *_ = ended_by(signal.SIGHUP, tmp_path, "remark", ignored=True)
    assert code == 0, "it went on"

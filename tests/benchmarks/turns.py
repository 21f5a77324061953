"""What the window's thread does at a stretch: ``python -m tests.benchmarks.turns [TRACE ...] [--rounds N]``.

A user's session in the real window and its event loop: opening, dragging, each page and each panel for the
first and the second time, looks, steps back, files, closing. Prints a Markdown table of the longest turn of
the event loop in each, in milliseconds of the thread's own processor time, the least of all rounds (each is a
process of its own), for the bundled traces or TRACE, a file or a number of events of a ring that is made
first. Bar: 50 ms; what is over it is in bold, and what is under 30 left out but for ``--all``.
``--profile WORDS`` prints which functions take how long in the steps of that name.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
BAR, SEEN = 50.0, 30.0
#: Seconds without an event of ours after which a step has ended: timers of the window are shorter.
REST = 0.4


# ---- in the process of a session


class Turns:
    """The longest turn of this thread's event loop since the last look."""

    def __init__(self) -> None:
        from PySide6.QtCore import QAbstractEventDispatcher

        self._began, self._longest = time.thread_time(), 0.0
        dispatcher = QAbstractEventDispatcher.instance()
        # Of the two dispatchers on Linux, one waits and works between the two signals, the other works after
        # the one and waits after the other.
        dispatcher.awake.connect(self._end)
        dispatcher.aboutToBlock.connect(self._end)

    def _end(self) -> None:
        now = time.thread_time()
        self._longest, self._began = max(self._longest, now - self._began), now

    def longest(self) -> float:
        """Milliseconds of the thread's processor time."""
        longest, self._longest = self._longest, 0.0
        return 1e3 * longest


class Session:
    """The program's windows, and what its user does."""

    def __init__(self, folder: Path, profiled: str) -> None:
        from PySide6.QtCore import QSettings

        from desktop.ui.app import application
        from desktop.ui.settings import Settings
        from desktop.ui.windows import Windows

        app = application()
        self.folder, self._profiled = folder, profiled
        settings = Settings(QSettings(str(folder / "settings.ini"), QSettings.Format.IniFormat))
        settings.theme = "light"
        self.windows, self.turns = Windows(app, settings), Turns()

    def step(self, name: str, act: Callable[[], object]) -> None:
        """Do it in a turn of the event loop, wait until all that follows has been done, and tell the
        longest."""
        from cProfile import Profile
        from pstats import Stats

        from PySide6.QtCore import QTimer

        profile = Profile(time.thread_time) if self._profiled and self._profiled in name else None
        self.turns.longest()
        if profile is not None:
            profile.enable()
        QTimer.singleShot(0, act)
        self.settle()
        if profile is not None:
            profile.disable()
            print(f"\n{name}", file=sys.stderr)
            Stats(profile, stream=sys.stderr).sort_stats("cumulative").print_stats(60)
        print(json.dumps([name, self.turns.longest()]), flush=True)

    def settle(self) -> None:
        from PySide6.QtCore import QEventLoop, QTimer

        loop, rest = QEventLoop(), time.monotonic() + REST
        beat = QTimer(interval=20)
        beat.start()
        while time.monotonic() < rest:
            if any(busy(page) for frame in self.windows._open for page in frame.all_pages):
                rest = time.monotonic() + REST
            loop.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)


def busy(page: Any) -> bool:
    """Whether a page, or what it shows, still waits for a result."""
    holders = (page, *(getattr(page, name, None) for name in ("workbench", "bench", "modeller")))
    return any(getattr(holder, "busy", False) for holder in holders)


def session(trace: Path, profiled: str) -> None:
    """All steps, one after the other."""
    from desktop import resources
    from desktop.ui.commands import KINDS
    from desktop.ui.panels import panels
    from desktop.ui.warming import WarmUp
    from desktop.workbench.model import MODELS

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        for place in ("CACHE", "STATE", "DATA", "CONFIG"):
            os.environ[f"XDG_{place}_HOME"] = f"{name}/{place}"
        at = Session(Path(name), profiled)
        step, windows = at.step, at.windows
        step("first window", lambda: windows.open([]))
        frame: Any = windows._open[0]
        warming = WarmUp(frame)  # as `desktop.ui.windows.run` makes one
        page: Any = frame.trace
        bench, view = page.workbench, page.curve_view
        step("open the trace", lambda: page.open_path(trace))
        step("load what other pages need", warming.begin)
        if bench.snapshot.problem is not None:
            raise SystemExit(bench.snapshot.problem.sentence)
        for k, n in enumerate((2, 3, 4, 5, 12, 4)):
            step(f"n = {n}{' again' if k > 4 else ''}", lambda n=n: bench.set_n(n))
        for model in MODELS:
            step(f"model {model}", lambda model=model: bench.set_model(model))
        bench.set_model("mixed")
        at.settle()
        step("select a phase", lambda: bench.select_phase(1))
        step("select another", lambda: bench.select_phase(2))
        nav = view.navigation
        long = nav.end - nav.start
        step("zoom", lambda: view.zoom_to(nav.start + 0.3 * long, nav.start + 0.5 * long))
        step("zoom by key", lambda: view.zoom(2.0))
        step("pan", lambda: view.pan(0.25))
        step("whole run", view.show_all)
        step("critical path", lambda: page.show_critical_path(True))
        step("no critical path", lambda: page.show_critical_path(False))
        for again in ("first", "second"):
            for spec in panels():
                step(f"panel {spec.id}, {again} time", lambda spec=spec: page.show_panel(spec.id))
        step("panels phases, table", lambda: (page.show_panel("phases"), page.show_panel("table")))
        looks(step, frame, "trace page")
        for again in ("first", "second"):
            for kind in [*KINDS, "trace"]:
                step(f"page {kind}, {again} time", lambda kind=kind: frame.show_kind(kind))
        step("open table of run times", lambda: frame.open_model(resources.example_table()))
        tabs(step, frame)
        runs = ROOT / "tests" / "data" / "spt" / "measured_2026-11-21_screen_2p6m2.csv"
        step("open table of trials", lambda: frame.open_experiment(runs))
        tabs(step, frame)
        step("open experiment", lambda: frame.open_experiment(resources.folder() / "examples" / "quicksort"))
        tabs(step, frame)
        step("page trace", lambda: frame.go_to(page))
        step("add a run", lambda: page.desk.add_runs([resources.samples()[2].path]))
        step("compare two runs", lambda: frame.show_kind("compare"))
        step("phases over p", lambda: frame.current.show_over_p(True))
        step("comparison again", lambda: frame.current.show_over_p(False))
        step("page trace", lambda: frame.go_to(page))
        step("another run in front", lambda: page.step_run(1))
        step("the run again", lambda: page.step_run(1))
        looks(step, frame, "all pages")
        for k in range(3):
            step(f"undo {k}", frame.undo)
        for k in range(3):
            step(f"redo {k}", frame.redo)
        files(at, page)
        dialogs(step, page)
        step("detach", lambda: frame.detach(frame.show_kind("model")))
        step("attach", lambda: frame.torn[0].close())
        step("new window", lambda: windows.open([]))
        step("trace in it", lambda: windows._open[1].trace.open_path(trace))
        looks(step, frame, "two windows")
        step("close it", lambda: windows._open[1].close_unasked())
        step("close the trace", lambda: frame.go_to(page) or page.workbench.close_document())
        step("close", frame.close_unasked)


def tabs(step: Callable[[str, Callable[[], object]], None], frame: Any) -> None:
    """Each tab of the page in front."""
    from PySide6.QtWidgets import QTabWidget

    page = frame.current
    for widget in page.findChildren(QTabWidget):
        for k in range(widget.count()) if widget.isVisible() else ():
            text = widget.tabText(k).strip("0123456789 ")
            step(f"{page.KIND}: tab {text}", lambda widget=widget, k=k: widget.setCurrentIndex(k))


def looks(step: Callable[[str, Callable[[], object]], None], frame: Any, where: str) -> None:
    """Theme and size of text."""
    step(f"dark, {where}", lambda: frame.choose_theme("dark"))
    step(f"light, {where}", lambda: frame.choose_theme("light"))
    step(f"text 150 %, {where}", lambda: frame.choose_text_size(150))
    step(f"text 100 %, {where}", lambda: frame.choose_text_size(100))


def files(at: Session, page: Any) -> None:
    """Saving, reports, figures, the presentation."""
    from desktop.ui.exporting import FigureDialog, ReportDialog

    step, folder = at.step, at.folder
    step("save", lambda: page.desk._save(folder / "p.phasewright"))
    step("save again", page.desk.save)
    step("dialog report", page.make_report)
    dialog: Any = page.findChild(ReportDialog)
    for kind, ending in (("html", "html"), ("pdf", "pdf"), ("pptx", "pptx"), ("live", "html")):
        dialog.format.setCurrentIndex(dialog.format.findData(kind))
        at.settle()
        step(f"report {kind}", lambda file=folder / f"{kind}.{ending}": dialog.save_to(file))
        wait(at, dialog)
    step("close dialog", dialog.close)
    step("dialog figure", page.export_figure)
    dialog = page.findChild(FigureDialog)
    wait(at, dialog)
    step("figure", lambda: dialog.save_to(folder / "f.svg"))
    wait(at, dialog)
    step("close dialog", dialog.close)
    step("presentation", page.present)
    step("presentation, next phase", lambda: page.presentation._step_phase(1))
    step("presentation, next figure", lambda: page.presentation._step_figure(1))
    step("end of presentation", page.present)


def wait(at: Session, dialog: Any) -> None:
    """Until a dialog has written its file."""
    end = time.monotonic() + 120
    while not dialog.save.isEnabled() and time.monotonic() < end:
        at.settle()


def dialogs(step: Callable[[str, Callable[[], object]], None], page: Any) -> None:
    """Dialogs of all pages."""
    from PySide6.QtWidgets import QApplication, QDialog

    from desktop.ui.handbook import Handbook

    for name in ("preferences", "palette", "keys", "about", "handbook", "curves", "annotate"):
        action = page.actions_by_id[name]
        step(f"dialog {name}", action.trigger)
        opened = QApplication.topLevelWidgets()
        for window in (w for w in opened if isinstance(w, (QDialog, Handbook)) and w.isVisible()):
            step(f"close {name}", window.close)


# ---- what calls them


def rows(trace: str, profiled: str) -> Iterator[tuple[str, float]]:
    """A session in a process of its own: each step and its longest turn."""
    words = [sys.executable, "-m", "tests.benchmarks.turns", "--session", trace]
    words += ["--profile", profiled] if profiled else []
    env = {"QT_QPA_PLATFORM": "offscreen", "OPENBLAS_NUM_THREADS": "1", **os.environ}
    with subprocess.Popen(words, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("["):
                yield tuple(json.loads(line))
            else:
                print(line, end="", file=sys.stderr)
    if process.returncode:
        raise SystemExit(f"the session on {trace} ended with code {process.returncode}")


def measure(trace: str, name: str, rounds: int, profiled: str, everything: bool) -> None:
    least: dict[str, float] = {}
    for _ in range(rounds):
        this: dict[str, float] = {}
        for step, ms in rows(trace, profiled):
            this[step] = max(ms, this.get(step, 0.0))
        for step, ms in this.items():
            least[step] = min(ms, least.get(step, ms))
    print(f"\n| {name} | longest turn ms |\n| --- | ---: |")
    for step, ms in least.items():
        if everything or ms > SEEN:
            print(f"| {step} | {f'**{ms:.0f}**' if ms > BAR else f'{ms:.0f}'} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", default="")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--session", default="", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.session:
        session(Path(asked.session), asked.profile)
        os._exit(0)
    from desktop import resources
    from tests.benchmarks.import_command import alone
    from tests.benchmarks.otf2_import import write_archive

    with tempfile.TemporaryDirectory() as folder:
        for trace in asked.traces or [str(sample.path) for sample in resources.samples()[:2]]:
            path = trace
            if not Path(trace).exists():
                anchor = write_archive(Path(folder) / "archive", int(float(trace)))
                path = f"{folder}/ring.h5"
                alone(["desktop", "import", str(anchor), "-o", path])
            name = Path(trace).parent.name if Path(trace).exists() else f"{float(trace):g} events"
            measure(path, name, asked.rounds, asked.profile, asked.all)


if __name__ == "__main__":
    main()

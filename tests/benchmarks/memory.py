"""What a large trace takes: ``python -m tests.benchmarks.memory [EVENTS]``, by default 1e8 events.

A ring of 8 processes (a third of its records are messages) is written as OTF2 and imported to a temporary
folder. Prints a Markdown table of the window in which it is opened, offscreen: of each job beside it that
takes a second of processor time (of all threads, the window's included) the memory of the process at its
begin, at most and at its end; then the longest turn of the window's thread, in its own processor time. A
second table: processor time and the peak of commands. Memory is resident, in GB of 1e9 bytes.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import psutil

from desktop.workbench.jobs import Job, Lane
from tests.benchmarks.import_command import alone

EVENTS = 100_000_000
COMMANDS = ("info", "phases", "stats", "explain", "compare")
#: Seconds between two looks at the memory.
LOOK = 0.02


class Watched:
    """The most memory while each job runs."""

    def __init__(self) -> None:
        self._memory = psutil.Process().memory_info
        self._most: dict[Job, float] = {}
        threading.Thread(target=self._look, daemon=True).start()
        run = Lane._run

        def noted(lane: Lane, job: Job, *calls: Any) -> None:
            before, start = self._now(), time.process_time()
            self._most[job] = before
            run(lane, job, *calls)
            most, took = self._most.pop(job), time.process_time() - start
            if took >= 1.0:
                print(
                    f"| {job.title} | {took:.1f} | {before:.1f} | {most:.1f} | {self._now():.1f} |",
                    flush=True,
                )

        Lane._run = noted  # type: ignore[method-assign]  # of all lanes

    def _now(self) -> float:
        return float(self._memory().rss) / 1e9

    def _look(self) -> None:
        while True:
            now = self._now()
            for job in list(self._most):
                self._most[job] = max(self._most[job], now)
            time.sleep(LOOK)


def window(trace: Path) -> None:
    """Open a trace in the window, and wait until all that it shows at first is known."""
    from PySide6.QtCore import QAbstractEventDispatcher, QEventLoop, QSettings, QTimer

    from desktop.ui.app import application
    from desktop.ui.frame import Frame
    from desktop.ui.settings import Settings

    application()
    frame = Frame(Settings(QSettings(str(trace.with_suffix(".ini")), QSettings.Format.IniFormat)))
    frame.resize(1600, 1000)
    frame.show()
    page, loop, beat = frame.trace, QEventLoop(), QTimer(interval=20)
    beat.start()  # so that the loop below looks again
    began, longest = time.thread_time(), 0.0

    def begin() -> None:
        nonlocal began
        began = time.thread_time()

    def end() -> None:
        nonlocal longest
        longest = max(longest, time.thread_time() - began)

    def settle() -> None:
        rest = time.monotonic() + 1.0  # what follows an answer
        while page.busy or page.workbench.busy or time.monotonic() < rest:
            if page.busy or page.workbench.busy:
                rest = time.monotonic() + 1.0
            loop.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents)

    settle()
    Watched()
    dispatcher = QAbstractEventDispatcher.instance()
    dispatcher.awake.connect(begin)
    dispatcher.aboutToBlock.connect(end)
    print("| job | processor time s | before | at most | after |\n| --- |" + " ---: |" * 4)
    begin()
    page.open_path(trace)
    end()
    settle()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    print(f"\nat most {peak:.1f} GB, longest turn {1e3 * longest:.0f} ms\n", flush=True)
    os._exit(0)


def main(events: int) -> None:
    from tests.benchmarks.otf2_import import write_archive

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.update(XDG_CACHE_HOME=name, QT_QPA_PLATFORM="offscreen")
        stores = [folder / f"{k}.h5" for k in range(3)]  # of their own, as what is found is kept in a store
        anchor = write_archive(folder / "archive", events)
        alone(["desktop", "import", str(anchor), "-o", str(stores[0])])
        for store in stores[1:]:
            shutil.copy(stores[0], store)
        subprocess.run([sys.executable, "-m", "tests.benchmarks.memory", str(stores[0])], check=True)
        print("| command | processor time s | at most |\n| --- | ---: | ---: |")
        for command in COMMANDS:
            runs = stores[1:] if command == "compare" else stores[1:2]
            _, busy, most = alone(["desktop", command, *map(str, runs)])
            print(f"| {command} | {busy:.1f} | {most * 2**20 / 1e9:.1f} |", flush=True)


if __name__ == "__main__":
    words = sys.argv[1:]
    if words and words[0].endswith(".h5"):
        window(Path(words[0]))
    else:
        main(int(float(words[0])) if words else EVENTS)

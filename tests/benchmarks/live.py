"""The live loop in the real window and its event loop: ``python -m tests.benchmarks.live [STEPS ...]``.

For curves of 1e5, 1e6 and 1e7 steps, written to a file and opened in the window: from a change of n at the
workbench to the last paint it causes anywhere in the window (curve, residual, table, pictures, figures), and
frames of panning and zooming. Prints a Markdown table. Budget: 16.7 ms a frame, 50 ms for about 200 phases.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEvent, QEventLoop, QSettings, QTimer
from PySide6.QtWidgets import QApplication

from desktop.core import phases
from desktop.ui.app import application
from desktop.ui.frame import Frame
from desktop.ui.settings import Settings
from desktop.ui.trace_page import TracePage

SIZE = (1600, 1000)
FRAMES = 120
FRAME, MANY = 16.7, 50.0  # budgets, ms


def write_wave(path: Path, steps: int, processors: int = 64) -> None:
    """A noisy run of ramps, plateaus and idle stretches as a curve file, in microseconds."""
    rng = np.random.default_rng(17)
    edges = np.cumsum(rng.integers(1, 1000, steps + 1))
    x = np.linspace(0, 40, steps + 1)
    level = processors * (0.55 + 0.3 * np.sin(x) + 0.15 * np.sign(np.sin(2.7 * x)))
    level = np.clip(np.round(level + rng.normal(0, 4, steps + 1)), 0, processors).astype(int)
    with path.open("w", encoding="ascii") as file:
        for k in range(0, steps + 1, 1 << 18):
            block = zip(edges[k : k + (1 << 18)].tolist(), level[k : k + (1 << 18)].tolist(), strict=True)
            file.write("".join(f"{t / 1e6:.6f} {h}\n" for t, h in block))


class Timed(Frame):
    """A window that tells when it has painted: all that is dirty is painted in one event."""

    painted: Callable[[], None] | None = None

    def event(self, event: QEvent) -> bool:
        kind = event.type()
        done = super().event(event)
        if kind == QEvent.Type.UpdateRequest and self.painted is not None:
            self.painted()
        return done


@dataclass(frozen=True)
class Request:
    """Something asked of the window, and whether what it shows is the answer."""

    ask: Callable[[], object]
    answered: Callable[[], bool] = lambda: True


def run(window: TracePage, requests: Iterator[Request]) -> np.ndarray:
    """Milliseconds of each request until the last paint before the event loop comes to rest."""
    times: list[float] = []
    begun = last = 0.0
    request = next(requests)
    loop = QEventLoop()

    def ask() -> None:
        nonlocal begun
        begun = time.perf_counter()
        request.ask()

    def painted() -> None:
        nonlocal last
        if begun and request.answered():  # a paint before the request is none of its own
            if not last:
                QTimer.singleShot(0, at_rest)  # after all events that the change has posted
            last = time.perf_counter()

    def at_rest() -> None:
        nonlocal begun, last, request
        times.append(1e3 * (last - begun))
        begun = last = 0.0
        following = next(requests, None)
        if following is None:
            loop.quit()
        else:
            request = following
            QTimer.singleShot(5, ask)

    frame = cast(Timed, window.frame)
    frame.painted = painted
    QTimer.singleShot(5, ask)
    loop.exec()
    frame.painted = None
    return np.array(times)


def settle(app: QApplication, window: TracePage) -> None:
    while window.workbench.busy:
        app.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)
    app.processEvents()


def changes(window: TracePage, numbers: list[int]) -> Iterator[Request]:
    """Changes of n at the workbench; answered when the fit of that n is drawn."""
    bench = window.workbench

    def answered(n: int) -> bool:
        return bench.snapshot.project.phases.n == n and not bench.snapshot.refining

    for n in numbers:
        yield Request(lambda n=n: bench.set_n(n), lambda n=n: answered(n))


def pans(window: TracePage) -> Iterator[Request]:
    view = window.curve_view
    start, end = view.visible_range()
    for k in range(FRAMES):
        a = start + (end - start) * 0.2 * (1 + np.sin(k / 9))
        yield Request(lambda a=a: view.zoom_to(a, a + (end - start) * 0.6))


def zooms(window: TracePage) -> Iterator[Request]:
    view = window.curve_view
    start, end = view.visible_range()
    for k in range(1, FRAMES + 1):
        span = (end - start) * 0.93**k
        a = start + (end - start - span) * 0.37
        yield Request(lambda a=a, span=span: view.zoom_to(a, a + span))


def measure(app: QApplication, path: Path, steps: int, settings: Settings) -> None:
    window = Timed(settings).trace
    window.frame.resize(*SIZE)
    window.frame.show()
    window.workbench.open(path)
    settle(app, window)
    if window.workbench.snapshot.problem is not None:
        raise SystemExit(window.workbench.snapshot.problem.sentence)

    def row(what: str, requests: Iterator[Request], budget: float) -> None:
        ms = run(window, requests)
        over = 100 * np.mean(ms > budget)
        figures = f"{np.median(ms):.1f} | {np.percentile(ms, 99):.1f} | {budget:g} | {over:.0f} %"
        print(f"| {steps:.0e} | {what} | {figures} |", flush=True)
        window.curve_view.show_all()
        settle(app, window)

    few = [2 + k % 19 for k in range(FRAMES)]
    for model in ("quadratic", "mixed"):
        window.workbench.set_model(model)
        window.workbench.set_n(20)
        settle(app, window)
        row(f"change of n, 2 to 20, {model}", changes(window, few), FRAME)
        window.workbench.set_n(180)
        settle(app, window)
        # Every n once: a fit that is known already would not be computed again.
        row(f"change of n, 181 to 220, {model}", changes(window, list(range(181, 221))), MANY)
    for n in (200, 20):
        window.workbench.set_n(n)
        settle(app, window)
        row(f"pan, {n} phases", pans(window), FRAME)
        row(f"zoom, {n} phases", zooms(window), FRAME)
    window.frame.close_unasked()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder  # the user's own cache is left alone
        app = application()
        assert isinstance(app, QApplication)
        phases.warm_up()
        print(f"whole window {SIZE[0]} x {SIZE[1]}, ms from the request to the last paint it causes\n")
        print("| steps | what | median | p99 | budget | over budget |\n| --- | --- | --- | --- | --- | --- |")
        settings = Settings(QSettings(f"{folder}/settings.ini", QSettings.Format.IniFormat))
        for steps in [int(float(s)) for s in sys.argv[1:]] or [10**5, 10**6, 10**7]:
            path = Path(folder) / f"wave-{steps}.csv"
            write_wave(path, steps)
            measure(app, path, steps, settings)


if __name__ == "__main__":
    main()

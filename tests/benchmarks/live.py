"""The live loop, measured in the running event loop: ``python -m tests.benchmarks.live [STEPS ...]``.

For curves of 1e5, 1e6 and 1e7 steps: from a change of n to the painted overlay, and pan and zoom frames.
Prints a Markdown table. A frame is from the request to the end of the window's paint event: ms of wall
time, and of this thread's processor time, which other programs disturb less. Budget: 16.7 ms, 50 ms for
n = 200.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

import numpy as np

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QApplication

from desktop.core import phases
from desktop.core.curve import StepCurve
from desktop.core.envelope import envelope
from desktop.ui.plots.curve_view import CurveView

SIZE = (1400, 800)
FRAMES = 120


def wave(steps: int, processors: int = 64) -> StepCurve:
    """A noisy run of ramps, plateaus and idle stretches, whole nanoseconds and processors."""
    rng = np.random.default_rng(17)
    edges = np.concatenate(([0], np.cumsum(rng.integers(1, 1000, steps)))).astype(float)
    x = np.linspace(0, 40, steps)
    level = processors * (0.55 + 0.3 * np.sin(x) + 0.15 * np.sign(np.sin(2.7 * x))) + rng.normal(0, 4, steps)
    return StepCurve(edges, np.clip(np.round(level), 0, processors), processors, 1e-9)


class Timed(CurveView):
    """A view that tells when it has painted."""

    painted: Callable[[], None] | None = None

    def paintEvent(self, event) -> None:
        super().paintEvent(event)
        if self.painted is not None:
            self.painted()


def run(view: Timed, requests: list[Callable[[], None]]) -> np.ndarray:
    """Milliseconds (wall, processor) of each request until painted, one per turn of the event loop."""
    times: list[tuple[float, float]] = []
    begun = 0.0, 0.0
    loop = QEventLoop()

    def request() -> None:
        nonlocal begun
        begun = time.perf_counter(), time.thread_time()
        requests[len(times)]()
        view.update()

    def painted() -> None:
        nonlocal begun
        if not begun[0]:
            return
        times.append((time.perf_counter() - begun[0], time.thread_time() - begun[1]))
        begun = 0.0, 0.0
        if len(times) < len(requests):
            QTimer.singleShot(1, request)
        else:
            loop.quit()

    view.painted = painted
    QTimer.singleShot(1, request)
    loop.exec()
    view.painted = None
    return np.array(times).T * 1e3


def measure(app: QApplication, steps: int, print_row: Callable[[str], None]) -> None:
    curve = wave(steps)
    envelope(curve)
    view = Timed()
    view.resize(*SIZE)
    view.set_curve(curve)
    view.set_fit(phases.fit(curve, 20))
    view.show()
    app.processEvents()
    start, length = curve.start, curve.duration

    def change(n: int, model: str = "mixed") -> Callable[[], None]:
        return lambda: view.set_fit(phases.fit(curve, n, model))

    def pan(k: int) -> Callable[[], None]:
        a = start + length * 0.4 * (1 + np.sin(k / 9)) / 2
        return lambda: view.zoom_to(a, a + length * 0.6)

    def zoom(k: int) -> Callable[[], None]:
        span = length * 0.93**k
        a = start + (length - span) * 0.37
        return lambda: view.zoom_to(a, a + span)

    def row(what: str, requests: list[Callable[[], None]]) -> None:
        requests[0]()
        ms, cpu = run(view, requests)
        figures = (np.median(ms), np.percentile(ms, 99), np.median(cpu))
        print_row(
            f"| {steps:.0e} | {what} | {' | '.join(f'{v:.1f}' for v in figures)} | {1e3 / figures[0]:.0f} |"
        )

    row("change of n, 2 to 20, mixed", [change(2 + k % 19) for k in range(FRAMES)])
    row("pan, 20 phases", [pan(k) for k in range(FRAMES)])
    row("zoom, 20 phases", [zoom(k) for k in range(FRAMES)])
    view.show_all()
    for model in ("quadratic", "mixed"):
        row(f"change of n, 190 to 200, {model}", [change(190 + k % 11, model) for k in range(FRAMES // 3)])
    row("pan, 200 phases", [pan(k) for k in range(FRAMES)])
    view.close()


def main() -> None:
    app = QApplication.instance() or QApplication([])
    assert isinstance(app, QApplication)
    phases.warm_up()
    print(f"window {SIZE[0]} x {SIZE[1]}, {FRAMES} frames each, ms from the request to the painted window\n")
    print("| steps | what | median | p99 | processor | frames/s |\n| --- | --- | --- | --- | --- | --- |")
    for steps in [int(float(s)) for s in sys.argv[1:]] or [10**5, 10**6, 10**7]:
        measure(app, steps, lambda line: print(line, flush=True))


if __name__ == "__main__":
    main()

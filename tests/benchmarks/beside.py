"""Two checkouts by turns: ``python -m tests.benchmarks.beside OTHER [--sizes 1400x800 3840x2160@2 ...]``.

OTHER is the folder of another commit (``git worktree add FOLDER COMMIT``). Each has a process and a window of
its own, with the same curve or made trace open, and the same rows are measured in both, one after the other,
several times over, so that what else the machine does meets both; of each frame the least of all rounds is
taken. ``@2`` is the scale of the screen. Prints a Markdown table, first of OTHER, then of this checkout:
milliseconds from a request to the last paint it causes (median, p99), the processor time of the window's
thread in it (median, p99), and that of a frame with all that is done between frames; then what starting
takes, and memory.
``--timeline LOCATIONSxSTATES`` measures the timeline instead of the curve.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
CURVE = (
    "n 2-20", "n 181-220", "pan, n=200", "zoom, n=200", "pan+zoom, n=200", "cursor", "select", "levels",
)  # fmt: skip
ROWS = ("pan 60 %", "pan+zoom", "zoom", "scroll, rows of 2 px", "pan 60 %, rows of 2 px", "cursor")


# ---- in the process of a checkout


def work(source: str, size: str, frames: int) -> None:
    """Answer for each line of standard input that names a row with its figures."""
    import gc
    from types import SimpleNamespace

    import numpy as np
    import psutil
    from PySide6.QtCore import QSettings

    from desktop.core import phases
    from desktop.ui.app import application
    from desktop.ui.settings import Settings
    from tests.benchmarks import live
    from tests.benchmarks.live import Request, Timed, run

    # Both clocks in one number, as the other checkout's `run` takes differences of one.
    both_clocks = lambda: complex(time.perf_counter(), time.thread_time())  # noqa: E731
    live.time = SimpleNamespace(perf_counter=both_clocks)  # type: ignore[assignment]
    app = application()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder  # the user's own cache is left alone
        frame: Any = Timed(Settings(QSettings(f"{folder}/s.ini", QSettings.Format.IniFormat)))
        window: Any = getattr(frame, "trace", frame)  # before there was one frame, a trace had a window
        width, height = map(int, size.partition("@")[0].split("x"))
        scale = float(size.partition("@")[2] or 1)
        frame.resize(round(width / scale), round(height / scale))
        frame.show()
        for _ in range(20):
            app.processEvents()
        started = time.process_time()
        phases.warm_up()
        bench, view = window.workbench, window.curve_view

        def settle() -> None:
            while window.busy or bench.busy:
                app.processEvents()
                time.sleep(0.002)
            time.sleep(0.2)  # what is drawn exactly only after a rest
            app.processEvents()

        bench.open(made(source, Path(folder)))
        settle()
        problem = bench.snapshot.problem
        if problem is not None:
            raise SystemExit(problem.sentence)
        start, end = view.navigation.start, view.navigation.end
        length = end - start

        def set_n(n: int) -> None:
            bench.set_model("mixed")
            bench.set_n(n)
            settle()

        def ns(numbers: list[int]) -> Iterator[Request]:
            for n in numbers:
                done = lambda n=n: bench.snapshot.project.phases.n == n and not bench.snapshot.refining  # noqa: E731
                yield Request(lambda n=n: bench.set_n(n), done)

        def shows(spans: Callable[[int], tuple[float, float]]) -> Iterator[Request]:
            for k in range(frames):
                yield Request(lambda k=k: view.zoom_to(*spans(k)))

        def pan(k: int) -> tuple[float, float]:
            a = start + length * 0.2 * (1 + np.sin(k / 9))
            return a, a + length * 0.6

        def zoom(k: int) -> tuple[float, float]:
            span = length * 0.93 ** (k + 1)
            a = start + (length - span) * 0.37
            return a, a + span

        def both(k: int) -> tuple[float, float]:
            span = length * (0.3 + 0.25 * np.sin(k / 7))
            a = start + (length - span) * (0.5 + 0.4 * np.sin(k / 11))
            return a, a + span

        def each(act: Callable[[int], object]) -> Iterator[Request]:
            for k in range(frames):
                yield Request(lambda k=k: act(k))

        def rows_of(pixels: float) -> None:
            rows = window.timeline.view
            rows._height = pixels
            rows.rows_changed()
            settle()

        prepare: dict[str, Callable[[], object]] = {
            "n 2-20": lambda: set_n(20), "n 181-220": lambda: (set_n(20), set_n(180)),
            "scroll, rows of 2 px": lambda: rows_of(2.0), "pan 60 %, rows of 2 px": lambda: rows_of(2.0),
        }  # fmt: skip
        rows: dict[str, Callable[[], Iterator[Request]]] = {
            "n 2-20": lambda: ns([2 + k % 19 for k in range(frames)]),
            "n 181-220": lambda: ns(list(range(181, 221))),
            "cursor": lambda: each(lambda k: view._move_cursor(start + length * (0.1 + 0.8 * k / frames))),
            "select": lambda: each(
                lambda k: view._select(start + 0.1 * length, start + length * (0.2 + k / 2e2))
            ),
            "levels": lambda: each(lambda k: view.zoom_levels(1.25 if k % 20 < 10 else 0.8)),
            "scroll, rows of 2 px": lambda: each(
                lambda k: window.timeline.view.scroll_rows(7 if k % 40 < 20 else -7)
            ),
        }
        for name, spans in (("pan", pan), ("zoom", zoom), ("pan+zoom", both)):
            rows[f"{name}, n=200"] = rows[name] = lambda spans=spans: shows(spans)
        rows["pan 60 %"] = rows["pan 60 %, rows of 2 px"] = rows["pan"]
        print(json.dumps({"started": started}), flush=True)
        for line in sys.stdin:
            name = line.strip()
            if name.endswith("n=200"):
                set_n(200)
            prepare.get(name, lambda: None)()
            settle()
            gc.collect()
            begun = time.thread_time()
            ms = run(window, rows[name]())
            cpu = 1e3 * (time.thread_time() - begun) / ms.size
            view._move_cursor(float("nan"))
            view._select(0, 0)
            view.reset_levels()
            view.show_all()
            if window.timeline.view.timeline is not None:
                rows_of(0.0)
            settle()
            memory = psutil.Process().memory_info().rss / 1e6
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
            print(
                json.dumps(
                    {
                        "ms": ms.real.tolist(),
                        "each": ms.imag.tolist(),
                        "cpu": cpu,
                        "memory": memory,
                        "peak": peak,
                    }
                ),
                flush=True,
            )
        getattr(frame, "close_unasked", frame.close)()


def made(source: str, folder: Path) -> Path:
    """A file, or the trace that is asked for, in the store of this checkout."""
    locations, _, states = source.partition("x")
    if not (locations.isdigit() and states.isdigit()):
        return Path(source)
    from tests.benchmarks import timeline

    digests = [v for name, v in vars(timeline).items() if name.endswith("Digest") and name != "Digest"]
    for name in ("TIMELINE", "PROFILE"):
        digests += getattr(timeline, name, ())
    path = folder / f"{source}.h5"
    timeline.make(path, int(locations), int(states), *digests)
    return path


# ---- what compares


class Worker:
    """A checkout's window in a process of its own."""

    def __init__(self, checkout: Path, source: str, size: str, frames: int) -> None:
        env = os.environ | {"PYTHONPATH": str(checkout), "QT_SCALE_FACTOR": size.partition("@")[2] or "1"}
        env.setdefault("QT_QPA_PLATFORM", "offscreen")
        # -P: a benchmark beside this one is called as a module of Python's.
        words = [sys.executable, "-P", __file__, "--work", source, size, str(frames)]
        self._process = subprocess.Popen(
            words, cwd=checkout, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.started = float(self._read()["started"])

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise SystemExit("a window has ended before its answer")

    def measure(self, row: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{row}\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


def compare(other: Path, source: str, size: str, rows: list[str], rounds: int, frames: int) -> None:
    import numpy as np

    with ExitStack() as open_:
        pair = []
        for checkout in (other, ROOT):
            worker = Worker(checkout, source, size, frames)
            open_.callback(worker.close)
            pair.append(worker)
        last: list[dict[str, Any]] = [{}, {}]
        for row in rows:
            answers: list[list[dict[str, Any]]] = [[], []]
            for _ in range(rounds):
                for k, worker in enumerate(pair):
                    last[k] = worker.measure(row)
                    answers[k].append(last[k])
            cells, cpu = [], []
            for of in answers:
                ms, each = (np.min([answer[clock] for answer in of], axis=0) for clock in ("ms", "each"))
                cpu.append(min(answer["cpu"] for answer in of))
                told = [*np.percentile(ms, [50, 99]), *np.percentile(each, [50, 99]), cpu[-1]]
                cells.append(" | ".join(f"{value:.1f}" for value in told))
            print(f"| {size} | {row} | {cells[0]} | {cells[1]} | {cpu[1] - cpu[0]:+.1f} |", flush=True)
        figures = [
            f"{worker.started:.2f} s, {at['memory']:.0f} MB, peak {at['peak']:.0f} MB"
            for worker, at in zip(pair, last, strict=True)
        ]
        print(f"| {size} | start (CPU), memory | {figures[0]}{' |' * 5} {figures[1]}{' |' * 6}", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("--sizes", nargs="*", default=["1400x800", "1920x1080", "3840x2160@2"])
    parser.add_argument("--steps", type=float, default=1e7)
    parser.add_argument("--timeline", default="")
    parser.add_argument("--rows", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--frames", type=int, default=40)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = asked.timeline
        if not source:
            from tests.benchmarks.live import write_wave

            source = str(Path(folder) / "wave.csv")
            write_wave(Path(source), int(asked.steps))
        columns = ["median", "p99", "CPU median", "p99", "CPU a frame"]
        heads = [f"{of} {column}" for of in ("other", "this") for column in columns]
        print("\n| size | what |", " | ".join(heads), "| more |")
        print(f"|{' --- |' * 13}")
        for size in asked.sizes:
            rows = asked.rows or list(ROWS if asked.timeline else CURVE)
            compare(asked.other.resolve(), source, size, rows, asked.rounds, asked.frames)


if __name__ == "__main__":
    main()

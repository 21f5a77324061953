"""The timeline in the real window and its event loop: ``python -m tests.benchmarks.timeline [SIZE ...]``.

A SIZE is LOCATIONSxSTATES (states of each location), or the path of a trace. Made traces are nested regions
of very different lengths, one location after the other, through the importer's sink into a store, so that
the digest works as on import. Prints what the summary costs, and for panning and zooming the milliseconds
from the request to the last paint that it causes anywhere in the window (curve, residual and timeline), and
processor time, which other work on the machine does not change. Budget: 16.7 ms a frame at 1600 x 1000.
Then what it takes to find where a region is entered: a frequent one, a rare one, and one that is open all the
time and entered once.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEventLoop, QSettings
from PySide6.QtWidgets import QApplication

from desktop.core import phases
from desktop.data.events import Importer, Location, Region
from desktop.data.opening import open_trace
from desktop.data.store import Digest, Source, StoreWriter, open_store
from desktop.data.timeline import Timeline
from desktop.data.utilization import keep
from desktop.progress import Progress
from desktop.ui.app import application
from desktop.ui.settings import Settings
from desktop.ui.trace_page import TracePage
from tests.benchmarks.live import FRAME, SIZE, Request, Timed, run
from tests.digests import PROFILE, TIMELINE

FRAMES = 120
#: Instants at which anything happens; that all locations share them keeps the curve small.
INSTANTS = 100_000
NAMES = ("main", "solve", "exchange", "MPI_Isend", "MPI_Recv", "MPI_Wait", "MPI_Allreduce", "MPI_File_write")
IMPORTER = Importer("made", "Made", "1", lambda p, h: True, lambda p, s, g: None, lambda p: [p])


def events(rng: np.random.Generator, states: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`states` events: pairs of enter and leave in main, in bursts; one in ten thousand is rare."""
    pairs = (states - 2) // 2
    at = np.sort(rng.integers(1, INSTANTS, 2 * pairs) * 1000)
    region = rng.choice([1, 2, 3, 4, 5, 6], pairs, p=[0.4, 0.1, 0.1, 0.2, 0.15, 0.05])
    region[rng.random(pairs) < 1e-4] = 7
    time_ = np.concatenate([[0], at, [INSTANTS * 1000]])
    kind = np.concatenate([[0], np.tile([0, 1], pairs), [1]]).astype(np.uint8)
    named = np.concatenate([[0], np.repeat(region, 2), [0]]).astype(np.uint32)
    return time_.astype(np.int64), kind, named


def make(path: Path, locations: int, states: int, *digests: Callable[[StoreWriter], Digest]) -> float:
    """Write a trace; seconds of processor time it took."""
    rng = np.random.default_rng(5)
    made = [events(rng, states) for _ in range(min(locations, 16))]
    begun = time.process_time()
    with StoreWriter(path, Source("made", "made"), IMPORTER, digests) as writer:
        writer.describe(ticks_per_second=1e9)
        for name in NAMES:
            writer.region(Region(name, paradigm="mpi" if name.startswith("MPI") else ""))
        for k in range(locations):
            index = writer.location(Location(k, f"rank {k}", rank=k, process=f"rank {k}"))
            at, kind, region = made[k % len(made)]
            for a in range(0, at.size, 1 << 16):
                b = a + (1 << 16)
                writer.append("events", index, time=at[a:b], kind=kind[a:b], region=region[a:b])
        writer.complete()
        spent = time.process_time() - begun
        if digests:
            keep(writer, Progress())
    return spent


def cost(folder: Path, locations: int, states: int) -> Path:
    """Make the trace, and say what the summary costs (time: of at most a thousand locations)."""
    plain, path = folder / "plain.h5", folder / f"{locations}x{states}.h5"
    some = min(locations, 1000)
    make(plain, min(locations, 8), states, *TIMELINE)  # kernels are compiled
    without = make(plain, some, states)
    spent = make(plain, some, states, *TIMELINE) - without
    plain.unlink()
    make(path, locations, states, *TIMELINE, *PROFILE)
    total = locations * states
    with open_store(path) as store:
        begun = time.perf_counter()
        line = Timeline(store)
        opened = time.perf_counter() - begun
        memory = sum(a.nbytes for a in vars(line).values() if isinstance(a, np.ndarray))
        cells = int(store.whole("timeline", "activity")[0][:, 1].sum())
    kept = stored(path)
    per_state = 1e9 / (some * states)
    print(
        f"\n{locations} locations, {total:.0e} states: the summary takes {spent * per_state:.0f} ns a state "
        f"beside {without * per_state:.0f} for storing it; {cells / total:.2f} cells a state; memory "
        f"{memory / 1e6:.0f} MB ({memory / total:.2f} B a state, {memory / locations:.0f} B a location); "
        f"file {path.stat().st_size / 1e6:.0f} MB, of that the summary {kept / 1e6:.1f} MB "
        f"({kept / total:.2f} B a state); opened in {opened:.2f} s",
        flush=True,
    )
    return path


def stored(path: Path) -> int:
    """Bytes of the summary in a store."""
    with h5py.File(path, locking=False) as file:
        tables = [file["derived"][name] for name in ("strips", "timeline", "checkpoints")]
        return sum(column.id.get_storage_size() for table in tables for column in table.values())


def finds(path: Path) -> None:
    """Say what it takes to find the next occurrence, from some places, in any location."""
    with open_store(path) as store:
        line = Timeline(store)
        known = {region.name: i for i, region in enumerate(store.regions)}
        line.find([0], 0.0, but=-1)  # what is kept for all questions is read
        print("\n| find | ms, at most | ms, in one location |\n| --- | --- | --- |")
        for name in ("solve", "MPI_File_write", "main"):
            if name in known:
                spent: list[list[float]] = [[], []]
                for share in (0.001, 0.3, 0.6, 0.95):
                    for forward in (True, False):
                        for among, times in zip((None, [len(store.locations) // 2]), spent, strict=True):
                            begun = time.perf_counter()
                            line.find([known[name]], share * line.end_s, forward=forward, among=among)
                            times.append(1e3 * (time.perf_counter() - begun))
                print(f"| {name} | {' | '.join(f'{max(times):.0f}' for times in spent)} |", flush=True)


def settle(window: TracePage) -> None:
    loop = QEventLoop()
    while window.busy:
        loop.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)
    loop.processEvents()


def pans(window: TracePage, share: float) -> Iterator[Request]:
    view = window.timeline.view
    start, end = view.navigation.start, view.navigation.end
    width = (end - start) * share
    for k in range(FRAMES):
        a = start + (end - start - width) * (0.5 + 0.4 * np.sin(k / 9))
        yield Request(lambda a=a: view.zoom_to(a, a + width))


def zooms(window: TracePage) -> Iterator[Request]:
    view = window.timeline.view
    start, end = view.navigation.start, view.navigation.end
    for k in range(1, FRAMES + 1):
        span = (end - start) * 0.93**k
        a = start + (end - start - span) * 0.37
        yield Request(lambda a=a, span=span: view.zoom_to(a, a + span))


def scrolls(window: TracePage) -> Iterator[Request]:
    view = window.timeline.view
    for k in range(FRAMES):
        yield Request(lambda k=k: view.scroll_rows(7 if k % 40 < 20 else -7))


def timed(window: TracePage, what: Iterator[Request]) -> list[float]:
    """Milliseconds of frames (median, p99); of processor time in the window's thread: a frame in the mean
    and the painting of the timeline alone (median)."""
    spent: list[float] = []
    view = window.timeline.view
    paint = view._paint

    def watched(painter: object) -> None:
        begun = time.thread_time()
        paint(painter)
        spent.append(1e3 * (time.thread_time() - begun))

    view._paint = watched
    begun = time.thread_time()
    frames = run(window, what)
    whole = 1e3 * (time.thread_time() - begun) / frames.size
    view._paint = paint
    return [float(np.median(frames)), float(np.percentile(frames, 99)), whole, float(np.median(spent))]


def measure(path: Path, name: str, settings: Settings) -> None:
    window = Timed(settings).trace
    window.frame.resize(*SIZE)
    window.frame.show()
    window.workbench.open(path)
    settle(window)
    if window.workbench.snapshot.problem is not None:
        raise SystemExit(window.workbench.snapshot.problem.sentence)
    view = window.timeline.view

    def row(what: str, requests: Iterator[Request]) -> None:
        median, worst, whole, own = timed(window, requests)
        begun = time.perf_counter()
        settle(window)
        sharp = 1e3 * (time.perf_counter() - begun)
        figures = (
            f"{median:.1f}",
            f"{worst:.1f}",
            f"{FRAME:g}",
            f"{whole:.1f}",
            f"{own:.1f}",
            f"{sharp:.0f}",
        )
        print(f"| {name} | {what} | {' | '.join(figures)} |", flush=True)

    for rows in ("all rows", "rows of 2 pixels"):
        if rows != "all rows":
            if len(view.rows.rows) < 200:
                continue
            view.show_all()
            view._height = 2.0
            view.rows_changed()
            settle(window)
            row(f"scroll, {rows}", scrolls(window))
        row(f"pan, 60 % in view, {rows}", pans(window, 0.6))
        row(f"pan, 1 % in view, {rows}", pans(window, 0.01))
        row(f"zoom, {rows}", zooms(window))
        view.show_all()
        settle(window)
    view.set_by_region(True)
    for rows, height in (("rows of 2 pixels", 2.0), ("all rows", 0.0)):
        view._height = height
        view.rows_changed()
        view.show_all()
        settle(window)
        row(f"pan, 60 % in view, {rows}, by region", pans(window, 0.6))
    window.frame.close_unasked()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder  # the user's own cache is left alone
        app = application()
        assert isinstance(app, QApplication)
        phases.warm_up()
        settings = Settings(QSettings(f"{folder}/settings.ini", QSettings.Format.IniFormat))
        sizes = sys.argv[1:] or ["1024x1000", "10000x1000"]
        columns = ("trace", "what", "median", "p99", "budget", "CPU", "timeline", "sharp after")
        head = (
            f"\nwhole window {SIZE[0]} x {SIZE[1]}: ms from the request to the last paint (median, p99); "
            "processor time of a frame in the window's thread, of that the timeline; until all is sharp "
            f"after the last\n\n| {' | '.join(columns)} |\n|{' --- |' * len(columns)}"
        )
        for size in sizes:
            if Path(size).exists():
                path = Path(open_trace(Path(size), output=Path(folder) / "trace.h5", force=True).path)
                name = Path(size).name
            else:
                locations, states = map(int, size.split("x"))
                path, name = cost(Path(folder), locations, states), size
            print(head, flush=True)
            measure(path, name, settings)
            finds(path)


if __name__ == "__main__":
    main()

"""What ``phasewright import`` takes beside reading a trace and storing its rows, which is the least there is.

``python -m tests.benchmarks.import_command [EVENTS ...]`` writes a ring of processes as OTF2 (of each number
of events, by default `EVENTS`) and 2 million records of it as OTF, Paraver and PICL, to a temporary
folder. Each is read and stored (no clocks, no summaries) in a process that has done so before, and imported
by the command in a process of its own, in turns, from the page cache. Prints a table: seconds on the wall and
of the processor (all threads) of both, the least of `REPEATS` each; how many times longer the command takes,
start of Python included; and its peak memory. On a machine with other work, seconds on the wall mean
something only under ``chrt -f 1``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from desktop.data import importers
from desktop.data.store import Source, StoreWriter
from desktop.progress import Progress
from tests.benchmarks import otf2_import
from tests.benchmarks.text_import import KINDS

EVENTS = (480, 2_000_000, 16_000_000)
RECORDS = 2_000_000
REPEATS = 5
TEXTS = ("OTF", "Paraver", "PICL A, compact", "PICL B")


def store_rows(trace: Path) -> None:
    importer = importers.detect(trace)
    with (
        tempfile.TemporaryDirectory() as folder,
        StoreWriter(Path(folder) / "trace.h5", Source(str(trace), trace.name), importer) as writer,
    ):
        importer.read(trace, writer, Progress())


def serve(trace: Path) -> None:
    """Read and store whenever a line comes in; seconds on the wall and of the processor go out."""
    store_rows(trace)  # loads what is compiled
    print(flush=True)
    for _ in sys.stdin:
        start, busy = time.perf_counter(), time.process_time()
        store_rows(trace)
        print(time.perf_counter() - start, time.process_time() - busy, flush=True)


def command(trace: Path, folder: Path) -> tuple[float, float, float]:
    """Seconds on the wall and of the processor, and MB at the peak, of the whole command."""
    words = [sys.executable, "-m", "desktop", "import", str(trace), "-o", str(folder / "trace.h5"), "--force"]
    start = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def compare(name: str, trace: Path, folder: Path) -> None:
    words = [sys.executable, "-m", "tests.benchmarks.import_command", "--serve", str(trace)]
    stored, imported = [], []
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdout.readline()
        command(trace, folder)  # loads what is compiled
        for _ in range(REPEATS):
            server.stdin.write("\n")
            server.stdin.flush()
            stored.append([float(word) for word in server.stdout.readline().split()])
            imported.append(command(trace, folder))
        server.stdin.close()
    wall, busy = (min(one[k] for one in stored) for k in range(2))
    whole, used, peak = (min(one[k] for one in imported) for k in range(3))
    print(
        f"| {name} | {wall:.2f} | {busy:.2f} | {whole:.2f} | {used:.2f} | {whole / wall:.1f} "
        f"| {used / busy:.1f} | {peak:.0f} |",
        flush=True,
    )


def main(sizes: tuple[int, ...]) -> None:
    print("| trace | stored, s | CPU s | imported, s | CPU s | times | by CPU | peak MB |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    traces: list[tuple[str, Callable[[Path], Path]]] = []
    for events in sizes:
        traces.append((f"OTF2, {events:,}", lambda folder, n=events: otf2_import.write_archive(folder, n)))  # type: ignore[misc]  # a default is inferred
    for name in TEXTS if len(sizes) > 1 else ():

        def write(folder: Path, name: str = name) -> Path:
            folder.mkdir()
            KINDS[name].write(folder / KINDS[name].name, RECORDS)
            return folder / KINDS[name].name

        traces.append((f"{name}, {RECORDS:,}", write))
    for name, make in traces:
        with tempfile.TemporaryDirectory() as folder:
            compare(name, make(Path(folder) / "trace"), Path(folder))


if __name__ == "__main__":
    if "--serve" in sys.argv:
        serve(Path(sys.argv[-1]))
    else:
        main(tuple(map(int, sys.argv[1:])) or EVENTS)

"""What ``phasewright import`` takes beside reading a trace and storing its rows, which is the least there is.

``python -m tests.benchmarks.import_command [EVENTS ...]`` writes a ring of processes as OTF2 (of each number
of events, by default `EVENTS`) and 2 million records of it as OTF, Paraver and PICL, to a temporary folder.
Each is read and stored (no clocks, no summaries) in a process that has done so before ("stored"), read and
stored in a process of its own ("cold"), and imported by the command, in turns, from the page cache. Prints a
table: seconds on the wall and of the processor (all threads), the least of `REPEATS` each; how many times
longer the command takes than each of the others; and its peak memory. On a machine with other work, seconds
on the wall mean something only under ``chrt -f 1``.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from desktop.__main__ import _OBJECTS  # also sets what the program sets for itself

EVENTS = (480, 2_000_000, 16_000_000)
RECORDS = 2_000_000
REPEATS = 5
TEXTS = ("OTF", "Paraver", "PICL A, compact", "PICL B")
#: As users have it: what is compiled of Python and numba is kept.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def store_rows(trace: Path) -> None:
    from desktop.data import importers
    from desktop.data.store import Source, StoreWriter
    from desktop.progress import Progress

    importer = importers.detect(trace)
    with (
        tempfile.TemporaryDirectory() as folder,
        StoreWriter(Path(folder) / "trace.h5", Source(str(trace), trace.name), importer) as writer,
    ):
        importer.read(trace, writer, Progress())


def store_once(trace: Path) -> None:
    """As `desktop.__main__` runs a command."""
    gc.set_threshold(_OBJECTS)
    store_rows(trace)
    gc.freeze()


def serve(trace: Path) -> None:
    """Read and store whenever a line comes in; seconds on the wall and of the processor go out."""
    store_rows(trace)  # loads what is compiled
    print(flush=True)
    for _ in sys.stdin:
        start, busy = time.perf_counter(), time.process_time()
        store_rows(trace)
        print(time.perf_counter() - start, time.process_time() - busy, flush=True)


def alone(words: Sequence[str]) -> tuple[float, float, float]:
    """Seconds on the wall and of the processor, and MB at the peak, of a whole process of Python."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", *words], env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def compare(name: str, trace: Path, folder: Path) -> None:
    here = "tests.benchmarks.import_command"
    once = [here, "--once", str(trace)]
    command = ["desktop", "import", str(trace), "-o", str(folder / "trace.h5"), "--force"]
    words = [sys.executable, "-m", here, "--serve", str(trace)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    warm, cold, imported = [], [], []
    with subprocess.Popen(words, env=ENVIRONMENT, text=True, **pipes) as server:  # type: ignore[call-overload]  # two pipes
        server.stdout.readline()
        alone(command)  # loads what is compiled
        for _ in range(REPEATS):
            server.stdin.write("\n")
            server.stdin.flush()
            warm.append([float(word) for word in server.stdout.readline().split()])
            cold.append(alone(once))
            imported.append(alone(command))
        server.stdin.close()
    wall, busy = (min(one[k] for one in warm) for k in range(2))
    begun = min(one[0] for one in cold)
    whole, used, peak = (min(one[k] for one in imported) for k in range(3))
    print(
        f"| {name} | {wall:.2f} | {busy:.2f} | {begun:.2f} | {whole:.2f} | {used:.2f} | {whole / wall:.1f} "
        f"| {whole / begun:.1f} | {used / busy:.1f} | {peak:.0f} |",
        flush=True,
    )


def main(sizes: tuple[int, ...]) -> None:
    from tests.benchmarks import otf2_import
    from tests.benchmarks.text_import import KINDS

    print(
        "| trace | stored, s | CPU s | cold, s | imported, s | CPU s | times | of cold | by CPU | peak MB |"
    )
    print("| --- |" + " ---: |" * 9)
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
    elif "--once" in sys.argv:
        store_once(Path(sys.argv[-1]))
    else:
        main(tuple(map(int, sys.argv[1:])) or EVENTS)

"""How fast Paraver traces are imported, beside `pandas.read_csv` on the same bytes, and in how much memory.

``python -m tests.benchmarks.paraver_import [RECORDS]`` writes a trace of a ring of ranks to a temporary
folder (2 million records; for the memory half and twice as many) and prints two tables. Every measurement is
a process of its own that has read a small trace before, so that everything is compiled, and the best of five;
the files come from the page cache.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from desktop.data.events import ImportReport
from desktop.data.importers import paraver
from desktop.data.opening import open_trace
from desktop.progress import Progress

RANKS = 8
RECORDS = 2_000_000
#: What a rank does in a microsecond: compute, send to the right, wait for the left. Eight records.
STEP = (
    "1:{r}:1:{r}:1:{a}:{b}:1\n2:{r}:1:{r}:1:{b}:50000001:1\n1:{r}:1:{r}:1:{b}:{c}:4\n"
    "3:{r}:1:{r}:1:{b}:{b}:{q}:1:{q}:1:{d}:{d}:1024:7\n2:{r}:1:{r}:1:{c}:50000001:0:42000050:{a}\n"
    "2:{r}:1:{r}:1:{c}:50000001:2\n1:{r}:1:{r}:1:{c}:{d}:3\n2:{r}:1:{r}:1:{d}:50000001:0:42000050:{a}\n"
)


def write_trace(path: Path, records: int) -> None:
    """That many records (to a multiple of 64)."""
    steps = records // (8 * RANKS)
    tasks = ",".join(["1:1"] * RANKS)
    with path.open("w", encoding="ascii") as file:
        file.write(
            f"#Paraver (21/11/2026 at 04:00):{1000 * (steps + 10)}_ns:1({RANKS}):1:{RANKS}({tasks}),1\n"
        )
        file.write(f"c:1:1:{RANKS}:{':'.join(str(r) for r in range(1, RANKS + 1))}\n")
        for step in range(steps):
            for rank in range(1, RANKS + 1):
                at = 10_000 + 1000 * step + 7 * rank
                file.write(
                    STEP.format(
                        r=rank, q=rank % RANKS + 1, a=at, b=at + 700 - step % 90, c=at + 800, d=at + 1000
                    )
                )


class Nowhere:
    """A sink that drops everything: what is left is the reading."""

    def __init__(self) -> None:
        self.report = ImportReport()
        self.defined = 0

    def describe(self, **facts: object) -> None: ...

    def location(self, location: object) -> int:
        self.defined += 1
        return self.defined - 1

    region = text = location

    def wants(self, location: int) -> bool:
        return True

    def append(self, table: str, location: int, **columns: object) -> None: ...


def read_only(path: Path) -> None:
    sink = Nowhere()
    paraver.IMPORTER.read(path, sink, Progress())
    assert not sink.report.lossy


def into_the_store(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        open_trace(path, output=Path(folder) / "trace.h5").close()


def pandas_read_csv(path: Path) -> None:
    """As many columns as the longest line has."""
    import pandas

    pandas.read_csv(path, sep=":", names=range(15), skiprows=2)


def nothing(path: Path) -> None:
    """What the process takes without a trace."""


READERS = {f.__name__: f for f in (read_only, into_the_store, pandas_read_csv, nothing)}


def measure(reader: str, path: Path, small: Path, repeats: int) -> tuple[float, float, float]:
    """Seconds, seconds of all cores together, and the peak memory of the process in MB."""
    command = [
        sys.executable,
        "-m",
        "tests.benchmarks.paraver_import",
        reader,
        str(path),
        str(small),
        str(repeats),
    ]
    seconds, cpu, peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(seconds), float(cpu), float(peak)


def measured(reader: str, path: Path, small: Path, repeats: int) -> None:
    read = READERS[reader]
    read(small)
    best = cpu = float("inf")
    for _ in range(repeats):
        start, spent = time.perf_counter(), time.process_time()
        read(path)
        best, cpu = min(best, time.perf_counter() - start), min(cpu, time.process_time() - spent)
    print(best, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main(records: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        small, path = Path(folder) / "small.prv", Path(folder) / "trace.prv"
        write_trace(small, 64 * 100)
        write_trace(path, records)
        size = path.stat().st_size / 1e6
        print(f"{records:,} records, {size:.0f} MB\n")
        print("| | s | CPU s | records/s | MB/s | x pandas |")
        print("| --- | ---: | ---: | ---: | ---: | ---: |")
        found = {name: measure(name, path, small, 5) for name in READERS if name != "nothing"}
        for name, (seconds, cpu, _) in found.items():
            print(
                f"| {name.replace('_', ' ')} | {seconds:.2f} | {cpu:.2f} | {records / seconds:,.0f} "
                f"| {size / seconds:.0f} | {found['pandas_read_csv'][0] / seconds:.2f} |"
            )
        print("\n| records | peak MB, read only | peak MB, into the store | before any trace |")
        print("| ---: | ---: | ---: | ---: |")
        for count in (records // 2, records * 2):
            write_trace(path, count)
            peaks = [measure(name, path, small, 1)[2] for name in ("read_only", "into_the_store", "nothing")]
            print(f"| {count:,} | " + " | ".join(f"{peak:.0f}" for peak in peaks) + " |")


if __name__ == "__main__":
    if len(sys.argv) <= 2:
        main(int(sys.argv[1]) if len(sys.argv) == 2 else RECORDS)
    else:
        measured(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))

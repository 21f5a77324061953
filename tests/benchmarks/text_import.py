"""How fast text is imported, beside `pandas.read_csv` on the same bytes.

``python -m tests.benchmarks.text_import`` writes PICL traces (format A compact and verbose, format B) of 2
and 10 million records and curves of as many rows to a temporary folder. Each is read in a process of its
own, from the page cache: without a store, and through `open_trace` into one (with the check of clocks, the
digests and the hash of the source). Prints a Markdown table: the best of three, and the peak memory.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from desktop.data import importers
from desktop.data.events import ImportReport
from desktop.data.opening import open_trace
from desktop.progress import Progress

PROCESSORS = 64
SIZES = (2_000_000, 10_000_000)
STEP = 1000  # microseconds
STEPS_AT_ONCE = 512

#: What a processor does in a step of a ring (compute, send to the right, wait for the left): microseconds
#: after the beginning of its step, total time in communication, line.
COMPACT = (
    (100, 0, "4 {s} {u} {p} {right} 1 {size}"),
    (100, 0, "11 {s} {u} {p} {i} {j}"),
    (130, 30, "11 {s} {u} {p} {i} {j}"),
    (131, 0, "7 {s} {u} {p} 1"),
    (131, 30, "11 {s} {u} {p} {i} {j}"),
    (300, 0, "8 {s} {u} {p} {left} 1 {size}"),
    (300, 199, "11 {s} {u} {p} {i} {j}"),
)
VERBOSE = (
    (100, 0, "send  clock {s} {u} node {p} to {right} type 1 lth {size}"),
    (100, 0, "compstats  clock {s} {u} node {p} busy 0 0 idle {i} {j}"),
    (130, 30, "compstats  clock {s} {u} node {p} busy 0 0 idle {i} {j}"),
    (131, 0, "recv_blocking  clock {s} {u} node {p} type 1"),
    (131, 30, "compstats  clock {s} {u} node {p} busy 0 0 idle {i} {j}"),
    (300, 0, "recv_waking  clock {s} {u} node {p} from {left} type 1 lth {size}"),
    (300, 199, "compstats  clock {s} {u} node {p} busy 0 0 idle {i} {j}"),
)
#: As MPICL writes it, with a user event.
PICL_2 = (
    (0, 0, "-3 7 {s}.{u:06d} {p} 0 0 2"),
    (100, 0, "-4 7 {s}.{u:06d} {p} 0 0 2"),
    (101, 0, "-3 -21 {s}.{u:06d} {p} 0 3 2 {size} 1 {right}"),
    (131, 0, "-4 -21 {s}.{u:06d} {p} 0 0"),
    (132, 0, "-3 -52 {s}.{u:06d} {p} 0 2 2 1 {left}"),
    (300, 0, "-4 -52 {s}.{u:06d} {p} 0 3 2 {size} 1 {left}"),
)


def write_ring(
    path: Path, records: int, script: tuple[tuple[int, int, str], ...], first: str, last: str
) -> None:
    """That many records of a script, sorted by time, between a first and a last line of every processor."""
    rng = np.random.default_rng(5)
    steps = -(-records // (len(script) * PROCESSORS))
    with path.open("w", encoding="ascii") as file:
        file.writelines(first.format(p=p) for p in range(PROCESSORS))
        for begin in range(0, steps, STEPS_AT_ONCE):
            step = np.arange(begin, min(begin + STEPS_AT_ONCE, steps))
            at = STEP * step[:, None] + rng.integers(0, 600, (len(step), PROCESSORS))
            node = np.broadcast_to(np.arange(PROCESSORS), at.shape).ravel().tolist()
            stamps, lines = [], []
            for offset, total, line in script:
                stamp = (at + offset).ravel()
                stamps.append(stamp)
                idle = np.repeat(199 * step + total, PROCESSORS)
                columns = (*np.divmod(stamp, 10**6), *np.divmod(idle, 10**6), 8 + (stamp & 1016))
                for s, u, i, j, size, p in zip(*(x.tolist() for x in columns), node, strict=True):
                    left, right = (p - 1) % PROCESSORS, (p + 1) % PROCESSORS
                    lines.append(line.format(s=s, u=u, p=p, i=i, j=j, size=size, left=left, right=right))
            order = np.argsort(np.concatenate(stamps), kind="stable")
            file.write("\n".join([lines[k] for k in order.tolist()]) + "\n")
        file.writelines(last.format(p=p, s=steps * STEP // 10**6 + 1) for p in range(PROCESSORS))


def write_curve(path: Path, rows: int) -> None:
    """Seconds and processors, as comma-separated values."""
    rng = np.random.default_rng(17)
    edges = np.cumsum(rng.integers(1, 1000, rows))
    level = rng.integers(0, PROCESSORS, rows)
    with path.open("w", encoding="ascii") as file:
        file.write("time,processors\n")
        for k in range(0, rows, 1 << 18):
            block = zip(edges[k : k + (1 << 18)].tolist(), level[k : k + (1 << 18)].tolist(), strict=True)
            file.write("".join(f"{t / 1e6:.6f},{h}\n" for t, h in block))


@dataclass(frozen=True)
class Kind:
    """A file to be written, and how pandas reads it best: separator and number of columns."""

    write: Callable[[Path, int], None]
    separator: str
    columns: int


def ring(script: tuple[tuple[int, int, str], ...], first: str, last: str) -> Callable[[Path, int], None]:
    return partial(write_ring, script=script, first=first + "\n", last=last + "\n")


KINDS = {
    "PICL A, compact": Kind(ring(COMPACT, "1 0 0 {p} 4 4 0", "19 {s} 0 {p} 0"), " ", 7),
    "PICL A, verbose": Kind(
        ring(
            VERBOSE,
            "trace_start  clock 0 0 node {p} event 4 compstats 4 commstats 0",
            "trace_exit  clock {s} 0 node {p} space 0",
        ),
        r"\s+",
        12,
    ),
    "PICL B": Kind(ring(PICL_2, "-3 -901 0.000000 {p} 0 0", "-4 -901 {s}.000000 {p} 0 0"), " ", 10),
    "curve": Kind(write_curve, ",", 2),
}


class Nowhere:
    """A sink that drops everything: what is left is the reading."""

    def __init__(self) -> None:
        self.report = ImportReport()
        self.defined = 0

    def describe(self, **facts: object) -> None: ...

    def location(self, location: object) -> int:
        self.defined += 1
        return self.defined - 1

    region = location

    def text(self, text: str) -> int:
        return 0

    def wants(self, location: int) -> bool:
        return True

    def append(self, table: str, location: int, **columns: object) -> None: ...


def read_nowhere(path: Path) -> None:
    sink = Nowhere()
    importers.detect(path).read(path, sink, Progress())
    assert not sink.report.lossy


def read_and_store(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        open_trace(path, output=Path(folder) / "trace.h5").close()


def read_pandas(path: Path, kind: Kind) -> None:
    """As numbers where they are numbers; words stay text, what a line does not have is missing."""
    import pandas

    names = [f"column {k}" for k in range(kind.columns)]
    pandas.read_csv(path, sep=kind.separator, names=names, skiprows=int(kind.separator == ","))


def measure(reader: str, kind: str, path: Path, small: Path) -> tuple[float, float, float]:
    """Seconds, seconds of processor time, and peak memory in MB, in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.text_import", reader, kind, str(path), str(small)]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(found[0]), float(found[1]), float(found[2])


def measured(reader: str, kind: str, path: Path, small: Path) -> None:
    readers = {
        "read": read_nowhere,
        "store": read_and_store,
        "pandas": partial(read_pandas, kind=KINDS[kind]),
    }
    read = readers[reader]
    read(small)  # loads what is compiled
    wall = cpu = float("inf")
    for _ in range(3):
        start, used = time.perf_counter(), time.process_time()
        read(path)
        wall, cpu = min(wall, time.perf_counter() - start), min(cpu, time.process_time() - used)
    print(wall, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    print("| file | records | MB | reader | s | processor s | records/s | MB/s | x pandas | peak MB |")
    print("| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        small, path = Path(folder) / "small", Path(folder) / "large"
        for name, kind in KINDS.items():
            kind.write(small, 100_000)
            for records in SIZES:
                kind.write(path, records)
                size = path.stat().st_size / 1e6
                found = {reader: measure(reader, name, path, small) for reader in ("pandas", "read", "store")}
                for reader, (wall, cpu, peak) in found.items():
                    ratio = found["pandas"][0] / wall
                    print(
                        f"| {name} | {records:,} | {size:.0f} | {reader} | {wall:.2f} | {cpu:.2f} "
                        f"| {records / wall:,.0f} | {size / wall:.0f} | {ratio:.2f} | {peak:.0f} |",
                        flush=True,
                    )


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        measured(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))

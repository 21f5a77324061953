"""How fast traces of text are imported, of each format, beside `pandas.read_csv` on the same bytes.

``python -m tests.benchmarks.text_import [RECORDS]`` writes a ring of processes that compute, send and wait:
PICL (format A compact and verbose, format B), OTF (text and zlib) and Paraver, and a curve; 2 and 8 million
records of each, to a temporary folder. Each is read in processes of its own, from the page cache: without a
store, through `open_trace` into one (with the check of clocks, the digests, the hash of the source), and by
pandas. Prints one Markdown table: seconds on the wall and of the processor (all threads), each the least of
four; records and MB of text per second on the wall; how many times faster that is than pandas, by the wall
and by the processor; and the peak memory of the process, which must not grow with the trace.
"""

from __future__ import annotations

import io
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from desktop.data import importers
from desktop.data.events import ImportReport
from desktop.data.importers import otf1
from desktop.data.opening import open_trace
from desktop.progress import Progress

SIZES = (2_000_000, 8_000_000)
REPEATS = 4
PROCESSORS = 64  # of PICL; the others have `RANKS`
RANKS = 8
STEP = 1000  # microseconds
STEPS_AT_ONCE = 512
APART = 190  # microseconds that two begin apart at most, so that no message is received before it is sent

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
            at = STEP * step[:, None] + rng.integers(0, APART, (len(step), PROCESSORS))
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


#: What a process of OTF does in a step: ticks after the beginning of its step, and the record.
OTF = (
    (10, "E1"),
    (20, "S{right:x}L400T7C1"),
    (30, "L1"),
    (300, "E2"),
    (350, "R{left:x}L400T7C1"),
    (360, "L2"),
)


def write_otf(path: Path, records: int, packed: bool) -> None:
    """A master file and the streams beside it, one for each process, every record with its time and process
    before it as the library of the format writes them."""
    steps = -(-records // (len(OTF) * RANKS))
    names = "".join(f'DP{p:x}NM"Process {p}"\n' for p in range(1, RANKS + 1))
    definitions = f'DTR3b9aca00\nDFG1NM"MPI"\nDF1G1NM"MPI_Send"\nDF2G1NM"MPI_Recv"\n{names}'
    end = ".z" if packed else ""
    for process in range(RANKS + 1):
        packer = zlib.compressobj(4)
        name = f"{path.stem}.{process:x}.events{end}" if process else f"{path.stem}.0.def{end}"
        with (path.parent / name).open("wb") as file:

            def write(text: str, packer: zlib._Compress = packer, file: io.BufferedWriter = file) -> None:
                data = text.encode()
                file.write(packer.compress(data) + packer.flush(zlib.Z_FULL_FLUSH) if packed else data)

            if not process:
                write(definitions)
                continue
            near = {"left": (process - 2) % RANKS + 1, "right": process % RANKS + 1}
            script = [(after, record.format(**near)) for after, record in OTF]
            for begin in range(0, steps, 1 << 12):
                write(
                    "".join(
                        f"{step * STEP + process + after:x}\n*{process:x}\n{record}\n"
                        for step in range(begin, min(begin + (1 << 12), steps))
                        for after, record in script
                    )
                )
            write(f"{(steps - 1) * STEP + process + OTF[-1][0]:x}\n*{process:x}\n")
    path.write_text("".join(f"{p:x}:{p:x}\n" for p in range(1, RANKS + 1)))


def otf_text(path: Path) -> list[bytes]:
    """What its streams of events hold."""
    found = []
    for file in otf1.files(path)[1:]:
        if ".events" in file.name:
            data = file.read_bytes()
            found.append(zlib.decompressobj().decompress(data) if file.suffix == ".z" else data)
    return found


#: The same of Paraver.
PARAVER = (
    "1:{r}:1:{r}:1:{a}:{b}:1\n2:{r}:1:{r}:1:{b}:50000001:1\n1:{r}:1:{r}:1:{b}:{c}:4\n"
    "3:{r}:1:{r}:1:{b}:{b}:{q}:1:{q}:1:{d}:{d}:1024:7\n2:{r}:1:{r}:1:{c}:50000001:0:42000050:{a}\n"
    "2:{r}:1:{r}:1:{c}:50000001:2\n1:{r}:1:{r}:1:{c}:{d}:3\n2:{r}:1:{r}:1:{d}:50000001:0:42000050:{a}\n"
)


def write_paraver(path: Path, records: int) -> None:
    steps = records // (PARAVER.count("\n") * RANKS)
    tasks = ",".join(["1:1"] * RANKS)
    with path.open("w", encoding="ascii") as file:
        file.write(
            f"#Paraver (21/11/2026 at 04:00):{STEP * (steps + 10)}_ns:1({RANKS}):1:{RANKS}({tasks}),1\n"
        )
        file.write(f"c:1:1:{RANKS}:{':'.join(str(r) for r in range(1, RANKS + 1))}\n")
        for step in range(steps):
            for rank in range(1, RANKS + 1):
                at = 10_000 + STEP * step + 7 * rank
                times = {"a": at, "b": at + 700 - step % 90, "c": at + 800, "d": at + 1000}
                file.write(PARAVER.format(r=rank, q=rank % RANKS + 1, **times))


def read_csv(path: Path, separator: str, columns: int, skipped: int = 0) -> None:
    """As numbers where they are numbers; words stay text, what a line does not have is missing."""
    import pandas

    names = [f"column {k}" for k in range(columns)]
    pandas.read_csv(path, sep=separator, names=names, skiprows=skipped)


def read_otf_csv(path: Path) -> None:
    """The lines as one column of text, which is as far as it gets; an unfinished zlib stream is none that it
    reads, so it gets what that inflates to."""
    import pandas

    for content in otf_text(path):
        pandas.read_csv(io.BytesIO(content), header=None, names=["line"], dtype=str)


def size_of(path: Path) -> int:
    """Bytes of text."""
    return sum(map(len, otf_text(path))) if path.suffix == ".otf" else path.stat().st_size


@dataclass(frozen=True)
class Kind:
    """A trace to be written to a file of that name, and how pandas reads it best."""

    name: str
    write: Callable[[Path, int], None]
    pandas: Callable[[Path], None]


def ring(script: tuple[tuple[int, int, str], ...], first: str, last: str) -> Callable[[Path, int], None]:
    return partial(write_ring, script=script, first=first + "\n", last=last + "\n")


KINDS = {
    "PICL A, compact": Kind(
        "ring.trf",
        ring(COMPACT, "1 0 0 {p} 4 4 0", "19 {s} 0 {p} 0"),
        partial(read_csv, separator=" ", columns=7),
    ),
    "PICL A, verbose": Kind(
        "ring.trf",
        ring(
            VERBOSE,
            "trace_start  clock 0 0 node {p} event 4 compstats 4 commstats 0",
            "trace_exit  clock {s} 0 node {p} space 0",
        ),
        partial(read_csv, separator=r"\s+", columns=12),
    ),
    "PICL B": Kind(
        "ring.trf",
        ring(PICL_2, "-3 -901 0.000000 {p} 0 0", "-4 -901 {s}.000000 {p} 0 0"),
        partial(read_csv, separator=" ", columns=10),
    ),
    "OTF": Kind("ring.otf", partial(write_otf, packed=False), read_otf_csv),
    "OTF, zlib": Kind("ring.otf", partial(write_otf, packed=True), read_otf_csv),
    "Paraver": Kind("ring.prv", write_paraver, partial(read_csv, separator=":", columns=15, skipped=2)),
    "curve": Kind("curve.csv", write_curve, partial(read_csv, separator=",", columns=2, skipped=1)),
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

    region = text = location

    def metric(self, name: str, about: object) -> int:
        return self.location(name)

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


READERS = ("pandas", "reading", "import")


def measure(reader: str, kind: str, path: Path, small: Path) -> tuple[float, float, float]:
    """Seconds, seconds of processor time, and peak memory in MB, in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.text_import", reader, kind, str(path), str(small)]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(found[0]), float(found[1]), float(found[2])


def measured(reader: str, kind: str, path: Path, small: Path) -> None:
    read = {"reading": read_nowhere, "import": read_and_store, "pandas": KINDS[kind].pandas}[reader]
    read(small)  # loads what is compiled
    wall = cpu = float("inf")
    for _ in range(REPEATS):
        start, used = time.perf_counter(), time.process_time()
        read(path)
        wall, cpu = min(wall, time.perf_counter() - start), min(cpu, time.process_time() - used)
    print(wall, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main(sizes: tuple[int, ...]) -> None:
    print("| trace | records | MB | reader | s | CPU s | records/s | MB/s | x pandas | by CPU | peak MB |")
    print("| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, kind in KINDS.items():
        for records in sizes:
            with tempfile.TemporaryDirectory() as small, tempfile.TemporaryDirectory() as folder:
                few, path = Path(small) / kind.name, Path(folder) / kind.name
                kind.write(few, 100_000)
                kind.write(path, records)
                size = size_of(path) / 1e6
                found = {reader: measure(reader, name, path, few) for reader in READERS}
            least = found["pandas"]
            for reader, (wall, cpu, peak) in found.items():
                print(
                    f"| {name} | {records:,} | {size:.0f} | {reader} | {wall:.2f} | {cpu:.2f} "
                    f"| {records / wall:,.0f} | {size / wall:.0f} | {least[0] / wall:.2f} "
                    f"| {least[1] / cpu:.2f} | {peak:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    if len(sys.argv) <= 2:
        main((int(sys.argv[1]),) if len(sys.argv) == 2 else SIZES)
    else:
        measured(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))

"""How fast OTF traces are imported, beside `pandas.read_csv` on the same bytes.

``python -m tests.benchmarks.otf1_import [EVENTS]`` writes traces in the short form, as text and as zlib, to a
temporary folder. Each is read in processes of their own from the page cache: without a store, and through
`open_trace` into one (with the check of clocks and the hash of the source). Prints the best of three and the
peak memory of the process, the latter for half and twice as many events too.
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
from pathlib import Path

from desktop.data.events import ImportReport
from desktop.data.importers import otf1
from desktop.data.opening import open_trace
from desktop.progress import Progress

PROCESSES = 8
STEP = 1000  # ticks
#: What a process does in a step of a ring: ticks after the beginning of its step, and the record.
SCRIPT = (
    (10, "E1"),
    (20, "S{right:x}L400T7C1"),
    (30, "L1"),
    (300, "E2"),
    (350, "R{left:x}L400T7C1"),
    (360, "L2"),
)


def write_trace(folder: Path, events: int, packed: bool) -> Path:
    """So many records, one stream for each process, every record with its time and process before it as the
    library of the format writes them."""
    folder.mkdir()
    steps = -(-events // (len(SCRIPT) * PROCESSES))
    names = "".join(f'DP{p:x}NM"Process {p}"\n' for p in range(1, PROCESSES + 1))
    definitions = f'DTR3b9aca00\nDFG1NM"MPI"\nDF1G1NM"MPI_Send"\nDF2G1NM"MPI_Recv"\n{names}'
    end = ".z" if packed else ""
    for process in range(PROCESSES + 1):
        packer = zlib.compressobj(4)
        name = f"ring.{process:x}.events{end}" if process else f"ring.0.def{end}"
        with (folder / name).open("wb") as file:

            def write(text: str, packer: zlib._Compress = packer, file: io.BufferedWriter = file) -> None:
                data = text.encode()
                file.write(packer.compress(data) + packer.flush(zlib.Z_FULL_FLUSH) if packed else data)

            if not process:
                write(definitions)
                continue
            near = {"left": (process - 2) % PROCESSES + 1, "right": process % PROCESSES + 1}
            script = [(after, record.format(**near)) for after, record in SCRIPT]
            for begin in range(0, steps, 1 << 12):
                write(
                    "".join(
                        f"{step * STEP + process + after:x}\n*{process:x}\n{record}\n"
                        for step in range(begin, min(begin + (1 << 12), steps))
                        for after, record in script
                    )
                )
            write(f"{(steps - 1) * STEP + process + SCRIPT[-1][0]:x}\n*{process:x}\n")
    master = folder / "ring.otf"
    master.write_text("".join(f"{p:x}:{p:x}\n" for p in range(1, PROCESSES + 1)))
    return master


class Nowhere:
    """A sink that drops everything: what is left is the reading."""

    def __init__(self) -> None:
        self.report = ImportReport()
        self.defined = self.rows = 0

    def describe(self, **facts: object) -> None: ...

    def location(self, location: object) -> int:
        self.defined += 1
        return self.defined - 1

    region = location

    def text(self, text: str) -> int:
        return 0

    def wants(self, location: int) -> bool:
        return True

    def append(self, table: str, location: int, **columns: object) -> None:
        self.rows += len(columns["time"])  # type: ignore[arg-type]  # an array


def read_nowhere(master: Path) -> int:
    sink = Nowhere()
    otf1.IMPORTER.read(master, sink, Progress())
    return sink.rows


def read_and_store(master: Path) -> int:
    with (
        tempfile.TemporaryDirectory() as folder,
        open_trace(master, output=Path(folder) / "trace.h5") as store,
    ):
        return sum(location.records for location in store.locations)


def read_csv(master: Path) -> int:
    """The lines as one column of text, which is as far as it gets; an unfinished zlib stream is none that it
    reads, so it gets what that inflates to."""
    import pandas

    lines = 0
    for file in otf1.files(master)[1:]:
        if ".events" in file.name:
            data = file.read_bytes()
            content = zlib.decompressobj().decompress(data) if file.suffix == ".z" else data
            lines += len(pandas.read_csv(io.BytesIO(content), header=None, names=["line"], dtype=str))
    return lines // 3


READERS: dict[str, Callable[[Path], int]] = {
    "Phasewright, reading": read_nowhere,
    "Phasewright, reading and storing (HDF5)": read_and_store,
    "pandas.read_csv, lines as text": read_csv,
}


def measure(reader: str, master: Path) -> list[float]:
    """Events; seconds and processor seconds (all threads), each the least of three; peak memory in MB: in a
    process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.otf1_import", reader, str(master)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [float(number) for number in said.split()]


def run(reader: str, master: Path) -> None:
    """In that process."""
    seconds, work, events = [], [], 0
    for _ in range(3):
        start, before = time.perf_counter(), time.process_time()
        events = READERS[reader](master)
        seconds.append(time.perf_counter() - start)
        work.append(time.process_time() - before)
    print(events, min(seconds), min(work), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main(events: int) -> None:
    print("| trace | reader | events | events/s | MB/s of text | events per CPU second | peak MB |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as name:
        sizes = {}
        for packed in (False, True):
            kind = "zlib" if packed else "text"
            for size in (events, events // 2, 2 * events):
                master = write_trace(Path(name) / f"{kind}-{size}", size, packed)
                sizes.setdefault(size, sum(file.stat().st_size for file in otf1.files(master)))
                for reader in READERS:
                    if size != events and READERS[reader] is read_csv:
                        continue
                    read, seconds, work, peak = measure(reader, master)
                    speed = sizes[size] / seconds / 1e6
                    print(
                        f"| {kind} | {reader} | {read:,.0f} | {read / seconds:,.0f} | {speed:.0f} "
                        f"| {read / work:,.0f} | {peak:.0f} |",
                        flush=True,
                    )


if __name__ == "__main__":
    if len(sys.argv) == 3:
        run(sys.argv[1], Path(sys.argv[2]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000)

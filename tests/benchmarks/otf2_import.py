"""How fast OTF2 is imported: our decoder, the library's engine, the wheel's Python reader, a C reader that
does nothing.

``python -m tests.benchmarks.otf2_import [EVENTS]`` writes an archive, reads it in each way in one process
from the page cache, and prints two tables: events per second (the best of several runs, by the clock on the
wall and by processor time), and the peak memory of an import at two sizes, each in a process of its own.
Without the `otf2` wheel, the rows that need it are left out.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numba import cfunc, types

from desktop.data.events import ImportReport
from desktop.data.importers import otf2 as our
from desktop.data.importers._otf2.engine import Engine
from desktop.data.importers._otf2.files import Files
from desktop.data.store import Source, StoreWriter
from desktop.progress import Progress
from tests.data_layer.otf2_writer import Event, Place, Writer, write
from tests.oracles.otf2_callbacks import compiled
from tests.oracles.otf2_library import LibraryEngine, library

RANKS = 8
CHUNK = 1 << 20
PYTHON_EVENTS = 200_000  # the Python reader is read so far, for it would take minutes
REGIONS = {1: "MPI_Send", 2: "MPI_Recv"}
HAS_LIBRARY = find_spec("_otf2") is not None


def write_archive(folder: Path, events: int) -> Path:
    """A ring of ranks: compute, send to the right, receive from the left; six records a step."""
    anchor = write(folder, [Place(rank) for rank in range(RANKS)], regions=REGIONS, chunk=CHUNK)
    to = Writer("<", CHUNK)
    steps = -(-events // (6 * RANKS))
    for rank in range(RANKS):
        step = [
            Event(1, "Enter", (1,)),
            Event(10, "MpiSend", ((rank + 1) % RANKS, 0, 7, 1024)),
            Event(20, "Leave", (1,)),
            Event(300, "Enter", (2,)),
            Event(350, "MpiRecv", ((rank - 1) % RANKS, 0, 7, 1024)),
            Event(360, "Leave", (2,)),
        ]
        records = [b"\x05" + to.raw("Q", event.time) + to.event(event) for event in step]
        once = np.frombuffer(b"".join(records), np.uint8)
        stamps = np.cumsum([0, *map(len, records[:-1])]) + 1
        a_chunk = (CHUNK - 20) // once.size
        with (folder / "traces" / f"{rank}.evt").open("wb") as file:
            for first in range(0, steps, a_chunk):
                n = min(a_chunk, steps - first)
                body = np.tile(once, (n, 1))
                for at, event in zip(stamps, step, strict=True):
                    times = (1000 + rank + event.time + 1000 * np.arange(first, first + n)).astype("<u8")
                    body[:, at : at + 8] = times.view(np.uint8).reshape(n, 8)
                head = b"\x03\x42" + to.raw("Q", 6 * first + 1) + to.raw("Q", 6 * (first + n))
                last = first + n == steps
                data = head + body.tobytes()
                file.write(data + b"\x02\x01" if last else data.ljust(CHUNK, b"\0"))
    return anchor


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


def read_nowhere(anchor: Path, engine: type[Engine] = Files) -> None:
    our.read(anchor, Nowhere(), Progress(), engine)


def read_by_library(anchor: Path) -> None:
    read_nowhere(anchor, LibraryEngine)


def read_and_store(anchor: Path, engine: type[Engine] = Files) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Source(str(anchor), anchor.name)
        with StoreWriter(Path(folder) / "trace.h5", source, our.IMPORTER) as writer:
            our.read(anchor, writer, Progress(), engine)


def store_by_library(anchor: Path) -> None:
    read_and_store(anchor, LibraryEngine)


def decode(anchor: Path) -> None:
    """Our decoder alone: bytes to the buffer."""
    engine = Files(our.Anchor.read(anchor), our.RECORDS)
    for rank in range(RANKS):
        for _block in engine.events(rank, engine.local(rank), 1 << 60):
            pass
    engine.close()


def read_in_python(anchor: Path, events: int = PYTHON_EVENTS) -> int:
    """The wheel's `otf2.reader`, the first `events` events; how many there were."""
    import otf2

    read = 0
    with otf2.reader.open(str(anchor)) as trace:
        for _location, _event in trace.events:
            read += 1
            if read == events:
                break
    return read


def empty(location, time, position, data, attributes):  # type: ignore[no-untyped-def]  # compiled
    return 0


def read_emptily(anchor: Path) -> None:
    """The C library alone: an empty native callback for every record, no definitions."""
    lib = library()
    lib.silence()
    five = (types.uint64, types.uint64, types.uint64, types.voidptr, types.voidptr)
    native = cfunc(types.int32(*five))(empty)
    reader = lib.Reader_Open(bytes(anchor))
    lib.Reader_SetSerialCollectiveCallbacks(reader)
    callbacks = lib.EvtReaderCallbacks_New()
    for record in compiled():
        lib.set_callback("EvtReader", record, callbacks, native.address)
    read = ctypes.c_uint64()
    for location in range(RANKS):
        lib.Reader_SelectLocation(reader, location)
    lib.Reader_OpenEvtFiles(reader)
    for location in range(RANKS):
        events = lib.Reader_GetEvtReader(reader, location)
        lib.Reader_RegisterEvtCallbacks(reader, events, callbacks, None)
        while not lib.Reader_ReadLocalEvents(reader, events, our.RECORDS, ctypes.byref(read)):
            if read.value < our.RECORDS:
                break
        lib.Reader_CloseEvtReader(reader, events)
    lib.Reader_CloseEvtFiles(reader)
    lib.EvtReaderCallbacks_Delete(callbacks)
    lib.Reader_Close(reader)


READERS: dict[str, Callable[[Path], object]] = {
    "Phasewright, reading and storing (HDF5)": read_and_store,
    "Phasewright, reading": read_nowhere,
    "Phasewright, decoding only": decode,
}
LIBRARY_READERS: dict[str, Callable[[Path], object]] = {
    "libotf2's engine, reading and storing": store_by_library,
    "libotf2's engine, reading": read_by_library,
    "libotf2, empty callbacks": read_emptily,
}
PYTHON = "otf2.reader (Python, of the wheel)"


def rate(read: Callable[[Path], object], anchor: Path, events: int, repeats: int) -> tuple[float, float]:
    """Events per second by the wall clock and of processor time, the best of `repeats`."""
    wall = processor = float("inf")
    for _ in range(repeats):
        start, busy = time.perf_counter(), time.process_time()
        read(anchor)
        wall = min(wall, time.perf_counter() - start)
        processor = min(processor, time.process_time() - busy)
    return events / wall, events / processor


def peak(anchor: Path) -> float:
    """MB that a process needs at most to import an archive into a store."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.otf2_import", "--peak", str(anchor)],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def main(events: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        anchor = write_archive(Path(folder) / "archive", events)
        events = -(-events // (6 * RANKS)) * 6 * RANKS
        size = sum(file.stat().st_size for file in our.files(anchor))
        readers = READERS | (LIBRARY_READERS if HAS_LIBRARY else {})
        rates = {}
        for name, read in readers.items():
            read(anchor)  # compiles
            rates[name] = rate(read, anchor, events, 7)
        if HAS_LIBRARY:
            rates[PYTHON] = rate(read_in_python, anchor, min(events, PYTHON_EVENTS), 1)
        print(f"{events} events, {RANKS} locations, {size / 1e6:.1f} MB\n")
        print("| reader | events/s | events/s of processor time |\n| --- | ---: | ---: |")
        for name, (wall, processor) in rates.items():
            print(f"| {name} | {wall:,.0f} | {processor:,.0f} |")
        larger = write_archive(Path(folder) / "larger", 8 * events)
        print("\n| events | peak memory of an import, MB |\n| ---: | ---: |")
        for n, of in ((events, anchor), (8 * events, larger)):
            print(f"| {n} | {peak(of):.0f} |")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield write_archive(tmp_path_factory.mktemp("otf2") / "archive", 200_000)


@pytest.mark.parametrize("read", [*READERS.values(), *(LIBRARY_READERS.values() if HAS_LIBRARY else ())])
def test_reading(benchmark: Callable[..., object], archive: Path, read: Callable[[Path], object]) -> None:
    read(archive)
    benchmark.pedantic(read, args=(archive,), rounds=5)  # type: ignore[attr-defined]  # untyped fixture


if __name__ == "__main__":
    if "--peak" in sys.argv:
        import resource  # not on Windows

        read_and_store(Path(sys.argv[-1]))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000)

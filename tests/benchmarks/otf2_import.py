"""How fast OTF2 is imported, beside the wheel's own Python reader and a C reader that does nothing.

``python -m tests.benchmarks.otf2_import [EVENTS]`` writes an archive with the wheel's writer, reads it in
each way in this one process, and prints the table. Every reader gets the same files from the page cache.
"""

from __future__ import annotations

import ctypes
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from numba import types

from desktop.core.jit import callback
from desktop.data.events import ImportReport
from desktop.data.importers import otf2 as our
from desktop.data.importers._otf2.library import library
from desktop.data.importers._otf2.callbacks import compiled
from desktop.data.store import Source, StoreWriter
from desktop.progress import Progress

otf2 = pytest.importorskip("otf2", reason="the wheel exists for Linux x86-64 and Python 3.11 only")

RANKS = 8
PYTHON_EVENTS = 200_000  # the Python reader is read so far, for it would take minutes


def write_archive(folder: Path, events: int) -> Path:
    """A ring of ranks: compute, send to the right, receive from the left; six records a step."""
    with otf2.writer.open(str(folder), timer_resolution=1_000_000_000) as archive:
        root = archive.definitions.system_tree_node("node")
        places, writers = [], []
        for rank in range(RANKS):
            group = archive.definitions.location_group(f"Rank {rank}", system_tree_parent=root)
            places.append(archive.definitions.location("Master thread", group=group))
            writers.append(archive.event_writer_from_location(places[-1]))
        mpi = {"paradigm": otf2.Paradigm.MPI, "region_role": otf2.RegionRole.POINT2POINT}
        send = archive.definitions.region("MPI_Send", **mpi)
        receive = archive.definitions.region("MPI_Recv", **mpi)
        world = archive.definitions.group(
            "", group_type=otf2.GroupType.COMM_LOCATIONS, paradigm=otf2.Paradigm.MPI, members=places
        )
        ranks = archive.definitions.group(
            "", group_type=otf2.GroupType.COMM_GROUP, paradigm=otf2.Paradigm.MPI, members=range(RANKS)
        )
        assert world is not ranks
        comm = archive.definitions.comm("MPI_COMM_WORLD", group=ranks)
        for rank, writer in enumerate(writers):
            at = 1000 + rank
            for _ in range(-(-events // (6 * RANKS))):
                writer.enter(at, send)
                writer.mpi_send(at + 10, (rank + 1) % RANKS, comm, 7, 1024)
                writer.leave(at + 20, send)
                writer.enter(at + 300, receive)
                writer.mpi_recv(at + 350, (rank - 1) % RANKS, comm, 7, 1024)
                writer.leave(at + 360, receive)
                at += 1000
    return folder / "traces.otf2"


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

    def append(self, table: str, location: int, **columns: object) -> None: ...


def read_nowhere(anchor: Path) -> None:
    our.IMPORTER.read(anchor, Nowhere(), Progress())


def read_and_store(anchor: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Source(str(anchor), anchor.name)
        with StoreWriter(Path(folder) / "trace.h5", source, our.IMPORTER) as writer:
            our.IMPORTER.read(anchor, writer, Progress())


def read_in_python(anchor: Path, events: int = PYTHON_EVENTS) -> int:
    """The wheel's `otf2.reader`, the first `events` events; how many there were."""
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
    native = callback(types.int32(*five))(empty)
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


def rate(read: Callable[[Path], object], anchor: Path, events: int, repeats: int) -> float:
    """Events per second, the best of `repeats`."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        read(anchor)
        best = min(best, time.perf_counter() - start)
    return events / best


def main(events: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        anchor = write_archive(Path(folder) / "archive", events)
        events = -(-events // (6 * RANKS)) * 6 * RANKS
        size = sum(file.stat().st_size for file in our.files(anchor))
        read_nowhere(anchor)  # compiles
        python = rate(read_in_python, anchor, min(events, PYTHON_EVENTS), 1)
        rates = {
            "otf2.reader (Python, of the wheel)": python,
            "Phasewright, reading and storing (HDF5)": rate(read_and_store, anchor, events, 3),
            "Phasewright, reading": rate(read_nowhere, anchor, events, 3),
            "libotf2, empty callbacks": rate(read_emptily, anchor, events, 3),
        }
        c = rates["libotf2, empty callbacks"]
        print(f"{events} events, {RANKS} locations, {size / 1e6:.1f} MB\n")
        print("| reader | events/s | x Python reader | share of the C reader |\n| --- | ---: | ---: | ---: |")
        for name, value in rates.items():
            print(f"| {name} | {value:,.0f} | {value / python:.1f} | {value / c:.2f} |")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield write_archive(tmp_path_factory.mktemp("otf2") / "archive", 200_000)


@pytest.mark.parametrize("read", [read_in_python, read_and_store, read_nowhere, read_emptily])
def test_reading(benchmark: Callable[..., object], archive: Path, read: Callable[[Path], object]) -> None:
    read_nowhere(archive)
    benchmark.pedantic(read, args=(archive,), rounds=1 if read is read_in_python else 5)  # type: ignore[attr-defined]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000)

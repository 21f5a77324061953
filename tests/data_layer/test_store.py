"""The event store: whole or not at all, readable by anything, and distrustful of strangers' files."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.data.atomic import PartFile, remove_stale
from desktop.data.events import TABLES, Activity, Importer, Location, Region
from desktop.data.store import (
    BESIDE,
    CHUNK,
    FORMER_CHUNKS,
    SCHEMA,
    Source,
    StoreWriter,
    TraceStore,
    open_store,
)
from desktop.errors import StoreError, TraceFormatError
from desktop.progress import Cancelled

IMPORTER = Importer("made", "Made for tests", "3", lambda p, h: True, lambda p, s, g: None, lambda p: [p])


def writer(path: Path) -> StoreWriter:
    return StoreWriter(path, Source("/from/made.trace", "made.trace", 12, "ab" * 32), IMPORTER)


def events(rows: int, seed: int = 1, regions: int = 4) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "time": np.cumsum(rng.integers(0, 50, rows)) + 7 * 10**15,
        "kind": rng.integers(0, 2, rows).astype(np.uint8),
        "region": rng.integers(0, regions, rows).astype(np.uint32),
    }


def write(path: Path, rows: int = 3 * CHUNK + 5, fill: Callable[[StoreWriter], None] | None = None) -> None:
    """Two locations, the first with `rows` events."""
    with writer(path) as store:
        store.describe(ticks_per_second=1e9, nesting="strongest", repair=True, notes={"level": 2})
        for name in ("solve", "MPI_Send", "MPI_Recv", "sum"):
            store.region(Region(name, "function", "mpi" if name.startswith("MPI") else "user"))
        store.location(Location(2**63 + 11, "rank 0", 0, process="node7"))
        store.location(Location(5, "rank 1", 1, base=Activity.IDLE, half_width=np.inf, damage="ends early"))
        store.append("events", 0, **events(rows))
        store.append("events", 1, **events(10, 2))
        store.report.add("cut", "loss", "The events end early.", where="byte 40")
        if fill is not None:
            fill(store)


def read(store: TraceStore, table: str, location: int) -> dict[str, np.ndarray]:
    return {name: store.column(table, name, location) for name in TABLES[table]}


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


# --- what goes in comes out ---


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.lists(st.integers(0, CHUNK + 3000), max_size=4), min_size=1, max_size=3),
    st.sampled_from(sorted(set(TABLES) - {"curve"})),
)
def test_rows_come_back_whatever_the_blocks(
    tmp_path_factory: pytest.TempPathFactory, blocks: list[list[int]], table: str
) -> None:
    """Before the file is complete, from the finished file, and with plain h5py."""
    path = tmp_path_factory.mktemp("store") / "made.h5"
    rng = np.random.default_rng(len(blocks))
    given_rows: list[dict[str, np.ndarray]] = []
    with writer(path) as store:
        store.describe(ticks_per_second=1e9)
        store.region(Region("r"))
        store.text("Allreduce")
        for location, sizes in enumerate(blocks):
            store.location(Location(location))
            rows = sum(sizes)
            columns = {
                name: np.zeros(rows, dtype)
                if name in ("region", "operation", "text", "metric", "root", "peer")
                else np.sort(rng.integers(0, 2, rows)).astype(dtype)
                for name, dtype in TABLES[table].items()
            }
            for name in ("time", "begin", "end", "tag", "bytes", "value"):
                if name in columns:
                    columns[name] = np.sort(rng.integers(-(2**60), 2**60, rows)).astype(columns[name].dtype)
            if "end" in columns:
                columns["end"] = columns["begin"] + 1
            given_rows.append(columns)
            at = 0
            for size in sizes:
                part = {name: column[at : at + size] for name, column in columns.items()}
                store.append(table, location, **part)
                at += size
        for location, columns in enumerate(given_rows):
            names = tuple(TABLES[table])
            early = list(store.blocks(table, location, rows=50_000))
            found = {
                n: np.concatenate([np.empty(0, columns[n].dtype), *(b[i] for b in early)])
                for i, n in enumerate(names)
            }
            assert same(found, columns)
    with open_store(path) as opened:
        for location, columns in enumerate(given_rows):
            assert same(read(opened, table, location), columns)
            assert opened.rows(table, location) == columns[next(iter(columns))].size
    with h5py.File(path, "r", locking=False) as plain:
        for name in TABLES[table] if f"tables/{table}" in plain else ():
            stored = plain[f"tables/{table}/{name}"]
            assert (stored.compression, stored.shuffle, stored.chunks) == ("gzip", True, (CHUNK,))
            np.testing.assert_array_equal(stored[:], np.concatenate([c[name] for c in given_rows]))


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_any_rows_can_be_had(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Of this and of the former size of chunks, across chunks and across locations."""
    path = tmp_path_factory.mktemp("store") / "made.h5"
    chunk = data.draw(st.sampled_from([CHUNK, *FORMER_CHUNKS]))
    sizes = data.draw(st.lists(st.integers(0, 2 * chunk), min_size=1, max_size=3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("desktop.data.store.writer.CHUNK", chunk)
        with writer(path) as store:
            store.describe(ticks_per_second=1e9)
            for i in range(4):
                store.region(Region(f"r{i}"))
            for location, size in enumerate(sizes):
                store.location(Location(location))
                store.append("events", location, **events(size, seed=location))
    with open_store(path) as store:
        index, (time, region) = store.whole("events", "time", "region")
        for location, size in enumerate(sizes):
            want = events(size, seed=location)
            start, rows = index[location]
            assert rows == size
            np.testing.assert_array_equal(time[start : start + rows], want["time"])
            np.testing.assert_array_equal(region[start : start + rows], want["region"])
            for _ in range(4):
                a, b = sorted((data.draw(st.integers(0, size)), data.draw(st.integers(0, size))))
                for found, name in zip(store.part("events", location, a, b, *want), want, strict=True):
                    np.testing.assert_array_equal(found, want[name][a:b])
                    assert found.dtype == TABLES["events"][name]
        with pytest.raises(ValueError, match="no rows"):
            store.part("events", 0, 0, sizes[0] + 1, "time")


def test_a_damaged_chunk_is_a_sentence(tmp_path: Path) -> None:
    """Not of zlib, or of another length than its rows."""
    path = tmp_path / "made.h5"
    for packed in (b"no zlib at all", zlib.compress(b"1234"), zlib.compress(bytes(20 * CHUNK))):
        write(path)
        with h5py.File(path, "r+") as file:
            file["tables/events/time"].id.write_direct_chunk((0,), packed)
        with open_store(path) as store:
            with pytest.raises(StoreError, match="import the source again"):
                store.part("events", 0, 0, 5, "time")
            store.part("events", 0, CHUNK, CHUNK + 5, "time")


def test_the_description_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "made.h5"
    write(path, 1000)
    with open_store(path) as store:
        assert (store.ticks_per_second, store.nesting, store.repair) == (1e9, "strongest", True)
        assert store.notes == {"level": 2}
        first, second = store.locations
        rows = events(1000)
        assert (first.id, first.process, first.records) == (2**63 + 11, "node7", 1000)
        assert (first.first, first.last) == (rows["time"][0], rows["time"][-1])
        assert (second.base, second.half_width, second.damage) == (Activity.IDLE, np.inf, "ends early")
        assert store.regions[1] == Region("MPI_Send", "function", "mpi")
        assert store.report.lossy and store.report.findings["cut"].where == "byte 40"
        assert (store.source.name, store.source.sha256) == ("made.trace", "ab" * 32)
        assert (store.importer.id, store.importer.version) == ("made", "3")
        enters = np.bincount(rows["region"][rows["kind"] == 0], minlength=4)
        assert store.tallies[0].enter == enters.sum() and store.tallies[0].leave == 1000 - enters.sum()
        (calls,) = store.blocks("calls", 0)
        assert dict(zip(*calls, strict=True)) == {i: n for i, n in enumerate(enters) if n}


def test_messages_are_counted_once(tmp_path: Path) -> None:
    def fill(store: StoreWriter) -> None:
        kinds = np.array([0, 1, 2, 3, 4, 5, 6], np.uint8)
        columns = {name: np.zeros(7, dtype) for name, dtype in TABLES["messages"].items()}
        store.append("messages", 1, **(columns | {"kind": kinds}))

    write(tmp_path / "made.h5", 10, fill)
    with open_store(tmp_path / "made.h5") as store:
        assert (store.tallies[1].sent, store.tallies[1].received) == (2, 2)


def test_reading_from_several_threads(tmp_path: Path) -> None:
    path = tmp_path / "made.h5"
    write(path)
    expected = events(3 * CHUNK + 5)
    wrong: list[str] = []
    with open_store(path) as store:

        def run() -> None:
            for _ in range(3):
                if not same(read(store, "events", 0), expected):
                    wrong.append("differs")

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


# --- rules of the sink ---


def late(store: StoreWriter) -> None:
    store.append("events", 1, **(events(2, 2) | {"time": np.array([3, 4])}))


def unsorted(store: StoreWriter) -> None:
    store.location(Location(9))
    store.append("events", 2, **(events(3) | {"time": np.array([5, 4, 6])}))


def interleaved(store: StoreWriter) -> None:
    store.append("events", 0, **events(1))


def unknown_region(store: StoreWriter) -> None:
    store.location(Location(9))
    store.append("events", 2, **(events(2) | {"region": np.array([0, 4])}))


def missing_column(store: StoreWriter) -> None:
    store.append("events", 1, time=np.array([1]))


def unequal(store: StoreWriter) -> None:
    store.append("marks", 1, time=np.array([1, 2]), text=np.array([0]))


def too_large(store: StoreWriter) -> None:
    store.append("events", 1, **(events(2) | {"kind": np.array([256, 0])}))


@pytest.mark.parametrize(
    ("fill", "says"),
    [
        (late, "goes back in time"),
        (unsorted, "goes back in time from 5 to 4"),
        (interleaved, "in one go"),
        (unknown_region, "events.region is 4, allowed are 0 to 3"),
        (missing_column, "has columns time, kind, region"),
        (unequal, r"shape \(1,\)"),
        (too_large, "do not fit into u1"),
    ],
)
def test_an_importer_that_breaks_the_rules_is_told(
    tmp_path: Path, fill: Callable[[StoreWriter], None], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        write(tmp_path / "made.h5", 10, fill)
    assert list(tmp_path.iterdir()) == []


def test_times_beyond_reason_are_refused(tmp_path: Path) -> None:
    def fill(store: StoreWriter) -> None:
        store.append("marks", 0, time=np.array([2**62]), text=np.array([store.text("x")]))

    with pytest.raises(TraceFormatError, match="location 9223372036854775819"):
        write(tmp_path / "made.h5", 10, fill)


# --- whole or not at all ---


@pytest.mark.parametrize("error", [Cancelled, OSError(28, "No space left on device"), KeyboardInterrupt])
def test_an_error_leaves_the_old_file(tmp_path: Path, error: type[BaseException] | BaseException) -> None:
    path = tmp_path / "made.h5"
    write(path, 20)
    before = path.read_bytes()

    def fill(store: StoreWriter) -> None:
        raise error

    with pytest.raises(error if isinstance(error, type) else type(error)):
        write(path, CHUNK + 1, fill)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written"):
        write(tmp_path / "missing" / "made.h5")


class Slow:
    """A digest that looks at everything late, and fails at some row."""

    def __init__(self, failing: float = np.inf) -> None:
        self.failing, self.rows, self.finished = failing, np.zeros(0, np.int64), False

    def take(self, table: str, location: int, block: Mapping[str, np.ndarray]) -> None:
        time.sleep(0.02)
        self.rows = np.append(self.rows, block["time"])
        if self.rows.size > self.failing:
            raise StoreError("cannot be written (no room)")

    def finish(self) -> None:
        self.finished = True

    def release(self) -> None:
        self.released = True


def append_one_array(path: Path, digest: Slow) -> list[int]:
    """Large and small blocks from the same array, used again; the times of all."""
    given: list[int] = []
    column = np.zeros(2 * BESIDE, np.int64)
    with StoreWriter(path, Source("made", "made"), IMPORTER, [lambda _: digest]) as store:
        store.describe(ticks_per_second=1e9)
        store.region(Region("solve", "function", "user"))
        store.location(Location(0))
        for rows in (BESIDE, 2 * BESIDE, 3, 2 * BESIDE, BESIDE, 7, 7, BESIDE, BESIDE, BESIDE, BESIDE, BESIDE):
            column[:rows] = len(given) + np.arange(rows)
            given += column[:rows].tolist()
            nothing = np.zeros(rows, np.int64)
            store.append("events", 0, time=column[:rows], kind=nothing, region=nothing)
    return given


def test_digests_may_be_late_and_see_all_in_order(tmp_path: Path) -> None:
    digest = Slow()
    given = append_one_array(tmp_path / "made.h5", digest)
    assert digest.finished and digest.released
    assert digest.rows.tolist() == given
    with open_store(tmp_path / "made.h5") as store:
        assert store.column("events", "time").tolist() == given


@pytest.mark.parametrize("failing", [0, 3 * BESIDE, 11 * BESIDE])
def test_a_digest_that_fails_leaves_no_file(failing: int, tmp_path: Path) -> None:
    digest = Slow(failing)
    with pytest.raises(StoreError, match="no room"):
        append_one_array(tmp_path / "made.h5", digest)
    assert digest.released and not digest.finished
    assert not list(tmp_path.iterdir())


VICTIM = """
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from tests.data_layer.test_store import write
with TemporaryDirectory() as folder:
    write(Path(folder) / "first.h5", 40_000)  # loads what is compiled
path = Path(sys.argv[1])
number = int(sys.argv[2])
print("ready", flush=True)
while True:
    number += 1
    write(path, 40_000 + number, lambda store: store.describe(ticks_per_second=number))
    print("written", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL on Windows")
def test_a_kill_at_any_moment_leaves_a_whole_file(tmp_path: Path) -> None:
    """The number of rows and the description must come from the same writing."""
    path = tmp_path / "made.h5"
    write(path, 40_000, lambda store: store.describe(ticks_per_second=1e-3))
    root = Path(__file__).parents[2]
    chance = random.Random(7)
    left_parts = 0
    seen = set()
    number = 0
    for turn in range(6):
        stale = set(tmp_path.glob("*.part"))
        victim = subprocess.Popen(
            [sys.executable, "-c", VICTIM, str(path), str(number)], stdout=subprocess.PIPE, cwd=root
        )
        assert victim.stdout is not None
        with victim.stdout:
            # However long a writing takes: some are complete, and another one has begun in half of the turns.
            for _ in range(1 + chance.randrange(3)):
                assert victim.stdout.readline()
            while turn % 2 and stale.issuperset(tmp_path.glob("*.part")):
                assert victim.poll() is None
            time.sleep(chance.uniform(0.0, 0.05))
            victim.send_signal(signal.SIGKILL)
            victim.wait()
        left_parts += len(list(tmp_path.glob("*.part")))
        with open_store(path) as store:
            found = store.ticks_per_second
            rows = store.rows("events", 0)
            assert rows == (40_000 if found == 1e-3 else 40_000 + int(found))
            assert same(read(store, "events", 0), events(rows))
            number = max(number, int(found))
            seen.add(found)
    assert left_parts > 0, "no kill came while a file was written"
    assert len(seen) > 1, "no writing was completed between two kills"
    write(path, 10)
    assert list(tmp_path.iterdir()) == [path], "parts of killed processes stay"


def test_a_part_in_use_is_not_taken_for_a_stale_one(tmp_path: Path) -> None:
    target = tmp_path / "made.h5"
    part = PartFile(target)
    other = PartFile(target)
    remove_stale(target)
    assert sorted(tmp_path.iterdir()) == sorted([part.part, other.part])
    part.part.write_bytes(b"one")
    other.part.write_bytes(b"two")
    part.commit()
    assert target.read_bytes() == b"one"
    other.commit()
    assert target.read_bytes() == b"two" and list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("rows", [10 * CHUNK, 40 * CHUNK])
def test_memory_does_not_grow_with_the_trace(
    tmp_path: Path, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One chunk per column and what is kept of others, whatever the number of rows: the same bound for four
    times as many."""
    monkeypatch.setattr("desktop.data.packing.KEPT", 1 << 20)
    block = events(CHUNK)
    tracemalloc.start()
    try:
        with writer(tmp_path / "made.h5") as store:
            store.describe(ticks_per_second=1e9)
            for name in "abcd":
                store.region(Region(name))
            store.location(Location(0))
            for i in range(rows // CHUNK):
                store.append("events", 0, **(block | {"time": block["time"] + i * 50 * CHUNK}))
            assert sum(time.size for time, *_ in store.blocks("events", 0)) == rows
        assert tracemalloc.get_traced_memory()[1] < 6 << 20
    finally:
        tracemalloc.stop()


# --- files from strangers ---


def attribute(name: str, value: object) -> Callable[[h5py.File], None]:
    return lambda file: file.attrs.__setitem__(name, value)


def replaced(name: str, value: np.ndarray, **how: object) -> Callable[[h5py.File], None]:
    def spoil(file: h5py.File) -> None:
        del file[name]
        file.create_dataset(name, data=value, **how)

    return spoil


def linked(name: str, link: object) -> Callable[[h5py.File], None]:
    def spoil(file: h5py.File) -> None:
        del file[name]
        file[name] = link

    return spoil


def external(file: h5py.File) -> None:
    del file["tables/events/time"]
    file.create_dataset(
        "tables/events/time", (1010,), "i8", external=[("/etc/passwd", 0, h5py.h5f.UNLIMITED)]
    )


def endless(file: h5py.File) -> None:
    for name in ("time", "kind", "region"):
        file[f"tables/events/{name}"].resize((10**15,))
    file["tables/events/index"][0] = (0, 10**15 - 10)
    file["tables/events/index"][1] = (10**15 - 10, 10)


def described(old: bytes, new: bytes) -> Callable[[h5py.File], None]:
    def spoil(file: h5py.File) -> None:
        text = file["description"][:].tobytes()
        assert old in text
        replaced("description", np.frombuffer(text.replace(old, new), np.uint8))(file)

    return spoil


INDEX = "tables/events/index"


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (attribute("schema", SCHEMA + 1), "newer version"),
        (attribute("schema", "one"), "no valid schema"),
        (attribute("format", "other"), "not an imported trace"),
        (linked("tables/events/time", h5py.SoftLink("/tables/events/region")), "link to another place"),
        (linked("tables/events", h5py.ExternalLink("other.h5", "/x")), "link to another place"),
        (linked("description", h5py.SoftLink("/tables/events/time")), "link to another place"),
        (external, "another file|chunks"),
        (endless, "incomplete"),
        (replaced("tables/events/time", np.zeros(1010)), "not a column of type i8"),
        (replaced("tables/events/time", np.zeros((1010, 1), np.int64)), "not a column"),
        (
            replaced("tables/events/kind", np.zeros(5, np.uint8), chunks=(CHUNK,), maxshape=(None,)),
            "differ in length",
        ),
        (replaced("tables/events/kind", np.zeros(1010, np.uint8)), "not in chunks"),
        (replaced(INDEX, np.zeros((2, 2), np.int64)), "does not cover"),
        (replaced(INDEX, np.array([[0, 1010], [5, 10]])), "does not cover"),
        (replaced(INDEX, np.array([[0, -1], [0, 1011]])), "negative"),
        (replaced(INDEX, np.array([[0, 1010]])), "no index"),
        (replaced("description", np.frombuffer(b"{", np.uint8)), "is damaged"),
        (
            described(b'"nesting":"strongest"', b'"nesting":"both"'),
            'nesting is "both", allowed are outermost, strongest',
        ),
        (described(b'"ticks_per_second":1000000000.0', b'"ticks_per_second":0'), "ticks_per_second is 0"),
        (described(b'"base":2', b'"base":17'), r"locations\[1\].base is 17, allowed are computing"),
        (described(b'"rank":0', b'"rank":"0"'), r"locations\[0\].rank is .0., it must be a whole number"),
        (described(b'"notes":{', b'"notes":{"cores":"two",'), "the note 'cores' is 'two'"),
        (described(b'"notes":{', b'"notes":{"communicator_names":5,'), "the note 'communicator_names' is 5"),
        (described(b'"name":"cut"', b'"nom":"cut"'), r"report\[0\].nom is not known"),
    ],
)
def test_a_strange_file_is_refused_with_a_sentence(
    tmp_path: Path, spoil: Callable[[h5py.File], None], says: str
) -> None:
    path = tmp_path / "made.h5"
    write(path, 1000)
    with h5py.File(path, "r+", locking=False) as file:
        spoil(file)
    with pytest.raises(StoreError, match=says) as caught:
        open_store(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_references_out_of_range_are_refused_on_reading(tmp_path: Path) -> None:
    path = tmp_path / "made.h5"
    write(path, 1000)
    with h5py.File(path, "r+", locking=False) as file:
        file["tables/events/region"][40] = 4
    with (
        open_store(path) as store,
        pytest.raises(StoreError, match=r"events.region is 4, allowed are 0 to 3"),
    ):
        list(store.blocks("events", 0))


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 30), st.booleans())
def test_random_damage_is_never_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, seed: int, bytes_changed: int, cut: bool
) -> None:
    path = tmp_path_factory.mktemp("store") / "made.h5"
    write(path, 300)
    content = bytearray(path.read_bytes())
    chance = random.Random(seed)
    for _ in range(bytes_changed):
        content[chance.randrange(len(content))] = chance.randrange(256)
    path.write_bytes(content[: chance.randrange(len(content))] if cut else content)
    try:
        with open_store(path) as store:
            for location in range(len(store.locations)):
                for table in TABLES:
                    read(store, table, location)
    except StoreError as error:
        assert "\n" not in str(error)

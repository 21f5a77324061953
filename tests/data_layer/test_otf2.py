"""The OTF2 importer against the reference tool's account of real archives, and against damage."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import numpy as np
import pytest

from desktop.data import importers
from desktop.data.events import Activity, MessageKind
from desktop.data.importers import otf2
from desktop.data.importers._otf2 import decoder
from desktop.data.opening import open_trace
from desktop.data.store import TraceStore
from desktop.data.utilization import Rules, build
from desktop.errors import TraceFormatError
from desktop.progress import Cancelled, Progress
from tests.data_layer.archives import NAMES, facts, unpack
from tests.data_layer.memory import Memory
from tests.data_layer.otf2_damage import fuzz
from tests.data_layer.otf2_writer import Event, Place
from tests.data_layer.otf2_writer import write as write_bytes
from tests.oracles.otf2_library import library

#: Messages to MPI_PROC_NULL, which EZTrace writes: one a step at each end of the line of ranks.
TO_NOBODY = {"ezt_wave1d_4": 2 * 80, "ezt_wave1d_8_dilated": 2 * 100}


def read(path: Path) -> Memory:
    memory = Memory()
    otf2.IMPORTER.read(path, memory, Progress())
    return memory


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    return unpack(request.param, tmp_path_factory.mktemp("otf2"))


@pytest.fixture(scope="module")
def store(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> TraceStore:
    with open_trace(archive, output=tmp_path_factory.mktemp("store") / "trace.h5") as opened:
        yield opened


@pytest.fixture
def farm(tmp_path: Path) -> Path:
    return unpack("mpt_farm_6_dilated", tmp_path)


# ---------------------------------------------------------------- sound archives


@pytest.mark.parametrize("archive", NAMES, indirect=True)
class TestReference:
    def test_records(self, archive: Path) -> None:
        want = facts()[archive.name]
        memory = read(archive)
        assert {str(at.id): at.records for at in memory.locations} == want["events_per_location"]
        assert memory.ticks_per_second == want["ticks_per_second"]
        assert min(at.first for at in memory.locations) == want["first_tick"]
        assert max(at.last for at in memory.locations) == want["last_tick"]
        assert not memory.report.lossy
        assert memory.repair == archive.name.startswith("ezt_")  # they alone have no clock offsets
        kinds = [memory.table("messages", i)["kind"] for i in range(len(memory.locations))]
        found = np.bincount(np.concatenate(kinds), minlength=len(MessageKind))
        for kind, record in {
            MessageKind.SEND: "MPI_SEND",
            MessageKind.ISEND: "MPI_ISEND",
            MessageKind.ISEND_COMPLETE: "MPI_ISEND_COMPLETE",
            MessageKind.RECV: "MPI_RECV",
            MessageKind.IRECV_POST: "MPI_IRECV_REQUEST",
            MessageKind.IRECV: "MPI_IRECV",
        }.items():
            nobody = TO_NOBODY.get(archive.name, 0) if kind == MessageKind.ISEND else 0
            assert found[kind] == want["events_by_type"].get(record, 0) - nobody, record
        ends = sum(memory.rows("collectives", i) for i in range(len(memory.locations)))
        assert ends == want["events_by_type"].get("MPI_COLLECTIVE_END", 0)

    def test_calls_and_balance(self, archive: Path) -> None:
        want = facts()[archive.name]
        memory = read(archive)
        calls: dict[str, int] = {}
        balance = {}
        own = [i for i, region in enumerate(memory.regions) if region.activity == Activity.UNMEASURED]
        for i, at in enumerate(memory.locations):
            events = memory.table("events", i)
            recorded = ~np.isin(events["region"], own)
            entered = events["kind"] == 0
            for region in events["region"][entered]:
                name = memory.regions[region].name
                calls[name] = calls.get(name, 0) + name.startswith("MPI_")
            balance[str(at.id)] = int((entered & recorded).sum() - (~entered & recorded).sum())
        assert {name: n for name, n in calls.items() if n} == want["mpi_calls"]
        assert {key: n for key, n in balance.items() if n} == want["unbalanced_enter_minus_leave"]

    def test_curve_as_recorded(self, archive: Path, store: TraceStore) -> None:
        """The facts call busy whatever is not in an ``MPI_*`` region, so every region is classed thus."""
        want = facts()[archive.name]["curve_as_recorded"]
        classes = {
            region.name: Activity.IDLE if region.name.startswith("MPI_") else Activity.COMPUTING
            for region in store.regions
        }
        if archive.name.startswith("ezt_openmp"):
            # Our rule for a team's threads is another: idle outside of parallel regions.
            thread = next(i for i, at in enumerate(store.locations) if at.thread > 0)
            busy = build(store, Rules(overrides=classes, repaired=False)).totals[thread, Activity.COMPUTING]
            assert busy < want["busy_ticks_per_location"][str(store.locations[thread].id)]
            return
        found = build(store, Rules(overrides=classes, repaired=False))
        busy = {str(at.id): int(found.totals[i, 0]) for i, at in enumerate(store.locations)}
        assert busy == want["busy_ticks_per_location"]
        level, width = found.count(Activity.COMPUTING), np.diff(found.edges)
        assert int(level @ width) == want["integral_busy_ticks"]
        assert level.max() == want["max_busy"]
        ticks = np.bincount(level.astype(int), weights=width).astype(int)
        assert {str(n): int(t) for n, t in enumerate(ticks) if t} == {
            n: t for n, t in want["ticks_at_level"].items() if t
        }

    def test_default_classes(self, archive: Path, store: TraceStore) -> None:
        """Without switched-off measurement and tools' own regions, the default curve is the facts' curve."""
        if not archive.name.startswith("mpt_"):
            return
        found = build(store, Rules(repaired=False))
        want = facts()[archive.name]["curve_as_recorded"]
        assert int(found.count(Activity.COMPUTING) @ np.diff(found.edges)) == want["integral_busy_ticks"]


def test_kinds_of_location_and_order(tmp_path: Path) -> None:
    memory = read(unpack("ezt_wave1d_4", tmp_path))
    assert [(at.rank, at.thread, at.kind) for at in memory.locations] == [(r, 0, "cpu") for r in range(4)]
    assert [at.id for at in memory.locations] == [0, 536870911, 1073741822, 1610612733]
    names = [region.name for region in memory.regions]
    assert names.count("MPI_Isend") == 1  # each rank has a number of its own for it


def test_peers_are_locations(farm: Path) -> None:
    """Sends and receives of a pair are equal in number, whichever end is asked."""
    memory = read(farm)
    sent, received = np.zeros((6, 6), int), np.zeros((6, 6), int)
    for i in range(6):
        messages = memory.table("messages", i)
        for kind, peer in zip(messages["kind"], messages["peer"], strict=True):
            if kind == MessageKind.SEND:
                sent[i, peer] += 1
            else:
                received[peer, i] += 1
    assert sent.sum() == 405
    assert (sent == received).all()
    assert (sent[0, 1:] > 0).all()


def test_metrics(tmp_path: Path) -> None:
    memory = read(unpack("public_scorep_pingpong_papi_2", tmp_path))
    metrics = memory.table("metrics", 0)
    names = {memory.texts[i] for i in metrics["metric"]}
    assert names
    assert all(name.startswith("PAPI_") for name in names)
    assert len(metrics["time"]) == 42 * len(names)
    for name in names:
        values = metrics["value"][[memory.texts[i] == name for i in metrics["metric"]]]
        assert (np.diff(values) >= 0).all()  # counters count up
        assert values[-1] > values[0] > 0


def test_measurement_off_is_a_region(tmp_path: Path) -> None:
    memory = read(unpack("public_scorep_stencil4d_32", tmp_path))
    off = next(i for i, region in enumerate(memory.regions) if region.name == "MEASUREMENT OFF")
    assert memory.regions[off].activity == Activity.UNMEASURED
    marks = sum(int((memory.table("events", i)["region"] == off).sum()) for i in range(32))
    assert marks == facts()["public_scorep_stencil4d_32"]["events_by_type"]["MEASUREMENT_ON_OFF"]


def test_block_size_changes_nothing(farm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read(farm)
    monkeypatch.setattr(otf2, "RECORDS", 7)
    parts = read(farm)
    for i in range(6):
        for table in ("events", "messages"):
            for name, column in whole.table(table, i).items():
                assert np.array_equal(column, parts.table(table, i)[name])
    assert [at.records for at in parts.locations] == [at.records for at in whole.locations]


# ---------------------------------------------------------------- detection, files, cancel


def test_detected_by_content(farm: Path, tmp_path: Path) -> None:
    renamed = tmp_path / "other.txt"
    shutil.copy(farm / "traces.otf2", renamed)
    for path in (farm, farm / "traces.otf2", renamed):
        assert importers.detect(path).id == "otf2"
    assert not otf2.detect(farm / "traces", b"")
    shutil.copy(farm / "traces.otf2", farm / "second.otf2")
    assert not otf2.detect(farm, b"")


def test_files_are_all_of_the_archive(farm: Path) -> None:
    every = sorted(file for file in farm.rglob("*") if file.is_file())
    assert sorted(otf2.IMPORTER.files(farm)) == every
    assert otf2.IMPORTER.files(farm)[0].name == "traces.otf2"
    assert len(every) == facts()["mpt_farm_6_dilated"].get("files", 14)


def test_cancel(farm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otf2, "RECORDS", 50)
    shown = []

    class Impatient(Progress):
        def show(self, done: float, total: float, text: str) -> None:
            shown.append(done / total)
            if done > total / 2:
                self.cancel()

    with pytest.raises(Cancelled):
        otf2.IMPORTER.read(farm, Memory(), Impatient())
    assert shown == sorted(shown)
    assert shown[-1] < 0.7


# ---------------------------------------------------------------- damage


def test_cut_events_keep_what_was_ahead(tmp_path: Path, farm: Path) -> None:
    whole, cut = read(farm), read(unpack("damaged_a_evt_truncated_half", tmp_path))
    for i in range(6):
        full, kept = whole.table("events", i)["time"], cut.table("events", i)["time"]
        assert np.array_equal(full[: kept.size], kept)
        assert (kept.size == full.size) == (i != 4)
    assert cut.locations[4].damage == "ends early"
    assert cut.report.findings["damaged events"].where == "traces/4.evt, byte 2326: the file is cut"
    missing = cut.report.findings["missing events"]
    assert missing.count == whole.locations[4].records - cut.locations[4].records > 100


@pytest.mark.parametrize("how", ["missing", "empty", "garbage"])
def test_event_file_without_data(farm: Path, how: str) -> None:
    file = farm / "traces" / "2.evt"
    file.unlink() if how == "missing" else file.write_bytes(b"" if how == "empty" else b"x" * 900)
    memory = read(farm)
    assert [at.damage for at in memory.locations] == ["", "", "no data", "", "", ""]
    assert memory.locations[2].first is None
    assert memory.rows("events", 2) == 0
    assert memory.report.lossy


def test_garbage_stops_the_location_at_its_byte(tmp_path: Path) -> None:
    memory = read(unpack("damaged_c_evt_garbage_32_bytes", tmp_path))
    assert memory.report.findings["damaged events"].where == (
        "traces/1.evt, byte 1662: a record is of unknown type"
    )
    assert memory.locations[1].records == 119
    assert memory.report.findings["missing events"].count == 60


def test_location_without_local_definitions_is_left_out(tmp_path: Path) -> None:
    memory = read(unpack("damaged_d_local_def_missing", tmp_path))
    assert memory.locations[3].damage == "no local definitions"
    assert memory.rows("events", 3) == 0
    assert memory.report.findings["local definitions"].severity == "loss"


def test_time_that_lies_too_late(farm: Path) -> None:
    """A flipped high byte of a time: the record with it is dropped, not the axis stretched."""
    whole = read(farm)
    file = farm / "traces" / "4.evt"
    data = bytearray(file.read_bytes())
    stamps = [i for i in range(1000, len(data) - 9) if data[i] == 5 and data[i + 6 : i + 9] == b"\0\0\0"]
    data[stamps[20] + 7] = 3  # some ten days
    file.write_bytes(bytes(data))
    memory = read(farm)
    kept, full = memory.table("events", 4)["time"], whole.table("events", 4)["time"]
    assert 0 < kept.size < full.size
    assert np.array_equal(kept, full[: kept.size])
    assert memory.report.lossy


@pytest.mark.parametrize("null", [0xFFFFFFFE, 0xFFFFFFFF], ids=["Open MPI", "MPICH"])
def test_messages_to_nobody_are_none(tmp_path: Path, null: int) -> None:
    """MPI_PROC_NULL is -2 or -1; a receive from it has MPI_ANY_TAG and no bytes (MPI 4.1, section 3.10)."""
    records = [
        Event(10, "MpiSend", (null, 0, 1, 8)),
        Event(20, "MpiIsend", (null, 0, 1, 8, 5)),
        Event(30, "MpiIsendComplete", (5,)),
        Event(40, "MpiRecv", (null, 0, 0xFFFFFFFF, 0)),
        Event(50, "MpiSend", (1, 0, 1, 8)),
    ]
    memory = read(write_bytes(tmp_path / "a", [Place(0, records), Place(1)]))
    kept = memory.table("messages", 0)
    assert kept["kind"].tolist() == [MessageKind.ISEND_COMPLETE, MessageKind.SEND]
    assert kept["peer"].tolist() == [-1, 1]
    assert memory.locations[0].records == len(records)
    assert "peers" not in memory.report.findings


def test_a_message_of_an_unknown_sender_is_kept(tmp_path: Path) -> None:
    records = [Event(10, "MpiRecv", (0xFFFFFFFF, 0, 3, 8))]
    memory = read(write_bytes(tmp_path / "a", [Place(0, records)]))
    assert memory.table("messages", 0)["peer"].tolist() == [-1]
    assert memory.report.findings["peers"].count == 1


def test_undefined_region_has_its_number_for_a_name(farm: Path) -> None:
    file = farm / "traces.def"
    data = bytearray(file.read_bytes())
    before = read(farm)
    records = [i for i in range(len(data) - 1) if data[i] == 15 and 8 <= data[i + 1] <= 30]
    for at in records:  # a definition record of unknown type is skipped
        broken = bytearray(data)
        broken[at] = 250
        file.write_bytes(bytes(broken))
        memory = read(farm)
        if "regions" in memory.report.findings:
            break
    else:
        pytest.fail("no definition record of a region was found")
    undefined = [r.name for r in memory.regions if r.name.startswith("region ")]
    assert len(undefined) == 1
    assert sum(memory.rows("events", i) for i in range(6)) == sum(before.rows("events", i) for i in range(6))


@pytest.mark.parametrize(
    ("file", "keep", "says"),
    [
        ("traces.otf2", 16, "anchor file"),
        ("traces.otf2", 60, "anchor file"),
        ("traces.def", 0, "global definitions"),
        ("traces.def", 100, "global definitions"),
    ],
)
def test_refused_in_one_sentence(
    farm: Path, file: str, keep: int, says: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (farm / file).write_bytes((farm / file).read_bytes()[:keep])
    with pytest.raises(TraceFormatError, match=says) as error:
        read(farm)
    assert str(error.value).startswith(f"{farm / 'traces.otf2'}: ")
    assert "\n" not in str(error.value)
    assert capfd.readouterr() == ("", "")


def test_sion_and_compression_are_named(farm: Path) -> None:
    anchor = farm / "traces.otf2"
    data = bytearray(anchor.read_bytes())
    data[28] = 2
    anchor.write_bytes(bytes(data))
    with pytest.raises(TraceFormatError, match="SION"):
        read(farm)


@pytest.mark.parametrize("name", NAMES)
def test_random_damage(tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """No crash, no hang, nothing on the terminal, no untyped error, no loss without a word."""
    assert fuzz(unpack(name, tmp_path), 8, seed=NAMES.index(name)).total() == 4 * 8
    assert capfd.readouterr() == ("", "")


# ---------------------------------------------------------------- archives written for one point


def write(folder: Path, fill) -> Path:  # type: ignore[no-untyped-def]  # of the untyped wheel
    writer = pytest.importorskip("otf2").writer
    with writer.open(str(folder), timer_resolution=1_000_000_000) as archive:
        root = archive.definitions.system_tree_node("node")
        group = archive.definitions.location_group("process", system_tree_parent=root)
        fill(archive, group)
    return folder


def test_buffer_flush_is_unmeasured_until_the_next_region(tmp_path: Path) -> None:
    records = [
        *(Event(100, "Enter", (3,)), Event(200, "BufferFlush", (300,)), Event(400, "Leave", (3,))),
        *(Event(500, "BufferFlush", (900,)), Event(600, "Enter", (3,)), Event(700, "Leave", (3,))),
        Event(800, "BufferFlush", (850,)),
    ]
    memory = read(write_bytes(tmp_path / "a", [Place(0, records)], regions={3: "work"}))
    events = memory.table("events", 0)
    rows = [
        (int(t), int(k), memory.regions[r].name)
        for t, k, r in zip(events["time"], events["kind"], events["region"], strict=True)
    ]
    flush = "TRACE BUFFER FLUSH"
    assert rows == [
        *((100, 0, "work"), (200, 0, flush), (300, 1, flush), (400, 1, "work")),
        *((500, 0, flush), (600, 1, flush), (600, 0, "work"), (700, 1, "work")),
        *((800, 0, flush), (850, 1, flush)),
    ]
    assert memory.locations[0].last == 850


def test_many_metric_values_and_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More values than the buffer holds, in a file of several chunks, and a location of each kind."""
    steps, width = 3000, 60
    otf2_package = pytest.importorskip("otf2")

    def fill(archive, group) -> None:  # type: ignore[no-untyped-def]
        members = [archive.definitions.metric_member(f"m{i}") for i in range(width)]
        metric = archive.definitions.metric_class(members)
        work = archive.definitions.region("work")
        kinds = otf2_package.LocationType
        for name, kind in (("gpu", kinds.ACCELERATOR_STREAM), ("cpu", kinds.CPU_THREAD), ("m", kinds.METRIC)):
            place = archive.definitions.location(name, type=kind, group=group)
            writer = archive.event_writer_from_location(place)
            for step in range(steps):
                writer.enter(10 * step, work)
                writer.metric(10 * step + 1, metric, [step * width + i for i in range(width)])
                writer.leave(10 * step + 2, work)

    archive = write(tmp_path / "a", fill)
    assert (archive / "traces" / "0.evt").stat().st_size > 1 << 20
    monkeypatch.setattr(otf2, "RECORDS", 128)
    memory = read(archive)
    assert [at.kind for at in memory.locations] == ["cpu", "accelerator", "metric"]
    assert [at.records for at in memory.locations] == [3 * steps] * 3
    metrics = memory.table("metrics", 1)
    assert np.array_equal(metrics["value"], np.arange(steps * width))
    assert np.array_equal(metrics["time"], np.repeat(10 * np.arange(steps) + 1, width))
    assert memory.texts == [f"m{i}" for i in range(width)]
    assert not memory.report.lossy


def test_marks(tmp_path: Path) -> None:
    """Marks are written by the library itself, for the wheel's Python writer has none."""

    def fill(archive, group) -> None:  # type: ignore[no-untyped-def]
        work = archive.definitions.region("work")
        for thread in range(2):
            writer = archive.event_writer(f"thread {thread}", group=group)
            writer.enter(100, work)
            writer.leave(400, work)

    archive = write(tmp_path / "a", fill)
    lib = ctypes.CDLL(library().file)
    pointer, number = ctypes.c_void_p, ctypes.c_uint64
    lib.OTF2_Reader_Open.restype = lib.OTF2_Reader_GetMarkerWriter.restype = pointer
    lib.OTF2_MarkerWriter_WriteDefMarker.argtypes = (
        *(pointer, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_char_p),
        ctypes.c_uint8,
    )
    lib.OTF2_MarkerWriter_WriteMarker.argtypes = (
        *(pointer, number, number, ctypes.c_uint32, ctypes.c_uint8, number),
        ctypes.c_char_p,
    )
    reader = pointer(lib.OTF2_Reader_Open(bytes(archive / "traces.otf2")))
    lib.OTF2_Reader_SetSerialCollectiveCallbacks(reader)
    writer = lib.OTF2_Reader_GetMarkerWriter(reader)
    assert writer
    assert lib.OTF2_MarkerWriter_WriteDefMarker(writer, 0, b"notes", b"restart", 1) == 0
    for time, scope, of, text in ((300, 1, 1, b""), (200, 0, 0, b"here"), (120, 0, 0, b"there")):
        assert lib.OTF2_MarkerWriter_WriteMarker(writer, time, 0, 0, scope, of, text) == 0
    assert lib.OTF2_Reader_CloseMarkerWriter(reader, pointer(writer)) == 0
    lib.OTF2_Reader_Close(reader)
    memory = read(archive)
    found = [
        (i, int(time), memory.texts[text])
        for i in range(2)
        for time, text in zip(*memory.table("marks", i).values(), strict=True)
    ]
    assert found == [(0, 120, "there"), (0, 200, "here"), (1, 300, "restart")]


def test_ranks_of_other_communicators(tmp_path: Path) -> None:
    """Ranks count within the communicator; everybody's MPI_COMM_SELF is one of its own."""
    package = pytest.importorskip("otf2")

    def fill(archive, group) -> None:  # type: ignore[no-untyped-def]
        kinds, mpi = package.GroupType, package.Paradigm.MPI
        define = archive.definitions
        node = define.system_tree_node("node")
        processes = [define.location_group(f"P{i}", system_tree_parent=node) for i in range(4)]
        places = [define.location("thread", group=process) for process in processes]
        define.group("world", group_type=kinds.COMM_LOCATIONS, paradigm=mpi, members=places)
        odd = define.group("odd", group_type=kinds.COMM_GROUP, paradigm=mpi, members=[3, 1])
        own = define.group("self", group_type=kinds.COMM_SELF, paradigm=mpi, members=[])
        odd, own = define.comm("odd", group=odd), define.comm("self", group=own)
        for rank, place in enumerate(places):
            writer = archive.event_writer_from_location(place)
            if rank == 1:
                writer.mpi_send(10, 0, odd, 5, 64)  # rank 0 of it is world rank 3
            if rank == 3:
                writer.mpi_recv(20, 1, odd, 5, 64)
            writer.mpi_collective_begin(30)
            writer.mpi_collective_end(40, package.CollectiveOp.BARRIER, own, 0, 0, 0)
            if rank % 2:
                writer.mpi_collective_begin(50)
                writer.mpi_collective_end(60, package.CollectiveOp.BCAST, odd, 1, 0, 8)

    memory = read(write(tmp_path / "a", fill))
    assert memory.table("messages", 1)["peer"].tolist() == [3]
    assert memory.table("messages", 3)["peer"].tolist() == [1]
    none = 0xFFFFFFFF
    for rank in range(4):
        found = memory.table("collectives", rank)
        assert found["root"].tolist() == [rank, *([1] if rank % 2 else [])]
        assert found["communicator"].tolist()[0] == none
        assert [memory.texts[i] for i in found["operation"]] == ["Barrier", *(["Bcast"] if rank % 2 else [])]
    assert "peers" not in memory.report.findings


def test_an_archive_without_any_local_definitions_says_what_its_times_are(farm: Path) -> None:
    for file in (farm / "traces").glob("*.def"):
        file.unlink()
    memory = read(farm)
    said = memory.report.findings["local definitions"]
    assert said.text == (
        "no location has whole local definitions; numbers and times are taken as they are recorded"
    )
    assert said.count == len(memory.locations) == 6


@pytest.mark.parametrize("big_endian", [False, True])
def test_numbers_of_each_size_in_both_byte_orders(big_endian: bool) -> None:
    rng = np.random.default_rng(3)
    for size in range(9):
        for data in rng.integers(0, 256, (20, 24), dtype=np.uint8):
            wanted = int.from_bytes(data[5 : 5 + size].tobytes(), "big" if big_endian else "little")
            assert int(decoder.part(data, 5, size, big_endian)) & (1 << 64) - 1 == wanted

"""Our decoder of OTF2 against the library, against an account of its own, and against odd bytes."""

from __future__ import annotations

import dataclasses
import tracemalloc
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.data.events import TABLES, MessageKind
from desktop.data.importers import otf2
from desktop.data.importers._otf2.engine import Engine
from desktop.data.importers._otf2.files import Files
from desktop.errors import TraceFormatError
from desktop.progress import Progress
from tests.data_layer.archives import DAMAGED, NAMES, unpack
from tests.data_layer.memory import Memory
from tests.data_layer.otf2_writer import DOUBLE, SIGNED, UNSIGNED, Event, Place, Writer, write
from tests.oracles.otf2_library import LibraryEngine, library

try:
    library()
    HAS_LIBRARY = True
except TraceFormatError:
    HAS_LIBRARY = False
needs_library = pytest.mark.skipif(
    not HAS_LIBRARY, reason="the otf2 wheel exists for Linux x86-64 and Python 3.11 only"
)


def read(path: Path, engine: type[Engine] = Files, only: set[int] | None = None) -> Memory:
    memory = Memory(only)
    otf2.read(path, memory, Progress(), engine)
    return memory


def same_rows(left: Memory, right: Memory, location: int, ahead: bool = False) -> bool:
    """Whether all tables are equal; `ahead`: or the left ones go on where the right ones end."""
    for table in TABLES:
        for a, b in zip(
            left.table(table, location).values(), right.table(table, location).values(), strict=True
        ):
            if not np.array_equal(a[: b.size] if ahead else a, b, equal_nan=a.dtype.kind == "f"):
                return False
    return True


# ---------------------------------------------------------------- agreement of the two engines


def assert_agree(path: Path) -> Memory:
    own, theirs = read(path), read(path, LibraryEngine)
    assert own.locations == theirs.locations
    assert (own.regions, own.texts) == (theirs.regions, theirs.texts)
    assert (own.ticks_per_second, own.repair, own.notes) == (
        theirs.ticks_per_second,
        theirs.repair,
        theirs.notes,
    )
    assert own.report == theirs.report
    assert all(same_rows(own, theirs, i) for i in range(len(own.locations)))
    return own


@needs_library
@pytest.mark.parametrize("name", NAMES)
def test_engines_agree(tmp_path: Path, name: str) -> None:
    assert sum(at.records for at in assert_agree(unpack(name, tmp_path)).locations) > 0


@needs_library
@pytest.mark.parametrize("name", DAMAGED)
def test_engines_agree_ahead_of_damage(tmp_path: Path, name: str) -> None:
    """The library may go on behind it with what is no record."""
    archive = unpack(name, tmp_path)
    if "anchor" in name:
        for engine in (Files, LibraryEngine):
            with pytest.raises(TraceFormatError, match="anchor file"):
                read(archive, engine)
        return
    own, theirs = read(archive), read(archive, LibraryEngine)
    assert own.report.lossy
    assert theirs.report.lossy
    assert own.regions == theirs.regions
    for i, at in enumerate(own.locations):
        assert same_rows(theirs, own, i, ahead=bool(at.damage))


@needs_library
def test_engines_agree_on_the_end_of_a_flush(tmp_path: Path) -> None:
    """It is a time too, and corrected as such."""
    records = [Event(100, "BufferFlush", (1500,)), *steps(200, 20)[10:], Event(4000, "BufferFlush", (4104,))]
    place = Place(0, records, offsets=[(0, 5), (1000, 105), (2000, 180)])
    memory = assert_agree(write(tmp_path / "a", [place], regions=REGIONS))
    assert memory.table("events", 0)["time"][-1] == 4104 + 105 + 233


# ---------------------------------------------------------------- whatever is written is read


REGIONS = {3: "work", 70_000: "MPI_Send", 900_000_000: "solve"}
CONTEXTS = {0: 3, 5: 70_000}
small = st.integers(0, 300)
wide = st.sampled_from([0, 1, 255, 256, 65_535, 1 << 24, (1 << 32) - 1]) | st.integers(0, (1 << 32) - 1)
long = st.sampled_from([0, 255, 1 << 40, (1 << 63) - 1]) | st.integers(0, (1 << 62) - 1)
region = st.sampled_from([0, 1, 2])  # local numbers
value = st.one_of(
    st.tuples(st.just(UNSIGNED), st.integers(0, (1 << 64) - 1)),
    st.tuples(st.just(SIGNED), st.integers(-(1 << 63), (1 << 63) - 1)),
    st.tuples(st.just(DOUBLE), st.floats(allow_nan=False)),
)
FIELDS: dict[str, tuple[st.SearchStrategy[Any], ...]] = {
    "Enter": (region,),
    "Leave": (region,),
    "MeasurementOnOff": (st.sampled_from([1, 2]),),
    "MpiSend": (small, st.sampled_from([0, 1, 2, 77]), wide, long),
    "MpiRecv": (small, st.sampled_from([0, 1, 2, 77]), wide, long),
    "MpiIsend": (small, st.sampled_from([0, 1, 2, 77]), wide, long, long),
    "MpiIrecv": (small, st.sampled_from([0, 1, 2, 77]), wide, long, long),
    "MpiIsendComplete": (long,),
    "MpiIrecvRequest": (long,),
    "MpiRequestTest": (long,),
    "MpiRequestCancelled": (long,),
    "MpiCollectiveBegin": (),
    "MpiCollectiveEnd": (st.integers(0, 30), st.sampled_from([0, 1, 2]), small, long, long),
    "ThreadFork": (small.map(lambda n: n % 256), wide),
    "CallingContextEnter": (st.sampled_from([0, 5]), wide),
    "CallingContextLeave": (st.sampled_from([0, 5]),),
    "NonBlockingCollectiveRequest": (long,),
}
record = st.sampled_from(sorted(FIELDS)).flatmap(
    lambda name: st.tuples(st.just(name), st.tuples(*FIELDS[name]))
)
metric = st.lists(value, min_size=1, max_size=8).map(lambda values: ("Metric", (0, *values)))


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    time, found = draw(st.integers(1 << 40, 1 << 50)), []
    for name, fields in draw(st.lists(st.one_of(record, metric), min_size=1, max_size=30)):
        time += draw(st.integers(0, 3) | st.integers(0, 1 << 40))
        found.append(
            Event(
                time,
                name,
                fields,
                slack=draw(st.sampled_from([0, 0, 0, 1, 3])),
                attributes=draw(st.sampled_from([None, None, None, 1, 20])),
                more=0 if name in ("Metric", "Enter", "Leave") else draw(st.sampled_from([0, 0, 2])),
            )
        )
    return found


@st.composite
def places(draw: st.DrawFn) -> list[Place]:
    found = []
    for number in draw(st.lists(st.integers(0, (1 << 64) - 2), min_size=1, max_size=3, unique=True)):
        maps = {3: dict(enumerate(draw(st.permutations(sorted(REGIONS)))))}
        if draw(st.booleans()):  # sparse
            maps[3] = dict(reversed(maps[3].items()))
        maps |= draw(st.sampled_from([{}, {6: {0: 0, 1: 2, 2: 1}}, {6: {2: 1, 77: 0}}]))
        # Far enough apart that no clock runs backwards, and early events stay after the beginning of time.
        times = draw(st.lists(st.integers(0, 2000), max_size=4, unique=True).map(sorted))
        offsets = [(time * 10**12, draw(st.integers(-(10**6), 10**6))) for time in times]
        found.append(Place(number, draw(events()), maps, offsets))
    return found


def corrected(time: int, offsets: Sequence[tuple[int, int]]) -> Fraction:
    if len(offsets) < 2:
        return Fraction(time)
    i = max([0, *(k for k in range(len(offsets) - 1) if time >= offsets[k][0])])
    (a, x), (b, y) = offsets[i : i + 2]
    return time + x + Fraction((y - x) * (time - a), b - a)


def account(place: Place, ranks: list[int]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """What the tables must say of a location, row by row, each with its time as recorded."""
    own = ranks.index(place.id)
    groups: dict[int, list[int]] = {0: list(range(len(ranks))), 1: list(range(len(ranks)))[::-1], 2: [own]}
    begin: int | None = None
    for event in place.events:
        name, f = str(event.record), event.fields
        comm = place.maps.get(6, {}).get(f[1], f[1]) if len(f) > 2 and name != "Metric" else -1
        members = groups.get(comm, [])
        match name:
            case "Enter" | "Leave":
                yield "events", (event.time, int(name == "Leave"), REGIONS[place.maps[3][f[0]]])
            case "CallingContextEnter" | "CallingContextLeave":
                yield "events", (event.time, int(name == "CallingContextLeave"), REGIONS[CONTEXTS[f[0]]])
            case "MeasurementOnOff":
                yield "events", (event.time, int(f[0] == 1), "MEASUREMENT OFF")
            case "MpiSend" | "MpiRecv" | "MpiIsend" | "MpiIrecv":
                kind = MessageKind[name[3:].upper()]
                peer = members[f[0]] if f[0] < len(members) else -1
                request = f[4] if len(f) > 4 else 0
                yield "messages", (event.time, kind, peer, comm, f[2], f[3], request)
            case "MpiIsendComplete" | "MpiIrecvRequest" | "MpiRequestCancelled":
                of = {"MpiIsendComplete": 2, "MpiIrecvRequest": 4, "MpiRequestCancelled": 6}[name]
                yield "messages", (event.time, of, -1, 0xFFFFFFFF, -1, 0, f[0])
            case "MpiCollectiveBegin":
                begin = event.time
            case "MpiCollectiveEnd" if begin is not None:
                root = members[f[2]] if f[2] < len(members) else -1
                yield (
                    "collectives",
                    (begin, event.time, None, 0xFFFFFFFF if comm == 2 else comm, root, *f[3:]),
                )
                begin = None
            case "Metric":
                for i, (_, number) in enumerate(f[1:]):
                    yield "metrics", (event.time, f"m{i}", float(number))


@settings(deadline=None, max_examples=60)
@given(places(), st.sampled_from("<>"), st.sampled_from([300, 1024, 1 << 18]))
def test_what_is_written_is_read(places: list[Place], order: str, chunk: int) -> None:
    ranks = [place.id for place in places]
    with TemporaryDirectory() as folder:
        anchor = write(
            Path(folder),
            places,
            regions=REGIONS,
            contexts=CONTEXTS,
            members=[f"m{i}" for i in range(8)],
            order=order,
            chunk=chunk,
        )
        memory = assert_agree(anchor) if HAS_LIBRARY and chunk == 1 << 18 else read(anchor)
    assert [at.id for at in memory.locations] == ranks
    losses = {finding.name for finding in memory.report if finding.severity == "loss"}
    assert losses <= {"wrong clock offsets"}  # no two clocks drift as far as these may
    for i, place in enumerate(places):
        assert memory.locations[i].records == len(place.events)
        want: dict[str, list[tuple[Any, ...]]] = {table: [] for table in TABLES}
        for table, row in account(place, ranks):
            want[table].append(row)
        for table, rows in want.items():
            found = memory.table(table, i)
            columns = {name: list(column) for name, column in found.items()}
            if table == "events":
                columns["region"] = [memory.regions[r].name for r in columns["region"]]
            elif table == "metrics":
                columns["metric"] = [memory.texts[m] for m in columns["metric"]]
            elif table == "collectives":
                columns["operation"] = [None for _ in columns["operation"]]
            assert len(columns[next(iter(columns))]) == len(rows)
            for row, expected in zip(zip(*columns.values(), strict=True), rows, strict=True):
                times = 2 if table == "collectives" else 1
                assert row[times:] == expected[times:]
                for got, recorded in zip(row[:times], expected[:times], strict=True):
                    assert abs(int(got) - corrected(recorded, place.offsets)) <= Fraction(51, 100)


def steps(n: int, every: int = 10) -> list[Event]:
    return [Event(every * i, ("Enter", "Leave")[i % 2], (3,)) for i in range(n)]


# ---------------------------------------------------------------- what is odd, and what is wrong


def test_unknown_records_of_a_later_library_are_skipped(tmp_path: Path) -> None:
    odd = [Event(5, 200, (b"what" * 100,)), Event(6, 93, (b"",))]
    later = read(
        write(
            tmp_path / "a", [Place(0, [*steps(1), *odd, *steps(4)[1:]])], regions=REGIONS, version=(4, 0, 0)
        )
    )
    assert later.locations[0].records == 6
    assert later.table("events", 0)["time"].tolist() == [0, 10, 20, 30]
    assert later.report.findings["other records"].count == 2
    assert not later.report.lossy
    now = read(write(tmp_path / "b", [Place(0, [*steps(1), *odd, *steps(4)[1:]])], regions=REGIONS))
    assert now.table("events", 0)["time"].tolist() == [0]
    assert "unknown type" in now.report.findings["damaged events"].where


def test_repeated_clock_offsets_are_said(tmp_path: Path) -> None:
    place = Place(0, steps(4), offsets=[(0, 5), (20, 5), (20, 8), (20, 8)])
    memory = read(write(tmp_path / "a", [place], regions=REGIONS))
    assert memory.report.findings["clock offsets"].count == 2
    assert not memory.repair


def test_one_clock_offset_has_no_effect(tmp_path: Path) -> None:
    memory = read(write(tmp_path / "a", [Place(0, steps(4), offsets=[(0, 500)])], regions=REGIONS))
    assert memory.table("events", 0)["time"].tolist() == [0, 10, 20, 30]
    assert memory.repair


@pytest.mark.parametrize("offset", [-11, 1 << 62, -(1 << 63)])
def test_times_that_no_clock_shows_are_damage(tmp_path: Path, offset: int) -> None:
    """Negative after the correction, or beyond what ticks can count."""
    place = Place(0, steps(4), offsets=[(0, offset), (1 << 40, offset)])
    memory = read(write(tmp_path / "a", [place, Place(1, steps(2))], regions=REGIONS))
    assert memory.locations[0].damage == "no data"
    assert "outside of the run" in memory.report.findings["damaged events"].where
    assert memory.rows("events", 1) == 2


def test_a_clock_at_rest_needs_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records at one time wait for a later one, but not for ever."""
    monkeypatch.setattr(otf2, "RECORDS", 16)
    memory = read(write(tmp_path / "a", [Place(0, [Event(5, "Enter", (3,))] * 1000)], regions=REGIONS))
    assert memory.rows("events", 0) == 1000
    assert max(len(b["time"]) for b in memory.appended["events", 0]) <= 40


@pytest.mark.parametrize("records", [1, 2, 5, 1000])
def test_time_too_late_takes_its_records_with_it(
    tmp_path: Path, records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otf2, "RECORDS", records)
    late = [dataclasses.replace(event, time=10_000_000) for event in steps(4)[2:]]
    anchor = write(tmp_path / "a", [Place(0, [*steps(2), *late, Event(40, "Enter", (3,))])], regions=REGIONS)
    kept = read(anchor).table("events", 0)["time"].tolist()
    assert kept == ([0, 10] if records > 2 else [0, 10, 10_000_000, 10_000_000][: len(kept)])
    where = read(anchor).report.findings["damaged events"].where
    time = (tmp_path / "a" / "traces" / "0.evt").read_bytes().rindex(b"\x05")
    assert where == f"traces/0.evt, byte {time}: a time is earlier than the one before it"


def test_chunk_that_lost_records_is_named(tmp_path: Path) -> None:
    """A zero where a record begins reads like the end of the chunk; the chunk's numbers tell."""
    anchor = write(tmp_path / "a", [Place(0, steps(100))], regions=REGIONS, chunk=300)
    file = tmp_path / "a" / "traces" / "0.evt"
    data = bytearray(file.read_bytes())
    data[data.index(b"\x05", 400)] = 0
    file.write_bytes(bytes(data))
    memory = read(anchor)
    found = memory.report.findings["record counts"]
    assert (found.count, found.where) == (1, "traces/0.evt, from byte 300 on")
    assert 60 < memory.locations[0].records < 100
    assert memory.table("events", 0)["time"][-1] == 990  # the chunks behind it are read
    assert memory.report.findings["missing events"].count == 100 - memory.locations[0].records


def test_chunk_that_is_missing_is_named(tmp_path: Path) -> None:
    anchor = write(tmp_path / "a", [Place(0, steps(100))], regions=REGIONS, chunk=300)
    file = tmp_path / "a" / "traces" / "0.evt"
    data = file.read_bytes()
    file.write_bytes(data[:600] + data[900:])
    found = read(anchor).report.findings["record counts"]
    assert (found.count, found.where) == (1, "traces/0.evt, from byte 600 on")


def test_every_cut_keeps_what_is_ahead_and_names_its_byte(tmp_path: Path) -> None:
    events = [
        *steps(6),
        Event(70, "Metric", (0, (UNSIGNED, 5), (DOUBLE, 1.5))),
        Event(80, "MpiSend", (0, 0, 7, 9)),
    ]
    anchor = write(tmp_path / "a", [Place(0, events)], regions=REGIONS, members=("m0", "m1"))
    file = tmp_path / "a" / "traces" / "0.evt"
    data, whole = file.read_bytes(), read(anchor)
    for keep in range(18, len(data) - 2):
        file.write_bytes(data[:keep])
        try:
            memory = read(anchor)
        except TraceFormatError as error:
            assert "no readable events" in str(error)
            assert keep < 18 + 9 + 3
            continue
        assert same_rows(whole, memory, 0, ahead=True)
        found = memory.report.findings["damaged events"].where
        byte = int(found.split("byte ")[1].split(":")[0])
        assert byte <= keep
        assert keep - byte < 30  # the record that is cut begins there
        assert found.endswith("the file is cut")


# ---------------------------------------------------------------- only some of the locations


def test_divided_import_reads_what_is_wanted(tmp_path: Path) -> None:
    archive = unpack("mpt_farm_6_dilated", tmp_path)
    (archive / "traces" / "2.evt").unlink()
    whole = read(archive)
    for only in ({0, 3}, {1, 2}, {2}, set()):
        part = read(archive, only=only)
        assert [at.id for at in part.locations] == [at.id for at in whole.locations]
        assert part.regions == whole.regions
        assert (part.repair, part.notes) == (whole.repair, whole.notes)
        assert part.report.lossy == (2 in only)
        for i in range(6):
            assert same_rows(whole if i in only else Memory(), part, i)
            assert (part.locations[i].records > 0) == (i in only and i != 2)


def test_numbers_in_a_file_allocate_nothing(tmp_path: Path) -> None:
    """Sizes that a file names are believed as far as its bytes go."""
    to = Writer()
    maps = {3: dict.fromkeys(range(2), 3)}
    anchor = write(tmp_path / "a", [Place(i, steps(4), maps) for i in range(3)], regions=REGIONS)
    huge = (1 << 61).to_bytes(8, "little")
    inside = tmp_path / "a" / "traces"
    damaged = {
        inside / "0.def": to.file([(b"\x05\x0b\x03\x08" + huge + b"\0", 0)], counted=False),
        inside / "1.evt": to.file([(b"\x05" + bytes(8) + b"\x1f\xff" + huge, 1)], counted=False),
        tmp_path / "a" / "traces.marker": to.file([(b"\x05\xff" + huge, 0)], counted=False),
    }
    for file, data in damaged.items():
        file.write_bytes(data)
    tracemalloc.start()
    try:
        memory = read(anchor)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 40e6  # the buffer of records has 15 MB of them
    assert [at.damage for at in memory.locations] == ["no local definitions", "no data", ""]
    assert memory.report.findings["damaged events"].where.startswith("traces/1.evt, byte 27: ")
    assert memory.report.findings["marks"].where == "traces.marker, byte 18: the file is cut"
    groups = to.file([(to.record(18, to.fields("nnbn", (0, 0, 0, (1 << 32) - 2))), 0)], counted=False)
    (tmp_path / "a" / "traces.def").write_bytes(groups)
    with pytest.raises(TraceFormatError, match=r"traces\.def.*byte 28: a number or record has an impossible"):
        read(anchor)


def test_definitions_that_are_missing_are_said(tmp_path: Path) -> None:
    """A zero where a definition begins reads like the end of its chunk; the anchor file tells."""
    anchor = write(tmp_path / "a", [Place(0, steps(4))], regions=REGIONS)
    assert "definitions" not in read(anchor).report.findings
    file = tmp_path / "a" / "traces.def"
    to = Writer()
    data = file.read_bytes()
    at = data.index(to.record(22, to.fields("nnnnn", (1, 0, 2, 0xFFFFFFFF, 0))))
    file.write_bytes((data[:at]).ljust(1 << 18, b"\0") + to.file([], counted=False))
    found = read(anchor).report.findings["definitions"]
    assert (found.count, found.severity) == (2, "loss")


def test_regions_whose_names_are_missing_are_a_loss(tmp_path: Path) -> None:
    """Whether they wait or compute is told by their names."""
    anchor = write(tmp_path / "a", [Place(0, steps(4))], regions={0: "compute", 1: "EZTrace finalize"})
    assert "region names" not in read(anchor).report.findings
    file = tmp_path / "a" / "traces.def"
    data, name = file.read_bytes(), b"EZTrace finalize\0"
    at = data.rindex(b"\x0a", 0, data.index(name))  # where the string's record begins
    file.write_bytes(data[:at] + b"\xfa" + data[at + 1 :])
    memory = read(anchor)
    assert [region.name for region in memory.regions][:2] == ["compute", "region 1"]
    found = memory.report.findings["region names"]
    assert (found.count, found.severity, found.where) == (1, "loss", "region 1")


def test_a_folder_in_place_of_a_file_is_said(tmp_path: Path) -> None:
    anchor = write(tmp_path / "a", [Place(0, steps(4)), Place(1, steps(4))], regions=REGIONS)
    for name in ("traces/0.evt", "traces.marker"):
        (tmp_path / "a" / name).unlink(missing_ok=True)
        (tmp_path / "a" / name).mkdir()
    memory = read(anchor)
    assert [at.damage for at in memory.locations] == ["no data", ""]
    assert "cannot be read" in memory.report.findings["event file"].where
    assert "cannot be read" in memory.report.findings["marks"].where

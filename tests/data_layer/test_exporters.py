"""Traces in other formats: read again they say the same, and the formats' own reader understands them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop import cli
from desktop.data.events import MessageKind
from desktop.data.exporters import Exported, export, otf2_archive, paraver_trace, rows
from desktop.data.exporters.rows import stretches
from desktop.data.opening import open_trace
from desktop.data.store import TraceStore
from desktop.data.utilization import build
from desktop.errors import StoreError
from desktop.progress import Cancelled, Progress
from tests.data_layer.otf2_writer import EVENTS, Event, Writer
from tests.data_layer.test_otf2_engines import assert_agree, needs_library

DATA = Path(__file__).parents[1] / "data"
TRACES = [
    "otf1/psort_8_short_ascii_1stream_collbeginend.tar.xz",
    "otf2/ezt_farm_8_dilated.tar.gz",
    "otf2/ezt_openmp_4.tar.gz",
    "otf2/public_scorep_pingpong_papi_2.tar.gz",
    "otf2/public_scorep_stencil4d_32.tar.gz",
    "picl/v1-fft4-bufferfull.trf",
    "picl/v1-heat4-verbose.trf",
]


def same_curves(one: TraceStore, other: TraceStore, within_s: float) -> None:
    """How many processors are in each activity, at every instant."""
    a, b = build(one), build(other)
    assert (a.processors, a.counts.shape) == (b.processors, b.counts.shape)
    assert (a.counts == b.counts).all()
    assert np.abs(a.edges * a.unit - b.edges * b.unit).max() <= within_s


def sent(store: TraceStore) -> list[tuple[int, ...]]:
    """Matched messages: sender, receiver, bytes, tag, in the order of time."""
    return [
        (i, *row)
        for i in range(len(store.locations))
        for columns in store.blocks("links", i, "peer", "bytes", "tag")
        for row in zip(*(column.tolist() for column in columns), strict=True)
    ]


def operations(store: TraceStore) -> list[tuple[object, ...]]:
    names = store.texts
    return [
        (i, names[name], root, sizes, came)
        for i in range(len(store.locations))
        for columns in store.blocks("collectives", i, "operation", "root", "sent", "received")
        for name, root, sizes, came in zip(*(column.tolist() for column in columns), strict=True)
    ]


@pytest.mark.parametrize("name", TRACES)
def test_an_archive_says_what_the_trace_says(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otf2_archive, "CHUNK", 1 << 12)  # so that files have several chunks
    with open_trace(DATA / name, output=tmp_path / "one.h5") as store:
        made = export(store, "otf2", tmp_path / "archive")
        with open_trace(made.file, output=tmp_path / "two.h5") as again:
            same_curves(store, again, 0.0)
            assert not again.report.lossy
            assert sent(again) == sent(store)
            known = [one for one in operations(store) if str(one[1]).lower().rstrip("01") in NAMED]
            assert [(i, *rest) for i, _, *rest in operations(again)] == [(i, *rest) for i, _, *rest in known]
            assert made.left_out.get("operations that OTF2 has no name for", 0) == len(
                operations(store)
            ) - len(known)
            for table in ("metrics", "marks"):
                rows = [sum(one.rows(table, i) for i in range(len(one.locations))) for one in (store, again)]
                assert rows[0] == rows[1]
            assert made.records >= sum(at.records for at in again.locations)


NAMED = {name.lower() for name in otf2_archive.OPERATIONS}


@needs_library
@pytest.mark.parametrize("name", [TRACES[0], TRACES[3], TRACES[4]])
def test_the_formats_own_library_reads_an_archive(tmp_path: Path, name: str) -> None:
    with open_trace(DATA / name, output=tmp_path / "one.h5") as store:
        made = export(store, "otf2", tmp_path / "archive")
        memory = assert_agree(made.file)
        assert len(memory.locations) == len(store.locations)
        assert sum(at.records for at in memory.locations) == made.records


@given(
    st.lists(
        st.tuples(
            st.integers(0, 1 << 60),
            st.sampled_from(
                ["Enter", "Leave", "MpiSend", "MpiIsend", "MpiIsendComplete", "MpiRecv", "MpiIrecv"]
            ),
            st.lists(st.integers(0, (1 << 63) - 1), min_size=5, max_size=5),
        ),
        max_size=60,
    )
)
def test_records_are_written_byte_by_byte_as_the_format_says(
    rows: list[tuple[int, str, list[int]]],
) -> None:
    rows.sort(key=lambda row: row[0])
    records = np.array([[EVENTS[name][0], time, *fields] for time, name, fields in rows], np.int64).reshape(
        -1, 7
    )
    file = io.BytesIO()
    writer = otf2_archive.EventWriter(file)
    writer.write(np.ascontiguousarray(records.T))
    writer.close()
    expected = [
        Event(
            time,
            name,
            tuple(
                field & 0xFFFFFFFF if form == "n" else field
                for field, form in zip(fields, EVENTS[name][1], strict=False)
            ),
        )
        for time, name, fields in rows
    ]
    assert file.getvalue() == Writer(chunk=otf2_archive.CHUNK).events(expected)


@pytest.mark.parametrize("name", TRACES)
def test_a_paraver_trace_says_what_the_trace_says(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paraver_trace, "WINDOW", 500)
    with open_trace(DATA / name, output=tmp_path / "one.h5") as store:
        made = export(store, "paraver", tmp_path / "folder")
        assert sorted(file.suffix for file in made.file.parent.iterdir()) == [".pcf", ".prv", ".row"]
        lines = [line.split(":") for line in made.file.read_text().splitlines() if line[0] in "123"]
        times = [int(line[5]) for line in lines]
        assert times == sorted(times) and len(times) == made.records
        with open_trace(made.file, output=tmp_path / "two.h5") as again:
            if "stencil" in name:  # its ticks are no whole nanoseconds: intervals of none are not kept
                assert build(again).seconds == pytest.approx(build(store).seconds, abs=1e-6)
            else:
                same_curves(store, again, 1e-9)
            assert sent(again) == sent(store)
            assert {region.name for region in store.regions if region.paradigm == "mpi"} <= {
                region.name for region in again.regions
            } | {region.name for region in store.regions if not used(store, region.name)}


def used(store: TraceStore, name: str) -> bool:
    number = [region.name for region in store.regions].index(name)
    return any(
        (column == number).any()
        for i in range(len(store.locations))
        for (column,) in store.blocks("events", i, "region")
    )


def test_what_cannot_be_exported_is_said(tmp_path: Path) -> None:
    curve = tmp_path / "curve.txt"
    curve.write_text("0 1\n1 2\n2 0\n")
    with (
        open_trace(curve, output=tmp_path / "curve.h5") as store,
        pytest.raises(StoreError, match="is a curve"),
    ):
        export(store, "otf2", tmp_path / "out")
    with open_trace(DATA / TRACES[1], output=tmp_path / "one.h5") as store:
        with pytest.raises(StoreError, match="no empty folder"):
            export(store, "otf2", tmp_path)

        class Stop(Progress):
            def step(self, done: float, total: float, text: str = "") -> None:
                raise Cancelled

        for to in ("otf2", "paraver"):
            with pytest.raises(Cancelled):
                export(store, to, tmp_path / "out", Stop())
    assert sorted(file.name for file in tmp_path.iterdir()) == ["curve.h5", "curve.txt", "one.h5"]


def test_the_command_writes_and_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from desktop.data import opening

    monkeypatch.setattr(opening, "user_cache_path", lambda *_, **__: tmp_path / "cache")
    words = ["export", str(DATA / TRACES[6]), "--to", "otf2", "-o", str(tmp_path / "out"), "--json"]
    assert cli.run(words) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["file"] == str(tmp_path / "out" / "traces.otf2") and said["records"] > 500
    assert said["left_out"] == {"operations that OTF2 has no name for": 12}
    assert cli.run(words) == 1
    assert "is no empty folder" in capsys.readouterr().err


def test_kinds_of_messages_are_all_known() -> None:
    assert (otf2_archive._MESSAGE > 0).all() and len(otf2_archive._MESSAGE) == len(MessageKind)


@pytest.mark.parametrize("name", ["otf2/mpt_farm_6_dilated.tar.gz", "otf2/ezt_farm_8_dilated.tar.gz"])
def test_messages_stand_inside_of_their_calls_also_at_equal_times(tmp_path: Path, name: str) -> None:
    with open_trace(DATA / name, output=tmp_path / "one.h5") as store:
        known, found = otf2_archive._Definitions(store), Exported(tmp_path)
        speaks = [region.name.startswith("MPI_") for region in store.regions]
        seen = 0
        for i in range(len(store.locations)):
            records, depth = otf2_archive._WrittenRecords(store, i, known, found), 0
            for end, rows in stretches(store, i, "events", "messages", "collectives", "metrics"):
                for kind, _, region in records.of(end, rows)[:3].T.tolist():
                    if kind in (otf2_archive.ENTER, otf2_archive.LEAVE):
                        depth += speaks[region] * (1 if kind == otf2_archive.ENTER else -1)
                    else:
                        seen += 1
                        assert depth == 1
        assert seen > 100


@pytest.mark.parametrize("within", [True, False])
@pytest.mark.parametrize("to", ["otf2", "paraver"])
def test_rows_out_of_order_are_damage(
    tmp_path: Path, to: str, within: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the rows that are read at once, and from these to the next."""
    monkeypatch.setattr(rows, "ROWS", 8)
    open_trace(DATA / TRACES[0], output=tmp_path / "one.h5").close()
    with h5py.File(tmp_path / "one.h5", "r+") as file:
        for table, key in (("events", "time"), ("collectives", "begin")):
            time = file[f"tables/{table}/{key}"]
            time[:] = time[:][::-1] if within else [*time[8:16], *time[:8], *time[16:]]
    with open_trace(tmp_path / "one.h5") as store, pytest.raises(StoreError, match="out of order"):
        export(store, to, tmp_path / "out")

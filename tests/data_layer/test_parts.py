"""A trace imported in parts is the trace imported undivided, whatever the parts and whoever reads them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.data import importers, opening, parts, utilization
from desktop.data.events import TABLES, Importer, Location, Region, Sink
from desktop.data.farm import Farm
from desktop.data.info import info
from desktop.data.opening import open_trace
from desktop.data.store import DERIVED, Description, TraceStore
from desktop.errors import DesktopError, TraceFormatError
from desktop.progress import Cancelled, Progress
from tests.data_layer.memory import Memory

DATA = Path(__file__).parent.parent / "data"
SAMPLES = sorted(archive for format_id in ("otf1", "otf2") for archive in (DATA / format_id).glob("*.tar.?z"))


class HereFarm(Farm):
    """Does the work of a farm in this process, so that many imports can be compared."""

    def run(
        self, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], progress: Progress, text: str
    ) -> list[Future[Any]]:
        done = []
        for task in tasks:
            future: Future[Any] = Future()
            try:
                future.set_result(function(*task, Progress()))
            except DesktopError as error:
                future.set_exception(error)
            done.append(future)
        return done


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Every trace is divided, in this process; the list counts the parts of each."""
    counts: list[int] = []
    plain = parts.read_parts

    def counting(*how: Any) -> Any:
        found = plain(*how)
        counts.append(0 if found is None else len(found))
        return found

    monkeypatch.setattr(opening, "DIVIDED", 0)
    monkeypatch.setattr(opening, "Farm", HereFarm)
    monkeypatch.setattr(opening, "read_parts", counting)
    yield counts


def content(store: TraceStore) -> dict[str, Any]:
    """All of a store; texts by themselves, for their numbers mean nothing."""
    known = {one.name: repr(getattr(store, one.name)) for one in fields(Description)}
    rows = {}
    for table, columns in (TABLES | DERIVED).items():
        for location in range(len(store.locations)):
            for name, pieces in zip(columns, zip(*store.blocks(table, location), strict=True), strict=False):
                column = np.concatenate(pieces)
                if name in ("operation", "metric") or (table, name) == ("marks", "text"):
                    column = np.array([store.texts[i] for i in column], object)
                rows[table, location, name] = column
    return {
        "description": {name: said for name, said in known.items() if name not in ("report", "texts")},
        "texts": sorted(store.texts),
        "report": list(store.report),
        "info": info(store),
        "rows": rows,
    }


def same(one: TraceStore, other: TraceStore) -> None:
    left, right = content(one), content(other)
    rows, others = left.pop("rows"), right.pop("rows")
    assert left == right
    assert rows.keys() == others.keys()
    for key, column in rows.items():
        assert np.array_equal(column, others[key]), key


@pytest.mark.parametrize(
    ("sample", "count"),
    [pytest.param(path, (2, 5)[k % 2], id=path.name.split(".")[0]) for k, path in enumerate(SAMPLES)],
)
def test_every_sample(tmp_path: Path, divided: list[int], sample: Path, count: int) -> None:
    try:
        whole = open_trace(sample, output=tmp_path / "whole.h5", workers=1)
    except TraceFormatError as error:
        with pytest.raises(TraceFormatError) as caught:
            open_trace(sample, output=tmp_path / "divided.h5", workers=count)
        assert str(caught.value) == str(error)
        return
    with whole, open_trace(sample, output=tmp_path / "divided.h5", workers=count) as merged:
        same(whole, merged)
    assert divided == [count], "it was not divided"
    assert {path.name for path in tmp_path.iterdir()} == {"whole.h5", "divided.h5"}


# --- a made-up format that can be divided, with all that may differ between locations ---


def made(read: Callable[[Sink], None]) -> Importer:
    return Importer(
        "made", "Made", "1", lambda *_: True, lambda path, sink, progress: read(sink), lambda path: [path],
        divisible=True,
    )  # fmt: skip


@st.composite
def traces(draw: st.DrawFn) -> Callable[[Sink], None]:
    locations = draw(st.integers(1, 12))
    seed = draw(st.integers(0, 1 << 20))
    sound = draw(st.lists(st.booleans(), min_size=locations, max_size=locations).filter(any))
    offsets = draw(st.booleans())

    def read(sink: Sink) -> None:
        sink.describe(ticks_per_second=1e6, repair=not offsets, notes={"seed": seed})
        regions = [sink.region(Region(name, "", "mpi")) for name in ("main", "MPI_Send", "MPI_Barrier")]
        places = [Location(7 * i, f"rank {i}", i) for i in range(locations)]
        for place in places:
            sink.location(place)
        sink.report.add("odd", "info", "The whole trace is odd.", where="head")
        wanted = [i for i in range(locations) if sink.wants(i)]
        for i in wanted:
            sink.wants(i)
            if not sound[i]:
                places[i].damage = "no data"
                sink.report.add("lost", "loss", "A location was lost.", where=f"location {i}")
                continue
            sink.report.add("odd", "info", "A location is odd.")
            random = np.random.default_rng([seed, i])
            n = int(random.integers(1, 40))
            times = np.sort(random.integers(0, 500, 2 * n)) + int(random.integers(-30, 30))
            sink.append(
                "events", i, time=times, kind=np.tile([0, 1], n).astype("u1"),
                region=np.repeat(random.choice(regions, n), 2).astype("u4"),
            )  # fmt: skip
            m = int(random.integers(0, 12))
            sink.append(
                "messages", i, time=np.sort(random.choice(times, m)), kind=random.choice([0, 3], m),
                peer=random.integers(-1, locations, m), communicator=np.zeros(m, int),
                tag=random.integers(0, 2, m), bytes=random.integers(0, 99, m), request=np.zeros(m, int),
            )  # fmt: skip
            begin = np.sort(random.integers(0, 500, 3))
            names = [sink.text(str(name)) for name in random.choice(["Barrier", "Bcast", "Allreduce"], 3)]
            sink.append(
                "collectives", i, begin=begin, end=begin + random.integers(0, 40, 3),
                operation=np.array(names), communicator=np.zeros(3, int), root=np.full(3, -1),
                sent=np.zeros(3, int), received=np.zeros(3, int),
            )  # fmt: skip
            sink.append("marks", i, time=times[:1], text=np.array([sink.text(f"mark of {i % 3}")]))

    return read


@settings(deadline=None, max_examples=10)
@given(read=traces(), count=st.integers(2, 6), together=st.sampled_from([1, 3, 256]))
def test_made_up_traces(
    tmp_path_factory: pytest.TempPathFactory, read: Callable[[Sink], None], count: int, together: int
) -> None:
    tmp_path = tmp_path_factory.mktemp("made")
    source = tmp_path / "source"
    source.touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importers, "importer", lambda _: made(read))
        patch.setattr(importers, "detect", lambda _: made(read))
        patch.setattr(opening, "DIVIDED", 0)
        patch.setattr(opening, "Farm", HereFarm)
        patch.setattr(parts, "TOGETHER", together)
        patch.setattr(parts, "SHARES", 1)
        whole = open_trace(source, output=tmp_path / "whole.h5", workers=1)
        with whole, open_trace(source, output=tmp_path / "divided.h5", workers=count) as merged:
            same(whole, merged)


def name_while_reading(sink: Sink) -> None:
    """Defines what it needs while it reads, so that the regions of the parts differ."""
    sink.describe(ticks_per_second=1)
    for i in range(4):
        sink.location(Location(i, rank=i))
    for i in range(4):
        if sink.wants(i):
            region = sink.region(Region(f"own {i}"))
            sink.append("events", i, time=np.array([i, 9]), kind=np.array([0, 1]), region=np.full(2, region))


def tell_of_parts(sink: Sink) -> None:
    """Says of the whole what it knows of a part only."""
    wanted = [sink.wants(sink.location(Location(i, rank=i))) for i in range(4)]
    sink.describe(ticks_per_second=1, notes={"read": sum(wanted)})
    region = sink.region(Region("main"))
    for i in np.flatnonzero(wanted).tolist():
        sink.append("events", i, time=np.array([i, 9]), kind=np.array([0, 1]), region=np.full(2, region))


@pytest.mark.parametrize(("read", "count"), [(name_while_reading, 3), (tell_of_parts, 0)])
def test_parts_that_do_not_fit_are_read_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    divided: list[int],
    read: Callable[[Sink], None],
    count: int,
) -> None:
    source = tmp_path / "source"
    source.touch()
    monkeypatch.setattr(importers, "importer", lambda _: made(read))
    monkeypatch.setattr(importers, "detect", lambda _: made(read))
    stores = [open_trace(source, output=tmp_path / f"{workers}.h5", workers=workers) for workers in (1, 3)]
    with stores[0] as whole, stores[1] as merged:
        assert divided == [count]
        assert info(merged) == info(whole) and merged.notes == whole.notes
        for i in range(4):
            for name in ("region", "time", "kind"):
                one, other = (store.column("events", name, i) for store in (whole, merged))
                if name == "region":
                    one, other = (
                        [store.regions[r].name for r in column]
                        for store, column in ((whole, one), (merged, other))
                    )
                assert list(one) == list(other)
    assert {path.name for path in tmp_path.iterdir()} == {"source", "1.h5", "3.h5"}


# --- in processes ---

SAMPLE = DATA / "otf2" / "ezt_cholesky_bcast_8_dilated.tar.gz"


def test_in_processes_with_one_that_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "DIVIDED", 0)
    monkeypatch.setattr(parts, "import_part", die_once)
    with open_trace(SAMPLE, output=tmp_path / "divided.h5", workers=2) as merged:
        monkeypatch.undo()
        with open_trace(SAMPLE, output=tmp_path / "whole.h5", workers=1) as whole:
            same(whole, merged)
    assert {path.name for path in tmp_path.iterdir()} == {"whole.h5", "divided.h5", "died"}


@pytest.mark.parametrize("cores, asked, divided", [(2, None, 0), (4, None, 4), (2, 2, 2), (8, 1, 0)])
def test_few_cores_do_not_divide_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int, asked: int | None, divided: int
) -> None:
    """It takes more of processors' time than two of them would save."""

    class Noted(Exception):
        pass

    class Farm:
        def __init__(self, folder: Path, workers: int) -> None:
            raise Noted(workers)

    monkeypatch.setattr(opening, "DIVIDED", 0)
    monkeypatch.setattr(opening, "cores", lambda: cores)
    monkeypatch.setattr(opening, "Farm", Farm)
    if divided:
        with pytest.raises(Noted, match=str(divided)):
            open_trace(SAMPLE, output=tmp_path / "store.h5", workers=asked)
    else:
        open_trace(SAMPLE, output=tmp_path / "store.h5", workers=asked).close()


_IMPORT_PART = parts.import_part


def die_once(*task: Any) -> Any:
    number, target = task[3], task[6]
    died = target.parent.parent / "died"
    if number == 1 and not died.exists():
        died.touch()
        target.write_text("begun")
        os._exit(7)
    return _IMPORT_PART(*task)


def test_a_part_that_cannot_be_read_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "DIVIDED", 0)
    monkeypatch.setattr(parts, "import_part", die_always)
    with pytest.raises(DesktopError, match="died, twice") as caught:
        open_trace(SAMPLE, output=tmp_path / "divided.h5", workers=2)
    assert caught.value.file == str(SAMPLE)
    assert list(tmp_path.iterdir()) == []


def die_always(*task: Any) -> None:
    os._exit(7)


def test_cancelled_in_parts_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopper(Progress):
        def show(self, done: float, total: float, text: str) -> None:
            if text == "reading":
                self.cancel()

    monkeypatch.setattr(opening, "DIVIDED", 0)
    with pytest.raises(Cancelled):
        open_trace(SAMPLE, Stopper(), output=tmp_path / "divided.h5", workers=2)
    assert list(tmp_path.iterdir()) == []


# --- curves of groups ---


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 1 << 30),
    locations=st.integers(1, 9),
    group=st.integers(1, 4),
    rows=st.integers(1, 40),
)
def test_sums_of_partial_curves(seed: int, locations: int, group: int, rows: int) -> None:
    random = np.random.default_rng(seed)
    memory = Memory()
    memory.describe(ticks_per_second=10.0)
    regions = [
        memory.region(Region(name, "", "mpi")) for name in ("work", "MPI_Send", "MPI_Recv", "MPI_Barrier")
    ]
    for i in range(locations):
        n = int(random.integers(1, 30))
        times = np.sort(random.integers(0, 60, 2 * n)) + int(random.integers(0, 90))
        memory.location(Location(i, rank=i, first=int(times[0]), last=int(times[-1])))
        memory.append(
            "events", i, time=times, kind=random.integers(0, 2, 2 * n).astype("u1"),
            region=random.choice(regions, 2 * n).astype("u4"),
        )  # fmt: skip
    whole = utilization.build(memory)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utilization, "SIDE_BY_SIDE", group)
        patch.setattr(utilization, "ROWS_AT_LEAST", rows)
        patch.setattr(utilization, "ROWS_IN_FLIGHT", rows)
        grouped = utilization.build(memory)
    for name in ("edges", "counts", "totals"):
        assert np.array_equal(getattr(whole, name), getattr(grouped, name)), name
    for name in ("unit", "processors", "defined", "start", "stray", "unclosed"):
        assert getattr(whole, name) == getattr(grouped, name), name

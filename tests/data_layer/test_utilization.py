"""Utilization against a tick-by-tick oracle, and the laws it has to obey."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.data import opening, utilization
from desktop.data.classify import region_activity
from desktop.data.events import Activity, Importer, Location, Nesting, Region
from desktop.data.opening import open_trace
from desktop.data.parts import DIGESTS, steps_of
from desktop.data.store import Source, StoreWriter, TraceStore, open_store
from desktop.data.utilization import Rules, build, keep, outline, states
from desktop.errors import CurveError, StoreError, TraceFormatError
from desktop.progress import Cancelled, Progress
from desktop.resources import samples
from tests.oracles.utilization import CLASSES, KIND, PARALLEL, REGIONS, Thread, timeline

IMPORTER = Importer("made", "Made for tests", "1", lambda p, h: True, lambda p, s, g: None, lambda p: [p])


def write(
    path: Path,
    threads: list[Thread],
    nesting: Nesting = "outermost",
    repair: bool = True,
    replayed: bool = False,
) -> None:
    """`replayed`: the curve is made of what the replay on import has kept, not of stored events."""
    with StoreWriter(path, Source("made", "made"), IMPORTER, DIGESTS * replayed) as writer:
        writer.describe(ticks_per_second=1e6, nesting=nesting, repair=repair)
        for region in REGIONS:
            writer.region(region)
        for number, thread in enumerate(threads):
            index = writer.location(
                Location(
                    id=10 * number,
                    base=thread.base,
                    thread=int(thread.worker),
                    first=thread.first,
                    last=thread.last,
                    shift=thread.shift,
                )
            )
            rows = thread.events
            writer.append(
                "events",
                index,
                time=np.array([time for time, _, _ in rows], np.int64),
                kind=np.array([KIND[kind] for _, kind, _ in rows], np.uint8),
                region=np.array([region for _, _, region in rows], np.uint32),
            )
        writer.complete()
        keep(writer, Progress(), steps=steps_of(writer))


@contextmanager
def stored(threads: list[Thread], **how: object) -> Iterator[TraceStore]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "made.h5"
        write(path, threads, **how)  # type: ignore[arg-type]  # passed on as they are
        with open_store(path) as store:
            yield store


@st.composite
def threads(draw: st.DrawFn) -> Thread:
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(0, 30), st.sampled_from(["enter", "leave"]), st.integers(0, len(REGIONS) - 1)
            ),
            max_size=25,
        )
    )
    rows.sort(key=lambda row: row[0])
    first = rows[0][0] - draw(st.integers(0, 3)) if rows else draw(st.integers(0, 5))
    last = (rows[-1][0] if rows else first) + draw(st.integers(0, 3))
    worker = draw(st.booleans()) and any(kind == "enter" and region == 1 for _, kind, region in rows)
    base = Activity.COMPUTING if worker else draw(st.sampled_from([Activity.COMPUTING, Activity.IDLE]))
    return Thread(first, last, rows, base, worker, draw(st.integers(-20, 20)))


@settings(deadline=None, max_examples=40)
@given(
    st.lists(threads(), min_size=1, max_size=5).filter(lambda many: any(t.last > t.first for t in many)),
    st.sampled_from(["outermost", "strongest"]),
    st.sampled_from([1, 2, 7, 4096]),
    st.booleans(),
)
def test_every_tick_agrees_with_the_oracle(
    many: list[Thread], nesting: Nesting, rows: int, replayed: bool
) -> None:
    """Whatever the nesting, the shifts, crossed and unmatched regions, and the size of the blocks."""
    lives = [timeline(thread, CLASSES, PARALLEL, nesting) for thread in many]
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setattr(utilization, "ROWS_AT_LEAST", rows)
        patch.setattr(utilization, "ROWS_IN_FLIGHT", rows)
        store = stack.enter_context(stored(many, nesting=nesting, replayed=replayed))
        kept = build(store)
        rebuilt = build(store, Rules(repaired=True))
        for found in (kept, rebuilt):
            ticks = np.arange(found.edges[0], found.edges[-1])
            step = np.searchsorted(found.edges, ticks, side="right") - 1
            for activity in Activity:
                expected = [
                    sum(life.get(int(tick) + found.start) == activity for life, _, _ in lives)
                    for tick in ticks
                ]
                np.testing.assert_array_equal(found.counts[activity][step], expected)
            assert (np.diff(found.counts, axis=1) != 0).any(axis=0).all(), "an edge at which nothing changes"
            assert found.stray == sum(stray for _, stray, _ in lives)
            assert found.unclosed == sum(unclosed for _, _, unclosed in lives)
            for number, (life, _, _) in enumerate(lives):
                expected = [list(life.values()).count(activity) for activity in Activity]
                np.testing.assert_array_equal(found.totals[number], expected)
        for number, (life, _, _) in enumerate(lives):
            begin, end, activity = states(store, number)
            told = {
                tick: a
                for a, b, c in zip(begin, end, activity, strict=True)
                for tick, a in ((t, Activity(c)) for t in range(a, b))
            }
            assert told == life
            assert (activity[1:] != activity[:-1]).all()


@settings(deadline=None, max_examples=25)
@given(st.lists(threads(), min_size=1, max_size=4).filter(lambda many: any(t.last > t.first for t in many)))
def test_sums(many: list[Thread]) -> None:
    """Activities fill each life; the curve's integral is the sum of what the locations compute."""
    with stored(many) as store:
        found = build(store)
        lives = [thread.last - thread.first for thread in many]
        np.testing.assert_array_equal(found.totals.sum(axis=1), lives)
        curve = found.curve()
        assert curve.integral == pytest.approx(found.seconds[:, Activity.COMPUTING].sum(), rel=1e-12)
        assert curve.capacity == len(many)
        assert (np.diff(curve.level) != 0).all()
        said = outline(store)
        assert (said.start, said.processors, said.defined) == (found.start, len(many), len(many))
        np.testing.assert_array_equal(said.seconds, found.seconds)
        assert (said.duration_s, said.segments, said.mean, said.integral_s, said.most) == (
            curve.duration,
            curve.segments,
            curve.mean,
            curve.integral,
            curve.level.max(),
        )


def test_as_recorded_leaves_the_shifts_out() -> None:
    many = [Thread(0, 10, [(2, "enter", 3), (4, "leave", 3)]), Thread(0, 10, [], shift=5)]
    with stored(many) as store:
        assert build(store).edges.tolist() == [0, 2, 4, 5, 10, 15]
        assert build(store, Rules(repaired=False)).edges.tolist() == [0, 2, 4, 10]


def test_overrides_by_name_go_before_those_by_role() -> None:
    rows = [(1, "enter", 0), (3, "leave", 0), (5, "enter", 2), (8, "leave", 2)]
    with stored([Thread(0, 10, rows)]) as store:
        assert build(store).totals[0].tolist() == [7, 3, 0, 0, 0]
        told = Rules({"solve": Activity.IDLE, "role:": Activity.IO, "MPI_Isend": Activity.COMPUTING})
        assert build(store, told).totals[0].tolist() == [8, 0, 2, 0, 0]
        both = Rules(computing=frozenset({Activity.COMPUTING, Activity.OVERHEAD}))
        assert build(store, both).curve().level.tolist() == [1.0]


def test_metric_locations_and_missing_ones_are_no_processors(tmp_path: Path) -> None:
    path = tmp_path / "made.h5"
    with StoreWriter(path, Source("made", "made"), IMPORTER) as writer:
        writer.describe(ticks_per_second=1e9)
        writer.region(REGIONS[3])
        writer.location(Location(1, first=0, last=10))
        writer.location(Location(2, first=0, last=90, kind="metric"))
        writer.location(Location(3, damage="no data"))
        writer.complete()
        keep(writer, Progress())
    with open_store(path) as store:
        found = build(store)
        assert (found.processors, found.defined) == (1, 2)
        assert found.edges.tolist() == [0, 10]
        assert found.totals.tolist() == [[10, 0, 0, 0, 0], [0] * 5, [0] * 5]
        assert states(store, 2)[0].size == 0


def test_no_lifetime_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TraceFormatError, match="two events at different times"):
        write(tmp_path / "made.h5", [Thread(4, 4, [(4, "enter", 0)])])
    assert list(tmp_path.iterdir()) == []


def test_a_deep_and_crossed_nest_stays_fast_and_right(tmp_path: Path) -> None:
    """Regions closed in the order of their opening would make a naive list quadratic."""
    n = 200_000
    path = tmp_path / "deep.h5"
    with StoreWriter(path, Source("made", "made"), IMPORTER) as writer:
        writer.describe(ticks_per_second=1e9)
        waits = [writer.region(Region(f"wait {i}", activity=Activity.IDLE)) for i in range(1000)]
        region = np.array(waits, np.uint32)[np.arange(n) % 1000]
        writer.location(Location(0))
        writer.append(
            "events",
            0,
            time=np.arange(2 * n) + 5,
            kind=np.repeat(np.array([0, 1], np.uint8), n),
            region=np.concatenate([region, region]),
        )
        writer.complete()
        keep(writer, Progress())
    with open_store(path) as store:
        assert build(store).totals[0].tolist() == [0, 0, 2 * n - 1, 0, 0]
        assert store.tallies[0].enter == store.tallies[0].leave == n


def test_cancelling() -> None:
    with stored([Thread(0, 10, [(1, "enter", 3)])]) as store:
        progress = Progress()
        progress.cancel()
        with pytest.raises(Cancelled):
            build(store, Rules(repaired=False), progress)


def test_rows_that_contradict_the_description_are_refused() -> None:
    with stored([Thread(0, 10, [(1, "enter", 3), (8, "leave", 3)])]) as store:
        store.locations[0].last = 5
        with pytest.raises(StoreError, match="out of order or outside"):
            build(store, Rules(repaired=False))


def test_an_empty_utilization_has_no_curve() -> None:
    empty = utilization.Utilization(
        np.zeros(0), np.zeros((len(Activity), 0), np.int32), 1.0, 0, 0, 0, np.zeros((0, 5), np.int64), Rules()
    )
    with pytest.raises(CurveError, match="no curve to show"):
        empty.curve()


@pytest.mark.parametrize("rows", [1 << 19, 1 << 21])
def test_memory_does_not_grow_with_the_trace(
    tmp_path: Path, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bound for four times as many events, of two locations, one of which has few."""
    monkeypatch.setattr(utilization, "ROWS_IN_FLIGHT", 1 << 15)
    with StoreWriter(tmp_path / "made.h5", Source("made", "made"), IMPORTER) as writer:
        writer.describe(ticks_per_second=1e9)
        waiting = writer.region(Region("MPI_Recv"))
        for number, every in enumerate((1, 1000)):
            writer.location(Location(number))
            writer.append(
                "events",
                number,
                time=np.arange(0, rows, every) * 3 + number,
                kind=(np.arange(0, rows, every) // every % 2).astype(np.uint8),
                region=np.full(len(range(0, rows, every)), waiting, np.uint32),
            )
        writer.complete()
        tracemalloc.start()
        try:
            keep(writer, Progress())
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert writer.rows("utilization", 0) > rows
        assert peak < 10 << 20


def test_a_kept_utilization_that_is_damaged_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "made.h5"
    write(path, [Thread(0, 10, [(1, "enter", 3), (8, "leave", 3)])])
    for name, value in (("time", 99), ("idle", 7), ("idle", -1)):
        with h5py.File(path, "r+", locking=False) as file:
            column = file[f"derived/utilization/{name}"]
            was, column[1] = column[1], value
        with open_store(path) as store, pytest.raises(StoreError, match="utilization is damaged"):
            build(store)
        with h5py.File(path, "r+", locking=False) as file:
            file[f"derived/utilization/{name}"][1] = was
    with open_store(path) as store:
        assert build(store).edges.tolist() == [0, 1, 8, 10]


@pytest.mark.parametrize("processors", [127, 128, 129])
def test_as_many_processors_as_a_narrow_number_holds(processors: int) -> None:
    """They begin at once and end one after the other."""
    with stored([Thread(0, 1 + k, []) for k in range(processors)]) as store:
        for found in (build(store), build(store, Rules(repaired=True))):
            assert found.curve().level.tolist() == [*range(processors, 0, -1)]
            assert found.count(Activity.COMPUTING, Activity.IO).tolist() == [*range(processors, 0, -1)]


def test_an_import_replays_its_events_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The curve is made without them, unless a region has become something else meanwhile."""
    sample = next(sample.path for sample in samples() if "eztrace" in str(sample.path))
    with monkeypatch.context() as patch:
        patch.setattr(utilization, "_Stored", None)
        with open_trace(sample, output=tmp_path / "once.h5") as store:
            once = build(store)
            waits = [x.name for x in store.regions if region_activity(x) is Activity.IDLE]

    def turned(writer: StoreWriter, *_: object) -> None:
        for region in writer.regions:
            if region.name in waits:
                region.activity = Activity.IO

    monkeypatch.setattr(opening, "judge", turned)
    with open_trace(sample, output=tmp_path / "again.h5") as store:
        again = build(store)
        rebuilt = build(store, Rules(overrides=dict.fromkeys(waits, Activity.IO)))
    np.testing.assert_array_equal(again.totals, rebuilt.totals)
    np.testing.assert_array_equal(again.counts, rebuilt.counts)
    assert again.count(Activity.IO).any() and not once.count(Activity.IO).any()
    assert once.processors == again.processors


def test_what_is_said_of_a_curve_does_not_build_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """But where an import has not kept it; a store that is damaged there says so."""
    thread = Thread(0, 9, [(1, "enter", 3), (4, "leave", 3)])
    with stored([thread]) as store:
        expected = outline(store)
        with monkeypatch.context() as patch:
            patch.setattr(store, "rows", lambda table, location: 0)
            built = outline(store)
        for name in ("duration_s", "segments", "mean", "integral_s", "most"):
            assert getattr(built, name) == getattr(expected, name)
        monkeypatch.setattr(utilization, "build", None)
        assert outline(store).segments == 3
        monkeypatch.setattr(store, "column", lambda table, name: np.array([-1]))
        with pytest.raises(StoreError, match="utilization is damaged"):
            outline(store)

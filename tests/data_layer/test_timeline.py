"""The timeline against what plain Python says of every tick: nothing lost, the right thing on top."""

from __future__ import annotations

import sys
from collections import Counter, deque
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.core import gantt
from desktop.data import timeline
from desktop.data.digest import EventDigest
from desktop.data.events import Activity, Importer, Location, Nesting, Region
from desktop.data.opening import open_trace
from desktop.data.parts import DIGESTS
from desktop.data.store import BESIDE, DERIVED, Source, StoreWriter, TraceStore, open_store
from desktop.data.timeline import Strips, Timeline, open_timeline, summarize
from desktop.data.utilization import Rules, states
from desktop.errors import StoreError
from desktop.progress import Cancelled, Progress
from tests.data_layer.archives import NAMES, unpack
from tests.digests import PROFILE, TIMELINE
from tests.oracles.utilization import CLASSES, KIND, PARALLEL, REGIONS, Thread, doing, step

IMPORTER = Importer("made", "Made for tests", "1", lambda p, h: True, lambda p, s, g: None, lambda p: [p])
#: Every region a class of its own, none the class of "in no region".
BY_REGION = np.array([gantt.NO_REGION, *range(len(REGIONS))], np.uint8)


def write(
    path: Path,
    threads: list[Thread],
    nesting: Nesting = "outermost",
    block: int = 7,
    digest: bool = True,
    backwards: bool = False,
    profile: bool = False,
) -> None:
    digests: list[Any] = [*TIMELINE * digest, *PROFILE * profile]
    with StoreWriter(path, Source("made", "made"), IMPORTER, digests) as writer:
        writer.describe(ticks_per_second=1.0, nesting=nesting, repair=True)
        for region in REGIONS:
            writer.region(region)
        for number, thread in enumerate(threads):
            writer.location(
                Location(
                    id=number,
                    base=thread.base,
                    thread=int(thread.worker),
                    first=thread.first,
                    last=thread.last,
                    shift=thread.shift,
                )
            )
        for index, thread in sorted(enumerate(threads), reverse=backwards, key=lambda item: item[0]):
            rows = [(t, KIND[kind], region) for t, kind, region in thread.events]
            for at in range(0, len(rows), block):
                time, kind, region = (np.array(v) for v in zip(*rows[at : at + block], strict=True))
                writer.append(
                    "events",
                    index,
                    time=time.astype(np.int64),
                    kind=kind.astype(np.uint8),
                    region=region.astype(np.uint32),
                )


def spells(thread: Thread, nesting: str) -> list[tuple[int, int, int, Activity]]:
    """(begin, end, innermost region, activity) between any two events, those without duration included."""
    parallel = any(k == "enter" and r in PARALLEL for _, k, r in thread.events)
    worker = thread.worker and thread.base == Activity.COMPUTING and parallel
    one = Thread(thread.first, thread.last, thread.events, thread.base, worker)
    open_now: list[int] = []
    found, now = [], thread.first
    for k, (tick, kind, region) in enumerate(thread.events):
        if k or tick > now:  # before the first event something is done only if that takes time
            does = doing(one, CLASSES, PARALLEL, nesting, open_now)
            found.append((now, tick, open_now[-1] if open_now else -1, does))
        step(open_now, kind, region)
        now = tick
    if thread.last > now:
        does = doing(one, CLASSES, PARALLEL, nesting, open_now)
        found.append((now, thread.last, open_now[-1] if open_now else -1, does))
    return [(a + thread.shift, b + thread.shift, region, does) for a, b, region, does in found]


def within(spell: tuple[int, int, int, Activity], a: int, b: int) -> int:
    """Ticks of a state in a column; -1 if it does not occur there at all."""
    begin, end = spell[:2]
    if begin == end:
        return 0 if a <= begin < b else -1
    ticks = min(end, b) - max(begin, a)
    return ticks if ticks > 0 else -1


@st.composite
def threads(draw: st.DrawFn) -> Thread:
    steps = draw(st.lists(st.sampled_from([0, 0, 1, 2, 3, 50, 4000]), min_size=1, max_size=40))
    first = draw(st.integers(-50, 50))
    times = (first + draw(st.integers(0, 5)) + np.cumsum(steps)).tolist()
    kinds = st.sampled_from(["enter", "enter", "leave"])
    events = [(t, draw(kinds), draw(st.integers(0, len(REGIONS) - 1))) for t in times]
    return Thread(
        first,
        times[-1] + draw(st.integers(0, 5)),
        events,
        draw(st.sampled_from([Activity.COMPUTING, Activity.IDLE])),
        draw(st.booleans()),
        draw(st.integers(-3, 3)),
    )


@settings(deadline=None, max_examples=25)
@given(
    st.lists(threads(), min_size=1, max_size=3),
    st.sampled_from(["outermost", "strongest"]),
    st.integers(1, 60),
    st.floats(0, 1),
    st.floats(0.01, 1),
    st.booleans(),
)
def test_no_state_is_lost_and_exact_pictures_are_exact(made, nesting, columns, at, share, by_region) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "made.h5"
        write(path, made, nesting)
        with open_store(path) as store:
            line = Timeline(store)
            begin = min(x.first + x.shift for x in made)
            end = max(x.last + x.shift for x in made)
            assert line.start == begin
            span = max((end - begin) * share, 1.0)
            a = at * max(end - begin - span, 0)
            lut = BY_REGION if by_region else None
            rows = [[i] for i in range(len(made))] + [list(range(len(made)))]
            tile = line.tile(rows, a, a + span, columns, lut)
            exact = line.refine(tile, seconds=60)
    assert not exact.pending
    for r, row in enumerate(rows):
        lived = [s for i in row for s in spells(made[i], nesting)]
        for c in range(columns):
            x, y = int(tile.edges[c]), int(tile.edges[c + 1])
            if x == y:
                continue
            spent: Counter[int] = Counter()
            for spell in lived:
                ticks = within(spell, x, y)
                if ticks >= 0:
                    spent[int(BY_REGION[spell[2] + 1]) if by_region else int(spell[3])] += ticks
            held = sum(1 << k for k in spent)
            assert held & ~int(tile.hidden[r, c]) == 0, "a state has been lost"
            if r in tile.pending:
                assert int(exact.hidden[r, c]) == held
                if spent:
                    assert spent[int(exact.dominant[r, c])] == max(spent.values())
                else:
                    assert exact.dominant[r, c] == gantt.ABSENT


@settings(deadline=None, max_examples=25)
@given(threads(), st.sampled_from(["outermost", "strongest"]), st.integers(1, 1 << 14))
def test_every_bin_of_every_level_is_right(thread: Thread, nesting: Nesting, most: int) -> None:
    """Through the tables themselves: region and activity of most time, and all that occur."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(timeline, "BINS", max(most, timeline.COARSEST))
        path = Path(folder) / "made.h5"
        write(path, [thread], nesting)
        with open_store(path) as store:
            first, last, width = (int(store.column("strips", n)[0]) for n in ("first", "last", "width"))
            cells = {n: store.column("timeline", n) for n in ("region", "activity", "regions", "activities")}
    shift = thread.shift
    lived = [(a - shift, b - shift, r, x) for a, b, r, x in spells(thread, nesting)]
    lived = [s for s in lived if s[0] >= first and s[1] <= last]  # what lies between events
    at = 0
    while True:
        bins = range(first >> width, (last >> width) + 1)
        for cell, k in enumerate(bins, at):
            region: Counter[int] = Counter()
            does: Counter[int] = Counter()
            for spell in lived:
                ticks = within(spell, k << width, (k + 1) << width)
                if ticks >= 0:
                    region[spell[2]] += ticks
                    does[int(spell[3])] += ticks
            if not does:
                assert k == bins[-1] and last == k << width  # the end of the last state
                continue
            assert region[int(cells["region"][cell])] == max(region.values())
            assert does[int(cells["activity"][cell])] == max(does.values())
            if k == bins[-1] and last == k << width:
                continue  # shows the last state as well
            assert cells["regions"][cell] == sum(1 << (r if r >= 0 else gantt.BITS) for r in region)
            assert cells["activities"][cell] == sum(1 << a for a in does)
        at += len(bins)
        if len(bins) <= timeline.COARSEST:
            break
        width += gantt.FAN_BITS
    assert at == cells["region"].size


def many(rows: int, regions: int = 6, seed: int = 1) -> Thread:
    """A long location: nested regions of very different lengths, one state of one tick among them."""
    rng = np.random.default_rng(seed)
    gaps = rng.choice([1, 3, 40, 900], rows, p=[0.5, 0.3, 0.19, 0.01])
    time = np.cumsum(gaps).tolist()
    events, depth = [], []
    for t in time:
        if depth and (len(depth) > 6 or rng.random() < 0.5):
            events.append((t, "leave", depth.pop()))
        else:
            depth.append(int(rng.choice([0, 2, 3])))
            events.append((t, "enter", depth[-1]))
    return Thread(0, time[-1] + 1, events)


def test_a_rare_state_is_seen_from_afar_and_found(tmp_path: Path) -> None:
    thread = many(40_000)
    k = 20_001
    t = thread.events[k][0]
    thread.events[k:k] = [(t, "enter", 4), (t, "leave", 4)]  # input/output of no duration at all
    write(tmp_path / "made.h5", [many(3000, seed=2), thread], block=10_000)
    with open_store(tmp_path / "made.h5") as store:
        line = Timeline(store)
        end = float(line.seconds(thread.last))
        for by_region, bit in ((None, int(Activity.IO)), (BY_REGION, 4)):
            # Inside a region that counts itself, the strongest outermost one decides.
            seen = line.tile([[0], [1], [0, 1]], 0, end, 1400, by_region).hidden >> bit & 1
            if by_region is not None:
                assert seen.sum(1).tolist() == [0, 1, 1]
                assert int(np.argmax(seen[1])) == int(t / end * 1400)
        assert line.entering(4).tolist() == [1]
        assert line.find([4], 0.0) == (1, float(line.seconds(t)), 4)
        assert line.find([4], end, forward=False) == (1, float(line.seconds(t)), 4)
        assert line.find([4], float(line.seconds(t))) is None
        assert line.find([5], 0.0) is None and line.find([], 0.0) is None


@settings(deadline=None, max_examples=25)
@given(
    st.lists(threads(), min_size=1, max_size=4),
    st.sets(st.integers(0, len(REGIONS) - 1), min_size=1, max_size=3),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_the_nearest_enter_is_found(
    made: list[Thread], regions: set[int], forward: bool, profile: bool, data: st.DataObject
) -> None:
    """From any tick, either way, in all locations or some: what looking through all events finds."""
    with TemporaryDirectory() as folder:
        write(Path(folder) / "made.h5", made, profile=profile)
        with open_store(Path(folder) / "made.h5") as store:
            line, way = Timeline(store), 1 if forward else -1
            every = [
                (t + thread.shift, i, region)
                for i, thread in enumerate(made)
                for t, kind, region in thread.events
                if kind == "enter" and region in regions
            ]
            ticks = st.sampled_from([t + d for t, _, _ in every for d in (-1, 0, 1)] or [0])
            for _ in range(8):
                tick = data.draw(ticks)
                but = data.draw(st.none() | st.integers(-1, len(made)))
                among = data.draw(st.none() | st.lists(st.integers(0, len(made) - 1), unique=True))
                beyond = [
                    (way * (t - tick), way * i)
                    for t, i, _ in every
                    if (among is None or i in among)
                    and (way * (t - tick) > 0 or (t == tick and but is not None and way * (i - but) > 0))
                ]
                found = line.find(
                    sorted(regions), float(line.seconds(tick)), forward=forward, but=but, among=among
                )
                if not beyond:
                    assert found is None
                else:
                    far, signed = min(beyond)
                    assert found is not None
                    assert found[:2] == (way * signed, float(line.seconds(tick + way * far)))
                    assert (tick + way * far, way * signed, found[2]) in every


@pytest.mark.parametrize("profile", [True, False])
def test_occurrences_are_found_one_after_the_other(tmp_path: Path, profile: bool) -> None:
    made = [many(2000, seed=3), many(20_000, seed=4), many(2000, seed=5)]
    write(tmp_path / "made.h5", made, block=9000, backwards=True, profile=profile)
    with open_store(tmp_path / "made.h5") as store:
        line = Timeline(store)
        entered = sorted(
            {(t, i) for i, x in enumerate(made) for t, kind, r in x.events if (kind, r) == ("enter", 3)}
        )
        assert len(entered) > 500
        for forward, order in ((True, entered), (False, entered[::-1])):
            at, location = (-1.0, -1) if forward else (1e9, -1)
            for tick, owner in order[:200]:
                found = line.find([3], at, forward=forward, but=location)
                assert found == (owner, float(line.seconds(tick)), 3)
                location, at, _ = found
        with pytest.raises(Cancelled):
            stopped = Progress()
            stopped.cancel()
            line.find([3], -1.0, progress=stopped)


def test_what_is_entered_once_is_not_looked_for_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A region that is open all the time is in every bin; the notes say where it is entered."""
    made = []
    for seed in (3, 4, 5):
        thread = many(100_000, seed=seed)
        inner = [(t, kind, r) for t, kind, r in thread.events if r != 1]
        made.append(
            Thread(thread.first, thread.last, [(thread.first, "enter", 1), *inner], thread.base, False)
        )
    write(tmp_path / "made.h5", made, block=50_000, profile=True)
    with open_store(tmp_path / "made.h5") as store:
        line = Timeline(store)
        read: list[int] = []
        part = store.part

        def watched(table: str, location: int, begin: int, end: int, *columns: str) -> Any:
            read.append(end - begin)
            return part(table, location, begin, end, *columns)

        monkeypatch.setattr(store, "part", watched)
        begin = float(line.seconds(made[0].first))
        assert line.find([1], begin, but=1) == (2, begin, 1)
        assert line.find([1], begin, but=2) is None
        assert line.find([1], line.end_s, forward=False) == (2, begin, 1)
        assert 0 < sum(read) < 0.2 * sum(len(thread.events) for thread in made)


def test_the_stack_at_an_instant_is_the_one_that_was_built(tmp_path: Path) -> None:
    thread = many(50_000, seed=6)
    thread.shift = 1000
    write(tmp_path / "made.h5", [thread], block=20_000)
    rng = np.random.default_rng(8)
    with open_store(tmp_path / "made.h5") as store:
        line = Timeline(store)
        assert (store.column("checkpoints", "region") < 0).sum() == 4  # of 50 000 events
        spans = [s for s in spells(thread, "outermost") if s[1] > s[0]]
        for k in rng.integers(0, len(spans), 60).tolist():
            begin, end, region, does = spans[k]
            moment = line.at(0, float(line.seconds(begin)))
            assert (moment.begin_s, moment.end_s) == (line.seconds(begin), line.seconds(end))
            assert moment.activity == does
            assert (moment.levels[-1].region if moment.levels else -1) == region
            for level in moment.levels:
                enter = (round(level.begin_s) + line.start - thread.shift, "enter", level.region)
                assert enter in thread.events
                if level.end_s is not None and level.end_s < line.seconds(thread.last + thread.shift):
                    leave = (round(level.end_s) + line.start - thread.shift, "leave", level.region)
                    assert leave in thread.events and level.end_s >= moment.end_s
        assert not line.at(0, 1e9).present


def test_locations_may_be_read_in_another_order_than_they_are_counted_in(tmp_path: Path) -> None:
    made = [many(40_000, seed=15), many(500, seed=16), many(20_000, seed=17)]
    write(tmp_path / "made.h5", made, block=9_000)
    write(tmp_path / "backwards.h5", made, block=9_000, backwards=True)
    with open_store(tmp_path / "made.h5") as usual, open_store(tmp_path / "backwards.h5") as other:
        assert usual.places("events")[0, 0] < usual.places("events")[2, 0]
        assert other.places("events")[0, 0] > other.places("events")[2, 0]
        one, two = Timeline(usual), Timeline(other)
        for location, thread in enumerate(made):
            for at in np.linspace(thread.first, thread.last, 40).tolist():
                assert one.at(location, at) == two.at(location, at)
        end = float(one.seconds(made[0].last))
        tiles = [line.tile([[0], [1], [2]], 0, end, 300) for line in (one, two)]
        assert np.array_equal(tiles[0].dominant, tiles[1].dominant)


def test_a_zoomed_picture_reads_only_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = many(200_000, seed=9)
    write(tmp_path / "made.h5", [thread], block=50_000)
    with open_store(tmp_path / "made.h5") as store:
        line = Timeline(store)
        asked: list[int] = []
        part = TraceStore.part

        def watched(self: TraceStore, table: str, location: int, a: int, b: int, *columns: str) -> Any:
            asked.append(b - a)
            return part(self, table, location, a, b, *columns)

        monkeypatch.setattr(TraceStore, "part", watched)
        middle, end = float(line.seconds(thread.events[100_000][0])), float(line.seconds(thread.last))
        whole = line.tile([[0]], 0, end, 1000)
        assert not whole.pending and not asked
        near = line.tile([[0]], middle, middle + 1000, 1000)
        assert near.pending == (0,)
        line.refine(near)
        assert sum(asked) <= 2 * timeline.STEP
        asked.clear()
        monkeypatch.setattr(timeline, "EXACT_ROWS", 1000)
        assert np.array_equal(line.refine(near).dominant, near.dominant) and not asked


def test_the_exact_picture_of_a_real_trace_is_its_utilization(tmp_path: Path) -> None:
    path = open_trace(unpack(NAMES[0], tmp_path), output=tmp_path / "made.h5").path
    with open_store(path) as store:
        line = open_timeline(store)
        assert line is not None
        there = np.flatnonzero(line.present).tolist()
        end = max(float(line.seconds(states(store, i)[1][-1])) for i in there)
        tile = line.tile([[i] for i in there], 0, end, 2000)
        exact = line.refine(tile, seconds=60)
        for r, i in enumerate(there):
            begin, until, does = states(store, i)
            for c in range(0, 2000, 7):
                inside = np.minimum(until, exact.edges[c + 1]) - np.maximum(begin, exact.edges[c])
                spent = np.bincount(does, np.maximum(inside, 0), minlength=5)
                if spent.any():
                    assert spent[exact.dominant[r, c]] == pytest.approx(spent.max(), abs=1)


def test_other_rules_and_older_stores_are_summed_up_on_demand(tmp_path: Path) -> None:
    made = [many(3000, seed=11), many(500, seed=12)]
    write(tmp_path / "new.h5", made)
    write(tmp_path / "old.h5", made, digest=False)
    with open_store(tmp_path / "new.h5") as new, open_store(tmp_path / "old.h5") as old:
        assert old.rows("timeline", 0) == 0
        kept = summarize(old, None, Progress())
        for table in ("strips", "timeline", "checkpoints"):
            names = list(timeline.DERIVED[table])
            places, columns = kept.whole(table, *names)
            known, others = new.whole(table, *names)
            assert np.array_equal(places, known)
            assert all(np.array_equal(x, y) for x, y in zip(columns, others, strict=True))
        end = float(Timeline(old).seconds(made[0].last))
        usual = Timeline(new).tile([[0], [1]], 0, end, 300)
        assert np.array_equal(usual.hidden, Timeline(old).tile([[0], [1]], 0, end, 300).hidden)
        rules = Rules({"MPI_Recv": Activity.IO})
        other = Timeline(new, rules).tile([[0], [1]], 0, end, 300)
        assert np.array_equal(other.dominant == Activity.IO, usual.dominant == Activity.IDLE)
        stopped = Progress()
        stopped.cancel()
        with pytest.raises(Cancelled):
            Timeline(old, None, stopped)


@pytest.mark.parametrize(
    ("table", "column", "change"),
    [
        ("strips", "width", lambda v: v + 1),
        ("strips", "last", lambda v: v * 3),
        ("strips", "first", lambda v: v - 10**6),
        ("timeline", "activity", lambda v: v + 5),
        ("timeline", "region", lambda v: v + 99),
        ("checkpoints", "row", lambda v: v + 1),
        ("checkpoints", "region", lambda v: v * 0 - 1),
        ("checkpoints", "region", lambda v: v * 0),
    ],
)
def test_a_damaged_summary_is_said_to_be_so(tmp_path: Path, table: str, column: str, change: Any) -> None:
    write(tmp_path / "made.h5", [many(40_000, seed=13)], block=30_000)
    with h5py.File(tmp_path / "made.h5", "r+") as file:
        data = file[f"derived/{table}/{column}"]
        data[:] = change(data[:].astype(np.int64))
    with pytest.raises(StoreError), open_store(tmp_path / "made.h5") as store:
        Timeline(store)


def test_memory_of_the_digest_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few entries: bins are joined, nothing is lost."""
    monkeypatch.setattr(timeline, "ENTRIES", 1 << 10)
    thread = many(20_000, seed=14)
    write(tmp_path / "made.h5", [thread], block=5000)
    with open_store(tmp_path / "made.h5") as store:
        cells = store.rows("timeline", 0)
        assert 16 < cells < 2000
        regions = np.bitwise_or.reduce(store.column("timeline", "regions"))
        assert regions == sum(1 << r for r in {r for _, _, r in thread.events} | {gantt.BITS})


class Meanwhile(dict[str, Activity]):
    """Rules during the use of which somebody else defines a region."""

    def __init__(self, writer: StoreWriter) -> None:
        super().__init__()
        self.writer = writer

    def get(self, name: str, default: Any = None) -> Any:
        if len(self.writer.regions) < 100:
            self.writer.region(Region(f"region {len(self.writer.regions)}"))
        return default


def test_regions_that_are_defined_while_others_are_looked_at(tmp_path):
    with StoreWriter(tmp_path / "x.h5", Source("made", "made"), IMPORTER) as writer:
        writer.describe(ticks_per_second=1.0)
        writer.location(Location(id=0))
        writer.region(Region("first"))
        strips = Strips(writer)
        digest = EventDigest(writer, Rules(overrides=Meanwhile(writer)), strips)
        for time in range(4):
            block = {"time": [time], "kind": [time % 2], "region": [len(writer.regions) - 1]}
            columns = {name: np.array(values) for name, values in block.items()}
            digest.take("events", 0, columns)
            writer.append("events", 0, **columns)
        assert len(writer.regions) > 4
        digest.finish()


MANY = 25_000


def with_many(path: Path, rows: int, *, at_once: bool) -> TraceStore:
    """Blocks of one location, each with regions and partners that are new in it, or all defined before."""

    def define(number: int) -> None:
        writer.region(Region(f"region {number}", "function", "mpi" if number % 3 else "user"))
        writer.location(Location(id=number + 1))

    with StoreWriter(path, Source("made", "made"), IMPORTER, DIGESTS) as writer:
        writer.describe(ticks_per_second=1.0)
        writer.location(Location(id=0))
        if at_once:
            deque(map(define, range(MANY)), 0)
        step = MANY // 50
        for first in range(0, MANY, step):
            if not at_once:
                deque(map(define, range(first, first + step)), 0)
            time = 10 * first + np.arange(rows)
            region = first + np.arange(rows) // 2 % step
            writer.append("events", 0, time=time, kind=np.arange(rows) % 2, region=region)
            same = np.zeros(rows, np.int64)
            columns = {"communicator": same, "tag": same, "bytes": same + 8, "request": same}
            writer.append("messages", 0, time=time, kind=same, peer=region + 1, **columns)
    return open_store(path)


def test_many_regions_and_locations_that_are_defined_while_rows_are_read(tmp_path):
    """Summaries are made in a thread of their own, which must not stumble over what the importer adds."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        grown = with_many(tmp_path / "grown.h5", BESIDE, at_once=False)
    finally:
        sys.setswitchinterval(before)
    with grown, with_many(tmp_path / "known.h5", BESIDE, at_once=True) as known:
        assert len(grown.regions) == MANY and len(grown.locations) == MANY + 1
        for table, columns in DERIVED.items():
            for name in columns:
                assert np.array_equal(grown.column(table, name), known.column(table, name)), (table, name)
        assert grown.places("strips")[0, 1] == 1 and grown.places("traffic")[0, 1] >= MANY

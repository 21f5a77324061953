"""Statistics of ranges against published accounts, a tick-by-tick oracle, brute force and arithmetic."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop import cli
from desktop.core.arrays import Ints
from desktop.core.ideal import ideal_duration
from desktop.core.phases import fit
from desktop.data import digest, profile, statistics
from desktop.data.clock import check_clocks
from desktop.data.events import TABLES, Activity, EventKind, Importer, Location, MessageKind, Nesting, Region
from desktop.data.matching import links_of
from desktop.data.opening import open_trace
from desktop.data.statistics import NO_REGION, Change, RangeStats, Statistics
from desktop.data.store import Source, StoreWriter, TraceStore, open_store
from desktop.data.utilization import Rules, build, keep
from desktop.progress import Progress
from desktop.resources import samples
from tests.data_layer import archives
from tests.digests import PROFILE
from tests.oracles.callpaths import by_region, paths
from tests.oracles.utilization import Thread, timeline

MADE = Importer("made", "Made for tests", "1", lambda p, h: True, lambda p, s, g: None, lambda p: [p])
KIND = {"enter": EventKind.ENTER, "leave": EventKind.LEAVE}
REGIONS = [
    Region("solve", "function"),
    Region("OpenMP Parallel", "parallel"),
    Region("MPI_Isend", "point2point", "mpi"),
    Region("MPI_Recv", "point2point", "mpi"),
    Region("MPI_Allreduce", "coll_all2all", "mpi"),
]
CLASSES = [Activity.COMPUTING, Activity.COMPUTING, Activity.OVERHEAD, Activity.IDLE, Activity.IDLE]
SOLVE, PARALLEL, ISEND, RECV, ALLREDUCE = range(5)
OUTWARD, INWARD = (MessageKind.SEND, MessageKind.ISEND), (MessageKind.RECV, MessageKind.IRECV)

Row = tuple[int, ...]


@contextmanager
def stored(
    threads: list[Thread],
    messages: dict[int, list[Row]] | None = None,
    collectives: dict[int, list[Row]] | None = None,
    texts: tuple[str, ...] = (),
    nesting: Nesting = "outermost",
    digests: bool = True,
    more: tuple[str, ...] = (),
) -> Iterator[TraceStore]:
    """One tick is a second. Messages: time, kind, peer, tag, bytes (and request); collectives: begin, end,
    text, root. `more`: calls of MPI that have the next numbers of regions."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "made.h5"
        with StoreWriter(path, Source("made", "made"), MADE, PROFILE * digests) as writer:
            writer.describe(ticks_per_second=1.0, nesting=nesting, repair=True)
            for region in (*REGIONS, *(Region(f"MPI_{name}", "", "mpi") for name in more)):
                writer.region(region)
            for text in texts:
                writer.text(text)
            for number, t in enumerate(threads):
                writer.location(
                    Location(
                        number, first=t.first, last=t.last, rank=number, base=t.base, thread=int(t.worker)
                    )
                )
            for number, t in enumerate(threads):
                append(writer, "events", number, [(a, KIND[k], r) for a, k, r in t.events])
                told = (messages or {}).get(number, [])
                rows = [(a, k, p, 0, tag, b, *(r or [0])) for a, k, p, tag, b, *r in told]
                append(writer, "messages", number, rows)
                joined = (collectives or {}).get(number, [])
                append(writer, "collectives", number, [(a, b, o, 0, r, 0, 0) for a, b, o, r in joined])
            writer.complete()
            with links_of(writer) as links:
                result = check_clocks(writer, matched=links.add)
            writer.clock.checked = result.collectives + result.messages
            writer.clock.violations_after = result.before.checks
            for location, thread in zip(writer.locations, threads, strict=True):
                location.shift = thread.shift
            keep(writer, Progress())
        with open_store(path) as store:
            yield store


def append(writer: StoreWriter, table: str, location: int, rows: list[Row]) -> None:
    if rows:
        columns = np.array(rows, np.int64).T
        names = TABLES[table]
        writer.append(table, location, **dict(zip(names, columns, strict=True)))


def alone(store: TraceStore, a: float, b: float, **how: Any) -> RangeStats:
    (found,) = Statistics(store).ranges([(a, b)], **how)
    return found


# ---------------------------------------------------------------- real programs


def account() -> dict[str, dict[str, float]]:
    return json.loads((archives.BUNDLED / "efficiencies.json").read_text())


def at_hand(name: str) -> bool:
    places = (archives.BUNDLED, archives.SHARED)
    return any((folder / f"{name}.tar.gz").exists() for folder in places)


@pytest.fixture
def trace(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[TraceStore]:
    archive = archives.unpack(request.param, tmp_path)
    with open_trace(next(archive.rglob("*.otf2")), output=tmp_path / "trace.h5") as store:
        yield store


@pytest.mark.parametrize("trace", [name for name in account() if at_hand(name)], indirect=True)
def test_efficiencies_of_real_programs(trace: TraceStore, request: pytest.FixtureRequest) -> None:
    """To the last tick those of a separate script over the reference tool's text."""
    want = account()[request.node.callspec.params["trace"]]
    whole = alone(trace, 0.0, np.inf, replay=True)
    ticks = trace.ticks_per_second
    assert round(whole.duration_s * ticks) == want["runtime_ticks"]
    assert round(whole.useful_s.max() * ticks) == want["useful_ticks_max"]
    assert whole.replayed is not None and whole.replayed.ideal_s is not None
    assert round(whole.replayed.ideal_s * ticks) == want["ideal_runtime_ticks"]
    for name in ("parallel_efficiency", "load_balance", "communication_efficiency"):
        assert getattr(whole, name) == pytest.approx(want[name], rel=1e-12)
    for name in ("serialisation_efficiency", "transfer_efficiency"):
        assert getattr(whole, name) == pytest.approx(want[name], rel=1e-12)
    assert whole.messages is not None and whole.messages.sent.sum() == whole.messages.received.sum()


@pytest.mark.parametrize("trace", ["mpt_farm_6_dilated", "public_scorep_stencil4d_32"], indirect=True)
def test_the_level_of_a_constant_phase_is_its_parallel_efficiency(trace: TraceStore) -> None:
    """But for the rounding of its breaks to whole ticks, at most one tick of all processors at each end."""
    use = build(trace)
    curve = use.curve()
    phases = fit(curve, 6, "constant")
    found = Statistics(trace).ranges(pairwise(phases.breaks), use)
    for level, stats in zip(phases.coefficients[:, 0], found, strict=True):
        rounding = 2 * use.unit / stats.duration_s
        assert stats.parallel_efficiency == pytest.approx(level / stats.processors, abs=rounding + 1e-12)
        assert stats.parallel_efficiency == pytest.approx(
            stats.load_balance * stats.communication_efficiency, rel=1e-12
        )
        assert stats.levels @ stats.shares == pytest.approx(stats.computing, abs=1e-9)


@pytest.mark.parametrize("trace", ["mpt_farm_6_dilated"], indirect=True)
def test_an_imported_trace_needs_no_other_pass(trace: TraceStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statistics of many ranges never iterate over a location's events."""

    def read(*_: object, **__: object) -> None:
        raise AssertionError("the trace was scanned")

    use = build(trace)
    monkeypatch.setattr(type(trace), "blocks", read)
    length = use.curve().duration
    for n in range(1, 8):
        cuts = np.linspace(0, length, n + 1)
        Statistics(trace).ranges(pairwise(cuts), use)


# ---------------------------------------------------------------- made up ones


@pytest.mark.parametrize("trace", ["mpt_farm_6_dilated"], indirect=True)
def test_a_range_is_replayed_once(trace: TraceStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run, while a breakpoint is moved, and where it is its only phase."""
    replayed: list[int] = []

    def noted(first: Ints, last: Ints, *rest: Any) -> int:
        replayed.append(int((last - first).sum()))
        return ideal_duration(first, last, *rest)

    monkeypatch.setattr("desktop.data.causality.ideal_duration", noted)
    statistics, use = Statistics(trace), build(trace)
    start, end = use.curve().span
    before = statistics.ranges([(start, end), (start, end)], use, replay=True)
    assert len(replayed) == 1 and before[0].replayed is not None and before[0].replayed.ideal_s is not None
    for number, part in enumerate((0.4, 0.6), 1):
        middle = start + part * (end - start)
        whole, *phases = statistics.ranges([(start, end), (start, middle), (middle, end)], use, replay=True)
        assert len(replayed) == 1 + 2 * number and sum(replayed[-2:]) == replayed[0]
        assert whole.replayed is before[0].replayed
        assert all(phase.replayed is not whole.replayed for phase in phases)


@st.composite
def threads(draw: st.DrawFn) -> Thread:
    one = st.tuples(st.integers(0, 30), st.sampled_from(["enter", "leave"]), st.integers(0, len(REGIONS) - 1))
    rows = sorted(draw(st.lists(one, max_size=25)), key=lambda row: row[0])
    first = rows[0][0] - draw(st.integers(0, 3)) if rows else draw(st.integers(0, 5))
    last = (rows[-1][0] if rows else first) + draw(st.integers(0, 3))
    worker = draw(st.booleans()) and any(kind == "enter" and region == 1 for _, kind, region in rows)
    base = Activity.COMPUTING if worker else draw(st.sampled_from([Activity.COMPUTING, Activity.IDLE]))
    return Thread(first, last, rows, base, worker, draw(st.integers(-20, 20)))


several = st.lists(threads(), min_size=1, max_size=4).filter(lambda many: any(t.last > t.first for t in many))


@settings(deadline=None, max_examples=40)
@given(
    several,
    st.sampled_from(["outermost", "strongest"]),
    st.lists(st.floats(0, 1), max_size=4),
    st.sampled_from([1, 5, 4096]),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_any_range_agrees_with_the_oracle(many, nesting, parts, rows, digests, fold, data) -> None:
    """Activities, regions and calls, with the user's rules, however the paths were kept; and ranges that
    follow each other add up to the whole, tick by tick."""
    override = data.draw(
        st.dictionaries(
            st.sampled_from([r.name for r in REGIONS]), st.sampled_from(list(Activity)), max_size=2
        )
    )
    classes = [override.get(r.name, a) for r, a in zip(REGIONS, CLASSES, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        for where in (digest, profile):
            patch.setattr(where, "ROWS", rows)
        if fold:
            patch.setattr(profile, "PATHS", 2)
        with stored(many, nesting=nesting, digests=digests) as store:
            use = build(store, Rules(overrides=override))
            length = use.edges[-1]
            cuts = sorted({0.0, *(round(part * length) for part in parts), length})
            ranges = [*pairwise(cuts), (0.0, length)]
            kept = Statistics(store)
            *pieces, whole = kept.ranges(ranges, use)
            for name in ("seconds", "exclusive_s", "inclusive_s", "calls", "outside_s", "useful_s"):
                total = sum(getattr(piece, name) for piece in pieces)
                np.testing.assert_array_equal(total, getattr(whole, name))
            for stats, (a, b) in zip((*pieces, whole), ranges, strict=True):
                agrees(stats, many, int(a), int(b), use, classes, nesting, bool(stats.note))


def agrees(stats, many, a, b, use, classes, nesting, folded) -> None:
    lasts = b == use.edges[-1]
    sums = [np.zeros(len(REGIONS)) for _ in range(3)]
    counts = np.zeros(b - a)
    for i, thread in enumerate(many):
        begin, end = a + use.start - thread.shift, b + use.start - thread.shift
        life, _, _ = timeline(thread, classes, {PARALLEL}, nesting)
        doing = [life.get(tick) for tick in range(a + use.start, b + use.start)]
        assert stats.seconds[i].tolist() == [doing.count(activity) for activity in Activity]
        counts += [activity == Activity.COMPUTING for activity in doing]
        ticks, calls = paths(thread, begin, end, lasts)
        if a == 0:  # what is before the first tick of the run is nothing; calls at it belong to it
            calls = paths(thread, -(10**6), end, lasts)[1]
        for total, part in zip(sums, by_region(ticks, calls, len(REGIONS)), strict=True):
            total += part
    np.testing.assert_array_equal(stats.exclusive_s, sums[0])
    if folded:
        assert (stats.inclusive_s <= sums[1]).all()
    else:
        np.testing.assert_array_equal(stats.inclusive_s, sums[1])
    np.testing.assert_array_equal(stats.calls, sums[2])
    levels, times = np.unique(counts, return_counts=True)
    np.testing.assert_array_equal(stats.levels, levels)
    np.testing.assert_allclose(stats.shares, times / (b - a), rtol=1e-12)
    assert stats.computing == pytest.approx(counts.mean(), abs=1e-12)
    assert stats.present == pytest.approx(stats.seconds.sum() / (b - a), abs=1e-12)


@settings(deadline=None, max_examples=25)
@given(several, st.floats(0, 0.8), st.floats(0.1, 0.9))
def test_the_call_tree_is_that_of_all_locations(many, begin, part) -> None:
    with stored(many) as store:
        use = build(store)
        length = int(use.edges[-1])
        a = min(round(begin * length), length - 1)
        b = max(a + 1, round(a + part * (length - a)))
        rows = Statistics(store).calls((a, b), use)
        found = {}
        for row in rows:
            path, at = [], row
            while at.region >= 0:
                path.append(at.region)
                at = rows[at.parent]
            found[tuple(reversed(path))] = row
            assert row.depth == len(path) and rows[row.row] is row
        each = []
        for t in many:
            cut = [x + use.start - t.shift for x in (a, b)]
            ticks, calls = paths(t, *cut, b == length)
            each.append((ticks, paths(t, -(10**6), cut[1], b == length)[1] if a == 0 else calls))
        known = {p[:k] for ticks, calls in each for p in (*ticks, *calls) for k in range(len(p) + 1)} | {()}
        assert set(found) == known
        for path, row in found.items():
            within = [
                sum(t for p, t in ticks.items() if p[: len(path)] == path)
                for ticks, calls in each
                if path == () or any(p[: len(path)] == path for p in (*ticks, *calls))
            ]
            assert row.inclusive_s == sum(within)
            assert row.exclusive_s == sum(ticks[path] for ticks, _ in each)
            assert row.calls == sum(calls[path] for _, calls in each)
            assert (row.locations, row.low, row.high) == (len(within), min(within), max(within))
            assert row.mean == pytest.approx(sum(within) / len(within))


@st.composite
def talk(draw: st.DrawFn) -> dict[int, list[Row]]:
    one = st.tuples(
        st.integers(0, 40),
        st.sampled_from(list(MessageKind)),
        st.integers(-1, 2),
        st.just(0),
        st.integers(0, 9),
    )
    return {i: sorted(draw(st.lists(one, max_size=30))) for i in range(3)}


@settings(deadline=None, max_examples=25)
@given(talk(), st.integers(0, 35), st.integers(1, 40))
def test_the_matrix_is_that_of_a_count(messages, a, length) -> None:
    b = min(a + length, 40)
    everywhere = [Thread(0, 40, [(0, "enter", SOLVE)])] * 3
    with stored(everywhere, messages) as store:
        found = alone(store, a, b).messages
        if not store.has("messages"):
            assert found is None
            return
        matrix: dict[tuple[int, int], list[int]] = {}
        for i, rows in messages.items():
            inside = [row for row in rows if a <= row[0] and (row[0] < b or b == 40)]
            for count, size, kinds in (
                (found.sent, found.bytes_sent, OUTWARD),
                (found.received, found.bytes_received, INWARD),
            ):
                sizes = [row[4] for row in inside if row[1] in kinds]
                assert (count[i], size[i]) == (len(sizes), sum(sizes))
            for _, kind, peer, _, size in inside:
                if kind in OUTWARD:
                    entry = matrix.setdefault((i, peer), [0, 0])
                    entry[0] += 1
                    entry[1] += size
        told = zip(found.sender, found.receiver, found.count, found.bytes, strict=True)
        assert {(s, r): [n, size] for s, r, n, size in told} == matrix
        assert list(zip(found.sender, found.receiver, strict=True)) == sorted(matrix)


def test_ranges_that_hold_nothing_are_refused() -> None:
    with stored([Thread(0, 10, [(0, "enter", SOLVE)])]) as store:
        for wrong in ((3, 3), (5, 4), (10, 12), (-5, 0)):
            with pytest.raises(ValueError, match="holds no tick"):
                alone(store, *wrong)
        cut_off = alone(store, -5, 99)
        assert (cut_off.start_s, cut_off.end_s) == (0, 10)


def test_a_source_that_is_a_curve(tmp_path: Path) -> None:
    path = tmp_path / "curve.csv"
    path.write_text("0 1\n1 4\n2.5 0.5\n3 0\n")
    with open_trace(path, output=tmp_path / "curve.h5") as store:
        found = alone(store, 0.5, 3.0, replay=True)
        assert found.computing == pytest.approx((0.5 + 6 + 0.25) / 2.5)
        assert found.levels.tolist() == [0.5, 1, 4]
        assert found.shares == pytest.approx([0.2, 0.2, 0.6])
        assert np.isnan(found.load_balance) and found.messages is None and found.note
        assert Statistics(store).calls((0, 3)) == []
        assert Statistics(store).flat(found) == []
        assert Statistics(store).changes(found, found, found) == []


# ---------------------------------------------------------------- the ideal network, waiting


def busy_but(*inside: tuple[int, int, int], last: int = 100) -> Thread:
    """Computes from 0 to `last` but for calls of (begin, end, region)."""
    events = [e for a, b, region in inside for e in ((a, "enter", region), (b, "leave", region))]
    return Thread(0, last, events)


def send(at: int, to: int, tag: int = 0, size: int = 8) -> Row:
    return at, MessageKind.SEND, to, tag, size


def receive(at: int, sender: int, tag: int = 0) -> Row:
    return at, MessageKind.RECV, sender, tag, 8


def test_late_sender() -> None:
    """0 computes 50 and sends; 1 waits for that from 10 on and ends its call at 60."""
    many = [busy_but((50, 55, ISEND)), busy_but((10, 60, RECV))]
    with stored(many, {0: [send(50, 1)], 1: [receive(60, 0)]}) as store:
        whole = alone(store, 0, 100, replay=True).replayed
        assert whole.ideal_s == 95  # 1: 10, waits until 50, then 40 more; 0: 50 and 45 more
        assert whole.communication_s.tolist() == [5, 50]
        assert whole.waiting_s.tolist() == [0, 40]
        assert whole.moving_s.tolist() == [5, 10]
        kept = Statistics(store)
        early, late = kept.ranges([(0, 30), (30, 100)], replay=True)
        assert early.replayed.waiting_s.tolist() == [0, 20]
        assert late.replayed.waiting_s.tolist() == [0, 20]
        assert "1 message sent here is not known" not in late.replayed.ideal_note
        before, after = kept.ranges([(0, 57), (57, 100)], replay=True)
        assert before.replayed.ideal_s == 52  # what is received later is nobody's concern
        assert after.replayed.ideal_s == 43  # and what was sent earlier is there


def test_a_call_waits_for_the_latest_of_its_partners() -> None:
    many = [busy_but((20, 21, ISEND)), busy_but((40, 41, ISEND)), busy_but((10, 60, RECV))]
    talk = {0: [send(20, 2)], 1: [send(40, 2)], 2: [receive(59, 0), receive(60, 1)]}
    with stored(many, talk) as store:
        assert alone(store, 0, 100, replay=True).replayed.waiting_s.tolist() == [0, 0, 30]


@pytest.mark.parametrize(
    "operation, root, ideal, waiting",
    [
        ("Allreduce", -1, 100 - 5, [30, 0, 15]),  # all wait for 1, which comes at 40
        ("Bcast", 0, 100 - 5, [0, 0, 0]),  # the root is first
        ("Bcast", 1, 100 - 5, [30, 0, 15]),
        ("Reduce", 0, 95, [30, 0, 0]),  # the root alone waits, for the last
        ("Reduce", 2, 95, [0, 0, 15]),
        ("Scan", -1, 95, [0, 0, 15]),  # everybody waits for those before
        ("Exscan", -1, 95, [0, 0, 15]),
        ("allreduce", -1, 95, [30, 0, 15]),  # as PICL calls it
        ("one-to-all", 1, 95, [30, 0, 15]),  # types of OTF
        ("all-to-one", 0, 95, [30, 0, 0]),
    ],
)
def test_collectives(operation: str, root: int, ideal: int, waiting: list[int]) -> None:
    """0, 1 and 2 come at 10, 40 and 25, all leave at 45."""
    many = [busy_but((begin, 45, ALLREDUCE)) for begin in (10, 40, 25)]
    told = {i: [(begin, 45, 0, root)] for i, begin in enumerate((10, 40, 25))}
    with stored(many, None, told, (operation,)) as store:
        found = alone(store, 0, 100, replay=True).replayed
        assert found.ideal_s == ideal
        assert found.waiting_s.tolist() == waiting


def test_an_ideal_network_hides_no_dependence() -> None:
    """A chain: each computes 10 after what it gets from the one before; nobody could be faster."""
    many, talk = [], {}
    for i in range(4):
        at = 10 * i
        many.append(
            busy_but((0, at, RECV), (at + 10, 100, ALLREDUCE)) if i else busy_but((10, 100, ALLREDUCE))
        )
        talk[i] = [receive(at, i - 1)] * (i > 0) + [send(at + 10, i + 1)] * (i < 3)
    with stored(many, talk) as store:
        found = alone(store, 0, 100, replay=True)
        assert found.replayed.ideal_s == 40
        assert found.serialisation_efficiency == pytest.approx(10 / 40)
        assert found.transfer_efficiency == pytest.approx(40 / 100)


def test_everybody_waits_for_somebody_else() -> None:
    """Times that cannot be: each receives before it sends what the other one needs."""
    many = [busy_but((10, 20, RECV), (30, 40, ISEND))] * 2
    talk = {i: [receive(20, 1 - i), send(30, 1 - i)] for i in range(2)}
    with stored(many, talk) as store:
        found = alone(store, 0, 100, replay=True)
        assert found.replayed.ideal_s is None
        assert "halt" in found.replayed.ideal_note
        assert found.serialisation_efficiency is None and found.transfer_efficiency is None
        assert found.replayed.waiting_s is None
        assert "2 of 2 comparisons" in found.replayed.waiting_note
        assert found.load_balance == 1


def test_no_ideal_network_is_slower_than_the_run() -> None:
    """Without data nobody has to wait in a reduction: the first member left long before the last came."""
    many = [busy_but((0, 10, ALLREDUCE)), busy_but((90, 100, ALLREDUCE))]
    with stored(many, None, {0: [(0, 10, 0, -1)], 1: [(90, 100, 0, -1)]}, ("Allreduce",)) as store:
        found = alone(store, 0, 100, replay=True)
        assert found.replayed.ideal_s is None and "longer than the run" in found.replayed.ideal_note
        assert found.transfer_efficiency is None and found.serialisation_efficiency is None


@pytest.mark.parametrize(("most_s", "given"), [(1.0, True), (20.0, False)])
def test_contradictions_that_change_little_do_not_hide_waiting(most_s: float, given: bool) -> None:
    """One tick is a second. The call takes 30, of which 20 are waiting."""
    many = [busy_but((50, 55, ISEND)), busy_but((30, 60, RECV))]
    with stored(many, {0: [send(50, 1)], 1: [receive(60, 0)]}) as store:
        clock = store.clock
        clock.checked, clock.violations_before, clock.violations_after = 9, 1, 1
        clock.details = {"most_before_s": most_s, "most_repaired_s": most_s, "repaired": 1}
        found = alone(store, 0, 100, replay=True).replayed
        assert "1 of 9 comparisons" in found.waiting_note
        if given:
            assert found.waiting_s.tolist() == [0, 20]
            assert found.waiting_off_s == 1
            assert "change waiting by 1 s" in found.waiting_note
        else:
            assert found.waiting_s is None


@pytest.mark.parametrize(
    "talk, says",
    [
        ({0: [send(50, 1)]}, "1 message sent here is not known to be received."),
        ({1: [receive(60, 0)] * 2}, "2 messages received here are not known to be sent."),
        ({0: [send(50, 1, 1)], 1: [receive(60, 0)]}, "to be received, and 1 message received here is not"),
        ({}, "No messages and no collective operations"),
    ],
)
def test_why_there_is_no_replay(talk: dict[int, list[Row]], says: str) -> None:
    many = [busy_but((50, 55, ISEND)), busy_but((10, 60, RECV))]
    with stored(many, talk) as store:
        found = alone(store, 0, 100, replay=True).replayed
        assert found.ideal_s is None
        assert says in found.ideal_note
        assert found.waiting_s is None and found.waiting_note


def test_collectives_that_disagree() -> None:
    many = [busy_but((10, 45, ALLREDUCE))] * 2
    with stored(many, None, {i: [(10, 45, i, -1)] for i in range(2)}, ("Allreduce", "Barrier")) as store:
        assert "different collective" in alone(store, 0, 100, replay=True).replayed.ideal_note


# ---------------------------------------------------------------- what changed, tables


def test_what_changed_is_said_in_words() -> None:
    """0 receives from 50 on, before it computes; 1 does the same all the time."""
    many = [busy_but((50, 100, RECV)), busy_but((0, 1, RECV))]
    talk = {0: [send(2 * k + 1, 1) for k in range(25)], 1: [send(52 + 5 * k, 0) for k in range(10)]}
    with stored(many, talk) as store:
        kept = Statistics(store)
        run, left, right = kept.ranges([(0, 100), (0, 50), (50, 100)])
        found = kept.changes(run, left, right)
        assert [c.seconds for c in found] == sorted((c.seconds for c in found), reverse=True)
        region = found[0]
        assert region.seconds == pytest.approx(0.49 * 2 * 50)  # of 100 processor-seconds of each half
        by_kind: dict[str, list[Change]] = {}
        for change in found:
            by_kind.setdefault(change.kind, []).append(change)
        assert by_kind["region"][0].index == (RECV,)
        assert by_kind["region"][0].sentence == (
            "Region MPI_Recv takes 50 % of the processors' time, 1 % before."
        )
        assert by_kind["location"][0].sentence == (
            "Rank 0 computes 0 % of the time, 100 % before; all processors together 50 %, 99 % before."
        )
        assert by_kind["messages"][0].sentence == (
            "1.6 B/s are sent (0.2 messages per second), 4 B/s before (0.5 messages per second)."
        )
        assert {change.index for change in by_kind["pair"]} == {(0, 1), (1, 0)}
        assert "100 % of all bytes go from rank 1 to rank 0, 0 % before." in {
            change.sentence for change in by_kind["pair"]
        }
        assert kept.changes(run, left, left) == []
        assert len(kept.changes(run, left, right, most=2)) == 2


def test_what_begins_and_ends_is_said_and_what_is_noise_is_not() -> None:
    """From 50 on both are in another call; of the time before, 0 spends a little more in one half of it."""
    many = [busy_but((50, 100, ALLREDUCE)), busy_but((20, 21, RECV), (50, 100, ALLREDUCE))]
    with stored(many, {}) as store:
        kept = Statistics(store)
        run, first, second, after = kept.ranges([(0, 100), (0, 25), (25, 50), (50, 100)])
        said = [change.sentence for change in kept.changes(run, second, after)]
        assert said[0] == "Region MPI_Allreduce begins here: it takes 100 % of the processors' time."
        assert kept.changes(run, first, second) == []  # one wait in 25 s is no change
        back = [change.sentence for change in kept.changes(run, after, second)]
        assert back[0] == "Region MPI_Allreduce ends here: it took 100 % of the processors' time before."


def test_what_stands_out_is_named_alone() -> None:
    """From 50 on all but 3 receive: 3, which goes on as before, is what is unusual, not the others."""
    many = [*[busy_but((50, 99, RECV))] * 3, busy_but((99, 100, RECV)), busy_but((50, 99, RECV))]
    with stored(many, {3: [send(60, 0)]}) as store:
        kept = Statistics(store)
        run, before, after = kept.ranges([(0, 100), (0, 50), (50, 99)])
        found = kept.changes(run, before, after)
        assert [c.index for c in found if c.kind == "location"] == [(3,)]
        assert "Rank 3 computes 100 % of the time as before; all processors together 20 %, 100 % before." in {
            change.sentence for change in found
        }
        assert [c.sentence for c in found if c.kind in ("messages", "pair")] == [
            "0.163 B/s are sent (0.0204 messages per second), nothing before."
        ]
        assert [c.sentence for c in kept.changes(run, after, before) if c.kind in ("messages", "pair")] == [
            "Nothing is sent, 0.163 B/s before (0.0204 messages per second)."
        ]


def test_a_volume_counts_by_what_the_run_sends() -> None:
    """One message after none stands first in a run of nothing else, and is no word worth beside gigabytes."""
    many = [busy_but((0, 1, RECV)), busy_but((0, 1, RECV))]
    for others in ([], [send(80 + k, 0, size=10**9) for k in range(5)]):
        with stored(many, {0: [send(30, 1)], 1: others}) as store:
            kept = Statistics(store)
            run, none, one, much = kept.ranges([(0, 100), (0, 30), (30, 31), (80, 100)])
            found = [c for c in kept.changes(run, none, one) if c.kind == "messages"]
            if others:
                assert found == []
                # The only bytes of a range are all of its bytes, but who gets them is as little worth.
                assert [c for c in kept.changes(run, one, much) if c.kind == "pair"] == []
                assert [c.kind for c in kept.changes(run, one, much, 1)] == ["messages"]
            else:
                assert kept.changes(run, none, one, 1) == found
                assert (found[0].left, found[0].right, found[0].difference) == (0.0, 1.0, 1.0)


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 1), st.integers(0, 10**6)), max_size=12),
    st.integers(2, 98),
)
def test_parts_of_volumes_are_parts(sent: list[tuple[int, int, int]], cut: int) -> None:
    """Whatever is sent: parts from 0 to 1, and turned round the same with the other sign."""
    talk: dict[int, list[Any]] = {0: [], 1: []}
    for at, sender, size in sorted(sent):
        talk[sender].append(send(at, 1 - sender, size=size))
    with stored([busy_but((0, 1, RECV)), busy_but((0, 1, RECV))], talk) as store:
        kept = Statistics(store)
        run, left, right = kept.ranges([(0, 100), (0, cut), (cut, 100)])
        there, back = (
            {(c.kind, c.index): c for c in kept.changes(run, *sides, 99) if c.kind in ("messages", "pair")}
            for sides in ((left, right), (right, left))
        )
        assert there.keys() == back.keys()
        for key, change in there.items():
            assert 0 <= min(change.left, change.right) <= max(change.left, change.right) <= 1
            assert abs(change.difference) <= abs(change.right - change.left) + 1e-12
            assert back[key].difference == pytest.approx(-change.difference)


@settings(deadline=None)
@given(st.floats(0, 1), st.floats(0, 1))
def test_what_was_is_told_apart_from_what_is(after: float, before: float) -> None:
    told = statistics._now(after, before, " of it")
    if told.endswith(" as before"):
        assert abs(after - before) <= 0.001
    else:
        now, was = told.removesuffix(" before").split(", ")
        assert now.removesuffix(" of it") != was


def test_flat_profile_and_roles() -> None:
    with stored([busy_but((50, 100, RECV)), busy_but((0, 10, ISEND))]) as store:
        kept = Statistics(store)
        (stats,) = kept.ranges([(0, 100)])
        rows = kept.flat(stats)
        assert [(row.name, row.exclusive_s, row.calls) for row in rows] == [
            (NO_REGION, 140, 0),
            ("MPI_Recv", 50, 1),
            ("MPI_Isend", 10, 1),
        ]
        assert sum(row.share for row in rows) == pytest.approx(1)
        assert rows[1].activity == Activity.IDLE
        assert kept.by_role(stats) == {NO_REGION: 140, "point2point": 60}
        assert stats.most_loaded(1).tolist() == [1] and stats.idlest(1).tolist() == [0]
        assert stats.utilization.tolist() == [0.5, 0.9]
        assert stats.by_activity[Activity.OVERHEAD] == 10
        # Counting overhead as computing changes what is useful, and needs no other pass.
        use = build(store, Rules(computing=frozenset({Activity.COMPUTING, Activity.OVERHEAD})))
        (other,) = kept.ranges([(0, 100)], use)
        assert other.useful_s.tolist() == [50, 100]


def test_counts_that_cannot_be_are_no_error_inside_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Numbers of messages in a damaged store, from which shares and their errors are computed."""
    path = tmp_path / "run.h5"
    (sample,) = (one.path for one in samples() if one.path.parent.name == "lu_8_picl")
    open_trace(sample, output=path).close()
    with h5py.File(path, "r+") as file:
        sent = file["derived/traffic/sent"]
        sent[:] = sent[:] - 1000
    assert cli.run(["stats", str(path), "-n", "3"]) == 0, capsys.readouterr().err

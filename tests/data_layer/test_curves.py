"""Curves of anything against counting tick by tick, and what importers say of metrics."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.core.curve import StepCurve
from desktop.core.selection import search
from desktop.data import utilization
from desktop.data.curves import KINDS, available, build_curve, metrics_in, parse
from desktop.data.events import Importer, Location, MetricAbout, Region
from desktop.data.opening import open_trace
from desktop.data.presence import structure
from desktop.data.store import Source, StoreWriter, TraceStore, open_store
from desktop.data.utilization import build, keep
from desktop.errors import CurveError
from desktop.progress import Progress
from tests.data_layer.otf2_writer import DOUBLE, SIGNED, Event, Place, write

IMPORTER = Importer("made", "Made for tests", "1", lambda p, h: True, lambda p, s, g: None, lambda p: [p])
REGIONS = [
    Region("main", "function", "user"),
    Region("solve", "function", "user"),
    Region("MPI_Send", "point2point", "mpi"),
    Region("MPI_Barrier", "barrier", "mpi"),
    Region("write", "file_io", "user"),
    Region("kernel", "kernel", "cuda"),
]
ENTER, LEAVE = 0, 1
DATA = Path(__file__).parents[1] / "data"

Rows = list[tuple[int, int, int]]
Samples = list[tuple[int, float]]


@st.composite
def events(draw: st.DrawFn, regions: list[int]) -> Rows:
    times = sorted(draw(st.lists(st.integers(0, 40), max_size=16)))
    return [(t, draw(st.sampled_from([ENTER, LEAVE])), draw(st.sampled_from(regions))) for t in times]


@contextmanager
def stored(
    processors: list[Rows],
    streams: list[Rows] = [],  # noqa: B006 - never changed
    links: list[tuple[int, int, int, int, int]] = [],  # noqa: B006
    samples: list[Samples] = [],  # noqa: B006
    about: MetricAbout | None = None,
    shifts: tuple[int, ...] = (0,),
) -> Iterator[TraceStore]:
    """Locations with these events; all processors last from 0 to 50. Links: sender, receiver, sent, received,
    bytes. Samples of the metric ``m``, of each processor."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "made.h5"
        with StoreWriter(path, Source("made", "made"), IMPORTER) as writer:
            writer.describe(ticks_per_second=1e6, repair=True)
            for region in REGIONS:
                writer.region(region)
            for i, rows in enumerate(processors + streams):
                cpu = i < len(processors)
                first, last = (0, 50) if cpu else (rows[0][0], rows[-1][0])
                index = writer.location(
                    Location(
                        id=i,
                        kind="cpu" if cpu else "accelerator",
                        first=first,
                        last=last,
                        shift=shifts[i % len(shifts)],
                    )
                )
                time, kind, region = (np.array([row[k] for row in rows], np.int64) for k in range(3))
                writer.append("events", index, time=time, kind=kind, region=region)
            if about is not None:
                text = writer.metric("m", about)
                other = writer.metric("other", MetricAbout())
                for i, values in enumerate(samples):
                    twice = np.repeat(np.array([t for t, _ in values], np.int64), 2)
                    value = np.array([v for _, w in values for v in (w, 99.0)], float)
                    metric = np.tile(np.array([text, other], np.uint32), len(values))
                    writer.append("metrics", i, time=twice, metric=metric, value=value)
            writer.complete()
            by = {i: sorted(row[1:] for row in links if row[0] == i) for i in range(len(processors))}
            for i, rows in by.items():
                if rows:
                    peer, sent, received, size = (np.array(c, np.int64) for c in zip(*rows, strict=True))
                    order = np.argsort(sent, kind="stable")
                    writer.derive(
                        "links",
                        i,
                        time=sent[order],
                        arrival=received[order],
                        peer=peer[order],
                        bytes=size[order],
                        tag=np.zeros(sent.size, np.int64),
                    )
                    writer.tallies[i].sent = len(rows)
            keep(writer, Progress())
        with open_store(path) as store:
            yield store


def levels(curve: StepCurve) -> list[float]:
    """The level at every tick."""
    ticks = np.arange(curve.edges[0], curve.edges[-1])
    return curve.level[np.searchsorted(curve.edges, ticks, side="right") - 1].tolist()


def open_at(rows: Rows, last: int, wanted: set[int]) -> list[bool]:
    """Whether any of the wanted regions is open, tick by tick from 0 to 50."""
    found = []
    for tick in range(50):
        open_: list[int] = []
        for time, kind, region in rows:
            if time > tick:
                break
            if kind == ENTER:
                open_.append(region)
            elif region in open_:
                del open_[len(open_) - 1 - open_[::-1].index(region)]
        found.append(tick < last and any(region in wanted for region in open_))
    return found


@settings(deadline=None, max_examples=25)
@given(
    st.lists(events([0, 1, 2, 3, 4]), min_size=1, max_size=4),
    st.lists(events([5, 4]).filter(bool), max_size=2),
    st.sampled_from([1, 3, 4096]),
)
def test_regions_communication_and_streams_agree_with_the_oracle(
    processors: list[Rows], streams: list[Rows], rows: int
) -> None:
    with pytest.MonkeyPatch.context() as patch, stored(processors, streams) as store:
        patch.setattr(utilization, "ROWS_AT_LEAST", rows)
        patch.setattr(utilization, "ROWS_IN_FLIGHT", rows)
        use = build(store)
        has = {one.curve for one in available(store)}
        asked = {f"region:{REGIONS[r].name}": {r} for r in range(5)} | {"communication": {2, 3}}
        for curve, wanted in asked.items():
            entered = {r for rows_ in processors for _, kind, r in rows_ if kind == ENTER}
            assert (curve in has) >= bool(entered & wanted)
            if curve not in has or (streams and curve == "region:write" and 4 not in entered):
                continue
            found = build_curve(store, use, curve)
            assert (found.start, found.duration) == (use.curve().start, use.curve().duration)
            assert found.capacity == len(processors)
            told = [open_at(one, 50, wanted) for one in processors]
            assert levels(found) == [sum(column) for column in zip(*told, strict=True)]
            assert (found.level[1:] != found.level[:-1]).all()
        if streams:
            found = build_curve(store, use, "accelerators")
            told = [open_at(one, one[-1][0], {4, 5}) for one in streams]
            assert levels(found) == [sum(column) for column in zip(*told, strict=True)]
            assert found.capacity == len(streams)
            assert found.quantity.axis == "Streams"


@settings(deadline=None, max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2), st.integers(0, 2), st.integers(0, 45), st.integers(-5, 30), st.integers(0, 9)
        ).map(lambda x: (x[0], x[1], x[2], x[2] + x[3], x[4])),
        max_size=12,
    ),
    st.tuples(*[st.integers(-4, 4)] * 3),
)
def test_messages_and_bytes_in_flight_agree_with_the_oracle(
    links: list[tuple[int, int, int, int, int]], shifts: tuple[int, ...]
) -> None:
    with stored([[(0, ENTER, 0), (50, LEAVE, 0)]] * 3, links=links, shifts=shifts) as store:
        use = build(store)
        if not links:
            with pytest.raises(CurveError, match="no message is recorded"):
                build_curve(store, use, "messages")
            return
        end = int(use.edges[-1])
        for curve, weighed in (("messages", False), ("bytes", True)):
            expected = [0.0] * end
            for sender, receiver, sent, received, size in links:
                a, b = sent + shifts[sender] - use.start, received + shifts[receiver] - use.start
                for tick in range(max(a, 0), min(b, end)):
                    expected[tick] += size if weighed else 1
            assert levels(build_curve(store, use, curve)) == expected


def value_at(samples: Samples, tick: float, about: MetricAbout, kind: str) -> float:
    """Of one location; NaN where it has none. Ticks are microseconds, the first event is at 0."""
    times = sorted({t for t, _ in samples})
    last = {t: [v for at, v in samples if at == t][-1] for t in times}
    added = {t: sum(v for at, v in samples if at == t) for t in times}
    before = [t for t in times if t <= tick]
    after = [t for t in times if t > tick]
    rate = kind == "metric-rate" or (kind == "metric" and about.mode != "absolute")
    if rate and about.mode != "relative":
        if not before or not after:
            return math.nan
        return (last[after[0]] - last[before[-1]]) / ((after[0] - before[-1]) * 1e-6)
    if about.timing == "last":
        if not after:
            return math.nan
        since = before[-1] if before else 0
        return added[after[0]] / ((after[0] - since) * 1e-6) if rate else last[after[0]]
    if not before:
        return math.nan
    if rate:
        return added[before[-1]] / ((after[0] - before[-1]) * 1e-6) if after else math.nan
    return last[before[-1]]


@settings(deadline=None, max_examples=25)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 48), st.integers(-9, 9).map(float)), max_size=7).map(
            lambda rows: sorted(rows, key=lambda row: row[0])
        ),
        min_size=1,
        max_size=4,
    ),
    st.builds(
        MetricAbout,
        st.just("J"),
        st.sampled_from(["accumulated", "absolute", "relative"]),
        st.sampled_from(["next", "last"]),
    ),
)
def test_metrics_agree_with_the_oracle(samples: list[Samples], about: MetricAbout) -> None:
    with stored([[(0, ENTER, 0), (50, LEAVE, 0)]] * len(samples), samples=samples, about=about) as store:
        use = build(store)
        for kind in ("metric", "metric-sum", "metric-mean", "metric-rate"):
            found = levels(build_curve(store, use, f"{kind}:m"))
            for tick in range(50):
                told = [value_at(one, tick, about, kind) for one in samples]
                known = [value for value in told if not math.isnan(value)]
                expected = sum(known) / (max(len(known), 1) if kind == "metric-mean" else 1)
                assert found[tick] == pytest.approx(expected, rel=1e-12, abs=1e-9)


def test_a_sum_over_locations_carries_no_rounding_on() -> None:
    """A large value that comes and goes leaves nothing behind in the sum of small ones."""
    samples = [[(0, 0.1), (10, 1e16), (20, 0.1)], [(0, 0.2)]]
    with stored([[(0, ENTER, 0), (50, LEAVE, 0)]] * 2, samples=samples, about=MetricAbout()) as store:
        assert levels(build_curve(store, build(store), "metric-sum:m"))[40] == 0.1 + 0.2


def test_processors_in_calls_of_a_communicator() -> None:
    rows = [(0, ENTER, 0), (5, ENTER, 3), (9, LEAVE, 3), (20, ENTER, 3), (26, LEAVE, 3)]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "made.h5"
        with StoreWriter(path, Source("made", "made"), IMPORTER) as writer:
            writer.describe(ticks_per_second=1e6)
            for region in REGIONS:
                writer.region(region)
            for i in range(2):
                index = writer.location(Location(id=i, first=0, last=50))
                time, kind, region = (np.array([row[k] for row in rows], np.int64) for k in range(3))
                writer.append("events", index, time=time + i, kind=kind, region=region)
            operation = writer.text("Barrier")
            for i in range(2):
                same = {"sent": np.zeros(2, np.int64), "received": np.zeros(2, np.int64)}
                writer.append(
                    "collectives",
                    i,
                    begin=np.array([6, 21]) + i,
                    end=np.array([8, 25]) + i,
                    operation=np.full(2, operation),
                    communicator=np.array([7, 8]),
                    root=np.full(2, -1),
                    **same,
                )
            writer.complete()
            keep(writer, Progress())
        with open_store(path) as store:
            use = build(store)
            assert [x.curve for x in available(store) if x.curve.startswith("communicator")] == [
                "communicator:7",
                "communicator:8",
            ]
            for name, begin, end in (("7", 5, 9), ("8", 20, 26)):
                told = [(begin <= t < end) + (begin + 1 <= t < end + 1) for t in range(50)]
                assert levels(build_curve(store, use, f"communicator:{name}")) == told


def meeting(begin: int, comm: int) -> list[Event]:
    """A barrier of a communicator, as one rank records it."""
    return [
        Event(begin, "Enter", (1,)),
        Event(begin, "MpiCollectiveBegin", ()),
        Event(begin + 4, "MpiCollectiveEnd", (0, comm, 0xFFFFFFFF, 0, 0)),
        Event(begin + 4, "Leave", (1,)),
    ]


def test_communicators_have_the_names_that_the_trace_gives_them(tmp_path: Path) -> None:
    """One whose name others have too is told by its number as well; the number alone finds any of them."""
    rows = [
        Event(0, "Enter", (0,)),
        *meeting(10, 0),
        *meeting(20, 1),
        *meeting(30, 2),
        Event(50, "Leave", (0,)),
    ]
    places, regions = [Place(0, rows), Place(1, rows)], {0: "main", 1: "MPI_Barrier"}
    for names, wanted in (
        (("row", "row", ""), ["row (0)", "row (1)"]),
        (("world", "7", ""), ["world", "7 (1)"]),
    ):
        archive = write(tmp_path / "".join(wanted), places, regions=regions, communicators=names)
        with open_trace(archive, output=archive.with_suffix(".h5")) as store:
            told = [one for one in available(store) if one.curve.startswith("communicator:")]
            assert [one.curve for one in told] == [f"communicator:{name}" for name in wanted]
            assert told[0].title == f"Processors in calls of communicator {wanted[0]}"
            use = build(store)
            for number, name in enumerate(wanted):
                curve = build_curve(store, use, f"communicator:{name}")
                assert curve.quantity.name == f"In communicator {name}"
                assert [t for t, level in enumerate(levels(curve)) if level] == list(
                    range(10 + 10 * number, 14 + 10 * number)
                )
                again = build_curve(store, use, f"communicator:{number}")
                assert levels(again) == levels(curve) and again.quantity == curve.quantity


# ------------------------------------------------------------------ importers


def test_the_counters_of_a_trace_of_scorep(tmp_path: Path) -> None:
    """The integral of a rate is what was counted between the first and the last sample of each rank."""
    with open_trace(
        DATA / "otf2/public_scorep_pingpong_papi_2.tar.gz", output=tmp_path / "trace.h5"
    ) as store:
        assert store.metrics["PAPI_TOT_CYC"] == MetricAbout("", "accumulated", "next")
        number, counted = store.texts.index("PAPI_TOT_CYC"), 0.0
        for i in range(2):
            rows = [value[which == number] for which, value in store.blocks("metrics", i, "metric", "value")]
            value = np.concatenate(rows)
            counted += value[-1] - value[0]
        use = build(store)
        curve = build_curve(store, use, "metric:PAPI_TOT_CYC")
        assert curve.integral == pytest.approx(counted, rel=1e-9)
        assert (curve.quantity.unit, curve.quantity.counted) == ("/s", False)
        (told,) = metrics_in(store, use, ["ALL"], [(0.0, curve.duration)])
        assert [one["name"] for one in told] == ["PAPI_TOT_CYC", "PAPI_L2_TCM", "PAPI_BR_MSP"]
        assert told[0]["total"] == pytest.approx(counted, rel=1e-9)
        # Communicating is being in overhead or waiting, here.
        both = [build_curve(store, use, name).integral for name in ("overhead", "idle")]
        assert build_curve(store, use, "communication").integral == pytest.approx(sum(both), rel=1e-12)


def test_modes_and_units_of_otf2(tmp_path: Path) -> None:
    """Values of asynchronous metrics, of a location of their own, by their definitions."""
    modes = {
        "energy": (0x00, -6, "J"),
        "power": (0x31, 0, "W"),
        "load": (0x21, 0, "#"),
        "new": (0x12, 3, "B"),
    }
    host = [Event(0, "Enter", (0,)), Event(100, "Leave", (0,))]
    metric = [
        Event(t, "Metric", (0, (SIGNED, v), (DOUBLE, 2.0 * v), (SIGNED, v), (SIGNED, v)))
        for t, v in ((10, 1), (30, 5), (80, 9))
    ]
    archive = write(
        tmp_path,
        [Place(0, host), Place(1, metric, kind=3, thread_of=0)],
        regions={0: "main"},
        members=list(modes),
        about=list(modes.values()),
    )
    with open_trace(archive, output=tmp_path / "trace.h5") as store:
        assert store.metrics == {
            "energy": MetricAbout("\N{MICRO SIGN}J", "accumulated", "next"),
            "power": MetricAbout("W", "absolute", "next"),
            "load": MetricAbout("", "absolute", "last"),
            "new": MetricAbout("kB", "relative", "last"),
        }
        use = build(store)
        assert build_curve(store, use, "metric-sum:power").at([5e-9, 20e-9, 90e-9]).tolist() == [0, 2, 18]
        assert build_curve(store, use, "metric:load").at([5e-9, 20e-9, 90e-9]).tolist() == [0, 5, 0]
        rate = build_curve(store, use, "metric:energy")
        assert rate.at([20e-9, 50e-9]).tolist() == pytest.approx([4 / 20e-9, 4 / 50e-9])
        assert rate.quantity.unit == "\N{MICRO SIGN}J/s"


def test_a_store_without_what_metrics_mean_has_them_by_their_texts(tmp_path: Path) -> None:
    """As imports wrote it before."""
    with stored([[(0, ENTER, 0), (50, LEAVE, 0)]], samples=[[(1, 4.0)]], about=MetricAbout()) as store:
        store.metrics.clear()
        use = build(store)
        asked = [one.curve for one in available(store)]
        assert "metric:m" in asked and "metric:other" in asked
        assert build_curve(store, use, "metric:m").at([5e-6]).tolist() == [4.0]


def test_names_are_kept_apart_where_definitions_differ(tmp_path: Path) -> None:
    with stored([[(0, ENTER, 0), (50, LEAVE, 0)]], samples=[[(1, 1.0)]], about=MetricAbout("J")) as store:
        assert store.metrics == {"m": MetricAbout("J"), "other": MetricAbout()}
    with StoreWriter(tmp_path / "two.h5", Source("made", "made"), IMPORTER) as writer:
        writer.describe(ticks_per_second=1e6)
        first, again = writer.metric("x", MetricAbout("J")), writer.metric("x", MetricAbout("J"))
        other = writer.metric("x", MetricAbout("W"))
        assert first == again != other
        assert writer.metrics == {"x": MetricAbout("J"), "x (2)": MetricAbout("W")}


# ------------------------------------------------------------------ words


def test_what_is_asked_wrongly_is_said() -> None:
    assert parse("region:a:b") == ("region", "a:b")
    for wrong, said in (
        ("nix", "there are no curves of 'nix', kinds are computing"),
        ("region", "this kind is written region:NAME"),
        ("io:x", "this kind is written io"),
    ):
        with pytest.raises(CurveError, match=said):
            parse(wrong)
    with stored([[(0, ENTER, 1), (50, LEAVE, 1)]]) as store:
        use = build(store)
        with pytest.raises(CurveError) as raised:
            build_curve(store, use, "accelerators")
        told = str(raised.value)
        assert told.startswith("made: has no curve accelerators: no stream of an accelerator is recorded")
        assert told.endswith("this trace has curves of computing, region")
        with pytest.raises(CurveError, match="has no curve region:foo: it has solve, say one of them"):
            build_curve(store, use, "region:foo")
        assert build_curve(store, use, "computing") is use.curve()


def test_every_kind_has_words() -> None:
    for kind, of in KINDS.items():
        assert of.title
        assert of.needs
        assert kind == kind.lower()


# ------------------------------------------------------------------ which phases of a metric


@pytest.mark.parametrize("together", [True, False])
def test_events_decide_about_a_metric_only_where_it_follows_them(tmp_path: Path, together: bool) -> None:
    """Four processors in parts of a program that end at known times, and a power that changes at these times,
    or at others."""
    end, cuts = 1_000_000, np.array([0, 210_000, 480_000, 700_000, 1_000_000])
    changes = cuts[1:-1] if together else np.array([330_000, 610_000])
    rng = np.random.default_rng(5)
    with StoreWriter(tmp_path / "made.h5", Source("made", "made"), IMPORTER) as writer:
        writer.describe(ticks_per_second=1e6)
        for name in ("first", "second", "third", "last"):
            writer.region(Region(name, "function", "user"))
        wait = writer.region(Region("MPI_Barrier", "barrier", "mpi"))
        for i in range(4):
            writer.location(Location(id=i, first=0, last=end))
        for i in range(4):
            rows = []
            for part, (a, b) in enumerate(itertools.pairwise(cuts)):
                early = b - int(rng.uniform(0.005, 0.02) * (b - a))
                rows += [(a, 0, part), (early, 0, wait), (b, 1, wait), (b, 1, part)]
            time, kind, region = (np.array([row[k] for row in rows], np.int64) for k in range(3))
            writer.append("events", i, time=time, kind=kind, region=region)
        time = np.arange(0, end, end // 400)
        level = np.array([100.0, 140.0, 90.0, 130.0])[np.searchsorted(changes, time, "right")]
        metric = np.full(time.size, writer.metric("power", MetricAbout("W")), np.uint32)
        writer.append("metrics", 0, time=time, metric=metric, value=level + rng.normal(0, 2, time.size))
        writer.complete()
        keep(writer, Progress())
    with open_store(tmp_path / "made.h5") as store:
        use = build(store)
        curve = build_curve(store, use, "metric:power")
        known = structure(store, use).landmarks(curve, ())
        swept, suggestion = search(curve, "mixed", landmarks=known)
        breaks = suggestion.fit(curve, swept).breaks[1:-1]
        assert breaks.size >= changes.size
        assert all(np.abs(breaks - t).min() < 0.01 for t in changes * 1e-6)
        assert (suggestion.breakpoints is not None) == together

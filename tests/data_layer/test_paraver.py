"""Paraver import against facts counted elsewhere, against an oracle that fills ticks, and against damage."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import math
import random
import shutil
import tracemalloc
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some

from desktop.core.accounts import Account
from desktop.data import spill
from desktop.data.classify import region_activity
from desktop.data.clock import Wrong, check_clocks
from desktop.data.events import NO_COMMUNICATOR, Activity, MessageKind, MetricAbout
from desktop.data.importers import paraver
from desktop.data.importers._paraver import tables
from desktop.data.info import info
from desktop.data.lines import THREADS
from desktop.data.matching import ROWS, match_messages
from desktop.data.opening import open_trace
from desktop.data.root_causes import explain
from desktop.data.statistics import Statistics
from desktop.data.utilization import Rules, build
from desktop.errors import TraceFormatError
from desktop.progress import Cancelled, Progress
from tests.data_layer.memory import Memory

DATA = Path(__file__).parent.parent / "data" / "paraver"
SHARED = Path(__file__).parents[3] / "shared" / "traces" / "paraver"
COMPUTING, OVERHEAD, IDLE, IO, UNMEASURED = Activity
SAMPLES = [
    DATA / "farm_6.prv",
    DATA / "cholesky_ring_16.prv.xz",
    pytest.param(
        SHARED / "public_mpi_qsort_4.prv",
        marks=pytest.mark.skipif(
            not (SHARED / "public_mpi_qsort_4.prv").exists(),
            reason="this public trace is under the LGPL and not bundled",
        ),
    ),
]


def named(path: Path) -> str:
    return path.name.removesuffix(".xz")


samples = pytest.mark.parametrize("path", SAMPLES, ids=named)


def read(path: Path, progress: Progress | None = None) -> Memory:
    sink = Memory()
    paraver.IMPORTER.read(path, sink, progress or Progress())
    return sink


def import_lines(folder: Path, *lines: str | bytes, header: str = "") -> Memory:
    """A trace of two tasks of two threads each, unless the header says otherwise."""
    path = folder / "trace.prv"
    first = header or "#Paraver (01/02/03 at 04:05):100_ns:1(4):1:2(2:1,2:1),1"
    path.write_bytes(b"".join((x.encode() if isinstance(x, str) else x) + b"\n" for x in (first, *lines)))
    return read(path)


def unpacked(path: Path) -> list[str]:
    data = path.read_bytes()
    return (lzma.decompress(data) if path.suffix == ".xz" else data).decode().splitlines()


# -- what was stored, in words ---------------------------------------------------------------------------


class Interval(NamedTuple):
    name: str
    begin: int
    end: int


def intervals(sink: Memory, index: int, *, synthetic: bool, nested: bool = False) -> list[Interval]:
    """Every stay in a region, of states (synthetic) or calls; nested: nothing may cross."""
    table = sink.table("events", index)
    last = sink.locations[index].last
    found, open_now = [], []
    for time, kind, region in zip(table["time"].tolist(), table["kind"], table["region"], strict=True):
        if kind == 0:
            open_now.append((region, time))
            continue
        at = max(k for k, (other, _) in enumerate(open_now) if other == region)
        assert not nested or at == len(open_now) - 1
        found.append((region, open_now.pop(at)[1], time))
    found += [(region, begin, last) for region, begin in open_now]
    return sorted(
        Interval(sink.regions[region].name, begin, end)
        for region, begin, end in found
        if sink.regions[region].synthetic == synthetic
    )


def painted(sink: Memory, index: int) -> np.ndarray:
    """The activity in every tick, by the library's own replay of one location."""
    alone = Memory()
    alone.ticks_per_second, alone.regions = sink.ticks_per_second, sink.regions
    alone.locations = [sink.locations[index]]
    alone.appended = {("events", 0): sink.appended.get(("events", index), [])}
    use = build(alone)
    lengths = np.diff(use.edges).astype(int)
    return np.repeat(use.counts.argmax(axis=0), lengths)


# -- the oracle: line by line, tick by tick ---------------------------------------------------------------

OFF_TYPES = {40000012: 0, 40000003: 1}


class Thread:
    """What a healthy trace says of one thread, from its lines."""

    def __init__(self) -> None:
        self.times: list[int] = []
        self.states: list[tuple[int, int, int]] = []
        self.events: list[tuple[int, int, int]] = []  # time, type, value
        self.messages: list[tuple[int, int, str, int, int]] = []  # time, kind, peer, bytes, tag

    @property
    def calls(self) -> list[tuple[int, int, int, int]]:
        """Type, value, begin, end (the last time, if they never end); in the order in which they begin."""
        last = max(self.times)
        return [(kind, value, begin, min(end, last)) for kind, value, begin, end in self.endless]

    @property
    def endless(self) -> list[tuple[int, int, int, float]]:
        """The same, with infinity as the end of those that never end."""
        stacks, found = defaultdict(list), []
        for time, kind, value in sorted(self.events, key=lambda e: e[0]):
            stack = stacks[kind]
            if not (kind == 60000019 or 50000001 <= kind <= 50000005):
                continue
            if value and stack and kind != 60000019 and found[stack[-1]][1] == value:
                found[stack.pop()][3] = time
                found.append([kind, value, time, time])
            elif value:
                stack.append(len(found))
                found.append([kind, value, time, math.inf])
            elif stack:
                found[stack.pop()][3] = time
        return [tuple(call) for call in found]

    def activities(self) -> np.ndarray:
        first, last = min(self.times), max(self.times)
        here = np.full(last - first, UNMEASURED if self.lasting else COMPUTING)
        for (begin, end, state), following in pairwise([*self.lasting, None]):
            end = min(end, following[0]) if following else end
            here[begin - first : end - first] = tables.STATES[state][1]
        if not self.lasting:
            # The outermost decides: those that begin later, and end sooner, are painted first. What never
            # ends is outside of what ends with the trace.
            outermost_first = sorted(self.endless, key=lambda c: (c[2], -c[3], c[0]))
            for kind, value, begin, end in reversed(outermost_first):
                if kind != 60000019:
                    here[begin - first : min(end, last) - first] = mpi_activity(value)
        off = [False, False]
        switches = sorted((e for e in self.events if e[1] in OFF_TYPES), key=lambda e: e[0])
        for (time, kind, value), following in pairwise([*switches, None]):
            off[OFF_TYPES[kind]] = (value == 0) == (kind == 40000012)
            if any(off):
                here[time - first : (following[0] if following else last) - first] = UNMEASURED
        return here

    @property
    def lasting(self) -> list[tuple[int, int, int]]:
        return [state for state in sorted(self.states, key=lambda s: s[0]) if state[1] > state[0]]


def mpi_activity(value: int) -> Activity:
    return OVERHEAD if value in (1, 77) else IDLE


def oracle(lines: list[str]) -> dict[str, Thread]:
    """By "application.task.thread"."""
    threads = defaultdict(Thread)
    for line in lines:
        kind, *rest = line.split(":")
        if kind not in ("1", "2", "3"):
            continue
        fields = [int(field) for field in rest]
        here = threads[".".join(rest[1:4])]
        if kind == "1":
            here.states.append((fields[4], fields[5], fields[6]))
            here.times += fields[4:6]
        elif kind == "2":
            here.events += [(fields[4], *pair) for pair in zip(fields[5::2], fields[6::2], strict=True)]
            here.times.append(fields[4])
        else:
            there = threads[".".join(rest[7:10])]
            sender, receiver = ".".join(rest[1:4]), ".".join(rest[7:10])
            here.messages.append((fields[4], int(MessageKind.SEND), receiver, *fields[12:]))
            posted = 0 < fields[10] < fields[11]
            received = MessageKind.IRECV if posted else MessageKind.RECV
            there.messages.append((fields[11], int(received), sender, *fields[12:]))
            here.times.append(fields[4])
            there.times.append(fields[11])
            if posted:
                there.messages.append((fields[10], int(MessageKind.IRECV_POST), "", 0, -1))
                there.times.append(fields[10])
    return threads


MPI_NAMES = {
    1: "MPI_Send",
    2: "MPI_Recv",
    5: "MPI_Wait",
    8: "MPI_Barrier",
    10: "MPI_Allreduce",
    77: "MPI call 77",
}


def assert_equals_oracle(sink: Memory, lines: list[str], nested: bool = False) -> None:
    """Names are those without labels."""
    expected = oracle(lines)
    places = [name.removeprefix("THREAD ") for name in (x.name for x in sink.locations)]
    assert {p for p, x in zip(places, sink.locations, strict=True) if x.first is not None} == set(expected)
    for index, place in enumerate(places):
        if place not in expected:
            assert sink.locations[index].damage == "no data"
            continue
        thread, location = expected[place], sink.locations[index]
        assert (location.first, location.last) == (min(thread.times), max(thread.times))
        calls = [
            Interval(f"function {v}" if kind == 60000019 else MPI_NAMES[v], begin, end)
            for kind, v, begin, end in thread.calls
        ]
        assert intervals(sink, index, synthetic=False, nested=nested) == sorted(calls)
        if location.last > location.first:
            np.testing.assert_array_equal(painted(sink, index), thread.activities())
        metrics = sink.table("metrics", index)
        region_types = {60000019, *OFF_TYPES, *range(50000001, 50000006)}
        assert list(
            zip(metrics["time"], [sink.texts[m] for m in metrics["metric"]], metrics["value"], strict=True)
        ) == [
            (time, f"event type {kind}", float(value))
            for time, kind, value in sorted(thread.events, key=lambda e: e[0])
            if kind not in region_types
        ]
        rows = sink.table("messages", index)
        assert [
            (t, k, places[p] if p >= 0 else "", b, tag)
            for t, k, p, b, tag in zip(
                *(rows[c].tolist() for c in ("time", "kind", "peer", "bytes", "tag")), strict=True
            )
        ] == sorted(thread.messages, key=lambda m: m[0])


# -- the sample traces -------------------------------------------------------------------------------------


def facts_of(path: Path) -> dict:
    return json.loads((path.parent / "facts.json").read_text())[named(path)]


@samples
def test_every_number_of_the_facts(path, tmp_path):
    facts = facts_of(path)
    sink = read(path)
    with open_trace(path, output=tmp_path / "trace.h5") as store:
        found = info(store)
    places = sorted(facts["running_time_per_thread"], key=lambda place: [int(n) for n in place.split(".")])
    assert [location.name for location in sink.locations] == [f"THREAD {place}" for place in places]
    assert [location.rank for location in sink.locations] == list(range(len(places)))

    unit = {"ns": 1e9, "us": 1e6}[facts["time_unit"]]
    totals = found["totals"]
    assert found["ticks_per_second"] == unit
    assert found["duration_s"] == facts["header_total_time"] / unit
    assert sink.notes["communicators"] == facts["communicator_lines"]
    assert facts["malformed_lines"] == 0
    assert not sink.report.lossy
    report = sink.report.findings
    assert (report["old global operations"].count if "old global operations" in report else 0) == facts[
        "type4_records"
    ]
    lines = [facts[f"{kind}_records"] for kind in ("state", "event", "communication")]
    assert totals["events"] == sum(lines)
    assert totals["messages_sent"] == totals["messages_received"] == facts["communication_records"]
    sends = [int((sink.table("messages", i)["kind"] == MessageKind.SEND).sum()) for i in range(len(places))]
    assert [location.records - n for location, n in zip(sink.locations, sends, strict=True)] == [
        facts["state_records_per_thread"][place] + facts["event_records_per_thread"][place]
        for place in places
    ]

    assert totals["mpi_calls"] == facts["mpi_calls_total"]
    calls = Counter()
    for key, count in facts["mpi_calls_by_type_value"].items():
        calls[f"MPI_{tables.MPI_CALLS[int(key.split(':')[1])]}"] += count
    assert found["mpi_calls"] == calls
    types = Counter({int(kind): count for kind, count in facts["event_types"].items()})
    functions = types[60000019] // 2
    assert totals["enter"] == totals["leave"] == facts["mpi_calls_total"] + functions
    metrics = sum(sink.rows("metrics", i) for i in range(len(places)))
    regions = sum(count for kind, count in types.items() if kind == 60000019 or 50000001 <= kind <= 50000005)
    assert metrics == facts["event_type_value_pairs"] - regions

    use = build(sink)
    assert use.stray == use.unclosed == 0
    assert use.totals[:, COMPUTING].tolist() == [facts["running_time_per_thread"][place] for place in places]
    assert use.totals[:, COMPUTING].sum() == facts["integral_running"]
    assert [x["computing_s"] for x in found["locations"]] == [
        facts["running_time_per_thread"][place] * (1 / unit) for place in places
    ]
    labels = paraver.hd.read_labels(paraver.hd.companion(path, ".pcf")).states
    in_state = Counter()
    for index in range(len(places)):
        for name, begin, end in intervals(sink, index, synthetic=True):
            in_state[name] += end - begin
    in_state["Running"] = int(use.totals[:, COMPUTING].sum())
    del in_state["no state"]
    assert in_state == {labels.get(int(s), "Others"): time for s, time in facts["time_in_state"].items()}


@samples
def test_samples_against_the_oracle(path):
    sink = read(path)
    labels = paraver.hd.read_labels(paraver.hd.companion(path, ".pcf"))
    expected = oracle(unpacked(path))
    totals = build(sink).totals
    for index, location in enumerate(sink.locations):
        thread = expected[location.name.removeprefix("THREAD ")]
        calls = [Interval(labels.values[kind][v], begin, end) for kind, v, begin, end in thread.calls]
        assert intervals(sink, index, synthetic=False) == sorted(calls)
        time = Counter()
        for begin, end, state in thread.states:
            time[tables.STATES[state][1]] += end - begin
        assert totals[index, :UNMEASURED].tolist() == [time[a] for a in list(Activity)[:UNMEASURED]]
        assert totals[index].sum() == max(thread.times) - min(thread.times)
        rows = sink.table("messages", index)
        assert rows["time"].tolist() == sorted(m[0] for m in thread.messages)
    matches = list(match_messages(sink))
    lines = [line.split(":") for line in unpacked(path) if line.startswith("3:")]
    assert sorted(np.concatenate([m.received - m.sent for m in matches]).tolist()) == sorted(
        int(line[12]) - int(line[5]) for line in lines
    )


def test_labels_names_and_classes():
    sink = read(DATA / "cholesky_ring_16.prv.xz")
    found = {region.name: (region.role, region.paradigm, region_activity(region)) for region in sink.regions}
    assert found == {
        "Not created": ("state", "paraver", UNMEASURED),
        "Group Communication": ("state", "paraver", IDLE),
        "Blocking Send": ("state", "paraver", OVERHEAD),
        "Waiting a message": ("state", "paraver", IDLE),
        "Idle": ("state", "paraver", IDLE),
        "MPI_Send": ("point2point", "mpi", OVERHEAD),
        "MPI_Recv": ("point2point", "mpi", IDLE),
        "MPI_Barrier": ("barrier", "mpi", IDLE),
        "MPI_Reduce": ("coll_all2one", "mpi", IDLE),
        **dict.fromkeys(("factor", "forward_solve", "backward_solve"), ("function", "user", COMPUTING)),
    }
    assert {location.process for location in sink.locations} == {f"TASK 1.{n}" for n in range(1, 17)}
    assert sink.texts == ["Barrier", "Reduce", "Application"]
    use = build(sink, Rules(overrides={"Idle": COMPUTING}))
    assert use.totals[:, COMPUTING].sum() == 9013082151 + 182089838


def test_collectives_of_the_only_communicator_are_checked(tmp_path):
    sink = read(DATA / "cholesky_ring_16.prv.xz")
    rows = [sink.table("collectives", i) for i in range(16)]
    assert sum(len(table["begin"]) for table in rows) == 32 + 16
    assert {c for table in rows for c in table["communicator"].tolist()} == {1}
    with open_trace(DATA / "cholesky_ring_16.prv.xz", output=tmp_path / "trace.h5") as store:
        assert store.clock.details["collectives"] == 2
        assert store.clock.details["messages"] == 3262


def test_what_stands_beside_a_collective(tmp_path):
    sink = import_lines(
        tmp_path,
        "c:1:1:2:1:2",
        "c:1:7:2:1:2",
        "2:1:1:1:1:10:50000002:7:50100001:16:50100002:32:50100003:1:50100004:7",
        "2:1:1:1:1:20:50000002:0",
        "2:1:1:2:1:11:50000002:7:50100001:16:50100002:32:50100004:7",
        "2:1:1:2:1:21:50000002:0",
        "2:1:1:2:1:30:50000002:8",
        "2:1:1:2:1:40:50000002:0",
        "2:1:1:2:1:41:50000002:155",  # posts only: no collective that anybody waits in
        "2:1:1:2:1:42:50000002:0",
    )
    columns = ("begin", "end", "communicator", "root", "sent", "received")
    none = NO_COMMUNICATOR
    for index, rows in (
        (0, [(10, 20, 7, 0, 16, 32)]),
        (2, [(11, 21, 7, -1, 16, 32), (30, 40, none, -1, 0, 0)]),
    ):
        table = sink.table("collectives", index)
        assert list(zip(*(table[c].tolist() for c in columns), strict=True)) == rows
    assert [sink.texts[i] for i in sink.table("collectives", 2)["operation"]] == ["Bcast", "Barrier"]


@pytest.mark.parametrize("overlap", [4, -1], ids=["nearly sorted", "sorted in files"])
@samples
def test_small_blocks_and_sorting_outside_memory_change_nothing(path, overlap, monkeypatch):
    whole = read(path)
    with monkeypatch.context() as patch:
        patch.setattr("desktop.data.lines.BLOCK", 1000)
        patch.setattr(paraver, "CHUNK", 7)
        patch.setattr(paraver.ln, "ROWS", 5)
        patch.setattr(spill, "OVERLAP", overlap)
        pieces = read(path)
    assert whole.report == pieces.report
    assert whole.locations == pieces.locations
    for table, index in whole.appended:
        for name, column in whole.table(table, index).items():
            other = pieces.table(table, index)[name]
            for what, dense in (("regions", "region"), ("texts", "metric"), ("texts", "operation")):
                if name == dense:  # numbered in order of appearance
                    column = [getattr(whole, what)[i] for i in column]
                    other = [getattr(pieces, what)[i] for i in other]
            assert list(column) == list(other)


@pytest.mark.parametrize(
    "suffix, pack", [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_packed_traces_find_their_labels(suffix, pack, tmp_path):
    plain = DATA / "farm_6.prv"
    for other in (".pcf", ".row"):
        shutil.copy(DATA / f"farm_6{other}", tmp_path)
    path = tmp_path / f"farm_6.prv{suffix}"
    path.write_bytes(pack(plain.read_bytes()))
    assert paraver.IMPORTER.detect(path, path.read_bytes()[: 1 << 16])
    assert paraver.IMPORTER.files(path) == [path, tmp_path / "farm_6.pcf", tmp_path / "farm_6.row"]
    expected, found = read(plain), read(path)
    assert found.regions == expected.regions
    assert found.locations == expected.locations
    np.testing.assert_array_equal(build(found).counts, build(expected).counts)
    path.write_bytes(path.read_bytes()[:-400])
    try:
        assert read(path).report.findings["compressed stream damaged"].severity == "loss"
    except TraceFormatError:
        assert suffix == ".bz2"  # one block, of which nothing can be unpacked


# -- states, calls, switches -------------------------------------------------------------------------------


def test_states_decide_and_calls_nest_in_them(tmp_path):
    sink = import_lines(
        tmp_path,
        "1:1:1:1:1:10:20:1",
        "1:1:1:1:1:20:40:3",
        "1:1:1:1:1:40:60:1",
        "1:1:1:1:1:70:80:13",
        "2:1:1:1:1:0:60000019:5",  # before the first state, over all of them
        "2:1:1:1:1:20:50000001:2",  # within its state
        "2:1:1:1:1:40:50000001:0",
        "2:1:1:1:1:55:50000001:1",  # while running: the states decide
        "2:1:1:1:1:75:50000001:0",
        "2:1:1:1:1:90:60000019:0",
    )
    assert (
        painted(sink, 0).tolist()
        == [UNMEASURED] * 10
        + [COMPUTING] * 10
        + [IDLE] * 20
        + [COMPUTING] * 20
        + [UNMEASURED] * 10
        + [IDLE] * 10
        + [UNMEASURED] * 10
    )
    table = sink.table("events", 0)
    rows = zip(*(column.tolist() for column in table.values()), strict=True)
    assert [(t, "<>"[k], sink.regions[r].name) for t, k, r in rows] == [
        (0, "<", "function 5"), (0, "<", "no state"), (10, ">", "no state"),
        (20, "<", "Waiting a message"), (20, "<", "MPI_Recv"),
        (40, ">", "MPI_Recv"), (40, ">", "Waiting a message"),
        (55, "<", "MPI_Send"), (60, "<", "no state"), (70, ">", "no state"),
        (70, "<", "Group communication"), (75, ">", "Group communication"), (75, ">", "MPI_Send"),
        (75, "<", "Group communication"), (80, ">", "Group communication"),
        (80, "<", "no state"), (90, ">", "no state"), (90, ">", "function 5"),
    ]  # fmt: skip


def test_what_is_not_created_is_absent_and_init_and_finalize_are_the_start_and_the_end(tmp_path):
    """Real traces have the state Others in both calls, which counted as communication, and "Not created" was
    said to be a time in which nothing was measured."""
    header = "#Paraver (01/02/03 at 04:05):100_ns:1(4):1:2(1:1,1:1),0"
    lines = []
    for task, (begin, ready, over) in ((1, (0, 30, 90)), (2, (10, 30, 80))):
        place = f"{task}:1:{task}:1"
        lines += [
            *([f"1:{place}:0:{begin}:2"] if begin else []),
            f"1:{place}:{begin}:{ready}:15", f"1:{place}:{ready}:60:1", f"1:{place}:60:{over}:15",
            *([f"1:{place}:{over}:100:2"] if over < 100 else []),
            f"2:{place}:{begin}:50000003:31", f"2:{place}:{ready}:50000003:0",
            f"2:{place}:60:50000003:32", f"2:{place}:{over}:50000003:0",
        ]  # fmt: skip
    lines.sort(key=lambda line: int(line.split(":")[5]))
    import_lines(tmp_path, *lines, header=header)
    with open_trace(tmp_path / "trace.prv") as store:
        use, kept = build(store), Statistics(store)
        (stats,) = kept.ranges([(0.0, 100e-9)], use, replay=True)
        told = explain(kept, use, [0.0, 100e-9])
    assert stats.accounts is not None and stats.accounts.sum() == 200
    assert stats.accounts[:, Account.ABSENT].tolist() == [10, 10 + 20]
    assert stats.accounts[:, Account.MOVING].sum() == stats.accounts[:, Account.UNKNOWN].sum() == 0
    lost = [(one.key, one.region, round(one.lost_s * 1e9)) for one in told.causes]
    assert lost == [("end", "MPI_Finalize", 50 + 10 + 20), ("start", "MPI_Init", 50 + 10)]


@pytest.mark.parametrize("calls", [True, False])
def test_a_thread_without_events_of_its_calls_waits_in_its_states(tmp_path, calls):
    """As soon as another thread had such events, its waiting was said to be the latency of the message."""
    lines = [
        "1:1:1:1:1:0:600:1", "1:1:1:1:1:600:620:4", "1:1:1:1:1:620:1000:1",
        "1:2:1:2:1:0:100:1", "1:2:1:2:1:100:640:3", "1:2:1:2:1:640:1000:1",
        "2:1:1:1:1:600:50000001:1", "2:1:1:1:1:620:50000001:0",
        *(["2:2:1:2:1:100:50000001:2", "2:2:1:2:1:640:50000001:0"] if calls else []),
        "3:1:1:1:1:600:605:2:1:2:1:100:640:8:5",
    ]  # fmt: skip
    lines.sort(key=lambda line: int(line.split(":")[5]))
    import_lines(tmp_path, *lines, header="#Paraver (01/02/03 at 04:05):1000_ns:1(4):1:2(1:1,1:1),0")
    with open_trace(tmp_path / "trace.prv") as store:
        use, kept = build(store), Statistics(store)
        (stats,) = kept.ranges([(0.0, 1e-6)], use, replay=True)
        told = explain(kept, use, [0.0, 1e-6])
    assert stats.accounts is not None
    assert stats.accounts[:, [Account.LATE_SENDER, Account.MOVING]].tolist() == [[0, 20], [500, 40]]
    first, _ = told.causes
    assert (first.key, round(first.lost_s * 1e9)) == ("slow rank", 500)
    assert f"in {'MPI_Recv' if calls else 'Waiting a message'} (" in first.sentence


def test_without_states_the_calls_decide_thread_by_thread(tmp_path):
    events = ["2:1:1:1:{}:10:50000001:1", "2:1:1:1:{}:30:50000001:0", "2:1:1:1:{}:50:50000003:1000"]
    sink = import_lines(
        tmp_path, *(e.format(1) for e in events), *(e.format(2) for e in events), "1:1:1:1:2:10:50:1"
    )
    assert painted(sink, 0).tolist() == [OVERHEAD] * 20 + [COMPUTING] * 20
    assert painted(sink, 1).tolist() == [COMPUTING] * 40
    assert sink.report.findings["threads without states"].count == 1
    assert sink.report.findings["states and MPI calls differ"].severity == "notice"


def test_tracing_off_and_flushes_are_unmeasured(tmp_path):
    switches = ["2:1:1:1:{}:20:40000012:0", "2:1:1:1:{}:40:40000012:1", "2:1:1:1:{}:50:40000003:1:42000050:9"]
    switches += ["2:1:1:1:{}:60:40000003:0", "2:1:1:1:{}:90:40000001:0", "2:1:1:1:{}:0:40000001:1"]
    sink = import_lines(
        tmp_path, *(s.format(1) for s in switches), *(s.format(2) for s in switches), "1:1:1:1:2:0:90:1"
    )
    for index in (0, 1):
        expected = np.full(90, COMPUTING)
        expected[20:40] = expected[50:60] = UNMEASURED
        assert painted(sink, index).tolist() == expected.tolist()


def test_a_receive_that_waits_for_its_send_does_not_contradict_the_clocks(tmp_path):
    sink = import_lines(tmp_path, "3:1:1:2:1:50:52:1:1:1:1:10:60:8:1", "2:1:1:1:1:0:7:1", "2:1:1:2:1:90:7:1")
    assert (sink.table("messages", 2)["time"].tolist(), sink.table("messages", 0)["time"].tolist()) == (
        [50],
        [10, 60],
    )
    found = check_clocks(sink)
    assert (found.messages, found.before) == (1, Wrong())


def test_a_call_that_begins_again_ends_there(tmp_path):
    """As old tracers mark the end of a reduction; functions may call themselves."""
    begins = ["2:1:1:1:1:{}:50000002:9", "2:1:1:1:2:{}:60000019:9"]
    lines = [b.format(t) for b in begins for t in (10, 30)] + [
        "2:1:1:1:1:60:42000050:0",
        "2:1:1:1:2:60:60000019:0",
    ]
    sink = import_lines(tmp_path, *lines)
    assert intervals(sink, 0, synthetic=False) == [("MPI_Reduce", 10, 30), ("MPI_Reduce", 30, 30)]
    assert intervals(sink, 1, synthetic=False) == [("function 9", 10, 60), ("function 9", 30, 60)]
    assert sink.report.findings["calls begin twice"].count == 1
    assert sink.rows("collectives", 0) == 1


def test_several_applications_are_kept_apart(tmp_path):
    header = "#Paraver (01/02/2003 at 04:05):90:2(2,2):2:2(1:1,2:2):1(1:2),2"
    lines = ["1:1:1:1:1:0:90:1", "1:1:1:2:2:0:90:1", "1:1:2:1:1:0:90:1", "1:1:2:2:1:0:90:1", *["#"] * 9]
    lines += ["1:1:1:1:1:90:90:1"] * 9
    sink = import_lines(tmp_path, *lines, header=header)
    assert [(x.name, x.rank, x.thread, x.process, x.id) for x in sink.locations] == [
        ("THREAD 1.1.1", 0, 0, "TASK 1.1", 1),
        ("THREAD 1.2.1", 1, 0, "TASK 1.2", 2),
        ("THREAD 1.2.2", 1, 1, "TASK 1.2", 3),
        ("THREAD 2.1.1", 2, 0, "TASK 2.1", 4),
    ]
    assert sink.ticks_per_second == 1e6
    assert sink.report.findings["lines of unknown threads"].where == "line 5"
    assert sink.report.findings["threads without data"].count == 1


def test_labels_decide_before_numbers_and_garbage_in_them_is_passed_over(tmp_path):
    (tmp_path / "trace.pcf").write_bytes(
        b"\xff\xfe nonsense\nSTATES\n1 Idle\n2 running\n3\nfour five\nSTATES\n5 My state\n-9 x\n\n"
        b"EVENT_TYPE\n0 42000001\n9 60000019 Functions\n9\nVALUES\n1 main (a.c)\n"
        b"99999999999999999999 x\nEVENT_TYPE\nVALUES\n1 none\n"
    )
    (tmp_path / "trace.row").write_bytes(
        b"LEVEL THREAD SIZE 99\nfirst thread\n\xff\n\nLEVEL TASK SIZE 1\nwhole task\nmore\n"
    )
    sink = import_lines(
        tmp_path,
        *("1:1:1:1:1:0:10:1", "1:1:1:1:1:10:30:2", "1:1:1:1:1:30:60:5", "1:1:1:1:1:60:100:99"),
        *("2:1:1:1:1:10:60000019:1", "2:1:1:1:1:20:60000019:0:42000001:5"),
    )
    assert build(sink).totals[0].tolist() == [20, 40, 40, 0, 0]
    assert {r.name for r in sink.regions} == {"Idle", "My state", "state 99", "main (a.c)"}
    assert [x.name for x in sink.locations][:2] == ["first thread", "\N{REPLACEMENT CHARACTER}"]
    assert sink.locations[0].process == "whole task"
    assert sink.texts == ["event type 42000001"]


def test_hardware_counters_are_what_was_added_since_the_event_before(tmp_path):
    (tmp_path / "trace.pcf").write_bytes(
        b"EVENT_TYPE\n7 42000050 PAPI_TOT_INS [Instr completed]\n0 7 Size of the queue\n"
    )
    sink = import_lines(
        tmp_path,
        "1:1:1:1:1:0:100:1",
        *("2:1:1:1:1:10:42000050:5:7:2", "2:1:1:1:1:30:42000050:8", "2:1:1:1:1:60:7:3"),
    )
    assert sink.metrics == {
        "PAPI_TOT_INS [Instr completed]": MetricAbout("", "relative", "last"),
        "Size of the queue": MetricAbout(),
    }


# -- random traces -----------------------------------------------------------------------------------------

TIME = some.integers(0, 60)
# No value of two kinds: regions are told apart by their names.
VALUES = {50000001: (1, 2), 50000002: (8, 10), 50000003: (5, 77), 60000019: (1, 2, 3)}
PAIR = some.one_of(
    *(some.tuples(some.just(kind), some.sampled_from([0, 0, *values])) for kind, values in VALUES.items()),
    some.tuples(some.sampled_from([42000050, 7]), some.integers(-(10**18), 10**18)),
)
# Only where there are states: in threads without them a call around a switch hides it.
SWITCH = some.builds(
    lambda t, kind, v: f"2:3:1:1:1:{t}:{kind}:{v}",
    TIME,
    some.sampled_from(list(OFF_TYPES)),
    some.integers(0, 1),
)


def records(places):
    """Lines of these threads."""
    place = some.sampled_from(places)
    state = some.builds(
        lambda p, times, s: f"1:3:{p}:{min(times)}:{max(times)}:{s}",
        place, some.tuples(TIME, TIME), some.sampled_from([0, 1, 1, 2, 3, 4, 12, 13]),
    )  # fmt: skip
    event = some.builds(
        lambda p, t, pairs: f"2:3:{p}:{t}:" + ":".join(f"{a}:{b}" for a, b in pairs),
        place, TIME, some.lists(PAIR, min_size=1, max_size=3),
    )  # fmt: skip
    message = some.builds(
        lambda p, q, t, u, v, b, tag: f"3:3:{p}:{t}:{t + 1}:4:{q}:{u}:{v}:{b}:{tag}",
        place, place, TIME, TIME, TIME, some.integers(0, 2**40), some.integers(-5, 5),
    )  # fmt: skip
    kinds = some.one_of(state, state, event, event, event, SWITCH, message)
    return some.lists(kinds, min_size=1, max_size=50)


CONTRADICTIONS = {
    "calls begin twice",
    "duration differs",
    "ends without begin",
    "states contradict MPI calls",
    "states missing",
    "states overlap",
    "threads without data",
}
HEADER = "#Paraver (01/02/03 at 04:05):60_ns:1(4):2:2(2:1,1:1),1:1(1:1)"


@given(
    lines=some.sampled_from([["1:1:1", "1:1:2", "1:2:1", "2:1:1"], ["1:1:1"]]).flatmap(records),
    ordered=some.booleans(),
    packed=some.booleans(),
    chunk=some.sampled_from([None, 1, 3, 10]),
    overlap=some.sampled_from([-1, 1, 4]),
)
# Of two calls that begin together without states, one ends with the trace and one never.
@example(
    lines=["2:3:1:1:2:1:50000001:0", "2:3:1:1:2:0:50000001:1:50000002:8"],
    ordered=False,
    packed=False,
    chunk=3,
    overlap=4,
)
@settings(deadline=None, max_examples=100)
def test_random_traces_against_the_oracle(lines, ordered, packed, chunk, overlap, tmp_path_factory):
    """Any mix of records, overlaps and ties, in any order of lines, cut into chunks anywhere."""
    lines = ["1:3:1:1:1:0:61:1", *lines]
    if ordered:
        lines.sort(key=lambda line: int(line.split(":")[5]))
    data = "\n".join([HEADER, *lines, ""]).encode()
    path = tmp_path_factory.getbasetemp() / ("random.prv.gz" if packed else "random.prv")
    path.write_bytes(gzip.compress(data) if packed else data)
    with pytest.MonkeyPatch.context() as patch:
        if chunk:
            patch.setattr("desktop.data.lines.BLOCK", 100)
            patch.setattr(paraver, "CHUNK", chunk)
            patch.setattr(paraver.ln, "ROWS", 4)
            patch.setattr(spill, "OVERLAP", overlap)
        sink = read(path)
    # No line is lost; that lines contradict each other is for others to test.
    losses = {finding.name for finding in sink.report if finding.severity == "loss"}
    assert losses <= CONTRADICTIONS
    assert_equals_oracle(sink, lines)


@given(
    data=some.data(), states=some.lists(some.tuples(some.integers(0, 6), some.integers(1, 4)), max_size=12)
)
@settings(deadline=None, max_examples=60)
def test_calls_that_nest_stay_nested_with_states(data, states, tmp_path_factory):
    """Whatever states cut through the calls of a thread, every leave is of the innermost region."""
    lines, at = [], 0
    for length, state in states:
        lines.append(f"1:1:1:1:1:{at}:{at + length}:{state}")
        at += length + data.draw(some.integers(0, 2))

    def call(begin: int, end: int, depth: int) -> None:
        function = data.draw(some.booleans())
        kind = 60000019 if function else 50000001 + depth % 3  # no MPI call in itself
        lines.append(f"2:1:1:1:1:{begin}:{kind}:{data.draw(some.sampled_from(VALUES[kind]))}")
        while depth < 3 and begin < end and data.draw(some.booleans()):
            inner = data.draw(some.integers(begin, end))
            begin = data.draw(some.integers(inner, end))
            call(inner, begin, depth + 1)
        lines.append(f"2:1:1:1:1:{end}:{kind}:0")

    call(0, data.draw(some.integers(1, 50)), 0)
    # Calls of one time and kind nest by their order in the file: sorting must be stable.
    lines.sort(key=lambda line: int(line.split(":")[5]))
    sink = import_lines(tmp_path_factory.getbasetemp(), *lines)
    if "calls begin twice" not in sink.report.findings:
        assert_equals_oracle(sink, lines, nested=True)


@some.composite
def conversations(draw) -> list[str]:
    """Message lines in the order of their sends. On every channel (sender, receiver, tag) that is also the
    order in which the receives were called, as MPI matches them; they complete in any order."""
    places = ["1:1:1", "1:1:2", "1:2:1"]
    lines = []
    for sender, receiver, tag in draw(
        some.lists(
            some.tuples(some.sampled_from(places), some.sampled_from(places), some.integers(0, 2)),
            min_size=1, max_size=4, unique=True,
        )
    ):  # fmt: skip
        sent, called = draw(TIME), 1 + draw(TIME)
        for _ in range(draw(some.integers(1, 12))):
            sent, called = sent + draw(some.integers(0, 5)), called + draw(some.integers(0, 5))
            size = draw(some.integers(0, 2**40))
            logical, physical = draw(
                some.one_of(
                    some.integers(1, 80).map(lambda wait, called=called: (called, called + wait)),
                    # it came at once, or when it was called is not known
                    some.sampled_from([(called, called), (0, called), (called + 3, called)]),
                )
            )
            lines.append(f"3:1:{sender}:{sent}:{sent}:2:{receiver}:{logical}:{physical}:{size}:{tag}")
    return sorted(lines, key=lambda line: int(line.split(":")[5]))


@given(
    lines=conversations(), rows=some.sampled_from([1, 5, 640, ROWS]), chunk=some.sampled_from([3, 1 << 16])
)
@example(
    lines=["3:1:1:1:1:10:10:2:1:2:1:5:60:1000000:7", "3:1:1:1:1:12:12:2:1:2:1:6:40:8:7"], rows=ROWS, chunk=3
)
@settings(deadline=None, max_examples=60)
def test_messages_are_those_of_the_lines(lines, rows, chunk, tmp_path_factory):
    """However their receives overtake each other, ends that stand on one line are one message."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paraver, "CHUNK", chunk)
        sink = import_lines(tmp_path_factory.getbasetemp(), *lines)
    index = {location.name.removeprefix("THREAD 1."): i for i, location in enumerate(sink.locations)}
    expected = []
    for _, _, _, task, thread, sent, _, _, _, to_task, to_thread, _, received, size, tag in (
        line.split(":") for line in lines
    ):
        ends = index[f"{task}.{thread}"], index[f"{to_task}.{to_thread}"]
        expected.append((*ends, int(sent), int(received), int(size), int(tag)))
    found = [
        row for m in match_messages(sink, rows=rows) for row in zip(*(c.tolist() for c in m[:6]), strict=True)
    ]
    assert sorted(found) == sorted(expected)
    clocks = check_clocks(sink)
    assert (clocks.unequal, clocks.unmatched, clocks.messages) == (0, (0, 0), len(lines))
    assert (clocks.before.collectives, clocks.before.messages) == (
        0,
        sum(received < sent for _, _, sent, received, _, _ in expected),
    )


def test_a_receive_counts_once(tmp_path):
    """In statistics and in what is known of the store, though its posting is stored too."""
    lines = [f"3:1:1:1:1:{10 + t}:{10 + t}:2:1:2:1:{5 + t}:{90 - t}:8:7" for t in range(20)]
    path = tmp_path / "trace.prv"
    import_lines(tmp_path, *(f"1:{n}:1:{n}:1:0:100:1" for n in (1, 2)), *lines)
    with open_trace(path, output=tmp_path / "trace.h5") as store:
        totals = info(store)["totals"]
        assert totals["messages_sent"] == totals["messages_received"] == 20
        ((sent, arrival),) = store.blocks("links", 0, "time", "arrival")
        assert (arrival - sent).tolist() == [80 - 2 * t for t in range(20)]
        (whole,) = Statistics(store).ranges([(0, 1e-7)])
    assert whole.messages.received.tolist() == [0, 0, 20, 0]
    assert whole.messages.bytes_received.tolist() == [0, 0, 160, 0]
    assert whole.messages.sent.tolist() == [20, 0, 0, 0]


# -- damage ------------------------------------------------------------------------------------------------

GOOD = [f"1:1:1:1:1:{t}:{t + 1}:1" for t in range(100)]


@pytest.mark.parametrize(
    ("bad", "name", "severity"),
    [
        ("1:1:1:1:1:5:6", "lines with a wrong number of fields", "loss"),
        ("1:1:1:1:1:5:6:1:1", "lines with a wrong number of fields", "loss"),
        ("2:1:1:1:1:5", "lines with a wrong number of fields", "loss"),
        ("2:1:1:1:1:5:7", "lines with a wrong number of fields", "loss"),
        ("2:1:1:1:1:5:7:8:9", "lines with a wrong number of fields", "loss"),
        ("3:1:1:1:1:5:5:1:1:2:1:6:6:8", "lines with a wrong number of fields", "loss"),
        ("3:1:1:1:1:5:5:1:1:2:1:6:6:8:9:1", "lines with a wrong number of fields", "loss"),
        ("1:1:1:1:1:5:x:1", "lines with a field that is no number", "loss"),
        ("1:1:1:1:1:5::1", "lines with a field that is no number", "loss"),
        ("1:1:1:1:1:5:6:1:", "lines with a field that is no number", "loss"),
        ("1:1:1:1:1:5:6:1x", "lines with a field that is no number", "loss"),
        ("1:1:1:1:1:-5:6:1", "lines with a field that is no number", "loss"),
        ("1:1:1:1:1:5:6:-1", "lines with a field that is no number", "loss"),
        ("1:1:1:1:1:5:9223372036854775808:1", "lines with a field that is no number", "loss"),
        ("1:1:1:1:1:5:4611686018427387904:1", "lines with a field that is no number", "loss"),
        ("2:1:1:1:1:5:7:99999999999999999999", "lines with a field that is no number", "loss"),
        ("2:1:1:1:1:5:-7:9", "lines with a field that is no number", "loss"),
        ("3:1:1:1:1:-5:5:1:1:2:1:6:6:8:9", "lines with a field that is no number", "loss"),
        ("1:1:1:1:1:6:5:1", "states that end before they begin", "loss"),
        ("1:1:2:1:1:5:6:1", "lines of unknown threads", "loss"),
        ("1:1:1:3:1:5:6:1", "lines of unknown threads", "loss"),
        ("1:1:1:1:3:5:6:1", "lines of unknown threads", "loss"),
        ("1:1:0:1:1:5:6:1", "lines of unknown threads", "loss"),
        ("3:1:1:1:1:5:5:1:1:2:3:6:6:8:9", "lines of unknown threads", "loss"),
        ("5:1:1:1:1:5:6:1", "unreadable lines", "loss"),
        ("what is this?", "unreadable lines", "loss"),
        (" ", "unreadable lines", "loss"),
        ("4:1:1:1:1:5:91:32:0:10:0", "old global operations", "notice"),
        ("# words", "comments", "info"),
    ],
)
@pytest.mark.parametrize("end", ["", "\r"])
def test_bad_lines_are_counted_and_the_rest_kept(bad, name, severity, end, tmp_path):
    lines = [*GOOD[:40], bad, *GOOD[40:], bad]
    sink = import_lines(tmp_path, *(line + end for line in lines))
    found = sink.report.findings[name]
    assert (found.count, found.where, found.severity) == (2, "line 42", severity)
    assert build(sink).totals[0].tolist() == [100, 0, 0, 0, 0]
    assert sink.locations[0].records == 100
    assert not set(sink.report.findings) - {name, "no labels", "threads without data"}


def test_the_last_line_without_an_end_is_dropped(tmp_path):
    path = tmp_path / "trace.prv"
    import_lines(tmp_path, *GOOD)
    path.write_bytes(path.read_bytes()[:-1])
    sink = read(path)
    assert sink.locations[0].records == 99
    assert sink.report.findings["last line cut off"].where == "line 101"
    assert sink.report.lossy


def test_too_many_bad_lines_are_refused(tmp_path):
    import_lines(tmp_path, *GOOD, *["x"] * 11)
    with pytest.raises(TraceFormatError, match=r"12 of 112 lines cannot be read, first in line 102"):
        import_lines(tmp_path, *GOOD, *["x"] * 12)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("", "has no header"),
        ("1:1:1:1:1:5:6:1", "has no header"),
        ("#Paraver", "has no header"),
        ("#Paraver (1/1/1 at 1:1):x:1:1:1(1:1)", "has no header"),
        ("#Paraver (1/1/1 at 1:1):9_ks:1:1:1(1:1)", "unknown unit, ks"),
        ("#Paraver (1/1/1 at 1:1):9:1:2:1(1:1)", "names 2 applications but describes 1"),
        ("#Paraver (1/1/1 at 1:1):9:1:1:2(1:1)", "describes 1 of 2 tasks of application 1"),
        ("#Paraver (1/1/1 at 1:1):9:1:1:1(x:1)", "names 1 applications but describes 0"),
        ("#Paraver (1/1/1 at 1:1):9:1:1:1(0:1)", "describes no threads"),
        ("#Paraver (1/1/1 at 1:1):9:1:1:1(99999999:1)", "more than 10000000 threads"),
    ],
)
def test_no_header_is_refused(header, words, tmp_path):
    path = tmp_path / "trace.prv"
    path.write_text("\n".join([header, *GOOD, ""]))
    with pytest.raises(TraceFormatError, match=words):
        read(path)


@pytest.mark.parametrize(
    "header",
    [
        "#Paraver (26/01/04 at 16:35):100_ns:4:1:4(1:1,1:2,1:3,1:4),8",
        "#Paraver (26/01/2004 at 16:35):100_ns:4(1,1,1,1):1:4(1:1,1:2,1:3,1:4)",
        "#Paraver (26/01/2004 at 16:35):100_ns:0:1:4(1:0,1:0,1:0,1:0)\r",
        "#Paraver (26/01/04 at 16:35:17):100_us:1(4):2:2(1:1,1:1):2(1:1,1:1)",
    ],
)
def test_header_forms(header, tmp_path):
    sink = import_lines(tmp_path, *GOOD, header=header)
    assert len(sink.locations) == 4
    assert build(sink).totals[0].tolist() == [100, 0, 0, 0, 0]


def test_a_trace_that_says_nothing_is_refused(tmp_path):
    with pytest.raises(TraceFormatError, match="holds no states, events or messages"):
        import_lines(tmp_path, "c:1:1:2:1:2")
    with pytest.raises(TraceFormatError, match="ends in its header"):
        (tmp_path / "cut.prv").write_text("#Paraver (26/01/04 at 16:35):10")
        read(tmp_path / "cut.prv")


def test_duration_of_the_header_is_compared(tmp_path):
    sink = import_lines(tmp_path, *GOOD, "1:1:1:1:1:100:120:1")
    assert "its last record is at 1.2e-07 s" in sink.report.findings["duration differs"].text


def test_overlapping_states_and_stray_ends_are_said(tmp_path):
    sink = import_lines(tmp_path, "1:1:1:1:1:0:100:1", "1:1:1:1:1:30:50:3", "2:1:1:1:1:60:50000001:0")
    assert sink.report.findings["states overlap"].count == 1
    assert sink.report.findings["ends without begin"].count == 1
    assert build(sink).totals[0].tolist() == [30, 0, 20, 0, 50]


def garbage(luck: random.Random) -> bytes:
    return bytes(luck.choice(b"0123456789 :STAEVNULROWHD\n\xff\0()-") for _ in range(luck.randrange(3000)))


def test_any_damage_is_an_import_or_a_sentence(tmp_path):
    """Cut at many places, bytes flipped, lines swapped, companions missing or garbage: never another error,
    never a broken table, never more memory than the buffers take."""
    luck = random.Random(3)
    data = (DATA / "farm_6.prv").read_bytes()[:20_000]
    path = tmp_path / "trace.prv"
    imported = refused = 0
    read(DATA / "farm_6.prv")  # compiled before memory is counted
    tracemalloc.start()
    for attempt in range(120):
        broken = bytearray(data)
        if attempt % 4 == 0:
            broken = broken[: luck.randrange(len(broken))]
        elif attempt % 4 == 1:
            for _ in range(luck.choice((1, 5, 40, 400))):
                broken[luck.randrange(len(broken))] = luck.choice(b"0123456789:\n#c()-_x\0\xff")
        elif attempt % 4 == 2:
            lines = bytes(broken).splitlines(keepends=True)
            for _ in range(40):
                i, j = luck.randrange(1, len(lines)), luck.randrange(1, len(lines))
                lines[i], lines[j] = lines[j], lines[i][: luck.randrange(len(lines[i]) + 1)]
            broken = bytearray(b"".join(lines))
        else:
            at = luck.randrange(len(broken))
            broken[at : at + luck.randrange(9)] = str(luck.randrange(10 ** luck.randrange(1, 25))).encode()
        path.write_bytes(broken)
        for suffix in (".pcf", ".row"):
            companion = tmp_path / f"trace{suffix}"
            companion.unlink(missing_ok=True)
            if luck.random() < 0.7:
                companion.write_bytes(
                    (DATA / f"farm_6{suffix}").read_bytes() if luck.random() < 0.5 else garbage(luck)
                )
        try:
            sink = read(path)
        except TraceFormatError as error:
            assert str(error).startswith(str(path))
            refused += 1
            continue
        imported += 1
        found = build(sink)
        assert found.stray == 0
        present = sum(x.last - x.first for x in sink.locations if x.first is not None)
        assert found.totals.sum() == present
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()
    assert imported > 60
    assert refused > 2


def test_calls_that_last_over_many_chunks(tmp_path, monkeypatch):
    """Of one thread: what begins in one chunk and ends in another, states that chunks cut, nested deeply."""
    luck = random.Random(11)
    lines, depth = [], 0
    for t in range(0, 6000, 2):
        if t % 40 == 0:
            lines.append(f"1:1:1:1:1:{t}:{t + luck.choice((30, 40, 50))}:{luck.choice((1, 3, 4))}")
        deeper = depth < 5 or (depth < 300 and luck.random() < 0.55)
        lines.append(f"2:1:1:1:1:{t}:60000019:{1 + depth % 3 if deeper else 0}:42000050:{t}")
        depth += 1 if deeper else -1
        if t % 30 == 10:
            lines.append(f"2:1:1:1:1:{t}:50000001:{luck.choice((0, 1, 2))}")
    monkeypatch.setattr(paraver, "CHUNK", 50)
    assert_equals_oracle(import_lines(tmp_path, *lines), lines)
    luck.shuffle(lines)  # which of several begins at one time is the outer one is told by their order
    lines = [line for line in lines if ":50000001:" not in line]
    assert_equals_oracle(import_lines(tmp_path, *lines), lines)


@pytest.mark.parametrize("backward", [False, True], ids=["in order", "backward"])
@pytest.mark.parametrize("threads", [1, 2])
def test_memory_does_not_grow_with_the_trace(threads, backward, tmp_path, monkeypatch):
    monkeypatch.setattr("desktop.data.lines.BLOCK", 1 << 14)
    monkeypatch.setattr(paraver, "CHUNK", 1 << 9)
    monkeypatch.setattr(paraver.ln, "ROWS", 1 << 10)
    monkeypatch.setattr(spill, "BATCH", 1 << 10)

    class Nowhere(Memory):
        def append(self, table, location, **columns): ...

    peaks = []
    for steps in (4_000, 32_000):
        path = tmp_path / "long.prv"
        with path.open("w") as file:
            file.write("#Paraver (01/02/03 at 04:05):100_ns:1(4):1:2(2:1,2:1),1\n")
            for t in reversed(range(steps)) if backward else range(steps):
                task = 1 + t % threads
                file.write(
                    f"1:1:1:{task}:1:{3 * t}:{3 * t + 2}:3\n2:1:1:{task}:1:{3 * t}:50000001:2\n"
                    f"2:1:1:{task}:1:{3 * t + 2}:50000001:0:42000050:{t}\n"
                    f"3:1:1:1:1:{3 * t}:0:1:1:{threads}:1:{3 * t - 60}:{3 * t + 1}:8:1\n"
                )
        paraver.IMPORTER.read(path, Nowhere(), Progress())
        tracemalloc.start()
        paraver.IMPORTER.read(path, Nowhere(), Progress())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # How many blocks are parsed at once, each by a reader with room of its own, is chance.
    room = paraver.ln.ROWS * (paraver.ln.ACT.itemsize + paraver.ln.MESSAGE.itemsize + 16)
    assert peaks[1] < 1.3 * peaks[0] + THREADS * room


def test_cancel_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    progress = Progress()
    progress.cancel()
    with pytest.raises(Cancelled):
        read(DATA / "farm_6.prv", progress)
    assert not list((tmp_path / "scratch").iterdir())


def test_progress_rises_to_its_end(monkeypatch):
    monkeypatch.setattr("desktop.data.lines.BLOCK", 10_000)
    seen = []

    class Watch(Progress):
        def show(self, done, total, text):
            if total:
                seen.append(done / total)

    read(DATA / "farm_6.prv", Watch())
    assert all(a <= b for a, b in pairwise(seen))
    assert seen[-1] == 1
    assert len(seen) > 12


def test_a_packed_trace_that_cannot_be_unpacked_gets_a_sentence(tmp_path):
    path = tmp_path / "run.prv.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(100))
    assert paraver.IMPORTER.detect(path, path.read_bytes())
    with pytest.raises(TraceFormatError, match=r"Zstandard.*unpack it first"):
        read(path)
    assert not paraver.IMPORTER.detect(tmp_path, b"")
    assert not paraver.IMPORTER.detect(path, b"1:1:1:1:1:5:6:1\n")

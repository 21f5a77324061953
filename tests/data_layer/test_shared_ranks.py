"""Several threads of a process send and receive, but messages name processes: who got which from whom."""

from __future__ import annotations

import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from desktop.data import opening, spill
from desktop.data.clock import Wrong, check_clocks
from desktop.data.events import TABLES, Importer, Location, MessageKind
from desktop.data.matching import Matches, address_of, match_in_passing, match_messages
from desktop.data.opening import open_trace
from desktop.data.statistics import Statistics
from desktop.data.store import Source, StoreWriter
from desktop.data.timeline import open_timeline
from tests.data_layer import otf1_oracle, otf2_writer
from tests.data_layer.memory import Memory
from tests.data_layer.otf2_writer import Event, Place

MADE = Importer("made", "Made for tests", "1", lambda p, h: True, lambda p, s, g: None, lambda p: [p])
Who = tuple[int, int]  # process and thread
THREADS: list[Who] = list(product(range(2), range(2)))
#: When and by whom sent, when and by whom received, bytes. Both ends change between threads, each in its way.
MESSAGES = [
    (10, (0, 0), 50, (1, 1), 8),
    (11, (0, 1), 51, (1, 0), 9),
    (12, (0, 0), 52, (1, 0), 10),
    (20, (1, 1), 60, (0, 1), 11),
    (21, (1, 1), 61, (0, 0), 12),
    (30, (0, 1), 70, (1, 1), 13),
    (80, (0, 1), 81, (0, 0), 14),
]


def ends_of(who: Who) -> list[tuple[int, str, int, int]]:
    """In order of time: when, send or receive, the partner's process, bytes."""
    sent = [(at, "S", other, size) for at, me, _, (other, _), size in MESSAGES if me == who]
    return sorted(sent + [(at, "R", other, size) for _, (other, _), at, me, size in MESSAGES if me == who])


def otf2_archive(folder: Path) -> Path:
    def records(who: Who) -> list[Event]:
        kinds = {"S": "MpiSend", "R": "MpiRecv"}
        # Within a process by the communicator that is everybody's own, whose only rank is 0.
        ends = [
            Event(at, kinds[kind], (0, 2, 7, size) if other == who[0] == 0 else (other, 0, 7, size))
            for at, kind, other, size in ends_of(who)
        ]
        return [Event(1, "Enter", (0,)), *ends, Event(99, "Leave", (0,))]

    places = [Place(p + 1000 * t, records((p, t)), thread_of=p if t else None) for p, t in THREADS]
    return otf2_writer.write(folder, places, regions={0: "main"})


def otf1_trace(folder: Path) -> Path:
    files = {
        "": "1:1\n2:2\n3:11\n4:12\n",
        "0.def": 'DTR3b9aca00\nDP1NM"a"\nDP2NM"b"\nDP11NM"a, 1"PT1\nDP12NM"b, 1"PT2\nDF1NM"main"\n',
    }
    for process, thread in THREADS:
        ends = [
            f"{at:x}\n*\n{kind}{other + 1}L{n:x}T7C1" for at, kind, other, n in ends_of((process, thread))
        ]
        lines = "\n".join(["1\n*\nE1", *ends, "63\n*\nL1", "63\n*\n"])
        files[f"{1 + process + 2 * thread}.events"] = lines.replace("*", f"*{1 + process + 16 * thread:x}")
    return otf1_oracle.write(folder, files)


def picl_file(folder: Path) -> Path:
    records = {"S": "-3 -21", "R": "-4 -52"}
    lines = []
    for node, process in THREADS:
        lines += [(1, f"-3 -901 0.000001 {node} {process} 0"), (99, f"-4 -901 0.000099 {node} {process} 0")]
        lines += [
            (at, f"{records[kind]} 0.{at:06} {node} {process} 3 2 {size} 7 {other}")
            for at, kind, other, size in ends_of((node, process))
        ]
    folder.mkdir()
    path = folder / "run.trf"
    path.write_text("".join(line + "\n" for _, line in sorted(lines)))
    return path


@pytest.mark.parametrize("make", [otf2_archive, otf1_trace, picl_file])
def test_threads_find_each_other(
    make: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everywhere the ends of a message are the threads whose records they are."""
    monkeypatch.setattr(opening, "user_cache_path", lambda *_, **__: tmp_path / "cache")
    with open_trace(make(tmp_path / "run")) as store:
        assert [at.rank for at in store.locations] == [process for process, _ in THREADS]
        assert not [finding for finding in store.report if "partner" in finding.name or "len" in finding.name]
        assert (store.clock.details["messages"], store.clock.repair) == (len(MESSAGES), "none")
        place = {who: i for i, who in enumerate(THREADS)}
        tick = 1 / store.ticks_per_second
        timeline = open_timeline(store)
        assert timeline is not None
        drawn = timeline.messages()
        assert drawn is not None
        columns = (drawn.sender, drawn.receiver, drawn.bytes)
        assert list(zip(*(column.tolist() for column in columns), strict=True)) == [
            (place[sender], place[receiver], size) for _, sender, _, receiver, size in MESSAGES
        ]
        assert drawn.sent_s == pytest.approx([(sent - 1) * tick for sent, *_ in MESSAGES])
        assert drawn.received_s == pytest.approx([(at - 1) * tick for _, _, at, *_ in MESSAGES])
        for begin, end in ((1, 99), (1, 12), (12, 30), (11, 81), (40, 70)):
            (found,) = Statistics(store).ranges([((begin - 1) * tick, (end - 1) * tick)], replay=True)
            matrix: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
            for sent, sender, _, receiver, size in MESSAGES:
                if begin <= sent < end:
                    matrix[place[sender], place[receiver]][0] += 1
                    matrix[place[sender], place[receiver]][1] += size
            talk = found.messages
            assert talk is not None
            told = (talk.sender, talk.receiver, talk.count, talk.bytes)
            rows = zip(*(column.tolist() for column in told), strict=True)
            assert list(rows) == [(*pair, *matrix[pair]) for pair in sorted(matrix)]
            # It is on an ideal network too, as every message is matched.
            assert found.replayed is not None
            assert found.replayed.ideal_s is not None


# ---------------------------------------------------------------- against queues

Row = tuple[int, int, int, int, int, int, int]
SEND, ISEND, RECV = MessageKind.SEND, MessageKind.ISEND, MessageKind.RECV
POST, IRECV = MessageKind.IRECV_POST, MessageKind.IRECV


def in_memory(rows: dict[int, list[Row]], ranks: list[int]) -> Memory:
    memory = Memory()
    memory.describe(ticks_per_second=1e9)
    for number, rank in enumerate(ranks):
        memory.location(Location(number, rank=rank, thread=number - ranks.index(rank)))
    for number, own in sorted(rows.items()):
        columns = np.array(own, np.int64).T
        memory.append("messages", number, **dict(zip(TABLES["messages"], columns, strict=True)))
    return memory


def expected(rows: dict[int, list[Row]], name: list[int]) -> list[tuple[int, ...]]:
    """Messages as `Matches` has them, first in, first out; `name`: by which location each one is named."""
    sends: dict[tuple[int, ...], list[tuple[int, ...]]] = defaultdict(list)
    receives: dict[tuple[int, ...], list[tuple[int, ...]]] = defaultdict(list)
    together = sorted((row[0], at, k) for at, own in rows.items() for k, row in enumerate(own))
    posted: dict[tuple[int, int], int] = {}
    for place, (_, at, k) in enumerate(together):
        time, kind, peer, _, tag, size, request = rows[at][k]
        if kind == POST:
            posted[name[at], request] = place
        elif kind in (SEND, ISEND):
            sends[name[at], peer, tag].append((at, time, size))
        else:
            since = posted.pop((name[at], request), place) if kind == IRECV else place
            receives[peer, name[at], tag].append((since, at, time))
    return sorted(
        (sender, receiver, sent, time, size, channel[2])
        for channel in sends
        for (sender, sent, size), (_, receiver, time) in zip(
            sends[channel], sorted(receives[channel]), strict=False
        )
    )


def matched(memory: Memory, limit: int) -> list[tuple[int, ...]]:
    both = [found(memory, match, limit) for match in (match_messages, match_in_passing)]
    assert both[0] == both[1]
    return both[0]


def found(memory: Memory, match: Callable[..., Iterator[Matches]], limit: int) -> list[tuple[int, ...]]:
    return sorted(
        row
        for part in match(memory, rows=limit)
        for row in zip(*(column.tolist() for column in part[:6]), strict=True)
    )


STEP = st.tuples(
    st.integers(0, 2),  # ticks since the one before
    st.sampled_from([SEND, ISEND, RECV, POST, IRECV]),
    *(st.integers(0, most) for most in (5, 2, 1)),  # thread, process of the partner, tag
)


@settings(deadline=None, max_examples=50)
@given(st.lists(STEP, max_size=60), st.randoms(use_true_random=False))
def test_first_in_first_out_between_processes(steps, chance) -> None:  # type: ignore[no-untyped-def]
    """Three processes of two threads; what one of them posts another may complete, or nobody."""
    rows: dict[int, list[Row]] = defaultdict(list)
    open_requests: dict[int, list[int]] = defaultdict(list)
    time = 0
    for number, (gap, kind, at, other, tag) in enumerate(steps, start=1):
        time += gap
        process, request, peer = at // 2, 0, 2 * other
        if kind == POST:
            request, peer = number, -1
            open_requests[process].append(request)
        elif kind == IRECV and open_requests[process]:
            request = open_requests[process].pop(chance.randrange(len(open_requests[process])))
        rows[at].append((time, kind, peer, 0, tag, number, request))
    memory = in_memory(rows, [0, 0, 1, 1, 2, 2])
    want = expected(rows, [0, 0, 2, 2, 4, 4])
    for limit in (1 << 20, 5):
        assert matched(memory, limit) == want
    kinds = [row[1] for own in rows.values() for row in own]
    ends = sum(kind in (SEND, ISEND) for kind in kinds), sum(kind in (RECV, IRECV) for kind in kinds)
    clocks = check_clocks(memory)
    assert (clocks.messages, clocks.unmatched) == (len(want), (ends[0] - len(want), ends[1] - len(want)))


RECEIVE = st.tuples(
    st.integers(0, 1),  # thread
    st.booleans(),  # whether it blocks
    *(st.integers(0, 50) for _ in range(2)),  # ticks from the sending and the posting before
)


@settings(deadline=None, max_examples=80)
@example([(1, True, 20, 0), (0, False, 70, 10)])
@given(st.lists(RECEIVE, max_size=12))
def test_threads_that_receive_at_once_do_not_contradict_clocks(receives) -> None:  # type: ignore[no-untyped-def]
    """All on one channel and one clock; a receive that blocks is recorded where it ends, after others that
    other threads have posted meanwhile."""
    rows: dict[int, list[Row]] = defaultdict(list)
    sent = posted = 0
    free = {2: 0, 3: 0}
    waits = []
    for number, (thread, blocks, apart, gap) in enumerate(receives, start=1):
        at = 2 + thread
        sent += apart
        rows[0].append((sent, SEND, 2, 0, 0, number, 0))
        posted = max(posted, free[at]) + gap
        arrived = max(posted, sent) + 1
        if blocks:
            rows[at].append((arrived, RECV, 0, 0, 0, number, 0))
            free[at] = arrived
        else:
            rows[at].append((posted, POST, -1, 0, 0, 0, number))
            waits.append((at, arrived, number))
    for at, arrived, number in waits:
        free[at] = max(free[at], arrived) + 1
        rows[at].append((free[at], IRECV, 0, 0, 0, number, number))
    clocks = check_clocks(in_memory(rows, [0, 0, 1, 1]))
    assert (clocks.messages, clocks.unmatched) == (len(receives), (0, 0))
    assert (clocks.before, clocks.repair) == (Wrong(), "none")
    # What no order explains is said all the same: a clock that is behind by more than all the time.
    if receives and all(blocks for _, blocks, _, _ in receives):
        late = {at: [(row[0] - 10**6 * (at > 0), *row[1:]) for row in own] for at, own in rows.items()}
        assert check_clocks(in_memory(late, [0, 0, 1, 1])).before[:2] == (0, len(receives))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 1)), max_size=30),
    st.randoms(use_true_random=False),
)
def test_threads_that_are_named_themselves(messages, chance) -> None:  # type: ignore[no-untyped-def]
    """As Paraver does: channels are those of threads, though two of them share a rank."""
    rows: dict[int, list[Row]] = defaultdict(list)
    for number, (sender, receiver, tag) in enumerate(messages):
        rows[sender].append((number, SEND, receiver, 0, tag, number, 0))
    chance.shuffle(messages)
    for number, (sender, receiver, tag) in enumerate(messages, start=100):
        rows[receiver].append((number, RECV, sender, 0, tag, 0, 0))
    memory = in_memory(rows, [0, 0, 1, 1])
    want = expected(rows, [0, 1, 2, 3])
    assert len(want) == len(messages)
    for limit in (1 << 20, 5):
        assert matched(memory, limit) == want


def test_nothing_is_read_where_one_thread_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {0: [(1, SEND, 2, 0, 0, 0, 0)], 2: [(2, RECV, 0, 0, 0, 0, 0)]}
    memory = in_memory(rows, [0, 0, 1, 1])  # type: ignore[arg-type]  # kinds are numbers too
    monkeypatch.delattr(Memory, "blocks")
    assert address_of(memory).tolist() == [0, 1, 2, 3]


def test_memory_does_not_grow_with_the_messages_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All on one channel, of which either end is two threads that take turns."""
    limit = 1 << 12
    for match in (match_messages, match_in_passing):
        monkeypatch.setattr(match, "__defaults__", (limit, None, None))
    monkeypatch.setattr(spill, "BATCH", limit)
    peaks = []
    for count in (8, 60_000, 240_000):  # the first loads what is compiled
        with StoreWriter(tmp_path / "made.h5", Source("made", "made"), MADE) as writer:
            writer.describe(ticks_per_second=1e9)
            for number in range(4):
                writer.location(Location(number, rank=number // 2))
            for number in range(4):
                turn = np.arange(number % 2, count, 2)
                none = np.zeros(turn.size, np.int64)
                inward = number >= 2
                writer.append(
                    "messages", number, time=turn + 10**9 * inward, kind=none + (RECV if inward else SEND),
                    peer=none + 2 * (not inward), communicator=none, tag=none, bytes=turn, request=none,
                )  # fmt: skip
            tracemalloc.start()
            right = 0
            for m in match_in_passing(writer):
                right += int(((m.sender == m.receiver - 2) & (m.received == m.sent + 10**9)).sum())
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            assert right == count
    # As in the like test of `test_clock`: whether a batch is being written at the peak is chance.
    assert peaks[2] < 1.5 * peaks[1], peaks

"""The clock check against the accounts of real archives, a linear programme's view, and itself."""

from __future__ import annotations

import time
import tracemalloc
from collections import defaultdict, deque
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.core import clock_repair
from desktop.data import matching, spill
from desktop.data.clock import Wrong, check_clocks
from desktop.data.events import NO_COMMUNICATOR, TABLES, Importer, Location, MessageKind
from desktop.data.importers import otf2
from desktop.data.matching import links_of, match_in_passing, match_messages
from desktop.data.store import Source, StoreWriter, open_store
from desktop.errors import TraceFormatError
from desktop.progress import Progress
from tests.data_layer.archives import NAMES, facts, unpack
from tests.data_layer.memory import Memory
from tests.oracles.otf2_library import library

MADE = Importer("made", "Made for tests", "1", lambda p, h: True, lambda p, s, g: None, lambda p: [p])


def rows(memory: Memory | StoreWriter, table: str, location: int, *records: tuple[int, ...]) -> None:
    columns = np.array(records, np.int64).reshape(len(records), len(TABLES[table])).T
    memory.append(table, location, **dict(zip(TABLES[table], columns, strict=True)))


def ranks(n: int) -> Memory:
    memory = Memory()
    memory.describe(ticks_per_second=1e9)
    for rank in range(n):
        memory.location(Location(rank, rank=rank))
    memory.text("Barrier")
    memory.notes["reordered"] = []
    return memory


# ---------------------------------------------------------------- real archives


@pytest.mark.parametrize("dense", [1024, 1], ids=["matrix", "edges"])
@pytest.mark.parametrize("name", [name for name in NAMES if "clock_check" in facts()[name]])
def test_archives(name: str, dense: int, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    try:
        library()
    except TraceFormatError:
        pytest.skip("the otf2 wheel exists for Linux x86-64 and Python 3.11 only")
    monkeypatch.setattr(clock_repair, "DENSE", dense)
    memory, want = Memory(), facts()[name]["clock_check"]
    otf2.IMPORTER.read(unpack(name, tmp_path), memory, Progress())
    found = check_clocks(memory)
    assert found.messages == want["messages_matched"]
    assert found.before.messages == want["message_violations_as_recorded"]
    compared, wrong = by_the_rules(memory)
    assert (found.collectives, found.before.collectives) == (compared, wrong)
    assert wrong or not want["collective_violations_as_recorded"] or name in ALL_TO_SOME
    assert found.after == Wrong()
    assert found.repair == ("shift" if found.before.checks else "none")
    assert found.shift[0] == 0
    assert (found.low <= found.shift).all() or found.repair == "none"
    assert (found.shift <= found.high).all() or found.repair == "none"
    if name in ALL_TO_SOME:
        return
    # The account knows fewer bounds: those of messages and of what all wait for.
    for i, at in enumerate(memory.locations):
        low, high = want["feasible_shift_ticks_relative_to_first_location"][str(at.id)]
        assert low is None or low <= found.low[i]
        assert high is None or found.high[i] <= high


#: Here the account takes Alltoallv for an operation in which all wait for all.
ALL_TO_SOME = ("ezt_psort_16", "ezt_psort_8_dilated")


def by_the_rules(memory: Memory) -> tuple[int, int]:
    """How many collectives say something of clocks, and how many contradict them: from the tables alone."""
    groups: dict[tuple[int, int], list[dict[str, int]]] = defaultdict(list)
    for i in range(len(memory.locations)):
        seen: dict[int, int] = defaultdict(int)
        table = memory.table("collectives", i)
        for row in zip(*(table[name].tolist() for name in TABLES["collectives"]), strict=True):
            one = dict(zip(TABLES["collectives"], row, strict=True)) | {"here": i}
            if one["communicator"] == NO_COMMUNICATOR or "handle" in memory.texts[one["operation"]]:
                continue
            groups[one["communicator"], seen[one["communicator"]]].append(one)
            seen[one["communicator"]] += 1
    compared = wrong = 0
    for members in groups.values():
        name, root = memory.texts[members[0]["operation"]], members[0]["root"]
        data = any(one["sent"] or one["received"] for one in members)
        bounds = [
            (a, b)
            for a in members
            for b in members
            if a is not b
            and (name == "Barrier" or (data and name != "Alltoallv"))
            and (name != "Bcast" or a["here"] == root)
            and (name not in ("Reduce", "Gather") or b["here"] == root)
        ]
        compared += bool(bounds)
        wrong += any(a["begin"] > b["end"] for a, b in bounds)
    return compared, wrong


# ---------------------------------------------------------------- matching


@st.composite
def traffic(draw: st.DrawFn) -> list[tuple[int, int, int, int, int]]:
    """Messages: sender, receiver, communicator, tag, how the receiver takes it."""
    one = st.tuples(*(st.integers(0, 2) for _ in range(4)), st.integers(0, 1))
    return draw(st.lists(one, max_size=40))


@settings(deadline=None, max_examples=40)
@given(traffic(), st.randoms(use_true_random=False), st.integers(0, 3))
def test_first_in_first_out(messages, chance, lost) -> None:  # type: ignore[no-untyped-def]
    """Against queues; receives are posted in order, but non-blocking ones end in any order."""
    memory = ranks(3)
    sends: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    receives: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    queues = defaultdict(deque)
    expected = []
    for number, (sender, receiver, comm, tag, blocking) in enumerate(messages):
        kind = MessageKind.SEND if blocking else MessageKind.ISEND
        sends[sender].append((10 * number, kind, receiver, comm, tag, number, 0))
        queues[sender, receiver, comm, tag].append((10 * number, number))
    taken = list(range(len(messages)))
    chance.shuffle(taken)
    open_requests: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    at = 1000
    for number in taken[lost:]:
        sender, receiver, comm, tag, blocking = messages[number]
        at += 10
        sent, which = queues[sender, receiver, comm, tag].popleft()
        if blocking:
            receives[receiver].append((at, MessageKind.RECV, sender, comm, tag, 0, 0))
            expected.append((sender, receiver, sent, at, which, tag))
        else:
            receives[receiver].append((at, MessageKind.IRECV_POST, -1, 0, -1, 0, number + 1))
            open_requests[receiver].append((sender, comm, tag, number + 1, sent, which))
    for receiver, opened in open_requests.items():
        chance.shuffle(opened)
        for sender, comm, tag, request, sent, which in opened:
            at += 10
            receives[receiver].append((at, MessageKind.IRECV, sender, comm, tag, 0, request))
            expected.append((sender, receiver, sent, at, which, tag))
    # Nobody sends with tag 9.
    receives[0] += [(at + 10 * (k + 1), MessageKind.RECV, 1, 0, 9, 0, 0) for k in range(lost)]
    for i in range(3):
        rows(memory, "messages", i, *sorted(sends[i] + receives[i]))
    for limit, match in product((1 << 20, 5, 2), (match_messages, match_in_passing)):
        tally = np.zeros(3, np.int64)
        parts = match(memory, rows=limit, tally=tally)
        found = [tuple(int(x) for x in row) for part in parts for row in zip(*part[:6], strict=True)]
        assert sorted(found) == sorted(expected)
        unequal = sum(size > 0 for *_, size, _ in expected)  # no receive says that it got anything
        assert tally.tolist() == [len(messages), len(expected) + lost, unequal]
    clocks = check_clocks(memory)
    assert clocks.unmatched == (len(messages) - len(expected), lost)
    assert (clocks.messages, clocks.unequal) == (len(expected), unequal)


def test_no_tags_are_slow_to_match() -> None:
    """Those by which the names of all channels would want the same place if that did not depend on chance."""
    factor, mask = 0x9E3779B97F4A7C15, (1 << 64) - 1
    inverse = pow(factor, -1, 1 << 64)

    def before(h: int) -> int:
        """The number of which a product and a fold made `h`."""
        h ^= (h >> 29) ^ (h >> 58)
        return h * inverse & mask

    start = 1 * factor & mask  # of sender 0 and receiver 1, communicator 0
    start ^= start >> 29
    start = start * factor & mask
    start ^= start >> 29
    tags = [start ^ before(before(1 << 63 | n)) for n in range(50_000)]
    names = np.zeros((len(tags), 5), np.int64)
    names[:, 1], names[:, 3] = 1, np.array(tags, np.uint64).view(np.int64)
    shares = np.empty(len(names), np.int64)
    matching.choose_shares(names, 5, 1 << 30, shares)
    assert len(set(shares.tolist())) == 1
    spill.Interner(width=5)(names[:1])
    begin = time.thread_time()
    assert np.array_equal(spill.Interner(width=5)(names), np.arange(len(names)))
    assert time.thread_time() - begin < 0.5


def test_a_request_number_used_again() -> None:
    memory = ranks(2)
    rows(memory, "messages", 0, (1, MessageKind.SEND, 1, 0, 7, 0, 0), (2, MessageKind.SEND, 1, 0, 7, 0, 0))
    post, done = MessageKind.IRECV_POST, MessageKind.IRECV
    rows(
        memory,
        "messages",
        1,
        *((10, post, -1, 0, -1, 0, 5), (11, done, 0, 0, 7, 0, 5), (12, post, -1, 0, -1, 0, 5)),
        (13, done, 0, 0, 7, 0, 5),
    )
    for match in (match_messages, match_in_passing):
        (found,) = match(memory)
        assert found.sent.tolist() == [1, 2]
        assert found.received.tolist() == [11, 13]


@settings(deadline=None, max_examples=30)
@given(traffic())
def test_matched_messages_are_kept_with_their_senders(messages) -> None:  # type: ignore[no-untyped-def]
    """Each once, in order of sending, in however many parts they were matched."""
    kept = []
    for limit in (1 << 20, 5):
        with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            path = Path(folder) / "made.h5"
            for match in (match_messages, match_in_passing):
                patch.setattr(match, "__defaults__", (limit, None, None))
            with StoreWriter(path, Source("made", "made"), MADE) as writer, links_of(writer) as links:
                writer.describe(ticks_per_second=1e9)
                for rank in range(3):
                    writer.location(Location(rank, rank=rank))
                for rank in range(3):
                    sent = [
                        (10 * k, MessageKind.SEND, b, comm, tag, k, 0)
                        for k, (a, b, comm, tag, _) in enumerate(messages)
                        if a == rank
                    ]
                    took = [
                        (1000 + 10 * k, MessageKind.RECV, a, comm, tag, 0, 0)
                        for k, (a, b, comm, tag, _) in enumerate(messages)
                        if b == rank
                    ]
                    rows(writer, "messages", rank, *sent, *took)
                check_clocks(writer, matched=links.add)
            with open_store(path) as store:
                kept.append(
                    [
                        list(zip(*(c.tolist() for c in block), strict=True))
                        for rank in range(3)
                        for block in store.blocks("links", rank)
                    ]
                )
    expected = [
        [(10 * k, 1000 + 10 * k, b, k, tag) for k, (a, b, _, tag, _) in enumerate(messages) if a == rank]
        for rank in range(3)
    ]
    assert kept == [[rows for rows in expected if rows]] * 2


def test_memory_does_not_grow_with_the_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All on one channel, received in another order than they were posted; some posts are never over."""
    limit = 1 << 12
    for match in (match_messages, match_in_passing):
        monkeypatch.setattr(match, "__defaults__", (limit, None, None))
    monkeypatch.setattr(matching, "ROWS", limit)
    monkeypatch.setattr(spill, "BATCH", limit)
    peaks = []
    for count in (0, 60_000, 240_000):  # the first loads what is compiled
        with StoreWriter(tmp_path / "made.h5", Source("made", "made"), MADE) as writer:
            writer.describe(ticks_per_second=1e9)
            for rank in range(2):
                writer.location(Location(rank, rank=rank))
            number = np.arange(max(count, 8))
            none = np.zeros(number.size, np.int64)
            columns = {"peer": none + 1, "communicator": none, "tag": none + 7, "bytes": number}
            send = none + MessageKind.SEND
            writer.append("messages", 0, time=10 * number, kind=send, request=none, **columns)
            # Of every four, all are posted, then the last is over first; one more never is.
            four = np.arange(number.size // 4)[:, None]
            post = np.array([MessageKind.IRECV_POST] * 5)
            over = np.array([MessageKind.IRECV] * 4)
            kind = np.concatenate([post, over])[None, :] + 0 * four
            request = 5 * four + np.array([0, 1, 2, 3, 4, 4, 2, 1, 0])
            request[:, 3] = 3
            taken = {"kind": kind.ravel(), "request": request.ravel()}
            rest = np.zeros(kind.size, np.int64)
            taken |= {"peer": np.where(kind.ravel() == MessageKind.IRECV, 0, -1), "communicator": rest}
            taken |= {"tag": rest + 7, "bytes": rest, "time": 10**9 + np.arange(kind.size)}
            writer.append("messages", 1, **taken)
            tracemalloc.start()
            with links_of(writer) as links:
                found = check_clocks(writer, matched=links.add)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            assert found.messages == number.size
        with open_store(tmp_path / "made.h5") as store:
            ((sent, arrived, size),) = store.blocks("links", 0, "time", "arrival", "bytes", rows=1 << 20)
        assert np.array_equal(sent, 10 * number)
        assert np.array_equal(size, number)
        # Of nine rows the receive of the k-th of four, in the order of posting, is the one that ends it.
        assert np.array_equal(arrived, (10**9 + 9 * four + np.array([8, 7, 6, 5])).ravel())
    # Whether a batch is being written at the peak is chance, a quarter of it; a row a message were thrice.
    assert peaks[2] < 1.5 * peaks[1], peaks


# ---------------------------------------------------------------- shifts


@settings(deadline=None, max_examples=60)
@given(
    st.integers(2, 6),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 90)), max_size=25),
    st.lists(st.lists(st.integers(0, 40), min_size=6, max_size=6), max_size=4),
    st.lists(st.integers(-(10**6), 10**6), min_size=6, max_size=6),
    st.sampled_from([1024, 1]),
)
def test_any_constant_error_is_repaired(n, messages, barriers, wrong, dense) -> None:  # type: ignore[no-untyped-def]
    """Of a run without contradictions, clocks set wrong by any constants: shifts exist, and the true
    ones lie in the intervals."""
    memory = ranks(n)
    memory.ticks_per_second = 1e4  # or shifts of one tick were too small to be told from scatter
    mine: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    for number, (sender, receiver, travel) in enumerate(messages):
        sender, receiver, at = sender % n, receiver % n, 10**7 + 100 * number
        mine[sender].append((at + wrong[sender], MessageKind.SEND, receiver, 0, number, 1, 0))
        mine[receiver].append((at + travel + wrong[receiver], MessageKind.RECV, sender, 0, number, 1, 0))
    for rank in range(n):
        rows(memory, "messages", rank, *sorted(mine[rank]))
        instances = []
        for number, early in enumerate(barriers):
            at = 10**8 + 1000 * number
            instances.append(
                (at - early[rank] + wrong[rank], at + early[-1 - rank] + wrong[rank], 0, 1, -1, 0, 0)
            )
        rows(memory, "collectives", rank, *instances)
    kept = clock_repair.DENSE
    try:
        clock_repair.DENSE = dense
        found = check_clocks(memory)
    finally:
        clock_repair.DENSE = kept
    # What contradicts itself at one end of the run only may be drift as well.
    assert found.repair in ("none", "shift", "linear")
    assert found.after == Wrong()
    true = wrong[0] - np.array(wrong[:n])
    assert (found.low <= true).all()
    assert (true <= found.high).all()
    assert found.shift[0] == 0
    if found.repair == "shift":
        assert (np.abs(found.shift - true) <= found.off).all()


@pytest.mark.parametrize("dense", [1024, 1])
def test_drift_is_mended_by_a_rate(dense: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_repair, "DENSE", dense)
    memory = ranks(2)
    memory.ticks_per_second = 1e6
    for rank, drift in enumerate((0.0, 1e-3)):
        at = np.linspace(1e6, 2e6, 50).round()
        shown = (at + (at - 1.5e6) * drift).round().astype(int)
        rows(memory, "collectives", rank, *((t, t + 10, 0, 1, -1, 0, 0) for t in shown.tolist()))
        memory.locations[rank].first, memory.locations[rank].last = int(shown[0]), int(shown[-1]) + 10
    found = check_clocks(memory)
    assert (found.before.checks, found.after, found.repair) == (48, Wrong(), "linear")
    rate = (1 + found.drift[0]) / (1 + found.drift[1]) - 1
    assert rate == pytest.approx(1e-3, abs=5e-5)
    assert (found.off[1:] < 150).all()  # of 500


def test_what_no_line_explains_stays_as_recorded() -> None:
    memory = ranks(2)
    memory.ticks_per_second = 1e6
    # Rank 1 is behind, ahead and behind again.
    at = np.arange(40) * 1000 + 1000
    for rank, off in enumerate((0 * at, np.where((at // 10000) % 2, 100, -100))):
        shown = (at + off).tolist()
        rows(memory, "collectives", rank, *((t, t + 10, 0, 1, -1, 0, 0) for t in shown))
        memory.locations[rank].first, memory.locations[rank].last = shown[0], shown[-1] + 10
    found = check_clocks(memory)
    assert found.before == found.after == (40, 0, 90, 3600)
    assert found.repair == "impossible"
    assert not found.shift.any() and not found.drift.any()


def test_threads_share_the_clock_of_their_process() -> None:
    memory = ranks(2)
    memory.ticks_per_second = 1e6
    memory.location(Location(7, rank=1, thread=1))
    rows(memory, "messages", 0, (1000, MessageKind.SEND, 1, 0, 0, 1, 0))
    rows(memory, "messages", 1, (500, MessageKind.RECV, 0, 0, 0, 1, 0))
    found = check_clocks(memory)
    assert found.repair == "shift"
    assert found.shift.tolist() == [0, 500, 500]  # one side is open: the smallest that is enough
    assert np.isinf(found.off[1])


BEGINS = (0, 500, 900)


def one_operation(name: str, sent: tuple[int, ...], received: tuple[int, ...], root: int = -1) -> Memory:
    """Three ranks enter one operation one after the other, and each leaves at once."""
    memory = ranks(3)
    operation = memory.text(name)
    for rank, begin in enumerate(BEGINS):
        row = (begin, begin + 1, operation, 1, root, sent[rank], received[rank])
        own = (begin + 1, begin + 2, 0, NO_COMMUNICATOR, -1, 0, 0)
        rows(memory, "collectives", rank, row, own)
    return memory


@pytest.mark.parametrize(
    ("name", "root", "sent", "received", "most"),
    [
        ("Barrier", -1, (0, 0, 0), (0, 0, 0), 899),
        ("Allreduce", -1, (8, 8, 8), (8, 8, 8), 899),
        ("Allreduce", -1, (0, 0, 0), (0, 0, 0), None),
        ("Alltoallv", -1, (8, 8, 8), (8, 8, 8), None),
        ("Allgatherv", -1, (8, 8, 0), (8, 8, 8), 499),
        ("Reduce_scatter", -1, (8, 8, 8), (0, 8, 8), 399),
        ("Bcast", 0, (8, 0, 0), (8, 8, 8), 0),
        ("Bcast", 2, (0, 0, 8), (8, 8, 8), 899),
        ("Bcast", 2, (0, 0, 0), (0, 0, 0), None),
        ("Bcast", -1, (8, 0, 0), (8, 8, 8), None),
        ("Scatterv", 2, (0, 0, 8), (0, 8, 0), 399),
        ("Reduce", 2, (8, 8, 8), (0, 0, 8), 0),
        ("Reduce", 0, (8, 8, 8), (8, 0, 0), 899),
        ("Gatherv", 0, (8, 8, 0), (8, 0, 0), 499),
        ("Scan", -1, (8, 8, 8), (8, 8, 8), 0),
        ("one-to-all", 1, (0, 8, 0), (8, 0, 8), 499),
        ("all-to-one", 1, (0, 0, 8), (0, 8, 0), 399),
        ("all-to-all", -1, (8, 8, 8), (8, 8, 8), None),
        ("Create_handle", -1, (0, 0, 0), (0, 0, 0), None),
    ],
)
def test_which_bounds_operations_give(name, root, sent, received, most) -> None:  # type: ignore[no-untyped-def]
    """`most`: by how much the operation contradicts the clocks; None: it says nothing of them."""
    found = check_clocks(one_operation(name, sent, received, root))
    assert found.checked == (most is not None)
    assert found.before.most == (most or 0)


def test_scans_wait_in_order_where_it_is_known() -> None:
    memory = one_operation("Exscan", (8, 8, 8), (8, 8, 8))
    backwards = ranks(3)
    operation = backwards.text("Exscan")
    for rank, begin in enumerate(BEGINS[::-1]):
        rows(backwards, "collectives", rank, (begin, begin + 1, operation, 1, -1, 8, 8))
    found = check_clocks(memory)
    assert found.before.most == 0
    assert found.low.tolist() == [0, -501, -901] and np.isinf(found.high[1:]).all(), (
        "nobody waits for the last"
    )
    assert check_clocks(backwards).before.most == 899
    backwards.notes["reordered"] = [1]
    assert not check_clocks(backwards).checked
    del memory.notes["reordered"]
    assert not check_clocks(memory).checked


def test_no_locations() -> None:
    assert not check_clocks(Memory()).checked


@pytest.mark.parametrize("dense", [1024, 1])
def test_contradictions_among_others_than_the_first(dense: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_repair, "DENSE", dense)
    bounds = clock_repair.Bounds(3)
    one, other = np.array([1]), np.array([2])
    bounds.add_messages(one, other, np.array([-5]))
    found = bounds.solve()
    assert found is not None and found.least[2] - found.least[1] >= 5
    bounds.add_messages(other, one, np.array([-5]))
    assert bounds.solve() is None


def test_the_middle_is_safe_wherever_the_truth_is() -> None:
    """All shifts that satisfy the bounds, counted out: none has the middle farther from it than no shift."""
    luck, safe = np.random.default_rng(4), 0
    for _ in range(400):
        true = luck.integers(-6, 7, 3)
        closed = true[:, None] - true[None, :] + luck.integers(0, 4, (3, 3))
        np.fill_diagonal(closed, 0)
        clock_repair.close(closed)
        middle = (closed[:, 0] - closed[0]) // 2
        least = clock_repair.nearest(closed, np.rint(clock_repair.project(closed, 400)).astype(np.int64))
        if closed.min() >= 0 or not clock_repair.is_safe(closed, least, middle):
            continue
        safe += 1
        for d in np.ndindex(25, 25):
            shifts = np.array([0, *d]) - [0, 12, 12]
            if (shifts[:, None] - shifts[None, :] <= closed).all():
                with_, without = np.ptp(middle - shifts), np.ptp(shifts)
                assert with_ <= without + 1 and np.std(middle - shifts) <= np.std(shifts) + 0.5
    assert safe > 40


def test_own_entries_do_not_make_a_process_late() -> None:
    """Two threads of a process in one operation: one enters when the other has left."""
    for process, worst in (([0, 0, 1], 0), ([0, 1, 1], 80)):
        late = np.zeros(1, np.int64)
        flags = np.ones(3, np.bool_)
        begin, end = np.array([0, 90, 5]), np.array([10, 100, 95])
        held = clock_repair.Held(
            np.array([0, 3]), np.array(process), begin, end, flags, flags, np.zeros(1, np.bool_)
        )
        clock_repair.late_sources(held, late)
        assert late[0] == worst


def test_a_rate_that_no_clock_has_is_none() -> None:
    memory = ranks(2)
    memory.ticks_per_second = 1e6
    for rank, drift in enumerate((0.0, 0.3)):
        shown = np.linspace(1e6, 2e6, 50)
        shown = (shown + (shown - 1.5e6) * drift).round().astype(int)
        rows(memory, "collectives", rank, *((t, t + 10, 0, 1, -1, 0, 0) for t in shown.tolist()))
        memory.locations[rank].first, memory.locations[rank].last = int(shown[0]), int(shown[-1]) + 10
    assert check_clocks(memory).repair == "impossible"


def test_roots_that_differ_are_counted() -> None:
    memory = one_operation("Bcast", (8, 0, 0), (8, 8, 8), 0)
    assert check_clocks(memory).disagreeing == 0
    memory.appended["collectives", 2][0]["root"][0] = 1
    assert check_clocks(memory).disagreeing == 1
    barrier = one_operation("Barrier", (0, 0, 0), (0, 0, 0), 0)
    barrier.appended["collectives", 2][0]["root"][0] = 1
    assert check_clocks(barrier).disagreeing == 0, "it has none, whatever is recorded"

"""Every tick of every processor belongs to one account: on real traces, on random ones, in every range."""

from __future__ import annotations

import tarfile
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.core.accounts import ACTIVITY_OF_CLASS, CLASSES, WAITING, Account
from desktop.core.labels import ACCOUNTS
from desktop.data.classify import account_class
from desktop.data.events import Activity, MessageKind, Region
from desktop.data.opening import open_trace
from desktop.data.root_causes import explain
from desktop.data.statistics import RangeStats, Statistics
from desktop.data.store import TraceStore
from desktop.data.utilization import Rules, build, states
from desktop.errors import StoreError, TraceFormatError
from tests.data_layer.test_statistics import ALLREDUCE, ISEND, RECV, SOLVE, Row, busy_but, stored, threads
from tests.explained import DOCS, account_row, shares, trace_name
from tests.oracles.utilization import Thread

TABLE = DOCS.read_text(encoding="utf-8")
TESTS = Path(__file__).parents[1]
SHARED = TESTS.parents[1] / "shared" / "traces"


def traces() -> list[Path]:
    """All bundled ones, and those of a shared collection where there is one; the runs of OTF are those of
    OTF2 (`test_formats_agree`)."""
    data = [p for form in ("otf2", "paraver", "picl") for p in sorted((TESTS / "data" / form).iterdir())]
    known = {p.name.removesuffix(".xz") for p in data}
    more = [p for form in ("otf2", "paraver", "picl") for p in sorted((SHARED / form).glob("*"))]
    found = [*data, *(p for p in more if p.name not in known)]
    return [p for p in found if p.name.endswith((".gz", ".xz", ".prv", ".trf"))]


def unpacked(path: Path, folder: Path) -> Path:
    if path.parent.name == "otf2":
        with tarfile.open(path) as tar:
            tar.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        return next(folder.rglob("*.otf2"))
    return path


def add_up(stats: RangeStats, store: TraceStore) -> None:
    """To the tick, of every location; and what is computed is what the statistics have always said."""
    ticks = round(stats.duration_s * store.ticks_per_second)
    assert stats.accounts is not None and stats.accounts.dtype == np.int64
    assert stats.accounts.min() >= 0
    assert (stats.accounts.sum(axis=1) == np.where(stats.is_processor, ticks, 0)).all()
    assert stats.accounts.sum() == ticks * stats.processors
    same = [(Account.COMPUTING, stats.useful_s), (Account.IO, stats.seconds[:, Activity.IO])]
    there = stats.seconds.sum(axis=1)
    absent = np.where(stats.is_processor, stats.duration_s - there, 0)
    unmeasured = stats.seconds[:, Activity.UNMEASURED]
    # Threads of Paraver that are not created are absent, and their curve is not measured then.
    names = [region.name for region in store.regions]
    early = float(stats.exclusive_s[names.index("Not created")]) if "Not created" in names else 0.0
    if early:
        assert stats.account_s is not None
        assert stats.account_s[Account.ABSENT] == pytest.approx(absent.sum() + early, abs=stats.unit_s)
        both = stats.accounts[:, [Account.ABSENT, Account.UNMEASURED]].sum(axis=1) * stats.unit_s
        np.testing.assert_allclose(both, absent + unmeasured, atol=1.5 * stats.unit_s)
    else:
        same += [(Account.UNMEASURED, unmeasured), (Account.ABSENT, absent)]
    for account, seconds in same:
        np.testing.assert_allclose(
            stats.accounts[:, account] * stats.unit_s, seconds, atol=1.5 * stats.unit_s
        )


@pytest.mark.parametrize("path", traces(), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_accounts_of_real_traces_add_up(path: Path, tmp_path: Path) -> None:
    try:
        opened = open_trace(unpacked(path, tmp_path), output=tmp_path / "trace.h5")
    except TraceFormatError:  # a damaged one
        assert "damaged" in path.name
        return
    with opened as store:
        rng = np.random.default_rng(3)
        for repaired in (None, False) if any(at.shift or at.drift for at in store.locations) else (None,):
            use = build(store, Rules(repaired=repaired))
            curve = use.curve()
            cuts = np.sort(rng.uniform(curve.start, curve.start + curve.duration, 4))
            cuts = np.unique(np.r_[curve.start, cuts, curve.start + curve.duration])
            kept = Statistics(store)
            whole, *parts = kept.ranges(
                [(curve.start, curve.start + curve.duration), *pairwise(cuts)], use, replay=True
            )
            for stats in (whole, *parts):
                add_up(stats, store)
            if repaired is None:  # the handbook's table is what the program finds
                words = explain(kept, use, cuts[[0, -1]].tolist(), causality=kept.causality(use))
                assert sum(shares(whole)) == pytest.approx(100)
                assert account_row(trace_name(path), whole, words) in TABLE
            assert whole.replayed is not None and whole.accounts is not None
            if all(p.replayed is not None and p.replayed.waiting_s is not None for p in (whole, *parts)):
                total = sum(p.accounts for p in parts if p.accounts is not None)
                np.testing.assert_array_equal(total, whole.accounts)
                # What waiting has always been, but for that in start-up and end.
                waiting = whole.accounts[:, sorted(WAITING)].sum(axis=1) * whole.unit_s
                assert whole.replayed.waiting_s is not None
                assert (waiting <= whole.replayed.waiting_s + 1e-12).all()
                if not whole.accounts[:, Account.STARTUP].any():
                    np.testing.assert_allclose(waiting, whole.replayed.waiting_s, rtol=1e-9, atol=1e-12)


@st.composite
def talk(draw: st.DrawFn, places: int) -> dict[int, list[Row]]:
    one = st.tuples(
        st.integers(0, 40),
        st.sampled_from([MessageKind.SEND, MessageKind.RECV, MessageKind.ISEND, MessageKind.IRECV]),
        st.integers(0, places - 1),
        st.integers(0, 1),
        st.integers(0, 9),
    )
    return {i: sorted(draw(st.lists(one, max_size=8))) for i in range(places)}


@st.composite
def joins(draw: st.DrawFn, places: int) -> dict[int, list[Row]]:
    """Collective operations, of all; those of a location in order of time."""
    count = draw(st.integers(0, 3))
    which = [(draw(st.integers(0, 4)), draw(st.integers(0, places - 1))) for _ in range(count)]
    found: dict[int, list[Row]] = {}
    for i in range(places):
        times = sorted(draw(st.lists(st.integers(0, 40), min_size=2 * count, max_size=2 * count)))
        found[i] = [(times[2 * k], times[2 * k + 1], *which[k]) for k in range(count)]
    return found


@settings(deadline=None, max_examples=20)
@given(st.data())
def test_any_range_of_any_run_adds_up(data: st.DataObject) -> None:
    many = data.draw(
        st.lists(threads(), min_size=1, max_size=4).filter(lambda all_: any(t.last > t.first for t in all_))
    )
    messages, together = data.draw(talk(len(many))), data.draw(joins(len(many)))
    texts = ("Barrier", "Allreduce", "Bcast", "Reduce", "Scan")
    inside = {
        i: sorted(r for r in rows if t.first <= r[0] <= t.last)
        for (i, rows), t in zip(messages.items(), many, strict=True)
    }
    doing = st.frozensets(st.sampled_from([Activity.COMPUTING, Activity.OVERHEAD, Activity.IDLE]), min_size=1)
    override = data.draw(
        st.dictionaries(st.sampled_from(["MPI_Recv", "solve"]), st.sampled_from(list(Activity)), max_size=1)
    )
    rules = Rules(override, data.draw(doing), repaired=True)  # as it is mended below, not as it was kept
    nesting = data.draw(st.sampled_from(["outermost", "strongest"]))
    with stored(many, inside, together, texts, nesting=nesting) as store:
        for location in store.locations:
            if data.draw(st.booleans()):
                location.drift, location.origin = data.draw(st.floats(-0.09, 0.09)), 7
        use = build(store, rules)
        length = int(use.edges[-1])
        cuts = sorted({0, length, *(round(data.draw(st.floats(0, 1)) * length) for _ in range(3))})
        whole, *parts = Statistics(store).ranges([(0, length), *pairwise(cuts)], use, replay=True)
        for stats in (whole, *parts):
            assert stats.accounts is not None and stats.accounts.min() >= 0
            ticks = round(stats.duration_s)
            assert (stats.accounts.sum(axis=1) == np.where(stats.is_processor, ticks, 0)).all()
            np.testing.assert_array_equal(stats.accounts[:, Account.COMPUTING], stats.useful_s)
        # The class of every tick is that of the other replay of the same events.
        for i in range(len(many)):
            begin, end, activity = states(store, i, rules)
            spent = np.bincount(activity, end - begin, len(Activity))
            np.testing.assert_array_equal(whole.seconds[i], spent)


SEND, WAIT, IRECV, PROBE, INIT = (ALLREDUCE + 1 + k for k in range(5))
calling = partial(stored, more=("Send", "Wait", "Irecv", "Probe", "Init"))


def whole(store: TraceStore) -> dict[str, list[int]]:
    """Accounts of the run in ticks, those of any time."""
    (stats,) = Statistics(store).ranges([(0, 100)], replay=True)
    assert stats.accounts is not None
    return {a.name: stats.accounts[:, a].tolist() for a in Account if stats.accounts[:, a].any()}


def send(at: int, to: int, kind: MessageKind = MessageKind.SEND, size: int = 8, request: int = 0) -> Row:
    return at, kind, to, 0, size, request


def receive(at: int, sender: int, kind: MessageKind = MessageKind.RECV, request: int = 0) -> Row:
    return at, kind, sender, 0, 8, request


def test_a_send_that_lasts_until_its_receive_is_posted() -> None:
    """0 sends from 10 to 45, the receive begins at 40 and ends at 50; an eager send is over before."""
    many = [busy_but((10, 45, SEND)), busy_but((40, 50, RECV))]
    with calling(many, {0: [send(10, 1)], 1: [receive(50, 0)]}) as store:
        assert whole(store) == {
            "COMPUTING": [65, 90],
            "LATE_RECEIVER": [30, 0],
            "MOVING": [5, 10],
        }
        waits = Statistics(store).causality().waits
        assert (waits.partner.tolist(), waits.released.tolist()) == ([1], [40])
        assert (waits.until.tolist(), waits.partner_call.tolist(), waits.key.tolist()) == ([40], [1], [0])
    many = [busy_but((10, 15, SEND)), busy_but((40, 50, RECV))]
    with calling(many, {0: [send(10, 1)], 1: [receive(50, 0)]}) as store:
        assert "LATE_RECEIVER" not in whole(store)


@pytest.mark.parametrize(
    ("kind", "region", "late"),
    [
        (MessageKind.SEND, ISEND, False),  # a call that does not block waits for nobody
        (MessageKind.ISEND, SEND, False),
        (MessageKind.SEND, SOLVE, False),  # nor what is no communication
    ],
)
def test_what_cannot_wait_for_a_receive(kind: MessageKind, region: int, late: bool) -> None:
    many = [busy_but((10, 45, region)), busy_but((40, 50, RECV))]
    with calling(many, {0: [send(10, 1, kind)], 1: [receive(50, 0)]}) as store:
        assert ("LATE_RECEIVER" in whole(store)) == late


def test_a_posted_receive_is_not_late_and_a_request_may_wait() -> None:
    """1 posts its receive at 5 and waits for it from 60 on: nobody is late but the sender. Turned round, 0
    waits in MPI_Wait from 20 to 45 for a receive that is posted at 40."""
    post, over = MessageKind.IRECV_POST, MessageKind.IRECV
    many = [busy_but((30, 70, SEND)), busy_but((5, 6, IRECV), (60, 75, WAIT))]
    talk = {0: [send(30, 1)], 1: [(5, post, -1, 0, 0, 7), receive(75, 0, over, 7)]}
    with calling(many, talk) as store:
        assert whole(store) == {"COMPUTING": [60, 84], "MOVING": [40, 16]}
    many = [busy_but((10, 11, ISEND), (20, 45, WAIT)), busy_but((40, 50, RECV))]
    done = MessageKind.ISEND_COMPLETE
    talk = {0: [send(10, 1, MessageKind.ISEND, 8, 3), (45, done, 1, 0, 0, 3)], 1: [receive(50, 0)]}
    with calling(many, talk) as store:
        assert whole(store)["LATE_RECEIVER"] == [20, 0]
    # A second message of that size was sent and over before its receive: the library buffers it.
    many = [
        busy_but((10, 11, ISEND), (20, 45, WAIT), (60, 61, SEND)),
        busy_but((40, 50, RECV), (80, 90, RECV)),
    ]
    talk[0].append(send(60, 1))
    talk[1].append(receive(90, 0))
    with calling(many, talk) as store:
        assert "LATE_RECEIVER" not in whole(store)


def test_asking_for_a_message_waits_for_the_next_one() -> None:
    many = [busy_but((50, 55, ISEND)), busy_but((10, 52, PROBE), (53, 56, RECV))]
    with calling(many, {0: [send(50, 1)], 1: [receive(56, 0)]}) as store:
        assert whole(store)["LATE_SENDER"] == [0, 40]


def test_what_is_received_as_the_next_call_begins_was_received_in_the_former() -> None:
    many = [busy_but((50, 55, ISEND)), busy_but((10, 52, RECV), (52, 60, ALLREDUCE))]
    with calling(many, {0: [send(50, 1)], 1: [receive(52, 0)]}) as store:
        found = whole(store)
        assert (found["LATE_SENDER"], found["UNKNOWN"]) == ([0, 40], [0, 8])


@pytest.mark.parametrize("digests", [True, False])
def test_a_call_within_a_call_is_part_of_it(digests: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where fewer are found than are entered; what is left open ends with its location."""
    inside = [(10, "enter", RECV), (12, "enter", ALLREDUCE), (14, "leave", ALLREDUCE), (20, "leave", RECV)]
    many = [Thread(0, 100, [*inside, (30, "enter", RECV)]), busy_but((40, 50, RECV), (60, 70, ALLREDUCE))]
    with stored(many, digests=digests) as store:
        calls = Statistics(store).causality().calls
        assert calls.start.tolist() == [0, 2, 4]
        assert [(a, b) for a, b, _ in zip(*calls[1:], strict=True)] == [
            (10, 20),
            (30, 100),
            (40, 50),
            (60, 70),
        ]
        assert calls.region.tolist() == [RECV, RECV, RECV, ALLREDUCE]
        monkeypatch.setattr("desktop.data.causality._most_calls", lambda *_: np.array([1, 2]))
        with pytest.raises(StoreError, match="more calls than its summary says"):
            Statistics(store).causality()


def test_waits_name_the_partner_that_came_last() -> None:
    """0, 1, 2 come to a barrier at 10, 40 and 25; a broadcast of 1 follows."""
    many = [busy_but((begin, 45, ALLREDUCE), (50 + i, 70, ALLREDUCE)) for i, begin in enumerate((10, 40, 25))]
    told = {i: [(begin, 45, 0, -1), (50 + i, 70, 1, 1)] for i, begin in enumerate((10, 40, 25))}
    with calling(many, None, told, ("Barrier", "Bcast")) as store:
        found = whole(store)
        assert (found["BARRIER"], found["LATE_ROOT"]) == ([30, 0, 15], [1, 0, 0])
        causality = Statistics(store).causality()
        waits, calls = causality.waits, causality.calls
        assert waits.start.tolist() == [0, 2, 2, 3]
        assert waits.partner.tolist() == [1, 1, 1] and waits.released.tolist() == [40, 51, 40]
        assert calls.begin[waits.partner_call].tolist() == [40, 51, 40]
        assert calls.begin[waits.call].tolist() == [10, 50, 25]


def test_who_is_not_there_is_absent_and_start_up_is_its_own() -> None:
    """1 comes at 20 and ends at 60; 0 starts up until 10, in it is a barrier that nobody waits at."""
    many = [busy_but((0, 10, INIT), (30, 40, RECV)), Thread(20, 60, [(20, "enter", SOLVE)])]
    with calling(many) as store:
        assert whole(store) == {
            "COMPUTING": [80, 40],
            "UNKNOWN": [10, 0],  # no message and no collective operation is matched
            "STARTUP": [10, 0],
            "ABSENT": [0, 60],
        }


def test_where_clocks_say_nothing_communication_is_not_told_apart() -> None:
    many = [busy_but((50, 55, ISEND)), busy_but((30, 60, RECV))]
    with calling(many, {0: [send(50, 1)], 1: [receive(60, 0)]}) as store:
        clock = store.clock
        clock.checked, clock.violations_before, clock.violations_after = 9, 1, 1
        clock.details = {"most_before_s": 20.0, "most_repaired_s": 20.0, "repaired": 1}
        assert whole(store) == {"COMPUTING": [95, 70], "UNKNOWN": [5, 30]}


def test_every_account_and_class_has_a_name() -> None:
    assert [one.name.lower() for one in Account] == list(ACCOUNTS)
    assert all(ACTIVITY_OF_CLASS[number] == doing for number, (doing, _) in CLASSES.items())


@pytest.mark.parametrize(
    ("region", "activity", "account"),
    [
        (Region("MPI_Init_thread", "function", "mpi"), Activity.IDLE, Account.STARTUP),
        (Region("MPI_Cart_create", "coll_other", "mpi"), Activity.IDLE, Account.MOVING),
        (Region("MPI_Cart_coords", "function", "mpi"), Activity.OVERHEAD, Account.OVERHEAD),
        (Region("MPI_Send_init", "function", "mpi"), Activity.OVERHEAD, Account.OVERHEAD),
        (Region("MPI_Wait", "function", "mpi"), Activity.IDLE, Account.MOVING),
        (Region("MPI_Wait", "function", "mpi"), Activity.IO, Account.IO),
        (Region("!$omp critical @a.c:3", "critical", "openmp"), Activity.IDLE, Account.LOCK),
        (
            Region("!$omp implicit barrier @a.c:3", "implicit_barrier", "openmp"),
            Activity.IDLE,
            Account.THREADS,
        ),
        (Region("pthread_join", "", "pthread"), Activity.IDLE, Account.THREADS),
        (Region("cudaDeviceSynchronize", "function", "cuda"), Activity.IDLE, Account.ACCELERATOR),
        (Region("cudaMemcpy", "function", "cuda"), Activity.OVERHEAD, Account.OVERHEAD),
        (Region("idle", "", "picl"), Activity.COMPUTING, Account.COMPUTING),
    ],
)
def test_what_regions_are_spent_on(region: Region, activity: Activity, account: Account) -> None:
    assert CLASSES[account_class(region, activity)] == (int(activity), account)

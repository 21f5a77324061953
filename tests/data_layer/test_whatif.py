"""What a run would last if something were different: identity, Dimemas' figures, changes of known effect."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest

from desktop import cli
from desktop.core import machine
from desktop.core.changes import COLLECTIVES, MESSAGES, Changes
from desktop.core.machine import IDEAL, Machine
from desktop.core.open_regions import BEGIN, END
from desktop.core.units import quantity
from desktop.data import causality
from desktop.data.helping import helps, largest_regions
from desktop.data.opening import open_trace
from desktop.data.statistics import Statistics
from desktop.data.store import TraceStore
from desktop.data.utilization import Utilization, build
from desktop.data.whatif import Rerun
from desktop.errors import DesktopError, StoreError
from tests.data_layer.test_statistics import ALLREDUCE, ISEND, RECV, SOLVE, busy_but, receive, send, stored
from tests.oracles.utilization import Thread

pytestmark = pytest.mark.usefixtures("own_cache")

DATA = Path(__file__).parents[1] / "data"
FACTS = json.loads((DATA / "dimemas.json").read_text())
TRACES = {path.name: path for path in DATA.glob("*/*")}
#: Bundled traces beside those of Dimemas.
OTHERS = (
    "ezt_farm_8_dilated.tar.gz",
    "public_scorep_ember_4.tar.gz",
    "public_scorep_pingpong_2.tar.gz",
    "psort_8_short_ascii_1stream_collbeginend.tar.xz",
    "v1-fft16-upshot.trf",
    "v1-heat6-midsync.trf",
)
#: In Dimemas all members wait for all in every collective operation; this run gathers and reduces to a root
#: that the others, as they do in MPI, leave behind.
ROOTED = "ezt_psort_8_dilated.tar.gz"


def _opened(name: str) -> tuple[TraceStore, Utilization]:
    store = open_trace(TRACES[name])
    return store, build(store)


def _rerun(
    store: TraceStore, breaks: tuple[float, ...] = (), limit: tuple[float, float] | None = None
) -> Rerun:
    return Rerun(store, build(store), breakpoints=breaks, limit=limit)


@pytest.mark.parametrize("name", [*FACTS, *OTHERS])
def test_without_changes_the_run_is_as_recorded(name: str) -> None:
    store, use = _opened(name)
    with store:
        curve = use.curve()
        quarters = [curve.start + curve.duration * k / 4 for k in (1, 2, 3)]
        program = Rerun(store, use, breakpoints=quarters)
        found = program.predict()
        assert found.duration_s == pytest.approx(program.recorded_s, rel=1e-12)
        assert program.recorded_s == pytest.approx(curve.duration, rel=1e-12)
        inner = (program.breakpoints - use.start) * use.unit
        np.testing.assert_allclose(found.breaks_s, inner, atol=1e-9 * curve.duration)
        drawn = found.curve
        assert drawn is not None and drawn.capacity == curve.capacity
        assert drawn.duration == pytest.approx(curve.duration, rel=1e-12)
        assert drawn.integral == pytest.approx(curve.integral, rel=1e-5)
        # Nothing is moved but to the next tick.
        at = np.linspace(curve.start, curve.start + curve.duration, 4001)[:-1]
        assert (drawn.at(at) != curve.at(at)).mean() < 0.01


@pytest.mark.parametrize("name", FACTS)
def test_as_dimemas_simulates_it(name: str) -> None:
    """On 10 runs. In rooted operations all members wait for all there; that rule in place of ours gives its
    figures. Above the eager limit its blocking senders do not wait while their messages are carried."""
    store, use = _opened(name)
    with store:
        program, facts = Rerun(store, use), FACTS[name]
        on = Machine(1e-5, 100 * 2.0**20)
        if name == ROOTED:
            found = [program.predict(Changes(network=one)).duration_s for one in (IDEAL, on)]
            assert found[0] < facts["ideal"] and found[1] < facts["network"]
            assert _left_early(program) == 12  # as recorded: members had left before the last one came
            kind = program._ops.kind
            kind[(kind == machine.ONE_TO_ALL) | (kind == machine.ALL_TO_ONE)] = machine.N_TO_N
        for what, one in (("ideal", IDEAL), ("network", on)):
            found = program.predict(Changes(network=one)).duration_s
            assert found == pytest.approx(facts[what], rel=0.003 if name == ROOTED else 0.001)
        messages = program.causality.messages
        carried = np.bincount(messages.sender, messages.bytes / on.bandwidth, len(store.locations)).max()
        found = program.predict(Changes(network=Machine(1e-5, 100 * 2.0**20, 0))).duration_s
        least, most = 0.9995 * facts["rendezvous"], facts["rendezvous"] + carried
        assert least <= found <= 1.003 * most
        assert found == pytest.approx(facts["rendezvous"], rel=0.025 if "stencil" in name else 0.003)


def _left_early(program: Rerun) -> int:
    """Gathers and reductions that somebody left before the last member came."""
    operations, calls = program.causality.operations, program.causality.calls
    rows = np.flatnonzero((operations.kind == machine.ALL_TO_ONE) & (operations.call >= 0))
    left, came = {}, {}
    for row in rows.tolist():
        key = int(operations.key[row])
        left[key] = min(left.get(key, END), int(calls.end[operations.call[row]]))
        came[key] = max(came.get(key, BEGIN), int(operations.time[row]))
    return sum(left[key] < came[key] for key in left)


def test_the_ideal_network_of_the_statistics_is_that_of_a_machine() -> None:
    """Where nothing but computing and communication is recorded."""
    store, use = _opened("v1-lu8-compact.trf")
    with store:
        curve = use.curve()
        (whole,) = Statistics(store).ranges([(curve.start, curve.start + curve.duration)], use, replay=True)
        found = Rerun(store, use).predict(Changes(network=IDEAL))
        assert whole.replayed is not None
        assert whole.replayed.ideal_s == pytest.approx(found.duration_s, rel=1e-12)


# ---------------------------------------------------------------- changes of known effect


def _late_sender():
    """0 computes 50 and sends; 1 waits for that from 10 on, ends its call at 60, computes 40."""
    many = [busy_but((50, 55, ISEND)), busy_but((10, 60, RECV))]
    return stored(many, {0: [send(50, 1)], 1: [receive(60, 0)]})


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        (Changes(), 100),
        (Changes(phases=((0, 2.0),)), 75),  # 0 sends after 25; 1 gets it 10 later, and has 40 more
        (Changes(network=IDEAL), 95),  # sent at 50, and 0 computes 45 more
        (Changes(network=Machine(2.0, 4.0)), 97),  # sent at 52; 2 under way, to 54 and 94
        (Changes(slower=((0, 0, 2.0),)), 195),  # 0: 50, 5 in the call, 45, twice as long
        (Changes(slower=((1, 1, 2.0),)), 140),  # 1: waits until 60, then 80
        (Changes(no_wait=(MESSAGES,)), 100),  # 0 goes on as it did
        (Changes(balanced=(0,)), 100),
    ],
)
def test_a_late_sender(changes: Changes, want: float) -> None:
    with _late_sender() as store:
        found = _rerun(store, (55.0,)).predict(changes)
        if not changes.balanced:
            assert found.duration_s == want
        assert found.curve is not None and found.curve.duration == pytest.approx(found.duration_s)
        assert found.saved_s == 100 - found.duration_s


def test_regions_are_changed_without_those_inside() -> None:
    events = [(10, "enter", SOLVE), (30, "enter", ALLREDUCE), (40, "leave", ALLREDUCE), (60, "leave", SOLVE)]
    events += [(60, "enter", SOLVE), (70, "leave", SOLVE)]
    threads = [Thread(0, 100, events), busy_but((30, 40, ALLREDUCE))]
    told = {i: [(30, 40, 0, -1)] for i in range(2)}
    with stored(threads, None, told, ("Allreduce",)) as store:
        program = _rerun(store)
        assert program.predict(Changes(regions=(("solve", 0.5),))).ends_s[0] == 150  # all 50 once more
        assert program.calls_of("solve") == 2
        assert program.predict(Changes(regions=(("solve", 2.0),))).ends_s.tolist() == [
            85,
            100,
        ]  # it waits at 20
        # Both wait for the one that is later: 7 longer before the operation, 7 more after it.
        assert program.predict(Changes(longer=(("solve", 7.0),))).ends_s.tolist() == [114, 107]
        assert program.collectives == ("Allreduce",)
        with pytest.raises(ValueError, match="no region 'melt'"):
            program.predict(Changes(regions=(("melt", 2.0),)))


@pytest.mark.parametrize("operation", ["Allreduce", "Bcast", "Reduce", "Scan"])
def test_balance_and_no_waiting(operation: str) -> None:
    """Three come at 10, 40 and 25 and leave at 45: balanced at 25, and 5 later."""
    many = [busy_but((begin, 45, ALLREDUCE)) for begin in (10, 40, 25)]
    told = {i: [(begin, 45, 0, 1)] for i, begin in enumerate((10, 40, 25))}
    with stored(many, None, told, (operation,)) as store:
        program = _rerun(store, (45.0,))
        assert program.computing_s()[:, 0].tolist() == [10, 40, 25]
        even = program.predict(Changes(balanced=(0,)))
        assert program.predict(Changes(network=IDEAL)).duration_s == 95
        if operation == "Allreduce":
            assert even.ends_s.tolist() == [85, 85, 85]
            free = program.predict(Changes(no_wait=(COLLECTIVES,)))
            assert free.ends_s.tolist() == [70, 100, 85]
            assert program.predict(Changes(no_wait=("Allreduce",))).ends_s.tolist() == [70, 100, 85]
            first, *_ = helps(program)
            assert (first.title, first.saved_s) == ("Balance phase 1", 15.0)
            assert first.assumption
            best = program.predict(first.changes)
            assert best.breaks_s == pytest.approx([30.0])
            assert best.curve is not None and best.curve.at([24.0, 27.0, 31.0]).tolist() == [3, 0, 3]


def test_who_waits_in_one_call_for_all_of_a_phase_takes_part_in_its_balance() -> None:
    """Only the last one computed in the phase, so nothing was balanced, and the largest gain was missed."""
    many = [busy_but((begin, 80, ALLREDUCE)) for begin in (20, 20, 80)]
    told = {i: [(begin, 80, 0, 1)] for i, begin in enumerate((20, 20, 80))}
    with stored(many, None, told, ("Allreduce",)) as store:
        program = _rerun(store, (30.0, 60.0))
        assert program.computing_s()[:, 1].tolist() == [0, 0, 30]
        even = program.predict(Changes(balanced=(1,)))
        assert even.saved_s == pytest.approx(20), "each computes 10 of the 30, before the operation"
        assert even.curve is not None
        assert even.curve.mean * even.duration_s == pytest.approx(20 + 20 + 80 + 3 * 20), "nothing is lost"
        first, *_ = helps(program)
        assert (first.title, first.saved_s) == ("Balance phase 2", pytest.approx(20))


def test_it_is_small_and_says_when_a_trace_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 10,000,000 messages what is kept is 4 GB: a message is two operations, two calls, two stretches."""
    n = 400
    sends = [(10 * k, 10 * k + 3, ISEND) for k in range(1, n)]
    receives = [(10 * k + 4, 10 * k + 8, RECV) for k in range(1, n)]
    told = {0: [send(10 * k, 1) for k in range(1, n)], 1: [receive(10 * k + 8, 0) for k in range(1, n)]}
    with stored([busy_but(*sends, last=10 * n + 10), busy_but(*receives, last=10 * n + 10)], told) as store:
        program = _rerun(store, (100.0,))
        found = program.predict(times=False)
        assert found.duration_s == program.recorded_s and found.curve is None and not found.breaks_s.size
        messages = program.causality.messages.sent.size
        assert messages == n - 1 and program.operations < 2 * n + 4
        assert program.size < 210 * messages and program.causality.size < 220 * messages
        with monkeypatch.context() as patch, pytest.raises(DesktopError, match=r"takes 0\.0 GiB .* are free"):
            patch.setattr("desktop.data.memory.available", lambda: 1000)
            _rerun(store)
        monkeypatch.setattr(causality, "MOST", n)
        with pytest.raises(StoreError, match=f"of {n} calls and operations at most"):
            _rerun(store)


def test_a_part_is_replayed_as_it_was() -> None:
    with _late_sender() as store:
        program = _rerun(store, limit=(20.0, 80.0))
        found = program.predict()
        assert (program.start_s, found.duration_s) == (20.0, 60.0)
        assert found.curve is not None and found.curve.start == 20.0
        assert program.predict(Changes(phases=((0, 2.0),))).duration_s == 30 / 2 + 10 + 20 / 2


FASTER = Changes(slower=((1, 1, 0.5),))  # rank 1


@pytest.mark.parametrize(
    ("limit", "want"),
    [
        ((20.0, 100.0), 10 + 5 + 55),  # 0 has been in it since 10, and waits for 1, until 30
        ((0.0, 30.0), 25),  # 0 and 2 wait in it at the end, 1 was still coming
        ((20.0, 30.0), 5),  # 0 is in it for the whole part, 1 computes, 2 comes at 25
        ((42.0, 100.0), 3 + 55),  # all are in it
    ],
)
def test_a_part_that_begins_or_ends_in_a_collective_operation(
    limit: tuple[float, float], want: float
) -> None:
    """Who was in it waited there as recorded, for whom has become faster, too; who waited in it at the end
    counted until the operation was over, beyond the part."""
    many = [busy_but((begin, 45, ALLREDUCE)) for begin in (10, 40, 25)]
    told = {i: [(begin, 45, 0, 1)] for i, begin in enumerate((10, 40, 25))}
    with stored(many, None, told, ("Allreduce",)) as store:
        program = _rerun(store, limit=limit)
        assert program.predict().duration_s == limit[1] - limit[0] == program.recorded_s
        assert program.predict(FASTER).duration_s == want
        ideal = program.predict(Changes(network=IDEAL)).duration_s
        assert ideal == {20.0: 75, 0.0: 30, 42.0: 55}[limit[0]] if limit != (20.0, 30.0) else ideal == 10


def test_a_part_that_ends_in_a_receive() -> None:
    with _late_sender() as store:  # 0 would send at 50
        program = _rerun(store, limit=(0.0, 30.0))
        assert program.predict().ends_s.tolist() == [30, 30]
        assert program.predict(Changes(slower=((0, 0, 0.5),))).ends_s.tolist() == [15, 15]
        assert program.predict(Changes(network=Machine(0.0, 1.0))).duration_s == 30, "nothing has arrived yet"
        assert _rerun(store, limit=(0.0, 53.0)).predict().ends_s.tolist() == [53, 53]  # it is under way


@pytest.mark.parametrize("name", ["ezt_psort_8_dilated.tar.gz", *OTHERS])
def test_any_part_is_replayed_as_it_was(name: str) -> None:
    rng = np.random.default_rng(11)
    store, use = _opened(name)
    with store:
        start, end = use.curve().span
        replayed = 0
        for low, high in np.sort(rng.uniform(start, end, (25, 2)), axis=1).tolist():
            program = Rerun(store, use, limit=(low, high))
            found = program.predict()
            if found.note:
                continue
            replayed += 1
            assert found.duration_s == pytest.approx(program.recorded_s, abs=1.5 * use.unit)
            assert found.ends_s[program.is_processor].max() == pytest.approx(found.duration_s)
            part, curve = (
                use.curve().window(program.start_s, program.start_s + program.recorded_s),
                found.curve,
            )
            if curve is not None:
                work = part.mean * part.duration
                assert curve.mean * curve.duration == pytest.approx(work, rel=1e-6, abs=1e-9)
            assert not program.predict(Changes(network=IDEAL)).note, "it comes to a halt"
        assert replayed >= 2


@pytest.mark.parametrize(
    ("notes", "says"),
    [
        ({"threads": 3, "cores": 2, "switches": 0}, "3 threads shared 2 cores. "),
        ({"threads": 3, "cores": 1, "switches": 7000}, "3 threads shared 1 core and a thread lost its core"),
        (
            {"threads": 3, "cores": 4, "switches": 7000},
            "recorded, a thread lost its core to another 7 000 times",
        ),
        ({"threads": 3, "cores": 4, "switches": 5000}, ""),  # 300 s: as on any machine
        ({}, ""),
    ],
)
def test_where_ranks_shared_cores_a_range_is_predicted(notes: dict[str, int], says: str) -> None:
    """0 and 2 wait until 40, and go on 15 later than 1, who came last; slower, 0 would come last."""
    many = [busy_but((begin, over, ALLREDUCE)) for begin, over in ((10, 60), (40, 45), (25, 60))]
    told = {i: [(begin, over, 0, 1)] for i, (begin, over) in enumerate(((10, 60), (40, 45), (25, 60)))}
    with stored(many, None, told, ("Allreduce",)) as store:
        store.notes.update(notes)
        program = _rerun(store)
        found = program.predict(Changes(slower=((0, 0, 5.0),)))
        assert found.duration_s == 50 + 20 + 200
        assert says in found.crowded and bool(says) == bool(found.crowded)
        if says:
            assert found.low_s == 50 + 5 + 200
            assert found.duration_words == f"{quantity(255, 's')} to {quantity(270, 's')}"
        else:
            assert math.isnan(found.low_s) and found.duration_words == quantity(270, "s")
        assert math.isnan(program.predict().low_s)
        assert math.isnan(program.predict(Changes(network=IDEAL)).low_s), "calls take no time there"


def test_why_there_is_no_prediction() -> None:
    with stored([busy_but(), busy_but()]) as store:
        found = _rerun(store).predict()
        assert math.isnan(found.duration_s) and "who waits for whom" in found.note and found.curve is None
        assert helps(_rerun(store)) == ()
    with stored([busy_but((50, 55, ISEND)), busy_but()], {0: [send(50, 1)]}) as store:
        assert "not known to be received" in _rerun(store).predict().note
    many = [busy_but((10, 20, RECV), (30, 40, ISEND))] * 2
    talk = {i: [receive(20, 1 - i), send(30, 1 - i)] for i in range(2)}
    with stored(many, talk) as store:
        assert "halt" in _rerun(store).predict().note


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (Changes(phases=((1, 2.0),)), "no phase 2"),
        (Changes(slower=((2, 3, 2.0),)), "no rank from 2 to 3"),
        (Changes(no_wait=("Gather",)), "no collective operation 'Gather'"),
    ],
)
def test_what_is_not_there_is_said(changes: Changes, says: str) -> None:
    with _late_sender() as store, pytest.raises(ValueError, match=says):
        _rerun(store).predict(changes)
    with pytest.raises(ValueError, match="must be above 0"):
        Changes(regions=(("solve", 0.0),))


def test_the_network_is_estimated_from_messages_that_were_waited_for() -> None:
    """Forty messages, of 1000 and of 9000 bytes in turn, under way for 3 + bytes / 1000."""
    calls: list[list[tuple[int, int, int]]] = [[], []]
    talk: dict[int, list[tuple[int, ...]]] = {0: [], 1: []}
    for k in range(40):
        size, at = (1000, 9000)[k % 2], 100 * (k + 1)
        took = 3 + size // 1000
        calls[0].append((at, at + 1, ISEND))
        calls[1].append((at - 50, at + took, RECV))
        talk[0].append(send(at, 1, size=size))
        talk[1].append((*receive(at + took, 0)[:4], size))
    with stored([busy_but(*one, last=5000) for one in calls], talk) as store:
        program = _rerun(store)
        known = program.estimate
        assert known is not None and known.messages == 40
        assert known.latency_s == pytest.approx(3) and known.bandwidth == pytest.approx(1000)
    with _late_sender() as store:
        assert _rerun(store).estimate is None


# ---------------------------------------------------------------- the command


def _said(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = cli.run(["whatif", *map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_command_says_it_in_three_forms(capsys: pytest.CaptureFixture[str]) -> None:
    name = TRACES["ezt_cholesky_bcast_8_dilated.tar.gz"]
    words = (name, "--latency", 1e-5, "--bandwidth", 1e8, "--speed", "Working=2", "--balance", 2, "-n", 3)
    code, out, err = _said(capsys, *words, "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert told["predicted_s"] < told["recorded_s"] and told["ideal_s"] < told["recorded_s"]
    assert told["changes"].startswith(
        "latency 10.00 µs, bandwidth 100.0 MB/s; Working 2 times faster; phase 2"
    )
    assert [row["phase"] for row in told["phases"]] == [1, 2, 3]
    assert sum(row["predicted_s"] for row in told["phases"]) == pytest.approx(told["predicted_s"])
    ranked = [(one["bound"], -one["saved_s"]) for one in told["would_help"]]
    assert ranked == sorted(ranked) and ranked[0][0] is False and ranked[-1][0] is True
    assert told["would_help"][0]["change"] == "Working twice as fast"

    rows = list(csv.DictReader(io.StringIO(_said(capsys, *words, "--csv")[1])))
    assert [float(row["predicted_s"]) for row in rows] == [row["predicted_s"] for row in told["phases"]]
    text = _said(capsys, *words)[1]
    assert f"{quantity(told['predicted_s'], 's')} instead of {quantity(told['recorded_s'], 's')}" in text
    remedies, bounds = text.split("what would help most")[1].split("bounds, which no change can reach")
    assert "Working twice as fast" in remedies and "No waiting" in bounds
    assert "No waiting" not in remedies and "twice" not in bounds


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--speed", "Working"), "'Working' should read REGION=X"),
        (("--slow", "a=2"), "'a' should be a rank or a range of ranks"),
        (("--phase", "0=2"), "'0' is no number of a phase"),
        (("--bandwidth", "0"), "bandwidth of 0"),
        (("--region", "nothing=2"), "no region 'nothing'"),
    ],
)
def test_wrong_words_are_one_sentence(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    code, out, err = _said(capsys, TRACES["ezt_cholesky_bcast_8_dilated.tar.gz"], "-n", 2, *words)
    assert code == 1 and out == "" and says in err and err.count("\n") == 1


def test_regions_that_compute_most_are_tried(capsys: pytest.CaptureFixture[str]) -> None:
    store, use = _opened("ezt_cholesky_bcast_8_dilated.tar.gz")
    with store:
        curve = use.curve()
        assert largest_regions(Statistics(store), use, (curve.start, curve.start + curve.duration)) == (
            "Working",
        )


def test_what_would_help_is_explained_too(capsys: pytest.CaptureFixture[str]) -> None:
    name = TRACES["ezt_cholesky_bcast_8_dilated.tar.gz"]
    assert cli.run(["explain", str(name), "-n", "3", "--json"]) == 0
    explained = json.loads(capsys.readouterr().out)
    told = json.loads(_said(capsys, name, "-n", 3, "--json")[1])
    assert explained["would_help"] == told["would_help"]
    assert [row["name"] for row in told["phases"]] == [phase["name"] for phase in explained["phases"]]
    assert all(row["name"] for row in told["phases"])


def test_a_curve_has_no_prediction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its one location has no events, which are no events of length 0."""
    (tmp_path / "curve.csv").write_text("0 1\n1 4\n2 2\n3 0\n")
    assert cli.run(["whatif", str(tmp_path / "curve.csv"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["note"].startswith("The source is a curve") and told["predicted_s"] is None
    assert told["would_help"] == []


def test_without_a_change_there_is_nothing_to_compare(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["whatif", str(TRACES["public_scorep_pingpong_2.tar.gz"]), "-n", "1"]) == 0
    head = capsys.readouterr().out.splitlines()[0]
    assert head.startswith("as recorded: ") and "instead" not in head

"""Programs whose cause is known are explained by it, and every lost processor-second is charged once."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from desktop.core.accounts import Account
from desktop.core.charges import SENDER, TOGETHER
from desktop.core.explanation import Explanation, explanation, phase_sentence, worth_telling
from desktop.core.root_causes import KINDS, STRENGTH, Cause, Charges, Group, Naming, causes
from desktop.core.wait_tree import COLUMNS, FAMILIES
from desktop.data.opening import open_trace
from desktop.data.root_causes import charges, explain, naming
from desktop.data.statistics import Statistics
from desktop.data.store import TraceStore
from desktop.data.utilization import build
from desktop.resources import samples
from tests.data_layer.otf2_writer import Event, Place, write
from tests.explained import DOCS, cause_row, of_program
from tests.programs.causes.known import DATA, DOUBLE, SINGLE, Known, held_back

SMALL = [sample.path for sample in samples()]


def told(store: TraceStore, parts: int = 1):  # type: ignore[no-untyped-def]  # an Explanation
    use = build(store)
    curve = use.curve()
    breaks = np.linspace(curve.start, curve.start + curve.duration, parts + 1).tolist()
    return explain(Statistics(store), use, breaks, [f"part {k}" for k in range(parts)])


def check(one: Known) -> None:
    """The program, and its like that was held back until the rules were fixed; as the handbook says."""
    both = [checked(one, name) for name in (one.name, f"held_back_{one.name}")]
    assert cause_row(*of_program(one), *both) in DOCS.read_text(encoding="utf-8")


def checked(one: Known, name: str) -> Explanation:
    with open_trace(DATA / f"{name}.tar.xz") as store:
        found = told(store)
        names = [region.name for region in store.regions]
    if name != one.name:
        one = next(other for other in held_back() if other.name == one.name)
    assert len(found.causes) >= len(one.causes)
    for (kind, region, rank), cause in zip(one.causes, found.causes, strict=False):
        assert cause.key == kind, found.paragraph
        if region in names:
            assert cause.region == region, found.paragraph
        if rank >= 0:
            assert cause.locations[0] == rank, found.paragraph
    title = found.causes[0].sentence
    assert found.paragraph.startswith(title)
    return found


@pytest.mark.parametrize("one", SINGLE, ids=lambda one: one.name)
def test_the_first_sentence_names_the_cause(one: Known) -> None:
    check(one)


@pytest.mark.parametrize("one", DOUBLE, ids=lambda one: one.name)
def test_both_causes_come_first(one: Known) -> None:
    check(one)


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_every_lost_second_is_charged_once(path: Path) -> None:
    with open_trace(path) as store:
        kept, use = Statistics(store), build(store)
        curve = use.curve()
        cuts = curve.start + curve.duration * np.array([0, 0.11, 0.3, 0.62, 1])
        spans = [(cuts[0], cuts[-1]), (cuts[1], cuts[3]), *pairwise(cuts)]
        ranges = kept.ranges(spans, use, replay=True)
        found = charges(store, kept.causality(use), use, ranges)
        for stats, of in zip(ranges, found, strict=True):
            computing = of.account == Account.COMPUTING
            assert of.own_s[computing].sum() == pytest.approx(of.computing * of.duration_s, abs=1e-9)
            lost = of.own_s[~computing].sum() + of.below_s.sum()
            assert lost == pytest.approx(of.lost_s, abs=1e-9)
            assert sum(cause.lost_s for cause in causes(of)) == pytest.approx(of.lost_s, abs=1e-9)
            if stats.replayed is not None and stats.replayed.waiting_s is not None:
                assert of.below_s.sum() <= stats.replayed.waiting_s.sum() + 1e-9
        parts = [sum(one.own_s.sum() + one.below_s.sum() for one in found[k:]) for k in (2,)]
        assert parts[0] == pytest.approx(found[0].own_s.sum() + found[0].below_s.sum(), abs=1e-9)


def test_phases_of_the_model_case() -> None:
    """The forward solve is a chain of messages up the ranks, the backward solve one down."""
    path = next(path for path in SMALL if "cholesky" in str(path))
    with open_trace(path) as store:
        use = build(store)
        found = explain(
            Statistics(store), use, [0.0, 0.542, 0.858, use.curve().duration], ["", "forward", "back"]
        )
    assert found.phases[1].causes[0].key == found.phases[2].causes[0].key == "serial"
    assert "from rank 0 to rank 15" in found.phases[1].sentence
    assert "from rank 15 to rank 0" in found.phases[2].sentence
    assert found.phases[1].sentence.startswith("Phase 2, forward, ")
    assert "computing is balanced" in found.phases[1].sentence
    assert "serialisation efficiency" in found.phases[1].sentence
    assert found.causes[0].phase in (1, 2) and round(found.causes[0].start_s, 6) in (0.542, 0.858)


def test_a_master_that_waits_is_told_from_workers_that_differ() -> None:
    with open_trace(Path(__file__).parents[1] / "data" / "otf2" / "mpt_farm_6_dilated.tar.gz") as store:
        first = told(store).causes[0]
    assert first.key == "idle master" and first.sentence.startswith("Rank 0 only serves the others")
    assert first.about == 0 and 0 not in first.locations, "a link shows the master, not who is charged"


def test_workers_that_wait_for_something_else_do_not_hide_that_a_master_waits() -> None:
    """All seven workers wait for rank 0 to start; for that, their work was said to be imbalanced."""
    with open_trace(Path(__file__).parents[1] / "data" / "otf2" / "ezt_farm_8_dilated.tar.gz") as store:
        first, *rest = told(store).causes
    assert first.sentence.startswith(
        "Rank 0 begins 24 ms after the first one, and the others wait for it in MPI_Recv ("
    )
    work = next(one for one in rest if one.key in ("idle master", "imbalance"))
    assert (work.key, work.strength) == ("idle master", "strong")
    assert work.sentence.startswith("Rank 0 only serves the others") and 0.09 < work.part < 0.12


def test_clocks_that_contradict_each_other_are_the_reason_why_nobody_is_named() -> None:
    data = Path(__file__).parents[1] / "data"
    for name, says in (
        ("picl/v1-farm4-flush.trf", "the clocks contradict each other too much to say who"),
        ("otf2/ezt_wave1d_4.tar.gz", "the trace does not separate waiting from moving data"),
    ):
        with open_trace(data / name) as store:
            untold = next(one for one in told(store).causes if one.key == "communication")
        assert untold.sentence.startswith(f"Communication takes the time, and {says}")
        assert untold.strength == "weak"


def test_sentences_agree_with_their_numbers() -> None:
    """One is not many, two ranks have no "others", and what no network takes is not called its latency."""
    folder = Path(__file__).parents[1] / "data"
    said = []
    for name in ("otf2/ezt_psort_8_dilated.tar.gz", "otf2/public_scorep_pingpong_2.tar.gz",
                 "otf2/mpt_farm_6_dilated.tar.gz", "otf2/ezt_openmp_4.tar.gz",
                 "picl/v2-ncptl-pipeline6.trf"):  # fmt: skip
        with open_trace(folder / name) as store:
            found = told(store, 30)
        said += [cause.sentence for one in (found, *found.phases) for cause in one.causes]
    for sentence in said:
        assert not re.search(r"[ :]1 (calls|messages)|many|1 (call|message) .*on average", sentence), sentence
        if "far more than" in sentence or "far less than" in sentence:
            assert "take long although no process is late" in sentence, sentence
    slow = [sentence for sentence in said if " main(" in sentence and " times as long as rank " in sentence]
    assert slow and all(re.search(r"as rank ([01]) in .*, and rank \1 waits for it", one) for one in slow)
    assert any("Collective operations take long" in sentence for sentence in said)
    assert any(sentence.startswith("Latency of small messages: 3") for sentence in said)
    assert any("have not begun or have nothing to do" in sentence for sentence in said)


def test_names_of_strangers_are_short_and_harmless_in_sentences(tmp_path: Path) -> None:
    name = "\x1b[31m\u202e" + "std::vector<" * 500
    places = [
        Place(rank, [Event(0, "Enter", (0,)), Event(1 + rank, "Leave", (0,)),
                     Event(5, "Enter", (1,)), Event(9, "Leave", (1,))])
        for rank in range(2)
    ]  # fmt: skip
    with open_trace(write(tmp_path / "trace", places, regions={0: "main", 1: name})) as store:
        words = naming(store, {"main": "\u202e" + name})
    for place in range(2):
        said = words.region(place)
        assert len(said) <= 80 and "\x1b" not in said and "\u202e" not in said


def test_a_curve_has_no_causes(tmp_path: Path) -> None:
    (tmp_path / "curve.csv").write_text("0 1\n1 2\n2 0\n")
    with open_trace(tmp_path / "curve.csv") as store:
        assert told(store).causes == ()


def test_the_table_of_kinds_is_whole() -> None:
    keys = [kind.key for kind in KINDS]
    assert len(set(keys)) == len(keys)
    assert {kind for one in SINGLE + DOUBLE for kind, _, _ in one.causes} <= set(keys)
    assert list(STRENGTH) == ["strong", "fair", "weak"]
    assert [one.name for one in held_back()] == [one.name for one in SINGLE + DOUBLE]


def lost(*rows: tuple[int, Account, float], processors: float = 4.0) -> Charges:
    """What locations lose themselves in a second, in one region; nobody waits."""
    location, account, own = zip(*rows, strict=True)
    count = len(rows)
    return Charges(
        start_s=0.0, end_s=1.0, location=np.array(location), region=np.zeros(count, np.int64),
        account=np.array(account, np.int64), own_s=np.array(own), below_s=np.zeros((count, COLUMNS)),
        seen=np.zeros(count, np.int64), waiting_s=np.zeros((4, len(FAMILIES))),
        calls=np.full(len(FAMILIES), -1), collective=np.zeros(1, bool), is_processor=np.ones(4, bool),
        processors=processors, computing=processors - sum(own),
    )  # fmt: skip


def test_who_holds_two_fifths_is_named_and_what_is_below_a_twentieth_is_not_told() -> None:
    io, threads = Account.IO, Account.THREADS
    (first, small) = causes(lost((0, io, 0.5), (1, io, 0.3), (2, io, 0.2), (3, threads, 0.04)))
    assert first.named and first.locations[0] == 0 and first.lost_s == pytest.approx(1.0)
    assert worth_telling([first, small]) == [first]
    assert first.locations == (0, 1, 2)
    (few,) = causes(lost((0, io, 0.5), (1, io, 0.2), (2, io, 0.09)))
    assert few.locations == (0, 1), "who holds less than a fifth of what the first does is not charged"
    (first, larger) = causes(lost((0, io, 0.36), (1, io, 0.34), (2, io, 0.3), (3, threads, 0.06)))
    assert not first.named and worth_telling([first, larger]) == [first, larger]


def test_who_is_waited_for_while_its_accelerator_works_is_named() -> None:
    """Own waiting is equal; that of the others for one host stands in none of its times."""
    words = Naming(lambda i: f"rank {i}", lambda _: "hipStreamSynchronize", (0, 1, 2, 3))
    of = lost(*((i, Account.ACCELERATOR, 0.5) for i in range(4)))
    (alike,) = causes(of)
    assert alike.kind.says(alike, words) == "Waiting for accelerators (hipStreamSynchronize): all 4 ranks"
    of.below_s[3, 2 * TOGETHER] = 0.5
    (slow,) = causes(of)
    assert slow.lost_s == pytest.approx(2.5) and slow.locations[0] == 3
    assert slow.kind.says(slow, words).endswith("all 4 ranks; in 20 % of it others wait for rank 3")


def test_what_was_sent_before_a_phase_and_arrives_in_it_counts_there() -> None:
    """10 of 16 messages of an exchange were counted, and each was said to take longer than it did."""
    with open_trace(Path(__file__).parents[1] / "data" / "picl" / "v1-fft16-upshot.trf") as store:
        use = build(store)
        found = explain(Statistics(store), use, [0.0, 0.469e-3, 1.6e-3, use.curve().duration])
    assert "16 messages of 1 B on average, each taking 680 µs" in found.phases[1].sentence


def test_paraver_names_the_call_and_not_its_state() -> None:
    with open_trace(Path(__file__).parents[1] / "data" / "paraver" / "farm_6.prv") as store:
        first, second = told(store).causes[:2]
    assert first.sentence.startswith(
        "Rank 0 only serves the others, as a master, and waits in MPI_Recv while"
    )
    assert "each taking 1.2 ms of processor time in MPI_Send" in second.sentence


def test_calls_without_definitions_are_explained_as_those_with_them() -> None:
    """They counted as communication in the import report only, and 1e9 s were "1 proc·Gs"."""
    data = Path(__file__).parents[1] / "data" / "otf1"
    with open_trace(data / "damaged_c_definitions_missing.tar.xz") as store:
        first, second = told(store).causes[:2]
    assert first.sentence.startswith(
        "Rank 0 only serves the others, as a master, and waits in region 2 while"
    )
    assert "(517 000 000 proc·s, 52 % of what is lost" in first.sentence
    assert "405 messages of 796 B on average, each taking 1 200 000 s of processor time" in second.sentence


def moving(*calls: int, lost_s: float = 0.04) -> Charges:
    """Four locations that move data in collective operations, so many calls of each region of 8 bytes."""
    of = lost(*((i, Account.MOVING, lost_s) for i in range(4) for _ in calls))
    regions = np.arange(len(calls))
    return replace(
        of, region=np.tile(regions, 4), collective=np.ones(len(calls), bool),
        members=np.stack([np.array(calls), 8 * np.array(calls)], axis=1),
    )  # fmt: skip


def test_a_sentence_names_all_that_its_seconds_were_lost_in() -> None:
    words = Naming(lambda i: f"rank {i}", ("MPI_Reduce", "MPI_Gather").__getitem__, (0, 1, 2, 3))
    (one,) = causes(moving(1))
    says = (
        "1 call of MPI_Reduce of 8 B, taking 160 ms of processor time, far more than the latency of a network"
    )
    assert says in one.kind.says(one, words)
    (both,) = causes(moving(4, 4))
    said = both.kind.says(both, words)
    assert "4 calls of MPI_Reduce of 8 B on average, each taking 40 ms" in said
    assert said.endswith("; also MPI_Gather"), (
        "half of the seconds are not those of the calls that are counted"
    )
    words = Naming(lambda i: f"rank {i}", lambda i: f"call {i}", (0, 1, 2, 3))
    (many,) = causes(moving(*[4] * 20))
    assert many.kind.says(many, words).endswith("; also other calls"), "95 % of the seconds are theirs"


def test_few_that_are_left_are_named() -> None:
    words = Naming(lambda i: f"rank {i}", lambda _: "main", (0, 1, 2, 3))
    (end,) = causes(lost(*((i, Account.ABSENT, 0.5) for i in range(3))))
    assert end.kind.says(end, words) == "Ranks 0–2 have ended before rank 3"
    (end,) = causes(lost((1, Account.ABSENT, 0.5)))
    assert end.kind.says(end, words) == "Rank 1 has ended before the others"
    work = group([1.0, 1.0, 1.0, 0.0], [3.0, 3.0, 3.0, 1.0])
    waiting_s = work.of.waiting_s.copy()
    waiting_s[3, SENDER] = 3.0
    kind = next(kind for kind in KINDS if kind.key == "imbalance")
    cause = Cause(kind, replace(work, of=replace(work.of, waiting_s=waiting_s)), 3.0, 1.0, (0, 1, 2), 9, 1.0)
    assert kind.says(cause, words).endswith(
        "compute 1.2 times the mean in region main, and rank 3 waits for them"
    )


@pytest.mark.parametrize(
    ("computing", "says"),
    [(15.86, "15.9 of 16"), (16.0, "16 of 16"), (15.999, "16 of 16"), (15.6, "15.6 of 16"),
     (2e-4, "fewer than 0.01 of 16"), (0.0, "0 of 16"), (4.7, "4.7 of 16"), (150.3, "150 of 256")],
)  # fmt: skip
def test_not_all_compute_where_some_do_not(computing: float, says: str) -> None:
    words = Naming(lambda i: f"rank {i}", lambda _: "main", tuple(range(16)))
    processors = float(says.split()[-1])
    lost_s = processors - computing
    of = replace(lost((0, Account.IO, lost_s), processors=processors), balance=1.0, serialisation=0.5)
    sentence = phase_sentence(of, causes(of), words, 1, "", 1.0)
    assert f"on average {says} processors compute" in sentence
    assert ("computing is balanced" in sentence) is ("efficiency" in sentence) is (computing > 0.16)


def test_what_is_lost_is_little_below_a_tenth() -> None:
    """Then that is said first, as nobody has to look for the cause."""
    words = Naming(lambda i: f"rank {i}", lambda _: "read", (0, 1, 2, 3))
    for processors, little in ((11.0, True), (9.0, False)):
        of = lost((0, Account.IO, 1.0), processors=processors)
        told = explanation([of], [], words)
        assert told.paragraph.startswith("Little is lost: on average 10 of 11") is little
        assert told.headline == (told.level if little else told.causes[0].short)
        assert sorted(k for _, k in told.texts) == [-1, 0]


def group(lost_s: list[float], work_s: list[float], doubt_s: float = 0.0, chained: float = 0.0) -> Group:
    """Waiting of four for senders that compute, or for the last one."""
    of = replace(lost((0, Account.COMPUTING, 1.0)), doubt_s=doubt_s)
    whole = sum(lost_s)
    return Group(
        of, Account.COMPUTING, 0, SENDER, np.array(lost_s), whole * (1 - chained), whole * chained, 0.5, 10,
        np.array(work_s), -1,
    )  # fmt: skip


def test_evidence_is_as_strong_as_it_is_said_to_be() -> None:
    found = {
        (fits, seen, doubt_s): Cause(
            KINDS[0], group([1.0, 0, 0, 0], [1.0] * 4, doubt_s), 1.0, 1.0, (0,), seen, fits
        ).strength
        for fits, seen, doubt_s in (
            (0.8, 10, 0.0), (0.8, 9, 0.0), (0.8, 2, 0.0), (0.7, 10, 0.0), (0.6, 3, 0.0), (0.5, 10, 0.0),
            (0.8, 10, 0.1), (0.8, 10, 0.2), (0.6, 10, 0.2),
        )
    }  # fmt: skip
    words = ["strong", "fair", "weak", "fair", "fair", "weak", "strong", "weak", "weak"]
    assert list(found.values()) == words, found


def test_kinds_are_told_apart_at_their_limits() -> None:
    test = {kind.key: kind.test for kind in KINDS}
    alone = [
        replace(group(lost_s, [1.0, 0, 0, 0]), family=TOGETHER) for lost_s in ([9, 1, 0, 0], [8, 2, 0, 0])
    ]
    assert [test["alone"](one) for one in alone] == [0.9, 0.0], "who others wait for in a tenth is alone"
    chain = [group([1.0] * 4, [work] * 4, chained=0.9) for work in (0.5, 2.0)]
    assert [test["serial"](one) for one in chain] == [0.9, 0.0], "a chain waits longer than it computes"
    waiting_s = np.zeros((4, len(FAMILIES)))
    waiting_s[:2, SENDER] = 1.0, 3.0
    of = replace(lost((0, Account.COMPUTING, 0.01), (1, Account.COMPUTING, 1.0)), hub=0, waiting_s=waiting_s)
    master = replace(group([4.0, 0, 0, 0], [1.0] * 4), of=of)
    assert test["idle master"](master) == 0.25, "its part of the waiting, where only others wait for it"

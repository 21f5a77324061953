"""Why a run takes longer than another: parts that add up, and what is named first where that is known."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.core.accounts import Account
from desktop.core.charges import RunCosts
from desktop.core.contrast import Phased, align
from desktop.core.curve import StepCurve
from desktop.core.phases import fit_breakpoints
from desktop.core.run_difference import cost_differences, explain_differences
from desktop.data import remembered
from desktop.data.opening import open_trace
from desktop.data.utilization import build
from desktop.progress import Progress
from desktop.resources import samples
from tests.benchmarks.run_differences import KINDS, outcomes
from tests.programs.catalogue import DEVELOPMENT, HELD_BACK
from tests.programs.unseen import UNSEEN

KEYS = st.tuples(
    st.sampled_from([int(one) for one in Account]), st.sampled_from(["", "a", "b"]), st.sampled_from("01")
)
TIMES = st.tuples(st.floats(0, 1e3), st.floats(0, 1e3)).map(np.array)
COSTS = st.builds(RunCosts, st.floats(1, 64), st.dictionaries(KEYS, TIMES, min_size=1, max_size=12))


@settings(deadline=None)
@given(COSTS, COSTS)
def test_parts_add_up_to_the_difference(run: RunCosts, reference: RunCosts) -> None:
    parts = cost_differences(run, reference)
    own, waits = (
        sum(run.times.values()) / run.processors - sum(reference.times.values()) / reference.processors
    )
    assert sum(one.own_s for one in parts) == pytest.approx(own, abs=1e-9)
    assert sum(one.waits_s for one in parts) == pytest.approx(waits, abs=1e-9)
    assert [abs(one.total_s) for one in parts] == sorted((abs(one.total_s) for one in parts), reverse=True)
    back = cost_differences(reference, run)
    assert sorted(one.total_s for one in back) == pytest.approx(
        sorted(-one.total_s for one in parts), abs=1e-9
    )


def held(name: str, *widths: float, capacity: float = 4.0, costs: RunCosts | None = None) -> Phased:
    """One phase for each width, on ever more processors."""
    edges = np.append(0.0, np.cumsum(widths))
    curve = StepCurve(edges, np.arange(1.0, len(widths) + 1), capacity)
    return Phased(name, curve, fit_breakpoints(curve, edges.tolist(), "constant"), costs=costs)


def costs(processors: float, *rows: tuple[Account, str, str, float, float]) -> RunCosts:
    return RunCosts(
        processors, {(int(a), region, where): np.array([own, waits]) for a, region, where, own, waits in rows}
    )


SLOW = costs(
    2, (Account.COMPUTING, "relax", "rank 0", 1.0, 0.0), (Account.COMPUTING, "relax", "rank 1", 2.0, 1.0)
)
EVEN = costs(
    2, (Account.COMPUTING, "relax", "rank 0", 1.0, 0.0), (Account.COMPUTING, "relax", "rank 1", 1.0, 0.0)
)


def test_the_sentence_names_the_cause_and_who_it_is() -> None:
    runs = [held("old", 1.0, capacity=2.0, costs=EVEN), held("new", 2.0, capacity=2.0, costs=SLOW)]
    assert explain_differences(align(runs)) == [
        "new takes 2 s, 1 s longer than old (2 times): per processor, computing in relax +1 s "
        "(500 ms of it waiting for rank 1)."
    ]
    assert explain_differences(align(runs, 1)) == [
        "old takes 1 s, 1 s less than new (0.5 times): per processor, computing in relax −1 s "
        "(500 ms of it waiting for rank 1)."
    ]


def test_a_region_that_is_renamed_in_one_of_the_runs_is_the_same_region() -> None:
    old, new = held("old", 1.0, capacity=2.0, costs=EVEN), held("new", 2.0, capacity=2.0, costs=SLOW)
    for runs in (
        (replace(old, called={"relax": "sweep"}), new),
        (old, replace(new, called={"relax": "sweep"})),
    ):
        (sentence,) = explain_differences(align(runs))
        assert "computing in sweep +1 s (500 ms of it waiting for rank 1)." in sentence


def test_what_works_against_it_is_said_too() -> None:
    moves = costs(
        2,
        (Account.COMPUTING, "relax", "rank 0", 0.4, 0.0), (Account.COMPUTING, "relax", "rank 1", 0.4, 0.0),
        (Account.MOVING, "MPI_Recv", "rank 0", 1.0, 0.0), (Account.MOVING, "MPI_Send", "rank 1", 1.2, 0.0),
    )  # fmt: skip
    runs = [held("old", 1.0, capacity=2.0, costs=EVEN), held("new", 1.5, capacity=2.0, costs=moves)]
    assert explain_differences(align(runs)) == [
        "new takes 1.500 s, 500 ms longer than old (1.5 times): per processor, moving data in MPI_Send "
        "+1.1 s; against that computing in relax −600 ms."
    ]


def test_start_up_is_one_difference_whichever_call_it_is_in() -> None:
    initialized = replace(
        EVEN, times=EVEN.times | costs(2, (Account.STARTUP, "MPI_Init", "rank 0", 0.2, 0.2)).times
    )
    late = costs(2, (Account.STARTUP, "MPI_Init_thread", "rank 1", 0.7, 0.7))
    runs = [held("old", 1.2, capacity=2.0, costs=initialized)]
    runs.append(held("new", 1.7, capacity=2.0, costs=replace(EVEN, times=EVEN.times | late.times)))
    (sentence,) = explain_differences(align(runs))
    assert sentence.endswith("start-up in MPI_Init_thread +500 ms (250 ms of it waiting for rank 1).")


def test_unclassified_communication_is_one_name_in_a_list() -> None:
    waiting = costs(2, (Account.UNKNOWN, "MPI_Recv", "rank 0", 1.2, 0.0)).times
    runs = [held("old", 1.0, capacity=2.0, costs=EVEN)]
    runs.append(held("new", 1.6, capacity=2.0, costs=replace(EVEN, times=EVEN.times | waiting)))
    (sentence,) = explain_differences(align(runs))
    assert sentence.endswith("per processor, unclassified communication in MPI_Recv +600 ms (rank 0).")


def test_regions_under_other_names_are_one_computing() -> None:
    other = replace(SLOW, times={(a, "Working", where): time for (a, _, where), time in SLOW.times.items()})
    runs = [held("old", 1.0, costs=EVEN), held("new", 2.0, costs=other)]
    (sentence,) = explain_differences(align(runs))
    assert "computing +1 s (500 ms of it waiting for rank 1)" in sentence


def test_without_causes_durations_processors_and_phases_are_compared() -> None:
    runs = [held("old", 2.0, 3.0), held("new", 2.0, 2.0, capacity=8.0), held("same", 2.0, 3.002)]
    assert explain_differences(align(runs, fixed={1: [(0, 0), (1, 1)]})) == [
        "new takes 4 s on 8 processors, 1 s less than old on 4 (0.8 times).",
        "By phase: phase 2 −1 s.",
        "same takes 5.002 s, as long as old.",
    ]


def test_long_times_are_said_in_seconds_and_large_ratios_without_an_exponent() -> None:
    assert explain_differences(align([held("old", 2.0), held("new", 14345.0)])) == [
        "new takes 14 345 s, 14 300 s longer than old (7172 times)."
    ]


def test_equal_durations_with_other_parts() -> None:
    lazy = costs(
        2, (Account.COMPUTING, "relax", "rank 0", 1.0, 0.0), (Account.IO, "fwrite", "rank 1", 1.0, 0.0)
    )
    runs = [held("old", 1.0, capacity=2.0, costs=EVEN), held("new", 1.0, capacity=2.0, costs=lazy)]
    (sentence,) = explain_differences(align(runs))
    assert sentence.startswith("new takes 1 s, as long as old, but not for the same reasons: per processor, ")
    assert "I/O in fwrite +500 ms" in sentence and "computing in relax −500 ms" in sentence


def test_changes_that_are_known_are_named_first(tmp_path: Path) -> None:
    """A short version of the table in ``resources/docs/compare.md``."""
    every = DEVELOPMENT | HELD_BACK | UNSEEN
    programs = {name: every[name] for name in ("bodies", "fft", "out of core", "odd even")}
    right = dict.fromkeys(KINDS, 0)
    for _, _, truth, cause, named, _ in outcomes(programs, (0.02,), tmp_path):
        assert named, (truth, cause)
        right[truth.kind] += 1
    assert all(right.values()), "each kind of change was seen"


def forged(rows: list[list[object]]) -> list[list[list[object]]]:
    """Costs that do not fit the run."""
    account, *others = rows[0]
    longer, strange, endless = [account, *others[:2], 1e9, 0], [77, *others], [account, *others[:2], "inf", 0]
    return [*([one, *rows[1:]] for one in (longer, strange, endless, [float("inf"), *others])), []]


@pytest.mark.usefixtures("own_places")
def test_costs_are_kept_for_the_next_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_trace(next(one.path for one in samples() if one.path.suffix == ".trf")) as store:
        use = build(store)
        span = use.curve().span
        found = remembered.costs_of(store, use.rules, span, Progress())
        assert found is not None
        total = sum(float(time.sum()) for time in found.times.values())
        assert total == pytest.approx(found.processors * (span[1] - span[0]))
        with monkeypatch.context() as patch:
            patch.setattr("desktop.data.root_causes.costs", lambda *_: pytest.fail("computed again"))
            again = remembered.costs_of(store, use.rules, span, Progress())
            assert again is not None and {k: list(v) for k, v in again.times.items()} == {
                k: list(v) for k, v in found.times.items()
            }
            patch.setattr(store, "elsewhere", object())
            assert remembered.costs_of(store, use.rules, span, Progress()) is None, "it needs all events"
        key = remembered._key(store, remembered.Ranges(use.rules, span, ("costs",), {}))
        place = remembered._place(store, key)
        processors, rows = json.loads(zlib.decompress(place.read_bytes()))
        for wrong in forged(rows):
            place.write_bytes(zlib.compress(json.dumps((processors, wrong)).encode()))
            honest = remembered.costs_of(store, use.rules, span, Progress())
            assert honest is not None and honest.times.keys() == found.times.keys()
        place.write_bytes(b"no costs")
        assert remembered.costs_of(store, use.rules, span, Progress()) is not None

"""Runs of one program on several p, whose phases take known times: traces in virtual time, written here.

A processor computes for so long, messages and collective operations cost what the LogGP model says
(Alexandrov, Ionescu, Schauser, Scheiman, 1995), so the law of every phase is known; the largest p is held
out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from desktop import cli
from desktop.core.contrast import Contrast, Phased, align, place
from desktop.core.curve import StepCurve
from desktop.core.phase_model import model_phases
from desktop.data.material import Subject
from desktop.data.opening import open_trace
from desktop.data.phase_scaling import Gathered, OpenRun, Traced, gather, measured
from desktop.data.report import Contents, Picture, Points, ReportTable, compose
from tests.data_layer.otf2_writer import Event, Place, write

#: LogGP, seconds: latency, overhead, gap per byte.
LATENCY, OVERHEAD, GAP = 20e-6, 5e-6, 1e-8
_REGIONS = ("main", "input", "sweep", "output", "MPI_Bcast", "MPI_Allreduce", "MPI_Barrier")
STEPS = 20


def truth(p: int, speed: float = 1.0) -> tuple[float, float, float]:
    """Seconds of input (serial, then a broadcast), sweeps (shared out, 10 % imbalance, an allreduce each),
    and output (the root alone). `speed`: of processors and network."""
    message = LATENCY + 2 * OVERHEAD
    rounds = math.ceil(math.log2(p))
    first, sweeps = 0.3 + rounds * (message + 1e6 * GAP), STEPS * (1.1 * 0.4 / p + 2 * rounds * message)
    return first / speed, sweeps / speed, 0.12 / speed


class Rank:
    """What one processor does."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.now = 0.0

    def at(self, record: str, *fields: int) -> None:
        self.events.append(Event(round(self.now * 1e9), record, fields))

    def compute(self, region: str, seconds: float) -> None:
        self.at("Enter", _REGIONS.index(region))
        self.now += seconds
        self.at("Leave", _REGIONS.index(region))

    def together(self, region: str, kind: int, end: float) -> None:
        """A collective operation that ends then."""
        self.at("Enter", _REGIONS.index(region))
        self.at("MpiCollectiveBegin")
        self.now = end
        self.at("MpiCollectiveEnd", kind, 0, 0, 8, 8)
        self.at("Leave", _REGIONS.index(region))


def program(folder: Path, p: int, speed: float = 1.0) -> Path:
    """Its trace on p processors."""
    first, sweeps, last = truth(p, speed)
    places = []
    for number in range(p):
        rank = Rank()
        rank.at("Enter", 0)
        rank.at("Enter", 1)
        rank.now = 0.3 / speed if number == 0 else 1e-6
        rank.together("MPI_Bcast", 1, first)
        rank.at("Leave", 1)
        for k in range(STEPS):
            rank.compute("sweep", (0.4 / p / speed) * (0.9 + 0.2 * number / (p - 1)))
            rank.together("MPI_Allreduce", 11, first + (k + 1) * sweeps / STEPS)
        rank.at("Enter", 3)
        rank.now += 0.1199 / speed if number == 0 else 1e-6
        rank.together("MPI_Barrier", 0, first + sweeps + last)
        rank.at("Leave", 3)
        rank.at("Leave", 0)
        places.append(Place(number, rank.events))
    return write(
        folder / f"run_{p}{'' if speed == 1 else '_fast'}", places, regions=dict(enumerate(_REGIONS))
    )


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folder = tmp_path_factory.mktemp("scaling")
    return {p: program(folder, p) for p in (2, 4, 8, 16)}


@pytest.fixture(scope="module")
def found(traces: dict[int, Path]) -> Gathered:
    return gather([Traced(traces[p]) for p in (16, 2, 8, 4)])  # in any order


def test_the_same_phases_are_found_in_all_runs_by_their_structure(found: Gathered) -> None:
    assert "structure events" in found.matched
    assert found.runs.p.tolist() == [2, 4, 8, 16] and found.runs.runs[0] == "run_2"
    assert [name.split()[0] for name in found.runs.phases] == ["input", "sweep", "output"]
    for row, p in zip(found.runs.duration, (2, 4, 8, 16), strict=True):
        assert row == pytest.approx(truth(p), rel=0.01)


def test_parts_and_accounts_add_up_to_the_phases(found: Gathered) -> None:
    runs = found.runs
    assert runs.parts is not None and runs.accounts is not None
    assert np.allclose(runs.parts.sum(axis=2), runs.duration, rtol=1e-6)
    assert np.allclose(runs.accounts.sum(axis=2), runs.duration, rtol=0.02)
    assert "Wait at n-to-n collective" in runs.account_names
    # mean over largest computing time of the sweeps: 1 over 1.1
    balance = runs.parts[:, 1, 0] / runs.parts[:, 1, :2].sum(axis=1)
    assert balance == pytest.approx(np.full(4, 1 / 1.1), rel=0.02)


def test_the_largest_p_is_predicted_from_the_others(found: Gathered) -> None:
    model = model_phases(found.runs.only(range(3)))
    phases, run = model.durations(np.array([16.0]))
    low, high = np.quantile(phases[:, :, 0], (0.025, 0.975), axis=0)
    assert (low <= truth(16)).all() and (truth(16) <= high).all()
    assert np.quantile(run, 0.025) <= sum(truth(16)) <= np.quantile(run, 0.975)
    seen = model_phases(found.runs).measured_efficiencies()
    for name, draws in model.efficiencies(np.array([16.0])).items():
        assert np.quantile(draws, 0.025) - 1e-3 <= seen[name][3] <= np.quantile(draws, 0.975) + 1e-3, name


def test_breakpoints_as_they_are_given_are_taken(traces: dict[int, Path]) -> None:
    runs = [Traced(traces[p], breaks=(0.0, truth(p)[0], sum(truth(p)))) for p in (2, 4, 8)]
    found = gather(runs)
    assert found.runs.duration[:, 0] == pytest.approx([truth(p)[0] for p in (2, 4, 8)], rel=1e-3)
    runs[0] = Traced(traces[2], breaks=(0.0, 0.1, 0.2, sum(truth(2))))
    with pytest.raises(ValueError, match="different numbers of phases"):
        gather(runs)


def test_phases_without_structure_are_matched_by_order_and_shape() -> None:
    """Curves alone, of phases that are full, a quarter full, and full again, the second as long at any p."""
    runs = []
    for p in (4, 8, 16):
        times = np.cumsum([0.0, 8 / p, 0.5, 4 / p])
        curve = StepCurve(times, [p, p / 4, p])
        runs.append(OpenRun(f"on {p}", curve, None, None))
    found = measured(runs[::-1])
    assert found.matched == "phases are matched by order and shape, as many in all runs"
    assert found.runs.p.tolist() == [4, 8, 16] and found.runs.parts is None
    expected = [[8 / p, 0.5, 4 / p] for p in (4, 8, 16)]
    assert found.runs.duration == pytest.approx(np.array(expected), rel=0.02)


def iterating(folder: Path, kind: str, p: int) -> tuple[Path, list[float]]:
    """Four iterations, long enough for each of their two parts to be a phase; and how long parts take.
    "steps": more work in each, then the root alone; "parts": two routines, the second on half of the
    processors; "bare": nothing but the reductions tells where an iteration ends."""
    plan = {
        "steps": [((1 + k / 2) / p, 0.15) for k in range(4)],
        "parts": [(0.8 / p + 0.02, 0.4 / p + 0.1)] * 4,
        "bare": [((0.5 + 0.3 * (k % 2)) / p, 0.1 + 0.05 * k) for k in range(4)],
    }[kind]
    second = p // 2 if kind == "parts" else 1
    names = ("main", "iteration", "assemble", "solve", "MPI_Allreduce")
    places = []
    for number in range(p):
        rank, end = Rank(), 0.0
        rank.at("Enter", 0)
        for first, last in plan:
            if kind != "bare":
                rank.at("Enter", 1)
            for region, seconds, of in ((2, first, p), (3, last, second)):
                if kind != "bare":
                    rank.at("Enter", region)
                rank.now = end + (seconds - 1e-3 if number < of else 1e-6)
                if kind != "bare":
                    rank.at("Leave", region)
                end += seconds
                rank.together("MPI_Allreduce", 11, end)
            if kind != "bare":
                rank.at("Leave", 1)
        rank.at("Leave", 0)
        places.append(Place(number, rank.events))
    path = write(folder / f"{kind}_{p}", places, regions=dict(enumerate(names)))
    return path, [seconds for parts in plan for seconds in parts]


@pytest.mark.parametrize("kind", ["steps", "parts", "bare"])
def test_phases_that_are_iterations_are_matched_one_by_one(tmp_path: Path, kind: str) -> None:
    made = [iterating(tmp_path, kind, p) for p in (2, 4, 8)]
    found = gather([Traced(path) for path, _ in made])
    assert "structure events" in found.matched
    for row, (_, true) in zip(found.runs.duration, made, strict=True):
        assert row == pytest.approx(true, rel=0.03)


def test_the_command_says_it_all(traces: dict[int, Path], capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(traces[p]) for p in (2, 4, 8, 16)]
    assert cli.run(["model", "--phases", *paths, "--at", "16,32,1000", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["p"] for one in told["predict"]] == [16, 32, 1000]
    first = told["predict"][0]
    assert first["low_s"] <= first["measured_s"] <= first["high_s"] and "global" in first["efficiency"]
    assert {"name", "functions", "parameters", "interval"} <= set(told["phases"][1])
    assert told["first_to_stop"] == 1 and "1 000" in told["warnings"][-1]
    assert cli.run(["model", "--phases", *paths[:3], "--csv", "--at", "32"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("phase,p,predicted,low,high,measured") and len(lines) == 5
    assert cli.run(["model", "--phases", *paths[:3]]) == 0
    text = capsys.readouterr().out
    assert "  efficiency: parallel " in text and ", global " in text
    assert "Phase 1, input, takes longer with more processors" in text and "more than half of the run" in text
    assert cli.run(["model", "--phases", *paths[:2]]) == 1
    assert "3 or more different numbers of processors" in capsys.readouterr().err
    assert cli.run(["model"]) == 2


def test_runs_on_two_systems_have_one_model_with_their_speeds(
    traces: dict[int, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """B is 1.6 times as fast in all that it does, and was run on 2 and 4 processors only."""
    slow = [str(traces[p]) for p in (2, 4, 8, 16)]
    fast = [str(program(tmp_path, p, 1.6)) for p in (2, 4)]
    both = ["model", "--phases", *slow, "--system", "A", "--phases", *fast, "--system", "B"]
    assert cli.run([*both, "--at", "16,32", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["joint"] and [one["system"] for one in told["systems"]] == ["A", "B"]
    assert sorted({(one["system"], one["p"]) for one in told["runs"]}) == [
        *(("A", p) for p in (2, 4, 8, 16)), ("B", 2), ("B", 4)
    ]  # fmt: skip
    assert told["predict"] == told["systems"][0]["predict"]
    on_b = told["systems"][1]["predict"][0]
    assert on_b["p"] == 16 and on_b["measured_s"] is None
    assert on_b["low_s"] <= sum(truth(16, 1.6)) <= on_b["high_s"] < 1.3 * on_b["low_s"]
    for own, true in zip(on_b["phases"], truth(16, 1.6), strict=True):
        assert own["low_s"] <= true <= own["high_s"]
    assert 0.3 < on_b["efficiency"]["global"]["value"] < 1.0
    speed = next(one for one in told["speeds"] if one["function"] == "1/p")
    assert speed["low"] <= 1.6 <= speed["high"] < 1.7
    said = " ".join(told["sentences"])
    times = re.match(r"B is ([\d.]+) times as fast as A on 2 processors \(95 %: ", said)
    assert times is not None and float(times[1]) == pytest.approx(1.6, rel=0.02)
    assert re.search(r"\) and 1\.\d+ times on 4 \(95 %: ", said)
    # one sentence on a phase tells of both systems, and names them where they differ
    assert said.count("Phase 1, input, ") == said.count("The run itself ") == 1
    assert re.search(r"more than half of the run on A from p = .* on, on B from p = .* on\.", said)
    assert "4 different p say little" in told["warnings"][0] and len(told["warnings"]) == 1
    assert cli.run([*both, "--at", "8"]) == 0
    text = capsys.readouterr().out
    assert "Speeds of B over those of A (95 %): " in text and "\nOn B\n" in text
    assert cli.run([*both, "--system", "C"]) == 2 and "one --system for each" in capsys.readouterr().err


def test_reports_and_slides_tell_how_the_phases_scale(traces: dict[int, Path]) -> None:
    with ExitStack() as stack:
        stores = {p: stack.enter_context(open_trace(traces[p])) for p in (2, 4, 8)}
        subjects = [Subject(store, f"on {p}", n=3) for p, store in stores.items()]

        def compare(runs: Sequence[Phased]) -> Contrast:
            alignment = align(runs)
            return Contrast(alignment, place(alignment))

        few = Contents(figures=("comparison",), tables=("scaling",))
        report = compose(subjects, few, compare=compare)
        plain = compose(subjects[:2], few, compare=compare)
    section = next(one for one in report.sections if one.title == "Phases over p")
    told, stacked, efficiency, rows = section.blocks
    assert isinstance(told, Points) and "first to stop scaling" in " ".join(told.items)
    assert isinstance(stacked, Picture) and isinstance(efficiency, Picture) and isinstance(rows, ReportTable)
    assert [row[0] for row in rows.rows[:2]] == ["whole run", "1 input"]
    assert any(slide.block is stacked for slide in report.story)
    assert all(one.title != "Phases over p" for one in plain.sections)


def test_reports_tell_of_each_system(traces: dict[int, Path], tmp_path: Path) -> None:
    with ExitStack() as stack:
        paths = [traces[p] for p in (2, 4, 8)] + [program(tmp_path, p, 1.6) for p in (2, 4)]
        stores = [stack.enter_context(open_trace(path)) for path in paths]
        subjects = [Subject(store, f"run {k}", n=3) for k, store in enumerate(stores)]

        def compare(runs: Sequence[Phased]) -> Contrast:
            alignment = align([replace(run, system="AAABB"[k]) for k, run in enumerate(runs)])
            return Contrast(alignment, place(alignment))

        report = compose(subjects, Contents(figures=(), tables=("scaling",)), compare=compare)
    section = next(one for one in report.sections if one.title == "Phases over p")
    told, *pictures, rows = section.blocks
    assert isinstance(told, Points) and "B is 1." in told.items[0] and isinstance(rows, ReportTable)
    assert any(one.startswith("Speeds of B over those of A") for one in told.items)
    assert [one.figure for one in pictures if isinstance(one, Picture)] == [
        f"{what} over p on {name}" for name in "AB" for what in ("phases", "efficiency")
    ]  # fmt: skip
    assert rows.heads[:2] == ("System", "Phase") and {row[0] for row in rows.rows} == {"A", "B"}

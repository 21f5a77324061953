"""Iterations of real traces whose programs are known, and the command that prints them."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from desktop.cli import run
from desktop.data.iterations import find
from desktop.data.opening import open_trace
from desktop.data.store import open_store
from desktop.data.utilization import build
from tests.programs import catalogue
from tests.programs.simulated import Program, Steps, simulate, write

SAMPLES = Path("resources/samples")
OTF2 = Path("tests/data/otf2")
PICL = Path("tests/data/picl")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("trace", "counts"),
    [
        (SAMPLES / "wave1d_8_eztrace/eztrace_log.otf2", 100),  # -> ORIGIN.md: 100 steps
        (OTF2 / "mpt_jacobi2d_9_dilated.tar.gz", 60),  # 60 iterations
        (OTF2 / "ezt_wave1d_4.tar.gz", 80),  # 80 steps of 66 us, by ranks that share two cores
        (PICL / "v2-ncptl-butterfly8.trf", 4),  # 4 trials of 3 stages
    ],
)
def test_the_steps_of_a_program_are_counted(cache: None, trace: Path, counts: int) -> None:
    with open_trace(trace) as store:
        found = find(store, build(store))
    assert counts in [level.loop.count for level in found.levels]
    assert all((level.loop.durations > 0).all() for level in found.levels)


@pytest.mark.parametrize(
    "trace",
    [
        OTF2 / "mpt_farm_6_dilated.tar.gz",  # master and workers, rows of unequal cost
        OTF2 / "ezt_farm_8_dilated.tar.gz",
        OTF2 / "public_scorep_ember_4.tar.gz",
        PICL / "v1-farm4-flush.trf",
        PICL / "v2-ncptl-reduce6-deadlock.trf",
    ],
)
def test_a_run_without_iterations_has_none(cache: None, trace: Path) -> None:
    with open_trace(trace) as store:
        found = find(store, build(store))
    assert not found.found and found.reason.endswith(".")


def marked(rank: int, ranks: int, rng: np.random.Generator) -> Steps:
    """Iterations that the program names, each of another length, with calls of no order inside."""
    lengths = 0.002 * 40 ** rng.random(30)
    calls = rng.integers(0, 3, (30, 5))
    yield ("work", 0.05)
    for step in range(30):
        yield ("in", f"iteration {step}")
        for call in calls[step].tolist():
            yield ("work", float(lengths[step] / 5))
            yield ("all", ("Barrier", "Allreduce", "Bcast")[call], 8)
        yield ("out", f"iteration {step}")
    yield ("work", 0.05)


@pytest.mark.parametrize(
    ("program", "ranks", "counts"),
    [
        (marked, 4, [30]),
        (catalogue.bodies, 4, [40]),
        (catalogue.ocean, 4, [30, 300]),
        (catalogue.farm, 8, []),
        (catalogue.batches, 6, []),
    ],
    ids=["marked", "bodies", "ocean", "farm", "batches"],
)
def test_programs_of_others_are_counted_right(
    tmp_path: Path, program: Program, ranks: int, counts: list[int]
) -> None:
    """Written for something else (but for the first), so that nothing was fitted to them."""
    with open_store(write(simulate(program, ranks, 0.05, 3), tmp_path / "run.h5")) as store:
        found = find(store, build(store))
    assert [level.loop.count for level in found.levels] == counts
    if program is marked:
        assert found.levels[0].region == "iteration #"


def test_an_odd_iteration_names_its_ranks(cache: None) -> None:
    with open_trace(OTF2 / "mpt_jacobi2d_9_dilated.tar.gz") as store:
        level = find(store, build(store)).levels[0]
        plain = find(store, build(store), explained=False).levels[0]
    worst = level.odd[0]
    assert [replace(one, ranks=(), region="") for one in level.odd] == list(plain.odd)
    assert np.array_equal(level.loop.bounds, plain.loop.bounds) and level.odd_count == plain.odd_count
    # One process row has 2.5 times the rows of the others: the last one in the trace's order of ranks is 3-5.
    assert set(worst.ranks) <= set(range(9)) and worst.excess_s > 0.1
    assert worst.end_s - worst.start_s > 10 * level.loop.period
    assert level.odd_count >= len(level.odd) and f"number {worst.index + 1}" in level.sentence


def test_the_command_prints_what_the_contract_names(cache: None, capsys: pytest.CaptureFixture[str]) -> None:
    trace = str(OTF2 / "mpt_jacobi2d_9_dilated.tar.gz")
    assert run(["iterations", trace, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["found"] is True and found["reason"]
    level = found["levels"][0]
    assert {"period_s", "count", "first_s", "last_s", "by", "region", "odd"} <= level.keys()
    assert level["by"] in ("events", "curve", "both") and level["region"] == "MPI_Sendrecv"
    assert {"index", "start_s", "end_s", "excess_s", "ranks", "region"} == level["odd"][0].keys()
    breaks = level["fold"]["breaks_s"]
    assert breaks[0] == 0 and breaks[-1] == pytest.approx(level["period_s"])
    assert run(["iterations", trace, "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == sum(one["count"] for one in found["levels"])
    assert float(rows[0]["start_s"]) == pytest.approx(level["first_s"])
    assert run(["iterations", trace, "-n", "3"]) == 0
    assert "one iteration: 3 phases" in capsys.readouterr().out


def test_a_run_without_iterations_is_no_failure(cache: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["iterations", str(OTF2 / "mpt_farm_6_dilated.tar.gz"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {"found": False, "reason": found["reason"], "levels": []}


def test_a_curve_file_is_searched_too(
    cache: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "teeth.csv"
    lines = [f"{k + part},{level}" for k in range(30) for part, level in ((0, 8), (0.4, 0), (0.6, 3))]
    file.write_text("\n".join([*lines, "30,0"]) + "\n")
    assert run(["iterations", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["levels"][0]["by"] == "curve"
    assert found["levels"][0]["period_s"] == pytest.approx(1.0, rel=0.005)

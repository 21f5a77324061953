"""Another curve, and curves below: chosen, undone, kept, limited, missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from desktop.core.curve import StepCurve
from desktop.data.curves import build_curve
from desktop.data.events import Activity
from desktop.data.opening import open_trace
from desktop.data.utilization import build
from desktop.workbench.keeping import ProjectStore, read_workspace
from desktop.workbench.model import TRACKS, Project
from desktop.workbench.workbench import Workbench
from tests.inline import Inline, Later

TRACE = Path(__file__).parents[1] / "data/otf2/public_scorep_pingpong_papi_2.tar.gz"
CYCLES = "metric:PAPI_TOT_CYC"


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workbench]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lanes = {name: Inline() for name in ("store", "fit", "sweep", "statistics", "tracks")}
    made = Workbench(executors=lanes)
    made.open(TRACE)
    assert made.snapshot.problem is None
    yield made
    made.close()


def expected(curve: str) -> StepCurve:
    with open_trace(TRACE) as store:
        return build_curve(store, build(store), curve)


def same(one: StepCurve, other: StepCurve) -> bool:
    return np.array_equal(one.edges, other.edges) and np.array_equal(one.level, other.level)


def test_another_curve_is_fitted_with_its_suggestion_and_undone_at_once(bench: Workbench) -> None:
    before = bench.snapshot
    bench.set_curve(CYCLES)
    shown = bench.snapshot
    assert shown.run is not None and shown.fit is not None and shown.suggestion is not None
    assert shown.run.name == CYCLES == shown.project.curve
    assert same(shown.run.curve, expected(CYCLES))
    assert list(shown.run.stack) == ["computing"]
    assert shown.fit.n == shown.suggestion.n == len(shown.rows)
    assert shown.rows[0].mean > 1e6
    assert np.isnan(shown.rows[0].efficiency)
    assert bench.history.undo_label == f"fit the curve {CYCLES}"
    bench.history.undo()
    assert bench.snapshot.run is not None and before.run is not None
    assert bench.snapshot.run.name == "computing"
    assert same(bench.snapshot.run.curve, before.run.curve)
    assert bench.snapshot.project.phases == before.project.phases
    bench.history.redo()
    again = bench.snapshot
    assert again.run is not None and again.run.name == CYCLES
    assert again.project == shown.project


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Workbench, Later]]:
    """A workbench with an open trace, and what builds its curves when told to."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    files = Later()
    made = Workbench(executors={"store": files, "fit": Inline(), "sweep": Inline(), "tracks": Inline()})
    made.open(TRACE)
    files.run()
    yield made, files
    made.close()


def test_a_number_chosen_while_a_curve_is_built_stays(slow: tuple[Workbench, Later]) -> None:
    bench, files = slow
    bench.set_curve(CYCLES)
    bench.set_n(9)
    files.run()
    shown = bench.snapshot
    assert shown.run is not None and shown.run.name == CYCLES and shown.fit is not None
    assert shown.fit.n == 9 == shown.project.phases.n and bench.history.undo_label == "set 9 phases"


def test_a_curve_is_given_up_after_another_edit(slow: tuple[Workbench, Later]) -> None:
    bench, files = slow
    before = bench.snapshot
    bench.set_curve(CYCLES)
    bench.set_n(9)
    bench.cancel_opening()
    files.run()
    shown = bench.snapshot
    assert shown.run is before.run and shown.project == before.project and shown.fit == before.fit
    assert not shown.refining and bench.history.redo_label == f"fit the curve {CYCLES}"


def test_what_else_was_edited_stays_when_a_curve_is_given_up(slow: tuple[Workbench, Later]) -> None:
    bench, files = slow
    phases = bench.project.phases
    bench.set_curve(CYCLES)
    bench.annotate("mine", 0.21)
    bench.set_n(9)
    bench.cancel_opening()
    files.run()
    for project in (bench.project, bench.snapshot.project):
        assert [one.text for one in project.annotations] == ["mine"]
        assert (project.curve, project.phases) == ("computing", phases)
    bench.history.undo()
    assert not bench.project.annotations and bench.project.curve == "computing" and not files.waiting


def test_a_limit_that_was_given_up_chooses_no_phases(slow: tuple[Workbench, Later]) -> None:
    bench, files = slow
    bench.limit_to((0.209, 0.215))
    bench.cancel_opening()
    phases = bench.project.phases
    bench.set_activity("MPI_Send", Activity.COMPUTING)
    files.run()
    assert bench.history.undo_label == "classify MPI_Send" and bench.project.phases == phases


def test_a_curve_is_given_up_whose_last_edit_was_undone(slow: tuple[Workbench, Later]) -> None:
    bench, files = slow
    bench.limit_to((0.209, 0.215))
    files.run()
    bench.set_curve("bytes")
    files.run()
    run = bench.snapshot.run
    assert run is not None and run.name == "bytes" and run.limit is not None
    bench.history.undo()
    bench.history.undo()
    bench.set_n(3)
    bench.cancel_opening()
    files.run()
    shown = bench.snapshot
    assert shown.run is not None and shown.fit is not None and not shown.refining
    assert (shown.run.name, shown.run.limit) == (shown.project.curve, shown.project.limit)
    assert shown.fit.n == shown.project.phases.n


def test_a_limit_holds_for_another_curve_too(bench: Workbench) -> None:
    bench.limit_to((0.209, 0.215))
    bench.set_curve("bytes")
    shown = bench.snapshot
    assert shown.run is not None and shown.run.limit == (0.209, 0.215)
    assert same(shown.run.curve, expected("bytes").window(0.209, 0.215))
    assert shown.run.curve.quantity.unit == "B"
    bench.limit_to(None)
    assert bench.snapshot.run is not None
    assert same(bench.snapshot.run.curve, expected("bytes"))


def test_curves_below_share_the_phases(bench: Workbench) -> None:
    fit = bench.snapshot.fit
    bench.toggle_track(CYCLES)
    bench.toggle_track("communication")
    tracks = bench.snapshot.tracks
    assert [name for name, _ in tracks] == [CYCLES, "communication"]
    assert all(same(curve, expected(name)) for name, curve in tracks)
    assert bench.snapshot.fit is fit
    bench.set_curve("idle")
    assert [curve for _, curve in bench.snapshot.tracks] == [curve for _, curve in tracks], "made once"
    bench.history.undo()
    bench.history.undo()
    assert [name for name, _ in bench.snapshot.tracks] == [CYCLES]
    bench.toggle_track(CYCLES)
    assert bench.snapshot.tracks == ()


def test_more_curves_than_there_is_room_for_are_refused(bench: Workbench) -> None:
    assert bench.snapshot.document is not None
    curves = [one["curve"] for one in bench.snapshot.document.info["curves"]]
    for curve in curves[: TRACKS + 1]:
        bench.toggle_track(curve)
    assert len(bench.snapshot.tracks) == TRACKS
    problem = bench.snapshot.problem
    assert problem is not None and "leave one out first" in problem.sentence


def test_a_curve_that_the_trace_has_not_leaves_all_as_it_was(bench: Workbench) -> None:
    before = bench.snapshot
    bench.set_curve("accelerators")
    shown = bench.snapshot
    assert shown.problem is not None
    assert "no stream of an accelerator" in shown.problem.sentence
    assert shown.run is before.run and shown.project == before.project
    bench.toggle_track("metric:none")
    assert bench.snapshot.problem is not None
    assert "metric:none" in bench.snapshot.problem.sentence
    assert bench.snapshot.tracks == ()


def test_a_project_keeps_the_choice(bench: Workbench, tmp_path: Path) -> None:
    """Of curve, of curves below, and of what phases may be beside polynomials."""
    projects = ProjectStore(bench, lambda _: None, print, lambda: None, folder=tmp_path, executor=Inline())
    bench.open(TRACE)
    bench.set_curve(CYCLES)
    bench.toggle_track("bytes")
    bench.set_also("periodic")
    bench.set_seconds(0.004)
    bench.set_n(3)
    fit = bench.snapshot.fit
    file = tmp_path / "kept.phasewright"
    projects.save(file)
    (run,) = read_workspace(file).runs
    assert (run.project.curve, run.project.tracks) == (CYCLES, ("bytes",))
    phases = bench.snapshot.project.phases
    bench.close_document()
    projects.open(file)
    shown = bench.snapshot
    assert shown.run is not None and shown.run.name == CYCLES
    assert [name for name, _ in shown.tracks] == ["bytes"]
    assert shown.project.phases == phases
    assert (phases.also, phases.seconds) == ("periodic", 0.004)
    assert fit is not None and shown.fit is not None and fit.basis == shown.fit.basis
    assert fit.basis is not None and fit.basis.seconds == pytest.approx(0.004)
    np.testing.assert_array_equal(shown.fit.breaks, fit.breaks)
    np.testing.assert_array_equal(shown.fit.coefficients, fit.coefficients)


def test_a_project_says_what_is_wrong_with_its_curves() -> None:
    assert "no name" in Project(curve="").problem()
    assert "two are the same" in Project(tracks=("io", "io")).problem()
    assert "more than" in Project(tracks=tuple(map(str, range(TRACKS + 1)))).problem()
    assert not Project(curve="io", tracks=("idle",)).problem()

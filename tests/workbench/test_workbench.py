"""The door of the window, without a window: what is answered at once, and what survives a failure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.core.curve import StepCurve
from desktop.core.labels import MODELS
from desktop.core.phases import PhaseFit, fit_breakpoints
from desktop.core.phases import fit as best_fit
from desktop.workbench.keeping import ProjectStore
from desktop.workbench.model import View
from desktop.workbench.workbench import N_LIMIT, Snapshot, Workbench
from tests.inline import Inline, Later


@pytest.fixture
def curve_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three levels with noise, a second each."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rng = np.random.default_rng(3)
    level = np.repeat([1.0, 6.0, 3.0], 200) + rng.choice([0.0, 0.5, 1.0], 600)
    rows = [f"{t:.6f} {h:g}" for t, h in zip(np.arange(601) / 200, [*level, 0.0], strict=True)]
    file = tmp_path / "three.txt"
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return file


@pytest.fixture
def bench(curve_file: Path) -> Iterator[Workbench]:
    """Everything happens within the call."""
    made = Workbench(executors={"store": Inline(), "fit": Inline(), "sweep": Inline()})
    made.open(curve_file)
    assert made.snapshot.problem is None and not made.busy
    yield made
    made.close()


def test_an_edit_is_answered_by_one_snapshot_that_says_all(bench: Workbench) -> None:
    told: list[tuple[Snapshot, Snapshot]] = []
    bench.subscribe(lambda old, new: told.append((old, new)))
    bench.set_n(9)
    assert len(told) == 1
    old, new = told[0]
    assert old.project.phases.n != 9 == new.project.phases.n
    assert new.fit is not None and new.fit.n == 9 == len(new.rows)
    assert bench.history.undo_label == "set 9 phases" and not new.refining
    assert new.run is old.run and new.document is old.document and new.sweep is old.sweep


def test_what_did_not_change_is_not_told(bench: Workbench) -> None:
    told: list[Snapshot] = []
    bench.subscribe(lambda old, new: told.append(new))
    bench.set_n(bench.snapshot.project.phases.n)
    bench.set_model(bench.snapshot.project.phases.model)
    bench.select(None)
    bench.refit()
    assert told == []


@pytest.mark.parametrize(("asked", "kept"), [(0, 1), (-5, 1), (10**9, N_LIMIT)])
def test_n_stays_within_what_can_be_fitted(bench: Workbench, asked: int, kept: int) -> None:
    bench.set_n(asked)
    assert bench.snapshot.project.phases.n == kept


def test_locked_breaks_and_parameters_raise_the_least_n(bench: Workbench) -> None:
    bench.set_n(3)
    for index in (1, 2):
        bench.toggle_lock(index)
    bench.set_n(1)
    assert bench.snapshot.project.phases.n == 3
    bench.set_model("budget")
    fit = bench.snapshot.fit
    assert fit is not None and bench.snapshot.problem is None
    assert bench.least_n == 6 <= bench.snapshot.project.phases.n
    assert set(bench.snapshot.project.phases.locked) <= set(fit.breaks)


def test_n_is_translated_when_its_meaning_changes(bench: Workbench) -> None:
    bench.set_model("linear")
    bench.set_n(4)
    bench.set_model("budget")
    assert bench.snapshot.project.phases.n == 12, "four lines are twelve parameters"
    fit = bench.snapshot.fit
    assert fit is not None
    bench.set_model("constant")
    assert bench.snapshot.project.phases.n == fit.n


def test_breaks_do_not_cross(bench: Workbench) -> None:
    bench.set_n(3)
    fit = bench.snapshot.fit
    assert fit is not None
    bench.move_breakpoint(1, 100.0)
    moved = bench.snapshot.fit
    assert moved is not None
    assert moved.breaks[1] < moved.breaks[2] == fit.breaks[2]
    assert np.all(np.diff(moved.breaks) > 0)


def test_a_drag_starts_from_the_breaks_before_it(bench: Workbench) -> None:
    """Every step of a drag replaces the one before; none adds to it."""
    bench.set_n(3)
    before = bench.snapshot.fit
    assert before is not None
    for time_s in (1.2, 1.5, 1.1):
        bench.drag_breakpoint(1, time_s)
    held = bench.snapshot.fit
    assert held is not None
    assert held.breaks[1] == pytest.approx(1.1) and held.breaks[2] == before.breaks[2]
    bench.cancel_drag()
    assert bench.snapshot.fit is before and not bench.snapshot.preview


@pytest.mark.parametrize("index", [-1, 0, 3, 99])
def test_the_ends_and_what_is_no_break_stay(bench: Workbench, index: int) -> None:
    bench.set_n(3)
    before = bench.snapshot
    for act in (bench.remove_breakpoint, bench.toggle_lock, lambda i: bench.move_breakpoint(i, 1.0)):
        act(index)
    assert bench.snapshot is before


def test_a_file_that_cannot_be_opened_leaves_the_one_that_is(bench: Workbench, tmp_path: Path) -> None:
    before = bench.snapshot
    bench.open(tmp_path / "missing.otf2")
    after = bench.snapshot
    assert after.problem is not None and "missing.otf2" in after.problem.sentence
    assert after.run is before.run and after.fit is before.fit and after.opening is None
    bench.dismiss_problem()
    assert bench.snapshot.problem is None


def test_closing_the_document_leaves_nothing(bench: Workbench) -> None:
    bench.set_n(5)
    bench.close_document()
    assert vars(bench.snapshot) == vars(Snapshot())
    bench.set_n(7)
    bench.undo()
    assert bench.snapshot.fit is None


def test_each_inner_breakpoint_can_be_locked_and_the_last_too(bench: Workbench) -> None:
    bench.set_n(4)
    fit = bench.snapshot.fit
    assert fit is not None
    for index in (1, 2, 3):
        bench.toggle_lock(index)
        assert bench.snapshot.project.phases.locked == tuple(fit.breaks[1 : index + 1])
    for index in (3, 2, 1):
        bench.toggle_lock(index)
        assert bench.snapshot.project.phases.locked == tuple(fit.breaks[1:index])


def test_a_phase_that_is_not_there_is_selected_neither_directly_nor_by_a_view(bench: Workbench) -> None:
    bench.set_n(3)
    bench.select_phase(2)
    assert bench.snapshot.project.view.phase == 2
    bench.keep_view(1, View(span=(0.0, 3.0)))
    bench.select_phase(3)
    assert bench.snapshot.project.view.phase is None
    bench.show_view(1)
    assert bench.snapshot.project.view.phase == 2
    bench.set_n(2)
    bench.show_view(1)
    assert bench.snapshot.project.view.phase is None, "one past the end"


def _by_ends(fit: PhaseFit) -> dict[tuple[float, float], tuple[object, ...]]:
    """All that is said of each phase, by its ends."""
    kept = (fit.degree, fit.coefficients, fit.powers, fit.error, fit.duration)
    return {
        (a, b): tuple(column[k].tobytes() for column in kept)
        for k, (a, b) in enumerate(zip(fit.breaks.tolist(), fit.breaks.tolist()[1:], strict=False))
    }


def _untouched(before: PhaseFit, after: PhaseFit) -> int:
    """How many phases have the same ends; all of them must be the same bit for bit."""
    old, new = _by_ends(before), _by_ends(after)
    same = old.keys() & new.keys()
    assert {ends: old[ends] for ends in same} == {ends: new[ends] for ends in same}
    return len(same)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_moving_one_break_leaves_all_other_phases_as_they_are(data: st.DataObject) -> None:
    """On any curve, of any model, also where ticks are no round number of seconds."""
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    steps = data.draw(st.integers(20, 200))
    start = data.draw(st.sampled_from([0, 10**6, 2**50]))
    edges = start + np.concatenate(([0], np.cumsum(rng.integers(1, 100, steps))))
    level = np.cumsum(rng.integers(-3, 4, steps)) + rng.integers(0, 5, steps)
    curve = StepCurve(edges, level, unit=data.draw(st.sampled_from([1.0, 1e-9, 1 / 3e9])))
    model = data.draw(st.sampled_from(list(MODELS)))
    n = data.draw(st.integers(3, 7)) * (3 if model == "budget" else 1)
    before = best_fit(curve, n, model)
    if before.n < 3 or not np.all(np.diff(before.breaks) > 0):
        return
    index = data.draw(st.integers(1, before.n - 1))
    part = data.draw(st.floats(0.05, 0.95))
    breaks = before.breaks.tolist()
    moved = breaks[index - 1] + part * (breaks[index + 1] - breaks[index - 1])
    degrees = before.degree.tolist()
    degrees[index - 1 : index + 1] = [-1, -1]
    breaks[index] = moved
    after = fit_breakpoints(curve, breaks, model, degrees=degrees, like=before)
    assert _untouched(before, after) == before.n - 2 + 2 * (moved == before.breaks[index])
    assert after.breaks[index] == moved


@pytest.mark.parametrize("model", ["mixed", "budget", "linear"])
def test_edits_of_breaks_touch_only_the_phases_beside_them(
    bench: Workbench, model: str, curve_file: Path, tmp_path: Path
) -> None:
    """The whole way: drag, drop, lock, unlock, add, remove, undo, redo, and what a project keeps."""
    projects = ProjectStore(
        bench, lambda _: None, print, lambda: None, folder=tmp_path / "kept", executor=Inline()
    )
    bench.open(curve_file)
    bench.set_model(model)
    bench.set_n(24 if model == "budget" else 8)
    for _ in range(2):  # from the algorithm's breaks, then from those by hand
        first = bench.snapshot.fit
        assert first is not None and first.n > 4
        n, middle = first.n, float(first.breaks[2:4].mean())
        bench.drag_breakpoint(2, middle)
        assert bench.snapshot.fit is not None and _untouched(first, bench.snapshot.fit) == n - 2
        bench.move_breakpoint(2, middle)
        moved = bench.snapshot.fit
        assert moved is not None and _untouched(first, moved) == n - 2
        bench.toggle_lock(3)
        assert bench.snapshot.project.phases.locked and _untouched(moved, bench.snapshot.fit) == n
        bench.toggle_lock(3)
        bench.add_breakpoint(float(moved.breaks[:2].mean()))
        assert bench.snapshot.fit.n == n + 1 and _untouched(moved, bench.snapshot.fit) == n - 1
        bench.remove_breakpoint(4)
        assert bench.snapshot.fit.n == n and _untouched(moved, bench.snapshot.fit) == n - 3
        for step in (*[bench.undo] * 4, *[bench.redo] * 4, *[bench.undo] * 4):
            step()
            assert _untouched(moved, bench.snapshot.fit) >= n - 3
        assert _by_ends(bench.snapshot.fit) == _by_ends(moved)
    last, asked = bench.snapshot.fit, bench.snapshot.project.phases
    file = tmp_path / "p.phasewright"
    projects.save(file)
    bench.close_document()
    projects.open(file)
    assert bench.snapshot.project.phases == asked
    found = bench.snapshot.fit
    assert found is not None and found.degree.tolist() == last.degree.tolist()
    assert found.breaks.tolist() == last.breaks.tolist()
    assert np.allclose(found.error, last.error, rtol=1e-9)
    projects.close()


def test_degrees_that_are_none_are_refused() -> None:
    curve = StepCurve([0, 1, 2, 3], [1, 2, 3])
    for degrees in ((0,), (0, 3), (0, -2), (0, 0, 0)):
        with pytest.raises(ValueError, match="degrees"):
            fit_breakpoints(curve, (0, 1, 3), "mixed", degrees=degrees)
    assert fit_breakpoints(curve, (0, 1, 3), "mixed", degrees=(2, -1)).degree.tolist() == [2, 1]


def test_every_n_up_to_the_one_in_use_is_fitted(bench: Workbench) -> None:
    """As far as it does not take too long; the suggestion stays what it is."""
    suggestion = bench.snapshot.suggestion
    assert bench.snapshot.sweep is not None and bench.snapshot.sweep.n[-1] == 20
    for n, last in ((33, 40), (34, 40), (90, 160), (190, 200), (300, 200), (5, 200)):
        bench.set_n(n)
        assert bench.snapshot.sweep.n[-1] == last
        assert bench.snapshot.fit is not None and bench.snapshot.fit.requested == n
        assert bench.snapshot.suggestion is suggestion


def test_a_long_fit_can_be_given_up_and_asked_for_again(curve_file: Path) -> None:
    """It stands among the tasks; what is given up leaves the last fit that is known, as a step of its own."""
    fitting = Later()
    bench = Workbench(executors={"store": Inline(), "fit": fitting, "sweep": Later()})
    bench.open(curve_file)
    before = bench.snapshot
    bench._fits.pace["mixed"] = 1.0  # as of a curve of very many steps
    bench.set_n(150)
    (task, give_up), *_ = bench.running_fits.values()
    assert task.title == "Fitting 150 phases" and bench.snapshot.refining
    job = bench._fitting.current
    assert job is not None
    give_up()
    assert job.stop[0] == 1, "the kernel ends"
    assert "fit" not in bench.running_fits and not bench.snapshot.refining
    assert bench.snapshot.project.phases == before.project.phases and bench.snapshot.fit is not None
    assert bench.snapshot.fit.n == before.project.phases.n and bench.history.undo_label == "give up the fit"
    fitting.run()
    assert bench.snapshot.fit.n == before.project.phases.n, "what still comes is not shown"
    bench.history.undo()
    assert bench.snapshot.refining
    fitting.run()
    assert bench.snapshot.fit.n == 150 and not bench.running_fits.get("fit")
    bench.close()


def test_fitting_every_n_can_be_given_up(curve_file: Path) -> None:
    """And is not begun again until it is asked of another model."""
    sweeping = Later()
    bench = Workbench(executors={"store": Inline(), "fit": Inline(), "sweep": sweeping})
    bench.open(curve_file)
    bench.set_model("linear")
    (task, give_up) = bench.running_fits["sweep"]
    assert task.title == "Fitting every n" and bench.snapshot.suggestion is None
    give_up()
    assert not bench.busy and bench.snapshot.sweep_cancelled
    bench.set_n(5)
    assert not bench.busy and bench.snapshot.fit is not None and bench.snapshot.fit.n == 5
    bench.set_model("constant")
    assert "sweep" in bench.running_fits and not bench.snapshot.sweep_cancelled
    sweeping.run()
    assert bench.snapshot.suggestion is not None
    bench.close()

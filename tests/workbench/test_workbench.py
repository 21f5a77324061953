"""The door of the window, without a window: what is answered at once, and what survives a failure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from desktop.workbench.workbench import N_LIMIT, Snapshot, Workbench
from tests.inline import Inline


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
    assert new.undo == "set 9 phases" and not new.refining
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
    bench.move_break(1, 100.0)
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
        bench.drag_break(1, time_s)
    held = bench.snapshot.fit
    assert held is not None
    assert held.breaks[1] == pytest.approx(1.1) and held.breaks[2] == before.breaks[2]
    bench.cancel_drag()
    assert bench.snapshot.fit is before and not bench.snapshot.preview


@pytest.mark.parametrize("index", [-1, 0, 3, 99])
def test_the_ends_and_what_is_no_break_stay(bench: Workbench, index: int) -> None:
    bench.set_n(3)
    before = bench.snapshot
    for act in (bench.remove_break, bench.toggle_lock, lambda i: bench.move_break(i, 1.0)):
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
    bench.keep_view(1, (0.0, 3.0))
    bench.select_phase(3)
    assert bench.snapshot.project.view.phase is None
    bench.show_view(1)
    assert bench.snapshot.project.view.phase == 2
    bench.set_n(2)
    bench.show_view(1)
    assert bench.snapshot.project.view.phase is None, "one past the end"

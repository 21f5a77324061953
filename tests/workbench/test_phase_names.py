"""What phases are called, and fits with and without structure events, as the window's door has them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from desktop.core.curve import StepCurve
from desktop.core.landmarks import Stretches
from desktop.core.phase_names import MESSAGES, doings, phase_names
from desktop.core.phases import fit
from desktop.data.material import gather
from desktop.data.store import open_store
from desktop.resources import samples
from desktop.workbench import presenting
from desktop.workbench.workbench import Workbench
from tests.inline import Inline, Later
from tests.programs.catalogue import lu
from tests.programs.simulated import simulate, write


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    made = Workbench(executors={name: Inline() for name in ("store", "fit", "sweep", "statistics")})
    made.open(write(simulate(lu, 8, 0.1, 1, "lu"), tmp_path / "lu.h5"))
    yield made
    made.close()


def test_the_first_picture_is_the_suggested_one(bench: Workbench) -> None:
    shown = bench.snapshot
    assert shown.fit is not None and shown.suggestion is not None and shown.suggestion.breakpoints
    assert shown.project.phases.suggested and shown.fit.note == "breakpoints as suggested"
    assert shown.fit.breaks[1:-1].tolist() == [one.time_s for one in shown.suggestion.breakpoints]
    bench.step_n(1)
    assert not bench.snapshot.project.phases.suggested and bench.snapshot.fit.n == shown.fit.n + 1
    bench.use_suggestion()
    assert bench.snapshot.fit.breaks.tolist() == shown.fit.breaks.tolist()


def test_the_curve_alone_is_one_switch_away(bench: Workbench) -> None:
    bench.set_pure(True)
    shown = bench.snapshot
    assert shown.suggestion is not None and shown.suggestion.breakpoints is None
    for n in (2, 5, 9):
        bench.set_n(n)
        best = fit(shown.run.curve, n, "mixed")
        assert bench.snapshot.fit.breaks == pytest.approx(best.breaks, rel=1e-12)
    bench.set_pure(False)
    assert bench.snapshot.suggestion.breakpoints


def test_a_fit_has_its_structure_events_before_every_n_is_fitted(tmp_path: Path) -> None:
    sweeps, by_name = Later(), {one.path.parent.name: one.path for one in samples()}
    made = Workbench(executors={"store": Inline(), "fit": Inline(), "sweep": sweeps})
    made.open(by_name["wave1d_8_eztrace"])
    made.set_n(18)
    made.set_model("linear")
    shown = made.snapshot
    assert shown.sweep is None and not shown.refining
    events = shown.run.structure.landmarks(shown.run.curve)
    asked = shown.project.phases.fit(shown.run.curve, events)
    assert shown.fit.breaks.tolist() == asked.breaks.tolist()
    assert shown.fit.breaks.tolist() != fit(shown.run.curve, 18, "linear").breaks.tolist()
    sweeps.run()
    assert made.snapshot.sweep.fit(18).breaks == pytest.approx(shown.fit.breaks, abs=1e-6)
    made.close()


def test_a_hidden_annotation_is_a_structure_event_of_reports_too(bench: Workbench) -> None:
    bench.set_n(4)
    free = bench.snapshot.fit
    wide = int(np.argmax(free.breakpoint_high[1:-1] - free.breakpoint_low[1:-1])) + 1
    time_s = float(0.3 * free.breakpoint_low[wide] + 0.7 * free.breakpoint_high[wide])
    bench.annotate("halo", time_s)
    bench.change_annotation(0, hidden=True)
    shown = bench.snapshot
    assert shown.fit.breaks[wide] == time_s != free.breaks[wide]
    with open_store(shown.document.store) as store:
        material, _ = gather(presenting.subject(shown.project, store, "lu"))
    assert material.marks == () and material.fit.breaks == pytest.approx(shown.fit.breaks, rel=1e-12)


def test_phases_of_mixed_degrees_may_be_periodic_too(bench: Workbench) -> None:
    bench.set_n(6)
    bench.set_also("periodic")
    shown = bench.snapshot
    assert shown.fit.basis is not None and shown.fit.basis.model == "periodic"
    period = shown.fit.basis.seconds
    bench.set_seconds(2 * period)
    assert bench.snapshot.fit.basis.seconds == pytest.approx(2 * period)
    bench.set_model("budget")
    assert bench.snapshot.fit.basis is None and bench.project.phases.also == ""
    bench.history.undo()
    assert bench.project.phases.also == "periodic"


def test_a_phase_is_named_by_the_user_and_keeps_it(bench: Workbench) -> None:
    found = bench.snapshot.fit.names
    assert any(name.startswith("factor") for name in found)
    bench.name_phase(1, "the heart of it")
    assert bench.snapshot.fit.names[1] == bench.snapshot.rows[1].name == "the heart of it"
    bench.drag_breakpoint(1, bench.snapshot.fit.breaks[1] * 1.01)
    assert bench.snapshot.fit.names[1] == "the heart of it"
    bench.cancel_drag()
    bench.name_phase(1, "")
    assert bench.snapshot.fit.names == found
    bench.history.undo()
    assert bench.snapshot.fit.names[1] == "the heart of it"
    bench.history.undo()
    assert bench.snapshot.fit.names == found


def test_neighbours_of_one_name_are_told_apart_by_what_is_sent() -> None:
    ones, ten = np.ones(2, np.int64), np.full(2, 10.0)
    whole = Stretches(np.zeros(2), ten, np.zeros(2, np.int64), np.arange(2), ones, ten, 2)
    times, ones = np.tile(4 + 0.1 * np.arange(31), 2), np.ones(62, np.int64)
    sends = Stretches(times, times, -ones, np.repeat([0, 1], 31), ones, np.zeros(62), 2)
    stretches = whole.beside(sends)
    curve = StepCurve([0.0, 10.0], [2.0], 2)
    about = {0: ("main", "program"), -1: ("sending to higher ranks", MESSAGES)}
    known = doings(stretches, curve, about.__getitem__)
    assert phase_names(known, [0, 4, 7, 10]) == (
        "computing 100 %", "computing 100 %, sending to higher ranks", "computing 100 %"
    )  # fmt: skip


def test_names_state_no_other_computing_than_the_table() -> None:
    """Every rank begins at another time: before, it is measured at nothing and computes nothing."""
    made = Workbench(executors={name: Inline() for name in ("store", "fit", "sweep", "statistics")})
    try:
        made.open(next(one for one in samples() if "EZTrace" in one.title).path)
        if made.snapshot.problem is not None and "otf2" in made.snapshot.problem.sentence.lower():
            pytest.skip("the OTF2 library has no wheel for this Python")
        rows = []
        for n in (2, 3, 4, 6):
            made.set_n(n)
            rows += made.snapshot.rows
        said = [(row, found) for row in rows if (found := re.match(r"computing (\d+) %", row.name))]
        assert said and all(abs(float(found[1]) - 100 * row.efficiency) < 1 for row, found in said)
        waiting = [row for row in rows if row.name.startswith("MPI_Barrier")]
        assert waiting and all(row.efficiency < 0.005 for row in waiting)
    finally:
        made.close()

"""Runs on one axis: exact differences, areas, aligned phases, and the table of what differs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from desktop.core.contrast import AXES, Phased, align, areas, difference, place, table
from desktop.core.curve import StepCurve
from desktop.core.matching import NONE
from desktop.core.phases import fit, fit_breakpoints
from tests.strategies import curves, small_curves


def phased(name: str, curve: StepCurve, n: int = 3, model: str = "constant") -> Phased:
    return Phased(name, curve, fit(curve, n, model))


def held(*parts: tuple[float, float], name: str = "a", capacity: float = 8.0, start: float = 0.0) -> Phased:
    """One phase for each level, held for a time."""
    widths, levels = zip(*parts, strict=True)
    edges = start + np.append(0.0, np.cumsum(widths))
    curve = StepCurve(edges, levels, capacity)
    return Phased(name, curve, fit_breakpoints(curve, edges.tolist(), "constant"))


runs = st.builds(phased, st.just("x"), curves(min_steps=3, max_steps=25), st.integers(1, 4))


@settings(deadline=None, max_examples=150)
@given(small_curves(), small_curves(), st.sampled_from([1.0, 0.5]), st.integers(0, 5))
def test_a_difference_is_exact(a: StepCurve, b: StepCurve, unit: float, late: int) -> None:
    b = StepCurve(b.edges + late, b.level, unit=unit)
    apart = difference(a, b)
    t = np.arange(-1, 70) / 4 + 0.01
    assert np.array_equal(apart.at(t), b.at(t) - a.at(t)), "0 outside of a run"
    assert apart.integral == pytest.approx(b.integral - a.integral)
    back = difference(b, a)
    assert np.array_equal(back.at(t), -apart.at(t))
    assert (np.diff(apart.level) != 0).all(), "equal neighbours are one"
    found = areas(apart)
    assert found.signed == pytest.approx(apart.integral, abs=1e-9)
    assert found.more + found.less == pytest.approx(np.abs(apart.level) @ np.diff(apart.edges) * apart.unit)


@settings(deadline=None, max_examples=60)
@given(runs, st.sampled_from(AXES), st.booleans())
def test_a_run_does_not_differ_from_itself(run: Phased, axis: str, share: bool) -> None:
    placed = place(align([run, run]), axis, share=share)
    (apart,) = (d for d in placed.differences if d is not None)
    assert apart.level.tolist() == [0.0]
    assert placed.areas[1] is not None and placed.areas[1].more == placed.areas[1].less == 0


FLAT = phased("x", StepCurve([0, 1, 2, 3], [0, 0, 0]), 1)
# A break between whole ticks, so far from 0 that the time of the break has no digits for the part of a tick.
FAR = phased("x", StepCurve(np.cumsum([0, 1, 2.0**40, 1, 1]), [0, 0, 1, 0]), 2)


@settings(deadline=None, max_examples=40)
@example(FLAT, FLAT, FAR, "phases", 0, False)
@given(runs, runs, runs, st.sampled_from(AXES), st.integers(0, 2), st.booleans())
def test_curves_keep_what_they_hold(
    a: Phased, b: Phased, c: Phased, axis: str, reference: int, share: bool
) -> None:
    three = [a, b, c]
    alignment = align(three, reference)
    placed = place(alignment, axis, share=share)
    for k, run in enumerate(three):
        curve, spans = placed.curves[k], placed.spans[k]
        assert spans.shape == (run.fit.n, 2) and (spans[1:, 0] >= spans[:-1, 1] - 1e-9 * placed.end).all()
        height = (run.curve.capacity or 1.0) if share else 1.0
        # A place on a long axis is as exact as its own digits; so is every step of the curve.
        rounding = 1e-15 * placed.end * float(run.curve.level.max()) * (run.curve.segments + 2) / height
        length = {"normalised": run.curve.duration}.get(axis, 1.0)
        if axis != "phases":
            assert curve.integral == pytest.approx(run.curve.integral / length / height, 1e-9, rounding)
            continue
        # Each phase keeps its mean, over the length of its place.
        wide = spans[:, 1] - spans[:, 0]
        assert curve.integral == pytest.approx(wide @ run.fit.coefficients[:, 0] / height, 1e-6, rounding)
    for d, found in zip(placed.differences, placed.areas, strict=True):
        if d is not None and found is not None:
            assert found.signed == pytest.approx(d.integral, rel=1e-6, abs=1e-6 * (1 + abs(found.more)))
    assert placed.differences[reference] is None


@settings(deadline=None, max_examples=40)
@given(runs, runs, runs, st.integers(0, 2))
def test_every_phase_has_one_row_in_order(a: Phased, b: Phased, c: Phased, reference: int) -> None:
    alignment = align([a, b, c], reference)
    for k, run in enumerate((a, b, c)):
        column = alignment.rows[:, k]
        assert column[column != NONE].tolist() == list(range(run.fit.n))
    assert (alignment.rows != NONE).any(axis=1).all()
    labels = [alignment.label(r) for r in range(len(alignment.rows))]
    assert labels[0].startswith("phase ")


def test_gaps_stand_where_a_run_has_no_such_phase() -> None:
    a = held((4, 8), (6, 2), (5, 6))
    b = held((8, 8), (12, 2), (6, 4), (10, 6), name="b", start=100.0)
    alignment = align([a, b])
    assert alignment.rows.tolist() == [[0, 0], [1, 1], [NONE, 2], [2, 3]]
    assert [alignment.label(r) for r in range(4)] == ["phase 1", "phase 2", "phase 3 of b", "phase 3"]
    placed = place(alignment, "phases")
    assert placed.spans[0].tolist() == [[0, 4], [4, 10], [16, 21]]
    assert placed.spans[1].tolist() == [[0, 4], [4, 10], [10, 16], [16, 21]]
    assert placed.curves[0].at([12.0]).tolist() == [0], "the reference is not there"
    (_, apart) = placed.differences
    assert apart is not None
    assert (apart.edges.tolist(), apart.level.tolist()) == ([0, 10, 16, 21], [0, 4, 0])


def test_a_run_too_short_for_the_axis_is_still_there() -> None:
    a, b = held((1e-12, 2)), held((1e9, 3), (1e9, 5), name="b")
    placed = place(align([a, b], fixed={1: [(0, NONE)]}), "phases")
    assert placed.spans[0].tolist() == [[2e9, 2e9]] and placed.curves[0].level.tolist() == [2]


def test_the_other_axes_are_what_they_say() -> None:
    a, b = held((4, 8), (6, 2)), held((8, 8), (12, 2), name="b", start=100.0)
    alignment = align([a, b])
    absolute, start, normal = (place(alignment, axis) for axis in AXES[:3])
    assert (absolute.start, absolute.end) == (0, 120) and absolute.curves[1] is b.curve
    assert (start.start, start.end) == (0, 20) and start.curves[0] is a.curve
    assert start.spans[1].tolist() == [[0, 8], [8, 20]]
    assert (normal.start, normal.end) == (0, 1)
    assert normal.areas[1] is not None and normal.areas[1].more == normal.areas[1].less == 0
    found = start.areas[1]
    assert found is not None and found.signed == b.curve.integral - a.curve.integral
    assert found.reference == a.curve.integral
    wider = Phased("c", StepCurve(a.curve.edges, a.curve.level * 2, 16), a.fit)
    shared = place(align([a, wider]), "start", share=True)
    assert shared.areas[1] is not None and shared.areas[1].more == 0, "8 of 8 is as much as 16 of 16"


@settings(deadline=None, max_examples=40)
@given(runs, runs, st.sampled_from(AXES), st.booleans(), st.integers(1, 3))
def test_other_phases_of_the_same_curves_are_placed_as_if_anew(
    a: Phased, b: Phased, axis: str, share: bool, n: int
) -> None:
    before = place(align([a, b]), axis, share=share)
    other = align([phased("x", a.curve, n), b])
    quick, anew = place(other, axis, share=share, before=before), place(other, axis, share=share)
    for one, two in zip(
        (*quick.curves, quick.differences[1]), (*anew.curves, anew.differences[1]), strict=True
    ):
        assert one is not None and two is not None
        assert np.array_equal(one.edges, two.edges) and np.array_equal(one.level, two.level)
    assert all(np.array_equal(p, q) for p, q in zip(quick.spans, anew.spans, strict=True))
    assert quick.areas == anew.areas and (quick.start, quick.end) == (anew.start, anew.end)
    if axis != "phases":
        assert quick.differences is before.differences, "nothing is subtracted again"


def test_the_table_says_how_they_differ() -> None:
    a = held((4, 8), (6, 2), (5, 6))
    b = held((8, 8), (12, 3), (6, 4.5), (10, 6), name="b", capacity=16)
    alignment = align([a, b], fixed={1: [(0, 0), (1, 1), (2, 3)]})
    cells = {(cell.label, cell.run): cell for cell in table(alignment)}
    assert len(cells) == 2 * (4 + 1)
    grown = cells["phase 2", "b"]
    assert (grown.phase, grown.start_s, grown.duration_s, grown.mean, grown.work_s) == (2, 8, 12, 3, 36)
    assert (grown.duration_difference_s, grown.duration_ratio) == (6, 2)
    assert (grown.mean_difference, grown.mean_ratio, grown.work_ratio) == (1, 1.5, 3)
    assert grown.efficiency == 3 / 16 and grown.efficiency_difference == pytest.approx(3 / 16 - 2 / 8)
    assert 0 <= grown.alike <= 1
    missing = cells["phase 3 of b", "a"]
    assert missing.phase is None and np.isnan(missing.mean)
    alone = cells["phase 3 of b", "b"]
    assert alone.phase == 3 and np.isnan(alone.duration_ratio) and alone.duration_s == 6
    whole = cells["run", "b"]
    assert (whole.phase, whole.duration_s, whole.duration_ratio) == (0, 36, 36 / 15)


def test_what_cannot_be_compared_is_said() -> None:
    a = held((4, 8), (6, 2))
    with pytest.raises(ValueError, match="two runs or more"):
        align([a])
    with pytest.raises(ValueError, match="no run 3"):
        align([a, a], 2)
    with pytest.raises(ValueError, match="the axis is"):
        place(align([a, a]), "logarithmic")

"""The moment tree by itself: memory, mirror symmetry, and that `reach` goes exactly as far as it may."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.core.curve import StepCurve
from desktop.core.partition import go_on, set_out
from desktop.core.tree import moment_tree, reach
from tests.core.moments import moments
from tests.strategies import curves

some = settings(max_examples=80, deadline=None)


def mirrored(curve: StepCurve) -> StepCurve:
    return StepCurve(-curve.edges[::-1], curve.level[::-1])


def noisy(m: int) -> StepCurve:
    rng = np.random.default_rng(m)
    edges = np.concatenate(([0.0], np.cumsum(rng.integers(1, 1000, m)))).astype(float)
    return StepCurve(edges, rng.integers(0, 64, m).astype(float))


def test_the_tree_is_built_once_and_costs_five_bytes_per_step() -> None:
    curve = noisy(100_000)
    tree = moment_tree(curve)
    assert moment_tree(curve) is tree
    assert tree.nodes.nbytes <= 5 * curve.segments


@pytest.mark.parametrize("m", [1, 2, 15, 16, 17, 31, 32, 33, 255, 256, 1000])
def test_the_root_agrees_with_least_squares_by_numpy(m: int) -> None:
    """Legendre coefficients from the integrals of h P_d, errors from Parseval, where these are accurate."""
    curve = noisy(m)
    s = 2 * curve.edges / curve.edges[-1] - 1
    primitive = np.stack([s, s**2 / 2, s**3 / 2 - s / 2])
    c = np.array([1, 3, 5]) * (np.diff(primitive) @ curve.level) / 2
    found = moments(curve, (0, 0.0), (m, 0.0))
    assert found.width == curve.edges[-1]
    np.testing.assert_allclose(found.c, c, rtol=0, atol=1e-12 * 64)
    square = float(np.diff(curve.edges) @ curve.level**2)
    expected = square - np.cumsum(c**2 / [1, 3, 5]) * curve.edges[-1]
    np.testing.assert_allclose(found.error, expected, rtol=1e-9, atol=1e-11 * square)


@some
@given(curves(min_steps=2, max_steps=90), st.integers(0, 2), st.floats(1e-6, 1.5), st.data())
def test_reach_takes_all_that_the_tolerance_allows_and_no_more(
    curve: StepCurve, k: int, part: float, data: st.DataObject
) -> None:
    tree = moment_tree(curve)
    m = curve.segments
    start = data.draw(st.integers(0, m - 1))
    offset = float(curve.edges[start + 1] - curve.edges[start]) * data.draw(st.sampled_from([0.0, 0.25, 0.5]))
    e = part * moments(curve, (0, 0.0), (m, 0.0)).error[k]
    j, o, error, width, *_ = reach(tree, k, 1, start, offset, m, 0.0, e)
    assert error <= e * (1 + 1e-12)
    assert width > 0
    # What `reach` says it took is what it took, by a walk with another order of merges.
    again = moments(curve, (start, offset), (j, o))
    assert again.width == pytest.approx(width, rel=1e-12)
    assert again.error[k] == pytest.approx(
        error, rel=1e-10, abs=1e-14 * float(np.ptp(curve.level)) ** 2 * width
    )
    if (j, o) != (m, 0.0):
        # A little more of the step it stopped in is too much; the error may grow slowly, so by enough.
        rest = float(curve.edges[j + 1] - curve.edges[j]) - o
        more = moments(curve, (start, offset), (j + 1, 0.0)).error[k]
        assert rest > 0 and more >= e * (1 - 1e-12)


@some
@given(curves(min_steps=2, max_steps=90), st.integers(0, 2), st.floats(1e-6, 1.0))
def test_going_left_is_going_right_on_the_mirrored_curve(curve: StepCurve, k: int, part: float) -> None:
    tree, other = moment_tree(curve), moment_tree(mirrored(curve))
    m = curve.segments
    e = part * moments(curve, (0, 0.0), (m, 0.0)).error[k]
    left = reach(tree, k, -1, m, 0.0, 0, 0.0, e)
    right = reach(other, k, 1, 0, 0.0, m, 0.0, e)
    assert left[3] == pytest.approx(right[3], rel=1e-6)
    assert left[2] == pytest.approx(right[2], rel=1e-10, abs=1e-12 * e)


@some
@given(curves(min_steps=2, max_steps=90), st.floats(1e-6, 1.5), st.floats(0.1, 1.5), st.data())
def test_walks_begun_together_and_ended_early_know_what_whole_ones_know(
    curve: StepCurve, part: float, goal: float, data: st.DataObject
) -> None:
    """On which side of the goal a walk ends and, gone on with, where: as `reach` of each degree."""
    tree = moment_tree(curve)
    m = curve.segments
    start = data.draw(st.integers(0, m - 1))
    e = part * moments(curve, (0, 0.0), (m, 0.0)).error[2]
    walks, count = np.empty((3, 8)), np.zeros(2, np.int64)
    last, tail = set_out(tree, e, start, 0.0, m, 0.0, walks, count)
    for d, share in enumerate((0.5, 0.75, 1.0)):
        j, o, error, width, *_ = reach(tree, d, 1, start, 0.0, m, 0.0, share * e)
        wanted = goal * width
        early = go_on(tree, e, d, last, tail, m, 0.0, wanted, walks, count)
        if not np.isclose(goal, 1.0, rtol=1e-6):
            assert (early > wanted) == (width > wanted)
        assert early <= width * (1 + 1e-6)
        assert go_on(tree, e, d, last, tail, m, 0.0, np.nan, walks, count) == pytest.approx(width, rel=1e-6)
        assert walks[d, 6] == pytest.approx(error, rel=1e-9, abs=1e-12 * e)
        assert ((walks[d, 0], walks[d, 1]) == (m, 0.0)) == ((j, o) == (m, 0.0))


def test_an_offset_from_the_right_edge_keeps_its_digits_beside_a_long_step() -> None:
    """0.001 ticks left of a step that is 2^50 wide: a double of the time could not hold it."""
    curve = StepCurve([0.0, 2.0**50, 2.0**50 + 1], [0.0, 3.0])
    found = moments(curve, (1, -0.001), (2, 0.0))
    assert found.width == pytest.approx(1.001, rel=1e-15)
    assert found.error[0] == pytest.approx(9 * 0.001 / 1.001, rel=1e-14)


def test_a_cap_inside_a_step_is_reached_exactly() -> None:
    curve = noisy(200)
    tree = moment_tree(curve)
    for s, start, cap in ((1, (3, 0.5), (150, 0.25)), (-1, (150, 0.25), (3, 0.5)), (1, (3, 0.25), (3, 0.5))):
        j, o, *_ = reach(tree, 2, s, *start, *cap, float(np.inf))
        assert (j, o) == cap

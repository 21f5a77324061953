"""Phases matched by order and shape: identity, order, scale, gaps, and what is fixed by hand."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.core.curve import StepCurve
from desktop.core.matching import GAP, NONE, Shapes, match, pair_costs, shapes
from desktop.core.phases import fit
from desktop.core.spaces import Basis
from tests.strategies import curves

shares = st.floats(0.01, 1.0)


@st.composite
def phases(draw: st.DrawFn, most: int = 6) -> Shapes:
    n = draw(st.integers(1, most))
    form = draw(st.lists(st.tuples(st.floats(0, 1), st.floats(-0.5, 0.5), st.floats(-0.3, 0.3)), min_size=n,
                         max_size=n))  # fmt: skip
    time, work = (np.array(draw(st.lists(shares, min_size=n, max_size=n))) for _ in range(2))
    return Shapes(np.array(form), time / time.sum(), work / work.sum())


def constant(*parts: tuple[float, float], capacity: float = 8.0) -> StepCurve:
    """Levels, each held for a time."""
    widths, levels = zip(*parts, strict=True)
    return StepCurve(np.append(0.0, np.cumsum(widths)), levels, capacity)


def of(curve: StepCurve, n: int) -> Shapes:
    return shapes(curve, fit(curve, n, "constant"))


def cheapest(a: Shapes, b: Shapes) -> float:
    """By trying all ways to choose equally many phases of both, in order."""
    costs, best = pair_costs(a, b), np.inf
    for k in range(min(a.n, b.n) + 1):
        gaps = GAP * (a.n + b.n - 2 * k)
        for rows in combinations(range(a.n), k):
            for columns in combinations(range(b.n), k):
                best = min(best, gaps + sum(costs[i, j] for i, j in zip(rows, columns, strict=True)))
    return best


@settings(deadline=None, max_examples=150)
@given(phases(), phases())
def test_it_is_the_cheapest_way_that_keeps_the_order(a: Shapes, b: Shapes) -> None:
    found = match(a, b)
    assert found.cost == pytest.approx(cheapest(a, b))
    partners = found.of_a[found.of_a != NONE]
    assert (np.diff(partners) > 0).all(), "partners keep their order"
    for i, j in enumerate(found.of_a):
        assert j == NONE or found.of_b[j] == i
    assert (found.of_a != NONE).sum() == (found.of_b != NONE).sum()
    costs = pair_costs(a, b)
    told = sum(costs[i, j] for i, j in enumerate(found.of_a) if j != NONE)
    told += GAP * ((found.of_a == NONE).sum() + (found.of_b == NONE).sum())
    assert found.cost == pytest.approx(told)
    other = match(b, a)
    assert other.cost == pytest.approx(found.cost), "neither run is the first"


@settings(deadline=None, max_examples=60)
@given(curves(min_steps=6), st.integers(1, 6), st.sampled_from(["constant", "linear", "quadratic"]))
def test_a_run_matches_itself(curve: StepCurve, n: int, model: str) -> None:
    mine = shapes(curve, fit(curve, n, model))
    found = match(mine, mine)
    assert found.cost == 0 and found.of_a.tolist() == list(range(mine.n))
    assert (found.alike == 1).all()


@settings(deadline=None, max_examples=60)
@given(curves(min_steps=6), st.integers(1, 6), st.sampled_from([2.0, 0.5, 1024.0]))
def test_durations_and_processors_may_scale(curve: StepCurve, n: int, factor: float) -> None:
    """Twice as long on twice as many processors is the same shape."""
    larger = StepCurve(curve.edges * factor, curve.level * 2, curve.capacity * 2, curve.unit)
    one, other = fit(curve, n, "constant"), fit(larger, n, "constant")
    a, b = shapes(curve, one), shapes(larger, other)
    found = match(a, b)
    assert found.of_a.tolist() == list(range(a.n))
    assert found.cost == pytest.approx(0, abs=1e-6)


def test_an_inserted_phase_leaves_a_gap() -> None:
    a = constant((4, 8), (6, 2), (5, 6))
    b = constant((4, 8), (6, 2), (3, 4), (5, 6))
    found = match(of(a, 3), of(b, 4))
    assert found.of_a.tolist() == [0, 1, 3] and found.of_b.tolist() == [0, 1, NONE, 2]
    turned = match(of(b, 4), of(a, 3))
    assert turned.of_a.tolist() == [0, 1, NONE, 2]
    assert np.isnan(turned.alike[2]) and (turned.alike[[0, 1, 3]] > 0.8).all()


def test_a_phase_that_grew_is_still_the_same() -> None:
    a = of(constant((4, 8), (6, 2), (5, 6)), 3)
    b = of(constant((4, 8), (30, 2), (5, 6)), 3)
    found = match(a, b)
    assert found.of_a.tolist() == [0, 1, 2]
    assert found.alike[1] < 1


def test_slopes_tell_phases_of_one_level_apart() -> None:
    t = np.arange(41.0)
    up, down = np.linspace(0, 8, 40), np.linspace(8, 0, 40)
    a, b = (StepCurve(t, level, 8) for level in (up, down))
    rising, falling = (shapes(c, fit(c, 1, "linear")) for c in (a, b))
    assert pair_costs(rising, falling)[0, 0] == pytest.approx(2 * 4 / 8 / np.sqrt(3), rel=0.03)
    assert match(rising, falling).of_a.tolist() == [NONE]


@settings(deadline=None, max_examples=100)
@given(phases(), phases(), st.data())
def test_what_is_fixed_holds_and_the_rest_is_the_best(a: Shapes, b: Shapes, data: st.DataObject) -> None:
    i = data.draw(st.integers(0, a.n - 1))
    j = data.draw(st.integers(NONE, b.n - 1))
    found = match(a, b, [(i, j)])
    assert found.of_a[i] == j
    assert found.cost >= match(a, b).cost - 1e-12
    again = match(a, b, list(enumerate(found.of_a)))
    assert again.of_a.tolist() == found.of_a.tolist(), "all of it by hand is the same"
    lonely = match(a, b, [(NONE, max(j, 0))])
    assert lonely.of_b[max(j, 0)] == NONE


def test_what_cannot_hold_is_said() -> None:
    a = of(constant((4, 8), (6, 2), (5, 6)), 3)
    for wrong in ([(0, 1), (1, 0)], [(0, 1), (1, 1)], [(0, 1), (0, NONE)]):
        with pytest.raises(ValueError, match="cross"):
            match(a, a, wrong)
    with pytest.raises(ValueError, match="no phase 4 in the first run"):
        match(a, a, [(3, 0)])
    with pytest.raises(ValueError, match="no phase 10 in the second"):
        match(a, a, [(0, 9)])


def test_an_idle_run_has_no_work_to_share() -> None:
    idle = of(constant((4, 0), (6, 0)), 1)
    assert match(idle, idle).cost == 0


def test_phases_of_other_functions_are_matched_by_their_trend() -> None:
    """Where a period begins is no matter, and neither are the sizes of functions that are no polynomials."""
    t = np.arange(4000)
    level = 4 + 2 * np.sin(2 * np.pi * t / 40) + 6 * (t >= 2000)
    one, other = (
        StepCurve(np.arange(4001.0) * 1e-3, np.roll(level[:2000], shift).tolist() + level[2000:].tolist(), 16)
        for shift in (0, 13)
    )
    for model, seconds in (("periodic", 0.04), ("saturation", 0.01)):
        basis = Basis.of(model, seconds)
        a, b = (shapes(c, fit(c, 2, model, basis=basis)) for c in (one, other))
        assert match(a, b).of_a.tolist() == [0, 1]
        assert a.form == pytest.approx(shapes(one, fit(one, 2, "quadratic")).form, abs=0.05)
        assert match(a, shapes(other, fit(other, 2, "quadratic"))).alike.min() > 0.8

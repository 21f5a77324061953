"""Breakpoints where averages change: against steps that are known, and partitions counted out one by one."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.core.averages import SHORTEST, _partition, changes, parts
from desktop.core.curve import StepCurve
from desktop.data.store import open_store
from desktop.data.utilization import build
from tests.benchmarks.watched_phases import INSTANTS, LEAST, grown, least_error, scored
from tests.programs.simulated import simulate, write
from tests.programs.steps import stepped


def curve_of(level: np.ndarray, capacity: float = 8.0) -> StepCurve:
    return StepCurve(np.arange(level.size + 1) * 1e6, level, capacity, 1e-9)


@pytest.mark.parametrize(
    ("kind", "steps", "ranks"),
    [("steady", 5, 8), ("in step", 1, 8), ("in step", 5, 16), ("apart", 3, 8), ("amplitude", 3, 8)],
)
def test_steps_are_found_while_a_run_grows(kind: str, steps: int, ranks: int, tmp_path: Path) -> None:
    run = simulate(stepped(kind, steps, 10.0, 0.05), ranks, 0.1, 7)
    with open_store(write(run, tmp_path / "run.h5")) as store:
        whole = build(store).curve()
    truth = tuple(t for _, t in run.truth)
    before = np.zeros(6, int)
    for instant in INSTANTS:
        until = instant * whole.duration
        curve = grown(whole, until)
        _, right, near, hits, known, false = scored(changes(curve, 20).tolist(), truth, until)
        assert near and hits == known, (instant, truth)
        assert right or (kind == "apart" and false <= 1), instant  # whose ranks begin one after the other
        before += scored(least_error(curve), truth, until)
    assert before[3] < before[4] or steps == 1, "what fits of least error miss"


@pytest.mark.parametrize("stretches", [*range(5, 16), 18])
def test_regular_steps_are_no_swings(stretches: int) -> None:
    """At the sixth high stretch all breakpoints once vanished."""
    level = np.repeat(np.where(np.arange(stretches) % 2, 1.0, 7.0), 16384 // stretches)
    ends = np.arange(1, stretches) * (16384 // stretches) * 1e-3
    times = changes(curve_of(level), 20)
    assert times.size <= ends.size + 1, "a part that a step goes through may be taken for a slope"
    assert all(np.abs(times - end).min() < 1e-6 for end in ends)


def test_a_step_is_known_soon() -> None:
    level = np.where(np.arange(8000) % 40 < 30, 8.0, 1.0)
    after = np.where(np.arange(8000) % 40 < 10, 8.0, 1.0)
    known = round(8000 * LEAST)
    (found,) = changes(curve_of(np.concatenate([level, after[:known]])), 20)
    assert found == pytest.approx(8.0, abs=0.04)


@settings(deadline=None)  # the kernels may have to be compiled
@given(
    st.lists(st.tuples(st.integers(15, 40), st.integers(0, 5)), min_size=1, max_size=5),
    st.integers(0, 2**16),
    st.sampled_from([20, 70, 200]),
)
def test_levels_with_noise(steps: list[tuple[int, int]], seed: int, fine: int) -> None:
    heights = np.cumsum([0, *(1 + step for _, step in steps[1:])]) % 7 + 0.5
    widths = np.array([width for width, _ in steps]) * fine
    level = np.repeat(heights[: len(steps)], widths)
    level += np.random.default_rng(seed).normal(0, 0.2, level.size)
    found = changes(curve_of(level), 20, lines=False) * 1000
    apart = np.abs(np.diff(heights[: len(steps)])) > 0
    expected = np.cumsum(widths)[:-1][apart]
    assert found.size == expected.size
    assert np.abs(found - expected).max(initial=0) <= 0.02 * level.size


def test_no_more_than_may_be_shown() -> None:
    curve = curve_of(np.repeat(np.tile([1.0, 7.0], 5), 300))
    assert changes(curve, 20).size == 9
    assert changes(curve, 4).size < 4


@given(st.lists(st.floats(0, 8), min_size=1, max_size=300), st.integers(1, 60))
@settings(deadline=None)
def test_parts_cover_the_run(level: list[float], times: int) -> None:
    curve = curve_of(np.repeat(level, times))
    ends = parts(curve)
    assert ends[0] == 0 and ends[-1] == curve.segments and (np.diff(ends) > 0).all()
    found = changes(curve, 20)
    assert ((found > curve.start) & (found < curve.start + curve.duration)).all()


def test_parts_are_whole_swings() -> None:
    curve = curve_of(np.tile(np.repeat([8.0, 1.0, 8.0, 1.0], [60, 40, 70, 30]), 40))
    ends = parts(curve)
    means = np.add.reduceat(curve.level, ends[:-1]) / np.diff(ends)
    assert np.ptp(means[1:-1]) < 0.8  # whole swings have 5.2 and 5.9; equal parts of as many differ by 3


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.floats(-5, 5), st.floats(0, 3)), min_size=1, max_size=9),
    st.floats(0.5, 30),
    st.booleans(),
)
def test_the_cheapest_partition(values: list[tuple[float, float]], price: float, lines: bool) -> None:
    of = np.array(values).T.copy()
    size = of.shape[1]
    ends = np.linspace(0, 1, size + 1)
    assert 1 / size > SHORTEST
    x = (ends[:-1] + ends[1:]) / 2

    def cost(a: int, b: int) -> float:
        def left(v: np.ndarray, degree: int) -> float:
            return float(np.square(v - np.polyval(np.polyfit(x[a:b], v, degree), x[a:b])).sum())

        flat = left(of[0, a:b], 0) + price
        if lines and b - a > 2:
            flat = min(flat, left(of[0, a:b], 1) + 1.5 * price)
        return flat + left(of[1, a:b], 0)

    def whole(cuts: tuple[int, ...]) -> float:
        places = [0, *cuts, size]
        return sum(cost(a, b) for a, b in pairwise(places))

    every = [whole(cuts) for k in range(size) for cuts in combinations(range(1, size), k)]
    found = _partition(of, ends, price, 1.5 * price if lines else np.inf)
    assert whole(tuple(found.tolist())) == pytest.approx(min(every), abs=1e-7)

"""Iterations found in made-up programs of which they are known, folded, and none where there are none."""

from __future__ import annotations

import numpy as np
import pytest

from desktop.core.curve import StepCurve
from desktop.core.iterations import (
    Repeat,
    fold,
    in_curve,
    in_events,
    interrupted,
    judge,
    odd,
    unfolded,
)
from desktop.core.quantity import CurveQuantity
from tests.benchmarks import iterations as known


@pytest.mark.parametrize("kind", known.ITERATING, ids=lambda kind: str(kind.__name__))
@pytest.mark.parametrize("ranks", [4, 16])
def test_the_period_and_the_number_of_iterations_are_found(kind: object, ranks: int) -> None:
    if kind is known.long_run and ranks > 4:
        pytest.skip("a thousand iterations on 4 ranks say the same in less time")
    program = known.made(kind, ranks, 0)  # type: ignore[arg-type]  # parametrize knows no types
    best = known.nearest(program.verdict(), program.period)
    assert best is not None
    assert best.period == pytest.approx(program.period, rel=known.WITHIN)
    assert best.count == len(program.begins)
    at = np.median(np.array(program.begins), axis=1)
    assert abs(best.bounds[0] - at[0]) < 2 * program.period
    assert abs(best.bounds[-1] - np.median(program.last)) < 2 * program.period  # type: ignore[arg-type]  # set


@pytest.mark.parametrize("kind", known.APERIODIC, ids=lambda kind: str(kind.__name__))
def test_none_are_invented(kind: object) -> None:
    for ranks, seed in ((4, 0), (8, 1), (16, 2)):
        assert not known.made(kind, ranks, seed).verdict().loops  # type: ignore[arg-type]  # as above


def test_none_are_invented_in_curves() -> None:
    for kind in range(4):
        assert all(in_curve(known.random_curve(kind, seed)) is None for seed in range(8))


def test_an_inner_loop_is_found_in_an_outer_one() -> None:
    program = known.made(known.nested, 8, 3)
    outer, inner = (loop.repeat for loop in program.verdict().loops)
    assert (outer.count, inner.count) == (20, 160)
    assert int(interrupted(inner, outer).sum()) == 19  # after the last one nothing follows
    # What the outer loop does between two solves makes no iteration of the inner one odd.
    assert len(odd(inner, interrupted(inner, outer))) < 5


def test_odd_iterations_are_those_that_were_made_so() -> None:
    program = known.made(known.odd, 8, 1)
    loop = program.verdict().loops[0].repeat
    # The loop is seen from its first call on, so that the slow computing lies at the end of the one before.
    named = {index for index, _ in odd(loop)}
    assert all(one in named or one - 1 in named for one in program.strange)
    # Neighbours wait for who was slow, one step later.
    assert named <= {one + by for one in program.strange for by in (-1, 0, 1)}
    excess = [seconds for _, seconds in odd(loop)]
    assert excess == sorted(excess, reverse=True)


def test_a_drift_is_told() -> None:
    loop = known.made(known.drifting, 4, 0).verdict().loops[0].repeat
    assert loop.drift == pytest.approx(0.59, abs=0.08)  # 1.9 x 4 + 1 ms after 1.1 x 4 + 1 ms


def _teeth(periods: np.ndarray, high: float = 8.0) -> StepCurve:
    """Each period computes for 30 %, pauses for 20 %, computes on half of the processors for the rest."""
    begins = np.concatenate([[0.0], np.cumsum(periods)])
    parts = np.array([0.0, 0.3, 0.5])
    edges = (begins[:-1, None] + periods[:, None] * parts).ravel()
    return StepCurve(np.append(edges, begins[-1]), np.tile([high, 0.0, high / 2], periods.size))


def test_the_period_of_a_curve_alone_is_found_also_if_it_drifts() -> None:
    rng = np.random.default_rng(1)
    for periods in (np.full(23, 0.31), 0.3 * rng.uniform(0.99, 1.01, 40), np.linspace(1.0, 1.05, 30)):
        curve = _teeth(periods)
        found = in_curve(curve)
        assert found is not None
        assert found.period == pytest.approx(periods.mean(), rel=known.WITHIN)
        assert abs(found.count - periods.size) <= 1


def test_a_fold_is_the_median_iteration_and_its_breaks_go_back_onto_the_run() -> None:
    periods = np.array([1.0, 1.1, 0.9, 1.0, 1.05, 1.0])
    curve = _teeth(periods)
    loop = Repeat(np.concatenate([[0.0], np.cumsum(periods)]), np.ones(6, bool))
    folded = fold(curve, loop, bins=100)
    assert np.allclose(folded.middle[:30], 8) and np.allclose(folded.middle[30:50], 0)
    assert np.allclose(folded.low, folded.middle) and np.allclose(folded.high, folded.middle)
    assert folded.curve(8.0).duration == pytest.approx(loop.period)
    back = unfolded(loop, np.array([0.3, 0.5]) * loop.period)
    assert np.allclose(back[:, 0], loop.bounds[:-1] + 0.3 * periods)
    assert np.allclose(curve.at(back[:, 0] - 1e-6), 8) and np.allclose(curve.at(back[:, 0] + 1e-6), 0)


def test_a_fold_is_of_what_its_curve_is_of() -> None:
    edges = np.arange(9.0)
    bytes_ = CurveQuantity("Bytes in flight", "Bytes", "B", "B", counted=False, physical=True)
    made = fold(
        StepCurve(edges, np.tile([700.0, 2.0], 4), quantity=bytes_), Repeat(edges[::2], np.ones(4, bool))
    )
    assert made.curve(np.nan).quantity == made.of == bytes_


def test_the_band_of_a_fold_holds_what_the_quantiles_say() -> None:
    rng = np.random.default_rng(0)
    heights = rng.uniform(0, 10, 400)
    edges = np.arange(401.0)
    loop = Repeat(edges, np.ones(400, bool))
    folded = fold(StepCurve(edges, heights), loop, 0.1, bins=4)
    assert folded.low == pytest.approx(np.quantile(heights, 0.1))
    assert folded.high == pytest.approx(np.quantile(heights, 0.9))


def test_named_iterations_are_taken_however_long_they_last() -> None:
    """Annotations that vary forty-fold are still iterations; without the name such times are no period."""
    rng = np.random.default_rng(2)
    begins = np.cumsum(0.01 * 40 ** rng.random(30))
    symbol, time = np.zeros(30, np.int64), begins
    end = float(begins[-1] + 0.1)
    assert not judge([in_events(symbol, time, 0.0, end)], StepCurve([0.0, end], [1.0])).loops
    named = in_events(symbol, time, 0.0, end, np.array([True]))
    assert named[0].count == 30


def test_the_period_of_iterations_that_become_longer_is_their_mean() -> None:
    """Also where the last one is unsure and one in the middle is odd."""
    durations = np.linspace(1.0, 2.0, 60)
    expected = durations.mean()
    durations[30] *= 3
    bounds = np.concatenate([[0.0], np.cumsum(durations)])
    loop = Repeat(bounds, np.arange(60) < 59)
    assert loop.period == pytest.approx(expected, rel=0.001)


def test_times_that_stand_still_are_no_loop() -> None:
    assert in_events(np.zeros(50, np.int64), np.full(50, 0.5), 0.0, 1.0) == []
    assert in_events(np.empty(0, np.int64), np.empty(0), 0.0, 1.0) == []

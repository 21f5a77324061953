"""The public face of the fits: what is asked, what comes back, and how a worker is stopped."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from desktop.core.curve import StepCurve
from desktop.core.phases import MODELS, fit, fit_breakpoints, sweep
from desktop.progress import Cancelled


def noisy(m: int = 500, unit: float = 1e-6, start: float = 0.0) -> StepCurve:
    rng = np.random.default_rng(7)
    edges = start + np.concatenate(([0.0], np.cumsum(rng.integers(1, 100, m)))).astype(float)
    return StepCurve(edges, rng.integers(0, 33, m).astype(float), 64, unit)


def test_two_phases_by_hand() -> None:
    """Heights 0, 2, 8 for a second each. With t of the middle step to the left the squared errors are
    4t/(1+t) and 36(1-t)/(2-t); the larger of the two is least on a fine grid of t.
    """
    curve = StepCurve([0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 8.0])
    found = fit(curve, 2, "constant")
    t = np.linspace(0, 1, 2_000_001)
    best = np.maximum(4 * t / (1 + t), 36 * (1 - t) / (2 - t)).min()
    assert found.epsilon == pytest.approx(np.sqrt(best), rel=1e-6)
    assert found.lower <= found.epsilon == found.upper
    assert found.upper / found.lower - 1 < 1e-12


@pytest.mark.parametrize("model", MODELS[:5])
def test_values_are_the_powers_and_nan_outside(model: str) -> None:
    curve = noisy(start=1e4)
    found = fit(curve, 12, model)
    t = np.linspace(curve.start - 1e-3, curve.start + curve.duration + 1e-3, 4001)
    value = found.value(t)
    inside = (t >= curve.start) & (t <= found.breaks[-1])
    assert np.isnan(value[~inside]).all()
    i = np.clip(np.searchsorted(found.breaks, t[inside], side="right") - 1, 0, found.n - 1)
    x = t[inside] - found.breaks[i]
    expected = (found.powers[i] * x[:, None] ** np.arange(3)).sum(axis=1)
    np.testing.assert_allclose(value[inside], expected, rtol=1e-9, atol=1e-9)


def test_fewer_phases_are_said() -> None:
    curve = StepCurve(np.arange(7.0), [5, 5, 1, 1, 1, 3])
    assert fit(curve, 3, "linear").note == ""
    for model in MODELS:
        found = fit(curve, 9, model)
        assert (found.n, found.epsilon, found.sse, found.requested) == (3, 0.0, 0.0, 9)
        assert found.note == "3 phases reproduce the curve exactly"
        assert found.breaks.tolist() == [0, 2, 5, 6]


def test_known_bounds_save_evaluations_and_wrong_ones_change_nothing() -> None:
    curve = noisy()
    plain = fit(curve, 15, "linear")
    told = fit(curve, 15, "linear", bounds=(plain.lower * (1 - 1e-6), plain.upper * (1 + 1e-6)))
    assert told.epsilon == pytest.approx(plain.epsilon, rel=1e-12)
    assert told.evaluations < plain.evaluations
    for wrong in ((0.0, plain.lower / 3), (plain.upper * 3, plain.upper * 4), (np.inf, np.nan)):
        assert fit(curve, 15, "linear", bounds=wrong).epsilon == pytest.approx(plain.epsilon, rel=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_locked_breaks_are_breaks_and_a_locked_edge_stays_one(model: str) -> None:
    curve = noisy()
    edge = float(curve.edges[123]) * curve.unit
    inside = float(curve.edges[300] + 0.5) * curve.unit
    result = sweep(curve, model, 12, locked=(inside, edge))
    assert result.n[0] == (6 if model == "budget" else 3)
    with pytest.raises(KeyError):
        result.fit(int(result.n[0]) - 1)
    for found in result.fits:
        assert {edge, inside} <= set(found.breaks.tolist())
        assert found.offset[found.index == 123].tolist() == [0.0]


@pytest.mark.parametrize("model", MODELS)
def test_its_own_breaks_given_by_hand_are_the_same_fit(model: str) -> None:
    curve = noisy()
    found = fit(curve, 14, model)
    again = fit_breakpoints(curve, found.breaks, model)
    np.testing.assert_allclose(again.breaks, found.breaks, rtol=1e-14)
    if model in MODELS[:3]:
        assert again.epsilon == pytest.approx(found.epsilon, rel=1e-6)
    with pytest.raises(ValueError, match="increase from the curve's start"):
        fit_breakpoints(curve, found.breaks[1:], model)


def test_a_running_sweep_is_stopped() -> None:
    curve = noisy(5000)
    fit(curve, 3, "mixed")
    stop = np.zeros(1, np.uint8)
    ended: list[type[BaseException]] = []

    def work() -> None:
        try:
            sweep(curve, "mixed", 1500, stop=stop)
        except Cancelled as reason:
            ended.append(type(reason))

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.1)
    stop[0] = 1
    thread.join(timeout=10)
    assert not thread.is_alive()
    assert ended == [Cancelled]


def test_a_breakpoint_on_the_end_of_the_curve_is_refused_and_one_beside_it_is_the_end():
    curve = StepCurve(np.arange(5.0), [1.0, 4.0, 2.0, 3.0])
    for at in (0.0, 4.0):
        with pytest.raises(ValueError, match="must lie inside the curve, between 0 s and 4 s"):
            fit(curve, 2, "constant", locked=[at])
    for at in (np.nextafter(0.0, 1.0), np.nextafter(4.0, 0.0)):
        assert fit(curve, 1, "constant", locked=[at]).breaks.tolist() == [0.0, 4.0]

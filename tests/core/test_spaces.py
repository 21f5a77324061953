"""Phases of other functions than polynomials, against direct least squares and truth that is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from desktop.core.bases import degree_of
from desktop.core.curve import StepCurve
from desktop.core.envelope import envelope
from desktop.core.phase_stats import phase_table
from desktop.core.phases import basis_of, fit, fit_breakpoints, sweep
from desktop.core.pieces import pieces, residual
from desktop.core.spaces import Basis, kernels, with_basis
from tests.strategies import curves

Floats = NDArray[np.float64]
OWN = ("periodic", "saturation")
PERIODIC, SATURATING = map(degree_of, OWN)


def functions(basis: Basis, t: Floats, a: float, b: float) -> Floats:
    """The functions of a basis at t, shaped so that least squares is well conditioned on [a, b]."""
    u, x = (2 * t - a - b) / (b - a), basis.rate * (b - a) / 2
    if basis.model == "saturation":
        return np.stack(
            [np.ones_like(u), u, np.exp(-x * u - abs(x)) - (1 - x * u) * np.exp(-abs(x)) * (abs(x) < 1)]
        )
    even, odd = np.cos(x * u), np.sin(x * u)
    if x < 1:
        even, odd = even - 1, odd - x * u
    return np.stack([np.ones_like(u), u, even, odd])


def direct(curve: StepCurve, basis: Basis, a: float, b: float) -> float:
    """Squared error on [a, b] seconds by orthogonal factorisation over many Gauss points."""
    edges = curve.edges * curve.unit
    low, high = np.clip(edges[:-1], a, b), np.clip(edges[1:], a, b)
    some = high > low
    low, high, level = low[some], high[some], curve.level[some]
    parts = 1 + int(abs(basis.rate) * (high - low).max() / 2)
    cuts = low + (high - low) * np.linspace(0, 1, parts + 1)[:, None]
    node, weight = np.polynomial.legendre.leggauss(12)
    half = (np.diff(cuts, axis=0) / 2)[..., None]
    t = ((cuts[1:] + cuts[:-1]) / 2)[..., None] + half * node
    root = np.sqrt(half * weight).ravel()
    columns = functions(basis, t.ravel(), a, b) * root
    q, _ = np.linalg.qr(columns.T / np.linalg.norm(columns, axis=1))
    y = (np.broadcast_to(level[:, None], t.shape) - level.mean()).ravel() * root
    return float(((y - q @ (q.T @ y)) ** 2).sum())


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_the_error_of_an_interval_is_that_of_least_squares(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    m = data.draw(st.sampled_from([7, 40, 200, 700]))
    edges = np.concatenate(([0.0], np.cumsum(rng.integers(1, 100, m))))
    curve = StepCurve(edges, rng.integers(0, 33, m), unit=1e-6)
    turns = data.draw(st.floats(0.3, 120.0))
    basis = Basis(
        data.draw(st.sampled_from(OWN)), turns * data.draw(st.sampled_from([1, 1, -1])) / curve.duration
    )
    if basis.model == "periodic":
        basis = Basis("periodic", abs(basis.rate))
    tree = with_basis(curve, basis)
    i, j = sorted(rng.choice(m, 2, replace=False).tolist())
    o, co = 0.3 * (edges[i + 1] - edges[i]), 0.6 * (edges[j + 1] - edges[j])
    a, b = (edges[i] + o) * curve.unit, (edges[j] + co) * curve.unit
    wanted = direct(curve, basis, a, b)
    reach = kernels(basis.model).reach
    there = reach(tree, 1, i, o, j, co, np.inf)[2][5] * curve.unit
    back = reach(tree, -1, j, co, i, o, np.inf)[2][5] * curve.unit
    # What direct least squares itself loses: it subtracts what is explained from all.
    lost = 1e-13 * float(((curve.level - curve.level.mean()) ** 2 * np.diff(edges)).sum()) * curve.unit
    assert there == pytest.approx(wanted, rel=1e-9, abs=10 * lost)
    assert back == pytest.approx(there, rel=1e-9, abs=lost)


@settings(max_examples=40, deadline=None)
@given(curves(min_steps=2, max_steps=60), st.sampled_from(OWN), st.floats(0.01, 0.9), st.floats(0.1, 60.0))
def test_reach_takes_what_the_tolerance_allows_and_no_more(
    curve: StepCurve, model: str, part: float, turns: float
) -> None:
    tree = with_basis(curve, Basis(model, turns / curve.duration))
    reach = kernels(model).reach
    whole = reach(tree, 1, 0, 0.0, curve.segments, 0.0, np.inf)[2][5]
    if whole <= 1e-12 * float(np.ptp(curve.level)) ** 2 * curve.duration:
        return
    j, o, moments, _ = reach(tree, 1, 0, 0.0, curve.segments, 0.0, part * whole)
    assert moments[5] == pytest.approx(part * whole, rel=1e-9)
    beyond = fit_breakpoints(
        curve, [curve.start, curve.start + curve.duration], model, basis=Basis(model, tree.rate)
    )
    assert beyond.sse == pytest.approx(whole, rel=1e-9)
    assert 0 < curve.edges[j] + o - curve.edges[0] < curve.duration


@pytest.mark.parametrize("model", OWN)
def test_epsilon_certifies_itself_and_no_partition_at_edges_is_better(model: str) -> None:
    rng = np.random.default_rng(5)
    m = 24
    curve = StepCurve(np.concatenate(([0.0], np.cumsum(rng.integers(1, 9, m)))), rng.integers(0, 9, m))
    basis = Basis(model, 7 / curve.duration)
    cost = {
        (i, j): direct(curve, basis, curve.edges[i], curve.edges[j]) for j in range(m + 1) for i in range(j)
    }
    best = {0: [0.0] + [math.inf] * m}
    for n in range(1, 5):
        before = best[n - 1]
        best[n] = [math.inf] + [min(max(before[i], cost[i, j]) for i in range(j)) for j in range(1, m + 1)]
    found = sweep(curve, model, 4, basis=basis)
    for one in found.fits:
        assert one.epsilon <= math.sqrt(best[one.n][m]) * (1 + 1e-9)
        assert one.upper / one.lower - 1 < 1e-9
        ends = zip(one.breaks[:-1], one.breaks[1:], strict=True)
        errors = [math.sqrt(direct(curve, basis, a, b)) for a, b in ends]
        np.testing.assert_allclose(one.error, errors, rtol=1e-7, atol=1e-7)
        assert (one.breakpoint_low <= one.breaks).all() and (one.breaks <= one.breakpoint_high).all()


@pytest.mark.parametrize(
    ("model", "degree", "terms"), [("periodic", PERIODIC, 4), ("saturation", SATURATING, 3)]
)
@pytest.mark.parametrize("turns", [0.5, 9.0, 90.0])
def test_values_are_those_of_the_functions(model: str, degree: int, terms: int, turns: float) -> None:
    rng = np.random.default_rng(7)
    edges = 1e7 + np.concatenate(([0.0], np.cumsum(rng.integers(1, 100, 300))))
    curve = StepCurve(edges, rng.integers(0, 33, 300), 64, 1e-6)
    w = turns / curve.duration
    found = fit(curve, 3, model, basis=Basis(model, w))
    t = np.linspace(curve.start, curve.start + curve.duration, 3001)[:-1]
    i = np.clip(np.searchsorted(found.breaks, t, side="right") - 1, 0, found.n - 1)
    x, c = t - found.breaks[i], found.powers[i]
    swing = c[:, 2] * np.cos(w * x) + c[:, 3] * np.sin(w * x)
    wanted = c[:, 0] + c[:, 1] * x + (swing if degree == PERIODIC else c[:, 2] * np.exp(-w * x))
    # The natural functions are nearly dependent where the argument hardly changes.
    np.testing.assert_allclose(found.value(t), wanted, atol=1e-12 * (1 + np.abs(c[:, :3]).max()))
    rows = phase_table(curve, found)
    assert [len(row.coefficients) for row in rows] == [terms] * 3
    assert found.degree.tolist() == [degree] * 3
    start = found.columns()
    h = 1e-4 * found.duration
    after, far = found.value(found.breaks[:-1] + h), found.value(found.breaks[:-1] + 2 * h)
    first = start["level"]
    np.testing.assert_allclose(
        first, found.value(found.breaks[:-1]), atol=1e-9 * (1 + np.abs(c[:, :3]).max())
    )
    bent = first + start["slope"] * h + start["curvature"] * h * h
    np.testing.assert_allclose(bent, after, atol=1e-4 * np.abs(far - first).max() + 1e-9)
    ends = np.linspace(curve.start, curve.start + curve.duration, 41)
    fine = np.linspace(0, 1, 4001)
    columns = envelope(curve).columns(ends)
    told = residual(envelope(curve), found, ends)
    for k in range(40):
        inside = found.value(ends[k] + (ends[k + 1] - ends[k]) * (fine[1:] + fine[:-1]) / 2)
        assert told.mean[k] == pytest.approx(columns.mean[k] - inside.mean(), abs=2e-3)
        assert told.minimum[k] <= columns.minimum[k] - inside.min() + 1e-9
        assert told.maximum[k] >= columns.maximum[k] - inside.max() - 1e-9
    drawn = pieces(found, curve.start, curve.start + curve.duration)
    middle = (drawn.a + drawn.b) / 2
    parabola = (drawn.start + 2 * drawn.middle + drawn.end) / 4
    np.testing.assert_allclose(parabola, found.value(middle), atol=0.02 * np.ptp(found.value(t)))


def test_slow_functions_are_nearly_polynomials() -> None:
    rng = np.random.default_rng(2)
    curve = StepCurve(np.arange(61.0), rng.integers(0, 9, 60))
    quadratic = fit(curve, 4, "quadratic")
    assert fit(curve, 4, "saturation", basis=Basis("saturation", 1e-9)).epsilon == pytest.approx(
        quadratic.epsilon, rel=1e-6
    )
    # A slow period is a cubic, which is at least as good as a quadratic.
    assert fit(curve, 4, "periodic", basis=Basis("periodic", 1e-9)).epsilon < quadratic.epsilon


@pytest.mark.parametrize("cycles", [3.3, 17.2, 40.0, 211.7])
def test_a_period_that_was_put_in_is_found(cycles: float) -> None:
    rng = np.random.default_rng(3)
    edges = np.concatenate(([0.0], np.cumsum(rng.integers(1, 100, 50_000))))
    at = (edges[1:] + edges[:-1]) / 2 / edges[-1]
    level = (
        80
        + 20 * (at > 0.3)
        + 30 * np.sin(2 * np.pi * at * cycles) * (at < 0.6)
        + 4 * rng.normal(size=at.size)
    )
    curve = StepCurve(edges, np.round(level))
    # Of few periods only their number is known, and less of it.
    assert curve.duration / basis_of(curve, "periodic").seconds == pytest.approx(
        cycles, rel=0.06 / min(cycles, 12)
    )
    found = fit(curve, 3, "periodic")
    assert np.abs(found.breaks[1:-1] / curve.duration - [0.3, 0.6]).max() < (0.01 if cycles > 6 else 0.03)


@pytest.mark.parametrize("steepness", [6.0, 20.0, 100.0])
def test_a_time_constant_that_was_put_in_is_found(steepness: float) -> None:
    rng = np.random.default_rng(3)
    edges = np.concatenate(([0.0], np.cumsum(rng.integers(1, 100, 50_000))))
    at = (edges[1:] + edges[:-1]) / 2 / edges[-1]
    level = 80 + 40 * (1 - np.exp(-steepness * np.mod(at, 0.5))) + 5 * rng.normal(size=at.size)
    curve = StepCurve(edges, np.round(level))
    assert basis_of(curve, "saturation").rate * curve.duration == pytest.approx(steepness, rel=0.15)
    assert fit(curve, 2, "saturation").breaks[1] == pytest.approx(curve.duration / 2, rel=0.005)


def test_a_budget_takes_a_period_where_it_pays() -> None:
    at = (np.arange(4000) + 0.5) / 4000
    level = np.round(50 + 30 * np.sin(2 * np.pi * at * 25) * (at < 0.5))
    curve = StepCurve(np.arange(4001.0), level)
    basis = Basis("periodic", 2 * np.pi * 25 / 4000)
    found = fit(curve, 7, "budget", basis=basis)
    assert found.degree.tolist() == [PERIODIC, 0]
    assert found.requested == 7
    assert found.epsilon < fit(curve, 7, "budget").epsilon / 10
    by_hand = fit_breakpoints(curve, found.breaks, "budget", degrees=[PERIODIC, 0], basis=basis)
    np.testing.assert_allclose(by_hand.error, found.error, rtol=1e-9)


def test_the_mixed_model_takes_a_period_for_its_price() -> None:
    """A level, a swing, a line: with a period three phases say it, and the tolerance certifies itself."""
    t = np.linspace(0, 10, 1201)
    at = (t[1:] + t[:-1]) / 2
    swing = 5 + 2 * np.sin(2 * np.pi * at / 0.4)
    y = np.where(at < 3, 2.0, np.where(at < 7, swing, 3 + 0.2 * at))
    noise = np.random.default_rng(0).normal(0, 0.1, at.size)
    curve, basis = StepCurve(t, y + noise, 8), Basis.of("periodic", 0.4)
    before = np.inf
    for n in (2, 3, 4, 6):
        found = fit(curve, n, "mixed", basis=basis)
        weighted = found.error / np.sqrt((np.array([1, 2, 3, 4, 3])[found.degree] + 1) / 4)
        assert weighted.max() == pytest.approx(found.epsilon, rel=1e-6)
        assert found.lower <= found.epsilon <= before * (1 + 1e-9)
        # No division at the edges that a search at random comes upon is below the bound.
        rng = np.random.default_rng(n)
        for _ in range(5):
            inner = np.sort(rng.choice(at.size - 1, n - 1, replace=False)) + 1
            tried = fit_breakpoints(curve, np.concatenate([[0], t[inner], [10]]), "mixed", basis=basis)
            share = np.sqrt((np.array([1, 2, 3, 4, 3])[tried.degree] + 1) / 4)
            assert (tried.error / share).max() >= found.lower * (1 - 1e-9)
        before = found.epsilon
    three = fit(curve, 3, "mixed", basis=basis)
    assert PERIODIC in three.degree and three.epsilon < fit(curve, 3, "mixed").epsilon / 4
    assert three.breaks[1:-1] == pytest.approx([3, 7], abs=0.1)
    searched = fit(curve, 3, "mixed", basis="periodic").basis
    assert searched is not None and searched.seconds == pytest.approx(0.4, rel=1e-3)


def test_a_search_that_ends_at_its_limit_says_so() -> None:
    t = np.linspace(0, 10, 801)
    slow = StepCurve(t, ((t[1:] + t[:-1]) / 20) ** 2 * 4, 4)  # a parabola settles nowhere
    assert "the length of the run" in fit(slow, 1, "saturation").limit
    settling = StepCurve(t, 4 - 3 * np.exp(-(t[1:] + t[:-1]) / 2), 4)
    assert fit(settling, 1, "saturation").limit == ""
    assert fit(slow, 2, "mixed").limit == ""


def test_a_basis_of_another_model_is_refused() -> None:
    curve = StepCurve(np.arange(9.0), np.arange(8.0))
    with pytest.raises(ValueError, match="needs a basis of its kind"):
        fit(curve, 2, "periodic", basis=Basis("saturation", 1.0))

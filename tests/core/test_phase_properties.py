"""What must hold of every phase fit, checked without trusting the fit: properties, proofs, brute force."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from desktop.core.curve import StepCurve
from desktop.core.phases import PhaseFit, fit, fit_breakpoints, sweep
from tests.core.moments import moments
from tests.curves import AWKWARD, cholesky, phased, wave
from tests.oracles.worley import Exact, Histogram, algorithm_m, mixed_k
from tests.strategies import curves, mapped, partitions, runs, small_curves

PURE = ("constant", "linear", "quadratic")
DEGREE = {model: k for k, model in enumerate(PURE)}
CERTIFIED = 1e-9
ROUNDING = Fraction(1, 2**50)

degrees = st.integers(0, 2)
counts = st.integers(1, 8)
some = settings(deadline=None, max_examples=60)
few = settings(deadline=None, max_examples=25)


def exact(curve: StepCurve) -> Exact:
    return Exact(curve.edges.tolist(), curve.level.tolist())


def reversed_time(curve: StepCurve) -> StepCurve:
    return StepCurve((curve.edges[0] + curve.edges[-1] - curve.edges)[::-1], curve.level[::-1])


def same(a: float, b: float, relative: float = CERTIFIED) -> bool:
    return math.isclose(a, b, rel_tol=relative, abs_tol=0.0)


def integral_of_squared_residual(curve: StepCurve, found: PhaseFit, i: int) -> float:
    """Of phase i, from its powers, by Gauss-Legendre quadrature within each step: exact for a quadratic."""
    a, b = found.breaks[i], found.breaks[i + 1]
    cuts = np.concatenate([[a], curve.edges[(curve.edges > a) & (curve.edges < b)], [b]])
    place, weight = np.polynomial.legendre.leggauss(3)
    left, width = cuts[:-1, None], np.diff(cuts)[:, None]
    t = left + width * (place + 1) / 2
    p = sum(found.powers[i, power] * (t - a) ** power for power in range(3))
    return float((weight * width / 2 * (p - curve.at(cuts[:-1] + np.diff(cuts) / 2)[:, None]) ** 2).sum())


# --- the error of an interval -------------------------------------------------------------------------


@some
@given(curves(), st.data())
def test_the_error_of_any_interval_is_the_rational_one(curve: StepCurve, data: st.DataObject) -> None:
    x = exact(curve)

    def position() -> tuple[int, float, int]:
        j = data.draw(st.integers(0, curve.segments - 1))
        width = float(curve.edges[j + 1] - curve.edges[j])
        offset = math.floor(width * data.draw(st.floats(0.0, 0.875)) * 8) / 8
        return j, offset, x.z[j] + round(Fraction(offset) / x.tick)

    a, b = sorted((position(), position()), key=lambda p: p[2])
    assume(a[2] < b[2])
    found = moments(curve, a[:2], b[:2]).error
    spread = float(np.ptp(curve.level)) ** 2 * float(curve.edges[-1] - curve.edges[0])
    for k in range(3):
        true = float(x.squared(a[2], b[2], k))
        assert abs(math.sqrt(found[k]) - math.sqrt(true)) <= 1e-11 * math.sqrt(true) + 1e-15 * math.sqrt(
            spread
        )
        if true == 0.0 and np.ptp(curve.level[a[0] : b[0] + 1]) == 0.0:
            assert found[k] == 0.0


@pytest.mark.parametrize("name", AWKWARD)
def test_the_error_of_an_interval_on_awkward_curves(name: str) -> None:
    edges, level = AWKWARD[name](400)
    curve, x = StepCurve(edges, level), Exact(edges.tolist(), level.tolist())
    rng = np.random.default_rng(3)
    for _ in range(25):
        i, j = sorted(rng.choice(401, 2, replace=False))
        found = moments(curve, (int(i), 0.0), (int(j), 0.0)).error
        for k in range(3):
            true = float(x.squared(x.z[i], x.z[j], k))
            assert same(math.sqrt(found[k]), math.sqrt(true), 1e-11) or found[k] == true == 0.0


# --- epsilon is the best there is ---------------------------------------------------------------------


@some
@given(curves(), degrees, counts)
def test_epsilon_is_proved_best_from_both_sides(curve: StepCurve, k: int, n: int) -> None:
    found = fit(curve, n, PURE[k])
    if runs(curve) <= n:
        assert found.epsilon == 0.0
    else:
        assert exact(curve).certifies(found.epsilon, k, n, CERTIFIED)


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("model", PURE)
def test_epsilon_is_proved_best_on_awkward_curves(name: str, model: str) -> None:
    edges, level = AWKWARD[name](400)
    curve, x = StepCurve(edges, level), Exact(edges.tolist(), level.tolist())
    for n in (1, 2, 7, 20):
        assert x.certifies(fit(curve, n, model).epsilon, DEGREE[model], n, CERTIFIED), n


@pytest.mark.parametrize("model", PURE)
@pytest.mark.parametrize("made", [wave, cholesky, lambda: phased(30_000)])
def test_epsilon_is_proved_best_on_long_curves(made, model: str) -> None:
    edges, level = made()
    curve, x = StepCurve(edges, level), Exact(edges.tolist(), level.tolist())
    for n in (3, 11, 20, 60):
        assert x.certifies(fit(curve, n, model).epsilon, DEGREE[model], n, CERTIFIED), n


@pytest.mark.parametrize("model", PURE)
def test_the_papers_own_method_gets_the_same(model: str) -> None:
    """Givens rotations and zeroin, transcribed, run to the last digit."""
    edges, level = phased(150, 5)
    curve, h = StepCurve(edges, level), Histogram(edges.tolist(), level.tolist())
    upper = None
    for found in sweep(curve, model, 6).fits:
        paper = algorithm_m(h, DEGREE[model], found.n, xi1=0.0, xi2=0.0, upper=upper)
        assert same(found.epsilon, paper.epsilon)
        upper = paper.epsilon


@some
@given(st.data(), curves(max_steps=25), degrees, st.integers(1, 6))
def test_every_partition_bounds_epsilon_from_both_sides(
    data: st.DataObject, curve: StepCurve, k: int, n: int
) -> None:
    x = exact(curve)
    places = [x.place(t) for t in data.draw(partitions(curve, n))]
    errors = x.errors(places, [k] * n)
    epsilon = fit(curve, n, PURE[k]).epsilon
    assert min(errors) * (1 - CERTIFIED) <= epsilon <= max(errors) * (1 + CERTIFIED)


@few
@given(small_curves(), degrees, st.integers(2, 3))
def test_no_partition_on_a_fine_grid_beats_it(curve: StepCurve, k: int, n: int) -> None:
    x = exact(curve)
    grid = [round(i * x.end / 24) for i in range(25)]
    epsilon = fit(curve, n, PURE[k]).epsilon
    table = {(a, b): float(x.squared(a, b, k)) for a, b in itertools.combinations(grid, 2)}
    for inner in itertools.combinations(grid[1:-1], n - 1):
        breaks = (0, *inner, x.end)
        assert math.sqrt(max(table[pair] for pair in itertools.pairwise(breaks))) >= epsilon * (1 - CERTIFIED)


# --- symmetries ---------------------------------------------------------------------------------------


@some
@given(curves(), degrees, counts)
def test_mirrored_time_gives_the_same_epsilon(curve: StepCurve, k: int, n: int) -> None:
    """Algorithm K from the right is Algorithm K from the left on the mirrored curve."""
    assert same(fit(reversed_time(curve), n, PURE[k]).epsilon, fit(curve, n, PURE[k]).epsilon, 2e-12)


@some
@given(curves(), st.sampled_from([*PURE, "mixed", "budget"]), st.integers(2, 8), st.integers(-20, 20))
def test_a_power_of_two_as_unit_of_time_changes_no_bit(
    curve: StepCurve, model: str, n: int, power: int
) -> None:
    one, other = fit(curve, n, model), fit(mapped(curve, lambda e: e * 4.0**power), n, model)
    assert other.epsilon == one.epsilon * 2.0**power
    assert np.array_equal(other.breaks, one.breaks * 4.0**power)
    assert np.array_equal(other.degree, one.degree)
    assert np.array_equal(other.coefficients, one.coefficients)


@some
@given(curves(), st.sampled_from(PURE), counts, st.sampled_from([1e-9, 1e-6, 1000.0]))
def test_the_unit_does_not_matter(curve: StepCurve, model: str, n: int, unit: float) -> None:
    one = fit(curve, n, model)
    named = fit(StepCurve(curve.edges, curve.level, unit=unit), n, model)
    assert same(named.epsilon, one.epsilon * math.sqrt(unit), 1e-11)
    assert np.allclose(named.breaks, one.breaks * unit, rtol=1e-12, atol=0.0)
    assert np.allclose(named.error, one.error * math.sqrt(unit), rtol=1e-9, atol=0.0)
    scaled = fit(mapped(curve, lambda e: e * 1000.0), n, model)
    assert same(scaled.epsilon, one.epsilon * math.sqrt(1000.0), 1e-11)


@some
@given(
    curves(), st.sampled_from(PURE), counts, st.sampled_from([3.0, 0.1, 1024.0]), st.sampled_from([7.0, 1e6])
)
def test_heights_scaled_and_lifted(curve: StepCurve, model: str, n: int, factor: float, more: float) -> None:
    epsilon = fit(curve, n, model).epsilon
    whole = mapped(curve, level=np.round)  # so that lifting is exact
    scaled = fit(mapped(curve, level=lambda v: v * factor), n, model).epsilon
    # Heights rounded by the factor differ from scaled ones by that much and no more.
    rounding = 4e-16 * factor * float(curve.level.max()) * math.sqrt(curve.duration)
    assert abs(scaled - epsilon * factor) <= 1e-11 * epsilon * factor + rounding
    lifted = fit(mapped(whole, level=lambda v: v + more), n, model).epsilon
    assert same(lifted, fit(whole, n, model).epsilon, 1e-11)


@some
@given(curves(max_steps=20), st.sampled_from(PURE), counts, st.data())
def test_steps_cut_in_two_change_nothing(curve: StepCurve, model: str, n: int, data: st.DataObject) -> None:
    cut = data.draw(st.lists(st.booleans(), min_size=curve.segments, max_size=curve.segments))
    middle = (curve.edges[:-1] + np.diff(curve.edges) / 4)[np.array(cut)]
    edges = np.sort(np.append(curve.edges, middle))
    finer = StepCurve(edges, np.repeat(curve.level, 1 + np.array(cut, int)))
    one, other = fit(curve, n, model), fit(finer, n, model)
    assert same(other.epsilon, one.epsilon, 1e-11)
    assert other.n == one.n


@some
@given(curves())
def test_epsilon_falls_with_n_and_with_the_degree(curve: StepCurve) -> None:
    table = np.array([sweep(curve, model, 9).epsilon for model in PURE])
    assert (np.diff(table, axis=1) <= 1e-11 * table[:, :-1]).all()
    assert (np.diff(table, axis=0) <= 1e-11 * table[:-1]).all()


# --- the partition handed over ------------------------------------------------------------------------


@some
@given(curves(max_steps=30), st.sampled_from(PURE), counts)
def test_the_partition_is_what_it_says(curve: StepCurve, model: str, n: int) -> None:
    found = fit(curve, n, model)
    k, x = DEGREE[model], exact(curve)
    assert found.model == model and found.requested == n
    assert found.n == found.degree.size == found.error.size == found.breaks.size - 1 <= n
    assert found.breaks[0] == curve.start and found.breaks[-1] == curve.edges[-1]
    assert (np.diff(found.breaks) > 0).all()
    assert (found.breakpoint_low <= found.breaks).all() and (found.breaks <= found.breakpoint_high).all()
    assert math.isclose(found.sse, float((found.error**2).sum()), rel_tol=1e-12, abs_tol=0.0)
    assert found.error.max() <= found.epsilon * (1 + 1e-9)
    assert found.lower <= found.epsilon * (1 + 1e-15) and found.epsilon <= found.upper * (1 + 1e-15)
    assert found.tight[found.error >= found.epsilon * (1 - 1e-10)].all()
    assert not found.tight[found.error < found.epsilon * (1 - 1e-5)].any()
    if found.n == n and found.epsilon > 0.0:
        assert found.error.max() >= found.epsilon * (1 - 1e-9)
    # Breaks as doubles: as good as their last digit lets them be.
    digit = np.spacing(np.abs(curve.edges).max())
    rounding = 2 * math.sqrt(digit) * (1.0 + float(np.ptp(curve.level)))
    places = [x.place(t) for t in found.breaks]
    assert x.errors(places, [k] * found.n) == pytest.approx(found.error, rel=1e-9, abs=rounding)


@some
@given(small_curves(20), st.sampled_from([*PURE, "mixed", "budget"]), st.integers(2, 9))
def test_coefficients_are_those_of_the_best_polynomials(curve: StepCurve, model: str, n: int) -> None:
    found = fit(curve, n, model)
    for i in range(found.n):
        squared = integral_of_squared_residual(curve, found, i)
        assert squared == pytest.approx(
            float(found.error[i]) ** 2, rel=1e-7, abs=1e-16 * float(curve.level.max()) ** 2
        )
        assert not found.coefficients[i, found.degree[i] + 1 :].any()
        assert not found.powers[i, found.degree[i] + 1 :].any()
        a, b = found.breaks[i], found.breaks[i + 1]
        t = a + (b - a) * np.array([0.125, 0.5, 0.75])
        s = 2 * (t - a) / (b - a) - 1
        value = np.polynomial.legendre.legval(s, found.coefficients[i])
        assert found.value(t) == pytest.approx(value, rel=1e-9, abs=1e-9)


@some
@given(small_curves(20), st.sampled_from(PURE), st.integers(2, 6))
def test_breaks_from_either_side_are_as_good_and_the_choice_is_better(
    curve: StepCurve, model: str, n: int
) -> None:
    """Both ends of every break's range belong to best partitions; none has less total squared error."""
    found, k, x = fit(curve, n, model), DEGREE[model], exact(curve)
    assume(found.n == n and found.epsilon > 0.0)
    for ends in (found.breakpoint_low, found.breakpoint_high):
        errors = x.errors([x.place(t) for t in ends], [k] * n)
        assert max(errors) <= found.epsilon * (1 + 1e-6)
        assert found.sse <= sum(e * e for e in errors) * (1 + 1e-6)


@few
@given(curves(min_steps=2), st.sampled_from(PURE), counts)
def test_a_sweep_is_its_fits(curve: StepCurve, model: str, n_max: int) -> None:
    swept = sweep(curve, model, n_max)
    assert len(swept.fits) == n_max and swept.epsilon.shape == (n_max,)
    for n, found in enumerate(swept.fits, 1):
        alone = fit(curve, n, model)
        assert found.epsilon == swept.epsilon[n - 1]
        assert same(found.epsilon, alone.epsilon, 1e-11) and found.n == alone.n


# --- nothing to fit -----------------------------------------------------------------------------------


@some
@given(curves(max_steps=12), st.sampled_from([*PURE, "mixed"]), st.integers(0, 4))
def test_as_many_phases_as_runs_fit_exactly(curve: StepCurve, model: str, more: int) -> None:
    found = fit(curve, runs(curve) + more, model)
    assert found.epsilon == 0.0 and found.sse == 0.0 and not found.error.any()
    if model in PURE:
        jumps = np.flatnonzero(np.diff(curve.level)) + 1
        assert found.n == runs(curve)
        assert np.array_equal(found.breaks[1:-1], curve.edges[jumps])
        assert bool(found.note) == (more > 0)


@pytest.mark.parametrize("model", [*PURE, "mixed", "budget"])
@pytest.mark.parametrize("level", [[0.0], [5.0], [0.0] * 40, [1e9] * 40, [0.1] * 40])
def test_a_flat_curve_is_one_phase(model: str, level: list[float]) -> None:
    curve = StepCurve(np.arange(len(level) + 1) * 3.0, level)
    for n in (2, 5):
        found = fit(curve, n, model)
        assert (found.n, found.epsilon, found.degree[0]) == (1, 0.0, 0) or model in ("linear", "quadratic")
        assert found.n == 1 and found.epsilon == 0.0
        assert found.value([1.0])[0] == level[0]


@pytest.mark.parametrize(
    ("n", "model", "locked"), [(0, "constant", ()), (2, "cubic", ()), (2, "linear", (99.0,))]
)
def test_wrong_arguments_are_refused(n: int, model: str, locked: tuple[float, ...]) -> None:
    with pytest.raises(ValueError):
        fit(StepCurve([0, 1, 3], [1, 2]), n, model, locked=locked)


# --- mixed, budget, locked ----------------------------------------------------------------------------


@few
@given(curves(min_steps=3, max_steps=30), st.integers(1, 7))
def test_the_mixed_tolerance_is_good_and_slightly_less_is_not(curve: StepCurve, n: int) -> None:
    found, x = fit(curve, n, "mixed"), exact(curve)
    assume(found.epsilon > 0.0)
    # A degree may hang on the last digits of the tolerance, so that digits are tried; or on whether one
    # length is more than twice another one that is its half but for rounding: steps of 1 and 10^12 ticks
    # make ties whose sides differ by less than a double can say.
    good = [
        one
        for digits in (0.0, 1e-15, 1e-14, 1e-12, 1e-10)
        for one in x.mixed_by_any(n, found.epsilon * (1 + digits), ROUNDING)
    ]
    assert any(one is not None and one[1] == found.degree.tolist() for one in good)
    # Good tolerances are no interval: just below the bad ones there may be good ones again.
    assert any(
        one is None
        for less in (2e-12, 1e-11, 1e-10, 1e-9)
        for one in x.mixed_by_any(n, found.epsilon * (1 - less), ROUNDING)
    )
    assert found.epsilon >= fit(curve, n, "quadratic").epsilon * (1 - CERTIFIED)


def test_a_tie_of_lengths_may_fall_either_way() -> None:
    """A constant gets 1000000000001.62 ticks far, a quadratic twice that but for 10^-11 ticks: which is
    more is below what a double tells, and only one of the two gives two phases for a tolerance of 1.8."""
    width = [1.0, 1e12, 1.0, 1.0, 1e12, 1.0, 1.0]
    level = [1e6 + k for k in (0, 1, 2, 2, 1, 0, 0)]
    curve = StepCurve(np.append(0.0, np.cumsum(width)), level, unit=1.0)
    either = list(exact(curve).mixed_by_any(2, 1.8, ROUNDING))
    assert None in either and any(one is not None and one[1] == [2, 0] for one in either)
    assert fit(curve, 2, "mixed").epsilon <= 2.0


@pytest.mark.parametrize("n", [1, 4, 9])
def test_the_mixed_model_by_the_papers_own_rows(n: int) -> None:
    edges, level = phased(200, 6)
    h = Histogram(edges.tolist(), level.tolist())
    found = fit(StepCurve(edges, level), n, "mixed")
    paper = mixed_k(h, n, found.epsilon * (1 + 1e-12), xi2=0.0)
    assert paper is not None and paper.degrees == found.degree.tolist()
    assert paper.breaks == pytest.approx(found.breaks, rel=1e-6)
    assert mixed_k(h, n, found.epsilon * (1 - 1e-8), xi2=0.0) is None


def test_one_mixed_phase_weighs_a_constant_by_the_root_of_two() -> None:
    """The first row of the paper's Figure 18 against Figure 6: 117534.4 = sqrt(2) x 83109.4."""
    curve = StepCurve(*wave())
    one = fit(curve, 1, "mixed")
    assert one.degree.tolist() == [0]
    assert same(one.epsilon, math.sqrt(2.0) * fit(curve, 1, "constant").epsilon)


@few
@given(small_curves(8), st.integers(2, 10))
def test_a_budget_is_spent_as_well_as_any_sequence_of_degrees_could(curve: StepCurve, budget: int) -> None:
    found, force = fit(curve, budget, "budget"), exact(curve).budget_by_force(budget)
    assert found.epsilon == pytest.approx(force, rel=1e-9, abs=0.0)
    assert int((found.degree + 2).sum()) <= budget


@few
@given(curves(min_steps=2), st.integers(1, 4))
def test_a_budget_is_never_worse_than_a_pure_model(curve: StepCurve, n: int) -> None:
    for k, model in enumerate(PURE):
        assert fit(curve, n * (k + 2), "budget").epsilon <= fit(curve, n, model).epsilon * (1 + 1e-11)


@few
@given(small_curves(10), degrees, st.integers(0, 3), st.data())
def test_locked_breaks_by_every_way_to_share_the_phases(
    curve: StepCurve, k: int, more: int, data: st.DataObject
) -> None:
    end = int(curve.edges[-1])
    assume(end >= 3)
    locks = sorted(data.draw(st.sets(st.integers(1, 2 * end - 1), min_size=1, max_size=2)))
    times = [t / 2 for t in locks]
    n = len(times) + 1 + more
    x = exact(curve)
    stops = [0, *(x.place(t) for t in times), x.end]
    pieces = list(itertools.pairwise(stops))
    best = math.inf
    for shares in itertools.product(range(1, more + 2), repeat=len(pieces)):
        if sum(shares) == n:
            best = min(best, max(x.optimum(k, m, a, b) for (a, b), m in zip(pieces, shares, strict=True)))
    found = fit(curve, n, PURE[k], locked=tuple(times))
    assert found.epsilon == pytest.approx(best, rel=1e-9, abs=0.0)
    for t in times:
        assert t in found.breaks.tolist()


@some
@given(small_curves(15), st.data(), st.integers(1, 5), st.sampled_from(PURE))
def test_breaks_given_by_hand(curve: StepCurve, data: st.DataObject, n: int, model: str) -> None:
    breaks = np.unique(np.round(data.draw(partitions(curve, n)) * 8) / 8)
    found, x, k = fit_breakpoints(curve, breaks, model), exact(curve), DEGREE[model]
    assert np.array_equal(found.breaks, breaks)
    errors = x.errors([x.place(t) for t in breaks], [k] * found.n)
    assert found.error == pytest.approx(errors, rel=1e-9, abs=1e-12)
    assert found.epsilon == pytest.approx(max(errors), rel=1e-9, abs=1e-12)


def test_a_budget_sees_who_gets_further_though_both_are_far_from_the_start() -> None:
    """A line errs 2e-8 less than a constant, as it gets further by less than times at 6.7e7 have digits."""
    curve = StepCurve(np.array([0.0, 1.0, 2.0**26, 2.0**26 + 1]), np.array([0.0, 0.0, 1.0]), 1.0, 1.0)
    found = fit(curve, 3, "budget")
    assert found.degree.tolist() == [1]
    assert found.epsilon == pytest.approx(fit(curve, 1, "linear").epsilon, rel=1e-12)

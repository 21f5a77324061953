"""Suggested numbers where the right one is known, and breaks that last."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from desktop.core import selection
from desktop.core.curve import StepCurve
from desktop.core.phases import PhaseFit, extend, sweep
from desktop.core.selection import search, suggest
from tests.curves import cholesky, wave

Shape = Callable[[np.ndarray], np.ndarray]


def sampled(shape: Shape, processors: int, noise: float, seed: int, m: int = 4000) -> StepCurve:
    """`shape` on [0, 1] as whole processors in m steps of random width, with noise."""
    rng = np.random.default_rng(seed)
    edges = np.concatenate(([0.0], np.cumsum(rng.integers(1, 100, m)))).astype(float)
    x = (edges[:-1] + edges[1:]) / 2 / edges[-1]
    level = np.round(processors * shape(x) + rng.normal(0, noise, m))
    return StepCurve(edges, np.clip(level, 0, processors), processors, 1e-6)


def plateaus(k: int, seed: int) -> tuple[Shape, np.ndarray]:
    """k levels that differ by at least a fifth, and the k-1 places where they change."""
    rng = np.random.default_rng(seed)
    levels = [0.2]
    while len(levels) < k:
        value = rng.integers(0, 20) / 20
        if abs(value - levels[-1]) > 0.2:
            levels.append(float(value))
    at = np.sort(rng.choice(np.arange(1, 20), k - 1, replace=False)) / 20
    return (lambda x: np.array(levels)[np.searchsorted(at, x)]), at


def factorisation(x: np.ndarray) -> np.ndarray:
    """Start-up, a quadratic decline, a linear fall and a linear rise, as in the report's second example."""
    decline = 0.05 + 0.95 * (1 - ((x - 0.04) / 0.56) ** 2)
    return np.select(
        [x < 0.04, x < 0.6, x < 0.8], [0.2 + 20 * x, decline, 0.5 - 2.3 * (x - 0.6)], 0.04 + 2.4 * (x - 0.8)
    )


@pytest.mark.parametrize("noise", [0.5, 2.0])
@pytest.mark.parametrize("k", [2, 3, 5, 8, 12])
def test_noisy_plateaus_are_counted(k: int, noise: float) -> None:
    for seed in range(3):
        shape, _ = plateaus(k, 100 * k + seed)
        suggestion = suggest(sweep(sampled(shape, 64, noise, seed), "constant", 20))
        assert suggestion.n == k, suggestion.reason
        assert f"to {k} phases" in suggestion.reason


def levels(k: int, seed: int) -> StepCurve:
    """k levels in random order, neighbours far apart, with noise."""
    rng = np.random.default_rng(seed)
    heights = [32]
    while len(heights) < k:
        value = int(rng.integers(0, 64))
        if abs(value - heights[-1]) > 12:
            heights.append(value)
    cuts = np.sort(rng.choice(np.arange(1, 4 * k), k - 1, replace=False)) / (4 * k)
    return sampled(lambda x: np.array(heights)[np.searchsorted(cuts, x)] / 64, 64, 0.5, seed, 6000)


@pytest.mark.parametrize("k", [14, 18, 24, 30])
def test_the_search_goes_on_while_it_pays(k: int) -> None:
    """Also where the first twenty numbers look like noise, as none of them is enough."""
    for seed in range(4):
        found, suggestion = search(levels(k, seed), "constant")
        assert suggestion.n == k and not suggestion.limit_reached, suggestion
        assert found.n[-1] >= 2 * k
        assert found.fit(k).n == k
    assert suggest(sweep(levels(30, 3), "constant", 20)).n < 30, "twenty alone do not say it"


def test_the_suggestion_does_not_depend_on_how_far_somebody_looks() -> None:
    curve = levels(24, 0)
    found = {to: search(curve, "constant", to=to) for to in (0, 5, 33, 120)}
    assert len({suggestion for _, suggestion in found.values()}) == 1
    for to, (swept, _) in found.items():
        assert swept.n[-1] >= to


def test_a_search_that_had_to_end_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "LIMIT", 26)
    found, suggestion = search(levels(24, 0), "constant")
    assert suggestion.limit_reached and found.n[-1] == 26 and 2 * suggestion.n > 26
    assert suggestion.reason.endswith("the search ended at its limit of 26 phases, more may be better")
    assert not search(levels(24, 0), "constant", to=60)[1].limit_reached, "it goes as far as one asks"


@pytest.mark.parametrize("model", ["constant", "mixed", "budget"])
def test_a_sweep_continued_is_the_sweep_made_at_once(model: str) -> None:
    curve = sampled(factorisation, 256, 8, 1, 500)
    at_once, parts = sweep(curve, model, 24), extend(curve, sweep(curve, model, 9), 24)
    assert parts.n.tolist() == at_once.n.tolist() and parts.model == model
    assert parts.epsilon == pytest.approx(at_once.epsilon, rel=1e-9)
    assert [fit.requested for fit in parts.fits] == parts.n.tolist()
    assert extend(curve, parts, 10) is parts


@pytest.mark.parametrize("model", ["linear", "quadratic", "mixed"])
def test_a_factorisation_has_three_to_five_phases(model: str) -> None:
    suggestion = suggest(sweep(sampled(factorisation, 256, 8, 1, 7865), model, 20))
    assert 3 <= suggestion.n <= 5, suggestion.reason


def test_the_budget_that_buys_the_true_degrees_is_found() -> None:
    """Three linear phases at 3 parameters and a quadratic one at 4."""
    result = sweep(sampled(factorisation, 256, 2, 1, 7865), "budget", 30)
    suggestion = suggest(result)
    assert suggestion.n == 13
    assert result.fit(13).degree.tolist() == [1, 2, 1, 1]


def test_mere_noise_asks_for_one_phase_and_exact_fits_for_as_many_as_there_are_runs() -> None:
    noise = suggest(sweep(sampled(lambda x: 0.5 + 0 * x, 64, 4, 2), "constant", 20))
    assert noise.n == 1
    assert "no number of phases stands out" in noise.reason
    runs = StepCurve(np.arange(9.0), [1, 1, 4, 4, 4, 2, 2, 7])
    exact = suggest(sweep(runs, "mixed", 20))
    assert exact.n == 4
    assert exact.reason == "4 phases reproduce the curve exactly"


@pytest.mark.parametrize(
    ("model", "told"), [("constant", (9, 13)), ("linear", (6, 9)), ("quadratic", (6, 9)), ("mixed", (6, 9))]
)
def test_a_curve_like_the_reports_first_gets_a_number_like_the_one_it_found_telling(
    model: str, told: tuple[int, int]
) -> None:
    """Section 4.1 and 5.2: 11 constant, 8 (6) linear, 9 (6) quadratic, 9 (7) mixed phases."""
    curve = StepCurve(*wave(), unit=1e-6)
    suggestion = suggest(sweep(curve, model, 20))
    assert told[0] <= suggestion.n <= told[1], suggestion.reason


def test_structure_under_heavy_noise_is_no_mere_noise() -> None:
    """Like the report's second example with 5 phases; no single step of n stands out of this noise."""
    suggestion = suggest(sweep(StepCurve(*cholesky(), unit=1e-6), "linear", 20))
    assert 3 <= suggestion.n <= 8
    assert "gradually" in suggestion.reason


def staying(old: PhaseFit, new: PhaseFit) -> int:
    """Inner breaks whose ranges come within 1 % of the curve, each the other's nearest; one by one."""

    def apart(i: int, j: int) -> tuple[float, float]:
        gap = max(
            new.breakpoint_low[j] - old.breakpoint_high[i],
            old.breakpoint_low[i] - new.breakpoint_high[j],
            0.0,
        )
        return float(gap), abs(float(new.breaks[j] - old.breaks[i]))

    before, after = range(1, old.n), range(1, new.n)
    nearest = {i: min(after, key=lambda j: apart(i, j)) for i in before}
    return sum(
        apart(i, j)[0] <= 0.01 * new.breaks[-1] and min(before, key=lambda i: apart(i, j)) == i
        for i, j in nearest.items()
    )


@pytest.mark.parametrize("k", [3, 4, 6, 7])
def test_breaks_that_last_are_counted(k: int) -> None:
    shape, _ = plateaus(k, 500 + k)
    result = sweep(sampled(shape, 64, 6, k), "constant", 15)
    suggestion = suggest(result)
    at, after = result.fit(suggestion.n), result.fit(suggestion.n + 1)
    found = re.search(r"; (\d+) of its (\d+) breakpoint", suggestion.reason)
    assert found is not None and found.groups() == (str(staying(at, after)), str(at.n - 1))


def test_one_phase_is_suggested_where_one_is_all_there_is() -> None:
    """A level curve needs one, and so does one that no larger number fits any better."""
    level = suggest(sweep(StepCurve(np.arange(9.0), np.full(8, 3.0)), "constant", 20))
    assert (level.n, level.reason) == (1, "1 phase reproduces the curve exactly")
    result = sweep(StepCurve(np.arange(3.0), [1.0, 2.0]), "constant", 1)
    assert result.epsilon[0] > 0
    assert suggest(result).n == 1
    assert "no larger number of phases up to 1" in suggest(result).reason

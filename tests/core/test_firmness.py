"""Intervals of breakpoints over repeats: they hold what they say, against places that are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import binom

from desktop.core.contrast import Phased, align
from desktop.core.curve import StepCurve
from desktop.core.firmness import (
    LEVEL,
    _enclosed,
    in_the_run,
    median_interval,
    over_runs,
    repeats,
    splits,
)
from desktop.core.iterations import Repeat, unfolded
from desktop.core.phases import fit, fit_breakpoints
from tests.benchmarks import firmness


@pytest.mark.parametrize("n", [3, 5, 6, 8, 11])
def test_the_level_is_that_of_order_statistics(n: int) -> None:
    places = np.random.default_rng(2 * n).permutation(n).astype(float)
    found = median_interval(places)
    assert found is not None
    low, high, level, least = found
    below = int(low)  # so many places lie outside on either side
    assert (low, high) == (below, n - 1 - below)
    assert level == pytest.approx(1 - 2 * binom.cdf(below, n, 0.5))
    assert (level >= LEVEL or below == 0) and 0.3 < least < level
    assert 1 - 2 * binom.cdf(below + 1, n, 0.5) < LEVEL, "the next shorter one would not do"
    assert median_interval(places[:2]) is None


@pytest.mark.parametrize("degree", [0, 1])
def test_a_row_is_divided_where_least_is_left(degree: int) -> None:
    rng = np.random.default_rng(degree)
    rows = rng.normal(size=(4, 40))
    rows[:, 17:] += 1.5 + 0.1 * np.arange(23)
    for row, found in zip(rows, splits(rows, degree), strict=True):
        left = [
            sum(np.polyfit(np.arange(part.size), part, degree, full=True)[1].sum() for part in parts)
            for parts in (np.split(row, [p]) for p in range(4, 37))
        ]
        assert found == 4 + int(np.argmin(left))


@pytest.mark.parametrize(
    ("make", "kind", "noise", "repeats", "count"),
    [
        (firmness.iterations, "normal", "little", 20, 40),
        (firmness.iterations, "skewed", "little", 8, 50),
        (firmness.iterations, "normal", "waves", 20, 40),
        (firmness.runs, "skewed", "much", 6, 25),
        (firmness.iterations, "lasting", "little", 20, 40),
    ],
)
def test_intervals_hold_the_known_median_as_often_as_they_say(make, kind, noise, repeats, count) -> None:
    level, held, cases = firmness.coverage(make, kind, noise, repeats, count)
    assert cases >= count
    assert held >= level - 2.6 * np.sqrt(level * (1 - level) / cases)


@pytest.mark.parametrize(("n", "rho"), [(7, 0.8), (20, 0.0), (20, 0.8), (41, 0.5)])
def test_the_median_is_enclosed_as_often_as_places_that_are_alike_do(n: int, rho: float) -> None:
    below = (lasting(rho, n, 20_000, seed=n) < 0).sum(axis=1)
    least = np.minimum(below, n - below)  # on the side with fewer
    for rank, told in enumerate(_enclosed(n, rho), 1):
        assert np.mean(least >= rank) == pytest.approx(told, abs=0.02)


def lasting(rho: float, n: int, count: int, seed: int) -> np.ndarray:
    """(count, n) places about 0 of which each resembles the one before."""
    new = np.random.default_rng(seed).normal(size=(count, n + 50))
    return lfilter([np.sqrt(1 - rho**2)], [1.0, -rho], new)[:, 50:]


@pytest.mark.parametrize("n", [3, 4, 6, 8, 11])
def test_few_repeats_hold_between_what_is_said_of_them(n: int) -> None:
    """The lower level where neighbours resemble each other as much as is thought of, the upper one where they
    do not, and something between where they do a little."""
    held = []
    for rho in (0.8, 0.5, 0.0):
        found = [median_interval(places) for places in lasting(rho, n, 2000, seed=n)]
        held.append(np.mean([one[0] <= 0 <= one[1] for one in found if one is not None]))
    assert found[0] is not None
    level, least = found[0][2:]
    assert held == pytest.approx([least, held[1], level], abs=0.035)
    assert least < held[1] < level


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6, 0.8])
@pytest.mark.parametrize("n", [12, 24, 48, 100])
def test_repeats_in_order_hold_what_they_say_where_noise_lasts(n: int, rho: float) -> None:
    found = [median_interval(places) for places in lasting(rho, n, 600, seed=n)]
    told = np.mean([one[2] for one in found if one is not None])
    held = np.mean([one[0] <= 0 <= one[1] for one in found if one is not None])
    assert held > told - (0.05 if rho < 0.8 or n > 12 else 0.12)
    assert told >= (LEVEL if rho == 0 else 0.88)


def test_repeats_that_resemble_those_before_count_for_less() -> None:
    rng = np.random.default_rng(5)
    alone = rng.normal(size=200)
    lasting = np.repeat(alone[:20], 10) + 0.01 * alone
    wide, narrow = (median_interval(p) for p in (lasting, alone))
    assert wide is not None and narrow is not None
    assert wide[1] - wide[0] > 2 * (narrow[1] - narrow[0])


def test_breakpoints_of_a_run_that_all_iterations_have_get_their_intervals() -> None:
    rng = np.random.default_rng(2)
    places = 0.4 + rng.normal(0, 0.01, 12)
    edges = np.sort(np.concatenate([np.arange(13.0), np.arange(12) + places]))
    curve = StepCurve(edges, np.tile([6.0, 2.0], 12), 8.0)
    loop = Repeat(np.arange(13.0), np.ones(12, bool))
    inside = unfolded(loop, np.array([0.4])).ravel()
    breaks = np.sort(np.concatenate([loop.bounds, inside, [5.7]]))  # one that is no other iteration's
    firm = in_the_run(curve, loop, fit_breakpoints(curve, breaks, "constant"))
    told = {float(t): one for t, one in zip(breaks[1:-1], firm, strict=True)}
    assert all((told[t] is None) == (t in loop.bounds or t == 5.7) for t in told)
    for k, t in enumerate(inside.tolist()):
        one = told[t]
        assert one is not None and one.low_s <= t <= one.high_s and one.high_s - one.low_s < 0.05
        assert one.low_s - k < np.median(places) < one.high_s - k
        assert one.level >= LEVEL and one.text == f"{100 * one.level:.0f} % over 12 iterations"


def test_iterations_of_another_length_have_their_intervals_in_proportion() -> None:
    """Three of twelve iterations last twice as long; another breakpoint is in half of them only."""
    rng = np.random.default_rng(8)
    lasts = np.where(np.arange(12) % 4 == 3, 2.0, 1.0)
    bounds = np.concatenate([[0.0], np.cumsum(lasts)])
    inside = bounds[:-1] + (0.4 + rng.normal(0, 0.005, 12)) * lasts
    edges = np.sort(np.concatenate([bounds, inside]))
    curve = StepCurve(edges, np.tile([6.0, 2.0], 12), 8.0)
    loop = Repeat(bounds, np.ones(12, bool))
    some = bounds[:6] + 0.8 * lasts[:6]
    near = bounds[1:-1] + 0.004
    at = bounds[:-1] + 0.4 * lasts
    breaks = np.sort(np.concatenate([bounds, at, some, near]))
    firm = in_the_run(curve, loop, fit_breakpoints(curve, breaks, "constant"))
    told = {float(t): one for t, one in zip(breaks[1:-1], firm, strict=True)}
    assert all(told[float(t)] is None for t in (*some, *near)), "half of the iterations, or their own ends"
    for k, t in enumerate(at.tolist()):
        one = told[t]
        assert one is not None
        low, high = ((x - bounds[k]) / lasts[k] for x in (one.low_s, one.high_s))
        assert low <= 0.4 <= high and high - low < 0.02, "within its own iteration"


def _full(places: np.ndarray) -> tuple[float, float]:
    """The interval of places that are known to be independent."""
    n, ordered = places.size, np.sort(places)
    below = max((k for k in range(n // 2) if 1 - 2 * binom.cdf(k, n, 0.5) >= LEVEL), default=0)
    return ordered[below], ordered[n - 1 - below]


def _longer(places: np.ndarray) -> float:
    (low, high), found = _full(places), median_interval(places)
    return np.nan if found is None else (found[1] - found[0]) / (high - low)


def test_neighbours_by_chance_alike_cost_little() -> None:
    """Thirty places say little of how alike neighbours are: most intervals stay as long or nearly so."""
    rng = np.random.default_rng(1)
    alone = [_longer(rng.normal(size=30)) for _ in range(60)]
    assert sum(one == 1 for one in alone) > 30 and np.mean(alone) < 1.2
    slow = [_longer(np.convolve(rng.normal(size=17), np.ones(6) / 6, "valid")) for _ in range(60)]
    assert sum(one > 1 for one in slow) > 45, "a state of the machine that lasts for six of twelve is seen"


def test_only_runs_of_the_same_program_are_repeats() -> None:
    def run(at: float, program: str, capacity: float = 4) -> Phased:
        curve = StepCurve([2.0, 2 + at, 6.0], [4.0, 1.0], capacity)
        return Phased("", curve, fit(curve, 2, "constant"), frozenset({program}))

    runs = [run(1 + 0.1 * k, "solve") for k in range(6)] + [run(3, "other"), run(3, "solve", 8)]
    (one,) = over_runs(align(runs), 0)
    assert one is not None and (one.repeats, one.of, one.what) == (6, 6, "runs")
    assert (one.low_s, one.high_s) == pytest.approx((3.0, 3.5), abs=0.01)
    assert one.level == pytest.approx(1 - 2 / 64)
    assert over_runs(align(runs), 6) == (None,)
    most = {f"part {k}" for k in range(10)}
    a, b, c = (replace(runs[0], program=frozenset(x)) for x in (most, most - {"part 3"}, {"part 3"}))
    assert (
        repeats(a, b)
        and not repeats(b, c)
        and not repeats(a, replace(a, program=frozenset({*most, "x", "y"})))
    )

"""The clock check on random programs of which the true times are known."""

from __future__ import annotations

import numpy as np
import pytest

from desktop.core.clock_line import Clock
from tests.simulated_clocks import CLOCKS, ROUNDED, Program, record


@pytest.mark.parametrize("clocks", CLOCKS)
def test_repairs_are_never_worse_than_what_was_recorded(clocks: str) -> None:
    contradictory = mended = 0
    for seed in range(10):
        found = record(Program(seed), clocks, seed + 777)
        result = found.result
        if clocks == "exact":
            assert result.before.checks == 0, seed
        if clocks in ("exact", "jittered"):
            assert not result.shift.any() and not result.drift.any(), seed
        before, after = found.spread(corrected=False), found.spread(corrected=True)
        assert after[0] <= before[0] + ROUNDED, (seed, before, after)
        assert after[1] <= before[1] + ROUNDED, (seed, before, after)
        assert found.beyond() <= ROUNDED, seed
        contradictory += result.before.checks > 0
        mended += result.repair in ("shift", "linear")
        if result.repair in ("shift", "linear"):
            assert result.after.checks == 0, seed
    if clocks in ("shifted", "drifting"):
        # What is few and small, or what no line mends, stays as recorded.
        assert 0 < contradictory <= 2 * mended


@pytest.mark.parametrize(
    ("seed", "clocks", "size"),
    [
        pytest.param(35, "jittered", None, id="so few contradictions that they may be scatter"),
        pytest.param(12, "shifted", 3e3, id="shifts of half of the checks that do not mend the other half"),
    ],
)
def test_what_is_small_is_mended_only_where_enough_says_so(
    seed: int, clocks: str, size: float | None
) -> None:
    result = record(Program(seed), clocks, seed + 777, size).result
    assert result.before.checks > 0 and np.isfinite(result.low).all(), "there are shifts that would do"
    assert (result.repair, result.shift.any()) == ("none", False)


@pytest.mark.parametrize("seed", [3050, 3316, 3570, 3837])
def test_drift_that_shifts_explain_is_within_what_is_stated(seed: int) -> None:
    """Only a constant shift was thought of: clocks were off by up to 20 times of what was stated."""
    found = record(Program(seed), "drifting", seed + 777)
    result = found.result
    assert result.repair == "shift" and not result.after.checks
    assert found.beyond(result.off_if_steady) > 300 > ROUNDED >= found.beyond()


@pytest.mark.parametrize("seed", [3073, 3134, 3389])
def test_drift_that_lines_explain_better_is_mended_by_lines(seed: int) -> None:
    """Shifts that satisfy all bounds made these worse than recorded, by up to a third."""
    found = record(Program(seed), "drifting", seed + 777)
    assert np.isfinite(found.result.low[1:]).any(), "there are shifts that would do"
    assert found.result.repair == "linear" and not found.result.after.checks
    before, after = found.spread(corrected=False), found.spread(corrected=True)
    assert after[0] < before[0] and after[1] < before[1]


def test_a_rate_of_all_clocks_is_no_error() -> None:
    """Nothing tells it, so neither does its change by a repair count: seconds are longer, and that is all."""
    found = record(Program(3337), "drifting", 3337 + 777)
    assert found.result.repair == "linear"
    before, after = found.spread(corrected=False), found.spread(corrected=True)
    assert after[0] < 0.05 * before[0] and after[1] < 0.05 * before[1]
    assert found.spread(corrected=True, rate=False)[0] > found.spread(corrected=False, rate=False)[0]


@pytest.mark.parametrize("size", [2e3, 1e8])
def test_shifts_from_microseconds_to_tenths_of_a_second(size: float) -> None:
    """2 us were once mended to an error of 24 us."""
    programs = [(seed, Program(seed)) for seed in range(15)]
    many = [(seed, program) for seed, program in programs if program.ranks >= 12]
    assert len(many) > 3
    for seed, program in many:
        found = record(program, "shifted", seed, size)
        before, after = found.spread(corrected=False), found.spread(corrected=True)
        assert after[0] <= before[0] + ROUNDED and after[1] <= before[1] + ROUNDED, (seed, before, after)


def test_a_clock_keeps_the_order_of_its_ticks() -> None:
    chance = np.random.default_rng(1)
    for drift in (-0.1, -1e-6, 0.0, 3e-5, 0.1):
        clock = Clock(-17, drift, 1000)
        ticks = np.arange(-500, 5000)
        common = clock.common(ticks)
        assert (np.diff(common) >= 0).all()
        asked = np.concatenate([common, chance.integers(-800, 7000, 300)])
        first = np.array([t if (t := clock.local(int(a))) is not None else 0 for a in asked])
        assert np.array_equal(clock.local(asked), first)
        assert (clock.common(first) >= asked).all()
        assert (clock.common(first - 1) < asked).all()
        assert clock.common(int(ticks[7])) == common[7]

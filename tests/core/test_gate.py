"""What a gate calls a difference, against a simulation of runs in which nothing, or something, changed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_ind

from desktop.core.gate import LEVEL, differences

PHASES = np.array([[5.0], [1.0], [3.0], [0.5], [2.0]])


def runs(rng: np.random.Generator, kind: str, count: int) -> np.ndarray:
    """Lengths of the whole run and five phases: (6, count)."""
    shape = (len(PHASES), count)
    noise = {
        "normal": lambda: 1 + 0.02 * rng.standard_normal(shape),
        "skewed": lambda: 1 + 0.02 * rng.exponential(size=shape),
        "heavy": lambda: np.exp(0.02 * rng.standard_t(3, shape)),
    }[kind]()
    return np.vstack([(PHASES * noise).sum(0), PHASES * noise])


@pytest.mark.parametrize(
    ("kind", "base", "new"), [("normal", 3, 3), ("skewed", 3, 3), ("skewed", 10, 1), ("heavy", 2, 5)]
)
def test_of_equal_sides_few_show_a_difference(kind: str, base: int, new: int) -> None:
    rng = np.random.default_rng(11)
    trials, wrong = 300, 0
    for _ in range(trials):
        times = runs(rng, kind, base + new)
        found = differences(times[:, :base], times[:, base:])
        wrong += any(one.significant for one in found)
    # The stated level and what 300 trials may stray from it (three standard errors).
    assert wrong / trials <= LEVEL + 3 * np.sqrt(LEVEL * (1 - LEVEL) / trials)


def test_a_change_of_one_phase_is_found_and_no_other() -> None:
    rng = np.random.default_rng(3)
    hits, others = 0, 0
    for _ in range(60):
        times = runs(rng, "normal", 10)
        times[3, 5:] *= 1.10
        found = differences(times[1:, :5], times[1:, 5:])
        hits += found[2].significant is True
        others += sum(bool(one.significant) for k, one in enumerate(found) if k != 2)
        assert found[2].low < found[2].change < found[2].high
    assert hits >= 57
    assert others <= 6


def test_a_steady_drift_is_no_difference_where_the_order_is_known() -> None:
    rng = np.random.default_rng(5)
    wrong = {True: 0, False: 0}
    for _ in range(100):
        times = runs(rng, "normal", 10) * (1 + 0.01 * np.arange(10))
        for in_order in wrong:
            found = differences(times[:, :5], times[:, 5:], in_order=in_order)
            wrong[in_order] += any(one.significant for one in found)
    assert wrong[True] <= 11
    assert wrong[False] > 50  # what is not known cannot be taken out


def test_the_numbers_of_one_phase_by_hand() -> None:
    base, new = np.array([[1.0, 2.0, 4.0]]), np.array([[3.0, np.nan, 12.0]])
    (one,) = differences(base, new)
    assert one.base_s == pytest.approx(2.0)
    assert one.new_s == pytest.approx(6.0)
    assert one.change == pytest.approx(2.0)
    # Two-sample t test of the logarithms: spread (2 ln²2 + 2 ln²2) / 3 = (1.386 ln²2), df 3.
    log2 = np.log(2)
    se = np.sqrt((2 * log2**2 + 2 * log2**2) / 3 * (1 / 3 + 1 / 2))
    wide = 3.182446 * se
    assert np.log1p(one.high) == pytest.approx(np.log(3) + wide, rel=1e-6)
    assert np.log1p(one.low) == pytest.approx(np.log(3) - wide, rel=1e-6)


def test_the_chances_of_all_times_by_hand() -> None:
    """Student's, times 1.5 and the ratio of runs; the whole run has half of the level, and the phases share
    the other half by Holm."""
    rng = np.random.default_rng(4)
    base = np.exp(0.05 * rng.standard_normal((4, 6)))
    new = np.exp(0.05 * rng.standard_normal((4, 3))) * np.array([[1.04], [1.03], [1.3], [1.01]])
    plain = np.array([ttest_ind(np.log(a), np.log(b)).pvalue for a, b in zip(base, new, strict=True)])
    each = np.minimum(1.5 * 6 / 3 * plain, 1.0)
    order = 1 + np.argsort(each[1:])
    phases = np.maximum.accumulate(2 * each[order] * [3, 2, 1])
    expected = np.minimum([2 * each[0], *phases[np.argsort(order)]], 1.0)
    found = differences(base, new)
    np.testing.assert_allclose([one.p for one in found], expected, rtol=1e-9)
    assert [one.significant for one in found] == (expected <= LEVEL).tolist() == [False, False, True, False]
    # Of two alike, the later one by Holm is no surer than the one before it.
    pair = [0, 2, 2]
    first, later = differences(base[pair], new[pair] ** [[1.0], [1.001], [1.0]])[1:]
    assert first.p == later.p < LEVEL
    (one,) = differences(base[:1], new[:1] * [0, 1, 1])  # a time of nothing tells nothing
    assert one.new_s == pytest.approx(np.exp(np.log(new[0, 1:]).mean()))
    (alone,) = differences(base[:1], np.full((1, 3), np.nan))
    assert alone.significant is None
    # Three runs in order leave no scatter.
    (drift,) = differences(base[:1, :2], np.array([[np.nan, 1.1]]), in_order=True)
    assert drift.significant is None


def test_what_is_not_known_is_not_said() -> None:
    single, gone = differences(np.array([[1.0], [2.0]]), np.array([[1.2], [np.nan]]))
    assert (single.significant, gone.significant) == (None, None)
    assert single.change == pytest.approx(0.2)
    assert np.isnan([single.p, single.low, gone.change, gone.new_s]).all()
    same, moved = differences(np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([[1.0, 1.0], [1.0001, 1.0001]]))
    assert (same.significant, moved.significant) == (False, True)  # runs that do not scatter at all
    with pytest.raises(ValueError, match="equally many rows"):
        differences(np.ones((2, 1)), np.ones((3, 1)))

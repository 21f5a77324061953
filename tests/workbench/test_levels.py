"""Which processors are shown upright: the rules, whatever draws them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop.core.curve import StepCurve
from desktop.workbench.levels import (
    AT_FIRST,
    LEAST,
    RATIO,
    Heights,
    Levels,
    at_share,
    limits,
    line_heights,
    little,
    moved,
    note,
    residual_reach,
    round_up,
    share,
    stretched,
    whole,
    zoomed,
)

LOW = Heights(12, 0, 1, 0.058, 0.001, 0, 1)
HIGH = Heights(12, 0, 12, 11.5, 0.2, 2, 9)
levels = st.floats(0.01, 1e6)
heights = st.builds(
    lambda p, most, peak, tiny, low, high: Heights(
        p, 0.0, most * p, peak * most * p, tiny * peak * most * p, min(low, high) * p, max(low, high) * p
    ),
    levels, *[st.floats(0.001, 1.0)] * 5,
)  # fmt: skip
asked = st.builds(Levels, st.sampled_from(["start", "all", "fit"]), log=st.booleans())


def test_a_curve_that_stays_under_a_tenth_is_fitted_at_first_and_the_axis_says_so() -> None:
    assert little(LOW) and limits(AT_FIRST, LOW) == (0, 0.08)
    assert note(AT_FIRST, LOW) == "0–0.08 of 12 processors, peaks to 1"
    assert not little(HIGH) and limits(AT_FIRST, HIGH) == whole(HIGH) == (0, 12.6)
    assert note(AT_FIRST, HIGH) == ""
    assert note(AT_FIRST, replace(LOW, processors=1024)) == "0–0.08 of 1024 processors, peaks to 1"
    edge = replace(LOW, peak=1.21)
    assert not little(edge) and limits(AT_FIRST, edge) == (0, 12.6)
    assert not little(replace(LOW, peak=0.0))  # nothing to be seen at any magnification


def test_what_is_visible_and_all_of_it() -> None:
    low, high = limits(Levels("fit"), HIGH)
    assert (low, high) == pytest.approx((2 - 0.35, 9 + 0.35))
    assert note(Levels("fit"), HIGH) == "1.65–9.35 of 12 processors"
    assert limits(Levels("all"), LOW) == (0, 12.6) and note(Levels("all"), LOW) == ""
    level = replace(HIGH, low=4.0, high=4.0)
    assert limits(Levels("fit"), level)[0] < 4 < limits(Levels("fit"), level)[1]
    missing = replace(HIGH, low=math.nan, high=math.nan)
    assert limits(Levels("fit"), missing) == (0, 12.6)


def test_the_line_of_a_curve_is_what_is_drawn() -> None:
    edges = np.arange(0, 100_001)
    level = np.where(np.arange(100_000) % 100 < 6, 1.0, 0.0)
    peak, tiny = line_heights(StepCurve(edges, level, 12))
    assert (peak, tiny) == pytest.approx((0.06, 0.06))
    assert math.isnan(line_heights(StepCurve([0, 1], [0.0], 4))[1])


@given(asked, heights, st.floats(0.1, 20), st.floats(0, 1))
def test_the_level_at_the_pointer_stays_where_it_is(
    wanted: Levels, known: Heights, factor: float, at: float
) -> None:
    low, high = limits(wanted, known)
    assert low < high and (low > 0 or not wanted.log)
    about = at_share(at, low, high, wanted.log)
    after = zoomed(wanted, known, factor, about)
    assert after.log == wanted.log and not after.problem()
    a, b = limits(after, known)
    assert a < b
    bottom, top = limits(replace(wanted, mode="all"), known)
    if factor > 1 and (wanted.log or b - a > 1e-4 * (top - bottom)):  # else it is as close as it gets
        assert float(share(np.float64(about), a, b, wanted.log)) == pytest.approx(at, abs=1e-4)
    assert b <= max(top, high) * (1 + 1e-9)
    if not wanted.log:
        assert a >= bottom - 1e-9 * top


@given(asked, heights, st.floats(0.05, 0.95), st.floats(0.01, 1.0))
def test_a_stretched_axis_puts_the_level_that_was_held_under_the_pointer(
    wanted: Levels, known: Heights, held: float, to: float
) -> None:
    low, high = limits(wanted, known)
    level = at_share(held, low, high, wanted.log)
    after = stretched(wanted, known, level, to)
    a, b = limits(after, known)
    bottom, top = limits(replace(wanted, mode="all"), known)
    # Else it ends where all do, or is as close as it gets.
    if after.mode == "hand" and b < top * (1 - 1e-9) and (wanted.log or b - a > 1e-4 * (top - bottom)):
        assert a == pytest.approx(low, abs=1e-9 * top)
        assert float(share(np.float64(level), a, b, wanted.log)) == pytest.approx(to, abs=1e-6)


@given(asked, heights, st.floats(-3, 3))
def test_moving_keeps_the_magnification_and_ends_at_the_ends(
    wanted: Levels, known: Heights, part: float
) -> None:
    close = zoomed(wanted, known, 4)
    low, high = limits(close, known)
    a, b = limits(moved(close, known, part), known)
    if wanted.log:
        assert b / a == pytest.approx(high / low, rel=1e-6)
    else:
        assert b - a == pytest.approx(high - low, rel=1e-6)
    assert b <= limits(replace(wanted, mode="all"), known)[1] * (1 + 1e-9)


def test_there_is_a_narrowest_range_and_the_pointer_is_within() -> None:
    assert zoomed(AT_FIRST, HIGH, 2, 100.0) == zoomed(AT_FIRST, HIGH, 2, 12.6)
    close = zoomed(AT_FIRST, HIGH, 1e12, 3.0)
    assert close.high - close.low == pytest.approx(LEAST * 12.6) and close.low < 3 < close.high
    close = zoomed(Levels(log=True), HIGH, 1e12, 3.0)
    assert close.high / close.low == pytest.approx(RATIO) and close.low < 3 < close.high


def test_zooming_out_far_enough_is_all_of_it() -> None:
    close = zoomed(AT_FIRST, HIGH, 10, 3)
    assert close.mode == "hand" and note(close, HIGH)
    assert zoomed(close, HIGH, 1e-3).mode == "all"


@given(levels, st.floats(1.2, 1e6), st.floats(0, 1))
def test_shares_and_levels_are_each_others_inverse(low: float, ratio: float, at: float) -> None:
    for log in (False, True):
        level = at_share(at, low, low * ratio, log)
        assert float(share(np.float64(level), low, low * ratio, log)) == pytest.approx(at, abs=1e-9)
    assert float(share(np.float64(0.0), low, low * ratio, True)) < 0


def test_a_logarithmic_axis_has_whole_decades_and_never_too_many() -> None:
    assert limits(Levels("all", log=True), HIGH) == (0.1, 12.6)
    assert limits(Levels("all", log=True), replace(HIGH, tiny=1e-9)) == (0.001, 12.6)
    assert limits(Levels("start", log=True), LOW) == (0.0001, 0.08)
    assert limits(Levels("fit", log=True), replace(HIGH, tiny=math.nan))[0] > 0


def test_the_residual_shows_no_more_than_is_seen_of_levels() -> None:
    assert residual_reach(5.0, Levels("all"), HIGH) == 5.0
    assert residual_reach(5.0, AT_FIRST, LOW) == 0.08


@given(st.floats(1e-9, 1e9))
def test_rounding_up_is_little_more(value: float) -> None:
    assert value * (1 - 1e-9) <= round_up(value) <= 1.5 * value


def test_a_file_may_hold_nonsense() -> None:
    assert (
        Levels("none").problem() and Levels("hand", 2, 1).problem() and Levels("hand", 0, 1, True).problem()
    )
    assert Levels("hand", math.nan, 1).problem() and not Levels("hand", 0, 1).problem()

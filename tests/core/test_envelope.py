"""The drawing tree against brute force over all steps."""

from __future__ import annotations

import gc
import weakref
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.core.concurrency import concurrency
from desktop.core.curve import StepCurve
from desktop.core.envelope import envelope
from desktop.core.tree import moment_tree


def brute(curve, x):
    """(minimum, maximum, mean, first, last, steps) per column, with exact rational arithmetic."""
    edges = [Fraction(float(e)) for e in curve.edges]
    ticks = [Fraction(float(t)) for t in np.asarray(x) / curve.unit]
    for a, b in pairwise(ticks):
        if a == b:
            hit = [j for j in range(curve.segments) if edges[j] <= a < edges[j + 1]]
            width = {j: Fraction(1) for j in hit}
        else:
            width = {j: min(b, edges[j + 1]) - max(a, edges[j]) for j in range(curve.segments)}
            hit = [j for j in width if width[j] > 0]
        if not hit:
            yield (np.nan,) * 5 + (0,)
            continue
        levels = [float(curve.level[j]) for j in hit]
        mean = sum(Fraction(float(curve.level[j])) * width[j] for j in hit) / sum(width[j] for j in hit)
        yield min(levels), max(levels), float(mean), levels[0], levels[-1], len(hit)


@st.composite
def curves(draw):
    m = draw(st.integers(1, 700))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    widths = rng.integers(1, draw(st.sampled_from([2, 50, 10**6])), m)
    origin = draw(st.sampled_from([0, 10**6, 10**15]))
    level = rng.integers(0, draw(st.sampled_from([1, 2, 64])) + 1, m).astype(float)
    edges = origin + np.concatenate(([0], np.cumsum(widths)))
    return StepCurve(edges, level, unit=draw(st.sampled_from([1.0, 1e-9]))), rng


@settings(deadline=None, max_examples=60)
@given(curves(), st.integers(1, 40), st.sampled_from(["whole", "outside", "edges", "inside"]))
def test_columns_are_exact(made, width, where):
    curve, rng = made
    a, b = curve.start, curve.start + curve.duration
    if where == "whole":
        x = np.linspace(a, b, width + 1)
    elif where == "outside":
        x = np.linspace(a - 0.4 * (b - a), b + 0.3 * (b - a), width + 1)
    elif where == "edges":  # columns that begin and end exactly on steps, some without width
        x = np.sort(rng.choice(curve.edges, width + 1)) * curve.unit
    else:
        x = np.sort(rng.uniform(a, b, width + 1))
    got = envelope(curve).columns(x)
    expected = np.array(list(brute(curve, x)))
    for row, name in enumerate(["minimum", "maximum", "mean", "first", "last"]):
        np.testing.assert_allclose(getattr(got, name), expected[:, row], rtol=1e-12, err_msg=name)
    np.testing.assert_array_equal(got.steps, expected[:, 5])


@settings(deadline=None, max_examples=40)
@given(curves(), st.floats(-0.2, 1.2), st.floats(-0.2, 1.2))
def test_range_agrees_with_the_window(made, p, q):
    curve, _ = made
    a, b = (curve.start + curve.duration * f for f in sorted((p, q)))
    low, high, integral = envelope(curve).range(a, b)
    try:
        part = curve.window(a, b)
    except ValueError:
        assert integral == 0
        return
    assert (low, high) == (part.level.min(), part.level.max())
    assert integral == pytest.approx(part.integral, rel=1e-9)


def test_one_short_dip_among_a_million_steps_is_in_its_column():
    m = 1_000_000
    level = np.full(m, 64.0)
    level[777_777] = 0
    curve = StepCurve(np.arange(m + 1.0), level, unit=1e-9)
    columns = envelope(curve).columns(np.linspace(0, m * 1e-9, 1401))
    assert np.flatnonzero(columns.minimum == 0).tolist() == [int(777_777 / m * 1400)]
    assert columns.maximum.min() == 64


def test_a_narrow_column_late_in_a_long_run_keeps_its_precision():
    """A running total of 1e15 could not tell these columns from nothing."""
    edges = np.concatenate(([0.0], 1e15 + np.arange(2001)))
    level = np.concatenate(([1000.0], np.tile([0.0, 1.0], 1000)))
    columns = envelope(StepCurve(edges, level)).columns(1e15 + np.linspace(0, 2000, 11))
    np.testing.assert_array_equal(columns.mean, 0.5)


def test_the_tree_is_built_once():
    curve = StepCurve(np.arange(11), np.arange(10))
    assert envelope(curve) is envelope(curve)


def test_a_curve_goes_with_the_last_who_needs_it() -> None:
    gc.disable()  # as in the window, where it is collected now and then
    try:
        curve = StepCurve([0.0, 1, 2, 4], [1.0, 0, 2], 2)
        envelope(curve)
        moment_tree(curve)
        concurrency(curve, 0, 4)
        assert {"envelope", "moments", "concurrency"} <= curve.summaries.keys()
        alive = weakref.ref(curve)
        del curve
        assert alive() is None, "no summary holds its curve"
    finally:
        gc.enable()

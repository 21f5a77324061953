"""The phase table against plain sums over the steps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.core.curve import StepCurve
from desktop.core.phase_stats import phase_table
from desktop.core.phases import MODELS, fit
from tests.strategies import curves


@settings(max_examples=60, deadline=None)
@given(curves(min_steps=1, max_steps=60, unit=1e-9), st.sampled_from(MODELS[:5]), st.integers(2, 7))
def test_rows_are_sums_over_the_steps_of_each_phase(curve: StepCurve, model: str, n: int) -> None:
    found = fit(curve, n, model)
    rows = phase_table(curve, found)
    assert len(rows) == found.n
    for i, row in enumerate(rows):
        a = found.index[i], found.offset[i]
        b = found.index[i + 1], found.offset[i + 1]
        first, last = a[0] - (a[1] < 0), b[0] - (b[1] <= 0)
        inside = curve.level[first : last + 1]
        assert (row.min, row.max) == (inside.min(), inside.max())
        width = np.diff(curve.edges)[first : last + 1].copy()
        width[-1] = width[-1] if b[1] == 0 else (b[1] if b[1] > 0 else width[-1] + b[1])
        width[0] -= a[1] if a[1] >= 0 else width[0] + a[1]
        if first == last:
            width[0] = (curve.edges[b[0]] - curve.edges[a[0]]) + (b[1] - a[1])
        work = float(width @ inside) * curve.unit
        assert row.work_s == pytest.approx(work, rel=1e-9, abs=1e-12 * max(1.0, abs(work)))
        assert row.mean == pytest.approx(row.work_s / found.duration[i], rel=1e-12)
        assert row.rms * math.sqrt(found.duration[i]) == pytest.approx(row.error, rel=1e-12)
        assert len(row.coefficients) == row.degree + 1
    assert sum(row.work_s for row in rows) == pytest.approx(curve.integral, rel=1e-9)


def test_efficiency_is_of_the_capacity_and_an_empty_run_has_none() -> None:
    curve = StepCurve([0.0, 1.0, 3.0], [8.0, 2.0], capacity=16)
    first, second = phase_table(curve, fit(curve, 2, "constant"))
    assert (first.efficiency, second.efficiency) == (0.5, 0.125)
    assert (first.start_s, first.end_s, second.end_s) == (0.0, 1.0, 3.0)
    idle = StepCurve([0.0, 1.0], [0.0])
    assert phase_table(idle, fit(idle, 1))[0].efficiency == 0.0


def test_a_phase_that_ends_at_an_edge_does_not_touch_the_next_step() -> None:
    """In seconds these edges are no exact numbers, and dividing by the unit again would miss them."""
    rng = np.random.default_rng(5)
    edges = np.concatenate(([0], np.cumsum(rng.integers(1, 10**6, 40)))).astype(float)
    curve = StepCurve(edges, np.repeat([3.0, 50.0, 7.0, 20.0], 10), unit=1e-9)
    for row, level in zip(phase_table(curve, fit(curve, 4, "quadratic")), (3, 50, 7, 20), strict=True):
        assert (row.min, row.max, row.mean, row.error) == (level, level, level, 0.0)

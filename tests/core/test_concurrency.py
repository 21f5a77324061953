"""The concurrency profile against a sum over all steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.core import concurrency as module
from desktop.core.concurrency import concurrency
from desktop.core.curve import StepCurve
from tests.strategies import curves


@settings(deadline=None, max_examples=40)
@given(curves(), st.floats(0, 1), st.floats(0, 1), st.sampled_from([1, 3, 4096]))
def test_the_time_at_each_level(curve: StepCurve, a: float, b: float, block: int) -> None:
    """Whatever the levels and the blocks, and however the range lies to the steps."""
    e = curve.edges
    start, end = sorted(float(e[0] + part * (e[-1] - e[0])) for part in (a, b))
    if not start < end:
        with pytest.raises(ValueError, match="empty or outside"):
            concurrency(curve, start, end)
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", block)
        patch.setattr(module, "BLOCK_PER_LEVEL", 0)
        levels, shares = concurrency(curve, start, end)
    inside = np.maximum(np.minimum(e[1:], end) - np.maximum(e[:-1], start), 0)
    for level in np.unique(curve.level):
        want = inside[curve.level == level].sum() / (end - start)
        found = shares[levels == level].sum()
        assert found == pytest.approx(want, rel=1e-9, abs=1e-9 * float(e[-1]) / (end - start) + 1e-12)
    assert (np.diff(levels) > 0).all() and set(levels) <= set(curve.level)


def test_a_range_cut_off_at_the_ends() -> None:
    curve = StepCurve([0, 10, 20, 40], [1, 3, 1])
    levels, shares = concurrency(curve, -5, 99)
    assert levels.tolist() == [1, 3] and shares.tolist() == [0.75, 0.25]
    assert concurrency(curve, 10, 20)[0].tolist() == [3]

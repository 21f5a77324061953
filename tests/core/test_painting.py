"""Kernels that paint stay within their pixels."""

from __future__ import annotations

import numpy as np
import pytest

from desktop.core.painting import trace_line


@pytest.mark.parametrize("row", [-50.0, -1.0, 0.0, 0.5, 1.0, 50.0])
@pytest.mark.parametrize("thickness", [1, 2, 3])
@pytest.mark.parametrize("height", [1, 2, 3])
def test_a_line_thicker_than_its_lane_stays_in_it(row: float, thickness: int, height: int) -> None:
    whole, rows = np.zeros((height + 6, 4), np.uint32), np.full(4, row)
    trace_line(whole[3 : 3 + height], rows, rows, np.ones(4, bool), thickness, 1, 1, 7)
    beside = np.delete(whole, np.arange(3, 3 + height), axis=0)
    assert not beside.any() and (whole[3 : 3 + height] == 7).any()

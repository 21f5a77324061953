"""Lines counted by pixel, against counting each line in each pixel."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from desktop.core.density import LEAST_INK, MOST_INK, ink, line_density

WIDTH, HEIGHT = 12, 9


def passes(line: tuple[float, float, float, float], c: int, r: int) -> bool:
    """Whether a line has more than a point in common with a pixel (Liang and Barsky's clipping)."""
    x0, y0, x1, y1 = line
    begin, end = 0.0, 1.0
    for start, step, low, high in ((x0, x1 - x0, c, c + 1), (y0, y1 - y0, r, r + 1)):
        if step == 0:
            if not low < start < high:
                return False
            continue
        ends = sorted(((low - start) / step, (high - start) / step))
        begin, end = max(begin, ends[0]), min(end, ends[1])
    return begin < end


# Off the grid, where it is a matter of definition to which pixel a line belongs.
place = st.integers(-400, 1800).map(lambda k: k / 97 + 0.00123)


@given(st.lists(st.tuples(place, place, place, place), max_size=12))
@settings(max_examples=150, deadline=None)
def test_every_line_counts_once_in_every_pixel_it_passes_through(lines: list[tuple[float, ...]]) -> None:
    at = np.array(lines, float).reshape(-1, 4)
    found = line_density(at[:, [0, 2]].T, at[:, [1, 3]].T, WIDTH, HEIGHT)
    want = np.array(
        [[sum(passes(line, c, r) for line in lines) for c in range(WIDTH)] for r in range(HEIGHT)]
    )
    # A corner that a line just touches may be on either side.
    near = near_corner(at)
    assert np.array_equal(found[~near], want[~near])


def near_corner(at: NDArray[np.float64]) -> NDArray[np.bool_]:
    near = np.zeros((HEIGHT, WIDTH), bool)
    for x0, y0, x1, y1 in at:
        length = math.hypot(x1 - x0, y1 - y0)
        if length:
            for r in range(HEIGHT + 1):
                for c in range(WIDTH + 1):
                    if abs((x1 - x0) * (r - y0) - (y1 - y0) * (c - x0)) / length < 1e-9:
                        near[max(r - 1, 0) : r + 1, max(c - 1, 0) : c + 1] = True
    return near


def test_what_is_not_finite_is_no_line() -> None:
    x = np.array([[0.5, np.nan, 0.5, -np.inf], [2.5, 1, 1, 3.0]])
    y = np.array([[0.5, 1, np.nan, 1.0], [0.5, 1, 1, 1.0]])
    assert line_density(x, y, 4, 2).tolist() == [[1, 1, 1, 0], [0, 0, 0, 0]]
    assert line_density(np.empty((2, 0)), np.empty((2, 0)), 4, 2).sum() == 0


def test_more_lines_have_more_ink_and_none_has_none() -> None:
    shade = ink(np.array([[0, 1, 2, 10, 1000, 1000000]], np.int32))[0]
    assert shade[0] == 0 and shade[1] == round(255 * LEAST_INK) and shade[-1] == round(255 * MOST_INK)
    assert (np.diff(shade.astype(int)) > 0).all()
    steps = shade[[1, 4, 5]].astype(int)
    assert abs((steps[1] - steps[0]) - (steps[2] - steps[1])) <= 1  # by the logarithm
    assert ink(np.array([[0, 1]], np.int32)).tolist() == [[0, round(255 * MOST_INK)]]


@pytest.mark.parametrize("far", [1e15, 1e19, 1e300])
def test_a_line_may_end_as_far_away_as_floats_reach(far: float) -> None:
    upright, level = (
        (np.array([[1.5], [1.5]]), np.array([[-far], [far]])),
        (
            np.array([[-far], [far]]),
            np.array([[0.5], [0.5]]),
        ),
    )
    assert line_density(*upright, 4, 2).tolist() == [[0, 1, 0, 0], [0, 1, 0, 0]]
    assert line_density(*level, 4, 2).tolist() == [[1, 1, 1, 1], [0, 0, 0, 0]]

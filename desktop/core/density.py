"""Line density: the number of lines through each pixel, drawn where lines would cover each other."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from desktop.core.arrays import AnyArray, Bytes, Floats
from desktop.core.jit import kernel

#: Opacity of a single line, and of the densest pixel, in a density; what is below stays visible.
LEAST_INK, MOST_INK = 0.1, 0.42
#: Largest number of lines that are drawn singly, and part of their pixels that may have several.
DRAWN, CROSSED = 2000, 0.1


def apart(density: NDArray[np.int32], lines: int) -> bool:
    """Whether single lines can be distinguished: they are few, and few pixels have more than one."""
    crossed = int((density > 1).sum()) > CROSSED * max(int((density > 0).sum()), 1)
    return lines <= DRAWN and not crossed


def line_density(x: Floats, y: Floats, width: int, height: int) -> NDArray[np.int32]:
    """(height, width) number of lines through each pixel.

    Parameters
    ----------
    x, y : (2, n) begins and ends of the lines, in pixels: pixel (r, c) reaches from (c, r) to
        (c + 1, r + 1). Lines are clipped; those that are not finite are ignored.

    A line costs as many operations as pixels in its shorter direction (runs of whole pixels are stored by
    their ends), at most ``min(width, height)``, so lines along an axis cost nearly nothing.
    """
    upright = np.zeros((height + 1, width), np.int32)
    level = np.zeros((height, width + 1), np.int32)
    _note(np.ascontiguousarray(x), np.ascontiguousarray(y), upright, level)
    np.cumsum(upright, axis=0, out=upright)
    np.cumsum(level, axis=1, out=level)
    return upright[:-1] + level[:, :-1]


@kernel
def _note(x: Floats, y: Floats, upright: AnyArray, level: AnyArray) -> None:
    """Add 1 where a run of pixels begins, and subtract 1 behind its end, for all lines."""
    for i in range(x.shape[1]):
        x0, x1, y0, y1 = x[0, i], x[1, i], y[0, i], y[1, i]
        if not (math.isfinite(x0) and math.isfinite(x1) and math.isfinite(y0) and math.isfinite(y1)):
            continue
        if abs(x1 - x0) <= abs(y1 - y0):
            _note_runs(x0, x1, y0, y1, upright)
        else:
            _note_runs(y0, y1, x0, x1, level.T)


@kernel
def _note_runs(x0: float, x1: float, y0: float, y1: float, ends: AnyArray) -> None:
    """The same for one line, whose runs are along the columns of `ends` (rows + 1, columns)."""
    height, width = ends.shape[0] - 1, ends.shape[1]
    if x1 < x0:
        x0, x1, y0, y1 = x1, x0, y1, y0
    if x1 < 0 or x0 >= width or max(y0, y1) < 0 or min(y0, y1) >= height:
        return
    slope = (y1 - y0) / (x1 - x0) if x1 > x0 else 0.0
    for c in range(math.floor(max(x0, 0.0)), math.floor(min(x1, width - 1.0)) + 1):
        a = y0 if c <= x0 else y0 + (c - x0) * slope
        b = y1 if c + 1 >= x1 else y0 + (c + 1 - x0) * slope
        low, high = min(a, b), max(a, b)
        if high >= 0 and low < height:
            # Limited before they are whole numbers, into which not every float fits.
            ends[math.floor(max(low, 0.0)), c] += 1
            ends[math.floor(min(high, height - 1.0)) + 1, c] -= 1


def ink(density: NDArray[np.int32]) -> Bytes:
    """(height, width) opacity from 0 to 255: 0 without a line, `LEAST_INK` for one, and rising with the
    logarithm of their number to `MOST_INK` for the densest pixel; `MOST_INK` if no pixel has several."""
    top = int(density.max(initial=0))
    if top <= 1:
        return np.where(density > 0, np.uint8(round(255 * MOST_INK)), np.uint8(0))
    with np.errstate(divide="ignore"):
        share = LEAST_INK + (MOST_INK - LEAST_INK) * np.log(density) / math.log(top)
    return np.where(density > 0, np.rint(255 * share), 0).astype(np.uint8)

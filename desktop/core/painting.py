"""Kernels that paint: areas, lines, parabolas and tints into images of 32 bits a pixel, (height, width)."""

from __future__ import annotations

import math

import numpy as np

from desktop.core.arrays import AnyArray, Bytes, Flags, Floats, Ints
from desktop.core.jit import kernel


def warm_up() -> None:
    """Load or compile the kernels that paint a curve and its fit, so that the window's thread need not."""
    pixels, ends = np.zeros((4, 4), np.uint32), np.zeros((3, 1))
    rows = np.zeros((2, 4), np.int32)
    fill_areas(pixels, rows, np.zeros(3, np.uint32))
    draw_line(pixels, *rows, 1, 0)
    whole = np.array([0]), np.array([0, 16]), np.full(16, 256, np.uint16), np.zeros(16, np.uint8)
    tint(pixels.view(np.uint8), *whole)
    line_columns(ends[:, 0], 0.0, 1.0, 1, 1, np.zeros(4))
    band_columns(ends[:, 0], ends[:, 0], 0.0, 1.0, np.zeros(4))
    stroke_parabolas(pixels, ends[:2], ends, np.ones(1), 0, 0, 0)


@kernel
def tint(pixels: Bytes, begin: Ints, ends: Ints, keep: AnyArray, add: Bytes) -> None:
    for r in range(pixels.shape[0]):
        for s in range(begin.size):
            scale, added = keep[ends[s] : ends[s + 1]], add[ends[s] : ends[s + 1]]
            row = pixels[
                r, begin[s] : begin[s] + scale.size
            ]  # plain indices from 0 become vector instructions
            for k in range(scale.size):
                row[k] = ((row[k] * scale[k]) >> 8) + added[k]


@kernel
def line_columns(times: Floats, a: float, b: float, reach: int, thickness: int, opacity: Floats) -> None:
    """Set the opacity of each column between the times `a` and `b`, with lines at `times`, ascending."""
    width, first, last = opacity.size, 0, 0
    for t in times:
        at = math.floor((t - a) / (b - a) * width)
        if not 0 <= at < width:
            continue
        # Lines in a neighbourhood of 24 pixels: five or more fade, so that together they are no darker;
        # thirteen or more, less than two pixels apart, fade faster, as they cannot be distinguished.
        while math.floor((times[first] - a) / (b - a) * width) < max(at - reach, 0):
            first += 1
        while last < times.size and (times[last] - a) / (b - a) * width < min(at + reach + 1, width):
            last += 1
        near = last - first
        share = min(4 / near * min(12 / near, 1.0), 1.0)
        for k in range(at, min(at + thickness, width)):
            opacity[k] = share


@kernel
def band_columns(low: Floats, high: Floats, a: float, b: float, covered: Floats) -> None:
    """Set columns between the times `a` and `b` to 1 if they are between the times `low` and `high` (n,)."""
    width = covered.size
    for i in range(low.size):
        first, last = (low[i] - a) / (b - a) * width, (high[i] - a) / (b - a) * width
        covered[int(np.rint(min(max(first, 0.0), width))) : int(np.rint(min(max(last, 0.0), width)))] = 1.0


@kernel
def stroke_parabolas(
    pixels: AnyArray, x: Floats, y: Floats, half: Floats, red: int, green: int, blue: int
) -> None:
    height, width = pixels.shape
    for i in range(x.shape[1]):
        a, b = x[0, i], max(x[1, i], x[0, i] + 1)
        ya, yc, yb, h = y[0, i], y[1, i], y[2, i], half[i]
        # A steep end is cut perpendicular to the line, not vertically.
        sa, sb = 2 * (yc - ya) / (b - a), 2 * (yb - yc) / (b - a)
        ca, cb = h / math.sqrt(1 + sa * sa), h / math.sqrt(1 + sb * sb)
        low, high = min(ya - ca, yb - cb), max(ya + ca, yb + cb)
        if sa * sb < 0:
            t = (ya - yc) / (ya - 2 * yc + yb)
            vertex = ya + t * (yc - ya)
            low, high = min(low, vertex - h), max(high, vertex + h)
        for k in range(max(0, math.floor(a)), min(width, math.ceil(b))):
            u, v = max(float(k), a), min(k + 1.0, b)
            s, t = (u - a) / (b - a), (v - a) / (b - a)
            enter = (1 - s) * (1 - s) * ya + 2 * s * (1 - s) * yc + s * s * yb
            leave = (1 - t) * (1 - t) * ya + 2 * t * (1 - t) * yc + t * t * yb
            slope = (leave - enter) / (v - u)
            thick = 2 * h * math.sqrt(1 + slope * slope)
            first, last = min(enter, leave) - thick / 2, max(enter, leave) - thick / 2
            begin, end = max(first, low, 0.0), min(last + thick, high, float(height))
            for r in range(math.floor(begin), math.ceil(end)):
                above, below = max(float(r), begin), min(r + 1.0, end)
                part = band_below(below, first, last, thick) - band_below(above, first, last, thick)
                share = int((v - u) * part * 256 + 0.5)
                old = pixels[r, k]
                mixed_red = (((old >> 16) & 255) * (256 - share) + red * share) >> 8
                mixed_green = (((old >> 8) & 255) * (256 - share) + green * share) >> 8
                mixed_blue = ((old & 255) * (256 - share) + blue * share) >> 8
                pixels[r, k] = 0xFF000000 | (mixed_red << 16) | (mixed_green << 8) | mixed_blue


@kernel
def band_below(row: float, first: float, last: float, thick: float) -> float:
    """Mean height of the part above `row` of a band of height `thick`, whose top moves from first to last."""
    near, far = row - last, row - first
    if far - near < 1e-6:
        return min(max(far, 0.0), thick)
    return (ramp(far, thick) - ramp(near, thick)) / (far - near)


@kernel
def ramp(z: float, thick: float) -> float:
    """The integral of ``min(max(z, 0), thick)``."""
    inside = min(max(z, 0.0), thick)
    return inside * inside / 2 + thick * max(z - thick, 0.0)


@kernel
def fill_areas(pixels: AnyArray, rows: AnyArray, table: AnyArray) -> None:
    height, width = pixels.shape
    for r in range(height):
        out = pixels[r]
        out[:] = table[0]
        for i in range(rows.shape[0]):  # limits descend, so a later one that is passed wins
            limit, colour = rows[i], table[i + 1]
            for k in range(width):
                out[k] = colour if limit[k] <= r else out[k]


@kernel
def draw_line(pixels: AnyArray, enter: AnyArray, leave: AnyArray, thickness: int, colour: int) -> None:
    height, width = pixels.shape
    before = enter[0]
    for k in range(width):
        top = min(before, enter[k], leave[k])
        bottom = max(before, enter[k], leave[k]) + thickness
        across = thickness if bottom - top > thickness else 1
        for r in range(max(top, 0), min(bottom, height)):
            for c in range(max(k - across + 1, 0), k + 1):
                pixels[r, c] = colour
        before = leave[k]


@kernel
def veil(
    pixels: AnyArray, top: AnyArray, bottom: AnyArray, red: int, green: int, blue: int, share: int
) -> None:
    height, width = pixels.shape
    old_share = 256 - share
    for r in range(height):
        out = pixels[r]
        for k in range(width):
            if top[k] <= r < bottom[k]:
                old = out[k]
                mixed_red = (((old >> 16) & 255) * old_share + red * share) >> 8
                mixed_green = (((old >> 8) & 255) * old_share + green * share) >> 8
                mixed_blue = ((old & 255) * old_share + blue * share) >> 8
                out[k] = 0xFF000000 | (mixed_red << 16) | (mixed_green << 8) | mixed_blue


@kernel
def trace_line(
    pixels: AnyArray, enter: Floats, leave: Floats, seen: Flags, thickness: int, on: int, period: int,
    colour: int,
) -> None:  # fmt: skip
    height, width = pixels.shape
    before = enter[0]
    for k in range(width):
        if k == 0 or not seen[k - 1]:
            before = enter[k]
        high, low = min(before, enter[k], leave[k]), max(before, enter[k], leave[k])
        before = leave[k]
        if not seen[k] or (low - high < 1 and k % period >= on):
            continue
        top = max(math.floor(high - thickness / 2 + 0.5), 0)
        bottom = min(math.floor(low - thickness / 2 + 0.5) + thickness, height)
        if bottom <= 0 or top >= height:
            top, bottom = (0, min(thickness, height)) if bottom <= 0 else (max(height - thickness, 0), height)
        across = thickness if low - high > thickness else 1
        for r in range(top, bottom):
            for c in range(max(k - across + 1, 0), k + 1):
                pixels[r, c] = colour

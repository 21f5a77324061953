"""Kernels that paint: areas, lines, parabolas and tints into images of 32 bits a pixel, (height, width)."""

from __future__ import annotations

import math

import numpy as np

from desktop.core.jit import kernel


def warm_up() -> None:
    """Load or compile what paints a curve and its fit, which would be done by the window's thread."""
    pixels, ends = np.zeros((4, 4), np.uint32), np.zeros((3, 1))
    rows = np.zeros((2, 4), np.int32)
    fill_areas(pixels, rows, np.zeros(3, np.uint32))
    draw_line(pixels, *rows, 1, 0)
    tint(pixels.view(np.uint8), 0, 4, 0, np.full(16, 256, np.uint16), np.zeros(16, np.uint8))
    stroke_parabolas(pixels, np.array([0, 4, 0, 4]), ends[:2], ends, np.ones(1), 0, 0, 0)


@kernel
def tint(pixels, top, bottom, begin, keep, add):
    for r in range(top, bottom):
        row = pixels[r, begin : begin + keep.size]  # plain indices from 0 become vector instructions
        for k in range(keep.size):
            row[k] = ((row[k] * keep[k]) >> 8) + add[k]


@kernel
def stroke_parabolas(pixels, limits, x, y, half, red, green, blue):
    left, right, top, bottom = limits
    for i in range(x.shape[1]):
        a, b = x[0, i], max(x[1, i], x[0, i] + 1)
        ya, yc, yb, h = y[0, i], y[1, i], y[2, i], half[i]
        # A steep end is cut across the line, not upright.
        sa, sb = 2 * (yc - ya) / (b - a), 2 * (yb - yc) / (b - a)
        ca, cb = h / math.sqrt(1 + sa * sa), h / math.sqrt(1 + sb * sb)
        low, high = min(ya - ca, yb - cb), max(ya + ca, yb + cb)
        if sa * sb < 0:
            t = (ya - yc) / (ya - 2 * yc + yb)
            vertex = ya + t * (yc - ya)
            low, high = min(low, vertex - h), max(high, vertex + h)
        for k in range(max(left, math.floor(a)), min(right, math.ceil(b))):
            u, v = max(float(k), a), min(k + 1.0, b)
            s, t = (u - a) / (b - a), (v - a) / (b - a)
            enter = (1 - s) * (1 - s) * ya + 2 * s * (1 - s) * yc + s * s * yb
            leave = (1 - t) * (1 - t) * ya + 2 * t * (1 - t) * yc + t * t * yb
            slope = (leave - enter) / (v - u)
            thick = 2 * h * math.sqrt(1 + slope * slope)
            first, last = min(enter, leave) - thick / 2, max(enter, leave) - thick / 2
            begin, end = max(first, low, float(top)), min(last + thick, high, float(bottom))
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
def band_below(row, first, last, thick):
    """How much of a band `thick` high lies above `row`, on average while its top goes from first to last."""
    near, far = row - last, row - first
    if far - near < 1e-6:
        return min(max(far, 0.0), thick)
    return (ramp(far, thick) - ramp(near, thick)) / (far - near)


@kernel
def ramp(z, thick):
    """The integral of ``min(max(z, 0), thick)``."""
    inside = min(max(z, 0.0), thick)
    return inside * inside / 2 + thick * max(z - thick, 0.0)


@kernel
def fill_areas(pixels, rows, table):
    height, width = pixels.shape
    for r in range(height):
        out = pixels[r]
        out[:] = table[0]
        for i in range(rows.shape[0]):  # limits descend, so a later one that is passed wins
            limit, colour = rows[i], table[i + 1]
            for k in range(width):
                out[k] = colour if limit[k] <= r else out[k]


@kernel
def draw_line(pixels, enter, leave, thickness, colour):
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
def veil(pixels, top, bottom, red, green, blue, share):
    height, width = pixels.shape
    rest = 256 - share
    for r in range(height):
        out = pixels[r]
        for k in range(width):
            if top[k] <= r < bottom[k]:
                old = out[k]
                mixed_red = (((old >> 16) & 255) * rest + red * share) >> 8
                mixed_green = (((old >> 8) & 255) * rest + green * share) >> 8
                mixed_blue = ((old & 255) * rest + blue * share) >> 8
                out[k] = 0xFF000000 | (mixed_red << 16) | (mixed_green << 8) | mixed_blue


@kernel
def trace_line(pixels, enter, leave, seen, thickness, on, period, colour):
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
            top, bottom = (0, thickness) if bottom <= 0 else (height - thickness, height)
        across = thickness if low - high > thickness else 1
        for r in range(top, bottom):
            for c in range(max(k - across + 1, 0), k + 1):
                pixels[r, c] = colour

"""Pixel columns to pixels: areas and a step line painted into a reused image, unscaled.

Painting 1e7 steps through a vector painter takes seconds; 1400 columns of known minimum, maximum and mean
take well under a millisecond here, whatever they stand for.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage

from desktop.core import gantt
from desktop.core.jit import kernel
from desktop.workbench.levels import share

if TYPE_CHECKING:
    from desktop.data.timeline import Tile


def mix(colour: str, ground: str, share: float) -> QColor:
    """`share` of `colour` on `ground`, opaque."""
    c, g = QColor(colour), QColor(ground)
    parts = ((c.red(), g.red()), (c.green(), g.green()), (c.blue(), g.blue()))
    return QColor(*(round(share * u + (1 - share) * v) for u, v in parts))


class Raster:
    """An opaque picture of `width` x `height` pixels, `dpr` to a logical one, drawn column by column."""

    def __init__(self, width: int, height: int, dpr: float = 1.0) -> None:
        self._pixels = np.empty((height, width), np.uint32)
        self.image = QImage(self._pixels.data, width, height, 4 * width, QImage.Format.Format_RGB32)
        self.image.setDevicePixelRatio(dpr)

    @classmethod
    def of(cls, rect: QRectF, dpr: float, known: Raster | None) -> Raster:
        """`known`, if it is as large as a logical rectangle, else a new one."""
        w, h = max(round(rect.width() * dpr), 1), max(round(rect.height() * dpr), 1)
        if known is not None and known._pixels.shape == (h, w) and known.image.devicePixelRatio() == dpr:
            return known
        return cls(w, h, dpr)

    def take(self, other: Raster) -> None:
        """The pixels of another picture of this size."""
        self._pixels[:] = other._pixels

    def scale(
        self, values: NDArray[np.float64], low: float, high: float, log: bool = False
    ) -> NDArray[np.float64]:
        """Device rows (not rounded) of levels; the bottom edge where there is no value."""
        height = self._pixels.shape[0]
        y = (
            (1 - share(values, low, high, True)) * height
            if log
            else (high - values) * (height / (high - low))
        )
        if np.isfinite(y).all():  # nearly always, and found out in less time than replacing takes
            return y
        return np.nan_to_num(y, nan=height, posinf=height, neginf=0)

    def areas(self, limits: list[NDArray[np.float64]], colours: list[QColor], ground: QColor) -> None:
        """Fill every column: `ground` down to ``limits[0]``, ``colours[i]`` from ``limits[i]`` to the next.

        Limits must not ascend on the screen (not fall in the list); the last one ends the last colour.
        """
        height = self._pixels.shape[0]
        rows = np.clip(np.floor(np.stack(limits) + 0.5), 0, height).astype(np.int32)
        table = np.array([ground.rgb(), *(c.rgb() for c in colours), ground.rgb()], np.uint32)
        _areas(self._pixels, rows, table)

    def line(
        self, enter: NDArray[np.float64], leave: NDArray[np.float64], thickness: int, colour: QColor
    ) -> None:
        """A connected line that comes into column k at row ``enter[k]`` and goes out at ``leave[k]``."""
        height = self._pixels.shape[0]

        def rows(y: NDArray[np.float64]) -> NDArray[np.int32]:
            top = np.floor(y - thickness / 2 + 0.5)
            # On the rim a line stays whole; beyond it, it is out of sight.
            top = np.where((y >= 0) & (y <= height), np.clip(top, 0, height - thickness), top)
            return np.clip(top, -thickness, height).astype(np.int32)

        _line(self._pixels, rows(enter), rows(leave), thickness, colour.rgb())

    def clear(self, ground: QColor) -> None:
        """Nothing but `ground`."""
        self._pixels[:] = ground.rgb()

    def veil(
        self, top: NDArray[np.float64], bottom: NDArray[np.float64], colour: QColor, share: float
    ) -> None:
        """`share` of `colour` over what is there, from row ``top[k]`` to ``bottom[k]`` of every column; a
        column whose ends are one row stays as it is."""
        height = self._pixels.shape[0]
        first, last = (np.clip(np.rint(y), 0, height).astype(np.int32) for y in (top, bottom))
        _veil(self._pixels, first, last, colour.red(), colour.green(), colour.blue(), round(256 * share))

    def trace(
        self,
        enter: NDArray[np.float64],
        leave: NDArray[np.float64],
        seen: NDArray[np.bool_],
        thickness: int,
        colour: QColor,
        dash: tuple[int, int] = (1, 1),
    ) -> None:
        """As `line`, only where it is `seen`, and where it runs level in dashes: the first of `dash` pixels
        out of every so many as its second. A jump is always drawn."""
        _trace(
            self._pixels, np.clip(enter, -1e6, 1e6), np.clip(leave, -1e6, 1e6), seen, thickness, *dash,
            colour.rgb(),
        )  # fmt: skip

    def marks(self, y: NDArray[np.float64], thickness: int, colour: QColor) -> None:
        """A mark in every column at row ``y[k]``, not connected with its neighbours."""
        height = self._pixels.shape[0]
        top = np.floor(np.clip(y, -thickness, height + 1) - thickness / 2 + 0.5).astype(int)
        for row in (top + k for k in range(thickness)):
            seen = (row >= 0) & (row < height)
            self._pixels[row[seen], np.flatnonzero(seen)] = colour.rgb()

    def tile(
        self,
        tile: Tile,
        bands: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
        columns: tuple[NDArray[np.int64], NDArray[np.int64]],
        colours: list[QColor],
        order: NDArray[np.int64],
        gap: int,
        ground: QColor,
    ) -> None:
        """Rows of a timeline, see `desktop.core.gantt.paint`: `bands` are tops, bottoms and rows of the
        tile, `columns` the first and the end of those that a pixel column shows."""
        table = np.array([c.rgb() for c in colours], np.uint32)
        gantt.paint(
            self._pixels, *bands, *columns, tile.dominant, tile.hidden, table, order, gap, ground.rgb()
        )


class Tint:
    """Translucent colours over pixel columns, one upon the other: all rows then need one pass.

    A pixel becomes ``keep * pixel + add``, whatever number of colours lies over its column.
    """

    def __init__(self, columns: int) -> None:
        self._keep = np.ones((columns, 1))
        self._add = np.zeros((columns, 3))

    def lay(self, opacity: NDArray[np.float64], colour: QColor) -> None:
        """`colour` over the columns, `opacity` (W,) from 0 to 1."""
        rest = 1 - opacity[:, None]
        self._keep *= rest
        self._add *= rest
        self._add += opacity[:, None] * np.array([colour.red(), colour.green(), colour.blue()], float)

    def over(self, image: QImage, left: int, lanes: list[QRectF]) -> None:
        """Tint an RGB32 image from pixel column `left` on, in the rows of `lanes` (logical pixels)."""
        pixels = np.ndarray((image.height(), 4 * image.width()), np.uint8, image.bits())
        first, last = max(left, 0), max(min(left + len(self._keep), image.width()), left, 0)
        show, opaque = slice(first - left, last - left), np.zeros((last - first, 1))
        # Blue, green, red in memory, and a byte that stays; 256 keeps a byte as it is.
        keep = np.hstack([np.rint(256 * self._keep[show]).repeat(3, axis=1), opaque + 256])
        add = np.hstack([np.rint(self._add[show, ::-1]), opaque])
        tables = (keep.ravel().astype(np.uint16), add.ravel().astype(np.uint8))
        dpr = image.devicePixelRatio()
        for r in lanes:
            top, bottom = (min(max(round(v * dpr), 0), image.height()) for v in (r.top(), r.bottom()))
            _tint(pixels, top, bottom, 4 * first, *tables)


@kernel
def _tint(pixels, top, bottom, begin, keep, add):
    for r in range(top, bottom):
        row = pixels[r, begin : begin + keep.size]  # plain indices from 0 become vector instructions
        for k in range(keep.size):
            row[k] = ((row[k] * keep[k]) >> 8) + add[k]


def stroke(
    image: QImage,
    lane: QRectF,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    width: NDArray[np.float64],
    colour: QColor,
) -> None:
    """Smooth parabolas within `lane`; all in logical pixels.

    `x` (2, K) are their ends, `y` (3, K) the heights there and, in between, that of the Bezier point at
    their middle; `width` (K,) of the line. What shows of a line narrower than a pixel is a pixel wide.
    """
    pixels = np.ndarray((image.height(), image.width()), np.uint32, image.bits())
    dpr = image.devicePixelRatio()
    box = np.array([lane.left(), lane.right(), lane.top(), lane.bottom()]) * dpr
    limits = np.clip(np.rint(box), 0, [image.width()] * 2 + [image.height()] * 2).astype(np.int64)
    _stroke(pixels, limits, x * dpr, y * dpr, width * dpr / 2, colour.red(), colour.green(), colour.blue())


@kernel
def _stroke(pixels, limits, x, y, half, red, green, blue):
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
                part = _below(below, first, last, thick) - _below(above, first, last, thick)
                share = int((v - u) * part * 256 + 0.5)
                old = pixels[r, k]
                mixed_red = (((old >> 16) & 255) * (256 - share) + red * share) >> 8
                mixed_green = (((old >> 8) & 255) * (256 - share) + green * share) >> 8
                mixed_blue = ((old & 255) * (256 - share) + blue * share) >> 8
                pixels[r, k] = 0xFF000000 | (mixed_red << 16) | (mixed_green << 8) | mixed_blue


@kernel
def _below(row, first, last, thick):
    """How much of a band `thick` high lies above `row`, on average while its top goes from first to last."""
    near, far = row - last, row - first
    if far - near < 1e-6:
        return min(max(far, 0.0), thick)
    return (_ramp(far, thick) - _ramp(near, thick)) / (far - near)


@kernel
def _ramp(z, thick):
    """The integral of ``min(max(z, 0), thick)``."""
    inside = min(max(z, 0.0), thick)
    return inside * inside / 2 + thick * max(z - thick, 0.0)


@kernel
def _areas(pixels, rows, table):
    height, width = pixels.shape
    for r in range(height):
        out = pixels[r]
        out[:] = table[0]
        for i in range(rows.shape[0]):  # limits descend, so a later one that is passed wins
            limit, colour = rows[i], table[i + 1]
            for k in range(width):
                out[k] = colour if limit[k] <= r else out[k]


@kernel
def _line(pixels, enter, leave, thickness, colour):
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
def _veil(pixels, top, bottom, red, green, blue, share):
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
def _trace(pixels, enter, leave, seen, thickness, on, period, colour):
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

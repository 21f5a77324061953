"""Pixel columns to pixels: areas and a step line painted into a reused image, unscaled.

Painting 1e7 steps through a vector painter takes seconds; 1400 columns of known minimum, maximum and mean
take well under a millisecond here, whatever they stand for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QColor, QImage, QPainter

from desktop.core import gantt
from desktop.core.jit import kernel

if TYPE_CHECKING:
    from desktop.data.timeline import Tile


def mix(colour: str, ground: str, share: float) -> QColor:
    """`share` of `colour` on `ground`, opaque."""
    c, g = QColor(colour), QColor(ground)
    parts = ((c.red(), g.red()), (c.green(), g.green()), (c.blue(), g.blue()))
    return QColor(*(round(share * u + (1 - share) * v) for u, v in parts))


class Raster:
    """An opaque picture of `width` x `height` device pixels, drawn column by column."""

    def __init__(self, width: int, height: int) -> None:
        self._pixels = np.empty((height, width), np.uint32)
        self.image = QImage(self._pixels.data, width, height, 4 * width, QImage.Format.Format_RGB32)

    def scale(self, values: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
        """Device rows (not rounded) of levels; the bottom edge where there is no value."""
        height = self._pixels.shape[0]
        y = (high - values) * (height / (high - low))
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

    def tile(
        self,
        tile: Tile,
        bands: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
        columns: tuple[NDArray[np.int64], NDArray[np.int64]],
        colours: list[QColor],
        rank: NDArray[np.int64],
        gap: int,
        ground: QColor,
    ) -> None:
        """Rows of a timeline, see `desktop.core.gantt.paint`: `bands` are tops, bottoms and rows of the
        tile, `columns` the first and the end of those that a pixel column shows."""
        table = np.array([c.rgb() for c in colours], np.uint32)
        gantt.paint(
            self._pixels, *bands, *columns, tile.dominant, tile.hidden, table, rank, gap, ground.rgb()
        )

    def draw(self, painter: QPainter, x: float, y: float) -> None:
        """Put the picture at a logical position that lies on a device pixel, without scaling it."""
        dpr = painter.device().devicePixelRatioF()
        painter.save()
        painter.scale(1 / dpr, 1 / dpr)
        painter.drawImage(round(x * dpr), round(y * dpr), self.image)
        painter.restore()


def tint_columns(image: QImage, top: int, bottom: int, columns: NDArray[np.int64], colour: QColor) -> None:
    """Lay `colour` with its opacity over the pixel columns of an RGB32 image, rows ``top .. bottom-1``."""
    pixels = np.ndarray((image.height(), image.width()), np.uint32, image.bits())
    _tint(pixels, max(top, 0), min(bottom, image.height()), columns.astype(np.int64), colour.rgba())


@kernel
def _tint(pixels, top, bottom, columns, colour):
    alpha = (colour >> 24) & 255
    red, green, blue = (colour >> 16) & 255, (colour >> 8) & 255, colour & 255
    for r in range(top, bottom):
        for k in columns:
            old = np.int64(pixels[r, k])
            rest = 255 - alpha
            mixed_red = (red * alpha + ((old >> 16) & 255) * rest + 127) // 255
            mixed_green = (green * alpha + ((old >> 8) & 255) * rest + 127) // 255
            mixed_blue = (blue * alpha + (old & 255) * rest + 127) // 255
            pixels[r, k] = (255 << 24) | (mixed_red << 16) | (mixed_green << 8) | mixed_blue


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

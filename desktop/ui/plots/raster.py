"""Pixel columns to pixels: areas and a step line painted into a reused image, unscaled.

Painting 1e7 steps through a vector painter takes seconds; 1400 columns of known minimum, maximum and mean
take well under a millisecond here, whatever they stand for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRectF
from PySide6.QtGui import QColor, QImage

from desktop.core import gantt, painting
from desktop.core.arrays import Bytes, Flags, Floats, Ints
from desktop.workbench.levels import share

if TYPE_CHECKING:
    from desktop.data.timeline import Tile


@lru_cache
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
    def of(cls, rect: QRectF, dpr: float, old: Raster | None) -> Raster:
        """`old`, if it is as large as a logical rectangle, else a new one."""
        w, h = max(round(rect.width() * dpr), 1), max(round(rect.height() * dpr), 1)
        if old is not None and old._pixels.shape == (h, w) and old.image.devicePixelRatio() == dpr:
            return old
        return cls(w, h, dpr)

    def take(self, other: Raster) -> None:
        """The pixels of another picture of this size."""
        self._pixels[:] = other._pixels

    def part(self, first: int) -> Raster:
        """A new picture for the pixel columns from `first` on."""
        height, width = self._pixels.shape
        return Raster(width - first, height, self.image.devicePixelRatio())

    def put(self, part: Raster, first: int) -> None:
        """The last pixel columns of a `part`, from column `first` on."""
        self._pixels[:, first:] = part._pixels[:, first - self._pixels.shape[1] :]

    def scale(self, values: Floats, low: float, high: float, log: bool = False) -> Floats:
        """Device rows (not rounded) of levels; the bottom edge where there is no value."""
        height = self._pixels.shape[0]
        y = (
            (1 - share(values, low, high, True)) * height
            if log
            else (high - values) * (height / (high - low))
        )
        finite = np.isfinite(y)
        if not finite.all():
            y[~finite] = np.where(y[~finite] < 0, 0.0, height)
        return y

    def areas(self, limits: Sequence[Floats] | Floats, colours: list[QColor], ground: QColor) -> None:
        """Fill every column: `ground` down to ``limits[0]``, ``colours[i]`` from ``limits[i]`` to the next.

        Limits must not ascend on the screen (not fall in the list); the last one ends the last colour.
        """
        height = self._pixels.shape[0]
        rows = np.minimum(np.maximum(np.floor(np.array(limits) + 0.5), 0), height).astype(np.int32)
        table = np.array([ground.rgb(), *(c.rgb() for c in colours), ground.rgb()], np.uint32)
        painting.fill_areas(self._pixels, rows, table)

    def line(self, enter: Floats, leave: Floats, thickness: int, colour: QColor) -> None:
        """A connected line that comes into column k at row ``enter[k]`` and goes out at ``leave[k]``."""
        height, y = self._pixels.shape[0], np.array([enter, leave])
        top = np.floor(y - thickness / 2 + 0.5)
        # At an edge a line keeps its thickness; beyond it, it is out of sight.
        inside = np.minimum(np.maximum(top, 0), height - thickness)
        top = np.where((y >= 0) & (y <= height), inside, np.minimum(np.maximum(top, -thickness), height))
        painting.draw_line(self._pixels, *top.astype(np.int32), thickness, colour.rgb())

    def clear(self, ground: QColor) -> None:
        """Fill all with `ground`."""
        self._pixels[:] = ground.rgb()

    def veil(self, top: Floats, bottom: Floats, colour: QColor, share: float) -> None:
        """`share` of `colour` over what is there, from row ``top[k]`` to ``bottom[k]`` of every column; a
        column whose ends are one row stays as it is."""
        height = self._pixels.shape[0]
        first, last = (np.clip(np.rint(y), 0, height).astype(np.int32) for y in (top, bottom))
        painting.veil(
            self._pixels, first, last, colour.red(), colour.green(), colour.blue(), round(256 * share)
        )

    def trace(
        self,
        enter: Floats,
        leave: Floats,
        seen: Flags,
        thickness: int,
        colour: QColor,
        dash: tuple[int, int] = (1, 1),
    ) -> None:
        """As `line`, only where it is `seen`, and where it runs level in dashes: the first of `dash` pixels
        out of every so many as its second. A jump is always drawn."""
        painting.trace_line(
            self._pixels, np.clip(enter, -1e6, 1e6), np.clip(leave, -1e6, 1e6), seen, thickness, *dash,
            colour.rgb(),
        )  # fmt: skip

    def marks(self, y: Floats, thickness: int, colour: QColor) -> None:
        """A mark in every column at row ``y[k]``, not connected with its neighbours."""
        height = self._pixels.shape[0]
        top = np.floor(np.clip(y, -thickness, height + 1) - thickness / 2 + 0.5).astype(int)
        for row in (top + k for k in range(thickness)):
            seen = (row >= 0) & (row < height)
            self._pixels[row[seen], np.flatnonzero(seen)] = colour.rgb()

    def tile(
        self,
        tile: Tile,
        bands: tuple[Ints, Ints, Ints],
        columns: tuple[Ints, Ints],
        colours: list[QColor],
        order: Ints,
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
    """Translucent colours over pixel columns, one upon the other: all rows then need one pass over those
    columns that have any.

    A pixel becomes ``keep * pixel + add``, whatever number of colours lies over its column.
    """

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._layers: list[tuple[Floats, QColor]] = []
        # The columns that have any, and for each of their bytes the factor (of 256), and what is added.
        self._tables: tuple[Ints, NDArray[np.uint16], Bytes] | None = None

    def lay(self, opacity: Floats, colour: QColor) -> None:
        """`colour` over the columns, `opacity` (W,) from 0 to 1."""
        self._tables = None
        self._layers.append((opacity, colour))

    def _factors(self) -> tuple[Ints, NDArray[np.uint16], Bytes]:
        if self._tables is None:
            any_ = np.zeros(self._columns, bool)
            for opacity, _ in self._layers:
                any_ |= opacity > 0
            columns = np.flatnonzero(any_)
            # Blue, green, red in memory, and a byte that stays.
            keep, add = np.ones((columns.size, 4)), np.zeros((columns.size, 4))
            for opacity, colour in self._layers:
                alpha = opacity[columns, None]
                keep[:, :3] *= 1 - alpha
                add[:, :3] *= 1 - alpha
                add[:, :3] += alpha * (colour.blue(), colour.green(), colour.red())
            # 256 keeps a byte as it is.
            self._tables = columns, np.rint(256 * keep).astype(np.uint16), np.rint(add).astype(np.uint8)
        return self._tables

    def over(self, image: QImage) -> None:
        """Tint an RGB32 image of as many columns."""
        assert self._columns <= image.width()  # or the kernel would write beside it
        columns, keep, add = self._factors()
        if not columns.size:
            return
        # Stretches of neighbours, from where to where among these columns.
        ends = np.concatenate(([0], np.flatnonzero(np.diff(columns) > 1) + 1, [columns.size]))
        pixels = np.ndarray((image.height(), 4 * image.width()), np.uint8, image.bits())
        painting.tint(pixels, 4 * columns[ends[:-1]], 4 * ends, keep.reshape(-1), add.reshape(-1))


def stroke(image: QImage, x: Floats, y: Floats, width: Floats, colour: QColor) -> None:
    """Smooth parabolas, in logical pixels.

    `x` (2, K) are their ends, `y` (3, K) the heights there and, in between, that of the Bezier point at
    their middle; `width` (K,) of the line. What shows of a line narrower than a pixel is a pixel wide.
    """
    pixels = np.ndarray((image.height(), image.width()), np.uint32, image.bits())
    dpr = image.devicePixelRatio()
    painting.stroke_parabolas(
        pixels, x * dpr, y * dpr, width * dpr / 2, colour.red(), colour.green(), colour.blue()
    )

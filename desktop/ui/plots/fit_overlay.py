"""A phase fit as pixels: its pieces, and its breakpoints with their ranges."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from PySide6.QtCore import QLineF
from PySide6.QtGui import QColor, QImage, QPainter, QPen

from desktop.core import painting
from desktop.core.arrays import Floats
from desktop.core.pieces import pieces
from desktop.ui.plots.raster import Tint, stroke
from desktop.ui.plots.scales import LaneBox, TimeMap
from desktop.ui.theme import Theme

if TYPE_CHECKING:
    from desktop.core.phase_stats import Firm
    from desktop.core.phases import PhaseFit


def draw_pieces(
    image: QImage, fit: PhaseFit, m: TimeMap, lane: LaneBox, theme: Theme, selected: int | None
) -> None:
    """One parabola per visible phase: exactly its constant, line or parabola."""
    step = 6 * (m.b - m.a) / m.width if lane.log else None  # at whole pixels, so without seams
    parts = pieces(fit, m.a, m.b, step)
    # Pieces of a few pixels follow every step: as wide as others they would hide it.
    visible_s = np.minimum(fit.breaks[parts.phase + 1], m.b) - np.maximum(fit.breaks[parts.phase], m.a)
    narrow = visible_s * m.width < 4 * (m.b - m.a)
    width = np.where(parts.phase == selected, 4.0, np.where(narrow, 1.0, 2.0))
    bound = lane.rect.height() * 50  # far outside, yet small enough for arithmetic in pixels
    y = np.clip(lane.y(np.stack([parts.start, parts.middle, parts.end])), -bound, bound)
    if lane.log:
        y[1] = (y[0] + y[2]) / 2  # the parts are short
    stroke(image, np.stack([m.x(parts.a), m.x(parts.b)]), y, width, QColor(theme.fit))


def draw_breakpoints(image: QImage, fit: PhaseFit, m: TimeMap, theme: Theme, *, ranges: bool = False) -> None:
    """Inner breakpoints as vertical lines, the fainter the closer they stand.

    With `ranges` they stand in the tinted bands in which each may lie. All of it is whole pixel columns of
    `image`, each tinted once however many meet there: hundreds of narrow translucent rectangles take a
    painter fifty times as long.
    """
    _breakpoint_tint(fit, m, image.devicePixelRatio(), theme, ranges).over(image)


@lru_cache(maxsize=4)  # the lanes of a plot have the same
def _breakpoint_tint(fit: PhaseFit, m: TimeMap, dpr: float, theme: Theme, ranges: bool) -> Tint:
    tint = Tint(width := round(m.width * dpr))
    if ranges:
        bands = np.zeros(width)
        painting.band_columns(fit.breakpoint_low[1:-1], fit.breakpoint_high[1:-1], m.a, m.b, bands)
        tint.lay(bands * ((46 if theme.dark else 38) / 255), QColor(theme.band))
    _lines(tint, fit.breaks[1:-1], m, width, dpr, QColor(theme.breakpoint))
    return tint


def draw_firm(image: QImage, firm: Sequence[Firm | None], m: TimeMap, theme: Theme) -> None:
    """Intervals of breakpoints over repeats: a bar with ends each, at the foot."""
    intervals = [f for f in firm if f is not None and f.high_s >= m.a and f.low_s <= m.b]
    if not intervals:
        return
    with QPainter(image) as painter:
        painter.setPen(QPen(QColor(theme.breakpoint), 1.6))
        y, end = image.deviceIndependentSize().height() - 9, 3.5
        for interval in intervals:
            left, right = (m.x(min(max(t, m.a), m.b)) for t in (interval.low_s, interval.high_s))
            painter.drawLines(
                [QLineF(left, y, right, y), *(QLineF(x, y - end, x, y + end) for x in (left, right))]
            )


def draw_boundaries(image: QImage, times: ArrayLike, m: TimeMap, colour: QColor) -> None:
    """Times (s, increasing) as vertical lines, the fainter the closer they stand: boundaries
    of iterations, breakpoints of a predicted run."""
    times = np.asarray(times, float)
    if not times.size:
        return
    dpr = image.devicePixelRatio()
    tint = Tint(width := round(m.width * dpr))
    _lines(tint, times, m, width, dpr, colour)
    tint.over(image)


def _lines(tint: Tint, times: Floats, m: TimeMap, width: int, dpr: float, colour: QColor) -> None:
    """Vertical lines at times (increasing) in `width` pixel columns."""
    lines = np.zeros(width)
    painting.line_columns(times, m.a, m.b, round(12 * dpr), max(1, round(dpr)), lines)
    tint.lay(lines, colour)

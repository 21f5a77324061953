"""Axes of time and of processors: where values lie, and their painting."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from desktop.core.ticks import Ticks, time_unit
from desktop.core.units import preferred_unit, quantity
from desktop.ui.guard import saved
from desktop.ui.theme import Theme, faded
from desktop.workbench.levels import V, at_share, share
from desktop.workbench.time_plots import AxisData, Words

#: Pixel rows of a translucent rectangle at most: from 96 on Qt wakes other threads for each of them.
_PART = 64


def words(replaced: Mapping[str, str] | None = None) -> Words:
    """How plots over time and their figures write values: in the unit of time that the user has chosen."""
    return Words(replaced, preferred_unit(), quantity)


def format_time(t: float, resolution: float) -> str:
    """A time with the digits that `resolution` (seconds, such as one pixel's) deserves."""
    scale, unit = time_unit(2 * abs(t), preferred_unit())
    decimals = max(0, math.ceil(math.log10(scale / resolution))) if resolution > 0 else 6
    return f"{t / scale:.{min(decimals, 15)}f} {unit}".replace("-", "−")


@dataclass
class LaneBox:
    """A rectangle with a vertical axis; its edges fall on device pixels."""

    rect: QRectF
    low: float = 0.0
    high: float = 1.0
    log: bool = False

    def y(self, value: V) -> V:
        """Logical pixels of a level (a number or an array)."""
        return self.rect.top() + (1 - share(value, self.low, self.high, self.log)) * self.rect.height()

    def value(self, y: float) -> float:
        """The level at a height in logical pixels."""
        part = 1 - (y - self.rect.top()) / self.rect.height()
        return at_share(part, self.low, self.high, self.log)


@dataclass(frozen=True)
class TimeMap:
    """Seconds to logical pixels and back; the visible range `a` .. `b` fills `left` .. `left + width`."""

    a: float
    b: float
    left: float
    width: float

    def x(self, t: V) -> V:
        """Logical pixels of times in seconds (a number or an array)."""
        return self.left + (t - self.a) / (self.b - self.a) * self.width

    def time(self, x: float) -> float:
        """Seconds at a place in logical pixels."""
        if self.width <= 0:  # a wheel can turn before the first layout
            return self.a
        return self.a + (x - self.left) / self.width * (self.b - self.a)


def across_axis(painter: QPainter, box: QRectF, m: TimeMap, theme: Theme, axis: AxisData) -> None:
    """Ticks and labels at the top of `box`; with a title, name and unit below and the offset on the left."""
    metrics, titled = painter.fontMetrics(), bool(axis.title)
    ticks = axis.across(m.width, metrics.horizontalAdvance)
    painter.setPen(QColor(theme.border))
    top = box.top()
    painter.drawLines([QLineF(x, top, x, top + 4) for x in map(m.x, ticks.positions)])
    painter.setPen(QColor(theme.muted))
    margin = metrics.height() - 3  # right of plots, see `time_plot.margins`; within the frame of the focus
    left, right = (0.0, m.left + m.width + margin) if titled else (box.left(), box.right())
    for t, label in zip(ticks.positions, ticks.labels, strict=True):
        text = label if titled else f"{label} {ticks.unit}"
        half = metrics.horizontalAdvance(text) / 2
        x = min(max(m.x(t), left + half), right - half)
        painter.drawText(QPointF(x - half, top + 5 + metrics.ascent()), text)
    if titled:
        row = QRectF(m.left, top + 5 + metrics.height(), m.width, metrics.height() + 2)
        painter.setPen(QColor(theme.text))
        painter.drawText(row, Qt.AlignmentFlag.AlignCenter, axis.words)
        if ticks.offset:
            painter.drawText(row, Qt.AlignmentFlag.AlignLeft, f"{ticks.offset}")


def level_axis(
    painter: QPainter,
    lane: LaneBox,
    ticks: Ticks,
    theme: Theme,
    title: str,
    height: float,
    *,
    right: bool = False,
) -> None:
    """Ticks and labels beside `lane`, and its title turned upright at the outer edge of a plot of `height`
    logical pixels (a painter's device has device pixels for a picture, logical ones for a widget)."""
    metrics = painter.fontMetrics()
    r = lane.rect
    edge, side = (r.right(), 1) if right else (r.left(), -1)
    painter.setPen(QColor(theme.border))
    ys = [lane.y(v) for v in ticks.positions]
    painter.drawLines([QLineF(edge, y, edge + 4 * side, y) for y in ys])
    painter.setPen(QColor(theme.muted))
    widest = 0
    for y, label in zip(ys, ticks.labels, strict=True):
        w = metrics.horizontalAdvance(label)
        widest = max(widest, w)
        # A label never leaves the height of its lane, where another lane's labels stand.
        base = min(max(y, r.top() + metrics.ascent() / 2), r.bottom() - metrics.ascent() / 2 + 1)
        x = edge + 7 if right else edge - 7 - w
        painter.drawText(QPointF(x, base + metrics.ascent() / 2 - 1), label)
    painter.setPen(QColor(theme.text))
    with saved(painter):
        # A title longer than its lane reaches over the lane's ends, as far as the picture does.
        length = max(r.height(), metrics.horizontalAdvance(title) + 2)
        middle = min(max(r.center().y(), length / 2), max(height - length / 2, length / 2))
        painter.translate(edge + side * (widest + 11 + metrics.height() / 2), middle)
        painter.rotate(90 * side)
        box = QRectF(-length / 2, -metrics.height() / 2, length, metrics.height())
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, title)


def grid(painter: QPainter, lane: LaneBox, theme: Theme, xs: list[float], ys: list[float]) -> None:
    """Hair lines across `lane`, faint enough to lie over filled areas."""
    r, part = lane.rect, _PART / painter.device().devicePixelRatioF()
    if painter.hasClipping():
        clip = painter.clipBoundingRect()
        xs = [x for x in xs if clip.left() - 1 < x < clip.right() + 1]
    # Filled hair rectangles: a translucent line through the painter's stroker takes six times as long.
    rects = [QRectF(r.left(), math.floor(y), r.width(), 1) for y in ys]
    for k in range(math.ceil(r.height() / part)):
        top, high = r.top() + k * part, min(part, r.height() - k * part)
        rects += [QRectF(math.floor(x), top, 1, high) for x in xs]
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(faded(theme.text, 24))
    painter.drawRects(rects)
    painter.setBrush(Qt.BrushStyle.NoBrush)


def verticals(painter: QPainter, xs: list[float], top: float, bottom: float, pen: QPen) -> None:
    """Vertical lines at the logical places `xs`."""
    painter.setPen(pen)
    painter.drawLines([QLineF(x, top, x, bottom) for x in xs])


def column_edges(m: TimeMap, columns: int) -> np.ndarray:
    """The times (columns + 1,) between device-pixel columns."""
    return np.linspace(m.a, m.b, columns + 1)

"""What stands in the lanes of the curve view: the curve, the stack of activities, the residual."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from desktop.core.envelope import Columns
from desktop.ui.plots import scales
from desktop.ui.plots.legend import FAINT, HALF, LEFT, Legend
from desktop.ui.plots.raster import Raster, mix
from desktop.ui.plots.scales import LaneBox, TimeMap
from desktop.ui.theme import Theme
from desktop.workbench.time_plots import LaneData, SeriesData

_MIDDLE = Qt.AlignmentFlag.AlignVCenter


def draw_curve(raster: Raster, lane: LaneBox, c: Columns, thickness: int, theme: Theme) -> None:
    """Solid up to the minimum, lighter to the mean, lightest to the maximum; a line along the mean."""
    nothing = np.zeros(c.mean.size)
    levels = np.array([c.maximum, c.mean, c.minimum, nothing, c.first, c.last])
    y = raster.scale(levels, lane.low, lane.high, lane.log)
    limits = np.minimum(y[:4], np.minimum(y[3], raster.image.height()))
    colours = [mix(theme.computing, theme.background, share) for share in (FAINT, HALF, 1.0)]
    raster.areas(limits, colours, QColor(theme.background))
    # A column with one jump is drawn as the step it is; where many fall together, their mean.
    single = c.steps <= 2
    enter, leave = np.where(single, y[4:], y[1])
    raster.line(enter, leave, thickness, QColor(theme.curve))


def draw_stack(
    raster: Raster, lane: LaneBox, stacked: Iterable[SeriesData], thickness: int, theme: Theme
) -> None:
    """Areas to their means, one upon the other; the dips of computing stay visible as a lighter part."""
    axis = lane.low, lane.high, lane.log
    total: np.ndarray | None = None
    rows, colours = [], []
    outlines: list[tuple[np.ndarray, QColor]] = []
    for series in stacked:
        c, name = series.columns, series.ink
        if total is None:
            total = np.zeros(c.mean.size)
            rows.append(raster.scale(total, *axis))
        fill = QColor(getattr(theme, name))
        if name == "computing":
            rows.append(raster.scale(c.minimum, *axis))
            colours.append(fill)
            fill = mix(theme.computing, theme.background, HALF)
        total = total + np.nan_to_num(c.mean)
        rows.append(raster.scale(total, *axis))
        colours.append(fill)
        edge = QColor(theme.curve) if name == "computing" else mix(getattr(theme, name), theme.text, 0.6)
        outlines.append((rows[-1], edge))
    if not rows:
        raster.clear(QColor(theme.background))
        return
    raster.areas(rows[::-1], colours[::-1], QColor(theme.background))
    for y, colour in reversed(outlines):
        raster.line(y, y, thickness, colour)


def draw_predicted(raster: Raster, lane: LaneBox, series: SeriesData, thickness: int, theme: Theme) -> None:
    """A line along the means, as far as there are values."""
    axis = lane.low, lane.high, lane.log
    c = series.columns
    single = c.steps <= 2
    # Out of sight where there is nothing.
    mean = np.where(
        series.seen_columns, raster.scale(np.nan_to_num(c.mean), *axis), 2.0 * raster.image.height()
    )
    enter, leave = (
        np.where(single & series.seen_columns, raster.scale(np.nan_to_num(v), *axis), mean)
        for v in (c.first, c.last)
    )
    raster.line(enter, leave, thickness, QColor(theme.selection))


def draw_residual(
    raster: Raster, lane: LaneBox, data: LaneData, m: TimeMap, theme: Theme, em: float, *, grid: bool = True
) -> None:
    """Curve minus fit with its extremes and the r.m.s. of every phase; the lane lies at the origin."""
    (series,), spread, top = data.series, data.spread, data.axis.high
    c, x = series.columns, series.x
    assert spread is not None
    levels = np.array([c.maximum, c.minimum, c.mean])
    high, low, line = raster.scale(np.where(np.isnan(levels), 0.0, levels), -top, top)
    # At least a pixel high, or a column of a single step would have no area at all.
    raster.areas(
        [high, np.maximum(low, high + 1)],
        [mix(theme.residual, theme.background, LEFT)],
        QColor(theme.background),
    )
    thickness = max(1, round(raster.image.devicePixelRatio()))
    raster.line(line, line, thickness, QColor(theme.residual))
    if spread.a.size:
        phases = np.searchsorted(spread.a[1:], (x[:-1] + x[1:]) / 2, side="right")
        for level in (spread.level[phases], -spread.level[phases]):
            raster.marks(raster.scale(level, -top, top), thickness, QColor(theme.fit))
    with QPainter(raster.image) as painter:
        finite = np.flatnonzero(np.isfinite(c.mean))  # the analysis may be limited
        first, last = (finite[0], finite[-1] + 1) if finite.size else (c.mean.size, c.mean.size)
        for a, b in ((m.x(x[0]), m.x(x[first])), (m.x(x[last]), m.x(x[-1]))):
            if a < b:
                painter.fillRect(QRectF(a, 0, b - a, lane.rect.height()), QColor(theme.background))
        if grid:
            ticks = data.axis.upright(lane.rect.height(), em)
            scales.grid(painter, lane, theme, [], [lane.y(v) for v in ticks.positions])
        painter.setPen(QPen(QColor(theme.breakpoint), 0))
        painter.drawLine(QLineF(0, lane.y(0), lane.rect.right(), lane.y(0)))


def residual_heading(painter: QPainter, head: QRectF, residual: LaneData, theme: Theme) -> None:
    """What the lane below shows, and in numbers what is left over in a phase or in all."""
    end = Legend().paint(painter, head, residual.entries, theme)
    painter.setPen(QColor(theme.muted))
    if end + painter.fontMetrics().horizontalAdvance(residual.note) < head.right():
        painter.drawText(head, Qt.AlignmentFlag.AlignRight | _MIDDLE, residual.note)

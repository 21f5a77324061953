"""What stands in the lanes of the curve view: the curve, the stack of activities, the residual."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QCoreApplication, QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from desktop.core.curve import StepCurve
from desktop.core.envelope import Columns, envelope
from desktop.ui.plots import fit_overlay, scales
from desktop.ui.plots.raster import Raster, mix
from desktop.ui.plots.scales import Lane, Ticks, TimeMap
from desktop.ui.theme import Theme

if TYPE_CHECKING:
    from desktop.core.phases import PhaseFit

# Shares of the fill between mean and maximum, and between minimum and mean.
FAINT, HALF = 0.32, 0.6
_MIDDLE = Qt.AlignmentFlag.AlignVCenter


def tr(text: str) -> str:
    return QCoreApplication.translate("CurveView", text)


def draw_curve(raster: Raster, lane: Lane, c: Columns, thickness: int, theme: Theme) -> None:
    """Solid up to the minimum, lighter to the mean, lightest to the maximum; a line along the mean."""
    axis = lane.low, lane.high, lane.log
    y = {name: raster.scale(getattr(c, name), *axis) for name in ("minimum", "maximum", "mean")}
    base = np.minimum(raster.scale(np.zeros(c.mean.size), *axis), raster.image.height())
    limits = [np.minimum(v, base) for v in (y["maximum"], y["mean"], y["minimum"])]
    colours = [mix(theme.computing, theme.background, share) for share in (FAINT, HALF, 1.0)]
    raster.areas([*limits, base], colours, QColor(theme.background))
    # A column with one jump is drawn as the step it is; where many fall together, their mean.
    single = c.steps <= 2
    enter = np.where(single, raster.scale(c.first, *axis), y["mean"])
    leave = np.where(single, raster.scale(c.last, *axis), y["mean"])
    raster.line(enter, leave, thickness, QColor(theme.curve))


def draw_stack(
    raster: Raster,
    lane: Lane,
    curves: dict[str, StepCurve],
    x: np.ndarray,
    thickness: int,
    theme: Theme,
) -> None:
    """Areas to their means, one upon the other; the dips of computing stay visible as a lighter part."""
    axis = lane.low, lane.high, lane.log
    total = np.zeros(x.size - 1)
    rows = [raster.scale(total, *axis)]
    colours: list[QColor] = []
    outlines: list[tuple[np.ndarray, QColor]] = []
    for name, curve in curves.items():
        c = envelope(curve).columns(x)
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
    raster.areas(rows[::-1], colours[::-1], QColor(theme.background))
    for y, colour in reversed(outlines):
        raster.line(y, y, thickness, colour)


def draw_residual(
    raster: Raster,
    lane: Lane,
    curve: StepCurve,
    columns: Columns | None,
    fit: PhaseFit,
    m: TimeMap,
    theme: Theme,
    em: float,
    most: float = math.inf,
) -> None:
    """Curve minus fit with its extremes and the r.m.s. of every phase; the lane lies at the origin and gets
    the range that is shown.

    `columns` are the curve's own on the same pixels, if known; no more than `most` processors are shown.
    """
    x = scales.column_edges(m, raster.image.width())
    r = fit_overlay.residual(envelope(curve), fit, x, columns)
    outside = (x[1:] <= fit.breaks[0]) | (x[:-1] >= fit.breaks[-1])
    if outside.any():  # the analysis is limited: there is no fit to differ from
        r = fit_overlay.Residual(*(np.where(outside, 0.0, v) for v in r))
    rms = fit.error / np.sqrt(fit.duration)
    show = fit_overlay.visible(fit, m.a, m.b)
    # Means and r.m.s. set the scale; a rare peak far beyond them runs to the rim instead of
    # pressing everything else flat. The bound moves in steps, so that panning does not make it breathe.
    extreme = float(max(np.nanmax(r.maximum), -np.nanmin(r.minimum), 0.0))
    reach = min(extreme, max(float(np.nanmax(np.abs(r.mean))), 4 * float(rms[show].max(initial=0.0))))
    reach = min(reach, most)
    top = round_up(reach * 1.02) if reach > 1e-9 * max(curve.capacity, 1e-300) else 1.0
    lane.low, lane.high = -top, top
    rows = [raster.scale(v, -top, top) for v in (r.maximum, r.minimum)]
    # At least a pixel high, or a column of a single step would have no area at all.
    raster.areas(
        [rows[0], np.maximum(rows[1], rows[0] + 1)],
        [mix(theme.residual, theme.background, 0.42)],
        QColor(theme.background),
    )
    thickness = max(1, round(raster.image.devicePixelRatio()))
    mean = raster.scale(r.mean, -top, top)
    raster.line(mean, mean, thickness, QColor(theme.residual))
    phases = np.searchsorted(fit.breaks[1:-1], (x[:-1] + x[1:]) / 2, side="right")
    for level in (rms[phases], -rms[phases]):
        raster.marks(raster.scale(level, -top, top), thickness, QColor(theme.fit))
    with QPainter(raster.image) as painter:
        for a, b in ((m.a, min(float(fit.breaks[0]), m.b)), (max(float(fit.breaks[-1]), m.a), m.b)):
            if a < b:
                blank = QRectF(m.x(a), 0, m.x(b) - m.x(a), lane.rect.height())
                painter.fillRect(blank, QColor(theme.background))
        scales.grid(painter, lane, theme, [], [lane.y(v) for v in residual_ticks(lane, em).positions])
        painter.setPen(QPen(QColor(theme.break_line), 0))
        painter.drawLine(QLineF(0, lane.y(0), lane.rect.right(), lane.y(0)))


def residual_ticks(lane: Lane, em: float) -> Ticks:
    return scales.level_ticks(lane.low, lane.high, max(2.0, lane.rect.height() / (em * 1.6)))


def residual_heading(painter: QPainter, head: QRectF, fit: PhaseFit, phase: int | None, theme: Theme) -> None:
    """What the lane below shows, and in numbers what is left over in a phase or in all."""
    metrics, rms = painter.fontMetrics(), fit.error / np.sqrt(fit.duration)
    em = metrics.height()
    painter.setPen(QColor(theme.text))
    text = tr("Curve minus fit: mean, least and greatest")
    painter.drawText(head, _MIDDLE, text)
    at = head.left() + metrics.horizontalAdvance(text) + em
    painter.setPen(QPen(QColor(theme.fit), 1))
    painter.drawLine(QLineF(at, head.center().y(), at + em, head.center().y()))
    painter.setPen(QColor(theme.text))
    sample = tr("± r.m.s. of each phase")
    painter.drawText(QRectF(at + em + 5, head.top(), 300, head.height()), _MIDDLE, sample)
    if phase is not None and 0 <= phase < rms.size:
        note = tr("phase {0}: r.m.s. {1} processors, local error {2} processors·√s").format(
            phase + 1,
            scales.format_number(float(rms[phase])),
            scales.format_number(float(fit.error[phase])),
        )
    else:
        note = tr("ε = {0} processors·√s").format(scales.format_number(float(fit.epsilon)))
    painter.setPen(QColor(theme.muted))
    if at + em * 2 + metrics.horizontalAdvance(sample + note) < head.right():
        painter.drawText(head, Qt.AlignmentFlag.AlignRight | _MIDDLE, note)


def with_top(ticks: Ticks, top: float, lane: Lane, em: int) -> Ticks:
    """The ticks with one at `top`, the number of all processors, in place of any too near to it."""
    if not lane.low <= top <= lane.high:
        return ticks
    kept = [
        (p, s)
        for p, s in zip(ticks.positions, ticks.labels, strict=True)
        if abs(lane.y(p) - lane.y(top)) > em
    ]
    kept.append((top, scales.format_number(top)))
    return Ticks([p for p, _ in kept], [s for _, s in kept])


def round_up(value: float) -> float:
    """The next of 1, 1.5, 2, 3, 5, 7.5, 10 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next((m * power for m in (1, 1.5, 2, 3, 5, 7.5) if m * power >= value), 10 * power)

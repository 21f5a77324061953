"""A phase fit as pictures: its pieces, its breaks with their ranges, and what it leaves over."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath, QPen

from desktop.core.envelope import Envelope
from desktop.ui.plots.raster import tint_columns
from desktop.ui.plots.scales import Lane, TimeMap
from desktop.ui.theme import Theme

if TYPE_CHECKING:
    from desktop.core.phases import PhaseFit


def polynomial(
    fit: PhaseFit, phase: NDArray[np.int64], t: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Value (processors) and slope (processors per second) of `phase` at `t`, element by element.

    Evaluated in the phase's own Legendre basis, so that deep zoom far from zero loses nothing.
    """
    a, b = fit.breaks[phase], fit.breaks[phase + 1]
    width = fit.duration[phase]
    s = np.clip(((t - a) - (b - t)) / width, -1, 1)
    c = fit.coefficients[phase]
    value = c[:, 0] + s * c[:, 1] + (1.5 * s * s - 0.5) * c[:, 2]
    return value, (c[:, 1] + 3 * s * c[:, 2]) * 2 / width


def visible(fit: PhaseFit, a: float, b: float) -> NDArray[np.int64]:
    """Phases that show between the times `a` and `b`."""
    return np.flatnonzero((fit.breaks[1:] > a) & (fit.breaks[:-1] < b))


class Residual(NamedTuple):
    """Curve minus fit per pixel column, each (W,), processors; bounds hold for every single step."""

    minimum: NDArray[np.float64]
    maximum: NDArray[np.float64]
    mean: NDArray[np.float64]


def residual(env: Envelope, fit: PhaseFit, x: NDArray[np.float64]) -> Residual:
    """Columns of the curve minus the fit, `x` (W+1,) seconds.

    Columns are cut at the breaks, so that each part has one polynomial. The mean is exact. Minimum and
    maximum are exact for a constant phase and for columns of a single step with a level fit; otherwise they
    enclose the exact ones by no more than the polynomial changes within the column, so no peak is lost.
    """
    inner = fit.breaks[1:-1]
    # Far from zero, neighbouring columns may share a time; they then show the same thing.
    x, column = np.unique(x, return_inverse=True)
    column = np.minimum(column[:-1], x.size - 2)
    cuts = np.union1d(x, inner[(inner > x[0]) & (inner < x[-1])])
    left, right = cuts[:-1], cuts[1:]
    c = env.columns(cuts)
    phase = np.clip(np.searchsorted(fit.breaks, left, side="right") - 1, 0, fit.breaks.size - 2)
    p0, slope = polynomial(fit, phase, left)
    p1, end = polynomial(fit, phase, right)
    middle, _ = polynomial(fit, phase, left + (right - left) / 2)
    low, high = np.minimum(p0, p1), np.maximum(p0, p1)
    turn = slope * end < 0
    if turn.any():
        at = left[turn] + (right - left)[turn] * (slope / np.where(turn, slope - end, 1))[turn]
        vertex, _ = polynomial(fit, phase[turn], at)
        low[turn], high[turn] = np.minimum(low[turn], vertex), np.maximum(high[turn], vertex)
    part = c.mean - (p0 + 4 * middle + p1) / 6  # Simpson's rule is exact for a parabola
    start = np.searchsorted(cuts, x[:-1])
    share = (right - left) / np.repeat(np.diff(x), np.diff(np.append(start, left.size)))
    return Residual(
        np.minimum.reduceat(c.minimum - high, start)[column],
        np.maximum.reduceat(c.maximum - low, start)[column],
        np.add.reduceat(part * share, start)[column],
    )


def draw_pieces(
    painter: QPainter, fit: PhaseFit, m: TimeMap, lane: Lane, theme: Theme, selected: int | None
) -> None:
    """One line or quadratic Bezier per visible phase: exactly its constant, line or parabola."""
    show = visible(fit, m.a, m.b)
    if not show.size:
        return
    a = np.maximum(fit.breaks[show], m.a)
    b = np.minimum(fit.breaks[show + 1], m.b)
    fa, slope = polynomial(fit, show, a)
    fb, _ = polynomial(fit, show, b)
    bound = lane.rect.height() * 50  # far outside, yet small enough for the rasteriser
    x0, x1 = m.x(a), m.x(b)
    y0, y1, yc = (np.clip(lane.y(v), -bound, bound) for v in (fa, fb, fa + slope * (b - a) / 2))
    painter.save()
    painter.setClipRect(lane.rect)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    thin = QPen(QColor(theme.fit), 2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap)
    thick = QPen(QColor(theme.fit), 4, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap)
    x1 = np.maximum(x1, x0 + 1.0)  # a phase below a pixel still shows as a dot
    # All straight ones at once, and those that bend by less than an eye can see.
    bend = np.abs(yc - (y0 + y1) / 2) / 2
    straight = (fit.degree[show] < 2) | (bend < 0.25)
    ends = [v.tolist() for v in (x0, y0, x1, y1)]
    lines = [QLineF(*line) for line in zip(*ends, strict=True)]
    which = np.where(show == selected, 2, straight.astype(int)).tolist()
    painter.setPen(thin)
    painter.drawLines([line for line, kind in zip(lines, which, strict=True) if kind == 1])
    for k in np.flatnonzero(~straight | (show == selected)).tolist():
        painter.setPen(thick if which[k] == 2 else thin)
        path = QPainterPath(lines[k].p1())
        path.quadTo((x0[k] + x1[k]) / 2, yc[k], x1[k], y1[k])
        painter.drawPath(path)
    painter.restore()


def draw_bands(image: QImage, fit: PhaseFit, m: TimeMap, lanes: list[QRectF], theme: Theme) -> None:
    """The ranges of interior breaks as tinted bands through `lanes`.

    Whole pixel columns of `image`, each tinted once however many ranges meet there: hundreds of narrow
    translucent rectangles take a painter fifty times as long.
    """
    inner, (left, width) = slice(1, -1), _columns(image, m)
    x0, x1 = (
        np.rint(np.clip((t[inner] - m.a) / (m.b - m.a) * width, 0, width)).astype(int)
        for t in (fit.break_low, fit.break_high)
    )
    depth = np.zeros(width + 1, int)
    np.add.at(depth, x0, 1)
    np.add.at(depth, x1, -1)
    tint = QColor(theme.band)
    tint.setAlpha(46 if theme.dark else 38)
    _tint(image, lanes, left + np.flatnonzero(np.cumsum(depth)[:-1] > 0), tint)


def draw_breaks(image: QImage, fit: PhaseFit, m: TimeMap, lanes: list[QRectF], theme: Theme) -> None:
    """Interior breaks as vertical lines through `lanes`, the fainter the closer they stand."""
    left, width = _columns(image, m)
    dpr = image.devicePixelRatio()
    at = np.floor((fit.breaks[1:-1] - m.a) / (m.b - m.a) * width)
    at = at[(at >= 0) & (at < width)].astype(int)
    if not at.size:
        return
    # Lines within 24 pixels: from three on they fade, so that hundreds leave the curve visible.
    reach = round(12 * dpr)
    near = np.searchsorted(at, at + reach, "right") - np.searchsorted(at, at - reach, "left")
    shade = np.clip(np.ceil(8 * 2 / near), 1, 8).astype(int)
    for level in np.unique(shade).tolist():
        lines = np.unique(np.concatenate([at[shade == level] + k for k in range(max(1, round(dpr)))]))
        colour = QColor(theme.break_line)
        colour.setAlpha(min(255, 32 * level))
        _tint(image, lanes, left + lines[lines < width], colour)


def _columns(image: QImage, m: TimeMap) -> tuple[int, int]:
    """First pixel column and number of columns of a time axis."""
    dpr = image.devicePixelRatio()
    return round(m.left * dpr), round(m.width * dpr)


def _tint(image: QImage, lanes: list[QRectF], columns: NDArray[np.int64], colour: QColor) -> None:
    dpr = image.devicePixelRatio()
    for r in lanes:
        tint_columns(image, round(r.top() * dpr), round(r.bottom() * dpr), columns, colour)

"""A phase fit within a time range: its pieces, its breakpoints with their ranges, and the residual."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from desktop.core.arrays import Flags, Floats, Ints
from desktop.core.envelope import Columns, Envelope
from desktop.core.spaces import evaluate, kernels

if TYPE_CHECKING:
    from desktop.core.phases import PhaseFit


def fitted(fit: PhaseFit, phase: Ints, t: Floats) -> tuple[Floats, Floats]:
    """Value (processors) and slope (processors per second) of `phase` (K,) at `t` (K,), element by element.

    Evaluated in the phase's own orthogonal basis, so that precision is kept at deep zoom far from zero.
    """
    a, b = fit.breaks[phase], fit.breaks[phase + 1]
    width = fit.duration[phase]
    u = np.clip(((t - a) - (b - t)) / width, -1, 1)
    value, slope = _at(fit, phase, u)
    return value, slope * 2 / width


def _at(fit: PhaseFit, phase: Ints, u: Floats) -> tuple[Floats, Floats]:
    return evaluate(fit.basis, fit.degree[phase], fit.duration[phase], fit.coefficients[phase], u)


def _between(fit: PhaseFit, phase: Ints, left: Floats, right: Floats) -> Floats:
    """Least, greatest and mean value (3, n) of `phase` from time `left` to `right`, element by element; exact
    for polynomials, while bounds of other functions may be off by their curvature within the interval."""
    a, b, width = fit.breaks[phase], fit.breaks[phase + 1], fit.duration[phase]
    u0 = np.clip(((left - a) - (b - left)) / width, -1.0, 1.0)
    u1 = np.clip(((right - a) - (b - right)) / width, -1.0, 1.0)
    (p0, slope0), (p1, slope1) = _at(fit, phase, u0), _at(fit, phase, u1)
    half, _ = _at(fit, phase, (u0 + u1) / 2)
    c = fit.coefficients[phase].T
    # Simpson's rule is exact for a parabola.
    out = np.stack([np.minimum(p0, p1), np.maximum(p0, p1), (p0 + 4 * half + p1) / 6])
    basic = fit.degree[phase] > 2
    bent = np.flatnonzero((slope0 * slope1 < 0) & ~basic)
    vertex = c[0, bent] - c[1, bent] * c[1, bent] / (6 * c[2, bent]) - 0.5 * c[2, bent]
    out[0, bent], out[1, bent] = np.minimum(out[0, bent], vertex), np.maximum(out[1, bent], vertex)
    if fit.basis is not None and basic.any():
        ranges = np.empty((3, int(basic.sum())))
        kernels(fit.basis.model).between(fit.rate, width[basic], c.T[basic], u0[basic], u1[basic], ranges)
        out[:, basic] = ranges
    return out


def visible(fit: PhaseFit, a: float, b: float) -> Ints:
    """Indices of the phases that overlap the times from `a` to `b`."""
    return np.flatnonzero((fit.breaks[1:] > a) & (fit.breaks[:-1] < b))


class Residual(NamedTuple):
    """Curve minus fit for each pixel column, (W,) each, processors; bounds hold for every single step."""

    minimum: Floats
    maximum: Floats
    mean: Floats


def residual(env: Envelope, fit: PhaseFit, x: Floats, whole: Columns | None = None) -> Residual:
    """Residual in the columns between `x` (W+1,) seconds; `whole`: columns of the curve, if known.

    Columns are cut at breakpoints, so that each part has one polynomial. The mean is exact. Minimum and
    maximum are exact for a constant phase and for columns of a single step with a level fit; otherwise they
    enclose the exact ones by no more than the polynomial changes within the column, so no peak is lost.
    """
    inner = fit.breaks[1:-1]
    inner = inner[(inner > x[0]) & (inner < x[-1])]
    least, most, mean = _less(fit, whole or env.columns(x), x)
    if inner.size:  # columns with a breakpoint, in parts
        column = np.searchsorted(x, inner, side="right") - 1
        cuts = np.unique(np.concatenate([x[column], inner, x[column + 1]]))
        parts, column = _less(fit, env.columns(cuts), cuts), np.unique(column)
        # Ranges of parts of each column; every second range lies between two such columns.
        ends = np.searchsorted(cuts, np.stack([x[column], x[column + 1]], axis=1)).ravel()
        length = np.diff(cuts)
        low, high, total = (
            of.reduceat(np.append(part, 0.0), ends)[::2]
            for of, part in zip((np.fmin, np.fmax, np.add), (*parts[:2], parts[2] * length), strict=True)
        )
        least[column], most[column], mean[column] = low, high, total / (x[column + 1] - x[column])
    width = np.diff(x)
    if width.min(initial=1.0) > 0:
        return Residual(least, most, mean)
    # Far from zero, neighbouring columns may have equal times.
    filled = np.maximum.accumulate(np.where(width > 0, np.arange(width.size), 0))
    return Residual(least[filled], most[filled], mean[filled])


def _less(fit: PhaseFit, c: Columns, x: Floats) -> tuple[Floats, Floats, Floats]:
    """Least, greatest and mean difference of a curve's columns, without a breakpoint inside, from the fit."""
    phase = np.minimum(np.maximum(np.searchsorted(fit.breaks, x[:-1], side="right") - 1, 0), fit.n - 1)
    low, high, mean = _between(fit, phase, x[:-1], x[1:])
    return c.minimum - high, c.maximum - low, c.mean - mean


def _cut(show: Ints, a: Floats, b: Floats, origin: float, step: float) -> tuple[Ints, Floats, Floats]:
    """Phases from `a` to `b` cut at `origin` and every `step` seconds: phase, begin and end of each part.
    Short parts are straight on a logarithmic axis too."""
    first = np.floor((a - origin) / step).astype(np.int64) + 1
    parts = np.maximum(np.ceil((b - origin) / step).astype(np.int64) - first, 0) + 1
    which = np.repeat(np.arange(show.size), parts)
    k = np.arange(which.size) - np.repeat(np.cumsum(parts) - parts, parts)
    at = origin + (first[which] + k) * step
    return show[which], np.where(k == 0, a[which], at - step), np.where(k == parts[which] - 1, b[which], at)


class Pieces(NamedTuple):
    """Parts of visible phases, each (K,): `phase`, from `a` to `b` (seconds), and values (processors) there
    and where the tangents at both ends meet (`middle`), the control point of a parabola."""

    phase: Ints
    a: Floats
    b: Floats
    start: Floats
    middle: Floats
    end: Floats


def pieces(fit: PhaseFit, a: float, b: float, step: float | None = None) -> Pieces:
    """The visible parts of the fit between the times `a` and `b`, at most `step` seconds long if given, which
    makes them straight on a logarithmic axis too."""
    show = visible(fit, a, b)
    begin, end = np.maximum(fit.breaks[show], a), np.minimum(fit.breaks[show + 1], b)
    in_space = fit.degree[show] > 2
    if in_space.any():
        shortest = float(fit.duration[show][in_space].min())
        bend = max(min(_BEND / abs(fit.rate or 1e-300), shortest / _LEAST), (b - a) / _PARTS)
        step = bend if step is None else min(step, bend)
    if step is not None:
        show, begin, end = _cut(show, begin, end, a, step)
    first, slope = fitted(fit, show, begin)
    last, _ = fitted(fit, show, end)
    return Pieces(show, begin, end, first, first + slope * (end - begin) / 2, last)


# Functions other than polynomials are drawn as parabolas over parts in which the argument changes by
# `_BEND`, at least `_LEAST` parts a phase, at most `_PARTS` in all.
_BEND, _LEAST, _PARTS = 0.3, 16, 8192


@dataclass(frozen=True, eq=False)
class Breakpoints:
    """Inner breakpoints of a fit (K,), their ranges from `low` to `high` (seconds), and which are locked."""

    time: Floats
    low: Floats
    high: Floats
    locked: Flags


def breakpoints(fit: PhaseFit, locked: Iterable[float] = ()) -> Breakpoints:
    """The inner breakpoints of a fit. `locked`: times (s) of locked breakpoints, equal up to rounding."""
    inner = fit.breaks[1:-1]
    held = np.zeros(inner.size, bool)
    near = 1e-9 * (fit.breaks[-1] - fit.breaks[0])
    for t in locked if inner.size else ():
        nearest = int(np.argmin(np.abs(inner - t)))
        held[nearest] |= bool(abs(inner[nearest] - t) <= near)
    return Breakpoints(inner, fit.breakpoint_low[1:-1], fit.breakpoint_high[1:-1], held)

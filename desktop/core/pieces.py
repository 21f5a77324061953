"""A phase fit over a stretch of time: its pieces, its breakpoints with their ranges, and the residual."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from desktop.core.envelope import Columns, Envelope
from desktop.core.jit import kernel
from desktop.core.spaces import between, values

if TYPE_CHECKING:
    from desktop.core.phases import PhaseFit


def fitted(
    fit: PhaseFit, phase: NDArray[np.int64], t: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Value (processors) and slope (processors per second) of `phase` at `t`, element by element.

    Evaluated in the phase's own orthogonal basis, so that deep zoom far from zero loses nothing.
    """
    a, b = fit.breaks[phase], fit.breaks[phase + 1]
    width = fit.duration[phase]
    u = np.clip(((t - a) - (b - t)) / width, -1, 1)
    value, slope = np.empty(u.size), np.empty(u.size)
    values(fit.degree[phase], fit.rate, width, fit.coefficients[phase], u, value, slope)
    return value, slope * 2 / width


def visible(fit: PhaseFit, a: float, b: float) -> NDArray[np.int64]:
    """Phases that show between the times `a` and `b`."""
    return np.flatnonzero((fit.breaks[1:] > a) & (fit.breaks[:-1] < b))


class Residual(NamedTuple):
    """Curve minus fit per pixel column, each (W,), processors; bounds hold for every single step."""

    minimum: NDArray[np.float64]
    maximum: NDArray[np.float64]
    mean: NDArray[np.float64]


def residual(env: Envelope, fit: PhaseFit, x: NDArray[np.float64], whole: Columns | None = None) -> Residual:
    """Columns of the curve minus the fit, `x` (W+1,) seconds; `whole` are those of the curve, if known.

    Columns are cut at the breaks, so that each part has one polynomial. The mean is exact. Minimum and
    maximum are exact for a constant phase and for columns of a single step with a level fit; otherwise they
    enclose the exact ones by no more than the polynomial changes within the column, so no peak is lost.
    """
    inner = fit.breaks[1:-1]
    inner = inner[(inner > x[0]) & (inner < x[-1])]
    # Only columns with a break are asked for again, in parts.
    column = np.searchsorted(x, inner, side="right") - 1
    cuts = np.unique(np.concatenate([x[column], inner, x[column + 1]]))
    parts = env.columns(cuts) if cuts.size else env.columns(x[:1])
    whole = whole or env.columns(x)
    out = np.empty((3, x.size - 1))
    shape = fit.breaks, fit.duration, fit.degree, fit.rate, fit.coefficients
    _residual(x, cuts, whole[:3], parts[:3], *shape, out)
    return Residual(*out)


@kernel
def _residual(x, cuts, whole, parts, breaks, duration, degree, rate, coefficients, out):
    i = phase = 0
    final = breaks.size - 2
    for k in range(x.size - 1):
        left, right = x[k], x[k + 1]
        if left == right and k > 0:  # far from zero, neighbouring columns may share a time
            out[:, k] = out[:, k - 1]
            continue
        while phase < final and breaks[phase + 1] <= left:
            phase += 1
        if phase == final or breaks[phase + 1] >= right:
            low, high, mean = _between(breaks, duration, degree, rate, coefficients, phase, left, right)
            out[0, k], out[1, k], out[2, k] = whole[0][k] - high, whole[1][k] - low, whole[2][k] - mean
            continue
        out[0, k], out[1, k], out[2, k] = np.inf, -np.inf, 0.0
        while cuts[i] < left:
            i += 1
        while cuts[i] < right:
            a, b = cuts[i], cuts[i + 1]
            while phase < final and breaks[phase + 1] <= a:
                phase += 1
            low, high, mean = _between(breaks, duration, degree, rate, coefficients, phase, a, b)
            out[0, k] = min(out[0, k], parts[0][i] - high)
            out[1, k] = max(out[1, k], parts[1][i] - low)
            out[2, k] += (parts[2][i] - mean) * ((b - a) / (right - left))
            i += 1


@kernel
def _between(breaks, duration, degree, rate, coefficients, phase, left, right):
    """Least, greatest and mean value of a phase's function from `left` to `right`."""
    a, b, width = breaks[phase], breaks[phase + 1], duration[phase]
    u0 = min(max(((left - a) - (b - left)) / width, -1.0), 1.0)
    u1 = min(max(((right - a) - (b - right)) / width, -1.0), 1.0)
    return between(degree[phase], rate, width, coefficients[phase], u0, u1)


def _cut(
    show: NDArray[np.int64], a: NDArray[np.float64], b: NDArray[np.float64], origin: float, step: float
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Phases from `a` to `b` cut at `origin` and every `step` seconds: phase, begin and end of each part.
    Short ones are straight on a logarithmic axis too."""
    first = np.floor((a - origin) / step).astype(np.int64) + 1
    parts = np.maximum(np.ceil((b - origin) / step).astype(np.int64) - first, 0) + 1
    which = np.repeat(np.arange(show.size), parts)
    k = np.arange(which.size) - np.repeat(np.cumsum(parts) - parts, parts)
    at = origin + (first[which] + k) * step
    return show[which], np.where(k == 0, a[which], at - step), np.where(k == parts[which] - 1, b[which], at)


class Pieces(NamedTuple):
    """The polynomials of the visible phases, each (K,): `phase`, from `a` to `b` (seconds), and its values
    there and where the tangents at both ends meet, which is the control point of a parabola (processors)."""

    phase: NDArray[np.int64]
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    start: NDArray[np.float64]
    middle: NDArray[np.float64]
    end: NDArray[np.float64]


def pieces(fit: PhaseFit, a: float, b: float, step: float | None = None) -> Pieces:
    """What is seen of the fit between the times `a` and `b`; in parts of at most `step` seconds if one is
    given, which are straight on a logarithmic axis too."""
    show = visible(fit, a, b)
    begin, end = np.maximum(fit.breaks[show], a), np.minimum(fit.breaks[show + 1], b)
    own = fit.degree[show] > 2
    if own.any():
        shortest = float(fit.duration[show][own].min())
        bend = max(min(_BEND / abs(fit.rate), shortest / _LEAST), (b - a) / _PARTS)
        step = bend if step is None else min(step, bend)
    if step is not None:
        show, begin, end = _cut(show, begin, end, a, step)
    first, slope = fitted(fit, show, begin)
    last, _ = fitted(fit, show, end)
    return Pieces(show, begin, end, first, first + slope * (end - begin) / 2, last)


# Of other functions than polynomials, parts in which the argument changes by so much are parabolas for the
# eye, if a phase has at least so many; at most so many of them are made.
_BEND, _LEAST, _PARTS = 0.3, 16, 8192


@dataclass(frozen=True, eq=False)
class Breakpoints:
    """The inner breakpoints of a fit (K,), which may lie from `low` to `high`; seconds. `locked`: held."""

    time: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    locked: NDArray[np.bool_]


def breakpoints(fit: PhaseFit, locked: Iterable[float] = ()) -> Breakpoints:
    """Those of a fit. `locked`: times (s) that are held, but for rounding those of breakpoints."""
    inner = fit.breaks[1:-1]
    held = np.zeros(inner.size, bool)
    near = 1e-9 * (fit.breaks[-1] - fit.breaks[0])
    for t in locked if inner.size else ():
        nearest = int(np.argmin(np.abs(inner - t)))
        held[nearest] |= bool(abs(inner[nearest] - t) <= near)
    return Breakpoints(inner, fit.break_low[1:-1], fit.break_high[1:-1], held)

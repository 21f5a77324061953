"""One period with a trend: {1, t, cos wt, sin wt}, w = rate.

::

    q2 = -3/x² (cos xu - sin x/x)      q3 = -15/x³ (sin xu - a u), a = 3 (sin x - x cos x)/x²

For short intervals these are the Legendre polynomials P2 and P3. The formulas below are written so that no
nearly equal numbers are subtracted and nothing is divided by x, which may be tiny or large. The shape is
cos x, sin x/x, 0, (sin x/x - 1)/x², (a/x - 1)/x². `desktop.core.bases.space` describes the functions and
their arguments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from desktop.core.bases.space import (
    FLAT,
    GA,
    GS,
    LARGE,
    NORM,
    FunctionSpace,
    Part,
    RateScale,
    Shape,
    over_factorial,
    powers,
    series,
    square,
)

TERMS = 4
# Squared norms of q2 and q3 for h = 1: 9/x⁴ (1 + sin 2x/2x - 2 sin²x/x²), 225/x⁶ (1 - sin 2x/2x - 2a²/3).
_G2 = powers(lambda k: 9 * Fraction(-4) ** k * (2 * k - 2) * over_factorial(2 * k + 2), 2, NORM)
_G3 = powers(lambda k: 225 * (-(Fraction(-4) ** k) * over_factorial(2 * k + 1) - square(k + 2, -1)), 3, NORM)


def bent(x: float, cosine: float, ratio: float) -> tuple[float, float]:
    """(sin x/x - 1)/x² and (a/x - 1)/x², from cos x and sin x/x."""
    square = x * x
    if x < LARGE:
        return series(GS, square), series(GA, square)
    return (ratio - 1) / square, (3 * (ratio - cosine) / square - 1) / square


def shape(x: float) -> Shape:
    cosine, ratio = 1 - x * x / 2, 1 - x * x / 6
    if x >= FLAT:
        cosine, ratio = math.cos(x), math.sin(x) / x
    gs, ga = bent(x, cosine, ratio)
    return cosine, ratio, 0.0, gs, ga


def norms(x: float) -> tuple[float, float]:
    square = x * x
    if x < LARGE:
        return series(_G2, square), series(_G3, square)
    sine, cosine = math.sin(x), math.cos(x)
    ratio, a, both = sine / x, 3 * (sine / x - cosine) / x, sine * cosine / x
    return (
        9 / (square * square) * (1 + both - 2 * ratio * ratio),
        225 / (square * square * square) * (1 - both - 2 / 3 * a * a),
    )


def level(x: float, cosine: float, ratio: float) -> float:
    """(1 - cos x)/x²"""
    return ratio * ratio / (1 + cosine) if cosine > -0.5 else (1 - cosine) / (x * x)


# Many: a kernel's arguments, one by one.
def part(
    x: float, share: float, d: float, xp: float, gsp: float, gap: float, xo: float, cosine: float,
    ratio: float, gso: float, gs: float, ga: float,
) -> Part:  # fmt: skip
    """q2 and q3 of an interval on a part of it.

    `share`: half width of the part; d: its centre (both for a half width of 1); of the part x, gs, ga (p),
    of the other part x, cos x, sin x/x, gs (o): what lies between the centres is the other's half width.
    """
    even = level(xo, cosine, ratio)
    sp = 1 + xp * xp * gsp
    ap = 1 + xp * xp * gap
    dd, rr = d * d, share * share
    return (
        -3 * (rr * gsp - dd * even * sp - gs),
        3 * d * share * ratio * ap,
        rr * cosine,
        -rr * share / 5 * x * x * d * ratio,
        -15 * d * (dd * gso * sp + rr * gsp - ga),
        -15 * share * (rr * gap - dd * even * ap - ga),
        5 * rr * d * ratio,
        rr * share * cosine,
    )


def split(
    rate: float, r: float, t: float, xa: float, a: Shape, xb: float, b: Shape
) -> tuple[Shape, Part, Part]:
    ca, qa, _, gsa, gaa = a
    cb, qb, _, gsb, gab = b
    x = xa + xb
    sa, sb = qa * xa, qb * xb
    cosine, ratio = ca * cb - sa * sb, (sa * cb + ca * sb) / x if x > 0 else 1.0
    gs, ga = bent(x, cosine, ratio)
    left = part(x, r, -t, xa, gsa, gaa, xb, cb, qb, gsb, gs, ga)
    right = part(x, t, r, xb, gsb, gab, xa, ca, qa, gsa, gs, ga)
    return (cosine, ratio, 0.0, gs, ga), left, right


def ends(rate: float, x: float, shape: Shape) -> tuple[float, float, float, float]:
    cosine, ratio, _, gs, ga = shape
    q2, q3 = 3 * (level(x, cosine, ratio) + gs), 15 * (ga - gs)
    return q2, -q3, q2, q3


def functions(rate: float, x: float, u: float) -> tuple[float, float, float, float]:
    _, _, _, gs, ga = shape(x)
    y = x * abs(u)
    cosine, ratio, _, gsy, _ = shape(y)
    bend = u * u * level(y, cosine, ratio)
    return 3 * (bend + gs), 3 * u * ratio, -15 * u * (u * u * gsy - ga), 15 * (bend + ga)


def bend(rate: float, x: float, c2: float, c3: float, left: float, right: float) -> float:
    amplitude = math.hypot(3 * c2, 15 * c3 / x) / (x * x)
    span = x * (right - left)
    return min(amplitude * span * span / 8, 2 * amplitude)


def means(rate: float, x: float, left: float, right: float) -> tuple[float, float]:
    span, middle = x * (right - left), (left + right) / 2
    ratio = math.sin(x) / x
    a = 3 * (ratio - math.cos(x)) / x
    q2 = (math.sin(x * right) - math.sin(x * left)) / span - ratio
    q3 = (math.cos(x * left) - math.cos(x * right)) / span - a * middle
    return -3 / (x * x) * q2, -15 / (x * x * x) * q3


def _natural(rate: float, width: float, c: Sequence[float]) -> tuple[float, float, float, float]:
    h = width / 2
    x = abs(rate) * h
    ratio = math.sin(x) / x
    a = 3 * (ratio - math.cos(x)) / x
    even, odd = -3 * c[2] / x**2, -15 * c[3] / x**3
    line = c[1] - odd * a
    cosine, sine = math.cos(x), math.sin(x)
    return c[0] - even * ratio - line, line / h, even * cosine - odd * sine, even * sine + odd * cosine


def _at_start(rate: float, powers: Sequence[float]) -> tuple[float, float, float]:
    level, slope, c, d = powers
    return level + c, slope + rate * d, -rate * rate * c / 2


SPACE = FunctionSpace(
    "periodic",
    "Periodic",
    "Each phase is a line and an oscillation, with one period for all",
    kind="periodic",
    noun="period",
    columns=("cosine", "sine"),
    factors=("cos ω{t}", "sin ω{t}"),
    natural=_natural,
    at_start=_at_start,
    scale=RateScale("period", 2 * math.pi, "ω", "2π / period"),
)

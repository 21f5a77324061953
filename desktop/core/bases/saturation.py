"""Saturation with a trend: {1, t, exp(-rt)}, r = rate.

::

    q2 = 3/x² e^-x (e^(∓xu) - sinh x/x ± a u), a = 3 (x cosh x - sinh x)/x²

For short intervals this is the Legendre polynomial P2. The formulas below are written so that no nearly equal
numbers are subtracted and nothing is divided by x, which may be tiny or large. The shape is, times e^-x each,
1, sinh x/x, (cosh x - 1)/x², (sinh x/x - 1)/x², (a/x - 1)/x². `desktop.core.bases.space` describes the
functions and their arguments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from desktop.core.bases.space import (
    FLAT,
    HA,
    HS,
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

TERMS = 3


# Squared norm of q2 for h = 1 without its factor e^-2x: 9/x⁴ (sinh 2x/x - 2 sinh²x/x² - 2a²/3).
def _norm(k: int) -> Fraction:
    inside = 2 * over_factorial(2 * k + 1) - 4 * over_factorial(2 * k + 2)
    return 9 * (Fraction(4) ** k * inside - square(k + 2, 1))


_H2 = powers(_norm, 2, NORM)


def faded(x: float, rise: float, slope: float) -> Shape:
    """The shape, from 1 - e^-x (`rise`) and that over x (`slope`)."""
    e = 1 - rise
    ratio = slope * (1 + e) / 2
    square = x * x
    if x < LARGE:
        gs, ga = e * series(HS, square), e * series(HA, square)
    else:
        gs = (ratio - e) / square
        ga = (3 * ((1 + e * e) / 2 - ratio) / square - e) / square
    return e, ratio, slope * slope / 2, gs, ga


def shape(x: float) -> Shape:
    slope = 1 - x / 2 * (1 - x / 3 * (1 - x / 4))
    if x >= FLAT:
        slope = -math.expm1(-x) / x
    return faded(x, slope * x, slope)


def norms(x: float) -> tuple[float, float]:
    square = x * x
    if x < LARGE:
        fade = 1 - 2 * x * (1 - x * (1 - 2 / 3 * x)) if x < FLAT else math.exp(-2 * x)
        return series(_H2, square) * fade, 0.0
    e, ratio, _, _, _ = shape(x)
    a = 3 * ((1 + e * e) / 2 - ratio) / x
    return 9 / (square * square) * ((1 - e * e * e * e) / (2 * x) - 2 * ratio * ratio - 2 / 3 * a * a), 0.0


# Many: a kernel's arguments, one by one.
def part(
    x: float, share: float, d: float, up: float, xp: float, ep: float, sp: float, gsp: float, gap: float,
    xo: float, eo: float, so: float, co: float, gso: float, gs: float, ga: float,
) -> Part:  # fmt: skip
    """Coefficients of an interval's q2 on a part of it, in the part's q0, q1, q2; then zeros.

    `share`: half width of the part; d: its centre (both for a half width of 1); `up`: e^(wd) grows (1) or
    falls (-1) from the interval's centre to the part's; x and shape of the part (p), and of the other (o).
    """
    rr, y = share * share, up * xo
    q2 = rr if up > 0 else rr * eo * eo
    signed = y / d  # x with its sign
    return (
        3 * (d * d * (co + y * gso) * sp + eo * (rr + y * rr) * gsp - gs - y * ga),
        3 * share * (d * (so + y * co) * (ep + xp * xp * gap) + signed * (rr * eo * gap - ga)),
        q2,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
    )


def split(
    rate: float, r: float, t: float, xa: float, a: Shape, xb: float, b: Shape
) -> tuple[Shape, Part, Part]:
    ca, qa, ha, gsa, gaa = a
    cb, qb, hb, gsb, gab = b
    x = xa + xb
    slope = (math.sqrt(2 * ha) * xa + ca * math.sqrt(2 * hb) * xb) / x if x > 0 else 1.0
    whole = faded(x, slope * x, slope)
    up = 1.0 if rate < 0 else -1.0  # e^(-rate t) to the right
    left = part(x, r, -t, -up, xa, ca, qa, gsa, gaa, xb, cb, qb, hb, gsb, whole[3], whole[4])
    right = part(x, t, r, up, xb, cb, qb, gsb, gab, xa, ca, qa, ha, gsa, whole[3], whole[4])
    return whole, left, right


def ends(rate: float, x: float, shape: Shape) -> tuple[float, float, float, float]:
    _, _, half, gs, ga = shape
    sign = -1.0 if rate > 0 else 1.0
    return 3 * (half - gs - sign * x * (gs - ga)), 0.0, 3 * (half - gs + sign * x * (gs - ga)), 0.0


def functions(rate: float, x: float, u: float) -> tuple[float, float, float, float]:
    _, _, _, gs, ga = shape(x)
    y = x * abs(u)
    _, ratio, half, gsy, _ = shape(y)
    fade = math.exp(y - x)
    sign = -1.0 if rate > 0 else 1.0
    signed = y if u * sign > 0 else -y
    q2 = 3 * (u * u * fade * (half + signed * gsy) - gs - signed * ga)
    return q2, 3 * (u * fade * (ratio + signed * half) - sign * x * ga), 0.0, 0.0


def steepest(rate: float, x: float, u: float) -> float:
    """e^(∓xu) e^-x"""
    return math.exp(x * (u - 1)) if rate < 0 else math.exp(-x * (1 + u))


def bend(rate: float, x: float, c2: float, c3: float, left: float, right: float) -> float:
    steep = max(steepest(rate, x, left), steepest(rate, x, right))
    return 3 * abs(c2) * steep * (right - left) ** 2 / 8


def means(rate: float, x: float, left: float, right: float) -> tuple[float, float]:
    span, middle = x * (right - left), (left + right) / 2
    e, ratio, _, _, _ = shape(x)
    a = 3 * ((1 + e * e) / 2 - ratio) / x
    if rate < 0:
        a = -a
    changed = abs(steepest(rate, x, left) - steepest(rate, x, right))
    return 3 / (x * x) * (changed / span - ratio + a * middle), 0.0


def _natural(rate: float, width: float, c: Sequence[float]) -> tuple[float, float, float, float]:
    h = width / 2
    x = abs(rate) * h
    e = math.exp(-x)
    ratio = (1 - e * e) / (2 * x)
    a = math.copysign(3 * ((1 + e * e) / 2 - ratio) / x, -rate)
    scale = 3 * c[2] / x**2
    line = c[1] - scale * a
    return c[0] - scale * ratio - line, line / h, scale * (1.0 if rate > 0 else e * e), 0.0


def _at_start(rate: float, powers: Sequence[float]) -> tuple[float, float, float]:
    level, slope, c, _ = powers
    return level + c, slope - rate * c, rate * rate * c / 2


SPACE = FunctionSpace(
    "saturation",
    "Saturation",
    "Each phase is a line and an exponential, with one time constant for all",
    kind="saturating",
    noun="saturation",
    columns=("exponential",),
    factors=("exp(−r{t})",),
    natural=_natural,
    at_start=_at_start,
    # From nearly a line to nearly a step.
    scale=RateScale("time constant", 1.0, "r", "1 / time constant", (1.0, 400.0)),
)

"""Functions beside polynomials that phases may be made of: one period with a trend, saturation with a trend.

Worley's problem (ORNL/TM-11637, 1990, section 2) asks of the functions only that the error of an interval can
be told and does not fall when the interval grows; any linear space of functions does. A space that is the
same wherever its interval lies joins like polynomials do in `desktop.core.tree`: each interval keeps the
coefficients of its best function and the squared error, and two neighbours join by sums of squares. Spaces
are numbered after the degrees of polynomials::

    PERIODIC    {1, t, cos wt, sin wt}      w = rate, 2 pi over the period
    SATURATING  {1, t, exp(-r t)}           r = rate

With the half width h of an interval, u in [-1, 1] across it and x = rate * h, orthogonal functions are::

    q0 = 1, q1 = u
    PERIODIC    q2 = -3/x² (cos xu - sin x/x)      q3 = -15/x³ (sin xu - a u), a = 3 (sin x - x cos x)/x²
    SATURATING  q2 = 3/x² e^-|x| (e^(-xu) - sinh x/x + a u), a = 3 (x cosh x - sinh x)/x²

For short intervals these are the Legendre polynomials P2 and P3. On a part of an interval they are
combinations of the part's own, with factors in closed form (`joined`); those below are written so that no
nearly equal numbers are subtracted and nothing is divided by x, which may be tiny or large. All integrals are
exact: no quadrature.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from desktop.core.curve import StepCurve
from desktop.core.jit import arithmetic, formula, inlined, kernel
from desktop.core.tree import BLOCK, SHIFT, MomentTree, begin, moment_tree, row

#: Numbers of the spaces, after the degrees 0, 1, 2 of polynomials.
PERIODIC, SATURATING = 3, 4

# A node's row: width, c0 to c3, squared error, the squared norms of q2 and q3 (for a half width of 1), and
# the five numbers of its width (`shape`), whose sines and powers cost more than all else in a merge.
COLUMNS = 13
_SERIES = 20
# Of the shapes (`sine_shape`, `decay_shape`), whose series fall faster.
_SHAPE = 13
# With so few terms a series is exact to a double's last digits for arguments whose square is below this.
_SHORT, _SMALL = 7, 0.1
# Below this argument two terms are, and so are the first of a sine, a cosine or an exponential.
_FLAT = 1e-4
# Above this argument the formulas themselves lose nothing.
_LARGE = 2.0
_EXACT = 1e-15
_ROUNDS = 120
# Gauss' rule of five points on [-1, 1].
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)


def _powers(coefficient: Callable[[int], Fraction], first: int, terms: int) -> NDArray[np.float64]:
    return np.array([float(coefficient(k)) for k in range(first, first + terms)])


def _f(n: int) -> Fraction:
    return Fraction(1, math.factorial(n))


def _square(k: int, sign: int) -> Fraction:
    """Coefficient of x^2k in 6 (x cosh x - sinh x)² for sign 1, with sin and cos for -1."""
    inside = _f(2 * k) / 2 - _f(2 * k - 1) / 2 + (_f(2 * k - 2) / 8 if k > 1 else Fraction(1, 4))
    return 6 * Fraction(4) ** k * sign ** (k - 1) * inside


# In powers of x²: (sinh x - x)/x³, (a - x)/x³; with the signs of sin and cos.
_HS = _powers(lambda k: _f(2 * k + 1), 1, _SHAPE)
_HA = _powers(lambda k: 6 * k * _f(2 * k + 1), 2, _SHAPE)
_GS = _HS * (-1.0) ** np.arange(1, _SHAPE + 1)
_GA = _HA * (-1.0) ** np.arange(1, _SHAPE + 1)
# Squared norms of q2 and q3 for h = 1: 9/x⁴ (1 + sin 2x/2x - 2 sin²x/x²), 225/x⁶ (1 - sin 2x/2x - 2a²/3);
# without its e^-2|x|, 9/x⁴ (sinh 2x/x - 2 sinh²x/x² - 2a²/3).
_G2 = _powers(lambda k: 9 * Fraction(-4) ** k * (2 * k - 2) * _f(2 * k + 2), 2, _SERIES)
_G3 = _powers(lambda k: 225 * (-(Fraction(-4) ** k) * _f(2 * k + 1) - _square(k + 2, -1)), 3, _SERIES)
_H2 = _powers(
    lambda k: 9 * (Fraction(4) ** k * (2 * _f(2 * k + 1) - 4 * _f(2 * k + 2)) - _square(k + 2, 1)), 2, _SERIES
)


class Basis(NamedTuple):
    """What phases may be made of beside polynomials: `model`, "periodic" or "saturation", and its `rate`
    (radians a second; one over seconds)."""

    model: str
    rate: float

    @classmethod
    def of(cls, model: str, seconds: float) -> Basis:
        """With a period, or a time constant, of so many seconds."""
        return cls(model, (2 * math.pi if model == "periodic" else 1) / seconds)

    @property
    def space(self) -> int:
        return PERIODIC if self.model == "periodic" else SATURATING

    @property
    def seconds(self) -> float:
        """The period, or the time in which what is missing falls to 1/e (s)."""
        return 2 * math.pi / self.rate if self.model == "periodic" else 1 / self.rate

    @property
    def scale(self) -> dict[str, float]:
        """``period_s`` or ``time_constant_s``, as tables and JSON name it."""
        return {"period_s" if self.model == "periodic" else "time_constant_s": self.seconds}


def with_basis(curve: StepCurve, basis: Basis | None) -> MomentTree:
    """The moment tree of a curve, with nodes of a basis where one is given: O(M) at the first call, found
    in ``curve.summaries`` afterwards, which keeps the last one of each model."""
    tree = moment_tree(curve)
    if basis is None:
        return tree
    known = curve.summaries.get(f"moments, {basis.model}")
    rate = basis.rate * curve.unit
    if known is None or known.rate != rate:
        known = tree._replace(space=basis.space, rate=rate, terms=np.empty((len(tree.nodes), COLUMNS)))
        _build(known)
        curve.summaries[f"moments, {basis.model}"] = known
    return known


@inlined
def series(coefficients, square):
    """The power series at x²."""
    if square < _FLAT * _FLAT:
        return coefficients[1] * square + coefficients[0]
    count = _SHORT if square < _SMALL else coefficients.size
    value = coefficients[count - 1]
    for k in range(count - 2, -1, -1):
        value = value * square + coefficients[k]
    return value


@inlined
def sine_shape(x, cosine, ratio):
    """(sin x/x - 1)/x² and (a/x - 1)/x², of cos x and sin x/x."""
    square = x * x
    if x < _LARGE:
        return series(_GS, square), series(_GA, square)
    return (ratio - 1) / square, (3 * (ratio - cosine) / square - 1) / square


@inlined
def decay_shape(x, rest, slope):
    """Of x >= 0, 1 - e^-x and that over x; all times e^-x: 1, sinh x/x, (cosh x - 1)/x², (sinh x/x - 1)/x²,
    (a/x - 1)/x²."""
    e = 1 - rest
    ratio = slope * (1 + e) / 2
    square = x * x
    if x < _LARGE:
        gs, ga = e * series(_HS, square), e * series(_HA, square)
    else:
        gs = (ratio - e) / square
        ga = (3 * ((1 + e * e) / 2 - ratio) / square - e) / square
    return e, ratio, slope * slope / 2, gs, ga


@inlined
def shape(space, x):
    """What `joined` needs of half a width: of periods cos x, sin x/x, `sine_shape`; else `decay_shape`."""
    if space == PERIODIC:
        cosine, ratio = 1 - x * x / 2, 1 - x * x / 6
        if x >= _FLAT:
            cosine, ratio = np.cos(x), np.sin(x) / x
        gs, ga = sine_shape(x, cosine, ratio)
        return cosine, ratio, 0.0, gs, ga
    slope = 1 - x / 2 * (1 - x / 3 * (1 - x / 4))
    if x >= _FLAT:
        slope = -np.expm1(-x) / x
    return decay_shape(x, slope * x, slope)


@arithmetic
def norms(space, rate, w):
    """Squared norms of q2 and q3 on an interval of width w, for a half width of 1."""
    x = abs(rate) * w / 2
    square = x * x
    if x < _LARGE:
        if space == PERIODIC:
            return series(_G2, square), series(_G3, square)
        fade = 1 - 2 * x * (1 - x * (1 - 2 / 3 * x)) if x < _FLAT else np.exp(-2 * x)
        return series(_H2, square) * fade, 0.0
    if space == PERIODIC:
        sine, cosine = np.sin(x), np.cos(x)
        ratio, a, both = sine / x, 3 * (sine / x - cosine) / x, sine * cosine / x
        return (
            9 / (square * square) * (1 + both - 2 * ratio * ratio),
            225 / (square * square * square) * (1 - both - 2 / 3 * a * a),
        )
    e, ratio, _, _, _ = shape(space, x)
    a = 3 * ((1 + e * e) / 2 - ratio) / x
    return 9 / (square * square) * ((1 - e * e * e * e) / (2 * x) - 2 * ratio * ratio - 2 / 3 * a * a), 0.0


@inlined
def step(tree, w, height):
    """The moments of a piece of a step."""
    n2, n3 = norms(tree.space, tree.rate, w)
    return w, height, 0.0, 0.0, 0.0, 0.0, n2, n3, *shape(tree.space, abs(tree.rate) * w / 2)


@inlined
def sine_part(x, share, d, xp, gsp, gap, xo, cosine, ratio, gso, gs, ga):
    """q2 and q3 of an interval on a part of it, in the part's own functions q0 to q3.

    `share`: half width of the part; d: its centre (both for a half width of 1); of the part x, gs, ga (p),
    of the other part x, cos x, sin x/x, gs (o): what lies between the centres is the other's half width.
    """
    even = ratio * ratio / (1 + cosine) if cosine > -0.5 else (1 - cosine) / (xo * xo)  # (1 - cos)/x²
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


@inlined
def decay_part(x, share, d, up, xp, ep, sp, gsp, gap, xo, eo, so, co, gso, gs, ga):
    """q2 of an interval on a part of it, in the part's q0, q1, q2; signs and names as for `sine_part`.

    `up`: e^(wd) grows (1) or falls (-1) from the interval's centre to the part's.
    """
    rr, y = share * share, up * xo
    q2 = rr if up > 0 else rr * eo * eo
    signed = y / d  # x with its sign
    return (
        3 * (d * d * (co + y * gso) * sp + eo * (rr + y * rr) * gsp - gs - y * ga),
        3 * share * (d * (so + y * co) * (ep + xp * xp * gap) + signed * (rr * eo * gap - ga)),
        q2,
    )


@formula
def joined(space, rate, a, b):
    """The moments of two neighbours as one, `a` to the left of `b`."""
    wa, a0, a1, a2, a3, ea, an2, an3, ca, qa, ha, gsa, gaa = a
    wb, b0, b1, b2, b3, eb, bn2, bn3, cb, qb, hb, gsb, gab = b
    w = wa + wb
    r = wa / w
    t = wb / w
    difference = b0 - a0
    c0 = a0 + t * difference if t <= 0.5 else b0 - r * difference
    # The mean is orthogonal to all else.
    a0, b0 = -t * difference, r * difference
    xa, xb = abs(rate) * wa / 2, abs(rate) * wb / 2
    x = xa + xb
    if space == PERIODIC:
        sa, sb = qa * xa, qb * xb
        cosine, ratio, half = ca * cb - sa * sb, (sa * cb + ca * sb) / x if x > 0 else 1.0, 0.0
        gs, ga = sine_shape(x, cosine, ratio)
        l20, l21, l22, l23, l30, l31, l32, l33 = sine_part(x, r, -t, xa, gsa, gaa, xb, cb, qb, gsb, gs, ga)
        r20, r21, r22, r23, r30, r31, r32, r33 = sine_part(x, t, r, xb, gsb, gab, xa, ca, qa, gsa, gs, ga)
    else:
        slope = (np.sqrt(2 * ha) * xa + ca * np.sqrt(2 * hb) * xb) / x if x > 0 else 1.0
        cosine, ratio, half, gs, ga = decay_shape(x, slope * x, slope)
        up = 1.0 if rate < 0 else -1.0  # e^(-rate t) to the right
        l20, l21, l22 = decay_part(x, r, -t, -up, xa, ca, qa, gsa, gaa, xb, cb, qb, hb, gsb, gs, ga)
        r20, r21, r22 = decay_part(x, t, r, up, xb, cb, qb, gsb, gab, xa, ca, qa, ha, gsa, gs, ga)
        l23, l30, l31, l32, l33 = 0.0, 0.0, 0.0, 0.0, 0.0
        r23, r30, r31, r32, r33 = 0.0, 0.0, 0.0, 0.0, 0.0
    # Squared norms as parts of the whole width.
    pa0, pa1, pa2, pa3 = r, r / 3, r * an2 / 2, r * an3 / 2
    pb0, pb1, pb2, pb3 = t, t / 3, t * bn2 / 2, t * bn3 / 2
    n2 = l20 * l20 * pa0 + l21 * l21 * pa1 + l22 * l22 * pa2 + l23 * l23 * pa3
    n2 += r20 * r20 * pb0 + r21 * r21 * pb1 + r22 * r22 * pb2 + r23 * r23 * pb3
    c1 = 3 * (pa0 * -t * a0 + pa1 * r * a1 + pb0 * r * b0 + pb1 * t * b1)
    c2 = l20 * pa0 * a0 + l21 * pa1 * a1 + l22 * pa2 * a2 + l23 * pa3 * a3
    c2 += r20 * pb0 * b0 + r21 * pb1 * b1 + r22 * pb2 * b2 + r23 * pb3 * b3
    c2 /= n2
    n3, c3 = 0.0, 0.0
    if space == PERIODIC:
        n3 = l30 * l30 * pa0 + l31 * l31 * pa1 + l32 * l32 * pa2 + l33 * l33 * pa3
        n3 += r30 * r30 * pb0 + r31 * r31 * pb1 + r32 * r32 * pb2 + r33 * r33 * pb3
        c3 = l30 * pa0 * a0 + l31 * pa1 * a1 + l32 * pa2 * a2 + l33 * pa3 * a3
        c3 += r30 * pb0 * b0 + r31 * pb1 * b1 + r32 * pb2 * b2 + r33 * pb3 * b3
        c3 /= n3
    u0 = a0 + t * c1 - l20 * c2 - l30 * c3
    v0 = b0 - r * c1 - r20 * c2 - r30 * c3
    u1 = a1 - r * c1 - l21 * c2 - l31 * c3
    v1 = b1 - t * c1 - r21 * c2 - r31 * c3
    u2 = a2 - l22 * c2 - l32 * c3
    v2 = b2 - r22 * c2 - r32 * c3
    u3 = a3 - l23 * c2 - l33 * c3
    v3 = b3 - r23 * c2 - r33 * c3
    more = pa0 * u0 * u0 + pa1 * u1 * u1 + pa2 * u2 * u2 + pa3 * u3 * u3
    more += pb0 * v0 * v0 + pb1 * v1 * v1 + pb2 * v2 * v2 + pb3 * v3 * v3
    return w, c0, c1, c2, c3, ea + eb + w * more, 2 * n2, 2 * n3, cosine, ratio, half, gs, ga


@arithmetic
def at_ends(space, rate, m):
    """The values of the best function at its interval's left and right end, relative to the reference."""
    w, c0, c1, c2, c3, _, _, _, cosine, ratio, half, gs, ga = m
    x = abs(rate) * w / 2
    if space == PERIODIC:
        even = ratio * ratio / (1 + cosine) if cosine > -0.5 else (1 - cosine) / (x * x)
        q2, q3 = 3 * (even + gs), 15 * (ga - gs)
        return c0 - c1 + c2 * q2 - c3 * q3, c0 + c1 + c2 * q2 + c3 * q3
    sign = -1.0 if rate > 0 else 1.0
    left = 3 * (half - gs - sign * x * (gs - ga))
    right = 3 * (half - gs + sign * x * (gs - ga))
    return c0 - c1 + c2 * left, c0 + c1 + c2 * right


@inlined
def node_at(tree, s, at):
    """The moments of the node in row `at`, mirrored for s = -1."""
    z = tree.terms[at]
    odd = s if tree.space == PERIODIC else 1
    c1, c3 = s * z[2], odd * z[4]
    return z[0], z[1], c1, z[3], c3, z[5], z[6], z[7], z[8], z[9], z[10], z[11], z[12]


@inlined
def keep_node(tree, z, m, w):
    """Write moments to a node's row; its width from the edges, as a sum of widths would gather rounding."""
    z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7] = w, m[1], m[2], m[3], m[4], m[5], m[6], m[7]
    z[8], z[9], z[10], z[11], z[12] = shape(tree.space, abs(tree.rate) * w / 2)


@kernel
def _build(tree):
    edges, level, leaves = tree.edges, tree.level, tree.leaves
    for leaf in range(leaves):
        j = leaf << SHIFT
        end = j + BLOCK
        m = step(tree, edges[j + 1] - edges[j], level[j] - tree.reference)
        for i in range(j + 1, end):
            piece = step(tree, edges[i + 1] - edges[i], level[i] - tree.reference)
            m = joined(tree.space, tree.rate, m, piece)
        node, depth = leaf, 0
        z = tree.terms[row(leaves, 0, leaf)]
        keep_node(tree, z, m, edges[end] - edges[j])
        while node & 1:
            left = node_at(tree, 1, row(leaves, depth, node - 1))
            right = node_at(tree, 1, row(leaves, depth, node))
            node, depth = node >> 1, depth + 1
            m = joined(tree.space, tree.rate, left, right)
            z = tree.terms[row(leaves, depth, node)]
            keep_node(tree, z, m, edges[end] - edges[end - (BLOCK << depth)])


@arithmetic
def reach_in_space(tree, s, j, o, cj, co, e, goal=np.nan):
    """As `desktop.core.tree.reach`, for the tree's own space: position, moments taken, merges done.

    Going left, the moments are those of the mirrored curve.
    """
    edges, level, leaves = tree.edges, tree.level, tree.leaves
    space, rate = tree.space, s * tree.rate
    back = (1 - s) // 2
    b, w, height, last, tail = begin(tree, s, j, o, cj, co)
    m = step(tree, w, height)
    if s * (last - b) < 0:
        return cj, co, m, 0
    merges = 0
    depth = 0
    rising = True
    while True:
        # As in `tree.climb` and `tree.descend`: ever larger nodes, then ever smaller ones, then single steps.
        on_leaf = b & (BLOCK - 1) == 0
        if rising and not on_leaf:
            if b == last:
                break
            n = joined(space, rate, m, step(tree, *piece_of(edges, level, tree.reference, b - back)))
            merges += 1
            if n[5] > e:
                break
            m = n
            b += s
            continue
        if rising and 1 << depth > leaves:
            rising = False
        if not rising:
            if depth == 0:
                break
            depth -= 1
        node = (b >> SHIFT >> depth) - back
        if rising and not (b >> SHIFT >> depth) & 1:
            depth += 1
            continue
        far = b + (s << depth << SHIFT)
        if s * (last - far) < 0 or node >= leaves >> depth or node < 0:
            rising = False
            continue
        n = joined(space, rate, m, node_at(tree, s, row(leaves, depth, node)))
        merges += 1
        if n[5] <= e:
            m = n
            b = far
            if rising:
                depth += 1
            if m[0] > goal:
                return b, 0.0, m, merges
        else:
            rising = False
            if n[0] <= goal:
                return b, 0.0, m, merges
    while b != last or tail > 0:
        pw, height = piece_of(edges, level, tree.reference, b - back)
        if b == last:
            pw = tail
        n = joined(space, rate, m, step(tree, pw, height))
        merges += 1
        if n[5] > e:
            if n[0] <= goal:
                return b, 0.0, m, merges
            t, m, more = cut_in_space(tree, rate, m, height, pw, e)
            return b, s * t, m, merges + more
        m = n
        if b == last:
            break
        b += s
    return cj, co, m, merges


@arithmetic
def out_of_reach(tree, j, o, goal, e):
    """Whether the nodes of the tree's own space between position (j, o) and `goal` ticks to the right leave
    more squared error than e alone: what a walk with merges would find at several times the price."""
    limit = e * (1 + 1e-9)
    b = (j + BLOCK - 1 >> SHIFT) + (o > 0 and j & (BLOCK - 1) == 0)
    w, error, depth, rising = tree.edges[min(b << SHIFT, tree.level.size)] - tree.edges[j] - o, 0.0, 0, True
    while depth >= 0 and w < goal:
        if rising and b & 1 == 0:
            depth, b = depth + 1, b >> 1
            rising = 1 << depth <= tree.leaves
            continue
        fits = b < tree.leaves >> depth
        if fits:
            node = row(tree.leaves, depth, b)
            fits = w + tree.terms[node, 0] <= goal
        if fits:
            w, error, b = w + tree.terms[node, 0], error + tree.terms[node, 5], b + 1
            if error > limit:
                return True
        if not fits or not rising:
            rising = False
            depth, b = depth - 1, b << 1
    return False


@inlined
def piece_of(edges, level, reference, i):
    """Width and height of step i."""
    return edges[i + 1] - edges[i], level[i] - reference


@inlined
def cut_in_space(tree, rate, m, height, width, e):
    """As `desktop.core.tree.cut`: how much of a step still fits, the moments with it, the merges done."""
    rest = e - m[5]
    if rest <= 0:
        return 0.0, m, 0
    space = tree.space
    terms = 4 if space == PERIODIC else 3
    q = at_ends(space, rate, m)[1] - height
    stiff = q * q - rest * (terms * terms / m[0])
    t = rest / stiff if stiff * width > rest else 0.5 * width
    low, high = 0.0, width
    merges = 0
    while True:
        n = joined(space, rate, m, step(tree, t, height))
        merges += 1
        if abs(n[5] - e) <= _EXACT * e or merges >= _ROUNDS:
            break
        if n[5] > e:
            high = t
        else:
            low = t
        gained = n[5] - m[5]
        q = at_ends(space, rate, n)[1] - height
        divisor = rest * q * q * t - gained * (rest - gained)
        guess = t * (rest * q * q * t) / divisor if divisor > 0 else 0.0
        if not low < guess < high:
            guess = 0.5 * (low + high)
        if not low < guess < high or guess == t:
            break
        t = guess
    return t, n, merges


@inlined
def value_and_slope(degree, rate, width, c, u):
    """Value at u in [-1, 1] of a phase with coefficients c, and the slope in u. All degrees.

    `c` (4,): those of Legendre polynomials for degrees below 3.
    """
    if degree < 3:
        return c[0] + u * c[1] + (1.5 * u * u - 0.5) * c[2], c[1] + 3 * u * c[2]
    x = abs(rate) * width / 2
    if degree == PERIODIC:
        _, _, _, gs, ga = shape(PERIODIC, x)
        y = x * abs(u)
        cosine, ratio, _, gsy, _ = shape(PERIODIC, y)
        bend = u * u * (ratio * ratio / (1 + cosine) if cosine > -0.5 else (1 - cosine) / (y * y))
        value = c[0] + u * c[1] + 3 * c[2] * (bend + gs) - 15 * c[3] * u * (u * u * gsy - ga)
        return value, c[1] + 3 * c[2] * u * ratio + 15 * c[3] * (bend + ga)
    _, _, _, gs, ga = shape(SATURATING, x)
    y = x * abs(u)
    _, ratio, half, gsy, _ = shape(SATURATING, y)
    fade = np.exp(y - x)
    sign = -1.0 if rate > 0 else 1.0
    signed = y if u * sign > 0 else -y
    q2 = 3 * (u * u * fade * (half + signed * gsy) - gs - signed * ga)
    slope = 3 * (u * fade * (ratio + signed * half) - sign * x * ga)
    return c[0] + u * c[1] + c[2] * q2, c[1] + c[2] * slope


@kernel
def values(degree, rate, width, c, u, value, slope):
    """`value_and_slope` of many: degree, width, u (n,), c (n, 4)."""
    for i in range(u.size):
        value[i], slope[i] = value_and_slope(degree[i], rate, width[i], c[i], u[i])


@inlined
def between(degree, rate, width, c, left, right):
    """A lower and an upper bound of a phase's values from u = left to right, and their mean.

    The bounds are exact for polynomials, else as far off as the function bends within the stretch. The mean
    is exact.
    """
    middle = (left + right) / 2
    p0, slope0 = value_and_slope(degree, rate, width, c, left)
    p1, slope1 = value_and_slope(degree, rate, width, c, right)
    half, _ = value_and_slope(degree, rate, width, c, middle)
    low, high = min(p0, p1), max(p0, p1)
    if degree < 3:
        if slope0 * slope1 < 0:
            vertex = c[0] - c[1] * c[1] / (6 * c[2]) - 0.5 * c[2]
            low, high = min(low, vertex), max(high, vertex)
        return low, high, (p0 + 4 * half + p1) / 6  # Simpson's rule is exact for a parabola
    x = abs(rate) * width / 2
    span = x * (right - left)
    if degree == PERIODIC:
        amplitude = np.hypot(3 * c[2], 15 * c[3] / x) / (x * x)
        bent = min(amplitude * span * span / 8, 2 * amplitude)
    else:
        steep = max(np.exp(-x * (1 + right)), np.exp(-x * (1 + left)))
        if rate < 0:
            steep = max(np.exp(x * (right - 1)), np.exp(x * (left - 1)))
        bent = 3 * abs(c[2]) * steep * (right - left) ** 2 / 8
    if span < 1:
        total = 0.0
        for k in range(5):
            there, _ = value_and_slope(degree, rate, width, c, middle + (right - left) / 2 * _NODES[k])
            total += _WEIGHTS[k] * there
        return low - bent, high + bent, total / 2
    if degree == PERIODIC:
        ratio = np.sin(x) / x
        a = 3 * (ratio - np.cos(x)) / x
        q2 = (np.sin(x * right) - np.sin(x * left)) / span - ratio
        q3 = (np.cos(x * left) - np.cos(x * right)) / span - a * middle
        mean = c[0] + c[1] * middle - 3 / (x * x) * (c[2] * q2 + 5 / x * c[3] * q3)
    else:
        e, ratio, _, _, _ = shape(SATURATING, x)
        a = 3 * ((1 + e * e) / 2 - ratio) / x
        if rate > 0:
            q2 = (np.exp(-x * (1 + left)) - np.exp(-x * (1 + right))) / span - ratio + a * middle
        else:
            q2 = (np.exp(x * (right - 1)) - np.exp(x * (left - 1))) / span - ratio - a * middle
        mean = c[0] + c[1] * middle + 3 / (x * x) * c[2] * q2
    return low - bent, high + bent, mean


def natural(degree: int, rate: float, width: float, c: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coefficients (4,) of 1, t, cos wt, sin wt or of 1, t, e^(-rt), with t from the phase's start; `width`
    is in the unit of 1/rate."""
    h = width / 2
    x = abs(rate) * h
    if degree == PERIODIC:
        ratio = math.sin(x) / x
        a = 3 * (ratio - math.cos(x)) / x
        even, odd = -3 * c[2] / x**2, -15 * c[3] / x**3
        line = c[1] - odd * a
        cosine, sine = math.cos(x), math.sin(x)
        return np.array(
            [c[0] - even * ratio - line, line / h, even * cosine - odd * sine, even * sine + odd * cosine]
        )
    e = math.exp(-x)
    ratio = (1 - e * e) / (2 * x)
    a = math.copysign(3 * ((1 + e * e) / 2 - ratio) / x, -rate)
    scale = 3 * c[2] / x**2
    line = c[1] - scale * a
    return np.array([c[0] - scale * ratio - line, line / h, scale * (1.0 if rate > 0 else e * e), 0.0])


def at_start(degree: int, rate: float, powers: NDArray[np.float64]) -> tuple[float, float, float]:
    """Value, slope and half the second derivative at the start of a phase, of its `natural` coefficients."""
    level, slope, c, d = powers.tolist()
    if degree == PERIODIC:
        return level + c, slope + rate * d, -rate * rate * c / 2
    return level + c, slope - rate * c, rate * rate * c / 2

"""The moment tree: the least-squares error of any interval of a curve, without reading the interval.

A node holds, for its interval of width w, the Legendre coefficients c0, c1, c2 (on s in [-1, 1]) of the
best quadratic and its squared error E. One node serves every degree k, because Legendre polynomials are
orthogonal::

    E_2 = E        E_1 = E + w c2²/5        E_0 = E + w (c1²/3 + c2²/5)

Neighbouring nodes merge by sums of squares alone: nothing is ever subtracted from a sum of squares and no
coordinate leaves its neighbourhood, so the error keeps its relative accuracy where prefix sums lose all of
it. Steps are nodes too and stay in the curve's own arrays; the tree adds 4 bytes per step.

A *position* on the curve is a pair (j, o): the time ``edges[j] + o``. The offset o is positive inside step
j, counted from its left edge, and negative inside step j-1, counted from its right edge. A double alone
could not say where in a short step late in a long trace a break lies.

The problem and Algorithm K, which `reach` serves: P. H. Worley, *Modeling Histogram Data with Piecewise
Polynomials*, ORNL/TM-11637 (1990), section 3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from desktop.core.curve import StepCurve
from desktop.core.jit import kernel

# A leaf of the tree is a block of 2**4 steps: with 8 or 16 a query is fastest, and 16 halves the memory.
_SHIFT = 4
_BLOCK = 1 << _SHIFT
# Newton's iteration inside a step ends at this relative distance from the tolerance (squared).
_EXACT = 1e-15
# It needs 2 to 4 rounds; the limit only bounds the bisection it falls back on.
_ROUNDS = 120


class MomentTree(NamedTuple):
    """Moments of a curve, built once by `moment_tree`; the kernels take it as it is.

    ``edges`` (M+1,) and ``level`` (M,) are the curve's own arrays (ticks, processors). ``nodes`` (N, 4) holds
    c0, c1, c2, E of complete nodes, c0 relative to ``reference``; level l of the tree, whose nodes span
    16·2^l steps, is ``nodes[first[l]:first[l+1]]``. ``runs`` counts the maximal stretches of equal height.
    """

    edges: NDArray[np.float64]
    level: NDArray[np.float64]
    nodes: NDArray[np.float64]
    first: NDArray[np.int64]
    reference: float
    runs: int


class Moments(NamedTuple):
    """What `moments` returns: width in ticks, Legendre coefficients in processors, squared errors.

    ``error[k]`` is E_k, the least squared L2 error of degree k, in processors² · ticks.
    """

    width: float
    c: tuple[float, float, float]
    error: tuple[float, float, float]


def moment_tree(curve: StepCurve) -> MomentTree:
    """The curve's moment tree, built at the first call (O(M)) and found in ``curve.summaries`` afterwards."""
    tree = curve.summaries.get("moments")
    if tree is None:
        tree = _build(curve)
        curve.summaries["moments"] = tree
    return tree


def moments(curve: StepCurve, a: tuple[int, float], b: tuple[int, float]) -> Moments:
    """Best polynomials and least errors on the interval between two positions (j, offset in ticks), a < b."""
    tree = moment_tree(curve)
    _, _, e, w, c0, c1, c2, _ = reach(
        tree, 2, 1, int(a[0]), float(a[1]), int(b[0]), float(b[1]), float(np.inf)
    )
    e1 = e + w * c2 * c2 / 5
    return Moments(w, (c0 + tree.reference, c1, c2), (e1 + w * c1 * c1 / 3, e1, e))


def _build(curve: StepCurve) -> MomentTree:
    # One height is subtracted from all, so that a large mean does not drown small differences. Taken from
    # the data, it keeps whole numbers whole; a sample's median lies where most of the heights are.
    sample = curve.level[:: max(1, curve.segments >> 12)]
    reference = float(np.partition(sample, sample.size // 2)[sample.size // 2])
    sizes = [curve.segments >> _SHIFT]
    while sizes[-1] > 1:
        sizes.append(sizes[-1] >> 1)
    first = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    nodes = np.empty((int(first[-1]), 4))
    runs = build_nodes(curve.edges, curve.level, reference, nodes, first)
    return MomentTree(curve.edges, curve.level, nodes, first, reference, int(runs))


@kernel
def merge(k, a, a0, a1, a2, ea, b, b0, b1, b2, eb):
    """Coefficients and E_k of two neighbours (width, c0, c1, c2, E_k) joined, `a` to the left of `b`.

    With u and v for what is left of each one's own fit after the common fit, E grows by the squared norms
    of u and v. Coefficients above degree k are neither read nor written.
    """
    share = 1 / (a + b)
    r = a * share
    t = b * share
    d = b0 - a0
    # From the nearer side: the mean of a long stretch hardly moves when a short one is added.
    c0 = a0 + t * d if t <= 0.5 else b0 - r * d
    if k == 0:
        return c0, 0.0, 0.0, ea + eb + a * t * d * d
    c1 = 3 * r * t * d + r * r * a1 + t * t * b1
    if k == 1:
        u0 = t * (c1 - d)
        v0 = r * (d - c1)
        u1 = a1 - r * c1
        v1 = b1 - t * c1
        return c0, c1, 0.0, ea + eb + a * (u0 * u0 + u1 * u1 / 3) + b * (v0 * v0 + v1 * v1 / 3)
    c2 = r * r * r * a2 + t * t * t * b2 + 5 * r * t * ((r - t) * d + t * b1 - r * a1)
    u0 = t * (c1 - d - (t - r) * c2)
    v0 = r * (d - c1 - (r - t) * c2)
    u1 = a1 - r * c1 + 3 * r * t * c2
    v1 = b1 - t * c1 - 3 * r * t * c2
    u2 = a2 - r * r * c2
    v2 = b2 - t * t * c2
    left = a * (u0 * u0 + u1 * u1 / 3 + u2 * u2 / 5)
    right = b * (v0 * v0 + v1 * v1 / 3 + v2 * v2 / 5)
    return c0, c1, c2, ea + eb + left + right


@kernel
def build_nodes(edges, level, reference, nodes, first):
    """Fill `nodes` from the leaves to the root; returns the number of runs of equal height."""
    runs = 1
    previous = level[0] - reference
    for j in range(1, level.size):
        height = level[j] - reference
        runs += height != previous
        previous = height
    for block in range(first[1]):
        j = block << _SHIFT
        w = edges[j + 1] - edges[j]
        c0, c1, c2, e = level[j] - reference, 0.0, 0.0, 0.0
        for i in range(j + 1, j + _BLOCK):
            step = edges[i + 1] - edges[i]
            c0, c1, c2, e = merge(2, w, c0, c1, c2, e, step, level[i] - reference, 0.0, 0.0, 0.0)
            w += step
        nodes[block, 0], nodes[block, 1], nodes[block, 2], nodes[block, 3] = c0, c1, c2, e
    for depth in range(1, first.size - 1):
        span = _BLOCK << (depth - 1)
        for i in range(first[depth + 1] - first[depth]):
            x = nodes[first[depth - 1] + 2 * i]
            y = nodes[first[depth - 1] + 2 * i + 1]
            j = 2 * i * span
            a = edges[j + span] - edges[j]
            b = edges[j + 2 * span] - edges[j + span]
            c0, c1, c2, e = merge(2, a, x[0], x[1], x[2], x[3], b, y[0], y[1], y[2], y[3])
            z = nodes[first[depth] + i]
            z[0], z[1], z[2], z[3] = c0, c1, c2, e
    return runs


@kernel
def gap(edges, aj, ao, bj, bo):
    """Ticks from position a to position b."""
    return (edges[bj] - edges[aj]) + (bo - ao)


@kernel
def reach(tree, k, s, j, o, cj, co, e):
    """Go from position (j, o) as far as E_k <= e allows, at most to the cap (cj, co).

    ``s`` is 1 to go right and -1 to go left: the same walk on the mirrored curve, whose nodes have c1
    negated. Returns the position reached (exactly the cap's where it is reached), E_k there, and width,
    c0 (relative to the reference), c1, c2 of what was taken, then the number of merges done. Going left,
    c1 is that of the mirrored curve.

    Whole tree nodes are taken, ever larger ones while they fit and ever smaller ones once one does not,
    then single steps; the step that does not fit is cut: O(16 + log M) merges.
    """
    edges, level, nodes, first = tree.edges, tree.level, tree.nodes, tree.first
    back = (1 - s) // 2
    # The cap as a boundary between steps and a piece of the step behind it.
    ahead = s * co
    if ahead >= 0:
        last, tail = cj, ahead
    else:
        last = cj - s
        tail = edges[last - back + 1] - edges[last - back] + ahead
    # The first piece is the rest of the step that the walk starts in: error 0, so every phase gets on.
    ahead = s * o
    if ahead >= 0:
        step = j - back
        w = edges[step + 1] - edges[step] - ahead
        b = j + s
    else:
        step = j - s - back
        w = -ahead
        b = j
    c0, c1, c2, error = level[step] - tree.reference, 0.0, 0.0, 0.0
    if s * (last - b) < 0:
        return cj, co, 0.0, s * gap(edges, j, o, cj, co), c0, 0.0, 0.0, 0
    merges = 0
    depths = first.size - 1
    depth = 0
    climbing = True
    while True:
        # The next piece: a node of the tree, a step, or the part of a step that the cap allows.
        node = -1
        far = b
        if b & (_BLOCK - 1) == 0:
            while depth >= 0:
                node = (b >> _SHIFT >> depth) - back
                far = (node + 1 - back) << depth << _SHIFT
                if 0 <= node < first[depth + 1] - first[depth] and s * (last - far) >= 0:
                    break
                node = -1
                depth -= 1
                climbing = False
        if node >= 0:
            at = first[depth] + node
            pw = s * (edges[far] - edges[b])
            p0, p1, p2, pe = nodes[at, 0], s * nodes[at, 1], nodes[at, 2], nodes[at, 3]
            if k < 2:
                pe += pw * p2 * p2 / 5
                if k < 1:
                    pe += pw * p1 * p1 / 3
        else:
            if b == last and tail <= 0:
                return cj, co, error, w, c0, c1, c2, merges
            step = b - back
            far = b + s
            pw = tail if b == last else edges[step + 1] - edges[step]
            p0, p1, p2, pe = level[step] - tree.reference, 0.0, 0.0, 0.0
        n0, n1, n2, ne = merge(k, w, c0, c1, c2, error, pw, p0, p1, p2, pe)
        merges += 1
        if ne <= e:
            c0, c1, c2, error = n0, n1, n2, ne
            w += pw
            if node < 0:
                if b == last:
                    return cj, co, error, w, c0, c1, c2, merges
            elif not climbing:
                depth -= 1
            elif depth + 1 < depths and (far >> _SHIFT) & ((2 << depth) - 1) == 0:
                depth += 1
            b = far
        elif node >= 0:
            climbing = False
            depth -= 1
        else:
            t, n0, n1, n2, ne, more = cut(k, w, c0, c1, c2, error, p0, pw, e)
            return b, s * t, ne, w + t, n0, n1, n2, merges + more


@kernel
def cut(k, w, c0, c1, c2, error, height, width, e):
    """How much, t, of a step that does not fit whole still fits: E_k(taken and t) = e, 0 <= t < width.

    Returns t, coefficients and E_k with it, and the merges done. E_k grows with t by (p(end) - height)².
    """
    rest = e - error
    if rest <= 0:
        return 0.0, c0, c1, c2, error, 0
    q = c0 + c1 + c2 - height
    # For a constant E = error + t w q²/(w + t), which is solved as it stands. For higher degrees the end of
    # a fit yields (k+1)² times as readily as its mean, a good first guess; Newton's method in 1/t and
    # 1/(E - error), where the constant's curve is a straight line, does the rest.
    yielding = (k + 1) * (k + 1) / w
    stiff = q * q - rest * yielding
    t = rest / stiff if stiff * width > rest else 0.5 * width
    if k == 0 and stiff * width <= rest:
        t = width
    low, high = 0.0, width
    merges = 0
    while True:
        n0, n1, n2, ne = merge(k, w, c0, c1, c2, error, t, height, 0.0, 0.0, 0.0)
        merges += 1
        if k == 0 or abs(ne - e) <= _EXACT * e or merges >= _ROUNDS:
            break
        if ne > e:
            high = t
        else:
            low = t
        gained = ne - error
        q = n0 + n1 + n2 - height
        divisor = rest * q * q * t - gained * (rest - gained)
        guess = t * (rest * q * q * t) / divisor if divisor > 0 else 0.0
        if not low < guess < high:
            guess = 0.5 * (low + high)
        if not low < guess < high or guess == t:
            break
        t = guess
    return t, n0, n1, n2, ne, merges

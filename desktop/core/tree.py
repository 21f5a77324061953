"""The moment tree: the least-squares error of any interval of a curve, without reading the interval.

A node holds, for its interval of width w, the Legendre coefficients c0, c1, c2 (on s in [-1, 1]) of the
best quadratic and its squared error E. One node serves every degree k, because Legendre polynomials are
orthogonal::

    E_2 = E        E_1 = E + w c2²/5        E_0 = E + w (c1²/3 + c2²/5)

Neighbouring nodes merge by sums of squares alone: nothing is ever subtracted from a sum of squares and no
coordinate leaves its neighbourhood, so the error keeps its relative accuracy where prefix sums lose all of
it. Steps are nodes too and stay in the curve's own arrays; the tree adds 5 bytes per step.

A *position* on the curve is a pair (j, o): the time ``edges[j] + o``. The offset o is positive inside step
j, counted from its left edge, and negative inside step j-1, counted from its right edge. A double alone
could not represent a breakpoint inside a short step late in a long trace.

The problem and Algorithm K, which `reach` serves: P. H. Worley, *Modeling Histogram Data with Piecewise
Polynomials*, ORNL/TM-11637 (1990), section 3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from desktop.core.arrays import Floats
from desktop.core.curve import StepCurve
from desktop.core.jit import arithmetic, formula, inlined

# A leaf of the tree is a block of 2**4 steps: with 8 or 16 a query is fastest, and 16 halves the memory.
SHIFT = 4
BLOCK = 1 << SHIFT
# The reference height comes from a sample of 2**8 to 2**9 steps.
_SAMPLE = 8
# Newton's iteration inside a step ends at this relative distance from the squared tolerance.
_EXACT = 1e-15
# It needs 2 to 4 rounds; the limit only bounds the bisection that replaces it where it fails.
_ROUNDS = 120


class MomentTree(NamedTuple):
    """Moments of a curve, built once by `moment_tree`; an argument of kernels.

    ``edges`` (M+1,) and ``level`` (M,) are the curve's own arrays (ticks, processors). ``nodes`` (N, 5) holds
    c0, c1, c2, E and the width of complete nodes, c0 relative to ``reference``: of ``leaves`` blocks of 16
    steps and of every pair above them, in the rows that `row` gives. ``runs``: number of maximal stretches of
    equal height. ``space``, ``rate``, ``terms`` (N, 13), ``price``, ``go``: number, rate, nodes, parameters
    of a phase, and the address of a kernel, for functions other than polynomials (`desktop.core.spaces`).
    """

    edges: Floats
    level: Floats
    nodes: Floats
    leaves: int
    reference: float
    runs: int
    space: int = 0
    rate: float = 0.0
    terms: Floats = np.empty((0, 13))
    price: int = 0
    go: int = 0


def moment_tree(curve: StepCurve) -> MomentTree:
    """The curve's moment tree, built at the first call (O(M)), then cached in ``curve.summaries``."""
    tree = curve.summaries.get("moments")
    if not isinstance(tree, MomentTree):
        tree = _build(curve)
        curve.summaries["moments"] = tree
    return tree


def _build(curve: StepCurve) -> MomentTree:
    # One height is subtracted from all, so that small differences are not lost beside a large mean. A height
    # of the curve keeps whole numbers whole; the median of a sample is near most of the heights.
    sample = curve.level[:: max(1, curve.segments >> _SAMPLE)].copy()
    middle = sample.size // 2
    sample.partition(middle)
    reference = float(sample[middle])
    leaves = curve.segments >> SHIFT
    nodes = np.empty((leaves + (leaves & ~1), 5))
    runs = build_nodes(curve.edges, curve.level, reference, nodes, leaves)
    return MomentTree(curve.edges, curve.level, nodes, leaves, reference, runs)


@formula
def merge(
    k: int, a: float, a0: float, a1: float, a2: float, ea: float, b: float, b0: float, b1: float, b2: float,
    eb: float,
) -> tuple[float, float, float, float]:  # fmt: skip
    """Coefficients and E_k of two neighbours (width, c0, c1, c2, E_k) merged, `a` to the left of `b`.

    With u and v the differences of each one's own fit from the common fit, E grows by the squared norms of u
    and v. Coefficients above degree k are neither read nor written.
    """
    share = 1 / (a + b)
    r = a * share
    t = b * share
    d = b0 - a0
    # From the longer side, whose mean hardly changes when a short one is added.
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


@inlined
def row(leaves: int, depth: int, node: int) -> int:
    """Row of `node` among those that span 16·2^depth steps: the root comes first, the leaves last."""
    return ((leaves >> depth) & ~1) + node


@arithmetic
def build_nodes(edges: Floats, level: Floats, reference: float, nodes: Floats, leaves: int) -> int:
    """Fill `nodes`, each as soon as its halves are complete; returns the number of runs of equal height."""
    runs = 1
    previous = level[0] - reference
    for j in range(1, level.size):
        height = level[j] - reference
        runs += height != previous
        previous = height
    for leaf in range(leaves):
        j = leaf << SHIFT
        end = j + BLOCK
        w = edges[j + 1] - edges[j]
        c0, c1, c2, e = level[j] - reference, 0.0, 0.0, 0.0
        for i in range(j + 1, end):
            step = edges[i + 1] - edges[i]
            c0, c1, c2, e = merge(2, w, c0, c1, c2, e, step, level[i] - reference, 0.0, 0.0, 0.0)
            w += step
        node, depth = leaf, 0
        z = nodes[row(leaves, 0, leaf)]
        z[0], z[1], z[2], z[3], z[4] = c0, c1, c2, e, edges[end] - edges[j]
        while node & 1:
            x, y = nodes[row(leaves, depth, node - 1)], z
            node, depth = node >> 1, depth + 1
            z = nodes[row(leaves, depth, node)]
            z[0], z[1], z[2], z[3] = merge(2, x[4], x[0], x[1], x[2], x[3], y[4], y[0], y[1], y[2], y[3])
            # From the edges, as a sum of widths would accumulate rounding errors.
            z[4] = edges[end] - edges[end - (BLOCK << depth)]
    return runs


@inlined
def gap(edges: Floats, aj: int, ao: float, bj: int, bo: float) -> float:
    """Ticks from position a to position b."""
    return float(edges[bj] - edges[aj]) + (bo - ao)


@arithmetic
def reach(
    tree: MomentTree, k: int, s: int, j: int, o: float, cj: int, co: float, e: float, goal: float = np.nan
) -> tuple[int, float, float, float, float, float, float, int]:
    """Walk from position (j, o) as far as E_k <= e allows, at most to the cap (cj, co).

    ``s`` is 1 to go right and -1 to go left: the same walk on the mirrored curve, whose nodes have c1
    negated. Returns the position reached (exactly the cap's where it is reached), E_k there, and width,
    c0 (relative to the reference), c1, c2 of the interval, then the number of merges. Going left, c1 is that
    of the mirrored curve. The walk ends early once it is known whether it gets further than the width
    `goal`, at a position on the same side of it.

    Ever larger tree nodes are added until one does not fit (`climb`), then ever smaller ones, then single
    steps; the step that does not fit is cut (`descend`): O(16 + log M) merges.
    """
    b, w, c0, last, tail = begin(tree, s, j, o, cj, co)
    if s * (last - b) < 0:
        return cj, co, 0.0, w, c0, 0.0, 0.0, 0
    b, depth, w, c0, c1, c2, error, climbed = climb(tree, k, k, s, b, 0, w, c0, 0.0, 0.0, 0.0, last, e)
    j, o, w, c0, c1, c2, error, _, merges = descend(
        tree, k, s, b, depth, w, c0, c1, c2, error, last, tail, cj, co, e, goal
    )
    return j, o, error, w, c0, c1, c2, climbed + merges


@inlined
def begin(
    tree: MomentTree, s: int, j: int, o: float, cj: int, co: float
) -> tuple[int, float, float, int, float]:
    """The first part of a walk: the rest of the step in which it starts, whose error is 0.

    Returns the boundary b behind it, its width and height, and the cap as a boundary `last` between steps
    and a width `tail` of the step behind it. If the cap is before b, the width is that to the cap.
    """
    edges = tree.edges
    back = (1 - s) // 2
    ahead = s * co
    if ahead >= 0:
        last, tail = cj, ahead
    else:
        last = cj - s
        tail = edges[last - back + 1] - edges[last - back] + ahead
    ahead = s * o
    if ahead >= 0:
        step = j - back
        w = edges[step + 1] - edges[step] - ahead
        b = j + s
    else:
        step = j - s - back
        w = -ahead
        b = j
    if s * (last - b) < 0:
        w = s * gap(edges, j, o, cj, co)
    return b, w, tree.level[step] - tree.reference, last, tail


@inlined
def climb(
    tree: MomentTree, k: int, d: int, s: int, b: int, depth: int, w: float, c0: float, c1: float, c2: float,
    error: float, last: int, e: float,
) -> tuple[int, int, float, float, float, float, float, int]:  # fmt: skip
    """Add steps up to the edge of a leaf, then ever larger nodes, while E_d <= e (d <= k), not beyond `last`.

    Moments are merged up to degree k and `error` is E_k, so that a walk for a higher degree can continue
    where the one for d had to stop. Returns the boundary at its end, the depth of the node there that does
    not fit, the moments, and the number of merges. `depth` is 0 at the begin, else as returned before.
    """
    edges, level, leaves = tree.edges, tree.level, tree.leaves
    back = (1 - s) // 2
    merges = 0
    while b & (BLOCK - 1):
        if b == last:
            return b, 0, w, c0, c1, c2, error, merges
        step = b - back
        pw = edges[step + 1] - edges[step]
        height = level[step] - tree.reference
        n0, n1, n2, ne = merge(k, w, c0, c1, c2, error, pw, height, 0.0, 0.0, 0.0)
        merges += 1
        if lower(k, d, w + pw, n1, n2, ne) > e:
            return b, 0, w, c0, c1, c2, error, merges
        c0, c1, c2, error = n0, n1, n2, ne
        w += pw
        b += s
    while 1 << depth <= leaves:
        # A node that begins with its parent is skipped, as the parent is tried next.
        if (b >> SHIFT >> depth) & 1:
            node = (b >> SHIFT >> depth) - back
            far = b + (s << depth << SHIFT)
            if s * (last - far) < 0 or node >= leaves >> depth:
                break
            pw, p0, p1, p2, pe = moments_of(tree, k, s, row(leaves, depth, node))
            n0, n1, n2, ne = merge(k, w, c0, c1, c2, error, pw, p0, p1, p2, pe)
            merges += 1
            if lower(k, d, w + pw, n1, n2, ne) > e:
                break
            c0, c1, c2, error = n0, n1, n2, ne
            w += pw
            b = far
        depth += 1
    return b, depth, w, c0, c1, c2, error, merges


@inlined
def lower(k: int, d: int, w: float, c1: float, c2: float, error: float) -> float:
    """E_d from moments with E_k, d <= k."""
    if d < 2 and k == 2:
        error += w * c2 * c2 / 5
    if d < 1 and k > 0:
        error += w * c1 * c1 / 3
    return error


@inlined
def moments_of(tree: MomentTree, k: int, s: int, at: int) -> tuple[float, float, float, float, float]:
    """Width, coefficients and E_k of the node in row `at`."""
    node = tree.nodes[at]
    pw, p1, p2 = node[4], s * node[1], node[2]
    return pw, node[0], p1, p2, lower(2, k, pw, p1, p2, node[3])


@inlined
def descend(
    tree: MomentTree, k: int, s: int, b: int, depth: int, w: float, c0: float, c1: float, c2: float,
    error: float, last: int, tail: float, cj: int, co: float, e: float, goal: float,
) -> tuple[int, float, float, float, float, float, float, int, int]:  # fmt: skip
    """Finish a walk whose next node at `depth` does not fit: smaller nodes, steps, a part of a step.

    It ends early once it is known whether the walk gets further than the width `goal` (NaN: never); the width
    so far is then on the same side of the goal as the final one. Returns boundary or position, width, c0,
    c1, c2, E_k, the depth to go on with (-1 when finished), and the number of merges.
    """
    edges, level, leaves = tree.edges, tree.level, tree.leaves
    back = (1 - s) // 2
    merges = 0
    while depth > 0:
        depth -= 1
        far = b + (s << depth << SHIFT)
        node = (b >> SHIFT >> depth) - back
        if s * (last - far) < 0 or node >= leaves >> depth or node < 0:
            continue
        pw, p0, p1, p2, pe = moments_of(tree, k, s, row(leaves, depth, node))
        n0, n1, n2, ne = merge(k, w, c0, c1, c2, error, pw, p0, p1, p2, pe)
        merges += 1
        if ne <= e:
            c0, c1, c2, error = n0, n1, n2, ne
            w += pw
            b = far
            if w > goal:
                return b, 0.0, w, c0, c1, c2, error, depth, merges
        elif w + pw <= goal:
            return b, 0.0, w, c0, c1, c2, error, depth, merges
    while b != last or tail > 0:
        step = b - back
        pw = tail if b == last else edges[step + 1] - edges[step]
        height = level[step] - tree.reference
        n0, n1, n2, ne = merge(k, w, c0, c1, c2, error, pw, height, 0.0, 0.0, 0.0)
        merges += 1
        if ne > e:
            t, c0, c1, c2, error, more = cut(k, w, c0, c1, c2, error, height, pw, e)
            return b, s * t, w + t, c0, c1, c2, error, -1, merges + more
        c0, c1, c2, error = n0, n1, n2, ne
        w += pw
        if b == last:
            break
        b += s
    return cj, co, w, c0, c1, c2, error, -1, merges


@inlined
def cut(
    k: int, w: float, c0: float, c1: float, c2: float, error: float, height: float, width: float, e: float
) -> tuple[float, float, float, float, float, int]:
    """The width t of the part that fits of a step that does not fit whole: E_k(t) = e, 0 <= t < width.

    Returns t, coefficients and E_k with it, and the number of merges. dE_k/dt = (p(end) - height)².
    """
    spare = e - error
    if spare <= 0:
        return 0.0, c0, c1, c2, error, 0
    q = c0 + c1 + c2 - height
    # For a constant E = error + t w q²/(w + t), which is solved directly. For higher degrees the end of a
    # fit yields (k+1)² times as readily as its mean, a good first guess; then Newton's method in 1/t and
    # 1/(E - error), where the constant's curve is a straight line.
    yielding = (k + 1) * (k + 1) / w
    stiff = q * q - spare * yielding
    t = spare / stiff if stiff * width > spare else 0.5 * width
    if k == 0 and stiff * width <= spare:
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
        divisor = spare * q * q * t - gained * (spare - gained)
        guess = t * (spare * q * q * t) / divisor if divisor > 0 else 0.0
        if not low < guess < high:
            guess = 0.5 * (low + high)
        if not low < guess < high or guess == t:
            break
        t = guess
    return t, n0, n1, n2, ne, merges

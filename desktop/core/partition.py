"""Algorithms K and M of ORNL/TM-11637 (section 3.1) on the moment tree, for every model.

The kernels work with squared tolerances e = epsilon² in processors² · ticks, so that scaling time by a power
of two scales every number exactly, and with positions (`desktop.core.tree`). Their input is the tree and the
*stops*, the times that must be breakpoints: the curve's start and end, and locked ones.

Degrees are 0, 1, 2 for polynomials, above that for the tree's own functions (`desktop.core.spaces`);
`share[d]` is the part of the tolerance that a phase of degree d may use: 1 for every model but the paper's
mixed one (its section 5.1), where it is the price over a parabola's: 1/2, 3/4, 1 for polynomials.
"""

from __future__ import annotations

import numpy as np

from desktop.core.arrays import Bytes, Floats, Ints
from desktop.core.compiler import go_at
from desktop.core.jit import arithmetic, inlined, kernel
from desktop.core.tree import BLOCK, SHIFT, MomentTree, begin, climb, descend, gap, lower, reach, row

MIXED = 3
BUDGET = 4

# The bracket of e is narrowed to this relative width, twice that of epsilon.
_NARROW = 1e-12
# The mixed heuristic scans this many tolerances up to four times the least possible epsilon.
_SCAN = 400
# One bound (`laggard`) is computed for so many of them.
_AHEAD = 16
_TINY = 1e-300
# The bracket for a budget is first narrowed to this width with fixed degrees.
_COARSE = 1e-2
# Relative precision of the least tolerance over all choices of degrees.
_LEAST = 1e-5
# A mixture must lower the total squared error by more than rounding does.
_BETTER = 1e-12


@inlined
def price(tree: MomentTree, d: int) -> int:
    """Parameters of a phase by degree; one is its start."""
    return d + 2 if d < 3 else tree.price


@inlined
def part(tree: MomentTree, d: int) -> float:
    """The part of the tolerance that a phase of the mixed model may use: its price over a quadratic's."""
    return price(tree, d) / 4


@inlined
def beside(s: int, j: int, o: float) -> int:
    """Index of the step in which a walk in direction `s` from position (j, o) starts."""
    return j - (1 - s) // 2 if s * o >= 0 else j - (1 + s) // 2


@arithmetic
def advance(
    tree: MomentTree, d: int, s: int, j: int, o: float, cj: int, co: float, e: float, goal: float = np.nan
) -> tuple[int, float, float, float, float, int]:
    """`reach` for any degree: position, E_d, the fit's values at its start and end, number of merges."""
    if d < 3:
        j, o, error, _, c0, c1, c2, merges = reach(tree, d, s, j, o, cj, co, e, goal)
        return j, o, error, c0 - c1 + c2, c0 + c1 + c2, merges
    return go_at(tree.go, tree, s, j, o, cj, co, e, goal)  # type: ignore[call-arg]  # numba gives the first


@arithmetic
def out_of_reach(tree: MomentTree, j: int, o: float, goal: float, e: float) -> bool:
    """Whether whole nodes of the tree's own space between position (j, o) and `goal` ticks to the right have
    a larger squared error than e, so no phase gets there. A walk with merges costs several times more."""
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


@arithmetic
def walk(
    tree: MomentTree, sj: Ints, so: Floats, degree: Ints, n: int, share: Floats, e: float, s: int, pj: Ints,
    po: Floats, error: Floats,
) -> tuple[int, bool, float, float, float, float, int]:  # fmt: skip
    """Algorithm K with given degrees: each phase as long as its tolerance allows, the last one to the end.

    ``s`` is 1 from the left, -1 from the right. Breakpoints go to ``pj, po[0..n]`` and squared errors to
    ``error[0..n-1]``, in order of time; from the left only the first m are written. Returns the number of
    phases m, whether the whole curve was covered, the last phase's error, the largest and the least error
    (each divided by its share), how fast the last error falls with e, and the number of merges.
    """
    stops = sj.size - 1
    q = 1 if s > 0 else stops - 1
    i = 0 if s > 0 else n
    j, o = sj[stops - stops * (1 + s) // 2], so[stops - stops * (1 + s) // 2]
    pj[i], po[i] = j, o
    level = tree.level
    worst, least, tau = 0.0, np.inf, 0.0
    # d breakpoint / d e = (share + (p - h)² at its phase's start · d start / d e) / (p - h)² at its end.
    move, fall = 0.0, 0.0
    merges = 0
    used = 0
    covered = False
    while used < n and not covered:
        p = used if s > 0 else n - 1 - used
        d = degree[p]
        final = used == n - 1 and q == (stops if s > 0 else 0)
        allowed = np.inf if final else e * share[d]
        here = level[beside(s, j, o)] - tree.reference
        j, o, tau, first, last, more = advance(tree, d, s, j, o, sj[q], so[q], allowed)
        merges += more
        error[p] = tau
        fall = (first - here) ** 2 * move / share[d]
        tau /= share[d]
        worst = max(worst, tau)
        least = min(least, tau)
        used += 1
        i += s
        pj[i], po[i] = j, o
        if j == sj[q] and o == so[q]:
            covered = q == (stops if s > 0 else 0)
            q += s
            move = 0.0
        else:
            there = last + tree.reference - level[beside(s, j, o)]
            move = share[d] * (1 + fall) / (there * there) if there != 0 else np.inf
    return used, covered, tau, worst, least, fall, merges


@arithmetic
def narrow(
    tree: MomentTree, sj: Ints, so: Floats, degree: Ints, n: int, share: Floats, low: float, high: float,
    shrink: float, tries: Floats, width: float, stop: Bytes, pj: Ints, po: Floats, error: Floats, count: Ints,
) -> tuple[float, float]:  # fmt: skip
    """Algorithm M with given degrees: a bracket (low, high] of e*(n), relative `width`, `high` feasible.

    Every partition into n phases bounds e* from both sides (least error <= e* <= largest error), so an
    evaluation moves both ends. Newton's method for (last error) = e, and bisection of log e after a step that
    did not halve the bracket: the slope holds only in the steps in which the breakpoints lie, and the last
    error jumps with e so often that some fits are bisected to the end. Regula falsi needed more evaluations
    in measurements. ``tries`` are tolerances to begin with, ``shrink`` the part of `high` to try after them.
    """
    if n == sj.size - 1:  # every phase lies between two stops
        _, _, _, high, _, _, merges = walk(tree, sj, so, degree, n, share, np.inf, 1, pj, po, error)
        count[1] += merges
        return high, high
    attempt = 0
    guess = 0.0
    slow = False
    while high > low * (1 + width) and stop[0] == 0:
        before = (high - low) / low if low > 0 else np.inf
        if attempt < tries.size and low < tries[attempt] < high:
            e = tries[attempt]
        elif low == 0:
            e = high * shrink
            shrink = shrink**3
            if shrink < 1e-200:
                break
        elif not slow and low < guess < high:
            e = guess
        else:
            e = low * np.sqrt(high / low)
        attempt += 1
        m, covered, tau, worst, least, fall, merges = walk(
            tree, sj, so, degree, n, share, e, 1, pj, po, error
        )
        count[0] += 1
        count[1] += merges
        if covered:
            high = min(high, max(worst, low))
        if not covered or tau > e:
            low = max(low, e)
        elif m == n:
            low = max(low, min(least, high))
        guess = e + (tau - e) / (1 + fall) if covered and m == n else 0.0
        slow = high - low > 0.5 * before * low
    return low, high


@arithmetic
def set_out(
    tree: MomentTree, e: float, j: int, o: float, tj: int, to: float, walks: Floats, count: Ints
) -> tuple[int, float]:
    """Begin the walks of all three degrees from (j, o) towards the stop (tj, to), as far as they are common.

    Row d of `walks` is an unfinished walk: boundary (when finished, index), offset, width, c0, c1, c2, E_d,
    and the depth to go on with, -1 when finished. A quadratic's moments contain those of lower degrees, which
    get no further with their smaller shares of the tolerance: one climb serves all.
    """
    b, w, c0, last, tail = begin(tree, 1, j, o, tj, to)
    depth, c1, c2, error = 0, 0.0, 0.0, 0.0
    for d in range(3):
        if last < b:
            keep(walks[d], tj, to, w, c0, 0.0, 0.0, 0.0, -1)
            continue
        b, depth, w, c0, c1, c2, error, merges = climb(
            tree, 2, d, 1, b, depth, w, c0, c1, c2, error, last, e * part(tree, d)
        )
        count[1] += merges
        own1, own2 = c1 if d > 0 else 0.0, c2 if d > 1 else 0.0
        keep(walks[d], b, 0.0, w, c0, own1, own2, lower(2, d, w, c1, c2, error), depth)
    return last, tail


@arithmetic
def go_on(
    tree: MomentTree, e: float, d: int, last: int, tail: float, tj: int, to: float, goal: float,
    walks: Floats, count: Ints,
) -> float:  # fmt: skip
    """Finish the walk of degree d, or stop once it is known whether it exceeds `goal`; its width."""
    walk = walks[d]
    if walk[7] >= 0:
        j, o, w, c0, c1, c2, error, depth, merges = descend(
            tree, d, 1, int(walk[0]), int(walk[7]), walk[2], walk[3], walk[4], walk[5], walk[6],
            last, tail, tj, to, e * part(tree, d), goal,
        )  # fmt: skip
        count[1] += merges
        keep(walk, j, o, w, c0, c1, c2, error, depth)
    return float(walk[2])


@inlined
def keep(
    walk: Floats, j: int, o: float, w: float, c0: float, c1: float, c2: float, error: float, depth: int
) -> None:
    """Store the state of a walk in `walk` (8,): position, width, coefficients, error, depth to go on with."""
    walk[0], walk[1], walk[2], walk[3] = j, o, w, c0
    walk[4], walk[5], walk[6], walk[7] = c1, c2, error, depth


@arithmetic
def heuristic(
    tree: MomentTree, sj: Ints, so: Floats, n: int, e: float, aj: Ints, ao: Floats, walks: Floats,
    degree: Ints, pj: Ints, po: Floats, error: Floats, count: Ints,
) -> int:  # fmt: skip
    """The paper's mixed model for a tolerance (section 5.1); the number of phases, or 0 if n do not suffice.

    ``aj, ao[i]`` is a position that breakpoint i must reach, else the remaining phases cannot suffice
    (`laggard`). ``walks`` (3, 8) is work space for the walks of the three degrees.

    The paper takes a quadratic longer than 2 constants and 4/3 linears, else a linear longer than 3/2
    constants: the degree that gets furthest for its part of the tolerance. The one in `degree`, from the
    previous tolerance, is followed to its end first, the others only as far as the choice needs.

    The paper's rule for the end of the curve is applied at every stop. In the case it leaves open (the
    quadratic reaches the end but is rejected, the linear does not reach it), linear and constant are compared
    by their lengths, as elsewhere.
    """
    j, o = sj[0], so[0]
    pj[0], po[0] = j, o
    q = 1
    for i in range(n):
        tj, to = sj[q], so[q]
        last, tail = set_out(tree, e, j, o, tj, to, walks, count)
        far = gap(tree.edges, j, o, tj, to)
        best = degree[i]
        w = go_on(tree, e, best, last, tail, tj, to, np.nan, walks, count)
        for d in range(3):
            if d == best:
                continue
            goal = w * (part(tree, d) / part(tree, best))
            # A quadratic is followed until it is known whether it reaches the stop.
            limit = goal if d < 2 or goal < far else np.nan
            rival = go_on(tree, e, d, last, tail, tj, to, limit, walks, count)
            if rival > goal if d > best else w <= rival * (part(tree, best) / part(tree, d)):
                best = d
                w = go_on(tree, e, d, last, tail, tj, to, np.nan, walks, count)
        whole = False
        if walks[2, 0] == tj and walks[2, 1] == to:
            eq = walks[2, 6]
            el = eq + walks[2, 2] * walks[2, 5] ** 2 / 5
            ec = el + walks[2, 2] * walks[2, 4] ** 2 / 3
            if eq < 0.5 * ec and eq < 0.75 * el:
                best = 2
            elif el <= 0.75 * e:
                best = 1 if el < 2 / 3 * ec else 0
                whole = best == 1 or ec <= 0.5 * e
            elif best == 2:
                goal = 1.5 * go_on(tree, e, 0, last, tail, tj, to, np.nan, walks, count)
                best = 1 if go_on(tree, e, 1, last, tail, tj, to, goal, walks, count) > goal else 0
        if whole:
            j, o, error[i] = tj, to, el if best == 1 else ec
        else:
            go_on(tree, e, best, last, tail, tj, to, np.nan, walks, count)
            j, o, error[i] = int(walks[best, 0]), walks[best, 1], walks[best, 6]
        degree[i] = best
        pj[i + 1], po[i + 1] = j, o
        if j == tj and o == to:
            q += 1
            if q == sj.size:
                count[0] += 1
                return i + 1
        # Too few phases left: fewer than intervals between stops, or than quadratics alone need.
        if n - i - 1 < sj.size - q or gap(tree.edges, aj[i + 1], ao[i + 1], j, o) < 0:
            break
    count[0] += 1
    return 0


@kernel
def laggard(
    tree: MomentTree, sj: Ints, so: Floats, n: int, e: float, degree: Ints, aj: Ints, ao: Floats, count: Ints
) -> None:
    """The leftmost positions of the breakpoints of n mixed phases at tolerances up to `e`.

    No phase reaches further than in `furthest`, so these are its breakpoints from the right. `e` must exceed
    the tolerances by more than rounding.
    """
    aj[:], ao[:] = sj[0], so[0]
    furthest(tree, sj, so, n, e, -1, degree, aj, ao, count)


@arithmetic
def furthest(
    tree: MomentTree, sj: Ints, so: Floats, n: int, e: float, s: int, degree: Ints, pj: Ints, po: Floats,
    count: Ints,
) -> int:  # fmt: skip
    """Each phase as long as any degree of the mixed model allows: the number of phases, 0 if n are too few.

    That is a quadratic, as lower degrees have smaller shares of the tolerance, or the tree's own functions.
    The one chosen at the previous tolerance (`degree`) is followed to its end first, the other only as far as
    the choice needs. ``s`` as for `walk`.
    """
    stops = sj.size - 1
    q = 1 if s > 0 else stops - 1
    i = 0 if s > 0 else n
    j, o = sj[stops - stops * (1 + s) // 2], so[stops - stops * (1 + s) // 2]
    pj[i], po[i] = j, o
    count[0] += 1
    for used in range(n):
        p = used if s > 0 else n - 1 - used
        best = degree[p] if degree[p] > 2 else 2
        bj, bo, _, _, _, more = advance(tree, best, s, j, o, sj[q], so[q], e * part(tree, best))
        count[1] += more
        other = 2 if best > 2 else tree.space
        if other > 0:
            goal = s * gap(tree.edges, j, o, bj, bo)
            nj, no, _, _, _, more = advance(tree, other, s, j, o, sj[q], so[q], e * part(tree, other), goal)
            count[1] += more
            if s * gap(tree.edges, bj, bo, nj, no) > 0:
                best = other
                bj, bo, _, _, _, more = advance(tree, other, s, j, o, sj[q], so[q], e * part(tree, other))
                count[1] += more
        j, o, degree[p] = bj, bo, best
        i += s
        pj[i], po[i] = j, o
        if j == sj[q] and o == so[q]:
            if q == (stops if s > 0 else 0):
                return used + 1
            q += s
    return 0


@arithmetic
def with_space(
    tree: MomentTree, sj: Ints, so: Floats, n: int, e: float, aj: Ints, ao: Floats, degree: Ints, pj: Ints,
    po: Floats, error: Floats, count: Ints,
) -> int:  # fmt: skip
    """The mixed model with the tree's own functions, for a tolerance: number of phases, 0 if n are too few.

    Each phase has the degree that gets furthest for its price with its share of the tolerance, the last one
    the cheapest that reaches the end. ``aj, ao`` and `degree` as for `heuristic`.
    """
    j, o = sj[0], so[0]
    pj[0], po[0] = j, o
    q = 1
    count[0] += 1
    for i in range(n - 1):
        best = degree[i]
        bj, bo, error[i], _, _, more = advance(tree, best, 1, j, o, sj[q], so[q], e * part(tree, best))
        count[1] += more
        for k in range(4):
            d = k if k < 3 else tree.space
            if d == best:
                continue
            goal = gap(tree.edges, j, o, bj, bo) * (price(tree, d) / price(tree, best))
            if d > 2 and out_of_reach(tree, j, o, goal, e * part(tree, d)):
                continue
            nj, no, _, _, _, more = advance(tree, d, 1, j, o, sj[q], so[q], e * part(tree, d), goal)
            count[1] += more
            far = gap(tree.edges, j, o, nj, no)
            if far > goal or (far == goal and d < best):
                best = d
                bj, bo, error[i], _, _, more = advance(tree, d, 1, j, o, sj[q], so[q], e * part(tree, d))
                count[1] += more
        j, o, degree[i] = bj, bo, best
        pj[i + 1], po[i + 1] = j, o
        if j == sj[q] and o == so[q]:
            q += 1
            if q == sj.size:
                return i + 1
        # Too few phases left: fewer than intervals between stops, or than `furthest` needs.
        if n - i - 1 < sj.size - q or gap(tree.edges, aj[i + 1], ao[i + 1], j, o) < 0:
            return 0
    pj[n], po[n] = sj[q], so[q]
    for k in range(4 if q == sj.size - 1 else 0):
        d = k if k < 3 else tree.space
        _, _, error[n - 1], _, _, more = advance(tree, d, 1, j, o, sj[q], so[q], np.inf)
        count[1] += more
        if error[n - 1] <= e * part(tree, d):
            degree[n - 1] = d
            return n
    return 0


@arithmetic
def least_with_space(
    tree: MomentTree, sj: Ints, so: Floats, n: int, high: float, stop: Bytes, degree: Ints, pj: Ints,
    po: Floats, count: Ints,
) -> float:  # fmt: skip
    """A lower bound, tight to a relative `_LEAST`, of the tolerances for which n phases suffice with some
    choice of degrees; `high` is one of these."""
    low = 0.0
    while high > max(low * (1 + _LEAST), _TINY) and stop[0] == 0:
        e = high / 2 if low == 0 else low * np.sqrt(high / low)
        if furthest(tree, sj, so, n, e, 1, degree, pj, po, count) > 0:
            high = e
        else:
            low = e
    return low


@arithmetic
def mixed(
    tree: MomentTree, sj: Ints, so: Floats, n: int, e: float, aj: Ints, ao: Floats, walks: Floats,
    degree: Ints, pj: Ints, po: Floats, error: Floats, count: Ints,
) -> int:  # fmt: skip
    """The mixed model for a tolerance, with or without the tree's own functions."""
    if tree.space > 0:
        return with_space(tree, sj, so, n, e, aj, ao, degree, pj, po, error, count)
    return heuristic(tree, sj, so, n, e, aj, ao, walks, degree, pj, po, error, count)


@kernel
def scan(
    tree: MomentTree, sj: Ints, so: Floats, n: int, least: float, stop: Bytes, degree: Ints, pj: Ints,
    po: Floats, error: Floats, count: Ints,
) -> tuple[int, float]:  # fmt: skip
    """The first good tolerance of the heuristic above `least`, refined: the number of phases, and e.

    Good tolerances are no interval, so this is a geometric scan of 401 tolerances up to four times the least
    epsilon, continued if none is good, then a bisection between the first good one and the one before it.
    """
    aj, ao = np.empty(n + 1, np.int64), np.empty(n + 1)
    walks = np.empty((3, 8))
    back = np.zeros(n, np.int64)
    bad = least
    good = least
    # Squares of tiny heights may underflow to 0, which no factor increases.
    base = max(least, _TINY)
    ceiling = 0.0
    i = 0
    m = 0
    while m == 0 and stop[0] == 0:
        bad = max(good, base)
        good = base * np.exp(i * np.log(16.0) / _SCAN) if i > 0 else least
        i += 1
        if good >= ceiling:
            ceiling = base * np.exp((i + _AHEAD) * np.log(16.0) / _SCAN)
            laggard(tree, sj, so, n, ceiling, back, aj, ao, count)
        m = mixed(tree, sj, so, n, good, aj, ao, walks, degree, pj, po, error, count)
    while good > bad * (1 + _NARROW) and stop[0] == 0:
        e = bad * np.sqrt(good / bad)
        if mixed(tree, sj, so, n, e, aj, ao, walks, degree, pj, po, error, count) > 0:
            good = e
        else:
            bad = e
    m = mixed(tree, sj, so, n, good, aj, ao, walks, degree, pj, po, error, count)
    return m, good


@kernel
def cover_with_budget(
    tree: MomentTree, sj: Ints, so: Floats, n: int, e: float, degree: Ints, rj: Ints, ro: Floats, rq: Ints,
    degree_at: Ints, count: Ints,
) -> int:  # fmt: skip
    """Cover the curve with phases of degree d costing price_d parameters, n in all, each with E_d <= e.

    A phase that starts further right ends no further left, so the furthest position for b parameters is
    R[b] = max(R[b-1], max over d of reach_d(R[b - price_d])). Returns the number of phases, their degrees in
    `degree`, or 0 when n parameters do not suffice; of equal reaches the simplest is kept.
    """
    rj[0], ro[0], rq[0], degree_at[0] = sj[0], so[0], 1, -1
    for b in range(1, n + 1):
        first = degree_at[b]
        rj[b], ro[b], rq[b], degree_at[b] = rj[b - 1], ro[b - 1], rq[b - 1], -1
        for k in range(-1, 4):
            # The degree of the previous tolerance comes first; the others are followed only until it is known
            # which gets further.
            d = first if k < 0 else (k if k < 3 else tree.space)
            if d < 0 or (k >= 0 and d == first) or (k == 3 and d == 0):
                continue
            p = b - price(tree, d)
            # One parameter less reaches the same position, so this was tried with it.
            if p < 0 or (p > 0 and degree_at[p] < 0):
                continue
            q = rq[p]
            goal = gap(tree.edges, rj[p], ro[p], rj[b], ro[b])
            j, o, _, _, _, more = advance(tree, d, 1, rj[p], ro[p], sj[q], so[q], e, goal)
            count[1] += more
            whole = j == sj[q] and o == so[q]
            if not whole and gap(tree.edges, rj[p], ro[p], j, o) >= goal * (1 - 1e-12):
                j, o, _, _, _, more = advance(tree, d, 1, rj[p], ro[p], sj[q], so[q], e)
                count[1] += more
            # From one to the other: their distances from a far start may be rounded to the same.
            beyond = gap(tree.edges, rj[b], ro[b], j, o)
            if beyond > 0 or (beyond == 0 and d < degree_at[b]):
                rj[b], ro[b], degree_at[b] = j, o, d
                rq[b] = q + 1 if j == sj[q] and o == so[q] else q
        if rq[b] == sj.size:
            n = b
            break
    count[0] += 1
    if rq[n] < sj.size:
        return 0
    m = 0
    b = n
    while b > 0:
        d = degree_at[b]
        if d >= 0:
            degree[m] = d
            m += 1
        b -= price(tree, d) if d >= 0 else 1
    degree[:m] = degree[:m][::-1].copy()
    return m


@kernel
def tolerance_for_budget(
    tree: MomentTree, sj: Ints, so: Floats, n: int, share: Floats, high: float, tries: Floats, stop: Bytes,
    degree: Ints, rj: Ints, ro: Floats, rq: Ints, degree_at: Ints, error: Floats, count: Ints,
) -> tuple[float, float]:  # fmt: skip
    """The least tolerance for which n parameters suffice, as a bracket (low, high] of the width `_NARROW`.

    With fixed degrees the tolerance is lowered at much less cost (`narrow`), so that is done first; then a
    lower tolerance needs other degrees.
    """
    degree_at[:] = -1
    room = np.empty(1)
    low, width = 0.0, _COARSE
    # Begin with constants alone where there are enough of them.
    m = n // 2
    degree[:] = 0
    if m < sj.size - 1:
        m = cover_with_budget(tree, sj, so, n, high, degree, rj, ro, rq, degree_at, count)
    shrink = (1.0 / n) ** 2
    attempt = again = 0
    while high > low * (1 + _NARROW) and stop[0] == 0:
        if attempt < tries.size and low < tries[attempt] < high:
            e = tries[attempt]
        else:
            room[0] = high * (1 - width)
            _, top = narrow(
                tree, sj, so, degree, m, share, low, high, shrink, room, width, stop, rj, ro, error, count
            )
            high = min(high, top)
            e = high * (1 - width / 2)
            if again > 2 and low > 0:
                e = min(e, low * np.sqrt(high / low))
        attempt += 1
        phases = cover_with_budget(tree, sj, so, n, e, degree, rj, ro, rq, degree_at, count)
        if phases > 0:
            high, m, again = e, phases, again + 1
            shrink = 1 / 16
        else:
            low, again = e, 0
            width = max(width * width, _NARROW)
    return low, high


@kernel
def settle(
    tree: MomentTree, sj: Ints, so: Floats, degree: Ints, m: int, share: Floats, e: float, mix: bool,
    fj: Ints, fo: Floats, error: Floats, bj: Ints, bo: Floats, pj: Ints, po: Floats,
) -> int:  # fmt: skip
    """Choose among equally good partitions: ranges [b, f] of the breakpoints, and the mixture of least error.

    `f` are the breakpoints from the left (given), `b` those from the right at the same tolerance and degrees.
    Every f_1..f_s, b_{s+1}..b_{m-1} keeps all errors within e; the one with the least total squared error
    goes to `p`, ties to the larger s. Returns the number of merges.
    """
    back = np.empty(m)
    _, covered, _, worst, _, _, merges = walk(tree, sj, so, degree, m, share, e, -1, bj, bo, back)
    pj[: m + 1], po[: m + 1] = fj[: m + 1], fo[: m + 1]
    if not covered or worst > e * (1 + 1e-9):
        bj[: m + 1], bo[: m + 1] = fj[: m + 1], fo[: m + 1]
        return merges
    if mix:
        after = 0.0
        total = error[:m].sum()
        split = m - 1
        for s in range(m - 2, -1, -1):
            after += back[s + 1]
            if gap(tree.edges, fj[s], fo[s], bj[s + 1], bo[s + 1]) <= 0:
                continue
            _, _, middle, _, _, more = advance(tree, degree[s], 1, fj[s], fo[s], bj[s + 1], bo[s + 1], np.inf)
            merges += more
            mixture = error[:s].sum() + middle + after
            if middle <= e * share[degree[s]] * (1 + 1e-12) and mixture < total * (1 - _BETTER):
                total = mixture
                split = s
        for i in range(split + 1, m):
            pj[i], po[i] = bj[i], bo[i]
    for i in range(1, m):
        if gap(tree.edges, bj[i], bo[i], fj[i], fo[i]) < 0:
            bj[i], bo[i] = fj[i], fo[i]
    return merges


@kernel
def solve(
    tree: MomentTree, sj: Ints, so: Floats, model: int, first: int, last: int, tries: Floats, stop: Bytes,
    degree: Ints, j: Ints, o: Floats, count: Ints, bracket: Floats,
) -> bool:  # fmt: skip
    """Fit n = first..last phases (for `BUDGET` parameters), each bounding the next.

    Row r of the results belongs to n = first + r: ``degree[r, :m]``, positions ``j, o[r, 0..2, 0..m]`` of the
    breakpoints and of the lower and upper ends of their ranges, ``count[r]`` = (phases m, evaluations,
    merges) and ``bracket[r]`` = (low, high) of e. Returns False when stopped.
    """
    size = last + 1
    pj, po, error = np.empty(size, np.int64), np.empty(size), np.empty(size)
    rq, degree_at = np.empty(size, np.int64), np.empty(size, np.int64)
    share = np.ones(max(tree.space, 2) + 1)
    weights = share.copy()
    tally = np.zeros(2, np.int64)
    pure = model if model < 3 else (2 if model == MIXED else (model - 2 if model > BUDGET else 0))
    degrees = np.full(size, pure, np.int64)
    # One phase between successive stops needs the largest tolerance.
    stretches = sj.size - 1
    _, _, _, high, _, _, more = walk(tree, sj, so, degrees, stretches, share, np.inf, 1, pj, po, error)
    tally[0], tally[1] = 1, more
    if model == MIXED:
        for d in range(share.size):
            weights[d] = part(tree, d)
    for n in range(first, last + 1):
        row = n - first
        if model == BUDGET:
            low, high = tolerance_for_budget(
                tree, sj, so, n, share, high, tries, stop, degree[row], pj, po, rq, degree_at, error, tally
            )
        else:
            # Just below epsilon of n-1 where that is known, else far below epsilon of one phase.
            shrink = 1.0 / n if n == first else (1 - 1.0 / n) ** 2
            low, high = narrow(
                tree, sj, so, degrees, n, share, 0.0, high, shrink, tries, _NARROW, stop, pj, po, error, tally
            )
        e = high
        m = 0
        nudge = 1e-15
        # The upper end is feasible; rounding may require a last unit or two more.
        while stop[0] == 0:
            if model == MIXED:
                if tree.space > 0:
                    low = least_with_space(tree, sj, so, n, high, stop, degree[row], pj, po, tally)
                m, e = scan(
                    tree, sj, so, n, low if low > 0 else high, stop, degree[row], pj, po, error, tally
                )
                break
            covered = True
            if model == BUDGET:
                m = cover_with_budget(tree, sj, so, n, e, degree[row], pj, po, rq, degree_at, tally)
            else:
                m = n
                degree[row, :n] = pure
            if m > 0:
                m, covered, tau, _, _, _, more = walk(
                    tree, sj, so, degree[row], m, share, e, 1, pj, po, error
                )
                tally[0] += 1
                tally[1] += more
                if covered and tau <= e:
                    break
            e = high * (1 + nudge)
            nudge *= 2
        if stop[0] != 0:
            return False
        tally[1] += settle(
            tree, sj, so, degree[row], m, weights, e, model != MIXED,
            pj, po, error, j[row, 1], o[row, 1], j[row, 0], o[row, 0],
        )  # fmt: skip
        j[row, 2, : m + 1], o[row, 2, : m + 1] = pj[: m + 1], po[: m + 1]
        count[row, 0], count[row, 1], count[row, 2] = m, tally[0], tally[1]
        bracket[row, 0], bracket[row, 1] = low, e
        tally[:] = 0
    return True


@arithmetic
def describe(tree: MomentTree, j: Ints, o: Floats, width: Floats, c: Floats, error: Floats) -> None:
    """Width (m,), Legendre coefficients (m, 3 or more) and E_0, E_1, E_2 of every interval from position
    (j, o)[i, 0] to (j, o)[i, 1]."""
    for i in range(j.shape[0]):
        _, _, e, w, c0, c1, c2, _ = reach(tree, 2, 1, j[i, 0], o[i, 0], j[i, 1], o[i, 1], np.inf)
        width[i] = w
        c[i, 0], c[i, 1], c[i, 2] = c0 + tree.reference, c1, c2
        e1 = e + w * c2 * c2 / 5
        error[i, 0], error[i, 1], error[i, 2] = e1 + w * c1 * c1 / 3, e1, e

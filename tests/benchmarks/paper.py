"""The paper's O(M) method compiled with numba, as the application's own kernels are, for a fair race.

P. H. Worley, ORNL/TM-11637 (1990), with its tolerances (0.01 for epsilon, 0.1 for a break). Two ways to do a
least-squares update: GIVENS rotates Newton-Cotes rows away as the paper does; MOMENTS merges the step's
Legendre moments into the phase's, which is far cheaper but still reads every step in every evaluation.
Curves are (edges, level) from 0 on. `score` judges anybody's partition on the exact curve.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

GIVENS, MOMENTS = 0, 1
XI1, XI2 = 0.01, 0.1
MACHEPS = 2.0**-52
# What a degree's squared error is multiplied by in the mixed heuristic; MIXED stands for "degree" there.
_WEIGHT = np.array([2.0, 4.0 / 3.0, 1.0])
MIXED = 3

_PLACE = np.array([[0.5, 0, 0, 0, 0], [0, 0.5, 1, 0, 0], [0, 0.25, 0.5, 0.75, 1]])
_SHARE = np.array(
    [[1.0, 0, 0, 0, 0], [1 / 6, 4 / 6, 1 / 6, 0, 0], [7 / 90, 32 / 90, 12 / 90, 32 / 90, 7 / 90]]
)

# A phase under way is 13 numbers: tau (squared error), then for GIVENS the triangle (9, row by row) and
# the right-hand side (3), for MOMENTS the width and three Legendre coefficients.
_STATE = 13

compiled = njit(nogil=True, cache=True)


@compiled
def update(way, k, p, start, a, b, height):
    """Enter the part [a, b] of a step of this height into phase `p`, which began at `start`."""
    if way == 1:
        _merge(k, p, b - a, height)
        return
    n = k + 1
    row = np.empty(3)
    for m in range(2 * k + 1):
        x = (a - start) + _PLACE[k, m] * (b - a)
        w = np.sqrt(_SHARE[k, m] * (b - a))
        rhs = w * height
        for i in range(n):
            row[i] = w
            w *= x
        for i in range(n):
            if row[i] != 0.0:
                diagonal = p[1 + 4 * i]
                length = np.sqrt(diagonal * diagonal + row[i] * row[i])
                cos = diagonal / length
                sin = row[i] / length
                for j in range(i, n):
                    r = p[1 + 3 * i + j]
                    p[1 + 3 * i + j] = cos * r + sin * row[j]
                    row[j] = cos * row[j] - sin * r
                r = p[10 + i]
                p[10 + i] = cos * r + sin * rhs
                rhs = cos * rhs - sin * r
        p[0] += rhs * rhs


@compiled
def _merge(k, p, width, height):
    w = p[1] + width
    r, t = p[1] / w, width / w
    a0, a1, a2 = p[2], p[3], p[4]
    d = height - a0
    c1 = 3.0 * r * t * d + r * r * a1 if k > 0 else 0.0
    c2 = r * r * r * a2 + 5.0 * r * t * ((r - t) * d - r * a1) if k > 1 else 0.0
    u0, u1, u2 = t * (c1 - d - (t - r) * c2), a1 - r * c1 + 3.0 * r * t * c2, a2 - r * r * c2
    v0, v1, v2 = r * (d - c1 - (r - t) * c2), -t * c1 - 3.0 * r * t * c2, -t * t * c2
    p[0] += p[1] * (u0 * u0 + u1 * u1 / 3.0 + u2 * u2 / 5.0) + width * (
        v0 * v0 + v1 * v1 / 3.0 + v2 * v2 / 5.0
    )
    p[1], p[2], p[3], p[4] = w, a0 + t * d, c1, c2


@compiled
def zeroin_begin(s, a, fa, b, fb, tolerance):
    """Brent's zeroin with the function outside: s holds a, fa, b, fb, c, fc, d, e, tolerance."""
    s[0], s[1], s[2], s[3], s[4], s[5] = a, fa, b, fb, a, fa
    s[6] = s[7] = b - a
    s[8] = tolerance


@compiled
def zeroin_ask(s):
    """True if f is wanted at s[2]; False when s[2] is the answer."""
    if abs(s[5]) < abs(s[3]):
        s[0], s[2], s[4] = s[2], s[4], s[2]
        s[1], s[3], s[5] = s[3], s[5], s[3]
    a, fa, b, fb, c, fc = s[0], s[1], s[2], s[3], s[4], s[5]
    tol = 2.0 * MACHEPS * abs(b) + 0.5 * s[8]
    m = 0.5 * (c - b)
    if abs(m) <= tol or fb == 0.0:
        return False
    d = e = m
    if abs(s[7]) >= tol and abs(fa) > abs(fb):
        t = fb / fa
        if a == c:
            p, q = 2.0 * m * t, 1.0 - t
        else:
            q, r = fa / fc, fb / fc
            p = t * (2.0 * m * q * (q - r) - (b - a) * (r - 1.0))
            q = (q - 1.0) * (r - 1.0) * (t - 1.0)
        q, p = (-q, p) if p > 0.0 else (q, -p)
        if 2.0 * p < 3.0 * m * q - abs(tol * q) and p < abs(0.5 * s[7] * q):
            e = s[6]
            d = p / q
    s[0], s[1], s[6], s[7] = b, fb, d, e
    s[2] = b + (d if abs(d) > tol else (tol if m > 0 else -tol))
    return True


@compiled
def zeroin_tell(s, fb):
    s[3] = fb
    if (fb > 0.0) == (s[5] > 0.0):
        s[4], s[5] = s[0], s[1]
        s[6] = s[7] = s[2] - s[0]


@compiled
def step_b(way, edges, level, k, start, j, tolerance, last, p, count):
    """Figure 2: from `start` in step j. Returns (x_i, its step); p[0] is the squared error."""
    end = level.size
    p[:] = 0.0
    update(way, k, p, start, start, edges[j + 1], level[j])
    count[k] += 1
    before = np.empty(_STATE)
    s = np.empty(9)
    while True:
        j += 1
        if j == end:
            return edges[end], end
        before[:] = p
        a, b = edges[j], edges[j + 1]
        update(way, k, p, start, a, b, level[j])
        count[k] += 1
        if p[0] < tolerance or last:
            continue
        if k == 0:
            mean = before[2] if way == 1 else before[10] / before[1]
            room, width = tolerance - before[0], a - start
            x = min(b, a + room * width / (width * (level[j] - mean) ** 2 - room))
            p[:] = before
            update(way, k, p, start, a, x, level[j])
        else:
            zeroin_begin(s, a, before[0] - tolerance, b, p[0] - tolerance, XI2)
            while zeroin_ask(s):
                p[:] = before
                update(way, k, p, start, a, s[2], level[j])
                count[k] += 1
                zeroin_tell(s, p[0] - tolerance)
            x = s[2]
            p[:] = before
            if x > a:
                update(way, k, p, start, a, x, level[j])
        return x, (j if x < b else j + 1)


@compiled
def algorithm_k(way, edges, level, k, n, epsilon, breaks, degrees, count):
    """Algorithm K, for k = MIXED with section 5.1 as its step b. Returns (m, tau); tau weighted if mixed."""
    end = level.size
    p = np.empty(_STATE)
    x, j, m, tau = 0.0, 0, 0, 0.0
    breaks[0] = 0.0
    while j < end:
        last = m == n - 1
        if k < MIXED:
            x, j = step_b(way, edges, level, k, x, j, epsilon * epsilon, last, p, count)
            degrees[m] = k
            tau = np.sqrt(p[0])
        else:
            x, j, d, tau = _mixed(way, edges, level, x, j, epsilon * epsilon, last, p, count)
            degrees[m] = d
        m += 1
        breaks[m] = x
    return m, tau


@compiled
def _mixed(way, edges, level, x, j, tolerance, last, p, count):
    end = level.size
    xs, js, es = np.empty(3), np.empty(3, np.int64), np.empty(3)
    for d in range(3):
        xs[d], js[d] = step_b(way, edges, level, d, x, j, tolerance / _WEIGHT[d], last, p, count)
        es[d] = p[0]
    line = xs[1] - x > 1.5 * (xs[0] - x)
    if js[2] < end:
        quadratic = xs[2] - x > 2.0 * (xs[0] - x) and xs[2] - x > 4.0 * (xs[1] - x) / 3.0
    else:
        whole = es.copy()
        for d in range(2):
            if js[d] < end:
                step_b(way, edges, level, d, x, j, 0.0, True, p, count)
                whole[d] = p[0]
        quadratic = whole[2] < whole[0] / 2.0 and whole[2] < 0.75 * whole[1]
        if js[1] == end:
            line = whole[1] < 2.0 * whole[0] / 3.0
    d = 2 if quadratic else 1 if line else 0
    return xs[d], js[d], d, np.sqrt(_WEIGHT[d] * es[d])


@compiled
def _algorithm_m(way, edges, level, k, n, upper, breaks, degrees, count):
    """The zero of f between 0 and `upper`. Returns (epsilon, phases, evaluations)."""
    m, tau = algorithm_k(way, edges, level, k, n, upper, breaks, degrees, count)
    evaluations = 1
    s = np.empty(9)
    zeroin_begin(s, 0.0, -float(n), upper, (n - m + 1) - tau / upper, XI1)
    while zeroin_ask(s):
        m, tau = algorithm_k(way, edges, level, k, n, s[2], breaks, degrees, count)
        evaluations += 1
        zeroin_tell(s, (n - m + 1) - tau / s[2])
    m, tau = algorithm_k(way, edges, level, k, n, s[2], breaks, degrees, np.zeros(3, np.int64))
    return s[2], m, evaluations


@dataclass(frozen=True)
class Fit:
    """epsilon, breaks (m+1,), degrees (m,), evaluations of f, least-squares updates (mixed: quadratic's)."""

    epsilon: float
    breaks: NDArray[np.float64]
    degrees: NDArray[np.int64]
    evaluations: int
    updates: int


def fit(
    edges: NDArray[np.float64],
    level: NDArray[np.float64],
    k: int,
    n: int,
    upper: float = np.inf,
    way: int = GIVENS,
) -> Fit:
    """Algorithm M. `upper` is the epsilon of fewer phases; without it that of one phase is found first."""
    breaks, degrees, count = np.zeros(n + 1), np.zeros(n, np.int64), np.zeros(3, np.int64)
    asked = min(k, 2)
    if n == 1 or not np.isfinite(upper):
        _, epsilon = algorithm_k(way, edges, level, k, 1, np.inf, breaks, degrees, count)
        upper = epsilon
        if n == 1:
            return Fit(epsilon, breaks, degrees, 1, int(count[asked]))
    epsilon, m, evaluations = _algorithm_m(way, edges, level, k, n, upper, breaks, degrees, count)
    return Fit(epsilon, breaks[: m + 1], degrees[:m], evaluations, int(count[asked]))


def sequence(
    edges: NDArray[np.float64], level: NDArray[np.float64], k: int, n_max: int, way: int = GIVENS
) -> list[Fit]:
    """n = 1, 2, ..., each epsilon the upper end for the next, as the paper does."""
    fits: list[Fit] = []
    for n in range(1, n_max + 1):
        fits.append(fit(edges, level, k, n, fits[-1].epsilon if fits else np.inf, way))
    return fits


@compiled
def _score(edges, level, breaks, degrees):
    largest, total, j = 0.0, 0.0, 0
    p = np.empty(_STATE)
    for i in range(degrees.size):
        x = breaks[i]
        p[:] = 0.0
        while j < level.size and x < breaks[i + 1]:
            b = min(edges[j + 1], breaks[i + 1])
            if b > x:
                _merge(degrees[i], p, b - x, level[j])
            x = b
            if b == edges[j + 1]:
                j += 1
        largest = max(largest, p[0])
        total += p[0]
    return np.sqrt(largest), total


def score(
    edges: NDArray[np.float64],
    level: NDArray[np.float64],
    breaks: NDArray[np.float64],
    degrees: NDArray[np.int64],
) -> tuple[float, float]:
    """Largest local L2 error and total squared error of the best polynomials on this partition."""
    return _score(edges, level, np.ascontiguousarray(breaks, np.float64), np.asarray(degrees, np.int64))

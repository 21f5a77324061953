"""The paper's own method, transcribed literally, and exact arithmetic by which any method can be judged.

P. H. Worley, "Modeling Histogram Data with Piecewise Polynomials", ORNL/TM-11637 (1990): Givens rotations on
Newton-Cotes rows (section 3.2), step b of Algorithm K (Figure 2), Algorithm M (section 3.3), the mixed
heuristic (section 5.1), and R. P. Brent's ``zeroin`` (Algorithms for Minimization without Derivatives,
1973, chapter 4). Plain Python throughout; nothing is taken from the application that is tested with it.

`Exact` holds the same step function in whole numbers: its squared errors are rational numbers without any
rounding, and its breakpoints are rounded to a stated side, so that what it says of a tolerance is a proof.
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

MACHEPS = 2.0**-52

# Sample places and weights on [0, 1]: 2k+1 equally spaced samples integrate degree 2k exactly.
NEWTON_COTES: tuple[tuple[tuple[float, float], ...], ...] = (
    ((0.5, 1.0),),
    ((0.0, 1 / 6), (0.5, 4 / 6), (1.0, 1 / 6)),
    ((0.0, 7 / 90), (0.25, 32 / 90), (0.5, 12 / 90), (0.75, 32 / 90), (1.0, 7 / 90)),
)

#: What the squared error of a constant, linear, quadratic phase is multiplied by (section 5.1).
MIXED_WEIGHT = (Fraction(2), Fraction(4, 3), Fraction(1))
#: Parameters of a constant, linear, quadratic phase as the paper counts them, its start included.
PARAMETERS = (2, 3, 4)


def zeroin(f: Callable[[float], float], a: float, b: float, tolerance: float) -> float:
    """Brent's zero of `f` between `a` and `b`, to within ``2 macheps |x| + tolerance / 2``.

    Bisection, the secant or inverse quadratic interpolation, whichever is safe. f(a) and f(b) differ in sign.
    """
    fa, fb = f(a), f(b)
    c, fc = a, fa
    d = e = b - a
    while True:
        if abs(fc) < abs(fb):
            a, b, c = b, c, b
            fa, fb, fc = fb, fc, fb
        tol = 2.0 * MACHEPS * abs(b) + 0.5 * tolerance
        m = 0.5 * (c - b)
        if abs(m) <= tol or fb == 0.0:
            return b
        if abs(e) < tol or abs(fa) <= abs(fb):
            d = e = m
        else:
            s = fb / fa
            if a == c:
                p, q = 2.0 * m * s, 1.0 - s
            else:
                q, r = fa / fc, fb / fc
                p = s * (2.0 * m * q * (q - r) - (b - a) * (r - 1.0))
                q = (q - 1.0) * (r - 1.0) * (s - 1.0)
            if p > 0.0:
                q = -q
            else:
                p = -p
            s, e = e, d
            if 2.0 * p < 3.0 * m * q - abs(tol * q) and p < abs(0.5 * s * q):
                d = p / q
            else:
                d = e = m
        a, fa = b, fb
        b += d if abs(d) > tol else math.copysign(tol, m)
        fb = f(b)
        if (fb > 0.0) == (fc > 0.0):
            c, fc = a, fa
            d = e = b - a


class Rows:
    """The triangle and right-hand side left by Givens rotations, and the squared error tau (section 3.2).

    The unknowns are the coefficients of ``(x - start)**l``.
    """

    def __init__(self, degree: int, start: float) -> None:
        self.degree, self.start, self.tau = degree, start, 0.0
        self.r = [[0.0] * (degree + 1) for _ in range(degree + 1)]
        self.b = [0.0] * (degree + 1)

    def copy(self) -> Rows:
        other = Rows(self.degree, self.start)
        other.tau, other.r, other.b = self.tau, [row[:] for row in self.r], self.b[:]
        return other

    def add(self, a: float, b: float, height: float) -> None:
        """One least-squares update: the rows of ``[a, b]`` are entered and rotated away."""
        n = self.degree + 1
        for place, weight in NEWTON_COTES[self.degree]:
            x = (a - self.start) + place * (b - a)
            w = math.sqrt(weight * (b - a))
            row, rhs = [w * x**power for power in range(n)], w * height
            for i in range(n):
                if row[i] == 0.0:
                    continue
                length = math.hypot(self.r[i][i], row[i])
                cos, sin = self.r[i][i] / length, row[i] / length
                for j in range(i, n):
                    self.r[i][j], row[j] = (
                        cos * self.r[i][j] + sin * row[j],
                        cos * row[j] - sin * self.r[i][j],
                    )
                self.b[i], rhs = cos * self.b[i] + sin * rhs, cos * rhs - sin * self.b[i]
            self.tau += rhs * rhs

    def coefficients(self) -> list[float]:
        """Back substitution; ascending powers of ``x - start``. A step already gives full rank."""
        n = self.degree + 1
        alpha = [0.0] * n
        for i in reversed(range(n)):
            alpha[i] = (self.b[i] - sum(self.r[i][j] * alpha[j] for j in range(i + 1, n))) / self.r[i][i]
        return alpha


@dataclass
class Histogram:
    """The ordered pairs ``(z_j, eta_j)`` and the end T, which is ``edges[-1]``; `edges` begin at 0."""

    edges: Sequence[float]
    level: Sequence[float]
    updates: int = 0  # least-squares updates so far

    @property
    def end(self) -> float:
        return self.edges[-1]

    def step_b(self, start: float, j: int, degree: int, tolerance: float, last: bool, xi2: float):
        """Figure 2. Returns (x_i, the step it lies in, squared error, rows); step == M when T is reached."""
        rows = Rows(degree, start)
        self._enter(rows, start, self.edges[j + 1], j)  # i
        while True:
            j += 1  # ii
            if self.edges[j] == self.end:  # iii
                return self.end, j, rows.tau, rows
            before = rows.copy()
            self._enter(rows, self.edges[j], self.edges[j + 1], j)  # iv
            if rows.tau >= tolerance and not last:  # v
                x, rows = self._inside(before, j, tolerance, xi2)  # vi
                return x, (j if x < self.edges[j + 1] else j + 1), rows.tau, rows

    def _inside(self, before: Rows, j: int, tolerance: float, xi2: float) -> tuple[float, Rows]:
        a, b, height = self.edges[j], self.edges[j + 1], self.level[j]
        if before.degree == 0:  # "an analytic expression for this value exists" (section 4.1.1)
            width, mean = a - before.start, before.b[0] / before.r[0][0]
            room = tolerance - before.tau
            x = min(b, a + room * width / (width * (height - mean) ** 2 - room))
            rows = before.copy()
            rows.add(a, x, height)
            return x, rows

        def excess(x: float) -> float:
            tried = before.copy()
            if x > a:
                self._enter(tried, a, x, j)
            return tried.tau - tolerance

        x = zeroin(excess, a, b, xi2)
        rows = before.copy()
        if x > a:
            rows.add(a, x, height)
        return x, rows

    def _enter(self, rows: Rows, a: float, b: float, j: int) -> None:
        self.updates += 1
        rows.add(a, b, self.level[j])


@dataclass
class Model:
    """A partition and what it cost. `errors` are L2 norms, `coefficients` powers of ``x - breaks[i]``."""

    epsilon: float
    breaks: list[float]
    degrees: list[int]
    errors: list[float]
    coefficients: list[list[float]] = field(default_factory=list)
    evaluations: int = 0
    updates: int = 0


def algorithm_k(h: Histogram, degree: int, n: int, epsilon: float, xi2: float = 0.1) -> Model:
    """Algorithm K (Figure 1): each phase as long as `epsilon` allows, the n-th to T whatever its error."""
    model = Model(epsilon, [0.0], [], [])
    j = 0
    while j < len(h.level):
        last = len(model.errors) == n - 1
        x, j, tau, rows = h.step_b(model.breaks[-1], j, degree, epsilon**2, last, xi2)
        model.breaks.append(x)
        model.degrees.append(degree)
        model.errors.append(math.sqrt(tau))
        model.coefficients.append(rows.coefficients())
    return model


def algorithm_m(
    h: Histogram, degree: int, n: int, xi1: float = 0.01, xi2: float = 0.1, upper: float | None = None
) -> Model:
    """Algorithm M: the zero of f (its equation 5). `upper`: the optimum of fewer phases, if known."""
    h.updates = 0
    if n == 1:
        one = algorithm_k(h, degree, 1, math.inf)
        one.epsilon, one.evaluations, one.updates = one.errors[0], 1, h.updates
        return one
    if upper is None:
        upper = algorithm_k(h, degree, 1, math.inf).errors[0]
    tried: dict[float, Model] = {}

    def f(epsilon: float) -> float:
        if epsilon == 0.0:
            return -float(n)
        tried[epsilon] = model = algorithm_k(h, degree, n, epsilon, xi2)
        return (n - len(model.errors) + 1) - model.errors[-1] / epsilon

    best = tried[zeroin(f, 0.0, upper, xi1)]
    best.evaluations, best.updates = len(tried), h.updates
    return best


def mixed_choice(
    reach: Sequence[Any],
    end: Any,
    error: Callable[[int], Any],
    start: Any,
    over: Callable[[Any, Any], bool] = operator.gt,
) -> int:
    """The degree that section 5.1 takes for a phase from `start`; `over(a, b)`: whether a > b.

    reach: how far constant, linear, quadratic get within eps^2/2, 3 eps^2/4, eps^2; error(d): the squared
    error of degree d on ``[start, end]``, asked only when the quadratic reaches the end.
    """
    c, linear, q = reach
    linear_longer = over(2 * (linear - start), 3 * (c - start))
    if q < end:
        if over(q - start, 2 * (c - start)) and over(3 * (q - start), 4 * (linear - start)):
            return 2
        return 1 if linear_longer else 0
    if over(error(0), 2 * error(2)) and over(3 * error(1), 4 * error(2)):
        return 2
    if linear == end:
        return 1 if over(2 * error(0), 3 * error(1)) else 0
    # The paper is silent where the quadratic is turned down at T and the line does not get there.
    return 1 if linear_longer else 0


def mixed_k(h: Histogram, n: int, epsilon: float, xi2: float = 0.1) -> Model | None:
    """The mixed heuristic at one tolerance; None when n phases do not reach T. `errors` are weighted."""
    model = Model(epsilon, [0.0], [], [])
    j = 0
    while j < len(h.level):
        if len(model.errors) == n:
            return None
        start = model.breaks[-1]
        tried = [h.step_b(start, j, d, epsilon**2 / float(MIXED_WEIGHT[d]), False, xi2) for d in range(3)]
        whole = [t[2] for t in tried]
        if tried[2][0] == h.end:
            whole = [
                t[2] if t[0] == h.end else h.step_b(start, j, d, math.inf, True, xi2)[2]
                for d, t in enumerate(tried)
            ]
        d = mixed_choice([t[0] for t in tried], h.end, whole.__getitem__, start)
        x, j, tau, rows = tried[d]
        model.breaks.append(x)
        model.degrees.append(d)
        model.errors.append(math.sqrt(float(MIXED_WEIGHT[d]) * tau))
        model.coefficients.append(rows.coefficients())
    return model


class Exact:
    """A step function in whole numbers.

    Times are integers on a grid of 2**-60 of the finest binary digit among the edges, counted from the
    first edge; heights are integers too. A squared error is a ratio of integers.
    """

    def __init__(self, edges: Sequence[float], level: Sequence[float]) -> None:
        times = [Fraction(float(t)) for t in edges]
        heights = [Fraction(float(v)) for v in level]
        self.tick = Fraction(1, max(t.denominator for t in times) << 60)
        self.lift = Fraction(1, max(v.denominator for v in heights))
        self.origin = times[0]
        self.z = [int((t - times[0]) / self.tick) for t in times]
        self.h = [int(v / self.lift) for v in heights]
        self.end = self.z[-1]
        sums = [(0, 0, 0, 0)]
        for a, b, v in zip(self.z[:-1], self.z[1:], self.h, strict=True):
            p = sums[-1]
            sums.append(
                (
                    p[0] + v * (b - a),
                    p[1] + v * (b * b - a * a),
                    p[2] + v * (b**3 - a**3),
                    p[3] + v * v * (b - a),
                )
            )
        self._sums = sums

    def place(self, time: float) -> int:
        """The grid point nearest to a time in the unit of the edges, kept within the curve."""
        return min(max(round((Fraction(float(time)) - self.origin) / self.tick), 0), self.end)

    def time(self, x: int) -> float:
        return float(self.origin + x * self.tick)

    def squared(self, a: int, b: int, degree: int) -> Fraction:
        """E_k(a, b), the least squared L2 error of a polynomial of this degree, without any rounding."""
        if a == b:
            return Fraction(0)
        top, bottom = self._ratio(a, b, degree)
        return Fraction(top, bottom) * self.tick * self.lift**2

    def errors(self, breaks: Sequence[int], degrees: Sequence[int]) -> list[float]:
        """The L2 errors of the phases."""
        pairs = zip(breaks, breaks[1:], degrees, strict=False)
        return [math.sqrt(self.squared(a, b, d)) for a, b, d in pairs]

    def _upto(self, x: int) -> tuple[int, int, int, int]:
        j = min(bisect_right(self.z, x) - 1, len(self.h) - 1)
        p, v, a = self._sums[j], self.h[j], self.z[j]
        return (
            p[0] + v * (x - a),
            p[1] + v * (x * x - a * a),
            p[2] + v * (x**3 - a**3),
            p[3] + v * v * (x - a),
        )

    def _ratio(self, a: int, b: int, degree: int) -> tuple[int, int]:
        """E as (numerator, denominator): the square of h less its parts along the Legendre polynomials."""
        low, high = self._upto(a), self._upto(b)
        m0, f1, f2, s = (q - p for p, q in zip(low, high, strict=True))
        w = b - a
        if degree == 0:
            return s * w - m0 * m0, w
        m1 = f1 - 2 * a * m0  # twice the first moment about a
        one = m1 - m0 * w
        if degree == 1:
            return s * w**3 - (m0 * w) ** 2 - 3 * one * one, w**3
        m2 = f2 - 3 * a * f1 + 3 * a * a * m0  # three times the second moment about a
        two = 2 * m2 - 3 * m1 * w + m0 * w * w
        return s * w**5 - (m0 * w * w) ** 2 - 3 * (one * w) ** 2 - 5 * two * two, w**5

    def reach(self, start: int, degree: int, squared: Fraction, *, over: bool = False, end: int = -1) -> int:
        """The largest grid point x <= end with E_k(start, x) <= squared; the next one if `over`."""
        end = self.end if end < 0 else end
        allowed = squared / (self.tick * self.lift**2)
        p, q = allowed.numerator, allowed.denominator

        def excess(x: int) -> int:
            top, bottom = self._ratio(start, x, degree)
            return top * q - p * bottom

        if excess(end) <= 0:
            return end
        lo = bisect_right(self.z, start)  # the rest of the first step always fits
        hi = len(self.z) - 1
        while hi - lo > 1:
            mid = (lo + hi) // 2
            lo, hi = (mid, hi) if self.z[mid] < end and excess(self.z[mid]) <= 0 else (lo, mid)
        a, b = self.z[lo], min(self.z[hi], end)
        for halve in _rhythm():
            if b - a <= 1:
                break
            fa, fb = excess(a), excess(b)
            if fa == 0 or halve:
                x = (a + b) // 2
            else:
                # Both ends get a share of the secant's guess, so that the bracket closes from both sides.
                da, db = (a - start) ** (2 * degree + 1), (b - start) ** (2 * degree + 1)
                x = a + (b - a) * (-fa * db) // (fb * da - fa * db)
                x = min(max(x, a + 1), b - 1)
                if excess(x) <= 0:
                    a, x = x, min(x + max(1, (b - x) >> 24), b - 1)
                else:
                    b, x = x, max(x - max(1, (x - a) >> 24), a + 1)
                if b - a <= 1:
                    break
                x = min(max(x, a + 1), b - 1)
            a, b = (x, b) if excess(x) <= 0 else (a, x)
        return b if over else a

    def phases_needed(
        self,
        degree: int,
        epsilon: float | Fraction,
        limit: int,
        *,
        over: bool = False,
        start: int = 0,
        end: int = -1,
    ) -> int | None:
        """Phases that Algorithm K needs from `start` to `end`; None if more than `limit`."""
        end = self.end if end < 0 else end
        squared = Fraction(epsilon) ** 2
        for used in range(1, limit + 1):
            start = self.reach(start, degree, squared, over=over, end=end)
            if start >= end:
                return used
        return None

    def certifies(self, epsilon: float, degree: int, n: int, relative: float) -> bool:
        """Whether the best epsilon lies within `relative` of this one, proved from both sides."""
        low = Fraction(epsilon) * (1 - Fraction(relative))
        high = Fraction(epsilon) * (1 + Fraction(relative))
        enough = self.phases_needed(degree, high, n) is not None
        return enough and self.phases_needed(degree, low, n, over=True) is None

    def best(self, feasible: Callable[[float], bool], upper: float, relative: float = 1e-11) -> float:
        """The least feasible tolerance by bisection; feasible tolerances form an interval up to `upper`."""
        if upper == 0.0 or feasible(0.0):
            return 0.0
        lower = upper
        while feasible(lower):
            upper, lower = lower, lower / 4
        while upper > lower * (1 + relative):
            middle = math.sqrt(lower * upper)
            lower, upper = (lower, middle) if feasible(middle) else (middle, upper)
        return upper

    def optimum(self, degree: int, n: int, start: int = 0, end: int = -1) -> float:
        """eps*_k(n) on ``[start, end]`` by bisection, to 1e-11."""
        end = self.end if end < 0 else end
        whole = math.sqrt(self.squared(start, end, degree)) * (1 + 1e-12)
        return self.best(lambda e: self.phases_needed(degree, e, n, start=start, end=end) is not None, whole)

    def budget_by_force(self, budget: int) -> float:
        """The least largest error over every sequence of degrees whose parameters stay within `budget`."""
        whole = math.sqrt(self.squared(0, self.end, 0)) * (1 + 1e-12)

        def covers(degrees: Sequence[int], epsilon: float) -> bool:
            x, squared = 0, Fraction(epsilon) ** 2
            for d in degrees:
                x = self.reach(x, d, squared)
                if x == self.end:
                    return True
            return False

        best = whole
        for degrees in _sequences(budget):
            if covers(degrees, best):
                best = min(best, self.best(partial(covers, degrees), best))
        return best

    def mixed(
        self, n: int, epsilon: float, over: Callable[[Any, Any], bool] = operator.gt
    ) -> tuple[list[int], list[int]] | None:
        """The mixed heuristic (section 5.1) at one tolerance: breaks and degrees, or None if n do not do."""
        breaks: list[int] = [0]
        degrees: list[int] = []
        while breaks[-1] < self.end:
            if len(degrees) == n:
                return None
            a = breaks[-1]
            ends = [self.reach(a, d, Fraction(epsilon) ** 2 / MIXED_WEIGHT[d]) for d in range(3)]
            d = mixed_choice(ends, self.end, partial(self.squared, a, self.end), a, over)
            breaks.append(ends[d])
            degrees.append(d)
        return breaks, degrees

    def mixed_by_any(
        self, n: int, epsilon: float, rounding: Fraction, most: int = 64
    ) -> Iterator[tuple[list[int], list[int]] | None]:
        """`mixed` with each comparison of numbers that are the same but for `rounding`, as a part of them,
        falling either way; at most so many of the ways."""
        waiting: list[list[bool]] = [[]]
        for _ in range(most):
            if not waiting:
                return
            said = waiting.pop()
            given = len(said)
            asked = iter(said[:])

            def over(a: Any, b: Any, said: list[bool] = said, asked: Iterator[bool] = asked) -> bool:
                if abs(a - b) > rounding * max(abs(a), abs(b)):
                    return bool(a > b)
                answer = next(asked, None)
                if answer is None:
                    said.append(answer := bool(a > b))
                return answer

            yield self.mixed(n, epsilon, over)
            waiting += [[*said[:k], not said[k]] for k in range(given, len(said))]


def _rhythm() -> Iterator[bool]:
    """Three guesses, then one halving, for ever."""
    while True:
        yield from (False, False, False, True)


def _sequences(budget: int) -> Iterator[tuple[int, ...]]:
    """Every sequence of degrees that spends the budget as far as it can be spent."""
    if budget < min(PARAMETERS):
        yield ()
    for d, cost in enumerate(PARAMETERS):
        if cost <= budget:
            yield from ((d, *rest) for rest in _sequences(budget - cost))

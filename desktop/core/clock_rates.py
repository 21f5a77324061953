"""Clocks that run at different rates: a correction for each process that is linear in time.

An event at tick u after the begin of process s that cannot be later than one at tick v after the begin of r
bounds both lines: ``d_s(u) - d_r(v) <= w``. For each ordered pair and each part of the run only the tightest
bound is kept, so the linear programme is small; violations are then counted over all events, and if there
are any, the tightest bounds are selected again with the correction applied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from desktop.core.arrays import Floats, Ints
from desktop.core.clock_kernels import common
from desktop.core.clock_line import MOST_DRIFT
from desktop.core.clock_repair import Held
from desktop.core.jit import kernel

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST = 256  # largest number of processes, as every pair has its bounds
PARTS = 16  # of the run
SURE = 24  # largest number of processes for which intervals of the lines are computed
_SWEEPS = 2000
_ROUNDS = 60
_FAR = 0.1  # of a correction: largest distance from the nearest lines to ones that satisfy all rows
_ENOUGH = 1500  # rows from which intervals are computed
_ROOT = 3.0**0.5


@dataclass(frozen=True, eq=False)
class Lines:
    """Corrections at the begin of each process and `span` ticks later, `start` and `end` (n,) ticks."""

    start: Floats
    end: Floats


class Tightest(NamedTuple):
    """The tightest bound of each ordered pair and part of the run: `slack` (n, n, parts), and its ticks since
    the begins, `when` (n, n, parts, 2); first ticks, length of the run, and the correction with which bounds
    are compared."""

    slack: Floats
    when: Ints
    origin: Ints
    span: int
    shift: Ints
    drift: Floats


class LineBounds:
    """The tightest bounds between n processes with first ticks `origin` (n,), in each part of the run; span:
    ticks of the longest process."""

    def __init__(self, origin: Ints, span: int) -> None:
        self.origin, self.span = origin, max(span, 1)
        n = origin.size
        slack, when = np.full((n, n, PARTS), np.inf), np.zeros((n, n, PARTS, 2), np.int64)
        self._tightest = Tightest(slack, when, origin, self.span, np.zeros(n, np.int64), np.zeros(n))
        self._rows = [np.empty((0, 4), np.int64)]

    def add_messages(self, sender: Ints, receiver: Ints, sent: Ints, received: Ints) -> None:
        tighten(self._tightest, sender, receiver, sent, received)

    def add_collectives(self, held: Held) -> None:
        tighten_by_collectives(self._tightest, held)

    def again(self, shift: Ints, drift: Floats) -> None:
        """Keep the bounds so far, and collect those that are tightest with these corrections."""
        self._rows = [self.rows()]
        self._tightest = self._tightest._replace(shift=shift, drift=drift)
        self._tightest.slack[:] = np.inf

    def rows(self) -> Ints:
        """(m, 4): s, r, and the ticks u and v since their begins."""
        s, r, k = np.nonzero(np.isfinite(self._tightest.slack))
        new = np.column_stack([s, r, self._tightest.when[s, r, k]])
        return np.unique(np.concatenate([*self._rows, new]), axis=0)

    def solve(self, *others: LineBounds) -> Lines | None:
        """The smallest correction lines that satisfy these and other bounds; None if there are none."""
        posed = self._problem(*others)
        if posed is None:
            return None
        problem, rough = posed
        inner = problem.widest()
        if inner is None:
            return None
        n = rough.size
        shifts = problem.nearest(rough, inner)
        if shifts is None:
            return None
        start, end = shifts[:n] + rough, shifts[n:] + rough
        return Lines(start, end) if np.abs(end - start).max() <= MOST_DRIFT * self.span else None

    def moved(self, *others: LineBounds) -> float:
        """Ticks by which the smallest lines that satisfy these and other bounds move the processes apart, as
        the root mean square over processes and run; too small where the bounds leave almost no freedom."""
        posed = self._problem(*others)
        if posed is None:
            return 0.0
        problem, rough = posed
        level, slope = problem.projected(rough).T
        return float(np.sqrt((level + rough).var() + slope.var()))

    def off(self, lines: Lines, *others: LineBounds) -> Floats:
        """(n,) the largest possible error of each line relative to the first, by these and other bounds;
        infinite where that is not known."""
        n = self.origin.size
        posed = self._problem(*others)
        if posed is None or n > SURE:
            return np.full(n, np.inf)
        problem, rough = posed
        x = np.concatenate([lines.start - rough, lines.end - rough])
        return problem.intervals(x, MOST_DRIFT * self.span)

    def _problem(self, *others: LineBounds) -> tuple[_Problem, Floats] | None:
        rows = np.unique(np.concatenate([one.rows() for one in (self, *others)]), axis=0)
        if not len(rows):
            return None
        n = self.origin.size
        s, r, u, v = rows.T
        w = (v + self.origin[r] - u - self.origin[s]).astype(np.float64)
        rough = _rough(n, s, r, w)
        w -= rough[s] - rough[r] + 1.0  # ticks are rounded
        return _Problem(n, s, r, u / self.span, v / self.span, w), rough


def _rough(n: int, s: Ints, r: Ints, w: Floats) -> Floats:
    """Approximate shifts (n,), so that the problem has no small differences of large numbers."""
    tight = np.full((n, n), np.inf)
    np.minimum.at(tight, (s, r), w)
    shift, solved = np.zeros(n), np.zeros(n, bool)
    for root in range(n):
        if solved[root]:
            continue
        solved[root] = True
        queue = [root]
        while queue:
            a = queue.pop()
            for b in np.flatnonzero(~solved & (np.isfinite(tight[a]) | np.isfinite(tight[:, a]))).tolist():
                forth, back = tight[a, b], tight[b, a]
                between = (
                    (forth - back) / 2
                    if np.isfinite(forth) and np.isfinite(back)
                    else (forth if np.isfinite(forth) else -back)
                )
                shift[b], solved[b] = shift[a] - between, True
                queue.append(b)
    return np.rint(shift)


class _Problem:
    """Rows p_s (1 - a) + q_s a - p_r (1 - b) - q_r b <= w; p and q (n,) are a line's values at begin and
    end."""

    def __init__(self, n: int, s: Ints, r: Ints, a: Floats, b: Floats, w: Floats) -> None:
        self.n, self.s, self.r, self.a, self.b, self.w = n, s, r, a, b, w

    def slack(self, x: Floats) -> Floats:
        p, q = x[: self.n], x[self.n :]
        a, b, s, r = self.a, self.b, self.s, self.r
        return self.w - (p[s] * (1 - a) + q[s] * a - p[r] * (1 - b) - q[r] * b)

    def _matrix(self, rows: Ints, margin: bool) -> csr_array:
        from scipy.sparse import coo_array

        n, k = self.n, rows.size
        i = np.arange(k)
        a, b, s, r = self.a[rows], self.b[rows], self.s[rows], self.r[rows]
        at = [(i, s, 1 - a), (i, n + s, a), (i, r, b - 1), (i, n + r, -b)]
        if margin:
            at.append((i, np.full(k, 2 * n), np.ones(k)))
        row, column, value = (np.concatenate(part) for part in zip(*at, strict=True))
        return coo_array((value, (row, column)), shape=(k, 2 * n + margin)).tocsr()

    def widest(self) -> Floats | None:
        """The lines with the largest minimum slack; None if that is negative."""
        from scipy.optimize import linprog

        n = self.n
        most = float(np.abs(self.w).max()) + 1.0
        active = self._tightest(self.w)
        goal = np.zeros(2 * n + 1)
        goal[-1] = -1.0
        limits = [(0.0, 0.0) if i in (0, n) else (-4 * most, 4 * most) for i in range(2 * n)]
        limits.append((-most, most))
        for _ in range(_ROUNDS):
            solution = linprog(
                goal, self._matrix(active, True), self.w[active], bounds=limits, method="highs"
            )
            if solution.x is None:
                return None
            x, margin = solution.x[:-1], float(solution.x[-1])
            if margin < 0:
                return None  # more rows leave no more
            slack = self.slack(x)
            if slack.min() >= 0.5 * margin:
                break
            active = np.union1d(active, self._tightest(slack))
        inner: Floats = x
        return inner if slack.min() >= 0 else None

    def _tightest(self, slack: Floats, parts: int = 2) -> Ints:
        """Indices of the rows with the least slack of each pair in each of `parts` parts of the run."""
        part = np.clip((self.a * parts).astype(np.int64), 0, parts - 1)
        group = (self.s * self.n + self.r) * parts + part
        order = np.lexsort((slack, group))
        first = np.r_[True, np.diff(group[order]) != 0]
        return order[first]

    def projected(self, rough: Floats) -> Floats:
        """Level and slope (n, 2) of the lines nearest to -rough that satisfy all rows approximately."""
        constant = np.stack([-rough, np.zeros(self.n)], axis=1)
        pull = np.zeros(self.s.size)
        order = np.argsort(self.slack(np.concatenate([-rough, -rough])), kind="stable")
        columns = (np.ascontiguousarray(x[order]) for x in (self.s, self.r, self.a, self.b, self.w))
        project_lines(constant, pull, *columns, _SWEEPS)
        return constant

    def nearest(self, rough: Floats, inner: Floats) -> Floats | None:
        """The lines nearest to -rough in the mean square over processes and time, moved towards `inner` until
        they satisfy all rows; None if that is a long way, as the nearest were not found then."""
        level, slope = self.projected(rough).T
        x = np.concatenate([level - _ROOT * slope, level + _ROOT * slope])
        missing, spare = -self.slack(x), self.slack(inner)
        wrong = missing > 0
        share = float((missing[wrong] / (missing[wrong] + spare[wrong])).max()) if wrong.any() else 0.0
        move = share * (inner - x)
        distance = np.abs(x + np.concatenate([rough, rough])).max()
        return x + move if np.abs(move).max() <= _FAR * distance else None

    def intervals(self, x: Floats, alike: float) -> Floats:
        """(n,) largest possible error of each line relative to the first, at begin or end."""
        from scipy.optimize import linprog

        n = self.n
        pairs = np.unique(self.s * n + self.r).size
        rows = self._tightest(self.slack(x), int(np.clip(_ENOUGH // pairs, 2, PARTS)))
        matrix, w = self._matrix(rows, False), self.w[rows] + 1.0
        # A common rate of all clocks is no error, but has to be limited, as bounds are not quite invariant.
        limits: list[tuple[float | None, float | None]] = [(None, None)] * (2 * n)
        limits[0], limits[n] = (0.0, 0.0), (-alike, alike)
        off = np.zeros(n)
        for i in range(1, n):
            for at, zero in ((i, 0), (n + i, n)):
                goal = np.zeros(2 * n)
                for sign in (1.0, -1.0):
                    goal[at], goal[zero] = sign, -sign
                    solution = linprog(goal, matrix, w, bounds=limits, method="highs")
                    far = sign * solution.fun if solution.status == 0 else np.inf
                    off[i] = max(off[i], abs(far - (x[at] - x[zero])))
        return off


@kernel
def tighten(tightest: Tightest, sender: Ints, receiver: Ints, sent: Ints, received: Ints) -> None:
    """Tighten the bounds by messages (n,)."""
    slack, when, origin, span, shift, drift = tightest
    parts = slack.shape[2]
    for i in range(sender.size):
        s, r = sender[i], receiver[i]
        if s != r:
            u = sent[i] - origin[s]
            k = min(max(u * parts // span, 0), parts - 1)
            left = np.float64(
                common(received[i], shift[r], drift[r], origin[r])
                - common(sent[i], shift[s], drift[s], origin[s])
            )
            if left < slack[s, r, k]:
                slack[s, r, k] = left
                when[s, r, k, 0] = u
                when[s, r, k, 1] = received[i] - origin[r]


@kernel
def tighten_by_collectives(tightest: Tightest, held: Held) -> None:
    slack, when, origin, span, shift, drift = tightest
    start, process, begin, end, source, target, ordered = held
    parts = slack.shape[2]
    for i in range(start.size - 1):
        for a in range(start[i], start[i + 1]):
            if not source[a]:
                continue
            s = process[a]
            u = begin[a] - origin[s]
            k = min(max(u * parts // span, 0), parts - 1)
            entered = common(begin[a], shift[s], drift[s], origin[s])
            for b in range(a + 1 if ordered[i] else start[i], start[i + 1]):
                r = process[b]
                if target[b] and r != s:
                    left = np.float64(common(end[b], shift[r], drift[r], origin[r]) - entered)
                    if left < slack[s, r, k]:
                        slack[s, r, k] = left
                        when[s, r, k, 0] = u
                        when[s, r, k, 1] = end[b] - origin[r]


@kernel
def project_lines(
    lines: Floats, pull: Floats, s: Ints, r: Ints, a: Floats, b: Floats, w: Floats, sweeps: int
) -> None:
    """Move `lines` (n, 2), level and slope in an orthonormal basis, to the nearest ones that satisfy all
    rows, by the method of `clock_repair.project`."""
    for _ in range(sweeps):
        most = 0.0
        for i in range(s.size):
            x, y = _ROOT * (2 * a[i] - 1), _ROOT * (2 * b[i] - 1)
            over = lines[s[i], 0] + x * lines[s[i], 1] - lines[r[i], 0] - y * lines[r[i], 1] - w[i]
            change = max(over / (2 + x * x + y * y), -pull[i])
            if change != 0.0:
                pull[i] += change
                lines[s[i], 0] -= change
                lines[s[i], 1] -= change * x
                lines[r[i], 0] += change
                lines[r[i], 1] += change * y
                most = max(most, abs(change))
        if most < 0.1:
            break

"""Matching of the phases of two runs by order and by shape.

Phases keep their order, and a phase may have no partner: the alignment of two sequences with gaps
(S. B. Needleman, C. D. Wunsch, J. Mol. Biol. 48, 1970), here of least cost

    sum over pairs of cost(i, j)  +  `GAP` for every phase without a partner,

    cost(i, j) = shape + size / 2

shape : the root mean square distance of the two fitted polynomials, scaled to equal length, each relative to
    its run's processors. With Legendre coefficients c of the phases divided by the capacities, this is
    sqrt(dc0² + dc1²/3 + dc2²/5): level, slope and curvature together, whatever the lengths. For phases of
    other functions (a period, a saturation) c are those of the curve's best parabola, as the position in the
    period at which a phase begins does not matter.
size : |x - y| / (x + y), averaged over the shares of the run's time and of its work; a phase with twice as
    large a share costs 1/3, whichever of the two it is.

Both are dimensionless, so that runs of different length or on different numbers of processors compare. A pair
is formed where it costs less than two gaps, that is less than 1/2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from desktop.core.arrays import Floats, Ints
from desktop.core.curve import StepCurve
from desktop.core.jit import kernel
from desktop.core.phases import PhaseFit, parabolas

#: Cost of a phase without a partner.
GAP = 0.25
#: The partner of a phase that has none.
NONE = -1

_SIZE = 0.5
_SQUARES = np.array([1.0, 1 / 3, 1 / 5])  # mean squares of the Legendre polynomials on [-1, 1]


@dataclass(frozen=True, eq=False)
class Shapes:
    """Features of n phases: `form` (n, 3), Legendre coefficients over the capacity; `time` and `work` (n,),
    shares of the run."""

    form: Floats
    time: Floats
    work: Floats

    @property
    def n(self) -> int:
        return self.time.size


def shapes(curve: StepCurve, fit: PhaseFit) -> Shapes:
    """The features of the phases of a fit of this curve."""
    work = np.abs(fit.coefficients[:, 0] * fit.duration)
    total = float(work.sum())
    form = fit.coefficients[:, :3]
    if (in_space := fit.degree > 2).any():
        form = np.where(in_space[:, None], parabolas(curve, fit), form)
    return Shapes(
        form / (abs(curve.capacity) or 1.0),
        fit.duration / float(fit.duration.sum()),
        work / total if total else work,
    )


def pair_costs(a: Shapes, b: Shapes) -> Floats:
    """(n_a, n_b) cost of pairing each phase of A with each of B."""
    apart = a.form[:, None, :] - b.form[None, :, :]
    unlike = _unlike(a.time, b.time) + _unlike(a.work, b.work)
    return np.asarray(np.sqrt(apart**2 @ _SQUARES) + _SIZE / 2 * unlike)


def _unlike(a: Floats, b: Floats) -> Floats:
    total = a[:, None] + b[None, :]
    return np.abs(a[:, None] - b[None, :]) / np.where(total > 0, total, 1.0)


@dataclass(frozen=True, eq=False)
class Matching:
    """Partners of the phases of A (n_a,) and of B (n_b,), `NONE` where there is none, and the total `cost`.

    `alike` (n_a,): similarity 1 - cost / (2 `GAP`) of each pair, from 1 (equal) to 0 (as costly as two gaps,
    or forced by hand); NaN without a partner.
    """

    of_a: Ints
    of_b: Ints
    cost: float
    alike: Floats


def match(a: Shapes, b: Shapes, fixed: Sequence[tuple[int, int]] = ()) -> Matching:
    """The alignment of least cost, in O(n_a n_b).

    Parameters
    ----------
    fixed : pairs (phase of A, phase of B), both from 0, that are formed at any cost; `NONE` for one of them:
        the other has no partner.

    Raises
    ------
    ValueError : a fixed pair names a phase that does not exist, or two of them contradict each other.
    """
    costs = pair_costs(a, b)
    bound = costs.copy()
    gap_a, gap_b = np.full(a.n, GAP), np.full(b.n, GAP)
    for i, j in fixed:
        _check(i, a.n, "first")
        _check(j, b.n, "second")
        if i != NONE and j != NONE:
            tied = bound[i, j]
            bound[i, :] = bound[:, j] = np.inf
            bound[i, j], gap_a[i], gap_b[j] = tied, np.inf, np.inf
        elif i != NONE:
            bound[i, :] = np.inf
        elif j != NONE:
            bound[:, j] = np.inf
    of_a, of_b = np.full(a.n, NONE, np.int64), np.full(b.n, NONE, np.int64)
    cost = _align(bound, gap_a, gap_b, of_a, of_b)
    if not np.isfinite(cost):
        raise ValueError("the pairs that were fixed by hand cross each other, remove one of them")
    paired = of_a != NONE
    alike = np.full(a.n, np.nan)
    alike[paired] = np.clip(1 - costs[paired, of_a[paired]] / (2 * GAP), 0.0, 1.0)
    return Matching(of_a, of_b, float(cost), alike)


def _check(phase: int, n: int, which: str) -> None:
    if phase != NONE and not 0 <= phase < n:
        raise ValueError(f"there is no phase {phase + 1} in the {which} run, it has {n}")


@kernel
def _align(costs: Floats, gap_a: Floats, gap_b: Floats, of_a: Ints, of_b: Ints) -> float:
    n, m = costs.shape
    total = np.full((n + 1, m + 1), np.inf)
    total[0, 0] = 0.0
    for i in range(n + 1):
        for j in range(m + 1):
            if i > 0 and j > 0:
                total[i, j] = total[i - 1, j - 1] + costs[i - 1, j - 1]
            if i > 0:
                total[i, j] = min(total[i, j], total[i - 1, j] + gap_a[i - 1])
            if j > 0:
                total[i, j] = min(total[i, j], total[i, j - 1] + gap_b[j - 1])
    if not np.isfinite(total[n, m]):
        return float(total[n, m])
    i, j = n, m
    while i > 0 or j > 0:
        # The same sums as above, so that equality is exact; of equal alternatives the pair.
        if i > 0 and j > 0 and total[i, j] == total[i - 1, j - 1] + costs[i - 1, j - 1]:
            i, j = i - 1, j - 1
            of_a[i], of_b[j] = j, i
        elif i > 0 and total[i, j] == total[i - 1, j] + gap_a[i - 1]:
            i -= 1
        else:
            j -= 1
    return float(total[n, m])

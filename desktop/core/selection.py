"""Which number of phases: a suggestion with its reason.

The 1990 report leaves the choice to the eye and names what to look at (section 1): how much the fit changes
when a phase is added, and which features are preserved. Both are measured here.

*How much the fit changes.* Where only noise is left, further phases share it out evenly: n epsilon(n)² stays,
epsilon falls like n^-1/2. So what a step from one n to the next gains beyond noise is
``log(epsilon(n-1) / epsilon(n)) - log(n / (n-1)) / 2``. The structure is complete at the n after which no
step gains as much any more: its *margin* is its own gain less the largest gain at any later n. This is the
largest-jump rule of slope heuristics (L. Birgé, P. Massart, *Minimal penalties for Gaussian model selection*,
2007) carried over to Worley's epsilon, with log epsilon for the contrast so that units do not matter.

Where no step stands out so, structure and noise fade into each other. The noise alone would leave
S(n) = n epsilon(n)² as it is; the n is taken at which S, drawn over n, lies furthest below the chord from its
first to its last point: what it removes of S is most beyond its share of n (V. Satopää et al., *Finding a
"Kneedle" in a Haystack*, ICDCSW 2011). If S hardly falls, there is nothing but noise and one phase is
enough. For ``budget`` the n in S is the number of constants that the parameters would buy.

*What is preserved.* Of the numbers whose margin comes near the largest, the one whose breaks survive best
into the next n is taken, then the largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from desktop.core.curve import StepCurve
from desktop.core.phases import PhaseFit, Sweep, extend, fit, least_n, sweep

#: Every n up to these is fitted before the first suggestion: phases, and parameters for ``budget``.
SWEEP, SWEEP_PARAMETERS = 20, 60
#: `search` ends at this n. Its cost grows with the square: 200 mixed phases of a million steps take a second.
LIMIT = 200
# Two breaks within this part of the curve's length are the same feature.
_TOLERANCE = 0.01
# A margin at least this part of the largest competes on the lasting of its breaks.
_NEAR = 0.7
# A margin (a difference of logarithms) below this is no reason.
_CLEAR = 0.15
# A fall of S by less than this part, or a knee shallower than this part of the fall, is what noise does.
_FALL = 0.05
_KNEE = 0.2


@dataclass(frozen=True)
class Suggestion:
    """A number of phases (parameters for ``budget``) and one plain sentence on why.

    `limit_reached`: the search had to end while it still paid, a larger number might have been found.
    """

    n: int
    reason: str
    limit_reached: bool = False


def search(
    curve: StepCurve,
    model: str,
    *,
    locked: Sequence[float] = (),
    to: int = 0,
    stop: NDArray[Any] | None = None,
) -> tuple[Sweep, Suggestion]:
    """Fit ever more phases while that pays, and say which number to take.

    The first numbers are those up to `SWEEP`. While the number they speak for lies in their upper half, so
    that little is known of what comes after it, twice as many are looked at, up to `LIMIT`; where nothing
    stands out, single larger numbers are tried whether something does there. So the suggestion does not
    depend on who looks how far, unless its `limit_reached` is true.

    Parameters
    ----------
    to : the sweep goes at least up to this n, and beyond `LIMIT` the search as well.
    locked, stop : as for `desktop.core.phases.fit`.

    Raises
    ------
    ValueError, Cancelled : as `desktop.core.phases.fit` does.
    """
    last = max(SWEEP_PARAMETERS if model == "budget" else SWEEP, least_n(model, locked))
    limit = max(LIMIT, last, to)
    found = sweep(curve, model, last, locked=locked, stop=stop)
    suggestion = suggest(found)
    while further := _further(curve, found, suggestion, limit, locked, stop):
        found = extend(curve, found, further, locked=locked, stop=stop)
        suggestion = suggest(found)
    if _at_the_end(found, suggestion):
        what = "parameters" if model == "budget" else "phases"
        end = int(found.n[-1])
        reason = f"{suggestion.reason}; the search ended at its limit of {end} {what}, more may be better"
        suggestion = replace(suggestion, reason=reason, limit_reached=True)
    return extend(curve, found, to, locked=locked, stop=stop), suggestion


def _at_the_end(found: Sweep, suggestion: Suggestion) -> bool:
    """Whether too little is known of what comes after the suggested number."""
    return bool(found.epsilon[-1] > 0 and 2 * suggestion.n > found.n[-1])


def _further(
    curve: StepCurve,
    found: Sweep,
    suggestion: Suggestion,
    limit: int,
    locked: Sequence[float],
    stop: NDArray[Any] | None,
) -> int:
    """Up to which n it pays to search on; 0: it does not."""
    last, epsilon = int(found.n[-1]), float(found.epsilon[-1])
    if last >= limit or epsilon == 0:
        return 0
    if _at_the_end(found, suggestion):
        return min(2 * last, limit)
    n = last
    while suggestion.n == found.n[0] and n < limit:
        n = min(2 * n, limit)
        there = fit(curve, n, found.model, locked=locked, bounds=(0.0, epsilon), stop=stop).epsilon
        if there < epsilon * np.sqrt(last / n) * np.exp(-_CLEAR):
            return n
    return 0


def suggest(sweep: Sweep) -> Suggestion:
    """The number of phases that the sweep speaks for; the rule is told at the top of this module."""
    unit = "parameter" if sweep.model == "budget" else "phase"
    exact = np.flatnonzero(sweep.epsilon == 0)
    if exact.size:
        k = int(sweep.n[exact[0]])
        return Suggestion(k, f"{_count(k, unit)} reproduce{'s' if k == 1 else ''} the curve exactly")
    # Only numbers that are better than every smaller one: more phases for the same error explain nothing.
    best_before = np.concatenate(([np.inf], np.minimum.accumulate(sweep.epsilon)[:-1]))
    rows = np.flatnonzero(sweep.epsilon < best_before * (1 - 1e-9))
    n = sweep.n[rows]
    if rows.size == 1:
        return Suggestion(int(n[0]), f"no larger number of {unit}s up to {int(sweep.n[-1])} lowers the error")
    gain = np.log(sweep.epsilon[rows[:-1]] / sweep.epsilon[rows[1:]]) - np.log(n[1:] / n[:-1]) / 2
    later = np.concatenate((np.maximum.accumulate(gain[::-1])[::-1][1:], [0.0]))
    margin = gain - later.clip(min=0)
    if margin.max() < _CLEAR:
        phases = n // 2 if sweep.model == "budget" else n
        return _gradual(n, phases * sweep.epsilon[rows] ** 2, unit)
    near = np.flatnonzero(margin >= _NEAR * margin.max()) + 1
    lasting = [_lasting(sweep, int(rows[i])) for i in near]
    i = int(near[-1 - int(np.argmax(lasting[::-1]))])
    return Suggestion(int(n[i]), _reason(sweep, int(rows[i]), int(rows[i - 1]), unit))


def _gradual(n: NDArray[np.int64], left: NDArray[np.float64], unit: str) -> Suggestion:
    """The knee of S(n) = `left`, or the first n if there is none."""
    fall = left[0] - left.min()
    if fall >= _FALL * left[0]:
        removed = (left[0] - left) / fall
        knee = removed - (n - n[0]) / (n[-1] - n[0])
        i = int(np.argmax(knee))
        if knee[i] >= _KNEE:
            k = int(n[i])
            return Suggestion(
                k,
                f"the error falls gradually; {_count(k, unit)} remove {100 * removed[i]:.0f} % of what "
                f"{int(n[-1])} can remove beyond sharing out the noise, each further one little",
            )
    return Suggestion(int(n[0]), f"no number of {unit}s stands out: the error falls evenly as for mere noise")


def _reason(sweep: Sweep, row: int, before: int, unit: str) -> str:
    """The drop to the suggested number, the drop after it, and what stays."""
    n, smaller = int(sweep.n[row]), int(sweep.n[before])
    drop = 100 * (1 - sweep.epsilon[row] / sweep.epsilon[before])
    reason = f"from {smaller} to {_count(n, unit)} the error falls by {drop:.0f} %"
    if row + 1 < sweep.n.size:
        # Over the same number of further phases, so that the two drops can be compared.
        after = min(row + n - smaller, sweep.n.size - 1)
        further = 100 * max(0.0, 1 - sweep.epsilon[row : after + 1].min() / sweep.epsilon[row])
        only = "only by another" if 2 * further < drop else "by another"
        reason += f", with {int(sweep.n[after])} {only} {further:.0f} %"
        inner = sweep.fits[row].n - 1
        stay = round(_lasting(sweep, row) * inner)
        if inner:
            reason += (
                f"; {stay} of its {inner} break{'s' if inner > 1 else ''} stay{'s' if stay == 1 else ''}"
            )
    return reason


def _lasting(sweep: Sweep, row: int) -> float:
    """Which part of a fit's inner breaks continues in the next fit; 1 when there is nothing to lose."""
    fit = sweep.fits[row]
    if fit.n == 1 or row + 1 == len(sweep.fits):
        return 1.0
    return _continued(fit, sweep.fits[row + 1]) / (fit.n - 1)


def _continued(old: PhaseFit, new: PhaseFit) -> int:
    """How many inner breaks of `old` go on in `new`: their ranges come near, each is the other's nearest."""
    if old.n == 1 or new.n == 1:
        return 0
    low, high, at = (x[1:-1, None] for x in (new.break_low, new.break_high, new.breaks))
    apart = np.maximum(low - old.break_high[1:-1], old.break_low[1:-1] - high).clip(min=0)
    # Where ranges overlap, the breaks themselves decide which is nearest; scaled, so as not to outweigh.
    score = apart + 1e-6 * np.abs(at - old.breaks[1:-1])
    nearest, rows = score.argmin(axis=1), np.arange(new.n - 1)
    mutual = score.argmin(axis=0)[nearest] == rows
    near = apart[rows, nearest] <= _TOLERANCE * float(new.breaks[-1] - new.breaks[0])
    return int(np.count_nonzero(mutual & near))


def _count(n: int, unit: str) -> str:
    return f"{n} {unit}{'s' if n != 1 else ''}"

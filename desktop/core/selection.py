"""The number of phases: a suggestion with its reason.

The 1990 report leaves the choice to the eye and names two criteria (section 1): how much the fit changes when
a phase is added, and which features are preserved. Both are measured here.

*How much the fit changes.* Where only noise is left, further phases divide it evenly: n epsilon(n)² is
constant, epsilon falls like n^-1/2. So the gain of a step from one n to the next beyond noise is
``log(epsilon(n-1) / epsilon(n)) - log(n / (n-1)) / 2``. The structure is complete at the n after which no
step gains as much: the *margin* of an n is its own gain minus the largest gain at any later n. This is the
largest-jump rule of slope heuristics (L. Birgé, P. Massart, *Minimal penalties for Gaussian model selection*,
2007) applied to Worley's epsilon, with log epsilon for the contrast so that units do not matter.

Where no step has a clear margin, structure and noise are not separated. Noise alone would leave
S(n) = n epsilon(n)² constant; the n is taken at which S over n lies furthest below the chord from its first
to its last point, so that it removes most of S beyond its share of n (V. Satopää et al., *Finding a
"Kneedle" in a Haystack*, ICDCSW 2011). If S hardly falls, there is only noise and one phase is enough. For
``budget`` the n in S is the number of constant phases that the parameters would pay for.

*What is preserved.* Of the numbers with a margin near the largest, the one is taken of whose breakpoints the
largest share continues in the next n; of equal ones the largest number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from desktop.core.arrays import Bytes, Floats, Ints
from desktop.core.choice import MOST, Breakpoint, choose, not_shared
from desktop.core.curve import StepCurve
from desktop.core.labels import MIXING
from desktop.core.landmarks import NEAR, Landmark, Landmarks
from desktop.core.phases import AS_SUGGESTED, PhaseFit, Sweep, extend, fit, fit_breakpoints, least_n, sweep
from desktop.core.quantity import PROCESSORS
from desktop.core.spaces import Basis

#: Every n up to this is fitted before the first suggestion: phases, or parameters for ``budget``.
SWEEP, SWEEP_PARAMETERS = 20, 60
#: Limit of `search`. The cost grows with its square: 200 mixed phases of a million steps take a second.
LIMIT = 200
# Two breakpoints within this part of the curve's length are the same feature.
_TOLERANCE = 0.01
# Numbers with at least this part of the largest margin are compared by how many breakpoints continue.
_RIVAL = 0.7
# A margin (a difference of logarithms) below this is not clear.
_CLEAR = 0.15
# A fall of S by less than this part, or a knee shallower than this part of the fall, may be noise.
_FALL = 0.05
_KNEE = 0.2


@dataclass(frozen=True)
class Suggestion:
    """A number of phases (parameters for ``budget``) with its reason in one sentence.

    `limit_reached`: the search ended at its limit although larger numbers might be better. `runner_up`: the
    next best number and why it is not better, None if there is none. `breakpoints`: inner ones chosen by
    curve and structure together; None: those of the best fit of `n` phases. `others`: those of the runner-up.
    """

    n: int
    reason: str
    limit_reached: bool = False
    runner_up: tuple[int, str] | None = None
    breakpoints: tuple[Breakpoint, ...] | None = None
    others: tuple[Breakpoint, ...] = ()

    def called(self, names: Mapping[str, str]) -> Suggestion:
        """With other names of regions in its sentences."""

        def renamed(text: str) -> str:
            for one in (*(self.breakpoints or ()), *self.others):
                if one.event is not None:
                    text = text.replace(one.event.text, one.event.called(names))
            return text

        second = self.runner_up and (self.runner_up[0], renamed(self.runner_up[1]))
        return replace(self, reason=renamed(self.reason), runner_up=second)

    def times(self, curve: StepCurve) -> tuple[float, ...] | None:
        """(phases + 1,) the curve's start, the chosen breakpoints, its end, in seconds; None without."""
        return None if self.breakpoints is None else _times(curve, self.breakpoints)

    def fit(self, curve: StepCurve, sweep: Sweep) -> PhaseFit:
        """The suggested phases; `sweep`: the sweep that `search` returned with the suggestion."""
        breakpoints = self.times(curve)
        if breakpoints is None:
            return sweep.fit(self.n)
        fitted = fit_breakpoints(curve, breakpoints, sweep.model, basis=sweep.fits[0].basis)
        return replace(fitted, note=AS_SUGGESTED)


def search(
    curve: StepCurve,
    model: str,
    *,
    locked: Sequence[float] = (),
    to: int = 0,
    stop: Bytes | None = None,
    landmarks: Landmarks | None = None,
    basis: Basis | str | None = None,
) -> tuple[Sweep, Suggestion]:
    """A sweep and the suggested number of phases, found by fitting more phases while that pays.

    All numbers up to `SWEEP` are fitted first. While the suggested one lies in their upper half, where little
    is known of what follows it, the range is doubled, up to `LIMIT`; where no number stands out, single
    larger numbers are tried. So the suggestion does not depend on `to`, unless its `limit_reached` is true.

    Parameters
    ----------
    to : the sweep goes at least up to this n, and so does the search if it is beyond `LIMIT`.
    locked, stop, basis : as for `desktop.core.phases.fit`.
    landmarks : structure of the run. If there is any, it and the curve
        decide (`desktop.core.choice`), and of equally good breakpoints of a fit those at events are taken
        (`at_events`). None: the curve alone, as in the published tables. For a curve that is not the
        utilization, the curve alone also decides where as many phases without events fit it better, as a
        metric may be unrelated to them.

    Raises
    ------
    ValueError, Cancelled : as `desktop.core.phases.fit` does.
    """
    last = max(SWEEP_PARAMETERS if model == "budget" else SWEEP, least_n(model, locked))
    searched = sweep(curve, model, last, locked=locked, stop=stop, basis=basis)
    if landmarks is not None and (landmarks.events or landmarks.things.size):
        chosen = _with_structure(curve, searched, locked, to, stop, landmarks)
        if chosen is not None and (curve.quantity == PROCESSORS or _fits(curve, *chosen)):
            return chosen
    suggestion, limit = suggest(searched), max(LIMIT, last, to)
    while further := _further(curve, searched, suggestion, limit, locked, stop):
        searched = extend(curve, searched, further, locked=locked, stop=stop)
        suggestion = suggest(searched)
    if _at_the_end(searched, suggestion):
        noun = "parameters" if model == "budget" else "phases"
        end = int(searched.n[-1])
        reason = f"{suggestion.reason}; the search ended at its limit of {end} {noun}, more may be better"
        suggestion = replace(suggestion, reason=reason, limit_reached=True)
    return extend(curve, searched, to, locked=locked, stop=stop), suggestion


def _times(curve: StepCurve, breakpoints: Sequence[Breakpoint]) -> tuple[float, ...]:
    start, end = curve.span
    return (start, *(one.time_s for one in breakpoints), end)


def _fits(curve: StepCurve, sweep: Sweep, suggested: Suggestion) -> bool:
    """Whether the suggestion's total squared error is at most that of the sweep's fit of as many phases."""
    fitted = suggested.fit(curve, sweep)
    return fitted.n not in sweep.n or fitted.sse <= sweep.fit(fitted.n).sse


def _with_structure(
    curve: StepCurve,
    alone: Sweep,
    locked: Sequence[float],
    to: int,
    stop: Bytes | None,
    landmarks: Landmarks,
) -> tuple[Sweep, Suggestion] | None:
    """The choice by curve and structure; None: locked breakpoints are closer together than its shortest
    phase. `alone`: the fits by the curve alone."""
    choice = choose(curve, alone, landmarks, locked)
    if choice is None:
        return None

    def size(breakpoints: Sequence[Breakpoint]) -> int:
        """Number of phases between these breakpoints, or of their parameters for ``budget``."""
        if alone.model != "budget":
            return len(breakpoints) + 1
        times, basis = _times(curve, breakpoints), alone.fits[0].basis
        return fit_breakpoints(curve, times, alone.model, basis=basis).requested

    n, second = size(choice.breakpoints), choice.runner_up
    runner_up = None if second is None else (size(second.breakpoints), second.reason)
    others = () if second is None else second.breakpoints
    suggestion = Suggestion(n, choice.reason, choice.n == MOST, runner_up, choice.breakpoints, others)
    searched = extend(curve, alone, max(to, n), locked=locked, stop=stop)
    fits = tuple(at_events(curve, one, landmarks, locked) for one in searched.fits)
    return replace(searched, fits=fits), suggestion


def at_events(
    curve: StepCurve, best: PhaseFit, landmarks: Landmarks | None, locked: Sequence[float] = ()
) -> PhaseFit:
    """An equally good fit with breakpoints at structure events inside their ranges, as far as epsilon does
    not grow.

    Of several events in a range, that shared by most processors comes first. The ranges stay those of `best`.
    Its own results are not changed again. Fits of more than `SWEEP` phases are returned unchanged.
    """
    if landmarks is None or not 1 < best.n <= SWEEP:
        return best
    breakpoints, time = best.breaks.copy(), np.array([event.time_s for event in landmarks.events])
    moved, untried = best, list(range(1, best.n))
    while untried:
        i = untried.pop(0)
        low, high = best.breakpoint_low[i], best.breakpoint_high[i]
        inside = np.flatnonzero((time >= low) & (time <= high))
        if not inside.size or high - low <= 1e-9 * curve.duration or float(breakpoints[i]) in locked:
            continue
        event = landmarks.events[
            min(inside, key=lambda k: (not_shared(landmarks.events[k]), abs(time[k] - breakpoints[i])))
        ]
        if event.time_s == breakpoints[i] or not breakpoints[i - 1] < event.time_s < breakpoints[i + 1]:
            continue
        trial = breakpoints.copy()
        trial[i] = event.time_s
        degrees = best.degree.tolist() if best.model in MIXING else None
        fitted = fit_breakpoints(curve, trial, best.model, degrees=degrees, like=moved, basis=best.basis)
        if fitted.epsilon <= best.epsilon * (1 + 1e-9):
            moved, breakpoints = fitted, trial
            # Its neighbours may have room now. Each breakpoint moves once, and a second call changes nothing.
            untried += [j for j in (i - 1, i + 1) if 0 < j < best.n and j not in untried]
    if moved is best:
        return best
    return replace(
        moved,
        requested=best.requested,
        breakpoint_low=best.breakpoint_low,
        breakpoint_high=best.breakpoint_high,
        lower=best.lower,
        epsilon=best.epsilon,
        evaluations=best.evaluations,
        updates=best.updates,
        note=best.note,
    )


def events_at(best: PhaseFit, landmarks: Landmarks | None) -> list[list[Landmark]]:
    """For each inner breakpoint (n - 1) the structure events inside its range or within `NEAR` of the run
    from it, nearest first."""
    if landmarks is None:
        return [[] for _ in range(best.n - 1)]
    near = NEAR * float(best.breaks[-1] - best.breaks[0])
    return [
        sorted(
            (e for e in landmarks.events if min(low, t - near) <= e.time_s <= max(high, t + near)),
            key=lambda e: abs(e.time_s - t),
        )
        for t, low, high in zip(
            best.breaks[1:-1].tolist(),
            best.breakpoint_low[1:-1].tolist(),
            best.breakpoint_high[1:-1].tolist(),
            strict=True,
        )
    ]


def _at_the_end(sweep: Sweep, suggestion: Suggestion) -> bool:
    """Whether the sweep ends too early to judge the suggested number."""
    return bool(sweep.epsilon[-1] > 0 and 2 * suggestion.n > sweep.n[-1])


def _further(
    curve: StepCurve,
    sweep: Sweep,
    suggestion: Suggestion,
    limit: int,
    locked: Sequence[float],
    stop: Bytes | None,
) -> int:
    """The n up to which to continue the search; 0 to end it."""
    last, epsilon = int(sweep.n[-1]), float(sweep.epsilon[-1])
    if last >= limit or epsilon == 0:
        return 0
    if _at_the_end(sweep, suggestion):
        return min(2 * last, limit)
    n = last
    while suggestion.n == sweep.n[0] and n < limit:
        n = min(2 * n, limit)
        basis = sweep.fits[0].basis
        one = fit(curve, n, sweep.model, locked=locked, bounds=(0.0, epsilon), stop=stop, basis=basis)
        if one.epsilon < epsilon * np.sqrt(last / n) * np.exp(-_CLEAR):
            return n
    return 0


def suggest(sweep: Sweep) -> Suggestion:
    """The suggested number of phases of a sweep, by the rule at the top of this module."""
    unit = "parameter" if sweep.model == "budget" else "phase"
    exact = np.flatnonzero(sweep.epsilon == 0)
    if exact.size:
        k = int(sweep.n[exact[0]])
        return Suggestion(k, f"{_count(k, unit)} reproduce{'s' if k == 1 else ''} the curve exactly")
    # Only numbers that are better than every smaller one.
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
    near = np.flatnonzero(margin >= _RIVAL * margin.max()) + 1
    lasting = [_lasting(sweep, int(rows[i])) for i in near]
    i = int(near[-1 - int(np.argmax(lasting[::-1]))])
    gains = np.concatenate([[0.0], 100 * (1 - np.exp(-margin))])
    at = _reason(sweep, int(rows[i]), int(rows[i - 1]), float(gains[i]), unit)
    second = _second(
        n, np.concatenate([[-np.inf], margin]), i, "gains {0:.0f} % beyond any later step", gains
    )
    return Suggestion(int(n[i]), at, runner_up=second)


def _second(n: Ints, score: Floats, best: int, words: str, value: Floats) -> tuple[int, str] | None:
    """The next best number by `score` (K,), if that is above 0, with its `value` in words."""
    others = np.where(np.arange(n.size) == best, -np.inf, score)
    i = int(others.argmax())
    if not others[i] > 0:
        return None
    return int(n[i]), f"{words.format(float(value[i]))}, n = {int(n[best])} {value[best]:.0f} %"


def _gradual(n: Ints, left: Floats, unit: str) -> Suggestion:
    """The suggestion at the knee of S(n) = `left`, or the first n if there is none."""
    fall = left[0] - left.min()
    if fall >= _FALL * left[0]:
        removed = (left[0] - left) / fall
        knee = removed - (n - n[0]) / (n[-1] - n[0])
        i = int(np.argmax(knee))
        if knee[i] >= _KNEE:
            k = int(n[i])
            return Suggestion(
                k,
                f"the error falls gradually and no number stands out; {_count(k, unit)} remove "
                f"{100 * removed[i]:.0f} % of what {int(n[-1])} can remove beyond dividing the noise, "
                f"with {100 * (k - n[0]) / (n[-1] - n[0]):.0f} % of the further {unit}s",
                runner_up=_second(n, knee, i, "removes {0:.0f} %", 100 * removed),
            )
    return Suggestion(
        int(n[0]), f"no number of {unit}s stands out: the error falls evenly, as with noise alone"
    )


def _reason(sweep: Sweep, row: int, before: int, margin: float, unit: str) -> str:
    """The gain of the step to the suggested number, and how many of its breakpoints continue."""
    n, smaller = int(sweep.n[row]), int(sweep.n[before])
    reason = f"the step from {smaller} to {_count(n, unit)} gains {margin:.0f} % beyond any later step"
    inner = sweep.fits[row].n - 1
    if row + 1 < sweep.n.size and inner:
        stay = round(_lasting(sweep, row) * inner)
        reason += (
            f"; {stay} of its {inner} breakpoint{'s' if inner > 1 else ''} stay{'s' if stay == 1 else ''}"
        )
    return reason


def _lasting(sweep: Sweep, row: int) -> float:
    """Share of a fit's inner breakpoints that continue in the next fit; 1 without breakpoints or next fit."""
    fit = sweep.fits[row]
    if fit.n == 1 or row + 1 == len(sweep.fits):
        return 1.0
    return _continued(fit, sweep.fits[row + 1]) / (fit.n - 1)


def _continued(old: PhaseFit, new: PhaseFit) -> int:
    """Number of inner breakpoints of `old` that continue in `new`: mutual nearest ones with close ranges."""
    if old.n == 1 or new.n == 1:
        return 0
    low, high, at = (x[1:-1, None] for x in (new.breakpoint_low, new.breakpoint_high, new.breaks))
    apart = np.maximum(low - old.breakpoint_high[1:-1], old.breakpoint_low[1:-1] - high).clip(min=0)
    # Where ranges overlap, the breakpoints decide which is nearest, scaled so that ranges count first.
    score = apart + 1e-6 * np.abs(at - old.breaks[1:-1])
    nearest, rows = score.argmin(axis=1), np.arange(new.n - 1)
    mutual = score.argmin(axis=0)[nearest] == rows
    near = apart[rows, nearest] <= _TOLERANCE * float(new.breaks[-1] - new.breaks[0])
    return int(np.count_nonzero(mutual & near))


def _count(n: int, unit: str) -> str:
    return f"{n} {unit}{'s' if n != 1 else ''}"

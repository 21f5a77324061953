"""The choice of breakpoints by the curve and the structure of a run together.

Candidates are the structure events (`desktop.core.landmarks`) and the breakpoints of the fits with up to
`SWEEP` phases, those first that many fits have. Of all sets of candidates the one with the least *misfit* is
found exactly, by dynamic programming. The misfit of a set is the sum of

* the squared deviation of the curve from the best polynomials between the breakpoints, in units of its noise:
  SSE / (σ² τ), over equal bins; σ² is the variance of the residual, τ the number of bins that make one
  independent observation, from the residual's autocorrelation (G. Schwarz, *Estimating the dimension of a
  model*, 1978, with n/τ observations);
* the deviation of the processors' activity from its mean between the breakpoints: the share of them inside
  each region, and of those that send in one direction or messages of one size;
* ln(n/τ) for every parameter of a phase, and a price for each breakpoint, which is least at events that most
  processors share and largest at a time that only one fit has.

A wait for the last processors of a phase, shorter than `TAIL` of the run, is part of that phase, with a line
and a price of its own, and not a separate phase.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from desktop.core.arrays import Floats, Ints
from desktop.core.curve import StepCurve
from desktop.core.landmarks import NEAR, SHORTEST, Landmark, Landmarks
from desktop.core.phases import PhaseFit, Sweep
from desktop.core.units import brief

#: Bins of the run, most phases of fits whose breakpoints are candidates, and most phases of a choice.
BINS, SWEEP, MOST = 1024, 20, 40
#: Largest number of independent observations.
OBSERVATIONS = 300.0
#: A wait for the last processors, shorter than this part of the run, belongs to the phase that they end.
TAIL = 0.05
#: Largest number of candidates, structure events first.
CANDIDATES = 240
# The scale of the structure's misfit, negligible deviations of the curve (a part of all processors), and the
# prices of a breakpoint.
_STRUCTURE, _FLOOR = 300.0, 0.12
_PRICE_EVENT, _PRICE_WAIT, _PRICE_ONE, _PRICE_LASTING, _PRICE_FIT = 9.0, 30.0, 8.0, 35.0, 60.0
_PRICE_APART = 1.5
_LOCKED = 1e9
_PRICE_BEAT, _MESSAGES = 40.0, 0.7
_DEGREES = {"constant": 0, "linear": 1}


@dataclass(frozen=True)
class Breakpoint:
    """A chosen breakpoint. `event`: the structure event there, if any; `fits`: number of fits that have a
    breakpoint within 2 `NEAR` of the run; `worth`: by how much the misfit rises without it."""

    time_s: float
    event: Landmark | None
    fits: int
    worth: float


@dataclass(frozen=True)
class RunnerUp:
    """The next best breakpoints, and why they are not better."""

    breakpoints: tuple[Breakpoint, ...]
    reason: str

    @property
    def n(self) -> int:
        return len(self.breakpoints) + 1


@dataclass(frozen=True)
class Choice:
    """The chosen breakpoints, the reason in words, the misfit of the best set for each n (from 1 on), and the
    number of independent observations in the curve."""

    breakpoints: tuple[Breakpoint, ...]
    reason: str
    runner_up: RunnerUp | None
    misfit: Floats
    observations: float

    @property
    def n(self) -> int:
        return len(self.breakpoints) + 1


@dataclass(frozen=True, eq=False)
class _Candidates:
    at: Ints  # bin edges, increasing
    time: Floats
    price: Floats
    events: tuple[Landmark | None, ...]
    fits: Ints


def choose(
    curve: StepCurve, sweep: Sweep, landmarks: Landmarks, locked: Sequence[float] = ()
) -> Choice | None:
    """Choose the breakpoints of a run, with the `locked` ones (s); None if these are closer together than the
    shortest phase. `sweep`: fits of all numbers of phases up to `SWEEP` at least."""
    start, span = curve.start, curve.duration
    level = curve.means(BINS) / max(curve.capacity, 1e-300)
    fits = [fit for fit in sweep.fits if fit.requested <= SWEEP]
    candidates = _candidates(landmarks, fits, start, span, locked)
    costs = _Costs(
        level,
        candidates,
        landmarks.state * np.where(landmarks.things < 0, _MESSAGES, 1.0)[:, None],
        _DEGREES.get(sweep.model, 2),
        1 / max(curve.capacity, 1),
    )
    choice = costs.choose(candidates, len(fits))
    return choice if set(locked) <= {one.time_s for one in choice.breakpoints} else None


def _candidates(
    landmarks: Landmarks, fits: list[PhaseFit], start: float, span: float, locked: Sequence[float]
) -> _Candidates:
    """Locked times, events and breakpoints of fits, only one where several are near."""
    inner = [fit.breaks[1:-1] for fit in fits]
    of = np.repeat(np.arange(len(fits)), [len(x) for x in inner])
    every = np.concatenate([np.zeros(0), *inner])
    candidates: list[tuple[float, float, Landmark | None, int]] = []

    def lasting(t: float) -> int:
        return int(np.unique(of[np.abs(every - t) <= 2 * NEAR * span]).size)

    for t in locked:
        held = next((e for e in landmarks.events if abs(e.time_s - t) <= NEAR * span), None)
        candidates.append((t, -_LOCKED, held, lasting(t)))

    def weight(e: Landmark) -> tuple[bool, float, float]:
        return (e.what is None, -_price(e), -(e.high_s - e.low_s))

    for event in sorted(landmarks.events, key=weight, reverse=True):
        if all(abs(event.time_s - t) > NEAR * span for t, *_ in candidates):
            price = _price(event)
            candidates.append((event.time_s, price, event, lasting(event.time_s)))
        if len(candidates) >= CANDIDATES // 2:
            break
    count = np.array([lasting(t) for t in every.tolist()])
    for i in np.argsort(-count, kind="stable").tolist():
        t = float(every[i])
        if all(abs(t - other) > NEAR * span for other, *_ in candidates):
            beats = any(begin <= t <= end for begin, end, _ in landmarks.beating)
            often = min(1.0, count[i] / (0.5 * len(fits)))
            candidates.append(
                (
                    t,
                    _PRICE_FIT + often * (_PRICE_LASTING - _PRICE_FIT) + beats * _PRICE_BEAT,
                    None,
                    int(count[i]),
                )
            )
        if len(candidates) >= CANDIDATES:
            break
    candidates.sort(key=lambda one: one[0])
    at = np.array([round((t - start) / span * BINS) for t, *_ in candidates], np.int64)
    keep = np.flatnonzero((at > 0) & (at < BINS) & np.concatenate([[True], np.diff(at) > 0])[: at.size])
    return _Candidates(
        at[keep],
        np.array([candidates[i][0] for i in keep]),
        np.array([candidates[i][1] for i in keep]),
        tuple(candidates[i][2] for i in keep),
        np.array([candidates[i][3] for i in keep], np.int64),
    )


def not_shared(event: Landmark) -> float:
    """A measure, small for events that most processors share; least, -1, for those that the user marked."""
    return -1.0 if event.what is None else _price(event)


def _price(event: Landmark) -> float:
    """Price of a breakpoint at a structure event. It is higher where waiting begins, as other processors go
    on; at the event of one processor, though less so where processors are so far apart that their median
    means little; and where sizes drift over a power of two, which alone makes no phase."""
    price, one = _PRICE_EVENT + 4 * (1 - event.share), event.happens in ("first", "last")
    if event.drifting or (one and not event.apart):
        price += _PRICE_ONE
    elif one:
        price += _PRICE_APART
    if event.waiting:
        price += _PRICE_WAIT
    return price


class _Costs:
    """Misfits of all pieces between two candidates; rows and columns 0 and -1 are the ends of the run."""

    def __init__(
        self, level: Floats, candidates: _Candidates, state: Floats, degree: int, alone: float
    ) -> None:
        self._level = level
        self._at = at = np.concatenate([[0], candidates.at, [level.size]])
        self._price = np.concatenate([candidates.price, [0.0]])
        width = at[None, :] - at[:, None]
        m = np.where(width > 0, width, 1).astype(float)
        n = level.size
        x = np.arange(n) + 0.5
        sums = [np.concatenate([[0.0], np.cumsum(v)]) for v in (level, x * level, x * x * level, level**2)]
        s0, s1, s2, syy = (s[at][None, :] - s[at][:, None] for s in sums)
        centre = (at[None, :] + at[:, None]) / 2
        s2 = s2 - 2 * centre * s1 + centre**2 * s0
        s1 = s1 - centre * s0
        u2 = m * (m * m - 1) / 12
        u4 = m * (m * m - 1) * (3 * m * m - 7) / 240
        left = [np.maximum(syy - s0**2 / m, 0)]
        with np.errstate(divide="ignore", invalid="ignore"):
            linear = np.where(m > 1, s1**2 / u2, 0.0)
            quadratic = np.where(m > 2, (s2 - u2 / m * s0) ** 2 / (u4 - u2**2 / m), 0.0)
        left.append(np.maximum(left[0] - linear, 0))
        left.append(np.maximum(left[1] - quadratic, 0))
        self._left = np.stack(left[: degree + 1])
        self._u = (s0, s1, s2)
        self._structure = np.zeros_like(m)
        strongest = np.argsort(-state.var(axis=1), kind="stable")[:48]
        for row in state[strongest]:
            whole, square = (np.concatenate([[0.0], np.cumsum(v)])[at] for v in (row, row * row))
            self._structure += np.maximum(
                square[None, :] - square[:, None] - (whole[None, :] - whole[:, None]) ** 2 / m, 0
            )
        self._structure *= _STRUCTURE / n
        # A tail: computing falls to less than a third, while at least one processor still computes.
        nobody = np.concatenate([[0], np.cumsum(level < alone / 2)])[at]
        with np.errstate(divide="ignore", invalid="ignore"):
            self._tail = (width > 0) & (width < TAIL * n) & (s1 / u2 * m * m < -s0)
        self._tail &= nobody[None, :] - nobody[:, None] <= width / 4
        self._tail[:-1][np.concatenate([[0.0], candidates.price]) < 0] = False  # locked
        self._impossible = (width < SHORTEST * n) | self._tail
        self._impossible[0, -1] = False

    def pieces(self, variance: float, together: float) -> tuple[Floats, Ints, Ints]:
        """Misfit and degree of each piece, and the row at which its tail begins (that of its end without a
        tail). `variance`: of the noise; `together`: τ, bins of one independent observation."""
        observations = np.log(max(self._level.size / together, 2.0))
        degrees = np.arange(self._left.shape[0])[:, None, None]
        misfits = self._left / (variance * together) + observations * (degrees + 2)
        degree = misfits.argmin(axis=0)
        least = np.take_along_axis(misfits, degree[None], axis=0)[0]
        alone = least + self._structure
        alone[np.tril_indices_from(alone)] = np.inf
        total = alone.copy()
        tail = np.broadcast_to(np.arange(total.shape[0]), total.shape).copy()
        for end in np.flatnonzero(self._tail.any(axis=0)).tolist():
            begins = np.flatnonzero(self._tail[:, end])
            parted = alone[:, begins] + alone[begins, end] + _PRICE_WAIT
            best = parted.argmin(axis=1)
            less = np.take_along_axis(parted, best[:, None], axis=1)[:, 0]
            better = less < total[:, end]
            total[better, end] = less[better]
            tail[better, end] = begins[best[better]]
        total[:, 1:] += self._price
        total[self._impossible] = np.inf
        return total, degree, tail

    def best(self, total: Floats, most: int) -> tuple[Floats, list[list[int]]]:
        """The least misfit of 1, 2, ..., `most` pieces, and the rows of their inner breakpoints."""
        size = total.shape[0]
        before = total[0].copy()
        values, back = [before[-1]], []
        for _ in range(1, min(most, size - 1)):
            reached = before[:, None] + total
            back.append(reached.argmin(axis=0))
            before = reached.min(axis=0)
            values.append(before[-1])
        sets = []
        for n in range(1, len(values) + 1):
            place, places = size - 1, []
            for step in reversed(back[: n - 1]):
                place = int(step[place])
                places.append(place)
            sets.append(places[::-1])
        return np.array(values), sets

    def residual(self, places: list[int], degree: Ints, tail: Ints) -> Floats:
        """The curve minus the best polynomials between the breakpoints `places` and their tails."""
        ends = [0, *places, self._at.size - 1]
        ends = sorted({*ends, *(int(tail[a, b]) for a, b in pairwise(ends))})
        left = self._level.copy()
        for a, b in pairwise(ends):
            i, j = self._at[a], self._at[b]
            x = np.linspace(-1, 1, j - i) if j - i > 1 else np.zeros(1)
            d = min(int(degree[a, b]), j - i - 1)
            left[i:j] -= np.polynomial.polynomial.polyval(
                x, np.polynomial.polynomial.polyfit(x, left[i:j], d)
            )
        return left

    def choose(self, candidates: _Candidates, looked_at: int) -> Choice:
        n = self._level.size
        variance, together = max(_FLOOR**2, self._left[-1, :-1, 1:].diagonal().sum() / n), 4.0
        for _ in range(4):
            total, degree, tail = self.pieces(variance, together)
            values, sets = self.best(total, MOST)
            places = sets[int(values.argmin())]
            left = self.residual(places, degree, tail)
            variance = float(np.mean(left**2)) + _FLOOR**2
            together = _together(left)
        total = self.pieces(variance, together)[0]
        values, sets = self.best(total, MOST)
        order = np.argsort(values, kind="stable")
        best, second = sets[int(order[0])], None
        breakpoints = self._breakpoints(best, total, candidates)
        if order.size > 1 and np.isfinite(values[order[1]]):
            rival = self._breakpoints(sets[int(order[1])], total, candidates)
            second = RunnerUp(rival, _against(rival, breakpoints, float(np.diff(values[order[:2]])[0])))
        return Choice(breakpoints, _reason(breakpoints, looked_at), second, values, n / together)

    def _breakpoints(
        self, places: list[int], total: Floats, candidates: _Candidates
    ) -> tuple[Breakpoint, ...]:
        ends = [0, *places, self._at.size - 1]
        breakpoints = []
        for a, place, b in zip(ends[:-2], ends[1:-1], ends[2:], strict=True):
            # Without this breakpoint the piece may be impossible.
            worth = float(total[a, b] - total[a, place] - total[place, b]) if total[a, b] < np.inf else np.inf
            i = place - 1
            breakpoints.append(
                Breakpoint(float(candidates.time[i]), candidates.events[i], int(candidates.fits[i]), worth)
            )
        return tuple(breakpoints)


def _reason(breakpoints: tuple[Breakpoint, ...], looked_at: int) -> str:
    if not breakpoints:
        return "one phase: no breakpoint, at a structure event or of a fit, lowers the misfit"
    at = sum(one.event is not None for one in breakpoints)
    count = len(breakpoints)
    if count == 1:
        (one,) = breakpoints
        place = (
            "at a structure event"
            if at
            else f"where the curve alone changes, in {one.fits} of {looked_at} fits"
        )
        worth = "" if not np.isfinite(one.worth) else f"; without it the misfit is {one.worth:.1f} higher"
        return f"its breakpoint is {place}, {_place(one)}{worth if abs(one.worth) < 1e6 else ''}"
    parts = []
    if at:
        most = max((one for one in breakpoints if one.event is not None), key=lambda one: one.worth)
        place = "at structure events" if at > 1 else "at a structure event"
        assert most.event is not None
        parts.append(f"{at} of {count} breakpoints {place}, such as {_place(most)}")
    if at < count:
        fits = max(one.fits for one in breakpoints if one.event is None)
        parts.append(f"{count - at} where the curve alone changes, in up to {fits} of {looked_at} fits")
    least = min(breakpoints, key=lambda one: one.worth)
    if np.isfinite(least.worth) and least.worth < 1e6:
        higher = f"the misfit is {least.worth:.1f} higher"
        parts.append(f"without the one that counts least, {_place(least)}, {higher}")
    return "; ".join(parts)


def _place(one: Breakpoint) -> str:
    event = "" if one.event is None else f" ({one.event.text})"
    return f"{brief(one.time_s)}{event}"


def _against(rival: tuple[Breakpoint, ...], best: tuple[Breakpoint, ...], worse: float) -> str:
    """How another set differs from the best one, in words."""
    ours, theirs = ({one.time_s: one for one in breakpoints} for breakpoints in (best, rival))
    without = [one for t, one in ours.items() if t not in theirs]
    besides = [one for t, one in theirs.items() if t not in ours]
    words = [
        f"{word} {_place(places[0])}" + (f" and {len(places) - 1} more" if len(places) > 1 else "")
        for word, places in (("without", without), ("with", besides))
        if places
    ]
    return f"misfit {worse:.1f} higher, {' but '.join(words)}"


def _together(left: Floats) -> float:
    """τ, the number of bins of one independent observation: 1 + 2 Σ autocorrelation, summed up to where it
    falls below its own noise."""
    x = left - left.mean()
    power = np.abs(np.fft.rfft(x, 2 * x.size)) ** 2
    correlation = np.fft.irfft(power)[: x.size // 4]
    if correlation[0] <= 0:
        return 1.0
    correlation = correlation / correlation[0]
    below = np.flatnonzero(correlation < 2 / np.sqrt(x.size))
    upto = int(below[0]) if below.size else correlation.size
    return float(np.clip(1 + 2 * correlation[1:upto].sum(), x.size / OBSERVATIONS, x.size / 16))

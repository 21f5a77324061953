"""Scaling of phases: time over p as a sum of characteristic functions, with the uncertainty of a few runs.

A phase takes on p processors::

    T(p) = sum_i w_i u_i(p),   w_i >= 0

with one, two or three of the functions of `desktop.core.characteristic`: a time is a sum of kinds of work,
none of them negative. Three to six runs do not determine which functions these are, but predictions beyond
the runs depend on them. So no set of functions is chosen: all are weighted with their probability given the
runs (Bayesian model averaging: Hoeting, Madigan, Raftery, Volinsky, Statistical Science 14, 1999), and a
prediction is a draw of a set, its weights and its noise. Intervals are quantiles of draws, so they include
the uncertainty of all three.

Priors: sets of one, two, three functions have the probabilities `_SETS`, and higher ones with functions that
grow (`_LIKELY`); the shares of the functions in the time, in the middle of the runs, have a Dirichlet
distribution with parameters `_SHARES`: parts proportional to p hardly show in the runs but dominate beyond
them, so they are assumed to be likely and small. Errors are proportional to the phase or (inexact
breakpoints) to the run, with any spread of `_SPREADS`; these are estimated from all phases together, as far
as phases may be alike. For d functions, n runs, A the columns over what errors are proportional to, R its
triangle, s a spread, a the parameters, a set has the marginal likelihood

    Gamma(sum a) / prod Gamma(a)  (2 pi)^(d/2) s^(d-n) / |R|  exp(-RSS / 2 s^2)  E

E is the mean of the prior's density over normal draws of the weights, 0 of draws with a negative one.

The phases of a run add up to the run, whose time varies less than theirs, as an error of a breakpoint moves
time from a phase to its neighbour. Jointly, medians of phases and run are adjusted to add up, each in
proportion to its variance (Wickramasuriya, Athanasopoulos, Hyndman, JASA 114, 2019, with a diagonal
covariance), phases within their quartiles. The ends of their intervals do not move: scaling all draws would
remove the growth that only few of them have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np

from desktop.core.arrays import Flags, Floats
from desktop.core.characteristic import CHARACTERISTICS
from desktop.core.factor_intervals import CONFIDENCE, FARTHEST
from desktop.core.plain import JSON

#: Smallest number of different p.
FEWEST = 3
DRAWS = 2000
_TAILS = ((1.0 - CONFIDENCE) / 2.0, (1.0 + CONFIDENCE) / 2.0)
#: A phase scales as long as doubling the processors makes it at least sqrt(2) times as fast.
SCALES = 0.5
#: Possible relative errors of a run, equally probable.
_SPREADS = np.geomspace(0.004, 0.3, 9)
#: Weight of the other phases' log likelihood for the spread of a phase.
_ALIKE = 0.5
_MOST, _TRIES = 3, 240
#: Prior probabilities of sets of one, two, three functions; and of errors proportional to the phase, the run.
_SETS, _KINDS = (0.2, 0.3, 0.5), (0.5, 0.5)
#: For each function: parameter of the Dirichlet distribution of the shares, and its relative probability in a
#: set. Most programs have parts that grow with p, small at the p of the runs.
_SHARES = np.array([0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.15])
_LIKELY = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 5.0])
#: Parts of phases use one in so many blocks of speeds.
FEWER = 4
#: Errors of a part of a phase are not below this share of the phase.
_FLOOR = 0.05
_NAMES = tuple(one.text for one in CHARACTERISTICS)


def columns(p: Floats) -> Floats:
    """(K, functions) characteristic functions at p (K,)."""
    return np.stack([one.u(p) for one in CHARACTERISTICS], axis=1)


@lru_cache(maxsize=1)
def _sets() -> tuple[tuple[int, ...], ...]:
    every = range(len(CHARACTERISTICS))
    return tuple(s for d in range(1, _MOST + 1) for s in combinations(every, d))


@lru_cache(maxsize=256)
def _random(seed: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng([19, seed])
    return rng.standard_normal((_TRIES, _MOST)), rng.random(DRAWS)


@dataclass(frozen=True, eq=False)
class Law:
    """Posterior draws of a time over p. weights (draws, functions): seconds, none negative; spread (draws,):
    error of one run relative to the time or, where `of_run` (draws,) is positive, to that part of the run;
    chances: sets of functions with their probability, the most probable first."""

    weights: Floats
    spread: Floats
    of_run: Floats
    chances: tuple[tuple[tuple[str, ...], float], ...]

    @property
    def functions(self) -> tuple[str, ...]:
        """The most probable set."""
        return self.chances[0][0]

    def parameters(self) -> list[JSON]:
        """Function, median weight (s) and 95 % interval of the most probable set, given that set."""
        included = np.array([name in self.functions for name in _NAMES])
        same = ((self.weights > 0) == included).all(axis=1)
        bands = band(self.weights[same][:, included])
        return [
            {"function": name, "value_s": v, "low_s": low, "high_s": high}
            for name, v, low, high in zip(
                [n for n, mine in zip(_NAMES, included, strict=True) if mine],
                bands.value.tolist(), bands.low.tolist(), bands.high.tolist(), strict=True,
            )
        ]  # fmt: skip

    def on(self, speed: Floats) -> Law:
        """The law on a system with `speed` (draws, functions)."""
        return replace(self, weights=self.weights / speed)

    def times(self, p: Floats) -> Floats:
        """(draws, K) at p (K,), without noise."""
        return self.weights @ columns(np.asarray(p, np.float64)).T


@dataclass(frozen=True, eq=False)
class Band:
    """Median and 95 % interval, (K,) each."""

    value: Floats
    low: Floats
    high: Floats


def band(draws: Floats) -> Band:
    """Median and 95 % interval of `draws` (draws, K)."""
    low, value, high = np.quantile(draws, (_TAILS[0], 0.5, _TAILS[1]), axis=0)
    return Band(value, low, high)


@dataclass(frozen=True, eq=False)
class Weighed:
    """Every set with every kind and spread of errors. score (sets, kinds x spreads) : logarithm of the
    marginal likelihood; sets : indices of their functions; drawn, good : of each set, weights
    (kinds x spreads, tried, d) times `size`, and their prior density (kinds x spreads, tried); size
    (functions,); part : mean part of the run."""

    score: Floats
    sets: tuple[tuple[int, ...], ...]
    drawn: tuple[Floats, ...]
    good: tuple[tuple[Floats, Floats], ...]
    size: Floats
    part: float


def weigh(
    p: Floats,
    time: Floats,
    scale: Floats | None = None,
    seed: int = 0,
    run: Floats | None = None,
    speed: Floats | None = None,
) -> Weighed:
    """Marginal likelihoods of all sets for runs at p (N,) that took `time` (N,). `scale` (N,): what errors
    are relative to, else the times; `run` (N,): times of the runs, to which errors may be proportional as
    well; `speed` (N, functions): of the systems of the runs, else all 1. Errors as for `learn`."""
    p, time = np.asarray(p, np.float64), np.asarray(time, np.float64)
    scale = time if scale is None else np.asarray(scale, np.float64)
    if speed is None and np.unique(p).size < FEWEST:
        raise ValueError(
            f"runs on {np.unique(p).size} different numbers of processors cannot determine a law over p, "
            f"{FEWEST} or more are needed"
        )
    if not (np.isfinite(time).all() and (p >= 1).all() and (time >= 0).all() and (scale > 0).all()):
        raise ValueError("times over p have to be above zero, on one or more processors")
    middle = np.array([np.exp(np.log(p).mean())])
    size = columns(middle)[0] / max(float(np.median(time)), 1e-3 * float(np.median(scale)))
    if run is not None and not (time > 0).all():
        raise ValueError("a phase takes no time in one of the runs, so it has no law")
    part = 0.0 if run is None else float(np.exp(np.mean(np.log(time / run))))
    scales = [scale] if run is None else [scale, part * run]
    normal, n = _random(seed)[0], time.size
    base = columns(p) if speed is None else columns(p) / speed
    if speed is not None:  # called for many blocks of speeds, so fewer draws are enough
        normal = normal[: _TRIES // 6]
    sets: list[tuple[int, ...]] = []
    score, drawn, good = [], [], []
    for d in range(1, min(_MOST, np.unique(p).size) + 1):
        every, before = _beforehand(d)
        sets += map(tuple, every.tolist())
        scored, tries, sounds = [], [], []
        for kind, by in enumerate(scales):
            a = (base / by[:, None] / size)[:, every].transpose(1, 0, 2)  # (sets, N, d)
            q, r = np.linalg.qr(a)
            corner = np.abs(np.diagonal(r, axis1=1, axis2=2))
            alike = corner.min(axis=1) < 1e-9 * corner.max(axis=1)
            r[alike], corner[alike] = np.eye(d), 1.0
            y = time / by
            best = np.linalg.solve(r, (q.transpose(0, 2, 1) @ y)[:, :, None])[:, :, 0]
            rss = ((y - (a @ best[:, :, None])[:, :, 0]) ** 2).sum(axis=1)
            step = np.linalg.solve(r, np.broadcast_to(normal[:, :d].T, (len(every), d, len(normal))))
            samples = best[:, None, None] + _SPREADS[:, None, None] * step.transpose(0, 2, 1)[:, None]
            sound = _shares(samples, _SHARES[every])
            with np.errstate(divide="ignore"):
                likelihood = (
                    before[:, None] + d / 2 * np.log(2 * np.pi)
                    - np.log(corner).sum(axis=1)[:, None]
                    - np.log(by).sum() + (d - n) * np.log(_SPREADS) - rss[:, None] / (2 * _SPREADS**2)
                    + np.log(sound.mean(axis=2)) + np.log(_KINDS[kind])
                )  # fmt: skip
            likelihood[alike] = -np.inf
            scored.append(likelihood)
            tries.append(samples)
            sounds.append(sound)
        score.append(np.concatenate(scored, axis=1))
        drawn += list(np.concatenate(tries, axis=1))
        good += list(np.concatenate(sounds, axis=1))
    whole = np.concatenate(score)
    if not np.isfinite(whole).any():
        raise ValueError("no sum of characteristic functions without a negative part fits these times")
    return Weighed(whole, tuple(sets), tuple(drawn), tuple(good), size, part)


@lru_cache(maxsize=8)
def _beforehand(d: int) -> tuple[Floats, Floats]:
    """Sets of d functions (sets, d), and of each the logarithm of its prior probability times the constant
    of the Dirichlet density (sets,)."""
    every = np.array([one for one in _sets() if len(one) == d])
    likely = _LIKELY[every].prod(axis=1)
    before = np.log(_SETS[d - 1] * likely / likely.sum())
    before += [math.lgamma(one.sum()) - sum(map(math.lgamma, one)) for one in _SHARES[every]]
    return every, before


def _shares(weights: Floats, parameter: Floats) -> Floats:
    """(sets, ...) prior density of weights (sets, ..., d) as shares, up to a constant; 0 where one is
    negative. parameter (sets, d): of the Dirichlet distribution."""
    sound = (weights >= 0).all(axis=-1)
    part = np.maximum(weights, 1e-12)
    part = part / part.sum(axis=-1, keepdims=True)
    return np.where(
        sound, np.exp(((parameter[:, None, None] - 1.0) * np.log(np.maximum(part, 1e-4))).sum(axis=-1)), 0.0
    )


class _Drawing:
    """The draws of a law, added in blocks."""

    def __init__(self, seed: int) -> None:
        self._at = _random(seed)[1]
        self._weights, self._spread = np.zeros((DRAWS, len(_NAMES))), np.empty(DRAWS)
        self._of_run, self._chance = np.zeros(DRAWS), np.zeros(len(_sets()))

    def add(self, of: Weighed, others: Floats | None = None, first: int = 0, last: int = DRAWS) -> None:
        """Set the draws `first` to `last`. `others` (kinds x spreads,): log likelihood of the spreads by
        other quantities of the same runs."""
        score = of.score if others is None else of.score + others
        chance = np.exp(score - score.max())
        chance /= chance.sum()
        # draws in proportion to the probability, at random places so that laws are independent
        order = first + np.argsort(self._at[first:last])
        ends = np.concatenate([[0], np.rint(np.cumsum(chance) * (last - first)).astype(np.int64)])
        for k in np.flatnonzero(np.diff(ends)).tolist():
            which, s = divmod(k, score.shape[1])
            at = order[ends[k] : ends[k + 1]]
            sets, weight = list(of.sets[which]), np.cumsum(of.good[which][s])
            take = np.searchsorted(weight, (np.arange(at.size) + 0.5) / at.size * weight[-1])
            self._weights[at[:, None], sets] = of.drawn[which][s][take] / of.size[sets]
            self._spread[at] = _SPREADS[s % _SPREADS.size]
            self._of_run[at] = of.part if s >= _SPREADS.size else 0.0
        self._chance[: len(of.sets)] += chance.sum(axis=1) * (last - first) / DRAWS

    def law(self) -> Law:
        ranked = sorted(zip(self._chance.tolist(), _sets(), strict=True), reverse=True)
        chances = tuple(
            (tuple(_NAMES[i] for i in one), c) for c, one in ranked[:6] if c >= 0.01 or c == ranked[0][0]
        )
        return Law(self._weights, self._spread, self._of_run, chances)


def spreads_of(of: Weighed) -> Floats:
    """(kinds x spreads,) log likelihood of the runs for each, limited to 50 below the largest score."""
    top = of.score.max()
    with np.errstate(divide="ignore"):
        likely = np.log(np.exp(of.score - top).sum(axis=0))
    return np.asarray(top + np.maximum(likely, -50.0), np.float64)


def learn(
    p: Floats, time: Floats, scale: Floats | None = None, seed: int = 0, speed: Floats | None = None
) -> Law:
    """The law of a time from runs at p (N,) that took `time` (N,) seconds. `scale` (N,): what errors are
    relative to, else the times. `seed`: of the draws; quantities that are added need different ones. `speed`
    as for `model_phases`.

    Raises
    ------
    ValueError : fewer than `FEWEST` different p, a p below 1, or negative times.
    """
    blocks = [None] if speed is None else list(speed)
    drawing, ends = _Drawing(seed), block_ends(len(blocks))
    for b, block in enumerate(blocks):
        drawing.add(weigh(p, time, scale, seed, speed=block), None, ends[b], ends[b + 1])
    return drawing.law()


# --- phases of several runs ---

#: Parts of a phase's duration whose ratios are the POP efficiencies: mean computing time of a processor; by
#: how much the most loaded one computes longer; by how much the phase is longer than that.
PARTS = ("computing", "imbalance", "communication")
EFFICIENCIES = ("parallel", "load balance", "communication", "computation scaling", "global")


@dataclass(frozen=True, eq=False)
class ScalingRuns:
    """R runs of one program with the same K phases. p (R,); duration (R, K), seconds; parts (R, K, 3),
    seconds of `PARTS`, which add up to the duration, or None where processors are not known; accounts
    (R, K, A), mean seconds of a processor, which add up to it as well, or None; systems : of each run, () if
    all were on one."""

    runs: tuple[str, ...]
    phases: tuple[str, ...]
    p: Floats
    duration: Floats
    parts: Floats | None = None
    accounts: Floats | None = None
    account_names: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()

    def only(self, runs: Sequence[int]) -> ScalingRuns:
        """The runs with these indices."""
        at = list(runs)
        return replace(
            self,
            runs=tuple(self.runs[k] for k in at),
            p=self.p[at],
            duration=self.duration[at],
            parts=None if self.parts is None else self.parts[at],
            accounts=None if self.accounts is None else self.accounts[at],
            systems=tuple(self.systems[k] for k in at) if self.systems else (),
        )


@dataclass(frozen=True)
class Turn:
    """A p from which on something holds, with its 95 % interval; infinite where it does not within `FARTHEST`
    times the largest p. `chance`: probability that it does within that range."""

    p: float
    low: float
    high: float
    chance: float


@dataclass(frozen=True, eq=False)
class PhaseModel:
    """Laws of every phase, of the run, and of the phases' parts and accounts (by phase, then part; None for
    parts without time)."""

    data: ScalingRuns
    phases: tuple[Law, ...]
    run: Law
    parts: tuple[tuple[Law | None, ...], ...] = ()
    accounts: tuple[tuple[Law | None, ...], ...] = ()

    @property
    def least(self) -> float:
        return float(self.data.p.min())

    @property
    def largest(self) -> float:
        return float(self.data.p.max())

    @property
    def farthest(self) -> float:
        """The largest p for which predictions need no warning."""
        return FARTHEST * self.largest

    def durations(self, p: Floats, *, joint: bool = True, noise: bool = True) -> tuple[Floats, Floats]:
        """Draws of the phases (draws, K, P) and of the run (draws, P) at p (P,), in seconds. `joint`:
        adjusted so that phases add up to the run; else phases are independent, and the run is their sum.
        `noise`: for one new run, not for the mean of many."""
        p = np.asarray(p, np.float64)
        clean = np.stack([law.times(p) for law in self.phases], axis=1)
        whole = self.run.times(p)
        if joint:
            spread = np.stack([_variance(x) for x in np.moveaxis(clean, 1, 0)])  # (K, P)
            of_whole = _variance(whole)
            middle, total = np.median(clean, axis=0), np.median(whole, axis=0)
            gap = total - middle.sum(axis=0)
            share = spread / np.maximum(spread.sum(axis=0) + of_whole, 1e-300)
            # Only medians move, within the quartiles; the ends of the intervals do not.
            moved = np.clip(middle + share * gap, *np.quantile(clean, (0.25, 0.75), axis=0))
            ends = np.quantile(clean, _TAILS, axis=0)
            # The run's own law may be as wrong as those of the phases, so take the wider interval of both.
            both = np.quantile(np.stack([whole, clean.sum(axis=1)]), _TAILS, axis=1)
            clean = _stretched(clean, ends[0], moved, ends[1])
            whole = _stretched(whole, both[0].min(axis=0), moved.sum(axis=0), both[1].max(axis=0))
        else:
            whole = clean.sum(axis=1)
        if not noise:
            return clean, whole
        rng = np.random.default_rng([19, 1])
        spread, of_run = (
            np.stack([getattr(law, name) for law in self.phases], axis=1)[:, :, None]
            for name in ("spread", "of_run")
        )
        by = np.where(of_run > 0, of_run * clean.sum(axis=1, keepdims=True), clean)
        error = spread * rng.standard_normal((DRAWS, len(self.phases), 1)) * by
        noisy = np.maximum(clean + error, 0.05 * clean)
        if not joint:
            return noisy, noisy.sum(axis=1)
        error = 1.0 + self.run.spread[:, None] * rng.standard_normal((DRAWS, 1))
        return noisy, whole * np.maximum(error, 0.05)

    @cached_property
    def _ahead(self) -> tuple[Floats, Floats, Floats]:
        """p from the least to the farthest, with draws of phases and run there."""
        grid = np.geomspace(self.least, self.farthest, 97)
        return grid, *self.durations(grid, noise=False)

    def dominates(self, phase: int) -> Turn | None:
        """The p from which on a phase is more than half of the run; None if that holds within `farthest` in
        fewer than one of 40 draws."""
        grid, phases, _ = self._ahead
        return _turn(grid, phases[:, phase] > 0.5 * phases.sum(axis=1))

    def stops(self, phase: int) -> Turn | None:
        """The p from which on a phase no longer scales (`SCALES`); None if it scales up to `farthest`."""
        grid, phases, _ = self._ahead
        return _turn(grid, _slope(grid, phases[:, phase]) > -SCALES)

    @property
    def run_stops(self) -> Turn | None:
        """The p from which on the run no longer scales."""
        grid, _, run = self._ahead
        return _turn(grid, _slope(grid, run) > -SCALES)

    def grows(self, phase: int) -> Turn | None:
        """The p from which on more processors make a phase longer."""
        grid, phases, _ = self._ahead
        return _turn(grid, _slope(grid, phases[:, phase]) > 0.01)

    @cached_property
    def first_to_stop(self) -> int | None:
        """The phase that stops scaling first, of those that take more than a hundredth of a run; of several
        at the same p that with the largest part of the run on the largest p; None if none stops."""
        part = self.data.duration / self.data.duration.sum(axis=1, keepdims=True)
        last = part[self.data.p == self.largest].mean(axis=0)
        turns = [
            (turn.p, -float(last[k]), k)
            for k in range(len(self.phases))
            if (turn := self.stops(k)) is not None and np.isfinite(turn.p) and (part[:, k] > 0.01).any()
        ]
        return min(turns)[2] if turns else None

    def lasting_part(self, phase: int) -> Band:
        """Part (1,) of a phase's time at the least p that no number of processors removes: that of the
        functions that do not fall with p."""
        law, at = self.phases[phase], columns(np.array([self.least]))[0]
        lasting = [_NAMES.index(name) for name in ("1", "log(p)", "p")]
        constant = law.weights[:, lasting] @ at[lasting]
        first = law.weights @ at
        return band((constant / np.maximum(first, 1e-300))[:, None])

    def efficiencies(self, p: Floats, phase: int | None = None) -> dict[str, Floats]:
        """Draws (draws, P) of `EFFICIENCIES` (parts of 1) of a phase or, from the sums over its phases, of
        the run; empty where the parts are not known. NaN without computing. Computation scaling: work at the
        least p over work at p."""
        if not self.parts:
            return {}
        p = np.asarray(p, np.float64)
        phases = range(len(self.phases)) if phase is None else (phase,)
        at = np.append(p, self.least)
        clean, _ = self.durations(at)
        rng = np.random.default_rng([19, 2])
        computing, most, total = (np.zeros((DRAWS, at.size)) for _ in range(3))
        for k in phases:
            parts = self._parts_at(k, at, clean[:, k], rng)
            computing, most = computing + parts[0], most + parts[0] + parts[1]
            total = total + clean[:, k]
        # the reference is the law at the least p, not another noisy run there
        every = _pop(computing, most, total, at, np.median(computing[:, -1] * self.least))
        return {name: values[:, :-1] for name, values in every.items()}

    def _parts_at(self, phase: int, p: Floats, total: Floats, rng: np.random.Generator) -> Floats:
        """(3, draws, P) parts of a phase, which add up to `total`."""
        parts = np.zeros((len(PARTS), DRAWS, p.size))
        for i, law in enumerate(self.parts[phase]):
            if law is not None:
                clean = law.times(p)
                error = law.spread[:, None] * rng.standard_normal((DRAWS, 1))
                parts[i] = np.maximum(clean + error * np.maximum(clean, _FLOOR * total), 0.05 * clean)
        # Parts with the least uncertainty change least; by factors, so that none becomes zero.
        middle = np.maximum(np.median(parts, axis=1), 1e-3 * np.median(total, axis=0))
        open_ = np.sqrt([_variance(one) for one in parts]) / np.maximum(middle, 1e-300)
        power = (open_ / np.maximum(open_.max(axis=0), 1e-300))[:, None]
        parts *= (total / np.maximum(parts.sum(axis=0), np.maximum(1e-3 * total, 1e-300))) ** power
        return np.asarray(parts * (total / np.maximum(parts.sum(axis=0), 1e-300)))

    def measured_efficiencies(self, phase: int | None = None) -> dict[str, Floats]:
        """(R,) `EFFICIENCIES` of the runs themselves; computation scaling is relative to the least p."""
        parts = self.data.parts
        if parts is None:
            return {}
        sums = parts.sum(axis=1) if phase is None else parts[:, phase]
        first = float(np.mean((sums[:, 0] * self.data.p)[self.data.p == self.least]))
        return _pop(sums[:, 0], sums[:, :2].sum(axis=1), sums.sum(axis=1), self.data.p, first)

    def account_parts(self, phase: int, p: Floats) -> Floats:
        """(A, P): median seconds of a processor in each account, which add up to the phase."""
        p = np.asarray(p, np.float64)
        total = np.median(self.durations(p, noise=False)[0][:, phase], axis=0)
        laws = self.accounts[phase]
        parts = np.stack([
            np.zeros(p.size) if law is None else np.median(law.times(p), axis=0) for law in laws
        ])  # fmt: skip
        return np.asarray(parts * (total / np.maximum(parts.sum(axis=0), 1e-300)))


def _pop(computing: Floats, most: Floats, total: Floats, p: Floats, first: float) -> dict[str, Floats]:
    """POP efficiencies from mean and largest computing time of a processor and the duration at p; `first`:
    the reference work."""
    with np.errstate(divide="ignore", invalid="ignore"):
        efficiencies = {
            "parallel": computing / total,
            "load balance": np.where(most > 0, computing / most, np.nan),
            "communication": most / total,
            "computation scaling": np.where(computing > 0, first / (computing * p), np.nan),
        }
    efficiencies["global"] = efficiencies["parallel"] * efficiencies["computation scaling"]
    return efficiencies


def _slope(p: Floats, times: Floats) -> Floats:
    """(draws, P) exponent of times (draws, P) over p."""
    return np.asarray(np.gradient(np.log(np.maximum(times, 1e-300)), np.log(p), axis=1))


def _variance(draws: Floats) -> Floats:
    """(P,) variance of draws (draws, P) from their quartiles, as a few draws may be far off."""
    low, high = np.quantile(draws, (0.25, 0.75), axis=0)
    return np.asarray(((high - low) / 1.349) ** 2)


def _stretched(draws: Floats, low: Floats, middle: Floats, high: Floats) -> Floats:
    """Draws (draws, ...) transformed so that their median and `_TAILS` become `middle`, `low`, `high` (...),
    linear in the logarithm on each side."""
    first, centre, last = np.log(np.quantile(np.maximum(draws, 1e-300), (_TAILS[0], 0.5, _TAILS[1]), axis=0))
    low, middle, high = (np.log(np.maximum(one, 1e-300)) for one in (low, middle, high))
    below = np.maximum(middle - low, 0.0) / np.maximum(centre - first, 1e-9)
    above = np.maximum(high - middle, 0.0) / np.maximum(last - centre, 1e-9)
    off = np.log(np.maximum(draws, 1e-300)) - centre
    stretched = off * np.where(off < 0, below, above)
    # A median near 0 below an end that is not would stretch draws to infinity.
    moved = middle - np.log(np.median(np.exp(np.minimum(stretched, 700.0)), axis=0))
    return np.asarray(np.exp(np.minimum(stretched + moved, 700.0)), np.float64)


def _turn(grid: Floats, reached: Flags) -> Turn | None:
    """The p of `grid` (P,) from which on `reached` (draws, P) holds up to the end."""
    # From the far end, so that what ends again does not count.
    after = np.logical_and.accumulate(reached[:, ::-1], axis=1)[:, ::-1]
    at = np.where(after.any(axis=1), grid[np.argmax(after, axis=1)], np.inf)
    ends = (_TAILS[0], 0.5, _TAILS[1])
    low, middle, high = (float(np.sort(at)[int(q * (at.size - 1))]) for q in ends)
    return None if np.isinf(low) else Turn(middle, low, high, float(np.isfinite(at).mean()))


def model_phases(data: ScalingRuns, speed: Floats | None = None) -> PhaseModel:
    """Laws of all phases, of the run, and of the phases' parts and accounts. `speed` (blocks, R, functions):
    of the systems of the runs; each block has equally many draws. Parts and accounts use every `FEWER`th
    block.

    Raises
    ------
    ValueError : fewer than `FEWEST` different p, or a phase without time.
    """
    count, p = len(data.phases), data.p
    whole = data.duration.sum(axis=1)
    blocks = [None] if speed is None else list(speed)
    ends = block_ends(len(blocks))
    drawings = [_Drawing(k + 1) for k in range(count)]
    for b, block in enumerate(blocks):
        weighed = [weigh(p, data.duration[:, k], None, k + 1, whole, block) for k in range(count)]
        likely = np.array([spreads_of(one) for one in weighed])
        total = likely.sum(axis=0)
        for k, one in enumerate(weighed):
            drawings[k].add(one, _ALIKE * (total - likely[k]) / max(count - 1, 1), ends[b], ends[b + 1])

    def part(values: Floats, of: Floats, seed: int) -> Law | None:
        """The law of a part of a phase; None where it takes no time."""
        if not (values > 1e-4 * of).any():
            return None
        some = None if speed is None else speed[::FEWER]
        return learn(p, np.maximum(values, 0.0), np.maximum(values, _FLOOR * of), seed, some)

    def below(values: Floats | None, first: int) -> tuple[tuple[Law | None, ...], ...]:
        if values is None:
            return ()
        width = values.shape[2]
        return tuple(
            tuple(part(values[:, k, i], data.duration[:, k], first + k * width + i) for i in range(width))
            for k in range(count)
        )

    return PhaseModel(
        data, tuple(one.law() for one in drawings), learn(p, whole, speed=speed),
        below(data.parts, 100), below(data.accounts, 100 + len(PARTS) * count),
    )  # fmt: skip


def block_ends(blocks: int) -> list[int]:
    """(blocks + 1) indices where the draws of each block begin, and where the last ends."""
    return [int(end) for end in np.rint(np.linspace(0, DRAWS, blocks + 1))]

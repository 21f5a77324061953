"""Phases: the n polynomials whose largest error is least, for one n or for all up to a limit.

Worley's problem (ORNL/TM-11637, 1990): split a curve into n phases, each with its own best polynomial of
degree at most k, so that the largest local L2 error, *epsilon*, is least. Breaks may lie inside a step.
Epsilon is unique and certifies itself: for any partition into n phases, least local error <= epsilon* <=
largest local error. The breaks often are not unique, so each comes with the range it may lie in.

The models:

* ``constant``, ``linear``, ``quadratic``: one degree for all phases.
* ``mixed``: the paper's heuristic (section 5.1), which favours the simpler polynomial where it explains
  nearly as much. Local errors are weighted: a constant's squared error counts twice, a linear's 4/3.
  Its good tolerances are no interval; the first one above the quadratic epsilon is taken.
* ``budget``: mixed degrees with one right answer. n is the number of parameters, 2, 3, 4 for a constant,
  linear, quadratic phase (one is its start); the largest unweighted error over all partitions and all
  choices of degree is least.
* the rows of `desktop.core.bases.TABLE`, ``periodic`` and ``saturation``: {1, t, cos wt, sin wt} and
  {1, t, exp(-rt)} for all phases, with one w or r for the whole curve (`Basis`; `desktop.core.rates` searches
  it). ``budget`` and ``mixed`` may choose them too where a basis is given, for 5 and 4 parameters; ``mixed``
  takes the degree that gets furthest for them.

The work is done by `desktop.core.partition` on the moment tree of `desktop.core.tree`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from desktop.core import bases, labels, partition
from desktop.core.arrays import AnyArray, Bytes, Flags, Floats, Ints
from desktop.core.curve import StepCurve
from desktop.core.frames import TABLES, frame
from desktop.core.spaces import Basis, evaluate, kernels, with_basis
from desktop.core.tree import MomentTree
from desktop.progress import ENDING, Cancelled

if TYPE_CHECKING:
    from pandas import DataFrame

MODELS = tuple(labels.MODELS)


#: What a fit says whose breakpoints were given.
BY_HAND = "breakpoints given by hand"
#: What it says whose breakpoints were chosen by `desktop.core.choice`.
AS_SUGGESTED = "breakpoints as suggested"
# A phase whose error is within this part of epsilon determines epsilon.
_TIGHT = 1e-6
# A time given in seconds that is this many rounding units from an edge is the edge.
_SNAP = 4
#: Numbers of coefficients by degree; what a phase costs in the budget model is one more, for its start.
TERMS = np.array([1, 2, 3, *(space.terms for space in bases.TABLE)])
# Share of the (squared) tolerance by degree: the paper's weights 2, 4/3, 1 for its mixed model, which are a
# phase's parameters over those of a parabola; so 4/5 and 1 for other functions.
_SHARE = (TERMS + 1) / 4


@dataclass(frozen=True, eq=False)
class PhaseFit:
    """n phases and their polynomials; times in seconds on the curve's own axis, heights in processors.

    Attributes
    ----------
    model, requested : as asked; `requested` counts phases, parameters for ``budget``.
    n : number of phases, at most `requested`; `note` says why when it is less.
    breaks : (n+1,) start, the breaks, end.
    breakpoint_low, breakpoint_high : (n+1,) each may move within this range without raising epsilon, the
        others moving with it; with given degrees for ``mixed`` and ``budget``.
    index, offset : (n+1,) the breaks exactly: time ``edges[index] + offset`` in the curve's ticks, the
        offset negative when counted from the right edge of step ``index - 1``.
    duration : (n,) lengths, accurate even where neighbouring `breaks` differ only in their last digits.
    degree : (n,) degree of each polynomial; above 2 the number of a space (3 periodic, 4 saturating).
    coefficients : (n, 4) Legendre coefficients on the phase's own s in [-1, 1], 0 above the degree; of other
        functions those of their orthogonal basis (`desktop.core.spaces`). The first is the phase's mean.
    powers : (n, 3) coefficients of (t - start)^0, ^1, ^2 as in the paper (processors and seconds); with a
        basis (n, 4), of a phase made of it those of its `natural` functions.
    error : (n,) local L2 errors, processors * sqrt(s), unweighted.
    epsilon : the largest local error; weighted by sqrt(2), sqrt(4/3), 1 for ``mixed``.
    sse : total squared error, processors² * s.
    lower, upper : epsilon* lies between them; `upper` is `epsilon`. For ``mixed``, whose good tolerances
        are no interval, `lower` is the quadratic epsilon* (with a basis that of the best choice among all),
        which no good tolerance is below. For breaks
        given by hand they are the least and the largest local error, and epsilon*(n) lies between.
    equidistribution : least over largest local error (weighted for ``mixed``); 1 is perfect.
    tight : (n,) which phases reach epsilon.
    names : (n,) what the phases are called, () where nobody has named them.
    evaluations, updates : runs of Algorithm K, and merges of moments done in all of them.
    basis : the functions beside polynomials that were asked for, if any.
    """

    model: str
    requested: int
    n: int
    breaks: Floats
    breakpoint_low: Floats
    breakpoint_high: Floats
    index: Ints
    offset: Floats
    duration: Floats
    degree: Ints
    coefficients: Floats
    powers: Floats
    error: Floats
    epsilon: float
    sse: float
    lower: float
    upper: float
    equidistribution: float
    tight: Flags
    evaluations: int
    updates: int
    note: str
    names: tuple[str, ...] = ()
    basis: Basis | None = None

    @property
    def searched(self) -> bool:
        """Whether its breakpoints are those of the least error; else nobody has looked for their ranges."""
        return self.note not in (BY_HAND, AS_SUGGESTED)

    @property
    def ranges(self) -> Floats:
        """(n,) how long the range is of each phase's end; NaN where nobody has looked for it."""
        columns = self.columns()
        length: Floats = columns["end_high_s"] - columns["end_low_s"]
        # What rounding alone makes of a fixed breakpoint is no range.
        return np.where(length <= 1e-9 * (self.breaks[-1] - self.breaks[0]), 0.0, length)

    @property
    def worst(self) -> int:
        """The phase (from 0) that has the largest local error, weighted for ``mixed``."""
        weights = np.sqrt(_SHARE[self.degree]) if self.model == "mixed" else 1.0
        return int(np.argmax(self.error / weights))

    @property
    def limit(self) -> str:
        """That the search for the basis ended at its limit, in words; "" where it did not."""
        from desktop.core.rates import at_limit

        return "" if self.basis is None else at_limit(self.basis, float(self.breaks[-1] - self.breaks[0]))

    @property
    def rate(self) -> float:
        """Of the basis; 1 where there is none."""
        return 1.0 if self.basis is None else self.basis.rate

    def value(self, t: ArrayLike) -> Floats:
        """Fitted processors at times `t` (s), in the shape of `t`; NaN outside the curve."""
        times = np.asarray(t, float)
        i = np.clip(np.searchsorted(self.breaks, times, side="right") - 1, 0, self.n - 1)
        u = 2 * (times - self.breaks[i]) / self.duration[i] - 1
        phase = np.ravel(i)
        values, _ = evaluate(
            self.basis, self.degree[phase], self.duration[phase], self.coefficients[phase], np.ravel(u)
        )
        inside = (times >= self.breaks[0]) & (times <= self.breaks[-1])
        return np.where(inside, values.reshape(times.shape), np.nan)

    def to_frame(self) -> DataFrame:
        """``TABLES["phases"]``, one row a phase, index 0 to n - 1."""
        return frame(TABLES["phases"], self.columns())

    def columns(self) -> dict[str, AnyArray]:
        """The columns (n,) of `to_frame`."""
        powers = np.where(np.arange(3) <= self.degree[:, None], self.powers[:, :3], 0.0)
        unknown = np.where(np.arange(1, self.n + 1) < self.n, 0.0 if self.searched else np.nan, 0.0)
        if self.basis is not None:
            for k in np.flatnonzero(self.degree > 2).tolist():
                powers[k] = self.basis.space.at_start(self.rate, self.powers[k].tolist())
        return {
            "phase": np.arange(1, self.n + 1),
            "start_s": self.breaks[:-1],
            "end_s": self.breaks[1:],
            "duration_s": self.duration,
            "degree": self.degree,
            "level": powers[:, 0],
            "slope": powers[:, 1],
            "curvature": powers[:, 2],
            "error": self.error,
            "end_low_s": self.breakpoint_low[1:] + unknown,
            "end_high_s": self.breakpoint_high[1:] + unknown,
        }


@dataclass(frozen=True, eq=False)
class Sweep:
    """Fits of one model for every n in turn."""

    model: str
    fits: tuple[PhaseFit, ...]

    @cached_property
    def n(self) -> Ints:
        """(K,) the numbers asked for: 1..n_max, beginning higher where fewer are impossible (locked breaks;
        ``budget`` needs 2 parameters)."""
        return np.array([fit.requested for fit in self.fits])

    @cached_property
    def epsilon(self) -> Floats:
        """(K,) of the fits."""
        return np.array([fit.epsilon for fit in self.fits], float)

    def fit(self, n: int) -> PhaseFit:
        """The fit for n. KeyError if the sweep has none."""
        i = n - int(self.n[0])
        if not 0 <= i < len(self.fits):
            raise KeyError(n)
        return self.fits[i]

    def bounds(self, fit: PhaseFit) -> tuple[float, float]:
        """Between which errors the least possible one lies for as many phases (or parameters) as `fit` has:
        breaks that are set or suggested prove less than those found for this n."""
        n = fit.requested
        if self.model != fit.model or n not in self.n:
            return float(fit.lower), float(fit.upper)
        best = self.fit(n)
        return max(float(fit.lower), float(best.lower)), min(float(fit.upper), float(best.upper))

    def to_frame(self) -> DataFrame:
        """``TABLES["sweep"]``, one row a fit, by rising n."""
        columns = {
            "n": self.n,
            "phases": [fit.n for fit in self.fits],
            "epsilon": self.epsilon,
            "sse": [fit.sse for fit in self.fits],
            "equidistribution": [fit.equidistribution for fit in self.fits],
        }
        return frame(TABLES["sweep"], columns)


def fit(
    curve: StepCurve,
    n: int,
    model: str = "mixed",
    *,
    locked: Sequence[float] = (),
    bounds: tuple[float, float] | None = None,
    stop: Bytes | None = None,
    basis: Basis | str | None = None,
) -> PhaseFit:
    """The best n phases of a model.

    Parameters
    ----------
    n : number of phases, at least 1; for ``budget`` number of parameters, at least 2.
    locked : times (s) inside the curve that must be breaks; phases end there whatever their error.
    bounds : what is known of epsilon, such as (0, epsilon of n-1). Tried first and never believed: a
        wrong one costs an evaluation, not the answer.
    stop : array of one byte; the work ends soon after it becomes nonzero.
    basis : what ``periodic`` and ``saturation`` phases are made of (searched if not given, `basis_of`), and
        what ``budget`` and ``mixed`` may choose beside polynomials: "periodic" or "saturation" alone is
        searched. Not read for the other models.

    Raises
    ------
    ValueError : unknown model, n too small for the model or for the locked breaks, locked time outside, a
        basis of another model.
    Cancelled : `stop` was set.
    """
    tries = np.zeros(0) if bounds is None else np.array([b * b / curve.unit for b in bounds], float)
    return _fits(curve, n, n, model, locked, tries, stop, basis)[0]


def sweep(
    curve: StepCurve,
    model: str,
    n_max: int,
    *,
    locked: Sequence[float] = (),
    stop: Bytes | None = None,
    basis: Basis | str | None = None,
) -> Sweep:
    """The best phases for every n up to `n_max`, each fit bounding the next. The rest as for `fit`."""
    least = _least_n(model, len(_stops(curve, locked)[0]) - 1)
    return Sweep(model, tuple(_fits(curve, least, n_max, model, locked, np.zeros(0), stop, basis)))


def extend(
    curve: StepCurve, known: Sweep, n_max: int, *, locked: Sequence[float] = (), stop: Bytes | None = None
) -> Sweep:
    """A sweep of this curve, made with the same `locked` breaks, continued up to `n_max`; as it is where it
    goes as far. The rest as for `fit`."""
    last = int(known.n[-1])
    if n_max <= last:
        return known
    tries = np.array([known.epsilon[-1] ** 2 / curve.unit])
    fits = _fits(curve, last + 1, n_max, known.model, locked, tries, stop, known.fits[-1].basis)
    return Sweep(known.model, (*known.fits, *fits))


def fit_breakpoints(
    curve: StepCurve,
    breaks_s: ArrayLike,
    model: str,
    *,
    degrees: Sequence[int] | None = None,
    like: PhaseFit | None = None,
    basis: Basis | str | None = None,
) -> PhaseFit:
    """The best polynomial for each phase between breaks given by hand.

    For ``mixed`` and ``budget`` the degree of a phase, where it is not given, follows the paper's rule for a
    phase whose end is fixed: quadratic if its squared error is below 1/2 of the constant's and 3/4 of the
    linear's, else linear if below 2/3 of the constant's, else constant. `requested` is the number of phases
    or of parameters.

    Parameters
    ----------
    breaks_s : (n+1,) increasing times in seconds, the first and last the curve's start and end.
    degrees : (n,) degree of each phase, -1 by the rule; read for ``mixed`` and ``budget`` only.
    like : a fit of this curve. Breaks at the same seconds as its own are exactly its own, so that phases
        between them come out bit for bit as they are there; seconds alone may be off by their last digit.

    Raises
    ------
    ValueError : unknown model; breaks that do not increase or do not begin and end with the curve; degrees
        that are not one of -1 to 2, or the basis's own, for each phase; a basis of another model.
    """
    used = _checked(curve, model, basis)
    times = np.asarray(breaks_s, float)
    if times.ndim != 1 or times.size < 2 or not np.isfinite(times).all():
        raise ValueError("breaks must be a list of at least two times in seconds, start and end included")
    inner = np.unique(times[1:-1])
    ends = np.array([curve.start, curve.start + curve.duration])
    if inner.size != times.size - 2 or np.abs(times[[0, -1]] - ends).max() > 1e-9 * np.abs(ends).max():
        raise ValueError(
            f"breaks must increase from the curve's start {ends[0]:g} s to its end {ends[1]:g} s, got {times}"
        )
    j, o = _stops(curve, inner)
    if j.size != times.size:
        raise ValueError(f"two breakpoints are closer together than times can be told apart, got {times}")
    if like is not None:
        same = np.searchsorted(like.breaks, times).clip(max=like.n)
        known = like.breaks[same] == times
        j, o = np.where(known, like.index[same], j), np.where(known, like.offset[same], o)
    given = np.full(j.size - 1, -1) if degrees is None else np.asarray(degrees, np.int64)
    own = used.degree if used else 2
    if given.shape != (j.size - 1,) or not ((given >= -1) & (given <= 2) | (given == own)).all():
        raise ValueError(f"{j.size - 1} phases need as many degrees from 0 to 2, or -1, got {degrees}")
    tree = with_basis(curve, used)
    _, _, _, errors = _described(tree, j, o)
    if model in ("mixed", "budget"):
        e0, e1, e2 = errors[:, :3].T
        fitting = np.where((e2 < e0 / 2) & (e2 < 0.75 * e1), 2, np.where(e1 < 2 / 3 * e0, 1, 0))
        if used is not None:
            rows = np.arange(fitting.size)
            cost = errors[rows, fitting] * (TERMS[fitting] + 1)
            fitting = np.where(errors[:, own] * (TERMS[own] + 1) < cost, own, fitting)
        degree = np.where(given < 0, fitting, given)
    else:
        degree = np.full(j.size - 1, _degree_of(model))
    m = j.size - 1
    requested = int((TERMS[degree] + 1).sum()) if model == "budget" else m
    raw = _Raw(requested, m, (j,) * 3, (o,) * 3, degree.astype(np.int64), 1, m, -1.0, 0.0, BY_HAND)
    fitted = _finish(curve, tree, model, [raw], used)[0]
    # The times as given: by way of ticks they may change in their last digit.
    given_s = np.concatenate((fitted.breaks[:1], times[1:-1], fitted.breaks[-1:]))
    return replace(fitted, breaks=given_s, breakpoint_low=given_s, breakpoint_high=given_s)


def least_n(model: str, locked: Sequence[float] = ()) -> int:
    """The smallest n that a model can have with these breaks locked."""
    return _least_n(model, len(locked) + 1)


def warm_up() -> None:
    """Compile every kernel, or load it from numba's cache, on a tiny curve."""
    curve = StepCurve(np.arange(41.0), np.arange(40) * 7 % 11)
    for model in ("constant", "mixed", "budget"):
        fit(curve, 3, model)


@dataclass(frozen=True)
class _Raw:
    """A partition as the kernels give it, without anything derived.

    ``j, o``, three of (m+1,), are the positions of the breaks, of their lower and of their upper ends.
    """

    requested: int
    m: int
    j: Ints | tuple[Ints, ...]
    o: Floats | tuple[Floats, ...]
    degree: Ints
    evaluations: int
    updates: int
    # Bracket of e in ticks; low negative: only the partition's own errors are known.
    low: float
    high: float
    note: str


def _fits(
    curve: StepCurve,
    first: int,
    last: int,
    model: str,
    locked: Sequence[float],
    tries: Floats,
    stop: Bytes | None,
    basis: Basis | str | None,
) -> list[PhaseFit]:
    """Fits for n = first..last, by the kernels as far as epsilon is positive and exactly where it is 0."""
    used = _checked(curve, model, basis)
    if isinstance(last, bool) or not isinstance(last, int | np.integer):
        raise ValueError(f"the number of phases must be a whole number, got {last!r}")
    tree = with_basis(curve, used)
    j, o = _stops(curve, locked)
    least = _least_n(model, j.size - 1)
    if min(first, last) < least:
        what = "parameters" if model == "budget" else "phases"
        locks = f" with {j.size - 2} locked breakpoints" if j.size > 2 else ""
        raise ValueError(f"the {model} model needs at least {least} {what}{locks}, got {min(first, last)}")
    exact_j, exact_o = _runs(tree, j, o, last)
    price = 2 if model == "budget" else 1
    # From this n on every run of equal height can be a phase of its own, and epsilon is 0.
    enough = price * (exact_j.size - 1) if exact_j.size else last + 1
    raws = []
    if first < enough:
        raws = _solve(tree, j, o, model, first, min(last, enough - 1), tries, stop)
    m = exact_j.size - 1
    for n in range(max(first, enough), last + 1):
        exactly = "1 phase reproduces" if m == 1 else f"{m} phases reproduce"
        note = "" if price * m == n else f"{exactly} the curve exactly"
        zeros = np.zeros(m, np.int64)
        raws.append(_Raw(n, m, (exact_j,) * 3, (exact_o,) * 3, zeros, 0, 0, 0.0, 0.0, note))
    return _finish(curve, tree, model, raws, used)


def _solve(
    tree: MomentTree,
    sj: Ints,
    so: Floats,
    model: str,
    first: int,
    last: int,
    tries: Floats,
    stop: Bytes | None,
) -> list[_Raw]:
    flag = np.frombuffer(ENDING, np.uint8) if stop is None else stop.view(np.uint8)
    rows = last - first + 1
    degree = np.zeros((rows, last), np.int64)
    j = np.zeros((rows, 3, last + 1), np.int64)
    o = np.zeros((rows, 3, last + 1))
    count = np.zeros((rows, 3), np.int64)
    bracket = np.zeros((rows, 2))
    number = MODELS.index(model)
    if not partition.solve(tree, sj, so, number, first, last, tries, flag, degree, j, o, count, bracket):
        raise Cancelled
    raws = []
    for r in range(rows):
        m, evaluations, updates = (int(x) for x in count[r])
        n = first + r
        used = int((TERMS[degree[r, :m]] + 1).sum()) if model == "budget" else m
        note = ""
        if used < n:
            what = f"{used} parameters" if model == "budget" else f"{m} phases"
            note = f"{what} suffice: one more does not lower epsilon"
        raws.append(
            _Raw(
                n, m, j[r, :, : m + 1], o[r, :, : m + 1], degree[r, :m],
                evaluations, updates, float(bracket[r, 0]), float(bracket[r, 1]), note,
            )
        )  # fmt: skip
    return raws


def _finish(
    curve: StepCurve, tree: MomentTree, model: str, raws: list[_Raw], basis: Basis | None
) -> list[PhaseFit]:
    """Everything derived from the partitions, for all of them in a handful of array operations."""
    widths, coefficients, others, errors = _described(
        tree,
        np.concatenate([raw.j[0] for raw in raws]),
        np.concatenate([raw.o[0] for raw in raws]),
        np.cumsum([raw.m + 1 for raw in raws])[:-1],
    )
    degree = np.concatenate([raw.degree for raw in raws])
    if model not in ("mixed", "budget"):
        degree = np.full(degree.size, _degree_of(model))
    squared = errors[np.arange(degree.size), degree]
    weighted = squared / _SHARE[degree] if model == "mixed" else squared
    coefficients[np.arange(4) > degree[:, None]] = 0.0
    duration = widths * curve.unit
    c0, c1, c2, none = coefficients.T
    powers = np.stack([c0 - c1 + c2, (2 * c1 - 6 * c2) / duration, 6 * c2 / (duration * duration)], axis=1)
    if basis is not None:
        powers = np.column_stack([powers, none])
        own = np.flatnonzero(degree == basis.degree)
        coefficients[own] = others[own]
        for k in own.tolist():
            powers[k] = basis.space.natural(basis.rate, float(duration[k]), coefficients[k].tolist())
    local = np.sqrt(squared * curve.unit)
    begin = np.cumsum([0] + [raw.m for raw in raws[:-1]])
    highest = np.maximum.reduceat(weighted, begin).tolist()
    lowest = np.minimum.reduceat(weighted, begin).tolist()
    total = (np.add.reduceat(squared, begin) * curve.unit).tolist()
    # Between locked breaks a good tolerance of the heuristic may exceed all errors and yet be least.
    tops = [
        max(worst, raw.high) if model == "mixed" else worst for raw, worst in zip(raws, highest, strict=True)
    ]
    tight = weighted >= np.repeat(tops, [raw.m for raw in raws]) * (1 - 2 * _TIGHT)
    breaks, low, high = (
        _seconds(
            curve, np.concatenate([raw.j[i] for raw in raws]), np.concatenate([raw.o[i] for raw in raws])
        )
        for i in range(3)
    )
    np.minimum(low, breaks, out=low)
    np.maximum(high, breaks, out=high)
    fits = []
    for i, (raw, at, top) in enumerate(zip(raws, begin.tolist(), tops, strict=True)):
        cut = slice(at, at + raw.m)
        # One fit after the other there is one break more than phases.
        ends = slice(at + i, at + i + raw.m + 1)
        epsilon = math.sqrt(top * curve.unit)
        lower = lowest[i] if raw.low < 0 else min(raw.low, top)
        fits.append(
            PhaseFit(
                model=model,
                requested=int(raw.requested),
                n=raw.m,
                breaks=breaks[ends],
                breakpoint_low=low[ends],
                breakpoint_high=high[ends],
                index=raw.j[0],
                offset=raw.o[0],
                duration=duration[cut],
                degree=degree[cut],
                coefficients=coefficients[cut],
                powers=powers[cut],
                error=local[cut],
                epsilon=epsilon,
                sse=total[i],
                lower=math.sqrt(lower * curve.unit),
                upper=epsilon,
                equidistribution=math.sqrt(lowest[i] / highest[i]) if highest[i] > 0 else 1.0,
                tight=tight[cut],
                evaluations=raw.evaluations,
                updates=raw.updates,
                note=raw.note,
                basis=basis,
            )
        )
    return fits


def parabolas(curve: StepCurve, fit: PhaseFit) -> Floats:
    """(n, 3) Legendre coefficients of the curve's best parabola in each phase of a fit of it, whatever the
    phase itself is made of."""
    return _described(with_basis(curve, None), fit.index, fit.offset)[1][:, :3]


def _described(
    tree: MomentTree, j: Ints, o: Floats, joints: NDArray[np.intp] | None = None
) -> tuple[Floats, Floats, Floats, Floats]:
    """Widths (m,), coefficients (m, 4) of quadratics and of the tree's own functions, and errors by degree
    (m, degrees) of the intervals between positions; none spans a joint of two lists."""
    pairs_j = np.stack([j[:-1], j[1:]], axis=1)
    pairs_o = np.stack([o[:-1], o[1:]], axis=1)
    if joints is not None:
        keep = np.ones(len(pairs_j), bool)
        keep[joints - 1] = False
        pairs_j, pairs_o = pairs_j[keep], pairs_o[keep]
    m = len(pairs_j)
    width, (c, others), error = np.empty(m), np.zeros((2, m, 4)), np.full((m, TERMS.size), np.inf)
    partition.describe(tree, pairs_j, pairs_o, width, c, error)
    if tree.space:
        kernels(bases.TABLE[tree.space - bases.FIRST].model).describe(tree, pairs_j, pairs_o, others, error)
    return width, c, others, error


def _seconds(curve: StepCurve, j: Ints, o: Floats) -> Floats:
    return (curve.edges[j] + o) * curve.unit


def _stops(curve: StepCurve, locked: Sequence[float] | Floats) -> tuple[Ints, Floats]:
    """Positions of the start, the locked times (s) and the end, in order and without repetition."""
    edges = curve.edges
    times = np.unique(np.asarray(locked, float)) / curve.unit
    if times.size and not (np.isfinite(times).all() and edges[0] < times[0] and times[-1] < edges[-1]):
        end = curve.start + curve.duration
        raise ValueError(
            f"locked breaks must lie inside the curve, between {curve.start:g} s and {end:g} s, "
            f"got {list(locked)}"
        )
    j = np.searchsorted(edges, times, side="right") - 1
    o = times - edges[j]
    for side in (0, 1):
        near = np.abs(times - edges[j + side]) <= _SNAP * np.spacing(np.abs(times))
        j, o = np.where(near, j + side, j), np.where(near, 0.0, o)
    # A time next to the curve's start or end, or twice the same edge, is no break of its own.
    keep = (j > 0) | (o > 0)
    keep &= j < curve.segments
    keep[1:] &= (np.diff(j) > 0) | (np.diff(o) > 0)
    j, o = j[keep], o[keep]
    return (np.concatenate(([0], j, [curve.segments])).astype(np.int64), np.concatenate(([0.0], o, [0.0])))


def _runs(tree: MomentTree, sj: Ints, so: Floats, limit: int) -> tuple[Ints, Floats]:
    """Positions of all changes of height and all stops; empty when they make more than `limit` phases."""
    if tree.runs > limit:
        return np.zeros(0, np.int64), np.zeros(0)
    changes = np.flatnonzero(np.diff(tree.level - tree.reference)) + 1
    # As complex numbers positions sort by index, then offset.
    both = np.unique(np.concatenate([changes.astype(complex), sj + 1j * so]))
    return both.real.astype(np.int64), both.imag.copy()


def _least_n(model: str, stretches: int) -> int:
    return 2 * stretches if model == "budget" else stretches


def _degree_of(model: str) -> int:
    """Of all phases of a model with one degree."""
    return bases.degree_of(model) if bases.space_of(model) else MODELS.index(model)


def _checked(curve: StepCurve, model: str, basis: Basis | str | None) -> Basis | None:
    """The basis, as far as the model reads it; searched where the model needs one and none is given."""
    if model not in MODELS:
        raise ValueError(f"the model must be one of {', '.join(MODELS)}, got {model!r}")
    if model not in labels.OWN_BASIS:
        if model not in ("mixed", "budget"):
            return None
        return basis_of(curve, basis) if isinstance(basis, str) else basis
    if basis is None or isinstance(basis, str):
        return basis_of(curve, model)
    if basis.model != model:
        raise ValueError(f"the {model} model needs a basis of its kind, got {basis}")
    return basis


def basis_of(curve: StepCurve, model: str) -> Basis:
    """What phases of a space are made of in this curve: searched at the first call (some tenths of a second,
    `desktop.core.rates`) and found in ``curve.summaries`` afterwards. Spaces without a scale have no rate."""
    from desktop.core import rates

    if bases.TABLE[bases.degree_of(model) - bases.FIRST].scale is None:
        return Basis(model, 0.0)
    known = curve.summaries.get(f"rate, {model}")
    if not isinstance(known, Basis):
        coarse = rates.means(curve)
        middle = (coarse.edges[1:] + coarse.edges[:-1]) / 2
        left = [coarse.level - fit(coarse, n, "quadratic").value(middle) for n in (1, 8)]
        known = rates.search_rate(
            coarse, model, left, lambda of, n, basis: fit(of, n, model, basis=basis).epsilon
        )
        curve.summaries[f"rate, {model}"] = known
    return known

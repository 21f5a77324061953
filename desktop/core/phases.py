"""Phases: the n polynomials whose largest error is least, for one n or for all up to a limit.

Worley's problem (ORNL/TM-11637, 1990): split a curve into n phases, each with its own best polynomial of
degree at most k, so that the largest local L2 error, *epsilon*, is least. Breakpoints may lie inside a step.
Epsilon is unique, and every partition into n phases bounds it: least local error <= epsilon* <= largest local
error. Breakpoints often are not unique, so each comes with the range in which it may lie.

The models:

* ``constant``, ``linear``, ``quadratic``: one degree for all phases.
* ``mixed``: the paper's heuristic (section 5.1), which favours the simpler polynomial where it explains
  nearly as much. Local errors are weighted: a constant's squared error counts twice, a linear's 4/3.
  The tolerances that suffice for n phases (*good* ones) are no interval; the first one above the quadratic
  epsilon is taken.
* ``budget``: mixed degrees, optimised exactly. n is the number of parameters, 2, 3, 4 for a constant,
  linear, quadratic phase (one is its start); the largest unweighted error is minimised over all partitions
  and all choices of degree.
* the rows of `desktop.core.bases.TABLE`, ``periodic`` and ``saturation``: {1, t, cos wt, sin wt} and
  {1, t, exp(-rt)} for all phases, with one w or r for the whole curve (`Basis`; `desktop.core.rates` searches
  it). ``budget`` and ``mixed`` may choose them too where a basis is given, for 5 and 4 parameters; ``mixed``
  then takes the degree that reaches furthest for its parameters.

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


#: `note` of a fit with given breakpoints.
BY_HAND = "breakpoints given by hand"
#: `note` of a fit with breakpoints chosen by `desktop.core.choice`.
AS_SUGGESTED = "breakpoints as suggested"
# A phase determines epsilon if its error is epsilon up to this part.
_TIGHT = 1e-6
# A time in seconds within this many rounding units of an edge is that edge.
_SNAP = 4
#: Number of coefficients by degree; a phase of the budget model has one parameter more, its start.
TERMS = np.array([1, 2, 3, *(space.terms for space in bases.TABLE)])
# Share of the squared tolerance by degree in the mixed model: a phase's parameters over those of a parabola,
# which are the inverse of the paper's weights 2, 4/3, 1; so 5/4 and 1 for other functions.
_SHARE = (TERMS + 1) / 4


@dataclass(frozen=True, eq=False)
class PhaseFit:
    """n phases and their polynomials; times in seconds on the curve's own axis, heights in processors.

    Attributes
    ----------
    model, requested : as requested; `requested` counts phases, parameters for ``budget``.
    n : number of phases, at most `requested`; `note` says why when it is less.
    breaks : (n+1,) start, inner breakpoints, end.
    breakpoint_low, breakpoint_high : (n+1,) the range in which each can move without raising epsilon if the
        others move too; for ``mixed`` and ``budget`` with the degrees of this fit.
    index, offset : (n+1,) exact breakpoints: time ``edges[index] + offset`` in the curve's ticks, the
        offset negative when counted from the right edge of step ``index - 1``.
    duration : (n,) lengths, accurate even where neighbouring `breaks` differ only in their last digits.
    degree : (n,) degree of each polynomial; above 2 the number of a space (3 periodic, 4 saturating).
    coefficients : (n, 4) Legendre coefficients on the phase's own s in [-1, 1], 0 above the degree; for other
        functions those of their orthogonal basis (`desktop.core.spaces`). The first is the phase's mean.
    powers : (n, 3) coefficients of (t - start)^0, ^1, ^2 as in the paper (processors and seconds); with a
        basis (n, 4), where phases of that basis have the coefficients of its `natural` functions.
    error : (n,) local L2 errors, processors * sqrt(s), unweighted.
    epsilon : the largest local error; weighted by sqrt(2), sqrt(4/3), 1 for ``mixed``.
    sse : total squared error, processors² * s.
    lower, upper : epsilon* lies between them; `upper` is `epsilon`. For ``mixed``, whose good tolerances
        are no interval, `lower` is the quadratic epsilon* (with a basis that of the best choice of degrees),
        a lower bound of all good tolerances. For given breakpoints they are the least and the largest local
        error.
    equidistribution : least over largest local error (weighted for ``mixed``); 1 is perfect.
    tight : (n,) which phases reach epsilon.
    names : (n,) names of the phases, () if they have none.
    evaluations, updates : runs of Algorithm K, and merges of moments in all of them.
    basis : the requested functions besides polynomials, if any.
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
    equidistribution: float
    tight: Flags
    evaluations: int
    updates: int
    note: str
    names: tuple[str, ...] = ()
    basis: Basis | None = None

    @property
    def upper(self) -> float:
        return self.epsilon

    @property
    def searched(self) -> bool:
        """Whether breakpoints were searched for the least error; otherwise their ranges are not known."""
        return self.note not in (BY_HAND, AS_SUGGESTED)

    @property
    def ranges(self) -> Floats:
        """(n,) length (s) of the range of each phase's end; NaN where it is not known."""
        columns = self.columns()
        length: Floats = columns["end_high_s"] - columns["end_low_s"]
        # A range within rounding is that of a fixed breakpoint.
        return np.where(length <= 1e-9 * (self.breaks[-1] - self.breaks[0]), 0.0, length)

    @property
    def worst(self) -> int:
        """Index of the phase with the largest local error, weighted for ``mixed``."""
        weights = np.sqrt(_SHARE[self.degree]) if self.model == "mixed" else 1.0
        return int(np.argmax(self.error / weights))

    @property
    def limit(self) -> str:
        """A sentence if the search for the basis ended at one of its limits, else ""."""
        from desktop.core.rates import at_limit

        return "" if self.basis is None else at_limit(self.basis, float(self.breaks[-1] - self.breaks[0]))

    @property
    def rate(self) -> float:
        """The rate of the basis; 1 without one."""
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
    """Fits of one model for consecutive n."""

    model: str
    fits: tuple[PhaseFit, ...]

    @cached_property
    def n(self) -> Ints:
        """(K,) the requested numbers: 1..n_max, or from the least possible one on (`least_n`)."""
        return np.array([fit.requested for fit in self.fits])

    @cached_property
    def epsilon(self) -> Floats:
        """(K,) epsilon of the fits."""
        return np.array([fit.epsilon for fit in self.fits], float)

    def fit(self, n: int) -> PhaseFit:
        """The fit for n; KeyError if the sweep has none."""
        i = n - int(self.n[0])
        if not 0 <= i < len(self.fits):
            raise KeyError(n)
        return self.fits[i]

    def bounds(self, fit: PhaseFit) -> tuple[float, float]:
        """Bounds of the least possible epsilon for as many phases (or parameters) as `fit` has. Set or
        suggested breakpoints alone give wider bounds than the sweep's fit for this n."""
        n = fit.requested
        if self.model != fit.model or n not in self.n:
            return float(fit.lower), float(fit.upper)
        best = self.fit(n)
        return max(float(fit.lower), float(best.lower)), min(float(fit.upper), float(best.upper))

    def to_frame(self) -> DataFrame:
        """``TABLES["sweep"]``, one row a fit, in ascending n."""
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
    locked : times (s) inside the curve that must be breakpoints, whatever the errors.
    bounds : expected bounds of epsilon, such as (0, epsilon of n-1). They are tried first; wrong ones cost an
        evaluation each, but do not change the result.
    stop : array of one byte; the work ends soon after it becomes nonzero.
    basis : functions of ``periodic`` and ``saturation`` phases (searched by `basis_of` if not given), and
        those that ``budget`` and ``mixed`` may choose besides polynomials; the basis of a name, "periodic" or
        "saturation", is searched. Ignored for the other models.

    Raises
    ------
    ValueError : unknown model, n too small for the model or the locked breakpoints, a locked time outside of
        the curve, a basis of another model.
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
    """The best phases for every n up to `n_max`; each fit bounds the next. Other parameters as for `fit`."""
    least = _least_n(model, len(_stops(curve, locked)[0]) - 1)
    return Sweep(model, tuple(_fits(curve, least, n_max, model, locked, np.zeros(0), stop, basis)))


def extend(
    curve: StepCurve, sweep: Sweep, n_max: int, *, locked: Sequence[float] = (), stop: Bytes | None = None
) -> Sweep:
    """`sweep`, made of this curve with the same `locked` breakpoints, continued up to `n_max`; unchanged
    if it goes that far. Other parameters as for `fit`."""
    last = int(sweep.n[-1])
    if n_max <= last:
        return sweep
    tries = np.array([sweep.epsilon[-1] ** 2 / curve.unit])
    fits = _fits(curve, last + 1, n_max, sweep.model, locked, tries, stop, sweep.fits[-1].basis)
    return Sweep(sweep.model, (*sweep.fits, *fits))


def fit_breakpoints(
    curve: StepCurve,
    breaks_s: ArrayLike,
    model: str,
    *,
    degrees: Sequence[int] | None = None,
    like: PhaseFit | None = None,
    basis: Basis | str | None = None,
) -> PhaseFit:
    """The best polynomial for each phase between given breakpoints.

    For ``mixed`` and ``budget`` the degree of a phase, where it is not given, follows the paper's rule for a
    phase with a fixed end: quadratic if its squared error is below 1/2 of the constant's and 3/4 of the
    linear's, else linear if below 2/3 of the constant's, else constant. `requested` is the number of phases
    or of parameters.

    Parameters
    ----------
    breaks_s : (n+1,) increasing times in seconds, the first and last the curve's start and end.
    degrees : (n,) degree of each phase, -1 by the rule; used for ``mixed`` and ``budget`` only.
    like : a fit of this curve. Breakpoints at the same seconds as its own are exactly its own, so that phases
        between them are equal bit for bit; from seconds alone the last digit may differ.

    Raises
    ------
    ValueError : unknown model; breakpoints that do not increase or do not begin and end with the curve;
        degrees that are not one of -1 to 2, or the basis's own, for each phase; a basis of another model.
    """
    used = _checked(curve, model, basis)
    times = np.asarray(breaks_s, float)
    if times.ndim != 1 or times.size < 2 or not np.isfinite(times).all():
        raise ValueError("breakpoints must be a list of two or more times in seconds, with start and end")
    inner = np.unique(times[1:-1])
    ends = np.array(curve.span)
    if inner.size != times.size - 2 or np.abs(times[[0, -1]] - ends).max() > 1e-9 * np.abs(ends).max():
        raise ValueError(
            f"breakpoints must increase from the curve's start {ends[0]:g} s to its end {ends[1]:g} s, "
            f"got {times}"
        )
    j, o = _stops(curve, inner)
    if j.size != times.size:
        raise ValueError(f"two breakpoints are closer together than times can resolve, got {times}")
    if like is not None:
        same = np.searchsorted(like.breaks, times).clip(max=like.n)
        unmoved = like.breaks[same] == times
        j, o = np.where(unmoved, like.index[same], j), np.where(unmoved, like.offset[same], o)
    forced = np.full(j.size - 1, -1) if degrees is None else np.asarray(degrees, np.int64)
    highest = used.degree if used else 2
    if forced.shape != (j.size - 1,) or not ((forced >= -1) & (forced <= 2) | (forced == highest)).all():
        raise ValueError(f"{j.size - 1} phases need as many degrees from 0 to 2, or -1, got {degrees}")
    tree = with_basis(curve, used)
    _, _, _, errors = _described(tree, j, o)
    if model in labels.MIXING:
        e0, e1, e2 = errors[:, :3].T
        fitting = np.where((e2 < e0 / 2) & (e2 < 0.75 * e1), 2, np.where(e1 < 2 / 3 * e0, 1, 0))
        if used is not None:
            rows = np.arange(fitting.size)
            cost = errors[rows, fitting] * (TERMS[fitting] + 1)
            fitting = np.where(errors[:, highest] * (TERMS[highest] + 1) < cost, highest, fitting)
        degree = np.where(forced < 0, fitting, forced)
    else:
        degree = np.full(j.size - 1, _degree_of(model))
    m = j.size - 1
    requested = int((TERMS[degree] + 1).sum()) if model == "budget" else m
    raw = _Raw(requested, m, (j,) * 3, (o,) * 3, degree.astype(np.int64), 1, m, -1.0, 0.0, BY_HAND)
    fitted = _finish(curve, tree, model, [raw], used)[0]
    # Conversion to ticks and back may change the last digit, so keep the times as given.
    given_s = np.concatenate((fitted.breaks[:1], times[1:-1], fitted.breaks[-1:]))
    return replace(fitted, breaks=given_s, breakpoint_low=given_s, breakpoint_high=given_s)


def least_n(model: str, locked: Sequence[float] = ()) -> int:
    """The smallest n of a model with these locked breakpoints."""
    return _least_n(model, len(locked) + 1)


def warm_up() -> None:
    """Compile every kernel, or load it from numba's cache, on a tiny curve."""
    curve = StepCurve(np.arange(41.0), np.arange(40) * 7 % 11)
    for model in ("constant", "mixed", "budget"):
        fit(curve, 3, model)


@dataclass(frozen=True)
class _Raw:
    """A partition as the kernels return it.

    ``j, o``, three of (m+1,), are the positions of the breakpoints, and of the lower and upper ends of their
    ranges.
    """

    requested: int
    m: int
    j: Ints | tuple[Ints, ...]
    o: Floats | tuple[Floats, ...]
    degree: Ints
    evaluations: int
    updates: int
    # Bracket of e in ticks; negative low: only the partition's own errors bound it.
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
    """Fits for n = first..last: by the kernels where epsilon is positive, directly where it is 0."""
    used = _checked(curve, model, basis)
    if isinstance(last, bool) or not isinstance(last, int | np.integer):
        raise ValueError(f"the number of phases must be a whole number, got {last!r}")
    tree = with_basis(curve, used)
    j, o = _stops(curve, locked)
    least = _least_n(model, j.size - 1)
    if min(first, last) < least:
        noun = "parameters" if model == "budget" else "phases"
        locks = f" with {j.size - 2} locked breakpoint{'s' * (j.size > 3)}" if j.size > 2 else ""
        raise ValueError(f"the {model} model needs at least {least} {noun}{locks}, got {min(first, last)}")
    exact_j, exact_o = _runs(tree, j, o, last)
    price = 2 if model == "budget" else 1
    # From this n on every run of equal height can be a separate phase, and epsilon is 0.
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
            amount = f"{used} parameters" if model == "budget" else f"{m} phases"
            note = f"{amount} suffice: one more does not lower epsilon"
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
    """Fits from partitions; what they derive is computed for all of them in a few array operations."""
    widths, coefficients, by_basis, errors = _described(
        tree,
        np.concatenate([raw.j[0] for raw in raws]),
        np.concatenate([raw.o[0] for raw in raws]),
        np.cumsum([raw.m + 1 for raw in raws])[:-1],
    )
    degree = np.concatenate([raw.degree for raw in raws])
    if model not in labels.MIXING:
        degree = np.full(degree.size, _degree_of(model))
    squared = errors[np.arange(degree.size), degree]
    weighted = squared / _SHARE[degree] if model == "mixed" else squared
    coefficients[np.arange(4) > degree[:, None]] = 0.0
    duration = widths * curve.unit
    c0, c1, c2, none = coefficients.T
    powers = np.stack([c0 - c1 + c2, (2 * c1 - 6 * c2) / duration, 6 * c2 / (duration * duration)], axis=1)
    if basis is not None:
        powers = np.column_stack([powers, none])
        in_space = np.flatnonzero(degree == basis.degree)
        coefficients[in_space] = by_basis[in_space]
        for k in in_space.tolist():
            powers[k] = basis.space.natural(basis.rate, float(duration[k]), coefficients[k].tolist())
    local = np.sqrt(squared * curve.unit)
    begin = np.cumsum([0] + [raw.m for raw in raws[:-1]])
    highest = np.maximum.reduceat(weighted, begin).tolist()
    lowest = np.minimum.reduceat(weighted, begin).tolist()
    total = (np.add.reduceat(squared, begin) * curve.unit).tolist()
    # Between locked breakpoints the least good tolerance of the heuristic may exceed all errors.
    tops = [
        max(worst, raw.high) if model == "mixed" else worst for raw, worst in zip(raws, highest, strict=True)
    ]
    tight = weighted >= np.repeat(tops, [raw.m for raw in raws]) * (1 - 2 * _TIGHT)
    breakpoints, low, high = (
        _seconds(
            curve, np.concatenate([raw.j[i] for raw in raws]), np.concatenate([raw.o[i] for raw in raws])
        )
        for i in range(3)
    )
    np.minimum(low, breakpoints, out=low)
    np.maximum(high, breakpoints, out=high)
    fits = []
    for i, (raw, at, top) in enumerate(zip(raws, begin.tolist(), tops, strict=True)):
        cut = slice(at, at + raw.m)
        # Each fit has one element more in `breaks` than phases.
        ends = slice(at + i, at + i + raw.m + 1)
        epsilon = math.sqrt(top * curve.unit)
        lower = lowest[i] if raw.low < 0 else min(raw.low, top)
        fits.append(
            PhaseFit(
                model=model,
                requested=int(raw.requested),
                n=raw.m,
                breaks=breakpoints[ends],
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
    phase's own degree or functions."""
    return _described(with_basis(curve, None), fit.index, fit.offset)[1][:, :3]


def _described(
    tree: MomentTree, j: Ints, o: Floats, joints: NDArray[np.intp] | None = None
) -> tuple[Floats, Floats, Floats, Floats]:
    """Widths (m,), coefficients (m, 4) of quadratics and of the tree's own functions, and squared errors by
    degree (m, degrees) of the intervals between successive positions, except between lists: `joints` are the
    indices at which the next list starts."""
    pairs_j = np.stack([j[:-1], j[1:]], axis=1)
    pairs_o = np.stack([o[:-1], o[1:]], axis=1)
    if joints is not None:
        keep = np.ones(len(pairs_j), bool)
        keep[joints - 1] = False
        pairs_j, pairs_o = pairs_j[keep], pairs_o[keep]
    m = len(pairs_j)
    width, (c, by_basis), error = np.empty(m), np.zeros((2, m, 4)), np.full((m, TERMS.size), np.inf)
    partition.describe(tree, pairs_j, pairs_o, width, c, error)
    if tree.space:
        kernels(bases.TABLE[tree.space - bases.FIRST].model).describe(tree, pairs_j, pairs_o, by_basis, error)
    return width, c, by_basis, error


def _seconds(curve: StepCurve, j: Ints, o: Floats) -> Floats:
    return (curve.edges[j] + o) * curve.unit


def _stops(curve: StepCurve, locked: Sequence[float] | Floats) -> tuple[Ints, Floats]:
    """Positions of the start, the locked times (s) and the end, in order and without repetition."""
    edges = curve.edges
    times = np.unique(np.asarray(locked, float)) / curve.unit
    if times.size and not (np.isfinite(times).all() and edges[0] < times[0] and times[-1] < edges[-1]):
        start, end = curve.span
        raise ValueError(
            f"locked breakpoints must lie inside the curve, between {start:g} s and {end:g} s, "
            f"got {list(locked)}"
        )
    j = np.searchsorted(edges, times, side="right") - 1
    o = times - edges[j]
    for side in (0, 1):
        near = np.abs(times - edges[j + side]) <= _SNAP * np.spacing(np.abs(times))
        j, o = np.where(near, j + side, j), np.where(near, 0.0, o)
    # A time at the curve's start or end, or the same position twice, is not a further breakpoint.
    keep = (j > 0) | (o > 0)
    keep &= j < curve.segments
    keep[1:] &= (np.diff(j) > 0) | (np.diff(o) > 0)
    j, o = j[keep], o[keep]
    return (np.concatenate(([0], j, [curve.segments])).astype(np.int64), np.concatenate(([0.0], o, [0.0])))


def _runs(tree: MomentTree, sj: Ints, so: Floats, limit: int) -> tuple[Ints, Floats]:
    """Positions of all changes of height and all stops; empty if they bound more than `limit` phases."""
    if tree.runs > limit:
        return np.zeros(0, np.int64), np.zeros(0)
    changes = np.flatnonzero(np.diff(tree.level - tree.reference)) + 1
    # As complex numbers positions sort by index, then offset.
    both = np.unique(np.concatenate([changes.astype(complex), sj + 1j * so]))
    return both.real.astype(np.int64), both.imag.copy()


def _least_n(model: str, stretches: int) -> int:
    return 2 * stretches if model == "budget" else stretches


def _degree_of(model: str) -> int:
    """The degree of all phases of a model with one degree."""
    return bases.degree_of(model) if bases.space_of(model) else MODELS.index(model)


def _checked(curve: StepCurve, model: str, basis: Basis | str | None) -> Basis | None:
    """The basis that the model uses, None if it uses none; searched where a model needs one."""
    if model not in MODELS:
        raise ValueError(f"the model must be one of {', '.join(MODELS)}, got {model!r}")
    if model not in labels.OWN_BASIS:
        if model not in labels.MIXING:
            return None
        return basis_of(curve, basis) if isinstance(basis, str) else basis
    if basis is None or isinstance(basis, str):
        return basis_of(curve, model)
    if basis.model != model:
        raise ValueError(f"the {model} model needs a basis of its kind, got {basis}")
    return basis


def basis_of(curve: StepCurve, model: str) -> Basis:
    """The basis of a model for this curve: searched at the first call (some tenths of a second,
    `desktop.core.rates`), then cached in ``curve.summaries``. Spaces without a scale have no rate."""
    from desktop.core import rates

    if bases.TABLE[bases.degree_of(model) - bases.FIRST].scale is None:
        return Basis(model, 0.0)
    cached = curve.summaries.get(f"rate, {model}")
    if not isinstance(cached, Basis):
        coarse = rates.means(curve)
        middle = (coarse.edges[1:] + coarse.edges[:-1]) / 2
        left = [coarse.level - fit(coarse, n, "quadratic").value(middle) for n in (1, 8)]
        cached = rates.search_rate(
            coarse, model, left, lambda of, n, basis: fit(of, n, model, basis=basis).epsilon
        )
        curve.summaries[f"rate, {model}"] = cached
    return cached

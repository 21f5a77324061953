"""Answers of a factor model: the best functions, left-out cells, crossovers of systems.

Source: Strohmaier, UTK-CS-97-354, tables 2 to 4. The choice by AICc, leaving cells out, crossovers and their
intervals are not in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from desktop.core.arrays import Floats
from desktop.core.characteristic import CHARACTERISTICS, SIZED
from desktop.core.factor_fit import Measurements
from desktop.core.factor_intervals import (
    FARTHEST,
    PInterval,
    criterion,
    curve_variance,
    place_df,
    places,
    quantile,
)
from desktop.core.factor_model import Kind, ModelFit, fit_individual, fit_joint
from desktop.core.factor_response import RESPONSES
from desktop.progress import Progress

#: The characteristic functions of the paper.
THE_SEVEN = tuple(known.text for known in CHARACTERISTICS)
#: Functions that are fitted where AICc cannot choose.
DEFAULT_PAIR = ("1/p", "1/sqrt(p)")


def known_functions(data: Measurements) -> tuple[str, ...]:
    """Functions to compare: the seven, and those of the problem size where it is known."""
    return THE_SEVEN if data.size is None else (*SIZED, *THE_SEVEN)


# --- comparing models ---


def _fit(
    data: Measurements, kind: Kind, functions: Sequence[str], response: str,
    reference: str | None, positive: bool, starts: int,
) -> ModelFit:  # fmt: skip
    """The last three arguments are for joint fits only."""
    if kind == "individual":
        return fit_individual(data, functions, response)
    return fit_joint(data, functions, response, reference=reference, positive=positive, starts=starts)


@dataclass(frozen=True, eq=False)
class Ranking:
    """Fits of all pairs and singles by descending number of measurements, then ascending sum of squares.
    `dropped`: pairs that are no better than one of their functions alone, and sets that could not be fitted,
    with the reason. `best_sse`, `best_npar`: sum of squares if every cell takes its own best pair (individual
    fits only, else NaN), and the number of parameters."""

    fits: tuple[ModelFit, ...]
    dropped: tuple[tuple[tuple[str, ...], str], ...]
    best_sse: float
    best_npar: int


def rank_pairs(
    data: Measurements,
    kind: Kind = "individual",
    response: str = "t'",
    functions: Sequence[str] = THE_SEVEN,
    *,
    reference: str | None = None,
    positive: bool = False,
    starts: int = 3,
    progress: Progress | None = None,
) -> Ranking:
    """Fits of all pairs and singles of `functions` (UTK-CS-97-354, tables 2, 3 and 4).

    Raises
    ------
    ValueError : as `fit_joint` and `fit_individual` where no choice can be fitted.
    """
    progress = progress or Progress()
    sets: list[tuple[str, ...]] = [(f,) for f in functions]
    sets += list(combinations(functions, 2))
    fitted_sets: dict[tuple[str, ...], ModelFit] = {}
    dropped: list[tuple[tuple[str, ...], str]] = []
    last: ValueError | None = None
    for done, subset in enumerate(sets):
        progress.step(done, len(sets), ", ".join(subset))
        try:
            fitted_sets[subset] = _fit(data, kind, subset, response, reference, positive, starts)
        except ValueError as error:
            dropped.append((subset, str(error)))
            last = error
    if not fitted_sets:
        raise last or ValueError("there is nothing to fit")
    for subset in [c for c in fitted_sets if len(c) == 2]:
        for single in ((subset[0],), (subset[1],)):
            alone = fitted_sets.get(single)
            if (
                alone is not None
                and alone.n == fitted_sets[subset].n
                and fitted_sets[subset].sse >= alone.sse * (1 - 1e-9)
            ):
                dropped.append((subset, f"no better than {single[0]} alone"))
                del fitted_sets[subset]
                break
    fits = tuple(sorted(fitted_sets.values(), key=lambda fit: (-fit.n, fit.sse)))
    best_sse, best_npar = float("nan"), 0
    if kind == "individual":
        best_sse, best_npar = _best_of_cells(data, [fit for fit in fits if len(fit.functions) == 2])
    return Ranking(fits, tuple(dropped), best_sse, best_npar)


# --- the functions and the response that fit best ---

#: How many of the best sets of functions are compared in every response.
_RIVALS = 5


@dataclass(frozen=True)
class Rival:
    """An alternative to the chosen fit; `more`: its AICc minus that of the chosen one."""

    functions: tuple[str, ...]
    response: str
    more: float


@dataclass(frozen=True, eq=False)
class FactorChoice:
    """The fit with the least AICc of `tried` combinations of functions and response, and the next best.

    AICc is that of t' for every response, so that logarithms and seconds compare. All fits have the same
    measurements: cells with points at one p only take no part in the choice of individual fits.
    """

    fit: ModelFit
    rivals: tuple[Rival, ...]
    tried: int


def choose(
    data: Measurements,
    kind: Kind,
    functions: Sequence[str] = (),
    response: str = "",
    *,
    reference: str | None = None,
    positive: bool = False,
    progress: Progress | None = None,
) -> FactorChoice:
    """Choose the functions (of all pairs and singles if none are given) and the response ("": any) by AICc.

    Raises
    ------
    ValueError : as `fit_joint` and `fit_individual` where no choice can be fitted.
    """

    def fitted(part: Measurements, subset: Sequence[str], how: str, starts: int) -> ModelFit:
        return _fit(part, kind, subset, how, reference, positive, starts)

    progress = progress or Progress()
    responses = (response,) if response else tuple(r for r in RESPONSES if r != "t" or not data.transformed)
    part = data if kind == "joint" else _wide_cells(data)
    sets: list[tuple[str, ...]] = [tuple(functions)]
    n_fits = len(responses)
    if not functions:
        ranking = rank_pairs(
            part, kind, responses[0], known_functions(data), reference=reference, positive=positive,
            starts=0, progress=progress,
        )  # fmt: skip
        same = [fit for fit in ranking.fits if fit.n == ranking.fits[0].n]
        same.sort(key=lambda fit: (criterion(fit), len(fit.functions)))
        sets = [fit.functions for fit in same if not np.isnan(fit.aicc) or np.isneginf(criterion(fit))]
        sets = sets[:_RIVALS] or [DEFAULT_PAIR]
        n_fits = len(ranking.fits) + len(sets) * (len(responses) - 1)
    if len(sets) * len(responses) == 1:
        return FactorChoice(fitted(data, sets[0], responses[0], 6), (), 1)
    ranked: list[tuple[float, int, str, tuple[str, ...]]] = []
    last: ValueError | None = None
    for subset in sets:
        for how in responses:
            try:
                fit = fitted(part, subset, how, 0)
            except ValueError as error:
                last = error
                continue
            value = criterion(fit)
            bad = np.isnan(value) or fit.status == "not determined"
            ranked.append((np.inf if bad else value, len(subset), how, subset))
    if not ranked:
        raise last or ValueError("there is nothing to fit")
    ranked.sort(key=lambda one: (one[0], one[1]))  # stable: of equals the first in the order of `sets`
    best = ranked[0]
    rivals = tuple(
        Rival(subset, how, float(value - best[0]))
        for value, _, how, subset in ranked[1:]
        if np.isfinite(value) and np.isfinite(best[0])
    )
    return FactorChoice(fitted(data, best[3], best[2], 6), rivals, n_fits)


def _wide_cells(data: Measurements) -> Measurements:
    """Cells with points at two or more p; all where there are none."""
    cell = data.code * len(data.systems) + data.system
    pairs = np.unique(np.stack([cell, data.p], axis=1), axis=0)
    counts = np.bincount(pairs[:, 0].astype(np.int64), minlength=int(cell.max(initial=0)) + 1)
    keep = counts[cell] >= 2
    return data.only(keep) if keep.any() else data


def _best_of_cells(data: Measurements, fits: list[ModelFit]) -> tuple[float, int]:
    """Sum of squares with the best fit of each cell, and its number of parameters (UTK-CS-97-354, table 3,
    row ``best, best``); NaN if no cell is fitted."""
    key = data.code * len(data.systems) + data.system
    best = np.full(int(key.max()) + 1, np.inf)
    for fit in fits:
        inside = np.bincount(key[fit.used], minlength=best.size) > 0
        sse = np.bincount(key, np.where(fit.used, fit.residual, 0.0) ** 2, minlength=best.size)
        best = np.where(inside, np.minimum(best, sse), best)
    finite = np.isfinite(best)
    if not finite.any():
        return float("nan"), 0
    return float(best[finite].sum()), 2 * int(finite.sum())


@dataclass(frozen=True)
class CellCheck:
    """A cell predicted from all others: `error` is the root mean square relative error, NaN with a reason."""

    code: int
    system: int
    points: int
    error: float
    reason: str = ""


def leave_cells_out(fit: ModelFit, progress: Progress | None = None) -> tuple[CellCheck, ...]:
    """Predict every cell by a joint fit to the others (not in the paper).

    Raises
    ------
    ValueError : `fit` is not joint.
    """
    if fit.kind != "joint":
        raise ValueError("only a joint fit can predict a cell from the others")
    progress = progress or Progress()
    data, checks = fit.data, []
    cells = np.unique(np.stack([data.code, data.system], axis=1), axis=0)
    for done, (c, s) in enumerate(cells.tolist()):
        progress.step(done, len(cells), f"{data.codes[c]} on {data.systems[s]}")
        inside = (data.code == c) & (data.system == s)
        points, error, reason = int(inside.sum()), float("nan"), ""
        try:
            # Fit t' as the whole fit has it, so that errors compare.
            part = data.only(~inside)
            if fit.response.kind != "t":
                part = replace(part, time=fit.response.y[~inside], work=None, peak=None, transformed=True)
            refit = fit_joint(part, fit.functions, fit.response.kind, starts=1)
            if refit.speed.shape and not np.isfinite(refit.delta[:, c, s]).all():
                reason = "the other cells have nothing in common with both the code and the system"
            else:
                value = refit.predict(c, s, data.p[inside])[0]
                y = fit.response.y[inside]
                error = float(np.sqrt(np.mean(((value - y) / y) ** 2)))
        except ValueError as problem:
            reason = str(problem)
        checks.append(CellCheck(c, s, points, error, reason))
    return tuple(checks)


# --- answers ---


#: Largest p of searches.
LARGEST_P = 1e7


def fastest_p(fit: ModelFit, code: int, system: int, largest: float = LARGEST_P) -> float:
    """p at which the time of a cell is least; `largest` if it always falls, NaN where the model does not
    determine the cell or its times are not all positive."""

    def time(log_p: Floats) -> Floats:
        # t' without work and peak is the time times p, up to a constant of the cell.
        p = np.exp(np.atleast_1d(log_p))
        value = fit.seconds(code, system, p)
        return value if fit.in_seconds else value / p

    grid = np.linspace(0.0, np.log(largest), 2001)
    times = time(grid)
    if not (times > 0).all():
        return float("nan")
    low = int(np.argmin(times))
    if low in (0, grid.size - 1):
        return largest if low else 1.0
    from scipy.optimize import minimize_scalar

    bounds = float(grid[low - 1]), float(grid[low + 1])
    found = minimize_scalar(
        lambda x: float(time(x)[0]), bounds=bounds, method="bounded", options={"xatol": 1e-9}
    )
    return float(np.exp(found.x))


def shares(fit: ModelFit, code: int, system: int, p: Floats) -> Floats:
    """(functions, K): share of every function in the fitted time of a cell at p (K,), 0 to 1.

    Negative parts count as zero.
    """
    p = np.asarray(p, np.float64)
    parts = np.maximum(fit.base(code, system, p).T * fit.delta[:, code, system][:, None], 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(parts / parts.sum(0))


@dataclass(frozen=True)
class RatioOfTimes:
    """Ratio of the times of some cells to those of others at p, with its 95 % interval."""

    p: float
    value: float
    low: float
    high: float

    @property
    def differs(self) -> bool:
        """Whether it differs from 1."""
        return self.low > 1.0 or self.high < 1.0


def ratio_of_times(
    fit: ModelFit, slow: Sequence[tuple[int, int]], fast: Sequence[tuple[int, int]], p: float
) -> RatioOfTimes:
    """Geometric mean time of the cells `slow` over that of `fast` at p; cells are (code, system), times
    seconds where they are known, else t'. NaN where a time is not positive."""
    at, log = np.array([p]), 0.0
    parts: list[tuple[int, int, Floats]] = []
    with np.errstate(all="ignore"):
        for cells, weight in ((slow, 1.0 / len(slow)), (fast, -1.0 / len(fast))):
            for code, system in cells:
                base = fit.base(code, system, at)
                log += weight * float(np.log(fit.seconds(code, system, at))[0])
                parts.append((code, system, weight * base / (base @ fit.delta[:, code, system])[:, None]))
        half = float((quantile(place_df(fit)) * np.sqrt(curve_variance(fit, parts, at, own=True)))[0])
    return RatioOfTimes(p, *(float(np.exp(log + by)) for by in (0.0, -half, half)))


# --- places with intervals ---


def _grid(fit: ModelFit) -> Floats:
    least, most = float(fit.data.p.min()), float(fit.data.p.max())
    return np.geomspace(least, FARTHEST * most, 1201)


def crossover_places(fit: ModelFit, code: int, a: int, b: int) -> tuple[PInterval, ...]:
    """The p at which systems a and b take equal time for a code, up to `FARTHEST` times the measured p."""

    def difference(p: Floats) -> tuple[Floats, Floats]:
        parts, log = [], []
        for system, sign in ((a, 1.0), (b, -1.0)):
            base = fit.base(code, system, p)
            value = base @ fit.delta[:, code, system]
            parts.append((code, system, sign * base / value[:, None]))
            log.append(np.log(fit.seconds(code, system, p)))
        return log[0] - log[1], curve_variance(fit, parts, p, own=True)

    return places(fit, difference, _grid(fit))


def half_share_places(fit: ModelFit, code: int, system: int, function: int) -> tuple[PInterval, ...]:
    """The p at which one function makes up half of a cell's time."""

    def excess(p: Floats) -> tuple[Floats, Floats]:
        base = fit.base(code, system, p)
        value = base @ fit.delta[:, code, system]
        share = base[:, function] * fit.delta[function, code, system] / value
        slope = -base * (share / value)[:, None]
        slope[:, function] += base[:, function] / value
        return shares(fit, code, system, p)[function] - 0.5, curve_variance(fit, [(code, system, slope)], p)

    return places(fit, excess, _grid(fit))


def fastest_place(fit: ModelFit, code: int, system: int) -> PInterval:
    """The p at which the time of a cell is least (the end of the range if it always falls), with the interval
    from the first p where it does not certainly fall to the last where it does not certainly rise."""
    step, p = 1e-4, _grid(fit)
    scale = np.ones_like(p) if fit.response.kind == "t" else p
    before, at, after = (
        fit.base(code, system, p * np.exp(by)) / (scale if scale is not p else p * np.exp(by))[:, None]
        for by in (-step, 0.0, step)
    )
    rise, delta = (after - before) / (2 * step), fit.delta[:, code, system]
    time = at @ delta
    relative = (rise @ delta) / time
    slopes = rise / time[:, None] - at * (relative / time)[:, None]
    half = quantile(place_df(fit)) * np.sqrt(curve_variance(fit, [(code, system, slopes)], p))
    rising, falling = np.flatnonzero(~(relative + half < 0)), np.flatnonzero(~(relative - half > 0))
    low = float(p[rising[0]]) if rising.size else float(p[-1])
    high = float(p[falling[-1]]) if falling.size else float(p[0])
    best = fastest_p(fit, code, system, float(p[-1]))
    return PInterval(best, min(low, best), np.inf if high >= p[-1] else max(high, best), True)

"""What a factor model answers: rankings of function pairs, tests, missing cells, where systems cross.

Source: Strohmaier, UTK-CS-97-354, tables 2 to 4; what it lacks (F test, cells left out, crossings) is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from desktop.core.characteristic import CHARACTERISTICS, characteristic
from desktop.core.factor_fit import Array, Measurements
from desktop.core.factor_model import Kind, ModelFit, exact, fit_individual, fit_joint
from desktop.progress import Progress

#: The characteristic functions of the paper.
THE_SEVEN = tuple(known.text for known in CHARACTERISTICS)


# --- comparing models ---


@dataclass(frozen=True)
class FTest:
    """Does the product form hold? Small p: it does not in the strict sense."""

    f: float
    df1: int
    df2: int
    p: float


def f_test(joint: ModelFit, individual: ModelFit) -> FTest | None:
    """Joint against individual fits of the same functions, on the measurements that both use.

    None if the individual fits leave no degrees of freedom, no error, or use other measurements.
    """
    if joint.n != individual.n or individual.df <= 0 or joint.df <= individual.df or exact(individual):
        return None
    from scipy.special import fdtrc

    df1, df2 = joint.df - individual.df, individual.df
    f = (joint.sse - individual.sse) / df1 / (individual.sse / df2)
    return FTest(f, df1, df2, float(fdtrc(df1, df2, max(f, 0.0))))


@dataclass(frozen=True, eq=False)
class Ranking:
    """Fits of all pairs (and singles) by ascending sum of squares. `dropped`: pairs that are no better than
    one of their functions alone, or could not be fitted, with the reason. `best`: sum of squares if every
    cell takes its own best pair (individual fits only, else NaN), and its number of parameters."""

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
    progress: Progress | None = None,
) -> Ranking:
    """All pairs and singles of `functions` (UTK-CS-97-354, tables 2, 3 and 4).

    Raises
    ------
    ValueError : as `fit_joint` and `fit_individual` where no choice can be fitted.
    Cancelled : by `progress`.
    """
    progress = progress or Progress()
    sets: list[tuple[str, ...]] = [(f,) for f in functions]
    sets += list(combinations(functions, 2))
    found: dict[tuple[str, ...], ModelFit] = {}
    dropped: list[tuple[tuple[str, ...], str]] = []
    last: ValueError | None = None
    for done, chosen in enumerate(sets):
        progress.step(done, len(sets), ", ".join(chosen))
        try:
            if kind == "joint":
                found[chosen] = fit_joint(
                    data, chosen, response, reference=reference, positive=positive, starts=3
                )
            else:
                found[chosen] = fit_individual(data, chosen, response)
        except ValueError as error:
            dropped.append((chosen, str(error)))
            last = error
    if not found:
        raise last or ValueError("there is nothing to fit")
    for chosen in [c for c in found if len(c) == 2]:
        for single in ((chosen[0],), (chosen[1],)):
            alone = found.get(single)
            if (
                alone is not None
                and alone.n == found[chosen].n
                and found[chosen].sse >= alone.sse * (1 - 1e-9)
            ):
                dropped.append((chosen, f"no better than {single[0]} alone"))
                del found[chosen]
                break
    fits = tuple(sorted(found.values(), key=lambda fit: (-fit.n, fit.sse)))
    best_sse, best_npar = float("nan"), 0
    if kind == "individual":
        best_sse, best_npar = _best_of_cells(data, [fit for fit in fits if len(fit.functions) == 2])
    return Ranking(fits, tuple(dropped), best_sse, best_npar)


def _best_of_cells(data: Measurements, fits: list[ModelFit]) -> tuple[float, int]:
    """Table 3's row ``best, best``."""
    key = data.code * len(data.systems) + data.system
    best = np.full(int(key.max()) + 1, np.inf)
    for fit in fits:
        inside = np.bincount(key[fit.used], minlength=best.size) > 0
        sse = np.bincount(key, np.where(fit.used, fit.residual, 0.0) ** 2, minlength=best.size)
        best = np.where(inside, np.minimum(best, sse), best)
    known = np.isfinite(best)
    if not known.any():
        return float("nan"), 0
    return float(best[known].sum()), 2 * int(known.sum())


@dataclass(frozen=True)
class CellCheck:
    """A cell predicted from all others: `error` is the root mean square relative error, NaN with a reason."""

    code: int
    system: int
    points: int
    error: float
    reason: str = ""


def leave_cells_out(fit: ModelFit, progress: Progress | None = None) -> tuple[CellCheck, ...]:
    """Every cell predicted by a joint fit to the others (what the paper lacks).

    Raises
    ------
    ValueError : `fit` is not joint.
    Cancelled : by `progress`.
    """
    if fit.kind != "joint":
        raise ValueError("only a joint fit can predict a cell from the others")
    progress = progress or Progress()
    data, found = fit.data, []
    cells = np.unique(np.stack([data.code, data.system], axis=1), axis=0)
    for done, (c, s) in enumerate(cells.tolist()):
        progress.step(done, len(cells), f"{data.codes[c]} on {data.systems[s]}")
        inside = (data.code == c) & (data.system == s)
        points, error, reason = int(inside.sum()), float("nan"), ""
        try:
            # Work is taken from the whole fit's transformation, so that errors compare.
            rest = Measurements(
                data.codes, data.systems, data.code[~inside], data.system[~inside], data.p[~inside],
                _transformed(fit, ~inside), transformed=True,
            )  # fmt: skip
            if fit.response.kind == "t":
                rest = data.only(~inside)
            other = fit_joint(rest, fit.functions, fit.response.kind, starts=1)
            if other.speed.shape and not np.isfinite(other.delta[:, c, s]).all():
                reason = "the other cells have nothing in common with both the code and the system"
            else:
                value = other.predict(c, s, data.p[inside])[0]
                y = fit.response.y[inside]
                error = float(np.sqrt(np.mean(((value - y) / y) ** 2)))
        except ValueError as problem:
            reason = str(problem)
        found.append(CellCheck(c, s, points, error, reason))
    return tuple(found)


def _transformed(fit: ModelFit, keep: NDArray[np.bool_]) -> Array:
    return fit.response.y[keep]


# --- parameters and points that stand out ---


#: Chance that a point of a sound table is called suspect, over all its points.
SUSPECT = 0.05


def suspects(fit: ModelFit) -> NDArray[np.int64]:
    """Measurements whose externally studentized residual is too large for so many of them (Bonferroni)."""
    if fit.df < 3 or exact(fit):
        return np.empty(0, np.int64)
    limit = quantile(fit.df - 1, 1.0 - SUSPECT / fit.n)
    with np.errstate(invalid="ignore"):
        return np.flatnonzero(np.abs(fit.studentized) > limit)


# --- answers ---


#: Where answers about p are looked for.
LARGEST_P = 1e7


def crossover(fit: ModelFit, code: int, a: int, b: int, largest: float = LARGEST_P) -> tuple[float, ...]:
    """Every p from 1 to `largest` at which systems a and b take the same time for a code, ascending."""
    # Below zero there is no time, and no logarithm.
    return _roots(lambda p: np.log(fit.seconds(code, a, p)) - np.log(fit.seconds(code, b, p)), largest)


def fastest_p(fit: ModelFit, code: int, system: int, largest: float = LARGEST_P) -> float:
    """p at which the time of a cell is least; `largest` if it falls all the way, NaN where the model says
    nothing of the cell or its times are not all positive."""

    def time(p: Array) -> Array:
        # t' without work and peak is the time times p, but for a factor of the cell.
        value = fit.seconds(code, system, p)
        return value / p if fit.data.transformed else value

    grid = np.geomspace(1.0, largest, 2001)
    times = time(grid)
    if not (times > 0).all():
        return float("nan")
    low = int(np.argmin(times))
    if low in (0, grid.size - 1):
        return float(grid[low])
    a, b = float(np.log(grid[low - 1])), float(np.log(grid[low + 1]))
    golden = (np.sqrt(5.0) - 1.0) / 2.0
    for _ in range(80):
        left, right = b - golden * (b - a), a + golden * (b - a)
        times = time(np.exp(np.array([left, right])))
        if times[0] <= times[1]:
            b = right
        else:
            a = left
    return float(np.exp((a + b) / 2))


def half_share_p(fit: ModelFit, code: int, system: int, function: int, largest: float = LARGEST_P) -> float:
    """Smallest p from which one function makes up more than half of a cell's time; NaN if it never does."""

    def excess(p: Array) -> Array:
        parts = shares(fit, code, system, p)
        return parts[function] - 0.5

    if excess(np.array([1.0]))[0] > 0:
        return 1.0
    found = _roots(excess, largest)
    return found[0] if found else float("nan")


def shares(fit: ModelFit, code: int, system: int, p: Array) -> Array:
    """(functions, K): share of every function in the fitted time of a cell at p (K,)."""
    p = np.asarray(p, np.float64)
    scale = np.ones_like(p) if fit.response.kind == "t" else p
    parts = np.stack(
        [
            scale * characteristic(text).u(p) * fit.delta[i, code, system]
            for i, text in enumerate(fit.functions)
        ]
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        return parts / parts.sum(0)


def _roots(function: Callable[[Array], Array], largest: float) -> tuple[float, ...]:
    grid = np.geomspace(1.0, largest, 4001)
    with np.errstate(all="ignore"):
        values = function(grid)
    found = []
    for k in np.flatnonzero(np.isfinite(values[:-1]) & np.isfinite(values[1:])):
        if values[k] == 0.0:
            found.append(float(grid[k]))
        elif values[k] * values[k + 1] < 0:
            a, b, low = np.log(grid[k]), np.log(grid[k + 1]), values[k]
            for _ in range(60):
                middle = (a + b) / 2
                value = function(np.array([np.exp(middle)]))[0]
                a, b = (middle, b) if low * value > 0 else (a, middle)
            found.append(float(np.exp((a + b) / 2)))
    return tuple(found)


def quantile(df: int, confidence: float = 0.95) -> float:
    """Two-sided quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(df, 0.5 + confidence / 2)) if df > 0 else float("nan")

"""The factor model: run times as work over speed, summed over characteristic functions of p.

Source: Strohmaier, UTK-CS-97-354, sections 3 to 5. A code c on a system s and p processors takes::

    T = sum_i delta_i u_i(p)            individual: a delta for every cell (code, system)
    delta_i = w_i (code) / r_i (system) joint: the product model

By default the transformed time t' = t p r_peak / W (equation 11) is fitted, so the columns are p u_i(p).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypedDict

import numpy as np

from desktop.core.arrays import Flags, Floats, Ints
from desktop.core.characteristic import Characteristic, characteristic
from desktop.core.factor_fit import (
    FactorCells,
    Measurements,
    Product,
    alternate,
    first_speeds,
    inverse_of,
    normalised,
    parts_of,
    reduce,
    references,
    sums,
)
from desktop.core.factor_response import FactorResponse, respond
from desktop.core.frames import TABLES, attributes, frame

if TYPE_CHECKING:
    from pandas import DataFrame

Kind = Literal["individual", "joint"]

#: A column-scaled Jacobian with a larger condition does not determine its parameters.
_ILL = 1e8
_ROUNDS = 200


@dataclass(frozen=True, eq=False)
class ModelFit:
    """A fitted model; the axis I is that of `functions`.

    used : (N,) bool, measurements in the fit. fitted, residual : (N,) in units of the response (residual of
    ``log``: logarithm of measured over fitted), NaN where not used. leverage, studentized : (N,) diagonal of
    the hat matrix, externally studentized residual.
    delta, delta_se : (I, codes, systems), NaN where not determined. speed, speed_se : (I, systems), work,
    work_se : (I, codes): joint only; NaN standard error where fixed. covariance : of the free parameters
    in the order of `parameters`, entries (kind, function index, name index).
    sst is uncentred, as there is no intercept. aicc counts npar + 1 parameters.
    """

    kind: Kind
    functions: tuple[str, ...]
    response: FactorResponse
    data: Measurements
    used: Flags
    fitted: Floats
    residual: Floats
    delta: Floats
    delta_se: Floats
    n: int
    npar: int
    sse: float
    sst: float
    r2_centred: float
    mean_relative_error: float
    max_relative_error: float
    leverage: Floats
    studentized: Floats
    status: str = "converged"
    warnings: tuple[str, ...] = ()
    speed: Floats = field(default_factory=lambda: np.empty((0, 0)))
    speed_se: Floats = field(default_factory=lambda: np.empty((0, 0)))
    work: Floats = field(default_factory=lambda: np.empty((0, 0)))
    work_se: Floats = field(default_factory=lambda: np.empty((0, 0)))
    parameters: tuple[tuple[str, int, int], ...] = ()
    #: joint: covariance (npar, npar); individual: (cells, I, I), that of each cell, as cells are independent
    spread: Floats = field(default_factory=lambda: np.empty((0, 0)))
    condition: float = 1.0
    starts: int = 1
    starts_agreeing: int = 1
    reference: str = ""
    #: joint: (I, codes + systems), number of the connected part of the table that each belongs to
    parts: Ints = field(default_factory=lambda: np.empty((0, 0), np.int64))
    #: (codes, systems): number of points of each cell in the fit
    points: Ints = field(default_factory=lambda: np.empty((0, 0), np.int64))

    def to_frame(self) -> DataFrame:
        """``TABLES["factor model"]``, one row a parameter, in the order of the function `parameters`."""
        columns = attributes("factor model", parameters(self))
        names = {name: [one or "" for one in columns[name]] for name in ("code", "system")}
        return frame(TABLES["factor model"], columns | names)

    def cells_frame(self) -> DataFrame:
        """``TABLES["factor model cells"]``, one row a measurement, index 0 to N - 1; NaN where it was not
        used. The response is in s where times are fitted."""
        data = self.data
        columns = {
            "code": [data.codes[k] for k in data.code],
            "system": [data.systems[k] for k in data.system],
            "p": data.p,
            "used": self.used,
            "response": self.response.y,
            "fitted": self.fitted,
            "residual": self.residual,
            "leverage": self.leverage,
            "studentized": self.studentized,
        }
        times = dict.fromkeys(("response", "fitted", "residual"), "s") if self.response.kind == "t" else {}
        return frame(TABLES["factor model cells"], columns, units=times)

    @property
    def df(self) -> int:
        return self.n - self.npar

    @property
    def in_seconds(self) -> bool:
        """Whether times are known in seconds: not for a table of t' without operations and peak rates."""
        return not self.data.transformed or None not in (self.data.work, self.data.peak)

    @property
    def r2(self) -> float:
        """Uncentred: 1 - SSE/SST (centred for ``log``); NaN where SST is 0."""
        return 1.0 - self.sse / self.sst if self.sst > 0 else float("nan")

    @property
    def s(self) -> float:
        """Residual standard deviation; NaN without degrees of freedom."""
        return float(np.sqrt(self.sse / self.df)) if self.df > 0 else float("nan")

    @property
    def aicc(self) -> float:
        """N ln(SSE/N) + 2k + 2k(k+1)/(N-k-1), k = npar + 1; NaN where that is not defined."""
        k = self.npar + 1
        if self.n - k - 1 <= 0 or self.sse <= 0:
            return float("nan")
        return self.n * float(np.log(self.sse / self.n)) + 2 * k + 2 * k * (k + 1) / (self.n - k - 1)

    @property
    def covariance(self) -> Floats:
        """Covariance (npar, npar) of the free parameters; for individual fits block diagonal, and large."""
        if self.kind == "joint":
            return self.spread
        cells, count = self.spread.shape[:2]
        whole = np.zeros((cells, count, cells, count))
        whole[np.arange(cells), :, np.arange(cells), :] = self.spread
        return whole.reshape(cells * count, cells * count)

    def ratio(self, kind: Literal["speed", "work"], function: int, a: int, b: int) -> tuple[float, float]:
        """Value of a over value of b, and its standard error (zero where a is b); NaN where they are in
        different connected parts of the table."""
        first = 0 if kind == "work" else len(self.data.codes)
        if self.parts[function, first + a] != self.parts[function, first + b]:
            return float("nan"), float("nan")
        values = self.speed[function] if kind == "speed" else self.work[function]
        gradient = np.zeros(len(self.parameters))
        for index, slope in ((a, 1.0 / values[b]), (b, -values[a] / values[b] ** 2)):
            if (at := self.position.get((kind, function, index))) is not None:
                gradient[at] += slope
        variance = float(gradient @ self.covariance @ gradient)
        return float(values[a] / values[b]), float(np.sqrt(max(variance, 0.0)))

    def predict(self, code: int, system: int, p: Floats) -> tuple[Floats, Floats, Floats]:
        """Response of a cell at p (K,), its standard error, and that of a new measurement; (K,) each.

        For ``log`` the errors are those of the logarithm. NaN where the model does not determine the cell.
        """
        p = np.asarray(p, np.float64)
        g = self.base(code, system, p)
        value = g @ self.delta[:, code, system]
        gradient = self._gradient(code, system, g)
        s2 = self._cell_s2(code, system)
        variance = np.einsum("ki,ij,kj->k", gradient, self.cell_covariance(code, system), gradient)
        if self.response.kind == "log":
            with np.errstate(invalid="ignore", divide="ignore"):
                variance = variance / value**2
        se = np.where(np.isnan(value), np.nan, np.sqrt(np.maximum(variance, 0.0)))
        return value, se, np.sqrt(se * se + s2)

    def base(self, code: int, system: int, p: Floats) -> Floats:
        """(K, functions): coefficients of a cell's deltas in the response at p (K,)."""
        scale = np.ones_like(p) if self.response.kind == "t" else p
        size = self.data.size_at(code, system, p)
        return scale[:, None] * np.stack([characteristic(f).u(p, size) for f in self.functions], axis=1)

    def seconds(self, code: int, system: int, p: Floats) -> Floats:
        """Predicted run time (s) of a cell at p (K,); t' where times are not known (see `in_seconds`)."""
        p = np.asarray(p, np.float64)
        value = self.predict(code, system, p)[0]
        if self.response.kind == "t" or not self.in_seconds:
            return value
        return value / (p * float(self.response.factor[code, system]))

    def _gradient(self, code: int, system: int, g: Floats) -> Floats:
        if self.kind == "individual":
            return g
        w, v = self.work[:, code], 1.0 / self.speed[:, system]
        # with respect to work and speed; fixed parameters have no column in the covariance
        return np.concatenate([g * v, -g * w * v * v], axis=1)

    def cell_covariance(self, code: int, system: int) -> Floats:
        """Covariance of a cell's deltas (I, I) or, in joint fits, of its code's works and its system's speeds
        (2 I, 2 I); zero where they are fixed or not fitted."""
        count = len(self.functions)
        if self.kind == "individual":
            at = self.position.get(("delta", 0, code * len(self.data.systems) + system))
            return np.zeros((count, count)) if at is None else self.spread[at // count]
        keys = [("work", i, code) for i in range(count)] + [("speed", i, system) for i in range(count)]
        position = np.array([self.position.get(key, -1) for key in keys])
        cov = np.zeros((len(keys), len(keys)))
        free = position >= 0
        cov[np.ix_(free, free)] = self.spread[np.ix_(position[free], position[free])]
        return cov

    @cached_property
    def position(self) -> dict[tuple[str, int, int], int]:
        """Index of every free parameter in `parameters`."""
        return {key: k for k, key in enumerate(self.parameters)}

    def _cell_s2(self, code: int, system: int) -> float:
        if self.kind == "joint":
            return self.s**2
        mine = self.used & (self.data.code == code) & (self.data.system == system)
        spare = int(mine.sum()) - len(self.functions)
        return float((self.residual[mine] ** 2).sum() / spare) if spare > 0 else float("nan")


# --- fits ---


def fit_individual(
    data: Measurements, functions: Sequence[str] = ("1/p", "1/sqrt(p)"), response: str = "t'"
) -> ModelFit:
    """A fit of each cell alone (UTK-CS-97-354, section 4.1), without cells of fewer points than functions.

    Raises
    ------
    ValueError : no cell can be fitted, or the arguments are wrong.
    """
    used_functions, answer = _prepared(data, functions, response)
    log = answer.kind == "log"
    columns = answer.columns(used_functions, data.p, data.size)
    weight = 1.0 / answer.y if log else np.ones(len(data))
    cells = reduce(data, columns * weight[:, None], answer.y * weight)
    count = len(used_functions)
    shape = len(data.codes), len(data.systems)
    sound = cells.fitted_alone
    warnings = _left_out(data, cells, sound, count)
    if not sound.any():
        raise ValueError(f"no cell has points at {count} or more different p, which {count} functions need")
    safe = np.where(sound[:, None, None], cells.triangle, np.eye(count))
    values: Floats = np.asarray(np.linalg.solve(safe, cells.target[:, :, None])[:, :, 0], np.float64)
    if log:
        values = _relative_to_log(data, columns, answer.y, cells, values, sound)
    used = sound[cells.number]
    fitted = np.where(used, np.einsum("ki,ki->k", columns, values[cells.number]), np.nan)
    residual = np.log(answer.y / fitted) if log else answer.y - fitted
    rss = sums(cells.number, np.where(used, residual, 0.0) ** 2, sound.size)
    spare = cells.points - count
    with np.errstate(invalid="ignore", divide="ignore"):
        s2 = np.where(spare > 0, rss / spare, np.nan)
    if log:
        weight = 1.0 / np.where(used, fitted, 1.0)
        triangle = reduce(data, columns * weight[:, None], answer.y * weight).triangle
        safe = np.where(sound[:, None, None], triangle, np.eye(count))
    inverse = np.linalg.inv(safe)
    unit = np.einsum("kij,klj->kil", inverse, inverse)
    delta, delta_se = np.full((2, count, *shape), np.nan)
    delta[:, cells.code[sound], cells.system[sound]] = values[sound].T
    spread = np.sqrt(np.diagonal(unit, axis1=1, axis2=2) * s2[:, None])
    delta_se[:, cells.code[sound], cells.system[sound]] = spread[sound].T
    slopes = columns * weight[:, None] if log else columns
    leverage = np.einsum("ki,kij,kj->k", slopes, unit[cells.number], slopes)
    sound_cells = np.flatnonzero(sound)
    if (spare[sound] == 0).any():
        warnings.append(
            f"{int((spare[sound] == 0).sum())} cells have as many points as functions: they are fitted "
            "exactly, without standard errors"
        )
    return ModelFit(
        kind="individual",
        functions=tuple(f.text for f in used_functions),
        data=data,
        delta=delta,
        delta_se=delta_se,
        npar=count * int(sound.sum()),
        warnings=tuple(warnings),
        parameters=tuple(
            ("delta", i, int(cells.code[c] * shape[1] + cells.system[c]))
            for c in sound_cells
            for i in range(count)
        ),
        spread=unit[sound_cells] * s2[sound_cells, None, None],
        points=_points(cells, shape, sound),
        **_rows(answer, used, fitted, residual, leverage, rss[cells.number], spare[cells.number]),
    )


def fit_joint(
    data: Measurements,
    functions: Sequence[str] = ("1/p", "1/sqrt(p)"),
    response: str = "t'",
    *,
    reference: str | None = None,
    positive: bool = False,
    starts: int = 6,
) -> ModelFit:
    """A fit of the product model to all cells (UTK-CS-97-354, section 4.2, tables 4 and 5).

    Parameters
    ----------
    reference : a system or a code whose parameters are 1; None: the first system. Only ratios are
        determined, so nothing else depends on the choice.
    positive : constrain parameters to be at least zero (by default negative ones are allowed and show that a
        function does not fit).
    starts : number of random starts beside the two fixed ones; the lowest sum of squares is kept.

    Raises
    ------
    ValueError : only one system or code, no more measurements than parameters, or wrong arguments.
    """
    used_functions, answer = _prepared(data, functions, response)
    log = answer.kind == "log"
    count, shape = len(used_functions), (len(data.codes), len(data.systems))
    present = np.unique(data.code).size, np.unique(data.system).size
    if min(present) < 2:
        scarce = "system" if present[1] < 2 else "code"
        raise ValueError(
            f"there is only one {scarce}: a product of work and speed needs two or more of each, "
            "fit individually"
        )
    columns = answer.columns(used_functions, data.p, data.size)
    weight = 1.0 / answer.y if log else np.ones(len(data))
    cells = reduce(data, columns * weight[:, None], answer.y * weight)
    fixed, warnings = references(data, cells, reference, [f.text for f in used_functions])
    free = ~np.isfinite(fixed)
    if len(data) <= int(free.sum()):
        raise ValueError(
            f"{len(data)} measurements cannot determine {int(free.sum())} parameters, "
            "add measurements or take fewer functions"
        )
    if log:  # logarithms need the measurements themselves; otherwise the rows of the triangles are enough
        product = Product(columns, answer.y, data.code, data.system, shape, free, True)
    else:
        places = np.repeat(cells.code, count), np.repeat(cells.system, count)
        rows = cells.triangle.reshape(-1, count), cells.target.ravel()
        product = Product(*rows, *places, shape, free, False)
    total = float(product.target @ product.target) if not log else float(len(data))
    outcomes = []
    for v in first_speeds(cells, shape, count, starts):
        w, v = alternate(cells, shape, v, float((cells.target**2).sum()), positive)
        theta, ok = normalised(np.concatenate([w.ravel(), v.ravel()]), fixed, shape, count, cells)
        if not ok:
            continue
        if log and not np.isfinite(product.residual(theta)).all():
            continue
        theta, sse, converged = product.polish(theta, total, positive)
        outcomes.append((sse, theta, converged))
    if not outcomes:
        reason = "a reference parameter vanishes" + (" or fitted times are not above zero" if log else "")
        raise ValueError(
            f"the fit did not succeed from any start: {reason}, choose another reference or other functions"
        )
    outcomes.sort(key=lambda outcome: outcome[0])
    best, theta, converged = outcomes[0]
    agreeing = sum(sse - best <= 1e-8 * total for sse, _, _ in outcomes)
    return _joint_result(
        data, used_functions, answer, columns, cells, product, theta, converged,
        warnings, outcomes_count=len(outcomes), agreeing=agreeing, reference=reference, fixed=fixed,
        positive=positive,
    )  # fmt: skip


#: Residuals below this share of the response are rounding errors.
_ROUNDING = 1e-13


def exact(fit: ModelFit) -> bool:
    """Whether the model fits every measurement up to rounding, so that there is no error to test with."""
    size = float((fit.response.y[fit.used] ** 2).sum()) if fit.response.kind != "log" else float(fit.n)
    return bool(fit.sse <= _ROUNDING**2 * size)


def _prepared(
    data: Measurements, functions: Sequence[str], response: str
) -> tuple[tuple[Characteristic, ...], FactorResponse]:
    characteristics = tuple(characteristic(text) for text in functions)
    if not characteristics or len({f.text for f in characteristics}) < len(characteristics):
        raise ValueError("name one or more different functions of p")
    if not len(data):
        raise ValueError("there are no measurements to fit")
    for function in characteristics:
        if function.sized and data.size is None:
            raise ValueError(f"{function.text} needs the problem size N, and no column holds it")
        with np.errstate(all="ignore"):
            bad = np.flatnonzero(~np.isfinite(data.p * function.u(data.p, data.size)))
        if bad.size:
            raise ValueError(
                f"{function.text} has no finite value at p = {data.p[bad[0]]:g}, take another function"
            )
    return characteristics, respond(data, response)


# Many: the results of the search, which become the fields of a fit.
def _joint_result(
    data: Measurements,
    functions: tuple[Characteristic, ...],
    answer: FactorResponse,
    columns: Floats,
    cells: FactorCells,
    product: Product,
    theta: Floats,
    converged: bool,
    warnings: list[str],
    *,
    outcomes_count: int,
    agreeing: int,
    reference: str | None,
    fixed: Floats,
    positive: bool,
) -> ModelFit:
    count, shape = len(functions), (len(data.codes), len(data.systems))
    log = answer.kind == "log"
    at_bound = positive & (theta == 0.0) & product.free
    product.free = product.free & ~at_bound
    free = np.flatnonzero(product.free)
    w, v = product.split(theta)
    delta = np.full((count, *shape), np.nan)
    untouched_code = fixed.reshape(-1, count)[: shape[0]] == 0.0
    untouched_system = fixed.reshape(-1, count)[shape[0] :] == 0.0
    delta[:] = w.T[:, :, None] * v.T[:, None, :]
    # Not determined: a code or system without measurements, or the two in different connected parts.
    parts = np.array([parts_of(cells, shape, i) for i in range(count)])
    delta[untouched_code.T[:, :, None] | untouched_system.T[:, None, :]] = np.nan
    delta[parts[:, : shape[0], None] != parts[:, None, shape[0] :]] = np.nan
    fitted = np.einsum("ki,ki,ki->k", columns, w[data.code], v[data.system])
    residual = np.log(answer.y / fitted) if log else answer.y - fitted
    sse = float(residual @ residual)
    df = len(data) - free.size
    condition, weakest, inverse = inverse_of(product, theta)
    status = "converged" if converged else "not converged"
    unit = np.full((free.size, free.size), np.nan)
    parameters = [_parameter(int(k), count, shape[0]) for k in free]
    if condition > _ILL:
        status = "not determined"
        together = np.flatnonzero(np.abs(weakest) > 0.3 * np.abs(weakest).max())[:6]
        warnings.append(
            "the measurements do not determine "
            + ", ".join(_named(parameters[k], data, functions) for k in together)
            + " separately, as they are strongly correlated"
        )
    elif converged:
        unit = inverse
    hat = _leverage(product, data, columns, theta, unit, free, log)
    s2 = sse / df if df > 0 else float("nan")
    # from 1/r to r
    turn = np.ones(free.size)
    speeds = np.array([kind == "speed" for kind, _, _ in parameters], bool)
    with np.errstate(divide="ignore"):
        turn[speeds] = -1.0 / theta[free[speeds]] ** 2
        speed = 1.0 / v.T
    covariance = unit * s2 * np.outer(turn, turn)
    se = np.sqrt(np.diag(covariance))
    speed_se, work_se = np.full((count, shape[1]), np.nan), np.full((count, shape[0]), np.nan)
    for (kind, i, at), error in zip(parameters, se, strict=True):
        (speed_se if kind == "speed" else work_se)[i, at] = error
    work = np.where(untouched_code.T, np.nan, w.T)
    speed = np.where(untouched_system.T, np.nan, speed)
    warnings += _remarks(data, functions, speed, work, at_bound.any(), agreeing, outcomes_count)
    fit = ModelFit(
        kind="joint",
        functions=tuple(f.text for f in functions),
        data=data,
        delta=delta,
        delta_se=np.full_like(delta, np.nan),
        npar=int(free.size),
        status=status,
        warnings=tuple(warnings),
        speed=speed,
        speed_se=speed_se,
        work=work,
        work_se=work_se,
        parameters=tuple(parameters),
        spread=covariance,
        condition=condition,
        starts=outcomes_count,
        starts_agreeing=agreeing,
        reference=reference or data.systems[int(np.flatnonzero(np.isin(range(shape[1]), data.system))[0])],
        parts=parts,
        points=_points(cells, shape, np.ones(cells.code.size, bool)),
        **_rows(answer, np.ones(len(data), bool), fitted, residual, hat, sse, df),
    )
    fit.delta_se[:] = np.where(np.isnan(delta), np.nan, _product_errors(fit, free, theta.size))
    return fit


def _product_errors(fit: ModelFit, free: Ints, size: int) -> Floats:
    """Standard errors of w/r, (functions, codes, systems)."""
    count, codes, systems = fit.delta.shape
    whole = np.zeros((size, size))
    whole[np.ix_(free, free)] = fit.covariance
    blocks = whole.reshape(codes + systems, count, codes + systems, count)
    same = np.arange(count)
    with np.errstate(divide="ignore", invalid="ignore"):
        by_work = 1.0 / fit.speed[:, None, :]
        by_speed = -fit.work[:, :, None] / fit.speed[:, None, :] ** 2
        diagonal = np.einsum("aiai->ia", blocks)
        mixed = blocks[:codes, same, codes:, same]
        variance: Floats = (
            by_work**2 * diagonal[:, :codes, None]
            + by_speed**2 * diagonal[:, None, codes:]
            + 2.0 * by_work * by_speed * mixed
        )
        return np.sqrt(np.maximum(variance, 0.0))


def _parameter(index: int, count: int, codes: int) -> tuple[str, int, int]:
    at, i = divmod(index, count)
    return ("work", i, at) if at < codes else ("speed", i, at - codes)


def _named(parameter: tuple[str, int, int], data: Measurements, functions: tuple[Characteristic, ...]) -> str:
    kind, i, at = parameter
    return f"{kind} of {(data.systems if kind == 'speed' else data.codes)[at]} in {functions[i].text}"


def _leverage(
    product: Product, data: Measurements, columns: Floats, theta: Floats, unit: Floats, free: Ints, log: bool
) -> Floats:
    """(N,) diagonal of the hat matrix, for the measurements (not the rows of triangles)."""
    whole = Product(columns, np.ones(len(data)), data.code, data.system, product.shape, product.free, log)
    place = np.full(product.size, -1)
    place[free] = np.arange(free.size)
    touched = place[whole.touched]
    slopes = np.where(touched >= 0, whole.slopes(theta), 0.0)
    blocks = unit[touched[:, :, None], touched[:, None, :]]
    blocks[(touched < 0)[:, :, None] | (touched < 0)[:, None, :]] = 0.0
    return np.asarray(np.einsum("ki,kij,kj->k", slopes, blocks, slopes))


class _FitOfRows(TypedDict):
    """Fields of a `ModelFit` that say what it makes of its rows."""

    response: FactorResponse
    used: Flags
    fitted: Floats
    residual: Floats
    leverage: Floats
    studentized: Floats
    n: int
    sse: float
    sst: float
    r2_centred: float
    mean_relative_error: float
    max_relative_error: float


def _rows(
    answer: FactorResponse,
    used: Flags,
    fitted: Floats,
    residual: Floats,
    leverage: Floats,
    squares: Floats | float,
    df: Ints | int,
) -> _FitOfRows:
    """Fields of `ModelFit` that are computed from the measurements. `squares`, `df`: sum of squares and
    degrees of freedom of the rows that each row is fitted with (its cell, or all)."""
    with np.errstate(all="ignore"):
        # the variance of the other points
        s2 = (squares - residual**2 / (1.0 - leverage)) / (df - 1)
        studentized = residual / np.sqrt(s2 * (1.0 - leverage))
    y, e = answer.y[used], residual[used]
    seen = np.log(y) if answer.kind == "log" else y
    relative = np.abs(fitted[used] - y) / y
    centred = float(((seen - seen.mean()) ** 2).sum())
    return {
        "response": answer,
        "used": used,
        "fitted": fitted,
        "residual": residual,
        "leverage": np.where(used, leverage, np.nan),
        "studentized": np.where(used & np.isfinite(studentized), studentized, np.nan),
        "n": int(used.sum()),
        "sse": float(e @ e),
        "sst": centred if answer.kind == "log" else float(y @ y),
        "r2_centred": 1.0 - float(e @ e) / centred if centred > 0 else float("nan"),
        "mean_relative_error": float(relative.mean()),
        "max_relative_error": float(relative.max()),
    }


def _points(cells: FactorCells, shape: tuple[int, int], fitted: Flags) -> Ints:
    points = np.zeros(shape, np.int64)
    points[cells.code[fitted], cells.system[fitted]] = cells.points[fitted]
    return points


def _left_out(data: Measurements, cells: FactorCells, sound: Flags, count: int) -> list[str]:
    if sound.all():
        return []
    names = [
        f"{data.codes[c]} on {data.systems[s]}"
        for c, s in zip(cells.code[~sound], cells.system[~sound], strict=True)
    ]
    listed = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return [f"left out, as they have points at fewer than {count} different p: {listed}"]


def _remarks(
    data: Measurements,
    functions: tuple[Characteristic, ...],
    speed: Floats,
    work: Floats,
    bounded: bool,
    agreeing: int,
    starts: int,
) -> list[str]:
    remarks = []
    for values, kind in ((speed, "speed"), (work, "work")):
        below = np.argwhere(values < 0).tolist()
        if negative := [_named((kind, i, at), data, functions) for i, at in below]:
            remarks.append("below zero, so this function does not describe it: " + ", ".join(negative[:6]))
    if bounded:
        remarks.append("parameters were constrained to at least zero; those at zero have no standard error")
    if np.unique(data.p).size < len(functions):
        remarks.append(f"there are only {np.unique(data.p).size} different p for {len(functions)} functions")
    if agreeing == 1 and starts > 2:
        remarks.append(f"only one of {starts} starts reached the lowest sum of squares")
    return remarks


def _relative_to_log(
    data: Measurements, columns: Floats, y: Floats, cells: FactorCells, values: Floats, sound: Flags
) -> Floats:
    """Deltas (cells, I) by least squares of logarithms, from those of relative least squares (`values`), by
    Gauss-Newton steps that are halved until they help, cell by cell."""

    def errors(values: Floats) -> tuple[Floats, Floats]:
        fit = np.einsum("ki,ki->k", columns, values[cells.number])
        with np.errstate(all="ignore"):
            e = np.where(fit > 0, np.log(y / fit), np.inf)
        return fit, sums(cells.number, e * e, sound.size)

    fit, sse = errors(values)
    if not np.isfinite(sse[sound]).all():
        at = int(np.flatnonzero(sound & ~np.isfinite(sse))[0])
        raise ValueError(
            f"the fit of {data.codes[cells.code[at]]} on {data.systems[cells.system[at]]} has times below "
            "zero, so it has no logarithm; take another response or other functions"
        )
    for _ in range(_ROUNDS):
        safe = np.where(sound[cells.number], fit, 1.0)
        step_cells = reduce(
            data, columns / safe[:, None], np.where(sound[cells.number], np.log(y / safe), 0.0)
        )
        triangle = np.where(sound[:, None, None], step_cells.triangle, np.eye(columns.shape[1]))
        step = np.linalg.solve(triangle, step_cells.target[:, :, None])[:, :, 0]
        step[~sound] = 0.0
        size = np.ones(sound.size)
        for _ in range(40):
            stepped = values + size[:, None] * step
            new_fit, new_sse = errors(stepped)
            worse = sound & ~(new_sse <= sse * (1 + 1e-15))
            if not worse.any():
                break
            size[worse] /= 2
        size[worse] = 0.0
        stepped = values + size[:, None] * step
        new_fit, new_sse = errors(stepped)
        done = (sse[sound] - new_sse[sound]).sum() <= 1e-14 * max(sse[sound].sum(), 1e-300)
        values, fit, sse = stepped, new_fit, new_sse
        if done:
            break
    return values


@dataclass(frozen=True)
class Parameter:
    """`kind`: "speed" (of `system`), "work" (of `code`) or "delta" (of `code` on `system`). `se`: standard
    error, NaN where the parameter is fixed or not determined."""

    kind: str
    function: str
    system: str | None
    code: str | None
    value: float
    se: float

    @property
    def undetermined(self) -> bool:
        """Not different from zero: |value| < 2 standard errors."""
        return bool(abs(self.value) < 2 * self.se)


def parameters(fit: ModelFit) -> tuple[Parameter, ...]:
    """All parameters of a fit, function after function."""
    data, rows = fit.data, []
    for i, text in enumerate(fit.functions):
        if fit.kind == "joint":
            speeds = zip(data.systems, fit.speed[i].tolist(), fit.speed_se[i].tolist(), strict=True)
            works = zip(data.codes, fit.work[i].tolist(), fit.work_se[i].tolist(), strict=True)
            rows += [Parameter("speed", text, name, None, value, se) for name, value, se in speeds]
            rows += [Parameter("work", text, None, name, value, se) for name, value, se in works]
        else:
            for c, s in np.argwhere(fit.points > 0).tolist():
                value, se = float(fit.delta[i, c, s]), float(fit.delta_se[i, c, s])
                rows.append(Parameter("delta", text, data.systems[s], data.codes[c], value, se))
    return tuple(rows)

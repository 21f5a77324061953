"""The factor model: run times as work over speed, over characteristic functions of p.

Source: Strohmaier, UTK-CS-97-354, sections 3 to 5. A code c on a system s and p processors takes::

    T = sum_i delta_i u_i(p)            individual: a delta for every cell (code, system)
    delta_i = w_i (code) / r_i (system) joint: the product model

What is fitted is by default the transformed time t' = t p r_peak / W (equation 11), so the columns are
p u_i(p). Every cell is reduced to a triangle of as many rows as there are functions (QR), after which the
number of measurements plays no part; nothing is squared that need not be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from desktop.core.characteristic import CHARACTERISTICS, Characteristic, characteristic
from desktop.progress import Progress

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Kind = Literal["individual", "joint"]

#: ``t'``: equation 11, about the same weight for every point; ``t``: seconds as measured, the longest runs
#: decide; ``log``: relative errors, the residual is the logarithm of measured over fitted.
RESPONSES = ("t'", "t", "log")

#: Column-scaled Jacobians beyond this condition do not determine their parameters.
_ILL = 1e8
_ALTERNATIONS, _ROUNDS = 200, 200
_SEED = 19970354


@dataclass(frozen=True, eq=False)
class Measurements:
    """N run times of `codes` on `systems`.

    code, system : (N,) indices into the names. p : (N,) processors. time : (N,) seconds, or t' itself if
    `transformed`. work : (codes,) operations, or None if not known; peak : (systems,) operations per second
    and processor, or None.
    """

    codes: tuple[str, ...]
    systems: tuple[str, ...]
    code: Index
    system: Index
    p: Array
    time: Array
    work: Array | None = None
    peak: Array | None = None
    transformed: bool = False

    def __len__(self) -> int:
        return int(self.p.size)

    def only(self, keep: NDArray[np.bool_]) -> Measurements:
        """Some of the rows; the names stay as they are."""
        return Measurements(
            self.codes,
            self.systems,
            self.code[keep],
            self.system[keep],
            self.p[keep],
            self.time[keep],
            self.work,
            self.peak,
            self.transformed,
        )


@dataclass(frozen=True, eq=False)
class Response:
    """y (N,) is fitted by sum_i delta_i columns_i with columns_i = scale u_i(p).

    factor : (codes, systems), y = time * p * factor (or time * factor where `scale` is 1).
    """

    kind: str
    y: Array
    scale: Array
    factor: Array
    note: str = ""

    def columns(self, functions: Sequence[Characteristic], p: Array) -> Array:
        """(N, functions)."""
        return self.scale[:, None] * np.stack([f.u(p) for f in functions], axis=1)


def respond(data: Measurements, kind: str = "t'") -> Response:
    """The transformation of equation 11, as far as work and peak are known.

    A missing peak counts as 1. Missing work is replaced by the median of t p r_peak of the code, which
    makes t' of every code about 1; shares and ratios do not depend on it.

    Raises
    ------
    ValueError : an unknown kind, or ``t`` for data that are already transformed.
    """
    if kind not in RESPONSES:
        raise ValueError(f"there is no response {kind!r}, known are {', '.join(RESPONSES)}")
    shape = len(data.codes), len(data.systems)
    if data.transformed:
        if kind == "t":
            raise ValueError("the table holds t', not times, so the response t cannot be had from it")
        return Response(kind, data.time, data.p, np.ones(shape), "the table holds t' as it stands")
    if kind == "t":
        return Response(kind, data.time, np.ones(len(data)), np.ones(shape))
    peak = np.ones(shape[1]) if data.peak is None else data.peak
    raw = data.time * data.p * peak[data.system]
    notes = [] if data.peak is not None else ["peak rates are not known and count as 1"]
    if data.work is None:
        work = np.array([_median(raw[data.code == c]) for c in range(shape[0])])
        notes.append("operation counts are not known: t' of every code is divided by its median")
    else:
        work = data.work
    factor = peak[None, :] / work[:, None]
    return Response(kind, raw / work[data.code], data.p, factor, "; ".join(notes))


def _median(values: Array) -> float:
    return float(np.median(values)) if values.size else 1.0


@dataclass(frozen=True, eq=False)
class ModelFit:
    """A fitted model; all arrays read as (function, ...) in the order of `functions`.

    used : (N,) bool, measurements that took part. y, fitted, residual : (N,) in units of the response
    (residual of ``log``: logarithm of measured over fitted), NaN where not used. leverage, studentized (N,):
    diagonal of the hat matrix, externally studentized residual.
    delta, delta_se : (I, codes, systems), NaN where the model says nothing. speed, speed_se : (I, systems),
    work, work_se : (I, codes): joint only; NaN standard error where fixed. covariance : of the free
    parameters in the order of `parameters`, entries (kind, function index, name index).
    sst is uncentred: there is no intercept. aicc counts npar + 1 parameters.
    """

    kind: Kind
    functions: tuple[str, ...]
    response: Response
    data: Measurements
    used: NDArray[np.bool_]
    fitted: Array
    residual: Array
    delta: Array
    delta_se: Array
    n: int
    npar: int
    sse: float
    sst: float
    r2_centred: float
    mean_relative_error: float
    max_relative_error: float
    leverage: Array
    studentized: Array
    status: str = "converged"
    warnings: tuple[str, ...] = ()
    speed: Array = field(default_factory=lambda: np.empty((0, 0)))
    speed_se: Array = field(default_factory=lambda: np.empty((0, 0)))
    work: Array = field(default_factory=lambda: np.empty((0, 0)))
    work_se: Array = field(default_factory=lambda: np.empty((0, 0)))
    parameters: tuple[tuple[str, int, int], ...] = ()
    covariance: Array = field(default_factory=lambda: np.empty((0, 0)))
    condition: float = 1.0
    starts: int = 1
    starts_agreeing: int = 1
    reference: str = ""
    #: (codes, systems): points of each cell that took part
    points: Index = field(default_factory=lambda: np.empty((0, 0), np.int64))

    @property
    def df(self) -> int:
        return self.n - self.npar

    @property
    def r2(self) -> float:
        """Uncentred: 1 - SSE/SST."""
        return 1.0 - self.sse / self.sst

    @property
    def s(self) -> float:
        """Residual standard deviation; NaN without degrees of freedom."""
        return float(np.sqrt(self.sse / self.df)) if self.df > 0 else float("nan")

    @property
    def aicc(self) -> float:
        """N ln(SSE/N) + 2k + 2k(k+1)/(N-k-1), k = npar + 1; NaN where that has no value."""
        k = self.npar + 1
        if self.n - k - 1 <= 0 or self.sse <= 0:
            return float("nan")
        return self.n * np.log(self.sse / self.n) + 2 * k + 2 * k * (k + 1) / (self.n - k - 1)

    def correlation(self) -> Array:
        """Of the free parameters."""
        sd = np.sqrt(np.diag(self.covariance))
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.covariance / np.outer(sd, sd)

    def ratio(self, kind: Literal["speed", "work"], function: int, a: int, b: int) -> tuple[float, float]:
        """Value of a over value of b, and its standard error (zero where a is b)."""
        values = self.speed[function] if kind == "speed" else self.work[function]
        gradient = np.zeros(len(self.parameters))
        for index, slope in ((a, 1.0 / values[b]), (b, -values[a] / values[b] ** 2)):
            key = (kind, function, index)
            if key in self.parameters:
                gradient[self.parameters.index(key)] += slope
        variance = float(gradient @ self.covariance @ gradient)
        return float(values[a] / values[b]), float(np.sqrt(max(variance, 0.0)))

    def predict(self, code: int, system: int, p: Array) -> tuple[Array, Array, Array]:
        """Response at p (K,) of a cell, its standard error, and that of a new measurement; (K,) each.

        For ``log`` the errors are those of the logarithm. NaN where the model says nothing of the cell.
        """
        p = np.asarray(p, np.float64)
        scale = np.ones_like(p) if self.response.kind == "t" else p
        g = scale[:, None] * np.stack([characteristic(text).u(p) for text in self.functions], axis=1)
        value = g @ self.delta[:, code, system]
        gradient = self._gradient(code, system, g)
        s2 = self._cell_s2(code, system)
        variance = np.einsum("ki,ij,kj->k", gradient, self._cell_covariance(code, system), gradient)
        if self.response.kind == "log":
            with np.errstate(invalid="ignore", divide="ignore"):
                variance = variance / value**2
        se = np.sqrt(np.maximum(variance, 0.0))
        return value, se, np.sqrt(se * se + s2)

    def seconds(self, code: int, system: int, p: Array) -> Array:
        """Predicted run time (s) at p (K,); t' itself where the table held nothing else."""
        p = np.asarray(p, np.float64)
        value = self.predict(code, system, p)[0]
        if self.response.kind == "t" or self.data.transformed:
            return value
        return value / (p * self.response.factor[code, system])

    def _gradient(self, code: int, system: int, g: Array) -> Array:
        if self.kind == "individual":
            return g
        w, v = self.work[:, code], 1.0 / self.speed[:, system]
        # by work and by speed; parameters that are fixed have no column in the covariance
        return np.concatenate([g * v, -g * w * v * v], axis=1)

    def _cell_covariance(self, code: int, system: int) -> Array:
        count = len(self.functions)
        if self.kind == "individual":
            keys = [("delta", i, code * len(self.data.systems) + system) for i in range(count)]
        else:
            keys = [("work", i, code) for i in range(count)] + [("speed", i, system) for i in range(count)]
        found = np.array([self._position.get(key, -1) for key in keys])
        cov = np.zeros((len(keys), len(keys)))
        known = found >= 0
        cov[np.ix_(known, known)] = self.covariance[np.ix_(found[known], found[known])]
        return cov

    @property
    def _position(self) -> dict[tuple[str, int, int], int]:
        found = self.__dict__.get("_positions")
        if found is None:
            found = {key: k for k, key in enumerate(self.parameters)}
            object.__setattr__(self, "_positions", found)
        return found

    def _cell_s2(self, code: int, system: int) -> float:
        if self.kind == "joint":
            return self.s**2
        mine = self.used & (self.data.code == code) & (self.data.system == system)
        spare = int(mine.sum()) - len(self.functions)
        return float((self.residual[mine] ** 2).sum() / spare) if spare > 0 else float("nan")


# --- cells reduced to triangles ---


@dataclass(frozen=True, eq=False)
class _Cells:
    """K non-empty cells: code, system, points (K,); triangle (K, I, I), target (K, I), rest (K,) = the sum
    of squares that no delta can remove."""

    code: Index
    system: Index
    points: Index
    triangle: Array
    target: Array
    rest: Array
    number: Index  # (N,) cell of each measurement

    @property
    def fitted_alone(self) -> NDArray[np.bool_]:
        """(K,) cells whose own points determine every delta."""
        diagonal = np.abs(np.diagonal(self.triangle, axis1=1, axis2=2))
        norms = np.linalg.norm(self.triangle, axis=1)
        sound = (diagonal > 1e-10 * np.maximum(norms, 1e-300)).all(1)
        return sound & (self.points >= self.triangle.shape[1])


def _reduce(data: Measurements, columns: Array, y: Array) -> _Cells:
    """One batched QR over all cells, padded with zero rows to the largest."""
    count = columns.shape[1]
    key = data.code * len(data.systems) + data.system
    keys, number, points = np.unique(key, return_inverse=True, return_counts=True)
    order = np.argsort(number, kind="stable")
    starts = np.cumsum(points) - points
    place = np.arange(len(data)) - np.repeat(starts, points)
    padded = np.zeros((keys.size, max(int(points.max()), count + 1), count + 1))
    padded[number[order], place, :count] = columns[order]
    padded[number[order], place, count] = y[order]
    upper = np.linalg.qr(padded, mode="r")
    return _Cells(
        keys // len(data.systems),
        keys % len(data.systems),
        points.astype(np.int64),
        upper[:, :count, :count],
        upper[:, :count, count],
        upper[:, count, count] ** 2,
        number.astype(np.int64),
    )


# --- the product model ---


class _Product:
    """Least squares of target = base . (w[code] * v[system]) over rows, v = 1/r, some parameters fixed.

    Parameters are stacked as w (codes * I) and v (systems * I); `free` says which are not fixed.
    """

    def __init__(
        self,
        base: Array,
        target: Array,
        code: Index,
        system: Index,
        shape: tuple[int, int],
        free: NDArray[np.bool_],
        log: bool,
    ) -> None:
        self.base, self.target, self.code, self.system, self.shape = base, target, code, system, shape
        self.free, self.log = free, log
        count = base.shape[1]
        # Which parameters a row touches: its code's w, then its system's v.
        self.touched = np.concatenate(
            [
                code[:, None] * count + np.arange(count),
                shape[0] * count + system[:, None] * count + np.arange(count),
            ],
            axis=1,
        )
        self.size = count * sum(shape)

    def split(self, theta: Array) -> tuple[Array, Array]:
        count = self.base.shape[1]
        return theta[: self.shape[0] * count].reshape(-1, count), theta[self.shape[0] * count :].reshape(
            -1, count
        )

    def residual(self, theta: Array) -> Array:
        w, v = self.split(theta)
        fit = np.einsum("ki,ki,ki->k", self.base, w[self.code], v[self.system])
        if not self.log:
            return self.target - fit
        with np.errstate(all="ignore"):
            return np.where(fit > 0, np.log(self.target) - np.log(fit), np.inf)

    def slopes(self, theta: Array) -> Array:
        """(rows, 2 I): derivatives of the fit by the parameters that a row touches."""
        w, v = self.split(theta)
        slopes = np.concatenate([self.base * v[self.system], self.base * w[self.code]], axis=1)
        if self.log:
            slopes /= np.einsum("ki,ki,ki->k", self.base, w[self.code], v[self.system])[:, None]
        return slopes

    def normal(self, theta: Array, residual: Array) -> tuple[Array, Array]:
        """Gradient (up to sign) and J'J of the free parameters."""
        slopes = self.slopes(theta)
        gradient = np.bincount(
            self.touched.ravel(), (slopes * residual[:, None]).ravel(), minlength=self.size
        )
        pairs = self.touched[:, :, None] * self.size + self.touched[:, None, :]
        products = slopes[:, :, None] * slopes[:, None, :]
        square = np.bincount(pairs.ravel(), products.ravel(), minlength=self.size**2)
        square = square.reshape(self.size, self.size)
        return gradient[self.free], square[np.ix_(self.free, self.free)]

    def jacobian(self, theta: Array) -> Array:
        dense = np.zeros((len(self.target), self.size))
        np.put_along_axis(dense, self.touched, self.slopes(theta), axis=1)
        return dense[:, self.free]

    def polish(self, theta: Array, total: float) -> tuple[Array, float, bool]:
        """Levenberg-Marquardt; parameters, sum of squares, and whether the gradient vanished."""
        residual = self.residual(theta)
        sse = float(residual @ residual)
        damping, settled = 1e-4, False
        for _ in range(_ROUNDS):
            gradient, square = self.normal(theta, residual)
            scale = np.sqrt(np.maximum(np.diag(square), 1e-300))
            # Of the cosine between residual and columns; below this it is rounding.
            settled = bool((np.abs(gradient) <= 1e-11 * scale * np.sqrt(total)).all())
            if settled:
                break
            scaled = square / np.outer(scale, scale)
            improved = False
            while damping < 1e12:
                step = np.zeros(self.size)
                step[self.free] = (
                    np.linalg.solve(scaled + damping * np.eye(scale.size), gradient / scale) / scale
                )
                tried = self.residual(theta + step)
                value = float(tried @ tried)
                if value < sse:
                    theta, residual, sse, improved = theta + step, tried, value, True
                    damping = max(damping / 10, 1e-15)
                    break
                damping *= 10
            if not improved:
                # No descent is left in double precision.
                settled = bool((np.abs(gradient) <= 1e-7 * scale * np.sqrt(total)).all())
                break
        return theta, sse, settled


def _alternate(
    cells: _Cells, shape: tuple[int, int], v: Array, total: float, positive: bool
) -> tuple[Array, Array]:
    """Alternating least squares from speeds v (systems, I): w for fixed v, v for fixed w, again."""
    count = v.shape[1]
    square = np.zeros((*shape, count, count))
    mixed = np.zeros((*shape, count))
    square[cells.code, cells.system] = np.einsum("kji,kjl->kil", cells.triangle, cells.triangle)
    mixed[cells.code, cells.system] = np.einsum("kji,kj->ki", cells.triangle, cells.target)
    solve = _solve_positive if positive else _solve
    before = np.inf
    w = np.zeros((shape[0], count))
    for _ in range(_ALTERNATIONS * (5 if positive else 1)):
        w = solve(np.einsum("csij,si,sj->cij", square, v, v), np.einsum("csi,si->ci", mixed, v))
        v = solve(np.einsum("csij,ci,cj->sij", square, w, w), np.einsum("csi,ci->si", mixed, w))
        size = np.abs(v).max(0)
        size[size == 0] = 1.0
        v, w = v / size, w * size
        delta = w[cells.code] * v[cells.system]
        error = cells.target - np.einsum("kij,kj->ki", cells.triangle, delta)
        sse = float((error * error).sum())
        if before - sse < 1e-14 * total:
            break
        before = sse
    return w, v


def _solve(square: Array, mixed: Array) -> Array:
    """Symmetric systems (K, I, I); where one is singular, the shortest solution."""
    scale = np.sqrt(np.maximum(np.diagonal(square, axis1=1, axis2=2), 1e-300))
    scaled = square / (scale[:, :, None] * scale[:, None, :])
    solution = np.linalg.pinv(scaled, rcond=1e-13, hermitian=True) @ (mixed / scale)[:, :, None]
    return solution[:, :, 0] / scale


def _solve_positive(square: Array, mixed: Array) -> Array:
    """The same with no value below zero: the best of all choices of values that are zero."""
    count = mixed.shape[1]
    best, gain = np.zeros_like(mixed), np.zeros(len(mixed))
    for size in range(1, count + 1):
        for kept in combinations(range(count), size):
            chosen = list(kept)
            part = _solve(square[:, chosen][:, :, chosen], mixed[:, chosen])
            achieved = (part * mixed[:, chosen]).sum(1)
            better = (part >= 0).all(1) & (achieved > gain)
            best[better] = 0.0
            best[np.ix_(better, chosen)] = part[better]
            gain[better] = achieved[better]
    return best


# --- fits ---


def fit_individual(
    data: Measurements, functions: Sequence[str] = ("1/p", "1/sqrt(p)"), response: str = "t'"
) -> ModelFit:
    """Every cell by itself (UTK-CS-97-354, section 4.1). Cells with fewer points than functions are left out.

    Raises
    ------
    ValueError : no cell can be fitted, or the arguments are wrong.
    """
    used_functions, answer = _prepared(data, functions, response)
    log = answer.kind == "log"
    columns = answer.columns(used_functions, data.p)
    weight = 1.0 / answer.y if log else np.ones(len(data))
    cells = _reduce(data, columns * weight[:, None], answer.y * weight)
    count = len(used_functions)
    shape = len(data.codes), len(data.systems)
    sound = cells.fitted_alone
    warnings = _left_out(data, cells, sound, count)
    if not sound.any():
        raise ValueError(f"no cell has points at {count} or more different p, which {count} functions need")
    safe = np.where(sound[:, None, None], cells.triangle, np.eye(count))
    values = np.linalg.solve(safe, cells.target[:, :, None])[:, :, 0]
    if log:
        values = _relative_to_log(data, columns, answer.y, cells, values, sound)
    used = sound[cells.number]
    fitted = np.where(used, np.einsum("ki,ki->k", columns, values[cells.number]), np.nan)
    residual = np.log(answer.y / fitted) if log else answer.y - fitted
    rss = np.bincount(cells.number, np.where(used, residual, 0.0) ** 2, minlength=sound.size)
    spare = cells.points - count
    with np.errstate(invalid="ignore", divide="ignore"):
        s2 = np.where(spare > 0, rss / spare, np.nan)
    inverse = np.linalg.inv(safe)
    if log:
        weight = 1.0 / np.where(used, fitted, 1.0)
        inverse = np.linalg.inv(
            np.where(
                sound[:, None, None],
                _reduce(data, columns * weight[:, None], answer.y * weight).triangle,
                np.eye(count),
            )
        )
    unit = np.einsum("kij,klj->kil", inverse, inverse)
    delta, delta_se = np.full((2, count, *shape), np.nan)
    delta[:, cells.code[sound], cells.system[sound]] = values[sound].T
    spread = np.sqrt(np.diagonal(unit, axis1=1, axis2=2) * s2[:, None])
    delta_se[:, cells.code[sound], cells.system[sound]] = spread[sound].T
    slopes = columns * weight[:, None] if log else columns
    leverage = np.einsum("ki,kij,kj->k", slopes, unit[cells.number], slopes)
    kept = np.flatnonzero(sound)
    covariance = np.zeros((kept.size * count, kept.size * count))
    for k, cell in enumerate(kept):
        covariance[k * count : (k + 1) * count, k * count : (k + 1) * count] = unit[cell] * s2[cell]
    if (spare[sound] == 0).any():
        warnings.append(
            f"{int((spare[sound] == 0).sum())} cells have as many points as functions: they are met exactly, "
            "without standard errors"
        )
    return ModelFit(
        kind="individual",
        functions=tuple(f.text for f in used_functions),
        response=answer,
        data=data,
        used=used,
        fitted=fitted,
        residual=residual,
        delta=delta,
        delta_se=delta_se,
        leverage=np.where(used, leverage, np.nan),
        studentized=_studentized(
            residual, leverage, rss[cells.number], (cells.points - count)[cells.number], used
        ),
        npar=count * int(sound.sum()),
        warnings=tuple(warnings),
        parameters=tuple(
            ("delta", i, int(cells.code[c] * shape[1] + cells.system[c])) for c in kept for i in range(count)
        ),
        covariance=covariance,
        points=_points(cells, shape, sound),
        **_goodness(answer, used, fitted, residual),
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
    """The product model over all cells (UTK-CS-97-354, section 4.2, tables 4 and 5).

    Parameters
    ----------
    reference : a system or a code whose parameters are 1; None: the first system. Only ratios have a
        meaning, so nothing else depends on it.
    positive : no parameter below zero (by default negative ones are allowed and say that a function does
        not fit).
    starts : random starts beside the two fixed ones; the lowest sum of squares wins.

    Raises
    ------
    ValueError : one system or one code only, no more measurements than parameters, or wrong arguments.
    """
    used_functions, answer = _prepared(data, functions, response)
    log = answer.kind == "log"
    count, shape = len(used_functions), (len(data.codes), len(data.systems))
    present = np.unique(data.code).size, np.unique(data.system).size
    if min(present) < 2:
        what = "system" if present[1] < 2 else "code"
        raise ValueError(
            f"there is only one {what}: a product of work and speed needs two or more of each, "
            "fit individually"
        )
    columns = answer.columns(used_functions, data.p)
    weight = 1.0 / answer.y if log else np.ones(len(data))
    cells = _reduce(data, columns * weight[:, None], answer.y * weight)
    fixed, warnings = _references(data, cells, reference, [f.text for f in used_functions])
    free = ~np.isfinite(fixed)
    if len(data) <= int(free.sum()):
        raise ValueError(
            f"{len(data)} measurements cannot determine {int(free.sum())} parameters, "
            "add measurements or take fewer functions"
        )
    product = _rows(data, cells, columns, answer, shape, free, log)
    total = float(product.target @ product.target) if not log else float(len(data))
    outcomes = []
    for v in _first_speeds(cells, shape, count, starts):
        w, v = _alternate(cells, shape, v, float((cells.target**2).sum()), positive)
        theta, ok = _normalised(np.concatenate([w.ravel(), v.ravel()]), fixed, shape, count, cells)
        if not ok:
            continue
        if positive:
            residual = product.residual(theta)
            outcomes.append((float(residual @ residual), theta, True))
            continue
        if log and not np.isfinite(product.residual(theta)).all():
            continue
        theta, sse, settled = product.polish(theta, total)
        outcomes.append((sse, theta, settled))
    if not outcomes:
        raise ValueError(
            "the fit did not succeed from any start: a reference parameter vanishes, "
            "choose another reference or other functions"
        )
    outcomes.sort(key=lambda outcome: outcome[0])
    best, theta, settled = outcomes[0]
    agreeing = sum(sse - best <= 1e-8 * total for sse, _, _ in outcomes)
    return _joint_result(
        data, used_functions, answer, columns, cells, product, theta, settled,
        warnings, outcomes_count=len(outcomes), agreeing=agreeing, reference=reference, fixed=fixed,
        positive=positive,
    )  # fmt: skip


def _prepared(
    data: Measurements, functions: Sequence[str], response: str
) -> tuple[tuple[Characteristic, ...], Response]:
    found = tuple(characteristic(text) for text in functions)
    if not found or len({f.text for f in found}) < len(found):
        raise ValueError("name one or more different functions of p")
    if not len(data):
        raise ValueError("there are no measurements to fit")
    return found, respond(data, response)


def _rows(
    data: Measurements,
    cells: _Cells,
    columns: Array,
    answer: Response,
    shape: tuple[int, int],
    free: NDArray[np.bool_],
    log: bool,
) -> _Product:
    """Rows of the triangles; logarithms need the measurements themselves."""
    if log:
        return _Product(columns, answer.y, data.code, data.system, shape, free, True)
    count = columns.shape[1]
    return _Product(
        cells.triangle.reshape(-1, count),
        cells.target.ravel(),
        np.repeat(cells.code, count),
        np.repeat(cells.system, count),
        shape,
        free,
        False,
    )


def _first_speeds(cells: _Cells, shape: tuple[int, int], count: int, random: int) -> list[Array]:
    """Speeds (as 1/r) to start from: all 1; the best rank-one fit of the individual deltas; random ones."""
    found = [np.ones((shape[1], count))]
    sound = cells.fitted_alone
    if sound.any():
        delta = np.zeros((*shape, count))
        known = np.zeros(shape, bool)
        known[cells.code[sound], cells.system[sound]] = True
        delta[known] = np.linalg.solve(cells.triangle[sound], cells.target[sound][:, :, None])[:, :, 0]
        # `known[...] = True` above is in the order of cells, as `delta[known]` is: both row by row.
        v = np.ones((shape[1], count))
        for _ in range(30):
            w = np.einsum("csi,si->ci", delta, v) / np.maximum(known @ (v * v), 1e-300)
            v = np.einsum("csi,ci->si", delta, w) / np.maximum(known.T @ (w * w), 1e-300)
            v /= np.maximum(np.abs(v).max(0), 1e-300)
        v[np.abs(v) < 1e-6] = 1e-6
        found.append(v)
    generator = np.random.default_rng(_SEED)
    found += [np.exp(generator.normal(0.0, 0.7, (shape[1], count))) for _ in range(random)]
    return found


def _references(
    data: Measurements, cells: _Cells, reference: str | None, functions: list[str]
) -> tuple[Array, list[str]]:
    """What is fixed: (parameters,) NaN for free ones. One reference for each function and each connected
    part of the table; parameters that no measurement touches are fixed at 0."""
    shape, count = (len(data.codes), len(data.systems)), len(functions)
    fixed = np.full((sum(shape), count), np.nan)
    names = [*data.codes, *data.systems]
    if reference is not None and reference not in names:
        raise ValueError(f"there is no system or code {reference!r} to refer to")
    if reference is not None and not (
        np.any(data.systems.index(reference) == data.system)
        if reference in data.systems
        else np.any(data.codes.index(reference) == data.code)
    ):
        raise ValueError(f"{reference!r} has no measurements, it cannot be the reference")
    warnings = []
    for i in range(count):
        touched = np.linalg.norm(cells.triangle[:, :, i], axis=1) > 0
        part = _parts(cells.code[touched], cells.system[touched] + shape[0], sum(shape))
        lonely = np.bincount(part, minlength=sum(shape))[part] == 1
        fixed[lonely, i] = 0.0
        labels = np.unique(part[~lonely])
        for label in labels:
            members = np.flatnonzero(part == label)
            chosen = names.index(reference) if reference is not None else -1
            if reference in data.systems:
                chosen = shape[0] + data.systems.index(reference)
            if chosen not in members:
                chosen = int(members[members >= shape[0]][0])
            fixed[chosen, i] = 1.0
        if labels.size > 1:
            warnings.append(
                f"in {functions[i]} the table falls into {labels.size} parts with no code and no system in "
                "common: ratios between parts do not exist, each has a reference of its own"
            )
    return fixed.ravel(), warnings


def _parts(a: Index, b: Index, nodes: int) -> Index:
    """Connected parts of a graph: the smallest node of each node's part."""
    label = np.arange(nodes)
    while True:
        low = np.minimum(label[a], label[b])
        new = label.copy()
        np.minimum.at(new, a, low)
        np.minimum.at(new, b, low)
        if (new == label).all():
            return label
        label = new


def _normalised(
    theta: Array, fixed: Array, shape: tuple[int, int], count: int, cells: _Cells
) -> tuple[Array, bool]:
    """The same products with the references at 1, function by function and part by part."""
    split = shape[0]
    table, wanted = theta.reshape(-1, count).copy(), fixed.reshape(-1, count)
    for i in range(count):
        touched = np.linalg.norm(cells.triangle[:, :, i], axis=1) > 0
        part = _parts(cells.code[touched], cells.system[touched] + split, sum(shape))
        for at in np.flatnonzero(wanted[:, i] == 1.0):
            size = table[at, i]
            if not np.isfinite(size) or abs(size) < 1e-12:
                return theta, False
            factor = size if at >= split else 1.0 / size
            members = part == part[at]
            codes, systems = members.copy(), members.copy()
            codes[split:], systems[:split] = False, False
            table[codes, i] *= factor
            table[systems, i] /= factor
        table[wanted[:, i] == 0.0, i] = 0.0
    return table.ravel(), bool(np.isfinite(table).all())


def _joint_result(
    data: Measurements,
    functions: tuple[Characteristic, ...],
    answer: Response,
    columns: Array,
    cells: _Cells,
    product: _Product,
    theta: Array,
    settled: bool,
    warnings: list[str],
    *,
    outcomes_count: int,
    agreeing: int,
    reference: str | None,
    fixed: Array,
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
    delta[untouched_code.T[:, :, None] | untouched_system.T[:, None, :]] = np.nan
    # A code or system without any measurement.
    fitted = np.einsum("ki,ki,ki->k", columns, w[data.code], v[data.system])
    residual = np.log(answer.y / fitted) if log else answer.y - fitted
    used = np.ones(len(data), bool)
    sse = float(residual @ residual)
    df = len(data) - free.size
    upper = np.linalg.qr(product.jacobian(theta), mode="r")
    scale = np.linalg.norm(upper, axis=0)
    _, sizes, right = np.linalg.svd(upper / np.maximum(scale, 1e-300))
    condition = float(sizes[0] / sizes[-1]) if sizes[-1] > 0 else float("inf")
    status = "converged" if settled else "not converged"
    unit = np.full((free.size, free.size), np.nan)
    parameters = [_parameter(int(k), count, shape[0]) for k in free]
    if condition > _ILL:
        status = "not determined"
        together = np.flatnonzero(np.abs(right[-1]) > 0.3 * np.abs(right[-1]).max())[:6]
        warnings.append(
            "the measurements do not determine "
            + ", ".join(_named(parameters[k], data, functions) for k in together)
            + " separately: they move together"
        )
    elif settled or positive:
        half = right.T / sizes / np.maximum(scale, 1e-300)[:, None]
        unit = half @ half.T
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
        response=answer,
        data=data,
        used=used,
        fitted=fitted,
        residual=residual,
        delta=delta,
        delta_se=np.full_like(delta, np.nan),
        leverage=hat,
        studentized=_studentized(residual, hat, np.full(len(data), sse), np.full(len(data), df), used),
        npar=int(free.size),
        status=status,
        warnings=tuple(warnings),
        speed=speed,
        speed_se=speed_se,
        work=work,
        work_se=work_se,
        parameters=tuple(parameters),
        covariance=covariance,
        condition=condition,
        starts=outcomes_count,
        starts_agreeing=agreeing,
        reference=reference or data.systems[int(np.flatnonzero(np.isin(range(shape[1]), data.system))[0])],
        points=_points(cells, shape, np.ones(cells.code.size, bool)),
        **_goodness(answer, used, fitted, residual),
    )
    for i in range(count):
        for c in range(shape[0]):
            for s in range(shape[1]):
                fit.delta_se[i, c, s] = _product_error(fit, i, c, s)
    return fit


def _product_error(fit: ModelFit, i: int, c: int, s: int) -> float:
    """Standard error of w/r."""
    r, w = fit.speed[i, s], fit.work[i, c]
    gradient, found = [], []
    for key, slope in ((("work", i, c), 1.0 / r), (("speed", i, s), -w / (r * r))):
        at = fit._position.get(key)
        if at is not None:
            gradient.append(slope)
            found.append(at)
    g = np.array(gradient)
    variance = float(g @ fit.covariance[np.ix_(found, found)] @ g) if found else 0.0
    return float(np.sqrt(max(variance, 0.0))) if np.isfinite(variance) else float("nan")


def _parameter(index: int, count: int, codes: int) -> tuple[str, int, int]:
    at, i = divmod(index, count)
    return ("work", i, at) if at < codes else ("speed", i, at - codes)


def _named(parameter: tuple[str, int, int], data: Measurements, functions: tuple[Characteristic, ...]) -> str:
    kind, i, at = parameter
    return f"{kind} of {(data.systems if kind == 'speed' else data.codes)[at]} in {functions[i].text}"


def _leverage(
    product: _Product,
    data: Measurements,
    columns: Array,
    theta: Array,
    unit: Array,
    free: Index,
    log: bool,
) -> Array:
    """Diagonal of the hat matrix for the measurements themselves."""
    whole = _Product(columns, np.ones(len(data)), data.code, data.system, product.shape, product.free, log)
    place = np.full(product.size, -1)
    place[free] = np.arange(free.size)
    touched = place[whole.touched]
    slopes = np.where(touched >= 0, whole.slopes(theta), 0.0)
    blocks = unit[touched[:, :, None], touched[:, None, :]]
    blocks[(touched < 0)[:, :, None] | (touched < 0)[:, None, :]] = 0.0
    return np.einsum("ki,kij,kj->k", slopes, blocks, slopes)


def _studentized(
    residual: Array, leverage: Array, sse: Array, df: Index | Array, used: NDArray[np.bool_]
) -> Array:
    """Externally: by the spread that the other points have."""
    with np.errstate(all="ignore"):
        others = (sse - residual**2 / (1.0 - leverage)) / (df - 1)
        value = residual / np.sqrt(others * (1.0 - leverage))
    return np.where(used & np.isfinite(value), value, np.nan)


def _goodness(answer: Response, used: NDArray[np.bool_], fitted: Array, residual: Array) -> dict:
    y, e = answer.y[used], residual[used]
    seen = np.log(y) if answer.kind == "log" else y
    relative = np.abs(fitted[used] - y) / y
    centred = float(((seen - seen.mean()) ** 2).sum())
    return {
        "n": int(used.sum()),
        "sse": float(e @ e),
        "sst": centred if answer.kind == "log" else float(y @ y),
        "r2_centred": 1.0 - float(e @ e) / centred if centred > 0 else float("nan"),
        "mean_relative_error": float(relative.mean()),
        "max_relative_error": float(relative.max()),
    }


def _points(cells: _Cells, shape: tuple[int, int], kept: NDArray[np.bool_]) -> Index:
    points = np.zeros(shape, np.int64)
    points[cells.code[kept], cells.system[kept]] = cells.points[kept]
    return points


def _left_out(data: Measurements, cells: _Cells, sound: NDArray[np.bool_], count: int) -> list[str]:
    if sound.all():
        return []
    names = [
        f"{data.codes[c]} on {data.systems[s]}"
        for c, s in zip(cells.code[~sound], cells.system[~sound], strict=True)
    ]
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return [f"left out, having points at fewer than {count} different p: {shown}"]


def _remarks(
    data: Measurements,
    functions: tuple[Characteristic, ...],
    speed: Array,
    work: Array,
    bounded: bool,
    agreeing: int,
    starts: int,
) -> list[str]:
    found = []
    for values, names, kind in ((speed, data.systems, "speed"), (work, data.codes, "work")):
        negative = [
            f"{kind} of {names[at]} in {functions[i].text}"
            for i, at in zip(*np.nonzero(values < 0), strict=True)
        ]
        if negative:
            found.append("below zero, so this function does not describe it: " + ", ".join(negative[:6]))
    if bounded:
        found.append("parameters were kept from falling below zero; those at zero have no standard error")
    if np.unique(data.p).size < len(functions):
        found.append(f"there are only {np.unique(data.p).size} different p for {len(functions)} functions")
    if agreeing == 1 and starts > 2:
        found.append(f"only one of {starts} starts reached the lowest sum of squares")
    return found


def _relative_to_log(
    data: Measurements,
    columns: Array,
    y: Array,
    cells: _Cells,
    values: Array,
    sound: NDArray[np.bool_],
) -> Array:
    """From relative least squares to least squares of logarithms, cell by cell, by Gauss-Newton steps that
    are halved until they help."""

    def errors(values: Array) -> tuple[Array, Array]:
        fit = np.einsum("ki,ki->k", columns, values[cells.number])
        with np.errstate(all="ignore"):
            e = np.where(fit > 0, np.log(y / fit), np.inf)
        return fit, np.bincount(cells.number, e * e, minlength=sound.size)

    fit, sse = errors(values)
    if not np.isfinite(sse[sound]).all():
        at = int(np.flatnonzero(sound & ~np.isfinite(sse))[0])
        raise ValueError(
            f"the fit of {data.codes[cells.code[at]]} on {data.systems[cells.system[at]]} has times below "
            "zero, so it has no logarithm; take another response or other functions"
        )
    for _ in range(_ROUNDS):
        safe = np.where(sound[cells.number], fit, 1.0)
        step_cells = _reduce(
            data, columns / safe[:, None], np.where(sound[cells.number], np.log(y / safe), 0.0)
        )
        triangle = np.where(sound[:, None, None], step_cells.triangle, np.eye(columns.shape[1]))
        step = np.linalg.solve(triangle, step_cells.target[:, :, None])[:, :, 0]
        step[~sound] = 0.0
        size = np.ones(sound.size)
        for _ in range(40):
            tried = values + size[:, None] * step
            new_fit, new_sse = errors(tried)
            worse = sound & ~(new_sse <= sse * (1 + 1e-15))
            if not worse.any():
                break
            size[worse] /= 2
        size[worse] = 0.0
        tried = values + size[:, None] * step
        new_fit, new_sse = errors(tried)
        done = (sse - new_sse)[sound].sum() <= 1e-14 * max(sse[sound].sum(), 1e-300)
        values, fit, sse = tried, new_fit, new_sse
        if done:
            break
    return values


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

    None if the individual fits leave no degrees of freedom or use other measurements.
    """
    if joint.n != individual.n or individual.df <= 0 or joint.df <= individual.df or individual.sse <= 0:
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
    functions: Sequence[str] = tuple(c.text for c in CHARACTERISTICS),
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
                reason = "no other measurement of the code, or of the system"
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


# --- answers ---


#: Where answers about p are looked for.
LARGEST_P = 1e7


def crossover(fit: ModelFit, code: int, a: int, b: int, largest: float = LARGEST_P) -> tuple[float, ...]:
    """Every p from 1 to `largest` at which systems a and b take the same time for a code, ascending."""
    return _roots(
        lambda p: np.log(np.abs(fit.seconds(code, a, p))) - np.log(np.abs(fit.seconds(code, b, p))), largest
    )


def fastest_p(fit: ModelFit, code: int, system: int, largest: float = LARGEST_P) -> float:
    """p at which the time of a cell is least; `largest` if it falls all the way."""
    grid = np.geomspace(1.0, largest, 2001)
    low = int(np.nanargmin(fit.seconds(code, system, grid)))
    if low in (0, grid.size - 1):
        return float(grid[low])
    a, b = float(np.log(grid[low - 1])), float(np.log(grid[low + 1]))
    golden = (np.sqrt(5.0) - 1.0) / 2.0
    for _ in range(80):
        left, right = b - golden * (b - a), a + golden * (b - a)
        times = fit.seconds(code, system, np.exp(np.array([left, right])))
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

"""Least squares of the product model on cells that were reduced to triangles.

A QR decomposition reduces every cell (code, system) to a triangle with one row a function, so the cost no
longer depends on the number of measurements, and normal equations are avoided where possible. The model is
linear in the work for fixed speeds and vice versa: alternate from several starts, then refine all parameters
at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from desktop.core.arrays import Flags, Floats, Ints

_ALTERNATIONS, _ROUNDS = 200, 200
_SEED = 19970354


@dataclass(frozen=True, eq=False)
class Measurements:
    """N run times of `codes` on `systems`.

    code, system : (N,) indices into the names. p : (N,) processors. time : (N,) seconds, or t' itself if
    `transformed`. work : (codes,) operations, or None if not known; peak : (systems,) operations per second
    and processor, or None. size : (N,) problem sizes, or None.
    """

    codes: tuple[str, ...]
    systems: tuple[str, ...]
    code: Ints
    system: Ints
    p: Floats
    time: Floats
    work: Floats | None = None
    peak: Floats | None = None
    transformed: bool = False
    size: Floats | None = None

    def __len__(self) -> int:
        return int(self.p.size)

    def only(self, keep: Flags) -> Measurements:
        """The rows where `keep` (N,) is true; all names are kept."""
        rows = {name: getattr(self, name)[keep] for name in ("code", "system", "p", "time")}
        return replace(self, **rows, size=None if self.size is None else self.size[keep])

    def size_at(self, code: int, system: int, p: Floats) -> Floats | None:
        """Problem size (K,) of a cell at p (K,): proportional to p where it was measured so (weak scaling),
        else the largest measured; from the code, or from all, where the cell was never measured."""
        if self.size is None:
            return None
        mine = (self.code == code) & (self.system == system)
        for rows in (mine, self.code == code, np.ones(len(self), bool)):
            if rows.any():
                break
        share = self.size[rows] / self.p[rows]
        if np.unique(self.p[rows]).size > 1 and np.ptp(share) <= 0.01 * share.max():
            return p * float(np.median(share))
        return np.full(p.shape, self.size[rows].max())


def sums(number: Ints, values: Floats, size: int) -> Floats:
    """(size,) sum of the values (K,) that have each number (K,)."""
    return np.asarray(np.bincount(number, values, minlength=size), np.float64)


# --- cells reduced to triangles ---


@dataclass(frozen=True, eq=False)
class FactorCells:
    """K non-empty cells: code, system, points (K,); triangle (K, I, I), target (K, I), rest (K,): the
    residual sum of squares of each cell's best deltas."""

    code: Ints
    system: Ints
    points: Ints
    triangle: Floats
    target: Floats
    rest: Floats
    number: Ints  # (N,) cell of each measurement

    @property
    def fitted_alone(self) -> Flags:
        """(K,) cells whose own points determine every delta."""
        diagonal = np.abs(np.diagonal(self.triangle, axis1=1, axis2=2))
        norms = np.linalg.norm(self.triangle, axis=1)
        sound = (diagonal > 1e-10 * np.maximum(norms, 1e-300)).all(1)
        return np.asarray(sound & (self.points >= self.triangle.shape[1]))


def reduce(data: Measurements, columns: Floats, y: Floats) -> FactorCells:
    """Cells reduced to triangles by one batched QR, padded with zero rows to the largest cell. columns
    (N, I), y (N,)."""
    count = columns.shape[1]
    key = data.code * len(data.systems) + data.system
    keys, number, points = np.unique(key, return_inverse=True, return_counts=True)
    order = np.argsort(number, kind="stable")
    starts = np.cumsum(points) - points
    place = np.arange(len(data)) - np.repeat(starts, points)
    padded = np.zeros((keys.size, max(int(points.max()), count + 1), count + 1))
    padded[number[order], place, :count] = columns[order]
    padded[number[order], place, count] = y[order]
    upper: Floats = np.asarray(np.linalg.qr(padded, mode="r"), np.float64)
    return FactorCells(
        keys // len(data.systems),
        keys % len(data.systems),
        points.astype(np.int64),
        upper[:, :count, :count],
        upper[:, :count, count],
        upper[:, count, count] ** 2,
        number.astype(np.int64),
    )


# --- the product model ---


class Product:
    """Least squares of target = base . (w[code] * v[system]) over rows, v = 1/r, some parameters fixed.

    Parameters are stacked as w (codes * I), then v (systems * I); `free` marks those that are not fixed.
    """

    def __init__(
        self,
        base: Floats,
        target: Floats,
        code: Ints,
        system: Ints,
        shape: tuple[int, int],
        free: Flags,
        log: bool,
    ) -> None:
        self.base, self.target, self.code, self.system, self.shape = base, target, code, system, shape
        self.free, self.log = free, log
        count = base.shape[1]
        # Indices of a row's parameters: its code's w, then its system's v.
        self.touched = np.concatenate(
            [
                code[:, None] * count + np.arange(count),
                shape[0] * count + system[:, None] * count + np.arange(count),
            ],
            axis=1,
        )
        self.size = count * sum(shape)

    def split(self, theta: Floats) -> tuple[Floats, Floats]:
        table = theta.reshape(-1, self.base.shape[1])
        return table[: self.shape[0]], table[self.shape[0] :]

    def residual(self, theta: Floats) -> Floats:
        w, v = self.split(theta)
        fit: Floats = np.einsum("ki,ki,ki->k", self.base, w[self.code], v[self.system])
        if not self.log:
            return self.target - fit
        with np.errstate(all="ignore"):
            return np.where(fit > 0, np.log(self.target) - np.log(fit), np.inf)

    def slopes(self, theta: Floats) -> Floats:
        """(rows, 2 I): derivatives of the fit with respect to each row's parameters (`touched`)."""
        w, v = self.split(theta)
        slopes = np.concatenate([self.base * v[self.system], self.base * w[self.code]], axis=1)
        if self.log:
            slopes /= np.einsum("ki,ki,ki->k", self.base, w[self.code], v[self.system])[:, None]
        return slopes

    def normal(self, theta: Floats, residual: Floats) -> tuple[Floats, Floats]:
        """J'r (the negative gradient) and J'J of the free parameters."""
        slopes = self.slopes(theta)
        gradient = sums(self.touched.ravel(), (slopes * residual[:, None]).ravel(), self.size)
        pairs = self.touched[:, :, None] * self.size + self.touched[:, None, :]
        products = slopes[:, :, None] * slopes[:, None, :]
        square = sums(pairs.ravel(), products.ravel(), self.size**2)
        square = square.reshape(self.size, self.size)
        return gradient[self.free], square[np.ix_(self.free, self.free)]

    def jacobian(self, theta: Floats) -> Floats:
        dense = np.zeros((len(self.target), self.size))
        np.put_along_axis(dense, self.touched, self.slopes(theta), axis=1)
        return dense[:, self.free]

    def polish(self, theta: Floats, total: float, positive: bool) -> tuple[Floats, float, bool]:
        """Levenberg-Marquardt: parameters, sum of squares, and whether the gradient vanished.

        `positive`: parameters are projected to be at least zero. One at zero is fixed for as long as the
        gradient pushes it below zero.
        """
        free, residual = np.flatnonzero(self.free), self.residual(theta)
        sse = float(residual @ residual)
        damping, converged = 1e-4, False
        for _ in range(_ROUNDS):
            gradient, square = self.normal(theta, residual)
            loose = ~(positive & (theta[free] == 0.0) & (gradient <= 0.0))
            gradient, square = gradient[loose], square[np.ix_(loose, loose)]
            scale = np.sqrt(np.maximum(np.diag(square), 1e-300))
            # The cosine between residual and each column is rounding below this.
            converged = bool((np.abs(gradient) <= 1e-11 * scale * np.sqrt(total)).all())
            if converged:
                break
            scaled = square / np.outer(scale, scale)
            improved = False
            while damping < 1e12:
                ahead = theta.copy()
                ahead[free[loose]] += (
                    np.linalg.solve(scaled + damping * np.eye(scale.size), gradient / scale) / scale
                )
                if positive:
                    ahead = np.maximum(ahead, 0.0)
                trial = self.residual(ahead)
                value = float(trial @ trial)
                if value < sse:
                    step = (ahead - theta)[free[loose]]
                    promised = float(step @ (2.0 * gradient - square @ step))
                    # Steps that are too long, as logarithms may make them, gain much less than predicted.
                    damping = max(damping / 10, 1e-15) if sse - value > promised / 4 else damping * 10
                    theta, residual, sse, improved = ahead, trial, value, True
                    break
                damping *= 10
            if not improved:
                # No descent is left in double precision.
                converged = bool((np.abs(gradient) <= 1e-7 * scale * np.sqrt(total)).all())
                break
        return theta, sse, converged


def alternate(
    cells: FactorCells, shape: tuple[int, int], v: Floats, total: float, positive: bool
) -> tuple[Floats, Floats]:
    """w (codes, I) and v (systems, I) by alternating least squares from `v`: w for fixed v, v for fixed w.
    `total`: sum of squares of the response, for the end of the iteration."""
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


def _solve(square: Floats, mixed: Floats) -> Floats:
    """Solutions (K, I) of symmetric systems (K, I, I); where one is singular, that of least norm."""
    scale = np.sqrt(np.maximum(np.diagonal(square, axis1=1, axis2=2), 1e-300))
    scaled = square / (scale[:, :, None] * scale[:, None, :])
    # The same as np.linalg.pinv of a symmetric matrix, in a quarter of its time.
    values, vectors = np.linalg.eigh(scaled)
    size = np.abs(values)
    regular = size > 1e-13 * size.max(1, keepdims=True)
    inverse = np.where(regular, 1.0 / np.where(regular, values, 1.0), 0.0)
    along = (mixed / scale)[:, None, :] @ vectors
    return np.asarray((vectors @ (along[:, 0, :] * inverse)[:, :, None])[:, :, 0] / scale)


def _solve_positive(square: Floats, mixed: Floats) -> Floats:
    """The same with non-negative solutions: the best over all subsets of values that are zero."""
    count = mixed.shape[1]
    best, gain = np.zeros_like(mixed), np.zeros(len(mixed))
    for size in range(1, count + 1):
        for positive in combinations(range(count), size):
            free = list(positive)
            part = _solve(square[:, free][:, :, free], mixed[:, free])
            achieved = (part * mixed[:, free]).sum(1)
            better = (part >= 0).all(1) & (achieved > gain)
            best[better] = 0.0
            best[np.ix_(better, free)] = part[better]
            gain[better] = achieved[better]
    return best


def first_speeds(cells: FactorCells, shape: tuple[int, int], count: int, random: int) -> list[Floats]:
    """Starting values (systems, I) of 1/r: all 1; the best rank-one fit of the individual deltas; `random`
    random ones."""
    speeds = [np.ones((shape[1], count))]
    sound = cells.fitted_alone
    if sound.any():
        delta = np.zeros((*shape, count))
        present = np.zeros(shape, bool)
        present[cells.code[sound], cells.system[sound]] = True
        delta[present] = np.linalg.solve(cells.triangle[sound], cells.target[sound][:, :, None])[:, :, 0]
        # `delta[present]` is row by row, which is the order of the cells.
        v = np.ones((shape[1], count))
        for _ in range(30):
            w = np.einsum("csi,si->ci", delta, v) / np.maximum(present @ (v * v), 1e-300)
            v = np.einsum("csi,ci->si", delta, w) / np.maximum(present.T @ (w * w), 1e-300)
            v /= np.maximum(np.abs(v).max(0), 1e-300)
        v[np.abs(v) < 1e-6] = 1e-6
        speeds.append(v)
    generator = np.random.default_rng(_SEED)
    speeds += [np.exp(generator.normal(0.0, 0.7, (shape[1], count))) for _ in range(random)]
    return speeds


def references(
    data: Measurements, cells: FactorCells, reference: str | None, functions: list[str]
) -> tuple[Floats, list[str]]:
    """Values of fixed parameters, (parameters,), NaN for free ones; and warnings. Each function has one
    reference (1) in each connected part of the table; parameters without measurements are fixed at 0.

    Raises
    ------
    ValueError : `reference` is not a system or code, or has no measurements.
    """
    shape, count = (len(data.codes), len(data.systems)), len(functions)
    fixed = np.full((sum(shape), count), np.nan)
    preferred = -1
    if reference in data.systems:
        preferred = shape[0] + data.systems.index(reference)
    elif reference in data.codes:
        preferred = data.codes.index(reference)
    elif reference is not None:
        raise ValueError(f"there is no system or code {reference!r} to be the reference")
    if preferred >= 0 and preferred not in (*data.code, *(shape[0] + data.system)):
        raise ValueError(f"{reference!r} has no measurements, it cannot be the reference")
    warnings = []
    for i in range(count):
        part = parts_of(cells, shape, i)
        lonely = np.bincount(part, minlength=sum(shape))[part] == 1
        fixed[lonely, i] = 0.0
        labels = np.unique(part[~lonely])
        for label in labels:
            members = np.flatnonzero(part == label)
            fixed[preferred if preferred in members else members[members >= shape[0]][0], i] = 1.0
        if labels.size > 1:
            warnings.append(
                f"in {functions[i]} the table falls into {labels.size} parts with no code and no system in "
                "common: ratios between parts do not exist, each has a reference of its own"
            )
    return fixed.ravel(), warnings


def parts_of(cells: FactorCells, shape: tuple[int, int], function: int) -> Ints:
    """(codes + systems,) number of the connected part of the table that each belongs to; cells in which the
    function is not zero connect them, and a code or system without any is a part of its own."""
    touched = np.linalg.norm(cells.triangle[:, :, function], axis=1) > 0
    return _parts(cells.code[touched], cells.system[touched] + shape[0], sum(shape))


def _parts(a: Ints, b: Ints, nodes: int) -> Ints:
    """(nodes,) connected component of each node, as its smallest node, of a graph with edges a - b."""
    label = np.arange(nodes)
    while True:
        low = np.minimum(label[a], label[b])
        new = label.copy()
        np.minimum.at(new, a, low)
        np.minimum.at(new, b, low)
        if (new == label).all():
            return label
        label = new


def normalised(
    theta: Floats, fixed: Floats, shape: tuple[int, int], count: int, cells: FactorCells
) -> tuple[Floats, bool]:
    """Parameters with the same products and the references at 1, for each function and connected part; and
    whether that is possible (no reference vanishes)."""
    split = shape[0]
    table, reference = theta.reshape(-1, count).copy(), fixed.reshape(-1, count)
    for i in range(count):
        part = parts_of(cells, shape, i)
        for at in np.flatnonzero(reference[:, i] == 1.0):
            size = table[at, i]
            members = part == part[at]
            codes, systems = members.copy(), members.copy()
            same = table[members & ((np.arange(len(part)) >= split) == (at >= split)), i]
            if not np.isfinite(size) or abs(size) <= 1e-12 * np.abs(same).max():
                return theta, False
            codes[split:], systems[:split] = False, False
            beside, across = (systems, codes) if at >= split else (codes, systems)
            table[beside, i] /= size
            table[across, i] *= size
        table[reference[:, i] == 0.0, i] = 0.0
    return table.ravel(), bool(np.isfinite(table).all())


def inverse_of(product: Product, theta: Floats) -> tuple[float, Floats, Floats]:
    """Condition of the column-scaled Jacobian, its weakest direction, and the inverse of J'J."""
    square = product.normal(theta, np.zeros(len(product.target)))[1]
    scale = np.sqrt(np.maximum(np.diag(square), 1e-300))
    sizes, right = np.linalg.eigh(square / np.outer(scale, scale))
    if sizes[0] > 1e-10 * sizes[-1]:
        sizes = np.sqrt(sizes)
    else:
        # The smallest singular values of J'J are lost to rounding; take them from the Jacobian itself.
        upper = np.linalg.qr(product.jacobian(theta) / scale, mode="r")
        _, sizes, right = np.linalg.svd(upper)
        sizes, right = sizes[::-1], right[::-1].T
    condition = float(sizes[-1] / sizes[0]) if sizes[0] > 0 else float("inf")
    with np.errstate(divide="ignore", invalid="ignore"):
        half = right / sizes / scale[:, None]
        return condition, right[:, 0], half @ half.T

"""Confidence in a factor model: prediction intervals, the test of the product form, outliers.

The asymptotic errors of `desktop.core.factor_model` hold if the model does. The intervals here also hold
where the product form, or the functions of p, are only approximately right: their widths come from
predictions of left-out cells, and of the left-out largest p. Leaving out is computed in closed form (the rows
of one cell change only its code's and its system's parameters) without another fit, except for the largest p
of all cells of a joint fit, which are left out at once.

Sources: Smyth, Stat. Appl. Genet. Mol. Biol. 3 (2004) 3, for the spread of small cells; Vovk, Gammerman,
Shafer, Algorithmic Learning in a Random World (2005), for quantiles of left-out errors. The coverage of each
interval is measured in ``tests/benchmarks/factor_model.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from desktop.core.arrays import Flags, Floats, Ints
from desktop.core.characteristic import characteristic
from desktop.core.factor_fit import sums
from desktop.core.factor_model import ModelFit, exact, fit_individual, fit_joint
from desktop.core.factor_response import respond

CONFIDENCE = 0.95
#: Probability that any row of a sound table is accused; that the product form is rejected where it holds.
SUSPECT, REJECT = 0.05, 0.05
#: Degrees of freedom of the heaviest tails that are assumed for errors of sound rows. As limits are averaged
#: over tails, the stated probability holds down to 3 degrees of freedom.
HEAVIEST = 2.2
#: Beyond the measured p, intervals get their full width after so many factors e, so bands have no step.
AT_ONCE = 0.4


def quantile(df: float | Floats, confidence: float = CONFIDENCE) -> float | Floats:
    """Two-sided quantile of Student's t; NaN without degrees of freedom."""
    from scipy.special import stdtrit

    df = np.asarray(df, np.float64)
    value = np.where(
        df > 0, stdtrit(np.where(df > 0, np.minimum(df, 1e9), 1.0), 0.5 + confidence / 2), np.nan
    )
    return float(value) if value.ndim == 0 else value


# --- does the product form hold? ---


@dataclass(frozen=True)
class FTest:
    """F test of the product form; a small p says that it does not hold exactly."""

    f: float
    df1: int
    df2: int
    p: float


def f_test(joint: ModelFit, individual: ModelFit) -> FTest | None:
    """F test of the joint fit against individual fits of the same functions.

    A cell with fewer different p than functions is fitted exactly at each p, so only its repeats contribute
    to the individual sum of squares. None if the individual fits leave no degrees of freedom or no error, or
    use other measurements.
    """
    if joint.data is not individual.data and joint.n != individual.n:
        return None
    npar, sse, extra = individual.npar, individual.sse, joint.used & ~individual.used
    if extra.any():
        data, y = joint.data, joint.response.y
        y = np.log(y) if joint.response.kind == "log" else y
        key = np.stack([data.code[extra], data.system[extra], data.p[extra]], axis=1)
        _, number = np.unique(key, axis=0, return_inverse=True)
        number, size = number.ravel(), int(number.max()) + 1
        mean = sums(number, y[extra], size) / np.bincount(number)
        npar += size
        sse += float(((y[extra] - mean[number]) ** 2).sum())
    df1, df2 = npar - joint.npar, joint.n - npar
    if df2 <= 0 or df1 <= 0 or exact(individual):
        return None
    from scipy.special import fdtrc

    f = (joint.sse - sse) / df1 / (sse / df2)
    return FTest(f, df1, df2, float(fdtrc(df1, df2, max(f, 0.0))))


def criterion(fit: ModelFit) -> float:
    """AICc on the scale of t', so that it compares fits of different responses; -inf for exact fits. The
    density of t' is that of the fitted response times its derivative, which is 1/t' for the logarithm."""
    if exact(fit):
        return -np.inf
    change = 0.0
    if fit.response.kind == "log":
        change = float(np.log(fit.response.y[fit.used]).sum())
    elif fit.response.kind == "t":
        change = float(np.log(respond(fit.data).y[fit.used] / fit.response.y[fit.used]).sum())
    return float(fit.aicc + 2.0 * change)


# --- rows that stand out ---


#: The meaning of the two verdicts on a row, in words.
VERDICTS = (
    "accused are rows beyond what errors with heavy tails reach: with errors from normal to Student's t of 3 "
    "degrees of freedom at most 5 % of sound tables have one; rows worth a look are beyond what normal "
    "errors reach, which sound rows often are where tails are heavy"
)


def suspects(fit: ModelFit) -> Ints:
    """Rows whose residual is too large for normal errors of that many rows (Bonferroni): worth a look."""
    return _beyond_normal(fit, _scores(fit))


def accused(fit: ModelFit) -> Ints:
    """Those `suspects` that are too large even for errors with tails as heavy as those of the other rows. At
    most `SUSPECT` of sound tables have one, whatever their tails."""
    score = _scores(fit)
    beyond = _beyond_normal(fit, score)
    return (
        beyond[score[beyond] > tail_limit(score[np.isfinite(score)], beyond.size)] if beyond.size else beyond
    )


def _beyond_normal(fit: ModelFit, score: Floats) -> Ints:
    with np.errstate(invalid="ignore"):
        return np.flatnonzero(score > quantile(1e9, 1.0 - SUSPECT / max(fit.n, 1)))


def _scores(fit: ModelFit) -> Floats:
    """(N,) sizes of externally studentized residuals, converted to quantiles of the normal distribution; NaN
    where not known.

    In individual fits the spread is that of the cell's other rows. For the cell's worst row only it is shrunk
    to that of the other cells, as few rows determine it badly; elsewhere that would make rows beside a wrong
    one stand out. Of logarithms the smaller of residual and relative error counts, so that neither normal nor
    log-normal errors, which differ in the tails only, stand out.
    """
    from scipy.special import ndtri, stdtr

    if exact(fit):
        return np.full(len(fit.data), np.nan)
    df, size = np.full(len(fit.data), fit.df - 1.0), np.abs(fit.studentized)
    if fit.kind == "individual":
        cell = fit.data.code * fit.points.shape[1] + fit.data.system
        squares, spare = _cells(fit)
        df = spare[cell] - 1.0
        with np.errstate(invalid="ignore", divide="ignore"):
            drop = np.where(np.isfinite(size) & (df >= 1), fit.residual**2 / (1.0 - fit.leverage), -1.0)
        largest = np.zeros(spare.size)
        np.maximum.at(largest, cell, drop)
        for row in np.flatnonzero((drop == largest[cell]) & (drop > 0)).tolist():
            k = cell[row]
            common = _common(np.delete(squares, k), np.delete(spare, k))
            without = np.maximum(squares[k] - drop[row], 0.0) / df[row]
            s2, more = _mixed(without, df[row], *common)
            df[row], size[row] = min(more, spare.sum() - 1.0), np.sqrt(drop[row] / s2)
    with np.errstate(invalid="ignore"):
        tail = np.maximum(stdtr(np.maximum(df, 1.0), -size * _relative(fit)), 1e-300)
        return np.where(df >= 1, -ndtri(tail), np.nan)


def _relative(fit: ModelFit) -> Floats:
    """(N,) factor from a residual of logarithms to the smaller of it and the relative error; else 1."""
    if fit.response.kind != "log":
        return np.ones(len(fit.data))
    with np.errstate(all="ignore"):
        return np.where(fit.residual < 0, -np.expm1(fit.residual) / -fit.residual, 1.0)


def tail_limit(size: Floats, beyond: int) -> float:
    """The limit that the largest of n errors exceeds in `SUSPECT` of samples with tails as in `size` (n,).

    Errors follow Student's t with unknown scale and degrees of freedom (`HEAVIEST` to normal, uniform in the
    inverse), weighted with the likelihood of the sizes; the `beyond` largest (at most one in twenty) count as
    censored.
    """
    from scipy.special import gammaln, stdtr

    order = np.sort(size)
    n = order.size
    k = min(beyond, max(1, n // 20), n - 2)
    bulk, edge = order[: n - k], order[n - k - 1]
    df = (1.0 / np.maximum(np.linspace(0.0, 1 / HEAVIEST, 11), 1e-6))[:, None]
    scale = np.sqrt(np.mean(bulk**2)) * np.geomspace(0.4, 1.6, 41)
    log = np.empty((df.size, scale.size))
    unit = gammaln((df + 1) / 2) - gammaln(df / 2) - np.log(df) / 2
    for at, one in enumerate(scale.tolist()):
        density = unit - (df + 1) / 2 * np.log1p((bulk / one) ** 2 / df)
        log[:, at] = density.sum(1) - bulk.size * np.log(one) + k * np.log(2 * stdtr(df[:, 0], -edge / one))
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    low, high = np.log(edge), np.log(edge) + 12.0
    for _ in range(50):
        middle = (low + high) / 2
        one_of = 2 * stdtr(df, -np.exp(middle) / scale)
        passed = float((weight * -np.expm1(n * np.log1p(-np.minimum(one_of, 1 - 1e-12)))).sum())
        low, high = (middle, high) if passed > SUSPECT else (low, middle)
    return float(np.exp(high))


# --- leaving rows out, in closed form ---


def _slopes(fit: ModelFit, code: Ints, system: Ints, base: Floats, value: Floats) -> Floats:
    """(K, P): derivatives of the fit (or its logarithm) with respect to the parameters of a row: its cell's
    deltas or, in joint fits, its code's works and its system's inverse speeds."""
    if fit.kind == "joint":
        base = np.concatenate([base / fit.speed.T[system], base * fit.work.T[code]], axis=1)
    with np.errstate(all="ignore"):
        return base / value[:, None] if fit.response.kind == "log" else base


def _units(fit: ModelFit, code: Ints, system: Ints) -> Floats:
    """(K, P, P): covariance of the parameters of `_slopes` for unit variance of a row; NaN where not
    determined."""
    cells, number = np.unique(np.stack([code, system], axis=1), axis=0, return_inverse=True)
    units: list[Floats] = []
    for c, s in cells.tolist():
        if fit.kind == "joint":
            turn = np.concatenate([np.ones(len(fit.functions)), -1.0 / fit.speed[:, s] ** 2])
            with np.errstate(all="ignore"):
                units.append(fit.cell_covariance(c, s) * np.outer(turn, turn) / fit.s**2)
            continue
        rows = np.flatnonzero(fit.used & (fit.data.code == c) & (fit.data.system == s))
        cell = np.full(rows.size, c), np.full(rows.size, s)
        steep = _slopes(fit, *cell, _base(fit, rows), fit.fitted[rows])
        size = len(fit.functions)
        inverse = np.full((size, size), np.nan)
        if rows.size >= size:
            inverse[:] = np.linalg.pinv(steep.T @ steep)
        units.append(inverse)
    return np.array(units)[number.ravel()]


def _base(fit: ModelFit, rows: Ints) -> Floats:
    """(K, functions): coefficients of the deltas in the response of the measurements `rows` (K,)."""
    functions = [characteristic(f) for f in fit.functions]
    size = None if fit.data.size is None else fit.data.size[rows]
    base = np.stack([f.u(fit.data.p[rows], size) for f in functions], axis=1)
    return fit.response.scale[rows, None] * base


@dataclass(frozen=True, eq=False)
class _Left:
    """Predictions of groups of rows, each of one cell, by fits without the group. row, group (K,): indices;
    error (K,): in units of residuals; spread (K,): variance of the prediction over that of a row; gone (G,):
    decrease of the cell's sum of squares without the group."""

    row: Ints
    group: Ints
    error: Floats
    spread: Floats
    gone: Floats


def _leave_out(fit: ModelFit, group: Ints) -> _Left:
    """Leave each group out. group (N,): its number, -1 for rows that stay. Groups whose parameters the other
    rows do not determine are not in the result."""
    row = np.flatnonzero((group >= 0) & fit.used)
    _, first, number = np.unique(group[row], return_index=True, return_inverse=True)
    count, functions = int(first.size), len(fit.functions)
    code, system = fit.data.code[row], fit.data.system[row]
    base, e = _base(fit, row), fit.residual[row]
    steep = _slopes(fit, code, system, base, fit.fitted[row])
    unit = _units(fit, code[first], system[first])
    square = np.zeros_like(unit)
    np.add.at(square, number, steep[:, :, None] * steep[:, None, :])
    mixed = np.zeros(square.shape[:2])
    np.add.at(mixed, number, steep * e[:, None])
    product = unit @ square
    sound: Flags = np.asarray(np.isfinite(product).all((1, 2)))
    sound[sound] = np.linalg.eigvals(product[sound]).real.max(1) < 1 - 1e-6
    without = np.zeros_like(product)
    without[sound] = np.linalg.solve(np.eye(product.shape[1]) - product[sound], unit[sound])
    step = -np.einsum("gij,gj->gi", without, mixed)[number]
    if fit.kind == "joint":
        w, v = fit.work.T[code] + step[:, :functions], 1.0 / fit.speed.T[system] + step[:, functions:]
        value, then = np.einsum("ki,ki,ki->k", base, w, v), np.concatenate([base * v, base * w], axis=1)
    else:
        value, then = np.einsum("ki,ki->k", base, fit.delta[:, code, system].T + step), base
    y = fit.response.y[row]
    with np.errstate(all="ignore"):
        error = y - value
        if fit.response.kind == "log":
            error, then = np.log(y / value), then / value[:, None]
    spread = np.einsum("ki,kij,kj->k", then, without[number], then)
    gone = sums(number, e * (e - np.einsum("ki,ki->k", steep, step)), count)
    predicted = sound[number] & np.isfinite(error) & np.isfinite(spread)
    return _Left(row[predicted], number[predicted], error[predicted], spread[predicted], gone)


# --- widths ---


@dataclass(frozen=True, eq=False)
class Widths:
    """Widths of the intervals of a fit, in the units of its residuals.

    spread, df : (codes, systems) standard deviation of a measurement, and its degrees of freedom. reach :
    (2, codes, systems) least and largest p of a cell or, of one never measured, of the range that the other
    cells of both its code and its system cover. form : the test of a joint fit's product form, if any. lack,
    lack_df : mean square of the lack of fit over the residual variance (1 if the form is not rejected), a
    factor of the parameters' variances, and its degrees of freedom. cell, cell_df, cell_times : factor of the
    prediction variance of a cell never measured, with degrees of freedom, and a factor of their quantile.
    rise : relative growth of the variance for every factor e beyond the reach, from the largest p of `ends`
    cells; far_times : a factor of the quantile there.
    """

    spread: Floats
    df: Floats
    reach: Floats
    form: FTest | None = None
    lack: float = 1.0
    lack_df: float = np.inf
    cell: float = 1.0
    cell_df: float = np.inf
    cell_times: float = 1.0
    rise: float = 0.0
    far_times: float = 1.0
    ends: int = 0


def widths(fit: ModelFit) -> Widths:
    """The widths of a fit, computed once and cached in it."""
    cached = fit.__dict__.get("_widths")
    if cached is None:
        cached = _widths(fit)
        object.__setattr__(fit, "_widths", cached)
    assert isinstance(cached, Widths)
    return cached


def _widths(fit: ModelFit) -> Widths:
    data, shape = fit.data, fit.points.shape
    at_points, around = _reaches(fit)
    reach = np.where(fit.points > 0, at_points, around)
    spread, df, common = np.full(shape, fit.s), np.full(shape, float(fit.df)), (np.inf, fit.s**2)
    form = None
    if fit.kind == "individual":
        spread, df, common = _moderated(fit)
    else:
        with suppress(ValueError):  # no cell can be fitted alone
            form = f_test(fit, fit_individual(data, fit.functions, fit.response.kind))
    plain = Widths(spread, df, reach, form)
    if fit.df <= 0 or exact(fit) or (fit.kind == "joint" and not np.isfinite(fit.spread).all()):
        return plain
    holds = fit.kind == "joint" and (form is None or form.p >= REJECT)
    rise, far_times, ends = _beyond(fit, common, holds)
    plain = replace(plain, rise=rise, far_times=far_times, ends=ends)
    if form is None or holds:
        return plain
    within = fit.sse / (form.f * form.df1 + form.df2)
    lacking = replace(plain, lack=max(1.0, form.f * within / fit.s**2), lack_df=float(form.df1))
    left = _leave_out(fit, data.code * shape[1] + data.system)
    sizes = np.bincount(left.group)
    cells = int((sizes > 0).sum())
    if not cells:
        return lacking
    far = _distance(around, data.code[left.row], data.system[left.row], data.p[left.row])
    z2 = left.error**2 / (fit.s**2 * (1.0 + left.spread) * (1.0 + rise * far))
    weight = 1.0 / sizes[left.group]
    cell, cell_df = max(1.0, float((z2 * weight).sum() / cells)), float(max(cells - sum(shape) + 1, 1))
    times = conformal(np.sqrt(z2 / cell) / quantile(cell_df), weight, cells)
    return replace(lacking, cell=cell, cell_df=cell_df, cell_times=times)


def _beyond(fit: ModelFit, common: tuple[float, float], holds: bool) -> tuple[float, float, int]:
    """`rise`, `far_times` and `ends` of `Widths`, from predictions of all cells without their largest p, and
    without their two largest. `common`: see `_common`; `holds`: whether a joint fit's form holds.

    Cells of individual fits are independent, so each is left out alone. In a joint fit the largest p of the
    other cells would help the prediction, which a p beyond all has not: all are left out at once.
    """
    data, count = fit.data, len(fit.functions)
    cell = np.where(fit.used, data.code * len(data.systems) + data.system, -1)
    levels, level = np.unique(np.stack([cell, data.p], axis=1), axis=0, return_inverse=True)
    level = level.ravel()
    # of the level of each row: how many of its cell are above, and how many its cell has
    last = np.searchsorted(levels[:, 0], levels[:, 0], "right") - 1
    above = (last - np.arange(len(levels)))[level]
    deep = (last + 1 - np.searchsorted(levels[:, 0], levels[:, 0], "left"))[level]
    needed = count + (fit.kind == "individual")
    errors: list[Floats] = []
    ends = 0
    for gone in (1, 2):
        omitted = (cell >= 0) & (above < gone) & (deep >= needed + gone)
        if not omitted.any():
            continue
        row, *left_out = (
            _without_all(fit, omitted) if fit.kind == "joint" else _without(fit, omitted, cell, common)
        )
        at = above[row] == 0
        distance = np.log(data.p[row] / levels[last[level[row]] - gone, 1])
        errors.append(np.stack([*left_out, distance], axis=1)[at])
        ends = max(ends, np.unique(cell[row[at]]).size)
    if not ends:
        return 0.0, 1.0, 0
    z2, df, distance = np.concatenate(errors).T
    good = np.isfinite(z2) & (df > 0)
    if not good.any():
        return 0.0, 1.0, 0
    z2, df, distance = z2[good], df[good], distance[good]
    # The variance of Student's t is more than 1.
    rise = max(0.0, float((z2 * np.maximum(df - 2.0, 1.0) / df - 1.0).sum() / distance.sum()))
    if holds:
        return rise, 1.0, ends
    score = np.sqrt(z2 / (1.0 + rise * distance)) / quantile(df)
    return rise, conformal(score, np.ones(score.size), ends), ends


def _without_all(fit: ModelFit, omitted: Flags) -> tuple[Ints, Floats, Floats]:
    """Predictions of the `omitted` rows by a joint fit without them: row indices, squared errors over their
    variances, and degrees of freedom, (K,) each."""
    data, none = fit.data, np.empty(0)
    try:
        refit = fit_joint(data.only(fit.used & ~omitted), fit.functions, fit.response.kind, starts=0)
    except ValueError:  # too few are left
        return np.empty(0, np.int64), none, none
    row = np.flatnonzero(omitted)
    scale = fit.response.factor / refit.response.factor  # without operations t' is over a median of rows
    z = np.empty(row.size)
    for c, s in np.unique(np.stack([data.code[row], data.system[row]], axis=1), axis=0).tolist():
        mine = (data.code[row] == c) & (data.system[row] == s)
        value, _, se = refit.predict(c, s, data.p[row[mine]])
        with np.errstate(all="ignore"):
            y = fit.response.y[row[mine]] / scale[c, s]
            z[mine] = (np.log(y / value) if fit.response.kind == "log" else y - value) / se
    return row, z**2, np.full(row.size, float(refit.df))


def _without(
    fit: ModelFit, omitted: Flags, cell: Ints, common: tuple[float, float]
) -> tuple[Ints, Floats, Floats]:
    """The same for individual fits, each cell without its own omitted rows."""
    count = len(fit.functions)
    left = _leave_out(fit, np.where(omitted, cell, -1))
    named, out = np.unique(cell[omitted], return_counts=True)
    inside = np.bincount(cell[cell >= 0])[named]
    whole = sums(cell[cell >= 0], fit.residual[cell >= 0] ** 2, int(named.max()) + 1)[named]
    spare = (inside - out - count).astype(np.float64)
    variance = np.maximum(whole - left.gone, 0.0) / np.maximum(spare, 1.0)
    s2, df = _mixed(variance, np.maximum(spare, 0.0), *common)
    with np.errstate(divide="ignore", invalid="ignore"):  # exact cells have no variance
        return left.row, left.error**2 / (s2[left.group] * (1.0 + left.spread)), df[left.group]


def conformal(score: Floats, weight: Floats, count: int) -> float:
    """The quantile, at least 1, that the score of a further exchangeable group stays below with probability
    `CONFIDENCE`, from (K,) scores with weights of `count` groups; the largest score if these are too few."""
    order = np.argsort(score)
    total = np.cumsum(weight[order]) / weight.sum()
    at = int(np.searchsorted(total, min(CONFIDENCE * (count + 1) / count, 1.0) - 1e-12))
    return max(1.0, float(score[order][min(at, score.size - 1)]))


def _moderated(fit: ModelFit) -> tuple[Floats, Floats, tuple[float, float]]:
    """Spread and degrees of freedom (codes, systems) of individual fits, shrunk to that of all cells as far
    as they agree (Smyth 2004), and the prior that does it: its degrees of freedom and variance."""
    shape = fit.points.shape
    squares, spare = _cells(fit)
    common, centre = _common(squares, spare)
    variance = squares / np.maximum(spare, 1.0)
    s2, df = _mixed(variance, spare, common, centre)
    present = (fit.points.ravel() > 0) & (df > 0)
    # The prior is not known better than the rows of all cells determine it.
    df = np.where(present, np.minimum(df, spare.sum()), 0.0)
    return np.where(present, np.sqrt(s2), np.nan).reshape(shape), df.reshape(shape), (common, centre)


def _cells(fit: ModelFit) -> tuple[Floats, Floats]:
    """Sum of squares and degrees of freedom (codes x systems,) of individual fits; 0 without any."""
    cell = (fit.data.code * fit.points.shape[1] + fit.data.system)[fit.used]
    spare = np.maximum(fit.points.ravel() - len(fit.functions), 0).astype(np.float64)
    return np.where(spare > 0, sums(cell, fit.residual[fit.used] ** 2, spare.size), 0.0), spare


@lru_cache(maxsize=1)
def _grid() -> tuple[Floats, Floats]:
    from scipy.special import polygamma

    grid = np.geomspace(0.05, 5e5, 4000)
    return grid, -polygamma(1, grid)


def _common(squares: Floats, spare: Floats) -> tuple[float, float]:
    """The common prior of the variances of cells (Smyth 2004): its degrees of freedom (0: none) and value."""
    from scipy.special import polygamma, psi

    squares, spare = squares[spare > 0], spare[spare > 0]
    if spare.size <= 2 or squares.sum() <= 0:
        return 0.0, 0.0
    centre, half = float(squares.sum() / spare.sum()), spare / 2.0
    e = np.log(np.maximum(squares / spare, 1e-9 * centre)) - psi(half) + np.log(half)
    excess = float(e.var(ddof=1) - polygamma(1, half).mean())
    if excess <= 0:
        return 1e6, centre
    grid, falling = _grid()
    common = float(2.0 * np.interp(-excess, falling, grid))
    return common, float(np.exp(e.mean() + psi(common / 2.0) - np.log(common / 2.0)))


def _mixed(variance: Floats, spare: Floats, common: float, centre: float) -> tuple[Floats, Floats]:
    """Each `variance` with `spare` degrees of freedom, pooled with the prior `centre` of `common`; and their
    degrees of freedom."""
    df = spare + common
    with np.errstate(divide="ignore", invalid="ignore"):
        return (spare * variance + common * centre) / df, df


def _reaches(fit: ModelFit) -> tuple[Floats, Floats]:
    """Least and largest p (2, codes, systems) of every cell, and of the range that the other cells of both
    its code and its system cover."""
    shape, used = fit.points.shape, fit.used
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    at = fit.data.code[used], fit.data.system[used]
    np.minimum.at(low, at, fit.data.p[used])
    np.maximum.at(high, at, fit.data.p[used])

    def others(values: Floats) -> Floats:
        """The least value of the other cells of each row."""
        ordered = np.sort(np.concatenate([values, np.full((len(values), 1), np.inf)], axis=1), axis=1)
        return np.where(values == ordered[:, :1], ordered[:, 1:2], ordered[:, :1])

    first, last = (np.maximum(others(ends), others(ends.T).T) for ends in (low, -high))
    return np.stack([low, high]), np.stack([first, -last])


def _distance(reach: Floats, code: Ints | int, system: Ints | int, p: Floats) -> Floats:
    """By how many factors e p is outside of the reach (2, codes, systems); 0 inside or if there is none."""
    low, high = reach[:, code, system]
    with np.errstate(all="ignore"):
        far = np.maximum(np.log(p / high), np.log(low / p))
    return np.where(np.isfinite(far), np.maximum(far, 0.0), 0.0)


# --- intervals ---


def interval(fit: ModelFit, code: int, system: int, p: Floats) -> tuple[Floats, Floats, Floats]:
    """Response of a cell at p (K,), and the 95 % interval of one new measurement, low and high; NaN where
    not determined."""
    p = np.asarray(p, np.float64)
    width, value = widths(fit), fit.predict(code, system, p)[0]
    at = np.full(p.size, code), np.full(p.size, system)
    steep = _slopes(fit, *at, fit.base(code, system, p), value)
    with np.errstate(all="ignore"):
        hat = np.einsum("ki,ij,kj->k", steep, _units(fit, at[0][:1], at[1][:1])[0], steep) if p.size else p
        if exact(fit):
            hat = np.zeros_like(p)
        df = np.full(p.shape, float(width.df[code, system]))
        far = _distance(width.reach, code, system, p)
        variance = (1.0 + hat) * (1.0 + width.rise * far)
        # In a joint fit the ends of a code, or of a system, have common errors.
        ends = max(width.ends // (2 if fit.kind == "joint" else 1), 1)
        df[far > 0] = np.minimum(df[far > 0], ends if width.rise > 0 else np.inf)
        times = 1.0 + (width.far_times - 1.0) * np.minimum(far / AT_ONCE, 1.0)
        if not fit.points[code, system]:
            variance = variance * width.cell
            df, times = np.minimum(df, width.cell_df), np.maximum(times, width.cell_times)
        half = quantile(df) * times * width.spread[code, system] * np.sqrt(variance)
        if fit.response.kind == "log":
            time = np.where(value > 0, value, np.nan)
            return value, time * np.exp(-half), time * np.exp(half)
    return value, value - half, value + half


def parameter_width(fit: ModelFit) -> tuple[float, float]:
    """Factor of the standard errors of a joint fit's parameters where its form does not hold (else 1), and
    the degrees of freedom of their intervals."""
    width = widths(fit)
    return float(np.sqrt(width.lack)), float(min(fit.df, width.lack_df))


# --- values of p with an interval: where two curves cross, where a share is half ---


@dataclass(frozen=True)
class PInterval:
    """A p with its 95 % interval; `low` is 0 and `high` infinite where it is not limited. `rising`: the
    measure that is zero at p is positive beyond it."""

    p: float
    low: float
    high: float
    rising: bool


#: The search for a p ends at so many times the largest measured p.
FARTHEST = 10.0


def curve_variance(
    fit: ModelFit, parts: list[tuple[int, int, Floats]], p: Floats, *, own: bool = False
) -> Floats:
    """Variance (K,) at p (K,) of a function of the deltas of some cells. parts : (code, system, derivatives
    (K, functions) with respect to the cell's deltas).

    `own`: the function is a weighted sum of logarithms of curves; then the deviation of each cell's own curve
    from the fitted one, where the form does not hold, counts as well.
    """
    width = widths(fit)
    total, rise = np.zeros(p.size), np.ones(p.size)
    gradient = np.zeros((p.size, len(fit.parameters) if fit.kind == "joint" else 0))
    place = fit.position
    for code, system, slope in parts:
        far = width.rise * _distance(width.reach, code, system, p)
        rise = np.maximum(rise, 1.0 + far)
        if fit.kind == "individual":
            unit = _units(fit, np.array([code]), np.array([system]))[0]
            total += width.spread[code, system] ** 2 * np.einsum("ki,ij,kj->k", slope, unit, slope)
        else:
            for i in range(len(fit.functions)):
                r, w = fit.speed[i, system], fit.work[i, code]
                for key, by in ((("work", i, code), 1.0 / r), (("speed", i, system), -w / r**2)):
                    if key in place:
                        gradient[:, place[key]] += slope[:, i] * by
        if own:
            delta = fit.delta[:, code, system]
            relative = width.spread[code, system] * (slope @ delta)
            if fit.response.kind != "log":
                relative = relative / (fit.base(code, system, p) @ delta)
            total += relative**2 * (width.cell - 1.0 + far)
    if fit.kind == "joint":
        total += width.lack * ((gradient @ fit.covariance) * gradient).sum(1)
    return total * rise


def place_df(fit: ModelFit) -> float:
    """Degrees of freedom of the variances of `curve_variance`."""
    width = widths(fit)
    positive = width.df[width.df > 0]
    return min(float(positive.min()), width.lack_df) if positive.size else 0.0


def places(
    fit: ModelFit, measure: Callable[[Floats], tuple[Floats, Floats]], grid: Floats
) -> tuple[PInterval, ...]:
    """Zeros of `measure` (p -> value, variance) on `grid` (K,), each with the interval of the p around it
    where the measure does not differ from zero."""
    with np.errstate(all="ignore"):
        value, variance = measure(grid)
        open_ = np.abs(value) <= quantile(place_df(fit)) * np.sqrt(np.maximum(variance, 0.0))
    crossings = []
    for k in np.flatnonzero(np.isfinite(value[:-1]) & np.isfinite(value[1:]) & (value[:-1] * value[1:] <= 0)):
        if value[k] == 0.0 and k and value[k - 1] * value[k + 1] < 0:
            continue  # found from the left
        a, b, first = float(np.log(grid[k])), float(np.log(grid[k + 1])), value[k]
        for _ in range(50):
            middle = (a + b) / 2
            with np.errstate(all="ignore"):
                at = measure(np.array([np.exp(middle)]))[0][0]
            a, b = (middle, b) if first * at > 0 else (a, middle)
        p = float(np.exp((a + b) / 2))
        below, above = np.flatnonzero(~open_[: k + 1]), np.flatnonzero(~open_[k + 1 :])
        low = float(grid[below[-1] + 1]) if below.size else 0.0
        high = float(grid[k + above[0]]) if above.size else np.inf
        crossings.append(PInterval(p, min(low, p), max(high, p), bool(value[k + 1] > value[k])))
    return tuple(crossings)

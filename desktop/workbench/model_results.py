"""What a fitted factor model has to show, as numbers and sentences: sheets, plots' data, answers in words.

No window is needed for any of it. Sources of the terms: Strohmaier, UTK-CS-97-354, sections 3 and 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from desktop.core.arrays import Floats, Ints
from desktop.core.factor_answers import CellCheck, FactorChoice, Ranking, shares
from desktop.core.factor_intervals import (
    FARTHEST,
    FTest,
    accused,
    interval,
    parameter_width,
    quantile,
    suspects,
    widths,
)
from desktop.core.factor_model import ModelFit, parameters
from desktop.core.factor_response import respond
from desktop.core.units import capital, digits
from desktop.data.columns import Column, aligned

if TYPE_CHECKING:
    from pandas import DataFrame

    from desktop.core.normal_form import NormalForms
    from desktop.data.tables import Selection, Table

Quantity = Literal["time", "t'", "efficiency", "speed-up"]
QUANTITIES: tuple[Quantity, ...] = ("time", "t'", "efficiency", "speed-up")
#: What the parameters of a fit are together.
PARAMETERS = {"joint": "Works and speeds", "individual": "Cells"}
#: Points of a drawn curve; parameters of which all correlations are listed; rows named that stand out.
_DRAWN, _CORRELATED, _NAMED = 161, 60, 12


# --- sheets ---


@dataclass(frozen=True, eq=False)
class ResultSheet:
    """A table to be shown: a frame whose index says what a row stands for (a line, a position), and its
    columns. `alarming`, `muted`, `strong`: rows (from 0) to be marked as odd, as taking no part, as what is
    looked at."""

    columns: tuple[Column, ...] = ()
    frame: DataFrame | None = None
    alarming: frozenset[int] = frozenset()
    muted: frozenset[int] = frozenset()
    strong: frozenset[int] = frozenset()

    @property
    def keys(self) -> Ints:
        """(K,) the index."""
        return np.empty(0, np.int64) if self.frame is None else self.frame.index.to_numpy(np.int64)

    def __len__(self) -> int:
        return 0 if self.frame is None else len(self.frame)

    def lines(self, *names: str) -> list[str]:
        """As text, all of its columns or those of these names."""
        columns = [one for one in self.columns if not names or one.source in names]
        return [] if self.frame is None else aligned(self.frame, columns)


EMPTY = ResultSheet()
#: Of intervals of predictions.
_NEW = "Of one new measurement"


def _sheet(
    columns: Sequence[tuple[Column, object]], alarming: Iterable[int] = (), keys: Ints | None = None
) -> ResultSheet:
    """Columns with their values; rows are called by `keys`, by their places without."""
    import pandas as pd

    table = pd.DataFrame({column.source: values for column, values in columns})
    if keys is not None:
        table.index = pd.Index(keys)
    table.attrs["units"] = {column.source: column.unit for column, _ in columns if column.unit}
    return ResultSheet(tuple(column for column, _ in columns), table, frozenset(alarming))


def response_unit(fit: ModelFit) -> str:
    """What the response is counted in: ``s``, ``t'`` or, for its logarithm, ``ln``."""
    return {"t": "s", "log": "ln"}.get(fit.response.kind, "t'")


def measured_sheet(table: Table, selection: Selection | None, fit: ModelFit | None) -> ResultSheet:
    """Every row of the table, with what the fit makes of it. Keys are lines."""
    rows = table.rows
    lines = np.array([row.line for row in rows], np.int64)
    time = np.array([row.time for row in rows])
    fitted, response, residual, relative, student = (np.full(len(rows), np.nan) for _ in range(5))
    if selection is not None and fit is not None:
        place = np.full(int(lines.max()) + 1, -1)
        place[lines] = np.arange(len(rows))
        at = place[np.array(selection.lines, np.int64)]
        response[at], fitted[at], residual[at] = fit.response.y, fit.fitted, fit.residual
        with np.errstate(invalid="ignore", divide="ignore"):
            relative[at] = 100.0 * (fit.response.y - fit.fitted) / fit.response.y
        student[at] = fit.studentized
    unit = "t'" if fit is None or fit.response.kind != "t" else "s"
    columns: list[tuple[Column, object]] = [
        (Column("Line", "Line of the source", name="line"), lines),
        (Column("Code", name="code"), [row.code for row in rows]),
        (Column("System", name="system"), [row.system for row in rows]),
        (Column("p", "Active processors", name="p", whole=True), np.array([row.p for row in rows])),
        (Column("t'", "As measured", name="t_prime") if table.transformed
         else Column("Time", "As measured", "s", name="time"), time),
        (Column("t'", "Time × p × peak rate / operations: an inverse efficiency", name="response"), response),
        (Column("Fitted", "", unit, name="fitted"), fitted),
        (Column("Residual", "Measured less fitted; the logarithm of measured over fitted where logarithms "
                "are fitted", response_unit(fit) if fit else unit, 3, name="residual"), residual),
        (Column("Error", "(measured − fitted) / measured", "%", 3, name="error"), relative),
        (Column("Studentized", "Residual over the spread that the other points have; beyond ±3 is rare",
                significant=3, name="studentized"), student),
        (Column("Excluded because", name="reason"), [row.reason for row in rows]),
        (Column("Note", name="note"), [row.note for row in rows]),
    ]  # fmt: skip
    if unit != "t'" or table.transformed:
        columns = [one for one in columns if one[0].name != "response"]
    suspect: frozenset[int] = frozenset()
    if selection is not None and fit is not None:
        suspect = frozenset(at[suspects(fit)].tolist())
    sheet = _sheet(columns, suspect, lines)
    return replace(sheet, muted=frozenset(k for k, row in enumerate(rows) if row.reason))


def standing_out(fit: ModelFit | None, selection: Selection | None) -> str:
    """Rows that stand out by their lines in the table, with the verdict on them; "" where none does."""
    if fit is None or selection is None or not (odd := suspects(fit)).size:
        return ""
    worst = set(accused(fit).tolist())
    verdicts = []
    for verdict, rows in (
        ("accused", [k for k in odd.tolist() if k in worst]),
        ("worth a look", [k for k in odd.tolist() if k not in worst]),
    ):
        lines = sorted(selection.lines[k] for k in rows)
        if lines:
            more = f" and {len(lines) - _NAMED} more" if len(lines) > _NAMED else ""
            verdicts.append(f"{verdict}: line {', '.join(map(str, lines[:_NAMED]))}{more}")
    return capital("; ".join(verdicts))


def parameter_sheet(fit: ModelFit) -> ResultSheet:
    """Work and speed, or delta, with standard errors; negative ones are alarming."""
    rows = parameters(fit)
    value = np.array([p.value for p in rows])
    se = np.array([p.se for p in rows])
    width, joint_df = parameter_width(fit)
    df = np.full(len(rows), joint_df)
    if fit.kind == "individual":
        points = fit.points[fit.points > 0]  # in the order of `parameters`
        df = np.tile(points - len(fit.functions), len(fit.functions)).astype(float)
    half = se * width * quantile(df)

    def verdict(k: int) -> str:
        if not np.isfinite(se[k]):
            if not np.isfinite(value[k]):
                return "not measured"
            return "fixed" if fit.kind == "joint" and fit.status == "converged" else "no standard error"
        words = ["below zero"] if value[k] < 0 else []
        # As the interval beside it says, which may be wider than two standard errors.
        zero = abs(value[k]) <= half[k] if np.isfinite(half[k]) else rows[k].undetermined
        words.append("not different from zero" if zero else "different from zero")
        return ", ".join(words)

    columns = (
        (Column("Kind", "speed of a system, work of a code, or delta of a cell", name="kind"),
         [p.kind for p in rows]),
        (Column("Of", name="of"),
         [" on ".join(name for name in (p.code, p.system) if name) for p in rows]),
        (Column("Function", name="function"), [p.function for p in rows]),
        (Column("Value", name="value"), value),
        (Column("Std. error", "Asymptotic: s² (J'J)⁻¹", significant=3, name="se"), se),
        (Column("95 % from", name="low"), value - half),
        (Column("to", name="high"), value + half),
        (Column("Different from zero?", name="verdict"), [verdict(k) for k in range(len(rows))]),
    )  # fmt: skip
    return _sheet(columns, np.flatnonzero(value < 0).tolist())


def ranking_sheet(ranking: Ranking) -> ResultSheet:
    """All pairs and singles as in tables 2 to 4; keys are positions in ``ranking.fits``, -1 where there is
    no fit to take."""
    fits = ranking.fits
    listed = [parameters(fit) for fit in fits]
    nothing = np.nan
    best = not np.isnan(ranking.best_sse)
    names = [" + ".join(fit.functions) for fit in fits] + ["best pair of every cell"] * best

    def numbers(values: Sequence[float], of_best: float = nothing) -> Floats:
        return np.array([*values, *([of_best] if best else [])], float)

    columns = (
        (Column("Functions", name="functions"), names),
        (Column("SSE", "Sum of squared residuals", significant=6, name="sse"),
         numbers([f.sse for f in fits], ranking.best_sse)),
        (Column("R²", "Against zero (uncentred), as the paper has it", significant=5, name="r2"),
         numbers([f.r2 for f in fits])),
        (Column("R² centred", "Against the mean", significant=5, name="r2_centred"),
         numbers([f.r2_centred for f in fits])),
        (Column("s", "Residual standard deviation", name="s"), numbers([f.s for f in fits])),
        (Column("Parameters", name="parameters", whole=True),
         numbers([f.npar for f in fits], ranking.best_npar)),
        (Column("AICc", "Smaller is better; parameters cost", significant=5, name="aicc"),
         numbers([f.aicc for f in fits])),
        (Column("Mean error", "", "%", 3, name="mean_error"),
         numbers([100 * f.mean_relative_error for f in fits])),
        (Column("Largest error", "", "%", 3, name="max_error"),
         numbers([100 * f.max_relative_error for f in fits])),
        (Column("Undetermined", "Parameters not different from zero", name="undetermined", whole=True),
         numbers([sum(p.undetermined for p in group) for group in listed])),
        (Column("Negative", name="negative", whole=True),
         numbers([sum(p.value < 0 for p in group) for group in listed])),
        (Column("Points", name="points", whole=True), numbers([f.n for f in fits])),
        (Column("Status", name="status"), [f.status for f in fits] + [""] * best),
    )  # fmt: skip
    keys = np.array([*range(len(fits)), *([-1] if best else [])], np.int64)
    alarming = [k for k, group in enumerate(listed) if any(p.value < 0 for p in group)]
    return _sheet(columns, alarming, keys)


def dropped_pairs(ranking: Ranking) -> str:
    """Which pairs are not listed, and why."""
    return "; ".join(f"{' + '.join(functions)}: {reason}" for functions, reason in ranking.dropped)


def correlation_sheet(fit: ModelFit, code: int, system: int) -> ResultSheet:
    """Of the free parameters; of those of one cell where there are too many to be read. Beyond ±0.95 they
    are alarming: what one gains the other loses."""
    free = list(range(len(fit.parameters)))
    few = len(free) <= _CORRELATED
    if not few:
        at = {"work": code, "speed": system, "delta": code * len(fit.data.systems) + system}
        free = [k for k in free if at[fit.parameters[k][0]] == fit.parameters[k][2]]
    if few or fit.kind == "joint":
        sub = fit.covariance[np.ix_(free, free)]
    else:
        # Of many cells by themselves the whole is large, and zero between cells.
        sub = fit.cell_covariance(code, system)[: len(free), : len(free)]
    names = [_parameter_name(fit, k) for k in free]
    sd = np.sqrt(np.diag(sub))
    with np.errstate(invalid="ignore", divide="ignore"):
        matrix = sub / np.outer(sd, sd)
    strong = np.abs(matrix - np.eye(len(free))) > 0.95
    columns = [(Column("Parameter", name="parameter"), names)]
    columns += [(Column(name, significant=3), matrix[:, k]) for k, name in enumerate(names)]
    return _sheet(columns, np.flatnonzero(strong.any(1)).tolist())


def _parameter_name(fit: ModelFit, k: int) -> str:
    kind, i, at = fit.parameters[k]
    data = fit.data
    if kind == "delta":
        c, s = divmod(at, len(data.systems))
        name = f"{data.codes[c]} on {data.systems[s]}"
    else:
        name = (data.systems if kind == "speed" else data.codes)[at]
    return f"{kind} {name}, {fit.functions[i]}"


def prediction_sheet(fit: ModelFit, p: float) -> ResultSheet:
    """Every cell at p, measured or not. Keys are code * systems + system."""
    data = fit.data
    shape = len(data.codes), len(data.systems)
    value, low, high, seen = (np.full(shape, np.nan) for _ in range(4))
    notes = []
    for c in range(shape[0]):
        for s in range(shape[1]):
            band = interval(fit, c, s, np.array([p]))
            value[c, s], low[c, s], high[c, s] = (
                float(convert(fit, c, s, np.array([p]), part, "time")[0]) for part in band
            )
            mine = (data.code == c) & (data.system == s)
            at_p = mine & (data.p == p)
            if at_p.any():
                seen[c, s] = np.median(convert(fit, c, s, data.p[at_p], fit.response.y[at_p], "time"))
            notes.append(range_note(fit, c, s, p))
    pairs = [(c, s) for c in range(shape[0]) for s in range(shape[1])]
    unit = unit_of_time(fit)
    columns = (
        (Column("Code", name="code"), [data.codes[c] for c, _ in pairs]),
        (Column("System", name="system"), [data.systems[s] for _, s in pairs]),
        (Column("p", name="p", whole=True), np.full(len(pairs), float(p))),
        (Column("Predicted", "", unit, name="predicted"), value.ravel()),
        (Column("95 % from", _NEW, unit, name="low"), low.ravel()),
        (Column("to", _NEW, unit, name="high"), high.ravel()),
        (Column("Measured", "Median of the measurements at this p", unit, name="measured"), seen.ravel()),
        (Column("Note", name="note"), notes),
    )
    return _sheet(columns, np.flatnonzero(value.ravel() < 0).tolist())


def forms_sheet(fit: ModelFit, forms: NormalForms, p: float) -> ResultSheet:
    """The normal form of every cell, and what it says at p, beside the fit's errors where a point is left
    out. Keys are code * systems + system."""
    data, at = fit.data, np.array([p])
    systems = len(data.systems)
    intervals = [forms.interval(form, at) for form in forms.forms]
    with np.errstate(all="ignore"):
        loose = fit.residual / (1.0 - fit.leverage)
        loose = loose if fit.response.kind == "log" else np.log(fit.response.y / (fit.response.y - loose))
    cell = data.code * systems + data.system

    def error(key: int) -> float:
        mine = loose[(cell == key) & np.isfinite(loose)]
        return 100.0 * float(np.sqrt(np.mean(mine**2))) if mine.size else np.nan

    keys = np.array([form.code * systems + form.system for form in forms.forms], np.int64)
    unit = "t'/p" if data.transformed else "s"
    columns = (
        (Column("Code", name="code"), [data.codes[form.code] for form in forms.forms]),
        (Column("System", name="system"), [data.systems[form.system] for form in forms.forms]),
        (Column("Time over p", "The form that predicts what is left out best", name="form"),
         [form.text for form in forms.forms]),
        (Column("Error", "Of inner points, each predicted by a search without it", "%", 3,
                name="form_error"), np.array([100.0 * form.error for form in forms.forms])),
        (Column("Error of the fit", "Of the fit that is shown, without each point", "%", 3,
                name="fit_error"), np.array([error(key) for key in keys.tolist()])),
        (Column("p", name="p", whole=True), np.full(len(keys), float(p))),
        (Column("Predicted", "", unit, name="predicted"), np.array([float(v[0]) for v, _, _ in intervals])),
        (Column("95 % from", _NEW, unit, name="low"), np.array([float(low[0]) for _, low, _ in intervals])),
        (Column("to", _NEW, unit, name="high"), np.array([float(high[0]) for _, _, high in intervals])),
    )  # fmt: skip
    return _sheet(columns, (), keys)


def unit_of_time(fit: ModelFit) -> str:
    """Of times: seconds, or W / r_peak where the table holds t' only."""
    return "s" if fit.in_seconds else "W/r_peak"


def range_note(fit: ModelFit, c: int, s: int, p: float) -> str:
    if not np.isfinite(fit.delta[:, c, s]).all():
        return "the model says nothing of this cell"
    mine = fit.used & (fit.data.code == c) & (fit.data.system == s)
    if not mine.any():
        a, b = fit.data.p.min(), fit.data.p.max()
        outside = "" if a <= p <= b else f", and p is outside {a:.0f} to {b:.0f}, where anything was"
        return f"never measured{outside}"
    a, b = fit.data.p[mine].min(), fit.data.p[mine].max()
    return "" if a <= p <= b else f"outside the measured p, {a:.0f} to {b:.0f}"


# --- plots' data ---


@dataclass(frozen=True, eq=False)
class CellScaling:
    """A cell over p. p, value (K,): its measurements, `index` (K,) their places in the fit's data. grid,
    fitted, low, high (L,): the curve with its 95 % band; measured: p from .. to, or None."""

    p: Floats
    value: Floats
    index: Ints
    grid: Floats
    fitted: Floats
    low: Floats
    high: Floats
    measured: tuple[float, float] | None


def cell_scaling(fit: ModelFit, code: int, system: int, quantity: Quantity, largest: float) -> CellScaling:
    """Measurements and fitted curve of a cell from the table's least p to `largest`."""
    data = fit.data
    index = np.flatnonzero((data.code == code) & (data.system == system))
    p = data.p[index]
    least, most = float(data.p.min()), max(float(data.p.max()), largest)
    grid = np.unique(np.concatenate([np.geomspace(least, max(most, least + 1), _DRAWN), p]))
    base = _base(fit, code, system)
    value, low, high = (
        convert(fit, code, system, grid, part, quantity, base) for part in interval(fit, code, system, grid)
    )
    seen = convert(fit, code, system, p, fit.response.y[index], quantity, base)
    measured = (float(p.min()), float(p.max())) if p.size else None
    return CellScaling(p, seen, index, grid, value, np.fmin(low, high), np.fmax(low, high), measured)


def left_out(
    fit: ModelFit, selection: Selection, code: int, system: int, quantity: Quantity
) -> tuple[Floats, Floats, Ints]:
    """p, value and line (K,) of a cell's rows that take no part but could be drawn."""
    rows = [
        row
        for row in selection.excluded
        if (row.code, row.system) == (fit.data.codes[code], fit.data.systems[system])
        and row.p >= 1
        and row.time > 0
    ]
    p, time = np.array([row.p for row in rows]), np.array([row.time for row in rows])
    if not (fit.data.transformed or fit.response.kind == "t"):
        time = time * p * fit.response.factor[code, system]
    value = convert(fit, code, system, p, time, quantity, _base(fit, code, system))
    return p, value, np.array([row.line for row in rows], np.int64)


def _base(fit: ModelFit, code: int, system: int) -> tuple[float, float]:
    """The least p and the time there, to which speed-up and efficiency refer."""
    data = fit.data
    mine = np.flatnonzero((data.code == code) & (data.system == system))
    if mine.size:
        least = float(data.p[mine].min())
        at = mine[data.p[mine] == least]
        return least, float(np.median(convert(fit, code, system, data.p[at], fit.response.y[at], "time")))
    first = np.array([data.p.min()])
    value = fit.predict(code, system, first)[0]
    return float(first[0]), float(convert(fit, code, system, first, value, "time")[0])


def convert(
    fit: ModelFit,
    code: int,
    system: int,
    p: Floats,
    y: Floats,
    quantity: Quantity,
    base: tuple[float, float] = (1.0, 1.0),
) -> Floats:
    """Responses as another quantity; time in seconds, or in W / r_peak of a table that holds t'."""
    seconds = fit.response.kind == "t"
    time = y if seconds else y / (p * fit.response.factor[code, system])
    if quantity == "time":
        return time
    if quantity == "t'":
        return y * p * respond(fit.data, "t'").factor[code, system] if seconds else y
    with np.errstate(divide="ignore"):
        speed_up = np.where(time > 0, base[0] * base[1] / time, np.nan)
    return speed_up if quantity == "speed-up" else speed_up / p


def quantity_title(fit: ModelFit, quantity: Quantity) -> str:
    """The axis' title with its unit."""
    if quantity == "time":
        return f"Time ({unit_of_time(fit)})"
    if quantity == "t'":
        has_work = fit.data.transformed or fit.data.work is not None
        return "t' = t p r_peak / W" if has_work else "t' (median of each code is 1)"
    if quantity == "speed-up":
        return "Speed-up (p at the least p)"
    return "Efficiency (1 at the least p)"


def normal_scores(fit: ModelFit) -> tuple[Floats, Floats, Ints]:
    """Quantiles of the normal distribution at (i - 3/8) / (N + 1/4), the sorted studentized residuals, and
    their places in the data; (K,) each."""
    from scipy.special import ndtri

    index = np.flatnonzero(np.isfinite(fit.studentized))
    index = index[np.argsort(fit.studentized[index], kind="stable")]
    rank = np.arange(1, index.size + 1)
    return ndtri((rank - 0.375) / (index.size + 0.25)), fit.studentized[index], index


#: What the map of cells can show.
CELL_MEASURES = {
    "points": "Measurements",
    "share": "Share of the squared error (%)",
    "error": "Mean relative error (%)",
    "left out": "Error when predicted from the other cells (%)",
}


def cell_values(fit: ModelFit, checks: Sequence[CellCheck], measure: str) -> Floats:
    """(codes, systems) of one of `CELL_MEASURES`; NaN where there is nothing."""
    data = fit.data
    shape = len(data.codes), len(data.systems)
    values = np.full(shape, np.nan)
    if measure == "left out":
        for check in checks:
            values[check.code, check.system] = 100.0 * check.error
        return values
    cell = (data.code * shape[1] + data.system)[fit.used]
    size = shape[0] * shape[1]
    count = np.bincount(cell, minlength=size).reshape(shape)
    if measure == "points":
        return np.where(count > 0, count, np.nan)
    e, y, fitted = fit.residual[fit.used], fit.response.y[fit.used], fit.fitted[fit.used]
    error = e * e / fit.sse if measure == "share" else np.abs(fitted - y) / y
    total = np.bincount(cell, 100.0 * error, size).reshape(shape)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(count > 0, total / (1 if measure == "share" else count), np.nan)


def relative_values(fit: ModelFit, kind: Literal["speed", "work"]) -> tuple[Floats, Floats]:
    """(functions, names): values of a joint fit, and half of their 95 % intervals (NaN where fixed)."""
    values, se = (fit.speed, fit.speed_se) if kind == "speed" else (fit.work, fit.work_se)
    width, df = parameter_width(fit)
    return values, quantile(df) * width * se


def share_curves(fit: ModelFit, code: int, system: int, p: float) -> tuple[Floats, Floats, Floats]:
    """p (L,), percent of the time (functions, L) over it, and at the chosen p (functions,)."""
    low, high = min(float(fit.data.p.min()), p), max(float(fit.data.p.max()), p)
    grid = np.geomspace(low, max(high, low + 1), _DRAWN)
    return grid, 100 * shares(fit, code, system, grid), 100 * shares(fit, code, system, np.array([p]))[:, 0]


# --- words ---


def fit_summary(fit: ModelFit, excluded: int, choice: FactorChoice | None = None) -> tuple[str, ...]:
    """What has to be known of a fit, in a few lines. `choice`: among what it was chosen."""
    how = "one work per code and one speed per system" if fit.kind == "joint" else "every cell by itself"
    out = f", {excluded} excluded" if excluded else ""
    log = fit.response.kind == "log"
    starts = f", {fit.starts_agreeing} of {fit.starts} starts agree, condition {digits(fit.condition)}"
    lines = [
        f"{' + '.join(fit.functions)}, {how}: N = {fit.n}{out}, {fit.npar} parameters, {fit.status}"
        f"{starts if fit.kind == 'joint' else ''}",
        f"SSE {digits(fit.sse, 6)} of SST {digits(fit.sst, 6)}; R² {fit.r2:.5f} "
        f"{'of the logarithms' if log else 'against zero (uncentred)'}, {digits(fit.r2_centred, 5)} against "
        f"the mean; s {digits(fit.s)}; AICc {digits(fit.aicc, 5)}; relative error mean "
        f"{100 * fit.mean_relative_error:.1f} %, largest {100 * fit.max_relative_error:.1f} %",
    ]
    if choice is not None:
        lines.insert(1, choice_words(choice))
    if (test := widths(fit).form) is not None:
        lines.append(f_test_words(test))
    elif fit.kind == "joint":
        lines.append(
            "The product form cannot be tested against fits of every cell: those leave no measurements to "
            "spare"
        )
    widened = width_words(fit)
    return (*lines, widened) if widened else tuple(lines)


def choice_words(choice: FactorChoice) -> str:
    """What was chosen by AICc, and what comes next."""
    fit = choice.fit
    named, how = " + ".join(fit.functions), response_name(fit.response.kind)
    best = f"Best of {choice.tried} by AICc: {named}, fitted to {how}"
    if not choice.rivals:
        return best
    rivals = "; ".join(
        f"{' + '.join(one.functions)}, {response_name(one.response)}: {digits(one.more, 3)} more"
        for one in choice.rivals[:3]
    )
    return f"{best}. Next: {rivals}" + (" (below 2 they are as good)" if choice.rivals[0].more < 2 else "")


def response_name(kind: str) -> str:
    """As it is called in sentences."""
    return {"log": "log t'", "t": "t in seconds"}.get(kind, kind)


def width_words(fit: ModelFit) -> str:
    """By how much intervals are wider than if the model held, and why; "" if they are not."""
    width, parts = widths(fit), []
    if width.lack > 1.0:
        parts.append(
            f"the form is lacking, so those of works and speeds are {digits(width.lack**0.5, 2)} times as "
            "wide"
        )
    if width.cell > 1.0 or width.cell_times > 1.0:
        parts.append(
            f"those of cells never measured {digits(width.cell**0.5 * width.cell_times, 2)} times as wide"
        )
    if width.rise > 0 or width.far_times > 1.0:
        at_ten = (1.0 + width.rise * float(np.log(FARTHEST))) ** 0.5 * width.far_times
        parts.append(
            f"at {FARTHEST:.0f} times the measured p {digits(at_ten, 2)} times as wide, as predictions of "
            f"the largest p of {width.ends} cells show"
        )
    return f"Intervals: {', '.join(parts)}" if parts else ""


def f_test_words(test: FTest) -> str:
    """Does the product form hold?"""
    chance = "< 0.0001" if test.p < 1e-4 else f"= {test.p:.2g}"
    verdict = "nothing speaks against the product form"
    if test.p < 0.05:
        verdict = "the product form does not hold in the strict sense"
    ratio = f"F({test.df1}, {test.df2}) = {digits(test.f, 3)}"
    return f"Against fits of every cell: {ratio}, P {chance}: {verdict}"


def warnings(fit: ModelFit | None, selection: Selection | None) -> tuple[str, ...]:
    """Of the fit and of columns that were not used."""
    notes = [] if fit is None else [*fit.warnings]
    if fit is not None and fit.response.note:
        notes.append(fit.response.note)
    return (*notes, *(selection.dropped if selection is not None else ()))

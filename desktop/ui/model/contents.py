"""The plots of the factor model: chart contents made of a snapshot, each with the same in words."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from desktop.core.arrays import Floats, Ints
from desktop.core.units import capital, digits
from desktop.data.chart import MARKS, SERIES, Axis, Cells, Content, Series
from desktop.workbench import model_results as results
from desktop.workbench.model_results import CELL_MEASURES, CellScaling, Quantity, response_unit
from desktop.workbench.modelling import ModelSnapshot

if TYPE_CHECKING:
    from desktop.core.factor_model import ModelFit
    from desktop.data.tables import Selection

Extent = Literal["cell", "code", "system"]
Against = Literal["fitted", "p", "system", "code"]

_P = "Processors p"
_NO_FIT = "Nothing is fitted yet: the bar above says why, or choose one or more functions of p."
#: What is said in a plot beside the points of rows that take no part.
_EXCLUDED = "excluded"


def _empty(text: str = _NO_FIT) -> Content:
    return Content(Axis(""), Axis(""), empty=text)


def _measurement_words(fit: ModelFit, lines: tuple[int, ...], index: Ints, at: int) -> str:
    """A measurement in words, for the pointer."""
    data, k = fit.data, int(index[at])
    error = 100 * (fit.response.y[k] - fit.fitted[k]) / fit.response.y[k]
    name = f"{data.codes[data.code[k]]} on {data.systems[data.system[k]]}, p = {data.p[k]:.0f}"
    unit = {"t": " s"}.get(fit.response.kind, "")
    return (
        f"{name}\nline {lines[k]}: measured {digits(float(fit.response.y[k]))}{unit}, fitted "
        f"{digits(float(fit.fitted[k]))}{unit} ({digits(float(error), 3)} %), studentized residual "
        f"{digits(float(fit.studentized[k]), 3)}"
    )


def _of_rows(fit: ModelFit, selection: Selection, index: Ints, points: Series) -> Series:
    """Points of the measurements `index` (K,), each with its words and the line of its row."""
    names = partial(_measurement_words, fit, selection.lines, index)
    return replace(points, names=names, keys=np.array(selection.lines, np.int64)[index])


def scaling(
    snapshot: ModelSnapshot,
    quantity: Quantity,
    cells: Extent,
    log: bool,
    marked: frozenset[int] = frozenset(),
) -> tuple[Content, str]:
    """Points and fitted curve with its band, dashed outside of the measured p; the fit before the last
    exclusion thin. `marked`: lines of the shown run."""
    fit, selection, cell = snapshot.fit, snapshot.selection, snapshot.cell
    if fit is None or selection is None or cell is None:
        return _empty(), ""
    data = fit.data
    c0, s0 = cell
    pairs = {
        "cell": [(c0, s0)],
        "code": [(c0, s) for s in range(len(data.systems))],
        "system": [(c, s0) for c in range(len(data.codes))],
    }[cells]
    largest = max(snapshot.view.p, float(data.p.max()))
    # Below the present fit.
    series: list[Series] = _previous_fit(snapshot, quantity, largest) if cells == "cell" else []
    lines = np.array(selection.lines, np.int64)
    for number, (c, s) in enumerate(pairs):
        name = {"cell": "Measured", "code": data.systems[s], "system": data.codes[c]}[cells]
        cell_scaling = results.cell_scaling(fit, c, s, quantity, largest)
        colour: int | str = number % SERIES
        mark = MARKS[(number + number // len(MARKS)) % len(MARKS)]
        alone = cells == "cell"
        series += _curve(cell_scaling, "fit" if alone else colour, alone)
        index, p, value = cell_scaling.index, cell_scaling.p, cell_scaling.value
        if p.size:
            points = Series("points", p, value, name, colour, mark)
            series.append(_of_rows(fit, selection, index, points))
        elif not alone:
            none, label = np.empty(0), f"{name} (never measured)"
            series.append(Series("points", none, none, label, colour, mark))
        series += _left_out(snapshot, c, s, quantity, alone)
        of_run = np.isin(lines[index], np.array(sorted(marked), np.int64))
        if of_run.any():
            points = Series("points", p[of_run], value[of_run], "This run", 2, "diamond")
            series.append(_of_rows(fit, selection, index[of_run], points))
    content = Content(
        Axis(_P, log=log, doubling=log, whole=True),
        Axis(results.quantity_title(fit, quantity), log=log and quantity != "efficiency",
             zero=quantity == "efficiency" or not log),
        tuple(series),
        levels=((1.0, ""),) if quantity == "efficiency" else (),
        verticals=((snapshot.view.p, f"p = {snapshot.view.p:.0f}"),),
        selected=snapshot.view.lines,
    )  # fmt: skip
    subject = f"{data.codes[c0]} on {data.systems[s0]}" if cells == "cell" else f"{len(pairs)} cells"
    title = results.quantity_title(fit, quantity)
    return content, f"{title} of {subject} over processors, with the fitted curve"


def _curve(cell: CellScaling, colour: int | str, alone: bool) -> list[Series]:
    series = []
    if alone and np.isfinite(cell.low).any():
        series.append(
            Series("band", cell.grid, cell.fitted, "95 % of new measurements", colour,
                   low=cell.low, high=cell.high)
        )  # fmt: skip
    if cell.measured is None:
        name = "fitted (never measured)" if alone else ""
        return [*series, Series("line", cell.grid, cell.fitted, name, colour, dashed=True)]
    a, b = cell.measured
    inside = (cell.grid >= a) & (cell.grid <= b)
    series.append(Series("line", cell.grid[inside], cell.fitted[inside], "Fitted" if alone else "", colour))
    label = "Extrapolated" if alone else ""
    for outside in (cell.grid <= a, cell.grid >= b):
        if outside.sum() > 1:
            x, y = cell.grid[outside], cell.fitted[outside]
            series.append(Series("line", x, y, label, colour, dashed=True))
            label = ""
    return series


def _left_out(snapshot: ModelSnapshot, c: int, s: int, quantity: Quantity, named: bool) -> list[Series]:
    assert snapshot.fit is not None and snapshot.selection is not None
    p, value, lines = results.left_out(snapshot.fit, snapshot.selection, c, s, quantity)
    if not p.size:
        return []
    reasons = {row.line: row.reason for row in snapshot.selection.excluded}
    names = tuple(f"line {line}, {_EXCLUDED}: {reasons[line]}" for line in lines.tolist())
    label = capital(_EXCLUDED) if named else ""
    return [Series("points", p, value, label, "muted", "cross", names=names, keys=lines)]


def _previous_fit(snapshot: ModelSnapshot, quantity: Quantity, largest: float) -> list[Series]:
    """The fit before the last exclusion, of the same cell."""
    old, fit, cell = snapshot.previous, snapshot.fit, snapshot.cell
    if old is None or fit is None or cell is None or old is fit:
        return []
    code, system = fit.data.codes[cell[0]], fit.data.systems[cell[1]]
    comparable = (old.response.kind, old.data.transformed) == (fit.response.kind, fit.data.transformed)
    if not comparable or code not in old.data.codes or system not in old.data.systems:
        return []
    cell_before = old.data.codes.index(code), old.data.systems.index(system)
    curve = results.cell_scaling(old, *cell_before, quantity, largest)
    return [Series("line", curve.grid, curve.fitted, "Before the last exclusion", "muted", width=1.1)]


def _standing_out(fit: ModelFit, index: Ints) -> frozenset[int]:
    """Places in `index` of the measurements that stand out."""
    from desktop.core.factor_intervals import suspects

    return frozenset(np.flatnonzero(np.isin(index, suspects(fit))).tolist())


def residuals(snapshot: ModelSnapshot, against: Against) -> tuple[Content, str]:
    """The paper's figure 1, and the same over p, systems and codes; suspect points bear their names."""
    fit, selection = snapshot.fit, snapshot.selection
    if fit is None or selection is None:
        return _empty(), ""
    data = fit.data
    used = np.flatnonzero(fit.used)
    unit = response_unit(fit)
    p = np.log(data.p[used])
    spread = (p - p.min()) / max(float(np.ptp(p)), 1e-9) * 0.5 - 0.25
    fitted_unit = "s" if fit.response.kind == "t" else "t'"
    order = "in each from small to large p"
    x, axis = {
        "fitted": (fit.fitted[used], Axis(f"Fitted ({fitted_unit})")),
        "p": (data.p[used], Axis(_P, log=True, doubling=True)),
        "system": (data.system[used] + spread, Axis(f"System, {order}", categories=data.systems)),
        "code": (data.code[used] + spread, Axis(f"Code, {order}", categories=data.codes)),
    }[against]
    marked = _standing_out(fit, used)
    series = _of_rows(fit, selection, used, Series("points", x, fit.residual[used], labels=marked))
    content = Content(
        axis, Axis(f"Residual ({unit})"), (series,), levels=((0.0, ""),), selected=snapshot.view.lines
    )
    return content, f"Residuals of {used.size} measurements against {against}, {len(marked)} stand out"


def quantiles(snapshot: ModelSnapshot) -> tuple[Content, str]:
    """Studentized residuals over normal quantiles: on the line if errors are normal."""
    fit, selection = snapshot.fit, snapshot.selection
    if fit is None or selection is None:
        return _empty(), ""
    x, y, used = results.normal_scores(fit)
    if not used.size:
        return _empty("There are no studentized residuals: the fit has no measurements to spare."), ""
    ends = np.array([x[0], x[-1]])
    series = (
        Series("line", ends, ends, "Expected of normal errors", "muted"),
        _of_rows(fit, selection, used, Series("points", x, y, labels=_standing_out(fit, used))),
    )
    content = Content(
        Axis("Quantile of the normal distribution"), Axis("Studentized residual"), series,
        selected=snapshot.view.lines,
    )  # fmt: skip
    return content, f"Quantile-quantile plot of {used.size} studentized residuals"


def cell_map(
    title: str,
    rows: tuple[str, ...],
    columns: tuple[str, ...],
    values: Floats,
    selected: tuple[int, int] | None = None,
    empty: str = "",
    *,
    whole: bool = False,
) -> Content:
    """`values` (rows, columns), NaN: none, as numbers on colours; `empty`: the text if all are NaN."""

    def number(value: float) -> str:
        return f"{value:.0f}" if whole else digits(value, 3)

    def cell_words(row: int, column: int) -> str:
        value = float(values[row, column])
        text = number(value) if np.isfinite(value) else "nothing there"
        return f"{rows[row]} on {columns[column]}\n{title}: {text}"

    return Content(
        Axis("", categories=columns), Axis("", categories=rows, down=True), empty=empty, heading=title,
        cells=Cells(values, number, cell_words, selected=selected),
    )  # fmt: skip


def cells(snapshot: ModelSnapshot, measure: str) -> tuple[Content, str]:
    """A measure of every code (rows) on every system (columns)."""
    fit = snapshot.fit
    title = CELL_MEASURES[measure]
    if fit is None:
        return _empty(), ""
    empty = "Press “Leave cells out” to predict every cell from all others."
    if fit.kind != "joint":
        empty = "Only a fit of all cells together predicts one cell from the others."
    values = results.cell_values(fit, snapshot.checks, measure)
    content = cell_map(
        title, fit.data.codes, fit.data.systems, values, snapshot.cell, empty, whole=measure == "points"
    )
    return content, f"{title} of {values.shape[0]} codes on {values.shape[1]} systems"


def relative(snapshot: ModelSnapshot, kind: Literal["speed", "work"]) -> tuple[Content, str]:
    """Bars with 95 % intervals, one colour for each function; below zero in the colour of errors."""
    fit = snapshot.fit
    if fit is None:
        return _empty(), ""
    if fit.kind != "joint":
        return _empty("Speeds and works belong to a fit of all cells together: choose it on the left."), ""
    names = fit.data.systems if kind == "speed" else fit.data.codes
    values, half = results.relative_values(fit, kind)
    count = len(fit.functions)
    thick = 0.8 / count
    series: list[Series] = []
    for i, function in enumerate(fit.functions):
        # From top to bottom as in the tables, functions in their order within a name.
        y = len(names) - 0.6 - thick * (i + 0.5) - np.arange(len(names), dtype=np.float64)
        v, h = values[i], half[i]
        words = tuple(
            f"{kind} of {name} in {function}\n{digits(float(a))}"
            + (f" ± {digits(float(b), 3)} (95 %)" if np.isfinite(b) else ", fixed")
            + (", below zero: this function does not describe it" if a < 0 else "")
            for name, a, b in zip(names, v, h, strict=True)
        )
        for below, colour in ((False, i), (True, "error")):
            these = np.flatnonzero(np.isfinite(v) & ((v < 0) == below))
            if these.size or not below:
                series.append(
                    Series(
                        "bars", y[these], v[these], f"{function}, below zero" if below else function, colour,
                        names=tuple(words[k] for k in these), keys=these, thickness=thick * 0.9,
                    )
                )  # fmt: skip
        series.append(Series("whiskers", y, v, colour="text", low=v - h, high=v + h))
    title = "Relative speed" if kind == "speed" else "Relative work"
    if kind == "speed" and fit.response.kind != "t" and (fit.data.transformed or fit.data.peak is not None):
        # t' is time relative to the system's peak rate.
        title = "Speed over peak rate"
    content = Content(
        Axis(f"{title} ({fit.reference} = 1)" if fit.reference in names else title, zero=True),
        Axis("", categories=tuple(reversed(names))),
        tuple(series), levels=((1.0, ""),) if fit.reference in names else (), horizontal_bars=True,
    )  # fmt: skip
    return content, f"{title} of {len(names)} {'systems' if kind == 'speed' else 'codes'} with 95 % intervals"


def shares(snapshot: ModelSnapshot) -> tuple[Content, str]:
    """Share of every function in the time of the chosen cell, over p."""
    fit, cell = snapshot.fit, snapshot.cell
    if fit is None or cell is None:
        return _empty(), ""
    if not np.isfinite(fit.delta[:, cell[0], cell[1]]).all():
        return _empty("The model has no value for this cell."), ""
    p = snapshot.view.p
    grid, percent, at_p = results.share_curves(fit, *cell, p)
    series: list[Series] = []
    for i, function in enumerate(fit.functions):
        series.append(Series("line", grid, percent[i], function, i, dashed=i >= SERIES))
        series.append(
            Series(
                "points", np.array([p]), at_p[i : i + 1], colour=i, mark=MARKS[i % len(MARKS)],
                names=(f"{at_p[i]:.1f} %\n{function} at p = {p:.0f}",), labels=frozenset({0}),
            )
        )  # fmt: skip
    name = f"{fit.data.codes[cell[0]]} on {fit.data.systems[cell[1]]}"
    content = Content(
        Axis(f"{_P}, {name}", log=True, doubling=True), Axis("Share of the time (%)", zero=True),
        tuple(series), verticals=((p, f"p = {p:.0f}"),),
    )  # fmt: skip
    words = ", ".join(f"{f} {v:.0f} %" for f, v in zip(fit.functions, at_p, strict=True))
    return content, f"Shares at p = {p:.0f}: {words}"

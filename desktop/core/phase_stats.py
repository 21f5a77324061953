"""Statistics of phases: level, efficiency, work, extremes, deviation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from desktop.core.curve import StepCurve
from desktop.core.envelope import envelope
from desktop.core.frames import TABLES, ArrayTable, array_table, frame
from desktop.core.phases import TERMS, PhaseFit
from desktop.core.quantity import PROCESSORS, CurveQuantity
from desktop.core.units import brief

if TYPE_CHECKING:
    from pandas import DataFrame


_FIELDS = TABLES["phases"] + TABLES["phase statistics"]


class PhaseRow(NamedTuple):
    """One phase: times in seconds, heights in processors.

    ``coefficients`` are ascending powers of (t - start_s), degree + 1 of them; ``error`` is the local L2
    error in processors * sqrt(s) and ``rms`` = error / sqrt(duration) the same as a deviation in processors;
    ``mean``, ``min``, ``max`` and ``work_s`` (processor-seconds) are the curve's own, not the fit's;
    ``name`` may be ""; ``efficiency`` is mean / capacity, 0 if the capacity is 0, NaN if levels are not parts
    of it.
    """

    start_s: float
    end_s: float
    degree: int
    coefficients: tuple[float, ...]
    error: float
    mean: float
    min: float
    max: float
    efficiency: float
    work_s: float
    rms: float
    name: str = ""


class Firm(NamedTuple):
    """A breakpoint over repetitions ("iterations" or "runs", `what`), found in `repeats` of `of`.

    low_s, high_s : interval of its median position with probability `level`; seconds on the axis of the fit.
    tested : whether the correlation of successive repetitions was estimated; else `level` is for
        independent ones, and `least` for a correlation of 0.8.
    """

    low_s: float
    high_s: float
    level: float
    repeats: int
    of: int
    what: str
    tested: bool = False
    least: float | None = None

    @property
    def text(self) -> str:
        among = f"{self.repeats} of {self.of}" if self.repeats < self.of else f"{self.of}"
        low = "" if self.tested or self.least is None else f"{100 * self.least:.0f} to "
        return f"{low}{100 * self.level:.0f} % over {among} {self.what}"

    @property
    def words(self) -> str:
        """The interval and `text`."""
        return f"{brief(self.low_s)} to {brief(self.high_s)}, {self.text}"


def phase_table(curve: StepCurve, fit: PhaseFit) -> list[PhaseRow]:
    """One row per phase of a fit of this curve, in order of time."""
    # The steps that a phase overlaps are known exactly; their centres select them without rounding errors.
    begin = fit.index[:-1] - (fit.offset[:-1] < 0)
    end = fit.index[1:] - (fit.offset[1:] <= 0)
    touched = np.stack([begin, end], axis=1).ravel()
    centres = (curve.edges[touched] + curve.edges[touched + 1]) / 2 * curve.unit
    columns = envelope(curve).columns(centres)
    low, high = columns.minimum[::2], columns.maximum[::2]
    # The constant Legendre coefficient of a best polynomial is the mean, whatever its degree.
    mean = fit.coefficients[:, 0]
    efficiency = mean / curve.capacity if curve.capacity else np.zeros(fit.n)
    if not curve.quantity.counted:
        efficiency = np.full(fit.n, np.nan)
    rms = fit.error / np.sqrt(fit.duration)
    work = mean * fit.duration
    breakpoints, degree = fit.breaks.tolist(), fit.degree.tolist()
    powers = [tuple(p[: TERMS[d]]) for p, d in zip(fit.powers.tolist(), degree, strict=True)]
    values = [column.tolist() for column in (fit.error, mean, low, high, efficiency, work, rms)]
    names = fit.names or [""] * fit.n
    return list(map(PhaseRow, breakpoints[:-1], breakpoints[1:], degree, powers, *values, names))


def phase_frame(rows: Sequence[PhaseRow], fit: PhaseFit) -> DataFrame:
    """``TABLES["phases"]`` with ``TABLES["phase statistics"]``, one row a phase, index 0 to n - 1."""
    return frame(_FIELDS, _columns(rows, fit))


def phase_arrays(
    rows: Sequence[PhaseRow],
    fit: PhaseFit,
    of: CurveQuantity = PROCESSORS,
    means: Sequence[tuple[StepCurve, str]] = (),
    firm: Sequence[Firm | None] = (),
) -> ArrayTable:
    """`phase_frame` without pandas, in the units of the curve's quantity. `means`: curves, and names of the
    columns with their means over each phase. `firm`: of the inner breakpoints, for the columns of
    ``TABLES["repeats"]``."""
    fields, columns = _FIELDS, _columns(rows, fit)
    if any(firm):
        fields += TABLES["repeats"]
        ends = [*firm, None]
        columns |= {
            "repeats_low_s": [math.nan if one is None else one.low_s for one in ends],
            "repeats_high_s": [math.nan if one is None else one.high_s for one in ends],
            "repeats": ["" if one is None else one.text for one in ends],
        }
    table = array_table(fields, columns)
    values, units = dict(table.values), {name: of.per(unit) for name, unit in table.units.items()}
    for curve, name in means:
        values[name] = envelope(curve).columns(fit.breaks).mean
        units[name] = curve.quantity.short
    return ArrayTable(values, units)


def _columns(rows: Sequence[PhaseRow], fit: PhaseFit) -> dict[str, object]:
    columns = {
        name: [getattr(row, name) for row in rows]
        for name in ("mean", "min", "max", "efficiency", "rms", "name")
    }
    return {**fit.columns(), **columns, "work": [row.work_s for row in rows], "end_range_s": fit.ranges}

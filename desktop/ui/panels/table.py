"""The phases as a table: each one's extent, shape, utilization and error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex

from desktop.core.labels import DEGREES
from desktop.core.quantity import PROCESSORS, CurveQuantity
from desktop.data.columns import Column, Texts, cell_texts
from desktop.ui.pages import lay_out, set_up
from desktop.ui.panels import Panel, PanelSpec
from desktop.ui.tables import FrameView, tab_separated
from desktop.workbench.workbench import Snapshot, Workbench

if TYPE_CHECKING:
    from desktop.core.curve import StepCurve
    from desktop.core.frames import ArrayTable
    from desktop.core.phase_stats import Firm, PhaseRow
    from desktop.core.phases import PhaseFit

#: Columns of `desktop.core.phase_stats.phase_arrays`.
COLUMNS: tuple[Column, ...] = (
    Column("#", "Number of the phase", name="phase"),
    Column("Name", "The region that is typical of it; double-click to rename it", name="name",
           editable=True),
    Column("Start", "Time of its first breakpoint", name="start_s", like="end_s", significant=5),
    Column("End", "Time of its last breakpoint", name="end_s", significant=5),
    Column("Duration", "Its length", name="duration_s"),
    Column("Degree", ", ".join(f"{k} {kind}" for k, kind in enumerate(DEGREES)),
           name="degree", shown=False),
    Column("Mean", "Mean number of computing processors", name="mean"),
    Column("Efficiency", "Mean computing processors of all processors", "%", 3, name="efficiency"),
    Column("Work", "Computing processors times time", name="work"),
    Column("Level", "Fitted processors at its start", name="level"),
    Column("Slope", "Change of the fit at its start", name="slope", like="duration_s"),
    Column("Curvature", "Quadratic coefficient of the fit at its start", name="curvature", like="duration_s"),
    Column("Error", "Local error: the L2 norm of curve minus fit", name="error"),
    Column("R.m.s.", "Root mean square deviation of the curve from the fit", name="rms", significant=3),
    Column("Range", "Its end may lie anywhere in a range of this length without a larger ε; "
           "not searched for breakpoints as suggested or set by hand",
           name="end_range_s", like="duration_s", significant=3),
    Column("Earliest end", "Its end could come as early as this without a larger ε", name="end_low_s",
           like="end_s", significant=5, shown=False),
    Column("Latest end", "Its end could come as late as this without a larger ε", name="end_high_s",
           like="end_s", significant=5, shown=False),
)  # fmt: skip
#: Where breakpoints lie over repeats, where there are any.
REPEATS = (
    Column("End from", "Low end of an interval for the median of its end over iterations or runs",
           name="repeats_low_s", like="end_s", significant=5),
    Column("End to", "High end of that interval", name="repeats_high_s", like="end_s", significant=5),
    Column("Over repeats", "How likely the interval holds the median of its end, and over how many "
           "iterations of this run, or runs of this program, it was made. Fewer than 12 do not show "
           "whether they resemble each other: the first level if they do, the second if not", name="repeats"),
)  # fmt: skip
#: Those for which a sheet of paper has room.
ON_PAPER = ("phase", "start_s", "duration_s", "degree", "mean", "efficiency", "rms")


def columns_of(
    quantity: CurveQuantity, tracks: Sequence[StepCurve] = (), firm: Sequence[Firm | None] = ()
) -> list[Column]:
    """The columns for phases of a curve of `quantity`, and for the means of more curves."""
    columns = [*COLUMNS, *(REPEATS if any(firm) else ())]
    if quantity != PROCESSORS:
        words = {
            "mean": ("Mean", f"Mean of the curve: {quantity.name}"),
            "work": ("Integral", "The curve times time"),
            "level": ("Level", "The fit at its start"),
            "efficiency": ("Share", "Mean over all of them"),
        }
        of_curve = (c for c in columns if c.name != "efficiency" or quantity.counted)
        worded = ((c, *words.get(c.name, (c.title, c.tip))) for c in of_curve)
        columns = [replace(c, title=title, tip=tip) for c, title, tip in worded]
    return columns + [
        Column(curve.quantity.name, f"Mean over the phase: {curve.quantity.name}", name=f"track {k}")
        for k, curve in enumerate(tracks, 1)
    ]


def arrays_of(
    rows: Sequence[PhaseRow],
    fit: PhaseFit,
    quantity: CurveQuantity,
    tracks: Sequence[StepCurve] = (),
    firm: Sequence[Firm | None] = (),
) -> ArrayTable:
    """The table that `columns_of` shows."""
    from desktop.core.phase_stats import phase_arrays

    named = [(curve, f"track {k}") for k, curve in enumerate(tracks, 1)]
    return phase_arrays(rows, fit, quantity, named, firm)


def phase_sheet(rows: Sequence[PhaseRow], fit: PhaseFit, quantity: CurveQuantity = PROCESSORS) -> Texts:
    """Headings and rows of the table as they stand on paper, in the words of the window."""
    named = ("name",) if any(row.name for row in rows) else ()
    columns = [c for c in columns_of(quantity) if c.name in (*ON_PAPER, *named)]
    return cell_texts(arrays_of(rows, fit, quantity), columns)


class TablePanel(Panel):
    """Rows and plot marks select each other."""

    def __init__(self, workbench: Workbench) -> None:
        super().__init__(workbench)
        self.view = set_up(FrameView("Phases", copies_one=True, row_height=1.25), objectName="phase_table")
        self._columns = list(COLUMNS)
        self.view.show_frame(None, COLUMNS)
        self.view.give_room(1)  # to the names
        self.model = self.view.frames
        self.model.edited.connect(self._rename)
        self.view.chosen.connect(workbench.select_phase)
        self.view.clicked.connect(self._select)
        lay_out(self, self.view, margins=0)

    # Methods, as closures would keep the workbench alive for as long as the table's model.
    def _rename(self, row: int, _column: int, text: str) -> None:
        self._workbench.name_phase(row, text)

    def _select(self, index: QModelIndex) -> None:
        self._workbench.select_phase(self.model.row_of(index))

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        if new.rows is not old.rows or new.tracks != old.tracks or new.firm != old.firm:
            quantity = PROCESSORS if new.run is None else new.run.curve.quantity
            tracks = [curve for _, curve in new.tracks]
            columns = columns_of(quantity, tracks, new.firm)
            new_columns = None if columns == self._columns else columns
            self._columns = columns
            table = None if new.fit is None else arrays_of(new.rows, new.fit, quantity, tracks, new.firm)
            self.view.show_frame(table, new_columns)
        phase = new.project.view.phase
        if self.view.keys != (() if phase is None else (phase,)):
            self.view.select_key("" if phase is None else phase)

    def copy(self) -> None:
        """Copy all rows, separated by tabs."""
        self.view.copy(tab_separated, everything=True)


PANEL = PanelSpec("table", "Phase table", "bottom", TablePanel, "guide.md#phase-table")

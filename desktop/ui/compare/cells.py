"""The table of a comparison: one line for each phase of each run; a match is corrected where it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QAbstractItemView

from desktop.core.matching import NONE
from desktop.data.columns import Column
from desktop.ui.tables import FrameView

if TYPE_CHECKING:
    from desktop.core.contrast import Alignment, Cell

#: Where the run stands, and the phase that can be chosen.
_RUN, _PHASE = 1, 2
_OF, _OVER = "this run minus the reference", "this run divided by the reference"
#: Of `desktop.core.contrast.cells_frame`, but for the phase.
COLUMNS = (
    Column("Part", "The whole run, or matched phases", name="label", label="part"),
    Column("Run", "The trace", name="run", swatch="colour"),
    Column("Start", "On the run's own axis", name="start_s", like="duration_s"),
    Column("Length", "Duration of the phase", name="duration_s"),
    Column("± Length", f"Difference of durations, {_OF}", name="duration_difference_s", like="duration_s"),
    Column("× Length", f"Ratio of durations, {_OVER}", name="duration_ratio"),
    Column("Mean", "Processors computing on average", name="mean"),
    Column("± Mean", f"Difference of mean processors, {_OF}", name="mean_difference"),
    Column("× Mean", f"Ratio of mean processors, {_OVER}", name="mean_ratio"),
    Column("Efficiency", "Mean over all processors of the run", "%", 3, name="efficiency"),
    Column("± Eff.", f"Difference of efficiencies in percentage points, {_OF}", "%", 3,
           name="efficiency_difference"),
    Column("Work", "Processors computing times time", name="work_s"),
    Column("± Work", f"Difference of work, {_OF}", name="work_difference_s", like="work_s"),
    Column("× Work", f"Ratio of work, {_OVER}", name="work_ratio"),
    Column("Alike", "How alike the matched phases are in shape and size, 100 % the same", "%", 3,
           name="alike"),
)  # fmt: skip


class CellsTable(FrameView):
    """Signals: `rowSelected` (of the alignment); `pairChosen` (run, phase of the reference, own phase)."""

    rowSelected = Signal(int)
    pairChosen = Signal(int, int, int)

    def __init__(self) -> None:
        super().__init__("Phases of the compared runs")
        self._alignment: Alignment | None = None
        phase = Column(
            "Phase", "Choose another to match it", name="phase", label="phase text", choices=self._choices
        )
        self._columns = (*COLUMNS[:_PHASE], phase, *COLUMNS[_PHASE:])
        self.show_frame(None, self._columns)
        self.frames.edited.connect(lambda k, _, phase: self._matched(k, phase))
        self.setEditTriggers(QAbstractItemView.EditTrigger.DoubleClicked)
        self.chosen.connect(self._selected)

    def show_cells(
        self,
        alignment: Alignment | None,
        cells: tuple[Cell, ...],
        by_hand: dict[int, frozenset[int]],
        colour: Callable[[int], QColor],
    ) -> None:
        """Other cells; `by_hand`: own phases of runs that were matched by hand."""
        self._alignment = alignment
        if alignment is None or not cells:
            self.show_frame(None)
            return
        from desktop.core.contrast import cells_frame

        count = len(alignment.runs)

        def phase(k: int, cell: Cell) -> str:
            if not cell.phase:
                return "–" if cell.phase is None else "all"
            manual = cell.phase - 1 in by_hand.get(k % count, ())
            return f"{cell.phase} (by hand)" if manual else str(cell.phase)

        frame = cells_frame(cells)
        frame["part"] = ["whole run" if cell.label == "run" else cell.label for cell in cells]
        frame["phase text"] = [phase(k, cell) for k, cell in enumerate(cells)]
        frame["colour"] = [colour(k % count).name() for k in range(len(cells))]
        self.show_frame(frame)

    def select_row(self, row: int) -> None:
        """Mark a row of the alignment."""
        if self._alignment is None or row < 0:
            self.select_key("")
            return
        count = len(self._alignment.runs)
        current = self.frames.row_of(self.currentIndex())
        # Below the lines of the whole runs; that line of it stays which the user chose.
        self.select_key(current if current >= 0 and current // count == row + 1 else (row + 1) * count)

    def choose_phase(self) -> None:
        """Let the user choose another phase for the current line, if it can have one."""
        at = self.currentIndex().siblingAtColumn(_PHASE)
        if at.isValid() and self.frames.flags(at) & Qt.ItemFlag.ItemIsEditable:
            self.setCurrentIndex(at)
            self.edit(at)

    def _selected(self, k: int) -> None:
        if self._alignment is not None:
            self.rowSelected.emit(k // len(self._alignment.runs) - 1)

    def _choices(self, k: int) -> tuple[tuple[str, int | None], ...]:
        """Phases (from 1; None: none) that can be chosen for line `k`: those of its run, if its row holds a
        phase of the reference instead; for the reference, if its row holds one of another run."""
        alignment = self._alignment
        if alignment is None:
            return ()
        row, run = divmod(k, len(alignment.runs))
        if row == 0:
            return ()
        phases = alignment.rows[row - 1]
        has_reference = phases[alignment.reference] != NONE
        if has_reference == (run == alignment.reference):
            return ()
        count = alignment.runs[run].fit.n
        return (("none", None), *((str(phase), phase) for phase in range(1, count + 1)))

    def _matched(self, k: int, phase: int | None) -> None:
        alignment = self._alignment
        assert alignment is not None
        new_phase = NONE if phase is None else phase - 1
        row, run = divmod(k, len(alignment.runs))
        phases = alignment.rows[row - 1].tolist()
        if run != alignment.reference:
            self.pairChosen.emit(run, phases[alignment.reference], new_phase)
        else:
            alone = next(j for j, p in enumerate(phases) if p != NONE)
            self.pairChosen.emit(alone, new_phase, phases[alone])

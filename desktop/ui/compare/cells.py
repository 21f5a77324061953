"""The table of a comparison: one line for each phase of each run; a match is corrected where it stands."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QItemSelectionModel, QModelIndex, Qt, Signal
from PySide6.QtGui import QBrush, QColor, QPixmap
from PySide6.QtWidgets import QAbstractItemView, QComboBox, QStyledItemDelegate, QTableView, QWidget

from desktop.core.matching import NONE
from desktop.ui.tables import Column, Index, RowsModel, as_text, prepare
from desktop.ui.units import Scale, digits, time_scale

if TYPE_CHECKING:
    from desktop.core.contrast import Alignment, Cell

#: Where the run stands, and the phase that can be chosen.
_RUN, _PHASE = 1, 2


def columns(factor: float, symbol: str) -> tuple[Column, ...]:
    """Of a `Cell`, with times shown in a unit of `factor` seconds; what is copied is in seconds."""

    def time(name: str, title: str, tip: str) -> Column:
        return Column(
            f"{title} ({symbol})",
            lambda c: getattr(c, name),
            tip,
            lambda c: digits(getattr(c, name) / factor),
        )

    def number(name: str, title: str, tip: str) -> Column:
        return Column(title, lambda c: getattr(c, name), tip)

    def work(name: str, title: str, tip: str) -> Column:
        return replace(time(name, title, tip), title=f"{title} (proc·{symbol})")

    def percent(name: str, title: str, tip: str) -> Column:
        def shown(cell: Cell) -> str:
            value = getattr(cell, name)
            return "–" if math.isnan(value) else f"{100 * value:.1f} %".replace("-", "−")

        return Column(title, lambda c: getattr(c, name), tip, shown)

    def phase(cell: Cell) -> str:
        return "–" if cell.phase is None else "all" if cell.phase == 0 else str(cell.phase)

    of = "this run less the reference"
    over = "this run over the reference"
    return (
        Column(
            "Part",
            lambda c: c.label,
            "The whole run, or phases that belong together",
            lambda c: "whole run" if c.label == "run" else str(c.label),
            number=False,
        ),
        Column("Run", lambda c: c.run, "The trace", number=False),
        Column("Phase", lambda c: "" if c.phase is None else c.phase, "Choose another to match it", phase),
        time("start_s", "Start", "On the run's own axis"),
        time("duration_s", "Length", "Duration of the phase"),
        time("duration_difference_s", "± Length", f"Difference of durations, {of}"),
        number("duration_ratio", "× Length", f"Ratio of durations, {over}"),
        number("mean", "Mean (proc)", "Processors computing on average"),
        number("mean_difference", "± Mean (proc)", f"Difference of mean processors, {of}"),
        number("mean_ratio", "× Mean", f"Ratio of mean processors, {over}"),
        percent("efficiency", "Efficiency", "Mean over all processors of the run"),
        percent("efficiency_difference", "± Eff.", f"Difference of efficiencies in percentage points, {of}"),
        work("work_s", "Work", "Processors computing times seconds"),
        work("work_difference_s", "± Work", f"Difference of work, {of}"),
        number("work_ratio", "× Work", f"Ratio of work, {over}"),
        percent("alike", "Alike", "How alike the matched phases are in shape and size, 100 % the same"),
    )


class CellsModel(RowsModel):
    """Cells whose phase can be chosen. `choices(line)`: the phases to choose from, counted from 0, or ()."""

    chosen = Signal(int, int)

    def __init__(self) -> None:
        super().__init__(columns(1.0, "s"))
        self.choices: Callable[[int], tuple[int, ...]] = lambda _: ()
        self.colour: Callable[[int], QColor] = lambda _: QColor()
        self.by_hand: frozenset[int] = frozenset()
        self.accent = QColor()

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if role == Qt.ItemDataRole.DecorationRole and index.column() == _RUN:
            square = QPixmap(10, 10)
            square.fill(self.colour(index.row()))
            return square
        if index.column() == _PHASE:
            if role == Qt.ItemDataRole.DisplayRole and index.row() in self.by_hand:
                return f"{super().data(index, role)} (by hand)"
            if role == Qt.ItemDataRole.ToolTipRole and self.choices(index.row()):
                return "Double-click, or F2, to choose another phase"
            if role == Qt.ItemDataRole.ForegroundRole and self.choices(index.row()):
                return QBrush(self.accent)
        return super().data(index, role)

    def flags(self, index: Index) -> Qt.ItemFlag:
        flags = super().flags(index)
        if index.column() == _PHASE and self.choices(index.row()):
            flags |= Qt.ItemFlag.ItemIsEditable
        return flags

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        if role != Qt.ItemDataRole.EditRole or value is None:
            return False
        self.chosen.emit(index.row(), int(value))
        return True


class _PhaseChoice(QStyledItemDelegate):
    """A combo box in the cell."""

    def createEditor(self, parent: QWidget, option: Any, index: Index) -> QWidget:
        model = index.model()
        assert isinstance(model, CellsModel)
        box = QComboBox(parent)
        box.setAccessibleName(self.tr("Phase to match"))
        for phase in model.choices(index.row()):
            box.addItem(self.tr("none") if phase == NONE else str(phase + 1), phase)
        now = model.rows[index.row()].phase
        box.setCurrentIndex(box.findData(NONE if now is None else now - 1))
        box.activated.connect(lambda _: self._taken(box))
        return box

    def _taken(self, box: QComboBox) -> None:
        self.commitData.emit(box)
        self.closeEditor.emit(box)

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        """It was filled when it was made, and later only the user changes it."""

    def setModelData(self, editor: QWidget, model: Any, index: Index) -> None:
        assert isinstance(editor, QComboBox)
        now = model.rows[index.row()].phase
        if editor.currentData() != (NONE if now is None else now - 1):
            model.setData(index, editor.currentData())


class CellsTable(QTableView):
    """Signals: `rowSelected` (of the alignment); `pairChosen` (run, phase of the reference, own phase)."""

    rowSelected = Signal(int)
    pairChosen = Signal(int, int, int)

    def __init__(self) -> None:
        super().__init__()
        self._alignment: Alignment | None = None
        self._unit = Scale(1.0, "s")
        self.cells = CellsModel()
        self.cells.chosen.connect(self._chosen)
        self.setModel(self.cells)
        self.setItemDelegateForColumn(_PHASE, _PhaseChoice(self))
        prepare(self, self.tr("Phases of the compared runs"), self.text)
        self.setEditTriggers(QAbstractItemView.EditTrigger.DoubleClicked)
        self.verticalHeader().hide()
        self.setWordWrap(False)
        self.selectionModel().currentRowChanged.connect(self._selected)

    def show_cells(
        self,
        alignment: Alignment | None,
        cells: tuple[Cell, ...],
        by_hand: dict[int, frozenset[int]],
        colour: Callable[[int], QColor],
    ) -> None:
        """Other cells; `by_hand`: own phases of runs that were matched by hand."""
        same = len(cells) == len(self.cells.rows)
        self._alignment = alignment
        count = 1 if alignment is None else len(alignment.runs)
        self.cells.choices, self.cells.colour = self._choices, lambda k: colour(k % count)
        self.cells.by_hand = frozenset(
            k for k, cell in enumerate(cells) if cell.phase and cell.phase - 1 in by_hand.get(k % count, ())
        )
        longest = max((cell.duration_s for cell in cells if cell.phase == 0), default=1.0)
        unit = time_scale(longest)
        self.cells.show(cells, None if unit == self._unit else columns(unit.factor, unit.symbol))
        self._unit = unit
        if not same:
            self._fit_columns()

    def _fit_columns(self) -> None:
        self.verticalHeader().setDefaultSectionSize(round(1.5 * self.fontMetrics().height()))
        self.resizeColumnsToContents()
        for k in (0, _RUN):
            self.setColumnWidth(k, min(self.columnWidth(k), 36 * self.fontMetrics().averageCharWidth()))

    def set_accent(self, colour: QColor) -> None:
        """Of phases that can be chosen."""
        self.cells.accent = colour
        self.viewport().update()

    def select_row(self, row: int) -> None:
        """Mark a row of the alignment."""
        model = self.selectionModel()
        if self._alignment is None or row < 0:
            model.clear()
            return
        first = (row + 1) * len(self._alignment.runs)  # below the lines of the whole runs
        at = self.cells.index(first, 0)
        flags = QItemSelectionModel.SelectionFlag
        if model.currentIndex().row() // len(self._alignment.runs) != row + 1:
            model.setCurrentIndex(at, flags.ClearAndSelect | flags.Rows)
        self.scrollTo(at)

    def choose_phase(self) -> None:
        """Let the user choose another phase for the current line, if it can have one."""
        at = self.cells.index(self.currentIndex().row(), _PHASE)
        if at.isValid() and self.cells.flags(at) & Qt.ItemFlag.ItemIsEditable:
            self.setCurrentIndex(at)
            self.edit(at)

    def text(self) -> str:
        """All of it with its headings, numbers in full and times in seconds."""
        return as_text(columns(1.0, "s"), self.cells.rows)

    def _selected(self, now: QModelIndex, _: QModelIndex) -> None:
        if self._alignment is not None and now.isValid():
            self.rowSelected.emit(now.row() // len(self._alignment.runs) - 1)

    def _choices(self, k: int) -> tuple[int, ...]:
        """The own phases that a line's run may have in its row; of the reference, where its partner's is."""
        alignment = self._alignment
        if alignment is None:
            return ()
        row, run = divmod(k, len(alignment.runs))
        if row == 0:
            return ()
        phases = alignment.rows[row - 1]
        given = phases[alignment.reference] != NONE
        if given == (run == alignment.reference):
            return ()
        return (NONE, *range(alignment.runs[run].fit.n))

    def _chosen(self, k: int, phase: int) -> None:
        alignment = self._alignment
        assert alignment is not None
        row, run = divmod(k, len(alignment.runs))
        phases = alignment.rows[row - 1].tolist()
        if run != alignment.reference:
            self.pairChosen.emit(run, phases[alignment.reference], phase)
        else:
            alone = next(j for j, p in enumerate(phases) if p != NONE)
            self.pairChosen.emit(alone, phase, phases[alone])

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fit_columns()

"""A `Sheet` as a table: sorts by numpy, shows only what is in sight, copies with its headings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from PySide6.QtCore import (
    QAbstractTableModel,
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QContextMenuEvent, QGuiApplication, QKeyEvent
from PySide6.QtWidgets import QMenu, QTableView

from desktop.ui.row_tables import (
    COPY,
    LEFT,
    RIGHT,
    Index,
    comma_separated,
    dress_plain,
    keyed,
    markdown,
    tab_separated,
)
from desktop.ui.theme import LIGHT, Theme
from desktop.ui.units import digits
from desktop.workbench.model_results import EMPTY, Column, Sheet

#: Rows that are looked at to find a column's width.
_SAMPLED = 200


def cell_text(column: Column, k: int) -> str:
    """As a cell shows it."""
    value = column.values[k]
    if not column.numeric:
        return str(value)
    number = float(value)
    if np.isnan(number):
        return ""
    if column.whole and number == round(number):
        return f"{number:.0f}"
    return digits(number, column.significant)


def full_text(column: Column, k: int) -> str:
    """As it is copied: every digit, a decimal point."""
    value = column.values[k]
    if not column.numeric:
        return str(value)
    number = float(value)
    if np.isnan(number):
        return ""
    return f"{number:.0f}" if column.whole and number == round(number) else repr(number)


class SheetModel(QAbstractTableModel):
    """Rows in the order that was asked for; the sheet itself is never changed."""

    def __init__(self) -> None:
        super().__init__()
        self.sheet: Sheet = EMPTY
        self.order = np.empty(0, np.int64)
        self._sorted: tuple[str, bool] | None = None
        self._theme: Theme = LIGHT

    def show(self, sheet: Sheet) -> None:
        """Another sheet, in the order of the same column if it has one."""
        self.beginResetModel()
        self.sheet = sheet
        self._arrange()
        self.endResetModel()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme

    def rows_of(self, keys: frozenset[int]) -> list[int]:
        """Shown rows of some keys."""
        if not keys:
            return []
        wanted = np.fromiter(keys, np.int64, len(keys))
        return np.flatnonzero(np.isin(self.sheet.keys[self.order], wanted)).tolist()

    def texts(self, rows: Sequence[int]) -> list[list[str]]:
        """Headings and full values."""
        body = [[full_text(c, int(self.order[row])) for c in self.sheet.columns] for row in rows]
        return [[c.title for c in self.sheet.columns], *body]

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """By a column; what is not known comes last either way."""
        if not 0 <= column < len(self.sheet.columns):
            self._sorted = None
        else:
            self._sorted = self.sheet.columns[column].title, order == Qt.SortOrder.DescendingOrder
        self.layoutAboutToBeChanged.emit()
        self._arrange()
        self.layoutChanged.emit()

    def _arrange(self) -> None:
        self.order = np.arange(len(self.sheet))
        if self._sorted is None:
            return
        title, descending = self._sorted
        column = next((c for c in self.sheet.columns if c.title == title), None)
        if column is None:
            return
        values = np.asarray(column.values)
        self.order = np.argsort(values, kind="stable")
        if descending:
            known = ~np.isnan(values[self.order]) if column.numeric else np.ones(len(self.sheet), bool)
            self.order = np.concatenate([self.order[known][::-1], self.order[~known]])

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(self.sheet)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(self.sheet.columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        column, k = self.sheet.columns[index.column()], int(self.order[index.row()])
        if role == Qt.ItemDataRole.DisplayRole:
            return cell_text(column, k)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(RIGHT if column.numeric else LEFT)
        if role == Qt.ItemDataRole.ForegroundRole:
            if k in self.sheet.alarming:
                return QColor(self._theme.error)
            return QColor(self._theme.muted) if k in self.sheet.muted else None
        if role == Qt.ItemDataRole.ToolTipRole:
            return full_text(column, k) or None
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation != Qt.Orientation.Horizontal or section >= len(self.sheet.columns):
            return None
        column = self.sheet.columns[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return column.title
        if role == Qt.ItemDataRole.ToolTipRole:
            return column.tip or None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(RIGHT if column.numeric else LEFT)
        return None


class SheetView(QTableView):
    """Copies and exports what is selected, or everything; tells which keys are selected."""

    picked = Signal(object)  # tuple of keys
    activatedKey = Signal(int)
    exportRequested = Signal()

    def __init__(self, name: str) -> None:
        super().__init__()
        self.sheet_model = SheetModel()
        self.setModel(self.sheet_model)
        dress_plain(self, name)
        self.horizontalHeader().setSortIndicatorClearable(True)
        self.horizontalHeader().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.setSortingEnabled(True)
        self._quiet = False
        self._titles: tuple[str, ...] = ()
        self._keys: frozenset[int] = frozenset()
        self.selectionModel().selectionChanged.connect(lambda *_: self._tell())
        self.sheet_model.layoutChanged.connect(lambda: self.select(self._keys))
        self.doubleClicked.connect(self._activate)
        keyed(self, "Copy", COPY, lambda: self.copy(tab_separated))

    def show_sheet(self, sheet: Sheet) -> None:
        """Columns of other names get new widths; the same keys stay selected."""
        self._quiet = True
        self.sheet_model.show(sheet)
        self._quiet = False
        titles = (*(column.title for column in sheet.columns), str(len(sheet)))
        if titles != self._titles:
            self._titles = titles
            self._fit_columns()
        self.select(self._keys)

    def set_theme(self, theme: Theme) -> None:
        self.sheet_model.set_theme(theme)
        self.verticalHeader().setDefaultSectionSize(int(1.5 * self.fontMetrics().height()))
        self._fit_columns()
        self.viewport().update()

    def select(self, keys: frozenset[int]) -> None:
        """Select the rows of some keys, and bring the first into sight, without telling anybody."""
        self._keys = keys
        rows = self.sheet_model.rows_of(keys)
        self._quiet = True
        chosen, last = QItemSelection(), self.sheet_model.columnCount() - 1
        for first, end in _stretches(rows):
            chosen.select(self.sheet_model.index(first, 0), self.sheet_model.index(end, last))
        self.selectionModel().select(chosen, QItemSelectionModel.SelectionFlag.ClearAndSelect)
        if rows and not self.hasFocus():
            self.selectionModel().setCurrentIndex(
                self.sheet_model.index(rows[0], 0), QItemSelectionModel.SelectionFlag.NoUpdate
            )
            self.scrollTo(self.sheet_model.index(rows[0], 0))
        self._quiet = False

    def selected_rows(self) -> list[int]:
        rows: set[int] = set()
        chosen = self.selectionModel().selection()
        for part in (chosen.at(k) for k in range(chosen.size())):
            rows.update(range(part.top(), part.bottom() + 1))
        return sorted(rows)

    def copy(self, form: Callable[[list[list[str]]], str], *, everything: bool = False) -> None:
        """Rows with headings onto the clipboard: those selected, else all."""
        QGuiApplication.clipboard().setText(form(self.copied(everything=everything)))

    def copied(self, *, everything: bool = False) -> list[list[str]]:
        rows = [] if everything else self.selected_rows()
        return self.sheet_model.texts(rows or range(len(self.sheet_model.sheet)))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        menu.addActions([action for action in self.actions() if action.text() != "Copy"])
        menu.addSeparator()
        menu.addAction("Copy", lambda: self.copy(tab_separated))
        menu.addAction("Copy as CSV", lambda: self.copy(comma_separated))
        menu.addAction("Copy as Markdown", lambda: self.copy(markdown))
        menu.addAction("Export table as CSV…", self.exportRequested.emit)
        menu.exec(event.globalPos())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.currentIndex().isValid():
            self._activate(self.currentIndex())
        else:
            super().keyPressEvent(event)

    def _tell(self) -> None:
        if self._quiet:
            return
        model = self.sheet_model
        keys = tuple(model.sheet.keys[model.order[self.selected_rows()]].tolist())
        self._keys = frozenset(keys)
        self.picked.emit(keys)

    def _activate(self, index: Index) -> None:
        model = self.sheet_model
        self.activatedKey.emit(int(model.sheet.keys[model.order[index.row()]]))

    def _fit_columns(self) -> None:
        """As wide as headings and the first rows need, so that a long table opens at once."""
        metrics, model = self.fontMetrics(), self.sheet_model
        em = metrics.averageCharWidth()
        for number, column in enumerate(model.sheet.columns):
            sample = range(min(len(model.sheet), _SAMPLED))
            widest = max((metrics.horizontalAdvance(cell_text(column, k)) for k in sample), default=0)
            heading = metrics.horizontalAdvance(column.title) + 2 * em
            self.setColumnWidth(number, min(max(widest, heading) + 2 * em, 44 * em))


def _stretches(rows: Sequence[int]) -> list[tuple[int, int]]:
    """Ascending rows as runs (first, last)."""
    if not len(rows):
        return []
    at = np.asarray(rows)
    cuts = np.flatnonzero(np.diff(at) != 1)
    return list(zip(at[[0, *(cuts + 1)]].tolist(), at[[*cuts, -1]].tolist(), strict=True))

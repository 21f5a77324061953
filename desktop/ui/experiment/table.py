"""Tables of results: sorted by a click on a heading, copied with their headings, rows chosen by key."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QItemSelectionModel,
    QModelIndex,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QBrush, QColor, QFont, QGuiApplication, QPainter
from PySide6.QtWidgets import (
    QApplication,
    QHeaderView,
    QMenu,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from desktop.ui.row_tables import (
    COPY,
    PASTE,
    Index,
    comma_separated,
    dress_plain,
    keyed,
    markdown,
    tab_separated,
)
from desktop.ui.theme import LIGHT, Theme
from desktop.ui.units import digits

Value = str | float | int | None
Texts = list[list[str]]
_ROLE = Qt.ItemDataRole
#: Rows that are looked at to see how wide a column is.
_MEASURED = 300
_CENTRE = Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True)
class Column:
    """`unit` stands below the title. `significant` digits of numbers. `check`: a box instead of text."""

    title: str
    tip: str = ""
    unit: str = ""
    significant: int = 4
    editable: bool = False
    check: bool = False


@dataclass(frozen=True)
class Row:
    """`key`: what is chosen with it. `tone`: ``""``, ``faint``, ``strong`` or ``warning``."""

    cells: tuple[Value, ...]
    key: str = ""
    tone: str = ""
    tip: str = ""
    checked: bool = False
    fixed: frozenset[int] = field(default_factory=frozenset)  # columns that cannot be edited here


class Grid(QAbstractTableModel):
    """Rows as they were given, in the order that the user chose."""

    edited = Signal(str, int, str)  # key, column, text
    toggled = Signal(str, bool)

    def __init__(self) -> None:
        super().__init__()
        self.columns: tuple[Column, ...] = ()
        self._given: tuple[Row, ...] = ()
        self.rows: list[Row] = []
        self._sort: tuple[int, bool] | None = None
        self.theme: Theme = LIGHT

    def show(self, columns: Sequence[Column], rows: Sequence[Row]) -> None:
        """Take other rows. Those of the same shape keep their place and selection."""
        same = tuple(columns) == self.columns and len(rows) == len(self._given)
        if not same:
            self.beginResetModel()
        if tuple(columns) != self.columns and len(columns) != len(self.columns):
            self._sort = None
        self.columns, self._given = tuple(columns), tuple(rows)
        self._arrange()
        if not same:
            self.endResetModel()
        elif rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(rows) - 1, len(columns) - 1))

    def _arrange(self) -> None:
        self.rows = list(self._given)
        if self._sort is not None:
            column, down = self._sort

            def place(row: Row) -> tuple[int, float, str]:
                value = row.cells[column]
                if value is None or (isinstance(value, float) and math.isnan(value)):
                    return 2, 0.0, ""
                if isinstance(value, str):
                    return 1, 0.0, value.casefold()
                return 0, -float(value) if down else float(value), ""

            texts = [row for row in self.rows if isinstance(row.cells[column], str)]
            self.rows.sort(key=place)
            if down and len(texts) == len(self.rows):
                self.rows.reverse()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self.layoutAboutToBeChanged.emit()
        self._sort = None if column < 0 else (column, order == Qt.SortOrder.DescendingOrder)
        self._arrange()
        self.layoutChanged.emit()

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(self.columns)

    def text(self, row: int, column: int) -> str:
        """As the cell shows it."""
        value = self.rows[row].cells[column]
        if value is None:
            return ""
        if isinstance(value, float):
            return digits(value, self.columns[column].significant)
        return str(value).replace("-", "−") if isinstance(value, int) else value

    def data(self, index: Index, role: int = _ROLE.DisplayRole) -> Any:
        row, column = self.rows[index.row()], index.column()
        spec = self.columns[column]
        if role == _ROLE.DisplayRole:
            return "" if spec.check else self.text(index.row(), column)
        if role == _ROLE.EditRole:
            value = row.cells[column]
            return "" if value is None else str(value)
        if role == _ROLE.TextAlignmentRole:
            number = not isinstance(row.cells[column], str)
            return _CENTRE | (Qt.AlignmentFlag.AlignRight if number else Qt.AlignmentFlag.AlignLeft)
        if role == _ROLE.ToolTipRole:
            return row.tip or None
        if role == _ROLE.CheckStateRole and spec.check:
            return Qt.CheckState.Checked if row.checked else Qt.CheckState.Unchecked
        if role == _ROLE.ForegroundRole and row.tone in ("faint", "warning"):
            return QBrush(QColor(self.theme.muted if row.tone == "faint" else self.theme.warning))
        if role == _ROLE.FontRole and row.tone in ("strong", "warning"):
            font = QFont()
            font.setBold(True)
            return font
        return None

    def setData(self, index: Index, value: Any, role: int = _ROLE.EditRole) -> bool:
        key = self.rows[index.row()].key
        if role == _ROLE.CheckStateRole:
            self.toggled.emit(key, Qt.CheckState(value) == Qt.CheckState.Checked)
            return True
        if role == _ROLE.EditRole:
            self.edited.emit(key, index.column(), str(value).strip())
            return True
        return False

    def flags(self, index: Index) -> Qt.ItemFlag:
        found = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        spec = self.columns[index.column()]
        if spec.check:
            found |= Qt.ItemFlag.ItemIsUserCheckable
        if spec.editable and index.column() not in self.rows[index.row()].fixed:
            found |= Qt.ItemFlag.ItemIsEditable
        return found

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = _ROLE.DisplayRole) -> Any:
        if orientation != Qt.Orientation.Horizontal or section >= len(self.columns):
            return None
        spec = self.columns[section]
        if role == _ROLE.DisplayRole:
            return f"{spec.title}\n{spec.unit}" if any(c.unit for c in self.columns) else spec.title
        if role == _ROLE.ToolTipRole:
            return spec.tip or None
        return None

    def texts(self, rows: Sequence[int]) -> Texts:
        """Headings and full values, for copying."""
        head = [f"{c.title} [{c.unit}]" if c.unit else c.title for c in self.columns]
        body = []
        for k in rows:
            row = self.rows[k]
            cells = []
            for spec, value in zip(self.columns, row.cells, strict=True):
                if spec.check:
                    cells.append("1" if row.checked else "0")
                else:
                    cells.append(
                        "" if value is None else repr(value) if isinstance(value, float) else str(value)
                    )
            body.append(cells)
        return [head, *body]


def latex(texts: Texts) -> str:
    lines = [" & ".join(line).replace("_", r"\_").replace("%", r"\%") + r" \\" for line in texts]
    spec = "l" * len(texts[0])
    return "\n".join([rf"\begin{{tabular}}{{{spec}}}", lines[0], r"\hline", *lines[1:], r"\end{tabular}", ""])


class _Boxes(QStyledItemDelegate):
    """Boxes with a frame that is seen on a dark ground, too."""

    def __init__(self, grid: Grid) -> None:
        super().__init__(grid)
        self._grid = grid

    def paint(self, painter: QPainter, option: Any, index: Index) -> None:  # Qt's stubs lack its fields
        super().paint(painter, option, index)
        if self._grid.columns[index.column()].check:
            full = QStyleOptionViewItem(option)
            self.initStyleOption(full, index)
            element = QStyle.SubElement.SE_ItemViewItemCheckIndicator
            box = QApplication.style().subElementRect(element, full, None)
            painter.setPen(QColor(self._grid.theme.border))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(box.adjusted(0, 0, -1, -1))


class ResultTable(QTableView):
    """Emits the key of the row that the user chooses; `pasted` gets text and the key it begins at."""

    chosen = Signal(str)
    pasted = Signal(str, str)

    def __init__(self, name: str, *, paste: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.grid = Grid()
        self._quiet = False
        self._paste = paste
        self.setModel(self.grid)
        self.setItemDelegate(_Boxes(self.grid))
        dress_plain(self, name)
        header = self.horizontalHeader()
        header.setMinimumSectionSize(2 * self.fontMetrics().averageCharWidth())
        header.setStretchLastSection(True)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | _CENTRE)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setSortIndicatorClearable(True)
        header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        self.setSortingEnabled(True)
        self.selectionModel().currentRowChanged.connect(self._row_chosen)
        keyed(self, "Copy", COPY, lambda: self.copy(tab_separated))
        if paste:
            keyed(self, "Paste", PASTE, self.paste)

    def show_rows(self, columns: Sequence[Column], rows: Sequence[Row], description: str = "") -> None:
        """Show other rows; the one that is chosen stays so by its key."""
        key = self.key
        fresh = tuple(columns) != self.grid.columns
        self._quiet = True
        self.grid.show(columns, rows)
        self.setAccessibleDescription(description)
        # A number at the far end of a wide column would belong to no heading.
        self.horizontalHeader().setStretchLastSection(any(isinstance(r.cells[-1], str) for r in rows))
        self._fit(fresh)
        self._quiet = False
        self.select_key(key)

    def _fit(self, fresh: bool) -> None:
        """Columns as wide as what is in them; later they only grow, so that the user's widths stay."""
        self.verticalHeader().setDefaultSectionSize(int(1.5 * self.fontMetrics().height()))
        metrics = self.fontMetrics()
        most = 34 * metrics.averageCharWidth()
        for k, column in enumerate(self.grid.columns):
            texts = [column.title, column.unit]
            if not column.check:
                texts += [self.grid.text(r, k) for r in range(min(len(self.grid.rows), _MEASURED))]
            # Bold is wider by about a tenth.
            wide = int(1.1 * max(map(metrics.horizontalAdvance, texts))) + 14
            if fresh or wide > self.columnWidth(k):
                self.setColumnWidth(k, min(wide, most))

    def sizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(30 * em, 12 * em)

    def minimumSizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(12 * em, 5 * em)

    @property
    def key(self) -> str:
        """Of the row that is chosen; "" if none is."""
        row = self.currentIndex().row()
        return self.grid.rows[row].key if 0 <= row < len(self.grid.rows) and self.selectedIndexes() else ""

    def select_key(self, key: str) -> None:
        """Mark the row of this key, or none."""
        self._quiet = True
        selection = self.selectionModel()
        at = next((k for k, row in enumerate(self.grid.rows) if key and row.key == key), -1)
        if at < 0:
            selection.clear()
        elif self.currentIndex().row() != at or not selection.hasSelection():
            flags = QItemSelectionModel.SelectionFlag
            index = self.grid.index(at, max(self.currentIndex().column(), 0))
            selection.setCurrentIndex(index, flags.ClearAndSelect | flags.Rows)
            self.scrollTo(index)
        self._quiet = False

    def _row_chosen(self, current: QModelIndex, _: QModelIndex) -> None:
        if not self._quiet and current.isValid():
            self.chosen.emit(self.grid.rows[current.row()].key)

    def set_theme(self, theme: Theme) -> None:
        self.grid.theme = theme
        self.viewport().update()

    def copy(self, form: Callable[[Texts], str], *, everything: bool = False) -> None:
        """Put the chosen rows, or all, with headings on the clipboard."""
        rows = sorted({index.row() for index in self.selectedIndexes()})
        if everything or len(rows) < 2:
            rows = list(range(len(self.grid.rows)))
        if rows:
            QGuiApplication.clipboard().setText(form(self.grid.texts(rows)))

    def paste(self) -> None:
        """Hand on what is on the clipboard, and where it is to begin."""
        if self._paste:
            self.pasted.emit(QGuiApplication.clipboard().text(), self.key)

    def contextMenuEvent(self, event: Any) -> None:
        menu = QMenu(self)
        menu.addAction("Copy", lambda: self.copy(tab_separated))
        menu.addAction("Copy as CSV", lambda: self.copy(comma_separated))
        menu.addAction("Copy as Markdown", lambda: self.copy(markdown))
        menu.addAction("Copy as LaTeX", lambda: self.copy(latex))
        if self._paste:
            menu.addSeparator()
            menu.addAction("Paste", self.paste)
        menu.exec(event.globalPos())

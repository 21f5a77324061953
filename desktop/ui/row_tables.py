"""What all tables share: their looks, copying in several forms, and read-only rows under declared columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, QSortFilterProxyModel, Qt
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QMenu, QTableView, QTreeView

from desktop.printing import as_csv, guarded
from desktop.ui.units import common, digits, scaled

Index = QModelIndex | QPersistentModelIndex
SORT = Qt.ItemDataRole.UserRole
COPY, PASTE = QKeySequence.StandardKey.Copy, QKeySequence.StandardKey.Paste
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter


@dataclass(frozen=True)
class Column:
    """`value(row)` is sorted and copied in full; `text(row)` is shown (None: the value's digits, or with a
    `unit` the quantity, in one prefix for the whole column)."""

    title: str
    value: Callable[[Any], Any]
    tip: str = ""
    text: Callable[[Any], str] | None = None
    number: bool = True
    unit: str = ""

    def shown(self, row: Any) -> str:
        if self.text is not None:
            return self.text(row)
        value = self.value(row)
        if isinstance(value, float):
            return digits(value)
        return f"{value:,}".replace(",", " ") if isinstance(value, int) else str(value)


def prefixed(columns: Sequence[Column], rows: Sequence[Any]) -> tuple[Column, ...]:
    """The columns as they show these rows: each quantity with one prefix from top to bottom."""

    def one(column: Column) -> Column:
        if not column.unit or column.text is not None:
            return column
        of = common((column.value(row) for row in rows), column.unit)
        return replace(column, text=lambda row: scaled(column.value(row), of))

    return tuple(one(column) for column in columns)


class RowsModel(QAbstractTableModel):
    """Rows of anything under declared columns."""

    def __init__(self, columns: Sequence[Column]) -> None:
        super().__init__()
        self._declared = self.columns = tuple(columns)
        self.rows: Sequence[Any] = ()

    def show(self, rows: Sequence[Any], columns: Sequence[Column] | None = None) -> None:
        """Take other rows; of the same number under the same columns they keep place and selection."""
        titles = [column.title for column in self._declared]
        same = len(rows) == len(self.rows) and (
            columns is None or [column.title for column in columns] == titles
        )
        if not same:
            self.beginResetModel()
        self.rows = rows
        if columns is not None:
            self._declared = tuple(columns)
        self.columns = prefixed(self._declared, rows)
        if not same:
            self.endResetModel()
        elif rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(rows) - 1, len(self.columns) - 1))

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(self.columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        column, row = self.columns[index.column()], self.rows[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return column.shown(row)
        if role == SORT:
            value = column.value(row)
            return -math.inf if isinstance(value, float) and math.isnan(value) else value
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return int(RIGHT if column.number else LEFT)
        if role == Qt.ItemDataRole.ToolTipRole:
            return column.shown(row)
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation == Qt.Orientation.Horizontal:
            if role == Qt.ItemDataRole.DisplayRole:
                return self.columns[section].title
            if role == Qt.ItemDataRole.ToolTipRole:
                return self.columns[section].tip
        return None


def sorted_by(model: Any) -> QSortFilterProxyModel:
    """The model behind a click on its headers, numbers as numbers; filters keep the parents of what fits."""
    proxy = QSortFilterProxyModel()
    proxy.setSourceModel(model)
    proxy.setSortRole(SORT)
    proxy.setRecursiveFilteringEnabled(True)
    proxy.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
    return proxy


def dress(view: QTableView | QTreeView, name: str) -> None:
    """Whole rows, and a name for screen readers."""
    view.setAccessibleName(name)
    view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    view.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
    view.setAlternatingRowColors(True)


def dress_plain(view: QTableView, name: str) -> None:
    """The same without a grid or numbers of rows; Tab leads on, not through the cells."""
    dress(view, name)
    view.setObjectName(name.lower().replace(" ", "_"))
    view.setShowGrid(False)
    view.setWordWrap(False)
    view.setTabKeyNavigation(False)
    view.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
    view.verticalHeader().hide()
    view.horizontalHeader().setHighlightSections(False)


def keyed(
    view: QTableView | QTreeView, text: str, key: QKeySequence.StandardKey, act: Callable[[], object]
) -> QAction:
    """Give a table an action whose key holds while the table has the focus."""
    action = QAction(text, view)
    action.setShortcut(key)
    action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
    action.triggered.connect(lambda: act())
    view.addAction(action)
    return action


def prepare(view: QTableView | QTreeView, name: str, copy: Callable[[], str]) -> None:
    """All that a table to look at needs: no editing, the key of copying, and a context menu with it."""
    dress(view, name)
    view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
    action = keyed(view, view.tr("Copy table"), COPY, lambda: QGuiApplication.clipboard().setText(copy()))
    view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)

    def menu(place: Any) -> None:
        shown = QMenu(view)
        shown.addAction(action)
        shown.exec(view.viewport().mapToGlobal(place))

    view.customContextMenuRequested.connect(menu)


# ---- forms of copying: headings and rows of cells


def tab_separated(texts: Iterable[Sequence[str]]) -> str:
    """What a spreadsheet takes from the clipboard."""
    return "".join("\t".join(guarded(cell) for cell in line) + "\n" for line in texts)


def comma_separated(texts: Iterable[Sequence[str]]) -> str:
    return "".join(as_csv(texts))


def markdown(texts: Iterable[Sequence[str]]) -> str:
    head, *body = ([" ".join(cell.split()).replace("|", "\\|") for cell in line] for line in texts)
    return "".join("| " + " | ".join(line) + " |\n" for line in (head, ["---"] * len(head), *body))


#: What LaTeX takes for something else.
_LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "−": "$-$", "·": r"$\cdot$", "√": r"$\surd$", "²": "$^2$", "ε": r"$\varepsilon$",
    "µ": r"$\mu$",
}  # fmt: skip


def latex(texts: Iterable[Sequence[str]]) -> str:
    """A tabular with rules above, below and under the headings; columns of numbers to the right."""
    head, *body = ([" ".join(cell.split()) for cell in line] for line in texts)

    def number(text: str) -> bool:
        try:
            float(text.replace("−", "-"))
        except ValueError:
            return not text
        return True

    def line(cells: Sequence[str]) -> str:
        return " & ".join("".join(_LATEX.get(c, c) for c in cell) for cell in cells) + r" \\" + "\n"

    form = "".join("r" if all(number(row[k]) for row in body) else "l" for k in range(len(head)))
    rule = "\\hline\n"
    inside = rule + line(head) + rule + "".join(map(line, body)) + rule
    return f"\\begin{{tabular}}{{{form}}}\n{inside}\\end{{tabular}}\n"


def as_text(columns: Sequence[Column], rows: Sequence[Any]) -> str:
    """For a spreadsheet; numbers in full."""

    def full(value: Any) -> str:
        text = repr(value) if isinstance(value, float) else str(value)
        return "" if text == "nan" else text

    titles = [column.title for column in columns]
    return tab_separated([titles, *([full(column.value(row)) for column in columns] for row in rows)])

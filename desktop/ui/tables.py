"""The table of the program: a pandas DataFrame shown, sorted, filtered, copied, exported, and edited.

A panel gives `FrameView.show_frame` a frame, the columns that it shows (`desktop.data.columns`), and what
belongs to rows beside their values (`RowMarks`). `FrameTree` shows rows below their parents.
"""

from __future__ import annotations

import atexit
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from PySide6.QtCore import (
    QAbstractItemModel,
    QEvent,
    QItemSelection,
    QItemSelectionModel,
    QMimeData,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSignalBlocker,
    Qt,
    Signal,
    SignalInstance,
)
from PySide6.QtGui import (
    QAction,
    QColor,
    QContextMenuEvent,
    QFont,
    QFontMetrics,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QComboBox,
    QHeaderView,
    QLineEdit,
    QMenu,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionFocusRect,
    QStyleOptionViewItem,
    QTableView,
    QTreeView,
    QWidget,
)

from desktop.core.arrays import Flags, Ints
from desktop.core.frames import AnyTable, ArrayTable
from desktop.core.units import capital
from desktop.data.columns import (
    NO_MARKS,
    SAMPLED,
    Column,
    ColumnCells,
    RowMarks,
    TableRow,
    Texts,
    table,
)
from desktop.errors import reason, sentence
from desktop.printing import as_csv
from desktop.printing import guarded as harmless
from desktop.ui.guard import guarded, in_ems
from desktop.ui.pages import asked_path, passing_menu, refill, set_up, warn
from desktop.ui.theme import LIGHT, Theme
from desktop.ui.workers import MainThread
from desktop.workbench.jobs import Lane

if TYPE_CHECKING:
    from pandas import DataFrame

    _Base = QAbstractItemView
else:
    _Base = object

Index = QModelIndex | QPersistentModelIndex
ROLE = Qt.ItemDataRole
COPY, PASTE = QKeySequence.StandardKey.Copy, QKeySequence.StandardKey.Paste
FILTER = "Ctrl+Shift+F"
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
ASCENDING, DESCENDING = Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder
_SELECT = QItemSelectionModel.SelectionFlag
#: Cells that are copied or written at once, within a frame or two; more of them in the background.
_MOST_AT_ONCE = 10_000
#: Side of a square of colour before a text.
_SWATCH = 10
_COMPARED = re.compile(r"\s*(.+?)\s*(<=|>=|<|>|=)\s*([-+−]?[\d.]+(?:[eE][-+]?\d+)?)\s*$")


@cache
def _empty_at_end() -> None:
    """Empty an in-process clipboard at exit: it would free Python's objects after Python has ended."""
    if QGuiApplication.platformName() in ("offscreen", "minimal"):
        atexit.register(QGuiApplication.clipboard().clear)


def _exported(cells: Sequence[ColumnCells], rows: Ints) -> DataFrame:
    """Rows of the frame under their headings, in the headings' units."""
    import pandas as pd

    columns = []
    for c in cells:
        values = (c.values if c.labels is None or c.numeric else c.labels)[rows]
        scaled = c.numeric and c.scale.factor != 1
        columns.append(pd.Series(values / c.scale.factor if scaled else values))
    return pd.concat(columns, axis=1).set_axis([c.head for c in cells], axis=1)


def _texts(cells: Sequence[ColumnCells], rows: Ints) -> Texts:
    """Headings and full texts of rows of the frame."""
    return [[c.head for c in cells], *map(list, zip(*(c.full(rows) for c in cells), strict=True))]


#: The index of a row in its frame: its type is that of the frame's index.
Key: TypeAlias = Any


class FrameModel(QAbstractItemModel):
    """Rows of a frame, sorted and filtered by the user; the frame itself is never changed.

    `edited`: index of the row, column, and the text or value that was chosen; `toggled`: index, state.
    """

    edited = Signal(object, int, object)
    toggled = Signal(object, bool)

    def __init__(self) -> None:
        super().__init__()
        self.theme: Theme = LIGHT
        self._table: ArrayTable | None = None
        self.columns: tuple[Column, ...] = ()
        self.marks = NO_MARKS
        self.cells: list[ColumnCells] = []
        self.first_other = 0  # the first row that `show` has changed
        self.order = np.empty(0, np.int64)  # the frame's row of each row of the table
        self._sort: tuple[str, bool] | None = None
        self._filter = ""
        self._parents: Ints | None = None
        self._below: dict[int, Ints] = {}
        self._place = np.empty(0, np.int64)

    # ---- what is shown

    @property
    def frame(self) -> DataFrame | None:
        """The frame shown, in full and in its own units."""
        return None if self._table is None else self._table.frame

    def show(
        self,
        frame: AnyTable | None,
        columns: Sequence[Column] | None = None,
        marks: RowMarks = NO_MARKS,
        parents: Ints | None = None,
    ) -> None:
        """Show another frame, under the same columns if none are given (at first: all of the frame).

        `parents` (rows,): the frame's row above each, -1 at the top. Without them rows are added and removed
        at the end, so that a table keeps its place.
        """
        table = None if frame is None else ArrayTable.of(frame)
        if columns is None:
            columns = self.columns or (() if table is None else [Column(c) for c in table.values])
        old_size, same_columns = len(self.order), self.columns and parents is None and self._parents is None
        same_columns = bool(same_columns) and [c.title for c in columns] == [c.title for c in self.columns]
        heads, old_cells = [cells.head for cells in self.cells], self.cells
        alike = same_columns and self.marks is marks and self.columns == tuple(columns)
        if not same_columns:
            self.beginResetModel()
        self._table, self.columns, self.marks = table, tuple(columns), marks
        self._parents = parents
        self.cells = [] if table is None else [ColumnCells(column, table) for column in columns]
        pairs = zip(self.cells, old_cells, strict=True) if alike and old_cells and self.cells else ()
        self.first_other = min((new.like(old) for new, old in pairs), default=0)
        self._arrange(old_size if same_columns else None, self.first_other if same_columns else 0)
        if not same_columns:
            self.endResetModel()
        elif heads != [cells.head for cells in self.cells]:
            self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, max(len(self.columns) - 1, 0))

    def _arrange(self, old_size: int | None, first: int = 0) -> None:
        """Sort and filter the rows; `old_size`: from so many rows, without a reset, and the `first` ones of
        the frame are unchanged."""
        order = self._ordered_rows()
        if old_size is None or self._parents is not None:
            self._take(order)
            return
        size = order.size
        if size > old_size:
            self.beginInsertRows(QModelIndex(), old_size, size - 1)
        elif size < old_size:
            self.beginRemoveRows(QModelIndex(), size, old_size - 1)
        self._take(order)
        if size > old_size:
            self.endInsertRows()
        elif size < old_size:
            self.endRemoveRows()
        first = 0 if self._sort or self._filter else first
        if first < size and self.columns:
            self.dataChanged.emit(self.index(first, 0), self.index(size - 1, len(self.columns) - 1))

    def _take(self, order: Ints) -> None:
        self.order = order
        if self._parents is None:
            self._below, self._place = {-1: order}, np.empty(0, np.int64)
            return
        above = self._parents[order]
        grouped_by = np.argsort(above, kind="stable")
        starts = np.flatnonzero(np.diff(above[grouped_by], prepend=-2))
        self._below = {
            int(above[part[0]]): order[part] for part in np.split(grouped_by, starts[1:]) if part.size
        }
        self._place = np.zeros(self._parents.size, np.int64)
        for rows in self._below.values():
            self._place[rows] = np.arange(rows.size)

    def _ordered_rows(self) -> Ints:
        size = 0 if self._table is None else len(self._table)
        order = np.arange(size)
        column = next((c for c in self.cells if self._sort and c.column.source == self._sort[0]), None)
        if column is not None and self._sort is not None:
            rank = -column.rank if self._sort[1] else column.rank
            order = np.argsort(rank, kind="stable")  # NaN come last either way
        return order[self._fitting(size)[order]] if self._filter and size else order

    def _fitting(self, size: int) -> Flags:
        """(rows,) whether the filter lets a row through, which includes all rows above such."""
        compared = _COMPARED.match(self._filter)
        fits = np.zeros(size, bool)
        title = compared[1].casefold() if compared else ""
        column = next((c for c in self.cells if c.numeric and c.column.title.casefold() == title), None)
        if compared and column is not None:
            limit = float(compared[3].replace("−", "-"))
            value = column.values / column.scale.factor
            with np.errstate(invalid="ignore"):
                fits = {"<": value < limit, ">": value > limit, "<=": value <= limit, ">=": value >= limit,
                        "=": np.isclose(value, limit, rtol=1e-3)}[compared[2]]  # fmt: skip
        else:
            text = self._filter.casefold()
            for cells in self.cells:
                if cells.folded:
                    fits |= np.fromiter((text in folded for folded in cells.folded), bool, size)
        if self._parents is not None:
            above = self._parents[fits]
            while above.size and not fits[above := np.unique(above[above >= 0])].all():
                fits[above] = True
                above = self._parents[above]
        return fits

    def sort(self, column: int, order: Qt.SortOrder = ASCENDING) -> None:
        """Sort by the values of a column; equal ones stay as in the frame, missing ones come last. -1: as in
        the frame."""
        valid = 0 <= column < len(self.columns)
        key = (self.columns[column].source, order == DESCENDING) if valid else None
        if key == self._sort:
            return
        self._sort = key
        self.layoutAboutToBeChanged.emit()
        indexes = self.persistentIndexList()
        rows = [self.row_of(index) for index in indexes]
        self._arrange(None)
        self.changePersistentIndexList(
            indexes, [self.index_at(k, index.column()) for k, index in zip(rows, indexes, strict=True)]
        )
        self.layoutChanged.emit()

    @property
    def sorted_by(self) -> tuple[int, Qt.SortOrder]:
        """The column by which rows are sorted (-1: as in the frame), and in which order."""
        sources = [column.source for column in self.columns]
        if self._sort is None or self._sort[0] not in sources:
            return -1, ASCENDING
        return sources.index(self._sort[0]), DESCENDING if self._sort[1] else ASCENDING

    def set_filter(self, text: str) -> None:
        """Show only rows with a text that contains these letters, or by ``title > number`` (<, >=, <=, =), in
        the unit of the header; "": all."""
        if text.strip() == self._filter:
            return
        self._filter = text.strip()
        if self._parents is None:
            self._arrange(self.order.size)
        else:
            self.beginResetModel()
            self._arrange(None)
            self.endResetModel()

    # ---- rows

    def row_of(self, index: Index) -> int:
        """The frame's row of an index; -1 if it is invalid."""
        if not index.isValid():
            return -1
        return int(self.order[index.row()] if self._parents is None else index.internalId())

    def index_at(self, k: int, column: int = 0) -> QModelIndex:
        """The model's index of a row of the frame; invalid if it is not shown."""
        if self._parents is not None:
            return self.createIndex(int(self._place[k]), column, k) if k >= 0 else QModelIndex()
        row = np.flatnonzero(self.order == k)
        return self.index(int(row[0]), column) if row.size else QModelIndex()

    def key(self, k: int) -> Key:
        """The frame's index of a row."""
        index = None if self._table is None else self._table.index
        key = k if index is None else index[k]
        return key.item() if isinstance(key, np.generic) else key

    def keys(self, rows: Sequence[int] | Ints) -> tuple[Key, ...]:
        """The frame's index of some of its rows."""
        return tuple(self.key(k) for k in rows)

    def rows_of(self, keys: Iterable[object]) -> list[int]:
        """Shown rows whose index is among some keys, from the top."""
        among = list(keys)
        if self._table is None or not among:
            return []
        if self._table.index is None:
            numbers = [int(key) for key in among if isinstance(key, int | np.integer)]
            return list(np.flatnonzero(np.isin(self.order, numbers)).tolist())
        named = set(among)
        return [row for row, key in enumerate(self._table.index[self.order].tolist()) if key in named]

    def column(self, source: str) -> int:
        """The number of a column by its name in the frame, or its title."""
        return next(k for k, c in enumerate(self.columns) if source in (c.source, c.title))

    def text(self, row: int, column: int, fewer: int = 0) -> str:
        """The text of a cell in a row of the table."""
        return self.cells[column].text(int(self.order[row]), fewer)

    def texts(self, rows: Iterable[int], columns: Iterable[int] | None = None) -> Texts:
        """Headings with units, and full values of rows of the table, for copying."""
        cells = [self.cells[c] for c in (range(len(self.cells)) if columns is None else columns)]
        return _texts(cells, self.order[list(rows)])

    # ---- Qt's interface

    def index(self, row: int, column: int, parent: Index = QModelIndex()) -> QModelIndex:  # noqa: B008 - Qt's own signature
        rows = self._below.get(self.row_of(parent) if self._parents is not None else -1)
        if rows is None or not (0 <= row < rows.size and 0 <= column < len(self.columns)):
            return QModelIndex()
        return self.createIndex(row, column, int(rows[row]) if self._parents is not None else 0)

    def parent(self, index: Index = QModelIndex()) -> Any:  # noqa: B008 - Qt's own; without index it is the object above
        above = -1 if self._parents is None or not index.isValid() else int(self._parents[self.row_of(index)])
        return QModelIndex() if above < 0 else self.createIndex(int(self._place[above]), 0, above)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        if self._parents is None:
            return 0 if parent.isValid() else self.order.size
        rows = self._below.get(self.row_of(parent)) if parent.column() <= 0 else None
        return 0 if rows is None else rows.size

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() and self._parents is None else len(self.columns)

    def tone(self, k: int, column: int) -> str:
        """The tone of a cell's text: that of its row, else "choice" if it has choices, else ""."""
        tone = self.marks.tone.get(k, "") if self.marks.tone else ""
        choices = self.columns[column].choices
        return tone or ("choice" if choices is not None and choices(k) else "")

    def colour(self, tone: str) -> QColor | None:
        """The colour of text of a tone; None: as other text."""
        if not tone:
            return None
        t = self.theme
        name = {"faint": t.muted, "warning": t.warning, "error": t.error, "choice": t.accent}.get(tone)
        return None if name is None else QColor(name)

    def bold(self, k: int, column: int) -> bool:
        """Whether a cell is bold: marked itself, or in a row marked "strong" or "warning"."""
        if self.marks is NO_MARKS:
            return False
        strong = self.marks.tone.get(k) in ("strong", "warning")
        return strong or self.columns[column].source in self.marks.bold.get(k, ())

    def data(self, index: Index, role: int = ROLE.DisplayRole) -> object:
        if not index.isValid() or not self.cells:
            return None
        k, cells = self.row_of(index), self.cells[index.column()]
        column = cells.column
        if role == ROLE.DisplayRole:
            return "" if column.check else cells.text(k)
        if role == ROLE.EditRole:
            value = cells.values[k]
            return value if column.choices else "" if value is None else str(value)
        if role == ROLE.TextAlignmentRole:
            return int(RIGHT if cells.right else LEFT)
        if role == ROLE.ToolTipRole:
            if column.choices is not None and column.choices(k):
                return "Double-click, or F2, to choose another"
            return self.marks.tip.get(k) or cells.text(k) or None
        if role == ROLE.CheckStateRole and column.check:
            return Qt.CheckState.Checked if cells.values[k] else Qt.CheckState.Unchecked
        if role == ROLE.ForegroundRole:
            return self.colour(self.tone(k, index.column()))
        if role == ROLE.FontRole and self.bold(k, index.column()):
            font = QFont()
            font.setBold(True)
            return font
        return None

    def setData(self, index: Index, value: object, role: int = ROLE.EditRole) -> bool:
        key = self.key(self.row_of(index))
        if role == ROLE.CheckStateRole:
            self.toggled.emit(key, Qt.CheckState(value) == Qt.CheckState.Checked)
        elif role == ROLE.EditRole:
            choosing = self.columns[index.column()].choices is not None
            self.edited.emit(key, index.column(), value if choosing else str(value).strip())
        else:
            return False
        return True

    def flags(self, index: Index) -> Qt.ItemFlag:
        flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        if not index.isValid():
            return flags
        k, column = self.row_of(index), self.columns[index.column()]
        if column.check:
            flags |= Qt.ItemFlag.ItemIsUserCheckable
        choosable = column.choices is not None and bool(column.choices(k))
        if choosable or (column.editable and column.source not in self.marks.fixed.get(k, ())):
            flags |= Qt.ItemFlag.ItemIsEditable
        return flags

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = ROLE.DisplayRole) -> object:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(self.columns):
            return None
        column = self.columns[section]
        if role == ROLE.DisplayRole:
            units = [cells.scale.symbol for cells in self.cells]
            return f"{column.title}\n{units[section]}" if any(units) else column.title
        if role == ROLE.ToolTipRole:
            return column.tip or None
        if role == ROLE.TextAlignmentRole:
            return int(RIGHT if self.cells and self.cells[section].right else LEFT)
        return None


# ---- views


class _Choice(QStyledItemDelegate):
    """Edits cells with choices in a combo box; frames check boxes so that they are seen on a dark ground."""

    @guarded
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        super().paint(painter, option, index)
        model = index.model()
        if isinstance(model, FrameModel) and model.columns[index.column()].check:
            full = QStyleOptionViewItem(option)
            self.initStyleOption(full, index)
            element = QStyle.SubElement.SE_ItemViewItemCheckIndicator
            box = QApplication.style().subElementRect(element, full, None)
            painter.setPen(QColor(model.theme.border))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(box.adjusted(0, 0, -1, -1))

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        model = index.model()
        assert isinstance(model, FrameModel)
        column = model.columns[index.column()]
        if column.choices is None:
            return super().createEditor(parent, option, index)
        box = set_up(QComboBox(parent), accessibleName=column.title)
        entries = {value: text for text, value in column.choices(model.row_of(index))}
        refill(box, entries, index.data(ROLE.EditRole))
        box.activated.connect(lambda _: self._accept(box))
        return box

    def _accept(self, box: QComboBox) -> None:
        self.commitData.emit(box)
        self.closeEditor.emit(box)

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        if isinstance(editor, QComboBox):
            editor.showPopup()
        else:
            super().setEditorData(editor, index)

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: Index) -> None:
        if not isinstance(editor, QComboBox):
            super().setModelData(editor, model, index)
        elif editor.currentData() != index.data(ROLE.EditRole):
            model.setData(index, editor.currentData())


T = TypeVar("T")


def keyed(
    view: QWidget, text: str, *keys: QKeySequence.StandardKey | str, act: Callable[[], object]
) -> QAction:
    """Give a widget an action whose keys hold while it has the focus."""
    action = view.addAction(text, lambda: act())
    shortcuts = [QKeySequence(key) for key in keys]
    return set_up(action, shortcuts=shortcuts, shortcutContext=Qt.ShortcutContext.WidgetShortcut)


class _Framed(_Base):
    """The base of views of frames: selection by key, copying, exporting, choosing columns, filtering.

    `copies_one`: a single selected row is copied alone; otherwise it counts as the cursor, and all rows are
    copied.
    """

    frames: FrameModel
    if TYPE_CHECKING:
        pasted: SignalInstance
        hiddenChanged: SignalInstance

    def _begin(
        self, name: str, *, paste: bool = False, copies_one: bool = False, sortable: bool = True
    ) -> None:
        self.frames = FrameModel()
        self._quiet, self._paste, self._copies_one = False, paste, copies_one
        self._requests: dict[str, int] = {}
        self._lane: Lane | None = None  # for many cells
        self._heads: tuple[str, ...] = ()
        self._hidden: frozenset[str] | None = None  # titles; None: as the columns say
        self.setModel(self.frames)
        set_up(
            self, accessibleName=name, objectName=name.lower().replace(" ", "_"),
            selectionBehavior=QAbstractItemView.SelectionBehavior.SelectRows,
            selectionMode=QAbstractItemView.SelectionMode.ExtendedSelection, alternatingRowColors=True,
            tabKeyNavigation=False, horizontalScrollMode=QAbstractItemView.ScrollMode.ScrollPerPixel,
            itemDelegate=_Choice(self),
        )  # fmt: skip
        header = set_up(
            self._header(), sectionsClickable=True, sortIndicatorShown=sortable, sortIndicatorClearable=True,
            sortIndicator=(-1, ASCENDING), contextMenuPolicy=Qt.ContextMenuPolicy.CustomContextMenu,
            customContextMenuRequested=self._ask_columns,
        )  # fmt: skip
        # One of its own: else every cell of a selection would be asked whether to highlight its heading.
        header.setSelectionModel(QItemSelectionModel(self.frames, header))
        if sortable:
            header.sortIndicatorChanged.connect(self._sort)
        self._keyed = [
            keyed(self, "Copy", COPY, act=lambda: self.copy(tab_separated)),
            keyed(self, "Filter rows…", FILTER, act=self.ask_filter),
        ]
        if paste:
            self._keyed.append(keyed(self, "Paste", PASTE, act=self.paste))
        self._filter_box = set_up(
            QLineEdit(self), placeholderText="Text, or Title > number", accessibleName=f"Filter of {name}",
            clearButtonEnabled=True, textChanged=self.filter,
        )  # fmt: skip
        keyed(self._filter_box, "Close", "Escape", act=self._end_filter)
        self._filter_box.hide()

    def _header(self) -> QHeaderView:
        raise NotImplementedError

    # ---- showing

    def show_frame(
        self,
        frame: AnyTable | None,
        columns: Sequence[Column] | None = None,
        marks: RowMarks = NO_MARKS,
        parents: Ints | None = None,
        description: str = "",
    ) -> None:
        """Show another frame; selected rows stay so by their index, if that identifies them."""
        keys = tuple(key for key in self.keys if key != "")
        self._quiet = True
        self.frames.show(frame, columns, marks, parents)
        self.setAccessibleDescription(description)
        heads = tuple(cells.head for cells in self.frames.cells)
        fresh, self._heads = heads != self._heads, heads
        self._hide()
        column, order = self.frames.sorted_by
        if self._header().sortIndicatorSection() != column:
            with QSignalBlocker(self._header()):
                self._header().setSortIndicator(column, order)
        self.fit(fresh=fresh)
        self._quiet = False
        if keys and keys != self.keys:
            self.select_keys(keys)

    def show_rows(self, columns: Sequence[Column], rows: Sequence[TableRow], description: str = "") -> None:
        """Show rows that were made cell by cell; columns may have equal titles."""
        titles = [column.title for column in columns]
        columns = [
            replace(column, name=f"{title} {k}") if title in titles[:k] and not column.name else column
            for k, (column, title) in enumerate(zip(columns, titles, strict=True))
        ]
        frame, marks = table(columns, rows) if rows else (None, NO_MARKS)
        self.show_frame(frame, columns, marks, description=description)

    def fit(self, *, fresh: bool = True) -> None:
        """Make columns as wide as their headings and first rows; those that are not `fresh` only grow, so
        that the user's widths stay."""
        header, first = self._header(), 0 if fresh else self.frames.first_other
        for k, column in enumerate(() if self.frames.cells else self.frames.columns):
            header.resizeSection(k, self._heading_width(column.title))
        for k, cells in enumerate(self.frames.cells):
            if header.sectionResizeMode(k) in (QHeaderView.ResizeMode.Stretch, QHeaderView.ResizeMode.Fixed):
                continue
            wide = self._width_of(cells) if fresh else self._texts_width(cells, first)
            if fresh or wide > header.sectionSize(k):
                header.resizeSection(k, wide)

    def _width_of(self, cells: ColumnCells) -> int:
        """The width of heading and first rows of a column."""
        return max(self._texts_width(cells), self._heading_width(cells.column.title, cells.scale.symbol))

    def _heading_width(self, *lines: str) -> int:
        metrics, em = self.fontMetrics(), self.fontMetrics().averageCharWidth()
        return min(max(map(metrics.horizontalAdvance, lines)) + 4 * em, 44 * em)

    def _texts_width(self, cells: ColumnCells, first: int = 0) -> int:
        """The width of the first rows of a column, from row `first` on."""
        metrics, column = self.fontMetrics(), cells.column
        em = metrics.averageCharWidth()
        texts = [] if column.check else [cells.text(r) for r in range(first, min(len(cells.values), SAMPLED))]
        if cells.numeric and texts:
            texts = [max(texts, key=len)]  # digits are of one width
        # Bold is wider by about a tenth.
        widest = int(1.1 * max(map(metrics.horizontalAdvance, texts), default=0))
        widest += _SWATCH + em if cells.swatches is not None else 0
        return min(widest + 2 * em, 44 * em)

    def set_theme(self, theme: Theme) -> None:
        self.frames.theme = theme
        self.viewport().update()

    # ---- rows by key

    def selected_rows(self) -> list[int]:
        """Rows of the table that are selected, from the top (of a tree: rows of the frame)."""
        rows: set[int] = set()
        selection = self.selectionModel().selection()
        for part in (selection.at(k) for k in range(selection.size())):
            if isinstance(self, QTreeView):
                rows.update(self.frames.row_of(index) for index in part.indexes())
            else:
                rows.update(range(part.top(), part.bottom() + 1))
        return sorted(rows)

    @property
    def keys(self) -> tuple[Key, ...]:
        """Indices of the selected rows."""
        rows = self.selected_rows()
        if not rows or not self.frames.cells:
            return ()
        return self.frames.keys(rows if isinstance(self, QTreeView) else self.frames.order[rows].tolist())

    @property
    def key(self) -> Key:
        """The index of the current row; "" if none is selected."""
        k = self.frames.row_of(self.currentIndex())
        return self.frames.key(k) if k >= 0 and self.selectionModel().hasSelection() else ""

    def select_keys(self, keys: Iterable[object]) -> None:
        """Select the rows of some keys, and bring the first into sight, without a signal."""
        rows = self.frames.rows_of(keys)
        single = len(rows) == 1  # of several, the user may just have left the current one out
        rows_selected, last = QItemSelection(), self.frames.columnCount() - 1
        for first, end in _stretches(rows):
            rows_selected.select(self.frames.index(first, 0), self.frames.index(end, last))
        self._quiet = True
        selection = self.selectionModel()
        if not rows:
            selection.clear()
        else:
            selection.select(rows_selected, _SELECT.ClearAndSelect)
            if self.currentIndex().row() not in rows and (single or not self.hasFocus()):
                index = self.frames.index(rows[0], max(self.currentIndex().column(), 0))
                selection.setCurrentIndex(index, _SELECT.NoUpdate)
                self.scrollTo(index)
        self._quiet = False

    def select_key(self, key: object) -> None:
        """Select the row of this key, or none ("")."""
        self.select_keys(() if key == "" else (key,))

    # ---- order, columns, filter

    def sortByColumn(self, column: int, order: Qt.SortOrder) -> None:
        """Sort as a click on the heading does; -1: as in the frame."""
        self._header().setSortIndicator(column, order)

    def _sort(self, column: int, order: Qt.SortOrder) -> None:
        cells = self.frames.cells[column] if 0 <= column < len(self.frames.cells) else None
        size = 0 if cells is None or cells.numeric or "rank" in vars(cells) else len(cells.values)
        done = lambda _: self._arrange(column, order)  # noqa: E731 - handed on
        self._in_background("sort", size, lambda: cells and cells.rank, done)

    def _arrange(self, column: int, order: Qt.SortOrder) -> None:
        tree = isinstance(self, QTreeView)
        keys, current = (() if tree else self.keys), self.frames.row_of(self.currentIndex())
        self._quiet = True
        if not tree:
            self.selectionModel().clear()  # or every cell would be followed to its new place
        self.frames.sort(column, order)
        if not tree and current >= 0 and keys:
            self.selectionModel().setCurrentIndex(self.frames.index_at(current), _SELECT.NoUpdate)
            self.select_keys(keys)
        self._quiet = False

    def _hide(self) -> None:
        header = self._header()
        for k, column in enumerate(self.frames.columns):
            hidden = not column.shown if self._hidden is None else column.title in self._hidden
            if header.isSectionHidden(k) != (hidden and k > 0):
                header.setSectionHidden(k, hidden and k > 0)

    def set_hidden(self, titles: Iterable[str] | None) -> None:
        """Hide columns by their titles; None: those hidden at first."""
        self._hidden = None if titles is None else frozenset(titles)
        self._hide()

    def columns_menu(self) -> QMenu:
        """A menu to show and hide columns; the first one stays."""
        menu, header = QMenu(self), self._header()
        for number, column in list(enumerate(self.frames.columns))[1:]:
            visible = not header.isSectionHidden(number)
            action = set_up(menu.addAction(column.title), toolTip=column.tip, checkable=True, checked=visible)
            action.toggled.connect(partial(self._show_column, number))
        menu.addSeparator()
        menu.addAction("&Reset columns", lambda: self._show_column(-1, True))
        menu.addAction("&Original order", lambda: header.setSortIndicator(-1, ASCENDING))
        return menu

    def _ask_columns(self, place: QPoint) -> None:
        menu = set_up(self.columns_menu(), attribute=Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self._header().mapToGlobal(place))

    def _show_column(self, number: int, shown: bool) -> None:
        header = self._header()
        if number < 0:
            self.set_hidden(None)
            self.hiddenChanged.emit(None)
            return
        header.setSectionHidden(number, not shown)
        titles = enumerate(column.title for column in self.frames.columns)
        self._hidden = frozenset(title for k, title in titles if header.isSectionHidden(k))
        self.hiddenChanged.emit(sorted(self._hidden))

    def ask_filter(self) -> None:
        """Open the field of the filter."""
        box = self._filter_box
        wide = min(22 * self.fontMetrics().averageCharWidth() + 40, self.width() - 8)
        box.setGeometry(QRect(self.width() - wide - 4, 4, wide, box.sizeHint().height()))
        box.show()
        box.raise_()
        box.setFocus()

    def filter(self, text: str) -> None:
        """See `FrameModel.set_filter`; rows that stay keep their selection."""
        keys = self.keys
        self._quiet = True
        self.frames.set_filter(text)
        self._quiet = False
        if keys != self.keys:
            self.select_keys(keys)

    def _end_filter(self) -> None:
        self._filter_box.clear()
        self._filter_box.hide()
        self.setFocus()

    # ---- copying and writing

    def _copied_columns(self) -> list[int]:
        """The columns that are copied: all but those hidden by the user."""
        header = self._header()
        return [k for k, c in enumerate(self.frames.columns) if not (c.shown and header.isSectionHidden(k))]

    def copy(self, form: Callable[[Texts], str], *, everything: bool = False) -> None:
        """Put rows with headings on the clipboard, in their order: the selected ones, or all if none are."""
        rows: Sequence[int] = [] if everything or isinstance(self, QTreeView) else self.selected_rows()
        if len(rows) < (1 if self._copies_one else 2):
            rows = range(self.frames.order.size)
        if not len(rows):
            return
        cells = [self.frames.cells[c] for c in self._copied_columns()]
        places = self.frames.order[list(rows)]

        def done(text: str) -> None:
            board = QGuiApplication.clipboard()
            if form is not html:
                board.setText(text)
                return
            copied = QMimeData()
            copied.setText(text)
            copied.setHtml(text)
            board.setMimeData(copied)
            _empty_at_end()

        self._in_background("copy", len(places) * len(cells), lambda: form(_texts(cells, places)), done)

    def export_to(self, path: Path) -> None:
        """Write the table as it is shown, numbers in full, as CSV or .xlsx; a failure is shown."""
        cells, rows = [self.frames.cells[c] for c in self._copied_columns()], self.frames.order.copy()

        def work() -> str:
            from desktop.data.frames import write_frame

            try:
                write_frame(path, _exported(cells, rows))
            except OSError as error:
                return f"{path} cannot be written ({reason(error)}), choose another place"
            return ""

        def done(problem: str) -> None:
            if problem:
                warn(self, problem)

        self._in_background("export", rows.size * len(cells), work, done)

    def _in_background(self, kind: str, size: int, work: Callable[[], T], done: Callable[[T], None]) -> None:
        """Call `done` with the last result of a `kind` of `work`; with many cells that runs in a thread."""
        number = self._requests[kind] = self._requests.get(kind, 0) + 1
        if size <= _MOST_AT_ONCE:
            done(work())
            return
        if self._lane is None:
            self._lane = Lane("table", latest=False, deliver=MainThread(self).deliver)
        self._lane.submit(
            kind,
            lambda job: work(),
            lambda answer: done(answer) if number == self._requests[kind] else None,
            self._failed,
        )

    def _failed(self, error: BaseException) -> None:
        if text := sentence(error):  # an unexpected error was logged, which shows it
            warn(self, f"{capital(text)}.")

    def ask_export(self) -> None:
        """Ask for a file, and export to it."""
        folder = Path(getattr(getattr(self.window(), "settings", None), "folder", ""))
        kinds = "CSV (*.csv);;Spreadsheet (*.xlsx)"
        path = asked_path(self, "Export table", folder / f"{self.objectName()}.csv", kinds, mode="save")
        if path is not None:
            self.export_to(path)

    def paste(self) -> None:
        """Emit the text of the clipboard, and the row at which it is to begin."""
        self.pasted.emit(QGuiApplication.clipboard().text(), str(self.key))

    @guarded
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.table_menu().popup(event.globalPos())

    def table_menu(self) -> QMenu:
        """The context menu."""
        menu = passing_menu(self)
        actions = [action for action in self.actions() if action not in self._keyed]
        menu.addActions(actions)
        if actions:
            menu.addSeparator()
        forms = {"&Copy": tab_separated, "Copy as CS&V": comma_separated, "Copy as &Markdown": markdown,
                 "Copy as &LaTeX": latex, "Copy as &HTML": html}  # fmt: skip
        for title, form in forms.items():
            menu.addAction(title, partial(self.copy, form))
        if self._paste:
            menu.addAction("&Paste", self.paste)
        menu.addSeparator()
        menu.addAction("&Export table…", self.ask_export)
        menu.addAction("&Filter rows…", self.ask_filter)
        columns = self.columns_menu()
        columns.setTitle("C&olumns")
        menu.addMenu(columns)
        return menu


class FrameView(_Framed, QTableView):
    """The table of the program.

    Signals: `chosen`, the index of the row that the user went to; `picked`, those of all selected rows;
    `activatedKey`, by a double click or Return; `pasted`, text and the index it begins at; `hiddenChanged`,
    titles of the hidden columns (None: as at first).
    """

    chosen = Signal(object)
    picked = Signal(object)
    activatedKey = Signal(object)
    pasted = Signal(str, str)
    hiddenChanged = Signal(object)

    def __init__(self, name: str, *, row_height: float = 1.5, **how: bool) -> None:
        """`row_height` in heights of the text; `how`: as of `_begin`."""
        super().__init__()
        self.row_height = row_height
        self._roomy: int | None = None  # the column that takes the room that is left
        self._texts_need = 0  # pixels
        self._unfitted = False
        self._begin(name, **how)
        set_up(self, showGrid=False, wordWrap=False)
        self.verticalHeader().hide()
        self.horizontalHeader().setHighlightSections(False)
        self.selectionModel().currentRowChanged.connect(self._went)
        self.selectionModel().selectionChanged.connect(lambda *_: self._tell())
        self.doubleClicked.connect(self._activate)
        self._measure()

    def _header(self) -> QHeaderView:
        return self.horizontalHeader()

    def _measure(self) -> None:
        """Set the height of rows and the least width of columns by the font."""
        metrics, rows = self.fontMetrics(), self.verticalHeader()
        rows.setMinimumSectionSize(0)  # or rows would never get lower than the style makes an empty heading
        rows.setDefaultSectionSize(int(self.row_height * metrics.height()))
        header = self.horizontalHeader()
        header.setMinimumSectionSize(2 * metrics.averageCharWidth())
        if self._roomy is not None:
            # Four digits after zeros, and a heading; what counts the rows stands before the roomy column.
            heading, number = (metrics.horizontalAdvance(text) for text in ("Efficiency", "−0.001234"))
            wide = max(heading + 13, number + 2 * self._margin())
            count = metrics.horizontalAdvance("00000") + 2 * self._margin()
            for k in range(header.count()):
                header.setSectionResizeMode(k, QHeaderView.ResizeMode.Fixed)
                if k != self._roomy:
                    header.resizeSection(k, count if k < self._roomy else wide)

    def give_room(self, column: int) -> None:
        """Let a column take the room that the others leave, at least the width of its texts; the others get
        the width of a number and its heading."""
        self._roomy = column
        self.fit()

    def _fill(self) -> None:
        """Give the roomy column its room."""
        if self._roomy is not None:
            header = self.horizontalHeader()
            room = self.viewport().width() - header.length() + header.sectionSize(self._roomy)
            header.resizeSection(self._roomy, max(room, self._texts_need))

    @guarded
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fill()

    def _hide(self) -> None:
        super()._hide()
        self._fill()

    def fit(self, *, fresh: bool = True) -> None:
        if fresh and self._roomy is not None:
            self._measure()  # of columns that are there only now
        super().fit(fresh=fresh)
        if self._roomy is not None and self.frames.cells:
            wide = self._width_of(self.frames.cells[self._roomy])
            self._texts_need = wide if fresh else max(wide, self._texts_need)
            self._fill()
            return
        header = self.horizontalHeader()
        mode = QHeaderView.ResizeMode
        stretched = [k for k, column in enumerate(self.frames.columns) if column.stretch]
        for k in stretched:
            header.setSectionResizeMode(k, mode.Stretch)
        cells = self.frames.cells
        # A number at the far end of a wide column would belong to no heading.
        header.setStretchLastSection(bool(cells) and not stretched and not cells[-1].right)

    sizeHint = in_ems(20, 12)
    minimumSizeHint = in_ems(12, 5)

    def _margin(self) -> int:
        return self.style().pixelMetric(QStyle.PixelMetric.PM_FocusFrameHMargin, None, self) + 1

    def _went(self, current: QModelIndex, _: QModelIndex) -> None:
        if not self._quiet and current.isValid():
            self.chosen.emit(self.frames.key(self.frames.row_of(current)))

    def _tell(self) -> None:
        if not self._quiet:
            self.picked.emit(self.keys)

    def _activate(self, index: Index) -> None:
        if not self.frames.flags(index) & Qt.ItemFlag.ItemIsEditable:
            self.activatedKey.emit(self.frames.key(self.frames.row_of(index)))

    @guarded
    def keyPressEvent(self, event: QKeyEvent) -> None:
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and self.currentIndex().isValid() and self.state() != QAbstractItemView.State.EditingState:
            self._activate(self.currentIndex())
        else:
            super().keyPressEvent(event)

    @guarded
    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.FontChange:
            self._measure()
            self._unfitted = True
            self._fit_in_view()
        super().changeEvent(event)

    @guarded
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fit_in_view()

    def _fit_in_view(self) -> None:
        """Fit the columns to another font, of a table behind others when it is shown: there are fifty."""
        if self._unfitted and self.isVisible():
            self._unfitted = False
            self.fit()

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint all rows in view at once; a delegate, called cell by cell, takes three times as long."""
        first, last = self.rowAt(event.rect().top()), self.rowAt(event.rect().bottom())
        if first < 0 or not self.frames.cells:
            return
        last = last if last >= 0 else self.frames.order.size - 1
        model, header = self.frames, self.horizontalHeader()
        metrics, palette, wide = self.fontMetrics(), self.palette(), self.viewport().width()
        bold = QFont(self.font())
        bold.setBold(True)
        selected_rows, height, margin = set(self.selected_rows()), self.rowHeight(first), self._margin()
        base = (height - metrics.height()) // 2 + metrics.ascent()
        plain, wide_metrics, last_look = self.font(), QFontMetrics(bold), None
        text_pen, chosen_pen = palette.text().color(), palette.highlightedText().color()
        places = ((c, header.sectionViewportPosition(c), header.sectionSize(c))
                  for c in range(len(model.cells)) if not header.isSectionHidden(c))  # fmt: skip
        columns = [(c, left, width) for c, left, width in places if left < wide and left + width > 0]
        with QPainter(self.viewport()) as painter:
            for row in range(first, last + 1):
                top, k = self.rowViewportPosition(row), int(model.order[row])
                selected = row in selected_rows
                if selected:
                    painter.fillRect(0, top, wide, height, palette.highlight())
                elif row % 2:
                    painter.fillRect(0, top, wide, height, palette.alternateBase())
                for c, left, width in columns:
                    cells = model.cells[c]
                    if cells.column.check:
                        option: Any = QStyleOptionViewItem()  # Qt's stubs lack the option's fields
                        self.initViewItemOption(option)
                        option.rect = QRect(left, top, width, height)
                        self.itemDelegate().paint(painter, option, model.index(row, c))
                        last_look = None
                        continue
                    colour = None if selected else model.colour(model.tone(k, c))
                    strong = model.bold(k, c)
                    look = (chosen_pen if selected else text_pen) if colour is None else colour, strong
                    if look != last_look:
                        painter.setPen(look[0])
                        painter.setFont(bold if strong else plain)
                        last_look = look
                    box = QRect(left + margin, top, width - 2 * margin, height)
                    self._draw(painter, wide_metrics if strong else metrics, cells, k, box, base)
            if self.hasFocus() and self.currentIndex().isValid():
                frame: Any = QStyleOptionFocusRect()  # as above
                frame.initFrom(self.viewport())
                frame.rect = self.visualRect(self.currentIndex())
                self.style().drawPrimitive(QStyle.PrimitiveElement.PE_FrameFocusRect, frame, painter, self)

    def _draw(
        self, painter: QPainter, metrics: QFontMetrics, cells: ColumnCells, k: int, box: QRect, base: int
    ) -> None:
        """Draw a cell's text; a number with too little room is rounded, as a cut one would be a wrong one."""
        room, left = box.width(), box.left()
        if cells.swatches is not None:
            square = QRect(left, box.top() + (box.height() - _SWATCH) // 2, _SWATCH, _SWATCH)
            painter.fillRect(square, QColor(cells.swatches[k]))
            left, room = left + _SWATCH + 5, room - _SWATCH - 5
        text = cells.text(k)
        advance, fewer = metrics.horizontalAdvance(text), 0
        while advance > room and fewer < 3 and cells.numeric:
            fewer += 1
            text = cells.text(k, fewer)
            advance = metrics.horizontalAdvance(text)
        if advance > room:
            text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
            advance = metrics.horizontalAdvance(text)
        painter.drawText(left + (room - advance if cells.right else 0), box.top() + base, text)


class FrameTree(_Framed, QTreeView):
    """Rows of a frame below their parents. Signals as of `FrameView`."""

    hiddenChanged = Signal(object)
    pasted = Signal(str, str)

    def __init__(self, name: str) -> None:
        super().__init__()
        self._begin(name)
        self.setUniformRowHeights(True)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)

    def _header(self) -> QHeaderView:
        return self.header()

    def fit(self, *, fresh: bool = True) -> None:
        super().fit(fresh=fresh)
        if fresh and self.frames.cells:  # names stand further to the right with every level
            wide = max(self.header().sectionSize(0), 18 * self.fontMetrics().height())
            self.header().resizeSection(0, wide)

    def filter(self, text: str) -> None:
        super().filter(text)
        if text.strip():
            self.expandAll()

    def select_rows(self, rows: Sequence[int]) -> None:
        """Select rows of the frame where they are shown, and bring the first of them into sight."""
        indexes = [self.frames.index_at(k) for k in np.intersect1d(rows, self.frames.order).tolist()]
        selection, last = QItemSelection(), self.frames.columnCount() - 1
        for index in indexes:
            selection.select(index, index.siblingAtColumn(last))
        self.selectionModel().select(selection, _SELECT.ClearAndSelect)
        if indexes:
            self.selectionModel().setCurrentIndex(indexes[0], _SELECT.NoUpdate)
            self.scrollTo(indexes[0])


def _stretches(rows: Sequence[int]) -> list[tuple[int, int]]:
    """Ascending rows as runs (first, last)."""
    if not len(rows):
        return []
    array = np.asarray(rows)
    cuts = np.flatnonzero(np.diff(array) != 1)
    return list(zip(array[[0, *(cuts + 1)]].tolist(), array[[*cuts, -1]].tolist(), strict=True))


# ---- forms of copying: headings and rows of cells


def tab_separated(texts: Iterable[Sequence[str]]) -> str:
    """Lines as spreadsheets take them from the clipboard."""
    return "".join("\t".join(harmless(cell) for cell in line) + "\n" for line in texts)


def comma_separated(texts: Iterable[Sequence[str]]) -> str:
    return "".join(as_csv(texts))


def markdown(texts: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; the first row is the heading."""
    head, *body = ([" ".join(cell.split()).replace("|", "\\|") for cell in line] for line in texts)
    return "".join("| " + " | ".join(line) + " |\n" for line in (head, ["---"] * len(head), *body))


#: Characters that are special in LaTeX.
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


def html(texts: Iterable[Sequence[str]]) -> str:
    """A table that word processors take."""
    head, *body = ([escape(" ".join(cell.split())) for cell in line] for line in texts)

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>\n"

    rows = "".join(line(cells, "td") for cells in body)
    return f"<table>\n<thead>{line(head, 'th')}</thead>\n<tbody>\n{rows}</tbody>\n</table>\n"

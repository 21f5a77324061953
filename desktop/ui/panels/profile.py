"""Where time goes: the tree of calls, or regions one by one, of the run, the selection or a phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, Qt
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QLineEdit, QTreeView, QVBoxLayout, QWidget

from desktop.ui import row_tables as tables
from desktop.ui.panels import PanelSpec, why_empty
from desktop.ui.row_tables import RIGHT, SORT, Column, Index, prefixed
from desktop.ui.units import quantity
from desktop.workbench.explaining import Explained
from desktop.workbench.workbench import Snapshot, Workbench


def _activity(row: Any) -> str:
    return "" if row.activity is None else row.activity.name.capitalize().replace("Io", "I/O")


TREE: tuple[Column, ...] = (
    Column("Region", lambda row: row.name, "Path of calls", number=False,
           text=lambda row: row.name + (" (paths folded)" if row.folded else "")),
    Column("Inclusive", lambda row: row.inclusive_s, "Processor-seconds with what it calls", unit="proc·s"),
    Column("Exclusive", lambda row: row.exclusive_s, "Processor-seconds of its own", unit="proc·s"),
    Column("Calls", lambda row: row.calls, "Enters in the range"),
    Column("Locations", lambda row: row.locations, "That passed here in the range"),
    Column("Least", lambda row: row.low, "Least inclusive time of these locations", unit="s"),
    Column("Mean", lambda row: row.mean, "Mean inclusive time of these locations", unit="s"),
    Column("Most", lambda row: row.high, "Largest inclusive time of these locations", unit="s"),
    Column("Counts as", _activity, "Class of the region", number=False),
)  # fmt: skip
FLAT: tuple[Column, ...] = (
    Column("Region", lambda row: row.name, "Its name in the trace", number=False),
    Column("Share", lambda row: 100 * row.share, "Exclusive time of all the processors' time (%)",
           lambda row: f"{100 * row.share:.2f} %"),
    Column("Exclusive", lambda row: row.exclusive_s, "Processor-seconds of its own", unit="proc·s"),
    Column("Inclusive", lambda row: row.inclusive_s, "Processor-seconds with what it calls", unit="proc·s"),
    Column("Calls", lambda row: row.calls, "Enters in the range"),
    Column("Role", lambda row: row.role, "What the trace says of it", number=False),
    Column("Counts as", _activity, "Class of the region", number=False),
)  # fmt: skip


class RowsTree(QAbstractItemModel):
    """Rows that name their parent by `row`; flat where they name none."""

    def __init__(self) -> None:
        super().__init__()
        self.columns: tuple[Column, ...] = TREE
        self.rows: Sequence[Any] = ()
        self._children: dict[int, list[int]] = {}
        self._parent: list[int] = []
        self._place: list[int] = []

    def show(self, rows: Sequence[Any], columns: tuple[Column, ...], *, tree: bool) -> None:
        """Take other rows."""
        self.beginResetModel()
        self.columns, self.rows = prefixed(columns, rows), rows
        at = {row.row: i for i, row in enumerate(rows)} if tree else {}
        self._children, self._parent, self._place = {}, [], []
        for i, row in enumerate(rows):
            parent = at.get(row.parent, -1) if tree and row.parent != row.row else -1
            siblings = self._children.setdefault(parent, [])
            self._parent.append(parent)
            self._place.append(len(siblings))
            siblings.append(i)
        self.endResetModel()

    def _at(self, index: Index) -> int:
        return int(index.internalId()) if index.isValid() else -1

    def index(self, row: int, column: int, parent: Index = QModelIndex()) -> QModelIndex:  # noqa: B008 - Qt's own
        siblings = self._children.get(self._at(parent), [])
        if not (0 <= row < len(siblings) and 0 <= column < len(self.columns)):
            return QModelIndex()
        return self.createIndex(row, column, siblings[row])

    def parent(self, index: Index = QModelIndex()) -> Any:  # noqa: B008 - Qt's own signature
        up = self._parent[self._at(index)] if index.isValid() else -1
        return QModelIndex() if up < 0 else self.createIndex(self._place[up], 0, up)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return len(self._children.get(self._at(parent), [])) if parent.column() <= 0 else 0

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return len(self.columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        column, row = self.columns[index.column()], self.rows[self._at(index)]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return column.shown(row)
        if role == SORT:
            return column.value(row)
        if role == Qt.ItemDataRole.TextAlignmentRole and column.number:
            return int(RIGHT)
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation == Qt.Orientation.Horizontal:
            if role == Qt.ItemDataRole.DisplayRole:
                return self.tr(self.columns[section].title)
            if role == Qt.ItemDataRole.ToolTipRole:
                return self.tr(self.columns[section].tip)
        return None


class ProfilePanel(QWidget):
    """Search, sort, copy; the range is that of the statistics."""

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench
        self._explained = Explained()
        self._names: dict[str, str] = {}
        self.model = RowsTree()
        self._sorted = tables.sorted_by(self.model)
        self.view = QTreeView()
        self.view.setModel(self._sorted)
        self.view.setUniformRowHeights(True)
        self.view.setSortingEnabled(True)
        self.view.sortByColumn(1, Qt.SortOrder.DescendingOrder)
        self.view.doubleClicked.connect(self._find)
        tables.prepare(
            self.view, self.tr("Profile"), lambda: tables.as_text(self.model.columns, self.model.rows)
        )
        self.kind = QComboBox()
        self.kind.setAccessibleName(self.tr("Kind of profile"))
        self.kind.addItem(self.tr("Tree of calls"), "tree")
        self.kind.addItem(self.tr("Regions"), "flat")
        self.kind.activated.connect(lambda _: self._fill())
        self.search = QLineEdit()
        self.search.setPlaceholderText(self.tr("Region name"))
        self.search.setClearButtonEnabled(True)
        self.search.setAccessibleName(self.tr("Search regions"))
        self.search.textChanged.connect(self._filter)
        self.about = QLabel()
        row = QHBoxLayout()
        row.addWidget(self.kind)
        row.addWidget(self.search, 1)
        row.addWidget(self.about)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 6, 6, 6)
        layout.addLayout(row)
        layout.addWidget(self.view, 1)

    def room(self) -> int:
        """The height in which ten rows are seen."""
        return 17 * self.fontMetrics().height()

    def set_theme(self, theme: Any) -> None:
        """Text follows the palette."""

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        same = new.explained is old.explained and why_empty(new) == why_empty(old)
        if same and new.project.names is self._names:
            return
        before, self._explained = self._explained, new.explained
        renamed = new.project.names != self._names
        self._names = new.project.names
        if renamed or before.calls is not new.explained.calls or before.flat is not new.explained.flat:
            self._fill()
        self._tell()

    def _fill(self) -> None:
        tree = self.kind.currentData() == "tree"
        rows: Sequence[Any] = self._explained.calls if tree else self._explained.flat
        if self._names:
            rows = [replace(row, name=self._names.get(row.name, row.name)) for row in rows]
        self.model.show(rows, TREE if tree else FLAT, tree=tree)
        self.view.setRootIsDecorated(tree)
        self.view.header().resizeSection(0, self.fontMetrics().height() * 18)
        self._filter(self.search.text())
        self.view.expandToDepth(2)

    def _filter(self, text: str) -> None:
        self._sorted.setFilterFixedString(text.strip())
        if text.strip():
            self.view.expandAll()

    def _tell(self) -> None:
        found = self._explained
        if found.problem:
            self.about.setText(found.problem)
        elif found.scopes:
            scope = found.scopes[found.focus]
            self.about.setText(
                self.tr("{0}, {1}").format(scope.label, quantity(scope.end_s - scope.start_s, "s"))
            )
        else:
            self.about.setText(why_empty(self._workbench.snapshot))

    def _find(self, index: QModelIndex) -> None:
        """A double click fills the search with the region."""
        name = self._sorted.index(index.row(), 0, index.parent()).data()
        self.search.setText(str(name))


PANEL = PanelSpec(
    "profile",
    "Profile",
    "bottom",
    ProfilePanel,
    "statistics.md#regions-and-calls",
    frozenset({"ranges", "calls"}),
)

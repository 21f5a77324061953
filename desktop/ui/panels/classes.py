"""What counts as computing: the classes of all regions, to be changed by the user."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import (
    QAbstractItemModel,
    QAbstractTableModel,
    QModelIndex,
    QPersistentModelIndex,
    QSignalBlocker,
    QSortFilterProxyModel,
    Qt,
)
from PySide6.QtGui import QFont
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QLineEdit,
    QPushButton,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from desktop.data.events import Activity, Region
from desktop.ui.panels import PanelSpec, why_empty
from desktop.workbench.workbench import Snapshot, Workbench

NAMES = {
    Activity.COMPUTING: "Computing",
    Activity.OVERHEAD: "Overhead",
    Activity.IDLE: "Idle",
    Activity.IO: "I/O",
    Activity.UNMEASURED: "Not measured",
}
_COLUMNS = ("Region", "Role", "Counts as")
_CLASS = 2
Index = QModelIndex | QPersistentModelIndex


class RegionTable(QAbstractTableModel):
    """Regions, which can be called otherwise, and their classes; changed ones in bold."""

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench
        self._regions: tuple[Region, ...] = ()
        self._overrides: dict[str, Activity] = {}
        self._names: dict[str, str] = {}

    def show(
        self, regions: tuple[Region, ...], overrides: dict[str, Activity], names: dict[str, str]
    ) -> None:
        if regions is not self._regions:
            self.beginResetModel()
            self._regions, self._overrides, self._names = regions, overrides, names
            self.endResetModel()
        elif (overrides, names) != (self._overrides, self._names):
            self._overrides, self._names = overrides, names
            if regions:
                self.dataChanged.emit(self.index(0, 0), self.index(len(regions) - 1, _CLASS))

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(self._regions)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(_COLUMNS)

    def flags(self, index: Index) -> Qt.ItemFlag:
        editable = Qt.ItemFlag.ItemIsEditable if index.column() in (0, _CLASS) else Qt.ItemFlag.NoItemFlags
        return super().flags(index) | editable

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return self.tr(_COLUMNS[section])
        return None

    def default(self, row: int) -> Activity:
        """By the importer, or by the table of the classification."""
        from desktop.data.classify import region_activity

        return region_activity(self._regions[row])

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        region = self._regions[index.row()]
        override = self._overrides.get(region.name, self._overrides.get(f"role:{region.role}"))
        if role == Qt.ItemDataRole.DisplayRole:
            if index.column() == _CLASS:
                return self.tr(NAMES[self.default(index.row()) if override is None else override])
            return (self._names.get(region.name, region.name), region.role)[index.column()]
        if role == Qt.ItemDataRole.EditRole and index.column() == 0:
            return self._names.get(region.name, region.name)
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{region.name} ({region.paradigm})" if region.paradigm else region.name
        if role == Qt.ItemDataRole.EditRole:
            return override
        if role == Qt.ItemDataRole.FontRole and override is not None:
            font = QFont()
            font.setBold(True)
            return font
        return None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        if role != Qt.ItemDataRole.EditRole:
            return False
        region = self._regions[index.row()].name
        if index.column() == 0:
            self._workbench.name_region(region, str(value).strip())
        else:
            self._workbench.set_activity(region, value)
        return True


class _ClassDelegate(QStyledItemDelegate):
    """Edits a class in a combo box that opens at once."""

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: Index) -> QWidget:
        box = QComboBox(parent)
        box.addItem(self.tr("As by default"), None)
        for activity, name in NAMES.items():
            box.addItem(self.tr(name), activity)
        box.activated.connect(lambda _: self._close(box))
        return box

    def _close(self, box: QComboBox) -> None:
        self.commitData.emit(box)
        self.closeEditor.emit(box)

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        assert isinstance(editor, QComboBox)
        value = index.data(Qt.ItemDataRole.EditRole)
        items = [editor.itemData(i) for i in range(editor.count())]
        editor.setCurrentIndex(items.index(value) if value in items else 0)
        editor.showPopup()

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: Index) -> None:
        assert isinstance(editor, QComboBox)
        model.setData(index, editor.currentData(), Qt.ItemDataRole.EditRole)


class ClassesPanel(QWidget):
    """Which classes count as computing, and the class of every region."""

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench
        intro = QLabel(self.tr("A processor counts as computing while it is:"))
        intro.setWordWrap(True)
        self.boxes: dict[Activity, QCheckBox] = {}
        boxes = QVBoxLayout()
        boxes.setSpacing(1)
        for activity, name in NAMES.items():
            box = QCheckBox(self.tr({Activity.IO: "doing I/O"}.get(activity, name.lower())))
            box.clicked.connect(self._changed)
            self.boxes[activity] = box
            boxes.addWidget(box)
        self.table = RegionTable(workbench)
        found = QSortFilterProxyModel(self)
        found.setSourceModel(self.table)
        found.setFilterKeyColumn(-1)
        found.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.search = QLineEdit()
        self.search.setPlaceholderText(self.tr("Find a region or role"))
        self.search.setAccessibleName(self.tr("Find a region or role"))
        self.search.setClearButtonEnabled(True)
        self.search.textChanged.connect(found.setFilterFixedString)
        self._view = view = QTableView()
        view.setModel(found)
        view.setAccessibleName(self.tr("Regions and their classes"))
        view.setItemDelegateForColumn(_CLASS, _ClassDelegate(view))
        view.setSortingEnabled(True)
        view.sortByColumn(0, Qt.SortOrder.AscendingOrder)
        view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        view.setEditTriggers(
            QAbstractItemView.EditTrigger.DoubleClicked
            | QAbstractItemView.EditTrigger.SelectedClicked
            | QAbstractItemView.EditTrigger.EditKeyPressed
        )
        view.setShowGrid(False)
        view.setAlternatingRowColors(True)
        view.setWordWrap(False)
        view.verticalHeader().hide()
        view.verticalHeader().setDefaultSectionSize(int(1.5 * view.fontMetrics().height()))
        header = view.horizontalHeader()
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for column, letters in ((1, 14), (_CLASS, 16)):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Interactive)
            header.resizeSection(column, letters * view.fontMetrics().averageCharWidth())
        self.note = QLabel()
        self.note.setWordWrap(True)
        self._reset = QPushButton(self.tr("Classify as at first"))
        self._reset.clicked.connect(workbench.reset_rules)
        row = QHBoxLayout()
        row.addWidget(self._reset)
        row.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(10, 8, 10, 8)
        layout.addWidget(intro)
        layout.addLayout(boxes)
        layout.addWidget(self.search)
        layout.addWidget(self.note)
        layout.addWidget(view, 1)
        layout.addLayout(row)
        self._show_rules(Snapshot())

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        project, before = new.project, old.project
        same = new.document is old.document and why_empty(new) == why_empty(old)
        if not same or (project.rules, project.names) != (before.rules, before.names):
            self._show_rules(new)

    def set_theme(self, theme: Any) -> None:
        """The palette is enough."""

    def _show_rules(self, new: Snapshot) -> None:
        rules = new.project.rules
        regions = new.document.regions if new.document is not None else ()
        nameless = new.document is not None and new.document.locations
        self.note.setText(self.tr("The trace has no regions.") if nameless else why_empty(new))
        self.note.setVisible(not regions)
        self.table.show(regions, dict(rules.overrides) if rules is not None else {}, new.project.names)
        computing = rules.computing if rules is not None else frozenset({Activity.COMPUTING})
        for activity, box in self.boxes.items():
            with QSignalBlocker(box):
                box.setChecked(activity in computing)
            box.setEnabled(new.document is not None)
        self._reset.setEnabled(rules is not None)

    def _changed(self) -> None:
        chosen = frozenset(activity for activity, box in self.boxes.items() if box.isChecked())
        self._workbench.set_computing(chosen)
        self._show_rules(self._workbench.snapshot)


PANEL = PanelSpec("classes", "Computing", "right", ClassesPanel, "guide.md#computing")

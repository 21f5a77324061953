"""The phases as a table: each one's extent, shape, utilization and error."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QEvent, QItemSelectionModel, QModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QHeaderView,
    QMenu,
    QStyle,
    QStyleOptionFocusRect,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from desktop.ui.panels import PanelSpec
from desktop.ui.tables import (
    COPY,
    RIGHT,
    Index,
    comma_separated,
    dress_plain,
    keyed,
    latex,
    markdown,
    tab_separated,
)
from desktop.ui.units import Scale, digits, time_scale
from desktop.workbench.workbench import Snapshot, Workbench


@dataclass(frozen=True)
class _Units:
    """Prefixes that hold for whole columns: of the run, and of the typical phase."""

    run: Scale
    phase: Scale
    work: Scale


@dataclass(frozen=True)
class Column:
    """`value(row, number, fit)` in base units; divided by `factor(units)` it is in `unit(units)`."""

    title: str
    tip: str
    unit: Callable[[_Units], str]
    value: Callable[[Any, int, Any], float]
    factor: Callable[[_Units], float] = lambda u: 1.0
    significant: int = 4
    shown: bool = True  # otherwise it is only copied


def _time(title: str, tip: str, value: Callable[[Any, int, Any], float], *, shown: bool = True) -> Column:
    return Column(title, tip, lambda u: u.run.symbol, value, lambda u: u.run.factor, 5, shown)


def _power(row: Any, k: int) -> float:
    powers = row.coefficients
    return float(powers[k]) if k < len(powers) and k <= row.degree else 0.0


def _range(row: Any, i: int, fit: Any) -> float:
    """Length of the range of the phase's end; what rounding alone makes of a fixed break is none."""
    length = float(fit.break_high[i + 1] - fit.break_low[i + 1])
    return length if length > 1e-9 * (row.end_s - row.start_s) else 0.0


COLUMNS: tuple[Column, ...] = (
    Column("#", "Number of the phase", lambda u: "", lambda row, i, fit: i + 1),
    _time("Start", "Time of its first break", lambda row, i, fit: row.start_s),
    _time("End", "Time of its last break", lambda row, i, fit: row.end_s),
    Column("Duration", "Its length", lambda u: u.phase.symbol,
           lambda row, i, fit: row.end_s - row.start_s, lambda u: u.phase.factor),
    Column("Mean", "Mean number of computing processors", lambda u: "proc", lambda row, i, fit: row.mean),
    Column("Efficiency", "Mean computing processors of all processors", lambda u: "%",
           lambda row, i, fit: 100 * row.efficiency, significant=3),
    Column("Work", "Computing processors times time", lambda u: f"proc·{u.work.symbol}",
           lambda row, i, fit: row.work_s, lambda u: u.work.factor),
    Column("Level", "Fitted processors at its start", lambda u: "proc", lambda row, i, fit: _power(row, 0)),
    Column("Slope", "Change of the fit at its start", lambda u: f"proc/{u.phase.symbol}",
           lambda row, i, fit: _power(row, 1), lambda u: 1 / u.phase.factor),
    Column("Curvature", "Quadratic coefficient of the fit", lambda u: f"proc/{u.phase.symbol}²",
           lambda row, i, fit: _power(row, 2), lambda u: 1 / u.phase.factor**2),
    Column("Error", "Local error: the L2 norm of curve minus fit", lambda u: "proc·√s",
           lambda row, i, fit: row.error),
    Column("R.m.s.", "Root mean square deviation of the curve from the fit", lambda u: "proc",
           lambda row, i, fit: row.rms, significant=3),
    Column("Range", "Its end may lie anywhere in a range of this length without a larger ε",
           lambda u: u.phase.symbol, lambda row, i, fit: _range(row, i, fit),
           lambda u: u.phase.factor, significant=3),
    _time("Earliest end", "Its end could come as early as this without a larger ε",
          lambda row, i, fit: float(fit.break_low[i + 1]), shown=False),
    _time("Latest end", "Its end could come as late as this without a larger ε",
          lambda row, i, fit: float(fit.break_high[i + 1]), shown=False),
)  # fmt: skip


class PhaseTable(QAbstractTableModel):
    """Rows are phases, columns as declared in `COLUMNS`."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: Sequence[Any] = ()
        self._fit: Any = None
        self._by, self._descending = 0, False
        self._order: list[int] = []  # the phase of each row of the table
        self._units = _Units(time_scale(1), time_scale(1), time_scale(1))

    def show(self, rows: Sequence[Any], fit: Any) -> None:
        """Take other rows; rows come and go at the end, so that a table keeps its place."""
        before, after = len(self._rows), len(rows)
        if after > before:
            self.beginInsertRows(QModelIndex(), before, after - 1)
        elif after < before:
            self.beginRemoveRows(QModelIndex(), after, before - 1)
        self._rows, self._fit, self._order = rows, fit, list(range(after))
        units = self._units
        if rows:
            start, end = rows[0].start_s, rows[-1].end_s
            longest = max(row.end_s - row.start_s for row in rows)
            work = max(abs(row.work_s) for row in rows)
            self._units = _Units(
                time_scale(max(abs(start), abs(end))), time_scale(longest), time_scale(work or 1.0)
            )
        if after > before:
            self.endInsertRows()
        elif after < before:
            self.endRemoveRows()
        self._arrange()
        if rows:
            self.dataChanged.emit(self.index(0, 0), self.index(after - 1, len(COLUMNS) - 1))
        if self._units != units:
            self.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, len(COLUMNS) - 1)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else len(COLUMNS)

    def phase(self, row: int) -> int:
        """The phase (from 0) in a row of the table."""
        return self._order[row]

    def row_of(self, phase: int) -> int:
        """The row of the table in which a phase is; -1 if in none."""
        return self._order.index(phase) if phase in self._order else -1

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """By the values of a column; equal ones stay in the order of time. -1: in the order of time."""
        by, descending = max(column, 0), column >= 0 and order == Qt.SortOrder.DescendingOrder
        if (by, descending) == (self._by, self._descending):
            return
        self._by, self._descending = by, descending
        self.layoutAboutToBeChanged.emit()
        old = self.persistentIndexList()
        phases = [self._order[index.row()] for index in old]
        self._arrange()
        places = {phase: row for row, phase in enumerate(self._order)}
        new = [self.index(places[k], index.column()) for k, index in zip(phases, old, strict=True)]
        self.changePersistentIndexList(old, new)
        self.layoutChanged.emit()

    def _arrange(self) -> None:
        def key(phase: int) -> float:
            value = COLUMNS[self._by].value(self._rows[phase], phase, self._fit)
            return -math.inf if math.isnan(value) else value

        self._order = sorted(range(len(self._rows)), key=key, reverse=self._descending)

    def value(self, phase: int, column: int) -> float:
        """In the unit that the header names."""
        spec = COLUMNS[column]
        return spec.value(self._rows[phase], phase, self._fit) / spec.factor(self._units)

    def header(self, column: int) -> str:
        spec = COLUMNS[column]
        unit = spec.unit(self._units)
        return f"{spec.title} [{unit}]" if unit else spec.title

    def text(self, row: int, column: int, fewer: int = 0) -> str:
        """As the cell shows it, by so many `fewer` digits where it has little room."""
        phase = self._order[row]
        if column == 0:
            return str(phase + 1)
        return digits(self.value(phase, column), max(1, COLUMNS[column].significant - fewer))

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if role == Qt.ItemDataRole.DisplayRole:
            return self.text(index.row(), index.column())
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return RIGHT
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            unit = COLUMNS[section].unit(self._units)
            return f"{self.tr(COLUMNS[section].title)}\n{unit}"
        if role == Qt.ItemDataRole.ToolTipRole:
            return self.tr(COLUMNS[section].tip)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return RIGHT
        return None

    def texts(self, rows: Sequence[int], columns: Sequence[int]) -> list[list[str]]:
        """Headers and full values, for copying."""
        phases = [self._order[row] for row in rows]
        body = [[str(k + 1) if c == 0 else repr(float(self.value(k, c))) for c in columns] for k in phases]
        return [[self.header(c) for c in columns], *body]


class TableView(QTableView):
    """Copies what is selected, or everything if nothing is. A click on a heading sorts, a third one puts the
    phases in the order of time again; a right click on one chooses columns."""

    hiddenChanged = Signal(object)  # titles of the columns that are left out; None: as at first

    def __init__(self, model: PhaseTable) -> None:
        super().__init__()
        self._table = model
        self.setModel(model)
        dress_plain(self, self.tr("Phases"))
        self.setObjectName("phase_table")
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self._measure()
        self.set_hidden(None)
        header = self.horizontalHeader()
        header.setSectionsClickable(True)
        header.setSortIndicatorShown(True)
        header.setSortIndicatorClearable(True)
        header.setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
        header.sortIndicatorChanged.connect(model.sort)
        header.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        header.customContextMenuRequested.connect(self._ask_columns)
        keyed(self, self.tr("Copy"), COPY, lambda: self.copy(tab_separated))

    def set_hidden(self, titles: Sequence[str] | None) -> None:
        """Leave columns out by their titles; None: those that are left out at first."""
        for number, column in enumerate(COLUMNS):
            hidden = not column.shown if titles is None else column.title in titles
            self.setColumnHidden(number, hidden and number > 0)

    def columns_menu(self) -> QMenu:
        """Which columns there are, to be shown or left out; that of the numbers stays."""
        menu = QMenu(self)
        for number, column in list(enumerate(COLUMNS))[1:]:
            action = menu.addAction(self.tr(column.title))
            action.setToolTip(self.tr(column.tip))
            action.setCheckable(True)
            action.setChecked(not self.isColumnHidden(number))
            action.toggled.connect(lambda shown, number=number: self._show_column(number, shown))
        menu.addSeparator()
        menu.addAction(self.tr("Columns as at &first"), lambda: self._show_column(-1, True))
        menu.addAction(self.tr("Order of &time"), lambda: self.sortByColumn(-1, Qt.SortOrder.AscendingOrder))
        return menu

    def _ask_columns(self, place: QPoint) -> None:
        menu = self.columns_menu()
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self.horizontalHeader().mapToGlobal(place))

    def _show_column(self, number: int, shown: bool) -> None:
        if number < 0:
            self.set_hidden(None)
        else:
            self.setColumnHidden(number, not shown)
        self.hiddenChanged.emit(
            [column.title for k, column in enumerate(COLUMNS) if self.isColumnHidden(k)]
            if number >= 0
            else None
        )

    def _measure(self) -> None:
        """Rows and columns as the text needs them, four digits after zeros included."""
        metrics = self.fontMetrics()
        rows = self.verticalHeader()
        rows.setMinimumSectionSize(0)  # or rows would never get lower than the style makes an empty heading
        rows.setDefaultSectionSize(int(1.4 * metrics.height()))
        heading, number = (metrics.horizontalAdvance(text) for text in ("Efficiency", "−0.001234"))
        self.horizontalHeader().setMinimumSectionSize(max(heading + 13, number + 2 * self._margin()))

    def _margin(self) -> int:
        return self.style().pixelMetric(QStyle.PixelMetric.PM_FocusFrameHMargin, None, self) + 1

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.FontChange:
            self._measure()
        super().changeEvent(event)

    def copy(self, form: Callable[[list[list[str]]], str], *, everything: bool = False) -> None:
        """Put rows with headers on the clipboard, as they are sorted; without columns that were left out by
        hand, but with those that are only copied."""
        columns = [k for k, column in enumerate(COLUMNS) if not (column.shown and self.isColumnHidden(k))]
        rows = sorted({index.row() for index in self.selectedIndexes()})
        if everything or not rows:
            rows = list(range(self._table.rowCount()))
        if rows:
            QGuiApplication.clipboard().setText(form(self._table.texts(rows, columns)))

    def paintEvent(self, event: QPaintEvent) -> None:
        """All rows in view at once; a delegate, asked cell by cell, takes three times as long."""
        first, last = self.rowAt(0), self.rowAt(self.viewport().height() - 1)
        if first < 0:
            return
        metrics, palette, header = self.fontMetrics(), self.palette(), self.horizontalHeader()
        chosen, height, wide = self.selectionModel(), self.rowHeight(first), self.viewport().width()
        base = (height - metrics.height()) // 2 + metrics.ascent()
        margin = self._margin()
        cells = [
            (c, header.sectionViewportPosition(c) + header.sectionSize(c) - margin, header.sectionSize(c))
            for c in range(len(COLUMNS))
            if not header.isSectionHidden(c)
        ]
        with QPainter(self.viewport()) as painter:
            for row in range(first, (last if last >= 0 else self._table.rowCount() - 1) + 1):
                top = self.rowViewportPosition(row)
                selected = chosen.isRowSelected(row)
                if selected:
                    painter.fillRect(0, top, wide, height, palette.highlight())
                elif row % 2:
                    painter.fillRect(0, top, wide, height, palette.alternateBase())
                painter.setPen((palette.highlightedText() if selected else palette.text()).color())
                for column, right, width in cells:
                    text = self._table.text(row, column)
                    advance = metrics.horizontalAdvance(text)
                    fewer = 0
                    while advance > width - 2 * margin and fewer < 3:  # a number that is cut is another one
                        fewer += 1
                        text = self._table.text(row, column, fewer)
                        advance = metrics.horizontalAdvance(text)
                    if advance > width - 2 * margin:
                        text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, width - 2 * margin)
                        advance = metrics.horizontalAdvance(text)
                    painter.drawText(right - advance, top + base, text)
            if self.hasFocus() and self.currentIndex().isValid():
                frame: Any = QStyleOptionFocusRect()  # Qt's stubs lack the option's fields
                frame.initFrom(self.viewport())
                frame.rect = self.visualRect(self.currentIndex())
                self.style().drawPrimitive(QStyle.PrimitiveElement.PE_FrameFocusRect, frame, painter, self)

    def contextMenuEvent(self, event: Any) -> None:
        menu = QMenu(self)
        menu.addAction(self.tr("Copy"), lambda: self.copy(tab_separated))
        menu.addAction(self.tr("Copy as CSV"), lambda: self.copy(comma_separated))
        menu.addAction(self.tr("Copy as Markdown"), lambda: self.copy(markdown))
        menu.addAction(self.tr("Copy as LaTeX"), lambda: self.copy(latex))
        menu.addSeparator()
        columns = self.columns_menu()
        columns.setTitle(self.tr("Columns"))
        menu.addMenu(columns)
        menu.exec(event.globalPos())


class TablePanel(QWidget):
    """Rows and plot marks select each other."""

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench
        self.model = PhaseTable()
        self.view = TableView(self.model)
        self._showing = False
        self.view.selectionModel().currentRowChanged.connect(self._chosen)
        self.view.clicked.connect(lambda index: workbench.select_phase(self.model.phase(index.row())))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.view)

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        self._showing = True
        if new.rows is not old.rows:
            self.model.show(new.rows, new.fit)
        self._select(new.project.view.phase)
        self._showing = False

    def set_theme(self, theme: Any) -> None:
        """Nothing of its own: the palette is enough."""

    def copy(self) -> None:
        self.view.copy(tab_separated, everything=True)

    def _select(self, phase: int | None) -> None:
        selection = self.view.selectionModel()
        if phase is None:
            selection.clear()
        elif (row := self.model.row_of(phase)) >= 0 and (
            selection.currentIndex().row() != row or not selection.hasSelection()
        ):
            index = self.model.index(row, 0)
            flags = QItemSelectionModel.SelectionFlag
            selection.setCurrentIndex(index, flags.ClearAndSelect | flags.Rows)
            self.view.scrollTo(index)

    def _chosen(self, current: QModelIndex, _: QModelIndex) -> None:
        if not self._showing and current.isValid():
            self._workbench.select_phase(self.model.phase(current.row()))


PANEL = PanelSpec("table", "Phase table", "bottom", TablePanel, "guide.md#phase-table")

"""Views that were kept under numbers, and annotations: go to them, change them, delete them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor, QIcon, QPixmap
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QDialogButtonBox,
    QFormLayout,
    QHeaderView,
    QInputDialog,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QTableView,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from desktop.ui import row_tables as tables
from desktop.ui.dialogs import Dialog
from desktop.ui.flow import Flow
from desktop.ui.panels import PanelSpec
from desktop.ui.plots.notes import COLOUR_NAMES, COLOURS
from desktop.ui.row_tables import Column, RowsModel
from desktop.ui.units import Scale, scaled, time_scale
from desktop.workbench.model import VIEWS, Annotation, NamedView
from desktop.workbench.workbench import Snapshot, Workbench


def _span(span: tuple[float, float | None], of: Scale) -> str:
    start, end_s = scaled(span[0], of), span[1]
    return start if end_s is None else f"{start} – {scaled(end_s, of)}"


def _exact(time_s: float) -> str:
    """All digits but the last, which is the noise of arithmetic."""
    return f"{time_s:.15g}"


def _view_columns(of: Scale) -> tuple[Column, ...]:
    """`of`: the unit of all times."""
    return (
        Column("Key", lambda kept: kept.number),
        Column("View", lambda kept: kept.name or f"View {kept.number}", number=False),
        Column(
            "Time",
            lambda kept: kept.view.span[0] if kept.view.span else 0.0,
            text=lambda kept: _span(kept.view.span, of) if kept.view.span else "whole run",
        ),
    )


def _note_columns(of: Scale) -> tuple[Column, ...]:
    return (
        Column("Annotation", lambda row: " ".join(row.told.split()), number=False),
        Column(
            "Time",
            lambda row: row.note.start_s,
            text=lambda row: _span((row.note.start_s, row.note.end_s), of),
        ),
        Column(
            "Colour",
            lambda row: COLOUR_NAMES[row.note.colour] + (", hidden" if row.note.hidden else ""),
            "Its colour in the plots, and whether it is hidden there",
            number=False,
        ),
    )


class _NoteRow(NamedTuple):
    """An annotation, and its text after the name of its location."""

    note: Annotation
    told: str


class ViewsPanel(QWidget):
    """`viewAsked` with a number, `rangeAsked` with a range of time: the plots are the window's.
    `keepAsked` with a number: what is seen now is to be kept under it."""

    viewAsked = Signal(int)
    keepAsked = Signal(int)
    rangeAsked = Signal(float, float)
    noteAsked = Signal()

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench
        self._locations: tuple[str, ...] = ()
        self.views = RowsModel(_view_columns(time_scale(1.0)))
        self.notes = RowsModel(_note_columns(time_scale(1.0)))
        self.view_table = self._table(self.views, self.tr("Views"), self.go_to_view)
        self.note_table = self._table(self.notes, self.tr("Annotations"), self.go_to_note)
        self.view_tip = QLabel(self.tr("Ctrl+1 to Ctrl+9 keep what you see, 1 to 9 return to it."))
        self.note_tip = QLabel(
            self.tr("I writes a remark at the pointer, or over the selection; Shift+I on one location.")
        )
        for tip in (self.view_tip, self.note_tip):
            tip.setWordWrap(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 6, 6, 6)
        layout.addWidget(self.view_tip)
        layout.addWidget(self.view_table, 1)
        layout.addLayout(
            self._buttons(
                self.view_table,
                (self.tr("&Keep"), self.tr("Keep what is seen under the next free number"), self.keep),
                (self.tr("&Go to"), self.tr("Show this view"), self.go_to_view),
                (self.tr("&Rename…"), self.tr("Another name for this view"), self.rename_view),
                (self.tr("Delete"), self.tr("Delete this view"), self.delete_view),
            )
        )
        layout.addWidget(self.note_tip)
        layout.addWidget(self.note_table, 1)
        layout.addLayout(
            self._buttons(
                self.note_table,
                (self.tr("&Add…"), self.tr("A remark at the cursor or the selection"), self.noteAsked.emit),
                (self.tr("Go &to"), self.tr("Show the time of this annotation"), self.go_to_note),
                (self.tr("&Edit…"), self.tr("Text, time, location and colour"), self.edit_note),
                (self.tr("&Hide"), self.tr("Hide this annotation in the plots, or show it"), self.hide_note),
                (self.tr("Delete"), self.tr("Delete this annotation"), self.delete_note),
            )
        )

    def _table(self, model: RowsModel, name: str, act: Callable[[], None]) -> QTableView:
        table = QTableView()
        table.setModel(model)
        table.verticalHeader().hide()
        table.setWordWrap(False)
        header = table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        wide = 1 if model is self.views else 0
        header.setSectionResizeMode(wide, QHeaderView.ResizeMode.Stretch)
        # A stretched column gives way to the others, but not so far that its heading is cut.
        least = self.fontMetrics().horizontalAdvance(model.columns[wide].title)
        header.setMinimumSectionSize(least + self.fontMetrics().height())
        tables.prepare(table, name, lambda: tables.as_text(model.columns, model.rows))
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.doubleClicked.connect(lambda _: act())
        return table

    def _buttons(self, chosen: QTableView, *buttons: tuple[str, str, Callable[[], None]]) -> Flow:
        """The first needs nothing; all others act on what is `chosen` in a table."""
        row = Flow()
        choosy: list[QToolButton] = []
        for text, tip, act in buttons:
            button = QToolButton()  # narrower than a push button, as it stands beside the plots
            button.setText(text)
            button.setToolTip(tip)
            button.clicked.connect(lambda _=False, act=act: act())
            row.addWidget(button)
            choosy.append(button)
        del choosy[0]

        def refresh(*_: object) -> None:
            for button in choosy:
                button.setEnabled(chosen.selectionModel().hasSelection())

        chosen.selectionModel().selectionChanged.connect(refresh)
        chosen.model().modelReset.connect(refresh)
        refresh()
        return row

    def set_theme(self, theme: Any) -> None:
        """Tables follow the palette."""

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        project, before = new.project, old.project
        of = time_scale(1.0 if new.run is None else new.run.curve.duration)  # that of the axis
        if project.views is not before.views or new.document is not old.document:
            self.views.show(project.views, _view_columns(of))
        if project.annotations is not before.annotations or new.document is not old.document:
            self._locations = () if new.document is None else new.document.locations
            rows = [_NoteRow(note, note.told(self._locations)) for note in project.annotations]
            self.notes.show(rows, _note_columns(of))

    # ---- views

    def _view(self) -> NamedView | None:
        rows = self.view_table.selectionModel().selectedRows()
        return self.views.rows[rows[0].row()] if rows else None

    def keep(self) -> None:
        """What is seen, under the next free number; where there is none, under the chosen one."""
        taken = {kept.number for kept in self.views.rows}
        free = next((k for k in range(1, VIEWS + 1) if k not in taken), None)
        chosen = self._view()
        if free is not None:
            self.keepAsked.emit(free)
        elif chosen is not None:
            self.keepAsked.emit(chosen.number)

    def go_to_view(self) -> None:
        chosen = self._view()
        if chosen is not None:
            self.viewAsked.emit(chosen.number)

    def rename_view(self) -> None:
        chosen = self._view()
        if chosen is None:
            return
        dialog = QInputDialog(self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setWindowTitle(self.tr("Rename view {0}").format(chosen.number))
        dialog.setLabelText(self.tr("Name"))
        dialog.setTextValue(chosen.name)
        dialog.textValueSelected.connect(
            lambda text: self._workbench.rename_view(chosen.number, text.strip())
        )
        dialog.open()

    def delete_view(self) -> None:
        chosen = self._view()
        if chosen is not None:
            self._workbench.remove_view(chosen.number)

    # ---- annotations

    def _note(self) -> int | None:
        rows = self.note_table.selectionModel().selectedRows()
        return rows[0].row() if rows else None

    def choose_note(self, index: int) -> None:
        """Put the selection of the table on an annotation."""
        self.note_table.selectRow(index)

    def go_to_note(self) -> None:
        index = self._note()
        if index is not None:
            note = self.notes.rows[index].note
            self.rangeAsked.emit(note.start_s, note.start_s if note.end_s is None else note.end_s)

    def edit_note(self) -> None:
        index = self._note()
        if index is not None:
            note = self.notes.rows[index].note
            dialog = NoteDialog(self, self.tr("Edit annotation"), note, self._locations)
            dialog.taken.connect(
                lambda made: self._workbench.change_annotation(
                    index,
                    text=made.text,
                    start_s=made.start_s,
                    end_s=made.end_s,
                    colour=made.colour,
                    location=made.location,
                )
            )
            dialog.open()

    def hide_note(self) -> None:
        index = self._note()
        if index is not None:
            self._workbench.change_annotation(index, hidden=not self.notes.rows[index].note.hidden)

    def delete_note(self) -> None:
        index = self._note()
        if index is not None:
            self._workbench.remove_annotation(index)


class NoteDialog(Dialog):
    """Text, time, location and colour of an annotation; `taken` gets it when all is as it must be.

    `locations`: what those of the trace are called; of a trace without any there is nothing to choose.
    """

    taken = Signal(object)

    def __init__(self, parent: QWidget, title: str, note: Annotation, locations: Sequence[str] = ()) -> None:
        super().__init__(parent)
        self.setObjectName("note_dialog")
        self.setWindowTitle(title)
        self._note = note
        self.text = QPlainTextEdit(note.text)
        self.text.setTabChangesFocus(True)
        self.text.setMinimumWidth(40 * self.fontMetrics().averageCharWidth())
        self.text.setMaximumHeight(6 * self.fontMetrics().height())
        self.start = QLineEdit(_exact(note.start_s))
        self.end = QLineEdit("" if note.end_s is None else _exact(note.end_s))
        self.end.setPlaceholderText(self.tr("an instant"))
        self.location = QComboBox()
        self.location.addItem(self.tr("All locations"), None)
        # Long lists are slow to measure; a name that is cut there is read in full when it is chosen.
        self.location.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        for index, name in enumerate(locations):
            self.location.addItem(name, index)
        if note.location is not None and note.location >= len(locations):
            self.location.addItem(note.where(locations), note.location)
        self.location.setCurrentIndex(max(self.location.findData(note.location), 0))
        self.colour = QComboBox()
        for name, colour in zip(COLOUR_NAMES, COLOURS, strict=True):
            patch = QPixmap(16, 16)
            patch.fill(QColor(colour))
            self.colour.addItem(QIcon(patch), name)
        self.colour.setCurrentIndex(note.colour)
        self.problem = QLabel()
        self.problem.setWordWrap(True)
        self.buttons = QDialogButtonBox(
            QDialogButtonBox.StandardButton.Ok | QDialogButtonBox.StandardButton.Cancel
        )
        self.buttons.accepted.connect(self._take)
        self.buttons.rejected.connect(self.reject)
        form = QFormLayout(self)
        form.addRow(self.tr("&Text"), self.text)
        form.addRow(self.tr("&Start (s)"), self.start)
        form.addRow(self.tr("&End (s)"), self.end)
        if self.location.count() > 1:
            form.addRow(self.tr("&Location"), self.location)
        form.addRow(self.tr("&Colour"), self.colour)
        form.addRow(self.problem)
        form.addRow(self.buttons)

    def _take(self) -> None:
        try:
            start = float(self.start.text())
            end = float(self.end.text()) if self.end.text().strip() else None
        except ValueError:
            self.problem.setText(self.tr("Start and end are numbers of seconds; the end may be empty."))
            return
        if not self.text.toPlainText().strip():
            self.problem.setText(self.tr("Write what the annotation should say."))
            return
        if end is not None and not end >= start:
            self.problem.setText(self.tr("It ends before it begins."))
            return
        self.taken.emit(
            Annotation(
                start,
                self.text.toPlainText().strip(),
                end,
                self.colour.currentIndex(),
                self.location.currentData(),
                self._note.hidden,
            )
        )
        self.accept()


PANEL = PanelSpec("views", "Views", "right", ViewsPanel, "projects.md#views-and-annotations")

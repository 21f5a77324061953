"""Views that were kept under numbers, and annotations: go to them, change them, delete them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QColor, QIcon, QPixmap
from PySide6.QtWidgets import QAbstractItemView, QLineEdit, QPlainTextEdit, QToolButton, QWidget

from desktop.core.units import Scale, scaled, time_scale
from desktop.data.columns import Column, columnar
from desktop.ui.dialogs import Dialog
from desktop.ui.flow import Flow
from desktop.ui.pages import ask_text, choices, form, lay_out, quiet, set_up
from desktop.ui.panels import Panel, PanelSpec
from desktop.ui.plots.notes import COLOUR_NAMES, COLOURS
from desktop.ui.tables import FrameView
from desktop.workbench.model import VIEWS, Annotation, NamedView
from desktop.workbench.workbench import Snapshot, Workbench


def _span(span: tuple[float, float | None], scale: Scale) -> str:
    start, end_s = scaled(span[0], scale), span[1]
    return start if end_s is None else f"{start} – {scaled(end_s, scale)}"


def _time(span: tuple[float, float | None] | None, scale: Scale) -> tuple[float, str]:
    """The key by which a range is sorted, and its text."""
    return (0.0, "whole run") if not span else (span[0], _span(span, scale))


def _exact(time_s: float) -> str:
    """All digits but the last, which is rounding error."""
    return f"{time_s:.15g}"


VIEW_COLUMNS = (
    Column("Key", name="key"),
    Column("View", name="view", stretch=True),
    Column("Time", name="start_s", label="time"),
)
NOTE_COLUMNS = (
    Column("Annotation", name="annotation", stretch=True),
    Column("Time", name="start_s", label="time"),
    Column("Colour", "Its colour in the plots, and whether it is hidden there", name="colour"),
)


class ViewsPanel(Panel):
    """Tables of views and annotations. Signals: `viewAsked` (number of the view to show), `rangeAsked` (range
    to show, s), `keepAsked` (number under which the present view is to be kept), `noteAsked`."""

    viewAsked = Signal(int)
    keepAsked = Signal(int)
    rangeAsked = Signal(float, float)
    noteAsked = Signal()

    def __init__(self, workbench: Workbench) -> None:
        super().__init__(workbench)
        self._locations: tuple[str, ...] = ()
        self._views: tuple[NamedView, ...] = ()
        self._notes: tuple[Annotation, ...] = ()
        self.view_table = self._table(VIEW_COLUMNS, "Views", self.go_to_view)
        self.note_table = self._table(NOTE_COLUMNS, "Annotations", self.go_to_note)
        self.view_tip = quiet("Ctrl+1 to Ctrl+9 keep what you see, 1 to 9 return to it.")
        words = "I writes a remark at the pointer, or over the selection; Shift+I on one location."
        self.note_tip = quiet(words)
        views = self._buttons(
            self.view_table,
            ("&Keep", "Keep the current view under the next free number", self.keep),
            ("&Go to", "Show this view", self.go_to_view),
            ("&Rename…", "Rename this view", self.rename_view),
            ("Delete", "Delete this view", self.delete_view),
        )
        notes = self._buttons(
            self.note_table,
            ("&Add…", "A remark at the cursor or the selection", self.noteAsked.emit),
            ("Go &to", "Show the time of this annotation", self.go_to_note),
            ("&Edit…", "Text, time, location and colour", self.edit_note),
            ("&Hide", "Hide this annotation in the plots, or show it", self.hide_note),
            ("Delete", "Delete this annotation", self.delete_note),
        )
        lay_out(self, self.view_tip, (self.view_table, 1), views,
            self.note_tip, (self.note_table, 1), notes, margins=6,
        )  # fmt: skip

    def _table(self, columns: Sequence[Column], name: str, act: Callable[[], None]) -> FrameView:
        table = FrameView(name)
        table.show_frame(None, columns)
        # A stretched column gives way to the others, but not so far that its heading is cut.
        wide = next(column.title for column in columns if column.stretch)
        width = self.fontMetrics().horizontalAdvance(wide) + self.fontMetrics().height()
        table.horizontalHeader().setMinimumSectionSize(width)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.activatedKey.connect(lambda _: act())
        return table

    def _buttons(self, table: FrameView, *buttons: tuple[str, str, Callable[[], None]]) -> Flow:
        """Buttons in a row; all but the first are enabled while a row of `table` is selected."""
        row = Flow()
        tools = [
            set_up(QToolButton(), text=text, toolTip=tip, clicked=lambda _=False, act=act: act())
            for text, tip, act in buttons
        ]
        for button in tools:
            row.addWidget(button)

        def refresh(*_: object) -> None:
            for button in tools[1:]:
                button.setEnabled(table.selectionModel().hasSelection())

        table.selectionModel().selectionChanged.connect(refresh)
        table.model().modelReset.connect(refresh)
        refresh()
        return row

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        project, last = new.project, old.project
        scale = time_scale(1.0 if new.run is None else new.run.curve.duration)  # that of the axis
        if project.views is not last.views or new.document is not old.document:
            self._views = tuple(project.views)
            self._show(
                self.view_table,
                [(v.number, v.name or f"View {v.number}", *_time(v.view.span, scale)) for v in self._views],
                ("key", "view", "start_s", "time"),
            )
        if project.annotations is not last.annotations or new.document is not old.document:
            self._locations = () if new.document is None else new.document.locations
            self._notes = tuple(project.annotations)
            self._show(
                self.note_table,
                [
                    (
                        " ".join(note.text_at(self._locations).split()),
                        *_time((note.start_s, note.end_s), scale),
                        COLOUR_NAMES[note.colour] + (", hidden" if note.hidden else ""),
                    )
                    for note in self._notes
                ],
                ("annotation", "start_s", "time", "colour"),
            )

    @staticmethod
    def _show(table: FrameView, rows: Sequence[tuple[object, ...]], names: Sequence[str]) -> None:
        if len(rows) != table.frames.rowCount():
            table.select_key("")  # places mean other rows now
        if not rows:
            table.show_frame(None)
            return
        table.show_frame(columnar(dict(zip(names, zip(*rows, strict=True), strict=True))))

    # ---- views

    def _view(self) -> NamedView | None:
        keys = self.view_table.keys
        return self._views[keys[0]] if keys else None

    def keep(self) -> None:
        """Keep the present view under the next free number, else in place of the selected one."""
        numbers = {view.number for view in self._views}
        free = next((k for k in range(1, VIEWS + 1) if k not in numbers), None)
        selected = self._view()
        if free is not None:
            self.keepAsked.emit(free)
        elif selected is not None:
            self.keepAsked.emit(selected.number)

    def go_to_view(self) -> None:
        """Ask the page to show the selected view."""
        view = self._view()
        if view is not None:
            self.viewAsked.emit(view.number)

    def rename_view(self) -> None:
        """Ask for a name for the selected view."""
        view = self._view()
        if view is None:
            return
        ask_text(
            self, f"Rename view {view.number}", "Name", view.name,
            lambda text: self._workbench.rename_view(view.number, text.strip()),
        )  # fmt: skip

    def delete_view(self) -> None:
        view = self._view()
        if view is not None:
            self._workbench.remove_view(view.number)

    # ---- annotations

    def _note(self) -> int | None:
        keys = self.note_table.keys
        return keys[0] if keys else None

    def go_to_note(self) -> None:
        """Ask the page to show the time of the selected annotation."""
        index = self._note()
        if index is not None:
            note = self._notes[index]
            self.rangeAsked.emit(note.start_s, note.start_s if note.end_s is None else note.end_s)

    def edit_note(self) -> None:
        """Ask for text, time, colour and location of the selected annotation."""
        index = self._note()
        if index is not None:
            note = self._notes[index]

            def keep(edited: Annotation) -> None:
                fields = ("text", "start_s", "end_s", "colour", "location")
                self._workbench.change_annotation(index, **{k: getattr(edited, k) for k in fields})

            set_up(NoteDialog(self, "Edit annotation", note, self._locations), confirmed=keep).open()

    def hide_note(self) -> None:
        """Hide the selected annotation in plots, or show it again."""
        index = self._note()
        if index is not None:
            self._workbench.change_annotation(index, hidden=not self._notes[index].hidden)

    def delete_note(self) -> None:
        index = self._note()
        if index is not None:
            self._workbench.remove_annotation(index)


class NoteDialog(Dialog):
    """Asks for text, time, location and colour of an annotation; `confirmed` emits it when it is valid.

    `locations`: the names of those of the trace; without any, no location can be chosen.
    """

    confirmed = Signal(object)

    def __init__(self, parent: QWidget, title: str, note: Annotation, locations: Sequence[str] = ()) -> None:
        super().__init__(parent, "note_dialog", title)
        self._note, metrics = note, self.fontMetrics()
        self.text = set_up(
            QPlainTextEdit(note.text), tabChangesFocus=True, minimumWidth=40 * metrics.averageCharWidth(),
            maximumHeight=6 * metrics.height(),
        )  # fmt: skip
        self.start = QLineEdit(_exact(note.start_s))
        end = "" if note.end_s is None else _exact(note.end_s)
        self.end = set_up(QLineEdit(end), placeholderText="an instant")
        places: dict[int | None, str] = {None: "All locations", **dict(enumerate(locations))}
        if note.location is not None and note.location >= len(locations):
            places[note.location] = note.location_name(locations)
        # Long lists are slow to measure; a name that is cut there is read in full when it is chosen.
        self.location = choices(places, note.location, narrow=12)
        self.colour = choices(dict(enumerate(COLOUR_NAMES)), note.colour)
        for k, colour in enumerate(COLOURS):
            patch = QPixmap(16, 16)
            patch.fill(QColor(colour))
            self.colour.setItemIcon(k, QIcon(patch))
        self.problem = quiet()
        self.buttons = self.ending()
        location_rows = [("&Location", self.location)] if self.location.count() > 1 else []
        form(
            ("&Text", self.text), ("&Start (s)", self.start), ("&End (s)", self.end), *location_rows,
            ("&Colour", self.colour), self.problem, self.buttons, parent=self,
        )  # fmt: skip

    def accept(self) -> None:
        """Emit the annotation if it is valid, else say why it is not."""
        try:
            start = float(self.start.text())
            end = float(self.end.text()) if self.end.text().strip() else None
        except ValueError:
            self.problem.setText("Start and end are numbers of seconds; the end may be empty.")
            return
        if not self.text.toPlainText().strip():
            self.problem.setText("Write what the annotation should say.")
            return
        if end is not None and not end >= start:
            self.problem.setText("It ends before it begins.")
            return
        text, colour = self.text.toPlainText().strip(), self.colour.currentIndex()
        location = self.location.currentData()
        self.confirmed.emit(Annotation(start, text, end, colour, location, self._note.hidden))
        super().accept()


PANEL = PanelSpec("views", "Views", "right", ViewsPanel, "projects.md#views-and-annotations")

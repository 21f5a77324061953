"""What the project holds, traces, experiments and tables of run times: open, take out, find again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QAbstractItemView, QToolButton

from desktop.data.columns import Column, TableRow
from desktop.ui.pages import lay_out, row, set_up
from desktop.ui.panels import Panel, PanelSpec
from desktop.ui.tables import FrameView
from desktop.workbench.keeping import Kind
from desktop.workbench.model import Workspace
from desktop.workbench.workbench import Snapshot, Workbench

_KINDS = {"runs": "Trace", "experiments": "Experiment", "tables": "Table of run times"}


@dataclass(frozen=True)
class ProjectItem:
    """One row: the place `index` among those of a `kind`. `path` None: it is in the project itself."""

    kind: Kind
    index: int
    name: str
    path: Path | None
    shown: bool = False

    @property
    def state(self) -> str:
        """ "shown", "not found" if its file is gone, else ""."""
        if self.shown:
            return "shown"
        return "not found" if self.path is not None and not self.path.exists() else ""


def project_items(workspace: Workspace, current: int | None) -> list[ProjectItem]:
    """The rows of a project; the run at `current` is shown."""
    runs = [
        ProjectItem("runs", k, run.trace.title, run.trace.path, k == current)
        for k, run in enumerate(workspace.runs)
    ]
    runs += [ProjectItem("experiments", k, one.name, one.path) for k, one in enumerate(workspace.experiments)]
    return runs + [ProjectItem("tables", k, one.name, one.path) for k, one in enumerate(workspace.tables)]


COLUMNS = (
    Column("Name"),
    Column("Kind"),
    Column("State", "Shown in this window, or not where it was"),
    Column("Folder"),
)


class ProjectPanel(Panel):
    """The table of what the project holds. Signals carry kind and index of a row; the window acts on them."""

    openAsked = Signal(str, int)
    removeAsked = Signal(str, int)
    placeAsked = Signal(str, int)
    traceAsked = Signal()
    fileAsked = Signal()

    def __init__(self, workbench: Workbench) -> None:
        super().__init__(workbench)
        self._items: tuple[ProjectItem, ...] = ()
        self._cells: list[tuple[str, str, str, str]] = []
        self.table = FrameView("Contents of the project")
        self.model = self.table.frames
        self.table.show_frame(None, COLUMNS)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.activatedKey.connect(lambda _: self.openAsked.emit(*self._selected()))
        self.table.selectionModel().selectionChanged.connect(lambda *_: self._refresh())
        self.table.setMinimumHeight(3 * self.fontMetrics().height())  # it stands low, and scrolls
        selected = self._selected
        self.buttons: dict[str, QToolButton] = {}
        for key, text, tip, act in (
            ("open", "&Open", "Show this trace, or open a window for it",
             lambda: self.openAsked.emit(*selected())),
            ("trace", "Add t&race…", "Add another run to this project",
             self.traceAsked.emit),
            ("file", "Add &file…", "An experiment, or a table of run times",
             self.fileAsked.emit),
            ("place", "Fi&nd…", "Locate the file if it has moved",
             lambda: self.placeAsked.emit(*selected())),
            ("remove", "&Remove", "Remove it from the project; the file stays",
             lambda: self.removeAsked.emit(*selected())),
        ):  # fmt: skip
            self.buttons[key] = set_up(
                QToolButton(), text=text, toolTip=tip, clicked=lambda _=False, act=act: act()
            )
        lay_out(self, (self.table, 1), row(*self.buttons.values(), None), margins=(6, 4, 6, 4))
        self._refresh()

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        """The project is the window's: see `show_contents`."""

    def show_contents(self, rows: Sequence[ProjectItem]) -> None:
        """Show these items; the selection stays if there are as many as before."""
        old_items, self._items = self._items, tuple(rows)
        cells = [
            (item.name, _KINDS[item.kind], item.state, "" if item.path is None else str(item.path.parent))
            for item in rows
        ]
        if cells == self._cells:  # as after every new fit
            if old_items != self._items:
                self._refresh()
            return
        if len(rows) != len(old_items):
            self.table.select_key("")  # places mean other rows now
        self._cells = cells
        self.table.show_rows(COLUMNS, [TableRow(one, k) for k, one in enumerate(cells)])
        if not self.table.keys:  # what has moved is ready to be found
            self.table.select_key(next((k for k, item in enumerate(rows) if item.state == "not found"), ""))
        self._refresh()

    def _row(self) -> ProjectItem | None:
        keys = self.table.keys
        return self._items[keys[0]] if keys else None

    def _selected(self) -> tuple[str, int]:
        item = self._row()
        assert item is not None  # the buttons are off without one
        return item.kind, item.index

    def _refresh(self) -> None:
        item, runs = self._row(), sum(k.kind == "runs" for k in self._items)
        self.buttons["open"].setEnabled(item is not None and not item.shown)
        self.buttons["place"].setEnabled(item is not None and item.path is not None and not item.shown)
        self.buttons["remove"].setEnabled(item is not None and (item.kind != "runs" or runs > 1))


PANEL = PanelSpec("project", "Project", "bottom", ProjectPanel, "projects.md#what-a-project-keeps")

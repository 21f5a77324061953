"""Dialogs of the factor model: what columns mean, and which traces are runs of which code and system."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QComboBox,
    QDialogButtonBox,
    QGridLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QSpinBox,
    QWidget,
)

from desktop.data.tables import UNITS
from desktop.data.trace_rows import Quantity
from desktop.ui.dialogs import Dialog
from desktop.ui.pages import (
    asked_path,
    asked_paths,
    button,
    by_text,
    choices,
    form,
    lay_out,
    quiet,
    row,
    set_up,
    titled,
)
from desktop.workbench.modelling import UnassignedColumns

_ROLES = {
    "code": "Code (program, with its size)",
    "system": "System",
    "p": "Processors p",
    "time": "Time",
    "t_prime": "or t' instead of the time",
    "work": "Operations of the code W",
    "peak": "Peak rate of a processor r_peak",
    "repeat": "Repeat",
    "note": "Note",
}
_NOTHING = "–"


class AssignColumns(Dialog):
    """Asks for the heading and unit of every role; can be accepted when all necessary roles have one."""

    assigned = Signal(object, object)  # role -> heading, role -> unit

    def __init__(self, table: UnassignedColumns, parent: QWidget | None = None) -> None:
        super().__init__(parent, "assign_columns", "What do the columns mean?")
        name = table.source.name if isinstance(table.source, Path) else "The pasted table"
        self.headings: dict[str, QComboBox] = {}
        self.units: dict[str, QComboBox] = {}
        grid = QGridLayout()
        for k, (role, title) in enumerate(_ROLES.items()):
            box = self.headings[role] = choices(
                by_text((_NOTHING, *table.headings)), table.roles.get(role), accessibleName=title,
                currentIndexChanged=self._check,
            )  # fmt: skip
            grid.addWidget(titled(title, box), k, 0)
            grid.addWidget(box, k, 1)
            if role in UNITS:
                units = by_text(("as the heading says", *UNITS[role]))
                self.units[role] = choices(units, accessibleName=f"Unit of {title}")
                grid.addWidget(self.units[role], k, 2)
        grid.setColumnStretch(1, 1)
        intro = quiet(
            f"{name} has the columns {', '.join(table.headings[:12])}. "
            "Needed are code, system, p, and the time or t'."
        )
        self._need = quiet()
        self.buttons = self.ending()
        lay_out(self, intro, grid, self._need, self.buttons)
        self._check()

    def accept(self) -> None:
        columns = self._columns()
        boxes = ((role, box) for role, box in self.units.items() if role in columns)
        units = {role: box.currentText() for role, box in boxes if box.currentIndex() > 0}
        super().accept()
        self.assigned.emit(columns, units)

    def _columns(self) -> dict[str, str]:
        return {role: box.currentText() for role, box in self.headings.items() if box.currentIndex() > 0}

    def _check(self) -> None:
        columns = self._columns()
        missing = [role for role in ("code", "system", "p") if role not in columns]
        if "time" not in columns and "t_prime" not in columns:
            missing.append("the time or t'")
        twice = sorted({h for h in columns.values() if list(columns.values()).count(h) > 1})
        words = f"Still to be named: {', '.join(missing)}." if missing else ""
        if twice:
            words = f"{twice[0]} cannot have two meanings."
        self._need.setText(words)
        self.buttons.button(QDialogButtonBox.StandardButton.Ok).setEnabled(not (missing or twice))


class AddRuns(Dialog):
    """Asks for traces as measurements: which, of which code and system, and what is measured of a run."""

    chosen = Signal(object, str, str, object)  # paths, code, system, Quantity

    def __init__(
        self, codes: Sequence[str], systems: Sequence[str], folder: str, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent, "add_runs", "Add runs from imported traces")
        self._folder = folder
        self._paths: list[Path] = []
        self.files = set_up(QListWidget(), accessibleName="Traces")
        buttons = row(
            button("Add traces…", self._choose_files),
            button("Add a folder…", self._choose_folder, "A trace that is a folder of files"),
            button("Remove", self._remove),
            None,
        )
        self.code = _names(codes, "Code")
        self.system = _names(systems, "System")
        kinds = {False: "Run time", True: "Duration of one phase"}
        self.measured = choices(kinds, currentIndexChanged=self._check)
        self.phase = set_up(QSpinBox(), range=(1, 4), accessibleName="Phase")
        self.n = set_up(
            QSpinBox(), range=(1, 999), accessibleName="Number of phases", value=4,
            valueChanged=self.phase.setMaximum,
        )  # fmt: skip
        kinds_of_phases = by_text(("constant", "linear", "quadratic", "mixed"))
        self.model = choices(kinds_of_phases, accessibleName="Kind of phases")
        phases = row(self.phase, QLabel("of"), self.n, self.model, None)
        fields = form(
            ("&Code", self.code), ("&System", self.system), ("&Measured", self.measured), ("Phase", phases)
        )
        intro = quiet(
            "Every trace is one run; its processors are p. A trace not imported yet is imported first."
        )
        self.buttons = self.ending()
        lay_out(self, intro, self.files, buttons, fields, self.buttons)
        for names in (self.code, self.system):
            names.editTextChanged.connect(self._check)
        self._check()

    def add_paths(self, paths: Sequence[Path]) -> None:
        """Add files that are not yet listed."""
        for path in paths:
            if path not in self._paths:
                self._paths.append(path)
                self.files.addItem(str(path))
        self._check()

    def accept(self) -> None:
        quantity = Quantity()
        if self.measured.currentData():
            quantity = Quantity(self.phase.value(), self.n.value(), self.model.currentText())
        super().accept()
        self.chosen.emit(tuple(self._paths), self.code.currentText(), self.system.currentText(), quantity)

    def _choose_files(self) -> None:
        self.add_paths(asked_paths(self, "Add traces", self._folder))

    def _choose_folder(self) -> None:
        path = asked_path(self, "Add a trace that is a folder", self._folder, mode="folder")
        self.add_paths([] if path is None else [path])

    def _remove(self) -> None:
        for item in self.files.selectedItems():
            index = self.files.row(item)
            self.files.takeItem(index)
            del self._paths[index]
        self._check()

    def _check(self) -> None:
        for widget in (self.phase, self.n, self.model):
            widget.setEnabled(self.measured.currentData())
        named = self.code.currentText().strip() and self.system.currentText().strip()
        ready = bool(self._paths and named)
        self.buttons.button(QDialogButtonBox.StandardButton.Ok).setEnabled(ready)


def _names(names: Sequence[str], title: str) -> QComboBox:
    """A name to be written, or one of those known."""
    tip = f"name of the {title.lower()}"
    return choices(
        by_text(names), editable=True, accessibleName=title, lineEdit=set_up(QLineEdit(), placeholderText=tip)
    )

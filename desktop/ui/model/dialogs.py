"""What the factor model asks: what columns mean, and which traces are runs of what."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QComboBox,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from desktop.data.tables import UNITS
from desktop.data.trace_rows import Quantity
from desktop.ui.dialogs import Dialog
from desktop.ui.pages import fill_layout, set_up
from desktop.workbench.modelling import Unassigned

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
    """Role by role: which heading, and in which unit. Accepted when all that is needed is named."""

    assigned = Signal(object, object)  # role -> heading, role -> unit

    def __init__(self, table: Unassigned, parent: QWidget | None = None) -> None:
        super().__init__(parent, "assign_columns", "What do the columns mean?")
        name = table.source.name if isinstance(table.source, Path) else "The pasted table"
        self.headings: dict[str, QComboBox] = {}
        self.units: dict[str, QComboBox] = {}
        grid = QGridLayout()
        for row, (role, title) in enumerate(_ROLES.items()):
            box = set_up(QComboBox(), accessibleName=title)
            box.addItems([_NOTHING, *table.headings])
            box.setCurrentText(table.found.get(role, _NOTHING))
            box.currentIndexChanged.connect(self._check)
            label = set_up(QLabel(title), buddy=box)
            grid.addWidget(label, row, 0)
            grid.addWidget(box, row, 1)
            self.headings[role] = box
            if role in UNITS:
                unit = set_up(QComboBox(), accessibleName=f"Unit of {title}")
                unit.addItems(["as the heading says", *UNITS[role]])
                grid.addWidget(unit, row, 2)
                self.units[role] = unit
        grid.setColumnStretch(1, 1)
        said = QLabel(
            f"{name} has the columns {', '.join(table.headings[:12])}. "
            "Needed are code, system, p, and the time or t'."
        )
        said.setWordWrap(True)
        self._need = set_up(QLabel(), wordWrap=True)
        self.buttons = self.ending()
        fill_layout(QVBoxLayout(self), said, grid, self._need, self.buttons)
        self._check()

    def accept(self) -> None:
        columns, units = self._columns(), {}
        for role, box in self.units.items():
            if role in columns and box.currentIndex() > 0:
                units[role] = box.currentText()
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
            words = f"{twice[0]} cannot mean two things."
        self._need.setText(words)
        self.buttons.button(QDialogButtonBox.StandardButton.Ok).setEnabled(not (missing or twice))


class AddRuns(Dialog):
    """Traces as measurements: which, of what code on what system, and what of a run is measured."""

    chosen = Signal(object, str, str, object)  # paths, code, system, Quantity

    def __init__(
        self, codes: Sequence[str], systems: Sequence[str], folder: str, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent, "add_runs", "Add runs from imported traces")
        self._folder = folder
        self._paths: list[Path] = []
        self.files = set_up(QListWidget(), accessibleName="Traces")
        add = set_up(QPushButton("Add traces…"), clicked=self._choose_files)
        add_folder = set_up(QPushButton("Add a folder…"), toolTip="A trace that is a folder of files")
        add_folder.clicked.connect(self._choose_folder)
        remove = set_up(QPushButton("Remove"), clicked=self._remove)
        row = QHBoxLayout()
        for button in (add, add_folder, remove):
            row.addWidget(button)
        row.addStretch(1)
        self.code = _names(codes, "Code")
        self.system = _names(systems, "System")
        self.what = QComboBox()
        self.what.addItems(["Run time", "Duration of one phase"])
        self.what.currentIndexChanged.connect(self._check)
        self.phase, self.n = QSpinBox(), QSpinBox()
        for box, name in ((self.phase, "Phase"), (self.n, "Number of phases")):
            box.setRange(1, 999)
            box.setAccessibleName(name)
        self.n.setValue(4)
        self.n.valueChanged.connect(self.phase.setMaximum)
        self.phase.setMaximum(4)
        self.model = QComboBox()
        self.model.addItems(["constant", "linear", "quadratic", "mixed"])
        self.model.setAccessibleName("Kind of phases")
        phases = QHBoxLayout()
        for widget in (self.phase, QLabel("of"), self.n, self.model):
            phases.addWidget(widget)
        phases.addStretch(1)
        form = QFormLayout()
        form.addRow("&Code", self.code)
        form.addRow("&System", self.system)
        form.addRow("&Measured", self.what)
        form.addRow("Phase", phases)
        said = QLabel(
            "Every trace is one run; its processors are p. A trace not imported yet is imported first."
        )
        said.setWordWrap(True)
        self.buttons = self.ending()
        fill_layout(QVBoxLayout(self), said, self.files, row, form, self.buttons)
        for names in (self.code, self.system):
            names.editTextChanged.connect(self._check)
        self._check()

    def add_paths(self, paths: Sequence[Path]) -> None:
        for path in paths:
            if path not in self._paths:
                self._paths.append(path)
                self.files.addItem(str(path))
        self._check()

    def accept(self) -> None:
        quantity = Quantity()
        if self.what.currentIndex() == 1:
            quantity = Quantity(self.phase.value(), self.n.value(), self.model.currentText())
        super().accept()
        self.chosen.emit(tuple(self._paths), self.code.currentText(), self.system.currentText(), quantity)

    def _choose_files(self) -> None:
        names, _ = QFileDialog.getOpenFileNames(self, "Add traces", self._folder)
        self.add_paths([Path(name) for name in names])

    def _choose_folder(self) -> None:
        name = QFileDialog.getExistingDirectory(self, "Add a trace that is a folder", self._folder)
        if name:
            self.add_paths([Path(name)])

    def _remove(self) -> None:
        for item in self.files.selectedItems():
            at = self.files.row(item)
            self.files.takeItem(at)
            del self._paths[at]
        self._check()

    def _check(self) -> None:
        for widget in (self.phase, self.n, self.model):
            widget.setEnabled(self.what.currentIndex() == 1)
        named = self.code.currentText().strip() and self.system.currentText().strip()
        ready = bool(self._paths and named)
        self.buttons.button(QDialogButtonBox.StandardButton.Ok).setEnabled(ready)


def _names(known: Sequence[str], title: str) -> QComboBox:
    """A name to be written, or one of those known."""
    box = set_up(QComboBox(), editable=True)
    box.addItems(list(known))
    box.setAccessibleName(title)
    line = box.lineEdit()
    assert isinstance(line, QLineEdit)
    line.setPlaceholderText(f"name of the {title.lower()}")
    return box

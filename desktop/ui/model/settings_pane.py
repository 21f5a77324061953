"""What is to be fitted: functions of p, together or apart, response, reference, repeats."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from desktop.core.factor_answers import THE_SEVEN, known_functions
from desktop.ui.pages import fill_layout, set_up
from desktop.workbench.modelling import ModelBench, ModelSnapshot

_KINDS = {True: "All cells together", False: "Every cell by itself"}
_RESPONSES = {
    "auto": "The best by AICc",
    "t'": "t' = t p r_peak / W",
    "t": "Time t",
    "log": "log t' (relative)",
}
_REPEATS = {"points": "Points of their own", "median": "Their median", "minimum": "Their minimum"}
_COLUMNS = 4


class SettingsPane(QWidget):
    """Every change is an edit of the bench, to be undone there."""

    def __init__(self, bench: ModelBench) -> None:
        super().__init__()
        self._bench = bench
        self._showing = False
        self._boxes: dict[str, QCheckBox] = {}
        self._grid = set_up(QGridLayout(), horizontalSpacing=10, verticalSpacing=2)
        for text in THE_SEVEN:
            self._box(text)
        self.own = set_up(QLineEdit(), objectName="own_function", accessibleName="Function of your own")
        self.own.setPlaceholderText("another function of p, such as log2(p)/p^0.5")
        self.own.returnPressed.connect(self._add_own)
        add = QPushButton("Add")
        add.setToolTip(
            "Fit this function as well; p, numbers, + - * / ^ ( ), log, log2, log10, sqrt, cbrt, exp"
        )
        add.clicked.connect(self._add_own)
        self.fault = set_up(QLabel(), objectName="own_fault", wordWrap=True)
        self.fault.hide()
        self.own.textEdited.connect(lambda _: self.fault.hide())
        own = fill_layout(QHBoxLayout(), (self.own, 1), add)

        self.kind = self._choice("Fit", _KINDS, bench.set_joint)
        self.response = self._choice("Response", _RESPONSES, bench.set_response)
        self.reference = self._choice("Reference", {}, bench.set_reference)
        self.repeats = self._choice("Repeats", _REPEATS, bench.set_repeats)
        self.positive = QCheckBox("Keep parameters positive")
        self.positive.setToolTip("By default they are free: one below zero says that a function does not fit")
        self.positive.clicked.connect(bench.set_positive)
        choices = set_up(QGridLayout(), horizontalSpacing=8, verticalSpacing=4)
        for number, (title, box) in enumerate(
            (("&Fit", self.kind), ("&Response", self.response), ("R&eference", self.reference),
             ("Re&peats", self.repeats))
        ):  # fmt: skip
            label = set_up(QLabel(title), buddy=box)
            row, column = divmod(number, 2)
            choices.addWidget(label, row, 2 * column)
            choices.addWidget(box, row, 2 * column + 1)
        choices.setColumnStretch(1, 1)
        choices.setColumnStretch(3, 1)

        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, 6, 8, 4)
        layout.setSpacing(4)
        self.best = QCheckBox("The best by AICc")
        self.best.setToolTip("All pairs of the functions are compared; a choice of your own ends this")
        self.best.clicked.connect(lambda on: bench.set_functions(() if on else self._fitted()))
        heading = QLabel("Functions of p that make up the time")
        layout.addLayout(fill_layout(QHBoxLayout(), (heading, 1), self.best))
        layout.addLayout(self._grid)
        layout.addLayout(own)
        layout.addWidget(self.fault)
        layout.addLayout(choices)
        layout.addWidget(self.positive)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)

    def show_snapshot(self, old: ModelSnapshot, new: ModelSnapshot) -> None:
        settings = new.project.settings
        self._showing = True
        functions = settings.functions or self._fitted()
        self.best.setChecked(not settings.functions)
        known = THE_SEVEN if new.selection is None else known_functions(new.selection.data)
        for text in (*known, *functions):
            self._box(text)
        for text, box in tuple(self._boxes.items()):
            box.setChecked(text in functions)
            if text not in known and text not in functions:
                self._grid.removeWidget(self._boxes.pop(text))
                box.deleteLater()
        names = () if new.fit is None else (*new.fit.data.systems, *new.fit.data.codes)
        offered = tuple(self.reference.itemData(k) for k in range(self.reference.count()))
        if names and names != offered:
            self.reference.clear()
            for name in names:
                self.reference.addItem(name, name)
        reference = settings.reference or (new.fit.reference if new.fit is not None else None)
        for choice, value in (
            (self.kind, settings.joint), (self.response, settings.response), (self.reference, reference),
            (self.repeats, settings.repeats),
        ):  # fmt: skip
            choice.setCurrentIndex(max(0, choice.findData(value)))
        self.reference.setEnabled(settings.joint)
        self.positive.setEnabled(settings.joint)
        self.positive.setChecked(settings.positive)
        self._showing = False

    def _box(self, text: str) -> None:
        if text in self._boxes:
            return
        box = set_up(QCheckBox(text), objectName=f"function {text}", accessibleName=f"Function {text}")
        box.clicked.connect(lambda: self._choose())
        self._boxes[text] = box
        places = (divmod(k, _COLUMNS) for k in count())
        row, column = next(place for place in places if self._grid.itemAtPosition(*place) is None)
        self._grid.addWidget(box, row, column, Qt.AlignmentFlag.AlignLeft)

    def _choose(self) -> None:
        chosen = [text for text, box in self._boxes.items() if box.isChecked()]
        if chosen:
            self._bench.set_functions(chosen)
        else:
            # The last one stays: there is nothing to fit without a function.
            self.show_snapshot(self._bench.snapshot, self._bench.snapshot)

    def _add_own(self) -> None:
        text = self.own.text().strip()
        fault = self._bench.check_function(text) if text else "write a function of p first, such as p^0.75"
        if fault:
            self.fault.setText(f"{fault[:1].upper()}{fault[1:]}.")
            self.fault.show()
            return
        self.fault.hide()
        self.own.clear()
        self._bench.set_functions([*self._fitted(), text])

    def _fitted(self) -> tuple[str, ...]:
        """What is chosen, or was found to be best."""
        shown = self._bench.snapshot
        return shown.project.settings.functions or (() if shown.fit is None else shown.fit.functions)

    def _choice(self, name: str, values: dict[Any, str], act: Callable[[Any], None]) -> QComboBox:
        box = set_up(QComboBox(), objectName=name.lower(), accessibleName=name)
        box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        box.setMinimumContentsLength(6)
        box.currentTextChanged.connect(box.setToolTip)
        for value, text in values.items():
            box.addItem(text, value)

        def chosen(_: int) -> None:
            if not self._showing:
                act(box.currentData())

        box.currentIndexChanged.connect(chosen)
        return box

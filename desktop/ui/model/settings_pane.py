"""The settings of a fit: functions of p, cells together or apart, response, reference, repeats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QGridLayout, QLabel, QLineEdit, QSizePolicy, QWidget

from desktop.core.factor_answers import THE_SEVEN, known_functions
from desktop.core.units import capital
from desktop.ui.pages import K, button, by_text, choices, lay_out, refill, row, set_up, titled
from desktop.workbench.modelling import ModelBench, ModelSnapshot

if TYPE_CHECKING:
    from desktop.data.tables import Repeats

_KINDS = {True: "All cells together", False: "Every cell by itself"}
_RESPONSES = {
    "auto": "The best by AICc",
    "t'": "t' = t p r_peak / W",
    "t": "Time t",
    "log": "log t' (relative)",
}
_REPEATS: dict[Repeats, str] = {
    "points": "Separate points", "median": "Their median", "minimum": "Their minimum"
}  # fmt: skip
_COLUMNS = 4


class SettingsPane(QWidget):
    """The settings as fields; every change is an edit of the bench, which can be undone."""

    def __init__(self, bench: ModelBench) -> None:
        super().__init__()
        self._bench = bench
        self._showing = False
        self._boxes: dict[str, QCheckBox] = {}
        self._grid = set_up(QGridLayout(), horizontalSpacing=10, verticalSpacing=2)
        for text in THE_SEVEN:
            self._box(text)
        self.function = set_up(
            QLineEdit(), objectName="own_function", accessibleName="Function of your own",
            placeholderText="another function of p, such as log2(p)/p^0.5", returnPressed=self._add_own,
        )  # fmt: skip
        functions = "p, numbers, + - * / ^ ( ), log, log2, log10, sqrt, cbrt, exp"
        add = button("Add", self._add_own, f"Fit this function as well; {functions}")
        self.fault = set_up(QLabel(), objectName="own_fault", wordWrap=True, visible=False)
        self.function.textEdited.connect(lambda _: self.fault.hide())
        own_row = row((self.function, 1), add)

        self.kind = self._choice("Fit", _KINDS, bench.set_joint)
        self.response = self._choice("Response", _RESPONSES, bench.set_response)
        self.reference = self._choice("Reference", {}, bench.set_reference)
        self.repeats = self._choice("Repeats", _REPEATS, bench.set_repeats)
        self.positive = set_up(
            QCheckBox("Keep parameters positive"), clicked=bench.set_positive,
            toolTip="By default they are free: one below zero says that a function does not fit",
        )  # fmt: skip
        options = set_up(QGridLayout(), horizontalSpacing=8, verticalSpacing=4)
        for number, (title, box) in enumerate(
            (("&Fit", self.kind), ("&Response", self.response), ("R&eference", self.reference),
             ("Re&peats", self.repeats))
        ):  # fmt: skip
            line, column = divmod(number, 2)
            options.addWidget(titled(title, box), line, 2 * column)
            options.addWidget(box, line, 2 * column + 1)
            options.setColumnStretch(2 * column + 1, 1)
        self.best = set_up(
            QCheckBox("The best by AICc"),
            toolTip="All pairs of the functions are compared; a choice of your own ends this",
            clicked=lambda on: bench.set_functions(() if on else self._fitted()),
        )  # fmt: skip
        heading = QLabel("Functions of p that make up the time")
        lay_out(self, row((heading, 1), self.best), self._grid, own_row, self.fault, options,
            self.positive, margins=(8, 6, 8, 4), spacing=4,
        )  # fmt: skip
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)

    def show_snapshot(self, old: ModelSnapshot, new: ModelSnapshot) -> None:
        settings = new.project.settings
        self._showing = True
        functions = settings.functions or self._fitted()
        self.best.setChecked(not settings.functions)
        offered = THE_SEVEN if new.selection is None else known_functions(new.selection.data)
        for text in (*offered, *functions):
            self._box(text)
        for text, box in tuple(self._boxes.items()):
            box.setChecked(text in functions)
            if text not in offered and text not in functions:
                self._grid.removeWidget(self._boxes.pop(text))
                box.deleteLater()
        names = () if new.fit is None else (*new.fit.data.systems, *new.fit.data.codes)
        if names:
            refill(self.reference, by_text(names))
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
        places = (divmod(k, _COLUMNS) for k in count())
        taken = [self._place_of(other) for other in self._boxes.values()]
        self._boxes[text] = box
        free = next(place for place in places if place not in taken)
        self._grid.addWidget(box, *free, Qt.AlignmentFlag.AlignLeft)

    def _place_of(self, box: QCheckBox) -> tuple[int, int]:
        at: Any = self._grid.getItemPosition(self._grid.indexOf(box))  # PySide says object
        return at[0], at[1]

    def _choose(self) -> None:
        functions = [text for text, box in self._boxes.items() if box.isChecked()]
        if functions:
            self._bench.set_functions(functions)
        else:
            # The last one stays: there is nothing to fit without a function.
            self.show_snapshot(self._bench.snapshot, self._bench.snapshot)

    def _add_own(self) -> None:
        text = self.function.text().strip()
        fault = self._bench.check_function(text) if text else "write a function of p first, such as p^0.75"
        if fault:
            self.fault.setText(f"{capital(fault)}.")
            self.fault.show()
            return
        self.fault.hide()
        self.function.clear()
        self._bench.set_functions([*self._fitted(), text])

    def _fitted(self) -> tuple[str, ...]:
        """The chosen functions, or those found to be best."""
        snapshot = self._bench.snapshot
        return snapshot.project.settings.functions or (() if snapshot.fit is None else snapshot.fit.functions)

    def _choice(self, name: str, values: Mapping[K, str], act: Callable[[K], None]) -> QComboBox:
        box = choices(values, name=name, narrow=6)
        set_up(box, currentTextChanged=box.setToolTip, toolTip=box.currentText())

        def changed(_: int) -> None:
            if not self._showing:
                act(box.currentData())

        box.currentIndexChanged.connect(changed)
        return box

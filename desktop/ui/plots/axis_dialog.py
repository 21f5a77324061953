"""Ask for the ranges and scales of a plot's axes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from PySide6.QtWidgets import (
    QCheckBox,
    QDialogButtonBox,
    QGroupBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QVBoxLayout,
)

from desktop.data.chart import AxisChoice
from desktop.ui.dialogs import Dialog
from desktop.ui.pages import fill_layout, set_up


@dataclass(frozen=True)
class AxisOption:
    """An axis as it is: its ends in its own unit, whether they follow the values (`free`), and whether it is
    logarithmic (None: it cannot be)."""

    way: Literal["x", "y"]
    title: str
    low: float
    high: float
    free: bool
    log: bool | None


class AxisDialog(Dialog):
    """The axes of a plot (`axis_options`), which it shows as they are asked for (`choose_axis`)."""

    def __init__(self, plot: Any) -> None:
        super().__init__(plot, "axis_options", "Axis options")
        self._plot = plot
        self.forms = [_AxisForm(option, self) for option in plot.axis_options()]
        self.said = set_up(QLabel(), wordWrap=True)
        buttons = QDialogButtonBox()
        buttons.addButton(QDialogButtonBox.StandardButton.Ok).clicked.connect(self.accept)
        buttons.addButton(QDialogButtonBox.StandardButton.Apply).clicked.connect(self.apply)
        buttons.addButton(QDialogButtonBox.StandardButton.Cancel).clicked.connect(self.reject)
        fill_layout(QVBoxLayout(self), *self.forms, self.said, buttons)

    def apply(self) -> bool:
        """Show the axes so; whether all that was asked for can be shown."""
        for form in self.forms:
            problem = form.problem()
            if problem:
                self.said.setText(problem)
                return False
        for form in self.forms:
            if form.changed:
                self._plot.choose_axis(form.option.way, form.choice)
                form.take()
        self.said.setText("")
        return True

    def accept(self) -> None:
        if self.apply():
            super().accept()


class _AxisForm(QGroupBox):
    """One axis."""

    def __init__(self, option: AxisOption, parent: Dialog) -> None:
        title = option.title or ("Horizontal" if option.way == "x" else "Vertical")
        super().__init__(title.replace("&", "&&"), parent)
        self.option = option
        self.free = set_up(QCheckBox("Range by the values"), checked=option.free)
        self.low, self.high = (QLineEdit(text) for text in _texts(option.low, option.high))
        self.log = set_up(QCheckBox("Logarithmic"), checked=bool(option.log), visible=option.log is not None)
        row = QHBoxLayout()
        for text, line in (("From", self.low), ("to", self.high)):
            label = set_up(QLabel(text), buddy=line)
            line.setAccessibleName(f"{title}: {text}")
            row.addWidget(label)
            row.addWidget(line)
        fill_layout(QVBoxLayout(self), self.free, row, self.log)
        self.free.toggled.connect(self._other_way)
        self._other_way(option.free)
        self.take()

    def take(self) -> None:
        """What is entered now is shown."""
        self._taken = (self.free.isChecked(), self.low.text(), self.high.text(), self.log.isChecked())

    @property
    def changed(self) -> bool:
        """Whether anything else is asked for than is shown: numbers are rounded for reading."""
        return self._taken != (self.free.isChecked(), self.low.text(), self.high.text(), self.log.isChecked())

    def _other_way(self, free: bool) -> None:
        for line in (self.low, self.high):
            line.setEnabled(not free)

    def _ends(self) -> tuple[float, float]:
        try:
            return float(self.low.text().replace("−", "-")), float(self.high.text().replace("−", "-"))
        except ValueError:
            return math.nan, math.nan

    @property
    def choice(self) -> AxisChoice:
        low, high = (None, None) if self.free.isChecked() else self._ends()
        return AxisChoice(low, high, None if self.option.log is None else self.log.isChecked())

    def problem(self) -> str:
        """Why this cannot be shown."""
        if self.free.isChecked():
            return ""
        low, high = self._ends()
        if not (math.isfinite(low) and math.isfinite(high)):
            return f"{self.title()}: the ends of the range must be numbers."
        if not low < high:
            return f"{self.title()}: the range must end above where it begins."
        if self.log.isChecked() and self.option.log is not None and low <= 0:
            return f"{self.title()}: a logarithmic axis begins above zero."
        return ""


def _texts(low: float, high: float) -> tuple[str, str]:
    """The ends of a range with as many digits as tell parts of it apart.

    >>> _texts(0.0, 2.5), _texts(1000.0, 1000.00001)
    (('0', '2.5'), ('1000', '1000.00001'))
    """
    size, span = max(abs(low), abs(high)), high - low
    digits = min(17, max(6, math.ceil(math.log10(size / span)) + 5)) if span > 0 and size > 0 else 6
    return f"{low:.{digits}g}", f"{high:.{digits}g}"

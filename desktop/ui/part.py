"""Asks which part of a trace is to become a trace of its own."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QLineEdit, QWidget

from desktop.core.units import capital, quantity
from desktop.errors import DesktopError
from desktop.ui.dialogs import Dialog
from desktop.ui.pages import form, quiet, set_up


class PartDialog(Dialog):
    """Asks for all or some ranks of the range `span` (seconds). `ranks`: the rank of every location; `chosen`
    emits the locations of those asked for, None for all."""

    chosen = Signal(object)

    def __init__(self, parent: QWidget, ranks: Sequence[int], span: tuple[float, float]) -> None:
        super().__init__(parent, "part_dialog", "Save selection as new trace")
        self._ranks = ranks
        self.ranks = set_up(QLineEdit(), placeholderText="all; or some, such as 0-3,8")
        self.ranks.setMinimumWidth(40 * self.fontMetrics().averageCharWidth())
        self.ranks.setEnabled(any(rank >= 0 for rank in ranks))
        self.problem = quiet()
        buttons = self.ending("&Save…")
        start, end = span
        range_of = "{} to {} ({})".format(*(quantity(t, "s") for t in (start, end, end - start)))
        form(("Time", QLabel(range_of)), ("&Ranks", self.ranks), self.problem, buttons, parent=self)

    def accept(self) -> None:
        from desktop.data.trim import of_ranks

        named = self.ranks.text().strip()
        try:
            part = of_ranks(self._ranks, named) if named else None
        except DesktopError as error:
            text = str(error)
            self.problem.setText(capital(text) + ".")
            return
        super().accept()
        self.chosen.emit(part)

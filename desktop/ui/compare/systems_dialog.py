"""On which system each compared run was."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtWidgets import QLineEdit, QWidget

from desktop.ui.dialogs import Dialog
from desktop.ui.pages import form, quiet, set_up


class SystemsDialog(Dialog):
    """Asks for the system of every run (`runs`: names by key), at first `given`; `choose` gets them."""

    def __init__(
        self,
        parent: QWidget,
        runs: Mapping[str, str],
        given: Mapping[str, str],
        choose: Callable[[dict[str, str]], None],
    ) -> None:
        super().__init__(parent, "systems", "Systems of the runs")
        self._choose = choose
        self.fields = {
            key: set_up(QLineEdit(given.get(key, "")), placeholderText="one system", objectName=f"system_{k}")
            for k, key in enumerate(runs)
        }
        intro = quiet("Runs with the same name are of one system. Leave all empty where there is one only.")
        rows = [(name, self.fields[key]) for key, name in runs.items()]
        form(intro, *rows, self.ending(), parent=self)
        self.setMinimumWidth(420)

    def accept(self) -> None:
        super().accept()
        self._choose({key: field.text() for key, field in self.fields.items()})

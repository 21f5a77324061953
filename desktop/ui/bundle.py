"""Asks which files outside of the project's folder may go into a bundle."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QDialogButtonBox, QLabel, QPushButton, QTreeWidgetItem, QWidget

from desktop.core.units import quantity
from desktop.printing import printable
from desktop.ui.dialogs import Dialog
from desktop.ui.pages import lay_out, listing, quiet, set_up
from desktop.workbench.bundling import Outside


class BundleDialog(Dialog):
    """Lists files with their sizes, none ticked. `chosen` gets those that are (a frozenset of paths).

    `folder`: the project's, None if it has none.
    """

    chosen = Signal(object)

    def __init__(self, parent: QWidget, outside: Sequence[Outside], folder: Path | None) -> None:
        super().__init__(parent, "bundle_dialog", "Files for the bundle")
        self._outside = outside
        why = f"These files are not in the folder of the project, {printable(str(folder))}."
        if folder is None:
            why = "The project was not saved yet, so none of its files are in its folder."
        intro = quiet(
            f"{why} Tick the files to include; of the others only the names are included. A project from "
            "somebody else may name any of your files.",
            textFormat=Qt.TextFormat.PlainText,
        )
        named = "Files outside of the project's folder"
        self.files = set_up(listing(named, "File", "Kind", "Size"), rootIsDecorated=False)
        self._rows = [self._row(file) for file in outside]
        self.files.addTopLevelItems(self._rows)
        self.files.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.files.itemChanged.connect(lambda *_: self._count())
        self.total = QLabel()
        buttons = self.ending("&Export")
        self.every = set_up(QPushButton("&Tick all"), clicked=self._tick_all)
        buttons.addButton(self.every, QDialogButtonBox.ButtonRole.ActionRole)
        lay_out(self, intro, self.files, self.total, buttons)
        width = self.fontMetrics().averageCharWidth()
        self.resize(100 * width, 24 * self.fontMetrics().lineSpacing())
        self._count()

    def _row(self, file: Outside) -> QTreeWidgetItem:
        name = printable(str(file.path), 1000)
        if file.real != file.path:
            name = f"{name} (leads to {printable(str(file.real), 1000)})"
        row = QTreeWidgetItem([name, file.kind, quantity(file.size, "B")])
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return set_up(
            row, flags=row.flags() | Qt.ItemFlag.ItemIsUserCheckable, toolTip=(0, name),
            checkState=(0, Qt.CheckState.Unchecked), textAlignment=(2, right),
        )  # fmt: skip

    @property
    def ticked(self) -> list[Outside]:
        """The files outside of the project that are to be put into the bundle."""
        rows = zip(self._outside, self._rows, strict=True)
        return [file for file, row in rows if row.checkState(0) == Qt.CheckState.Checked]

    def _tick_all(self) -> None:
        with QSignalBlocker(self.files):  # or all would be counted for each
            for row in self._rows:
                row.setCheckState(0, Qt.CheckState.Checked)
        self.files.viewport().update()
        self._count()

    def _count(self) -> None:
        ticked = self.ticked
        size = quantity(sum(file.size for file in ticked), "B")
        self.total.setText(f"{len(ticked)} of {len(self._outside)} files go into the bundle, {size}")

    def accept(self) -> None:
        paths = frozenset(file.real for file in self.ticked)
        super().accept()
        self.chosen.emit(paths)

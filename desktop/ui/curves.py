"""Which curve of a trace is fitted, and which are drawn below it: the dialog that asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QDialogButtonBox, QLabel, QListWidget, QListWidgetItem

from desktop.printing import printable
from desktop.ui.dialogs import Dialog
from desktop.ui.pages import lay_out, search_field, set_up
from desktop.workbench.workbench import Snapshot, Workbench

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

_CURVE = Qt.ItemDataRole.UserRole
_TEXT = "Double-click a curve to fit it (bold). Ticked curves are drawn below it, over the same phases."


class CurvesDialog(Dialog):
    """The curves of the open trace. What is chosen holds at once, and can be undone."""

    def __init__(self, workbench: Workbench, parent: QWidget | None = None) -> None:
        super().__init__(parent, "curves", "Curves")
        self._workbench = workbench
        self.search = search_field("Find a curve", self._filter)
        self.list = set_up(
            QListWidget(), accessibleName="Curves", itemActivated=self._fit, itemChanged=self._track,
            # Of a long name the end says which of several curves it is.
            textElideMode=Qt.TextElideMode.ElideMiddle,
            horizontalScrollBarPolicy=Qt.ScrollBarPolicy.ScrollBarAlwaysOff,
        )  # fmt: skip
        buttons = self.closing()
        self.fit = buttons.addButton("&Fit this curve", QDialogButtonBox.ButtonRole.ActionRole)
        self.fit.clicked.connect(lambda: self._fit(self.list.currentItem()))
        lay_out(self, set_up(QLabel(_TEXT), wordWrap=True), self.search, self.list, buttons)
        em = self.fontMetrics().height()
        self.resize(34 * em, 26 * em)
        self._fill(self._workbench.snapshot)
        self._workbench.subscribe(self._show_snapshot)

    def _finish(self) -> None:
        self._workbench.unsubscribe(self._show_snapshot)

    def _show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        if new.document is not old.document:
            self.reject()
        elif (new.project.curve, new.project.tracks) != (old.project.curve, old.project.tracks):
            self._mark(new)

    def _fill(self, snapshot: Snapshot) -> None:
        document = snapshot.document
        curves: Sequence[dict[str, str]] = [] if document is None else document.info["curves"]
        for curve in curves:
            unit = f" ({curve['unit']})" if curve["unit"] not in ("", "processors") else ""
            item = QListWidgetItem(printable(f"{curve['title']}{unit}"))
            tip, checkable = f"{item.text()}\n{printable(curve['curve'])}", Qt.ItemFlag.ItemIsUserCheckable
            set_up(item, data=(_CURVE, curve["curve"]), toolTip=tip, flags=item.flags() | checkable)
            self.list.addItem(item)
        self._mark(snapshot)

    def _mark(self, snapshot: Snapshot) -> None:
        project = snapshot.project
        with QSignalBlocker(self.list):
            for item in self._items():
                curve = item.data(_CURVE)
                ticked = Qt.CheckState.Checked if curve in project.tracks else Qt.CheckState.Unchecked
                bold = set_up(QFont(self.list.font()), bold=curve == project.curve)
                set_up(item, checkState=ticked, font=bold)
                if curve == project.curve and self.list.currentRow() < 0:
                    self.list.setCurrentItem(item)
        self.list.viewport().update()

    def _items(self) -> list[QListWidgetItem]:
        return [self.list.item(k) for k in range(self.list.count())]

    def _filter(self, text: str) -> None:
        for item in self._items():
            item.setHidden(text.lower() not in item.text().lower())

    def _fit(self, item: QListWidgetItem | None) -> None:
        if item is not None:
            self._workbench.set_curve(item.data(_CURVE))

    def _track(self, item: QListWidgetItem) -> None:
        curve, tracks = item.data(_CURVE), self._workbench.project.tracks
        if (item.checkState() == Qt.CheckState.Checked) != (curve in tracks):
            self._workbench.toggle_track(curve)
            self._mark(self._workbench.snapshot)

"""What all dialogs of the program have in common: how they end."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QWidget

from desktop.ui.guard import guarded
from desktop.ui.mnemonics import settle
from desktop.ui.pages import set_up
from desktop.ui.sizes import keep_on_screen

_OK = QDialogButtonBox.StandardButton.Ok


class Dialog(QDialog):
    """A dialog that ends in one way, whatever ends it: a button, Esc, the title bar, or the window below it.

    All of these come to `done`: Qt's `accept` and `reject` call it, and closing a dialog rejects it (which is
    why `reject` must not close it). Its jobs end in `_finish`, called once when it is out of sight; then it
    is freed.
    """

    def __init__(self, parent: QWidget | None, name: str = "", title: str = "") -> None:
        super().__init__(parent)
        set_up(self, objectName=name, windowTitle=title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._finished = False

    def ending(self, button: QDialogButtonBox.StandardButton | str = _OK) -> QDialogButtonBox:
        """The buttons that end it: one that accepts it (of Qt's, or its text), and Cancel."""
        buttons = QDialogButtonBox()
        if isinstance(button, str):
            buttons.addButton(button, QDialogButtonBox.ButtonRole.AcceptRole)
        else:
            buttons.addButton(button)
        buttons.addButton(QDialogButtonBox.StandardButton.Cancel)
        return set_up(buttons, accepted=self.accept, rejected=self.reject)

    def closing(self) -> QDialogButtonBox:
        """The Close button of a dialog that only shows something."""
        return set_up(QDialogButtonBox(QDialogButtonBox.StandardButton.Close), rejected=self.reject)

    @guarded
    def showEvent(self, event: QShowEvent) -> None:
        settle(self)
        super().showEvent(event)
        QTimer.singleShot(0, self, partial(keep_on_screen, self))

    def done(self, result: int) -> None:
        super().done(result)
        if not self._finished:
            self._finished = True
            self._finish()

    def _finish(self) -> None:
        """End its jobs; here there are none."""


def end_dialogs(window: QWidget) -> None:
    """End all dialogs of a window that closes."""
    for dialog in window.findChildren(QDialog):
        if dialog.isVisible():
            dialog.reject()

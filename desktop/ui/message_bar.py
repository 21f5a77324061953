"""One sentence above the document, with what can be done about it."""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor, QGuiApplication, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QPushButton

from desktop.ui.about import versions_text
from desktop.ui.guard import guarded
from desktop.ui.pages import button, lay_out, quiet, row, set_up

_STRIPE = {"problem": "#d55e00", "notice": "#0072b2"}
_WIDTH = 5  # pixels


class MessageBar(QFrame):
    """A sentence, an optional action, folded details, Copy and Dismiss.

    The colour of the stripe tells the kind, and so does the word before the sentence.
    """

    acted = Signal()
    dismissed = Signal()

    def __init__(self, kind: Literal["problem", "notice"]) -> None:
        super().__init__()
        self.setObjectName(f"{kind}_bar")
        self._stripe = QColor(_STRIPE[kind])
        set_up(self, autoFillBackground=True, backgroundRole=QPalette.ColorRole.Base)
        self._sentence = quiet(textFormat=Qt.TextFormat.PlainText)
        self._details = set_up(QPlainTextEdit(), readOnly=True, accessibleName="Details")
        self._details.setMaximumHeight(12 * self.fontMetrics().height())
        self._details.hide()
        self._fold = set_up(QPushButton("Details"), checkable=True, toggled=self._details.setVisible)
        copy = button("Copy", self._copy, "Copy the sentence and its details, with versions")
        self.act = set_up(QPushButton(), clicked=self.acted)
        dismiss = set_up(QPushButton("Dismiss"), clicked=self.dismissed)

        buttons = ((one, 0, Qt.AlignmentFlag.AlignTop) for one in (self.act, self._fold, copy, dismiss))
        lay_out(self, row((self._sentence, 1), *buttons), self._details, margins=(12 + _WIDTH, 8, 8, 8))
        self.hide()

    @property
    def sentence(self) -> str:
        """The text that is shown, without its details."""
        return self._sentence.text()

    def show_message(self, sentence: str, details: str = "", action: str = "") -> None:
        """`action`: what the button beside it says; without one there is none."""
        if (sentence, details) != (self.sentence, self._details.toPlainText()):
            self._sentence.setText(sentence)
            self.setAccessibleName(sentence)
            self._details.setPlainText(details)
            self._fold.setChecked(False)
            self._fold.setVisible(bool(details))
        self.act.setText(action)
        self.act.setVisible(bool(action))
        self.show()

    @guarded
    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            painter.fillRect(0, 0, _WIDTH, self.height(), self._stripe)

    def _copy(self) -> None:
        parts = (self.sentence, self._details.toPlainText().strip(), versions_text())
        QGuiApplication.clipboard().setText("\n\n".join(part for part in parts if part))

"""One sentence above the document, with what can be done about it."""

from __future__ import annotations

import platform
from typing import Literal

import PySide6
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
)

import desktop

_STRIPE = {"problem": "#d55e00", "notice": "#0072b2"}


class MessageBar(QFrame):
    """A sentence, an optional action, folded details, Copy and Dismiss.

    The stripe tells the kind by colour, the word before the sentence tells it to everybody.
    """

    acted = Signal()
    dismissed = Signal()

    def __init__(self, kind: Literal["problem", "notice"], action: str = "") -> None:
        super().__init__()
        self.setObjectName(f"{kind}_bar")
        self.setStyleSheet(
            f"#{kind}_bar {{ border: 0; border-left: 5px solid {_STRIPE[kind]}; background: palette(base); }}"
        )
        self._sentence = QLabel()
        self._sentence.setWordWrap(True)
        self._sentence.setTextFormat(Qt.TextFormat.PlainText)
        self._sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._details = QPlainTextEdit()
        self._details.setReadOnly(True)
        self._details.setAccessibleName(self.tr("Details"))
        self._details.setMaximumHeight(12 * self.fontMetrics().height())
        self._details.hide()
        self._fold = QPushButton(self.tr("Details"))
        self._fold.setCheckable(True)
        self._fold.toggled.connect(self._details.setVisible)
        copy = QPushButton(self.tr("Copy"))
        copy.setToolTip(self.tr("Copy the sentence and its details, with versions"))
        copy.clicked.connect(self._copy)
        act = QPushButton(action)
        act.setVisible(bool(action))
        act.clicked.connect(self.acted)
        dismiss = QPushButton(self.tr("Dismiss"))
        dismiss.clicked.connect(self.dismissed)
        dismiss.clicked.connect(self.hide)

        row = QHBoxLayout()
        row.addWidget(self._sentence, 1)
        for button in (act, self._fold, copy, dismiss):
            row.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 8, 8)
        column.addLayout(row)
        column.addWidget(self._details)
        self.hide()

    @property
    def sentence(self) -> str:
        return self._sentence.text()

    def show_message(self, sentence: str, details: str = "") -> None:
        self._sentence.setText(sentence)
        self.setAccessibleName(sentence)
        self._details.setPlainText(details)
        self._fold.setChecked(False)
        self._fold.setVisible(bool(details))
        self.show()

    def show_problem(self, problem: str) -> None:
        """What is wrong, as errors say it: in lower case and without a full stop; "" if nothing is."""
        if problem:
            self.show_message(f"{problem[:1].upper()}{problem[1:]}.")
        else:
            self.hide()

    def _copy(self) -> None:
        versions = (
            f"Phasewright {desktop.__version__}, Python {platform.python_version()}, "
            f"Qt {PySide6.__version__}, {platform.platform()}"
        )
        parts = (self.sentence, self._details.toPlainText().strip(), versions)
        QGuiApplication.clipboard().setText("\n\n".join(part for part in parts if part))

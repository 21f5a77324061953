"""A line of text that ends in an ellipsis where there is no room for all of it."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel

from desktop.ui.guard import guarded
from desktop.ui.plots.notes import plain


class Elided(QLabel):
    """Its tooltip is the whole text where that does not fit."""

    @guarded(otherwise=QSize)
    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())

    @guarded
    def paintEvent(self, _event: QPaintEvent) -> None:
        text = self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideRight, self.width())
        self.setToolTip("" if text == self.text() else plain(self.text()))
        with QPainter(self) as painter:
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)

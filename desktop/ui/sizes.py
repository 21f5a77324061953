"""Sizes of windows: from the text, as far as the screen allows."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QWidget


def fitting(widget: QWidget, width: float, height: float) -> QSize:
    """A size in heights of the text, as far as the screen allows."""
    em, room = widget.fontMetrics().height(), widget.screen().availableSize()
    most = QSize(int(0.92 * room.width()), int(0.88 * room.height()))
    return QSize(int(width * em), int(height * em)).boundedTo(most)

"""What the pages of windows are put together from."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QVBoxLayout, QWidget


def heading(text: str, factor: float) -> QLabel:
    """Bold, and so many times as large as other text."""
    label = QLabel(text)
    font = label.font()
    font.setPointSizeF(factor * font.pointSizeF())
    font.setBold(True)
    label.setFont(font)
    return label


def first_page(title: str, *parts: QLabel) -> tuple[QWidget, QVBoxLayout]:
    """What a window shows while nothing is open: what it is for. Below that comes what can be done."""
    page = QWidget()
    layout = QVBoxLayout(page)
    layout.setContentsMargins(48, 36, 48, 24)
    layout.setSpacing(12)
    for part in (heading(title, 2.0), *parts):
        layout.addWidget(part)
    return page, layout


def quiet(text: str = "") -> QLabel:
    """A paragraph."""
    label = QLabel(text)
    label.setWordWrap(True)
    return label


def scrolled(page: QWidget) -> QScrollArea:
    """A page that scrolls where it has less room than its texts need."""
    area = QScrollArea()
    area.setWidget(page)
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    return area


def column(*widgets: QWidget) -> QWidget:
    """Widgets above each other without margins; the last takes the room."""
    holder = QWidget()
    layout = QVBoxLayout(holder)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(1)
    for widget in widgets:
        layout.addWidget(widget)
    layout.setStretch(len(widgets) - 1, 1)
    return holder

"""What the pages of windows are put together from."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QRect, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QVBoxLayout, QWidget

from desktop.ui.guard import guarded


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


class Floating(QWidget):
    """A page, and above its upper edge bars that come and go: the page stays where it is below them.

    What is under the pointer would otherwise be somewhere else when the user clicks.
    """

    def __init__(self, page: QWidget, *bars: QWidget, area: Callable[[], QRect] | None = None) -> None:
        """`area`: the part of it that the bars lie above; None: all of it."""
        super().__init__()
        self._area = area
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(page)
        self._over = column(*bars)
        self._over.setParent(self)
        self._over.installEventFilter(self)
        self.place()

    def place(self) -> None:
        """Put the bars at the upper edge of their area."""
        layout = self._over.layout()
        assert layout is not None
        area = self.rect() if self._area is None else self._area()
        wide = area.width()
        high = layout.heightForWidth(wide) if layout.hasHeightForWidth() else layout.sizeHint().height()
        self._over.setGeometry(area.x(), area.y(), wide, high)
        self._over.raise_()

    @guarded
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.place()

    @guarded(otherwise=bool)
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self.place()
        return super().eventFilter(watched, event)

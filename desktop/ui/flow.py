"""A row of widgets that goes on in further rows where it has too little room."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget

from desktop.ui.guard import guarded


class Flow(QLayout):
    """From left to right and from top to bottom, each at the size that it asks for."""

    def __init__(self) -> None:
        super().__init__()
        self._items: list[QLayoutItem] = []
        self.setContentsMargins(0, 0, 0, 0)

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._place(QRect(0, 0, width, 0), move=False)

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        self._place(rect, move=True)

    @guarded(otherwise=QSize)
    def sizeHint(self) -> QSize:
        hints = [item.sizeHint() for item in self._items]
        wide = sum(hint.width() for hint in hints) + self.spacing() * max(len(hints) - 1, 0)
        return QSize(wide, max((hint.height() for hint in hints), default=0))

    def minimumSize(self) -> QSize:
        least = QSize()
        for item in self._items:
            least = least.expandedTo(item.minimumSize())
        return least

    def _place(self, rect: QRect, *, move: bool) -> int:
        """Put all in rows within `rect`; the height of these, pixels."""
        top, row, right = rect.y(), list[tuple[QLayoutItem, QRect]](), rect.x()

        def end() -> int:
            """All of a row in its middle; its height."""
            high = max((place.height() for _, place in row), default=0)
            for item, place in row if move else ():
                item.setGeometry(place.translated(0, (high - place.height()) // 2))
            return high

        for item in self._items:
            if item.isEmpty():  # hidden
                continue
            hint = item.sizeHint()
            if row and right + hint.width() > rect.x() + rect.width():
                top, right = top + end() + self.spacing(), rect.x()
                row.clear()
            row.append((item, QRect(QPoint(right, top), hint)))
            right += hint.width() + self.spacing()
        return top + end() - rect.y()


def flowing(*widgets: QWidget) -> tuple[QWidget, Flow]:
    """A widget in which others flow, as high as they need it, and its layout."""
    holder, flow = QWidget(), Flow()
    flow.setSpacing(6)
    holder.setLayout(flow)
    policy = holder.sizePolicy()
    policy.setHeightForWidth(True)
    holder.setSizePolicy(policy)
    for widget in widgets:
        flow.addWidget(widget)
    return holder, flow

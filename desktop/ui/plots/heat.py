"""A map of values over rows and columns: colour, number, name on hover; moved in with the arrow keys."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QContextMenuEvent, QImage, QKeyEvent, QMouseEvent, QPainter, QPen
from PySide6.QtWidgets import QToolTip, QWidget

from desktop.ui.plots import plot_menu
from desktop.ui.theme import LIGHT, Theme, paint_focus, paint_note
from desktop.ui.units import digits

#: Cividis at 0, 1/8, ... 1: even in lightness, alike for the colour-blind.
_SCALE = (
    (0, 34, 78), (18, 53, 112), (59, 73, 109), (87, 93, 109), (112, 113, 115), (138, 134, 120),
    (165, 156, 116), (195, 179, 105), (254, 232, 56),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class HeatContent:
    """`values` (rows, columns), NaN: nothing there. `selected`: (row, column). `empty`: said if all NaN."""

    title: str
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    values: NDArray[np.float64] | None = None
    selected: tuple[int, int] | None = None
    empty: str = ""
    whole: bool = False


def heat_colour(part: float) -> QColor:
    """Of a value at `part` (0 to 1) of the range."""
    place = min(max(part, 0.0), 1.0) * (len(_SCALE) - 1)
    k = min(int(place), len(_SCALE) - 2)
    a, b, t = _SCALE[k], _SCALE[k + 1], place - k
    return QColor(*(round(x + (y - x) * t) for x, y in zip(a, b, strict=True)))


class HeatMap(QWidget):
    """Draws a `HeatContent`; emits the cell that is clicked, or chosen with Return."""

    clicked = Signal(int, int)

    def __init__(self, name: str) -> None:
        super().__init__()
        self._content = HeatContent("")
        self._theme: Theme = LIGHT
        self._at: tuple[int, int] | None = None
        self.setAccessibleName(name)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def set_content(self, content: HeatContent, description: str = "") -> None:
        self._content = content
        self._at = None
        self.setAccessibleDescription(description)
        self.update()

    @property
    def content(self) -> HeatContent:
        return self._content

    def table(self) -> Iterable[plot_menu.Row]:
        content = self._content
        yield content.title, *content.columns
        values = [] if content.values is None else content.values.tolist()
        for name, row in zip(content.rows, values, strict=False):
            yield name, *row

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        plot_menu.popup(self, event)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(26 * em, 17 * em)

    def minimumSizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(12 * em, 7 * em)

    # ---- geometry

    def cell_rect(self, row: int, column: int) -> QRectF:
        area = self._area()
        wide, high = area.width() / len(self._content.columns), area.height() / len(self._content.rows)
        return QRectF(area.left() + column * wide, area.top() + row * high, wide, high)

    def _area(self) -> QRectF:
        metrics = self.fontMetrics()
        em = metrics.height()
        left = min(max(map(metrics.horizontalAdvance, self._content.rows), default=0), self.width() // 3)
        high = 2.2 * em
        return QRectF(
            left + 1.4 * em, 1.9 * em, self.width() - left - 2.4 * em, self.height() - 1.9 * em - high
        )

    def _cell_at(self, place: QPointF) -> tuple[int, int] | None:
        content = self._content
        if content.values is None:
            return None
        area = self._area()
        if not area.contains(place):
            return None
        row = int((place.y() - area.top()) / area.height() * len(content.rows))
        column = int((place.x() - area.left()) / area.width() * len(content.columns))
        return min(row, len(content.rows) - 1), min(column, len(content.columns) - 1)

    # ---- mouse and keys

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._point_at(self._cell_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:
        self._point_at(None)
        super().leaveEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        cell = self._cell_at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and cell is not None:
            self.clicked.emit(*cell)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Arrows move, Return chooses."""
        steps = {
            Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1),
            Qt.Key.Key_Up: (-1, 0), Qt.Key.Key_Down: (1, 0),
        }  # fmt: skip
        step = steps.get(Qt.Key(event.key()))
        content = self._content
        if step is not None and content.values is not None:
            row, column = self._at or content.selected or (0, 0)
            if self._at is not None or content.selected is not None:
                row, column = row + step[0], column + step[1]
            self._point_at((row % len(content.rows), column % len(content.columns)))
        elif self._at is not None and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Space):
            self.clicked.emit(*self._at)
        else:
            super().keyPressEvent(event)

    def _point_at(self, cell: tuple[int, int] | None) -> None:
        if cell == self._at:
            return
        self._at = cell
        if cell is None:
            QToolTip.hideText()
        else:
            place = self.cell_rect(*cell).center().toPoint()
            QToolTip.showText(self.mapToGlobal(place), self.told(*cell), self)
        self.update()

    def told(self, row: int, column: int) -> str:
        """A cell in words."""
        content = self._content
        assert content.values is not None
        value = content.values[row, column]
        said = "nothing there" if math.isnan(value) else self._number(value)
        return f"{content.rows[row]} on {content.columns[column]}\n{content.title}: {said}"

    def _number(self, value: float) -> str:
        return f"{value:.0f}" if self._content.whole else digits(value, 3)

    # ---- painting

    def paintEvent(self, _event: QEvent) -> None:
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(self._theme.background))
            values = self._content.values
            if values is None or not np.isfinite(values).any():
                paint_note(painter, self, self._theme, self._content.empty)
            else:
                self._paint_cells(painter, values)
            paint_focus(painter, self, self._theme)

    def _paint_cells(self, painter: QPainter, values: NDArray[np.float64]) -> None:
        content, theme, metrics = self._content, self._theme, self.fontMetrics()
        em, area = metrics.height(), self._area()
        known = values[np.isfinite(values)]
        low, high = min(0.0, float(known.min())), float(known.max())
        painter.setPen(QColor(theme.text))
        title = QRectF(area.left(), 0.3 * em, area.width(), 1.3 * em)
        painter.drawText(
            title, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), content.title
        )
        for row, name in enumerate(content.rows):
            box = self.cell_rect(row, 0)
            text = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, int(area.left() - em))
            label = QRectF(0.4 * em, box.top(), area.left() - 0.9 * em, box.height())
            if box.height() >= 0.8 * em:
                painter.setPen(QColor(theme.text))
                painter.drawText(
                    label, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), text
                )
            for column in range(len(content.columns)):
                self._paint_cell(painter, row, column, values[row, column], low, high)
        for column, name in enumerate(content.columns):
            box = self.cell_rect(0, column)
            if box.width() < 2 * em:
                continue
            painter.setPen(QColor(theme.text))
            text = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, int(box.width() - 4))
            below = QRectF(box.left(), area.bottom() + 0.4 * em, box.width(), 1.3 * em)
            painter.drawText(below, Qt.AlignmentFlag.AlignCenter, text)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        # A frame that is seen on every colour: the ground's inside the selection's.
        for cell, colour, width, inset in (
            (content.selected, theme.selection, 3.0, 0.5), (content.selected, theme.background, 1.5, 2.5),
            (self._at, theme.text, 1.5, 1.0),
        ):  # fmt: skip
            if cell is not None:
                painter.setPen(QPen(QColor(colour), width))
                painter.drawRect(self.cell_rect(*cell).adjusted(inset, inset, -inset, -inset))

    def _paint_cell(
        self, painter: QPainter, row: int, column: int, value: float, low: float, high: float
    ) -> None:
        theme, metrics = self._theme, self.fontMetrics()
        box = self.cell_rect(row, column).adjusted(1, 1, -1, -1)
        if math.isnan(value):
            painter.fillRect(box, QColor(theme.surface))
            painter.fillRect(box, Qt.BrushStyle.BDiagPattern)
            return
        colour = heat_colour((value - low) / (high - low) if high > low else 0.5)
        painter.fillRect(box, colour)
        text = self._number(value)
        if box.width() > metrics.horizontalAdvance(text) and box.height() >= metrics.height():
            painter.setPen(QColor("#ffffff" if colour.lightnessF() < 0.5 else "#101010"))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)

    def picture(self, scale: float = 2.0) -> QImage:
        """The map at `scale` times its size, on white whatever the theme."""
        theme, self._theme = self._theme, self._theme.on_white
        image = QImage(self.size() * scale, QImage.Format.Format_RGB32)
        image.setDevicePixelRatio(scale)
        try:
            self.render(image)
        finally:
            self._theme = theme
        return image

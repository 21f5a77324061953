"""Mean responses at the corners of a cube of three factors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from PySide6.QtCore import QLineF, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QContextMenuEvent, QPainter, QPen
from PySide6.QtWidgets import QWidget

from desktop.ui.plots import plot_menu
from desktop.ui.theme import LIGHT, Theme, paint_focus, paint_note
from desktop.ui.units import digits

Corner = tuple[int, int, int]
CORNERS: tuple[Corner, ...] = tuple((a, b, c) for c in (-1, 1) for b in (-1, 1) for a in (-1, 1))


class CubePlot(QWidget):
    """Draws the cube; corners that were not run show a dash."""

    HELP = "spt.md#4-read"

    def __init__(self) -> None:
        super().__init__()
        self._theme: Theme = LIGHT
        self._names: tuple[str, str, str] = ("", "", "")
        self._means: Mapping[Corner, float] = {}
        self._unit = ""
        self._empty = ""
        self.setAccessibleName("Cube plot")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def show_cube(
        self, names: tuple[str, str, str], means: Mapping[Corner, float], unit: str, empty: str = ""
    ) -> None:
        """Other factors or means; `empty` is said instead of a cube."""
        self._names, self._means, self._unit, self._empty = names, means, unit, empty
        words = [
            " ".join(f"{n} {'+' if v > 0 else '−'}" for n, v in zip(names, corner, strict=True))
            + f": {digits(means.get(corner, math.nan))} {unit}"
            for corner in CORNERS
        ]
        self.setAccessibleDescription(empty or "; ".join(words))
        self.setToolTip("" if empty else "\n".join(words))
        self.update()

    def table(self) -> Iterable[plot_menu.Row]:
        yield *self._names, f"mean ({self._unit})" if self._unit else "mean"
        for corner in CORNERS:
            yield *corner, self._means.get(corner, math.nan)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        plot_menu.popup(self, event)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(em * 26, em * 17)

    def minimumSizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(em * 14, em * 10)

    def _place(self, corner: Corner) -> QPointF:
        em = self.fontMetrics().height()
        wide, high = self.width() - 9.0 * em, self.height() - 5.0 * em
        side = max(4.0 * em, min(wide / 1.4, high / 1.4))
        left = (self.width() - 1.4 * side) / 2
        top = (self.height() - em - 1.4 * side) / 2
        a, b, c = ((v + 1) / 2 for v in corner)
        return QPointF(left + side * (a + 0.4 * c), top + side * (1.4 - b - 0.4 * c))

    def paintEvent(self, _event: object) -> None:
        t, em = self._theme, self.fontMetrics().height()
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(t.background))
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            if self._empty:
                paint_note(painter, self, t, self._empty)
                return
            for corner in CORNERS:
                for axis in range(3):
                    if corner[axis] < 0:
                        other = tuple(1 if k == axis else v for k, v in enumerate(corner))
                        hidden = (axis != 2 and corner[2] > 0) or axis == 2
                        style = Qt.PenStyle.DotLine if hidden else Qt.PenStyle.SolidLine
                        painter.setPen(QPen(QColor(t.border), 1.2, style))
                        end = self._place((other[0], other[1], other[2]))
                        painter.drawLine(QLineF(self._place(corner), end))
            known = [v for v in self._means.values() if math.isfinite(v)]
            low, high = (min(known), max(known)) if known else (0.0, 0.0)
            metrics = self.fontMetrics()
            for corner in CORNERS:
                value = self._means.get(corner, math.nan)
                text = digits(value)
                p = self._place(corner)
                width = metrics.horizontalAdvance(text) + 0.9 * em
                box = QRectF(p.x() - width / 2, p.y() - 0.8 * em, width, 1.6 * em)
                part = (value - low) / (high - low) if math.isfinite(value) and high > low else 0.0
                fill = QColor(t.computing)
                fill.setAlphaF(0.15 + 0.85 * part)
                painter.setPen(QPen(QColor(t.text if part == 1.0 else t.border), 1.2))
                painter.setBrush(QColor(t.background))
                painter.drawRoundedRect(box, 4, 4)
                painter.setBrush(fill)
                painter.drawRoundedRect(box, 4, 4)
                painter.setPen(QColor(t.text))
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
            painter.setPen(QColor(t.text))
            self._axis(painter, (-1, -1, -1), (1, -1, -1), self._names[0], QPointF(0, 1.5 * em))
            self._axis(painter, (-1, -1, -1), (-1, 1, -1), self._names[1], QPointF(-3.2 * em, 0))
            self._axis(painter, (1, -1, -1), (1, -1, 1), self._names[2], QPointF(3.0 * em, 0.6 * em))
            paint_focus(painter, self, t)

    def _axis(self, painter: QPainter, a: Corner, b: Corner, name: str, shift: QPointF) -> None:
        """The name beside an edge, with an arrow that points to +."""
        middle = QLineF(self._place(a), self._place(b)).center() + shift
        arrow = {True: "→ +"}.get(a[0] != b[0], "↑ +" if a[1] != b[1] else "↗ +")
        box = QRectF(middle.x() - 150, middle.y() - 12, 300, 24)
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, f"{name} {arrow}")

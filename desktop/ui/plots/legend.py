"""A row of colour samples with their names; those that can be switched are clicked."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QLinearGradient, QPainter, QPen

from desktop.ui.theme import Theme


@dataclass(frozen=True)
class Entry:
    """One sample. `key`: what a click switches ("" nothing); `shown`: else it is hollow; `sample` is
    "area", "line" (as the fit), "tick" (upright), "break" (a line in its tinted range), "many" (an area
    with a stripe) or "ramp" (from the colour to the second)."""

    label: str
    colour: QColor
    key: str = ""
    shown: bool = True
    sample: str = "area"
    second: QColor | None = None


class Legend:
    """Paints entries from left to right as far as they fit, and knows which one lies where."""

    def __init__(self) -> None:
        self._places: list[tuple[QRectF, str]] = []

    def paint(self, painter: QPainter, row: QRectF, entries: list[Entry], theme: Theme) -> float:
        """The logical x at which the row is free again."""
        self._places.clear()
        metrics = painter.fontMetrics()
        em, x, y = metrics.height(), row.left(), row.center().y()
        for entry in entries:
            wide = em if entry.sample in ("line", "break") else em * (2 if entry.sample == "ramp" else 0.7)
            w = wide + 5 + metrics.horizontalAdvance(entry.label)
            if x + w > row.right():
                break
            self._sample(painter, entry, QRectF(x, y - em * 0.35, wide, em * 0.7), theme)
            painter.setPen(QColor(theme.text if entry.shown else theme.muted))
            at = QRectF(x + wide + 5, row.top(), w, row.height())
            painter.drawText(at, Qt.AlignmentFlag.AlignVCenter, entry.label)
            self._places.append((QRectF(x - 3, row.top(), w + 6, row.height()), entry.key))
            x += w + em
        return x

    def key_at(self, p: QPointF) -> str:
        """What a click at a place switches; "" if nothing."""
        return next((key for place, key in self._places if place.contains(p)), "")

    @staticmethod
    def _sample(painter: QPainter, entry: Entry, r: QRectF, theme: Theme) -> None:
        y = r.center().y()
        if entry.sample == "line":
            painter.setPen(QPen(entry.colour, 2))
            painter.drawLine(QLineF(r.left(), y, r.right(), y))
            return
        if entry.sample == "tick":
            painter.setPen(QPen(entry.colour, 2))
            painter.drawLine(QLineF(r.center().x(), r.top(), r.center().x(), r.bottom()))
            return
        if entry.sample == "break":
            tint = QColor(entry.second or entry.colour)
            tint.setAlpha(60)
            painter.fillRect(r, tint)
            painter.setPen(QPen(entry.colour, 1))
            painter.drawLine(QLineF(r.center().x(), r.top(), r.center().x(), r.bottom()))
            return
        if entry.sample == "ramp":
            ramp = QLinearGradient(r.topLeft(), r.topRight())
            ramp.setColorAt(0, entry.colour)
            ramp.setColorAt(1, entry.second or entry.colour)
            painter.fillRect(r, ramp)
            return
        painter.setPen(QPen(QColor(theme.border), 0))
        painter.setBrush(entry.colour if entry.shown else Qt.BrushStyle.NoBrush)
        painter.drawRect(QRectF(r.left() + 0.5, r.top(), r.width(), r.height()))
        if entry.sample == "many" and entry.second is not None:
            stripe = QRectF(r.left() + 1, r.bottom() - r.height() * 0.3, r.width() - 1, r.height() * 0.3)
            painter.fillRect(stripe, entry.second)

"""A row of colour samples with their names; those that can be switched are clicked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QLinearGradient, QPainter, QPen

from desktop.core.density import LEAST_INK, MOST_INK
from desktop.core.gantt import NO_REGION, OTHER_REGION
from desktop.core.labels import ACTIVITIES
from desktop.ui.plots.raster import mix
from desktop.ui.theme import Theme, faded
from desktop.workbench import time_plots

#: Shares of the fill between mean and maximum, and between minimum and mean; of the residual's.
FAINT, HALF, LEFT = 0.32, 0.6, 0.42


@dataclass(frozen=True)
class LegendItem:
    """One sample. `key`: what a click switches ("" nothing); `shown`: else it is hollow; `sample` is
    "area", "line" (as the fit), "tick" (upright), "breakpoint" (a line in its tinted range), "bar" (a line
    between two ends), "many" (an area with a stripe) or "ramp" (from the colour to the second)."""

    label: str
    colour: QColor
    key: str = ""
    shown: bool = True
    sample: str = "area"
    second: QColor | None = None


@lru_cache(4)
def samples(theme: Theme) -> dict[str, LegendItem]:
    """How the window draws the inks of a plot's description."""
    t, ground = theme, theme.background
    items = {name: LegendItem("", QColor(getattr(t, name))) for name in ACTIVITIES}
    share = 0.78 if t.dark else 0.85
    for k, colour in enumerate(t.regions):
        items[f"shade {k}"] = LegendItem("", mix(colour, ground, share))
    items[f"shade {NO_REGION}"] = LegendItem("", mix(t.border, ground, 0.25))
    items[f"shade {OTHER_REGION}"] = LegendItem("", QColor(t.muted))
    return items | {
        "extremes": LegendItem(
            "", mix(t.computing, ground, FAINT), sample="many", second=mix(t.computing, ground, HALF)
        ),
        "fit": LegendItem("", QColor(t.fit), sample="line"),
        "break": LegendItem("", QColor(t.breakpoint), sample="breakpoint", second=QColor(t.band)),
        "firm": LegendItem("", QColor(t.breakpoint), sample="bar"),
        "residual": LegendItem("", QColor(t.residual), sample="line"),
        "residual extremes": LegendItem("", mix(t.residual, ground, LEFT)),
        "rms": LegendItem("", QColor(t.fit), sample="line"),
        "predicted": LegendItem("", QColor(t.selection), sample="line"),
        "message": LegendItem("", QColor(t.text), sample="line"),
        "density": LegendItem(
            "", mix(t.text, ground, LEAST_INK), sample="ramp", second=mix(t.text, ground, MOST_INK)
        ),
        "collective": LegendItem("", QColor(t.selection), sample="tick"),
        "path": LegendItem("", QColor(t.fit), sample="line"),
    }


def entries(described: Iterable[time_plots.LegendData], theme: Theme) -> list[LegendItem]:
    """The lines of a described legend as the window draws them."""
    styles = samples(theme)
    return [replace(styles[e.ink], label=e.words, key=e.key, shown=e.shown) for e in described]


class Legend:
    """Paints entries from left to right as far as they fit, and knows which one lies where."""

    def __init__(self) -> None:
        self._places: list[tuple[QRectF, str]] = []

    @staticmethod
    def width(metrics: QFontMetrics, entries: list[LegendItem]) -> float:
        """Logical pixels that all entries take."""
        em = metrics.height()
        return sum(_wide(e, em) + 5 + metrics.horizontalAdvance(e.label) + em for e in entries)

    def paint(self, painter: QPainter, row: QRectF, entries: list[LegendItem], theme: Theme) -> float:
        """Paint the entries into a row; returns the logical x at which they end."""
        self._places.clear()
        metrics = painter.fontMetrics()
        em, x, y = metrics.height(), row.left(), row.center().y()
        for entry in entries:
            wide = _wide(entry, em)
            w = wide + 5 + metrics.horizontalAdvance(entry.label)
            if x + w > row.right():
                break
            self._sample(painter, entry, QRectF(x, y - em * 0.35, wide, em * 0.7), theme)
            painter.setPen(QColor(theme.text if entry.shown else theme.muted))
            box = QRectF(x + wide + 5, row.top(), w, row.height())
            painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, entry.label)
            self._places.append((QRectF(x - 3, row.top(), w + 6, row.height()), entry.key))
            x += w + em
        return x

    def key_at(self, p: QPointF) -> str:
        """What a click at a place switches; "" if nothing."""
        return next((key for place, key in self._places if place.contains(p)), "")

    @staticmethod
    def _sample(painter: QPainter, entry: LegendItem, r: QRectF, theme: Theme) -> None:
        y = r.center().y()
        if entry.sample == "line":
            painter.setPen(QPen(entry.colour, 2))
            painter.drawLine(QLineF(r.left(), y, r.right(), y))
            return
        if entry.sample == "tick":
            painter.setPen(QPen(entry.colour, 2))
            painter.drawLine(QLineF(r.center().x(), r.top(), r.center().x(), r.bottom()))
            return
        if entry.sample == "breakpoint":
            painter.fillRect(r, faded(entry.second or entry.colour, 60))
            painter.setPen(QPen(entry.colour, 1))
            painter.drawLine(QLineF(r.center().x(), r.top(), r.center().x(), r.bottom()))
            return
        if entry.sample == "bar":
            painter.setPen(QPen(entry.colour, 1.6))
            ends = [QLineF(x, r.top() + 1, x, r.bottom() - 1) for x in (r.left() + 1, r.right() - 1)]
            painter.drawLines([QLineF(r.left() + 1, y, r.right() - 1, y), *ends])
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


def _wide(entry: LegendItem, em: float) -> float:
    """Of its sample."""
    return em * {"line": 1, "breakpoint": 1, "bar": 1, "ramp": 2}.get(entry.sample, 0.7)

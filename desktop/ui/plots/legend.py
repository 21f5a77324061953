"""A row of colour samples with their names; those that can be switched are clicked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QLinearGradient, QPainter, QPen

from desktop.core.density import LEAST_INK, MOST_INK
from desktop.core.gantt import NO_REGION, OTHER_REGION
from desktop.core.labels import ACTIVITIES
from desktop.ui.plots.raster import mix
from desktop.ui.theme import Theme, faded
from desktop.workbench.time_plots import LegendData

#: Shares of the fill between mean and maximum, and between minimum and mean; of the residual's.
FAINT, HALF, LEFT = 0.32, 0.6, 0.42


@dataclass(frozen=True)
class Swatch:
    """How an ink looks: `shape` is "area", "line" (as the fit), "tick" (upright), "breakpoint" (a line in its
    tinted range), "bar" (a line between two ends), "many" (an area with a stripe) or "ramp" (from the colour
    to the second)."""

    colour: QColor
    shape: str = "area"
    second: QColor | None = None

    @property
    def width(self) -> float:
        """In heights of the text."""
        return {"line": 1, "breakpoint": 1, "bar": 1, "ramp": 2}.get(self.shape, 0.7)


@lru_cache(4)
def samples(theme: Theme) -> dict[str, Swatch]:
    """How the window draws the inks of a plot's description."""
    t, ground = theme, theme.background
    items = {name: Swatch(QColor(getattr(t, name))) for name in ACTIVITIES}
    share = 0.78 if t.dark else 0.85
    for k, colour in enumerate(t.regions):
        items[f"shade {k}"] = Swatch(mix(colour, ground, share))
    items[f"shade {NO_REGION}"] = Swatch(mix(t.border, ground, 0.25))
    items[f"shade {OTHER_REGION}"] = Swatch(QColor(t.muted))
    return items | {
        "extremes": Swatch(mix(t.computing, ground, FAINT), "many", mix(t.computing, ground, HALF)),
        "fit": Swatch(QColor(t.fit), "line"),
        "break": Swatch(QColor(t.breakpoint), "breakpoint", QColor(t.band)),
        "firm": Swatch(QColor(t.breakpoint), "bar"),
        "residual": Swatch(QColor(t.residual), "line"),
        "residual extremes": Swatch(mix(t.residual, ground, LEFT)),
        "rms": Swatch(QColor(t.fit), "line"),
        "predicted": Swatch(QColor(t.selection), "line"),
        "message": Swatch(QColor(t.text), "line"),
        "density": Swatch(mix(t.text, ground, LEAST_INK), "ramp", mix(t.text, ground, MOST_INK)),
        "collective": Swatch(QColor(t.selection), "tick"),
        "path": Swatch(QColor(t.fit), "line"),
    }


class Legend:
    """Paints entries from left to right as far as they fit, and knows which one lies where."""

    def __init__(self) -> None:
        self._places: list[tuple[QRectF, str]] = []

    @staticmethod
    def width(metrics: QFontMetrics, entries: Sequence[LegendData], theme: Theme) -> float:
        """Logical pixels that all entries take."""
        em, looks = metrics.height(), samples(theme)
        return sum(em * looks[e.ink].width + 5 + metrics.horizontalAdvance(e.words) + em for e in entries)

    def paint(self, painter: QPainter, row: QRectF, entries: Sequence[LegendData], theme: Theme) -> float:
        """Paint the entries into a row; returns the logical x at which they end."""
        self._places.clear()
        metrics = painter.fontMetrics()
        em, x, y = metrics.height(), row.left(), row.center().y()
        for entry in entries:
            sample = samples(theme)[entry.ink]
            wide = em * sample.width
            w = wide + 5 + metrics.horizontalAdvance(entry.words)
            if x + w > row.right():
                break
            place = QRectF(x, y - em * 0.35, wide, em * 0.7)
            self._paint_sample(painter, sample, place, theme, filled=entry.shown)
            painter.setPen(QColor(theme.text if entry.shown else theme.muted))
            box = QRectF(x + wide + 5, row.top(), w, row.height())
            painter.drawText(box, Qt.AlignmentFlag.AlignVCenter, entry.words)
            self._places.append((QRectF(x - 3, row.top(), w + 6, row.height()), entry.key))
            x += w + em
        return x

    def key_at(self, p: QPointF) -> str:
        """What a click at a place switches; "" if nothing."""
        return next((key for place, key in self._places if place.contains(p)), "")

    @staticmethod
    def _paint_sample(painter: QPainter, sample: Swatch, r: QRectF, theme: Theme, *, filled: bool) -> None:
        y = r.center().y()
        if sample.shape == "line":
            painter.setPen(QPen(sample.colour, 2))
            painter.drawLine(QLineF(r.left(), y, r.right(), y))
            return
        if sample.shape == "tick":
            painter.setPen(QPen(sample.colour, 2))
            painter.drawLine(QLineF(r.center().x(), r.top(), r.center().x(), r.bottom()))
            return
        if sample.shape == "breakpoint":
            painter.fillRect(r, faded(sample.second or sample.colour, 60))
            painter.setPen(QPen(sample.colour, 1))
            painter.drawLine(QLineF(r.center().x(), r.top(), r.center().x(), r.bottom()))
            return
        if sample.shape == "bar":
            painter.setPen(QPen(sample.colour, 1.6))
            ends = [QLineF(x, r.top() + 1, x, r.bottom() - 1) for x in (r.left() + 1, r.right() - 1)]
            painter.drawLines([QLineF(r.left() + 1, y, r.right() - 1, y), *ends])
            return
        if sample.shape == "ramp":
            ramp = QLinearGradient(r.topLeft(), r.topRight())
            ramp.setColorAt(0, sample.colour)
            ramp.setColorAt(1, sample.second or sample.colour)
            painter.fillRect(r, ramp)
            return
        painter.setPen(QPen(QColor(theme.border), 0))
        painter.setBrush(sample.colour if filled else Qt.BrushStyle.NoBrush)
        painter.drawRect(QRectF(r.left() + 0.5, r.top(), r.width(), r.height()))
        if sample.shape == "many" and sample.second is not None:
            stripe = QRectF(r.left() + 1, r.bottom() - r.height() * 0.3, r.width() - 1, r.height() * 0.3)
            painter.fillRect(stripe, sample.second)

"""Annotations in a plot over time: a flag at an instant, a band over a range, with as much text as fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen

from desktop.ui.plots.scales import TimeMap
from desktop.ui.theme import Theme
from desktop.workbench.model import Annotation
from desktop.workbench.presenting import marks

if TYPE_CHECKING:
    from desktop.data.material import Mark

#: After the Okabe-Ito set, told apart by the colour-blind; orange and sky blue are darker than there,
#: so that lines are seen on every ground. The text stands on the theme's own ground beside it.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b97f00", "#2c90cc", "#8c6d1f", "#7f7f7f")
COLOUR_NAMES = ("Blue", "Vermilion", "Green", "Purple", "Orange", "Sky blue", "Brown", "Grey")
#: Rows of flags above each other, and characters of text at most.
ROWS, CHARACTERS = 4, 28


#: The row of a location in a plot of rows, None where it is out of view.
RowOf = Callable[[int], QRectF | None]


def plain(text: str) -> str:
    """A text for a tip, wrapped; what looks like markup in it is none."""
    return f"<p>{escape(text).replace(chr(10), '<br>')}</p>"


@dataclass(frozen=True)
class Flag:
    """An annotation where it is drawn; `index` is its place in the project, `row` the only row it is in.
    `full_text` is all of its text, after the name of its location."""

    index: int
    note: Annotation
    box: QRectF
    text: str
    full_text: str
    row: QRectF | None = None


class NoteItems:
    """The annotations of a plot; hidden ones are not drawn."""

    def __init__(self) -> None:
        self._notes: tuple[Annotation, ...] = ()
        self._locations: tuple[str, ...] = ()
        self._flags: list[Flag] = []

    def set(self, notes: Sequence[Annotation], locations: Sequence[str] = ()) -> None:
        """Draw these annotations; `locations`: the names that theirs refer to."""
        self._notes, self._locations = tuple(notes), tuple(locations)

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The annotations that are drawn, as figures take them."""
        return marks(self._notes, self._locations)

    def at(self, p: QPointF) -> Flag | None:
        """The flag under a place, as it was painted last."""
        return next((flag for flag in reversed(self._flags) if flag.box.contains(p)), None)

    def place(
        self, m: TimeMap, lane: QRectF, metrics: QFontMetrics, row_of: RowOf | None = None
    ) -> list[Flag]:
        """Flags in the upper part of a lane, one beside or below the other; where there are rows, those on a
        location in its row."""
        high = metrics.height() + 4
        row_ends: dict[int | None, list[float]] = {}
        flags = []
        for index, note in sorted(enumerate(self._notes), key=lambda one: one[1].start_s):
            end = note.start_s if note.end_s is None else note.end_s
            if note.hidden or end < m.a or note.start_s > m.b:
                continue
            band = None if row_of is None or note.location is None else row_of(note.location)
            if row_of is not None and note.location is not None and band is None:
                continue  # the row is not in view
            words = note.text_at(self._locations)
            ends = row_ends.setdefault(None if band is None else note.location, [lane.left() - 1.0] * ROWS)
            left = max(float(m.x(max(note.start_s, m.a))), lane.left())
            row = next((k for k in range(ROWS) if ends[k] < left), None)
            room = lane.right() - left
            # Where all rows are taken the flag is there without its text.
            label = words if band is None else note.text  # its row tells where it is
            text = "" if row is None else " ".join(label.split())[: 4 * CHARACTERS]
            wide = min(room - 14, CHARACTERS * metrics.averageCharWidth())
            text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, int(max(wide, 0)))
            width = metrics.horizontalAdvance(text) + 14 if text else 7
            top = lane.top() + 3 if band is None else min(max(band.top(), lane.top()), lane.bottom() - high)
            box = QRectF(left, top + (row or 0) * (high + 2), width, high)
            if row is not None:
                ends[row] = box.right() + 4
            flags.append(Flag(index, note, box, text, words, band))
        return flags

    def paint(
        self,
        painter: QPainter,
        m: TimeMap,
        lanes: Sequence[QRectF],
        theme: Theme,
        row_of: RowOf | None = None,
    ) -> None:
        """Bands and lines through all lanes, or the row of a location; flags in the first lane, or there."""
        self._flags = self.place(m, lanes[0], painter.fontMetrics(), row_of)
        for flag in self._flags:
            colour = QColor(COLOURS[flag.note.colour])
            tint = QColor(colour)
            tint.setAlpha(44 if theme.dark else 32)
            ends = [flag.note.start_s, *([] if flag.note.end_s is None else [flag.note.end_s])]
            xs = [min(max(float(m.x(t)), lanes[0].left()), lanes[0].right()) for t in ends]
            inside = [x for x, t in zip(xs, ends, strict=True) if m.a <= t <= m.b]
            painter.setPen(QPen(colour, 1.5))
            for lane in lanes if flag.row is None else [flag.row.intersected(lanes[0])]:
                if len(xs) > 1:
                    painter.fillRect(QRectF(xs[0], lane.top(), max(xs[1] - xs[0], 1), lane.height()), tint)
                painter.drawLines([QLineF(x, lane.top(), x, lane.bottom()) for x in inside])
                if flag.row is not None and len(xs) > 1:  # a tint alone is lost in a low row
                    painter.drawLines([QLineF(xs[0], y, xs[1], y) for y in (lane.top(), lane.bottom())])
        ground = QColor(theme.raised)
        ground.setAlpha(235)
        for flag in self._flags:
            colour = QColor(COLOURS[flag.note.colour])
            painter.setPen(QPen(colour, 1))
            painter.setBrush(ground)
            painter.drawRect(flag.box)
            painter.fillRect(QRectF(flag.box.left(), flag.box.top(), 5, flag.box.height()), colour)
            painter.setPen(QColor(theme.text))
            inner = flag.box.adjusted(9, 0, 0, 0)
            painter.drawText(inner, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, flag.text)

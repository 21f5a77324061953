"""Who sends to whom: the matrix of messages of the run, the selection or a phase."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QContextMenuEvent, QImage, QLinearGradient, QPainter, QPen
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QSplitter,
    QToolTip,
    QVBoxLayout,
    QWidget,
)

from desktop.ui.panels import PanelSpec, why_empty
from desktop.ui.plots import plot_menu
from desktop.ui.tables import DESCENDING, Column, FrameView
from desktop.ui.theme import LIGHT, Theme, paint_focus
from desktop.ui.units import grouped, quantity
from desktop.workbench.explaining import Explained
from desktop.workbench.workbench import Snapshot, Workbench

#: Cells a side at most; of more locations, neighbours share a cell.
_CELLS = 512
#: Viridis at five places, dark to bright; on a light ground it is read from bright to dark.
_RAMP = np.array([(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)], float)


def _bytes(value: float) -> str:
    return quantity(float(value), "B")


class Matrix(QWidget):
    """Senders from the top, receivers from the left, brighter is more (logarithmic). The arrow keys go from
    cell to cell; the table beside it says the same."""

    HELP = "guide.md#messages"

    def __init__(self) -> None:
        super().__init__()
        self._theme: Theme = LIGHT
        self._grid = np.zeros((0, 0))
        self._step = 1
        self._names: tuple[str, ...] = ()
        self._unit = "B"
        self._image = QImage()
        self._area = QRectF()
        self._at = (0, 0)  # where the arrow keys are
        self.setAccessibleName(self.tr("Matrix of messages"))
        self.setAccessibleDescription(self.tr("No messages are known."))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)

    def show_pairs(self, sender: Any, receiver: Any, weight: Any, names: tuple[str, ...], unit: str) -> None:
        """Sparse entries by location; receivers that are not known are left out."""
        size = len(names)
        self._step = max(1, math.ceil(size / _CELLS))
        cells = max(1, math.ceil(size / self._step))
        known = receiver >= 0
        grid = np.zeros((cells, cells))
        np.add.at(grid, (sender[known] // self._step, receiver[known] // self._step), weight[known])
        self._grid, self._names, self._unit = grid, names, unit
        self._paint_image()
        busiest = np.unravel_index(int(np.argmax(grid)), grid.shape) if grid.any() else None
        if busiest is not None:
            self._at = int(busiest[0]), int(busiest[1])
            self.setAccessibleDescription(self._told(*self._at))
        self.update()

    def table(self) -> Iterable[plot_menu.Row]:
        """The cells that are not empty."""
        yield self.tr("Sender"), self.tr("Receiver"), self.tr("Bytes" if self._unit == "B" else "Messages")
        for i, j in np.argwhere(self._grid > 0).tolist():
            yield self._span(i), self._span(j), int(self._grid[i, j])

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        plot_menu.popup(self, event)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._paint_image()
        self.update()

    def sizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(em * 18, em * 16)

    def minimumSizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(em * 8, em * 6)

    def _paint_image(self) -> None:
        grid = self._grid
        if not grid.size:
            return
        low, high = self._ends()
        span = math.log(high / low) if high > low else 0.0
        # All alike are drawn as the most.
        part = np.log(np.maximum(grid, low) / low) / span if span else np.ones_like(grid)
        part = np.where(grid > 0, part, -1.0)
        along = part if self._theme.dark else 1 - part
        place = np.clip(along, 0, 1) * (len(_RAMP) - 1)
        k = np.minimum(place.astype(int), len(_RAMP) - 2)
        colour = _RAMP[k] + (place - k)[..., None] * (_RAMP[k + 1] - _RAMP[k])
        ground = QColor(self._theme.background)
        colour[part < 0] = (ground.red(), ground.green(), ground.blue())
        rgb = np.ascontiguousarray(colour.astype(np.uint8))
        image = QImage(rgb.data, grid.shape[1], grid.shape[0], 3 * grid.shape[1], QImage.Format.Format_RGB888)
        self._image = image.copy()

    def paintEvent(self, _event: Any) -> None:
        t, em = self._theme, self.fontMetrics().height()
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(t.background))
            paint_focus(painter, self, t)
            if not self._grid.any():
                painter.setPen(QColor(t.muted))
                flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
                text = (
                    self.tr("No messages in this range.")
                    if self._names
                    else self.tr("No messages are known.")
                )
                painter.drawText(QRectF(self.rect()), int(flags), text)
                return
            scale = self._scale_width()
            side = max(10.0, min(self.width() - 2.6 * em - scale, self.height() - 2.6 * em))
            if self.width() - side - 2.6 * em >= scale:
                self._paint_scale(painter, QRectF(2.2 * em + side + em, 0.6 * em, 0.8 * em, side))
            self._area = QRectF(2.2 * em, 0.6 * em, side, side)
            painter.drawImage(self._area, self._image)
            painter.setPen(QPen(QColor(t.border), 0))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRect(self._area)
            if self.hasFocus():
                painter.setPen(QPen(QColor(t.fit), 2))
                painter.drawRect(self._box(*self._at))
            painter.setPen(QColor(t.text))
            row = QRectF(self._area.left(), self._area.bottom() + 3, side, em * 1.4)
            painter.drawText(row, Qt.AlignmentFlag.AlignCenter, self.tr("Receiver"))
            ends = (self._names[0], self._names[-1])
            painter.setPen(QColor(t.muted))
            metrics = self.fontMetrics()
            if metrics.horizontalAdvance(f"{ends[0]} {ends[1]} Receiver   ") < side:
                painter.drawText(row, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, ends[0])
                painter.drawText(row, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, ends[1])
            painter.setPen(QColor(t.text))
            painter.translate(1.1 * em, self._area.center().y())
            painter.rotate(-90)
            painter.drawText(
                QRectF(-side / 2, -em * 0.8, side, em * 1.4), Qt.AlignmentFlag.AlignCenter, self.tr("Sender")
            )

    def _ends(self) -> tuple[float, float]:
        """The least and the most in a cell that is not empty."""
        entries = self._grid[self._grid > 0]
        return (float(entries.min()), float(entries.max())) if entries.size else (1.0, 1.0)

    def _amount(self, value: float) -> str:
        return _bytes(value) if self._unit == "B" else grouped(value)

    def _scale_width(self) -> float:
        metrics = self.fontMetrics()
        widest = max(metrics.horizontalAdvance(self._amount(v)) for v in self._ends())
        return 2.4 * metrics.height() + widest

    def _paint_scale(self, painter: QPainter, r: QRectF) -> None:
        """What the colours stand for: the least, the most, and between them by the logarithm."""
        t, em = self._theme, self.fontMetrics().height()
        low, high = self._ends()
        ramp = QLinearGradient(r.bottomLeft(), r.topLeft())
        for k, colour in enumerate(_RAMP.astype(int).tolist()):
            part = k / (len(_RAMP) - 1)
            ramp.setColorAt(part if t.dark else 1 - part, QColor(*colour))
        if low == high:  # all alike are drawn as the most
            painter.fillRect(r, QColor(*_RAMP[-1 if t.dark else 0].astype(int).tolist()))
        else:
            painter.fillRect(r, ramp)
        painter.setPen(QPen(QColor(t.border), 0))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(r)
        painter.setPen(QColor(t.text))
        places = [
            (high, r.top() + em / 2),
            (math.sqrt(low * high), r.center().y()),
            (low, r.bottom() - em / 2),
        ]
        if low == high:
            places = places[:1]
        elif r.height() < 4 * em:
            places = places[::2]
        for value, y in places:
            box = QRectF(r.right() + 5, y - em / 2, self.width() - r.right() - 5, em)
            flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
            painter.drawText(box, flags, self._amount(round(value)))

    def keyPressEvent(self, event: Any) -> None:
        key = Qt.Key(event.key())
        steps = {Qt.Key.Key_Left: (0, -1), Qt.Key.Key_Right: (0, 1), Qt.Key.Key_Up: (-1, 0)}
        down, across = (steps | {Qt.Key.Key_Down: (1, 0)}).get(key, (0, 0))
        if (down, across) == (0, 0) or not self._grid.any():
            super().keyPressEvent(event)
            return
        last = self._grid.shape[0] - 1
        self._at = min(max(self._at[0] + down, 0), last), min(max(self._at[1] + across, 0), last)
        self.setAccessibleDescription(self._told(*self._at))
        place = self._box(*self._at).bottomRight().toPoint()
        QToolTip.showText(self.mapToGlobal(place), self._told(*self._at), self)
        self.update()

    def _box(self, i: int, j: int) -> QRectF:
        """Where a cell is drawn."""
        side = self._area.width() / self._grid.shape[0]
        return QRectF(self._area.left() + j * side, self._area.top() + i * side, side, side)

    def mouseMoveEvent(self, event: Any) -> None:
        cell = self._cell(event.position())
        if cell is None:
            QToolTip.hideText()
        else:
            QToolTip.showText(event.globalPosition().toPoint(), self._told(*cell), self)

    def _cell(self, place: QPointF) -> tuple[int, int] | None:
        if not self._grid.any() or not self._area.contains(place):
            return None
        size = self._grid.shape[0]
        across = (place.x() - self._area.left()) / self._area.width() * size
        down = (place.y() - self._area.top()) / self._area.width() * size
        return min(int(down), size - 1), min(int(across), size - 1)

    def _told(self, i: int, j: int) -> str:
        value = self._grid[i, j]
        text = _bytes(value) if self._unit == "B" else self.tr("{0} messages").format(grouped(value))
        return self.tr("{0} to {1}: {2}").format(self._span(i), self._span(j), text)

    def _span(self, i: int) -> str:
        first, last = i * self._step, min((i + 1) * self._step, len(self._names)) - 1
        return self._names[first] if first == last else f"{self._names[first]} – {self._names[last]}"


#: Of `desktop.data.statistics.Messages.to_frame`.
COLUMNS = (
    Column("Sender", name="sender"),
    Column("Receiver", name="receiver"),
    Column("Messages", name="messages"),
    Column("Bytes", name="bytes"),
    Column("Mean size", name="mean_size"),
)


class MessagesPanel(QWidget):
    """The matrix, and its pairs as a table."""

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench
        self._explained = Explained()
        self.matrix = Matrix()
        self.table = FrameView(self.tr("Pairs of sender and receiver"))
        self.table.show_frame(None, COLUMNS)
        self.table.sortByColumn(3, DESCENDING)
        self.model = self.table.frames
        self.weight = QComboBox()
        self.weight.setAccessibleName(self.tr("What is counted"))
        self.weight.addItem(self.tr("Bytes"), "bytes")
        self.weight.addItem(self.tr("Messages"), "count")
        self.weight.activated.connect(lambda _: self._fill())
        self.about = QLabel()
        self.about.setWordWrap(True)  # or a long text would make the panel wider
        self.about.setMinimumWidth(1)
        head = QHBoxLayout()
        head.addWidget(self.weight)
        head.addWidget(self.about, 1)
        pairs = QWidget()
        below = QVBoxLayout(pairs)
        below.setContentsMargins(0, 0, 0, 0)
        below.addLayout(head)
        below.addWidget(self.table, 1)
        split = QSplitter(Qt.Orientation.Horizontal)
        split.setChildrenCollapsible(False)
        split.addWidget(self.matrix)  # all the height there is, which is its side
        split.addWidget(pairs)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 3, 6, 3)
        layout.addWidget(split)

    def room(self) -> int:
        """The height in which the matrix can be read, with its scale."""
        layout = self.layout()
        assert layout is not None
        margins = layout.contentsMargins()
        return self.matrix.sizeHint().height() + margins.top() + margins.bottom()

    def set_theme(self, theme: Theme) -> None:
        self.matrix.set_theme(theme)

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        if new.explained is not old.explained or why_empty(new) != why_empty(old):
            self._explained = new.explained
            self._fill()

    def _fill(self) -> None:
        found = self._explained
        talk = found.stats[found.focus].messages if found.stats else None
        none = np.zeros(0, np.int64)
        if talk is None:
            self.matrix.show_pairs(none, none, none, (), "B")
            self.table.show_frame(None)
            none_yet = why_empty(self._workbench.snapshot)
            self._say(found.problem or (self.tr("This trace has no messages.") if found.stats else none_yet))
            return
        by_bytes = self.weight.currentData() == "bytes"
        self.matrix.show_pairs(
            talk.sender,
            talk.receiver,
            talk.bytes if by_bytes else talk.count,
            found.names,
            "B" if by_bytes else "",
        )
        pairs = talk.to_frame(found.names)
        pairs["receiver"] = pairs["receiver"].replace("", self.tr("not known"))
        self.table.show_frame(pairs)
        scope = found.scopes[found.focus]
        self._say(
            self.tr("{0}: {1} messages, {2}").format(
                scope.label, f"{int(talk.count.sum()):,}".replace(",", " "), _bytes(float(talk.bytes.sum()))
            )
        )

    def _say(self, text: str) -> None:
        self.about.setText(text)
        self.about.setToolTip(text)  # where it is cut


PANEL = PanelSpec(
    "messages",
    "Messages",
    "bottom",
    MessagesPanel,
    "statistics.md#messages-and-waiting",
    frozenset({"ranges"}),
)

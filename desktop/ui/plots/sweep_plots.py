"""Which n: the error of every n, and the breaks of every n, side by side with the same click to choose."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QContextMenuEvent, QPainter, QPen, QPixmap
from PySide6.QtWidgets import QWidget

from desktop.ui.plots import plot_menu, scales
from desktop.ui.plots.scales import Lane, Ticks, TimeMap
from desktop.ui.theme import LIGHT, Theme, paint_focus, paint_note

Floats = NDArray[np.float64]


class SweepPlot(QWidget):
    """One mark or row per n of a sweep; a click or an arrow key asks for an n.

    What is abstract here is so to the type checker: Qt's metaclass knows nothing of it.
    """

    nClicked = Signal(int)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme: Theme = LIGHT
        self._first, self._count = 1, 0
        self._n = 0
        self._hover = 0
        self._layer: QPixmap | None = None  # what depends neither on n nor on the mouse
        self.setAccessibleName(name)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def set_n(self, n: int) -> None:
        """Mark the chosen n."""
        seen = self._swept(n) or self._swept(self._n)
        if n != self._n:
            self._n = n
            if seen:  # a picture of 20 has nothing to say of the 200th
                self.update()

    def _swept(self, n: int) -> bool:
        return self._first <= n < self._first + self._count

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self._redraw()

    def _redraw(self) -> None:
        self._layer = None
        self.update()

    def changeEvent(self, event) -> None:
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._redraw()
        super().changeEvent(event)

    def sizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(em * 20, em * 12)

    def minimumSizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(em * 10, em * 8)

    @abstractmethod
    def table(self) -> Iterable[plot_menu.Row]:
        """The numbers that are shown, headings first."""

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        plot_menu.popup(self, event)

    @abstractmethod
    def _n_at(self, p: QPointF) -> int:
        """The n at a place, 0 if there is none."""

    def _ask(self, n: int) -> None:
        if self._swept(n) and n != self._n:
            self.nClicked.emit(n)

    def mousePressEvent(self, event) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._ask(self._n_at(event.position()))

    def mouseMoveEvent(self, event) -> None:
        n = self._n_at(event.position())
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._ask(n)
        if n != self._hover:
            self._hover = n
            self.setCursor(Qt.CursorShape.PointingHandCursor if n else Qt.CursorShape.ArrowCursor)
            self.update()

    def leaveEvent(self, event) -> None:
        self._hover = 0
        self.update()
        super().leaveEvent(event)

    def keyPressEvent(self, event) -> None:
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Up: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_Down: 1}
        if event.key() in step and not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            self._ask(self._n + step[event.key()])
        else:
            super().keyPressEvent(event)

    def paintEvent(self, _event: QEvent) -> None:
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(self._theme.background))
            if self._count:
                layer = self._static_layer()
                self._paint_below(painter)
                painter.drawPixmap(0, 0, layer)
                self._paint_above(painter)
            else:
                text = self.tr("Nothing is fitted yet; drawn once every n has been.")
                paint_note(painter, self, self._theme, text)
            paint_focus(painter, self, self._theme)

    def _static_layer(self) -> QPixmap:
        dpr = self.devicePixelRatioF()
        size = QSize(round(self.width() * dpr), round(self.height() * dpr))
        if self._layer is None or self._layer.size() != size:
            self._layer = QPixmap(size)
            self._layer.setDevicePixelRatio(dpr)
            self._layer.fill(Qt.GlobalColor.transparent)
            with QPainter(self._layer) as painter:
                painter.setFont(self.font())
                self._paint_static(painter)
        return self._layer

    def _paint_below(self, painter: QPainter) -> None:
        """What follows n and the mouse and lies under the rest."""

    @abstractmethod
    def _paint_static(self, painter: QPainter) -> None:
        """The sweep itself, kept until it or the size changes; it also sets the geometry."""

    def _paint_above(self, painter: QPainter) -> None:
        """What follows n and the mouse and lies over the rest."""

    def _box(self, painter: QPainter, r: QRectF) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(self._theme.border), 0))
        painter.drawRect(r)


class EpsilonPlot(SweepPlot):
    """epsilon(n) on a logarithmic axis, with the chosen and the suggested n."""

    FIGURE, HELP = "epsilon", "guide.md#phases"

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.setAccessibleName(self.tr("Error against the number of phases"))
        self._epsilon: Floats = np.empty(0)
        self._suggested = 0
        self._by_hand: float | None = None
        self._beyond: tuple[int, float] | None = None
        self._model = ""
        self._lane = Lane(QRectF())
        self.setToolTip(self.tr("The least error that n phases can have. Click to choose n."))

    def set_sweep(self, epsilon: ArrayLike, suggested_n: int | None, model: str, first: int = 1) -> None:
        """`epsilon` (K,) of n = first .. first+K-1, processors * sqrt(s); an empty one clears the plot."""
        self._epsilon = np.array(epsilon, float)
        self._first, self._count = first, self._epsilon.size
        self._suggested = suggested_n or 0
        self._model = model
        if self._beyond is not None and self._swept(self._beyond[0]):
            self._beyond = None
        if self._count:
            text = self.tr("Error falls from {0} at n = {1} to {2} at n = {3}.")
            number = scales.format_number
            ends = (
                number(float(self._epsilon[0])),
                first,
                number(float(self._epsilon[-1])),
                first + self._count - 1,
            )
            self.setAccessibleDescription(text.format(*ends))
        self._redraw()

    def table(self) -> Iterable[plot_menu.Row]:
        yield "parameters_n" if self._model == "budget" else "phases_n", "epsilon_processors_sqrt_s"
        yield from enumerate(self._epsilon.tolist(), self._first)
        if self._beyond is not None:
            yield self._beyond

    def set_by_hand(self, epsilon: float | None) -> None:
        """The error with breaks set by hand, which is marked in place of the chosen n's least one."""
        if epsilon != self._by_hand:
            self._by_hand = epsilon
            self.update()

    def set_beyond(self, n: int, epsilon: float) -> None:
        """The error of the n in use, which is shown also where the sweep does not reach it."""
        beyond = None if self._swept(n) else (n, epsilon)
        if beyond != self._beyond:
            self._beyond = beyond
            self._redraw()

    @property
    def _places(self) -> int:
        """Numbers along the axis."""
        return max(self._count, self._beyond[0] - self._first + 1 if self._beyond else 1)

    def _x(self, n):
        r = self._lane.rect
        return r.left() + (n - self._first + 0.5) / self._places * r.width()

    def _y(self, epsilon: float) -> float:
        """Height of an error; exactly zero stands on the bottom edge."""
        r = self._lane.rect
        return float(self._lane.y(math.log10(epsilon))) if epsilon > 0 else r.bottom()

    def _n_at(self, p: QPointF) -> int:
        r = self._lane.rect
        if not self._count or not (r.left() <= p.x() <= r.right()):
            return 0
        k = int((p.x() - r.left()) / r.width() * self._places)
        return self._first + min(k, self._places - 1)

    def _layout(self) -> None:
        metrics = self.fontMetrics()
        em = metrics.height()
        left = metrics.horizontalAdvance("0.0000") + em + 14
        top = em * 2.0
        self._lane.rect = QRectF(
            left + 0.5, top + 0.5, self.width() - left - em, self.height() - top - 2 * em - 12
        )
        shown = np.append(self._epsilon, self._beyond[1] if self._beyond else 0.0)
        positive = np.log10(shown[shown > 0])
        low, high = (float(positive.min()), float(positive.max())) if positive.size else (-1.0, 0.0)
        room = max(0.08 * (high - low), 0.05)
        self._lane.low, self._lane.high = low - room, high + room

    def _epsilon_of(self, n: int) -> float | None:
        """The error of an n that is shown."""
        if self._swept(n):
            return float(self._epsilon[n - self._first])
        return self._beyond[1] if self._beyond is not None and self._beyond[0] == n else None

    def _paint_static(self, painter: QPainter) -> None:
        self._layout()
        t, metrics, r = self._theme, self.fontMetrics(), self._lane.rect
        em = metrics.height()
        ticks = _log_ticks(self._lane.low, self._lane.high, r.height() / (em * 1.7))
        scales.level_axis(painter, self._lane, ticks, t, self.tr("ε (processors·√s)"))
        whole = scales.level_ticks(
            self._first - 0.4, self._first + self._places - 0.6, r.width() / (em * 2.4), whole=True
        )
        scales.grid(painter, self._lane, t, [], [float(self._lane.y(v)) for v in ticks.positions])
        painter.setPen(QColor(t.muted))
        for n, label in zip(whole.positions, whole.labels, strict=True):
            x = self._x(n)
            painter.drawLine(QLineF(x, r.bottom(), x, r.bottom() + 4))
            box = QRectF(x - 2 * em, r.bottom() + 5, 4 * em, em)
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, label)
        painter.setPen(QColor(t.text))
        parameters = self._model == "budget"
        name = self.tr("Parameters n") if parameters else self.tr("Phases n")
        painter.drawText(
            QRectF(r.left(), r.bottom() + 5 + em, r.width(), em + 4), Qt.AlignmentFlag.AlignCenter, name
        )
        self._box(painter, r)
        points = [QPointF(self._x(self._first + k), self._y(e)) for k, e in enumerate(self._epsilon.tolist())]
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(t.curve), 1.5))
        painter.drawPolyline(points)
        painter.setBrush(QColor(t.curve))
        painter.setPen(Qt.PenStyle.NoPen)
        size = 2.5 if r.width() / self._places > 8 else 1.5
        for p in points:
            painter.drawEllipse(p, size, size)
        if self._swept(self._suggested):
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(t.residual), 2))
            painter.drawEllipse(points[self._suggested - self._first], 7, 7)

    def _paint_above(self, painter: QPainter) -> None:
        t, r = self._theme, self._lane.rect
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        epsilon = self._epsilon_of(self._n)
        if epsilon is not None:
            p = QPointF(self._x(self._n), self._y(epsilon))
            if self._by_hand is not None:
                p.setY(min(max(self._y(self._by_hand), r.top()), r.bottom()))
            painter.setPen(QPen(QColor(t.fit), 1))
            painter.drawLine(QLineF(p.x(), r.top(), p.x(), r.bottom()))
            painter.setBrush(QColor(t.fit))
            painter.drawEllipse(p, 4, 4)
        self._paint_head(painter, self.fontMetrics().height())

    def _paint_head(self, painter: QPainter, em: int) -> None:
        """The chosen n in figures, with the gain of one more, and the suggestion's mark explained."""
        t, metrics = self._theme, self.fontMetrics()
        row = QRectF(6, em * 0.3, self.width() - 12, em * 1.4)
        n = self._hover or self._n
        k = n - self._first
        text = ""
        if n == self._n and self._by_hand is not None:
            text = self.tr("n = {0}, set by hand: ε = {1}").format(n, scales.format_number(self._by_hand))
        elif (epsilon := self._epsilon_of(n)) is not None:
            text = self.tr("n = {0}: ε = {1}").format(n, scales.format_number(epsilon))
            if k + 1 < self._count and self._epsilon[k] > 0:
                gain = 100 * (1 - self._epsilon[k + 1] / self._epsilon[k])
                text += self.tr(", one more gains {0} %").format(f"{round(gain) or 0:d}")
        painter.setPen(QColor(t.text))
        painter.drawText(row, Qt.AlignmentFlag.AlignVCenter, text)
        if self._suggested:
            note = self.tr("suggested {0}").format(self._suggested)
            w = metrics.horizontalAdvance(note)
            if metrics.horizontalAdvance(text) + w + 2.5 * em < row.width():
                painter.setPen(QColor(t.muted))
                painter.drawText(row, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, note)
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(QColor(t.residual), 2))
                painter.drawEllipse(QPointF(row.right() - w - em * 0.7, row.center().y()), 4.5, 4.5)


class BreakPicture(SweepPlot):
    """All breaks against n, one row per n from the top: a phase that lasts is a vertical line."""

    HELP = "guide.md#phases"
    # Share of the run within which a break of n and one of n+1 count as the same.
    SAME = 0.005

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.setAccessibleName(self.tr("Breaks against the number of phases"))
        self.setToolTip(
            self.tr(
                "The breaks of every n. Breaks that last from n to n+1 are joined; a bar is the range in "
                "which a break could lie at the same error. Click to choose n."
            )
        )
        self._rows: list[tuple[Floats, Floats, Floats]] = []
        self._links: list[tuple[int, float, float]] = []
        self._area = QRectF()

    def table(self) -> Iterable[plot_menu.Row]:
        yield "n", "break", "break_s", "least_s", "most_s"
        for n, ends in enumerate(self._rows, self._first):
            for k, (at, low, high) in enumerate(zip(*(v[1:-1].tolist() for v in ends), strict=True), 1):
                yield n, k, at, low, high

    def set_sweep(self, rows: Sequence[tuple[ArrayLike, ArrayLike, ArrayLike]], first: int = 1) -> None:
        """(breaks, break_low, break_high) of n = first, first+1, ..., each (n+1,), seconds; empty clears."""
        self._rows = [
            (np.asarray(b, float), np.asarray(lo, float), np.asarray(hi, float)) for b, lo, hi in rows
        ]
        self._first, self._count = first, len(self._rows)
        self._links = []
        for k, (upper, lower) in enumerate(zip(self._rows, self._rows[1:], strict=False)):
            near = self.SAME * (upper[0][-1] - upper[0][0])
            here, inner = upper[0][1:-1], lower[0][1:-1]
            if here.size and inner.size:
                other = inner[np.abs(inner - here[:, None]).argmin(axis=1)]
                same = np.abs(other - here) <= near
                links = zip(here[same].tolist(), other[same].tolist(), strict=True)
                self._links += [(k, t, o) for t, o in links]
        if self._count:
            text = self.tr("{0} of {1} breaks stay when n grows by one.")
            total = sum(r[0].size - 2 for r in self._rows[:-1])
            self.setAccessibleDescription(text.format(len(self._links), total))
        self._redraw()

    def _n_at(self, p: QPointF) -> int:
        if not self._count or not self._area.contains(p):
            return 0
        k = int((p.y() - self._area.top()) / self._area.height() * self._count)
        return self._first + min(k, self._count - 1)

    def _paint_below(self, painter: QPainter) -> None:
        r, height = self._area, self._area.height() / self._count
        for n, strength in ((self._hover, 16), (self._n, 46)):
            if self._swept(n):
                tint = QColor(self._theme.accent)
                tint.setAlpha(strength)
                painter.fillRect(
                    QRectF(r.left(), r.top() + (n - self._first) * height, r.width(), height), tint
                )

    def _paint_static(self, painter: QPainter) -> None:
        t, metrics = self._theme, self.fontMetrics()
        em = metrics.height()
        left = metrics.horizontalAdvance("000") + em + 14
        self._area = r = QRectF(
            left + 0.5, em * 0.5 + 0.5, self.width() - left - em, self.height() - em * 2.5 - 12
        )
        breaks = self._rows[0][0]
        m = TimeMap(float(breaks[0]), float(breaks[-1]), r.left(), r.width())
        height = r.height() / self._count

        def top(k: float) -> float:
            return r.top() + k * height

        tint = QColor(t.band)
        tint.setAlpha(70)
        bars, marks = [], []
        for k, (b, low, high) in enumerate(self._rows):
            x0, x1 = m.x(low[1:-1]).tolist(), m.x(high[1:-1]).tolist()
            bars += [
                QRectF(p, top(k + 0.2), q - p, height * 0.6)
                for p, q in zip(x0, x1, strict=True)
                if q - p >= 1
            ]
            marks += [QLineF(x, top(k + 0.1), x, top(k + 0.9)) for x in m.x(b[1:-1]).tolist()]
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(tint)
        if bars:
            painter.drawRects(bars)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(t.break_line), 1.6, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
        painter.drawLines([QLineF(m.x(a), top(k + 0.5), m.x(b), top(k + 1.5)) for k, a, b in self._links])
        painter.setPen(QPen(QColor(t.fit), 2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
        painter.drawLines(marks)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        self._box(painter, r)
        axis = Lane(r, self._first + self._count - 0.5, self._first - 0.5)
        m_, e = scales.nice_step(self._count, max(1.0, r.height() / (em * 1.6)))
        step = max(1, round(m_ * 10.0**e))
        numbers = [
            n for n in range(self._first, self._first + self._count) if n == self._first or n % step == 0
        ]
        labels = Ticks([float(n) for n in numbers], [str(n) for n in numbers])
        scales.level_axis(painter, axis, labels, t, self.tr("Phases n"))
        scales.time_axis(painter, QRectF(0, r.bottom(), self.width(), em * 2 + 8), m, t, self.tr("Time"))


def _log_ticks(low: float, high: float, count: float) -> Ticks:
    """Ticks at round numbers between 10^low and 10^high; their positions are logarithms."""
    for steps in ((1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 5), (1, 3), (1,)):
        values = [
            (e, s)
            for e in range(math.floor(low), math.ceil(high) + 1)
            for s in steps
            if low <= e + math.log10(s) <= high
        ]
        # Those below a power of ten stand closest; labels need two thirds of their even share.
        apart = math.log10(10 / steps[-1])
        if len(values) <= count and apart * count > 0.65 * (high - low):
            break
    else:
        stride = math.ceil(len(values) / max(count, 1))
        values = [v for v in values if v[0] % stride == 0]
    if len(values) < 2:  # less than a factor of two: linear steps are the readable ones
        linear = scales.level_ticks(10**low, 10**high, count)
        inside = [(p, text) for p, text in zip(linear.positions, linear.labels, strict=True) if p > 0]
        return Ticks([math.log10(p) for p, _ in inside], [text for _, text in inside])
    labels = [f"{s * 10.0**e:g}" if -5 < e < 6 else f"{s}e{e}" for e, s in values]
    return Ticks([e + math.log10(s) for e, s in values], labels)

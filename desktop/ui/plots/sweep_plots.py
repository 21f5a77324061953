"""The error and the breakpoints for every n; a click chooses n."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent

from desktop.core.arrays import Floats
from desktop.core.quantity import PROCESSORS
from desktop.core.units import format_number
from desktop.data import sweep_charts
from desktop.data.chart import Content, Highlight
from desktop.data.sweep_charts import Beyond, Row
from desktop.ui.guard import guarded, in_ems
from desktop.ui.plots.chart import Chart

_NOTHING_YET = "Drawn when every n has been fitted."


class SweepPlot(Chart):
    """One mark or row per n of a sweep; a click or an arrow key asks for an n.

    Abstract for the type checker alone, as Qt's metaclass does not check it.
    """

    nClicked = Signal(int)

    def __init__(self, name: str) -> None:
        super().__init__(name, "guide.md#phases")
        self._first, self._count = 1, 0
        self._n = 0
        self._pointed = 0

    def set_n(self, n: int) -> None:
        """Mark the chosen n."""
        if n != self._n:
            self._n = n
            self._choose_n()

    def _choose_n(self) -> None:
        self.set_chosen(self._selection())

    @abstractmethod
    def _selection(self) -> Highlight | None:
        """The marks on the chosen n and the one under the pointer."""

    def covers(self, n: int) -> bool:
        """Whether the sweep has reached it."""
        return self._first <= n < self._first + self._count

    sizeHint = in_ems(20, 12)
    minimumSizeHint = in_ems(10, 8)

    def n_at(self, p: QPointF) -> int:
        """The n at a place, 0 if there is none."""
        layout = self.current_layout
        upright, within_x = layout.content.horizontal_bars, layout.left <= p.x() <= layout.right
        if not self._count or not within_x or (upright and not layout.top <= p.y() <= layout.bottom):
            return 0
        if upright:
            return round(layout.y[0] + (p.y() - layout.top) / layout.height * (layout.y[1] - layout.y[0]))
        value = layout.x[0] + (p.x() - layout.left) / layout.width * (layout.x[1] - layout.x[0])
        return max(round(10.0**value if layout.content.x.log else value), self._first)

    def _ask(self, n: int) -> None:
        if self.covers(n) and n != self._n:
            self.nClicked.emit(n)

    @guarded
    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._ask(self.n_at(event.position()))

    @guarded
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        n = self.n_at(event.position())
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._ask(n)
        self._point_at_n(n)

    def _point_at_n(self, n: int) -> None:
        if n != self._pointed:
            self._pointed = n
            shape = Qt.CursorShape.PointingHandCursor if n else Qt.CursorShape.ArrowCursor
            self.viewport().setCursor(shape)
            self._choose_n()

    def _leave(self) -> None:
        self._point_at_n(0)

    @guarded
    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Up: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_Down: 1}
        key = Qt.Key(event.key())
        if key in step and not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            self._ask(self._n + step[key])
        else:
            event.ignore()


class EpsilonPlot(SweepPlot):
    """epsilon(n) on a logarithmic axis, with the chosen and the suggested n."""

    FIGURE = "epsilon"

    def __init__(self) -> None:
        super().__init__("Error against the number of phases")
        self.setToolTip("The least error that n phases can have. Click to choose n.")
        self._epsilon: Floats = np.empty(0)
        self._suggested: int | None = None
        self._by_hand: float | None = None
        self._how = "set by hand"
        self._beyond: Beyond = None
        self._room: Beyond = None
        self._model, self._unit = "", PROCESSORS.of_error
        self._describe()

    def set_sweep(
        self,
        epsilon: ArrayLike,
        suggested_n: int | None,
        model: str,
        first: int = 1,
        unit: str = PROCESSORS.of_error,
    ) -> None:
        """`epsilon` (K,) of n = first .. first+K-1, in `unit`; an empty one clears the plot."""
        self._unit = unit
        self._epsilon = np.array(epsilon, float)
        self._first, self._count = first, self._epsilon.size
        self._suggested, self._model = suggested_n, model
        self._room = None
        if self._beyond is not None:
            self._make_room(*self._beyond)
        self._describe()

    def set_by_hand(self, epsilon: float | None, how: str = "set by hand") -> None:
        """The error with breakpoints set by hand or as suggested, which is marked in place of the least error
        of the chosen n."""
        if (epsilon, how) != (self._by_hand, self._how):
            self._by_hand, self._how = epsilon, how
            self._choose_n()

    def set_beyond(self, n: int, epsilon: float) -> None:
        """The error of the n in use, which is shown also beyond the end of the sweep."""
        old_room = self._room
        self._make_room(n, epsilon)
        if old_room != self._room:
            self._describe()
        elif n == self._n:
            self._choose_n()

    def _make_room(self, n: int, epsilon: float) -> None:
        """Let the axes reach farther than an n beyond the sweep, so that they stay while n changes."""
        self._beyond = None if self.covers(n) else (n, epsilon)
        near = self._room is not None and n <= self._room[0] <= 2 * n
        if self.covers(n) and not near:
            self._room = None
        elif not self.covers(n) and not (near and self._room is not None and epsilon >= self._room[1]):
            self._room = math.ceil(1.25 * n), epsilon / 1.5

    def _describe(self) -> None:
        text = ""
        if self._count:
            first, last = (format_number(float(self._epsilon[k])) for k in (0, -1))
            text = f"Error falls from {first} at n = {self._first} to {last} at "
            text += f"n = {self._first + self._count - 1}."
        content = sweep_charts.epsilon_chart(
            self._epsilon, self._first, self._model, self._suggested, self._room, self._selection(),
            beyond=lambda: self._beyond, empty=_NOTHING_YET, unit=self._unit,
        )  # fmt: skip
        self.set_content(content, text)

    def _epsilon_of(self, n: int) -> float | None:
        """The error of an n that is shown."""
        if self.covers(n):
            return float(self._epsilon[n - self._first])
        return self._beyond[1] if self._beyond is not None and self._beyond[0] == n else None

    def _selection(self) -> Highlight | None:
        """The chosen n with its error; the label is of the n under the pointer, if any."""
        epsilon = self._epsilon_of(self._n)
        if epsilon is None:
            return None
        y = epsilon if self._by_hand is None else self._by_hand
        n, value, how = self._n, y, "" if self._by_hand is None else self._how
        pointed = self._epsilon_of(self._pointed) if self._pointed != self._n else None
        if pointed is not None:
            n, value, how = self._pointed, pointed, ""
        words = sweep_charts.epsilon_words(self._epsilon, self._first, n, value, set_=how)
        return Highlight(x=float(self._n), y=y, label=words)


class BreakpointPicture(SweepPlot):
    """All breakpoints against n, one row per n from the top: a phase that lasts is a vertical line."""

    def __init__(self) -> None:
        super().__init__("Breakpoints against the number of phases")
        self.setToolTip(
            "The breakpoints of every n. Breakpoints that stay from n to n+1 are joined; a bar is the range "
            "in which a breakpoint could lie at the same error. Click to choose n."
        )
        self._rows: list[Row] = []
        self.set_content(self._drawn())

    def _drawn(self) -> Content:
        return sweep_charts.breakpoint_chart(self._rows, self._first, self._selection(), empty=_NOTHING_YET)

    def set_sweep(self, rows: Sequence[tuple[ArrayLike, ArrayLike, ArrayLike]], first: int = 1) -> None:
        """(breakpoints, low, high) of n = first, first+1, ..., (n+1,), s; empty clears."""
        self._rows = [
            (np.asarray(b, float), np.asarray(lo, float), np.asarray(hi, float)) for b, lo, hi in rows
        ]
        self._first, self._count = first, len(self._rows)
        content, text = self._drawn(), ""
        if self._count:
            total = sum(r[0].size - 2 for r in self._rows[:-1])
            lasting = content.series[1].x.size // 2
            text = f"{lasting} of {total} breakpoints stay when n grows by one."
        self.set_content(content, text)

    def _selection(self) -> Highlight:
        return Highlight(
            row=float(self._n) if self.covers(self._n) else None,
            pointed=float(self._pointed) if self.covers(self._pointed) else None,
        )

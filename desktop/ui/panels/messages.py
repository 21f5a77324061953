"""Who sends to whom: the matrix of messages of the run, the selection or a phase."""

from __future__ import annotations

import math

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel

from desktop.core.arrays import Ints
from desktop.core.units import grouped, quantity, unbroken
from desktop.data.chart import Axis, Cells, Content
from desktop.data.columns import Column
from desktop.ui.pages import choices, divided, lay_out, row, set_up, stacked
from desktop.ui.panels import Panel, PanelSpec, why_empty
from desktop.ui.plots.chart import Chart
from desktop.ui.tables import DESCENDING, FrameView
from desktop.workbench.phase_statistics import PhaseStatistics
from desktop.workbench.workbench import Snapshot, Workbench

#: Cells a side at most; of more locations, neighbours share a cell.
_CELLS = 512
#: Pixels above and below.
_EDGE = 3


def _bytes(value: float) -> str:
    return quantity(float(value), "B")


#: Of `desktop.data.statistics.Messages.to_frame`.
COLUMNS = (
    Column("Sender", name="sender"),
    Column("Receiver", name="receiver"),
    Column("Messages", name="messages"),
    Column("Bytes", name="bytes"),
    Column("Mean size", name="mean_size"),
)


class MessagesPanel(Panel):
    """The matrix, and its pairs as a table."""

    def __init__(self, workbench: Workbench) -> None:
        super().__init__(workbench)
        self._statistics = PhaseStatistics()
        self.matrix = Chart("Matrix of messages", help_at="guide.md#messages")
        self.table = FrameView("Pairs of sender and receiver")
        self.table.show_frame(None, COLUMNS)
        self.table.sortByColumn(3, DESCENDING)
        self.model = self.table.frames
        self.weight = choices(
            {"bytes": "Bytes", "count": "Messages"}, accessibleName="What is counted",
            activated=lambda _: self._fill(),
        )  # fmt: skip
        self.about = set_up(QLabel(), wordWrap=True, minimumWidth=1)
        pairs = stacked(row(self.weight, (self.about, 1)), (self.table, 1))
        # The matrix has all the height there is, which is its side.
        split = divided(Qt.Orientation.Horizontal, (self.matrix, 0), (pairs, 0))
        lay_out(self, split, margins=(6, _EDGE, 6, _EDGE))

    def _matrix(
        self, sender: Ints, receiver: Ints, weight: Ints, names: tuple[str, ...], unit: str
    ) -> tuple[Content, str]:
        """Senders from the top, receivers from the left, brighter is more (logarithmic), and the busiest pair
        in words. Sparse entries by location; those without a known receiver are left out."""
        size = len(names)
        step = max(1, math.ceil(size / _CELLS))
        count = max(1, math.ceil(size / step))
        has_receiver = receiver >= 0
        grid = np.zeros((count, count))
        np.add.at(grid, (sender[has_receiver] // step, receiver[has_receiver] // step), weight[has_receiver])
        spans = tuple(
            names[i] if step == 1 else f"{names[i]} – {names[min(i + step, size) - 1]}"
            for i in range(0, size, step)
        )

        def amount(value: float) -> str:
            return _bytes(round(value)) if unit == "B" else grouped(round(value))

        def cell_words(i: int, j: int) -> str:
            value = float(grid[i, j])
            text = _bytes(value) if unit == "B" else f"{grouped(value)} messages"
            return f"{spans[i]} to {spans[j]}: {text}"

        i, j = np.unravel_index(int(np.argmax(grid)), grid.shape)
        busiest = int(i), int(j)
        nothing = "No messages in this range." if names else "No messages are known."
        content = Content(
            Axis("Receiver", categories=spans), Axis("Sender", categories=spans, down=True),
            cells=Cells(
                grid, amount, cell_words, "viridis", log=True, start=busiest, numbers=False,
                measure="Bytes" if unit == "B" else "Messages",
            ),
            square=True, empty=nothing,
        )  # fmt: skip
        return content, cell_words(*busiest) if grid.any() else nothing

    def room(self) -> int:
        """The height in which the matrix can be read, with its scale."""
        return self.matrix.sizeHint().height() + 2 * _EDGE

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        if new.statistics is not old.statistics or why_empty(new) != why_empty(old):
            self._statistics = new.statistics
            self._fill()

    def _fill(self) -> None:
        statistics = self._statistics
        talk = statistics.stats[statistics.focus].messages if statistics.stats else None
        none = np.zeros(0, np.int64)
        if talk is None:
            self.matrix.set_content(*self._matrix(none, none, none, (), "B"))
            self.table.show_frame(None)
            none_yet = why_empty(self._workbench.snapshot)
            self._say(statistics.problem or ("This trace has no messages." if statistics.stats else none_yet))
            return
        by_bytes = self.weight.currentData() == "bytes"
        amount = talk.bytes if by_bytes else talk.count
        self.matrix.set_content(
            *self._matrix(talk.sender, talk.receiver, amount, statistics.names, "B" if by_bytes else "")
        )
        pairs = talk.to_frame(statistics.names)
        pairs["receiver"] = pairs["receiver"].replace("", "not known")
        self.table.show_frame(pairs)
        messages = f"{int(talk.count.sum()):,}".replace(",", " ")
        label, size = statistics.scopes[statistics.focus].label, _bytes(float(talk.bytes.sum()))
        self._say(f"{label}: {messages} messages, {size}")

    def _say(self, text: str) -> None:
        self.about.setText(unbroken(text))
        self.about.setToolTip(text)  # where it is cut


PANEL = PanelSpec(
    "messages",
    "Messages",
    "bottom",
    MessagesPanel,
    "statistics.md#messages-and-waiting",
    frozenset({"ranges"}),
)  # fmt: skip

"""What run, selection and phases are made of, side by side, and how processors share the work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from PySide6.QtCore import QEvent, QSignalBlocker, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QComboBox,
    QHeaderView,
    QLabel,
    QLayout,
    QPushButton,
    QSplitter,
    QTableView,
    QWidget,
)

from desktop.data.events import Activity
from desktop.ui import row_tables as tables
from desktop.ui.panels import PanelSpec, why_empty
from desktop.ui.plots.chart import Axis, Chart, Content, Series
from desktop.ui.row_tables import Column, RowsModel
from desktop.ui.units import common, digits, quantity, scaled
from desktop.workbench.explaining import Explained
from desktop.workbench.workbench import Snapshot, Workbench

#: Bars of a chart at most; of more locations, groups of neighbours are drawn.
_BARS = 400
#: Width, in heights of the text, from which on numbers and picture stand beside each other.
_BESIDE = 52
#: Height, in heights of the text, from which on there is room above and below them.
_ABOVE = 13


@dataclass(frozen=True)
class Metric:
    """A row: `value(stats)` in base units, NaN where it cannot be had; `text` of it, or the quantity in its
    `unit`, with one prefix for all ranges."""

    title: str
    tip: str
    value: Callable[[Any], float]
    text: Callable[[float], str] | None = None
    unit: str = ""


def _percent(value: float) -> str:
    return "–" if np.isnan(value) else f"{100 * value:.1f} %"


def _count(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:,.0f}".replace(",", " ")


def _optional(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _part(activity: Activity) -> Callable[[Any], float]:
    def value(stats: Any) -> float:
        total = float(stats.seconds.sum())
        return stats.by_activity[activity] / total if total else float("nan")

    return value


def _talk(name: str) -> Callable[[Any], float]:
    return lambda stats: float(getattr(stats.messages, name).sum()) if stats.messages else float("nan")


def _waiting(name: str) -> Callable[[Any], float]:
    def value(stats: Any) -> float:
        found = getattr(stats.replayed, name) if stats.replayed else None
        return float("nan") if found is None else float(found.sum())

    return value


METRICS: tuple[Metric, ...] = (
    Metric("Duration", "Length of the range", lambda s: s.duration_s, unit="s"),
    Metric("Mean computing", "Mean number of processors that compute: the curve's mean level",
           lambda s: s.computing, digits),
    Metric("Parallel efficiency", "Mean computing over all processors P; of a constant phase, level over P",
           lambda s: s.parallel_efficiency, _percent),
    Metric("Load balance", "Mean over maximum computing time of the processors (POP)",
           lambda s: s.load_balance, _percent),
    Metric("Communication efficiency", "Maximum computing time over duration (POP)",
           lambda s: s.communication_efficiency, _percent),
    Metric("Serialisation efficiency", "Maximum computing time over the duration on an ideal network (POP)",
           lambda s: _optional(s.serialisation_efficiency), _percent),
    Metric("Transfer efficiency", "Duration on an ideal network over duration (POP)",
           lambda s: _optional(s.transfer_efficiency), _percent),
    Metric("Computing", "Part of the processors' time", _part(Activity.COMPUTING), _percent),
    Metric("Overhead", "Moving data, starting operations", _part(Activity.OVERHEAD), _percent),
    Metric("Idle", "Waiting for somebody", _part(Activity.IDLE), _percent),
    Metric("I/O", "Reading and writing files", _part(Activity.IO), _percent),
    Metric("Not measured", "Tracing was off or busy with itself", _part(Activity.UNMEASURED), _percent),
    Metric("Waiting", "Time of all processors together in communication in which a partner was late",
           _waiting("waiting_s"), unit="proc·s"),
    Metric("Transfer", "Time of all processors together in communication that is not waiting",
           _waiting("transfer_s"), unit="proc·s"),
    Metric("Messages sent", "Whose send is recorded in the range", _talk("sent"), _count),
    Metric("Bytes sent", "In these messages", _talk("bytes_sent"), unit="B"),
)  # fmt: skip


class StatisticsPanel(QWidget):
    """Rows are numbers, columns ranges; beside them a picture of the range in focus."""

    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self._workbench = workbench
        self.model = RowsModel([Column("", lambda m: m.title, number=False)])
        self.table = QTableView()
        self.table.setModel(self.model)
        self.table.verticalHeader().hide()
        self.table.setWordWrap(False)
        self.table.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self.table.horizontalHeader().sectionClicked.connect(self._chose_column)
        tables.prepare(
            self.table, self.tr("Statistics"), lambda: tables.as_text(self.model.columns, self.model.rows)
        )
        self.chart = Chart(self.tr("How processors share the work"))
        self.chart.clicked.connect(lambda key, _: None)
        self.picture = QComboBox()
        self.picture.setAccessibleName(self.tr("Picture"))
        self.picture.addItem(self.tr("Concurrency"), "concurrency")
        self.picture.addItem(self.tr("Utilization of locations"), "utilization")
        self.picture.activated.connect(lambda _: self._arrange())
        self.picture.activated.connect(lambda _: self._draw())
        self.scope = QComboBox()
        self.scope.setAccessibleName(self.tr("Details of"))
        for text, key in (
            (self.tr("Selection, phase or run"), "auto"),
            (self.tr("Whole run"), "run"),
            (self.tr("Selection"), "selection"),
        ):
            self.scope.addItem(text, key)
        self.scope.activated.connect(lambda _: workbench.explainer.set_scope(self.scope.currentData()))
        self.replay = QPushButton(self.tr("&Transfer and waiting"))
        self.replay.setToolTip(
            self.tr("Also what takes a pass over all messages: replay on an ideal network")
        )
        self.replay.clicked.connect(workbench.explainer.want_replay)
        self.note = QLabel()
        self.note.setWordWrap(True)
        self._explained = Explained()
        self.note.setMaximumHeight(2 * self.fontMetrics().lineSpacing() + 4)
        self._head = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        for widget in (self.picture, self.scope):
            widget.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
            widget.setMinimumContentsLength(16)
            self._head.addWidget(widget, 1)
        self._head.addWidget(self.replay)
        split = QSplitter(Qt.Orientation.Horizontal)
        split.setChildrenCollapsible(False)
        split.addWidget(self.table)
        split.addWidget(self.chart)
        split.setStretchFactor(0, 3)
        split.setStretchFactor(1, 2)
        self._whole = QBoxLayout(QBoxLayout.Direction.TopToBottom, self)
        self._whole.setContentsMargins(6, 6, 6, 6)
        self._whole.addLayout(self._head)
        self._whole.addWidget(split, 1)
        self._whole.addWidget(self.note)
        # The least of the lower arrangement, not of the one that happens to be.
        self._whole.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)
        self._narrow = False
        self._draw()

    def minimumSizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(super().minimumSizeHint().width(), self.chart.minimumSizeHint().height() + em // 2)

    def room(self) -> int:
        """The height in which all numbers are seen."""
        rows = max(self.model.rowCount(), 12) * self.table.verticalHeader().defaultSectionSize()
        return rows + self.table.horizontalHeader().sizeHint().height() + 2 * self.fontMetrics().height()

    def heightForWidth(self, width: int) -> int:
        """What a scroll area asks for, as the note is wrapped: not the height that one would like to have."""
        return self.minimumSizeHint().height()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._arrange()

    def _arrange(self) -> None:
        """Numbers and picture beside each other, or one of them where there is no room for both; what is
        chosen above them, or beside them where that leaves too little height."""
        em = self.fontMetrics().height()
        self.table.verticalHeader().setDefaultSectionSize(round(1.25 * em))
        self.note.setMaximumHeight(2 * self.fontMetrics().lineSpacing() + 4)
        narrow = self.width() < _BESIDE * em
        if narrow != self._narrow:
            self._narrow = narrow
            if narrow:
                self.picture.insertItem(0, self.tr("Numbers"), "numbers")
                self.picture.setCurrentIndex(0)
            else:
                self.picture.removeItem(0)
        self.picture.setToolTip(self.picture.currentText())  # which may be cut
        numbers = self.picture.currentData() == "numbers"
        self.table.setVisible(numbers or not narrow)
        self.chart.setVisible(not numbers)
        low = self.height() < max(_ABOVE * em, 0 if narrow else min(self.room() + 5 * em, 20 * em))
        self.note.setVisible(not (narrow or low))  # then it is told where the pointer rests
        way = QBoxLayout.Direction
        self._whole.setDirection(way.RightToLeft if low else way.TopToBottom)
        self._head.setDirection(way.TopToBottom if low else way.LeftToRight)
        edge = 3 if low else 6
        self._whole.setContentsMargins(6, edge, 6, edge)

    def set_theme(self, theme: Any) -> None:
        self.chart.set_theme(theme)

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        if new.explained is old.explained and why_empty(new) == why_empty(old):
            return
        self._explained = new.explained
        self._fill()
        self._draw()

    def _fill(self) -> None:
        found = self._explained
        if found.scopes:
            self.scope.setItemText(self.scope.findData("run"), found.scopes[0].label)
        columns = [Column("", lambda m: m.title, number=False)]
        for i, scope in enumerate(found.scopes):
            columns.append(
                Column(
                    scope.label,
                    self._value(i),
                    f"{quantity(scope.start_s, 's')} – {quantity(scope.end_s, 's')}",
                    self._text(i),
                )
            )
        same = [c.title for c in columns] == [c.title for c in self.model.columns]
        rows = METRICS if found.stats else ()
        self.model.show(rows, None if same and rows else columns)
        focus = found.scopes[found.focus] if found.scopes else None
        if focus is not None:
            with QSignalBlocker(self.table):
                self.table.selectColumn(found.focus + 1)
        self.replay.setEnabled(bool(found.stats) and not found.replayed)
        self.note.setText(found.problem or self._remark())
        for told in (self.note, self.scope):
            told.setToolTip(self.note.text())

    def _value(self, i: int) -> Callable[[Metric], float]:
        return lambda metric: metric.value(self._explained.stats[i])

    def _text(self, i: int) -> Callable[[Metric], str]:
        def text(metric: Metric) -> str:
            stats = self._explained.stats
            value = metric.value(stats[i])
            if metric.text is not None:
                return metric.text(value)
            return scaled(value, common((metric.value(one) for one in stats), metric.unit))

        return text

    def _remark(self) -> str:
        found = self._explained
        if not found.stats:
            return why_empty(self._workbench.snapshot)
        stats = found.stats[found.focus]
        said = [stats.note]
        if stats.replayed is not None:
            said += [stats.replayed.ideal_note, stats.replayed.waiting_note]
        if stats.is_processor.any():
            names = found.names
            said.append(
                self.tr("Most loaded: {0}. Idlest: {1}.").format(
                    ", ".join(names[i] for i in stats.most_loaded(3)),
                    ", ".join(names[i] for i in stats.idlest(3)),
                )
            )
        return " ".join(text for text in said if text)

    def _chose_column(self, section: int) -> None:
        scopes = self._explained.scopes
        if 0 < section <= len(scopes):
            scope = scopes[section - 1]
            self._workbench.select_phase(scope.phase if scope.phase >= 0 else None)

    def _draw(self) -> None:
        found = self._explained
        if not found.stats:
            self.chart.set_content(
                Content(
                    Axis(""),
                    Axis(""),
                    empty=found.problem or why_empty(self._workbench.snapshot),
                )
            )
            return
        scope, stats = found.scopes[found.focus], found.stats[found.focus]
        if self.picture.currentData() != "utilization":
            self.chart.set_content(*_concurrency(scope.label, stats))
        elif stats.is_processor.any():
            self.chart.set_content(*_utilization(scope.label, stats, found.names))
        else:
            self.chart.set_content(
                Content(Axis(""), Axis(""), empty=self.tr("This source knows its curve only, no locations."))
            )


def _concurrency(label: str, stats: Any) -> tuple[Content, str]:
    levels, shares = stats.levels, 100 * stats.shares
    names = tuple(
        f"{level:g} processors compute for {share:.2f} % of the time"
        for level, share in zip(levels, shares, strict=True)
    )
    content = Content(
        Axis("Processors computing", whole=True, low=-0.7, high=max(float(stats.processors), 1.0) + 0.7),
        Axis("Time (%)", zero=True),
        (Series("bars", levels, shares, label, "curve", names=names),),
        verticals=((stats.computing, f"mean {stats.computing:.3g}"),),
    )
    most = int(np.argmax(shares))
    return content, f"{label}: most of the time ({shares[most]:.1f} %) {levels[most]:g} processors compute."


def _utilization(label: str, stats: Any, names: tuple[str, ...]) -> tuple[Content, str]:
    there = np.flatnonzero(stats.is_processor)
    values = 100 * stats.utilization[there]
    told = tuple(f"{names[i]}: {v:.1f} %" for i, v in zip(there.tolist(), values, strict=True))
    if there.size > _BARS:
        groups = np.array_split(np.arange(there.size), _BARS)
        told = tuple(
            f"{names[there[g[0]]]} to {names[there[g[-1]]]}: {values[g].min():.1f} to {values[g].max():.1f} %"
            for g in groups
        )
        values = np.array([values[g].mean() for g in groups])
    content = Content(
        Axis("Location, in the order of the trace", whole=True),
        Axis("Computing (%)", zero=True),
        (Series("bars", np.arange(values.size, dtype=float), values, label, "curve", names=told),),
        levels=((100 * stats.parallel_efficiency, f"mean {100 * stats.parallel_efficiency:.3g} %"),),
    )
    return content, f"{label}: locations compute {values.min():.1f} to {values.max():.1f} % of the time."


PANEL = PanelSpec(
    "statistics",
    "Statistics",
    "bottom",
    StatisticsPanel,
    "statistics.md#levels-and-efficiencies",
    frozenset({"ranges"}),
)

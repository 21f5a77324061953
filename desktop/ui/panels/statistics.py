"""POP efficiencies, accounts and messages of run, selection and phases, and charts of one range."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QBoxLayout, QLabel, QLayout

from desktop.core.arrays import Floats
from desktop.core.labels import ACCOUNTS
from desktop.core.units import common, digits, grouped, quantity, scaled
from desktop.data.chart import Axis, Content, Series
from desktop.data.columns import Column, RowMarks
from desktop.printing import printable
from desktop.ui.guard import guarded
from desktop.ui.pages import choices, divided, fill_layout, refill, set_up
from desktop.ui.panels import Panel, PanelSpec, why_empty
from desktop.ui.plots.chart import Chart
from desktop.ui.tables import FrameView
from desktop.workbench.phase_statistics import PhaseStatistics
from desktop.workbench.workbench import Snapshot, Workbench

if TYPE_CHECKING:
    from desktop.data.curves import Measured
    from desktop.data.statistics import RangeStats

#: Bars of a chart at most; of more locations, groups of neighbours are drawn.
_BARS = 400
_PICTURES = {
    "concurrency": "Concurrency", "utilization": "Utilization of locations", "accounts": "Accounts of time",
}  # fmt: skip
_SCOPES = {"auto": "Selection, phase or run", "run": "Whole run", "selection": "Selection"}
#: Width, in heights of the text, from which on numbers and picture stand beside each other.
_BESIDE = 52
#: Height, in heights of the text, from which on there is room above and below them.
_ABOVE = 13


@dataclass(frozen=True)
class Metric:
    """A row: a column of `desktop.data.statistics.statistics_frame`. `form`: "%", "count" or "" (digits)
    of what has no unit; else the quantity, with one prefix for all ranges."""

    title: str
    tip: str
    name: str
    form: str = ""

    def texts(self, values: Sequence[float], unit: str) -> list[str]:
        """The cells of all ranges."""
        if self.form == "%":
            return ["–" if np.isnan(v) else f"{100 * v:.1f} %" for v in values]
        if self.form == "count":
            return ["–" if np.isnan(v) else grouped(v) for v in values]
        if not self.form:
            return [digits(v) for v in values]
        scale = common(values, unit)
        return [scaled(v, scale) for v in values]


METRICS: tuple[Metric, ...] = (
    Metric("Duration", "Length of the range", "duration_s", "unit"),
    Metric("Mean computing", "Mean number of processors that compute: the curve's mean level", "computing"),
    Metric("Parallel efficiency", "Mean computing over all processors P; of a constant phase, level over P",
           "parallel_efficiency", "%"),
    Metric("Load balance", "Mean over maximum computing time of the processors (POP)", "load_balance", "%"),
    Metric("Communication efficiency", "Maximum computing time over duration (POP)",
           "communication_efficiency", "%"),
    Metric("Serialisation efficiency", "Maximum computing time over the duration on an ideal network (POP)",
           "serialisation_efficiency", "%"),
    Metric("Transfer efficiency", "Duration on an ideal network over duration (POP)",
           "transfer_efficiency", "%"),
    Metric("Activity: computing", "Part of the processors' time", "computing_part", "%"),
    Metric("Activity: overhead", "Moving data, starting operations", "overhead_part", "%"),
    Metric("Activity: idle", "Waiting for somebody", "idle_part", "%"),
    Metric("Activity: I/O", "Reading and writing files", "io_part", "%"),
    Metric("Activity: not measured", "Tracing was off, or the tracer was busy", "unmeasured_part", "%"),
    Metric("Waiting", "Time of all processors together in communication in which a partner was late",
           "waiting", "unit"),
    Metric("Makes others wait", "Waiting of all processors, at any time, that delays in the range caused",
           "costs", "unit"),
    Metric("Critical path", "Part of the critical path of the run in the range", "path", "unit"),
    *(
        Metric(title, f"{tip}: part of length × processors, of which all accounts are 100 %",
               f"{name}_account_part", "%")
        for name, (title, tip) in ACCOUNTS.items()
        if name != "computing"  # which is the parallel efficiency
    ),
    Metric("Messages sent", "Whose send is recorded in the range", "messages", "count"),
    Metric("Bytes sent", "In these messages", "bytes", "unit"),
)  # fmt: skip


def _shown_metrics(ranges: Mapping[str, Floats]) -> Iterator[Metric]:
    """`METRICS` without the accounts in which no range spends any time."""
    for metric in METRICS:
        if not metric.name.endswith(("_account_part", "costs", "path")) or (ranges[metric.name] > 0).any():
            yield metric


def _of_trace(measured: Measured) -> Metric:
    """The row of a metric that the trace has."""
    name, quantity = f"metric {measured.name}", measured.quantity
    unit = f" ({quantity.unit})" if quantity.unit and not quantity.physical else ""
    kind = "Counted per second" if measured.rate else "Mean over time"
    tip = f"{kind}, of all locations together, as the tracer measured it"
    return Metric(printable(quantity.name, 60) + printable(unit), tip, name, "unit" * quantity.physical)


class StatisticsPanel(Panel):
    """A table, metrics by ranges, and beside it a chart of the range in focus."""

    def __init__(self, workbench: Workbench) -> None:
        super().__init__(workbench)
        self.table = FrameView("Statistics", sortable=False, row_height=1.25)
        self.model = self.table.frames
        self.table.horizontalHeader().sectionClicked.connect(self._chose_column)
        self.chart = Chart("How processors share the work")
        self.picture = choices(_PICTURES, narrow=16, accessibleName="Picture")
        for act in (self._arrange, self._draw):
            self.picture.activated.connect(lambda _, act=act: act())
        self.scope = choices(_SCOPES, act=workbench.set_scope, narrow=16, accessibleName="Details of")
        self.note = set_up(QLabel(), wordWrap=True)
        self._statistics = PhaseStatistics()
        self.note.setMaximumHeight(2 * self.fontMetrics().lineSpacing() + 4)
        self._head = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        split = divided(Qt.Orientation.Horizontal, (self.table, 3), (self.chart, 2))
        self._box = set_up(QBoxLayout(QBoxLayout.Direction.TopToBottom, self), contentsMargins=(6, 6, 6, 6))
        self._box.addLayout(self._head)
        fill_layout(self._head, (self.picture, 1), (self.scope, 1))
        self._box.addWidget(split, 1)
        self._box.addWidget(self.note)
        # The minimum is that of the lower arrangement, not of the present one.
        self._box.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)
        self._narrow = False
        self._draw()

    @guarded(otherwise=QSize)
    def minimumSizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(super().minimumSizeHint().width(), self.chart.minimumSizeHint().height() + em // 2)

    def room(self) -> int:
        """The height in which all rows are seen."""
        rows = max(self.model.rowCount(), 12) * self.table.verticalHeader().defaultSectionSize()
        return rows + self.table.horizontalHeader().sizeHint().height() + 2 * self.fontMetrics().height()

    def heightForWidth(self, width: int) -> int:
        """The least height; a scroll area asks for it, as the note is wrapped."""
        return self.minimumSizeHint().height()

    def _arrange(self) -> None:
        """Numbers and picture beside each other, or one of them where there is no room for both; the boxes
        above them, or beside them where that leaves too little height."""
        em = self.fontMetrics().height()
        self.note.setMaximumHeight(2 * self.fontMetrics().lineSpacing() + 4)
        narrow = self.width() < _BESIDE * em
        if narrow != self._narrow:
            self._narrow = narrow
            first = {"numbers": "Numbers"} if narrow else {}
            refill(self.picture, first | _PICTURES, "numbers" if narrow else None)
        self.picture.setToolTip(self.picture.currentText())  # which may be cut
        numbers = self.picture.currentData() == "numbers"
        self.table.setVisible(numbers or not narrow)
        self.chart.setVisible(not numbers)
        low = self.height() < max(_ABOVE * em, 0 if narrow else min(self.room() + 5 * em, 20 * em))
        self.note.setVisible(not (narrow or low))  # then it is in tooltips
        direction = QBoxLayout.Direction
        self._box.setDirection(direction.RightToLeft if low else direction.TopToBottom)
        self._head.setDirection(direction.TopToBottom if low else direction.LeftToRight)
        edge = 3 if low else 6
        self._box.setContentsMargins(6, edge, 6, edge)

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        unchanged = new.statistics is old.statistics and why_empty(new) == why_empty(old)
        if unchanged and (new.marked, new.project.names) == (old.marked, old.project.names):
            return
        self._statistics = new.statistics
        self._fill()
        self._draw()

    def _fill(self) -> None:
        statistics = self._statistics
        if statistics.scopes:
            self.scope.setItemText(self.scope.findData("run"), statistics.scopes[0].label)
        self._fill_table(statistics)
        self.note.setText(statistics.problem or self._remark())
        for widget in (self.note, self.scope):
            widget.setToolTip(self.note.text())

    def _fill_table(self, statistics: PhaseStatistics) -> None:
        """Metrics below each other, ranges beside each other; that in focus in bold, and beside the first, so
        that it is in sight whatever its number."""
        columns = [Column("Quantity", name="metric")]
        for i, scope in enumerate(statistics.scopes):
            tip = f"{quantity(scope.start_s, 's')} – {quantity(scope.end_s, 's')}"
            columns.append(Column(scope.label, tip, name=f"{i}", label=f"{i} text"))
        if not statistics.stats:
            self.table.show_frame(None, columns)
            return
        from pandas import DataFrame

        from desktop.data.statistics import statistics_frame

        frame = statistics_frame([scope.label for scope in statistics.scopes], statistics.stats)
        units = frame.attrs.pop("units")  # which pandas would copy with every column that is asked for
        # Arrays: a column of pandas takes longer to get and to set than all that is computed here.
        ranges: dict[str, Floats] = {str(name): frame[name].to_numpy() for name in frame.columns}
        for name in ACCOUNTS:
            total = ranges["duration_s"] * ranges["processors"]
            ranges[f"{name}_account_part"] = ranges[f"{name}_account"] / total
        marked = self._marked_regions()
        of_trace = [_of_trace(one) for one in statistics.metrics]
        metrics = (*(metric for metric, _ in marked), *_shown_metrics(ranges), *of_trace)
        for metric, regions in marked:
            ranges[metric.name] = np.array([stats.inclusive_s[regions].sum() for stats in statistics.stats])
        for metric, one in zip(of_trace, statistics.metrics, strict=True):
            ranges[metric.name] = np.array([one.mean(at.start_s, at.end_s) for at in statistics.scopes])
            units = units | {metric.name: one.quantity.unit}
        rows = np.array([ranges[metric.name] for metric in metrics], float)
        texts = [
            metric.texts(row, units.get(metric.name, "proc·s"))
            for metric, row in zip(metrics, rows, strict=True)
        ]
        values: dict[str, object] = {f"{i}": column for i, column in enumerate(rows.T)}
        values |= {f"{i} text": list(column) for i, column in enumerate(zip(*texts, strict=True))}
        values["metric"] = [metric.title for metric in metrics]
        focus = frozenset({f"{statistics.focus}"})
        marks = RowMarks(
            tone=dict.fromkeys(range(len(marked)), "strong"),
            tip={k: metric.tip for k, metric in enumerate(metrics)},
            bold=dict.fromkeys(range(len(metrics)), focus),
        )
        self.table.show_frame(DataFrame(values), columns, marks)
        header = self.table.horizontalHeader()
        for k in range(header.count()):
            header.moveSection(header.visualIndex(k), k)
        header.moveSection(1 + statistics.focus, min(2, 1 + statistics.focus))

    def _marked_regions(self) -> list[tuple[Metric, list[int]]]:
        """A row for each marked region, and the numbers of the regions of its name in the trace."""
        snapshot = self._workbench.snapshot
        regions = () if snapshot.document is None else snapshot.document.regions
        tip = "Inclusive time of the marked region, of all processors together"
        return [
            (
                Metric(snapshot.project.names.get(name, name), tip, f"region {name}", "unit"),
                [k for k, region in enumerate(regions) if region.name == name],
            )
            for name in snapshot.marked
        ]

    def _remark(self) -> str:
        statistics = self._statistics
        if not statistics.stats:
            return why_empty(self._workbench.snapshot)
        stats = statistics.stats[statistics.focus]
        remarks = [stats.note]
        replayed = stats.replayed
        remarks += [statistics.waits] if replayed is None else [replayed.ideal_note, replayed.waiting_note]
        if stats.is_processor.any():
            ends = stats.most_loaded(3), stats.idlest(3)
            named = (", ".join(statistics.names[i] for i in few) for few in ends)
            remarks.append("Most loaded: {}. Idlest: {}.".format(*named))
        return " ".join(text for text in remarks if text)

    def _chose_column(self, section: int) -> None:
        scopes = self._statistics.scopes
        if 0 < section <= len(scopes):
            scope = scopes[section - 1]
            self._workbench.select_phase(scope.phase if scope.phase >= 0 else None)

    def _draw(self) -> None:
        statistics = self._statistics
        if not statistics.stats:
            why = statistics.problem or why_empty(self._workbench.snapshot)
            self.chart.set_content(Content(Axis(""), Axis(""), empty=why))
            return
        scope, stats = statistics.scopes[statistics.focus], statistics.stats[statistics.focus]
        if self.picture.currentData() == "accounts":
            self.chart.set_content(*accounts(scope.label, stats, statistics.waits))
        elif self.picture.currentData() != "utilization":
            self.chart.set_content(*_concurrency(scope.label, stats))
        elif stats.is_processor.any():
            self.chart.set_content(*_utilization(scope.label, stats, statistics.names))
        else:
            why = "This source has only a curve, no locations."
            self.chart.set_content(Content(Axis(""), Axis(""), empty=why))


def _concurrency(label: str, stats: RangeStats) -> tuple[Content, str]:
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
    k = int(np.argmax(shares))
    return content, f"{label}: most of the time ({shares[k]:.1f} %) {levels[k]:g} processors compute."


def _utilization(label: str, stats: RangeStats, names: tuple[str, ...]) -> tuple[Content, str]:
    used = np.flatnonzero(stats.is_processor)
    values = 100 * stats.utilization[used]
    words = tuple(f"{names[i]}: {v:.1f} %" for i, v in zip(used.tolist(), values, strict=True))
    if used.size > _BARS:
        groups = np.array_split(np.arange(used.size), _BARS)
        words = tuple(
            f"{names[used[g[0]]]} to {names[used[g[-1]]]}: {values[g].min():.1f} to {values[g].max():.1f} %"
            for g in groups
        )
        values = np.array([values[g].mean() for g in groups])
    content = Content(
        Axis("Location, in the order of the trace", whole=True),
        Axis("Computing (%)", zero=True),
        (Series("bars", np.arange(values.size, dtype=float), values, label, "curve", names=words),),
        levels=((100 * stats.parallel_efficiency, f"mean {100 * stats.parallel_efficiency:.3g} %"),),
    )
    return content, f"{label}: locations compute {values.min():.1f} to {values.max():.1f} % of the time."


def accounts(label: str, stats: RangeStats, waits: str) -> tuple[Content, str]:
    """The accounts of a range as bars, and the largest in words; `waits`: why there are none."""
    parts = stats.account_parts()
    if not parts:
        return Content(Axis(""), Axis(""), empty=waits or "This source has only a curve."), ""
    bars = [(ACCOUNTS[account.name.lower()], 100 * part) for account, part in reversed(parts)]
    values = np.array([part for _, part in bars])
    total = stats.duration_s * stats.processors
    words = tuple(
        f"{title}: {part:.2f} %, {quantity(part / 100 * total, 'proc·s')}. {meaning}"
        for (title, meaning), part in bars
    )
    content = Content(
        Axis("Processor time (%)", zero=True),
        Axis("", categories=tuple(title for (title, _), _ in bars)),
        (Series("bars", np.arange(values.size, dtype=float), values, label, "curve", names=words),),
        horizontal_bars=True,
    )
    largest = ", ".join(f"{title} {part:.1f} %" for (title, _), part in reversed(bars[-3:]))
    return content, f"{label}: {largest} of the processors' time."


PANEL = PanelSpec(
    "statistics", "Statistics", "bottom", StatisticsPanel, "statistics.md#levels-and-efficiencies",
    frozenset({"ranges", "accounts"}),
)  # fmt: skip

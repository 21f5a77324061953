"""What repeats in the run: its loops, one iteration that stands for all, and those that are odd."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QCheckBox, QComboBox, QPushButton, QSpinBox

from desktop.core.units import quantity, time_scale
from desktop.ui.flow import flowing
from desktop.ui.guard import in_ems
from desktop.ui.mnemonics import join
from desktop.ui.pages import button, choices, divided, lay_out, quiet, refill, set_up, titled
from desktop.ui.panels import Panel, PanelSpec, why_empty
from desktop.ui.theme import LIGHT, Theme, dress
from desktop.workbench.workbench import N_LIMIT, Snapshot, Workbench

if TYPE_CHECKING:
    from desktop.core.phase_stats import Firm
    from desktop.core.phases import PhaseFit
    from desktop.data.iterations import Iterations, Level

#: Phases that can be asked for in an iteration.
_MOST_PHASES = 20


class IterationsPanel(Panel):
    """Which loop, its sentence, chart and odd iterations; their widgets are made when there are some."""

    ROOM = 19  # the chart and some rows are seen

    placeAsked = Signal(float, float)  # start and end (s) of what is to be seen

    def __init__(self, workbench: Workbench) -> None:
        super().__init__(workbench)
        self._theme: Theme = LIGHT
        self._found: Iterations | None = None  # as the trace names its regions
        self._iterations: Iterations | None = None
        self._fit: PhaseFit | None = None
        self._has_content = False
        self.words = quiet(textFormat=Qt.TextFormat.PlainText, accessibleName="Iterations found")
        self.tools, self.flow = flowing()
        self.tools.hide()
        self._layout = lay_out(self, self.words, self.tools, margins=(6, 4, 6, 4), spacing=4)
        self._layout.addStretch(0)

    def _make(self) -> None:
        from desktop.ui.plots.chart import Chart
        from desktop.ui.tables import FrameView

        self._has_content = True
        policy = QComboBox.SizeAdjustPolicy.AdjustToContents
        self.level = choices(
            {}, act=lambda _: self._show_level(), accessibleName="Loop", sizeAdjustPolicy=policy
        )
        self.phases = set_up(
            QSpinBox(), range=(0, _MOST_PHASES), specialValueText="as suggested",
            accessibleName="Phases in an iteration", valueChanged=lambda _: self._draw(),
        )  # fmt: skip
        label = titled("Phases in it", self.phases)
        self.drawn = set_up(
            QCheckBox("&Boundaries in the plots"), toggled=lambda _: self._draw_boundaries(),
            toolTip="Lines in the curve and in the timeline where iterations begin and end",
        )  # fmt: skip
        self.split = button("A phase for each", lambda: self._take(inner=False))
        self.inner = button("Its phases &in the run", lambda: self._take(inner=True))
        for widget in (self.level, label, self.phases, self.drawn, self.split, self.inner):
            self.flow.addWidget(widget)
        self.chart = Chart("Typical iteration")
        self.odd = set_up(FrameView("Odd iterations"), chosen=self._show_odd)
        self.parts = divided(Qt.Orientation.Horizontal, (self.chart, 3), (self.odd, 2))
        self._layout.insertWidget(2, self.parts, 1)
        join(self)
        dress(self, self._theme)

    # ---- showing

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme

    minimumSizeHint = in_ems(14, 11)

    def heightForWidth(self, width: int) -> int:
        """The least height for words, tools and chart; a scroll area asks for it."""
        em = self.fontMetrics().height()
        words = self.words.heightForWidth(width - 12)
        with_tools = self._iterations is not None and self._has_content
        tools = self.tools.heightForWidth(width - 12) if with_tools else 0
        return max(words, 0) + max(tools, 0) + 9 * em

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        if self._has_content and not new.boundaries and old.boundaries and self.drawn.isChecked():
            self.drawn.setChecked(False)  # of a run that is no longer shown
        iterations = new.statistics.iterations if new.statistics.run is new.run else None
        if iterations is None:
            self._found = self._iterations = None
            self.words.setText(new.statistics.problem or self._waiting(new))
            self._arrange()
            return
        if iterations is self._found:
            if new.project.names != old.project.names:
                self._iterations = iterations.called(new.project.names)
                self._show_level()
        else:
            self._found, self._iterations = iterations, iterations.called(new.project.names)
            iterations = self._iterations
            if iterations.levels and not self._has_content:
                self._make()
            self._arrange()
            if iterations.levels:
                self._list_levels(iterations)
            else:
                self.words.setText(f"No iterations were found. {iterations.reason}")

    @staticmethod
    def _waiting(new: Snapshot) -> str:
        if new.document is not None and not new.document.locations:
            return "Being searched for in the curve."
        return why_empty(new)

    def _arrange(self) -> None:
        """Show the widgets of loops while there are loops."""
        visible = self._iterations is not None and self._iterations.found
        self.tools.setVisible(visible)
        if self._has_content:
            self.parts.setVisible(visible)

    def _list_levels(self, iterations: Iterations) -> None:
        loops = [level.loop for level in iterations.levels]
        texts = (f"{loop.count} × {quantity(loop.period, 's', 4)}" for loop in loops)
        refill(self.level, dict(enumerate(texts)), 0)
        self._show_level()

    @property
    def selected_level(self) -> Level | None:
        """The chosen loop."""
        place = self.level.currentIndex() if self._has_content else -1
        levels = () if self._iterations is None else self._iterations.levels
        return levels[place] if 0 <= place < len(levels) else None

    def _show_level(self) -> None:
        level = self.selected_level
        if level is None or self._iterations is None:
            return
        self.words.setText(f"{level.sentence} {self._iterations.reason}")
        text = "Make each iteration a phase of the run, so that table and statistics show each of them"
        _offer(self.split, level.loop.count, text)
        self._list_odd(level)
        self._draw()
        self._draw_boundaries()

    def _list_odd(self, level: Level) -> None:
        from desktop.data.columns import Column, TableRow
        from desktop.data.naming import listed

        start = time_scale(max((one.start_s for one in level.odd), default=0.0))
        longer = time_scale(max((one.excess_s for one in level.odd), default=0.0))
        columns = (
            Column("#", "Number of the iteration, from 1"),
            Column("Start", "Its begin", start.symbol, significant=5),
            Column("Longer", "How much longer it lasts than its neighbours", longer.symbol),
            Column("Ranks", "Locations that computed longer than in a usual iteration"),
            Column("Region", "Where most of that time was spent", stretch=True),
        )
        rows = [
            TableRow(
                (one.index + 1, one.start_s / start.factor, one.excess_s / longer.factor,
                 listed(one.ranks), one.region),
                one.index,
            )
            for one in level.odd
        ]  # fmt: skip
        self.odd.setVisible(bool(rows))
        self.odd.show_rows(columns, rows, "Iterations that last longer than their neighbours")

    def _draw(self) -> None:
        """Draw the chart when its phases, of the chosen number, are fitted."""
        level = self.selected_level
        if level is None:
            return
        self._fit = None  # until then there are none to take
        self.inner.setEnabled(False)
        self._workbench.fit_iteration(level, self.phases.value() or None, partial(self._show_phases, level))

    def _show_phases(self, level: Level, fit: PhaseFit, firm: Sequence[Firm | None]) -> None:
        from desktop.data.iteration_charts import fold_chart

        if level is not self.selected_level:
            return
        self._fit = fit
        inner = ", ".join(
            quantity(t, "s", 4) + ("" if one is None else f" ({one.words})")
            for t, one in zip(fit.breaks[1:-1].tolist(), firm, strict=True)
        )
        places = f", with breakpoints at {inner}" if inner else ""
        words = f"{level.sentence} Phases in an iteration: {fit.n}{places}."
        self.chart.set_content(fold_chart(level, fit, firm), words)
        text = "The phases of this iteration in every iteration of the run"
        _offer(self.inner, level.loop.count * fit.n, text)

    # ---- acting

    def _draw_boundaries(self) -> None:
        level = self.selected_level
        drawn = level is not None and self.drawn.isChecked()
        times = tuple(level.loop.bounds.tolist()) if level is not None and drawn else ()
        QTimer.singleShot(0, self, lambda: self._workbench.draw_boundaries(times))

    def _take(self, *, inner: bool) -> None:
        from desktop.core.iterations import unfolded

        level = self.selected_level
        if level is None or self._fit is None:
            return
        times = level.loop.bounds.tolist()
        if inner:
            times += unfolded(level.loop, self._fit.breaks[1:-1]).ravel().tolist()
        self._workbench.take_breakpoints(times)

    def _show_odd(self, index: object) -> None:
        level = self.selected_level
        if level is not None and isinstance(index, int):
            bounds = level.loop.bounds
            self.placeAsked.emit(float(bounds[index]), float(bounds[index + 1]))


def _offer(button: QPushButton, phases: int, text: str) -> None:
    """Enable a button that makes so many phases, if there may be so many."""
    few = phases < N_LIMIT
    set_up(button, enabled=few, toolTip=text if few else f"There may be {N_LIMIT} phases at most")


PANEL = PanelSpec(
    "iterations", "Iterations", "bottom", IterationsPanel, "iterations.md", frozenset({"iterations"})
)

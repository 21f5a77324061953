"""The effects of an experiment beside the trace: choosing one marks where its factors run."""

from __future__ import annotations

from html import escape

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from desktop.core.units import common, scaled
from desktop.ui.mnemonics import rename
from desktop.ui.pages import by_text, choices, refill, set_up, stacked, titled
from desktop.ui.panels import PanelSpec, why_empty
from desktop.ui.plots.chart import Chart
from desktop.ui.side_panel import SidePanel
from desktop.ui.tables import FrameView
from desktop.workbench.experimenting import ExperimentBench, ExperimentSnapshot
from desktop.workbench.pinning import PinnedFactor
from desktop.workbench.side import EffectsSide, EffectsSnapshot
from desktop.workbench.workbench import Snapshot, Workbench

#: Regions that can be chosen for a factor, those with most time.
_REGIONS = 1000


class EffectsPanel(SidePanel[EffectsSnapshot, ExperimentBench]):
    """The table of effects and the SPT rank, a chart, and where the chosen effect is in the trace."""

    _side: EffectsSide

    def __init__(self, workbench: Workbench) -> None:
        super().__init__(workbench, "Experiment")
        self.add.setText("&Open experiment…")
        self.response = self._combo("Response", self._choose_response)
        self.numbers = self._combo("Table", lambda _: self._turn(), "Effects", "SPT rank")
        self.picture = self._combo("Chart", lambda _: self._turn(), "Half-normal plot", "Pareto chart")
        self.tool(self.response, self.numbers, self.picture, self.page)
        links = Qt.TextInteractionFlag
        self.places_text = set_up(
            QLabel(), wordWrap=True, textFormat=Qt.TextFormat.RichText,
            accessibleName="Where the effect is in the trace",
            textInteractionFlags=links.LinksAccessibleByMouse | links.LinksAccessibleByKeyboard,
            linkActivated=lambda phase: workbench.select_phase(int(phase)),
        )  # fmt: skip
        self.region = choices({}, act=self._choose_region, narrow=14, accessibleName="Region of the factor")
        self.region_label = titled("Region o&f factor", self.region)
        self.tool(self.region_label, self.region)

    # ---- showing

    def make_content(self) -> QWidget:
        from desktop.ui.experiment.parts import let_toggle

        self.effects, self.rank = FrameView("Effects"), FrameView("SPT rank")
        for table in (self.effects, self.rank):
            table.chosen.connect(self._choose)
        self._stale = {self.effects, self.rank}  # tables of other effects than are shown
        self.chart = set_up(Chart(self.picture.currentText()), clicked=self._clicked)
        let_toggle(self.effects, self._toggle)
        self.beside((self.effects, self.rank), self.chart)
        return stacked(self.places_text, (self._split, 1), spacing=4)

    def why_empty(self, snapshot: EffectsSnapshot) -> tuple[str, tuple[QPushButton, ...]]:
        current = snapshot.content
        if not snapshot.names:
            return (
                "The project holds no experiment. Open one, or a table of runs: its effects stand here, and "
                "choosing one marks where it runs in the trace."
            ), (self.add,)
        if current is None or (current.task is not None and current.effects is None):
            return "The experiment is being read.", ()
        if current.project.experiment is None and current.project.imported is None:
            return self.unreadable(snapshot.names[snapshot.index], current.problem)
        if current.effects is not None:
            return "", ()
        if self._side.busy:
            return "The trials are being analysed.", ()
        return current.why_empty, (self.page_of,)

    def show_results(self, old: EffectsSnapshot, new: EffectsSnapshot) -> None:
        current, former = new.content, old.content
        assert current is not None
        if former is None or (current.effects, current.project) != (former.effects, former.project):
            self._fill(current)
        drawn, last = (one and (one.effects, one.project.analysis, one.selected) for one in (current, former))
        if drawn != last:
            self._draw()
            self._fill_table(current)
        if new.pinned is not old.pinned:
            largest = () if new.pinned is None else new.pinned.largest(_REGIONS)
            refill(self.region, {"": "by its name", **{name: self._called(name) for name in largest}})
        self._say(new)

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        super().show_snapshot(old, new)
        if self._has_content and why_empty(new) != why_empty(old):
            self._say(self._side.snapshot)

    def _fill(self, snapshot: ExperimentSnapshot) -> None:
        self._stale = {self.effects, self.rank}
        self._fill_table(snapshot)
        refill(self.response, by_text(snapshot.responses), snapshot.read_response)
        self.response.setToolTip(self.response.currentText())
        several = len(snapshot.responses) > 1
        self.useless = set() if several else {self.response}

    def _fill_table(self, snapshot: ExperimentSnapshot) -> None:
        """Fill the table in view, if it shows other effects."""
        from desktop.workbench import effect_rows

        table = self.rank if self.numbers.currentIndex() else self.effects
        if table in self._stale:
            self._stale.discard(table)
            table.show_rows(*effect_rows.of_snapshot(snapshot, ranks=table is self.rank))
        table.select_key(snapshot.selected)

    def _draw(self) -> None:
        """The chart that is chosen."""
        from desktop.ui.experiment import charts

        current = self._side.snapshot.content
        if current is None or current.effects is None:
            return
        half, unit = current.project.analysis.half, current.effect_unit
        if self.picture.currentIndex() == 0:
            content = charts.half_normal(current.effects, current.every, half, unit, current.selected)
        else:
            bars = charts.bars_in(self.chart.height(), self.fontMetrics().height())
            content = charts.pareto(current.effects, current.every, half, unit, current.selected, bars)
        effects = f"{len(current.effects.effects)} effects, which stand in the table"
        self.chart.set_content(content, content.empty or f"{self.picture.currentText()} of {effects}")

    def _turn(self) -> None:
        """Show the table and the chart that are chosen."""
        self.tables.setCurrentIndex(self.numbers.currentIndex())
        self.chart.setAccessibleName(self.picture.currentText())
        current = self._side.snapshot.content
        if current is not None and current.effects is not None:
            self._fill_table(current)
            self._draw()

    # ---- in the trace

    def _called(self, region: str) -> str:
        return self._workbench.snapshot.project.names.get(region, region)

    @property
    def _factor(self) -> PinnedFactor | None:
        """The factor whose region can be chosen: the first one without a region, else the first one."""
        places = self._side.snapshot.places
        return next((place for place in places if not place.region), places[0] if places else None)

    def _say(self, new: EffectsSnapshot) -> None:
        current, place = new.content, self._factor
        self.region.setEnabled(place is not None)
        self.region_label.setEnabled(place is not None)
        name = place.factor.replace("&", "&&") if place is not None else "factor"
        rename(self.region_label, f"Region of {name}")
        if place is not None and current is not None:
            region = current.project.regions.get(place.factor, "")
            self.region.setCurrentIndex(max(self.region.findData(region), 0))
        lines = []
        if current is None or not current.selected or (new.pinned is not None and not new.places):
            lines.append("Choose an effect: its regions are marked in timeline, statistics and profile.")
        elif new.pinned is None:
            trace = self._workbench.snapshot
            if trace.document is not None and not trace.document.regions:
                lines.append("This trace names no regions, so no effect can be found in it.")
            else:
                lines.append(escape(trace.statistics.problem or why_empty(trace)))
        lines += [self._factor_words(factor) for factor in new.places]
        if current is not None and current.problem:
            lines.append(escape(current.problem))
        self.places_text.setText("<br>".join(lines))

    def _factor_words(self, place: PinnedFactor) -> str:
        """A factor, its region, and the time of that in every phase."""
        factor, region = escape(place.factor), escape(self._called(place.region))
        if not place.region:
            return f"No region has the name of <b>{factor}</b> or of its routine: choose its region."
        scale = common((phase.inclusive_s for phase in place.phases), "proc·s")
        phases = ", ".join(
            f"<a href='{p.phase}'>phase {p.phase + 1}</a>: {escape(scaled(p.inclusive_s, scale))}"
            for p in place.phases
        )
        name = f"<b>{factor}</b>" if factor == region else f"<b>{factor}</b> ({region})"
        return f"{name}: {phases or 'in none of these phases'}"

    # ---- acting

    def _choose(self, term: str) -> None:
        self._side.select(term)

    def _clicked(self, key: int, more: bool) -> None:
        """Choose the term; with Ctrl held, take it out of the model or put it back."""
        current = self._side.snapshot.content
        if current is not None and current.every is not None and 0 <= key < len(current.every.effects):
            term = current.every.effects[key].term
            self._choose(term)
            if more:
                self._toggle(term)

    def _toggle(self, term: str) -> None:
        """Take a term out of the model, or put it back."""
        if self._side.bench is not None:
            self._side.bench.toggle_term(term)

    def _choose_response(self, place: int) -> None:
        if self._side.bench is not None:
            self._side.bench.choose_rows(self.response.itemData(place))

    def _choose_region(self, name: str) -> None:
        if self._factor is not None:
            self._side.pin_to(self._factor.factor, name)


PANEL = PanelSpec(
    "effects", "Effects", "bottom", EffectsPanel, "spt.md#effects-beside-the-trace", frozenset({"ranges"})
)

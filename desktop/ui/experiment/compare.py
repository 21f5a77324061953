"""Step 5: barriers, versions, processors, sizes of delay, and the ranking of an array."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PySide6.QtWidgets import QDoubleSpinBox, QLabel, QVBoxLayout, QWidget

from desktop.core.array_search import LevelMean
from desktop.core.effect_tables import Dose
from desktop.core.units import digits, trimmed, with_unit
from desktop.data.chart import Axis, Content, Series
from desktop.data.columns import Column, TableRow, Value
from desktop.data.structure import LARGEST
from desktop.ui.experiment import charts
from desktop.ui.experiment.parts import Step
from desktop.ui.pages import (
    asked_paths,
    beside,
    button,
    by_text,
    choices,
    group,
    quiet,
    refill,
    row,
    set_up,
    stacked,
    tabbed,
    turn_to,
)
from desktop.ui.plots.chart import Chart
from desktop.ui.tables import FrameView
from desktop.workbench import effect_comparison, effect_rows
from desktop.workbench.effect_comparison import ComparedTable, ScaledEffect, compared_of
from desktop.workbench.experimenting import ExperimentBench, ExperimentSnapshot

_TABLES = (
    Column("Table", stretch=True),
    Column(
        "Processors",
        "Number of processors it was measured on; 0 or empty if that does not matter",
        editable=True,
    ),
    Column("Delay", "Size of the delay it was measured with", "units", editable=True),
    Column("Effects", "How many it has"),
)
#: What is open in this window, beside the tables that were added.
_THIS = "here"


class CompareStep(Step):
    """Compares tables of effects; each tab says what it needs when it cannot show anything."""

    title = "Compare"

    def __init__(self, bench: ExperimentBench) -> None:
        super().__init__(bench)
        self.here_p = 0.0
        self.here_delay = 0.0
        self._names: tuple[str, ...] = ()
        self._fresh = True
        self.tables = FrameView("Tables to compare")
        self.tables.frames.edited.connect(self._edited)
        self.barriers = set_up(FrameView("Barrier pairs"), chosen=bench.select)
        self.cost = self._cost(-1e9, "Effect of the artificial barrier itself")
        self.cost_se = self._cost(0, "Standard error of the effect of the artificial barrier")
        self.barrier_words = quiet()
        self.other = choices({}, act=lambda _: self._draw(), name="Other version")
        self.versions = set_up(FrameView("Versions"), chosen=bench.select)
        self.version_words = quiet()
        self.scaling = set_up(FrameView("Scaling"), chosen=bench.select)
        self.scaling_words = quiet()
        self.factor, self.scale = (
            choices({}, act=lambda _: self._draw(), name=name) for name in ("Factor", "Scale")
        )
        self.half_se = set_up(
            QDoubleSpinBox(), range=(0, 1e9), decimals=4, singleStep=0.01, specialValueText="from replicates",
            accessibleName="Standard error of a coefficient", valueChanged=lambda _: self._draw(),
            toolTip="Where there are no replicates, as another experiment or a report says it",
        )  # fmt: skip
        self.verdict = quiet()
        self.single = FrameView("One factor and the scale")
        self.over_p = set_up(FrameView("Effects over processors"), chosen=bench.select)
        self.over_p_chart = Chart("Effect against processors")
        self.over_p_words = quiet()
        self.doses = set_up(FrameView("Effects over the delay"), chosen=bench.select)
        self.dose_chart = Chart("Effect against the size of the delay")
        self.dose_words = quiet()
        measures = {"unit": "effect per unit of delay", "effect": "effect"}
        self.dose_shown = choices(measures, act=lambda _: self._draw_many(), name="Chart of delay sizes")
        self.response = choices({}, act=bench.choose_rows, name="Response that ranks the runs")
        self.ranking = FrameView("Runs by response")
        self.level_chart = Chart("Level means")
        self.search_words = quiet()
        artificial = QLabel("Effect of the artificial barrier itself")
        with_scale = (
            QLabel("Factor"), self.factor, QLabel("Scale"), self.scale, QLabel("Standard error"),
        )  # fmt: skip
        self.tabs = tabbed({
            "Barriers": stacked(
                row(artificial, self.cost, QLabel("±"), self.cost_se, None), self.barrier_words,
                (self.barriers, 1),
            ),
            "Versions": stacked(
                row(QLabel("This and"), self.other, None), self.version_words, (self.versions, 1)
            ),
            "Scaling": stacked(self.scaling_words, (self.scaling, 1)),
            "One factor and the scale": stacked(
                row(*with_scale, self.half_se, None), self.verdict, (self.single, 1)
            ),
            "Processors": stacked(self.over_p_words, (beside(self.over_p, self.over_p_chart), 1)),
            "Delay sizes": stacked(
                row(QLabel("Show"), self.dose_shown, None), self.dose_words,
                (beside(self.doses, self.dose_chart), 1),
            ),
            "Array search": stacked(
                row(QLabel("Response"), self.response, None), self.search_words,
                (beside(self.ranking, self.level_chart), 1),
            ),
        })  # fmt: skip
        QVBoxLayout(self.content).addWidget(beside(self._tables_group(), self.tabs, 36))

    # ---- showing

    def show_snapshot(self, old: ExperimentSnapshot, new: ExperimentSnapshot) -> None:
        renamed = new.name != old.name
        imported = new.project.imported is not old.project.imported and not self.bench.branch.edited
        if renamed or imported:
            self.here_p = self.here_delay = 0.0
        drawn = ("effects", "parts", "search", "project")
        if renamed or any(getattr(new, name) is not getattr(old, name) for name in drawn):
            self._draw()
        if new.selected != old.selected:
            for table in self._terms:
                table.select_key(new.selected)
            self._draw_charts(new.selected)
        if renamed or (self._fresh and (new.search or new.parts)):
            self._show_tab(new)

    def _show_tab(self, new: ExperimentSnapshot) -> None:
        """Turn to the tab that can show a project without effects of its own, once its contents are known."""
        self._fresh = new.effects is None and new.search is None and not new.parts
        if new.effects is not None or self._fresh:
            return
        delays = any(part.delay for part in new.parts)
        turn_to(self.tabs, "Delay sizes" if delays else "Array search" if new.search else "Scaling")

    @property
    def _terms(self) -> tuple[FrameView, ...]:
        return self.barriers, self.versions, self.scaling, self.over_p, self.doses

    def _tables_group(self) -> QWidget:
        say = quiet("Enter the number of processors and the delay of each table. The first row is the one "
                    "that is open.")  # fmt: skip
        tip = "Runs, effects, or the experiment.toml of another experiment"
        tools = row(button("Add table…", self._add, tip), button("Remove", self._remove), None)
        return group("Tables", say, self.tables, tools)

    def _cost(self, least: float, name: str) -> QDoubleSpinBox:
        return set_up(
            QDoubleSpinBox(), range=(least, 1e9), decimals=4, accessibleName=name,
            valueChanged=lambda _: self._draw(),
        )  # fmt: skip

    def _this_table(self) -> ComparedTable | None:
        new = self.bench.snapshot
        if new.effects is None:
            return None
        return compared_of(new.name or "this", Path(), new.effects, self.here_p, self.here_delay)

    def _all(self) -> list[ComparedTable]:
        this_table, new = self._this_table(), self.bench.snapshot
        return [*([this_table] if this_table else []), *new.parts, *new.project.tables]

    def _draw(self) -> None:
        new = self.bench.snapshot
        this_table, tables = self._this_table(), new.project.tables
        fixed_cells = frozenset(("Processors", "Delay"))  # by the parts of a table themselves
        listed = [(_THIS, this_table, "strong", frozenset[str]())] if this_table else []
        listed += [(f"{_THIS}{k}", part, "", fixed_cells) for k, part in enumerate(new.parts)]
        listed += [(str(k), table, "", frozenset[str]()) for k, table in enumerate(tables)]
        rows = []
        for key, entry, tone, fixed in listed:
            base = entry.unperturbed if math.isfinite(entry.unperturbed) else None
            cells = (entry.name, _plain(entry.processors), _plain(entry.delay), len(entry.effects), base)
            rows.append(TableRow(cells, key, tone, str(entry.path), fixed=fixed))
        base_column = Column("Base", "Response of the unperturbed run", new.project.measured.unit)
        self.tables.show_rows((*_TABLES, base_column), rows)
        for box in (self.cost, self.cost_se, self.half_se):
            box.setSuffix(f" {new.effect_unit}".rstrip())
        self._draw_barriers(this_table)
        self._draw_versions(this_table, tables)
        self._draw_scaling()
        self._draw_single(new)
        self._draw_many()
        self._draw_search(new)
        for view in self._terms:
            view.select_key(new.selected)

    def _draw_barriers(self, table: ComparedTable | None) -> None:
        cost, cost_se = self.cost.value(), self.cost_se.value()
        pairs = effect_comparison.barriers(table, cost, cost_se) if table else ()
        self.barrier_words.setText(
            "FB1 delays before a barrier, FB2 after it, behind a barrier of its own; the difference is what "
            "is waited there (NISTIR 5139, table 11). Look at its share as well as at its t. The artificial "
            "barrier is not free: measure FB2 with a delay of 0 and type its effect and standard error."
            if pairs
            else "Barrier pairs are factors called alike but for 1 and 2, such as FB1_x and FB2_x; there are "
            "none."
        )
        self.barriers.show_rows(*effect_rows.barriers(pairs, self.bench.snapshot.effect_unit))

    def _draw_versions(self, table: ComparedTable | None, others: Sequence[ComparedTable]) -> None:
        refill(self.other, {k: t.name for k, t in enumerate(others)})
        if table is None or not others:
            self.versions.show_rows((), [])
            self.version_words.setText("Add the table of another version of the program.")
            return
        other = others[self.other.currentData()]
        try:
            terms = effect_comparison.normalised(table, other)
        except ValueError as error:
            self.version_words.setText(f"Versions cannot be compared: {error}.")
            terms = ()
        else:
            self.version_words.setText(
                "Full effects as percent of each version's own unperturbed run (NISTIR 5131, table 2-C), so "
                "that versions of different speed can be compared."
            )
        self.versions.show_rows(*effect_rows.versions(table.name, other.name, terms))

    def _draw_scaling(self) -> None:
        try:
            small, large, scalings = effect_comparison.two_scales(self._all())
        except ValueError as error:
            self.scaling_words.setText(f"Two tables are combined here: {error}.")
            self.scaling.show_rows(*effect_rows.scales(()))
            return
        p, q = small.processors, large.processors
        self.scaling_words.setText(
            f"A is {small.name} on {p:g}, B is {large.name} on {q:g} processors. Work that is shared "
            f"perfectly has ratio {digits((p - q) / (p + q), 3)} and exponent −1 (NISTIR 5417, table 3)."
        )
        self.scaling.show_rows(*effect_rows.scales(scalings, self.bench.snapshot.effect_unit))

    def _draw_single(self, new: ExperimentSnapshot) -> None:
        names = new.effects.trials.factors if new.effects else ()
        for box in (self.factor, self.scale):
            refill(box, by_text(names))
        if names != self._names and new.effects is not None and len(names) > 1:
            guess = effect_comparison.guess_scale(new.effects)
            for combo, name in zip((self.factor, self.scale), guess, strict=True):
                refill(combo, by_text(names), name)
        self._names = names
        unit = new.effect_unit
        columns = (
            Column("Quantity"), Column("Half effect", "", unit), Column("SE", "", unit, 3), Column("Meaning"),
        )  # fmt: skip
        if new.effects is None or len(names) < 2:
            self.verdict.setText(
                "One factor and the scale need a table with two columns of levels: the delay, and the "
                "number of processors."
            )
            self.single.show_rows(columns, [])
            return
        factor, scale = str(self.factor.currentData()), str(self.scale.currentData())
        try:
            t = effect_comparison.scale_test_of(new.effects, factor, scale, self.half_se.value() or None)
        except ValueError as error:
            self.verdict.setText(f"No verdict: {error}.")
            self.single.show_rows(columns, [])
            return
        self.verdict.setText(
            f"<b>{t.verdict}</b>: {t.reason}. The factor scales if D is below zero by more than "
            f"{digits(t.limit, 3)} standard errors (5 % level), that is, if its share of the run time falls "
            "(NISTIR 5417, table 4). Use wall time: CPU time counts waiting as work."
        )
        lines = (
            ("mean", t.mu, t.se, "μ"),
            (factor, t.factor, t.se, "coefficient of the delay"),
            (scale, t.scale, t.se, "half the change from fewer to more processors"),
            (f"{factor}:{scale}", t.interaction, t.se, "interaction"),
            ("threshold", t.threshold, None, "an interaction below this scales"),
            ("D", t.excess, t.excess_se, "interaction less threshold"),
        )
        self.single.show_rows(columns, [TableRow(line, line[0]) for line in lines])

    def _draw_many(self) -> None:
        self._scaled: tuple[ScaledEffect, ...] = ()
        self._dosed: tuple[tuple[str, Dose], ...] = ()
        self._over_p_why = self._dose_why = ""
        tables, unit = self._all(), self.bench.snapshot.effect_unit
        try:
            self._scaled = effect_comparison.over_processors(tables)
            self.over_p_words.setText(
                "Effects over processors fitted by a/p + b (weighted by their standard errors): a is shared, "
                "b is not. Slope is that of ln effect on ln p."
            )
        except ValueError as error:
            self._over_p_why = f"This {error}. Add tables and enter their processors."
            self.over_p_words.setText(self._over_p_why)
        self.over_p.show_rows(*effect_rows.over_processors(self._scaled, unit))
        try:
            self._dosed = effect_comparison.doses(tables)
            bent = [name for name, dose in self._dosed if not dose.linear]
            text = "Effect for each unit of delay; level lines say that the linear model holds."
            if self.dose_shown.currentData() == "effect":
                text = "Effect at each size of the delay, as a pilot has it."
            fails = f" The linear model fails for {', '.join(bent)} (dashed)." if bent else ""
            self.dose_words.setText(text + fails)
        except ValueError as error:
            self._dose_why = f"This {error}. Add tables and enter their delays."
            self.dose_words.setText(self._dose_why)
        self.doses.show_rows(*effect_rows.doses(self._dosed, unit))
        self._draw_charts(self.bench.snapshot.selected)

    def _draw_charts(self, selected: str) -> None:
        """Chart the largest effects and the selected one."""
        largest = sorted(self._scaled, key=lambda s: -max(map(abs, s.effect)))
        terms, unit = _few([s.term for s in largest], selected), self.bench.snapshot.effect_unit
        content = charts.over_scale(self._scaled, terms, unit, self._over_p_why)
        self.over_p_chart.set_content(content, self.over_p_words.text())
        names = _few([n for n, _ in sorted(self._dosed, key=lambda d: -abs(d[1].effect).max())], selected)
        full = self.dose_shown.currentData() == "effect"
        content = charts.over_delay(self._dosed, names, unit, self._dose_why, full)
        self.dose_chart.set_content(content, self.dose_words.text())

    def _draw_search(self, new: ExperimentSnapshot) -> None:
        search = new.search
        refill(self.response, by_text(new.responses), new.read_response)
        self.response.setEnabled(search is not None)
        why = (
            "An array search needs an experiment whose design is an orthogonal array, or a table of runs: a "
            "column of levels or sizes for each factor, and one of responses."
        )
        if search is None:
            self.search_words.setText(why)
            self.ranking.show_rows((), [])
            self.level_chart.set_content(Content(Axis(""), Axis(""), empty=why))
            return
        levels = zip(search.factors, search.settings[0], strict=True)
        best = ", ".join(f"{name} {trimmed(level, 6)}" for name, level in levels)
        share = f", {digits(search.percent(0), 3)} % of the unperturbed run" if search.base >= 0 else ""
        refused = new.project.table.refused if new.project.table is not None else ""
        gaps = "".join(f" {note}." for note in (search.gaps, refused) if note)
        mean = f"{digits(search.mean[0])} {new.project.measured.unit}".rstrip()
        self.search_words.setText(
            f"Best so far: run {search.names[0]} with {mean}{share} ({best}). Runs are "
            f"ranked, level means compared; no linear effect is assumed.{gaps}"
        )
        unit = new.project.measured.unit
        self.ranking.show_rows(*effect_rows.ranking(search, unit))
        means = _level_means(search.levels, search.factors, unit)
        self.level_chart.set_content(means, self.search_words.text())

    # ---- acting

    def _edited(self, key: str, column: int, text: str) -> None:
        word = "processors" if column == 1 else "delay"
        try:
            value = float(text or 0)
        except ValueError:
            value = math.nan
        if not 0 <= value < LARGEST:
            self.bench.complain(f"{text!r} is no number of {word}")
            return
        if key != _THIS:
            self.bench.set_table(int(key), **{word: value})
            return
        self.bench.dismiss_problem()
        if word == "processors":
            self.here_p = value
        else:
            self.here_delay = value
        self._draw()

    def _add(self) -> None:
        for path in asked_paths(self, "Tables to compare", files="Tables (*.csv *.toml)"):
            self.bench.add_table(path)

    def _remove(self) -> None:
        key = self.tables.key
        if key and not key.startswith(_THIS):
            self.bench.remove_table(int(key))


def _plain(value: float) -> Value:
    """A cell of a number that is usually whole; empty for 0."""
    return effect_rows.as_whole(value) if value else None


def _few(names: Sequence[str], selected: str) -> list[str]:
    first = list(names[:5])
    return [*first, selected] if selected in names and selected not in first else first


def _level_means(levels: Sequence[LevelMean], factors: Sequence[str], unit: str) -> Content:
    """Mean response at every level of every factor."""
    series: list[Series] = []
    for j, factor in enumerate(factors):
        means = [one for one in levels if one.factor == factor]
        step = 0.7 / max(len(means) - 1, 1)
        x = np.array([j - 0.35 + step * k for k in range(len(means))])
        y = np.array([m.mean for m in means])
        names = tuple(
            f"{factor} level {trimmed(m.level, 6)}\nmean {digits(m.mean)} of {m.runs}" for m in means
        )
        series += [Series("line", x, y), Series("points", x, y, names=names)]
    factor_axis = Axis("Factor, levels from left to right", categories=tuple(factors))
    return Content(factor_axis, Axis(with_unit("Mean response", unit)), tuple(series))

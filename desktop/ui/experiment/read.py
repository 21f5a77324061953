"""Step 4: effects with their uncertainty, charts that say the same, and the model that is left."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QCheckBox, QComboBox, QGridLayout, QLabel, QWidget

from desktop.core.effects import Effects
from desktop.core.units import capital, count, digits, trimmed, with_unit
from desktop.data.chart import Axis, Content
from desktop.data.columns import Column, TableRow
from desktop.data.confirm import CONFIRMATION, RUNS
from desktop.data.confirm import describe as describe_confirmed
from desktop.data.experiment import JOURNAL
from desktop.ui.experiment import charts
from desktop.ui.experiment.parts import ErrandDialog, Step, let_toggle
from desktop.ui.guard import guarded
from desktop.ui.pages import (
    asked_path,
    beside,
    button,
    by_text,
    choices,
    divided,
    lay_out,
    quiet,
    refill,
    row,
    scrolled,
    set_up,
    stacked,
    tabbed,
)
from desktop.ui.plots.chart import Chart
from desktop.ui.tables import FrameView
from desktop.workbench import effect_rows
from desktop.workbench.experimenting import ExperimentBench, ExperimentSnapshot

_ERRORS = {
    "": "as the trials allow",
    "replicates": "replicates",
    "interactions": "interactions",
    "lenth": "Lenth",
    "none": "none",
}
_LIMITS = {
    "t": "5 % for each effect",
    "familywise": "5 % for all together",
    "fdr": "5 % of the marked (FDR)",
    "2": "2 standard errors",
    "3": "3 standard errors",
    "lenth": "Lenth margin",
    "lenth-simultaneous": "Lenth simultaneous",
}
_POWERS = {
    "1": "as it is",
    "0": "logarithm",
    "0.5": "square root",
    "-0.5": "1 / square root",
    "-1": "reciprocal",
    "2": "square",
}
_INNER = {
    "each": "each trial",
    "median": "median of repeats",
    "minimum": "minimum of repeats",
    "mean": "mean of repeats",
}
_EFFECT_KINDS = {"full": "full effects", "half": "coefficients (half effects)"}


class ReadStep(Step):
    """Tables and charts of `Effects`; a click on a term marks it in all of them."""

    title = "Read"

    def __init__(self, bench: ExperimentBench) -> None:
        super().__init__(bench)
        self._drawn: Effects | None = None

        def setting(
            entries: Mapping[str, str], name: str, field: str, label: str, read: Callable[[str], object] = str
        ) -> QComboBox:
            """A box for a field of the analysis; `label`: the name of the edit, with the choice."""
            return choices(
                entries, act=lambda w: bench.set_analysis(label.format(w or "nothing"), **{field: read(w)}),
                name=name,
            )  # fmt: skip

        self.response = choices({}, act=bench.choose_rows, name="Response")
        self.view_kind = setting(
            _EFFECT_KINDS, "Effects or half effects", "half", "show {} effects", lambda w: w == "half"
        )
        self.error = setting(_ERRORS, "Standard error from", "error", "change the error", lambda w: w or None)
        self.limit = setting(_LIMITS, "Marked above", "threshold", "change the limit")
        self.power = setting(_POWERS, "Power of the response", "transform", "transform the response", float)
        self.inner = setting(_INNER, "Repeats in a replicate", "inner", "take repeats together")
        covariate = "Covariate: the part of the response that follows it is subtracted"
        self.covariate = setting({}, covariate, "covariate", "adjust for {}")
        self.blocks = set_up(
            QCheckBox("&Replicates are blocks"),
            clicked=lambda on: bench.set_analysis("change blocks", blocks=on),
        )
        self.rows = choices({}, act=self._choose_rows, name="Only rows where")
        self.rows_label = QLabel("Rows")
        self.words = quiet()
        self.answer = quiet(font=set_up(self.font(), bold=True))
        self.confirmed = quiet()
        in_turn = "Run the largest effect alone and the program as it is, in turn"
        self.confirm = button("&Confirm…", self.ask_confirmation, in_turn)
        self.effects = set_up(FrameView("Effects"), chosen=bench.select)
        let_toggle(self.effects, bench.toggle_term)
        self.rank = set_up(FrameView("SPT rank"), chosen=bench.select)
        self.anova = set_up(FrameView("Analysis of variance"), chosen=bench.select)
        self.notes = quiet()
        self.half_normal = Chart("Half-normal plot")
        self.pareto = Chart("Pareto chart")
        self.pareto.installEventFilter(self)
        self.main_effects = Chart("Main effects")
        self.interaction = Chart("Interaction plot")
        self.residuals = Chart("Residuals")
        self.cube = Chart("Cube plot", help_at="spt.md#4-read")
        self.powers = Chart("Which power of the response fits", help_at="spt.md#4-read")
        for chart in (self.half_normal, self.pareto, self.main_effects):
            chart.clicked.connect(self._clicked)
        self.first, self.second, *self.corners = (
            choices({}, act=lambda _: self._draw_pairs(bench.snapshot), name=name)
            for name in ("First factor", "Second factor", *(f"Cube factor {k}" for k in (1, 2, 3)))
        )
        redraw = lambda _: self._draw_residuals(bench.snapshot)  # noqa: E731 - handed on
        self.against = choices(by_text(charts.RESIDUALS), act=redraw, name="Residuals against")
        self.setting: dict[str, QComboBox] = {}
        self._settings = QWidget()
        self._setting_grid = QGridLayout(self._settings)
        self.predicted = quiet()
        self.pinning = PinPanel(bench)
        self._lay_out()

    def _lay_out(self) -> None:
        self.tables = tabbed({"Effects": self.effects, "SPT rank": self.rank, "ANOVA": self.anova})
        upper = tabbed({"Half-normal": self.half_normal, "Pareto": self.pareto})
        pair = row(QLabel("Factors"), self.first, self.second, None)
        self.lower_plots = tabbed({
            "Main effects": self.main_effects,
            "Interaction": stacked(pair, (self.interaction, 1)),
            "Cube": stacked(row(QLabel("Factors"), *self.corners, None), (self.cube, 1)),
            "Residuals": stacked(row(QLabel("Against"), self.against, None), (self.residuals, 1)),
            "Power": self.powers,
            "Prediction": stacked(self.predicted, (scrolled(self._settings), 1)),
            "In a trace": self.pinning,
        })  # fmt: skip
        plots = divided(Qt.Orientation.Vertical, (upper, 0), (self.lower_plots, 0))
        for part in (upper, self.lower_plots):
            part.setMinimumHeight(13 * self.fontMetrics().height())  # lower, a chart tells nothing
        left = stacked((self.tables, 1), self.notes)
        boxes = (
            self.response, self.power, self.inner, self.rows_label, self.rows, QLabel("Show"), self.view_kind,
        )  # fmt: skip
        errors = (
            QLabel("Error from"), self.error, QLabel("Mark above"), self.limit, QLabel("Adjust for"),
            self.covariate, self.blocks,
        )  # fmt: skip
        lay_out(
            self.content,
            row(QLabel("Response"), *boxes, None),
            row(*errors, None),
            row((self.answer, 1), self.confirm),
            self.confirmed,
            self.words,
            (beside(left, plots, 48), 1),
        )

    # ---- showing

    @property
    def half(self) -> bool:
        """Whether effects are shown as coefficients, half of the effect."""
        return self.bench.snapshot.project.analysis.half

    def show_snapshot(self, old: ExperimentSnapshot, new: ExperimentSnapshot) -> None:
        if new.effects is None:
            waiting = new.project.experiment is not None or new.project.imported is not None
            self.set_empty(new.why_empty if waiting else "")
            self._drawn = None
            return
        self.set_empty("")
        self._show_answer(new)
        drawn = new.effects is not self._drawn or new.project.analysis is not old.project.analysis
        if drawn or new.project is not old.project:
            self._show_settings(new)
        if drawn:
            self._drawn = new.effects
            self._show_factors(new)
            self._show_tables(new)
        if drawn or new.selected != old.selected:
            self._draw(new)
            for table in (self.effects, self.rank, self.anova):
                table.select_key(new.selected)
        self.pinning.show_snapshot(old, new)

    def _show_answer(self, new: ExperimentSnapshot) -> None:
        """Show the answer in words."""
        self.answer.setText(new.answer.text if new.answer is not None else "")
        self.confirm.setVisible(new.project.experiment is not None)
        named = new.answer is not None and bool(new.answer.named)
        self.confirm.setEnabled(named and new.running == "idle")
        self.confirmed.setVisible(new.confirmed is not None)
        if new.confirmed is not None:
            self.confirmed.setText(
                f"{capital(describe_confirmed(new.confirmed, new.project.measured.unit))}."
            )

    def ask_confirmation(self) -> None:
        """Show the commands that confirm the largest effect, and run them if the user agrees."""
        snapshot = self.bench.snapshot
        names = snapshot.answer.named[:1] if snapshot.answer is not None else ()
        errand = self.bench.confirmation(names)
        if errand is not None:
            text = (
                f"{' and '.join(names)} alone and the program as it is are run {RUNS} times each, in turn "
                f"and in random order; the runs go to {CONFIRMATION} and not to the trials. The verdict says "
                "whether they agree with the effects."
            )
            ErrandDialog(self, self.bench, errand, "Confirm", text).open()

    def _show_settings(self, new: ExperimentSnapshot) -> None:
        imported, analysis = new.project.imported, new.project.analysis
        refill(self.response, by_text(new.responses), new.read_response)
        table = new.project.table
        of_rows = table.choices if table is not None else ()
        if of_rows:
            items = {f"{name}={v}": f"{name} = {v}" for name, values in of_rows for v in values}
            selected = "=".join(imported.where[0]) if imported is not None and imported.where else ""
            refill(self.rows, {"": "all", **items}, selected)
        self.rows.setVisible(bool(of_rows))
        self.rows_label.setVisible(bool(of_rows))
        power = f"{analysis.transform:g}"
        for box, entries, word in (
            (self.view_kind, _EFFECT_KINDS, "half" if analysis.half else "full"),
            (self.error, _ERRORS, analysis.error or ""),
            (self.limit, _LIMITS, analysis.threshold),
            (
                self.power,
                _POWERS | ({} if power in _POWERS else {power: f"power {trimmed(analysis.transform, 6)}"}),
                power,
            ),
            (self.inner, _INNER, analysis.inner),
        ):
            refill(box, entries, word)
        noted = [] if new.effects is None else [
            name for name, values in new.effects.trials.beside.items() if np.isfinite(values).any()
        ]  # fmt: skip
        if analysis.covariate and analysis.covariate not in noted:
            noted.append(analysis.covariate)
        refill(self.covariate, {"": "nothing", **by_text(noted)}, analysis.covariate)
        self.covariate.setEnabled(bool(noted))
        refill(self.against, by_text((*charts.RESIDUALS, *noted)))
        self.blocks.setChecked(analysis.blocks)

    def _choose_rows(self, word: str) -> None:
        name, equals, value = word.partition("=")
        self.bench.choose_rows(None, ((name, value),) if equals else ())

    def _show_factors(self, new: ExperimentSnapshot) -> None:
        assert new.effects is not None
        names = new.effects.trials.factors
        anew = self.corners[0].count() != len(names) > 2
        for box in (self.first, self.second, *self.corners):
            refill(box, by_text(names))
        if self.first.currentIndex() == self.second.currentIndex() == 0 and len(names) > 1:
            self.second.setCurrentIndex(1)
        for k, box in enumerate(self.corners if anew else ()):
            box.setCurrentIndex(k)
        if list(self.setting) != list(names):
            while (item := self._setting_grid.takeAt(0)) is not None:
                widget = item.widget()
                if widget is not None:
                    widget.deleteLater()
            self.setting = {}
            levels = {-1.0: "−", 0.0: "halfway", 1.0: "+"}
            predict = lambda _: self._predict(self.bench.snapshot)  # noqa: E731 - handed on
            for k, name in enumerate(names):
                self.setting[name] = choices(levels, act=predict, name=f"Level of {name}")
                self._setting_grid.addWidget(QLabel(name), k // 3, 2 * (k % 3))
                self._setting_grid.addWidget(self.setting[name], k // 3, 2 * (k % 3) + 1)
            self._setting_grid.setRowStretch(len(names) // 3 + 1, 1)
            self._setting_grid.setColumnStretch(6, 1)

    def _show_tables(self, new: ExperimentSnapshot) -> None:
        assert new.effects is not None
        self.effects.show_rows(*effect_rows.of_snapshot(new))
        self.rank.show_rows(*effect_rows.of_snapshot(new, ranks=True))
        self.anova.show_rows(*effect_rows.anova(new.effects))
        self._say(new, new.effects, effect_rows.effect_word(self.half))

    def _say(self, new: ExperimentSnapshot, effects: Effects, word: str) -> None:
        measured = new.project.measured
        plain = f" {measured.unit}" if measured.unit else ""
        unit = plain if effects.transform != 0 else " (of the logarithm)"
        base = "unperturbed run" if effects.unperturbed_measured else "predicted unperturbed run"
        error = f" ± {digits(effects.mean_se, 2)}" if math.isfinite(effects.mean_se) else ""
        spread = ""
        if math.isfinite(effects.variance) and effects.variance > 0 and effects.error != "lenth":
            spread = f" (s = {digits(math.sqrt(effects.variance), 3)}{unit}, {effects.df} df)"
        marked = sum(e.significant for e in effects.effects)
        self.words.setText(
            f"Numbers are {word}s: {effect_rows.effect_meaning(new.project.analysis.half)}. "
            f"Mean {digits(effects.mean)}{error}{unit}, {base} {digits(effects.unperturbed)}{plain}, "
            f"{count(len(effects.trials.y), 'trial')}. "
            f"Standard error from {effect_rows.METHODS[effects.error]}{spread}; R² {digits(effects.r2, 4)}. "
            f"{marked} of {count(len(effects.effects), 'term')} marked: above {effects.threshold}."
        )
        unit = unit if effects.transform == 1 else " (transformed)"
        lines = [
            f"Trial {s.label} does not fit the effects that stand out: {digits(s.value)}{unit}, expected "
            f"{digits(s.expected)}{unit} (t = {digits(s.t, 3)}, beyond {digits(s.limit, 3)} in 5 % of "
            "experiments without such a trial). Check it before you trust small effects."
            for s in effects.suspects[:4]
        ]
        if len(effects.suspects) > 4:
            lines.append(f"{len(effects.suspects) - 4} more trials do not fit either.")
        if new.powers is not None and new.powers.suggested not in (None, effects.transform):
            lines.append(f"{capital(new.powers.text)} (chart Power).")
        lines += [f"{capital(note)}." for note in effects.notes]
        if new.hierarchy:
            lines.append(f"{capital(new.hierarchy)}.")
        imported, table = new.project.imported, new.project.table
        if imported is not None and table is not None and imported.path.name != JOURNAL:
            lines += [f"{table.refused}."] if table.refused else []
            unread = table.unread(new.project.analysis.covariate)
            lines += [f"Not read is {unread}."] if unread else []
        if imported is not None and imported.left_out:
            out = ", ".join(f"{label} ({reason})" for label, reason in imported.left_out)
            lines.append(f"Left out: {out}.")
        self.notes.setText("\n".join(lines))
        self.notes.setVisible(bool(lines))

    # ---- charts

    def _draw(self, new: ExperimentSnapshot) -> None:
        effects, analysis, words = new.effects, new.project.analysis, self.words.text()
        content = charts.half_normal(effects, new.every, analysis.half, new.effect_unit, new.selected)
        self.half_normal.set_content(content, words)
        self._draw_pareto(new)
        content = charts.main_effects(effects, new.every, _response(new), new.selected)
        self.main_effects.set_content(content, words)
        self._draw_pairs(new)
        self._draw_residuals(new)
        content = charts.powers(new.powers, analysis.transform)
        self.powers.set_content(content, new.powers.text if new.powers is not None else "")
        self._predict(new)

    def _draw_pareto(self, new: ExperimentSnapshot) -> None:
        bars = charts.bars_in(self.pareto.height(), self.fontMetrics().height())
        half = new.project.analysis.half
        content = charts.pareto(new.effects, new.every, half, new.effect_unit, new.selected, bars)
        self.pareto.set_content(content, self.words.text())

    @guarded(otherwise=bool)
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and self.bench.snapshot.effects is not None:
            self._draw_pareto(self.bench.snapshot)
        return super().eventFilter(watched, event)

    def _draw_pairs(self, new: ExperimentSnapshot) -> None:
        effects = new.effects
        a, b = str(self.first.currentData()), str(self.second.currentData())
        every = new.every.effects if new.every is not None else ()
        marked = next((e for e in every if e.term == new.selected), None) if new.selected else None
        pair = () if marked is None or self._followed == new.selected else marked.members
        if len(pair) == 2 and effects is not None:
            a, b = (effects.trials.factors[j] for j in pair)
            turn_to(self.first, a)
            turn_to(self.second, b)
        self._followed = new.selected
        self.interaction.set_content(charts.interaction(effects, a, b, _response(new)))
        names = tuple(str(combo.currentData()) for combo in self.corners)
        if effects is None or len(effects.trials.factors) < 3:
            content, words = Content(Axis(""), Axis(""), empty="The cube plot needs three factors."), ""
        elif len(set(names)) < 3:
            content, words = Content(Axis(""), Axis(""), empty="Choose three different factors."), ""
        else:
            three = (names[0], names[1], names[2])
            members = [effects.trials.factors.index(name) for name in three]
            means = {corner: charts.cell(effects, members, corner)[0] for corner in charts.CORNERS}
            content, words = charts.cube(three, means, new.project.measured.unit)
        self.cube.set_content(content, words)
        self.cube.setToolTip(words.replace("; ", "\n"))

    _followed = ""

    def _draw_residuals(self, new: ExperimentSnapshot) -> None:
        against = str(self.against.currentData())
        self.residuals.set_content(charts.residuals(new.effects, against, _response(new)))

    def _predict(self, new: ExperimentSnapshot) -> None:
        effects = new.effects
        if effects is None:
            return
        levels = [combo.currentData() for combo in self.setting.values()]
        if len(levels) != len(effects.trials.factors):
            return
        p, measured = effects.predict(levels), new.project.measured
        unit = f" {measured.unit}" if measured.unit else ""
        share = 100 * p.value / effects.unperturbed if effects.unperturbed else math.nan
        text = (
            f"Predicted {measured.response} at the setting below: {digits(p.value)}{unit}, "
            f"{digits(share, 4)} % of the unperturbed run."
        )
        if math.isfinite(p.low) and math.isfinite(p.high):
            text += f" With 95 % its mean lies from {digits(p.low)} to {digits(p.high)}{unit}"
            if math.isfinite(p.new_low) and math.isfinite(p.new_high):
                text += f", one new trial from {digits(p.new_low)} to {digits(p.new_high)}{unit}"
            text += "."
        self.predicted.setText(text)

    # ---- choosing

    def _clicked(self, key: int, more: bool) -> None:
        """Mark the term; with Ctrl held, take it out of the model or put it back."""
        every = self.bench.snapshot.every
        if every is not None and 0 <= key < len(every.effects):
            effect = every.effects[key]
            self.bench.select(effect.term)
            if more:
                self.bench.toggle_term(effect.term)


class PinPanel(QWidget):
    """Shows in which phases of a trace the region of a factor runs."""

    def __init__(self, bench: ExperimentBench) -> None:
        super().__init__()
        self.bench = bench
        self.open = button("Choose trace…", self._choose, "Any trace or imported file")
        self.region = choices({}, act=self._choose_region, name="Region")
        self.chart = Chart("Share of the region in every phase")
        self.table = FrameView("Phases with the region")
        choose = "Choose a trace of the same program, then an effect: the phases in which its routine runs."
        self.words = quiet(choose)
        lay_out(self, row(self.open, QLabel("Region"), self.region, None), self.words,
            (beside(self.table, self.chart, 60), 1), margins=0,
        )  # fmt: skip

    def show_snapshot(self, old: ExperimentSnapshot, new: ExperimentSnapshot) -> None:
        pinned = new.pinned
        self.region.setEnabled(pinned is not None)
        if pinned is None:
            return
        if pinned is not old.pinned:
            largest = pinned.names[int(np.argmax(pinned.exclusive_s.sum(0)))]
            refill(self.region, by_text(sorted(pinned.names)), largest)
        afresh = pinned is not old.pinned or new.project.regions != old.project.regions
        if afresh or new.selected != old.selected:
            turn_to(self.region, self._belongs(new))
            self._draw()

    def _belongs(self, new: ExperimentSnapshot) -> str:
        """The region of the chosen effect; "" if there is none."""
        return "" if new.pinned is None else new.region_of(new.selected, new.pinned)

    def _choose_region(self, name: str) -> None:
        if self.bench.snapshot.selected:
            self.bench.pin_to(self.bench.snapshot.selected, name)
        self._draw()

    def _choose(self) -> None:
        path = asked_path(self, "Open a trace")
        if path is not None:
            self.bench.pin(path)

    def _draw(self) -> None:
        pinned = self.bench.snapshot.pinned
        name = str(self.region.currentData())
        if pinned is None or name not in pinned.names:
            return
        k = pinned.names.index(name)
        inclusive, exclusive = pinned.inclusive_s[:, k], pinned.exclusive_s[:, k]
        busy = np.where(pinned.busy_s > 0, pinned.busy_s, np.nan)
        share = np.nan_to_num(inclusive / busy)
        columns = (
            Column("Phase"), Column("Start", "", "s"), Column("End", "", "s"),
            Column("Inclusive", "Seconds over all processors, including the regions it calls", "s"),
            Column("Exclusive", "Without the regions it calls", "s"), Column("Calls"),
            Column("Share", "Of all processors' time in the phase", "%", 3),
        )  # fmt: skip
        rows = [
            TableRow(
                (
                    p + 1, float(pinned.start_s[p]), float(pinned.end_s[p]), float(inclusive[p]),
                    float(exclusive[p]), int(pinned.calls[p, k]), float(100 * share[p]),
                ),
                str(p), "" if inclusive[p] > 0 else "faint",
            )
            for p in range(len(pinned.start_s))
        ]  # fmt: skip
        self.table.show_rows(columns, rows)
        runs = [str(p + 1) for p in range(len(rows)) if inclusive[p] > 0]
        selected = self.bench.snapshot.selected
        pin = f"{selected} is pinned to {name}: it" if selected else name
        if selected and not self._belongs(self.bench.snapshot):
            pin = f"No region has the name of {selected} or of its routine; choose its region. {name}"
        noun = "phase" if len(runs) == 1 else "phases"
        self.words.setText(
            f"{pin} runs in {noun} {', '.join(runs)} of {len(rows)} of {pinned.path.name}, mostly in phase "
            f"{int(np.argmax(inclusive)) + 1} ({digits(float(inclusive.max()))} of "
            f"{digits(float(inclusive.sum()))} s)."
        )
        self.chart.set_content(charts.in_phases(pinned.start_s, pinned.end_s, share, name), self.words.text())


def turn_to(combo: QComboBox, word: str) -> None:
    """Choose the item of this word, if there is one."""
    index = combo.findData(word)
    if index >= 0:
        combo.setCurrentIndex(index)


def _response(new: ExperimentSnapshot) -> str:
    measured = new.project.measured
    return with_unit(measured.response, measured.unit)

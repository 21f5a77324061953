"""Step 2: which treatments are run, what is confounded with what, and what could be seen."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path

from PySide6.QtCore import QBuffer, QIODevice, QMarginsF, Qt
from PySide6.QtGui import QPageLayout, QPageSize, QPdfWriter, QTextDocument
from PySide6.QtWidgets import QDoubleSpinBox, QLabel, QSpinBox, QTextBrowser, QVBoxLayout

from desktop.core.design import ARRAYS, MOST_RUNS, Design, roman, smallest_runs
from desktop.core.power import chance_in_words, detectable, replicates_to_find, sigma_bound
from desktop.core.recommend import EFFECT, NOISE, Recommended, recommend
from desktop.core.recommend import described as described_in_words
from desktop.core.units import count, digits, quantity, with_unit
from desktop.data.atomic import write_bytes
from desktop.data.columns import Column, TableRow
from desktop.data.experiment import Experiment, Factor, Plan
from desktop.data.runner import ESTIMATES
from desktop.ui.experiment import charts
from desktop.ui.experiment.parts import Step, described
from desktop.ui.pages import (
    asked_path,
    beside,
    button,
    choices,
    form,
    group,
    line,
    quiet,
    refill,
    row,
    set_up,
    stacked,
    tabbed,
)
from desktop.ui.plots.chart import Chart
from desktop.ui.tables import FrameView
from desktop.workbench.bench import changed
from desktop.workbench.experimenting import ExperimentBench, ExperimentSnapshot

_KINDS = {
    "regular": "Full or regular fraction",
    "plackett-burman": "Plackett-Burman",
    "orthogonal-array": "Orthogonal array (search)",
}
_OFFERS = (
    Column("Treatments", "Each is run once a replicate"),
    Column("Kind", "Of least aberration is the fraction with the fewest short words"),
    Column("Resolution", "Length of the shortest word: IV keeps main effects clear of pairs"),
    Column("Words", "Words of the defining relation by length: 3:2 4:5 are two of three and five of four"),
    Column(
        "Clear mains",
        "Main effects that are not aliased with another main effect or a two-factor interaction",
    ),
    Column(
        "Clear pairs",
        "Two-factor interactions that are not aliased with a main effect or another two-factor interaction",
    ),
    Column("Trials", "Treatments times replicates"),
    Column("Time", "Trials times the time of one run, which step 3 measures"),
)
#: Around the run sheet on paper.
_MARGIN_MM = 15
_RESOLUTIONS = {"3": "any", "4": "IV or more", "5": "V or more"}


class DesignStep(Step):
    """A list of designs on offer, and the properties of the chosen one."""

    title = "Design"

    def __init__(self, bench: ExperimentBench) -> None:
        super().__init__(bench)
        high = 9 * self.fontMetrics().lineSpacing()
        self.offers = set_up(FrameView("Designs that fit"), chosen=self._take, minimumHeight=high)
        self.budget = set_up(
            QSpinBox(), range=(0, MOST_RUNS), specialValueText="any", accessibleName="Most treatments",
            valueChanged=lambda _: self._show_fitting(),
        )  # fmt: skip
        self.least = choices(
            _RESOLUTIONS, act=lambda _: self._show_fitting(), name="Least resolution",
            toolTip="IV keeps main effects clear of pairs, V keeps pairs clear of pairs as well",
        )  # fmt: skip
        self.kind = choices(_KINDS, act=self._set_kind, name="Kind of design")
        self.array = choices({}, act=lambda name: self._plan(f"take {name}", array=name), name="Array")
        self.generators = line(
            "Generators", self._set_generators, "For example E=ABC F=-BCD, or swap=push:pop"
        )
        self.fold = choices({}, act=self._set_fold, name="Foldover")
        self.fold.setToolTip(
            "Also when trials have been run: the mirror image then follows them as a block of its own"
        )
        self.replicates = set_up(QSpinBox(), range=(1, 1000), accessibleName="Replicates")
        self.replicates.setToolTip("More can be added when trials have been run")
        self.replicates.valueChanged.connect(self._set_replicates)
        self.seed = set_up(QLabel(), textInteractionFlags=Qt.TextInteractionFlag.TextSelectableByMouse)
        self.draw = button("New seed", bench.new_seed, "Another random order of the trials")
        self.sigma, self.effect = (
            set_up(
                QDoubleSpinBox(), decimals=6, range=(0, 1e9), singleStep=step, specialValueText=unset,
                accessibleName=name, valueChanged=lambda _: self._show_power(self.bench.snapshot),
            )
            for name, unset, step in (
                ("Standard deviation of one trial", "not known", 0.001),
                ("Effect to be found", "not said", 0.01),
            )
        )  # fmt: skip
        self.effect.setToolTip("Says how many replicates find it")
        self.power = quiet()
        self.power_chart = Chart("Chance to detect the effect", help_at="spt.md#2-design-which-combinations")
        self.warning = quiet()
        self.relation = set_up(QTextBrowser(), accessibleName="Defining relation and aliases")
        self.sheet = FrameView("Run sheet")
        out = row(
            button(
                "Export CSV…", partial(self._ask, "Run sheet", "runs.csv", "CSV (*.csv)", bench.export_sheet),
                "The run sheet, with an empty column for the response",
            ),
            button("PDF…", self._pdf, "The run sheet on paper"),
            button("Print…", self._print),
            button(
                "Job script…",
                partial(self._ask, "Job script", "trials.sh", "Shell scripts (*.sh)", bench.write_job_script),
                "A job array for a batch system",
            ),
            None,
        )  # fmt: skip
        self.tabs = tabbed({
            "Defining relation and aliases": self.relation,
            "Run sheet": stacked(out, (self.sheet, 1)),
            "Replicates": self.power_chart,
        })  # fmt: skip
        self.why = quiet()
        self.advice = set_up(QLabel(), wordWrap=True, minimumHeight=3 * self.fontMetrics().lineSpacing())
        self.take_advice = button(
            "Use this design", self._take_advice, "This many treatments and replicates", "recommended"
        )
        limits = row(QLabel("At most"), self.budget, QLabel("treatments, resolution"), self.least, None)
        advice = self.advice, row(self.take_advice, None)
        fit = group("Designs that fit (choose one)", limits, self.offers, self.why, *advice)
        fields = form(
            ("&Kind", self.kind), ("&Array", self.array), ("Own &generators", self.generators),
            ("&Foldover", self.fold), ("&Replicates", self.replicates),
        )  # fmt: skip
        choice = group("Choice", fields, row(QLabel("Seed of the order"), self.seed, self.draw, None))
        sizes = form(("&Standard deviation of one trial", self.sigma), ("&Effect to be found", self.effect))
        left = stacked((fit, 1), choice, group("Detectable effect", sizes, self.power))
        right = stacked(self.warning, (self.tabs, 1))
        QVBoxLayout(self.content).addWidget(beside(left, right, 54))
        self._showing = False
        self._typed_sigma = False

    # ---- showing

    def show_snapshot(self, old: ExperimentSnapshot, new: ExperimentSnapshot) -> None:
        experiment, design = new.project.experiment, new.design
        if experiment is None or design is None:
            reason = "This is a table of runs, so its design is what was run. Steps 4 and 5 read it."
            self.set_empty(reason if new.project.imported is not None else "")
            return
        self.set_empty("")
        self._showing = True
        timed = new.run_s != old.run_s
        if new.design is not old.design or experiment is not old.project.experiment:
            self._show_choice(experiment, design)
            self.relation.setHtml(relation_html(design, experiment.factors))
            self._show_sheet(experiment)
        if new.offers is not old.offers or new.design is not old.design or timed:
            self._show_offers(new, experiment, design)
        if new.effects is not old.effects or new.estimate is not old.estimate:
            sigma = _sigma_of(new)
            if math.isfinite(sigma) and (not self._typed_sigma or self.sigma.value() == 0):
                self.sigma.setValue(sigma)
        self._show_power(new)
        self._show_advice(new)
        self._showing = False

    def _show_choice(self, experiment: Experiment, design: Design) -> None:
        plan, names = experiment.plan, experiment.names
        refill(self.kind, _KINDS, "regular" if plan.kind == "full" else plan.kind)
        arrays = {
            name: f"{name}: {runs} treatments, {' '.join(_sizes(sizes))} levels"
            for name, (runs, sizes) in ARRAYS.items()
            if len(sizes) >= len(names)
        }
        refill(self.array, arrays, plan.array)
        self.array.setEnabled(plan.kind == "orthogonal-array")
        regular = plan.kind in ("regular", "full")
        self.generators.setEnabled(regular)
        text = " ".join(_generators(experiment)) if regular else ""
        if not (self.generators.hasFocus() and self.generators.isModified()):
            self.generators.setText(text)
        can_fold = regular and bool(design.generators or plan.fold is not None)
        folds = {"none": "none", "all": "all signs"} | {f"factor {n}": f"signs of {n}" for n in names}
        fold = "none" if plan.fold is None else f"factor {plan.fold}" if plan.fold else "all"
        refill(self.fold, folds, fold)
        self.fold.setEnabled(can_fold)
        self.replicates.setValue(plan.replicates)
        self.seed.setText(", then ".join(map(str, experiment.sheet().seeds)))
        warning = design.note
        if plan.fold_after:
            first = count(plan.fold_after, "replicate")
            warning += f". The second half was added after {first} of the first, which keep their order."
        if design.unperturbed < 0 and "without any delay" not in warning:
            warning = " ".join((warning, "The run without any delay is not among these.")).strip()
        self.warning.setVisible(bool(warning))
        self.warning.setText(f"Note: {warning}" if warning else "")

    def _show_fitting(self) -> None:
        new = self.bench.snapshot
        if new.project.experiment is not None and new.design is not None:
            self._show_offers(new, new.project.experiment, new.design)

    def _show_offers(self, new: ExperimentSnapshot, experiment: Experiment, design: Design) -> None:
        rows = []
        replicates = experiment.plan.replicates
        current = ""
        least, budget = int(self.least.currentData()), self.budget.value() or MOST_RUNS
        for offer in new.offers:
            if offer.runs > budget or 0 < offer.resolution < least:
                continue
            trials = offer.runs * replicates
            key = f"{offer.kind}:{offer.runs}"
            if (
                offer.runs == design.runs
                and (offer.kind == design.kind or {offer.kind, design.kind} <= {"full", "regular"})
                and experiment.plan.fold is None
                and (not experiment.plan.generators or experiment.plan.generators == offer.generators)
            ):
                current = key
            time = quantity(trials * new.run_s, "s", 3) if math.isfinite(new.run_s) else "–"
            words = " ".join(f"{k}:{n}" for k, n in enumerate(offer.word_lengths, 1) if n)
            rows.append(
                TableRow(
                    (
                        offer.runs, _kind_name(offer), roman(offer.resolution), words or "–",
                        *map(len, offer.clear), trials, time,
                    ),
                    key, tip=" ".join(offer.generators),
                )
            )  # fmt: skip
        self.offers.show_rows(_OFFERS, rows)
        self.offers.select_key(current)
        why = (
            "Designs for so many factors are made when you ask: choose a kind, and type generators or take "
            "the best that is found."
        )
        if new.offers:
            factors = len(experiment.names)
            resolution, needed = roman(least), smallest_runs(factors, least)
            why = f"None fits: {factors} factors in resolution {resolution} need {needed} treatments."
        self.why.setText("" if rows else why)
        self.why.setVisible(not rows)

    def _show_sheet(self, experiment: Experiment) -> None:
        columns = [Column("Order"), Column("Replicate"), Column("Treatment"), *map(Column, experiment.names)]
        rows = []
        for order, (replicate, treatment) in experiment.planned().items():
            signs = experiment.signs(treatment)
            rows.append(TableRow((order, replicate + 1, treatment + 1, *signs), str(order)))
        self.sheet.show_rows(columns, rows)

    def _show_power(self, new: ExperimentSnapshot) -> None:
        experiment, design = new.project.experiment, new.design
        if experiment is None or design is None:
            return
        sigma, replicates = self.sigma.value(), experiment.plan.replicates
        unit = f" {new.project.measured.unit}".rstrip()
        for box in (self.sigma, self.effect):
            box.setSuffix(unit)
        trials = design.runs * replicates
        text = f"{count(design.runs, 'treatment')} × {count(replicates, 'replicate')}"
        long = f", about {quantity(trials * new.run_s, 's', 3)}" if math.isfinite(new.run_s) else ""
        text += f" = {count(trials, 'trial')}{long}. "
        if experiment.plan.kind == "orthogonal-array":
            text += "An array is a search: runs are ranked, no effect is tested."
        elif sigma <= 0:
            text += "Step 3 measures the standard deviation, or enter it; "
            text += "then the detectable effect is shown."
        elif replicates < 2:
            text += (
                "One replicate gives no error of its own; interactions of higher order or Lenth's "
                "method stand in for it. Two replicates or more say which effect shows."
            )
        else:
            seen = detectable(sigma, design.runs, replicates)
            chance = chance_in_words(design.runs, replicates)
            text += f"An effect of {digits(seen, 3)}{unit} is found with a chance of {chance} (5 % level)"
            base = new.effects.unperturbed if new.effects else new.run_s
            text += f": {digits(100 * seen / base, 3)} % of the unperturbed run." if base > 0 else "."
        effect, df = self.effect.value(), self._sigma_df(new)
        if sigma > 0 and effect > 0 and experiment.plan.kind != "orthogonal-array":
            needed = [replicates_to_find(sigma, effect, design.runs, v) for v in (math.inf, df)]
            text += f" An effect of {digits(effect, 3)}{unit} takes {count(needed[0], 'replicate')}"
            bound = digits(sigma_bound(sigma, df), 3)
            if math.isfinite(df):
                text += f", and {needed[1]} to allow for its uncertainty (below {bound}{unit} with 90 %)"
            text += "."
        self.power.setText(text)
        self.power_chart.set_content(charts.power(effect, sigma, design.runs, df, replicates))

    def _sigma_df(self, new: ExperimentSnapshot) -> float:
        """Degrees of freedom of the standard deviation; infinite if it was typed."""
        if not math.isclose(self.sigma.value(), _sigma_of(new), abs_tol=1e-6):
            return math.inf
        if new.effects is not None and new.effects.df > 0:
            return float(new.effects.df)
        return math.inf if new.estimate is None else ESTIMATES - 1.0

    def _show_advice(self, new: ExperimentSnapshot) -> None:
        """Show the recommended design, with the reason."""
        experiment = new.project.experiment
        offers = [(o.runs, o.resolution) for o in new.offers if o.kind in ("full", "regular")]
        self._advised: Recommended | None = None
        base = new.effects.unperturbed if new.effects else new.run_s
        sigma = self.sigma.value()
        if experiment is not None and offers and experiment.plan.fold is None:
            measured = sigma > 0 and base > 0
            noise = sigma / base if measured else NOISE
            # Not an effect that no number of runs could show.
            effect = max(EFFECT, noise / 2)
            with contextlib.suppress(ValueError):
                self._advised = recommend(len(experiment.names), noise, effect, 4, offers)
        advised = self._advised
        self.advice.setVisible(advised is not None)
        self.take_advice.setVisible(advised is not None)
        if advised is not None and experiment is not None:
            plan = experiment.plan
            self.advice.setText(f"Recommended: {advised.text(1.0, new.run_s)}.")
            present = plan.runs or 1 << len(experiment.names), plan.replicates
            unchanged = present == (advised.runs, advised.replicates)
            self.take_advice.setEnabled(not unchanged or plan.kind not in ("regular", "full"))

    @described
    def _take_advice(self, experiment: Experiment) -> None:
        advised = self._advised
        if advised is not None:
            plan = Plan("regular", advised.runs, replicates=advised.replicates, seed=experiment.plan.seed)
            self._edit("use the recommended design", replace(experiment, plan=plan))

    # ---- editing

    @described
    def _plan(self, experiment: Experiment, /, label: str, **changes: object) -> None:
        if not self._showing:
            self._edit(label, replace(experiment, plan=changed(experiment.plan, changes)))

    @described
    def _take_plan(self, experiment: Experiment, /, label: str, **changes: object) -> None:
        """Take another design, keeping only replicates and seed."""
        base = Plan(replicates=experiment.plan.replicates, seed=experiment.plan.seed)
        self._plan(label, **{**vars(base), **changes})

    def _edit(self, label: str, experiment: Experiment) -> None:
        self.bench.edit(label, experiment)
        self.show_snapshot(ExperimentSnapshot(), self.bench.snapshot)  # a refused choice shows what holds

    def _take(self, key: str) -> None:
        kind, _, runs = key.partition(":")
        kind = "regular" if kind == "full" else kind
        self._take_plan(f"take {runs} treatments", kind=kind, runs=int(runs))

    @described
    def _set_kind(self, experiment: Experiment, kind: str) -> None:
        if kind == "orthogonal-array":
            fits_in = [n for n, (_, sizes) in ARRAYS.items() if len(sizes) >= len(experiment.factors)]
            name = fits_in[0] if fits_in else "L32"
            array = next((n for n in ("L9", "L25", "L27") if n in fits_in), name)
            self._take_plan("search with an array", kind=kind, array=array)
        elif kind == "plackett-burman":
            self._take_plan("take Plackett-Burman", kind=kind)
        else:
            full = min(MOST_RUNS, 1 << len(experiment.factors))
            offers = (o for o in self.bench.snapshot.offers if o.kind in ("full", "regular"))
            runs = next((o.runs for o in offers if o.resolution != 3), full)
            self._take_plan("take a fraction", kind=kind, runs=runs)

    @described
    def _set_generators(self, experiment: Experiment, text: str) -> None:
        if self.bench.snapshot.design is None or experiment.plan.kind not in ("regular", "full"):
            return
        words = tuple(text.replace(",", " ").split())
        if words != _generators(experiment):
            runs = None if words else experiment.plan.runs
            self._take_plan("change the generators", kind=experiment.plan.kind, generators=words, runs=runs)

    @described
    def _set_fold(self, experiment: Experiment, word: str) -> None:
        """Fold the design; if there are trials, the mirror image follows after all planned ones."""
        fold = {"none": None, "all": ""}.get(word, word.removeprefix("factor "))
        if not self._showing and fold != experiment.plan.fold:
            label = "fold over" if fold is not None else "fold back"
            self._edit(label, experiment.folded(fold, begun=bool(self.bench.snapshot.trials)))

    def _set_replicates(self, value: int) -> None:
        if not self._showing:
            self._plan("change the replicates", replicates=value)

    # ---- files

    def _ask(self, title: str, name: str, files: str, write: Callable[[Path], object]) -> None:
        path = asked_path(self, title, name, files, mode="save")
        if path is not None:
            write(path)

    @described
    def _pdf(self, experiment: Experiment) -> None:
        def write(path: Path) -> None:
            self.bench.attempt(lambda: write_pdf(experiment, path))

        self._ask("Run sheet", "runs.pdf", "PDF (*.pdf)", write)

    @described
    def _print(self, experiment: Experiment) -> None:
        """Print the run sheet; write a PDF where the system cannot print."""
        try:
            from PySide6.QtPrintSupport import QPrintDialog, QPrinter
        except ImportError:
            self._pdf()
            return
        printer = QPrinter()
        if QPrintDialog(printer, self).exec():
            set_up(QTextDocument(), html=sheet_html(experiment)).print_(printer)


def _generators(experiment: Experiment) -> tuple[str, ...]:
    """The generators of the design, of the half if it is folded."""
    return experiment.plan.generators or experiment.folded(None, begun=False).design().generators


def _sizes(sizes: tuple[int, ...]) -> list[str]:
    return [f"{sizes.count(s)}×{s}" for s in sorted(set(sizes))]


def _kind_name(offer: Design) -> str:
    names = {"full": "full", "regular": "fraction", "plackett-burman": "Plackett-Burman"}
    if offer.kind == "regular" and offer.minimum_aberration:
        return "least aberration"
    return names.get(offer.kind, offer.kind)


def _sigma_of(new: ExperimentSnapshot) -> float:
    """Standard deviation of one trial: from the trials so far, else from the estimate."""
    effects = new.effects
    if (
        effects is not None
        and effects.error == "replicates"
        and effects.transform == 1
        and effects.variance > 0
    ):
        return math.sqrt(effects.variance)
    return new.estimate.sigma_s if new.estimate is not None else math.nan


def relation_html(design: Design, factors: Sequence[Factor] = ()) -> str:
    """Generators, defining relation, aliases and what is clear, in words."""
    (first, *more), equal = described_in_words(design)
    parted = (
        (f.name, f.routine if f.routine != f.name else "", f.construct and f"({f.construct})")
        for f in factors
        if f.routine
    )
    named = ", ".join(" ".join(filter(None, words)) for words in parted)
    described = [f"<b>{escape(first)}</b>", *([f"Factors: {escape(named)}."] if named else [])]
    described += map(escape, more)
    if equal:
        described.append("Aliases (up to two-factor interactions):")
    listed = "".join(f"<li>{escape(one)}</li>" for one in equal)
    return "".join(f"<p>{one}</p>" for one in described) + (f"<ul>{listed}</ul>" if listed else "")


# --- on paper ---


def sheet_html(experiment: Experiment) -> str:
    """Title, factors, and the trials in their order with room for the responses."""
    design, sheet = experiment.design(), experiment.sheet()
    responses = [with_unit(r.name, r.unit or "") for r in experiment.responses]
    heads = ["Order", "Replicate", "Treatment", *experiment.names, *responses, "Note"]
    lines = []
    for order, (replicate, treatment) in experiment.planned().items():
        levels = experiment.signs(treatment)
        cells = [str(order), str(replicate + 1), str(treatment + 1), *levels, *("" for _ in responses), ""]
        lines.append("<tr>" + "".join(f"<td align='center'>{escape(c)}</td>" for c in cells) + "</tr>")
    factors = "".join(
        f"<tr><td><b>{escape(f.name)}</b></td><td>{escape(f.file)}{f':{f.line}' if f.line else ''}</td>"
        f"<td>{escape(f.routine)}</td><td>{escape(f.construct)}</td>"
        f"<td>{escape(' '.join((*f.high.flags, *f.high.arguments)))}</td></tr>"
        for f in experiment.factors
    )
    return (
        f"<h2>{escape(experiment.name)}: run sheet</h2>"
        f"<p>{design.runs} treatments, {experiment.plan.replicates} replicates, random order from seed "
        f"{', then '.join(map(str, sheet.seeds))}. Run one trial at a time, in this order, and nothing else "
        "meanwhile.</p>"
        f"<table border='1' cellspacing='0' cellpadding='2' style='font-size: 8pt'>{factors}</table><br>"
        "<table border='1' cellspacing='0' cellpadding='2' style='font-size: 8pt'><thead><tr>"
        + "".join(f"<th>{escape(h)}</th>" for h in heads)
        + f"</tr></thead>{''.join(lines)}</table>"
    )


def write_pdf(experiment: Experiment, path: Path) -> None:
    """The run sheet on pages of A4.

    Raises
    ------
    OSError : the file cannot be written.
    """
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    margins = QMarginsF(_MARGIN_MM, _MARGIN_MM, _MARGIN_MM, _MARGIN_MM), QPageLayout.Unit.Millimeter
    page = QPageSize(QPageSize.PageSizeId.A4)
    writer = set_up(QPdfWriter(buffer), pageSize=page, pageMargins=margins, title=experiment.name)
    set_up(QTextDocument(), html=sheet_html(experiment)).print_(writer)
    write_bytes(path, bytes(buffer.data().data()))

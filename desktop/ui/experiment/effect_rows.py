"""Tables of effects and of the SPT rank, as pages and panels show them: columns and rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence

from desktop.core.effects import Effects, ranked
from desktop.core.units import capital
from desktop.data.columns import Column, TableRow, Value, records
from desktop.data.experiment import Factor
from desktop.ui.experiment.charts import effect_word
from desktop.ui.tables import FrameView
from desktop.workbench.experimenting import ExperimentSnapshot

Rows = tuple[tuple[Column, ...], list[TableRow]]

METHODS = {
    "replicates": "replicates",
    "interactions": "terms taken as error",
    "lenth": "Lenth's pseudo standard error",
    "none": "no error estimate",
}


#: Of what a p is the chance, by the kind of limit.
FAMILY = {
    "t": "each effect by itself", "se": "each effect by itself", "lenth": "each effect by itself",
    "lenth-simultaneous": "in any of all effects", "familywise": "in any of all effects",
    "fdr": "adjusted to the share of none among the marked",
    "selected": "in any of all effects, as terms were left out after a look at them", "none": "not known",
}  # fmt: skip
INTERVAL = "Between these the effect lies with 95 %, each by itself"
SHARE = "Between these the share lies with 95 %; the noise of the unperturbed run counts as well"


#: What stands in place of a rank.
RANKLESS = {
    "slows": "", "helps": "helps", "not distinguishable from zero": "within error",
    "no error estimate": "no error",
}  # fmt: skip


def meaning(half: bool) -> str:
    if half:
        return "half the difference of the means with and without the delay, the model's coefficient"
    return "mean with the delay minus mean without"


def let_toggle(table: FrameView, toggle: Callable[[str], None]) -> None:
    """Take terms out of the model, or put them back, by the boxes of a table of effects, Space or Del."""
    table.frames.toggled.connect(lambda term, _: toggle(term))
    action = QAction("In the model", table)
    action.setShortcuts([QKeySequence("Del"), QKeySequence("Space")])
    action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
    action.triggered.connect(lambda: toggle(table.key))
    table.addAction(action)


def of_snapshot(shown: ExperimentSnapshot, *, ranks: bool = False) -> Rows:
    """The table of effects, or of `ranks`, of what is shown."""
    found, half, unit = shown.effects, shown.project.analysis.half, shown.effect_unit
    assert found is not None
    if ranks:
        return rank(found, unit, shown.factors, half=half)
    return effects(found, unit, every=shown.every, half=half)


def effects(found: Effects, unit: str, *, every: Effects | None = None, half: bool = False) -> Rows:
    """Every term, those of the model with their errors. Keys are terms. `unit`: of the numbers, "" for none;
    `every`: effects of all terms, if the model has not all."""
    every, title, scale = every or found, capital(effect_word(half)), 0.5 if half else 1.0
    columns = (
        Column("In", "Whether the model has this term (Space or Del)", check=True),
        Column("Term"),
        Column(title, f"{title}: {meaning(half)}", unit),
        Column("SE", f"Standard error from {METHODS[found.error]}", unit, 3),
        Column("t", "Over its standard error", significant=3),
        Column(
            "p",
            f"Chance of as large an effect where there is none, {FAMILY[found.limit.kind]}",
            significant=2,
        ),
        Column("Share", "Full effect as percent of the unperturbed run", "% of base", 3),
        Column("Marked", f"Above {found.threshold}"),
        Column("Not told apart from", "Aliases up to two-factor interactions"),
        Column("95 % from", INTERVAL, unit, 3),
        Column("to", INTERVAL, unit, 3),
        Column("Share from", SHARE, "% of base", 3),
        Column("Share to", SHARE, "% of base", 3),
    )
    kept = {e.members: e for e in found.effects}
    rows = []
    # The largest first, whether or not the model has it; what the trials cannot tell comes last.
    for one in sorted(every.effects, key=lambda e: -abs(e.value) if e.estimable else 1.0):
        e = kept.get(one.members, one)
        on = one.members in kept
        numbers = (e.value * scale, e.se * scale, e.t, e.p) if on else (e.value * scale, None, None, None)
        cells: tuple[Value, ...] = (
            on, e.term, *numbers, found.percent(e), "★" if e.significant and on else "",
            ", ".join(e.aliases),
            *((e.low * scale, e.high * scale, e.share_low, e.share_high) if on else (None,) * 4),
        )  # fmt: skip
        tone = "strong" if e.significant and on else "" if on else "faint"
        rows.append(TableRow(cells, e.term, tone, ", ".join((e.term, *e.aliases))))
    return columns, rows


def rank(found: Effects, unit: str, factors: Mapping[str, Factor], *, half: bool = False) -> Rows:
    """Main effects, largest first, with where their factors are in the program. Keys are factors."""
    title, scale = capital(effect_word(half)), 0.5 if half else 1.0
    columns = (
        Column("Rank", f"Effects above {found.threshold}; within one standard error they share a rank"),
        Column("Factor"),
        Column(title, "", unit),
        Column("±", "Standard error", unit, 3),
        Column("t", significant=3),
        Column("Share", "Full effect as percent of the unperturbed run", "% of base", 3),
        Column("Low means", "What the factor is at its low level"),
        Column("High means", "What the factor is at its high level"),
        Column("File"),
        Column("Line"),
        Column("Routine"),
        Column("Construct"),
        Column("Not told apart from"),
    )
    se = next((e.se for e in found.effects if math.isfinite(e.se)), 0.0)
    rows = []
    for line in ranked(found, tie=se):
        e = line.effect
        place = factors.get(e.term)
        where: tuple[Value, ...] = (
            (*place.levels, place.file, place.line or None, place.routine, place.construct)
            if place
            else ("", "", "", None, "", "")
        )
        rank: Value = str(line.rank) if line.rank else RANKLESS[line.verdict]
        cells: tuple[Value, ...] = (
            rank, e.term, e.value * scale, e.se * scale, e.t, line.percent, *where, ", ".join(e.aliases)
        )  # fmt: skip
        helps = (
            "A delay here makes the program faster: look for contention it relieves"
            if place is None or place.is_delay
            else f"{place.levels[1]} is faster than {place.levels[0]}"
        )
        tip = helps if line.verdict == "helps" else "" if line.rank else line.verdict.capitalize()
        rows.append(TableRow(cells, e.term, "strong" if e.significant else "", tip))
    return columns, rows


_ANOVA = (
    Column("Source", name="source"), Column("Sum of squares", name="ss"), Column("df", name="df"),
    Column("Mean square", name="ms"), Column("F", significant=3, name="f"),
    Column("p", significant=2, name="p"),
)  # fmt: skip


def anova(found: Effects) -> Rows:
    """The analysis of variance. Keys are sources."""
    return _ANOVA, records(_ANOVA, found.anova, "source")

"""Tables of effects and of the SPT rank, as pages and panels show them: columns and rows."""

from __future__ import annotations

import math
from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence

from desktop.core.effects import Effects, ranked
from desktop.ui.experiment.charts import effect_word
from desktop.ui.tables import Column, FrameView, TableRow, Value
from desktop.workbench.experimenting import ExperimentSnapshot

Rows = tuple[tuple[Column, ...], list[TableRow]]

METHODS = {
    "replicates": "replicates",
    "interactions": "terms taken as error",
    "lenth": "Lenth's pseudo standard error",
    "none": "no error estimate",
}


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


def _title(shown: ExperimentSnapshot) -> tuple[str, float]:
    """What the numbers are called, and how much of a full effect they are."""
    word = effect_word(shown.project.analysis.half)
    return word[:1].upper() + word[1:], 0.5 if shown.project.analysis.half else 1.0


def effects(shown: ExperimentSnapshot) -> Rows:
    """Every term, those of the model with their errors. Keys are terms."""
    found, every = shown.effects, shown.every or shown.effects
    assert found is not None and every is not None
    unit, (title, scale) = shown.unit, _title(shown)
    columns = (
        Column("In", "Whether the model has this term (Space or Del)", check=True),
        Column("Term"),
        Column(title, f"{title}: {meaning(shown.project.analysis.half)}", unit),
        Column("SE", f"Standard error from {METHODS[found.error]}", unit, 3),
        Column("t", "Over its standard error", significant=3),
        Column("p", "Chance of as large a t without any effect", significant=2),
        Column("Share", "Full effect as percent of the unperturbed run", "% of base", 3),
        Column("Marked", f"Above {found.threshold}"),
        Column("Not told apart from", "Aliases up to two-factor interactions"),
    )
    kept = {e.members: e for e in found.effects}
    rows = []
    for one in every.effects:
        e = kept.get(one.members, one)
        on = one.members in kept
        numbers = (e.value * scale, e.se * scale, e.t, e.p) if on else (e.value * scale, None, None, None)
        cells: tuple[Value, ...] = (
            on, e.term, *numbers, found.percent(e), "★" if e.significant and on else "",
            ", ".join(e.aliases),
        )  # fmt: skip
        tone = "strong" if e.significant and on else "" if on else "faint"
        rows.append(TableRow(cells, e.term, tone, ", ".join((e.term, *e.aliases))))
    return columns, rows


def rank(shown: ExperimentSnapshot) -> Rows:
    """Main effects, largest first, with where their factors are in the program. Keys are factors."""
    found: Effects | None = shown.effects
    assert found is not None
    unit, (title, scale), factors = shown.unit, _title(shown), shown.factors
    columns = (
        Column("Rank", "Effects within one standard error share a rank; below zero there is none"),
        Column("Factor"),
        Column(title, "", unit),
        Column("±", "Standard error", unit, 3),
        Column("t", significant=3),
        Column("Share", "Full effect as percent of the unperturbed run", "% of base", 3),
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
            (place.file, place.line or None, place.routine, place.construct) if place else ("", None, "", "")
        )
        rank: Value = str(line.rank) if line.rank else "helps"
        cells: tuple[Value, ...] = (
            rank, e.term, e.value * scale, e.se * scale, e.t, line.percent, *where, ", ".join(e.aliases)
        )  # fmt: skip
        tip = "" if line.rank else "A delay here makes the program faster: look for contention it relieves"
        rows.append(TableRow(cells, e.term, "strong" if e.significant else "", tip))
    return columns, rows

"""Tables of an experiment as the window, reports and terminals show them: columns and rows.

Effects, the SPT rank, the analysis of variance, and what tables of effects beside each other say
(`desktop.workbench.effect_comparison`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from desktop.core.array_search import ArraySearch
from desktop.core.effect_tables import Dose, Scaling
from desktop.core.effects import Effects, ranked
from desktop.core.units import capital
from desktop.data.columns import Column, TableRow, Value, records
from desktop.data.experiment import Factor
from desktop.workbench.effect_comparison import NormalisedEffect, Pair, ScaledEffect

if TYPE_CHECKING:
    from desktop.workbench.experimenting import ExperimentSnapshot

Rows = tuple[tuple[Column, ...], list[TableRow]]

METHODS = {
    "replicates": "replicates",
    "interactions": "terms taken as error",
    "lenth": "Lenth's pseudo standard error",
    "none": "no error estimate",
}


#: To which effects a p refers, by the kind of limit.
FAMILY = {
    "t": "each effect by itself", "se": "each effect by itself", "lenth": "each effect by itself",
    "lenth-simultaneous": "in any of all effects", "familywise": "in any of all effects",
    "fdr": "adjusted to the share of none among the marked",
    "selected": "in any of all effects, as terms were left out after a look at them", "none": "not known",
}  # fmt: skip
INTERVAL = "Between these the effect lies with 95 %, each by itself"
SHARE = "Between these the share lies with 95 %; the noise of the unperturbed run counts as well"


#: Shown in place of a rank, by the verdict.
RANKLESS = {
    "slows": "", "helps": "helps", "not distinguishable from zero": "within error",
    "no error estimate": "no error",
}  # fmt: skip


def effect_word(half: bool) -> str:
    """How the numbers of a table or chart are called."""
    return "half effect" if half else "effect"


def effect_meaning(half: bool) -> str:
    if half:
        return "half the difference of the means with and without the delay, the model's coefficient"
    return "mean with the delay minus mean without"


def of_snapshot(snapshot: ExperimentSnapshot, *, ranks: bool = False) -> Rows:
    """The table of effects, or of `ranks`, of what is shown."""
    analysis, half, unit = snapshot.effects, snapshot.project.analysis.half, snapshot.effect_unit
    assert analysis is not None
    if ranks:
        return rank(analysis, unit, snapshot.project.measured.factors, half=half)
    return effects(analysis, unit, every=snapshot.every, half=half)


def effects(analysis: Effects, unit: str, *, every: Effects | None = None, half: bool = False) -> Rows:
    """Every term, those of the model with their errors. Keys are terms. `unit`: of the numbers, "" for none;
    `every`: effects of all terms, if the model has not all."""
    every, title, scale = every or analysis, capital(effect_word(half)), 0.5 if half else 1.0
    columns = (
        Column("In", "Whether the model has this term (Space or Del)", check=True),
        Column("Term"),
        Column(title, f"{title}: {effect_meaning(half)}", unit),
        Column("SE", f"Standard error from {METHODS[analysis.error]}", unit, 3),
        Column("t", "Over its standard error", significant=3),
        Column(
            "p",
            f"Chance of as large an effect where there is none, {FAMILY[analysis.limit.kind]}",
            significant=2,
        ),
        Column("Share", "Full effect as percent of the unperturbed run", "% of base", 3),
        Column("Marked", f"Above {analysis.threshold}"),
        Column("Aliased with", "Aliases up to two-factor interactions"),
        Column("95 % from", INTERVAL, unit, 3),
        Column("to", INTERVAL, unit, 3),
        Column("Share from", SHARE, "% of base", 3),
        Column("Share to", SHARE, "% of base", 3),
    )
    in_model = {e.members: e for e in analysis.effects}
    rows = []
    # The largest first, whether or not the model has it; what the trials cannot tell comes last.
    for one in sorted(every.effects, key=lambda e: -abs(e.value) if e.estimable else 1.0):
        e = in_model.get(one.members, one)
        on = one.members in in_model
        numbers = (e.value * scale, e.se * scale, e.t, e.p) if on else (e.value * scale, None, None, None)
        cells: tuple[Value, ...] = (
            on, e.term, *numbers, analysis.percent(e), "★" if e.significant and on else "",
            ", ".join(e.aliases),
            *((e.low * scale, e.high * scale, e.share_low, e.share_high) if on else (None,) * 4),
        )  # fmt: skip
        tone = "strong" if e.significant and on else "" if on else "faint"
        rows.append(TableRow(cells, e.term, tone, ", ".join((e.term, *e.aliases))))
    return columns, rows


def rank(analysis: Effects, unit: str, factors: Mapping[str, Factor], *, half: bool = False) -> Rows:
    """Main effects, largest first, with where their factors are in the program. Keys are factors."""
    title, scale = capital(effect_word(half)), 0.5 if half else 1.0
    columns = (
        Column("Rank", f"Effects above {analysis.threshold}; within one standard error they share a rank"),
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
        Column("Aliased with"),
    )
    rows = []
    for line in ranked(analysis):
        e = line.effect
        place = factors.get(e.term)
        location: tuple[Value, ...] = (
            (*place.levels, place.file, place.line or None, place.routine, place.construct)
            if place
            else ("", "", "", None, "", "")
        )
        rank: Value = str(line.rank) if line.rank else RANKLESS[line.verdict]
        cells: tuple[Value, ...] = (
            rank, e.term, e.value * scale, e.se * scale, e.t, line.percent, *location, ", ".join(e.aliases)
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


def anova(analysis: Effects) -> Rows:
    """The analysis of variance. Keys are sources."""
    return _ANOVA, records(_ANOVA, analysis.anova, "source")


# --- tables beside each other ---

#: Stands for the unit of effects in a declaration.
_EFFECT = "effect"
#: Of pairs, versions, two scales, and effects over processors of `desktop.workbench.effect_comparison`.
_BARRIERS = (
    Column("Before", name="before"), Column("After", name="after"),
    Column("FB1", "", _EFFECT, name="barrier.before"), Column("FB2", "", _EFFECT, name="barrier.after"),
    Column("FB2 − FB1", "", _EFFECT, name="barrier.difference"),
    Column("SE", "Of the difference", _EFFECT, 3, name="barrier.se"),
    Column("t", significant=3, name="barrier.t"),
    Column("95 % from", "The difference", _EFFECT, 3, name="barrier.low"),
    Column("to", "The difference", _EFFECT, 3, name="barrier.high"),
    Column("Share", "Difference of FB2", "%", 3, name="barrier.share"),
    Column("Share from", "With 95 %", "%", 3, name="barrier.share_low"),
    Column("Share to", "With 95 %", "%", 3, name="barrier.share_high"),
)  # fmt: skip
_SCALES = (
    Column("Effect", name="term"), Column("A", "At fewer processors", _EFFECT, name="small"),
    Column("B", "At more processors", _EFFECT, name="large"), Column("(A+B)/2", "", _EFFECT, name="middle"),
    Column("(B−A)/2", "Interaction with the scale", _EFFECT, name="interaction"),
    Column("SE", "", _EFFECT, 3, name="se"),
    Column("(B−A)/(A+B)", "Scaling ratio", significant=3, name="ratio"),
    Column("Exponent", "ln(B/A)/ln(p'/p): −1 shared, 0 serial, above 0 worse", significant=3,
           name="exponent"),
    Column("95 % from", "The exponent", significant=3, name="exponent_low"),
    Column("to", "The exponent", significant=3, name="exponent_high"),
)  # fmt: skip
_OVER_P = (
    Column("Effect", name="term"), Column("a", "Shared part, at one processor", _EFFECT, name="fit.shared"),
    Column("SE a", "", _EFFECT, 2, name="fit.shared_se"),
    Column("± 95 % a", "a lies within this of it", _EFFECT, 2, name="fit.shared_margin"),
    Column("b", "Serial part", _EFFECT, name="fit.serial"),
    Column("SE b", "", _EFFECT, 2, name="fit.serial_se"),
    Column("± 95 % b", "b lies within this of it", _EFFECT, 2, name="fit.serial_margin"),
    Column("Slope", significant=3, name="fit.slope"),
    Column("± 95 % slope", "The slope lies within this of it", significant=2, name="fit.slope_margin"),
)  # fmt: skip
_DOSES = (
    Column("Effect"), Column("Linear", "Not, where p is below 5 %"),
    Column("p", "Chance of effects as far from proportion, if they are in it", significant=2),
    Column("Per unit, smallest", "For each unit of delay, at the smallest size", _EFFECT),
    Column("Per unit, largest", "For each unit of delay, at the largest size", _EFFECT), Column("Warning"),
)  # fmt: skip


def _in(columns: tuple[Column, ...], unit: str) -> tuple[Column, ...]:
    """Columns with the unit of effects, "" for none."""
    return tuple(replace(one, unit=unit) if one.unit == _EFFECT else one for one in columns)


def barriers(pairs: Iterable[Pair], unit: str = "") -> Rows:
    """What is waited at barriers. Keys are the factors after them; `unit`: of effects, here and below."""

    def differs(pair: Pair) -> str:
        return "strong" if pair.barrier.low > 0 or pair.barrier.high < 0 else ""

    return _in(_BARRIERS, unit), records(_BARRIERS, pairs, "after", differs)


def versions(first: str, second: str, terms: Iterable[NormalisedEffect]) -> Rows:
    """Effects of two versions by their names. Keys are factors."""
    columns = (
        Column("Factor", name="term"),
        Column(first, "Percent of its unperturbed run", "% of base", name="first"),
        Column(second, "Percent of its unperturbed run", "% of base", name="second"),
        Column("Change", "Points of percent", "points", name="change"),
        Column("95 % from", "The change", "points", 3, name="low"),
        Column("to", "The change", "points", 3, name="high"),
    )

    def differs(one: NormalisedEffect) -> str:
        return "strong" if one.low > 0 or one.high < 0 else ""

    return columns, records(columns, terms, "term", differs)


def scales(scalings: Iterable[Scaling], unit: str = "") -> Rows:
    """Effects at two numbers of processors. Keys are terms."""
    return _in(_SCALES, unit), records(_SCALES, scalings, "term")


def over_processors(scaled: Iterable[ScaledEffect], unit: str = "") -> Rows:
    """Effects over processors with a/p + b. Keys are terms."""
    return _in(_OVER_P, unit), records(_OVER_P, scaled, "term")


def doses(by_name: Iterable[tuple[str, Dose]], unit: str = "") -> Rows:
    """Effects over the size of the delay. Keys are terms."""
    return _in(_DOSES, unit), [
        TableRow(
            (
                name, "yes" if d.linear else "no", d.p, float(d.per_unit[0]), float(d.per_unit[-1]),
                d.warning,
            ),
            name, "" if d.linear else "warning",
        )
        for name, d in by_name
    ]  # fmt: skip


def ranking(search: ArraySearch, unit: str = "") -> Rows:
    """Runs of an array, the smallest response first. Keys are runs; `unit`: of the response."""
    columns = (
        Column("Rank"), Column("Run"), Column("Mean response", "", unit),
        Column("Share", "Of the run with every factor at its lowest level", "% of base", 3),
        *map(Column, search.factors), Column("Trials"),
    )  # fmt: skip
    rows = []
    for place, (name, setting) in enumerate(zip(search.names, search.settings, strict=True)):
        base = place == search.base
        run: Value = int(name) if name.isdigit() else name
        share: Value = search.percent(place) if search.base >= 0 else None
        cells: tuple[Value, ...] = (
            place + 1, run, search.mean[place], share, *map(as_whole, setting), search.count[place]
        )  # fmt: skip
        rows.append(TableRow(cells, name, "strong" if base else "", "The unperturbed program" * base))
    return columns, rows


def as_whole(value: float) -> Value:
    """A number that is usually whole."""
    return int(value) if value.is_integer() else value

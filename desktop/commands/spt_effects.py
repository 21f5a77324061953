"""``phasewright spt effects``: the effect of every delay, as JSON and as lines of text."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from desktop.commands import spt_confirm
from desktop.commands.run_options import pairs
from desktop.commands.terminal import Answer, Part, picked, row_lines, table_lines
from desktop.core.arrays import Floats
from desktop.core.plain import JSON
from desktop.core.units import capital
from desktop.data.columns import Column

if TYPE_CHECKING:
    from desktop.core.array_search import ArraySearch
    from desktop.core.effects import Effects
    from desktop.data.experiment import Factor

ERRORS = ("replicates", "interactions", "lenth")
TABLES = ("runs", "array", "delays")
THRESHOLDS = ("t", "2", "3", "lenth", "lenth-simultaneous", "familywise", "fdr")
INNER = ("each", "mean", "median", "minimum")


def add_parts(part: Part) -> None:
    """Its arguments. `part` makes one of a name, a function and a text."""
    add = part("effects", effects, "what every delay does to the response")
    add("runs RUNS.csv", "or an experiment that was run", type=Path)
    add(
        "--table", "at two levels, an array, sizes of the delay (default: as the columns say)", choices=TABLES
    )
    add("--response NAME")
    add("--factors NAMES", "columns that are factors (default: those of two levels)")
    add("--half", "half effects, the coefficients of the model")
    add("--error", "where the standard error comes from", choices=ERRORS)
    add("--terms A,B,A:B", "only these (default: all that can be estimated)")
    add("--generators E=ABC", "checked against the runs")
    add("--threshold", "what marks an effect", choices=THRESHOLDS, default="t")
    add("--planned", "--terms were chosen before the effects were seen")
    add("--transform POWER", "of the response; log for its logarithm", default="1")
    add("--covariate NAME", "noted with the trials and adjusted for, such as clock_mhz", default="")
    add("--inner", "repeats of a treatment in one replicate", choices=INNER, default="each")
    add("--no-blocks", "replicates are no blocks")
    add("--where COLUMN=VALUE", "only these rows", action="append", default=[])
    add("--csv", "comma-separated rows on standard output")


def effects(options: argparse.Namespace) -> Answer:
    """Effects of the runs of a file; of an array the ranking of its runs; of sizes of the delay, the effects
    for each unit of delay."""
    from desktop.core.design import members_of
    from desktop.core.effects import analyse, condensed, missing
    from desktop.data.answer import MeasuredResponse
    from desktop.data.experiment import experiment_of, table_of
    from desktop.data.runs import kind_of, read_runs

    options.runs = table_of(options.runs)
    kind = options.table or kind_of(options.runs)
    if kind == "array":
        return _ranking(options)
    if kind in ("places", "effects", "delays"):
        return _doses(options)
    names = tuple(n.strip() for n in options.factors.split(",")) if options.factors else None
    table = read_runs(
        options.runs, response=options.response, factors=names, where=pairs(options.where, "COLUMN=VALUE")
    )
    if options.generators:
        _check_generators(options.generators, table.data.factors, table.data.x)
    terms = None
    if options.terms:
        terms = [members_of(word.strip(), table.data.factors) for word in options.terms.split(",")]
    analysis = analyse(
        condensed(table.data, options.inner), error=options.error, terms=terms, threshold=options.threshold,
        blocks=not options.no_blocks, planned=options.planned, transform=_power(options.transform),
        covariate=options.covariate,
    )  # fmt: skip
    result = analysed(analysis, options.half)
    result |= {"response": table.response, "missing_runs": list(missing(table.data))}
    experiment = experiment_of(options.runs)
    measured = MeasuredResponse.of(experiment or table, table.response)
    result["ranks"] = ranks(analysis, options.half, measured.factors)
    answer = measured.answer(analysis)
    result["answer"] = spt_confirm.plain_answer(answer)
    unread = table.unread(options.covariate) if names is None and experiment is None else ""
    more = [note for note in (table.refused, unread) if note]
    result["notes"] += more
    lines = effect_lines(analysis, options.half, table.response, measured.factors)
    return result, [answer.text, *lines, *(f"note: {note}" for note in more)]


def _power(text: str) -> float:
    try:
        power = 0.0 if text == "log" else float(text)
    except ValueError:
        power = float("nan")
    if not -2 <= power <= 2:
        raise ValueError(f"--transform takes log or a power from -2 to 2, not {text!r}")
    return power


def _ranking(options: argparse.Namespace) -> Answer:
    """The ranking of an array's runs (NISTIR 5131, table 4)."""
    from desktop.core.array_search import array_search_of
    from desktop.core.effects import missing
    from desktop.data.runs import read_array

    names = [n.strip() for n in options.factors.split(",")] if options.factors else None
    table = read_array(
        options.runs, response=options.response, factors=names, where=pairs(options.where, "COLUMN=VALUE")
    )
    search = array_search_of(table.data)
    result = searched(search) | {"response": table.response, "missing_runs": list(missing(table.data))}
    result["notes"] += [table.refused] if table.refused else []
    return result, ranking_lines(search, table.response, table.refused)


def searched(search: ArraySearch) -> JSON:
    """The keys of ``--json`` for an orthogonal array, which has a ranking in place of effects."""
    return {
        "table": "array",
        "effects": [],
        "ranking": [
            {
                "rank": place + 1,
                "run": name,
                "levels": dict(zip(search.factors, search.settings[place], strict=True)),
                "mean": search.mean[place],
                "trials": search.count[place],
                "percent_of_unperturbed": search.percent(place),
            }
            for place, name in enumerate(search.names)
        ],
        "level_means": [picked(m, "factor level mean trials=runs") for m in search.levels],
        "spread": dict(zip(search.factors, search.spread, strict=True)),
        "notes": [search.gaps] if search.gaps else [],
    }


def ranking_lines(search: ArraySearch, response: str, refused: str = "") -> list[str]:
    from desktop.workbench import effect_rows

    lines = [
        f"{len(search.order)} settings by {response}, the smallest first",
        *table_lines(*effect_rows.ranking(search)),
        "mean response at every level:",
    ]
    for name in search.factors:
        means = ", ".join(f"{m.level:g}: {m.mean:.5g}" for m in search.levels if m.factor == name)
        lines.append(f"      {name:<12}{means}")
    return lines + [f"note: {note}" for note in (search.gaps, refused) if note]


def rows(result: JSON) -> list[JSON]:
    """What ``--csv`` prints: effects, settings of an array, or effects at every size of the delay."""
    if result.get("table") == "array":
        flat = (row | row["levels"] for row in result["ranking"])
        return [{k: v for k, v in row.items() if k != "levels"} for row in flat]
    if result.get("table") == "delays":
        many = ("values", "se", "per_unit", "per_unit_se")
        return [
            {"term": one["term"], "delay": delay, **{name: one[name][k] for name in many}}
            for one in result["effects"]
            for k, delay in enumerate(one["delays"])
        ]
    return [row | {"aliases": " ".join(row["aliases"])} for row in result["effects"]]


def _doses(options: argparse.Namespace) -> Answer:
    """Effects over the size of the delay (NISTIR 5131, figure 3)."""
    from desktop.workbench.effect_comparison import doses, tables_in

    tables = tables_in(options.runs, options.response)
    if not any(table.delay for table in tables):
        raise ValueError(f"{options.runs.name} holds effects without a column `delay`, and no trials")
    by_name = doses(tables)
    result: JSON = {
        "table": "delays",
        "convention": "effect",
        "effects": [
            {"term": name}
            | picked(one, "delays=delay values=effect se per_unit per_unit_se linear p warning")
            for name, one in by_name
        ],
    }
    lines = ["effect against the size of the delay; per unit, it is level where the linear model holds"]
    lines += row_lines(rows(result), Column("Term", name="term"), Column("Delay", name="delay", whole=True),
                       Column("Effect", name="values"), Column("SE", name="se", significant=3),
                       Column("Per unit", name="per_unit"))  # fmt: skip
    lines += [f"note: {name}: {one.warning}" for name, one in by_name if one.warning]
    if tables[0].refused:
        result["notes"] = [tables[0].refused]
        lines.append(f"note: {tables[0].refused}")
    return result, lines


def _check_generators(text: str, factors: tuple[str, ...], x: Floats) -> None:
    from desktop.core.design import members_of

    for generator in text.replace(",", " ").split():
        left, _, right = generator.partition("=")
        sign = -1.0 if right.startswith("-") else 1.0
        one, members = members_of(left, factors), members_of(right.lstrip("+-"), factors)
        if len(one) != 1 or not members:
            raise ValueError(f"{generator!r} is no generator, write for example E=ABC or F=-BCD")
        if (x[:, one[0]] != sign * x[:, list(members)].prod(axis=1)).any():
            raise ValueError(f"the runs do not follow the generator {generator}")


def analysed(analysis: Effects, half: bool) -> JSON:
    """The keys of ``--json``."""
    scale = 0.5 if half else 1.0
    lenth = analysis.lenth
    se = next((e.se for e in analysis.effects if e.se == e.se), float("nan"))
    return {
        "convention": "half_effect" if half else "effect",
        "mean": analysis.mean,
        "mean_se": analysis.mean_se,
        "effects": [
            {
                "term": e.term,
                "aliases": list(e.aliases),
                "value": scale * e.value,
                "se": scale * e.se,
                **picked(e, "df t p significant"),
                "percent_of_unperturbed": scale * analysis.percent(e),
                "percent_interval": [scale * e.share_low, scale * e.share_high],
                "interval": [scale * e.low, scale * e.high],
            }
            for e in analysis.effects
        ],
        "pooled_variance": analysis.variance,
        "error": {
            "method": analysis.error,
            "se": scale * se,
            "df": lenth.df if analysis.error == "lenth" and lenth is not None else analysis.df,
        },
        "lenth": lenth
        and {
            key: one if key == "df" else scale * one
            for key, one in picked(
                lenth, "s0 pse df me sme simulated_me=margin simulated_sme=simultaneous"
            ).items()
        },
        "half_normal": [
            {"term": e.term, "quantile": e.half_normal, "value": scale * abs(e.value)}
            for e in sorted(analysis.effects, key=lambda e: e.half_normal)
        ],
        "suspect_runs": [picked(s, "run=label response=value expected t limit") for s in analysis.suspects],
        "unperturbed": analysis.unperturbed,
        "unperturbed_measured": analysis.unperturbed_measured,
        "anova": [picked(r, "source ss df ms f p") for r in analysis.anova],
        "r2": analysis.r2,
        "r2_adjusted": analysis.r2_adjusted,
        "threshold": analysis.threshold,
        "limit": picked(analysis.limit, "kind value level df count some"),
        "transform": analysis.transform,
        "covariate_slope": analysis.slope and dict(zip(("slope", "se"), analysis.slope, strict=True)),
        "response_power": _powers(analysis),
        "notes": list(analysis.notes),
    }


def _powers(analysis: Effects) -> JSON | None:
    """Which power of the response fits; None where nothing tells."""
    from desktop.core.response_power import powers_of

    fitting = powers_of(analysis)
    return None if fitting is None else picked(fitting, "power low high suggested text")


def ranks(analysis: Effects, half: bool, factors: Mapping[str, Factor]) -> list[JSON]:
    """Main effects from the largest down (NISTIR 5139, table 3), as step 4 of the window has them: those
    within one standard error share a rank, and those that are not above zero have none. `factors`: where they
    are."""
    from desktop.core.effects import ranked

    rows = []
    for line in ranked(analysis):
        e, place = line.effect, factors.get(line.effect.term)
        scale = 0.5 if half else 1.0
        row: JSON = {
            "rank": line.rank or None,
            "verdict": line.verdict,
            "term": e.term,
            "value": scale * e.value,
            "se": scale * e.se,
            "percent_of_unperturbed": scale * line.percent,
        }
        if place is not None:
            row |= {k: getattr(place, k) for k in ("file", "line", "routine", "construct")}
            row |= dict(zip(("minus", "plus"), place.levels, strict=True))
        rows.append(row)
    return rows


def effect_lines(analysis: Effects, half: bool, response: str, factors: Mapping[str, Factor]) -> list[str]:
    from desktop.workbench import effect_rows

    word = effect_rows.effect_word(half)
    scale = {1.0: "", 0.0: " (of the logarithm)"}.get(analysis.transform, " (transformed)")
    columns, mains = effect_rows.rank(analysis, "", factors, half=half)
    lines = [
        f"{len(analysis.trials.y)} trials, response {response}, mean {analysis.mean:.6g}{scale}, "
        f"error by {analysis.error}; * marks more than {analysis.threshold}",
        *table_lines(
            *effect_rows.effects(analysis, "", half=half), "Term", capital(word), "SE", "t", "Share",
            "Marked", "Aliased with",
        ),
        f"SPT rank, by {word}; those within one standard error share a rank:",
        *table_lines(
            columns, mains, "Rank", "Factor", capital(word), "±", "Share", "Low means", "High means", "File",
            "Line", "Routine", "Construct",
        ),
    ]  # fmt: skip
    for tip in dict.fromkeys(row.tip for row in mains if row.tip):
        lines.append(f"      {', '.join(str(row.key) for row in mains if row.tip == tip)}: {tip}")
    for s in analysis.suspects:
        expected = f"expected {s.expected:.5g}{scale}"
        lines.append(f"suspect: run {s.label} gave {s.value:.5g}, {expected} (t = {s.t:.1f})")
    power = _powers(analysis)
    if power is not None and power["suggested"] not in (None, analysis.transform):
        word = "log" if power["suggested"] == 0 else f"{power['suggested']:g}"
        lines.append(f"note: {power['text']} (--transform {word})")
    return lines + [f"note: {note}" for note in analysis.notes]

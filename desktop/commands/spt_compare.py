"""``phasewright spt barriers``, ``versions``, ``processors``, ``pin``: as step 5 and *In a trace* show."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from desktop.commands.run_options import pairs
from desktop.commands.terminal import Answer, Part, picked, row_lines, table_lines, terminal_progress
from desktop.core.plain import JSON
from desktop.data.columns import Column
from desktop.remote import named

if TYPE_CHECKING:
    from desktop.workbench.effect_comparison import ComparedTable


def add_parts(part: Part) -> None:
    """Their arguments. `part` makes one of a name, a function and a text."""
    add = part("barriers", barriers, "what is waited at barriers: pairs FB1_x and FB2_x")
    add("table TABLE", "runs, effects or an experiment", type=Path)
    add("--response NAME")
    add("--cost X", "effect of the artificial barrier itself, which is subtracted", type=float, default=0.0)
    add("--cost-se SE", "its standard error", type=float, default=0.0)

    add = part("versions", versions, "effects of two versions of a program, each in percent of its own run")
    add("table TABLE", "of one version: runs or an experiment", type=Path)
    add("other OTHER", "of the other", type=Path)
    add("--response NAME")

    add = part("processors", processors, "how effects change over three or more numbers of processors")
    add("tables P=TABLE", "number of processors and table; or a table that says them", nargs="+")
    add("--response NAME")

    add = part("covariates", covariates, "does the response follow the clock, the load or other columns")
    add("table TABLE", "an experiment, its trials.csv, or runs", type=Path)
    add("--columns NAMES", "default: other_busy_cores, load and clock_mhz, where they are", default="")
    add("--response NAME")
    add("--no-blocks", "replicates are no blocks")

    add = part("pin", pin, "in which phases of a trace the factors run")
    add("table TABLE", "an experiment, or runs", type=Path)
    add("trace TRACE", "of the program", type=named)
    add("--region FACTOR=REGION", "where the names differ", action="append", default=[])

    add = part("scaling", scaling, "which effects shrink when processors are added")
    add("runs RUNS.csv", "one factor and the scale", nargs="?", type=Path)
    for words in ("--factor NAME", "--scale NAME", "--response NAME"):
        add(words)
    add("--where COLUMN=VALUE", action="append", default=[])
    add("--se SE", "standard error of a half effect, where there are no replicates", type=float)
    add("--small A.csv", "runs or effects at the smaller number", type=Path)
    add("--small-p P", type=float)
    add("--large B.csv", type=Path)
    add("--large-p P", type=float)


def barriers(options: argparse.Namespace) -> Answer:
    """Waiting at barriers (NISTIR 5139, table 11)."""
    from desktop.workbench import effect_comparison, effect_rows

    if options.cost_se < 0:
        raise ValueError("--cost-se is a standard error, so it is not below zero")
    table = _one(options.table, options.response)
    pairs = effect_comparison.barriers(table, options.cost, options.cost_se)
    if not pairs:
        raise ValueError(f"{options.table.name} has no pair of factors such as FB1_x and FB2_x")
    rows = [
        {"before_factor": p.before, "after_factor": p.after}
        | picked(p.barrier, "before after difference se t share")
        | {"interval": [p.barrier.low, p.barrier.high]}
        | {"share_interval": [p.barrier.share_low, p.barrier.share_high]}
        for p in pairs
    ]
    lines = table_lines(*effect_rows.barriers(pairs))
    vague = [p.after for p in pairs if math.isinf(p.barrier.share_low)]
    if vague:
        lines.append(f"{', '.join(vague)}: cannot be told from zero, so nothing limits the share of it")
    return {"barriers": rows, "cost": options.cost, "cost_se": options.cost_se}, lines


def versions(options: argparse.Namespace) -> Answer:
    """Effects of two versions (NISTIR 5131, table 2-C)."""
    from desktop.workbench import effect_rows
    from desktop.workbench.effect_comparison import normalised

    first, second = _one(options.table, options.response), _one(options.other, options.response)
    terms = sorted(normalised(first, second), key=lambda n: -max(abs(n.first), abs(n.second), key=_finite))
    rows = [picked(n, "term first second change") | {"change_interval": [n.low, n.high]} for n in terms]
    lines = [
        f"first: {first.name}, unperturbed run {first.unperturbed:.5g}",
        f"second: {second.name}, unperturbed run {second.unperturbed:.5g}",
        "effects in percent of the unperturbed run of each",
        *table_lines(*effect_rows.versions("first", "second", tuple(terms))),
    ]
    return {"first": first.name, "second": second.name, "effects": rows}, lines


def processors(options: argparse.Namespace) -> Answer:
    """Effects over processors as a/p + b (NISTIR 5139, tables 5 to 8)."""
    from dataclasses import replace

    from desktop.workbench.effect_comparison import over_processors, tables_in

    tables: list[ComparedTable] = []
    for word in options.tables:
        p, equals, name = word.partition("=")
        if not equals:
            tables += tables_in(Path(word), options.response)
            continue
        try:
            number = float(p)
        except ValueError:
            number = 0.0
        if not (math.isfinite(number) and number > 0):
            raise ValueError(f"{word!r} names no number of processors, write 8={name}")
        tables.append(replace(_one(Path(name), options.response), processors=number))
    try:
        scaled = sorted(over_processors(tables), key=lambda one: -abs(one.effect[-1]))
    except ValueError as error:
        raise ValueError(f"this {error}; name each as P=TABLE, such as 8=runs.csv") from None
    rows = [
        picked(one, "term p effect se")
        | picked(one.fit, "shared shared_se shared_margin serial serial_se serial_margin slope slope_margin")
        for one in scaled
    ]
    lines = ["a/p + b: what is shared, and what does not shrink; slope of ln effect on ln p (-1 and 0)"]
    lines += row_lines(
        [row | {f"{p:g}": effect for p, effect in zip(row["p"], row["effect"], strict=True)} for row in rows],
        Column("term"), *(Column(f"p = {p:g}", name=f"{p:g}") for p in scaled[0].p),
        Column("a", name="shared"), Column("± 95 %", "", "", 2, name="shared_margin"),
        Column("b", name="serial"), Column("± 95 %", "", "", 2, name="serial_margin"),
        Column("slope", significant=3), Column("± 95 %", "", "", 2, name="slope_margin"),
    )  # fmt: skip
    return {"effects": rows}, lines


def covariates(options: argparse.Namespace) -> Answer:
    """The regression on each covariate by itself, and the effects adjusted for it."""
    from desktop.core.covariates import covariate
    from desktop.data.experiment import COVARIATES, table_of
    from desktop.data.runs import read_runs

    table = read_runs(table_of(options.table), response=options.response)
    names = [name.strip() for name in options.columns.split(",") if name.strip()]
    rows: list[JSON] = []
    lines: list[str] = []
    for name in names or COVARIATES:
        try:
            one = covariate(name, table.data, blocks=not options.no_blocks)
        except ValueError as error:
            if names:
                raise
            lines.append(f"{name}: {error}")
            continue
        rows.append(
            picked(one, "name slope se df t p low high share")
            | {"effects": [picked(e, "term value se adjusted adjusted_se") for e in one.effects]}
        )
        if one.p < 0.05:
            lines += [
                f"without {name}: {e.term:<16}{e.adjusted:>12.4g} ± {e.adjusted_se:<9.3g} (was {e.value:.4g})"
                for e in sorted(one.effects, key=lambda e: -abs(e.adjusted))
            ]
    lines[:0] = row_lines(
        rows, Column("column", name="name"), Column("slope"), Column("SE", significant=3, name="se"),
        Column("p", significant=3), Column("explains", "", "%", 3, name="share"),
    )  # fmt: skip
    return {"response": table.response, "covariates": rows}, lines


def pin(options: argparse.Namespace) -> Answer:
    """The phases of a trace in which factors run, as *In a trace* of the window."""
    from desktop.commands.run_options import pairs
    from desktop.data.experiment import experiment_of
    from desktop.data.runs import read_runs
    from desktop.workbench.pinning import pin as pin_trace

    regions = pairs(options.region, "FACTOR=REGION")
    experiment = experiment_of(options.table)
    if experiment is None:
        routines = dict.fromkeys(read_runs(options.table).data.factors, "")
    else:
        routines = {f.name: f.routine for f in experiment.factors}
    unknown = next((name for name in regions if name not in routines), None)
    if unknown is not None:
        raise ValueError(f"there is no factor {unknown!r}; there are {', '.join(routines)}")
    with terminal_progress() as progress:
        pinned = pin_trace(options.trace, progress)
    missing = next((region for region in regions.values() if region not in pinned.names), None)
    if missing is not None:
        raise ValueError(f"{options.trace.name} has no region {missing!r}")
    rows, lines, every = [], list[str](), list[JSON]()
    for name, routine in routines.items():
        region = regions.get(name) or pinned.likely(routine or name)
        phases = pinned.of(region) if region else ()
        places = [
            {"phase": one.phase + 1, "start_s": pinned.start_s[one.phase], "end_s": pinned.end_s[one.phase]}
            | picked(one, "inclusive_s exclusive_s")
            for one in phases
        ]
        rows.append({"factor": name, "region": region or None, "phases": places})
        every += [{"factor": name, "region": region} | one for one in places]
        if not phases:
            lines.append(f"{name}: no region is called like it; say --region {name}=REGION")
    lines[:0] = row_lines(
        every, Column("factor"), Column("region"), Column("phase"), Column("start", "", "s", name="start_s"),
        Column("end", "", "s", name="end_s"), Column("inclusive", "", "s", name="inclusive_s"),
        Column("exclusive", "", "s", name="exclusive_s"),
    )  # fmt: skip
    return {"trace": str(options.trace), "factors": rows}, lines


def _one(path: Path, response: str | None) -> ComparedTable:
    """The only table of a file. ValueError: there are several."""
    from desktop.workbench.effect_comparison import tables_in

    tables = tables_in(path, response)
    if len(tables) != 1:
        raise ValueError(f"{path.name} holds {len(tables)} tables of effects, one is needed")
    return tables[0]


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def scaling(options: argparse.Namespace) -> Answer:
    """Two tables at two numbers of processors, or one factor and the scale."""
    if options.small or options.large:
        return _two_tables(options)
    if not (options.runs and options.factor and options.scale):
        words = "name RUNS.csv with --factor and --scale, or --small, --small-p, --large and --large-p"
        raise ValueError(words)
    return _one_factor(options)


def _two_tables(options: argparse.Namespace) -> Answer:
    from desktop.workbench import effect_rows
    from desktop.workbench.effect_comparison import two_scales

    if not (options.small and options.large and options.small_p and options.large_p):
        raise ValueError("two tables need --small, --small-p, --large and --large-p")
    if not options.large_p > options.small_p:
        raise ValueError(f"--large-p has to be above --small-p, got {options.large_p:g}")
    sides = (options.small, options.small_p), (options.large, options.large_p)
    rows = two_scales([_mains_at(path, p, options) for path, p in sides])[2]
    shared = (options.small_p - options.large_p) / (options.small_p + options.large_p)
    result = {
        "small_p": options.small_p,
        "large_p": options.large_p,
        "ratio_if_shared": shared,
        "effects": [
            picked(r, "term small large middle interaction se scaling_ratio=ratio exponent")
            | {"exponent_interval": [r.exponent_low, r.exponent_high]}
            for r in rows
        ],
    }
    lines = [
        f"ratio (B-A)/(A+B): {shared:.3f} for work that is shared perfectly, 0 for serial work; "
        "exponent: -1 and 0",
        *table_lines(*effect_rows.scales(rows)),
    ]
    return result, lines


def _mains_at(path: Path, p: float, options: argparse.Namespace) -> ComparedTable:
    """Main effects at `p` processors, where the table tells them apart."""
    from dataclasses import replace

    from desktop.workbench.effect_comparison import tables_in

    tables = tables_in(path, options.response)
    at = [t for t in tables if t.processors == p] or [t for t in tables if not t.processors]
    if len(at) != 1:
        raise ValueError(f"{path.name} holds {len(at)} tables of effects at {p:g} processors, one is needed")
    mains = {term: effect for term, effect in at[0].effects.items() if ":" not in term}
    return replace(at[0], effects=mains, processors=p)


def _one_factor(options: argparse.Namespace) -> Answer:
    from desktop.core.effects import analyse
    from desktop.data.runs import read_runs
    from desktop.workbench.effect_comparison import scale_test_of

    names = [options.factor, options.scale]
    table = read_runs(
        options.runs, response=options.response, factors=names, where=pairs(options.where, "COLUMN=VALUE")
    )
    test = scale_test_of(analyse(table.data, blocks=False), options.factor, options.scale, options.se)
    keys = ("mu b_factor=factor b_scale=scale b_interaction=interaction se threshold d=excess "
            "d_se=excess_se limit verdict reason")  # fmt: skip
    of = {"factor": options.factor, "scale": options.scale, "response": table.response}
    result = of | {"convention": "half_effect", **picked(test, keys)}
    lines = [
        f"{options.factor} and {options.scale}, response {table.response}, half effects (se {test.se:.4g}): "
        f"mean {test.mu:.5g}, {options.factor} {test.factor:.5g}, {options.scale} {test.scale:.5g}, "
        f"both {test.interaction:.5g}",
        f"D = {test.excess:.4g} (se {test.excess_se:.3g}), threshold of the interaction {test.threshold:.4g}",
        f"verdict: {test.verdict}, {test.reason}",
    ]
    return result, lines

"""``phasewright model``: the factor model of a table of run times."""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from desktop.commands.run_options import add_formats, adder, pairs
from desktop.commands.terminal import DONE, LOSSY, USAGE, picked, show, terminal_progress
from desktop.core.plain import JSON
from desktop.progress import Progress

if TYPE_CHECKING:
    from desktop.core.factor_answers import FactorChoice, Ranking
    from desktop.core.factor_model import Kind, ModelFit
    from desktop.data.tables import Selection, Table
    from desktop.workbench.model_results import ResultSheet


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    add = adder(parser)
    add("table TABLE", "CSV, TSV, .xlsx, NPB listing or a folder of them", type=Path, nargs="?")
    add(
        "--phases TRACE",
        "instead of a table, traces of one program on 3 or more numbers of processors: how each phase "
        "scales; once for each system",
        type=Path, nargs="+", action="append",
    )  # fmt: skip
    add("--system NAME", "what the traces of each --phases ran on, in their order", action="append")
    add("--at P,P", "with --phases: numbers of processors to predict at")
    add("--functions F,F", "functions of p and of the problem size N; default: the best by AICc")
    kind = adder(parser.add_mutually_exclusive_group())
    kind("--joint", "work over speed, over all cells (default)")
    kind("--individual", "every code on every system by itself (default with one code or one system)")
    add("--reference NAME", "system or code whose parameters are 1")
    fitted = "what is fitted; default: the one with the least AICc"
    add("--response", fitted, choices=("auto", "t", "t'", "log"), default="auto")
    add("--repeats", choices=("points", "median", "minimum"), default="points")
    add("--positive", "require parameters of zero or more")
    add("--all-pairs", "rank all pairs of the characteristic functions")
    add("--normal-forms", "search a function of p for every cell, as Extra-P does, cross-validated")
    add("--column ROLE=HEADING", "what a column means, e.g. time=elapsed", action="append", default=[])
    add("--systems TABLE", "peak rate of every system, in a table", type=Path)
    add("--codes TABLE", "operations of every code, in a table", type=Path)
    add("--unit ROLE=UNIT", "e.g. time=ms", action="append", default=[])
    add_formats(parser, csv=True)


def run(options: argparse.Namespace, progress: Progress) -> tuple[JSON, list[str], Selection]:
    """Fit as the options say: the result as plain values and as lines, and the rows that take part."""
    from desktop.core.factor_answers import choose, known_functions, rank_pairs
    from desktop.data.tables import measurements, read_table, with_values
    from desktop.workbench.model_answers import headline
    from desktop.workbench.model_results import forms_sheet

    table = read_table(options.table, columns=pairs(options.column), units=pairs(options.unit))
    if options.systems:
        table = with_values(table, options.systems, "peak", pairs(options.unit).get("peak"))
    if options.codes:
        table = with_values(table, options.codes, "work", pairs(options.unit).get("work"))
    selection = measurements(table, options.repeats)
    functions = tuple(part.strip() for part in (options.functions or "auto").split(","))
    functions = () if functions == ("auto",) else functions
    single = min(len(set(selection.data.code)), len(set(selection.data.system))) < 2
    kind: Kind = "individual" if options.individual or (single and not options.joint) else "joint"
    response = "" if options.response == "auto" else options.response
    if options.all_pairs:
        ranking = rank_pairs(
            selection.data, kind, response or "t'", functions or known_functions(selection.data),
            reference=options.reference, positive=options.positive, progress=progress,
        )  # fmt: skip
        result = _ranked(ranking, table, selection)
        return result, _ranking_lines(ranking, result), selection
    choice = choose(
        selection.data, kind, functions, response,
        reference=options.reference, positive=options.positive, progress=progress,
    )  # fmt: skip
    fit = choice.fit
    result = {"sentences": list(headline(fit)), **_described(table, selection, choice)}
    sheet = None
    if options.normal_forms:  # with the prediction at twice the largest p
        from desktop.core.normal_form import search_forms

        sheet = forms_sheet(fit, search_forms(selection.data, progress), 2.0 * float(fit.data.p.max()))
        assert sheet.frame is not None
        result["normal_forms"] = [dict(row) for row in sheet.frame.to_dict("records")]
    return result, _fit_lines(result, selection, choice, sheet), selection


def _described(table: Table, selection: Selection, choice: FactorChoice) -> JSON:
    """The keys of ``--json``."""
    from desktop.core.factor_intervals import CONFIDENCE, widths
    from desktop.core.factor_model import parameters

    fit, width = choice.fit, widths(choice.fit)
    return {
        **picked(fit.response, "response=kind response_note=note"),
        **picked(fit, "functions kind df status starts starts_agreeing condition"),
        "reference": fit.reference or None,
        **_figures(fit),
        "parameters": [asdict(parameter) for parameter in parameters(fit)],
        "f_test": None if width.form is None else picked(width.form, "f df1 df2 p"),
        "choice": {
            "tried": choice.tried,
            "rivals": [
                {"functions": list(one.functions), "response": one.response, "aicc_more": one.more}
                for one in choice.rivals
            ],
        },
        "intervals": {
            "confidence": CONFIDENCE,
            **picked(width, "lack cell cell_times rise far_times ends"),
        },
        **_notes(fit, table, selection),
        "suspect_rows": _suspects(fit, selection),
    }


def _figures(fit: ModelFit) -> dict[str, float]:
    """Numbers on how well it fits."""
    return picked(fit, "n npar sse sst r2 r2_centred s aicc mean_relative_error max_relative_error")


def _notes(fit: ModelFit, table: Table, selection: Selection) -> JSON:
    """Warnings of the fit, on columns that were not used, and on names that look alike; rows left out."""
    from desktop.data.tables import ALIKE

    alike = [f"{', '.join(map(repr, names))} {ALIKE}" for names in table.similar]
    return {
        "warnings": [*fit.warnings, *selection.dropped, *alike],
        "excluded": [{"line": row.line, "reason": row.reason} for row in selection.excluded],
    }


def _suspects(fit: ModelFit, selection: Selection) -> list[JSON]:
    """Rows with a residual too large for so many rows, with the verdict: beyond heavy tails too, or not."""
    from desktop.core import factor_intervals

    data, accused = fit.data, set(factor_intervals.accused(fit).tolist())
    return [
        {
            "line": selection.lines[k],
            "code": data.codes[data.code[k]],
            "system": data.systems[data.system[k]],
            "p": int(data.p[k]),
            "studentized": float(fit.studentized[k]),
            "verdict": "accused" if k in accused else "worth a look",
        }
        for k in factor_intervals.suspects(fit).tolist()
    ]


def _ranked(ranking: Ranking, table: Table, selection: Selection) -> JSON:
    from desktop.core.factor_model import parameters

    return {
        "kind": ranking.fits[0].kind,
        "response": ranking.fits[0].response.kind,
        "pairs": [
            picked(fit, "functions")
            | _figures(fit)
            | {"undetermined": sum(one.undetermined for one in values)}
            | {"negative": sum(one.value < 0 for one in values)}
            | picked(fit, "status starts_agreeing")
            for fit, values in zip(ranking.fits, map(parameters, ranking.fits), strict=True)
        ],
        "best_of_cells": None
        if math.isnan(ranking.best_sse)
        else {"sse": ranking.best_sse, "npar": ranking.best_npar},
        "dropped": [
            {"functions": list(functions), "reason": reason} for functions, reason in ranking.dropped
        ],
        **_notes(ranking.fits[0], table, selection),
    }


def _ranking_lines(ranking: Ranking, result: JSON) -> list[str]:
    from desktop.workbench import model_results as results

    dropped = results.dropped_pairs(ranking)
    lines = results.ranking_sheet(ranking).lines()
    lines += [f"not listed: {dropped}"] if dropped else []
    return lines + [f"note: {warning}" for warning in result["warnings"]]


def _fit_lines(
    result: JSON, selection: Selection, choice: FactorChoice, forms: ResultSheet | None
) -> list[str]:
    from desktop.workbench import model_results as results

    fit, among = choice.fit, choice if choice.tried > 1 else None
    lines = [*result["sentences"], *results.fit_summary(fit, len(selection.excluded), among)]
    lines += [fit.response.note] if fit.response.note else []
    lines += results.parameter_sheet(fit).lines()
    lines += forms.lines() if forms is not None else []
    if odd := results.standing_out(fit, selection):
        from desktop.core.factor_intervals import VERDICTS

        lines += [f"rows that stand out: {odd}", f"note: {VERDICTS}"]
    return lines + [f"note: {warning}" for warning in result["warnings"]]


def main(options: argparse.Namespace) -> int:
    if (options.table is None) == (options.phases is None):
        print("phasewright model: name a TABLE of run times, or --phases TRACE...", file=sys.stderr)
        return USAGE
    if options.phases is not None:
        if options.system and len(options.system) != len(options.phases):
            print("phasewright model: name one --system for each --phases", file=sys.stderr)
            return USAGE
        return _phases(options)
    with terminal_progress() as progress:
        result, lines, selection = run(options, progress)
    rows = result["pairs" if options.all_pairs else "parameters"]
    show(
        options,
        result,
        lambda: [{k: " ".join(v) if k == "functions" else v for k, v in row.items()} for row in rows],
        lambda: lines,
    )
    for row in selection.excluded:
        print(f"phasewright: {options.table}: line {row.line} is excluded: {row.reason}", file=sys.stderr)
    return LOSSY if selection.excluded else DONE


def _phases(options: argparse.Namespace) -> int:
    """JSON: ``runs`` (run, p), ``matched``, ``sentences``, ``warnings``, ``first_to_stop``, ``phases`` as
    of `phase_scaling_words.laws`, ``predict`` as of its `predictions`, the last three of the first system.
    Of several also ``joint``, ``joint_chance``, ``speeds``, ``systems`` (each with the last three)."""
    from desktop.core.phase_model import PhaseModel
    from desktop.core.phase_systems import model_runs
    from desktop.data import phase_scaling_words as scaling_words
    from desktop.data.phase_scaling import Traced, gather

    groups = options.phases
    names = options.system or (
        [""] if len(groups) == 1 else [f"system {k}" for k in range(1, len(groups) + 1)]
    )
    traced = [Traced(path, system=name) for name, group in zip(names, groups, strict=True) for path in group]
    with terminal_progress() as progress:
        gathered = gather(traced, progress)
        runs = gathered.runs
        model = model_runs(runs)
    at = _numbers_of(options.at) if options.at else scaling_words.further(model)
    result: JSON = {
        "runs": [
            {"run": name, "p": p, "breaks_s": list(ends)}
            for name, p, ends in zip(runs.runs, runs.p.tolist(), gathered.breaks, strict=True)
        ],
        "matched": gathered.matched,
        "sentences": list(scaling_words.sentences(model)),
        "warnings": list(scaling_words.warnings(model, at)),
    }  # fmt: skip
    each = [
        {
            "first_to_stop": None if (first := group.first_to_stop) is None else first + 1,
            "phases": scaling_words.laws(group),
            "predict": scaling_words.predictions(group, at),
        }
        for _, group in scaling_words.by_system(model)
    ]  # fmt: skip
    result |= each[0]
    if not isinstance(model, PhaseModel):
        for row, name in zip(result["runs"], gathered.runs.systems, strict=True):
            row["system"] = name
        result |= {
            "joint": model.joint,
            "joint_chance": model.chance,
            "speeds": model.speeds(),
            "systems": [{"system": n} | one for (n, _), one in zip(model.fitted, each, strict=True)],
        }
    show(
        options,
        result,
        lambda: [
            {str(k): v for k, v in row.items()} for row in scaling_words.table(model, at).to_dict("records")
        ],
        lambda: [*scaling_words.words(model, at), "", f"{len(gathered.runs.runs)} runs; {gathered.matched}"],
    )
    return DONE


def _numbers_of(text: str) -> list[float]:
    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(1 <= p < 1e9 for p in numbers):
        raise ValueError(f"--at {text}: write numbers of processors, such as 128,256")
    return numbers

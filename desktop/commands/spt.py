"""``phasewright spt``: designs of artificial delays, their effects, and what scales."""

from __future__ import annotations

import argparse
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from desktop import stopping
from desktop.commands import spt_compare, spt_confirm, spt_new, spt_report
from desktop.commands.asked import adder, agree, pairs
from desktop.commands.terminal import DONE, LOSSY, picked, show, terminal_progress
from desktop.errors import DesktopError
from desktop.progress import Cancelled

if TYPE_CHECKING:
    from desktop.core.array_search import ArraySearch
    from desktop.core.design import Design
    from desktop.core.effects import Effects
    from desktop.data.answer import SptAnswer
    from desktop.data.experiment import Experiment, Factor
    from desktop.data.runs import RunTable

KINDS = ("regular", "plackett-burman", "orthogonal-array")
ERRORS = ("replicates", "interactions", "lenth")
TABLES = ("runs", "array", "delays")
THRESHOLDS = ("t", "2", "3", "lenth", "lenth-simultaneous", "familywise", "fdr")
INNER = ("each", "mean", "median", "minimum")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parts = parser.add_subparsers(title="what to do", metavar="PART", required=True)

    def part(name: str, function: Any, text: str) -> Any:
        sub = parts.add_parser(name, help=text, description=text)
        sub.set_defaults(part=function)
        add = adder(sub)
        add("--json", "one JSON object on standard output")
        return add

    spt_new.add_parts(part)
    add = part("design", design, "which treatments to run")
    add("--factors K|NAMES", "how many, or their names with commas", required=True)
    add("--runs N", "treatments", type=int)
    add("--resolution IV", "at least; gives the smallest design")
    add("--generators E=ABC,F=-BCD", "instead of those of minimum aberration")
    add("--kind", choices=KINDS, default="regular")
    add("--array L25", "which orthogonal array")
    add("--fold FACTOR", "mirror all signs, or one factor's", nargs="?", const="")
    add("--offers", "list the designs that fit instead of making one")
    add("--recommend", "the fewest trials that show an effect of --effect, and why")
    add("--effect X", "to be seen, in the unit of SIGMA; else a share of the run (default 2 %%)", type=float)
    add("--run-s S", "seconds of one run: says how long it all takes", type=float)
    add("--replicates R", type=int, default=1)
    add("--seed SEED", "of the random order (default: drawn, and shown)", type=int)
    add("--sigma SIGMA", "standard deviation of one trial: says which effects show", type=float)
    add("--sigma-df DF", "degrees of freedom of SIGMA: its upper bound counts", type=float)
    add("-o --output RUNS.csv", "write the run sheet", type=Path)

    add = part("effects", effects, "what every delay does to the response")
    add("runs RUNS.csv", "or the folder of an experiment that was run", type=Path)
    add("--table", "at two levels, an array, sizes of the delay (default: as it says)", choices=TABLES)
    add("--response NAME")
    add("--factors NAMES", "columns that are factors (default: those of two levels)")
    add("--half", "half effects, the coefficients of the model")
    add("--error", "where the standard error comes from", choices=ERRORS)
    add("--terms A,B,A:B", "only these (default: all that can be told apart)")
    add("--generators E=ABC", "checked against the runs")
    add("--threshold", "what marks an effect", choices=THRESHOLDS, default="t")
    add("--planned", "--terms were chosen before the effects were seen")
    add("--transform POWER", "of the response; log for its logarithm", default="1")
    add("--covariate NAME", "what was noted with the trials and is taken off, such as clock_mhz", default="")
    add("--inner", "repeats of a treatment in one replicate", choices=INNER, default="each")
    add("--no-blocks", "replicates are no blocks")
    add("--where COLUMN=VALUE", "only these rows", action="append", default=[])
    add("--csv", "comma-separated rows on standard output")

    add = part("run", run, "build and run an experiment; every trial is kept as it ends")
    add("experiment EXPERIMENT.toml", type=Path)
    add("--resume", "go on where it was left (it does so anyway)")
    add("--yes", "the commands have been read and may be run")
    add("--check", "check and estimate only")
    add("--pilot", "choose the size of the delay, or go on with that")
    add("--take", "with --pilot: write the size into the description")
    add("--exclude ORDER", "mark a trial as an outlier, with --reason", type=int)
    add("--reason TEXT", default="")
    add("--job-script OUT.sh", "write a job array instead of running", type=Path)
    add("--collect", "add the results of a job array to the journal")
    add("--trial ORDER", "one trial of a job array", type=int)

    spt_confirm.add_parts(part)
    spt_compare.add_parts(part)
    spt_report.add_parts(part)
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


# --- running ---


def run(options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Run an experiment, or one of the steps around it."""
    from desktop.data import experiment as experiments
    from desktop.data import jobs
    from desktop.data.runner import Runner, shown_commands

    experiment = experiments.read_experiment(options.experiment)
    if options.exclude is not None:
        experiments.exclude(experiment, options.exclude, options.reason)
        return _stands(experiment)
    if options.job_script:
        jobs.write_script(experiment, options.job_script)
        return {"script": str(options.job_script)}, [
            f"the job array is in {options.job_script}; read it first"
        ]
    if options.collect:
        jobs.collect(experiment)
        return _stands(experiment)
    if options.pilot:
        return _piloted(experiment, options)
    agree(options, experiment.folder, shown_commands(experiment))
    if options.trial is not None:
        jobs.run_one(experiment, options.trial)
        return {"trial": options.trial}, [f"trial {options.trial} is done"]
    runner, stopped = Runner(experiment), False
    with terminal_progress() as progress:
        try:
            done = experiments.state_of(experiment, experiments.read_journal(experiment))
            if done.finished and not options.check:
                return _stands(experiment)
            runner.check(progress)
            estimate = runner.estimate(progress=progress)
            if options.check:
                from desktop.core.delay import delay_unit_s

                unit = delay_unit_s()
                result = {
                    "delay_unit_s": unit,
                    **picked(
                        estimate, "run_s sigma_s trials_left=left left_s replicates_for_a_tenth=replicates"
                    ),
                }
                return result, [
                    f"one unperturbed run takes {estimate.run_s:.4g} s (standard deviation "
                    f"{estimate.sigma_s:.3g} s), {estimate.left} trials about {estimate.left_s:.4g} s; "
                    f"{estimate.replicates} replicates show an effect of a tenth of the run; one unit of "
                    f"delay takes {1e9 * unit:.3g} ns here"
                ]
            runner.run(progress)
        except Cancelled:
            stopped = True
    result, lines = _stands(experiment)
    if stopped:
        print("stopped; the same command goes on from here", file=sys.stderr)
        result["stopped"] = True
    return result, lines


def _piloted(experiment: Experiment, options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """The size of the delay at which every place shows."""
    from desktop.data import pilot as pilots
    from desktop.data.runner import Runner

    agree(options, experiment.folder, pilots.pilot_commands(experiment))
    runner = Runner(experiment)
    file = experiment.folder / pilots.PILOT
    with terminal_progress() as progress:
        try:
            found = pilots.run_pilot(runner, progress)
        except Cancelled:
            raise Cancelled(f"the same command goes on from here, with the runs in {file}") from None
    rows = pilots.told(found)
    result = {"pilot": str(file), "base": found.base, "largest": found.largest, "places": rows,
              "size": found.size or None, "reason": found.reason}  # fmt: skip
    lines = [f"runs without a delay give {found.base:.4g} {found.unit}, kept in {file}",
             f"{'place':<16}{'shows at':>10}{'effect':>12}{'std. error':>12}{'percent':>9}"]  # fmt: skip
    for place, row in zip(found.places, rows, strict=True):
        at = place.delay or "at none"
        numbers = f"{place.effect:>12.4g}{place.se:>12.2g}{row['percent_of_unperturbed']:>8.1f}%"
        lines.append(f"{place.factor[:15]:<16}{at:>10}{numbers if place.delay else ''}")
    suggested = f"suggested: {found.size} units, because " if found.size else ""
    lines.append(suggested + found.reason)
    result["taken"] = bool(found.size and options.take)
    if result["taken"]:
        from desktop.data.experiment import write_experiment

        write_experiment(pilots.sized(experiment, found.size))
        lines.append(f"taken: the description says {found.size} units now")
    elif found.size:
        lines.append(f"next: write this size into {experiment.folder / 'experiment.toml'}, in place of the "
                     "one that stands there (with --take the pilot does so)")  # fmt: skip
    return result, lines


def _stands(experiment: Experiment) -> tuple[dict[str, Any], list[str]]:
    """Where an experiment stands, and its effects as far as they can be seen."""
    from desktop.core.effects import analyse
    from desktop.data import experiment as experiments

    done = experiments.read_journal(experiment)
    state = experiments.state_of(experiment, done)
    lost = sorted(state.given_up - set(state.good))
    result: dict[str, Any] = {
        "planned": state.planned,
        "finished": len(state.good),
        "complete": state.finished,
        "failed_attempts": sum(trial.status == "failed" for trial in done),
        "disturbed": sum(trial.status == "disturbed" for trial in state.good.values()),
        "given_up": [{"replicate": r + 1, "treatment": t + 1} for r, t in lost],
        "seeds": list(experiment.sheet().seeds),
        "journal": str(experiment.folder / experiments.JOURNAL),
        "effects": None,
    }
    lines = [f"{len(state.good)} of {state.planned} trials are done, kept in {result['journal']}"]
    if experiment.plan.fold_after:
        lines.append(
            f"the mirror image follows after {experiment.plan.fold_after} replicates of the first half, in a "
            f"random order from seed {result['seeds'][-1]}"
        )
    if result["disturbed"]:
        lines.append(f"during {result['disturbed']} of them others kept the machine busy")
    lines += [f"given up after {experiments.ATTEMPTS} attempts: replicate {r + 1}, treatment {t + 1}"
              for r, t in lost]  # fmt: skip
    response = experiment.responses[0].name
    try:
        if experiment.plan.kind == "orthogonal-array":
            best = experiments.search(experiment)
            result["effects"] = searched(best) | {"response": response}
            return result, lines + _told_ranking(best, response)
        found = analyse(experiments.to_trials(experiment))
    except (ValueError, DesktopError) as error:
        return result, [*lines, f"no effects yet: {error}"]
    ranking = ranks(found, False, experiment.factors)
    said = spt_confirm.answered(found, experiment, waiting=state.planned - len(state.good) - len(lost))
    result["effects"] = analysed(found, False) | {"response": response, "ranks": ranking}
    result["answer"] = spt_confirm.plain_answer(said)
    return result, [said.text, *lines, *_told_effects(found, False, response, experiment.factors)]


# --- design ---


def design(options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """The design asked for: as one plain object, and as a person reads it."""
    from desktop.core import design as designs

    names = (
        designs.names_for(int(options.factors))
        if options.factors.strip().removeprefix("-").isdecimal()
        else tuple(name.strip() for name in options.factors.split(","))
    )
    wanted = designs.resolution_of(options.resolution) if options.resolution else 3
    if options.replicates < 1:
        raise ValueError("at least one replicate has to be run")
    if options.recommend:
        return _recommended(names, wanted if options.resolution else 4, options)
    if options.offers:
        return _offers(names, options.runs, wanted, options)
    made = _made(options, names, wanted)
    if options.fold is not None:
        made = designs.foldover(made, options.fold or None)
    seed = secrets.randbelow(1 << 31) if options.seed is None else options.seed
    sheet = designs.run_sheet(made, options.replicates, seed)
    if options.output:
        from desktop.data.runs import write_sheet

        write_sheet(options.output, made, sheet)
    result = described(made)
    result |= {
        "replicates": options.replicates,
        "order": [int(t) + 1 for t in sheet.treatment],
        "seed": seed,
        "detectable_effect": _detectable(options, made),
        "power": _power_of(options, made),
    }
    return result, _told_design(made, result, options)


def _made(options: argparse.Namespace, names: tuple[str, ...], wanted: int) -> Design:
    from desktop.core import design as designs

    if options.kind == "plackett-burman":
        return designs.plackett_burman(names, options.runs)
    if options.kind == "orthogonal-array":
        fitting = (
            name
            for name, (runs, sizes) in designs.ARRAYS.items()
            if len(sizes) >= len(names) and (options.runs is None or runs == options.runs) and max(sizes) > 2
        )
        array = options.array or next(fitting, None)
        if array is None:
            raise ValueError(f"no array of several levels holds {len(names)} factors in {options.runs} runs")
        return designs.orthogonal_array(array, names)
    if options.generators:
        return designs.regular(names, options.runs, options.generators)
    runs = options.runs
    if runs is None:
        runs = designs.smallest_runs(len(names), wanted) if options.resolution else None
    made = designs.regular(names, runs)
    if options.resolution and made.resolution and made.resolution < wanted:
        raise ValueError(
            f"{len(names)} factors in {runs} runs have resolution {designs.roman(made.resolution)}; "
            f"resolution {designs.roman(wanted)} needs {designs.smallest_runs(len(names), wanted)} runs"
        )
    return made


def described(made: Design) -> dict[str, Any]:
    """The keys of the contract that follow from the design."""
    from desktop.core.design import roman

    mains, pairs = made.clear()
    words = made.defining_relation()
    return {
        "kind": made.kind,
        "factors": list(made.factors),
        "runs": made.levels.tolist(),
        "blocks": (made.blocks + 1).tolist(),
        "generators": list(made.generators),
        "defining_relation": [("-" if sign < 0 else "") + made.word(members) for sign, members in words],
        "resolution": roman(made.resolution),
        "word_length_pattern": list(made.word_lengths()[2:]),
        "minimum_aberration": made.minimum_aberration,
        "aliases": [[made.term(members) for members in same] for same in made.aliases()],
        "clear_main_effects": [made.factors[j] for j in mains],
        "clear_two_factor_interactions": [made.term(pair) for pair in pairs],
        "unperturbed_run": made.unperturbed + 1 if made.unperturbed >= 0 else None,
        "note": made.note,
    }


def _detectable(options: argparse.Namespace, made: Design) -> float | None:
    from desktop.core.power import detectable

    if options.sigma is None:
        return None
    size = detectable(options.sigma, made.runs, options.replicates)
    return size if size == size else None


def _power_of(options: argparse.Namespace, made: Design) -> dict[str, Any] | None:
    """Replicates that find an effect, and the chance with fewer and more."""
    from desktop.core.power import power_curve, replicates_to_find, sigma_bound

    if options.sigma is None or options.effect is None:
        return None
    df = float("inf") if options.sigma_df is None else options.sigma_df
    if not (options.sigma > 0 and df > 0):
        raise ValueError("--sigma and --sigma-df have to be positive")
    wanted = replicates_to_find(options.sigma, options.effect, made.runs, df)
    counts = sorted({2, 3, 4, 6, 8, max(2, wanted // 2), max(2, wanted - 1), wanted, 2 * wanted})
    found, bound = power_curve(options.effect, options.sigma, made.runs, counts, df)
    return {
        "effect": options.effect,
        "sigma_bound": sigma_bound(options.sigma, df),
        "replicates": wanted,
        "curve": [
            {"replicates": r, "power": float(a), "power_at_bound": float(b)}
            for r, a, b in zip(counts, found, bound, strict=True)
        ],
    }


def _recommended(
    names: tuple[str, ...], wanted: int, options: argparse.Namespace
) -> tuple[dict[str, Any], list[str]]:
    from desktop.core.recommend import EFFECT, NOISE, recommend

    if options.runs:
        raise ValueError("--recommend chooses the number of runs: leave --runs out, or name it without")
    # Without a time of the run, sizes are shares of it.
    sigma, run_s = options.sigma or NOISE, options.run_s or float("nan")
    base = run_s if options.sigma and options.run_s else 1.0
    found = recommend(len(names), sigma, options.effect or EFFECT * base, wanted)
    text = found.text(base, run_s)
    return picked(found, "runs replicates resolution sees noise effect enough trials") | {
        "factors": list(names), "text": text, "seconds": found.trials * run_s,
    }, [text]  # fmt: skip


def _offers(
    names: tuple[str, ...], budget: int | None, wanted: int, options: argparse.Namespace
) -> tuple[dict[str, Any], list[str]]:
    from desktop.core import design as designs
    from desktop.core.recommend import meaning

    found = designs.offers(names, budget, wanted)
    if not found:
        raise ValueError(
            f"no design of {len(names)} factors has resolution {designs.roman(wanted)} in {budget} runs; "
            f"it needs {designs.smallest_runs(len(names), wanted)}"
        )
    rows: list[dict[str, Any]] = [
        {
            "kind": offer.kind,
            "runs": offer.runs,
            "resolution": designs.roman(offer.resolution),
            "word_length_pattern": list(offer.word_lengths[2:]),
            "clear_main_effects": offer.clear_mains,
            "clear_two_factor_interactions": offer.clear_pairs,
            "generators": list(offer.generators),
            "minimum_aberration": offer.minimum_aberration,
            "seconds": offer.runs * options.replicates * options.run_s if options.run_s else None,
            "meaning": meaning(offer.resolution)
            if offer.resolution or offer.kind != "plackett-burman"
            else "",
        }
        for offer in found
    ]
    time = f"{'time':>10}" if options.run_s else ""
    lines = [
        f"{'runs':>5}  {'kind':<16}{'resolution':<12}{'clear mains':>12}{'clear pairs':>12}{time}  A3, A4"
    ]
    for row in rows:
        pattern = ", ".join(map(str, row["word_length_pattern"][:4])) or "-"
        took = f"{row['seconds'] / 60:>6.1f} min" if options.run_s else ""
        lines.append(
            f"{row['runs']:>5}  {row['kind']:<16}{row['resolution']:<12}{row['clear_main_effects']:>12}"
            f"{row['clear_two_factor_interactions']:>12}{took}  {pattern}"
        )
    words = {row["resolution"]: row["meaning"] for row in rows if row["meaning"]}
    lines += [f"{word:<5}{text}" for word, text in words.items()]
    return {"factors": list(names), "designs": rows}, lines


def _told_design(made: Design, result: dict[str, Any], options: argparse.Namespace) -> list[str]:
    from desktop.core.recommend import meaning

    lines = [f"{made.kind} design of {len(made.factors)} factors in {made.runs} runs, "
             f"resolution {result['resolution']}, seed {result['seed']}"]  # fmt: skip
    if made.regular:
        lines.append(meaning(made.resolution))
    if made.regular and made.generators:
        lines.append("generators        " + " ".join(made.generators))
        words = result["defining_relation"]
        shown = " = ".join(words[:12]) + (f" = ... ({len(words)} words)" if len(words) > 12 else "")
        lines.append(f"defining relation I = {shown}")
        lengths = [f"A{i} = {n}" for i, n in enumerate(result["word_length_pattern"], 3) if n]
        pattern = ", ".join(lengths[:8]) + (", ..." if len(lengths) > 8 else "")
        least = ", the least there is" if made.minimum_aberration else ""
        lines.append(f"word lengths      {pattern}{least}")
        lines.append("clear             " + (", ".join(result["clear_main_effects"]) or "no main effect"))
        pairs = result["clear_two_factor_interactions"]
        lines.append("clear pairs       " + (", ".join(pairs[:20]) or "none"))
        for same in result["aliases"][:60]:
            lines.append("aliases           " + " = ".join(same))
    if made.note:
        lines.append(f"note: {made.note}")
    if result["detectable_effect"] is not None:
        lines.append(
            f"an effect of {result['detectable_effect']:.4g} is seen with a chance of 90 % "
            f"({options.replicates} replicates, standard deviation {options.sigma:g})"
        )
    power = result["power"]
    if power is not None:
        lines.append(
            f"an effect of {power['effect']:g} takes {power['replicates']} replicates to be found with 90 % "
            f"(standard deviation at most {power['sigma_bound']:.4g})"
        )
        lines += [f"{one['replicates']:>6} replicates find it with {100 * one['power_at_bound']:.0f} %"
                  for one in power["curve"]]  # fmt: skip
    if options.output:
        lines.append(f"{len(result['order'])} trials in random order are in {options.output}")
        return lines
    width = max(4, *(len(name) for name in made.factors))
    lines.append("run  " + " ".join(f"{name:>{width}}" for name in made.factors))
    for number, row in enumerate(made.levels, 1):
        signs = (str(v) if made.levels.min() >= 0 else "+" if v > 0 else "-" for v in row)
        lines.append(f"{number:>3}  " + " ".join(f"{sign:>{width}}" for sign in signs))
    if len(result["order"]) <= 256:
        lines.append("order " + " ".join(map(str, result["order"])))
    return lines


# --- effects ---


def effects(options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Effects of the runs of a file; of an array the ranking of its runs; of sizes of the delay, the effects
    for each unit of delay."""
    from desktop.core.design import members_of
    from desktop.core.effects import analyse, condensed, missing
    from desktop.data.runs import kind_of, read_runs

    if options.runs.is_dir():
        options.runs /= "trials.csv"  # of an experiment
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
    found = analyse(
        condensed(table.data, options.inner),
        error=options.error,
        terms=terms,
        threshold=options.threshold,
        blocks=not options.no_blocks,
        planned=options.planned,
        transform=_power(options.transform),
        covariate=options.covariate,
    )
    result = analysed(found, options.half)
    result |= {"response": table.response, "missing_runs": list(missing(table.data))}
    described_as = _description_of(options.runs)
    factors = described_as.factors if described_as is not None else tuple(table.settings.values())
    result["ranks"] = ranks(found, options.half, factors)
    said = _answered(found, described_as, table)
    result["answer"] = spt_confirm.plain_answer(said)
    return result, [said.text, *_told_effects(found, options.half, table.response, factors)]


def _description_of(runs: Path) -> Experiment | None:
    """The experiment of which this is the journal."""
    from desktop.data.experiment import DESCRIPTION, JOURNAL, read_experiment

    if runs.name == JOURNAL and (runs.parent / DESCRIPTION).is_file():
        return read_experiment(runs.parent)
    return None


def _answered(found: Effects, experiment: Experiment | None, table: RunTable) -> SptAnswer:
    from desktop.data.answer import answer

    response = table.response
    if experiment is not None and response in [r.name for r in experiment.responses]:
        return spt_confirm.answered(found, experiment, response)
    plain = response.split(" ")[0]
    unit = "s" if plain.endswith("_s") or "_s_" in plain or plain in ("wall", "cpu", "seconds") else ""
    return answer(found, unit, table.settings, response=plain)


def _power(text: str) -> float:
    try:
        power = 0.0 if text == "log" else float(text)
    except ValueError:
        power = float("nan")
    if not -2 <= power <= 2:
        raise ValueError(f"--transform takes log or a power from -2 to 2, not {text!r}")
    return power


def _ranking(options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """NISTIR 5131, table 4."""
    from desktop.core.array_search import array_search_of
    from desktop.core.effects import missing
    from desktop.data.runs import read_array

    names = [n.strip() for n in options.factors.split(",")] if options.factors else None
    table = read_array(
        options.runs, response=options.response, factors=names, where=pairs(options.where, "COLUMN=VALUE")
    )
    found = array_search_of(table.data)
    result = searched(found) | {"response": table.response, "missing_runs": list(missing(table.data))}
    return result, _told_ranking(found, table.response)


def searched(found: ArraySearch) -> dict[str, Any]:
    """An array has no effects but a ranking."""
    return {
        "table": "array",
        "effects": [],
        "ranking": [
            {
                "rank": place + 1,
                "run": name,
                "levels": dict(zip(found.factors, found.settings[place], strict=True)),
                "mean": found.mean[place],
                "trials": found.count[place],
                "percent_of_unperturbed": found.percent(place),
            }
            for place, name in enumerate(found.names)
        ],
        "level_means": [picked(m, "factor level mean trials=runs") for m in found.levels],
        "spread": dict(zip(found.factors, found.spread, strict=True)),
        "notes": _gaps(found),
    }


def _gaps(found: ArraySearch) -> list[str]:
    text = f"{found.unseen} settings have no response, so level means are of different runs"
    return [text] if found.unseen else []


def _told_ranking(found: ArraySearch, response: str) -> list[str]:
    width = max(6, *(len(name) for name in found.factors))
    heads = " ".join(f"{name:>{width}}" for name in found.factors)
    lines = [
        f"{len(found.order)} settings by {response}, the smallest first",
        f"rank  {'run':<8}{heads}{'mean':>12}{'of base':>10}",
    ]
    for place, name in enumerate(found.names):
        levels = " ".join(f"{level:>{width}g}" for level in found.settings[place])
        share = f"{found.percent(place):.1f}%" if found.base >= 0 else ""
        lines.append(f"{place + 1:>4}  {name:<8}{levels}{found.mean[place]:>12.6g}{share:>10}")
    lines.append("mean response at every level:")
    for name in found.factors:
        means = ", ".join(f"{m.level:g}: {m.mean:.5g}" for m in found.levels if m.factor == name)
        lines.append(f"      {name:<12}{means}")
    return lines + [f"note: {note}" for note in _gaps(found)]


def rows(result: dict[str, Any]) -> list[dict[str, Any]]:
    """What ``--csv`` prints: effects, settings of an array, or effects at every size of the delay."""
    if result.get("table") == "array":
        return [
            {k: v for k, v in (row | row["levels"]).items() if k != "levels"} for row in result["ranking"]
        ]
    if result.get("table") == "delays":
        many = ("values", "se", "per_unit", "per_unit_se")
        return [
            {"term": one["term"], "delay": delay, **{name: one[name][k] for name in many}}
            for one in result["effects"]
            for k, delay in enumerate(one["delays"])
        ]
    return [row | {"aliases": " ".join(row["aliases"])} for row in result["effects"]]


def _doses(options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """NISTIR 5131, figure 3."""
    from desktop.workbench.comparing import doses, tables_in

    tables = tables_in(options.runs, options.response)
    if not any(table.delay for table in tables):
        raise ValueError(f"{options.runs.name} holds effects without a column `delay`, and no trials")
    found = doses(tables)
    result: dict[str, Any] = {
        "table": "delays",
        "convention": "effect",
        "effects": [
            {
                "term": name,
                "delays": one.delay.tolist(),
                "values": one.effect.tolist(),
                "se": one.se.tolist(),
                "per_unit": one.per_unit.tolist(),
                "per_unit_se": one.per_unit_se.tolist(),
                "linear": one.linear,
                "p": one.p,
                "warning": one.warning,
            }
            for name, one in found
        ],
    }
    lines = ["effect against the size of the delay; per unit, it is level where the linear model holds",
             f"{'term':<16}{'delay':>10}{'effect':>12}{'std. error':>12}{'per unit':>12}"]  # fmt: skip
    for name, one in found:
        for k, delay in enumerate(one.delay):
            lines.append(
                f"{name[:15]:<16}{delay:>10g}{one.effect[k]:>12.5g}{one.se[k]:>12.3g}{one.per_unit[k]:>12.4g}"
            )
        if one.warning:
            lines.append(f"note: {name}: {one.warning}")
    return result, lines


def _check_generators(text: str, factors: tuple[str, ...], x: Any) -> None:
    from desktop.core.design import members_of

    for generator in text.replace(",", " ").split():
        left, _, right = generator.partition("=")
        sign = -1.0 if right.startswith("-") else 1.0
        one, members = members_of(left, factors), members_of(right.lstrip("+-"), factors)
        if len(one) != 1 or not members:
            raise ValueError(f"{generator!r} is no generator, write for example E=ABC or F=-BCD")
        if (x[:, one[0]] != sign * x[:, list(members)].prod(axis=1)).any():
            raise ValueError(f"the runs do not follow the generator {generator}")


def analysed(found: Effects, half: bool) -> dict[str, Any]:
    """The keys of the contract."""
    scale = 0.5 if half else 1.0
    lenth = found.lenth
    se = next((e.se for e in found.effects if e.se == e.se), float("nan"))
    return {
        "convention": "half_effect" if half else "effect",
        "mean": found.mean,
        "mean_se": found.mean_se,
        "effects": [
            {
                "term": e.term,
                "aliases": list(e.aliases),
                "value": scale * e.value,
                "se": scale * e.se,
                **picked(e, "df t p significant"),
                "percent_of_unperturbed": scale * found.percent(e),
                "percent_interval": [scale * e.share_low, scale * e.share_high],
                "interval": [scale * e.low, scale * e.high],
            }
            for e in found.effects
        ],
        "pooled_variance": found.variance,
        "error": {
            "method": found.error,
            "se": scale * se,
            "df": lenth.df if found.error == "lenth" and lenth is not None else found.df,
        },
        "lenth": None
        if lenth is None
        else {
            "s0": scale * lenth.s0,
            "pse": scale * lenth.pse,
            "df": lenth.df,
            "me": scale * lenth.me,
            "sme": scale * lenth.sme,
            "simulated_me": scale * lenth.margin,
            "simulated_sme": scale * lenth.simultaneous,
        },
        "half_normal": [
            {"term": e.term, "quantile": e.half_normal, "value": scale * abs(e.value)}
            for e in sorted(found.effects, key=lambda e: e.half_normal)
        ],
        "suspect_runs": [picked(s, "run=label response=value expected t limit") for s in found.suspects],
        "unperturbed": found.unperturbed,
        "unperturbed_measured": found.unperturbed_measured,
        "anova": [picked(r, "source ss df ms f p") for r in found.anova],
        "r2": found.r2,
        "r2_adjusted": found.r2_adjusted,
        "threshold": found.threshold,
        "limit": picked(found.limit, "kind value level df count some"),
        "transform": found.transform,
        "covariate_slope": None
        if found.slope is None
        else dict(zip(("slope", "se"), found.slope, strict=True)),
        "response_power": _powers(found),
        "notes": list(found.notes),
    }


def _powers(found: Effects) -> dict[str, Any] | None:
    """Which power of the response fits; None where nothing tells."""
    from desktop.core.response_power import powers

    try:
        return picked(powers(found.trials, found.error == "replicates"), "power low high suggested text")
    except ValueError:
        return None


def ranks(found: Effects, half: bool, factors: Sequence[Factor] = ()) -> list[dict[str, Any]]:
    """Main effects from the largest down (NISTIR 5139, table 3), as step 4 of the window has them: those
    within one standard error share a rank, and those that are not above zero have none. `factors`: where they
    are."""
    from desktop.core.effects import ranked

    places = {factor.name: factor for factor in factors}
    se = next((e.se for e in found.effects if e.se == e.se), 0.0)
    rows = []
    for line in ranked(found, tie=se):
        e, place = line.effect, places.get(line.effect.term)
        scale = 0.5 if half else 1.0
        row: dict[str, Any] = {
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


#: Why a main effect has no rank.
_RANKLESS = {
    "helps": "the delay makes the program faster",
    "not distinguishable from zero": "not distinguishable from zero, so without a rank",
    "no error estimate": "no error estimate, so without a rank",
}


def _told_effects(found: Effects, half: bool, response: str, factors: Sequence[Factor] = ()) -> list[str]:
    scale, word = (0.5, "half effect") if half else (1.0, "effect")
    lines = [
        f"{len(found.trials.y)} trials, response {response}, mean {found.mean:.6g}, error by {found.error}; "
        f"* marks more than {found.threshold}"
    ]
    lines.append(f"{'term':<24}{word:>14}{'std. error':>12}{'t':>9}{'percent':>9}   aliases")
    # The largest first; what cannot be told comes last.
    for e in sorted(found.effects, key=lambda e: -abs(e.value) if e.estimable else 1.0):
        mark = "*" if e.significant else " "
        lines.append(
            f"{e.term[:23]:<24}{scale * e.value:>13.5g}{mark}{scale * e.se:>12.4g}{e.t:>9.2f}"
            f"{scale * found.percent(e):>8.1f}%   {', '.join(e.aliases)}".rstrip()
        )
    lines.append(f"SPT rank, by {word}; those within one standard error share a rank:")
    mains = ranks(found, half, factors)
    for row in mains:
        rank = f"{row['rank']:>4}" if row["rank"] else "   -"
        place = "{file}:{line}  {routine}  {construct}".format(**row) if row.get("file") else ""
        meaning = "- {minus}, + {plus}".format(**row) if row.get("plus") else ""
        where = "; ".join(filter(None, (place, meaning)))
        number = f"{row['value']:>13.5g} ± {row['se']:<9.3g}{row['percent_of_unperturbed']:>7.1f}%"
        lines.append(f"{rank}  {row['term']:<20}{number}   {where}".rstrip())
    settings = {one.name for one in factors if not one.is_delay}
    for row in mains:
        if row["verdict"] == "helps" and row["term"] in settings:
            lines.append(f"      {row['term']}: {row['plus']} is faster than {row['minus']}")
    for verdict, text in _RANKLESS.items():
        without = [
            row["term"] for row in mains
            if row["verdict"] == verdict and not (verdict == "helps" and row["term"] in settings)
        ]  # fmt: skip
        if without:
            lines.append(f"      {', '.join(without)}: {text}")
    for s in found.suspects:
        lines.append(f"suspect: run {s.label} gave {s.value:.5g}, expected {s.expected:.5g} (t = {s.t:.1f})")
    power = _powers(found)
    if power is not None and power["suggested"] not in (None, found.transform):
        word = "log" if power["suggested"] == 0 else f"{power['suggested']:g}"
        lines.append(f"note: {power['text']} (--transform {word})")
    return lines + [f"note: {note}" for note in found.notes]


# --- scaling ---


def scaling(options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Two tables at two numbers of processors, or one factor and the scale."""
    if options.small or options.large:
        return _two_tables(options)
    if not (options.runs and options.factor and options.scale):
        raise ValueError(
            "name RUNS.csv with --factor and --scale, or --small, --small-p, --large and --large-p"
        )
    return _one_factor(options)


def _two_tables(options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    from desktop.core.effect_tables import scaling as combined

    if not (options.small and options.large and options.small_p and options.large_p):
        raise ValueError("two tables need --small, --small-p, --large and --large-p")
    small, small_df = _effects_of(options.small, options.small_p, options)
    large, large_df = _effects_of(options.large, options.large_p, options)
    rows = combined(small, options.small_p, large, options.large_p, (small_df, large_df))
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
        f"{'term':<16}{'A':>10}{'B':>10}{'middle':>10}{'(B-A)/2':>10}{'se':>9}{'ratio':>9}{'exponent':>10}"
        "   95 % interval",
    ]
    for r in rows:
        lines.append(
            f"{r.term[:15]:<16}{r.small:>10.4g}{r.large:>10.4g}{r.middle:>10.4g}{r.interaction:>10.4g}"
            f"{r.se:>9.3g}{r.ratio:>9.3f}{r.exponent:>10.3f}   {r.exponent_low:.3f} to {r.exponent_high:.3f}"
        )
    return result, lines


def _effects_of(
    path: Path, p: float, options: argparse.Namespace
) -> tuple[dict[str, tuple[float, float]], float]:
    """Those at `p` processors, where the table tells them apart, and the df of their errors."""
    from desktop.workbench.comparing import tables_in

    tables = tables_in(path, options.response)
    at = [t for t in tables if t.processors == p] or [t for t in tables if not t.processors]
    if len(at) != 1:
        raise ValueError(f"{path.name} holds {len(at)} tables of effects at {p:g} processors, one is needed")
    own = {term: effect for term, effect in at[0].effects.items() if ":" not in term}
    return own, min(at[0].df.values(), default=float("inf"))


def _one_factor(options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    from desktop.core.effect_tables import scale_test
    from desktop.core.effects import analyse
    from desktop.data.runs import read_runs

    names = [options.factor, options.scale]
    table = read_runs(
        options.runs, response=options.response, factors=names, where=pairs(options.where, "COLUMN=VALUE")
    )
    found = analyse(table.data, blocks=False)
    half = {e.members: e.half for e in found.effects}
    if not {(0,), (1,), (0, 1)} <= set(half):
        raise ValueError(
            f"the runs do not hold all four combinations of {options.factor} and {options.scale}"
        )
    se, df = options.se, float("inf")
    if se is None and found.error == "replicates":
        se, df = found.effects[0].se / 2, found.effects[0].df
    test = scale_test(found.mean, half[0,], half[1,], half[0, 1], float("nan") if se is None else se, df)
    result = {
        "factor": options.factor,
        "scale": options.scale,
        "response": table.response,
        "convention": "half_effect",
        **picked(
            test,
            "mu b_factor=factor b_scale=scale b_interaction=interaction se threshold d=excess "
            "d_se=excess_se limit verdict reason",
        ),
    }
    lines = [
        f"{options.factor} and {options.scale}, response {table.response}, half effects (se {test.se:.4g}): "
        f"mean {test.mu:.5g}, {options.factor} {test.factor:.5g}, {options.scale} {test.scale:.5g}, "
        f"both {test.interaction:.5g}",
        f"D = {test.excess:.4g} (se {test.excess_se:.3g}), threshold of the interaction {test.threshold:.4g}",
        f"verdict: {test.verdict}, {test.reason}",
    ]
    return result, lines


def main(options: argparse.Namespace) -> int:
    result, lines = options.part(options)
    show(options, result, lambda: rows(result), lambda: lines)
    if result.get("stopped"):
        return stopping.code()
    return LOSSY if result.get("missing_runs") or result.get("given_up") else DONE

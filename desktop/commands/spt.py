"""``phasewright spt``: designs of artificial delays, their effects, and what scales."""

from __future__ import annotations

import argparse
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from desktop import stopping
from desktop.commands import spt_compare, spt_confirm, spt_effects, spt_new, spt_report
from desktop.commands.run_options import adder, agree
from desktop.commands.terminal import DONE, LOSSY, Answer, picked, row_lines, show, terminal_progress
from desktop.core.plain import JSON
from desktop.core.units import trimmed
from desktop.data.columns import Column
from desktop.errors import DesktopError
from desktop.progress import Cancelled

if TYPE_CHECKING:
    from desktop.core.design import Design
    from desktop.data.experiment import Experiment

KINDS = ("regular", "plackett-burman", "orthogonal-array")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parts = parser.add_subparsers(title="what to do", metavar="PART", required=True)

    def part(name: str, function: Callable[[argparse.Namespace], Answer], text: str) -> Callable[..., None]:
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

    spt_effects.add_parts(part)
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


# --- running ---


def run(options: argparse.Namespace) -> Answer:
    """Run an experiment, or one of the steps around it."""
    from desktop.data import experiment as experiments
    from desktop.data import jobs
    from desktop.data.runner import Runner, shown_commands

    experiment = experiments.read_experiment(options.experiment)
    if options.exclude is not None:
        experiments.exclude(experiment, options.exclude, options.reason)
        return _status(experiment)
    if options.job_script:
        jobs.write_script(experiment, options.job_script)
        text = f"the job array is in {options.job_script}; read it first"
        return {"script": str(options.job_script)}, [text]
    if options.collect:
        jobs.collect(experiment)
        return _status(experiment)
    if options.pilot:
        return _piloted(experiment, options)
    agree(options, experiment.folder, shown_commands(experiment))
    if options.trial is not None:
        jobs.run_one(experiment, options.trial)
        return {"trial": options.trial}, [f"trial {options.trial} is done"]
    runner, stopped = Runner(experiment), False
    with terminal_progress() as progress:
        try:
            state = experiments.state_of(experiment, experiments.read_journal(experiment))
            if state.finished and not options.check:
                return _status(experiment)
            runner.check(progress)
            estimate = runner.estimate(progress)
            if options.check:
                from desktop.data.answer import delay_unit_of

                unit = delay_unit_of(experiment)
                keys = "run_s sigma_s trials_left=left left_s replicates_for_a_tenth=replicates"
                left_s = trimmed(estimate.left_s, 4)
                unit_words = f"; one unit of delay takes {1e9 * unit:.3g} ns here"
                return {"delay_unit_s": unit, **picked(estimate, keys)}, [
                    f"one unperturbed run takes {estimate.run_s:.4g} s (standard deviation "
                    f"{estimate.sigma_s:.3g} s), {estimate.left} trials about {left_s} s; "
                    f"{estimate.replicates} replicates show an effect of a tenth of the run"
                    f"{unit_words if experiment.program.build else ''}"
                ]
            runner.run(progress)
        except Cancelled:
            stopped = True
    result, lines = _status(experiment)
    if stopped:
        print("stopped; the same command goes on from here", file=sys.stderr)
        result["stopped"] = True
    return result, lines


def _piloted(experiment: Experiment, options: argparse.Namespace) -> Answer:
    """The size of the delay at which every place shows."""
    from desktop.data import pilot as pilots
    from desktop.data.runner import Runner

    agree(options, experiment.folder, pilots.pilot_commands(experiment))
    runner = Runner(experiment)
    file = experiment.folder / pilots.PILOT
    with terminal_progress() as progress:
        try:
            pilot = pilots.run_pilot(runner, progress)
        except Cancelled:
            raise Cancelled(f"the same command goes on from here, with the runs in {file}") from None
    rows = pilots.sizing_rows(pilot)
    result = {"pilot": str(file), "base": pilot.base, "largest": pilot.largest, "places": rows,
              "size": pilot.size or None, "reason": pilot.reason}  # fmt: skip
    lines = [
        f"runs without a delay give {pilot.base:.4g} {pilot.unit}, kept in {file}",
        *row_lines(rows, Column("place", name="factor"), Column("take"), Column("shows at", name="delay"),
                   Column("effect"), Column("SE", name="se", significant=3),
                   Column("share", "", "% of base", 3, name="percent_of_unperturbed")),
    ]  # fmt: skip
    lines.append(pilot.reason)
    result["taken"] = bool(pilot.sizes and options.take)
    if result["taken"]:
        from desktop.data.experiment import write_experiment

        write_experiment(pilots.tuned(experiment, pilot))
        lines.append("taken: the description says these sizes now")
    elif pilot.sizes:
        lines.append(f"next: write what is to take into {experiment.folder / 'experiment.toml'}, in place of "
                     "what stands there (with --take the pilot does so)")  # fmt: skip
    else:
        lines.append("nothing is taken: the description stays as it is")
    return result, lines


def _status(experiment: Experiment) -> Answer:
    """The state of an experiment, and its effects as far as they are known."""
    from desktop.core.effects import analyse
    from desktop.data import experiment as experiments
    from desktop.data.answer import MeasuredResponse

    trials = experiments.read_journal(experiment)
    state = experiments.state_of(experiment, trials)
    lost = sorted(state.given_up - set(state.good))
    result: JSON = {
        "planned": state.planned,
        "finished": len(state.good),
        "complete": state.finished,
        "failed_attempts": sum(trial.status == "failed" for trial in trials),
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
            result["effects"] = spt_effects.searched(best) | {"response": response}
            return result, lines + spt_effects.ranking_lines(best, response)
        effects = analyse(experiments.to_trials(experiment))
    except (ValueError, DesktopError) as error:
        return result, [*lines, f"no effects yet: {error}"]
    measured = MeasuredResponse.of(experiment)
    ranking, answer = spt_effects.ranks(effects, False, measured.factors), measured.answer(effects)
    result["effects"] = spt_effects.analysed(effects, False) | {"response": response, "ranks": ranking}
    result["answer"] = spt_confirm.plain_answer(answer)
    table = spt_effects.effect_lines(effects, False, response, measured.factors)
    return result, [answer.text, *lines, *table]


# --- design ---


def design(options: argparse.Namespace) -> Answer:
    """The design that the options describe: as plain values and as lines."""
    from desktop.core import design as designs
    from desktop.core.power import detectable

    names = tuple(name.strip() for name in options.factors.split(","))
    if options.factors.strip().removeprefix("-").isdecimal():
        names = designs.names_for(int(options.factors))
    resolution = designs.resolution_of(options.resolution) if options.resolution else 3
    if options.replicates < 1:
        raise ValueError("at least one replicate has to be run")
    if options.recommend:
        return _recommended(names, resolution if options.resolution else 4, options)
    if options.offers:
        return _offers(names, options.runs, resolution, options)
    planned = _design_of(options, names, resolution)
    if options.fold is not None:
        planned = designs.foldover(planned, options.fold or None)
    seed = secrets.randbelow(1 << 31) if options.seed is None else options.seed
    sheet = designs.run_sheet(planned, options.replicates, seed)
    if options.output:
        from desktop.data.runs import write_sheet

        write_sheet(options.output, planned, sheet)
    size = None if options.sigma is None else detectable(options.sigma, planned.runs, options.replicates)
    result = described(planned) | {
        "replicates": options.replicates,
        "order": [int(t) + 1 for t in sheet.treatment],
        "seed": seed,
        "detectable_effect": size if size == size else None,
        "power": _power_of(options, planned),
    }
    return result, _design_lines(planned, result, options)


def _design_of(options: argparse.Namespace, names: tuple[str, ...], resolution: int) -> Design:
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
    if runs is None and options.resolution:
        runs = designs.smallest_runs(len(names), resolution)
    design = designs.regular(names, runs)
    if options.resolution and design.resolution and design.resolution < resolution:
        needed = designs.smallest_runs(len(names), resolution)
        raise ValueError(
            f"{len(names)} factors in {runs} runs have resolution {designs.roman(design.resolution)}; "
            f"resolution {designs.roman(resolution)} needs {needed} runs"
        )
    return design


def described(design: Design) -> JSON:
    """The keys of ``--json`` that follow from the design."""
    from desktop.core.design import roman

    mains, pairs = design.clear
    words = design.defining_relation()
    return {
        "kind": design.kind,
        "factors": list(design.factors),
        "runs": design.levels.tolist(),
        "blocks": (design.blocks + 1).tolist(),
        "generators": list(design.generators),
        "defining_relation": [("-" if sign < 0 else "") + design.word(members) for sign, members in words],
        "resolution": roman(design.resolution),
        "word_length_pattern": list(design.word_lengths[2:]),
        "minimum_aberration": design.minimum_aberration,
        "aliases": [[design.term(members) for members in same] for same in design.aliases()],
        "clear_main_effects": [design.factors[j] for j in mains],
        "clear_two_factor_interactions": [design.term(pair) for pair in pairs],
        "unperturbed_run": design.unperturbed + 1 if design.unperturbed >= 0 else None,
        "note": design.note,
    }


def _power_of(options: argparse.Namespace, design: Design) -> JSON | None:
    """Replicates that find an effect, and the chance with fewer and more."""
    from desktop.core.power import power_curve, replicates_to_find, sigma_bound

    if options.sigma is None or options.effect is None:
        return None
    df = float("inf") if options.sigma_df is None else options.sigma_df
    if not (options.sigma > 0 and df > 0):
        raise ValueError("--sigma and --sigma-df have to be positive")
    needed = replicates_to_find(options.sigma, options.effect, design.runs, df)
    counts = sorted({2, 3, 4, 6, 8, max(2, needed // 2), max(2, needed - 1), needed, 2 * needed})
    powers, bound = power_curve(options.effect, options.sigma, design.runs, counts, df)
    return {
        "effect": options.effect,
        "sigma_bound": sigma_bound(options.sigma, df),
        "replicates": needed,
        "curve": [
            {"replicates": r, "power": float(a), "power_at_bound": float(b)}
            for r, a, b in zip(counts, powers, bound, strict=True)
        ],
    }


def _recommended(names: tuple[str, ...], resolution: int, options: argparse.Namespace) -> Answer:
    from desktop.core.recommend import EFFECT, NOISE, recommend

    if options.runs:
        raise ValueError("--recommend chooses the number of runs: leave --runs out, or name it without")
    # Without a time of the run, sizes are shares of it.
    sigma, run_s = options.sigma or NOISE, options.run_s or float("nan")
    base = run_s if options.sigma and options.run_s else 1.0
    advice = recommend(len(names), sigma, options.effect or EFFECT * base, resolution)
    text = advice.text(base, run_s)
    return picked(advice, "runs replicates resolution sees noise effect enough trials") | {
        "factors": list(names), "text": text, "seconds": advice.trials * run_s,
    }, [text]  # fmt: skip


def _offers(names: tuple[str, ...], budget: int | None, least: int, options: argparse.Namespace) -> Answer:
    from desktop.core import design as designs
    from desktop.core.recommend import meaning

    offers = designs.offers(names, budget, least)
    if not offers:
        raise ValueError(
            f"no design of {len(names)} factors has resolution {designs.roman(least)} in {budget} runs; "
            f"it needs {designs.smallest_runs(len(names), least)}"
        )
    rows: list[JSON] = [
        {
            "kind": offer.kind,
            "runs": offer.runs,
            "resolution": designs.roman(offer.resolution),
            "word_length_pattern": list(offer.word_lengths[2:]),
            "clear_main_effects": len(offer.clear[0]),
            "clear_two_factor_interactions": len(offer.clear[1]),
            "generators": list(offer.generators),
            "minimum_aberration": offer.minimum_aberration,
            "seconds": offer.runs * options.replicates * options.run_s if options.run_s else None,
            "meaning": meaning(offer.resolution)
            if offer.resolution or offer.kind != "plackett-burman"
            else "",
        }
        for offer in offers
    ]
    lines = row_lines(
        [row | {"A3, A4": ", ".join(map(str, row["word_length_pattern"][:4])) or "-"} for row in rows],
        Column("runs"), Column("kind"), Column("resolution"),
        Column("clear mains", name="clear_main_effects"),
        Column("clear pairs", name="clear_two_factor_interactions"),
        Column("time", "", "s", name="seconds"), Column("A3, A4"),
    )  # fmt: skip
    words = {row["resolution"]: row["meaning"] for row in rows if row["meaning"]}
    lines += [f"{word:<5}{text}" for word, text in words.items()]
    return {"factors": list(names), "designs": rows}, lines


def _design_lines(design: Design, result: JSON, options: argparse.Namespace) -> list[str]:
    from desktop.core.power import chance_in_words
    from desktop.core.recommend import described as in_words

    lines = [f"{design.kind} design of {len(design.factors)} factors in {design.runs} runs, "
             f"resolution {result['resolution']}, seed {result['seed']}"]  # fmt: skip
    words, equal = in_words(design)
    lines += [*words, *(f"aliased: {one}" for one in equal)]
    if result["detectable_effect"] is not None:
        lines.append(
            f"an effect of {result['detectable_effect']:.4g} is seen with a chance of "
            f"{chance_in_words(design.runs, options.replicates)} "
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
    levels = [str(v) if design.levels.min() >= 0 else "+" if v > 0 else "-" for v in design.levels.ravel()]
    each = zip(*[iter(levels)] * len(design.factors), strict=True)
    runs = [{"run": k, **dict(zip(design.factors, row, strict=True))} for k, row in enumerate(each, 1)]
    lines += row_lines(runs, Column("run"), *map(Column, design.factors))
    if len(result["order"]) <= 256:
        lines.append("order " + " ".join(map(str, result["order"])))
    return lines


def main(options: argparse.Namespace) -> int:
    result, lines = options.part(options)
    show(options, result, lambda: spt_effects.rows(result), lambda: lines)
    if result.get("stopped"):
        return stopping.code()
    return LOSSY if result.get("missing_runs") or result.get("given_up") else DONE

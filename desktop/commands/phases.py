"""``phasewright phases``: phases fitted to the processor-utilization curve."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from desktop.commands.run_options import CommandRun, add_run, adder, check_budget, open_run, positive, settle
from desktop.commands.terminal import (
    column,
    outcome,
    picked,
    print_csv,
    print_doubt,
    print_json,
    terminal_progress,
)
from desktop.core.labels import DEGREES
from desktop.core.quantity import PROCESSORS, CurveQuantity
from desktop.core.units import brief
from desktop.printing import printable
from desktop.remote import named

if TYPE_CHECKING:
    from desktop.core.curve import StepCurve
    from desktop.core.landmarks import Landmark, Landmarks
    from desktop.core.phase_stats import Firm, PhaseRow
    from desktop.core.phases import PhaseFit

#: Columns of a phase in JSON and CSV; attributes of `desktop.core.phase_stats.PhaseRow`.
PHASE_COLUMNS = (
    *("start_s", "end_s", "degree", "coefficients", "error", "mean", "min", "max"),
    *("efficiency", "work_s", "name"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    add = adder(parser.add_mutually_exclusive_group())
    add("-n N", "phases (with budget: parameters; default: as suggested)", type=positive)
    add("--max-n N", "all n up to N, and which to take", type=positive)
    alone = "no structure events (regions entered or left), as in the published tables"
    adder(parser)("--curve-only", alone)
    again = "another run of the same program, or a project of such: how firm the breakpoints are (repeatable)"
    adder(parser)("--repeat FILE", again, type=named, action="append", default=[])
    add_run(parser, curve=True, also=True)


def main(options: argparse.Namespace) -> int:
    from desktop.core.selection import events_at
    from desktop.data.info import in_doubt

    settle(options)
    n = options.max_n or (options.phases.n if options.project or options.n else None)
    check_budget(options.phases.model, n)
    with open_run(options) as run:
        doubt = in_doubt(run.store)
        if options.max_n:
            _print_sweep(run.curve, options, run.landmarks, doubt)
        else:
            fitted, why = (run.fit(), "") if n else run.suggested()
            fitted = replace(fitted, names=run.names(fitted))
            firm = _firm(run, fitted)
            _print_phases(run.curve, options, events_at(fitted, run.landmarks), fitted, firm, doubt, why)
        if not (options.json or options.csv):
            print_doubt(run.store)
        return outcome(run.store)


def _print_sweep(
    curve: StepCurve, options: argparse.Namespace, landmarks: Landmarks | None, in_doubt_s: float | None
) -> None:
    from desktop.core.phases import least_n
    from desktop.core.selection import search

    phases, to = options.phases, options.max_n
    least = least_n(phases.model, phases.locked)
    if to < least:
        raise ValueError(f"--max-n {to}: with the locked breakpoints n is at least {least}")
    result, suggestion = search(
        curve, phases.model, locked=phases.locked, to=to, landmarks=landmarks, basis=phases.basis
    )
    rows = [
        {"n": fit.requested, "epsilon": fit.epsilon, "breaks_s": fit.breaks.tolist()}
        for fit in result.fits
        if fit.requested <= to
    ]
    suggested, names = suggestion.fit(curve, result), options.settings.names
    suggestion = suggestion.called(names)
    second = suggestion.runner_up
    if options.json:
        print_json(
            {
                "model": phases.model,
                "sweep": rows,
                "suggested_n": suggestion.n,
                "suggested_breaks_s": suggested.breaks.tolist(),
                "reason": suggestion.reason,
                "runner_up": None if second is None else {"n": second[0], "reason": second[1]},
                "suggested_break_events": [
                    None if one.event is None else one.event.called(names)
                    for one in suggestion.breakpoints or ()
                ],
                "limit_reached": suggestion.limit_reached,
                **_about(curve, options),
                "in_doubt_s": in_doubt_s,
            }
        )
    elif options.csv:
        cells = ((row["n"], row["epsilon"], " ".join(map(repr, row["breaks_s"]))) for row in rows)
        print_csv(("n", "epsilon", "breaks_s"), cells)
    else:
        print(f"{'n':>4} {'epsilon':>14}  breakpoints (s)")
        for row in rows:
            mark = "*" if row["n"] == suggestion.n else " "
            inner = " ".join(f"{x:.6g}" for x in row["breaks_s"][1:-1])
            print(f"{row['n']:>3}{mark} {row['epsilon']:>14.6g}  {inner}")
        if suggestion.n > to:
            print(f"{suggestion.n} would be suggested, more than asked for: {suggestion.reason}")
        else:
            print(f"* suggested: {suggestion.reason}")
        if suggestion.breakpoints is not None:
            print("  its breakpoints (s): " + " ".join(f"{x:.6g}" for x in suggested.breaks[1:-1]))
        if second is not None:
            print(f"  next best: n = {second[0]}: {second[1]}")


def _firm(run: CommandRun, model: PhaseFit) -> tuple[Firm | None, ...]:
    """How firm the inner breakpoints are: over the runs of --repeat, else over the iterations of the run."""
    from desktop.data.iterations import find, firm_breakpoints

    options, curve = run.options, run.curve
    with terminal_progress() as progress:
        loops = find(run.store, run.use, progress, curve, explained=False) if model.n > 1 else None
        over = firm_breakpoints(loops, curve, model)
        if not options.repeat:
            return over
        from desktop.core.contrast import Phased, align
        from desktop.core.firmness import over_runs
        from desktop.data.project_file import is_project
        from desktop.workbench.keeping import read_workspace
        from desktop.workbench.model import PhaseSettings
        from desktop.workbench.run_comparison import load_phased, plain_run

        of = options.phases
        settings = PhaseSettings(model.model, model.requested, seconds=of.seconds, also=of.also)
        runs = [Phased("", curve, model, frozenset(region.name for region in run.store.regions))]
        for file in options.repeat:
            if is_project(file):
                members = [(one, one.project.phases, file) for one in read_workspace(file).runs]
            else:
                members = [(plain_run(file, settings), settings, None)]
            runs += [load_phased(one.trace.name, one, phases, at, progress)[0] for one, phases, at in members]
    return tuple(a or b for a, b in zip(over_runs(align(runs), 0), over, strict=True))


def _print_phases(
    curve: StepCurve,
    options: argparse.Namespace,
    events: list[list[Landmark]],
    model: PhaseFit,
    firm: tuple[Firm | None, ...],
    in_doubt_s: float | None,
    why: str,
) -> None:
    """`why`: so many phases are suggested; empty if the user chose the number."""
    from desktop.core.landmarks import NEAR
    from desktop.core.phase_stats import phase_table

    phases, names = phase_table(curve, model), options.settings.names
    rows = [{name: getattr(phase, name) for name in PHASE_COLUMNS} for phase in phases]
    if options.json:
        print_json(
            {
                **picked(model, "model n epsilon sse equidistribution evaluations"),
                "breaks_s": model.breaks.tolist(),
                "break_ranges_s": list(
                    zip(model.breakpoint_low.tolist(), model.breakpoint_high.tolist(), strict=True)
                ),
                "note": model.note,
                **({"reason": why} if why else {}),
                **_about(curve, options),
                **basis_in_words(model),
                **({} if model.basis is None else {"search_limit": _limit(model, options)}),
                "in_doubt_s": in_doubt_s,
                "break_events": [
                    [{"time_s": e.time_s, "text": e.called(names)} for e in landmarks] for landmarks in events
                ],
                "break_intervals": [one and one._asdict() for one in firm],
                "phases": rows,
            }
        )
    elif options.csv:
        for row in rows:
            powers = [float(value) for value in row.pop("coefficients")]
            names = ("c0", "c1", "c2", "c3")[: model.powers.shape[1]]
            row.update(zip(names, powers + [0.0] * (len(names) - len(powers)), strict=True))
            row.update(basis_in_words(model))
        print_csv(tuple(rows[0]), (row.values() for row in rows))
    else:
        print_phase_table(model, phases, curve.quantity)
        if why:
            print(f"n = {model.requested} is suggested: {why}")
        if _limit(model, options):
            print(_limit(model, options))
        for k, landmarks in enumerate(events, 1):
            if landmarks:
                exact = abs(landmarks[0].time_s - model.breaks[k]) <= NEAR * curve.duration
                ends = "ends" if exact else "could as well end"
                print(f"phase {k} {ends} where {landmarks[0].called(names)}, at {brief(landmarks[0].time_s)}")
        for k, one in enumerate(firm, 1):
            if one is not None:
                print(f"median end of phase {k}: {one.words}")


def _about(curve: StepCurve, options: argparse.Namespace) -> dict[str, str]:
    """Which curve it is."""
    return {"curve": options.curve, "curve_name": curve.quantity.name, "unit": curve.quantity.unit}


def _limit(model: PhaseFit, options: argparse.Namespace) -> str:
    """The sentence that the search for a period or time constant ended at its limit; "" if not."""
    return model.limit if options.phases.seconds is None else ""


def basis_in_words(model: PhaseFit) -> dict[str, float]:
    """``period_s`` or ``time_constant_s`` of a fit that has one."""
    return {} if model.basis is None else model.basis.scale


def print_phase_table(model: PhaseFit, phases: Sequence[PhaseRow], of: CurveQuantity = PROCESSORS) -> None:
    """The phases as a person reads them."""
    unit = of.unit or "values"
    if of != PROCESSORS:
        print(f"the curve of {printable(of.name)}{of.unit and f', in {printable(of.unit)}'}")
    budget = f" of {model.requested} parameters" if model.model == "budget" else ""
    print(
        f"{model.model}{budget}, n = {model.n}: epsilon {model.epsilon:.6g} {unit}*sqrt(s), "
        f"total squared error {model.sse:.6g} {unit if unit.isalnum() else f'({unit})'}^2*s, "
        f"smallest/largest local error {model.equidistribution:.4g}"
    )
    if model.note:
        print(model.note)
    for name, seconds in basis_in_words(model).items():
        print(f"{name[:-2].replace('_', ' ')} {brief(seconds, 5)}")
    if model.model == "mixed":
        both = "its epsilon and the smallest over the largest error weight"
        print(f"{both} that of a constant by sqrt(2), of a line by sqrt(4/3) (section 5.1)")
    heads = ("", "start", "end", "length", "degree", "mean", "efficiency", "work proc*s", "error", "name")
    wide = 8 if of.counted else 10
    if of.short != PROCESSORS.short:
        heads = (*heads[:7], "integral", *heads[8:])
    print("{:>3}{:>11}{:>11}{:>11}  {:<10}{:>{}}{:>12}{:>13}{:>11}  {}".format(*heads[:6], wide, *heads[6:]))
    starts, ends = [row.start_s for row in phases], [row.end_s for row in phases]
    lengths = [row.end_s - row.start_s for row in phases]
    columns = [column(values) for values in (starts, ends, lengths)]

    def share(value: float) -> str:
        return f"{100 * value:.1f}%" if math.isfinite(value) else "-"

    for index, row in enumerate(phases, 1):
        times = "".join(f"{column[index - 1]:>10}s" for column in columns)
        degree = DEGREES[row.degree]
        print(
            f"{index:>3}{times}  {degree:<10}{row.mean:>{wide}.4g}{share(row.efficiency):>12}"
            f"{row.work_s:>13.4g}{row.error:>11.4g}  {row.name}".rstrip()
        )

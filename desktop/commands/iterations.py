"""``phasewright iterations``: what repeats in a run, and which repeats are odd."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from desktop.commands.run_options import add_run, check_budget, open_run, settle
from desktop.commands.terminal import outcome, picked, print_csv, print_doubt, print_json, terminal_progress
from desktop.core.labels import DEFAULT_MODEL
from desktop.core.plain import JSON
from desktop.core.units import si
from desktop.data.naming import listed
from desktop.printing import printable

if TYPE_CHECKING:
    from desktop.core.curve import StepCurve
    from desktop.core.phases import PhaseFit
    from desktop.data.iterations import Iterations, Level

#: Columns of the CSV form, a row for each iteration.
COLUMNS = ("level", "index", "start_s", "end_s", "duration_s", "usual")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    add_run(parser, "phases inside an iteration (else: as suggested)", curve=True)


def main(options: argparse.Namespace) -> int:
    """Print the iterations; the exit code."""
    from desktop.data.iterations import find

    n, model = options.n, options.model or DEFAULT_MODEL
    check_budget(model, n)
    settle(options)
    with open_run(options) as run:
        store, curve = run.store, run.curve
        with terminal_progress() as progress:
            iterations = find(store, run.use, progress, curve)
        if options.json:
            print_json(result(iterations, curve, n, model))
        elif options.csv:
            print_csv(COLUMNS, rows(iterations))
        else:
            print("\n".join(iteration_lines(iterations, curve, n, model)))
            print_doubt(store)
        return outcome(store)


def result(iterations: Iterations, curve: StepCurve, n: int | None, model: str) -> JSON:
    """What ``--json`` prints."""
    from desktop.data.iterations import phases_in

    return {
        "found": iterations.found,
        "reason": iterations.reason,
        "levels": [
            _level(level, curve, phases_in(level, curve.capacity, n, model)) for level in iterations.levels
        ],
    }


def _level(level: Level, curve: StepCurve, phases: PhaseFit) -> JSON:
    from desktop.data.iterations import firm_in

    loop, fold = level.loop, level.fold
    return {
        **picked(loop, "period_s=period count"),
        "first_s": loop.bounds[0],
        "last_s": loop.bounds[-1],
        **picked(level, "by region"),
        **picked(loop, "drift agree likeness"),
        "odd_count": level.odd_count,
        "odd": [picked(one, "index start_s end_s excess_s ranks region") for one in level.odd],
        "fold": {
            **picked(fold, "folded quantile middle low high"),
            **picked(phases, "model breaks_s=breaks epsilon"),
            "break_intervals": [one and one._asdict() for one in firm_in(level, curve, phases)],
        },
    }


def rows(iterations: Iterations) -> Iterator[tuple[float, ...]]:
    """The rows of the CSV form."""
    for number, level in enumerate(iterations.levels, 1):
        bounds, usual = level.loop.bounds.tolist(), level.loop.usual.tolist()
        for index, regular in enumerate(usual):
            start, end = bounds[index], bounds[index + 1]
            yield number, index, start, end, end - start, int(regular)


def iteration_lines(iterations: Iterations, curve: StepCurve, n: int | None, model: str) -> list[str]:
    """The same as a person reads it."""
    from desktop.data.iterations import firm_in, phases_in

    lines = []
    for number, level in enumerate(iterations.levels, 1):
        loop = level.loop
        lines.append(f"level {number}: {printable(level.sentence, 200)}")
        lines.append(f"  from {si(loop.bounds[0])}s to {si(loop.bounds[-1])}s, by {_BY[level.by]}")
        phases = phases_in(level, curve.capacity, n, model)
        firm = firm_in(level, curve, phases)
        inner = ", ".join(
            f"{si(x)}s" + ("" if one is None else f" ({one.words})")
            for x, one in zip(phases.breaks[1:-1].tolist(), firm, strict=True)
        )
        count = f"{phases.n} phase{'s' if phases.n > 1 else ''}"
        lines.append(f"  one iteration: {count}{inner and f', breakpoints at {inner}'}")
        for one in level.odd:
            ranks = f", rank{'s' if len(one.ranks) > 1 else ''} {listed(one.ranks)}" if one.ranks else ""
            region = f", in {printable(one.region, 40)}" if one.region else ""
            place = f"number {one.index + 1} at {si(one.start_s)}s"
            lines.append(f"  odd: {place}, {si(one.excess_s)}s longer{ranks}{region}")
        if level.odd_count > len(level.odd):
            lines.append(f"  and {level.odd_count - len(level.odd)} more odd ones")
    if not iterations.found:
        lines.append("no iterations were found")
    return [*lines, iterations.reason]


_BY = {"events": "its events", "curve": "its curve", "both": "its events and its curve"}

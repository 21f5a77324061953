"""``phasewright iterations``: what repeats in a run, and which repeats are odd."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from desktop.commands.run_options import add_run, check_budget, open_run, settle
from desktop.commands.terminal import outcome, picked, print_csv, print_doubt, print_json, terminal_progress
from desktop.core.plain import JSON
from desktop.core.units import brief, count
from desktop.data.naming import listed
from desktop.printing import printable

if TYPE_CHECKING:
    from desktop.core.phase_stats import Firm
    from desktop.core.phases import PhaseFit
    from desktop.data.iterations import Iterations, Level

#: Columns of the CSV form, a row for each iteration.
COLUMNS = ("level", "index", "start_s", "end_s", "duration_s", "usual")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser, "phases inside an iteration (else: as suggested)", curve=True)


def main(options: argparse.Namespace) -> int:
    """Print the iterations; the exit code."""
    from desktop.data.iterations import find, model_inside, phases_in

    settle(options)
    n, model = options.n, options.model or model_inside(options.phases.model)
    check_budget(model, n)
    with open_run(options) as run:
        store, curve = run.store, run.curve
        with terminal_progress() as progress:
            iterations = find(store, run.use, progress, curve).called(options.settings.names)
        if options.csv:
            print_csv(COLUMNS, rows(iterations))
            return outcome(store)
        inner = [(level, *phases_in(level, curve, n, model)) for level in iterations.levels]
        if options.json:
            levels = [_level(*one) for one in inner]
            print_json({**picked(iterations, "found reason"), "levels": levels})
        else:
            for number, one in enumerate(inner, 1):
                print("\n".join(_level_lines(number, *one)))
            if not iterations.found:
                print("no iterations were found")
            print(iterations.reason)
            print_doubt(store)
        return outcome(store)


def _level(level: Level, phases: PhaseFit, firm: Sequence[Firm | None]) -> JSON:
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
            "break_intervals": [one and one._asdict() for one in firm],
        },
    }


def rows(iterations: Iterations) -> Iterator[tuple[float, ...]]:
    """The rows of the CSV form."""
    for number, level in enumerate(iterations.levels, 1):
        bounds, usual = level.loop.bounds.tolist(), level.loop.usual.tolist()
        for index, (start, end, regular) in enumerate(zip(bounds, bounds[1:], usual, strict=False)):
            yield number, index, start, end, end - start, int(regular)


def _level_lines(number: int, level: Level, phases: PhaseFit, firm: Sequence[Firm | None]) -> Iterator[str]:
    """A loop as a person reads it."""
    loop = level.loop
    yield f"level {number}: {printable(level.sentence, 200)}"
    yield f"  from {brief(loop.bounds[0])} to {brief(loop.bounds[-1])}, by {_BY[level.by]}"
    inner = ", ".join(
        brief(x) + ("" if one is None else f" ({one.words})")
        for x, one in zip(phases.breaks[1:-1].tolist(), firm, strict=True)
    )
    yield f"  one iteration: {count(phases.n, 'phase')}{inner and f', breakpoints at {inner}'}"
    for one in level.odd:
        ranks = f", rank{'s' if len(one.ranks) > 1 else ''} {listed(one.ranks)}" if one.ranks else ""
        region = f", in {printable(one.region, 40)}" if one.region else ""
        place = f"number {one.index + 1} at {brief(one.start_s)}"
        yield f"  odd: {place}, {brief(one.excess_s)} longer{ranks}{region}"
    if level.odd_count > len(level.odd):
        yield f"  and {level.odd_count - len(level.odd)} more odd ones"


_BY = {"events": "its events", "curve": "its curve", "both": "its events and its curve"}

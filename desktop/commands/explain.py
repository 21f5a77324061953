"""``phasewright explain``: why the run is slow, in words: its causes and those of each phase."""

from __future__ import annotations

import argparse
import textwrap
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from desktop.commands.run_options import add_run, check_budget, open_run, settle
from desktop.commands.terminal import outcome, picked, print_doubt, print_json, terminal_progress
from desktop.core.units import NO_BREAK, unbroken
from desktop.printing import printable

if TYPE_CHECKING:
    from desktop.core.explanation import CauseText, Explanation


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser, "phases (default: the suggested number; with budget: parameters)", csv=False)


def main(options: argparse.Namespace) -> int:
    """JSON: ``source``, ``model``, ``n``, ``breaks_s``, ``in_doubt_s``, ``paragraph``, ``lost_s``
    (processor-seconds), ``causes``, and ``phases`` with ``name``, ``start_s``, ``end_s``, ``sentence``,
    ``lost_s``, ``causes``. A cause: ``key``, ``title``, ``sentence``, ``lost_s``, ``part`` (of what is lost
    there), ``strength`` (of the evidence), ``seen`` (how often), ``region``, ``locations`` (ids, most first),
    ``names``, ``phase`` (from 1; null: none), ``start_s``, ``end_s``. ``would_help``: as of ``whatif``."""
    from desktop.data.helping import would_help
    from desktop.data.info import in_doubt
    from desktop.data.root_causes import explain
    from desktop.data.statistics import Statistics

    settle(options)
    check_budget(options.phases.model, options.phases.n if options.project or options.n is not None else None)
    with open_run(options) as run:
        store, use, model = run.store, run.use, run.fit(suggested=True)
        names = run.names(model)
        with terminal_progress() as progress:
            breakpoints = model.breaks.tolist()
            statistics = Statistics(store)
            explanation = explain(statistics, use, breakpoints, names, options.settings.names, progress)
            better = would_help(statistics, use, breakpoints, run.limit, progress) if options.json else ()
        if options.json:
            ids = [location.id for location in store.locations]
            result = {
                **picked(model, "model n"),
                "breaks_s": breakpoints,
                "in_doubt_s": in_doubt(store),
                **picked(explanation, "paragraph lost_s"),
                "causes": [_plain(cause, ids) for cause in explanation.causes],
                "phases": [
                    {
                        "name": name,
                        **asdict(replace(phase, causes=())),
                        "causes": [_plain(cause, ids) for cause in phase.causes],
                    }
                    for name, phase in zip(names, explanation.phases, strict=False)
                ],
                "would_help": [one.called(options.settings.names).plain() for one in better],
            }
            print_json({"source": store.source.name, **result})
        else:
            _print(explanation)
            print_doubt(store)
        return outcome(store)


def _plain(cause: CauseText, ids: list[int]) -> dict[str, object]:
    return {
        **asdict(cause),
        "locations": [ids[i] for i in cause.locations],
        "phase": cause.phase + 1 if cause.phase >= 0 else None,
    }


def _print(explanation: Explanation) -> None:
    """As a person reads it, within 100 columns."""
    if not explanation.paragraph:
        print("The source is a curve: nothing else is known about its processors.")
        return
    texts = (explanation.paragraph, *(phase.sentence for phase in explanation.phases))
    for text in texts:
        print(textwrap.fill(unbroken(printable(text, 4000)), 98).replace(NO_BREAK, " "))
        print()
    from desktop.core.root_causes import STRENGTH

    for strength, meaning in STRENGTH.items():
        if any(f"{strength} evidence" in text for text in texts):
            print(textwrap.fill(f"{strength} evidence: {meaning}", 98, subsequent_indent="  "))

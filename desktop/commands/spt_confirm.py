"""``phasewright spt confirm``, and the answer printed above every table of effects."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from desktop.commands.run_options import agree
from desktop.commands.terminal import Answer, Part, picked, terminal_progress
from desktop.core.plain import JSON

if TYPE_CHECKING:
    from desktop.data.answer import SptAnswer


def add_parts(part: Part) -> None:
    """Its arguments. `part` makes one of a name, a function and a text."""
    from desktop.data.confirm import RUNS

    add = part(
        "confirm", confirm, "runs with and without a delay in turn, and whether they agree with the effects"
    )
    add("experiment EXPERIMENT.toml", type=Path)
    add("--factors NAMES", "at + (default: what the response depends on)", default="")
    add("--runs N", f"of either setting (default {RUNS})", type=int, default=RUNS)
    add("--response NAME")
    add("--yes", "the commands have been read and may be run")


def confirm(options: argparse.Namespace) -> Answer:
    """Make the runs and judge them."""
    from desktop.core.effects import analyse
    from desktop.data.answer import MeasuredResponse
    from desktop.data.confirm import CONFIRMATION, confirm_commands, describe, run_confirmation, setting_of
    from desktop.data.experiment import read_experiment, to_trials
    from desktop.data.runner import Runner

    if options.runs < 2:
        raise ValueError("a verdict needs two runs of either setting")
    experiment = read_experiment(options.experiment)
    effects = analyse(to_trials(experiment, options.response))
    measured = MeasuredResponse.of(experiment, options.response)
    names = [name.strip() for name in options.factors.split(",") if name.strip()]
    if not names:
        names = list(measured.answer(effects).named[:1])
        if not names:
            raise ValueError("the effects name nothing to confirm; say --factors")
    agree(options, experiment.folder, confirm_commands(experiment, setting_of(experiment, names)))
    with terminal_progress() as progress:
        one = run_confirmation(Runner(experiment), effects, names, options.runs, options.response, progress)
    result = picked(
        one,
        "setting runs predicted predicted_se measured measured_se low high difference limit verdict reason",
    )
    print(f"the runs are in {experiment.folder / CONFIRMATION}", file=sys.stderr)
    return result | {"response": measured.response}, [describe(one, measured.unit)]


def plain_answer(one: SptAnswer) -> JSON:
    """An answer as ``--json`` prints it."""
    return {
        "text": one.text,
        "depends_on": list(one.named),
        "nothing_else_above": one.bound,
        "next": one.next or None,
    }

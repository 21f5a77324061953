"""A program of a few lines of shell to experiment with: its response follows from its factors, at once."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from desktop.data.experiment import Experiment, Factor, Plan, Program, Response, Switch, write_experiment

needs_shell = pytest.mark.skipif(os.name == "nt", reason="the programs of these tests are shell scripts")

#: Prints 10, 4 more with A and 7 more with B, and leaves a line for every run.
SCRIPT = """#!/bin/sh
printf 'ran\\n' >> ran.txt
value=10
[ "$DELAY_A" = 1 ] && value=$((value + 4))
case "$*" in *--slow*) value=$((value + 7));; esac
echo "done in $value s"
"""


def small(folder: Path, script: str = SCRIPT, **changes: Any) -> Experiment:
    """Two factors, a response on the output, no build; written to `folder`."""
    folder.mkdir(exist_ok=True)
    program = folder / "program.sh"
    program.write_text(script)
    program.chmod(0o755)
    experiment = Experiment(
        folder,
        "small",
        Program(
            run=("./program.sh", "{args}"), sources=("program.sh",), check="done", busy_limit=1e9, warm_up=0
        ),
        (
            Factor("A", Switch(environment=(("DELAY_A", "1"),)), routine="first", construct="loop"),
            Factor("B", Switch(arguments=("--slow",)), Switch(arguments=("--fast",))),
        ),
        (Response("value", "output", r"done in (\d+) s", "s"), Response("wall")),
        Plan(replicates=2, seed=3),
    )
    experiment = replace(experiment, **changes)
    write_experiment(experiment)
    return experiment

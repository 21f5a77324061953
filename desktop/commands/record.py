"""``phasewright record``: run an MPI program, record it, and open what was recorded."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from desktop import stopping
from desktop.commands.run_options import adder, positive
from desktop.commands.terminal import DONE, FAILED, print_json, terminal_progress
from desktop.core.plain import JSON
from desktop.core.units import mean_number
from desktop.progress import Progress

if TYPE_CHECKING:
    from desktop.data.recording import Recorded


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.usage = (
        "phasewright record [-o FOLDER] [--repeat K] [--no-open] [--json] -- COMMAND [ARGUMENT ...]"
    )
    add = adder(parser)
    add("-o --output FOLDER", "where to (default: PROGRAM.recorded, made here)", type=Path)
    add("--repeat K", "run it so often, each into a folder of its own", type=positive, default=1)
    add("--no-open", "do not open the window on what was recorded")
    add("--json", "one JSON object on standard output, no window")
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="as in: -- mpirun -n 8 ./app"
    )


def main(options: argparse.Namespace) -> int:
    with terminal_progress() as progress:
        runs, facts = run(options, progress)
    if options.json:
        print_json(facts)
    for line in () if options.json else lines(runs, facts):
        print(line, flush=True)
    codes = [str(one.code) for one in runs if one.code]
    if codes:
        print(f"phasewright: the program ended with exit code {', '.join(codes)}", file=sys.stderr)
        return FAILED
    if options.json or options.no_open or not can_show():
        return DONE
    from desktop.ui.windows import run as run_window

    stopping.check()
    return run_window([str(one.folder) for one in runs])


def run(options: argparse.Namespace, progress: Progress) -> tuple[list[Recorded], JSON]:
    """Record as the options say and import it; the runs, and what ``--json`` prints of them.

    Raises
    ------
    ValueError : there is no command.
    RunError : it cannot be recorded.
    """
    from desktop.data.info import info
    from desktop.data.opening import open_trace
    from desktop.data.recording import new_folder, record

    program = words_of(options.program, "record")
    runs: list[Recorded] = []
    results: list[JSON] = []
    for count in range(options.repeat):
        if options.output is None:
            folder = new_folder(program, Path.cwd())
        else:
            name = options.output.name
            folder = (
                options.output if options.repeat == 1 else options.output.with_name(f"{name}-{count + 1}")
            )
        runs.append(record(program, folder, progress))
        with open_trace(folder, progress) as store:
            results.append({"folder": str(folder), "exit_code": runs[-1].code, **info(store)})
    return runs, results[0] if len(results) == 1 else {"runs": results}


def words_of(words: list[str], command: str) -> list[str]:
    """The program and its arguments, which follow ``--``.

    Raises
    ------
    ValueError : there are none.
    """
    program = words[1:] if words[:1] == ["--"] else words
    if not program:
        raise ValueError(f"there is no command to run, as in: phasewright {command} -- mpirun -n 8 ./app")
    return program


def lines(runs: list[Recorded], facts: JSON) -> list[str]:
    """What was recorded, as the user reads it."""
    results = facts.get("runs", [facts])
    result = []
    for one, fact in zip(runs, results, strict=True):
        use = fact["utilization"]
        mean = mean_number(use["mean"], use["processors"])
        result.append(
            f"{one.folder}: {fact['totals']['events']} events in {fact['duration_s']:.4g} s, "
            f"on average {mean} of {use['processors']} processors computing"
        )
    names = " ".join(str(one.folder) for one in runs)
    if not can_show():
        result.append(f"open it with: phasewright {names}")
    if len(runs) > 1:
        result.append(f"beside each other: phasewright compare {names}")
    return result


def can_show() -> bool:
    """Whether a window can be opened here."""
    from desktop.display import obstacle

    return not obstacle()

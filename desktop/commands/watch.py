"""``phasewright watch``: run an MPI program and see its curve grow, or follow one that runs already."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from desktop import stopping
from desktop.commands.record import can_show, lines, words_of
from desktop.commands.run_options import adder
from desktop.commands.terminal import DONE, FAILED, terminal_progress
from desktop.core.units import mean_number, trimmed
from desktop.printing import printable

if TYPE_CHECKING:
    from desktop.core.phases import PhaseFit
    from desktop.data.following import Followed

_BLOCKS = " ▁▂▃▄▅▆▇█"
#: Seconds between two looks.
_INTERVAL = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.usage = "phasewright watch [-o FOLDER] [--text] (-- COMMAND [ARGUMENT ...] | FOLDER)"
    add = adder(parser)
    add("-o --output FOLDER", "where it is recorded (default: PROGRAM.recorded, made here)", type=Path)
    add("--text", "a picture in the terminal instead of a window")
    parser.add_argument(
        "program",
        nargs=argparse.REMAINDER,
        metavar="-- COMMAND | FOLDER",
        help="as in: -- mpirun -n 8 ./app; or a folder that a run is recorded into",
    )


def main(options: argparse.Namespace) -> int:
    """Exit codes as of ``record``."""
    from desktop.data.recording import new_folder

    command, folder = _command_or_folder(options)
    if command is not None:
        folder = options.output or new_folder(command, Path.cwd())
    assert folder is not None
    if options.text or not can_show():
        return _in_terminal(command, folder)
    from desktop.ui.windows import run as run_window

    return run_window([], watch=(folder, command))


def _command_or_folder(options: argparse.Namespace) -> tuple[list[str] | None, Path | None]:
    if options.program[:1] == ["--"] or len(options.program) != 1:
        return words_of(options.program, "watch"), None
    if not Path(options.program[0]).is_dir():
        if shutil.which(options.program[0]) is None:
            raise ValueError(
                f"there is no folder {printable(options.program[0])} to follow; "
                "a program stands behind --, as in: phasewright watch -- mpirun -n 8 ./app"
            )
        return options.program, None
    if options.output is not None:
        raise ValueError("a folder that is only followed is not recorded, leave out --output")
    return None, Path(options.program[0])


def _in_terminal(command: list[str] | None, folder: Path) -> int:
    from desktop.data.following import Followed, Follower
    from desktop.data.info import info
    from desktop.data.opening import open_trace
    from desktop.data.recording import Recorded, record
    from desktop.progress import Progress

    follower, followed, recording = Follower(folder), Followed(), None
    progress = Progress()
    # The picture is redrawn in place, so the output of the program goes to a file.
    output = folder.with_name(f"{folder.name}.out") if sys.stdout.isatty() and command is not None else None
    drawn = 0
    with ThreadPoolExecutor(1) as beside:
        if command is not None:
            recording = beside.submit(record, command, folder, progress, output)
        elif Follower(folder).look() is None:
            print(f"waiting for what is recorded into {folder}", file=sys.stderr)
        try:
            while True:
                over = recording is not None and recording.done()
                look = follower.look() if folder.is_dir() else None
                followed = look or followed
                whole = 0 < followed.expected <= followed.processes == followed.ended
                if look is not None:
                    drawn = _draw(followed, drawn)
                if over or (recording is None and whole):
                    break
                stopping.check()
                time.sleep(_INTERVAL)
        finally:
            progress.cancel()
    recorded = Recorded(folder, 0) if recording is None else recording.result()
    with terminal_progress() as importing, open_trace(folder, importing) as store:
        facts = info(store)
    for line in lines([recorded], facts):
        print(line)
    if output is not None:
        print(f"what the program printed is in {output}")
    if recorded.code:
        print(f"phasewright: the program ended with exit code {recorded.code}", file=sys.stderr)
        return FAILED
    return DONE


def _draw(followed: Followed, above: int) -> int:
    """Draw over the last picture on a terminal; one line elsewhere. How many lines there are now."""
    size = shutil.get_terminal_size() if sys.stdout.isatty() else None
    text = picture(followed, size.columns, size.lines) if size else [summary(followed)]
    if above and size:
        print(f"\x1b[{above}F\x1b[J", end="")
    print("\n".join(text), flush=True)
    return len(text)


def summary(followed: Followed) -> str:
    """The run so far in one line."""
    curve, computing = followed.curve, ""
    if curve is not None:
        mean = mean_number(curve.mean, curve.capacity)
        computing = f", {mean} of {curve.capacity:g} processors computing"
    calls = ", ".join(f"{name} {trimmed(spent, 3)} proc·s" for name, _, spent in followed.calls[:3])
    return printable(
        f"{followed.latest_s:.1f} s: {followed.processes} of {followed.expected} processes, "
        f"{followed.records} records{computing}{'; ' + calls if calls else ''}"
    )


def picture(followed: Followed, wide: int, high: int) -> list[str]:
    """The curve as lines of characters, with the phases below it, within so many columns and rows.

    Each character shows the mean of its part of the run.
    """
    from desktop.workbench.watching import phases_so_far

    curve = followed.curve
    wide, high = max(20, min(wide, 160)), max(3, min(high - 5, 12))
    if curve is None:
        return [summary(followed)[:wide]]
    mean = curve.means(wide - 6)
    top = curve.capacity or 1.0
    eighths = [round(8 * high * min(v / top, 1.0)) for v in mean.tolist()]
    rows = []
    for row in range(high - 1, -1, -1):
        label = f"{top:5.4g}" if row == high - 1 else f"{0:5d}" if row == 0 else " " * 5
        rows.append(label + " " + "".join(_BLOCKS[max(0, min(8, e - 8 * row))] for e in eighths))
    fit = phases_so_far(curve, "constant", None)
    rows.append(" " * 6 + _below(fit, wide - 6))
    rows.append(f"      phases: {', '.join(f'{v:.3g}' for v in fit.coefficients[:, 0])}"[:wide])
    return [*rows, summary(followed)[:wide]]


def _below(fit: PhaseFit, wide: int) -> str:
    """Breakpoints where they are, the number of each phase behind the one before it."""
    line = ["─"] * wide
    for k, t in enumerate(fit.breaks[:-1].tolist(), 1):
        at = min(wide - 1, int((t - fit.breaks[0]) / (fit.breaks[-1] - fit.breaks[0]) * wide))
        for i, sign in enumerate(f"|{k}"[: wide - at]):
            line[at + i] = sign
    return "".join(line)

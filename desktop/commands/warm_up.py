"""``warm-up``: compile what the first trace of each format would wait for."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from desktop.commands.terminal import DONE, terminal_progress
from desktop.progress import Progress, Share

if TYPE_CHECKING:
    from desktop.data.store import TraceStore


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--attached", action="store_true", help="end with the end of standard input, and tell how far it is"
    )


def run(options: argparse.Namespace, progress: Progress) -> list[str]:
    """What was done, as the user reads it."""
    from desktop.data.warming import alone, needed

    if not needed():
        return ["all kernels are compiled already, or cannot be kept here"]
    if hasattr(os, "nice"):
        with suppress(OSError):
            os.nice(19)
    if options.attached:
        threading.Thread(target=_end_with_input, daemon=True).start()
    with alone() as mine:
        if not mine:
            return ["another process compiles the kernels already"]
        compiled = _compile(progress, options.attached)
    return [f"{compiled} kernels were compiled"]


def _end_with_input() -> None:
    """End this process with its standard input, which closes when the process that started it ends."""
    import _thread
    import time

    with suppress(OSError, ValueError):
        while sys.stdin.buffer.read(1 << 12):
            pass
    _thread.interrupt_main()
    time.sleep(10)
    os._exit(1)


def _compile(progress: Progress, tell: bool) -> int:
    """Open and draw each small trace as the window does; the number of kernels compiled."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from desktop.core.compiler import watch
    from desktop.data.atomic import scratch_folder
    from desktop.data.opening import open_trace
    from desktop.data.warming import traces

    compiled = [0]

    def count(number: int, more: bool) -> None:
        compiled[0] = number

    stop = watch(count)
    try:
        with scratch_folder() as folder:
            places = traces(folder)
            for number, place in enumerate(places):
                title = f"trace {number + 1} of {len(places)}"
                if tell:
                    print(f"{number / len(places):.3f} {title}", flush=True)
                share = Share(progress, number / len(places), (number + 1) / len(places))
                with open_trace(place, share, output=folder / f"{number}.h5") as store:
                    _look_at(store, folder / "window.png")
    finally:
        stop()
    return compiled[0]


def _look_at(store: TraceStore, picture: Path) -> None:
    from desktop.core import bases
    from desktop.core.phases import fit
    from desktop.core.spaces import Basis
    from desktop.data.statistics import Statistics
    from desktop.data.utilization import build
    from desktop.ui.snapshot import snapshot

    snapshot(store, picture, n=3, model="mixed", size=(1000, 700))
    use = build(store)
    curve = use.curve()
    for space in bases.TABLE:
        fit(
            curve, 2, space.model, basis=Basis(space.model, 1 / curve.duration if space.scale else 0.0)
        ).value(0.0)
    Statistics(store).ranges([curve.span], use, replay=True)


def main(options: argparse.Namespace) -> int:
    with terminal_progress() as progress:
        words = run(options, progress)
    print("\n".join(words))
    return DONE

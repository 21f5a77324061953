"""``phasewright snapshot``: the window in a picture, without a display."""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path

from desktop.commands.phases import print_phase_table
from desktop.commands.run_options import add_curve, add_model, add_span, adder, open_settled, settle, span_of
from desktop.commands.terminal import outcome
from desktop.remote import named


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    add = adder(parser)
    add("file FILE", type=named)
    add("-o --output OUT.png", type=_picture, required=True)
    add_model(parser, "phases (default: the suggested number)", seconds=True)
    add_curve(parser)
    add("--track KIND[:NAME]", "a curve to be drawn below (repeat it)", action="append", default=[])
    add_span(parser)
    add("--size WxH", type=_size, default=(1600, 1000))
    add("--theme", choices=("light", "dark"), default="light")


def _picture(text: str) -> Path:
    path = Path(text)
    if path.suffix.lower() not in ("", ".png"):
        raise argparse.ArgumentTypeError(f"{text!r} is not the name of a PNG picture, end it in .png")
    return path


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.lower().partition("x")
    if not (
        width.isdigit() and height.isdigit() and 320 <= int(width) <= 16384 and 240 <= int(height) <= 16384
    ):
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 1600x1000 (320x240 to 16384x16384)")
    return int(width), int(height)


def main(options: argparse.Namespace) -> int:
    os.environ["QT_QPA_PLATFORM"] = "offscreen"  # the same pixels as on a screen, and none is needed
    from desktop.core.phase_stats import phase_table
    from desktop.ui.snapshot import snapshot

    settle(options)
    with open_settled(options) as store:
        curve, model = snapshot(
            options.file if options.project else store, options.output, options.n, options.model,
            options.size, options.theme, span_of(options, (-math.inf, math.inf)), options.curve,
            options.track, options.seconds, options.also,
        )  # fmt: skip
        size = f"{options.size[0]}x{options.size[1]}"
        print(f"The window, {size}, is in {options.output}; the phases it shows:")
        print_phase_table(model, phase_table(curve, model), curve.quantity)
        return outcome(store)

"""``serve``: serve a Phasewright on another machine, which calls this over ssh."""

from __future__ import annotations

import argparse
import os
import sys

from desktop.commands.terminal import DONE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def main(_: argparse.Namespace) -> int:
    from desktop.data.serving import Service

    # Whatever else prints must not come between frames.
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    Service(sys.stdin.buffer, sink).run()
    return DONE

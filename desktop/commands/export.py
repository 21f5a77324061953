"""``phasewright export``: a trace in another program's format."""

from __future__ import annotations

import argparse
from pathlib import Path

from desktop.commands.run_options import add_formats, adder, open_file
from desktop.commands.terminal import outcome, print_json, terminal_progress
from desktop.data.exporters import EXPORTERS
from desktop.remote import named


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    add = adder(parser)
    add("file FILE", "a trace of any kind that can be imported", type=named)
    add("--to", "the format", choices=EXPORTERS, required=True)
    add("-o --output OUT", "a new folder for its files", type=Path, required=True)
    add("--as-recorded", "do not repair contradicting clocks")
    add_formats(parser, csv=False)


def main(options: argparse.Namespace) -> int:
    from desktop.data.exporters import export

    with open_file(options.file) as store:
        with terminal_progress() as progress:
            written = export(
                store, options.to, options.output, progress, False if options.as_recorded else None
            )
        if options.json:
            print_json({"file": str(written.file), "records": written.records, "left_out": written.left_out})
        else:
            print(f"{options.file}: {written.records} records in {written.file}")
            for kind, count in written.left_out.items():
                print(f"not written: {count} {kind}")
        return outcome(store)

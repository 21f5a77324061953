"""What the program offers, listed from its own tables: commands, panels, figures, formats, words of commands.

`python -m tests.features` adds what is new to ``tests/data/features.txt``, which `tests/test_features.py`
holds: nothing that stands there may be lost.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import desktop.ui
from desktop import cli
from desktop.core.labels import FIGURES
from desktop.data.importers import FORMATS
from desktop.ui.commands import Command
from desktop.ui.panels import panels

LIST = Path(__file__).with_name("data") / "features.txt"


def _commands() -> Iterator[str]:
    """Of every table of commands in `desktop.ui`."""
    for found in pkgutil.walk_packages(desktop.ui.__path__, "desktop.ui."):
        for value in vars(importlib.import_module(found.name)).values():
            if isinstance(value, tuple) and value and all(isinstance(one, Command) for one in value):
                for one in value:
                    yield "\t".join(("command", one.id, *one.keys))


def _words(parser: argparse.ArgumentParser, path: str) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, child in action.choices.items():
                yield f"cli\t{path} {name}"
                yield from _words(child, f"{path} {name}")
        elif action.option_strings:
            yield f"cli\t{path} {action.option_strings[-1]}"


def features() -> set[str]:
    """One line each, its kind first."""
    return {
        *_commands(),
        *(f"panel\t{spec.id}\t{spec.title}" for spec in panels()),
        *(f"figure\t{name}" for name in FIGURES),
        *(f"format\t{name}" for name in FORMATS),
        *_words(cli._parser(), "phasewright"),
    }


if __name__ == "__main__":
    known = set(LIST.read_text(encoding="utf-8").splitlines()) if LIST.exists() else set()
    LIST.write_text("\n".join(sorted(known | features())) + "\n", encoding="utf-8")

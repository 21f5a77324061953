"""No error leaves an override of a Qt event: on Python 3.11 it may end the process."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import desktop.ui

EVENT = re.compile(r"[a-z]\w*Event|event|eventFilter|sizeHint|minimumSizeHint|boundingRect|paint")


def overrides() -> Iterator[tuple[str, bool]]:
    """Every override of an event of Qt in `desktop.ui`, and whether it is guarded."""
    for file in sorted(Path(desktop.ui.__path__[0]).rglob("*.py")):
        for kind in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            for method in kind.body if isinstance(kind, ast.ClassDef) and kind.bases else ():
                if isinstance(method, ast.FunctionDef) and EVENT.fullmatch(method.name):
                    marks = [ast.unparse(mark) for mark in method.decorator_list]
                    yield (
                        f"{file.name}: {kind.name}.{method.name}",
                        any(mark.startswith("guarded") for mark in marks),
                    )


def test_every_override_of_an_event_is_guarded() -> None:
    found = dict(overrides())
    assert len(found) > 100
    assert [name for name, safe in found.items() if not safe] == []

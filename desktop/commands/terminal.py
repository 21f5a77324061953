"""Output common to all commands: progress, JSON, CSV, what was lost, exit codes."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from desktop import stopping
from desktop.core.plain import JSON, plain_values
from desktop.core.units import si
from desktop.errors import sentence
from desktop.printing import TerminalProgress, as_csv
from desktop.progress import Cancelled

if TYPE_CHECKING:
    from desktop.data.columns import Column, TableRow
    from desktop.data.store import TraceStore

#: What a command found: for ``--json``, and as lines for a person.
Answer: TypeAlias = tuple[JSON, list[str]]
#: Makes a part of a command of its name, what it does and a text; gives what adds its arguments.
Part: TypeAlias = Callable[[str, Callable[[argparse.Namespace], Answer], str], Callable[..., None]]
DONE, FAILED, USAGE, LOSSY, GATE = 0, 1, 2, 3, 4


def without_display() -> None:
    """Prepare drawing without a display: fonts need a QGuiApplication."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from desktop.ui.app import application

    application()


@contextlib.contextmanager
def terminal_progress() -> Iterator[TerminalProgress]:
    progress = TerminalProgress()
    try:
        yield progress
    finally:
        progress.clear()


def written() -> str:
    """What this command has written before it was stopped, in words; "" if nothing."""
    files = [str(path) for path in stopping.complete if path.exists()]
    more = f" and {len(files) - 5} more" if len(files) > 5 else ""
    return f"complete {'is' if len(files) == 1 else 'are'} {', '.join(files[:5])}{more}" if files else ""


def error_words(error: BaseException) -> str:
    if isinstance(error, Cancelled | KeyboardInterrupt):
        return f"stopped, {str(error) or written() or 'nothing was written'}"
    return sentence(error) or (
        f"an error of the program itself ({type(error).__name__}: {' '.join(str(error).split())}), "
        "repeat with --debug and report what it prints"
    )


def outcome(store: TraceStore) -> int:
    """0 or 3, saying on standard error what was lost."""
    for one in store.report:
        if one.severity in ("loss", "error"):
            place = f" ({one.where})" if one.where else ""
            print(f"phasewright: {store.source.name}: {one.count} x {one.text}{place}", file=sys.stderr)
    return LOSSY if store.report.lossy else DONE


def print_doubt(store: TraceStore) -> None:
    """Print how much of a curve may be wrong because of lost records, if any."""
    from desktop.data.consistency import doubt

    lacking = doubt(store)
    if lacking is not None:
        print(lacking.sentence)


def print_json(value: object) -> None:
    json.dump(plain_values(value), sys.stdout, indent=1, allow_nan=False)
    print()


def show(
    options: argparse.Namespace,
    result: object,
    rows: Callable[[], Sequence[Mapping[str, object]]],
    lines: Callable[[], Iterable[str]],
) -> None:
    """Print the result as JSON, as CSV with the same keys (`rows`), or as `lines`, as the options say."""
    if options.json:
        print_json(result)
    elif getattr(options, "csv", False):
        table = rows()
        print_csv(tuple(table[0]), (row.values() for row in table))
    else:
        for line in lines():
            print(line)


def table_lines(columns: Sequence[Column], rows: Sequence[TableRow], *titles: str) -> list[str]:
    """A table of the window as lines of text: all of its columns, or those with these `titles`."""
    from desktop.data.columns import aligned, table

    return aligned(table(columns, rows)[0], [one for one in columns if not titles or one.title in titles])


def row_lines(rows: Sequence[Mapping[str, object]], *columns: Column) -> list[str]:
    """Rows as ``--json`` has them as lines of text: `Column.name` is the key."""
    from desktop.data.columns import aligned, columnar

    cells = {one.source: [row.get(one.source) for row in rows] for one in columns}
    return aligned(columnar(cells), columns)


def picked(one: object, names: str) -> JSON:
    """Attributes of an object as JSON: `names` with blanks between, ``key=attribute`` where they differ."""
    pairs = (name.partition("=") for name in names.split())
    return {key: getattr(one, attribute or key) for key, _, attribute in pairs}


def print_csv(header: tuple[str, ...], rows: Iterable[Iterable[object]]) -> None:
    def lines() -> Iterator[Sequence[object]]:
        yield header
        for row in rows:
            stopping.check()
            yield plain_values(list(row))

    sys.stdout.writelines(as_csv(lines()))


def column(values: Sequence[float]) -> list[str]:
    """Values as `si` writes them, all with the prefix of the largest."""
    most = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    return [si(value, largest=most) for value in values]

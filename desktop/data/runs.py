"""Tables of trials: run sheets out, responses in.

One column per factor (``-1``/``+1``, ``-``/``+``, ``0``/``1`` or ``1``/``2``), then one response column per
replicate, or one row per trial with a column ``replicate``. Column order does not matter, other columns are
kept by whoever wrote them and ignored here.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from desktop.core.design import Design, RunSheet
from desktop.core.effects import Trials, trials
from desktop.data.atomic import write_text
from desktop.errors import TableError

_LARGEST, _ROWS = 64 << 20, 1_000_000
#: Columns that are neither factor nor response.
_KEPT = frozenset(
    (
        "run", "run_order", "order", "trial", "replicate", "block", "treatment", "attempt", "status", "start",
        "seed", "line", "note", "delay", "loadavg_1min", "other_busy_cores", "involuntary_switches",
    )
)  # fmt: skip
#: How responses are usually called, the first that is there is taken.
_RESPONSES = ("response", "wall", "wall_s", "time", "time_s", "seconds", "elapsed", "y")
#: Pairs of levels: low, high.
_LEVELS = (("-", "+"), ("-1", "1"), ("-1", "+1"), ("0", "1"), ("1", "2"))


@dataclass(frozen=True, eq=False)
class RunTable:
    """What was read. `response`: its name; `others`: columns that could be the response as well.
    `choices`: columns by whose values rows could be chosen (`where`), with these values."""

    data: Trials
    response: str
    others: tuple[str, ...]
    replicates: int
    choices: tuple[tuple[str, tuple[str, ...]], ...] = ()


def read_runs(
    path: Path,
    *,
    response: str | None = None,
    factors: Sequence[str] | None = None,
    where: dict[str, str] | None = None,
) -> RunTable:
    """Trials from a CSV file.

    Parameters
    ----------
    response : its column; None: the one that is called so, or the only number that is no factor.
    factors : their columns; None: every column of two levels.
    where : only rows with these values.

    Raises
    ------
    TableError : it cannot be read, a level is none, or the response is not clear.
    """
    header, rows = _rows(Path(path))
    rows = _counting(header, rows)
    choices = _choices(header, [row for _, row in rows])
    if factors is None:
        for k, name in enumerate(header):
            if name != response:
                _meant(name, rows, k, path)
    for name, value in (where or {}).items():
        at = _column(header, name, path)
        rows = [(line, cells) for line, cells in rows if cells[at] == value]
    if not rows:
        raise TableError("holds no trial", file=path, hint="give one row a trial, under a heading")
    cells = {name: [row[k] for _, row in rows] for k, name in enumerate(header)}
    chosen = list(factors) if factors is not None else [n for n in header if _is_factor(n, cells[n])]
    if response in chosen and factors is None:
        chosen.remove(str(response))
    if not chosen:
        raise TableError(
            "has no column of two levels", file=path, hint="a factor's column holds - and +, or -1 and 1"
        )
    for name in chosen:
        _column(header, name, path)
    x = np.array([_levels(name, cells[name], rows, path) for name in chosen]).T
    numbers = [n for n in header if n not in chosen and n.casefold() not in _KEPT and _is_number(cells[n])]
    columns, others = _responses(header, numbers, response, path)
    y = np.array([[_value(cells[name][i]) for name in columns] for i in range(len(rows))])
    block = np.zeros(len(rows), np.int64)
    for name in sorted(header, key=str.casefold, reverse=True):
        if name.casefold() in ("replicate", "block"):
            _, block = np.unique(cells[name], return_inverse=True)
            break
    labels = [_label(header, row) for _, row in rows]
    count = len(columns)
    data = trials(
        chosen,
        np.repeat(x, count, axis=0),
        y.ravel(),
        np.tile(np.arange(count), len(rows)) if count > 1 else block,
        [label if count == 1 else f"{label}, {name}" for label in labels for name in columns],
    )
    return RunTable(data, " ".join(columns), tuple(others), int(np.unique(data.block).size), choices)


def read_effects(path: Path) -> dict[str, tuple[float, float]]:
    """Effect and standard error by name, from a table with columns for term (or factor), effect, and se.

    Raises
    ------
    TableError : the columns are missing or hold no numbers.
    """
    header, rows = _rows(Path(path))
    plain = [name.casefold() for name in header]
    term = next((plain.index(n) for n in ("term", "factor", "effect_of") if n in plain), None)
    wanted = ("value", "effect", "main_effect", "main_effect_s", "half_effect")
    value = next((plain.index(n) for n in wanted if n in plain), None)
    if term is None or value is None:
        raise TableError(
            "is no table of effects", file=path, where="line 1", hint="it needs columns term, value and se"
        )
    se = next((plain.index(n) for n in ("se", "std_error", "se_main_effect_s") if n in plain), None)
    found = {}
    for line, cells in rows:
        try:
            error = float(cells[se]) if se is not None and cells[se] else math.nan
            found[cells[term]] = (float(cells[value]), error)
        except ValueError:
            raise TableError(
                f"{header[value]} of {cells[term]} is {cells[value]!r}, which is no number",
                file=path,
                where=f"line {line}",
            ) from None
    return found


def is_runs(path: Path) -> bool:
    """Whether a file begins like a table of runs: a heading, a column of - and + (or -1 and 1), a number."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(1 << 16).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return False
    lines = [line for line in head.splitlines() if line.strip() and not line.startswith("#")][:400]
    if len(lines) < 3:
        return False
    sign = max((",", ";", "\t"), key=lines[0].count)
    # The last line may have been cut.
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines[:-1], delimiter=sign)]
    columns = [[row[k] for row in rows[1:] if k < len(row)] for k in range(len(rows[0]))]
    return any(set(c) in ({"-", "+"}, {"-1", "1"}, {"-1", "+1"}) for c in columns) and any(
        _is_number(c) for c in columns
    )


def holds_experiment(path: Path) -> bool:
    """Whether this is an experiment (its folder or description) or a table of runs."""
    from desktop.data.experiment import DESCRIPTION

    path = Path(path)
    if path.is_dir():
        return (path / DESCRIPTION).is_file()
    return path.name == DESCRIPTION or is_runs(path)


def is_effects(path: Path) -> bool:
    """Whether a file looks like a table of effects rather than of runs."""
    try:
        read_effects(path)
    except TableError:
        return False
    return True


def _rows(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    try:
        if path.stat().st_size > _LARGEST:
            raise TableError(
                f"is larger than {_LARGEST >> 20} MB", file=path, hint="choose a table of trials"
            )
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise TableError(f"cannot be read ({error.strerror})", file=path) from None
    except UnicodeDecodeError:
        raise TableError("is no text", file=path, hint="choose a table of trials (CSV)") from None
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    sign = max((",", ";", "\t"), key=first.count)
    reader = csv.reader(io.StringIO(text), delimiter=sign)
    found: list[tuple[int, list[str]]] = []
    try:
        for cells in reader:
            if cells and not cells[0].startswith("#") and any(cell.strip() for cell in cells):
                found.append((reader.line_num, [cell.strip() for cell in cells]))
            if len(found) > _ROWS:
                raise TableError(f"has more than {_ROWS} rows", file=path)
    except csv.Error as error:
        raise TableError(f"cannot be read ({error})", file=path, where=f"line {reader.line_num}") from None
    if not found:
        raise TableError("holds no table", file=path, hint="the first line names the columns")
    header = found[0][1]
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise TableError(f"has two columns {twice!r}", file=path, where=f"line {found[0][0]}")
    rows = [(line, cells + [""] * (len(header) - len(cells))) for line, cells in found[1:]]
    return header, rows


def _column(header: list[str], name: str, path: Path) -> int:
    if name not in header:
        raise TableError(
            f"has no column {name!r}", file=path, where="line 1", hint=f"its columns are {', '.join(header)}"
        )
    return header.index(name)


def _is_factor(name: str, cells: list[str]) -> bool:
    found = set(cells)
    return name.casefold() not in _KEPT and len(found) == 2 and any(found == set(pair) for pair in _LEVELS)


def _meant(name: str, rows: list[tuple[int, list[str]]], at: int, path: Path) -> None:
    """Refuse a column that looks like a factor's and is none: taken for something else, its effect would be
    counted as that of others."""
    cells = [row[at] for _, row in rows]
    found = set(cells)
    known = {level for pair in _LEVELS for level in pair}
    if name.casefold() in _KEPT or _is_factor(name, cells) or not found:
        return
    signs = bool(found & {"-", "+"}) and (found <= known or {"-", "+"} <= found)
    ones = len(found) <= 3 and "-1" in found and bool(found & {"1", "+1"})
    if found == {"-1"} or found == {"+1"} or signs or ones:
        if len(found) == 1:
            raise TableError(
                f"{name} is {cells[0]!r} in every trial, so it has no effect to see",
                file=path,
                where=f"line {rows[0][0]}",
                hint="take the column out, or name the factors",
            )
        _levels(name, cells, rows, path)


def _counting(header: list[str], rows: list[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """Of the journal of an experiment the trials that count: the quiet one, or the quietest, of every trial's
    attempts, none that failed or that the user has excluded."""
    if not {"order", "attempt", "status", "other_busy_cores"} <= set(header):
        return rows
    order, attempt, status, busy = map(header.index, ("order", "attempt", "status", "other_busy_cores"))
    out = {(row[order], row[attempt]) for _, row in rows if row[status] == "excluded"}
    best: dict[str, tuple[int, list[str]]] = {}
    for line, row in rows:
        if row[status] not in ("ok", "disturbed") or (row[order], row[attempt]) in out:
            continue
        before = best.get(row[order])
        if before is None or (row[status] != "ok", _value(row[busy])) < (
            before[1][status] != "ok",
            _value(before[1][busy]),
        ):
            best[row[order]] = (line, row)
    return list(best.values())


def _levels(name: str, cells: list[str], rows: list[tuple[int, list[str]]], path: Path) -> list[float]:
    found = set(cells)
    for low, high in _LEVELS:
        if found <= {low, high} and (len(found) == 2 or low == "-1" or low == "-"):
            return [1.0 if cell == high else -1.0 for cell in cells]
    usual = max(_LEVELS, key=lambda pair: sum(cell in pair for cell in cells))
    bad = next((i for i, cell in enumerate(cells) if cell not in usual), 0)
    if len(found) == 1:
        what = f"{name} is {cells[0]!r} in every trial, so it has no effect to see"
    else:
        what = f"{name} is {cells[bad]!r}, while other rows have other signs"
    raise TableError(
        what,
        file=path,
        where=f"line {rows[bad][0]}",
        hint="write - and +, or -1 and 1, or 0 and 1 throughout",
    )


def _value(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan


def _is_number(cells: list[str]) -> bool:
    return any(math.isfinite(_value(cell)) for cell in cells)


def _responses(
    header: list[str], numbers: list[str], wanted: str | None, path: Path
) -> tuple[list[str], list[str]]:
    """The response's columns (several: replicates), and what else could have been meant."""
    if wanted is not None:
        if wanted in header:
            return [wanted], [n for n in numbers if n != wanted]
        same = [n for n in numbers if re.fullmatch(re.escape(wanted) + r"[ _.-]?\d+", n)]
        if same:
            return same, [n for n in numbers if n not in same]
        _column(header, wanted, path)
    if not numbers:
        raise TableError("has no column of responses", file=path, hint="add one number to every trial")
    stems: dict[str, list[str]] = {}
    for name in numbers:
        numbered = re.fullmatch(r"(.*?)[ _.-]?\d+", name)
        stems.setdefault(numbered[1].casefold() if numbered else name, []).append(name)
    for stem, names in stems.items():
        if len(names) > 1 and stem in ("response", "r", "rep", "replicate", "run", "y", "wall", "time"):
            return names, [n for n in numbers if n not in names]
    plain = {name.casefold(): name for name in numbers}
    for known in _RESPONSES:
        if known in plain:
            return [plain[known]], [n for n in numbers if n != plain[known]]
    begun = [n for n in numbers if n.casefold().startswith("response")]
    if begun or len(numbers) == 1:
        name = (begun or numbers)[0]
        return [name], [n for n in numbers if n != name]
    raise TableError(
        f"has several columns that could be the response: {', '.join(numbers)}",
        file=path,
        hint="say which one",
    )


def _choices(header: list[str], rows: list[list[str]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Columns of a few different words or sizes."""
    found = []
    for k, name in enumerate(header):
        values = sorted({row[k] for row in rows if row[k]})
        plain = name.casefold() in _KEPT - {"delay", "status", "note"}
        if 2 <= len(values) <= 12 and not plain and 4 * len(values) <= len(rows):
            found.append((name, tuple(values)))
    return tuple(found)


def _label(header: list[str], row: list[str]) -> str:
    for name in ("trial", "run", "run_order", "order", "treatment"):
        if name in header and row[header.index(name)]:
            return row[header.index(name)]
    return str(row[0])


def write_sheet(path: Path, design: Design, sheet: RunSheet) -> None:
    """The trials in their order, with an empty column for the response."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["order", "replicate", "treatment", *design.factors, "response"])
    array = design.levels.min() >= 0
    for place, (replicate, treatment) in enumerate(zip(sheet.replicate, sheet.treatment, strict=True), 1):
        levels = [str(v) if array else f"{v:+d}" for v in design.levels[treatment]]
        writer.writerow([place, replicate + 1, treatment + 1, *levels, ""])
    write_text(path, out.getvalue())

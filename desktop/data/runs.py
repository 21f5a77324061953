"""Tables of trials: writing run sheets, reading responses.

One column per factor (``-1``/``+1``, ``-``/``+``, ``0``/``1`` or ``1``/``2``; beside such a column any two
whole numbers, such as ``8``/``24`` threads; for an orthogonal array numbers of levels or sizes), then one
response column per replicate, or one row per trial with a column ``replicate``. Column order does not matter,
other columns are ignored here. A column ``delay`` contains the size of the delay with which a row was
measured. From the journal of an experiment only the trials that count are read, and the halves of a fold as
described beside it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from desktop.core.arrays import Flags, Floats, Ints
from desktop.core.design import Design, RunSheet
from desktop.core.effects import Trials
from desktop.data.frames import first_cells, headed, read_frame, write_frame
from desktop.data.naming import DESCRIPTION
from desktop.data.reading import head
from desktop.errors import TableError

if TYPE_CHECKING:
    from desktop.data.experiment import Experiment, Factor

#: Columns that are neither factor nor response.
_ROLES = frozenset(
    (
        "run", "run_order", "order", "trial", "replicate", "block", "treatment", "attempt", "status", "start",
        "seed", "line", "note", "delay", "loadavg_1min", "other_busy_cores",
        "other_busy_limit", "clock_mhz", "involuntary_switches",
    )
)  # fmt: skip
#: Usual names of responses; the first one found is taken.
_RESPONSES = ("response", "wall", "wall_s", "time", "time_s", "seconds", "elapsed", "y")
#: Other measurements of a run, which are not conditions on which the response could depend.
_MEASURED = frozenset(
    (*_RESPONSES, "cpu", "cpu_s", "user", "user_s", "system", "sys", "sys_s", "memory", "rss")
)
#: Columns of a journal about the machine.
_NOTED = frozenset(("load", "loadavg_1min", "other_busy_cores", "clock_mhz", "involuntary_switches"))
#: Pairs of levels: low, high.
_LEVELS = (("-", "+"), ("-1", "1"), ("-1", "+1"), ("0", "1"), ("1", "2"))
#: Most levels of a factor in an array.
_MOST_LEVELS = 16
#: Columns with the delayed place, and with the number of processors.
_PLACES = ("factor", "place")
_PROCESSORS = ("processors", "procs", "p", "threads", "ranks", "np")
#: Values of such a column for a trial without a delay.
_NOWHERE = frozenset(("", "none", "base", "-", "unperturbed"))

Rows = list[tuple[int, list[str]]]
#: ``runs``: factors at two levels; ``array``: factors at several; ``places``: one place at a time, with
#: several sizes of the delay; ``effects``: not trials, but effects computed from them.
Kind = Literal["runs", "array", "places", "effects"]


@dataclass(frozen=True, eq=False)
class RunTable:
    """The contents of a table. `response`: its name; `others`: columns that could be the response as well.
    `choices`: columns by whose values rows could be selected (`where`), with these values. `array`: whether x
    contains levels or sizes, as from `read_array`. `delay`: (N,) size of each trial's delay, 0 if there was
    none; None without such a column, or if rows must be selected by others first. `settings`: factors whose
    levels the table describes, by name. `refused`: a note about responses that are not numbers and their
    places; "" for none."""

    data: Trials
    response: str
    others: tuple[str, ...]
    replicates: int
    choices: tuple[tuple[str, tuple[str, ...]], ...] = ()
    array: bool = False
    delay: Floats | None = None
    settings: Mapping[str, Factor] = field(default_factory=dict)
    refused: str = ""

    def unread(self, covariate: str = "") -> str:
        """A note on numeric columns that are no factor, no response and no `covariate`; "" if none."""
        left = [name for name in self.others if name in self.data.beside and name != covariate]
        if not left:
            return ""
        return (
            f"{', '.join(left)}: no factor, which would have two levels (- and +, or two whole numbers), "
            "both run with the same settings of the others; what was noted of a run can be used as a "
            "covariate"
        )

    def only(self, keep: Flags) -> RunTable:
        """The table with only these trials (N,)."""
        return replace(
            self, data=self.data.only(keep), delay=None if self.delay is None else self.delay[keep]
        )


@dataclass(frozen=True)
class _Sheet:
    """The cells of a table as texts: the names of its columns, and its rows with their lines."""

    path: Path
    header: list[str]
    rows: Rows
    #: columns by whose values rows were or could be selected, with these values
    choices: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def read(cls, path: Path) -> _Sheet:
        cells = read_frame(path)
        sheet = cls(path, *headed(cells))
        if not sheet.header:
            raise sheet.refuse("holds no table", hint="the first line names the columns")
        if len(set(sheet.header)) < len(sheet.header):
            twice = next(name for name in sheet.header if sheet.header.count(name) > 1)
            raise sheet.refuse(f"has two columns {twice!r}", int(cells.index[0]))
        return sheet

    @cached_property
    def cells(self) -> dict[str, list[str]]:
        """The column of each name."""
        return {name: [row[k] for _, row in self.rows] for k, name in enumerate(self.header)}

    def refuse(self, what: str, line: int = 0, hint: str = "") -> TableError:
        """An error about the table, with the line."""
        return TableError(what, file=self.path, where=f"line {line}" if line else "", hint=hint)

    def column(self, name: str) -> int:
        if name not in self.header:
            raise self.refuse(f"has no column {name!r}", 1, f"its columns are {', '.join(self.header)}")
        return self.header.index(name)

    def size(self, column: int, line: int, row: list[str]) -> float:
        """A size of delay or a number of processors; 0 if the cell is empty."""
        value = _value(row[column]) if row[column] else 0.0
        if not (math.isfinite(value) and value >= 0):
            raise self.refuse(f"{self.header[column]} is {row[column]!r}, which is no size", line)
        return value

    def where(self, where: dict[str, str] | None) -> _Sheet:
        """The rows with these values."""
        conditions = [(self.column(name), value) for name, value in (where or {}).items()]
        rows = [(line, row) for line, row in self.rows if all(row[at] == value for at, value in conditions)]
        if not rows:
            raise self.refuse("holds no trial", hint="give one row a trial, under a heading")
        choices = []
        for name, cells in self.cells.items():
            values = sorted({cell for cell in cells if cell})
            plain = name.casefold() in _ROLES - {"delay", "status", "note"}
            if 2 <= len(values) <= 12 and not plain and 4 * len(values) <= len(cells):
                choices.append((name, tuple(values)))
        return replace(self, rows=rows, choices=tuple(choices))

    @property
    def is_journal(self) -> bool:
        """Whether it is the journal of an experiment."""
        return {"order", "attempt", "status", "other_busy_cores"} <= set(self.header)

    @property
    def counting(self) -> _Sheet:
        """From the journal of an experiment the trials that count: of the attempts at each trial the quiet or
        the quietest one, without failed or excluded ones."""
        if not self.is_journal:
            return self
        columns = ("order", "attempt", "status", "other_busy_cores")
        order, attempt, status, busy = map(self.header.index, columns)
        out = {(row[order], row[attempt]) for _, row in self.rows if row[status] == "excluded"}
        best: dict[str, tuple[int, list[str]]] = {}
        for line, row in self.rows:
            if row[status] not in ("ok", "disturbed") or (row[order], row[attempt]) in out:
                continue
            before = best.get(row[order])
            if before is None or (row[status] != "ok", _value(row[busy])) < (
                before[1][status] != "ok",
                _value(before[1][busy]),
            ):
                best[row[order]] = (line, row)
        return replace(self, rows=list(best.values()))


def kind_of(path: Path) -> Kind:
    """The contents of a table, judged by its columns.

    Raises
    ------
    TableError : it cannot be read.
    """
    return _kind(_Sheet.read(Path(path)).counting.cells)


def _kind(cells: dict[str, list[str]]) -> Kind:
    header = list(cells)
    if _effect_columns(header) is not None:
        return "effects"
    if any(_is_factor(name, levels) and set(levels) & {"-", "-1"} for name, levels in cells.items()):
        return "runs"
    if _delay_column(header) is not None and any(name.casefold() in _PLACES for name in header):
        return "places"
    # A single column of several levels is a setting, such as the number of threads.
    several = [name for name in _sized(cells) if len(set(cells[name])) > 2]
    return "array" if len(several) > 1 else "runs"


def read_table(
    path: Path, *, response: str | None = None, where: dict[str, str] | None = None, kind: Kind | None = None
) -> RunTable:
    """Trials of any kind. `kind`: None to detect it from the columns.

    Raises
    ------
    TableError : it cannot be read, or holds no trials.
    """
    kind = kind or kind_of(path)
    if kind == "effects":
        raise TableError(
            "holds effects and no trials", file=path, hint="open the trials, and compare with it"
        )
    read = {"runs": read_runs, "array": read_array, "places": read_places}[kind]
    return read(path, response=response, where=where)


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
    response : its column; None: of a journal beside its description the first response of that, else one
        with a usual name, or the only numeric column that is no factor.
    factors : their columns; None: every column with two levels.
    where : only rows with these values.

    Raises
    ------
    TableError : it cannot be read, a level is invalid, or the response is ambiguous.
    ExperimentError : it is a journal, and it or the description beside it cannot be used.
    """
    sheet = _Sheet.read(Path(path)).counting
    experiment = _described(sheet)
    response = response or _first_response(sheet, experiment)
    if factors is None:
        for name in sheet.header:
            if name != response:
                _refuse_factor(name, sheet)
    sheet = sheet.where(where)
    header, cells = sheet.header, sheet.cells
    selected = list(factors) if factors is not None else [n for n in header if _is_factor(n, cells[n])]
    if factors is None:
        selected = [n for n in header if n in {*selected, *_settings(cells, selected)}]
    if response in selected and factors is None:
        selected.remove(str(response))
    if not selected:
        raise sheet.refuse("has no column of two levels", hint="a factor's column holds - and +, or -1 and 1")
    for name in selected:
        sheet.column(name)
    x = np.array([_levels(name, sheet) for name in selected]).T
    numbers = [n for n in header if n not in selected and n.casefold() not in _ROLES and _is_number(cells[n])]
    columns = _responses(sheet, numbers, response)
    delay = None
    at = _delay_column(header)
    if at is not None:
        delay = np.array([_value(row[at] or "0") for _, row in sheet.rows])
        used = {header[at], *selected, *(where or {})}
        free = [name for name, _ in sheet.choices if name not in used]
        # Text may be a comment, or the delay of another factor in every row.
        if free or not (np.isfinite(delay) & (delay >= 0)).all():
            delay = None
    table = _assembled(sheet, selected, x, columns, delay)
    half = None if experiment is None else _halves(sheet, experiment)
    if half is not None:
        table = replace(table, data=replace(table.data, half=np.repeat(half, len(columns[0]))))
    named = {
        name: _setting(name, cells[name])
        for name in selected
        if (set(cells[name]) == {"1", "2"} and name.casefold() in _PROCESSORS)
        or not set(cells[name]) & {"-", "-1", "0", "1"}
    }
    return replace(table, settings=named)


def _setting(name: str, cells: list[str]) -> Factor:
    """The factor of a column of two whole numbers, such as 8 and 24 threads: no delay."""
    from desktop.data.experiment import Factor, Switch

    low, high = sorted(set(cells), key=int)
    return Factor(name, Switch(), means=f"{name}={high}", low_means=f"{name}={low}")


def read_array(
    path: Path,
    *,
    response: str | None = None,
    factors: Sequence[str] | None = None,
    where: dict[str, str] | None = None,
) -> RunTable:
    """Trials of an orthogonal array (NISTIR 5131, table 4), or others with factors at several levels; x are
    the levels or sizes as written. Parameters as for `read_runs`.

    Raises
    ------
    TableError : it cannot be read, a level is no number, or the response is ambiguous.
    ExperimentError : it is a journal, and the description beside it cannot be used.
    """
    sheet = _Sheet.read(Path(path)).counting
    response = response or _first_response(sheet, _described(sheet))
    sheet = sheet.where(where)
    cells = sheet.cells
    selected = list(factors) if factors is not None else _sized(cells)
    selected = [name for name in selected if name != response]
    if not selected:
        hint = "a factor's column holds whole numbers from 0, or sizes"
        raise sheet.refuse("has no column of levels", hint=hint)
    for name in selected:
        at = sheet.column(name)
        for line, row in sheet.rows:
            if not math.isfinite(_value(row[at])):
                raise sheet.refuse(f"{name} is {row[at]!r}, which is no level", line)
    free = [n for n in sheet.header if n not in selected and n.casefold() not in _ROLES]
    numbers = [n for n in free if _is_number(cells[n]) and not _same(n, selected, cells)]
    columns = _responses(sheet, numbers, response)
    x = np.array([[_value(cell) for cell in cells[name]] for name in selected]).T
    return replace(_assembled(sheet, selected, x, columns), array=True)


def read_places(path: Path, *, response: str | None = None, where: dict[str, str] | None = None) -> RunTable:
    """Trials of one place at a time, with a column for the place and one for the size of its delay: x is that
    size at the place and 0 at the others. Parameters as for `read_runs`.

    Raises
    ------
    TableError : it cannot be read, the response is ambiguous, or no trial has a delay.
    """
    sheet = _Sheet.read(Path(path)).where(where)
    header, rows, cells = sheet.header, sheet.rows, sheet.cells
    at = _delay_column(header)
    place = next((k for k, name in enumerate(header) if name.casefold() in _PLACES), None)
    if at is None or place is None:
        raise sheet.refuse("says no place and delay", hint="it needs columns factor and delay")
    free = [n for k, n in enumerate(header) if k not in (at, place) and n.casefold() not in _ROLES]
    columns = _responses(sheet, [n for n in free if _is_number(cells[n])], response)
    none = [row[place].casefold() in _NOWHERE for _, row in rows]
    sizes = [sheet.size(at, line, row) for line, row in rows]
    delay = np.where(none, 0.0, sizes)
    names = sorted({row[place] for (_, row), size in zip(rows, delay, strict=True) if size})
    if not names:
        raise sheet.refuse("has no trial with a delay", hint=f"{header[at]} is its size")
    active = np.array([[row[place] == name for name in names] for _, row in rows])
    table = _assembled(sheet, names, active * delay[:, None], columns, delay)
    return replace(table, array=True)


def _assembled(
    sheet: _Sheet,
    factors: Sequence[str],
    x: Floats,
    columns: tuple[list[str], list[str]],
    delay: Floats | None = None,
) -> RunTable:
    """`columns`: from `_responses`; several columns of responses are replicates."""
    responses, others = columns
    header, rows, cells = sheet.header, sheet.rows, sheet.cells
    count = len(responses)
    named = header[0] not in {*factors, *responses}
    labels = [_label(header, row) or (row[0] if named else f"line {line}") for line, row in rows]
    block = np.zeros(len(rows), np.int64)
    for name in sorted(header, key=str.casefold, reverse=True):
        if name.casefold() in ("replicate", "block"):
            _, block = np.unique(cells[name], return_inverse=True)
            break
    if count > 1:
        block = np.tile(np.arange(count), len(rows))
    data = Trials(
        tuple(factors),
        np.repeat(x, count, axis=0),
        np.array([_value(cells[name][k]) for k in range(len(rows)) for name in responses]),
        block.astype(np.int64),
        tuple(label if count == 1 else f"{label}, {name}" for label in labels for name in responses),
    )
    if count == 1:
        free = set(header) - {*factors, *responses}
        if sheet.is_journal:
            free &= _NOTED  # everything else is plan or response
        noted = [n for n in header if n in free and _is_noted(n, cells[n])]
        data = replace(
            data, beside={n: np.array([_value(cell or "nan") for cell in cells[n]]) for n in noted}
        )
    sizes = None if delay is None else np.repeat(delay, count)
    replicates = int(np.unique(block).size)
    refused = _refused(sheet, responses)
    return RunTable(
        data, " ".join(responses), tuple(others), replicates, sheet.choices, delay=sizes, refused=refused
    )


def _refused(sheet: _Sheet, responses: list[str]) -> str:
    columns = [(name, sheet.header.index(name)) for name in responses]
    words = [
        f"line {line}, column {name}: {row[k][:30]!r}"
        for line, row in sheet.rows
        for name, k in columns
        if row[k] and _number(row[k]) is None
    ]
    if not words:
        return ""
    more = f" and {len(words) - 8} more" if len(words) > 8 else ""
    kind = "are no numbers and count" if len(words) > 1 else "is no number and counts"
    return f"{sheet.path.name}: {'; '.join(words[:8])}{more} {kind} as missing"


def _is_noted(name: str, cells: Sequence[str]) -> bool:
    """Whether a column is a number recorded beside the response, not part of the plan and not a response."""
    some = [cell for cell in cells if cell]
    return name.casefold() not in (_ROLES - _NOTED) | _MEASURED and bool(some) and _is_number(some)


def read_effects(path: Path) -> dict[tuple[float, float], dict[str, tuple[float, float]]]:
    """Read a table with columns for term (or factor), effect, and se: effect and standard error by term, for
    every delay and number of processors in columns (0 if not given), ascending.

    Raises
    ------
    TableError : the columns are missing or not numeric, or a term occurs twice.
    """
    sheet = _Sheet.read(Path(path))
    header = sheet.header
    columns = _effect_columns(header)
    if columns is None:
        raise sheet.refuse("is no table of effects", 1, "it needs columns term, value and se")
    term, value, se = columns
    plain = [name.casefold() for name in header]
    delay = _delay_column(header)
    scale = next((plain.index(name) for name in _PROCESSORS if name in plain), None)
    tables: dict[tuple[float, float], dict[str, tuple[float, float]]] = {}
    for line, cells in sheet.rows:
        at = tuple(0.0 if k is None else sheet.size(k, line, cells) for k in (delay, scale))
        try:
            error = float(cells[se]) if se is not None and cells[se] else math.nan
            effect = float(cells[value])
        except ValueError:
            wrong = f"{header[value]} of {cells[term]} is {cells[value]!r}, which is no number"
            raise sheet.refuse(wrong, line) from None
        by_term = tables.setdefault((at[0], at[1]), {})
        if cells[term] in by_term:
            hint = "give every version a table of its own, or a column delay or processors"
            raise sheet.refuse(f"has {cells[term]} twice", line, hint)
        by_term[cells[term]] = (effect, error)
    return dict(sorted(tables.items()))


def _effect_columns(header: list[str]) -> tuple[int, int, int | None] | None:
    """Indices of term, effect and standard error; None if this is no table of effects."""
    plain = [name.casefold() for name in header]

    def place(*names: str) -> int | None:
        return next((plain.index(name) for name in names if name in plain), None)

    term = place("term", "factor", "effect_of")
    value = place("value", "effect", "main_effect", "main_effect_s", "half_effect")
    if term is None or value is None:
        return None
    return term, value, place("se", "std_error", "se_main_effect_s")


def _delay_column(header: list[str]) -> int | None:
    plain = [name.casefold().removeprefix("spt_") for name in header]
    return next((k for k, n in enumerate(plain) if n == "delay" or n.startswith("delay_")), None)


def is_runs(path: Path) -> bool:
    """Whether a file starts like a table of runs: a heading, a column of - and + (or -1 and 1), a number; or
    like an array with a usual name of a response; or has sizes of delays."""
    try:
        text = head(Path(path), 1 << 16).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return False
    rows = first_cells(text, 400)[:-1]  # the last line may be incomplete
    if len(rows) < 2 or len(set(rows[0])) < len(rows[0]) or all(_is_number([c]) for c in rows[0]):
        return False  # without a heading: the records of a trace may contain a -1 and a 1 as well
    columns = [[row[k] for row in rows[1:] if k < len(row)] for k in range(len(rows[0]))]
    if not any(map(_is_number, columns)):
        return False
    if any(set(c) in ({"-", "+"}, {"-1", "1"}, {"-1", "+1"}) for c in columns):
        return True
    header = rows[0]
    kind = _kind(dict(zip(header, columns, strict=True)))
    if kind == "array":
        return any(name.casefold().startswith("response") for name in header)
    return kind == "places" or (kind == "effects" and _delay_column(header) is not None)


def holds_experiment(path: Path) -> bool:
    """Whether this is an experiment (its folder or description), not a table of runs."""
    path = Path(path)
    if path.is_dir():
        return (path / DESCRIPTION).is_file()
    return path.name == DESCRIPTION or is_runs(path)


def _sized(cells: dict[str, list[str]]) -> list[str]:
    """Columns of a few whole numbers that are neither reserved nor a response: levels or sizes. If two are
    equivalent for a factor (its level and its delay), the first."""
    sized: list[str] = []
    for name, column in cells.items():
        plain, levels, count = name.casefold(), set(column), len(column)
        most = min(_MOST_LEVELS, count if count <= _MOST_LEVELS else count // 2)
        if (
            plain not in _ROLES
            and plain not in _RESPONSES
            and not plain.startswith("response")
            and 2 <= len(levels) <= most
            and all(cell.isascii() and cell.isdigit() for cell in levels)
            and not _same(name, sized, cells)
        ):
            sized.append(name)
    return sized


def _same(name: str, factors: list[str], cells: dict[str, list[str]]) -> bool:
    """Whether a column equals one of `factors` with other numbers (``F1_delay`` and ``F1_level``)."""
    stem, rule, _ = name.rpartition("_")
    twins = [other for other in factors if rule and other.rpartition("_")[:2] == (stem, rule)]
    return any(
        len(set(zip(cells[name], cells[other], strict=True)))
        == len(set(cells[name]))
        == len(set(cells[other]))
        for other in twins
    )


def _is_factor(name: str, cells: list[str]) -> bool:
    levels = set(cells)
    return name.casefold() not in _ROLES and len(levels) == 2 and any(levels == set(pair) for pair in _LEVELS)


def _settings(cells: dict[str, list[str]], factors: Sequence[str]) -> list[str]:
    """Further factors: columns of two whole numbers, such as 8 and 24 threads, both combined with the same
    treatments of the other factors, and not equivalent to another column."""
    if not factors:
        return []
    columns = [cells[name] for name in factors]
    treatments = list(zip(*columns, strict=True))
    factors_more = []
    for name, values in cells.items():
        plain, levels = name.casefold(), set(values)
        if (
            name in factors or plain in _ROLES or plain in _RESPONSES or plain.startswith("response")
            or len(levels) != 2 or not all(v.isascii() and v.isdigit() for v in levels)
        ):  # fmt: skip
            continue
        each = [{t for t, v in zip(treatments, values, strict=True) if v == level} for level in levels]
        if each[0] & each[1] and not any(len(set(zip(values, c, strict=True))) == 2 for c in columns):
            factors_more.append(name)
    return factors_more


def _refuse_factor(name: str, sheet: _Sheet) -> None:
    """Refuse a column that looks like a factor's but is not: ignored, its effect would be counted as that of
    others."""
    cells = sheet.cells[name]
    levels = set(cells)
    recognized = {level for pair in _LEVELS for level in pair}
    if name.casefold() in _ROLES or _is_factor(name, cells) or not levels:
        return
    signs = bool(levels & {"-", "+"}) and (levels <= recognized or {"-", "+"} <= levels)
    ones = len(levels) <= 3 and "-1" in levels and bool(levels & {"1", "+1"})
    if levels == {"-1"} or levels == {"+1"} or signs or ones:
        if len(levels) == 1:
            raise sheet.refuse(
                f"{name} is {cells[0]!r} in every trial, so it has no effect to see",
                sheet.rows[0][0],
                "take the column out, or name the factors",
            )
        _levels(name, sheet)


def _described(sheet: _Sheet) -> Experiment | None:
    """The experiment of a journal whose description is beside it."""
    from desktop.data.experiment import read_experiment

    folder = sheet.path.parent
    return read_experiment(folder) if sheet.is_journal and (folder / DESCRIPTION).is_file() else None


def _first_response(sheet: _Sheet, experiment: Experiment | None) -> str | None:
    """The response that is read of an experiment if none is named."""
    name = None if experiment is None else experiment.responses[0].name
    return name if name in sheet.header else None


def _halves(sheet: _Sheet, experiment: Experiment) -> Ints | None:
    """The half of every row of the journal of a folded experiment; None if it is not folded."""
    from desktop.data.experiment import read_journal

    if experiment.plan.fold is None:
        return None
    read_journal(experiment)  # refuses trials that are not in this plan
    return experiment.design().blocks[[int(cell) - 1 for cell in sheet.cells["treatment"]]]


def _levels(name: str, sheet: _Sheet) -> list[float]:
    cells = sheet.cells[name]
    levels = set(cells)
    for low, high in _LEVELS:
        if levels <= {low, high} and (len(levels) == 2 or low == "-1" or low == "-"):
            return [1.0 if cell == high else -1.0 for cell in cells]
    if len(levels) == 2 and all(cell.isascii() and cell.isdigit() for cell in levels):
        return [1.0 if cell == max(levels, key=int) else -1.0 for cell in cells]
    usual = max(_LEVELS, key=lambda pair: sum(cell in pair for cell in cells))
    bad = next((i for i, cell in enumerate(cells) if cell not in usual), 0)
    if len(levels) == 1:
        reason = f"{name} is {cells[0]!r} in every trial, so it has no effect to see"
    else:
        reason = f"{name} is {cells[bad]!r}, while other rows have other signs"
    raise sheet.refuse(reason, sheet.rows[bad][0], "write - and +, or -1 and 1, or 0 and 1 throughout")


def _number(cell: str) -> float | None:
    """The number in a cell; None if it is not written as one."""
    try:
        return float(cell)
    except ValueError:
        return None


def _value(cell: str) -> float:
    return math.nan if (number := _number(cell)) is None else number


def _is_number(cells: list[str]) -> bool:
    return any(math.isfinite(_value(cell)) for cell in cells)


def _responses(sheet: _Sheet, numbers: list[str], requested: str | None) -> tuple[list[str], list[str]]:
    """The response's columns (several: replicates), and other possible ones."""
    stems: dict[str, list[str]] = {}
    for name in numbers:
        numbered = re.fullmatch(r"(.*?)[ _.-]?\d+", name)
        stems.setdefault(numbered[1].casefold() if numbered else name, []).append(name)
    if requested is not None:
        if requested in sheet.header:
            return [requested], [n for n in numbers if n != requested]
        same = [n for n in numbers if re.fullmatch(re.escape(requested) + r"[ _.-]?\d+", n)]
        # As `RunTable.response` names replicates in columns of their own.
        same = same or next((names for names in stems.values() if " ".join(names) == requested), [])
        if same:
            return same, [n for n in numbers if n not in same]
        sheet.column(requested)
    if not numbers:
        raise sheet.refuse("has no column of responses", hint="add one number to every trial")
    for stem, names in stems.items():
        if len(names) > 1 and stem in ("response", "r", "rep", "replicate", "run", "y", "wall", "time"):
            return names, [n for n in numbers if n not in names]
    plain = {name.casefold(): name for name in numbers}
    for usual in _RESPONSES:
        if usual in plain:
            return [plain[usual]], [n for n in numbers if n != plain[usual]]
    called_so = [n for n in numbers if n.casefold().startswith("response")]
    if called_so or len(numbers) == 1:
        name = (called_so or numbers)[0]
        return [name], [n for n in numbers if n != name]
    several = f"has several columns that could be the response: {', '.join(numbers)}"
    raise sheet.refuse(several, hint="call that column response in its heading, or name it by --response")


def _label(header: list[str], row: list[str]) -> str:
    for name in ("trial", "run", "run_order", "order", "treatment"):
        if name in header and row[header.index(name)]:
            return row[header.index(name)]
    return ""


def write_sheet(path: Path, design: Design, sheet: RunSheet) -> None:
    """Write the trials in order, with an empty column for the response."""
    import pandas as pd

    array = design.levels.min() >= 0
    levels = design.levels[sheet.treatment]
    columns: dict[str, object] = {
        "order": np.arange(1, len(sheet.treatment) + 1),
        "replicate": np.asarray(sheet.replicate) + 1,
        "treatment": np.asarray(sheet.treatment) + 1,
    }
    for k, name in enumerate(design.factors):
        columns[name] = [str(v) if array else f"{v:+d}" for v in levels[:, k]]
    write_frame(path, pd.DataFrame(columns | {"response": ""}))

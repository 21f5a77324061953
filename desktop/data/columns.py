"""The contents of a table: columns with headings and units, rows, and each cell as text.

One declaration serves the window's table, the sheets of reports, and the terminal. Tables of results are
declared where the results are computed; `desktop.ui.tables` shows them.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TypeVar

import numpy as np

from desktop.core.arrays import AnyArray, Floats, Ints
from desktop.core.frames import AnyTable, ArrayTable
from desktop.core.units import Scale, common, digits, grouped, time_scale

Texts = list[list[str]]
#: Rows inspected to find the width of a column.
SAMPLED = 200
#: Units of time: alone, times processors, or in a denominator.
_TIME = re.compile(r"(^|·|/)s(²?)$")
_KEYBOARD = str.maketrans("−★", "-*")


@dataclass(frozen=True)
class Column:
    """How a column of a frame is shown.

    name : of the frame's column ("": `title`).
    unit : of its values, as written; "%" for a column of shares of 1. "": from the frame's
        ``attrs["units"]``; times, processor-seconds and bytes then get one prefix for the whole column, that
        of the column `like` if given. The unit is in the header.
    significant : digits of floats. whole : floats that are whole numbers are shown as such.
    missing : text for unknown values (NaN; None is empty).
    label : a column of texts that are shown instead of the values.
    shown : False: only copied, unless the user shows it. stretch : takes the remaining space.
    editable, check : editable text, a check box (for a bool column).
    swatch : a column of colours (``#rrggbb``), drawn as squares before the text.
    choices : for a row of the frame its possible choices: texts and values, () if none.
    """

    title: str
    tip: str = ""
    unit: str = ""
    significant: int = 4
    editable: bool = False
    check: bool = False
    name: str = ""
    like: str = ""
    label: str = ""
    whole: bool = False
    missing: str = "–"
    shown: bool = True
    stretch: bool = False
    swatch: str = ""
    choices: Callable[[int], Sequence[tuple[str, object]]] | None = None

    @property
    def source(self) -> str:
        return self.name or self.title


@dataclass(frozen=True, eq=False)
class RowMarks:
    """Properties of rows of a frame (numbered from 0) besides their values.

    tone : ``faint``, ``strong``, ``warning`` or ``error``. tip : shown at the pointer. fixed : columns that
        cannot be edited in the row. bold : columns in bold.
    """

    tone: Mapping[int, str] = field(default_factory=dict)
    tip: Mapping[int, str] = field(default_factory=dict)
    fixed: Mapping[int, frozenset[str]] = field(default_factory=dict)
    bold: Mapping[int, frozenset[str]] = field(default_factory=dict)


NO_MARKS = RowMarks()


T = TypeVar("T")
Value = str | float | int | None


@dataclass(frozen=True)
class TableRow:
    """One row of `FrameView.show_rows`: its cells in the order of the columns, and its properties. `key`: the
    row's index; "" if it is never selected."""

    cells: tuple[Value, ...]
    key: object = ""
    tone: str = ""
    tip: str = ""
    fixed: frozenset[str] = frozenset()


def table(columns: Sequence[Column], rows: Sequence[TableRow]) -> tuple[ArrayTable, RowMarks]:
    """A table from rows that consist of single cells, for `FrameView.show_frame`."""

    cells = {column.source: [row.cells[k] for row in rows] for k, column in enumerate(columns)}
    marks = RowMarks(
        {k: row.tone for k, row in enumerate(rows) if row.tone},
        {k: row.tip for k, row in enumerate(rows) if row.tip},
        {k: row.fixed for k, row in enumerate(rows) if row.fixed},
    )
    plain = not (marks.tone or marks.tip or marks.fixed)
    return columnar(cells, [row.key for row in rows]), NO_MARKS if plain else marks


def records(
    columns: Sequence[Column], things: Iterable[T], key: str, tone: Callable[[T], str] = lambda _: ""
) -> list[TableRow]:
    """A row for each of `things` from its attributes: `Column.name` names them, also nested ones
    (``"fit.slope"``), `key` that of the row's index. Values of a column in % are shares of 1."""

    def cell(one: T, column: Column) -> Value:
        value: Value = attrgetter(column.source)(one)
        return 100 * value if column.unit == "%" and isinstance(value, int | float) else value

    return [
        TableRow(tuple(cell(one, column) for column in columns), attrgetter(key)(one), tone(one))
        for one in things
    ]


def columnar(columns: Mapping[str, Sequence[object]], keys: Sequence[object] | None = None) -> ArrayTable:
    """A table of columns (K,) of any kind, with rows indexed by `keys`, without pandas."""

    def values(cells: Sequence[object]) -> AnyArray:
        kinds = {type(cell) for cell in cells}
        return np.array(cells) if len(kinds) == 1 and kinds <= {int, float, bool} else _objects(cells)

    arrays = {name: values(cells) for name, cells in columns.items()}
    return ArrayTable(arrays, index=None if keys is None else _objects(keys))


def _objects(values: Sequence[object]) -> AnyArray:
    """(K,) the objects unchanged: a tuple is one of them."""
    objects = np.empty(len(values), object)
    objects[:] = values
    return objects


def unit_scale(unit: str, values: Iterable[float]) -> Scale:
    """The prefix of a column of such values in a base unit; "1": a share, without unit."""
    if unit == "1":
        return Scale(1.0, "")
    if unit == "B":
        return common(values, unit)
    time = _TIME.search(unit)
    if time is None:
        return Scale(1.0, unit)
    most = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    seconds = time_scale(most or 1.0)
    power = (2 if time[2] else 1) * (-1 if time[1] == "/" else 1)
    return Scale(seconds.factor**power, f"{unit[: time.start()]}{time[1]}{seconds.symbol}{time[2]}")


class ColumnCells:
    """One column of a frame under its declaration: texts, sort order, text for filters."""

    def __init__(self, column: Column, table: ArrayTable) -> None:
        self.column = column
        values = self.values = table.values[column.source]
        self.numeric = values.dtype.kind in "iufb"
        unit = table.units.get(column.source, "")
        self.scale = Scale(1.0, column.unit)
        if column.unit == "%" and unit == "1":
            self.scale = Scale(0.01, "%")
        elif "/" in unit and not (column.unit or column.like):
            self.scale = Scale(1.0, unit)  # per second, unless it goes with a column of times
        elif unit and not column.unit:
            of = np.zeros(0)
            if self.numeric:
                of = table.values[column.like or column.source].astype(float, copy=False)
            finite = of[np.isfinite(of)]
            self.scale = unit_scale(unit, [float(np.abs(finite).max())] if finite.size else ())
        self.labels = table.values[column.label] if column.label else None
        self.swatches = table.values[column.swatch] if column.swatch else None
        texts = not self.numeric and (column.label or any(isinstance(v, str) for v in self.values[:SAMPLED]))
        self.right = not texts and not column.check
        self._texts: dict[tuple[int, int], str] = {}  # used to measure, then to paint
        self.whole = column.whole or (self.numeric and values.dtype.kind in "iu" and self.scale.factor == 1)

    def like(self, previous: ColumnCells) -> int:
        """How many rows, from the first on, equal those of a column with the same declaration; their texts
        are reused."""
        beside = self.labels, self.swatches, self.column.choices
        if self.scale != previous.scale or any(one is not None for one in beside):
            return 0
        many = min(len(self.values), len(previous.values))
        differing = np.flatnonzero(self.values[:many] != previous.values[:many])
        same = int(differing[0]) if differing.size else many
        self._texts = {(k, fewer): text for (k, fewer), text in previous._texts.items() if k < same}
        return same

    def value(self, k: int) -> Value:
        """The value in the unit of the header; None if unknown."""
        value = self.values[k]
        if isinstance(value, str) or value is None:
            return value
        if isinstance(value, float | np.floating):
            return None if math.isnan(value) else float(value) / self.scale.factor
        if isinstance(value, bool | np.bool_):
            return bool(value)
        return int(value) if self.scale.factor == 1 else int(value) / self.scale.factor

    def text(self, k: int, fewer: int = 0) -> str:
        """The text of a cell, with `fewer` digits where there is little space."""
        text = self._texts.get((k, fewer))
        if text is None:
            text = self._texts[k, fewer] = self._text(k, fewer)
        return text

    def _text(self, k: int, fewer: int) -> str:
        if self.labels is not None:
            return str(self.labels[k])
        value = self.value(k)
        if isinstance(value, str):
            return value
        if value is None:
            return "" if self.values[k] is None else self.column.missing
        if isinstance(value, int) or (self.whole and value == round(value)):
            return grouped(value)
        return digits(value, max(1, self.column.significant - fewer))

    def full(self, rows: Ints) -> list[str]:
        """Rows of the frame as they are copied: with all digits."""
        if self.labels is not None and not self.numeric:
            return [str(label) for label in self.labels[rows]]
        values = self.values[rows]
        if self.numeric and values.dtype.kind == "b":
            return [str(int(value)) for value in values.tolist()]
        if self.numeric and self.scale.factor != 1:
            values = values / self.scale.factor

        def text(value: object) -> str:
            if isinstance(value, float):
                if not math.isfinite(value):
                    return ""
                return str(int(value)) if self.whole and value == round(value) else repr(value)
            return "" if value is None else str(value)

        return list(map(text, values.tolist()))

    @property
    def head(self) -> str:
        return f"{self.column.title} [{self.scale.symbol}]" if self.scale.symbol else self.column.title

    @functools.cached_property
    def rank(self) -> Floats:
        """The sort key of the rows: numbers, then texts; NaN if unknown."""
        if self.numeric:
            return self.values.astype(float)
        values = (self.values if self.labels is None else self.labels).tolist()
        rank = np.full(len(values), np.nan)
        texts = [k for k, kind in enumerate(map(type, values)) if kind is str]
        numbers = [] if len(texts) == len(values) else [
            k for k, v in enumerate(values) if isinstance(v, int | float | np.number) and v == v
        ]  # fmt: skip
        for several in (numbers, texts):
            keys = [values[k] if several is numbers else values[k].casefold() for k in several]
            place = {key: k for k, key in enumerate(sorted(set(keys)))}
            base = np.nanmax(rank, initial=-1.0) + 1.0
            rank[several] = base + np.fromiter(map(place.__getitem__, keys), float, len(keys))
        return rank

    @functools.cached_property
    def folded(self) -> list[str]:
        """Texts for filters, in lower case; none for numbers."""
        if self.labels is not None:
            return [str(text).casefold() for text in self.labels]
        if self.numeric:
            return []
        return [value.casefold() if isinstance(value, str) else "" for value in self.values]


def cell_texts(table: AnyTable, columns: Sequence[Column]) -> Texts:
    """Headings with units, and all rows of a frame as text."""
    arrays = ArrayTable.of(table)
    cells = [ColumnCells(column, arrays) for column in columns]
    return [
        [one.head for one in cells],
        *([one.text(k) for one in cells] for k in range(len(cells[0].values))),
    ]


def aligned(table: AnyTable, columns: Sequence[Column]) -> list[str]:
    """A table as lines of text, headings first: numbers right-aligned, words left-aligned, columns that are
    empty in every row left out. Numbers use keyboard characters, so that they can be copied."""
    shown_columns, arrays = [], ArrayTable.of(table)
    for cells in (ColumnCells(column, arrays) for column in columns):
        texts = [cells.head, *(cells.text(k) for k in range(len(cells.values)))]
        width = max(map(len, texts))
        if any(texts[1:]) or len(texts) == 1:
            shown_columns.append([text.rjust(width) if cells.right else text.ljust(width) for text in texts])
    return ["  ".join(row).rstrip().translate(_KEYBOARD) for row in zip(*shown_columns, strict=True)]

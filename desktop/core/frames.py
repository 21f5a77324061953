"""Every table that the program gives as a pandas DataFrame: its columns, their dtypes and units.

The page ``tables.md`` of the handbook declares them, and `TABLES` is what it says; `frame` builds a table by
its declaration, with the units in ``DataFrame.attrs["units"]`` (base units: s, proc, proc·s, B; "1" of a part
of a whole; "" of what has none). pandas is loaded when the first table is built.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from desktop import resources

if TYPE_CHECKING:
    from pandas import DataFrame

#: Whole numbers, floats (NaN: not known), truth values, texts; "any": numbers or texts.
DType = Literal["int64", "float64", "bool", "text", "any"]


@dataclass(frozen=True)
class Field:
    """A column: its name in the frame, its dtype, its base unit, what it says."""

    name: str
    dtype: DType
    unit: str
    meaning: str


def _declared() -> dict[str, tuple[Field, ...]]:
    """The tables of the page, by their headings in small letters."""
    page = (resources.folder() / "docs" / "tables.md").read_text(encoding="utf-8")
    tables: dict[str, tuple[Field, ...]] = {}
    for section in page.split("\n### ")[1:]:
        heading, *lines = section.splitlines()
        rows = (
            [cell.strip(" `") for cell in line.split("|")[1:5]] for line in lines if line.startswith("| `")
        )
        tables[heading.lower()] = tuple(Field(*row) for row in rows)  # type: ignore[arg-type]  # a test checks dtypes
    return tables


#: Columns by table, in their order.
TABLES = _declared()


@dataclass(frozen=True, eq=False)
class ArrayTable:
    """A table as arrays, for what is shown anew with every step of a drag: a DataFrame of twenty rows takes
    ten times as long to make, and pandas half a second to load.

    `values`: columns (K,) by name, of numbers, truth values or objects. `units`: of those that have one.
    `index` (K,): of the rows; None: 0 to K - 1.
    """

    values: Mapping[str, NDArray[Any]]
    units: Mapping[str, str] = field(default_factory=dict)
    index: NDArray[Any] | None = None

    def __len__(self) -> int:
        return next((len(column) for column in self.values.values()), 0)

    @cached_property
    def frame(self) -> DataFrame:
        """The same as a DataFrame, with units in ``attrs["units"]``."""
        import pandas as pd

        table = pd.DataFrame(dict(self.values))
        if self.index is not None:
            table.index = pd.Index(self.index)
        table.attrs["units"] = dict(self.units)
        return table


def array_table(fields: Sequence[Field], columns: Mapping[str, Any]) -> ArrayTable:
    """Declared columns without pandas. KeyError if one has no values."""
    kinds: Any = {"text": object, "any": object}
    values = {one.name: np.asarray(columns[one.name], kinds.get(one.dtype, one.dtype)) for one in fields}
    return ArrayTable(values, {one.name: one.unit for one in fields})


def frame(
    fields: Sequence[Field],
    columns: Mapping[str, Any],
    *,
    index: Any = None,
    units: Mapping[str, str] | None = None,
) -> DataFrame:
    """A DataFrame of declared columns in their order; others follow as they are.

    `columns`: values (K,) by name, of all `fields`; `units` of the others, or instead of the declared ones.
    They are in ``attrs["units"]``, by name. KeyError if a declared column has no values.
    """
    import pandas as pd

    declared: dict[str, Any] = {}
    texts: Any = {"text": "str" if pd.__version__ >= "3" else object, "any": object}
    for one in fields:
        values = columns[one.name]
        if one.dtype == "float64" and isinstance(values, list | np.ndarray):
            declared[one.name] = np.asarray(values, np.float64)  # for which a series takes ten times as long
        else:
            values = values if hasattr(values, "dtype") else list(values)
            declared[one.name] = pd.Series(values, dtype=texts.get(one.dtype, one.dtype))
    declared |= {name: values for name, values in columns.items() if name not in declared}
    table = pd.DataFrame(declared)
    if index is not None:
        table.index = pd.Index(index)
    table.attrs["units"] = {one.name: one.unit for one in fields} | dict(units or {})
    return table

"""Responses that were measured elsewhere: typed, pasted, or read from a table in any order of columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from desktop.data.frames import headed, read_cells

if TYPE_CHECKING:
    from desktop.data.experiment import Experiment

_LOW, _HIGH = {"-", "-1", "0", "−"}, {"+", "1", "+1"}


def read_pasted(text: str, experiment: Experiment, first: int = 1) -> dict[int, tuple[float, ...]]:
    """Order (from 1) -> responses, from pasted text.

    Numbers alone, a line each, belong to the trials from `first` on. Under a heading every row says which
    trial it is: by ``order``, by ``treatment`` (and ``replicate``), or by its levels (rows of the same levels
    are replicates in their order).

    Raises
    ------
    ValueError : names the line and the value that make no sense.
    """
    names = [response.name for response in experiment.responses]
    keys = experiment.planned()
    cells = read_cells(text.lstrip("\ufeff"))
    rows: list[list[str]] = cells.to_numpy(object).tolist()
    if not rows:
        raise ValueError("there is nothing to paste; copy numbers, or a table with a heading")
    if all(_number(cell) is not None or not cell for row in rows for cell in row):
        if len(rows) > len(keys) - first + 1:
            left = len(keys) - first + 1
            raise ValueError(f"{len(rows)} lines were pasted, {left} trials are left from trial {first} on")
        return {first + k: _values(row, names) for k, row in enumerate(rows) if any(row)}
    header, body = headed(cells)
    columns = _response_columns(header, names, experiment.names)
    responses: dict[int, tuple[float, ...]] = {}
    trials = _Places(header, experiment, keys)
    for number, row in body:
        values = [row[k] if k is not None else "" for k in columns]
        if not any(values):
            continue
        try:
            order = trials.order(row)
            responses[order] = _values(values, names)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    if not responses:
        raise ValueError("the table holds no response")
    return responses


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _values(cells: Sequence[str], names: Sequence[str]) -> tuple[float, ...]:
    """One number a response; what is not given is unknown."""
    numbers = []
    for cell in cells[: len(names)]:
        value = _number(cell) if cell else math.nan
        if value is None or math.isinf(value):
            raise ValueError(f"{cell!r} is no number")
        numbers.append(value)
    return tuple(numbers) + (math.nan,) * (len(names) - len(numbers))


def _response_columns(
    header: Sequence[str], names: Sequence[str], factors: Sequence[str]
) -> list[int | None]:
    columns: list[int | None] = [header.index(n) if n in header else None for n in names]
    if not any(c is not None for c in columns):
        plain = [h.casefold() for h in header]
        index = next(
            (plain.index(n) for n in ("response", "wall_s", "time", "time_s", "y") if n in plain), None
        )
        if index is None:
            raise ValueError(
                f"the heading has no column {' or '.join(repr(n) for n in names)}; "
                f"its columns are {', '.join(header)}"
            )
        columns[0] = index
    return columns


class _Places:
    """Which trial a row is."""

    def __init__(
        self, header: Sequence[str], experiment: Experiment, keys: Mapping[int, tuple[int, int]]
    ) -> None:
        plain = [name.casefold() for name in header]
        self._order = next((plain.index(n) for n in ("order", "run_order") if n in plain), None)
        self._treatment = plain.index("treatment") if "treatment" in plain else None
        self._replicate = plain.index("replicate") if "replicate" in plain else None
        self._factors = [header.index(name) if name in header else None for name in experiment.names]
        self._keys = keys
        self._by_key = {key: order for order, key in keys.items()}
        self._array = experiment.plan.kind == "orthogonal-array"
        levels = experiment.design().levels
        self._by_levels = {tuple(int(v) for v in row): t for t, row in enumerate(levels)}
        self._seen: dict[int, int] = {}
        if self._order is None and self._treatment is None and None in self._factors:
            missing = [n for n, k in zip(experiment.names, self._factors, strict=True) if k is None]
            raise ValueError(
                "the heading says neither order nor treatment, and has no column for " + ", ".join(missing)
            )

    def order(self, row: Sequence[str]) -> int:
        if self._order is not None:
            order = self._whole(row[self._order], "order")
            if order not in self._keys:
                raise ValueError(f"there is no trial {order}")
            return order
        if self._treatment is not None:
            treatment = self._whole(row[self._treatment], "treatment") - 1
        else:
            levels = tuple(self._level(row[k]) for k in self._factors if k is not None)
            if levels not in self._by_levels:
                raise ValueError(
                    f"the design has no treatment {' '.join(row[k] for k in self._factors if k is not None)}"
                )
            treatment = self._by_levels[levels]
        if self._replicate is not None:
            replicate = self._whole(row[self._replicate], "replicate") - 1
        else:
            replicate = self._seen.get(treatment, 0)
            self._seen[treatment] = replicate + 1
        if (replicate, treatment) not in self._by_key:
            raise ValueError(f"there is no treatment {treatment + 1} in replicate {replicate + 1}")
        return self._by_key[replicate, treatment]

    def _whole(self, cell: str, name: str) -> int:
        if not cell.isdigit():
            raise ValueError(f"{name} is {cell!r}, which is not a whole number")
        return int(cell)

    def _level(self, cell: str) -> int:
        if self._array:
            return self._whole(cell, "level")
        if cell in _LOW:
            return -1
        if cell in _HIGH:
            return 1
        raise ValueError(f"{cell!r} is no level, write - and +")

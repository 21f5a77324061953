"""A sink and source in plain arrays: importers and the clock check are tested without a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from desktop.data.events import TABLES, ImportReport, Location, MetricAbout, Nesting, Region


class Memory:
    def __init__(self, only: set[int] | None = None) -> None:
        self.only = only
        self.report = ImportReport()
        self.ticks_per_second = 0.0
        self.nesting: Nesting = "outermost"
        self.repair = False
        self.notes: dict[str, Any] = {}
        self.locations: list[Location] = []
        self.regions: list[Region] = []
        self.texts: list[str] = []
        self.metrics: dict[str, MetricAbout] = {}
        self.appended: dict[tuple[str, int], list[dict[str, NDArray[Any]]]] = {}
        self._open: dict[str, int] = {}

    def describe(
        self,
        *,
        ticks_per_second: float,
        nesting: Nesting = "outermost",
        repair: bool = False,
        notes: dict[str, Any] | None = None,
    ) -> None:
        self.ticks_per_second, self.nesting, self.repair = ticks_per_second, nesting, repair
        self.notes = notes or {}

    def location(self, location: Location) -> int:
        self.locations.append(location)
        return len(self.locations) - 1

    def region(self, region: Region) -> int:
        for i, known in enumerate(self.regions):
            if (known.name, known.role, known.paradigm) == (region.name, region.role, region.paradigm):
                return i
        self.regions.append(region)
        return len(self.regions) - 1

    def metric(self, name: str, about: MetricAbout) -> int:
        assert self.metrics.setdefault(name, about) == about
        return self.text(name)

    def text(self, text: str) -> int:
        if text not in self.texts:
            self.texts.append(text)
        return self.texts.index(text)

    def wants(self, location: int) -> bool:
        return self.only is None or location in self.only

    def append(self, table: str, location: int, **columns: NDArray[Any]) -> None:
        assert self.ticks_per_second > 0, "append before describe"
        assert set(columns) == set(TABLES[table])
        if self._open.get(table) != location and (table, location) in self.appended:
            raise ValueError("location was closed")
        self._open[table] = location
        lengths = {len(column) for column in columns.values()}
        assert len(lengths) == 1
        converted = {name: np.asarray(columns[name]).astype(dtype) for name, dtype in TABLES[table].items()}
        for name, column in converted.items():
            assert (column == columns[name]).all() or table == "metrics", (table, name)
        self.appended.setdefault((table, location), []).append(converted)

    def table(self, table: str, location: int) -> dict[str, NDArray[Any]]:
        blocks = self.appended.get((table, location), [])
        return {
            name: np.concatenate([np.empty(0, dtype), *(block[name] for block in blocks)])
            for name, dtype in TABLES[table].items()
        }

    def rows(self, table: str, location: int) -> int:
        return len(next(iter(self.table(table, location).values())))

    def blocks(
        self, table: str, location: int, *columns: str, rows: int = 1 << 16
    ) -> Iterator[tuple[NDArray[Any], ...]]:
        whole = self.table(table, location)
        for at in range(0, self.rows(table, location), rows):
            yield tuple(whole[name][at : at + rows] for name in columns or TABLES[table])

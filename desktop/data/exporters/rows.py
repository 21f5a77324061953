"""Shared by exporters: rows in order of time, times, members of communicators."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from desktop.core.arrays import AnyArray, Ints
from desktop.core.open_regions import BEGIN
from desktop.data.events import TABLES, Location
from desktop.data.store import TraceStore

Columns = dict[str, AnyArray]
#: Approximate number of event rows in a stretch.
ROWS = 1 << 16


class Cursor:
    """The rows of one table and location, taken in order of time.

    Raises
    ------
    StoreError : they are damaged, such as out of order.
    """

    def __init__(self, source: TraceStore, table: str, location: int) -> None:
        self._source = source
        self._table, self._names = TABLES[table], tuple(TABLES[table])
        self._key = "begin" if table == "collectives" else "time"
        self._blocks = source.blocks(table, location, rows=ROWS)
        self._latest = BEGIN  # time of the last row that was read
        self._pending = self._read()

    def _read(self) -> Columns:
        block = next(self._blocks, None)
        if block is None:
            return {name: np.empty(0, kind) for name, kind in self._table.items()}
        rows = dict(zip(self._names, block, strict=True))
        time = rows[self._key]
        if time[0] < self._latest or (time[1:] < time[:-1]).any():
            raise self._source.damaged("its rows are out of order")
        self._latest = int(time[-1])
        return rows

    def ahead(self) -> int | None:
        """The time of the last of the next rows; None: there are no more."""
        time = self._pending[self._key]
        return int(time[-1]) if time.size else None

    def until(self, end: int) -> Columns:
        """All further rows up to and including a time."""
        parts: list[Columns] = []
        while True:
            pending, time = self._pending, self._pending[self._key]
            n = int(np.searchsorted(time, end, "right"))
            parts.append({name: column[:n] for name, column in pending.items()})
            if n < time.size or not time.size:
                self._pending = {name: column[n:] for name, column in pending.items()}
                return {name: np.concatenate([one[name] for one in parts]) for name in self._names}
            self._pending = self._read()


def stretches(source: TraceStore, location: int, *tables: str) -> Iterator[tuple[int, dict[str, Columns]]]:
    """The rows of the `tables` of a location, in stretches of about `ROWS` rows at most each, with the last
    time of the stretch. Times are as recorded, and each lies in one stretch only."""
    cursors = {table: Cursor(source, table, location) for table in tables}
    while True:
        ahead = [time for cursor in cursors.values() if (time := cursor.ahead()) is not None]
        if not ahead:
            return
        yield min(ahead), {table: cursor.until(min(ahead)) for table, cursor in cursors.items()}


def communicator_members(store: TraceStore, address: Ints) -> dict[int, set[int]]:
    """Members of each communicator, judged by its messages and operations: indices of locations.

    address : (locations,) the index by which messages name each location.
    """
    members: dict[int, set[int]] = {}
    for i in range(len(store.locations)):
        location = int(address[i])
        for table, other in (("messages", "peer"), ("collectives", "root")):
            for number, partner in store.blocks(table, i, "communicator", other):
                pairs = np.unique(np.stack([number.astype(np.int64), partner.astype(np.int64)]), axis=1)
                for comm, named in pairs.T.tolist():
                    members.setdefault(comm, set()).update({location, named} - {-1})
    return members


class WrittenTicks:
    """Converts times as recorded to ticks of the written trace: from the start of the run, clocks repaired as
    in the window. `per_second`: as in the store, or nanoseconds if that is no whole number."""

    def __init__(self, store: TraceStore, repaired: bool, per_second: int | None = None) -> None:
        self.repaired = repaired
        rate = store.ticks_per_second
        self.per_second = per_second or (round(rate) if rate == round(rate) else 10**9)
        self._factor = self.per_second / rate
        spans = [span for at in store.locations if (span := at.span(repaired))]
        self._start = min((begin for begin, _ in spans), default=0)
        ends = np.array([end for _, end in spans], np.int64)
        self.length = int(self.common(ends).max(initial=0))

    def __call__(self, location: Location, ticks: Ints) -> Ints:
        return self.common(location.clock(self.repaired).common(ticks))

    def common(self, ticks: Ints) -> Ints:
        """As `__call__`, for ticks of the common clock."""
        since = ticks - self._start
        whole = self._factor == round(self._factor)
        return since * round(self._factor) if whole else np.rint(since * self._factor).astype(np.int64)

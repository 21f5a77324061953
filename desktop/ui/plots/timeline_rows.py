"""Which rows the timeline has, and in which order: locations under their processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from desktop.data.events import Location

#: How rows can be ordered; "hand" keeps what the user has dragged.
ORDERS = ("trace", "busy", "first", "hand")


@dataclass(frozen=True)
class TimelineRow:
    """One row: the locations it merges. `level` 1: a thread below its process; `process` names the group.

    `opened` is None where there is nothing to open, else whether the threads are shown below.
    """

    locations: tuple[int, ...]
    label: str
    title: str
    process: int
    level: int = 0
    opened: bool | None = None


@dataclass
class _ProcessRows:
    title: str
    label: str
    locations: list[int] = field(default_factory=list)
    opened: bool = True


class TimelineRows:
    """The rows of a trace. Locations of one process stay together; a process of one location is one row.

    For each location: whether it is `present`, seconds `busy` computing, and its `first` time in the trace.
    """

    def __init__(
        self,
        locations: Sequence[Location],
        present: Sequence[bool],
        busy: Sequence[float],
        first: Sequence[float],
    ) -> None:
        self._locations, self._busy, self._first = locations, busy, first
        self._processes: list[_ProcessRows] = []
        by_key: dict[tuple[int, str], _ProcessRows] = {}
        for i, location in enumerate(locations):
            if not present[i]:
                continue
            key = (location.rank, location.process)
            if key == (-1, ""):
                key = (-1, f"location {location.id}")
            process = by_key.get(key)
            if process is None:
                process = by_key[key] = _ProcessRows(location.process or location.name or key[1], "")
                self._processes.append(process)
            process.locations.append(i)
        for process in self._processes:
            rank = locations[process.locations[0]].rank
            process.label = str(rank) if rank >= 0 else process.title
        self._by_hand = list(range(len(self._processes)))
        self.order = "trace"
        self._arrange()

    @property
    def grouped(self) -> bool:
        """Whether any process has more than one location."""
        return any(len(p.locations) > 1 for p in self._processes)

    def sort(self, order: str) -> None:
        """Sort by one of `ORDERS`: as in the trace, most busy first, earliest first, or as dragged."""
        self.order = order
        self._arrange()

    def take_over(self, former: TimelineRows) -> None:
        """Take order, also by hand, and open processes from former rows of the same trace."""
        if len(former._processes) == len(self._processes):
            self._by_hand = list(former._by_hand)
            for process, old in zip(self._processes, former._processes, strict=True):
                process.opened = old.opened
        self.sort(former.order)

    def toggle(self, process: int) -> None:
        """Show the threads of a process, or all of them as one row."""
        self._processes[process].opened = not self._processes[process].opened
        self._arrange()

    def open_all(self, opened: bool) -> None:
        """Show the threads of all processes, or of none."""
        for process in self._processes:
            process.opened = opened
        self._arrange()

    def move(self, process: int, before: int) -> None:
        """Put a process at the place that another one has now; the order is by hand from then on."""
        places = self._sequence()
        at, to = places.index(process), places.index(before)
        places.insert(to, places.pop(at))
        self._by_hand, self.order = places, "hand"
        self._arrange()

    def step(self, process: int, by: int) -> None:
        """Move a process some places down, or up."""
        places = self._sequence()
        to = min(max(places.index(process) + by, 0), len(places) - 1)
        self.move(process, places[to])

    def row_of(self, location: int) -> int:
        """The row in which a location is seen by itself or merged; -1 if in none."""
        return self._row_of.get(location, -1)

    def extent(self, process: int) -> tuple[int, int]:
        """The first row of a process, and that after its last."""
        indices = [k for k, row in enumerate(self.rows) if row.process == process]
        return indices[0], indices[-1] + 1

    def _sequence(self) -> list[int]:
        indices = list(range(len(self._processes)))
        if self.order == "busy":
            return sorted(indices, key=lambda p: -sum(self._busy[i] for i in self._processes[p].locations))
        if self.order == "first":
            return sorted(indices, key=lambda p: min(self._first[i] for i in self._processes[p].locations))
        return list(self._by_hand) if self.order == "hand" else indices

    def _arrange(self) -> None:
        keys: dict[str, Callable[[int], float]] = {
            "busy": lambda i: -self._busy[i],
            "first": lambda i: self._first[i],
        }
        self.rows: list[TimelineRow] = []
        self._row_of: dict[int, int] = {}
        for p in self._sequence():
            process = self._processes[p]
            members = process.locations
            if self.order in keys:
                members = sorted(members, key=keys[self.order])
            alone = len(members) == 1
            opened = None if alone else process.opened
            for i in members:
                self._row_of[i] = len(self.rows)
            self.rows.append(TimelineRow(tuple(members), process.label, process.title, p, 0, opened))
            if opened:
                for i in members:
                    location = self._locations[i]
                    self._row_of[i] = len(self.rows)
                    title = " – ".join(t for t in (process.title, location.name) if t)
                    stream = "s" if location.kind == "accelerator" else ""
                    label = f"{process.label}.{stream}{location.thread}"
                    label = label if location.rank >= 0 else location.name
                    self.rows.append(TimelineRow((i,), label, title, p, 1))

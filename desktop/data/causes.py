"""What caused the waiting of a run, and what decided how long it took: delay costs, critical path, slack.

`Causes(store, causality, progress)` finds all of it once; `between` sums it up for a range. Definitions and
sources: `desktop.core.delay_costs`, `desktop.core.critical_path`; who waited for whom:
`desktop.data.causality`. Regions are numbered as in the store; two more numbers stand for the time outside of
all regions (`Causes.outside`) and before the first event of a location (`Causes.before`).

Memory: 40 bytes for each event and each wait, 70 more for each wait.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from desktop.core import ideal
from desktop.core.critical_path import CriticalPath, PathLine, along, critical_path
from desktop.core.delay_costs import Costs, Meetings, Segments, WaitStates, cut, delay_costs, tally
from desktop.core.gantt import NO_REGION_NAME
from desktop.core.open_regions import OpenRegions, no_classes
from desktop.data.causality import Causality
from desktop.data.store import TraceStore
from desktop.data.utilization import Utilization
from desktop.errors import StoreError
from desktop.progress import Progress

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: What the time before a location's first event is called.
BEFORE_NAME = "(not begun)"
#: How many pairs of a location and a region are named at most.
PAIRS = 50


@dataclass(frozen=True, eq=False)
class Delay:
    """Waiting that one location has caused in one region, seconds over all who waited: `short_s` at those
    who waited for it, `long_s` at others behind them. `region`: as of `Causes`; `name`: in words."""

    location: int
    region: int
    name: str
    short_s: float
    long_s: float

    @property
    def seconds(self) -> float:
        return self.short_s + self.long_s


@dataclass(frozen=True, eq=False)
class Caused:
    """Of a range. All in seconds.

    waits_s : (locations, 2) that each waited: for delays of whom it waited for, and for what that one only
        passed on (direct and indirect waiting).
    costs_s : (locations, 2) that others waited as each was late: those who waited for it, and others behind
        them (short-term and long-term costs). Counted where the delay was, whenever the waiting is.
    region_waits_s, region_costs_s : (regions + 2, 2) the same by region.
    delays : the largest costs by location and region, largest first.
    unexplained_s : of the whole run: waiting whose cause is not known.
    path_s, region_path_s : (locations,), (regions + 2,) of the critical path in each.
    """

    waits_s: Floats
    costs_s: Floats
    region_waits_s: Floats
    region_costs_s: Floats
    delays: tuple[Delay, ...]
    unexplained_s: float
    path_s: Floats
    region_path_s: Floats


class Causes:
    """See the module.

    Raises
    ------
    StoreError : the store is damaged.
    Cancelled : by `progress`.
    """

    def __init__(self, store: TraceStore, causality: Causality, progress: Progress) -> None:
        self._store, self.causality = store, causality
        self.outside = len(store.regions)
        self.before = self.outside + 1
        calls, found = causality.calls, causality.waits
        places = np.arange(len(store.locations))
        met = np.where(
            found.partner_call >= 0, calls.end[found.partner_call], found.released
        ) if calls.begin.size else found.released  # fmt: skip
        self.waits = WaitStates(
            np.repeat(places, np.diff(found.start)), found.partner.astype(np.int64),
            calls.begin[found.call], found.until, calls.end[found.call], np.maximum(met, found.until),
        )  # fmt: skip
        repaired = store.repair if causality.rules.repaired is None else causality.rules.repaired
        self._clocks = [at.clock(repaired) for at in store.locations]
        there = np.array([at.first is not None and at.last is not None for at in store.locations], bool)
        first, self.ends = np.full((2, there.size), np.iinfo(np.int64).min)
        for i in np.flatnonzero(there).tolist():
            clock, at = self._clocks[i], store.locations[i]
            first[i], self.ends[i] = clock.common(at.first), clock.common(at.last)
        self.start = int(first[there].min()) if there.any() else 0
        self.segments = self._segments(progress)
        progress.step(0, 0, "delay costs")
        self.costs: Costs = delay_costs(
            self.segments, self.waits, self._meetings(), self.before + 1, self.start
        )
        lasting = np.maximum(self.waits.end - self.waits.begin, 1)
        self._passed_on = 1.0 - self.costs.direct / lasting
        self._passed_on[self._passed_on < 1e-9] = 0.0  # of rounding
        self._passed_on[self.waits.partner < 0] = 0.0
        self.path: CriticalPath = critical_path(self.waits, self.start, self.ends[: there.size * there.any()])

    def name(self, region: int) -> str:
        """What a region is called, also what is none."""
        if region < self.outside:
            return self._store.regions[region].name
        return NO_REGION_NAME if region == self.outside else BEFORE_NAME

    def _segments(self, progress: Progress) -> Segments:
        """What each location does: the innermost region from event to event, cut at its waits."""
        store, waits, places = self._store, self.waits, len(self._store.locations)
        starts = np.searchsorted(waits.location, np.arange(places + 1))
        room = sum(store.rows("events", i) + 3 for i in range(places)) + 2 * waits.location.size
        time = np.empty((2, room), np.int64)
        what, wait = np.empty(room, np.int32), np.empty(room, np.int32)
        first = np.zeros(places + 1, np.int64)
        regions = OpenRegions(no_classes(len(store.regions)))
        n = 0
        for i, at in enumerate(store.locations):
            progress.step(i, places, "delay costs")
            if at.first is not None and at.last is not None:
                regions.begin()
                clock = self._clocks[i]
                times = [np.array([self.start, clock.common(at.first)], np.int64)]
                tops = [np.array([self.before, self.outside], np.int32)]
                for when, kind, region in store.blocks("events", i, "time", "kind", "region"):
                    states = regions.states(when, kind, region)
                    if states is None:
                        raise StoreError(f"Events of location {at.id} are damaged. Import the trace again.")
                    times.append(clock.common(when))
                    tops.append(np.where(states[0] < 0, self.outside, states[0]).astype(np.int32))
                times.append(np.array([clock.common(at.last)], np.int64))
                edges = np.maximum.accumulate(np.concatenate(times))
                a, b = starts[i : i + 2]
                n += cut(
                    edges, np.concatenate(tops), waits.begin[a:b], waits.end[a:b], a, time[:, n:], what[n:],
                    wait[n:],
                )  # fmt: skip
            first[i + 1] = n
        return Segments(first, time[0, :n], time[1, :n], what[:n], wait[:n])

    def _meetings(self) -> Meetings:
        """The n-to-n collectives."""
        operations, calls = self.causality.operations, self.causality.calls
        places = len(self._store.locations)
        row = np.flatnonzero(operations.kind == ideal.N_TO_N)
        location = np.searchsorted(operations.start, row, side="right") - 1
        number, which = np.unique(operations.key[row], return_inverse=True)
        time = np.full(number.size, np.iinfo(np.int64).min)
        np.maximum.at(time, which, operations.time[row])
        inside = operations.call[row]
        leave = time[which]
        known = inside >= 0
        leave[known] = np.maximum(leave[known], calls.end[inside[known]])
        order = np.lexsort((location, which))
        return Meetings(
            np.searchsorted(location, np.arange(places + 1)), time[which], leave, which.astype(np.int64),
            np.searchsorted(which[order], np.arange(number.size + 1)), location[order], leave[order],
        )  # fmt: skip

    def path_line(self, use: Utilization) -> PathLine:
        """The critical path in seconds on the axis of the curve of `use`."""
        path, unit = self.path, np.float64(use.unit)
        return PathLine(path.location, (path.begin - use.start) * unit, (path.end - use.start) * unit)

    def path_between(
        self, start_s: float, end_s: float, use: Utilization, most: int
    ) -> list[tuple[int, float, float]]:
        """Location, start and end of the earliest segments of the critical path in a range; seconds on the
        axis of the curve of `use`."""
        a, b = round(start_s / use.unit) + use.start, round(end_s / use.unit) + use.start
        first = int(np.searchsorted(self.path.end, a, side="right"))
        last = min(int(np.searchsorted(self.path.begin, b)), first + most)
        rows = np.transpose(self.path)[first:last].tolist()
        return [
            (int(i), float(max(begin, a) - use.start) * use.unit, float(min(end, b) - use.start) * use.unit)
            for i, begin, end in rows
        ]

    def between(self, begin: int, end: int) -> Caused:
        """Of the ticks from `begin` to `end` of the common clock."""
        places, regions = len(self._store.locations), self.before + 1
        of_places, of_regions = np.zeros((places, 4)), np.zeros((regions, 4))
        most = np.zeros((PAIRS, 4))
        n = tally(
            *self.segments, self.costs.short, self.costs.long, self._passed_on, begin, end, of_places,
            of_regions, most,
        )  # fmt: skip
        path, path_regions = np.zeros(places), np.zeros(regions)
        along(
            *self.path, self.segments.first, self.segments.begin, self.segments.end, self.segments.region,
            begin, end, path, path_regions,
        )  # fmt: skip
        unit = 1.0 / self._store.ticks_per_second
        return Caused(
            waits_s=of_places[:, :2] * unit,
            costs_s=of_places[:, 2:] * unit,
            region_waits_s=of_regions[:, :2] * unit,
            region_costs_s=of_regions[:, 2:] * unit,
            delays=tuple(
                Delay(int(p), int(r), self.name(int(r)), short * unit, long * unit)
                for p, r, short, long in most[:n].tolist()
            ),
            unexplained_s=self.costs.unexplained * unit,
            path_s=path * unit,
            region_path_s=path_regions * unit,
        )

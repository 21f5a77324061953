"""What caused the waiting of a run, and what determined its duration: delay costs, critical path, slack.

`Causes(store, causality, progress)` computes everything once; `between` sums it over a range. Definitions and
sources: `desktop.core.delay_costs`, `desktop.core.critical_path`; who waited for whom:
`desktop.data.causality`. Regions are numbered as in the store; two more numbers are the time outside of all
regions (`Causes.outside`) and before the first event of a location (`Causes.before`).

Memory: 32 bytes per event and wait, 70 more per wait, 16 per operation and call, 40 of these while the slack
is found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from desktop.core import machine
from desktop.core.accounts import Account
from desktop.core.arrays import Floats, Ints
from desktop.core.critical_path import (
    UNKNOWN,
    CriticalPath,
    PathLine,
    along,
    critical_path,
    float_of,
    least_float,
    running_latest,
)
from desktop.core.delay_costs import Costs, Meetings, Segments, WaitStates, cut, delay_costs, tally
from desktop.core.gantt import NO_REGION_NAME
from desktop.core.open_regions import BEGIN, OpenRegions, no_classes
from desktop.data.causality import Causality
from desktop.data.matching import process_of
from desktop.data.store import TraceStore
from desktop.data.utilization import Utilization
from desktop.errors import StoreError
from desktop.progress import Progress

#: Name of the time before a location's first event.
BEFORE_NAME = "(not begun)"
#: Most pairs of a location and a region that are named.
PAIRS = 50


class _Nodes(NamedTuple):
    """Nodes of the event graph of a run (`desktop.core.critical_path.float_of`), by location and order.

    first : (p + 1,) where those of each location begin; time : (nodes,) ticks of each.
    operation, call : (operations,), (calls,) the node of each, -1 of a receive; begin : that of each begin of
        a call that a sender waited for.
    """

    first: Ints
    time: Ints
    operation: NDArray[np.int32]
    call: NDArray[np.int32]
    begin: NDArray[np.int32]


class Slack(NamedTuple):
    """How much longer each stretch of a location could have taken without making the run longer.

    first : (p + 1,) where the stretches of each location begin.
    end, ticks : (n,) end of each stretch (the first of a location begins with the run), and by how much it
        could have been longer; `UNKNOWN` of `desktop.core.critical_path` if nothing limits it.
    stuck : number of points in dependency cycles, whose slack is unknown.
    """

    first: Ints
    end: Ints
    ticks: Ints
    stuck: int


@dataclass(frozen=True, eq=False)
class Delay:
    """Waiting caused by one location in one region, seconds over all that waited: `short_s` by those that
    waited for it, `long_s` by others behind them. `region`: as in `Causes`; `name`: in words."""

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
    """Causes in a range. All in seconds.

    waits_s : (locations, 2) waiting of each: for delays of the location it waited for, and for waiting that
        this one only passed on (direct and indirect waiting).
    costs_s : (locations, 2) waiting of others because each was late: of those that waited for it, and of
        others behind them (short-term and long-term costs). Counted where the delay was, whenever the waiting
        is.
    region_waits_s, region_costs_s : (regions + 2, 2) the same by region.
    delays : the largest costs by location and region, largest first.
    unexplained_s : waiting of the whole run whose cause is unknown.
    path_s, region_path_s : (locations,), (regions + 2,) seconds of the critical path in each.
    slack_s, region_slack_s : (locations,), (regions + 2,) the least slack of what each does there except
        waiting; NaN if it is not there, or its slack is unknown.
    """

    waits_s: Floats
    costs_s: Floats
    region_waits_s: Floats
    region_costs_s: Floats
    delays: tuple[Delay, ...]
    unexplained_s: float
    path_s: Floats
    region_path_s: Floats
    slack_s: Floats
    region_slack_s: Floats


class Causes:
    """Delay costs, critical path and slack of a run; see the module."""

    def __init__(self, store: TraceStore, causality: Causality, progress: Progress) -> None:
        self.store, self.causality = store, causality
        self.outside = len(store.regions)
        self.before = self.outside + 1
        calls, waits = causality.calls, causality.waits
        places = np.arange(len(store.locations))
        met = np.where(
            waits.partner_call >= 0, calls.end[waits.partner_call], waits.released
        ) if calls.begin.size else waits.released  # fmt: skip
        self.waits = WaitStates(
            np.repeat(places, np.diff(waits.start)), waits.partner.astype(np.int64),
            calls.begin[waits.call], waits.until, calls.end[waits.call], np.maximum(met, waits.until),
        )  # fmt: skip
        self._clocks = causality.rules.clocks(store)
        repaired = causality.rules.repairs(store)
        self._spans = [at.span(repaired) for at in store.locations]
        never = np.iinfo(np.int64).min
        self.ends = np.array([span[1] if span else never for span in self._spans], np.int64)
        self.start = min((span[0] for span in self._spans if span), default=0)
        self.segments = self._segments(progress)
        progress.step(0, 0, "delay costs")
        self.costs: Costs = delay_costs(
            self.segments, self.waits, self._meetings(), self.before + 1, self.start
        )
        lasting = np.maximum(self.waits.end - self.waits.begin, 1)
        self._passed_on = 1.0 - self.costs.direct / lasting
        self._passed_on[self._passed_on < 1e-9] = 0.0  # rounding errors
        self._passed_on[self.waits.partner < 0] = 0.0
        progress.step(0, 0, "critical path")
        self.slack = self._slack()
        ends = self.ends if any(self._spans) else self.ends[:0]
        self.path: CriticalPath = critical_path(self.waits, self.start, ends)

    def name(self, region: int) -> str:
        """The name of a region, also of the two that are none."""
        if region < self.outside:
            return self.store.regions[region].name
        return NO_REGION_NAME if region == self.outside else BEFORE_NAME

    def _segments(self, progress: Progress) -> Segments:
        """The segments of each location: the innermost region from event to event, cut at its waits."""
        store, waits, places = self.store, self.waits, len(self.store.locations)
        starts = np.searchsorted(waits.location, np.arange(places + 1))
        room = sum(store.rows("events", i) + 4 for i in range(places)) + 2 * waits.location.size
        time = np.empty(room + 1, np.int64)
        doing, wait = np.empty(room, np.int32), np.empty(room, np.int32)
        first = np.zeros(places + 1, np.int64)
        regions = OpenRegions(no_classes(len(store.regions)))
        n = 0
        for i, at in enumerate(store.locations):
            progress.step(i, places, "delay costs")
            if span := self._spans[i]:
                regions.begin()
                times = [np.array([self.start, span[0]], np.int64)]
                tops = [np.array([self.before, self.outside], np.int32)]
                for when, kind, region in store.blocks("events", i, "time", "kind", "region"):
                    states = regions.states(when, kind, region)
                    if states is None:
                        raise StoreError(f"Events of location {at.id} are damaged. Import the trace again.")
                    times.append(self._clocks[i].common(when))
                    tops.append(np.where(states[0] < 0, self.outside, states[0]).astype(np.int32))
                times.append(np.array([span[1]], np.int64))
                edges = np.maximum.accumulate(np.concatenate(times))
                a, b = starts[i : i + 2]
                n += cut(
                    edges, np.concatenate(tops), waits.begin[a:b], waits.end[a:b], a, time[n:], doing[n:],
                    wait[n:],
                )  # fmt: skip
            n += 1
            first[i + 1] = n
        return Segments(first, time[:n], time[1 : n + 1], doing[:n], wait[:n])

    def _meetings(self) -> Meetings:
        """The n-to-n collectives."""
        operations, calls = self.causality.operations, self.causality.calls
        places = len(self.store.locations)
        row = np.flatnonzero(operations.kind == machine.N_TO_N)
        location = np.searchsorted(operations.start, row, side="right") - 1
        number, which = np.unique(operations.key[row], return_inverse=True)
        time = np.full(number.size, np.iinfo(np.int64).min)
        np.maximum.at(time, which, operations.time[row])
        inside = operations.call[row]
        leave = time[which]
        in_call = inside >= 0
        leave[in_call] = np.maximum(leave[in_call], calls.end[inside[in_call]])
        order = np.lexsort((location, which))
        return Meetings(
            np.searchsorted(location, np.arange(places + 1)), time[which], leave, which.astype(np.int64),
            np.searchsorted(which[order], np.arange(number.size + 1)), location[order], leave[order],
        )  # fmt: skip

    def _slack(self) -> Slack:
        """How much longer each stretch could have taken (`desktop.core.critical_path`).

        Dependencies: the rest of a call in which a message is received depends on its send, and on who must
        have entered a collective operation; the rest of a send that waited for its receive on that.
        """
        calls, waits = self.causality.calls, self.causality.waits
        late = np.flatnonzero((waits.account == Account.LATE_RECEIVER) & (waits.partner_call >= 0))
        nodes = self._nodes(late)
        size, first, waiting = nodes.time.size, nodes.first, nodes.call[waits.call]
        heads, tails, more = self._dependences(nodes, late)
        time = np.concatenate([nodes.time, more])
        del nodes  # several times what is kept, as is all else that ends before the next step
        wait_of = np.full(time.size, -1, np.int32)
        wait_of[waiting] = np.arange(waiting.size, dtype=np.int32)
        began = calls.begin[waits.call]
        spare = np.full(time.size, UNKNOWN)
        spare[first[1:] - 1] = self.ends.max(initial=BEGIN) - self.ends
        start = np.zeros(time.size + 1, np.int32)
        np.add.at(start[1:], tails, np.int32(1))
        start.cumsum(out=start)
        heads = heads[np.argsort(tails, kind="stable")]
        del tails
        stuck = float_of(time, first, wait_of, began, start, heads, spare)
        waited = time[waiting] - began
        spare[waiting] = np.where(spare[waiting] > UNKNOWN - waited, UNKNOWN, spare[waiting] + waited)
        return Slack(first, time[:size], spare[:size], stuck)

    def _nodes(self, late: Ints) -> _Nodes:
        """The nodes of the event graph: operations, on which others depend; calls, which depend on others;
        begins of calls that senders waited for (in the rows `late` of the waits); ends of locations."""
        calls, operations, waits = self.causality.calls, self.causality.operations, self.causality.waits
        begins = waits.partner_call[late]
        order = np.argsort(begins, kind="stable")
        m, needed = calls.begin.size, np.count_nonzero(operations.kind != machine.RECEIVE)
        time_of = np.empty(needed + m + begins.size + self.ends.size, np.int64)
        at_operation = np.full(operations.kind.size, -1, np.int32)
        at_call, at_begin = np.empty(m, np.int32), np.empty(begins.size, np.int32)
        first = np.zeros(self.ends.size + 1, np.int64)
        for i, end in enumerate(self.ends.tolist()):
            a, b = calls.start[i : i + 2]
            ours, w = slice(*operations.start[i : i + 2]), slice(*waits.start[i : i + 2])
            rows = np.flatnonzero(operations.kind[ours] != machine.RECEIVE)
            at, call = operations.time[ours][rows], operations.call[ours][rows]
            released = calls.begin[a:b].copy()
            released[waits.call[w] - a] = waits.until[w]
            inside = call >= 0
            np.maximum.at(released, call[inside] - a, at[inside])
            mine = order[slice(*np.searchsorted(begins[order], (a, b)))]
            time = np.concatenate([at, released, calls.begin[begins[mine]], [end]])
            # In a call what others depend on comes first: all of it is started before anything is waited for.
            step = 2 * call.astype(np.int64)
            outside = np.flatnonzero(step < 0)  # operations between calls
            step[outside] = 2 * (a + np.searchsorted(calls.begin[a:b], time[outside], side="right")) - 1
            step = np.concatenate(
                [step, 2 * np.arange(a, b) + 1, 2 * begins[mine].astype(np.int64), [2 * m + 2]]
            )
            by_time = np.lexsort((time, step))
            place = np.empty(time.size, np.int64)
            place[by_time] = np.arange(first[i], first[i] + time.size)
            first[i + 1] = first[i] + time.size
            time_of[first[i] : first[i + 1]] = time[by_time]
            n = rows.size
            at_operation[ours][rows] = place[:n]
            at_call[a:b] = place[n : n + b - a]
            at_begin[mine] = place[n + b - a : -1]
        return _Nodes(first, time_of, at_operation, at_call, at_begin)

    def _dependences(self, nodes: _Nodes, late: Ints) -> tuple[NDArray[np.int32], NDArray[np.int32], Ints]:
        """(edges,) nodes, and those that depend on them; (more,) times of further nodes, which stand for all
        that an operation of several needs and follow those of locations."""
        operations, messages = self.causality.operations, self.causality.messages
        kind, key, op_call = operations.kind, operations.key, operations.call
        at_operation, at_call, size = nodes.operation, nodes.call, nodes.time.size
        received = op_call[messages.receive]
        good = received >= 0
        source = [nodes.begin, at_operation[messages.send[good]]]
        target = [at_call[self.causality.waits.call[late]], at_call[received[good]]]
        del received, good
        process = process_of(self.store)
        root = self.causality.collectives.root
        rows = np.flatnonzero((kind != machine.SEND) & (kind != machine.RECEIVE) & (op_call >= 0))
        location = np.searchsorted(operations.start, rows, side="right") - 1
        is_root = (root[key[rows]] >= 0) & (process[location] == process[root[key[rows]]])
        gives = (kind[rows] == machine.N_TO_N) | np.where(kind[rows] == machine.ONE_TO_ALL, is_root, ~is_root)
        takes = (kind[rows] == machine.N_TO_N) | np.where(kind[rows] == machine.ONE_TO_ALL, ~is_root, is_root)
        scans = kind[rows] == machine.PREFIX
        for mask, ends, ours in ((gives & ~scans, source, target), (takes & ~scans, target, source)):
            members = rows[mask]
            ends.append(at_operation[members] if ends is source else at_call[op_call[members]])
            ours.append((size + key[members]).astype(np.int32))  # one node for all that an operation needs
        # In a scan each needs those before it: a chain of nodes, one per member.
        in_order = np.lexsort((location[scans], key[rows[scans]]))
        scan = rows[scans][in_order]
        link = np.arange(size + root.size, size + root.size + scan.size, dtype=np.int32)
        next_ = np.flatnonzero(key[scan[1:]] == key[scan[:-1]])
        source += [at_operation[scan], link[next_], link[next_]]
        target += [link, link[next_ + 1], at_call[op_call[scan[next_ + 1]]]]
        more = np.full(root.size + scan.size, BEGIN)
        for heads, tails in zip(source, target, strict=True):
            of_more = np.flatnonzero(tails >= size)
            known = heads[of_more] < size
            np.maximum.at(more, tails[of_more[known]] - size, nodes.time[heads[of_more[known]]])
        more[root.size :] = running_latest(key[scan], more[root.size :])
        return np.concatenate(source), np.concatenate(target), more

    def path_line(self, use: Utilization) -> PathLine:
        """The critical path in seconds on the axis of the curve of `use`."""
        return path_line(self.path, use)

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
        """The causes in the ticks from `begin` to `end` of the common clock."""
        places, regions = len(self.store.locations), self.before + 1
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
        unit = 1.0 / self.store.ticks_per_second
        spare, spare_regions = np.full(places, UNKNOWN), np.full(regions, UNKNOWN)
        stretches = self.slack.first, self.slack.end, self.slack.ticks
        least_float(*self.segments, *stretches, begin, end, spare, spare_regions)
        slack, slack_regions = (np.where(one < UNKNOWN, one * unit, np.nan) for one in (spare, spare_regions))
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
            slack_s=slack,
            region_slack_s=slack_regions,
        )


def path_line(path: CriticalPath, use: Utilization) -> PathLine:
    """A critical path in seconds on the axis of the curve of `use`."""
    unit = np.float64(use.unit)
    return PathLine(path.location, (path.begin - use.start) * unit, (path.end - use.start) * unit)

"""How long a run would take with changes: another network, faster or slower computing, balance.

`Rerun(store, use, progress, ...)` is the run as operations that a `desktop.core.machine.Machine` replays;
`predict(program, changes)` replays it with changes, `helps(program)` lists what would help most.

Each location is divided into *stretches* between its operations. A stretch consists of

* computing, in the activities that the curve counts: regions and phases change it;
* other time outside of communication (I/O, overhead, waiting for threads), which stays as recorded;
* time in communication calls (the library's own work, copying, polling).

On the network *as recorded* the replay reproduces the run to the tick if nothing is changed: each receive or
collective lasts, after the latest of what it waited for, as long as it did; a send waits for its receiver
where the trace shows that it did (late receiver, from `desktop.data.causality`); the time in calls stays. On
a *machine* the calls themselves take no time: they are replaced by the latency, the bandwidth and the waiting
of the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from desktop.core import machine, stretches
from desktop.core.arrays import AnyArray, Bytes, Flags, Floats, Ints
from desktop.core.changes import COLLECTIVES, MESSAGES, NONE, Changes
from desktop.core.curve import StepCurve
from desktop.core.machine import Network, Schedule
from desktop.core.open_regions import BEGIN
from desktop.core.units import count, grouped, quantity
from desktop.core.wait_kernels import clipped
from desktop.data import memory
from desktop.data.causality import Causality, memory_needed, unmatched
from desktop.data.events import RECEIVES, SENDS
from desktop.data.matching import process_of
from desktop.data.store import TraceStore
from desktop.data.utilization import Utilization, states
from desktop.errors import DesktopError
from desktop.progress import Progress, Share

#: Threads that lose their cores to others more often than this a second share them.
OFTEN = 20.0
#: Least number of messages from which a network can be estimated.
FEW = 20


def looked_at(
    use: Utilization, limit: tuple[float, float] | None, breakpoints: Sequence[float]
) -> tuple[int, int, Ints]:
    """Begin, end and inner breakpoints of the analysed part of a run, in ticks."""
    ticks = 1.0 / use.unit
    whole = use.start, use.start + int(use.edges[-1])
    cut = whole if limit is None else tuple(use.start + round(t * ticks) for t in limit)
    begin, end = max(cut[0], whole[0]), min(cut[1], whole[1])
    inner = (use.start + np.rint(np.asarray(breakpoints, float) * ticks)).astype(np.int64)
    return begin, end, inner[(inner > begin) & (inner < end)]


def crowding(store: TraceStore) -> str:
    """The sentence that the threads of a run shared cores while it was recorded, and what of it, or ""."""
    notes = store.notes
    threads, cores, switches = (int(notes.get(name) or 0) for name in ("threads", "cores", "switches"))
    alive = sum(at.last - at.first for at in store.locations if at.first is not None and at.last is not None)
    said = [f"{threads} threads shared {count(cores, 'core')}"] if threads > cores > 0 else []
    if switches > OFTEN * alive / store.ticks_per_second:
        said.append(f"a thread lost its core to another {grouped(switches)} times")
    if not said:
        return ""
    return (
        f"While it was recorded, {' and '.join(said)}. A rank that waits for all others then goes on later "
        "than one that comes last, so a range is predicted."
    )


@dataclass(frozen=True, eq=False)
class RunPrediction:
    """A predicted run. `duration_s`: seconds; `ends_s` : (locations,) end of each; `breaks_s` : (phases - 1,)
    predicted inner ones of the phases (s on the curve's axis), as means over all locations. `note`: why there
    is no prediction (`duration_s` is NaN then), or "". `low_s`: how short it may be as well, NaN unless
    `crowded` says why.
    """

    changes: Changes
    duration_s: float
    recorded_s: float
    note: str = ""
    ends_s: Floats = field(default_factory=lambda: np.zeros(0))
    breaks_s: Floats = field(default_factory=lambda: np.zeros(0))
    low_s: float = math.nan
    crowded: str = ""
    #: what the curve is made from, until it is: 16 bytes per operation
    _of: list[Callable[[], StepCurve | None]] = field(default_factory=list)

    @property
    def saved_s(self) -> float:
        return self.recorded_s - self.duration_s

    @property
    def duration_words(self) -> str:
        """How long it lasts, with its range if that makes a difference."""
        longest = quantity(self.duration_s, "s")
        if not self.low_s < self.duration_s - 0.001 * self.recorded_s:
            return longest
        return f"{quantity(self.low_s, 's')} to {longest}"

    @cached_property
    def curve(self) -> StepCurve | None:
        """Processors that compute over time, from the begin of the curve; None without prediction."""
        if not self._of or not self.duration_s > 0:
            return None
        return self._of.pop()()


class NetworkEstimate(NamedTuple):
    """The network of a run, from messages whose receivers waited for them: seconds, bytes per second, and the
    number of these messages."""

    latency_s: float
    bandwidth: float
    messages: int


class Rerun:
    """A run as operations and the stretches between them. See the module.

    Memory: 60 bytes per operation (a message has two or three) and 20 per stretch of computing, besides
    `causality`; while it is made, and while it predicts and draws, 60 more.

    Parameters
    ----------
    use : the utilization, with its rules; `causality`: with the same rules, if already available.
    limit : seconds of the analysed part; None: the whole run.
    breakpoints : inner breakpoints of its phases (s).

    Raises
    ------
    DesktopError : there is too little memory.
    """

    def __init__(
        self,
        store: TraceStore,
        use: Utilization,
        progress: Progress | None = None,
        *,
        causality: Causality | None = None,
        limit: tuple[float, float] | None = None,
        breakpoints: Sequence[float] = (),
    ) -> None:
        progress = progress or Progress()
        _check_memory(store, causality)
        self._store, self.unit = store, use.unit
        self._rules = use.rules
        self.causality = causality or Causality(store, use.rules, Share(progress, 0.0, 0.5))
        self._begin, self._end, self.breakpoints = looked_at(use, limit, breakpoints)
        #: seconds at which it begins on the axis of the curve, and its length
        self.start_s = (self._begin - use.start) * use.unit
        self.recorded_s = (self._end - self._begin) * use.unit
        #: names of the regions with most computing, if they have been looked up (`helping.prepared`)
        self.regions: tuple[str, ...] = ()
        #: by name: the stretches it is in, its ticks there, the stretches it is entered in, and how often
        self._region_times: dict[str, tuple[_Indices, Floats, _Indices, Floats]] = {}
        self.crowded = crowding(store)
        self._gather(Share(progress, 0.5, 1.0))

    # ---- the recorded run

    def _gather(self, progress: Progress) -> None:
        """The operations of all locations, and when each was reached, released and complete."""
        store, graph = self._store, self.causality
        self._clocks = self._rules.clocks(store)
        repaired, nowhere = self._rules.repairs(store), (self._begin, self._begin)
        spans = [at.span(repaired) or nowhere for at in store.locations]
        self._born, self._died = np.clip(np.array(spans, np.int64).reshape(-1, 2).T, self._begin, self._end)
        time, call, waiting = self._list()
        ops, calls, messages = self._ops, graph.calls, graph.messages
        of_calls = time, call, calls.begin, calls.end
        n, m = time.size, messages.sent.size
        point, over = np.zeros((2, n), np.int64)
        stretches.reach(ops.first, ops.last, ops.kind, *of_calls, self._born, self._died, point, over)
        sent, posted = np.full((2, m), BEGIN)
        stretches.meet(*ops, point, sent, posted)
        #: how a sender continues: according to its call, and on the network as recorded
        self._may, self._did = np.full((2, m), machine.DEFERRED, np.uint8)
        self._did[:] = machine.EAGER
        stretches.block(*ops, *of_calls, point, posted, waiting, self._may, self._did)
        del waiting
        self._early = np.zeros(m, np.int64)
        let_go, latest = np.full(n, BEGIN), np.full(graph.collectives.root.size, BEGIN)
        stretches.release(
            *ops, graph.collectives.root, point, over, sent, posted, self._did, self._early, latest, let_go
        )
        del sent, posted
        self._extra = np.zeros(n, np.float64)
        since, until = np.zeros((2, n + self._born.size), np.int64)
        ends = self._born, self._died
        stretches.lay_out(*ops[:3], *of_calls, point, over, let_go, *ends, self._extra, since, until)
        #: when each operation was reached and complete; for each stretch, those after the last operations at
        #: the end, begin and end without the calls that extend over its ends
        self._laid = ops.first, ops.last, self._born, self._died, point, over, since, until
        del time, call, of_calls, let_go
        self._spend(progress)

    def _list(self) -> tuple[Ints, _Indices, _Indices]:
        """All operations in the range: the known ones, also those across its ends, receives posted before,
        sends completed later, and the breakpoints of phases. Their times and calls, and for each message the
        call in which its sender waits for it, -1 if it never does."""
        causality, places = self.causality, len(self._store.locations)
        operations, messages, calls = causality.operations, causality.messages, causality.calls
        receive_call = operations.call[messages.receive]
        begins = np.where(receive_call >= 0, calls.begin[receive_call] if calls.begin.size else BEGIN, BEGIN)
        early = np.flatnonzero((messages.posted > BEGIN) & (messages.posted < begins))
        del receive_call, begins
        more = [_Rows.of(messages.receiver[early], messages.posted[early], machine.POST, early, -1)]
        waiting = np.full(messages.sent.size, -1, np.int32)
        call, message = causality.sends
        waiting[message] = call
        later = np.flatnonzero((waiting >= 0) & (waiting != operations.call[messages.send]))
        in_call = waiting[later]
        more.append(_Rows.of(messages.sender[later], calls.end[in_call], machine.COMPLETE, later, in_call))
        at, k = (x.ravel() for x in np.indices((places, self.breakpoints.size)))
        cut = self.breakpoints[k]
        alive = (cut > self._born[at]) & (cut < self._died[at])
        at, cut = at[alive], cut[alive]
        for i in range(places):  # a breakpoint inside of a call cuts before it
            mine, (a, b) = at == i, calls.start[i : i + 2]
            if b > a and mine.any():
                row = a + np.searchsorted(calls.begin[a:b], cut[mine], side="right") - 1
                within = (row >= a) & (cut[mine] < calls.end[np.maximum(row, a)])
                cut[mine] = np.where(within, calls.begin[np.maximum(row, a)], cut[mine])
        more.append(_Rows.of(at, np.maximum(cut, self._born[at]), machine.MARK, 0, -1))
        more = [rows for rows in more if rows.time.size]
        across = self._across()
        room = operations.time.size + sum(rows.time.size for rows in more)
        time, kind = np.empty(room, np.int64), np.empty(room, np.uint8)
        key, call = np.empty((2, room), np.int32)
        columns: tuple[AnyArray, ...] = time, kind, key, call
        first = np.zeros(places + 1, np.int64)
        n = 0
        for i in range(places):
            part = slice(operations.start[i], operations.start[i + 1])
            recorded = operations.time, operations.kind, operations.key, operations.call
            parts = [tuple(column[part] for column in recorded), *(rows.of_place(i) for rows in more)]
            mine = [np.concatenate(column) for column in zip(*parts, strict=True)]
            order = np.lexsort((_ORDER[mine[1]], mine[0]))
            inside = (mine[0] >= self._begin) & (mine[0] < self._beyond)
            if across.size:
                inside[: part.stop - part.start] |= across[part]
            order = order[inside[order]]
            np.clip(mine[0], self._begin, self._end, out=mine[0])
            for column, new in zip(columns, mine, strict=True):
                column[n : n + order.size] = new[order]
            n += order.size
            first[i + 1] = n
        self._ops = _Operations(first[:-1], first[1:], kind[:n], key[:n])
        return time[:n], call[:n], waiting

    @property
    def _beyond(self) -> int:
        """The first tick beyond the range: events at the very end of the run belong to it."""
        return self._end + int(self._end >= self._died.max(initial=0))

    def _across(self) -> Flags:
        """(operations of `causality`,) those outside of the range for which somebody waits in it, or in which
        somebody is at its begin: they happen at its ends. Empty if the range is the whole run."""
        operations, calls = self.causality.operations, self.causality.calls
        time, kind, key = operations.time, operations.kind, operations.key
        before, after = time < self._begin, time >= self._beyond
        self._crossing = np.zeros(0, np.int64), np.zeros(0, np.int64)  # messages and collective operations
        self._moved = np.zeros(2, np.int64)  # sends and receives from outside
        if not (before.any() or after.any()):
            return np.zeros(0, bool)
        since, until = time.copy(), time.copy()
        called = operations.call >= 0
        since[called] = calls.begin[operations.call[called]]
        until[called] = calls.end[operations.call[called]]
        together = kind >= machine.N_TO_N
        across: Flags = together & before & (until > self._begin)
        open_at_end = np.zeros(self.causality.collectives.root.size, bool)
        open_at_end[key[together & (~before | across) & ~after & (until > self._end)]] = True
        across[together] |= after[together] & open_at_end[key[together]]
        waits = (kind == machine.RECEIVE) & after & (since < self._end)
        awaited = np.zeros(self.causality.messages.sent.size, bool)
        awaited[key[waits]] = True
        sends = (kind == machine.SEND) & after
        sends[sends] = awaited[key[sends]]
        self._moved[:] = sends.sum(), waits.sum()
        open_at_end[key[across & together]] = True
        self._crossing = np.flatnonzero(awaited), np.flatnonzero(open_at_end)
        across |= waits | sends
        return across

    def _spend(self, progress: Progress) -> None:
        """Divide every stretch into its parts, and list each piece of computing in it."""
        store, calls, ops = self._store, self.causality.calls, self._ops
        places, n = len(store.locations), ops.kind.size
        counted = np.zeros(256, bool)
        counted[[int(activity) for activity in self._rules.computing]] = True
        self._busy, self._called = np.zeros((2, n + places))
        self._phase = np.zeros(n + places, np.min_scalar_type(self.breakpoints.size))
        self.is_processor = np.zeros(places, bool)
        pieces: list[tuple[_Indices, Ints, Ints]] = []
        for i in range(places):
            progress.step(i, places, "replay")
            at = self._stretches(i)
            low, high, since, until = self._spans(i)
            phase = np.searchsorted(self.breakpoints, (low + high) / 2, side="right")
            self._phase[at] = phase
            begin, end = np.zeros(0, np.int64), np.zeros(0, np.int64)
            if store.locations[i].kind == "cpu" and store.locations[i].first is not None:
                self.is_processor[i] = True
                begin, end, doing = states(store, i, self._rules)
                begin, end = begin[counted[doing]], end[counted[doing]]
            which, a, b = _parts(since, until, begin, end)
            busy = np.bincount(which, b - a, at.size)
            self._busy[at] = busy
            c = slice(calls.start[i], calls.start[i + 1])
            within, begin, end = _parts(since, until, calls.begin[c], calls.end[c])
            called = np.bincount(within, end - begin, at.size)
            both, begin, end = _parts(begin, end, a, b)  # computing inside of a call does not count as call
            self._called[at] = called - np.bincount(within[both], end - begin, at.size)
            pieces.append((at[which].astype(np.int32), a, b))
        #: the stretch of each piece, and its begin and end
        self._pieces = tuple(np.concatenate(column) for column in zip(*pieces, strict=True))

    def _stretches(self, location: int) -> Ints:
        """The stretches of a location in order of time."""
        ops = self._ops
        rows = np.arange(ops.first[location], ops.last[location])
        return np.append(rows, ops.kind.size + location)

    def _spans(self, location: int) -> tuple[Ints, Ints, Ints, Ints]:
        """Begins and ends of its stretches, and the same without the calls that extend over these."""
        ends = np.empty((4, int(self._ops.last[location] - self._ops.first[location]) + 1), np.int64)
        stretches.spans(location, *self._laid, ends)
        low, high, since, until = ends
        return low, high, since, until

    # ---- changes

    @property
    def size(self) -> int:
        """Approximate number of bytes in memory besides its `causality`."""
        held = *self._ops, *self._laid, *self._pieces, self._busy, self._called, self._extra, self._phase
        return sum(column.nbytes for column in (*held, self._early, self._may, self._did))

    @property
    def operations(self) -> int:
        return int(self._ops.kind.size)

    @property
    def phases(self) -> int:
        return self.breakpoints.size + 1

    def computing_s(self) -> Floats:
        """(locations, phases) seconds that each location computes outside of calls."""
        at = self._place() * self.phases + self._phase
        ticks = np.bincount(at, self._busy, self._born.size * self.phases).reshape(-1, self.phases)
        return np.asarray(ticks * self.unit, np.float64)

    def calls_of(self, region: str, progress: Progress | None = None) -> int:
        """How often a region is entered.

        Raises
        ------
        ValueError : there is no region of that name.
        """
        self._count_regions((region,), progress or Progress())
        return int(self._region_times[region][3].sum())

    def _count_regions(self, names: Sequence[str], progress: Progress) -> None:
        """Ticks in each region by name, exclusive, and calls, in each stretch."""
        names = [name for name in dict.fromkeys(names) if name not in self._region_times]
        if not names:
            return
        store = self._store
        row_of = np.full(len(store.regions), -1, np.int64)
        for k, name in enumerate(names):
            of_name = [r for r, region in enumerate(store.regions) if region.name == name]
            if not of_name:
                raise ValueError(f"there is no region {name!r} in the trace")
            row_of[of_name] = k
        by_name: list[list[tuple[_Indices, Floats, _Indices, Floats]]] = [[] for _ in names]
        for i in range(len(store.locations)):
            progress.step(i, len(store.locations), "regions")
            at = self._stretches(i).astype(np.int32)
            _, reached, low, high = self._spans(i)
            ticks, entered = np.zeros((2, len(names), at.size))
            state, stack = np.array([0, 0, BEGIN, 0], np.int64), np.zeros(1 << 8, np.int64)
            for when, kind, region in store.blocks("events", i, "time", "kind", "region"):
                if state[0] + when.size >= stack.size:
                    stack = np.concatenate([stack, np.zeros(state[0] + when.size, np.int64)])
                stretches.in_regions(
                    self._clocks[i].common(when), kind, region, row_of, stack, state, low, high, reached,
                    ticks, entered,
                )  # fmt: skip
            for parts, spent, times in zip(by_name, ticks, entered, strict=True):
                nonzero, called = spent > 0, times > 0
                parts.append((at[nonzero], spent[nonzero], at[called], times[called]))
        for name, parts in zip(names, by_name, strict=True):
            of_calls, spent, of_enters, times = (np.concatenate(one) for one in zip(*parts, strict=True))
            self._region_times[name] = of_calls, spent, of_enters, times

    def predict(
        self, changes: Changes = NONE, progress: Progress | None = None, times: bool = True
    ) -> RunPrediction:
        """The predicted run. Without `times` only its duration: no curve and no breakpoints.

        Raises
        ------
        ValueError : there is no such region, phase or rank.
        """
        progress = progress or Progress()
        if self.note:
            return RunPrediction(changes, math.nan, self.recorded_s, self.note)
        busy = self._changed(changes, progress)
        on = changes.network
        ticks = 1.0 / self.unit
        messages, together = self.causality.messages, self.causality.collectives
        gap, begin = np.empty(busy.size), (self._born - self._begin).astype(float)
        spent = self._busy, self._called, busy
        stretches.gaps(*self._laid, *spent, on is None, gap)
        if on is None:
            extra, manner, cost = self._extra, self._did, np.zeros(together.root.size)
            transfer, latency, buses = self._early.astype(float), 0.0, 0
        else:
            extra = np.zeros(self._extra.size)
            latency, buses = on.latency_s * ticks, on.buses
            per_byte = ticks / on.bandwidth
            transfer = messages.bytes * per_byte
            cost = machine.collective_cost(self._members, together.sent, together.received, latency, per_byte)
            transfer[self._crossing[0]] = 0.0
            cost[self._crossing[1]] = 0.0
            manner = np.where(messages.bytes > on.eager, self._may, np.uint8(machine.EAGER))
        n = self.operations
        operations = Schedule(*self._ops, gap[:n], extra, self._free(changes.no_wait), begin, gap[n:])
        network = Network(messages.receiver, transfer, manner, together.root, cost, latency, buses)
        replayed = machine.replay(operations, network, progress, times)
        if replayed.duration == machine.STUCK:
            return RunPrediction(changes, math.nan, self.recorded_s, _STUCK)
        ends = np.where(self._decides, replayed.ends, 0.0)
        lasts = RunPrediction(
            changes, float(ends.max(initial=0.0)) * self.unit, self.recorded_s, "", ends * self.unit
        )
        if not times:
            return lasts
        if on is None and self.crowded and changes.sentence:
            low = self.recorded_s + self._least_s(operations, network, progress) - self._recorded_least_s
            lasts = replace(lasts, low_s=min(low, lasts.duration_s), crowded=self.crowded)
        moved = np.full((self.breakpoints.size, begin.size), np.nan)
        stretches.moved_breakpoints(
            self.breakpoints, *self._laid, *spent, on is None, begin, replayed.went, gap, moved
        )
        moved[:, ~self.is_processor] = np.nan
        for k, at in enumerate(moved):
            at = at[~np.isnan(at)]
            moved[k, 0] = at.mean() if at.size else self.breakpoints[k] - self._begin
        breakpoints = self.start_s + np.maximum.accumulate(moved[:, 0]) * self.unit
        drawn = partial(self.curve, replayed.went, busy, on is None, lasts.duration_s)
        return replace(lasts, breaks_s=breakpoints, _of=[drawn])

    @cached_property
    def note(self) -> str:
        """Why nothing can be predicted, or ""."""
        if self._store.has("curve"):
            return "The source is a curve: nothing else is known about its processors."
        if self.causality.disagreeing:
            return "Members of a communicator name different collective operations."
        kinds = np.bincount(self._ops.kind, minlength=2)
        lost = [
            int(rows + moved - kinds[kind])
            for rows, moved, kind in zip(
                self._rows(), self._moved, (machine.SEND, machine.RECEIVE), strict=True
            )
        ]
        if any(lost):
            return unmatched(*lost)
        if not kinds[: machine.MARK].any() and self.is_processor.sum() > 1:
            return "No messages and no collective operations are recorded here that say who waits for whom."
        return ""

    @cached_property
    def _least_extra(self) -> Floats:
        """As `_extra`, but no member of an n-to-n operation takes longer, once all are there, than the one
        that came last: who waits loses its core, and has to get it back first."""
        ops, point = self._ops, self._laid[4]
        extra, at = self._extra.copy(), np.flatnonzero(self._ops.kind == machine.N_TO_N)
        key = ops.key[at]
        last = np.zeros(self.causality.collectives.root.size, np.int64)
        order = np.argsort(point[at], kind="stable")
        last[key[order]] = at[order]
        extra[at] = np.minimum(extra[at], extra[last[key]])
        return extra

    def _least_s(self, operations: Schedule, network: Network, progress: Progress) -> float:
        """Seconds that a replay takes with `_least_extra`."""
        replayed = machine.replay(operations._replace(extra=self._least_extra), network, progress, False)
        return float(replayed.ends[self._decides].max(initial=0.0)) * self.unit

    @cached_property
    def _recorded_least_s(self) -> float:
        """The same for the run as recorded."""
        spent, gap = (self._busy, self._called, self._busy), np.empty(self._busy.size)
        stretches.gaps(*self._laid, *spent, True, gap)
        n, begin = self.operations, (self._born - self._begin).astype(float)
        operations = Schedule(*self._ops, gap[:n], self._extra, self._free(()), begin, gap[n:])
        messages, together = self.causality.messages, self.causality.collectives
        instant = np.zeros(together.root.size)
        early = self._early.astype(float)
        network = Network(messages.receiver, early, self._did, together.root, instant, 0.0, 0)
        return self._least_s(operations, network, Progress())

    def _rows(self) -> tuple[int, int]:
        """Number of sends and receives recorded in the range."""
        count = [0, 0]
        for i, clock in enumerate(self._clocks):
            for when, kind in self._store.blocks("messages", i, "time", "kind"):
                when = clock.common(when)
                inside = (when >= self._begin) & (when < self._beyond)
                for k, kinds in enumerate((SENDS, RECEIVES)):
                    count[k] += int(np.isin(kind[inside], kinds).sum())
        return count[0], count[1]

    @cached_property
    def collectives(self) -> tuple[str, ...]:
        """Names of the collective operations in the range."""
        which = np.unique(self.causality.collectives.operation[self._ops.key[self._together]])
        return tuple(dict.fromkeys(self._store.texts[k] for k in which.tolist()))

    @cached_property
    def estimate(self) -> NetworkEstimate | None:
        """The estimated network, from messages that their receivers waited for, which took the latency and
        their bytes over the bandwidth: the latency is the median of the smallest quarter, the bandwidth
        follows from the medians of the smallest and the largest quarter (infinite, if those take no longer).
        None if there are fewer than `FEW` such messages."""
        ops, messages = self._ops, self.causality.messages
        at = np.flatnonzero(ops.kind == machine.RECEIVE)
        sent, size = messages.sent[ops.key[at]], messages.bytes[ops.key[at]]
        point, over = self._laid[4:6]
        took = (over[at] - sent) * self.unit
        good = (sent > point[at]) & (sent >= self._begin) & (took > 0) & (over[at] < self._beyond)
        took, size = took[good], size[good]
        if took.size < FEW:
            return None
        low, high = np.quantile(size, (0.25, 0.75))
        small, large = size <= low, size >= high
        latency, slow = float(np.median(took[small])), float(np.median(took[large]))
        more = float(np.median(size[large]) - np.median(size[small]))
        wide = more / (slow - latency) if more > 0 and slow > latency else math.inf
        if math.isfinite(wide):
            latency = max(0.0, latency - float(np.median(size[small])) / wide)
        return NetworkEstimate(latency, wide, int(took.size))

    @cached_property
    def _decides(self) -> Flags:
        """(locations,) whether it can end the run: it communicates, or no location of its process does."""
        ops = self._ops
        talks = ops.last > ops.first
        process = process_of(self._store)
        deciding: Flags = self.is_processor & (talks | ~np.isin(process, process[talks]))
        return deciding

    @cached_property
    def _members(self) -> Ints:
        """(collectives,) number of members in the range."""
        return np.bincount(self._ops.key[self._together], minlength=self.causality.collectives.root.size)

    @property
    def _together(self) -> Flags:
        """(operations,) which are collective."""
        return np.asarray((self._ops.kind >= machine.N_TO_N) & (self._ops.kind <= machine.PREFIX))

    def _free(self, names: Sequence[str]) -> Flags:
        ops = self._ops
        free = np.zeros(ops.kind.size, np.bool_)
        together = self._together
        for name in names:
            if name == MESSAGES:
                free |= np.isin(ops.kind, (machine.RECEIVE, machine.SEND, machine.COMPLETE))
            elif name == COLLECTIVES:
                free |= together
            else:
                texts = np.array([text == name for text in self._store.texts], bool)
                which = np.flatnonzero(together)
                which = which[texts[self.causality.collectives.operation[ops.key[which]]]]
                if not which.size:
                    raise ValueError(f"there is no collective operation {name!r} in the trace")
                free[which] = True
        return free

    def _changed(self, changes: Changes, progress: Progress) -> Floats:
        """Ticks of computing in each stretch after the changes."""
        busy = self._busy.copy()
        self._count_regions([name for name, _ in (*changes.regions, *changes.longer)], progress)
        for name, factor in changes.regions:
            at, ticks, *_ = self._region_times[name]
            busy[at] += np.minimum(ticks, self._busy[at]) * (1.0 / factor - 1.0)
        for k, factor in changes.phases:
            busy[self._of_phase(k)] /= factor
        for first, last, factor in changes.slower:
            busy[np.isin(self._place(), self._ranked(first, last))] *= factor
        for name, seconds in changes.longer:
            *_, at, entered = self._region_times[name]
            busy[at] += entered * (seconds / self.unit)
        for k in changes.balanced:
            self._balance(busy, k)
        return np.maximum(busy, 0.0, out=busy)

    def _place(self) -> Ints:
        """The location of each stretch."""
        ends = np.cumsum(self._ops.last - self._ops.first).tolist()
        place = np.empty(sum(ends[-1:]) + len(ends), np.int64)
        for i, (begin, end) in enumerate(pairwise([0, *ends])):
            place[begin:end] = i  # piece by piece: numpy's repeat blocks all threads
        place[sum(ends[-1:]) :] = np.arange(len(ends))
        return place

    def _of_phase(self, k: int) -> Flags:
        if not 0 <= k < self.phases:
            raise ValueError(f"there is no phase {k + 1}, there are {self.phases}")
        inside: Flags = self._phase == k
        return inside

    def _ranked(self, first: int, last: int) -> Ints:
        """The locations with a range of ranks (for threads without ranks: of their numbers)."""
        ranks = np.array([i if x.rank < 0 else x.rank for i, x in enumerate(self._store.locations)])
        locations = np.flatnonzero((ranks >= first) & (ranks <= last) & self.is_processor)
        if not locations.size:
            raise ValueError(f"there is no rank from {first} to {last} in the trace")
        return locations

    def _balance(self, busy: Floats, k: int) -> None:
        """Make every location present in a phase compute as long as the mean of all."""
        in_phase, place = self._of_phase(k), self._place()
        spent = np.bincount(place[in_phase], busy[in_phase], self._born.size)
        edges = np.concatenate([[self._begin], self.breakpoints, [self._end]])
        # Also who is in a call for all of the phase is there, and could take a part of the computing.
        there = (self._born < edges[k + 1]) & (self._died > edges[k])
        active = np.flatnonzero(there & self.is_processor)
        if not active.size:
            return
        mean = spent[active].mean()
        factor = np.ones(spent.size)
        some = active[spent[active] > 0]
        factor[some] = mean / spent[some]
        busy[in_phase] *= factor[place[in_phase]]
        ops = self._ops
        for i in active[spent[active] <= 0].tolist():  # those that did not compute do it at the begin
            marks = np.flatnonzero(ops.kind[ops.first[i] : ops.last[i]] == machine.MARK)
            before = int(np.count_nonzero(self.breakpoints[:k] > self._born[i]))
            busy[self._stretches(i)[marks[before - 1] + 1 if before else 0]] += mean

    def curve(self, went: Floats, busy: Floats, calls: bool, duration_s: float) -> StepCurve | None:
        """Processors that compute, from the begin of the curve to the predicted end; `calls`: whether time in
        calls stays."""
        spent = self._busy, self._called, busy
        room = self._pieces[0].size + int(((self._busy <= 0) & (busy > 0)).sum())
        moved = np.empty((2, room))
        stretches.move_pieces(
            *self._laid, *spent, calls, (self._born - self._begin).astype(float), went, *self._pieces, *moved
        )
        del went, busy, spent
        moved.sort()
        end = duration_s / self.unit
        near, nothing = 1e-9 * end, np.zeros(0)  # times that differ only by rounding are equal
        n = stretches.step_levels(*moved, end, near, nothing, nothing)
        if not n:
            return None
        edges, level = np.empty(n + 1), np.empty(n)
        stretches.step_levels(*moved, end, near, edges, level)
        del moved
        edges[n] = end
        edges += round(self.start_s / self.unit)
        edges.flags.writeable = level.flags.writeable = False  # so that they are not copied
        return StepCurve(edges, level, float(self.is_processor.sum()), self.unit)


_Indices = NDArray[np.int32]


def _check_memory(store: TraceStore, causality: Causality | None) -> None:
    """Refuse if more memory is needed than available: at most 200 bytes per operation."""
    rows = store.count("messages") + store.count("collectives")
    needed, free = 200 * rows + (0 if causality else memory_needed(store)), memory.available()
    if free is not None and needed > free:
        raise DesktopError(
            f"What if is not made ready: it takes {needed / 2**30:.1f} GiB of memory, "
            f"{free / 2**30:.1f} GiB are free",
            hint="free some, or open a part of the trace",
        )


class _Operations(NamedTuple):
    """Operations of all locations: first, last (locations,), kind and key (n,)."""

    first: Ints
    last: Ints
    kind: Bytes
    key: _Indices


class _Rows(NamedTuple):
    """Additional operations of one kind, by location: all (n,)."""

    place: Ints
    time: Ints
    kind: Bytes
    key: _Indices
    call: _Indices

    @classmethod
    def of(cls, place: AnyArray, time: Ints, kind: int, key: ArrayLike, call: ArrayLike) -> _Rows:
        order = np.argsort(place, kind="stable")
        key, call = (np.broadcast_to(one, place.shape)[order].astype(np.int32) for one in (key, call))
        return cls(place[order], time[order], np.full(place.size, kind, np.uint8), key, call)

    def of_place(self, i: int) -> tuple[AnyArray, ...]:
        """Time, kind, key and call of a location's operations."""
        rows = slice(*np.searchsorted(self.place, (i, i + 1)).tolist())
        return tuple(column[rows] for column in self[1:])


#: Order of operations at one time: breakpoints first, sends before receives, completions last.
_ORDER = np.array([1, 3, 4, 4, 4, 4, 0, 2, 5])
_STUCK = "The replay comes to a halt: everybody waits for somebody else."


def _parts(low: Ints, high: Ints, begin: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
    """The intersections of ranges (n,) and intervals (m,), both in order and without overlap: index of the
    range, begin and end."""
    out = np.empty((3, low.size + begin.size), np.int64)
    a, b, which = out[:, : clipped(low, high, begin, end, out)]
    some = np.flatnonzero(b > a)
    return which[some], a[some], b[some]

"""What a run would last if something were different: another network, faster or slower computing, balance.

`Rerun(store, use, progress, ...)` is the run as operations that a `desktop.core.machine.Machine` replays;
`predict(program, changes)` replays it with changes, `helps(program)` is what would help most.

Each location is divided into *stretches* between its operations. What happens in a stretch is one of

* computing, in the activities that the curve counts: regions and phases change it;
* other time outside of communication (I/O, overhead, waiting for threads), which stays as recorded;
* time in communication calls (the library's own work, copying, polling).

On the network *as recorded* the replay reproduces the run to the tick, if nothing is changed: each receive or
collective lasts, after the latest of what it waited for, as long as it did; a send waits for its receiver
where the trace shows that it did (late receiver, as `desktop.data.causality` finds them); the time in calls
stays. On a *machine* the calls themselves take no time: the latency, the bandwidth and the waiting of the
model stand in their place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from desktop.core import machine
from desktop.core.changes import COLLECTIVES, MESSAGES, NONE, Changes
from desktop.core.curve import StepCurve
from desktop.core.machine import Network, Schedule
from desktop.core.open_regions import BEGIN
from desktop.core.stretches import block, in_regions, lay_out, meet, reach, release, step_levels
from desktop.core.wait_kernels import clipped
from desktop.data.causality import Causality, unmatched
from desktop.data.events import MessageKind
from desktop.data.matching import process_of
from desktop.data.store import TraceStore
from desktop.data.utilization import Utilization, states
from desktop.progress import Progress, Share

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Messages from which a network can be estimated, at least.
FEW = 20


@dataclass(frozen=True, eq=False)
class RunPrediction:
    """How a run would go. `duration_s`: seconds; `ends_s` : (locations,) when each is over. `note`: why there
    is no prediction (`duration_s` is NaN then), or "".
    """

    changes: Changes
    duration_s: float
    recorded_s: float
    note: str = ""
    ends_s: Floats = field(default_factory=lambda: np.zeros(0))
    _of: tuple[Rerun, Floats, Floats, Floats] | None = None

    @property
    def saved_s(self) -> float:
        """Seconds that the run would be shorter."""
        return self.recorded_s - self.duration_s

    @cached_property
    def curve(self) -> StepCurve | None:
        """Processors that compute over time, from the begin of the curve; None without prediction."""
        if self._of is None or not self.duration_s > 0:
            return None
        program, came, went, mid = self._of
        return program.curve(came, went, mid, self.duration_s)

    @cached_property
    def breaks_s(self) -> Floats:
        """(breaks,) where the inner breaks of the phases come to lie (s on the curve's axis), in the mean of
        all locations."""
        if self._of is None:
            return np.zeros(0)
        program, came, went, mid = self._of
        return program.moved(came, went, mid)


class NetworkEstimate(NamedTuple):
    """The network of a run, from messages whose receivers waited for them: seconds, bytes per second, and the
    number of those messages."""

    latency_s: float
    bandwidth: float
    messages: int


class Rerun:
    """A run as operations with what lies between them. See the module.

    Memory: some 150 bytes for each operation (a message has two or three), 24 for each stretch of computing.

    Parameters
    ----------
    use : the utilization, with its rules; `causality`: of the same, if it is there already.
    limit : seconds of the part that is looked at; None: the whole run.
    breaks : inner breaks of its phases (s).

    Raises
    ------
    StoreError : the store is damaged.
    Cancelled : by `progress`.
    """

    def __init__(
        self,
        store: TraceStore,
        use: Utilization,
        progress: Progress | None = None,
        *,
        causality: Causality | None = None,
        limit: tuple[float, float] | None = None,
        breaks: Sequence[float] = (),
    ) -> None:
        progress = progress or Progress()
        self._store, self.unit = store, use.unit
        self._rules = use.rules
        self.causality = causality or Causality(store, use.rules, Share(progress, 0.0, 0.5))
        ticks = 1.0 / use.unit
        whole = use.start, use.start + int(use.edges[-1])
        cut = whole if limit is None else tuple(use.start + round(t * ticks) for t in limit)
        self._begin, self._end = max(cut[0], whole[0]), min(cut[1], whole[1])
        #: seconds at which it begins on the axis of the curve, and its length
        self.start_s = (self._begin - use.start) * use.unit
        self.recorded_s = (self._end - self._begin) * use.unit
        inner = (use.start + np.rint(np.asarray(breaks, float) * ticks)).astype(np.int64)
        self.breaks = inner[(inner > self._begin) & (inner < self._end)]
        self._known_regions: dict[str, tuple[Floats, Floats]] = {}
        self._gather(Share(progress, 0.5, 1.0))

    # ---- what was recorded

    def _gather(self, progress: Progress) -> None:
        """The operations of all locations, and when each was reached, let go and over."""
        store, known = self._store, self.causality
        repaired = store.repair if self._rules.repaired is None else self._rules.repaired
        self._clocks = [at.clock(repaired) for at in store.locations]
        spans = [
            (clock.common(at.first), clock.common(at.last))
            if at.first is not None and at.last is not None
            else (self._begin, self._begin)
            for at, clock in zip(store.locations, self._clocks, strict=True)
        ]
        self._born, self._died = np.clip(np.array(spans, np.int64).reshape(-1, 2).T, self._begin, self._end)
        self._list()
        ops, calls, messages = self._ops, known.calls, known.messages
        inside = ops.call >= 0
        begin_of, end_of = ops.time.copy(), ops.time.copy()
        begin_of[inside], end_of[inside] = calls.begin[ops.call[inside]], calls.end[ops.call[inside]]
        n = ops.time.size
        point, over, let_go = np.zeros(n, np.int64), np.zeros(n, np.int64), np.full(n, BEGIN)
        reach(ops.first, ops.last, ops.kind, ops.time, ops.call, begin_of, end_of, self._born, point, over)
        sent, posted = np.full(messages.sent.size, BEGIN), np.full(messages.sent.size, BEGIN)
        meet(ops.first, ops.last, ops.kind, ops.key, point, sent, posted)
        #: how a sender goes on: as its call says, and on the network as recorded
        self._may = np.full(messages.sent.size, machine.DEFERRED)
        self._did = np.full(messages.sent.size, machine.EAGER)
        block(ops.first, ops.last, ops.kind, ops.key, ops.call, end_of, point, posted, self._waiting,
              self._may, self._did)  # fmt: skip
        self._early = np.zeros(messages.sent.size, np.int64)
        collectives = known.collectives.root.size
        release(
            ops.first, ops.last, ops.kind, ops.key, known.collectives.root, point, over, sent, posted,
            self._did, self._early, np.full(collectives, BEGIN), let_go,
        )  # fmt: skip
        self._extra = np.zeros(n, np.float64)
        stretches = np.zeros((4, n + self._born.size), np.int64)
        lay_out(ops.first, ops.last, ops.kind, ops.call, begin_of, end_of, point, over, let_go, self._born,
                self._died, self._extra, stretches)  # fmt: skip
        self._point, self._over = point, over
        #: of each stretch, those after the last operations at the end: begin and end, and in it the same
        #: without the calls that go over its ends
        self._low, self._high, self._from, self._to = stretches
        self._spend(progress)

    def _list(self) -> None:
        """All operations in the range: those that are known, receives that are posted before, sends that
        are completed later, and the breaks of phases."""
        known, places = self.causality, len(self._store.locations)
        operations, messages, calls = known.operations, known.messages, known.calls
        where = np.repeat(np.arange(places), np.diff(operations.start))
        columns = [[where], [operations.time], [operations.kind.astype(np.int64)], [operations.key]]
        of_call = [operations.call]

        def more(at: Ints, time: Ints, kind: int, key: Ints, call: Ints) -> None:
            for column, new in zip(
                (*columns, of_call), (at, time, np.full(at.size, kind), key, call), strict=True
            ):
                column.append(new)

        receive_call = operations.call[messages.receive]
        begins = np.where(receive_call >= 0, calls.begin[receive_call] if calls.begin.size else BEGIN, BEGIN)
        early = np.flatnonzero((messages.posted > BEGIN) & (messages.posted < begins))
        none = np.full(early.size, -1)
        more(messages.receiver[early].astype(np.int64), messages.posted[early], machine.POST, early, none)
        #: the call in which the sender of each message waits for it, -1: it never does
        self._waiting = np.full(messages.sent.size, -1, np.int64)
        call, message = known.sends
        self._waiting[message] = call
        later = np.flatnonzero((self._waiting >= 0) & (self._waiting != operations.call[messages.send]))
        in_call = self._waiting[later]
        more(messages.sender[later].astype(np.int64), calls.end[in_call], machine.COMPLETE, later, in_call)
        at, k = (x.ravel() for x in np.indices((places, self.breaks.size)))
        cut = self.breaks[k]
        there = (cut > self._born[at]) & (cut < self._died[at])
        at, cut = at[there], cut[there]
        for i in range(places):  # a break inside of a call cuts before it
            mine, (a, b) = at == i, calls.start[i : i + 2]
            if b > a and mine.any():
                row = a + np.searchsorted(calls.begin[a:b], cut[mine], side="right") - 1
                within = (row >= a) & (cut[mine] < calls.end[np.maximum(row, a)])
                cut[mine] = np.where(within, calls.begin[np.maximum(row, a)], cut[mine])
        cut = np.maximum(cut, self._born[at])
        more(at, cut, machine.MARK, np.zeros(at.size, np.int64), np.full(at.size, -1))
        at, time, kind, key, call = (np.concatenate(column) for column in (*columns, of_call))
        end = self._end + (self._end >= self._died.max(initial=0))  # what is at the very end belongs to it
        inside = (time >= self._begin) & (time < end)
        at, time, kind, key, call = at[inside], time[inside], kind[inside], key[inside], call[inside]
        order = np.lexsort((_ORDER[kind], time, at))
        start = np.searchsorted(at[order], np.arange(places + 1))
        self._ops = _Rows(start[:-1], start[1:], time[order], kind[order], key[order], call[order])

    def _spend(self, progress: Progress) -> None:
        """What every stretch consists of, and each piece of computing in it."""
        store, calls, ops = self._store, self.causality.calls, self._ops
        places, n = len(store.locations), ops.time.size
        counted = np.zeros(256, bool)
        counted[[int(activity) for activity in self._rules.computing]] = True
        self._busy, self._called = np.zeros(n + places), np.zeros(n + places)
        self.is_processor = np.zeros(places, bool)
        pieces: list[tuple[Ints, Ints, Ints]] = []
        for i in range(places):
            progress.step(i, places, "replay")
            at = self._stretches(i)
            low, high = self._from[at], self._to[at]
            begin, end = np.zeros(0, np.int64), np.zeros(0, np.int64)
            if store.locations[i].kind == "cpu" and store.locations[i].first is not None:
                self.is_processor[i] = True
                begin, end, doing = states(store, i, self._rules)
                begin, end = begin[counted[doing]], end[counted[doing]]
            which, a, b = _parts(low, high, begin, end)
            np.add.at(self._busy, at[which], (b - a).astype(float))
            c = slice(calls.start[i], calls.start[i + 1])
            within, since, until = _parts(low, high, calls.begin[c], calls.end[c])
            np.add.at(self._called, at[within], (until - since).astype(float))
            both, since, until = _parts(since, until, a, b)  # own work inside of a call is no call
            np.subtract.at(self._called, at[within[both]], (until - since).astype(float))
            pieces.append((at[which], a, b))
        self._piece, a, b = (np.concatenate(column) for column in zip(*pieces, strict=True))
        lengths = (b - a).astype(float)
        sums = np.concatenate([[0.0], np.cumsum(lengths)])
        first = _firsts(self._piece)
        self._piece_busy = sums[:-1] - sums[first]
        self._piece_other = (a - self._from[self._piece]).astype(float) - self._piece_busy
        self._piece_length = lengths
        self._mid = (self._to - self._from).astype(float)
        self._fixed = self._mid - self._busy - self._called
        self._tail = (self._from - self._low).astype(float)
        self._head = (self._high - self._to).astype(float)
        self._place = np.empty(n + places, np.int64)
        for i in range(places):
            self._place[self._stretches(i)] = i
        middle = (self._low + self._high) / 2
        self._phase = np.searchsorted(self.breaks, middle, side="right")

    def _stretches(self, location: int) -> Ints:
        """Of a location in order of time."""
        ops = self._ops
        here = np.arange(ops.first[location], ops.last[location])
        return np.append(here, ops.time.size + location)

    # ---- with changes

    @property
    def operations(self) -> int:
        """How many there are."""
        return int(self._ops.time.size)

    @property
    def phases(self) -> int:
        """How many there are."""
        return self.breaks.size + 1

    def computing_s(self) -> Floats:
        """(locations, phases) seconds that each location computes outside of calls."""
        found = np.zeros((self._born.size, self.phases))
        np.add.at(found, (self._place, self._phase), self._busy * self.unit)
        return found

    def regions(self, names: Sequence[str], progress: Progress | None = None) -> tuple[Floats, Floats]:
        """Ticks in each region by name without those inside of it, and calls (names, stretches).

        Raises
        ------
        ValueError : there is no region of that name.
        """
        missing = tuple(dict.fromkeys(name for name in names if name not in self._known_regions))
        if missing:
            self._count_regions(missing, progress or Progress())
        found = [self._known_regions[name] for name in names]
        if not found:
            return np.zeros((0, self._mid.size)), np.zeros((0, self._mid.size))
        return np.array([one[0] for one in found]), np.array([one[1] for one in found])

    def _count_regions(self, names: tuple[str, ...], progress: Progress) -> None:
        store = self._store
        wanted = np.full(len(store.regions), -1, np.int64)
        for k, name in enumerate(names):
            of_name = [r for r, region in enumerate(store.regions) if region.name == name]
            if not of_name:
                raise ValueError(f"there is no region {name!r} in the trace")
            wanted[of_name] = k
        ticks, entered = (np.zeros((len(names), self._mid.size)) for _ in range(2))
        for i in range(len(store.locations)):
            progress.step(i, len(store.locations), "regions")
            at = self._stretches(i)
            low, high, reached = self._from[at], self._to[at], self._high[at]
            state, stack = np.array([0, 0, BEGIN, 0], np.int64), np.zeros(1 << 8, np.int64)
            for when, kind, region in store.blocks("events", i, "time", "kind", "region"):
                if state[0] + when.size >= stack.size:
                    stack = np.concatenate([stack, np.zeros(state[0] + when.size, np.int64)])
                in_regions(self._clocks[i].common(when), kind, region, wanted, stack, state, low, high,
                           reached, at, ticks, entered)  # fmt: skip
        for k, name in enumerate(names):
            self._known_regions[name] = ticks[k], entered[k]

    def predict(self, changes: Changes = NONE, progress: Progress | None = None) -> RunPrediction:
        """How the run would go.

        Raises
        ------
        ValueError : there is no such region, phase or rank.
        Cancelled : by `progress`.
        """
        progress = progress or Progress()
        if self.note:
            return RunPrediction(changes, math.nan, self.recorded_s, self.note)
        busy = self._changed(changes, progress)
        on = changes.network
        ticks = 1.0 / self.unit
        known = self.causality
        mid = busy + self._fixed
        gap, extra, manner, tail = mid.copy(), self._extra, self._did, np.zeros(mid.size)
        transfer, cost = self._early.astype(float), np.zeros(known.collectives.root.size)
        latency, buses = 0.0, 0
        if on is None:
            mid, tail = mid + self._called, self._tail
            gap = mid + tail + self._head
        else:
            extra = np.zeros(extra.size)
            latency, buses = on.latency_s * ticks, on.buses
            per_byte = ticks / on.bandwidth
            transfer = known.messages.bytes * per_byte
            together = known.collectives
            cost = machine.collective_cost(self._members, together.sent, together.received, latency, per_byte)
            manner = np.where(known.messages.bytes > on.eager, self._may, machine.EAGER)
        ops, n = self._ops, self.operations
        operations = Schedule(
            ops.first, ops.last, ops.kind, ops.key, gap[:n], extra, self._free(changes.no_wait),
            (self._born - self._begin).astype(float), gap[n:],
        )  # fmt: skip
        network = Network(
            known.messages.receiver.astype(np.int64),
            transfer,
            manner,
            known.collectives.root,
            cost,
            latency,
            buses,
        )
        found = machine.replay(operations, network, progress)
        if found.duration == machine.STUCK:
            return RunPrediction(changes, math.nan, self.recorded_s, _STUCK)
        ends = np.where(self._decides, found.ends, 0.0)
        return RunPrediction(
            changes, float(ends.max(initial=0.0)) * self.unit, self.recorded_s, "", ends * self.unit,
            (self, found.came, found.went, np.stack([busy, mid, tail])),
        )  # fmt: skip

    @cached_property
    def note(self) -> str:
        """Why nothing can be predicted, or ""."""
        if self._store.has("curve"):
            return "The source is a curve: of its processors nothing else is known."
        if self.causality.disagreeing:
            return "Members of a communicator name different collective operations."
        kinds = np.bincount(self._ops.kind, minlength=2)
        lost = [
            int(rows - kinds[kind])
            for rows, kind in zip(self._rows(), (machine.SEND, machine.RECEIVE), strict=True)
        ]
        if any(lost):
            return unmatched(*lost)
        if not kinds[: machine.MARK].any() and self.is_processor.sum() > 1:
            return "No messages and no collective operations are recorded here that say who waits for whom."
        return ""

    def _rows(self) -> tuple[int, int]:
        """Sends and receives that are recorded in the range."""
        found = [0, 0]
        for i, clock in enumerate(self._clocks):
            for when, kind in self._store.blocks("messages", i, "time", "kind"):
                when = clock.common(when)
                inside = (when >= self._begin) & (when < self._end + (self._end >= self._died.max(initial=0)))
                for k, kinds in enumerate(
                    ((MessageKind.SEND, MessageKind.ISEND), (MessageKind.RECV, MessageKind.IRECV))
                ):
                    found[k] += int(np.isin(kind[inside], kinds).sum())
        return found[0], found[1]

    @cached_property
    def collectives(self) -> tuple[str, ...]:
        """The collective operations in it, by name."""
        ops = self._ops
        together = (ops.kind >= machine.N_TO_N) & (ops.kind <= machine.PREFIX)
        which = np.unique(self.causality.collectives.operation[ops.key[together]])
        return tuple(dict.fromkeys(self._store.texts[k] for k in which.tolist()))

    @cached_property
    def estimate(self) -> NetworkEstimate | None:
        """Its network, from messages that their receivers waited for, which then took the latency and their
        bytes over the bandwidth: the latency is the median of the smallest quarter, the bandwidth follows
        from the medians of the smallest and the largest quarter (infinite, if those take no longer). None if
        there are fewer than `FEW` such messages."""
        ops, messages = self._ops, self.causality.messages
        at = np.flatnonzero(ops.kind == machine.RECEIVE)
        sent, size = messages.sent[ops.key[at]], messages.bytes[ops.key[at]]
        took = (self._over[at] - sent) * self.unit
        good = (sent > self._point[at]) & (sent >= self._begin) & (took > 0)
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
    def _decides(self) -> NDArray[np.bool_]:
        """(locations,) whose end is an end of the run: of a process that communicates those that do."""
        ops = self._ops
        talks = ops.last > ops.first
        process = process_of(self._store)
        found: NDArray[np.bool_] = self.is_processor & (talks | ~np.isin(process, process[talks]))
        return found

    @cached_property
    def _members(self) -> Ints:
        """(collectives,) of each, in the range."""
        ops = self._ops
        chosen = (ops.kind >= machine.N_TO_N) & (ops.kind <= machine.PREFIX)
        return np.bincount(ops.key[chosen], minlength=self.causality.collectives.root.size)

    def _free(self, names: Sequence[str]) -> NDArray[np.bool_]:
        ops = self._ops
        free = np.zeros(ops.time.size, np.bool_)
        together = (ops.kind >= machine.N_TO_N) & (ops.kind <= machine.PREFIX)
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
        """Ticks of computing in each stretch."""
        busy = self._busy.copy()
        names = [name for name, _ in (*changes.regions, *changes.longer)]
        ticks, entered = self.regions(list(dict.fromkeys(names)), progress) if names else (None, None)
        row = {name: k for k, name in enumerate(dict.fromkeys(names))}
        for name, factor in changes.regions:
            assert ticks is not None
            busy += np.minimum(ticks[row[name]], self._busy) * (1.0 / factor - 1.0)
        for k, factor in changes.phases:
            busy[self._of_phase(k)] /= factor
        for first, last, factor in changes.slower:
            busy[np.isin(self._place, self._ranked(first, last))] *= factor
        for name, seconds in changes.longer:
            assert entered is not None
            busy += entered[row[name]] * (seconds / self.unit)
        for k in changes.balanced:
            self._balance(busy, self._of_phase(k))
        return np.maximum(busy, 0.0)

    def _of_phase(self, k: int) -> NDArray[np.bool_]:
        if not 0 <= k < self.phases:
            raise ValueError(f"there is no phase {k + 1}, there are {self.phases}")
        chosen: NDArray[np.bool_] = self._phase == k
        return chosen

    def _ranked(self, first: int, last: int) -> Ints:
        """The locations of a range of ranks (of threads without ranks: of their numbers)."""
        ranks = np.array([i if x.rank < 0 else x.rank for i, x in enumerate(self._store.locations)])
        found = np.flatnonzero((ranks >= first) & (ranks <= last) & self.is_processor)
        if not found.size:
            raise ValueError(f"there is no rank from {first} to {last} in the trace")
        return found

    def _balance(self, busy: Floats, chosen: NDArray[np.bool_]) -> None:
        """Every location that is there computes as long as the mean of them all."""
        spent = np.bincount(self._place[chosen], busy[chosen], self._born.size)
        there = np.unique(self._place[chosen & (self._high > self._low)])
        there = there[self.is_processor[there]]
        if not there.size:
            return
        mean = spent[there].mean()
        factor = np.ones(spent.size)
        some = there[spent[there] > 0]
        factor[some] = mean / spent[some]
        busy[chosen] *= factor[self._place[chosen]]
        for i in there[spent[there] <= 0].tolist():  # those that did nothing do it at first
            mine = self._stretches(i)
            busy[mine[chosen[mine]][0]] += mean

    # ---- what was moved

    def curve(self, came: Floats, went: Floats, spent: Floats, duration_s: float) -> StepCurve | None:
        """Processors that compute, from the begin of the curve to the predicted end."""
        busy, mid, tail = spent
        n, ops = self.operations, self._ops
        begin = np.empty(mid.size)
        begin[1:n] = went[: max(n - 1, 0)]
        some = ops.last > ops.first
        begin[ops.first[some]] = (self._born - self._begin)[some]
        begin[n:] = self._born - self._begin
        begin[n:][some] = went[ops.last[some] - 1]
        begin += tail
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where(self._busy > 0, busy / self._busy, 0.0)
            other = self._mid - self._busy
            rest = np.where(other > 0, (mid - busy) / other, 0.0)
        of = self._piece
        a = begin[of] + self._piece_busy * rate[of] + self._piece_other * rest[of]
        b = a + self._piece_length * rate[of]
        new = np.flatnonzero((self._busy <= 0) & (busy > 0))
        a, b = np.concatenate([a, begin[new]]), np.concatenate([b, begin[new] + busy[new]])
        end = duration_s / self.unit
        a.sort()
        b.sort()
        edges, level = np.empty(2 * a.size + 2), np.empty(2 * a.size + 2)
        n = step_levels(a, b, end, 1e-9 * end, edges, level)  # what differs by rounding only is one time
        if not n:
            return None
        return StepCurve(
            np.append(edges[:n], end) + round(self.start_s / self.unit),
            level[:n].copy(),
            float(self.is_processor.sum()),
            self.unit,
        )

    def moved(self, came: Floats, went: Floats, spent: Floats) -> Floats:
        """(breaks,) seconds: the mean of where each location that is there has them."""
        n = self.operations
        found = np.zeros(self.breaks.size)
        for k, cut in enumerate(self.breaks.tolist()):
            there = np.flatnonzero((self._born < cut) & (cut < self._died) & self.is_processor)
            at = [self._moved(i, cut, came, went, spent[1:, n + i].sum()) for i in there.tolist()]
            found[k] = np.mean(at) if at else cut - self._begin
        return self.start_s + np.maximum.accumulate(found) * self.unit if found.size else found

    def _moved(self, i: int, cut: int, came: Floats, went: Floats, rest: float) -> float:
        """A moment of a location, between what is known of the operations around it."""
        ops = self._ops
        a, b = int(ops.first[i]), int(ops.last[i])
        at = a + int(np.searchsorted(self._point[a:b], cut, side="right")) - 1
        left, new = (float(self._born[i]), float(self._born[i] - self._begin))
        if at >= a:
            if cut <= self._over[at]:
                known = (self._point[at], self._over[at]), (came[at], went[at])
                return float(np.interp(cut, *known))
            left, new = float(self._over[at]), float(went[at])
        if at + 1 < b:
            right, there = float(self._point[at + 1]), float(came[at + 1])
        else:
            right, there = float(self._died[i]), new + rest
        return new + (there - new) * (cut - left) / (right - left) if right > left else there


class _Rows(NamedTuple):
    """Operations of all locations: first, last (locations,), the rest (n,)."""

    first: Ints
    last: Ints
    time: Ints
    kind: Ints
    key: Ints
    call: Ints


#: Of operations at one time: breaks come first, sends before receives, completions last.
_ORDER = np.array([1, 3, 4, 4, 4, 4, 0, 2, 5])
_STUCK = "The replay comes to a halt: everybody waits for somebody else."


def _parts(low: Ints, high: Ints, begin: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
    """What ranges (n,) and intervals (m,), both in order and without overlap, have in common: of which of the
    ranges, begin and end."""
    out = np.empty((3, low.size + begin.size), np.int64)
    a, b, which = out[:, : clipped(low, high, begin, end, out)]
    some = np.flatnonzero(b > a)
    return which[some], a[some], b[some]


def _firsts(of: Ints) -> Ints:
    """The first of each row of equal neighbours (n,)."""
    new = np.concatenate([[True], of[1:] != of[:-1]]) if of.size else np.zeros(0, bool)
    found: Ints = np.maximum.accumulate(np.where(new, np.arange(of.size), 0))
    return found

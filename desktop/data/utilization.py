"""From enter and leave to the activity of every processor at every instant, and to the utilization curve.

The curve of ORNL/TM-11637 (section 1) counts the processors that compute. A location is present from its
first to its last event. Outside of all regions its activity is `Location.base`; inside, its open regions
decide, by the nesting rule of the importer (`Sink.describe`). Everything is exact: times are integer ticks.

Locations are replayed in parallel blocks and merged by time, so memory does not grow with the trace (except
for the result).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Self

import numpy as np
from numpy.typing import NDArray

from desktop.core.accounts import ACTIVITY_OF_CLASS, CLASS_NUMBERS, CLASS_OF, CLASSES, Account
from desktop.core.arrays import AnyArray, Bytes, Flags, Floats, Ints
from desktop.core.clock_kernels import common
from desktop.core.clock_line import Clock
from desktop.core.curve import StepCurve
from desktop.core.jit import arithmetic, inlined
from desktop.core.open_regions import BASE, CODES, Classes, OpenRegions, resolved
from desktop.data.atomic import scratch_folder
from desktop.data.classify import account_class, is_parallel, region_activity
from desktop.data.events import Activity, EventSource, Location, Nesting, Region
from desktop.data.steps import ReplayedSteps, Steps
from desktop.data.store import StoreWriter, TraceStore
from desktop.errors import CurveError, StoreError, TraceFormatError
from desktop.progress import Progress, Share

#: Event rows held in memory at a time for all locations together, and at least for each.
ROWS_IN_FLIGHT = 1 << 18
ROWS_AT_LEAST = 1 << 12
#: Locations that are replayed at a time; more are replayed in groups, whose curves are summed.
SIDE_BY_SIDE = 1 << 12

#: Whole numbers below this are exact as float64.
EXACT = 1 << 53

#: Names of the findings of `UtilizationWriter` about repaired nesting of regions.
STRAY = "leave without enter"
UNCLOSED = "enter without leave"

#: Priority of activities where the strongest of several open regions decides.
STRENGTH = (
    Activity.COMPUTING,
    Activity.OVERHEAD,
    Activity.IO,
    Activity.IDLE,
    Activity.UNMEASURED,
)

#: Most blocks of a curve waiting to be stored, and seconds between two checks for the next one.
_WAITING, _PAUSE = 2, 0.002

_CLASSES = len(Activity)
_ABSENT = 255
_STRENGTH = np.array([STRENGTH.index(a) for a in Activity], np.int64)


@dataclass(frozen=True)
class Rules:
    """The user's changes to the classification.

    overrides : activity by region name, or by role as ``"role:barrier"``; names have priority.
    computing : the activities that the curve counts.
    repaired : whether clocks are repaired; None: as the trace's format recommends.
    """

    overrides: dict[str, Activity] = field(default_factory=dict)
    computing: frozenset[Activity] = frozenset({Activity.COMPUTING})
    repaired: bool | None = None

    @property
    def default_classes(self) -> bool:
        """Whether the counts of each activity are those with the default rules."""
        return not self.overrides and self.repaired is None

    def repairs(self, source: EventSource) -> bool:
        return source.repair if self.repaired is None else self.repaired

    def clock(self, source: EventSource, location: int) -> Clock:
        return source.locations[location].clock(self.repairs(source))

    def clocks(self, source: EventSource) -> list[Clock]:
        repaired = self.repairs(source)
        return [location.clock(repaired) for location in source.locations]


@dataclass(frozen=True, eq=False)
class Utilization:
    """How many processors are in each activity, over time.

    Parameters
    ----------
    edges : (M+1,) float64 ticks since `start`, strictly increasing whole numbers (for a source that is itself
        a curve: its own times). At every inner edge some count changes.
    counts : (len(Activity), M) processors in each activity between two edges (integers, no wider than all
        processors need; float64 of a curve).
    unit : seconds in a tick.
    processors : locations that are processors and have events.
    defined : locations that are processors; more than `processors` if events are missing.
    start : the tick of edge 0, on the common clock.
    totals : (locations, len(Activity)) ticks of every location in each activity; 0 for no processors.
    stray : leaves without an enter, which are ignored.
    unclosed : enters without a leave, which are closed at the location's last event.
    """

    edges: Floats
    counts: NDArray[np.signedinteger] | Floats
    unit: float
    processors: float
    defined: int
    start: int
    totals: Ints
    rules: Rules
    stray: int = 0
    unclosed: int = 0

    def count(self, *activities: Activity) -> Floats:
        """(M,) processors in any of the activities."""
        return np.asarray(self.counts[list(activities)].sum(axis=0, dtype=np.float64))

    @property
    def seconds(self) -> Floats:
        """(locations, len(Activity)) seconds of every location in each activity."""
        return self.totals * np.float64(self.unit)

    def curve(self) -> StepCurve:
        """The number of processors in an activity of ``rules.computing``, with an edge only where it changes.

        Computed once.

        Raises
        ------
        CurveError : nothing lasts longer than a tick.
        """
        return self._curve

    @cached_property
    def _curve(self) -> StepCurve:
        if self.edges.size < 2:
            raise CurveError("no processor has two events at different times, so there is no curve to show")
        edges, level = self.edges, self.count(*sorted(self.rules.computing))
        new = level[1:] != level[:-1]
        if not new.all():
            edges = edges[np.concatenate([[True], new, [True]])]
            level = level[np.concatenate([[True], new])]
        for array in (edges, level):  # a curve keeps these, and copies others
            array.flags.writeable = False
        return StepCurve(edges, level, float(self.processors), self.unit)


def build(source: EventSource, rules: Rules | None = None, progress: Progress | None = None) -> Utilization:
    """The utilization of a trace. Default rules on an imported trace use what the import stored."""
    rules = rules or Rules()
    if any(source.rows("curve", location) for location in range(len(source.locations))):
        return _of_curve(source, rules)
    if isinstance(source, TraceStore) and source.totals and rules.default_classes:
        return _from_import(source, rules)
    replay = _Replay(source, rules)
    narrow = _narrow(replay.processors)
    blocks = [(times, counts.astype(narrow)) for times, counts in replay.blocks(progress or Progress())]
    times = np.concatenate([np.zeros(0, np.int64), *(block[0] for block in blocks)])
    counts = np.concatenate([np.zeros((_CLASSES, 0), narrow), *(block[1] for block in blocks)], axis=1)
    blocks.clear()
    edges, counts = _distinct(times, counts)
    return Utilization(
        edges=edges,
        counts=counts,
        unit=1.0 / source.ticks_per_second,
        processors=replay.processors,
        defined=replay.defined,
        start=replay.start,
        totals=replay.totals,
        rules=rules,
        stray=replay.stray,
        unclosed=replay.unclosed,
    )


@dataclass(frozen=True, eq=False)
class Outline:
    """Key figures of the curve with the default rules, for uses that do not draw it.

    start, processors, defined : as in `Utilization`.
    seconds : (locations, len(Activity)) seconds of every location in each activity.
    duration_s, segments, mean, integral_s : as in `Utilization.curve`.
    most : the largest number of processors at once.
    """

    start: int
    processors: float
    defined: int
    seconds: Floats
    duration_s: float
    segments: int
    mean: float
    integral_s: float
    most: float


def outline(store: TraceStore) -> Outline:
    """The outline stored by the import; if it is missing, the curve is built.

    Raises
    ------
    CurveError : nothing lasts longer than a tick.
    """
    if not store.rows("outline", 0) or not store.totals:
        use = build(store)
        curve = use.curve()
        return Outline(
            use.start,
            use.processors,
            use.defined,
            use.seconds,
            curve.duration,
            curve.segments,
            curve.mean,
            curve.integral,
            float(curve.level.max()),
        )
    end, segments, integral, most = (
        int(store.column("outline", name)[0]) for name in ("end", "segments", "integral", "most")
    )
    begins = first_ticks(store)
    if not (0 < end < EXACT and 0 < segments <= end and 0 <= most <= len(begins)) or not (
        0 <= integral <= end * most
    ):
        raise StoreError("its utilization is damaged", file=store.path, hint="import the source again")
    unit = 1.0 / store.ticks_per_second
    return Outline(
        min(begins),
        len(begins),
        _defined(store),
        _totals(store) * np.float64(unit),
        float(end) * unit,
        segments,
        float(integral) / float(end),
        float(integral) * unit,
        float(most),
    )


@dataclass(frozen=True)
class PartialCurve:
    """The utilization of some locations, as steps in a file; partial curves are summed by
    `UtilizationWriter`.

    locations : indices of these locations among all locations of the sum.
    path : rows of `_STEP`, times in ticks since `start`.
    totals, stray, unclosed : as in `Utilization`.
    """

    locations: Ints
    path: Path
    start: int
    totals: Ints
    stray: int
    unclosed: int


#: A step: the number of processors in each activity from `time` on.
_STEP = np.dtype([("time", "i8"), ("counts", "i4", (_CLASSES,))])


def partial_curve(
    source: EventSource, rules: Rules, locations: Ints, path: Path, progress: Progress
) -> PartialCurve:
    """Write the utilization of a source to the file `path`."""
    return _written(_Replay(source, rules), locations, path, progress)


def _written(replay: _Replay, locations: Ints, path: Path, progress: Progress) -> PartialCurve:
    with path.open("wb") as file:
        for times, counts in replay.blocks(progress):
            rows = np.empty(times.size, _STEP)
            rows["time"], rows["counts"] = times, counts.T
            rows.tofile(file)
    return PartialCurve(locations, path, replay.start, replay.totals, replay.stray, replay.unclosed)


class _Relay(Progress):
    """The progress of work in another thread."""

    def __init__(self, whole: Progress) -> None:
        super().__init__()
        self._whole = whole
        self.reached = (0.0, 0.0)

    @property
    def cancelled(self) -> bool:
        return self._whole.cancelled or super().cancelled

    def show(self, done: float, total: float, text: str) -> None:
        self.reached = (done, total)


class UtilizationWriter:
    """Writes the utilization with the default rules into a store that is being written.

    It is computed block by block in a thread, and written to the store between other work (`some`) and at the
    end (`tell`). Leaving its ``with`` statement ends the thread.

    `parts`: curves of groups of locations, if they are already computed. `steps`: the steps of locations,
    kept from the replay on import; the events are read again only if classes of regions have changed since.
    """

    def __init__(
        self,
        writer: StoreWriter,
        progress: Progress,
        parts: Sequence[PartialCurve] = (),
        steps: Steps | None = None,
    ) -> None:
        self._writer, self._progress = writer, progress
        self._replay: _Replay | None = None  # the source is itself a curve
        if any(writer.rows("curve", location) for location in range(len(writer.locations))):
            return
        if steps is not None and not steps.hold(region_classes(writer, Rules())):
            steps = None
        self._replay = _Replay(writer, Rules(), parts, steps=steps)
        self._sums = np.array([0, -1, 0, 0, 0, -1], np.int64)
        self._relay = _Relay(progress)
        self._blocks = self._summed_blocks()
        self._pool = ThreadPoolExecutor(1, "utilization")
        self._next = self._pool.submit(next, self._blocks, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._replay is not None:
            self._relay.cancel()
            self._pool.shutdown()

    def some(self, wait: float = 0.0) -> bool:
        """Write the next block, if it is ready within `wait` seconds; False at the end.

        Raises
        ------
        StoreError : the store cannot be written, or its rows cannot be read again.
        """
        if self._replay is None:
            return False
        if wait:
            wait_for((self._next,), wait)
        if not self._next.done():
            return True
        block = self._next.result()
        if block is None:
            return False
        self._next = self._pool.submit(next, self._blocks, None)
        times, counts = block
        names = (a.name.lower() for a in Activity)
        self._writer.derive("utilization", 0, time=times, **dict(zip(names, counts, strict=True)))
        return True

    def _summed_blocks(self) -> Iterator[tuple[Ints, NDArray[np.int32]]]:
        assert self._replay is not None
        for times, counts in self._replay.blocks(self._relay):
            _sum_up(times, counts[Activity.COMPUTING], self._sums)
            yield times, counts

    def forget(self) -> None:
        """Remove it from the store, as clocks have changed."""
        self.__exit__()
        self._writer.drop("utilization")

    def tell(self) -> None:
        """Write the rest, and report the findings.

        Raises
        ------
        TraceFormatError : no processor has two events at different times.
        Cancelled, StoreError : as for `some`.
        """
        writer, replay = self._writer, self._replay
        if replay is None:
            return
        while self.some(0.05):
            self._progress.step(*self._relay.reached, "utilization")
        if writer.rows("utilization", 0) < 2:
            raise TraceFormatError(
                "holds no processor with two events at different times",
                file=writer.source.path,
                hint="there is no curve to show",
            )
        end, _, segments, integral, most, _ = self._sums.tolist()
        if max(end * replay.processors, integral) < EXACT:
            row = {"end": end, "segments": segments, "integral": integral, "most": most}
            writer.derive("outline", 0, **{name: np.array([value]) for name, value in row.items()})
        writer.totals = replay.totals.tolist()
        if replay.stray:
            writer.report.add(
                STRAY,
                "notice",
                "Regions are left that were not entered; these leaves are ignored.",
                count=replay.stray,
            )
        if replay.unclosed:
            writer.report.add(
                UNCLOSED,
                "notice",
                "Regions are still open at the end of their location and are closed at its last event.",
                count=replay.unclosed,
            )


def keep(writer: StoreWriter, progress: Progress, steps: Steps | None = None) -> None:
    """Write the utilization into a store whose clocks are known; parameters and errors as for
    `UtilizationWriter`."""
    with UtilizationWriter(writer, progress, steps=steps) as utilization:
        utilization.tell()


@arithmetic
def _sum_up(times: Ints, level: AnyArray, state: Ints) -> None:
    """Continue the key figures of a curve, whose `level` (n,) holds from `times` on.

    state (6,): its last time and level (-1: none), segments, integral and largest level before the last time,
    and the level of the last segment.
    """
    for i in range(times.size):
        if state[1] >= 0:
            state[3] += state[1] * (times[i] - state[0])
            state[2] += state[1] != state[5]
            state[4] = max(state[4], state[1])
            state[5] = state[1]
        state[0] = times[i]
        state[1] = level[i]


class _Replay:
    """A pass over the events; `blocks` yields the counts as they are computed, the rest is there afterwards.

    `inside` (regions,): counts whether locations are inside of these regions: `Activity.OVERHEAD` counts
    those that are, `Activity.COMPUTING` the others.
    """

    def __init__(
        self,
        source: EventSource,
        rules: Rules,
        parts: Sequence[PartialCurve] = (),
        only: Sequence[int] | None = None,
        steps: Steps | None = None,
        inside: Flags | None = None,
    ) -> None:
        self._source, self._rules, self._parts, self._steps = source, rules, parts, steps
        self._inside, self._repaired = inside, rules.repairs(source)
        self._counted = []
        first = []
        for i in range(len(source.locations)) if only is None else only:
            location = source.locations[i]
            counts = location.kind == "cpu" or inside is not None
            if counts and (span := location.span(self._repaired)):
                self._counted.append(i)
                first.append(span[0])
        self.processors = len(self._counted)
        self.defined = _defined(source)
        self.start = min(first, default=0)
        self.totals = np.zeros((len(source.locations), _CLASSES), np.int64)
        self.stray = self.unclosed = 0

    def blocks(self, progress: Progress) -> Iterator[tuple[Ints, NDArray[np.int32]]]:
        """Times (n,), in ticks since `start`, from which the counts (len(Activity), n) hold.

        Times increase over all blocks. The last count is all zero, at the end of the trace.
        """
        if self._parts:
            yield from self._sum(self._parts, progress)
        elif len(self._counted) <= SIDE_BY_SIDE:
            yield from self._side_by_side(progress)
        else:
            with scratch_folder() as folder:
                parts = []
                for at in range(0, len(self._counted), SIDE_BY_SIDE):
                    done = (at / len(self._counted), min(1.0, (at + SIDE_BY_SIDE) / len(self._counted)))
                    share = Share(progress, 0.9 * done[0], 0.9 * done[1])
                    group = self._counted[at : at + SIDE_BY_SIDE]
                    everybody = np.arange(len(self.totals))
                    path = folder / str(at)
                    part = _Replay(self._source, self._rules, (), group, self._steps, self._inside)
                    parts.append(_written(part, everybody, path, share))
                yield from self._sum(parts, Share(progress, 0.9, 1.0))

    def _side_by_side(self, progress: Progress) -> Iterator[tuple[Ints, NDArray[np.int32]]]:
        source, steps = self._source, self._steps
        if not self._counted:
            return
        # Steps need no other memory, and fewer blocks mean fewer waits for another thread's lock.
        most = ROWS_IN_FLIGHT if steps is None else 4 * ROWS_IN_FLIGHT
        rows = max(ROWS_AT_LEAST, most // len(self._counted))
        locations = [source.locations[i] for i in self._counted]
        if self._inside is None:
            rule = region_rule(source, self._rules)
        else:
            classes = np.where(self._inside, np.uint8(Activity.OVERHEAD), np.uint8(Activity.COMPUTING))
            rule = rule_of(classes, np.zeros(classes.size, np.uint8), "strongest")
            locations = [replace(location, base=Activity.COMPUTING, thread=0) for location in locations]
        codes = [
            _Stored(source, i, rule, rows) if steps is None else _StoredCodes(steps, i, rows)
            for i in self._counted
        ]
        tracks = _Tracks(locations, codes, self._repaired, rows)
        yield from tracks.merged(self.start, progress)
        self.totals[self._counted] = tracks.totals[:, :_CLASSES]
        about = [code.about() for code in codes]
        self.stray = sum(one.stray for one in about)
        self.unclosed = sum(one.unclosed for one in about)

    def _sum(
        self, parts: Sequence[PartialCurve], progress: Progress
    ) -> Iterator[tuple[Ints, NDArray[np.int32]]]:
        """Sum step functions by adding up their changes at every time."""
        for part in parts:
            self.totals[part.locations] += part.totals
            self.stray += part.stray
            self.unclosed += part.unclosed
        counts = np.full((1, _CLASSES), -1, np.int32)  # no counts yet, so that the first are written
        size = sum(part.path.stat().st_size for part in parts) // _STEP.itemsize
        rows = max(ROWS_AT_LEAST, ROWS_IN_FLIGHT // max(1, len(parts)))
        done = 0
        with ExitStack() as stack:
            streams = [
                _Steps(stack.enter_context(part.path.open("rb")), part.start - self.start, rows)
                for part in parts
            ]
            while any(stream.left for stream in streams):
                horizon = min(stream.known_until for stream in streams)
                pieces = [stream.take(horizon) for stream in streams if stream.left]
                times = np.concatenate([times for times, _ in pieces])
                order = np.argsort(times, kind="stable")
                changes = np.concatenate([change for _, change in pieces])[order]
                done += times.size
                progress.step(done, size, "utilization")
                times, first = np.unique(times[order], return_index=True)
                sums = np.cumsum(np.add.reduceat(changes, first), axis=0, dtype=np.int32)
                counts = np.concatenate([counts[-1:], np.maximum(counts[-1:], 0) + sums])
                new = np.flatnonzero((counts[1:] != counts[:-1]).any(axis=1))
                if new.size:
                    yield times[new], np.ascontiguousarray(counts[1:][new].T)


def inside(
    source: EventSource, rules: Rules, regions: Flags, only: Sequence[int], progress: Progress
) -> tuple[Ints, Ints]:
    """The number of locations among `only` that are inside any of the `regions` (regions,), inclusive.

    Returns times (n,), ticks of the common clock, and the number (n,) from each on; the last one is 0. Memory
    does not grow with the trace, except for the result.
    """
    replay = _Replay(source, rules, only=only, inside=regions)
    times, counts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for block in replay.blocks(progress):
        times.append(block[0] + replay.start)
        counts.append(block[1][Activity.OVERHEAD].astype(np.int64))
    return np.concatenate(times), np.concatenate(counts)


class _Steps:
    """The steps of one partial curve, read in portions."""

    def __init__(self, file: IO[bytes], offset: int, rows: int) -> None:
        self._file, self._offset, self._rows = file, offset, rows
        self._counts = np.zeros((1, _CLASSES), np.int32)
        self._load()

    def _load(self) -> None:
        self._block = np.fromfile(self._file, _STEP, self._rows)
        self._at = 0

    @property
    def left(self) -> bool:
        return self._at < self._block.size

    @property
    def known_until(self) -> float:
        """The last time up to which all steps are in memory; infinite at the end of the file."""
        return int(self._block["time"][-1]) + self._offset if self._block.size == self._rows else math.inf

    def take(self, horizon: float) -> tuple[Ints, NDArray[np.int32]]:
        """Times (n,) up to `horizon` and the changes (n, len(Activity)) of the counts there."""
        times = self._block["time"][self._at :] + self._offset
        n = int(np.searchsorted(times, horizon, side="right")) if math.isfinite(horizon) else times.size
        counts = np.concatenate([self._counts, self._block["counts"][self._at : self._at + n]])
        self._counts = counts[-1:]
        self._at += n
        if not self.left:
            self._load()
        return times[:n], np.diff(counts, axis=0)


@inlined
def _settle(first: Ints, keys: Ints, leaf: int) -> None:
    """Update a tournament tree after the key of a leaf has changed: at every node above it, the smaller key
    of the two children, and its leaf. The path has the same length for every key and no unpredictable
    branch."""
    node = leaf
    while node > 1:
        other = node ^ 1
        smaller = keys[other] < keys[node]
        winner = other if smaller else node
        node >>= 1
        keys[node] = keys[winner]
        first[node] = first[winner]


# Results of `next_change` and `sum_changes`: there is a change, or no space for more of them; the location
# needs its next rows; there is nothing more; rows are invalid.
_FOUND, _MORE, _OVER, _WRONG = range(4)

# Fields of a location's state: next row and number of rows of its block, whether it is the last (2: its last
# change was reported); class after the last row, class shown and since when, time of the last row, end, shift
# and origin of the clock; its next change: when, from which class and to which.
(
    _AT, _FILLED, _ENDED, _CURRENT, _EMITTED, _SINCE, _PENDING, _END, _SHIFT, _ORIGIN, _NEXT, _BEFORE, _AFTER,
    _FIELDS,
) = range(14)  # fmt: skip

# State of a sum: unfinished locations, whether the first of them looks for its next change, time of the
# changes being summed, rows of the result.
_LEFT, _SEEKS, _NOW, _ROWS = range(4)
#: The next change of a finished location: after all times.
_NEVER = np.iinfo(np.int64).max


@inlined
def next_change(time: Ints, code: Bytes, drift: float, resolve: Bytes, state: Ints, totals: Ints) -> int:
    """Find the next change of class of a location, from its codes (n,); adds up the time in each.

    Of several events at one time the last one counts, so the class after it is only known when time has moved
    on; at the location's end a pending class has no duration.
    """
    at, emitted, current, pending = state[_AT], state[_EMITTED], state[_CURRENT], state[_PENDING]
    end, changed, result = state[_END], False, _MORE
    while at < state[_FILLED] and not changed:
        t = common(time[at], state[_SHIFT], drift, state[_ORIGIN])
        if t < pending or t > end:
            return _WRONG
        changed = t > pending and current != emitted
        if changed:
            state[_NEXT], state[_AFTER] = pending, current
        pending = t
        current = np.int64(resolve[code[at]])
        at += 1
    state[_AT], state[_CURRENT], state[_PENDING] = at, current, pending
    if not changed and state[_ENDED] == 2:
        result = _OVER
    elif not changed and state[_ENDED] == 1:
        changed = True
        if current != emitted and pending < end:
            state[_NEXT], state[_AFTER] = pending, current
        else:
            state[_NEXT], state[_AFTER], state[_ENDED] = end, _ABSENT, 2
    if changed:
        result = _FOUND
        totals[emitted] += state[_NEXT] - state[_SINCE]
        state[_BEFORE], state[_EMITTED], state[_SINCE] = emitted, state[_AFTER], state[_NEXT]
    return result


# Many: a kernel's arguments, one by one.
@arithmetic
def sum_changes(
    time: Ints, code: Bytes, drift: Floats, resolve: Bytes, state: Ints, totals: Ints, first: Ints,
    keys: Ints, progress: Ints, counts: Ints, written: Ints, out_time: Ints, out_counts: AnyArray,
) -> int:  # fmt: skip
    """Sum the changes of locations (rows of all arrays up to `totals`) to counts (classes,), dropping times
    at which nothing changes. `written`, the counts written last, and `progress` are updated.

    first, keys (2 leaves,): the tree of `_settle`; its leaves, in the second half, are the locations and the
    times of their next changes; `first[1]` is the earliest of all.
    """
    leaves = keys.size >> 1
    while progress[_LEFT] > 0:
        k = first[1]
        if progress[_SEEKS] == 0:
            if keys[1] > progress[_NOW]:
                if not tell_counts(progress, counts, written, out_time, out_counts):
                    return _FOUND
                progress[_NOW] = keys[1]
            if state[k, _BEFORE] != _ABSENT:
                counts[state[k, _BEFORE]] -= 1
            if state[k, _AFTER] != _ABSENT:
                counts[state[k, _AFTER]] += 1
            progress[_SEEKS] = 1
        result = next_change(time[k], code[k], drift[k], resolve[k], state[k], totals[k])
        if result in (_MORE, _WRONG):
            return result
        progress[_SEEKS] = 0
        if result == _OVER:
            progress[_LEFT] -= 1
            keys[leaves + k] = _NEVER
        else:
            keys[leaves + k] = state[k, _NEXT]
        _settle(first, keys, leaves + k)
    return _OVER if tell_counts(progress, counts, written, out_time, out_counts) else _FOUND


@inlined
def tell_counts(state: Ints, counts: Ints, written: Ints, out_time: Ints, out_counts: AnyArray) -> bool:
    """Append counts to the result if they have changed; False if there is no space."""
    changed = False
    for c in range(counts.size):
        changed |= counts[c] != written[c]
    if not changed:
        return True
    n = state[_ROWS]
    if n == out_time.size:
        return False
    out_time[n] = state[_NOW]
    for c in range(counts.size):
        out_counts[c, n] = written[c] = counts[c]
    state[_ROWS] += 1
    return True


@arithmetic
def list_changes(
    time: Ints, code: Bytes, drift: Floats, resolve: Bytes, state: Ints, totals: Ints, out_time: Ints,
    out_after: Bytes,
) -> int:  # fmt: skip
    """List the changes of a single location (the only row of all arrays but the results); how many, or -1."""
    n = 0
    while True:
        result = next_change(time[0], code[0], drift[0], resolve[0], state[0], totals[0])
        if result != _FOUND:
            return -1 if result == _WRONG else n
        out_time[n], out_after[n] = state[0, _NEXT], state[0, _AFTER]
        n += 1


class _Stored:
    """The codes of a location, replayed from its stored events."""

    def __init__(
        self,
        source: EventSource,
        index: int,
        rule: Classes,
        rows: int,
        beside: Callable[..., None] | None = None,
    ) -> None:
        self._beside = beside
        self.worked = is_worker(source, index, source.locations[index], rule.active)
        self.rows = source.rows("events", index)
        self._blocks = source.blocks("events", index, "time", "kind", "region", rows=rows)
        self._regions = OpenRegions(rule)
        synthetic = [i for i, region in enumerate(source.regions) if region.synthetic]
        self._synthetic = np.array(synthetic, np.int64)

    def blocks(self) -> Iterator[tuple[Ints, Bytes]]:
        """Times and codes; fewer codes if the file is damaged."""
        for block in self._blocks:
            states = self._regions.states(*block)
            if self._beside is not None and states is not None:
                self._beside(*block, states[0])
            yield block[0], np.empty(0, np.uint8) if states is None else states[1]

    def about(self) -> ReplayedSteps:
        regions = self._regions
        return ReplayedSteps(
            regions.worked, regions.stray, regions.depth - regions.count_open(self._synthetic)
        )


class _StoredCodes:
    """The codes of a location, kept from the replay of its events on import."""

    def __init__(self, steps: Steps, index: int, rows: int) -> None:
        self.worked = steps.about(index).worked
        self.rows = steps.rows(index)
        self.about = partial(steps.about, index)
        self.blocks = partial(steps.blocks, index, rows)


class _Tracks:
    """Locations in parallel: the activity of each, read block by block when needed, as changes of class."""

    def __init__(
        self,
        locations: Sequence[Location],
        codes: Sequence[_Stored | _StoredCodes],
        repaired: bool,
        rows: int,
        resolves: Bytes | None = None,
    ) -> None:
        self._locations, self._rows = locations, sum(one.rows for one in codes)
        self._blocks = [one.blocks() for one in codes]
        self._done = 0
        clocks = [location.clock(repaired) for location in locations]
        if resolves is None:
            resolves = np.stack(
                [resolve_of(at, one.worked) for at, one in zip(locations, codes, strict=True)]
            )
        n = len(locations)
        #: ticks of each location in each class
        self.totals = np.zeros(resolves.shape, np.int64)
        self._state = state = np.zeros((n, _FIELDS), np.int64)
        state[:, _SHIFT] = [clock.shift for clock in clocks]
        state[:, _ORIGIN] = [clock.origin for clock in clocks]
        ends = zip(clocks, locations, strict=True)
        limits = [(clock.common(at.first or 0), clock.common(at.last or 0)) for clock, at in ends]
        state[:, _PENDING], state[:, _END] = np.array(limits).T
        state[:, _SINCE] = state[:, _NEXT] = state[:, _PENDING]
        state[:, _BEFORE] = _ABSENT
        state[:, _CURRENT] = state[:, _EMITTED] = state[:, _AFTER] = resolves[:, BASE]
        drift = np.array([clock.drift for clock in clocks], np.float64)
        room = min(rows, max(one.rows for one in codes))
        time, code = np.empty((n, room), np.int64), np.empty((n, room), np.uint8)
        self._about = time, code, drift, resolves, state, self.totals

    def _load(self, k: int) -> None:
        """Load the next block of a location whose last one is used up."""
        time, code, state = *self._about[:2], self._state[k]
        block = next(self._blocks[k], None)
        state[_AT] = state[_FILLED] = 0
        if block is None:
            state[_ENDED] = 1
            return
        if block[0].size != block[1].size:
            raise self._damaged(k)
        state[_FILLED] = n = block[0].size
        time[k, :n], code[k, :n] = block
        self._done += n

    def _damaged(self, k: int) -> StoreError:
        name = self._locations[k].name or str(self._locations[k].id)
        return StoreError(
            f"the events of location {name} are out of order or outside its time",
            hint="the file is damaged, import the source again",
        )

    def merged(self, start: int, progress: Progress) -> Iterator[tuple[Ints, NDArray[np.int32]]]:
        """As `_Replay.blocks`, times since `start`."""
        locations = len(self._state)
        leaves = 1 << (locations - 1).bit_length()
        first, keys = np.zeros(2 * leaves, np.int64), np.full(2 * leaves, _NEVER)
        first[leaves:] = np.arange(leaves)
        keys[leaves : leaves + locations] = self._state[:, _NEXT]
        for node in range(leaves - 1, 0, -1):
            winner = 2 * node + int(keys[2 * node + 1] < keys[2 * node])
            first[node], keys[node] = first[winner], keys[winner]
        state = np.array([locations, 0, keys[1], 0], np.int64)
        counts, written = np.zeros(_CLASSES, np.int64), np.full(_CLASSES, -1, np.int64)
        result = _FOUND
        while result != _OVER:
            state[_ROWS] = 0
            times = np.empty(ROWS_IN_FLIGHT, np.int64)
            counts_out = np.empty((_CLASSES, times.size), np.int32)
            while (
                result := sum_changes(*self._about, first, keys, state, counts, written, times, counts_out)
            ) == _MORE:
                progress.step(self._done, self._rows, "utilization")
                self._load(int(first[1]))
            if result == _WRONG:
                raise self._damaged(int(first[1]))
            n = int(state[_ROWS])
            yield times[:n] - start, counts_out[:, :n]

    def listed(self) -> tuple[Ints, Bytes]:
        """For a single location, times (n,) and the class from each on; the last one is at its end."""
        parts = [(self._state[:, _NEXT].copy(), self._state[:, _AFTER].astype(np.uint8))]
        while not self._state[0, _ENDED]:
            self._load(0)
            room = int(self._state[0, _FILLED]) + 2
            times, after = np.empty(room, np.int64), np.empty(room, np.uint8)
            n = list_changes(*self._about, times, after)
            if n < 0:
                raise self._damaged(0)
            parts.append((times[:n], after[:n]))
        return np.concatenate([times for times, _ in parts]), np.concatenate([after for _, after in parts])


def is_worker(source: EventSource, index: int, location: Location, active: Bytes) -> bool:
    """Whether a thread computes in parallel regions only: it is no master thread, and enters such regions.

    (A thread created by hand in a program that uses OpenMP elsewhere computes outside of them.)
    """
    if location.thread == 0 or location.base != Activity.COMPUTING:
        return False
    if not active.any():
        return False
    return any(bool(active[block[0]].any()) for block in source.blocks("calls", index, "region"))


def rule_of(classes: Bytes, active: Bytes, nesting: Nesting) -> Classes:
    """The rule by which open regions decide the activity of a location."""
    return Classes(classes, active, _STRENGTH, nesting == "strongest")


def parallel_regions(regions: Sequence[Region]) -> Bytes:
    """(regions,) whether worker threads compute in them."""
    return np.array([is_parallel(region) for region in regions], np.uint8)


def region_rule(source: EventSource, rules: Rules) -> Classes:
    """`rule_of` the regions of a source."""
    return rule_of(region_classes(source, rules), parallel_regions(source.regions), source.nesting)


def resolve_of(location: Location, worked: bool, idle: int = Activity.IDLE) -> Bytes:
    """Meaning of a location's codes; `worked`: it enters regions in which worker threads compute, and is
    `idle` outside of these."""
    worker = location.thread != 0 and location.base == Activity.COMPUTING and worked
    return resolved(int(location.base), int(Activity.COMPUTING), int(idle), worker)


def region_classes(source: EventSource, rules: Rules) -> Bytes:
    """(regions,) the `Activity` of every region."""
    return classes_of(source.regions, rules)


def class_rule(source: EventSource, rules: Rules) -> Classes:
    """As `rule_of`, for classes of `desktop.core.accounts`."""
    doing = region_classes(source, rules)
    classes = np.array(
        [account_class(region, Activity(int(a))) for region, a in zip(source.regions, doing, strict=False)],
        np.uint8,
    )
    # Within one activity the order of classes is arbitrary, but has to be fixed.
    strength = _STRENGTH[ACTIVITY_OF_CLASS] * CLASS_NUMBERS + np.arange(CLASS_NUMBERS)
    strength[0] = 0
    return Classes(classes, parallel_regions(source.regions), strength, source.nesting == "strongest")


def class_resolve(location: Location, worked: bool) -> Bytes:
    """As `resolve_of`, for classes of `desktop.core.accounts`."""
    classes = np.arange(CLASS_NUMBERS, dtype=np.uint8)
    classes[:CODES] = resolve_of(location, worked, CLASS_OF[int(Activity.IDLE), Account.SERIAL])
    return classes


def accounts_of_classes(rules: Rules) -> Bytes:
    """(CLASS_NUMBERS,) the account of each class of `desktop.core.accounts`; computing as in `rules`."""
    account_of = np.full(CLASS_NUMBERS, Account.IDLE, np.uint8)
    for number, (doing, account) in CLASSES.items():
        counts = Activity(doing) in rules.computing
        account_of[number] = Account.COMPUTING if counts else account
    if Activity.COMPUTING not in rules.computing:
        account_of[0] = Account.IDLE
    return account_of


def classes_of(regions: Sequence[Region], rules: Rules) -> Bytes:
    """(regions,) the `Activity` of each region; no regions may be added meanwhile."""
    activity = np.zeros(len(regions), np.uint8)
    for i, region in enumerate(regions):
        by_role = rules.overrides.get(f"role:{region.role}")
        by_name = rules.overrides.get(region.name, by_role)
        activity[i] = region_activity(region) if by_name is None else by_name
    return activity


def states(source: EventSource, location: int, rules: Rules | None = None) -> tuple[Ints, Ints, Bytes]:
    """Activities of a location: begin and end (ticks of the common clock) and activity of every interval.

    The intervals follow each other without gaps; neighbours differ in activity.
    """
    rules = rules or Rules()
    begin, end, doing = class_states(source, location, rules)
    doing = ACTIVITY_OF_CLASS.astype(np.uint8)[doing]
    new = np.concatenate([[True], doing[1:] != doing[:-1]])[: doing.size]
    last = np.concatenate([new[1:], [True]])[: doing.size]
    return begin[new], end[last], doing[new]


def class_states(
    source: EventSource, location: int, rules: Rules, beside: Callable[..., None] | None = None
) -> tuple[Ints, Ints, Bytes]:
    """As `states`, in classes of `desktop.core.accounts`. `beside` gets each block of events: time as
    recorded, kind, region, and the innermost region (-1: none) after it."""
    place = source.locations[location]
    if place.first is None or place.last is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint8)
    rule = class_rule(source, rules)
    codes = _Stored(source, location, rule, ROWS_IN_FLIGHT, beside)
    resolve = class_resolve(place, codes.worked)
    times, after = _Tracks([place], [codes], rules.repairs(source), ROWS_IN_FLIGHT, resolve[None]).listed()
    inside = times[1:] > times[:-1]
    if inside.all():
        return times[:-1], times[1:], after[:-1]
    return times[:-1][inside], times[1:][inside], after[:-1][inside]


def _of_curve(source: EventSource, rules: Rules) -> Utilization:
    """The utilization of a source that is itself a curve."""
    blocks = list(source.blocks("curve", 0, "time", "level"))
    times = np.concatenate([block[0] for block in blocks])
    level = np.concatenate([block[1] for block in blocks])[:-1]
    counts = np.zeros((_CLASSES, level.size))
    counts[Activity.COMPUTING] = level
    # Only its level is known, without locations.
    totals = np.zeros((len(source.locations), _CLASSES), np.int64)
    capacity = float(level.max())
    return Utilization(times, counts, 1.0 / source.ticks_per_second, capacity, 0, 0, totals, rules)


def _from_import(store: TraceStore, rules: Rules) -> Utilization:
    """The utilization stored by the import, without a pass over the events."""
    names = [a.name.lower() for a in Activity]
    store.bring("utilization", [(0, store.rows("utilization", 0))], ("time", *names))
    (times,), most = store.whole("utilization", "time")[1], len(first_ticks(store))
    counts, total = np.empty((_CLASSES, times.size), _narrow(most)), np.zeros(times.size, np.int32)
    good = times.size > 1 and times[0] == 0 and (times[1:] > times[:-1]).all()
    for k, name in enumerate(names):  # one after the other, as they may be large
        (column,) = store.whole("utilization", name)[1]
        good = good and column.min() >= 0 and column.max() <= most
        total += column
        counts[k] = column
    if not good or total.max() > most:
        raise StoreError("its utilization is damaged", file=store.path, hint="import the source again")
    return with_import(store, rules, *_distinct(times, counts))


def with_import(
    store: TraceStore, rules: Rules, edges: Floats, counts: NDArray[np.signedinteger] | Floats
) -> Utilization:
    """These counts together with what the import stored beside its own."""
    findings, begins = store.report.findings, first_ticks(store)
    return Utilization(
        edges=edges,
        counts=counts,
        unit=1.0 / store.ticks_per_second,
        processors=len(begins),
        defined=_defined(store),
        start=min(begins),
        totals=_totals(store),
        rules=rules,
        stray=findings[STRAY].count if STRAY in findings else 0,
        unclosed=findings[UNCLOSED].count if UNCLOSED in findings else 0,
    )


def first_ticks(store: TraceStore) -> list[int]:
    """The first tick of every processor that has events, on the common clock."""
    spans = (location.span(store.repair) for location in store.locations if location.kind == "cpu")
    return [span[0] for span in spans if span]


def _defined(source: EventSource) -> int:
    return sum(location.kind == "cpu" for location in source.locations)


def _totals(store: TraceStore) -> Ints:
    return np.array(store.totals, np.int64).reshape(-1, _CLASSES)


def _narrow(processors: int) -> np.dtype[np.signedinteger]:
    """The smallest type for numbers of processors."""
    return np.min_scalar_type(-1 - processors)


def _distinct(times: Ints, counts: NDArray[np.signedinteger]) -> tuple[Floats, NDArray[np.signedinteger]]:
    """Edges and counts from the times at which counts begin (the last: the end).

    Ticks are whole float64 numbers up to 2**53 (104 days of nanoseconds); beyond, neighbours may coincide,
    and the last of them counts.
    """
    edges = times.astype(np.float64)
    apart = np.append(edges[1:] > edges[:-1], True) if edges.size else np.zeros(0, bool)
    if not apart.all():
        edges, counts = edges[apart], counts[:, apart]
    return edges, counts[:, :-1]

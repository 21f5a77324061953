"""The cause to which each lost processor-second of a run's ranges is charged: locations and their activity.

`charges` goes once through the events of each location: its activities (account and innermost region), and
how many others wait for it meanwhile (`desktop.core.wait_tree`, from `desktop.data.causality`). All charges
of a range add up to its processors times its duration, to the tick. A location that waits for an unknown one,
or in a cycle (which only contradicting clocks cause), is charged itself.

Memory: about 100 bytes per wait, and the events of one location.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from desktop.core.accounts import WAITING, Account
from desktop.core.arrays import Flags, Ints
from desktop.core.charges import AFTER, ENDING, NOT_BEGUN, SENDER, Charges, RunCosts
from desktop.core.explanation import Explanation, explanation
from desktop.core.root_causes import Naming
from desktop.core.run_difference import run_costs
from desktop.core.wait_tree import COLUMNS, FAMILIES, Indices, charge, who_hangs
from desktop.data.causality import Causality, Replayed
from desktop.data.classify import mpi_call
from desktop.data.collectives import depends
from desktop.data.holders import ThreadWaits, holders
from desktop.data.naming import location_name
from desktop.data.statistics import RangeStats, Statistics
from desktop.data.store import TraceStore
from desktop.data.utilization import Utilization, accounts_of_classes, class_states
from desktop.printing import printable
from desktop.progress import Progress

#: How locations wait in each account of `WAITING`: the family of `wait_tree`.
_FAMILY = {
    Account.LATE_SENDER: "sender before",
    Account.LATE_RECEIVER: "receiver",
    Account.LATE_ROOT: "root",
    Account.BARRIER: "barrier",
    **dict.fromkeys((Account.N_TO_N, Account.EARLY_ROOT, Account.PREFIX), "together"),
}
#: A location is the hub of a range if at least this share of all messages comes from or goes to it.
_HUB = 0.9
#: Stands for waiting for another location, to which it is charged.
_WAITS = -1


def explain(
    statistics: Statistics,
    use: Utilization,
    breakpoints: Sequence[float],
    names: Sequence[str] = (),
    called: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    causality: Causality | None = None,
) -> Explanation:
    """Why time is lost in a run and in its phases, in words.

    names : of the phases. called : other names of regions. Others and errors as for `charged`.
    """
    of = charged(statistics, use, breakpoints, progress, causality)
    return explanation(of, names, naming(statistics.store, called or {}))


def charged(
    statistics: Statistics,
    use: Utilization,
    breakpoints: Sequence[float],
    progress: Progress | None = None,
    causality: Causality | None = None,
) -> list[Charges]:
    """The causes to which the time of a run is charged, and then that of each phase; none for a curve.

    breakpoints : (phases + 1,) seconds, both ends of the analysed part among them.
    causality : who waited for whom, if already known.

    Raises
    ------
    ValueError : a phase contains no tick of the curve.
    """
    if statistics.of_curve:
        return []
    progress = progress or Progress()
    causality = causality or statistics.causality(use, progress)
    spans = [(breakpoints[0], breakpoints[-1]), *itertools.pairwise(breakpoints)]
    ranges = statistics.ranges(spans, use, progress, causality=causality)
    return charges(statistics.store, causality, use, ranges, progress)


def costs(
    statistics: Statistics,
    use: Utilization,
    span: tuple[float, float],
    progress: Progress | None = None,
    causality: Causality | None = None,
) -> RunCosts | None:
    """Where the time of a range of a run goes (seconds on the axis of the curve); None for a curve.
    `causality`: who waited for whom, if already known.

    Raises
    ------
    ValueError : the range contains no tick of the curve.
    """
    progress, store = progress or Progress(), statistics.store
    if statistics.of_curve:
        return None
    causality = causality or statistics.causality(use, progress)
    ranges = statistics.ranges([span], use, progress, causality=causality)
    return run_costs(charges(store, causality, use, ranges, progress)[0], naming(store, {}))


def charges(
    store: TraceStore,
    causality: Causality,
    use: Utilization,
    ranges: Sequence[RangeStats],
    progress: Progress | None = None,
) -> list[Charges]:
    """The causes to which the time of each range is charged.

    `ranges` : their statistics, replayed (`Statistics.ranges`), with the same `use`.
    """
    progress = progress or Progress()
    spans = np.rint(np.array([(one.start_s, one.end_s) for one in ranges]) / use.unit).astype(np.int64)
    spans = spans.reshape(-1, 2) + use.start
    waits = _waits(store, causality)
    segments = _segments(store, use, waits, np.unique(spans), progress)
    collective = np.array([depends(region.name) is not None for region in store.regions], bool)
    charged = []
    for stats, (first, last) in zip(ranges, spans.tolist(), strict=True):
        rows, sums, seen = segments.between(first, last)
        waiting, calls = waits.between(first, last)
        replayed = stats.replayed
        if replayed is not None and replayed.waiting_s is None:  # clocks contradict too much in this range
            rows, sums = _untold(rows, sums, waiting, calls)
            seen, waiting = np.zeros(sums.shape[0], np.int64), np.zeros_like(waiting)
        hub, messages, size = _messages(causality, first, last, len(store.locations))
        charged.append(
            Charges(
                start_s=stats.start_s,
                end_s=stats.end_s,
                location=rows[0],
                region=rows[1],
                account=rows[2],
                own_s=sums[:, 0] * np.float64(use.unit),
                below_s=sums[:, 1:] * np.float64(use.unit),
                seen=seen,
                waiting_s=waiting * np.float64(use.unit),
                calls=calls,
                collective=collective,
                is_processor=stats.is_processor,
                processors=stats.processors,
                computing=stats.computing,
                hub=hub,
                messages=messages,
                bytes=size,
                members=_collectives(store, causality, first, last),
                serialisation=stats.serialisation_efficiency,
                balance=stats.load_balance,
                doubt_s=_doubt(replayed, causality),
                held_s=segments.held.between(first, last, len(store.locations), use.unit),
            )
        )
    return charged


def _doubt(replayed: Replayed | None, causality: Causality) -> float:
    if replayed is None:
        return 0.0
    return np.inf if replayed.waiting_s is None and not causality.why_none() else replayed.waiting_off_s


def names_in_costs(called: Mapping[str, str]) -> dict[str, str]:
    """Other names of regions, by their names in `RunCosts`."""
    return {_short(name): _short(new) for name, new in called.items()}


def _short(name: str) -> str:
    return printable(name, 80)


def naming(store: TraceStore, called: Mapping[str, str]) -> Naming:
    """Names for sentences: in one line of harmless characters, and short, as templates' fill pages."""
    regions = [_short(called.get(region.name, region.name)) for region in store.regions]
    ranks = tuple(-1 if place.rank is None else place.rank for place in store.locations)
    return Naming(lambda i: location_name(store.locations[i]), lambda i: regions[i], ranks)


@dataclass(frozen=True, eq=False)
class _Waits:
    """All waits (waits,) by location: ticks of the common clock, for whom, how, and the region of the call;
    `start` (locations + 1,). Waits that are not `followed` are for an unknown location."""

    start: Ints
    begin: Ints
    end: Ints
    who: Indices
    partner: Indices
    family: NDArray[np.int8]
    region: Indices
    followed: Flags
    regions: int
    #: the locations below each one, see `who_hangs`, and where the rows of each begin
    below: tuple[Ints, Indices, Indices]
    first: Ints

    def between(self, first: int, last: int) -> tuple[Ints, Ints]:
        """(locations, families) ticks of waiting in a range, and (families,) the region that has most of
        them."""
        inside = np.flatnonzero((self.end > first) & (self.begin < last))
        length = np.minimum(self.end[inside], last) - np.maximum(self.begin[inside], first)
        family = self.family[inside]
        waiting = np.zeros((self.start.size - 1, len(FAMILIES)), np.int64)
        np.add.at(waiting, (self.who[inside], family), length)
        regions = np.zeros((len(FAMILIES), max(self.regions, 1)), np.int64)
        np.add.at(regions, (family, self.region[inside]), length)
        return waiting, np.where(regions.any(axis=1), regions.argmax(axis=1), -1)


def _waits(store: TraceStore, causality: Causality) -> _Waits:
    places = len(store.locations)
    parts = [causality.waits_of(i) for i in range(places)]
    start = np.concatenate([[0], np.cumsum([one[0].size for one in parts])]).astype(np.int64)
    nothing = (np.zeros(0, np.int64),) * 3
    begin, end, row = (np.concatenate(column) for column in zip(nothing, *parts, strict=True))
    who = np.repeat(np.arange(places, dtype=np.int32), np.diff(start))
    family_of = np.zeros(len(Account), np.int8)
    for account in WAITING:
        family_of[account] = FAMILIES.index(_FAMILY[account])
    partner = causality.waits.partner[row]
    family = family_of[causality.waits.account[row]]
    family[(family == SENDER) & (partner > who)] = AFTER
    region = causality.calls.region[causality.waits.call[row]]
    del parts, row
    time, location, column, number, left_out = who_hangs(begin, end, who, partner, family, places)
    first = np.searchsorted(location, np.arange(places + 1))
    return _Waits(
        start, begin, end, who, partner, family, region, ~left_out, len(store.regions),
        (time, column, number), first,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Segments:
    """Charges (rows,) of the times between neighbouring `cuts`, one after the other, each beginning at
    `start`: `kind` indexes `kinds` (3, kinds), which are location, region, account in ascending order;
    `ticks` (rows, 1 + COLUMNS) own and of locations below; `seen`: how often there were any."""

    cuts: Ints
    start: Ints
    kinds: Ints
    kind: Ints
    seen: Ints
    ticks: Ints
    held: ThreadWaits

    def between(self, first: int, last: int) -> tuple[Ints, Ints, Ints]:
        """Rows, ticks and `seen` of a range that begins and ends at a cut."""
        a, b = np.searchsorted(self.cuts, [first, last])
        inside = slice(self.start[a], self.start[b])
        order = np.argsort(self.kind[inside], kind="stable")
        kind = self.kind[inside][order]
        if not kind.size:
            return self.kinds[:, :0], self.ticks[:0], self.seen[:0]
        new = np.flatnonzero(np.append(True, kind[1:] != kind[:-1]))
        ticks, seen = (np.add.reduceat(each[inside][order], new, axis=0) for each in (self.ticks, self.seen))
        return self.kinds[:, kind[new]], ticks, seen


def _segments(
    store: TraceStore, use: Utilization, waits: _Waits, cuts: Ints, progress: Progress
) -> _Segments:
    names = [mpi_call(region.name) for region in store.regions] + [""]
    starts = np.array([name in ("init", "init_thread") for name in names], bool)
    finalize = np.array([name == "finalize" for name in names], bool)
    factor = len(store.regions) + 1
    parts = [np.zeros((0, 5 + 1 + COLUMNS), np.int64)]
    threads = [np.zeros((4, 0), np.int64)] * len(store.locations)
    for i, location in enumerate(store.locations):
        progress.step(i, len(store.locations), "causes")
        if location.kind != "cpu" or location.first is None:
            continue
        begin, end, doing = _states(store, i, use, waits)
        rows = np.flatnonzero(np.isin(doing // factor, (Account.LOCK, Account.THREADS)))
        threads[i] = np.stack([begin[rows], end[rows], doing[rows] // factor, doing[rows] % factor - 1])
        states, state = np.unique(doing, return_inverse=True)
        waiting = int(states.size > 0 and states[0] == _WAITS)
        states, state = states[waiting:], state.ravel().astype(np.int64) - waiting
        out = np.zeros((cuts.size - 1, states.size, 1 + COLUMNS), np.int64)
        seen = np.zeros(out.shape[:2], np.int64)
        mine = slice(waits.first[i], waits.first[i + 1])
        charge(begin, end, state, cuts, *(column[mine] for column in waits.below), out, seen)
        segment, which = np.nonzero(out.any(axis=2))
        account, region = states[which] // factor, states[which] % factor - 1
        # In Paraver a state decides, which is the same for all calls that do not communicate.
        account[(account == Account.OVERHEAD) & starts[region]] = Account.STARTUP
        account[np.isin(account, (Account.STARTUP, Account.OVERHEAD)) & finalize[region]] = ENDING
        key = np.stack([segment, np.full(segment.size, i), region, account, seen[segment, which]], axis=1)
        parts.append(np.concatenate([key, out[segment, which]], axis=1))
    table = np.concatenate(parts)
    table = table[np.argsort(table[:, 0], kind="stable")]
    start = np.searchsorted(table[:, 0], np.arange(cuts.size))
    kinds, kind = np.unique(table[:, 1:4].T, axis=1, return_inverse=True)
    held = holders(store, threads)
    return _Segments(cuts, start, kinds, kind.ravel(), table[:, 4], table[:, 5:], held)


def _states(store: TraceStore, i: int, use: Utilization, waits: _Waits) -> tuple[Ints, Ints, Ints]:
    """The states of a location from the start to the end of the axis: begin, end (ticks of the common clock),
    and ``account * (regions + 1) + region + 1``, or `_WAITS`."""
    times, regions = [np.zeros(0, np.int64)], [np.full(1, -1, np.int32)]

    def note(time: Ints, _kind: Ints, _region: Ints, innermost: NDArray[np.int32]) -> None:
        last = np.append(time[1:] != time[:-1], True)  # of several at one time the last one counts
        times.append(time[last])
        regions.append(innermost[last])

    since, until, doing = class_states(store, i, use.rules, note)
    clock = use.rules.clock(store, i)
    time, region = clock.common(np.concatenate(times)), np.concatenate(regions)
    times.clear()
    regions.clear()
    begin, end = use.start, use.start + int(use.curve().edges[-1])
    part = slice(waits.start[i], waits.start[i + 1])
    wait_begin, wait_end, followed = waits.begin[part], waits.end[part], waits.followed[part]
    every = np.concatenate([[begin, end], since, until[-1:], time, wait_begin, wait_end])
    np.clip(every, begin, end, out=every)
    every.sort()  # numpy's unique blocks all threads
    at = every[:-1][every[1:] != every[:-1]]
    del every
    factor = len(store.regions) + 1
    accounts = accounts_of_classes(use.rules).astype(np.int64)[doing]
    there = accounts != Account.ABSENT
    k = np.searchsorted(since, at, side="right") - 1
    inside = k >= 0
    inside[inside] = (at[inside] < until[k[inside]]) & there[k[inside]]
    inner = region[np.searchsorted(time, at, side="right")] + np.int64(1)
    # A thread that has not begun has nothing to do yet.
    begins = NOT_BEGUN if store.locations[i].thread == 0 else int(Account.SERIAL)
    state = np.where(at < since[there].min(initial=end), begins, int(Account.ABSENT)) * factor
    state[inside] = accounts[k[inside]] * factor + inner[inside]
    w = np.searchsorted(wait_begin, at, side="right") - 1
    waiting = w >= 0
    waiting[waiting] = at[waiting] < wait_end[w[waiting]]
    unknown = int(Account.UNKNOWN) * factor + inner[waiting]
    state[waiting] = np.where(followed[w[waiting]], _WAITS, unknown)
    new = np.append(True, state[1:] != state[:-1])[: state.size]
    return at[new], np.append(at[new][1:], end), state[new]


def _untold(rows: Ints, sums: Ints, waiting: Ints, calls: Ints) -> tuple[Ints, Ints]:
    """The same charges without who waited for whom: all communication is in the account `UNKNOWN`."""
    location, region, account = rows
    places = np.arange(waiting.shape[0])
    most = np.where(waiting.any(axis=1), calls[waiting.argmax(axis=1)], -1)
    result = np.zeros((location.size + places.size, sums.shape[1]), np.int64)
    result[: location.size, 0] = sums[:, 0]
    result[location.size :, 0] = waiting.sum(axis=1)
    account = np.where(account == Account.MOVING, int(Account.UNKNOWN), account)
    unknown = np.full(places.size, int(Account.UNKNOWN))
    columns = (location, places), (region, most), (account, unknown)
    return np.stack([np.concatenate(column) for column in columns]), result


def _messages(causality: Causality, first: int, last: int, places: int) -> tuple[int, int, int]:
    """The hub of the messages that are sent in a range; the number of messages that are under way in it, as
    each of these may take its time, and their bytes."""
    of = causality.messages
    inside = (of.sent >= first) & (of.sent < last)
    count = int(inside.sum())
    under_way = inside | ((of.sent < first) & (of.arrived > first))
    moved = int(under_way.sum()), int(of.bytes[under_way].sum())
    if not count:
        return -1, *moved
    sender, receiver = of.sender[inside], of.receiver[inside]
    ends = np.bincount(sender, minlength=places) + np.bincount(receiver, minlength=places)
    hub = int(ends.argmax())
    partners = np.unique(np.concatenate([sender[receiver == hub], receiver[sender == hub]])).size
    is_hub = ends[hub] >= _HUB * count and partners > 1
    return hub if is_hub else -1, *moved


def _collectives(store: TraceStore, causality: Causality, first: int, last: int) -> Ints:
    """(regions, 2) number of members that are in collective operations in a range, and bytes, for each the
    larger of sent and received, by the region of the call with that name."""
    region_of = {mpi_call(region.name) or region.name.lower(): i for i, region in enumerate(store.regions)}
    of_text = np.array([region_of.get(mpi_call(text) or text.lower(), -1) for text in store.texts], np.int64)
    sums = np.zeros((len(store.regions), 2), np.int64)
    for i in range(len(store.locations)):
        for begin, end, operation, sent, received in store.blocks(
            "collectives", i, "begin", "end", "operation", "sent", "received"
        ):
            begin, end, region = causality.common(i, begin), causality.common(i, end), of_text[operation]
            inside = (np.maximum(begin, end - 1) >= first) & (begin < last) & (region >= 0)
            np.add.at(sums[:, 0], region[inside], 1)
            np.add.at(sums[:, 1], region[inside], np.maximum(sent, received)[inside])
    return sums

"""Statistics of each phase: efficiencies, time by region and activity, messages, calls, waiting.

All numbers of a time range follow from summaries made on import (`desktop.data.profile`): a range costs two
look-ups in every location's call paths, not a pass over its events. Sources of the formulas:

* parallel efficiency, load balance, communication, serialisation and transfer efficiency: POP Centre of
  Excellence, "POP Standard Metrics for Parallel Performance Analysis";
* the class of a time and its mean level: ORNL/TM-11637, section 1; `desktop.data.utilization`.

Use `Statistics`, which keeps what it has read. What needs a pass over the events of a range (the replay on an
ideal network, the division of communication into waiting and transfer) is done only on request.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from desktop.core import callpaths
from desktop.core.accounts import ACTIVITY_OF_CLASS, CLASS_NUMBERS, Account
from desktop.core.arrays import AnyArray, Flags, Floats, Ints
from desktop.core.clock_line import Clock
from desktop.core.concurrency import concurrency
from desktop.core.curve import StepCurve
from desktop.core.frames import TABLES, attributes, frame
from desktop.core.gantt import NO_REGION_NAME
from desktop.core.labels import ACTIVITIES
from desktop.core.open_regions import BEGIN, END, activities
from desktop.core.units import capital, percent, si, trimmed
from desktop.data.call_tables import Intervals
from desktop.data.causality import Causality, Replayed
from desktop.data.causes import Caused, Causes
from desktop.data.events import Activity
from desktop.data.lines import in_order
from desktop.data.matching import address_of
from desktop.data.naming import location_name
from desktop.data.profile import Profile
from desktop.data.store import TraceStore
from desktop.data.utilization import (
    Utilization,
    accounts_of_classes,
    build,
    class_resolve,
    class_rule,
    class_states,
    is_worker,
    region_classes,
)
from desktop.progress import Progress, working

if TYPE_CHECKING:
    from pandas import DataFrame


#: Name of the time outside of all regions.
NO_REGION = NO_REGION_NAME
#: The numbers of a range that are single values, in the order of tables.
SINGLE = tuple(field.name for field in TABLES["statistics"][1:12])
#: Differences of shares below this are not reported.
LEAST_CHANGE = 0.005
#: Parts into which a range is divided to estimate the noise of its numbers.
_PARTS = 8
#: A region with less than this share of its share in the neighbouring range counts as absent.
_TRACE = 0.01
#: Locations requested at a time from another machine, when each request waits for the line.
_LINES = 16


@dataclass(frozen=True, eq=False)
class Messages:
    """Messages of a time range: sends (receives) recorded inside it.

    sent, received, bytes_sent, bytes_received : (locations,) of each location.
    sender, receiver, count, bytes : (pairs,) the matrix of sent messages, sorted by sender and receiver; -1:
        unknown receiver.
    """

    sent: Ints
    received: Ints
    bytes_sent: Ints
    bytes_received: Ints
    sender: Ints
    receiver: Ints
    count: Ints
    bytes: Ints

    def to_frame(self, names: Sequence[str]) -> DataFrame:
        """The matrix, one row per pair, with the `names` of the locations, "" for an unknown receiver:
        ``TABLES["messages"]`` of `desktop.core.frames`."""
        called = np.array([*names, ""], object)
        columns = {
            "sender": called[self.sender],
            "receiver": called[self.receiver],  # -1 is the last
            "messages": self.count,
            "bytes": self.bytes,
            "mean_size": self.bytes / np.maximum(self.count, 1),
        }
        return frame(TABLES["messages"], columns)


@dataclass(frozen=True, eq=False)
class RangeStats:
    """One time range of a run. Times in seconds; locations and regions by their index in the store.

    start_s, end_s : on the axis of the curve, rounded to whole ticks.
    duration_s : length.
    processors : P, all processors of the run that have events.
    present : mean number of processors present (between their first and last event).
    computing : mean number of processors in an activity that the curve counts: the curve's mean level.
    is_processor : (locations,) which locations are processors and have events.
    seconds : (locations, len(Activity)) of every processor in each activity; 0 for other locations.
    accounts : (locations, len(Account)) ticks of every processor in each account (`desktop.core.accounts`),
        which add up to the duration; None until requested (`replayed`), or if no locations are known.
        `account_s`: the same in seconds, summed over processors.
    useful_s : (locations,) seconds in the activities that the curve counts.
    exclusive_s, inclusive_s, calls : (regions,) over all processors. Inclusive counts nested occurrences of a
        region once. Calls are enters inside the range.
    outside_s : seconds of processors outside of all regions.
    messages : None for a source without messages.
    levels, shares : (k,) the concurrency profile: the share of the time in which exactly so many processors
        compute, by rising level; shares add up to 1.
    replayed : None until requested.
    caused : who made others wait, and the critical path; None until requested, or if waiting is unknown.
    note : a remark to be shown with these numbers, or "".
    """

    start_s: float
    end_s: float
    duration_s: float
    processors: float
    present: float
    computing: float
    is_processor: Flags
    seconds: Floats
    useful_s: Floats
    exclusive_s: Floats
    inclusive_s: Floats
    calls: Ints
    outside_s: float
    messages: Messages | None
    levels: Floats
    shares: Floats
    replayed: Replayed | None = None
    note: str = ""
    accounts: Ints | None = None
    unit_s: float = 1.0
    caused: Caused | None = None

    def to_frame(self, name: str = "range") -> DataFrame:
        """These numbers as one row, see `statistics_frame`."""
        return statistics_frame([name], [self])

    def account_parts(self, least: float = 0.0) -> list[tuple[Account, float]]:
        """Accounts and their shares (0 to 1) of length x processors, the largest first; only shares above
        `least`. Empty if they are unknown."""
        total = 0 if self.accounts is None else int(self.accounts.sum())
        if self.accounts is None or not total:
            return []
        parts = [(one, float(self.accounts[:, one].sum() / total)) for one in Account]
        return sorted(((one, part) for one, part in parts if part > least), key=lambda pair: -pair[1])

    @property
    def account_s(self) -> dict[Account, float] | None:
        """Processor-seconds in each account."""
        if self.accounts is None:
            return None
        return {one: float(self.accounts[:, one].sum() * self.unit_s) for one in Account}

    @property
    def parallel_efficiency(self) -> float:
        """Mean computing over P; for a constant least-squares phase also its level over P. NaN if P is 0."""
        return self.computing / self.processors if self.processors else np.nan

    @property
    def load_balance(self) -> float:
        """Mean over maximum useful time of the processors; NaN if none computes or none is known."""
        most = self._most
        return self.computing * self.duration_s / (self.processors * most) if most else np.nan

    @property
    def communication_efficiency(self) -> float:
        """Maximum useful time over duration; NaN if no locations are known."""
        return self._most / self.duration_s if self.is_processor.any() else np.nan

    @property
    def serialisation_efficiency(self) -> float | None:
        """Maximum useful time over the ideal duration; None if that is unknown."""
        ideal = self.replayed.ideal_s if self.replayed else None
        return self._most / ideal if ideal else None

    @property
    def transfer_efficiency(self) -> float | None:
        """Ideal duration over duration; None if that is unknown."""
        ideal = self.replayed.ideal_s if self.replayed else None
        return ideal / self.duration_s if ideal is not None else None

    @property
    def utilization(self) -> Floats:
        """(locations,) share of the duration in which each location computes; NaN if it is no processor."""
        return np.where(self.is_processor, self.useful_s / self.duration_s, np.nan)

    @property
    def by_activity(self) -> dict[Activity, float]:
        """Processor-seconds in each activity."""
        return {activity: float(self.seconds[:, activity].sum()) for activity in Activity}

    def most_loaded(self, n: int) -> Ints:
        """Up to n processors with the longest useful time, longest first."""
        return self._by_load()[:n]

    def idlest(self, n: int) -> Ints:
        """Up to n processors with the shortest useful time, shortest first."""
        return self._by_load()[::-1][:n]

    def _by_load(self) -> Ints:
        processors = np.flatnonzero(self.is_processor)
        return processors[np.argsort(-self.useful_s[processors], kind="stable")]

    @property
    def _most(self) -> float:
        return float(self.useful_s[self.is_processor].max(initial=0.0))


@dataclass(frozen=True)
class RegionRow:
    """A row of the flat profile: seconds over all processors, and the share of the exclusive ones in all
    their time. `activity` None: outside of all regions. Waiting in it, waiting it caused in others, its share
    of the critical path and its least slack (`desktop.data.causes`): NaN if unknown.
    """

    region: int
    name: str
    role: str
    activity: Activity | None
    exclusive_s: float
    inclusive_s: float
    calls: int
    share: float
    waits_s: float = np.nan
    costs_s: float = np.nan
    path_s: float = np.nan
    slack_s: float = np.nan


@dataclass(frozen=True)
class CallRow:
    """A row of the call tree, in depth-first order; `parent` and `depth` give the tree.

    `row` 0 stands for no region (its inclusive time is everything). `locations`: number that were here inside
    the range; `low`, `mean` and `high`: least, mean and largest of their inclusive times, in seconds.
    `folded`: calls of the region on paths that were too many to be kept apart, in one row.
    """

    row: int
    parent: int
    depth: int
    region: int
    name: str
    activity: Activity | None
    inclusive_s: float
    exclusive_s: float
    calls: int
    locations: int
    low: float
    mean: float
    high: float
    folded: bool = False


def statistics_frame(names: Sequence[str], ranges: Sequence[RangeStats]) -> DataFrame:
    """One row per range, with its name: ``TABLES["statistics"]`` of `desktop.core.frames`, NaN where a number
    is unknown."""

    def number(value: float | None) -> float:
        return np.nan if value is None else float(value)

    def part(stats: RangeStats, activity: Activity) -> float:
        total = float(stats.seconds.sum())
        return float(stats.seconds[:, activity].sum()) / total if total else np.nan

    def replayed(stats: RangeStats, name: str) -> float:
        seconds_of = getattr(stats.replayed, name) if stats.replayed else None
        return np.nan if seconds_of is None else float(seconds_of.sum())

    columns: dict[str, object] = {"range": list(names)}
    for name in SINGLE:
        columns[name] = [number(getattr(stats, name)) for stats in ranges]
    for activity in Activity:
        columns[f"{activity.name.lower()}_part"] = [part(stats, activity) for stats in ranges]
    for name, attribute in (("waiting", "waiting_s"), ("transfer", "moving_s")):
        columns[name] = [replayed(stats, attribute) for stats in ranges]
    sent = [stats.messages for stats in ranges]
    columns["messages"] = [np.nan if one is None else float(one.sent.sum()) for one in sent]
    columns["bytes"] = [np.nan if one is None else float(one.bytes_sent.sum()) for one in sent]
    caused = [stats.caused for stats in ranges]
    columns["costs"] = [np.nan if one is None else float(one.costs_s.sum()) for one in caused]
    columns["path"] = [np.nan if one is None else float(one.path_s.sum()) for one in caused]
    accounts = [stats.account_s or {} for stats in ranges]
    for one in Account:
        columns[f"{one.name.lower()}_account"] = [seconds.get(one, np.nan) for seconds in accounts]
    return frame(TABLES["statistics"], columns)


def profile_frame(rows: Sequence[RegionRow]) -> DataFrame:
    """The flat profile, one row per region: ``TABLES["profile"]`` of `desktop.core.frames`."""
    return frame(
        TABLES["profile"],
        _columns("profile", rows, {name: f"{name}_s" for name in ("waits", "costs", "path", "slack")}),
    )


def locations_frame(names: Sequence[str], stats: RangeStats) -> DataFrame:
    """The processors of a range, one row each, with the `names` of all locations, indexed by their number:
    ``TABLES["locations"]`` of `desktop.core.frames`, NaN where a number is unknown."""
    rows = np.flatnonzero(stats.is_processor)
    columns: dict[str, object] = {one.name: np.full(rows.size, np.nan) for one in TABLES["locations"]}
    columns |= {"location": [names[i] for i in rows.tolist()], "computing": stats.useful_s[rows]}
    if (caused := stats.caused) is not None:
        waits, costs = caused.waits_s[rows], caused.costs_s[rows]
        columns |= {"waits": waits.sum(axis=1), "waits_passed_on": waits[:, 1], "path": caused.path_s[rows]}
        columns |= {"costs": costs.sum(axis=1), "costs_through_others": costs[:, 1]}
        columns["slack"] = caused.slack_s[rows]
    return frame(TABLES["locations"], columns, index=rows)


def calls_frame(rows: Sequence[CallRow]) -> DataFrame:
    """The call tree, one row per path in depth-first order, indexed by number: ``TABLES["calls"]`` of
    `desktop.core.frames`."""
    columns = _columns("calls", rows, {"path": "row", "low_s": "low", "mean_s": "mean", "high_s": "high"})
    return frame(TABLES["calls"], columns, index=columns["path"])


def _columns(
    table: str, rows: Sequence[RegionRow] | Sequence[CallRow], called: Mapping[str, str]
) -> dict[str, list[object]]:
    """Columns of a table of regions, from the attributes of its rows; `called`: attribute by column name."""
    called = {"region": "name", "exclusive": "exclusive_s", "inclusive": "inclusive_s"} | dict(called)
    columns = attributes(table, rows, called)
    columns["activity"] = [
        "" if row.activity is None else ACTIVITIES[row.activity.name.lower()] for row in rows
    ]
    return columns


@dataclass(frozen=True)
class Change:
    """A quantity whose share differs between two neighbouring ranges, with a sentence.

    `seconds`, by which changes are ranked: the difference in processor-seconds over the shorter of both
    ranges; 0 for messages. `left` and `right` are shares (0 to 1): of all processors' time spent in a region
    (exclusive), of the time in which a location computes, of all bytes (if there are none, messages) sent
    from one location to another, and for the total sent per second, of the largest of both rates and the
    run's. `difference` is right - left; for a location minus the median of all processors; for a pair times
    the share of the run's rate (at most 1) reached by the range that sends less. `index`: of the region (-1:
    none) or location, (sender, receiver) of a pair, empty for the total; `region`: its name.
    """

    kind: Literal["region", "location", "messages", "pair"]
    index: tuple[int, ...]
    left: float
    right: float
    difference: float
    sentence: str
    region: str = ""
    seconds: float = 0.0

    def called(self, names: Mapping[str, str]) -> str:
        """The sentence with other names of regions."""
        name = names.get(self.region, self.region)
        return self.sentence.replace(f"Region {self.region} ", f"Region {name} ", 1)


# ------------------------------------------------------------------ the numbers


@dataclass(frozen=True, eq=False)
class _Cuts:
    """Ranges of an axis as cuts, in ticks from its start: `begin`, `end` (ranges,)."""

    begin: Ints
    end: Ints
    length: int

    def local(self, start: int, clock: Clock) -> tuple[Ints, Ints, Ints]:
        """Distinct cuts in ticks recorded by `clock`, rising, and the indices of those that begin and end
        each range; the axis begins at tick `start` of the common clock. Nothing lies outside the axis, so the
        first and the last cut include everything."""
        begin = np.where(self.begin <= 0, BEGIN, clock.local(self.begin + start))
        end = np.where(self.end >= self.length, END, clock.local(self.end + start))
        cuts = np.unique(np.concatenate([begin, end]))
        return cuts, np.searchsorted(cuts, begin), np.searchsorted(cuts, end)


def _lasting(ticks: Ints, clock: Clock) -> Ints:
    """Durations recorded by a clock, in ticks of the common clock."""
    return np.rint(ticks * (1.0 + clock.drift)).astype(np.int64) if clock.drift else ticks


@dataclass(frozen=True, eq=False)
class _Counted:
    """Ticks and calls of some ranges: `classes` (locations, ranges, classes of `desktop.core.accounts`),
    `exclusive`, `within` and `calls` (regions, ranges), `outside` (ranges,); which locations are processors;
    whether paths were folded."""

    classes: Ints
    exclusive: Ints
    within: Ints
    calls: Ints
    outside: Ints
    present: Flags
    talk: _Talk | None
    folding: bool

    @cached_property
    def time(self) -> Ints:
        """(locations, ranges, activities) ticks."""
        ticks = np.zeros((*self.classes.shape[:2], len(Activity)), np.int64)
        for number, activity in enumerate(ACTIVITY_OF_CLASS.tolist()):
            ticks[:, :, activity] += self.classes[:, :, number]
        return ticks

    def accounts(self, cuts: _Cuts, use: Utilization) -> Ints:
        """(locations, ranges, accounts) ticks, with all communication in `Account.MOVING`."""
        ticks = np.zeros((*self.classes.shape[:2], len(Account)), np.int64)
        for number, account in enumerate(accounts_of_classes(use.rules).tolist()):
            ticks[:, :, account] += self.classes[:, :, number]
        length = np.where(self.present[:, None], cuts.end - cuts.begin, 0)
        ticks[:, :, Account.ABSENT] += length - ticks.sum(axis=2)
        return ticks

    def useful(self, use: Utilization) -> Ints:
        """(ranges, locations) ticks in the activities that the curve counts."""
        counted = sorted(use.rules.computing)
        return np.ascontiguousarray(self.time[:, :, counted].sum(axis=2).T)

    def stats(self, j: int, cuts: _Cuts, use: Utilization, levels: Floats, shares: Floats) -> RangeStats:
        unit = np.float64(use.unit)
        a, b = int(cuts.begin[j]), int(cuts.end[j])
        useful = self.useful(use)[j]
        return RangeStats(
            start_s=float(a * unit),
            end_s=float(b * unit),
            duration_s=float((b - a) * unit),
            processors=float(use.processors),
            present=float(self.time[:, j].sum() / (b - a)),
            computing=float(useful.sum() / (b - a)),
            is_processor=self.present,
            seconds=self.time[:, j] * unit,
            useful_s=useful * unit,
            exclusive_s=self.exclusive[:, j] * unit,
            inclusive_s=self.within[:, j] * unit,
            calls=self.calls[:, j].copy(),
            outside_s=float(self.outside[j] * unit),
            messages=None if self.talk is None else self.talk.messages(j),
            levels=levels,
            shares=shares,
            note=_FOLDED if self.folding else "",
            unit_s=float(unit),
        )


_FOLDED = (
    "Some locations call regions on too many paths to keep them apart: inclusive times do not include what "
    "is called there."
)


class Statistics:
    """Statistics of any ranges of a store. Keeps what it has read, so further ranges cost little.

    To be used by one thread at a time.
    """

    def __init__(self, store: TraceStore) -> None:
        self.store = store
        self._profile: Profile | None = None
        self._use: Utilization | None = None
        self._causality: Causality | None = None
        self._latest: Utilization | None = None
        self._scatters: tuple[object, dict[object, _Scatter]] = (None, {})
        self._causes: Causes | None = None
        self._folded: tuple[object, dict[int, Intervals]] = (None, {})

    def ranges(
        self,
        ranges_s: Iterable[tuple[float, float]],
        use: Utilization | None = None,
        progress: Progress | None = None,
        *,
        replay: bool = False,
        causality: Causality | None = None,
        causes: Causes | None = None,
    ) -> tuple[RangeStats, ...]:
        """Statistics of time ranges, which may overlap.

        Parameters
        ----------
        ranges_s : start and end in seconds on the axis of the curve; what lies outside of it is cut off.
        use : the utilization of the store, with the rules to apply; None: with the default rules.
        replay : whether to compute what needs a pass over the events (`RangeStats.replayed`, `accounts` and
            `caused`); the pass is made once for all ranges, and kept until the rules change.
        causality, causes : results already computed with the same rules; without one its numbers are missing.

        Raises
        ------
        ValueError : a range is empty or outside the curve.
        """
        progress = progress or Progress()
        use = self._latest = self._utilization(use, progress)
        if replay:
            causality, causes = self.causality(use, progress), self.causes(use, progress)
        elif causality is not None and causality.rules == use.rules:
            self._causality, replay = causality, True
        spans = [(float(a), float(b)) for a, b in ranges_s]
        if not spans:
            return ()
        curve = use.curve()
        if self.of_curve:
            return tuple(self._of_curve(curve, a, b) for a, b in spans)
        cuts = self._cuts(spans, use, curve)
        if replay:  # also what was computed before, before each range
            nothing = np.zeros_like(cuts.begin)
            begin, end = np.concatenate([cuts.begin, nothing]), np.concatenate([cuts.end, cuts.begin])
            cuts = _Cuts(begin, end, cuts.length)
        exact = self.causality(use, progress).exact if replay else {}
        with ThreadPoolExecutor(1) as beside:
            levels = beside.submit(
                lambda: [
                    concurrency(curve, a, b)
                    for a, b in zip(cuts.begin[: len(spans)].tolist(), cuts.end.tolist(), strict=False)
                ]
            )
            counted = self._count(cuts, use, progress, exact)
            stats = [counted.stats(j, cuts, use, *level) for j, level in enumerate(levels.result())]
        if replay:
            causality, n = self.causality(use, progress), len(spans)
            if causes is not None and causes.causality is not causality:
                causes = None
            accounts = causality.split(
                counted.accounts(cuts, use)[:, :n], cuts.begin[:n] + use.start, cuts.end[:n] + use.start
            )
            finish = partial(
                self._replayed, accounts=accounts, cuts=cuts, counted=counted, use=use, causes=causes
            )
            ticks = list(zip(cuts.begin[:n].tolist(), cuts.end[:n].tolist(), strict=True))
            rows = {span: j for j, span in enumerate(ticks)}  # a run of one phase is one range
            longest = sorted(rows, key=lambda span: span[0] - span[1])
            some = [rows[span] for span in longest]
            with ThreadPoolExecutor(2) as threads:  # the whole run takes as long as all of its phases
                done = dict(zip(longest, threads.map(finish, some, [stats[j] for j in some]), strict=True))
            stats = [done[span] for span in ticks]
        return tuple(stats)

    def causality(self, use: Utilization | None = None, progress: Progress | None = None) -> Causality:
        """Who waited for whom; computed once, and kept until the rules change."""
        progress = progress or Progress()
        rules = self._utilization(use, progress).rules
        if self._causality is None or self._causality.rules != rules:
            self._causality = Causality(self.store, rules, progress)
        return self._causality

    def causes(self, use: Utilization | None = None, progress: Progress | None = None) -> Causes:
        """Delay costs and critical path; computed once and kept as `causality`, with the same errors."""
        progress = progress or Progress()
        causality = self.causality(use, progress)
        if self._causes is None or self._causes.causality is not causality:
            self._causes = Causes(self.store, causality, progress)
        return self._causes

    def _replayed(
        self, j: int, stats: RangeStats, *, accounts: Ints, cuts: _Cuts, counted: _Counted, use: Utilization,
        causes: Causes | None,
    ) -> RangeStats:  # fmt: skip
        """Complete a range by what only a pass over its events can tell."""
        assert self._causality is not None
        useful = counted.useful(use)
        talk = stats.messages
        begin, end = int(cuts.begin[j]) + use.start, int(cuts.end[j]) + use.start
        replayed = self._causality.between(
            begin,
            end,
            useful[cuts.begin.size // 2 + j],
            useful[j],
            int(talk.sent.sum()) if talk else 0,
            int(talk.received.sum()) if talk else 0,
        )
        caused = None if causes is None or replayed.waiting_s is None else causes.between(begin, end)
        return replace(stats, accounts=accounts[:, j], replayed=replayed, caused=caused)

    def _utilization(self, use: Utilization | None, progress: Progress) -> Utilization:
        if use is None:
            if self._use is None:
                self._use = build(self.store, None, progress)
            return self._use
        return use

    @property
    def of_curve(self) -> bool:
        """Whether the source is only a curve."""
        return self.store.has("curve")

    def _notes(self, progress: Progress | None = None) -> Profile:
        if self._profile is None:
            self._profile = Profile(self.store, progress)
        return self._profile

    @staticmethod
    def _cuts(spans: Sequence[tuple[float, float]], use: Utilization, curve: StepCurve) -> _Cuts:
        length = int(curve.edges[-1])
        ticks = np.rint(np.clip(np.array(spans) / use.unit, 0, length)).astype(np.int64)
        for (a, b), (begin, end) in zip(spans, ticks.tolist(), strict=True):
            if not begin < end:
                raise ValueError(
                    f"the range {a} s to {b} s holds no tick of the curve, which runs from {curve.start} s "
                    f"to {curve.start + curve.duration} s"
                )
        return _Cuts(ticks[:, 0], ticks[:, 1], length)

    def _of_curve(self, curve: StepCurve, start: float, end: float) -> RangeStats:
        """Statistics of a source that is only a curve."""
        part = curve.window(start, end)
        nothing, none = np.zeros(0), np.zeros(0, np.int64)
        levels, shares = concurrency(curve, start / curve.unit, end / curve.unit)
        places = len(self.store.locations)
        return RangeStats(
            start_s=part.start,
            end_s=float(part.edges[-1]) * part.unit,
            duration_s=part.duration,
            processors=curve.capacity,
            present=curve.capacity,
            computing=part.mean,
            is_processor=np.zeros(places, bool),
            seconds=np.zeros((places, len(Activity))),
            useful_s=np.zeros(places),
            exclusive_s=nothing,
            inclusive_s=nothing,
            calls=none,
            outside_s=0.0,
            messages=None,
            levels=levels,
            shares=shares,
            note="The source is a curve: nothing else is known about its processors.",
        )

    def _count(
        self, cuts: _Cuts, use: Utilization, progress: Progress, exact: Mapping[int, Intervals]
    ) -> _Counted:
        store, notes = self.store, self._notes(progress)
        places, regions, k = len(store.locations), len(store.regions), cuts.begin.size
        rule = class_rule(store, use.rules)
        time = np.zeros((places, k, CLASS_NUMBERS), np.int64)
        exclusive, within, calls = (np.zeros((regions, k), np.int64) for _ in range(3))
        outside = np.zeros(k, np.int64)
        present = np.zeros(places, bool)
        talk = _Talk(places, k) if store.has("messages") else None
        folding = False

        def positions(i: int) -> tuple[tuple[Ints, Ints] | None, tuple[Ints, Ints] | None]:
            """Ticks and enters of location i, and its messages, at the cuts."""
            location = store.locations[i]
            if location.first is None or location.last is None:
                return None, None
            local, begin, end = cuts.local(use.start, use.rules.clock(store, i))
            talked = passed = None
            if talk is not None and store.rows("messages", i):
                peers, counts = notes.traffic(i, local)
                counts = counts[:, end] - counts[:, begin]
                talked = self._received_by(i, peers, counts, local[begin], local[end])
            if location.kind == "cpu":
                ticks, entered = notes.at(i, local)
                spent, came = (np.ascontiguousarray((at[end] - at[begin]).T) for at in (ticks, entered))
                spent = _lasting(spent, use.rules.clock(store, i))
                passed = spent, came
            return passed, talked

        def beside(i: int) -> tuple[tuple[Ints, Ints] | None, tuple[Ints, Ints] | None]:
            with working(progress):
                return positions(i)

        # Sequentially: threads would wait for each other's many short reads, and take a fifth longer. For a
        # store on another machine they wait for the line.
        all_places = range(places)
        far = store.elsewhere is not None
        counted_each = in_order(beside, all_places, _LINES) if far else map(positions, all_places)
        for i, (location, (passed, talked)) in enumerate(zip(store.locations, counted_each, strict=True)):
            progress.step(i, places, "statistics")
            if talk is not None and talked is not None:
                talk.add(i, *talked)
            if passed is None:
                continue
            present[i] = True
            spent, came = passed
            tree, folds = notes.tree(i)
            folding |= folds
            if i in exact:
                time[i] = exact[i].between(cuts.begin + use.start, cuts.end + use.start)
            elif folds:
                time[i] = self._by_states(i, cuts, use)
            else:
                resolve = class_resolve(location, is_worker(store, i, location, rule.active))
                doing = activities(tree, rule, resolve)
                callpaths.add_by_class(doing, spent, time[i])
            outside += spent[0]
            callpaths.add_by_region(
                tree,
                callpaths.outermost(tree),
                spent,
                callpaths.inclusive(tree, spent),
                came,
                exclusive,
                within,
                calls,
            )
        return _Counted(time, exclusive, within, calls, outside, present, talk, folding)

    @cached_property
    def _address(self) -> Ints | None:
        """`address_of` the store; None if messages name every location itself."""
        address = address_of(self.store)
        return address if (address != np.arange(address.size)).any() else None

    def _received_by(
        self, location: int, peers: Ints, counts: Ints, begin: Ints, end: Ints
    ) -> tuple[Ints, Ints]:
        """`peers` and `counts` (4, ranges, peers) of a location, as its records name them; for what another
        thread of the named process has received, that thread is the peer."""
        address = self._address
        if address is None:
            return peers, counts
        for sent, receiver, size in self.store.blocks("links", location, "time", "peer", "bytes"):
            moved = np.flatnonzero(address[receiver] != receiver)
            both = np.union1d(peers, receiver[moved])
            wider = np.zeros((*counts.shape[:2], both.size), np.int64)
            wider[:, :, np.searchsorted(both, peers)] = counts
            peers, counts = both, wider
            for j, (first, last) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
                some = moved[(sent[moved] >= first) & (sent[moved] < last)]
                for who, change in ((receiver[some], 1), (address[receiver[some]], -1)):
                    at = np.searchsorted(peers, who)
                    np.add.at(counts[0, j], at, change)
                    np.add.at(counts[1, j], at, change * size[some])
        return peers, counts

    def _by_states(self, location: int, cuts: _Cuts, use: Utilization) -> Ints:
        """(ranges, classes) ticks of a location from its states, if its call paths do not tell enough."""
        if self._folded[0] != use.rules:
            self._folded = use.rules, {}
        cache = self._folded[1]
        if location not in cache:
            since, until, doing = class_states(self.store, location, use.rules)
            cache[location] = Intervals.of(since, until, doing, CLASS_NUMBERS)
        return cache[location].between(cuts.begin + use.start, cuts.end + use.start)

    def flat(self, stats: RangeStats, use: Utilization | None = None) -> list[RegionRow]:
        """The regions of a range that were entered or open in it, by exclusive time, largest first; `region`
        -1 is the time outside of all regions."""
        classes = region_classes(self.store, self._utilization(use, Progress()).rules)
        total = stats.seconds.sum() or np.nan
        outside_of_all = len(self.store.regions)

        def caused(i: int) -> tuple[float, ...]:
            if (one := stats.caused) is None:
                return (np.nan,) * 4
            waits, costs = one.region_waits_s[i].sum(), one.region_costs_s[i].sum()
            return float(waits), float(costs), float(one.region_path_s[i]), float(one.region_slack_s[i])

        rows = [
            RegionRow(
                i, region.name, region.role, Activity(int(classes[i])), float(spent), float(within),
                int(calls), float(spent / total), *caused(i),
            )
            for i, (region, spent, within, calls) in enumerate(
                zip(self.store.regions, stats.exclusive_s, stats.inclusive_s, stats.calls, strict=False)
            )
            if within > 0 or calls
        ]  # fmt: skip
        if stats.outside_s > 0:
            outside = stats.outside_s
            part = float(outside / total)
            row = RegionRow(-1, NO_REGION, "", None, outside, outside, 0, part, *caused(outside_of_all))
            rows.append(row)
        return sorted(rows, key=lambda row: (-row.exclusive_s, row.name))

    def by_role(self, stats: RangeStats) -> dict[str, float]:
        """Seconds over all processors by the role of the innermost region, largest first."""
        seconds_of: dict[str, float] = {}
        for region, seconds in zip(self.store.regions, stats.exclusive_s.tolist(), strict=False):
            if seconds > 0:
                seconds_of[region.role or "unknown"] = seconds_of.get(region.role or "unknown", 0.0) + seconds
        if stats.outside_s > 0:
            seconds_of[NO_REGION] = stats.outside_s
        return dict(sorted(seconds_of.items(), key=lambda item: -item[1]))

    def calls(
        self,
        range_s: tuple[float, float],
        use: Utilization | None = None,
        progress: Progress | None = None,
    ) -> list[CallRow]:
        """The call tree of a range, merged over all processors, in depth-first order with the largest
        inclusive time first. Raises as `ranges`."""
        progress = progress or Progress()
        use = self._utilization(use, progress)
        if self.of_curve:
            return []
        cuts = self._cuts([range_s], use, use.curve())
        tree, store = _MergedTree(), self.store
        for i, location in enumerate(store.locations):
            progress.step(i, len(store.locations), "call tree")
            if location.kind == "cpu" and location.first is not None:
                local, begin, end = cuts.local(use.start, use.rules.clock(store, i))
                ticks, calls = self._notes(progress).at(i, local)
                exclusive, came = (np.ascontiguousarray((at[end] - at[begin]).T) for at in (ticks, calls))
                exclusive = _lasting(exclusive, use.rules.clock(store, i))
                tree.add(self._notes().tree(i).tree, exclusive, came)
        return tree.rows(store, region_classes(store, use.rules), use.unit)

    def changes(self, run: RangeStats, left: RangeStats, right: RangeStats, most: int = 10) -> list[Change]:
        """The largest differences between two ranges of a run, by processor-seconds, at most `most`.

        Differences within the noise of the ranges are left out: each range is divided into `_PARTS` parts of
        equal length, whose scatter gives the standard error of the means; a difference must exceed so many
        standard errors that among as many quantities without any, one would be found once in a hundred times.
        """
        changes = [*self._regions_changed(left, right), *self._locations_changed(left, right)]
        changes += self._messages_changed(run, left, right)
        changes = [change for change in changes if abs(change.difference) >= LEAST_CHANGE]
        if changes:
            noise = self._scatter(left), self._scatter(right)
            errors = 3.0 + 1.2 * np.log10(len(self.store.regions) + len(self.store.locations) + 1)
            changes = [
                change for change in changes if abs(change.difference) > errors * _noise(change, *noise)
            ]
        return sorted(changes, key=lambda change: (-change.seconds, -abs(change.difference)))[:most]

    def _scatter(self, stats: RangeStats) -> _Scatter | None:
        """Standard errors of the means of a range; None if it is too short to be divided."""
        use = self._latest
        if use is None or self.of_curve or stats.duration_s < 2 * _PARTS * use.unit:
            return None
        if self._scatters[0] != use.rules:
            self._scatters = use.rules, {}
        cache, key = self._scatters[1], (stats.start_s, stats.end_s)
        if key not in cache:
            if len(cache) > 256:
                cache.clear()
            ends = np.linspace(stats.start_s, stats.end_s, _PARTS + 1)
            parts = self.ranges(pairwise(ends.tolist()), use)
            cpus = stats.is_processor
            cache[key] = _Scatter(
                _error(
                    [
                        np.append(one.exclusive_s, one.outside_s) / (one.seconds.sum() or np.nan)
                        for one in parts
                    ]
                ),
                _error([one.utilization - np.median(one.utilization[cpus]) for one in parts if cpus.any()]),
                _relative([(m.bytes.sum(), m.count.sum()) for one in parts if (m := one.messages)]),
                0 if stats.messages is None else int(stats.messages.count.sum()),
            )
        return cache[key]

    def _regions_changed(self, left: RangeStats, right: RangeStats) -> Iterator[Change]:
        totals = [stats.seconds.sum() or np.nan for stats in (left, right)]
        parts = [stats.exclusive_s / total for stats, total in zip((left, right), totals, strict=True)]
        names = [region.name for region in self.store.regions]
        rows = [
            (i, f"Region {name}", a, b) for i, (name, a, b) in enumerate(zip(names, *parts, strict=False))
        ]
        rows.append((-1, "Time in no region", left.outside_s / totals[0], right.outside_s / totals[1]))
        time, shorter = " of the processors' time", min(left.duration_s, right.duration_s) * left.processors
        for i, name, a, b in rows:
            sentence = f"{name} takes {_now(b, a, time)}."
            if a < _TRACE * b:
                sentence = f"{name} begins here: it takes {percent(b)}{time}."
            elif b < _TRACE * a:
                sentence = f"{name} ends here: it took {percent(a)}{time} before."
            region = names[i] if i >= 0 else ""
            seconds = abs(float(b - a)) * shorter
            yield Change("region", (i,), float(a), float(b), float(b - a), sentence, region, seconds)

    def _locations_changed(self, left: RangeStats, right: RangeStats) -> Iterator[Change]:
        processors = np.flatnonzero(left.is_processor)
        if not processors.size:
            return
        before, after = left.utilization, right.utilization
        # The median: with the mean, one that differs would make all others differ.
        usual = float(np.median(after[processors] - before[processors]))
        together = _now(float(after[processors].mean()), float(before[processors].mean()))
        for i in processors.tolist():
            a, b = float(before[i]), float(after[i])
            sentence = (
                f"{self.name(i)} computes {_now(b, a, ' of the time')}; all processors together {together}."
            )
            differs = b - a - usual
            seconds = abs(differs) * min(left.duration_s, right.duration_s)
            yield Change("location", (i,), a, b, differs, capital(sentence), seconds=seconds)

    def _messages_changed(self, run: RangeStats, left: RangeStats, right: RangeStats) -> Iterator[Change]:
        if run.messages is None or left.messages is None or right.messages is None:
            return
        before, after = left.messages, right.messages
        *rates, usual = (
            (float(m.count.sum() / stats.duration_s), float(m.bytes.sum() / stats.duration_s))
            for m, stats in ((before, left), (after, right), (run.messages, run))
        )
        of = 1 if max(rate for _, rate in rates) else 0
        if not (rates[0][of] or rates[1][of]):
            return
        # Compared with what the run sends at other times a few bytes are negligible, also after none.
        largest = max(rates[0][of], rates[1][of], usual[of])
        a, b = rates[0][of] / largest, rates[1][of] / largest
        was, now = (
            (f"{si(size, 3, max(size, 1.0))}B/s", f" ({trimmed(count, 3)} messages per second)")
            if count
            else ("nothing", "")
            for count, size in rates
        )
        verb = " are sent" if rates[1][0] else " is sent"
        yield Change(
            "messages", (), a, b, b - a, capital(f"{now[0]}{verb}{now[1]}, {was[0]} before{was[1]}.")
        )
        if not (rates[0][of] and rates[1][of]):
            return  # shares of nothing are undefined
        weight = min(rates[0][of], rates[1][of], usual[of]) / (usual[of] or 1.0)
        parts: dict[tuple[int, int], list[float]] = {}
        for side, m in enumerate((before, after)):
            sizes = m.bytes if of else m.count
            total = float(sizes.sum()) or np.nan
            for sender, receiver, value in zip(
                m.sender.tolist(), m.receiver.tolist(), sizes.tolist(), strict=True
            ):
                parts.setdefault((sender, receiver), [0.0, 0.0])[side] = value / total
        for (sender, receiver), (a, b) in parts.items():
            pair = f"from {self.name(sender)} to {self.name(receiver) if receiver >= 0 else 'somebody'}"
            unit = "bytes" if of else "messages"
            sentence = f"{_now(b, a, f' of all {unit} go {pair}')}."
            yield Change("pair", (sender, receiver), a, b, weight * (b - a), capital(sentence))

    def name(self, location: int) -> str:
        """The display name of a location: its rank and thread, or its name in the trace."""
        return location_name(self.store.locations[location])


@dataclass
class _MergedPath:
    """A path merged over locations: its ticks and calls, the least and largest ticks of `locations`."""

    parent: int
    region: int
    exclusive: int = 0
    came: int = 0
    within: int = 0
    low: int = 0
    high: int = 0
    locations: int = 0


class _MergedTree:
    """Call trees of several locations, merged by path; row 0 stands for no region."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, int], int] = {}  # by parent row (-1: folded) and region
        self._paths = [_MergedPath(-1, -1)]

    def add(self, tree: Ints, exclusive: Ints, came: Ints) -> None:
        """Add a location's tree (2, nodes), with exclusive ticks and calls of each node (nodes, 1)."""
        within = callpaths.inclusive(tree, exclusive)[:, 0].tolist()
        used = callpaths.inclusive(tree, np.maximum(exclusive, came))[:, 0]
        used[0] = 1
        row_of = np.zeros(tree.shape[1], np.int64)
        for node in np.flatnonzero(used).tolist():
            row, spent = 0, within[node]
            if node:
                parent = int(tree[0, node])
                key = (int(row_of[parent]) if parent >= 0 else -1, int(tree[1, node]))
                row = self._rows.setdefault(key, len(self._paths))
                if row == len(self._paths):
                    self._paths.append(_MergedPath(*key))
            row_of[node] = row
            path = self._paths[row]
            path.exclusive += int(exclusive[node, 0])
            path.came += int(came[node, 0])
            path.within += spent
            path.low = min(path.low, spent) if path.locations else spent
            path.high = max(path.high, spent)
            path.locations += 1

    def rows(self, store: TraceStore, classes: AnyArray, unit: float) -> list[CallRow]:
        """Rows in depth-first order. Folded rows are below the root."""
        regions = [path.region for path in self._paths]
        names = [NO_REGION if region < 0 else store.regions[region].name for region in regions]
        children: list[list[int]] = [[] for _ in names]
        for row in range(1, len(names)):
            children[max(self._paths[row].parent, 0)].append(row)
        rows: list[CallRow] = []
        waiting = [(0, -1, 0)]
        while waiting:
            row, parent, depth = waiting.pop()
            path, index = self._paths[row], len(rows)
            activity = None if path.region < 0 else Activity(int(classes[path.region]))
            inclusive, mean = path.within * unit, path.within * unit / max(1, path.locations)
            rows.append(
                CallRow(
                    index, parent, depth, path.region, names[row], activity, inclusive, path.exclusive * unit,
                    path.came, path.locations, path.low * unit, mean, path.high * unit,
                    folded=row > 0 and path.parent < 0,
                )
            )  # fmt: skip
            below = sorted(children[row], key=lambda c: (self._paths[c].within, -c))
            waiting += [(child, index, depth + 1) for child in below]
        return rows


class _Scatter(NamedTuple):
    """Standard errors of the means of a range, by region (the last: none) and by location, in shares as in
    `Change`; that of what is sent per second, relative to it; and the number of messages sent."""

    regions: Floats
    locations: Floats
    rate: float
    messages: int


def _error(rows: Sequence[Floats] | Sequence[tuple[int, int]]) -> Floats:
    """(columns,) standard errors of the means of (parts, columns); empty without parts."""
    if not rows:
        return np.zeros(0)
    error: Floats = np.nan_to_num(np.std(rows, axis=0, ddof=1) / len(rows) ** 0.5)
    return error


def _relative(rates: Sequence[tuple[int, int]]) -> float:
    """The relative standard error of what is sent, in bytes or else messages."""
    if not rates:
        return 0.0
    mean = np.mean(rates, axis=0)
    of = 0 if mean[0] else 1
    return float(_error(rates)[of] / mean[of]) if mean[of] else 0.0


def _noise(change: Change, left: _Scatter | None, right: _Scatter | None) -> float:
    """The standard error of a difference."""
    sides = [(one, part) for one, part in ((left, change.left), (right, change.right)) if one is not None]
    if change.kind == "region":
        both = [one.regions[change.index[0]] for one, _ in sides]
    elif change.kind == "location":
        both = [one.locations[change.index[0]] for one, _ in sides]
    elif change.kind == "messages":
        if 4 * min(change.left, change.right) < max(change.left, change.right):
            return 0.0  # even if messages are few
        both = [one.rate * part for one, part in sides]
    else:  # a share of so many messages
        # Counts of a damaged file may be of any sign.
        both = [
            (max(part * (1 - part), 0.0) / one.messages) ** 0.5 for one, part in sides if one.messages > 0
        ]
    return math.hypot(*both)


def _now(after: float, before: float, of: str = "") -> str:
    """A share and what it was before, with a decimal if only that shows the difference.

    >>> _now(0.12, 0.85, " of the time"), _now(0.999, 0.996), _now(0.9999, 1.0, " of the time")
    ('12 % of the time, 85 % before', '99.9 %, 99.6 % before', '100 % of the time as before')
    """
    for places in (0, 1):
        now, was = percent(after, places), percent(before, places)
        if now != was:
            return f"{now}{of}, {was} before"
    return f"{percent(after)}{of} as before"


class _Talk:
    """Messages by location and by pair, for several ranges at once."""

    def __init__(self, locations: int, ranges: int) -> None:
        self._totals = np.zeros((4, ranges, locations), np.int64)
        self._pairs: list[list[tuple[Ints, Ints, Ints, Ints]]] = [[] for _ in range(ranges)]

    def add(self, location: int, peers: Ints, counts: Ints) -> None:
        """`counts` (4, ranges, peers) as from `Profile.traffic`."""
        self._totals[:, :, location] = counts.sum(axis=2)
        for pairs, sent, size in zip(self._pairs, counts[0], counts[1], strict=True):
            which = np.flatnonzero(sent)
            pairs.append((np.full(which.size, location), peers[which], sent[which], size[which]))

    def messages(self, j: int) -> Messages:
        sent, bytes_sent, received, bytes_received = (column.copy() for column in self._totals[:, j])
        empty = (np.zeros(0, np.int64),) * 4
        sender, receiver, count, size = (
            np.concatenate(column) for column in zip(empty, *self._pairs[j], strict=True)
        )
        return Messages(sent, received, bytes_sent, bytes_received, sender, receiver, count, size)

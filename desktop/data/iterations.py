"""The iterations of a run, found from its events and its curve, and what is odd about some of them.

Only some locations are read, as a loop is counted only if they go through it together; for the others the
import's own notes are enough to tell on which ranks an odd iteration was longer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from desktop.core import iterations as core
from desktop.core.arrays import Flags, Floats, Ints
from desktop.core.curve import StepCurve
from desktop.core.firmness import in_the_run, over_iterations
from desktop.core.phase_stats import Firm
from desktop.core.phases import PhaseFit, fit, sweep
from desktop.core.selection import suggest
from desktop.core.units import brief
from desktop.data.events import RECEIVES, SENDS, Activity, EventKind
from desktop.data.statistics import RangeStats, Statistics
from desktop.data.store import TraceStore
from desktop.data.utilization import Utilization, region_classes
from desktop.progress import Progress

#: Most locations inspected, and most rows read of all of them (but one is always read).
_LOOKED, _ROWS = 8, 1 << 24
#: Most events compared, over all locations; the most frequent kinds are left out first.
_SYMBOLS = 1 << 20
#: Regions whose events are all compared, even if these are up to four times as many.
_AT_LEAST = 4
#: Most phases suggested inside of an iteration.
PHASES = 6
#: Most odd iterations of a loop that are reported.
ODD = 10
#: Words in names that mark iterations.
_NAMES = re.compile(
    r"(?<![a-z])(iteration|iter|time_?step|step|epoch|cycle|timestep|profilerstep)s?(?![a-z])", re.IGNORECASE
)
_NUMBER = re.compile(r"\d+")

By = Literal["events", "curve", "both"]


@dataclass(frozen=True)
class Odd:
    """An iteration that lasted longer than its neighbours. `index` counts from 0; `ranks`: those that
    computed longer than in a usual one, empty if it is not computing that took longer; `region`: where most
    of the time went, "" if the trace does not tell."""

    index: int
    start_s: float
    end_s: float
    excess_s: float
    ranks: tuple[int, ...]
    region: str


@dataclass(frozen=True, eq=False)
class Level:
    """A loop. `by`: the evidence for it; `region`: the begin of its iterations; `fold`: one that stands for
    all; `odd`: by excess, longest first, out of `odd_count`."""

    loop: core.Repeat
    by: By
    region: str
    fold: core.Fold
    odd: tuple[Odd, ...]
    odd_count: int

    @property
    def sentence(self) -> str:
        loop, drift = self.loop, self.loop.drift
        first, last = (brief(at) for at in loop.bounds[[0, -1]].tolist())
        words = f"{loop.count} iterations of {brief(loop.period)} from {first} to {last}"
        if self.region:
            words += f", each begins with {self.region}"
        if abs(drift) >= 0.05:
            than = "longer" if drift > 0 else "shorter"
            words += f"; the last ones are {100 * abs(drift):.0f} % {than} than the first ones"
        if self.odd:
            worst = self.odd[0]
            words += (
                f"; {self.odd_count} {'is' if self.odd_count == 1 else 'are'} odd, most of all number "
                f"{worst.index + 1}, {brief(worst.excess_s)} longer than its neighbours"
            )
        return words + "."


@dataclass(frozen=True, eq=False)
class Iterations:
    """`levels`: the loops of a run, outermost first; `reason`: why these, or why none."""

    levels: tuple[Level, ...]
    reason: str

    @property
    def found(self) -> bool:
        return bool(self.levels)

    def called(self, names: Mapping[str, str]) -> Iterations:
        """The same with other names of regions."""

        def named(level: Level) -> Level:
            odd = tuple(replace(one, region=names.get(one.region, one.region)) for one in level.odd)
            return replace(level, region=names.get(level.region, level.region), odd=odd)

        return replace(self, levels=tuple(map(named, self.levels)))


def find(
    store: TraceStore,
    use: Utilization,
    progress: Progress | None = None,
    curve: StepCurve | None = None,
    *,
    explained: bool = True,
) -> Iterations:
    """The iterations of a run, or of the part of it given by `curve`. `explained`: with the ranks and regions
    that made iterations longer, which needs their statistics.

    Raises
    ------
    CurveError : there is no curve.
    """
    progress = progress or Progress()
    curve = curve or use.curve()
    end = curve.start + curve.duration
    places = _looked_at(store)
    symbols = _Symbols(store, use, _SYMBOLS // max(len(places), 1))
    by_location: list[list[core.Repeat]] = []
    sequences = []
    left = _ROWS
    for number, place in enumerate(places):
        progress.step(number, len(places) + 1, "iterations")
        rows = store.rows("events", place)
        if number and rows > left:
            break
        left -= rows
        symbol, time = symbols.of(place)
        inside = slice(*np.searchsorted(time, (curve.start, end)))
        sequences.append((symbol[inside], time[inside]))
        by_location.append(core.in_events(*sequences[-1], curve.start, end, symbols.preferred()))
    verdict = core.judge(by_location, curve)
    if not verdict.loops:
        return Iterations((), _why_none(len(by_location), verdict))
    statistics = Statistics(store)
    levels: list[Level] = []
    for loop, place, by in verdict.loops:
        structural = core.interrupted(loop, levels[-1].loop) if levels else None
        strange = core.odd(loop, structural)
        if explained and sequences:
            odd = _odd(statistics, store, use, loop, strange[:ODD], progress)
        else:
            bounds = loop.bounds.tolist()
            odd = [Odd(i, bounds[i], bounds[i + 1], excess, (), "") for i, excess in strange[:ODD]]
        region = symbols.begins_with(loop, *sequences[place]) if sequences else ""
        plain = loop if structural is None else replace(loop, usual=loop.usual & ~structural)
        levels.append(Level(loop, by, region, core.fold(curve, plain), tuple(odd), len(strange)))
    return Iterations(tuple(levels), _why(len(by_location), verdict.loops[0]))


def model_inside(model: str) -> str:
    """The model of phases inside of an iteration, where that of the run is `model`: the parameters of a
    budget are those of the run."""
    return "mixed" if model == "budget" else model


def phases_in(
    level: Level, curve: StepCurve, n: int | None, model: str
) -> tuple[PhaseFit, tuple[Firm | None, ...]]:
    """Phases inside of the iteration that stands for all, and the firmness of their breakpoints over the
    iterations of the run's `curve`; n None: the suggested number, of a few."""
    folded = level.fold.curve(curve.capacity)
    if n is None:
        few = sweep(folded, model, PHASES)
        phases = few.fit(suggest(few).n)
    else:
        phases = fit(folded, n, model)
    return phases, over_iterations(curve, level.loop, phases.breaks, phases.degree.tolist())


def firm_breakpoints(
    iterations: Iterations | None, curve: StepCurve, fit: PhaseFit
) -> tuple[Firm | None, ...]:
    """Firmness over the iterations of those inner breakpoints of a run that occur in its iterations."""
    firm: list[Firm | None] = [None] * (fit.n - 1)
    for level in () if iterations is None else iterations.levels:
        over_run = in_the_run(curve, level.loop, fit)
        firm = [known or one for known, one in zip(firm, over_run, strict=True)]
    return tuple(firm)


def _why(looked: int, first: core.Loop) -> str:
    loop = first.repeat
    if not looked:
        return (
            f"The curve repeats itself: each period is like the next one (correlation {loop.likeness:.2f})."
        )
    sentence = "The one location that was looked at repeats the same events"
    if looked > 1:
        same = round(loop.agree * looked)
        sentence = f"{same} of {looked} locations looked at repeat the same events at the same times"
    agreement = "the curve shows it too" if first.by == "both" else "the curve does not show it"
    return f"{sentence}; {agreement} (correlation of neighbours {loop.likeness:.2f})."


def _why_none(looked: int, verdict: core.Verdict) -> str:
    if not looked:
        return "There are no events, and the curve does not repeat itself clearly enough."
    if verdict.doubted:
        return "Events repeat themselves, but in too different times, and the curve does not show it: unsure."
    if verdict.single:
        return "Single locations repeat events, but most of the others do not at the same times."
    return "No sequence of events comes back often and evenly enough."


def _looked_at(store: TraceStore) -> list[int]:
    """Locations evenly spread over the processors with events: one per rank if there are several ranks."""
    active = [i for i, at in enumerate(store.locations) if at.kind == "cpu" and store.rows("events", i)]
    first: dict[int, int] = {}
    for i in active:
        first.setdefault(store.locations[i].rank, i)
    if len(first) > 1:
        active = list(first.values())
    if len(active) <= _LOOKED:
        return active
    return [active[i] for i in np.linspace(0, len(active) - 1, _LOOKED).astype(int)]


class _Symbols:
    """Events of locations as numbers: regions entered, messages by partner, collectives, marks."""

    def __init__(self, store: TraceStore, use: Utilization, most: int) -> None:
        self._store, self._use, self._most = store, use, most
        self._names: list[str] = []
        self._number: dict[object, int] = {}
        stems: dict[str, int] = {}
        for region in store.regions:
            stem = _NUMBER.sub("#", region.name)
            stems[stem] = stems.get(stem, 0) + 1
        self._of_region = np.array(
            [
                self._know(stem if stems[stem] >= core.LEAST else region.name)
                for region in store.regions
                for stem in (_NUMBER.sub("#", region.name),)
            ],
            np.int64,
        )
        self._regions = len(self._names)
        self._of_text = np.array([self._know(_NUMBER.sub("#", text)) for text in store.texts], np.int64)

    def _know(self, name: str) -> int:
        if name not in self._number:
            self._number[name] = len(self._names)
            self._names.append(name)
        return self._number[name]

    def begins_with(self, loop: core.Repeat, symbol: Ints, time: Floats) -> str:
        """What the iterations begin with: for a message the region around it."""
        if loop.symbol < self._regions:
            return self._names[loop.symbol]
        rows = np.flatnonzero((symbol == loop.symbol) & (time <= loop.bounds[loop.count // 2]))
        before = symbol[: rows[-1]] if rows.size else symbol[:0]
        regions = before[before < self._regions]
        return self._names[regions[-1]] if regions.size else self._names[loop.symbol]

    def preferred(self) -> Flags:
        return np.array([bool(_NAMES.search(name)) for name in self._names])

    def of(self, location: int) -> tuple[Ints, Floats]:
        """Events of a location (n,) and their times (s)."""
        store = self._store
        parts = [self._entered(location)]
        if store.rows("messages", location) <= self._most:
            parts += [self._messages(location), self._collectives(location), self._marks(location)]
        symbol = np.concatenate([part[0] for part in parts])
        time = np.concatenate([part[1] for part in parts])
        order = np.argsort(time, kind="stable")
        ticks = (
            self._use.rules.clock(store, location).common(np.ascontiguousarray(time[order])) - self._use.start
        )
        return symbol[order], np.asarray(ticks * self._use.unit, np.float64)

    def _entered(self, location: int) -> tuple[Ints, Ints]:
        """Regions entered, without those entered so often that there would be too many."""
        store = self._store
        counts = np.zeros(len(self._names), np.int64)
        region, count = store.column("calls", "region", location), store.column("calls", "count", location)
        np.add.at(counts, self._of_region[region], count)
        order = np.argsort(counts, kind="stable")
        rare = np.zeros(counts.size, bool)
        order = order[counts[order] > 0]
        sums = np.cumsum(counts[order])
        few = (np.arange(order.size) < _AT_LEAST) & (sums <= 4 * _SYMBOLS)
        rare[order[(sums <= self._most) | few]] = True
        keep = rare[self._of_region]
        symbols, times = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for time, kind, region in store.blocks("events", location, "time", "kind", "region", rows=1 << 18):
            rows = np.flatnonzero((kind == EventKind.ENTER) & keep[region])
            symbols.append(self._of_region[region[rows]])
            times.append(time[rows])
        return np.concatenate(symbols), np.concatenate(times)

    def _messages(self, location: int) -> tuple[Ints, Ints]:
        """Sends and receives, by the difference between the partner's number and the location's."""
        time, kind, peer = (self._store.column("messages", n, location) for n in ("time", "kind", "peer"))
        sends = np.isin(kind, SENDS)
        rows = np.flatnonzero(sends | np.isin(kind, RECEIVES))
        key = (peer[rows].astype(np.int64) - location) * 2 + sends[rows]
        keys, which = np.unique(key, return_inverse=True)
        names = [
            self._know(f"a message {'to' if one % 2 else 'from'} the location {one // 2:+d}")
            for one in keys.tolist()
        ]
        return np.array(names, np.int64)[which], time[rows]

    def _collectives(self, location: int) -> tuple[Ints, Ints]:
        begin, operation = (self._store.column("collectives", n, location) for n in ("begin", "operation"))
        return self._of_text[operation], begin

    def _marks(self, location: int) -> tuple[Ints, Ints]:
        time, text = (self._store.column("marks", n, location) for n in ("time", "text"))
        return self._of_text[text], time


def _odd(
    statistics: Statistics,
    store: TraceStore,
    use: Utilization,
    loop: core.Repeat,
    strange: Sequence[tuple[int, float]],
    progress: Progress,
) -> list[Odd]:
    """Ranks and region that made iterations longer, each compared with the nearest usual one. `strange`:
    indices and excess times of these iterations."""
    ranges = []
    for index, _ in strange:
        others = [i for i in range(max(index - 3, 0), min(index + 4, loop.count)) if i != index]
        other = min(others, key=lambda i: (abs(loop.durations[i] - loop.period), abs(i - index)))
        ranges += [(float(loop.bounds[i]), float(loop.bounds[i + 1])) for i in (other, index)]
    stats = statistics.ranges(ranges, use, progress)  # all at once, as each location is then read once
    odd_ones = []
    for k, (index, excess) in enumerate(strange):
        usual, odd = stats[2 * k : 2 * k + 2]
        more = odd.useful_s - usual.useful_s
        most = float(more.max(initial=0.0))
        longer = np.flatnonzero(more >= 0.5 * most) if most >= 0.5 * excess else np.empty(0, np.int64)
        ranks = tuple(sorted({store.locations[i].rank for i in longer.tolist()}))
        region = _region(store, use, usual, odd, bool(ranks))
        odd_ones.append(Odd(index, *ranges[2 * k + 1], excess, ranks, region))
    return odd_ones


def _region(
    store: TraceStore, use: Utilization, usual: RangeStats, strange: RangeStats, computing: bool
) -> str:
    """The region in which more time was spent; among computing ones if `computing` made it longer."""
    more = strange.exclusive_s - usual.exclusive_s
    outside = strange.outside_s - usual.outside_s
    if computing:
        classes = region_classes(store, use.rules)
        more = np.where(np.isin(classes, [Activity.COMPUTING]), more, -np.inf)
    at = int(np.argmax(more)) if more.size else -1
    if at < 0 or more[at] <= max(outside if computing else 0.0, 0.0):
        return ""
    return store.regions[at].name

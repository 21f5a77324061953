"""Whether the clocks of the processes contradict each other, and whether that can be repaired.

Two facts hold in any run, whatever the clocks show. No message is received before its sending has begun; no
process leaves a collective operation before those it must wait for have entered it
(`desktop.data.collectives`). Each bounds the corrections of two clocks (`desktop.core.clock_repair`). A
correction is a constant shift for each process, the smallest that satisfies all bounds; if there is none, or
the clocks contradict each other at one end of the run only, as drifting clocks do, a shift and a rate
(`desktop.core.clock_rates`).

A correction found from half of the checks must also hold for the other half. Readings that scatter contradict
each other at random, and a correction from some of them does not repair the others; times then stay as they
are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from desktop.core import machine
from desktop.core.arrays import Flags, Floats, Ints
from desktop.core.clock_kernels import corrected, late_messages
from desktop.core.clock_rates import MOST, SURE, LineBounds, Lines
from desktop.core.clock_repair import Bounds, Held, late_sources
from desktop.data.collectives import NEVER, depends, holds
from desktop.data.events import EventSource
from desktop.data.matching import (
    Instances,
    Matches,
    match_collectives,
    match_in_passing,
    match_messages,
    process_of,
)
from desktop.progress import Progress

#: Shifts up to this (seconds) are not applied if too few checks distinguish them from scatter.
SCATTER_S = 1e-5
#: Contradictions in half of the checks that are enough to exclude scatter.
TELLING = 4
#: Lines are preferred if they move the clocks by at most this share of what shifts do. Where bounds come from
#: all of the run, lines have no advantage; where they come from one end of it, they move half as much.
LESS = 0.8

Repair = Literal["none", "shift", "linear", "impossible"]


class Wrong(NamedTuple):
    """Checks that contradict the clocks: number of collectives and messages, by how many ticks at most, and
    by how many in total."""

    collectives: int = 0
    messages: int = 0
    most: int = 0
    total: int = 0

    @property
    def checks(self) -> int:
        return self.collectives + self.messages


@dataclass(frozen=True)
class ClockResult:
    """The result of the clock check.

    `collectives`, `messages`: number of instances compared (messages that are not `certain` do not count).
    `unmatched`: sends and receives without a partner in the trace. `unequal`: messages whose two ends give
    different numbers of bytes. `disagreeing`: operations whose members name different roots. `before`,
    `after`: checks that contradict the clocks as recorded and after the correction. `repair`: ``"none"``
    needed, or the contradictions are so few and small that they may be scatter; ``"shift"`` of each process
    by a constant; ``"linear"``, by a constant and a rate; ``"impossible"``: neither repairs them. `shift`,
    `drift`, `origin`: (p,) of each location, see `desktop.core.clock_line.Clock`. `off`: (p,) ticks, possible
    error of the corrected clock relative to that of the first location, if all clocks are wrong by shifts and
    rates; infinite if nothing relates it to the first, or unknown. `low`, `high`: (p,) ticks, range of
    possible constant shifts relative to the first location; `off_if_steady` follows from it.
    """

    collectives: int
    messages: int
    unmatched: tuple[int, int]
    unequal: int
    disagreeing: int
    before: Wrong
    after: Wrong
    repair: Repair
    shift: Ints
    drift: Floats
    origin: Ints
    off: Floats
    low: Floats
    high: Floats

    @property
    def checked(self) -> bool:
        return self.collectives + self.messages > 0

    @property
    def off_if_steady(self) -> Floats:
        """(p,) ticks, `off` if all clocks are wrong by constant shifts only."""
        return np.maximum(self.high - self.shift, self.shift - self.low)


def check_clocks(
    source: EventSource, progress: Progress | None = None, matched: Callable[[Matches], None] | None = None
) -> ClockResult:
    """Compare the clocks of all processes, and find the correction that reconciles them.

    Threads of one process share its clock. Memory: about `ROWS` rows, the channels of one location, and the
    bounds. `matched` is called with every matched message, once. One pass over the matched records; three to
    seven if clocks contradict.
    """
    return _Check(source, progress or Progress()).result(matched)


@dataclass
class _Correction:
    """A correction of each process (n,), and how it was found."""

    repair: Repair
    shift: Ints
    drift: Floats
    off: Floats


@dataclass
class _Pass:
    """Sums of one pass over all checks: of all of them, and of those with an odd number."""

    instances: int = 0
    messages: int = 0
    wrong: Wrong = field(default_factory=Wrong)
    odd: Wrong = field(default_factory=Wrong)


class _Check:
    def __init__(self, source: EventSource, progress: Progress) -> None:
        self._source, self._progress = source, progress
        self._process = process_of(source)
        self._n = int(self._process.max()) + 1 if self._process.size else 0
        #: whether any operation constrains the clocks
        self._bounding = any((one := depends(text)) and one.sources != NEVER for text in source.texts)
        self._reordered = source.notes.get("reordered")
        self._origin, self._span = self._times()
        self._tally = np.zeros(3, np.int64)
        self._disagreeing = 0

    def _times(self) -> tuple[Ints, int]:
        """The first tick of each process, and the longest duration of one."""
        first, last = np.full(self._n, np.iinfo(np.int64).max), np.full(self._n, np.iinfo(np.int64).min)
        for at, process in zip(self._source.locations, self._process.tolist(), strict=True):
            if at.first is not None and at.last is not None:
                first[process], last[process] = min(first[process], at.first), max(last[process], at.last)
        present = last >= first
        return np.where(present, first, 0), int((last - first)[present].max(initial=0))

    def _none(self) -> _Correction:
        none = np.zeros(self._n, np.int64)
        return _Correction("none", none, np.zeros(self._n), np.full(self._n, np.inf))

    def _collectives(self, first: bool) -> Iterator[Held]:
        if not self._bounding:
            return
        for instances in match_collectives(self._source, depends, progress=self._progress):
            self._progress.step(0, 0, "comparing clocks")
            held, pattern = holds(instances, self._source.texts, self._process, self._reordered)
            if first:
                self._disagreeing += _roots_differ(instances, pattern)
            useful = (
                np.logical_or.reduceat(held.source, held.start[:-1]) if held.ordered.size else held.ordered
            )
            useful &= np.logical_or.reduceat(held.target, held.start[:-1]) if held.ordered.size else useful
            yield held.only(useful)

    def _messages(self, first: bool) -> Iterator[Matches]:
        if first:
            messages = match_in_passing(self._source, progress=self._progress, tally=self._tally)
        else:
            messages = match_messages(self._source, progress=self._progress)
        for matches in messages:
            self._progress.step(0, 0, "comparing clocks")
            yield matches

    def _go(
        self,
        correction: _Correction,
        bounds: Bounds | None = None,
        lines: tuple[LineBounds, ...] = (),
        *,
        half: bool = False,
        matched: Callable[[Matches], None] | None = None,
        first: bool = False,
    ) -> _Pass:
        """One pass: count what contradicts the clocks after a correction, and collect bounds, as recorded, of
        all checks or of those with an even number (`half`). `lines`: of the even ones, and of the others. The
        `first` pass numbers messages differently from all others."""
        counted = _Pass()
        c, process = correction, self._process
        clocks = c.shift, c.drift, self._origin
        for held in self._collectives(first):
            begin, end = (corrected(x, held.process, *clocks) for x in (held.begin, held.end))
            late = np.empty(held.ordered.size, np.int64)
            late_sources(held._replace(begin=begin, end=end), late)
            even = (counted.instances + np.arange(late.size)) % 2 == 0
            counted.instances += late.size
            counted.wrong = _plus(counted.wrong, *_lateness(late))
            counted.odd = _plus(counted.odd, *_lateness(late[~even]))
            if bounds is not None:
                bounds.add_collectives(held.only(even) if half else held)
            for part, mask in zip(lines, (even, ~even), strict=False):
                part.add_collectives(held.only(mask))
        wrong, odd = np.zeros((2, 3), np.int64)
        for m in self._messages(first):
            both = m.sender, m.receiver, m.sent, m.received, m.certain
            late_messages(*both, process, *clocks, counted.messages, wrong, odd)
            if bounds is not None or lines:
                ends = process[m.sender], process[m.receiver], m.sent, m.received
                sure = m.certain > 0
            if half or lines:
                even = (counted.messages + np.arange(m.sent.size)) % 2 == 0
            counted.messages += m.sent.size
            if bounds is not None:
                bounds.add_messages(*_only(sure & even if half else sure, *ends[:2], m.received - m.sent))
            if lines:
                for part, mask in zip(lines, (sure & even, sure & ~even), strict=True):
                    part.add_messages(*_only(mask, *ends))
            if matched is not None:
                matched(m)
        counted.wrong = _plus(counted.wrong, 0, *wrong.tolist())
        counted.odd = _plus(counted.odd, 0, *odd.tolist())
        return counted

    def result(self, matched: Callable[[Matches], None] | None) -> ClockResult:
        none = self._none()
        bounds = Bounds(self._n)
        as_recorded = self._go(none, bounds, matched=matched, first=True)
        low, high = np.full(self._n, -np.inf), np.full(self._n, np.inf)
        solution = bounds.solve()
        correction, after = none, as_recorded
        if solution is not None:
            low, high = solution.low, solution.high
        if as_recorded.wrong.checks:
            parts = self._parts() if 1 < self._n <= MOST else ()
            as_recorded = self._go(none, lines=parts)
            least = SCATTER_S * self._source.ticks_per_second
            few = as_recorded.odd.checks < TELLING
            if solution is not None:
                by = solution.middle if solution.middle_is_safe else solution.least
                by = by - by[0]
                off = np.maximum(high - by, by - low)
                shifted = _Correction("shift", by, np.zeros(self._n), off)
                if solution.forced > least or (not few and self._shift_holds(as_recorded)):
                    most = LESS * float(solution.least.std())
                    drifts = not few and len(parts) == 2 and parts[0].moved(parts[1]) <= most
                    lines = self._lines(as_recorded, parts) if drifts else None
                    correction, after = lines or (shifted, self._shifted(shifted))
            if correction is none and (as_recorded.wrong.most > least or not few):
                correction, after = self._lines(as_recorded, parts) or (correction, after)
            if correction is none and solution is None:
                correction.repair = "impossible"
        place = self._process
        sends, receives, unequal = self._tally.tolist()
        return ClockResult(
            collectives=as_recorded.instances,
            messages=as_recorded.messages,
            unmatched=(sends - as_recorded.messages, receives - as_recorded.messages),
            unequal=unequal,
            disagreeing=self._disagreeing,
            before=as_recorded.wrong,
            after=after.wrong,
            repair=correction.repair,
            shift=correction.shift[place],
            drift=correction.drift[place],
            origin=self._origin[place],
            off=correction.off[place],
            low=low[place],
            high=high[place],
        )

    def _shift_holds(self, as_recorded: _Pass) -> bool:
        """Whether the shifts from half of the checks leave less than half of the contradicting ticks in the
        other half."""
        bounds = Bounds(self._n)
        self._go(self._none(), bounds, half=True)
        solution = bounds.solve()
        if solution is None:
            return False
        correction = _Correction("shift", solution.least, np.zeros(self._n), np.zeros(0))
        return 2 * self._go(correction).odd.total < as_recorded.odd.total

    def _shifted(self, correction: _Correction) -> _Pass:
        """The result of shifts; they may be off as far as any line that does as well. Finding that takes
        linear programs, which are slow to load; if times stay as recorded it is only done on request."""
        if self._n > SURE or not self._source.repair:
            correction.off[1:] = np.inf
            return self._go(correction)
        even, odd = parts = self._parts()
        for part in parts:
            part.again(correction.shift, correction.drift)
        after = self._go(correction, lines=parts)
        start = correction.shift.astype(np.float64)
        correction.off = np.maximum(correction.off, even.off(Lines(start, start), odd))
        return after

    def _parts(self) -> tuple[LineBounds, LineBounds]:
        return LineBounds(self._origin, self._span), LineBounds(self._origin, self._span)

    def _lines(self, as_recorded: _Pass, parts: tuple[LineBounds, ...]) -> tuple[_Correction, _Pass] | None:
        """Lines that leave no contradiction, if those from half of the checks leave few in the other half."""
        if not parts:
            return None
        even, odd = parts
        fitted = self._line(even)
        if fitted is None or 2 * self._go(fitted[0]).odd.total >= as_recorded.odd.total:
            return None
        for _ in range(4):
            corrected = self._line(even, odd)
            if corrected is None:
                return None
            for part in (even, odd):
                part.again(corrected[0].shift, corrected[0].drift)
            after = self._go(corrected[0], lines=(even, odd))
            if not after.wrong.checks:
                corrected[0].off = even.off(corrected[1], odd)
                return corrected[0], after
        return None

    def _line(self, *bounds: LineBounds) -> tuple[_Correction, Lines] | None:
        lines = bounds[0].solve(*bounds[1:])
        if lines is None:
            return None
        shift = np.rint(lines.start - lines.start[0]).astype(np.int64)
        rate = (lines.end - lines.start) / bounds[0].span
        return _Correction("linear", shift, rate, np.full(self._n, np.inf)), lines


def _roots_differ(instances: Instances, pattern: Ints) -> int:
    """Number of operations with a root whose members do not all name the same one."""
    if not pattern.size:
        return 0
    starts, last = instances.start[:-1], np.iinfo(np.int64).max
    most = np.maximum.reduceat(instances.root, starts)
    least = np.minimum.reduceat(np.where(instances.root < 0, last, instances.root), starts)
    rooted = np.isin(pattern, (machine.ONE_TO_ALL, machine.ALL_TO_ONE))
    return int(np.count_nonzero(rooted & (most >= 0) & (least != most)))


def _only(keep: Flags, *columns: Ints) -> tuple[Ints, ...]:
    """The rows (n,) to keep."""
    return columns if keep.all() else tuple(column[keep] for column in columns)


def _lateness(late: Ints) -> tuple[int, int, int, int]:
    """Late collectives among (n,): how many; no messages; by how many ticks at most, and in total."""
    return int(np.count_nonzero(late > 0)), 0, int(late.max(initial=0)), int(np.maximum(late, 0).sum())


def _plus(wrong: Wrong, collectives: int, messages: int, most: int, total: int) -> Wrong:
    return Wrong(
        wrong.collectives + collectives, wrong.messages + messages, max(wrong.most, most), wrong.total + total
    )

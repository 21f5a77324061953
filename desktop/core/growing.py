"""Activities of the processors of a running program: exact sums in equal bins, which become wider as the run
grows, so that memory and the work for a picture are bounded."""

from __future__ import annotations

import math

import numpy as np

from desktop.core.arrays import Floats, Ints
from desktop.core.curve import StepCurve
from desktop.core.jit import kernel

#: Number of stored activities (`desktop.data.events.Activity` without computing, which is the rest).
NOTED = 4
#: Initial and smallest number of bins; number of cells beyond which each processor has fewer bins.
_BINS, _FEWEST_BINS, _CELLS = 1 << 14, 1 << 9, 1 << 21
#: Initial width of a bin in nanoseconds.
_WIDTH = 1 << 12


#: Ends of an axis that grows in steps, times a power of ten.
_STEPS = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 15.0)


def ahead(end: float) -> float:
    """The end of an axis that shows a run up to `end` (positive): beyond it, and one of few values, so that
    most of a picture need not move while the run grows."""
    power = 10.0 ** math.floor(math.log10(end))
    return next(step * power for step in _STEPS if step * power > end)


class GrowingActivities:
    """Nanoseconds of each processor in each activity, by bin.

    `width` : of a bin (ns). `until` (processors,) : time up to which activities are known (ns); `begin` and
    `ended` (processors,): time of its begin (ns), and whether it has ended.
    """

    def __init__(self) -> None:
        self.width = _WIDTH
        self._spent = np.zeros((0, _BINS, NOTED), np.int64)
        # Processors in each activity up to bin `_summed`, of which the first `_returned` were returned in
        # curves; sums of each processor by columns of `_each` bins, up to bin `_joined`.
        self._levels, self._edges = np.zeros((NOTED + 1, 0)), np.zeros(0)
        self._summed = self._returned = 0
        self._columns, self._each, self._joined = np.zeros((0, 0), np.int64), 0, 0
        self.begin = np.zeros(0, np.int64)
        self.until = np.zeros(0, np.int64)
        self.ended = np.zeros(0, np.bool_)

    @property
    def processors(self) -> int:
        return self.begin.size

    @property
    def bins(self) -> int:
        return self._spent.shape[1]

    def add_processor(self, start: int) -> int:
        """Add a processor that begins at this time (ns, not negative); returns its number."""
        while (self.processors + 1) * self.bins > _CELLS and self.bins > _FEWEST_BINS:
            self._widen(2)
            self._spent = np.ascontiguousarray(self._spent[:, : self.bins // 2])
        if self.processors == self._spent.shape[0]:  # double the room, so that rows are rarely moved
            more = np.zeros((max(4, self.processors), self.bins, NOTED), np.int64)
            self._spent = np.concatenate([self._spent, more])
        self.begin = np.append(self.begin, start)
        self.until = np.append(self.until, start)
        self.ended = np.append(self.ended, False)
        self._reach(start)
        self._summed = min(self._summed, start // self.width)
        return self.processors - 1

    def add(self, processor: int, begin: Ints, end: Ints, activity: Ints, until: int) -> None:
        """Add stretches (n,) of a processor (ns) with their activities (numbers, none of them computing); it
        computes otherwise, until `until` (ns)."""
        until = max(until, int(self.until[processor]))
        self._reach(until)
        first = _spread(self._spent[processor], begin, end, activity, self.width)
        self._summed, self._joined = min(self._summed, first), min(self._joined, first)
        self.until[processor] = until

    def _reach(self, until: int) -> None:
        """Widen bins so that they reach a time (ns)."""
        if until > self.width * self.bins:
            self._widen(1 << (-(-until // (self.width * self.bins)) - 1).bit_length())

    def _widen(self, times: int) -> None:
        """Make bins `times` as wide (a power of two)."""
        joined = min(times, self.bins)
        parts = self._spent.reshape(-1, self.bins // joined, joined, NOTED).sum(axis=2)
        self._spent[:, : self.bins // joined] = parts
        self._spent[:, self.bins // joined :] = 0
        self.width *= times
        self._summed = self._joined = 0
        self._levels = np.zeros((NOTED + 1, 0))  # with other edges

    @property
    def common(self) -> int:
        """Time up to which the activities of all processors that have not ended are known (ns); 0 without
        processors."""
        going = self.until[~self.ended]
        return int(going.min() if going.size else self.until.max(initial=0))

    def levels(self) -> tuple[Floats, Floats]:
        """(activities, bins) processors in each activity, computing first, in each whole bin until `common`,
        and (bins + 1,) its edges in ns. Both are read-only and final."""
        count = self.common // self.width
        first = min(self._summed, count)
        if self._levels.shape[1] != self.bins or first < self._returned:
            summed = self._levels[:, :first]
            self._levels, self._edges = (
                np.empty((NOTED + 1, self.bins)),
                np.arange(self.bins + 1.0) * self.width,
            )
            self._levels[:, :first] = summed
        new = slice(first, count)
        spent = self._spent[: self.processors, new].sum(axis=0).T / self.width
        self._levels[0, new] = np.maximum(
            self._present(self._edges[first : count + 1]) - spent.sum(axis=0), 0.0
        )
        self._levels[1:, new] = spent
        self._summed = self._returned = count
        levels, edges = self._levels[:, :count], self._edges[: count + 1]
        levels.flags.writeable = edges.flags.writeable = False
        return levels, edges

    def _present(self, edges: Floats) -> Floats:
        """(bins,) mean number of processors in each bin that have begun and not ended."""
        present = np.full(edges.size - 1, float(self.processors))
        # All are there between the last begin and the first end.
        first = int(np.searchsorted(edges, self.begin.max(initial=0)))
        last = int(np.searchsorted(edges, self.until.min(), "right")) - 1 if self.processors else 0
        for start, stop in ((0, min(first, present.size)), (max(last, 0), present.size)):
            if start < stop:
                inside = (
                    np.diff(np.clip(edges[start : stop + 1], begin, until))
                    for begin, until in zip(self.begin, self.until, strict=True)
                )
                present[start:stop] = sum(inside, np.zeros(stop - start)) / self.width
        return present

    def computing(self, columns: int) -> tuple[Floats, Ints]:
        """(processors, columns) the part of each column until `common` that each processor computes, and
        (columns + 1,) their edges in ns. Columns have equal width, except that the last may be shorter; at
        most `columns` of them would reach `ahead`."""
        count = self.common // self.width
        each = max(1, math.ceil(ahead(max(self.common, 1)) / self.width / columns))
        starts = np.arange(0, count, each)
        edges = np.append(starts, count) * self.width
        if not count:
            return np.zeros((self.processors, 0)), edges[:1]
        if (self._each, len(self._columns)) != (each, self.processors):
            self._joined = 0
        first = min(self._joined // each, starts.size - 1)
        # One row for each processor, so that one call sums it.
        row = self._spent.reshape(-1, self.bins * NOTED)[
            : self.processors, first * each * NOTED : count * NOTED
        ]
        new = np.add.reduceat(row, (starts[first:] - first * each) * NOTED, axis=1)
        self._columns = (
            np.concatenate([self._columns[: self.processors, :first], new], axis=1) if first else new
        )
        self._each, self._joined = each, count
        present = np.diff(np.clip(edges, self.begin[:, None], self.until[:, None]), axis=1)
        return (present - self._columns) / np.diff(edges), edges

    def curves(self, names: tuple[str, ...]) -> dict[str, StepCurve]:
        """Processors in each activity, by its name, until `common`; empty within the first bin."""
        levels, edges = self.levels()
        if edges.size < 2:
            return {}
        capacity = float(self.processors)
        return {
            name: StepCurve(edges, level, capacity, 1e-9)
            for name, level in zip(names, levels, strict=True)
            if name == names[0] or level.any()
        }


@kernel
def _spread(out: Ints, begin: Ints, end: Ints, activity: Ints, width: int) -> int:
    """Add stretches (ns) to the bins that they overlap; returns the first of these."""
    last_bin = out.shape[0] - 1
    least = out.shape[0]
    for i in range(begin.size):
        a, b = begin[i], end[i]
        if b <= a:
            continue
        kind = activity[i] - 1
        first, last = a // width, min((b - 1) // width, last_bin)
        least = min(least, first)
        for k in range(first, last + 1):
            out[k, kind] += min(b, (k + 1) * width) - max(a, k * width)
    return int(least)

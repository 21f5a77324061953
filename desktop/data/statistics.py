"""What each phase is made of: efficiencies, time by region and activity, messages, calls, waiting.

All numbers of a time range follow from summaries made on import (`desktop.data.profile`): a range costs two
positions in every location's call paths, not a pass over its events. Sources of the formulas:

* parallel efficiency, load balance, communication, serialisation and transfer efficiency: POP Centre of
  Excellence, "POP Standard Metrics for Parallel Performance Analysis";
* the class of a time and its mean level: ORNL/TM-11637, section 1; `desktop.data.utilization`.

The door is `Statistics(store)`, which keeps what it has read::

    ranges(ranges_s, use=None, progress=None, *, replay=False) -> tuple[RangeStats, ...]
    calls(range_s, use=None, search="") -> list[CallRow]
    flat(stats, use=None) -> list[RegionRow]
    changes(left, right, most=10) -> list[Change]

What needs a pass over the events of a range (the replay on an ideal network, the split of communication into
waiting and transfer) is done only when asked for, and kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from desktop.data.events import Activity

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Messages:
    """Messages of a time range: those whose send (receive) is recorded inside it.

    sent, received, bytes_sent, bytes_received : (locations,) of each location.
    sender, receiver, count, bytes : (pairs,) the matrix of what was sent, sorted by sender and receiver;
        a receiver of -1 is not known.
    """

    sent: Ints
    received: Ints
    bytes_sent: Ints
    bytes_received: Ints
    sender: Ints
    receiver: Ints
    count: Ints
    bytes: Ints


@dataclass(frozen=True, eq=False)
class Replayed:
    """What only a pass over the events and messages of a range can tell.

    ideal_s : how long the range lasts on a network without latency and with infinite bandwidth; None where
        the messages do not match completely, `ideal_note` says so in words.
    communication_s, waiting_s : (locations,) seconds in communication, and the part of them in which a
        partner was late (late sender; others not yet in a collective). The rest is transfer. None where
        clocks contradict or nothing is matched, `waiting_note` says so in words.
    """

    ideal_s: float | None
    ideal_note: str
    communication_s: Floats | None
    waiting_s: Floats | None
    waiting_note: str

    @property
    def transfer_s(self) -> Floats | None:
        """(locations,) seconds of communication that are not waiting."""
        if self.communication_s is None or self.waiting_s is None:
            return None
        return self.communication_s - self.waiting_s


@dataclass(frozen=True, eq=False)
class RangeStats:
    """One time range of a run. Times in seconds; locations and regions by their index in the store.

    start_s, end_s : on the axis of the curve, rounded to whole ticks.
    duration_s : length.
    processors : P, all processors of the run that have events.
    present : mean number of processors that are there (between their first and last event).
    computing : mean number of processors in an activity that the curve counts.
    seconds : (locations, len(Activity)) of every processor in each activity; 0 of what is no processor.
    useful_s : (locations,) seconds in the activities that the curve counts.
    exclusive_s, inclusive_s, calls : (regions,) over all processors. Inclusive counts nested occurrences of
        a region once. Calls are enters inside the range.
    outside_s : seconds of processors in no region at all.
    messages : None of a source that has none.
    levels, shares : (k,) the concurrency profile: the part of the time in which exactly so many processors
        compute, by rising level; parts add up to 1.
    replayed : None until asked for.
    note : what should be said with these numbers, or nothing.
    """

    start_s: float
    end_s: float
    duration_s: float
    processors: float
    present: float
    computing: float
    is_processor: NDArray[np.bool_]
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

    @property
    def parallel_efficiency(self) -> float:
        """Mean computing over P; of a constant least-squares phase also its level over P. NaN if P is 0."""
        return self.computing / self.processors if self.processors else np.nan

    @property
    def load_balance(self) -> float:
        """Mean over maximum useful time of the processors; NaN where nobody computes or none are known."""
        most = self._most
        return self.computing * self.duration_s / (self.processors * most) if most else np.nan

    @property
    def communication_efficiency(self) -> float:
        """Maximum useful time over duration; NaN where no locations are known."""
        return self._most / self.duration_s if self.is_processor.any() else np.nan

    @property
    def serialisation_efficiency(self) -> float | None:
        """Maximum useful time over the ideal duration; None where that is not known."""
        ideal = self.replayed.ideal_s if self.replayed else None
        return self._most / ideal if ideal else None

    @property
    def transfer_efficiency(self) -> float | None:
        """Ideal duration over duration; None where that is not known."""
        ideal = self.replayed.ideal_s if self.replayed else None
        return ideal / self.duration_s if ideal is not None else None

    @property
    def utilization(self) -> Floats:
        """(locations,) part of the duration in which each location computes; NaN of what is no processor."""
        return np.where(self.is_processor, self.useful_s / self.duration_s, np.nan)

    @property
    def by_activity(self) -> dict[Activity, float]:
        """Processor-seconds in each activity."""
        return {activity: float(self.seconds[:, activity].sum()) for activity in Activity}

    def most_loaded(self, n: int) -> Ints:
        """Up to n processors that compute longest, longest first."""
        return self._by_load()[:n]

    def idlest(self, n: int) -> Ints:
        """Up to n processors that compute shortest, shortest first."""
        return self._by_load()[::-1][:n]

    def _by_load(self) -> Ints:
        there = np.flatnonzero(self.is_processor)
        return there[np.argsort(-self.useful_s[there], kind="stable")]

    @property
    def _most(self) -> float:
        return float(self.useful_s[self.is_processor].max(initial=0.0))


@dataclass(frozen=True)
class RegionRow:
    """A line of the flat profile: seconds over all processors, and the part of all their time."""

    region: int
    name: str
    role: str
    activity: Activity
    exclusive_s: float
    inclusive_s: float
    calls: int
    share: float


@dataclass(frozen=True)
class CallRow:
    """A line of the call tree, in order of a walk from the top: `parent` and `depth` give the tree.

    `row` 0 is no region at all (its inclusive time is all). `locations` passed here inside the range; of
    their inclusive times `low`, `mean` and `high` are the least, the mean and the largest, in seconds.
    `folded`: the region's calls on paths that were too many to be kept apart, all in one.
    """

    row: int
    parent: int
    depth: int
    region: int
    name: str
    activity: Activity
    inclusive_s: float
    exclusive_s: float
    calls: int
    locations: int
    low: float
    mean: float
    high: float
    folded: bool = False


@dataclass(frozen=True)
class Change:
    """Something whose part differs between two neighbouring ranges, said in one sentence.

    `left` and `right` are parts (0 to 1) of processor time, or of what is sent per second; `difference` is
    right - left, by whose size changes are ranked. `index`: of the region or location, (sender, receiver)
    of a pair, nothing for the total.
    """

    kind: Literal["region", "location", "messages", "pair"]
    index: tuple[int, ...]
    left: float
    right: float
    difference: float
    sentence: str

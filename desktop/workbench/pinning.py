"""Where the factors of an experiment run in a trace: their regions, and their time in every phase."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from desktop.core.arrays import Bytes, Floats, Ints

if TYPE_CHECKING:
    from desktop.data.statistics import RangeStats
    from desktop.progress import Progress

_MODEL = "mixed"


@dataclass(frozen=True, eq=False)
class PinnedTrace:
    """A trace in phases. phase (P,): their places in the trace, from 0; start_s, end_s (P,); names of the
    regions (R,) that run at all; exclusive_s, inclusive_s (P, R): seconds over all processors; busy_s (P,):
    all their time."""

    path: Path
    phase: Ints
    start_s: Floats
    end_s: Floats
    names: tuple[str, ...]
    exclusive_s: Floats
    inclusive_s: Floats
    calls: Ints
    busy_s: Floats

    def likely(self, routine: str) -> str:
        """The region that is called as the routine, or whose name holds it; "" if there is none."""
        if not routine:
            return ""
        key = routine.casefold()
        same = [name for name in self.names if name.casefold() == key]
        near = [name for name in self.names if key in name.casefold()]
        return (same or near or [""])[0]

    def largest(self, most: int) -> tuple[str, ...]:
        """Names of the regions with most time in all phases together, in order of the alphabet."""
        order = np.argsort(-self.inclusive_s.sum(0), kind="stable")[:most]
        return tuple(sorted({self.names[int(k)] for k in order}, key=str.casefold))

    def of(self, region: str) -> tuple[PhaseOf, ...]:
        """The phases in which a region, or one of those called so, runs."""
        at = [k for k, name in enumerate(self.names) if name == region]
        inclusive, exclusive = self.inclusive_s[:, at].sum(1), self.exclusive_s[:, at].sum(1)
        return tuple(
            PhaseOf(int(self.phase[i]), float(inclusive[i]), float(exclusive[i]))
            for i in np.flatnonzero(inclusive > 0)
        )


@dataclass(frozen=True)
class PhaseOf:
    """A phase (from 0) with a region; its seconds over all processors, with and without what it calls."""

    phase: int
    inclusive_s: float
    exclusive_s: float


@dataclass(frozen=True)
class PinnedFactor:
    """Where a factor is in a trace: its region ("": none is called like it), and the phases of that."""

    factor: str
    region: str = ""
    phases: tuple[PhaseOf, ...] = ()


def pin_phases(
    path: Path,
    regions: Sequence[str],
    phases: Sequence[int],
    stats: Sequence[RangeStats],
    job: Progress | None = None,
) -> PinnedTrace:
    """The regions (all names of the trace) in these phases, from the statistics of each."""
    total = np.zeros(len(regions))
    for done, one in enumerate(stats):
        if job is not None:
            job.step(done, len(stats))
        total += one.inclusive_s
    runs = np.flatnonzero(total > 0)
    return PinnedTrace(
        path,
        np.array(phases, np.int64),
        np.array([s.start_s for s in stats]),
        np.array([s.end_s for s in stats]),
        tuple(regions[int(k)] for k in runs),
        np.array([s.exclusive_s[runs] for s in stats]).reshape(len(stats), runs.size),
        np.array([s.inclusive_s[runs] for s in stats]).reshape(len(stats), runs.size),
        np.array([s.calls[runs] for s in stats]).reshape(len(stats), runs.size),
        np.array([s.seconds.sum() for s in stats]),
    )


def region_seconds(path: Path, job: Progress | None = None) -> dict[str, float]:
    """Seconds of the regions of a trace over all processors, without what they call.

    Raises
    ------
    DesktopError : it cannot be opened. ValueError : it names no regions. Cancelled : by `job`.
    """
    from desktop.data.opening import open_trace
    from desktop.data.statistics import Statistics
    from desktop.data.utilization import build

    with open_trace(path, job) as store:
        use = build(store, None, job)
        (whole,) = Statistics(store).ranges([(0.0, use.curve().duration)], use, job)
        seconds_of: dict[str, float] = {}
        for region, seconds in zip(store.regions, whole.exclusive_s.tolist(), strict=True):
            seconds_of[region.name] = seconds_of.get(region.name, 0.0) + seconds
    if not any(seconds_of.values()):
        raise ValueError(f"{path.name} holds no regions, so it has no profile to choose places by")
    return seconds_of


def pin(path: Path, job: Progress, stop: Bytes | None = None) -> PinnedTrace:
    """Open a trace (importing it if need be), fit the suggested number of phases, and share out regions.
    `stop`: 1 ends the fit.

    Raises
    ------
    DesktopError : it cannot be opened. ValueError : it names no regions. Cancelled : by `job`.
    """
    from desktop.core.selection import search
    from desktop.data.opening import open_trace
    from desktop.data.presence import structure
    from desktop.data.statistics import Statistics
    from desktop.data.utilization import build
    from desktop.progress import Share

    with open_trace(path, Share(job, 0.0, 0.7)) as store:
        if not store.regions:
            raise ValueError(f"{path.name} holds no regions, so no effect can be pinned to one")
        use = build(store, None, Share(job, 0.7, 0.8))
        curve = use.curve()
        landmarks = structure(store, use, Share(job, 0.8, 0.85)).landmarks(curve)
        sweep, suggestion = search(curve, _MODEL, stop=stop, landmarks=landmarks)
        breakpoints = suggestion.fit(curve, sweep).breaks.tolist()
        ranges = list(pairwise(breakpoints))
        stats = Statistics(store).ranges(ranges, use, Share(job, 0.85, 1.0))
        return pin_phases(path, [region.name for region in store.regions], range(len(ranges)), stats)

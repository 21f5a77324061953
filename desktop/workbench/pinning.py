"""Where a routine of a program runs: its time in every phase of a trace's utilization curve."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from desktop.workbench.jobs import Job

_MODEL = "mixed"


@dataclass(frozen=True, eq=False)
class Pinned:
    """A trace in phases. start_s, end_s (P,) of the phases; names of the regions (R,) that run at all;
    exclusive_s, inclusive_s (P, R): seconds over all processors; busy_s (P,): all their time."""

    path: Path
    start_s: NDArray[np.float64]
    end_s: NDArray[np.float64]
    names: tuple[str, ...]
    exclusive_s: NDArray[np.float64]
    inclusive_s: NDArray[np.float64]
    calls: NDArray[np.int64]
    busy_s: NDArray[np.float64]

    def likely(self, routine: str) -> str:
        """The region that is called as the routine, or whose name holds it; "" if there is none."""
        if not routine:
            return ""
        wanted = routine.casefold()
        same = [name for name in self.names if name.casefold() == wanted]
        near = [name for name in self.names if wanted in name.casefold()]
        return (same or near or [""])[0]


def pin(path: Path, job: Job) -> Pinned:
    """Open a trace (importing it if need be), fit the suggested number of phases, and share out regions.

    Raises
    ------
    DesktopError : it cannot be opened. ValueError : it names no regions. Cancelled : by `job`.
    """
    from desktop.core.selection import search
    from desktop.data.opening import open_trace
    from desktop.data.statistics import Statistics
    from desktop.data.utilization import build
    from desktop.progress import Share

    with open_trace(path, Share(job, 0.0, 0.7)) as store:
        if not store.regions:
            raise ValueError(f"{path.name} holds no regions, so no effect can be pinned to one")
        use = build(store, None, Share(job, 0.7, 0.8))
        curve = use.curve()
        found, suggestion = search(curve, _MODEL, stop=job.stop)
        breaks = found.fit(suggestion.n).breaks.tolist()
        ranges = list(pairwise(breaks))
        stats = Statistics(store).ranges(ranges, use, Share(job, 0.8, 1.0))
        inclusive = np.array([s.inclusive_s for s in stats])
        runs = np.flatnonzero(inclusive.sum(0) > 0)
        return Pinned(
            path,
            np.array([s.start_s for s in stats]),
            np.array([s.end_s for s in stats]),
            tuple(store.regions[int(k)].name for k in runs),
            np.array([s.exclusive_s for s in stats])[:, runs],
            inclusive[:, runs],
            np.array([s.calls for s in stats])[:, runs],
            np.array([s.seconds.sum() for s in stats]),
        )

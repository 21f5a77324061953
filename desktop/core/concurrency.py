"""The concurrency profile: in which part of the time exactly k processors compute."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from desktop.core.curve import StepCurve
from desktop.core.jit import kernel


def concurrency(
    curve: StepCurve, start: float, end: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Levels that the curve has within ``[start, end]`` (in the unit of its edges), rising, and the part of
    that time which it spends at each; the parts add up to 1. Both (k,)."""
    e = curve.edges
    a, b = max(start, float(e[0])), min(end, float(e[-1]))
    if not a < b:
        raise ValueError(f"the range {start} to {end} is empty or outside the curve")
    i = int(np.searchsorted(e, a, side="right")) - 1
    j = int(np.searchsorted(e, b, side="left"))
    edges = e[i : j + 1].copy()
    edges[0], edges[-1] = a, b
    level = curve.level[i:j]
    counts = level.min() >= 0 and level.max() < 1 << 24
    if counts and whole(level):
        time = at_each(edges, level, int(level.max()) + 1)
        levels = np.flatnonzero(time).astype(np.float64)
        return levels, time[time > 0] / (b - a)
    levels, which = np.unique(level, return_inverse=True)
    return levels, np.bincount(which, np.diff(edges), levels.size) / (b - a)


@kernel
def whole(level: Any) -> bool:
    for value in level:  # noqa: SIM110  numba compiles no generator
        if value != np.floor(value):
            return False
    return True


@kernel
def at_each(edges: Any, level: Any, levels: int) -> Any:
    """(levels,) time at each whole level."""
    time = np.zeros(levels)
    for i in range(level.size):
        time[np.int64(level[i])] += edges[i + 1] - edges[i]
    return time

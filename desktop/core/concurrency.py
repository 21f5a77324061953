"""The concurrency profile: the part of the time in which exactly k processors compute.

A summary cached with the curve holds the time at each level before every block of steps, so that a range
costs the steps of two blocks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from desktop.core.arrays import AnyArray, Floats, Ints
from desktop.core.curve import StepCurve
from desktop.core.jit import kernel

#: Least number of steps in a block, and per level, so that the summary is small compared with the curve.
BLOCK = 1 << 12
BLOCK_PER_LEVEL = 8


class _Summary(NamedTuple):
    """`levels` (k,) ascending; `which` (M,) index of each step's level, None if the levels are 0 to k - 1;
    `before` (blocks, k) time at each level before each `block` of steps."""

    levels: Floats
    which: Ints | None
    before: Floats
    block: int


def concurrency(curve: StepCurve, start: float, end: float) -> tuple[Floats, Floats]:
    """Levels of the curve within ``[start, end]`` (in the unit of its edges), ascending, and the part of that
    time that it spends at each; the parts add up to 1. Both (k,).

    Raises
    ------
    ValueError : the range is empty or outside the curve.
    """
    e = curve.edges
    a, b = max(start, float(e[0])), min(end, float(e[-1]))
    if not a < b:
        raise ValueError(f"the range {start} to {end} is empty or outside the curve")
    summary = summarise(curve)
    time = _until(curve, summary, b) - _until(curve, summary, a)
    # Sums of whole ticks are exact; other sums may leave a rounding error where there is no time.
    present = np.flatnonzero(time > 1e-12 * (b - a))
    return summary.levels[present], time[present] / (b - a)


def summarise(curve: StepCurve) -> _Summary:
    """The summary of a curve, computed in one pass over the steps and cached."""
    summary = curve.summaries.get("concurrency")
    if not isinstance(summary, _Summary):
        summary = curve.summaries["concurrency"] = _summary(curve)
    return summary


def _summary(curve: StepCurve) -> _Summary:
    level = curve.level
    if curve.capacity < 1 << 20:
        # Most curves count processors, so their levels are whole numbers up to all of them.
        levels = np.arange(int(curve.capacity) + 1, dtype=np.float64)
        block, before = _blocks(level.size, levels.size)
        if add_blocks(curve.edges, level, block, before):
            return _Summary(levels, None, before, block)
    levels, which = np.unique(level, return_inverse=True)
    block, before = _blocks(level.size, levels.size)
    add_blocks(curve.edges, which, block, before)
    return _Summary(levels, which, before, block)


def _blocks(steps: int, levels: int) -> tuple[int, Floats]:
    """Steps in a block, and zeros (blocks, levels) for the time at each level before each."""
    block = max(BLOCK, BLOCK_PER_LEVEL * levels)
    return block, np.zeros((-(-steps // block), levels))


def _until(curve: StepCurve, summary: _Summary, time: float) -> Floats:
    """Time at each level before a time."""
    step = int(np.searchsorted(curve.edges, time, side="left")) - 1  # the step that contains or ends at it
    if step < 0:
        return np.zeros(summary.levels.size)
    k = step // summary.block
    begin = k * summary.block
    edges = curve.edges[begin : step + 2].copy()
    edges[-1] = time
    part = slice(begin, step + 1)
    at = curve.level[part] if summary.which is None else summary.which[part]
    spent: Floats = summary.before[k].copy()
    add_time(edges, at, spent)
    return spent


@kernel
def add_blocks(edges: Floats, at: AnyArray, block: int, before: Floats) -> bool:
    """Set `before` to the time at each level before each block of steps; False if a level is not a whole
    number among those counted."""
    time = np.zeros(before.shape[1])
    for k in range(before.shape[0]):
        before[k] = time
        for i in range(k * block, min((k + 1) * block, at.size)):
            level = np.int64(at[i])
            if level != at[i] or level < 0 or level >= time.size:
                return False
            time[level] += edges[i + 1] - edges[i]
    return True


@kernel
def add_time(edges: Floats, at: AnyArray, time: Floats) -> None:
    """Add the ticks of each step between `edges` (n+1,) to the `time` (levels,) of its level `at` (n,)."""
    for i in range(at.size):
        time[np.int64(at[i])] += edges[i + 1] - edges[i]

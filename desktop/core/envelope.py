"""Exact minimum, maximum and mean of a curve in any interval, for drawing.

A 16-ary tree over the steps holds the minimum, the maximum and the integral of every node. An interval
consists of a partial step, whole steps and nodes, and a partial step, so a pixel column costs O(16 log M),
however many steps are in it. The integral is summed from nodes, not a difference of running totals, so a
column of a billionth of the run has full precision.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from desktop.core.arrays import Floats, Ints
from desktop.core.curve import StepCurve
from desktop.core.jit import kernel

_FAN = 16


class Columns(NamedTuple):
    """One value per pixel column, shape (W,); NaN where the column lies outside the curve.

    `minimum`, `maximum`, `mean` (over time), `first` and `last` level in processors; `steps`: number of steps
    that overlap the column (0 outside the curve).
    """

    minimum: Floats
    maximum: Floats
    mean: Floats
    first: Floats
    last: Floats
    steps: Ints


@dataclass(frozen=True, eq=False)
class Envelope:
    """The drawing tree of one curve; made by `envelope`.

    `edges` (M+1,), `level` (M,) and `unit` are the curve's own. It does not refer to the curve, as that cycle
    of references would keep memory until garbage is collected. `nodes` (N, 3): minimum, maximum and integral
    (processors times ticks); `offset`: index of the first node of each level, where level 1 is directly above
    the steps.
    """

    edges: Floats
    level: Floats
    unit: float
    nodes: Floats
    offset: Ints
    #: the last result by its times, as a picture is drawn again when any of its curves changes
    _last: dict[bytes, Columns] = field(default_factory=dict)

    def columns(self, x: Floats) -> Columns:
        """Exact values in the W columns between the W+1 ascending times `x` (seconds).

        A column is ``[x[k], x[k+1])``; one without width gives the level at that time. The arrays are cached
        and must not be changed.
        """
        ticks = np.ascontiguousarray(x, np.float64) / self.unit
        key, width = ticks.tobytes(), ticks.size - 1
        if (last := self._last.get(key)) is not None:
            return last
        values = np.full((5, width), np.nan)
        steps = np.zeros(width, np.int64)
        _columns(self.edges, self.level, self.nodes, self.offset, ticks, values, steps)
        columns = Columns(values[0], values[1], values[2], values[3], values[4], steps)
        if width > 1:
            self._last.clear()
            self._last[key] = columns
        return columns

    def range(self, a: float, b: float) -> tuple[float, float, float]:
        """Minimum, maximum (processors) and integral (processor-seconds) over ``[a, b)``, seconds.

        NaN, NaN, 0 where the interval is outside of the curve.
        """
        return self._whole if a == -np.inf and b == np.inf else self._range(a, b)

    @cached_property
    def _whole(self) -> tuple[float, float, float]:
        return self._range(-np.inf, np.inf)

    def _range(self, a: float, b: float) -> tuple[float, float, float]:
        c = self.columns(np.array([a, b], np.float64))
        if not c.steps[0]:
            return np.nan, np.nan, 0.0
        # The width in ticks, as far from zero the ends in seconds have lost their last digits.
        edges, unit = self.edges, self.unit
        width = max(min(b / unit, float(edges[-1])) - max(a / unit, float(edges[0])), 0.0) * unit
        return float(c.minimum[0]), float(c.maximum[0]), float(c.mean[0]) * width


def envelope(curve: StepCurve) -> Envelope:
    """The drawing tree of `curve`, built on first use (about 4 ns per step) and cached with the curve."""
    drawing = curve.summaries.get("envelope")
    if not isinstance(drawing, Envelope):
        counts = [-(-curve.segments // _FAN)]
        while counts[-1] > 1:
            counts.append(-(-counts[-1] // _FAN))
        # offset[0] belongs to the steps themselves, which are not stored twice.
        offset = np.concatenate(([0, 0], np.cumsum(counts))).astype(np.int64)
        nodes = np.empty((int(offset[-1]), 3))
        _build(curve.edges, curve.level, nodes, offset)
        drawing = Envelope(curve.edges, curve.level, curve.unit, nodes, offset)
        curve.summaries["envelope"] = drawing
    return drawing


def averaged(curve: StepCurve, edges: Floats) -> StepCurve:
    """A coarser curve: the means of `curve` between ascending `edges`, in its unit of time."""
    level = envelope(curve).columns(edges * curve.unit).mean
    return StepCurve(edges, level, curve.capacity, curve.unit, curve.quantity)


@kernel
def _build(edges: Floats, level: Floats, nodes: Floats, offset: Ints) -> None:
    for b in range(offset[2] - offset[1]):
        low, high, total = np.inf, -np.inf, 0.0
        for j in range(b * 16, min(b * 16 + 16, level.size)):
            h = level[j]
            low = min(low, h)
            high = max(high, h)
            total += h * (edges[j + 1] - edges[j])
        nodes[b, 0], nodes[b, 1], nodes[b, 2] = low, high, total
    for k in range(2, offset.size - 1):
        for b in range(offset[k + 1] - offset[k]):
            low, high, total = np.inf, -np.inf, 0.0
            for i in range(offset[k - 1] + b * 16, min(offset[k - 1] + b * 16 + 16, offset[k])):
                low = min(low, nodes[i, 0])
                high = max(high, nodes[i, 1])
                total += nodes[i, 2]
            i = offset[k] + b
            nodes[i, 0], nodes[i, 1], nodes[i, 2] = low, high, total


@kernel
def _whole(
    edges: Floats, level: Floats, nodes: Floats, offset: Ints, i: int, j: int
) -> tuple[float, float, float]:
    """Minimum, maximum and integral of the steps i .. j-1."""
    low, high, total = np.inf, -np.inf, 0.0
    while i < j and i % 16:
        low, high = min(low, level[i]), max(high, level[i])
        total += level[i] * (edges[i + 1] - edges[i])
        i += 1
    while i < j and j % 16:
        j -= 1
        low, high = min(low, level[j]), max(high, level[j])
        total += level[j] * (edges[j + 1] - edges[j])
    k = 1
    while i < j:
        i //= 16
        j //= 16
        base = offset[k]
        while i < j and i % 16:
            low, high = min(low, nodes[base + i, 0]), max(high, nodes[base + i, 1])
            total += nodes[base + i, 2]
            i += 1
        while i < j and j % 16:
            j -= 1
            low, high = min(low, nodes[base + j, 0]), max(high, nodes[base + j, 1])
            total += nodes[base + j, 2]
        k += 1
    return low, high, total


@kernel
def _step_at(edges: Floats, t: float, i: int, j: int) -> int:
    """The step that contains time `t`, known to be one of i .. j (j inclusive)."""
    while i < j:
        m = (i + j + 1) // 2
        if edges[m] <= t:
            i = m
        else:
            j = m - 1
    return i


@kernel
def _columns(
    edges: Floats, level: Floats, nodes: Floats, offset: Ints, ticks: Floats, values: Floats, steps: Ints
) -> None:
    width = ticks.size - 1
    final = level.size - 1
    start, end = edges[0], edges[level.size]
    i = _step_at(edges, ticks[0], 0, final)
    bound = _step_at(edges, ticks[width], i, final)
    for k in range(width):
        a, b = ticks[k], ticks[k + 1]
        inside = i
        i = _step_at(edges, b, i, bound)  # also the first step of the next column
        if b < start or a >= end or (b == start and a < b):
            continue
        j = i
        if j > inside and edges[j] == b:
            j -= 1  # that step only begins where the column ends
        a, b = max(a, start), min(b, end)
        first, last = level[inside], level[j]
        low, high = min(first, last), max(first, last)
        if j == inside:
            mean = first
        else:
            total = first * (edges[inside + 1] - a) + last * (b - edges[j])
            if j - inside > 1:
                lo, hi, part = _whole(edges, level, nodes, offset, inside + 1, j)
                low, high, total = min(low, lo), max(high, hi), total + part
            # Rounding must not move the mean out of the range of levels.
            mean = min(max(total / (b - a), low), high)
        values[0, k], values[1, k], values[2, k] = low, high, mean
        values[3, k], values[4, k] = first, last
        steps[k] = j - inside + 1

"""Change points of the averages of a curve: breakpoints of a run of which only the curve is known yet.

Where processors swing between computing and waiting at every call, no polynomial is near the curve, and the
fit of least error divides the swings instead of finding changes. Here averages are taken over parts of about
a hundredth of the run, or of a swing where that is longer, each from one rise of the curve through its mean
to a later one: averages of whole swings have little noise. Of all partitions of the parts the one is taken
that has the least sum of

* the squared deviations of the averages from a constant or a line in each phase, and of 0.7 of the amplitudes
  (the standard deviation within a part) from a constant, in units of the noise: the median difference between
  neighbours, at least `NOISE` of all processors;
* ``PRICE`` ln(parts) for each phase, and half as much again for a line,

which is found exactly (B. Jackson et al., *An algorithm for optimal partitioning of data on an interval*,
IEEE Signal Processing Letters 12, 2005). Each breakpoint then moves to the step of the curve near it that
separates the averages on both sides best.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from desktop.core.arrays import Floats, Ints
from desktop.core.curve import StepCurve
from desktop.core.jit import kernel

#: Number of parts (up to twice as many for a short curve), and the shortest phase as a part of the run.
PARTS, SHORTEST = 128, 0.03
#: The least noise of an average, as a part of all processors, and the price of a phase.
NOISE, PRICE = 0.05, 5.0
#: A swing deviates from the mean over this part of the run by this part of all processors.
_MEAN, _SWING = 1 / 16, 0.05
#: Fewest steps between two rises: fewer may differ that much by chance.
_FEWEST = 8
#: Parts are whole swings if there are more than `_MANY`, where none is longer than this part of the run or
#: than so many times those around it: ten or more alike, as fewer may be steps.
_MANY, _LONGEST, _REGULAR = 4, 0.1, 3.0
#: An isolated average is limited to so many times the noise from its neighbours' median.
_ALONE = 3.0
#: Weight of an amplitude relative to an average.
_AMPLITUDE = 0.7
#: A breakpoint is not moved if the averages beside it differ by less than this part of all processors.
_APART = 0.1


def changes(curve: StepCurve, most: int, *, lines: bool = True) -> Floats:
    """Times (s), ascending, at which the averages of a curve of equal steps change; they separate at most
    `most` phases. `lines`: averages may rise or fall within a phase."""
    ends = parts(curve)
    width = np.diff(ends)
    average = np.add.reduceat(curve.level, ends[:-1]) / width
    square = np.add.reduceat(curve.level * curve.level, ends[:-1]) / width
    amplitude = _AMPLITUDE * np.sqrt(np.maximum(square - average * average, 0.0))
    least = NOISE * max(curve.capacity, 1e-300)
    noise = max(float(np.median(np.abs(np.diff(average)))) / 0.954, least) if average.size > 1 else least
    values = np.stack([_trimmed(v, _ALONE * noise) for v in (average, amplitude)]) / noise
    price = PRICE * math.log(max(average.size, 8))
    while True:
        cuts = _partition(values, ends / curve.segments, price, 1.5 * price if lines else np.inf)
        if cuts.size < most:
            break
        price *= 1.5
    if not cuts.size:
        return np.zeros(0)
    at = [
        _step_near(curve.level, ends, a, k, b, _APART * curve.capacity)
        for (a, k), (_, b) in pairwise(pairwise([0, *cuts.tolist(), average.size]))
    ]
    return curve.edges[np.unique(at)] * curve.unit


def parts(curve: StepCurve) -> Ints:
    """(parts + 1,) indices of the steps between which averages are taken."""
    count = curve.segments
    rises = _rises(curve.level, max(int(count * _MEAN / 2), 1), _SWING * curve.capacity)
    gaps = np.diff(rises, prepend=0, append=count)
    usual = np.median(np.lib.stride_tricks.sliding_window_view(np.pad(gaps, 3, mode="edge"), 7), axis=1)
    goes_on = (gaps <= _REGULAR * usual) & (gaps <= _LONGEST * count) & (rises.size > _MANY)
    ends: Ints = _whole_swings(np.append(rises, count), goes_on, count, max(count // PARTS, 1))
    return ends


def _trimmed(values: Floats, most: float) -> Floats:
    """`values` (K,) limited to at most `most` from the median of five neighbours."""
    beside = np.lib.stride_tricks.sliding_window_view(np.pad(values, 2, mode="edge"), 5)
    median = np.median(beside, axis=1)
    return np.clip(values, median - most, median + most)


def _step_near(level: Floats, ends: Ints, a: int, k: int, b: int, apart: float) -> int:
    """The step at which a phase of the parts `a` to `k` best ends and one of `k` to `b` begins; the end of
    part `k` if their averages differ by less than `apart`."""
    before = level[ends[max(a, k - 6)] : ends[max(k - 1, a + 1)]].mean()
    after = level[ends[min(k + 1, b - 1)] : ends[min(b, k + 6)]].mean()
    if abs(before - after) < apart:
        return int(ends[k])
    first = int(ends[max(k - 1, a)])
    near = level[first : ends[min(k + 1, b)]]
    # Least squared deviation from one average before the step, and from the other after it.
    gain = np.cumsum((near - before) ** 2 - (near - after) ** 2)[:-1]
    return first + 1 + int(np.argmin(gain))


@kernel
def _rises(level: Floats, half: int, swing: float) -> Ints:
    """The steps at which the curve rises over its mean (of `half` steps to each side) after it was below by
    more than `swing`, if its standard deviation since the last rise is at least `swing`."""
    out = np.empty(level.size, np.int64)
    count, first, end, total, below = 0, 0, 0, 0.0, False
    since, levels, squares = 0, 0.0, 0.0
    for i in range(level.size):
        while end < min(i + half + 1, level.size):
            total += level[end]
            end += 1
        while first < i - half:
            total -= level[first]
            first += 1
        levels += level[i]
        squares += level[i] * level[i]
        away = level[i] - total / (end - first)
        if away < -swing:
            below = True
        elif below and away > 0:
            below = False
            if i - since < _FEWEST:
                continue
            mean = levels / (i + 1 - since)
            if squares / (i + 1 - since) - mean * mean >= swing * swing:
                out[count] = i
                count += 1
            since, levels, squares = i, level[i], level[i] * level[i]
    return out[:count]


@kernel
def _whole_swings(rises: Ints, goes_on: NDArray[np.bool_], count: int, shortest: int) -> Ints:
    """Ends of parts of `count` steps: each at the first of the `rises` after `shortest` steps if swings go on
    up to there (`goes_on`), else after `shortest` steps. The last of `rises` is the end."""
    out = np.empty(count // shortest + 2, np.int64)
    out[0] = 0
    parts, next_ = 1, 0
    while out[parts - 1] + 2 * shortest <= count:
        at = out[parts - 1] + shortest
        while next_ < rises.size and rises[next_] < at:
            next_ += 1
        if next_ < rises.size and goes_on[next_]:
            at = rises[next_]
        if at + shortest > count:
            break
        out[parts] = at
        parts += 1
    out[parts] = count
    return out[: parts + 1]


@kernel
def _partition(values: Floats, ends: Floats, price: float, price_of_line: float) -> Ints:
    """Inner ends (indices of parts) of the cheapest partition of averages and amplitudes `values` (2, parts),
    in units of noise. ends (parts + 1,): of the parts, from 0 to 1."""
    size = values.shape[1]
    weight = np.diff(ends) * size
    cheapest, back = np.full(size + 1, np.inf), np.zeros(size + 1, np.int64)
    cheapest[0] = 0.0
    for j in range(1, size + 1):
        w = wx = wxx = wy = wxy = wyy = wz = wzz = 0.0
        for i in range(j - 1, -1, -1):
            v, y, z = weight[i], values[0, i], values[1, i]
            x = (ends[i] + ends[i + 1]) / 2 - ends[j]
            w, wx, wxx, wy = w + v, wx + v * x, wxx + v * x * x, wy + v * y
            wxy, wyy, wz, wzz = wxy + v * x * y, wyy + v * y * y, wz + v * z, wzz + v * z * z
            if ends[j] - ends[i] < SHORTEST and not (i == 0 and j == size):
                continue
            left = max(wyy - wy * wy / w, 0.0)
            cost = left + price
            spread, slope = wxx - wx * wx / w, wxy - wx * wy / w
            if j - i > 2 and spread > 0:
                cost = min(cost, max(left - slope * slope / spread, 0.0) + price_of_line)
            cost += cheapest[i] + max(wzz - wz * wz / w, 0.0)
            if cost < cheapest[j]:
                cheapest[j], back[j] = cost, i
    cuts = np.empty(size, np.int64)
    count, j = 0, int(back[size])
    while j > 0:
        cuts[count] = j
        count += 1
        j = int(back[j])
    return cuts[:count][::-1].copy()

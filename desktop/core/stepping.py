"""Kernels of curves other than the utilization: stretches of open regions, sums over locations."""

from __future__ import annotations

import numpy as np

from desktop.core.arrays import AnyArray, Bytes, Flags, Floats, Ints
from desktop.core.jit import kernel


@kernel
def stretches(
    time: Ints, kind: Bytes, region: AnyArray, counts: Flags, open_: Ints, state: Ints, begin: Ints, end: Ints
) -> int:
    """Set `begin`, `end` to the intervals in which any region that `counts` (regions,) is open; returns
    their number.

    State of the events before: `open_` (regions,), how often each is open; `state` (2,), how many are open in
    all, and since when. A leave without enter is ignored.
    """
    n = 0
    for i in range(time.size):
        r = region[i]
        if not counts[r]:
            continue
        if kind[i] == 0:
            if state[0] == 0:
                state[1] = time[i]
            open_[r] += 1
            state[0] += 1
        elif open_[r] > 0:
            open_[r] -= 1
            state[0] -= 1
            if state[0] == 0:
                begin[n], end[n] = state[1], time[i]
                n += 1
    return n


@kernel
def over_locations(place: Ints, value: Floats, count: int, mean: bool, level: Floats) -> None:
    """Set `level` to the sum or mean over locations after each of the changes (n,) of location `place` to
    `value` (NaN: none).

    A tree of sums is updated, so that rounding errors do not accumulate.
    """
    size = 1
    while size < count:
        size *= 2
    sums, has_value = np.zeros(2 * size), np.zeros(size, np.bool_)
    present = 0
    for i in range(place.size):
        at = place[i]
        now = not np.isnan(value[i])
        present += int(now) - int(has_value[at])
        has_value[at] = now
        node = at + size
        sums[node] = value[i] if now else 0.0
        node //= 2
        while node:
            sums[node] = sums[2 * node] + sums[2 * node + 1]
            node //= 2
        level[i] = sums[1] / present if mean and present else sums[1]

"""The times a processor is inside each region, as a bounded number of stretches.

Calls with short gaps between them become one stretch. The limit of a gap is found during the pass: when a
region has `STRETCHES` stretches, the shorter half of the gaps between them is closed, and from then on every
gap that is as short. So each event has constant cost, and memory is bounded.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from desktop.core.arrays import AnyArray, Bytes, Ints
from desktop.core.jit import arithmetic, put_in_order

#: Largest number of stretches of each region.
STRETCHES = 128
#: Kinds of events of `Presence.feed`, as in traces; `TOUCH` enters and leaves at one time.
ENTER, LEAVE, TOUCH = 0, 1, 2
#: Numbers by `sends`: directions, and the first of the sizes.
UP, DOWN, SIZES = 0, 1, 2


class Presence:
    """Stretches of one location at a time."""

    def __init__(self) -> None:
        self._slot = np.zeros(0, np.int32)  # of each number, or -1
        self._make(16)
        self._gaps = np.zeros(STRETCHES, np.int64)
        self._count = np.zeros(1, np.int64)

    def _make(self, slots: int) -> None:
        self._thing = np.zeros(slots, np.int64)
        self._times = np.zeros((slots, STRETCHES, 2), np.int64)
        self._calls = np.zeros((slots, STRETCHES), np.int64)
        self._inside = np.zeros((slots, STRETCHES), np.int64)
        # stretches used, depth, gaps that are closed, since when it is inside
        self._state = np.zeros((slots, 4), np.int64)

    def feed(self, time: Ints, kind: Bytes, thing: NDArray[np.uint32], numbers: int) -> None:
        """Process events (n,) of the location in order; `thing`: numbers below `numbers`."""
        if numbers > self._slot.size:
            more = np.full(max(numbers, 2 * self._slot.size) - self._slot.size, -1, np.int32)
            self._slot = np.concatenate([self._slot, more])
        at = 0
        while True:
            at = _feed(
                time, kind, thing, at, self._slot, self._count, self._thing, self._times, self._calls,
                self._inside, self._state, self._gaps,
            )  # fmt: skip
            if at == time.size:
                return
            old = self._thing, self._times, self._calls, self._inside, self._state
            self._make(2 * self._thing.size)
            now = self._thing, self._times, self._calls, self._inside, self._state
            for new, rows in zip(now, old, strict=True):
                new[: rows.shape[0]] = rows

    def take(self, last: int) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """Begin, end, what, calls and ticks inside (n,) of all stretches of the location; open ones end at
        `last`. Clears the state for another location."""
        n = int(self._count[0])
        used, open_ = self._state[:n, 0], self._state[:n, 1] > 0
        rows = np.flatnonzero(open_)
        self._times[rows, used[rows] - 1, 1] = last
        self._inside[rows, used[rows] - 1] += last - self._state[rows, 3]
        seen = np.arange(STRETCHES) < used[:, None]
        stretches = (
            self._times[:n, :, 0][seen],
            self._times[:n, :, 1][seen],
            np.repeat(self._thing[:n], used),
            self._calls[:n][seen],
            self._inside[:n][seen],
        )
        self._slot[self._thing[:n]] = -1
        self._state[:n] = 0
        self._count[0] = 0
        return stretches


@arithmetic
def _feed(
    time: Ints, kind: Bytes, thing: AnyArray, at: int, slot: AnyArray, count: Ints, names: Ints, times: Ints,
    calls: Ints, inside: Ints, state: Ints, gaps: Ints,
) -> int:  # fmt: skip
    """Process rows from `at` on; returns the row at which no slot is left, or the number of rows."""
    for i in range(at, time.size):
        t, w = time[i], np.int64(thing[i])
        s = slot[w]
        if kind[i] == LEAVE:
            if s >= 0 and state[s, 1] > 0:
                state[s, 1] -= 1
                if state[s, 1] == 0:
                    times[s, state[s, 0] - 1, 1] = t
                    inside[s, state[s, 0] - 1] += t - state[s, 3]
            continue
        if s < 0:
            s = count[0]
            if s == names.size:
                return i
            slot[w] = s
            names[s] = w
            state[s, 0] = state[s, 1] = 0
            state[s, 2] = -1
            count[0] += 1
        if kind[i] == ENTER:
            state[s, 1] += 1
            if state[s, 1] > 1:
                continue
        used = state[s, 0]
        if used > 0 and t - times[s, used - 1, 1] <= state[s, 2]:
            calls[s, used - 1] += 1
        else:
            if used == STRETCHES:
                used = _close_gaps(times[s], calls[s], inside[s], state[s], gaps)
            times[s, used, 0] = t
            calls[s, used] = 1
            inside[s, used] = 0
            state[s, 0] = used = used + 1
        times[s, state[s, 0] - 1, 1] = t
        state[s, 3] = t
    return time.size


@arithmetic
def _close_gaps(times: Ints, calls: Ints, inside: Ints, state: Ints, gaps: Ints) -> int:
    """Close the shorter half of the gaps between stretches; returns the number of stretches left. gaps
    (STRETCHES,): work space."""
    used = state[0]
    for i in range(used - 1):
        gaps[i] = times[i + 1, 0] - times[i, 1]
    put_in_order(gaps, used - 1)
    limit = gaps[(used - 1) // 2]
    state[2] = limit
    last = 0
    for i in range(1, used):
        if times[i, 0] - times[last, 1] <= limit:
            times[last, 1] = times[i, 1]
            calls[last] += calls[i]
            inside[last] += inside[i]
        else:
            last += 1
            times[last, 0], times[last, 1] = times[i, 0], times[i, 1]
            calls[last] = calls[i]
            inside[last] = inside[i]
    state[0] = last + 1
    return last + 1


@arithmetic
def sends(
    at: int, time: Ints, kind: Bytes, peer: AnyArray, size: Ints, of: Bytes, out_time: Ints, thing: AnyArray
) -> int:
    """Convert the sends among the messages (n,) of location `at` (`of`: by kind) into two touches each, of
    the direction and of the number of bits in its size, in `out_time` and `thing` (2 n,); returns the
    number of sends."""
    n = 0
    for i in range(time.size):
        if of[kind[i]]:
            bits, left = 0, size[i]
            while left > 0:
                bits += 1
                left >>= 1
            out_time[2 * n] = out_time[2 * n + 1] = time[i]
            thing[2 * n] = UP if peer[i] > at else DOWN
            thing[2 * n + 1] = SIZES + bits
            n += 1
    return n

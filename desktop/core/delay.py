"""The duration of one unit of an artificial delay on this machine."""

from __future__ import annotations

import time
from functools import cache

from desktop.core.jit import kernel

_COUNT, _TIMES = 200_000, 400


@kernel
def _multiplied(count: int, x: float) -> float:
    # Every product depends on the one before, as in `spt_delay`; rounding prevents shortcuts of a compiler.
    for _ in range(count):
        x *= 1.0000000001
    return x


@cache
def delay_unit_s() -> float:
    """Seconds of one dependent multiplication, the unit of ``spt_delay``: the shortest of many measurements,
    so that other work on the machine does not count."""
    _multiplied(1, 1.0)
    best = float("inf")
    for _ in range(_TIMES):
        start = time.perf_counter()
        _multiplied(_COUNT, 1.0)
        best = min(best, time.perf_counter() - start)
    return best / _COUNT

"""The correction of a process' clock to the common clock: a shift, and a rate where a shift is not enough.

`Clock` loads kernels only when it needs them, as everything that reads or writes events imports this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from desktop.core.arrays import Floats, Ints

#: Largest plausible drift of a clock; below it times keep their order.
MOST_DRIFT = 0.1
_Ticks = TypeVar("_Ticks", int, Ints)


class Clock(NamedTuple):
    """A recorded tick t is tick ``t + shift + floor((t - origin) * drift + 1/2)`` of the common clock.

    Whole ticks become whole ticks, and keep their order (`drift` is more than -1).
    """

    shift: int = 0
    drift: float = 0.0
    origin: int = 0

    def common(self, ticks: _Ticks) -> _Ticks:
        """Recorded ticks (a number or (n,)) on the common clock."""
        if not self.drift:
            return ticks + self.shift
        from desktop.core.clock_kernels import common, to_common

        if isinstance(ticks, np.ndarray):
            return to_common(np.ascontiguousarray(ticks, np.int64), self.shift, self.drift, self.origin)
        return common(int(ticks), self.shift, self.drift, self.origin)

    def local(self, ticks: _Ticks) -> _Ticks:
        """The first recorded ticks that are not before ticks (a number or (n,)) of the common clock."""
        if not self.drift:
            return ticks - self.shift
        from desktop.core.clock_kernels import local, to_local

        if isinstance(ticks, np.ndarray):
            return to_local(np.ascontiguousarray(ticks, np.int64), self.shift, self.drift, self.origin)
        return local(int(ticks), self.shift, self.drift, self.origin)


def columns(clocks: Sequence[Clock]) -> tuple[Ints, Floats, Ints]:
    """(n,) each: shift, drift and origin."""
    shift, drift, origin = zip(*clocks, strict=True) if clocks else ((), (), ())
    return np.array(shift, np.int64), np.array(drift, np.float64), np.array(origin, np.int64)

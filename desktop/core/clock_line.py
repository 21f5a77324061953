"""The clock of a process made that of all: a shift, and a rate where a shift is not enough.

Without kernels, which `Clock` loads when it needs them: all that reads or writes events knows this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from desktop.core.arrays import Floats, Ints

#: Rates beyond this are no clock's; below it times keep their order.
MOST_DRIFT = 0.1
_Ticks = TypeVar("_Ticks", int, Ints)


class Clock(NamedTuple):
    """A tick t as recorded is tick ``t + shift + floor((t - origin) * drift + 1/2)`` of the common clock.

    Whole ticks come from whole ticks, and their order stays (`drift` is more than -1).
    """

    shift: int = 0
    drift: float = 0.0
    origin: int = 0

    def common(self, ticks: _Ticks) -> _Ticks:
        """Ticks as recorded (a number or (n,)) on the common clock."""
        if not self.drift:
            return ticks + self.shift
        from desktop.core.clock_kernels import common, to_common

        if isinstance(ticks, np.ndarray):
            return to_common(np.ascontiguousarray(ticks, np.int64), self.shift, self.drift, self.origin)
        return common(int(ticks), self.shift, self.drift, self.origin)

    def local(self, ticks: _Ticks) -> _Ticks:
        """The first tick as recorded that is not before a tick (n,) of the common clock."""
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

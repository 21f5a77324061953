"""The clock of a process made that of all: a shift, and a rate where a shift is not enough."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from desktop.core.jit import inlined, kernel

#: Rates beyond this are no clock's; below it times keep their order.
MOST_DRIFT = 0.1


class Clock(NamedTuple):
    """A tick t as recorded is tick ``t + shift + floor((t - origin) * drift + 1/2)`` of the common clock.

    Whole ticks come from whole ticks, and their order stays (`drift` is more than -1).
    """

    shift: int = 0
    drift: float = 0.0
    origin: int = 0

    def common(self, ticks: Any) -> Any:
        """Ticks as recorded (a number or (n,)) on the common clock."""
        if not self.drift:
            return ticks + self.shift
        if np.ndim(ticks):
            return to_common(np.ascontiguousarray(ticks, np.int64), self.shift, self.drift, self.origin)
        return int(common(int(ticks), self.shift, self.drift, self.origin))

    def local(self, ticks: Any) -> Any:
        """The first tick as recorded that is not before a tick (n,) of the common clock."""
        if not self.drift:
            return ticks - self.shift
        if np.ndim(ticks):
            return to_local(np.ascontiguousarray(ticks, np.int64), self.shift, self.drift, self.origin)
        return int(local(int(ticks), self.shift, self.drift, self.origin))


@inlined
def common(tick: Any, shift: Any, drift: Any, origin: Any) -> Any:
    """`Clock.common` of one tick."""
    return tick + shift + np.int64(np.floor(np.float64(tick - origin) * drift + 0.5))


@inlined
def local(tick: Any, shift: Any, drift: Any, origin: Any) -> Any:
    """`Clock.local` of one tick."""
    if drift == 0.0:
        return tick - shift
    far = tick - shift - origin
    found = origin + far - np.int64(np.floor(np.float64(far) * (drift / (1.0 + drift)) + 0.5))
    while common(found, shift, drift, origin) >= tick:
        found -= 1
    while common(found, shift, drift, origin) < tick:
        found += 1
    return found


@kernel
def corrected(ticks: Any, which: Any, shift: Any, drift: Any, origin: Any) -> Any:
    """Ticks (n,) as recorded on the common clock; each is of the clock `which` (n,) of several."""
    found = np.empty(ticks.size, np.int64)
    for i in range(ticks.size):
        c = which[i]
        found[i] = common(ticks[i], shift[c], drift[c], origin[c])
    return found


@kernel
def to_common(ticks: Any, shift: int, drift: float, origin: int) -> Any:
    found = np.empty(ticks.size, np.int64)
    for i in range(ticks.size):
        found[i] = common(ticks[i], shift, drift, origin)
    return found


@kernel
def to_local(ticks: Any, shift: int, drift: float, origin: int) -> Any:
    found = np.empty(ticks.size, np.int64)
    for i in range(ticks.size):
        found[i] = local(ticks[i], shift, drift, origin)
    return found

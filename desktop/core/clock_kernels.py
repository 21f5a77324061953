"""The corrections of `desktop.core.clock_line` as kernels, to call or to inline."""

from __future__ import annotations

import numpy as np

from desktop.core.arrays import AnyArray, Floats, Ints
from desktop.core.jit import arithmetic, inlined, kernel


@inlined
def common(tick: int, shift: int, drift: float, origin: int) -> int:
    """`Clock.common` of one tick."""
    return tick + shift + int(np.floor(np.float64(tick - origin) * drift + 0.5))


@inlined
def local(tick: int, shift: int, drift: float, origin: int) -> int:
    """`Clock.local` of one tick."""
    if drift == 0.0:
        return tick - shift
    far = tick - shift - origin
    tick_there = origin + far - int(np.floor(np.float64(far) * (drift / (1.0 + drift)) + 0.5))
    while common(tick_there, shift, drift, origin) >= tick:
        tick_there -= 1
    while common(tick_there, shift, drift, origin) < tick:
        tick_there += 1
    return tick_there


@kernel
def corrected(ticks: Ints, which: AnyArray, shift: Ints, drift: Floats, origin: Ints) -> Ints:
    """Recorded ticks (n,) on the common clock; which (n,): the clock of each."""
    common_ticks = np.empty(ticks.size, np.int64)
    for i in range(ticks.size):
        c = which[i]
        common_ticks[i] = common(ticks[i], shift[c], drift[c], origin[c])
    return common_ticks


@arithmetic
def late_messages(
    sender: Ints, receiver: Ints, sent: Ints, received: Ints, certain: Ints, process: Ints, shift: Ints,
    drift: Floats, origin: Ints, number: int, wrong: Ints, odd: Ints,
) -> None:  # fmt: skip
    """Count certain messages (n,) that are received before they are sent by the common clock: adds to `wrong`
    (3,), and to `odd` those of odd number (the first is the `number`-th), their number, and the maximum and
    the sum of the ticks by which they are. sent, received: recorded ticks; process (locations,): clock of
    each."""
    for i in range(sent.size):
        a, b = process[sender[i]], process[receiver[i]]
        late = common(sent[i], shift[a], drift[a], origin[a]) - common(
            received[i], shift[b], drift[b], origin[b]
        )
        if certain[i] == 0 or late <= 0:
            continue
        wrong[0] += 1
        wrong[1] = max(wrong[1], late)
        wrong[2] += late
        if (number + i) % 2 == 1:
            odd[0] += 1
            odd[1] = max(odd[1], late)
            odd[2] += late


@kernel
def to_common(ticks: Ints, shift: int, drift: float, origin: int) -> Ints:
    common_ticks = np.empty(ticks.size, np.int64)
    for i in range(ticks.size):
        common_ticks[i] = common(ticks[i], shift, drift, origin)
    return common_ticks


@kernel
def to_local(ticks: Ints, shift: int, drift: float, origin: int) -> Ints:
    local_ticks = np.empty(ticks.size, np.int64)
    for i in range(ticks.size):
        local_ticks[i] = local(ticks[i], shift, drift, origin)
    return local_ticks

"""How long a part of a run would last on an ideal network: no latency, infinite bandwidth.

Source: the transfer efficiency of the POP Centre of Excellence is defined by such a run; they simulate it
with Dimemas. Here every processor's own computing is replayed on the machine that costs nothing
(`desktop.core.machine`): between its pieces it waits for what it needs, which comes at once when it is sent.
Sends never wait.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from desktop.core.machine import (
    ALL_TO_ONE,
    EAGER,
    N_TO_N,
    ONE_TO_ALL,
    PREFIX,
    RECEIVE,
    SEND,
    Network,
    Schedule,
    replay,
)

Ints = NDArray[np.int64]

__all__ = ["ALL_TO_ONE", "N_TO_N", "ONE_TO_ALL", "PREFIX", "RECEIVE", "SEND", "STUCK", "ideal_duration"]

#: What `ideal_duration` returns where nobody can go on.
STUCK = -1


def ideal_duration(
    first: Ints, last: Ints, kind: NDArray[np.uint8], key: Ints, done: Ints, before: Ints, useful: Ints,
    receiver: NDArray[np.int32], root: Ints,
) -> int:  # fmt: skip
    """Ticks until the last processor has ended, or STUCK.

    Parameters
    ----------
    first, last : (p,) the operations of each processor, in its order.
    kind, key : (n,) of each operation; the number of its message or of its collective.
    done : (n,) ticks that its processor has computed before it since some beginning.
    before, useful : (p,) the same at the start of the replay, and how much it computes in all of it.
    receiver : (messages,) processor; root : (collectives,) processor, -1 if there is none.
    """
    some = last > first
    gap = np.zeros(kind.size)
    gap[1:] = np.diff(done)
    gap[first[some]] = (done[first[some]] - before[some]).astype(float)
    counted = before.copy()
    counted[some] = done[last[some] - 1]
    rest = (before + useful - counted).astype(float)
    schedule = Schedule(
        first, last, kind.astype(np.int64), key, gap, np.zeros(kind.size), np.zeros(kind.size, np.bool_),
        np.zeros(first.size), rest,
    )  # fmt: skip
    none = np.zeros(receiver.size)
    network = Network(
        receiver.astype(np.int64), none, np.full(receiver.size, EAGER), root, np.zeros(root.size)
    )
    return round(replay(schedule, network).duration)

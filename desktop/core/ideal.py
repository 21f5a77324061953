"""The duration of a part of a run on an ideal network: no latency, infinite bandwidth.

Source: the transfer efficiency of the POP Centre of Excellence is defined by such a run, which they simulate
with Dimemas. Here every processor's own computing is replayed on the ideal machine (`desktop.core.machine`),
where messages arrive as soon as they are sent and sends never wait.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from desktop.core.arrays import AnyArray, Bytes, Floats, Ints
from desktop.core.jit import kernel
from desktop.core.machine import RECEIVE, SEND, Network, Schedule, replay

#: What `ideal_duration` returns for a deadlock.
STUCK = -1


# Many: arrays that a kernel takes one by one.
def ideal_duration(
    first: Ints, last: Ints, kind: Bytes, key: NDArray[np.int32], done: Ints, before: Ints, useful: Ints,
    receiver: NDArray[np.int32], root: Ints,
) -> int:  # fmt: skip
    """Ticks until the last processor has ended, or STUCK.

    Parameters
    ----------
    first, last : (p,) the operations of each processor, in its order.
    kind, key : (n,) of each operation; the number of its message or of its collective.
    done : (n,) ticks that its processor has computed before it, from any origin.
    before, useful : (p,) the same at the start of the replay, and the ticks that it computes in all of it.
    receiver : (messages,) processor; root : (collectives,) processor, -1 if there is none.
    """
    lengths = last - first
    begin = np.concatenate([[0], np.cumsum(lengths)])
    kinds, keys, gap = np.empty(begin[-1], np.uint8), np.empty(begin[-1], np.int32), np.empty(begin[-1])
    of_message, of_collective = np.empty(begin[-1], np.int32), np.empty(begin[-1], np.int32)
    # For a short part of a long run, only the memory of that part is touched.
    numbers = np.zeros(receiver.size, np.int32), np.zeros(root.size, np.int32)
    messages, collectives = take_part(
        first, last, kind, key, done, before, *numbers, kinds, keys, gap, of_message, of_collective
    )
    some = lengths > 0
    counted = before.copy()
    counted[some] = done[last[some] - 1]
    tail = (before + useful - counted).astype(float)
    schedule = Schedule(
        begin[:-1], begin[1:], kinds, keys, gap, np.zeros(kinds.size), np.zeros(kinds.size, np.bool_),
        np.zeros(first.size), tail,
    )  # fmt: skip
    receivers, roots = receiver[of_message[:messages]], root[of_collective[:collectives]]
    del numbers, of_message, of_collective
    # All are EAGER, which is 0: zeros that are only read take no memory, and allocation took most time.
    network = Network(
        receivers, np.zeros(messages), np.zeros(messages, np.uint8), roots,
        np.zeros(collectives),
    )  # fmt: skip
    return round(replay(schedule, network, times=False).duration)


@kernel
def take_part(
    first: Ints, last: Ints, kind: Bytes, key: AnyArray, done: Ints, before: Ints, of_message: AnyArray,
    of_collective: AnyArray, kinds: Bytes, keys: AnyArray, gap: Floats, messages: AnyArray,
    collectives: AnyArray,
) -> tuple[int, int]:  # fmt: skip
    """Concatenate the operations from `first` to before `last` (p,): kind, a new number of the message or
    collective from 0 on, and ticks computed since the operation before. of_message, of_collective: zeros, for
    the new numbers; messages, collectives: the old numbers by new ones. Returns how many there are of
    both."""
    n = m = c = 0
    for p in range(first.size):
        reached = before[p]
        for i in range(first[p], last[p]):
            number = key[i]
            if kind[i] == SEND or kind[i] == RECEIVE:
                if of_message[number] == 0:
                    messages[m] = number
                    m += 1
                    of_message[number] = m
                keys[n] = of_message[number] - 1
            else:
                if of_collective[number] == 0:
                    collectives[c] = number
                    c += 1
                    of_collective[number] = c
                keys[n] = of_collective[number] - 1
            kinds[n] = kind[i]
            gap[n] = done[i] - reached
            reached = done[i]
            n += 1
    return m, c

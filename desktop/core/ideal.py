"""How long a part of a run would last on an ideal network: no latency, infinite bandwidth.

Source: the transfer efficiency of the POP Centre of Excellence is defined by such a run; they simulate it
with Dimemas. Here every processor's own computing is replayed, and between its pieces it waits for what it
needs, which comes at once when it is sent: a receive for its send, an n-to-n collective for all arrivals,
a one-to-all for its root, the root of an all-to-one for all others, a scan for those before it in order.
Sends never wait.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from desktop.core.jit import kernel

#: Kinds of operations.
SEND, RECEIVE, N_TO_N, ONE_TO_ALL, ALL_TO_ONE, PREFIX = range(6)

#: What `ideal_duration` returns where nobody can go on.
STUCK = -1

_ELSEWHERE = -2  # a send that is no part of the replay: what it sent is there
_AWAITED = -1


@kernel
def ideal_duration(
    first: Any, last: Any, kind: Any, key: Any, done: Any, before: Any, useful: Any, receiver: Any, root: Any
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
    processors = first.size
    sent = np.full(receiver.size, _ELSEWHERE, np.int64)
    members = np.zeros(root.size, np.int64)
    arrived = np.zeros(root.size, np.int64)
    latest = np.zeros(root.size, np.int64)
    root_here = np.zeros(root.size, np.bool_)
    root_came = np.zeros(root.size, np.bool_)
    queue = np.full(root.size, -1, np.int64)  # first of those that wait in a collective
    scanned = 0  # members of scans
    scan = np.full(root.size, -1, np.int64)  # where those of each begin
    for p in range(processors):
        for i in range(first[p], last[p]):
            if kind[i] == SEND:
                sent[key[i]] = _AWAITED
            elif kind[i] != RECEIVE:
                members[key[i]] += 1
                if root[key[i]] == p:
                    root_here[key[i]] = True
                if kind[i] == PREFIX:
                    scan[key[i]] = 0
    for what in range(root.size):
        if scan[what] == 0:
            scan[what] = scanned
            scanned += members[what]
    came = np.full(scanned, -1, np.int64)  # when each member of a scan came, in order of processors
    who = np.full(scanned, -1, np.int64)
    filled = np.zeros(root.size, np.int64)
    for p in range(processors):
        for i in range(first[p], last[p]):
            if kind[i] == PREFIX:
                who[scan[key[i]] + filled[key[i]]] = p
                filled[key[i]] += 1
    front = np.zeros(root.size, np.int64)  # so many of the first members have come
    clock = np.zeros(processors, np.int64)
    counted = before.copy()
    at = first.copy()
    message = np.full(processors, -1, np.int64)  # for which one waits
    behind = np.full(processors, -1, np.int64)  # next in the same queue
    joined = np.zeros(processors, np.bool_)
    ready = np.arange(processors - 1, -1, -1)
    n = processors
    while n > 0:
        n -= 1
        p = ready[n]
        while at[p] < last[p]:
            i = at[p]
            k, what = kind[i], key[i]
            clock[p] += done[i] - counted[p]
            counted[p] = done[i]
            if k == SEND:
                sent[what] = clock[p]
                other = receiver[what]
                if message[other] == what:
                    message[other] = -1
                    ready[n] = other
                    n += 1
            elif k == RECEIVE:
                if sent[what] == _AWAITED:
                    message[p] = what
                    break
                clock[p] = max(clock[p], sent[what])
            elif k == N_TO_N:
                if not joined[p]:
                    arrived[what] += 1
                    latest[what] = max(latest[what], clock[p])
                    if arrived[what] < members[what]:
                        joined[p] = True
                        behind[p] = queue[what]
                        queue[what] = p
                        break
                    n = wake(queue, what, behind, ready, n)
                joined[p] = False
                clock[p] = latest[what]
            elif k == ONE_TO_ALL:
                if p == root[what]:
                    latest[what] = clock[p]
                    root_came[what] = True
                    n = wake(queue, what, behind, ready, n)
                elif root_here[what]:
                    if not root_came[what]:
                        behind[p] = queue[what]
                        queue[what] = p
                        break
                    clock[p] = max(clock[p], latest[what])
            elif k == PREFIX:
                begin = scan[what]
                if not joined[p]:
                    joined[p] = True
                    here = begin + np.searchsorted(who[begin : begin + members[what]], p)
                    came[here] = clock[p]
                    before_it = front[what]
                    while front[what] < members[what] and came[begin + front[what]] >= 0:
                        front[what] += 1
                    if front[what] > before_it:
                        n = wake(queue, what, behind, ready, n)
                place = np.searchsorted(who[begin : begin + members[what]], p)
                if front[what] < place:
                    behind[p] = queue[what]
                    queue[what] = p
                    break
                joined[p] = False
                for other in range(begin, begin + place):
                    clock[p] = max(clock[p], came[other])
            elif p == root[what]:
                if arrived[what] < members[what] - 1:
                    behind[p] = queue[what]
                    queue[what] = p
                    break
                clock[p] = max(clock[p], latest[what])
            else:
                arrived[what] += 1
                latest[what] = max(latest[what], clock[p])
                if root_here[what] and arrived[what] == members[what] - 1:
                    n = wake(queue, what, behind, ready, n)
            at[p] += 1
    ends = 0
    for p in range(processors):
        if at[p] < last[p]:
            return STUCK
        ends = max(ends, clock[p] + before[p] + useful[p] - counted[p])
    return ends


@kernel
def wake(queue: Any, what: int, behind: Any, ready: Any, n: int) -> int:
    """Put all that wait in a collective on the list of those that can go on; its new length."""
    p = queue[what]
    queue[what] = -1
    while p >= 0:
        ready[n] = p
        n += 1
        p = behind[p]
    return n

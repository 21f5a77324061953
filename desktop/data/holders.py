"""For whom the threads of a process waited: who held a lock, and who came last to a barrier.

Traces seldom name a lock, so the waits in one region (a call, a critical construct) of a process are assumed
to be for the same lock. While a thread waits there, the last one that got the lock holds it: locks are taken
at the ends of the waits, however short these are. A barrier ends for all when the last one enters it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from desktop.core.accounts import Account
from desktop.core.arrays import Floats, Ints
from desktop.core.wait_kernels import held_by, met_by
from desktop.data.matching import process_of
from desktop.data.store import TraceStore

#: Most pieces of waiting that are distinguished; beyond, no holder is named.
MOST = 5_000_000


class ThreadWaits(NamedTuple):
    """Waiting (pieces,): begin, end (ticks), holder (location, -1 unknown), account, region."""

    begin: Ints
    end: Ints
    holder: Ints
    account: Ints
    region: Ints

    def between(self, first: int, last: int, places: int, unit: float) -> dict[tuple[int, int], Floats]:
        """By account and region the seconds (locations,) for which each was waited for in a range."""
        length = np.minimum(self.end, last) - np.maximum(self.begin, first)
        inside = (length > 0) & (self.holder >= 0)
        waited: dict[tuple[int, int], Floats] = {}
        which = np.stack([self.account[inside], self.region[inside]])
        for account, region in np.unique(which, axis=1).T.tolist():
            mine = (which[0] == account) & (which[1] == region)
            ticks = np.bincount(self.holder[inside][mine], length[inside][mine], places)
            waited[account, region] = (ticks * unit).astype(np.float64)
        return waited


def holders(store: TraceStore, waits: Sequence[Ints]) -> ThreadWaits:
    """`waits` : for each location (4, n) begin, end, account (`LOCK` or `THREADS`) and region of its waits
    for other threads, in order."""
    process, names = process_of(store), [region.name.lower() for region in store.regions]
    location = np.repeat(np.arange(len(waits)), [one.shape[1] for one in waits])
    begin, end, account, region = np.concatenate([np.zeros((4, 0), np.int64), *waits], axis=1)
    gets = np.array(["unlock" not in name and "sblock" not in name for name in names] + [False], bool)
    meets = np.array(["barrier" in name for name in names] + [False], bool)
    lock = account == Account.LOCK
    taking = np.flatnonzero(np.where(lock, gets[region], meets[region]))
    parts = [np.zeros((3, 0), np.int64)]
    rows = [np.zeros(0, np.int64)]
    keys = np.stack([process[location[taking]], region[taking]])
    for key in np.unique(keys, axis=1).T:
        mine = taking[(keys == key[:, None]).all(axis=0)]
        if np.unique(location[mine]).size < 2:
            continue
        mine = mine[np.lexsort((begin[mine], end[mine] if lock[mine[0]] else begin[mine]))]
        room = min(MOST, 4 * mine.size + 64)
        while True:
            out = np.empty((4, room), np.int64)
            part = held_by if lock[mine[0]] else met_by
            n = part(begin[mine], end[mine], location[mine], out)
            if n <= room or room >= MOST:
                break
            room = min(MOST, n)
        if n <= room:
            parts.append(out[:3, :n])
            rows.append(mine[out[3, :n]])
    (a, b, who), row = np.concatenate(parts, axis=1), np.concatenate(rows)
    return ThreadWaits(a, b, who, account[row], region[row])

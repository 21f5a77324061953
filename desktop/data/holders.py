"""Whom threads of a process waited for: who held a lock, and who came last to a barrier.

Traces seldom name a lock, so the waits in one region (a call, a critical construct) of a process are taken
for those of one lock. While somebody waits in it, whoever got it last holds it: times of getting it are the
ends of the waits, however short. A barrier ends for all that are in it when the last one comes.
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

#: Pieces of waiting that are told apart; of more nobody is named.
MOST = 5_000_000


class ThreadWaits(NamedTuple):
    """Waiting (pieces,): begin, end (ticks), holder (location, -1 not known), account, region."""

    begin: Ints
    end: Ints
    holder: Ints
    account: Ints
    region: Ints

    def between(self, first: int, last: int, places: int, unit: float) -> dict[tuple[int, int], Floats]:
        """By account and region the seconds (locations,) that each was waited for in a range."""
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
    """`waits` : of each location (4, n) begin, end, account (`LOCK` or `THREADS`) and region of the times in
    which it waits for other threads, in order."""
    process, names = process_of(store), [region.name.lower() for region in store.regions]
    where = np.repeat(np.arange(len(waits)), [one.shape[1] for one in waits])
    begin, end, account, region = np.concatenate([np.zeros((4, 0), np.int64), *waits], axis=1)
    gets = np.array(["unlock" not in name and "sblock" not in name for name in names] + [False], bool)
    meets = np.array(["barrier" in name for name in names] + [False], bool)
    lock = account == Account.LOCK
    chosen = np.flatnonzero(np.where(lock, gets[region], meets[region]))
    parts = [np.zeros((3, 0), np.int64)]
    rows = [np.zeros(0, np.int64)]
    keys = np.stack([process[where[chosen]], region[chosen]])
    for key in np.unique(keys, axis=1).T:
        mine = chosen[(keys == key[:, None]).all(axis=0)]
        if np.unique(where[mine]).size < 2:
            continue
        mine = mine[np.lexsort((begin[mine], end[mine] if lock[mine[0]] else begin[mine]))]
        room = min(MOST, 4 * mine.size + 64)
        while True:
            out = np.empty((4, room), np.int64)
            part = held_by if lock[mine[0]] else met_by
            n = part(begin[mine], end[mine], where[mine], out)
            if n <= room or room >= MOST:
                break
            room = min(MOST, n)
        if n <= room:
            parts.append(out[:3, :n])
            rows.append(mine[out[3, :n]])
    (a, b, who), row = np.concatenate(parts, axis=1), np.concatenate(rows)
    return ThreadWaits(a, b, who, account[row], region[row])

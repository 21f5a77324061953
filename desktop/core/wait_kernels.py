"""Kernels behind `desktop.data.causality`: who waited for whom, and for how long in which range."""

from __future__ import annotations

from typing import Any

import numpy as np

from desktop.core import ideal
from desktop.core.jit import kernel
from desktop.core.open_regions import BEGIN


@kernel
def put_in_places(where: Any, filled: Any, order: Any) -> None:
    """Indices (n,) by place; `filled` (places,): where those of each begin."""
    for i in range(where.size):
        order[filled[where[i]]] = i
        filled[where[i]] += 1


@kernel
def waited_for(start: Any, kind: Any, location: Any, begin: Any, is_root: Any, late: Any, who: Any) -> None:
    """Of each member (n,) of collective operations until when it waits, `BEGIN` for nobody, and for whom."""
    for c in range(start.size - 1):
        last = before = root = -1
        for row in range(start[c], start[c + 1]):
            if last < 0 or begin[row] > begin[last]:
                last = row
            if is_root[row] and (root < 0 or begin[row] > begin[root]):
                root = row
        for row in range(start[c], start[c + 1]):
            awaited = -1
            if kind[c] == ideal.N_TO_N or (kind[c] == ideal.ALL_TO_ONE and is_root[row]):
                awaited = last
            elif kind[c] == ideal.ONE_TO_ALL and not is_root[row]:
                awaited = root
            elif kind[c] == ideal.PREFIX:
                awaited = before
                if before < 0 or begin[row] > begin[before]:
                    before = row
            late[row] = begin[awaited] if awaited >= 0 else BEGIN
            who[row] = location[awaited] if awaited >= 0 else -1


@kernel
def offer(
    call: Any, late: Any, account: Any, partner: Any, key: Any, end: Any, best: Any, latest: Any,
    accounts: Any, partners: Any, keys: Any, held: Any,
) -> None:  # fmt: skip
    """Operations (n,), each in a call (-1: in none) that waits until `late` (`BEGIN`: for nobody): of each
    call (calls,) the one that it waits for longest."""
    for i in range(call.size):
        c = call[i]
        if c < 0:
            continue
        held[c] |= 1
        if late[i] == BEGIN:
            continue
        held[c] |= 2
        until = min(late[i], end[c])
        if until > best[c]:
            best[c] = until
            latest[c] = late[i]
            accounts[c] = account[i]
            partners[c] = partner[i]
            keys[c] = key[i]


@kernel
def hold(call: Any, held: Any) -> None:
    """There are operations in these calls (-1: in none)."""
    for i in range(call.size):
        if call[i] >= 0:
            held[call[i]] |= 1


@kernel
def call_of_partner(partner: Any, time: Any, start: Any, begin: Any, end: Any, found: Any) -> None:
    """The row of the call in which each partner is at a time; -1 as given for none."""
    for i in range(partner.size):
        a, b = start[partner[i]], start[partner[i] + 1]
        at = a + np.searchsorted(begin[a:b], time[i], side="right") - 1
        if at >= a and time[i] <= end[at]:
            found[i] = at


@kernel
def count_kinds(first: Any, last: Any, kind: Any) -> Any:
    """(6,) operations of each kind, from `first` to before `last` (locations,)."""
    found = np.zeros(6, np.int64)
    for p in range(first.size):
        for i in range(first[p], last[p]):
            found[kind[i]] += 1
    return found


@kernel
def meet_in_order(time: Any, peer: Any, when: Any, other: Any, found: Any) -> None:
    """Which of the ends (m,) of messages each row (n,) is, both by time and peer; -1 as given for none."""
    k = 0
    for i in range(time.size):
        while k < when.size and (when[k] < time[i] or (when[k] == time[i] and other[k] < peer[i])):
            k += 1
        if k < when.size and when[k] == time[i] and other[k] == peer[i]:
            found[i] = k
            k += 1


@kernel
def outer_calls(
    time: Any, kind: Any, region: Any, speaks: Any, opened: Any, depth: int, since: Any, outer: Any, out: Any
) -> Any:  # fmt: skip
    """Times and outermost region (3, n) in which any region that `speaks` is open. Returns n and the state
    for the next block; `opened` (regions,) counts what is open."""
    n = 0
    for i in range(time.size):
        r = np.int64(region[i])
        if not speaks[r]:
            continue
        if kind[i] == 0:
            opened[r] += 1
            depth += 1
            if depth == 1:
                since = time[i]
                outer = r
        elif opened[r] > 0:
            opened[r] -= 1
            depth -= 1
            if depth == 0:
                out[0, n] = since
                out[1, n] = time[i]
                out[2, n] = outer
                n += 1
    return n, depth, since, outer


@kernel
def clipped(begin: Any, end: Any, since: Any, until: Any, out: Any) -> int:
    """What of intervals (n,) lies in others (m,); both in order and without overlap. `out` (3, n + m): begin,
    end, and of which of the n; how many these are."""
    n = 0
    j = 0
    for i in range(begin.size):
        while j < since.size and until[j] <= begin[i]:
            j += 1
        k = j
        while k < since.size and since[k] < end[i]:
            out[0, n] = max(begin[i], since[k])
            out[1, n] = min(end[i], until[k])
            out[2, n] = i
            n += 1
            k += 1
    return n


@kernel
def spent_until(begin: Any, end: Any, what: Any, every: int, sums: Any, cuts: Any, out: Any) -> None:
    """Add to `out` (cuts, kinds) the ticks of intervals (n,), in order and without overlap, of each kind
    before each cut. `sums` (n // every + 1, kinds): those of all before every so-manieth interval."""
    for c in range(cuts.size):
        block = np.searchsorted(begin, cuts[c]) // every
        for k in range(sums.shape[1]):
            out[c, k] += sums[block, k]
        for i in range(block * every, begin.size):
            if begin[i] >= cuts[c]:
                break
            out[c, what[i]] += min(end[i], cuts[c]) - begin[i]


@kernel
def sums_of(begin: Any, end: Any, what: Any, every: int, sums: Any) -> None:
    """`sums` of `spent_until`."""
    for i in range(begin.size):
        if i and i % every == 0:
            for k in range(sums.shape[1]):
                sums[i // every, k] += sums[i // every - 1, k]
        if i // every + 1 < sums.shape[0]:
            sums[i // every + 1, what[i]] += end[i] - begin[i]


@kernel
def held_by(begin: Any, end: Any, where: Any, out: Any) -> int:
    """Waits (n,) for one lock, by end: pieces (4, pieces) begin, end, who had got it last, and of which wait.
    How many there are, also those for which there is no room."""
    n = 0
    for i in range(end.size):
        k = np.searchsorted(end, begin[i], side="right") - 1  # the last to get it before
        until = begin[i]
        while k < i:
            since = until
            until = min(end[k + 1], end[i])
            if k >= 0 and where[k] != where[i] and until > since:
                if n < out.shape[1]:
                    out[0, n], out[1, n], out[2, n], out[3, n] = since, until, where[k], i
                n += 1
            k += 1
    return n


@kernel
def met_by(begin: Any, end: Any, where: Any, out: Any) -> int:
    """The same of barriers, waits by begin: until the last of those that are in it when a wait ends."""
    n = 0
    for i in range(begin.size):
        k = np.searchsorted(begin, end[i], side="right") - 1
        while k > i and end[k] < end[i] and begin[k] > begin[i] and where[k] == where[i]:
            k -= 1
        if k > i and where[k] != where[i] and begin[k] > begin[i]:
            if n < out.shape[1]:
                out[0, n], out[1, n], out[2, n], out[3, n] = begin[i], begin[k], where[k], i
            n += 1
    return n

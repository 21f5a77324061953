"""Kernels of `desktop.data.causality`: wait states with their partners, and their time in ranges."""

from __future__ import annotations

import numpy as np

from desktop.core import machine
from desktop.core.arrays import AnyArray, Bytes, Flags, Ints
from desktop.core.jit import inlined, kernel
from desktop.core.open_regions import BEGIN


@kernel
def put_in_places(place: AnyArray, filled: Ints, order: Ints) -> None:
    """Set `order` (n,) to the indices sorted by `place`; filled (places,): begin of each."""
    for i in range(place.size):
        order[filled[place[i]]] = i
        filled[place[i]] += 1


@kernel
def waited_for(
    start: Ints, kind: Ints, location: Ints, begin: Ints, is_root: Flags, late: Ints, who: Ints
) -> None:
    """Set for each member (n,) of collective operations until when it waits (`late`, `BEGIN` if it does not)
    and for which location (`who`, -1)."""
    for c in range(start.size - 1):
        last = before = root = -1
        for row in range(start[c], start[c + 1]):
            if last < 0 or begin[row] > begin[last]:
                last = row
            if is_root[row] and (root < 0 or begin[row] > begin[root]):
                root = row
        for row in range(start[c], start[c + 1]):
            awaited = -1
            if kind[c] == machine.N_TO_N or (kind[c] == machine.ALL_TO_ONE and is_root[row]):
                awaited = last
            elif kind[c] == machine.ONE_TO_ALL and not is_root[row]:
                awaited = root
            elif kind[c] == machine.PREFIX:
                awaited = before
                if before < 0 or begin[row] > begin[before]:
                    before = row
            late[row] = begin[awaited] if awaited >= 0 else BEGIN
            who[row] = location[awaited] if awaited >= 0 else -1


@inlined
def offer(
    c: int, late: int, account: int, partner: int, key: int, end: Ints, best: Ints, latest: Ints,
    accounts: Bytes, partners: AnyArray, keys: AnyArray, held: Bytes,
) -> None:  # fmt: skip
    """Let call `c` wait until `late` unless it waits longer already; of equally late reasons of one account
    the lowest key counts."""
    held[c] |= 3
    until = min(late, end[c])
    if until > best[c] or (until == best[c] and account == accounts[c] and key < keys[c]):
        best[c] = until
        latest[c] = late
        accounts[c] = account
        partners[c] = partner
        keys[c] = key


@kernel
def offer_each(
    call: Ints, late: Ints, account: int, partner: AnyArray, key: AnyArray, end: Ints, best: Ints,
    latest: Ints, accounts: Bytes, partners: AnyArray, keys: AnyArray, held: Bytes,
) -> None:  # fmt: skip
    """`offer` for operations (n,), each in a call (calls,) that waits for `partner` until `late`."""
    for i in range(call.size):
        offer(
            call[i], late[i], account, partner[i], key[i], end, best, latest, accounts, partners, keys, held
        )


@kernel
def offer_received(
    a: int, call: AnyArray, kind: Bytes, key: AnyArray, sent: Ints, sender: AnyArray, account: int, end: Ints,
    best: Ints, latest: Ints, accounts: Bytes, partners: AnyArray, keys: AnyArray, held: Bytes,
) -> None:  # fmt: skip
    """`offer` for the receives among the operations (n,) of a location, whose calls are numbered from `a`;
    and mark calls with any operation in `held`."""
    for i in range(call.size):
        c = call[i] - a
        if call[i] < 0:
            continue
        held[c] |= 1
        if kind[i] == machine.RECEIVE:
            m = key[i]
            offer(c, sent[m], account, sender[m], m, end, best, latest, accounts, partners, keys, held)


@kernel
def offer_collective(
    a: int, call: AnyArray, kind: Bytes, key: AnyArray, member: AnyArray, needed: Ints, partner: AnyArray,
    account: Bytes, barrier: Flags, is_barrier: int, end: Ints, best: Ints, latest: Ints, accounts: Bytes,
    partners: AnyArray, keys: AnyArray, held: Bytes,
) -> None:  # fmt: skip
    """`offer` for the collective operations of a location: `member` (n,) rows of `needed` and `partner` (from
    `waited_for`); `account` by kind, but `is_barrier` for instances that are a `barrier`."""
    for i in range(call.size):
        if call[i] < 0 or kind[i] == machine.SEND or kind[i] == machine.RECEIVE:
            continue
        late = needed[member[i]]
        if late != BEGIN:
            offer(
                call[i] - a, late, is_barrier if barrier[key[i]] else account[kind[i]], partner[member[i]],
                key[i], end, best, latest, accounts, partners, keys, held,
            )  # fmt: skip


@kernel
def call_of_partner(
    partner: AnyArray, time: Ints, start: Ints, begin: Ints, end: Ints, row: AnyArray
) -> None:
    """Set `row` (n,) to the call in which each partner is at its time; unchanged if it is in none."""
    for i in range(partner.size):
        a, b = start[partner[i]], start[partner[i] + 1]
        at = a + np.searchsorted(begin[a:b], time[i], side="right") - 1
        if at >= a and time[i] <= end[at]:
            row[i] = at


@kernel
def count_kinds(first: Ints, last: Ints, kind: Bytes) -> Ints:
    """(6,) operations of each kind, from `first` to before `last` (locations,)."""
    count = np.zeros(6, np.int64)
    for p in range(first.size):
        for i in range(first[p], last[p]):
            count[kind[i]] += 1
    return count


@kernel
def meet_in_order(time: Ints, peer: Ints, when: Ints, end_peer: Ints, row: Ints) -> None:
    """Set `row` (n,) to the index of the message end (m,) with equal time and peer, both sorted by these;
    unchanged if there is none."""
    k = 0
    for i in range(time.size):
        while k < when.size and (when[k] < time[i] or (when[k] == time[i] and end_peer[k] < peer[i])):
            k += 1
        if k < when.size and when[k] == time[i] and end_peer[k] == peer[i]:
            row[i] = k
            k += 1


@kernel
def outer_calls(
    time: Ints, kind: Bytes, region: AnyArray, speaks: Bytes, open_count: Ints, depth: int, calls: int,
    since: int, outer: int, n: int, begin: Ints, end: Ints, regions: AnyArray,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """Intervals (room,) in which any call is open, with the outermost one, from the n-th on; and those of
    states in which none is. `speaks` (regions,): 1 of calls, 2 of states, else 0. Returns n, -1 if there is
    not enough room, and the state for the next block; `open_count` (regions,) counts open regions."""
    for i in range(time.size):
        r = np.int64(region[i])
        if not speaks[r]:
            continue
        call = speaks[r] == 1
        if kind[i] == 0:
            open_count[r] += 1
            depth += 1
            calls += call
            if (calls if call else depth) == 1:
                since = time[i]
                outer = int(r)
        elif open_count[r] > 0:
            open_count[r] -= 1
            depth -= 1
            calls -= call
            if (calls if call else depth) == 0 and outer >= 0:
                if n == begin.size:
                    return -1, depth, calls, since, outer
                begin[n] = since
                end[n] = time[i]
                regions[n] = outer
                n += 1
                outer = -1
    return n, depth, calls, since, outer


@kernel
def spent_before(time: Ints, begin: Ints, end: Ints, kinds: Bytes, counts: Flags, out: Ints) -> None:
    """Set `out` to the ticks before each time of intervals (n,) of kinds that count; all in order of time."""
    k, before = 0, 0
    for i in range(time.size):
        while k + 1 < begin.size and begin[k + 1] <= time[i]:
            before += end[k] - begin[k] if counts[kinds[k]] else 0
            k += 1
        out[i] = before
        if k < begin.size and counts[kinds[k]]:
            out[i] += max(min(time[i], end[k]) - begin[k], 0)


@kernel
def are_those(begin: Ints, end: Ints, kinds: Bytes, counts: Flags, others: Ints, until: Ints) -> bool:
    """Whether the intervals of kinds that count are exactly the others (m,)."""
    n = 0
    for i in range(begin.size):
        if counts[kinds[i]]:
            if n == others.size or begin[i] != others[n] or end[i] != until[n]:
                return False
            n += 1
    return n == others.size


@kernel
def within(time: Ints, over: Flags, begin: Ints, end: Ints, first: int, used: Bytes, out: Ints) -> None:
    """See `call_at` of `desktop.data.call_tables`; `used` (calls,) zeros."""
    k = 0
    for i in range(time.size):
        if i == 0 or time[i] < time[i - 1]:
            k = np.searchsorted(begin, time[i], side="right")
        while k < begin.size and begin[k] <= time[i]:
            k += 1
        at = k - 1
        if at >= 0 and time[i] <= end[at]:
            used[at] = 1
            out[i] = at + first
        else:
            out[i] = -1
    for i in range(time.size):
        at = out[i] - first
        if out[i] >= 0 and over[i] and at > 0 and begin[at] == time[i] == end[at - 1] and not used[at - 1]:
            out[i] -= 1


@kernel
def clipped(begin: Ints, end: Ints, since: Ints, until: Ints, out: Ints) -> int:
    """Intersection of intervals (n,) with others (m,), both in order and without overlap. Sets `out`
    (3, n + m): begin, end, and index of the n; returns their number."""
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
def spent_until(begin: Ints, end: Ints, kinds: Bytes, every: int, sums: Ints, cuts: Ints, out: Ints) -> None:
    """Add to `out` (cuts, kinds) the ticks of each kind before each cut, of intervals (n,) in order and
    without overlap. sums (n // every + 1, kinds): sums of all intervals before each `every`-th one."""
    for c in range(cuts.size):
        block = np.searchsorted(begin, cuts[c]) // every
        for k in range(sums.shape[1]):
            out[c, k] += sums[block, k]
        for i in range(block * every, begin.size):
            if begin[i] >= cuts[c]:
                break
            out[c, kinds[i]] += min(end[i], cuts[c]) - begin[i]


@kernel
def sums_of(begin: Ints, end: Ints, kinds: Bytes, every: int, sums: Ints) -> None:
    """Set `sums` of `spent_until`."""
    for i in range(begin.size):
        if i and i % every == 0:
            for k in range(sums.shape[1]):
                sums[i // every, k] += sums[i // every - 1, k]
        if i // every + 1 < sums.shape[0]:
            sums[i // every + 1, kinds[i]] += end[i] - begin[i]


@kernel
def held_by(begin: Ints, end: Ints, location: Ints, out: Ints) -> int:
    """Waits (n,) for one lock, sorted by end, in pieces (4, pieces): begin, end, the location that held the
    lock, and the wait. Returns their number, including those without room."""
    n = 0
    for i in range(end.size):
        k = np.searchsorted(end, begin[i], side="right") - 1  # the last to get it before
        until = begin[i]
        while k < i:
            since = until
            until = min(end[k + 1], end[i])
            if k >= 0 and location[k] != location[i] and until > since:
                if n < out.shape[1]:
                    out[0, n], out[1, n], out[2, n], out[3, n] = since, until, location[k], i
                n += 1
            k += 1
    return n


@kernel
def met_by(begin: Ints, end: Ints, location: Ints, out: Ints) -> int:
    """The same for barriers, waits sorted by begin: each until the last of those enters that are inside when
    it ends."""
    n = 0
    for i in range(begin.size):
        k = np.searchsorted(begin, end[i], side="right") - 1
        while k > i and end[k] < end[i] and begin[k] > begin[i] and location[k] == location[i]:
            k -= 1
        if k > i and location[k] != location[i] and begin[k] > begin[i]:
            if n < out.shape[1]:
                out[0, n], out[1, n], out[2, n], out[3, n] = begin[i], begin[k], location[k], i
            n += 1
    return n

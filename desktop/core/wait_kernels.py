"""Kernels behind `desktop.data.causality`: who waited for whom, and for how long in which range."""

from __future__ import annotations

import numpy as np

from desktop.core import ideal
from desktop.core.arrays import AnyArray, Bytes, Flags, Ints
from desktop.core.jit import inlined, kernel
from desktop.core.open_regions import BEGIN


@kernel
def put_in_places(where: AnyArray, filled: Ints, order: Ints) -> None:
    """Indices (n,) by place; `filled` (places,): where those of each begin."""
    for i in range(where.size):
        order[filled[where[i]]] = i
        filled[where[i]] += 1


@kernel
def waited_for(
    start: Ints, kind: Ints, location: Ints, begin: Ints, is_root: Flags, late: Ints, who: Ints
) -> None:
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


@inlined
def offer(
    c: int, late: int, account: int, partner: int, key: int, end: Ints, best: Ints, latest: Ints,
    accounts: Bytes, partners: AnyArray, keys: AnyArray, held: Bytes,
) -> None:  # fmt: skip
    """A call waits until `late`, if nothing later has been offered; of equally late ones of one account the
    lowest key."""
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
    """Operations (n,), each in a call (calls,) that waits for `partner` until `late`."""
    for i in range(call.size):
        offer(
            call[i], late[i], account, partner[i], key[i], end, best, latest, accounts, partners, keys, held
        )


@kernel
def offer_received(
    a: int, call: AnyArray, kind: Bytes, key: AnyArray, sent: Ints, sender: AnyArray, account: int, end: Ints,
    best: Ints, latest: Ints, accounts: Bytes, partners: AnyArray, keys: AnyArray, held: Bytes,
) -> None:  # fmt: skip
    """Of the operations (n,) of a location, whose calls are counted from `a`, its receives; and which calls
    hold any operation."""
    for i in range(call.size):
        c = call[i] - a
        if call[i] < 0:
            continue
        held[c] |= 1
        if kind[i] == ideal.RECEIVE:
            m = key[i]
            offer(c, sent[m], account, sender[m], m, end, best, latest, accounts, partners, keys, held)


@kernel
def offer_collective(
    a: int, call: AnyArray, kind: Bytes, key: AnyArray, member: AnyArray, needed: Ints, partner: AnyArray,
    account: Bytes, barrier: Flags, is_barrier: int, end: Ints, best: Ints, latest: Ints, accounts: Bytes,
    partners: AnyArray, keys: AnyArray, held: Bytes,
) -> None:  # fmt: skip
    """The same, its collective operations: `member` (n,) rows of `needed` and `partner` (`waited_for`);
    `account` by kind, and `is_barrier` of instances that are a `barrier`."""
    for i in range(call.size):
        if call[i] < 0 or kind[i] == ideal.SEND or kind[i] == ideal.RECEIVE:
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
    """The row of the call in which each partner is at a time; -1 as given for none."""
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
def meet_in_order(time: Ints, peer: Ints, when: Ints, other: Ints, row: Ints) -> None:
    """Which of the ends (m,) of messages each row (n,) is, both by time and peer; -1 as given for none."""
    k = 0
    for i in range(time.size):
        while k < when.size and (when[k] < time[i] or (when[k] == time[i] and other[k] < peer[i])):
            k += 1
        if k < when.size and when[k] == time[i] and other[k] == peer[i]:
            row[i] = k
            k += 1


@kernel
def outer_calls(
    time: Ints, kind: Bytes, region: AnyArray, speaks: Bytes, opened: Ints, depth: int, since: int,
    outer: int, n: int, begin: Ints, end: Ints, regions: AnyArray,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Times and outermost region (room,) in which any region that `speaks` is open, from the n-th on. Returns
    n, -1 if there are more than there is room for, and the state for the next block; `opened` (regions,)
    counts what is open."""
    for i in range(time.size):
        r = np.int64(region[i])
        if not speaks[r]:
            continue
        if kind[i] == 0:
            opened[r] += 1
            depth += 1
            if depth == 1:
                since = time[i]
                outer = int(r)
        elif opened[r] > 0:
            opened[r] -= 1
            depth -= 1
            if depth == 0:
                if n == begin.size:
                    return -1, depth, since, outer
                begin[n] = since
                end[n] = time[i]
                regions[n] = outer
                n += 1
    return n, depth, since, outer


@kernel
def spent_before(time: Ints, begin: Ints, end: Ints, what: Bytes, counts: Flags, out: Ints) -> None:
    """Ticks of intervals (n,) of kinds that count before each time; all in order of time."""
    k, before = 0, 0
    for i in range(time.size):
        while k + 1 < begin.size and begin[k + 1] <= time[i]:
            before += end[k] - begin[k] if counts[what[k]] else 0
            k += 1
        out[i] = before
        if k < begin.size and counts[what[k]]:
            out[i] += max(min(time[i], end[k]) - begin[k], 0)


@kernel
def are_those(begin: Ints, end: Ints, what: Bytes, counts: Flags, others: Ints, until: Ints) -> bool:
    """Whether the intervals of kinds that count are just these others (m,)."""
    n = 0
    for i in range(begin.size):
        if counts[what[i]]:
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
def spent_until(begin: Ints, end: Ints, what: Bytes, every: int, sums: Ints, cuts: Ints, out: Ints) -> None:
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
def sums_of(begin: Ints, end: Ints, what: Bytes, every: int, sums: Ints) -> None:
    """`sums` of `spent_until`."""
    for i in range(begin.size):
        if i and i % every == 0:
            for k in range(sums.shape[1]):
                sums[i // every, k] += sums[i // every - 1, k]
        if i // every + 1 < sums.shape[0]:
            sums[i // every + 1, what[i]] += end[i] - begin[i]


@kernel
def held_by(begin: Ints, end: Ints, where: Ints, out: Ints) -> int:
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
def met_by(begin: Ints, end: Ints, where: Ints, out: Ints) -> int:
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

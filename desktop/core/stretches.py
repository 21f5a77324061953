"""The recorded operations of a run, prepared for a replay (`desktop.core.machine`).

Times are ticks of the common clock. Every operation has a time when it was *reached* (`point`), when the
event it waited for happened (`let_go`), and when it was `over`; between operations are the location's
stretches.
"""

from __future__ import annotations

import numpy as np

from desktop.core import machine
from desktop.core.arrays import AnyArray, Bytes, Floats, Ints
from desktop.core.jit import inlined, kernel
from desktop.core.open_regions import BEGIN


@inlined
def call_span(i: int, time: Ints, call: AnyArray, begins: Ints, ends: Ints) -> tuple[int, int]:
    """Begin and end of the call that contains an operation; its own time if none does."""
    if call[i] < 0:
        return time[i], time[i]
    return begins[call[i]], ends[call[i]]


@kernel
def reach(
    first: Ints, last: Ints, kind: Bytes, time: Ints, call: AnyArray, begins: Ints, ends: Ints, born: Ints,
    died: Ints, point: Ints, over: Ints,
) -> None:  # fmt: skip
    """Set `point` and `over`: when each operation was reached and was over, at the latest when its location
    `died`. Consecutive receives (and completions) in one call are reached together, as the call waits for all
    of them."""
    for p in range(first.size):
        before = born[p]
        for i in range(first[p], last[p]):
            begin_of, end_of = call_span(i, time, call, begins, ends)
            same = i > first[p] and call[i] >= 0 and call[i - 1] == call[i]
            if kind[i] == machine.RECEIVE or kind[i] == machine.COMPLETE:
                earlier = same and (kind[i - 1] == machine.RECEIVE or kind[i - 1] == machine.COMPLETE)
                point[i] = point[i - 1] if earlier else max(before, min(begin_of, time[i]))
                over[i] = max(time[i], point[i])
            else:
                point[i] = over[i] = max(before, time[i])
                if machine.N_TO_N <= kind[i] <= machine.PREFIX:
                    more = i + 1 < last[p] and call[i + 1] == call[i]
                    over[i] = max(min(end_of, time[i + 1] if more else died[p]), point[i])
            before = max(before, over[i])


@kernel
def meet(first: Ints, last: Ints, kind: Bytes, key: AnyArray, point: Ints, sent: Ints, posted: Ints) -> None:
    """Set for each message (messages,) when it was sent, and when its receive was posted or reached."""
    for p in range(first.size):
        for i in range(first[p], last[p]):
            if kind[i] == machine.SEND:
                sent[key[i]] = point[i]
            elif (kind[i] == machine.RECEIVE or kind[i] == machine.POST) and posted[key[i]] == BEGIN:
                posted[key[i]] = point[i]


@kernel
def block(
    first: Ints, last: Ints, kind: Bytes, key: AnyArray, time: Ints, call: AnyArray, begins: Ints, ends: Ints,
    point: Ints, posted: Ints, waiting: AnyArray, may: Bytes, did: Bytes,
) -> None:  # fmt: skip
    """Set the manner in which senders go on (`desktop.core.machine`): `may`, if a receive had to be posted
    first, and `did`, as recorded. A call with further operations does not wait in its send."""
    for p in range(first.size):
        for i in range(first[p], last[p]):
            number = key[i]
            _, end_of = call_span(i, time, call, begins, ends)
            if kind[i] == machine.SEND and waiting[number] == call[i] and call[i] >= 0:
                alone = i + 1 == last[p] or call[i + 1] != call[i]
                alone &= i == first[p] or call[i - 1] != call[i]
                if alone:
                    may[number] = machine.BLOCKING
                    if point[i] < posted[number] < end_of:
                        did[number] = machine.BLOCKING
            elif kind[i] == machine.COMPLETE and point[i] < posted[number] < end_of:
                did[number] = machine.DEFERRED


@kernel
def awaited(kind: int, root: Ints, number: int, location: int) -> bool:
    """Whether others wait for this member of a collective operation; False for a message, which has no
    root."""
    if kind == machine.ONE_TO_ALL or kind == machine.ALL_TO_ONE:
        is_root: bool = root[number] == location
        return is_root == (kind == machine.ONE_TO_ALL)
    return kind == machine.N_TO_N or kind == machine.PREFIX


@kernel
def release(
    first: Ints, last: Ints, kind: Bytes, key: AnyArray, root: Ints, point: Ints, over: Ints, sent: Ints,
    posted: Ints, did: Bytes, early: Ints, latest: Ints, let_go: Ints,
) -> None:  # fmt: skip
    """Set `let_go` (n,): when the event happened that each operation waited for, `BEGIN` if it did not wait,
    by the rules of `desktop.core.machine` without latency. Messages are under way for `early` ticks: 0, or
    less where clocks contradict each other, so that none arrives after it was received."""
    for p in range(first.size):
        for i in range(first[p], last[p]):
            number = key[i]
            if kind[i] == machine.PREFIX:
                let_go[i] = latest[number]
            if awaited(kind[i], root, number, p):
                latest[number] = max(latest[number], point[i])
    for p in range(first.size):
        for i in range(first[p], last[p]):
            number = key[i]
            if kind[i] == machine.RECEIVE and sent[number] > BEGIN:
                ready = sent[number] if did[number] == machine.EAGER else max(sent[number], posted[number])
                if over[i] < ready:  # zeros that are only read take no memory
                    early[number] = over[i] - ready
    for p in range(first.size):
        for i in range(first[p], last[p]):
            number = key[i]
            if kind[i] == machine.RECEIVE or kind[i] == machine.SEND or kind[i] == machine.COMPLETE:
                if did[number] != machine.EAGER:
                    arrives = max(sent[number], posted[number]) + early[number]
                    if kind[i] == machine.SEND and did[number] == machine.BLOCKING:
                        let_go[i] = arrives
                        over[i] = max(over[i], arrives)
                    elif kind[i] != machine.SEND:
                        let_go[i] = arrives
                elif kind[i] == machine.RECEIVE:
                    let_go[i] = sent[number] + early[number]
            elif kind[i] < machine.PREFIX and (
                kind[i] == machine.N_TO_N or not awaited(kind[i], root, number, p)
            ):
                let_go[i] = latest[number]


@kernel
def lay_out(
    first: Ints, last: Ints, kind: Bytes, time: Ints, call: AnyArray, begins: Ints, ends: Ints, point: Ints,
    over: Ints, let_go: Ints, born: Ints, died: Ints, extra: Floats, since: Ints, until: Ints,
) -> None:  # fmt: skip
    """Set `extra` (n,), the time of each operation beyond its waiting; and begin and end (`since`, `until`)
    of the stretches (n + p) before each operation and after the last of each location, without the calls at
    both ends (`span` includes these)."""
    n = kind.size
    for p in range(first.size):
        before = born[p]
        left = BEGIN  # end of the call of the operation before
        in_call = -1
        waits = BEGIN  # of receives that are reached together
        for i in range(first[p], last[p]):
            begin_of, end_of = call_span(i, time, call, begins, ends)
            gathers = kind[i] == machine.RECEIVE or kind[i] == machine.COMPLETE
            same = call[i] >= 0 and call[i] == in_call
            earlier = gathers and same and (kind[i - 1] == machine.RECEIVE or kind[i - 1] == machine.COMPLETE)
            if earlier:
                since[i] = until[i] = point[i]
                waits = max(waits, let_go[i])
            else:
                b = max(before, point[i])
                since[i] = b if same else max(before, min(b, left))
                until[i] = b if same else max(since[i], min(b, begin_of) if call[i] >= 0 else b)
                waits = let_go[i]
            later = gathers and i + 1 < last[p] and call[i] >= 0 and call[i + 1] == call[i]
            later = later and (kind[i + 1] == machine.RECEIVE or kind[i + 1] == machine.COMPLETE)
            if not later and kind[i] != machine.MARK and kind[i] != machine.POST and kind[i] != machine.SEND:
                extra[i] = over[i] - max(point[i], waits)
            before = max(before, over[i])
            if call[i] >= 0:
                left, in_call = end_of, call[i]
        i = n + p
        until[i] = max(before, died[p])
        since[i] = max(before, min(until[i], left))


@inlined
def span(before: int, ends: int, since: int) -> tuple[int, int]:
    """Begin and end of a stretch including calls at its ends: from the end of the operations before it to the
    next one. Of operations that are reached together only the first has a stretch."""
    if since < before:
        return since, since
    return before, max(before, ends)


@kernel
def spans(
    p: int, first: Ints, last: Ints, born: Ints, died: Ints, point: Ints, over: Ints, since: Ints,
    until: Ints, out: Ints,
) -> None:  # fmt: skip
    """Set `out` (4, stretches): begin and end of each stretch, with and without calls at its ends."""
    before = born[p]
    for k in range(first[p], last[p] + 1):
        at_end = k == last[p]
        i, j = point.size + p if at_end else k, k - first[p]
        out[0, j], out[1, j] = span(before, died[p] if at_end else point[k], since[i])
        out[2, j], out[3, j] = since[i], until[i]
        if not at_end:
            before = max(before, over[k])


@inlined
def lasting(since: int, until: int, was: float, called: float, busy: float, calls: bool) -> float:
    """Ticks of a stretch without calls at its ends, if it computes for `busy` ticks instead of `was`;
    `calls`: including the ticks in calls inside (`called`)."""
    mid = busy + (until - since - was - called)
    return mid + called if calls else mid


@kernel
def gaps(
    first: Ints, last: Ints, born: Ints, died: Ints, point: Ints, over: Ints, since: Ints, until: Ints,
    was: Floats, called: Floats, busy: Floats, calls: bool, out: Floats,
) -> None:  # fmt: skip
    """Set `out` (n + p) to the ticks of each stretch if it computes for `busy` ticks; `calls`: with the calls
    of libraries as recorded, or without."""
    for p in range(first.size):
        before = born[p]
        for k in range(first[p], last[p] + 1):
            at_end = k == last[p]
            i = point.size + p if at_end else k
            out[i] = lasting(since[i], until[i], was[i], called[i], busy[i], calls)
            if calls:
                low, high = span(before, died[p] if at_end else point[k], since[i])
                out[i] = out[i] + (since[i] - low) + (high - until[i])
            if not at_end:
                before = max(before, over[k])


@kernel
def move_pieces(
    first: Ints, last: Ints, born: Ints, died: Ints, point: Ints, over: Ints, since: Ints, until: Ints,
    was: Floats, called: Floats, busy: Floats, calls: bool, origin: Floats, went: Floats, of: AnyArray,
    begin: Ints, end: Ints, a: Floats, b: Floats,
) -> None:  # fmt: skip
    """Set `a`, `b` to the new begins and ends of pieces of computing (m,), sorted by their stretch `of`;
    after them the computing in stretches that had none. Locations begin at `origin`, operations are over at
    `went`."""
    j, more = 0, of.size
    for p in range(first.size):
        before = born[p]
        for k in range(first[p], last[p] + 1):
            at_end = k == last[p]
            i = point.size + p if at_end else k
            start = went[k - 1] if k > first[p] else origin[p]
            if calls:
                start += since[i] - span(before, died[p] if at_end else point[k], since[i])[0]
            mid = lasting(since[i], until[i], was[i], called[i], busy[i], calls)
            idle = until[i] - since[i] - was[i]
            rate = busy[i] / was[i] if was[i] > 0 else 0.0
            idle_rate = (mid - busy[i]) / idle if idle > 0 else 0.0
            spent = 0.0
            while j < of.size and of[j] == i:
                length = float(end[j] - begin[j])
                a[j] = start + spent * rate + (begin[j] - since[i] - spent) * idle_rate
                b[j] = a[j] + length * rate
                spent += length
                j += 1
            if was[i] <= 0 and busy[i] > 0:
                a[more], b[more] = start, start + busy[i]
                more += 1
            if not at_end:
                before = max(before, over[k])


@kernel
def moved_breakpoints(
    cuts: Ints, first: Ints, last: Ints, born: Ints, died: Ints, point: Ints, over: Ints, since: Ints,
    until: Ints, was: Floats, called: Floats, busy: Floats, calls: bool, origin: Floats, went: Floats,
    gap: Floats, out: Floats,
) -> None:  # fmt: skip
    """Set `out` (cuts, p) to the new times of instants `cuts` on each location, interpolated between the
    operations around them; unchanged where the location does not exist at that time."""
    for p in range(first.size):
        a, b = first[p], last[p]
        for c in range(cuts.size):
            cut = cuts[c]
            if not born[p] < cut < died[p]:
                continue
            at = a + np.searchsorted(point[a:b], cut, side="right") - 1
            left, new = float(born[p]), origin[p]
            if at >= a:
                came = (went[at - 1] if at > a else origin[p]) + gap[at]
                if cut <= over[at]:
                    out[c, p] = went[at]
                    if cut < over[at]:
                        out[c, p] = (went[at] - came) / (over[at] - point[at]) * (cut - point[at]) + came
                    continue
                left, new = float(over[at]), went[at]
            if at + 1 < b:
                right, moved = float(point[at + 1]), new + gap[at + 1]
            else:
                right = float(died[p])
                i = point.size + p
                moved = new + lasting(since[i], until[i], was[i], called[i], busy[i], calls)
                if calls:
                    low = over[a:b].max() if b > a else born[p]
                    moved += since[i] - max(low, born[p])
            out[c, p] = new + (moved - new) * (cut - left) / (right - left) if right > left else moved


@kernel
def in_regions(
    time: Ints, kind: Bytes, region: AnyArray, row_of: Ints, stack: Ints, state: Ints, low: Ints, high: Ints,
    reached: Ints, ticks: Floats, entered: Floats,
) -> None:  # fmt: skip
    """Add the ticks of regions that have a row (`row_of`, -1: none), and their enters, to the stretches of a
    location, `low` to `high`. state: number of open regions, first stretch not over, time of the last event,
    stretch of the last enter."""
    for i in range(time.size):
        depth = state[0]
        top = row_of[stack[depth - 1]] if depth else -1
        if top >= 0:
            j = state[1]
            while j < low.size and high[j] <= state[2]:
                j += 1
            state[1] = j
            while j < low.size and low[j] < time[i]:
                part = min(time[i], high[j]) - max(state[2], low[j])
                if part > 0:
                    ticks[top, j] += part
                j += 1
        state[2] = time[i]
        if kind[i] == 0:
            stack[depth] = region[i]
            state[0] += 1
            if row_of[region[i]] >= 0:
                j = state[3]
                while j < low.size - 1 and reached[j] < time[i]:
                    j += 1
                state[3] = j
                entered[row_of[region[i]], j] += 1
        else:
            k = depth - 1
            while k >= 0 and stack[k] != region[i]:
                k -= 1
            if k >= 0:  # regions inside of it stay open
                for j in range(k, depth - 1):
                    stack[j] = stack[j + 1]
                state[0] -= 1


@kernel
def step_levels(begin: Floats, end: Floats, last: float, near: float, edges: Floats, level: Floats) -> int:
    """Set `level` to the number of open intervals (n,) from each of the `edges` on, from 0 to `last`; begins
    and ends are sorted separately. Times that differ by at most `near` are merged into the latest. Returns
    the number of edges; they are only counted if the arrays are empty."""
    n = i = j = 0
    now, count, written = 0.0, 0, -1
    while i < begin.size or j < end.size:
        if j == end.size or (i < begin.size and begin[i] <= end[j]):
            time, change = begin[i], 1
            i += 1
        else:
            time, change = end[j], -1
            j += 1
        time = min(max(time, 0.0), last)
        if time - now > near and count != written:
            if edges.size:
                edges[n] = now if n else 0.0
                level[n] = count
            written = count
            n += 1
        now = time
        count += change
    if last - now > near and count != written:
        if edges.size:
            edges[n] = now if n else 0.0
            level[n] = count
        n += 1
    return n

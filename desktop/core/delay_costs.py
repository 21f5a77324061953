"""Delay costs: the waiting of a run traced to the delays that caused it.

Source: D. Böhme, M. Geimer, F. Wolf, L. Arnold, "Identifying the root causes of wait states in large-scale
parallel applications", ICPP 2010, section III; D. Böhme, M. Geimer, L. Arnold, F. Voigtlaender, F. Wolf, the
same title, ACM TOPC 3(2), article 11, 2016, sections 3 and 4 and algorithm 1. A wait state is analysed over
the interval since the two processes were last synchronised. The time that its causer (the partner) spent
there in a region beyond the time of the waiting process in it is a delay; the causer's own waiting is
propagated waiting. Delays and propagated waiting share the costs of the wait in proportion. The waiting
itself is a delay's short-term cost; waiting that it propagates to others is its long-term cost. Waits are
processed backward in time, so that all consequences of a wait are known when it is reached, and the costs of
all delays add up to all waiting.

Two choices differ from the source. Both sides of an interval begin at one time, the earlier end of the two
calls in which they were synchronised, so the causer's excess is never less than the wait, and nothing is
unexplained where the causer is known. And waiting is compared like any region: only the causer's waiting
beyond that of the other is propagated, so that when both waited for a third process, that one is not charged
with a later delay. Two processes are synchronised where one waits for the other, and in an n-to-n collective.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from desktop.core.arrays import AnyArray, Floats, Ints
from desktop.core.jit import kernel


class WaitStates(NamedTuple):
    """Wait states, (m,) each, by location and time; those of one location do not overlap.

    location, partner : the waiting one, and the one waited for (-1: not known).
    begin, end : ticks. The partner arrived at `end`.
    leave, partner_leave : ticks when each left the call in which they met.
    """

    location: Ints
    partner: Ints
    begin: Ints
    end: Ints
    leave: Ints
    partner_leave: Ints


class Segments(NamedTuple):
    """The activity of each location, in consecutive segments, with one row of no meaning behind those of each
    location: all times are one array, since each segment begins where the one before it ends.

    first : (p + 1,) index of the first of each location.
    begin, end : (n,) ticks.
    region : (n,) the innermost region.
    wait : (n,) the wait state that it is part of, -1 if none.
    """

    first: Ints
    begin: Ints
    end: Ints
    region: NDArray[np.int32]
    wait: NDArray[np.int32]


class Meetings(NamedTuple):
    """N-to-n collectives: all members are synchronised.

    first : (p + 1,) index of the first of each location; time, leave, which : (k,) by location and time:
    arrival of the last member, leave of this one (ticks), and the number of the operation.
    start : (operations + 1,) index of the first member of each; member, left : (k,) their locations,
    ascending, and their leaves.
    """

    first: Ints
    time: Ints
    leave: Ints
    which: Ints
    start: Ints
    member: Ints
    left: Ints


class Costs(NamedTuple):
    """short, long : (n,) short-term and long-term costs (ticks) of each segment.
    direct : (m,) ticks of each wait that delays of its partner caused; the partner propagated the rest.
    unexplained : ticks of waiting, and of waiting propagated by it, whose cause is not known.
    """

    short: Floats
    long: Floats
    direct: Floats
    unexplained: float


def delay_costs(segments: Segments, waits: WaitStates, meetings: Meetings, regions: int, start: int) -> Costs:
    """Delay costs of a run that began at tick `start`; `regions`: their number, including those that stand
    for none. Time: linear in segments and waits, times the number of partners of a location."""
    since = np.empty(waits.location.size, np.int64)
    first_wait = np.searchsorted(waits.location, np.arange(segments.first.size))
    last_meetings(first_wait, *waits, *meetings, start, since)
    order, rank = backward(waits, segments.first.size - 1)
    short, long = np.zeros(segments.begin.size), np.zeros(segments.begin.size)
    direct = np.zeros(waits.location.size)
    unexplained = trace_back(
        *segments, waits.location, waits.partner, waits.begin, waits.end, since, order, rank, regions,
        short, long, direct,
    )  # fmt: skip
    return Costs(short, long, direct, float(unexplained))


def backward(waits: WaitStates, locations: int) -> tuple[Ints, Ints]:
    """Indices of waits (m,) in an order in which each comes after all that it may have caused, and the rank
    of each in that order."""
    order = np.argsort(-waits.end, kind="stable")
    untie(order, waits.location, waits.partner, waits.end, locations)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return order, rank


@kernel
def untie(order: Ints, location: Ints, partner: Ints, end: Ints, locations: int) -> None:
    """Reorder waits that end in the same tick: the waiting location before the one it waits for."""
    wait_of = np.full(locations, -1, np.int64)
    behind = np.zeros(order.size, np.int64)
    since = 0
    for until in range(1, order.size + 1):
        if until < order.size and end[order[until]] == end[order[since]]:
            continue
        if until - since > 1:
            group = order[since:until].copy()
            for j in group:
                wait_of[location[j]] = j
            for j in group:
                if partner[j] >= 0 and wait_of[partner[j]] >= 0:
                    behind[wait_of[partner[j]]] += 1
            n = since
            for j in group:
                if behind[j] == 0:
                    order[n] = j
                    n += 1
            at = since
            while at < n:
                j = order[at]
                at += 1
                behind[j] = -1
                if partner[j] >= 0 and wait_of[partner[j]] >= 0:
                    blocker = wait_of[partner[j]]
                    behind[blocker] -= 1
                    if behind[blocker] == 0:
                        order[n] = blocker
                        n += 1
            for j in group:  # a cycle of waits, which is not possible in a consistent trace
                if behind[j] > 0:
                    order[n] = j
                    n += 1
            for j in group:
                wait_of[location[j]] = -1
                behind[j] = 0
        since = until


@kernel
def last_meetings(
    first_wait: Ints, location: Ints, partner: Ints, begin: Ints, end: Ints, leave: Ints, partner_leave: Ints,
    first_met: Ints, met: Ints, left_met: Ints, which: Ints, start: Ints, member: Ints, left: Ints, run: int,
    since: Ints,
) -> None:  # fmt: skip
    """Set `since` to the begin of the interval of each wait: the earlier end of the two calls in which both
    were last synchronised before it, `run` if they never were."""
    for j in range(location.size):
        here, other = location[j], partner[j]
        best = since_when = run
        since[j] = min(run, begin[j])
        if other < 0:
            continue
        k = j - 1
        while k >= first_wait[here] and end[k] > best:
            if partner[k] == other:
                best, since_when = end[k], min(leave[k], partner_leave[k])
                break
            k -= 1
        k = first_wait[other] + np.searchsorted(end[first_wait[other] : first_wait[other + 1]], begin[j]) - 1
        while k >= first_wait[other] and end[k] > best:
            if partner[k] == here:
                best, since_when = end[k], min(leave[k], partner_leave[k])
                break
            k -= 1
        k = first_met[here] + np.searchsorted(met[first_met[here] : first_met[here + 1]], begin[j]) - 1
        while k >= first_met[here] and met[k] > best:
            a, b = start[which[k]], start[which[k] + 1]
            row = a + np.searchsorted(member[a:b], other)
            if row < b and member[row] == other:
                best, since_when = met[k], min(left_met[k], left[row])
                break
            k -= 1
        since[j] = min(since_when, begin[j])


@kernel
def trace_back(
    first: Ints, begin: Ints, end: Ints, region: AnyArray, wait: AnyArray, location: Ints, partner: Ints,
    since_wait: Ints, until_wait: Ints, since: Ints, order: Ints, rank: Ints, regions: int, short: Floats,
    long: Floats, direct: Floats,
) -> float:  # fmt: skip
    """Distribute every wait, and the waiting that it propagated, over its partner's segments; returns the
    unexplained ticks."""
    behind = np.zeros(location.size)  # costs of others' waits that each has propagated
    own, others = np.zeros(regions), np.zeros(regions)
    unexplained = 0.0
    for j in order:
        lasting = float(until_wait[j] - since_wait[j])
        costs = lasting + behind[j]
        a, b = since[j], until_wait[j]
        who = partner[j]
        if who < 0:
            unexplained += costs
            continue
        low, high = first[who], first[who + 1] - 1
        at = low + np.searchsorted(begin[low:high], b) - 1  # the last that begins before
        waited = compared = 0.0
        i = at
        while i >= low and end[i] > a:
            part = float(min(end[i], b) - max(begin[i], a))
            if part > 0:
                if passes(wait[i], j, until_wait, rank, b):
                    waited += part
                else:
                    own[region[i]] += part
            i -= 1
        to = i
        here = location[j]
        i = first[here] + np.searchsorted(begin[first[here] : first[here + 1] - 1], since_wait[j]) - 1
        while i >= first[here] and end[i] > a:
            part = float(min(end[i], since_wait[j]) - max(begin[i], a))
            if part > 0:
                if wait[i] >= 0:
                    compared += part
                else:
                    others[region[i]] += part
            i -= 1
        passed = max(0.0, waited - compared)
        delay = 0.0
        # Each region's time becomes its excess, once: done ones are marked by negative values.
        for i in range(at, to, -1):
            r = region[i]
            if own[r] > 0.0:
                own[r] = -max(0.0, own[r] - others[r]) / own[r] - 1.0  # -1: nothing, -2: all of it
        for i in range(at, to, -1):
            part = float(min(end[i], b) - max(begin[i], a))
            if part > 0 and not passes(wait[i], j, until_wait, rank, b):
                delay += part * (-1.0 - own[region[i]])
        total = delay + passed
        if total > 0.0:
            direct[j] = lasting * delay / total
            for i in range(at, to, -1):
                part = float(min(end[i], b) - max(begin[i], a))
                if part <= 0:
                    continue
                if passes(wait[i], j, until_wait, rank, b):
                    if waited > 0.0:
                        behind[wait[i]] += costs * part * passed / waited / total
                else:
                    part *= (-1.0 - own[region[i]]) / total
                    short[i] += part * lasting
                    long[i] += part * behind[j]
        else:
            unexplained += costs
        for i in range(at, to, -1):
            own[region[i]] = 0.0
        i = first[here] + np.searchsorted(begin[first[here] : first[here + 1] - 1], since_wait[j]) - 1
        while i >= first[here] and end[i] > a:
            others[region[i]] = 0.0
            i -= 1
    return unexplained


@kernel
def passes(wait: int, j: int, until: Ints, rank: Ints, b: int) -> bool:
    """Whether a segment of a partner is a wait that ended before tick `b` and comes after wait j in order."""
    return wait >= 0 and until[wait] <= b and rank[wait] > rank[j]


@kernel
def cut(
    time: Ints, region: AnyArray, since: Ints, until: Ints, number: int, out: Ints, out_region: AnyArray,
    wait: AnyArray,
) -> int:  # fmt: skip
    """Segments of a location: `region` (n,) from each `time` (n + 1,) to the next, cut at the begins and ends
    of its m waits, which are numbered from `number`. Sets the begin of the first and the ends of all in
    `out`, region in `out_region`, wait in `wait`, with room for n + 2 m; returns their number."""
    n = j = 0
    out[0] = time[0]
    for i in range(region.size):
        at = time[i]
        while at < time[i + 1]:
            while j < since.size and until[j] <= at:
                j += 1
            inside = j < since.size and since[j] <= at
            to = time[i + 1]
            if inside:
                to = min(to, until[j])
            elif j < since.size:
                to = min(to, since[j])
            out[n + 1] = to
            out_region[n] = region[i]
            wait[n] = number + j if inside else -1
            n += 1
            at = to
    return n


@kernel
def tally(
    first: Ints, begin: Ints, end: Ints, region: AnyArray, wait: AnyArray, short: Floats, long: Floats,
    passed_on: Floats, a: int, b: int, places: Floats, regions: Floats, most: Floats,
) -> int:  # fmt: skip
    """Waiting and costs of the ticks from `a` to `b`; segments across an end count in proportion.

    passed_on : (waits,) part of each that its partner propagated.
    places : (p, 4), regions : (regions, 4): ticks waited for delays and for propagated waiting; short-term
        and long-term costs for others; result.
    most : (pairs, 4) result: location, region, short-term and long-term costs of the largest costs. Returns
        the number of these.
    """
    by_region = np.zeros((regions.shape[0], 2))
    filled = 0
    for p in range(first.size - 1):
        low, high = first[p], first[p + 1] - 1
        i = low + np.searchsorted(end[low:high], a, side="right")
        by_region[:] = 0.0
        while i < high and begin[i] < b:
            lasting = float(end[i] - begin[i])
            part = float(min(end[i], b) - max(begin[i], a)) / lasting
            r = region[i]
            if wait[i] >= 0:
                indirect = part * lasting * passed_on[wait[i]]
                for row in (places[p], regions[r]):
                    row[0] += part * lasting - indirect
                    row[1] += indirect
            if short[i] > 0 or long[i] > 0:
                by_region[r, 0] += part * short[i]
                by_region[r, 1] += part * long[i]
            i += 1
        for r in range(by_region.shape[0]):
            costs = by_region[r, 0] + by_region[r, 1]
            if costs <= 0:
                continue
            for k in range(2):
                places[p, 2 + k] += by_region[r, k]
                regions[r, 2 + k] += by_region[r, k]
            if filled == most.shape[0] and costs <= most[filled - 1, 2] + most[filled - 1, 3]:
                continue
            at = filled if filled < most.shape[0] else filled - 1
            while at > 0 and most[at - 1, 2] + most[at - 1, 3] < costs:
                most[at] = most[at - 1]
                at -= 1
            most[at, 0], most[at, 1], most[at, 2], most[at, 3] = p, r, by_region[r, 0], by_region[r, 1]
            filled = min(filled + 1, most.shape[0])
    return filled

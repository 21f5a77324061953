"""From one processor's records, sorted by time, to regions entered and left and to its states.

Entries and exits that share a key are paired first in, first out: the k-th entry with the k-th exit, an
exit earlier than the entry it would get being an orphan. So the order of lines at equal times, which
carries no information in sorted files, has no influence.

Sources: format A by the PICL 1.x node library (statistics as running totals), format B by ORNL/TM-12125;
states as in ORNL/TM-11637, section 1 (a processor that does not compute is idle or communicates).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from desktop.core.jit import kernel

# States of a processor of format A.
BUSY, COMMUNICATION, WAITING, BARRIER, FLUSH, NO_DATA, NOT_TRACED, UNCLEAR, STATES = range(9)

# Positions in what `states_a` carries from chunk to chunk.
(
    NOW,  # the state
    INTERVAL,  # 0 computing, 1 communicating, 2 not known: between two statistics
    WAITS,  # open recv_blocking
    SYNC,  # a barrier began since the last statistics
    FLUSHING,
    FLUSH_END,
    STOPPED,
    OFF,
    PARTIAL,  # how many intervals are partly communication
    PARTIAL_LINE,
    RESTARTS,  # how many totals decreased
    RESTART_LINE,
    BACKWARD,  # how many flushes end before they begin
    BACKWARD_LINE,
    MEASURED,  # ticks between the first and the last statistics spent in communication, by the totals
    CARRY,
) = range(16)

#: An interval longer than this (microseconds) whose share of communication lies between these bounds is
#: reported as partly computing; measured ones are otherwise nearly 0 or 1.
PARTIAL_SPAN, PARTIAL_LOW, PARTIAL_HIGH = 20, 0.05, 0.95
WRAP = 1 << 32


@kernel
def pair(rows: Any, roles: Any, heads: Any, mate: Any) -> Any:
    """Pair entries with exits first in, first out.

    rows: their keys are dense, -1 none. roles: by record type 1 entry, 2 exit, 0 neither. heads (keys,):
    scratch, -1 before and after. mate (N,), result: index of the partner, -1 none. Returns orphan exits,
    line of the first, open entries, line of the first.
    """
    orphans = 0
    orphan_line = np.int64(0)
    opened = 0
    open_line = np.int64(0)
    n = len(rows)
    # Until it is paired, an entry's mate is the next entry of its key.
    for i in range(n - 1, -1, -1):
        k = rows[i]["key"]
        mate[i] = -1
        if k >= 0 and roles[rows[i]["record"]] == 1:
            mate[i] = heads[k]
            heads[k] = i
    for i in range(n):
        k = rows[i]["key"]
        if k < 0 or roles[rows[i]["record"]] != 2:
            continue
        e = heads[k]
        if e >= 0 and rows[e]["time"] <= rows[i]["time"]:
            heads[k] = mate[e]
            mate[e] = i
            mate[i] = e
        else:
            orphans += 1
            if orphan_line == 0 or rows[i]["line"] < orphan_line:
                orphan_line = rows[i]["line"]
    for i in range(n):
        k = rows[i]["key"]
        if k < 0:
            continue
        e = heads[k]
        heads[k] = -1
        while e >= 0:
            following = mate[e]
            mate[e] = -1
            opened += 1
            if open_line == 0 or rows[e]["line"] < open_line:
                open_line = rows[e]["line"]
            e = following
    return orphans, orphan_line, opened, open_line


@kernel
def regions(
    rows: Any,
    roles: Any,
    mate: Any,
    region_of: Any,
    user: Any,
    dangling: Any,
    trace_key: int,
    begin: int,
    end: int,
    time: Any,
    kind: Any,
    region: Any,
) -> int:
    """Enter and leave of the regions in rows[begin:end] (cut between different times); returns how many.

    At equal times what was open is left first, then regions are entered, then those without length left.
    region_of (keys,): -1 none. dangling (keys,): entries without an exit that are still open; those of
    `user` keys end with the `trace_key` region, the others are left to the caller. The results need room
    for 2 (end - begin) + dangling.sum() rows.
    """
    used = 0
    i = begin
    while i < end:
        t = rows[i]["time"]
        j = i
        while j < end and rows[j]["time"] == t:
            j += 1
        ended = False
        for step in range(3):
            for m in range(i, j):
                k = rows[m]["key"]
                if k < 0 or region_of[k] < 0:
                    continue
                role = roles[rows[m]["record"]]
                if role == 1 and step == 1:
                    time[used], kind[used], region[used] = t, 0, region_of[k]
                    used += 1
                    if mate[m] < 0:
                        dangling[k] += 1
                elif role == 2 and step != 1 and mate[m] >= 0:
                    instant = rows[mate[m]]["time"] == t
                    if instant == (step == 2):
                        time[used], kind[used], region[used] = t, 1, region_of[k]
                        used += 1
                        ended = ended or k == trace_key
            if step == 0 and ended:
                for k in range(len(dangling)):
                    if user[k]:
                        for _ in range(dangling[k]):
                            time[used], kind[used], region[used] = t, 1, region_of[k]
                            used += 1
                        dangling[k] = 0
        i = j
    return used


@kernel
def _state(carry: Any, usable: bool) -> int:
    if carry[STOPPED] != 0:
        return NO_DATA
    if carry[OFF] != 0:
        return NOT_TRACED
    if carry[FLUSHING] != 0:
        return FLUSH
    if not usable:
        return WAITING if carry[WAITS] > 0 else BUSY
    if carry[INTERVAL] == 0:
        return BUSY
    if carry[INTERVAL] == 2:
        return UNCLEAR
    if carry[WAITS] > 0:
        return WAITING
    return BARRIER if carry[SYNC] != 0 else COMMUNICATION


@kernel
def _flush_over(carry: Any, until: int, usable: bool, used: int, time: Any, state: Any) -> int:
    """End a flush that is over before `until`."""
    if carry[FLUSHING] != 0 and carry[FLUSH_END] <= until:
        carry[FLUSHING] = 0
        now = _state(carry, usable)
        if carry[FLUSH_END] < until and now != carry[NOW]:
            time[used], state[used] = carry[FLUSH_END], now
            carry[NOW] = now
            used += 1
    return used


@kernel
def states_a(
    rows: Any,
    mate: Any,
    usable: bool,
    restarted: bool,
    begin: int,
    end: int,
    carry: Any,
    time: Any,
    state: Any,
) -> int:
    """Changes of state in rows[begin:end] of format A (cut between different times); returns how many.

    Statistics (compstats) are running totals of the time in communication calls: between two of them a
    processor communicates when the total grew by at least half of the time that passed. Inside such an
    interval it waits from recv_blocking to recv_waking, and all the time in a barrier. usable: the
    statistics surround the calls; without, only waiting is known. restarted: tracing began more than
    once, so between trace_exit and trace_start nothing is known.
    The results need room for 2 (end - begin) rows.
    """
    n = len(rows)
    used = 0
    i = begin
    while i < end:
        t = rows[i]["time"]
        used = _flush_over(carry, t, usable, used, time, state)
        total = np.int64(0)
        counted = False
        synced = False
        started = False
        exited = False
        line = np.int64(0)
        j = i
        while j < n and rows[j]["time"] == t:
            r = rows[j]
            key = r["record"]
            if key == 1:
                started = True
            elif key == 7:
                carry[WAITS] += 1
            elif key == 8:
                if mate[j] >= 0:
                    carry[WAITS] -= 1
            elif key == 10:
                synced = True
            elif key == 11 and r["nd"] > 0:
                total = max(total, r["d0"]) if counted else r["d0"]
                counted = True
                line = r["line"]
            elif key == 17:
                carry[STOPPED] = 1
            elif (key == 18 or key == 24) and r["nd"] > 0:
                if r["d0"] > t:
                    carry[FLUSH_END] = max(carry[FLUSH_END], r["d0"]) if carry[FLUSHING] != 0 else r["d0"]
                    carry[FLUSHING] = 1
                elif r["d0"] < t:
                    carry[BACKWARD] += 1
                    if carry[BACKWARD_LINE] == 0:
                        carry[BACKWARD_LINE] = r["line"]
            elif key == 19:
                exited = True
            j += 1
        if exited:
            carry[STOPPED] = 0
            carry[OFF] = 1 if restarted else 0
        if started:
            carry[OFF] = 0
        if synced:
            carry[SYNC] = 1
        if counted:
            if not synced:
                carry[SYNC] = 0
            carry[INTERVAL] = 0
            later = j
            while later < n and (rows[later]["record"] != 11 or rows[later]["nd"] == 0):
                later += 1
            if later < n:
                then = rows[later]["time"]
                least = rows[later]["d0"]
                while later < n and rows[later]["time"] == then:
                    if rows[later]["record"] == 11 and rows[later]["nd"] > 0:
                        least = min(least, rows[later]["d0"])
                    later += 1
                span = then - t
                grown = least - total
                if grown < 0:
                    carry[RESTARTS] += 1
                    if carry[RESTART_LINE] == 0:
                        carry[RESTART_LINE] = line
                    if 0 <= grown + WRAP <= span + 1:
                        grown += WRAP
                if grown < 0:
                    carry[INTERVAL] = 2
                else:
                    share = grown / span
                    carry[INTERVAL] = 1 if share >= 0.5 else 0
                    carry[MEASURED] += grown
                    if span > PARTIAL_SPAN and PARTIAL_LOW <= share < PARTIAL_HIGH:
                        carry[PARTIAL] += 1
                        if carry[PARTIAL_LINE] == 0:
                            carry[PARTIAL_LINE] = line
        now = _state(carry, usable)
        if now != carry[NOW]:
            time[used], state[used] = t, now
            carry[NOW] = now
            used += 1
        i = j
    return used


@kernel
def to_ticks(rows: Any, decimals: int) -> int:
    """Bring times to units of 10**-decimals seconds; returns how many had to be rounded."""
    rounded = 0
    for i in range(len(rows)):
        scale = np.int64(rows[i]["scale"])
        value = rows[i]["time"]
        while scale < decimals:
            value *= 10
            scale += 1
        if scale > decimals:
            exact = value
            half = np.int64(0)
            while scale > decimals:
                half = abs(value) % 10
                value = value // 10 if value >= 0 else -(-value // 10)
                scale -= 1
            if half >= 5:
                value += 1 if exact >= 0 else -1
            rounded += 1
        rows[i]["time"] = value
    return rounded


@kernel
def add_durations(rows: Any, roles: Any, mate: Any, total: Any) -> None:
    """Add the length of every pair to `total` (keys,)."""
    for i in range(len(rows)):
        if mate[i] >= 0 and roles[rows[i]["record"]] == 1:
            total[rows[i]["key"]] += rows[mate[i]]["time"] - rows[i]["time"]


@kernel
def twins(rows: Any) -> int:
    """How many records equal another one of the same time (of the 16 nearest)."""
    found = 0
    n = len(rows)
    for i in range(n):
        a = rows[i]
        hit = False
        for step in (-1, 1):
            j = i + step
            while not hit and 0 <= j < n and abs(j - i) <= 16 and rows[j]["time"] == a["time"]:
                b = rows[j]
                hit = (
                    a["record"] == b["record"]
                    and a["event"] == b["event"]
                    and a["nd"] == b["nd"]
                    and a["d0"] == b["d0"]
                    and a["d1"] == b["d1"]
                    and a["d2"] == b["d2"]
                    and a["d3"] == b["d3"]
                )
                j += step
        if hit:
            found += 1
    return found


#: One end of a message; side 0 is the send.
ENDPOINT = np.dtype(
    [
        ("time", "i8"),
        ("source", "i8"),
        ("destination", "i8"),
        ("tag", "i8"),
        ("communicator", "i8"),
        ("bytes", "i8"),
        ("side", "i8"),
    ],
    align=True,
)

# Results of `match`.
MATCHED, SENDS_LEFT, RECEIVES_LEFT, EARLY, EARLIEST, UNEQUAL, MATCH = range(7)


@kernel
def match(ends: Any, order: Any, with_communicator: bool, result: Any) -> None:
    """Match the k-th send with the k-th receive of each (source, destination, tag), in `order`.

    order: by channel, then side, then time. Adds to `result`: pairs, sends and receives without partner,
    receives that end before their send begins, the largest such lead, pairs of unequal length.
    """
    n = len(ends)
    i = 0
    while i < n:
        a = ends[order[i]]
        j = i
        middle = i
        while j < n:
            b = ends[order[j]]
            if (
                b["source"] != a["source"]
                or b["destination"] != a["destination"]
                or b["tag"] != a["tag"]
                or (with_communicator and b["communicator"] != a["communicator"])
            ):
                break
            if b["side"] == 0:
                middle = j + 1
            j += 1
        sends = middle - i
        receives = j - middle
        pairs = min(sends, receives)
        for k in range(pairs):
            s = ends[order[i + k]]
            r = ends[order[middle + k]]
            lead = s["time"] - r["time"]
            if lead > 0:
                result[EARLY] += 1
                result[EARLIEST] = max(result[EARLIEST], lead)
            if s["bytes"] != r["bytes"]:
                result[UNEQUAL] += 1
        result[MATCHED] += pairs
        result[SENDS_LEFT] += sends - pairs
        result[RECEIVES_LEFT] += receives - pairs
        i = j

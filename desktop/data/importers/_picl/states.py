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

from desktop.core.jit import arithmetic, inlined
from desktop.data.importers._picl import lines as ln

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
    GROWN,  # how many totals grew by more than the time that passed
    GROWN_LINE,
    CARRY,
) = range(18)

#: An interval longer than this (microseconds) whose share of communication lies between these bounds is
#: reported as partly computing; measured ones are otherwise nearly 0 or 1.
#: Totals may grow by so many microseconds more than the time that passed.
ROUNDING = 2
PARTIAL_SPAN, PARTIAL_LOW, PARTIAL_HIGH = 20, 0.05, 0.95
WRAP = 1 << 32


#: How many cuts `jumps` can have in mind: each must lie 100 times lower than the one before.
_CUTS = 12
#: What `jumps` remembers: rows so far, least time so far, number of cuts in mind, line after the last clock
#: synchronization, whether the last row was one, rows before it; then for each cut its line, rows before,
#: least time before, least and largest time after.
JUMPS = 6 + 5 * _CUTS


@arithmetic
def jumps(rows: Any, carry: Any) -> None:
    """Find where, in line order, a clock was set: after clock_sync, or where all times afterwards
    lie below all before by more than 100 times their span."""
    cuts = carry[6:].reshape(_CUTS, 5)
    for i in range(len(rows)):
        t = rows[i]["time"]
        if carry[4] != 0:
            carry[3], carry[4], carry[5] = rows[i]["line"], 0, carry[0]
        kept = 0
        for k in range(carry[2]):
            least, most = min(cuts[k, 3], t), max(cuts[k, 4], t)
            if cuts[k, 2] - most > 100 * max(most - least, 1):
                for c in range(3):
                    cuts[kept, c] = cuts[k, c]
                cuts[kept, 3], cuts[kept, 4] = least, most
                kept += 1
        if carry[0] > 0 and carry[1] - t > 100 and kept < _CUTS:
            cuts[kept, 0], cuts[kept, 1], cuts[kept, 2] = rows[i]["line"], carry[0], carry[1]
            cuts[kept, 3], cuts[kept, 4] = t, t
            kept += 1
        carry[2] = kept
        carry[1] = min(carry[1], t) if carry[0] > 0 else t
        carry[0] += 1
        if rows[i]["record"] == ln.CLOCK_SYNC:
            carry[4] = 1


# What `descents` remembers: rows so far, time of the last one, steps back, line of the first.
COUNTED, BEFORE, DESCENTS, DESCENT_LINE, DESCENT = range(5)


@arithmetic
def descents(rows: Any, format_a: bool, carry: Any) -> None:
    """Count the steps back in time from one line of a processor to the next."""
    for i in range(len(rows)):
        record, t = rows[i]["record"], rows[i]["time"]
        if format_a and (record == 11 or record == 12):
            continue  # statistics of a call that is over are written late
        fresh = carry[COUNTED] == 0 or (format_a and (record == 1 or record == ln.CLOCK_SYNC))
        if not fresh and t < carry[BEFORE]:
            carry[DESCENTS] += 1
            if carry[DESCENT_LINE] == 0:
                carry[DESCENT_LINE] = rows[i]["line"]
        carry[COUNTED] += 1
        carry[BEFORE] = t


def clock_cut(carry: Any) -> tuple[int, int]:
    """First line on the clock that counts, and how many rows are before it, from what `jumps` found."""
    if carry[3]:
        return int(carry[3]), int(carry[5])
    if carry[0] >= 8 and not carry[4]:
        for line, before in carry[6:].reshape(_CUTS, 5)[: carry[2], :2][::-1].tolist():
            if before <= carry[0] // 2:
                return line, before
    return 0, 0


# What `last_run` remembers: whether tracing has begun and ended, line where the run begins, rows before,
# rows so far, latest time of the run.
STARTED, EXITED, RUN_LINE, RUN_BEFORE, RUN_ROWS, RUN_LATEST, RUN = range(7)


@arithmetic
def last_run(rows: Any, since: int, carry: Any) -> None:
    """Find where, in line order from line `since` on, the last run begins: at a trace_start after a
    trace_start and a trace_exit whose times it does not continue."""
    for i in range(len(rows)):
        if rows[i]["line"] < since:
            continue
        t = rows[i]["time"]
        if rows[i]["record"] == 19:
            carry[EXITED] = 1
        elif rows[i]["record"] == 1:
            if carry[STARTED] != 0 and carry[EXITED] != 0:
                if t < carry[RUN_LATEST]:
                    carry[RUN_LINE], carry[RUN_BEFORE], carry[RUN_LATEST] = (
                        rows[i]["line"],
                        carry[RUN_ROWS],
                        t,
                    )
                carry[EXITED] = 0
            carry[STARTED] = 1
        carry[RUN_LATEST] = max(carry[RUN_LATEST], t) if carry[RUN_ROWS] > 0 else t
        carry[RUN_ROWS] += 1


# What `survey` finds: rows, times of the first and the last statistics, their largest total, the highest
# level of statistics (-1: none is said), how many levels are said, records that equal another one, totals of
# messages (commstats), the largest numbers received and sent that they say, calls of the library, those that
# are entered while the same call is open, and the first line of these. Of format A: the highest level of
# events, whether one was higher than that of statistics, blocks that are open, blocks of the library and of
# the user inside of which nothing is recorded, times of communication with statistics of that time and
# without, and the first line of these.
(
    ROWS, STATS, STATS_FIRST, STATS_LAST, STATS_MOST, LEVELS, LEVEL, TWINS, COUNTS, RECEIVED, SENT, CALLS,
    INSIDE, INSIDE_LINE, EVENT_LEVEL, UNTIMED, BLOCKS, CLOSED, CLOSED_USER, TIMED, BARE, BARE_LINE, FACTS,
) = range(23)  # fmt: skip

#: A record is compared with so many before and after it at the same time.
_NEAR = 16


@inlined
def _twins(rows: Any, begin: int, end: int) -> int:
    """How many of rows[begin:end], which are of one time, equal another one of the nearest."""
    found = 0
    for i in range(begin, end):
        a = rows[i]
        for j in range(max(i - _NEAR, begin), min(i + _NEAR + 1, end)):
            b = rows[j]
            if (
                i != j
                and a["record"] == b["record"]
                and a["key"] == b["key"]
                and a["nd"] == b["nd"]
                and a["d0"] == b["d0"]
                and a["d1"] == b["d1"]
                and a["d2"] == b["d2"]
                and a["d3"] == b["d3"]
            ):
                found += 1
                break
    return found


@arithmetic
def survey(
    rows: Any, roles: Any, own: Any, depth: Any, opened: Any, matched: Any, seen: Any, facts: Any, ahead: Any
) -> None:  # fmt: skip
    """What must be known of a processor before its states are; rows cut between different times.

    own (keys,): whether a key is a call of the library, which is not entered within itself. depth (2, keys):
    entries open at the time before, and how many were entered in a row: a call that is entered again is
    within itself; those after it, when one more is always open, are not counted.
    opened, matched (keys,): entries open and entries that have an exit. seen (26, 2): count and first line
    by record type. ahead (2,): time of the first statistics of these rows, and the least total then.
    """
    n = len(rows)
    i = 0
    found = False
    while i < n:
        t = rows[i]["time"]
        ending = timed = False
        spoken = np.int64(0)
        j = i
        while j < n and rows[j]["time"] == t:
            r = rows[j]
            kind = min(max(r["record"], 0), 25)
            seen[kind, 0] += 1
            if seen[kind, 1] == 0 or r["line"] < seen[kind, 1]:
                seen[kind, 1] = r["line"]
            if r["key"] >= 0:
                role = roles[r["record"]]
                ending = ending or role == 2
                opened[r["key"]] += role == 1
            if spoken == 0 and (kind == 4 or kind == 6 or kind == 7 or kind == 8 or kind == 10):
                spoken = r["line"]
            if kind == 11 and r["nd"] > 0:
                timed = True
                if facts[STATS] == 0:
                    facts[STATS_FIRST], facts[STATS_MOST] = t, r["d0"]
                facts[STATS] += 1
                facts[STATS_LAST] = t
                facts[STATS_MOST] = max(facts[STATS_MOST], r["d0"])
                if not found:
                    found = True
                    ahead[0], ahead[1] = t, r["d0"]
                elif ahead[0] == t:
                    ahead[1] = min(ahead[1], r["d0"])
            elif kind == 12 and r["nd"] >= 3:
                facts[COUNTS] += 1
                facts[RECEIVED] = max(facts[RECEIVED], r["d0"])
                facts[SENT] = max(facts[SENT], r["d2"])
            elif (kind == 1 or kind == 14) and r["nd"] >= 3:
                facts[LEVEL] = max(facts[LEVEL], r["d1"]) if facts[LEVELS] > 0 else r["d1"]
                facts[LEVELS] += 1
                facts[EVENT_LEVEL] = max(facts[EVENT_LEVEL], r["d0"])
                facts[UNTIMED] |= r["d0"] > max(r["d1"], 1)
            elif kind == 20:
                # Each block that is open lowers the level; from 2 on messages are recorded.
                if facts[BLOCKS] + 2 >= facts[EVENT_LEVEL]:
                    facts[CLOSED if r["d0"] < 0 else CLOSED_USER] += 1
                facts[BLOCKS] += 1
            elif kind == 21:
                facts[BLOCKS] = max(facts[BLOCKS] - 1, 0)
            j += 1
        if spoken != 0:
            facts[TIMED if timed else BARE] += 1
            if not timed and facts[BARE_LINE] == 0:
                facts[BARE_LINE] = spoken
        if j > i + 1:
            facts[TWINS] += _twins(rows, i, j)
        if ending:
            for m in range(i, j):
                k = rows[m]["key"]
                if k >= 0 and roles[rows[m]["record"]] == 2 and opened[k] > 0:
                    opened[k] -= 1
                    matched[k] += 1
        for m in range(i, j):
            k = rows[m]["key"]
            if k < 0 or not own[k]:
                continue
            facts[CALLS] += roles[rows[m]["record"]] == 1
            more = opened[k] - depth[0, k]
            if more == 0:
                continue
            row = depth[1, k] + more if more > 0 else 0
            if row > 1 and depth[1, k] < 2:
                facts[INSIDE] += 1
                if facts[INSIDE_LINE] == 0 or rows[m]["line"] < facts[INSIDE_LINE]:
                    facts[INSIDE_LINE] = rows[m]["line"]
            depth[0, k], depth[1, k] = opened[k], row
        i = j
    facts[ROWS] += n


# What `pair` counts, each with the first line.
ORPHANS, ORPHAN_LINE, OPENED, OPEN_LINE, PAIRED = range(5)


@arithmetic
def pair(
    rows: Any, begin: int, roles: Any, matched: Any, entered: Any, heads: Any, tails: Any,
    mate: Any, lasting: Any, durations: Any, count: Any,
) -> int:  # fmt: skip
    """Pair entries with exits first in, first out; how many entries stay open here, and are closed later.

    rows: their keys are dense, -1 none; rows[:begin] are what stayed open before. roles: by record type 1
    entry, 2 exit, 0 neither. matched (keys,): how many entries have an exit at all; as pairs are made first
    in, first out, these are the first ones. entered (keys,): entries so far. heads, tails (keys,): scratch,
    -1 before and after. mate (N,), result: index of the partner, -1 none, -2 an entry that is never closed.
    lasting (N,), result: indices of those that stay open. count (PAIRED,): orphan exits and such entries.
    """
    n = len(rows)
    i = 0
    while i < n:
        t = rows[i]["time"]
        j = i
        while j < n and rows[j]["time"] == t:
            k = rows[j]["key"]
            mate[j] = -1
            if k >= 0 and roles[rows[j]["record"]] == 1:
                if j >= begin:
                    entered[k] += 1
                if j >= begin and entered[k] > matched[k]:
                    mate[j] = -2
                    count[OPENED] += 1
                    if count[OPEN_LINE] == 0 or rows[j]["line"] < count[OPEN_LINE]:
                        count[OPEN_LINE] = rows[j]["line"]
                else:
                    # Until it is paired, an entry's mate is the next entry of its key.
                    if heads[k] < 0:
                        heads[k] = j
                    else:
                        mate[tails[k]] = j
                    tails[k] = j
            j += 1
        for m in range(i, j):
            k = rows[m]["key"]
            if k < 0 or roles[rows[m]["record"]] != 2:
                continue
            e = heads[k]
            if e >= 0:
                heads[k] = mate[e]
                mate[e] = m
                mate[m] = e
                durations[k] += t - rows[e]["time"]
            else:
                count[ORPHANS] += 1
                if count[ORPHAN_LINE] == 0 or rows[m]["line"] < count[ORPHAN_LINE]:
                    count[ORPHAN_LINE] = rows[m]["line"]
        i = j
    left = 0
    for i in range(n):
        k = rows[i]["key"]
        if k >= 0 and heads[k] == i:
            heads[k] = mate[i]
            mate[i] = -1
            lasting[left] = i
            left += 1
    return left


@arithmetic
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
    region_of (keys,): -1 none. dangling (keys,): entries without an exit (mate -2) that are still open; those
    of `user` keys end with the `trace_key` region, the others are left to the caller. The results need room
    for 2 (end - begin) + dangling.sum() rows.
    """
    used = 0
    i = begin
    while i < end:
        t = rows[i]["time"]
        j = i
        named = False
        while j < end and rows[j]["time"] == t:
            k = rows[j]["key"]
            named = named or (k >= 0 and region_of[k] >= 0)
            j += 1
        ended = False
        first, last = 0, 3 if named else 0
        if named and j == i + 1:  # alone it has one step, as its mate is of another time
            first = 1 if roles[rows[i]["record"]] == 1 else 0
            last = first + 1
        for step in range(first, last):
            for m in range(i, j):
                k = rows[m]["key"]
                if k < 0 or region_of[k] < 0:
                    continue
                role = roles[rows[m]["record"]]
                if role == 1 and step == 1:
                    time[used], kind[used], region[used] = t, 0, region_of[k]
                    used += 1
                    if mate[m] == -2:
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


@inlined
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


@inlined
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


# Long: a branch for each kind of record.
@arithmetic
def states_a(
    rows: Any,
    mate: Any,
    usable: bool,
    restarted: bool,
    begin: int,
    ahead: Any,
    carry: Any,
    time: Any,
    state: Any,
) -> int:
    """Changes of state in rows[begin:] of format A (cut between different times); returns how many.

    Statistics (compstats) are running totals of the time in communication calls: between two of them a
    processor communicates when the total grew by at least half of the time that passed. Inside such an
    interval it waits from recv_blocking to recv_waking, and all the time in a barrier. usable: the
    statistics surround the calls; without, only waiting is known. restarted: tracing began more than
    once, so between trace_exit and trace_start nothing is known. ahead (3,): whether there are statistics
    after these rows, the time of the first, and the least total then.
    The results need room for 2 (len(rows) - begin) rows.
    """
    n = len(rows)
    used = 0
    i = begin
    while i < n:
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
            if later < n or ahead[0] != 0:
                then, least = ahead[1], ahead[2]
                if later < n:
                    then, least = rows[later]["time"], rows[later]["d0"]
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
                    if grown > span + ROUNDING:
                        carry[GROWN] += 1
                        if carry[GROWN_LINE] == 0:
                            carry[GROWN_LINE] = line
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


@arithmetic
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


@arithmetic
def interleave(
    time: Any, kind: Any, region: Any, used: int, times: Any, changed: Any, now: int, state_regions: Any,
    out_time: Any, out_kind: Any, out_region: Any,
) -> Any:  # fmt: skip
    """Events of regions and changes of state as one row of events; at equal times the regions first.

    now: the state before; state_regions (STATES,): -1 none. Returns how many, and the state afterwards.
    """
    out = 0
    i = 0
    for j in range(len(times) + 1):
        while i < used and (j == len(times) or time[i] <= times[j]):
            out_time[out], out_kind[out], out_region[out] = time[i], kind[i], region[i]
            out += 1
            i += 1
        if j < len(times):
            if state_regions[now] >= 0:
                out_time[out], out_kind[out], out_region[out] = times[j], 1, state_regions[now]
                out += 1
            now = changed[j]
            if state_regions[now] >= 0:
                out_time[out], out_kind[out], out_region[out] = times[j], 0, state_regions[now]
                out += 1
    return out, now


@arithmetic
def marks(rows: Any, format_a: bool, kinds: Any, events: Any, at: Any) -> int:
    """Where marks and texts are: of format A records of `kinds`, of B marks of the user and lost buffers."""
    used = 0
    for i in range(len(rows)):
        r = rows[i]
        record = r["record"]
        if format_a:
            chosen = record < len(kinds) and kinds[record]
        else:
            event = events[r["key"]]
            chosen = record == 2 and (event >= 0 or -914 <= event <= -912)
        if chosen or r["nd"] == -1:
            at[used] = i
            used += 1
    return used

"""The compiled part of the second pass: from one processor's records to regions, states and messages.

Entries and exits with the same key are paired first in, first out: the k-th entry with the k-th exit; an exit
earlier than its entry is an orphan. So the order of lines at equal times, which carries no information in
sorted files, does not matter.

Sources: format A by the PICL 1.x node library (statistics as running totals), format B by ORNL/TM-12125;
states as in ORNL/TM-11637, section 1 (a processor that does not compute is idle or communicates).
"""

from __future__ import annotations

from desktop.core.arrays import AnyArray, Bytes, Flags, Ints
from desktop.core.jit import arithmetic, inlined, place_in
from desktop.data.events import EventKind
from desktop.data.importers._picl import tables as tb
from desktop.data.importers._picl.lines import count

_ENTER, _LEAVE = int(EventKind.ENTER), int(EventKind.LEAVE)

# -- records in the order of lines

#: Most cuts that `jumps` considers at once: each must lie 100 times lower than the one before.
_CUTS = 12
#: State of `jumps`: rows so far, least time so far, number of cuts considered, line after the last clock
#: synchronization, whether the last row was one, rows before it; then for each cut its line, rows before,
#: least time before, least and largest time after.
JUMPS = 6 + 5 * _CUTS


@arithmetic
def jumps(rows: AnyArray, carry: Ints) -> None:
    """Find where, in line order, a clock was set: after clock_sync, or where all later times are below all
    earlier ones by more than 100 times their span."""
    cuts = carry[6:].reshape(_CUTS, 5)
    for i in range(len(rows)):
        t = rows[i]["time"]
        if carry[4] != 0:
            carry[3], carry[4], carry[5] = rows[i]["line"], 0, carry[0]
        left = 0
        for k in range(carry[2]):
            least, most = min(cuts[k, 3], t), max(cuts[k, 4], t)
            if cuts[k, 2] - most > 100 * max(most - least, 1):
                for c in range(3):
                    cuts[left, c] = cuts[k, c]
                cuts[left, 3], cuts[left, 4] = least, most
                left += 1
        if carry[0] > 0 and carry[1] - t > 100 and left < _CUTS:
            cuts[left, 0], cuts[left, 1], cuts[left, 2] = rows[i]["line"], carry[0], carry[1]
            cuts[left, 3], cuts[left, 4] = t, t
            left += 1
        carry[2] = left
        carry[1] = min(carry[1], t) if carry[0] > 0 else t
        carry[0] += 1
        if rows[i]["kind"] == tb.CLOCK_SYNC:
            carry[4] = 1


def clock_cut(carry: Ints) -> tuple[int, int]:
    """First line on the final clock, and the number of rows before it, from the state of `jumps`."""
    if carry[3]:
        return int(carry[3]), int(carry[5])
    if carry[0] >= 8 and not carry[4]:
        for line, before in carry[6:].reshape(_CUTS, 5)[: carry[2], :2][::-1].tolist():
            if before <= carry[0] // 2:
                return line, before
    return 0, 0


# State of `last_run`: whether tracing has begun and ended, line where the run begins, rows before, rows so
# far, latest time of the run.
STARTED, EXITED, RUN_LINE, RUN_BEFORE, RUN_ROWS, RUN_LATEST, RUN = range(7)


@arithmetic
def last_run(rows: AnyArray, since: int, carry: Ints) -> None:
    """Find where, in line order from line `since` on, the last run begins: at a trace_start after a
    trace_start and a trace_exit whose times it does not continue."""
    for i in range(len(rows)):
        if rows[i]["line"] < since:
            continue
        t = rows[i]["time"]
        if rows[i]["kind"] == tb.TRACE_EXIT:
            carry[EXITED] = 1
        elif rows[i]["kind"] == tb.TRACE_START:
            if carry[STARTED] != 0 and carry[EXITED] != 0:
                if t < carry[RUN_LATEST]:
                    carry[RUN_LINE], carry[RUN_BEFORE] = rows[i]["line"], carry[RUN_ROWS]
                    carry[RUN_LATEST] = t
                carry[EXITED] = 0
            carry[STARTED] = 1
        carry[RUN_LATEST] = max(carry[RUN_LATEST], t) if carry[RUN_ROWS] > 0 else t
        carry[RUN_ROWS] += 1


@arithmetic
def descents(rows: AnyArray, carry: Ints, findings: Ints) -> None:
    """Count the backward time steps between successive lines; carry (2,): rows so far, time of the last."""
    for i in range(len(rows)):
        kind, t = rows[i]["kind"], rows[i]["time"]
        if kind == tb.COMPSTATS or kind == tb.COMMSTATS:
            continue  # statistics of a finished call are written late
        fresh = carry[0] == 0 or kind == tb.TRACE_START or kind == tb.CLOCK_SYNC
        if not fresh and t < carry[1]:
            count(findings, tb.DESCENTS, rows[i]["line"])
        carry[0] += 1
        carry[1] = t


@arithmetic
def to_ticks(rows: AnyArray, decimals: int) -> int:
    """Convert times to units of 10**-decimals seconds; returns how many had to be rounded."""
    rounded = 0
    for i in range(len(rows)):
        scale, value = int(rows[i]["scale"]), rows[i]["time"]
        while scale < decimals:
            value *= 10
            scale += 1
        rounded += scale > decimals
        exact, half = value, value - value
        while scale > decimals:
            half = abs(value) % 10
            value = value // 10 if value >= 0 else -(-value // 10)
            scale -= 1
        if half >= 5:
            value += 1 if exact >= 0 else -1
        rows[i]["time"] = value
    return rounded


# -- records in the order of time, first pass

# What `survey` finds: statistics, times of the first and the last, their largest total, the highest level of
# statistics and the number of levels given, records that equal another one, totals of messages (commstats),
# the largest received and sent numbers in them, calls of the library, records of entries and exits, whether
# tracing (B) ends before it begins. For format A: the highest level of events, whether one was above that of
# statistics, open blocks, blocks of the library and of the user inside of which nothing is recorded, times of
# communication with statistics of that time.
(
    STATS, STATS_FIRST, STATS_LAST, STATS_MOST, LEVEL, LEVELS, TWINS, COUNTS, NUMBER_RECEIVED, NUMBER_SENT,
    CALLS, TOLD, EARLY, EVENT_LEVEL, UNTIMED, BLOCKS, CLOSED, CLOSED_USER, TIMED, FACTS,
) = range(20)  # fmt: skip

#: A record is compared with so many before and after it that have the same time.
_NEAR = 16


@inlined
def _twins(rows: AnyArray, begin: int, end: int) -> int:
    """How many of rows[begin:end], which have the same time, equal another one nearby."""
    count = 0
    for i in range(begin, end):
        a = rows[i]
        for j in range(max(i - _NEAR, begin), min(i + _NEAR + 1, end)):
            b = rows[j]
            same = i != j and a["kind"] == b["kind"] and a["key"] == b["key"] and a["nd"] == b["nd"]
            if same and (
                a["d0"] == b["d0"] and a["d1"] == b["d1"] and a["d2"] == b["d2"] and a["d3"] == b["d3"]
            ):
                count += 1
                break
    return count


# Long: a branch for each kind of record.
@arithmetic
def survey(
    rows: AnyArray, library: Flags, depth: Ints, opened: Ints, matched: Ints, seen: Ints, facts: Ints,
    findings: Ints, ahead: Ints,
) -> None:  # fmt: skip
    """Collect what the states of a processor depend on; rows are cut between different times.

    library (keys,): whether a key is a call of the library, which never contains itself. depth (2, keys):
    entries open at the time before, and number of entries in a row: a call that is entered again contains
    itself; later ones, while one more stays open, are not counted. opened, matched (keys,): open entries, and
    entries that have an exit. seen (KINDS, 2): count and first line by kind. facts (FACTS,): results. ahead
    (3,): whether these rows have statistics, the time of the first, and the least total then.
    """
    n = len(rows)
    i = 0
    while i < n:
        t = rows[i]["time"]
        ending = timed = False
        spoken = rows[i]["line"] - rows[i]["line"]
        j = i
        while j < n and rows[j]["time"] == t:
            r = rows[j]
            kind = r["kind"]
            count(seen, kind, r["line"])
            if r["key"] >= 0:
                role = tb.ROLES[kind]
                ending = ending or role == tb.LEAVES
                opened[r["key"]] += role == tb.ENTERS
                facts[TOLD] += role != 0
            if kind == tb.RECV_BLOCKING or kind == tb.SYNC or (kind < tb.SYNC and tb.MESSAGES[kind] >= 0):
                spoken = r["line"] if spoken == 0 else spoken
            elif kind == tb.COMPSTATS and r["nd"] > 0:
                timed = True
                if facts[STATS] == 0:
                    facts[STATS_FIRST], facts[STATS_MOST] = t, r["d0"]
                facts[STATS] += 1
                facts[STATS_LAST] = t
                facts[STATS_MOST] = max(facts[STATS_MOST], r["d0"])
                if ahead[0] == 0:
                    ahead[0], ahead[1], ahead[2] = 1, t, r["d0"]
                elif ahead[1] == t:
                    ahead[2] = min(ahead[2], r["d0"])
            elif kind == tb.COMMSTATS and r["nd"] >= 3:
                facts[COUNTS] += 1
                facts[NUMBER_RECEIVED] = max(facts[NUMBER_RECEIVED], r["d0"])
                facts[NUMBER_SENT] = max(facts[NUMBER_SENT], r["d2"])
            elif (kind == tb.TRACE_START or kind == tb.TRACE_LEVEL) and r["nd"] >= 3:
                facts[LEVEL] = max(facts[LEVEL], r["d1"]) if facts[LEVELS] > 0 else r["d1"]
                facts[LEVELS] += 1
                facts[EVENT_LEVEL] = max(facts[EVENT_LEVEL], r["d0"])
                facts[UNTIMED] |= r["d0"] > max(r["d1"], 1)
            elif kind == tb.BLOCK_BEGIN:
                # Each open block lowers the level; from 2 on messages are recorded.
                if facts[BLOCKS] + 2 >= facts[EVENT_LEVEL]:
                    facts[CLOSED if r["d0"] < 0 else CLOSED_USER] += 1
                facts[BLOCKS] += 1
            elif kind == tb.BLOCK_END:
                facts[BLOCKS] = max(facts[BLOCKS] - 1, 0)
            j += 1
        if seen[tb.TRACED, 0] > 0 and seen[tb.TRACING, 0] == 0:
            facts[EARLY] = 1
        if spoken != 0 and timed:
            facts[TIMED] += 1
        elif spoken != 0:
            count(findings, tb.BARE, spoken)
        if j > i + 1:
            facts[TWINS] += _twins(rows, i, j)
        if ending:
            for m in range(i, j):
                k = rows[m]["key"]
                if k >= 0 and tb.ROLES[rows[m]["kind"]] == tb.LEAVES and opened[k] > 0:
                    opened[k] -= 1
                    matched[k] += 1
        for m in range(i, j):
            k = rows[m]["key"]
            if k < 0 or not library[k]:
                continue
            facts[CALLS] += tb.ROLES[rows[m]["kind"]] == tb.ENTERS
            more = opened[k] - depth[0, k]
            if more == 0:
                continue
            row = depth[1, k] + more if more > 0 else 0
            if row > 1 and depth[1, k] < 2:
                count(findings, tb.INSIDE, rows[m]["line"])
            depth[0, k], depth[1, k] = opened[k], row
        i = j


# -- second pass


@arithmetic
def pair(
    rows: AnyArray, begin: int, matched: Ints, entered: Ints, heads: Ints, tails: Ints, mate: Ints,
    lasting: Ints, durations: Ints, findings: Ints,
) -> int:  # fmt: skip
    """Pair entries with exits first in, first out; returns how many entries are still open.

    rows: their keys are dense, -1 none; rows[:begin] are entries still open from before. matched (keys,): how
    many entries have an exit; as pairs are first in, first out, these are the first ones. entered (keys,):
    entries so far. heads, tails (keys,): scratch, -1 before and after. mate (N,), result: index of the
    partner, -1 none, -2 an entry that is never closed. lasting (N,), result: indices of entries that stay
    open. durations (keys,): sums of the durations, added to.
    """
    n = len(rows)
    i = 0
    while i < n:
        t = rows[i]["time"]
        j = i
        while j < n and rows[j]["time"] == t:
            k = rows[j]["key"]
            mate[j] = -1
            if k >= 0 and tb.ROLES[rows[j]["kind"]] == tb.ENTERS:
                if j >= begin:
                    entered[k] += 1
                if j >= begin and entered[k] > matched[k]:
                    mate[j] = -2
                    count(findings, tb.OPENED, rows[j]["line"])
                else:
                    # Until it is paired, the mate of an entry is the next entry with its key.
                    if heads[k] < 0:
                        heads[k] = j
                    else:
                        mate[tails[k]] = j
                    tails[k] = j
            j += 1
        for m in range(i, j):
            k = rows[m]["key"]
            if k < 0 or tb.ROLES[rows[m]["kind"]] != tb.LEAVES:
                continue
            e = heads[k]
            if e >= 0:
                heads[k] = mate[e]
                mate[e] = m
                mate[m] = e
                durations[k] += t - rows[e]["time"]
            else:
                count(findings, tb.ORPHANS, rows[m]["line"])
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


# State of `walk`, carried from chunk to chunk: the state; whether between two statistics it computes (0),
# communicates (1) or that is unknown (2); open recv_blocking; whether a barrier began since the last
# statistics; whether the trace is being written, until when; whether the buffer was full; open sessions of
# tracing (where they matter), whether the first end of one has no begin; the first time from which on no
# state is entered.
NOW, INTERVAL, WAITS, SYNCED, WRITING, WRITTEN, STOPPED, SESSIONS, UNBEGUN, UNTIL, CARRY = range(11)

#: Totals may grow by so many microseconds more than the elapsed time.
_ROUNDING = 2
#: An interval longer than this (microseconds) whose share of communication lies between these bounds is
#: reported as partly computing; in real traces the share is nearly 0 or 1.
_PARTIAL_SPAN, _PARTIAL_LOW, _PARTIAL_HIGH = 20, 0.05, 0.95
_WRAP = 1 << 32


@inlined
def _state(carry: Ints, usable: bool) -> int:
    if carry[STOPPED] != 0:
        return tb.NO_DATA
    if carry[SESSIONS] == 0:
        return tb.NOT_TRACED
    if carry[WRITING] != 0:
        return tb.FLUSHING
    if not usable:
        return tb.WAITING if carry[WAITS] > 0 else tb.BUSY
    if carry[INTERVAL] == 0:
        return tb.BUSY
    if carry[INTERVAL] == 2:
        return tb.UNCLEAR
    if carry[WAITS] > 0:
        return tb.WAITING
    return tb.BARRIER if carry[SYNCED] != 0 else tb.COMMUNICATION


@inlined
def _put(out: tuple[Ints, Bytes, AnyArray], used: int, t: int, kind: int, region: int) -> int:
    """Append a row of events, if it has a region; out: times, kinds and regions."""
    if region < 0:
        return used
    out[0][used], out[1][used], out[2][used] = t, kind, region
    return used + 1


@inlined
def _switch(carry: Ints, t: int, now: int, states: Ints, out: tuple[Ints, Bytes, AnyArray], used: int) -> int:
    """Leave the region of the current state and enter that of the next one."""
    if now != carry[NOW]:
        used = _put(out, used, t, _LEAVE, states[carry[NOW]])
        used = _put(out, used, t, _ENTER, states[now])
        carry[NOW] = now
    return used


@inlined
def _measure(
    rows: AnyArray, later: int, t: int, total: int, line: int, ahead: Ints, carry: Ints, findings: Ints
) -> None:
    """Decide what a processor does from statistics at t to the next ones, in rows[later:] or `ahead`."""
    carry[INTERVAL] = 0
    n = len(rows)
    while later < n and (rows[later]["kind"] != tb.COMPSTATS or rows[later]["nd"] == 0):
        later += 1
    if later == n and ahead[0] == 0:
        return
    then, least = ahead[1], ahead[2]
    if later < n:
        then, least = rows[later]["time"], rows[later]["d0"]
    while later < n and rows[later]["time"] == then:
        if rows[later]["kind"] == tb.COMPSTATS and rows[later]["nd"] > 0:
            least = min(least, rows[later]["d0"])
        later += 1
    span, grown = then - t, least - total
    if grown < 0:
        count(findings, tb.RESTARTS, line)
        if 0 <= grown + _WRAP <= span + 1:
            grown += _WRAP
    if grown < 0:
        carry[INTERVAL] = 2
        return
    if grown > span + _ROUNDING:
        count(findings, tb.GROWN, line)
    share = grown / span
    carry[INTERVAL] = 1 if share >= 0.5 else 0
    if span > _PARTIAL_SPAN and _PARTIAL_LOW <= share < _PARTIAL_HIGH:
        count(findings, tb.PARTIAL, line)


@inlined
def _regions(
    rows: AnyArray, i: int, j: int, mate: Ints, region_of: Ints, user: Flags, trace_key: int, dangling: Ints,
    out: tuple[Ints, Bytes, AnyArray], used: int,
) -> int:  # fmt: skip
    """Enter and leave the regions in rows[i:j], which have the same time; returns the number of rows then.

    Open regions are left first, then regions are entered, then those of zero length left.
    """
    t = rows[i]["time"]
    ended = False
    first, last = 0, 3
    if j == i + 1:  # alone it is a single step, as its mate has another time
        first = 1 if tb.ROLES[rows[i]["kind"]] == tb.ENTERS else 0
        last = first + 1
    for step in range(first, last):
        for m in range(i, j):
            k = rows[m]["key"]
            if k < 0 or region_of[k] < 0:
                continue
            role = tb.ROLES[rows[m]["kind"]]
            if role == tb.ENTERS and step == 1:
                used = _put(out, used, t, _ENTER, region_of[k])
                dangling[k] += mate[m] == -2
            elif role == tb.LEAVES and mate[m] >= 0 and step == (2 if rows[mate[m]]["time"] == t else 0):
                used = _put(out, used, t, _LEAVE, region_of[k])
                ended = ended or k == trace_key
        if step == 0 and ended:
            for k in range(len(dangling)):
                while user[k] and dangling[k] > 0:
                    used = _put(out, used, t, _LEAVE, region_of[k])
                    dangling[k] -= 1
    return used


# Long: a branch for each kind of record.
@arithmetic
def walk(
    rows: AnyArray, begin: int, mate: Ints, region_of: Ints, user: Flags, trace_key: int, states: Ints,
    usable: bool, restarted: bool, ahead: Ints, carry: Ints, findings: Ints, dangling: Ints, time: Ints,
    kind: Bytes, region: AnyArray,
) -> int:  # fmt: skip
    """Enter and leave regions and states in rows[begin:] (cut between times); returns how many rows.

    Statistics (compstats) are running totals of the time in communication calls: between two of them a
    processor communicates if the total grew by at least half of the elapsed time. In such an interval it
    waits from recv_blocking to recv_waking, and all the time in a barrier. usable: the statistics surround
    the calls; without them only waiting is known. restarted: tracing of format A began more than once, so
    nothing is known between trace_exit and trace_start; in B nothing is outside of tracing. At equal times
    regions come first, then states.

    region_of (keys,), states (STATES,): regions, -1 none. dangling (keys,): open entries without an exit
    (mate -2); those of `user` keys end with the `trace_key` region, the others are left to the caller. ahead
    (3,): as in `survey`, for the rows after these. The results need space for 6 (len(rows) - begin) +
    dangling.sum() rows.
    """
    out = time, kind, region
    used = 0
    i = begin
    while i < len(rows):
        t = rows[i]["time"]
        if carry[WRITING] != 0 and carry[WRITTEN] <= t:
            carry[WRITING] = 0
            if carry[WRITTEN] < t:
                used = _switch(carry, carry[WRITTEN], _state(carry, usable), states, out, used)
        total = line = t - t
        counted = synced = started = exited = stopped = named = False
        j = i
        while j < len(rows) and rows[j]["time"] == t:
            r = rows[j]
            code = r["kind"]
            named = named or (r["key"] >= 0 and region_of[r["key"]] >= 0)
            if code == tb.COMPSTATS:
                if r["nd"] > 0:
                    total = max(total, r["d0"]) if counted else r["d0"]
                    counted, line = True, r["line"]
            elif code == tb.RECV_BLOCKING:
                carry[WAITS] += 1
            elif code == tb.RECV_WAKING:
                carry[WAITS] -= mate[j] >= 0
            elif code == tb.SYNC:
                synced = True
            elif code == tb.TRACE_START:
                started = True
            elif code == tb.TRACE_EXIT:
                exited = True
            elif code == tb.TRACE_STOP or code == tb.LOST or code == tb.LOST_MARK:
                stopped = True
            elif (code == tb.TRACE_FLUSH or code == tb.TRACE_FILES) and r["nd"] > 0:
                if r["d0"] > t:
                    carry[WRITTEN] = max(carry[WRITTEN], r["d0"]) if carry[WRITING] != 0 else r["d0"]
                    carry[WRITING] = 1
                elif r["d0"] < t:
                    count(findings, tb.BACKWARD, r["line"])
            elif code == tb.TRACING:
                carry[SESSIONS] += 1
            elif code == tb.TRACED:
                carry[STOPPED] = 0
                carry[SESSIONS] -= mate[j] >= 0 or carry[UNBEGUN] != 0
                carry[UNBEGUN] &= mate[j] >= 0
            j += 1
        # At equal times, a format A end comes after a full buffer, a format B end before.
        carry[STOPPED] = 0 if exited else (1 if stopped else carry[STOPPED])
        if exited and restarted:
            carry[SESSIONS] = 0
        if started:
            carry[SESSIONS] = 1
        carry[SYNCED] = 1 if synced else (0 if counted else carry[SYNCED])
        if counted:
            _measure(rows, j, t, total, line, ahead, carry, findings)
        if named:
            used = _regions(rows, i, j, mate, region_of, user, trace_key, dangling, out, used)
        now = _state(carry, usable) if t < carry[UNTIL] else tb.BUSY
        used = _switch(carry, t, now, states, out, used)
        i = j
    return used


# -- messages


@inlined
def _located(processor: int, processors: Ints, index: Ints) -> int:
    """Index of a location; -1 for wildcards and unknown processors."""
    if 0 <= processor < len(processors) and processors[processor] == processor:
        return int(index[processor])
    at = place_in(processors, processor)
    return index[at] if at < len(processors) and processors[at] == processor else -1


@arithmetic
def messages(
    rows: AnyArray, at: int, copy: int, cpu: int, numbers: Ints, index: Ints, cpus: Ints, communicators: bool,
    time: Ints, kind: Bytes, peer: AnyArray, communicator: AnyArray, tag: Ints, size: Ints, request: AnyArray,
) -> tuple[int, int, int]:  # fmt: skip
    """Make message rows of rows[at:], as many as there is space for.

    A send of format A to -1 goes to each of `cpus` but itself (`cpu`); `copy`: where among them to
    continue. Returns the number of rows, and at and copy to continue with.
    """
    used = 0
    while at < len(rows):
        r = rows[at]
        code = tb.MESSAGES[r["kind"]] if r["nd"] >= 3 else -1
        everybody = r["kind"] == tb.SEND and r["d2"] == -1
        last = len(cpus) if everybody else 1
        while code >= 0 and copy < last:
            if used == len(time):
                return used, at, copy
            partner = cpus[copy] if everybody else int(r["d2"])
            copy += 1
            if everybody and partner == cpu:
                continue
            time[used], tag[used], size[used], kind[used] = r["time"], r["d1"], r["d0"], code
            peer[used] = _located(partner, numbers, index)
            communicator[used], request[used] = (r["d3"] if communicators else 0) & 0xFFFFFFFF, 0
            used += 1
        copy = 0
        at += 1
    return used, at, copy

"""From the rows of one thread, in time order, to regions entered and left, properly nested.

A thread has at most one state at a time, and a stack of calls (MPI calls and functions) that events open and
close. Both become regions. A call that lies within one state is nested in that state's region; a state's
region is otherwise inside the calls and is left and entered again where a call begins or ends in it. So all
regions nest (but for calls that cross each other), and every call is entered once. With the rule "the
outermost region that is not computing decides" the state decides at every instant if calls that do not lie
within one state are taken as computing (their codes are odd). A state of computing needs no region: it is
what a thread does outside of all others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from desktop.core.jit import arithmetic, inlined
from desktop.data.importers._paraver import tables as tb

#: Kinds of calls are 0 .. 4 (MPI, by type) and 5 (functions); then:
FUNCTION, STATE, SWITCH, METRIC = range(5, 9)
CALLS = 6
_PAIRED = CALLS  # kinds below it are paired

#: Interned numbers that are given before all others: no state at this time, and tracing off.
GAP, OFF = 0, 1

#: What is known of an interned number: computing, another state, one not compared with the MPI calls.
COMPUTES, SHOWN, APART = range(3)

#: End of a call that never ends; of one that begins where it was open, and where it began at that time too.
NEVER, AGAIN, AGAIN_AT_ONCE = np.iinfo(np.int64).max, -2, -3

# Results of `pair`.
STRAY, REPEATED, OVERLAPS, STATED, SWITCHED, DEPTH, PAIR = range(7)

# What is carried from chunk to chunk.
(
    NOW,  # time that is reached
    NOW_STATE,  # interned number of the state, -1 none
    STATE_END,
    OFFS,  # bits: tracing is off, the buffer is flushed
    LAST,  # the thread's last time
    SEAT,  # interned number of the state's region that is entered, -1 none
    SEAT_AT,  # its place in the order of entering
    ENTERED,  # how many regions were entered
    NEXT_SWITCH,  # next row that turns tracing on or off
    IN_MPI,  # open MPI calls
    STARTED,
    RUNNING,  # ticks computing by states
    OUTSIDE,  # ticks outside of MPI calls, in states that can be compared
    CARRY,
) = range(14)


@inlined
def kind_of(event: int) -> int:
    if event < 0:
        return STATE
    if tb.POINT_TO_POINT <= event <= tb.FILES:
        return event - tb.POINT_TO_POINT
    if event == tb.FUNCTION:
        return FUNCTION
    if event == tb.TRACING or event == tb.FLUSHING:
        return SWITCH
    return METRIC


@arithmetic
def pair(rows: Any, ends: Any, heads: Any, tally: Any) -> None:
    """When every call ends, last begun first ended for each kind; states are cut where the next one begins.

    ends (N,), result: of a begin the time of its end, `NEVER` if there is none; of an end the time of its
    begin, -1 if there is none; -1 else. heads (CALLS,): scratch. tally (PAIR,): results.

    No MPI call contains itself: where one begins again it ends, as old tracers mark the end of a reduction.
    The second begin counts as a call without length.
    """
    n = len(rows)
    following = NEVER
    for i in range(n - 1, -1, -1):
        if rows[i]["type"] < 0 and rows[i]["value"] > rows[i]["time"]:
            tally[STATED] += 1
            if rows[i]["value"] > following:
                rows[i]["value"] = following
                tally[OVERLAPS] += 1
            following = rows[i]["time"]
    heads[:] = -1
    depth = 0
    for i in range(n):
        ends[i] = -1
        kind = kind_of(rows[i]["type"])
        if kind == SWITCH:
            tally[SWITCHED] += 1
        if kind >= _PAIRED:
            continue
        begin = heads[kind]
        value = rows[i]["value"]
        if value != 0 and kind != FUNCTION and begin >= 0 and rows[begin]["value"] == value:
            tally[REPEATED] += 1
            heads[kind] = ends[begin]
            ends[begin] = rows[i]["time"]
            ends[i] = AGAIN if rows[begin]["time"] < rows[i]["time"] else AGAIN_AT_ONCE
            depth -= 1
        elif value != 0:
            ends[i] = begin  # until it ends: the call around it
            heads[kind] = i
            depth += 1
            tally[DEPTH] = max(tally[DEPTH], depth)
        elif begin < 0:
            tally[STRAY] += 1
        else:
            heads[kind] = ends[begin]
            ends[begin] = rows[i]["time"]
            ends[i] = rows[begin]["time"]
            depth -= 1
    for kind in range(CALLS):
        at = heads[kind]
        while at >= 0:
            around = ends[at]
            ends[at] = NEVER
            at = around


@arithmetic
def cut(rows: Any, end: int) -> int:
    """The first row from `end` on that has another time than the row before it."""
    while 0 < end < len(rows) and rows[end]["time"] == rows[end - 1]["time"]:
        end += 1
    return end


@arithmetic
def keys(rows: Any, begin: int, end: int, out: Any) -> None:
    """A number for what rows[begin:end] begin: value or state and kind; that of `GAP` if they do not."""
    for i in range(begin, end):
        kind = kind_of(rows[i]["type"])
        out[i - begin] = key_of(STATE + 1, GAP)
        if kind == STATE:
            out[i - begin] = key_of(STATE, -1 - rows[i]["type"])
        elif kind < CALLS and rows[i]["value"] != 0:
            out[i - begin] = key_of(kind, rows[i]["value"])


@inlined
def key_of(kind: int, value: int) -> int:
    return (value << 3) | kind


@inlined
def _tick(carry: Any, known: Any, time: int) -> None:
    """Let time pass."""
    span = time - carry[NOW]
    carry[NOW] = time
    if carry[NOW_STATE] < 0 or carry[OFFS] != 0:
        return
    what = known[carry[NOW_STATE]]
    if what == COMPUTES:
        carry[RUNNING] += span
    if what != APART and carry[IN_MPI] == 0:
        carry[OUTSIDE] += span


@inlined
def _wanted(carry: Any, known: Any, stated: bool) -> int:
    """Which region stands for the state now; -1 none."""
    if carry[NOW] >= carry[LAST]:
        return -1
    if carry[OFFS] != 0:
        return OFF
    if not stated:
        return -1
    if carry[NOW_STATE] < 0:
        return GAP
    return carry[NOW_STATE] if known[carry[NOW_STATE]] != COMPUTES else -1


@inlined
def _sit(carry: Any, seat: int, used: int, time: int, out_time: Any, out_kind: Any, out_code: Any) -> int:
    """Leave the state's region and enter another one, where `seat` is none or another."""
    if carry[SEAT] == seat:
        return used
    if carry[SEAT] >= 0:
        out_time[used], out_kind[used], out_code[used] = time, 1, 2 * carry[SEAT]
        used += 1
    carry[SEAT] = seat
    if seat >= 0:
        out_time[used], out_kind[used], out_code[used] = time, 0, 2 * seat
        used += 1
        carry[SEAT_AT] = carry[ENTERED]
        carry[ENTERED] += 1
    return used


@inlined
def _holds(carry: Any, tops: Any, open_at: Any) -> bool:
    """Whether a call is open inside the state's region."""
    found = False
    for kind in range(CALLS):
        found = found or (tops[kind] > 0 and open_at[kind, tops[kind] - 1] > carry[SEAT_AT])
    return found


@inlined
def _until(
    carry: Any,
    known: Any,
    stated: bool,
    time: int,
    used: int,
    out_time: Any,
    out_kind: Any,
    out_code: Any,
) -> int:
    """On the way to `time`: a state that ends before it ends, and what follows is not known."""
    if carry[STARTED] == 0:
        carry[STARTED] = 1
        if carry[NOW] < time:
            seat = _wanted(carry, known, stated)
            used = _sit(carry, seat, used, carry[NOW], out_time, out_kind, out_code)
    if carry[NOW_STATE] >= 0 and carry[STATE_END] < time:
        end = carry[STATE_END]
        _tick(carry, known, end)
        carry[NOW_STATE] = -1
        used = _sit(carry, _wanted(carry, known, stated), used, end, out_time, out_kind, out_code)
    return used


@arithmetic
def nest(
    rows: Any,
    ends: Any,
    ids: Any,
    begin: int,
    end: int,
    known: Any,
    stated: bool,
    switched: bool,
    carry: Any,
    tops: Any,
    open_ids: Any,
    open_at: Any,
    scratch: Any,
    out_time: Any,
    out_kind: Any,
    out_code: Any,
) -> int:
    """Enters and leaves of rows[begin:end] (cut between different times); returns how many.

    ids: interned numbers of these rows. known: by interned number. tops (CALLS,): how many calls of each
    kind are open; open_ids, open_at (CALLS, depth): their codes and places in the order of entering. A code
    is twice the interned number, and one more for a call that does not lie within one state. scratch
    (3, CALLS).
    The results need room for 5 (end - begin) + 3 rows.
    """
    used = 0
    scratch[:] = 0
    ending, waiting, cursor = scratch[0], scratch[1], scratch[2]
    i = begin
    while i < end:
        t = rows[i]["time"]
        # Only if there is anything to do: to call with so many arrays takes half of the time here.
        if carry[STARTED] == 0 or (carry[NOW_STATE] >= 0 and carry[STATE_END] < t):
            used = _until(carry, known, stated, t, used, out_time, out_kind, out_code)
        _tick(carry, known, t)
        if carry[NOW_STATE] >= 0 and carry[STATE_END] <= t:
            carry[NOW_STATE] = -1
        leaves = 0
        enters = 0
        instants = 0
        j = i
        while j < end and rows[j]["time"] == t:
            kind = kind_of(rows[j]["type"])
            value = rows[j]["value"]
            if kind == STATE:
                if value > t:
                    carry[NOW_STATE] = ids[j - begin]
                    carry[STATE_END] = value
            elif kind == SWITCH:
                bit = 1 if rows[j]["type"] == tb.TRACING else 2
                off = (value == 0) == (bit == 1)
                carry[OFFS] = (carry[OFFS] | bit) if off else (carry[OFFS] & ~bit)
            elif kind < CALLS:
                if value == 0:
                    if 0 <= ends[j] < t:
                        ending[kind] += 1
                        leaves += 1
                elif ends[j] > t:
                    if waiting[kind] == 0:
                        cursor[kind] = j
                    waiting[kind] += 1
                    enters += 1
                else:
                    instants += 1
                    if ends[j] == AGAIN:
                        ending[kind] += 1
                        leaves += 1
            j += 1
        # Calls that end: those entered last are left first.
        while leaves > 0:
            last = -1
            for kind in range(CALLS):
                if ending[kind] > 0 and (
                    last < 0 or open_at[kind, tops[kind] - 1] > open_at[last, tops[last] - 1]
                ):
                    last = kind
            top = tops[last] - 1
            inside = carry[SEAT] >= 0 and carry[SEAT_AT] > open_at[last, top]
            if inside and not _holds(carry, tops, open_at):
                used = _sit(carry, -1, used, t, out_time, out_kind, out_code)
            out_time[used], out_kind[used], out_code[used] = t, 1, open_ids[last, top]
            used += 1
            tops[last] = top
            ending[last] -= 1
            leaves -= 1
            if last != FUNCTION:
                carry[IN_MPI] -= 1
        # The state, and until when nothing can change it.
        seat = _wanted(carry, known, stated)
        if carry[SEAT] >= 0 and carry[SEAT] != seat:
            used = _sit(carry, -1, used, t, out_time, out_kind, out_code)
        limit = t
        if seat >= 0:
            limit = NEVER - 1
            if switched:
                at = max(carry[NEXT_SWITCH], j)
                while at < len(rows) and kind_of(rows[at]["type"]) != SWITCH:
                    at += 1
                carry[NEXT_SWITCH] = at
                if at < len(rows):
                    limit = rows[at]["time"]
            if seat == GAP:
                limit = t
            elif seat != OFF:
                limit = min(limit, carry[STATE_END])
        # Calls that begin: those that end last are entered first.
        while enters > 0:
            longest = -1
            for kind in range(CALLS):
                if waiting[kind] > 0 and (longest < 0 or ends[cursor[kind]] > ends[cursor[longest]]):
                    longest = kind
            at = cursor[longest]
            within = seat >= 0 and ends[at] <= limit
            if within:
                used = _sit(carry, seat, used, t, out_time, out_kind, out_code)
            elif carry[SEAT] >= 0 and not _holds(carry, tops, open_at):
                used = _sit(carry, -1, used, t, out_time, out_kind, out_code)
            code = 2 * ids[at - begin] + (1 if stated and not within else 0)
            out_time[used], out_kind[used], out_code[used] = t, 0, code
            used += 1
            open_ids[longest, tops[longest]] = code
            open_at[longest, tops[longest]] = carry[ENTERED]
            tops[longest] += 1
            carry[ENTERED] += 1
            if longest != FUNCTION:
                carry[IN_MPI] += 1
            waiting[longest] -= 1
            enters -= 1
            at += 1
            while waiting[longest] > 0 and not (
                kind_of(rows[at]["type"]) == longest and rows[at]["value"] != 0 and ends[at] > t
            ):
                at += 1
            cursor[longest] = at
        if carry[SEAT] != seat:
            used = _sit(carry, seat, used, t, out_time, out_kind, out_code)
        m = i
        while instants > 0:
            if kind_of(rows[m]["type"]) < CALLS and rows[m]["value"] != 0 and ends[m] <= t:
                for step in range(2):
                    out_time[used], out_kind[used], out_code[used] = t, step, 2 * ids[m - begin]
                    used += 1
                instants -= 1
            m += 1
        i = j
    return used


@arithmetic
def finish(known: Any, stated: bool, carry: Any, out_time: Any, out_kind: Any, out_code: Any) -> int:
    """What is left to do at the thread's last time; returns how many rows (at most 4)."""
    used = _until(carry, known, stated, carry[LAST], 0, out_time, out_kind, out_code)
    _tick(carry, known, carry[LAST])
    return _sit(carry, -1, used, carry[LAST], out_time, out_kind, out_code)

"""From the rows of one thread, in time order, to regions entered and left, properly nested.

A thread has at most one state at a time, and a stack of calls (MPI calls and functions) that events open and
close. Both become regions. A call within one state is nested in that state's region; otherwise the state's
region is inside the calls, and is left and entered again where a call begins or ends. So all regions nest
(except calls that cross each other), and every call is entered once. The rule "the outermost region that is
not computing decides" then makes the state decide at every instant, if calls that do not lie within one state
count as computing (they have odd codes). A computing state needs no region: a thread outside of all regions
computes.

The rows come in chunks, cut between different times, so a thread may have any number of them. What a row
becomes depends on when its call ends, which may be many chunks later. So there are two passes: the first
(`Survey`) pairs begins and ends and keeps only pairs across chunks; the second pairs again, knowing these,
and nests. Of former chunks only open calls stay in memory.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from desktop.core.arrays import AnyArray, Bytes, Floats, Ints, Records
from desktop.core.jit import arithmetic, inlined
from desktop.data.importers._paraver import tables as tb

#: Kinds of calls are 0 .. 4 (MPI, by type) and 5 (functions); further kinds of rows:
FUNCTION, STATE, SWITCH, METRIC = range(5, 9)
CALLS = 6

#: Interned numbers with fixed values: no state at this time, and tracing off.
GAP, OFF = 0, 1

#: Classes of interned numbers: computing, another state, one that is not compared with the MPI calls, one
#: that occurs only in MPI calls.
COMPUTES, SHOWN, APART, SPEAKS = range(4)

#: End of a call that never ends; of one that begins while open, and of one open since that same time.
NEVER, AGAIN, AGAIN_AT_ONCE = np.iinfo(np.int64).max, -2, -3

# Results of `pair`.
STRAY, REPEATED, DEPTH, CALLED, PAIR = range(5)

#: Events that change the state's region: a state with a duration begins, tracing or flushing is switched.
BEGINS, SWITCHES, CHANGES = range(3)

# What is carried from chunk to chunk.
(
    NOW,  # current time
    NOW_STATE,  # interned number of the state, -1 none
    STATE_END,
    OFFS,  # bits: tracing is off, the buffer is flushed
    LAST,  # the thread's last time
    SEAT,  # interned number of the entered state region, -1 none
    SEAT_AT,  # its place in the order of entering
    ENTERED,  # how many regions were entered
    IN_MPI,  # open MPI calls
    STARTED,
    RUNNING,  # ticks computing by states
    OUTSIDE,  # ticks outside of MPI calls, in comparable states
    OVERLAPS,  # states that overlap the next one
    STATED,  # states
    GAPS,  # times at which a state ends and none follows
    MISSING,  # ticks without a state
    COMPARED,  # intervals in which a state and the MPI calls are comparable
    APART_FROM,  # those of them in which they contradict
    CONTRADICTED,  # ticks of these intervals
    CARRY,
) = range(20)


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


@inlined
def _change(rows: Records, at: int, change: int) -> bool:
    """Whether a row is a change of this kind."""
    event = rows[at]["type"]
    if change == BEGINS:
        return bool(event < 0 and rows[at]["value"] > rows[at]["time"])
    return bool(event == tb.TRACING or event == tb.FLUSHING)


@inlined
def _next(rows: Records, at: int, change: int) -> int:
    """The first row from `at` on that is a change of this kind; the number of rows if there is none."""
    while at < len(rows) and not _change(rows, at, change):
        at += 1
    return at


@arithmetic
def changes(rows: Records, coming: Ints) -> None:
    """Times of the first change of each kind, in coming (CHANGES,); unchanged where there is none."""
    for change in range(CHANGES):
        at = _next(rows, 0, change)
        if at < len(rows):
            coming[change] = rows[at]["time"]


@arithmetic
def pair(rows: Records, ends: Ints, first: int, opened: Ints, tops: Ints, late: Ints, tally: Ints) -> int:
    """Find the end of every call; of each kind of call, the last begun ends first.

    ends (N,): given, for a begin the time of its end if known to come after these rows, else `NEVER`; result,
    for a begin the time of its end; for an end the time of its begin, -1 if there is none; else -1. first:
    number of the first row. opened (CALLS, room, 3): row, time and value of the open calls, tops (CALLS,):
    their number; both are updated. late (N, 2), result: row and end of calls that began before these rows;
    returns how many. tally (PAIR,): results.

    No MPI call contains itself: where one begins again it ends, as old tracers mark the end of a reduction.
    The second begin counts as a call of zero length.
    """
    used = 0
    depth = 0
    for kind in range(CALLS):
        depth += tops[kind]
    for i in range(len(rows)):
        kind = kind_of(rows[i]["type"])
        if kind >= CALLS:
            ends[i] = -1
            continue
        time, value = rows[i]["time"], rows[i]["value"]
        top = tops[kind] - 1
        again = value != 0 and kind != FUNCTION and top >= 0 and opened[kind, top, 2] == value
        if value != 0 and not again:
            top += 1
            tally[CALLED] += 1
            opened[kind, top, 0], opened[kind, top, 1], opened[kind, top, 2] = first + i, time, value
            tops[kind] = top + 1
            depth += 1
            tally[DEPTH] = max(tally[DEPTH], depth)
            continue
        if top < 0:
            tally[STRAY] += 1
            ends[i] = -1
            continue
        begin = opened[kind, top, 1]
        ends[i] = begin
        if again:
            tally[REPEATED] += 1
            ends[i] = AGAIN if begin < time else AGAIN_AT_ONCE
        at = opened[kind, top, 0] - first
        if at >= 0:
            ends[at] = time
        else:
            late[used, 0], late[used, 1] = opened[kind, top, 0], time
            used += 1
        tops[kind] = top
        depth -= 1
    return used


class Pairing:
    """`pair` for the chunks of one thread, one after the other."""

    def __init__(self) -> None:
        self.tally = np.zeros(PAIR, np.int64)
        self.rows = 0
        self._opened: Ints = np.empty((CALLS, 0, 3), np.int64)
        self._tops = np.zeros(CALLS, np.int64)

    def pair(self, rows: AnyArray, ends: Ints) -> Ints:
        """Fill in `ends`; returns rows and ends of calls of former chunks (N, 2)."""
        deepest = int(self._tops.max())
        if deepest + len(rows) > self._opened.shape[1]:
            # Its unused part is never touched, so it takes no memory.
            opened = np.empty((CALLS, 2 * deepest + len(rows), 3), np.int64)
            opened[:, :deepest] = self._opened[:, :deepest]
            self._opened = opened
        late = np.empty((len(rows), 2), np.int64)
        used = pair(rows, ends, self.rows, self._opened, self._tops, late, self.tally)
        self.rows += len(rows)
        return late[:used].copy()


class Survey:
    """The result of the first pass over a thread's chunks: `tally` of `pair`, whether it has states, and what
    each chunk must know of later ones."""

    def __init__(self, chunks: Iterable[AnyArray]) -> None:
        pairing = Pairing()
        late, coming = [np.empty((0, 2), np.int64)], [np.full(CHANGES, NEVER)]
        for rows in chunks:
            late.append(pairing.pair(rows, np.empty(len(rows), np.int64)))
            changes(rows, coming[-1])
            coming.append(np.full(CHANGES, NEVER))
        self.tally = pairing.tally
        self._late = np.concatenate(late)
        self._late = self._late[np.argsort(self._late[:, 0])]
        # (chunks + 1, CHANGES) the first time of each change in or after a chunk.
        self._coming = np.minimum.accumulate(coming[::-1])[::-1]
        self.stated = bool(self._coming[0, BEGINS] != NEVER)

    def ends(self, first: int, count: int) -> Ints:
        """Ends of rows first .. first + count - 1 that come after their chunk, `NEVER` for all others."""
        ends = np.full(count, NEVER)
        begin, end = np.searchsorted(self._late[:, 0], (first, first + count))
        ends[self._late[begin:end, 0] - first] = self._late[begin:end, 1]
        return ends

    def after(self, number: int) -> Ints:
        """Times of the first changes after a chunk (CHANGES,), `NEVER` where there is none."""
        return np.asarray(self._coming[number + 1])


@arithmetic
def keys(rows: Records, out: Ints) -> None:
    """A number for what each row begins: value or state, and kind; that of `GAP` if it begins nothing."""
    for i in range(len(rows)):
        kind = kind_of(rows[i]["type"])
        out[i] = key_of(STATE + 1, GAP)
        if kind == STATE:
            out[i] = key_of(STATE, -1 - rows[i]["type"])
        elif kind < CALLS and rows[i]["value"] != 0:
            out[i] = key_of(kind, rows[i]["value"])


@arithmetic
def metrics(rows: Records, time: Ints, event: Ints, value: Floats) -> int:
    """Time, type and value of the rows that are metrics (no state, call or switch); returns their number."""
    used = 0
    for i in range(len(rows)):
        if kind_of(rows[i]["type"]) == METRIC:
            time[used], event[used], value[used] = rows[i]["time"], rows[i]["type"], rows[i]["value"]
            used += 1
    return used


@inlined
def key_of(kind: int, value: int) -> int:
    return (value << 3) | kind


@inlined
def _tick(carry: Ints, kinds: Bytes, time: int) -> None:
    """Advance to `time`, and account for the time between."""
    span = time - carry[NOW]
    carry[NOW] = time
    if carry[OFFS] != 0:
        return
    if carry[NOW_STATE] < 0:
        carry[MISSING] += span
        return
    kind = kinds[carry[NOW_STATE]]
    if span > 0 and kind in (COMPUTES, SPEAKS):
        carry[COMPARED] += 1
        if (kind == SPEAKS) == (carry[IN_MPI] == 0):
            carry[APART_FROM] += 1
            carry[CONTRADICTED] += span
    if kind == COMPUTES:
        carry[RUNNING] += span
    if kind != APART and carry[IN_MPI] == 0:
        carry[OUTSIDE] += span


@inlined
def _state_region(carry: Ints, kinds: Bytes, stated: bool) -> int:
    """The region that represents the current state; -1 none."""
    if carry[NOW] >= carry[LAST]:
        return -1
    if carry[OFFS] != 0:
        return OFF
    if not stated:
        return -1
    if carry[NOW_STATE] < 0:
        return GAP
    return carry[NOW_STATE] if kinds[carry[NOW_STATE]] != COMPUTES else -1


@inlined
def _sit(
    carry: Ints, seat: int, used: int, time: int, out_time: Ints, out_kind: Bytes, out_code: Ints
) -> int:
    """Leave the state's region and enter `seat` (-1: none), unless it is the same."""
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
def _holds(carry: Ints, tops: Ints, open_at: Ints) -> bool:
    """Whether a call is open inside the state's region."""
    holds = False
    for kind in range(CALLS):
        holds = holds or (tops[kind] > 0 and open_at[kind, tops[kind] - 1] > carry[SEAT_AT])
    return holds


@inlined
def _until(
    carry: Ints, kinds: Bytes, stated: bool, time: int, used: int, out_time: Ints, out_kind: Bytes,
    out_code: Ints,
) -> int:  # fmt: skip
    """Before `time` is reached: enter the first region, and leave that of a state that ends earlier."""
    if carry[STARTED] == 0:
        carry[STARTED] = 1
        if carry[NOW] < time:
            seat = _state_region(carry, kinds, stated)
            used = _sit(carry, seat, used, carry[NOW], out_time, out_kind, out_code)
    if carry[NOW_STATE] >= 0 and carry[STATE_END] < time:
        end = carry[STATE_END]
        carry[GAPS] += carry[OFFS] == 0
        _tick(carry, kinds, end)
        carry[NOW_STATE] = -1
        used = _sit(carry, _state_region(carry, kinds, stated), used, end, out_time, out_kind, out_code)
    return used


# Long: a branch for each kind of record.
@arithmetic
def nest(
    rows: Records, ends: Ints, ids: Ints, after: Ints, kinds: Bytes, stated: bool, carry: Ints, tops: Ints,
    open_ids: Ints, open_at: Ints, scratch: Ints, out_time: Ints, out_kind: Bytes, out_code: Ints,
) -> int:  # fmt: skip
    """Make the enters and leaves of a chunk; returns their number.

    ends: of `pair`. ids: interned numbers of the rows. after: times of the first changes after the chunk
    (CHANGES,). kinds: by interned number. tops (CALLS,): open calls of each kind; open_ids, open_at (CALLS,
    depth): their codes and places in the order of entering. A code is twice the interned number, plus one for
    a call that does not lie within one state. scratch (3, CALLS). The results need space for 5 N + 3 rows.
    """
    used = 0
    scratch[:] = 0
    ending, waiting, cursor = scratch[0], scratch[1], scratch[2]
    n = len(rows)
    state = switch = 0
    i = 0
    while i < n:
        t = rows[i]["time"]
        # Only if needed: a call with so many arrays takes half of the time here.
        if carry[STARTED] == 0 or (carry[NOW_STATE] >= 0 and carry[STATE_END] < t):
            used = _until(carry, kinds, stated, t, used, out_time, out_kind, out_code)
        _tick(carry, kinds, t)
        if carry[NOW_STATE] >= 0 and carry[STATE_END] <= t:
            carry[NOW_STATE] = -1
        leaves = 0
        enters = 0
        instants = 0
        j = i
        while j < n and rows[j]["time"] == t:
            kind = kind_of(rows[j]["type"])
            value = rows[j]["value"]
            if kind == STATE:
                if value > t:
                    carry[STATED] += 1
                    if carry[NOW_STATE] >= 0:
                        carry[OVERLAPS] += 1
                    carry[NOW_STATE] = ids[j]
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
        # Calls that end: the last entered is left first.
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
        # The state, and the time until which nothing can change it.
        seat = _state_region(carry, kinds, stated)
        if carry[SEAT] >= 0 and carry[SEAT] != seat:
            used = _sit(carry, -1, used, t, out_time, out_kind, out_code)
        limit = t
        if enters > 0 and seat >= 0 and seat != GAP:
            switch = _next(rows, max(switch, j), SWITCHES)
            limit = min(rows[switch]["time"] if switch < n else after[SWITCHES], NEVER - 1)
            if seat != OFF:
                state = _next(rows, max(state, j), BEGINS)
                limit = min(limit, carry[STATE_END], rows[state]["time"] if state < n else after[BEGINS])
        # Calls that begin: the one that ends last is entered first.
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
            code = 2 * ids[at] + (1 if stated and not within else 0)
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
                    out_time[used], out_kind[used], out_code[used] = t, step, 2 * ids[m]
                    used += 1
                instants -= 1
            m += 1
        i = j
    return used


@arithmetic
def finish(kinds: Bytes, stated: bool, carry: Ints, out_time: Ints, out_kind: Bytes, out_code: Ints) -> int:
    """Close what is open at the thread's last time; returns the number of rows (at most 4)."""
    used = _until(carry, kinds, stated, carry[LAST], 0, out_time, out_kind, out_code)
    _tick(carry, kinds, carry[LAST])
    return _sit(carry, -1, used, carry[LAST], out_time, out_kind, out_code)

"""What only a pass over the events tells: the run on an ideal network, and who waited for whom.

Waiting is what a partner's lateness explains: a receive waits for its send (late sender), an n-to-n
collective for the last member, a one-to-all for its root, the root of an all-to-one for the last member, a
scan for the last of lower ranks (the patterns of Scalasca). Within a call, until that instant or the end of
the call; the rest of the call is transfer. A call is the time inside one or several nested regions of
communication.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from desktop.core import ideal
from desktop.core.clock_kernels import corrected
from desktop.core.jit import kernel
from desktop.core.open_regions import BEGIN, END
from desktop.core.units import si
from desktop.data.classify import is_communication
from desktop.data.collectives import depends
from desktop.data.matching import match_collectives, match_messages, process_of
from desktop.data.store import ClockSummary, TraceStore
from desktop.data.utilization import Rules, states
from desktop.progress import Progress

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


#: Waiting is not given if contradictions may change it by more than this part of the communication.
DOUBTED = 0.05


@dataclass(frozen=True, eq=False)
class Replayed:
    """What only a pass over the events and messages of a range can tell.

    ideal_s : how long the range lasts on a network without latency and with infinite bandwidth; None where
        the messages do not match completely, `ideal_note` says so in words.
    communication_s, waiting_s : (locations,) seconds in communication, and the part of them in which a
        partner was late (late sender; others not yet in a collective). The rest is transfer. None where
        nothing is matched, or clocks contradict each other by so much that it would be wrong by more than
        `DOUBTED` of the communication; `waiting_note` says so in words.
    waiting_off_s : what contradictions between clocks may change of `waiting_s`, over all locations.
    """

    ideal_s: float | None
    ideal_note: str
    communication_s: Floats | None
    waiting_s: Floats | None
    waiting_note: str
    waiting_off_s: float = 0.0

    @property
    def transfer_s(self) -> Floats | None:
        """(locations,) seconds of communication that are not waiting."""
        if self.communication_s is None or self.waiting_s is None:
            return None
        return self.communication_s - self.waiting_s


class Replays:
    """The operations of a run in order, with what every processor has computed before each.

    Memory: some 80 bytes for each message, collective record and call, and the states of one location.

    Raises
    ------
    Cancelled : by `progress`.
    """

    def __init__(self, store: TraceStore, rules: Rules, progress: Progress) -> None:
        self.rules = rules
        self._store = store
        repaired = store.repair if rules.repaired is None else rules.repaired
        self._clocks = [at.clock(repaired) for at in store.locations]
        shift, drift, origin = zip(*self._clocks, strict=True) if self._clocks else ((), (), ())
        self._all_clocks = np.array(shift, np.int64), np.array(drift, float), np.array(origin, np.int64)
        self._ends = [
            clock.common(at.last)
            for at, clock in zip(store.locations, self._clocks, strict=True)
            if at.last is not None
        ]
        self._checked = store.clock.checked
        self._violations, most_s = _contradictions(store.clock, repaired)
        self._most = np.ceil(min(most_s * store.ticks_per_second, float(END)))
        late = self._order()
        self._done = np.zeros(self._time.size, np.int64)
        self._calls = [self._pass(i, late, progress) for i in range(len(store.locations))]

    def _order(self) -> Ints:
        """All operations by location and time; the instant for which each waits."""
        store, clocks = self._store, self._all_clocks
        process = process_of(store)
        parts = list(match_messages(store)) if not store.has("links") else []
        if parts:
            sender, receiver, sent, arrived = (np.concatenate([part[k] for part in parts]) for k in range(4))
        else:
            index, (sent, arrived, peer) = store.whole("links", "time", "arrival", "peer")
            sender = np.repeat(np.arange(len(store.locations)), index[:, 1])
            receiver = peer.astype(np.int64)
        sent, arrived = corrected(sent, sender, *clocks), corrected(arrived, receiver, *clocks)
        message = np.arange(sent.size)
        none = np.full(sent.size, BEGIN)
        where, time = [sender, receiver], [sent, arrived]
        kind = [np.full(sent.size, ideal.SEND), np.full(sent.size, ideal.RECEIVE)]
        key, late = [message, message], [none, sent]
        roots = [np.zeros(0, np.int64)]
        self._disagreeing = instances = 0
        known = [depends(text) for text in store.texts]
        of_text = np.array([-1 if one is None else one.pattern for one in known], np.int64)
        for found in match_collectives(store, depends):
            self._disagreeing += found.disagreeing
            members = np.diff(found.start)
            if not members.size:
                continue
            begin = corrected(found.begin, found.location, *clocks)
            of_kind = np.repeat(of_text[found.operation], members)
            root = np.maximum.reduceat(found.root, found.start[:-1])
            is_root = process[found.location] == process[np.repeat(root, members)]
            is_root &= np.repeat(root >= 0, members)
            last = np.repeat(np.maximum.reduceat(begin, found.start[:-1]), members)
            roots_begin = np.where(is_root, begin, BEGIN)
            root_begin = np.repeat(np.maximum.reduceat(roots_begin, found.start[:-1]), members)
            needed = np.where(of_kind == ideal.N_TO_N, last, BEGIN)
            needed = np.where((of_kind == ideal.ONE_TO_ALL) & ~is_root, root_begin, needed)
            needed = np.where((of_kind == ideal.ALL_TO_ONE) & is_root, last, needed)
            needed = np.where(of_kind == ideal.PREFIX, latest_before(found.start, begin), needed)
            where.append(found.location)
            time.append(begin)
            kind.append(of_kind)
            key.append(np.repeat(np.arange(instances, instances + members.size), members))
            late.append(needed)
            roots.append(root)
            instances += members.size
        self._receiver, self._root = receiver, np.concatenate(roots)
        all_of = [np.concatenate(column) for column in (where, time, kind, key, late)]
        order = np.lexsort((all_of[2], all_of[1], all_of[0]))
        location, self._time, self._kind, self._key, needed = (column[order] for column in all_of)
        self._start = np.searchsorted(location, np.arange(len(store.locations) + 1))
        return needed

    def _pass(self, location: int, late: Ints, progress: Progress) -> tuple[Ints, ...]:
        """Note what was computed before each operation; of each call: begin, end, waiting, communication, and
        what contradictions may change of the waiting."""
        progress.step(location, len(self._store.locations), "replay")
        store = self._store
        part = slice(self._start[location], self._start[location + 1])
        time, late = self._time[part], late[part]
        if store.locations[location].kind == "cpu":
            begin, end, doing = states(store, location, self.rules)
            counted = np.zeros(256, bool)
            counted[[int(activity) for activity in self.rules.computing]] = True
            self._done[part] = _time_until(time, begin, np.where(counted[doing], end - begin, 0))
        speaks = np.array([is_communication(region) for region in store.regions], np.uint8)
        opened = np.zeros(len(store.regions), np.int64)
        calls = [np.zeros((2, 0), np.int64)]
        depth = since = 0
        for when, kind, region in store.blocks("events", location, "time", "kind", "region"):
            found = np.empty((2, when.size), np.int64)
            n, depth, since = outer_calls(when, kind, region, speaks, opened, depth, since, found)
            calls.append(found[:, :n])
        clock = self._clocks[location]
        begin, end = (clock.common(row) for row in np.concatenate(calls, axis=1))
        if depth and store.locations[location].last is not None:
            begin = np.append(begin, clock.common(since))
            end = np.append(end, clock.common(store.locations[location].last))
        waiting = np.zeros(begin.size, np.int64)
        at = np.searchsorted(begin, time, side="right") - 1
        inside = np.flatnonzero(at >= 0)
        inside = inside[time[inside] <= end[at[inside]]]
        call = at[inside]
        np.maximum.at(waiting, call, np.minimum(late[inside], end[call]) - begin[call])
        doubted = np.zeros(begin.size, np.int64)
        if self._violations:
            of_partners = call[late[inside] > BEGIN]
            doubted[of_partners] = np.minimum(end - begin, np.int64(self._most))[of_partners]
        return begin, end, waiting, end - begin, doubted

    def between(self, begin: int, end: int, before: Ints, useful: Ints, sent: int, received: int) -> Replayed:
        """The part of the run from tick `begin` to tick `end` (shifts applied).

        `before`, `useful` : (locations,) ticks computed before it and in it. `sent`, `received`: messages
        of it, which ought all to be matched.
        """
        unit = np.float64(1.0 / self._store.ticks_per_second)
        if end >= max(self._ends, default=0):
            end = max(self._ends, default=0) + 1  # what happens at the very end belongs to it
        first, last = (
            np.array(
                [
                    a + np.searchsorted(self._time[a:b], cut, side="left")
                    for a, b in zip(self._start[:-1], self._start[1:], strict=True)
                ],
                np.int64,
            )
            for cut in (begin, end)
        )
        inside = np.concatenate([np.arange(a, b) for a, b in zip([0, *first], [0, *last], strict=True)])
        kinds = np.bincount(self._kind[inside], minlength=6)
        lost = int(sent - kinds[ideal.SEND]), int(received - kinds[ideal.RECEIVE])
        ticks = ideal.STUCK
        if self._disagreeing:
            note = "Members of a communicator name different collective operations."
        elif any(lost):
            note = _unmatched(*lost)
        elif not kinds.sum():
            note = "No messages and no collective operations are recorded here."
        else:
            ticks = ideal.ideal_duration(
                first, last, self._kind, self._key, self._done, before, useful, self._receiver, self._root
            )
            note = "" if ticks >= 0 else "The replay comes to a halt: everybody waits for somebody else."
        communication, waiting, waiting_note, off = self._split(begin, end)
        return Replayed(
            ideal_s=float(ticks * unit) if ticks >= 0 else None,
            ideal_note=note,
            communication_s=None if communication is None else communication * unit,
            waiting_s=None if waiting is None else waiting * unit,
            waiting_note=waiting_note,
            waiting_off_s=float(off * unit),
        )

    def _split(self, begin: int, end: int) -> tuple[Ints | None, Ints | None, str, int]:
        if not (self._kind != ideal.SEND).any():
            return None, None, "No receives and no collective operations are matched.", 0
        if not any(calls[0].size for calls in self._calls):
            return None, None, "The trace has no regions of communication.", 0
        spoken, waited, doubted = (
            np.array(
                [
                    int(np.maximum(np.minimum(since + part, end) - np.maximum(since, begin), 0).sum())
                    for since, part in ((calls[0], calls[k]) for calls in self._calls)
                ],
                np.int64,
            )
            for k in (3, 2, 4)
        )
        if not self._violations:
            return spoken, waited, "", 0
        off, unit = int(doubted.sum()), 1.0 / self._store.ticks_per_second
        said = f"The clocks contradict each other in {self._violations} of {self._checked} comparisons"
        if self._most < END:
            said += f", by {si(self._most * unit, 3)}s at most"
        if off > DOUBTED * spoken.sum():
            return None, None, f"{said}, so nobody knows who waited for whom.", 0
        return spoken, waited, f"{said}, which may change waiting by {si(off * unit, 3)}s.", off


def _contradictions(clock: ClockSummary, repaired: bool) -> tuple[int, float]:
    """How many checks contradict the clocks that are used, and by how many seconds at most."""
    known = clock.details
    if repaired and "repaired" in known:
        return int(known["repaired"]), float(known["most_repaired_s"])
    if repaired:
        return clock.violations_after, np.inf
    return clock.violations_before, float(known.get("most_before_s", np.inf))


def _unmatched(sends: int, receives: int) -> str:
    """Why there is no replay."""
    if not sends:
        return f"{_messages(receives)} received here {_are(receives)} not known to be sent."
    if not receives:
        return f"{_messages(sends)} sent here {_are(sends)} not known to be received."
    return (
        f"{_messages(sends)} sent here {_are(sends)} not known to be received, and "
        f"{_messages(receives).lower()} received here {_are(receives)} not known to be sent."
    )


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count} messages"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _time_until(time: Ints, begin: Ints, counted: Ints) -> Ints:
    """Ticks that count before each time; the intervals follow each other, `counted` of each is 0 or all."""
    if not begin.size:
        return np.zeros(time.size, np.int64)
    before = np.concatenate([[0], np.cumsum(counted)[:-1]])
    at = np.maximum(np.searchsorted(begin, time, side="right") - 1, 0)
    found: Ints = before[at] + np.clip(time - begin[at], 0, counted[at])
    return found


@kernel
def latest_before(start: Any, begin: Any) -> Any:
    """The latest begin (n,) of those that come before in the same operation; `BEGIN` for the first."""
    found = np.empty(begin.size, np.int64)
    for i in range(start.size - 1):
        latest = BEGIN
        for row in range(start[i], start[i + 1]):
            found[row] = latest
            latest = max(latest, begin[row])
    return found


@kernel
def outer_calls(
    time: Any, kind: Any, region: Any, speaks: Any, opened: Any, depth: int, since: int, out: Any
) -> Any:  # fmt: skip
    """Times (2, n) in which any region that `speaks` is open. Returns n and the state for the next block;
    `opened` (regions,) counts what is open."""
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
        elif opened[r] > 0:
            opened[r] -= 1
            depth -= 1
            if depth == 0:
                out[0, n] = since
                out[1, n] = time[i]
                n += 1
    return n, depth, since

"""Who waited for whom: the calls, operations and waits of a run, the basis of accounts, delays and what-if.

`Causality(store, rules, progress)` is one structure of arrays, made in one pass over each location. Times are
ticks of the common clock (`Location.clock` applied); locations are indices in the store; rows of calls,
operations and waits are sorted by location and time, those of location i from ``start[i]`` to ``start[i +
1]``::

    calls       start (locations + 1,); begin, end, region (calls,)
                times in one or several nested regions of communication; region: the outermost
    operations  start (locations + 1,); time, kind, key, done, call (operations,)
                kind: SEND, RECEIVE, N_TO_N, ... of `desktop.core.machine`; key: number of the message or
                of the collective operation; done: ticks that the location has computed until then;
                call: the row of the call it is in, -1 outside of all
    messages    sender, receiver, sent, arrived, posted, bytes, send, receive (messages,)
                posted: when the receive was posted, `BEGIN` if unknown; send, receive: operations
    collectives root (instances,), -1 none; barrier (instances,) bool; operation: index into the store's
                texts; sent, received: most bytes of a member
    sends       call, message (sends,): the call in which the sender of a message could wait for its receiver
    waits       start (locations + 1,); call, until, account, partner, released, partner_call, key (waits,)
                within `call`, from its begin to `until`, the location waits for `partner`, whose operation
                was at `released` (beyond `until` only where clocks contradict each other) in the row
                `partner_call` of the calls (-1: in none). account: the kind of wait, a number of
                `desktop.core.accounts.Account`; key: of the message or collective operation

Waits follow the patterns of Scalasca: a receive waits for its send (late sender), a send that lasts until its
receive is posted for that (late receiver), an n-to-n collective for the last member, a one-to-all for its
root, the root of an all-to-one for the last member, a scan for the last of lower ranks. If there are several
in one call, the latest counts; it lasts until that instant or the end of the call.

A late receiver is defined as in Scalasca: the receive is posted during the send call. This needs a send that
waits for the receive (synchronous mode, or a size above the library's eager limit); the call of a buffered
one ends before that. A receive is posted at its ``IRECV_POST``, or the begin of the call of a blocking
receive; otherwise the time is unknown and there is no late receiver. A call that waits for several requests
may last for another reason: there a send counts only if no message of its size or a larger one in this run
was completed before its receive was posted (which shows that the library buffers that size).

A call that asks for messages (MPI_Probe, MPI_Test) and receives none waits for the next one received.

Memory: about 100 bytes per message, 50 per member of a collective operation, 20 per call and 33 per wait, and
the states of one location.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from desktop.core import machine, wait_kernels
from desktop.core.accounts import CLASS_NUMBERS, WAITING, Account
from desktop.core.arrays import AnyArray, Bytes, Flags, Floats, Ints
from desktop.core.clock_kernels import corrected
from desktop.core.clock_line import Clock, columns
from desktop.core.ideal import STUCK, ideal_duration
from desktop.core.open_regions import BEGIN, END
from desktop.core.units import brief, grouped
from desktop.data import memory
from desktop.data.call_tables import (
    CallParts,
    Calls,
    Collectives,
    Intervals,
    MatchedMessages,
    Operations,
    Waits,
    call_at,
    entered,
    in_places,
    request_times,
)
from desktop.data.classify import is_communication, mpi_call
from desktop.data.collectives import depends
from desktop.data.events import RECEIVES, SENDS, Activity, MessageKind
from desktop.data.matching import address_of, match_collectives, match_messages, process_of
from desktop.data.store import ClockSummary, TraceStore
from desktop.data.utilization import Rules, accounts_of_classes, class_states, region_classes
from desktop.errors import StoreError
from desktop.progress import Cancelled, Progress

_T = TypeVar("_T")


#: Waiting is not reported if contradictions may change it by more than this share of the communication.
DOUBTED = 0.05
#: Most calls and operations that can be numbered.
MOST = 1 << 30
#: Locations processed at a time.
_THREADS = 2
_NUMBERED = ("events", "messages", "collectives")
#: Blocking sends and receives among the MPI calls, and calls that ask whether a message has arrived.
_SENDS = re.compile(r"[sr]?send|sendrecv(_replace)?|")
_RECEIVES = re.compile(r"m?recv|sendrecv(_replace)?|")
_ASKS = re.compile(r"i?m?probe|test(any|some|all)?")
_LONGER = (
    "The replay takes longer than the run did: clocks contradict each other, or members of a collective "
    "operation left it before others had entered."
)


@dataclass(frozen=True, eq=False)
class Replayed:
    """Results that need a pass over the events and messages of a range.

    ideal_s : duration of the range on a network without latency and with infinite bandwidth; None if the
        messages do not match completely, as `ideal_note` explains.
    communication_s, waiting_s : (locations,) seconds in communication, and of these the ones in which a
        partner was late. None if nothing is matched, or clocks contradict each other so much that it would be
        wrong by more than `DOUBTED` of the communication; `waiting_note` explains why.
    waiting_off_s : how much contradictions between clocks may change `waiting_s`, over all locations.
    """

    ideal_s: float | None
    ideal_note: str
    communication_s: Floats | None
    waiting_s: Floats | None
    waiting_note: str
    waiting_off_s: float = 0.0

    @property
    def moving_s(self) -> Floats | None:
        """(locations,) seconds of communication that are not waiting."""
        if self.communication_s is None or self.waiting_s is None:
            return None
        return self.communication_s - self.waiting_s


class Causality:
    """Who waited for whom in a run; see the module.

    Raises
    ------
    StoreError : the store is damaged, or too large (`MOST`).
    """

    def __init__(self, store: TraceStore, rules: Rules, progress: Progress) -> None:
        self.rules = rules
        self._store = store
        self._clocks = rules.clocks(store)
        self._all_clocks = columns(self._clocks)
        self._ends = [
            clock.common(at.last)
            for at, clock in zip(store.locations, self._clocks, strict=True)
            if at.last is not None
        ]
        self._checked = store.clock.checked
        self._violations, most_s = _contradictions(store.clock, rules.repairs(store))
        self._most = np.int64(np.ceil(min(most_s * store.ticks_per_second, float(END))))
        self._names = [mpi_call(region.name) for region in store.regions]
        #: of ranges: the whole run is asked for whenever one of its phases changes
        self._replays = memory.Recent[tuple[int, int, bytes, bytes, int, int], Replayed](
            lambda _: 1024 + 32 * len(store.locations), lambda: memory.limit() / 64
        )
        events, *counts = map(store.count, _NUMBERED)
        if max(events // 2, sum(counts)) > MOST:
            raise StoreError(
                f"who waited for whom is known of {MOST} calls and operations at most, the trace has more",
                hint="open a part of it",
            )
        self._match(progress)
        self._walk(progress)
        self._post(progress)
        self._wait(progress)

    @property
    def size(self) -> int:
        """Approximate number of bytes in memory."""
        tables = (self.calls, self.operations, self.messages, self.waits)
        held = sum(column.nbytes for table in tables for column in table)
        held += sum(column.nbytes for part in self._moving if part for column in part)
        return held + sum(column.nbytes for part in self.exact.values() for column in part)

    # ---- matching

    def _match(self, progress: Progress) -> None:
        """Match messages and collective operations, and sort all operations by location and time."""
        store, clocks, places = self._store, self._all_clocks, len(self._store.locations)
        step = partial(progress.step, 0, 0, "waiting")  # between parts that take seconds of a large trace
        step()
        if store.has("links"):
            index, (sent, arrived, peer, size) = store.whole("links", "time", "arrival", "peer", "bytes")
            sender, receiver = np.repeat(np.arange(places, dtype=np.int32), index[:, 1]), peer
        else:
            parts = list(match_messages(store))
            sender, receiver, sent, arrived, size = (
                np.concatenate([np.zeros(0, np.int64), *(part[k] for part in parts)]) for k in range(5)
            )
        step()
        sender, receiver = sender.astype(np.int32), receiver.astype(np.int32)
        sent, arrived = corrected(sent, sender, *clocks), corrected(arrived, receiver, *clocks)
        step()
        location, time, key = [sender, receiver], [sent, arrived], [np.arange(sent.size, dtype=np.int32)] * 2
        kind = [np.full(sent.size, code, np.uint8) for code in (machine.SEND, machine.RECEIVE)]
        dependences = [depends(text) for text in store.texts]
        of_text = np.array([-1 if one is None else one.pattern for one in dependences], np.int64)
        is_barrier = np.array([(mpi_call(text) or text.lower()) == "barrier" for text in store.texts], bool)
        process = process_of(store)
        roots, barriers = [np.zeros(0, np.int64)], [np.zeros(0, bool)]
        names, sent_most, got_most = ([np.zeros(0, np.int64)] for _ in range(3))
        needed, partner = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        self.disagreeing = instances = 0
        for matched in match_collectives(store, depends):
            self.disagreeing += matched.disagreeing
            members = np.diff(matched.start)
            if not members.size:
                continue
            begin = corrected(matched.begin, matched.location, *clocks)
            root = np.maximum.reduceat(matched.root, matched.start[:-1])
            is_root = process[matched.location] == process[np.repeat(root, members)]
            is_root &= np.repeat(root >= 0, members)
            of_kind = of_text[matched.operation]
            late, who = np.empty(begin.size, np.int64), np.empty(begin.size, np.int64)
            wait_kernels.waited_for(matched.start, of_kind, matched.location, begin, is_root, late, who)
            location.append(matched.location.astype(np.int32))
            time.append(begin)
            kind.append(np.repeat(of_kind, members).astype(np.uint8))
            key.append(np.repeat(np.arange(instances, instances + members.size, dtype=np.int32), members))
            needed.append(late)
            partner.append(who)
            roots.append(root)
            barriers.append(is_barrier[matched.operation])
            names.append(matched.operation)
            sent_most.append(np.maximum.reduceat(matched.sent, matched.start[:-1]))
            got_most.append(np.maximum.reduceat(matched.received, matched.start[:-1]))
            instances += members.size
        self.collectives = Collectives(*map(np.concatenate, (roots, barriers, names, sent_most, got_most)))
        step()
        order, start = in_places(np.concatenate(location), np.concatenate(time), places)
        step()
        self.operations = Operations(
            start, np.concatenate(time)[order], np.concatenate(kind)[order], np.concatenate(key)[order],
            np.zeros(order.size, np.int64), np.full(order.size, -1, np.int32),
        )  # fmt: skip
        step()
        place = np.empty(order.size, np.int32)
        place[order] = np.arange(order.size, dtype=np.int32)
        n = sent.size
        self.messages = MatchedMessages(
            sender, receiver, sent, arrived, np.full(n, BEGIN), size.astype(np.int64), place[:n],
            place[n : 2 * n],
        )  # fmt: skip
        #: for members of collective operations: who was waited for until when; and the row of each operation
        #: in these tables
        self._needed, self._partner = np.concatenate(needed), np.concatenate(partner).astype(np.int32)
        self._member = (order - 2 * n).astype(np.int32)

    def _walk(self, progress: Progress) -> None:
        """Go through the events of each location: its calls, and the ticks computed before operations."""
        store, operations = self._store, self.operations
        speaks = np.array([is_communication(region) for region in store.regions], np.uint8)
        # Paraver's states enclose calls, whose names say more.
        speaks[[region.synthetic and region.paradigm == "paraver" for region in store.regions]] *= 2
        accounts = accounts_of_classes(self.rules)
        #: classes of locations whose clocks run at another rate, as rounded lengths would not add up
        self.exact: dict[int, Intervals] = {}
        #: when each location is in communication according to its class; None: in its calls
        self._moving: list[tuple[Ints, Ints] | None] = []

        computing, moves = accounts == Account.COMPUTING, accounts == Account.MOVING
        # Written in place: joining the calls of single locations took as long as finding them.
        room = np.concatenate([[0], np.cumsum(_most_calls(store, speaks))])
        columns = *np.empty((2, room[-1]), np.int64), np.empty(room[-1], np.int32)
        start = np.zeros(len(store.locations) + 1, np.int64)

        def walk(i: int) -> tuple[int, tuple[Ints, Ints] | None]:
            beside = _OuterCalls(store, speaks, [column[room[i] : room[i + 1]] for column in columns])
            begin, end, doing = class_states(store, i, self.rules, beside.take)
            since, until = beside.calls(self._clocks[i], store.locations[i].last)
            part = slice(operations.start[i], operations.start[i + 1])
            over = operations.kind[part] == machine.RECEIVE
            operations.call[part] = call_at(operations.time[part], over, since, until, 0)
            if store.locations[i].kind != "cpu":
                return since.size, (begin[:0], end[:0])
            if self._clocks[i].drift:
                self.exact[i] = Intervals.of(begin, end, doing, CLASS_NUMBERS)
            wait_kernels.spent_before(
                operations.time[part], begin, end, doing, computing, operations.done[part]
            )
            if wait_kernels.are_those(begin, end, doing, moves, since, until):
                return since.size, None
            moving = moves[doing]
            return since.size, (begin[moving], end[moving])

        for i, (n, moving) in enumerate(self._each(walk, progress)):
            self._moving.append(moving)
            first = start[i]
            start[i + 1] = first + n
            if first < room[i]:  # nested regions of communication took no space
                for column in columns:
                    column[first : first + n] = column[room[i] : room[i] + n]
            op_calls = operations.call[operations.start[i] : operations.start[i + 1]]
            op_calls[op_calls >= 0] += first
        self.calls = Calls(start, *(column[: start[-1]] for column in columns))

    def _each(self, work: Callable[[int], _T], progress: Progress) -> Iterator[_T]:
        """The results of `work` for each location, in order, several computed at a time."""

        def unless_cancelled(i: int) -> _T:
            if progress.cancelled:
                raise Cancelled
            return work(i)

        places = len(self._store.locations)
        with ThreadPoolExecutor(_THREADS) as threads:
            try:
                for i, answer in enumerate(threads.map(unless_cancelled, range(places))):
                    progress.step(i, places, "waiting")
                    yield answer
            finally:
                threads.shutdown(cancel_futures=True)

    # ---- late receivers

    def _post(self, progress: Progress) -> None:
        """When receives were posted, and which sends could wait for that: `sends` has the call, the message
        and whether other requests may be completed in it."""
        store, calls, messages, operations = self._store, self.calls, self.messages, self.operations
        sends = np.array([bool(_SENDS.fullmatch(name)) for name in self._names], bool)
        receives = np.array([bool(_RECEIVES.fullmatch(name)) for name in self._names], bool)
        call = operations.call[messages.receive]
        blocking = call >= 0
        blocking[blocking] = receives[calls.region[call[blocking]]]
        messages.posted[blocking] = calls.begin[call[blocking]]
        call = operations.call[messages.send]
        waits = call >= 0
        waits[waits] = sends[calls.region[call[waits]]]
        completed = np.full(messages.sent.size, BEGIN)
        address = address_of(store)

        def requests(i: int) -> None:  # each writes only what belongs to its own messages
            if store.rows("messages", i) and operations.start[i] < operations.start[i + 1]:
                self._requests(i, address, waits, completed)

        list(self._each(requests, progress))
        direct, later = (np.flatnonzero(one).astype(np.int32) for one in (waits, completed > BEGIN))
        in_call = np.full(later.size, -1, np.int32)
        for i in np.unique(messages.sender[later]).tolist():
            mine = np.flatnonzero(messages.sender[later] == i)
            a, b = calls.start[i : i + 2]
            over = np.ones(mine.size, bool)
            in_call[mine] = call_at(completed[later[mine]], over, calls.begin[a:b], calls.end[a:b], a)
        # A size that was sent before its receive was posted is buffered by the library.
        posted = messages.posted
        ends = np.full(messages.sent.size, END)
        ends[direct] = calls.end[call[direct]]
        ends[later] = completed[later]
        buffered = (posted > BEGIN) & (ends < posted)
        most = int(messages.bytes[buffered].max(initial=-1))
        good = (in_call >= 0) & (messages.bytes[later] > most)
        self.sends = (np.concatenate([call[direct], in_call[good]]), np.concatenate([direct, later[good]]))

    def _requests(self, location: int, address: Ints, waits: Flags, completed: Ints) -> None:
        """Of a location's requests: times when receives were posted and non-blocking sends were completed."""
        store, messages, operations = self._store, self.messages, self.operations
        kind = store.column("messages", "kind", location)
        requested = kind == MessageKind.ISEND
        if not (requested | (kind == MessageKind.IRECV_POST)).any():
            return
        columns = store.part("messages", location, 0, kind.size, "time", "peer", "request")
        time, peer, request = columns
        time = self._clocks[location].common(time)
        matches = request_times(kind, request.astype(np.uint64), time)
        part = slice(operations.start[location], operations.start[location + 1])
        for outward, kinds, of_messages in (
            (True, SENDS, messages.receiver),
            (False, RECEIVES, messages.sender),
        ):
            rows = np.flatnonzero(np.isin(kind, kinds) & (peer >= 0))
            rows = rows[np.lexsort((peer[rows], time[rows]))]
            ops = np.flatnonzero(operations.kind[part] == (machine.SEND if outward else machine.RECEIVE))
            keys = operations.key[part][ops]
            partner = address[of_messages[keys]]
            order = np.lexsort((partner, operations.time[part][ops]))
            keys, partner, when = keys[order], partner[order], operations.time[part][ops][order]
            of_row = np.full(rows.size, -1, np.int64)
            wait_kernels.meet_in_order(time[rows], peer[rows].astype(np.int64), when, partner, of_row)
            matched = of_row >= 0
            rows, keys = rows[matched], keys[of_row[matched]]
            times = matches[rows]
            if outward:
                waits[keys] &= ~requested[rows]
                mine = requested[rows] & (times > BEGIN)
                completed[keys[mine]] = times[mine]
            else:
                mine = times > BEGIN
                messages.posted[keys[mine]] = times[mine]

    # ---- waits

    def _wait(self, progress: Progress) -> None:
        progress.step(0, 0, "waiting")
        calls, messages, operations = self.calls, self.messages, self.operations
        held = np.zeros(calls.begin.size, np.uint8)  # 1: contains an operation, 2: one that may wait
        held[self.sends[0]] = 1
        which, message = self.sends
        posted = messages.posted[message]
        met = (posted > calls.begin[which]) & (posted < calls.end[which])
        which, message, posted = which[met], message[met], posted[met]
        if (which[1:] < which[:-1]).any():
            order = np.argsort(which, kind="stable")
            which, message, posted = which[order], message[order], posted[order]
        progress.step(0, 0, "waiting")
        of_place = np.searchsorted(which, calls.start.astype(which.dtype))
        kinds = np.array(
            [0, 0, Account.N_TO_N, Account.LATE_ROOT, Account.EARLY_ROOT, Account.PREFIX], np.uint8
        )
        asks = np.array([bool(_ASKS.fullmatch(name)) for name in self._names], bool)

        def wait(i: int) -> tuple[AnyArray, ...]:
            a, b = calls.start[i : i + 2]
            begin, end, n = calls.begin[a:b], calls.end[a:b], int(b - a)
            best, late = np.full((2, n), BEGIN)  # the latest that each call waited for, and for what
            account, partner = np.zeros(n, np.uint8), np.full(n, -1, np.int32)
            state = best, late, account, partner, np.full(n, -1, np.int32), held[a:b]
            part = slice(operations.start[i], operations.start[i + 1])
            ours = operations.call[part], operations.kind[part], operations.key[part]
            sender = messages.sent, messages.sender, int(Account.LATE_SENDER)
            wait_kernels.offer_received(a, *ours, *sender, end, *state)
            mine = slice(of_place[i], of_place[i + 1])
            receiver = messages.receiver[message[mine]]
            wait_kernels.offer_each(
                which[mine] - a,
                posted[mine],
                int(Account.LATE_RECEIVER),
                receiver,
                message[mine],
                end,
                *state,
            )
            members = self._member[part], self._needed, self._partner, kinds
            wait_kernels.offer_collective(
                a, *ours, *members, self.collectives.barrier, int(Account.BARRIER), end, *state
            )
            if asks.any():
                self._ask(asks[calls.region[a:b]], i, end, state)
            waiting = np.flatnonzero(best > begin)
            awaited, released = partner[waiting], late[waiting]
            partner_call = np.full(waiting.size, -1, np.int32)
            wait_kernels.call_of_partner(awaited, released, calls.start, calls.begin, calls.end, partner_call)
            return (
                (waiting + a).astype(np.int32),
                best[waiting],
                account[waiting],
                awaited,
                released,
                partner_call,
                state[4][waiting],
            )

        by_location = list(self._each(wait, progress))
        del self._member, self._needed, self._partner
        start = np.concatenate([[0], np.cumsum([one[0].size for one in by_location])]).astype(np.int64)
        types = [np.int32, np.int64, np.uint8, np.int32, np.int64, np.int32, np.int32]
        columns = zip([np.zeros(0, one) for one in types], *by_location, strict=True)
        self.waits = Waits(start, *(np.concatenate(column) for column in columns))
        self._held, self._depends = held & 1, held >> 1

    def _ask(self, asks: Flags, location: int, end: Ints, state: tuple[AnyArray, ...]) -> None:
        """Calls that ask for a message and get none wait for the next one received."""
        operations, messages = self.operations, self.messages
        mine = np.flatnonzero(asks & (state[-1] == 0))
        a, b = operations.start[location : location + 2]
        receives = a + np.flatnonzero(operations.kind[a:b] == machine.RECEIVE)
        at = np.searchsorted(operations.time[receives], end[mine])
        mine, at = mine[at < receives.size], at[at < receives.size]
        message = operations.key[receives[at]]
        sender = int(Account.LATE_SENDER), messages.sender[message]
        wait_kernels.offer_each(mine, messages.sent[message], *sender, message, end, *state)

    @cached_property
    def _parts(self) -> list[CallParts]:
        """The call parts of each location."""
        calls, waits = self.calls, self.waits
        idle = region_classes(self._store, self.rules) == Activity.IDLE
        unknown = np.flatnonzero((self._held == 0) & idle[calls.region])

        def parts(i: int) -> CallParts:
            a, b = calls.start[i : i + 2]
            w = slice(waits.start[i], waits.start[i + 1])
            waited = calls.begin[waits.call[w]], waits.until[w]
            at = unknown[slice(*np.searchsorted(unknown, (a, b)))]
            begin, end, account = *waited, waits.account[w]
            if at.size:
                begin, end = np.append(begin, calls.begin[at]), np.append(end, calls.end[at])
                account = np.append(account, np.full(at.size, Account.UNKNOWN, np.uint8))
                order = np.argsort(begin, kind="stable")
                begin, end, account = begin[order], end[order], account[order]
            begin, end, of = self._in_communication(i, begin, end)
            pieces = Intervals.of(begin, end, account[of], len(Account))
            doubted = a + np.flatnonzero(self._depends[a:b]) if self._violations else np.zeros(0, np.int64)
            begin, end = calls.begin[doubted], calls.end[doubted]
            ends = begin + np.minimum(end - begin, self._most)
            whole, *others = (
                Intervals.of(since, until, np.zeros(since.size, np.uint8), 1)
                for since, until in ((calls.begin[a:b], calls.end[a:b]), waited, (begin, ends))
            )
            return CallParts(pieces, whole, *others)

        return list(self._each(parts, Progress()))

    def waits_of(self, location: int) -> tuple[Ints, Ints, Ints]:
        """When a location waits for another one: begin, end, and the row of `waits`; only in what its class
        counts as communication. Empty if waiting cannot be distinguished from moving data."""
        calls, waits = self.calls, self.waits
        a, b = waits.start[location : location + 2]
        if self.why_none():
            a = b
        begin, end, of = self._in_communication(location, calls.begin[waits.call[a:b]], waits.until[a:b])
        return begin, end, a + of

    def _in_communication(self, location: int, begin: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
        """The communication, according to its class, in parts (n,) of calls: begin, end, and the part."""
        moving = self._moving[location]
        if moving is None:
            return begin, end, np.arange(begin.size)
        since, until = moving
        out = np.empty((3, begin.size + since.size), np.int64)
        n = wait_kernels.clipped(begin, end, since, until, out)
        return out[0, :n].copy(), out[1, :n].copy(), out[2, :n].copy()

    def common(self, location: int, ticks: Ints) -> Ints:
        """Ticks recorded by a location, on the common clock."""
        return self._clocks[location].common(ticks)

    # ---- ranges

    def split(self, accounts: Ints, begin: Ints, end: Ints) -> Ints:
        """Move waits out of the communication of ranges.

        `accounts` (locations, ranges, accounts): ticks according to the regions, with all communication in
        `Account.MOVING`; `begin`, `end` (ranges,): ticks of the common clock. The result has the same sums.
        If waiting cannot be distinguished from moving data (`waiting_note`), all communication is in the
        account `UNKNOWN`.
        """
        split = accounts.copy()
        refused = self.why_none()
        for i, parts in enumerate(self._parts):
            if refused:
                split[i, :, Account.UNKNOWN] += split[i, :, Account.MOVING]
                split[i, :, Account.MOVING] = 0
                continue
            moved = parts.pieces.between(begin, end)
            split[i] += moved
            split[i, :, Account.MOVING] -= moved.sum(axis=1)
        for j, (a, b) in enumerate(zip(begin.tolist(), end.tolist(), strict=True)):
            if (
                not refused and self._violations and self._split(a, b)[0] is None
            ):  # clocks contradict too much in this range
                unknown = [Account.MOVING, *sorted(WAITING)]
                split[:, j, Account.UNKNOWN] += split[:, j, unknown].sum(axis=1)
                split[:, j, unknown] = 0
        return split

    def between(self, begin: int, end: int, before: Ints, useful: Ints, sent: int, received: int) -> Replayed:
        """The part of the run from tick `begin` to tick `end` of the common clock.

        `before`, `useful` : (locations,) ticks computed before it and in it. `sent`, `received`: numbers of
            its messages, all of which should be matched. The latest results are kept.
        """
        key = begin, end, before.tobytes(), useful.tobytes(), sent, received
        known = self._replays.get(key)
        if known is None:
            known = self._between(begin, end, before, useful, sent, received)
            self._replays.put(key, known)
        return known

    def _between(
        self, begin: int, end: int, before: Ints, useful: Ints, sent: int, received: int
    ) -> Replayed:
        unit = np.float64(1.0 / self._store.ticks_per_second)
        first, last = self.operations_between(begin, end)
        operations = self.operations
        kinds = wait_kernels.count_kinds(first, last, operations.kind)
        lost = int(sent - kinds[machine.SEND]), int(received - kinds[machine.RECEIVE])
        ticks = STUCK
        if self.disagreeing:
            note = "Members of a communicator name different collective operations."
        elif any(lost):
            note = unmatched(*lost)
        elif not kinds.sum():
            note = "No messages and no collective operations are recorded here."
        else:
            ticks = ideal_duration(
                first, last, operations.kind, operations.key, operations.done, before, useful,
                self.messages.receiver, self.collectives.root,
            )  # fmt: skip
            note = "" if ticks >= 0 else "The replay comes to a halt: everybody waits for somebody else."
            if ticks - (end - begin) > max(2, 1e-3 * (end - begin)):  # more than rounding can cause
                ticks, note = STUCK, _LONGER
            ticks = min(ticks, end - begin)
        communication, waiting, waiting_note, off = self._split(begin, end)
        return Replayed(
            ideal_s=float(ticks * unit) if ticks >= 0 else None,
            ideal_note=note,
            communication_s=None if communication is None else communication * unit,
            waiting_s=None if waiting is None else waiting * unit,
            waiting_note=waiting_note,
            waiting_off_s=float(off * unit),
        )

    def operations_between(self, begin: int, end: int) -> tuple[Ints, Ints]:
        """(locations,) first operation of each location in a range of ticks, and the one after its last."""
        if end >= max(self._ends, default=0):
            end = max(self._ends, default=0) + 1  # events at the very end belong to the range
        start, time = self.operations.start, self.operations.time
        first, last = (
            np.array(
                [
                    a + np.searchsorted(time[a:b], cut, side="left")
                    for a, b in zip(start[:-1].tolist(), start[1:].tolist(), strict=True)
                ],
                np.int64,
            )
            for cut in (begin, end)
        )
        return first, last

    def why_none(self) -> str:
        """Why waiting cannot be distinguished from moving data in the run."""
        if not (self.operations.kind != machine.SEND).any():
            return "No receives and no collective operations are matched."
        if not self.calls.begin.size:
            return "The trace has no regions of communication."
        return ""

    def _split(self, begin: int, end: int) -> tuple[Ints | None, Ints | None, str, int]:
        """(locations,) ticks in communication and of these waiting, a note, and what may be wrong of them."""
        none = self.why_none()
        if none:
            return None, None, none, 0
        a, b = np.array([begin]), np.array([end])
        spoken, waited, doubted = (
            np.array([int(parts[k].between(a, b)[0, 0]) for parts in self._parts], np.int64)
            for k in range(1, 4)
        )
        if not self._violations:
            return spoken, waited, "", 0
        off, unit = int(doubted.sum()), 1.0 / self._store.ticks_per_second
        sentence = f"The clocks contradict each other in {self._violations} of {self._checked} comparisons"
        if self._most < END:
            sentence += f", by {brief(self._most * unit, 3)} at most"
        if off > DOUBTED * spoken.sum():
            return None, None, f"{sentence}, so it is not known who waited for whom.", 0
        return spoken, waited, f"{sentence}, which may change waiting by {brief(off * unit, 3)}.", off


def memory_needed(store: TraceStore) -> int:
    """Approximate peak memory in bytes while `Causality` is made."""
    speaks = np.array([is_communication(region) for region in store.regions], bool)
    calls, most = int(entered(store, speaks).sum()), int(store.places("events")[:, 1].max(initial=0))
    messages, members = map(store.count, ("messages", "collectives"))
    return 150 * (messages // 2) + 80 * members + 70 * calls + _THREADS * 60 * most


class _OuterCalls:
    """Writes the calls of a location into `columns` (begin, end, region) from its events."""

    def __init__(self, store: TraceStore, speaks: Bytes, columns: Sequence[AnyArray]) -> None:
        self._store, self._speaks, self._columns = store, speaks, columns
        self._opened = np.zeros(speaks.size, np.int64)
        self._depth, self._calls, self._since, self._outer, self._n = 0, 0, 0, -1, 0

    def take(self, time: Ints, kind: Bytes, region: NDArray[np.uint32], _innermost: object) -> None:
        self._n, self._depth, self._calls, self._since, self._outer = wait_kernels.outer_calls(
            time, kind, region, self._speaks, self._opened, self._depth, self._calls, self._since,
            self._outer, self._n, *self._columns,
        )  # fmt: skip
        if self._n < 0:
            raise self._store.damaged("there are more calls than its summary says")

    def calls(self, clock: Clock, last: int | None) -> tuple[Ints, Ints]:
        """Begin and end, on the common clock; open calls end at the `last` event."""
        if self._depth and last is not None:
            self.take(
                np.full(self._depth, last), np.ones(self._depth, np.uint8), self._open, np.zeros(0, np.int32)
            )
        begin, end = (column[: self._n] for column in self._columns[:2])
        for column in (begin, end):
            if clock.shift or clock.drift:
                column[:] = clock.common(column)
        return begin, end

    @property
    def _open(self) -> NDArray[np.uint32]:
        """The open regions, in any order."""
        return np.repeat(np.arange(self._opened.size), self._opened).astype(np.uint32)


def _most_calls(store: TraceStore, speaks: Bytes) -> Ints:
    """(locations,) upper bound of the number of calls: enters of such regions, or every second event."""
    most: Ints = (store.places("events")[:, 1] + 1) // 2
    return np.minimum(most, entered(store, speaks > 0)) if store.has("calls") else most


def _contradictions(clock: ClockSummary, repaired: bool) -> tuple[int, float]:
    """How many checks contradict the clocks in use, and by how many seconds at most."""
    details = clock.details
    if repaired and "repaired" in details:
        return int(details["repaired"]), float(details["most_repaired_s"])
    if repaired:
        return clock.violations_after, np.inf
    return clock.violations_before, float(details.get("most_before_s", np.inf))


def unmatched(sends: int, receives: int) -> str:
    """Why there is no replay, in words."""
    parts = [
        f"{'1 message' if count == 1 else f'{grouped(count)} messages'} {done} here "
        f"{'is' if count == 1 else 'are'} not known to be {other}"
        for count, done, other in ((sends, "sent", "received"), (receives, "received", "sent"))
        if count
    ]
    return f"{', and '.join(parts)}."

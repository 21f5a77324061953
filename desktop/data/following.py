"""Follows a growing recording (`desktop.data.importers.recorded`): what has arrived so far, as curves.

Each look reads only new records. The activity of a processor is known until the end of its last record; the
curve extends as far as it is known for all that have not ended. Who waited for whom is computed when the run
has ended and is a trace like any other.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from io import RawIOBase
from pathlib import Path

import numpy as np

from desktop.core.arrays import Floats, Ints
from desktop.core.curve import StepCurve
from desktop.core.growing import GrowingActivities, ahead
from desktop.core.jit import arithmetic, inlined
from desktop.core.labels import ACTIVITIES
from desktop.data.classify import activity
from desktop.data.events import Activity
from desktop.data.importers.recorded import (
    BLOCK,
    COMMUNICATOR,
    COMPLETED,
    ENTER,
    LEAVE,
    LONG,
    NAMED,
    RECORD,
    RUNNING,
    SATURATED,
    RecordedClock,
    calls_of,
    files,
    head_in,
    head_of,
)

#: Nanoseconds between the two clock readings that determine the rate, which is then fixed.
_CLOCK = 50_000_000
IDLE, UNMEASURED = int(Activity.IDLE), int(Activity.UNMEASURED)
_NAMES = tuple(sorted(ACTIVITIES, key=lambda name: Activity[name.upper()]))


@dataclass(frozen=True, eq=False)
class Followed:
    """A run as far as it has been recorded. `curves`: processors by activity, computing first; can be empty.

    `known_s`: until when the activities of all are known; `latest_s`: the last instant of any record;
    `until_s`: the end of an axis that shows it (`ahead`). `calls`: name, number and processor-seconds of each
    call, by seconds, largest first. `share` (processors, columns): the share of each column, between
    `edges_s` (columns + 1,), that each processor computes, the lowest rank first, as in `names`. `processes`
    of `expected` have begun, `ended` of them have ended. `lost`: records that could not be written.
    """

    curves: dict[str, StepCurve] = field(default_factory=dict)
    known_s: float = 0.0
    latest_s: float = 0.0
    until_s: float = 1.0
    calls: tuple[tuple[str, int, float], ...] = ()
    names: tuple[str, ...] = ()
    share: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    edges_s: Floats = field(default_factory=lambda: np.zeros(1))
    processes: int = 0
    expected: int = 0
    ended: int = 0
    records: int = 0
    lost: int = 0

    @property
    def curve(self) -> StepCurve | None:
        """Processors that compute."""
        return self.curves.get(_NAMES[0])

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Processor-seconds by activity until `known_s`."""
        # Not a product of arrays, for which a library would wake all cores at each look.
        return {
            name: float((np.diff(curve.edges) * curve.level).sum()) * curve.unit
            for name, curve in self.curves.items()
        }


class _Names:
    """Calls of files with the same numbering: their activities, counts, and durations."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.kind = np.array([int(activity(name, "", "mpi")) for name in names], np.int64)
        self.count, self.spent = np.zeros((2, len(names)), np.int64)
        #: Numbers of the call that switches recording and of parallel regions, -1 where there is none.
        self.switch, self.parallel = (
            names.index(name) if name in names else -1 for name in ("MPI_Pcontrol", "OpenMP parallel")
        )


class _Followed:
    """One file: how much of it has been read, and the meaning of its calls."""

    def __init__(
        self, path: Path, head: np.void, calls: _Names, clock: RecordedClock, processor: int
    ) -> None:
        self.path, self.head, self.calls, self.clock, self.processor = path, head, calls, clock, processor
        self.read = 0
        self.whole = False  # the whole file has been read
        self.state = np.array([int(head["start"]), -1, 0, 0, -1, 0], np.int64)

    @property
    def done(self) -> bool:
        return int(self.head["state"]) != RUNNING


class Follower:
    """Reads a folder of records repeatedly."""

    def __init__(self, folder: Path, columns: int = 400) -> None:
        self.folder = folder
        self._columns = columns
        self._files: dict[str, _Followed] = {}
        self._listed: list[str] = []
        self._clocks: dict[bytes, RecordedClock] = {}
        self._zero: int | None = None
        self._grown = GrowingActivities()
        self._calls: dict[tuple[str, ...], _Names] = {}

    def look(self) -> Followed | None:
        """The state of the run now; None if nothing has arrived since the last look.

        Raises
        ------
        TraceFormatError : the records are of a later version, or damaged.
        OSError : a file cannot be read.
        """
        new = self._find()
        before = int(self._grown.until.max(initial=0))
        for one in self._files.values():
            new |= self._take(one) or self._waits_on(one, before)
        return self._followed() if new else None

    def _waits_on(self, one: _Followed, until: int) -> bool:
        """Extend the idle time of an OpenMP thread that waits, so is silent, to `until`; whether it does."""
        idle = int(one.state[_IDLE])
        if idle < 0 or until <= idle or self._grown.ended[one.processor]:
            return False
        begin, end, kind = (np.array([value], np.int64) for value in (idle, until, int(Activity.IDLE)))
        self._grown.add(one.processor, begin, end, kind, until)
        one.state[_IDLE] = until
        return True

    def _find(self) -> bool:
        """Open files that have appeared. All wait for the first clock reading of their machine."""
        listed = os.listdir(self.folder) if self.folder.is_dir() else []
        if listed == self._listed:
            return False
        count, waiting = len(self._files), False
        heads = {path: head_of(path) for path in files(self.folder) if path.name not in self._files}
        for path, head in heads.items():
            if head is None:
                waiting = True
                continue
            machine = bytes(head["host"]) + bytes(head["boot"])
            if machine not in self._clocks:
                done = int(head["state"]) != RUNNING
                if not done and int(head["monotonic1"]) - int(head["monotonic0"]) < _CLOCK:
                    waiting = True
                    continue
                self._clocks[machine] = RecordedClock([head])
            clock = self._clocks[machine]
            start = int(clock.of(np.array([head["start"]], "u8"))[0])
            if self._zero is None:
                self._zero = start
            # A process that began before the first one seen is shown from then on.
            processor = self._grown.add_processor(max(start - self._zero, 0))
            names = calls_of(path, head)
            calls = self._calls.setdefault(tuple(names), _Names(names))
            self._files[path.name] = _Followed(path, head, calls, clock, processor)
        self._listed = [] if waiting else listed
        return len(self._files) > count

    def _take(self, one: _Followed) -> bool:
        """Read new records; returns whether there were any."""
        if one.whole:
            return False
        with one.path.open("rb", buffering=0) as stream:
            head = head_in(stream, one.path)
            if head is None:
                return False
            one.head = head
            new, tail = False, False
            while not tail:
                tail = one.read >= int(head["stored"])  # the tail is read in one piece
                if not self._add(one, self._next(one, stream)):
                    break
                new = True
            if one.done and (one.read >= int(head["records"]) or not _stores(one, stream)):
                self._grown.ended[one.processor] = one.whole = new = True
        return new

    def _next(self, one: _Followed, stream: RawIOBase) -> Ints:
        """(n, 4) the next records as they are in the file."""
        head = one.head
        stored, records, tail = int(head["stored"]), int(head["records"]), int(head["tail"])
        at, many = int(head["header"]), records - one.read
        if one.read < stored:
            at, many = at + tail + one.read * RECORD.itemsize, min(stored, records) - one.read
        else:
            at += (one.read - stored) * RECORD.itemsize
            many = min(many, tail // RECORD.itemsize - (one.read - stored))
        stream.seek(at)
        raw = stream.read(max(min(many, BLOCK), 0) * RECORD.itemsize) or b""
        if one.read >= stored and raw and _stores(one, stream):
            raw = b""  # overwritten meanwhile
        return np.frombuffer(raw, np.int64, len(raw) // RECORD.itemsize * 4).reshape(-1, 4)

    def _add(self, one: _Followed, records: Ints) -> int:
        """Add up records; returns how many of them were complete."""
        head, calls, many = one.head, one.calls, len(records)
        rooms = np.empty((3, 2 * many + 2), np.int64)
        assert self._zero is not None
        tick, ns, rate = one.clock.line
        n_read, count, until = _replay(
            records, not one.done and one.read + many == int(head["records"]), tick, ns - self._zero, rate,
            int(head["thread"]) > 0, calls.switch, calls.parallel, calls.kind, calls.count, calls.spent,
            one.state, rooms,
        )  # fmt: skip
        one.read += n_read
        begin, end, kind = rooms[:, :count]
        self._grown.add(one.processor, begin, end, kind, until)
        return int(n_read)

    def _followed(self) -> Followed:
        grown, heads = self._grown, [one.head for one in self._files.values()]
        share, edges = grown.computing(self._columns)
        rows = sorted(range(len(heads)), key=lambda i: (int(heads[i]["rank"]), int(heads[i]["thread"])))
        calls: dict[str, tuple[int, int]] = {}
        for one in self._calls.values():
            for k in np.flatnonzero(one.count).tolist():
                count, spent = calls.get(one.names[k], (0, 0))
                calls[one.names[k]] = count + int(one.count[k]), spent + int(one.spent[k])
        order = sorted(calls, key=lambda name: -calls[name][1])
        return Followed(
            curves=grown.curves(_NAMES),
            known_s=grown.common * 1e-9,
            until_s=ahead(max(grown.common, 1) * 1e-9),
            latest_s=int(grown.until.max(initial=0)) * 1e-9,
            calls=tuple((name, calls[name][0], calls[name][1] * 1e-9) for name in order),
            names=tuple(_name(heads[i]) for i in rows),
            share=share[rows],
            edges_s=edges * np.float64(1e-9),
            processes=sum(not head["thread"] for head in heads),
            expected=max((int(head["size"]) for head in heads), default=0),
            ended=sum(one.whole and not one.head["thread"] for one in self._files.values()),
            records=sum(one.read for one in self._files.values()),
            lost=sum(int(head["lost"]) for head in heads),
        )


def _stores(one: _Followed, stream: RawIOBase) -> bool:
    """Whether the tail was moved to the body since the head was read, as it is at the very end."""
    again = head_in(stream, one.path)
    return again is None or int(again["stored"]) != int(one.head["stored"])


def _name(head: np.void) -> str:
    thread = int(head["thread"])
    return f"rank {int(head['rank'])}" + (f" thread {thread}" if thread else "")


#: State of a file: begin of its last record (ticks), since when recording is off (ns, by MPI_Pcontrol(0)),
#: the number of open parallel regions of OpenMP and of open waits, since when it waits (ns).
_LATEST, _OFF, _PARALLEL, _WAITS, _IDLE = range(5)


@inlined
def _number(records: Ints, i: int) -> int:
    """The call number of a record."""
    return int(records[i, 1] >> 32) & 0xFFFF


@inlined
def _time(tick: int, ns: int, rate: float, at: int) -> int:
    """As `RecordedClock.of`, for one tick."""
    return int(min(max((at - tick) * rate, -(2.0**62)), 2.0**62)) + ns


@inlined
def _put(rooms: Ints, n: int, begin: int, end: int, kind: int) -> int:
    rooms[0, n], rooms[1, n], rooms[2, n] = begin, end, kind
    return n + 1


@arithmetic
def _replay(
    records: Ints, open_end: bool, tick: int, ns: int, rate: float, worker: bool, switch: int, parallel: int,
    kind: Ints, count: Ints, spent: Ints, state: Ints, rooms: Ints,
) -> tuple[int, int, int]:  # fmt: skip
    """Count the calls of records (n, 4), and write into `rooms` (3, 2n + 2) the intervals in which the thread
    does not compute: begin, end (ns) and activity.

    Returns the number of records taken, the number of intervals, and until when the activity of the thread is
    known (ns). Left for later are a call that may still change (the last one if `open_end`) or whose end, in
    a record of its own, is not there yet, and what is earlier than the record before it: from another machine
    the head may arrive before the records, in whose place are zeros or old contents.
    """
    n_read = 0
    while n_read < records.shape[0]:
        call = _number(records, n_read)
        if call < COMMUNICATOR or call in (ENTER, LEAVE, COMPLETED):
            if records[n_read, 0] < state[_LATEST]:
                break
            state[_LATEST] = records[n_read, 0]
        n_read += 1
    if n_read > 0 and _number(records, n_read - 1) < COMMUNICATOR:
        long = records[n_read - 1, 1] & 0xFFFFFFFF == SATURATED
        n_read -= long or (open_end and n_read == records.shape[0])
    n, until = 0, -1
    for i in range(n_read):
        call, length = _number(records, i), records[i, 1] & 0xFFFFFFFF
        mark = call in (ENTER, LEAVE)
        if call >= COMMUNICATOR and not mark:
            continue
        last = records[i, 0] + (0 if mark else length)
        if not mark and i + 1 < n_read and _number(records, i + 1) == LONG:
            last = records[i + 1, 0]
        begin, end = _time(tick, ns, rate, records[i, 0]), _time(tick, ns, rate, last)
        until = max(until, end)
        begin, end = max(begin, 0), max(end, 0)
        if mark and length >= NAMED:
            # A worker is idle between regions of OpenMP, and any thread in a barrier.
            number = min(length - NAMED, kind.size - 1)
            step = 1 if call == ENTER else -1
            state[_PARALLEL] += step * (number == parallel)
            state[_WAITS] += step * (kind[number] == IDLE)
            if state[_IDLE] >= 0:
                n = _put(rooms, n, state[_IDLE], begin, IDLE)
            idle = state[_WAITS] > 0 or (worker and state[_PARALLEL] <= 0)
            state[_IDLE] = begin if idle else -1
        elif call < kind.size:
            count[call] += 1
            spent[call] += end - begin
            if kind[call]:
                n = _put(rooms, n, begin, end, kind[call])
            if call == switch:
                if state[_OFF] >= 0:
                    n = _put(rooms, n, state[_OFF], begin, UNMEASURED)
                state[_OFF] = end if records[i, 2] >> 32 == 0 else -1
    if until >= 0 and state[_OFF] >= 0:
        n, state[_OFF] = _put(rooms, n, state[_OFF], until, UNMEASURED), until
    if until >= 0 and state[_IDLE] >= 0:
        n, state[_IDLE] = _put(rooms, n, state[_IDLE], until, IDLE), until
    return n_read, n, until

"""A recording that still grows (`desktop.data.importers.recorded`): what has arrived so far, as curves.

Each look reads only the records that are new. What a processor does is known until the end of its last
record; the curve goes as far as that is known of all that have not ended. Who waited for whom is told when
the run has ended and is a trace like any other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from desktop.core.curve import StepCurve
from desktop.core.growing import GrowingActivities, ahead
from desktop.core.labels import ACTIVITIES
from desktop.data.classify import activity
from desktop.data.events import Activity
from desktop.data.importers.recorded import (
    BLOCK,
    COMMUNICATOR,
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
    head_of,
    is_timed,
)

#: Nanoseconds between the two readings of a clock that its rate is taken from; it is not taken anew.
_CLOCK = 50_000_000
_NAMES = tuple(sorted(ACTIVITIES, key=lambda name: Activity[name.upper()]))


@dataclass(frozen=True, eq=False)
class Followed:
    """A run as far as it has come. `curves`: processors by activity, computing first; none at first.

    `known_s`: until when what all do is known; `latest_s`: the last instant of any record; `until_s`: the end
    of an axis that shows it (`ahead`). `calls`: name, number and processor-seconds of each call, most first.
    `seconds`: processor-seconds by activity until `latest_s`. `share` (processors, columns): the part of each
    column, between `edges_s` (columns + 1,), that each processor computes. `processes` of `expected` have
    begun, `ended` of them have ended. `lost`: records that could not be written.
    """

    curves: dict[str, StepCurve] = field(default_factory=dict)
    known_s: float = 0.0
    latest_s: float = 0.0
    until_s: float = 1.0
    calls: tuple[tuple[str, int, float], ...] = ()
    names: tuple[str, ...] = ()
    share: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    edges_s: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))
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
        # No product of arrays, for which a library would wake all cores at each look.
        return {
            name: float((np.diff(curve.edges) * curve.level).sum()) * curve.unit
            for name, curve in self.curves.items()
        }


class _Followed:
    """One file: how much of it has been read, and what its calls are."""

    def __init__(self, path: Path, head: Any, calls: list[str], processor: int) -> None:
        self.path, self.head, self.processor = path, head, processor
        self.read = 0
        self.latest = 0  # when the last record that was read began (ticks)
        self.kind = np.array([int(activity(name, "", "mpi")) for name in calls], np.int64)
        self.calls = calls
        self.whole = False  # all of it has been read
        self.off = -1  # since when nothing is recorded (ns), by MPI_Pcontrol(0)
        # Of OpenMP: parallel regions and waits that it is in, and since when it waits (ns).
        self.parallel, self.waits, self.idle = 0, 0, -1

    @property
    def done(self) -> bool:
        return int(self.head["state"]) != RUNNING


class Follower:
    """Reads a folder of records again and again."""

    def __init__(self, folder: Path, columns: int = 400) -> None:
        self.folder = folder
        self._columns = columns
        self._files: dict[Path, _Followed] = {}
        self._clocks: dict[bytes, RecordedClock] = {}
        self._zero: int | None = None
        self._grown = GrowingActivities()
        self._count: dict[str, int] = {}
        self._spent: dict[str, int] = {}

    def look(self) -> Followed | None:
        """What there is by now; None if nothing has come since the last look.

        Raises
        ------
        TraceFormatError : the records are of a later version, or damaged.
        OSError : a file cannot be read.
        """
        new = self._find()
        before = int(self._grown.known.max(initial=0))
        for one in self._files.values():
            new |= self._take(one) or self._waits_on(one, before)
        return self._told() if new else None

    def _waits_on(self, one: _Followed, until: int) -> bool:
        """A thread of OpenMP that waits says nothing; it had not stopped when the others were looked at."""
        if one.idle < 0 or until <= one.idle or self._grown.ended[one.processor]:
            return False
        begin, end, idle = (np.array([value], np.int64) for value in (one.idle, until, int(Activity.IDLE)))
        self._grown.add(one.processor, begin, end, idle, until)
        one.idle = until
        return True

    def _find(self) -> bool:
        """Files that have come. All wait for the first reading of their machine's clock."""
        known = len(self._files)
        heads = {}
        for path in files(self.folder):
            if path not in self._files and (head := head_of(path)) is not None:
                heads[path] = head
        for path, head in heads.items():
            machine = bytes(head["host"]) + bytes(head["boot"])
            if machine not in self._clocks:
                done = int(head["state"]) != RUNNING
                if not done and int(head["monotonic1"]) - int(head["monotonic0"]) < _CLOCK:
                    continue
                self._clocks[machine] = RecordedClock([head])
            clock = self._clocks[machine]
            begun = int(clock.of(np.array([head["start"]], "u8"))[0])
            if self._zero is None:
                self._zero = begun
            # One that began before the first that was seen is shown from there.
            processor = self._grown.add_processor(max(begun - self._zero, 0))
            self._files[path] = _Followed(path, head, calls_of(path, head), processor)
        return len(self._files) > known

    def _take(self, one: _Followed) -> bool:
        """The records that are new; whether there were any."""
        head = None if one.whole else head_of(one.path)
        if head is None:
            return False
        one.head = head
        new, tail = False, False
        while not tail:
            tail = one.read >= int(head["stored"])  # which is read in one piece
            block = self._next(one)
            if not block.size:
                break
            self._add(one, block)
            new = True
        if one.done and (one.read >= int(head["records"]) or not _stores(one)):
            self._grown.ended[one.processor] = one.whole = new = True
        return new

    def _next(self, one: _Followed) -> NDArray[Any]:
        """The next records. A call that is the last record of a file that goes on may still be changed, and a
        long one is whole with the record behind it only."""
        head = one.head
        stored, records = int(head["stored"]), int(head["records"])
        start = int(head["header"])
        if one.read < stored:
            at, many = start + int(head["tail"]) + one.read * RECORD.itemsize, min(stored, records) - one.read
        else:
            at, many = start + (one.read - stored) * RECORD.itemsize, records - one.read
            many = min(many, int(head["tail"]) // RECORD.itemsize - (one.read - stored))
        if many <= 0:
            return np.empty(0, RECORD)
        with one.path.open("rb") as stream:
            stream.seek(at)
            block = np.fromfile(stream, RECORD, min(many, BLOCK))
        if one.read >= stored:
            again = head_of(one.path)
            if again is None or int(again["stored"]) != stored:
                return block[:0]  # written over meanwhile
        timed = is_timed(block)
        begin = np.where(timed, block["begin"], 0)
        before = np.maximum.accumulate(np.append(np.uint64(max(one.latest, int(head["start"]))), begin))
        # From another machine: its head is here, the records are not yet, but zeros or what was there before.
        late = np.flatnonzero(timed & (begin < before[:-1]))
        many = int(late[0]) if late.size else block.size
        block, one.latest = block[:many], int(before[many])
        if block.size and not late.size and int(block["call"][-1]) < COMMUNICATOR:
            last = not one.done and one.read + block.size == records
            block = block[: block.size - (last or int(block["duration"][-1]) == SATURATED)]
        one.read += block.size
        return block

    def _add(self, one: _Followed, block: NDArray[Any]) -> None:
        machine = bytes(one.head["host"]) + bytes(one.head["boot"])
        clock, call = self._clocks[machine], block["call"]
        assert self._zero is not None
        plain = call < COMMUNICATOR
        last = block["begin"] + block["duration"] * plain
        long = np.flatnonzero(plain[:-1] & (call[1:] == LONG))
        last[long] = block["begin"][long + 1]
        begin, end = clock.of(block["begin"]) - self._zero, clock.of(last) - self._zero
        marked = (call == ENTER) | (call == LEAVE)
        timed = marked | plain
        if not timed.any():
            return
        known = int(end[timed].max())
        which = np.flatnonzero(call < one.kind.size)
        kind = one.kind[call[which]]
        begin, end = np.maximum(begin[which], 0), np.maximum(end[which], 0)
        times, count = end - begin, np.bincount(call[which], minlength=one.kind.size)
        spent = np.bincount(call[which], times, minlength=one.kind.size)
        for number in np.flatnonzero(count).tolist():
            name = one.calls[number]
            self._count[name] = self._count.get(name, 0) + int(count[number])
            self._spent[name] = self._spent.get(name, 0) + int(spent[number])
        begin, end, kind = self._switched(one, block[which], begin, end, kind, known)
        marks = np.flatnonzero(marked & (block["duration"] >= NAMED))
        if marks.size:
            when = np.maximum(clock.of(block["begin"][marks]) - self._zero, 0)
            begin, end, kind = self._threaded(one, block[marks], when, begin, end, kind, known)
        busy = np.flatnonzero(kind)
        self._grown.add(one.processor, begin[busy], end[busy], kind[busy], known)

    def _switched(
        self, one: _Followed, block: NDArray[Any], begin: Any, end: Any, kind: Any, known: int
    ) -> tuple[Any, Any, Any]:
        """With the time between MPI_Pcontrol(0) and the next one not measured."""
        number = one.calls.index("MPI_Pcontrol") if "MPI_Pcontrol" in one.calls else -1
        off = []
        for i in np.flatnonzero(block["call"] == number).tolist():
            if one.off >= 0:
                off.append((one.off, int(begin[i])))
                one.off = -1
            if int(block["tag"][i]) == 0:
                one.off = int(end[i])
        if one.off >= 0:
            off.append((one.off, known))
            one.off = known
        if not off:
            return begin, end, kind
        a, b = np.array(off, np.int64).T
        return (
            np.concatenate([begin, a]),
            np.concatenate([end, b]),
            np.concatenate([kind, np.full(a.size, int(Activity.UNMEASURED))]),
        )

    def _threaded(
        self, one: _Followed, marks: NDArray[Any], when: Any, begin: Any, end: Any, kind: Any, known: int
    ) -> tuple[Any, Any, Any]:
        """With the time between regions of OpenMP, and in barriers, idle: of a worker, and of any."""
        number = np.minimum(marks["duration"].astype(np.int64) - NAMED, one.kind.size - 1)
        step = np.where(marks["call"] == ENTER, 1, -1)
        inside = one.parallel + np.cumsum(step * (number == one.calls.index("OpenMP parallel")))
        waits = one.waits + np.cumsum(step * (one.kind[number] == int(Activity.IDLE)))
        idle = (waits > 0) | ((inside <= 0) & (int(one.head["thread"]) > 0))
        starts = np.concatenate(([max(one.idle, 0)], when))
        stops = np.append(when, known)
        which = np.concatenate(([one.idle >= 0], idle))
        one.parallel, one.waits, one.idle = int(inside[-1]), int(waits[-1]), known if idle[-1] else -1
        return (
            np.concatenate((begin, starts[which])),
            np.concatenate((end, stops[which])),
            np.concatenate((kind, np.full(int(which.sum()), int(Activity.IDLE)))),
        )

    def _told(self) -> Followed:
        grown, heads = self._grown, [one.head for one in self._files.values()]
        share, edges = grown.computing(self._columns)
        order = sorted(self._spent, key=lambda name: -self._spent[name])
        return Followed(
            curves=grown.curves(_NAMES),
            known_s=grown.common * 1e-9,
            until_s=ahead(max(grown.common, 1) * 1e-9),
            latest_s=int(grown.known.max(initial=0)) * 1e-9,
            calls=tuple((name, self._count[name], self._spent[name] * 1e-9) for name in order),
            names=tuple(_name(head) for head in heads),
            share=share,
            edges_s=edges * np.float64(1e-9),
            processes=sum(not head["thread"] for head in heads),
            expected=max((int(head["size"]) for head in heads), default=0),
            ended=sum(one.whole and not one.head["thread"] for one in self._files.values()),
            records=sum(one.read for one in self._files.values()),
            lost=sum(int(head["lost"]) for head in heads),
        )


def _stores(one: _Followed) -> bool:
    """Whether the tail has been moved to the body since the head was read, as it is at the very end."""
    again = head_of(one.path)
    return again is not None and int(again["stored"]) != int(one.head["stored"])


def _name(head: Any) -> str:
    thread = int(head["thread"])
    return f"rank {int(head['rank'])}" + (f" thread {thread}" if thread else "")

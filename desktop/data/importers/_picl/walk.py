"""The second pass over a PICL trace, for one processor: its records in order of time, as rows of the sink.

Records come in chunks, so that a processor may have any number. Of former chunks only entries without exit,
and collectives that are not over, are remembered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from desktop.data.consistency import RARE
from desktop.data.events import TABLES, EventKind, Location, Severity, columns_like
from desktop.data.importers._picl import lines as ln
from desktop.data.importers._picl import messages as ms
from desktop.data.importers._picl import states as st
from desktop.data.importers._picl import tables as tb
from desktop.data.importers._picl.intake import Intake
from desktop.data.spill import Sorted, joined, rising

#: Records that are in memory at once.
CHUNK = 1 << 18

_A, _B = ln.FORMAT_A, ln.FORMAT_B
_NOT_OVER = np.iinfo(np.int64).min
_COLLECTIVE = np.dtype(
    [
        ("begin", "i8"),
        ("end", "i8"),
        ("operation", "u4"),
        ("communicator", "u4"),
        ("root", "i4"),
        ("sent", "i8"),
        ("received", "i8"),
        ("line", "i8"),
    ]
)

#: Rows of a table of the sink; of "marks" the texts are still numbers.
Rows = tuple[str, dict[str, NDArray[Any]]]


@dataclass
class RecordPlace:
    """A location to be: its processor, its units in the intake, and what was found."""

    processor: int
    units: list[int]
    location: Location
    index: int = -1
    #: name: severity, count, first line, text
    notes: dict[str, tuple[Severity, int, int, str]] = field(default_factory=dict)
    twins: int = 0

    #: the latest time of its records but for the last one
    before: int | None = None
    #: whether the beginning and the end of tracing are there, and statistics that say when it communicates
    begun: bool = False
    closed: bool = False  # the last thing that a program of format A records
    ended: bool = False
    usable: bool = False
    #: calls of the library, how many of them are within themselves, and the first line of these
    calls: tuple[int, int, int] = (0, 0, 0)
    #: whether its records contradict each other
    doubted: bool = False

    def note(self, name: str, severity: Severity, count: int, line: int, text: str) -> None:
        if count:
            self.notes[name] = (severity, int(count), int(line), text)

    def doubtful(self, name: str, count: int, line: int, text: str) -> None:
        """Note a loss that leaves open what the processor did when."""
        self.note(name, "loss", count, line, text)
        self.doubted |= bool(count)


@dataclass
class Names:
    """What records refer to, as the sink numbers it: by key, by state, by processor."""

    region: NDArray[np.int64]  # of a key, -1 none
    user: NDArray[np.bool_]  # whether a key is of a user event
    own: NDArray[np.bool_]  # whether a key is of a call of the library
    watched: NDArray[np.bool_]  # whether a key is of the trace itself (B); one more for no key
    collective: NDArray[np.int64]  # text of a key's operation, -1 none
    state: NDArray[np.int64]  # region of a state, -1 none
    trace: int  # the key of the trace itself, -1 none
    known: NDArray[np.int64]  # processors, sorted
    index: NDArray[np.int64]  # their locations
    cpus: NDArray[np.int64]  # processors that are no host


class Walk:
    """One processor on its way to the sink."""

    def __init__(self, place: RecordPlace, intake: Intake, names: Names, folder: Path) -> None:
        self.place, self.intake, self.names, self.folder = place, intake, names, folder
        self.form = intake.form
        self.roles = tb.ROLES[self.form]
        self.events = np.array([*intake.key_events, 0], np.int64)
        self.size = sum(intake.spill.size(unit) for unit in place.units)
        self.named = names.region.max(initial=-1) >= 0
        self._risen = False  # whether all records are known to be in order of time

    def rows(self) -> Iterator[Rows]:
        """All its rows; the location and the notes of the place are complete afterwards."""
        place = self.place
        place.location.records = self.size
        if not self.size:
            place.location.damage = "no data"
            return
        records = Sorted(self.folder, CHUNK)
        try:
            for part in self._parts():
                records.add(part, self._risen)
            yield from self._rows(records)
        finally:
            records.close()

    def _parts(self) -> Iterator[NDArray[Any]]:
        """Records in the order of lines, their times in ticks, those left out that are of no use."""
        spill = self.intake.spill

        def read() -> Iterator[NDArray[Any]]:
            return (part for unit in self.place.units for part in spill.parts(unit, CHUNK))

        parts = list(read()) if self.size <= CHUNK else None
        since = self._since(parts, read) if self.form == _A else 0
        rounded = line = 0
        order = np.zeros(st.DESCENT, np.int64)
        for part in parts or read():
            line = line or int(part["line"][0])
            if since:
                part = part[part["line"] >= since]
            if self.form == _B:
                rounded += st.to_ticks(part, self.intake.decimals)
            st.descents(part, self.form == _A, order)
            yield part
        if order[st.DESCENTS] <= max(1, RARE * order[st.COUNTED]):
            self.place.doubtful(
                "odd times", order[st.DESCENTS], order[st.DESCENT_LINE],
                "Single lines of a processor lie before the one ahead of them, which its other lines do not; "
                "their times, or those before, are damaged. Lines were sorted by time.",
            )  # fmt: skip
        self.place.note(
            "times rounded", "notice", rounded, line,
            f"Times have more decimals than can be kept; they were rounded to {self.intake.decimals}.",
        )  # fmt: skip

    def _since(self, parts: Any, read: Any) -> int:
        """The first line of the last run on the clock that counts, format A."""
        self._risen = parts is not None and len(parts) == 1 and rising(parts[0])
        if self._risen and not self.intake.synchronized:
            return 0  # nothing has set the clock, and no run begins before the one before it ends
        carry = np.zeros(st.JUMPS, np.int64)
        first = 0
        for part in parts or read():
            first = first or int(part["line"][0])
            st.jumps(part, carry)
        since, before = st.clock_cut(carry)
        self.place.note(
            "clock jump", "loss", before, first,
            "Records from before the clocks were synchronized are on another clock and were left out.",
        )  # fmt: skip
        run = np.zeros(st.RUN, np.int64)
        for part in parts or read():
            st.last_run(part, since, run)
        self.place.note(
            "several runs", "loss", run[st.RUN_BEFORE], run[st.RUN_LINE],
            "The file holds several runs, one appended to the other; the last one was read. To see "
            "another one, split the file at the line named here.",
        )  # fmt: skip
        return int(run[st.RUN_LINE]) or since

    def _rows(self, records: Sorted) -> Iterator[Rows]:
        place, location, keys = self.place, self.place.location, len(self.names.region)
        opened, self.matched = np.zeros(keys, np.int64), np.zeros(keys, np.int64)
        depth = np.zeros((2, keys), np.int64)
        seen, facts = np.zeros((26, 2), np.int64), np.zeros(st.FACTS, np.int64)
        ahead: list[tuple[bool, int, int]] = []
        special: list[NDArray[Any]] = []
        for chunk in records.chunks():
            coming = np.zeros(2, np.int64)
            before = int(facts[st.STATS])
            st.survey(chunk, self.roles, self.names.own, depth, opened, self.matched, seen, facts, coming)
            ahead.append((facts[st.STATS] > before, int(coming[0]), int(coming[1])))
            if self.names.watched.any():
                special.append(chunk[self.names.watched[chunk["key"]]])
            if location.first is None:
                location.first, self.line = int(chunk["time"][0]), int(chunk["line"][0])
            earlier = chunk["time"][chunk["time"] < chunk["time"][-1]]
            place.before = int(earlier[-1]) if len(earlier) else location.last
            location.last = self.last = int(chunk["time"][-1])
        place.twins = int(facts[st.TWINS])
        place.calls = (int(facts[st.CALLS]), int(facts[st.INSIDE]), int(facts[st.INSIDE_LINE]))
        # Most processors of A have none.
        self.marked = self.form == _B or bool(self.intake.texts) or bool(seen[tb.MARKS_A, 0].any())
        states: _StatesA | _StatesB
        if self.form == _A:
            states = _StatesA(place, self.line, seen, facts, ahead, len(self.names.cpus))
        else:
            marked = np.concatenate(special) if special else np.empty(0, ln.RECORD)
            states = _StatesB(place, self.line, bool(seen[[3, 4], 0].any()), marked, self.events)
        yield from self._walk(records, states)
        states.finish()
        if place.doubted and location.first is not None and location.last is not None:
            location.doubt = location.last - location.first

    def _walk(self, records: Sorted, states: _StatesA | _StatesB) -> Iterator[Rows]:
        place, keys = self.place, len(self.names.region)
        entered, dangling, self.durations = (np.zeros(keys, np.int64) for _ in range(3))
        heads, tails = np.full(keys, -1, np.int64), np.full(keys, -1, np.int64)
        count = np.zeros(st.PAIRED, np.int64)
        lasting = np.empty(0, ln.RECORD)
        self.held = np.empty(0, _COLLECTIVE)
        now = st.BUSY
        for number, chunk in enumerate(records.chunks()):
            begin = len(lasting)
            rows = joined((lasting, chunk)) if begin else chunk
            mate, left = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
            stay = st.pair(
                rows,
                begin,
                self.roles,
                self.matched,
                entered,
                heads,
                tails,
                mate,
                left,
                self.durations,
                count,
            )
            lasting = rows[left[:stay]]
            now, events = self._events(
                rows, begin, mate, dangling, states.changes(number, rows, begin, mate), now
            )
            yield "events", events
            yield from self._collectives(rows, begin, mate)
            yield from self._messages(chunk)
            yield from self._marks(chunk)
        still = np.repeat(self.names.region, dangling)
        if self.names.state[now] >= 0:
            still = np.append(still, self.names.state[now])
        yield (
            "events",
            {
                "time": np.full(len(still), self.last),
                "kind": np.full(len(still), EventKind.LEAVE, np.uint8),
                "region": still.astype(np.uint32),
            },
        )
        # Who never writes one of the two has a habit.
        every = int(entered.sum()) + count[st.ORPHANS]
        broken = max(count[st.ORPHANS], count[st.OPENED]) <= 0.9 * every
        told: Any = place.doubtful if broken else partial(place.note, severity="notice")
        told(
            "exits without entry", count=count[st.ORPHANS], line=count[st.ORPHAN_LINE],
            text="Ends of events or waits without a begin were ignored.",
        )  # fmt: skip
        told(
            "entries without exit", count=count[st.OPENED], line=count[st.OPEN_LINE],
            text="Events or waits that never end were closed at their processor's last record "
            "(user events where tracing ends).",
        )  # fmt: skip
        if self.form == _B and self.intake.statistics:
            self._compare()

    def _events(
        self,
        rows: NDArray[Any],
        begin: int,
        mate: NDArray[Any],
        dangling: NDArray[Any],
        changes: Any,
        now: int,
    ) -> tuple[int, dict[str, NDArray[Any]]]:
        names = self.names
        times, changed = changes
        size = 2 * (len(rows) - begin) + int(dangling.sum())
        own, out = (
            (np.empty(n, np.int64), np.empty(n, np.uint8), np.empty(n, np.uint32))
            for n in (size, size + 2 * len(times))
        )
        used = 0
        if self.named:
            used = st.regions(
                rows, self.roles, mate, names.region, names.user, dangling, names.trace, begin, len(rows),
                *own,
            )  # fmt: skip
        used, now = st.interleave(*own, used, times, changed, now, names.state, *out)
        return int(now), dict(zip(("time", "kind", "region"), (column[:used] for column in out), strict=True))

    def _collectives(self, rows: NDArray[Any], begin: int, mate: NDArray[Any]) -> Iterator[Rows]:
        if self.names.collective.max(initial=-1) < 0:
            return
        key = rows["key"]
        entry = (self.roles[rows["record"]] == 1) & (key >= 0)
        at = np.flatnonzero(entry & (self.names.collective[key] >= 0))
        chosen, partner = rows[at], mate[at]
        exits = rows[np.maximum(partner, 0)]
        last = np.where(partner == -2, self.last, _NOT_OVER)
        made = np.empty(len(at), _COLLECTIVE)
        made["begin"], made["line"] = chosen["time"], chosen["line"]
        made["end"] = np.where(partner >= 0, exits["time"], last)
        made["operation"] = self.names.collective[chosen["key"]]
        received = np.where(partner >= 0, exits["d0"], 0)
        d0, d1, d2 = (chosen[name].astype(np.int64) for name in ("d0", "d1", "d2"))
        if self.form == _A:
            root, subset = np.where(d0 == -1, -1, d1), np.zeros(len(at), np.int64)
            made["sent"] = made["received"] = 0
        else:
            event, nd = self.events[chosen["key"]], chosen["nd"]
            rooted = np.isin(event, list(tb.ROOTED_B)) & (nd >= 3)
            barrier = event == -402
            root = np.where(rooted, d1, -1)
            subset = np.select([rooted, barrier], [d2, d0], d1)
            made["sent"] = np.where(barrier | (nd < 2), 0, np.maximum(d0, 0))
            # The exit of an allreduce carries something else, that of a barrier nothing.
            made["received"] = np.where(barrier | (event == -782), 0, np.maximum(received, 0))
        made["communicator"] = subset & 0xFFFFFFFF
        place = np.minimum(np.searchsorted(self.names.known, root), len(self.names.known) - 1)
        made["root"] = np.where(self.names.known[place] == root, self.names.index[place], -1)
        # Those of former chunks that are over now, found by their lines.
        over = made[(at < begin) & (partner >= 0)]
        if len(over):
            order = np.argsort(self.held["line"])
            held = order[np.searchsorted(self.held["line"], over["line"], sorter=order)]
            self.held["end"][held], self.held["received"][held] = over["end"], over["received"]
        self.held = np.concatenate((self.held, made[at >= begin]))
        waiting = self.held["end"] == _NOT_OVER
        ready = int(np.argmax(waiting)) if waiting.any() else len(waiting)
        yield "collectives", {name: self.held[name][:ready].copy() for name in TABLES["collectives"]}
        self.held = self.held[ready:]

    def _messages(self, rows: NDArray[Any]) -> Iterator[Rows]:
        at = copy = 0
        while at < len(rows):
            most = min(ms.AT_ONCE, len(rows))
            columns = columns_like("messages", most)
            used, at, copy = ms.fill(
                rows, at, copy, self.place.processor, self.form, tb.SIDES, tb.KINDS_B, self.events,
                self.names.known, self.names.index, self.names.cpus, self.intake.communicators,
                *columns.values(),
            )  # fmt: skip
            yield "messages", {name: column[:used] for name, column in columns.items()}

    def _marks(self, rows: NDArray[Any]) -> Iterator[Rows]:
        """Marks and texts; "text" is still a pair: record type (-1: a text of the intake) and value."""
        if not self.marked:
            return
        at = np.empty(len(rows), np.int64)
        at = at[: st.marks(rows, self.form == _A, tb.MARKS_A, self.events, at)]
        if not len(at):
            return
        chosen = rows[at]
        spoken = chosen["nd"] == -1
        kind = np.where(spoken, -1, chosen["record"]).astype(np.int64)
        if self.form == _A:
            value = np.where(spoken | (kind == 15), chosen["d0"], 0)
        else:
            value = np.where(spoken, chosen["d0"], self.events[chosen["key"]])
        yield "marks", {"time": chosen["time"].copy(), "kind": kind, "value": value}

    def _compare(self) -> None:
        """Totals of the trace's own statistics against the sums of the paired events, format B."""
        place, unit = self.place, 10.0**-self.intake.decimals
        wrong = []
        for key, event in enumerate(self.intake.key_events):
            value = self.intake.statistics.get((place.processor, 101, event))
            found = self.durations[key] * unit
            if (
                self.intake.paired[key]
                and value is not None
                and abs(found - value) > 0.01 * abs(value) + 1e-5
            ):
                wrong.append(f"{event} of {place.location.name}, {value:g} s against {found:g} s")
        place.note(
            "statistics disagree", "notice", len(wrong), self.line,
            f"Totals in the trace differ from the sums of its events (first: {''.join(wrong[:1])}); the "
            "events are believed.",
        )  # fmt: skip


class _StatesA:
    """Changes of state of a processor of format A, chunk by chunk."""

    def __init__(
        self,
        place: RecordPlace,
        line: int,
        seen: NDArray[Any],
        facts: NDArray[Any],
        ahead: list[tuple[bool, int, int]],
        processors: int,
    ) -> None:
        self._place = place
        location, note = place.location, place.note
        times, lines = seen.T.tolist()
        place.begun, place.ended = bool(times[1]), bool(times[19])
        place.closed = bool(times[13])
        several = bool(facts[st.STATS] > 1 and facts[st.STATS_FIRST] < facts[st.STATS_LAST])
        calls = any(times[key] for key in (4, 6, 7, 8, 10))
        self._usable = several and (not facts[st.LEVELS] or facts[st.LEVEL] >= 2 or not calls)
        self._restarted = times[1] > 1
        self._intervals = int(facts[st.STATS])
        self._carry = np.zeros(st.CARRY, np.int64)
        # For every chunk the first statistics after it.
        self._ahead = np.zeros((len(ahead), 3), np.int64)
        for k in range(len(ahead) - 1, 0, -1):
            self._ahead[k - 1] = ahead[k] if ahead[k][0] else self._ahead[k]
        assert location.first is not None and location.last is not None
        elapsed = location.last - location.first
        described = any(times[key] for key in (4, 6, 7, 8, 9, 10, 15, 20, 21, 22))
        self._silent = not self._usable and not described and elapsed > 0
        if self._silent:
            location.damage = "no data"
            total = int(facts[st.STATS_MOST])
            note(
                "statistics only", "error", 1, line,
                f"There are statistics but no events, so there is no curve. Totals of {location.name}: "
                f"computing {(elapsed - total) * 1e-6:g} s, communicating {total * 1e-6:g} s.",
            )  # fmt: skip
        elif not self._usable and calls:
            note(
                "sends without duration", "notice", 1, line,
                "Sends and non-blocking receives have no duration in this trace: only waiting is known.",
            )  # fmt: skip
        if not elapsed:
            location.damage = "no data"
        if times[17]:
            location.damage = "buffer full"
        note(
            "trace buffer full", "loss", times[17], lines[17],
            "The trace buffer was full; from there on nothing is known of the processor until its end.",
        )  # fmt: skip
        note(
            "trace flushes", "notice", times[18], lines[18],
            "The program was held up while its trace was written; the time counts as overhead.",
        )  # fmt: skip
        # Blocks and barriers of the library send and receive on their own, at most with everybody each time,
        # and a user's block may do so however often.
        hidden = np.inf if facts[st.CLOSED_USER] else (times[10] + facts[st.CLOSED]) * processors
        gaps = (facts[st.RECEIVED] - times[6] - times[8], facts[st.SENT] - times[4])
        if facts[st.COUNTS] and facts[st.LEVELS] <= 2 and not times[17]:
            place.doubtful(
                "messages missing", sum(gap < 0 or gap > hidden for gap in gaps), line,
                "The totals of messages in the trace are others than it has sends and receives; records are "
                "missing, repeated or changed.",
            )  # fmt: skip
        # The library writes statistics before and after each of them if their level is that of events.
        bare, timed = int(facts[st.BARE]), int(facts[st.TIMED])
        if bare <= (timed if facts[st.LEVELS] else RARE * timed) and not (facts[st.UNTIMED] or times[17]):
            place.doubtful(
                "statistics missing", bare, facts[st.BARE_LINE],
                "Statistics are missing of single messages or barriers, all others have them; records are "
                "missing or changed.",
            )  # fmt: skip
        place.usable = self._usable
        if not times[19] and elapsed and location.kind == "cpu":
            location.damage = location.damage or "incomplete"
            place.doubted |= bool(times[1])
            note(
                "tracing without end", "loss" if times[1] else "notice", 1, line,
                "The end of tracing (trace_exit) is missing; a processor ends with its last record.",
            )  # fmt: skip

    def changes(self, number: int, rows: NDArray[Any], begin: int, mate: NDArray[Any]) -> Any:
        """Times and new states in rows[begin:], chunk number `number`."""
        if self._silent:
            first = number == 0
            return rows["time"][:first].copy(), np.full(int(first), st.NO_DATA, np.int64)
        size = 2 * (len(rows) - begin)
        time, state = np.empty(size, np.int64), np.empty(size, np.int64)
        used = st.states_a(
            rows, mate, self._usable, self._restarted, begin, self._ahead[number], self._carry, time, state
        )
        return time[:used], state[:used]

    def finish(self) -> None:
        carry, note = self._carry, self._place.note
        partly: Severity = "loss" if carry[st.PARTIAL] <= max(1, RARE * self._intervals) else "notice"
        note(
            "intervals partly computing", partly, carry[st.PARTIAL], carry[st.PARTIAL_LINE],
            "Statistics at both ends of an interval say that only a part of it was communication; it counts "
            "as computing when that is less than half.",
        )  # fmt: skip
        self._place.doubtful(
            "impossible statistics", carry[st.GROWN], carry[st.GROWN_LINE],
            "A running total of the time in communication grows by more than the time that passes; records "
            "are missing or changed there.",
        )  # fmt: skip
        note(
            "statistics restarted", "loss", carry[st.RESTARTS], carry[st.RESTART_LINE],
            "A running total of the time in communication decreases; the interval is not known unless the "
            "total wrapped at 32 bits.",
        )  # fmt: skip
        note(
            "negative durations", "notice", carry[st.BACKWARD], carry[st.BACKWARD_LINE],
            "A trace flush ends before it begins; it was taken as 0.",
        )  # fmt: skip


class _StatesB:
    """Spans of a processor of format B of which nothing is known, as changes of state."""

    def __init__(
        self, place: RecordPlace, line: int, told: bool, marked: NDArray[Any], events: NDArray[Any]
    ) -> None:
        """told: there are entries or exits. marked: records of the trace itself, flushes, lost buffers."""
        location, note = place.location, place.note
        assert location.first is not None and location.last is not None
        first, last = location.first, location.last
        spans: list[tuple[int, int, int]] = []  # begin, end, state
        event, record, time = events[marked["key"]], marked["record"], marked["time"]
        if not told:
            spans.append((first, last, st.NO_DATA))
            location.damage = "no data"
            note(
                "no events", "error", 1, line,
                "There are statistics or marks but no events of some processors, so their curve is unknown.",
            )  # fmt: skip
        else:
            begins = time[(event == -901) & (record == 3)].tolist()
            ends = time[(event == -901) & (record == 4)].tolist()
            place.begun, place.ended = bool(begins), bool(ends)
            if not ends:
                location.damage = "incomplete"
                place.doubted |= bool(begins)
                note(
                    "tracing without end", "loss" if begins else "notice", 1, line,
                    "The end of tracing (-4 -901) is missing; a processor ends with its last record.",
                )  # fmt: skip
            at = first
            for begin, end in _sessions(begins, ends, first, last):
                if begin > at:
                    spans.append((at, begin, st.NOT_TRACED))
                at = max(at, end)
            if at < last and (begins or ends):
                spans.append((at, last, st.NOT_TRACED))
            lost = marked[((event == -913) | (event == -914)) & ((record == 2) | (record == 3))]
            if len(lost):
                location.damage = "buffer full"
                note(
                    "trace buffer full", "loss", len(lost), lost["line"].min(),
                    "The trace buffer was full; from there on nothing is known of the processor.",
                )  # fmt: skip
                for begin in lost["time"].tolist():
                    after = np.searchsorted(ends, begin, "right")
                    spans.append((begin, ends[after] if after < len(ends) else last, st.NO_DATA))
            flushes = marked[(event == -912) & (record != 4)]
            note(
                "trace flushes", "notice", len(flushes), flushes["line"].min(initial=1 << 62),
                "The program was held up while its trace was written; the time counts as overhead.",
            )  # fmt: skip
        self._times, self._states = _flat(spans)
        if first == last:
            location.damage = "no data"

    def changes(self, number: int, rows: NDArray[Any], begin: int, mate: NDArray[Any]) -> Any:
        """Times and new states in rows[begin:]."""
        low = np.searchsorted(self._times, rows[begin]["time"], "left")
        high = np.searchsorted(self._times, rows[-1]["time"], "right")
        return self._times[low:high], self._states[low:high]

    def finish(self) -> None:
        """Nothing is left to say."""


def _sessions(begins: list[int], ends: list[int], first: int, last: int) -> list[tuple[int, int]]:
    """When tracing was on: the k-th begin with the k-th end that does not come before it."""
    sessions, begun = [], 0
    for number, end in enumerate(ends):
        if begun < len(begins) and begins[begun] <= end:
            sessions.append((begins[begun], end))
            begun += 1
        elif number == 0:
            sessions.append((first, end))
    return sorted(sessions + [(begin, last) for begin in begins[begun:]])


def _flat(spans: list[tuple[int, int, int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Spans (begin, end, state) as changes of state; where they overlap the lower state wins."""
    cuts = sorted({t for begin, end, _ in spans if begin < end for t in (begin, end)})
    edges = np.array(cuts, np.int64)
    level = np.full(len(edges), st.BUSY, np.int64)
    for begin, end, state in sorted(spans, key=lambda span: -span[2]):
        level[np.searchsorted(edges, begin) : np.searchsorted(edges, end)] = state
    if not len(edges):
        return edges, level
    changed = np.flatnonzero(np.diff(level, prepend=st.BUSY))
    return edges[changed], level[changed]

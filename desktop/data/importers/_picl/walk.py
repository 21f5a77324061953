"""The second pass over a PICL trace, for one processor: its records in time order, as rows of the sink.

Records come in chunks, so a processor may have any number. Of former chunks only entries without exit and
unfinished collectives are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from desktop.core.arrays import AnyArray, Flags, Ints
from desktop.data.consistency import RARE
from desktop.data.events import TABLES, EventKind, Location, Severity, columns_like, events_at
from desktop.data.importers._picl import kernels as kn
from desktop.data.importers._picl import lines as ln
from desktop.data.importers._picl import tables as tb
from desktop.data.importers._picl.intake import Intake
from desktop.data.spill import Sorted, joined, rising

#: Records in memory at once, and message rows made at once.
CHUNK = 1 << 18
AT_ONCE = 1 << 16

_NOT_OVER = np.iinfo(np.int64).min
_COLLECTIVE = np.dtype([*TABLES["collectives"].items(), ("line", "i8")])

#: Rows of a table of the sink; in "marks" the texts are still numbers.
Rows = tuple[str, dict[str, AnyArray]]


@dataclass
class RecordPlace:
    """A future location: its processor, its units in the intake, and its findings."""

    processor: int
    units: list[int]
    location: Location
    index: int = -1
    #: name: severity, count, first line, text
    notes: dict[str, tuple[Severity, int, int, str]] = field(default_factory=dict)
    findings: Ints = field(default_factory=lambda: np.zeros((tb.FOUND, 2), np.int64))
    #: records that equal another one, number of calls of the library
    twins: int = 0
    calls: int = 0
    #: the latest time of its records except the last one
    before: int | None = None
    #: whether the beginning and the end of tracing are there, usable statistics of communication, and the
    #: last record of a program in format A
    begun: bool = False
    ended: bool = False
    usable: bool = False
    closed: bool = False
    #: whether its records contradict each other
    doubted: bool = False

    def note(
        self, name: str, count: int, line: int, severity: Severity | None = None, **facts: object
    ) -> None:
        """Add a finding (`tables.FINDINGS`), with its usual severity unless given."""
        if count:
            usual, text = tb.FINDINGS[name]
            self.notes[name] = (severity or usual, int(count), int(line), text.format(**facts))

    def tell(self, kind: int, severity: Severity | None = None) -> None:
        """Add a finding of the kernels."""
        count, line = self.findings[kind].tolist()
        self.note(tb.NAMED[kind], count, line, severity)
        # The interval of a statistic is known even if its value is not.
        lost = (severity or tb.FINDINGS[tb.NAMED[kind]][0]) == "loss"
        self.doubted |= bool(count) and lost and kind not in (tb.PARTIAL, tb.RESTARTS)


@dataclass
class Names:
    """Numbers in the sink of what records refer to: by key, by state, by processor."""

    region: Ints  # of a key, -1 none
    user: Flags  # whether a key is of a user event
    library: Flags  # whether a key is of a call of the library
    collective: Ints  # text of a key's operation, -1 none
    state: Ints  # region of a state, -1 none
    trace: int  # the key of the tracing itself, -1 none
    numbers: Ints  # of processors, sorted
    index: Ints  # their locations
    cpus: Ints  # processors that are not the host


class Walk:
    """One processor being imported into the sink."""

    def __init__(self, place: RecordPlace, intake: Intake, names: Names, folder: Path) -> None:
        self.place, self.intake, self.names, self.folder = place, intake, names, folder
        self.first_format = intake.form == tb.FORMAT_A
        self.events = np.append(intake.keys.values, 0)
        self.size = sum(intake.spill.size(unit) for unit in place.units)
        self._risen = False  # whether all records are known to be in order of time

    def rows(self) -> Iterator[Rows]:
        """All its rows; afterwards the location and the findings of the place are complete."""
        place, location = self.place, self.place.location
        location.records = self.size
        if not self.size:
            location.damage = "no data"
            return
        with closing(Sorted(self.folder, CHUNK)) as records:
            for part in self._parts():
                records.add(part, self._risen)
            yield from self._rows(records)
        if place.doubted:
            location.doubt_for()

    def _parts(self) -> Iterator[AnyArray]:
        """Useful records in the order of lines, their times in ticks."""
        place, spill, decimals = self.place, self.intake.spill, self.intake.decimals

        def read() -> Iterator[AnyArray]:
            return (part for unit in place.units for part in spill.parts(unit, CHUNK))

        parts = list(read()) if self.size <= CHUNK else None
        since = self._since(parts, read) if self.first_format else 0
        rounded = line = 0
        order = np.zeros(2, np.int64)
        for part in parts or read():
            line = line or int(part["line"][0])
            if since:
                part = part[part["line"] >= since]
            if not self.first_format:
                rounded += kn.to_ticks(part, decimals)
            kn.descents(part, order, place.findings)
            yield part
        if place.findings[tb.DESCENTS, 0] <= max(1, RARE * order[0]):
            place.tell(tb.DESCENTS)
        place.note("times rounded", rounded, line, decimals=decimals)

    def _since(self, parts: list[AnyArray] | None, read: Callable[[], Iterator[AnyArray]]) -> int:
        """The first line of the last run on the final clock, format A."""
        self._risen = parts is not None and len(parts) == 1 and rising(parts[0])
        if self._risen and not self.intake.notes[ln.CLOCKS]:
            return 0  # nothing sets the clock, and no run begins before the one before it ends
        jumps, run = np.zeros(kn.JUMPS, np.int64), np.zeros(kn.RUN, np.int64)
        first = 0
        for part in parts or read():
            first = first or int(part["line"][0])
            kn.jumps(part, jumps)
        since, before = kn.clock_cut(jumps)
        self.place.note("clock jump", before, first)
        for part in parts or read():
            kn.last_run(part, since, run)
        self.place.note("several runs", run[kn.RUN_BEFORE], run[kn.RUN_LINE])
        return int(run[kn.RUN_LINE]) or since

    def _rows(self, records: Sorted) -> Iterator[Rows]:
        place, location, keys = self.place, self.place.location, len(self.names.region)
        opened, self.matched = np.zeros((2, keys), np.int64)
        depth = np.zeros((2, keys), np.int64)
        seen, facts = np.zeros((tb.KINDS, 2), np.int64), np.zeros(kn.FACTS, np.int64)
        coming: list[Ints] = []
        for part in records.chunks():
            coming.append(np.zeros(3, np.int64))
            kn.survey(
                part, self.names.library, depth, opened, self.matched, seen, facts, place.findings, coming[-1]
            )
            if location.first is None:
                location.first, self.line = int(part["time"][0]), int(part["line"][0])
            earlier = part["time"][part["time"] < part["time"][-1]]
            place.before = int(earlier[-1]) if len(earlier) else location.last
            location.last = self.last = int(part["time"][-1])
        # For every part the first statistics after it.
        after = [np.zeros(3, np.int64)]
        for first in coming[:0:-1]:
            after.append(first if first[0] else after[-1])
        place.twins, place.calls = int(facts[kn.TWINS]), int(facts[kn.CALLS])
        # Most processors of A have none.
        self.marked = bool(seen[tb.SHOWN, 0].any()) or bool(self.intake.texts)
        self._judge(seen, facts)
        yield from self._walk(records, after[::-1])

    def _judge(self, seen: Ints, facts: Ints) -> None:
        """Decide from all records of the processor how its states are found, and report what is lost."""
        place, location, (times, lines) = self.place, self.place.location, seen.T
        assert location.first is not None and location.last is not None
        elapsed = location.last - location.first
        begin, end, stop, flush = (
            ([tb.TRACE_START], [tb.TRACE_EXIT], [tb.TRACE_STOP], [tb.TRACE_FLUSH])
            if self.first_format
            else ([tb.TRACING], [tb.TRACED], [tb.LOST, tb.LOST_MARK], [tb.FLUSH, tb.FLUSH_MARK])
        )
        place.begun, place.ended, place.closed = (bool(times[k].any()) for k in (begin, end, tb.CLOSE))
        self.carry = np.zeros(kn.CARRY, np.int64)
        self.carry[kn.UNTIL] = np.iinfo(np.int64).max if self.first_format else location.last
        self.carry[kn.UNBEGUN] = facts[kn.EARLY]
        self.carry[kn.SESSIONS] = self.first_format or facts[kn.EARLY] or not (place.begun or place.ended)
        self.restarted = bool(times[tb.TRACE_START] > 1)
        has_events = self._judge_statistics(times, facts) if self.first_format else facts[kn.TOLD] > 0
        self.silent = not has_events and elapsed > 0
        if not (has_events or self.first_format):
            place.note("no events", 1, self.line)
        for name, kinds in (("trace buffer full", stop), ("trace flushes", flush)):
            if has_events or self.first_format:
                place.note(name, times[kinds].sum(), lines[kinds][times[kinds] > 0].min(initial=1 << 62))
        ends = place.ended or (self.first_format and (not elapsed or location.kind != "cpu"))
        if not ends and (has_events or self.first_format):
            place.doubted |= place.begun
            name = "trace_exit" if self.first_format else "-4 -901"
            place.note("tracing without end", 1, self.line, "loss" if place.begun else None, end=name)
        if times[stop].any() and (self.first_format or (has_events and elapsed)):
            location.damage = "buffer full"
        elif not elapsed or not has_events:
            location.damage = "no data"
        elif not ends:
            location.damage = "incomplete"

    def _judge_statistics(self, times: Ints, facts: Ints) -> bool:
        """For format A; returns whether anything tells what the processor did."""
        place, location = self.place, self.place.location
        calls = [tb.SEND, tb.RECV, tb.RECV_BLOCKING, tb.RECV_WAKING, tb.SYNC]
        others = [tb.MESSAGE, tb.TRACE_MARK, tb.BLOCK_BEGIN, tb.BLOCK_END, tb.TRACE_MARKS]
        called, described = bool(times[calls].any()), bool(times[calls + others].any())
        several = facts[kn.STATS] > 1 and facts[kn.STATS_FIRST] < facts[kn.STATS_LAST]
        place.usable = bool(several and (not facts[kn.LEVELS] or facts[kn.LEVEL] >= 2 or not called))
        assert location.first is not None and location.last is not None
        elapsed, total = location.last - location.first, int(facts[kn.STATS_MOST])
        has_events = place.usable or described
        if not has_events and elapsed:
            place.note(
                "statistics only", 1, self.line, place=location.name,
                computing=(elapsed - total) * 1e-6, communicating=total * 1e-6,
            )  # fmt: skip
        elif not place.usable and called:
            place.note("sends without duration", 1, self.line)
        # Blocks and barriers of the library send and receive on their own, to each processor at most once
        # each time; a user's block may do so any number of times.
        hidden = (times[tb.SYNC] + facts[kn.CLOSED]) * len(self.names.cpus)
        gaps = (
            facts[kn.NUMBER_RECEIVED] - times[tb.RECV] - times[tb.RECV_WAKING],
            facts[kn.NUMBER_SENT] - times[tb.SEND],
        )
        if facts[kn.COUNTS] and facts[kn.LEVELS] <= 2 and not times[tb.TRACE_STOP]:
            odd = sum(gap < 0 or (gap > hidden and not facts[kn.CLOSED_USER]) for gap in gaps)
            place.note("messages missing", odd, self.line)
            place.doubted |= bool(odd)
        # The library writes statistics before and after each of them if their level is that of events.
        most = facts[kn.TIMED] * (1 if facts[kn.LEVELS] else RARE)
        if place.findings[tb.BARE, 0] <= most and not (facts[kn.UNTIMED] or times[tb.TRACE_STOP]):
            place.tell(tb.BARE)
        self.intervals = int(facts[kn.STATS])
        return has_events

    def _walk(self, records: Sorted, after: list[Ints]) -> Iterator[Rows]:
        place, names, keys = self.place, self.names, len(self.names.region)
        entered, dangling, durations = np.zeros((3, keys), np.int64)
        heads, tails = np.full((2, keys), -1, np.int64)
        lasting = np.empty(0, ln.RECORD)
        self.held = np.empty(0, _COLLECTIVE)
        if self.silent:
            yield "events", events_at(place.location.first, EventKind.ENTER, [names.state[tb.NO_DATA]])
            self.carry[kn.NOW] = tb.NO_DATA
        for ahead, chunk in zip(after, records.chunks(), strict=True):
            begin = len(lasting)
            rows = joined((lasting, chunk)) if begin else chunk
            mate, left = np.empty((2, len(rows)), np.int64)
            stay = kn.pair(
                rows, begin, self.matched, entered, heads, tails, mate, left, durations, place.findings
            )
            lasting = rows[left[:stay]]
            if not self.silent:
                columns = columns_like("events", 6 * len(chunk) + int(dangling.sum()))
                used = kn.walk(
                    rows, begin, mate, names.region, names.user, names.trace, names.state, place.usable,
                    self.restarted, ahead, self.carry, place.findings, dangling, *columns.values(),
                )  # fmt: skip
                yield "events", {name: column[:used] for name, column in columns.items()}
            yield from self._collectives(rows, begin, mate)
            yield from self._messages(chunk)
            yield from self._marks(chunk)
        still = np.append(np.repeat(names.region, dangling), names.state[self.carry[kn.NOW]])
        yield "events", events_at(self.last, EventKind.LEAVE, still[still >= 0])
        # Nearly all of them without a partner is the writer's habit, not damage.
        ends = place.findings[[tb.ORPHANS, tb.OPENED], 0]
        habit = ends.max() > 0.9 * (entered.sum() + ends[0])
        for kind in (tb.ORPHANS, tb.OPENED):
            place.tell(kind, "notice" if habit else None)
        if self.first_format:
            rare = place.findings[tb.PARTIAL, 0] <= max(1, RARE * self.intervals)
            place.tell(tb.PARTIAL, "loss" if rare else None)
            for kind in (tb.GROWN, tb.RESTARTS, tb.BACKWARD):
                place.tell(kind)
        elif self.intake.statistics:
            self._compare(durations)

    def _collectives(self, rows: AnyArray, begin: int, mate: AnyArray) -> Iterator[Rows]:
        names = self.names
        if names.collective.max(initial=-1) < 0:
            return
        key = rows["key"]
        entry = (tb.ROLES[rows["kind"]] == tb.ENTERS) & (key >= 0)
        at = np.flatnonzero(entry & (names.collective[key] >= 0))
        entries, partner = rows[at], mate[at]
        exits = rows[np.maximum(partner, 0)]
        operations = np.empty(len(at), _COLLECTIVE)
        operations["begin"], operations["line"] = entries["time"], entries["line"]
        operations["end"] = np.where(
            partner >= 0, exits["time"], np.where(partner == -2, self.last, _NOT_OVER)
        )
        operations["operation"] = names.collective[entries["key"]]
        d0, d1, d2 = (entries[name].astype(np.int64) for name in ("d0", "d1", "d2"))
        if self.first_format:
            root, subset = np.where(d0 == -1, -1, d1), 0 * d0
            operations["sent"] = operations["received"] = 0
        else:
            event, nd = self.events[entries["key"]], entries["nd"]
            rooted, barrier = np.isin(event, tb.ROOTED_B) & (nd >= 3), event == tb.BARRIER_B
            root, subset = np.where(rooted, d1, -1), np.select([rooted, barrier], [d2, d0], d1)
            operations["sent"] = np.where(barrier | (nd < 2), 0, np.maximum(d0, 0))
            # The exit of an allreduce carries something else, that of a barrier nothing.
            receives = (partner >= 0) & ~barrier & (event != tb.ALLREDUCE_B)
            operations["received"] = np.where(receives, np.maximum(exits["d0"], 0), 0)
        operations["communicator"] = subset & 0xFFFFFFFF
        place = np.minimum(np.searchsorted(names.numbers, root), len(names.numbers) - 1)
        operations["root"] = np.where(names.numbers[place] == root, names.index[place], -1)
        # Collectives of former chunks that end here, found by their lines.
        over = operations[(at < begin) & (partner >= 0)]
        if len(over):
            order = np.argsort(self.held["line"])
            held = order[np.searchsorted(self.held["line"], over["line"], sorter=order)]
            self.held["end"][held], self.held["received"][held] = over["end"], over["received"]
        self.held = np.concatenate((self.held, operations[at >= begin]))
        waiting = self.held["end"] == _NOT_OVER
        ready = int(np.argmax(waiting)) if waiting.any() else len(waiting)
        yield "collectives", {name: self.held[name][:ready].copy() for name in TABLES["collectives"]}
        self.held = self.held[ready:]

    def _messages(self, rows: AnyArray) -> Iterator[Rows]:
        at = copy = 0
        names, cpu, communicators = self.names, self.place.processor, self.intake.communicators
        while at < len(rows):
            columns = columns_like("messages", min(AT_ONCE, len(rows)))
            used, at, copy = kn.messages(
                rows, at, copy, cpu, names.numbers, names.index, names.cpus, communicators, *columns.values()
            )
            yield "messages", {name: column[:used] for name, column in columns.items()}

    def _marks(self, rows: AnyArray) -> Iterator[Rows]:
        """Marks and texts; "text" is still a pair: kind (-1: a text of the intake) and value."""
        if not self.marked:
            return
        marks = rows[tb.SHOWN[rows["kind"]] | (rows["nd"] == -1)]
        kind = np.where(marks["nd"] == -1, -1, marks["kind"]).astype(np.int64)
        value = np.where((kind == -1) | (kind == tb.TRACE_MARK), marks["d0"], 0)
        if not self.first_format:
            value = np.where(kind == -1, value, self.events[marks["key"]])
        yield "marks", {"time": marks["time"].copy(), "kind": kind, "value": value}

    def _compare(self, durations: Ints) -> None:
        """Compare totals of the trace's own statistics with the sums of the paired events, format B."""
        place, unit = self.place, 10.0**-self.intake.decimals
        wrong = []
        for key, event in enumerate(self.intake.keys.values.tolist()):
            value = self.intake.statistics.get((place.processor, 0, event))
            if value is None or not self.intake.paired[key]:
                continue
            summed = durations[key] * unit
            if abs(summed - value) > 0.01 * abs(value) + 1e-5:
                wrong.append(f"{event} of {place.location.name}, {value:g} s against {summed:g} s")
        place.note("statistics disagree", len(wrong), self.line, first="".join(wrong[:1]))

"""Paraver traces: .prv (also packed with gzip, bzip2 or xz), with labels (.pcf) and names (.row) beside it.

A processor is a thread of a task of an application. State records say what it does; where a thread has none,
the events of MPI calls do. Both become regions (`_paraver.intervals`); where both exist, the states decide.
User functions (60000019) are regions too, all other events are metrics. While tracing is off (40000012) or
the buffer is flushed (40000003) the activity is unknown. A message has two times at each end, logical (of the
call) and physical (of the data); a send gets the logical one. A receive gets both: it was posted at the
logical time by any call, and completed at the physical time, in any order; messages are matched in the order
in which their receives were posted.

Sources: the format as Extrae writes it (bsc-performance-tools), and samples; codes in `_paraver.tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from desktop.core.arrays import AnyArray, Bytes, Ints
from desktop.data.atomic import scratch_folder
from desktop.data.classify import is_stream
from desktop.data.consistency import ANNOUNCED, RARE
from desktop.data.events import NO_COMMUNICATOR, Activity, Findings, Importer, Location, Region, Sink
from desktop.data.importers._paraver import header as hd
from desktop.data.importers._paraver import intervals as iv
from desktop.data.importers._paraver import lines as ln
from desktop.data.importers._paraver import tables as tb
from desktop.data.lines import ahead, blocks, detected, in_order, line_feeds
from desktop.data.spill import Interner, Numbers, Spill, by_time
from desktop.errors import TraceFormatError
from desktop.progress import Progress

#: Rows of a thread in memory at once.
CHUNK = 1 << 16
#: Share of bad lines above which a file is refused.
REFUSED_SHARE = 0.1
#: Distinct regions and metrics; more are damage.
MOST_NAMES = 1 << 20
#: Largest share by which computing may differ between states and MPI events without a finding.
AGREEMENT = 0.01
#: Largest share by which the last record may miss the end given in the header.
LATE = 0.001

#: Names of the findings about lines.
_LINES = {
    ln.FIELDS: "lines with a wrong number of fields",
    ln.NUMBER: "lines with a field that is no number",
    ln.BACKWARD: "states that end before they begin",
    ln.THREAD: "lines of unknown threads",
    ln.KIND: "unreadable lines",
    ln.UNENDED: "last line cut off",
    ln.OLD: "old global operations",
    ln.COMMENTS: "comments",
}
#: Possible findings, their severity (what is rare in a trace is a loss), and what was done.
FINDINGS: Findings = {
    **{_LINES[kind]: ("loss", "Such lines cannot be read and were left out.") for kind in ln.BAD},
    "last line cut off": ("loss", "The last line has no end and was left out."),
    "old global operations": ("notice", "Lines of kind 4 (global operations of old traces) are not read."),
    "comments": ("info", "Comments are not read."),
    "labels lost": (
        "loss",
        "Some states have no label, and others the usual label of another state: their meaning is uncertain.",
    ),
    "ends without begin": ("notice", "Ends of calls that did not begin are ignored."),
    "calls begin twice": ("notice", "An MPI call begins again before it has ended; it ends there."),
    "states overlap": (
        "notice",
        "A state that lasts into the next one of its thread ends where that begins.",
    ),
    "states missing": (
        "notice",
        "Single states of a thread end and no other follows; what it did then is not known.",
    ),
    "states contradict MPI calls": (
        "notice",
        "A thread computes inside of MPI calls, or communicates outside of any; the states decide.",
    ),
    "threads without data": ("loss", "The header has them, and no line names them."),
    "threads without states": ("notice", "What they do is taken from the events of their MPI calls."),
}


#: Times, kinds and codes of enters and leaves, (n,) each.
_Columns = tuple[Ints, Bytes, Ints]


@dataclass
class _Chunk:
    """Rows of a thread, ends of the calls they begin, enters and leaves they become (`used` of `out`)."""

    index: int
    rows: AnyArray
    ends: Ints
    out: _Columns
    used: int
    last: bool = False


def _room(rows: int) -> _Columns:
    return np.empty(rows, np.int64), np.empty(rows, np.uint8), np.empty(rows, np.int64)


class _Reading:
    def __init__(self, path: Path, sink: Sink, progress: Progress, acts: Spill, messages: Spill) -> None:
        self.path, self.sink, self.progress = path, sink, progress
        self.report = sink.report
        self.acts, self.messages = acts, messages
        self.labels = hd.Labels()
        self.names = Interner()
        self.names(np.array([iv.key_of(iv.STATE + 1, state) for state in (iv.GAP, iv.OFF)], np.int64))
        self.kinds = np.full(2, iv.APART, np.uint8)  # by interned number
        self.regions = np.zeros(0, np.int64)  # by code, -1 not defined
        self.tally = np.zeros(iv.PAIR, np.int64)
        self.of_each: list[tuple[int, Ints, Ints]] = []  # location, `iv.CARRY`, `PAIR`
        self.sums = np.zeros(iv.CARRY, np.int64)
        self.stateless = 0

    # -- first pass: lines to the spill files

    def parse(self) -> None:
        size = max(self.path.stat().st_size, 1)
        for parts, done in in_order(self._parse, self._blocks()):
            for acts, act_threads, messages, message_threads in parts:
                self.acts.add(acts, act_threads, self.threads)
                self.messages.add(messages, message_threads, self.threads)
            self.progress.step(min(done, size), 2 * size, "reading lines")
        for reader in self.readers:
            self.lines.add(reader)
        self._check_lines()
        self.stated = bool(self.lines.counts[ln.STATES])

    def _blocks(self) -> Iterator[tuple[Bytes, int, bool, int, int]]:
        """Blocks, where their lines begin, whether it is the last, lines before, bytes of the file read."""
        line = at = 0
        for block, final, done in blocks(self.path, self.report):
            if not line:
                line, at = 1, self._begin(block)
            data = np.frombuffer(block, np.uint8)
            yield data, at, final, line, done
            line, at = line + int(line_feeds(data[at:])), 0

    def _parse(self, item: tuple[Bytes, int, bool, int, int]) -> tuple[list[ln.Rows], int]:
        """Parse a block, in any thread; there are as many parsers as were needed at once."""
        data, at, final, line, done = item
        try:
            reader = self.readers.pop()
        except IndexError:
            reader = ln.LineReader(self.header.first_task, self.header.first_thread)
        rows = reader.parse(data, at, final, line)
        self.readers.append(reader)
        return rows, done

    def _begin(self, block: bytes) -> int:
        end = block.find(b"\n")
        if end < 0 and block.startswith(b"#Paraver"):
            raise TraceFormatError("ends in its header", file=self.path, where="line 1")
        self.header = hd.read_header(block[: end + 1], self.path)
        self.lines = ln.LineReader(self.header.first_task, self.header.first_thread)
        self.readers: list[ln.LineReader] = []
        self.threads = len(self.lines.records)
        self.communicators = hd.communicators(block[end + 1 :])
        return end + 1

    def _check_lines(self) -> None:
        counts, firsts = self.lines.counts, self.lines.firsts
        bad = int(counts[list(ln.BAD)].sum())
        lines = int(counts[ln.LINES] - counts[ln.COMMENTS])
        if bad > REFUSED_SHARE * lines:
            line = min(int(firsts[kind]) for kind in ln.BAD if firsts[kind])
            reason, hint = f"{bad} of {lines} lines cannot be read", "the file is damaged or no Paraver trace"
            raise TraceFormatError(reason, file=self.path, where=f"first in line {line}", hint=hint)
        if not self.lines.records.any():
            raise TraceFormatError("holds no states, events or messages", file=self.path)
        for kind, name in _LINES.items():
            self.report.tell(FINDINGS, name, int(counts[kind]), f"line {int(firsts[kind])}")

    # -- second pass: thread by thread to the sink

    def deliver(self) -> None:
        self._read_labels()
        self.sink.describe(
            ticks_per_second=self.header.ticks_per_second,
            notes={"format": "Paraver", "communicators": len(self.communicators)}
            | ({ANNOUNCED: self.header.total} if self.early else {}),
        )
        sink, types = self.sink, self.labels.types  # not self: chunks must be freed with their last user
        self.metrics = Numbers(
            lambda kind: sink.metric(types.get(kind, f"event type {kind}"), tb.metric(kind))
        )
        locations = list(self._locations())
        for location in locations:
            self.sink.location(location)
        # A collective is checked on the communicator that its event names, or on the only large one.
        large = [number for number, size in self.communicators if size > 1]
        self.communicator = large[0] if len(large) == 1 else NO_COMMUNICATOR
        size = max(self.path.stat().st_size, 1)
        for chunk in ahead(self._chunks(locations)):
            index = chunk.index
            self._events(chunk)
            self._collectives(chunk)
            self._metrics(chunk)
            if chunk.last:
                self._messages(index)
            self.progress.step(size + size * index / len(locations), 2 * size, "arranging threads")
        self._tell(locations)
        self.progress.step(1, 1, "arranging threads")

    def _read_labels(self) -> None:
        labels = hd.companion(self.path, ".pcf")
        if labels.is_file():
            self.labels = hd.read_labels(labels)
            self.labels.states, wrong = tb.agreed(self.labels.states, self.labels.again)
            if wrong:
                self.report.add(
                    "labels contradict",
                    "notice",
                    f"In {labels.name} states have several labels, or that of another state: "
                    f"{', '.join(map(str, wrong[:8]))}. They are interpreted by their numbers.",
                    count=len(wrong),
                )
        else:
            self.report.add(
                "no labels",
                "info",
                f"There is no {labels.name}: states and MPI calls have the names that their numbers usually "
                "have, functions and counters have none.",
            )
        rows = hd.companion(self.path, ".row")
        self.objects = hd.read_names(rows) if rows.is_file() else {}

    def _locations(self) -> Iterator[Location]:
        objects, tasks = self.objects.get("THREAD", []), self.objects.get("TASK", [])
        index = task = 0
        for application, count in enumerate(self.header.tasks, start=1):
            for number in range(1, count + 1):
                for thread in range(self.header.threads[task]):
                    place = f"{application}.{number}.{thread + 1}"
                    first, last = self.lines.spans[index].tolist()
                    name = objects[index] if index < len(objects) else f"THREAD {place}"
                    stream = is_stream(name)
                    yield Location(
                        id=index + 1,
                        name=name,
                        kind="accelerator" if stream else "cpu",
                        base=Activity.IDLE if stream else Activity.COMPUTING,
                        rank=task,
                        thread=thread,
                        process=tasks[task] if task < len(tasks) else f"TASK {application}.{number}",
                        records=int(self.lines.records[index]),
                        first=first if first <= last else None,
                        last=last if first <= last else None,
                    )
                    index += 1
                task += 1

    def _chunks(self, locations: list[Location]) -> Iterator[_Chunk]:
        for index, location in enumerate(locations):
            if location.first is None or location.last is None:
                location.damage = "no data"
                continue
            with closing(by_time(self.acts, index, CHUNK)) as rows:
                yield from self._walk(index, location.first, location.last, rows.chunks)

    def _walk(
        self, index: int, first: int, last: int, chunks: Callable[[], Iterator[AnyArray]]
    ) -> Iterator[_Chunk]:
        """The chunks of the thread `index`, whose first and last times are `first` and `last`."""
        survey, pairing = iv.Survey(chunks()), iv.Pairing()
        self.tally += survey.tally
        self.stateless += not survey.stated
        carry = np.zeros(iv.CARRY, np.int64)
        carry[[iv.NOW, iv.LAST]] = first, last
        carry[[iv.NOW_STATE, iv.SEAT]] = -1
        tops = np.zeros(iv.CALLS, np.int64)
        open_ids, open_at = (np.empty((iv.CALLS, int(survey.tally[iv.DEPTH])), np.int64) for _ in range(2))
        scratch = np.empty((3, iv.CALLS), np.int64)
        for number, chunk in enumerate(chunks()):
            ends = survey.ends(pairing.rows, len(chunk))
            pairing.pair(chunk, ends)
            ids = self._ids(chunk)
            out = _room(5 * len(chunk) + 3)
            used = iv.nest(
                chunk, ends, ids, survey.after(number), self.kinds, survey.stated, carry,
                tops, open_ids, open_at, scratch, *out,
            )  # fmt: skip
            yield _Chunk(index, chunk, ends, out, used)
        out = _room(4)
        used = iv.finish(self.kinds, survey.stated, carry, *out)
        self.sums += carry
        self.of_each.append((index, carry, survey.tally))
        yield _Chunk(index, np.empty(0, ln.ACT), np.empty(0, np.int64), out, used, last=True)

    def _events(self, chunk: _Chunk) -> None:
        if not chunk.used:
            return
        time, kind, code = (column[: chunk.used] for column in chunk.out)
        most = int(code.max()) + 1
        if most > len(self.regions):
            self.regions = np.append(self.regions, np.full(most, -1, np.int64))
        occurs = np.zeros(len(self.regions), bool)
        occurs[code] = True
        for new in np.flatnonzero(occurs & (self.regions < 0)).tolist():
            self.regions[new] = self.sink.region(self._region(new >> 1, bool(new & 1)))
        region = self.regions[code].astype(np.uint32)
        self.sink.append("events", chunk.index, time=time, kind=kind, region=region)

    def _ids(self, rows: AnyArray) -> Ints:
        """Interned numbers of what the rows begin; new ones get their `kinds`."""
        keys = np.empty(len(rows), np.int64)
        iv.keys(rows, keys)
        before = self.names.used
        ids = self.names(keys)
        if self.names.used > MOST_NAMES:
            raise TraceFormatError(
                f"names more than {MOST_NAMES} functions and states", file=self.path, hint="it is damaged"
            )
        new = self.names.values[before:].tolist()
        if new:
            kinds = [self._kind_of(key & 7, key >> 3) for key in new]
            self.kinds = np.append(self.kinds, np.array(kinds, np.uint8))
        return ids

    def _state(self, number: int) -> tuple[str, Activity]:
        usual = tb.STATES[number][0] if number < len(tb.STATES) else f"state {number}"
        label = self.labels.states.get(number, usual)
        return label, tb.state_activity(number, label)

    def _kind_of(self, kind: int, value: int) -> int:
        if kind != iv.STATE:
            return iv.SHOWN
        activity = self._state(value)[1]
        if activity is Activity.COMPUTING:
            return iv.COMPUTES
        if value in tb.IN_MPI and activity in (Activity.IDLE, Activity.OVERHEAD):
            return iv.SPEAKS
        # The events of MPI calls do not show these.
        return iv.APART if activity is Activity.UNMEASURED or value == tb.IDLE else iv.SHOWN

    def _region(self, number: int, crossing: bool) -> Region:
        """The region of an interned number; `crossing`: of a call that spans several states."""
        if number in (iv.GAP, iv.OFF):
            name = "no state" if number == iv.GAP else "tracing off"
            return Region(name, "state", "paraver", Activity.UNMEASURED, synthetic=True)
        key = int(self.names.values[number])
        kind, value = key & 7, key >> 3
        if kind == iv.STATE:
            name, activity = self._state(value)
            return Region(name, "state", "paraver", activity, synthetic=True)
        if kind == iv.FUNCTION:
            name = self.labels.values.get(tb.FUNCTION, {}).get(value, f"function {value}")
            return Region(name, "function", "user", Activity.COMPUTING if self.stated else None)
        name = self._mpi_call(kind, value)
        if crossing:
            return Region(name, "", "mpi", Activity.COMPUTING)
        role = tb.OPERATIONS.get(name.removeprefix("MPI_"), tb.MPI_ROLES[kind])
        return Region(name, role, "mpi")

    def _mpi_call(self, kind: int, value: int) -> str:
        usual = f"MPI_{tb.MPI_CALLS[value]}" if value in tb.MPI_CALLS else f"MPI call {value}"
        return self.labels.values.get(tb.POINT_TO_POINT + kind, {}).get(value, usual)

    def _collectives(self, chunk: _Chunk) -> None:
        rows, ends, index = chunk.rows, chunk.ends, chunk.index
        at = np.flatnonzero(
            (rows["type"] == tb.COLLECTIVE) & (rows["value"] != 0) & (ends >= 0) & (ends != iv.NEVER)
        )
        if not len(at):
            return
        values, inverse = np.unique(rows["value"][at], return_inverse=True)
        calls = [self._mpi_call(tb.COLLECTIVE - tb.POINT_TO_POINT, v) for v in values.tolist()]
        operations = [call.removeprefix("MPI_") for call in calls]
        stored = np.array([operation in tb.OPERATIONS for operation in operations])[inverse]
        at, inverse = at[stored], inverse[stored]
        if not len(at):
            return
        numbers = np.array(
            [self.sink.text(name) if name in tb.OPERATIONS else 0 for name in operations], np.uint32
        )
        begin = np.ascontiguousarray(rows["time"][at])

        def beside(event: int, otherwise: int) -> Ints:
            """The value of the event of this type at the time of each begin, else `otherwise`."""
            of_event = rows[rows["type"] == event]
            if not len(of_event):
                return np.full(len(begin), otherwise, np.int64)
            near = np.minimum(np.searchsorted(of_event["time"], begin), len(of_event) - 1)
            return np.where(of_event["time"][near] == begin, of_event["value"][near], otherwise)

        communicator = beside(tb.COMMUNICATOR, self.communicator)
        self.sink.append(
            "collectives", index, begin=begin, end=np.ascontiguousarray(ends[at]), operation=numbers[inverse],
            communicator=(communicator & 0xFFFFFFFF).astype(np.uint32),
            root=np.where(beside(tb.ROOT, 0) == 1, index, -1).astype(np.int32),
            sent=beside(tb.SENT, 0), received=beside(tb.RECEIVED, 0),
        )  # fmt: skip

    def _metrics(self, chunk: _Chunk) -> None:
        size = len(chunk.rows)
        time, event, value = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.float64)
        used = iv.metrics(chunk.rows, time, event, value)
        if not used:
            return
        metric = self.metrics(event[:used]).astype(np.uint32)
        if self.metrics.used > MOST_NAMES:
            raise TraceFormatError(
                f"has more than {MOST_NAMES} types of events", file=self.path, hint="it is damaged"
            )
        self.sink.append("metrics", chunk.index, time=time[:used], metric=metric, value=value[:used])

    def _messages(self, index: int) -> None:
        with closing(by_time(self.messages, index, CHUNK)) as rows:
            for part in rows.chunks():
                same = {name: np.ascontiguousarray(part[name]) for name in ("time", "peer", "tag", "bytes")}
                none = np.zeros(len(part), np.uint32)  # the records name no communicator
                kind, request = part["kind"].astype(np.uint8), part["request"].astype(np.uint64)
                self.sink.append("messages", index, kind=kind, communicator=none, request=request, **same)
                self.progress.step(0, 0, "arranging threads")

    # -- the report

    def _tell(self, locations: list[Location]) -> None:
        report, unit = self.report, self.header.ticks_per_second
        tally, sums = self.tally, self.sums

        def odd(name: str, count: int, cases: int, ticks: Callable[[Ints, Ints], np.int64]) -> None:
            """Report a finding; a rare one is damage, which makes `ticks` of a thread uncertain."""
            rare = count <= max(1, RARE * cases)
            report.tell(FINDINGS, name, int(count), severity="loss" if rare else None)
            for index, carry, pairs in self.of_each if count and rare else ():
                locations[index].doubt_for(int(ticks(carry, pairs)))

        states, labels = self.names.values[: self.names.used], self.labels.states
        used = {key >> 3 for key in states.tolist() if key & 7 == iv.STATE}
        moved = any(tb.moved(number, label) is not None for number, label in labels.items())
        if used - labels.keys() and moved:
            report.tell(FINDINGS, "labels lost", len(used - labels.keys()))
            for index, carry, _ in self.of_each:
                locations[index].doubt_for(int(carry[iv.NOW]))
        calls, stated = tally[iv.CALLED], sums[iv.STATED]
        odd("ends without begin", tally[iv.STRAY], calls, lambda c, p: c[iv.NOW] * bool(p[iv.STRAY]))
        odd("calls begin twice", tally[iv.REPEATED], calls, lambda c, p: c[iv.NOW] * bool(p[iv.REPEATED]))
        odd("states overlap", sums[iv.OVERLAPS], stated, lambda c, _: c[iv.NOW] * bool(c[iv.OVERLAPS]))
        odd("states missing", sums[iv.GAPS], stated, lambda c, _: c[iv.MISSING] * bool(c[iv.GAPS]))
        if self.called:
            apart, compared = sums[iv.APART_FROM], sums[iv.COMPARED]
            odd("states contradict MPI calls", apart, compared, lambda c, _: c[iv.CONTRADICTED])
        with_data = sum(location.first is not None for location in locations)
        report.tell(FINDINGS, "threads without data", len(locations) - with_data)
        if self.stateless < with_data:
            report.tell(FINDINGS, "threads without states", self.stateless)
        running, outside = int(self.sums[iv.RUNNING]), int(self.sums[iv.OUTSIDE])
        if self.called and abs(running - outside) > AGREEMENT * max(running, outside):
            report.add(
                "states and MPI calls differ",
                "notice",
                f"By their states the threads compute {running / unit:.9g} s, by the events of their MPI "
                f"calls {outside / unit:.9g} s; the states decide.",
            )
        last = max(location.last for location in locations if location.last is not None)
        total = self.header.total
        if last != total:
            off = abs(last - total) > LATE * max(total, 1)
            report.add(
                "duration differs",
                "loss" if off else "notice",
                f"The header says that the trace lasts {total / unit:.9g} s, its last record is at "
                f"{last / unit:.9g} s; the records count.",
            )
            if off:
                for location in locations:
                    location.doubt_for(total - (location.last or 0) if last < total else last)

    @property
    def early(self) -> bool:
        """Whether the last record is before the end given in the header."""
        return int(self.lines.spans[:, 1].max()) < (1 - LATE) * self.header.total

    @property
    def called(self) -> bool:
        """Whether there are events of MPI calls."""
        return any(0 <= kind < iv.FUNCTION for kind in (self.names.values & 7).tolist())


def _read(path: Path, sink: Sink, progress: Progress) -> None:
    with (
        scratch_folder() as folder,
        closing(Spill(folder, ln.ACT)) as acts,
        closing(Spill(folder, ln.MESSAGE)) as messages,
    ):
        reading = _Reading(path, sink, progress, acts, messages)
        reading.parse()
        reading.deliver()


def _detect(path: Path, head: bytes) -> bool:
    def test(text: bytes, _whole: bool) -> bool:
        return text.lstrip(b"\xef\xbb\xbf\0").startswith(b"#Paraver")

    return detected(path, head, test, (".prv",))


def _files(path: Path) -> list[Path]:
    beside = (hd.companion(path, suffix) for suffix in (".pcf", ".row"))
    return [path, *(file for file in beside if file.is_file())]


IMPORTER = Importer(
    id="paraver",
    title="Paraver",
    version="8",
    detect=_detect,
    read=_read,
    files=_files,
    patterns=("*.prv", "*.prv.gz", "*.prv.bz2", "*.prv.xz"),
)

"""Traces in the Open Trace Format, version 1: of VampirTrace, TAU and what converts to it.

A master file ``NAME.otf`` lists the processes of each stream; beside it are the definitions ``NAME.0.def``
and for each stream ``NAME.STREAM.events``, as text or zlib (``.z``). `_otf1.lines` parses them by the
grammar; the format's own library stops at the first bad line and cannot read compressed files with a current
zlib. Streams are read in parallel; the rows of their processes wait on disk (`_otf1.stream`) until it is
their turn to go to the sink (`_otf1.rows`). This module controls the order and writes the report.

Source: the Open Trace Format 1.12 (TU Dresden).
"""

from __future__ import annotations

import re
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from threading import Event

from desktop.data.atomic import scratch_folder
from desktop.data.consistency import RARE, begins_round, nearly_round
from desktop.data.events import EVERYTHING, UNITS, Findings, Importer, Location, Severity, Sink
from desktop.data.importers._otf1 import lines as ln
from desktop.data.importers._otf1.definitions import STREAM, Otf1Definitions, locations, read_master
from desktop.data.importers._otf1.rows import FINDINGS as OF_ROWS
from desktop.data.importers._otf1.rows import Otf1Rows
from desktop.data.importers._otf1.stream import Stream
from desktop.data.reading import alone
from desktop.data.reading import head as beginning
from desktop.errors import TraceFormatError
from desktop.progress import Progress

#: Streams that are read in parallel.
READERS = 2
#: Longest gap between two times, in days; a longer one is damage.
LONGEST_GAP = 400
_AGAIN = "copy the trace again, with all its files"

#: Possible findings, their severity, and what was done.
FINDINGS: Findings = OF_ROWS | {
    "master file": ("loss", "lines of the master file are damaged; they were left out"),
    "repeated processes": ("loss", "processes are listed in several streams; they were read in the first"),
    "other files": ("loss", "streams are kept in files of another kind, which are not read"),
    "other event files": ("loss", "event files are of no stream of the master file; they were not read"),
    "markers": ("notice", "files with markers are not read"),
    "packed twice": ("notice", "files exist packed and unpacked; the unpacked ones were read"),
    "definitions": (
        "loss",
        "the global definitions are missing; functions are called by their numbers, processes by their ranks",
    ),
    "damaged definitions": (
        "loss",
        "files of definitions cannot be read to their end; what came before the damage was kept",
    ),
    "bad definitions": ("loss", "lines of the definitions are damaged; they were left out"),
    "repeated definitions": ("loss", "definitions have the number of an earlier one; the last was taken"),
    "timer resolution": (
        "loss",
        "how many ticks make a second is not defined; a tick is taken as one unit of time, as set on import "
        "(--time-unit, or the unit of time in the import options), which is a second unless one is chosen",
    ),
    "odd timer resolution": (
        "loss",
        "how many ticks make a second is a power of ten but for one digit; the definitions are damaged, and "
        "so is every time in seconds",
    ),
    "timer resolutions": ("loss", "the timer resolution is defined differently by streams; the first counts"),
    "parents": ("notice", "processes are threads of none that is defined; they count as processes"),
    "no stream": ("notice", "processes are defined that no stream has; they have no data"),
    "no events": ("notice", "processes have no events at all"),
    "event file": ("loss", "event files are missing; their processes have no data"),
    "damaged events": (
        "loss",
        "event files cannot be read or unpacked to their end; what came before the damage was kept",
    ),
    "writer gave up": (
        "loss",
        "the writer of the trace met times out of order and ended streams there; they are incomplete",
    ),
    "cut events": (
        "loss",
        "event files do not end as complete ones do, with the last time and its process once more; the lines "
        "that are whole were kept",
    ),
    "bad lines": (
        "loss",
        "lines are damaged; they were left out (records after a damaged time have the time before it)",
    ),
    "missing lines": (
        "loss",
        "a time has no process, or a process or time is repeated, which writers of the format never do; "
        "lines are missing or changed there",
    ),
    "unknown records": ("loss", "records are of kinds that are not known; they were left out"),
    "other records": ("notice", "records of files, remote memory and snapshots are not stored"),
    "other processes": (
        "loss",
        "records are of processes that the master file does not list for their stream; they were left out",
    ),
    "nobody's records": (
        "loss",
        "records have no time or no process, as the line with it is missing; they were left out",
    ),
    "open regions": (
        "loss",
        "processes end with more or fewer enters than leaves, and others do not; records are missing or "
        "changed there",
    ),
    "times": ("notice", "times go back; the records were put in order of time"),  # a loss where that is rare
    "collectives": ("notice", "collective operations have no begin or no end; they were left out"),
    "collectives overlap": (
        "loss",
        "collective operations end after others of their process that began later; records are changed there",
    ),
    "comments": ("notice", "comments are so many that only the first ones are stored"),
}


class Otf1Files:
    """The files of one trace: `parts` by kind and stream; `twice`: how many exist packed and unpacked."""

    def __init__(self, master: Path) -> None:
        self.master = master
        self.stem = master.name[: -len(".otf")] if master.name.lower().endswith(".otf") else master.name
        self.parts: dict[tuple[str, int], Path] = {}
        self.twice = 0
        part = re.compile(re.escape(self.stem) + r"\.([0-9a-f]{1,8})\.(def|events|snaps|stats|marker)(\.z)?")
        for file in sorted(master.parent.iterdir()):
            match = part.fullmatch(file.name)
            if match and file.is_file():
                key = (match[2], int(match[1], 16))
                self.twice += key in self.parts
                self.parts.setdefault(key, file)

    def of(self, kind: str) -> dict[int, Path]:
        return {stream: file for (part, stream), file in self.parts.items() if part == kind}


class ReadTask:
    """A stream to read: its wanted processes, the group of each process, and its reading once started.

    tells: whether this import reports the stream's findings, if several imports read it.
    """

    def __init__(self, number: int, processes: list[int], wants: dict[int, bool]) -> None:
        self.number = number
        self.processes = [process for process in processes if wants[process]]
        self.groups = dict.fromkeys(processes, ln.UNWANTED)
        self.groups |= {process: group for group, process in enumerate(self.processes)}
        self.tells = wants[processes[0]]
        self.stream: Stream | None = None
        self.reading: Future[None] | None = None

    def close(self) -> None:
        if self.stream is not None:
            self.stream.close()


class Trace:
    """One trace being imported into a sink. unit: of its times, if the trace does not define one."""

    def __init__(self, master: Path, sink: Sink, progress: Progress, unit: str) -> None:
        self.sink, self.progress, self.unit = sink, progress, unit
        self.files = Otf1Files(master)
        self.events = self.files.of("events")
        self.streams = self.listed()
        self.definitions, self.local = self.defined()
        self.locations: dict[int, Location] = {}
        self.index: dict[int, int] = {}
        #: For processes that have ended: whether every enter had its leave.
        self.balanced: dict[int, bool] = {}

    def tell(self, finding: str, count: int = 1, where: str = "", severity: Severity | None = None) -> None:
        self.sink.report.tell(FINDINGS, finding, count, where, severity)

    # ---- the trace's own description

    def listed(self) -> dict[int, list[int]]:
        """The processes of each stream."""
        file = self.files.master
        master = read_master(file)
        self.tell("master file", master.damaged, file.name)
        self.tell("repeated processes", master.repeated, file.name)
        self.tell("other files", master.elsewhere, file.name)
        streams = {stream: processes for stream, processes in master.streams.items() if processes}
        if not streams:
            reason = "names no stream (in a line such as 1:1,2), so it is no master file of an OTF trace"
            raise TraceFormatError(reason, file=file, hint="copy it again")
        if not self.events.keys() & streams.keys():
            where = f"such as {self.files.stem}.{next(iter(streams)):x}.events"
            raise TraceFormatError("has no event files beside it", file=file, where=where, hint=_AGAIN)
        others = [other.name for stream, other in self.events.items() if stream not in streams]
        self.tell("other event files", len(others), "".join(others[:1]))
        markers = [other.name for other in self.files.of("marker").values() if other.stat().st_size]
        self.tell("markers", len(markers), "".join(markers[:1]))
        self.tell("packed twice", self.files.twice)
        return streams

    def defined(self) -> tuple[Otf1Definitions, dict[int, Otf1Definitions]]:
        """The global definitions, and those of single streams."""
        by_stream: dict[int, Otf1Definitions] = {}
        for stream, file in sorted(self.files.of("def").items()):
            self.progress.step(0, 0, "reading definitions")
            definitions = by_stream[stream] = Otf1Definitions(file, by_stream.get(0))
            self.tell("damaged definitions", bool(definitions.cut), f"{file.name}: {definitions.cut}")
            self.tell("bad definitions", definitions.damaged, file.name)
            self.tell("repeated definitions", definitions.repeated, file.name)
        self.tell("definitions", 0 not in by_stream, f"{self.files.stem}.0.def")
        return by_stream.pop(0, None) or Otf1Definitions(), by_stream

    def describe(self) -> None:
        every = [self.definitions, *self.local.values()]
        resolutions = [each.resolution for each in every if each.resolution]
        # A unit of time may only be set for a trace that does not define its own.
        overridden = self.unit != IMPORTER.unit
        self.tell("timer resolution", not resolutions, severity="notice" if overridden else None)
        self.tell("timer resolutions", len(set(resolutions)) > 1)
        self.tell(
            "odd timer resolution",
            any(nearly_round(number) or begins_round(number) for number in resolutions),
        )
        if resolutions and self.unit != IMPORTER.unit:
            raise TraceFormatError(
                "says its own unit of time", file=self.files.master, hint="leave the unit of time out"
            )
        self.span = LONGEST_GAP * 86400 * resolutions[0] if resolutions else ln.LIMIT
        places, orphans = locations(
            every, (process for listed in self.streams.values() for process in listed)
        )
        self.tell("parents", orphans)
        names = ("timer resolution", "timer resolutions", "odd timer resolution")
        findings = (self.sink.report.findings.get(name) for name in names)
        timeless = any(finding is not None and finding.severity == "loss" for finding in findings)
        for location in places:
            location.doubt = EVERYTHING if timeless else 0
            self.locations[location.id] = location
            self.index[location.id] = self.sink.location(location)
        # The format has no clock offsets, so clocks that contradict are repaired by constant shifts.
        self.sink.describe(
            ticks_per_second=float(resolutions[0] if resolutions else UNITS[self.unit]),
            repair=True,
            notes=self.definitions.notes
            | ({} if resolutions else {"unit of time": f"ticks, taken as {self.unit}"}),
        )
        self.rows = Otf1Rows(self.sink, self.definitions, self.index)

    # ---- streams

    def read(self) -> None:
        self.describe()
        wants = {process: self.sink.wants(index) for process, index in self.index.items()}
        listed = {process for processes in self.streams.values() for process in processes}
        for process, location in self.locations.items():
            if wants[process] and process not in listed:
                location.damage = "no data"
                self.tell("no stream", where=location.name)
        tasks = deque(
            task
            for task in (ReadTask(stream, listed, wants) for stream, listed in self.streams.items())
            if task.processes
        )
        files = {task.number: self.events[task.number] for task in tasks if task.number in self.events}
        self.done, self.total = 0, sum(file.stat().st_size for file in files.values())
        stop = Event()
        running: deque[ReadTask] = deque()
        with ExitStack() as stack:
            folder = stack.enter_context(scratch_folder())
            stack.callback(lambda: deque(map(ReadTask.close, running)))
            pool = stack.enter_context(ThreadPoolExecutor(READERS, "otf stream"))
            stack.callback(stop.set)
            while tasks or running:
                # One more stream than readers is queued, so that readers never wait.
                while tasks and len(running) <= READERS:
                    running.append(task := tasks.popleft())
                    if task.number in files:
                        task.stream = Stream(files[task.number], task.groups, self.span, folder)
                        task.reading = pool.submit(task.stream.read, stop)
                self.finish(running[0])
                running.popleft().close()
        # A writer closes open regions when a process ends, or never does; a few uneven processes are damage.
        uneven = [process for process, balanced in self.balanced.items() if not balanced]
        if 2 * len(uneven) < len(self.balanced):
            for location in (self.locations[process] for process in uneven):
                self.tell("open regions", where=location.name)
                location.doubt_for()
        if all(wants.values()) and not any(location.records for location in self.locations.values()):
            where = f"in {len(self.streams)} streams"
            raise TraceFormatError("has no readable events", file=self.files.master, where=where, hint=_AGAIN)

    def finish(self, task: ReadTask) -> None:
        """Wait for a stream, hand over its rows, and report what was wrong with it."""
        stream = task.stream
        if stream is None or task.reading is None:
            for process in task.processes:
                self.locations[process].damage = "no data"
            self.tell("event file", task.tells, f"{self.files.stem}.{task.number:x}.events")
            return

        def step() -> None:
            self.progress.step(self.done + stream.text.read, self.total, f"reading {stream.text.path.name}")

        step()
        while not wait([task.reading], 0.05).done:
            step()
        task.reading.result()
        rows = self.rows
        if task.number in self.local:
            rows = Otf1Rows(self.sink, self.local[task.number], self.index)
        for process in task.processes:
            location, about = self.locations[process], stream.facts[task.groups[process]]
            location.records = int(about[ln.RECORDS])
            if location.records:
                location.first, location.last = int(about[ln.FIRST]), int(about[ln.LAST])
            for _ in rows.deliver(stream, task.groups[process], self.index[process]):
                step()
        self.judge(task, stream)
        self.done += stream.text.read

    def judge(self, task: ReadTask, stream: Stream) -> None:
        """Report the findings about a stream."""
        text, state = stream.text, stream.state
        name = text.path.name

        def line(number: int) -> str:
            return f"{name}, line {state[number]}"

        early = bool(text.wrong) or stream.aborted or text.unended or not stream.complete
        for process in task.processes:
            location, about = self.locations[process], stream.facts[task.groups[process]]
            if about[ln.ENDED]:
                self.balanced[process] = not about[ln.DEPTH]
            if not location.records:
                location.damage = "no data"
                self.tell("no events", where=f"{location.name} in {name}")
            elif early and not about[ln.ENDED]:
                location.damage = "ends early"
        self.tell("other records", int(state[ln.UNSTORED]), name)
        spill = stream.spills[ln.COLLECTIVES]
        whole = 0 if spill is None else sum(spill.size(group) for group in range(len(task.processes)))
        parted = int(state[ln.ORPHANS] + state[ln.OPEN])
        rare = parted <= max(1, RARE * whole)
        self.tell("collectives", parted, name, "loss" if rare else None)
        overtaken = int(stream.facts[[task.groups[one] for one in task.processes], ln.OVERTAKEN].sum())
        self.tell("collectives overlap", overtaken * (overtaken <= max(1, RARE * whole)), name)
        self.tell("comments", stream.comments_lost, name)
        if not task.tells:
            return
        if text.wrong:
            self.tell("damaged events", where=f"{name}: {text.wrong}")
        elif stream.aborted:
            self.tell("writer gave up", where=name)
        elif early:
            self.tell("cut events", where=line(ln.LINE))
        self.tell("bad lines", int(state[ln.BAD]) + text.overlong, line(ln.FIRST_BAD))
        self.tell("unknown records", int(state[ln.UNKNOWN]), name)
        self.tell("other processes", int(state[ln.FOREIGN]), name)
        self.tell("nobody's records", int(state[ln.LOST]), name)
        # A writer that does not sort, or writes the place of each line, has many of them.
        most = max(1, RARE * int(stream.facts[:, ln.RECORDS].sum()))
        gaps, back = int(state[ln.GAPS]), int(state[ln.BACK])
        if gaps <= most:
            self.tell("missing lines", gaps, line(ln.FIRST_GAP))
        odd = back <= most
        self.tell("times", back, line(ln.FIRST_BACK), "loss" if odd else None)
        if odd and back:  # what they did at which time is uncertain
            for process in task.processes:
                self.locations[process].doubt_for()


def detect(path: Path, head: bytes) -> bool:
    """Whether it has lines such as ``1:1,2`` and other files of the trace beside it, unlike a font."""
    try:
        master = alone(path, ".otf")
        if master is None:
            return False
        if master != path:
            head = beginning(master, 1 << 16)
        named = master.suffix.lower() == ".otf"
        return (named or any(map(STREAM.match, head.splitlines()))) and bool(Otf1Files(master).parts)
    except OSError:
        return False


def read(path: Path, sink: Sink, progress: Progress, unit: str = "s") -> None:
    master = alone(path, ".otf")
    if master is None:
        raise TraceFormatError(
            "holds not exactly one OTF master file", file=path, hint="choose one *.otf file"
        )
    Trace(master, sink, progress, unit).read()


def files(path: Path) -> list[Path]:
    master = alone(path, ".otf")
    return [] if master is None else [master, *Otf1Files(master).parts.values()]


IMPORTER = Importer(
    id="otf1",
    title="OTF trace (version 1)",
    version="9",
    detect=detect,
    read=read,
    files=files,
    patterns=("*.otf",),
    divisible=True,
    takes_unit=True,
)

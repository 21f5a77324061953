"""OTF2 archives: the anchor file, definitions, and a file of events for each location.

An *engine* (`_otf2.engine`) reads the files into plain columns in a buffer, which is emptied every `RECORDS`
records. Locations are read one after the other, so memory is one buffer and one chunk of a file, however long
the trace is. Our engine (`_otf2.files`, `_otf2.decoder`) decodes the bytes itself, on every system; tests
replace it by libotf2. `_otf2.definitions` interprets the numbers, `_otf2.rows` hands the rows to the sink.
This module controls the order and writes the report.

Layout and meaning of the records: OTF2 3.2 reference (score-p.org). Tools that write archives (Score-P,
EZTrace, APEX) differ in what they leave out and get wrong; comments name them where it matters.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np

from desktop.data.consistency import nearly_round
from desktop.data.events import EVERYTHING, Findings, Importer, Sink
from desktop.data.importers._otf2.definitions import LocationPlace
from desktop.data.importers._otf2.engine import Anchor, Damage, Engine, Local
from desktop.data.importers._otf2.files import Files
from desktop.data.importers._otf2.records import BEGIN, FIRST, LAST, ORPHANS, TIME_LIMIT, UNSTORED, Block
from desktop.data.importers._otf2.records import RECORDS as COUNTED
from desktop.data.importers._otf2.rows import Rows
from desktop.data.reading import alone
from desktop.data.reading import head as beginning
from desktop.errors import TraceFormatError, explained
from desktop.progress import Progress

#: Records read at a time: the interval of progress and cancel. Threads work on such blocks in parallel, and
#: wait for each other at every end of a kernel.
RECORDS = 1 << 17

FINDINGS: Findings = {
    "clock": ("loss", "the clock's resolution is not defined; a tick is taken as 1 ns"),
    "repeated definitions": ("loss", "definitions have the number of an earlier one; the last one was taken"),
    "names cut off": (
        "loss",
        "names in the definitions end before their records do; what they name may be taken for something "
        "else",
    ),
    "definitions": (
        "loss",
        "the number of global definitions is not that of the anchor file; names may be missing",
    ),
    "marks": ("loss", "the marks cannot all be read"),
    "local definitions": (
        "loss",
        "local definitions are missing or damaged, without which numbers and times of the events mean "
        "something else; the location was left out",
    ),
    "wrong clock offsets": (
        "loss",
        "locations have no clock offsets where others have them, or impossible ones; their times are wrong",
    ),
    "clock offsets": ("notice", "several clock offsets hold for the same time; times around it may be wrong"),
    "times outside of the run": (
        "loss",
        "times of a location are outside of the run as given by the global definitions",
    ),
    "event file": (
        "loss",
        "an event file is missing, empty or has no valid header; its location has no data",
    ),
    "damaged events": ("loss", "an event file is cut or damaged; what came before the damage was kept"),
    "no events": ("notice", "a location has no events at all"),
    "record counts": (
        "loss",
        "a part of an event file has another number of records than it announces: bytes in it have changed, "
        "or records are missing",
    ),
    "missing events": ("loss", "fewer events were read than the definitions announce"),
    "event counts": (
        "info",
        "the definitions announce fewer events than there are; the announced number was ignored",
    ),
    "collectives": ("notice", "collective operations end without a begin; they were left out"),
    "other records": (
        "notice",
        "non-blocking collectives, matched probes and records of a later version are not stored",
    ),
}


class Archive:
    """One archive being imported into a sink."""

    def __init__(self, anchor: Anchor, engine: Engine, sink: Sink, progress: Progress) -> None:
        self.anchor, self.engine, self.sink, self.progress = anchor, engine, sink, progress
        self.places: list[LocationPlace] = []

    def tell(self, finding: str, count: int = 1, where: str = "") -> None:
        self.sink.report.tell(FINDINGS, finding, count, where)

    def refuse(self, what: str, where: str) -> TraceFormatError:
        return TraceFormatError(what, file=self.anchor.file, where=where, hint="copy the archive again")

    def read(self) -> None:
        self.define()
        self.read_marks()
        places = [place for place in self.places if self.sink.wants(place.index)]
        self.read_events(places)
        # An import of some locations does not know whether the others have events.
        if len(places) == len(self.places) and all(place.location.first is None for place in self.places):
            raise self.refuse("the OTF2 archive has no readable events", f"in {len(self.places)} locations")

    # ---- all locations

    def define(self) -> None:
        anchor, sink, report, tell = self.anchor, self.sink, self.sink.report, self.tell
        file = anchor.definitions().name
        try:
            self.defined = self.engine.definitions()
        except Damage as damage:
            raise self.refuse(
                f"the global definitions ({file}) are missing or damaged, so the locations are unknown",
                str(damage),
            ) from None
        self.places = self.defined.places()
        if not self.places:
            raise self.refuse(f"the global definitions ({file}) name no location", "in the whole file")
        resolution, begin, length = self.defined.clock
        if not resolution:
            tell("clock")
            resolution = 1_000_000_000
        elif nearly_round(resolution):
            report.add(
                "clock",
                "loss",
                f"the clock's resolution, {resolution} ticks a second, is a power of ten but for digits; "
                "the definitions are damaged, and so is every time in seconds",
                where=file,
            )
        # When the run was, with a margin; None if the tracer does not record it (EZTrace: from 0 to some time
        # before the end).
        room = length // 100
        self.run = (begin - room, begin + length + room) if begin and length else None
        # No trace lasts longer than 400 days or a thousand times its own stated length.
        self.span = min(max(400 * 86400 * resolution, 1000 * length), 1 << 60)
        first: dict[int, int] = {}
        for place in self.places:
            place.location.doubt = EVERYTHING if "clock" in report.findings else 0
            place.index = sink.location(place.location)
            place.first = first.setdefault(place.group, place.index)
        self.dense = {place.location.id: place.index for place in self.places}
        self.rows = Rows(sink, anchor.folder, self.defined, self.dense)
        tell("repeated definitions", self.defined.repeated)
        tell("names cut off", self.defined.torn)
        tell("definitions", abs(anchor.records - self.defined.records), file)
        if anchor.locations != len(self.places):
            report.add(
                "locations",
                "loss",
                f"the anchor file announces {anchor.locations} locations, {len(self.places)} are defined",
            )
        # Whether any location has complete local definitions, and whether any has clock offsets.
        self.whole = self.synchronised = False
        for place in self.places:
            local = self.engine.local(place.location.id)
            self.whole |= not local.damage
            self.synchronised |= local.synchronised
            if self.whole and self.synchronised:
                break
        sink.describe(
            ticks_per_second=float(resolution),
            repair=not self.synchronised,
            notes={
                "otf2_version": ".".join(map(str, anchor.version)),
                "creator": anchor.creator,
                "machine": anchor.machine,
                "reordered": self.defined.reordered(),
                "communicator_names": self.defined.communicators(),
            },
        )

    def read_marks(self) -> None:
        read = self.engine.marks()
        self.tell("marks", bool(read.damage), f"{self.anchor.folder.name}.marker, {read.damage}")
        self.marks: dict[int, list[tuple[int, str]]] = {}
        for mark in read.marks:
            if 0 <= mark.time < TIME_LIMIT:
                index = self.dense.get(mark.location, 0) if mark.location is not None else 0
                self.marks.setdefault(index, []).append((mark.time, mark.text))

    # ---- one location after the other

    def read_events(self, places: list[LocationPlace]) -> None:
        sizes = [file_size(self.anchor.events(place.location.id)) for place in places]
        total, done = sum(sizes), 0
        for place, size in zip(places, sizes, strict=True):
            step = partial(self.step, place, done, total)
            step(0)
            local = self.engine.local(place.location.id)
            if self.judge_local(place, local):
                self.read_location(place, local, step)
            marks = sorted(self.marks.get(place.index, ()))
            if marks:
                self.sink.append(
                    "marks",
                    place.index,
                    time=np.array([time for time, _ in marks], "i8"),
                    text=np.array([self.sink.text(text) for _, text in marks], "u4"),
                )
            done += size

    def step(self, place: LocationPlace, before: int, total: int, at: int) -> None:
        self.progress.step(before + at, total, f"reading {place.location.name}")

    def read_location(self, place: LocationPlace, local: Local, step: Callable[[int], None]) -> None:
        location = place.location
        with closing(self.engine.events(location.id, local, self.span)) as blocks:
            for block in blocks:
                self.rows.deliver(place, block.rows)
                step(block.at)
        location.records = int(block.state[COUNTED])
        if block.state[FIRST] >= 0:
            location.first, location.last = int(block.state[FIRST]), int(block.state[LAST])
        self.judge(place, block)

    def judge_local(self, place: LocationPlace, local: Local) -> bool:
        """Report what is wrong with the local definitions; whether the location can be read anyway."""
        file = f"{self.anchor.folder.name}/{place.location.id}.def"
        if local.damage:
            where = f"{file}, {local.damage}"
            if self.whole:
                place.location.damage = "no local definitions"
                self.tell("local definitions", where=where)
                return False
            self.sink.report.add(
                "local definitions",
                "notice",
                "no location has whole local definitions; numbers and times are taken as they are recorded",
                where=where,
            )
        bent = local.bent
        if place.location.kind == "cpu" and (bent or local.synchronised != self.synchronised):
            place.wrong_clock = True
            self.tell("wrong clock offsets", where=file)
        self.tell("clock offsets", local.repeated, file)
        return True

    def judge(self, place: LocationPlace, last: Block) -> None:
        """Report the findings about a location."""
        location, tell = place.location, self.tell
        where = f"{self.anchor.folder.name}/{location.id}.evt"
        first, end = location.span(repaired=False) or (0, 0)
        if self.run and first < end and not self.run[0] <= first <= end <= self.run[1]:
            tell("times outside of the run", where=where)
            location.doubt_for()
        if place.wrong_clock:
            location.doubt_for()
        if last.fault and not last.at and location.first is None:
            location.damage = "no data"
            tell("event file", where=f"{where}: {last.fault}")
        elif last.fault:
            location.damage = "no data" if location.first is None else "ends early"
            tell("damaged events", where=f"{where}, byte {last.at}: {last.fault}")
        elif location.first is None and location.kind == "cpu":
            location.damage = "no data"
            tell("no events", where=where)
        if last.miscounted:
            location.doubt_for()
            tell("record counts", len(last.miscounted), f"{where}, from byte {last.miscounted[0]} on")
        if place.declared > location.records:
            location.doubt_for(0 if last.fault else None)
            tell("missing events", place.declared - location.records, where)
        tell("event counts", place.declared < location.records, where)
        tell("collectives", int(last.state[ORPHANS]), where)
        tell("other records", int(last.state[UNSTORED]), where)
        if last.state[BEGIN] >= 0:
            self.sink.report.add(
                "collectives", "notice", "a collective operation has no end; it was left out", where=where
            )


def file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def detect(path: Path, head: bytes) -> bool:
    try:
        anchor = alone(path, ".otf2")
        if anchor is None:
            return False
        if anchor != path:
            head = beginning(anchor, 16)
    except OSError:
        return False
    return head[:1] == b"\x03" and head[1:2] in (b"\x42", b"\x23") and head[2:7] == b"OTF2\0"


def read(path: Path, sink: Sink, progress: Progress, engine: Callable[[Anchor, int], Engine] = Files) -> None:
    file = alone(path, ".otf2")
    if file is None:
        raise TraceFormatError(
            "holds not exactly one OTF2 anchor file", file=path, hint="choose one *.otf2 file"
        )
    with explained(TraceFormatError, file=file):
        anchor = Anchor.read(file)
    with closing(engine(anchor, RECORDS)) as reader:
        Archive(anchor, reader, sink, progress).read()


def files(path: Path) -> list[Path]:
    anchor = alone(path, ".otf2")
    if anchor is None:
        return []
    folder = anchor.with_suffix("")
    beside = [folder.with_suffix(end) for end in (".def", ".marker", ".thumb")]
    inside = sorted(file for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else []
    return [anchor, *(file for file in beside if file.is_file()), *inside]


IMPORTER = Importer(
    id="otf2",
    title="OTF2 archive",
    version="12",
    detect=detect,
    read=read,
    files=files,
    patterns=("*.otf2",),
    divisible=True,
)

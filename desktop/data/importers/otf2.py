"""OTF2 archives, read through the C library that the ``otf2`` wheel ships.

The library (`_otf2.library`) calls natively compiled functions for every record (`_otf2.records`); they write
plain columns into one buffer, which Python empties every `RECORDS` records. Locations are read one after the
other, so memory stays at one buffer and one event chunk of the library, however long the trace is. Ahead of
the library, `_otf2.walker` finds where a file stops being sound; `_otf2.definitions` says what the numbers
mean, and `_otf2.rows` hands the rows to the sink. Here is the order of it all, and the report.

Layout and meaning of the records: OTF2 3.2 reference (score-p.org). Tools that write archives (Score-P,
EZTrace, APEX) differ in what they leave out and in what they get wrong; comments name them where it shows.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from desktop.data.events import Importer, Sink
from desktop.data.importers._otf2.definitions import DEFINITIONS, Definitions, Place
from desktop.data.importers._otf2.library import GO_ON, INTERRUPTED, Handle, i64, library, text, u8, u32, u64
from desktop.data.importers._otf2.records import (
    BEGIN,
    FAULT,
    FIRST,
    FLUSHED,
    FLUSHING,
    LAST,
    ORPHANS,
    UNSTORED,
    Buffer,
    compiled,
)
from desktop.data.importers._otf2.rows import Rows
from desktop.data.importers._otf2.walker import FAULTS, Walker
from desktop.errors import TraceFormatError
from desktop.progress import Progress

RECORDS = 1 << 16  # records read at a time: the step of progress and cancel


class Archive:
    """One archive on its way into a sink."""

    def __init__(self, anchor: Path, sink: Sink, progress: Progress) -> None:
        self.anchor, self.sink, self.progress = anchor, sink, progress
        self.folder = anchor.with_suffix("")
        self.library = library()
        self.library.silence()
        self.definitions = Definitions()
        self.places: list[Place] = []

    # ---- opening

    def refuse(self, what: str, where: str = "", hint: str = "") -> TraceFormatError:
        return TraceFormatError(what, file=self.anchor, where=where, hint=hint)

    def check_anchor(self) -> dict[str, Any]:
        """What the anchor file says of the whole archive."""
        head = self.anchor.read_bytes()[:64]
        try:
            order = "<" if head[1] == 0x42 else ">"
            _, _, *version, chunk, definition_chunk, substrate, compression, self.declared_locations, _ = (
                struct.unpack_from(f"{order}BB3BQQBBQQ", head, 7)
            )
        except (IndexError, struct.error):
            raise self.refuse(
                "the anchor file of the OTF2 archive is cut", f"at byte {len(head)}", "copy it again"
            ) from None
        if substrate != 1 or compression != 1:
            raise self.refuse(
                "is an OTF2 archive in a SION container or compressed, which is not supported",
                "in the anchor file",
                "write it with the POSIX substrate and without compression",
            )
        if not 1 << 8 <= min(chunk, definition_chunk) <= max(chunk, definition_chunk) <= 1 << 24:
            raise self.refuse(
                "the anchor file of the OTF2 archive is damaged",
                f"its chunks have {chunk} and {definition_chunk} bytes",
                "copy it again",
            )
        self.chunk, self.big_endian = chunk, order == ">"
        return {"otf2_version": ".".join(map(str, version))}

    def open(self, stack: ExitStack) -> int:
        lib = self.library
        reader = lib.Reader_Open(bytes(self.anchor))
        if not reader:
            raise self.refuse(
                "the anchor file of the OTF2 archive cannot be read",
                lib.why(),
                "copy it again",
            )
        stack.callback(lib.Reader_Close, reader)
        lib.Reader_SetSerialCollectiveCallbacks(reader)
        return int(reader)

    def read_definitions(self, reader: int, stack: ExitStack) -> None:
        lib, read = self.library, u64()
        callbacks = lib.GlobalDefReaderCallbacks_New()
        stack.callback(lib.GlobalDefReaderCallbacks_Delete, callbacks)
        keep = []
        for record, fields in DEFINITIONS.items():
            function = ctypes.CFUNCTYPE(ctypes.c_int, Handle, *fields)(self.definitions.handler(record))
            keep.append(function)
            lib.set_callback("GlobalDefReader", record, callbacks, ctypes.cast(function, Handle))
        definitions = lib.Reader_GetGlobalDefReader(reader)
        code = 0
        if definitions:
            lib.Reader_RegisterGlobalDefCallbacks(reader, definitions, callbacks, None)
            code = lib.Reader_ReadAllGlobalDefinitions(reader, definitions, ctypes.byref(read))
        keep.clear()
        if not definitions or code or not self.definitions.by["Location"]:
            file = self.folder.with_suffix(".def").name
            raise self.refuse(
                f"the global definitions ({file}) are missing or damaged, so the locations are unknown",
                f"after {read.value} definitions: {lib.why(code)}",
                "copy the archive again",
            )

    def note(self, function: Callable[..., int], reader: int) -> str:
        value = Handle()
        if function(reader, ctypes.byref(value)) or not value.value:
            return ""
        return (ctypes.string_at(value.value) or b"").decode("utf-8", "replace")

    # ---- what the definitions mean

    def define(self) -> None:
        self.places = self.definitions.places()
        for place in self.places:
            place.index = self.sink.location(place.location)
        self.dense = {place.location.id: place.index for place in self.places}
        self.rows = Rows(self.sink, self.folder, self.definitions, self.dense)
        report, defined = self.sink.report, self.definitions
        if defined.repeated:
            report.add(
                "repeated definitions",
                "notice",
                "definitions have the number of an earlier one; the last one was taken",
                count=defined.repeated,
            )
        if self.declared_locations != len(self.places):
            report.add(
                "locations",
                "notice",
                f"the anchor file announces {self.declared_locations} locations, "
                f"{len(self.places)} are defined",
            )

    # ---- local definitions

    def read_local_definitions(self, reader: int, stack: ExitStack) -> None:
        """Load number translations and clock offsets; `self.whole`: where that succeeded."""
        lib, read = self.library, u64()
        offsets: list[int] = []

        def clock_offset(_data: Any, time: int, _offset: int, _deviation: float) -> int:
            offsets.append(time)
            return GO_ON

        function = ctypes.CFUNCTYPE(ctypes.c_int, Handle, u64, i64, ctypes.c_double)(clock_offset)
        callbacks = lib.DefReaderCallbacks_New()
        stack.callback(lib.DefReaderCallbacks_Delete, callbacks)
        lib.set_callback("DefReader", "ClockOffset", callbacks, ctypes.cast(function, Handle))
        self.whole: set[int] = set()
        self.synchronised = False
        report = self.sink.report
        if lib.Reader_OpenDefFiles(reader):
            return
        for place in self.places:
            identity = place.location.id
            where = f"{self.folder.name}/{identity}.def"
            definitions = lib.Reader_GetDefReader(reader, identity)
            if not definitions:
                continue
            offsets.clear()
            lib.Reader_RegisterDefCallbacks(reader, definitions, callbacks, None)
            code = lib.Reader_ReadAllLocalDefinitions(reader, definitions, ctypes.byref(read))
            lib.Reader_CloseDefReader(reader, definitions)
            if not code:
                self.whole.add(identity)
            # One offset alone has no effect in the library.
            self.synchronised |= len(offsets) > 1
            if len(set(offsets)) < len(offsets):
                report.add(
                    "clock offsets",
                    "notice",
                    "several clock offsets hold for the same time; times around it may be wrong",
                    count=len(offsets) - len(set(offsets)),
                    where=where,
                )
        lib.Reader_CloseDefFiles(reader)

    # ---- events

    def read_events(self, reader: int, stack: ExitStack) -> None:
        lib = self.library
        callbacks = lib.EvtReaderCallbacks_New()
        stack.callback(lib.EvtReaderCallbacks_Delete, callbacks)
        for record, native in compiled().items():
            lib.set_callback("EvtReader", record, callbacks, native.address)
        if lib.Reader_OpenEvtFiles(reader):
            raise self.refuse(
                "the event files of the OTF2 archive cannot be opened",
                f"in folder {self.folder.name}",
                "copy the archive again, with its folder",
            )
        buffer = Buffer(RECORDS)
        sizes = [file_size(self.folder / f"{place.location.id}.evt") for place in self.places]
        total, done = sum(sizes), 0
        for place, size in zip(self.places, sizes, strict=True):
            location = place.location

            def step(at: int, before: int = done, name: str = location.name) -> None:
                self.progress.step(before + at, total, f"reading {name}")

            step(0)
            done += size
            if self.whole and location.id not in self.whole:
                location.damage = "no local definitions"
                self.sink.report.add(
                    "local definitions",
                    "loss",
                    "local definitions are missing or damaged, without which numbers and times of the events "
                    "mean something else; the location was left out",
                    where=f"{self.folder.name}/{location.id}.def",
                )
                continue
            events = lib.Reader_GetEvtReader(reader, location.id)
            if not events:
                location.damage = "no data"
                self.sink.report.add(
                    "event file",
                    "loss",
                    "an event file is missing, empty or has no valid header; its location has no data",
                    where=f"{self.folder.name}/{location.id}.evt: {lib.why()}",
                )
                continue
            try:
                lib.Reader_RegisterEvtCallbacks(reader, events, callbacks, buffer.words.ctypes.data)
                self.read_location(reader, events, place, buffer, step)
            finally:
                lib.Reader_CloseEvtReader(reader, events)
        lib.Reader_CloseEvtFiles(reader)

    def read_location(
        self, reader: int, events: int, place: Place, buffer: Buffer, step: Callable[[int], None]
    ) -> None:
        lib, location, words, read = self.library, place.location, buffer.words, u64()
        buffer.start(self.span)
        file = self.folder / f"{location.id}.evt"
        walker = Walker(file, self.chunk, self.big_endian, self.span)
        wrong, wanted = "", 0
        while not wrong:
            walker.advance(RECORDS)
            wanted = walker.sound - location.records
            while wanted and not wrong:
                code = lib.Reader_ReadLocalEvents(reader, events, min(wanted, RECORDS), ctypes.byref(read))
                location.records += read.value
                wanted -= read.value
                self.rows.deliver(place, buffer.take())
                if words[FAULT]:
                    wrong = FAULTS[words[FAULT]]
                elif code not in (0, INTERRUPTED) or not read.value:
                    wrong = lib.why(code)
            step(walker.at)
            if walker.ended:
                break
        wrong = wrong or FAULTS[walker.fault]
        if words[FLUSHED] >= 0:
            stop = int(words[FLUSHED])
            if stop - words[FIRST] <= self.span:
                words[LAST] = max(words[LAST], stop)
            rows = np.array([[words[LAST]], [1 << 56 | FLUSHING]])
            self.sink.append("events", place.index, **self.rows.events(place, rows))
        if words[FIRST] >= 0:
            location.first, location.last = int(words[FIRST]), int(words[LAST])
        self.judge(place, words, f"byte {walker.at}: {wrong}" if wrong else "")

    def judge(self, place: Place, words: NDArray[np.int64], wrong: str) -> None:
        """Say what the reading of a location has shown."""
        location, report = place.location, self.sink.report
        where = f"{self.folder.name}/{location.id}.evt"
        records = location.records
        if wrong:
            location.damage = "no data" if location.first is None else "ends early"
            report.add(
                "damaged events",
                "loss",
                "an event file is cut or damaged; what came before the damage was kept",
                where=f"{where}, {wrong}",
            )
        elif location.first is None and location.kind == "cpu":
            location.damage = "no data"
            report.add("no events", "notice", "a location has no events at all", where=where)
        if place.declared > records:
            report.add(
                "missing events",
                "loss",
                "fewer events were read than the definitions announce",
                count=place.declared - records,
                where=where,
            )
        elif place.declared < records:
            report.add(
                "event counts",
                "info",
                "the definitions announce fewer events than there are; the announced number was ignored",
                where=where,
            )
        for counter, name, sentence in (
            (ORPHANS, "collectives", "collective operations end without a begin; they were left out"),
            (UNSTORED, "other records", "non-blocking collectives and matched probes are not stored"),
        ):
            if words[counter]:
                report.add(name, "notice", sentence, count=int(words[counter]), where=where)
        if words[BEGIN] >= 0:
            report.add(
                "collectives", "notice", "a collective operation has no end; it was left out", where=where
            )

    # ---- marks

    def read_marks(self, reader: int, stack: ExitStack) -> None:
        file = self.folder.with_suffix(".marker")
        if not file.exists():
            return
        lib, read = self.library, u64()
        categories: dict[int, str] = {}
        marks: list[tuple[int, int, str]] = []

        def define(_data: Any, number: int, _group: bytes, category: bytes, _severity: int) -> int:
            categories[number] = (category or b"").decode("utf-8", "replace")
            return GO_ON

        def mark(_data: Any, time: int, _duration: int, number: int, scope: int, of: int, said: bytes) -> int:
            words = (said or b"").decode("utf-8", "replace") or categories.get(number, f"mark {number}")
            marks.append((self.dense.get(of, 0) if scope == 1 else 0, time, words))
            return GO_ON

        keep = (
            ctypes.CFUNCTYPE(ctypes.c_int, Handle, u32, text, text, u8)(define),
            ctypes.CFUNCTYPE(ctypes.c_int, Handle, u64, u64, u32, u8, u64, text)(mark),
        )
        callbacks = lib.MarkerReaderCallbacks_New()
        stack.callback(lib.MarkerReaderCallbacks_Delete, callbacks)
        for record, function in zip(("DefMarker", "Marker"), keep, strict=True):
            lib.set_callback("MarkerReader", record, callbacks, ctypes.cast(function, Handle))
        markers = lib.Reader_GetMarkerReader(reader)
        code = 0
        if markers:
            lib.Reader_RegisterMarkerCallbacks(reader, markers, callbacks, None)
            code = lib.Reader_ReadAllMarkers(reader, markers, ctypes.byref(read))
            lib.Reader_CloseMarkerReader(reader, markers)
        if not markers or code:
            self.sink.report.add("marks", "loss", "the marks cannot all be read", where=file.name)
        marks = sorted(m for m in marks if 0 <= m[1] < 1 << 63)
        for index in sorted({m[0] for m in marks}):
            here = [m for m in marks if m[0] == index]
            self.sink.append(
                "marks",
                index,
                time=np.array([m[1] for m in here], "i8"),
                text=np.array([self.sink.text(m[2]) for m in here], "u4"),
            )

    def read(self) -> None:
        notes = self.check_anchor()
        compiled()  # before anything of the library is open
        with ExitStack() as stack:
            reader = self.open(stack)
            self.read_definitions(reader, stack)
            notes["creator"] = self.note(self.library.Reader_GetCreator, reader)
            notes["machine"] = self.note(self.library.Reader_GetMachineName, reader)
            resolution, _, length = (*self.definitions.by["ClockProperties"].get(0, (0, 0, 0)), 0)[:3]
            if not resolution:
                self.sink.report.add(
                    "clock", "notice", "the clock's resolution is not defined; a tick is taken as 1 ns"
                )
                resolution = 1_000_000_000
            # No trace lasts longer than 400 days or a thousand times what it says itself.
            self.span = min(max(400 * 86400 * resolution, 1000 * length), 1 << 62)
            self.define()
            for place in self.places:
                self.library.Reader_SelectLocation(reader, place.location.id)
            self.read_local_definitions(reader, stack)
            self.sink.describe(ticks_per_second=float(resolution), repair=not self.synchronised, notes=notes)
            self.read_events(reader, stack)
            self.read_marks(reader, stack)
        if all(place.location.first is None for place in self.places):
            raise self.refuse(
                "the OTF2 archive has no readable events",
                f"in {len(self.places)} locations",
                "copy the archive again, with its folder",
            )


def file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def anchor_of(path: Path) -> Path | None:
    """The anchor file: the path itself, or the only ``*.otf2`` in the directory."""
    if not path.is_dir():
        return path
    found = sorted(path.glob("*.otf2"))
    return found[0] if len(found) == 1 else None


def detect(path: Path, head: bytes) -> bool:
    anchor = anchor_of(path)
    if anchor is None:
        return False
    if anchor != path:
        try:
            with anchor.open("rb") as file:
                head = file.read(16)
        except OSError:
            return False
    return head[:1] == b"\x03" and head[1:2] in (b"\x42", b"\x23") and head[2:7] == b"OTF2\0"


def read(path: Path, sink: Sink, progress: Progress) -> None:
    anchor = anchor_of(path)
    if anchor is None:
        raise TraceFormatError(
            "holds not exactly one OTF2 anchor file", file=path, hint="choose one *.otf2 file"
        )
    try:
        archive = Archive(anchor, sink, progress)
    except TraceFormatError as error:
        raise TraceFormatError(error.what, file=anchor, hint=error.hint) from None
    archive.read()


def files(path: Path) -> list[Path]:
    anchor = anchor_of(path)
    if anchor is None:
        return []
    folder = anchor.with_suffix("")
    beside = [folder.with_suffix(end) for end in (".def", ".marker", ".thumb")]
    inside = sorted(file for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else []
    return [anchor, *(file for file in beside if file.is_file()), *inside]


IMPORTER = Importer(
    id="otf2",
    title="OTF2 archive",
    version="1",
    detect=detect,
    read=read,
    files=files,
    patterns=("*.otf2",),
)

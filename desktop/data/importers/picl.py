"""PICL traces: PICL 1 (format A, compact and verbose lines) and PICL 2 as MPICL writes it (format B).

Both are lines of text without header, version or table of names; what a file is, is found from its first
lines. `_picl.intake` reads the lines into a temporary file by processor, `_picl.walk` takes one processor
after the other to the sink; here are the names, the order and the report.

Sources: the node library of PICL 1.x (Oak Ridge National Laboratory), ORNL/TM-12125 (Worley), and for the
states ORNL/TM-11637, section 1.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from desktop.data.atomic import scratch_folder
from desktop.data.consistency import RARE, tell_far
from desktop.data.events import Activity, Importer, Location, Region, Sink
from desktop.data.importers._picl import lines as ln
from desktop.data.importers._picl import source, walk
from desktop.data.importers._picl import states as st
from desktop.data.importers._picl import tables as tb
from desktop.data.importers._picl.intake import Intake
from desktop.data.lines import ahead, in_order
from desktop.progress import Progress


def _places(intake: Intake) -> list[walk.RecordPlace]:
    """One for every processor that has records or is a partner; several if it has several processes."""
    processes: dict[int, dict[int, list[int]]] = {}
    for unit, value in enumerate(intake.units.values.tolist()):
        processes.setdefault(value >> 32, {}).setdefault((value & 0xFFFFFFFF) - 1, []).append(unit)
    word = "node" if intake.form == ln.FORMAT_A else "processor"
    places = []
    for processor in sorted({*processes, *intake.partners.values.tolist()}):
        parts = processes.get(processor, {})
        named = sorted(process for process in parts if process >= 0)
        if len(named) > 1:
            for process in named:
                units = parts[process] + (parts.get(-1, []) if process == named[0] else [])
                number = processor << 32 | process
                location = Location(number, f"{word} {processor}.{process}", rank=processor)
                places.append(walk.RecordPlace(processor, units, location))
        else:
            location = Location(processor, f"{word} {processor}", rank=processor)
            if processor == ln.HOST:
                location = Location(processor, "host", kind="host")
            units = [unit for units in parts.values() for unit in units]
            places.append(walk.RecordPlace(processor, units, location))
    return sorted(places, key=lambda place: place.processor == ln.HOST)


def _names(intake: Intake, places: list[walk.RecordPlace], sink: Sink) -> walk.Names:
    """Define regions, operations and locations."""
    form = intake.form
    state = np.full(st.STATES, -1, np.int64)
    for number, what in tb.STATES:
        if form == ln.FORMAT_A or what.activity is Activity.UNMEASURED:
            state[number] = sink.region(what)
    keys = max(len(intake.key_events), 1)
    region, collective = np.full(keys, -1, np.int64), np.full(keys, -1, np.int64)
    user, library, trace = np.zeros(keys, np.bool_), np.zeros(keys, np.bool_), -1
    own_events = tb.WATCHED_B if form == ln.FORMAT_B else ()
    watched = np.array([*(event in own_events for event in intake.key_events), False])
    for key, event in enumerate(intake.key_events):
        if not intake.paired[key] or (form == ln.FORMAT_A and intake.keys.values[key] == ln.WAIT):
            continue
        name, activity, own, together = tb.describe(form, event)
        paradigm = "picl" if own else "user"
        region[key] = sink.region(Region(name, tb.role(name), paradigm, activity))
        library[key] = own and event not in own_events
        if together:
            collective[key] = sink.text(name)
        if form == ln.FORMAT_B:
            user[key] = event >= 0
            trace = key if event == -901 else trace
    for place in places:
        place.index = sink.location(place.location)
    by_processor = {place.processor: place.index for place in reversed(places)}
    known = np.array(sorted(by_processor), np.int64)
    index = np.array([by_processor[processor] for processor in known.tolist()], np.int64)
    cpus = np.array([place.processor for place in places if place.processor >= 0], np.int64)
    return walk.Names(region, user, library, watched, collective, state, trace, known, index, cpus)


def _notes(intake: Intake) -> dict[str, Any]:
    notes: dict[str, Any] = {"format": "PICL 1 (A)" if intake.form == ln.FORMAT_A else "PICL 2 (B)"}
    if intake.statistics:
        notes["statistics"] = [
            {
                "processor": processor,
                "event": event,
                "name": tb.EVENTS_B.get(event, ""),
                "quantity": tb.STATISTICS[record],
                "value": value,
            }
            for (processor, record, event), value in sorted(intake.statistics.items())[:100_000]
        ]
    return notes


class _Marks:
    """Texts of marks in the sink, by record type and value."""

    def __init__(self, intake: Intake, sink: Sink) -> None:
        self._texts, self._form, self._sink = list(intake.texts), intake.form, sink
        self._known: dict[tuple[int, int], int] = {}

    def __call__(self, kind: NDArray[np.int64], value: NDArray[np.int64]) -> NDArray[np.uint32]:
        pairs, inverse = np.unique(np.stack((kind, value)), axis=1, return_inverse=True)
        numbers = []
        for k, v in pairs.T.tolist():
            if (k, v) not in self._known:
                if k == -1:
                    text = self._texts[v]
                elif self._form == ln.FORMAT_B:
                    text = f"mark {v}" if v >= 0 else tb.EVENTS_B[v]
                else:
                    text = f"mark {v}" if k == 15 else ln.NAMES[k].replace("_", " ")
                self._known[k, v] = self._sink.text(text)
            numbers.append(self._known[k, v])
        return np.array(numbers, np.uint32)[inverse.ravel()]


def _deliver(intake: Intake, sink: Sink, progress: Progress, folder: Path) -> None:
    """All places to the sink, one after the other, each made ready in a thread while others are stored."""
    places = _places(intake)
    sink.describe(ticks_per_second=float(10**intake.decimals), nesting="strongest", notes=_notes(intake))
    names = _names(intake, places, sink)
    marks = _Marks(intake, sink)
    total, done = max(intake.records, 1), 0

    def ready(place: walk.RecordPlace) -> tuple[walk.RecordPlace, list[walk.Rows] | None]:
        rows = walk.Walk(place, intake, names, folder)
        return place, list(rows.rows()) if rows.size <= walk.CHUNK else None

    for place, made in in_order(ready, places):
        # What is too large to be made ready as a whole is made chunk by chunk.
        rows: Generator[walk.Rows, None, None] = (
            ahead(walk.Walk(place, intake, names, folder).rows()) if made is None else (row for row in made)
        )
        with closing(rows):  # while the folder of its files is there
            for table, columns in rows:
                if len(next(iter(columns.values()))):
                    if table == "marks":
                        columns["text"] = marks(columns.pop("kind"), columns.pop("value"))
                    sink.append(table, place.index, **columns)
        done += place.location.records
        progress.step(total + done, 2 * total, "arranging processors")
    _tell(intake, places, sink)


def _tell(intake: Intake, places: list[walk.RecordPlace], sink: Sink) -> None:
    """What was found, processors together: the sentence of the first, the smallest line."""
    report = sink.report
    intake.tell()
    for name in dict.fromkeys(name for place in places for name in place.notes):
        found = [place.notes[name] for place in places if name in place.notes]
        severity, _, _, text = found[0]
        line = min(line for _, _, line, _ in found)
        count = sum(count for _, count, _, _ in found)
        report.add(name, severity, text, count=count, where=f"line {line}")
    there = [place for place in places if place.location.records and place.location.kind == "cpu"]
    closed = sum(place.closed for place in there)
    unbegun = [place for place in there if not place.begun]
    for late, name, text in (
        (
            unbegun,
            "tracing without begin",
            "The beginning of tracing is missing of processors that have its end, or while others have it; "
            "first records are lost.",
        ),
        (
            [place for place in there if not place.ended],
            "tracing ends apart",
            "The end of tracing is missing of processors, others have it; their last records are lost.",
        ),
        (
            [place for place in there if not place.usable],
            "statistics of some",
            "Processors have no statistics of their communication, others have them; records are lost.",
        ),
        (
            [place for place in there if not place.closed] if 2 * closed > len(there) else [],
            "no close of some",
            "The end of the program (close) is missing of processors, most have it; last records are lost.",
        ),
    ):
        if 0 < len(late) < len(there) or (late is unbegun and any(place.ended for place in late)):
            report.add(name, "loss", text, count=len(late), where=late[0].location.name)
            for location in (place.location for place in late):
                if location.first is not None and location.last is not None:
                    location.doubt = location.last - location.first
    timed = [place for place in there if place.before is not None]
    tell_far(report, [place.location for place in timed], [place.before or 0 for place in timed])
    silent = [place for place in places if not place.location.records and place.location.kind == "cpu"]
    if silent:
        report.add(
            "processors without records",
            "loss",
            "Processors are named by the messages of others and have no records of their own.",
            count=len(silent),
            where=silent[0].location.name,
        )
    inside = [place for place in places if place.calls[1]]
    # A trace that has it often has been written so.
    if 0 < sum(place.calls[1] for place in inside) <= RARE * sum(place.calls[0] for place in places):
        report.add(
            "call within itself",
            "loss",
            "Calls of the library are entered while the same call is open, which others never are; records "
            "are missing or changed there.",
            count=sum(place.calls[1] for place in inside),
            where=f"line {min(place.calls[2] for place in inside)}",
        )
        for location in (place.location for place in inside):
            location.doubt = (location.last or 0) - (location.first or 0)
    twins = sum(place.twins for place in places)
    if 2 * twins > intake.records:
        report.add(
            "repeated lines",
            "notice",
            "More than half of the lines occur twice, as when a file was appended to itself. The curve "
            "is the same without the repeated lines, counts of messages are not: remove them.",
            count=twins,
        )


def _read(path: Path, sink: Sink, progress: Progress) -> None:
    with scratch_folder() as folder:
        intake = Intake(path, sink.report, folder)
        try:
            intake.read(progress)
            _deliver(intake, sink, progress, folder)
        finally:
            intake.close()


IMPORTER = Importer(
    id="picl",
    title="PICL trace",
    version="5",
    detect=source.detect,
    read=_read,
    files=lambda path: [path],
    patterns=("*.trf", "*.ttf", "*.raw"),
)

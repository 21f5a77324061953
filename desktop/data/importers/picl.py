"""PICL traces: PICL 1 (format A, compact and verbose lines) and PICL 2 as MPICL writes it (format B).

Both are lines of text without header, version or table of names; the format is detected from the first lines.
`_picl.intake` sorts the lines by processor into a temporary file, `_picl.walk` takes one processor after the
other to the sink; this module has the names, the order and the report.

Sources: the node library of PICL 1.x (Oak Ridge National Laboratory), ORNL/TM-12125 (Worley), and for the
states ORNL/TM-11637, section 1.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from functools import cache
from pathlib import Path

import numpy as np

from desktop.data.atomic import scratch_folder
from desktop.data.consistency import RARE, tell_far
from desktop.data.events import Activity, Importer, Location, Region, Sink
from desktop.data.importers._picl import lines as ln
from desktop.data.importers._picl import tables as tb
from desktop.data.importers._picl import walk
from desktop.data.importers._picl.intake import Intake, detect
from desktop.data.lines import ahead, in_order
from desktop.progress import Progress


def _places(intake: Intake) -> list[walk.RecordPlace]:
    """A place for every processor that has records or is a partner; one per process if it has several."""
    processes: dict[int, dict[int, list[int]]] = {}
    for unit, value in enumerate(intake.units.values.tolist()):
        processes.setdefault(value >> 32, {}).setdefault((value & 0xFFFFFFFF) - 1, []).append(unit)
    word = "node" if intake.form == tb.FORMAT_A else "processor"
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
            if processor == tb.HOST:
                location = Location(processor, "host", kind="host")
            units = [unit for units in parts.values() for unit in units]
            places.append(walk.RecordPlace(processor, units, location))
    return sorted(places, key=lambda place: place.processor == tb.HOST)


def _names(intake: Intake, places: list[walk.RecordPlace], sink: Sink) -> walk.Names:
    """Define regions, operations and locations."""
    form, keys = intake.form, max(intake.keys.used, 1)
    state = np.full(tb.STATES, -1, np.int64)
    for number, one in tb.STATE_REGIONS.items():
        if form == tb.FORMAT_A or one.activity is Activity.UNMEASURED:
            state[number] = sink.region(one)
    region, collective = np.full((2, keys), -1, np.int64)
    user, library, trace = np.zeros(keys, np.bool_), np.zeros(keys, np.bool_), -1
    for key, event in enumerate(intake.keys.values.tolist()):
        if not intake.paired[key] or (form == tb.FORMAT_A and event == ln.WAIT):
            continue
        name, activity, in_library, together = tb.describe(form, event)
        region[key] = sink.region(Region(name, tb.role(name), "picl" if in_library else "user", activity))
        library[key] = in_library and (form == tb.FORMAT_A or event not in tb.WATCHED_B)
        if together:
            collective[key] = sink.text(name)
        if form == tb.FORMAT_B:
            user[key] = event >= 0
            trace = key if event == tb.TRACE_B else trace
    for place in places:
        place.index = sink.location(place.location)
    by_processor = {place.processor: place.index for place in reversed(places)}
    processors = np.array(sorted(by_processor), np.int64)
    index = np.array([by_processor[processor] for processor in processors.tolist()], np.int64)
    cpus = np.array([place.processor for place in places if place.processor >= 0], np.int64)
    return walk.Names(region, user, library, collective, state, trace, processors, index, cpus)


def _notes(intake: Intake) -> dict[str, object]:
    notes: dict[str, object] = {"format": "PICL 1 (A)" if intake.form == tb.FORMAT_A else "PICL 2 (B)"}
    if intake.statistics:
        notes["statistics"] = [
            {"processor": processor, "event": event, "name": tb.EVENTS_B.get(event, "")}
            | {"quantity": tb.STATISTICS_B[quantity], "value": value}
            for (processor, quantity, event), value in sorted(intake.statistics.items())[:100_000]
        ]
    return notes


def _deliver(intake: Intake, sink: Sink, progress: Progress, folder: Path) -> None:
    """Hand all places to the sink, one after the other; each is prepared in a thread while others are
    stored."""
    places = _places(intake)
    sink.describe(ticks_per_second=float(10**intake.decimals), nesting="strongest", notes=_notes(intake))
    names = _names(intake, places, sink)
    total, done = max(intake.records, 1), 0
    texts = list(intake.texts)

    @cache
    def mark(kind: int, value: int) -> int:
        """The number of the text of a mark; of a text of the intake if `kind` is -1."""
        named = tb.EVENTS_B.get(value, "") if intake.form == tb.FORMAT_B else tb.NAMES[kind].replace("_", " ")
        number = value >= 0 if intake.form == tb.FORMAT_B else kind == tb.TRACE_MARK
        return sink.text(texts[value] if kind == -1 else f"mark {value}" if number else named)

    def ready(place: walk.RecordPlace) -> tuple[walk.RecordPlace, list[walk.Rows] | None]:
        rows = walk.Walk(place, intake, names, folder)
        return place, list(rows.rows()) if rows.size <= walk.CHUNK else None

    for place, rows_made in in_order(ready, places):
        # A place too large to be prepared as a whole is prepared chunk by chunk.
        rows: Generator[walk.Rows, None, None] = (
            ahead(walk.Walk(place, intake, names, folder).rows())
            if rows_made is None
            else (row for row in rows_made)
        )
        with closing(rows):  # before the folder of its files is removed
            for table, columns in rows:
                if len(next(iter(columns.values()))):
                    if table == "marks":
                        pairs = np.stack((columns.pop("kind"), columns.pop("value")))
                        pairs, which = np.unique(pairs, axis=1, return_inverse=True)
                        numbers = np.array([mark(*pair) for pair in pairs.T.tolist()], np.uint32)
                        columns["text"] = numbers[which.ravel()]
                    sink.append(table, place.index, **columns)
        done += place.location.records
        progress.step(total + done, 2 * total, "arranging processors")
    _tell(intake, places, sink)


def _tell(intake: Intake, places: list[walk.RecordPlace], sink: Sink) -> None:
    """Report the findings, one for all processors: the text of the first, the smallest line number."""
    report = sink.report
    intake.tell()
    for name in dict.fromkeys(name for place in places for name in place.notes):
        severities, counts, lines, texts = zip(
            *(p.notes[name] for p in places if name in p.notes), strict=True
        )
        report.add(name, severities[0], texts[0], count=sum(counts), where=f"line {min(lines)}")
    active = [place for place in places if place.location.records and place.location.kind == "cpu"]
    unbegun = [place for place in active if not place.begun]
    unclosed = [place for place in active if not place.closed]
    missing = {
        "tracing without begin": unbegun,
        "tracing ends apart": [place for place in active if not place.ended],
        "statistics of some": [place for place in active if not place.usable],
        "no close of some": unclosed if 2 * len(unclosed) < len(active) else [],
    }
    for name, late in missing.items():
        if 0 < len(late) < len(active) or (late is unbegun and any(place.ended for place in late)):
            report.tell(tb.FINDINGS, name, len(late), late[0].location.name)
            for place in late:
                place.location.doubt_for()
    timed = [place for place in active if place.before is not None]
    tell_far(report, [place.location for place in timed], [place.before or 0 for place in timed])
    silent = [p.location.name for p in places if not p.location.records and p.location.kind == "cpu"]
    report.tell(tb.FINDINGS, "processors without records", len(silent), "".join(silent[:1]))
    inside = [place for place in places if place.findings[tb.INSIDE, 0]]
    within = sum(int(place.findings[tb.INSIDE, 0]) for place in inside)
    # A trace with many of them was written that way.
    if 0 < within <= RARE * sum(place.calls for place in places):
        line = min(place.findings[tb.INSIDE, 1] for place in inside)
        report.tell(tb.FINDINGS, "call within itself", within, f"line {line}")
        for place in inside:
            place.location.doubt_for()
    twins = sum(place.twins for place in places)
    if 2 * twins > intake.records:
        report.tell(tb.FINDINGS, "repeated lines", twins)


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
    version="7",
    detect=detect,
    read=_read,
    files=lambda path: [path],
    patterns=("*.trf", "*.ttf", "*.raw"),
)

"""Divides the import of one trace: each worker reads some locations into a partial store; these are combined.

The result equals that of an undivided import: rows, counts, summaries, report and curve; only regions and
texts may be numbered differently. If the parts do not fit together (a format may find out something only
after reading everything), the trace must be read undivided.
"""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from desktop.core.arrays import AnyArray, Ints
from desktop.core.clock_line import Clock
from desktop.data import importers
from desktop.data.digest import EventDigest
from desktop.data.events import Activity, Importer, ImportReport, Region, Severity
from desktop.data.farm import Farm
from desktop.data.presence import PresenceDigest
from desktop.data.profile import PathNotes, TrafficDigest
from desktop.data.steps import Steps
from desktop.data.store import Source, StoreWriter, TraceStore, open_store
from desktop.data.timeline import Strips
from desktop.data.utilization import PartialCurve, Rules, partial_curve
from desktop.errors import FULL, REMEDIES, StoreError, TraceFormatError, reason
from desktop.progress import Progress, Share


def _summaries(writer: StoreWriter, steps: bool = False) -> EventDigest:
    """The timeline and the call paths of a store, and the `steps` from which its curve is computed."""
    strips, step_file = Strips(writer), Steps(writer.path) if steps else None
    return EventDigest(writer, strips=strips, notes=PathNotes(writer), steps=step_file)


#: Makes the digests of the rows of each location during an import; in parts the curve is computed from these.
DIGESTS = (partial(_summaries, steps=True), TrafficDigest, PresenceDigest)


def steps_of(writer: StoreWriter) -> Steps | None:
    """The steps of locations, of a store that is being written."""
    return next((digest.steps for digest in writer.digests if isinstance(digest, EventDigest)), None)


#: Neighbouring locations are kept together, as the store is read and written in runs; but not more of them,
#: nor so many that some parts would be much larger than others.
TOGETHER = 256
SHARES = 8


@dataclass
class Part:
    """Facts about a partial store besides its contents.

    owned : (n,) indices of its locations in the whole trace.
    questions : number of locations that the importer asked about (`Sink.wants`).
    dates : location at which each finding was made first, -1 before all.
    refused : why nothing usable could be read from its locations, if so.
    """

    path: Path
    owned: Ints
    locations: int
    questions: int
    dates: dict[str, int]
    refused: TraceFormatError | None = None


class _DatedReport(ImportReport):
    """Records at which location something was found first."""

    def __init__(self) -> None:
        super().__init__()
        self.at = -1
        self.dates: dict[str, int] = {}

    def add(self, name: str, severity: Severity, text: str, *, count: int = 1, where: str = "") -> None:
        self.dates.setdefault(name, self.at)
        super().add(name, severity, text, count=count, where=where)


class _PartWriter(StoreWriter):
    def __init__(self, path: Path, trace: Path, importer: Importer, number: int, parts: int) -> None:
        digests = _summaries, TrafficDigest, PresenceDigest
        super().__init__(path, Source(str(trace), trace.name), importer, digests, self.owns)
        self.report = self.dated = _DatedReport()
        self._number, self._parts = number, parts
        self._together = 0
        self.asked: set[int] = set()

    def owns(self, location: int) -> bool:
        if not self._together:
            self._together = max(1, min(TOGETHER, len(self.locations) // (SHARES * self._parts)))
        return location // self._together % self._parts == self._number

    def wants(self, location: int) -> bool:
        if not self.asked and self._number:
            self.forget()  # the first part reports on the whole trace
        if location in self.asked:
            self.dated.at = location  # asked again: now it is read
        self.asked.add(location)
        return super().wants(location)

    def append(self, table: str, location: int, **columns: AnyArray) -> None:
        self.dated.at = location
        super().append(table, location, **columns)

    def forget(self) -> None:
        self.dated.findings.clear()
        self.dated.dates.clear()


def import_part(
    trace: Path,
    format_id: str,
    unit: str,
    number: int,
    parts: int,
    regions: Sequence[Region],
    target: Path,
    progress: Progress,
) -> Part:
    """Read the part `number` of `parts` into the partial store `target`, whose first regions are `regions`.

    Raises
    ------
    TraceFormatError : nothing usable can be read, in any part.
    StoreError : `target` cannot be written, or the trace is not visible from here.
    """
    if not trace.exists():
        raise StoreError(
            f"is not there for {platform.node()}", file=trace, hint="put it where all workers see it"
        )
    importer = importers.importer(format_id).in_unit(unit)
    refused = None
    with _PartWriter(target, trace, importer, number, parts) as writer:
        for region in regions:
            writer.region(region)
        try:
            importer.read(trace, writer, progress)
        except OSError as error:
            raise unreadable(error, trace) from error
        except TraceFormatError as error:
            if not writer.asked or not writer.ticks_per_second:
                raise
            refused = error
        if number and not writer.asked:
            writer.forget()
        set_apart(writer)
        own = [i for i in range(len(writer.locations)) if writer.owns(i)]
    return Part(
        target, np.array(own, np.int64), len(writer.locations), len(writer.asked), writer.dated.dates, refused
    )


def set_apart(writer: StoreWriter) -> None:
    """Locations with only metrics are not processors, whatever the trace calls them."""
    writer.complete()
    for i, location in enumerate(writer.locations):
        spoke = any(writer.rows(table, i) for table in ("events", "messages", "collectives"))
        if location.kind == "cpu" and not spoke and writer.rows("metrics", i):
            location.kind, location.base = "metric", Activity.IDLE


def name_apart(writer: StoreWriter) -> None:
    """Report what is in the store but in no curve."""
    of_kind = {kind: [x for x in writer.locations if x.kind == kind] for kind in ("accelerator", "metric")}
    for kind, name, text in (
        (
            "accelerator",
            "accelerators",
            "Streams of accelerators are drawn in the timeline and have a curve of their own; they are no "
            "processors, so the utilization and the statistics exclude them.",
        ),
        (
            "metric",
            "metric locations",
            "Locations carry only metrics; they are no processors and have no row of their own.",
        ),
    ):
        apart = of_kind[kind]
        if apart:
            first = apart[0].name or f"location {apart[0].id}"
            writer.report.add(name, "info", text, count=len(apart), where=first)
    metrics = sum(writer.rows("metrics", i) for i in range(len(writer.locations)))
    if metrics:
        writer.report.add(
            "metrics", "info", "Values of metrics are kept; each metric is a curve of its own.", count=metrics
        )


def unreadable(error: OSError, trace: Path) -> TraceFormatError:
    """The error for a system error while a trace is read, which also writes files: temporary ones, and those
    beside the store."""
    if error.errno in FULL:
        return TraceFormatError(
            f"cannot be imported ({reason(error)})",
            file=trace,
            where=f"writing {error.filename or tempfile.gettempdir()}",
            hint=REMEDIES[error.errno],
        )
    return TraceFormatError(f"cannot be read ({reason(error)})", file=error.filename or trace)


def read_parts(
    trace: Path, importer: Importer, farm: Farm, writer: StoreWriter, stack: ExitStack, progress: Progress
) -> list[Part] | None:
    """Import a trace into `writer`, one part per worker of `farm`; None (and nothing written) if it must be
    undivided. The partial stores are in the farm's folder and stay open until `stack` closes.

    Raises
    ------
    DesktopError : a part could not be read, twice; the store cannot be written.
    """
    parts = _read_all(trace, importer, [], farm, Share(progress, 0.0, 0.6))
    if parts is None:
        return None
    with ExitStack() as first:
        regions = _regions([first.enter_context(open_store(part.path)) for part in parts])
    if regions:
        parts = _read_all(trace, importer, regions, farm, Share(progress, 0.6, 0.9))
        if parts is None:
            return None
    stores = [stack.enter_context(open_store(part.path)) for part in parts]
    if not _fit(parts, stores):
        return None
    _describe(writer, parts, stores)
    texts = [writer.take_texts(store) for store in stores]
    writer.take_over(
        [(store, part.owned, text) for store, part, text in zip(stores, parts, texts, strict=True)]
    )
    return parts


def _read_all(
    trace: Path, importer: Importer, regions: Sequence[Region], farm: Farm, progress: Progress
) -> list[Part] | None:
    count = farm.workers
    tasks = [
        (trace, importer.id, importer.unit, k, count, regions, farm.folder / f"{k}.h5") for k in range(count)
    ]
    done = farm.run(import_part, tasks, progress, "reading")
    if any(isinstance(future.exception(), TraceFormatError) for future in done):
        return None
    return [future.result() for future in done]


def _regions(stores: Sequence[TraceStore]) -> list[Region]:
    """All regions of all parts, if some part does not have all of them in this order: some importers define a
    region when they first meet it. Summaries use these numbers, so such parts must be read again."""
    every: dict[tuple[str, str, str], Region] = {}
    for store in stores:
        for region in store.regions:
            every.setdefault((region.name, region.role, region.paradigm), region)
    regions = list(every.values())
    return [] if all(store.regions == regions for store in stores) else regions


def curves(parts: Sequence[Part], farm: Farm, writer: StoreWriter, progress: Progress) -> list[PartialCurve]:
    """The utilization of each part with the repaired clocks and the activities of regions of `writer`, in
    files of the farm.

    Raises as `read_parts`.
    """
    tasks = []
    for number, part in enumerate(parts):
        clocks = [writer.locations[i].clock(True) for i in part.owned]
        activities = [region.activity for region in writer.regions]
        target = farm.folder / f"{number}.curve"
        tasks.append((part.path, part.owned, clocks, activities, writer.repair, target))
    return [future.result() for future in farm.run(_curve_of_part, tasks, progress, "utilization")]


def _curve_of_part(
    path: Path,
    owned: Ints,
    clocks: list[Clock],
    activities: Sequence[Activity | None],
    repair: bool,
    target: Path,
    progress: Progress,
) -> PartialCurve:
    with open_store(path) as store:
        for region, activity in zip(store.regions, activities, strict=True):
            region.activity = activity
        for location, clock in zip(store.locations, clocks, strict=True):
            location.shift, location.drift, location.origin = clock
        store.repair = repair
        return partial_curve(store, Rules(), owned, target, progress)


def _fit(parts: Sequence[Part], stores: Sequence[TraceStore]) -> bool:
    """Whether all parts agree on the trace, and at least one contains something."""

    def same(values: Sequence[object]) -> bool:
        return all(value == values[0] for value in values)

    return (
        not all(part.refused for part in parts)
        and same([(part.locations, part.questions) for part in parts])
        and same([(s.ticks_per_second, s.nesting, s.notes, s.regions) for s in stores])
    )


def _describe(writer: StoreWriter, parts: Sequence[Part], stores: Sequence[TraceStore]) -> None:
    first = stores[0]
    writer.describe(
        ticks_per_second=first.ticks_per_second,
        nesting=first.nesting,
        # Some detect the trace's own clock offsets only later.
        repair=all(store.repair for store in stores),
        notes=first.notes,
    )
    for region in first.regions:
        writer.region(region)
    places = sorted(
        (int(index), number, at) for number, part in enumerate(parts) for at, index in enumerate(part.owned)
    )
    for _, number, at in places:
        index = writer.location(stores[number].locations[at])
        writer.tallies[index] = stores[number].tallies[at]
    findings = [
        (parts[number].dates[finding.name], number, at, finding)
        for number, store in enumerate(stores)
        for at, finding in enumerate(store.report.findings.values())
    ]
    for *_, finding in sorted(findings, key=lambda one: one[:3]):
        writer.report.add(
            finding.name, finding.severity, finding.text, count=finding.count, where=finding.where
        )

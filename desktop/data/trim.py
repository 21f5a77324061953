"""A part of a trace as a trace of its own: a range of time, of all or some locations.

Regions open at the start are entered there, those open at the end are left there, so that every state in the
range lasts as long as before. A range includes rows at its start and excludes rows at its end, as in
`desktop.data.statistics`; at the ends of the run nothing is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from desktop.core.arrays import AnyArray, Bytes, Ints
from desktop.core.open_regions import BEGIN, END, OpenRegions, no_classes
from desktop.data.events import TABLES, EventKind, Location, events_at
from desktop.data.matching import Links, Matches, links_of, matched
from desktop.data.parts import DIGESTS, steps_of
from desktop.data.store import Source, StoreWriter, TraceStore
from desktop.data.utilization import Rules, build, first_ticks, is_worker, keep, parallel_regions
from desktop.errors import StoreError
from desktop.progress import Progress, Share

#: Tables with one time per row, besides the events.
_DATED = ("messages", "marks", "metrics")
#: Columns with references that are renumbered.
_LOCATIONS = (("messages", "peer"), ("collectives", "root"))
_TEXTS = (("collectives", "operation"), ("marks", "text"), ("metrics", "metric"))


def of_ranks(ranks: Sequence[int], text: str) -> list[int]:
    """The locations whose rank is in a list such as ``0-3,8``; `ranks`: of every location.

    Raises
    ------
    StoreError : the list is invalid, or contains a rank that no location has.
    """
    try:
        ends = [[int(end) for end in part.split("-", 1)] for part in text.split(",")]
    except ValueError:
        raise StoreError(f"{text!r} is no list of ranks such as 0-3,8") from None
    existing, selected = set(ranks), set[int]()
    for part in ends:
        for rank in range(part[0], part[-1] + 1):
            if rank not in existing:
                raise StoreError(f"the trace has no rank {rank}")
            selected.add(rank)
    return [location for location, rank in enumerate(ranks) if rank in selected]


def trim(
    store: TraceStore,
    output: Path,
    start_s: float,
    end_s: float,
    locations: Sequence[int] | None = None,
    progress: Progress | None = None,
    repaired: bool | None = None,
) -> Path:
    """Write the range ``[start_s, end_s)`` of a trace as a new store; its time 0 is the start of the range.

    Statistics of the new trace equal those of the range in the old one, except calls: those open at the start
    are counted again. Clock repairs are kept. The new trace ends when its last location ends.

    Parameters
    ----------
    start_s, end_s : seconds on the axis of the curve.
    repaired : whether clocks are repaired, in the new trace too; None: as in the trace.
    locations : indices in the store; None: all. Messages with other locations have no partner then.

    Raises
    ------
    StoreError : there is nothing in the range or no such location, `output` is the trace itself, or it cannot
        be written.
    TraceFormatError : no processor among `locations` is present for any time.
    Cancelled : by `progress`; nothing is left behind.
    """
    progress = progress or Progress()
    output = Path(output).absolute()
    if output.exists() and output.samefile(store.path):
        raise StoreError("is the trace itself", file=output, hint="choose another name for the part of it")
    repaired = store.repair if repaired is None else repaired
    curve = build(store).curve() if store.has("curve") else None
    if curve is None:
        whole = _whole(store, repaired)
        run_start, run_end = 0.0, whole.length / store.ticks_per_second
    else:
        run_start, run_end = curve.span
    if not max(start_s, run_start) < min(end_s, run_end):
        raise StoreError(
            f"holds nothing from {start_s:g} s to {end_s:g} s, it runs from {run_start:g} s to {run_end:g} s",
            file=store.path,
        )
    places = range(len(store.locations)) if locations is None else sorted(set(locations))
    if not places or places[0] < 0 or places[-1] >= len(store.locations):
        raise StoreError("no such location to keep", file=store.path, hint="choose at least one that it has")
    about = Source(
        store.source.path,
        f"{store.source.name} [{max(start_s, run_start):g} s to {min(end_s, run_end):g} s"
        f"{'' if locations is None else f', {len(places)} of {len(store.locations)} locations'}]",
        store.source.size,
        store.source.sha256,
    )
    with StoreWriter(output, about, store.importer, DIGESTS) as writer:
        part = _Part(store, writer, places, repaired)
        if curve is not None:
            window = curve.window(start_s, end_s)
            part.define(lambda location: location)
            level = np.append(window.level, 0.0)
            writer.append("curve", 0, time=window.edges, level=level)
        else:
            ticks = store.ticks_per_second
            a, b = (round(min(max(s, run_start), run_end) * ticks) for s in (start_s, end_s))
            if not a < b:
                raise StoreError(f"{end_s - start_s:g} s are less than a tick of its clock", file=store.path)
            span = replace(whole, a=a, b=b)
            part.define(span.clip)
            part.copy(span, Share(progress, 0.0, 0.7))
        writer.clock = replace(store.clock)
        part.tell()
        writer.complete()
        with links_of(writer) as links:
            part.link(links)
        keep(writer, Share(progress, 0.7, 1.0), steps=steps_of(writer))
    return output


class _Ends(NamedTuple):
    """A range on the clock of one location, in ticks as recorded: rows before `begin` and from `end` on are
    outside. Beyond all times if it reaches an end of the run."""

    begin: int
    end: int

    def rows(self, time: Ints) -> slice:
        """The rows inside, given sorted times."""
        a, b = np.searchsorted(time, [self.begin, self.end], side="left")
        return slice(int(a), int(b))


@dataclass(frozen=True)
class _Span:
    """The range in ticks from the start of the run, whose first tick is `start` on the common clock."""

    a: int
    b: int
    length: int
    start: int
    repaired: bool

    def at(self, location: Location) -> _Ends:
        clock = location.clock(self.repaired)
        return _Ends(
            BEGIN if self.a == 0 else clock.local(self.a + self.start),
            END if self.b == self.length else clock.local(self.b + self.start),
        )

    def clip(self, location: Location) -> Location:
        """The location in the range: one that is not present still is a processor, for no time."""
        if location.first is None or location.last is None:
            return location
        ends = self.at(location)
        first, last = (min(max(time, ends.begin), ends.end) for time in (location.first, location.last))
        return replace(location, records=0, first=first, last=last)


def _whole(store: TraceStore, repaired: bool) -> _Span:
    rows = store.rows("utilization", 0)
    if rows and repaired == store.repair:
        # The ends are enough; the curve of a long run takes more memory than everything else here.
        (last,) = store.part("utilization", 0, rows - 1, rows, "time")
        return _Span(0, int(last[0]), int(last[0]), min(first_ticks(store)), repaired)
    use = build(store, Rules(repaired=None if repaired == store.repair else repaired))
    length = int(use.edges[-1])
    return _Span(0, length, length, use.start, repaired)


class _Part:
    """The copy: numbers in the old and the new trace, and counts of what was left out."""

    def __init__(self, store: TraceStore, writer: StoreWriter, places: Sequence[int], repaired: bool) -> None:
        self._store, self._writer, self._places, self._repaired = store, writer, places, repaired
        #: by the old number; the last one is for -1
        self._locations = np.full(len(store.locations) + 1, -1, np.int64)
        self._locations[list(places)] = np.arange(len(places))
        self._regions = np.array([writer.region(region) for region in store.regions], np.int64)
        self._texts = writer.take_texts(store).astype(np.int64)
        self._parallel = parallel_regions(store.regions)
        self._begin, self._end = (np.full(len(store.locations), t, np.int64) for t in (BEGIN, END))
        self._cut = {"rows": 0, "open at start": 0, "open at end": 0, "operations": 0, "partners": 0}
        self._unseen = 0
        self._step: Callable[[], None] = lambda: None

    def define(self, clip: Callable[[Location], Location]) -> None:
        store = self._store
        self._writer.describe(
            ticks_per_second=store.ticks_per_second,
            nesting=store.nesting,
            repair=self._repaired,
            notes=store.notes,
        )
        for i in self._places:
            self._writer.location(replace(clip(store.locations[i])))

    def copy(self, span: _Span, progress: Progress) -> None:
        store, places = self._store, self._places
        spans = {i: span.at(store.locations[i]) for i in places}
        for i, ends in spans.items():
            self._begin[i], self._end[i] = ends.begin, ends.end
        tables: list[tuple[str, Callable[[int, _Ends], Iterable[dict[str, AnyArray]]]]] = [
            ("events", self._events),
            *((table, partial(self._dated, table)) for table in _DATED),
            ("collectives", self._collectives),
        ]
        for number, (table, rows) in enumerate(tables):
            for new, i in enumerate(places):
                done, total = number * len(places) + new, len(tables) * len(places)
                self._step = partial(progress.step, done, total, "copying")
                for block in rows(i, spans[i]):
                    self._writer.append(table, new, **self._renumbered(table, block))

    def _blocks(self, table: str, i: int) -> Iterator[tuple[AnyArray, ...]]:
        for block in self._store.blocks(table, i):
            self._step()
            yield block

    def _renumbered(self, table: str, block: dict[str, AnyArray]) -> dict[str, AnyArray]:
        for name, values in block.items():
            if name == "region":
                block[name] = self._regions[values]
            elif (table, name) in _TEXTS:
                block[name] = self._texts[values]
            elif (table, name) in _LOCATIONS:
                block[name] = self._locations[values]
                self._cut["partners"] += int(np.count_nonzero((values >= 0) & (block[name] < 0)))
        return block

    def _dated(self, table: str, i: int, ends: _Ends) -> Iterator[dict[str, AnyArray]]:
        self._cut["rows"] += self._store.rows(table, i)
        for columns in self._blocks(table, i):
            inside = ends.rows(columns[0])
            self._cut["rows"] -= inside.stop - inside.start
            yield {name: column[inside] for name, column in zip(TABLES[table], columns, strict=True)}
            if inside.stop < columns[0].size:
                return

    def _collectives(self, i: int, ends: _Ends) -> Iterator[dict[str, AnyArray]]:
        """Operations that begin and end inside; half an operation tells nothing about its other members."""
        for columns in self._blocks("collectives", i):
            begin, end = columns[0], columns[1]
            inside = (begin >= ends.begin) & (end <= ends.end)
            self._cut["operations"] += int(
                np.count_nonzero(~inside & (begin < ends.end) & (end > ends.begin))
            )
            yield {name: column[inside] for name, column in zip(TABLES["collectives"], columns, strict=True)}

    def _events(self, i: int, ends: _Ends) -> Iterator[dict[str, AnyArray]]:
        location = self._store.locations[i]
        clipped = self._writer.locations[int(self._locations[i])]
        if location.last is None or clipped.first is None or clipped.last is None:
            return
        regions = OpenRegions(no_classes(len(self._store.regions)))
        # A thread is only idle outside of parallel regions if it enters one in the trace.
        unseen = is_worker(self._store, i, location, self._parallel)
        started = False
        self._cut["rows"] += self._store.rows("events", i)
        for time, kind, region in self._blocks("events", i):
            inside = ends.rows(time)
            self._cut["rows"] -= inside.stop - inside.start
            before = slice(0, inside.start)
            self._feed(regions, time[before], kind[before], region[before])
            if inside.start == time.size:
                continue
            if not started:
                started = True
                yield self._enter(clipped.first, regions.open[0])
                unseen = unseen and not self._parallel[regions.open[0]].any()
            unseen = unseen and not self._parallel[region[inside][kind[inside] == EventKind.ENTER]].any()
            self._feed(regions, time[inside], kind[inside], region[inside])
            yield {"time": time[inside], "kind": kind[inside], "region": region[inside]}
            if inside.stop < time.size:
                break
        if not started:
            yield self._enter(clipped.first, regions.open[0])
            unseen = unseen and not self._parallel[regions.open[0]].any()
        if unseen:
            self._unseen += 1
            every = self._store.column("calls", "region", i)
            one = every[self._parallel[every] > 0][:1].astype(np.int64)
            yield events_at(clipped.last, EventKind.ENTER, one)
            yield events_at(clipped.last, EventKind.LEAVE, one)
        if location.last >= ends.end:
            left = regions.open[0][::-1]
            self._cut["open at end"] += left.size
            yield events_at(clipped.last, EventKind.LEAVE, left)

    def _feed(self, regions: OpenRegions, time: Ints, kind: Bytes, region: NDArray[np.uint32]) -> None:
        if not regions.feed(time, kind, region):
            raise self._store.damaged("its events are out of order")

    def _enter(self, time: int, regions: Ints) -> dict[str, AnyArray]:
        self._cut["open at start"] += regions.size
        return events_at(time, EventKind.ENTER, regions)

    def link(self, links: Links) -> None:
        """Messages matched in the whole trace, if both ends are inside."""
        for matches in matched(self._store):
            inside = np.ones(matches.sent.size, bool)
            for place, time in ((matches.sender, matches.sent), (matches.receiver, matches.received)):
                inside &= self._locations[place] >= 0
                inside &= (time >= self._begin[place]) & (time < self._end[place])
            if inside.any():
                part = Matches(*(column[inside] for column in matches))
                sender, receiver = self._locations[part.sender], self._locations[part.receiver]
                links.add(part._replace(sender=sender, receiver=receiver))

    def tell(self) -> None:
        """Copy the findings of the import and add what was left out."""
        report, cut = self._writer.report, self._cut
        for finding in self._store.report:
            report.findings[finding.name] = replace(finding)
        # Faults of the nesting are counted again in the remaining events.
        for name in ("leave without enter", "enter without leave"):
            report.findings.pop(name, None)
        report.add(
            "trimmed",
            "info",
            f"This is a part of a trace, {self._writer.source.name}; the findings of the import and the "
            f"checks of the clocks are those of the whole. Left out are {cut['rows']} rows of the chosen "
            f"locations and {len(self._store.locations) - len(self._places)} locations.",
        )
        for name, text in (
            ("open at start", "Regions that were open at the start of the part are entered there."),
            ("open at end", "Regions that were open at the end of the part are left there."),
            ("operations", "Collective operations across an end of the part are left out."),
            ("partners", "Messages and roots refer to locations that are not in the part."),
        ):
            if cut[name]:
                report.add(f"trimmed: {name}", "info", text, count=cut[name])
        if self._unseen:
            report.add(
                "trimmed: workers",
                "info",
                "Threads that work in parallel regions only, and in none of the part, enter one for no time.",
                count=self._unseen,
            )

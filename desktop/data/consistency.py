"""What a trace says twice, held against each other: whether the curve can be believed, and how far not.

The formats have no check sums. What they have is redundancy: regions nest, a call of MPI is entered and left
with nothing of MPI in between, messages and collectives lie inside the calls that make them, times of a
location rise. A trace of which nearly all keeps such a rule is damaged where it does not; one that breaks it
everywhere has been written so. Rules that hold in every format are here, those of one format in its importer.

What is found is a loss, and what it may have changed is kept with the locations, as `Location.doubt`: ticks
of which is not known what the location did. `doubt` sums them up for the curve.

Sources: MPI 4.1, 2.9 (calls of MPI do not nest but in callbacks); OTF2 3.2 and OTF 1.12, where the records of
a message or collective stand between the enter and the leave of the call.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from desktop.core.arrays import AnyArray, Bytes, Flags, Ints
from desktop.core.jit import arithmetic
from desktop.core.open_regions import (
    BEGIN,
    FREE,
    NEWER,
    REGION,
    ROW,
    SINCE,
    STRAY,
    TOP,
    USED,
    Classes,
    OpenEntries,
    OpenRegions,
    close_entry,
    no_classes,
    open_entry,
)
from desktop.data.classify import CLASSED, is_communication, mpi_call, region_activity
from desktop.data.events import UNDEFINED, Activity, EventSource, ImportReport, Location, MessageKind, Region
from desktop.data.store import Description
from desktop.progress import Progress

#: A rule that no more than this share of the cases breaks is a rule; what breaks it is damaged.
RARE = 0.02

#: The note of an importer on how many ticks the run has by the trace's own words, where less is there.
ANNOUNCED = "announced ticks"

#: `Location.damage` of a process that was killed or ended without a word to the others: nothing that is there
#: is damaged, but what others expected of it is not there.
CUT_OFF = "cut off"

#: So much of a run may be unknown for that, as a part of the processor-time.
UNKNOWN = 0.01

#: The note of an importer of a trace in which regions are open to the end where the program left them so.
LEFT_OPEN = "regions stay open"

#: Of a collective operation whose communicator is not told, or is each process's own.
NO_COMMUNICATOR = 0xFFFFFFFF

#: So many open regions are searched for the one that is left; no two of a program cross that far.
FARTHEST = 1 << 12

#: Records of a location that wait for the events in which they lie.
WAITING = 1 << 20

#: Of each kind of message whether its record stands inside of the call that waits for it.
_HEARD = np.array([k in (MessageKind.RECV, MessageKind.IRECV) for k in sorted(MessageKind)], np.uint8)

#: Calls of MPI by their usual names, for `misspelt`: those that traces are made of.
_USUAL = """send recv isend irecv bsend ssend rsend ibsend issend irsend sendrecv sendrecv_replace mrecv
    imrecv probe iprobe mprobe improbe wait waitall waitany waitsome test testall testany testsome start
    startall barrier bcast gather gatherv scatter scatterv allgather allgatherv alltoall alltoallv alltoallw
    reduce
    allreduce reduce_scatter reduce_scatter_block scan exscan ibarrier ibcast igather igatherv iscatter
    iscatterv iallgather iallgatherv ialltoall ialltoallv ialltoallw ireduce iallreduce ireduce_scatter iscan
    iexscan init init_thread finalize comm_rank comm_size comm_dup comm_split comm_create comm_free
    put get accumulate rput rget raccumulate win_fence win_lock win_unlock win_create win_free win_start
    win_complete win_post win_wait win_test win_flush file_open file_close file_read file_write
    file_read_at file_write_at file_read_all file_write_all file_read_at_all file_write_at_all"""
_CALLS = frozenset(_USUAL.split())


def misspelt(region: Region) -> bool:
    """Whether a region has a name by which regions are classed, of MPI calls or others, but for one letter,
    or two of a long call's; no tracer writes that, and no two calls of MPI are so alike.

    >>> misspelt(Region("MPI_Rekv")), misspelt(Region("MPI_Se.rrecv")), misspelt(Region("EZTrace fijalize"))
    (True, True, True)
    >>> misspelt(Region("MPI_Rsend")), misspelt(Region("main")), misspelt(Region("write_"))
    (False, False, False)
    """
    name = region.name.lower().strip("_")
    if mpi_call(name) in _CALLS or name in CLASSED:
        return False
    call = name.removeprefix("p") if name[1:4] == "mpi" else name
    for known in _LENGTHS.get(len(call), ()):
        differing = sum(a != b for a, b in zip(known, call, strict=True))
        if differing == 1 or (differing == 2 and known.startswith("mpi_") and len(known) >= _LONG):
            return True
    return False


def _nameless(region: Region) -> bool:
    """Whether a region is a call of MPI, but not by its name."""
    return region.paradigm == "mpi" and region.role != "artificial" and not mpi_call(region.name)


#: Letters of a long name.
_LONG = 12
_LENGTHS: dict[int, list[str]] = {}
for _call in sorted(_CALLS):
    _LENGTHS.setdefault(4 + len(_call), []).append(f"mpi_{_call}")
for _name in sorted(CLASSED):
    if len(_name) >= _LONG:  # short ones are words as programs have them
        _LENGTHS.setdefault(len(_name), []).append(_name)


def nearly_round(resolution: int) -> bool:
    """Whether ticks per second are a power of ten but for one hexadecimal digit, for one byte by more
    than 0.1 %, or all but the first byte: 0x3B...... by more than a clock of 1 GHz can be off.

    Clocks that are known by name are of whole kHz; of those of 1 GHz that are measured to 20 ppm one in 700
    is like that.

    >>> [nearly_round(n) for n in (0x3B9ACA00, 0x3B9ACA08, 0x3F9ACA00, 0x3B000000, 2_399_998_123)]
    [False, True, True, True, False]
    """
    if resolution % 1000 == 0:
        return False
    for power in range(3, 13):
        whole = 10**power
        changed = resolution ^ whole
        first, last = changed.bit_length() - 1, (changed & -changed).bit_length() - 1
        if first // 4 == last // 4:
            return True
        if first // 8 == last // 8 and abs(resolution - whole) > whole // 1000:
            return True
        # Spread spectrum takes 0.5 % of the frequency that a clock has by its name, at most.
        if power > 5 and 0.006 < abs(resolution / whole - 1) < 0.011:
            return True
    return False


def begins_round(resolution: int) -> bool:
    """Whether ticks per second have the first hexadecimal digits of a power of ten, but more or fewer behind.

    >>> begins_round(0x3B9ACA00), begins_round(0x3B9ACA4), begins_round(24 * 10**6)
    (False, True, False)
    """
    for power in range(5, 13):
        a, b = f"{10**power:x}", f"{resolution:x}"
        same = len(a) != len(b) and a[:5] == b[:5]
        # Clocks of 16 and 62.5 MHz have the digits of 1 MHz and 1 GHz.
        if same and a.rstrip("0") != b.rstrip("0"):
            return True
    return False


@dataclass(frozen=True)
class Doubt:
    """How much of a curve may be wrong for what its trace has lost.

    seconds : processor-seconds at most; None: part of the trace is lost, and how much that is is not known.
    whole : processor-seconds of the run.
    """

    seconds: float | None
    whole: float

    @property
    def short(self) -> str:
        """What stands beside a curve."""
        if self.seconds is None:
            return "an unknown part is in doubt"
        share = 100 * self.seconds / self.whole if self.whole else 100.0
        percent = f"{share:.0f}" if share >= 10 else f"{share:.2g}"
        return f"up to {self.seconds:.3g} of {self.whole:.3g} processor-seconds ({percent} %) are in doubt"

    @property
    def sentence(self) -> str:
        """What a reader of the curve must know."""
        return f"{self.short[:1].upper()}{self.short[1:]}: part of the trace is lost or contradicts itself."


def doubt(store: Description) -> Doubt | None:
    """What of the curve of a trace whose import is over is in doubt; None: nothing that is known."""
    if not store.report.lossy:
        return None
    cpus = [location for location in store.locations if location.kind == "cpu"]
    spans = [span for location in cpus if (span := location.span(store.repair))]
    begin, end = min((a for a, _ in spans), default=0), max((b for _, b in spans), default=0)
    run = max(end - begin, int(store.notes.get(ANNOUNCED, 0)))
    ticks = 0
    for location in cpus:
        here, span = location.doubt, location.span(store.repair)
        if span is None:
            here = run
        elif location.damage:
            # Whatever is missing comes after what is there.
            here = max(here, end - span[1])
        ticks += min(here, run)
    unit = 1 / store.ticks_per_second
    return Doubt(ticks * unit if ticks else None, len(cpus) * run * unit)


# Long: one check after the other, each with its sentence.
def judge(
    source: EventSource,
    report: ImportReport,
    progress: Progress,
    followed: NestingDigest | None = None,
) -> None:
    """Compare what the events of all locations say; set the activity of regions whose definition is missing
    or contradicted, and add what is wrong to the report and to `Location.doubt`.

    `followed`: what passed by on import, of which the events are not read again.

    Raises
    ------
    Cancelled : by `progress`.
    """
    if source.nesting != "outermost":
        return  # states stand beside the regions there

    def tell(name: str, text: str, which: Sequence[int], among: Sequence[Region | Location]) -> None:
        if which:
            report.add(name, "loss", text, count=len(which), where=among[which[0]].name)

    regions = list(source.regions)
    walks = dict(follow(source, regions, progress, followed))
    spoken, heard, calls = (
        sum((getattr(walk, name) for walk in walks.values()), np.zeros(len(regions), np.int64))
        for name in ("spoken", "heard", "calls")
    )
    # A call that makes messages is communication, whatever its definition says. A function that only holds
    # such calls is none: they are regions of their own then, and hold the records.
    speaking = (spoken > 0) & (2 * spoken >= calls)
    # Where no region is communication, the tracer has none of it, and there is nothing to compare.
    known = any(is_communication(region) for region, n in zip(regions, calls.tolist(), strict=True) if n)
    turned = [
        i
        for i in np.flatnonzero(speaking).tolist()
        if regions[i].activity is None
        and region_activity(regions[i]) is Activity.COMPUTING
        and (known or regions[i].role == UNDEFINED)
    ]
    for i in turned:
        regions[i].activity = Activity.IDLE if heard[i] else Activity.OVERHEAD
    tell(
        "regions with messages",
        "regions in which messages or collective operations lie are defined as something else; they count as "
        "communication",
        turned,
        regions,
    )
    spelt = [i for i, region in enumerate(regions) if calls[i] and misspelt(region)]
    nameless = [i for i, region in enumerate(regions) if calls[i] and _nameless(region)]
    if len(nameless) <= max(1, RARE * len(regions)):
        spelt = sorted({*spelt, *nameless})
    tell(
        "misspelt calls",
        "names of regions are those of MPI calls or the like but for a letter or two, or regions of MPI have "
        "no name of it; the definitions are damaged",
        spelt,
        regions,
    )
    doubtful = {*turned, *spelt, *(i for i, region in enumerate(regions) if region.role == UNDEFINED)}
    doubtful = {i for i in doubtful if calls[i]}
    total = int(sum(walk.communications for walk in walks.values()))
    loose = {i: walk.loose for i, walk in walks.items() if walk.loose}
    # Where recording began inside of regions, it did so everywhere.
    if 2 * len(loose) < len(walks):
        _tell_nesting(source, report, walks, "loose", loose, "regions are left that were not entered")
    cut = {i for i, place in enumerate(source.locations) if place.damage == CUT_OFF}
    _tell_cut(source, report, cut)
    # Tracers close what is open when a location ends; one that does not has it so everywhere. In a trace that
    # is cut, which has been told, that says nothing new.
    closed = not report.lossy and not source.notes.get(LEFT_OPEN)
    if closed and 2 * sum(walk.open > 0 for walk in walks.values()) < len(walks):
        text = "regions are entered and never left, as on no other location"
        each = {i: walk.open for i, walk in walks.items() if walk.open and not walk.died}
        _tell_nesting(source, report, walks, "open", each, text)
    for name, text in (
        ("crossed", "calls of MPI are left inside of, or around, regions that were entered later"),
        ("stray", "calls of MPI are left that were not entered"),
        ("unclosed", "calls of MPI are entered and never left, while their location goes on"),
        ("inner", "calls of MPI are entered inside of others"),
    ):
        each = {i: getattr(walk, name) for i, walk in walks.items() if getattr(walk, name)}
        if name != "inner" or sum(each.values()) <= max(1, RARE * total):
            _tell_nesting(source, report, walks, name, each, text)
    late = _outliving(source)
    for i in late:
        location = source.locations[i]
        location.doubt = max(location.doubt, walks[i].longest if i in walks else 0)
    text = "threads go on after the first thread of their process has ended; times are changed there"
    tell("late threads", text, late, source.locations)
    there = [source.locations[i] for i in walks]
    ends = [place.last for place in there]
    tell_far(
        report,
        there,
        [
            walk.before if last is None or last <= walk.last else walk.last
            for walk, last in zip(walks.values(), ends, strict=True)
        ],
    )
    if doubtful:
        for i, walk in walks.items():
            source.locations[i].doubt += int(sum(walk.ticks[region] for region in doubtful))
    # While a tracer is switched off it records no collectives either.
    off = [r.synthetic and region_activity(r) is Activity.UNMEASURED for r in regions]
    if not (calls[np.array(off, bool)] > 0).any():
        short = _short(source, cut | {i for i, walk in walks.items() if walk.died})
        for i in short:
            source.locations[i].doubt = max(source.locations[i].doubt, walks[i].longest if i in walks else 0)
        tell(
            "unequal collectives",
            "locations take part in fewer collective operations of a communicator than others do; records "
            "are missing or changed",
            short,
            source.locations,
        )


def _spans(source: EventSource) -> dict[int, tuple[int, int]]:
    """First and last tick, as recorded, of the processors that have any."""
    return {
        i: (place.first, place.last)
        for i, place in enumerate(source.locations)
        if place.kind == "cpu" and place.first is not None and place.last is not None
    }


def _tell_cut(source: EventSource, report: ImportReport, cut: set[int]) -> None:
    """Say it if locations that were cut off may have gone on for long behind their last record."""
    spans = _spans(source)
    end, begin = (
        most((span[side] for span in spans.values()), default=0) for most, side in ((max, 1), (min, 0))
    )
    late = [i for i in cut & spans.keys() if end - spans[i][1] > UNKNOWN * (end - begin)]
    if sum(end - spans[i][1] for i in late) > UNKNOWN * len(spans) * (end - begin):
        report.add(
            "cut off",
            "loss",
            "processes were killed, and others went on: what they did after their last record is not known",
            count=len(late),
            where=source.locations[late[0]].name,
        )


def _tell_nesting(
    source: EventSource,
    report: ImportReport,
    walks: Mapping[int, _Walk],
    name: str,
    each: Mapping[int, int],
    text: str,
) -> None:
    """Say what breaks the nesting, `each` the times that it does so by location."""
    if not each:
        return
    report.add(
        f"broken nesting: {name}",
        "loss",
        f"{text}; records are missing or changed there",
        count=sum(each.values()),
        where=source.locations[min(each)].name,
    )
    for i in each:
        location = source.locations[i]
        location.doubt = max(location.doubt, walks[i].longest)


#: Threads may end so much later than their process, as a part of the run.
_LATER = 0.01


def _outliving(source: EventSource) -> list[int]:
    """Threads that go on after the first thread of their process, with which a program ends; none where as
    many as half do, which is how a tracer closes its records then."""
    spans = {i: span for i, span in _spans(source).items() if source.locations[i].rank >= 0}
    ends = {
        source.locations[i].rank: last for i, (_, last) in spans.items() if not source.locations[i].thread
    }
    threads = [i for i in spans if source.locations[i].thread and source.locations[i].rank in ends]
    run = max((b for _, b in spans.values()), default=0) - min((a for a, _ in spans.values()), default=0)
    late = [i for i in threads if spans[i][1] - ends[source.locations[i].rank] > _LATER * run]
    return late if 2 * len(late) < len(threads) else []


#: A last record that is so many times as far away as all others are from each other is misdated.
FAR = 10


def far(places: Sequence[tuple[int, int, int]]) -> list[int]:
    """Which places have a last time that lies far behind all other times of a trace, as no program ends.

    places : of each its first time, its latest but for the last one, and its last.
    """
    if len(places) < 2:
        return []
    begin, ends = min(first for first, _, _ in places), sorted(last for _, _, last in places)
    far_off = []
    for i, (_, before, last) in enumerate(places):
        reached = max(before, ends[-2])
        if last == ends[-1] and last - reached > FAR * (reached - begin) > 0:
            far_off.append(i)
    return far_off


def tell_far(report: ImportReport, locations: Sequence[Location], before: Sequence[int]) -> None:
    """Say so where a location has such a last time; `before`: its latest time but for that."""
    spans = [
        (place.first, earlier, place.last)
        for place, earlier in zip(locations, before, strict=True)
        if place.first is not None and place.last is not None
    ]
    if len(spans) < len(locations):
        return
    for i in far(spans):
        report.add(
            "far time",
            "loss",
            "the last time of a location lies far behind all others of the trace; it is damaged",
            where=locations[i].name,
        )
        locations[i].doubt = max(locations[i].doubt, spans[i][2] - spans[i][1])


def _short(source: EventSource, died: set[int]) -> list[int]:
    """Locations whose process has fewer collectives on a communicator than another one that has some; those
    that `died` may."""
    counts: dict[int, dict[int, int]] = {}
    seats: dict[int, int] = {}  # the first location of a process
    for i, location in enumerate(source.locations):
        process = location.rank if location.rank >= 0 else -2 - i
        seat = seats.setdefault(process, i)
        for (communicator,) in source.blocks("collectives", i, "communicator"):
            for number, count in zip(*np.unique(communicator, return_counts=True), strict=True):
                if number != NO_COMMUNICATOR:
                    of = counts.setdefault(int(number), {})
                    of[seat] = of.get(seat, 0) + int(count)
    return sorted({i for of in counts.values() for i in of if of[i] < max(of.values()) and i not in died})


class _Marked(OpenRegions):
    """Open regions with two marks each: whether a record of MPI lies directly inside, and one that was
    received."""

    def __init__(self, regions: int) -> None:
        super().__init__(no_classes(regions))
        self._marks = np.zeros((2, self.opened.entries.shape[1]), np.uint8)

    def walk(self, time: Ints, kind: AnyArray, region: AnyArray, *about: AnyArray) -> None:
        """Replay events as `_nest` does."""
        self.state[ROW] = 0
        while True:
            _nest(time, kind, region, *about, self.rule, self.opened, self._marks)
            if self.state[ROW] == time.size:
                return
            self._make_room()
            self._marks = np.concatenate([self._marks, np.zeros_like(self._marks)], axis=1)


class _Walk:
    """The nesting of one location.

    spoken, heard, calls, ticks : (regions,) calls in which records of MPI lie, those with receives or
    collectives among them, all calls, ticks from enter to leave. crossed, stray, unclosed, inner : calls of
    MPI that break the nesting. loose, open : leaves of whatever region that was not entered, and enters
    that were not left. communications : calls of MPI. longest : ticks from the first to the last event.
    last, before : time of the last event, and that before it. died : the last event is an enter, as if the
    program had ended there.
    """

    def __init__(self, speaks: Flags) -> None:
        self._speaks = speaks
        self.spoken, self.heard, self.calls, self.ticks = np.zeros((4, speaks.size), np.int64)
        self._state = np.zeros(_FIELDS, np.int64)

    def know(self, speaks: Flags) -> None:
        """More regions have been defined."""
        more = (0, speaks.size - self._speaks.size)
        if more == (0, 0):
            return
        self._speaks = speaks
        for name in ("spoken", "heard", "calls", "ticks"):
            setattr(self, name, np.pad(getattr(self, name), more))

    def take(
        self, regions: _Marked, time: Ints, kind: AnyArray, region: AnyArray, record_time: Ints,
        record_heard: AnyArray,
    ) -> int:  # fmt: skip
        """Events, and the records of messages that lie in them or later: how many of these lie in them."""
        self._state[_RECORD] = 0
        regions.walk(
            time, kind, region, record_time, record_heard, self._speaks, self.spoken, self.heard, self.calls,
            self.ticks, self._state,
        )  # fmt: skip
        return int(self._state[_RECORD])

    def finish(self, regions: _Marked) -> None:
        state, left = self._state, regions.open[0]
        self.crossed, self.stray, self.loose = int(state[_CROSSED]), int(state[_STRAY]), regions.stray
        self.inner, self.communications = int(state[_INNER]), int(state[_SPOKE])
        self.died, self.open = bool(state[_ENTERED]), left.size
        # The call in which a program died was entered last of all.
        self.unclosed = int(self._speaks[left[: left.size - self.died]].sum())
        self.longest = int(state[_LAST] - state[_FIRST])
        self.last, self.before = int(state[_LAST]), int(state[_BEFORE])


def _speaks(regions: Sequence[Region]) -> Flags:
    return np.array([is_communication(r) and not r.synthetic for r in regions], np.bool_)


def follow(
    source: EventSource, regions: list[Region], progress: Progress, followed: NestingDigest | None
) -> Iterator[tuple[int, _Walk]]:
    """The walk through each processor that has events, of which only those not `followed` are read."""
    speaks = _speaks(regions)
    places = [i for i, at in enumerate(source.locations) if at.kind == "cpu" and source.rows("events", i)]
    known = {} if followed is None else followed.walks(speaks)
    left = [i for i in places if i not in known]
    total, done = sum(source.rows("events", i) for i in left), 0
    again = NestingDigest(source, sys.maxsize)
    for i in left:
        records = [_Records(source, i, table) for table in _RECORDS]
        for block in source.blocks("events", i, *_EVENTS):
            for stream in records:
                stream.hand_over(int(block[0][-1]), again)
            again.take("events", i, dict(zip(_EVENTS, block, strict=True)))
            done += block[0].size
            progress.step(done, total, "comparing regions and messages")
    again.finish()
    known |= again.walks(speaks)
    for i in places:
        yield i, known[i]


_EVENTS = ("time", "kind", "region")
_RECORDS = {"messages": ("time", "kind"), "collectives": ("begin",)}


class _Records:
    """The stored messages or collectives of a location, which go to a digest before the events."""

    def __init__(self, source: EventSource, location: int, table: str) -> None:
        self._table, self._location = table, location
        self._blocks = source.blocks(table, location, *_RECORDS[table])
        self._reached = BEGIN

    def hand_over(self, time: int, digest: NestingDigest) -> None:
        """Those up to `time` at least."""
        while self._reached <= time and (block := next(self._blocks, None)) is not None:
            self._reached = int(block[0][-1])
            digest.take(self._table, self._location, dict(zip(_RECORDS[self._table], block, strict=True)))


class NestingDigest:
    """A `desktop.data.store.Digest`: the same walks, of locations whose messages and collectives are stored
    before the events in which they lie, while they pass by. Memory: records of a location that wait for
    events, at most `waiting`."""

    def __init__(self, source: EventSource, waiting: int = WAITING) -> None:
        self._source, self._waiting = source, waiting
        self._speaks = np.zeros(0, np.bool_)
        self._marked = _Marked(0)
        self._walks: dict[int, _Walk | None] = {}  # None: events came before their records
        self._location = -1
        self._begin()

    def _begin(self) -> None:
        self._times, self._heard = np.zeros(0, np.int64), np.zeros(0, np.uint8)
        self._held: list[AnyArray] = [np.zeros(0, dtype) for dtype in (np.int64, np.uint8, np.uint32)]
        self._reached = BEGIN

    def take(self, table: str, location: int, block: Mapping[str, AnyArray]) -> None:
        if table not in ("events", "messages", "collectives") or self._source.nesting != "outermost":
            return
        if location != self._location:
            self.finish()
            self._location = location
            if location in self._walks:
                self._walks[location] = None
            else:
                self._know()
                self._walks[location] = _Walk(self._speaks)
                self._marked.begin()
        walk = self._walks[location]
        if walk is None:
            return
        if table == "events":
            self._follow(walk, block["time"], block["kind"], block["region"])
            return
        messages = table == "messages"
        time = block["time" if messages else "begin"]
        heard = _HEARD[block["kind"]] if messages else np.ones(time.size, np.uint8)
        if time[0] <= self._reached or self._times.size + time.size > self._waiting:
            self._walks[location] = None
            return
        ordered = not self._times.size or self._times[-1] <= time[0]
        self._times, self._heard = np.append(self._times, time), np.append(self._heard, heard)
        if not ordered:
            order = np.argsort(self._times, kind="stable")
            self._times, self._heard = self._times[order], self._heard[order]

    def _know(self) -> None:
        # The importer's thread may define more at any time: a slice of the list is made in one go.
        more = self._source.regions[self._speaks.size :]
        if more:
            self._speaks = np.append(self._speaks, _speaks(more))
            self._marked.know(no_classes(self._speaks.size))

    def _follow(self, walk: _Walk, time: Ints, kind: AnyArray, region: AnyArray, wait: int = 1) -> None:
        """All but the last `wait` events: a record of its time may come yet."""
        self._know()
        walk.know(self._speaks)
        rows = [time, kind, region]
        if self._held[0].size:
            rows = [np.concatenate(pair) for pair in zip(self._held, rows, strict=True)]
        now = rows[0].size - wait
        self._held = [np.array(column[now:]) for column in rows]
        if now > 0:
            time, kind, region = (np.ascontiguousarray(column[:now]) for column in rows)
            done = walk.take(self._marked, time, kind, region, self._times, self._heard)
            self._times, self._heard = self._times[done:], self._heard[done:]
            self._reached = int(time[-1])

    def finish(self) -> None:
        walk = self._walks.get(self._location)
        if walk is not None:
            time, kind, region = (column[:0] for column in self._held)
            self._follow(walk, time, kind, region, wait=0)
            walk.finish(self._marked)
        self._location = -1
        self._begin()

    def release(self) -> None: ...

    def walks(self, speaks: Flags) -> dict[int, _Walk]:
        """Of the locations that were followed, if the calls of MPI among the regions are still these."""
        if not np.array_equal(self._speaks, speaks[: self._speaks.size]):
            return {}
        walks = {i: walk for i, walk in self._walks.items() if walk is not None}
        for walk in walks.values():
            walk.know(speaks)
        return walks


# Fields of a walk's state: next record, time of the first and the last event and of that before it, what is
# counted, whether there was an event, and whether the last one was an enter.
_RECORD, _FIRST, _LAST, _BEFORE, _CROSSED, _STRAY, _INNER, _SPOKE, _BEGUN, _ENTERED, _FIELDS = range(11)


@arithmetic
def _nest(
    time: Ints, kind: Bytes, region: AnyArray, record_time: Ints, record_heard: Bytes, speaks: Flags,
    spoken: Ints, heard: Ints, calls: Ints, ticks: Ints, seen: Ints, rule: Classes, opened: OpenEntries,
    marks: Bytes,
) -> None:  # fmt: skip
    """Replay events from row ``state[ROW]`` on (`desktop.core.open_regions`), until the end or where there is
    no room for another open region. marks (2, room): whether a record lies directly inside of an entry, and
    whether one that was received."""
    last, entries, state, _ = opened
    of_region = entries[REGION]
    for i in range(state[ROW], time.size):
        t, r = time[i], np.int64(region[i])
        enters = kind[i] == 0
        if enters and state[FREE] < 0 and state[USED] == entries.shape[1]:
            state[ROW] = i
            return
        if seen[_BEGUN] == 0:
            seen[_BEGUN] = 1
            seen[_FIRST] = seen[_LAST] = seen[_BEFORE] = t
        if t > seen[_LAST]:
            seen[_BEFORE] = seen[_LAST]
        seen[_LAST] = t
        seen[_ENTERED] = enters
        top = state[TOP]
        in_call = top >= 0 and speaks[of_region[top]]
        # Records at the very time of an event may lie on either side of it: they are the call's of MPI.
        at = seen[_RECORD]
        here = not enters and in_call
        later = i + 1 < time.size and time[i + 1] > t
        while at < record_time.size and (
            record_time[at] < t or (record_time[at] == t and (here or (not enters and top >= 0 and later)))
        ):
            if top >= 0:
                marks[0, top] = 1
                marks[1, top] |= record_heard[at]
            at += 1
        seen[_RECORD] = at
        if enters:
            calls[r] += 1
            seen[_SPOKE] += speaks[r]
            seen[_INNER] += speaks[r] and in_call
            open_entry(r, -1, t, rule, opened)
            marks[0, state[TOP]] = marks[1, state[TOP]] = 0
            continue
        entry = last[r]
        if entry < 0:
            seen[_STRAY] += speaks[r]
            state[STRAY] += 1
            continue
        across, far, above = False, 1, entries[NEWER, entry]
        while above >= 0 and far < FARTHEST:
            across = across or speaks[r] or speaks[of_region[above]]
            above = entries[NEWER, above]
            far += 1
        if above >= 0:
            continue
        spoken[r] += marks[0, entry]
        heard[r] += marks[1, entry]
        ticks[r] += t - entries[SINCE, entry]
        seen[_CROSSED] += across
        close_entry(entry, r, rule, opened)
    state[ROW] = time.size

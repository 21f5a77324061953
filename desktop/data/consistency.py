"""Compares what a trace records twice, to tell whether the curve is reliable, and how much of it is not.

The formats have no checksums, but redundancy: regions nest, an MPI call is entered and left without other MPI
calls in between, messages and collectives are inside the calls that make them, times of a location rise. If
nearly all of a trace follows such a rule, it is damaged where it does not; a trace that breaks it everywhere
was written that way. Rules for all formats are here, those of one format in its importer.

Findings are losses, and what they may have changed is stored per location, as `Location.doubt`: ticks in
which the activity of the location is uncertain. `doubt` sums them up for the curve.

Sources: MPI 4.1, 2.9 (MPI calls do not nest except in callbacks); OTF2 3.2 and OTF 1.12, where the records of
a message or collective are between the enter and the leave of the call.
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
from desktop.core.units import trimmed
from desktop.data.classify import CLASSED, is_communication, mpi_call, region_activity
from desktop.data.events import (
    NO_COMMUNICATOR,
    UNDEFINED,
    Activity,
    EventSource,
    ImportReport,
    Location,
    MessageKind,
    Region,
)
from desktop.data.store import Description
from desktop.progress import Progress

#: Largest share of cases that may break a rule, which then is a rule; these cases are damage.
RARE = 0.02

#: Importer's note: the number of ticks that the run has according to the trace, if less is there.
ANNOUNCED = "announced ticks"

#: `Location.damage` of a process that was killed or ended without notice: nothing in it is damaged, but what
#: others expected of it is missing.
CUT_OFF = "cut off"

#: Largest unknown share of the processor-time of a run that is accepted for that reason.
UNKNOWN = 0.01

#: Importer's note: regions stay open to the end where the program left them open.
LEFT_OPEN = "regions stay open"

#: Most open regions searched for the one that is left; regions of a program do not cross that far.
FARTHEST = 1 << 12

#: Most records of a location that wait for the events around them.
WAITING = 1 << 20

#: By kind of message: whether its record is inside of the call that waits for it.
_HEARD = np.array([k in (MessageKind.RECV, MessageKind.IRECV) for k in sorted(MessageKind)], np.uint8)

#: Usual names of MPI calls in traces, for `misspelt`.
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
    """Whether a region's name is that of an MPI call or another known one with one wrong letter, or two in a
    long name; no tracer writes that, and no two MPI calls are so similar.

    >>> misspelt(Region("MPI_Rekv")), misspelt(Region("MPI_Se.rrecv")), misspelt(Region("EZTrace fijalize"))
    (True, True, True)
    >>> misspelt(Region("MPI_Rsend")), misspelt(Region("main")), misspelt(Region("write_"))
    (False, False, False)
    """
    name = region.name.lower().strip("_")
    if mpi_call(name) in _CALLS or name in CLASSED:
        return False
    call = name.removeprefix("p") if name[1:4] == "mpi" else name
    for right in _LENGTHS.get(len(call), ()):
        differing = sum(a != b for a, b in zip(right, call, strict=True))
        if differing == 1 or (differing == 2 and right.startswith("mpi_") and len(right) >= _LONG):
            return True
    return False


def _nameless(region: Region) -> bool:
    """Whether a region is an MPI call without the name of one."""
    return region.paradigm == "mpi" and region.role != "artificial" and not mpi_call(region.name)


#: Least length of a long name.
_LONG = 12
_LENGTHS: dict[int, list[str]] = {}
for _call in sorted(_CALLS):
    _LENGTHS.setdefault(4 + len(_call), []).append(f"mpi_{_call}")
for _name in sorted(CLASSED):
    if len(_name) >= _LONG:  # short ones are common words in programs
        _LENGTHS.setdefault(len(_name), []).append(_name)


def nearly_round(resolution: int) -> bool:
    """Whether ticks per second are a power of ten except for one hexadecimal digit, for one byte by more than
    0.1 %, or for all but the first byte: 0x3B...... by more than the error of a 1 GHz clock.

    Clocks with known names have whole kHz; of 1 GHz clocks measured to 20 ppm one in 700 is like that.

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
        # Spread spectrum changes the nominal frequency of a clock by 0.5 % at most.
        if power > 5 and 0.006 < abs(resolution / whole - 1) < 0.011:
            return True
    return False


def begins_round(resolution: int) -> bool:
    """Whether ticks per second have the first hexadecimal digits of a power of ten, but more or fewer.

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
    """How much of a curve may be wrong because of what its trace has lost.

    seconds : processor-seconds at most; None: part of the trace is lost, and it is unknown how much.
    whole : processor-seconds of the run.
    """

    seconds: float | None
    whole: float

    @property
    def short(self) -> str:
        """A short text for display beside a curve."""
        if self.seconds is None:
            return "an unknown part is in doubt"
        share = 100 * self.seconds / self.whole if self.whole else 100.0
        percent = f"{share:.0f}" if share >= 10 else f"{share:.2g}"
        seconds, whole = trimmed(self.seconds, 3), trimmed(self.whole, 3)
        return f"up to {seconds} of {whole} processor-seconds ({percent} %) are in doubt"

    @property
    def sentence(self) -> str:
        """The text for a reader of the curve."""
        return f"{self.short[:1].upper()}{self.short[1:]}: part of the trace is lost or contradicts itself."


def doubt(store: Description) -> Doubt | None:
    """The doubtful part of the curve of an imported trace; None: nothing is known to be doubtful."""
    if not store.report.lossy:
        return None
    cpus = [location for location in store.locations if location.kind == "cpu"]
    spans = [span for location in cpus if (span := location.span(store.repair))]
    begin, end = min((a for a, _ in spans), default=0), max((b for _, b in spans), default=0)
    run = max(end - begin, int(store.notes.get(ANNOUNCED, 0)))
    ticks = 0
    for location in cpus:
        doubtful, span = location.doubt, location.span(store.repair)
        if span is None:
            doubtful = run
        elif location.damage:
            # Whatever is missing comes after what is there.
            doubtful = max(doubtful, end - span[1])
        ticks += min(doubtful, run)
    unit = 1 / store.ticks_per_second
    return Doubt(ticks * unit if ticks else None, len(cpus) * run * unit)


# Long: one check after the other, each with its sentence.
def judge(
    source: EventSource,
    report: ImportReport,
    progress: Progress,
    followed: NestingDigest | None = None,
) -> None:
    """Compare the events of all locations with the definitions and each other; set the activity of regions
    whose definition is missing or contradicted, and add findings to the report and to `Location.doubt`.

    `followed`: the digest of the import, whose locations are not read again.

    Raises
    ------
    Cancelled : by `progress`.
    """
    if source.nesting != "outermost":
        return  # states decide beside the regions there

    def tell(name: str, text: str, which: Sequence[int], among: Sequence[Region | Location]) -> None:
        if which:
            report.add(name, "loss", text, count=len(which), where=among[which[0]].name)

    regions = list(source.regions)
    walks = dict(follow(source, regions, progress, followed))
    spoken, heard, calls = (
        sum((getattr(walk, name) for walk in walks.values()), np.zeros(len(regions), np.int64))
        for name in ("spoken", "heard", "calls")
    )
    # A call with messages is communication, whatever its definition. A function that only contains such calls
    # is not: they are regions of their own then, and contain the records.
    speaking = (spoken > 0) & (2 * spoken >= calls)
    # If no region is communication, the tracer records none, and there is nothing to compare.
    talks = any(is_communication(region) for region, n in zip(regions, calls.tolist(), strict=True) if n)
    turned = [
        i
        for i in np.flatnonzero(speaking).tolist()
        if regions[i].activity is None
        and region_activity(regions[i]) is Activity.COMPUTING
        and (talks or regions[i].role == UNDEFINED)
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
        "names of regions differ from those of MPI calls or the like by a letter or two, or MPI regions have "
        "no name of an MPI call; the definitions are damaged",
        spelt,
        regions,
    )
    doubtful = {*turned, *spelt, *(i for i, region in enumerate(regions) if region.role == UNDEFINED)}
    doubtful = {i for i in doubtful if calls[i]}
    total = int(sum(walk.communications for walk in walks.values()))
    loose = {i: walk.loose for i, walk in walks.items() if walk.loose}
    # If recording began inside of regions, it did so on all locations.
    if 2 * len(loose) < len(walks):
        _tell_nesting(source, report, walks, "loose", loose, "regions are left that were not entered")
    cut = {i for i, place in enumerate(source.locations) if place.damage == CUT_OFF}
    _tell_cut(source, report, cut)
    # A tracer closes open regions when a location ends, or never does. In a trace that is cut, which has been
    # reported already, open regions are no news.
    closed = not report.lossy and not source.notes.get(LEFT_OPEN)
    if closed and 2 * sum(walk.open > 0 for walk in walks.values()) < len(walks):
        text = "regions are entered and never left, unlike on other locations"
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
        source.locations[i].doubt_for(walks[i].longest if i in walks else 0)
    text = "threads go on after the first thread of their process has ended; times are changed there"
    tell("late threads", text, late, source.locations)
    locations = [source.locations[i] for i in walks]
    ends = [place.last for place in locations]
    tell_far(
        report,
        locations,
        [
            walk.before if last is None or last <= walk.last else walk.last
            for walk, last in zip(walks.values(), ends, strict=True)
        ],
    )
    if doubtful:
        for i, walk in walks.items():
            source.locations[i].doubt += int(sum(walk.ticks[region] for region in doubtful))
    # While a tracer is switched off it does not record collectives either.
    off = [r.synthetic and region_activity(r) is Activity.UNMEASURED for r in regions]
    if not (calls[np.array(off, bool)] > 0).any():
        short = _short(source, cut | {i for i, walk in walks.items() if walk.died})
        for i in short:
            source.locations[i].doubt_for(walks[i].longest if i in walks else 0)
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
    """Report locations that were cut off and may have gone on for long after their last record."""
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
    """Report violations of the nesting, `each`: their number by location."""
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
        source.locations[i].doubt_for(walks[i].longest)


#: Longest time that threads may outlive their process, as a share of the run.
_LATER = 0.01


def _outliving(source: EventSource) -> list[int]:
    """Threads that go on after the first thread of their process, with which a program ends; none if at least
    half of them do, which is how some tracers close their records."""
    spans = {i: span for i, span in _spans(source).items() if source.locations[i].rank >= 0}
    ends = {
        source.locations[i].rank: last for i, (_, last) in spans.items() if not source.locations[i].thread
    }
    threads = [i for i in spans if source.locations[i].thread and source.locations[i].rank in ends]
    run = max((b for _, b in spans.values()), default=0) - min((a for a, _ in spans.values()), default=0)
    late = [i for i in threads if spans[i][1] - ends[source.locations[i].rank] > _LATER * run]
    return late if 2 * len(late) < len(threads) else []


#: A last record is misdated if it is so many times as far away as all others are from each other.
FAR = 10


def far(places: Sequence[tuple[int, int, int]]) -> list[int]:
    """Which places have a last time far after all other times of a trace, as in no program.

    places : for each its first time, its last but one, and its last.
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
    """Report locations with such a last time; `before`: their last time but one."""
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
        locations[i].doubt_for(spans[i][2] - spans[i][1])


def _short(source: EventSource, died: set[int]) -> list[int]:
    """Locations whose process has fewer collectives on a communicator than another process that has some;
    except those that `died`."""
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
    """Open regions with two marks each: whether a record of MPI is directly inside, and one of something
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

    spoken, heard, calls, ticks : (regions,) calls that contain records of MPI, those with receives or
        collectives among them, all calls, ticks from enter to leave. crossed, stray, unclosed, inner : MPI
        calls that violate the nesting. loose, open : leaves of any region without an enter, and enters
        without a leave. communications : MPI calls. longest : ticks from the first to the last event. last,
        before : time of the last event, and of the one before it. died : the last event is an enter, as if
        the program had ended there.
    """

    def __init__(self, speaks: Flags) -> None:
        self._speaks = speaks
        self.spoken, self.heard, self.calls, self.ticks = np.zeros((4, speaks.size), np.int64)
        self._state = np.zeros(_FIELDS, np.int64)

    def know(self, speaks: Flags) -> None:
        """Add regions that have been defined since."""
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
        """Replay events with the message records in them or later; returns how many of these are in them."""
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
        # The call in which a program died was entered last.
        self.unclosed = int(self._speaks[left[: left.size - self.died]].sum())
        self.longest = int(state[_LAST] - state[_FIRST])
        self.last, self.before = int(state[_LAST]), int(state[_BEFORE])


def _speaks(regions: Sequence[Region]) -> Flags:
    return np.array([is_communication(r) and not r.synthetic for r in regions], np.bool_)


def follow(
    source: EventSource, regions: list[Region], progress: Progress, followed: NestingDigest | None
) -> Iterator[tuple[int, _Walk]]:
    """The walk through each processor that has events; only those not `followed` are read."""
    speaks = _speaks(regions)
    places = [i for i, at in enumerate(source.locations) if at.kind == "cpu" and source.rows("events", i)]
    walks = {} if followed is None else followed.walks(speaks)
    left = [i for i in places if i not in walks]
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
    walks |= again.walks(speaks)
    for i in places:
        yield i, walks[i]


_EVENTS = ("time", "kind", "region")
_RECORDS = {"messages": ("time", "kind"), "collectives": ("begin",)}


class _Records:
    """The stored messages or collectives of a location, which go to a digest before the events."""

    def __init__(self, source: EventSource, location: int, table: str) -> None:
        self._table, self._location = table, location
        self._blocks = source.blocks(table, location, *_RECORDS[table])
        self._reached = BEGIN

    def hand_over(self, time: int, digest: NestingDigest) -> None:
        """Hand over records, at least up to `time`."""
        while self._reached <= time and (block := next(self._blocks, None)) is not None:
            self._reached = int(block[0][-1])
            digest.take(self._table, self._location, dict(zip(_RECORDS[self._table], block, strict=True)))


class NestingDigest:
    """A `desktop.data.store.Digest` that makes the same walks while rows are written, for locations whose
    messages and collectives are stored before the events around them. Memory: records of a location that wait
    for events, at most `waiting`."""

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
        # The importer's thread may define more at any time: a slice of the list is made atomically.
        more = self._source.regions[self._speaks.size :]
        if more:
            self._speaks = np.append(self._speaks, _speaks(more))
            self._marked.know(no_classes(self._speaks.size))

    def _follow(self, walk: _Walk, time: Ints, kind: AnyArray, region: AnyArray, wait: int = 1) -> None:
        """Replay all but the last `wait` events, as a record with their time may follow."""
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
        """Walks of the followed locations, if the MPI calls among the regions are still the same."""
        if not np.array_equal(self._speaks, speaks[: self._speaks.size]):
            return {}
        walks = {i: walk for i, walk in self._walks.items() if walk is not None}
        for walk in walks.values():
            walk.know(speaks)
        return walks


# Fields of a walk's state: next record, time of the first and the last event and of the one before it, the
# counts, whether there was an event, and whether the last one was an enter.
_RECORD, _FIRST, _LAST, _BEFORE, _CROSSED, _STRAY, _INNER, _SPOKE, _BEGUN, _ENTERED, _FIELDS = range(11)


@arithmetic
def _nest(
    time: Ints, kind: Bytes, region: AnyArray, record_time: Ints, record_heard: Bytes, speaks: Flags,
    spoken: Ints, heard: Ints, calls: Ints, ticks: Ints, seen: Ints, rule: Classes, opened: OpenEntries,
    marks: Bytes,
) -> None:  # fmt: skip
    """Replay events from row ``state[ROW]`` on (`desktop.core.open_regions`), until the end or until there is
    no space for another open region. marks (2, room): whether a record is directly inside of an entry, and
    whether one of something received."""
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
        # Records at the time of an event may be on either side of it; they belong to the MPI call.
        at = seen[_RECORD]
        leaves = not enters and in_call
        later = i + 1 < time.size and time[i + 1] > t
        while at < record_time.size and (
            record_time[at] < t or (record_time[at] == t and (leaves or (not enters and top >= 0 and later)))
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

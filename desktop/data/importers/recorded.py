"""Runs recorded by Phasewright itself: a folder with one file of records per thread (desktop/recorder).

Every file is self-contained: a head of 64 KiB with the names of the calls, then records of 32 bytes in the
order in which they were made. A run can be read while it goes on, and one that was killed is read up to its
last record. The ticks of one machine are one clock; machines are aligned by their time of day, and then, as
in any trace without clock offsets, by their messages.
"""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Iterator
from dataclasses import dataclass
from io import RawIOBase
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from desktop.core.arrays import AnyArray, Flags, Ints
from desktop.core.plain import JSON
from desktop.data.consistency import CUT_OFF, LEFT_OPEN
from desktop.data.events import Activity, Importer, Location, MessageKind, MetricAbout, Region, Sink
from desktop.errors import TraceFormatError
from desktop.progress import Progress
from desktop.recorder.compiling import VERSION

MAGIC = b"PHASEREC"
SUFFIX = ".pwr"
RECORD = np.dtype(
    [("begin", "u8"), ("duration", "u4"), ("call", "u2"), ("communicator", "u2"), ("peer", "i4"),
     ("tag", "i4"), ("amount", "u8")]
)  # fmt: skip
HEAD = np.dtype(
    [("magic", "S8"), ("version", "u4"), ("header", "u4"), ("rank", "u4"), ("size", "u4"), ("thread", "u4"),
     ("process", "u4"), ("start", "u8"), ("tick0", "u8"), ("monotonic0", "u8"), ("real0", "u8"),
     ("tick1", "u8"), ("monotonic1", "u8"), ("real1", "u8"), ("records", "u8"), ("stored", "u8"),
     ("lost", "u8"), ("state", "u4"), ("library", "u4"), ("host", "S64"), ("boot", "S40"),
     ("program", "S488"), ("cores", "u8"), ("switches", "u4"), ("unused", "u4"), ("world", "u8"),
     ("tail", "u4"), ("names", "u4")]
)  # fmt: skip
RUNNING, FINISHED, ABORTED, EXITED = range(4)
LIBRARIES = {1: "Open MPI", 2: "MPICH ABI", 3: "MPI-5 ABI"}
COMMUNICATOR, MEMBERS, COMPLETED, STARTED, LONG, TEXT, ENTER, LEAVE = range(60000, 60008)
SENT, RECEIVED, COLLECTIVE, CANCELLED = 1, 2, 3, 4
NOBODY = -3
SATURATED = 2**32 - 1
BLOCK = 1 << 17  # records at a time
LONGEST_NAME = 64  # parts of 24 bytes
#: Regions numbered from here on are named in the head.
NAMED = 8192
OFF = "MEASUREMENT OFF"
UNDEFINED = 2**32 - 1

_SENDS = ("Send", "Bsend", "Ssend", "Rsend", "Sendrecv", "Sendrecv_replace", "Isendrecv", "Isendrecv_replace")
_POSTED_SENDS = ("Isend", "Ibsend", "Issend", "Irsend")
_RECEIVES = ("Recv", "Mrecv")
_POSTED_RECEIVES = ("Irecv", "Imrecv")
#: Collectives: role, and the bytes that a member sends and receives, at the root and elsewhere, as multiples
#: of b and of b * n: b is the recorded number of bytes, n the size of the communicator.
_COLLECTIVES: dict[str, tuple[str, tuple[int, int], tuple[int, int], tuple[int, int], tuple[int, int]]] = {
    # role, root sends, root receives, others send, others receive; each (of b, of b * n)
    "Barrier": ("barrier", (0, 0), (0, 0), (0, 0), (0, 0)),
    "Bcast": ("coll_one2all", (1, 0), (0, 0), (0, 0), (1, 0)),
    "Scatter": ("coll_one2all", (0, 1), (1, 0), (0, 0), (1, 0)),
    "Scatterv": ("coll_one2all", (0, 0), (1, 0), (0, 0), (1, 0)),
    "Gather": ("coll_all2one", (1, 0), (0, 1), (1, 0), (0, 0)),
    "Gatherv": ("coll_all2one", (1, 0), (0, 0), (1, 0), (0, 0)),
    "Reduce": ("coll_all2one", (1, 0), (1, 0), (1, 0), (0, 0)),
    **dict.fromkeys(
        ("Allreduce", "Scan", "Exscan", "Alltoallv", "Alltoallw"),
        ("coll_all2all", (1, 0), (1, 0), (1, 0), (1, 0)),
    ),
    **dict.fromkeys(("Allgather", "Allgatherv"), ("coll_all2all", (1, 0), (0, 1), (1, 0), (0, 1))),
    "Alltoall": ("coll_all2all", (0, 1), (0, 1), (0, 1), (0, 1)),
    "Reduce_scatter": ("coll_all2all", (1, 0), (0, 0), (1, 0), (0, 0)),
    "Reduce_scatter_block": ("coll_all2all", (0, 1), (1, 0), (0, 1), (1, 0)),
}
#: The non-blocking ones transfer as much; as far as is known, they end when they are posted.
_COLLECTIVES |= {f"I{name.lower()}": ("function", *known[1:]) for name, known in _COLLECTIVES.items()}
#: Calls that move bytes without messages: the metric to which their bytes are added.
_MOVED = {
    **dict.fromkeys(("Put", "Rput", "Accumulate", "Raccumulate"), "one-sided bytes put"),
    **dict.fromkeys(
        ("Get", "Rget", "Get_accumulate", "Rget_accumulate", "Fetch_and_op", "Compare_and_swap"),
        "one-sided bytes got",
    ),
    **{
        f"File_{call}{how}": f"file bytes {done}"
        for call, done in (("read", "read"), ("write", "written"), ("iread", "read"), ("iwrite", "written"))
        for how in ("", "_at", "_all", "_at_all", "_shared", "_ordered", "_all_begin", "_at_all_begin")
    },
}
#: Roles of OpenMP regions.
_OPENMP = {
    "parallel": "parallel", "for": "loop", "sections": "sections", "single": "single",
    "workshare": "workshare", "distribute": "loop", "taskloop": "loop", "task": "task", "barrier": "barrier",
    "implicit barrier": "implicit_barrier", "taskwait": "task_wait", "taskgroup": "task_wait",
    "critical": "critical", "atomic": "atomic", "ordered": "ordered",
}  # fmt: skip
_MAKING = ("Comm_dup", "Comm_split", "Comm_create", "Comm_split_type", "Comm_dup_with_info", "Cart_create")

Columns = AnyArray


@dataclass
class _File:
    path: Path
    head: np.void
    place: Location
    #: The world of its ranks: how many programs were spawned before it, and started like it before.
    world: int
    program: int
    location: int = -1

    @property
    def rank(self) -> int:
        return int(self.head["rank"])

    @property
    def team(self) -> tuple[int, int]:
        return self.world, self.program

    @property
    def machine(self) -> bytes:
        return bytes(self.head["host"]) + bytes(self.head["boot"])

    @property
    def process(self) -> tuple[bytes, bytes, int]:
        return _process(self.head)

    def records(self) -> tuple[int, int]:
        """Numbers of records in the body and in the tail."""
        body = (self.path.stat().st_size - self._body) // RECORD.itemsize
        stored = max(0, min(int(self.head["stored"]), body))
        tail = int(self.head["records"]) - int(self.head["stored"])
        return stored, max(0, min(tail, int(self.head["tail"]) // RECORD.itemsize))

    @property
    def _body(self) -> int:
        return int(self.head["header"]) + int(self.head["tail"])

    def blocks(self) -> Iterator[Columns]:
        """All records in order; a long call and its end are in the same block."""
        stored, tail = self.records()
        pending = np.empty(0, RECORD)
        with self.path.open("rb") as stream:
            for offset, left in ((self._body, stored), (int(self.head["header"]), tail)):
                stream.seek(offset)
                while left:
                    block = np.fromfile(stream, RECORD, min(BLOCK, left))
                    if not block.size:
                        return
                    left -= block.size
                    if pending.size:
                        block = np.concatenate((pending, block))
                    pending = block[-1:] if block["duration"][-1] == SATURATED else block[:0]
                    yield block[: block.size - pending.size]
        if pending.size:
            yield pending


def detect(path: Path, _head: bytes) -> bool:
    return path.is_dir() and any(_is_ours(file) for file in path.glob(f"*{SUFFIX}"))


def _is_ours(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def files(path: Path) -> list[Path]:
    """The files of records, sorted by rank."""

    def place(file: Path) -> tuple[list[int], str]:
        return [int(word) for word in file.stem.split(".") if word.isdecimal()], file.name

    return sorted((file for file in path.glob(f"*{SUFFIX}") if file.is_file()), key=place)


def read(path: Path, sink: Sink, progress: Progress) -> None:
    """Deliver a recorded run; see `desktop.data.events.Importer`.

    Raises
    ------
    TraceFormatError : no file can be read, or one is of a later version.
    """
    heads = [(file, head) for file in files(path) if (head := _head(file, sink)) is not None]
    starts: dict[int, int] = {}  # when the first process of each spawned program began
    for _, head in heads:
        start = starts.get(int(head["world"]), int(head["start"]))
        starts[int(head["world"])] = min(start, int(head["start"]))
    worlds = sorted(starts, key=lambda world: (world != 0, starts[world]))
    programs = _programs([head for _, head in heads])
    recorded = [
        _file(file, head, worlds.index(int(head["world"])), program)
        for (file, head), program in zip(heads, programs, strict=True)
    ]
    recorded.sort(key=lambda file: file.team)
    teams = list(dict.fromkeys(file.team for file in recorded))
    for file in recorded:
        file.place.id |= teams.index(file.team) % 4096 << 52
    if not recorded:
        raise TraceFormatError("has no records", file=path, hint="did the program call MPI_Init?")
    machines = {
        file.machine: [other for other in recorded if other.machine == file.machine] for file in recorded
    }
    clocks = {machine: RecordedClock([one.head for one in members]) for machine, members in machines.items()}
    first = min(clocks[file.machine].of(np.array([file.head["start"]], "u8"))[0] for file in recorded)
    for clock in clocks.values():
        clock.zero = int(first)
    for file in recorded:
        file.location = sink.location(file.place)
    reader = _Reader(recorded, sink)
    sink.describe(
        ticks_per_second=1e9,
        repair=len(machines) > 1,
        notes={
            "program": Path(_text(recorded[0].head["program"])).name,
            "library": LIBRARIES.get(int(recorded[0].head["library"]), ""),
            "machines": len(machines),
            **_crowding(list(machines.values())),
            "reordered": reader.reordered,
            LEFT_OPEN: True,
        },
    )
    if any(programs):
        sink.report.add(
            "programs apart", "notice", "programs were recorded that send each other nothing; if they should "
            "be one, the launcher does not fit their MPI library (srun: try --mpi=pmi2 or --mpi=pmix)",
            count=max(programs) + 1,
        )  # fmt: skip
    missing = 0
    for team in teams:
        team_files = [file for file in recorded if file.team == team]
        missing += max(0, int(team_files[0].head["size"]) - len({file.rank for file in team_files}))
    if missing > 0:
        sink.report.add("missing ranks", "loss", "ranks of the run left no file", count=missing)
    total, done = sum(sum(file.records()) for file in recorded), 0
    for file in recorded:
        if not sink.wants(file.location):
            continue
        for block in reader.read(file, clocks[file.machine]):
            done += block
            progress.step(done, total, "reading records")


def _crowding(machines: list[list[_File]]) -> JSON:
    """How many threads were on how many cores, where there were most for each, and how often a thread lost
    its core; without what is not known."""
    found: JSON = {}
    crowded = []
    for members in machines:
        masks = [int(file.head["cores"]) for file in members]
        if all(masks):
            crowded.append((len(members), functools.reduce(operator.or_, masks).bit_count()))
    if crowded:
        found["threads"], found["cores"] = max(crowded, key=lambda one: one[0] / one[1])
    switches = [int(file.head["switches"]) for members in machines for file in members]
    return found | ({"switches": sum(switches)} if any(switches) else {})


def _programs(heads: list[np.void]) -> list[int]:
    """For each file, how many programs with the same ranks were started before its own.

    One command may start several: a script, one after another; a launcher that does not fit the MPI library,
    each process on its own. A process belongs to the first program of its size that has no such rank yet.
    """
    place: dict[tuple[bytes, bytes, int], int] = {}
    programs: list[tuple[int, int, set[int]]] = []  # number of its world, number of ranks, ranks found
    for head in sorted(heads, key=lambda head: int(head["real0"])):
        world, size, rank = int(head["world"]), int(head["size"]), int(head["rank"])
        if _process(head) in place:  # another thread
            continue
        same = [ranks for other, ranks_in_all, ranks in programs if (other, ranks_in_all) == (world, size)]
        free = next((ranks for ranks in same if rank not in ranks), None)
        if free is None:
            free = set()
            programs.append((world, size, free))
        free.add(rank)
        like_it = [ranks for other, _, ranks in programs if other == world]
        place[_process(head)] = next(i for i, ranks in enumerate(like_it) if ranks is free)
    return [place[_process(head)] for head in heads]


def _process(head: np.void) -> tuple[bytes, bytes, int]:
    return bytes(head["host"]), bytes(head["boot"]), int(head["process"])


def _file(path: Path, head: np.void, world: int, program: int) -> _File:
    rank, thread = int(head["rank"]), int(head["thread"])
    name = f"rank {rank}" + (f" thread {thread}" if thread else "") + (f" spawned {world}" if world else "")
    name += f" program {program + 1}" if program else ""
    place = Location(thread << 32 | rank, name, rank=rank, thread=thread, process=_text(head["host"]))
    return _File(path, head, place, world, program)


def _text(raw: bytes) -> str:
    return bytes(raw).decode("utf-8", "replace")


def _head(file: Path, sink: Sink) -> np.void | None:
    head = head_of(file)
    if head is None:
        sink.report.add("not begun", "loss", "files have no whole head", where=file.name)
    return head


def head_of(file: Path) -> np.void | None:
    """The head of a file; None while it is not complete.

    Raises
    ------
    TraceFormatError : the file is of a later version, or damaged.
    """
    with file.open("rb", buffering=0) as stream:
        return head_in(stream, file)


def head_in(stream: RawIOBase, file: Path) -> np.void | None:
    """As `head_of`, for an open file."""
    stream.seek(0)
    raw = stream.read(HEAD.itemsize) or b""
    if len(raw) < HEAD.itemsize or not raw.startswith(MAGIC):
        return None
    head: np.void = np.frombuffer(raw, HEAD)[0]
    if head["version"] != VERSION:
        raise TraceFormatError(
            f"is of version {head['version']}, known is {VERSION}", file=file, hint="use the later program"
        )
    size = os.fstat(stream.fileno()).st_size
    if not HEAD.itemsize + int(head["names"]) <= int(head["header"]) <= size - int(head["tail"]):
        raise TraceFormatError("has a damaged head", file=file, where="bytes 12 to 16")
    return head


def calls_of(file: Path, head: np.void) -> list[str]:
    """Names of the calls of a file, by number.

    Raises
    ------
    TraceFormatError : there are none, or too many.
    """
    with file.open("rb") as stream:
        stream.seek(HEAD.itemsize)
        raw = stream.read(int(head["names"]))
    names = raw.decode("ascii", "replace").split("\n")[:-1]
    if not 0 < len(names) <= COMMUNICATOR:
        raise TraceFormatError("has a damaged head", file=file, where="names of calls")
    return names


class RecordedClock:
    """Ticks of one machine to ns of its time of day, by a line through its first and last reading."""

    def __init__(self, heads: list[np.void]) -> None:
        begin = min(heads, key=lambda head: int(head["tick0"]))
        end = max(heads, key=lambda head: int(head["tick1"]))
        self._tick = int(begin["tick0"])
        self._ns = int(begin["real0"]) % 2**62
        ticks = int(end["tick1"]) - self._tick
        self._rate = (int(end["monotonic1"]) - int(begin["monotonic0"])) / ticks if ticks > 0 else 1.0
        self.zero = 0

    @property
    def line(self) -> tuple[int, int, float]:
        """A tick, its time in ns, and ns per tick."""
        return self._tick, self._ns - self.zero, self._rate

    def of(self, ticks: Columns) -> Ints:
        since = (ticks - np.uint64(self._tick)).view("i8")
        # A float64 is exact to a nanosecond within 100 days.
        scaled = np.clip(since * self._rate, -(2.0**62), 2.0**62).astype("i8")
        result: Ints = scaled + (self._ns - self.zero)
        return result


class _RecordedProcess:
    """State shared by the threads of a process: its communicators, and how it ended."""

    def __init__(self, names: list[str], program: int) -> None:
        self.names = names
        self.program = program
        self.number = np.full(1 << 16, UNDEFINED, "u4")  # number in the trace by the number in the process
        self.size = np.zeros(1 << 16, "i8")
        self.state = RUNNING  # of its first thread, with whose end it ends
        self.end: int | None = None  # when that thread ended, once it has been read


class _Reader:
    def __init__(self, recorded: list[_File], sink: Sink) -> None:
        self._sink = sink
        self._processes: dict[tuple[bytes, bytes, int], _RecordedProcess] = {}
        #: (hash and count of a communicator, program) -> its number.
        self._numbers: dict[tuple[int, int, int], int] = {}
        self.reordered: list[int] = []
        self._regions: dict[str, int] = {}
        ranks = {(file.team, file.rank): file.location for file in reversed(recorded)}
        self._teams: dict[tuple[int, int], tuple[Columns, Columns]] = {}  # ranks, and their locations
        for team in {file.team for file in recorded}:
            pairs = sorted((rank, place) for (of, rank), place in ranks.items() if of == team)
            self._teams[team] = np.array([k[0] for k in pairs], "i8"), np.array([k[1] for k in pairs], "i4")
        for file in recorded:
            process = self._process(file)
            if not file.head["thread"]:
                process.state = int(file.head["state"])
            shared = int(file.head["thread"]) or sum(other.process == file.process for other in recorded) > 1
            # A thread may use a communicator that a file read later defines.
            for block in file.blocks() if shared else ():
                self._define(process, block, {})

    def _process(self, file: _File) -> _RecordedProcess:
        if file.process not in self._processes:
            self._processes[file.process] = _RecordedProcess(calls_of(file.path, file.head), file.program)
        return self._processes[file.process]

    def _region(self, name: str) -> int:
        if name not in self._regions:
            short = name.removeprefix("MPI_")
            kind, _, construct = name.partition(" ")
            if kind == "OpenMP":
                region = Region(name, _OPENMP.get(construct, "function"), "openmp")
            elif name == OFF:
                region = Region(name, "artificial", "", Activity.UNMEASURED)
            elif short == name:
                region = Region(name, "function", "user")
            else:
                region = Region(name, _role(short), "mpi")
            self._regions[name] = self._sink.region(region)
        return self._regions[name]

    def _define(self, process: _RecordedProcess, block: Columns, texts: dict[int, list[bytes]]) -> None:
        """Define communicators and names of regions."""
        special = np.flatnonzero(np.isin(block["call"], (COMMUNICATOR, MEMBERS, TEXT)))
        members: list[int] = []
        number = -1
        for record in block[special]:
            handle = int(record["communicator"])
            if record["call"] == COMMUNICATOR:
                key = int(record["begin"]), int(record["peer"]), process.program
                number = self._numbers.setdefault(key, len(self._numbers))
                process.number[handle] = number
                process.size[handle] = int(record["duration"])
                members = []
            elif record["call"] == MEMBERS:
                four = np.array([record["peer"], record["tag"]], "i4").tolist()
                members += four + np.array([record["amount"]], "u8").view("i4").tolist()
                ranks = [rank for rank in members if rank >= 0]
                if ranks != sorted(ranks) and number not in self.reordered:
                    self.reordered.append(number)
                members = members[-1:]
            elif handle < LONGEST_NAME:
                parts = texts.setdefault(int(record["duration"]), [])
                parts.append(record["begin"].tobytes() + record["peer"].tobytes() + record["tag"].tobytes())
                parts[-1] += record["amount"].tobytes()

    def read(self, file: _File, clock: RecordedClock) -> Iterator[int]:
        """Append the contents of a file; yields how many records were read each time."""
        sink, process = self._sink, self._process(file)
        regions = np.full(len(process.names), UNDEFINED, "u4")  # of the calls that occur
        kinds = _Kinds([name.removeprefix("MPI_") for name in process.names], sink)
        texts: dict[int, list[bytes]] = {}
        inside = np.empty(0, "u4")  # regions that are open
        before = clock.of(np.array([file.head["start"]], "u8"))[0]
        file.place.first = int(before)
        for block in file.blocks():
            self._define(process, block, texts)
            count = block.size
            begin, end = self._times(block, clock)
            block, begin, end, broken = _sorted_part(block, begin, end, before)
            timed = is_timed(block)
            if timed.any():
                before = max(end[timed].max(), before)
            inside = self._events(file, block, begin, end, regions, texts, inside)
            self._messages(file, process, kinds, block, begin, end)
            self._collectives(file, process, kinds, block, begin, end)
            self._moved(file, kinds, block, end)
            yield count
            if broken:
                sink.report.add(
                    "damaged records", "loss", "records stand before those that they follow; the rest of "
                    "their file was left out", where=file.path.name,
                )  # fmt: skip
                file.place.damage = "ends early"
                break
        state = int(file.head["state"])
        if state == EXITED:
            before = max(before, clock.of(np.array([file.head["tick1"]], "u8"))[0])
        if not file.head["thread"]:
            process.end = int(before)
        elif inside.size and process.end is not None and process.state in (FINISHED, EXITED):
            # A worker of OpenMP stays in its last region until its process ends.
            before = max(before, np.int64(process.end))
            sink.append(
                "events", file.location, time=np.full(inside.size, before), region=inside[::-1],
                kind=np.ones(inside.size, "u1"),
            )  # fmt: skip
        file.place.last = int(before)
        if state == RUNNING and self._process(file).state == RUNNING:
            sink.report.add(
                "not ended", "notice", "processes had not ended when they were read, or were killed: what "
                "they had recorded is there", where=file.path.name,
            )  # fmt: skip
        # Without MPI, exiting is how a process ends.
        whole = process.state == FINISHED or (process.state == EXITED and not file.head["library"])
        if not whole and not file.place.damage:
            file.place.damage = CUT_OFF
        if file.head["lost"]:
            sink.report.add(
                "not recorded", "loss", "records could not be written", count=int(file.head["lost"]),
                where=file.path.name,
            )  # fmt: skip

    @staticmethod
    def _times(block: Columns, clock: RecordedClock) -> tuple[Ints, Ints]:
        last = block["begin"] + block["duration"] * (block["call"] < COMMUNICATOR)
        long = np.flatnonzero((block["call"][:-1] < COMMUNICATOR) & (block["call"][1:] == LONG))
        last[long] = block["begin"][long + 1]
        return clock.of(block["begin"]), clock.of(last)

    def _events(
        self, file: _File, block: Columns, begin: Ints, end: Ints, regions: Columns,
        texts: dict[int, list[bytes]], inside: Columns,
    ) -> Columns:  # fmt: skip
        """Append the events of a block; returns the regions open after it, given those open before
        (`inside`)."""
        call = block["call"]
        for number in np.unique(call[call < regions.size]).tolist():
            if regions[number] == UNDEFINED:
                regions[number] = self._region(self._process(file).names[number])
        which = np.flatnonzero((call < regions.size) | (call == ENTER) | (call == LEAVE))
        call = call[which]
        whole = call < regions.size
        region = np.zeros(which.size, "u4")
        region[whole] = regions[call[whole]]
        for number in np.unique(block["duration"][which[~whole]]).tolist():
            name = b"".join(texts.get(number, [])).rstrip(b"\0").decode("utf-8", "replace")
            if NAMED <= number < NAMED + regions.size:
                name = self._process(file).names[number - NAMED]
            of_number = ~whole & (block["duration"][which] == number)
            region[of_number] = self._region(name or f"region {number}")
        kind = np.where(call == LEAVE, 1, 0)
        # MPI_Pcontrol(0) stops the recording, any other level resumes it.
        for i in np.flatnonzero(
            whole & (regions[np.minimum(call, regions.size - 1)] == self._regions.get("MPI_Pcontrol", -1))
        ):
            region[i], kind[i], whole[i] = self._region(OFF), int(block["tag"][which[i]] != 0), False
        times = np.stack((begin[which], end[which]), axis=1)
        kinds = np.stack((kind, np.ones(which.size, "i8")), axis=1)
        used = np.stack((np.ones(which.size, bool), whole), axis=1).ravel()
        self._sink.append(
            "events", file.location, time=times.ravel()[used], kind=kinds.ravel()[used].astype("u1"),
            region=np.repeat(region, 2)[used],
        )  # fmt: skip
        marks = np.flatnonzero(~whole)
        step = np.concatenate((np.ones(inside.size, "i8"), 1 - 2 * kind[marks]))
        depth = np.cumsum(step)
        least = np.minimum.accumulate(depth[::-1])[::-1]
        return np.asarray(np.concatenate((inside, region[marks]))[(step > 0) & (least == depth)])

    def _peers(self, file: _File, ranks: Columns) -> NDArray[np.int32]:
        numbers, locations = self._teams[file.team]
        at = np.minimum(np.searchsorted(numbers, ranks), numbers.size - 1)
        result: NDArray[np.int32] = np.where(numbers[at] == ranks, locations[at], -1).astype("i4")
        return result

    def _messages(
        self, file: _File, process: _RecordedProcess, kinds: _Kinds, block: Columns, begin: Ints,
        end: Ints,
    ) -> None:  # fmt: skip
        call, part = block["call"], block["duration"]
        request = block["amount"] >> np.uint64(40)
        kind = kinds.message[np.minimum(call, len(kinds.message) - 1)]
        kind = np.where(call >= COMMUNICATOR, -1, kind)
        done = call == COMPLETED
        kind = np.where(done & (part == SENT), MessageKind.ISEND_COMPLETE, kind)
        kind = np.where(
            done & (part == RECEIVED), np.where(request > 0, MessageKind.IRECV, MessageKind.RECV), kind
        )
        kind = np.where(done & (part == CANCELLED), MessageKind.CANCELLED, kind)
        started = call == STARTED
        kind = np.where(started & (part == SENT), MessageKind.ISEND, kind)
        kind = np.where(started & (part == RECEIVED), MessageKind.IRECV_POST, kind)
        # Persistent requests are posted when they are started.
        which = np.flatnonzero((kind >= 0) & (block["peer"] != NOBODY))
        kind = kind[which]
        handle = block["communicator"][which]
        self._sink.append(
            "messages", file.location,
            time=np.where(kind == MessageKind.RECV, end[which], begin[which]),
            kind=kind.astype("u1"),
            peer=self._peers(file, block["peer"][which].astype("i8")),
            communicator=process.number[handle],
            tag=block["tag"][which].astype("i8"),
            bytes=(block["amount"][which] & np.uint64((1 << 40) - 1)).astype("i8"),
            request=request[which],
        )  # fmt: skip

    def _collectives(
        self, file: _File, process: _RecordedProcess, kinds: _Kinds, block: Columns, begin: Ints,
        end: Ints,
    ) -> None:  # fmt: skip
        # A persistent one begins when it is started; that record's tag is the equivalent call.
        started = (block["call"] == STARTED) & (block["duration"] == COLLECTIVE)
        call = np.where(started, block["tag"], block["call"]).clip(0, len(kinds.operation) - 1)
        which = np.flatnonzero((kinds.operation[call] >= 0) & ((block["call"] < COMMUNICATOR) | started))
        block, call = block[which], call[which]
        handle = block["communicator"]
        amount = (block["amount"] & np.uint64((1 << 40) - 1)).astype("i8")
        at_root = (block["peer"] == file.rank).astype("i8")
        sent, received = (
            amount * kinds.share[call, at_root, side, 0]
            + amount * process.size[handle] * kinds.share[call, at_root, side, 1]
            for side in (0, 1)
        )
        self._sink.append(
            "collectives", file.location, begin=begin[which], end=end[which],
            operation=kinds.operation[call].astype("u4"), communicator=process.number[handle],
            root=self._peers(file, block["peer"].astype("i8")), sent=sent, received=received,
        )  # fmt: skip

    def _moved(self, file: _File, kinds: _Kinds, block: Columns, end: Ints) -> None:
        call = np.minimum(block["call"], len(kinds.metric) - 1)
        which = np.flatnonzero(kinds.moves[call] & (block["call"] < COMMUNICATOR))
        for number in np.unique(call[which]).tolist():
            name = _MOVED[kinds.names[number]]
            kinds.metric[number] = self._sink.metric(name, MetricAbout("B", "relative", "last"))
        if which.size:
            self._sink.append(
                "metrics", file.location, time=end[which], metric=kinds.metric[call[which]],
                value=block["amount"][which].astype("f8"),
            )  # fmt: skip


class _Kinds:
    """Meanings of the calls, by number."""

    def __init__(self, names: list[str], sink: Sink) -> None:
        #: A `MessageKind`, or -1.
        self.message = np.full(len(names), -1, "i8")
        #: Number of the operation's text, or -1.
        self.operation = np.full(len(names), -1, "i8")
        self.names = names
        #: Whether its bytes are added to a metric; that metric's number, once it has been used.
        self.moves = np.array([name in _MOVED for name in names])
        self.metric = np.zeros(len(names), "u4")
        #: (calls, elsewhere or at the root, sent or received, multiple of b or of b * n)
        self.share = np.zeros((len(names), 2, 2, 2), "i8")
        groups = (_SENDS, _POSTED_SENDS, _RECEIVES, _POSTED_RECEIVES)
        meanings = (MessageKind.SEND, MessageKind.ISEND, MessageKind.RECV, MessageKind.IRECV_POST)
        for group, meaning in zip(groups, meanings, strict=True):
            self.message[[i for i, name in enumerate(names) if name in group]] = meaning
        for i, name in enumerate(names):
            if name in _COLLECTIVES:
                self.operation[i] = sink.text(name)
                _, *shares = _COLLECTIVES[name]
                self.share[i] = np.array((shares[2:], shares[:2]))


def _role(call: str) -> str:
    if call in _COLLECTIVES:
        return _COLLECTIVES[call][0]
    if call in _MAKING:
        return "coll_all2all"
    if call.startswith("File_"):
        return "file_io"
    return "point2point" if "end" in call or "ecv" in call else "function"


def is_timed(block: Columns) -> Flags:
    """Which records have a time of their own, in the order of the records."""
    timed: Flags = np.isin(block["call"], (ENTER, LEAVE, COMPLETED))
    return timed | (block["call"] < COMMUNICATOR)


def _sorted_part(
    block: Columns, begin: Ints, end: Ints, before: np.int64
) -> tuple[Columns, Ints, Ints, bool]:
    """The records before the first that precedes its predecessor, and whether there is such a record.

    Calls follow each other on a thread; definitions have no time.
    """
    timed = is_timed(block)
    earlier = np.maximum.accumulate(np.where(timed, end, np.int64(-(2**62))))
    earlier = np.maximum(np.concatenate((np.array([before]), earlier[:-1])), before)
    wrong = np.flatnonzero(timed & ((begin < earlier) | (end < begin)))
    if not wrong.size:
        return block, begin, end, False
    cut = int(wrong[0])
    return block[:cut], begin[:cut], end[:cut], True


IMPORTER = Importer("recorded", "recorded by Phasewright", "8", detect, read, files, folders=True)

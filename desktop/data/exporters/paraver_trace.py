"""Paraver traces (.prv, .pcf, .row), for Paraver, Dimemas and BasicAnalysis.

Source: Paraver's description of its trace format (tools.bsc.es), and Extrae's public numbers. The activity of
a thread is a state, by the rules of the curve; MPI calls, functions, metrics and the data of collectives are
events, matched messages are communications. Lines are in order of time: those of each thread are first
written to a file of their own, and merged from there into the trace window by window.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import ArrayLike

from desktop.core.accounts import ACTIVITY_OF_CLASS
from desktop.core.arrays import AnyArray, Bytes, Ints
from desktop.core.jit import arithmetic, inlined
from desktop.data.classify import is_stream, mpi_call, region_activity
from desktop.data.events import Activity, EventKind, Region, occurring
from desktop.data.exporters import Exported
from desktop.data.exporters.rows import WrittenTicks, communicator_members, stretches
from desktop.data.importers._paraver import tables as tb
from desktop.data.matching import address_of
from desktop.data.store import TraceStore
from desktop.data.utilization import Rules, class_states
from desktop.progress import Progress, Share

#: A line: its time and kind (1 state, 2 event, 3 communication), and up to four more numbers.
_TIME, _KIND, _A, _B, _C, _D = range(6)
STATE, EVENT, COMMUNICATION = 1, 2, 3
#: Approximate number of lines in a window, and number of parts of the run from which windows are made.
WINDOW, BINS = 1 << 20, 1 << 16
#: Most bytes of a line without its two threads.
LONGEST = 160
#: States of activities in which the call says no more.
_STATE_OF = np.array([1, 15, 9, 12, 14], np.int64)
#: States of MPI calls, if they agree with the activity.
_STATE_OF_CALL = (
    {"recv": 3, "send": 4, "isend": 10, "irecv": 11, "sendrecv": 16, "iprobe": 6, "probe": 6, "test": 6}
    | dict.fromkeys(("wait", "waitall", "waitany", "waitsome"), 8)
    | {name.lower(): 13 for name in tb.OPERATIONS}
)
#: Numbers of calls and functions that have no number of Extrae; of metrics.
_OWN, _METRICS = 1000, 90000001


def write(store: TraceStore, folder: Path, progress: Progress, repaired: bool) -> Exported:
    """The three files of a trace, times in nanoseconds.

    Raises
    ------
    OSError : the folder cannot be written. StoreError : the store is damaged.
    """
    exported = Exported(folder / "trace.prv")
    threads = _Threads(store)
    labels = _Labels(store)
    clock = WrittenTicks(store, repaired, 10**9)
    counts = np.zeros(BINS, np.int64)
    files: list[Path] = []
    part = Share(progress, 0.0, 0.6)
    for number, i in enumerate(threads.locations):
        part.step(number, len(threads.locations), f"writing {store.locations[i].name}")
        rows = _lines_of(store, i, labels, threads, clock, exported)
        counts += np.histogram(rows[:, _TIME], BINS, (0, clock.length + 1))[0]
        files.append(folder / f"{number}.rows")
        rows.tofile(files[-1])
    with exported.file.open("wb") as out:
        out.write(threads.header(clock.length, communicator_members(store, address_of(store))))
        writer = _WrittenLines(out, threads.prefixes)
        written = Share(progress, 0.6, 1.0)
        for begin, window in _windows(files, counts, clock.length):
            writer.write(window)
            written.step(begin, clock.length + 1, "writing lines")
    for file in files:
        file.unlink()
    exported.file.with_suffix(".pcf").write_text(labels.text(), encoding="utf-8")
    exported.file.with_suffix(".row").write_text(threads.names(), encoding="utf-8")
    exported.records = writer.count
    metrics = sum(store.rows("metrics", i) for i in range(len(store.locations)) if i not in threads.locations)
    exported.leave_out("values of metrics that belong to no thread", metrics)
    exported.leave_out("marks", store.count("marks"))
    sent = sum(tally.sent for tally in store.tallies)
    matched = sum(store.rows("links", i) for i in threads.locations)
    exported.leave_out("messages without a matching receive", max(sent - matched, 0))
    return exported


class _Threads:
    """Locations as threads of tasks: a task for each process, in the order of ranks."""

    def __init__(self, store: TraceStore) -> None:
        self._store = store
        tasks: dict[tuple[str, int], list[int]] = {}
        for i, at in enumerate(store.locations):
            if at.kind in ("cpu", "accelerator"):
                tasks.setdefault(("rank", at.rank) if at.rank >= 0 else ("location", i), []).append(i)
        self._tasks = list(tasks.values())
        #: locations in the order of threads
        self.locations = [i for inside in self._tasks for i in inside]
        self.thread = np.full(len(store.locations), -1, np.int64)
        self.thread[self.locations] = np.arange(len(self.locations))
        self.task = np.full(len(store.locations), -1, np.int64)
        places = []
        for task, inside in enumerate(self._tasks):
            self.task[inside] = task
            places += [f"1:{task + 1}:{thread + 1}" for thread in range(len(inside))]
        #: cpu, application, task and thread of each, as written in lines
        self.prefixes = [f"{cpu}:{place}".encode() for cpu, place in enumerate(places, 1)]

    def header(self, length: int, members: dict[int, set[int]]) -> bytes:
        now = datetime.now(UTC)
        tasks = ",".join(f"{len(inside)}:1" for inside in self._tasks)
        lines = [
            f"#Paraver ({now:%d/%m/%Y at %H:%M}):{length}_ns:1({len(self.locations)}):1:"
            f"{len(self._tasks)}({tasks}),{len(members)}"
        ]
        for number in sorted(members):
            inside = sorted({int(self.task[i]) + 1 for i in members[number]} - {0})
            lines.append(":".join(map(str, ["c", 1, number, len(inside), *inside])))
        return "".join(f"{line}\n" for line in lines).encode()

    def names(self) -> str:
        """The file of names (.row), the only place that identifies accelerators."""
        lines = [f"LEVEL CPU SIZE {len(self.locations)}"]
        lines += [f"{cpu}.node" for cpu in range(1, len(self.locations) + 1)]
        lines += ["", "LEVEL NODE SIZE 1", "node", "", f"LEVEL TASK SIZE {len(self._tasks)}"]
        for task, inside in enumerate(self._tasks):
            lines.append(_line(self._store.locations[inside[0]].process or f"TASK 1.{task + 1}"))
        lines += ["", f"LEVEL THREAD SIZE {len(self.locations)}"]
        for i in self.locations:
            at = self._store.locations[i]
            stream = at.kind == "accelerator" and not is_stream(at.name)
            lines.append(_line(f"GPU-D1.S{at.thread + 1}-{at.name}" if stream else at.name))
        return "\n".join(lines) + "\n"


def _line(text: str) -> str:
    """A name without line ends."""
    return " ".join(text.split()) or "-"


class _Labels:
    """Meaning of the numbers (.pcf): type and value of each region, types of metrics, states of regions."""

    def __init__(self, store: TraceStore) -> None:
        self._store = store
        numbers = {name.lower(): value for value, name in tb.MPI_CALLS.items()}
        operations = {name.lower() for name in tb.OPERATIONS}
        self.values: dict[int, dict[int, str]] = {}
        self.type, self.value = (np.zeros(max(len(store.regions), 1), np.int64) for _ in range(2))
        self.state = np.full((max(len(store.regions), 1) + 1, len(Activity)), 0, np.int64)
        self.state[:] = _STATE_OF
        for number, region in enumerate(store.regions):
            call = mpi_call(region.name)
            kind = _type_of(call, region, operations)
            value = numbers.get(call, _OWN + number) if call else number + 1
            self.type[number], self.value[number] = kind, value
            self.values.setdefault(kind, {})[value] = region.name
            state = _STATE_OF_CALL.get(call)
            if state is not None and region.paradigm == "mpi":
                self.state[number, tb.STATES[state][1]] = state
        used = occurring(store, "metrics", "metric")
        self.metrics = {text: kind for kind, text in enumerate(used, _METRICS)}

    def text(self) -> str:
        lines = ["DEFAULT_OPTIONS", "", "LEVEL               THREAD", "UNITS               NANOSEC", ""]
        lines += ["STATES", *(f"{number}    {name}" for number, (name, _) in enumerate(tb.STATES))]
        titles = {
            tb.POINT_TO_POINT: "MPI Point-to-point",
            tb.COLLECTIVE: "MPI Collective Comm",
            tb.OTHER: "MPI Other",
            tb.ONE_SIDED: "MPI One-sided",
            tb.FILES: "MPI I/O",
            tb.FUNCTION: "User function",
        }
        for kind, values in sorted(self.values.items()):
            lines += ["", "", "EVENT_TYPE", f"9   {kind}    {titles[kind]}", "VALUES", "0   End"]
            lines += [f"{value}   {_line(name)}" for value, name in sorted(values.items())]
        data = {
            tb.SENT: "send size",
            tb.RECEIVED: "receive size",
            tb.ROOT: "is root",
            tb.COMMUNICATOR: "communicator",
        }
        lines += [
            "",
            "",
            "EVENT_TYPE",
            *(f"9   {kind}    MPI Global OP {name}" for kind, name in data.items()),
        ]
        if self.metrics:
            names = ((kind, _line(self._store.texts[text])) for text, kind in self.metrics.items())
            lines += ["", "", "EVENT_TYPE", *(f"7   {kind}    {name}" for kind, name in names)]
        return "\n".join(lines) + "\n"


def _type_of(call: str, region: Region, operations: set[str]) -> int:
    if not call:
        return tb.FUNCTION
    if call in operations:
        return tb.COLLECTIVE
    if call.startswith("file_"):
        return tb.FILES
    if region.role == "rma":
        return tb.ONE_SIDED
    moves = region_activity(region) in (Activity.OVERHEAD, Activity.IDLE)
    plain = any(word in call for word in ("send", "recv", "wait", "test", "probe"))
    return tb.POINT_TO_POINT if moves and plain else tb.OTHER


def _lines_of(
    store: TraceStore, index: int, labels: _Labels, threads: _Threads, clock: WrittenTicks, exported: Exported
) -> Ints:
    """All lines of a thread in order of time, (n, 6); in ticks of the trace."""
    location = store.locations[index]
    times: list[Ints] = []
    tops: list[Ints] = []
    parts: list[Ints] = []

    def beside(time: Ints, kind: AnyArray, region: AnyArray, top: AnyArray) -> None:
        times.append(location.clock(clock.repaired).common(time))
        tops.append(top.astype(np.int64))
        measured = ~np.isin(region, unmeasured)
        at, number = clock(location, time[measured]), region[measured]
        value = np.where(kind[measured] == EventKind.LEAVE, 0, labels.value[number])
        parts.append(_rows(at, EVENT, labels.type[number], value))

    off = [i for i, region in enumerate(store.regions) if region_activity(region) is Activity.UNMEASURED]
    unmeasured = np.array(off, np.int64)
    begin, end, doing = class_states(store, index, Rules(repaired=clock.repaired), beside)
    if begin.size:
        time = np.concatenate([np.empty(0, np.int64), *times])
        top = np.concatenate([np.empty(0, np.int64), *tops])
        parts.insert(
            0, _states(begin, end, ACTIVITY_OF_CLASS[doing].astype(np.int64), time, top, labels, clock)
        )
    for _, rows in stretches(store, index, "collectives", "metrics"):
        calls, metrics = rows["collectives"], rows["metrics"]
        at = clock(location, calls["begin"])
        root = (calls["root"] == index).astype(np.int64)
        for kind, value in (
            (tb.SENT, calls["sent"]),
            (tb.RECEIVED, calls["received"]),
            (tb.ROOT, root),
            (tb.COMMUNICATOR, calls["communicator"]),
        ):
            parts.append(_rows(at, EVENT, kind, value))
        kinds = np.array([labels.metrics[text] for text in metrics["metric"].tolist()], np.int64)
        whole = np.rint(metrics["value"])
        exported.leave_out(
            "fractions of values of metrics, which are whole numbers here", (whole != metrics["value"]).sum()
        )
        parts.append(_rows(clock(location, metrics["time"]), EVENT, kinds, whole.astype(np.int64)))
    for sent, arrival, peer, size, tag in store.blocks(
        "links", index, "time", "arrival", "peer", "bytes", "tag"
    ):
        come = np.empty_like(arrival)
        for other in np.unique(peer).tolist():
            of = peer == other
            come[of] = clock(store.locations[other], arrival[of])
        named = threads.thread[peer] >= 0
        sent_lines = _rows(clock(location, sent), COMMUNICATION, threads.thread[peer], come, size, tag)
        parts.append(sent_lines[named])
    lines = np.concatenate(parts) if parts else np.empty((0, 6), np.int64)
    return lines[np.argsort(lines[:, _TIME], kind="stable")]


def _rows(time: Ints, kind: int, *more: ArrayLike) -> Ints:
    lines = np.zeros((len(time), 6), np.int64)
    lines[:, _TIME], lines[:, _KIND] = time, kind
    for column, values in enumerate(more, _A):
        lines[:, column] = values
    return lines


def _states(
    begin: Ints, end: Ints, doing: Ints, time: Ints, top: Ints, labels: _Labels, clock: WrittenTicks
) -> Ints:
    """Lines of states: what the thread does (intervals on the common clock), divided where the innermost
    region (after each event) changes the state."""
    at = np.unique(np.concatenate([begin, time[(time >= begin[0]) & (time < end[-1])]]))
    innermost = np.append(top, -1)[np.searchsorted(time, at, "right") - 1]
    inside = np.searchsorted(begin, at, "right") - 1
    state = labels.state[innermost, doing[inside]]
    new = np.concatenate([[True], state[1:] != state[:-1]])
    at, state = clock.common(at[new]), state[new]
    until = np.append(at[1:], clock.common(end[-1]))
    return _rows(at, STATE, until, state)


def _windows(files: list[Path], counts: Ints, length: int) -> Iterator[tuple[int, Ints]]:
    """The lines of all threads in order of time: begin of each window, and its lines (n, 7) with their thread
    last."""
    edges = np.linspace(0, length + 1, BINS + 1)
    full = np.searchsorted(np.cumsum(counts), np.arange(WINDOW, counts.sum(), WINDOW), "left") + 1
    borders = [*edges[np.unique(full)].tolist(), np.inf]
    threads = [
        np.memmap(file, np.int64, "r").reshape(-1, 6) if file.stat().st_size else None for file in files
    ]
    done = [0] * len(files)
    begin = 0.0
    for border in borders:
        parts = []
        for thread, rows in enumerate(threads):
            if rows is None:
                continue
            stop = int(np.searchsorted(rows[:, _TIME], border, "left"))
            part = np.full((stop - done[thread], 7), thread, np.int64)
            part[:, :6] = rows[done[thread] : stop]
            parts.append(part)
            done[thread] = stop
        window = np.concatenate(parts) if parts else np.empty((0, 7), np.int64)
        yield int(begin), window[np.argsort(window[:, _TIME], kind="stable")]
        begin = border


class _WrittenLines:
    """Writes rows as lines; `count`: number of lines so far."""

    def __init__(self, file: IO[bytes], prefixes: list[bytes]) -> None:
        self._file, self.count = file, 0
        self._text = np.frombuffer(b"".join(prefixes), np.uint8)
        self._ends = np.cumsum([0, *map(len, prefixes)])
        self._room = LONGEST + 2 * max(map(len, prefixes), default=0)

    def write(self, rows: Ints) -> None:
        """Write rows (n, 7) in order of time."""
        rows = np.ascontiguousarray(rows)
        buffer = np.empty(min(len(rows), 1 << 15) * self._room, np.uint8)
        for first in range(0, len(rows), 1 << 15):
            part = rows[first : first + (1 << 15)]
            self._file.write(buffer[: print_lines(part, self._text, self._ends, buffer)].data)
        self.count += len(rows)


@inlined
def digits(buffer: Bytes, at: int, value: int) -> int:
    """Write a colon and a decimal number; returns the next position."""
    buffer[at] = 58
    at += 1
    if value < 0:
        buffer[at] = 45
        at += 1
        value = -value
    size, left = 1, value // 10
    while left > 0:
        size += 1
        left //= 10
    for i in range(size):
        buffer[at + size - 1 - i] = 48 + value % 10
        value //= 10
    return at + size


@inlined
def thread_of(buffer: Bytes, at: int, text: Bytes, ends: Ints, thread: int) -> int:
    """Write a colon and the place of a thread; returns the next position."""
    buffer[at] = 58
    at += 1
    for i in range(ends[thread], ends[thread + 1]):
        buffer[at] = text[i]
        at += 1
    return at


@arithmetic
def print_lines(rows: Ints, text: Bytes, ends: Ints, buffer: Bytes) -> int:
    """Write rows (n, 7) as lines into `buffer`; returns the number of bytes."""
    at = 0
    for i in range(rows.shape[0]):
        time, kind, a, b = rows[i, 0], rows[i, 1], rows[i, 2], rows[i, 3]
        buffer[at] = 48 + kind
        at = thread_of(buffer, at + 1, text, ends, rows[i, 6])
        at = digits(buffer, at, time)
        if kind == COMMUNICATION:
            at = digits(buffer, at, time)
            at = thread_of(buffer, at, text, ends, a)
            at = digits(buffer, at, b)
            at = digits(buffer, at, b)
            at = digits(buffer, at, rows[i, 4])
            at = digits(buffer, at, rows[i, 5])
        else:
            at = digits(buffer, at, a)
            at = digits(buffer, at, b)
        buffer[at] = 10
        at += 1
    return at

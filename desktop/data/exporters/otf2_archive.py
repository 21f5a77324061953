"""OTF2 archives, for Vampir, Scalasca, Cube and everything else based on libotf2.

Layout of files and records: OTF2 3.2 reference (score-p.org). A store does not keep the members of
communicators, so they are defined as who takes part in them, by rank; ranks in records refer to this order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

import numpy as np

from desktop import __version__
from desktop.core.arrays import AnyArray, Bytes, Ints
from desktop.core.jit import arithmetic, inlined
from desktop.data.classify import activity, is_communication, mpi_call, region_activity
from desktop.data.events import Activity, EventKind, Location, MessageKind, Region, occurring
from desktop.data.exporters import Exported
from desktop.data.exporters.rows import Columns, WrittenTicks, communicator_members, stretches
from desktop.data.importers._otf2.definitions import COMM_GROUP, COMM_LOCATIONS, COMM_SELF
from desktop.data.importers._otf2.tables import (
    MESSAGES,
    METRIC_LAST,
    METRIC_MODES,
    OPERATIONS,
    PARADIGMS,
    ROLES,
)
from desktop.data.matching import address_of
from desktop.data.store import TraceStore
from desktop.progress import Progress

CHUNK, DEFINITION_CHUNK, HEADER = 1 << 20, 1 << 22, 18
UNDEFINED = 0xFFFFFFFF
# Event records.
ON_OFF, ENTER, LEAVE = 11, 12, 13
SEND, ISEND, ISEND_COMPLETE, RECV, IRECV_REQUEST, IRECV, CANCELLED = MESSAGES.values()
COLLECTIVE_BEGIN, COLLECTIVE_END, METRIC, PROGRAM_BEGIN, PROGRAM_END = 22, 23, 31, 83, 84
OFF, ON = 2, 1
DOUBLE = 10  # type of a metric's value
_MESSAGE = np.array([MESSAGES[kind] for kind in sorted(MessageKind)], np.int64)
#: Most bytes of a record, its time and the end of a file included.
LONGEST = 80
#: Role and paradigm that represent an activity where OTF2 would not recognise the region's own.
_STANDING_FOR = {
    Activity.COMPUTING: ("function", "user"),
    Activity.OVERHEAD: ("data_transfer", "unknown"),
    Activity.IDLE: ("barrier", "unknown"),
    Activity.IO: ("file_io", "unknown"),
}


def write(store: TraceStore, folder: Path, progress: Progress, repaired: bool) -> Exported:
    """The archive of a trace: its anchor file, definitions, and two files for each location.

    Raises
    ------
    OSError : the folder cannot be written. StoreError : the store is damaged.
    """
    exported = Exported(folder / "traces.otf2")
    inside = folder / "traces"
    inside.mkdir()
    clock, definitions = WrittenTicks(store, repaired), _Definitions(store)
    total = sum(tally.enter + tally.leave for tally in store.tallies)
    done, records = 0, []
    # Two zero offsets: the clocks are those of the window, and readers do not correct them again.
    agreed = _file(_clock_offset(time) for time in (0, clock.length + 1))
    for i, location in enumerate(store.locations):
        with (inside / f"{i}.evt").open("wb") as file:
            events, records_of = EventWriter(file), _WrittenRecords(store, i, definitions, exported)

            def timed(records: Ints, at: Location = location) -> Ints:
                records[_TIME] = clock(at, records[_TIME])
                return records

            events.write(timed(records_of.first()))
            for end, rows in stretches(store, i, "events", "messages", "collectives", "metrics"):
                events.write(timed(records_of.of(end, rows)))
                progress.step(done + events.count, total, f"writing {location.name}")
            events.write(timed(records_of.last()))
            events.close()
        done += events.count
        records.append(events.count)
        (inside / f"{i}.def").write_bytes(agreed)
    defined = definitions.records(records, clock)
    (folder / "traces.def").write_bytes(_file(defined))
    marks = _marks(store, clock)
    if marks:
        (folder / "traces.marker").write_bytes(_file(marks))
    exported.file.write_bytes(_anchor(len(store.locations), len(defined), store.source.name))
    exported.records = done
    return exported


# ------------------------------------------------------------------ definitions


def _number(value: int, most: int = 8) -> bytes:
    """A compressed number of at most `most` bytes; it is undefined if all its bits are set."""
    value &= (1 << 8 * most) - 1
    if value == (1 << 8 * most) - 1:
        return b"\xff"
    size = (value.bit_length() + 7) // 8
    return bytes([size]) + value.to_bytes(size, "little")


def _text(value: str) -> bytes:
    return value.replace("\0", " ").encode("utf-8", "replace") + b"\0"


_FORMS = {"b": lambda value: bytes([value]), "n": lambda value: _number(value, 4), "N": _number, "s": _text}


def _record(kind: int, forms: str, *values: object) -> bytes:
    """A definition: fields by letters, b byte, n and N compressed numbers of 32 and 64 bits, s text."""
    body = b"".join(_FORMS[form](value) for form, value in zip(forms, values, strict=True))
    length = bytes([len(body)]) if len(body) < 255 else b"\xff" + struct.pack("<Q", len(body))
    return bytes([kind]) + length + body


def _clock_offset(time: int) -> bytes:
    body = struct.pack("<Q", time) + _number(0) + struct.pack("<d", 0.0)
    return bytes([6, len(body)]) + body


def _header(first: int, last: int) -> bytes:
    """Header of a chunk: byte order, and the numbers of its first and last event."""
    return b"\x03\x42" + struct.pack("<QQ", first, last)


def _file(records: Iterable[bytes]) -> bytes:
    """A definition file, in chunks."""
    chunks, body = [], _header(1, 0)
    for record in records:
        if len(body) + len(record) + 2 > DEFINITION_CHUNK:
            chunks.append((body + b"\x01").ljust(DEFINITION_CHUNK, b"\0"))
            body = _header(1, 0)
        body += record
    return b"".join(chunks) + body + b"\x02\x01"


def _anchor(locations: int, definitions: int, name: str) -> bytes:
    """The anchor file: plain files (1), not compressed (1), no properties, no trace number."""
    head = b"\x03\x42OTF2\0" + bytes([3, 2, 3, 0, 0])
    head += struct.pack("<QQBBQQ", CHUNK, DEFINITION_CHUNK, 1, 1, locations, definitions)
    texts = b"".join(map(_text, ("", f"Phasewright {__version__}", name)))
    return head + texts + bytes(4) + bytes(16) + b"\x02\x01\0"


class _Definitions:
    """What event records refer to, and its numbers in the archive.

    operations : (texts,) number of the collective operation named by a text, -1 none. communicators : number
        in the store -> number here. rank : (communicators, locations) of each location, -1 if not a member.
    """

    def __init__(self, store: TraceStore) -> None:
        self._store = store
        self.address = address_of(store)
        numbers = {name.lower(): number for number, name in enumerate(OPERATIONS)}
        plain = [mpi_call(text) or text.lower().rstrip("01") for text in store.texts]  # PICL has barrier0
        self.operations = np.array([numbers.get(text, -1) for text in plain] or [-1], np.int64)
        members = communicator_members(store, self.address)
        speakers = {i for i, at in enumerate(store.locations) if at.kind == "cpu" and self.address[i] == i}
        rank = [(at.rank < 0, at.rank, i) for i, at in enumerate(store.locations)]
        #: locations that call MPI, in the order of ranks; members of the communicators, in that order
        self._world = sorted(speakers.union(*members.values()), key=rank.__getitem__)
        self._inside = [sorted(members[number], key=rank.__getitem__) for number in sorted(members)]
        self.communicators = {number: k for k, number in enumerate(sorted(members))}
        self.rank = np.full((len(members), len(store.locations)), -1, np.int64)
        for k, inside in enumerate(self._inside):
            self.rank[k, inside] = np.arange(len(inside))
        if UNDEFINED in self.communicators:  # every process has its own
            self_comm = self.communicators[UNDEFINED]
            self._inside[self_comm], self.rank[self_comm] = [], 0
        self.metrics = {text: k for k, text in enumerate(occurring(store, "metrics", "metric"))}

    def records(self, events: list[int], clock: WrittenTicks) -> list[bytes]:
        """All definition records; `events`: number of records of each location."""
        store = self._store
        written = [_record(5, "NNNN", clock.per_second, 0, clock.length + 1, 0)]
        strings: dict[str, int] = {}

        def text(value: str) -> int:
            if value not in strings:
                strings[value] = len(strings)
                written.append(_record(10, "ns", strings[value], value))
            return strings[value]

        text("")
        machine = text(str(store.notes.get("machine") or "machine"))
        written.append(_record(12, "nnnn", 0, machine, text("machine"), UNDEFINED))
        groups = self._processes()
        for number, (process, sort) in enumerate(dict.fromkeys(groups)):
            written.append(_record(13, "nnbnn", number, text(process), sort, 0, UNDEFINED))
        order = {group: number for number, group in enumerate(dict.fromkeys(groups))}
        for i, at in enumerate(store.locations):
            sort = {"accelerator": 2, "metric": 3}.get(at.kind, 1)
            written.append(_record(14, "NnbNn", i, text(at.name), sort, events[i], order[groups[i]]))
        for number, region in enumerate(store.regions):
            named, role, paradigm = _standing_for(region)
            name = text(named)
            kinds = ROLES.index(role), PARADIGMS.index(paradigm)
            written.append(_record(15, "nnnbnnnnbbn", number, name, 0, 0, UNDEFINED, 0, 0, name, *kinds, 0))
        world = {i: rank for rank, i in enumerate(self._world)}
        names = store.notes.get("communicator_names") or {}
        for number, inside in enumerate([self._world, *self._inside]):
            ranks = [world[i] for i in inside] if number else inside
            kind = COMM_LOCATIONS if not number else COMM_GROUP if ranks else COMM_SELF
            forms = "nnbn" + "N" * len(ranks) + "bbn"
            written.append(
                _record(18, forms, number, 0, 0, len(ranks), *ranks, kind, PARADIGMS.index("mpi"), 0)
            )
        for comm, number in self.communicators.items():
            name = text(str(names.get(str(comm), "")))
            written.append(_record(22, "nnnnn", number, name, number + 1, UNDEFINED, 0))
        for metric, number in self.metrics.items():
            written += self._metric(number, text(store.texts[metric]), store.texts[metric], text)
        return written

    def _metric(self, number: int, name: int, of: str, text: Callable[[str], int]) -> list[bytes]:
        """A metric, and a metric class that contains only it."""
        about = self._store.metrics.get(of)
        modes = {word: mode for mode, word in METRIC_MODES.items()}
        mode = 1 if about is None else modes[about.mode] | (METRIC_LAST if about.timing == "last" else 0)
        unit = text("" if about is None else about.unit)
        member = _record(19, "nnnbbbbNn", number, name, 0, 0, mode, DOUBLE, 1, 0, unit)
        return [member, _record(20, "nbnbb", number, 1, number, 0, 0)]

    def _processes(self) -> list[tuple[str, int]]:
        """Name and kind of the group of each location: its process; accelerators have their own."""
        groups = []
        for at in self._store.locations:
            name = at.process or (f"rank {at.rank}" if at.rank >= 0 else at.name)
            groups.append((name, 2 if at.kind == "accelerator" else 1))
        return groups


def _standing_for(region: Region) -> tuple[str, str, str]:
    """Name, role and paradigm that make readers classify a region as Phasewright does."""
    role = region.role if region.role in ROLES else "unknown"
    paradigm = region.paradigm if region.paradigm in PARADIGMS else "unknown"
    target = region_activity(region)
    if activity(region.name, role, paradigm) is target or target not in _STANDING_FOR:
        return region.name, role, paradigm
    role, paradigm = _STANDING_FOR[target]
    # An MPI call is recognised by its name, whatever its role.
    fits = activity(region.name, role, paradigm) is target
    return region.name if fits else f"{region.name} (call)", role, paradigm


def _marks(store: TraceStore, clock: WrittenTicks) -> list[bytes]:
    """The users' marks, in one category."""
    marks: list[bytes] = []
    for i, location in enumerate(store.locations):
        for time, text in store.blocks("marks", i):
            for at, number in zip(clock(location, time).tolist(), text.tolist(), strict=True):
                marks.append(_record(6, "NNnbNs", at, 0, 0, 1, i, store.texts[number]))
    return [_record(5, "nssb", 0, "Phasewright", "mark", 1), *marks] if marks else []


# ------------------------------------------------------------------ events

#: Order of rows at the same place and time: ends, begins, ends of what begins then, enter or leave.
_ENDS, _BEGINS, _ENDS_AT_ONCE, _EVENT = range(4)
#: Rows of an array of records: the record's kind, its time, its fields.
_KIND, _TIME, _A, _B, _C, _D, _E = range(7)


def _rows(kind: AnyArray | int, time: AnyArray, *fields: AnyArray | int) -> Ints:
    rows = np.zeros((7, time.size), np.int64)
    for i, column in enumerate((kind, time, *fields)):
        rows[i] = (
            column.view(np.int64) if isinstance(column, np.ndarray) and column.dtype == np.uint64 else column
        )
    return rows


class _WrittenRecords:
    """The event records of a location, stretch by stretch, in order."""

    def __init__(self, store: TraceStore, index: int, definitions: _Definitions, exported: Exported) -> None:
        self._location, self._definitions, self._exported = store.locations[index], definitions, exported
        self._speaks = np.array([is_communication(region) for region in store.regions], bool)
        self._off = np.array([_is_off(region) for region in store.regions], bool)
        self._late = _rows(0, np.empty(0))  # ends of operations, not written yet
        self._busy = -1  # end of the last operation

    def of(self, end: int, rows: dict[str, Columns]) -> Ints:
        """The records of a stretch up to the time `end`, (7, n); times as recorded."""
        messages = self._messages(rows["messages"])
        begins = self._operations(rows["collectives"])
        due = self._late[_TIME] <= end
        ends, self._late = self._late[:, due], self._late[:, ~due]
        metrics = rows["metrics"]
        number = np.array([self._definitions.metrics[text] for text in metrics["metric"].tolist()], np.int64)
        values = _rows(METRIC, metrics["time"], number, metrics["value"].view(np.int64))
        posts = np.isin(messages[_KIND], (SEND, ISEND, IRECV_REQUEST))
        at_once = ends[_E] == 1
        return self._ordered(
            rows["events"],
            (messages[:, ~posts], _ENDS),
            (ends[:, ~at_once], _ENDS),
            (messages[:, posts], _BEGINS),
            (begins, _BEGINS),
            (values, _BEGINS),
            (ends[:, at_once], _ENDS_AT_ONCE),
        )

    def first(self) -> Ints:
        """A record at the first time of the location."""
        begin = self._location.first
        return _rows(PROGRAM_BEGIN, np.array([] if begin is None else [begin]))

    def last(self) -> Ints:
        """Ends after all other rows, and a record at the last time of the location."""
        end = self._location.last
        late = self._late[:, np.argsort(self._late[_TIME], kind="stable")]
        gone = _rows(PROGRAM_END, np.array([] if end is None else [end]))
        return np.concatenate([late, gone], axis=1)

    def _ordered(self, events: Columns, *others: tuple[Ints, int]) -> Ints:
        """Merge by time; rows at the time of enters and leaves are placed inside the call they belong to."""
        time, leaves, region = events["time"], events["kind"] == EventKind.LEAVE, events["region"]
        speaks, off = self._speaks[region], self._off[region]
        kind = np.where(off, ON_OFF, np.where(leaves, LEAVE, ENTER))
        event_rows = _rows(kind, time, np.where(off, np.where(leaves, ON, OFF), region))
        row = np.arange(time.size)
        # The latest enter up to each row, and the first leave from it on.
        entered = np.maximum.accumulate(np.where(speaks & ~leaves, row, -1)) if time.size else row
        left = (
            np.minimum.accumulate(np.where(speaks & leaves, row, time.size)[::-1])[::-1] if time.size else row
        )
        entered, left = np.append(entered, -1), np.append(left, time.size)
        parts, places, order = [event_rows], [row], [np.full(time.size, _EVENT)]
        for rows, rank in others:
            a, b = (np.searchsorted(time, rows[_TIME], side) for side in ("left", "right"))
            inside_entered, inside_left = entered[b - 1] + 1, left[a]
            known_entered, known_left = inside_entered > a, inside_left < b
            if rank == _ENDS:
                place = np.where(known_left, inside_left, np.where(known_entered, inside_entered, b))
            else:
                place = np.where(known_entered, inside_entered, np.where(known_left, inside_left, b))
            parts.append(rows)
            places.append(place)
            order.append(np.full(place.size, rank))
        merged = np.concatenate(parts, axis=1)
        return merged[:, np.lexsort((np.concatenate(order), merged[_TIME], np.concatenate(places)))]

    def _messages(self, rows: Columns) -> Ints:
        defs = self._definitions
        kind = _MESSAGE[rows["kind"]]
        comm = np.array([defs.communicators[number] for number in rows["communicator"].tolist()], np.int64)
        partnered = np.isin(kind, (SEND, ISEND, RECV, IRECV))
        rank = defs.rank[comm, rows["peer"]] if comm.size else comm
        lost = partnered & (rows["peer"] < 0)
        self._exported.leave_out("messages whose partner is not known", lost.sum())
        request = rows["request"].view(np.int64)
        written = _rows(
            kind, rows["time"], np.where(partnered, rank, request), comm, rows["tag"], rows["bytes"], request
        )
        return written[:, ~lost]

    def _operations(self, rows: Columns) -> Ints:
        """Begins of operations; their ends are written when their time comes."""
        defs, keep = self._definitions, []
        operation = defs.operations[rows["operation"]]
        for i, (begin, end) in enumerate(zip(rows["begin"].tolist(), rows["end"].tolist(), strict=True)):
            if operation[i] >= 0 and begin >= self._busy:
                keep.append(i)
                self._busy = end
        self._exported.leave_out("operations that OTF2 has no name for", (operation < 0).sum())
        self._exported.leave_out(
            "operations that begin before the previous one ends", (operation >= 0).sum() - len(keep)
        )
        rows, operation = {name: column[keep] for name, column in rows.items()}, operation[keep]
        comm = np.array([defs.communicators[number] for number in rows["communicator"].tolist()], np.int64)
        root = np.where(rows["root"] < 0, UNDEFINED, defs.rank[comm, rows["root"]] if comm.size else comm)
        at_once = (rows["begin"] == rows["end"]).astype(np.int64)
        # Operation and root share a field, as a row has only five.
        packed = operation << 32 | root
        ends = _rows(COLLECTIVE_END, rows["end"], packed, comm, rows["sent"], rows["received"], at_once)
        self._late = np.concatenate([self._late, ends], axis=1)
        return _rows(COLLECTIVE_BEGIN, rows["begin"])


def _is_off(region: Region) -> bool:
    """Whether nothing was measured inside this region; readers would not know that by its name."""
    unknown = activity(region.name, region.role, region.paradigm) is not Activity.UNMEASURED
    return region_activity(region) is Activity.UNMEASURED and (unknown or region.synthetic)


class EventWriter:
    """Writes records into chunks of an event file; `count`: number of records so far."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.count = file, 0
        self._chunk = np.zeros(CHUNK, np.uint8)
        self._at, self._first, self._time = HEADER, 1, -1

    def write(self, records: Ints) -> None:
        """Write records (7, n) in order of time, in ticks of the archive."""
        row = 0
        while row < records.shape[1]:
            row, self._at, self._time, written = encode(self._chunk, self._at, self._time, records, row)
            self.count += written
            if row < records.shape[1]:
                self._chunk[self._at] = 1
                self._chunk[self._at + 1 :] = 0
                self._put(CHUNK)
                self._at, self._first, self._time = HEADER, self.count + 1, -1

    def close(self) -> None:
        """Write the last chunk."""
        self._chunk[self._at : self._at + 2] = 2, 1
        self._put(self._at + 2)

    def _put(self, size: int) -> None:
        self._chunk[:HEADER] = np.frombuffer(_header(self._first, self.count), np.uint8)
        self._file.write(self._chunk[:size].data)


@inlined
def raw(chunk: Bytes, at: int, value: int) -> int:
    """Write eight bytes; returns the next position."""
    for i in range(8):
        chunk[at + i] = (value >> (8 * i)) & 0xFF
    return at + 8


@inlined
def number(chunk: Bytes, at: int, value: int) -> int:
    """Write a compressed number of 64 bits; -1 is undefined. Returns the next position."""
    if value == -1:
        chunk[at] = 255
        return at + 1
    left, size = np.uint64(value), 0
    while left != 0:
        size += 1
        chunk[at + size] = left & np.uint64(0xFF)
        left >>= np.uint64(8)
    chunk[at] = size
    return at + 1 + size


@inlined
def short(chunk: Bytes, at: int, value: int) -> int:
    """Write a compressed number of 32 bits, the lower half of `value`; returns the next position."""
    value &= 0xFFFFFFFF
    return number(chunk, at, -1 if value == 0xFFFFFFFF else value)


@arithmetic
def encode(chunk: Bytes, at: int, now: int, records: Ints, row: int) -> tuple[int, int, int, int]:
    """Write records from `row` on, as many as fit; returns the next row, byte and time, and their number."""
    begin = row
    while row < records.shape[1] and at + LONGEST <= chunk.size:
        kind, time = records[0, row], records[1, row]
        if time != now:
            chunk[at] = 5
            at = raw(chunk, at + 1, time)
            now = time
        a, b, c, d, e = records[2, row], records[3, row], records[4, row], records[5, row], records[6, row]
        chunk[at] = kind
        if kind in (ENTER, LEAVE):
            at = short(chunk, at + 1, a)
        elif kind in (ISEND_COMPLETE, IRECV_REQUEST, CANCELLED):
            at = number(chunk, at + 1, a)
        else:
            body = at + 2
            end = body
            if kind == ON_OFF:
                chunk[end] = a
                end += 1
            elif kind == COLLECTIVE_END:
                chunk[end] = a >> 32
                end = short(chunk, end + 1, b)
                end = short(chunk, end, a)
                end = number(chunk, end, c)
                end = number(chunk, end, d)
            elif kind == METRIC:
                end = short(chunk, end, a)
                chunk[end], chunk[end + 1] = 1, DOUBLE
                end = number(chunk, end + 2, b)
            elif kind == PROGRAM_BEGIN:  # without name and arguments
                end = number(chunk, number(chunk, end, 0), 0)
            elif kind == PROGRAM_END:
                end = number(chunk, end, 0)
            elif kind != COLLECTIVE_BEGIN:
                end = short(chunk, end, a)
                end = short(chunk, end, b)
                end = short(chunk, end, c)
                end = number(chunk, end, d)
                if kind in (ISEND, IRECV):
                    end = number(chunk, end, e)
            chunk[at + 1] = end - body
            at = end
        row += 1
    return row, at, now, row - begin

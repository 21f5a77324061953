"""Writes OTF2 archives byte by byte, in either byte order: what the decoder must read, whatever tools write.

Written from the layout in the OTF2 3.2 reference and sources (score-p.org), not from the decoder.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Event records: type and fields (b byte, n/N number of 32/64 bits, Q raw 64 bits); without a length: BARE.
EVENTS: dict[str, tuple[int, str]] = {
    "BufferFlush": (10, "Q"),
    "MeasurementOnOff": (11, "b"),
    "Enter": (12, "n"),
    "Leave": (13, "n"),
    "MpiSend": (14, "nnnN"),
    "MpiIsend": (15, "nnnNN"),
    "MpiIsendComplete": (16, "N"),
    "MpiIrecvRequest": (17, "N"),
    "MpiRecv": (18, "nnnN"),
    "MpiIrecv": (19, "nnnNN"),
    "MpiRequestTest": (20, "N"),
    "MpiRequestCancelled": (21, "N"),
    "MpiCollectiveBegin": (22, ""),
    "MpiCollectiveEnd": (23, "bnnNN"),
    "Metric": (31, ""),
    "ThreadFork": (53, "bn"),
    "CallingContextEnter": (66, "nn"),
    "CallingContextLeave": (67, "n"),
    "NonBlockingCollectiveRequest": (85, "N"),
}
BARE = {12, 13, 16, 17, 20, 21}
UNSIGNED, SIGNED, DOUBLE = 4, 8, 10  # types of metric values


@dataclass(frozen=True)
class Event:
    """A record: its name in `EVENTS` (or a type number, fields then bytes), fields, and how it is written.

    A metric's fields are its number and pairs of type and value. `slack`: bytes more than a number needs;
    `attributes`: how many of them are ahead of it; `more`: bytes of fields of a later version.
    """

    time: int
    record: str | int
    fields: tuple[Any, ...] = ()
    slack: int = 0
    attributes: int | None = None
    more: int = 0


@dataclass
class Place:
    """A location: its number, records, and local definitions.

    `maps`: kind of number -> local to global numbers; written dense where the keys are 0, 1, 2, ...
    `thread_of`: the location whose process has this one as a further thread, which is no rank of its own.
    `kind`: 1 a processor's thread, 2 a stream of an accelerator, 3 metrics.
    """

    id: int
    events: Sequence[Event] = ()
    maps: dict[int, dict[int, int]] = field(default_factory=dict)
    offsets: Sequence[tuple[int, int]] = ()
    thread_of: int | None = None
    kind: int = 1


@dataclass
class Writer:
    """Encodes in one byte order (``"<"`` or ``">"``), in chunks of so many bytes."""

    order: str = "<"
    chunk: int = 1 << 18

    def number(self, value: int, most: int = 8, slack: int = 0) -> bytes:
        if value == (1 << 8 * most) - 1:
            return b"\xff"
        size = min((value.bit_length() + 7) // 8 + slack, most)
        return bytes([size]) + value.to_bytes(size, "little" if self.order == "<" else "big")

    def raw(self, form: str, value: float) -> bytes:
        return struct.pack(self.order + form, value)

    def fields(self, forms: str, values: Iterable[Any], slack: int = 0) -> bytes:
        parts = []
        for form, value in zip(forms, values, strict=True):
            match form:
                case "b":
                    parts.append(bytes([value]))
                case "n":
                    parts.append(self.number(value, 4, slack))
                case "N":
                    parts.append(self.number(value, 8, slack))
                case "s":
                    parts.append(value.encode() + b"\0")
                case _:
                    parts.append(self.raw(form, value))
        return b"".join(parts)

    def record(self, kind: int, body: bytes) -> bytes:
        length = bytes([len(body)]) if len(body) < 255 else b"\xff" + self.raw("Q", len(body))
        return bytes([kind]) + length + body

    def file(self, records: Iterable[tuple[bytes, int]], counted: bool) -> bytes:
        """Chunks of records, given as bytes and how many each counts as."""
        chunks: list[bytes] = []
        body, first, last = b"", 1, 0

        def head() -> bytes:
            return (
                b"\x03"
                + (b"\x42" if self.order == "<" else b"\x23")
                + self.raw("Q", first)
                + self.raw("Q", last if counted else 0)
            )

        for data, count in records:
            if 18 + len(body) + len(data) + 2 > self.chunk:
                chunks.append((head() + body).ljust(self.chunk, b"\0"))
                body, first = b"", last + 1
            body += data
            last += count
        return b"".join(chunks) + head() + body + b"\x02\x01"

    def event(self, event: Event) -> bytes:
        data = b""
        if event.attributes is not None:
            body = self.number(event.attributes, 4)
            for i in range(event.attributes):
                body += self.number(i, 4) + bytes([1, i % 256])  # a byte
            data = self.record(6, body)
        if isinstance(event.record, int):
            return data + self.record(event.record, event.fields[0])
        kind, forms = EVENTS[event.record]
        if event.record == "Metric":
            metric, *values = event.fields
            body = self.number(metric, 4) + bytes([len(values)])
            for of, value in values:
                bits = struct.unpack("<Q", struct.pack({4: "<Q", 8: "<q", 10: "<d"}[of], value))[0]
                body += bytes([of]) + self.number(bits)
        else:
            body = self.fields(forms, event.fields, event.slack)
        return data + (bytes([kind]) + body if kind in BARE else self.record(kind, body + bytes(event.more)))

    def events(self, events: Sequence[Event]) -> bytes:
        records, now = [], -1
        for event in events:
            stamp = b"" if event.time == now else b"\x05" + self.raw("Q", event.time)
            now = event.time
            records.append((stamp + self.event(event), 1))
        return self.file(records, counted=True)

    def local(self, place: Place) -> bytes:
        records = []
        for kind, numbers in place.maps.items():
            dense = list(numbers) == list(range(len(numbers)))
            body = bytes([kind]) + self.number(len(numbers)) + bytes([not dense])
            for local, number in numbers.items():
                body += (b"" if dense else self.number(local)) + self.number(number)
            records.append((self.record(5, body), 0))
        for time, offset in place.offsets:
            body = self.raw("Q", time) + self.number(offset % (1 << 64)) + self.raw("d", 0.0)
            records.append((self.record(6, body), 0))
        return self.file(records, counted=False)


def write(
    folder: Path,
    places: Sequence[Place],
    *,
    regions: dict[int, str] | None = None,
    paradigms: dict[int, int] | None = None,
    contexts: dict[int, int] | None = None,
    members: Sequence[str] = (),
    about: Sequence[tuple[int, int, str]] = (),
    communicators: Sequence[str] = ("", "", ""),
    order: str = "<",
    chunk: int = 1 << 18,
    version: tuple[int, int, int] = (3, 2, 0),
    resolution: int = 1_000_000_000,
) -> Path:
    """An archive of MPI processes, in rank order, and their threads; its anchor file.

    Communicator 0 is all of them, in their order, 1 the same backwards, 2 everybody's own; `communicators`:
    their names. Metric 0 is the
    class of all `members`; `about`: mode, power of ten and unit of each.
    `paradigms`: of regions, by OTF2's numbers; of others MPI or user, by the name.
    """
    to = Writer(order, chunk)
    strings: dict[str, int] = {"": 0}
    definitions: list[bytes] = []

    def text(value: str) -> int:
        if value not in strings:
            strings[value] = len(strings)
            define(10, "ns", strings[value], value)
        return strings[value]

    def define(kind: int, forms: str, *values: Any) -> None:
        definitions.append(to.record(kind, to.fields(forms, values)))

    none = 0xFFFFFFFF
    world = [place.id for place in places if place.thread_of is None]
    many = len(world)
    define(5, "NNNN", resolution, 0, 0, 0)
    define(10, "ns", 0, "")
    define(12, "nnnn", 0, text("machine"), text("node"), none)
    for rank in range(many):
        define(13, "nnbnn", rank, text(f"rank {rank}"), 1, 0, none)
    for place in places:
        group = world.index(place.id if place.thread_of is None else place.thread_of)
        define(14, "NnbNn", place.id, text("thread"), place.kind, len(place.events), group)
    for number, name in (regions or {}).items():
        paradigm = (paradigms or {}).get(number, 4 if name.startswith("MPI_") else 1)
        define(15, "nnnbnnnnbbn", number, text(name), 0, 0, none, 0, 0, text(name), 1, paradigm, 0)
    for number, kind, ranks in (
        (0, 4, world),
        (1, 5, range(many)),
        (2, 5, range(many)[::-1]),
        (3, 6, []),
    ):
        define(18, "nnbn" + "N" * len(ranks) + "bbn", number, 0, 0, len(ranks), *ranks, kind, 4, 0)
    for comm in range(3):
        define(22, "nnnnn", comm, text(communicators[comm]), comm + 1, none, 0)
    for member, name in enumerate(members):
        mode, power, unit = about[member] if about else (0, 0, "")
        values = 0, 0, mode, UNSIGNED, 1, power % (1 << 64), text(unit)
        define(19, "nnnbbbbNn", member, text(name), *values)
    if members:
        define(20, "nb" + "n" * len(members) + "bb", 0, len(members), *range(len(members)), 0, 0)
    for number, region in (contexts or {}).items():
        define(34, "nnnn", number, region, none, none)

    inside = folder / "traces"
    inside.mkdir(parents=True)
    anchor = folder / "traces.otf2"
    head = b"\x03" + (b"\x42" if order == "<" else b"\x23") + b"OTF2\0" + bytes([3, 2, *version])
    head += to.fields(
        "QQbbQQsss", (chunk, max(chunk, 1 << 18), 1, 1, len(places), len(definitions), "m", "tests", "")
    )
    anchor.write_bytes(head + bytes(4) + bytes(16) + b"\x02\x01\0")
    wide = Writer(order, max(chunk, 1 << 18))
    (folder / "traces.def").write_bytes(wide.file([(data, 0) for data in definitions], counted=False))
    for place in places:
        (inside / f"{place.id}.def").write_bytes(wide.local(place))
        (inside / f"{place.id}.evt").write_bytes(to.events(place.events))
    return anchor

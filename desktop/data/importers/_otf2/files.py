"""Phasewright's own engine: decodes every file of an archive, on any system.

Definitions are few, so they are read here in plain Python; `_otf2.decoder` reads the events.

Source: OTF2 3.2 (score-p.org), layout of the chunks and records of definition and marker files.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from desktop.core.arrays import Ints
from desktop.data.importers._otf2.decoder import (
    BIG,
    CHUNK,
    CHUNK_HEADER,
    END_OF_BUFFER,
    END_OF_FILE,
    FILL,
    LITTLE,
    EventFile,
)
from desktop.data.importers._otf2.definitions import Definitions
from desktop.data.importers._otf2.engine import DENSE, SLOTS, SPARSE, Anchor, Damage, EngineMark, Local, Marks
from desktop.data.importers._otf2.records import CUT, FAULTS, HEADLESS, MALFORMED, UNDEFINED, Block
from desktop.errors import reason

#: Global definitions that are kept: type, fields as `Fields.read` takes them, and which of them are kept, in
#: the order of `definitions.KEPT`. New fields are appended to a record, so the rest is left unread.
LAYOUT = {
    5: ("ClockProperties", "NNN", (0, 1, 2)),
    10: ("String", "ns", (0, 1)),
    13: ("LocationGroup", "nnb", (0, 1, 2)),
    14: ("Location", "NnbNn", (0, 1, 2, 3, 4)),
    15: ("Region", "nnnbnnnnbb", (0, 1, 8, 9, 2, 7)),
    18: ("Group", "nnb*Nbbn", (0, 4, 5, 6, 3)),
    19: ("MetricMember", "nnnbbbbNn", (0, 1, 4, 6, 7, 8)),
    20: ("MetricClass", "n+n", (0, 1)),
    21: ("MetricInstance", "nn", (0, 1)),
    22: ("Comm", "nnn", (0, 2, 1)),
    34: ("CallingContext", "nn", (0, 1)),
}
ByteOrder: TypeAlias = Literal["little", "big"]
MAPPING_TABLE, CLOCK_OFFSET = 5, 6  # in local definitions
DEFINE_MARK, MARK = 5, 6  # in files of marks


class Fields:
    """The fields of one record, read one after the other; raises `Damage` where they end too early."""

    def __init__(self, data: bytes, at: int, stop: int, order: ByteOrder, base: int) -> None:
        self.data, self.at, self.stop, self.order, self.base = data, at, stop, order, base

    def fault(self, fault: int = MALFORMED) -> Damage:
        return Damage(FAULTS[fault], self.base + self.at)

    def take(self, size: int) -> bytes:
        if size > self.stop - self.at:
            raise self.fault()
        self.at += size
        return self.data[self.at - size : self.at]

    def byte(self) -> int:
        return self.take(1)[0]

    def word(self) -> int:
        """A field of 64 bits."""
        return int.from_bytes(self.take(8), self.order)

    def number(self, most: int = 8) -> int:
        """A compressed number of at most `most` bytes; all bits set if it is undefined."""
        size = self.byte()
        if size == 255:
            return (1 << 8 * most) - 1
        if size > most:
            self.at -= 1
            raise self.fault()
        return int.from_bytes(self.take(size), self.order)

    def signed(self) -> int:
        return wrapped(self.number())

    def text(self) -> bytes:
        end = self.data.find(b"\0", self.at, self.stop)
        if end < 0:
            raise self.fault()
        return self.take(end + 1 - self.at)[:-1]

    def read(self, forms: str) -> list[Any]:
        """Read a field for each letter: b byte, n and N number of 32 and 64 bits, s text; after ``*`` as many
        as a number in front of them says, after ``+``: as a byte says."""
        values: list[Any] = []
        many = ""
        for form in forms:
            if form in "*+":
                many = form
                continue
            read = {"b": self.byte, "n": lambda: self.number(4), "N": self.number, "s": self.text}[form]
            if many:
                n = self.byte() if many == "+" else self.number(4)
                values.append([read() for _ in range(n)])
                many = ""
            else:
                values.append(read())
        return values


def wrapped(value: int) -> int:
    """64 bits as a signed number."""
    return value - (1 << 64) if value >> 63 else value


def records(file: Path, chunk: int) -> Iterator[tuple[int, Fields]]:
    """Type and fields of every record of a definition file; raises `Damage` where it becomes invalid."""
    try:
        with file.open("rb") as stream:
            base = 0
            while True:
                data = stream.read(chunk)
                if (yield from chunk_records(data, base, len(data) < chunk)):
                    return
                base += chunk
    except OSError as error:
        raise Damage(f"the file cannot be read ({reason(error)})") from None


def chunk_records(data: bytes, base: int, partial: bool) -> Generator[tuple[int, Fields], None, bool]:
    """The records of a chunk at byte `base`; `partial`: the file ends inside the chunk. Returns whether it is
    the last one."""
    if len(data) < CHUNK_HEADER or data[0] != CHUNK or data[1] not in (LITTLE, BIG):
        raise Damage(FAULTS[CUT if len(data) < CHUNK_HEADER else HEADLESS], base)
    order: ByteOrder = "little" if data[1] == LITTLE else "big"
    too_long = FAULTS[CUT if partial else MALFORMED]
    at = CHUNK_HEADER
    while at < len(data):
        kind = data[at]
        if kind == END_OF_FILE:
            return True
        if kind in (FILL, END_OF_BUFFER):
            break
        head = Fields(data, at + 1, len(data), order, base)
        try:
            length = head.byte()
            if length == 255:
                length = head.word()
            stop = head.at + length
        except Damage:
            stop = len(data) + 1
        if stop > len(data):
            raise Damage(too_long, base + at)
        yield kind, Fields(data, head.at, stop, order, base)
        at = stop
    if partial:
        raise Damage(FAULTS[CUT], base + at)
    return False


class Files:
    """Reads the files of an archive."""

    def __init__(self, anchor: Anchor, records: int) -> None:
        """`records`: of a location, read at a time."""
        self.anchor, self.at_a_time = anchor, records
        self._events: EventFile | None = None

    def close(self) -> None:
        self._events = None

    def definitions(self) -> Definitions:
        definitions = Definitions()
        for kind, fields in records(self.anchor.definitions(), self.anchor.definition_chunk):
            definitions.records += 1
            if kind in LAYOUT:
                record, forms, places = LAYOUT[kind]
                values = fields.read(forms)
                definitions.torn += record == "String" and fields.at < fields.stop
                definitions.add(record, *(values[i] for i in places))
        return definitions

    def local(self, location: int) -> Local:
        local = Local()
        offsets: list[tuple[int, int]] = []
        tables: dict[int, tuple[int, list[int], list[int]]] = {}
        try:
            for kind, fields in records(self.anchor.definitions(location), self.anchor.definition_chunk):
                if kind == CLOCK_OFFSET:
                    offsets.append((wrapped(fields.word()), fields.signed()))
                elif kind == MAPPING_TABLE:
                    of = fields.byte()
                    if of in SLOTS:
                        tables[SLOTS[of]] = mapping(fields)
        except Damage as damage:
            local.damage = str(damage)
        local.set_offsets(offsets)
        local.maps = maps(tables)
        return local

    def events(self, location: int, local: Local, span: int) -> Generator[Block, None, None]:
        if self._events is None:
            self._events = EventFile(self.anchor.chunk, self.anchor.newer, self.at_a_time, span)
        return self._events.blocks(self.anchor.events(location), local)

    def marks(self) -> Marks:
        marks = Marks()
        file = self.anchor.folder.with_suffix(".marker")
        if not file.exists():
            return marks
        categories: dict[int, bytes] = {}
        try:
            for kind, fields in records(file, self.anchor.definition_chunk):
                if kind == DEFINE_MARK:
                    number, _, category = fields.read("nss")
                    categories[number] = category
                elif kind == MARK:
                    time, _, number, scope, of, text = fields.read("NNnbNs")
                    words = (text or categories.get(number, b"")).decode("utf-8", "replace")
                    marks.marks.append(
                        EngineMark(time, words or f"mark {number}", of if scope == 1 else None)
                    )
        except Damage as damage:
            marks.damage = str(damage)
        return marks


def mapping(fields: Fields) -> tuple[int, list[int], list[int]]:
    """Mode, local and global numbers of a mapping table; in a dense one the index is the local number."""
    size, dense = fields.number(), fields.byte() == 0
    local, globally = [], []
    for _ in range(size):
        if not dense:
            local.append(fields.number() & UNDEFINED)
        globally.append(fields.number() & UNDEFINED)
    return (DENSE if dense else SPARSE), local, globally


def maps(tables: dict[int, tuple[int, list[int], list[int]]]) -> Ints:
    """Mapping tables by slot, in the form of `engine.Local` for the compiled loop."""
    head, body = [0] * (3 * len(SLOTS)), list[int]()
    for slot, (mode, local, globally) in tables.items():
        if mode == SPARSE:
            pairs = dict(zip(local, globally, strict=True))
            local = sorted(pairs)
            globally = [pairs[key] for key in local]
        head[3 * slot : 3 * slot + 3] = mode, len(head) + len(body), len(globally)
        body += local + globally
    return np.array(head + body, np.int64)

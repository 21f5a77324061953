"""The interface between importer and engine: an engine reads the files of an archive, by whatever means.

`_otf2.files` decodes the bytes itself. The tests have a second engine, which calls libotf2; on an intact
archive both give the same results.
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from desktop.core.arrays import Ints
from desktop.data.importers._otf2.definitions import Definitions
from desktop.data.importers._otf2.records import Block
from desktop.errors import TraceFormatError

#: Kinds of numbers that a location may have local ones of, by their number in mapping tables -> their slot.
REGION, COMM, METRIC, CALLING_CONTEXT = range(4)
SLOTS = {3: REGION, 6: COMM, 5: METRIC, 10: CALLING_CONTEXT}
NO_MAP, DENSE, SPARSE = range(3)

#: Largest share by which two clocks drift apart (quartz: 10^-4 at most).
DRIFT = 1e-3

LATEST = (3, 2)  # latest version of the library, whose records are all known here
ANCHOR_LIMIT = 1 << 20


class Damage(Exception):
    """A file of the archive ends too early or is invalid: what is wrong, and at which byte if known."""

    def __init__(self, what: str, at: int | None = None) -> None:
        super().__init__(what if at is None else f"byte {at}: {what}")


@dataclass
class Anchor:
    """The anchor file, which describes the whole archive."""

    file: Path
    version: tuple[int, ...]
    chunk: int
    definition_chunk: int
    locations: int
    records: int  # global definitions of any kind
    machine: str
    creator: str

    @property
    def folder(self) -> Path:
        """The directory of the locations' files; global definitions and marks are beside it."""
        return self.file.with_suffix("")

    @property
    def newer(self) -> bool:
        """Whether the archive was written by a later library, which may have records unknown here."""
        return self.version[:2] > LATEST

    def events(self, location: int) -> Path:
        return self.folder / f"{location}.evt"

    def definitions(self, location: int | None = None) -> Path:
        """File of a location's local definitions; None: of the global ones."""
        return self.folder.with_suffix(".def") if location is None else self.folder / f"{location}.def"

    @staticmethod
    def read(file: Path) -> Anchor:
        """The anchor file; raises TraceFormatError if it is cut or uses an unsupported feature."""
        with file.open("rb") as stream:
            data = stream.read(ANCHOR_LIMIT)

        def refuse(what: str, where: str, hint: str = "copy it again") -> TraceFormatError:
            return TraceFormatError(what, file=file, where=where, hint=hint)

        order = ">" if data[1:2] == b"\x23" else "<"
        cut = refuse("the anchor file of the OTF2 archive is cut", f"at byte {len(data)}")
        try:
            _, _, *version, chunk, definition_chunk, substrate, compression, locations, records = (
                struct.unpack_from(f"{order}BB3BQQBBQQ", data, 7)
            )
        except struct.error:
            raise cut from None
        if substrate != 1 or compression != 1:
            raise refuse(
                "is an OTF2 archive in a SION container or compressed, which is not supported",
                "in the anchor file",
                "write it with the POSIX substrate and without compression",
            )
        if not 1 << 8 <= min(chunk, definition_chunk) <= max(chunk, definition_chunk) <= 1 << 24:
            raise refuse(
                "the anchor file of the OTF2 archive is damaged",
                f"its chunks have {chunk} and {definition_chunk} bytes",
            )
        texts = data[46:].split(b"\0", 3)
        if len(texts) < 4 or not data.rstrip(b"\0").endswith(b"\x02\x01"):
            raise cut
        machine, creator = (text.decode("utf-8", "replace") for text in texts[:2])
        return Anchor(file, tuple(version), chunk, definition_chunk, locations, records, machine, creator)


@dataclass
class Local:
    """Local definitions of a location.

    `damage`: why they are incomplete. `offsets`: times and clock offsets, (2, n) in order of time;
    `repeated`: further offsets that had the time of another. `maps`: from the numbers in its records to the
    global ones; for each slot mode, start and size, then the numbers.
    """

    damage: str = ""
    offsets: Ints = field(default_factory=lambda: np.zeros((2, 0), np.int64))
    repeated: int = 0
    maps: Ints = field(default_factory=lambda: np.zeros(3 * len(SLOTS), np.int64))

    @property
    def synchronised(self) -> bool:
        """Whether the clock is corrected; one offset alone has no effect."""
        return bool(self.offsets.shape[1] > 1)

    @property
    def bent(self) -> bool:
        """Whether the offsets change faster than any two clocks drift apart."""
        time, offset = self.offsets.astype(np.float64)
        return bool((np.abs(np.diff(offset)) > DRIFT * np.abs(np.diff(time)) + 1000).any())

    def set_offsets(self, offsets: list[tuple[int, int]]) -> None:
        unique = dict(offsets)
        self.repeated = len(offsets) - len(unique)
        self.offsets = np.array(sorted(unique.items()), np.int64).reshape(-1, 2).T.copy()


@dataclass
class EngineMark:
    """A user's mark, on one location (its number) or on the whole run (None)."""

    time: int
    text: str
    location: int | None = None


@dataclass
class Marks:
    marks: list[EngineMark] = field(default_factory=list)
    damage: str = ""


class Engine(Protocol):
    """Reads one archive; to be closed at the end."""

    def definitions(self) -> Definitions:
        """The global definitions; raises `Damage` if they are incomplete."""

    def local(self, location: int) -> Local:
        """The local definitions of a location."""

    def events(self, location: int, local: Local, span: int) -> Generator[Block, None, None]:
        """The rows of a location, block by block. No two of its times are further apart than `span` ticks.
        The last block has the fault of the file, if any."""

    def marks(self) -> Marks: ...

    def close(self) -> None: ...

"""The file as a stream of blocks of whole lines, and what format it is of.

Source: ORNL/TM-12125 and the PICL 1.x node library say nothing of a header: the first lines decide.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from desktop.data.events import ImportReport
from desktop.data.importers._picl import lines as ln
from desktop.errors import TraceFormatError

BLOCK = 8 << 20
#: A line longer than this is cut: it is no PICL line, and memory stays bounded.
LONGEST = 64 << 20
#: Share of unreadable lines above which a file is refused.
REFUSED_SHARE = 0.2

_A, _B = ln.FORMAT_A, ln.FORMAT_B


_VERBOSE = re.compile(r"\s*([A-Za-z_]+)\s+clock\s+-?\d+\s+-?\d+\s+node\s+-?\d+(\s|$)")
_NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eEdD][+-]?\d+)?$")
_INTEGER = re.compile(r"[+-]?\d{1,18}$")


def line_form(line: str, strict: bool) -> int | None:
    """Which format a line is of, if any; strict: its type is known and its fields are complete."""
    tokens = line.split()
    verbose = _VERBOSE.match(line)
    if verbose:
        return _A if not strict or verbose[1] in ln.NAMES else None
    if len(tokens) < 4 or not _INTEGER.match(tokens[0]):
        return None
    first = int(tokens[0])
    if first >= 1:
        if not all(_INTEGER.match(t) for t in tokens[:4]) or abs(int(tokens[2])) >= 1_000_000:
            return None
        if not strict:
            return _A
        if first > 24 or not (int(tokens[3]) >= -1 or int(tokens[3]) == ln.HOST):
            return None
        want = ln.FIELDS[first]
        exact = want < 0 or len(tokens) - 4 == want or (first == 11 and len(tokens) == 8)
        return _A if exact else None
    if len(tokens) < 6 or not _NUMBER.match(tokens[2]):
        return None
    if -first not in ln.RECORDS_B or not all(_INTEGER.match(tokens[i]) for i in (1, 3, 4, 5)):
        return None
    return _B if int(tokens[5]) >= 0 else None


def form_of(head: bytes, whole: bool) -> int | None:
    """The format of a file from its beginning; whole: the last line is not cut by us."""
    text = head.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe").replace(b"\x1a", b"").decode("latin-1")
    found = re.split("\r\n|\n|\r", text)
    if not whole and len(found) > 1:
        found.pop()
    written = [line for line in found if line.strip() and not line.lstrip().startswith("#")][:250]
    if written and written[0].split()[0] == "-1":
        return None  # an ALOG file: creator and date; no record of B is of that type
    for skipped, line in enumerate(written[:51]):
        form = line_form(line, strict=True)
        if form is not None:
            sample = written[skipped : skipped + 200]
            if len(sample) > 1 and whole:
                # The last line of a file may be cut.
                sample = sample[:-1] if line_form(sample[-1], strict=False) is None else sample
            wrong = sum(line_form(other, strict=False) != form for other in sample)
            return form if wrong <= REFUSED_SHARE * len(sample) else None
    return None


_REFUSED = {b"\x1f\x9d": "compress (.Z)", b"\x28\xb5\x2f\xfd": "Zstandard (.zst)"}
_SUFFIXES = (".trf", ".ttf", ".raw", ".picl")


def detect(path: Path, head: bytes) -> bool:
    if path.is_dir():
        return False
    if any(head.startswith(magic) for magic in _REFUSED):
        # Only the name can tell what such a file holds; claiming it gives the user a sentence.
        return path.with_suffix("").suffix.lower() in _SUFFIXES
    whole = len(head) < 1 << 16
    if _opener(head) is not None:
        head, whole = _unpacked_head(path)
    return form_of(head, whole) is not None


def _opener(head: bytes) -> Any:
    if head.startswith(b"\x1f\x8b"):
        return gzip.open
    if head.startswith(b"\xfd7zXZ\x00"):
        return lzma.open
    if head.startswith(b"BZh"):
        return bz2.open
    return None


_BROKEN = (EOFError, OSError, zlib.error, lzma.LZMAError)


def _unpacked_head(path: Path) -> tuple[bytes, bool]:
    head = b""
    try:
        with path.open("rb") as raw, _opener(raw.read(6))(_rewound(raw)) as stream:
            while len(head) < 1 << 16:
                piece = stream.read1(1 << 13)
                if not piece:
                    return head, True
                head += piece
    except _BROKEN:
        pass
    return head, False


def _rewound(file: Any) -> Any:
    file.seek(0)
    return file


def blocks(path: Path, report: ImportReport) -> Iterator[tuple[bytes, bool, int]]:
    """Blocks of whole lines, whether it is the last, and how many bytes of the file are read.

    NUL bytes, a byte order mark and end-of-file marks (^Z) are taken out.
    """
    with path.open("rb") as raw:
        magic = raw.read(6)
        for start, name in _REFUSED.items():
            if magic.startswith(start):
                raise TraceFormatError(
                    f"is compressed with {name}, which cannot be unpacked here",
                    file=path,
                    hint="unpack it first (.gz, .xz and .bz2 are read as they are)",
                )
        opener = _opener(magic)
        stream = _rewound(raw) if opener is None else opener(_rewound(raw))
        pending = b""
        first = True
        final = False
        while not final:
            pieces: list[bytes] = []
            size = 0
            while size < BLOCK:
                try:
                    piece = stream.read1(BLOCK - size)
                except _BROKEN as error:
                    if opener is None:
                        raise
                    report.add(
                        "compressed stream damaged",
                        "loss",
                        f"The compressed file breaks off or is damaged ({error}); what could be unpacked "
                        "was read.",
                        where=f"byte {raw.tell()}",
                    )
                    piece = b""
                if not piece:
                    final = True
                    break
                pieces.append(piece)
                size += len(piece)
            data = b"".join(pieces)
            if b"\0" in data or b"\x1a" in data:
                data = data.translate(None, b"\0\x1a")
            if first:
                data = data.lstrip(b"\xef\xbb\xbf\xff\xfe")
                first = False
            data = pending + data
            if final:
                yield data, True, raw.tell()
                return
            cut = max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1
            if cut == 0 and len(data) > LONGEST:
                cut = len(data)
            pending = data[cut:]
            if cut:
                yield data[:cut], False, raw.tell()

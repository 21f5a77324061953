"""Text traces as a stream of blocks of whole lines, with any compression, in bounded memory."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from io import BufferedIOBase, BufferedReader
from itertools import islice
from pathlib import Path
from typing import BinaryIO, TypeAlias, TypeVar

import numpy as np

from desktop.core.arrays import Bytes
from desktop.core.jit import arithmetic, inlined
from desktop.data.events import ImportReport
from desktop.errors import TraceFormatError

BLOCK = 1 << 20
#: Longer lines are cut: no trace has such lines, and memory stays bounded.
LONGEST = 64 << 20
#: More threads would only wait for the one that takes their results.
THREADS = max(min(os.cpu_count() or 1, 4), 2)

#: First bytes of files with a compression that is not supported.
REFUSED = {b"\x1f\x9d": "compress (.Z)", b"\x28\xb5\x2f\xfd": "Zstandard (.zst)"}


@inlined
def byte(data: Bytes, at: int) -> int:
    """The byte at an index of (N,) bytes; `at` is not negative, which saves a comparison."""
    return int(np.int64(data[np.uint64(at)]))


@inlined
def blank(c: int) -> bool:
    return c == 32 or c == 9 or c == 11 or c == 12


@inlined
def skip_blanks(buf: Bytes, p: int, end: int) -> int:
    while p < end and blank(byte(buf, p)):
        p += 1
    return p


@inlined
def token_end(buf: Bytes, p: int, end: int) -> int:
    while p < end and not blank(byte(buf, p)):
        p += 1
    return p


@inlined
def integer(buf: Bytes, p: int, end: int) -> tuple[int, int]:
    """Value and end of the next token from p on; end -1 if it is no integer of 18 digits, or p is -1."""
    negative = False
    if p < 0:
        return 0, -1
    p = skip_blanks(buf, p, end)
    if p < end and (byte(buf, p) == 45 or byte(buf, p) == 43):
        negative = byte(buf, p) == 45
        p += 1
    start = p
    value = 0
    while p < end and 48 <= byte(buf, p) <= 57:
        if p - start >= 18:
            return 0, -1
        value = value * 10 + (byte(buf, p) - 48)
        p += 1
    if p == start or (p < end and not blank(byte(buf, p))):
        return 0, -1
    return (-value if negative else value), p


@inlined
def decimal(buf: Bytes, p: int, end: int, fortran: bool) -> tuple[int, int, int, bool]:
    """Mantissa, decimals and end of the number at p, and whether digits beyond the 18th were dropped.

    The number is mantissa * 10**-decimals, decimals are 0 to 40. end -1: there is no such number. fortran:
    whether the exponent may start with a D.
    """
    negative = p < end and byte(buf, p) == 45
    if negative or (p < end and byte(buf, p) == 43):
        p += 1
    value = decimals = 0
    significant = digits = 0
    point = dropped = False
    while p < end:
        c = byte(buf, p)
        if 48 <= c <= 57:
            digits += 1
            if significant < 18:
                value = value * 10 + (c - 48)
                significant += value != 0
                decimals += point
            else:
                dropped = dropped or c != 48
                decimals -= not point
        elif c == 46 and not point:
            point = True
        else:
            break
        p += 1
    if p < end and (byte(buf, p) | 32 == 101 or (fortran and byte(buf, p) | 32 == 100)):
        p += 1
        down = p < end and byte(buf, p) == 45
        if down or (p < end and byte(buf, p) == 43):
            p += 1
        start = p
        exponent = 0
        while p < end and 48 <= byte(buf, p) <= 57:
            exponent = min(exponent * 10 + (byte(buf, p) - 48), 1000)
            p += 1
        decimals += exponent if down else -exponent
        if p == start or exponent > 40:
            digits = 0
    while decimals < 0 and abs(value) < 10**17:
        value *= 10
        decimals += 1
    if value == 0:
        decimals = min(max(decimals, 0), 6)
    if digits == 0 or decimals < 0 or decimals > 40:
        return 0, 0, -1, False
    return (-value if negative else value), decimals, p, dropped


def opener(head: bytes) -> Callable[[BinaryIO], BufferedIOBase] | None:
    """The function that opens a file with this head as its content; None: it is not compressed."""
    if head.startswith(b"\x1f\x8b"):
        return gzip.open
    if head.startswith(b"\xfd7zXZ\x00"):
        return lzma.open
    if head.startswith(b"BZh"):
        return bz2.open
    return None


_BROKEN = (EOFError, OSError, zlib.error, lzma.LZMAError)


def unpacked_head(path: Path) -> tuple[bytes, bool]:
    """The first 64 KiB of the content of a compressed file, and whether that is all."""
    head = b""
    try:
        with path.open("rb") as raw, content_of(raw) as stream:
            while len(head) < 1 << 16:
                piece = stream.read1(1 << 13)
                if not piece:
                    return head, True
                head += piece
    except _BROKEN:
        pass
    return head, False


def content_of(file: BufferedReader) -> BufferedIOBase:
    """The content of an open file from its start, decompressed if it is compressed."""
    file.seek(0)
    unpack = opener(file.read(6))
    file.seek(0)
    return file if unpack is None else unpack(file)


def detected(
    path: Path, head: bytes, test: Callable[[bytes, bool], bool], suffixes: tuple[str, ...] = ()
) -> bool:
    """Whether a file that starts with `head` (64 KiB) passes a test, which is called with its text,
    decompressed, and whether that is all. Files that cannot be decompressed are recognised by name, to give a
    clear error."""
    if path.is_dir():
        return False
    if any(head.startswith(magic) for magic in REFUSED):
        return path.with_suffix("").suffix.lower() in suffixes
    return test(*(unpacked_head(path) if opener(head) is not None else (head, len(head) < 1 << 16)))


def blocks(path: Path, report: ImportReport) -> Iterator[tuple[bytes, bool, int]]:
    """Blocks of whole lines, whether it is the last, and number of bytes of the file read.

    NUL bytes, a byte order mark and end-of-file marks (^Z) are removed.
    """
    with path.open("rb") as raw:
        magic = raw.read(6)
        for start, name in REFUSED.items():
            if magic.startswith(start):
                raise TraceFormatError(
                    f"is compressed with {name}, which cannot be unpacked here",
                    file=path,
                    hint="unpack it first (.gz, .xz and .bz2 are read as they are)",
                )
        stream = content_of(raw)
        pending = b""
        first = True
        final = False
        while not final:
            pieces: list[bytes] = []
            size = 0
            while size < BLOCK:
                try:
                    piece = stream.read1(BLOCK - size)
                except _BROKEN:
                    if stream is raw:
                        raise
                    report.add(
                        "compressed stream damaged",
                        "loss",
                        "The compressed file breaks off or is damaged; what could be unpacked was read.",
                        where=f"byte {raw.tell()}",
                    )
                    piece = b""
                if not piece:
                    final = True
                    break
                pieces.append(piece)
                size += len(piece)
            data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            if b"\0" in data or b"\x1a" in data:
                data = data.translate(None, b"\0\x1a")
            if first:
                data = data.lstrip(b"\xef\xbb\xbf\xff\xfe")
                first = False
            if final:
                yield pending + data, True, raw.tell()
                return
            # A carriage return ends a line only if the next byte is known.
            cut = max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1
            if cut == 0 and len(pending) + len(data) > LONGEST:
                cut = len(data)
            if cut:
                yield b"".join((pending, memoryview(data)[:cut])), False, raw.tell()
                pending = data[cut:]
            else:
                pending += data


def line_count(block: bytes) -> int:
    """Number of lines in a block, ended by line feeds, carriage returns, or both."""
    if not block:
        return 0
    ends = int(line_feeds(np.frombuffer(block, np.uint8)))
    if b"\r" in block:
        ends += block.count(b"\r") - block.count(b"\r\n")
    return ends + (block[-1] not in b"\r\n")


#: A block of whole lines, whether it is the last, its number of lines, number of lines before it, bytes read.
NumberedBlock: TypeAlias = tuple[bytes, bool, int, int, int]


def numbered(path: Path, report: ImportReport) -> Iterator[NumberedBlock]:
    """As `blocks`, with numbers of lines."""
    before = 0
    for block, final, done in blocks(path, report):
        lines = line_count(block)
        yield block, final, lines, before, done
        before += lines


@arithmetic
def line_feeds(data: Bytes) -> int:
    """Number of line feeds in (N,) bytes."""
    count = 0
    for i in range(len(data)):
        count += data[i] == 10
    return count


_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def in_order(
    work: Callable[[_Item], _Result], items: Iterable[_Item], threads: int = THREADS
) -> Iterator[_Result]:
    """work(item) for each item, done in a few threads, in the order of the items.

    Only a few items are taken in advance, so memory stays bounded.
    """
    with ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[_Result]] = deque()
        try:
            for item in items:
                pending.append(pool.submit(work, item))
                if len(pending) > threads:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def ahead(items: Iterator[_Item]) -> Generator[_Item, None, None]:
    """The items, each of which is made in a thread while the one before is used."""

    def take() -> list[_Item]:
        return list(islice(items, 1))

    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(take)
        while item := following.result():
            following = pool.submit(take)
            yield item[0]

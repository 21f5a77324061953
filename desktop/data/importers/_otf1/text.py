"""The lines of a file of an OTF trace, in blocks of bounded size, and what is wrong with the file.

A compressed file (``.z``) is a zlib stream that its writer never finishes: it has no end and no checksum, and
its content is what can be inflated before an error or the end of the file.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from isal import isal_zlib
from isal.igzip_lib import IsalError

from desktop.errors import reason

BLOCK = 1 << 20
_PIECE = 1 << 16
#: Longest line: a longer one is no record and is left out, so memory stays bounded.
LONGEST = 1 << 20


class Text:
    """One file being read.

    read: bytes of the file read so far. wrong: why it could not be read to its end, or empty. unended: the
    last line has no end, and was left out. overlong: lines left out because of their length.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.read = 0
        self.wrong = ""
        self.unended = False
        self.overlong = 0

    def blocks(self) -> Iterator[bytes]:
        """Blocks that end with a line feed."""
        pieces: list[bytes] = []
        size = 0
        inside_overlong = False
        for content in self._content():
            if inside_overlong:
                cut = content.find(b"\n") + 1
                inside_overlong = not cut
                content = content[cut:] if cut else b""
            pieces.append(content)
            size += len(content)
            if size < BLOCK:
                continue
            data = b"".join(pieces)
            cut = data.rfind(b"\n") + 1
            if cut:
                yield data[:cut]
            elif size > LONGEST:
                self.overlong += 1
                inside_overlong, cut = True, size
            pieces, size = [data[cut:]], len(data) - cut
        data = b"".join(pieces)
        cut = data.rfind(b"\n") + 1
        if cut:
            yield data[:cut]
        self.unended = cut < len(data) or inside_overlong

    def _content(self) -> Iterator[bytes]:
        try:
            with self.path.open("rb") as file:
                yield from self._inflated(file) if self.path.suffix == ".z" else self._pieces(file)
        except OSError as error:
            self.wrong = reason(error)

    def _pieces(self, file: BinaryIO) -> Iterator[bytes]:
        while piece := file.read(_PIECE):
            self.read += len(piece)
            yield piece

    def _inflated(self, file: BinaryIO) -> Iterator[bytes]:
        inflater = isal_zlib.decompressobj()
        yielded = before = 0
        try:
            for piece in self._pieces(file):
                for content in _inflate(inflater, piece):
                    yielded += len(content)
                    yield content
                before = self.read
                if inflater.eof:
                    break
        except IsalError:  # type: ignore[misc]  # its stub calls the class an instance
            # The inflater withholds what it found between its last answer and the error.
            self.wrong = f"damaged at byte {before} or behind"
            file.seek(0)
            yield from _salvaged(file, before, yielded)
        if inflater.eof and (inflater.unused_data or file.read(1)):
            self.wrong = "data after the end of the compressed stream"


def _inflate(inflater: isal_zlib.Decompress | zlib._Decompress, piece: bytes) -> Iterator[bytes]:
    """The inflated content of a piece, in parts of bounded size."""
    full = True
    while piece or full:
        content = inflater.decompress(piece, _PIECE)
        yield content
        piece = inflater.unconsumed_tail
        full = len(content) == _PIECE


def _salvaged(file: BinaryIO, sound: int, skip: int) -> Iterator[bytes]:
    """The content after its first `skip` bytes, up to the error somewhere after the first `sound` bytes."""
    inflater = zlib.decompressobj()
    at = 0
    try:
        while piece := file.read(min(_PIECE, max(sound - at, 1))):
            at += len(piece)
            for content in _inflate(inflater, piece):
                n = min(skip, len(content))
                skip -= n
                yield content[n:]
    except zlib.error:
        return

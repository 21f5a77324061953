"""Chunks of numbers packed like HDF5's shuffle and gzip filters, but faster: any HDF5 program reads them.

First come the lowest bytes of all numbers in a chunk, then all next ones, and so on; such a row of bytes is a
plane, and all planes are one zlib stream (RFC 1950, RFC 1951). It contains three kinds of planes:

* the lowest ones are often noise, which hardly compresses: they are stored uncompressed;
* those above are compressed;
* the highest ones are zero if numbers are small for their type. Their block is always the same, so it is
  recognised when reading and need not be unpacked.

Streams packed by others are read too, only slower.
"""

from __future__ import annotations

import struct
from functools import cache

import numpy as np
from isal import isal_zlib
from numpy.typing import DTypeLike

from desktop.core.arrays import AnyArray, Bytes
from desktop.core.jit import arithmetic
from desktop.data.memory import Recent

_LEVEL = 1
_RAW = -15  # deflate without header and checksum
_HEADER = b"\x78\x01"
_CHECK_SUM = 4
_STORED = 0xFFFF  # largest stored block
_BASE = 65521  # of Adler-32
#: A plane that compresses to more than this is noise; which ones are is tested every so many chunks.
_NOISE = 0.9
_TRIAL = 16
#: Bytes of chunks that stay unpacked, as many locations in parallel are read a few rows at a time. A trace of
#: up to two million events needs hardly any unpacking while it is imported.
KEPT = 1 << 25


class Packer:
    """Packs the chunks of a column."""

    def __init__(self) -> None:
        self._packed = 0
        self._noise = 0  # planes

    def __call__(self, rows: AnyArray) -> bytes:
        numbers = rows.view(f"u{rows.itemsize}")
        used = -(-int(numbers.max(initial=0)).bit_length() // 8)
        planes = np.empty((used, rows.size), np.uint8)
        shuffle(numbers, planes)
        if self._packed % _TRIAL == 0:
            self._noise = _noise(planes)
        self._packed += 1
        noise = min(self._noise, used)
        parts: list[bytes | memoryview] = [_HEADER]
        for begin in range(0, noise * rows.size, _STORED):
            piece = planes[:noise].reshape(-1)[begin : begin + _STORED]
            parts += [struct.pack("<BHH", 0, piece.size, piece.size ^ _STORED), piece.data]
        compressor = isal_zlib.compressobj(_LEVEL, wbits=_RAW)
        if noise < used:
            # Flushed to a whole byte, and so that nothing after it refers to it.
            parts += [compressor.compress(planes[noise:]), compressor.flush(isal_zlib.Z_FULL_FLUSH)]
        parts += [_zeros((rows.itemsize - used) * rows.size)]
        parts += [_check_sum(planes.data, rows.nbytes).to_bytes(_CHECK_SUM, "big")]
        return b"".join(parts)


def unpack(packed: bytes, rows: int, dtype: DTypeLike) -> AnyArray:
    """`rows` numbers packed by `Packer` or by HDF5 itself.

    Raises
    ------
    ValueError : it is not such a stream, or damaged.
    """
    out = np.empty(rows, dtype)
    planes = _before_zeros(packed, rows, out.itemsize)
    if planes is None:
        stream = isal_zlib.decompressobj()
        planes = _inflated(packed, out.nbytes, stream)
        if not stream.eof:  # all bytes may be there without the checksum after them
            planes = None
    if planes is None:
        raise ValueError("it is damaged, or too short or too long")
    unshuffle(np.frombuffer(planes, np.uint8).reshape(-1, rows), out.view(f"u{out.itemsize}"))
    return out


def _before_zeros(packed: bytes, rows: int, width: int) -> bytes | None:
    """The planes before the block of zeros at the end, if the stream has one there."""
    for used in range(width):
        zeros = _zeros((width - used) * rows)
        end = len(packed) - _CHECK_SUM - len(zeros)
        if end < len(_HEADER) or not packed.startswith(zeros, end):
            continue
        planes = _inflated(packed[len(_HEADER) : end], used * rows, isal_zlib.decompressobj(wbits=_RAW))
        check_sum = int.from_bytes(packed[-_CHECK_SUM:], "big")
        if planes is not None and _check_sum(memoryview(planes), width * rows) == check_sum:
            return planes
    return None


def _inflated(packed: bytes, size: int, stream: isal_zlib.Decompress) -> bytes | None:
    """`size` bytes; None if the stream is invalid, or has another length."""
    try:
        # One byte more than fits, so that a decompression bomb is detected and not unpacked.
        content = bytes(stream.decompress(packed, size + 1))
    except isal_zlib.error:  # type: ignore[misc]  # its stub calls the class an instance
        return None
    return content if len(content) == size else None


@cache
def _zeros(size: int) -> bytes:
    """`size` zeros as the last block of a stream."""
    return bytes(isal_zlib.compress(bytes(size), _LEVEL, wbits=_RAW))


def _check_sum(planes: memoryview, size: int) -> int:
    """Adler-32 of these bytes and of the zeros that follow them up to `size`."""
    total = isal_zlib.adler32(planes)
    low, high = total & 0xFFFF, total >> 16
    return (high + (size - planes.nbytes) * low) % _BASE << 16 | low


def _noise(planes: Bytes) -> int:
    """Number of lowest planes that are noise."""
    for number, plane in enumerate(planes):
        if len(isal_zlib.compress(plane, _LEVEL, wbits=_RAW)) < _NOISE * plane.size:
            return number
    return len(planes)


class Chunks(Recent[tuple[str, str, int | bytes], AnyArray]):
    """Unpacked chunks, by column and number or by their packed bytes. They must not be changed."""

    def __init__(self) -> None:
        super().__init__(lambda chunk: chunk.nbytes, lambda: KEPT)


@arithmetic
def shuffle(numbers: AnyArray, planes: Bytes) -> None:
    """Write the planes (used, rows) of the bytes of unsigned numbers (rows,), the lowest first."""
    for k in range(planes.shape[0]):
        place = np.uint64(8 * k)
        for i in range(numbers.size):
            planes[k, i] = np.uint64(numbers[i]) >> place


@arithmetic
def unshuffle(planes: Bytes, out: AnyArray) -> None:
    """Write unsigned numbers (rows,) from the planes (used, rows) of their lowest bytes."""
    used, rows = planes.shape
    for i in range(rows):
        out[i] = planes[0, i] if used else 0
    for k in range(1, used):
        place = np.uint64(8 * k)
        for i in range(rows):
            out[i] |= np.uint64(planes[k, i]) << place

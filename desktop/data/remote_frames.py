"""The protocol between two Phasewrights over a pipe: frames of a JSON object and some bytes, all bounded.

The serving side begins with `MAGIC`; before that a login shell may print anything. Then each side sends
`hello`; the two must agree. After that the client sends requests with an `id`; answers carry it, come in any
order and in pieces, the last of which has ``end``. Neither side trusts the other: a frame that is too long or
invalid ends the connection.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable

import desktop
from desktop.core.plain import JSON
from desktop.data.store import SCHEMA

MAGIC = b"\0phasewright serves\n"
PROTOCOL = 1
#: Most bytes of one frame: of its object, and of the bytes after it.
MOST_ABOUT, MOST_BODY = 1 << 20, 1 << 18
#: Bytes of a piece of an answer, which limit how long others wait: 50 ms at 10 Mbit/s.
PIECE = 1 << 16
_SIZES = struct.Struct(">III")  # of the object, of the bytes as sent, of the bytes


class NoFrame(Exception):
    """The received data are not a frame, or the input has ended."""


def hello() -> JSON:
    return {"protocol": PROTOCOL, "version": desktop.__version__, "store": SCHEMA}


def frame(about: JSON, body: bytes = b"") -> bytes:
    """A frame as it is sent; bytes are compressed where that helps, not for packed chunks."""
    text = json.dumps(about).encode()
    packed = zlib.compress(body, 1) if len(body) > 256 else body
    if len(packed) > 0.9 * len(body):
        packed = body
    return _SIZES.pack(len(text), len(packed), len(body)) + text + packed


def receive(read: Callable[[int], bytes]) -> tuple[JSON, bytes]:
    """The next frame. `read`: returns so many bytes, fewer at the end.

    Raises
    ------
    NoFrame : there is no valid frame.
    """
    text_size, packed_size, size = _SIZES.unpack(_exactly(read, _SIZES.size))
    if text_size > MOST_ABOUT or packed_size > size or size > MOST_BODY:
        raise NoFrame("what it sends is too long")
    try:
        about = json.loads(_exactly(read, text_size))
        body = _exactly(read, packed_size)
        if packed_size < size:
            body = zlib.decompressobj().decompress(body, size + 1)
    except (ValueError, RecursionError, zlib.error):
        raise NoFrame("what it sends makes no sense") from None
    if not isinstance(about, dict) or len(body) != size:
        raise NoFrame("what it sends makes no sense")
    return about, body


def inflated(packed: bytes, most: int) -> bytes:
    """The content of bytes that zlib has packed.

    Raises
    ------
    ValueError : they are damaged or not whole, or hold more than `most` bytes.
    """
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(packed, most)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not stream.eof:
        raise ValueError("it is not whole, or too much")
    return content


def _exactly(read: Callable[[int], bytes], size: int) -> bytes:
    content = read(size) if size else b""
    if len(content) != size:
        raise NoFrame("it has ended")
    return content

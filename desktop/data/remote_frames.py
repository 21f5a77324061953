"""What two Phasewrights say to each other over a pipe: frames of a JSON object and some bytes, all bounded.

The side that serves begins with `MAGIC`, before which a login shell may say what it likes. Then each side
says `hello`; the first frames must agree. After that the one that asks sends requests with an `id`; answers
carry it, come in any order and in pieces, of which the last has ``end``. Neither side believes the other:
a frame that is too long or no frame ends the connection.
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
#: Bytes of one frame: of its object, and of the bytes behind it.
MOST_ABOUT, MOST_BODY = 1 << 20, 1 << 18
#: Bytes of a piece of an answer: what others wait for at most, 50 ms at 10 Mbit/s.
PIECE = 1 << 16
_SIZES = struct.Struct(">III")  # of the object, the bytes as sent, the bytes


class NoFrame(Exception):
    """What has come is no frame, or nothing comes any more."""


def hello() -> JSON:
    return {"protocol": PROTOCOL, "version": desktop.__version__, "store": SCHEMA}


def frame(about: JSON, body: bytes = b"") -> bytes:
    """A frame as it is sent; bytes are packed where that pays, which those of packed chunks do not."""
    text = json.dumps(about).encode()
    packed = zlib.compress(body, 1) if len(body) > 256 else body
    if len(packed) > 0.9 * len(body):
        packed = body
    return _SIZES.pack(len(text), len(packed), len(body)) + text + packed


def receive(read: Callable[[int], bytes]) -> tuple[JSON, bytes]:
    """The next frame. `read`: so many bytes, fewer at the end.

    Raises
    ------
    NoFrame : that is none.
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


def _exactly(read: Callable[[int], bytes], size: int) -> bytes:
    content = read(size) if size else b""
    if len(content) != size:
        raise NoFrame("it has ended")
    return content

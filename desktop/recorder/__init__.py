"""Regions of a Python program's own, for ``phasewright record``; without the recorder they do nothing.

>>> with region("solve"):
...     pass
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache


@cache
def _entries() -> tuple[Callable[[bytes], object], Callable[[bytes], object]] | None:
    """The recorder's functions, if this process was started with it."""
    try:
        loaded = ctypes.CDLL(None)
        return loaded.phasewright_enter, loaded.phasewright_leave
    except (AttributeError, OSError, TypeError):
        return None


@contextmanager
def region(name: str) -> Iterator[None]:
    """What runs in the block is recorded as a region of that name."""
    entries = _entries()
    if entries is None:
        yield
        return
    text = name.encode().replace(b"\0", b"")
    entries[0](text)
    try:
        yield
    finally:
        entries[1](text)

"""How much memory what is kept of an open trace, so that it need not be read again, may take."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

#: Bytes, unless the user says otherwise.
DEFAULT = 512 << 20
#: With less, hardly a screen could be drawn from events.
LEAST = 64 << 20

_limit = DEFAULT


def limit() -> int:
    """Bytes for all caches of one trace; each takes its share."""
    return _limit


def set_limit(size: int) -> None:
    """From now on; what is above it goes when something is added."""
    global _limit
    _limit = max(LEAST, size)


def available() -> int | None:
    """Bytes that can be had without anything being moved to disk; None where the system does not say."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        pass
    return None


class Recent(Generic[Key, Value]):
    """What was used last, in `limit()` bytes (one, if that is larger). `size`: bytes of a value. Several
    threads may ask."""

    def __init__(self, size: Callable[[Value], int], limit: Callable[[], float]) -> None:
        self._size, self._limit = size, limit
        self._kept: dict[Key, Value] = {}  # the latest used last
        self._lock = Lock()
        self.held = 0  # bytes

    def get(self, key: Key) -> Value | None:
        with self._lock:
            value = self._kept.pop(key, None)
            if value is not None:
                self._kept[key] = value
            return value

    def put(self, key: Key, value: Value) -> None:
        with self._lock:
            former = self._kept.pop(key, None)
            self._kept[key] = value
            self.held += self._size(value) - (0 if former is None else self._size(former))
            while self.held > self._limit() and len(self._kept) > 1:
                self.held -= self._size(self._kept.pop(next(iter(self._kept))))


def give_back() -> None:
    """Let the system have what was freed: glibc keeps it where anything above is still in use, after long
    work a quarter of all. Other C libraries are left alone."""
    if sys.platform == "linux":
        import ctypes

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)

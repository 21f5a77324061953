"""The memory limit of the caches of an open trace."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

#: Default limit, in bytes.
DEFAULT = 512 << 20
#: Least limit: with less, hardly a screen could be drawn from events.
LEAST = 64 << 20

_limit = DEFAULT


def limit() -> int:
    """Bytes for all caches of one trace; each takes its share."""
    return _limit


def set_limit(size: int) -> None:
    """Set the limit from now on; entries above it are removed when something is added."""
    global _limit
    _limit = max(LEAST, size)


def available() -> int | None:
    """Bytes available without swapping; None if the system does not tell."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        pass
    return None


class Recent(Generic[Key, Value]):
    """The most recently used values, in `limit()` bytes (one value, if that is larger). `size`: bytes of a
    value. Thread-safe."""

    def __init__(self, size: Callable[[Value], int], limit: Callable[[], float]) -> None:
        self._size, self._limit = size, limit
        self._values: dict[Key, Value] = {}  # the most recently used last
        self._lock = Lock()
        self.held = 0  # bytes

    def get(self, key: Key) -> Value | None:
        with self._lock:
            value = self._values.pop(key, None)
            if value is not None:
                self._values[key] = value
            return value

    def put(self, key: Key, value: Value) -> None:
        with self._lock:
            former = self._values.pop(key, None)
            self._values[key] = value
            self.held += self._size(value) - (0 if former is None else self._size(former))
            while self.held > self._limit() and len(self._values) > 1:
                self.held -= self._size(self._values.pop(next(iter(self._values))))


def give_back() -> None:
    """Return freed memory to the system: glibc keeps it below any block in use, after long work a quarter of
    all. Other C libraries are left alone."""
    if sys.platform == "linux":
        import ctypes

        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)

"""How much memory what is kept of an open trace, so that it need not be read again, may take."""

from __future__ import annotations

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

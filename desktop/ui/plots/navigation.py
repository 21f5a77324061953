"""The visible part of the run, and the history of parts seen before."""

from __future__ import annotations

import math
import time


class Navigation:
    """The visible range within a run, with a history that is no part of undo.

    Ranges are clamped to the run and never become narrower than its times can tell apart. Changes that
    follow each other within `MERGE` seconds (a turn of the wheel, a drag) are one step of the history.
    """

    MERGE = 0.6

    def __init__(self) -> None:
        self.reset(0.0, 1.0)

    def reset(self, start: float, end: float) -> None:
        """Begin with another run: all of it is visible, and there is no history."""
        self.start, self.end = start, end
        self.a, self.b = start, end
        self._past: list[tuple[float, float]] = []
        self._future: list[tuple[float, float]] = []
        self._changed = -math.inf

    def reach(self, end: float) -> bool:
        """Extend the run to `end`; whether the visible part changed."""
        all_visible, previous = (self.a, self.b) == (self.start, self.end), (self.a, self.b)
        self.end = end
        self.show(*((self.start, end) if all_visible else previous), remember=False)
        return (self.a, self.b) != previous

    @property
    def narrowest(self) -> float:
        """The shortest range that can be shown, seconds: 2000 neighbouring doubles, or the run if shorter."""
        return min(2000 * math.ulp(max(abs(self.start), abs(self.end))), self.end - self.start)

    def show(self, a: float, b: float, *, remember: bool = True) -> bool:
        """Show ``[a, b]`` or the nearest that the run allows; whether anything changed."""
        span = min(max(b - a, self.narrowest), self.end - self.start)
        a = min(max(a + (b - a - span) / 2, self.start), self.end - span)
        b = min(a + span, self.end)
        # Rounding errors of the sums: what is as close to an end as this reaches it.
        if abs(a - self.start) < self.narrowest:
            a = self.start
        if abs(self.end - b) < self.narrowest:
            b = self.end
        if (a, b) == (self.a, self.b):
            return False
        now = time.monotonic()
        if remember:
            if now - self._changed > self.MERGE:
                self._past.append((self.a, self.b))
                del self._past[:-200]
                self._future.clear()
            self._changed = now
        self.a, self.b = a, b
        return True

    def settle(self) -> None:
        """The next change is a step of its own in the history."""
        self._changed = -math.inf

    def back(self) -> bool:
        """Show the part before in the history; whether there was one."""
        return self._travel(self._past, self._future)

    def forward(self) -> bool:
        """Undo `back`; whether there was something to undo."""
        return self._travel(self._future, self._past)

    def _travel(self, source: list[tuple[float, float]], target: list[tuple[float, float]]) -> bool:
        if not source:
            return False
        target.append((self.a, self.b))
        self.show(*source.pop(), remember=False)
        self.settle()
        return True

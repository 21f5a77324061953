"""Which part of the run is seen, and which parts were seen before."""

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
        """A new run: all of it is seen, nothing was seen before."""
        self.start, self.end = start, end
        self.a, self.b = start, end
        self._past: list[tuple[float, float]] = []
        self._future: list[tuple[float, float]] = []
        self._changed = -math.inf

    def reach(self, end: float) -> bool:
        """There is something to be seen up to `end` from now on; whether another part is seen now."""
        whole, seen = (self.a, self.b) == (self.start, self.end), (self.a, self.b)
        self.end = end
        self.show(*((self.start, end) if whole else seen), remember=False)
        return (self.a, self.b) != seen

    @property
    def narrowest(self) -> float:
        """The shortest range worth showing, seconds: 2000 neighbouring doubles, a column each and more."""
        return min(2000 * math.ulp(max(abs(self.start), abs(self.end))), self.end - self.start)

    def show(self, a: float, b: float, *, remember: bool = True) -> bool:
        """Show ``[a, b]`` or the nearest that the run allows; whether anything changed."""
        span = min(max(b - a, self.narrowest), self.end - self.start)
        a = min(max(a + (b - a - span) / 2, self.start), self.end - span)
        b = min(a + span, self.end)
        # Sums leave a remainder: what reaches an end but for less than can be told apart reaches it.
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
        """The next change is a step of its own."""
        self._changed = -math.inf

    def back(self) -> bool:
        return self._travel(self._past, self._future)

    def forward(self) -> bool:
        return self._travel(self._future, self._past)

    def _travel(self, source: list[tuple[float, float]], target: list[tuple[float, float]]) -> bool:
        if not source:
            return False
        target.append((self.a, self.b))
        self.show(*source.pop(), remember=False)
        self.settle()
        return True

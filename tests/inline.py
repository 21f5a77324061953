"""An executor for tests that want no threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future


class Inline:
    """An executor that runs everything where it is submitted."""

    def submit(self, function: Callable[[], None], /) -> Future[None]:
        function()
        return Future()

    def shutdown(self, wait: bool = True) -> None:
        """Nothing runs any more."""


class Later(Inline):
    """Runs nothing until it is told to."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def submit(self, function: Callable[[], None]) -> Future[None]:
        self.waiting.append(function)
        return Future()

    def run(self) -> None:
        while self.waiting:
            self.waiting.pop(0)()

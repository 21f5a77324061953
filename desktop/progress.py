"""How long-running work reports its progress and is cancelled, whoever shows that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import local

#: Its one byte is 1 once all work of this process is to end, see `desktop.stopping`. Kernels can look at it.
ENDING = bytearray(1)


class Cancelled(Exception):
    """The user has cancelled the work; its caller removes half-done files. The message says what was kept."""


_working = local()


@contextmanager
def working(progress: Progress) -> Iterator[None]:
    """Make `progress` that of this thread in the block, for functions it is not handed to (`at_work`)."""
    previous = at_work()
    _working.progress = progress
    try:
        yield
    finally:
        _working.progress = previous


def at_work() -> Progress | None:
    """The progress of this thread, see `working`; None if there is none."""
    return getattr(_working, "progress", None)


class Progress:
    """Silent progress; subclasses show it.

    Long work calls `step` at natural boundaries (a block of a file). `step` raises `Cancelled`
    once `cancel` was called, from any thread, or the process was asked to end.
    """

    def __init__(self) -> None:
        self._cancelled = False

    def cancel(self) -> None:
        """Ask the work to end at its next `step`."""
        self._cancelled = True

    @property
    def cancelled(self) -> bool:
        return self._cancelled or ENDING[0] == 1

    def step(self, done: float, total: float, text: str = "") -> None:
        """Report that `done` of `total` (any unit; total 0 = unknown) is reached.

        Raises
        ------
        Cancelled : when `cancel` was called.
        """
        if self.cancelled:
            raise Cancelled
        self.show(done, total, text)

    def show(self, done: float, total: float, text: str) -> None:
        """Override to display; called in the working thread."""


class Share(Progress):
    """The progress of a part of longer work, from `begin` to `end` (0 to 1) of `whole`."""

    def __init__(self, whole: Progress, begin: float, end: float) -> None:
        super().__init__()
        self._whole, self._begin, self._end = whole, begin, end

    def cancel(self) -> None:
        self._whole.cancel()

    @property
    def cancelled(self) -> bool:
        return self._whole.cancelled

    def step(self, done: float, total: float, text: str = "") -> None:
        part = min(done / total, 1.0) if total else 0.0
        self._whole.step(self._begin + (self._end - self._begin) * part, 1.0, text)

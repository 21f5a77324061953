"""How long work reports itself and is stopped, without knowing who listens."""

from __future__ import annotations


class Cancelled(Exception):
    """The user asked for the work to end; whoever started it discards its traces."""


class Progress:
    """Silent progress; subclasses show it.

    Long work calls `step` at natural boundaries (a block of a file). `step` raises `Cancelled`
    once `cancel` was called, from whatever thread.
    """

    def __init__(self) -> None:
        self._cancelled = False

    def cancel(self) -> None:
        """Ask the work to end at its next `step`."""
        self._cancelled = True

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def step(self, done: float, total: float, text: str = "") -> None:
        """Report that `done` of `total` (any unit; total 0 = unknown) is reached.

        Raises
        ------
        Cancelled : when `cancel` was called.
        """
        if self._cancelled:
            raise Cancelled
        self.show(done, total, text)

    def show(self, done: float, total: float, text: str) -> None:
        """Override to display; called in the working thread."""

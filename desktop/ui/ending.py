"""A request from outside to end: the session closes, a terminal does, somebody says ``kill`` or Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from PySide6.QtCore import QObject, Qt, Signal

from desktop import stopping


class _Ending(QObject):
    """Brings the request into the window's thread, like a click, also into dialogs that wait."""

    asked = Signal(int)

    def __init__(self, keep: Callable[[], None]) -> None:
        super().__init__()
        self._keep = keep
        self.asked.connect(self._end, Qt.ConnectionType.QueuedConnection)

    def _end(self, number: int) -> None:
        try:
            self._keep()
        finally:
            # Closing the windows would ask what to do with what was not saved, and forget what is kept of it.
            stopping.end(128 + number)


@contextmanager
def ending(keep: Callable[[], None]) -> Iterator[None]:
    """While the block runs, such a request calls `keep` and then ends the program without asking, with the
    exit code 128 + signal, as shells have it."""
    waiting = _Ending(keep)
    with stopping.listening(), stopping.answered_by(waiting.asked.emit):
        yield

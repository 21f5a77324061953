"""A request from outside to end: the session closes, a terminal does, somebody says ``kill``."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable

from PySide6.QtCore import QObject, QSocketNotifier

#: Requests to end, those of them that this system knows.
_REQUESTS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class Ending(QObject):
    """Calls `keep` before the program ends by such a request, and lets it end as if it had not listened.

    Python's handler would wait for the next line of Python, which an idle window does not reach, and may come
    between any two. So it does nothing; the number of the signal comes through a socket to the event loop,
    like a click. A request that is ignored (``nohup``) stays ignored.
    """

    def __init__(self, keep: Callable[[], None]) -> None:
        super().__init__()
        self._keep = keep
        self._far, self._near = socket.socketpair()
        for end in (self._far, self._near):
            end.setblocking(False)
        self._notifier = QSocketNotifier(self._near.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._heard)
        self._before = {
            number: signal.signal(number, lambda *_: None)
            for number in _REQUESTS
            if signal.getsignal(number) is signal.SIG_DFL
        }
        self._woken = signal.set_wakeup_fd(self._far.fileno(), warn_on_full_buffer=False)

    def close(self) -> None:
        """Leave everything as it was."""
        signal.set_wakeup_fd(self._woken)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._notifier.setEnabled(False)
        for end in (self._far, self._near):
            end.close()

    def _heard(self) -> None:
        for number in self._near.recv(64):  # other signals come here too
            if number in self._before:
                try:
                    self._keep()
                finally:
                    signal.signal(number, signal.SIG_DFL)
                    signal.raise_signal(number)

"""Brings results of `desktop.workbench.jobs` into the window's thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from weakref import ref

from PySide6.QtCore import QCoreApplication, QObject, Qt, Signal, Slot
from shiboken6 import isValid


class _Calls(QObject):
    """Makes calls from other threads in its own; one for the program, which lasts as long as that."""

    arrived = Signal(object)

    def __init__(self, program: QCoreApplication) -> None:
        super().__init__(program)
        self.arrived.connect(self._make, Qt.ConnectionType.QueuedConnection)

    @Slot(object)
    def _make(self, call: Callable[[], None]) -> None:
        call()


class MainThread:
    """`deliver` may be called in any thread; the call is made by the event loop of the window's thread,
    unless `close` was called or the `owner` was freed before. Created in that thread.

    No object of Qt's: another thread may hold the last reference to it.
    """

    def __init__(self, owner: QObject | None = None) -> None:
        program = QCoreApplication.instance()
        assert program is not None
        self._calls = program.findChild(_Calls) or _Calls(program)
        self._owner = None if owner is None else ref(owner)
        self._open = True

    def deliver(self, call: Callable[[], None]) -> None:
        """Queue a call; after `close` it is dropped."""
        if self._open:
            self._calls.arrived.emit(partial(self._make, call))

    def close(self) -> None:
        """Drop all calls that have not been made yet, and all further ones."""
        self._open = False

    def _make(self, call: Callable[[], None]) -> None:
        owner = None if self._owner is None else self._owner()
        if self._open and (self._owner is None or (owner is not None and isValid(owner))):
            call()

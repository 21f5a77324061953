"""Brings results of `desktop.workbench.jobs` into the window's thread."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QObject, Qt, Signal, Slot


class MainThread(QObject):
    """`deliver` may be called in any thread; the call is made by the event loop of this object's thread."""

    _arrived = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._open = True
        self._arrived.connect(self._call, Qt.ConnectionType.QueuedConnection)

    def deliver(self, call: Callable[[], None]) -> None:
        """Queue a call for the thread of this object; after `close` it is dropped."""
        if self._open:
            self._arrived.emit(call)

    def close(self) -> None:
        """Drop all calls that have not been made yet, and all further ones."""
        self._open = False

    @Slot(object)
    def _call(self, call: Callable[[], None]) -> None:
        if self._open:
            call()


def program_thread() -> MainThread:
    """That of the program, for results that do not belong to one window."""
    app = QCoreApplication.instance()
    assert app is not None
    thread = app.findChild(MainThread, "program_thread")
    if thread is None:
        thread = MainThread(app)
        thread.setObjectName("program_thread")
    return thread

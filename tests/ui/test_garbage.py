"""Python's garbage is collected in the window's thread only."""

from __future__ import annotations

import gc
import threading
import time
import weakref

from PySide6.QtCore import QEvent

from desktop.resources import samples
from desktop.ui.app import Garbage
from desktop.ui.frame import Frame


class Cycle:
    """An object that only the collector frees, and that tells which thread did."""

    def __init__(self) -> None:
        self.me = self


def test_cycles_are_freed_in_the_window_s_thread(qtbot, qapp, monkeypatch):
    monkeypatch.setattr(Garbage, "INTERVAL_MS", 20)
    freed: list[threading.Thread] = []
    projects = Garbage(qapp)
    try:
        assert not gc.isenabled()
        made = Cycle()
        told = weakref.finalize(made, lambda: freed.append(threading.current_thread()))
        del made
        # A worker that allocates would start the collector, were it on.
        worker = threading.Thread(target=lambda: [[i] for i in range(100_000)])
        worker.start()
        worker.join()
        kept = [[i] for i in range(5_000)]
        qtbot.waitUntil(lambda: not told.alive)
        assert freed == [threading.main_thread()] and len(kept) == 5_000
        # What is set aside is searched again.
        made = Cycle()
        told = weakref.finalize(made, int)
        gc.freeze()
        del made
        monkeypatch.setattr(gc, "get_count", lambda: (0, 0, 11))
        qtbot.waitUntil(lambda: not told.alive)
    finally:
        projects._timer.stop()
        projects.deleteLater()


def test_a_closed_window_is_freed(qapp) -> None:
    """With all that it held, such as its trace; signals of what has no parent must not keep it."""
    frame = Frame()
    frame.show()
    frame.trace.open_path(samples()[0].path)
    until = time.monotonic() + 60
    while time.monotonic() < until and (frame.trace.busy or frame.trace.workbench.snapshot.fit is None):
        qapp.processEvents()
    assert frame.trace.workbench.snapshot.fit is not None
    frame.grab()
    kept = [weakref.ref(frame), weakref.ref(frame.trace), weakref.ref(frame.trace.workbench)]
    frame.close()
    frame.deleteLater()
    del frame
    until = time.monotonic() + 10
    while time.monotonic() < until and any(one() is not None for one in kept):
        qapp.processEvents()
        qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        gc.collect()
    assert not any(one() is not None for one in kept)

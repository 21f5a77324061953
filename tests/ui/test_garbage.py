"""Python's garbage is collected in the window's thread only."""

from __future__ import annotations

import gc
import threading
import weakref

from desktop.ui.app import Garbage


class Cycle:
    """An object that only the collector frees, and that tells which thread did."""

    def __init__(self) -> None:
        self.me = self


def test_cycles_are_freed_in_the_window_s_thread(qtbot, qapp, monkeypatch):
    monkeypatch.setattr(Garbage, "INTERVAL_MS", 20)
    freed: list[threading.Thread] = []
    keeper = Garbage(qapp)
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
        qtbot.waitUntil(lambda: not told.alive, timeout=5_000)
        assert freed == [threading.main_thread()] and len(kept) == 5_000
    finally:
        keeper.deleteLater()

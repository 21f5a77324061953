"""In the background: load what the first visit of a page would wait for; on a fresh installation, compile
what the first trace of each format would."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

from desktop.progress import Progress
from desktop.ui.commands import KINDS
from desktop.ui.pages import set_up
from desktop.ui.workers import MainThread
from desktop.workbench.jobs import Job, Lane, Task

if TYPE_CHECKING:
    from desktop.ui.frame import Frame

_log = logging.getLogger("phasewright")
#: The window is shown first, and what it was started with begins to open.
AFTER_MS = 2000


def _work(job: Progress) -> bool:
    from desktop.data.warming import in_background, needed

    for kind in KINDS:  # or who first goes to a page waits for what it imports
        import_module(f"desktop.ui.{kind}_page")
    return in_background(job) if needed() else True


class WarmUp(QObject):
    """Begins by itself where kernels are missing; shown among the tasks of `window`, where Cancel ends it.

    `work` returns whether all is compiled. When the window closes it goes on out of sight, and ends with
    `close`.
    """

    def __init__(self, window: Frame, work: Callable[[Progress], bool] = _work) -> None:
        super().__init__()
        self._work = work
        self._thread = MainThread(self)
        self._lane = Lane("warm-up", latest=True, deliver=self._thread.deliver)
        self._window: Frame | None = window
        window.closed.connect(self._forget)
        self._timer = set_up(QTimer(self), singleShot=True, timeout=self.begin)
        self._timer.start(AFTER_MS)

    def begin(self) -> None:
        """Start compiling in the background."""
        self._lane.submit("Compiling for all formats (once)", self._run, self._done, self._failed, self._show)

    @property
    def busy(self) -> bool:
        """Whether it is compiling."""
        return self._lane.busy

    def cancel(self) -> None:
        """Stop for now; the next start of the program goes on."""
        self._lane.cancel()
        self._show(None)

    def close(self) -> None:
        """Stop, with its process, as the program ends."""
        self._timer.stop()
        self._thread.close()
        self._lane.close()

    def _run(self, job: Job) -> bool:
        return self._work(job)

    def _done(self, complete: bool) -> None:
        self._show(None)
        if not complete:
            _log.info("not all kernels were compiled beforehand")

    def _failed(self, error: BaseException) -> None:
        self._show(None)  # then they are compiled when they are needed
        _log.warning("kernels could not be compiled beforehand, %s", type(error).__name__)

    def _show(self, task: Task | None) -> None:
        if self._window is not None:
            self._window.show_task("warm-up", task, self.cancel)

    def _forget(self) -> None:
        self._window = None

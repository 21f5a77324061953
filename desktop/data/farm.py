"""Tasks side by side in other processes, through the interface of `concurrent.futures`.

Tasks and whoever waits for them meet in a folder: the tasks write there how far they are, and a file there
asks them to stop. That works across machines too, if the folder is on a file system they share.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import suppress
from multiprocessing.connection import wait as wait_for_end
from pathlib import Path
from threading import Thread
from typing import Any

from desktop.errors import DesktopError
from desktop.progress import Cancelled, Progress

#: Seconds between two looks at the folder.
PAUSE = 0.1


def cores() -> int:
    """Processors that this process may use."""
    with suppress(AttributeError):  # not everywhere
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Farm:
    """Runs tasks in processes of its own; one that dies never takes this process with it.

    Parameters
    ----------
    folder : an existing folder for files of the farm, which nobody else uses.
    workers : processes at a time.
    """

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder = folder
        self._workers = workers

    def run(
        self,
        function: Callable[..., Any],
        tasks: Sequence[tuple[Any, ...]],
        progress: Progress,
        text: str,
    ) -> list[Future[Any]]:
        """Call ``function(*task, progress)`` for all tasks; returns their futures, all of them done.

        The function must be importable. What it raises is in its future. A task whose process dies is
        tried once more, alone; then its future holds a `DesktopError`.

        Raises
        ------
        Cancelled : by `progress`, after all tasks have ended.
        """
        ended: dict[int, Future[Any]] = {}
        died = [0] * len(tasks)
        while len(ended) < len(tasks):
            left = [i for i in range(len(tasks)) if i not in ended]
            batch = [i for i in left if not died[i]] or left[:1]
            futures = self._run_once(function, tasks, batch, progress, text, ended)
            broken = {i for i in batch if isinstance(futures[i].exception(), BrokenExecutor)}
            # A pool that breaks takes those along that still wait for their turn.
            begun = {i for i in broken if self._mark(i).exists()}
            for i in batch:
                if i in broken:
                    died[i] += i in begun or not begun
                    if died[i] < 2:
                        continue
                    futures[i] = Future()
                    futures[i].set_exception(_death(bool(begun)))
                ended[i] = futures[i]
        return [ended[i] for i in range(len(tasks))]

    def _run_once(
        self,
        function: Callable[..., Any],
        tasks: Sequence[tuple[Any, ...]],
        batch: Sequence[int],
        progress: Progress,
        text: str,
        ended: dict[int, Future[Any]],
    ) -> dict[int, Future[Any]]:
        for i in batch:
            self._mark(i).unlink(missing_ok=True)
        with self._executor(min(self._workers, len(batch))) as executor:
            futures: dict[int, Future[Any]] = {}
            try:
                for i in batch:
                    futures[i] = executor.submit(_work, function, tasks[i], str(self._mark(i)))
                while wait(futures.values(), PAUSE).not_done:
                    done = len(ended) + sum(_read(self._mark(i)) for i in batch)
                    progress.step(done, len(tasks), text)
                progress.step(len(ended) + len(batch), len(tasks), text)
            except BrokenExecutor as error:  # before all were submitted
                for i in batch:
                    if i not in futures:
                        futures[i] = Future()
                        futures[i].set_exception(error)
                wait(futures.values())
            except BaseException:
                (self._folder / _STOP).touch()
                for future in futures.values():
                    future.cancel()
                wait(futures.values())
                raise
        return futures

    def _executor(self, workers: int) -> Executor:
        # Forking a process with threads and HDF5 in it is not safe.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(workers, context, _begin)

    def _mark(self, task: int) -> Path:
        return self._folder / f"{task}.progress"


def _death(begun: bool) -> DesktopError:
    if begun:
        return DesktopError(
            "the process that read it died, twice", hint="it may be damaged, or the memory too small"
        )
    return DesktopError("no process could be started to read it", hint="close other programs")


_STOP = "stop"


def _work(function: Callable[..., Any], task: tuple[Any, ...], mark: str) -> Any:
    """What runs over there."""
    return function(*task, _Marked(Path(mark)))


class _Marked(Progress):
    """Progress by way of files: the share that is done is written, a stop is read."""

    def __init__(self, mark: Path) -> None:
        super().__init__()
        self._mark = mark
        self._stop = mark.parent / _STOP
        self._next = 0.0
        mark.write_text("0")

    def step(self, done: float, total: float, text: str = "") -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + PAUSE
            if self._stop.exists():
                self.cancel()
            else:
                self._mark.write_text(f"{min(done / total, 1.0) if total else 0.0:.4f}")
        if self.cancelled:
            raise Cancelled


def _read(mark: Path) -> float:
    try:
        return float(mark.read_text())
    except (OSError, ValueError):  # not begun, or being written
        return 0.0


def _begin() -> None:
    """Let a worker end with the process that started it, and by its will only."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all of them; the parent tells them to stop
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        # A parent that is killed tells nobody, and its workers would wait for work for ever.
        wait_for_end([parent.sentinel])
        os._exit(1)

    Thread(target=watch, name="end with parent", daemon=True).start()

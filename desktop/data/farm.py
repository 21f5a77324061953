"""Tasks side by side in other processes, through the interface of `concurrent.futures`.

Tasks and whoever waits for them meet in a folder: the tasks write there how far they are, and a file there
asks them to stop. That works across machines too, if the folder is on a file system they share.
"""

from __future__ import annotations

import logging
import os
import platform
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any, Self, TypeVar

from desktop import __version__, stopping
from desktop.errors import DesktopError, reason
from desktop.progress import Cancelled, Progress

T = TypeVar("T")
#: Seconds between two looks at the folder.
PAUSE = 0.1
#: Seconds in which tasks that were asked to stop must have done so, or they are left to themselves.
PATIENCE = 30.0
#: Seconds in which a scheduler must answer, and have workers.
ANSWER = 10
#: Seconds without a worker, or without an answer of the scheduler, after which tasks are given up.
DESERTED = 60.0


def cores() -> int:
    """Processors that this process may use."""
    with suppress(AttributeError):  # not everywhere
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Farm:
    """Runs tasks in processes of its own, for the time of its block; one that dies never takes this with it.

    Parameters
    ----------
    folder : an existing folder for files of the farm, which nobody else uses.
    workers : processes at a time.
    """

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder = folder
        self.workers = workers
        #: Tasks that have ended, of those that were run last; all of them unless they were stopped.
        self.ended: dict[int, Future[Any]] = {}
        self._executor: Executor | None = None
        self._size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def run(
        self, function: Callable[..., T], tasks: Sequence[tuple[object, ...]], progress: Progress, text: str
    ) -> list[Future[T]]:
        """Call ``function(*task, progress)`` for all tasks; returns their futures, all of them done.

        The function must be importable. What it raises is in its future. A task whose process dies is
        tried once more, alone; then its future holds a `DesktopError`.

        Raises
        ------
        Cancelled : by `progress`, after all tasks have ended.
        """
        ended: dict[int, Future[T]] = {}
        self.ended = ended
        died = [0] * len(tasks)
        while len(ended) < len(tasks):
            left = [i for i in range(len(tasks)) if i not in ended]
            # One that died is tried alone: the memory may have been too small for all together.
            batch = [i for i in left if not died[i]] or left[:1]
            futures = self._run_once(function, tasks, batch, progress, text, ended)
            errors = {i: _error(futures[i]) for i in batch}
            broken = {i for i in batch if isinstance(errors[i], BrokenExecutor)}
            # A pool that breaks takes those along that still wait for their turn.
            begun = {i for i in broken if self._mark(i).exists()}
            for i, error in errors.items():
                if i in broken:
                    died[i] += i in begun or not begun
                    if died[i] < 2:
                        continue
                    error = _death(bool(begun))
                ended[i] = futures[i] if error is None else _failed(self._explain(error))
        return [ended[i] for i in range(len(tasks))]

    def _run_once(
        self,
        function: Callable[..., T],
        tasks: Sequence[tuple[object, ...]],
        batch: Sequence[int],
        progress: Progress,
        text: str,
        ended: dict[int, Future[T]],
    ) -> dict[int, Future[T]]:
        for i in batch:
            self._mark(i).unlink(missing_ok=True)
        executor = self._open(min(self.workers, len(batch)))
        futures: dict[int, Future[T]] = {}
        try:
            with _deaf():  # which the processes that are started are from their first line
                for i in batch:
                    futures[i] = executor.submit(_work, __version__, function, tasks[i], self._mark(i))
            while wait(futures.values(), PAUSE).not_done:
                done = len(ended) + sum(_read(self._mark(i)) for i in batch)
                progress.step(done, len(tasks), text)
                if self._deserted():
                    raise self._explain(CancelledError())
            progress.step(len(ended) + len(batch), len(tasks), text)
        except BrokenExecutor as error:  # before all were submitted
            for i in batch:
                if i not in futures:
                    futures[i] = Future()
                    futures[i].set_exception(error)
            wait(futures.values())
        except BaseException:
            self._stop(futures)
            ended.update((i, future) for i, future in futures.items() if future.done())
            raise
        if any(isinstance(_error(future), BrokenExecutor) for future in futures.values()):
            self._close()
        return futures

    def _stop(self, futures: Mapping[int, Future[T]]) -> None:
        """Ask all tasks to stop, and wait until those that have begun did, for they still write."""
        (self.folder / _STOP).touch()
        for i, future in futures.items():
            if not self._mark(i).exists():
                future.cancel()
        end = time.monotonic() + PATIENCE
        while not all(future.done() for future in futures.values()) and time.monotonic() < end:
            if self._deserted():
                break
            time.sleep(PAUSE / 4)

    def _deserted(self) -> bool:
        """Whether nobody is left to do the tasks. Asked every `PAUSE`."""
        return False

    def _open(self, workers: int) -> Executor:
        """The executor, with at least so many workers; with one if one is asked for."""
        if self._executor is None or workers > self._size or workers == 1 < self._size:
            self._close()
            self._executor, self._size = self._make(workers), workers
        return self._executor

    def _make(self, workers: int) -> Executor:
        import multiprocessing  # takes a while, and few divide a trace
        from concurrent.futures import ProcessPoolExecutor

        # Forking a process with threads and HDF5 in it is not safe.
        context = multiprocessing.get_context("spawn")
        _start_tracker()
        stopping.leave_no(self, self._leave)
        return ProcessPoolExecutor(workers, context, _begin, (self.folder / _END,))

    def _close(self) -> None:
        # Where this process ends outright, nobody gets past here: Python's own end, while `_leave` closes the
        # pool, would write into a pipe that is closed.
        with stopping.making:
            executor = self._executor
        if executor is not None:
            executor.shutdown()
            self._executor = None
            stopping.left(self)

    def _leave(self) -> None:
        """Have the processes remove what they write, and end, before this one ends outright."""
        (self.folder / _END).touch()
        executor, self._executor = self._executor, None
        if executor is not None:
            ending = Thread(target=executor.shutdown, name="end of a farm", daemon=True)
            ending.start()
            ending.join(_LAST_WORDS)

    def _explain(self, error: BaseException) -> BaseException:
        """What a task raised, in the user's words."""
        return error

    def _mark(self, task: int) -> Path:
        return self.folder / f"{task}.progress"


class Cluster(Farm):
    """A farm on a cluster of `dask.distributed`: its scheduler gives the tasks to the workers, and those of a
    worker that dies to others.

    Parameters
    ----------
    folder : as for `Farm`, on a file system that all workers see at this very place.
    scheduler : address of the scheduler, such as ``tcp://host:8786``.
    progress : may stop the waiting for an answer.

    Raises
    ------
    DesktopError : the package is not installed, the scheduler does not answer, or has no workers.
    """

    def __init__(self, folder: Path, scheduler: str, progress: Progress) -> None:
        try:
            import distributed
        except ImportError:
            raise DesktopError(
                "the package distributed is not installed, so there is no way to a cluster",
                hint="install phasewright[cluster]",
            ) from None
        for name in ("distributed", "distributed.client"):  # it prints tracebacks of what is told here
            logging.getLogger(name).setLevel(logging.CRITICAL)
        import asyncio

        try:
            # Asked first: a client that finds no scheduler cannot be stopped, nor be closed quietly.
            threads = asyncio.run(_threads(scheduler, progress))
            if threads:
                self._client = distributed.Client(scheduler, timeout=ANSWER, set_as_default=False)
        except Cancelled:
            raise
        except Exception as error:
            # What is no scheduler may send anything, which then is taken for lengths and offsets.
            answers = "something else does" if not isinstance(error, OSError | ValueError | TypeError) else ""
            why = answers or reason(error, "nobody is there, or it is no address such as tcp://host:8786")
            raise DesktopError(
                f"no scheduler answers at {scheduler} ({why})", hint="start one, or import without it"
            ) from error
        if not threads:
            raise DesktopError(f"the scheduler at {scheduler} has no workers", hint="start some")
        super().__init__(folder, threads)
        self._missed = 0  # looks in a row at which no worker was known
        self._left = Event()
        Thread(target=self._look, name="cluster", daemon=True).start()

    def _make(self, workers: int) -> Executor:
        executor: Executor = self._client.get_executor(pure=False)
        return executor

    def _look(self) -> None:
        """See whether there are workers; in a thread of its own, for the scheduler may never answer."""
        while not self._left.wait(1.0):
            with suppress(Exception):  # no answer, whatever the reason
                if self._client.nthreads():
                    self._missed = 0

    def _deserted(self) -> bool:
        # Looks are counted, not seconds: this process may have been stopped for a while.
        self._missed += 1
        return self._missed * PAUSE > DESERTED

    def _close(self) -> None:
        self._executor = None  # its own end would wait for tasks that were left to themselves

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._left.set()
        with suppress(OSError):  # a scheduler that does not answer
            self._client.close(timeout=ANSWER)

    def _explain(self, error: BaseException) -> BaseException:
        if isinstance(error, DesktopError | Cancelled | MemoryError):
            return error
        if isinstance(error, CancelledError):
            return DesktopError(
                "the scheduler of the cluster or all of its workers are gone", hint="see what they say"
            )
        return DesktopError(
            f"the workers of the cluster failed ({type(error).__name__}: {str(error).splitlines()[0][:200]})",
            hint="see what they say; they and the scheduler need this version of Phasewright",
        )


async def _threads(scheduler: str, progress: Progress) -> int:
    """Threads of the workers of a scheduler, as soon as it has some; 0 if it has none for `ANSWER` seconds.

    Raises
    ------
    Exception : of any kind; what is there, if anything, is no scheduler.
    """
    import asyncio

    import distributed

    async def asked() -> int:
        end = time.monotonic() + ANSWER
        keys = distributed.Security().get_connection_args("client")
        async with distributed.rpc(scheduler, timeout=ANSWER, connection_args=keys) as there:
            while True:
                about = await there.identity()
                if about["type"] != "Scheduler":
                    raise ValueError(f"it is a {about['type']}")
                threads = sum(int(worker["nthreads"]) for worker in about["workers"].values())
                if threads or time.monotonic() > end:
                    return threads
                await asyncio.sleep(PAUSE)

    asking = asyncio.create_task(asked())
    while not asking.done():
        progress.step(0, 1, "waiting for the cluster")
        await asyncio.wait([asking], timeout=PAUSE)
    return asking.result()


def _death(begun: bool) -> DesktopError:
    if begun:
        return DesktopError(
            "the process that read it died, twice", hint="it may be damaged, or the memory too small"
        )
    return DesktopError("no process could be started to read it", hint="close other programs")


def _error(future: Future[T]) -> BaseException | None:
    return CancelledError() if future.cancelled() else future.exception()


def _failed(error: BaseException) -> Future[T]:
    future: Future[T] = Future()
    future.set_exception(error)
    return future


_STOP = "stop"
_END = "end"
#: Seconds that processes have to end outright.
_LAST_WORDS = 2.0


def _start_tracker() -> None:
    """Start the process that removes semaphores which others leave, as those do that end outright: without a
    word. It lets signals through when it is started, so that is done before the others are."""
    if os.name != "posix":  # others need none
        return
    from multiprocessing import resource_tracker

    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (before, "ignore:resource_tracker:UserWarning")))
    try:
        with _deaf():
            resource_tracker.ensure_running()
    finally:
        del os.environ["PYTHONWARNINGS"]
        if before is not None:
            os.environ["PYTHONWARNINGS"] = before


@contextmanager
def _deaf() -> Iterator[None]:
    """Requests to end wait meanwhile; processes that are started now never hear any until they ask for it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, stopping.REQUESTS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(version: str, function: Callable[..., T], task: tuple[object, ...], mark: Path) -> T:
    """What runs over there."""
    here = platform.node()
    if version != __version__:
        raise DesktopError(
            f"the worker on {here} has version {__version__} of Phasewright and not {version}",
            hint="install the same one",
        )
    if not mark.parent.is_dir():
        raise DesktopError(
            "is not there for the worker on " + here,
            file=mark.parent,
            hint="say with -o a place for the imported file that all workers see",
        )
    return function(*task, _MarkedOutput(mark))


class _MarkedOutput(Progress):
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


def _begin(end: Path) -> None:
    """Let a worker end with the process that started it, and by its will only: Ctrl-C in a terminal and the
    end of a session reach all of them, and the parent tells them what to do. `end`: a file that asks them to
    end outright."""
    for number in stopping.REQUESTS:
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stopping.REQUESTS)
    from multiprocessing import parent_process
    from multiprocessing.connection import wait as wait_for_end

    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        # A parent that is killed tells nobody, and its workers would wait for work for ever.
        while not wait_for_end([parent.sentinel], PAUSE) and not end.exists():
            pass
        stopping.end(1)

    Thread(target=watch, name="end with parent", daemon=True).start()

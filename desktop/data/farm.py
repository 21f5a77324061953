"""Runs tasks in parallel in other processes, with the interface of `concurrent.futures`.

Tasks and their caller communicate through a folder: tasks write their progress there, and a file there asks
them to stop. This works across machines too, if the folder is on a shared file system.
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
#: Seconds between two checks of the folder.
PAUSE = 0.1
#: Seconds within which tasks must stop when asked to; then they are abandoned.
PATIENCE = 30.0
#: Seconds within which a scheduler must answer, and have workers.
ANSWER = 10
#: Seconds without a worker, or without an answer of the scheduler, after which tasks are abandoned.
DESERTED = 60.0


def cores() -> int:
    """Processors that this process may use."""
    with suppress(AttributeError):  # not everywhere
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Farm:
    """Runs tasks in its own processes while its block lasts; a dying task never ends this process.

    Parameters
    ----------
    folder : an existing folder for files of the farm, used by nobody else.
    workers : processes at a time.
    """

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder = folder
        self.workers = workers
        #: Tasks of the last run that have ended: all of them unless they were stopped. Each run
        #: has its own type of results.
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

        The function must be importable. An exception of it is stored in its future. A task whose process dies
        is repeated once, alone; then its future holds a `DesktopError`.

        Raises
        ------
        Cancelled : by `progress`, after all tasks have ended.
        """
        ended: dict[int, Future[T]] = {}
        self.ended = ended
        died = [0] * len(tasks)
        while len(ended) < len(tasks):
            left = [i for i in range(len(tasks)) if i not in ended]
            # A task that died is repeated alone: memory may have been too small for all together.
            batch = [i for i in left if not died[i]] or left[:1]
            futures = self._run_once(function, tasks, batch, progress, text, ended)
            errors = {i: _error(futures[i]) for i in batch}
            broken = {i for i in batch if isinstance(errors[i], BrokenExecutor)}
            # A pool that breaks also loses tasks that wait for their turn.
            started = {i for i in broken if self._mark(i).exists()}
            for i, error in errors.items():
                if i in broken:
                    died[i] += i in started or not started
                    if died[i] < 2:
                        continue
                    error = _death(bool(started))
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
            with _deaf():  # inherited by the processes that are started
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
        """Ask all tasks to stop, and wait until the running ones have, as they still write."""
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
        """Whether nobody is left to run the tasks. Called every `PAUSE`."""
        return False

    def _open(self, workers: int) -> Executor:
        """The executor, with at least `workers` workers; with one if one is requested."""
        if self._executor is None or workers > self._size or workers == 1 < self._size:
            self._close()
            self._executor, self._size = self._make(workers), workers
        return self._executor

    def _make(self, workers: int) -> Executor:
        import multiprocessing  # slow, and few divide a trace
        from concurrent.futures import ProcessPoolExecutor

        # Forking a process that has threads and HDF5 is not safe.
        context = multiprocessing.get_context("spawn")
        _start_tracker()
        stopping.leave_no(self, self._leave)
        return ProcessPoolExecutor(workers, context, _begin, (self.folder / _END,))

    def _close(self) -> None:
        # If this process is terminated, nothing gets past here: Python's own exit would write into a closed
        # pipe while `_leave` closes the pool.
        with stopping.making:
            executor = self._executor
        if executor is not None:
            executor.shutdown()
            self._executor = None
            stopping.left(self)

    def _leave(self) -> None:
        """Make the processes remove their files and end, before this process is terminated."""
        (self.folder / _END).touch()
        executor, self._executor = self._executor, None
        if executor is not None:
            ending = Thread(target=executor.shutdown, name="end of a farm", daemon=True)
            ending.start()
            ending.join(_LAST_WORDS)

    def _explain(self, error: BaseException) -> BaseException:
        """The exception of a task, explained for the user."""
        return error

    def _mark(self, task: int) -> Path:
        return self.folder / f"{task}.progress"


class Cluster(Farm):
    """A farm on a cluster of `dask.distributed`: its scheduler distributes the tasks, and repeats those of a
    worker that dies on others.

    Parameters
    ----------
    folder : as for `Farm`, on a file system that all workers see at the same path.
    scheduler : address of the scheduler, such as ``tcp://host:8786``.
    progress : may cancel waiting for an answer.

    Raises
    ------
    DesktopError : the package is not installed, the scheduler does not answer, or has no workers.
    """

    def __init__(self, folder: Path, scheduler: str, progress: Progress) -> None:
        try:
            import distributed
        except ImportError:
            raise DesktopError(
                "the package distributed is not installed, so no cluster can be used",
                hint="install phasewright[cluster]",
            ) from None
        for name in ("distributed", "distributed.client"):  # it prints tracebacks of errors reported here
            logging.getLogger(name).setLevel(logging.CRITICAL)
        import asyncio

        try:
            # Asked first: a client that finds no scheduler cannot be stopped, nor closed quietly.
            threads = asyncio.run(_threads(scheduler, progress))
            if threads:
                self._client = distributed.Client(scheduler, timeout=ANSWER, set_as_default=False)
        except Cancelled:
            raise
        except Exception as error:
            # Anything else than a scheduler may send bytes that would be taken for lengths and offsets.
            answers = "something else does" if not isinstance(error, OSError | ValueError | TypeError) else ""
            why = answers or reason(error, "nothing is there, or it is no address such as tcp://host:8786")
            raise DesktopError(
                f"no scheduler answers at {scheduler} ({why})", hint="start one, or import without it"
            ) from error
        if not threads:
            raise DesktopError(f"the scheduler at {scheduler} has no workers", hint="start some")
        super().__init__(folder, threads)
        self._missed = 0  # checks in a row without a known worker
        self._left = Event()
        Thread(target=self._look, name="cluster", daemon=True).start()

    def _make(self, workers: int) -> Executor:
        executor: Executor = self._client.get_executor(pure=False)
        return executor

    def _look(self) -> None:
        """Check whether there are workers; in a separate thread, as the scheduler may never answer."""
        while not self._left.wait(1.0):
            with suppress(Exception):  # no answer, whatever the reason
                if self._client.nthreads():
                    self._missed = 0

    def _deserted(self) -> bool:
        # Checks are counted, not seconds: this process may have been suspended for a while.
        self._missed += 1
        return self._missed * PAUSE > DESERTED

    def _close(self) -> None:
        self._executor = None  # its own exit would wait for abandoned tasks

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
    """Threads of the workers of a scheduler, as soon as it has some; 0 if it has none in `ANSWER` seconds.

    Raises
    ------
    Exception : of any kind; what answers, if anything, is no scheduler.
    """
    import asyncio

    import distributed

    async def asked() -> int:
        end = time.monotonic() + ANSWER
        keys = distributed.Security().get_connection_args("client")
        async with distributed.rpc(scheduler, timeout=ANSWER, connection_args=keys) as peer:
            while True:
                about = await peer.identity()
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


def _death(started: bool) -> DesktopError:
    if started:
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
#: Seconds that processes have to terminate.
_LAST_WORDS = 2.0


def _start_tracker() -> None:
    """Start the process that removes semaphores left by others, as terminated ones do, without messages.
    Starting it unblocks signals, so it is started before the other processes."""
    if os.name != "posix":  # others do not need it
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
    """Block requests to terminate; processes started now ignore them until they unblock them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, stopping.REQUESTS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(version: str, function: Callable[..., T], task: tuple[object, ...], mark: Path) -> T:
    """Runs in the worker."""
    host = platform.node()
    if version != __version__:
        raise DesktopError(
            f"the worker on {host} has version {__version__} of Phasewright and not {version}",
            hint="install the same one",
        )
    if not mark.parent.is_dir():
        raise DesktopError(
            "is not there for the worker on " + host,
            file=mark.parent,
            hint="choose with -o a place for the imported file that all workers see",
        )
    return function(*task, _FileProgress(mark))


class _FileProgress(Progress):
    """Progress through files: the finished share is written, a request to stop is read."""

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
    except (OSError, ValueError):  # not started, or being written
        return 0.0


def _begin(end: Path) -> None:
    """Make a worker end with its parent, and only by the parent's will: Ctrl-C in a terminal and the end of a
    session reach all processes, and the parent decides. `end`: a file that requests termination."""
    for number in stopping.REQUESTS:
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, stopping.REQUESTS)
    from multiprocessing import parent_process
    from multiprocessing.connection import wait as wait_for_end

    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        # A parent that is killed cannot do so, and its workers would wait for work for ever.
        while not wait_for_end([parent.sentinel], PAUSE) and not end.exists():
            pass
        stopping.end(1)

    Thread(target=watch, name="end with parent", daemon=True).start()

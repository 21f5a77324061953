"""Jobs beside the window: plain functions in threads, whose results are delivered in the owner's thread.

A job captures all it needs when it is made and shares nothing while it runs. Its result, or its exception,
is given to `deliver`, which calls back in the owner's thread (the window: by a queued signal; tests and
the command line: at once).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from desktop.data import memory
from desktop.errors import DesktopError
from desktop.progress import Cancelled, Progress, working

_log = logging.getLogger("phasewright")
Deliver = Callable[[Callable[[], None]], None]
T = TypeVar("T")
#: Progress reaches the window at most this often; readers call `step` thousands of times a second.
INTERVAL = 0.05
#: Seconds of processor time from which on a job's end gives back to the system what it freed.
LONG = 1.0


def at_once(call: Callable[[], None]) -> None:
    """Deliver in the calling thread."""
    call()


class Executor(Protocol):
    def submit(self, function: Callable[[], None], /) -> Future[None]: ...
    def shutdown(self, wait: bool = True) -> None: ...


@dataclass(frozen=True)
class Task:
    """How far a job is, as the window shows it. `total` 0: unknown. `elapsed` and `left` in seconds."""

    title: str
    text: str = ""
    done: float = 0.0
    total: float = 0.0
    elapsed: float = 0.0

    @property
    def fraction(self) -> float | None:
        return min(1.0, self.done / self.total) if self.total > 0 else None

    @property
    def left(self) -> float | None:
        """Seconds that remain if the pace holds; None while that is a guess (below 5 % or half a second)."""
        part = self.fraction
        if part is None or part < 0.05 or self.elapsed < 0.5:
            return None
        return self.elapsed * (1 - part) / part


class _Answers(NamedTuple):
    """What gets the result of a job, its exception, and its progress."""

    done: Callable[[Any], None]
    failed: Callable[[BaseException], None]
    report: Callable[[Task], None] | None


class Job(Progress):
    """One piece of work; `task` is how far it is. `stop` is what kernels watch: it becomes 1 on `cancel`.

    `work` and `answers` often hold parts of the window. They are set to None in the owner's thread: if the
    thread of the work dropped the last reference to a widget, it would free the widget.
    """

    def __init__(
        self, lane: Lane, title: str, generation: int, work: Callable[[Job], object], answers: _Answers
    ) -> None:
        super().__init__()
        self.title, self.task = title, Task(title)
        self.generation = generation
        self.stop = np.zeros(1, np.uint8)
        self.work: Callable[[Job], object] | None = work
        self.answers: _Answers | None = answers
        self._lane = lane
        self._start = time.monotonic()
        self._last_report = -INTERVAL

    def cancel(self) -> None:
        super().cancel()
        self.stop[0] = 1

    @property
    def elapsed(self) -> float:
        """Seconds since it was submitted."""
        return time.monotonic() - self._start

    def show(self, done: float, total: float, text: str) -> None:
        elapsed = self.elapsed
        if elapsed - self._last_report < INTERVAL:
            return
        self._last_report = elapsed
        self.task = Task(self.title, text, done, total, elapsed)
        self._lane.tell(self, self._report, self.task)

    def _report(self, task: Task) -> None:
        if self.answers is not None and self.answers.report is not None:
            self.answers.report(task)


class Lane:
    """Jobs one after the other in one thread.

    `latest`: a new job replaces all before it (fits); otherwise they queue (imports). Results of replaced
    or cancelled jobs are recognised by their generation and dropped.
    """

    def __init__(
        self, name: str, *, latest: bool, deliver: Deliver = at_once, executor: Executor | None = None
    ) -> None:
        self._latest = latest
        self._deliver = deliver
        self._executor = executor or ThreadPoolExecutor(1, thread_name_prefix=f"phasewright-{name}")
        self._generation = 0
        self._oldest = 0  # generations below are not wanted any more
        self._closed = False
        self._jobs: list[tuple[Job, Future[None] | None]] = []

    @property
    def busy(self) -> bool:
        """Whether a result is still to be delivered."""
        return self.current is not None

    @property
    def current(self) -> Job | None:
        """The job whose result is waited for; None if there is none."""
        return next((job for job, _ in self._jobs if job.generation >= self._oldest), None)

    def submit(
        self,
        title: str,
        work: Callable[[Job], T],
        done: Callable[[T], None],
        failed: Callable[[BaseException], None],
        report: Callable[[Task], None] | None = None,
    ) -> Job:
        """Run ``work(job)``; `done` gets its result or `failed` its exception, `report` its progress. In
        a closed lane the job is cancelled before it begins."""
        if self._latest:
            self.cancel()
        self._generation += 1
        job = Job(self, title, self._generation, work, _Answers(done, failed, report))
        if self._closed:
            job.cancel()
            return job
        place = len(self._jobs)
        self._jobs.append((job, None))
        future = self._executor.submit(lambda: self._run(job))
        if place < len(self._jobs) and self._jobs[place][0] is job:
            self._jobs[place] = (job, future)
        return job

    def cancel(self) -> None:
        """Cancel all jobs submitted so far; their results are dropped."""
        self._oldest = self._generation + 1
        for job, future in self._jobs:
            job.cancel()
            job.answers = None
            if future is not None and future.cancel():
                job.work = None
        self._jobs = [(job, f) for job, f in self._jobs if f is None or not f.cancelled()]

    def close(self, *, wait: bool = True) -> None:
        """Cancel, and `wait` for the thread to end; otherwise it ends by itself at the job's next step."""
        self._closed = True
        self.cancel()
        self._executor.shutdown(wait=wait)

    def tell(self, job: Job, listener: Callable[[T], None], value: T) -> None:
        """Call ``listener(value)`` in the owner's thread, if the job is still wanted then."""

        def call() -> None:
            if job.generation >= self._oldest:
                listener(value)

        self._deliver(call)

    def _run(self, job: Job) -> None:
        result: object = None
        error: Exception | None = None
        dropped = False
        start = time.thread_time()
        try:
            if job.cancelled:
                raise Cancelled
            assert job.work is not None
            with working(job):
                result = job.work(job)
        except Cancelled:
            dropped = True
        except Exception as caught:
            # Whatever goes wrong in a job is an answer for the user; the lane stays usable.
            error = caught
            _note(caught)
        if time.thread_time() - start >= LONG:
            memory.give_back()

        def finish() -> None:
            answers, job.answers, job.work = job.answers, None, None
            self._jobs = [(other, f) for other, f in self._jobs if other is not job]
            if answers is None or dropped:
                return
            if error is None:
                answers.done(result)
            else:
                answers.failed(error)

        self._deliver(finish)


def _note(error: Exception) -> None:
    """Log an error: critical if it is one of the program itself, as the window explains only others."""
    if isinstance(error, DesktopError | OSError | ValueError | MemoryError):
        _log.info("a job ended with %s", type(error).__name__)
    else:
        _log.critical("in a job", exc_info=error)

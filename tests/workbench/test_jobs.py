"""Lanes: the latest wins, a queue keeps its order, stale answers are dropped, errors are answers."""

from __future__ import annotations

import os
import platform
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from desktop.progress import Cancelled
from desktop.workbench import jobs
from desktop.workbench.jobs import Job, Lane, Task
from tests.inline import Inline


class Mailbox:
    """Delivers in the test's thread, when the test says so."""

    def __init__(self) -> None:
        self._calls: queue.Queue[Callable[[], None]] = queue.Queue()

    def deliver(self, call: Callable[[], None]) -> None:
        self._calls.put(call)

    def until_idle(self, lane: Lane) -> None:
        while lane.busy:
            self._calls.get(timeout=10)()

    def empty(self) -> None:
        while not self._calls.empty():
            self._calls.get()()


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
def latest(mailbox: Mailbox) -> Iterator[Lane]:
    lane = Lane("test", latest=True, deliver=mailbox.deliver)
    yield lane
    lane.close()


def fail(error: BaseException) -> None:
    raise AssertionError("no failure expected") from error


def test_only_the_last_of_many_requests_is_answered(mailbox: Mailbox, latest: Lane) -> None:
    answers: list[int] = []
    started: list[int] = []
    first_runs, go = threading.Event(), threading.Event()

    def work(number: int, job: Job) -> int:
        started.append(number)
        first_runs.set()
        go.wait(10)
        return number

    for number in range(100):
        latest.submit("fit", lambda job, number=number: work(number, job), answers.append, fail)
        if number == 0:
            assert first_runs.wait(10)
    go.set()
    mailbox.until_idle(latest)
    mailbox.empty()
    assert answers == [99]
    assert started == [0, 99], "requests that waited when a newer came must not run at all"


def test_a_new_request_stops_the_kernel_that_runs(mailbox: Mailbox, latest: Lane) -> None:
    jobs: list[Job] = []
    started, ended = threading.Event(), threading.Event()

    def work(job: Job) -> None:
        started.set()
        while not job.stop[0]:
            pass
        ended.set()
        raise Cancelled

    jobs.append(latest.submit("old", work, fail, fail))
    assert started.wait(10)
    answers: list[str] = []
    latest.submit("new", lambda job: "new", answers.append, fail)
    assert ended.wait(10)
    mailbox.until_idle(latest)
    assert answers == ["new"]


def test_an_answer_that_was_on_its_way_is_dropped(mailbox: Mailbox, latest: Lane) -> None:
    answers: list[str] = []
    done = threading.Event()

    def work(job: Job) -> str:
        done.set()
        return "stale"

    latest.submit("old", work, answers.append, fail)
    assert done.wait(10)
    latest.cancel()
    assert not latest.busy
    latest.close()
    mailbox.empty()
    assert answers == []


def test_a_queue_answers_all_in_order(mailbox: Mailbox) -> None:
    lane = Lane("queue", latest=False, deliver=mailbox.deliver)
    answers: list[int] = []
    for number in range(20):
        lane.submit("import", lambda job, number=number: number, answers.append, fail)
    mailbox.until_idle(lane)
    lane.close()
    assert answers == list(range(20))


def test_an_exception_is_an_answer_and_the_lane_lives_on(mailbox: Mailbox, latest: Lane) -> None:
    errors: list[BaseException] = []
    latest.submit("bad", lambda job: 1 / 0, fail, errors.append)
    mailbox.until_idle(latest)
    assert [type(e) for e in errors] == [ZeroDivisionError]
    answers: list[int] = []
    latest.submit("good", lambda job: 7, answers.append, fail)
    mailbox.until_idle(latest)
    assert answers == [7]


def test_cancel_ends_at_the_next_step_and_says_nothing(mailbox: Mailbox, latest: Lane) -> None:
    started, gone = threading.Event(), threading.Event()

    def work(job: Job) -> None:
        try:
            while True:
                started.set()
                job.step(1, 2)
        finally:
            gone.set()

    latest.submit("import", work, fail, fail)
    assert started.wait(10)
    latest.cancel()
    assert gone.wait(20), "Cancel has to act"
    latest.close()
    mailbox.empty()


def test_progress_is_thinned_out_and_tells_what_is_left(mailbox: Mailbox, latest: Lane) -> None:
    tasks: list[Task] = []

    def work(job: Job) -> None:
        for done in range(100_000):
            job.step(done, 100_000, "reading")

    latest.submit("import", work, lambda _: None, fail, tasks.append)
    mailbox.until_idle(latest)
    assert 1 <= len(tasks) < 1000
    assert all(task.text == "reading" for task in tasks)


@pytest.mark.parametrize(
    ("task", "left"),
    [
        (Task("t", done=1, total=4, elapsed=2.0), 6.0),
        (Task("t", done=1, total=100, elapsed=2.0), None),
        (Task("t", done=50, total=100, elapsed=0.1), None),
        (Task("t", done=50, total=0, elapsed=9.0), None),
    ],
)
def test_time_left_is_not_guessed_too_early(task: Task, left: float | None) -> None:
    assert task.left == left


def test_inline_everything_happens_within_submit() -> None:
    lane = Lane("inline", latest=True, executor=Inline())
    answers: list[Any] = []
    lane.submit("a", lambda job: 1, answers.append, fail)
    assert answers == [1] and not lane.busy
    # A result may ask for more work.
    lane.submit(
        "b", lambda job: 2, lambda two: lane.submit("c", lambda job: two + 1, answers.append, fail), fail
    )
    assert answers == [1, 3] and not lane.busy


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="other C libraries are not asked to give memory back"
)
def test_long_work_leaves_no_freed_memory_behind(
    mailbox: Mailbox, latest: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What glibc would keep, as something above it is still in use, goes back to the system."""
    monkeypatch.setattr(jobs, "LONG", 0.0)
    used: list[int] = []

    def work(job: Job) -> np.ndarray:
        # Below the size from which glibc asks the system for each array alone.
        arrays = [np.ones(12_000) for _ in range(600)]
        used.append(resident())
        return arrays[-1]

    kept: list[np.ndarray] = []
    latest.submit("large", work, kept.append, fail)
    mailbox.until_idle(latest)
    assert kept
    assert used[0] - resident() > 30e6  # of 58 MB


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_close_leaves_no_thread() -> None:
    lane = Lane("mortal", latest=True)
    lane.submit("a", lambda job: None, lambda _: None, fail)
    lane.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("phasewright-mortal")]


def test_a_closed_lane_takes_no_work() -> None:
    """What comes late, such as a timer of a window that has closed, is dropped and is no error."""
    lane = Lane("late", latest=True)
    lane.close()
    told: list[object] = []
    job = lane.submit("late", told.append, told.append, told.append, told.append)
    assert job.cancelled and not lane.busy and not told
    lane.close()


class Held:
    """What says in which thread its last reference went."""

    def __init__(self, gone: list[threading.Thread]) -> None:
        self._gone = gone

    def __del__(self) -> None:
        self._gone.append(threading.current_thread())

    def take(self, *_: object) -> None:
        """An answer."""


@pytest.mark.parametrize("way", ["done", "cancelled", "closed", "not begun"])
def test_the_work_and_its_answers_are_freed_in_the_owners_thread(mailbox: Mailbox, way: str) -> None:
    """Of a window that has closed they may be the last that holds it."""
    lane = Lane("test", latest=False, deliver=mailbox.deliver)
    started, go = threading.Event(), threading.Event()
    gone: list[threading.Thread] = []

    def wait(job: Job) -> None:
        started.set()
        assert go.wait(10)

    def submit() -> None:
        held = Held(gone)
        lane.submit("test", lambda job: (wait(job), held)[0], held.take, held.take)

    if way == "not begun":
        lane.submit("first", wait, print, fail)
        assert started.wait(10)
    submit()
    assert started.wait(10)
    if way in ("cancelled", "not begun"):
        lane.cancel()
    if way == "closed":
        lane.close(wait=False)
    go.set()
    lane.close()
    mailbox.empty()
    assert gone == [threading.current_thread()]

"""A test that never ends fails after `LIMIT` seconds, and says what it had started, which is killed.

What Python cannot interrupt is ended by pytest's `faulthandler_timeout`, later, with its process.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import psutil
import pytest

#: Seconds. On an idle machine the longest test takes some twenty.
LIMIT = 400.0
#: Seconds after which it is tried again, where the failure was caught by what was interrupted.
AGAIN = 20.0


def _started(since: float) -> list[psutil.Process]:
    """Processes that this one has started since then, and those of theirs whose parents have ended."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "no test").rpartition(" ")[0]
    found = psutil.Process().children(recursive=True)
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process not in found and process.environ().get("PYTEST_CURRENT_TEST", "").startswith(test):
                found.append(process)
    return [
        one for one in found if one.pid != os.getpid() and one.is_running() and one.create_time() >= since
    ]


def _doing(process: psutil.Process) -> str:
    """What it is, and where in the system it waits."""
    with suppress(psutil.Error, OSError):
        words, state, used = process.cmdline(), process.status(), sum(process.cpu_times()[:2])
        waits = Path(f"/proc/{process.pid}/wchan")
        where = f" in {waits.read_text()}" if waits.exists() else ""
        return (
            f"{process.pid} of {process.ppid()}, {state}{where}, {used:.1f} s used: {' '.join(words)[:300]}"
        )
    return f"{process.pid} has ended"


@contextmanager
def limited(seconds: float = LIMIT) -> Iterator[None]:
    """A part of a test, in the main thread; not on Windows."""
    if sys.platform == "win32":
        yield
        return
    since = time.time() - 1.0  # the system's clock of when processes began is a coarse one

    def end(number: int, frame: FrameType | None) -> None:
        left = _started(since)
        said = [_doing(process) for process in left]
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        pytest.fail(
            "\n".join([f"did not end within {seconds:g} s; what it had started, and was killed:", *said])
        )

    handler = signal.signal(signal.SIGALRM, end)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    with limited():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    with limited():
        return (yield)

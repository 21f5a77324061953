"""A test that waits for ever is ended, with what it has started."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from tests.limits import LIMIT, limited

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such timer")


def has_ended(number: int) -> bool:
    try:
        return psutil.Process(number).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_what_a_test_waits_for_is_ended_and_told() -> None:
    """Here a process whose parent is gone and that holds the pipe which is read."""
    child = subprocess.Popen(["sh", "-c", "sleep 4711 & echo $!"], stdout=subprocess.PIPE, text=True)
    with child, pytest.raises(pytest.fail.Exception, match=r"within 0\.5 s.*\n.*sleep 4711"), limited(0.5):
        assert child.stdout is not None
        number = int(child.stdout.readline())
        child.wait()
        child.stdout.read()
    until = time.monotonic() + 60
    while not (gone := has_ended(number)) and time.monotonic() < until:
        time.sleep(0.01)
    assert gone
    timer = signal.getitimer(signal.ITIMER_REAL)[0]
    assert 0 < timer <= LIMIT, "of the test itself it goes on"


def test_a_wait_for_what_never_comes_is_ended() -> None:
    with pytest.raises(pytest.fail.Exception, match="within"), limited(0.1):
        threading.Event().wait()
    with limited(60):
        pass

"""Requests from outside to end: Ctrl-C, ``kill``, a terminal that is closed.

A request is noted and not raised as an exception, which would come between any two lines of Python: files
would stay half written, and where Python cannot let an exception out it would be lost. Work that reports
itself ends at its next `Progress.step`. A process that has not ended `PATIENCE` seconds later, or is asked
once more, ends outright, after what it must not leave behind was removed (`leave_no`).
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from desktop.progress import ENDING, Cancelled

#: Seconds in which work that was asked to end must have done so.
PATIENCE = 3.0
#: Requests within so many seconds are one: a terminal that is closed sends several.
_AT_ONCE = 0.5
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
#: The requests that this system knows.
REQUESTS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))

#: Files that are complete, in the order in which they were written.
complete: dict[Path, None] = {}
_remains: dict[object, Callable[[], None]] = {}
#: Held while something is made that must not be left behind, until it is known here; and by `end`, for good.
making = threading.RLock()
_ear: _Ear | None = None
_prompting = False


def listen() -> None:
    """Take requests to end from here on. To be called in the main thread; those that are ignored (``nohup``,
    a job in the background) stay so."""
    global _ear
    if _ear is None:
        _ear = _Ear()


@contextmanager
def listening() -> Iterator[None]:
    """Take requests to end for the time of this block, if nobody does yet, and from the main thread only."""
    global _ear
    if _ear is not None or threading.current_thread() is not threading.main_thread():
        yield
        return
    with suppress(RuntimeError):  # no thread is to be had: requests end the process as they do any other
        listen()
    try:
        yield
    finally:
        if _ear is not None:
            _ear.close()
        _ear = None
        ENDING[0] = 0


def asked() -> int:
    """The number of the first request; 0 if there was none."""
    return 0 if _ear is None else _ear.number or _ear.seen


def code() -> int:
    """The exit code of what was asked to end, as a shell gives it for whoever ends by that signal."""
    return 128 + (asked() or int(signal.SIGINT))


def check() -> None:
    """Raises `Cancelled` if a request has come."""
    if ENDING[0]:
        raise Cancelled


@contextmanager
def prompting() -> Iterator[None]:
    """While the user is asked in a terminal, a request raises `Cancelled` at once, for nothing else looks."""
    global _prompting
    try:
        _prompting = True
        check()
        yield
    finally:
        _prompting = False


@contextmanager
def answered_by(answer: Callable[[int], None]) -> Iterator[None]:
    """For the time of this block a request, also one from before, calls ``answer(number)``, in another
    thread, and work goes on."""
    ear = _ear
    assert ear is not None, "nobody listens"
    ear.answer_by(answer)
    try:
        yield
    finally:
        ear.answer_by(None)


def leave_no(what: object, remove: Callable[[], None]) -> None:
    """Call `remove` should the process end outright, from whatever thread; see `making`, `left`."""
    _remains[what] = remove


def left(what: object) -> None:
    """`what` was removed, or is to stay."""
    _remains.pop(what, None)


def end(status: int) -> None:
    """End outright: nothing but what was told to `leave_no` is done, the last first."""
    # Whoever makes something is done with that soon, but may have been stopped by a debugger.
    making.acquire(timeout=1.0)
    for remove in reversed(list(_remains.values())):
        with suppress(Exception):  # the others are to be removed all the same
            remove()
    os._exit(status)


class _Ear:
    """Hears requests in a thread. Handlers of Python wait until the main thread is back from a kernel or from
    a program that it waits for; but the system writes the numbers of signals into a pipe at once."""

    def __init__(self) -> None:
        self.number = 0  # of the first request
        self.seen = 0  # by the main thread at a prompt, which does not wait for this one
        self._answer: Callable[[int], None] | None = None
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._out, self._in = os.pipe()
        if os.name != "nt":  # where only sockets are asked not to block
            os.set_blocking(self._in, False)
        usual = (signal.SIG_DFL, signal.default_int_handler)
        self._before = {
            number: signal.signal(number, _noted) for number in REQUESTS if signal.getsignal(number) in usual
        }
        self._woken = signal.set_wakeup_fd(self._in, warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._hear, name="requests to end", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self._restore()
            os.close(self._in)
            os.close(self._out)
            raise

    def close(self) -> None:
        """Leave everything as it was."""
        self._closed.set()
        self._restore()
        os.close(self._in)
        self._thread.join()  # a request that has just come is noted now, or never

    def _restore(self) -> None:
        signal.set_wakeup_fd(self._woken)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def answer_by(self, answer: Callable[[int], None] | None) -> None:
        with self._lock:
            self._answer = answer
            if answer is not None and self.number:
                answer(self.number)

    def _hear(self) -> None:
        first = 0.0
        while data := os.read(self._out, 1):
            number = data[0]
            if number not in self._before:
                continue  # other signals are noted here too
            if not self.number:
                first = time.monotonic()
                self._note(number)
            elif time.monotonic() - first > (_AT_ONCE if self._answer is None else PATIENCE):
                end(128 + self.number)
        os.close(self._out)

    def _note(self, number: int) -> None:
        with self._lock:
            self.number = number
            if self._answer is not None:
                self._answer(number)
                return
            ENDING[0] = 1
        threading.Thread(target=self._wait, name="patience", daemon=True).start()

    def _wait(self) -> None:
        if not self._closed.wait(PATIENCE):
            end(128 + self.number)


def _noted(number: int, frame: FrameType | None) -> None:
    """The handler of Python, in the main thread. The pipe says all."""
    if _prompting and _ear is not None:
        _ear.seen = number
        raise Cancelled

"""Requests to end from outside: Ctrl-C, ``kill``, a terminal that is closed.

A request sets a flag and raises no exception, which could come between any two lines of Python: files would
stay half written, and in callbacks of libraries it would be lost. Work that reports its progress ends at its
next `Progress.step`. A process that has not ended `PATIENCE` seconds later, or gets a second request, exits
at once, after its temporary files were removed (`leave_no`).
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
#: The signals of this system that request to end.
REQUESTS = tuple(getattr(signal, name) for name in _NAMES if hasattr(signal, name))

#: Files that are complete, in the order in which they were written.
complete: dict[Path, None] = {}
_remains: dict[object, Callable[[], None]] = {}
#: Held while something temporary is made, until `leave_no` knows it; and by `end`, for good.
making = threading.RLock()
_listener: _Listener | None = None
_prompting = False


def listen() -> None:
    """Take requests to end from here on. To be called in the main thread; those that are ignored (``nohup``,
    a job in the background) stay so."""
    global _listener
    if _listener is None:
        _listener = _Listener()


@contextmanager
def listening() -> Iterator[None]:
    """Take requests to end during this block, unless that is so already; in the main thread only."""
    global _listener
    if _listener is not None or threading.current_thread() is not threading.main_thread():
        yield
        return
    with suppress(RuntimeError):  # no thread can be started: requests end the process by default
        listen()
    try:
        yield
    finally:
        if _listener is not None:
            _listener.close()
        _listener = None
        ENDING[0] = 0


def request() -> int:
    """The number of the first request; 0 if there was none."""
    return 0 if _listener is None else _listener.number or _listener.seen


def code() -> int:
    """The exit code of a process that was asked to end, as shells give it for the signal."""
    return 128 + (request() or int(signal.SIGINT))


def check() -> None:
    """Raises `Cancelled` if a request has come."""
    if ENDING[0]:
        raise Cancelled


@contextmanager
def prompting() -> Iterator[None]:
    """During a prompt in a terminal, a request raises `Cancelled` at once, as no work checks the flag."""
    global _prompting
    try:
        _prompting = True
        check()
        yield
    finally:
        _prompting = False


@contextmanager
def answered_by(answer: Callable[[int], None]) -> Iterator[None]:
    """During this block a request, also an earlier one, calls ``answer(number)`` in another thread, and work
    goes on."""
    listener = _listener
    assert listener is not None, "nobody listens"
    listener.answer_by(answer)
    try:
        yield
    finally:
        listener.answer_by(None)


def leave_no(key: object, remove: Callable[[], None]) -> None:
    """Call `remove` if the process exits at once, from any thread; see `making`, `left`."""
    _remains[key] = remove


def left(key: object) -> None:
    """Forget the `remove` of this `key`: it was removed, or is to stay."""
    _remains.pop(key, None)


def end(status: int) -> None:
    """Exit at once, after the functions of `leave_no`, the last first."""
    # The thread that holds it is done soon, but may be stopped in a debugger.
    making.acquire(timeout=1.0)
    for remove in reversed(list(_remains.values())):
        with suppress(Exception):  # the others are to be removed all the same
            remove()
    os._exit(status)


class _Listener:
    """Receives signals in a thread. Python calls its handlers only when the main thread returns from a kernel
    or from a program that it waits for; the numbers of signals come at once, through a pipe."""

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
        self._former = {
            number: signal.signal(number, _handle) for number in REQUESTS if signal.getsignal(number) in usual
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
        """Restore handlers and end the thread."""
        self._closed.set()
        self._restore()
        os.close(self._in)
        self._thread.join()  # a request that has just come is noted now, or never

    def _restore(self) -> None:
        signal.set_wakeup_fd(self._woken)
        for number, handler in self._former.items():
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
            if number not in self._former:
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


def _handle(number: int, frame: FrameType | None) -> None:
    """The handler in the main thread: only for prompts, as the pipe serves the rest."""
    if _prompting and _listener is not None:
        _listener.seen = number
        raise Cancelled

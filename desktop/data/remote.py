"""Traces on other machines: the same program runs there over the user's own ssh and serves requests.

ssh is a child process, so keys, agents, jumps and ``~/.ssh/config`` apply, and nothing listens on a port. A
lost connection is made again, and its requests are repeated. Nothing received is trusted (sizes are bounded,
control characters are removed from texts, the store is checked like any other).

``PHASEWRIGHT_SSH`` is called instead of ``ssh``; `COMMAND` is what it runs there.
"""

from __future__ import annotations

import errno
import hashlib
import math
import os
import re
import shlex
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, RLock, Thread

import numpy as np

from desktop.core.arrays import Ints
from desktop.core.plain import JSON
from desktop.data.atomic import PartFile, naming, place_of
from desktop.data.remote_frames import MAGIC, NoFrame, frame, hello, receive
from desktop.data.store import LARGEST, Blocks, TraceStore, open_store, remote_folder
from desktop.errors import DesktopError, StoreError, TraceFormatError
from desktop.printing import printable
from desktop.progress import ENDING, Cancelled, Progress, at_work
from desktop.remote import RemotePath, how, listeners

#: Run there by the user's shell; a login shell has a longer search path.
COMMAND = "exec \"$SHELL\" -lc 'exec phasewright serve'"
#: Seconds until both sides have greeted; without an answer to a request, until the other side is asked
#: whether it is there, and until the connection counts as lost.
GREETING, QUIET, SILENCE = 60.0, 4.0, 15.0
#: Seconds until a lost connection is tried again, doubled each time; at most; and until trying is given up if
#: nobody can cancel it.
AGAIN, MOST_AGAIN, GIVE_UP = 0.5, 10.0, 120.0
#: Seconds in which ssh may end by itself, and in which it must after it was told to.
LEAVE, OBEY = 0.5, 2.0
#: Tries to start a program that is still being written, 50 ms apart.
_BUSY = 20
#: Seconds after which the user is told that a host does not answer.
TELL = 0.3
#: Most frames with places in a store, of 16,000 each.
_PLACES = 1 << 8
#: Most bytes that a login shell may print before the other side starts.
_CHATTER = 1 << 16
#: Most frames waiting to be processed.
_AHEAD = 256
_STATE = re.compile(r"[0-9a-f]{16}")


class LineLost(Exception):
    """The other side is gone, for the given reason."""


class Unreachable(StoreError):
    """The program on a host cannot be reached now."""


class _Ssh(subprocess.Popen[bytes]):
    """ssh as a child process. Each of its pipes belongs to one thread, which closes it: no other thread waits
    for a pipe that is full, or held by a grandchild. `read` is called to take its output."""

    def __init__(self, words: list[str], read: Callable[[_Ssh], None]) -> None:
        super().__init__(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.last_errors: deque[str] = deque(maxlen=5)  # latest lines on standard error
        self._out: SimpleQueue[bytes] = SimpleQueue()
        self.over = False  # no more output will come
        self._ending = Lock()
        self._reaping: Thread | None = None
        self._words = Thread(target=self._listen, name="words of ssh", daemon=True)
        for thread in (
            self._words,
            Thread(target=self._feed, name="to ssh", daemon=True),
            Thread(target=self._tell, args=(read,), name="from ssh", daemon=True),
        ):
            thread.start()

    def send(self, data: bytes) -> None:
        """Queue data for writing; if it cannot be written, answers are missing."""
        self._out.put(data)

    def end(self, patience: float = 0.0) -> None:
        """End it, unless it ends by itself within `patience` seconds. Returns at once."""
        with self._ending:
            if self._reaping is None:
                self._out.put(b"")
                if not patience:
                    self.terminate()
                self._reaping = Thread(target=self._reap, args=(patience,), name="end of ssh", daemon=True)
                self._reaping.start()

    def left(self) -> int | None:
        """Its exit code, soon after `end`; by then its output is complete."""
        assert self._reaping is not None
        self._reaping.join(LEAVE + 2 * OBEY)
        self._words.join(LEAVE)  # a ControlMaster holds standard error as long as it lasts
        return self.returncode

    def _reap(self, patience: float) -> None:
        for seconds, then in ((patience, self.terminate), (OBEY, self.kill), (OBEY, None)):
            with suppress(subprocess.TimeoutExpired):
                self.wait(seconds)
                return
            if then is not None:
                then()

    def _feed(self) -> None:
        assert self.stdin is not None
        with suppress(OSError), self.stdin:
            while data := self._out.get():
                self.stdin.write(data)
                self.stdin.flush()
        self.end(LEAVE)

    def _tell(self, read: Callable[[_Ssh], None]) -> None:
        assert self.stdout is not None
        with suppress(OSError), self.stdout:
            read(self)
        self.end(LEAVE)

    def _listen(self) -> None:
        assert self.stderr is not None
        with suppress(OSError), self.stderr:
            while line := self.stderr.readline(1000):
                if line.strip():
                    self.last_errors.append(line.decode("utf-8", "replace").strip())


class Line:
    """One ssh to the program on one host, shared by everything that is open there."""

    _all: dict[str, Line] = {}
    _making = RLock()

    def __init__(self, destination: str) -> None:
        self.destination = destination
        self.host = destination.rpartition("@")[2]
        self._users = 0
        self._closed = False
        self._process: _Ssh | None = None
        self._connecting, self._losing = RLock(), Lock()
        self._numbers = count()
        self._waiting: dict[int, SimpleQueue[tuple[JSON, bytes] | None]] = {}
        self._heard = 0.0
        self._slow: dict[int, str] = {}  # messages about threads that wait
        self.connections = 0  # number of connections made so far

    @classmethod
    def to(cls, destination: str) -> Line:
        """The connection to a host, for one more user."""
        with cls._making:
            line = cls._all.get(destination)
            if line is None:
                line = cls._all[destination] = cls(destination)
            line._users += 1
            return line

    def release(self) -> None:
        with self._making:
            self._users -= 1
            if self._users:
                return
            self._all.pop(self.destination, None)
        self._closed = True
        self._end()

    # ---- requests

    def ask(
        self,
        request: JSON,
        take: Callable[[JSON, bytes], None],
        progress: Progress | None = None,
        *,
        before: int | None = None,
    ) -> JSON:
        """The last frame of the answer; `take` gets those before it. `before`: value of `connections` for
        which the request is valid.

        Raises
        ------
        LineLost : the connection was lost, or made again since `before`.
        DesktopError : the other side reports an error, or cannot be reached at all.
        Cancelled : by `progress`, or because the process or the line is to end.
        """
        with self.held(self._connecting, progress):
            if before is not None and (self._process is None or before != self.connections):
                raise LineLost("the line was lost")
            if self._process is None:
                self._connect(progress)
            number = next(self._numbers)
            queue = self._waiting[number] = SimpleQueue()
            process = self._process  # of this connection: another may be made as soon as the lock is left
        try:
            if process is None:
                raise LineLost("the line was lost")
            process.send(frame({"id": number, **request}))
            while True:
                about, body = self._next(queue, number, progress)
                if "error" in about:
                    raise self._error(about)
                if about.get("end") is True:
                    return about
                if "progress" in about:
                    _show(about["progress"], progress)
                else:
                    take(about, body)
        except Cancelled:
            with suppress(LineLost):
                self._write({"cancel": number})
            raise
        finally:
            self._waiting.pop(number, None)

    def _next(
        self, queue: SimpleQueue[tuple[JSON, bytes] | None], number: int, progress: Progress | None
    ) -> tuple[JSON, bytes]:
        since = time.monotonic()
        self._heard = max(self._heard, since - QUIET)
        last_ask = since
        try:
            while True:
                self._check(progress)
                with suppress(Empty):
                    answer = queue.get(timeout=0.1)
                    if answer is None:
                        raise LineLost("the line was lost")
                    return answer
                now = time.monotonic()
                if now - since > TELL:
                    self._say(number, f"Waiting for {self.host}")
                if now - max(self._heard, last_ask) > QUIET:
                    last_ask = now
                    self._write({"ping": True})
                if now - max(self._heard, since) > SILENCE:
                    self._end()
        finally:
            self._say(number, "")

    def _check(self, progress: Progress | None) -> None:
        task = progress or at_work()
        if self._closed or ENDING[0] or (task is not None and task.cancelled):
            raise Cancelled

    @contextmanager
    def held(self, lock: RLock, progress: Progress | None = None) -> Iterator[None]:
        """Hold a lock that others hold while the connection is lost; waiting for it can be cancelled."""
        while not lock.acquire(timeout=0.1):
            self._check(progress)
        try:
            yield
        finally:
            lock.release()

    def _write(self, about: JSON) -> None:
        process = self._process
        if process is None:
            raise LineLost("the line was lost")
        process.send(frame(about))

    def _error(self, about: JSON) -> Exception:
        texts = {key: printable(str(about.get(key) or ""), 2000) for key in ("error", "where", "hint")}
        if texts["error"] == "cancelled":
            return Cancelled()
        choices = about.get("choices")
        names = tuple(printable(str(name), 500) for name in choices) if isinstance(choices, list) else ()
        return TraceFormatError(texts["error"], where=texts["where"], hint=texts["hint"], choices=names)

    # ---- the connection

    def _connect(self, progress: Progress | None) -> None:
        """Start ssh, and greet."""
        words = shlex.split(os.environ.get("PHASEWRIGHT_SSH", "")) or ["ssh", "-T"]
        command = os.environ.get("PHASEWRIGHT_REMOTE_COMMAND", "") or how.command or COMMAND
        greeted: SimpleQueue[JSON | None] = SimpleQueue()
        process = self._start([*words, f"ssh://{self.destination}", command], greeted)
        try:
            process.send(frame(hello()))
            theirs = self._greeting(greeted, progress)
        except BaseException:
            process.end()
            raise
        if theirs is None:
            process.end(LEAVE)
            raise self._unreachable(process.left(), process.last_errors)
        if theirs != hello():
            process.end()
            raise self._other_version(theirs)
        self._heard = time.monotonic()
        self._process = process
        self.connections += 1
        if process.over:  # since the greeting
            self._lost(process)

    def _start(self, words: list[str], greeted: SimpleQueue[JSON | None]) -> _Ssh:
        for left in reversed(range(_BUSY)):
            try:
                return _Ssh(words, lambda process: self._read(process, greeted))
            except OSError as error:
                if error.errno != errno.ETXTBSY or not left:
                    break
                time.sleep(0.05)
        raise StoreError(
            f"{words[0]} cannot be started", file=f"ssh://{self.destination}", hint="install OpenSSH"
        )

    def _greeting(self, greeted: SimpleQueue[JSON | None], progress: Progress | None) -> JSON | None:
        since = time.monotonic()
        try:
            while time.monotonic() - since < GREETING:
                self._check(progress)
                with suppress(Empty):
                    theirs: JSON | None = greeted.get(timeout=0.1)
                    return theirs
                if time.monotonic() - since > TELL:
                    self._say(-1, f"Connecting to {self.host}")
            return None
        finally:
            self._say(-1, "")

    def _unreachable(self, code: int | None, last_words: deque[str]) -> Unreachable:
        words = printable(last_words[-1] if last_words else "it does not answer", 300)
        if code == 127 or "not found" in words:
            hint = "install the same Phasewright there, or say what to run (Program there, --remote-command)"
        else:
            hint = f"try 'ssh {self.destination}' in a terminal"
        return Unreachable(
            f"Phasewright there cannot be reached ({words})", file=f"ssh://{self.destination}", hint=hint
        )

    def _other_version(self, theirs: JSON) -> StoreError:
        return StoreError(
            f"has {_version(theirs)}, here is {_version(hello())}",
            file=f"ssh://{self.destination}",
            hint="install the same version on both",
        )

    def _read(self, process: _Ssh, greeted: SimpleQueue[JSON | None]) -> None:
        """Process everything that arrives, until the output ends."""
        stream = process.stdout
        assert stream is not None
        try:
            seen = b""
            while not seen.endswith(MAGIC):
                byte = stream.read(1)
                if not byte or len(seen) > _CHATTER:
                    raise NoFrame
                seen += byte
            theirs, _ = receive(stream.read)
            greeted.put(theirs)
            while True:
                about, body = receive(stream.read)
                self._heard = time.monotonic()
                number = about.get("id")
                queue = self._waiting.get(number) if isinstance(number, int) else None
                while queue is not None and queue.qsize() > _AHEAD and number in self._waiting:
                    time.sleep(0.01)  # nobody sends more than can be processed
                if queue is not None:
                    queue.put((about, body))
        except (NoFrame, OSError, ValueError):
            process.over = True
            greeted.put(None)
            self._lost(process)

    def _lost(self, process: _Ssh) -> None:
        """Nothing more comes from there: notify all that wait for it."""
        with self._losing:
            if self._process is process:
                self._process = None
                for queue in [*self._waiting.values()]:
                    queue.put(None)

    def _end(self) -> None:
        process = self._process
        if process is not None:
            process.end()
            self._lost(process)  # even if another process still holds its output

    # ---- status messages

    def _say(self, number: int, words: str) -> None:
        if words == self._slow.get(number, ""):
            return
        before = self.words
        if words:
            self._slow[number] = words
        else:
            self._slow.pop(number, None)
        if self.words != before:
            for listener in [*listeners]:
                listener(self.words)

    @property
    def words(self) -> str:
        """The status for the user: the latest message of those that wait."""
        return next(reversed([*self._slow.values()]), "")

    @contextmanager
    def lasting(self, progress: Progress | None = None) -> Iterator[Callable[[LineLost], None]]:
        """The function to call between two tries: it waits longer each time, and reports that."""
        tries, start, number = 0, 0.0, -2 - next(self._numbers)

        def again(lost: LineLost) -> None:
            nonlocal tries, start
            now = time.monotonic()
            start = start or now
            if not how.patient and now - start > GIVE_UP:
                raise StoreError(str(lost), file=f"ssh://{self.destination}", hint="open it again") from None
            until = now + min(MOST_AGAIN, AGAIN * 2**tries)
            tries += 1
            while (left := until - time.monotonic()) > 0:
                self._check(progress)
                self._say(number, f"The line to {self.host} is lost, trying again in {math.ceil(left)} s")
                time.sleep(min(left, 0.1))
            self._say(number, f"Connecting to {self.host} again")

        try:
            yield again
        finally:
            self._say(number, "")


class _Remote:
    """A store on the other side, opened there again when the connection was lost."""

    def __init__(self, path: RemotePath, options: JSON, progress: Progress) -> None:
        self.path = path
        self._options = options
        self._line = Line.to(path.destination)
        self._opening = RLock()
        try:
            self.first: list[tuple[int, int]] = []
            self.reply = self._open(progress)
            self._options = options | {"force": False}
        except BaseException:
            self._line.release()
            raise

    @property
    def host(self) -> str:
        return self._line.host

    def close(self) -> None:
        self._line.release()

    def _open(self, progress: Progress | None) -> JSON:
        places: list[Ints] = []

        def take(_: JSON, body: bytes) -> None:
            if len(places) == _PLACES:
                raise StoreError("the other side answers with no store", file=self.path)
            places.append(np.frombuffer(body[: len(body) // 16 * 16], "<i8").reshape(-1, 2))

        request = {"open": self.path.remote_path, "options": self._options}
        with self._line.lasting(progress) as again:
            while True:
                places.clear()
                try:
                    answer = self._line.ask(request, take, progress)
                    break
                except LineLost as error:
                    again(error)
                except Unreachable as error:
                    if not self._line.connections:
                        raise
                    again(LineLost(str(error)))  # it was reached before
                except DesktopError as error:
                    error.file = error.file or str(self.path)
                    raise
        size, state = answer.get("size"), answer.get("state")
        good = type(size) is int and 0 < size <= LARGEST and type(answer.get("store")) is int
        if not (good and isinstance(state, str) and _STATE.fullmatch(state)):
            raise StoreError("the other side answers with no store", file=self.path)
        self.first = [(int(at), int(n)) for part in places for at, n in part if 0 <= at <= at + n <= size]
        self._at = self._line.connections, answer["store"]  # the connection to which the number belongs
        return answer

    def fetch(self, ranges: Sequence[tuple[int, int]], take: Callable[[int, bytes], None]) -> None:
        """Fetch bytes of the store, for `Blocks`."""

        def taken(about: JSON, body: bytes) -> None:
            at = about.get("at")
            if isinstance(at, int) and any(a <= at and at + len(body) <= a + n for a, n in ranges):
                take(at, body)

        self._ask({"read": ranges}, taken)

    def ask(self, request: JSON, most: int) -> bytes:
        """The result of the other side's computation on the store, for `Blocks`."""
        parts: list[bytes] = []

        def taken(about: JSON, body: bytes) -> None:
            if about.get("at") == 0:  # also when it is requested again
                parts.clear()
            parts.append(body)
            if sum(map(len, parts)) > most:
                raise StoreError("the other side answers too much", file=self.path)

        self._ask(request, taken)
        return b"".join(parts)

    def _ask(self, request: JSON, receive: Callable[[JSON, bytes], None]) -> None:
        with self._line.lasting() as again:
            while True:
                line_number, store = self._at
                try:
                    self._line.ask({**request, "store": store}, receive, at_work(), before=line_number)
                    return
                except LineLost as error:
                    again(error)
                    with self._line.held(self._opening):
                        if self._at[0] == line_number:
                            self._reopen()

    def _reopen(self) -> None:
        state = self.reply["state"]
        self.reply = self._open(None)
        if self.reply["state"] != state:
            raise StoreError(
                f"has changed on {self._line.host} since it was opened", file=self.path, hint="open it again"
            )


def open_remote(path: RemotePath, progress: Progress, options: JSON) -> TraceStore:
    """The store of a trace on another machine, imported there if needed. `options`: of `open_trace`.

    Raises
    ------
    DesktopError : the host cannot be reached, has another version, or cannot open the trace.
    """
    if not path.exists():
        raise StoreError(
            "lies on a host that you have not named yet", file=path, hint="use File > Open remote, or name it"
        )
    remote = _Remote(path, options, progress)
    try:
        family = hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:12]
        stem = re.sub(r"[^\w.]", "_", path.stem)[:60]
        place = remote_folder() / f"{stem}-{family}-{remote.reply['state']}.h5"
        with Blocks.opening:
            blocks = Blocks.in_use(place)
            if blocks is not None:
                remote.close()
            else:
                blocks = Blocks(place, remote.reply["size"], remote.fetch, remote.close, remote.ask)
    except BaseException:
        remote.close()
        raise
    with closing(blocks):
        try:
            blocks.bring(remote.first, progress, f"from {remote.host}")
            return open_store(place)
        except StoreError as error:
            error.file = str(path)  # the local file means nothing to the user
            raise


def copy_remote(path: RemotePath, progress: Progress, options: JSON, output: Path | None) -> Path:
    """Copy the whole store of a trace on another machine to a local file.

    Raises
    ------
    StoreError : the file exists and must not be replaced; or it cannot be written.
    DesktopError, Cancelled : as for `open_remote`.
    """
    if output is None:
        raise ValueError(f"{path} is imported there when it is opened; choose with -o where a copy goes")
    target = place_of(output.absolute())
    if target.exists() and not options.get("force"):
        raise StoreError("exists", file=target, hint="choose another name, or force to replace it")
    with open_remote(path, progress, options) as store:
        assert store.elsewhere is not None
        store.elsewhere.bring([(0, store.elsewhere.size)], progress, f"from {path.destination}")
        with naming(target), PartFile(target) as part:
            store.elsewhere.copy(part.part)
    return target


def _version(hello_there: JSON) -> str:
    version, store, protocol = (
        printable(str(hello_there.get(key)), 40) for key in ("version", "store", "protocol")
    )
    return f"Phasewright {version} (store {store}, protocol {protocol})"


def _show(plain: object, progress: Progress | None) -> None:
    plain = plain if isinstance(plain, list) else []
    numbers = [float(v) for v in plain[:2] if isinstance(v, int | float) and abs(v) < 1e300]
    if progress is not None and len(numbers) == 2:
        progress.step(numbers[0], numbers[1], printable(str(plain[-1]), 100))

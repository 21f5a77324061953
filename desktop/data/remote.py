"""Traces on other machines: the same program runs there over the user's own ssh and serves what is asked for.

ssh is a child process, so that keys, agents, jumps and ``~/.ssh/config`` hold, and nothing listens on a
port. A line that is lost is made again, and what was under way is asked for again. What comes is not believed
(sizes are bounded, words lose what a terminal obeys, the store is read as any stranger's is).

``PHASEWRIGHT_SSH`` is called in place of ``ssh``; `COMMAND` is what it runs there.
"""

from __future__ import annotations

import errno
import hashlib
import math
import os
import re
import shlex
import shutil
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

#: Run there by the user's shell; a login shell knows more places of programs.
COMMAND = "exec \"$SHELL\" -lc 'exec phasewright serve'"
#: Seconds until both sides have greeted; without a word while something is asked for, until the other side
#: is asked whether it is there, and until the line counts as lost.
GREETING, QUIET, SILENCE = 60.0, 4.0, 15.0
#: Seconds until a line that is lost is tried again, the next times twice as long; at most; and until that is
#: given up where nobody can cancel it.
AGAIN, MOST_AGAIN, GIVE_UP = 0.5, 10.0, 120.0
#: Seconds in which ssh may end by itself, and in which it has to once it was told to.
LEAVE, OBEY = 0.5, 2.0
#: Tries to start a program that somebody still writes, 50 ms apart.
_BUSY = 20
#: Seconds after which the user is told that a host is waited for.
TELL = 0.3
#: Frames with places in a store, of 16,000 each.
_PLACES = 1 << 8
#: What a login shell may say before the other side.
_CHATTER = 1 << 16
#: Frames that may wait to be taken.
_AHEAD = 256
_STATE = re.compile(r"[0-9a-f]{16}")


class LineLost(Exception):
    """The other side is not there any more, for the reason said."""


class Unreachable(StoreError):
    """The program on a host cannot be reached now."""


class _Ssh(subprocess.Popen[bytes]):
    """ssh as a child. Each of its pipes belongs to one thread, which closes it: nobody else waits for one
    that is full, or that a grandchild holds. `read` is called to take its output."""

    def __init__(self, words: list[str], read: Callable[[_Ssh], None]) -> None:
        super().__init__(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.last_errors: deque[str] = deque(maxlen=5)  # on standard error, last
        self._out: SimpleQueue[bytes] = SimpleQueue()
        self.over = False  # nothing more comes from it
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
        """Have it written; that it cannot be is seen by what comes: nothing."""
        self._out.put(data)

    def end(self, patience: float = 0.0) -> None:
        """End it, if not in `patience` seconds it does so by itself, whatever it does about that. At once."""
        with self._ending:
            if self._reaping is None:
                self._out.put(b"")
                if not patience:
                    self.terminate()
                self._reaping = Thread(target=self._reap, args=(patience,), name="end of ssh", daemon=True)
                self._reaping.start()

    def left(self) -> int | None:
        """Its exit code, soon after `end`; by then it has said its last."""
        assert self._reaping is not None
        self._reaping.join(LEAVE + 2 * OBEY)
        self._words.join(LEAVE)  # a ControlMaster holds standard error for as long as it lasts
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
    """One ssh to the program on one host, for all that is open there."""

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
        self._slow: dict[int, str] = {}  # what is to be said of threads that wait
        self.made = 0  # how often the line was made

    @classmethod
    def to(cls, destination: str) -> Line:
        """The line to a host, for one more user."""
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
        """The last frame of the answer; `take` gets those before it. `before`: `made` when that is known by
        which the other side is to understand the request.

        Raises
        ------
        LineLost : the line was lost, or made anew since `before`.
        DesktopError : the other side says so, or cannot be reached at all.
        Cancelled : by `progress`, or because the process or the line is to end.
        """
        with self.held(self._connecting, progress):
            if before is not None and (self._process is None or before != self.made):
                raise LineLost("the line was lost")
            if self._process is None:
                self._connect(progress)
            number = next(self._numbers)
            queue = self._waiting[number] = SimpleQueue()
        try:
            self._write({"id": number, **request})
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
        asked = since
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
                if now - max(self._heard, asked) > QUIET:
                    asked = now
                    self._write({"ping": True})
                if now - max(self._heard, since) > SILENCE:
                    self._end()
        finally:
            self._say(number, "")

    def _check(self, progress: Progress | None) -> None:
        asked = progress or at_work()
        if self._closed or ENDING[0] or (asked is not None and asked.cancelled):
            raise Cancelled

    @contextmanager
    def held(self, lock: RLock, progress: Progress | None = None) -> Iterator[None]:
        """Hold a lock that others hold for as long as the line is lost: who waits for it can be cancelled."""
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

    # ---- the line itself

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
            raise self._other(theirs)
        self._heard = time.monotonic()
        self._process = process
        self.made += 1
        if process.over:  # since it greeted
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

    def _other(self, theirs: JSON) -> StoreError:
        return StoreError(
            f"has {_version(theirs)}, here is {_version(hello())}",
            file=f"ssh://{self.destination}",
            hint="install the same version on both",
        )

    def _read(self, process: _Ssh, greeted: SimpleQueue[JSON | None]) -> None:
        """All that comes, until nothing does."""
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
                    time.sleep(0.01)  # nobody sends more than can be taken
                if queue is not None:
                    queue.put((about, body))
        except (NoFrame, OSError, ValueError):
            process.over = True
            greeted.put(None)
            self._lost(process)

    def _lost(self, process: _Ssh) -> None:
        """Nothing more comes from there: who waits for it is told."""
        with self._losing:
            if self._process is process:
                self._process = None
                for queue in [*self._waiting.values()]:
                    queue.put(None)

    def _end(self) -> None:
        process = self._process
        if process is not None:
            process.end()
            self._lost(process)  # whoever may still hold its output

    # ---- what is said of it

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
        """What the user is told of it: what was said last of those that wait."""
        return next(reversed([*self._slow.values()]), "")

    @contextmanager
    def lasting(self, progress: Progress | None = None) -> Iterator[Callable[[LineLost], None]]:
        """What to call between two tries: it waits longer each time, and says so."""
        tries, begun, number = 0, 0.0, -2 - next(self._numbers)

        def again(lost: LineLost) -> None:
            nonlocal tries, begun
            now = time.monotonic()
            begun = begun or now
            if not how.patient and now - begun > GIVE_UP:
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


class _There:
    """A store on the other side of a line, opened there again when the line was lost."""

    def __init__(self, path: RemotePath, options: JSON, progress: Progress) -> None:
        self.path = path
        self._options = options
        self._line = Line.to(path.destination)
        self._opening = RLock()
        try:
            self.first: list[tuple[int, int]] = []
            self.opened = self._open(progress)
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
                    opened = self._line.ask(request, take, progress)
                    break
                except LineLost as error:
                    again(error)
                except Unreachable as error:
                    if not self._line.made:
                        raise
                    again(LineLost(str(error)))  # it was reached before
                except DesktopError as error:
                    error.file = error.file or str(self.path)
                    raise
        size, state = opened.get("size"), opened.get("state")
        good = type(size) is int and 0 < size <= LARGEST and type(opened.get("store")) is int
        if not (good and isinstance(state, str) and _STATE.fullmatch(state)):
            raise StoreError("the other side answers with no store", file=self.path)
        self.first = [(int(at), int(n)) for part in places for at, n in part if 0 <= at <= at + n <= size]
        self._at = self._line.made, opened["store"]  # what the number belongs to
        return opened

    def fetch(self, ranges: Sequence[tuple[int, int]], take: Callable[[int, bytes], None]) -> None:
        """Bytes of the store, for `Blocks`."""

        def taken(about: JSON, body: bytes) -> None:
            at = about.get("at")
            if isinstance(at, int) and any(a <= at and at + len(body) <= a + n for a, n in ranges):
                take(at, body)

        self._ask({"read": ranges}, taken)

    def ask(self, request: JSON, most: int) -> bytes:
        """What the other side finds in the store, for `Blocks`."""
        parts: list[bytes] = []

        def taken(about: JSON, body: bytes) -> None:
            if about.get("at") == 0:  # also when it is asked anew
                parts.clear()
            parts.append(body)
            if sum(map(len, parts)) > most:
                raise StoreError("the other side answers too much", file=self.path)

        self._ask(request, taken)
        return b"".join(parts)

    def _ask(self, request: JSON, taken: Callable[[JSON, bytes], None]) -> None:
        with self._line.lasting() as again:
            while True:
                line_number, store = self._at
                try:
                    self._line.ask({**request, "store": store}, taken, at_work(), before=line_number)
                    return
                except LineLost as error:
                    again(error)
                    with self._line.held(self._opening):
                        if self._at[0] == line_number:
                            self._reopen()

    def _reopen(self) -> None:
        state = self.opened["state"]
        self.opened = self._open(None)
        if self.opened["state"] != state:
            raise StoreError(
                f"has changed on {self._line.host} since it was opened", file=self.path, hint="open it again"
            )


def open_remote(path: RemotePath, progress: Progress, options: JSON) -> TraceStore:
    """The store of a trace on another machine, imported there where needed. `options`: of `open_trace`.

    Raises
    ------
    DesktopError : the host cannot be reached, has another version, or cannot open the trace.
    """
    if not path.exists():
        raise StoreError(
            "lies on a host that you have not named yet", file=path, hint="use File > Open remote, or name it"
        )
    there = _There(path, options, progress)
    try:
        family = hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:12]
        stem = re.sub(r"[^\w.]", "_", path.stem)[:60]
        place = remote_folder() / f"{stem}-{family}-{there.opened['state']}.h5"
        with Blocks.opening:
            blocks = Blocks.opened(place)
            if blocks is not None:
                there.close()
            else:
                blocks = Blocks(place, there.opened["size"], there.fetch, there.close, there.ask)
    except BaseException:
        there.close()
        raise
    with closing(blocks):
        try:
            blocks.bring(there.first, progress, f"from {there.host}")
            return open_store(place)
        except StoreError as error:
            error.file = str(path)  # the file here is nobody's business
            raise


def copy_remote(path: RemotePath, progress: Progress, options: JSON, output: Path | None) -> Path:
    """The whole store of a trace on another machine, as a file here.

    Raises
    ------
    StoreError : there is such a file, and it is not to be replaced; or it cannot be written.
    DesktopError, Cancelled : as of `open_remote`.
    """
    if output is None:
        raise ValueError(f"{path} is imported there when it is opened; say with -o where a copy of it goes")
    target = place_of(output.absolute())
    if target.exists() and not options.get("force"):
        raise StoreError("exists", file=target, hint="choose another name, or force to replace it")
    with open_remote(path, progress, options) as store:
        assert store.elsewhere is not None
        store.elsewhere.bring([(0, store.elsewhere.size)], progress, f"from {path.destination}")
        with naming(target), PartFile(target) as part:
            shutil.copyfile(store.path, part.part)
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

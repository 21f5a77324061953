"""The serving side: opens traces for a Phasewright on another machine, over standard input and output, and
sends the requested bytes of their stores. It ends with its input."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import BinaryIO

import numpy as np

import desktop
from desktop.core.plain import JSON
from desktop.data.coarse import coarse_for
from desktop.data.opening import open_trace
from desktop.data.remembered import answer_for, path_for
from desktop.data.remote_frames import MAGIC, PIECE, NoFrame, frame, hello, receive
from desktop.data.statistics import Statistics
from desktop.data.store import TraceStore
from desktop.data.whatif_there import Reruns
from desktop.errors import DesktopError, sentence
from desktop.progress import Cancelled, Progress

#: Options of `open_trace` that may be requested.
OPTIONS = ("format_id", "force", "time_unit", "workers", "scheduler", "member")
#: Requests whose answer needs all rows of a store.
_ANSWERS = ("coarse", "accounts", "path", "whatif")
#: Seconds between two progress messages of an import.
_EVERY = 0.1
#: Seconds in which requests must end when the other side is gone.
_PATIENCE = 5.0


class _LineProgress(Progress):
    """Progress that is sent to the other side."""

    def __init__(self, tell: Callable[[JSON], None]) -> None:
        super().__init__()
        self._tell, self._next = tell, 0.0

    def show(self, done: float, total: float, text: str) -> None:
        import time

        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _EVERY
            self._tell({"progress": [float(done), float(total), text[:200]]})


class Service:
    """Answers the requests of one connection."""

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source, self._sink = source, sink
        self._turn, self._adding = Lock(), Lock()
        self._stores: list[tuple[TraceStore, BinaryIO, Lock]] = []
        self._stats: list[tuple[Statistics, Lock, Reruns]] = []  # one each, used by one request at a time
        self._active: dict[int, Progress] = {}
        self._threads: list[Thread] = []

    def run(self) -> None:
        """Answer requests until there are no more."""
        self._sink.write(MAGIC)
        self._send(hello())
        with suppress(NoFrame, OSError):
            theirs, _ = receive(self._source.read)
            while theirs == hello():
                request, _ = receive(self._source.read)
                self._begin(request)
        for progress in [*self._active.values()]:
            progress.cancel()
        for thread in self._threads:
            thread.join(_PATIENCE)  # an import removes its unfinished files

    def _begin(self, request: JSON) -> None:
        number = request.get("id")
        if "ping" in request:
            self._send({"pong": True})
        elif "cancel" in request:
            progress = self._active.get(request["cancel"])
            if progress is not None:
                progress.cancel()
        elif isinstance(number, int):
            self._active[number] = progress = _LineProgress(lambda about: self._send({"id": number, **about}))
            thread = Thread(target=self._answer, args=(number, request, progress), daemon=True)
            self._threads = [one for one in self._threads if one.is_alive()] + [thread]
            thread.start()

    def _answer(self, number: int, request: JSON, progress: Progress) -> None:
        def tell(about: JSON, body: bytes = b"") -> None:
            self._send({"id": number, **about}, body)

        try:
            if "open" in request:
                tell({"end": True, **self._open(request, progress, tell)})
            elif "read" in request:
                self._read(request, progress, tell)
                tell({"end": True})
            elif not request.keys().isdisjoint(_ANSWERS):
                content = self._computed(request, progress)
                for at in range(0, len(content), PIECE):
                    tell({"at": at}, content[at : at + PIECE])
                tell({"end": True})
            else:
                tell({"error": "the other side does not know this request"})
        except Cancelled:
            tell({"error": "cancelled"})
        except Exception as error:  # whatever it is: the other side would wait for its answer without end
            text = error.what if isinstance(error, DesktopError) else sentence(error) or type(error).__name__
            more = {"hint": error.hint, "where": error.where} if isinstance(error, DesktopError) else {}
            tell({"error": text, **more, "choices": list(getattr(error, "choices", ()))[:1000]})
        finally:
            self._active.pop(number, None)

    def _open(self, request: JSON, progress: Progress, tell: Callable[..., None]) -> JSON:
        """Open a trace, imported if needed; returns the store's number, a name for its state, and its size.
        Before that, the places of the bytes that are needed first are sent."""
        options = {name: value for name, value in request.get("options", {}).items() if name in OPTIONS}
        while True:
            store = open_trace(Path(request["open"]).expanduser(), progress, **options)
            file = Path(store.path).open("rb")  # noqa: SIM115 - until the connection ends
            if store.reads(file.fileno()):
                break
            file.close()  # replaced in between: blocks of one would be taken for those of the other
            store.close()
        status = os.fstat(file.fileno())
        state = [desktop.__version__, str(store.path), status.st_size, status.st_mtime_ns, status.st_ino]
        name = hashlib.sha256(repr(state).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        ranges = store.skeleton()
        for k in range(0, len(ranges), PIECE // 16):
            tell({}, np.ascontiguousarray(ranges[k : k + PIECE // 16], "<i8").tobytes())
        statistics = Statistics(store)
        with self._adding:
            number = len(self._stores)
            self._stats.append((statistics, Lock(), Reruns(statistics)))
            self._stores.append((store, file, Lock()))
        return {"store": number, "state": name, "size": status.st_size}

    def _computed(self, request: JSON, progress: Progress) -> bytes:
        """The answer to a request that needs all rows of a store."""
        store, (statistics, turn, reruns) = self._stores[request["store"]][0], self._stats[request["store"]]
        if "coarse" in request:
            return coarse_for(store, progress)
        if "whatif" in request:
            return reruns.answer(request["whatif"], progress, turn)
        while not turn.acquire(timeout=0.1):
            progress.step(0, 0)
        try:
            if "path" in request:
                return path_for(store, statistics, request["path"], progress)
            return answer_for(store, statistics, request["accounts"], progress)
        finally:
            turn.release()

    def _read(self, request: JSON, progress: Progress, tell: Callable[..., None]) -> None:
        _, file, turn = self._stores[request["store"]]
        for at, size in request["read"]:
            for begin in range(at, at + size, PIECE):
                progress.step(0, 0)
                with turn:
                    file.seek(begin)
                    data = file.read(min(PIECE, at + size - begin))
                tell({"at": begin}, data)

    def _send(self, about: JSON, body: bytes = b"") -> None:
        framed = frame(about, body)
        with self._turn, suppress(OSError, ValueError):  # the other side is gone: the input ends too
            self._sink.write(framed)
            self._sink.flush()

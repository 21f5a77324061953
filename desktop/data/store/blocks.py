"""A store on another machine, as a sparse local file of the same size: only blocks that were asked for are
filled. What HDF5 needs to find its way is fetched at once, chunks of columns when they are read.

Blocks are fetched outside of HDF5's lock, so that threads that do not need them do not wait for the line.
Fetched blocks stay on disk, at most `BYTES` over all such files; the least recently used file goes first.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from threading import Condition, Event, Lock, RLock, Thread

import numpy as np

from desktop.core.arrays import Ints
from desktop.core.plain import JSON
from desktop.data.atomic import write_bytes
from desktop.errors import DesktopError, StoreError, explained
from desktop.progress import Cancelled, Progress, at_work, working

#: Most bytes kept on disk over all stores; bytes of a block, doubled while there are more than `BLOCKS`.
BYTES, BLOCK, BLOCKS = 1 << 32, 1 << 10, 1 << 24
#: Largest store on another machine, in bytes.
LARGEST = 1 << 44
#: Bytes of one request, and concurrent requests: the line is never idle between two, and another reader waits
#: no longer than these take.
AT_ONCE, REQUESTS = 1 << 18, 2

Ranges = Sequence[tuple[int, int]]
_MISSING, _COMING, _HERE = 0, 1, 2


class Blocks:
    """`place`: the local file; `size`: bytes of the store. ``fetch(ranges, take)`` calls ``take(at, bytes)``
    for everything in `ranges` (first byte, bytes), or raises `StoreError`."""

    _open: dict[Path, Blocks] = {}
    #: held from looking up whether a store is open until it is opened
    opening = RLock()

    def __init__(
        self,
        place: Path,
        size: int,
        fetch: Callable[[Ranges, Callable[[int, bytes], None]], None],
        close: Callable[[], None],
        ask: Callable[[JSON, int], bytes],
    ) -> None:
        self.place, self.size = place, size
        self._fetch, self._close = fetch, close
        #: what the other machine computes from the store, in at most so many bytes; raises `StoreError`
        self.ask = ask
        self._users = 1
        self._changed = Condition(Lock())
        self.block = BLOCK
        while size > self.block * BLOCKS:
            self.block *= 2
        self._state = np.zeros(-(-size // self.block), np.uint8)
        self._state_file = place.with_suffix(".blocks")
        with self._writing():
            place.parent.mkdir(parents=True, exist_ok=True)
            _make_room(place)
            place.touch(0o600)
            self._file = place.open("r+b", buffering=0)
            if os.fstat(self._file.fileno()).st_size == size:
                self._recall()
            else:
                self._state_file.unlink(missing_ok=True)  # of a file that is gone
            self._file.truncate(size)
        self._started = int(np.count_nonzero(self._state))
        with self.opening:
            self._open[place] = self

    @classmethod
    def in_use(cls, place: Path) -> Blocks | None:
        """The blocks of a store that is open, for one more user; None if it is not open."""
        with cls.opening:
            blocks = cls._open.get(place)
            if blocks is not None:
                blocks._users += 1
            return blocks

    @classmethod
    def of(cls, place: Path) -> Blocks | None:
        """The blocks of a store on another machine, for one more user; None for any other file.

        Raises
        ------
        StoreError : the store is on another machine and not open.
        """
        blocks = cls.in_use(place)
        if blocks is None and place.parent == remote_folder():
            raise StoreError(
                "holds parts of a trace on another machine", file=place, hint="open the trace there"
            )
        return blocks

    def close(self) -> None:
        """Remove one user; the last one closes the line, and the blocks that are here are recorded."""
        with self.opening:
            self._users -= 1
            if self._users:
                return
            self._open.pop(self.place, None)
        self._close()
        with self._changed, suppress(OSError):
            new = int(np.count_nonzero(self._state)) != self._started
            # Another process may have removed it, and made another one.
            if new and os.path.samestat(os.fstat(self._file.fileno()), self.place.stat()):
                os.fsync(self._file.fileno())
                write_bytes(self._state_file, np.packbits(self._state == _HERE).tobytes())
        self._file.close()

    @property
    def here(self) -> int:
        """Bytes that are here."""
        return self.block * int(np.count_nonzero(self._state == _HERE))

    def _recall(self) -> None:
        with suppress(OSError):
            bits = np.frombuffer(self._state_file.read_bytes(), np.uint8)
            if bits.size == -(-self._state.size // 8):
                self._state[:] = _HERE * np.unpackbits(bits)[: self._state.size]

    def read(self, at: int, size: int) -> bytes:
        """`size` bytes of the store from `at` on, fetched if they are not here.

        Raises
        ------
        OSError : the file has no such bytes.
        StoreError : they cannot be fetched.
        """
        if not 0 <= at <= at + size <= self.size:
            raise OSError("beyond the end of the file")
        self.bring([(at, size)])
        with self._changed:
            self._file.seek(at)
            return self._file.read(size)

    def copy(self, target: Path) -> None:
        """Write the whole store into a file, from the open file: another process may have removed that at its
        place, and begun another.

        Raises
        ------
        OSError : the file cannot be written.
        StoreError : bytes cannot be fetched.
        """
        with target.open("wb") as file:
            for at in range(0, self.size, AT_ONCE):
                file.write(self.read(at, min(AT_ONCE, self.size - at)))

    def bring(self, ranges: Ranges, progress: Progress | None = None, text: str = "") -> None:
        """Fetch these bytes if they are not here; what two threads ask for at once is fetched once.

        Raises
        ------
        StoreError : they cannot be fetched.
        """
        blocks = self._blocks_of(ranges)
        helpers = min(REQUESTS, -(-blocks.size * self.block // AT_ONCE)) - 1
        job, over = progress or at_work() or Progress(), Event()

        def help_out() -> None:
            with working(job), suppress(DesktopError, Cancelled):
                self._bring(blocks, over, job)

        threads = [Thread(target=help_out, name="bytes", daemon=True) for _ in range(helpers)]
        for thread in threads:
            thread.start()
        try:
            self._bring(blocks, over, job, progress, text)
        finally:
            over.set()
            for thread in threads:
                thread.join()

    def _bring(
        self, blocks: Ints, over: Event, job: Progress, progress: Progress | None = None, text: str = ""
    ) -> None:
        """Fetch these blocks, some may come by other threads, until `over` is set or `job` is cancelled."""
        whole = blocks.size
        while blocks.size and not over.is_set():
            if job.cancelled:
                raise Cancelled
            if progress is not None:
                progress.step(whole - blocks.size, whole, text)
            with self._changed:
                mine = blocks[self._state[blocks] == _MISSING][: AT_ONCE // self.block]
                if not mine.size:
                    self._changed.wait(0.2)
                    blocks = blocks[self._state[blocks] != _HERE]
                    continue
                self._state[mine] = _COMING
            try:
                self._fetch(self._ranges_of(mine), self._take)
            finally:
                with self._changed:
                    left = mine[self._state[mine] == _COMING]
                    self._state[left] = _MISSING
                    self._changed.notify_all()
            if left.size:
                raise StoreError("the other machine does not send what it was asked for", file=self.place)
            blocks = blocks[self._state[blocks] != _HERE]

    def _blocks_of(self, ranges: Ranges) -> Ints:
        """Numbers of the blocks that hold these bytes and are not here."""
        numbers = [
            np.arange(max(at, 0) // self.block, -(-min(at + size, self.size) // self.block))
            for at, size in ranges
        ]
        blocks = np.unique(np.concatenate(numbers)) if numbers else np.zeros(0, np.int64)
        return np.asarray(blocks[self._state[blocks] != _HERE])

    def _ranges_of(self, blocks: Ints) -> list[tuple[int, int]]:
        cuts = np.flatnonzero(np.diff(blocks) > 1) + 1
        runs = ((int(run[0]) * self.block, (int(run[-1]) + 1) * self.block) for run in np.split(blocks, cuts))
        return [(begin, min(end, self.size) - begin) for begin, end in runs]

    def _take(self, at: int, data: bytes) -> None:
        """Store bytes that arrived; blocks that they fill, or fill to the end of the file, are here now."""
        end = at + len(data)
        last = self._state.size if end == self.size else end // self.block
        with self._changed:
            with self._writing():
                self._file.seek(at)
                if self._file.write(data) < len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._state[-(-at // self.block) : last] = _HERE
            self._changed.notify_all()

    def has(self, ranges: Ranges) -> bool:
        """Whether all of these bytes are here."""
        return not self._blocks_of(ranges).size

    def missing(self) -> Ints:
        """Numbers of blocks that nobody has requested."""
        return np.flatnonzero(self._state == _MISSING)

    def _writing(self) -> AbstractContextManager[None]:
        hint = "make room in your cache"
        return explained(StoreError, "cannot be written", file=self.place, hint=hint)


def remote_folder() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("phasewright", appauthor=False) / "remote"


def _make_room(place: Path) -> None:
    """Remove the least recently used files, and former states of the same store."""
    family = place.name.rsplit("-", 1)[0]
    files = sorted(
        (status.st_mtime, getattr(status, "st_blocks", status.st_size // 512) * 512, path)
        for path in place.parent.glob("*.h5")
        for status in [path.stat()]
    )
    held = sum(size for _, size, _ in files)
    for _, size, path in files:
        if path == place or path in Blocks._open:
            continue
        if held > BYTES or path.name.rsplit("-", 1)[0] == family:
            for one in (path, path.with_suffix(".blocks")):
                with suppress(OSError):
                    one.unlink()
            held -= size

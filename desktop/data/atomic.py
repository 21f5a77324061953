"""Files that are there whole or not at all, whenever the process or the machine stops."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be removed by others anyway
    fcntl = None  # type: ignore[assignment]  # the branch that other systems do not take

SUFFIX = ".part"


class PartFile:
    """A new content of `target`, written beside it and renamed over it by `commit`.

    The part is locked while it is written, so that parts left by a killed process can be told from those
    in use: making a `PartFile` removes the former. Content is written through `part` by whatever library.

    Raises
    ------
    OSError : the folder cannot be written.
    """

    def __init__(self, target: Path) -> None:
        self.target = target
        remove_stale(target)
        while True:
            self.part = target.with_name(f"{target.name}.{secrets.token_hex(4)}{SUFFIX}")
            self._fd = os.open(self.part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            if _lock(self._fd) is not False and _same_file(self._fd, self.part):
                return
            # Somebody cleaning up took the file between its creation and its lock.
            os.close(self._fd)

    def commit(self) -> None:
        """Make the part the target; it must have been closed by whoever wrote it."""
        os.fsync(self._fd)
        self._close()
        os.replace(self.part, self.target)
        _fsync_folder(self.target.parent)

    def discard(self) -> None:
        """Remove the part; the target stays as it was. May follow a failed `commit`."""
        self._close()
        with suppress(OSError):
            self.part.unlink()

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def remove_stale(target: Path) -> None:
    """Remove parts of `target` that nobody writes any more."""
    for part in target.parent.glob(f"{_literal(target.name)}.*{SUFFIX}"):
        with suppress(OSError), part.open("r+b") as file:
            if fcntl is not None and _lock(file.fileno()):
                part.unlink()  # while locked, see PartFile
        if fcntl is None:
            with suppress(OSError):
                part.unlink()


def _lock(fd: int) -> bool | None:
    """Whether the file could be locked; None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _same_file(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False


def _fsync_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # folders cannot be opened there; the rename is journalled
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _literal(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)

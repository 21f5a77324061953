"""Writing files atomically: they are whole or unchanged, whenever the process or the machine stops."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from types import TracebackType
from typing import Self

from desktop import stopping
from desktop.errors import FileError

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be removed by others anyway
    fcntl = None  # type: ignore[assignment]  # the branch that other systems do not take

SUFFIX = ".part"
WORK_SUFFIX = ".work"


def place_of(target: Path) -> Path:
    """The path that is written for `target`: itself, or, if it is a link, the path it leads to.

    Raises
    ------
    FileError : something else than a regular file is there, which would be lost or block for ever.
    """
    place = Path(os.path.realpath(target)) if target.is_symlink() else target
    try:
        mode = place.lstat().st_mode
    except FileNotFoundError:
        return place
    for test, kind in _OTHERS:
        if test(mode):
            raise FileError(f"cannot be written, it is {kind}", file=target, hint="choose another name")
    return place


_OTHERS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a link that leads nowhere"),
    (lambda mode: not stat.S_ISREG(mode), "a device, a pipe or a socket"),
)


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Make system errors that name no file, such as a full disk, or one the user does not know, name
    `file`."""
    try:
        yield
    except OSError as error:
        _name(error, file)
        raise


def _name(error: OSError, file: Path) -> None:
    nameless = error.filename is None or str(error.filename).endswith((SUFFIX, WORK_SUFFIX))
    if error.errno is not None and nameless:
        error.filename, error.filename2 = str(file), None


class PartFile:
    """New content of `target`, written beside it and renamed over it by `commit`.

    A target that is a link stays one; the file it leads to is replaced (`place_of`). A ``with`` block commits
    at its end, or discards after an exception, which then names the target.

    The part is locked while it is written, which distinguishes it from parts left by killed processes:
    creating a `PartFile` removes those. Content may be written to `part` by any library.

    Raises
    ------
    OSError : the folder cannot be written, or the target is no regular file.
    """

    def __init__(self, target: Path) -> None:
        self.named, self.target = target, place_of(target)
        self._fd = -1
        remove_stale(self.target)
        with stopping.making:
            while not self._make():
                pass
            stopping.leave_no(self, self._remove)

    def _make(self) -> bool:
        """Create and lock the part; False if another process's cleaning removed it before it was locked."""
        self.part = self.target.with_name(f"{self.target.name}.{secrets.token_hex(4)}{SUFFIX}")
        with naming(self.named):
            self._fd = os.open(self.part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            if _lock(self._fd) is not False and _same_file(self._fd, self.part):
                return True
        except BaseException:
            self.discard()
            raise
        self._close()
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            try:
                self.commit()
                return
            except BaseException:
                self.discard()
                raise
        self.discard()
        if isinstance(error, OSError):
            _name(error, self.named)

    def commit(self) -> None:
        """Replace the target by the part, which must have been closed by its writer."""
        with naming(self.named):
            os.fsync(self._fd)
            if fcntl is None:  # an open file cannot be renamed; elsewhere it is locked until it is in place
                self._close()
            place_of(self.named)  # it may have changed meanwhile
            os.replace(self.part, self.target)
            self._close()
            stopping.left(self)
            stopping.complete[self.named] = None
            _fsync_folder(self.target.parent)

    def discard(self) -> None:
        """Remove the part; the target stays as it was. May follow a failed `commit`."""
        self._close()
        self._remove()
        stopping.left(self)

    def _remove(self) -> None:
        with suppress(OSError):
            self.part.unlink()

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def write_text(target: Path, text: str) -> None:
    """Write a text file atomically; errors as for `write_bytes`."""
    write_bytes(target, text.encode())


def write_bytes(target: Path, content: bytes) -> None:
    """Write a file atomically: it is whole, or as it was before.

    Raises
    ------
    OSError : it cannot be written, or something else than a regular file is there.
    """
    with PartFile(target) as part:
        part.part.write_bytes(content)


def remove_stale(target: Path) -> None:
    """Remove parts of `target` that nobody is writing."""
    for part in target.parent.glob(f"{_literal(target.name)}.*{SUFFIX}"):
        with suppress(OSError), part.open("r+b") as file:
            if fcntl is not None and _lock(file.fileno()):
                part.unlink()  # while locked, see PartFile
        if fcntl is None:
            with suppress(OSError):
                part.unlink()


class WorkFolder:
    """An empty folder beside `target` for temporary files; removed when its block ends.

    It is locked like a `PartFile`, and creating one removes those that killed processes left.

    Raises
    ------
    OSError : the folder cannot be made.
    """

    def __init__(self, target: Path) -> None:
        remove_stale_folders(target)
        with stopping.making:
            while not self._make(target):
                pass
            stopping.leave_no(self, lambda: _take_away(self.path))

    def _make(self, target: Path) -> bool:
        """Create and lock the folder; False if another process's cleaning removed it before it was locked."""
        self.path = target.with_name(f"{target.name}.{secrets.token_hex(4)}{WORK_SUFFIX}")
        self.path.mkdir()
        try:
            lock = self.path / "lock"
            self._fd = os.open(lock, os.O_RDWR | os.O_CREAT)
            if _lock(self._fd) is not False and _same_file(self._fd, lock):
                return True
            os.close(self._fd)
        except FileNotFoundError:
            pass
        except BaseException:
            shutil.rmtree(self.path, ignore_errors=True)
            raise
        return False

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
        shutil.rmtree(self.path, ignore_errors=True)
        stopping.left(self)


class _Scratch(TemporaryDirectory[str]):
    """A temporary folder that is locked while it is there: the first one that a process makes removes those
    that killed processes left."""

    def __init__(self, whatever_happens: bool) -> None:
        _remove_stale_scratch()
        self._fd = -1
        while not self._made(whatever_happens):
            self.cleanup()

    def _made(self, whatever_happens: bool) -> bool:
        """Create and lock it; False if another process's cleaning removed it before it was locked."""
        super().__init__(prefix=_SCRATCH, ignore_cleanup_errors=whatever_happens)
        if fcntl is None:
            return True
        try:
            self._fd = os.open(self.name, os.O_RDONLY)
        except FileNotFoundError:
            return False
        except BaseException:
            self.cleanup()
            raise
        return _lock(self._fd) is not False and _same_file(self._fd, Path(self.name))

    def cleanup(self) -> None:
        """Remove it."""
        super().cleanup()
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


_SCRATCH = "phasewright-scratch-"


@cache
def _remove_stale_scratch() -> None:
    for folder in Path(gettempdir()).glob(f"{_SCRATCH}*") if fcntl is not None else ():
        with suppress(OSError):
            fd = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
            try:
                if os.fstat(fd).st_uid == os.getuid() and _lock(fd):
                    shutil.rmtree(folder, ignore_errors=True)  # while locked, see _Scratch
            finally:
                os.close(fd)


def scratch(*, whatever_happens: bool = False) -> TemporaryDirectory[str]:
    """A temporary folder, which is also removed if this process is asked to end; pass its name to
    `stopping.left` when it is gone. `whatever_happens`: failing to remove it is no error.

    Raises
    ------
    OSError : it cannot be made.
    """
    with stopping.making:
        folder = _Scratch(whatever_happens)
        stopping.leave_no(folder.name, partial(_take_away, Path(folder.name)))
    return folder


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A temporary folder as `scratch`, removed when its block ends."""
    folder = scratch()
    try:
        with folder as name:
            yield Path(name)
    finally:
        stopping.left(folder.name)


def _take_away(folder: Path) -> None:
    """Remove a folder into which other threads still write: renamed first, so that they no longer can."""
    gone = folder.with_name(f"{folder.stem}.{secrets.token_hex(4)}{folder.suffix}")
    with suppress(OSError):
        folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def remove_stale_folders(target: Path) -> None:
    """Remove work folders of `target` that nobody uses."""
    for folder in target.parent.glob(f"{_literal(target.name)}.*{WORK_SUFFIX}"):
        with suppress(OSError):
            try:
                fd = os.open(folder / "lock", os.O_RDWR)
            except FileNotFoundError:
                folder.rmdir()  # left by a process killed before it locked it
                continue
            unused = _lock(fd)
            os.close(fd)
            if fcntl is None:
                (folder / "lock").unlink()  # fails while it is open
                unused = True
            if unused:
                shutil.rmtree(folder, ignore_errors=True)


def lock_file(fd: int, patience_s: float = 0.0) -> bool:
    """Lock an open file for this process until it is closed; False if another process keeps it locked for
    `patience_s`."""
    end = time.monotonic() + patience_s
    while (locked := _lock(fd)) is False and time.monotonic() < end:
        time.sleep(0.02)
    return locked is not False


def hold_file(fd: int) -> None:
    """Keep others from locking an open file until it is closed here, as far as there are locks."""
    _lock(fd, shared=True)


def _lock(fd: int, *, shared: bool = False) -> bool | None:
    """Whether the file could be locked; None if there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
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


def into_place(made: Path, target: Path) -> None:
    """Rename what was made, a file or a folder with all that is in it, to `target`, after all of it is on the
    disk: it is whole there also if the machine stops.

    Raises
    ------
    OSError : it cannot be written, or `target` is a folder that is not empty.
    """
    below = list(made.rglob("*"))
    for file in (path for path in (made, *below) if path.is_file() and not path.is_symlink()):
        fd = os.open(file, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    for folder in (path for path in (*below, made) if path.is_dir() and not path.is_symlink()):
        _fsync_folder(folder)
    os.replace(made, target)
    _fsync_folder(target.parent)


def _fsync_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # folders cannot be opened on Windows; the rename is journalled
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _literal(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)

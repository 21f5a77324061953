"""What can go wrong, as the user reads it.

::

    DesktopError            one sentence: file, what, where, what to do
    ├── TraceFormatError    a trace of which nothing usable can be read
    ├── StoreError          an imported file (HDF5) that cannot be read or written
    ├── CurveError          a curve that violates its invariants
    ├── TableError          a table of measurements that cannot be used
    ├── ExperimentError     an experiment that cannot be read or run
    ├── ProjectError        a project file that cannot be used
    ├── FileError           a file or place that is none to read from or write to (an ``OSError`` too)
    └── RunError            a program that could not be built or run as it should

Wrong arguments of a function are ``ValueError``. A damaged trace is usually no exception: it is
counted in the `desktop.data.events.ImportReport` and what could be read is kept.

`sentence`, `reason` and `explained` turn what libraries and the system raise into such a sentence: messages
and class names of libraries tell a user nothing.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict, Unpack


class DesktopError(Exception):
    """One sentence for the user: ``FILE: what, where, what to do``.

    Parameters
    ----------
    what : what happened, with the offending field and value.
    file : the file or directory concerned.
    where : place in it, such as ``"line 12"`` or ``"byte 4711"``.
    hint : what the user can do.
    """

    def __init__(self, what: str, *, file: str | Path | None = None, where: str = "", hint: str = "") -> None:
        self.what = what
        self.file = None if file is None else str(file)
        self.where = where
        self.hint = hint
        super().__init__(what)

    def __str__(self) -> str:
        sentence = ", ".join(part for part in (self.what, self.where, self.hint) if part)
        return f"{self.file}: {sentence}" if self.file else sentence


class _About(TypedDict, total=False):
    """Arguments of `DesktopError`."""

    file: str | Path | None
    where: str
    hint: str


class TraceFormatError(DesktopError):
    """Nothing usable can be read from a trace; `choices`: the traces in an archive, if it holds several."""

    def __init__(self, what: str, *, choices: tuple[str, ...] = (), **about: Unpack[_About]) -> None:
        super().__init__(what, **about)
        self.choices = choices


class StoreError(DesktopError):
    """An imported file cannot be read or written."""


class CurveError(DesktopError):
    """A curve violates its invariants."""


class TableError(DesktopError):
    """A table of measurements cannot be used; `where` names row and column."""


class ExperimentError(DesktopError):
    """An experiment's description or journal cannot be used."""


class ProjectError(DesktopError):
    """A project file cannot be used; `problems` lists all of them, each with the path of its key."""

    def __init__(self, what: str, *, problems: tuple[str, ...] = (), **about: Unpack[_About]) -> None:
        super().__init__(what, **about)
        self.problems = problems


class RunError(DesktopError):
    """A program could not be built or did not run as it should; `hint` holds the end of its output."""


class FileError(DesktopError, OSError):
    """A file that can be neither read nor written, whatever its content; an ``OSError``, so that code that
    handles those handles it too."""


#: What to do about an error of the system, where its own words do not say it.
REMEDIES = {
    errno.ENOSPC: "make room there or choose another place",
    errno.EDQUOT: "make room there or choose another place",
    errno.EFBIG: "raise the limit (ulimit -f) or choose another place",
    errno.EROFS: "choose another place",
    errno.EMFILE: "close other programs or raise the limit (ulimit -n)",
    errno.ENFILE: "close other programs",
    errno.EAGAIN: "close other programs or raise the limit (ulimit -u)",
    errno.ENOMEM: "close other programs",
}
#: Errors of a full disk or quota.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: The error number of the system in messages of HDF5.
_ERRNO = re.compile(r"errno = ([1-9]\d*)")


def reason(error: BaseException, otherwise: str = "it is cut or damaged") -> str:
    """Why something could not be done, in the system's words or ours; else `otherwise`."""
    if isinstance(error, DesktopError):
        return error.what
    if type(error) is ValueError:  # its subclasses are of libraries, such as JSON's
        return str(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory"
    number = _number(error)
    if number == errno.EAGAIN:
        return "the system allows no more threads or processes"
    return os.strerror(number) if number in errno.errorcode else otherwise


@contextmanager
def explained(
    kind: type[DesktopError], what: str = "cannot be read", *, file: Path | None = None, hint: str = ""
) -> Iterator[None]:
    """Errors of the system are raised as `kind`: what could not be done, and why in the system's words."""
    try:
        yield
    except OSError as error:
        raise kind(f"{what} ({reason(error)})", file=file, hint=hint) from error


def sentence(error: BaseException) -> str:
    """An exception as the user reads it: file, what, what to do. Empty: an unexpected error."""
    if isinstance(error, DesktopError | ValueError):
        return " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return "there is not enough memory for this, close other programs or choose a smaller part"
    number = _number(error)
    if number not in errno.errorcode:
        return ""
    file = getattr(error, "filename", None)
    words = [reason(error)]
    if file is None and number in FULL:
        words.append(f"make room in the temporary folder{_temporary()} and where the result goes")
    elif number in REMEDIES:
        words.append(REMEDIES[number])
    return f"{os.fsdecode(file)}: {', '.join(words)}" if file else ", ".join(words)


def _number(error: BaseException) -> int:
    """The system's number of an error, also where a library has wrapped it; 0: it has none."""
    number = getattr(error, "errno", None)
    if isinstance(number, int):
        return number
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return errno.EAGAIN
    if isinstance(error, OSError | RuntimeError) and (match := _ERRNO.search(str(error))):
        return int(match[1])
    return 0


def _temporary() -> str:
    try:
        return f" ({tempfile.gettempdir()})"
    except OSError:  # there is none that can be written
        return ""

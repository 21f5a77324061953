"""What can go wrong, as the user reads it.

::

    DesktopError            one sentence: file, what, where, what to do
    ├── TraceFormatError    a trace of which nothing usable can be read
    ├── StoreError          an imported file (HDF5) that cannot be read or written
    ├── CurveError          a curve that violates its invariants
    ├── TableError          a table of measurements that cannot be used
    ├── ExperimentError     an experiment that cannot be read or run
    ├── ProjectError        a project file that cannot be used
    └── RunError            a program that could not be built or run as it should

Wrong arguments of a function are ``ValueError``. A damaged trace is usually no exception: it is
counted in the `desktop.data.events.ImportReport` and what could be read is kept.
"""

from __future__ import annotations

from pathlib import Path


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


class TraceFormatError(DesktopError):
    """Nothing usable can be read from a trace; `choices`: the traces in an archive, if it holds several."""

    def __init__(
        self,
        what: str,
        *,
        file: str | Path | None = None,
        where: str = "",
        hint: str = "",
        choices: tuple[str, ...] = (),
    ) -> None:
        super().__init__(what, file=file, where=where, hint=hint)
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

    def __init__(
        self,
        what: str,
        *,
        file: str | Path | None = None,
        where: str = "",
        hint: str = "",
        problems: tuple[str, ...] = (),
    ) -> None:
        super().__init__(what, file=file, where=where, hint=hint)
        self.problems = problems


class RunError(DesktopError):
    """A program could not be built or did not run as it should; `hint` holds the end of its output."""

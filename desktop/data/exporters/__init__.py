"""Traces in other programs' formats: one file per format, one row in `EXPORTERS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from desktop.data.atomic import WorkFolder, into_place, remove_stale_folders
from desktop.errors import StoreError, explained
from desktop.progress import Progress

if TYPE_CHECKING:
    from desktop.data.store import TraceStore

#: Format, and the module in this package whose `write(store, folder, progress, repaired)` writes its files.
EXPORTERS = {"otf2": "otf2_archive", "paraver": "paraver_trace"}


@dataclass
class Exported:
    """What was written. `file`: for other programs to open; `left_out`: counts of what the format lacks."""

    file: Path
    records: int = 0
    left_out: dict[str, int] = field(default_factory=dict)

    def leave_out(self, what: str, count: int) -> None:
        """Record that `count` more of `what` were not written."""
        if count:
            self.left_out[what] = self.left_out.get(what, 0) + int(count)


def export(
    store: TraceStore, to: str, folder: Path, progress: Progress | None = None, repaired: bool | None = None
) -> Exported:
    """Write a trace into a new folder in another format, with times as the window shows them.

    Parameters
    ----------
    to : one of `EXPORTERS`.
    folder : must not exist, or be empty.
    repaired : whether clocks are repaired; None: as in the trace.

    Raises
    ------
    StoreError : the trace is itself a curve, the folder is not empty, or it cannot be written.
    Cancelled : by `progress`; nothing is left behind.
    """
    folder = Path(folder).absolute()
    if store.has("curve"):
        raise StoreError("is a curve and has no events to write", file=store.path)
    remove_stale_folders(folder)  # of a process killed when all was in place
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise StoreError("exists and is no empty folder", file=folder, hint="choose another name after -o")
    write: Callable[[TraceStore, Path, Progress, bool], Exported]
    write = import_module(f"desktop.data.exporters.{EXPORTERS[to]}").write
    hint = "choose another folder or make room"
    explaining = explained(StoreError, "cannot be written", file=folder, hint=hint)
    with explaining, WorkFolder(folder) as work:
        target = work / "made"
        target.mkdir()
        exported = write(
            store, target, progress or Progress(), store.repair if repaired is None else repaired
        )
        if folder.exists():
            folder.rmdir()
        into_place(target, folder)
    exported.file = folder / exported.file.name
    return exported

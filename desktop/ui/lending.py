"""What a project lends to windows of experiments and models; what is changed there is kept in the project."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from desktop.workbench.experimenting import ExperimentBench
from desktop.workbench.model import KeptExperiment, KeptTable
from desktop.workbench.modelling import ModelBench


@dataclass(frozen=True)
class Lent:
    """An experiment or table of a project; `keep` is called with every later state of it."""

    record: KeptExperiment | KeptTable
    keep: Callable[[Any], None]


class Borrower:
    """Tells a project of all changes in a window, as long as the window is about the same file.

    What a file says of itself when it is opened is no change.
    """

    def __init__(self, bench: ModelBench | ExperimentBench, lent: Lent) -> None:
        self._bench, self._lent = bench, lent
        self._about = _file(lent.record)
        self._known = bench.kept()
        bench.subscribe(self._follow)

    def open(self) -> None:
        """Show it as the project has it."""
        self._known = None
        self._bench.open_kept(self._lent.record)  # type: ignore[arg-type]  # the record of a bench is its own

    def _follow(self, old: Any, new: Any) -> None:
        if all(
            getattr(old, name, None) is getattr(new, name, None) for name in ("project", "pinned", "saved")
        ):
            return
        now = self._bench.kept()
        if now is None or _file(now) != self._about:
            return
        if self._known is not None and now != self._known:
            self._lent.keep(now)
        self._known = now


def _file(record: KeptExperiment | KeptTable) -> tuple[Path | None, str]:
    return record.path, getattr(record, "text", "")

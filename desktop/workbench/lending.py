"""Experiments and tables of a project where they are worked on: one bench each, for panels and pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from desktop.workbench.experimenting import ExperimentBench
from desktop.workbench.history import History
from desktop.workbench.jobs import Deliver
from desktop.workbench.model import KeptExperiment, KeptTable
from desktop.workbench.modelling import ModelBench

#: What a project keeps of either kind, and where it is worked on.
Kept = KeptExperiment | KeptTable
WorkedOn = ExperimentBench | ModelBench


def bench_for(record: Kept, deliver: Deliver, history: History) -> WorkedOn:
    """An empty bench of the kind that a record needs."""
    kind = ExperimentBench if isinstance(record, KeptExperiment) else ModelBench
    return kind(deliver, history=history)


class Loan:
    """Tells a project of all changes on a bench, as long as that is about the file of the record.

    What a file says of itself when it is opened is no change.

    Parameters
    ----------
    keep : is called with every later state of the record.
    over : is called once, when the bench has turned to another file.
    """

    def __init__(
        self, bench: WorkedOn, record: Kept, keep: Callable[[Any], None], over: Callable[[], None]
    ) -> None:
        self.bench = bench
        self._keep, self._over = keep, over
        self._about = _file(record)
        self._known = bench.kept()
        bench.subscribe(self._follow)

    def end(self) -> None:
        """Nothing is kept any more; the bench is closed unless somebody else uses it."""
        self.bench.release(self._follow)

    def _follow(self, old: Any, new: Any) -> None:
        if all(
            getattr(old, name, None) is getattr(new, name, None) for name in ("project", "pinned", "saved")
        ):
            return
        now = self.bench.kept()
        if now is None or _file(now) != self._about:
            if self._known is not None:
                self._over()
            return
        if self._known is not None and now != self._known:
            self._keep(now)
        self._known = now


def _file(record: Kept) -> tuple[Path | None, str]:
    return record.path, getattr(record, "text", "")

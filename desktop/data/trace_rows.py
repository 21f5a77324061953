"""Measurements from traces: one trace is one run, its processors are p."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from desktop.data.tables import Row
from desktop.progress import Progress

if TYPE_CHECKING:
    from desktop.core.contrast import Alignment


@dataclass(frozen=True)
class Quantity:
    """What of a run is measured: the whole run, or phase `phase` (from 1) of `n` phases of a model."""

    phase: int | None = None
    n: int = 1
    model: str = "constant"

    def __str__(self) -> str:
        return "run time" if self.phase is None else f"phase {self.phase} of {self.n} ({self.model})"


def trace_rows(
    paths: Sequence[Path], code: str, system: str, quantity: Quantity, progress: Progress | None = None
) -> tuple[Row, ...]:
    """One row per trace, with the processors that have events as p; traces are imported where needed.

    Raises
    ------
    DesktopError : a trace cannot be opened.
    ValueError : there is no such phase, or no name.
    Cancelled : by `progress`.
    """
    from desktop.core.phases import fit
    from desktop.data.opening import open_trace
    from desktop.data.utilization import build

    if not (code.strip() and system.strip()):
        raise ValueError("name the code and the system on which it ran")
    if quantity.phase is not None and not 1 <= quantity.phase <= quantity.n:
        raise ValueError(f"of {quantity.n} phases there is no phase {quantity.phase}")
    progress, rows = progress or Progress(), []
    for done, path in enumerate(paths):
        progress.step(done, len(paths), path.name)
        with open_trace(path, progress) as store:
            curve = build(store, progress=progress).curve()
        seconds, note = curve.duration, str(quantity)
        if quantity.phase is not None:
            found = fit(curve, quantity.n, quantity.model)
            if found.n < quantity.phase:
                raise ValueError(f"{path.name} has only {found.n} phases, there is no phase {quantity.phase}")
            seconds = float(found.duration[quantity.phase - 1])
        rows.append(
            Row(done + 1, code.strip(), system.strip(), curve.capacity, seconds, note=note, source=path.name)
        )
    return tuple(rows)


def phase_rows(alignment: Alignment, one_system: bool | None = None) -> tuple[Row, ...]:
    """The phases of compared runs: a phase is a code, its duration in a run a row, the capacity p.

    Parameters
    ----------
    one_system : all runs are of one system, on different numbers of processors; else each run is a system.
        None: one system where no two runs have the same p.

    A phase that only one run has says nothing about p: its row is there, and takes no part.
    """
    from desktop.core.matching import NONE

    runs = alignment.runs
    if one_system is None:
        one_system = len({run.curve.capacity for run in runs}) == len(runs)
    rows: list[Row] = []
    for r, phases in enumerate(alignment.rows.tolist()):
        alone = sum(phase != NONE for phase in phases) == 1
        for run, phase in zip(runs, phases, strict=True):
            if phase == NONE:
                continue
            rows.append(
                Row(
                    len(rows) + 1,
                    alignment.label(r),
                    "all runs" if one_system else run.name,
                    run.curve.capacity,
                    run.rows[phase].end_s - run.rows[phase].start_s,
                    note=f"phase {phase + 1} of {run.fit.n} ({run.fit.model})",
                    source=run.name,
                    reason="no other run has this phase" if alone else "",
                )
            )
    return tuple(rows)

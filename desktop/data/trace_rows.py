"""Measurements from traces: each trace is one run, and its number of processors is p."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from desktop.data.tables import Row
from desktop.progress import Progress

if TYPE_CHECKING:
    from desktop.core.contrast import Alignment
    from desktop.core.curve import StepCurve
    from desktop.core.phases import PhaseFit


@dataclass(frozen=True)
class Quantity:
    """What is measured of a run: the whole run, or phase `phase` (from 1) of `n` phases of a model."""

    phase: int | None = None
    n: int = 1
    model: str = "constant"

    def __str__(self) -> str:
        return "run time" if self.phase is None else f"phase {self.phase} of {self.n} ({self.model})"


@dataclass(frozen=True, eq=False)
class TracedRun:
    """A run to be measured: its `curve`, the name of its trace, and the digest of its content, which
    identifies it ("": unknown)."""

    curve: StepCurve
    source: str
    trace: str = ""

    def row(self, code: str, system: str, seconds: float, note: str) -> Row:
        """A measurement of this run; p is its number of processors."""
        return Row(
            1, code.strip(), system.strip(), self.curve.capacity, seconds, note=note, source=self.source,
            trace=self.trace,
        )  # fmt: skip

    def whole(self, code: str, system: str) -> Row:
        """The time of the run."""
        return self.row(code, system, self.curve.duration, str(Quantity()))

    def phases(
        self, code: str, system: str, fit: PhaseFit, within: tuple[float, float] | None = None
    ) -> tuple[Row, ...]:
        """The durations of its phases, each with a code of its own. `within`: the fitted time range
        (seconds), None for the whole run."""
        of = "" if within is None else f" from {within[0]:g} to {within[1]:g} s"
        return tuple(
            self.row(f"{code.strip()}, phase {k}", system, float(s), str(Quantity(k, fit.n, fit.model)) + of)
            for k, s in enumerate(fit.duration, 1)
        )


def trace_rows(
    paths: Sequence[Path], code: str, system: str, quantity: Quantity, progress: Progress | None = None
) -> tuple[Row, ...]:
    """One row per trace, with the processors that have events as p; traces are imported if needed.

    Raises
    ------
    DesktopError : a trace cannot be opened.
    ValueError : there is no such phase, or no name.
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
            run = TracedRun(build(store, progress=progress).curve(), path.name, store.source.sha256)
        seconds = run.curve.duration
        if quantity.phase is not None:
            fitted = fit(run.curve, quantity.n, quantity.model)
            if fitted.n < quantity.phase:
                raise ValueError(
                    f"{path.name} has only {fitted.n} phases, there is no phase {quantity.phase}"
                )
            seconds = float(fitted.duration[quantity.phase - 1])
        rows.append(replace(run.row(code, system, seconds, str(quantity)), line=done + 1))
    return tuple(rows)


def phase_rows(alignment: Alignment, one_system: bool | None = None) -> tuple[Row, ...]:
    """The phases of compared runs: each phase is a code, its duration in a run a row, the capacity p.

    Parameters
    ----------
    one_system : whether all runs are on one system, with different numbers of processors; else each run is a
        system. None: one system if no two runs have the same p, or the systems given for the runs.

    A phase in only one run tells nothing about p: its row is included but excluded from fits.
    """
    from desktop.core.matching import NONE

    runs = alignment.runs
    systems_known = one_system is None and any(run.system for run in runs)
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
                    (run.system or "not said") if systems_known else "all runs" if one_system else run.name,
                    run.curve.capacity,
                    run.rows[phase].end_s - run.rows[phase].start_s,
                    note=f"phase {phase + 1} of {run.fit.n} ({run.fit.model})",
                    source=run.name,
                    reason="no other run has this phase" if alone else "",
                )
            )
    return tuple(rows)

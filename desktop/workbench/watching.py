"""Watching a run that goes on: the program in one lane, reading its records in another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from desktop.core.averages import changes
from desktop.core.curve import StepCurve
from desktop.core.phases import AS_SUGGESTED, PhaseFit, fit, fit_breakpoints
from desktop.core.selection import SWEEP
from desktop.data.following import Followed, Follower
from desktop.data.recording import Recorded, record
from desktop.workbench.bench import Bench
from desktop.workbench.jobs import Deliver, Executor, Job, Task, at_once


@dataclass(frozen=True, eq=False)
class WatchSnapshot:
    """What the window shows.

    `n`: phases of least error; None while those are taken that are suggested. `running`: the program;
    `doing`: what is done before it runs; `paused`: the picture stands still. `over`: all has been recorded;
    `code`: how the program ended, where we ran it.
    """

    folder: Path | None = None
    followed: Followed = field(default_factory=Followed)
    fit: PhaseFit | None = None
    model: str = "mixed"
    n: int | None = None
    running: bool = False
    doing: str = ""
    paused: bool = False
    over: bool = False
    code: int | None = None
    problem: str = ""


class Watcher(Bench[WatchSnapshot]):
    """Runs a program, or only follows a folder, and tells its listener of each new snapshot."""

    def __init__(
        self,
        listener: Callable[[WatchSnapshot, WatchSnapshot], None],
        deliver: Deliver = at_once,
        executor: Executor | None = None,
    ) -> None:
        lanes = {"program": executor, "watch": executor} if executor else None
        super().__init__(WatchSnapshot(), deliver, lanes)
        self.subscribe(listener)
        self._program, self._looks = self._lane("program"), self._lane("watch")
        self._follower: Follower | None = None

    def start(self, folder: Path, command: list[str] | None = None) -> None:
        """Follow a folder; with a command, which is run and recorded into it."""
        self._follower = Follower(folder)
        self._show(folder=folder, running=command is not None)
        if command is not None:
            self._program.submit(
                "running the program", lambda job: record(command, folder, job), self._ended, self._failed,
                self._show_task,
            )  # fmt: skip

    def look(self) -> None:
        """Read what was recorded since the last look, unless one is running."""
        follower, snapshot = self._follower, self.snapshot
        if follower is None or snapshot.over or self._looks.busy:
            return
        self._looks.submit(
            "looking",
            lambda job: _take_look(follower, snapshot, job),
            lambda look: self._see(look, snapshot),
            self._lost,
        )

    def choose(self, *, n: int | None = None, model: str | None = None) -> None:
        """Another number of phases (None: those that are suggested), or another model."""
        curve, model = self.snapshot.followed.curve, model or self.snapshot.model
        self._show(n=n, model=model, fit=None if curve is None else phases_so_far(curve, model, n))

    def pause(self, on: bool) -> None:
        """Let the picture stand still; what arrives meanwhile is seen afterwards."""
        self._show(paused=on)

    def stop(self) -> None:
        """Ask the program to end."""
        self._program.cancel()
        if self.snapshot.running:
            self._show(running=False)

    def _see(self, look: tuple[Followed, PhaseFit | None] | None, snapshot: WatchSnapshot) -> None:
        """Take what a look has found, which began with this `snapshot`."""
        if look is not None and not self.snapshot.paused:
            followed, fit = look
            if (snapshot.model, snapshot.n) == (self.snapshot.model, self.snapshot.n):
                self._show(followed=followed, fit=fit)
            else:
                self._show(followed=followed)
        seen = self.snapshot.followed
        whole = seen.processes >= max(seen.expected, 1) and seen.ended == seen.processes
        # A program that we run is waited for; of another one, all processes have said that they end.
        if not self.snapshot.running and (
            whole or (not snapshot.running and look is None and self.snapshot.code is not None)
        ):
            self._show(over=True)

    def _show_task(self, task: Task) -> None:
        if task.text != self.snapshot.doing:
            self._show(doing=task.text)

    def _ended(self, recorded: Recorded) -> None:
        self._show(running=False, code=recorded.code)

    def _failed(self, error: BaseException) -> None:
        self._show(running=False, over=True, problem=str(error))

    def _lost(self, error: BaseException) -> None:
        self._show(problem=str(error))


def _take_look(follower: Follower, seen: WatchSnapshot, job: Job) -> tuple[Followed, PhaseFit | None] | None:
    """What has been recorded so far, and its phases; None where nothing has come since."""
    followed = follower.look()
    if followed is None:
        return None
    curve = followed.curve
    if curve is not None and seen.fit is None:
        fit(curve, 1, seen.model, stop=job.stop)  # loaded here, not by the window when a number is chosen
    return followed, None if curve is None else phases_so_far(curve, seen.model, seen.n, job.stop)


def phases_so_far(
    curve: StepCurve, model: str, n: int | None, stop: NDArray[np.uint8] | None = None
) -> PhaseFit:
    """The best `n` phases of a curve of equal steps; None: those between the changes of its averages."""
    if n is not None:
        return fit(curve, n, model, stop=stop)
    times = changes(curve, SWEEP, lines=model != "constant")
    start, end = curve.span
    return replace(fit_breakpoints(curve, (start, *times.tolist(), end), model), note=AS_SUGGESTED)

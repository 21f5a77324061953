"""A run that goes on, beside its window: the program in one lane, looks at its records in another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from desktop.core.curve import StepCurve
from desktop.core.phases import PhaseFit, Sweep, extend, fit, sweep
from desktop.core.selection import SWEEP, suggest
from desktop.data.following import Followed, Follower
from desktop.data.recording import Recorded, record
from desktop.workbench.bench import Bench
from desktop.workbench.jobs import Deliver, Executor, Job, Task, at_once

#: Phases up to which a suggestion is made at first: it goes on where more are chosen or may be suggested.
#: The last few of `SWEEP` take most of the time.
_FEW = 8
#: Looks fit the number of phases that is shown, in a tenth of the time that a suggestion takes, until the run
#: has grown so many times or so many looks were taken since the last one.
_GROWN, _AGED = 1.2, 16


@dataclass(frozen=True, eq=False)
class WatchSnapshot:
    """What is seen.

    `n`: None while the suggested number is taken. `swept`: fits from 1 phase on, or with the number that is
    shown alone. `running`: the program; `doing`: what is done before it runs; `paused`: the picture stands
    still. `over`: all has been recorded; `code`: how the program ended, where we ran it.
    """

    folder: Path | None = None
    followed: Followed = field(default_factory=Followed)
    swept: Sweep | None = None
    suggested: int = 1
    model: str = "mixed"
    n: int | None = None
    running: bool = False
    doing: str = ""
    paused: bool = False
    over: bool = False
    code: int | None = None
    problem: str = ""

    @property
    def fit(self) -> PhaseFit | None:
        if self.swept is None:
            return None
        last = int(self.swept.n[-1])
        return self.swept.fit(min(self.suggested if self.n is None else self.n, last))


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
        self._suggested = (0.0, 0)  # at what duration (s) of the run, how many looks ago

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
        """See what has come, unless a look is under way."""
        follower, shown = self._follower, self.snapshot
        if follower is None or shown.over or self._looks.busy:
            return
        at, looks = self._suggested
        known, until = (shown.fit if looks + 1 < _AGED else None), _GROWN * at
        self._looks.submit(
            "looking",
            lambda job: _seen(follower, shown, known, until, job),
            lambda found: self._see(found, shown),
            self._lost,
        )

    def choose(self, *, n: int | None = None, model: str | None = None) -> None:
        """Another number of phases (None: the suggested one), or another model."""
        curve, model = self.snapshot.followed.curve, model or self.snapshot.model
        swept, suggested = (None, 1) if curve is None else _swept(curve, model, n, self.snapshot.swept)
        self._show(n=n, model=model, swept=swept, suggested=suggested)

    def pause(self, on: bool) -> None:
        """Let the picture stand still; what arrives meanwhile is seen afterwards."""
        self._show(paused=on)

    def stop(self) -> None:
        """Ask the program to end."""
        self._program.cancel()
        if self.snapshot.running:
            self._show(running=False)

    def _see(self, look: tuple[Followed, Sweep | None, int] | None, shown: WatchSnapshot) -> None:
        """Take what a look has found, which began when this was `shown`."""
        if look is not None and not self.snapshot.paused:
            followed, swept, suggested = look
            if followed.curve is not None and swept is not None:
                at, looks = self._suggested
                alone = swept.n.size < _FEW
                self._suggested = (at, looks + 1) if alone else (followed.curve.duration, 0)
            if (shown.model, shown.n) == (self.snapshot.model, self.snapshot.n):
                self._show(followed=followed, swept=swept, suggested=suggested)
            else:
                self._show(followed=followed)
        seen = self.snapshot.followed
        whole = seen.processes >= max(seen.expected, 1) and seen.ended == seen.processes
        # A program that we run is waited for; of another one, all processes have said that they end.
        if not self.snapshot.running and (
            whole or (not shown.running and look is None and self.snapshot.code is not None)
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


def _seen(
    follower: Follower, shown: WatchSnapshot, known: PhaseFit | None, until: float, job: Job
) -> tuple[Followed, Sweep | None, int] | None:
    """What has come, and its fits: with as many phases as `known` while the run is shorter than `until` (s),
    else with all that may be suggested."""
    followed = follower.look()
    if followed is None:
        return None
    curve = followed.curve
    if curve is None:
        return followed, None, 1
    if known is None or curve.duration >= until:
        return followed, *_swept(curve, shown.model, shown.n, None, job)
    fitted = fit(curve, known.requested, shown.model, stop=job.stop)
    return followed, Sweep(shown.model, (fitted,)), shown.suggested


def _swept(
    curve: StepCurve, model: str, n: int | None, known: Sweep | None, job: Job | None = None
) -> tuple[Sweep, int]:
    """The fits that are needed, and which number of phases is suggested; `known`: fits of this curve."""
    stop = None if job is None else job.stop
    if known is None or known.model != model or known.n.size < _FEW:
        known = sweep(curve, model, _FEW, stop=stop)
    while (wanted := min(max(n or 0, 2 * suggest(known).n), SWEEP)) > int(known.n[-1]):
        known = extend(curve, known, wanted, stop=stop)
    return known, suggest(known).n

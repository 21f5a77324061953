"""What if: the run with changes, predicted beside the window while a panel or plot shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from desktop.workbench.bench import changed
from desktop.workbench.jobs import Job, Lane, Task

if TYPE_CHECKING:
    from desktop.core.changes import Changes
    from desktop.data.causality import Causality
    from desktop.data.helping import Help
    from desktop.data.store import TraceStore
    from desktop.data.whatif import Rerun, RunPrediction
    from desktop.data.whatif_there import RerunThere
    from desktop.workbench.tracing import TraceRun


@dataclass(frozen=True, eq=False)
class WhatIf:
    """The changes asked for, and what is predicted.

    changes : None: none are asked for. prediction : the latest, of these changes unless `outdated`.
    regions : that can be changed, by name, those in which most is computed first; helps : what would help
    most, None: not known yet. task : of work that takes long. problem : why there is no prediction.
    """

    changes: Changes | None = None
    prediction: RunPrediction | None = None
    outdated: bool = False
    regions: tuple[str, ...] = ()
    phases: int = 0
    helps: tuple[Help, ...] | None = None
    task: Task | None = None
    problem: str = ""

    @property
    def drawn(self) -> RunPrediction | None:
        """The prediction that is drawn over the curve; None without changes, as its curve is not built then
        and would be in the window's thread."""
        prediction = self.prediction
        if self.changes is None or prediction is None or prediction.note or not prediction.changes.sentence:
            return None
        return prediction


#: Seconds after which a prediction is given up for that of newer changes.
PATIENCE = 0.3
#: Before the first request.
NO_WHAT_IF = WhatIf()


@dataclass(frozen=True)
class _Basis:
    """What a replay depends on."""

    store: TraceStore
    run: TraceRun
    breakpoints: tuple[float, ...]


class WhatIfRunner:
    """Holds the replay of a run, and computes predictions (the last request wins) and what would help.

    `show` publishes an `WhatIf`.
    """

    def __init__(self, predicting: Lane, helping: Lane, show: Callable[[WhatIf], None]) -> None:
        self._predicting, self.helping, self._show = predicting, helping, show
        self.state = NO_WHAT_IF
        self._basis: _Basis | None = None
        self._program: Rerun | RerunThere | None = None
        self._recorded: RunPrediction | None = None  # of the run without changes

    def forget(self) -> None:
        """Drop everything, as another trace is shown, or none."""
        self._predicting.cancel()
        self.helping.cancel()
        self._basis = self._program = self._recorded = None
        if self.state is not NO_WHAT_IF:
            self._publish(NO_WHAT_IF)

    def wait(self) -> None:
        """Mark the prediction as outdated, until who waited for whom is known."""
        if self.state.prediction is not None and not self.state.outdated:
            self._change(outdated=True)

    def look(
        self,
        store: TraceStore,
        run: TraceRun,
        breakpoints: tuple[float, ...],
        changes: Changes | None,
        causality: Causality | None = None,
    ) -> None:
        """Prepare the replay of a run with phases between inner `breakpoints` (s), and predict it with
        changes. `causality`: of the run, if that is known."""
        basis = _Basis(store, run, breakpoints)
        if basis == self._basis:
            self.ask(changes)
            return
        if self._program is not None and self._basis is not None and self._basis.run is run:
            causality = self._program.causality
        self._basis, self._program, self._recorded = basis, None, None
        self.helping.cancel()
        state = replace(self.state, helps=None, outdated=True, problem="", phases=len(breakpoints) + 1)
        self._ask(replace(state, changes=changes), causality)

    def ask(self, changes: Changes | None) -> None:
        """Predict the run with changes; None: as recorded."""
        if changes == self.state.changes or self._basis is None:
            return
        state = replace(self.state, changes=changes, outdated=True, problem="")
        job, plain = self._predicting.current, self._recorded
        if changes is None and plain is not None:
            self._predicting.cancel()
            self._publish(replace(state, prediction=plain, outdated=False, task=None, problem=plain.note))
        elif job is not None and (self._program is None or job.elapsed < PATIENCE):
            self._publish(state)  # the running prediction is shown first, else none would be during a drag
        else:
            self._ask(state)

    def _ask(self, state: WhatIf, causality: Causality | None = None) -> None:
        basis, program = self._basis, self._program
        assert basis is not None
        changes = state.changes
        self._publish(state)

        def work(job: Job) -> tuple[Rerun | RerunThere, RunPrediction]:
            from desktop.core.changes import NONE
            from desktop.core.envelope import envelope
            from desktop.data.whatif_there import rerun

            run, inner = basis.run, basis.breakpoints
            replay = program or rerun(
                basis.store, run.utilization, job, causality=causality, limit=run.limit, breakpoints=inner
            )
            applied, phases = changes or NONE, replay.phases
            # There may be fewer phases now.
            applied = replace(
                applied,
                balanced=tuple(k for k in applied.balanced if k < phases),
                phases=tuple(one for one in applied.phases if one[0] < phases),
            )
            prediction = replay.predict(applied, job, times=bool(applied.sentence))
            if applied.sentence and prediction.curve is not None:
                envelope(prediction.curve)  # here, as it is kept
            return replay, prediction

        def done(answer: tuple[Rerun | RerunThere, RunPrediction]) -> None:
            self._program, prediction = answer
            if changes is None:
                self._recorded = prediction
            more = self.state.changes != changes
            self._change(
                prediction=prediction, outdated=more, regions=self._program.regions, task=None,
                problem=prediction.note,
            )  # fmt: skip
            if more:
                self._ask(self.state)
            if self.state.helps is None and not self.helping.busy:
                self._help(self._program)

        def failed(error: BaseException) -> None:
            self._change(outdated=False, task=None, problem=str(error))

        self._predicting.submit("Predicting", work, done, failed, lambda task: self._change(task=task))

    def _help(self, program: Rerun | RerunThere) -> None:
        def work(job: Job) -> tuple[Help, ...]:
            from desktop.data.whatif_there import would_help_most

            return would_help_most(program, job)

        self.helping.submit(
            "What would help most",
            work,
            lambda helps: self._change(helps=helps),
            lambda error: self._change(helps=(), problem=str(error)),
        )
        self._publish(self.state)  # that it is under way

    def cancel_helps(self) -> None:
        """Cancel the search for what would help, until the phases change."""
        if self.helping.busy:
            self.helping.cancel()
            self._change(helps=())

    def _change(self, **changes: object) -> None:
        self._publish(changed(self.state, changes))

    def _publish(self, state: WhatIf) -> None:
        self.state = state
        self._show(state)

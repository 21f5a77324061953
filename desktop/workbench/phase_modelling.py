"""How the phases of the compared runs scale: read and fitted beside the window, the last request wins."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from desktop.workbench.bench import Bench, problem_text
from desktop.workbench.jobs import Deliver, Executor, Job, Task, at_once
from desktop.workbench.keeping import ProjectStore, compared_trace
from desktop.workbench.model import KeptRun, run_keys

if TYPE_CHECKING:
    from desktop.core.contrast import Alignment
    from desktop.core.phase_model import PhaseModel
    from desktop.core.phase_systems import SystemsModel
    from desktop.data.phase_scaling import Traced
    from desktop.workbench.run_comparison import ComparisonSnapshot


@dataclass(frozen=True, eq=False)
class PhaseModelSnapshot:
    """`model`: of the runs that were asked for last; `matched`: how their phases were. `problem`: one
    sentence."""

    model: PhaseModel | SystemsModel | None = None
    matched: str = ""
    task: Task | None = None
    problem: str = ""


class PhaseModeller(Bench[PhaseModelSnapshot]):
    """Models the phases of a comparison. `deliver`, `executor` as in `Lane`."""

    def __init__(
        self, projects: ProjectStore, deliver: Deliver = at_once, executor: Executor | None = None
    ) -> None:
        super().__init__(PhaseModelSnapshot(), deliver, {"phases": executor} if executor else None)
        self._projects = projects
        self._lane_of_phases = self._lane("phases")
        self._last_request: tuple[object, ...] = ()

    def ask(self, contrast: ComparisonSnapshot) -> None:
        """Model the phases of what is compared; nothing where that is as before."""
        alignment = contrast.alignment
        request = (alignment, contrast.keys)
        if alignment is None or contrast.refining or request == self._last_request:
            return
        self._last_request = request
        workspace, path = self._projects.workspace, self._projects.path
        runs = dict(zip(run_keys(workspace.runs), workspace.runs, strict=True))
        compared = [runs[key] for key in contrast.keys]

        def work(job: Job) -> tuple[PhaseModel | SystemsModel, str]:
            from desktop.core.phase_systems import model_runs
            from desktop.data.phase_scaling import gather

            gathered = gather(traced(compared, alignment, path), job)
            job.step(0, 0, "modelling")
            return model_runs(gathered.runs), gathered.matched

        def done(outcome: tuple[PhaseModel | SystemsModel, str]) -> None:
            self._show(model=outcome[0], matched=outcome[1], task=None, problem="")

        def failed(error: BaseException) -> None:
            self._show(model=None, matched="", task=None, problem=problem_text(error, OSError))

        self._show(task=Task("Modelling phases"), problem="")
        self._lane_of_phases.submit(
            "Modelling phases", work, done, failed, lambda task: self._show(task=task)
        )

    def cancel(self) -> None:
        """Give up what is being computed."""
        self._lane_of_phases.cancel()
        self._last_request = ()
        self._show(task=None, problem="the model was stopped, show it again to go on")


def traced(runs: list[KeptRun], alignment: Alignment, project: Path | None) -> list[Traced]:
    """Runs of a project to be read; with their phases where every phase is in all of them.

    Raises
    ------
    ProjectError : a trace is not where it was.
    """
    from desktop.data.phase_scaling import Traced

    whole = bool((alignment.rows >= 0).all())
    traces = []
    for run, compared in zip(runs, alignment.runs, strict=True):
        place, options = compared_trace(run.trace, project), asdict(run.trace.options)
        ends = tuple(compared.fit.breaks.tolist()) if whole else None
        traces.append(Traced(place, options, run.project.rules, run.project.limit, ends, compared.system))
    return traces

"""An SPT experiment in the window: description, run, analysis.

As in `desktop.workbench.workbench`: edits replace one frozen tree, snapshots come out, work runs beside the
window. Nothing is run before `consent` was called for exactly these commands since the program was started.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from desktop.progress import Progress
from desktop.workbench.history import History
from desktop.workbench.jobs import Deliver, Executor, Job, Lane, Task, at_once

if TYPE_CHECKING:
    from desktop.core.design import Offer
    from desktop.core.effects import Effects, Error, Members, Threshold, Trials
    from desktop.data.experiment import Experiment, State, Trial
    from desktop.data.runner import Estimate, Runner

RUN_STATES = ("idle", "running", "paused", "stopping")


@dataclass(frozen=True)
class AnalysisSettings:
    """How the trials are read. `terms`: None for all that can be told apart. `half`: half effects are shown."""

    response: str | None = None
    error: Error | None = None
    threshold: Threshold = "t"
    blocks: bool = True
    half: bool = False
    terms: tuple[Members, ...] | None = None


@dataclass(frozen=True)
class ExperimentProject:
    """What can be undone. `imported`: trials read from a table instead of an experiment that is run here."""

    experiment: Experiment | None = None
    imported: Trials | None = None
    analysis: AnalysisSettings = AnalysisSettings()


@dataclass(frozen=True, eq=False)
class ExperimentSnapshot:
    """What is to be shown. `saved`: the description on the disk is the one shown. `selected`: a term."""

    project: ExperimentProject = ExperimentProject()
    name: str = ""
    saved: bool = True
    offers: tuple[Offer, ...] = ()
    trials: tuple[Trial, ...] = ()
    state: State | None = None
    effects: Effects | None = None
    estimate: Estimate | None = None
    running: str = "idle"
    consented: bool = False
    commands: tuple[str, ...] = ()
    selected: str = ""
    undo: str | None = None
    redo: str | None = None
    task: Task | None = None
    problem: str = ""
    note: str = ""


Listener = Callable[[ExperimentSnapshot, ExperimentSnapshot], None]


@dataclass
class _Consent:
    """Commands that the user has seen and agreed to, since the program was started."""

    agreed: set[tuple[str, tuple[str, ...]]] = field(default_factory=set)


class ExperimentBench:
    """One experiment. `deliver` and `executors` ("files", "run", "analyse") as in `Workbench`."""

    def __init__(self, deliver: Deliver = at_once, executors: dict[str, Executor] | None = None) -> None:
        given = executors or {}
        self._deliver = deliver
        self._files = Lane("experiment", latest=True, deliver=deliver, executor=given.get("files"))
        self._running = Lane("trials", latest=False, deliver=deliver, executor=given.get("run"))
        self._analysing = Lane("effects", latest=True, deliver=deliver, executor=given.get("analyse"))
        self._listeners: list[Listener] = []
        self._history: History[ExperimentProject] = History(ExperimentProject())
        self._consent = _Consent()
        self._runner: Runner | None = None
        self.snapshot = ExperimentSnapshot()

    def subscribe(self, listener: Listener) -> None:
        """Call ``listener(old, new)`` after every change."""
        self._listeners.append(listener)

    @property
    def busy(self) -> bool:
        return self._files.busy or self._running.busy or self._analysing.busy

    def close(self) -> None:
        """Stop at once; the journal has every trial that was finished."""
        self._listeners.clear()
        if self._runner is not None:
            self._runner.stop(at_once=True)
        for lane in (self._files, self._running, self._analysing):
            lane.close()

    # ---- opening

    def open(self, path: Path) -> None:
        """An experiment's folder or description. Reading it runs nothing."""

        def work(job: Job) -> Experiment:
            from desktop.data.experiment import read_experiment

            return read_experiment(path)

        def done(experiment: Experiment) -> None:
            self._begin(ExperimentProject(experiment), experiment.title or experiment.folder.name, saved=True)

        self._show(task=Task(f"Opening {path.name}"), problem="")
        self._files.submit(f"Opening {path.name}", work, done, self._failed)

    def open_runs(self, path: Path, response: str | None = None) -> None:
        """A table of trials that were run elsewhere."""

        def work(job: Job) -> Any:
            from desktop.data.runs import read_runs

            return read_runs(path, response=response)

        def done(table: Any) -> None:
            analysis = AnalysisSettings(response=table.response)
            self._begin(ExperimentProject(None, table.data, analysis), path.name, saved=True)

        self._show(task=Task(f"Opening {path.name}"), problem="")
        self._files.submit(f"Opening {path.name}", work, done, self._failed)

    def create(self, experiment: Experiment) -> None:
        """A new experiment; not written before `save`."""
        self._begin(ExperimentProject(experiment), experiment.title or experiment.folder.name, saved=False)

    def _begin(self, project: ExperimentProject, name: str, *, saved: bool) -> None:
        self._history = History(project)
        self._show(
            project=project, name=name, saved=saved, trials=(), state=None, effects=None, estimate=None,
            running="idle", consented=False, commands=(), selected="", task=None, problem="", note="",
        )  # fmt: skip
        self._refresh()

    # ---- the description

    def edit(self, label: str, experiment: Experiment, key: str | None = None) -> None:
        """Another description; refused with a sentence if it cannot be."""
        try:
            experiment.design()
        except ValueError as error:
            self._show(problem=str(error))
            return
        self._history.edit(label, replace(self._history.project, experiment=experiment), key)
        self._go(self._history.project)

    def set_analysis(self, label: str, **changes: Any) -> None:
        """Change how the trials are read."""
        analysis = replace(self._history.project.analysis, **changes)
        if analysis != self._history.project.analysis:
            self._history.edit(label, replace(self._history.project, analysis=analysis))
            self._go(self._history.project)

    def toggle_term(self, members: Members) -> None:
        """Take a term out of the model, or put it back."""
        found = self.snapshot.effects
        if found is None:
            return
        terms = self._history.project.analysis.terms
        now = tuple(e.members for e in found.effects) if terms is None else terms
        changed = tuple(m for m in now if m != members) if members in now else (*now, members)
        if changed:
            self.set_analysis("drop a term" if members in now else "put a term back", terms=changed)

    def save(self) -> bool:
        """Write ``experiment.toml``; False with a problem if it cannot be."""
        from desktop.data.experiment import write_experiment
        from desktop.errors import DesktopError

        experiment = self._experiment
        if experiment is None:
            return False
        try:
            experiment.folder.mkdir(parents=True, exist_ok=True)
            write_experiment(experiment)
        except (DesktopError, OSError) as error:
            self._show(problem=str(error))
            return False
        self._show(saved=True, problem="")
        return True

    def undo(self) -> None:
        self._go(self._history.undo())

    def redo(self) -> None:
        self._go(self._history.redo())

    def new_seed(self) -> None:
        """Another random order."""
        experiment = self._experiment
        if experiment is not None:
            plan = replace(experiment.plan, seed=secrets.randbelow(1 << 31))
            self.edit("draw another order", replace(experiment, plan=plan))

    # ---- running

    def consent(self) -> None:
        """The user has seen `snapshot.commands` and agrees to run them."""
        experiment = self._experiment
        if experiment is not None and self.snapshot.commands:
            self._consent.agreed.add((str(experiment.folder), self.snapshot.commands))
            self._show(consented=True)

    def check(self) -> None:
        """Build and run the unperturbed and the fully perturbed program, and estimate the time."""

        def work(runner: Runner, progress: Progress) -> Estimate:
            runner.check(progress)
            return runner.estimate()

        self._run("Checking", work, lambda estimate: self._show(estimate=estimate, note="the check passed"))

    def run(self) -> None:
        """All trials that are not done yet."""
        self._run("Running trials", lambda runner, progress: runner.run(progress), lambda _: None)

    def pause(self) -> None:
        if self._runner is not None and self.snapshot.running == "running":
            self._runner.pause()
            self._show(running="paused")

    def resume(self) -> None:
        if self._runner is not None and self.snapshot.running == "paused":
            self._runner.resume()
            self._show(running="running")

    def stop(self, *, at_once: bool = False) -> None:
        """After the current trial, or now: that trial is dropped."""
        if self._runner is not None and self.snapshot.running != "idle":
            self._runner.stop(at_once=at_once)
            self._show(running="stopping")

    def exclude(self, order: int, reason: str) -> None:
        """Mark a trial as an outlier, with a reason; it is run again."""
        from desktop.data.experiment import exclude
        from desktop.errors import DesktopError

        experiment = self._experiment
        if experiment is None or self.snapshot.running != "idle":
            return
        try:
            exclude(experiment, order, reason)
        except DesktopError as error:
            self._show(problem=str(error))
        self._read_journal()

    def _run(self, title: str, work: Callable[[Runner, Progress], Any], done: Callable[[Any], None]) -> None:
        experiment = self._experiment
        if experiment is None or self.snapshot.running != "idle":
            return
        if not self.snapshot.consented:
            self._show(problem="nothing is run before you have read the commands and agreed to them")
            return
        if not self.snapshot.saved and not self.save():
            return
        from desktop.data.runner import Runner

        runner = Runner(experiment, lambda trial: self._deliver(lambda: self._arrived(trial)))
        self._runner = runner

        def finished(result: Any) -> None:
            self._runner = None
            self._show(running="idle", task=None)
            done(result)
            self._read_journal()

        def failed(error: BaseException) -> None:
            self._runner = None
            self._show(running="idle")
            self._failed(error)
            self._read_journal()

        self._show(running="running", task=Task(title), problem="", note="")
        self._running.submit(
            title, lambda job: work(runner, job), finished, failed, lambda task: self._show(task=task)
        )

    def _arrived(self, trial: Trial) -> None:
        """A trial is on the disk: show it, and what the effects are now."""
        from desktop.data.experiment import state_of

        if self._experiment is not None:
            trials = (*self.snapshot.trials, trial)
            self._show(trials=trials, state=state_of(self._experiment, trials))
            self._analyse()

    # ---- looking

    def select(self, term: str) -> None:
        """Mark a term everywhere."""
        if term != self.snapshot.selected:
            self._show(selected=term)

    def dismiss_problem(self) -> None:
        self._show(problem="")

    # ---- inside

    @property
    def _experiment(self) -> Experiment | None:
        return self._history.project.experiment

    def _go(self, project: ExperimentProject) -> None:
        before = self.snapshot.project
        saved = self.snapshot.saved and project.experiment is before.experiment
        self._show(project=project, saved=saved, problem="", note="")
        self._refresh()

    def _refresh(self) -> None:
        """What follows from the description: offers, commands, consent, the journal."""
        from desktop.core.design import offers
        from desktop.data.runner import shown_commands

        experiment = self._experiment
        if experiment is None:
            self._analyse()
            return
        try:
            commands = shown_commands(experiment)
        except Exception as error:  # a source that cannot be read is told, and nothing can be run
            self._show(problem=str(error), commands=(), consented=False)
            commands = ()
        found = offers(experiment.names) if len(experiment.names) <= 24 else ()
        agreed = (str(experiment.folder), commands) in self._consent.agreed
        self._show(offers=found, commands=commands, consented=agreed)
        self._read_journal()

    def _read_journal(self) -> None:
        from desktop.data.experiment import read_journal, state_of
        from desktop.errors import DesktopError

        experiment = self._experiment
        if experiment is None:
            return
        try:
            trials = read_journal(experiment)
            self._show(trials=trials, state=state_of(experiment, trials))
        except (DesktopError, OSError) as error:
            self._show(problem=str(error), trials=(), state=None)
        self._analyse()

    def _analyse(self) -> None:
        project = self._history.project

        def done(effects: Effects | None) -> None:
            self._show(effects=effects)

        def failed(error: BaseException) -> None:
            # Too few trials yet is no problem to be told of.
            self._show(effects=None, note=str(error) if isinstance(error, ValueError) else self.snapshot.note)

        self._analysing.submit("Analysing", lambda job: _analysed(project), done, failed)

    def _failed(self, error: BaseException) -> None:
        from desktop.errors import DesktopError

        known = isinstance(error, DesktopError | ValueError)
        text = str(error) if known else f"something went wrong ({type(error).__name__}: {error})"
        self._show(problem=text, task=None)

    def _show(self, **changes: Any) -> None:
        changes |= {"undo": self._history.undo_label, "redo": self._history.redo_label}
        old, self.snapshot = self.snapshot, replace(self.snapshot, **changes)
        for listener in tuple(self._listeners):
            listener(old, self.snapshot)


def _analysed(project: ExperimentProject) -> Effects | None:
    """Effects as the settings say; None without trials."""
    from desktop.core.effects import analyse
    from desktop.data.experiment import to_trials

    settings = project.analysis
    if project.imported is not None:
        trials = project.imported
    elif project.experiment is not None and project.experiment.plan.kind != "orthogonal-array":
        trials = to_trials(project.experiment, settings.response)
    else:
        return None
    if not len(trials.y):
        return None
    terms: Sequence[Members] | None = settings.terms
    return analyse(
        trials, error=settings.error, terms=terms, threshold=settings.threshold, blocks=settings.blocks
    )


__all__ = ["AnalysisSettings", "ExperimentBench", "ExperimentProject", "ExperimentSnapshot"]

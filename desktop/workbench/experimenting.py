"""An SPT experiment in the window: description, run, analysis.

As in `desktop.workbench.workbench`: edits replace one frozen tree, snapshots come out, work runs beside the
window. Nothing is run before `consent` was called for exactly these commands since the program was started.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from desktop.progress import Cancelled, Progress
from desktop.workbench.bench import EditBench, changed, problem_text
from desktop.workbench.history import History
from desktop.workbench.jobs import Deliver, Executor, Job, Task, at_once
from desktop.workbench.model import AnalysisSettings, KeptComparison, KeptExperiment
from desktop.workbench.pinning import PinnedFactor, PinnedTrace, pin, region_seconds

if TYPE_CHECKING:
    from desktop.core.array_search import ArraySearch
    from desktop.core.design import Design
    from desktop.core.effects import Effects
    from desktop.core.response_power import Powers
    from desktop.data.answer import MeasuredResponse, SptAnswer
    from desktop.data.confirm import Confirmed
    from desktop.data.experiment import Experiment, State, Trial
    from desktop.data.pilot import Pilot
    from desktop.data.places import Spot
    from desktop.data.runner import Estimate, Runner
    from desktop.data.runs import RunTable
    from desktop.data.templates import Request
    from desktop.workbench.effect_comparison import ComparedTable

T = TypeVar("T")

#: Up to so many factors the designs that fit are listed; more take too long to search.
LISTED = 32

UNREAD = "nothing is run before you have read the commands and agreed to them"
#: Commands that the user has seen and agreed to since the program was started, with the folder they run in.
_agreed: set[tuple[str, tuple[str, ...]]] = set()


@dataclass(frozen=True, eq=False)
class ImportedTrials:
    """Trials that were run elsewhere; None: a table of effects alone. `where`: only rows with these values.
    `left_out`: labels of trials that do not count, with the reason."""

    path: Path
    table: RunTable | None
    where: tuple[tuple[str, str], ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()

    def counted(self) -> RunTable | None:
        """The trials that count."""
        import numpy as np

        if self.table is None:
            return None
        out = {label for label, _ in self.left_out}
        return self.table.only(np.array([label not in out for label in self.table.data.label], bool))


@dataclass(frozen=True)
class ExperimentProject:
    """What can be undone. `imported`: trials read from a table instead of an experiment that is run here.
    `tables`: others to compare with. `regions`: factor -> region of a trace that the user says it is."""

    experiment: Experiment | None = None
    imported: ImportedTrials | None = None
    analysis: AnalysisSettings = field(default_factory=AnalysisSettings)
    tables: tuple[ComparedTable, ...] = ()
    regions: dict[str, str] = field(default_factory=dict)

    @property
    def table(self) -> RunTable | None:
        """The trials that were run elsewhere."""
        return None if self.imported is None else self.imported.table

    @property
    def measured(self) -> MeasuredResponse:
        """The response that is read, and what is known of it and of the factors."""
        from desktop.data.answer import MeasuredResponse

        source = self.table or self.experiment
        return MeasuredResponse() if source is None else MeasuredResponse.of(source, self.analysis.response)


@dataclass(frozen=True, eq=False)
class ExperimentSnapshot:
    """What is to be shown. `saved`: the description on the disk is the one shown. `selected`: a term.
    `effects`: of the chosen terms; `every`: of all that can be estimated. `parts`: effects at every size of
    the delay, or number of processors, that the open table says. `hierarchy`: what a model of chosen terms
    lacks. `powers`: which power of the response fits. `unread`: why there are no effects. `unit_s`: what one
    unit of delay takes here. `pilot`: the result of the last one."""

    project: ExperimentProject = ExperimentProject()
    name: str = ""
    saved: bool = True
    design: Design | None = None
    offers: tuple[Design, ...] = ()
    trials: tuple[Trial, ...] = ()
    state: State | None = None
    effects: Effects | None = None
    every: Effects | None = None
    search: ArraySearch | None = None
    parts: tuple[ComparedTable, ...] = ()
    hierarchy: str = ""
    powers: Powers | None = None
    unread: str = ""
    answer: SptAnswer | None = None
    estimate: Estimate | None = None
    pilot: Pilot | None = None
    confirmed: Confirmed | None = None
    unit_s: float = float("nan")
    running: str = "idle"
    consented: bool = False
    commands: tuple[str, ...] = ()
    selected: str = ""
    pinned: PinnedTrace | None = None
    task: Task | None = None
    problem: str = ""
    note: str = ""

    @property
    def responses(self) -> tuple[str, ...]:
        """Names of the responses that can be read."""
        experiment, table = self.project.experiment, self.project.table
        if experiment is not None:
            return tuple(one.name for one in experiment.responses)
        return () if table is None else (table.response, *table.others)

    @property
    def read_response(self) -> str:
        """Which of `responses` is read; "" if there are none."""
        analysis = self.project.analysis.response if self.project.imported is None else None
        return analysis or next(iter(self.responses), "")

    @property
    def effect_unit(self) -> str:
        """Of effects here and in the parts."""
        measured = self.project.measured
        return measured.unit if self.effects is None else measured.effect_unit(self.effects)

    def region_of(self, factor: str, pinned: PinnedTrace) -> str:
        """The region of a factor: as the user said, else called as its routine or itself; "" if none."""
        region = self.project.regions.get(factor, "")
        if region in pinned.names:
            return region
        description = self.project.measured.factors.get(factor)
        return pinned.likely(description.routine if description and description.routine else factor)

    def pinned_factors(self, pinned: PinnedTrace) -> tuple[PinnedFactor, ...]:
        """Of every factor of the selected term, or of an experiment's table where it is no term."""
        every = self.every or self.effects
        effect = next((e for e in every.effects if e.term == self.selected), None) if every else None
        if every is None or effect is None:
            return ()
        names = [every.trials.factors[j] for j in effect.members]
        regions = {name: self.region_of(name, pinned) for name in names}
        return tuple(PinnedFactor(name, region, pinned.of(region)) for name, region in regions.items())

    @property
    def why_empty(self) -> str:
        """Why there are no effects of trials, and what to do."""
        imported = self.project.imported
        if self.search is not None:
            if self.parts:
                return (
                    "One place at a time has no interactions: step 5 shows effects against the size of the "
                    "delay."
                )
            return "An orthogonal array is a search: step 5 ranks its runs and shows the mean of every level."
        if imported is not None and imported.table is None:
            return "These are effects without their trials: step 5 compares them."
        if imported is not None:
            return f"These trials cannot be read yet: {self.unread or 'none has a response'}."
        note = f" ({self.unread})" if self.unread else ""
        return f"No effect can be seen yet{note}. Run trials in step 3, or paste responses there."

    @property
    def run_s(self) -> float:
        """Seconds of one run: as estimated, else the mean of the trials so far; NaN if nothing ran."""
        if self.estimate is not None:
            return self.estimate.run_s
        took = [t.duration_s for t in self.trials if t.duration_s > 0]
        return sum(took) / len(took) if took else float("nan")


@dataclass(frozen=True, eq=False)
class Errand(Generic[T]):
    """Runs besides the trials, which need the user's consent: all `commands` that they may execute, as `asks`
    lists them."""

    title: str
    commands: tuple[str, ...]
    asks: Callable[[Experiment], Iterable[str]]
    work: Callable[[Runner, Progress], T]
    done: Callable[[T], None]


class ExperimentBench(EditBench[ExperimentSnapshot, ExperimentProject]):
    """One experiment. `deliver` and `executors` ("files", "plan", "run", "analyse", "trace") as in
    `Workbench`."""

    def __init__(
        self,
        deliver: Deliver = at_once,
        executors: dict[str, Executor] | None = None,
        history: History | None = None,
    ) -> None:
        super().__init__(ExperimentSnapshot(), ExperimentProject(), deliver, executors, history)
        self._files, self._planning = self._lane("files"), self._lane("plan")
        self._running = self._lane("run", latest=False)
        self._analysing, self._tracing = self._lane("analyse"), self._lane("trace")
        self._runner: Runner | None = None
        self._digest = ""  # of the description or table as it was read or written last
        self._trace: Path | None = None  # where effects are pinned, or will be when somebody looks

    def close(self) -> None:
        """Stop at once; the journal has every trial that was finished."""
        if self._runner is not None:
            self._runner.stop(at_once=True)
        super().close()

    # ---- opening

    def open(self, path: Path, response: str | None = None) -> None:
        """An experiment (its folder or description), or a table of runs. Reading it runs nothing."""
        self.open_record(KeptExperiment(path, settings=AnalysisSettings(response)))

    def choose_rows(
        self, response: str | None = None, where: tuple[tuple[str, str], ...] | None = None
    ) -> None:
        """Another response or other rows of the table that is open; None: as they are."""
        from desktop.data.runs import read_table

        imported = self.project.imported
        if imported is None:
            if response is not None:
                self.set_analysis(f"read {response}", response=response, terms=None)
            return

        rows = imported.where if where is None else where

        def done(table: RunTable) -> None:
            project = self.project
            filtered = replace(imported, table=table, where=rows, left_out=())
            analysis = replace(project.analysis, response=table.response, terms=None)
            self._show(task=None)
            self._edit("choose rows", replace(project, imported=filtered, analysis=analysis))

        name = response or self.project.analysis.response
        self._begin_work(
            self._files,
            f"Opening {imported.path.name}",
            lambda _: read_table(imported.path, response=name, where=dict(rows)),
            done,
        )

    def open_record(self, record: KeptExperiment) -> None:
        """An experiment or table of runs of a project, read as it was. Nothing is run.

        What has changed since, and what cannot be compared with any more, is named in
        `ExperimentSnapshot.problem`.
        """

        def done(result: tuple[ExperimentProject, str, str]) -> None:
            project, digest, problem = result
            self._begin(project, record.path.name, saved=True, digest=digest, trace=record.trace)
            if problem:
                self._show(problem=problem)

        self._begin_work(self._files, f"Opening {record.name}", lambda _: _read_record(record), done)

    def record(self) -> KeptExperiment | None:
        """The record that a project saves; None where nothing is open or it was never written."""
        project = self.project
        imported, experiment = project.imported, project.experiment
        if imported is None and (experiment is None or not self._digest):
            return None
        return KeptExperiment(
            imported.path.absolute() if imported else experiment.folder.absolute() if experiment else Path(),
            self._digest,
            project.analysis,
            imported.where if imported else (),
            imported.left_out if imported else (),
            tuple(KeptComparison(t.path.absolute(), t.processors, t.delay) for t in project.tables),
            None if self._trace is None else self._trace.absolute(),
            project.regions,
        )

    def read_again(self) -> None:
        """Read it again from the disk; unsaved changes are lost."""
        record = self.record()
        if record is not None:
            self.open_record(replace(record, sha256=""))

    def create(self, experiment: Experiment) -> None:
        """Open a new experiment, which `save` writes."""
        self._begin(ExperimentProject(experiment), "", saved=False)

    def create_in(self, folder: Path) -> None:
        """Open a new experiment of the sources in a folder; their prepared places are its factors."""
        from desktop.data.templates import of_prepared

        title = f"Reading the sources in {folder.name}"
        self._begin_work(self._files, title, lambda _: of_prepared(folder), self.create)

    def look_for_places(
        self, request: Request, trace: Path | None, done: Callable[[tuple[Spot, ...]], None]
    ) -> None:
        """Find routines and loops of a program, the hottest of a trace first; `done` gets them."""
        from desktop.data.templates import offers_of

        def work(job: Job) -> tuple[Spot, ...]:
            seconds = None if trace is None else region_seconds(trace, job)
            return () if request.template == "command" else offers_of(replace(request, seconds=seconds))

        def show(spots: tuple[Spot, ...]) -> None:
            self._show(task=None)
            done(spots)

        self._begin_work(self._files, "Reading the sources", work, show)

    def make_experiment(self, folder: Path, request: Request, then: Callable[[], None]) -> None:
        """Make an experiment of a program in a folder of its own, open it, and call `then`."""
        from desktop.data.templates import new_experiment

        def done(experiment: Experiment) -> None:
            self.open(experiment.folder)
            then()

        title = f"Copying the program to {folder.name}"
        self._begin_work(self._files, title, lambda _: new_experiment(folder, request), done)

    def write_beside(self, path: Path, write: Callable[[Job], None]) -> None:
        """Write a file about what is shown, beside the window."""
        self._begin_work(
            self._files,
            f"Writing {path.name}",
            write,
            lambda _: self._show(task=None, note=f"wrote {path.name}"),
        )

    def open_example(self, folder: Path) -> None:
        """Copy the bundled quicksort into a folder of the user's and open it there."""

        def copy() -> None:
            import shutil

            from desktop import resources
            from desktop.data.naming import DESCRIPTION
            from desktop.errors import ExperimentError

            if (folder / DESCRIPTION).exists():
                raise ExperimentError(
                    "holds an experiment already", file=folder, hint="choose another folder"
                )
            folder.mkdir(parents=True, exist_ok=True)
            for file in sorted((resources.folder() / "examples" / "quicksort").iterdir()):
                shutil.copyfile(file, folder / file.name)

        if self.attempt(copy):
            self.open(folder)

    def _begin(
        self,
        project: ExperimentProject,
        name: str,
        *,
        saved: bool,
        digest: str = "",
        trace: Path | None = None,
    ) -> None:
        """Show another project; `name`: where it has no experiment to take it from."""
        self._restart(project)
        self._digest, self._trace = digest, trace
        experiment = project.experiment
        design = None if experiment is None else experiment.design()
        name = name if experiment is None else experiment.name
        self._publish(ExperimentSnapshot(project=project, name=name, saved=saved, design=design))
        self._refresh()

    # ---- the description

    def edit(self, label: str, experiment: Experiment, key: str | None = None) -> bool:
        """Change the description; False, with a problem, if it is not valid."""
        from desktop.data.experiment import checked

        if experiment == self._experiment:
            return True
        if not self.attempt(lambda: checked(experiment)):
            return False
        self._edit(label, replace(self.project, experiment=experiment), key)
        return True

    def set_analysis(self, label: str, **changes: object) -> None:
        """Change how the trials are read."""
        analysis = changed(self.project.analysis, changes)
        if analysis != self.project.analysis:
            self._edit(label, replace(self.project, analysis=analysis))

    def toggle_term(self, term: str) -> None:
        """Take a term out of the model, or put it back."""
        effects = self.snapshot.every
        members = next((e.members for e in effects.effects if e.term == term), None) if effects else None
        if effects is None or members is None:
            return
        every = [e.members for e in effects.effects]
        terms = self.project.analysis.terms
        now = set(every if terms is None else terms)
        changed = tuple(m for m in every if (m in now) != (m == members))
        if not changed:
            self._show(problem="a model needs one term at least")
            return
        label = "drop a term" if members in now else "put a term back"
        self.set_analysis(label, terms=None if len(changed) == len(every) else changed)

    def keep_marked(self) -> bool:
        """Reduce the model to the marked terms and their main effects; False if none is marked."""
        effects = self.snapshot.effects
        marked = {e.members for e in effects.effects if e.significant} if effects is not None else set()
        terms = marked | {(j,) for members in marked for j in members}
        every = self.snapshot.every or effects
        if every is not None and terms:
            kept = tuple(e.members for e in every.effects if e.members in terms)
            self.set_analysis("keep the marked terms", terms=kept)
        return bool(terms)

    def add_headers(self) -> tuple[str, ...]:
        """Copy the delay for C, C++, Fortran and Python beside the sources; what is there already stays."""
        import shutil

        from desktop import resources

        experiment = self._experiment
        if experiment is None:
            return ()
        added: list[str] = []

        def copy() -> None:
            for file in sorted((resources.folder() / "spt").iterdir()):
                # Python keeps a folder of its own beside a module that was imported.
                if file.is_file() and not (experiment.folder / file.name).exists():
                    shutil.copyfile(file, experiment.folder / file.name)
                    added.append(file.name)

        self.attempt(copy)
        return tuple(added)

    def save(self) -> bool:
        """Write ``experiment.toml``; False with a problem if it cannot be."""
        from desktop.data.experiment import write_experiment
        from desktop.data.project_file import digest_of

        experiment = self._experiment
        if experiment is None:
            return False

        def write() -> None:
            experiment.folder.mkdir(parents=True, exist_ok=True)
            write_experiment(experiment)

        if self.attempt(write):
            self._digest = digest_of(experiment.folder)
            self._show(saved=True)
        return self.snapshot.saved

    def new_seed(self) -> None:
        """Another random order."""
        experiment = self._experiment
        if experiment is not None:
            plan = replace(experiment.plan, seed=secrets.randbelow(1 << 31))
            self.edit("draw another order", replace(experiment, plan=plan))

    def export_sheet(self, path: Path) -> bool:
        """Write the run sheet as CSV."""
        from desktop.data.runs import write_sheet

        experiment = self._experiment
        return experiment is not None and self.attempt(
            lambda: write_sheet(path, experiment.design(), experiment.sheet())
        )

    def write_job_script(self, path: Path) -> bool:
        """Write a job array; nothing is submitted."""
        from desktop.data.jobs import write_script

        experiment = self._experiment
        return experiment is not None and self.attempt(lambda: write_script(experiment, path))

    # ---- running

    def consent(self) -> None:
        """The user has seen `snapshot.commands` and agrees to run them."""
        experiment = self._experiment
        if experiment is not None and self.snapshot.commands:
            _agreed.add((str(experiment.folder), self.snapshot.commands))
            self._show(consented=True, problem="")

    def check(self) -> None:
        """Build and run the unperturbed and the fully perturbed program, and estimate the time."""

        def work(runner: Runner, progress: Progress) -> Estimate:
            runner.check(progress)
            return runner.estimate(progress)

        self._run("Checking", work, lambda estimate: self._show(estimate=estimate, note="the check passed"))

    def pilot(self) -> Errand[Pilot] | None:
        """A pilot, which finds the size of the delay at which every place shows; None, with a problem, where
        there is no delay to choose."""
        from desktop.data.pilot import pilot_commands, run_pilot

        return self._errand("Running the pilot", pilot_commands, run_pilot, self._piloted)

    def confirmation(self, names: Sequence[str]) -> Errand[Confirmed] | None:
        """Runs of these factors at +, and of the unperturbed program, in turn; None, with a problem, if they
        cannot be."""
        from desktop.data.confirm import confirm_commands, run_confirmation, setting_of

        effects, response = self.snapshot.effects, self.project.measured.response
        if effects is None or not names:
            return None
        return self._errand(
            "Confirming",
            lambda experiment: confirm_commands(experiment, setting_of(experiment, names)),
            lambda runner, progress: run_confirmation(
                runner, effects, names, response=response, progress=progress
            ),
            lambda confirmed: self._show(confirmed=confirmed),
        )

    def _errand(
        self,
        title: str,
        asks: Callable[[Experiment], Iterable[str]],
        work: Callable[[Runner, Progress], T],
        done: Callable[[T], None],
    ) -> Errand[T] | None:
        experiment = self._experiment
        commands = None if experiment is None else self.result_of(lambda: tuple(asks(experiment)))
        return Errand(title, commands, asks, work, done) if commands else None

    def run_errand(self, errand: Errand[T]) -> None:
        """Run an errand whose commands the user has read, unless they have changed since."""
        experiment = self._experiment
        if experiment is None or self.snapshot.running != "idle":
            return
        if self.result_of(lambda: tuple(errand.asks(experiment))) == errand.commands:
            self._start(errand.title, errand.work, errand.done)
        else:
            self._show(problem=self.snapshot.problem or UNREAD)

    def _piloted(self, pilot: Pilot) -> None:
        """Show a pilot, and add its effects to the compared tables."""
        from desktop.data.pilot import PILOT
        from desktop.workbench.effect_comparison import tables_in

        experiment, project = self._experiment, self.project
        assert experiment is not None
        path = experiment.folder / PILOT
        self._show(pilot=pilot)
        # One size alone is nothing to compare.
        tables = tables_in(path) if pilot.largest > pilot.first else ()
        others = tuple(table for table in project.tables if table.path != path)
        if tables or len(others) < len(project.tables):
            self._edit("add the pilot", replace(project, tables=(*others, *tables)))

    def run(self) -> None:
        """Run all trials that are not done yet."""
        self._run("Running trials", lambda runner, progress: runner.run(progress), lambda _: None)

    def pause(self) -> None:
        if self._runner is not None and self.snapshot.running == "running":
            self._runner.pause()
            self._show(running="paused")

    def resume(self) -> None:
        if self._runner is not None and self.snapshot.running == "paused":
            self._runner.resume()
            self._show(running="running")

    def pause_or_go_on(self) -> None:
        (self.resume if self.snapshot.running == "paused" else self.pause)()

    def stop(self, *, at_once: bool = False) -> None:
        """Stop after the current trial, or `at_once`, which drops it."""
        if self._runner is not None and self.snapshot.running != "idle":
            self._runner.stop(at_once=at_once)
            self._show(running="stopping")

    def cancel(self) -> None:
        """Cancel what runs; of trials only the running one is dropped."""
        if self.snapshot.running != "idle":
            self.stop(at_once=True)
            return
        for lane in (self._files, self._tracing):
            lane.cancel()
        self._show(task=None)

    def exclude(self, order: int, reason: str) -> bool:
        """Mark a trial as an outlier, with a reason; it is run again."""
        from desktop.data.experiment import exclude

        experiment = self._experiment
        if experiment is None or self.snapshot.running != "idle":
            return False
        excluded = self.attempt(lambda: exclude(experiment, order, reason))
        if excluded:
            self._read_journal()
        return excluded

    def leave_out(self, label: str, reason: str) -> bool:
        """Leave a trial of an opened table out of the analysis, with a reason; the table stays as it is."""
        project = self.project
        if project.imported is None:
            return False
        if not reason.strip():
            self._show(problem="a trial is left out for a reason only, give one")
            return False
        others = tuple(one for one in project.imported.left_out if one[0] != label)
        imported = replace(project.imported, left_out=(*others, (label, reason.strip())))
        self._edit(f"leave trial {label} out", replace(project, imported=imported))
        return True

    def enter(self, values: Mapping[int, tuple[float, ...]]) -> bool:
        """Responses measured elsewhere, by order: they go to the journal as trials run here do. A trial that
        counts already is excluded first, with that reason; both stay in the journal."""
        from desktop.data.experiment import Journal, Trial, state_of

        experiment = self._experiment
        if experiment is None or self.snapshot.running != "idle":
            return False
        if not self.snapshot.saved and not self.save():
            return False

        def write() -> None:
            keys = experiment.planned()
            with Journal(experiment) as journal:
                for order, responses in values.items():
                    replicate, treatment = keys[order]
                    state = state_of(experiment, journal.trials)
                    old = state.good.get((replicate, treatment))
                    if old is not None:
                        reason = "replaced by another value"
                        journal.add(Trial(order, replicate, treatment, old.attempt, "excluded", note=reason))
                    attempt = state.attempts.get((replicate, treatment), 0) + 1
                    journal.add(
                        Trial(
                            order, replicate, treatment, attempt, "ok", responses, note="measured elsewhere"
                        )
                    )

        written = self.attempt(write)
        self._read_journal()
        return written

    def paste(self, text: str, first: int = 1) -> int:
        """Enter pasted responses, from trial `first` on or as their heading says; how many."""
        from desktop.workbench.entering import read_pasted

        experiment = self._experiment
        values = None if experiment is None else self.result_of(lambda: read_pasted(text, experiment, first))
        return len(values) if values is not None and self.enter(values) else 0

    def collect(self) -> None:
        """Add results of a job array to the journal."""
        from desktop.data.jobs import collect

        experiment = self._experiment
        if experiment is not None and self.snapshot.running == "idle":
            self.attempt(lambda: self._show(note=f"{collect(experiment)} results were added"))
            self._read_journal()

    def _run(self, title: str, work: Callable[[Runner, Progress], T], done: Callable[[T], None]) -> None:
        experiment = self._experiment
        if experiment is None or self.snapshot.running != "idle":
            return
        self._ask(experiment)  # sources may have changed since the commands were shown
        if not self.snapshot.consented:
            self._show(problem=self.snapshot.problem or UNREAD)
            return
        self._start(title, work, done)

    def _start(self, title: str, work: Callable[[Runner, Progress], T], done: Callable[[T], None]) -> None:
        """Run beside the window; callers have the user's consent."""
        experiment = self._experiment
        assert experiment is not None
        if not self.snapshot.saved and not self.save():
            return
        from desktop.data.runner import Runner

        runner = Runner(experiment, lambda trial: self._deliver(lambda: self._arrived(trial)))
        self._runner = runner

        def finished(result: T | None) -> None:
            self._runner = None
            self._show(running="idle", task=None)
            if result is not None:
                done(result)
            self._read_journal()

        def failed(error: BaseException) -> None:
            self._runner = None
            self._show(running="idle")
            self._failed(error)
            self._read_journal()

        def stoppable(job: Job) -> T | None:
            """None if it was stopped, after which the window is as ready as before."""
            try:
                return work(runner, job)
            except Cancelled:
                if job.cancelled:
                    raise
                return None

        self._show(running="running", task=Task(title), problem="", note="")
        self._running.submit(title, stoppable, finished, failed, lambda task: self._show(task=task))

    def _arrived(self, trial: Trial) -> None:
        """A trial is on the disk: show it, and what the effects are now."""
        from desktop.data.experiment import state_of

        if self._experiment is not None:
            trials = (*self.snapshot.trials, trial)
            self._show(trials=trials, state=state_of(self._experiment, trials))
            self._analyse()

    # ---- comparing

    def add_table(self, path: Path) -> None:
        """Another table of runs or effects, or another experiment, to compare with; several where it says
        several sizes of the delay or numbers of processors."""
        from desktop.workbench.effect_comparison import tables_in

        def done(tables: tuple[ComparedTable, ...]) -> None:
            project = self.project
            self._show(task=None)
            self._edit(f"add {path.stem}", replace(project, tables=(*project.tables, *tables)))

        self._begin_work(self._files, f"Opening {path.name}", lambda _: tables_in(path), done)

    def set_table(self, index: int, **changes: object) -> None:
        """Say with how many processors, or which delay, a table was measured."""
        project = self.project
        tables = list(project.tables)
        tables[index] = changed(tables[index], changes)
        self._edit(f"change {tables[index].name}", replace(project, tables=tuple(tables)))

    def remove_table(self, index: int) -> None:
        project = self.project
        tables = tuple(t for k, t in enumerate(project.tables) if k != index)
        self._edit(f"remove {project.tables[index].name}", replace(project, tables=tables))

    def pin(self, path: Path) -> None:
        """Open a trace to see where regions run."""

        def done(pinned: PinnedTrace) -> None:
            self._trace = path
            self._show(pinned=pinned, task=None)

        self._begin_work(self._tracing, f"Opening {path.name}", lambda job: pin(path, job, job.stop), done)

    def pin_record_trace(self) -> None:
        """Open the trace that the record names, unless that is open or there is none."""
        if self._trace is not None and self.snapshot.pinned is None and not self._tracing.busy:
            self.pin(self._trace)

    def pin_to(self, factor: str, region: str) -> None:
        """Say which region of a trace a factor is; "": the one that is called like it."""
        regions = dict(self.project.regions)
        regions.pop(factor, None)
        if region:
            regions[factor] = region
        if regions != self.project.regions:
            self._edit(f"pin {factor} to a region", replace(self.project, regions=regions))

    # ---- looking

    def select(self, term: str) -> None:
        """Mark a term everywhere."""
        if term != self.snapshot.selected:
            self._show(selected=term)

    def result_of(self, call: Callable[[], T]) -> T | None:
        """What `call` returns; None, with a problem, if it raises."""
        from desktop.errors import DesktopError

        try:
            answer = call()
        except (DesktopError, ValueError, OSError) as error:
            self._show(problem=problem_text(error))
            return None
        if self.snapshot.problem:
            self._show(problem="")
        return answer

    def attempt(self, call: Callable[[], object]) -> bool:
        """Whether `call` returns; False, with a problem, if it raises."""
        return bool(self.result_of(lambda: (call(), True)))

    # ---- inside

    @property
    def _experiment(self) -> Experiment | None:
        return self.project.experiment

    def turn(self, project: ExperimentProject) -> None:
        previous = self.snapshot.project
        saved = self.snapshot.saved and project.experiment is previous.experiment
        design = None if project.experiment is None else project.experiment.design()
        self._show(project=project, design=design, saved=saved, problem="", note="")
        if project.experiment is not previous.experiment:
            self._refresh()
        elif project.analysis is not previous.analysis or project.imported is not previous.imported:
            self._analyse()

    def _refresh(self) -> None:
        """What follows from the description: offers, commands, consent, the journal."""
        experiment = self._experiment
        if experiment is None:
            self._analyse()
            return
        self._ask(experiment)
        names = experiment.names

        def offered(job: Job) -> tuple[tuple[Design, ...], float]:
            from desktop.core.design import offers
            from desktop.data.answer import delay_unit_of

            # The same that all sentences on this experiment refer to.
            return offers(names) if len(names) <= LISTED else (), delay_unit_of(experiment)

        def done(outcome: tuple[tuple[Design, ...], float]) -> None:
            self._show(offers=outcome[0], unit_s=outcome[1])

        self._planning.submit("Designs", offered, done, self._failed)
        self._read_journal()

    def _ask(self, experiment: Experiment) -> None:
        """The commands as they are now, and whether these were agreed to."""
        from desktop.data.runner import shown_commands
        from desktop.errors import DesktopError

        try:
            commands = shown_commands(experiment)
        except (DesktopError, OSError, ValueError) as error:  # nothing can be run then
            self._show(problem=str(error), commands=(), consented=False)
            return
        self._show(commands=commands, consented=(str(experiment.folder), commands) in _agreed)

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
        project = self.project

        def failed(error: BaseException) -> None:
            # Too few trials yet is no problem to show.
            self._show(**_UNREAD, unread=str(error))

        def done(fields: dict[str, object]) -> None:
            self._show(**_UNREAD | fields, unread="")

        self._analysing.submit("Analysing", lambda job: _analysis(project), done, failed)


def _read_record(record: KeptExperiment) -> tuple[ExperimentProject, str, str]:
    """What a record names, read again; the digest of its file; and, in a sentence, what has changed since."""
    from desktop.data.experiment import read_experiment
    from desktop.data.project_file import digest_of
    from desktop.data.runs import kind_of, read_table
    from desktop.errors import DesktopError
    from desktop.workbench.effect_comparison import read_compared

    settings, problems = record.settings, []
    experiment, imported = None, None
    if record.path.is_dir() or record.path.suffix == ".toml":
        experiment = read_experiment(record.path)
        factors = len(experiment.names)
        digest = digest_of(experiment.folder)
    elif (kind := kind_of(record.path)) == "effects":
        imported = ImportedTrials(record.path, None)
        factors, digest = 0, digest_of(record.path)
    else:
        table = read_table(record.path, response=settings.response, where=dict(record.where), kind=kind)
        imported = ImportedTrials(record.path, table, record.where, record.left_out)
        settings = replace(settings, response=table.response)
        factors = len(table.data.factors)
        digest = digest_of(record.path)
    if record.sha256 not in ("", digest):
        problems.append(f"{record.name} is not as it was when the project was saved")
    if any(members[-1] >= factors for members in settings.terms or ()):
        problems.append("chosen terms name factors that it no longer has, so all terms are shown")
        settings = replace(settings, terms=None)
    compared = []
    for one in record.compared:
        try:
            comparison = read_compared(one.path, delay=one.delay, processors=one.processors)
        except (DesktopError, OSError, ValueError) as error:
            problems.append(f"it cannot be compared with {one.path.name}: {error}")
            continue
        compared.append(replace(comparison, processors=one.processors, delay=one.delay))
    project = ExperimentProject(experiment, imported, settings, tuple(compared), record.regions)
    return project, digest, "; ".join(problems)


#: Nothing was read from the trials.
_UNREAD: dict[str, object] = {
    "answer": None,
    "effects": None, "every": None, "search": None, "parts": (), "hierarchy": "", "powers": None,
}  # fmt: skip


def _analysis(project: ExperimentProject) -> dict[str, object]:
    """Fields of the snapshot: effects as the settings say (of an array: its ranking); {} without trials."""
    from desktop.core.array_search import array_search_of
    from desktop.core.effects import analyse, condensed
    from desktop.core.response_power import powers_of
    from desktop.data.experiment import search, to_trials
    from desktop.workbench.effect_comparison import by_delay, tables_in

    settings, experiment, imported = project.analysis, project.experiment, project.imported
    parts: tuple[ComparedTable, ...] = ()
    if imported is not None:
        table = imported.counted()
        if table is None:
            return {"parts": tables_in(imported.path)}
        parts = by_delay(imported.path, table)
        if table.array:
            return {"search": array_search_of(table.data), "parts": parts}
        trials = table.data
    elif experiment is None:
        return {}
    elif experiment.plan.kind == "orthogonal-array":
        return {"search": search(experiment, settings.response)}
    else:
        trials = to_trials(experiment, settings.response)
    if not len(trials.y):
        return {}

    trials = condensed(trials, settings.inner)

    read = partial(
        analyse, trials, threshold=settings.threshold, blocks=settings.blocks, transform=settings.transform,
        covariate=settings.covariate,
    )  # fmt: skip
    effects = every = read(error=settings.error, terms=settings.terms)
    if settings.terms is not None:
        try:
            every = read(error=settings.error)
        except ValueError:  # the chosen error needs terms to be left out
            every = read()
    return {
        "effects": effects,
        "every": every,
        "parts": parts,
        "hierarchy": "" if settings.terms is None else _hierarchy(effects),
        "powers": powers_of(effects),
        "answer": project.measured.answer(effects),
    }


def _hierarchy(effects: Effects) -> str:
    """Interactions that stand without one of their main effects."""
    names = effects.trials.factors
    in_model = {members for e in effects.effects for members in [e.members]}
    named = {name for e in effects.effects for name in (e.term, *e.aliases)}
    for e in effects.effects:
        for j in e.members:
            if len(e.members) > 1 and (j,) not in in_model and names[j] not in named:
                return f"the model keeps {e.term} without {names[j]}, so it depends on how levels are coded"
    return ""

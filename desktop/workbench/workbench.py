"""Document model of the main window: applies edits, publishes snapshots.

`Workbench.snapshot` says what is to be shown. Every change makes a new one and calls the subscribers with
the old and the new; what did not change is the same object, so that they redraw the difference only.
All methods are called in the owner's thread (see `desktop.workbench.jobs`).
"""

from __future__ import annotations

import math
import time
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from desktop.core.arrays import Bytes
from desktop.core.envelope import envelope
from desktop.core.phases import PhaseFit, Sweep, least_n
from desktop.core.selection import LIMIT, Suggestion
from desktop.data import memory
from desktop.data.naming import run_name
from desktop.errors import CurveError, DesktopError
from desktop.progress import Progress
from desktop.workbench.bench import EditBench, changed
from desktop.workbench.history import AnyBranch, Branch, History
from desktop.workbench.jobs import Deliver, Executor, Job, Task, at_once
from desktop.workbench.limiting import limited
from desktop.workbench.model import (
    DETECT,
    TRACKS,
    Annotation,
    NamedView,
    OpenOptions,
    PhaseName,
    PhaseSettings,
    Project,
    ReportChoices,
    SpeakerNote,
    View,
)
from desktop.workbench.phase_statistics import NO_STATS, Part, PhaseStatistics, StatisticsRequest
from desktop.workbench.tracing import (
    Document,
    Fits,
    Marks,
    OpenedTrace,
    Problem,
    SweepKey,
    SweepResult,
    TraceRun,
    build_run,
    covers,
    first_settings,
    landmarks_of,
    load_and_compile,
    open_source,
    part_of,
    problem_of,
    reaches,
    rows_of,
    settings_on,
    stamp_of,
    suggested_of,
    sweep_key,
    sweep_of,
    with_breakpoints,
    with_names,
)
from desktop.workbench.what_if import NO_WHAT_IF, WhatIf, WhatIfRunner

if TYPE_CHECKING:  # the heavy modules are loaded by the first job, beside the window
    from desktop.core.changes import Changes
    from desktop.core.curve import StepCurve
    from desktop.core.phase_stats import Firm, PhaseRow
    from desktop.data.causality import Causality
    from desktop.data.causes import Causes
    from desktop.data.events import Activity
    from desktop.data.exporters import Exported
    from desktop.data.iterations import Level
    from desktop.data.statistics import Statistics
    from desktop.data.store import TraceStore
    from desktop.data.utilization import Rules, Utilization

T = TypeVar("T")
#: Why there are no accounts.
WAITS_RUNNING = "Who waited for whom is being computed."
WAITS_CANCELLED = "Computing who waited for whom was cancelled; open the trace again to do it."
#: Seconds that a request for statistics must last before it is answered.
SETTLE = 0.12
#: The largest number of phases.
N_LIMIT = 999
#: A fit expected to take longer (seconds) is computed beside the window; a frame lasts 0.0167.
INLINE = 0.008
#: Kernels compiled in a process from which on it counts as the first start, and about how many there are
#: until a trace is on the screen; later starts load them.
FIRST_START, KERNELS = 12, 200
#: Traces that stay ready to be shown again, at most.
PARKED = 4
#: Fits with names in the cache, so that what is shown again is the same object.
NAMED = 8
#: Breakpoints set by hand come no closer to each other than this share of the run.
CLOSEST = 1e-6
#: Fields of a project that depend on its curve.
_OF_CURVE = ("phases", "rules", "limit", "aside", "curve")
_Go: TypeAlias = "Callable[[AnyBranch], AnyBranch | None]"


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What is to be shown. `fit` may be older than `project` while `refining`; `preview`: a breakpoint is
    dragged; `sweep_cancelled`: the user does not want every n to be fitted; `preparing`: kernels are being
    compiled, as at the first start. `marked`: regions, by their names in the trace, that are to be seen
    wherever regions are shown. `boundaries`: of iterations, in seconds, that are to be drawn over time.
    `what_if`: the run with changes. `tracks`: curves drawn below the one that is fitted, with their names.
    `repeated`: a fit, and how firm its breakpoints are over runs."""

    project: Project = field(default_factory=Project)
    document: Document | None = None
    run: TraceRun | None = None
    sweep: Sweep | None = None
    suggestion: Suggestion | None = None
    fit: PhaseFit | None = None
    rows: tuple[PhaseRow, ...] = ()
    preview: bool = False
    refining: bool = False
    sweep_cancelled: bool = False
    opening: Task | None = None
    preparing: Task | None = None
    problem: Problem | None = None
    statistics: PhaseStatistics = NO_STATS
    marked: tuple[str, ...] = ()
    boundaries: tuple[float, ...] = ()
    tracks: tuple[tuple[str, StepCurve], ...] = ()
    what_if: WhatIf = NO_WHAT_IF
    repeated: tuple[PhaseFit | None, tuple[Firm | None, ...]] = (None, ())

    @property
    def firm(self) -> tuple[Firm | None, ...]:
        """Of each inner breakpoint of `fit` how firm it is over repeats: runs, else iterations; () where
        nothing is known."""
        over_runs = self.repeated[1] if self.repeated[0] is self.fit else ()
        over_iterations = self.statistics.firm if self.statistics.fit is self.fit else ()
        if not (over_runs and over_iterations):
            return over_runs or over_iterations
        return tuple(a or b for a, b in zip(over_runs, over_iterations, strict=True))

    @property
    def as_suggested(self) -> bool:
        """Whether the settings are those that are suggested."""
        if self.suggestion is None or self.run is None or self.preview:
            return False
        phases, suggested = self.project.phases, self.suggestion
        return phases == phases.taking(suggested.n, suggested.times(self.run.curve))


class OpenWaits(NamedTuple):
    """Who waited for whom in the open trace."""

    store: TraceStore
    use: Utilization
    causality: Causality


class Workbench(EditBench[Snapshot, Project]):
    """One trace, its fit, and the work that leads there.

    Parameters
    ----------
    deliver : calls a function in the owner's thread.
    executors : of the lanes "store" (files), "fit", "sweep", "statistics" and "waiting"; threads of their
        own if not given.
    """

    def __init__(
        self,
        deliver: Deliver = at_once,
        executors: dict[str, Executor] | None = None,
        history: History | None = None,
    ) -> None:
        super().__init__(Snapshot(), Project(), deliver, executors, history)
        self._files, self._fitting = self._lane("store"), self._lane("fit")
        self._sweeping, self._counting = self._lane("sweep"), self._lane("statistics")
        self._tracking, self._sharpening = self._lane("tracks"), self._lane("exact")
        self._building: list[str] = []  # curves that are being built
        #: A curve of which the suggested phases are to be taken, with the edit that they belong to.
        self._choosing: tuple[str, str, str] | None = None
        self._curves: tuple[Utilization, dict[str, StepCurve | None]] | None = None  # curves of a utilization
        self._what_if = WhatIfRunner(
            self._lane("whatif"), self._lane("helps"), lambda what_if: self._show(what_if=what_if)
        )
        self._tracing_waits = self._lane("waiting")
        self._folding = self._lane("iteration")
        #: seconds that a request for statistics must last before it is answered
        self.settle = SETTLE
        #: of what there are details: ``auto`` (selection, else phase, else run), ``run`` or ``selection``
        self.scope = "auto"
        self._watched: dict[str, frozenset[Part]] = {}
        self._causality: tuple[TraceStore, Causality | None] | None = None  # of a store; None: given up
        self._causes: tuple[Causality, Causes | None] | None = None  # None: given up
        self._rules_of_waits: Rules | None = None
        self._why_no_waits = ""
        self._last_request: StatisticsRequest | None = None
        self._statistics: tuple[TraceStore, Statistics] | None = None  # of a store
        self._fits = Fits()
        self._named_fits: list[tuple[PhaseFit, object, PhaseFit]] = []  # with and without names
        self._unlimited: tuple[TraceRun, Fits] | None = None  # of the whole run
        self._anew = False  # what is open was opened without phases that were asked for before
        self._cancelled_sweep: tuple[Fits, SweepKey] | None = None  # the sweep that the user does not want
        self._widening: tuple[Fits, SweepKey, int] | None = None  # the sweep being made, up to which n
        self._store: TraceStore | None = None
        self._stamp: tuple[int, int] | None = None
        self._parked: list[OpenedTrace] = []  # shown before, the latest last
        self._open_member: Callable[[str], None] = lambda _: None
        self._unwatch: Callable[[], None] = lambda: None

    def close(self) -> None:
        """End all work and let go of the file; the workbench cannot be used after."""
        super().close()
        self._release(park=False)
        self._unwatch()

    # ---- opening

    def warm_up(self) -> None:
        """Load and compile, beside the window, what the first trace will need."""

        def work(job: Job) -> None:
            from desktop.core.compiler import watch  # brings numba

            self._unwatch = watch(self._compiling)
            load_and_compile()

        self._sweeping.submit("Getting ready", work, lambda _: None, self._failed)

    def _compiling(self, count: int, more: bool) -> None:
        """Another kernel is or was compiled; called in the thread that needs it."""
        if count < FIRST_START:
            return
        done = min(count, KERNELS - 1)
        task = Task("Getting ready for the first time", "compiling kernels, kept for later", done, KERNELS)
        self._deliver(lambda: self._show(preparing=task if more else None))

    def open(
        self,
        source: Path,
        options: OpenOptions = DETECT,
        branch: Branch[Project] | None = None,
        view: View | None = None,
    ) -> None:
        """Import `source`, or use its imported file, and fit it with the settings of its `branch`, if given.

        The open trace stays until the new one is there, and if that cannot be opened.
        """
        former = None if branch is None else branch.value
        self._open_member = lambda name: self.open(source, replace(options, member=name), branch, view)

        def done(trace: OpenedTrace) -> None:
            self._release()
            store, document, self._unlimited, (run, self._fits), self._stamp, waits, lack = trace
            self._store = store
            self._causality = None if waits is None else (store, waits)
            fits = self._fits
            if branch is not None and former is not None:
                fitting = replace(former, curve=run.name)
                if run.limit != former.limit:  # of a trace that has become another
                    fitting = limited(former, None, run.curve.span)
                fitting = replace(fitting, phases=settings_on(fitting.phases, run.curve))
                self._turn_to(branch if fitting == former else self.history.branch(fitting, self.turn))
            else:
                self._turn_to(self.history.branch(Project(first_settings(run, fits)), self.turn))
            project = self.project
            self._resolve(
                project=project if view is None else replace(project, view=view), document=document, run=run,
                fit=None, rows=(), opening=None, problem=Problem(lack) if lack else None, marked=(),
                boundaries=(), statistics=NO_STATS,
            )  # fmt: skip
            self._anew = former is None
            self.sharpen()

        self._keep_rules()
        parked = self._take_parked(source, options, former)
        if parked is not None:
            self._files.cancel()
            done(parked)
            return
        self._on_files(
            f"Opening {run_name(source)}", lambda job: open_source(source, options, former, job), done
        )

    def sharpen(self) -> None:
        """Replace a coarse curve by the exact one, beside the window. Suggested phases that the user has not
        chosen become those that are suggested for the exact curve."""
        store, key, coarse = self._store, self._key(self._phases), self.snapshot.run
        if store is None or coarse is None or not coarse.coarse:
            return
        if self._sharpening.busy or not self._is_of(coarse):
            return

        def done(built: tuple[TraceRun, Fits]) -> None:
            if self.snapshot.run is not coarse or not self._is_of(coarse):
                return  # another one is on its way
            self._unlimited = run, self._fits = built
            sweep = self._fits.sweeps.get(self._key(self._phases))
            if sweep is not None and self.snapshot.as_suggested and not self._fixed_n:
                phases = suggested_of(self._phases, run, sweep)
                self.branch.value = replace(self.project, phases=phases)  # no step of undo
            project = replace(self.project, view=self._view)
            self._resolve(project=project, run=run, fit=None, rows=(), statistics=NO_STATS)

        def failed(error: BaseException) -> None:
            problem = problem_of(error)
            again = f"{problem.sentence}. Analyse > Curve > Exact curve asks for it again"
            self._show(problem=replace(problem, sentence=again))

        self._sharpening.submit(
            "The exact curve",
            lambda job: build_run(store, coarse.rules, key._replace(locked=()), job),
            done,
            failed,
        )
        self._show()  # that it is under way

    @property
    def _fixed_n(self) -> bool:
        """Whether the number of phases comes from a project or was chosen by the user."""
        for step in reversed(self.branch.steps):
            if step.key == "n" or step.before.phases != step.after.phases:
                return step.key != "suggested"
        return not self._anew

    def cancel_exact(self) -> None:
        """Stay with the coarse curve, until `sharpen`."""
        self._sharpening.cancel()

    def open_member(self, name: str) -> None:
        """Open one of several traces in the archive that was opened last."""
        self._open_member(name)

    def run(self, title: str, work: Callable[[Job], T], done: Callable[[T], None]) -> None:
        """Other long work on files; shown, cancelled and replaced like the opening of a trace."""

        def finished(result: T) -> None:
            self._show(opening=None)
            done(result)

        self._keep_rules()
        self._on_files(title, work, finished)

    def _on_files(self, title: str, work: Callable[[Job], T], done: Callable[[T], None]) -> None:
        """Work on files, shown like the opening of a trace."""

        def failed(error: BaseException) -> None:
            self._show(opening=None, problem=problem_of(error))

        self._show(opening=Task(title), problem=None)
        self._files.submit(title, work, done, failed, lambda task: self._show(opening=task))

    def save_part(
        self,
        output: Path,
        start_s: float,
        end_s: float,
        done: Callable[[Path], None],
        locations: list[int] | None = None,
    ) -> None:
        """Save a range of time (seconds), of all `locations` or some, as a trace of its own."""
        store, rules = self._store, self._rules()
        if store is None:
            return

        def work(job: Job) -> Path:
            from desktop.data.trim import trim

            return trim(store, output, start_s, end_s, locations, job, rules.repaired)

        self.run("Saving the selection", work, done)

    def export_trace(self, folder: Path, to: str, done: Callable[[Exported], None]) -> None:
        """Write the trace in another format (`desktop.data.exporters`), with clocks as they are shown."""
        store, rules = self._store, self._rules()
        if store is None:
            return

        def work(job: Job) -> Exported:
            from desktop.data.exporters import export

            return export(store, to, folder, job, rules.repaired)

        self.run("Exporting the trace", work, done)

    def cancel_opening(self) -> None:
        """Cancel `open` or a change of rules; the open trace stays as it is."""
        self._files.cancel()
        self._keep_rules()
        self._show(opening=None)

    @property
    def running_fits(self) -> dict[str, tuple[Task, Callable[[], None]]]:
        """Fits and what they need, computed beside the window: tasks, and functions that cancel them."""
        under_way = {}
        for name, lane, give_up in (
            ("exact", self._sharpening, self.cancel_exact),
            ("fit", self._fitting, self.cancel_fit),
            ("sweep", self._sweeping, self.cancel_sweep),
            ("waiting", self._tracing_waits, self.cancel_waiting),
            ("helps", self._what_if.helping, self._what_if.cancel_helps),
        ):
            job = lane.current
            if job is not None and (lane is not self._sweeping or self._widening is not None):
                under_way[name] = replace(job.task, elapsed=job.elapsed), give_up
        return under_way

    def cancel_fit(self) -> None:
        """Cancel the fit that is being computed and go back to the last phases whose fit is known."""
        if not self._fitting.busy:
            return
        self._fitting.cancel()
        earlier = [step.before.phases for step in reversed(self.branch.steps)]
        suggested = [
            PhaseSettings(key.model, max(1, result.suggestion.n), key.locked)
            for key, result in self._fits.sweeps.items()
        ]
        for phases in (*earlier, *suggested):
            if self._fit_of(phases) is not None:
                self._edit_phases("give up the fit", None, phases)
                return
        self._show(refining=False)

    def cancel_sweep(self) -> None:
        """Stop fitting every n, until the model or the locked breakpoints change."""
        if self._sweeping.busy and self._widening is not None:
            self._sweeping.cancel()
            fits, key, _ = self._widening
            self._cancelled_sweep = fits, key
            self._show(sweep_cancelled=key not in fits.sweeps)

    def _is_cancelled(self, phases: PhaseSettings) -> bool:
        """Whether fitting every n was cancelled for these settings."""
        cancelled = self._cancelled_sweep
        return cancelled is not None and cancelled[0] is self._fits and cancelled[1] == self._key(phases)

    def close_document(self) -> None:
        """Back to nothing open."""
        self._files.cancel()
        self._fitting.cancel()
        self._sweeping.cancel()
        self._release(park=False)
        self._fits, self._unlimited = Fits(), None
        self._turn_to(self.history.branch(Project(), self.turn))
        self._publish(Snapshot())

    def _turn_to(self, branch: Branch[Project]) -> None:
        """Another run; the steps of the one before wait until it is shown again."""
        self.branch.parked, branch.parked = True, False
        self.branch = branch
        self.history.seal()
        self.history.changed()

    def report(self, error: BaseException | Problem) -> None:
        """Show what went wrong elsewhere."""
        self._show(problem=error if isinstance(error, Problem) else problem_of(error))

    def dismiss_problem(self) -> None:
        self._show(problem=None)

    # ---- edits

    def set_n(self, n: int) -> None:
        """So many phases (parameters for "budget"); the algorithm finds the breakpoints."""
        phases = self._phases
        n = max(self.least_n, min(N_LIMIT, n))
        if n != phases.n or phases.breaks is not None:
            noun = "parameters" if phases.model == "budget" else "phases"
            self._edit_phases(f"set {n} {noun}", "n", replace(phases.free(), n=n))

    @property
    def least_n(self) -> int:
        """The smallest n that the model and the locked breakpoints allow."""
        return least_n(self._phases.model, self._phases.locked)

    def step_n(self, by: int) -> None:
        """More or fewer; from breakpoints set by hand, their number counts."""
        self.set_n(self._phases.n + by)

    def set_model(self, model: str) -> None:
        """Another model; n is translated where its meaning changes (phases to parameters and back)."""
        phases, fit = self._phases, self.snapshot.fit
        if model == phases.model:
            return
        n = phases.n
        if fit is not None and "budget" in (model, phases.model):
            n = int((fit.degree.clip(max=2) + 2).sum()) if model == "budget" else fit.n
            n = max(n, least_n(model, phases.locked))
        settings = replace(phases.free(), model=model, n=n, seconds=None, also="")
        self._edit_phases(f"choose {model} phases", "model", settings)

    def set_seconds(self, seconds: float | None) -> None:
        """The period or time constant of phases that have one; None: as searched."""
        phases = self._phases
        if seconds != phases.seconds and phases.scale:
            self._edit_phases("set the period", None, replace(phases.free(), seconds=seconds))

    def set_also(self, also: str) -> None:
        """What phases of mixed degrees may be beside polynomials, the model of a space, or ""."""
        if also != self._phases.also:
            settings = replace(self._phases.free(), also=also, seconds=None)
            self._edit_phases("choose what phases may be", None, settings)

    def use_suggestion(self) -> None:
        sweep, snapshot = self._fits.sweeps.get(self._key(self._phases)), self.snapshot
        if snapshot.suggestion is not None and snapshot.run is not None and sweep is not None:
            phases = suggested_of(self._phases, snapshot.run, sweep)
            self._edit_phases(f"take the suggested {phases.n}", "suggested", phases)

    def set_pure(self, pure: bool) -> None:
        """Fit and suggest by the curve alone, or with the help of structure events."""
        phases = self._phases
        if pure != phases.pure:
            label = "fit the curve alone" if pure else "fit with structure events"
            free = phases.free() if phases.suggested else phases
            self._edit_phases(label, None, replace(free, pure=pure))

    def refit(self) -> None:
        """Let the algorithm find the breakpoints again, around the locked ones."""
        if self._phases.breaks is not None:
            self._edit_phases("let all breakpoints go", None, self._phases.free())

    def drag_breakpoint(self, index: int, time_s: float) -> None:
        """Show the fit with breakpoint `index` (1..n-1) held at `time_s`, without an edit."""
        breakpoints = self._moved_breakpoints(index, time_s)
        if breakpoints is not None:
            self._show_fit(self._by_hand(breakpoints, self._phases.locked)[1], preview=True)

    def cancel_drag(self) -> None:
        if self.snapshot.preview:
            self._resolve(preview=False)

    def move_breakpoint(self, index: int, time_s: float) -> None:
        """Set breakpoint `index` (1..n-1) by hand; it keeps its lock."""
        breakpoints = self._moved_breakpoints(index, time_s)
        if breakpoints is None:
            return
        previous = self._breakpoints()
        locked = tuple(sorted(breakpoints[index] if t == previous[index] else t for t in self._phases.locked))
        self._hand_edit(f"move breakpoint {index}", breakpoints, locked)

    def add_breakpoint(self, time_s: float) -> None:
        times = list(self._breakpoints())
        if not times or not times[0] < time_s < times[-1]:
            return
        gap = CLOSEST * (times[-1] - times[0])
        if min(abs(time_s - b) for b in times) < gap:
            return
        insort(times, time_s)
        self._hand_edit(f"add breakpoint {times.index(time_s)}", tuple(times), self._phases.locked)

    def remove_breakpoint(self, index: int) -> None:
        times = self._breakpoints()
        if 0 < index < len(times) - 1:
            locked = tuple(t for t in self._phases.locked if t != times[index])
            self._hand_edit(f"remove breakpoint {index}", times[:index] + times[index + 1 :], locked)

    def take_breakpoints(self, times_s: Sequence[float]) -> None:
        """Phases between those of these times (seconds) that are in the run, in place of all breakpoints.

        Raises
        ------
        ValueError : that makes more than `N_LIMIT` phases.
        """
        run = self.snapshot.run
        if run is None or self._current_fit() is None:
            return
        start, end = run.curve.span
        close = max(CLOSEST * (end - start), 2 * run.curve.unit)
        breakpoints = [start]
        for time_s in sorted(times_s):
            if time_s - breakpoints[-1] >= close and end - time_s >= close:
                breakpoints.append(float(time_s))
        if len(breakpoints) > N_LIMIT:
            raise ValueError(f"{len(breakpoints)} phases are more than the {N_LIMIT} that there may be")
        self._hand_edit("take iterations as phases", (*breakpoints, end), ())

    def toggle_lock(self, index: int) -> None:
        """Keep breakpoint `index` where it is in all further fits, or let it go."""
        breakpoints = self._breakpoints()
        if not 0 < index < len(breakpoints) - 1:
            return
        time_s, locked = breakpoints[index], self._phases.locked
        if time_s in locked:
            locked, verb = tuple(t for t in locked if t != time_s), "unlock"
        else:
            locked, verb = tuple(sorted((*locked, time_s))), "lock"
        # The breakpoints stay as they are seen; the lock acts on the next fit.
        self._hand_edit(f"{verb} breakpoint {index}", breakpoints, locked)

    def limit_to(self, span: tuple[float, float] | None) -> None:
        """Analyse this range of time (seconds) only; None: the whole run again."""
        run, project = self.snapshot.run, self.project
        if run is None:
            return
        whole = run.whole.curve.span
        if span is not None:
            span = max(min(span), whole[0]), min(max(span), whole[1])
            if not covers(run.whole.curve, span):
                self._show(problem=Problem("The range is too short to be analysed, select a longer one."))
                return
        if span == whole:
            span = None
        if span != project.limit:
            label = "remove the limit of the analysis" if span is None else "limit the analysis"
            edited = limited(project, span, whole)
            if self.snapshot.as_suggested:  # another range has others
                self._choosing = project.curve, label, f"limit {span}"
                edited = replace(edited, phases=edited.phases.free())
            self._edit(label, edited, f"limit {span}")

    def set_curve(self, curve: str) -> None:
        """Fit another curve, as `desktop.data.curves` names it, with the phases that are suggested for it."""
        if curve != self.project.curve:
            self._choosing = curve, f"fit the curve {curve}", f"curve {curve}"
            edited = replace(self.project, curve=curve, phases=self._phases.free())
            self._edit(f"fit the curve {curve}", edited, f"curve {curve}")

    def toggle_track(self, curve: str) -> None:
        """Draw a curve below the one that is fitted, or leave it out."""
        tracks = tuple(track for track in self.project.tracks if track != curve)
        if tracks != self.project.tracks:
            self._edit(f"leave out {curve}", replace(self.project, tracks=tracks))
        elif len(tracks) == TRACKS:
            self._show(problem=Problem(f"{TRACKS} curves are drawn already, leave one out first."))
        else:
            self._edit(f"draw {curve}", replace(self.project, tracks=(*tracks, curve)))

    def set_activity(self, region: str, activity: Activity | None) -> None:
        """Count `region` (a name, or ``"role:NAME"``) as `activity`; None: as the table says."""
        overrides = dict(self._rules().overrides)
        overrides.pop(region, None)
        if activity is not None:
            overrides[region] = activity
        self._edit_rules(f"classify {region}", overrides=overrides)

    def set_computing(self, computing: frozenset[Activity]) -> None:
        """Which activities count as computing."""
        if computing:
            self._edit_rules("change what counts as computing", computing=computing)

    def set_repaired(self, repaired: bool) -> None:
        """Times with clocks repaired, or as recorded."""
        self._edit_rules("repair clocks" if repaired else "take times as recorded", repaired=repaired)

    def reset_clocks(self) -> None:
        """Times as the trace's format recommends."""
        self._edit_rules("reset the repair of clocks", repaired=None)

    def reset_regions(self) -> None:
        self._edit_rules("reset the classification of regions", overrides={})

    def reset_computing(self) -> None:
        self._edit_rules("count computing alone", computing=type(self._rules())().computing)

    def reset_rules(self) -> None:
        if self.project.rules is not None:
            self._edit("reset the classification", replace(self.project, rules=None))

    def annotate(
        self,
        text: str,
        start_s: float,
        end_s: float | None = None,
        location: int | None = None,
        colour: int | None = None,
    ) -> None:
        """A remark on an instant or a range (seconds); None: in the colour after the last one's."""
        colour = self.project.next_colour if colour is None else colour
        annotation = Annotation(start_s, text, end_s, colour, location)
        self._edit_annotations("add annotation", (*self.project.annotations, annotation))

    def change_annotation(self, index: int, **changes: object) -> None:
        """Other values for fields of annotation `index`."""
        annotations = self.project.annotations
        annotation = changed(annotations[index], changes)
        if annotation != annotations[index]:
            verb = "edit" if "hidden" not in changes else "hide" if annotation.hidden else "show"
            annotations = (*annotations[:index], annotation, *annotations[index + 1 :])
            self._edit_annotations(f"{verb} annotation", annotations)

    def remove_annotation(self, index: int) -> None:
        annotations = self.project.annotations
        self._edit_annotations("delete annotation", (*annotations[:index], *annotations[index + 1 :]))

    def keep_view(self, number: int, seen: View, name: str = "") -> None:
        """Save the view as number `number`; from `seen` comes what only the plots know."""
        old = next((named_view.name for named_view in self.project.views if named_view.number == number), "")
        current = self._view
        view = replace(seen, selection=current.selection, phase=current.phase, shown=current.shown)
        new_view = NamedView(number, name or old, view)
        self._edit_views(f"keep view {number}", new_view, number)

    def rename_view(self, number: int, name: str) -> None:
        for named_view in self.project.views:
            if named_view.number == number and named_view.name != name:
                self._edit_views(f"rename view {number}", replace(named_view, name=name), number)

    def remove_view(self, number: int) -> None:
        self._edit_views(f"delete view {number}", None, number)

    def name_phase(self, phase: int, name: str) -> None:
        """Name a phase (from 0), wherever its breakpoints go; its default name again if `name` is empty."""
        fit = self.snapshot.fit
        if fit is None or not 0 <= phase < fit.n or name == (fit.names[phase] if fit.names else ""):
            return
        start, end = fit.breaks[phase : phase + 2].tolist()
        others = tuple(one for one in self.project.phase_names if not start <= one.at_s < end)
        more = (PhaseName((start + end) / 2, name),) if name else ()
        names = tuple(sorted((*others, *more), key=lambda one: one.at_s))
        if names != self.project.phase_names:
            self._edit(f"name phase {phase + 1}", replace(self.project, phase_names=names))

    def write_note(self, phase: int | None, text: str | None) -> None:
        """Notes of a speaker on a phase (from 0) or the run (None); as suggested if `text` is None."""
        start, end, at = -math.inf, math.inf, None
        if phase is not None:
            fit = self.snapshot.fit
            if fit is None or not 0 <= phase < fit.n:
                return
            start, end = fit.breaks[phase : phase + 2].tolist()
            at = (start + end) / 2
        whole = phase is None
        others = [
            one
            for one in self.project.spoken
            if (one.at_s is None) != whole or not start <= (one.at_s or 0.0) < end
        ]
        spoken = (*others, *(() if text is None else (SpeakerNote(text, at),)))
        if spoken != self.project.spoken:
            self._edit("write notes", replace(self.project, spoken=spoken), f"note {phase}")

    def name_region(self, region: str, name: str) -> None:
        """Name a region; its own name again if `name` is empty."""
        names = dict(self.project.names)
        names.pop(region, None)
        if name and name != region:
            names[region] = name
        if names != self.project.names:
            self._edit(f"rename {region}", replace(self.project, names=names))

    def choose_report(self, choices: ReportChoices) -> None:
        """What reports hold from now on."""
        if choices != self.project.report:
            self._edit("choose what reports hold", replace(self.project, report=choices))

    def seal(self) -> None:
        """End a gesture: the next edit is a step of its own."""
        self.history.seal()

    # ---- statistics

    def watch(self, who: str, parts: frozenset[Part]) -> None:
        """A panel shows these parts of the statistics from now on (none: it is hidden). Only what some panel
        shows is computed."""
        if parts:
            self._watched[who] = parts
        else:
            self._watched.pop(who, None)
        self._predict()
        if self._watched:
            self._ask_statistics()
        elif self._counting.busy or self.snapshot.statistics.problem:
            self._counting.cancel()
            self._last_request = None

    def set_scope(self, scope: str) -> None:
        self.scope = scope
        self._ask_statistics()

    @property
    def waits(self) -> OpenWaits | None:
        """Who waited for whom, if that is computed for the run that is shown."""
        run, store = self.snapshot.run, self._store
        causality = None if run is None else self._causality_of(run)
        if run is None or store is None or causality is None:
            return None
        return OpenWaits(store, run.utilization, causality)

    def _causality_of(self, run: TraceRun) -> Causality | None:
        """Who waited for whom, if that is computed with the rules of a run."""
        cached = self._causality
        if cached is None or cached[0] is not self._store or cached[1] is None:
            return None
        return cached[1] if cached[1].rules == run.utilization.rules else None

    def _causes_of(self, run: TraceRun) -> Causes | None:
        """What caused the waiting, if that is computed."""
        cached, causality = self._causes, self._causality_of(run)
        return cached[1] if cached is not None and cached[0] is causality else None

    def _find_causes(self, request: StatisticsRequest) -> None:
        """Start computing what caused the waiting, once accounts have been shown."""
        causality = request.causality
        if causality is None or self._tracing_waits.busy:
            return
        if self._causes is not None and self._causes[0] is causality:
            return

        def work(job: Job) -> Causes:
            from desktop.data.causes import Causes

            return Causes(request.store, causality, job)

        def done(causes: Causes) -> None:
            self._causes = causality, causes
            self._ask_statistics()

        def failed(error: BaseException) -> None:
            self._causes = causality, None
            statistics = self.snapshot.statistics
            self._show(statistics=replace(statistics, problem=str(error)))

        self._tracing_waits.submit("Causes of waiting", work, done, failed)

    def _find_causality(self, request: StatisticsRequest) -> None:
        """Start computing who waited for whom, once what needs no pass over the events has been shown."""
        if request.parts & {"accounts", "words"} and request.causality is None:
            self._trace_waits(request.store, request.run.utilization.rules)

    def _trace_waits(self, store: TraceStore, rules: Rules) -> bool:
        """Go through all calls and messages, once for a run and its rules; False: that was cancelled."""
        if self._causality is not None and self._causality[1] is None:
            return False
        if self._tracing_waits.busy and self._rules_of_waits == rules:
            return True
        self._rules_of_waits = rules

        def work(job: Job) -> Causality:
            from desktop.data.causality import Causality, memory_needed

            needed, free = memory_needed(store), memory.available()
            if free is not None and needed > free:
                raise DesktopError(
                    f"Who waited for whom is not computed: it takes {needed / 2**30:.1f} GiB of memory, "
                    f"{free / 2**30:.1f} GiB are free",
                    hint="free some, or open a shorter trace",
                )
            return Causality(store, rules, job)

        def done(waits: Causality) -> None:
            self._causality = store, waits
            self._ask_statistics()
            self._predict()

        def failed(error: BaseException) -> None:
            self._causality, self._why_no_waits = (store, None), str(error)
            self._show(statistics=replace(self.snapshot.statistics, waits=str(error)))

        self._tracing_waits.submit("Who waited for whom", work, done, failed)
        self._show()  # that it is under way
        return True

    def cancel_waiting(self) -> None:
        """Stop computing who waited for whom, until another trace is opened."""
        if self._tracing_waits.busy and self._store is not None:
            self._tracing_waits.cancel()
            cached = self._causality
            if cached is not None and cached[1] is not None and cached[1].rules == self._rules_of_waits:
                self._causes = cached[1], None
                self._show()
            else:
                self._causality, self._why_no_waits = (self._store, None), WAITS_CANCELLED
                self._show(statistics=replace(self.snapshot.statistics, waits=WAITS_CANCELLED))

    def _ask_statistics(self) -> None:
        if self._next_request(self.snapshot) is not None:
            self._show()

    def _next_request(self, snapshot: Snapshot) -> StatisticsRequest | None:
        """The request for what the visible panels show; None where it equals the last one."""
        if self._store is None or snapshot.run is None or snapshot.run.coarse or not self._watched:
            return None
        if snapshot.preview or snapshot.refining:
            return None
        view, parts = snapshot.project.view, frozenset[Part]().union(*self._watched.values()) - {"whatif"}
        if not parts:
            return None
        statistics = snapshot.statistics
        iterations = statistics.iterations if statistics.run is snapshot.run else None
        waits = bool(parts & {"accounts", "words"})
        called = dict(snapshot.project.names)
        previous = self._last_request
        same = previous is not None and previous.called == called and statistics.fit is snapshot.fit
        request = StatisticsRequest(
            self._store, snapshot.run, snapshot.fit, view.selection, view.phase, self.scope, parts,
            self._causality_of(snapshot.run) if waits else None,
            self._causes_of(snapshot.run) if waits else None, called,
            statistics.words if same and statistics.run is snapshot.run else None, iterations, statistics,
        )  # fmt: skip
        return None if request == self._last_request else request

    def _request_statistics(self, request: StatisticsRequest) -> None:
        """Of requests in quick succession (while n is dragged) only the last is answered."""

        def work(job: Job) -> PhaseStatistics:
            start = time.monotonic()
            while time.monotonic() - start < self.settle:
                job.step(0, 0)
                time.sleep(0.01)
            from desktop.data.statistics import Statistics

            statistics = self._statistics
            if statistics is None or statistics[0] is not request.store:
                statistics = self._statistics = request.store, Statistics(request.store)
            return request.answer(statistics[1], job, lambda early: self._counting.tell(job, show, early))

        def show(statistics: PhaseStatistics) -> None:
            waits = request.parts & {"accounts", "words"}
            if statistics.causality is None and not statistics.remote and waits:
                cancelled = self._causality is not None and self._causality[1] is None
                statistics = replace(statistics, waits=self._why_no_waits if cancelled else WAITS_RUNNING)
            self._show(statistics=statistics)

        def done(statistics: PhaseStatistics) -> None:
            show(statistics)
            if not statistics.remote:
                self._find_causality(request)
            self._find_causes(request)

        def failed(error: BaseException) -> None:
            # `_last_request` stays: the same request would only fail again.
            self._show(statistics=PhaseStatistics(request.fit, problem=str(error)))

        self._counting.submit("Statistics", work, done, failed)

    def ask_what_if(self, changes: Changes | None) -> None:
        """Predict the run with these changes, the last ones asked for; None: as recorded."""
        if changes != self.project.what_if:
            self._edit("change the prediction", replace(self.project, what_if=changes), "what if")

    def _predict(self) -> None:
        """Start the prediction that a visible panel or plot needs."""
        snapshot, what_if = self.snapshot, self.snapshot.what_if
        changes = self.project.what_if
        looked_at = any("whatif" in parts for parts in self._watched.values())
        needed = looked_at or changes is not None or what_if.changes is not None
        if not needed or snapshot.preview or snapshot.refining or self._store is None:
            return
        if snapshot.run is not None and snapshot.fit is not None and not snapshot.run.coarse:
            breakpoints, waits = tuple(snapshot.fit.breaks[1:-1].tolist()), self._causality_of(snapshot.run)
            far = self._store.elsewhere is not None  # then the run is replayed there
            if waits is None and not far and self._trace_waits(self._store, snapshot.run.utilization.rules):
                self._what_if.wait()  # one pass over the events serves both
            else:
                self._what_if.look(self._store, snapshot.run, breakpoints, changes, waits)

    # ---- looking

    def select(self, selection: tuple[float, float] | None) -> None:
        """Select a range of time (seconds)."""
        self._look(selection=selection)

    def select_phase(self, phase: int | None) -> None:
        """Select a phase, counted from 0."""
        rows = self.snapshot.rows
        if phase is not None and not 0 <= phase < len(rows):
            phase = None
        self._look(phase=phase)

    def step_phase(self, by: int) -> None:
        """The next or previous phase; from none, the first or last one."""
        count, phase = len(self.snapshot.rows), self._view.phase
        if count:
            start = (0 if by > 0 else count - 1) if phase is None else max(0, min(count - 1, phase + by))
            self.select_phase(start)

    def mark_regions(self, names: tuple[str, ...]) -> None:
        """Mark regions, by their names in the trace, in place of those marked before."""
        if names != self.snapshot.marked:
            self._show(marked=names)

    def draw_boundaries(self, times_s: tuple[float, ...]) -> None:
        """Draw boundaries of iterations over time, in place of those drawn before."""
        if times_s != self.snapshot.boundaries:
            self._show(boundaries=times_s)

    def fit_iteration(
        self, level: Level, n: int | None, done: Callable[[PhaseFit, tuple[Firm | None, ...]], None]
    ) -> None:
        """Fit phases in the iteration that stands for all of a loop (`desktop.data.iterations.phases_in`), n
        None: the suggested number; `done` gets the answer to the last call."""
        from desktop.data.iterations import model_inside, phases_in

        run, model = self.snapshot.run, model_inside(self.project.phases.model)
        if run is None:
            return
        self._folding.submit(
            "Phases in an iteration",
            lambda job: phases_in(level, run.curve, n, model),
            lambda answer: done(*answer),
            self._failed,
        )

    def know_repeats(self, fit: PhaseFit | None, firm: tuple[Firm | None, ...]) -> None:
        """How firm the breakpoints of a fit are over runs of the same program."""
        if (fit, firm) != self.snapshot.repeated:
            self._show(repeated=(fit, firm))

    def toggle_class(self, name: str) -> None:
        """Draw a class of the stack or leave it out."""
        self._look(shown=self._view.shown ^ {name})

    def show_view(self, number: int) -> View | None:
        """Show the view of this number, and return it; the plots take its span and order."""
        for named_view in self.project.views:
            if named_view.number == number:
                view = named_view.view
                exists = view.phase is not None and view.phase < len(self.snapshot.rows)
                self._look(selection=view.selection, phase=view.phase if exists else None, shown=view.shown)
                return view
        return None

    # ---- inside

    @property
    def _phases(self) -> PhaseSettings:
        return self.project.phases

    @property
    def _view(self) -> View:
        return self.snapshot.project.view

    def _rules(self) -> Rules:
        from desktop.data.utilization import Rules

        return self.project.rules or Rules()

    def _publish(self, snapshot: Snapshot) -> None:
        request = self._next_request(snapshot)
        if request is not None:
            self._last_request = request
            if snapshot.statistics.scopes:
                snapshot = replace(snapshot, statistics=replace(snapshot.statistics, outdated=True))
        super()._publish(snapshot)
        if request is not None and request is self._last_request:
            self._request_statistics(request)
        self._predict()

    def _look(self, **changes: object) -> None:
        project = self.snapshot.project
        view = changed(project.view, changes)
        if view != project.view:
            self._show(project=replace(project, view=view))

    def _edit(self, label: str, project: Project, key: str | None = None) -> None:
        if self.snapshot.run is not None:
            super()._edit(label, project, key)

    def _edit_phases(self, label: str, key: str | None, phases: PhaseSettings) -> None:
        self._choosing = None  # the user has chosen
        self._edit(label, replace(self.project, phases=phases), key)

    def _edit_rules(self, label: str, **changes: object) -> None:
        rules = changed(self._rules(), changes)
        if rules != self._rules():
            self._edit(label, replace(self.project, rules=rules))

    def _edit_annotations(self, label: str, annotations: tuple[Annotation, ...]) -> None:
        self._edit(label, replace(self.project, annotations=annotations))

    def _edit_views(self, label: str, new_view: NamedView | None, number: int) -> None:
        others = [one for one in self.project.views if one.number != number]
        views = tuple(sorted([*others, *([new_view] if new_view else [])], key=lambda one: one.number))
        if views != self.project.views:
            self._edit(label, replace(self.project, views=views))

    def _hand_edit(self, label: str, breakpoints: tuple[float, ...], locked: tuple[float, ...]) -> None:
        phases, fit = self._by_hand(breakpoints, locked)
        self._fits.single[self._single_key(phases)] = fit
        self._edit_phases(label, None, phases)

    def turn(self, project: Project) -> None:
        """Show a project of the history; the view is not part of it."""
        old = self.snapshot.project
        view = old.view
        if (project.phases.n, project.phases.model) != (old.phases.n, old.phases.model):
            view = replace(view, phase=None)
        rebuild = (project.rules, project.limit, project.curve) != (old.rules, old.limit, old.curve)
        project = replace(project, view=view)
        if rebuild:
            self._rebuild(project)
        else:
            self._resolve(project=project, preview=False)

    def _rebuild(self, project: Project) -> None:
        """Build the curve anew beside the window, as its rules, its limit or its kind have changed."""
        store, rules, unlimited, limit = self._store, self._rules(), self._unlimited, self.project.limit
        key, name = self._key(self._phases), self.project.curve
        assert store is not None
        if unlimited is not None and unlimited[0].coarse:
            unlimited = None  # what is built now is exact
        same = unlimited is not None and (unlimited[0].rules, unlimited[0].name) == (rules, name)

        def work(job: Job) -> tuple[tuple[TraceRun, Fits], tuple[TraceRun, Fits]]:
            whole = unlimited if same else None
            whole = whole or build_run(
                store, rules, key._replace(locked=()), job, name, None if unlimited is None else unlimited[0]
            )
            return whole, whole if limit is None else part_of(whole[0], limit, key, job)

        def done(built: tuple[tuple[TraceRun, Fits], tuple[TraceRun, Fits]], **more: object) -> None:
            self._unlimited, (run, self._fits) = built
            self._sharpening.cancel()
            choice, self._choosing = self._choosing, None
            sweep = self._fits.sweeps.get(self._key(self._phases))
            if choice is not None and choice[0] == run.name and sweep is not None:
                edited = replace(self.project, phases=suggested_of(self._phases, run, sweep))
                self.branch.edit(choice[1], edited, choice[2])
                more["project"] = replace(edited, view=replace(self._view, phase=None))
            # The old fit says nothing about the new curve.
            self._resolve(run, opening=None, fit=None, rows=(), boundaries=(), **more)

        def failed(error: BaseException) -> None:
            self._keep_rules()
            self._show(opening=None, problem=problem_of(error))

        if unlimited is not None and same and limit is None:
            self._files.cancel()
            done((unlimited, unlimited), project=project, preview=False)
            return
        self._resolve(project=project, preview=False)
        title = "Building the curve" if limit is None or not same else "Limiting the analysis"
        self._files.submit(title, work, done, failed, lambda task: self._show(opening=task))

    def _keep_rules(self) -> None:
        """Take back a change of rules or of the limit (also an undone one) whose curve was not finished; what
        else was edited since stays."""
        run, newest = self.snapshot.run, self.project
        self._choosing = None
        if run is None or self._is_of(run):
            return
        if self._gone_to(run, self.history.back, self.history.forth):
            of_curve = {name: getattr(self.project, name) for name in _OF_CURVE}
            if (kept := replace(newest, **of_curve)) != self.project:
                self.branch.edit("keep other edits", kept)
        elif not self._gone_to(run, self.history.forth, self.history.back):
            # It was undone, and another edit made since.
            kept = limited(self.project, run.limit, run.whole.curve.span)
            self.branch.value = replace(kept, rules=run.rules, curve=run.name)  # no step of undo
        self._resolve(project=replace(self.project, view=self._view))
        self.sharpen()

    def _gone_to(self, run: TraceRun, go: _Go, turn_back: _Go) -> bool:
        """Go through the history to a project that asks for a run; if there is none, stay."""
        gone = 0
        while not self._is_of(run) and go(self.branch) is not None:
            gone += 1
        if not (found := self._is_of(run)):
            for _ in range(gone):
                turn_back(self.branch)
        return found

    def _is_of(self, run: TraceRun) -> bool:
        """Whether a run is the one that the project asks for."""
        return self._rules() == run.rules and self._on(run)

    def _on(self, run: TraceRun) -> bool:
        """Whether a run is of the curve and the part of it that the project asks for."""
        return (self.project.limit, self.project.curve) == (run.limit, run.name)

    def _resolve(self, run: TraceRun | None = None, **changes: object) -> None:
        """Find the fit of the project: from the cache, at once if that is quick, else by a job.

        Everything is shown in one snapshot, so that the window is drawn once.
        """
        run, phases = run or self.snapshot.run, self._phases
        if run is None:
            return
        changes.update(self._tracks(run))
        if not self._on(run):  # its phases are those of a curve that is not there yet
            self._fitting.cancel()
            self._sweeping.cancel()
            self._show(run=run, **changes, refining=True)
            return
        sweep, suggestion = self._fits.sweeps.get(self._key(phases), (None, None))
        fit = self._fit_of(phases) or self._quick(run, phases)
        old_fit = None if "fit" in changes else self.snapshot.fit
        changes.pop("fit", None)
        changes |= {"sweep": sweep, "suggestion": suggestion, "refining": fit is None}
        changes["sweep_cancelled"] = sweep is None and self._is_cancelled(phases)
        self._show_fit(fit or old_fit, run, **changes)
        if sweep is None or reaches(sweep) < phases.n:
            self._request_sweep(run, phases)
        if fit is None:
            self._request_fit(run, phases)
        else:
            self._fitting.cancel()

    def _tracks(self, run: TraceRun) -> dict[str, object]:
        """The curves below that are built; others are built beside the window."""
        names, store, use = self.project.tracks, self._store, run.utilization
        if run.coarse:
            return {"tracks": ()}
        assert store is not None
        if self._curves is None or self._curves[0] is not use:
            self._curves, self._building = (use, {}), []
        curves = self._curves[1]
        missing = [name for name in names if name not in curves]

        def work(job: Job) -> dict[str, StepCurve | None]:
            from desktop.data.curves import build_curve

            by_name: dict[str, StepCurve | None] = {}
            for name in missing:
                try:
                    envelope(curve := build_curve(store, use, name, job))
                    by_name[name] = curve
                except CurveError:  # of a trace that has become another
                    by_name[name] = None
            return by_name

        def done(by_name: dict[str, StepCurve | None]) -> None:
            curves.update(by_name)
            now = self.snapshot.run
            if now is not None and now.utilization is use:
                self._show(**self._tracks(now))
            lack = [name for name in self.project.tracks if name in by_name and by_name[name] is None]
            if lack:
                self._show(problem=Problem(f"This trace has no curve {', '.join(lack)}."))

        if not missing:
            self._tracking.cancel()
        elif not self._tracking.busy or self._building != missing:
            self._building = missing
            self._tracking.submit("Building curves", work, done, self._failed)
        drawn = ((name, curves.get(name)) for name in names)
        return {"tracks": tuple((name, curve) for name, curve in drawn if curve is not None)}

    def _fit_of(self, phases: PhaseSettings) -> PhaseFit | None:
        fit = self._fits.single.get(self._single_key(phases))
        sweep = self._fits.sweeps.get(self._key(phases))
        if fit is None and phases.breaks is None and sweep is not None and phases.n <= reaches(sweep.sweep):
            fit = sweep.sweep.fit(phases.n)
        return fit

    def _key(self, phases: PhaseSettings) -> SweepKey:
        return sweep_key(phases, self.project.annotations)

    def _single_key(self, phases: PhaseSettings) -> tuple[PhaseSettings, Marks | None]:
        """Of a fit in `Fits.single`: breakpoints that are given do not depend on what the user marked."""
        return phases, self._key(phases).marks if phases.breaks is None else None

    def _quick(self, run: TraceRun, phases: PhaseSettings) -> PhaseFit | None:
        """The fit, if by experience it takes less than a frame."""
        fits, (_, marks) = self._fits, self._single_key(phases)
        if phases.breaks is not None:
            fit = with_breakpoints(run, phases)
        elif marks in fits.landmarks and fits.pace.get(phases.model, INLINE) * phases.n < INLINE:
            fit = self._timed_fit(run, phases, marks, fits)
        else:
            return None
        fits.single[phases, marks] = fit
        return fit

    def _request_fit(self, run: TraceRun, phases: PhaseSettings) -> None:
        fits, (_, marks), project = self._fits, self._single_key(phases), self.project

        def work(job: Job) -> tuple[PhaseFit, tuple[PhaseRow, ...]]:
            fit = with_names(run, self._timed_fit(run, phases, marks, fits, job.stop), project)
            return fit, rows_of(run, fit)  # here, as the window has enough to do when the fit arrives

        def done(answer: tuple[PhaseFit, tuple[PhaseRow, ...]]) -> None:
            fit, rows = answer
            fits.single[phases, marks] = fit
            if self.snapshot.run is run and self.snapshot.project.phases == phases:
                self._show(fit=fit, rows=rows, refining=False)

        noun = "parameters" if phases.model == "budget" else "phases"
        self._fitting.submit(f"Fitting {phases.n} {noun}", work, done, self._fit_failed)

    def _request_sweep(self, run: TraceRun, phases: PhaseSettings) -> None:
        """Every n, up to the one in use as far as that does not take too long."""
        fits, key = self._fits, self._key(phases)
        if self._is_cancelled(phases):
            return
        self._cancelled_sweep = None
        sweep = fits.sweeps.get(key)
        to = 0 if sweep is None else reaches(sweep.sweep)
        if sweep is not None and to >= LIMIT:
            return
        while sweep is not None and to < min(phases.n, LIMIT):
            to = min(2 * to, LIMIT)
        if self._sweeping.busy and self._widening is not None:
            of, widened, far = self._widening
            if of is fits and widened == key and to <= far:
                return
        self._widening = fits, key, to

        def done(answer: SweepResult) -> None:
            fits.sweeps[key] = answer
            if self.snapshot.run is run and self._key(self.snapshot.project.phases) == key:
                self._show(sweep=answer.sweep, suggestion=answer.suggestion)

        self._sweeping.submit(
            "Fitting every n", lambda job: sweep_of(run, key, fits, job, to), done, self._fit_failed
        )

    @staticmethod
    def _timed_fit(
        run: TraceRun, phases: PhaseSettings, marks: Marks | None, fits: Fits, stop: Bytes | None = None
    ) -> PhaseFit:
        landmarks, start = landmarks_of(run, marks, fits), time.perf_counter()
        fitted = phases.fit(run.curve, landmarks, stop=stop)
        fits.pace[phases.model] = (time.perf_counter() - start) / phases.n
        return fitted

    def _by_hand(
        self, breakpoints: tuple[float, ...], locked: tuple[float, ...]
    ) -> tuple[PhaseSettings, PhaseFit]:
        """The fit with these breakpoints, and its settings. Phases between the same breakpoints as before are
        exactly as before."""
        run, current = self.snapshot.run, self._current_fit()
        assert run is not None and current is not None
        ends = current.breaks.tolist()
        old_phases = zip(ends[:-1], ends[1:], current.degree.tolist(), strict=True)
        phases = replace(self._phases, locked=locked).by_hand(breakpoints, old_phases)
        fit = with_breakpoints(run, phases, current)
        if phases.degrees is not None:
            phases = replace(phases, degrees=tuple(fit.degree.tolist()))
        return phases, fit

    def _show_fit(self, fit: PhaseFit | None, run: TraceRun | None = None, **changes: object) -> None:
        run = run or self.snapshot.run
        assert run is not None
        if fit is not None:
            fit = self._named(run, fit)
        if fit is not self.snapshot.fit:
            changes.update(fit=fit, rows=() if fit is None else rows_of(run, fit))
        self._show(run=run, **changes)

    def _named(self, run: TraceRun, fit: PhaseFit) -> PhaseFit:
        """The fit with the names of its phases; the same object for the same fit and names."""
        names = self.project.phase_names, self.project.names
        recent = self._named_fits
        for k, (bare, how, fit_named) in enumerate(recent):
            if bare is fit and how == names:
                recent.append(recent.pop(k))
                return fit_named
        fit_named = with_names(run, fit, self.project)
        recent.append((fit, names, fit_named))
        del recent[:-NAMED]
        return fit_named

    def _current_fit(self) -> PhaseFit | None:
        """The fit before a drag that may be going on; None while another part of the run is made ready."""
        run = self.snapshot.run
        if run is None or not self._on(run):
            return None
        return self._fit_of(self._phases) or self.snapshot.fit

    def _breakpoints(self) -> tuple[float, ...]:
        fit = self._current_fit()
        return () if fit is None else tuple(fit.breaks.tolist())

    def _moved_breakpoints(self, index: int, time_s: float) -> tuple[float, ...] | None:
        times = self._breakpoints()
        if not 0 < index < len(times) - 1:
            return None
        gap = min(CLOSEST * (times[-1] - times[0]), (times[index + 1] - times[index - 1]) / 4)
        limited = max(times[index - 1] + gap, min(times[index + 1] - gap, time_s))
        return (*times[:index], limited, *times[index + 1 :])

    def _failed(self, error: BaseException) -> None:
        self._show(problem=problem_of(error))

    def _fit_failed(self, error: BaseException) -> None:
        self._show(refining=False, problem=problem_of(error))

    def _release(self, *, park: bool = True) -> None:
        """Put the trace that is shown aside, as far as `PARKED` and memory allow; else close its store. Those
        put aside first are closed first; without `park` all are."""
        if self._store is not None:
            self._tracking.cancel()
            self._sharpening.cancel()
            self._folding.cancel()
            self._curves = None
            self._counting.cancel()
            self._what_if.forget()
            self._tracing_waits.cancel()
            waits = None if self._causality is None else self._causality[1]
            if waits is not None and waits.size > memory.limit() // 4:  # rather than drop the trace
                waits = None
            self._last_request = self._statistics = self._causality = self._causes = None
            store, self._store = self._store, None
            document, run, whole = self.snapshot.document, self.snapshot.run, self._unlimited
            if run is not None and (run.coarse or whole is None or run.whole is not whole[0]):
                run = None  # it is not complete
            if document is not None and run is not None and whole is not None:
                parts = whole, (run, self._fits)
                self._parked.append(OpenedTrace(store, document, *parts, self._stamp, waits))
            else:
                store.close()
        most = PARKED if park else 0
        while len(self._parked) > most or sum(one.size for one in self._parked) > memory.limit():
            self._parked.pop(0).store.close()

    def _take_parked(self, source: Path, options: OpenOptions, project: Project | None) -> OpenedTrace | None:
        """The trace that was put aside, if it is of the same source and settings."""
        for one in self._parked:
            if (one.document.source, one.document.options) == (source, options) and project is not None:
                from desktop.data.utilization import Rules  # here, as a first trace would wait for HDF5

                self._parked.remove(one)
                request = project.rules or Rules(), project.limit, project.curve
                run = one.analysed[0]
                if one.stamp == stamp_of(source) and (run.rules, run.limit, run.name) == request:
                    return one
                one.store.close()
                return None
        return None


__all__ = ["Document", "Problem", "Progress", "Snapshot", "TraceRun", "Workbench"]

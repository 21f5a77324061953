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
from typing import TYPE_CHECKING, TypeVar

from desktop.core.arrays import Bytes
from desktop.core.envelope import envelope
from desktop.core.phases import PhaseFit, Sweep, least_n
from desktop.core.selection import LIMIT, Suggestion
from desktop.data import memory
from desktop.data.naming import run_name
from desktop.errors import CurveError, DesktopError
from desktop.progress import Progress
from desktop.workbench.bench import EditBench, changed
from desktop.workbench.explaining import NOTHING, Explained, Part, StatisticsRequest
from desktop.workbench.history import Branch, History
from desktop.workbench.imagining import NOTHING_IMAGINED, Imagined, Imagining
from desktop.workbench.jobs import Deliver, Executor, Job, Task, at_once
from desktop.workbench.limiting import limited
from desktop.workbench.model import (
    AS_FOUND,
    COLOURS,
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
from desktop.workbench.tracing import (
    Document,
    Fits,
    Opened,
    Problem,
    SweepKey,
    Swept,
    TraceRun,
    build_run,
    ends_of,
    first_settings,
    holds,
    key_of,
    load_and_compile,
    named,
    open_source,
    part_of,
    problem_of,
    reaches,
    rows_of,
    stamp_of,
    suggested_of,
    sweep_of,
    with_breakpoints,
    within,
)

if TYPE_CHECKING:  # the heavy modules are loaded by the first job, beside the window
    from desktop.core.changes import Changes
    from desktop.core.curve import StepCurve
    from desktop.core.landmarks import Landmarks
    from desktop.core.phase_stats import Firm, PhaseRow
    from desktop.data.causality import Causality
    from desktop.data.causes import Causes
    from desktop.data.events import Activity
    from desktop.data.exporters import Exported
    from desktop.data.statistics import Statistics
    from desktop.data.store import TraceStore
    from desktop.data.utilization import Rules, Utilization

T = TypeVar("T")
#: Why there are no accounts.
WAITS_ON_THE_WAY = "Who waited for whom is being found out."
WAITS_GIVEN_UP = "Finding out who waited for whom was given up; open the trace again to do it."
#: Seconds that a request for statistics must last before it is answered.
SETTLE = 0.12
#: Phases that can be asked for.
N_LIMIT = 999
#: A fit expected to take longer (seconds) is computed beside the window; a frame lasts 0.0167.
INLINE = 0.008
#: Kernels compiled in a process from which on it counts as the first start, and about how many there are
#: until a trace is on the screen; later starts load them.
FIRST_START, KERNELS = 12, 200
#: Traces that stay ready to be shown again, at most.
PARKED = 4
#: Fits with names that are kept, so that what is shown again is the same object.
NAMED = 8
#: Breaks come no closer by hand than this share of the run.
CLOSEST = 1e-6


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What is to be shown. `fit` may be older than `project` while `refining`; `preview`: a break is held;
    `given_up`: every n is not fitted, as the user wants; `known`: structure events of the run, None where the
    curve alone counts;
    `preparing`: kernels are being compiled, as at the first start. `marked`: regions, by their names in the
    trace, that are to be seen wherever regions are shown. `boundaries`: of iterations, in seconds, that
    are to be drawn over time. `imagined`: the run with changes. `tracks`: curves drawn below the one that is
    fitted, with their names. `repeated`: a fit, and how firm its breakpoints are over runs."""

    project: Project = field(default_factory=Project)
    document: Document | None = None
    run: TraceRun | None = None
    sweep: Sweep | None = None
    suggestion: Suggestion | None = None
    known: Landmarks | None = None
    fit: PhaseFit | None = None
    rows: tuple[PhaseRow, ...] = ()
    preview: bool = False
    refining: bool = False
    given_up: bool = False
    opening: Task | None = None
    preparing: Task | None = None
    problem: Problem | None = None
    explained: Explained = NOTHING
    marked: tuple[str, ...] = ()
    boundaries: tuple[float, ...] = ()
    tracks: tuple[tuple[str, StepCurve], ...] = ()
    imagined: Imagined = NOTHING_IMAGINED
    repeated: tuple[PhaseFit | None, tuple[Firm | None, ...]] = (None, ())

    @property
    def firm(self) -> tuple[Firm | None, ...]:
        """Of each inner breakpoint of `fit` how firm it is over repeats: runs, else iterations; () where
        nothing is known."""
        over_runs = self.repeated[1] if self.repeated[0] is self.fit else ()
        over_iterations = self.explained.firm if self.explained.fit is self.fit else ()
        if not (over_runs and over_iterations):
            return over_runs or over_iterations
        return tuple(a or b for a, b in zip(over_runs, over_iterations, strict=True))

    @property
    def as_suggested(self) -> bool:
        """Whether the settings are those that are suggested."""
        if self.suggestion is None or self.run is None or self.preview:
            return False
        phases, suggested = self.project.phases, self.suggestion
        return phases == phases.taking(suggested.n, suggested.breaks(self.run.curve))


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
        self._made: tuple[Utilization, dict[str, StepCurve | None]] | None = None  # curves of a utilization
        self._imagining = Imagining(
            self._lane("whatif"), self._lane("helps"), lambda found: self._show(imagined=found)
        )
        self._tracing_waits = self._lane("waiting")
        #: seconds that a request for statistics must last before it is answered
        self.settle = SETTLE
        #: of what there are details: ``auto`` (selection, else phase, else run), ``run`` or ``selection``
        self.scope = "auto"
        self._watched: dict[str, frozenset[Part]] = {}
        self._causality: tuple[TraceStore, Causality | None] | None = None  # of a store; None: given up
        self._causes: tuple[Causality, Causes | None] | None = None  # None: given up
        self._rules_of_waits: Rules | None = None
        self._why_no_waits = ""
        self._asked_statistics: StatisticsRequest | None = None
        self._statistics: tuple[TraceStore, Statistics] | None = None  # of a store
        self._fits = Fits()
        self._named_fits: list[tuple[PhaseFit, object, PhaseFit]] = []  # with and without names
        self._unlimited: tuple[TraceRun, Fits] | None = None  # of the whole run
        self._anew = False  # what is open was opened without phases that were asked for before
        self._given_up: tuple[Fits, SweepKey] | None = None  # the sweep that the user does not want
        self._widening: tuple[Fits, SweepKey, int] | None = None  # the sweep being made, up to which n
        self._store: TraceStore | None = None
        self._stamp: tuple[int, int] | None = None
        self._parked: list[Opened] = []  # shown before, the latest last
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
        options: OpenOptions = AS_FOUND,
        asked: Branch[Project] | None = None,
        view: View | None = None,
    ) -> None:
        """Import `source`, or use what was imported before, and fit it, as was `asked` of it before.

        What is open stays until the new trace is there, and if it cannot be had.
        """
        former = None if asked is None else asked.value
        self._open_member = lambda name: self.open(source, replace(options, member=name), asked, view)

        def done(opened: Opened) -> None:
            self._release()
            store, document, self._unlimited, (run, self._fits), self._stamp, waits, lack = opened
            self._store = store
            self._causality = None if waits is None else (store, waits)
            fits = self._fits
            if asked is not None and former is not None:
                fitting = replace(former, curve=run.name)
                if run.limit != former.limit:  # of a trace that has become another
                    fitting = limited(former, None, ends_of(run.curve))
                fitting = replace(fitting, phases=within(fitting.phases, run.curve))
                self._turn_to(asked if fitting == former else self.history.branch(fitting, self.turn))
            else:
                self._turn_to(self.history.branch(Project(first_settings(run, fits)), self.turn))
            project = self.asked
            self._resolve(
                project=project if view is None else replace(project, view=view), document=document, run=run,
                fit=None, rows=(), opening=None, problem=Problem(lack) if lack else None, marked=(),
                boundaries=(), explained=NOTHING,
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
        """Have the exact curve in place of a coarse one, which stays in hand until then. Phases that are as
        suggested, and that nobody has chosen, become what is suggested then."""
        store, key, coarse = self._store, self._key(self._phases), self.snapshot.run
        if store is None or coarse is None or not coarse.coarse:
            return
        if self._sharpening.busy or not self._is_of(coarse):
            return

        def done(built: tuple[TraceRun, Fits]) -> None:
            if self.snapshot.run is not coarse or not self._is_of(coarse):
                return  # another one is on its way
            self._unlimited = run, self._fits = built
            swept = self._fits.sweeps.get(self._key(self._phases))
            if swept is not None and self.snapshot.as_suggested and not self._chosen:
                phases = suggested_of(self._phases, run, swept)
                self.branch.value = replace(self.asked, phases=phases)  # nobody's step
            project = replace(self.asked, view=self._view)
            self._resolve(project=project, run=run, fit=None, rows=(), explained=NOTHING)

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
    def _chosen(self) -> bool:
        """Whether the number of phases was kept, or is somebody's choice, also of what is suggested."""
        for step in reversed(self.branch.steps):
            if step.key == "n" or step.before.phases != step.after.phases:
                return step.key != "suggested"
        return not self._anew

    def cancel_exact(self) -> None:
        """Stay with the coarse curve, until `sharpen`."""
        self._sharpening.cancel()

    def open_member(self, name: str) -> None:
        """Open one of several traces in the archive that was asked for last."""
        self._open_member(name)

    def run(self, title: str, work: Callable[[Job], T], done: Callable[[T], None]) -> None:
        """Other long work on files, shown and cancelled as opening is, and replaced by it."""

        def finished(result: T) -> None:
            self._show(opening=None)
            done(result)

        self._keep_rules()
        self._on_files(title, work, finished)

    def _on_files(self, title: str, work: Callable[[Job], T], done: Callable[[T], None]) -> None:
        """Work on files, shown as opening is."""

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
        """Give up `open` or a change of rules; what was open before is as it was."""
        self._files.cancel()
        self._keep_rules()
        self._show(opening=None)

    @property
    def fits_under_way(self) -> dict[str, tuple[Task, Callable[[], None]]]:
        """Fits and what they need, made beside the window, each as a task, and how it is given up."""
        under_way = {}
        for name, lane, give_up in (
            ("exact", self._sharpening, self.cancel_exact),
            ("fit", self._fitting, self.cancel_fit),
            ("sweep", self._sweeping, self.cancel_sweep),
            ("waiting", self._tracing_waits, self.cancel_waiting),
            ("helps", self._imagining.helping, self._imagining.cancel_helps),
        ):
            job = lane.current
            if job is not None and (lane is not self._sweeping or self._widening is not None):
                under_way[name] = replace(job.task, elapsed=job.elapsed), give_up
        return under_way

    def cancel_fit(self) -> None:
        """Give up the fit that is being made: phases are asked for again as they were last known."""
        if not self._fitting.busy:
            return
        self._fitting.cancel()
        before = [step.before.phases for step in reversed(self.branch.steps)]
        swept = [
            PhaseSettings(key.model, max(1, known.suggestion.n), key.locked)
            for key, known in self._fits.sweeps.items()
        ]
        for phases in (*before, *swept):
            if self._known(phases) is not None:
                self._edit_phases("give up the fit", None, phases)
                return
        self._show(refining=False)

    def cancel_sweep(self) -> None:
        """Give up fitting every n, until the model or the locks become others."""
        if self._sweeping.busy and self._widening is not None:
            self._sweeping.cancel()
            fits, key, _ = self._widening
            self._given_up = fits, key
            self._show(given_up=key not in fits.sweeps)

    def _is_given_up(self, phases: PhaseSettings) -> bool:
        """Whether fitting every n was given up for a model and its locks."""
        given_up = self._given_up
        return given_up is not None and given_up[0] is self._fits and given_up[1] == self._key(phases)

    def close_document(self) -> None:
        """Back to nothing open."""
        self._files.cancel()
        self._fitting.cancel()
        self._sweeping.cancel()
        self._release(park=False)
        self._fits, self._unlimited = Fits(), None
        self._turn_to(self.history.branch(Project(), self.turn))
        self._tell(Snapshot())

    def _turn_to(self, branch: Branch[Project]) -> None:
        """Another run; the steps of the one before wait until it is shown again."""
        self.branch.parked, branch.parked = True, False
        self.branch = branch
        self.history.seal()
        self.history.changed()

    def report(self, error: BaseException) -> None:
        """Show what went wrong elsewhere in the window."""
        self._failed(error)

    def dismiss_problem(self) -> None:
        self._show(problem=None)

    # ---- edits

    def set_n(self, n: int) -> None:
        """So many phases (parameters for "budget"); the algorithm finds the breaks."""
        phases = self._phases
        n = max(self.least_n, min(N_LIMIT, n))
        if n != phases.n or phases.breaks is not None:
            noun = "parameters" if phases.model == "budget" else "phases"
            self._edit_phases(f"set {n} {noun}", "n", replace(phases.free(), n=n))

    @property
    def least_n(self) -> int:
        """The smallest n that the model and the locked breaks allow."""
        return least_n(self._phases.model, self._phases.locked)

    def step_n(self, by: int) -> None:
        """More or fewer; from breaks set by hand, their number counts."""
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
        chosen = replace(phases.free(), model=model, n=n, seconds=None, also="")
        self._edit_phases(f"choose {model} phases", "model", chosen)

    def set_seconds(self, seconds: float | None) -> None:
        """The period or time constant of phases that have one; None: as searched."""
        phases = self._phases
        if seconds != phases.seconds and phases.scale:
            self._edit_phases("set the period", None, replace(phases.free(), seconds=seconds))

    def set_also(self, also: str) -> None:
        """What phases of mixed degrees may be beside polynomials, the model of a space, or ""."""
        if also != self._phases.also:
            chosen = replace(self._phases.free(), also=also, seconds=None)
            self._edit_phases("choose what phases may be", None, chosen)

    def use_suggestion(self) -> None:
        swept, shown = self._fits.sweeps.get(self._key(self._phases)), self.snapshot
        if shown.suggestion is not None and shown.run is not None and swept is not None:
            phases = suggested_of(self._phases, shown.run, swept)
            self._edit_phases(f"take the suggested {phases.n}", "suggested", phases)

    def set_pure(self, pure: bool) -> None:
        """Fit and suggest by the curve alone, or with the help of structure events."""
        phases = self._phases
        if pure != phases.pure:
            label = "fit the curve alone" if pure else "fit with structure events"
            free = phases.free() if phases.suggested else phases
            self._edit_phases(label, None, replace(free, pure=pure))

    def refit(self) -> None:
        """Let the algorithm find the breaks again, around the locked ones."""
        if self._phases.breaks is not None:
            self._edit_phases("let all breakpoints go", None, self._phases.free())

    def drag_breakpoint(self, index: int, time_s: float) -> None:
        """Show the fit with break `index` (1..n-1) held at `time_s`, without an edit."""
        breaks = self._moved(index, time_s)
        if breaks is not None:
            self._show_fit(self._by_hand(breaks, self._phases.locked)[1], preview=True)

    def cancel_drag(self) -> None:
        if self.snapshot.preview:
            self._resolve(preview=False)

    def move_breakpoint(self, index: int, time_s: float) -> None:
        """Set break `index` (1..n-1) by hand; it keeps its lock."""
        breaks = self._moved(index, time_s)
        if breaks is None:
            return
        before = self._settled_breakpoints()
        locked = tuple(sorted(breaks[index] if t == before[index] else t for t in self._phases.locked))
        self._hand_edit(f"move breakpoint {index}", breaks, locked)

    def add_breakpoint(self, time_s: float) -> None:
        breaks = list(self._settled_breakpoints())
        if not breaks or not breaks[0] < time_s < breaks[-1]:
            return
        gap = CLOSEST * (breaks[-1] - breaks[0])
        if min(abs(time_s - b) for b in breaks) < gap:
            return
        insort(breaks, time_s)
        self._hand_edit(f"add breakpoint {breaks.index(time_s)}", tuple(breaks), self._phases.locked)

    def remove_breakpoint(self, index: int) -> None:
        breaks = self._settled_breakpoints()
        if 0 < index < len(breaks) - 1:
            locked = tuple(t for t in self._phases.locked if t != breaks[index])
            self._hand_edit(f"remove breakpoint {index}", breaks[:index] + breaks[index + 1 :], locked)

    def take_breakpoints(self, times_s: Sequence[float]) -> None:
        """Phases between these times (seconds), of which those in the run count, in place of all breaks.

        Raises
        ------
        ValueError : that makes more than `N_LIMIT` phases.
        """
        run = self.snapshot.run
        if run is None or self._settled() is None:
            return
        start, end = ends_of(run.curve)
        close = max(CLOSEST * (end - start), 2 * run.curve.unit)
        breaks = [start]
        for time_s in sorted(times_s):
            if time_s - breaks[-1] >= close and end - time_s >= close:
                breaks.append(float(time_s))
        if len(breaks) > N_LIMIT:
            raise ValueError(f"{len(breaks)} phases are more than the {N_LIMIT} that there may be")
        self._hand_edit("take iterations as phases", (*breaks, end), ())

    def toggle_lock(self, index: int) -> None:
        """Keep break `index` where it is in all further fits, or let it go."""
        breaks = self._settled_breakpoints()
        if not 0 < index < len(breaks) - 1:
            return
        time_s, locked = breaks[index], self._phases.locked
        if time_s in locked:
            locked, verb = tuple(t for t in locked if t != time_s), "unlock"
        else:
            locked, verb = tuple(sorted((*locked, time_s))), "lock"
        # The breaks stay as they are seen; the lock acts on the next fit.
        self._hand_edit(f"{verb} breakpoint {index}", breaks, locked)

    def limit_to(self, span: tuple[float, float] | None) -> None:
        """Analyse this range of time (seconds) only; None: the whole run again."""
        run, project = self.snapshot.run, self.asked
        if run is None:
            return
        whole = ends_of(run.whole.curve)
        if span is not None:
            span = max(min(span), whole[0]), min(max(span), whole[1])
            if not holds(run.whole.curve, span):
                self._show(problem=Problem("The range is too short to be analysed, select a longer one."))
                return
        if span == whole:
            span = None
        if span != project.limit:
            label = "remove the limit of the analysis" if span is None else "limit the analysis"
            asked = limited(project, span, whole)
            if self.snapshot.as_suggested:  # another range has others
                self._choosing = project.curve, label, f"limit {span}"
                asked = replace(asked, phases=asked.phases.free())
            self._edit(label, asked, f"limit {span}")

    def set_curve(self, curve: str) -> None:
        """Fit another curve, as `desktop.data.curves` names it, with the phases that are suggested for it."""
        if curve != self.asked.curve:
            self._choosing = curve, f"fit the curve {curve}", f"curve {curve}"
            asked = replace(self.asked, curve=curve, phases=self._phases.free())
            self._edit(f"fit the curve {curve}", asked, f"curve {curve}")

    def toggle_track(self, curve: str) -> None:
        """Draw a curve below the one that is fitted, or leave it out."""
        tracks = tuple(track for track in self.asked.tracks if track != curve)
        if tracks != self.asked.tracks:
            self._edit(f"leave out {curve}", replace(self.asked, tracks=tracks))
        elif len(tracks) == TRACKS:
            self._show(problem=Problem(f"{TRACKS} curves are drawn already, leave one out first."))
        else:
            self._edit(f"draw {curve}", replace(self.asked, tracks=(*tracks, curve)))

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
        self._edit_rules("take times as at first", repaired=None)

    def reset_regions(self) -> None:
        self._edit_rules("classify regions as at first", overrides={})

    def reset_computing(self) -> None:
        self._edit_rules("count computing alone", computing=type(self._rules())().computing)

    def reset_rules(self) -> None:
        if self.asked.rules is not None:
            self._edit("classify as at first", replace(self.asked, rules=None))

    def annotate(
        self,
        text: str,
        start_s: float,
        end_s: float | None = None,
        location: int | None = None,
        colour: int | None = None,
    ) -> None:
        """A remark on an instant or a range (seconds); None: in the colour after the last one's."""
        known = self.asked.annotations
        if colour is None:
            colour = (known[-1].colour + 1) % COLOURS if known else 0
        annotation = Annotation(start_s, text, end_s, colour, location)
        self._edit_annotations("add annotation", (*known, annotation))

    def change_annotation(self, index: int, **changes: object) -> None:
        """Other values for fields of annotation `index`."""
        known = self.asked.annotations
        annotation = changed(known[index], changes)
        if annotation != known[index]:
            verb = "edit" if "hidden" not in changes else "hide" if annotation.hidden else "show"
            self._edit_annotations(f"{verb} annotation", (*known[:index], annotation, *known[index + 1 :]))

    def remove_annotation(self, index: int) -> None:
        known = self.asked.annotations
        self._edit_annotations("delete annotation", (*known[:index], *known[index + 1 :]))

    def keep_view(self, number: int, seen: View, name: str = "") -> None:
        """Keep what is looked at as view `number`; of `seen` what only the plots know counts."""
        old = next((named_view.name for named_view in self.asked.views if named_view.number == number), "")
        own = self._view
        view = replace(seen, selection=own.selection, phase=own.phase, shown=own.shown)
        new_view = NamedView(number, name or old, view)
        self._edit_views(f"keep view {number}", new_view, number)

    def rename_view(self, number: int, name: str) -> None:
        for named_view in self.asked.views:
            if named_view.number == number and named_view.name != name:
                self._edit_views(f"rename view {number}", replace(named_view, name=name), number)

    def remove_view(self, number: int) -> None:
        self._edit_views(f"delete view {number}", None, number)

    def name_phase(self, phase: int, name: str) -> None:
        """Call a phase (from 0) otherwise, wherever its breaks go; as before if `name` is empty."""
        fit = self.snapshot.fit
        if fit is None or not 0 <= phase < fit.n or name == (fit.names[phase] if fit.names else ""):
            return
        start, end = fit.breaks[phase : phase + 2].tolist()
        others = tuple(one for one in self.asked.phase_names if not start <= one.at_s < end)
        more = (PhaseName((start + end) / 2, name),) if name else ()
        names = tuple(sorted((*others, *more), key=lambda one: one.at_s))
        if names != self.asked.phase_names:
            self._edit(f"name phase {phase + 1}", replace(self.asked, phase_names=names))

    def write_note(self, phase: int | None, text: str | None) -> None:
        """What a speaker says of a phase (from 0), of the run (None); as suggested if `text` is None."""
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
            for one in self.asked.spoken
            if (one.at_s is None) != whole or not start <= (one.at_s or 0.0) < end
        ]
        spoken = (*others, *(() if text is None else (SpeakerNote(text, at),)))
        if spoken != self.asked.spoken:
            self._edit("write notes", replace(self.asked, spoken=spoken), f"note {phase}")

    def name_region(self, region: str, name: str) -> None:
        """Call a region otherwise; by its own name again if `name` is empty."""
        names = dict(self.asked.names)
        names.pop(region, None)
        if name and name != region:
            names[region] = name
        if names != self.asked.names:
            self._edit(f"rename {region}", replace(self.asked, names=names))

    def choose_report(self, choices: ReportChoices) -> None:
        """What the next report is to hold, as that of today does."""
        if choices != self.asked.report:
            self._edit("choose what reports hold", replace(self.asked, report=choices))

    def seal(self) -> None:
        """The gesture is over: the next edit is a step of its own."""
        self.history.seal()

    # ---- statistics

    def watch(self, who: str, parts: frozenset[Part]) -> None:
        """A panel shows these parts of the statistics from now on (none: it is hidden). Nothing is computed
        that no panel shows."""
        if parts:
            self._watched[who] = parts
        else:
            self._watched.pop(who, None)
        self._imagine()
        if self._watched:
            self._ask_statistics()
        elif self._counting.busy or self.snapshot.explained.problem:
            self._counting.cancel()
            self._asked_statistics = None

    def set_scope(self, scope: str) -> None:
        self.scope = scope
        self._ask_statistics()

    def _known_causality(self, run: TraceRun) -> Causality | None:
        """Who waited for whom, if that is known with the rules of a run."""
        known = self._causality
        if known is None or known[0] is not self._store or known[1] is None:
            return None
        return known[1] if known[1].rules == run.utilization.rules else None

    def _known_causes(self, run: TraceRun) -> Causes | None:
        """What caused the waiting, if that is known."""
        known, causality = self._causes, self._known_causality(run)
        return known[1] if known is not None and known[0] is causality else None

    def _find_causes(self, request: StatisticsRequest) -> None:
        """What caused the waiting, when accounts have been shown."""
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
            explained = self.snapshot.explained
            self._show(explained=replace(explained, problem=str(error)))

        self._tracing_waits.submit("Causes of waiting", work, done, failed)

    def _find_causality(self, request: StatisticsRequest) -> None:
        """Who waited for whom, when what takes no pass over calls and messages has been shown."""
        if request.parts & {"accounts", "words"} and request.causality is None:
            self._trace_waits(request.store, request.run.utilization.rules)

    def _trace_waits(self, store: TraceStore, rules: Rules) -> bool:
        """Go through all calls and messages, once for a run and its rules; False: that was given up."""
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
                    f"Who waited for whom is not found out: it takes {needed / 2**30:.1f} GiB of memory, "
                    f"{free / 2**30:.1f} GiB are free",
                    hint="free some, or open a shorter trace",
                )
            return Causality(store, rules, job)

        def done(waits: Causality) -> None:
            self._causality = store, waits
            self._ask_statistics()
            self._imagine()

        def failed(error: BaseException) -> None:
            self._causality, self._why_no_waits = (store, None), str(error)
            self._show(explained=replace(self.snapshot.explained, waits=str(error)))

        self._tracing_waits.submit("Who waited for whom", work, done, failed)
        self._show()  # that it is under way
        return True

    def cancel_waiting(self) -> None:
        """Give up finding out who waited for whom, until another trace is opened."""
        if self._tracing_waits.busy and self._store is not None:
            self._tracing_waits.cancel()
            known = self._causality
            if known is not None and known[1] is not None and known[1].rules == self._rules_of_waits:
                self._causes = known[1], None
                self._show()
            else:
                self._causality, self._why_no_waits = (self._store, None), WAITS_GIVEN_UP
                self._show(explained=replace(self.snapshot.explained, waits=WAITS_GIVEN_UP))

    def _ask_statistics(self) -> None:
        if self._wanted_statistics(self.snapshot) is not None:
            self._show()

    def _wanted_statistics(self, snapshot: Snapshot) -> StatisticsRequest | None:
        """What the panels that are looked at want to know now; None: what was asked for last."""
        if self._store is None or snapshot.run is None or snapshot.run.coarse or not self._watched:
            return None
        if snapshot.preview or snapshot.refining:
            return None
        view, parts = snapshot.project.view, frozenset[Part]().union(*self._watched.values()) - {"whatif"}
        if not parts:
            return None
        explained = snapshot.explained
        known = explained.iterations if explained.run is snapshot.run else None
        waits = bool(parts & {"accounts", "words"})
        called = dict(snapshot.project.names)
        before = self._asked_statistics
        same = before is not None and before.called == called and explained.fit is snapshot.fit
        request = StatisticsRequest(
            self._store, snapshot.run, snapshot.fit, view.selection, view.phase, self.scope, parts,
            self._known_causality(snapshot.run) if waits else None,
            self._known_causes(snapshot.run) if waits else None, called,
            explained.words if same and explained.run is snapshot.run else None, known, explained,
        )  # fmt: skip
        return None if request.same(self._asked_statistics) else request

    def _request_statistics(self, request: StatisticsRequest) -> None:
        """Of requests in quick succession (n under the hand) only the last is answered."""

        def work(job: Job) -> Explained:
            begun = time.monotonic()
            while time.monotonic() - begun < self.settle:
                job.step(0, 0)
                time.sleep(0.01)
            from desktop.data.statistics import Statistics

            statistics = self._statistics
            if statistics is None or statistics[0] is not request.store:
                statistics = self._statistics = request.store, Statistics(request.store)
            return request.answer(statistics[1], job, lambda early: self._counting.tell(job, show, early))

        def show(explained: Explained) -> None:
            if explained.causality is None and not explained.there and request.parts & {"accounts", "words"}:
                given_up = self._causality is not None and self._causality[1] is None
                explained = replace(explained, waits=self._why_no_waits if given_up else WAITS_ON_THE_WAY)
            self._show(explained=explained)

        def done(explained: Explained) -> None:
            show(explained)
            if not explained.there:
                self._find_causality(request)
            self._find_causes(request)

        def failed(error: BaseException) -> None:
            # What was asked for stays as it is: the same would fail again, and again.
            self._show(explained=Explained(request.fit, problem=str(error)))

        self._counting.submit("Statistics", work, done, failed)

    def ask_what_if(self, changes: Changes | None) -> None:
        """Predict the run with changes, of which the last win; None: as it was."""
        if changes != self.asked.what_if:
            self._edit("change what is different", replace(self.asked, what_if=changes), "what if")

    def _imagine(self) -> None:
        """Make ready what a panel that is looked at, or a prediction that is drawn, needs."""
        shown, imagined = self.snapshot, self.snapshot.imagined
        changes = self.asked.what_if
        looked_at = any("whatif" in parts for parts in self._watched.values())
        wanted = looked_at or changes is not None or imagined.changes is not None
        if not wanted or shown.preview or shown.refining or self._store is None:
            return
        if shown.run is not None and shown.fit is not None and not shown.run.coarse:
            breaks, known = tuple(shown.fit.breaks[1:-1].tolist()), self._known_causality(shown.run)
            far = self._store.elsewhere is not None  # then the run is replayed there
            if known is None and not far and self._trace_waits(self._store, shown.run.utilization.rules):
                self._imagining.wait()  # there is one pass for all who need it, and one copy of what it finds
            else:
                self._imagining.look(self._store, shown.run, breaks, changes, known)

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

    def know_repeats(self, fit: PhaseFit | None, firm: tuple[Firm | None, ...]) -> None:
        """How firm the breakpoints of a fit are over runs of the same program."""
        if (fit, firm) != self.snapshot.repeated:
            self._show(repeated=(fit, firm))

    def toggle_class(self, name: str) -> None:
        """Draw a class of the stack or leave it out."""
        self._look(shown=self._view.shown ^ {name})

    def show_view(self, number: int) -> View | None:
        """Look at what was kept under a number; the plots show its span and order."""
        for named_view in self.asked.views:
            if named_view.number == number:
                view = named_view.view
                there = view.phase is not None and view.phase < len(self.snapshot.rows)
                self._look(selection=view.selection, phase=view.phase if there else None, shown=view.shown)
                return view
        return None

    # ---- inside

    @property
    def _phases(self) -> PhaseSettings:
        return self.asked.phases

    @property
    def _view(self) -> View:
        return self.snapshot.project.view

    def _rules(self) -> Rules:
        from desktop.data.utilization import Rules

        return self.asked.rules or Rules()

    def _tell(self, snapshot: Snapshot) -> None:
        request = self._wanted_statistics(snapshot)
        if request is not None:
            self._asked_statistics = request
            if snapshot.explained.scopes:
                snapshot = replace(snapshot, explained=replace(snapshot.explained, outdated=True))
        super()._tell(snapshot)
        if request is not None and request is self._asked_statistics:
            self._request_statistics(request)
        self._imagine()

    def _look(self, **changes: object) -> None:
        project = self.snapshot.project
        view = changed(project.view, changes)
        if view != project.view:
            self._show(project=replace(project, view=view))

    def _edit(self, label: str, asked: Project, key: str | None = None) -> None:
        if self.snapshot.run is not None:
            super()._edit(label, asked, key)

    def _edit_phases(self, label: str, key: str | None, phases: PhaseSettings) -> None:
        self._edit(label, replace(self.asked, phases=phases), key)

    def _edit_rules(self, label: str, **changes: object) -> None:
        rules = changed(self._rules(), changes)
        if rules != self._rules():
            self._edit(label, replace(self.asked, rules=rules))

    def _edit_annotations(self, label: str, annotations: tuple[Annotation, ...]) -> None:
        self._edit(label, replace(self.asked, annotations=annotations))

    def _edit_views(self, label: str, new_view: NamedView | None, number: int) -> None:
        others = [one for one in self.asked.views if one.number != number]
        views = tuple(sorted([*others, *([new_view] if new_view else [])], key=lambda one: one.number))
        if views != self.asked.views:
            self._edit(label, replace(self.asked, views=views))

    def _hand_edit(self, label: str, breaks: tuple[float, ...], locked: tuple[float, ...]) -> None:
        phases, fit = self._by_hand(breaks, locked)
        self._fits.single[phases] = fit
        self._edit_phases(label, None, phases)

    def turn(self, asked: Project) -> None:
        """Show a project of the history; the view is not part of it."""
        project, before = asked, self.snapshot.project
        view = before.view
        if (project.phases.n, project.phases.model) != (before.phases.n, before.phases.model):
            view = replace(view, phase=None)
        shown = replace(project, view=view)
        if (project.rules, project.limit, project.curve) != (before.rules, before.limit, before.curve):
            self._rebuild(shown)
        else:
            self._resolve(project=shown, preview=False)

    def _rebuild(self, shown: Project) -> None:
        """The rules, the limit or the choice of the curve have changed: it has to be built anew, beside the
        window."""
        store, rules, known, limit = self._store, self._rules(), self._unlimited, self.asked.limit
        key, name = self._key(self._phases), self.asked.curve
        assert store is not None
        if known is not None and known[0].coarse:
            known = None  # what is built now is exact
        same = known is not None and (known[0].rules, known[0].name) == (rules, name)

        def work(job: Job) -> tuple[tuple[TraceRun, Fits], tuple[TraceRun, Fits]]:
            whole = known if same else None
            whole = whole or build_run(
                store, rules, key._replace(locked=()), job, name, None if known is None else known[0]
            )
            return whole, whole if limit is None else part_of(whole[0], limit, key, job)

        def done(built: tuple[tuple[TraceRun, Fits], tuple[TraceRun, Fits]], **more: object) -> None:
            self._unlimited, (run, self._fits) = built
            self._sharpening.cancel()
            chosen, self._choosing = self._choosing, None
            swept = self._fits.sweeps.get(self._key(self._phases))
            if chosen is not None and chosen[0] == run.name and swept is not None:
                asked = replace(self.asked, phases=suggested_of(self._phases, run, swept))
                self.branch.edit(chosen[1], asked, chosen[2])
                more["project"] = replace(asked, view=replace(self._view, phase=None))
            # The old fit says nothing about the new curve.
            self._resolve(run, opening=None, fit=None, rows=(), boundaries=(), **more)

        def failed(error: BaseException) -> None:
            self._keep_rules()
            self._show(opening=None, problem=problem_of(error))

        if known is not None and same and limit is None:
            self._files.cancel()
            done((known, known), project=shown, preview=False)
            return
        self._resolve(project=shown, preview=False)
        title = "Building the curve" if limit is None or not same else "Limiting the analysis"
        self._files.submit(title, work, done, failed, lambda task: self._show(opening=task))

    def _keep_rules(self) -> None:
        """Leave a change of rules or of the limit, made or undone, whose curve was not finished."""
        run = self.snapshot.run
        if run is None or self._is_of(run):
            return
        for go in (self.history.back, self.history.forth, self.history.forth):
            go(self.branch)
            if self._is_of(run):
                break
        self._resolve(project=replace(self.asked, view=self._view))
        self.sharpen()

    def _is_of(self, run: TraceRun) -> bool:
        """Whether a run is the one that the project asks for."""
        return self._rules() == run.rules and self._on(run)

    def _on(self, run: TraceRun) -> bool:
        """Whether a run is of the curve and the part of it that the project asks for."""
        return (self.asked.limit, self.asked.curve) == (run.limit, run.name)

    def _resolve(self, run: TraceRun | None = None, **changes: object) -> None:
        """Answer the project: from what is known, at once if that is quick, else by a job.

        One snapshot says it all, so that the window is drawn once.
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
        sweep, suggestion, known = self._fits.sweeps.get(self._key(phases), (None, None, None))
        fit = self._known(phases) or self._quick(run, phases)
        shown = None if "fit" in changes else self.snapshot.fit
        changes.pop("fit", None)
        changes |= {"sweep": sweep, "suggestion": suggestion, "known": known, "refining": fit is None}
        changes["given_up"] = sweep is None and self._is_given_up(phases)
        self._show_fit(fit or shown, run, **changes)
        if sweep is None or reaches(sweep) < phases.n:
            self._request_sweep(run, phases)
        if fit is None:
            self._request_fit(run, phases)
        else:
            self._fitting.cancel()

    def _tracks(self, run: TraceRun) -> dict[str, object]:
        """The curves below that are known; others are built beside the window."""
        asked, store, use = self.asked.tracks, self._store, run.utilization
        if run.coarse:
            return {"tracks": ()}
        assert store is not None
        if self._made is None or self._made[0] is not use:
            self._made, self._building = (use, {}), []
        curves = self._made[1]
        missing = [name for name in asked if name not in curves]

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
            lack = [name for name in self.asked.tracks if name in by_name and by_name[name] is None]
            if lack:
                self._show(problem=Problem(f"This trace has no curve {', '.join(lack)}."))

        if not missing:
            self._tracking.cancel()
        elif not self._tracking.busy or self._building != missing:
            self._building = missing
            self._tracking.submit("Building curves", work, done, self._failed)
        known = ((name, curves.get(name)) for name in asked)
        return {"tracks": tuple((name, curve) for name, curve in known if curve is not None)}

    def _known(self, phases: PhaseSettings) -> PhaseFit | None:
        fit = self._fits.single.get(phases)
        swept = self._fits.sweeps.get(self._key(phases))
        if fit is None and phases.breaks is None and swept is not None and phases.n <= reaches(swept.sweep):
            fit = swept.sweep.fit(phases.n)
        return fit

    def _key(self, phases: PhaseSettings) -> SweepKey:
        return key_of(phases, self.asked.annotations)

    def _quick(self, run: TraceRun, phases: PhaseSettings) -> PhaseFit | None:
        """The fit, if by experience it takes less than a frame."""
        if phases.breaks is not None:
            fit = with_breakpoints(run, phases)
        elif self._fits.pace.get(phases.model, INLINE) * phases.n < INLINE:
            fit = self._timed_fit(run, phases, self._fits, self.snapshot.known)
        else:
            return None
        self._fits.single[phases] = fit
        return fit

    def _request_fit(self, run: TraceRun, phases: PhaseSettings) -> None:
        fits, swept = self._fits, self._fits.sweeps.get(self._key(phases))
        known, asked = None if swept is None else swept.known, self.asked

        def work(job: Job) -> tuple[PhaseFit, tuple[PhaseRow, ...]]:
            fit = named(run, self._timed_fit(run, phases, fits, known, job.stop), asked)
            return fit, rows_of(run, fit)  # here, as the window has enough to do when the fit arrives

        def done(answer: tuple[PhaseFit, tuple[PhaseRow, ...]]) -> None:
            fit, rows = answer
            fits.single[phases] = fit
            if self.snapshot.run is run and self.snapshot.project.phases == phases:
                self._show(fit=fit, rows=rows, refining=False)

        noun = "parameters" if phases.model == "budget" else "phases"
        self._fitting.submit(f"Fitting {phases.n} {noun}", work, done, self._fit_failed)

    def _request_sweep(self, run: TraceRun, phases: PhaseSettings) -> None:
        """Every n, up to the one in use as far as that does not take too long."""
        fits, key = self._fits, self._key(phases)
        if self._is_given_up(phases):
            return
        self._given_up = None
        known = fits.sweeps.get(key)
        to = 0 if known is None else reaches(known.sweep)
        if known is not None and to >= LIMIT:
            return
        while known is not None and to < min(phases.n, LIMIT):
            to = min(2 * to, LIMIT)
        if self._sweeping.busy and self._widening is not None:
            of, widened, far = self._widening
            if of is fits and widened == key and to <= far:
                return
        self._widening = fits, key, to

        def done(answer: Swept) -> None:
            fits.sweeps[key] = answer
            if self.snapshot.run is run and self._key(self.snapshot.project.phases) == key:
                self._show(sweep=answer.sweep, suggestion=answer.suggestion, known=answer.known)

        self._sweeping.submit(
            "Fitting every n", lambda job: sweep_of(run, key, job, known, to), done, self._fit_failed
        )

    @staticmethod
    def _timed_fit(
        run: TraceRun, phases: PhaseSettings, fits: Fits, known: Landmarks | None, stop: Bytes | None = None
    ) -> PhaseFit:
        begun = time.perf_counter()
        fitted = phases.fit(run.curve, known, stop=stop)
        fits.pace[phases.model] = (time.perf_counter() - begun) / phases.n
        return fitted

    def _by_hand(
        self, breaks: tuple[float, ...], locked: tuple[float, ...]
    ) -> tuple[PhaseSettings, PhaseFit]:
        """The fit with these breaks, and how to ask for it. Phases between the same breaks as before are
        exactly as before."""
        run, settled = self.snapshot.run, self._settled()
        assert run is not None and settled is not None
        ends = settled.breaks.tolist()
        known = zip(ends[:-1], ends[1:], settled.degree.tolist(), strict=True)
        phases = replace(self._phases, locked=locked).by_hand(breaks, known)
        fit = with_breakpoints(run, phases, settled)
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
        """The fit with what its phases are called; the same object as long as it is asked for again."""
        asked = self.asked.phase_names, self.asked.names
        recent = self._named_fits
        for k, (known, how, fit_named) in enumerate(recent):
            if known is fit and how == asked:
                recent.append(recent.pop(k))
                return fit_named
        fit_named = named(run, fit, self.asked)
        recent.append((fit, asked, fit_named))
        del recent[:-NAMED]
        return fit_named

    def _settled(self) -> PhaseFit | None:
        """The fit before a drag that may be going on; None while another part of the run is made ready."""
        run = self.snapshot.run
        if run is None or not self._on(run):
            return None
        return self._known(self._phases) or self.snapshot.fit

    def _settled_breakpoints(self) -> tuple[float, ...]:
        settled = self._settled()
        return () if settled is None else tuple(settled.breaks.tolist())

    def _moved(self, index: int, time_s: float) -> tuple[float, ...] | None:
        breaks = self._settled_breakpoints()
        if not 0 < index < len(breaks) - 1:
            return None
        gap = min(CLOSEST * (breaks[-1] - breaks[0]), (breaks[index + 1] - breaks[index - 1]) / 4)
        limited = max(breaks[index - 1] + gap, min(breaks[index + 1] - gap, time_s))
        return (*breaks[:index], limited, *breaks[index + 1 :])

    def _failed(self, error: BaseException) -> None:
        self._show(problem=problem_of(error))

    def _fit_failed(self, error: BaseException) -> None:
        self._show(refining=False, problem=problem_of(error))

    def _release(self, *, park: bool = True) -> None:
        """Put the trace that is shown aside, as long as few are and memory allows; else close its store, and
        those of all before."""
        if self._store is not None:
            self._tracking.cancel()
            self._sharpening.cancel()
            self._made = None
            self._counting.cancel()
            self._imagining.forget()
            self._tracing_waits.cancel()
            waits = None if self._causality is None else self._causality[1]
            if waits is not None and waits.size > memory.limit() // 4:  # rather than drop the trace
                waits = None
            self._asked_statistics = self._statistics = self._causality = self._causes = None
            store, self._store = self._store, None
            document, run, whole = self.snapshot.document, self.snapshot.run, self._unlimited
            if run is not None and (run.coarse or whole is None or run.whole is not whole[0]):
                run = None  # it is not all that it is to be
            if document is not None and run is not None and whole is not None:
                self._parked.append(Opened(store, document, whole, (run, self._fits), self._stamp, waits))
            else:
                store.close()
        most = PARKED if park else 0
        while len(self._parked) > most or sum(one.size for one in self._parked) > memory.limit():
            self._parked.pop(0).store.close()

    def _take_parked(self, source: Path, options: OpenOptions, project: Project | None) -> Opened | None:
        """What was put aside of a trace, if it is still what is asked for."""
        from desktop.data.utilization import Rules

        for one in self._parked:
            if (one.document.source, one.document.options) == (source, options) and project is not None:
                self._parked.remove(one)
                wanted = project.rules or Rules(), project.limit, project.curve
                run = one.shown[0]
                if one.stamp == stamp_of(source) and (run.rules, run.limit, run.name) == wanted:
                    return one
                one.store.close()
                return None
        return None


__all__ = ["Document", "Problem", "Progress", "Snapshot", "TraceRun", "Workbench"]

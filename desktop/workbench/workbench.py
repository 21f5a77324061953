"""The one door of the window: edits go in, snapshots come out.

`Workbench.snapshot` says what is to be shown. Every change makes a new one and calls the subscribers with
the old and the new; what did not change is the same object, so that they redraw the difference only.
All methods are called in the owner's thread (see `desktop.workbench.jobs`).
"""

from __future__ import annotations

import time
from bisect import insort
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from desktop.data import memory
from desktop.data.naming import location_name, run_name
from desktop.progress import Progress
from desktop.workbench.bench import Bench
from desktop.workbench.explaining import NOTHING, Explained, Explainer
from desktop.workbench.history import History
from desktop.workbench.jobs import Deliver, Executor, Job, Lane, Task, at_once
from desktop.workbench.limiting import limited
from desktop.workbench.model import (
    AS_FOUND,
    CLASSES,
    COLOURS,
    DEFAULT_MODEL,
    Annotation,
    NamedView,
    OpenOptions,
    PhaseSettings,
    Project,
    ReportChoices,
    View,
)

if TYPE_CHECKING:  # the heavy modules are loaded by the first job, beside the window
    from desktop.core.curve import StepCurve
    from desktop.core.phase_stats import PhaseRow
    from desktop.core.phases import PhaseFit, Sweep
    from desktop.core.selection import Suggestion
    from desktop.data.consistency import Doubt
    from desktop.data.events import Activity, ImportReport, Region
    from desktop.data.utilization import Rules, Utilization

#: Phases that can be asked for.
N_LIMIT = 999
#: A fit expected to take longer (seconds) is computed beside the window; a frame lasts 0.0167.
INLINE = 0.008
#: Kernels compiled in a process from which on it counts as the first start, and about how many there are
#: until a trace is on the screen; later starts load them.
FIRST_START, KERNELS = 12, 200
#: Traces that stay ready to be shown again, at most.
PARKED = 4
#: Breaks come no closer by hand than this share of the run.
CLOSEST = 1e-6


@dataclass(frozen=True)
class Document:
    """A trace that is open: facts that no setting changes.

    `info` as ``phasewright info --json`` prints it; `repaired`: clocks are repaired unless asked otherwise;
    `options`: how to open it again; `locations`: what they are called; `doubt`: how much of its curve may be
    wrong, None if nothing was lost.
    """

    source: Path
    store: Path
    info: dict[str, Any]
    report: ImportReport
    regions: tuple[Region, ...]
    repaired: bool
    options: OpenOptions = AS_FOUND
    locations: tuple[str, ...] = ()
    doubt: Doubt | None = None

    @property
    def title(self) -> str:
        """What it is called where people read it."""
        return run_name(self.source, self.options.member)


@dataclass(frozen=True, eq=False)
class Run:
    """Its utilization under one set of rules. `stack`: those of `CLASSES` that occur, `curve` first.

    Where the analysis is limited, `curve` and `stack` are the part within `limit` (seconds), and `unlimited`
    is the same without.
    """

    rules: Rules
    utilization: Utilization
    curve: StepCurve
    stack: dict[str, StepCurve]
    limit: tuple[float, float] | None = None
    unlimited: Run | None = None

    @property
    def whole(self) -> Run:
        """The run without a limit."""
        return self.unlimited or self


@dataclass(frozen=True)
class Problem:
    """Something that went wrong, as one sentence; `details` may hold a traceback, `choices` the traces in an
    archive, of which `Workbench.open_member` opens one."""

    sentence: str
    details: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What is to be shown. `fit` may be older than `project` while `refining`; `preview`: a break is held;
    `preparing`: kernels are being compiled, as at the first start. `marked`: regions, by their names in the
    trace, that are to be seen wherever regions are shown."""

    project: Project = field(default_factory=Project)
    document: Document | None = None
    run: Run | None = None
    sweep: Sweep | None = None
    suggestion: Suggestion | None = None
    fit: PhaseFit | None = None
    rows: tuple[PhaseRow, ...] = ()
    preview: bool = False
    refining: bool = False
    undo: str | None = None
    redo: str | None = None
    opening: Task | None = None
    preparing: Task | None = None
    problem: Problem | None = None
    explained: Explained = NOTHING
    marked: tuple[str, ...] = ()


class Steps(Protocol):
    """Where steps are made that can be taken back."""

    @property
    def history(self) -> History[Any]: ...
    def forget_undone(self) -> None: ...
    def undo(self) -> None: ...
    def redo(self) -> None: ...


@dataclass(frozen=True)
class _Beside:
    """A history, and what is called with its tree when it has become another."""

    history: History[Any]
    go: Callable[[Any], None]

    def forget_undone(self) -> None:
        self.history.forget_undone()

    def undo(self) -> None:
        self.go(self.history.undo())

    def redo(self) -> None:
        self.go(self.history.redo())


@dataclass
class _Fits:
    """What has been fitted to one curve."""

    sweeps: dict[tuple[str, tuple[float, ...]], tuple[Sweep, Suggestion]] = field(default_factory=dict)
    single: dict[PhaseSettings, PhaseFit] = field(default_factory=dict)
    # seconds per phase, from the last fit of the model
    pace: dict[str, float] = field(default_factory=dict)


class _Opened(NamedTuple):
    """A trace that is ready to be shown: open store, facts, and curve with fits, of the whole run and of
    the part that is analysed. `stamp`: of the source, see `_stamp`."""

    store: Any
    document: Document
    whole: tuple[Run, _Fits]
    shown: tuple[Run, _Fits]
    stamp: tuple[int, int] | None = None

    @property
    def size(self) -> int:
        """Bytes of its curves, about: what is kept beside an array to draw and fit it is as large again."""
        utilization, stack = self.whole[0].utilization, self.whole[0].stack.values()
        arrays = [utilization.edges, utilization.counts]
        arrays += [array for curve in stack for array in (curve.edges, curve.level)]
        return 2 * sum(array.nbytes for array in arrays)


class Workbench(Bench[Snapshot]):
    """One trace, its fit, and the work that leads there.

    Parameters
    ----------
    deliver : calls a function in the owner's thread.
    executors : of the lanes "store" (files), "fit", "sweep" and "statistics"; threads of their own if not
        given.
    """

    def __init__(self, deliver: Deliver = at_once, executors: dict[str, Executor] | None = None) -> None:
        super().__init__(Snapshot())
        given = executors or {}
        self._deliver = deliver
        self._files = Lane("store", latest=True, deliver=deliver, executor=given.get("store"))
        self._fitting = Lane("fit", latest=True, deliver=deliver, executor=given.get("fit"))
        self._sweeping = Lane("sweep", latest=True, deliver=deliver, executor=given.get("sweep"))
        #: what phases are made of, computed while a panel watches
        self.explainer = Explainer(
            lambda explained: self._show(explained=explained), deliver, given.get("statistics")
        )
        self._history = History(Project())
        self._beside = _Beside(History(None), lambda _: None)
        self._also: tuple[Steps, ...] = ()
        self._newest = 0  # the number of the last step that was made, here or beside
        self._fits = _Fits()
        self._unlimited: tuple[Run, _Fits] | None = None  # of the whole run, by the rules of `snapshot.run`
        self._widening: tuple[_Fits, Any, int] | None = (
            None  # the sweep that is being made, and up to which n
        )
        self._store: Any = None
        self._stamp: tuple[int, int] | None = None
        self._parked: list[_Opened] = []  # shown before, the latest last
        self._open_member: Callable[[str], None] = lambda _: None
        self._unwatch: Callable[[], None] = lambda: None

    @property
    def busy(self) -> bool:
        """Something asked for has not been answered yet."""
        lanes = (self._files, self._fitting, self._sweeping, self.explainer)
        return any(lane.busy for lane in lanes)

    def close(self) -> None:
        """End all work and let go of the file; the workbench cannot be used after."""
        super().close()
        for lane in (self._fitting, self._sweeping, self.explainer):
            lane.close()
        self._files.cancel()
        self._release(park=False)
        self._files.close()
        self._unwatch()

    # ---- opening

    def warm_up(self) -> None:
        """Load and compile, beside the window, what the first trace will need."""

        def work(job: Job) -> None:
            from desktop.core import jit

            self._unwatch = jit.watch(self._compiling)
            _warm_up()

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
        history: History[Project] | None = None,
        view: View | None = None,
    ) -> None:
        """Import `source`, or use what was imported before, and fit it, as its `history` says if it has one.

        What is open stays until the new trace is there, and if it cannot be had.
        """
        kept = None if history is None else history.project
        self._open_member = lambda name: self.open(source, replace(options, member=name), history, view)

        def done(opened: _Opened) -> None:
            self._release()
            store, document, self._unlimited, (run, self._fits), self._stamp = opened
            self._store = store
            fits = self._fits
            if history is not None and kept is not None:
                fitting = kept
                if run.limit != kept.limit:  # of a trace that has become another
                    fitting = limited(kept, None, _ends(run.curve))
                fitting = replace(fitting, phases=_within(fitting.phases, run.curve))
                self._history = history if fitting == kept else History(fitting)
            else:
                self._history = History(Project(_first_settings(fits)))
            project = self._history.project
            self._show(
                project=project if view is None else replace(project, view=view),
                document=document,
                run=run,
                fit=None,
                rows=(),
                sweep=None,
                suggestion=None,
                opening=None,
                problem=None,
                marked=(),
            )
            self._resolve()

        def failed(error: BaseException) -> None:
            self._show(opening=None, problem=_problem(error))

        self._keep_rules()
        parked = self._take_parked(source, options, kept)
        if parked is not None:
            self._files.cancel()
            done(parked)
            return
        self._show(opening=Task(f"Opening {run_name(source)}"), problem=None)
        self._files.submit(
            f"Opening {run_name(source)}",
            lambda job: _open(source, options, kept, job),
            done,
            failed,
            lambda task: self._show(opening=task),
        )

    def open_member(self, name: str) -> None:
        """Open one of several traces in the archive that was asked for last."""
        self._open_member(name)

    def run(self, title: str, work: Callable[[Job], Any], done: Callable[[Any], None]) -> None:
        """Other long work on files, shown and cancelled as opening is, and replaced by it."""

        def finished(result: Any) -> None:
            self._show(opening=None)
            done(result)

        def failed(error: BaseException) -> None:
            self._show(opening=None, problem=_problem(error))

        self._keep_rules()
        self._show(opening=Task(title), problem=None)
        self._files.submit(title, work, finished, failed, lambda task: self._show(opening=task))

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

        def work(job: Job) -> Path:
            from desktop.data.trim import trim

            return trim(store, output, start_s, end_s, locations, job, rules.repaired)

        if store is not None:
            self.run("Saving the selection", work, done)

    def cancel_opening(self) -> None:
        """Give up `open` or a change of rules; what was open before is as it was."""
        self._files.cancel()
        self._keep_rules()
        self._show(opening=None)

    def close_document(self) -> None:
        """Back to nothing open."""
        self._files.cancel()
        self._fitting.cancel()
        self._sweeping.cancel()
        self._release(park=False)
        self._fits, self._unlimited = _Fits(), None
        self._history = History(Project())
        self._tell(Snapshot())

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
        return _least_n(self._phases.model, self._phases.locked)

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
            n = int((fit.degree + 2).sum()) if model == "budget" else fit.n
            n = max(n, _least_n(model, phases.locked))
        self._edit_phases(f"choose {model} phases", "model", replace(phases.free(), model=model, n=n))

    def use_suggestion(self) -> None:
        if self.snapshot.suggestion is not None:
            self.set_n(self.snapshot.suggestion.n)

    def refit(self) -> None:
        """Let the algorithm find the breaks again, around the locked ones."""
        if self._phases.breaks is not None:
            self._edit_phases("let all breaks go", None, self._phases.free())

    def drag_break(self, index: int, time_s: float) -> None:
        """Show the fit with break `index` (1..n-1) held at `time_s`, without an edit."""
        breaks = self._moved(index, time_s)
        if breaks is not None:
            self._show_fit(self._by_hand(breaks, self._phases.locked)[1], preview=True)

    def cancel_drag(self) -> None:
        if self.snapshot.preview:
            self._resolve(preview=False)

    def move_break(self, index: int, time_s: float) -> None:
        """Set break `index` (1..n-1) by hand; it keeps its lock."""
        breaks = self._moved(index, time_s)
        if breaks is None:
            return
        before = self._settled_breaks()
        locked = tuple(sorted(breaks[index] if t == before[index] else t for t in self._phases.locked))
        self._hand_edit(f"move break {index}", breaks, locked)

    def add_break(self, time_s: float) -> None:
        breaks = list(self._settled_breaks())
        if not breaks or not breaks[0] < time_s < breaks[-1]:
            return
        gap = CLOSEST * (breaks[-1] - breaks[0])
        if min(abs(time_s - b) for b in breaks) < gap:
            return
        insort(breaks, time_s)
        self._hand_edit(f"add break {breaks.index(time_s)}", tuple(breaks), self._phases.locked)

    def remove_break(self, index: int) -> None:
        breaks = self._settled_breaks()
        if 0 < index < len(breaks) - 1:
            locked = tuple(t for t in self._phases.locked if t != breaks[index])
            self._hand_edit(f"remove break {index}", breaks[:index] + breaks[index + 1 :], locked)

    def toggle_lock(self, index: int) -> None:
        """Keep break `index` where it is in all further fits, or let it go."""
        breaks = self._settled_breaks()
        if not 0 < index < len(breaks) - 1:
            return
        time_s, locked = breaks[index], self._phases.locked
        if time_s in locked:
            locked, verb = tuple(t for t in locked if t != time_s), "unlock"
        else:
            locked, verb = tuple(sorted((*locked, time_s))), "lock"
        # The breaks stay as they are seen; the lock acts on the next fit.
        self._hand_edit(f"{verb} break {index}", breaks, locked)

    def limit_to(self, span: tuple[float, float] | None) -> None:
        """Analyse this range of time (seconds) only; None: the whole run again."""
        run, project = self.snapshot.run, self._history.project
        if run is None:
            return
        whole = _ends(run.whole.curve)
        if span is not None:
            span = max(min(span), whole[0]), min(max(span), whole[1])
            if not _holds(run.whole.curve, span):
                self._show(problem=Problem("The range is too short to be analysed, select a longer one."))
                return
        if span == whole:
            span = None
        if span != project.limit:
            label = "remove the limit of the analysis" if span is None else "limit the analysis"
            self._edit(label, None, limited(project, span, whole))

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
        if self._history.project.rules is not None:
            self._edit("classify as at first", None, replace(self._history.project, rules=None))

    def annotate(
        self,
        text: str,
        start_s: float,
        end_s: float | None = None,
        location: int | None = None,
        colour: int | None = None,
    ) -> None:
        """A remark on an instant or a range (seconds); None: in the colour after the last one's."""
        known = self._history.project.annotations
        if colour is None:
            colour = (known[-1].colour + 1) % COLOURS if known else 0
        made = Annotation(start_s, text, end_s, colour, location)
        self._edit_annotations("add annotation", (*known, made))

    def change_annotation(self, index: int, **changes: Any) -> None:
        """Other values for fields of annotation `index`."""
        known = self._history.project.annotations
        made = replace(known[index], **changes)
        if made != known[index]:
            verb = "edit" if "hidden" not in changes else "hide" if made.hidden else "show"
            self._edit_annotations(f"{verb} annotation", (*known[:index], made, *known[index + 1 :]))

    def remove_annotation(self, index: int) -> None:
        known = self._history.project.annotations
        self._edit_annotations("delete annotation", (*known[:index], *known[index + 1 :]))

    def keep_view(self, number: int, seen: View, name: str = "") -> None:
        """Keep what is looked at as view `number`; of `seen` what only the plots know counts."""
        old = next((kept.name for kept in self._history.project.views if kept.number == number), "")
        own = self._view
        view = replace(seen, selection=own.selection, phase=own.phase, shown=own.shown)
        made = NamedView(number, name or old, view)
        self._edit_views(f"keep view {number}", made, number)

    def rename_view(self, number: int, name: str) -> None:
        for kept in self._history.project.views:
            if kept.number == number and kept.name != name:
                self._edit_views(f"rename view {number}", replace(kept, name=name), number)

    def remove_view(self, number: int) -> None:
        self._edit_views(f"delete view {number}", None, number)

    def name_region(self, region: str, name: str) -> None:
        """Call a region otherwise; by its own name again if `name` is empty."""
        names = dict(self._history.project.names)
        names.pop(region, None)
        if name and name != region:
            names[region] = name
        if names != self._history.project.names:
            self._edit(f"rename {region}", None, replace(self._history.project, names=names))

    def choose_report(self, choices: ReportChoices) -> None:
        """What the next report is to hold, as that of today does."""
        if choices != self._history.project.report:
            self._edit("choose what reports hold", None, replace(self._history.project, report=choices))

    def undo(self) -> None:
        """Take back the last step, of the trace or beside it."""
        if self._last is self:
            self._go(self._history.undo())
        else:
            self._last.undo()
            self._show()

    def redo(self) -> None:
        """Make the step again that was taken back last."""
        if self._next is self:
            self._go(self._history.redo())
        else:
            self._next.redo()
            self._show()

    @property
    def undo_number(self) -> int:
        """When the step that `undo` takes back was made (`History.undo_number`); 0 if there is none."""
        return self._last.history.undo_number

    @property
    def redo_number(self) -> int | None:
        return self._next.history.redo_number

    def undo_beside(self, history: History[Any], go: Callable[[Any], None]) -> None:
        """Let `undo` and `redo` take the steps of another history too, in the order in which all were made.

        `go` is called with its tree whenever it has become another.
        """
        self._beside = _Beside(history, go)

    def undo_also(self, *others: Steps) -> None:
        """Let `undo` and `redo` take the steps of these too, in the order in which all were made."""
        self._also = others
        self._newest = max(self._newest, *(one.history.undo_number for one in self._every))

    def stepped(self) -> None:
        """What can be undone may have changed elsewhere."""
        self._forget_undone()
        if (self._last.history.undo_label, self._next.history.redo_label) != (
            self.snapshot.undo,
            self.snapshot.redo,
        ):
            self._show()

    def edit_beside(self, label: str, tree: Any) -> None:
        """A step of the other history."""
        self._history.seal()
        self._beside.history.edit(label, tree)
        self._forget_undone()
        self._beside.go(tree)
        self._show()

    def seal(self) -> None:
        """The gesture is over: the next edit is a step of its own."""
        self._history.seal()

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

    def toggle_class(self, name: str) -> None:
        """Draw a class of the stack or leave it out."""
        self._look(shown=self._view.shown ^ {name})

    def show_view(self, number: int) -> View | None:
        """Look at what was kept under a number; the plots show its span and order."""
        for kept in self._history.project.views:
            if kept.number == number:
                view = kept.view
                phase = (
                    view.phase if view.phase is not None and view.phase < len(self.snapshot.rows) else None
                )
                self._look(selection=view.selection, phase=phase, shown=view.shown)
                return view
        return None

    # ---- inside

    @property
    def history(self) -> History[Project]:
        """Of the open trace; `open` takes it to go on where it was left."""
        return self._history

    @property
    def _phases(self) -> PhaseSettings:
        return self._history.project.phases

    @property
    def _view(self) -> View:
        return self.snapshot.project.view

    def _rules(self) -> Rules:
        from desktop.data.utilization import Rules

        return self._history.project.rules or Rules()

    @property
    def _last(self) -> Steps:
        """Whose step was made last."""
        return max(self._every, key=lambda one: one.history.undo_number)

    def forget_undone(self) -> None:
        """Nothing of the trace that was taken back can be made again."""
        self._history.forget_undone()

    def _forget_undone(self) -> None:
        """After a step anywhere, nothing that was taken back elsewhere can be made again."""
        newest = max(one.history.undo_number for one in self._every)
        if newest > self._newest:
            self._newest = newest
            for one in self._every:
                if one.history.undo_number != newest and one.history.redo_number is not None:
                    one.forget_undone()

    @property
    def _every(self) -> tuple[Steps, ...]:
        return self, self._beside, *self._also

    @property
    def _next(self) -> Steps:
        """Whose step is made again next: the one that was made first, as it was taken back last."""
        undone = [one for one in self._every if one.history.redo_number is not None]
        return min(undone, key=lambda one: one.history.redo_number or 0, default=self)

    def _show(self, **changes: Any) -> None:
        last, following = self._last.history, self._next.history
        super()._show(**changes, undo=last.undo_label, redo=following.redo_label)

    def _tell(self, snapshot: Snapshot) -> None:
        super()._tell(snapshot)
        if not (snapshot.preview or snapshot.refining):
            self.explainer.follow(self._store, snapshot.run, snapshot.fit, snapshot.project.view)

    def _look(self, **changes: Any) -> None:
        project = self.snapshot.project
        view = replace(project.view, **changes)
        if view != project.view:
            self._show(project=replace(project, view=view))

    def _edit(self, label: str, key: str | None, project: Project) -> None:
        if self.snapshot.run is not None:
            self._history.edit(label, project, key)
            self._forget_undone()
            self._go(project)

    def _edit_phases(self, label: str, key: str | None, phases: PhaseSettings) -> None:
        self._edit(label, key, replace(self._history.project, phases=phases))

    def _edit_rules(self, label: str, **changes: Any) -> None:
        rules = replace(self._rules(), **changes)
        if rules != self._rules():
            self._edit(label, None, replace(self._history.project, rules=rules))

    def _edit_annotations(self, label: str, annotations: tuple[Annotation, ...]) -> None:
        self._edit(label, None, replace(self._history.project, annotations=annotations))

    def _edit_views(self, label: str, made: NamedView | None, number: int) -> None:
        kept = [one for one in self._history.project.views if one.number != number]
        views = tuple(sorted([*kept, *([made] if made else [])], key=lambda one: one.number))
        if views != self._history.project.views:
            self._edit(label, None, replace(self._history.project, views=views))

    def _hand_edit(self, label: str, breaks: tuple[float, ...], locked: tuple[float, ...]) -> None:
        phases, fit = self._by_hand(breaks, locked)
        self._fits.single[phases] = fit
        self._edit_phases(label, None, phases)

    def _go(self, project: Project) -> None:
        """Show a project of the history; the view is not part of it."""
        before = self.snapshot.project
        view = before.view
        if (project.phases.n, project.phases.model) != (before.phases.n, before.phases.model):
            view = replace(view, phase=None)
        self._resolve(project=replace(project, view=view), preview=False)
        if (project.rules, project.limit) != (before.rules, before.limit):
            self._rebuild()

    def _rebuild(self) -> None:
        """The rules or the limit have changed: the curve has to be built anew, beside the window."""
        store, rules, known, limit = self._store, self._rules(), self._unlimited, self._history.project.limit
        model, locked = self._phases.model, self._phases.locked

        def work(job: Job) -> tuple[tuple[Run, _Fits], tuple[Run, _Fits]]:
            whole = known if known is not None and known[0].rules == rules else None
            whole = whole or _build(store, rules, model, job)
            return whole, whole if limit is None else _part(whole[0], limit, model, locked, job)

        def done(built: tuple[tuple[Run, _Fits], tuple[Run, _Fits]]) -> None:
            self._unlimited, (run, self._fits) = built
            # The old fit says nothing about the new curve.
            self._show(run=run, opening=None, fit=None, rows=())
            self._resolve()

        def failed(error: BaseException) -> None:
            self._keep_rules()
            self._show(opening=None, problem=_problem(error))

        if known is not None and known[0].rules == rules and limit is None:
            self._files.cancel()
            done((known, known))
            return
        title = "Building the curve" if limit is None else "Limiting the analysis"
        self._files.submit(
            title,
            work,
            done,
            failed,
            lambda task: self._show(opening=task),
        )

    def _keep_rules(self) -> None:
        """Leave a change of rules or of the limit, made or undone, whose curve was not finished."""
        run = self.snapshot.run
        if run is None or self._is_of(run):
            return
        for go in (self._history.undo, self._history.redo, self._history.redo):
            go()
            if self._is_of(run):
                break
        self._resolve(project=replace(self._history.project, view=self._view))

    def _is_of(self, run: Run) -> bool:
        """Whether a run is the one that the project asks for."""
        return self._rules() == run.rules and self._history.project.limit == run.limit

    def _resolve(self, **changes: Any) -> None:
        """Answer the project: from what is known, at once if that is quick, else by a job.

        One snapshot says it all, so that the window is drawn once.
        """
        run, phases = self.snapshot.run, self._phases
        if run is None:
            return
        if run.limit != self._history.project.limit:  # its phases are those of a curve that is not there yet
            self._fitting.cancel()
            self._sweeping.cancel()
            self._show(**changes, refining=True)
            return
        sweep, suggestion = self._fits.sweeps.get((phases.model, phases.locked), (None, None))
        fit = self._known(phases) or self._quick(run, phases)
        self._show_fit(
            fit or self.snapshot.fit, sweep=sweep, suggestion=suggestion, refining=fit is None, **changes
        )
        if sweep is None or _reaches(sweep) < phases.n:
            self._request_sweep(run, phases)
        if fit is None:
            self._request_fit(run, phases)
        else:
            self._fitting.cancel()

    def _known(self, phases: PhaseSettings) -> PhaseFit | None:
        found = self._fits.single.get(phases)
        swept = self._fits.sweeps.get((phases.model, phases.locked))
        if found is None and phases.breaks is None and swept is not None and phases.n <= _reaches(swept[0]):
            found = swept[0].fit(phases.n)
        return found

    def _quick(self, run: Run, phases: PhaseSettings) -> PhaseFit | None:
        """The fit, if by experience it takes less than a frame."""
        if phases.breaks is not None:
            fit = _with_breaks(run, phases)
        elif self._fits.pace.get(phases.model, INLINE) * phases.n < INLINE:
            fit = self._timed_fit(run, phases, self._fits)
        else:
            return None
        self._fits.single[phases] = fit
        return fit

    def _request_fit(self, run: Run, phases: PhaseSettings) -> None:
        fits = self._fits

        def work(job: Job) -> tuple[PhaseFit, tuple[PhaseRow, ...]]:
            fit = self._timed_fit(run, phases, fits)
            return fit, _rows(run, fit)  # here, as the window has enough to do when the fit arrives

        def done(found: tuple[PhaseFit, tuple[PhaseRow, ...]]) -> None:
            fit, rows = found
            fits.single[phases] = fit
            if self.snapshot.run is run and self.snapshot.project.phases == phases:
                self._show(fit=fit, rows=rows, refining=False)

        self._fitting.submit("Fitting", work, done, self._fit_failed)

    def _request_sweep(self, run: Run, phases: PhaseSettings) -> None:
        """Every n, up to the one in use as far as that does not take too long."""
        from desktop.core.selection import LIMIT

        fits, key = self._fits, (phases.model, phases.locked)
        known = fits.sweeps.get(key)
        to = 0 if known is None else _reaches(known[0])
        if known is not None and to >= LIMIT:
            return
        while known is not None and to < min(phases.n, LIMIT):
            to = min(2 * to, LIMIT)
        if self._sweeping.busy and self._widening is not None:
            of, made, far = self._widening
            if of is fits and made == key and to <= far:
                return
        self._widening = fits, key, to

        def done(found: tuple[Sweep, Suggestion]) -> None:
            fits.sweeps[key] = found
            now = self.snapshot.project.phases
            if self.snapshot.run is run and (now.model, now.locked) == key:
                self._show(sweep=found[0], suggestion=found[1])

        self._sweeping.submit(
            "Fitting every n", lambda job: _sweep(run.curve, *key, job, known, to), done, self._fit_failed
        )

    @staticmethod
    def _timed_fit(run: Run, phases: PhaseSettings, fits: _Fits) -> PhaseFit:
        from desktop.core.phases import fit

        begun = time.perf_counter()
        found = fit(run.curve, phases.n, phases.model, locked=phases.locked)
        fits.pace[phases.model] = (time.perf_counter() - begun) / phases.n
        return found

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
        fit = _with_breaks(run, phases, settled)
        if phases.degrees is not None:
            phases = replace(phases, degrees=tuple(fit.degree.tolist()))
        return phases, fit

    def _show_fit(self, fit: PhaseFit | None, **changes: Any) -> None:
        assert self.snapshot.run is not None
        if fit is not None and fit is not self.snapshot.fit:
            changes.update(fit=fit, rows=_rows(self.snapshot.run, fit))
        self._show(**changes)

    def _settled(self) -> PhaseFit | None:
        """The fit before a drag that may be going on; None while another part of the run is made ready."""
        run = self.snapshot.run
        if run is None or run.limit != self._history.project.limit:
            return None
        return self._known(self._phases) or self.snapshot.fit

    def _settled_breaks(self) -> tuple[float, ...]:
        settled = self._settled()
        return () if settled is None else tuple(settled.breaks.tolist())

    def _moved(self, index: int, time_s: float) -> tuple[float, ...] | None:
        breaks = self._settled_breaks()
        if not 0 < index < len(breaks) - 1:
            return None
        gap = min(CLOSEST * (breaks[-1] - breaks[0]), (breaks[index + 1] - breaks[index - 1]) / 4)
        kept = max(breaks[index - 1] + gap, min(breaks[index + 1] - gap, time_s))
        return (*breaks[:index], kept, *breaks[index + 1 :])

    def _failed(self, error: BaseException) -> None:
        self._show(problem=_problem(error))

    def _fit_failed(self, error: BaseException) -> None:
        self._show(refining=False, problem=_problem(error))

    def _release(self, *, park: bool = True) -> None:
        """Put the trace that is shown aside, as long as few are and memory allows; else close its store, and
        those of all before."""
        if self._store is not None:
            self.explainer.forget()
            store, self._store = self._store, None
            document, run, whole = self.snapshot.document, self.snapshot.run, self._unlimited
            if document is not None and run is not None and whole is not None and run.whole is whole[0]:
                self._parked.append(_Opened(store, document, whole, (run, self._fits), self._stamp))
            else:
                store.close()
        most = PARKED if park else 0
        while len(self._parked) > most or sum(one.size for one in self._parked) > memory.limit():
            self._parked.pop(0).store.close()

    def _take_parked(self, source: Path, options: OpenOptions, kept: Project | None) -> _Opened | None:
        """What was put aside of a trace, if it is still what is asked for."""
        from desktop.data.utilization import Rules

        for one in self._parked:
            if (one.document.source, one.document.options) == (source, options) and kept is not None:
                self._parked.remove(one)
                wanted = kept.rules or Rules(), kept.limit
                run = one.shown[0]
                if one.stamp == _stamp(source) and (run.rules, run.limit) == wanted:
                    return one
                one.store.close()
                return None
        return None


# ---- the work itself: functions of what they are given


def _warm_up() -> None:
    from desktop.core import phases
    from desktop.data import opening  # noqa: F401 - loaded here so that the first File > Open need not

    phases.warm_up()


def _stamp(source: Path) -> tuple[int, int] | None:
    """By which a file is known to be as it was."""
    try:
        found = source.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _open(source: Path, options: OpenOptions, kept: Project | None, job: Job) -> _Opened:
    from desktop.data.consistency import doubt
    from desktop.data.info import info
    from desktop.data.opening import open_trace

    stamp = _stamp(source)
    store = open_trace(source, job, **asdict(options))
    try:
        facts, regions = info(store), tuple(store.regions)
        place, again = Path(store.path), options.again()
        names = tuple(map(location_name, store.locations))
        lost = doubt(store)
        document = Document(source, place, facts, store.report, regions, store.repair, again, names, lost)
        model = DEFAULT_MODEL if kept is None else kept.phases.model
        whole = shown = _build(store, None if kept is None else kept.rules, model, job)
        if kept is not None and kept.limit is not None and _holds(whole[0].curve, kept.limit):
            shown = _part(whole[0], kept.limit, model, kept.phases.locked, job)
    except BaseException:
        store.close()
        raise
    return _Opened(store, document, whole, shown, stamp)


def _build(store: Any, rules: Rules | None, model: str, job: Job) -> tuple[Run, _Fits]:
    """Curves and their summaries, and the first sweep, so that the window has a fit with the curve."""
    from desktop.core.concurrency import summarise
    from desktop.core.envelope import envelope
    from desktop.data.events import Activity
    from desktop.data.utilization import Rules, build

    rules = rules or Rules()
    utilization = build(store, rules, job)
    curve = utilization.curve()
    stack = {"computing": curve}
    for name in CLASSES[1:]:
        # What counts as computing is not drawn a second time.
        drawn_as = frozenset({Activity[name.upper()]}) - rules.computing
        level = replace(utilization, rules=replace(rules, computing=drawn_as)).curve()
        if level.level.any():
            stack[name] = level
    for drawn in stack.values():
        envelope(drawn)
    summarise(curve)
    fits = _Fits()
    begun = time.perf_counter()
    fits.sweeps[model, ()] = _sweep(curve, model, (), job)
    largest = _reaches(fits.sweeps[model, ()][0])
    fits.pace[model] = 2 * (time.perf_counter() - begun) / (largest * (largest + 1))
    return Run(rules, utilization, curve, stack), fits


def _part(
    whole: Run, limit: tuple[float, float], model: str, locked: tuple[float, ...], job: Job
) -> tuple[Run, _Fits]:
    """A run within a range of time, and its first sweep."""
    from desktop.core.concurrency import summarise
    from desktop.core.envelope import envelope

    stack: dict[str, StepCurve] = {}
    for name, level in whole.stack.items():
        job.step(len(stack), len(whole.stack))
        part = level.window(*limit)
        if name == "computing" or part.level.any():
            envelope(part)
            stack[name] = part
    curve = stack["computing"]
    summarise(curve)
    fits = _Fits()
    locked = tuple(t for t in locked if limit[0] < t < limit[1])
    fits.sweeps[model, locked] = _sweep(curve, model, locked, job)
    return Run(whole.rules, whole.utilization, curve, stack, limit, whole), fits


def _ends(curve: StepCurve) -> tuple[float, float]:
    """Start and end in seconds."""
    return curve.start, curve.start + curve.duration


def _holds(curve: StepCurve, span: tuple[float, float]) -> bool:
    """Whether a range of time (seconds) has some ticks of the curve to be analysed."""
    start, end = _ends(curve)
    return min(span[1], end) - max(span[0], start) >= 2 * curve.unit


def _sweep(
    curve: StepCurve,
    model: str,
    locked: tuple[float, ...],
    job: Job,
    known: tuple[Sweep, Suggestion] | None = None,
    to: int = 0,
) -> tuple[Sweep, Suggestion]:
    """Every n and the one to take; of a sweep that is `known`, its continuation up to `to`."""
    from desktop.core.phases import extend
    from desktop.core.selection import search

    if known is None:
        found = search(curve, model, locked=locked, stop=job.stop)
    else:
        found = extend(curve, known[0], to, locked=locked, stop=job.stop), known[1]
    job.step(0, 0)
    return found


def _reaches(sweep: Sweep) -> int:
    """The largest n of a sweep."""
    return int(sweep.n[-1])


def _with_breaks(run: Run, phases: PhaseSettings, like: PhaseFit | None = None) -> PhaseFit:
    from desktop.core.phases import fit_breaks

    assert phases.breaks is not None
    return fit_breaks(run.curve, phases.breaks, phases.model, degrees=phases.degrees, like=like)


def _rows(run: Run, fit: PhaseFit) -> tuple[PhaseRow, ...]:
    from desktop.core.phase_stats import phase_table

    return tuple(phase_table(run.curve, fit))


def _least_n(model: str, locked: tuple[float, ...]) -> int:
    return (len(locked) + 1) * (2 if model == "budget" else 1)


def _within(phases: PhaseSettings, curve: StepCurve) -> PhaseSettings:
    """Settings that were kept, on a curve that may have become another since."""
    start, end = _ends(curve)
    locked = tuple(t for t in phases.locked if start < t < end)
    found = replace(phases, n=max(phases.n, _least_n(phases.model, locked)), locked=locked)
    if phases.breaks is None:
        return found
    breaks = (start, *(t for t in phases.breaks[1:-1] if start < t < end), end)
    near = 1e-9 * max(abs(start), abs(end))
    if (
        len(breaks) == len(phases.breaks)
        and max(abs(start - phases.breaks[0]), abs(end - phases.breaks[-1])) <= near
    ):
        return found  # rounding of the ends is no change
    return found.by_hand(breaks, phases.by_ends)


def _first_settings(fits: _Fits) -> PhaseSettings:
    (model, locked), (_, suggestion) = next(iter(fits.sweeps.items()))
    return PhaseSettings(model, max(1, suggestion.n), locked)


def _problem(error: BaseException) -> Problem:
    """An exception as the user reads it: its own sentence if it has one."""
    import traceback

    from desktop.errors import DesktopError, sentence

    details = "".join(traceback.format_exception(error))
    if isinstance(error, DesktopError):
        return Problem(str(error), details, getattr(error, "choices", ()))
    known = "" if isinstance(error, ValueError) else sentence(error)
    if known:
        return Problem(known, details)
    return Problem(
        f"Something went wrong inside the program ({type(error).__name__}: {error}); "
        "what you had is still here, please report the details",
        details,
    )


__all__ = ["Document", "Problem", "Progress", "Run", "Snapshot", "Workbench"]

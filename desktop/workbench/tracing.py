"""A trace that is open: its facts, its curve under one set of rules, what has been fitted to it, and the work
that leads there, as functions of what they are given."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from desktop.core.concurrency import summarise
from desktop.core.curve import StepCurve
from desktop.core.envelope import envelope
from desktop.core.phase_names import Doings, phase_names
from desktop.core.phase_stats import PhaseRow, phase_table
from desktop.core.phases import PhaseFit, Sweep, extend, least_n
from desktop.core.pieces import pieces, residual
from desktop.core.plain import JSON
from desktop.core.selection import Suggestion, at_events, search
from desktop.data.events import ImportReport, Region
from desktop.data.naming import location_name, run_name
from desktop.errors import CurveError, DesktopError, StoreError, sentence
from desktop.workbench.jobs import Job
from desktop.workbench.model import DETECT, Annotation, OpenOptions, PhaseSettings, Project, marks_of

if TYPE_CHECKING:  # the heavy modules are loaded by the first job, beside the window
    from desktop.core.landmarks import Landmarks
    from desktop.core.spaces import Basis
    from desktop.data.causality import Causality
    from desktop.data.consistency import Doubt
    from desktop.data.presence import Structure
    from desktop.data.store import TraceStore
    from desktop.data.utilization import Rules, Utilization


#: Times (s) and texts of what the user marked.
Marks: TypeAlias = tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class Document:
    """A trace that is open: facts that no setting changes.

    `info` as ``phasewright info --json`` prints it; `repaired`: clocks are repaired unless asked otherwise;
    `options`: how to open it again; `locations`: what they are called, those of a curve are not known;
    `doubt`: how much of its curve may be wrong, None if nothing was lost. `identity`: of the `store`.
    """

    source: Path
    store: Path
    info: JSON
    report: ImportReport
    regions: tuple[Region, ...]
    repaired: bool
    options: OpenOptions = DETECT
    locations: tuple[str, ...] = ()
    doubt: Doubt | None = None
    identity: str = ""

    def open_again(self) -> TraceStore:
        """Its store, opened once more.

        Raises
        ------
        StoreError : it cannot be opened, or another trace is in its place.
        """
        from desktop.data.store import open_store

        store = open_store(self.store)
        if store.identity != self.identity:
            store.close()
            raise StoreError(
                "has been replaced by another trace since it was opened",
                file=self.store,
                hint="open it again",
            )
        return store

    @property
    def title(self) -> str:
        """What it is called where people read it."""
        return run_name(self.source, self.options.member)


@dataclass(frozen=True, eq=False)
class TraceRun:
    """Its utilization under one set of rules, and the `curve` that is fitted, in `desktop.data.curves` called
    `name`. `stack`: those of `ACTIVITIES` that occur, `curve` first; of another curve it alone.

    Where the analysis is limited, `curve` and `stack` are the part within `limit` (seconds), and `unlimited`
    is the same without. `structure`: what processors are in when;
    `doings`: the same for names of phases. `coarse`: its utilization is the mean of columns, to be looked at
    until the exact one has come from where the trace lies; nothing else is found out of it.
    """

    rules: Rules
    utilization: Utilization
    curve: StepCurve
    stack: dict[str, StepCurve]
    limit: tuple[float, float] | None = None
    unlimited: TraceRun | None = None
    structure: Structure | None = None
    doings: Doings | None = None
    name: str = "computing"
    coarse: bool = False

    @property
    def whole(self) -> TraceRun:
        """The run without a limit."""
        return self.unlimited or self


@dataclass(frozen=True)
class Problem:
    """Something that went wrong, as one sentence; `details` may hold a traceback, `choices` the traces in an
    archive, of which `Workbench.open_member` opens one."""

    sentence: str
    details: str = ""
    choices: tuple[str, ...] = ()


class SweepKey(NamedTuple):
    """What a sweep and its suggestion depend on. `marks` None: by the curve alone."""

    model: str
    locked: tuple[float, ...] = ()
    marks: Marks | None = ()
    basis: Basis | str | None = None


class SweepResult(NamedTuple):
    """Fits of every n, and the one to take."""

    sweep: Sweep
    suggestion: Suggestion


def sweep_key(phases: PhaseSettings, annotations: Iterable[Annotation]) -> SweepKey:
    """Of the sweep that belongs to settings; annotations count where they are about all locations."""
    marks = None if phases.pure else marks_of(annotations)
    return SweepKey(phases.model, phases.locked, marks, phases.basis)


@dataclass
class Fits:
    """What has been fitted to one curve. `landmarks`: structure events by the marks of a `SweepKey`, None
    where the curve alone counts; `single`: fits by their settings and marks; `pace`: seconds per phase, of
    the last fit of a model."""

    sweeps: dict[SweepKey, SweepResult] = field(default_factory=dict)
    landmarks: dict[Marks | None, Landmarks | None] = field(default_factory=dict)
    single: dict[tuple[PhaseSettings, Marks | None], PhaseFit] = field(default_factory=dict)
    pace: dict[str, float] = field(default_factory=dict)


class OpenedTrace(NamedTuple):
    """A trace that is ready to be shown: open store, facts, and curve with fits, of the `whole` run and of
    the part that is `analysed`. `stamp`: of the source, see `stamp_of`; `causality`: who waited for whom, if
    that is known; `lack`: why the curve that was asked for is not shown."""

    store: TraceStore
    document: Document
    whole: tuple[TraceRun, Fits]
    analysed: tuple[TraceRun, Fits]
    stamp: tuple[int, int] | None = None
    causality: Causality | None = None
    lack: str = ""

    @property
    def size(self) -> int:
        """Bytes of its curves and waits, about: what is kept beside an array to draw and fit it is as large
        again."""
        utilization, stack = self.whole[0].utilization, self.whole[0].stack.values()
        arrays = [utilization.edges, utilization.counts]
        arrays += [array for curve in stack for array in (curve.edges, curve.level)]
        waits = 0 if self.causality is None else self.causality.size
        return 2 * sum(array.nbytes for array in arrays) + int(waits)


def load_and_compile() -> None:
    from desktop.core import gantt, painting, phases
    from desktop.data import opening  # noqa: F401 - loaded here so that the first File > Open need not

    phases.warm_up()
    curve = StepCurve(np.arange(41.0), np.arange(40) * 7 % 11)
    fit = phases.fit(curve, 3, "mixed")
    residual(envelope(curve), fit, np.linspace(0.0, 40.0, 5))
    pieces(fit, 0.0, 40.0)
    painting.warm_up()
    gantt.warm_up()


def stamp_of(source: Path) -> tuple[int, int] | None:
    """Time of change and size of a file, to recognise that it has changed; None if it is not there."""
    try:
        status = source.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def open_source(source: Path, options: OpenOptions, project: Project | None, job: Job) -> OpenedTrace:
    from desktop.data.consistency import doubt
    from desktop.data.info import info
    from desktop.data.opening import open_trace

    stamp = stamp_of(source)
    store = open_trace(source, job, **asdict(options))
    try:
        facts, regions = info(store), tuple(store.regions)
        place, again = Path(store.path), options.again()
        names = () if store.has("curve") else tuple(map(location_name, store.locations))
        lost = doubt(store)
        document = Document(
            source, place, facts, store.report, regions, store.repair, again, names, lost, store.identity
        )
        request = Project() if project is None else project
        key = sweep_key(request.phases, request.annotations)
        free, lack = key._replace(locked=()), ""
        try:
            rough = _coarse_run(store, request, free, job)
            whole = analysed = rough or build_run(store, request.rules, free, job, request.curve)
        except CurveError as error:
            if request.curve == Project().curve:
                raise
            lack = f"{error}; shown is what computes"
            whole = analysed = build_run(store, request.rules, free, job)
        if project is not None and project.limit is not None and covers(whole[0].curve, project.limit):
            analysed = part_of(whole[0], project.limit, key, job)
    except BaseException:
        store.close()
        raise
    return OpenedTrace(store, document, whole, analysed, stamp, lack=lack)


def _coarse_run(store: TraceStore, project: Project, key: SweepKey, job: Job) -> tuple[TraceRun, Fits] | None:
    """What can be looked at until the curve comes from where the trace lies; None where it is soon here."""
    from desktop.data.coarse import remote_coarse
    from desktop.data.material import stack as activities
    from desktop.data.utilization import Rules

    rules = project.rules or Rules()
    plain = project.limit is None and project.curve == Project().curve
    utilization = remote_coarse(store, rules) if plain else None
    if utilization is None:
        return None
    stack = activities(utilization)
    for drawn in stack.values():
        envelope(drawn)
    curve = utilization.curve()
    _ = curve.mean
    run = TraceRun(rules, utilization, curve, stack, coarse=True)
    return run, _first_sweep(run, key, job)


def _first_sweep(run: TraceRun, key: SweepKey, job: Job) -> Fits:
    """Its first sweep, and how long it took."""
    fits = Fits()
    start = time.perf_counter()
    fits.sweeps[key] = first = sweep_of(run, key, fits, job)
    largest = reaches(first.sweep)
    fits.pace[key.model] = 2 * (time.perf_counter() - start) / (largest * (largest + 1))
    return fits


def build_run(
    store: TraceStore,
    rules: Rules | None,
    key: SweepKey,
    job: Job,
    name: str = "computing",
    like: TraceRun | None = None,
) -> tuple[TraceRun, Fits]:
    """Curves and their summaries, and the first sweep, so that the window has a fit with the curve. `like`: a
    run of the trace, of which is taken what is the same.

    Raises
    ------
    CurveError : the trace has no curve of that `name`.
    """
    from desktop.data.curves import build_curve
    from desktop.data.material import stack as activities
    from desktop.data.presence import structure
    from desktop.data.utilization import Rules, build

    rules = rules or Rules()
    if like is not None and like.rules != rules:
        like = None
    utilization = build(store, rules, job) if like is None else like.utilization
    curve = build_curve(store, utilization, name, job)
    stack = activities(utilization) if curve is utilization.curve() else {"computing": curve}
    for drawn in stack.values():
        envelope(drawn)
    _ = curve.mean  # kept with it, here: the window says it
    summarise(utilization.curve())
    events = structure(store, utilization, job) if like is None or like.structure is None else like.structure
    doings = events.doings(utilization.curve())
    run = TraceRun(rules, utilization, curve, stack, structure=events, doings=doings, name=name)
    return run, _first_sweep(run, key, job)


def part_of(whole: TraceRun, limit: tuple[float, float], key: SweepKey, job: Job) -> tuple[TraceRun, Fits]:
    """A run within a range of time, and its first sweep."""
    stack: dict[str, StepCurve] = {}
    for name, level in whole.stack.items():
        job.step(len(stack), len(whole.stack))
        part = level.window(*limit)
        if name == "computing" or part.level.any():
            envelope(part)
            stack[name] = part
    curve = stack["computing"]
    _ = curve.mean
    if curve.quantity == whole.utilization.curve().quantity:
        summarise(curve)
    events = whole.structure
    doings = None if events is None else events.doings(whole.utilization.curve().window(*limit))
    run = TraceRun(whole.rules, whole.utilization, curve, stack, limit, whole, events, doings, whole.name)
    key = key._replace(locked=tuple(t for t in key.locked if limit[0] < t < limit[1]))
    return run, _first_sweep(run, key, job)


def covers(curve: StepCurve, span: tuple[float, float]) -> bool:
    """Whether a range of time (seconds) has some ticks of the curve to be analysed."""
    start, end = curve.span
    return min(span[1], end) - max(span[0], start) >= 2 * curve.unit


def landmarks_of(run: TraceRun, marks: Marks | None, fits: Fits) -> Landmarks | None:
    """The structure events of a run and what the user marked, found once; None: the curve alone counts."""
    if marks not in fits.landmarks:
        of = None if marks is None else run.structure
        fits.landmarks[marks] = None if of is None else of.landmarks(run.curve, marks or ())
    return fits.landmarks[marks]


def sweep_of(run: TraceRun, key: SweepKey, fits: Fits, job: Job, to: int = 0) -> SweepResult:
    """Every n and the one to take; one that is in `fits` is continued up to `to`."""
    landmarks, previous = landmarks_of(run, key.marks, fits), fits.sweeps.get(key)
    if previous is not None:
        wider = extend(run.curve, previous.sweep, to, locked=key.locked, stop=job.stop)
        more = wider.fits[len(previous.sweep.fits) :]
        at = (at_events(run.curve, one, landmarks, key.locked) for one in more)
        widened = previous._replace(sweep=replace(wider, fits=(*previous.sweep.fits, *at)))
    else:
        model, locked, _, basis = key
        widened = SweepResult(
            *search(run.curve, model, locked=locked, stop=job.stop, landmarks=landmarks, basis=basis)
        )
    job.step(0, 0)
    return widened


def reaches(sweep: Sweep) -> int:
    """The largest n of a sweep."""
    return int(sweep.n[-1])


def with_breakpoints(run: TraceRun, phases: PhaseSettings, like: PhaseFit | None = None) -> PhaseFit:
    """The fit with the breakpoints of saved settings; see `PhaseSettings.fit`."""
    return replace(settings_on(phases, run.curve), suggested=phases.suggested).fit(run.curve, like=like)


def with_names(run: TraceRun, fit: PhaseFit, project: Project) -> PhaseFit:
    """A fit with what its phases are called."""
    names = phase_names(run.doings, fit.breaks, project.user_names, project.names)
    return fit if names == fit.names else replace(fit, names=names)


def rows_of(run: TraceRun, fit: PhaseFit) -> tuple[PhaseRow, ...]:
    return tuple(phase_table(run.curve, fit))


def settings_on(phases: PhaseSettings, curve: StepCurve) -> PhaseSettings:
    """Saved settings, on a curve that may have changed since."""
    start, end = curve.span
    locked = tuple(t for t in phases.locked if start < t < end)
    inside = replace(phases, n=max(phases.n, least_n(phases.model, locked)), locked=locked)
    if phases.breaks is None:
        return inside
    breakpoints = (start, *(t for t in phases.breaks[1:-1] if start < t < end), end)
    near = 1e-9 * max(abs(start), abs(end))
    if (
        len(breakpoints) == len(phases.breaks)
        and max(abs(start - phases.breaks[0]), abs(end - phases.breaks[-1])) <= near
    ):
        return inside  # rounding of the ends is no change
    return inside.by_hand(breakpoints, phases.by_ends)


def first_settings(run: TraceRun, fits: Fits) -> PhaseSettings:
    key, sweep = next(iter(fits.sweeps.items()))
    return suggested_of(PhaseSettings(key.model, 1, key.locked), run, sweep)


def suggested_of(phases: PhaseSettings, run: TraceRun, sweep: SweepResult) -> PhaseSettings:
    """The settings with the suggested number and breakpoints."""
    return phases.taking(sweep.suggestion.n, sweep.suggestion.times(run.curve))


def problem_of(error: BaseException) -> Problem:
    """An exception as the user reads it: its own sentence if it has one."""
    details = "".join(traceback.format_exception(error))
    if isinstance(error, DesktopError):
        return Problem(str(error), details, getattr(error, "choices", ()))
    text = "" if isinstance(error, ValueError) else sentence(error)
    if text:
        return Problem(text, details)
    return Problem(
        f"Something went wrong inside the program ({type(error).__name__}: {error}); "
        "what you had is still here, please report the details",
        details,
    )

"""The comparison of a project's runs: which of them, on what axis, their phases matched, their differences.

Its settings are a `desktop.workbench.model.Comparison`, which the project saves and undoes; results are
computed beside the window, and the last request wins. Commands call the same functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from desktop.core.envelope import envelope
from desktop.core.phases import PhaseFit
from desktop.core.selection import search
from desktop.data.naming import named_by
from desktop.errors import DesktopError, StoreError
from desktop.progress import Progress, Share
from desktop.remote import RemotePath
from desktop.workbench.bench import Bench, changed, problem_text
from desktop.workbench.jobs import Deliver, Executor, Job, Task, at_once
from desktop.workbench.keeping import ProjectStore, compared_trace
from desktop.workbench.model import (
    Comparison,
    KeptRun,
    Matched,
    PhaseSettings,
    Project,
    TraceId,
    Workspace,
    contradict,
    marks_of,
    run_keys,
)
from desktop.workbench.workbench import OpenWaits, Workbench

if TYPE_CHECKING:  # bring numba, which the window loads only after it is on screen
    from desktop.core.charges import RunCosts
    from desktop.core.contrast import Alignment, Cell, Contrast, Phased, Placement
    from desktop.core.curve import StepCurve
    from desktop.core.landmarks import Landmarks
    from desktop.core.phase_stats import Firm
    from desktop.data.store import TraceStore
    from desktop.data.utilization import Rules, Utilization

    #: A fit, and how firm its breakpoints are over runs of the same program.
    _Repeated: TypeAlias = tuple[PhaseFit | None, tuple[Firm | None, ...]]
    #: Costs of runs, None if unknown, with what was asked for.
    _Costs: TypeAlias = Sequence[tuple["_CostRequest", RunCosts | None]]

#: Runs that are compared at once: as many as there are colours that everybody can tell apart.
MOST = 6
#: Runs that a breakpoint needs for an interval, as `desktop.core.firmness.LEAST`.
REPEATS = 3


@dataclass(frozen=True)
class ComparedRun:
    """A run of the project: its key (see `run_keys`), a name of its own, and whether it is compared."""

    key: str
    name: str
    shown: bool


@dataclass(frozen=True, eq=False)
class ComparisonSnapshot:
    """What is to be shown. `keys`: of the compared runs, in the order of `alignment.runs`. `sentences`: how
    much longer runs take than the reference, and why. `outdated`: pairs set by hand that wait for as many
    phases as they were set for. While `refining`, the answer is older than the question; `problem`: one
    sentence."""

    comparison: Comparison = field(default_factory=Comparison)
    entries: tuple[ComparedRun, ...] = ()
    keys: tuple[str, ...] = ()
    alignment: Alignment | None = None
    placement: Placement | None = None
    cells: tuple[Cell, ...] = ()
    sentences: tuple[str, ...] = ()
    outdated: int = 0
    refining: bool = False
    task: Task | None = None
    problem: str = ""

    @property
    def reference(self) -> str:
        """The key of the run that the others are compared with."""
        keys = [entry.key for entry in self.entries if entry.shown]
        return self.comparison.reference if self.comparison.reference in keys else next(iter(keys), "")


class RunComparison(Bench[ComparisonSnapshot]):
    """Compares the runs of the open project while it is `watch`ed, and always tells the workbench how firm
    the breakpoints shown are over them. `deliver`, `executor` as in `Lane`."""

    def __init__(
        self,
        bench: Workbench,
        projects: ProjectStore,
        deliver: Deliver = at_once,
        executor: Executor | None = None,
    ) -> None:
        lanes = {"compare": executor, "costs": executor} if executor else None
        super().__init__(ComparisonSnapshot(), deliver, lanes)
        self._bench, self._projects = bench, projects
        self._comparing, self._charging = self._lane("compare"), self._lane("costs")
        self._costs: _Costs = ()
        self._loaded: tuple[_LoadedRun, ...] = ()
        self._last_request: tuple[object, ...] = ()
        self._watched = False

    def watch(self, watched: bool) -> None:
        """Whether a page shows it; else only the intervals of breakpoints are computed."""
        self._watched = watched
        if watched:
            self.refresh()

    def forget(self) -> None:
        """Close the comparison and drop its results."""
        self._comparing.cancel()
        self._charging.cancel()
        self._watched, self._last_request, self._loaded, self._costs = False, (), (), ()
        self.snapshot = ComparisonSnapshot()

    def close(self) -> None:
        super().close()
        self._watched = False

    # ---- edits

    def change(self, **changes: object) -> None:
        """Other values for fields of `Comparison`, as the project keeps it."""
        self._projects.compare(changed(self._comparison, changes))
        self.refresh()

    def show_run(self, key: str, shown: bool) -> None:
        """Compare a run too, or leave it out."""
        hidden = self._comparison.hidden
        self.change(hidden=hidden - {key} if shown else hidden | {key})

    def pair(self, key: str, reference: int, phase: int) -> None:
        """Phase `phase` of run `key` is phase `reference` of the reference (from 0; -1: has no partner).

        Earlier pairs that contradict it are discarded.
        """
        alignment = self.snapshot.alignment
        if alignment is None or key not in self.snapshot.keys:
            return
        phases = alignment.runs[self.snapshot.keys.index(key)].fit.n
        of = alignment.runs[alignment.reference].fit.n
        matches = self._comparison.matched
        old = next((m for m in matches if _same(m, self.snapshot.reference, key, of, phases)), None)
        pairs = [p for p in (old.pairs if old else ()) if not contradict((p, (reference, phase)))]
        pairs = sorted([*pairs, (reference, phase)])
        matched = Matched(self.snapshot.reference, key, of, phases, tuple(pairs))
        others = tuple(m for m in matches if (m.reference, m.run) != (matched.reference, matched.run))
        self.change(matched=(*others, matched))

    def match_again(self) -> None:
        """Discard all pairs set by hand between the compared runs."""
        gone = [m for m in self._comparison.matched
                if m.reference == self.snapshot.reference and m.run in self.snapshot.keys]  # fmt: skip
        self.change(matched=tuple(m for m in self._comparison.matched if m not in gone))

    @property
    def by_hand(self) -> dict[str, tuple[tuple[int, int], ...]]:
        """The pairs set by hand that hold now, by run."""
        shot = self.snapshot
        if shot.alignment is None:
            return {}
        phases = [run.fit.n for run in shot.alignment.runs]
        held = pairs_by_run(self._comparison.matched, shot.keys, shot.alignment.reference, phases)
        return {shot.keys[k]: pairs for k, pairs in held.items()}

    def cancel(self) -> None:
        """Give up what is being computed; what was shown stays."""
        self._comparing.cancel()
        self._charging.cancel()
        self._show(task=None, refining=False, problem="the comparison was stopped, change something to go on")

    # ---- inside

    @property
    def _comparison(self) -> Comparison:
        return self._projects.workspace.comparison

    def refresh(self) -> None:
        """Compare again if the runs or the settings of the project have changed."""
        shot = self._bench.snapshot
        if not self._watched and (shot.run is None or shot.fit is None or shot.opening is not None):
            return
        workspace = self._projects.workspace
        if not self._watched and len(workspace.runs) < REPEATS:
            return
        keys, comparison = run_keys(workspace.runs), workspace.comparison
        members = [key for key in keys if key not in comparison.hidden][:MOST]
        names = labels_of(workspace.runs)
        entries = tuple(ComparedRun(key, name, key in members) for key, name in zip(keys, names, strict=True))
        question = {"entries": entries, "comparison": comparison}
        if self._watched and question != {
            "entries": self.snapshot.entries,
            "comparison": self.snapshot.comparison,
        }:
            self._show(**question)
        coarse = shot.run is not None and shot.run.coarse
        if shot.refining or shot.preview or shot.opening is not None or coarse:
            return  # what the shown run is compared by is about to change
        requests = [
            _RunRequest(key, name, run) for key, name, run in zip(keys, names, workspace.runs, strict=True)
            if key in members
        ]  # fmt: skip
        named = tuple(one.run.project.names for one in requests)  # only their sentences depend on that
        runs = (tuple(requests), named, comparison.reference, comparison.matched, comparison.systems)
        request = (*runs, comparison.axis, comparison.share) if self._watched else runs
        if request == self._last_request[: len(request)]:
            return
        self._last_request = request
        self._charging.cancel()
        if len(requests) < 2:
            self._comparing.cancel()
            self._show(
                keys=(), alignment=None, placement=None, cells=(), sentences=(), refining=False, task=None,
                problem="",
            )  # fmt: skip
            return
        placed, loaded, costs = self.snapshot.placement, self._loaded, self._costs
        path, current = self._projects.path, self._projects.current
        if shot.run is not None and shot.fit is not None and current is not None:
            # The run in the main window is at hand.
            regions = () if shot.document is None else shot.document.regions
            open_run = replace(
                _RunRequest(keys[current], names[current], workspace.runs[current]),
                in_window=(shot.run.curve, shot.fit, frozenset(region.name for region in regions)),
            )
            requests = [open_run if one.key == open_run.key else one for one in requests]

        watched = self._watched

        def done(outcome: tuple[tuple[_LoadedRun, ...], _Repeated, dict[str, object]]) -> None:
            self._loaded, repeated, answer = outcome
            self._bench.know_repeats(*repeated)
            self._show(**answer, refining=False, task=None, problem="")
            if watched:
                self._charge([one.request.run for one in self._loaded], path)

        def failed(error: BaseException) -> None:
            self._show(problem=problem_text(error, OSError) if watched else "", refining=False, task=None)

        self._show(refining=watched)
        self._comparing.submit(
            "Comparing",
            lambda job: _answer(requests, comparison, loaded, placed, costs, path, job, whole=watched),
            done,
            failed,
            lambda task: self._show(task=task),
        )

    def _charge(self, runs: Sequence[KeptRun], path: Path | None) -> None:
        """Say, beside the window, also why runs take longer, where that is not known yet."""
        alignment, known = self.snapshot.alignment, self._costs
        assert alignment is not None
        requests = _cost_requests(runs, alignment)
        if all(_known(known, request) for request in requests):
            return
        waits, current = self._bench.waits, self._projects.current
        shown = None if current is None else self._projects.workspace.runs[current].trace

        def work(job: Job) -> tuple[_Costs, tuple[str, ...]]:
            costs = []
            for k, request in enumerate(requests):
                share = Share(job, k / len(requests), (k + 1) / len(requests))
                had = _known(known, request)
                at_hand = waits if request.trace == shown else None
                costs.append((request, had[0] if had else load_costs(*request, path, share, at_hand)))
            return tuple(costs), _sentences(runs, alignment, costs)

        def done(outcome: tuple[_Costs, tuple[str, ...]]) -> None:
            self._costs, sentences = outcome
            self._show(sentences=sentences, task=None)

        def failed(error: BaseException) -> None:
            self._show(problem=problem_text(error, OSError), task=None)

        self._charging.submit("Why runs differ", work, done, failed, lambda task: self._show(task=task))


# ---- the work itself


class _CostRequest(NamedTuple):
    """Of which trace, by which rules and in which range (s) costs are."""

    trace: TraceId
    rules: Rules | None
    span: tuple[float, float]


def _cost_requests(runs: Sequence[KeptRun], alignment: Alignment) -> list[_CostRequest]:
    return [
        _CostRequest(run.trace, run.project.rules, one.curve.span)
        for run, one in zip(runs, alignment.runs, strict=True)
    ]


def _known(costs: _Costs, request: _CostRequest) -> list[RunCosts | None]:
    """The costs that were asked for with a request; none if they were not."""
    return [cost for asked, cost in costs if asked == request]


def _sentences(runs: Sequence[KeptRun], alignment: Alignment, costs: _Costs) -> tuple[str, ...]:
    """How much longer runs take, and why as far as their costs are known."""
    from desktop.core.run_difference import explain_differences
    from desktop.data.root_causes import names_in_costs

    known = [next(iter(_known(costs, request)), None) for request in _cost_requests(runs, alignment)]
    charged = tuple(
        replace(one, costs=found, called=names_in_costs(run.project.names))
        for one, found, run in zip(alignment.runs, known, runs, strict=True)
    )
    return tuple(explain_differences(replace(alignment, runs=charged)))


@dataclass(frozen=True)
class _RunRequest:
    """A run to be compared; `in_window`: its curve, fit and regions, if the main window has them."""

    key: str
    name: str
    run: KeptRun
    in_window: tuple[StepCurve, PhaseFit, frozenset[str]] | None = field(default=None, compare=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _RunRequest) and self._question == other._question

    __hash__ = None  # type: ignore[assignment]  # rules hold a dictionary

    @property
    def _question(self) -> tuple[object, ...]:
        project = self.run.project
        return (
            self.key,
            self.name,
            self.run.trace,
            project.rules,
            project.phases,
            project.limit,
            project.curve,
            marks_of(project.annotations),
        )


@dataclass(frozen=True, eq=False)
class _LoadedRun:
    """A run that was compared last, so that only what changes is read and fitted again. `landmarks`:
    structure events of its curve."""

    request: _RunRequest
    phased: Phased
    landmarks: Landmarks | None = None


def _answer(
    requests: Sequence[_RunRequest],
    comparison: Comparison,
    previous: Sequence[_LoadedRun],
    placed: Placement | None,
    costs: _Costs,
    path: Path | None,
    job: Job,
    *,
    whole: bool,
) -> tuple[tuple[_LoadedRun, ...], _Repeated, dict[str, object]]:
    """Fields of the snapshot, if `whole`; else only what the plot of the shown run needs, of those runs that
    can be read."""
    from desktop.core.contrast import table

    loaded = []
    for k, request in enumerate(requests):
        share = Share(job, k / len(requests), (k + 1) / len(requests))
        with nullcontext() if whole else suppress(DesktopError, OSError, ValueError):
            loaded.append(_load_run(request, previous, path, share))
    requests, runs = [run.request for run in loaded], [run.phased for run in loaded]
    keys = tuple(request.key for request in requests)
    if not whole:
        few = len(runs) < REPEATS
        repeated: _Repeated = (None, ()) if few else _repeated(requests, _aligned(comparison, keys, runs))
        return tuple(loaded), repeated, {}
    job.step(0, 0, "subtracting")
    contrast = compare(comparison, keys, runs, placed)
    alignment = contrast.alignment
    ours = [m for m in comparison.matched if m.reference == keys[alignment.reference] and m.run in keys]
    held = pairs_by_run(ours, keys, alignment.reference, [run.fit.n for run in runs])
    answer: dict[str, object] = {
        "keys": keys,
        "alignment": alignment,
        "placement": _drawable(contrast.placement),
        "cells": tuple(table(alignment)),
        "sentences": _sentences([one.run for one in requests], alignment, costs),
        "outdated": len(ours) - len(held),
    }
    return tuple(loaded), _repeated(requests, alignment), answer


def _repeated(requests: Sequence[_RunRequest], alignment: Alignment) -> _Repeated:
    """The fit in the main window, if that is one of the runs, and how firm its breakpoints are over them."""
    from desktop.core.firmness import over_runs

    k = next((k for k, one in enumerate(requests) if one.in_window is not None), None)
    return (None, ()) if k is None else (alignment.runs[k].fit, over_runs(alignment, k))


def _drawable(placement: Placement) -> Placement:
    """With the trees that drawing needs, so that the window need not build them."""
    for curve in (*placement.curves, *placement.differences):
        if curve is not None:
            envelope(curve)
    return placement


def _load_run(
    request: _RunRequest, previous: Sequence[_LoadedRun], path: Path | None, progress: Progress
) -> _LoadedRun:
    """A run with its phases, taken from `previous` as far as it has not changed."""
    from desktop.core.contrast import Phased

    if request.in_window is not None:
        return _LoadedRun(request, Phased(request.name, *request.in_window))
    project = request.run.project
    for old in previous:
        if old.request == request:
            return old
        was = old.request.run.project
        same = (was.rules, was.limit, was.curve) == (project.rules, project.limit, project.curve)
        same = same and marks_of(was.annotations) == marks_of(project.annotations)
        # Of a run that was in the main window the structure is not known here.
        if same and old.request.run.trace == request.run.trace and old.request.in_window is None:
            again = phased(request.name, old.phased.curve, project.phases, old.landmarks)
            return _LoadedRun(request, replace(again, program=old.phased.program), old.landmarks)
    return _LoadedRun(request, *load_phased(request.name, request.run, project.phases, path, progress))


def load_phased(
    name: str,
    run: KeptRun,
    phases: PhaseSettings | None,
    project: Path | None,
    progress: Progress,
    seen: Callable[[TraceStore], object] | None = None,
    *,
    charged: bool = False,
) -> tuple[Phased, Landmarks | None]:
    """`load_curve` and `phased`, with the names of the program's regions, and the costs if `charged`; and the
    structure events."""
    from desktop.data.remembered import costs_of
    from desktop.data.root_causes import names_in_costs

    with _opened(run, project, progress, seen) as (store, use, curve):
        landmarks = _landmarks(store, use, curve, run, progress)
        program = frozenset(one.name for one in store.regions)
        costs = costs_of(store, use.rules, curve.span, progress, use) if charged else None
    fitted = phased(name, curve, phases, landmarks)
    called = names_in_costs(run.project.names)
    return replace(fitted, program=program, costs=costs, called=called), landmarks


def load_curve(
    run: KeptRun, project: Path | None, progress: Progress, seen: Callable[[TraceStore], object] | None = None
) -> tuple[StepCurve, Landmarks | None]:
    """The curve of a run, by its rules and within its limit, and what is known of its structure; `project`:
    the file that it is kept in, to find the trace.

    `seen` is given the store before it is closed.

    Raises
    ------
    ProjectError : its trace is not where it was.
    DesktopError : it cannot be opened.
    ValueError : its limit lies outside of the curve.
    """
    with _opened(run, project, progress, seen) as (store, use, curve):
        return curve, _landmarks(store, use, curve, run, progress)


@contextmanager
def _opened(
    run: KeptRun, project: Path | None, progress: Progress, seen: Callable[[TraceStore], object] | None
) -> Iterator[tuple[TraceStore, Utilization, StepCurve]]:
    """The store of a run while it is open, its utilization, and its curve within its limit."""
    from desktop.data.curves import build_curve
    from desktop.data.opening import open_trace
    from desktop.data.utilization import Rules, build

    place = compared_trace(run.trace, project)
    with open_trace(place, progress, **asdict(run.trace.options)) as store:
        if seen is not None:
            seen(store)
        use = build(store, run.project.rules or Rules(), progress)
        curve = build_curve(store, use, run.project.curve, progress)
        yield store, use, curve if run.project.limit is None else curve.window(*run.project.limit)


def _landmarks(
    store: TraceStore, use: Utilization, curve: StepCurve, run: KeptRun, progress: Progress
) -> Landmarks:
    from desktop.data.presence import structure

    return structure(store, use, progress).landmarks(curve, marks_of(run.project.annotations))


def load_costs(
    trace: TraceId,
    rules: Rules | None,
    span: tuple[float, float],
    project: Path | None,
    progress: Progress,
    waits: OpenWaits | None = None,
) -> RunCosts | None:
    """Where the time of a range of a run goes (seconds); None if unknown, and of a trace on another machine,
    which is not connected to again for that. `project`: as in `load_curve`. `waits`: of the run, if it is in
    the main window, so that they are not found twice.

    Raises
    ------
    ProjectError, DesktopError, ValueError : as `load_curve`.
    """
    from desktop.data.opening import open_trace
    from desktop.data.remembered import costs_of
    from desktop.data.utilization import Rules

    if waits is not None and waits.use.rules == (rules or Rules()):
        with suppress(StoreError):  # another trace is in the window by now, and this one closed
            return costs_of(waits.store, waits.use.rules, span, progress, waits.use, waits.causality)
    place = compared_trace(trace, project)
    if isinstance(place, RemotePath):
        return None
    with open_trace(place, progress, **asdict(trace.options)) as store:
        return costs_of(store, rules or Rules(), span, progress)


def phased(
    name: str, curve: StepCurve, phases: PhaseSettings | None, landmarks: Landmarks | None = None
) -> Phased:
    """A run with the phases asked for; None: the mixed ones that are suggested. `landmarks`:
    of the run."""
    from desktop.core.contrast import Phased

    if phases is None:
        sweep, suggestion = search(curve, PhaseSettings().model, landmarks=landmarks)
        return Phased(name, curve, suggestion.fit(curve, sweep))
    return Phased(name, curve, phases.fit(curve, landmarks))


def compare(
    comparison: Comparison, keys: Sequence[str], runs: Sequence[Phased], previous: Placement | None = None
) -> Contrast:
    """The runs with these keys as they are to be compared.

    `previous`: what was compared last, see `desktop.core.contrast.place`.
    """
    from desktop.core.contrast import Contrast, place

    alignment = _aligned(comparison, keys, runs)
    return Contrast(alignment, place(alignment, comparison.axis, share=comparison.share, before=previous))


def _aligned(comparison: Comparison, keys: Sequence[str], runs: Sequence[Phased]) -> Alignment:
    from desktop.core.contrast import align

    systems = dict(comparison.systems)
    runs = [
        replace(run, system=systems[key]) if key in systems else run
        for key, run in zip(keys, runs, strict=True)
    ]
    reference = keys.index(comparison.reference) if comparison.reference in keys else 0
    fixed = pairs_by_run(comparison.matched, keys, reference, [run.fit.n for run in runs])
    return align(runs, reference, fixed)


def contrast(workspace: Workspace, runs: Sequence[Phased]) -> Contrast | None:
    """How a project compares its runs, given in its order; None where it compares fewer than two."""
    comparison = workspace.comparison
    members = [
        (key, run)
        for key, run in zip(run_keys(workspace.runs), runs, strict=True)
        if key not in comparison.hidden
    ][:MOST]
    if len(members) < 2:
        return None
    return compare(comparison, [key for key, _ in members], [run for _, run in members])


def pairs_by_run(
    matched: Sequence[Matched], keys: Sequence[str], reference: int, phases: Sequence[int]
) -> dict[int, tuple[tuple[int, int], ...]]:
    """The pairs set by hand that hold for as many phases, by the number of the run, as
    `desktop.core.contrast.align` takes them."""
    return {
        k: m.pairs
        for k, key in enumerate(keys) if k != reference
        for m in matched if _same(m, keys[reference], key, phases[reference], phases[k])
    }  # fmt: skip


def _same(m: Matched, reference: str, run: str, of: int, phases: int) -> bool:
    return (m.reference, m.run, m.of, m.phases) == (reference, run, of, phases)


def run_names(traces: Sequence[TraceId]) -> tuple[str, ...]:
    """A name for each that no other has: its own, with the folder's if that is not enough, or a number."""
    places = [named_by(trace.path, trace.options.member) for trace in traces]
    names = [place.name for place in places]
    names = [
        f"{place.parent.name}/{place.name}" if names.count(place.name) > 1 else place.name for place in places
    ]
    return tuple(
        f"{name} ({names[: k + 1].count(name)})" if names.count(name) > 1 else name
        for k, name in enumerate(names)
    )


def labels_of(runs: Sequence[KeptRun]) -> tuple[str, ...]:
    """`run_names` of runs; where the analysis of one is limited, with its range of time."""
    names = []
    for name, run in zip(run_names([run.trace for run in runs]), runs, strict=True):
        ends = zip(("from", "to"), run.project.limit or (), strict=False)
        part = [f"{word} {time_s:.4g} s" for word, time_s in ends if math.isfinite(time_s)]
        names.append(f"{name} ({' '.join(part)})" if part else name)
    return tuple(names)


def plain_run(path: Path, phases: PhaseSettings, curve: str = "computing") -> KeptRun:
    """A trace that belongs to no project."""
    return KeptRun(TraceId(path.absolute(), path.name, 0, "", "", ""), Project(phases, curve=curve))

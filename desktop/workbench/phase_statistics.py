"""Statistics of the run, the selection and each phase: a request of the workbench, and its answer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from desktop.core.critical_path import PathLine
    from desktop.core.explanation import Explanation
    from desktop.core.phase_stats import Firm
    from desktop.core.phases import PhaseFit
    from desktop.data.causality import Causality
    from desktop.data.causes import Causes
    from desktop.data.curves import Measured
    from desktop.data.iterations import Iterations
    from desktop.data.remembered import Ranges
    from desktop.data.statistics import CallRow, Change, RangeStats, RegionRow, Statistics
    from desktop.data.store import TraceStore
    from desktop.workbench.jobs import Job
    from desktop.workbench.tracing import TraceRun

#: Phases of which all statistics are made; of more, those around the selected one.
ALL_PHASES = 60
#: Metrics of a trace that have rows in the statistics, in its order.
METRICS = 24
#: Sentences for every breakpoint.
CHANGES = 8

Part = Literal["ranges", "calls", "changes", "accounts", "iterations", "whatif", "words"]
#: With more messages and members of collective operations, numbers that need none of them are shown first,
#: then accounts of what is looked at, then all.
AT_ONCE = 200_000


@dataclass(frozen=True)
class Scope:
    """A range of time with a name: ``run``, ``selection``, or a phase (from 0)."""

    key: str
    label: str
    start_s: float
    end_s: float
    phase: int = -1


@dataclass(frozen=True, eq=False)
class PhaseStatistics:
    """Statistics of all `scopes` (`stats` in the same order), details of the one in `focus`.

    `changes`: for every pair of neighbouring phases by the earlier one, most different first; None while
    no panel shows them. `calls`, `flat`: call tree and flat profile of the focus. `names`: of locations.
    `replayed`: whether all `stats` have accounts, and all efficiencies that can be known; they come of
    `causality`, `waits` says why they are not there. `causes`: of the whole run, where they have been found,
    `path`: the critical path. `remote`: all was computed on the machine of the trace, as else all events
    would have to be sent here. `words`: why time is lost, of `fit`. `outdated`: a newer answer is on its way.
    `iterations`: of `run`. `problem`: why there is nothing. `firm`: of the inner breakpoints of `fit`, over
    iterations. `metrics`: of the trace, the first `METRICS`.
    """

    fit: PhaseFit | None = None
    scopes: tuple[Scope, ...] = ()
    stats: tuple[RangeStats, ...] = ()
    focus: int = 0
    flat: tuple[RegionRow, ...] = ()
    calls: tuple[CallRow, ...] = ()
    changes: dict[int, tuple[Change, ...]] | None = None
    names: tuple[str, ...] = ()
    replayed: bool = False
    causality: Causality | None = None
    causes: Causes | None = None
    words: Explanation | None = None
    path: PathLine | None = None
    remote: bool = False
    waits: str = ""
    run: TraceRun | None = None
    iterations: Iterations | None = None
    firm: tuple[Firm | None, ...] = ()
    metrics: tuple[Measured, ...] = ()
    outdated: bool = False
    problem: str = ""


#: The answer before the first request.
NO_STATS = PhaseStatistics()


@dataclass(frozen=True)
class StatisticsRequest:
    """Everything that an answer depends on. `iterations`: of the run, if they have been found;
    `causality`, `causes`: who waited for whom, and what caused it, if that has been found. `called`: what
    regions are called instead; `words`: why time is lost, if that is known of this fit; `previous`: the
    last answer, whose statistics are taken where they are of the same ranges."""

    store: TraceStore
    run: TraceRun
    fit: PhaseFit | None
    selection: tuple[float, float] | None
    phase: int | None
    scope: str
    parts: frozenset[Part]
    causality: Causality | None = None
    causes: Causes | None = None
    called: dict[str, str] = field(default_factory=dict)
    words: Explanation | None = field(default=None, compare=False)
    iterations: Iterations | None = field(default=None, compare=False)
    previous: PhaseStatistics = field(default=NO_STATS, compare=False)

    def answer(
        self, source: Statistics, job: Job, tell: Callable[[PhaseStatistics], None]
    ) -> PhaseStatistics:
        """The answer; `source`: of the store. `tell` is called with parts that are known sooner."""
        import pandas  # noqa: F401 - here, as the window's thread would wait for it with the first table

        use, scopes = self.run.utilization, _scopes(self)
        causality, causes = self.causality, self.causes
        spans = [(s.start_s, s.end_s) for s in scopes]
        focus = _focus(self, scopes)
        at_once = causality is not None and causality.operations.time.size <= AT_ONCE
        previous = self.previous if self.previous.replayed and self.previous.scopes == scopes else NO_STATS
        same_waits = causality is not None and previous.causality is causality and previous.run is self.run
        words, recalled = self.words, None
        if same_waits and (previous.causes is causes or not at_once):
            stats, at_once = previous.stats, previous.causes is causes
        else:
            stats = source.ranges(spans, use, job, causality=causality if at_once else None, causes=causes)
            recalled = self._recalled(stats, causes is not None) if not at_once else None
            if recalled is not None:
                (stats, words_then), at_once = recalled, True
                words = words or words_then
        changes = None
        if "changes" in self.parts:
            by_phase = {
                scope.phase: one for scope, one in zip(scopes, stats, strict=True) if scope.phase >= 0
            }
            changes = {
                k: tuple(source.changes(stats[0], by_phase[k], by_phase[k + 1], CHANGES))
                for k in by_phase
                if k + 1 in by_phase
            }
        calls = tuple(source.calls(spans[focus], use, job)) if "calls" in self.parts else ()
        flat = tuple(source.flat(stats[focus], use))
        names = tuple(source.name(i) for i in range(len(self.store.locations)))
        loops = self.iterations
        from desktop.core.phases import BY_HAND

        by_hand = self.fit is not None and self.fit.note == BY_HAND
        if loops is None and ("iterations" in self.parts or by_hand):
            from desktop.data.iterations import find

            loops = find(self.store, use, job, self.run.curve)
        firm: tuple[Firm | None, ...] = ()
        if loops is not None and self.fit is not None:
            from desktop.data.iterations import firm_breakpoints

            firm = firm_breakpoints(loops, self.run.curve, self.fit)
        metrics = self.previous.metrics
        if self.previous.run is None or self.previous.run.utilization is not use:
            from desktop.data.curves import measured

            metrics = measured(self.store, use, ["ALL"], job, METRICS)
        answer = PhaseStatistics(
            self.fit, scopes, stats, focus, flat, calls, changes, names, at_once, causality, causes,
            words, None if causes is None else causes.path_line(use), run=self.run, iterations=loops,
            firm=firm, metrics=metrics,
        )  # fmt: skip
        if causality is None:
            if recalled is not None and self.store.elsewhere is not None:
                tell(replace(answer, remote=True))
                return replace(answer, remote=True, path=self._remote_path())
            return answer
        if "words" in self.parts and words is None and self.fit is not None:
            from desktop.data.root_causes import explain

            tell(answer if at_once else replace(answer, replayed=same_waits))
            breakpoints = [float(b) for b in self.fit.breaks]
            words = explain(source, use, breakpoints, self.fit.names, self.called, job, causality)
            answer = replace(answer, words=words)
        if not at_once:
            tell(replace(answer, replayed=same_waits))
            (looked_at,) = source.ranges([spans[focus]], use, job, causality=causality, causes=causes)
            stats = (*stats[:focus], looked_at, *stats[focus + 1 :])
            tell(replace(answer, stats=stats, replayed=same_waits))
            stats = source.ranges(spans, use, job, causality=causality, causes=causes)
            flat = tuple(source.flat(stats[focus], use))
            answer = replace(answer, stats=stats, flat=flat, replayed=True)
        if recalled is None and causes is not None:
            self._keep(answer)
        return answer

    def _ranges(self) -> Ranges | None:
        """What the numbers depend on; None where there are no phases, or only a part is looked at."""
        from desktop.data.remembered import Ranges

        if self.fit is None or self.run.limit is not None:
            return None
        return Ranges(self.run.utilization.rules, self.fit.breaks.tolist(), self.fit.names, self.called)

    def _recalled(
        self, stats: tuple[RangeStats, ...], causes: bool
    ) -> tuple[tuple[RangeStats, ...], Explanation | None] | None:
        """Statistics saved when the trace was open before; None if there are none."""
        from desktop.data.remembered import recall

        of = self._ranges()
        far = bool(self.parts & {"accounts", "words"})
        return None if of is None else recall(self.store, of, stats, causes, far)

    def _remote_path(self) -> PathLine | None:
        """The critical path, where all events are."""
        if self.previous.run is self.run and self.previous.remote and self.previous.path is not None:
            return self.previous.path
        from desktop.data.remembered import remote_path

        return remote_path(self.store, self.run.utilization)

    def _keep(self, answer: PhaseStatistics) -> None:
        from desktop.data.remembered import keep

        of = self._ranges()
        if of is not None:
            rows = zip(answer.scopes, answer.stats, strict=True)
            keep(self.store, of, [one for scope, one in rows if scope.key != "selection"], answer.words)


def _scopes(request: StatisticsRequest) -> tuple[Scope, ...]:
    """Run, selection and phases; phases too short for a tick of the curve are left out."""
    curve, fit = request.run.curve, request.fit
    start, end = curve.span
    label = "Whole run" if request.run.limit is None else "Limited range"
    scopes = [Scope("run", label, start, end)]
    least = 2 * curve.unit
    if request.selection is not None:
        a, b = max(min(request.selection), start), min(max(request.selection), end)
        if b - a > least:
            scopes.append(Scope("selection", "Selection", a, b))
    if fit is not None:
        ends = [float(b) for b in fit.breaks]
        phases = range(len(ends) - 1)
        if len(phases) > ALL_PHASES:
            middle = request.phase or 0
            phases = range(max(0, middle - 5), min(len(ends) - 1, middle + 6))
        for k in phases:
            if ends[k + 1] - ends[k] > least:
                scopes.append(Scope(f"phase {k}", f"Phase {k + 1}", ends[k], ends[k + 1], k))
    return tuple(scopes)


def _focus(request: StatisticsRequest, scopes: tuple[Scope, ...]) -> int:
    keys = {scope.key: i for i, scope in enumerate(scopes)}
    order = {
        "run": ("run",),
        "selection": ("selection", "run"),
        "auto": ("selection", f"phase {request.phase}", "run"),
    }[request.scope]
    return next((keys[key] for key in order if key in keys), 0)

"""Runs of one program on different numbers of processors: the same phases in all of them, and their costs.

A breakpoint is the same in all runs if it is at a structure event that all of them have: the same region
begins or ends there, the same one of as many times. The suggestion is taken from the run whose breakpoints
are found in most of the others. If fewer are found than any run has by itself, all runs get the same number
of phases, the largest one with which neighbours in p match one to one by order and shape
(`desktop.core.matching`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from desktop.core.accounts import Account
from desktop.core.labels import ACCOUNTS
from desktop.core.phase_model import FEWEST, ScalingRuns
from desktop.core.plain import JSON
from desktop.progress import Progress, Share

if TYPE_CHECKING:
    from desktop.core.curve import StepCurve
    from desktop.core.landmarks import Landmark, Landmarks
    from desktop.core.phases import PhaseFit, Sweep
    from desktop.core.selection import Suggestion
    from desktop.data.presence import Structure
    from desktop.data.statistics import RangeStats
    from desktop.data.store import TraceStore
    from desktop.data.utilization import Rules, Utilization

#: A structure event belongs to a breakpoint within this share of the run.
_NEAR = 0.01


@dataclass(frozen=True, eq=False)
class Candidate:
    """A run with its own suggested breakpoints."""

    curve: StepCurve
    landmarks: Landmarks | None
    sweep: Sweep
    suggestion: Suggestion

    @property
    def fit(self) -> PhaseFit:
        return self.suggestion.fit(self.curve, self.sweep)


def common_breakpoints(runs: Sequence[Candidate]) -> tuple[list[list[float]], str]:
    """Breakpoints (s, including ends) of each run, the same number in all; and how they were found, in words.
    `runs`: in the order of p."""
    by_event = _by_events(runs)
    fewest = min(run.suggestion.n for run in runs)
    if len(by_event[0]) - 1 >= fewest:
        return by_event, "phases begin and end at the same structure events in all runs"
    breakpoints = _by_shape(runs)
    if len(breakpoints[0]) >= len(by_event[0]):
        return breakpoints, "phases are matched by order and shape, as many in all runs"
    return by_event, "phases begin and end at the same structure events in all runs"


def _by_events(runs: Sequence[Candidate]) -> list[list[float]]:
    events = [_keyed(run) for run in runs]
    best: list[list[float]] = [list(run.curve.span) for run in runs]
    for reference, run in enumerate(runs):
        matched: list[list[float]] = []
        of_reference = events[reference]
        for t in run.fit.breaks[1:-1].tolist():
            near = sorted(
                (abs(time - t), key)
                for key, time in of_reference.items()
                if abs(time - t) <= _NEAR * run.curve.duration
            )
            at = next(([e[key] for e in events] for _, key in near if all(key in e for e in events)), None)
            if at is not None and all(
                a < b for a, b in zip(matched[-1] if matched else [], at, strict=False)
            ):
                matched.append(at)
        if len(matched) + 2 > len(best[0]):
            best = [
                [r.curve.start, *(at[k] for at in matched), r.curve.start + r.curve.duration]
                for k, r in enumerate(runs)
            ]
    return best


def _keyed(run: Candidate) -> dict[tuple[str, str, int, int], float]:
    """Times of structure events by what happens: text without numbers of processors, and which one of how
    many of the kind."""
    if run.landmarks is None:
        return {}
    kinds: dict[tuple[str, str], list[Landmark]] = {}
    for event in run.landmarks.events:
        kinds.setdefault((event.text.rpartition(" on ")[0], event.happens), []).append(event)
    return {
        (*kind, i, len(same_kind)): event.time_s
        for kind, same_kind in kinds.items()
        for i, event in enumerate(same_kind)
    }


def _by_shape(runs: Sequence[Candidate]) -> list[list[float]]:
    from desktop.core.matching import match, shapes
    from desktop.core.selection import at_events

    def fit(run: Candidate, n: int) -> PhaseFit:
        if n == run.suggestion.n:
            return run.fit
        return at_events(run.curve, run.sweep.fit(n), run.landmarks)

    for n in sorted({run.suggestion.n for run in runs}, reverse=True):
        if not all(n in run.sweep.n for run in runs):
            continue
        fits = [fit(run, n) for run in runs]
        if any(fitted.n != n for fitted in fits):
            continue
        forms = [shapes(run.curve, fitted) for run, fitted in zip(runs, fits, strict=True)]
        if all((match(a, b).of_a == np.arange(n)).all() for a, b in pairwise(forms)):
            return [fitted.breaks.tolist() for fitted in fits]
    return [list(run.curve.span) for run in runs]


@dataclass(frozen=True, eq=False)
class Traced:
    """A run to be read. `options`: of `open_trace`; `rules`: what counts as computing, None: the default;
    `limit`: the time range (s) analysed; `breaks`: of its phases including the ends (s), None: to be found;
    `system`: what it ran on."""

    path: Path
    options: JSON = field(default_factory=dict)
    rules: Rules | None = None
    limit: tuple[float, float] | None = None
    breaks: tuple[float, ...] | None = None
    system: str = ""

    def curve(self, use: Utilization) -> StepCurve:
        """The analysed part of its curve."""
        curve = use.curve()
        return curve if self.limit is None else curve.window(*self.limit)


@dataclass(frozen=True, eq=False)
class Gathered:
    """The measured runs, and how their phases were matched."""

    runs: ScalingRuns
    matched: str
    breaks: tuple[tuple[float, ...], ...]


def gather(runs: Sequence[Traced], progress: Progress | None = None) -> Gathered:
    """Traces with the same phases in all, in the order of p, opened and `measured`.

    Raises
    ------
    DesktopError : a trace cannot be opened.
    ValueError, Cancelled : as `measured`.
    """
    from desktop.data.naming import named_by
    from desktop.data.opening import open_trace
    from desktop.data.utilization import Rules, build

    progress, held = progress or Progress(), []
    with ExitStack() as stack:
        for k, run in enumerate(runs):
            share = Share(progress, k / len(runs) / 2, (k + 1) / len(runs) / 2)
            store = stack.enter_context(open_trace(run.path, share, **run.options))
            use = build(store, run.rules or Rules(), share)
            held.append(OpenRun(named_by(run.path).name, run.curve(use), store, use, run.breaks, run.system))
        return measured(held, Share(progress, 0.5, 1))


@dataclass(frozen=True, eq=False)
class OpenRun:
    """An open run. `curve`: the analysed part of the utilization; `store`, `use` None: only the curve is
    known; `breaks`, `system` as in `Traced`."""

    name: str
    curve: StepCurve
    store: TraceStore | None
    use: Utilization | None
    breaks: tuple[float, ...] | None = None
    system: str = ""


def measured(runs: Sequence[OpenRun], progress: Progress | None = None) -> Gathered:
    """Times of the phases of runs, in the order of p. If one has no breakpoints, those of all are from
    `common_breakpoints`.

    Raises
    ------
    ValueError : fewer than `FEWEST` different p, or different numbers of breakpoints.
    """
    from desktop.core.phase_names import phase_names
    from desktop.data.presence import structure
    from desktop.data.statistics import Statistics

    progress, runs = progress or Progress(), sorted(runs, key=lambda run: run.curve.capacity)
    p = [run.curve.capacity for run in runs]
    if len(set(p)) < FEWEST:
        raise ValueError(
            f"phases over p need runs on {FEWEST} or more different numbers of processors, these are "
            f"on {', '.join(f'{one:g}' for one in sorted(set(p)))}"
        )
    structures = [
        None if run.store is None or run.use is None else structure(run.store, run.use, progress)
        for run in runs
    ]
    ends, matched = [list(run.breaks or ()) for run in runs], "phases are matched as in the comparison"
    if not all(ends):
        ends, matched = _common(runs, structures)
    if len({len(one) for one in ends}) > 1:
        raise ValueError("the runs have different numbers of phases, match them first")
    stats: list[Sequence[RangeStats] | None] = []
    names = []
    for i, (run, of_run) in enumerate(zip(runs, structures, strict=True)):
        share = Share(progress, i / len(runs), (i + 1) / len(runs))
        if run.store is None:
            stats.append(None)
        else:
            stats.append(Statistics(run.store).ranges(pairwise(ends[i]), run.use, share, replay=True))
        names.append(phase_names(None if of_run is None else of_run.doings(run.curve), ends[i]))
    numbers = _numbers([run.name for run in runs], p, ends, stats, _common_names(names))
    systems = tuple(run.system for run in runs)
    if len(set(systems)) > 1:
        numbers = replace(numbers, systems=systems)
    return Gathered(numbers, matched, tuple(tuple(one) for one in ends))


def _common(runs: Sequence[OpenRun], structures: Sequence[Structure | None]) -> tuple[list[list[float]], str]:
    """Find the same phases in all runs."""
    from desktop.core.selection import search

    candidates = []
    for run, structure in zip(runs, structures, strict=True):
        events = None if structure is None else structure.landmarks(run.curve)
        candidates.append(Candidate(run.curve, events, *search(run.curve, "mixed", landmarks=events)))
    return common_breakpoints(candidates)


def _common_names(names: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The name of each phase in most runs, without the shares of its calls, which change with p."""
    common = []
    for k in range(len(names[0])):
        stems = [one[k].partition(":")[0].partition(",")[0] for one in names]
        words = [" ".join(w for w in one.split() if not w[0].isdigit() and w != "%") for one in stems]
        common.append(max(words, key=words.count))
    return tuple(common)


def _numbers(
    called: Sequence[str],
    p: Sequence[float],
    ends: Sequence[Sequence[float]],
    stats: Sequence[Sequence[RangeStats] | None],
    names: tuple[str, ...],
) -> ScalingRuns:
    duration = np.diff(np.array(ends, np.float64), axis=1)
    at = np.array(p, np.float64)
    present = [run for run in stats if run is not None]
    if len(present) < len(stats) or not all(one.is_processor.any() for run in present for one in run):
        return ScalingRuns(tuple(called), names, at, duration)
    duration = np.array([[one.duration_s for one in run] for run in present])
    parts = np.array([[_parts(one, size) for one in run] for run, size in zip(present, p, strict=True)])
    if not all(one.accounts is not None for run in present for one in run):
        return ScalingRuns(tuple(called), names, at, duration, parts)
    whole = np.array([
        [[(one.account_s or {})[a] / size for a in Account] for one in run]
        for run, size in zip(present, p, strict=True)
    ])  # fmt: skip
    # Accounts below a hundredth of every phase are not worth a law.
    worth = np.any(whole > 0.01 * duration[:, :, None], axis=(0, 1))
    titles = tuple(
        ACCOUNTS[a.name.lower()][0] for a, worthy in zip(Account, worth.tolist(), strict=True) if worthy
    )
    return ScalingRuns(tuple(called), names, at, duration, parts, whole[:, :, worth], titles)


def _parts(one: RangeStats, p: float) -> tuple[float, float, float]:
    """The parts named in `desktop.core.phase_model.PARTS`, in seconds."""
    mean = one.computing * one.duration_s / p
    most = max(float(one.useful_s[one.is_processor].max(initial=0.0)), mean)
    most = min(most, one.duration_s)
    return mean, most - mean, one.duration_s - most

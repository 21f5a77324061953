"""What the run, the selection and each phase are made of, computed beside the window while somebody looks.

Nothing is computed while no panel shows it, and of requests in quick succession (n under the hand) only the
last is answered.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from desktop.workbench.jobs import Deliver, Executor, Job, Lane

if TYPE_CHECKING:
    from desktop.core.phases import PhaseFit
    from desktop.data.statistics import CallRow, Change, RangeStats, RegionRow, Statistics
    from desktop.workbench.model import View
    from desktop.workbench.workbench import Run

#: Seconds that a request must last before it is answered.
SETTLE = 0.12
#: Phases of which all statistics are made; of more, those around the selected one.
ALL_PHASES = 60
#: Sentences for every break.
CHANGES = 8

Part = Literal["ranges", "calls", "replay"]


@dataclass(frozen=True)
class Scope:
    """A range of time with a name: ``run``, ``selection``, or a phase (from 0)."""

    key: str
    label: str
    start_s: float
    end_s: float
    phase: int = -1


@dataclass(frozen=True, eq=False)
class Explained:
    """Statistics of all `scopes` (`stats` in the same order), details of the one in `focus`.

    `changes`: for every pair of neighbouring phases by the earlier one, most different first. `calls`,
    `flat`: call tree and flat profile of the focus. `names`: of locations. `outdated`: a newer answer is on
    its way. `problem`: why there is nothing.
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
    outdated: bool = False
    problem: str = ""


#: Before anybody asked.
NOTHING = Explained()


@dataclass(frozen=True, eq=False)
class _Request:
    """Everything that an answer depends on."""

    store: Any
    run: Run
    fit: PhaseFit | None
    selection: tuple[float, float] | None
    phase: int | None
    scope: str
    parts: frozenset[Part]

    def same(self, other: _Request | None) -> bool:
        return other is not None and all(
            getattr(self, name) is getattr(other, name) or getattr(self, name) == getattr(other, name)
            for name in ("run", "fit", "selection", "phase", "scope", "parts")
        )


class Explainer:
    """Answers for one open trace at a time. `tell` gets every new `Explained`, in the owner's thread."""

    def __init__(
        self,
        tell: Callable[[Explained], None],
        deliver: Deliver,
        executor: Executor | None = None,
        settle: float = SETTLE,
    ) -> None:
        self._tell = tell
        self._settle = settle
        self._lane = Lane("statistics", latest=True, deliver=deliver, executor=executor)
        self._watched: dict[str, frozenset[Part]] = {}
        self._asked: _Request | None = None
        self._last: _Request | None = None
        self._kept: tuple[Any, Statistics] | None = None
        self._scope = "auto"
        self._replay = False
        self._open = True
        self.explained = NOTHING

    @property
    def busy(self) -> bool:
        return self._lane.busy

    def close(self) -> None:
        """End all work; nothing is asked for any more."""
        self._open = False
        self._lane.close()
        self._kept = None

    def forget(self) -> None:
        """The trace is closed: wait for whoever reads it."""
        self._lane.cancel()
        self._asked = self._last = self._kept = None
        self._replay = False
        self._show(NOTHING)

    def watch(self, who: str, parts: frozenset[Part]) -> None:
        """A panel shows these parts from now on (none: it is hidden)."""
        if parts:
            self._watched[who] = parts
        else:
            self._watched.pop(who, None)
        if self._watched:
            self._ask()
        elif self._lane.busy:
            self._lane.cancel()
            self._last = None

    def set_scope(self, scope: str) -> None:
        """What the details are of: ``auto`` (selection, else phase, else run), ``run`` or ``selection``."""
        self._scope = scope
        self._ask()

    @property
    def scope(self) -> str:
        return self._scope

    def want_replay(self) -> None:
        """Also what takes a pass over the events: transfer, serialisation, waiting."""
        self._replay = True
        self._ask()

    def follow(self, store: Any, run: Run | None, fit: PhaseFit | None, view: View) -> None:
        """The situation has changed."""
        if run is None or store is None:
            self._asked = None
            return
        self._asked = _Request(store, run, fit, view.selection, view.phase, "", frozenset())
        self._ask()

    def _ask(self) -> None:
        asked = self._asked
        if asked is None or not self._watched or not self._open:
            return
        parts = frozenset[Part]().union(*self._watched.values())
        if self._replay:
            parts |= {"replay"}
        request = replace(asked, scope=self._scope, parts=parts)
        if request.same(self._last):
            return
        self._last = request
        if not self.explained.outdated and self.explained.scopes:
            self._show(replace(self.explained, outdated=True))
        self._lane.submit(
            "Statistics",
            lambda job: self._answer(request, job),
            self._show,
            lambda e: self._failed(request, e),
        )

    def _show(self, explained: Explained) -> None:
        self.explained = explained
        self._tell(explained)

    def _failed(self, request: _Request, error: BaseException) -> None:
        self._last = None
        self._show(Explained(request.fit, problem=str(error)))

    def _answer(self, request: _Request, job: Job) -> Explained:
        begun = time.monotonic()
        while time.monotonic() - begun < self._settle:
            job.step(0, 0)
            time.sleep(0.01)
        import pandas  # noqa: F401 - here, as the window's thread would wait for it with the first table

        from desktop.data.statistics import Statistics

        if self._kept is None or self._kept[0] is not request.store:
            self._kept = (request.store, Statistics(request.store))
        kept = self._kept[1]
        use = request.run.utilization
        scopes = _scopes(request)
        replay = "replay" in request.parts
        stats = kept.ranges([(s.start_s, s.end_s) for s in scopes], use, job, replay=replay)
        by_phase = {scope.phase: one for scope, one in zip(scopes, stats, strict=True) if scope.phase >= 0}
        changes = {
            k: tuple(kept.changes(stats[0], by_phase[k], by_phase[k + 1], CHANGES))
            for k in by_phase
            if k + 1 in by_phase
        }
        focus = _focus(request, scopes)
        calls: tuple[CallRow, ...] = ()
        if "calls" in request.parts:
            chosen = scopes[focus]
            calls = tuple(kept.calls((chosen.start_s, chosen.end_s), use, job))
        return Explained(
            request.fit,
            scopes,
            stats,
            focus,
            tuple(kept.flat(stats[focus], use)),
            calls,
            changes,
            tuple(kept.name(i) for i in range(len(request.store.locations))),
            replay,
        )


def _scopes(request: _Request) -> tuple[Scope, ...]:
    """Run, selection and phases; phases too short for a tick of the curve are left out."""
    curve, fit = request.run.curve, request.fit
    start, end = curve.start, curve.start + curve.duration
    label = "Whole run" if request.run.limit is None else "Limited range"
    found = [Scope("run", label, start, end)]
    least = 2 * curve.unit
    if request.selection is not None:
        a, b = max(min(request.selection), start), min(max(request.selection), end)
        if b - a > least:
            found.append(Scope("selection", "Selection", a, b))
    if fit is not None:
        breaks = [float(b) for b in fit.breaks]
        chosen = range(len(breaks) - 1)
        if len(chosen) > ALL_PHASES:
            middle = request.phase or 0
            chosen = range(max(0, middle - 5), min(len(breaks) - 1, middle + 6))
        for k in chosen:
            if breaks[k + 1] - breaks[k] > least:
                found.append(Scope(f"phase {k}", f"Phase {k + 1}", breaks[k], breaks[k + 1], k))
    return tuple(found)


def _focus(request: _Request, scopes: tuple[Scope, ...]) -> int:
    keys = {scope.key: i for i, scope in enumerate(scopes)}
    wanted = {
        "run": ("run",),
        "selection": ("selection", "run"),
        "auto": ("selection", f"phase {request.phase}", "run"),
    }[request.scope]
    return next((keys[key] for key in wanted if key in keys), 0)

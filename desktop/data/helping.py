"""What would help a run most: single changes, each predicted alone, ranked by the seconds saved; and bounds,
which are not reachable."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from desktop.core.changes import MESSAGES, NONE, Changes, machine_words
from desktop.core.machine import IDEAL, Machine
from desktop.core.plain import JSON
from desktop.core.units import brief, percent
from desktop.data.causality import Causality
from desktop.data.statistics import Statistics
from desktop.data.utilization import Utilization
from desktop.data.whatif import Rerun
from desktop.progress import Progress, Share

#: Regions listed in what would help.
REGIONS = 5
#: Phases listed in it, those with most to gain.
PHASES = 8


@dataclass(frozen=True)
class Help:
    """A single change and what it would save. `title` and `assumption` in words; `kind`: ``balance``,
    ``region``, ``network``, or for bounds ``waiting`` or ``ideal``; `saved_s` : seconds less than `before_s`,
    which is the recorded duration, or the one predicted with the estimated network."""

    kind: str
    title: str
    assumption: str
    changes: Changes
    duration_s: float
    before_s: float

    @property
    def saved_s(self) -> float:
        return self.before_s - self.duration_s

    @property
    def share(self) -> float:
        """Saved share of the duration before."""
        return self.saved_s / self.before_s if self.before_s else 0.0

    @property
    def bound(self) -> bool:
        """Whether this is not a possible change, but the most that changes of its kind can gain."""
        return self.kind in ("waiting", "ideal")

    @property
    def label(self) -> str:
        """The title, marked if it is a bound."""
        return f"Bound: {self.title[0].lower()}{self.title[1:]}" if self.bound else self.title

    @property
    def sentence(self) -> str:
        """What it would save, in a sentence."""
        saved, share = brief(self.saved_s, 3), percent(self.share)
        most = ", at most," if self.bound else ""
        return f"{self.label}: the run would take{most} {saved} less, {share} of its time."

    def called(self, names: Mapping[str, str]) -> Help:
        """The same with other names of regions in its title."""
        changes = self.changes.called(names)
        if changes.regions:
            return replace(self, title=_faster(changes.regions[0][0]))
        if changes.no_wait:
            return replace(self, title=_unwaited(changes.no_wait[0]))
        return self

    def plain(self) -> JSON:
        """As plain values, for JSON."""
        return {
            "change": self.title,
            "saved_s": self.saved_s,
            "share": self.share,
            "predicted_s": self.duration_s,
            "assumption": self.assumption,
            "bound": self.bound,
        }


def helps(program: Rerun, progress: Progress | None = None) -> tuple[Help, ...]:
    """What would shorten the run, one change at a time, by seconds saved: possible changes, then bounds.
    Changes that save nothing are left out. Of regions those of the program are tried, at double speed."""
    progress = progress or Progress()
    if program.note:
        return ()
    candidates = list(_single(program))
    helping = []
    basis: dict[Changes, float] = {}
    for k, (kind, title, assumption, changes, base) in enumerate(candidates):
        part = Share(progress, k / len(candidates), (k + 1) / len(candidates))
        if base not in basis:
            basis[base] = (
                program.recorded_s if base == NONE else program.predict(base, part, times=False).duration_s
            )
        if abs(basis[base] - program.recorded_s) > TRUSTED * program.recorded_s:
            continue
        duration = program.predict(changes, part, times=False).duration_s
        help_ = Help(kind, title, assumption, changes, duration, basis[base])
        if help_.saved_s > LEAST * program.recorded_s:
            helping.append(help_)
    return tuple(sorted(helping, key=lambda one: (one.bound, -one.saved_s)))


#: Largest share of the run by which a prediction with the estimated network may miss it.
TRUSTED = 0.1


def prepared(
    statistics: Statistics,
    use: Utilization,
    progress: Progress | None = None,
    causality: Causality | None = None,
    limit: tuple[float, float] | None = None,
    breakpoints: Sequence[float] = (),
) -> Rerun:
    """A run to be replayed, which knows its `regions`; parameters and errors as for `Rerun`."""
    run = Rerun(statistics.store, use, progress, causality=causality, limit=limit, breakpoints=breakpoints)
    run.regions = largest_regions(statistics, use, limit or use.curve().span, progress)
    return run


def would_help(
    statistics: Statistics,
    use: Utilization,
    ends: Sequence[float],
    limit: tuple[float, float] | None,
    progress: Progress,
) -> tuple[Help, ...]:
    """What would shorten a run with phases between `ends` (all breakpoints and ends, s), see `helps`."""
    causality = statistics.causality(use, progress)
    return helps(prepared(statistics, use, progress, causality, limit, ends[1:-1]), progress)


#: Least share of the run that a listed change saves.
LEAST = 0.0005


def _single(program: Rerun) -> Iterator[tuple[str, str, str, Changes, Changes]]:
    """Kind, title, assumption, changes, and the changes they are compared with."""
    spent = program.computing_s()[program.is_processor]
    gain = spent.max(axis=0, initial=0.0) - (spent.mean(axis=0) if spent.size else 0.0)
    for k in np.argsort(-gain, kind="stable")[:PHASES].tolist():
        if gain[k] > 0:
            target = "the run" if program.phases == 1 else f"phase {k + 1}"
            yield (
                "balance",
                f"Balance {target}",
                "Every processor computes as long there as they do on average; messages stay as they are.",
                Changes(balanced=(k,)),
                NONE,
            )
    for name in program.regions:
        yield (
            "region",
            _faster(name),
            "Its computing takes half the time in every call, that of regions inside of it stays.",
            Changes(regions=((name, 2.0),)),
            NONE,
        )
    for name in (MESSAGES, *program.collectives):
        yield (
            "waiting",
            _unwaited(name),
            "Nobody waits there, as if everything needed were always available.",
            Changes(no_wait=(name,)),
            NONE,
        )
    yield (
        "ideal",
        "An ideal network",
        "No latency, infinite bandwidth, and calls of the library take no time but for waiting.",
        Changes(network=IDEAL),
        NONE,
    )
    net = program.estimate
    if net is None:
        return
    base = Machine(net.latency_s, net.bandwidth)
    assumption = f"Of the network as it is estimated from {net.messages} messages ({machine_words(base)})."
    half, double = base.latency_s / 2, 2 * base.bandwidth
    changed = [
        ("network", "Half the latency", replace(base, latency_s=half)),
        ("ideal", "No latency", replace(base, latency_s=0.0)),
        ("network", "Twice the bandwidth", replace(base, bandwidth=double)),
        ("ideal", "Infinite bandwidth", replace(base, bandwidth=math.inf)),
    ]
    for kind, title, network in changed:
        if network != base:
            yield kind, title, assumption, Changes(network=network), Changes(network=base)


def _faster(region: str) -> str:
    return f"{region} twice as fast"


def _unwaited(operation: str) -> str:
    return "No waiting for messages" if operation == MESSAGES else f"No waiting in {operation}"


def largest_regions(
    statistics: Statistics, use: Utilization, span: tuple[float, float], progress: Progress | None = None
) -> tuple[str, ...]:
    """Names of the regions with most computing, up to `REGIONS`, in a time range (s)."""
    stats = statistics.ranges([span], use, progress)[0]
    rows = [
        row for row in statistics.flat(stats, use) if row.region >= 0 and row.activity in use.rules.computing
    ]
    rows.sort(key=lambda row: -row.exclusive_s)
    return tuple(dict.fromkeys(row.name for row in rows if row.exclusive_s > 0))[:REGIONS]

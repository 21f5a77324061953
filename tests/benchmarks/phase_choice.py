"""Breakpoints found by rules, against boundaries that are known: programs by construction, real traces by the
regions around their phases.

``python -m tests.benchmarks.phase_choice`` prints the table of ``resources/docs/phase-choice.md``;
``--traces FOLDER`` adds the traces in a folder. The programs held back were run when the rule stood: those of
`tests.programs.catalogue` when it was made, those of `tests.programs.unseen` when it was changed, those of
`tests.programs.later` after that.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from desktop.core.choice import BINS, choose
from desktop.core.curve import StepCurve
from desktop.core.landmarks import Landmarks
from desktop.core.phases import Sweep
from desktop.core.selection import search
from desktop.data.opening import open_trace
from desktop.data.presence import Structure, structure
from desktop.data.store import TraceStore, open_store
from desktop.data.utilization import build
from desktop.errors import DesktopError
from tests.programs.catalogue import DEVELOPMENT, HELD_BACK
from tests.programs.later import LATER
from tests.programs.phased.known import DATA, taken
from tests.programs.simulated import Program, simulate, write
from tests.programs.unseen import UNSEEN

#: A boundary is hit by a breakpoint within this part of the run.
TOLERANCE = 0.01
NOISE = (0.02, 0.1, 0.3)


@dataclass(frozen=True, eq=False)
class Case:
    """A run with known boundaries (seconds since its start)."""

    name: str
    curve: StepCurve
    swept: Sweep
    today: tuple[float, ...]
    made: Structure
    truth: tuple[float, ...]

    def known(self) -> Landmarks:
        return self.made.landmarks(self.curve)


def score(found: Iterable[float], truth: Sequence[float], span: float, tolerance: float = TOLERANCE):
    """Boundaries hit, each by a breakpoint of its own, and breakpoints that hit none."""
    left, hits = list(found), 0
    for t in truth:
        near = [f for f in left if abs(f - t) <= tolerance * span]
        if near:
            hits += 1
            left.remove(min(near, key=lambda f: abs(f - t)))
    return hits, len(left)


def case(name: str, store: TraceStore, truth: Sequence[float]) -> Case:
    use = build(store)
    curve = use.curve()
    swept, suggestion = search(curve, "mixed")
    today = tuple(swept.fit(suggestion.n).breaks[1:-1].tolist())
    return Case(name, curve, swept, today, structure(store, use), tuple(truth))


def programs(
    which: dict[str, tuple[Program, int]], folder: Path, noise: Sequence[float] = NOISE, first: int = 1
) -> Iterator[Case]:
    """The programs, each once with each level of noise; `first`: of the seeds."""
    for name, (program, ranks) in which.items():
        for seed, level in enumerate(noise, first):
            run = simulate(program, ranks, level, seed, name)
            with open_store(write(run, folder / f"{name}-{seed}.h5")) as store:
                yield case(f"{name}, noise {level:g}", store, [t for _, t in run.truth])


def recorded(folder: Path, names: Sequence[str] = ("*",)) -> Iterator[Case]:
    """Real runs of `tests/programs/phased`, which told their boundaries themselves."""
    for archive in sorted({file for name in names for file in DATA.glob(f"{name}.tar.xz")}):
        place, truth = taken(archive, folder)
        with open_trace(place) as store:
            yield case(place.name, store, [t for _, t in truth])


def sets(folder: Path) -> dict[str, Iterator[Case]]:
    """Runs whose phases are known by construction, or that told them; made in the folder."""
    return {
        "Written last": programs(LATER, folder, first=21),
        "Held back from the second change": programs(UNSEEN, folder, first=11),
        "Held back from the first": programs(HELD_BACK, folder),
        "Development": programs(DEVELOPMENT, folder),
        "Real runs that tell their phases": recorded(folder),
    }


#: What EZTrace makes of the life of a process or thread, and of its own end: no phase of the program.
RECORDERS = {"Working", "EZTrace finalize"}


def marked(store: TraceStore) -> list[float]:
    """Boundaries that a trace itself marks: begins and ends (medians) of regions of the program that all
    processors enter equally often, at most eight times, and stay in for a fiftieth of the run or longer. An
    end followed by a begin within a fiftieth is one boundary, at the begin."""
    use = build(store)
    curve, made = use.curve(), structure(store, use)
    rows, span = made.stretches, use.curve().duration
    found: list[tuple[float, bool]] = []
    for what in np.unique(rows.what[rows.what >= 0]).tolist():
        region = made.regions[what]
        if Structure._kind(region)[1] != "program" or region.name in RECORDERS:
            continue
        own = rows.take(rows.what == what).ordered()
        places, count = np.unique(own.where, return_counts=True)
        if places.size < rows.processors or (count != count[0]).any() or count[0] > 8:
            continue
        lasting = np.median(own.end - own.begin)
        if not 0.02 * span <= lasting <= 0.95 * span:
            continue
        for times, begins in ((own.begin, True), (own.end, False)):
            found += [(t, begins) for t in np.median(times.reshape(places.size, -1), axis=0).tolist()]
    inside = sorted((t, begins) for t, begins in found if 0.01 * span < t - curve.start < 0.99 * span)
    kept: list[tuple[float, bool]] = []
    for t, begins in inside:
        if kept and begins and not kept[-1][1] and t - kept[-1][0] < 0.02 * span:
            kept[-1] = t, True
        elif not kept or t - kept[-1][0] > TOLERANCE * span:
            kept.append((t, begins))
    return [t for t, _ in kept]


# ---- rules


def ours(one: Case) -> list[float]:
    found = choose(one.curve, one.swept, one.known())
    return [] if found is None else [b.time_s for b in found.breakpoints]


def today(one: Case) -> list[float]:
    return list(one.today)


def bins(one: Case, count: int = BINS) -> np.ndarray:
    edges = one.curve.edges - one.curve.edges[0]
    total = np.concatenate([[0.0], np.cumsum(one.curve.level * np.diff(edges))])
    return np.diff(np.interp(np.linspace(0, edges[-1], count + 1), edges, total)) * (count / edges[-1])


def pelt(one: Case) -> list[float]:
    """PELT of ruptures on 256 bin means, cost l2, penalty by BIC with the noise of the first differences."""
    import ruptures

    y = bins(one, 256)
    noise = max(np.median(np.abs(np.diff(y))) / 0.6745 / np.sqrt(2), 1e-3)
    found = ruptures.Pelt(model="l2", min_size=2, jump=1).fit(y).predict(pen=2 * np.log(y.size) * noise**2)
    return [one.curve.start + k / y.size * one.curve.duration for k in found[:-1]]


def binseg(one: Case) -> list[float]:
    """Binary segmentation of ruptures, the same cost and penalty."""
    import ruptures

    y = bins(one, 256)
    noise = max(np.median(np.abs(np.diff(y))) / 0.6745 / np.sqrt(2), 1e-3)
    found = ruptures.Binseg(model="l2", min_size=2, jump=1).fit(y).predict(pen=2 * np.log(y.size) * noise**2)
    return [one.curve.start + k / y.size * one.curve.duration for k in found[:-1]]


def h3(one: Case) -> list[float]:
    """Rule H3: median k-th begins and ends of what is entered at most 32 times, equally often, by at least
    half of the processors, merged within 1 % of the run; eliminated backward by BIC on linear pieces with the
    residual's autocorrelation; then breakpoints of today's fit, snapped within 5 % of the run to candidates,
    while the criterion falls."""
    rows, span, start = one.made.stretches.ordered(), one.curve.duration, one.curve.start
    times: list[float] = []
    for what in np.unique(rows.what).tolist():
        own = rows.take(rows.what == what)
        places, count = np.unique(own.where, return_counts=True)
        if 2 * places.size < rows.processors or (count != count[0]).any() or count[0] > 32:
            continue
        for x in (own.begin, own.end):
            times += np.median(x.reshape(places.size, -1), axis=0).tolist()
    candidates: list[float] = []
    for t in sorted(times):
        if 0.01 * span < t - start < 0.99 * span and (not candidates or t - candidates[-1] > 0.01 * span):
            candidates.append(t)
    y = bins(one)
    x = np.arange(y.size) + 0.5

    @cache
    def piece(a: int, b: int) -> tuple[float, ...]:
        """What is left of the curve between two bins."""
        if b - a < 3:
            return tuple((y[a:b] - y[a:b].mean()).tolist())
        return tuple((y[a:b] - np.polyval(np.polyfit(x[a:b], y[a:b], 1), x[a:b])).tolist())

    @cache
    def cost(a: int, b: int) -> float:
        return float(np.square(piece(a, b)).sum())

    def edges(breaks: Sequence[float]) -> list[int]:
        return sorted({0, y.size, *(round((t - start) / span * y.size) for t in breaks)})

    rest = np.concatenate([piece(a, b) for a, b in pairwise(edges(candidates))])
    power = np.abs(np.fft.rfft(rest, 2 * rest.size)) ** 2
    rho = np.fft.irfft(power)[: rest.size // 4]
    rho = rho / rho[0] if rho[0] > 0 else rho
    below = np.flatnonzero(rho < 0.05)
    together = max(1.0, 1 + 2 * rho[1 : below[0] if below.size else rho.size].sum())
    observations = y.size / together

    def criterion(breaks: Sequence[float]) -> float:
        sse = max(sum(cost(a, b) for a, b in pairwise(edges(breaks))), 1e-12)
        return observations * np.log(sse) + 2 * (len(breaks) + 1) * np.log(observations)

    now = criterion(candidates)
    chosen = list(candidates)
    while chosen:
        tried = [criterion(chosen[:k] + chosen[k + 1 :]) for k in range(len(chosen))]
        k = int(np.argmin(tried))
        if tried[k] >= now:
            break
        now = tried[k]
        del chosen[k]
    snapped = []
    for t in one.today:
        near = min(candidates, key=lambda c: abs(c - t), default=None)
        snapped.append(near if near is not None and abs(near - t) <= 0.05 * span else t)
    while more := [t for t in snapped if t not in chosen]:
        best, t = min((criterion(sorted([*chosen, t])), t) for t in more)
        if best >= now:
            break
        now = best
        chosen = sorted([*chosen, t])
    return chosen


RULES: dict[str, Callable[[Case], list[float]]] = {
    "with structure events (this program)": ours,
    "H3": h3,
    "the curve alone (this program before)": today,
    "ruptures PELT, BIC": pelt,
    "ruptures Binseg, BIC": binseg,
}


def table(cases: Sequence[Case], rules: Iterable[str] = RULES) -> dict[str, tuple[int, int, int]]:
    """Of each rule: boundaries hit, boundaries, false breakpoints."""
    found = {}
    for rule in rules:
        scores = [score(RULES[rule](one), one.truth, one.curve.duration) for one in cases]
        boundaries = sum(len(one.truth) for one in cases)
        found[rule] = sum(h for h, _ in scores), boundaries, sum(f for _, f in scores)
    return found


def _print(title: str, cases: Sequence[Case]) -> None:
    print(f"\n{title}: {len(cases)} runs\n")
    print("| rule | hits | | false | of all found |\n| --- | --- | --- | --- | --- |")
    for rule, (hits, of, false) in table(cases).items():
        every = max(hits + false, 1)
        print(
            f"| {rule} | {hits} of {of} | {100 * hits / of:.0f} % | {false} | {100 * false / every:.0f} % |"
        )


def _same_run(one: Case, other: Case) -> bool:
    """The same run in another format."""
    spans = one.curve.duration, other.curve.duration
    same = one.made.stretches.processors == other.made.stretches.processors
    return same and abs(spans[0] - spans[1]) < 1e-3 * spans[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=Path, help="a folder of traces whose regions mark phases")
    parser.add_argument("--each", action="store_true", help="also every run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for title, made in sets(Path(folder)).items():
            cases = list(made)
            _print(title, cases)
            if options.each:
                for one in cases:
                    found = ours(one)
                    hits, false = score(found, one.truth, one.curve.duration)
                    parts = [
                        " ".join(f"{100 * (t - one.curve.start) / one.curve.duration:.1f}" for t in times)
                        for times in (one.truth, found)
                    ]
                    print(f"{one.name}: {hits} of {len(one.truth)}, {false} false; {' | '.join(parts)}")
        if options.traces:
            cases = []
            for path in sorted(options.traces.rglob("*")):
                if path.is_file() and path.suffix in (".gz", ".prv") and "damaged" not in path.name:
                    try:
                        with open_trace(path) as store:
                            truth = marked(store)
                            if not truth:
                                continue
                            one = case(path.name, store, truth)
                            if any(_same_run(one, other) for other in cases):
                                print(f"{path.name}: a run that is here already")
                                continue
                            cases.append(one)
                            print(f"{path.name}: {len(truth)} boundaries")
                    except DesktopError as error:
                        print(f"{path.name}: {error}")
            _print("Traces whose regions mark phases", cases)


if __name__ == "__main__":
    main()

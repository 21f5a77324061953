"""Phases that are suggested while a run goes on, against steps that are known: ``python -m
tests.benchmarks.watched_phases`` prints the table of ``resources/docs/getting-traces.md``, with
``--programs`` hits on the programs and real runs of `tests.benchmarks.phase_choice`, seen to their ends.

Programs of `tests.programs.steps` are simulated and cut off at several instants. A step counts from when 4 %
of what is seen lie behind its beginning; a breakpoint hits within 2 % of what is seen.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from desktop.core.averages import changes
from desktop.core.curve import StepCurve
from desktop.core.phases import sweep
from desktop.core.selection import SWEEP, search, suggest
from desktop.data.presence import structure
from desktop.data.store import open_store
from desktop.data.utilization import build
from tests.benchmarks.phase_choice import score, sets
from tests.programs.simulated import simulate, write
from tests.programs.steps import KINDS, stepped

STEPS = (1, 2, 3, 5, 8, 10, 15)
INSTANTS = (0.15, 0.3, 0.5, 0.75, 1.0)
#: What has to lie behind a step for it to be known, and how near a breakpoint is, as parts of what is seen.
LEAST, NEAR = 0.04, 0.02
#: Columns of `GrowingActivities`: the narrowest bin (ns), and how many at most.
BIN, BINS = 1 << 12, 1 << 14


@dataclass(frozen=True, eq=False)
class Case:
    """A program of known steps: its curve, when they end (s), and the breakpoints of the opened trace."""

    kind: str
    curve: StepCurve
    truth: tuple[float, ...]
    opened: tuple[float, ...]


def grown(curve: StepCurve, until: float) -> StepCurve:
    """What a run that goes on knows of its curve until an instant (s): means of equal bins."""
    width = BIN
    while width * BINS < until * 1e9:
        width *= 2
    edges = np.arange(int(until * 1e9) // width + 1) * float(width)
    known = (curve.edges - curve.edges[0]) * curve.unit * 1e9
    total = np.concatenate([[0.0], np.cumsum(curve.level * np.diff(known))])
    return StepCurve(edges, np.diff(np.interp(edges, known, total)) / width, curve.capacity, 1e-9)


def cases(seed: int) -> Iterator[Case]:
    """Programs of all kinds and numbers of steps, of 8 to 64 ranks and 5 to 60 s."""
    random = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            for steps in STEPS:
                if steps == 1 and kind in ("amplitude", "period"):
                    continue
                ranks = int(random.choice([8, 16, 32, 64]))
                seconds = float(random.choice([5.0, 15.0, 30.0, 60.0] if ranks < 32 else [5.0, 15.0]))
                seconds = max(seconds, 15.0) if steps > 5 else seconds
                noise, period = (float(random.choice(v)) for v in ((0.02, 0.1, 0.2), (0.02, 0.05, 0.1, 0.15)))
                first = int(random.integers(15))
                program = stepped(kind, steps, seconds, period, first)
                run = simulate(program, ranks, noise, int(random.integers(1 << 30)))
                with open_store(write(run, Path(folder) / f"{kind}-{steps}.h5")) as store:
                    use = build(store)
                    curve = use.curve()
                    events = structure(store, use).landmarks(curve)
                    sweep, best = search(curve, "mixed", landmarks=events)
                    breaks = best.fit(curve, sweep).breaks[1:-1] - curve.start
                yield Case(kind, curve, tuple(t for _, t in run.truth), tuple(breaks.tolist()))


def least_error(curve: StepCurve) -> list[float]:
    """The number of phases that a sweep of fits of least error speaks for."""
    swept = sweep(curve, "mixed", SWEEP)
    return swept.fit(suggest(swept).n).breaks[1:-1].tolist()


def pelt(curve: StepCurve) -> list[float]:
    """PELT of ruptures on 256 bin means, cost l2, penalty by BIC with the noise of the first differences."""
    import ruptures

    y = curve.means(256)
    noise = max(np.median(np.abs(np.diff(y))) / 0.6745 / np.sqrt(2), 1e-3)
    found = ruptures.Pelt(model="l2", min_size=2, jump=1).fit(y).predict(pen=2 * np.log(y.size) * noise**2)
    return [k / y.size * curve.duration for k in found[:-1]]


RULES: dict[str, Callable[[StepCurve], list[float]]] = {
    "averages (this program)": lambda curve: changes(curve, SWEEP).tolist(),
    "fits of least error (before)": least_error,
    "ruptures PELT, BIC": pelt,
}


def scored(found: list[float], truth: tuple[float, ...], until: float) -> np.ndarray:
    """(6,) cases, right numbers, numbers off by at most one, steps hit, steps, false breakpoints."""
    unsure = [t for t in truth if until * (1 - LEAST) <= t < until]
    left = [t for t in found if all(abs(t - u) > NEAR * until for u in unsure)]
    known, hits = [t for t in truth if t < until * (1 - LEAST)], 0
    off = abs(len(left) - len(known))
    for t in known:
        near = [f for f in left if abs(f - t) <= NEAR * until]
        if near:
            left.remove(min(near, key=lambda f: abs(f - t)))
            hits += 1
    return np.array([1, off == 0, off <= 1, hits, len(known), len(left)])


def of_programs() -> None:
    found = dict.fromkeys(RULES, (0, 0))
    runs = boundaries = 0
    with tempfile.TemporaryDirectory() as folder:
        for one in chain.from_iterable(sets(Path(folder)).values()):
            runs, boundaries = runs + 1, boundaries + len(one.truth)
            curve = grown(one.curve, one.curve.duration)
            for name, rule in RULES.items():
                hits, false = score(rule(curve), one.truth, one.curve.duration, NEAR)
                found[name] = found[name][0] + hits, found[name][1] + false
    print(f"{runs} runs, {boundaries} boundaries")
    for name, (hits, false) in found.items():
        print(f"{name}: {hits} hit, {false} false")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--programs", action="store_true")
    options = parser.parse_args()
    if options.programs:
        of_programs()
        return
    scores: dict[tuple[str, str], np.ndarray] = {}
    for one in cases(options.seed):
        for instant in INSTANTS:
            until = instant * one.curve.duration
            curve = grown(one.curve, until)
            found = {name: rule(curve) for name, rule in RULES.items()}
            if instant == 1.0:
                found["opened as a trace, at the end"] = list(one.opened)
            for name, breaks in found.items():
                at = name, one.kind
                scores[at] = scores.get(at, np.zeros(6, int)) + scored(breaks, one.truth, until)
    print("| suggested by | steps | right number | off by at most one | steps hit | false |")
    print("| --- | --- | --- | --- | --- | --- |")
    for (name, kind), (many, right, near, hits, steps, false) in sorted(scores.items()):
        print(f"| {name} | {kind} | {right} of {many} | {near} | {hits} of {steps} | {false} |")


if __name__ == "__main__":
    main()

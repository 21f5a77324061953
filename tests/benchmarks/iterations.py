"""Iterations found against known truth: ``python -m tests.benchmarks.iterations [--traces FOLDER]``.

Simulated programs on 4 to 64 ranks whose iterations are known by construction, and programs that have none,
each written as its events at 8 of its locations and its utilization curve. Prints Markdown tables: how many
were found within 0.5 % of the true period, with the right number of iterations, how many were invented; what
is found in traces; and the time for a location of many events.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from desktop.core.curve import StepCurve
from desktop.core.iterations import Repeat, Verdict, in_curve, in_events, judge

Floats = NDArray[np.float64]
WITHIN = 0.005


@dataclass
class Program:
    """A run being made up: `now` is each rank's time, `events` what it entered when."""

    ranks: int
    rng: np.random.Generator
    names: dict[str, int] = field(default_factory=dict)
    begins: list[Floats] = field(default_factory=list)  # of iterations, at each rank
    inner: list[Floats] = field(default_factory=list)
    last: Floats | None = None
    strange: set[int] = field(default_factory=set)  # odd ones by construction

    def __post_init__(self) -> None:
        self.now = self.rng.uniform(0, 0.01, self.ranks)
        self.events: list[list[tuple[float, int]]] = [[] for _ in range(self.ranks)]
        self.busy: list[tuple[Floats, Floats]] = []

    def enter(self, name: str, who: NDArray[np.int64] | None = None) -> None:
        number = self.names.setdefault(name, len(self.names))
        for rank in range(self.ranks) if who is None else who.tolist():
            self.events[rank].append((float(self.now[rank]), number))
            self.now[rank] += 1e-6

    def compute(self, seconds: float | Floats, noise: float, name: str = "") -> None:
        if name:
            self.enter(name)
        spent = seconds * np.exp(self.rng.normal(0, noise, self.ranks)) if noise else seconds + 0 * self.now
        self.busy.append((self.now.copy(), self.now + spent))
        self.now = self.now + spent

    def exchange(self) -> None:
        """With both neighbours."""
        for name in ("Irecv", "Irecv", "Isend", "Isend", "Waitall"):
            self.enter(name)
        there = np.pad(self.now, 1, mode="edge")
        self.now = np.maximum(np.maximum(there[:-2], there[1:-1]), there[2:]) + 2e-5

    def together(self, name: str) -> None:
        self.enter(name)
        self.now = np.full(self.ranks, self.now.max() + 3e-5) + self.rng.uniform(0, 1e-6, self.ranks)

    def iteration(self) -> None:
        self.begins.append(self.now.copy())

    def done(self) -> None:
        self.last = self.now.copy()

    @property
    def period(self) -> float:
        """Mean over the iterations that are not odd, of the median over ranks."""
        at = np.median(np.array([*self.begins, self.last]), axis=1)
        return float(np.delete(np.diff(at), sorted(self.strange)).mean())

    def curve(self) -> StepCurve:
        begin, end = (np.concatenate([one[k] for one in self.busy]) for k in (0, 1))
        times = np.concatenate([begin, end, [0.0, float(self.now.max())]])
        change = np.concatenate([np.ones(begin.size), -np.ones(end.size), [0.0, 0.0]])
        edges, where = np.unique(times, return_inverse=True)
        level = np.cumsum(np.bincount(where, change))[:-1]
        return StepCurve(edges, np.round(level), float(self.ranks))

    def found(self) -> list[list[Repeat]]:
        end = float(self.now.max())
        result = []
        for rank in np.unique(np.linspace(0, self.ranks - 1, 8).astype(int)).tolist():
            at = self.events[rank]
            symbol = np.array([number for _, number in at], np.int64)
            result.append(in_events(symbol, np.array([t for t, _ in at]), 0.0, end))
        return result

    def verdict(self) -> Verdict:
        return judge(self.found(), self.curve())


# --- programs that iterate ---


def _ends(p: Program, steps: int, body: Callable[[int], None]) -> None:
    """A prologue, the loop and an epilogue."""
    p.compute(0.02, 0.3, "init")
    p.together("Bcast")
    p.compute(0.03, 0.2, "read")
    p.together("Barrier")
    for step in range(steps):
        p.iteration()
        body(step)
    p.done()
    p.together("Barrier")
    p.compute(0.02, 0.2, "write")
    p.together("Finalize")


def plain(p: Program) -> None:
    def body(step: int) -> None:
        p.compute(0.004, 0.05)
        p.exchange()

    _ends(p, 60, body)


def noisy(p: Program) -> None:
    def body(step: int) -> None:
        p.compute(0.004, 0.15)
        p.together("Allreduce")

    _ends(p, 80, body)


def drifting(p: Program) -> None:
    def body(step: int) -> None:
        p.compute(0.004 * (1 + step / 60), 0.05, "solve")
        p.exchange()
        p.compute(0.001, 0.05, "update")

    _ends(p, 60, body)


def nested(p: Program) -> None:
    def body(step: int) -> None:
        p.compute(0.003, 0.05, "assemble")
        for _ in range(8):
            p.inner.append(p.now.copy())
            p.compute(0.001, 0.05)
            p.exchange()
            p.together("Allreduce")
        p.compute(0.002, 0.05, "advance")

    _ends(p, 20, body)


def converging(p: Program) -> None:
    """The inner solver takes another number of steps each time."""

    def body(step: int) -> None:
        p.compute(0.003, 0.05, "assemble")
        p.together("Bcast")
        for _ in range(int(p.rng.integers(8, 13))):
            p.compute(0.001, 0.05)
            p.exchange()
            p.together("Allreduce")
        p.compute(0.002, 0.05, "advance")

    _ends(p, 30, body)


def odd(p: Program) -> None:
    p.strange = set(p.rng.choice(np.arange(2, 58), 4, replace=False).tolist())

    def body(step: int) -> None:
        p.compute(0.004 * (3 if step in p.strange else 1), 0.02)
        p.exchange()
        if step in p.strange:
            p.compute(0.004, 0.1, "checkpoint")

    _ends(p, 60, body)


def checkpoints(p: Program) -> None:
    def body(step: int) -> None:
        p.compute(0.004, 0.03)
        p.exchange()
        if step % 10 == 9:
            p.strange.add(step)
            p.compute(0.006, 0.1, "checkpoint")

    _ends(p, 100, body)


def few(p: Program) -> None:
    def body(step: int) -> None:
        p.compute(0.02, 0.03, "step one")
        p.together("Alltoall")
        p.compute(0.01, 0.03, "step two")
        p.exchange()

    _ends(p, 5, body)


def sweeps(p: Program) -> None:
    """Wavefronts to the last rank and back: each waits for the one before it."""

    def body(step: int) -> None:
        for order in (range(1, p.ranks), range(p.ranks - 2, -1, -1)):
            p.enter("Recv")
            for rank in order:
                p.now[rank] = max(p.now[rank], p.now[rank - order.step] + 0.0003)
            p.compute(0.003, 0.05)
            p.enter("Send")
        p.compute(0.001, 0.05, "flux")

    _ends(p, 50, body)


def long_run(p: Program) -> None:
    def body(step: int) -> None:
        p.compute(0.001, 0.1)
        p.exchange()
        p.compute(0.0005, 0.1, "boundary")

    _ends(p, 1000 if p.ranks <= 16 else 300, body)


# --- programs that do not ---


def farm(p: Program) -> None:
    """A master and workers with tasks of random length."""
    queue = p.rng.exponential(0.004, 40 * p.ranks)
    p.compute(0.01, 0.3, "init")
    for task in queue.tolist():
        rank = 1 + int(np.argmin(p.now[1:]))
        who = np.array([rank])
        p.enter("Recv", who)
        begin = p.now[rank]
        p.now[rank] += task
        p.busy.append((np.array([begin]), np.array([p.now[rank]])))
        p.enter("Send", who)
        p.now[0] = max(p.now[0], p.now[rank])
        p.enter("Recv", np.array([0]))
        p.enter("Send", np.array([0]))


def stealing(p: Program) -> None:
    for _ in range(60 * p.ranks):
        rank = int(np.argmin(p.now))
        begin = p.now[rank]
        name = ("task", "task", "steal", "Iprobe", "split")[int(p.rng.integers(5))]
        p.enter(name, np.array([rank]))
        p.now[rank] += p.rng.pareto(1.5) * 0.001
        if name in ("task", "split"):
            p.busy.append((np.array([begin]), np.array([p.now[rank]])))


def shuffled(p: Program) -> None:
    """All ranks together, regions in random order and of random length."""
    for name in p.rng.integers(0, 6, 120).tolist():
        p.compute(float(p.rng.exponential(0.004)), 0.1, f"region {'abcdef'[name]}")
        p.together(("Allreduce", "Bcast", "Alltoall")[int(p.rng.integers(3))])


def coin(p: Program) -> None:
    """Two regions only, in random order, of equal length."""
    for name in p.rng.integers(0, 2, 150).tolist():
        p.compute(0.003, 0.05, "heads" if name else "tails")
        p.together("Barrier" if p.rng.random() < 0.3 else "Reduce")
        p.compute(float(p.rng.exponential(0.004)), 0.05)


def divide(p: Program) -> None:
    """Divide and conquer, the pieces unequal."""

    def part(size: float, depth: int) -> None:
        if size < 0.002 or depth > 9:
            p.compute(size, 0.1, "leaf")
            return
        p.compute(0.1 * size, 0.1, "split")
        cut = float(p.rng.uniform(0.15, 0.85))
        part(0.9 * size * cut, depth + 1)
        part(0.9 * size * (1 - cut), depth + 1)
        p.together("Gather")

    part(0.3, 0)


def once(p: Program) -> None:
    """A chain of phases, each there once."""
    for phase in range(14):
        p.compute(float(p.rng.exponential(0.02)), 0.2, f"phase {'abcdefghijklmn'[phase]}")
        if p.rng.random() < 0.5:
            p.exchange()
        else:
            p.together(("Bcast", "Reduce", "Allgather")[int(p.rng.integers(3))])


def irregular(p: Program) -> None:
    """Each rank for itself, with random calls."""
    for rank in range(p.ranks):
        while p.now[rank] < 0.4:
            who = np.array([rank])
            p.enter(f"f{'abcdefgh'[int(p.rng.integers(8))]}", who)
            begin = p.now[rank]
            p.now[rank] += p.rng.exponential(0.003)
            p.busy.append((np.array([begin]), np.array([p.now[rank]])))
            p.enter(("Send", "Recv", "Wait")[int(p.rng.integers(3))], who)
            p.now[rank] += p.rng.exponential(0.001)


def elimination(p: Program) -> None:
    """Requests of random kinds answered as they come: a server."""
    for _ in range(200):
        kind = int(p.rng.zipf(1.7))
        p.compute(float(p.rng.lognormal(-6, 0.9)), 0.2, f"request {'abcdefghij'[min(kind, 9)]}")
        if p.rng.random() < 0.2:
            p.together("Commit")


ITERATING = (plain, noisy, drifting, nested, converging, odd, checkpoints, few, sweeps, long_run)
APERIODIC = (farm, stealing, shuffled, coin, divide, once, irregular, elimination)


def made(kind: Callable[[Program], None], ranks: int, seed: int) -> Program:
    program = Program(ranks, np.random.default_rng([seed, ranks]))
    kind(program)
    return program


def random_curve(kind: int, seed: int) -> StepCurve:
    """A curve without a period: a random walk, jumps, bursts, a smoothed noise."""
    rng = np.random.default_rng([kind, seed])
    n = int(rng.integers(200, 5000))
    edges = np.concatenate([[0.0], np.cumsum(rng.exponential(1.0, n))])
    level = (
        lambda: np.abs(np.cumsum(rng.normal(0, 1, n))),
        lambda: rng.uniform(0, 64, n // 20 + 1).repeat(20)[:n],
        lambda: 64.0 * (np.cumsum(rng.random(n) < 0.03) % 2),
        lambda: np.abs(np.convolve(rng.normal(0, 1, n + 40), np.hanning(40), "same")[:n]) * 20,
    )[kind]()
    return StepCurve(edges, np.round(level))


def nearest(verdict: Verdict, period: float) -> Repeat | None:
    """The loop whose period is nearest to the true one."""
    loops = [loop.repeat for loop in verdict.loops]
    return min(loops, key=lambda one: abs(np.log(one.period / period)), default=None)


def table(seeds: int) -> None:
    print("| program | runs | within 0.5 % | worst | right count | curve alone within 0.5 % |")
    print("| --- | --- | --- | --- | --- | --- |")
    for kind in ITERATING:
        off, counted, alone, runs = [], 0, 0, 0
        for ranks in (4, 16, 64):
            for seed in range(seeds):
                program = made(kind, ranks, seed)
                best = nearest(program.verdict(), program.period)
                off.append(np.inf if best is None else abs(best.period / program.period - 1))
                counted += best is not None and best.count == len(program.begins)
                curve = in_curve(program.curve())
                alone += curve is not None and abs(curve.period / program.period - 1) <= WITHIN
                runs += 1
        good = sum(d <= WITHIN for d in off)
        print(f"| {kind.__name__} | {runs} | {good} | {100 * max(off):.3g} % | {counted} | {alone} |")
    print("\n| program without iterations | runs | invented |\n| --- | --- | --- |")
    for kind in APERIODIC:
        wrong = [
            (ranks, seed)
            for ranks in (4, 16, 64)
            for seed in range(seeds)
            if made(kind, ranks, seed).verdict().loops
        ]
        print(f"| {kind.__name__} | {3 * seeds} | {len(wrong)} {wrong or ''} |")
    for kind in range(4):
        wrong_curves = [seed for seed in range(5 * seeds) if in_curve(random_curve(kind, seed)) is not None]
        print(f"| curve {kind} | {5 * seeds} | {len(wrong_curves)} {wrong_curves or ''} |")


def traces(folder: Path) -> None:
    from desktop.data.iterations import find
    from desktop.data.opening import open_trace
    from desktop.data.utilization import build
    from desktop.errors import DesktopError

    print("\n| trace | loops (period in s x count, by) | why |\n| --- | --- | --- |")
    for path in sorted(
        p for p in folder.rglob("*") if p.name.endswith((".tar.gz", ".tar.xz", ".prv", ".trf"))
    ):
        try:
            with open_trace(path) as store:
                result = find(store, build(store))
        except DesktopError:
            continue
        loops = "; ".join(
            f"{one.loop.period:.6g} x {one.loop.count}, {one.by}, from {one.region or 'curve'}"
            for one in result.levels
        )
        print(f"| {path.name} | {loops or 'none'} | {result.reason} |")


def speed() -> None:
    """A location of 1.25e7 enters (1e8 events on 4 locations), as `desktop.data.iterations` hands it on."""
    rng = np.random.default_rng(3)
    body = np.array([0, 1, 1, 2, 2, 3, 4, 5], np.int64)
    symbol = np.tile(body, (1 << 20) // body.size)
    times = np.cumsum(rng.exponential(1e-5, symbol.size))
    in_events(symbol[:1000], times[:1000], 0.0, float(times[999]))
    begin = time.process_time()
    found = in_events(symbol, times, 0.0, float(times[-1]))
    print(f"\n{symbol.size} symbols of a location: {time.process_time() - begin:.2f} s, {len(found)} loops")


if __name__ == "__main__":
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--seeds", type=int, default=5)
    words.add_argument("--traces", type=Path)
    asked = words.parse_args()
    table(asked.seeds)
    if asked.traces:
        traces(asked.traces)
    speed()

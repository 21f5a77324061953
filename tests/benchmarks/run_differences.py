"""What is named first as the reason why a run takes longer, against changes that are known by construction.

``python -m tests.benchmarks.run_differences`` prints the table of ``resources/docs/compare.md``, with
``--again`` that of other seeds, ranks and sizes of changes. Every program of `tests.programs` runs on the
simulated machine as it is and with one change: a region's work takes longer on all ranks, or on one; reading
and writing take longer; messages and collectives move fewer bytes in a second. Counted are changes that take
at least `SEEN` longer without noise. Beside it stands what a difference of profiles names: the region whose
exclusive time has grown most.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from desktop.core.accounts import Account
from desktop.core.run_difference import CostDifference, cost_differences
from desktop.data.root_causes import costs
from desktop.data.statistics import Statistics
from desktop.data.store import open_store
from desktop.data.utilization import build
from tests.programs import simulated
from tests.programs.catalogue import DEVELOPMENT, HELD_BACK
from tests.programs.later import LATER
from tests.programs.simulated import Program, Steps, simulate, write
from tests.programs.unseen import UNSEEN

#: Changes of durations without noise from this part on are counted.
SEEN = 0.05
KINDS = ("region", "rank", "I/O", "network")
#: How many times longer a region, a rank, I/O and a byte take: where the rule was made, and again with seeds
#: above `AGAIN`.
SIZES, AGAIN = ((1.3, 1.6, 4.0, 30.0), (1.15, 2.2, 3.0, 50.0)), 50


@dataclass(frozen=True)
class Truth:
    """The change: of the work in a `region` ("main": outside of all), on one rank (-1: on all)."""

    kind: str
    region: str = ""
    rank: int = -1

    def named_by(self, first: CostDifference) -> bool:
        """Whether the first cause is this change."""
        if self.kind == "region":
            return (first.account, first.region) == (Account.COMPUTING, self.region)
        if self.kind == "rank":
            return first.account == Account.COMPUTING and first.location == f"rank {self.rank}"
        return first.account == (Account.IO if self.kind == "I/O" else Account.MOVING)

    def in_profile(self, region: str) -> bool:
        """Whether the region whose time has grown most belongs to this change."""
        if self.kind in ("region", "rank"):
            return region == self.region
        return region.startswith("f") if self.kind == "I/O" else region.startswith("MPI_")


def slower(program: Program, truth: Truth, times: float) -> Program:
    """The program with more work, or longer input and output."""

    def changed(rank: int, ranks: int, rng: np.random.Generator) -> Steps:
        steps, answer, stack = program(rank, ranks, rng), None, ["main"]
        while True:
            try:
                step = steps.send(answer)
            except StopIteration:
                return
            if step[0] == "in":
                stack.append(step[1])
            elif step[0] == "out":
                stack.pop()
            mine = truth.rank in (-1, rank)
            if step[0] == "work" and mine and truth.region == stack[-1]:
                step = ("work", step[1] * times)
            elif step[0] == "io" and truth.kind == "I/O":
                step = ("io", step[1], step[2] * times)
            answer = yield step

    return changed


def main_region(program: Program, ranks: int, seed: int) -> str:
    """The region with most work."""
    run = simulate(program, ranks, 0.0, seed, spikes=0.0)
    time: Counter[str] = Counter()
    for rows in run.events:
        stack: list[str] = []
        for (at, leaves, name), (after, _, _) in zip(rows, [*rows[1:], rows[-1]], strict=True):
            if leaves:
                stack.pop()
            else:
                stack.append(name)
            if stack and not stack[-1].startswith(("MPI_", "f")):
                time[stack[-1]] += after - at
    return max(time, key=lambda name: time[name])


def changes(program: Program, ranks: int, seed: int) -> Iterator[tuple[Truth, Program, float]]:
    """Changes, with the changed program, and how many times longer a byte travels."""
    region = main_region(program, ranks, seed)
    region_times, rank_times, io_times, per_byte = SIZES[seed > AGAIN]
    rank = ranks // 2 if seed <= AGAIN else ranks // 3
    yield (truth := Truth("region", region)), slower(program, truth, region_times), 1.0
    yield (truth := Truth("rank", region, rank)), slower(program, truth, rank_times), 1.0
    yield (truth := Truth("I/O")), slower(program, truth, io_times), 1.0
    yield Truth("network"), program, per_byte


@contextmanager
def network(per_byte: float) -> Iterator[None]:
    """A simulated machine on which a byte travels so many times longer."""
    was = simulated.PER_BYTE
    simulated.PER_BYTE = was * per_byte
    try:
        yield
    finally:
        simulated.PER_BYTE = was


def length(program: Program, ranks: int, seed: int, per_byte: float = 1.0) -> float:
    """Duration without noise."""
    with network(per_byte):
        return simulate(program, ranks, 0.0, seed, spikes=0.0).duration


def measured(program: Program, ranks: int, noise: float, seed: int, per_byte: float, folder: Path):
    """Duration, costs and exclusive times by region of a run."""
    with network(per_byte):
        run = simulate(program, ranks, noise, seed)
    path = write(run, folder / "run.h5", collectives=True)
    try:
        with open_store(path) as store:
            use = build(store)
            curve = use.curve()
            span = curve.start, curve.start + curve.duration
            statistics = Statistics(store)
            flat = statistics.flat(statistics.ranges([span], use)[0], use)
            return (
                curve.duration,
                costs(statistics, use, span),
                Counter({row.name: row.exclusive_s for row in flat}),
            )
    finally:
        path.unlink()


def outcomes(
    programs: dict[str, tuple[Program, int]], noise: Sequence[float], folder: Path, first: int = 1
) -> Iterator[tuple[str, float, Truth, CostDifference, bool, bool]]:
    """Program, noise, change, the first cause, and whether that and the profile are right."""
    for name, (program, ranks) in programs.items():
        for seed, level in enumerate(noise, first):
            before = measured(program, ranks, level, seed, 1.0, folder)
            for truth, changed, per_byte in changes(program, ranks, seed):
                if length(changed, ranks, seed, per_byte) < (1 + SEEN) * length(program, ranks, seed):
                    continue
                after = measured(changed, ranks, level, seed + 100, per_byte, folder)
                parts = cost_differences(after[1], before[1])
                assert abs(sum(one.total_s for one in parts) - (after[0] - before[0])) < 1e-6
                cause = max(parts, key=lambda one: one.total_s)
                grown = after[2].copy()
                grown.subtract(before[2])
                region = max(grown, key=lambda one: grown[one])
                yield name, level, truth, cause, truth.named_by(cause), truth.in_profile(region)


def main() -> None:
    programs = DEVELOPMENT | HELD_BACK | UNSEEN | LATER
    begin = AGAIN + 1 if "--again" in sys.argv else 1
    counts: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name, level, truth, cause, right, profile in outcomes(programs, (0.02, 0.1), Path(folder), begin):
            counts[truth.kind, "runs"] += 1
            counts[truth.kind, "right"] += right
            counts[truth.kind, "profile"] += profile
            if not right:
                print(f"{name}, noise {level:g}: {truth}, {cause}", flush=True)
    print("| change | runs | first cause right | region whose time has grown most right |")
    print("| --- | ---: | ---: | ---: |")
    for kind in KINDS:
        print(f"| {kind} | {counts[kind, 'runs']} | {counts[kind, 'right']} | {counts[kind, 'profile']} |")


if __name__ == "__main__":
    main()

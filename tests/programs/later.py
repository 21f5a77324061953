"""Programs written after `tests.programs.unseen` had been looked at, and before the rule of
`desktop.core.choice` was run on any of these. Marks are as there.
"""

from __future__ import annotations

from tests.programs.catalogue import Chance, halo
from tests.programs.simulated import Program, Steps
from tests.programs.unseen import grid


def forecast(rank: int, ranks: int, rng: Chance) -> Steps:
    """Three cycles: an ensemble runs in groups of ranks, observations are gathered, a quarter analyses."""
    for cycle in range(3):
        yield ("in", "members")
        for _ in range(30):
            yield ("work", 0.03 * (1 + 0.1 * (rank % 3)))
            yield from halo(rank, ranks, 20_000)
        yield ("out", "members")
        yield ("all", "Gather", 2_000_000)
        yield ("mark", f"members|analysis {cycle}", "median")
        yield ("in", "analysis")
        if rank < ranks // 4:
            for _ in range(8):
                yield ("work", 0.05)
        yield ("all", "Bcast", 4_000_000)
        yield ("out", "analysis")
        if cycle < 2:
            yield ("mark", f"analysis|members {cycle}", "median")


def refilled(rank: int, ranks: int, rng: Chance) -> Steps:
    """A pipeline that runs empty and is filled again with larger items; only MPI is traced."""
    for batch, (items, grain, size) in enumerate(((60, 0.02, 5_000), (45, 0.03, 60_000))):
        for item in range(items):
            if rank:
                yield ("recv", rank - 1, batch)
            if item == 0:
                yield ("mark", f"fill|steady {batch}", "last")
            yield ("work", grain)
            if rank < ranks - 1:
                yield ("send", rank + 1, size, batch)
            if item == items - 1:
                yield ("mark", f"steady|drain {batch}", "first")
        yield ("all", "Barrier", 0)
        if batch == 0:
            yield ("mark", "drain|fill", "median")


def parareal(rank: int, ranks: int, rng: Chance) -> Steps:
    """Parallel in time: a coarse sweep goes from rank to rank, all refine; three times."""
    for turn in range(3):
        yield ("in", "coarse")
        if rank:
            yield ("recv", rank - 1, turn)
        yield ("work", 0.03)
        if rank < ranks - 1:
            yield ("send", rank + 1, 80_000, turn)
        yield ("all", "Barrier", 0)
        yield ("out", "coarse")
        yield ("mark", f"coarse|fine {turn}", "median")
        yield ("in", "fine")
        for _ in range(20):
            yield ("work", 0.05)
        yield ("all", "Allreduce", 8)
        yield ("out", "fine")
        if turn < 2:
            yield ("mark", f"fine|coarse {turn}", "median")


def contact(rank: int, ranks: int, rng: Chance) -> Steps:
    """Two bodies fly, touch (an eighth of the ranks has four times the work), are divided anew; only MPI."""
    for _ in range(60):
        yield from grid(rank, ranks, 6_000)
        yield ("work", 0.02)
        yield ("all", "Allreduce", 8)
    yield ("mark", "fly|touch", "median")
    for _ in range(30):
        yield from grid(rank, ranks, 6_000)
        yield ("work", 0.08 if rank % 8 == 3 else 0.02)
        yield ("all", "Allreduce", 8)
    yield ("mark", "touch|divide", "median")
    for _ in range(3):
        yield ("all", "Alltoall", 8_000_000)
        yield ("work", 0.02)
    yield ("mark", "divide|together", "median")
    for _ in range(50):
        yield from grid(rank, ranks, 6_000)
        yield ("work", 0.035)
        yield ("all", "Allreduce", 8)


def map_reduce(rank: int, ranks: int, rng: Chance) -> Steps:
    """Maps by a master's tasks, a shuffle, reductions on half of the ranks, all write."""
    tasks = 12 * ranks
    sizes = rng.gamma(6.0, 0.01, tasks)
    yield ("in", "map")
    if rank == 0:
        for task in range(tasks + ranks - 1):
            worker = task + 1 if task < ranks - 1 else (yield ("any", 1))[0]
            yield ("send", worker, 500, 2, task)
    else:
        while (task := (yield ("recv", 0, 2))[1]) < tasks:
            yield ("io", "fread", 0.01)
            yield ("work", float(sizes[task]))
            yield ("send", 0, 16, 1)
    yield ("out", "map")
    yield ("mark", "map|shuffle", "median")
    yield ("in", "shuffle")
    for _ in range(12):
        yield ("all", "Alltoall", 1_500_000)
    yield ("out", "shuffle")
    yield ("mark", "shuffle|reduce", "median")
    yield ("in", "reduce")
    if rank % 2 == 0:
        for _ in range(15):
            yield ("work", 0.02)
    yield ("all", "Barrier", 0)
    yield ("out", "reduce")
    yield ("mark", "reduce|write", "median")
    yield ("in", "write")
    for _ in range(4):
        yield ("io", "fwrite", 0.04)
    yield ("out", "write")


def training(rank: int, ranks: int, rng: Chance) -> Steps:
    """Data are loaded, small batches, large batches, an evaluation; only MPI is traced."""
    for _ in range(6):
        yield ("io", "fread", 0.05)
    yield ("all", "Barrier", 0)
    yield ("mark", "load|warm up", "median")
    for _ in range(60):
        yield ("work", 0.01)
        yield ("all", "Allreduce", 4_000_000)
    yield ("mark", "warm up|train", "median")
    for _ in range(60):
        yield ("work", 0.045)
        yield ("all", "Allreduce", 4_000_000)
    yield ("mark", "train|evaluate", "median")
    for _ in range(25):
        yield ("work", 0.03)
    yield ("all", "Reduce", 64)


def tree(rank: int, ranks: int, rng: Chance) -> Steps:
    """Parts go down a binary tree of ranks, are sorted, and are merged on the way up."""
    levels = ranks.bit_length() - 1
    yield ("in", "divide")
    for level in range(levels):
        stride = ranks >> (level + 1)
        if rank % (2 * stride) == 0:
            yield ("work", 0.15 / 2**level)
            yield ("send", rank + stride, 40_000_000 >> level, level)
        elif rank % (2 * stride) == stride:
            yield ("recv", rank - stride, level)
    yield ("out", "divide")
    yield ("mark", "divide|sort", "median")
    yield ("in", "sort")
    for _ in range(20):
        yield ("work", 0.05)
    yield ("out", "sort")
    yield ("mark", "sort|merge", "median")
    yield ("in", "merge")
    for level in reversed(range(levels)):
        stride = ranks >> (level + 1)
        if rank % (2 * stride) == stride:
            yield ("send", rank - stride, 40_000_000 >> level, 100 + level)
        elif rank % (2 * stride) == 0:
            yield ("recv", rank + stride, 100 + level)
            yield ("work", 0.2 / 2**level)
    yield ("all", "Barrier", 0)
    yield ("out", "merge")


def bounds(rank: int, ranks: int, rng: Chance) -> Steps:
    """Branch and bound: one rank opens the root, all search, prove and report; only MPI is traced."""
    yield ("work", 0.25 if rank == 0 else 0.0)
    yield ("all", "Scatter", 200_000)
    yield ("mark", "root|search", "median")
    for _ in range(25):
        yield ("work", float(rng.gamma(3.0, 0.02, ranks)[rank]))
        yield ("all", "Allreduce", 8)
    yield ("mark", "search|prove", "median")
    for _ in range(35):
        yield ("work", 0.025)
        yield ("send", (rank + 1) % ranks, 900, 5)
        yield ("recv", (rank - 1) % ranks, 5)
    yield ("mark", "prove|report", "median")
    for _ in range(3):
        yield ("all", "Gather", 3_000_000)
        yield ("work", 0.06 if rank == 0 else 0.0)
    yield ("all", "Barrier", 0)


LATER: dict[str, tuple[Program, int]] = {
    "forecast": (forecast, 24), "refilled": (refilled, 12), "parareal": (parareal, 16),
    "contact": (contact, 36), "map reduce": (map_reduce, 20), "training": (training, 8), "tree": (tree, 64),
    "bounds": (bounds, 4),
}  # fmt: skip

"""The programs. Each has the shape of a real one; boundaries of its phases are marked where they happen.

`DEVELOPMENT` are those on which the rule of `desktop.core.choice` was made, `HELD_BACK` those on which it was
judged afterwards. Half of the programs have no regions of their own, as if only MPI had been traced.
"""

from __future__ import annotations

import numpy as np

from tests.programs.simulated import Program, Steps

Chance = np.random.Generator


def halo(rank: int, ranks: int, size: int, tag: int = 0) -> Steps:
    """Exchange with both neighbours in a row of ranks."""
    for other in (rank - 1, rank + 1):
        if 0 <= other < ranks:
            yield ("send", other, size, tag)
    for other in (rank - 1, rank + 1):
        if 0 <= other < ranks:
            yield ("recv", other, tag)


# ---- development


def pipeline(rank: int, ranks: int, rng: Chance) -> Steps:
    yield ("in", "read_input")
    if rank == 0:
        yield ("io", "fread", 0.3)
    yield ("all", "Bcast", 1_000_000)
    yield ("out", "read_input")
    yield ("mark", "read|fill", "median")
    for item in range(120):
        if rank:
            yield ("recv", rank - 1, 1)
        if item == 0:
            yield ("mark", "fill|steady", "last")
        yield ("work", 0.02)
        if rank < ranks - 1:
            yield ("send", rank + 1, 20_000, 1)
        if item == 119:
            yield ("mark", "steady|drain", "first")
    yield ("all", "Barrier", 0)
    yield ("mark", "drain|output", "median")
    for _ in range(3):
        yield ("in", "write_output")
        yield ("work", 0.08)
        yield ("io", "fwrite", 0.03)
        yield ("out", "write_output")


def grids(rank: int, ranks: int, rng: Chance) -> Steps:
    """Grid sequencing: the same relaxation on ever finer grids, no regions of its own."""
    for level, (steps, grain) in enumerate(((60, 0.004), (40, 0.012), (30, 0.04))):
        if level:
            yield ("mark", f"grid {level}", "median")
        for _ in range(steps):
            yield from halo(rank, ranks, 2000 * 4**level)
            yield ("work", grain)
            if level == 0:
                yield ("work", grain / 2 * (rank % 2))
        yield ("all", "Allreduce", 8)


def farm(rank: int, ranks: int, rng: Chance) -> Steps:
    yield ("in", "setup")
    if rank == 0:
        yield ("work", 0.4)
    yield ("all", "Bcast", 100_000)
    yield ("out", "setup")
    yield ("mark", "setup|tasks", "median")
    tasks = rng.exponential(0.08, 150) + 0.02
    if rank == 0:
        for task in range(tasks.size + ranks - 1):
            worker = task + 1 if task < ranks - 1 else (yield ("any", 0))[0]
            yield ("send", worker, 100, 1, task)
    else:
        while (task := (yield ("recv", 0, 1))[1]) < tasks.size:
            yield ("in", "task")
            yield ("work", float(tasks[task]))
            yield ("out", "task")
            yield ("send", 0, 1000, 0)
        yield ("mark", "tasks|drain", "first")
    yield ("all", "Barrier", 0)
    yield ("mark", "tasks|report", "median")
    yield ("in", "report")
    yield ("work", 0.5 if rank == 0 else 0.05)
    yield ("all", "Barrier", 0)
    yield ("out", "report")


def lu(rank: int, ranks: int, rng: Chance) -> Steps:
    yield ("in", "generate")
    yield ("work", 0.15)
    yield ("out", "generate")
    yield ("mark", "generate|factor", "median")
    yield ("in", "factor")
    blocks = 64
    for k in range(blocks):
        if k % ranks == rank:
            yield ("work", 0.002 * (blocks - k) / blocks)
        yield ("all", "Bcast", 8000 * (blocks - k))
        mine = sum(1 for j in range(k + 1, blocks) if j % ranks == rank)
        yield ("work", 0.02 * mine * (blocks - k) / blocks)
    yield ("out", "factor")
    yield ("mark", "factor|forward", "median")
    for name in ("forward", "backward"):
        yield ("in", name)
        for k in range(blocks):
            if k % ranks == rank:
                yield ("work", 0.008)
            yield ("all", "Bcast", 4000)
        yield ("out", name)
        if name == "forward":
            yield ("mark", "forward|backward", "median")


def fft(rank: int, ranks: int, rng: Chance) -> Steps:
    yield ("work", 0.2 if rank == 0 else 0.02)
    yield ("all", "Scatter", 4_000_000)
    yield ("mark", "input|rows", "median")
    for _ in range(64):
        yield ("work", 0.01)
    yield ("mark", "rows|transpose", "median")
    for _ in range(4):
        yield ("all", "Alltoall", 20_000_000)
    yield ("mark", "transpose|columns", "median")
    for _ in range(64):
        yield ("work", 0.014)
    yield ("all", "Gather", 4_000_000)
    yield ("mark", "columns|check", "median")
    yield ("work", 0.25 if rank == 0 else 0.0)


def multigrid(rank: int, ranks: int, rng: Chance) -> Steps:
    yield ("work", 0.1)
    for step, level in enumerate((0, 1, 2, 3, 2, 1, 0)):
        yield ("mark", f"level {step}", "median")
        yield ("in", f"smooth_{level}")
        active = rank % 2**level == 0
        for _ in range(8 * 2**level):
            if active:
                stride = 2**level
                for other in (rank - stride, rank + stride):
                    if 0 <= other < ranks:
                        yield ("send", other, 64000 // 4**level, level)
                for other in (rank - stride, rank + stride):
                    if 0 <= other < ranks:
                        yield ("recv", other, level)
                yield ("work", 0.06 / 2 ** (1.2 * level))
        yield ("all", "Barrier", 0)
        yield ("out", f"smooth_{level}")


def irregular(rank: int, ranks: int, rng: Chance) -> Steps:
    """A graph is built, searched level by level, and its parts sorted; no regions of its own."""
    parts = rng.dirichlet(np.full(ranks, 4.0), 12) * ranks
    for _ in range(20):
        yield ("work", 0.03)
    yield ("all", "Alltoall", 1_000_000)
    yield ("mark", "build|search", "median")
    for level in range(12):
        front = np.exp(-((level - 5) ** 2) / 10)
        yield ("work", float(0.12 * front * parts[level, rank]))
        yield ("all", "Alltoall", int(300_000 * front))
        yield ("all", "Allreduce", 8)
    yield ("mark", "search|sort", "median")
    for _ in range(10):
        yield ("work", 0.05)
        yield ("send", rank ^ 1, 200_000, 3)
        yield ("recv", rank ^ 1, 3)


def bodies(rank: int, ranks: int, rng: Chance) -> Steps:
    yield ("in", "init")
    yield ("work", 0.3)
    yield ("all", "Allgather", 100_000)
    yield ("out", "init")
    yield ("mark", "init|steps", "median")
    for _ in range(40):
        yield ("in", "build_tree")
        yield ("work", 0.008)
        yield ("all", "Allgather", 400_000)
        yield ("out", "build_tree")
        yield ("in", "force")
        yield ("work", 0.05 * (1 + 0.2 * rank / ranks))
        yield ("out", "force")
    yield ("mark", "steps|output", "median")
    yield ("in", "output")
    yield ("all", "Gather", 5_000_000)
    yield ("io", "fwrite", 0.4 if rank == 0 else 0.01)
    yield ("all", "Barrier", 0)
    yield ("out", "output")


def drift(rank: int, ranks: int, rng: Chance) -> Steps:
    """Work gathers on few ranks, is balanced anew, and gathers again."""
    yield ("work", 0.2)
    yield ("all", "Barrier", 0)
    yield ("mark", "start|gathering", "median")
    for half in range(2):
        for step in range(50):
            yield ("work", 0.02 * (1 + step / 50 * (rank / ranks) * 2))
            yield ("all", "Allreduce", 8)
        if half == 0:
            yield ("mark", "gathering|balance", "median")
            yield ("in", "rebalance")
            for _ in range(3):
                yield ("all", "Alltoall", 4_000_000)
                yield ("work", 0.03 if rank < 2 else 0.001)
            yield ("out", "rebalance")
            yield ("mark", "balance|gathering", "median")


def gradients(rank: int, ranks: int, rng: Chance) -> Steps:
    yield ("in", "assembly")
    for _ in range(12):
        yield ("work", 0.05 * (1 + 0.3 * ((rank * 7) % ranks) / ranks))
    yield ("all", "Barrier", 0)
    yield ("out", "assembly")
    yield ("mark", "assembly|solve", "median")
    yield ("in", "solve")
    for _ in range(80):
        yield from halo(rank, ranks, 8000)
        yield ("work", 0.012)
        yield ("all", "Allreduce", 8)
        yield ("work", 0.003)
        yield ("all", "Allreduce", 8)
    yield ("out", "solve")
    yield ("mark", "solve|residual", "median")
    for _ in range(3):
        yield ("work", 0.05)
        yield ("all", "Reduce", 8)


# ---- development, second part


def sweeps(rank: int, ranks: int, rng: Chance) -> Steps:
    """Transport: wavefronts to and fro along the row of ranks; only MPI is traced."""
    for sweep in range(4):
        if sweep:
            yield ("mark", f"sweep {sweep}", "median")
        up = sweep % 2 == 0
        before, after = (rank - 1, rank + 1) if up else (rank + 1, rank - 1)
        for _ in range(12):
            if 0 <= before < ranks:
                yield ("recv", before, sweep)
            yield ("work", 0.02)
            if 0 <= after < ranks:
                yield ("send", after, 16000, sweep)
        yield ("all", "Barrier", 0)


def directions(rank: int, ranks: int, rng: Chance) -> Steps:
    """Alternating directions: solves along x, which is local, a transposition, solves along y in a chain."""
    yield ("in", "setup")
    yield ("work", 0.12)
    yield ("all", "Barrier", 0)
    yield ("out", "setup")
    yield ("mark", "setup|x", "median")
    yield ("in", "solve_x")
    for _ in range(40):
        yield ("work", 0.03)
    yield ("out", "solve_x")
    yield ("mark", "x|transpose", "median")
    yield ("in", "transpose")
    for _ in range(5):
        yield ("all", "Alltoall", 15_000_000)
        yield ("work", 0.005)
    yield ("out", "transpose")
    yield ("mark", "transpose|y", "median")
    yield ("in", "solve_y")
    for _ in range(40):
        if rank:
            yield ("recv", rank - 1, 5)
        yield ("work", 0.015)
        if rank < ranks - 1:
            yield ("send", rank + 1, 2000, 5)
    yield ("all", "Barrier", 0)
    yield ("out", "solve_y")


def sample_sort(rank: int, ranks: int, rng: Chance) -> Steps:
    shares = rng.dirichlet(np.full(ranks, 20.0)) * ranks
    for _ in range(30):
        yield ("work", 0.02)
    yield ("mark", "sort|splitters", "median")
    yield ("all", "Gather", 10_000)
    yield ("work", 0.15 if rank == 0 else 0.0)
    yield ("all", "Bcast", 10_000)
    yield ("mark", "splitters|exchange", "median")
    for _ in range(3):
        yield ("all", "Alltoall", 4_000_000)
    yield ("mark", "exchange|merge", "median")
    for _ in range(20):
        yield ("work", float(0.025 * shares[rank]))


def checkpoints(rank: int, ranks: int, rng: Chance) -> Steps:
    for part in range(3):
        for _ in range(40):
            yield from halo(rank, ranks, 8000)
            yield ("work", 0.02)
        yield ("mark", f"steps|checkpoint {part}", "median")
        yield ("in", "checkpoint")
        yield ("io", "fwrite", 0.25 + (0.02 * rank if rank < 8 else 0.05))
        yield ("all", "Barrier", 0)
        yield ("out", "checkpoint")
        if part < 2:
            yield ("mark", f"checkpoint|steps {part}", "median")


def cholesky(rank: int, ranks: int, rng: Chance) -> Steps:
    """Blocks are factored in a ring; then a triangular solve; only MPI is traced."""
    blocks = 72
    for k in range(blocks):
        if k % ranks == rank:
            yield ("work", 0.004 * (blocks - k) / blocks)
        yield ("all", "Bcast", 4000 * (blocks - k))
        mine = sum(1 for j in range(k + 1, blocks) if j % ranks == rank)
        yield ("work", 0.03 * mine * (blocks - k) / blocks)
    yield ("mark", "factor|solve", "median")
    for k in range(blocks):
        before, after = (k - 1) % ranks, (k + 1) % ranks
        if k % ranks == rank:
            if k:
                yield ("recv", before, 100 + k)
            yield ("work", 0.012)
            if k < blocks - 1:
                yield ("send", after, 8000, 101 + k)
    yield ("all", "Barrier", 0)
    yield ("mark", "solve|norm", "median")
    yield ("work", 0.3)
    yield ("all", "Allreduce", 8)


def ocean(rank: int, ranks: int, rng: Chance) -> Steps:
    yield ("in", "read_forcing")
    yield ("io", "read", 0.35 if rank % 8 == 0 else 0.05)
    yield ("all", "Scatter", 500_000)
    yield ("out", "read_forcing")
    yield ("mark", "read|baroclinic", "median")
    yield ("in", "baroclinic")
    for _ in range(30):
        yield ("work", 0.05)
        yield from halo(rank, ranks, 50_000)
    yield ("out", "baroclinic")
    yield ("mark", "baroclinic|barotropic", "median")
    yield ("in", "barotropic")
    for _ in range(300):
        yield ("work", 0.002)
        yield ("all", "Allreduce", 8)
        yield ("all", "Allreduce", 8)
    yield ("out", "barotropic")
    yield ("mark", "barotropic|history", "median")
    yield ("in", "write_history")
    yield ("all", "Gather", 10_000_000)
    yield ("io", "write", 0.3 if rank == 0 else 0.0)
    yield ("all", "Barrier", 0)
    yield ("out", "write_history")


def batches(rank: int, ranks: int, rng: Chance) -> Steps:
    """Two batches with a fixed share of tasks each, the second of other size; the slowest rank ends each."""
    sizes = rng.exponential(1.0, (2, ranks, 30))
    for batch in range(2):
        yield ("in", f"batch_{batch + 1}")
        for size in sizes[batch, rank]:
            yield ("work", float((0.05, 0.02)[batch] * size))
        yield ("all", "Barrier", 0)
        yield ("out", f"batch_{batch + 1}")
        yield ("mark", "batch 1|2" if batch == 0 else "batch 2|report", "median")
    yield ("work", 0.2 if rank == 0 else 0.0)
    yield ("all", "Bcast", 8)


def full_multigrid(rank: int, ranks: int, rng: Chance) -> Steps:
    """From the coarsest grid to the finest, with work that grows fourfold; only MPI is traced."""
    for level in (3, 2, 1, 0):
        stride = 2**level
        for _ in range(30):
            if rank % stride == 0:
                for other in (rank - stride, rank + stride):
                    if 0 <= other < ranks:
                        yield ("send", other, 64000 // 4**level, level)
                for other in (rank - stride, rank + stride):
                    if 0 <= other < ranks:
                        yield ("recv", other, level)
                yield ("work", 0.04 / 2**level)
        yield ("all", "Barrier", 0)
        if level:
            yield ("mark", f"level {level}", "median")


def refinement(rank: int, ranks: int, rng: Chance) -> Steps:
    load = rng.dirichlet(np.full(ranks, 6.0), 3) * ranks
    for grid in range(3):
        yield ("in", "advance")
        for _ in range(25):
            yield ("work", float(0.02 * (1 + grid) * load[grid, rank]))
            yield from halo(rank, ranks, 10_000 * (1 + grid))
        yield ("out", "advance")
        if grid < 2:
            yield ("mark", f"advance|regrid {grid}", "median")
            yield ("in", "regrid")
            yield ("all", "Allgather", 500_000)
            yield ("work", 0.1)
            yield ("all", "Alltoall", 2_000_000)
            yield ("out", "regrid")
            yield ("mark", f"regrid|advance {grid}", "median")


def cannon(rank: int, ranks: int, rng: Chance) -> Steps:
    if rank == 0:
        yield ("work", 0.3)
    yield ("all", "Scatter", 10_000_000)
    yield ("mark", "input|shifts", "median")
    for step in range(24):
        yield ("work", 0.06)
        yield ("send", (rank + 1) % ranks, 3_000_000, step)
        yield ("recv", (rank - 1) % ranks, step)
    yield ("mark", "shifts|gather", "median")
    yield ("all", "Gather", 10_000_000)
    if rank == 0:
        yield ("work", 0.25)
    yield ("all", "Barrier", 0)


def linpack(rank: int, ranks: int, rng: Chance) -> Steps:
    yield ("in", "HPL_pdmatgen")
    yield ("work", 0.4)
    yield ("out", "HPL_pdmatgen")
    yield ("all", "Barrier", 0)
    yield ("mark", "generate|factor", "median")
    yield ("in", "HPL_pdgesv0")
    for k in range(60):
        left = (60 - k) / 60
        if k % ranks == rank:
            yield ("work", 0.02 * left)
        yield ("all", "Bcast", int(300_000 * left))
        yield ("work", 0.12 * left * left)
    yield ("out", "HPL_pdgesv0")
    yield ("mark", "factor|backsolve", "median")
    yield ("in", "HPL_pdtrsv")
    for k in range(60):
        if k % ranks == rank:
            yield ("work", 0.006)
        yield ("all", "Bcast", 2000)
    yield ("out", "HPL_pdtrsv")
    yield ("mark", "backsolve|verify", "median")
    yield ("in", "verify")
    yield ("work", 0.3)
    yield ("all", "Allreduce", 8)
    yield ("out", "verify")


def monte_carlo(rank: int, ranks: int, rng: Chance) -> Steps:
    for _ in range(4):
        yield ("work", 0.05 if rank == 0 else 0.0)
        yield ("all", "Bcast", 50_000)
    yield ("mark", "seeds|paths", "median")
    for _ in range(100):
        yield ("work", 0.015)
    yield ("all", "Reduce", 1000)
    yield ("mark", "paths|statistics", "median")
    for _ in range(15):
        yield ("work", 0.01)
        yield ("all", "Allreduce", 500_000)


# ---- held back


def halos(rank: int, ranks: int, rng: Chance) -> Steps:
    """Explicit steps of a wave: start, three stages with other cost, output; one region around each stage."""
    yield ("in", "start")
    yield ("work", 0.2)
    yield ("all", "Barrier", 0)
    yield ("out", "start")
    yield ("mark", "start|predictor", "median")
    for name, grain in (("predictor", 0.03), ("corrector", 0.02), ("filter", 0.012)):
        yield ("in", name)
        for _ in range(30):
            yield from halo(rank, ranks, 20_000)
            yield ("work", grain)
            if name == "filter":
                yield ("all", "Allreduce", 64)
        yield ("out", name)
        yield ("mark", f"{name}|", "median")
    yield ("in", "output")
    yield ("all", "Gather", 1_000_000)
    yield ("io", "fwrite", 0.25 if rank == 0 else 0.0)
    yield ("all", "Barrier", 0)
    yield ("out", "output")


def shrinking(rank: int, ranks: int, rng: Chance) -> Steps:
    """A stencil on half as many ranks each time; only MPI is traced."""
    for level in range(3):
        stride = 2**level
        for _ in range(40):
            if rank % stride == 0:
                for other in (rank - stride, rank + stride):
                    if 0 <= other < ranks:
                        yield ("send", other, 40_000 // stride, level)
                for other in (rank - stride, rank + stride):
                    if 0 <= other < ranks:
                        yield ("recv", other, level)
                yield ("work", 0.02)
        yield ("all", "Barrier", 0)
        if level < 2:
            yield ("mark", f"level {level}|", "median")


def two_farms(rank: int, ranks: int, rng: Chance) -> Steps:
    """A master hands out long tasks, then short ones."""
    for part, (count, mean) in enumerate(((ranks * 12, 0.06), (ranks * 30, 0.015))):
        sizes = rng.exponential(mean, count)
        yield ("in", ("coarse", "fine")[part])
        if rank == 0:
            for task in range(count + ranks - 1):
                worker = task + 1 if task < ranks - 1 else (yield ("any", part))[0]
                yield ("send", worker, 64, 10 + part, task)
        else:
            while (task := (yield ("recv", 0, 10 + part))[1]) < count:
                yield ("work", float(sizes[task]))
                yield ("send", 0, 4096, part)
        yield ("all", "Barrier", 0)
        yield ("out", ("coarse", "fine")[part])
        yield ("mark", "coarse|fine" if part == 0 else "fine|sum", "median")
    yield ("work", 0.15 if rank == 0 else 0.0)
    yield ("all", "Bcast", 64)


def block_lu(rank: int, ranks: int, rng: Chance) -> Steps:
    """LU of blocks dealt out in turn, only MPI is traced; then many right-hand sides."""
    blocks = 48
    yield ("work", 0.1)
    yield ("all", "Scatter", 2_000_000)
    yield ("mark", "input|factor", "median")
    for k in range(blocks):
        if k % ranks == rank:
            yield ("work", 0.01 * (blocks - k) / blocks)
        yield ("all", "Bcast", 20_000 * (blocks - k))
        mine = sum(1 for j in range(k + 1, blocks) if j % ranks == rank)
        yield ("work", 0.03 * mine * (blocks - k) / blocks)
    yield ("mark", "factor|solve", "median")
    for _ in range(50):
        yield ("work", 0.008)
        yield ("all", "Reduce", 2000)
    yield ("mark", "solve|gather", "median")
    for _ in range(3):
        yield ("all", "Gather", 60_000_000)


def spectral(rank: int, ranks: int, rng: Chance) -> Steps:
    """A spectral model: physics, then transforms back and forth, regions of its own."""
    yield ("in", "read_restart")
    yield ("io", "read", 0.2)
    yield ("out", "read_restart")
    yield ("mark", "read|physics", "median")
    yield ("in", "physics")
    for _ in range(25):
        yield ("work", float(0.04 * (1 + 0.4 * np.sin(rank))))
    yield ("all", "Barrier", 0)
    yield ("out", "physics")
    yield ("mark", "physics|transforms", "median")
    yield ("in", "transforms")
    for _ in range(16):
        yield ("work", 0.02)
        yield ("all", "Alltoall", 2_500_000)
    yield ("out", "transforms")
    yield ("mark", "transforms|diagnose", "median")
    yield ("in", "diagnose")
    for _ in range(10):
        yield ("work", 0.01 if rank % 4 == 0 else 0.002)
        yield ("all", "Reduce", 4000)
    yield ("all", "Barrier", 0)
    yield ("out", "diagnose")


def correction(rank: int, ranks: int, rng: Chance) -> Steps:
    """A correction scheme on two grids, twice: fine, coarse, fine, coarse, fine."""
    for part in range(5):
        fine = part % 2 == 0
        yield ("in", "relax_fine" if fine else "relax_coarse")
        for _ in range(25):
            if fine or rank % 4 == 0:
                step = 1 if fine else 4
                for other in (rank - step, rank + step):
                    if 0 <= other < ranks:
                        yield ("send", other, 32_000 // step**2, part)
                for other in (rank - step, rank + step):
                    if 0 <= other < ranks:
                        yield ("recv", other, part)
                yield ("work", 0.025 if fine else 0.018)
        yield ("all", "Barrier", 0)
        yield ("out", "relax_fine" if fine else "relax_coarse")
        if part < 4:
            yield ("mark", f"part {part}|", "median")


def walkers(rank: int, ranks: int, rng: Chance) -> Steps:
    """Irregular: walkers multiply and die, loads are evened out now and then; no regions of its own."""
    load = np.ones(ranks)
    yield ("work", 0.25)
    yield ("all", "Bcast", 500_000)
    yield ("mark", "start|walk", "median")
    for _ in range(60):
        load *= np.exp(rng.normal(0, 0.05, ranks))
        load /= load.mean()
        yield ("work", float(0.03 * load[rank]))
        yield ("all", "Allreduce", 64)
    yield ("mark", "walk|collect", "median")
    for _ in range(4):
        yield ("all", "Gather", 20_000_000)
        yield ("work", 0.04 if rank == 0 else 0.0)


def out_of_core(rank: int, ranks: int, rng: Chance) -> Steps:
    """Blocks are read, a long computation, blocks are written."""
    for _ in range(8):
        yield ("io", "fread", 0.04)
        yield ("work", 0.003)
    yield ("all", "Barrier", 0)
    yield ("mark", "read|compute", "median")
    for _ in range(40):
        yield ("work", 0.04)
    yield ("all", "Barrier", 0)
    yield ("mark", "compute|write", "median")
    for _ in range(8):
        yield ("io", "fwrite", 0.06)
    yield ("all", "Barrier", 0)


DEVELOPMENT: dict[str, tuple[Program, int]] = {
    "pipeline": (pipeline, 16), "grids": (grids, 16), "farm": (farm, 8), "lu": (lu, 16), "fft": (fft, 8),
    "multigrid": (multigrid, 16), "irregular": (irregular, 32), "bodies": (bodies, 4), "drift": (drift, 16),
    "gradients": (gradients, 64), "sweeps": (sweeps, 16), "directions": (directions, 8),
    "sample sort": (sample_sort, 32), "checkpoints": (checkpoints, 16), "cholesky": (cholesky, 24),
    "ocean": (ocean, 16), "batches": (batches, 12), "full multigrid": (full_multigrid, 64),
    "refinement": (refinement, 32), "cannon": (cannon, 16), "linpack": (linpack, 36),
    "monte carlo": (monte_carlo, 48),
}  # fmt: skip
HELD_BACK: dict[str, tuple[Program, int]] = {
    "halos": (halos, 16), "shrinking": (shrinking, 32), "two farms": (two_farms, 12),
    "block lu": (block_lu, 8), "spectral": (spectral, 24), "correction": (correction, 16),
    "walkers": (walkers, 64), "out of core": (out_of_core, 4),
}  # fmt: skip

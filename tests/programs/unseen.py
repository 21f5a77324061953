"""Programs held back from the second change of the rule of `desktop.core.choice`: written before it was run
on them, with other shapes, sizes and seeds than those of the catalogue. They and the rule have one author.

Marks follow the catalogue: a boundary is where the median processor passes from one phase to the next; where
a pipeline fills, the last one, and where work runs out, the first one.
"""

from __future__ import annotations

import numpy as np

from tests.programs.catalogue import Chance, halo
from tests.programs.simulated import Program, Steps


def grid(rank: int, ranks: int, size: int, tag: int = 0) -> Steps:
    """Exchange with up to four neighbours in a square of ranks."""
    side = int(ranks**0.5)
    x, y = rank % side, rank // side
    near = [(x + dx, y + dy) for dx, dy in ((-1, 0), (1, 0), (0, -1), (0, 1))]
    others = [v * side + u for u, v in near if 0 <= u < side and 0 <= v < side]
    for other in others:
        yield ("send", other, size, tag)
    for other in others:
        yield ("recv", other, tag)


def seismic(rank: int, ranks: int, rng: Chance) -> Steps:
    """Migration: a model is read, a wave goes forward with snapshots, backward with snapshots read, a sum."""
    yield ("in", "read_model")
    if rank == 0:
        yield ("io", "fread", 0.5)
    yield ("all", "Bcast", 4_000_000)
    yield ("out", "read_model")
    yield ("mark", "model|forward", "median")
    yield ("in", "forward")
    for step in range(60):
        yield from grid(rank, ranks, 12_000)
        yield ("work", 0.03)
        if step % 10 == 9:
            yield ("io", "fwrite", 0.02)
    yield ("out", "forward")
    yield ("mark", "forward|backward", "median")
    yield ("in", "backward")
    for step in range(60):
        if step % 10 == 0:
            yield ("io", "fread", 0.03)
        yield from grid(rank, ranks, 12_000)
        yield ("work", 0.045)
    yield ("out", "backward")
    yield ("mark", "backward|stack", "median")
    yield ("in", "stack")
    for _ in range(6):
        yield ("work", 0.02)
        yield ("all", "Reduce", 20_000_000)
    yield ("out", "stack")


def molecules(rank: int, ranks: int, rng: Chance) -> Steps:
    """Equilibration with neighbours found anew in every step, then production; only MPI is traced."""
    yield ("work", 0.3 if rank == 0 else 0.05)
    yield ("all", "Scatter", 3_000_000)
    yield ("mark", "input|equilibrate", "median")
    for _ in range(50):
        yield ("all", "Allgather", 300_000)
        yield ("work", 0.02)
        yield from halo(rank, ranks, 30_000)
    yield ("mark", "equilibrate|produce", "median")
    for step in range(150):
        yield ("work", 0.013)
        yield from halo(rank, ranks, 6_000)
        if step % 50 == 49:
            yield ("all", "Allreduce", 64)
    yield ("mark", "produce|trajectory", "median")
    yield ("all", "Gather", 3_000_000)
    if rank == 0:
        yield ("io", "fwrite", 0.3)
    yield ("all", "Barrier", 0)


def genetic(rank: int, ranks: int, rng: Chance) -> Steps:
    """Three generations: a master hands out candidates, then selects alone; only MPI is traced."""
    for generation in range(3):
        count = ranks * 14
        sizes = rng.gamma(4.0, 0.015, count)
        if rank == 0:
            for task in range(count + ranks - 1):
                worker = task + 1 if task < ranks - 1 else (yield ("any", generation))[0]
                yield ("send", worker, 2_000, 50 + generation, task)
        else:
            while (task := (yield ("recv", 0, 50 + generation))[1]) < count:
                yield ("work", float(sizes[task]))
                yield ("send", 0, 16, generation)
        yield ("mark", f"evaluate|select {generation}", "median")
        if rank == 0:
            yield ("work", 0.2)
        yield ("all", "Bcast", 40_000)
        if generation < 2:
            yield ("mark", f"select|evaluate {generation}", "median")


def lanczos(rank: int, ranks: int, rng: Chance) -> Steps:
    """Eigenvalues: products with a matrix, then orthogonalization, then a small problem on one rank."""
    yield ("in", "assemble")
    for _ in range(10):
        yield ("work", 0.05)
    yield ("out", "assemble")
    yield ("mark", "assemble|products", "median")
    yield ("in", "products")
    for _ in range(70):
        yield from halo(rank, ranks, 40_000)
        yield ("work", 0.02)
        yield ("all", "Allreduce", 16)
    yield ("out", "products")
    yield ("mark", "products|orthogonalize", "median")
    yield ("in", "orthogonalize")
    for k in range(35):
        yield ("work", 0.001 * k)
        yield ("all", "Allreduce", 8 * k + 8)
    yield ("out", "orthogonalize")
    yield ("mark", "orthogonalize|small", "median")
    yield ("in", "small_problem")
    yield ("work", 0.5 if rank == 0 else 0.0)
    yield ("all", "Bcast", 100_000)
    yield ("out", "small_problem")
    yield ("mark", "small|vectors", "median")
    yield ("in", "vectors")
    for _ in range(12):
        yield ("work", 0.04)
    yield ("out", "vectors")


def odd_even(rank: int, ranks: int, rng: Chance) -> Steps:
    """Each rank sorts, neighbours merge in odd and even rounds, a check; only MPI is traced."""
    for _ in range(25):
        yield ("work", 0.03)
    yield ("mark", "sort|merge", "median")
    for turn in range(2 * ranks):
        other = rank + 1 if (rank + turn) % 2 == 0 else rank - 1
        if 0 <= other < ranks:
            yield ("send", other, 500_000, turn)
            yield ("recv", other, turn)
            yield ("work", 0.03)
    yield ("mark", "merge|check", "median")
    for _ in range(30):
        yield ("work", 0.008)
        yield ("all", "Allreduce", 8)


def alignment(rank: int, ranks: int, rng: Chance) -> Steps:
    """A wavefront over two sequences, then the path is traced back from the last rank to the first."""
    yield ("in", "read_sequences")
    yield ("io", "fread", 0.2)
    yield ("all", "Bcast", 200_000)
    yield ("out", "read_sequences")
    yield ("mark", "read|fill", "median")
    yield ("in", "score")
    for block in range(90):
        if rank:
            yield ("recv", rank - 1, 1)
        if block == 0:
            yield ("mark", "fill|steady", "last")
        yield ("work", 0.03)
        if rank < ranks - 1:
            yield ("send", rank + 1, 4_000, 1)
        if block == 89:
            yield ("mark", "steady|drain", "first")
    yield ("all", "Barrier", 0)
    yield ("out", "score")
    yield ("mark", "drain|traceback", "median")
    yield ("in", "traceback")
    if rank < ranks - 1:
        yield ("recv", rank + 1, 2)
    yield ("work", 0.06)
    if rank:
        yield ("send", rank - 1, 1_000, 2)
    yield ("all", "Barrier", 0)
    yield ("out", "traceback")


def in_situ(rank: int, ranks: int, rng: Chance) -> Steps:
    """Three quarters of the ranks simulate; after a spin-up they send to the others, which draw; at the end
    all draw. Only MPI is traced."""
    share = 4
    draws = rank % share == share - 1
    for _ in range(40):
        if not draws:
            yield ("work", 0.025)
    yield ("all", "Barrier", 0)
    yield ("mark", "spin-up|coupled", "median")
    for step in range(40):
        if draws:
            for k in range(1, share):
                yield ("recv", rank - k, step)
            yield ("work", 0.03)
        else:
            yield ("work", 0.04)
            yield ("send", rank - rank % share + share - 1, 400_000, step)
    yield ("all", "Barrier", 0)
    yield ("mark", "coupled|render", "median")
    for _ in range(12):
        yield ("work", 0.04)
        yield ("all", "Reduce", 3_000_000)


def pencils(rank: int, ranks: int, rng: Chance) -> Steps:
    """A spectral solver: transforms forward, pointwise work, transforms backward, statistics."""
    yield ("in", "initialize")
    yield ("work", 0.25)
    yield ("out", "initialize")
    yield ("all", "Barrier", 0)
    yield ("mark", "initialize|forward", "median")
    for name in ("fft_forward", "nonlinear", "fft_backward"):
        yield ("in", name)
        for _ in range(9):
            yield ("work", 0.06 if name == "nonlinear" else 0.025)
            if name != "nonlinear":
                yield ("all", "Alltoall", 900_000)
        yield ("out", name)
        yield ("mark", f"{name}|", "median")
    yield ("in", "statistics")
    for _ in range(20):
        yield ("work", 0.006 * (1 + rank % 3))
        yield ("all", "Reduce", 200)
    yield ("out", "statistics")


def coloring(rank: int, ranks: int, rng: Chance) -> Steps:
    """A graph is read by one rank, coloured in rounds that shrink, conflicts are mended by messages, checked;
    only MPI is traced."""
    share = rng.dirichlet(np.full(ranks, 8.0)) * ranks
    yield ("io", "fread", 0.4 if rank == 0 else 0.0)
    yield ("all", "Scatter", 6_000_000)
    yield ("mark", "read|colour", "median")
    for turn in range(20):
        yield ("work", float(0.1 * share[rank] * 0.93**turn))
        yield ("all", "Allgather", 60_000)
    yield ("mark", "colour|mend", "median")
    for turn in range(40):
        for step in (1, 3):
            yield ("send", (rank + step) % ranks, 300, turn)
        for step in (1, 3):
            yield ("recv", (rank - step) % ranks, turn)
        yield ("work", float(0.006 * (1 + rng.random())))
    yield ("mark", "mend|check", "median")
    for _ in range(8):
        yield ("work", 0.05)
    yield ("all", "Reduce", 8)


def hypercube(rank: int, ranks: int, rng: Chance) -> Steps:
    """Quicksort on a hypercube: in each dimension halves are exchanged, then each rank sorts its part."""
    yield ("in", "generate")
    yield ("work", 0.2)
    yield ("out", "generate")
    yield ("mark", "generate|split", "median")
    yield ("in", "split")
    dimension = ranks.bit_length() - 1
    for repeat in range(4):
        for bit in reversed(range(dimension)):
            yield ("all", "Bcast", 8)
            yield ("work", 0.03)
            yield ("send", rank ^ (1 << bit), 20_000_000, 10 * repeat + bit)
            yield ("recv", rank ^ (1 << bit), 10 * repeat + bit)
    yield ("out", "split")
    yield ("mark", "split|sort", "median")
    yield ("in", "sort")
    for _ in range(30):
        yield ("work", 0.04)
    yield ("all", "Barrier", 0)
    yield ("out", "sort")
    yield ("mark", "sort|write", "median")
    yield ("in", "write")
    for _ in range(5):
        yield ("io", "fwrite", 0.06)
    yield ("out", "write")


UNSEEN: dict[str, tuple[Program, int]] = {
    "seismic": (seismic, 16), "molecules": (molecules, 24), "genetic": (genetic, 10),
    "lanczos": (lanczos, 40),
    "odd even": (odd_even, 12), "alignment": (alignment, 8), "in situ": (in_situ, 32),
    "pencils": (pencils, 64), "coloring": (coloring, 20), "hypercube": (hypercube, 16),
}  # fmt: skip

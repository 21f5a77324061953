"""Step functions that tests and benchmarks share: look-alikes of the paper's examples, and the awkward ones.

Each function returns ``(edges, level)``: (M+1,) whole ticks from 0 and (M,) processors computing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Steps = tuple[NDArray[np.float64], NDArray[np.float64]]


def counted(begin: NDArray[np.float64], end: NDArray[np.float64], total: float) -> Steps:
    """How many of the intervals ``[begin, end)`` are open at every instant of ``[0, total)``."""
    times = np.concatenate([begin, end])
    change = np.concatenate([np.ones(begin.size), -np.ones(end.size)])
    at, which = np.unique(np.append(times, 0.0), return_inverse=True)
    level = np.cumsum(np.bincount(which, np.append(change, 0.0))).astype(float)
    keep = at < total
    keep[1:] &= level[1:] != level[:-1]
    return np.append(at[keep], total), level[keep]


def wave() -> Steps:
    """Like the paper's Figure 3: 1024 processors, 1208 pairs, T = 205,824 us.

    A simulated schedule: processors are started one after the other down a binary tree, then four
    timesteps, each a stretch of local work and ten rounds of pairwise exchange with a wait for the partner.
    The clock ticks in 32 us; of the steps the 1208 that differ most from their neighbours are kept.
    """
    rng = np.random.default_rng(1990)
    p = np.arange(1024)
    depth = np.floor(np.log2(p + 1))
    clock = 1500.0 * depth + 2.0 * p
    begin, end = [], []

    def compute(length: NDArray[np.float64]) -> None:
        nonlocal clock
        begin.append(clock.copy())
        clock = clock + length
        end.append(clock.copy())

    compute(rng.gamma(6.0, 900.0, p.size))
    for _ in range(4):
        compute(2200.0 + rng.gamma(3.0, 350.0, p.size))
        for stage in range(10):
            clock = np.maximum(clock, clock[p ^ (1 << stage)]) + 2300.0 + 180.0 * stage
            compute(rng.gamma(4.0, 110.0, p.size) * (1.0 + stage / 5.0))
    b, e = np.concatenate(begin), np.concatenate(end)
    # Room for the longest step of the paper's curve at the end, where one processor writes the results.
    scale = (205_824.0 - 9216.0) / e.max()
    b, e = (32.0 * np.round(t * scale / 32.0) for t in (b, e))
    edges, level = counted(b, e, 205_824.0)
    while level.size > 1208:
        least = int(np.argmin(np.abs(np.diff(level))))
        edges, level = np.delete(edges, least + 1), np.delete(level, least + 1)
    return edges, level


def cholesky() -> Steps:
    """Like the paper's Figure 10: 256 processors, 7865 pairs, T = 78,640,281 us, steps of 10,000 us.

    A simulated schedule: columns of a matrix of 1024 rows dealt out in turn; the owner finishes a column and
    sends it down a binary tree, everyone subtracts it from the columns still his; then a forward and a
    backward solve that pass along the processors. A clock that ticks in 10 ms sees the count at each tick.
    """
    rng = np.random.default_rng(256)
    procs, n, total = 256, 1024, 78_640_281.0
    p = np.arange(procs)
    clock = 3000.0 * p
    begin, end = [], []
    tree = np.ceil(np.log2(1 + (p[None, :] - p[:, None]) % procs))
    for j in range(n):
        owner, rows = j % procs, float(n - j)
        begin.append(clock[owner : owner + 1].copy())
        clock[owner] += 11.0 * rows
        end.append(clock[owner : owner + 1].copy())
        arrival = clock[owner] + (900.0 + 2.0 * rows) * tree[owner]
        ready = np.maximum(clock, arrival)
        left = (n - 1 - p) // procs - (j - p + procs) // procs + 1
        work = 42.0 * rows * np.maximum(left, 0) * rng.uniform(0.8, 1.2, procs)
        begin.append(ready.copy())
        clock = ready + work
        end.append(clock.copy())
    for direction in (1, -1):
        clock[:] = clock.max() + 2000.0 * (p if direction > 0 else p[::-1])
        for block in range(24):
            length = rng.uniform(0.2, 1.0, procs) * 9.0e4 * (1.0 if direction > 0 else 0.8)
            begin.append(clock.copy())
            end.append(clock + length * (0.15 + 0.35 * np.abs(np.sin(block / 4.0))))
            clock = clock + 1.1e5
    b, e = np.concatenate(begin), np.concatenate(end)
    scale = total / e.max()
    ticks = np.append(np.arange(0.0, total, 10_000.0), total)
    opened = np.searchsorted(np.sort(b * scale), ticks[:-1], side="right")
    closed = np.searchsorted(np.sort(e * scale), ticks[:-1], side="right")
    return ticks, (opened - closed).astype(float)


def phased(segments: int, phases: int = 20, seed: int = 7) -> Steps:
    """Noisy whole-number utilization of 1024 processors with this many true phases of degree 0, 1 and 2."""
    rng = np.random.default_rng(seed)
    widths = rng.integers(1, 2000, segments).astype(float)
    cut = np.sort(rng.choice(np.arange(1, segments), min(phases, segments) - 1, replace=False))
    level = np.empty(segments)
    for i, (a, b) in enumerate(zip(np.append(0, cut), np.append(cut, segments), strict=True)):
        s = np.linspace(-1.0, 1.0, b - a)
        c0, c1, c2 = rng.uniform(200, 800), rng.uniform(-150, 150), rng.uniform(-80, 80)
        level[a:b] = c0 + (i % 3 > 0) * c1 * s + (i % 3 > 1) * c2 * s * s
    level = np.clip(np.round(level + rng.normal(0.0, 40.0, segments)), 0.0, 1024.0)
    return np.append(0.0, np.cumsum(widths)), level


def _with_widths(widths: NDArray, level: NDArray) -> Steps:
    return np.append(0.0, np.cumsum(np.asarray(widths, float))), np.asarray(level, float)


def _awkward() -> dict[str, Callable[[int], Steps]]:
    def rng() -> np.random.Generator:
        return np.random.default_rng(11)

    def offset(height: float) -> Callable[[int], Steps]:
        return lambda m: _with_widths(rng().integers(1, 50, m), height + rng().integers(0, 3, m))

    def long(m: int) -> Steps:
        cuts = np.sort(rng().choice(10**9, m - 1, replace=False)) * 10.0**6 + 7.0
        return np.concatenate([[0.0], cuts, [1e15]]), phased(m, 8)[1]

    def burst(m: int) -> Steps:
        widths = rng().integers(1, 4, m).astype(float)
        widths[0] = 1e6 * widths[1:].sum()
        level = rng().integers(0, 200, m).astype(float)
        level[0] = 0.0
        return _with_widths(widths, level)

    def uneven(m: int) -> Steps:
        return _with_widths(np.where(np.arange(m) % 3 == 1, 2.0**40, 1.0), rng().integers(0, 64, m))

    def straight(m: int) -> Steps:
        return _with_widths(np.ones(m), np.arange(m))

    def bent(m: int) -> Steps:
        return _with_widths(np.ones(m), np.arange(m) * (2.0 * m - np.arange(m)))

    def plateaus(m: int) -> Steps:
        held = np.repeat([5.0, 9.0, 5.0, 0.0, 5.0, 1.0, 5.0], [9, 2, 5, 3, 1, 4, 6])
        return _with_widths(np.ones(m), np.resize(held, m))

    def mean_again(m: int) -> Steps:
        # Every third step lies exactly at the mean of the two before it: the error stands still over it.
        return _with_widths(np.full(m, 4.0), np.tile([2.0, 6.0, 4.0], -(-m // 3))[:m])

    return {
        "1e6 + {0,1,2}": offset(1e6),
        "1e9 + {0,1,2}": offset(1e9),
        "T = 1e15": long,
        "idle, then a burst": burst,
        "widths 1 next to 2^40": uneven,
        "staircase": straight,
        "quadratic staircase": bent,
        "plateaus": plateaus,
        "steps at the mean": mean_again,
        "20 phases": phased,
    }


AWKWARD: dict[str, Callable[[int], Steps]] = _awkward()

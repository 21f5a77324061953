"""Random message-passing programs whose true times are known, recorded by clocks wrong in known ways.

A program is made of computing, messages (blocking or not), and collective operations with data and without,
on all ranks or some. Times are nanoseconds. What MPI lets return at once returns at once here: members of
operations without data, the root of a broadcast, those that only send to the root of a reduction.

``python -m tests.simulated_clocks [PROGRAMS [FIRST [CLOCKS ...]]]`` records so many programs by each kind of
clocks and prints what the clock check made of them, with the seeds of those that are worse than recorded,
also if a rate that is common to all clocks counts as wrong, or worse than they are said to be.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from desktop.core.clock_line import Clock
from desktop.data.clock import ClockResult, check_clocks
from desktop.data.events import TABLES, Location, MessageKind
from tests.data_layer.memory import Memory

Floats = NDArray[np.float64]
CLOCKS = ("exact", "shifted", "drifting", "jittered")
ROUNDED = 2.0  # ns: readings are whole, and a correction is rounded once
ROOTED_OUT, ROOTED_IN = ("Bcast", "Scatter", "Scatterv"), ("Reduce", "Gather", "Gatherv")
OPERATIONS = (
    "Barrier", "Allreduce", "Allgather", "Alltoall", "Reduce_scatter_block", "Allgatherv", "Alltoallv",
    "Reduce_scatter", *ROOTED_OUT, *ROOTED_IN, "Scan", "Exscan",
)  # fmt: skip


class Program:
    """One run. `messages`, `collectives`: rows of each rank with true times, as `TABLES` orders them."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = np.random.default_rng(seed)
        self.ranks = int(chance.choice([2, 3, 4, 6, 8, 12, 16, 32]))
        self.now = chance.integers(1_000_000, 3_000_000, self.ranks).astype(np.int64)
        self.messages: list[list[tuple[int, ...]]] = [[] for _ in range(self.ranks)]
        self.collectives: list[list[tuple[int, ...]]] = [[] for _ in range(self.ranks)]
        self.latency = float(chance.choice([500, 2_000, 10_000]))
        self._requests = 0
        grain = float(chance.choice([200_000, 2_000_000, 20_000_000]))
        kinds = chance.choice(6, chance.integers(1, 6), replace=False)
        for _ in range(int(chance.integers(20, 150))):
            self.now += (chance.exponential(grain, self.ranks) * chance.integers(0, 2, self.ranks)).astype(
                int
            )
            kind = int(chance.choice(kinds))
            if kind == 0:
                self._pair()
            elif kind == 1:
                self._ring()
            elif kind == 2:
                self._posted()
            else:
                self._together(world=kind < 5)
        self.now += 1000

    def _travel(self, size: int = 0) -> int:
        return int(self.latency + self.chance.exponential(self.latency / 2) + size)

    def _send(self, a: int, b: int, tag: int, kind: MessageKind = MessageKind.SEND) -> int:
        """When it is there."""
        size = int(self.chance.choice([0, 8, 5000]))
        self.now[a] += 200
        self.messages[a].append((int(self.now[a]), kind, b, 0, tag, size, 0))
        arrives = int(self.now[a]) + self._travel(size)
        self.now[a] += 300
        return arrives

    def _take(self, a: int, b: int, tag: int, arrives: int) -> None:
        self.now[b] = max(int(self.now[b]) + 200, arrives)
        self.messages[b].append((int(self.now[b]), MessageKind.RECV, a, 0, tag, 0, 0))
        self.now[b] += 100

    def _pair(self) -> None:
        a, b = (int(x) for x in self.chance.choice(self.ranks, 2, replace=False))
        self._take(a, b, 1, self._send(a, b, 1))

    def _ring(self) -> None:
        arrives = [self._send(a, (a + 1) % self.ranks, 2) for a in range(self.ranks)]
        for a, at in enumerate(arrives):
            self._take(a, (a + 1) % self.ranks, 2, at)

    def _posted(self) -> None:
        """Two receives are posted, and end in the other order."""
        a, b = (int(x) for x in self.chance.choice(self.ranks, 2, replace=False))
        requests = self._requests + 1, self._requests + 2
        self._requests += 2
        for request in requests:
            self.now[b] += 100
            self.messages[b].append((int(self.now[b]), MessageKind.IRECV_POST, -1, 0, -1, 0, request))
        there = [self._send(a, b, 3, MessageKind.ISEND) for _ in requests]
        for request, at in zip(requests[::-1], there[::-1], strict=True):
            self.now[b] = max(int(self.now[b]) + 200, at)
            self.messages[b].append((int(self.now[b]), MessageKind.IRECV, a, 0, 3, 0, request))

    def _together(self, world: bool) -> None:
        """An operation; `needs[i, j]`: member j cannot leave before member i has entered."""
        chance = self.chance
        if world or self.ranks < 4:
            members, comm = np.arange(self.ranks), 1
        else:
            members, comm = np.arange(self.ranks // 2), 2
        p = members.size
        name = str(chance.choice(OPERATIONS))
        root = int(chance.integers(p))
        size = int(chance.choice([0, 8, 1000]))
        sent = np.full(p, size)
        needs = np.full((p, p), size > 0)
        if name == "Barrier":
            sent[:], needs[:] = 0, True
        elif name in ("Allgatherv", "Gatherv"):
            sent = size * chance.integers(0, 2, p)
            needs = np.repeat((sent > 0)[:, None], p, axis=1)
        elif name in ("Reduce_scatter", "Scatterv"):
            needs = np.repeat((size * chance.integers(0, 2, p) > 0)[None, :], p, axis=0)
        elif name == "Alltoallv":
            needs = chance.integers(0, 4, (p, p)) == 0
            sent = needs.sum(axis=1)
        elif name in ("Scan", "Exscan"):
            needs &= np.triu(np.ones((p, p), bool), 1)
        received = 8 * needs.any(axis=0) if name != "Barrier" else np.zeros(p, int)
        if name in ROOTED_OUT:
            needs[np.arange(p) != root] = False
            sent = np.where(np.arange(p) == root, 8 * needs.any(), 0)
            received = 8 * needs[root]
        elif name in ROOTED_IN:
            needs[:, np.arange(p) != root] = False
            sent = np.where(needs[:, root], 8, 0)
            received = np.where(np.arange(p) == root, 8 * needs.any(), 0)
        begin = self.now[members] + 200
        away = np.array([[self._travel() for _ in range(p)] for _ in range(p)])
        there = np.where(needs & ~np.eye(p, dtype=bool), begin[:, None] + away, 0).max(axis=0)
        end = np.maximum(begin + chance.integers(200, 2000, p), there)
        self.now[members] = end + 100
        at = OPERATIONS.index(name)
        rooted = int(members[root]) if name in ROOTED_OUT + ROOTED_IN else -1
        for k, rank in enumerate(members.tolist()):
            self.collectives[rank].append(
                (int(begin[k]), int(end[k]), at, comm, rooted, int(sent[k]), int(received[k]))
            )


@dataclass
class Recorded:
    """A program as clocks recorded it: `true` and `shown` ticks of every row of each rank. `shift`, `rate`:
    the clock of the first rank, which is ahead by ``shift + rate * true``."""

    source: Memory
    true: list[NDArray[np.int64]]
    shown: list[NDArray[np.int64]]
    shift: float
    rate: float
    result: ClockResult

    def errors(self, corrected: bool) -> list[Floats]:
        """Of each rank, how far its clock is ahead at each of its rows."""
        found = self.result
        return [
            (
                Clock(int(found.shift[i]), float(found.drift[i]), int(found.origin[i])).common(shown)
                if corrected
                else shown
            ).astype(np.float64)
            - true
            for i, (true, shown) in enumerate(zip(self.true, self.shown, strict=True))
        ]

    def spread(self, corrected: bool, rate: bool = True) -> tuple[float, float]:
        """R.m.s. error and largest error, whatever is common to all clocks, in ns: a shift, and with `rate` a
        rate too, which no comparison of clocks can tell."""
        every = np.concatenate(self.errors(corrected))
        if not every.size:
            return 0.0, 0.0
        if not rate:
            return float(every.std()), float(np.ptp(every)) / 2
        true = np.concatenate(self.true).astype(np.float64)
        common = np.stack([np.ones(true.size), (true - true.min()) / max(float(np.ptp(true)), 1.0)], axis=1)
        best = np.linalg.lstsq(common, every, rcond=None)[0]
        up = np.ones((true.size, 1))
        rows, sides = np.block([[common, -up], [-common, -up]]), np.concatenate([every, -every])
        least = linprog([0.0, 0.0, 1.0], rows, sides, bounds=[(None, None)] * 3, method="highs")
        return float((every - common @ best).std()), float(least.fun)

    def beyond(self, stated: Floats | None = None) -> float:
        """By how many ns the largest error, relative to the first rank, exceeds what is stated."""
        found, worst = self.result, -np.inf
        off = found.off if stated is None else stated
        first = Clock(int(found.shift[0]), float(found.drift[0]), int(found.origin[0]))
        for i, (true, error) in enumerate(zip(self.true, self.errors(True), strict=True)):
            if i > 0 and error.size and np.isfinite(off[i]):
                # The first rank has no row at these times, and may have none before or after them.
                shown = np.rint(true + self.shift + self.rate * true).astype(np.int64)
                apart = error - (first.common(shown) - true)
                worst = max(worst, float(np.abs(apart).max() - off[i]))
        return worst


def record(program: Program, clocks: str, seed: int, size_ns: float | None = None) -> Recorded:
    """The program by clocks that are `exact`, `shifted` (2 us to 100 ms), `drifting` (5 to 500 us over the
    run) or `jittered` (each reading by 1 us); `size_ns`: by so much instead."""
    chance = np.random.default_rng(seed)
    p = program.ranks
    memory = Memory()
    memory.describe(ticks_per_second=1e9, repair=True, notes={"reordered": []})
    span = float(program.now.max())
    shift, rate, jitter = np.zeros(p), np.zeros(p), 0.0
    if clocks == "shifted":
        size = size_ns or 10 ** chance.uniform(np.log10(2e3), 8)
        shift = chance.uniform(-size, size, p) * (chance.random(p) < chance.choice([0.1, 0.5, 1.0]))
    elif clocks == "drifting":
        size = size_ns or 10 ** chance.uniform(np.log10(5e3), np.log10(5e5))
        rate = chance.uniform(-size, size, p) / span
    elif clocks == "jittered":
        jitter = size_ns or 1000.0
    true, shown = [], []
    for name in OPERATIONS:
        memory.text(name)
    for rank in range(p):
        memory.location(Location(rank, rank=rank))

    def table(rank: int, name: str, rows: list[tuple[int, ...]]) -> NDArray[np.int64]:
        return np.array(rows, np.int64).reshape(len(rows), len(TABLES[name]))

    for rank in range(p):
        messages = table(rank, "messages", program.messages[rank])
        collectives = table(rank, "collectives", program.collectives[rank])
        at = np.concatenate([messages[:, 0], collectives[:, 0], collectives[:, 1]])
        order = np.argsort(at, kind="stable")
        read = at[order] + shift[rank] + rate[rank] * at[order] + chance.normal(0, 1, at.size) * jitter
        by_clock = np.empty(at.size, np.int64)
        by_clock[order] = np.maximum.accumulate(np.rint(read).astype(np.int64)) if at.size else read
        m, k = len(messages), len(collectives)
        messages[:, 0] = by_clock[:m]
        collectives[:, 0], collectives[:, 1] = by_clock[m : m + k], by_clock[m + k :]
        memory.append("messages", rank, **dict(zip(TABLES["messages"], messages.T, strict=True)))
        memory.append("collectives", rank, **dict(zip(TABLES["collectives"], collectives.T, strict=True)))
        place = memory.locations[rank]
        place.first, place.last = 0, int(by_clock.max(initial=0)) + 1
        true.append(at)
        shown.append(by_clock)
    return Recorded(memory, true, shown, float(shift[0]), float(rate[0]), check_clocks(memory))


def main(programs: int = 1000, first: int = 0, *kinds: str) -> None:
    print("| clocks | programs | contradict | shift | linear | worse | in common | beyond what is stated |")
    print("| --- |" + " ---: |" * 7)
    odd: list[str] = []
    for clocks in kinds or CLOCKS:
        counts: Counter[str] = Counter()
        for seed in range(first, first + programs):
            found = record(Program(seed), clocks, seed + 777)
            result = found.result
            counts["contradict"] += result.before.checks > 0
            counts[result.repair] += 1
            if not (result.shift.any() or result.drift.any()):
                continue
            errors = [
                [found.spread(corrected, rate) for corrected in (False, True)] for rate in (False, True)
            ]
            common, worse = (
                max(now - then for then, now in zip(before, after, strict=True)) for before, after in errors
            )
            for what, by in (("worse", worse), ("common", common), ("beyond", found.beyond())):
                if by > ROUNDED:
                    counts[what] += 1
                    odd.append(f"{clocks} {seed}: {what} by {by:.0f} ns, {result.repair}, {errors}")
        columns = [counts[name] for name in ("contradict", "shift", "linear", "worse", "common", "beyond")]
        print(f"| {clocks} | {programs} | {' | '.join(map(str, columns))} |", flush=True)
    print(*odd, sep="\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:])

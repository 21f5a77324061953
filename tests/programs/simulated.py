"""Runs a program on a simulated machine: ranks compute with noise, messages travel, collectives wait.

A program is a function ``program(rank, ranks, rng)`` that yields what a rank does, one tuple at a time:

    ("work", seconds)                computing, in whatever region is open
    ("in", region), ("out", region)  enter and leave a region of the program
    ("io", region, seconds)          reading or writing
    ("send", to, bytes, tag)         the sender does not wait for the receiver; a number may follow
    ("recv", from, tag)              waits; the answer is from whom, and the number (0 if there was none)
    ("any", tag)                     the same of the message that arrives first
    ("all", operation, bytes)        a collective operation of all ranks, named as in MPI ("Barrier", ...)
    ("mark", label, which)           a true boundary: when the "first", "median" or "last" rank is here

Marks are not in the trace. What is random in a program (its input) comes from `rng`, which is the same on
all ranks; noise of the machine comes from the simulation's own.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from desktop.data.events import EventKind, Location, MessageKind, Region
from desktop.data.parts import DIGESTS, steps_of
from desktop.data.store import Source, StoreWriter
from desktop.data.store.description import ImporterInfo
from desktop.data.utilization import keep
from desktop.progress import Progress

Steps = Generator[tuple[Any, ...], Any, None]
Program = Callable[[int, int, np.random.Generator], Steps]

#: Seconds: until a message arrives, spent by who sends, per byte, for each doubling of ranks in a collective.
LATENCY, OVERHEAD, PER_BYTE, STAGE = 20e-6, 5e-6, 1e-9, 15e-6


@dataclass
class Recording:
    """What happened. `events`, `messages`, `collectives` (begin, end, bytes): rows of each rank, times in
    seconds. `truth`: label, seconds."""

    name: str
    ranks: int
    events: list[list[tuple[float, int, str]]]
    messages: list[list[tuple[float, int, int, int, int]]]
    marks: dict[str, list[float]] = field(default_factory=dict)
    which: dict[str, str] = field(default_factory=dict)
    collectives: list[list[tuple[float, float, int]]] = field(default_factory=list)

    @property
    def duration(self) -> float:
        return max(rows[-1][0] for rows in self.events) - self.start

    @property
    def start(self) -> float:
        return min(rows[0][0] for rows in self.events)

    @property
    def truth(self) -> list[tuple[str, float]]:
        """True boundaries in their order, seconds since the first event."""
        pick = {"first": min, "last": max, "median": np.median}
        found = [(name, float(pick[self.which[name]](t)) - self.start) for name, t in self.marks.items()]
        return sorted(found, key=lambda one: one[1])


def simulate(
    program: Program, ranks: int, noise: float, seed: int, name: str = "", spikes: float = 0.002
) -> Recording:
    """Run it. `noise`: standard deviation of the logarithm of each piece of computing; ranks differ in speed
    by a fifth of it. `spikes`: part of the pieces that the system interrupts, by 1 % of a second."""
    chance = np.random.default_rng([seed, ranks])
    speed = np.exp(chance.normal(0, noise / 5, ranks))
    runs = [program(r, ranks, np.random.default_rng(seed)) for r in range(ranks)]
    now = chance.uniform(0, 1e-4, ranks).tolist()
    out = Recording(name, ranks, *([[] for _ in range(ranks)] for _ in range(2)))
    out.collectives = [[] for _ in range(ranks)]
    box: dict[tuple[int, int, int], list[tuple[float, int, int]]] = {}  # to, from, tag: arrivals in order
    waits: dict[int, tuple[Any, ...]] = {}
    together: dict[int, list[int]] = {}
    joined = [0] * ranks
    answer: list[Any] = [None] * ranks
    for r in range(ranks):
        out.events[r].append((now[r], 0, "main"))
    # Time, rank, and whether a message may have ended its waiting: then it may already have gone on.
    ready = [(now[r], r, False) for r in range(ranks)]
    heapq.heapify(ready)

    def called(r: int, begin: float, end: float, region: str) -> None:
        out.events[r].append((begin, 0, region))
        out.events[r].append((end, 1, region))
        now[r] = end

    def received(r: int, key: tuple[int, int, int]) -> None:
        at, size, number = box[key].pop(0)
        end = max(now[r], at) + OVERHEAD
        out.messages[r].append((end, int(MessageKind.RECV), key[1], key[2], size))
        called(r, now[r], end, "MPI_Recv")
        answer[r] = key[1], number
        heapq.heappush(ready, (end, r, False))

    def waiting(r: int) -> tuple[int, int, int] | None:
        """The message that a rank that waits can have."""
        what = waits[r]
        if what[0] == "recv":
            key = (r, what[1], what[2])
            return key if box.get(key) else None
        there = [(box[k][0][0], k) for k in box if k[0] == r and k[2] == what[1] and box[k]]
        return min(there)[1] if there else None

    while ready:
        _, r, woken = heapq.heappop(ready)
        if r in waits:
            key = waiting(r)
            if key is not None:
                del waits[r]
                received(r, key)
            continue
        if woken:
            continue
        try:
            step = runs[r].send(answer[r])
        except StopIteration:
            out.events[r].append((now[r], 1, "main"))
            continue
        answer[r] = None
        kind = step[0]
        if kind == "work":
            took = step[1] * speed[r] * float(np.exp(chance.normal(0, noise)))
            now[r] += took + (0.01 if chance.random() < spikes else 0.0)
        elif kind in ("in", "out"):
            out.events[r].append((now[r], int(kind == "out"), step[1]))
            now[r] += 1e-7
        elif kind == "io":
            called(r, now[r], now[r] + step[2] * float(np.exp(chance.normal(0, noise))), step[1])
        elif kind == "mark":
            out.marks.setdefault(step[1], []).append(now[r])
            out.which[step[1]] = step[2]
        elif kind == "send":
            _, to, size, tag, *number = step
            end = now[r] + OVERHEAD + size * PER_BYTE
            out.messages[r].append((now[r], int(MessageKind.SEND), to, tag, size))
            called(r, now[r], end, "MPI_Send")
            travel = LATENCY * float(np.exp(chance.normal(0, noise)))
            box.setdefault((to, r, tag), []).append((end + travel, size, number[0] if number else 0))
            if to in waits:
                heapq.heappush(ready, (max(now[to], end + travel), to, True))
        elif kind in ("recv", "any"):
            waits[r] = step
        elif kind == "all":
            number = joined[r]
            joined[r] += 1
            members = together.setdefault(number, [])
            members.append(r)
            if len(members) == ranks:
                cost = STAGE * np.log2(ranks) + step[2] * PER_BYTE * (ranks if step[1] == "Alltoall" else 2)
                end = max(now) + cost * float(np.exp(chance.normal(0, noise)))
                for m in range(ranks):
                    begin = now[m]
                    called(m, begin, end + float(chance.uniform(0, 5e-6)), f"MPI_{step[1]}")
                    out.collectives[m].append((begin, now[m], step[2]))
                    heapq.heappush(ready, (now[m], m, False))
            continue
        else:
            raise ValueError(f"no such step: {step}")
        heapq.heappush(ready, (now[r], r, False))
    return out


def write(run: Recording, path: Path, *, collectives: bool = False) -> Path:
    """The recording as an imported store, with its collective operations or as by a tracer without them."""
    with StoreWriter(path, Source(run.name, run.name), ImporterInfo("made", "1"), DIGESTS) as writer:
        writer.describe(ticks_per_second=1e9)
        names: dict[str, int] = {}

        def number(name: str) -> int:
            if name not in names:
                mpi = name.startswith("MPI_")
                names[name] = writer.region(Region(name, "function", "mpi" if mpi else "user"))
            return names[name]

        for r in range(run.ranks):
            writer.location(Location(r, f"rank {r}", r))
        for r, rows in enumerate(run.events):
            time = np.array([round(1e9 * t) for t, _, _ in rows], np.int64)
            kinds = np.array([EventKind.LEAVE if k else EventKind.ENTER for _, k, _ in rows], np.uint8)
            regions = np.array([number(name) for _, _, name in rows], np.uint32)
            writer.append("events", r, time=np.maximum.accumulate(time), kind=kinds, region=regions)
        for r, sent in enumerate(run.messages):
            if not sent:
                continue
            table = np.array([(round(1e9 * t), k, p, tag, size) for t, k, p, tag, size in sent], np.int64)
            columns = {"time": table[:, 0], "kind": table[:, 1].astype(np.uint8)}
            columns |= {"peer": table[:, 2].astype(np.int32), "tag": table[:, 3], "bytes": table[:, 4]}
            nothing = np.zeros(len(sent), np.uint32)
            writer.append("messages", r, communicator=nothing, request=nothing.astype(np.uint64), **columns)
        for r, rows in enumerate(run.collectives if collectives else ()):
            if not rows:
                continue
            begin, end, size = zip(*rows, strict=True)
            size = np.array(size, np.int64)
            writer.append(
                "collectives", r, begin=np.array([round(1e9 * t) for t in begin], np.int64),
                end=np.array([round(1e9 * t) for t in end], np.int64),
                # All members wait for all here, whatever the operation.
                operation=np.full(len(rows), writer.text("MPI_Allreduce"), np.uint32),
                communicator=np.zeros(len(rows), np.uint32), root=np.zeros(len(rows), np.int32),
                sent=size, received=size,
            )  # fmt: skip
        writer.complete()
        keep(writer, Progress(), steps=steps_of(writer))
    return path

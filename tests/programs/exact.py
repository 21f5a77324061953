"""Runs a message-passing program in whole ticks without noise, and keeps what depends on what.

A program is a list of steps for each rank, tuples of

    ("work", region, ticks)                     computing in a region of the program
    ("send", to, tag), ("recv", from, tag)      of one message; a send never waits
    ("ssend", to, tag)                          a send that waits until the receive is begun
    ("exchange", to, from, tag)                 send and receive in one call
    ("all", operation, root, members, number)   a collective operation; `number` of its communicator

`run` gives a `Made`: the events, and the graph of what depends on what, from which `longest` finds the
critical path and the float of every piece by definition.
"""

from __future__ import annotations

from collections.abc import Sequence
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

N_TO_N, ONE_TO_ALL, ALL_TO_ONE, PREFIX = (
    {"Barrier", "Allreduce", "Alltoall"}, {"Bcast", "Scatter"}, {"Reduce", "Gather"}, {"Scan"},
)  # fmt: skip
Steps = list[tuple[Any, ...]]


@dataclass(repr=False)
class Made:
    """What happened, in ticks. `pieces`: (rank, region, begin, end, node, node) of all computing. `edges`:
    (node, node, ticks) of what depends on what; node 0 is the start of the run; `ends` of each rank. `waits`:
    (rank, begin, end, partner)."""

    ranks: int
    events: list[list[tuple[int, int, str]]]
    messages: list[list[tuple[int, int, int, int, int]]]
    collectives: list[list[tuple[int, int, str, int, int]]]
    pieces: list[tuple[int, str, int, int, int, int]] = field(default_factory=list)
    edges: list[tuple[int, int, int]] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=lambda: [0])
    waits: list[tuple[int, int, int, int]] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"Made of {self.ranks} ranks that waits {self.waits}"

    def longest(self) -> tuple[int, list[int], list[int]]:
        """How long the run must last; the longest way to each node, and from it to the end of the run."""
        n = len(self.times)
        ahead: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        back: list[list[tuple[int, int]]] = [[] for _ in range(n)]
        for a, b, w in self.edges:
            ahead[a].append((b, w))
            back[b].append((a, w))
        head, tail = [-1] * n, [-1] * n
        for found, others in ((head, back), (tail, ahead)):
            for first in range(n):
                stack = [first]
                while stack:
                    node = stack[-1]
                    left = [other for other, _ in others[node] if found[other] < 0]
                    if left:
                        stack += left
                        continue
                    found[node] = max((found[other] + w for other, w in others[node]), default=0)
                    stack.pop()
        return max(head), head, tail


def run(
    programs: Sequence[Steps], starts: Sequence[int], latency: int = 0, overhead: int = 1, cost: int = 2
) -> Made:
    """Until all have ended. A message is there `latency` after its send is begun; each call takes `overhead`
    beyond what it waits, a collective operation `cost`."""
    ranks = len(programs)
    made = Made(ranks, [[] for _ in programs], [[] for _ in programs], [[] for _ in programs])
    now, at = list(starts), [0] * ranks
    last = [0] * ranks  # node of each rank
    sent: dict[tuple[int, int, int], list[tuple[int, int]]] = {}  # from, to, tag: node and time of sends
    wanted: dict[tuple[int, int, int], list[tuple[int, int]]] = {}  # the same of receives that were begun
    seen: dict[tuple[str, int, int], int] = {}
    inside: list[tuple[int, int] | None] = [None] * ranks  # node and time of the call that a rank is in
    came: dict[tuple[int, int], dict[int, tuple[int, int]]] = {}  # communicator, how often: who came, when
    often = [dict[int, int]() for _ in programs]

    def node(rank: int, time: int, *from_: tuple[int, int]) -> int:
        made.times.append(time)
        made.edges += [(a, len(made.times) - 1, w) for a, w in from_]
        return len(made.times) - 1

    for r in range(ranks):
        made.events[r].append((now[r], 0, "main"))
        last[r] = node(r, now[r], (0, now[r]))

    def call(r: int, region: str, released: int, leave: int, nodes: list[tuple[int, int]], who: int) -> None:
        entered, begin = inside[r]  # type: ignore[misc]  # it is inside
        if released > begin:
            made.waits.append((r, begin, released, who))
        made.events[r] += [(begin, 0, region), (leave, 1, region)]
        last[r] = node(r, leave, (entered, leave - max(begin, released)), *nodes)
        now[r], inside[r] = leave, None
        at[r] += 1

    def step(r: int) -> bool:
        what, *about = programs[r][at[r]]
        begin = now[r]
        if what == "work":
            region, ticks = about
            before = last[r]
            made.events[r] += [(begin, 0, region), (begin + ticks, 1, region)]
            now[r] = begin + ticks
            last[r] = node(r, now[r], (before, ticks))
            made.pieces.append((r, region, begin, now[r], before, last[r]))
            at[r] += 1
            return True
        first = inside[r] is None
        if first:
            inside[r] = last[r], begin
        here = inside[r]
        assert here is not None
        if what in ("send", "ssend", "exchange") and first:
            to, tag = about[0], about[-1]
            sent.setdefault((r, to, tag), []).append(here)
            made.messages[r].append((begin, int(MessageKind.SEND), to, tag, 8))
        if what in ("recv", "exchange") and first:
            wanted.setdefault((about[-2], r, about[-1]), []).append(here)
        if what == "send":
            call(r, "MPI_Isend", begin, begin + overhead, [], -1)
            return True
        if what == "ssend":
            key = (r, about[0], about[1])
            k = seen.get(("sent", r, at[r]), len(sent[key]) - 1)
            seen["sent", r, at[r]] = k
            if len(wanted.get(key, [])) <= k:
                return first
            other, when = wanted[key][k]
            call(r, "MPI_Ssend", when, max(begin, when) + overhead, [(other, overhead)], about[0])
            return True
        if what in ("recv", "exchange"):
            key = (about[-2], r, about[-1])
            k = seen.get(("wanted", r, at[r]), len(wanted[key]) - 1)
            seen["wanted", r, at[r]] = k
            if len(sent.get(key, [])) <= k:
                return first
            other, when = sent[key][k]
            there = max(begin, when + latency)
            name = "MPI_Recv" if what == "recv" else "MPI_Waitall"
            made.messages[r].append((there + overhead, int(MessageKind.RECV), about[-2], about[-1], 8))
            call(r, name, when, there + overhead, [(other, latency + overhead)], about[-2])
            if latency and there > max(begin, when):  # what moves data is no waiting
                made.edges[-2] = (made.edges[-2][0], made.edges[-2][1], overhead)
            return True
        operation, root, members, number = about
        k = often[r].get(number, 0)
        those = came.setdefault((number, k), {})
        those[r] = here
        if operation in N_TO_N or (operation in ALL_TO_ONE and r == root):
            needed = set(members)
        elif operation in ONE_TO_ALL and r != root:
            needed = {r, root}
        elif operation in PREFIX:
            needed = {m for m in members if m <= r}
        else:
            needed = {r}
        if not needed <= those.keys():
            return first
        others = {m: those[m] for m in needed if m != r}
        when, who = max(((t, -m) for m, (_, t) in others.items()), default=(begin, 1))
        leave = max(begin, when) + cost
        made.collectives[r].append((begin, leave, operation, number, root))
        often[r][number] = k + 1
        call(r, f"MPI_{operation}", when, leave, [(other, cost) for other, _ in others.values()], -who)
        return True

    going = True
    while going:
        going = False
        for r in range(ranks):
            while at[r] < len(programs[r]) and step(r):
                going = True
                if inside[r] is not None:
                    break
    if any(at[r] < len(programs[r]) for r in range(ranks)):
        raise ValueError("everybody waits for somebody else")
    for r in range(ranks):
        made.events[r].append((now[r], 1, "main"))
    made.ends = now
    return made


def write(made: Made, path: Path) -> Path:
    """As an imported store; a tick is a nanosecond."""
    with StoreWriter(path, Source("exact", "exact"), ImporterInfo("made", "1"), DIGESTS) as writer:
        writer.describe(ticks_per_second=1e9)
        names: dict[str, int] = {}
        for rows in made.events:
            for _, _, name in rows:
                if name not in names:
                    paradigm = "mpi" if name.startswith("MPI_") else "user"
                    names[name] = writer.region(Region(name, "function", paradigm))
        texts: dict[str, int] = {}
        for table in made.collectives:
            for _, _, name, _, _ in table:
                if name not in texts:
                    texts[name] = writer.text(name)
        for r in range(made.ranks):
            writer.location(Location(r, f"rank {r}", r))
        for r in range(made.ranks):
            time, leaves, regions = zip(*made.events[r], strict=True)
            kinds = np.where(np.array(leaves), int(EventKind.LEAVE), int(EventKind.ENTER)).astype(np.uint8)
            numbers = np.array([names[name] for name in regions], np.uint32)
            writer.append("events", r, time=np.array(time, np.int64), kind=kinds, region=numbers)
            if made.messages[r]:
                rows = np.array(made.messages[r], np.int64)
                none = np.zeros(len(rows), np.uint32)
                writer.append(
                    "messages", r, time=rows[:, 0], kind=rows[:, 1].astype(np.uint8),
                    peer=rows[:, 2].astype(np.int32), tag=rows[:, 3], bytes=rows[:, 4],
                    communicator=none, request=none.astype(np.uint64),
                )  # fmt: skip
            if made.collectives[r]:
                table = made.collectives[r]
                size = np.full(len(table), 8, np.int64)
                writer.append(
                    "collectives", r,
                    begin=np.array([row[0] for row in table], np.int64),
                    end=np.array([row[1] for row in table], np.int64),
                    operation=np.array([texts[row[2]] for row in table], np.uint32),
                    communicator=np.array([row[3] for row in table], np.uint32),
                    root=np.array([row[4] for row in table], np.int32), sent=size, received=size,
                )  # fmt: skip
        writer.complete()
        keep(writer, Progress(), steps=steps_of(writer))
    return path

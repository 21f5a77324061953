"""A network of messages and collective operations, simulated the slow and obvious way: an event at a time.

Written from the words of `desktop.core.machine`, with nothing of its code: every state is asked again what
can happen next, and the earliest of it happens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Step:
    """`what`: send, isend, receive, post, wait, all, from_root, to_root, scan. `to`: number of the message or
    collective; `gap`, `extra`: as in `Schedule`."""

    what: str
    to: int
    gap: float
    extra: float = 0.0


@dataclass
class Message:
    bytes: int
    sent_at: float | None = None  # ready to be sent
    posted_at: float | None = None
    arrives_at: float | None = None


@dataclass
class Simulated:
    """`programs`: the steps of each location; `root` of each collective. After `run`, `ends` of each location
    and when each step was over; `stuck`: who never ended."""

    programs: list[list[Step]]
    sizes: list[int]
    root: list[int]
    latency: float = 0.0
    per_byte: float = 0.0
    eager: float = math.inf
    buses: int = 0
    begin: list[float] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)

    def run(self) -> list[float] | None:
        """When each location ends; None if not all do."""
        count = len(self.programs)
        self.messages = [Message(size) for size in self.sizes]
        self.bus = [0.0] * self.buses
        self.members: dict[int, list[int]] = {}
        for p, steps in enumerate(self.programs):
            for step in steps:
                if step.what in ("all", "from_root", "to_root", "scan"):
                    self.members.setdefault(step.to, []).append(p)
        self.came: dict[tuple[int, int], float] = {}  # (collective, location) -> when
        clock = list(self.begin) or [0.0] * count
        at, arrived = [0] * count, [False] * count
        while True:
            # What could happen next, and when.
            best: tuple[float, int, int, str] | None = None
            for p, steps in enumerate(self.programs):
                if at[p] == len(steps):
                    continue
                step = steps[at[p]]
                if not arrived[p]:
                    lead = self._lead(step)
                    event = (clock[p] + step.gap + lead, 0, p, "reach")
                else:
                    when = self._over(p, step, clock[p])
                    if when is None:
                        continue
                    event = (when, 1, p, "leave")
                if best is None or event < best:
                    best = event
            if best is None:
                break
            when, _, p, does = best
            step = self.programs[p][at[p]]
            if does == "reach":
                clock[p] += step.gap + self._lead(step)
                arrived[p] = True
                self._reach(p, step, clock[p])
            else:
                clock[p] = when + step.extra
                arrived[p] = False
                at[p] += 1
        done = all(a == len(steps) for a, steps in zip(at, self.programs, strict=True))
        return clock if done else None

    def _lead(self, step: Step) -> float:
        """The latency, of what begins to send or to receive."""
        begins = step.what in ("send", "isend", "post")
        begins |= step.what == "receive" and self.messages[step.to].posted_at is None
        return self.latency if begins else 0.0

    def _reach(self, p: int, step: Step, now: float) -> None:
        if step.what in ("send", "isend"):
            message = self.messages[step.to]
            message.sent_at = now
            if message.bytes <= self.eager or message.posted_at is not None:
                self._carry(message, now)
        elif step.what in ("receive", "post"):
            message = self.messages[step.to]
            if message.posted_at is None:
                message.posted_at = now
                if message.sent_at is not None and message.arrives_at is None:
                    self._carry(message, now)
        elif step.what != "wait":
            self.came[step.to, p] = now

    def _carry(self, message: Message, now: float) -> None:
        took = message.bytes * self.per_byte
        if self.bus:
            first = min(range(len(self.bus)), key=lambda k: self.bus[k])
            self.bus[first] = max(now, self.bus[first]) + took
            message.arrives_at = self.bus[first]
        else:
            message.arrives_at = now + took

    def _over(self, p: int, step: Step, now: float) -> float | None:
        """When a step that was reached at `now` is over; None: not yet known."""
        if step.what == "post":
            return now
        if step.what in ("send", "isend", "wait"):
            message = self.messages[step.to]
            if message.bytes <= self.eager or step.what == "isend":
                return now
            return None if message.arrives_at is None else max(now, message.arrives_at)
        if step.what == "receive":
            arrives = self.messages[step.to].arrives_at
            return None if arrives is None else max(now, arrives)
        members, root = self.members[step.to], self.root[step.to]
        if step.what == "all":
            needed = members
        elif step.what == "from_root":
            needed = [root] if root in members else []
        elif step.what == "to_root":
            needed = [one for one in members if one != root] if p == root else []
        else:
            needed = [one for one in members if one < p]
        times = [self.came.get((step.to, one)) for one in needed]
        if any(time is None for time in times):
            return None
        return max([now, *(time for time in times if time is not None)]) + self.cost[step.to]


def run(*args: Any, **more: Any) -> list[float] | None:
    return Simulated(*args, **more).run()

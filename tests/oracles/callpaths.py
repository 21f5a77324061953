"""Time and calls by call path inside a range, straight from the events: slow and simple."""

from __future__ import annotations

from collections import Counter

from tests.oracles.utilization import Thread, step


def paths(thread: Thread, begin: int, end: int, last: bool) -> tuple[Counter, Counter]:
    """Ticks and calls by path (a tuple of regions, outermost first) of ``begin <= t < end`` of a thread,
    `last`: with what happens at the very end."""
    ticks: Counter = Counter()
    calls: Counter = Counter()
    stack: list[int] = []
    now = thread.first

    def lasts(until: int) -> None:
        inside = min(until, end) - max(now, begin)
        if inside > 0:
            ticks[tuple(stack)] += inside

    for time, kind, region in thread.events:
        lasts(time)
        now = time
        step(stack, kind, region)
        if kind == "enter" and (begin <= time < end or (last and time >= end)):
            calls[tuple(stack)] += 1
    lasts(thread.last)
    return ticks, calls


def by_region(ticks: Counter, calls: Counter, regions: int) -> tuple[list[int], list[int], list[int]]:
    """Exclusive and inclusive ticks and calls of each region."""
    own = [sum(t for path, t in ticks.items() if path and path[-1] == r) for r in range(regions)]
    within = [sum(t for path, t in ticks.items() if r in path) for r in range(regions)]
    entered = [sum(n for path, n in calls.items() if path[-1] == r) for r in range(regions)]
    return own, within, entered

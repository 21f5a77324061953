"""What every location does at every instant, in plain Python, tick by tick: slow and obviously right."""

from __future__ import annotations

from dataclasses import dataclass

from desktop.data.events import Activity, EventKind, Region

WEAK_TO_STRONG = [
    Activity.COMPUTING,
    Activity.OVERHEAD,
    Activity.IO,
    Activity.IDLE,
    Activity.UNMEASURED,
]
#: Regions of made traces, what each of them is classed as, and which begin parallel work.
REGIONS = [
    Region("solve"),
    Region("OpenMP Parallel"),
    Region("MPI_Isend", paradigm="mpi"),
    Region("MPI_Recv", paradigm="mpi"),
    Region("MPI_File_read", paradigm="mpi"),
    Region("MEASUREMENT OFF"),
]
CLASSES = [
    Activity.COMPUTING,
    Activity.COMPUTING,
    Activity.OVERHEAD,
    Activity.IDLE,
    Activity.IO,
    Activity.UNMEASURED,
]
PARALLEL = {1}
KIND = {"enter": EventKind.ENTER, "leave": EventKind.LEAVE}


@dataclass
class Thread:
    """Events (time, "enter" or "leave", region) of a location that is there from `first` to `last`."""

    first: int
    last: int
    events: list[tuple[int, str, int]]
    base: Activity = Activity.COMPUTING
    worker: bool = False
    shift: int = 0


def doing(thread: Thread, classes: list[Activity], parallel: set[int], nesting: str, open_now: list[int]):
    decisive = [classes[r] for r in open_now if classes[r] != Activity.COMPUTING]
    if decisive:
        return decisive[0] if nesting == "outermost" else max(decisive, key=WEAK_TO_STRONG.index)
    if thread.worker:
        return Activity.COMPUTING if any(r in parallel for r in open_now) else Activity.IDLE
    return Activity.COMPUTING if open_now else thread.base


def timeline(thread: Thread, classes: list[Activity], parallel: set[int], nesting: str):
    """(tick -> activity for every tick of its life, leaves without enter, regions open at the end)."""
    open_now: list[int] = []
    stray = 0
    waiting = list(thread.events)
    found = {}
    for tick in range(thread.first, thread.last):
        while waiting and waiting[0][0] <= tick:
            _, kind, region = waiting.pop(0)
            stray += not step(open_now, kind, region)
        found[tick + thread.shift] = doing(thread, classes, parallel, nesting, open_now)
    for _, kind, region in waiting:
        stray += not step(open_now, kind, region)
    return found, stray, len(open_now)


def step(open_now: list[int], kind: str, region: int) -> bool:
    """Apply an event to the open regions, outermost first; False if it is a leave that fits none."""
    if kind == "enter":
        open_now.append(region)
        return True
    for place in reversed(range(len(open_now))):
        if open_now[place] == region:
            del open_now[place]
            return True
    return False

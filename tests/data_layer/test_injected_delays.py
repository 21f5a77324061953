"""Programs in which one rank is late once, by a known time in a known region: who made whom wait is found.

Simulated ones, with noise, and ones that were run and recorded (`tests/programs/delayed.c`).
"""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pytest

from desktop.data.causality import Causality
from desktop.data.causes import Caused, Causes
from desktop.data.opening import open_trace
from desktop.data.store import TraceStore, open_store
from desktop.data.utilization import Rules
from desktop.progress import Progress
from tests.programs import exact
from tests.programs.exact import Steps

RECORDED = Path(__file__).parents[1] / "data" / "delays"
#: Ticks of a piece of work, by how much it varies, and the delay that is injected.
WORK, NOISE, DELAY = 1_000_000, 0.01, 50_000_000
STEPS, LATE = 8, 3


def caused(store: TraceStore) -> tuple[Causes, Caused]:
    causes = Causes(store, Causality(store, Rules(), Progress()), Progress())
    return causes, causes.between(causes.start, int(causes.ends.max()) + 1)


def program(what: str, ranks: int, late: int) -> list[Steps]:
    """`STEPS` steps of work in "solve" and what follows; rank `late` works `DELAY` ticks longer in one."""
    rng = np.random.default_rng(5)
    world = tuple(range(ranks))
    steps: list[Steps] = [[("all", "Barrier", -1, world, 1)] for _ in world]
    for k in range(STEPS):
        for r in world:
            if what == "chain" and r:
                steps[r].append(("recv", r - 1, k))
            if what == "mixed" and r > 1:
                steps[r].append(("recv", r - 1, k))
            longer = DELAY if (r, k) == (late, LATE) else 0
            steps[r].append(("work", "solve", round(WORK * float(rng.normal(1, NOISE))) + longer))
            if what == "mixed" and r < 2:
                steps[r].append(("all", "Allreduce", -1, (0, 1), 2))
            if what == "chain" and r < ranks - 1:
                steps[r].append(("send", r + 1, k))
            if what == "mixed" and 0 < r < ranks - 1:
                steps[r].append(("send", r + 1, k))
            if what == "ring":
                steps[r] += [("send", (r + 1) % ranks, 100 + k), ("send", (r - 1) % ranks, 200 + k)]
                steps[r] += [("recv", (r - 1) % ranks, 100 + k), ("recv", (r + 1) % ranks, 200 + k)]
            if what in ("Barrier", "Allreduce", "Bcast", "Reduce", "Scan"):
                root = {"Bcast": 0, "Reduce": ranks - 1}.get(what, -1)
                steps[r].append(("all", what, root, world, 1))
            if what == "rendezvous":  # rank 0 receives from all in turn
                if r:
                    steps[r].append(("ssend", 0, k))
                else:
                    steps[r] += [("recv", other, k) for other in world[1:]]
            steps[r].append(("work", "rest", WORK // 10))
    return steps


#: What depends on whom, ranks, who is late, and how many wait for the delay (one hop and several).
CASES = [
    ("chain", 2, 0, 1), ("chain", 3, 0, 2), ("chain", 4, 0, 3), ("chain", 4, 2, 1), ("ring", 7, 3, 6),
    ("Barrier", 6, 4, 5), ("Allreduce", 6, 0, 5), ("Bcast", 6, 0, 5), ("Reduce", 6, 2, 1),
    ("Scan", 6, 2, 3), ("mixed", 4, 0, 3), ("mixed", 3, 0, 2), ("rendezvous", 4, 0, 3),
]  # fmt: skip


@pytest.mark.parametrize(("what", "ranks", "late", "waiting"), CASES)
def test_the_late_rank_and_region_come_first(
    what: str, ranks: int, late: int, waiting: int, tmp_path: Path
) -> None:
    made = exact.run(program(what, ranks, late), [0] * ranks, latency=2000, overhead=1000, cost=3000)
    with open_store(exact.write(made, tmp_path / "made.h5")) as store:
        causes, found = caused(store)
    first = found.delays[0]
    assert (first.location, first.name) == (late, "solve")
    assert first.seconds == pytest.approx(waiting * DELAY * 1e-9, rel=0.05)
    assert found.costs_s.sum() == pytest.approx(found.waits_s.sum())
    assert causes.costs.unexplained == 0
    assert found.path_s[late] >= DELAY * 1e-9  # the delay is on the critical path
    if what != "ring":
        others = [one.seconds for one in found.delays[1:]]
        assert sum(others) < 0.2 * first.seconds


@pytest.mark.parametrize(
    ("name", "waiting"),
    [
        ("openmpi_chain_4", 3), ("openmpi_ring_5", 4), ("openmpi_bcast_4", 3), ("openmpi_gather_4", 1),
        ("mpich_mixed_4", 3), ("mpich_barrier_4", 3),
    ],
)  # fmt: skip
def test_of_programs_that_were_recorded_too(name: str, waiting: int, tmp_path: Path) -> None:
    """Rank 0 slept for a second: so long each of those waited that depend on it, over up to three hops."""
    with tarfile.open(RECORDED / f"{name}.tar.gz") as packed:
        packed.extractall(tmp_path, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    with open_trace(tmp_path / name, output=tmp_path / "trace.h5") as store:
        causes, found = caused(store)
    first = found.delays[0]
    assert (store.locations[first.location].rank, first.name) == (0, "solve")
    assert first.seconds == pytest.approx(waiting * 1.0, rel=0.05)
    assert found.costs_s.sum() == pytest.approx(found.waits_s.sum())
    assert found.path_s.sum() == pytest.approx((causes.ends.max() - causes.start) / store.ticks_per_second)

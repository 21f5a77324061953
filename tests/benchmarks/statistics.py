"""Statistics of many phases of a large trace: what the notes cost on import, and what they save.

    python -m tests.benchmarks.statistics [--locations 64] [--events 1500000] [--phases 20] [--folder DIR]

A made-up run: every location goes through a call tree of solvers and MPI calls, sends and receives. Printed
are the import with and without notes, the first statistics of the whole run and its phases ("cold": nothing
was read before), and what another number of phases costs after that.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from desktop.core.concurrency import summarise
from desktop.data.causality import Causality
from desktop.data.events import Importer, Location, MessageKind, Region
from desktop.data.matching import links_of, match_in_passing
from desktop.data.statistics import Statistics
from desktop.data.store import Source, StoreWriter, open_store
from desktop.data.utilization import Utilization, build, keep
from desktop.progress import Progress
from tests.digests import PROFILE

MADE = Importer("made", "Made up", "1", lambda p, h: True, lambda p, s, g: None, lambda p: [p])
REGIONS = [
    *(Region(f"solve_{i}", "function", "user") for i in range(12)),
    *(Region(f"MPI_{name}", "point2point", "mpi") for name in ("Send", "Recv", "Isend", "Wait")),
    Region("MPI_Allreduce", "coll_all2all", "mpi"),
]
SEND, RECEIVE = 12, 13
BLOCK = 1 << 18


def events(rng: np.random.Generator, rows: int, begin: int) -> dict[str, np.ndarray]:
    """`rows` (a multiple of 8) of solver, solver, MPI call, MPI call within each other, some 20 us apart."""
    groups = rows // 8
    outer, inner = rng.integers(0, 4, groups), rng.integers(4, 12, groups)
    calls = rng.integers(14, len(REGIONS), (2, groups))
    calls[:, ::2] = [[SEND], [RECEIVE]]
    region = np.stack([outer, inner, calls[0], calls[0], calls[1], calls[1], inner, outer], axis=1)
    kind = np.tile(np.array([0, 0, 0, 1, 0, 1, 1, 1], np.uint8), groups)
    when = begin + np.cumsum(rng.integers(2_000, 40_000, rows))
    return {"time": when, "kind": kind, "region": region.ravel().astype(np.uint32)}


def messages(rng: np.random.Generator, when: np.ndarray, here: int, locations: int) -> dict[str, Any]:
    """For every 16 events a message to the next location and one from that before: in a ring."""
    when = np.stack([when[2::16], when[5::16]], axis=1).ravel()
    peer = np.tile([(here + 1) % locations, (here - 1) % locations], when.size // 2)
    kind = np.tile([MessageKind.SEND, MessageKind.RECV], when.size // 2)
    columns = {"time": when, "kind": kind, "peer": peer, "bytes": rng.integers(8, 1 << 16, when.size)}
    return columns | {name: np.zeros(when.size, np.int64) for name in ("communicator", "tag", "request")}


def write(path: Path, locations: int, rows: int, digests: Sequence[Any], curve: bool) -> float:
    """Processor seconds that the rows took on their way into the file."""
    spent = 0.0
    with StoreWriter(path, Source("made", "made"), MADE, digests) as writer:
        writer.describe(ticks_per_second=1e9)
        for region in REGIONS:
            writer.region(region)
        for here in range(locations):
            writer.location(Location(here, rank=here))
        for here in range(locations):
            rng = np.random.default_rng(here)
            begin, done = 0, 0
            told = []
            while done < rows:
                block = events(rng, min(BLOCK, rows - done), begin)
                begin, done = int(block["time"][-1]), done + block["time"].size
                told.append(messages(rng, block["time"], here, locations))
                since = time.process_time()
                writer.append("events", here, **block)
                spent += time.process_time() - since
            for block in told:
                since = time.process_time()
                writer.append("messages", here, **block)
                spent += time.process_time() - since
        since = time.process_time()
        writer.complete()
        spent += time.process_time() - since
        if curve:
            with links_of(writer) as links:
                for found in match_in_passing(writer):
                    links.add(found)
            keep(writer, Progress())
    return spent


def peak() -> float:
    """Megabytes that the process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(text: str, work: Any) -> Any:
    since, spent = time.perf_counter(), time.process_time()
    found = work()
    since, spent = time.perf_counter() - since, time.process_time() - spent
    print(f"{text:<50}{since:>9.3f} s by the clock, {spent:>8.3f} s of a processor", flush=True)
    return found


def phases(use: Utilization, n: int, seed: int) -> list[tuple[float, float]]:
    """n ranges that follow each other, at times nobody asked for before, and the whole."""
    length = float(use.edges[-1]) * use.unit
    inner = np.sort(np.random.default_rng(seed).uniform(0, length, n - 1))
    return [*pairwise([0.0, *inner.tolist(), length]), (0.0, length)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--locations", type=int, default=64)
    parser.add_argument("--events", type=int, default=1_500_000, help="of each location, a multiple of 16")
    parser.add_argument("--phases", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="where the store goes, for a moment")
    options = parser.parse_args()
    rows = options.events // 16 * 16
    total = rows * options.locations
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "made.h5"
        write(path, 2, 1 << 17, PROFILE, True)  # compiles what large traces need
        with open_store(path) as store:
            Statistics(store).ranges([(0.0, 1e9), (0.1, 0.3)])
        plain = write(path, 1, min(rows, 1 << 20), (), False)
        noted = write(path, 1, min(rows, 1 << 20), PROFILE, False)
        print(f"notes add {1e9 * (noted - plain) / min(rows, 1 << 20):.0f} ns an event to")
        print(f"          {1e9 * plain / min(rows, 1 << 20):.0f} ns for packing and writing it")
        write(path, options.locations, rows, PROFILE, True)
        print(f"{total:.3g} events of {options.locations} locations, {path.stat().st_size / 1e6:.0f} MB")
        with open_store(path) as store:
            use = timed("the curve, as kept on import", lambda: build(store))
            timed("its concurrency, as the window sums it on opening", lambda: summarise(use.curve()))
            fresh = Statistics(store)
            timed(
                f"{options.phases} phases and the whole run, cold",
                lambda: fresh.ranges(phases(use, options.phases, 1), use),
            )
            for n in (options.phases + 1, 5, 2):
                timed(f"then {n} other phases", lambda n=n: fresh.ranges(phases(use, n, n), use))
            timed("the same again", lambda: fresh.ranges(phases(use, 5, 5), use))
            timed("the call tree of the whole run", lambda: fresh.calls((0.0, 1e9), use))
            found = timed("who waited for whom", lambda: Causality(store, use.rules, Progress()))
            print(
                f"{found.messages.sent.size:.3g} messages, {found.calls.begin.size:.3g} calls, "
                f"{found.waits.call.size:.3g} waits; at most {peak():.0f} MB of memory"
            )
            spans = phases(use, options.phases, 1)
            timed(
                "accounts and efficiencies of the same phases",
                lambda: fresh.ranges(spans, use, causality=found),
            )
            timed("those of others", lambda: fresh.ranges(phases(use, 19, 3), use, causality=found))


if __name__ == "__main__":
    main()

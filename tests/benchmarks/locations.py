"""What a location costs: traces of many small locations, imported and described.

``python -m tests.benchmarks.locations [LOCATIONS...]`` writes an OTF2 archive of so many ranks, each with
some steps of a ring, and prints in seconds of processor time how long the import takes and its stages, what
opening and describing the store take, how large it is, and the peak of memory. Every number has a process of
its own; what compiling costs is paid before.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from desktop.data import matching, opening
from desktop.data.info import info
from desktop.data.opening import open_trace
from tests.data_layer.otf2_writer import Event, Place, write

STEPS = 8  # of six records each


def write_archive(folder: Path, ranks: int) -> Path:
    """A ring: compute, send to the right, receive from the left."""

    def events(rank: int) -> list[Event]:
        found = []
        for step in range(STEPS):
            at = 1000 * (step + 1) + rank % 97
            found += [
                Event(at, "Enter", (1,)),
                Event(at + 10, "MpiSend", ((rank + 1) % ranks, 0, 7, 1024)),
                Event(at + 20, "Leave", (1,)),
                Event(at + 300, "Enter", (2,)),
                Event(at + 450, "MpiRecv", ((rank - 1) % ranks, 0, 7, 1024)),
                Event(at + 460, "Leave", (2,)),
            ]
        return found

    class Lazy(Place):
        """Makes its events when they are asked for."""

        def __getattribute__(self, name: str) -> Any:
            return events(self.id) if name == "events" else super().__getattribute__(name)

    # A communicator of all ranks is one record, which must fit into a chunk.
    regions = {0: "main", 1: "MPI_Send", 2: "MPI_Recv"}
    return write(folder, [Lazy(rank) for rank in range(ranks)], regions=regions, chunk=1 << 23)


def measure(anchor: Path, store: Path) -> None:
    """Import, open and describe, with the time of each stage."""
    stages: dict[str, float] = {}

    def timed(home: Any, name: str) -> None:
        plain: Callable[..., Any] = getattr(home, name)

        def watched(*words: Any, **named: Any) -> Any:
            begin = time.process_time()
            try:
                return plain(*words, **named)
            finally:
                stages[name] = stages.get(name, 0.0) + time.process_time() - begin

        setattr(home, name, watched)

    timed(opening, "check_clocks")
    timed(matching.Links, "keep")
    timed(opening.UtilizationWriter, "tell")
    timed(opening.StoreWriter, "complete")
    timed(opening.StoreWriter, "_finish")
    begin = time.process_time()
    open_trace(anchor, output=store, workers=1).close()
    imported = time.process_time() - begin
    begin = time.process_time()
    with open_trace(store) as opened:
        read = time.process_time() - begin
        begin = time.process_time()
        locations = len(info(opened)["locations"])
        described = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"| {locations} | {imported:.2f} | {1e6 * imported / locations:.0f} | {stages['check_clocks']:.2f} | "
        f"{stages['keep'] + stages['tell']:.2f} | {stages['_finish']:.2f} | {read:.2f} | {described:.2f} | "
        f"{store.stat().st_size / locations:.0f} | {peak:.0f} |",
        flush=True,
    )


def main(words: list[str]) -> None:
    if words[:1] == ["measure"]:
        warm, anchor, store = map(Path, words[1:])
        open_trace(warm, output=store.with_name("warm.h5"), workers=1).close()
        measure(anchor, store)
        return
    print("| locations | import s | us each | clocks | links, curve | text | open | info | B each | MiB |")
    print("| ---: " * 10 + "|", flush=True)
    for ranks in map(int, words or ["100", "1000", "10000"]):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            warm, anchor = write_archive(folder / "warm", 4), write_archive(folder / "many", ranks)
            command = [sys.executable, "-m", "tests.benchmarks.locations", "measure"]
            subprocess.run([*command, str(warm), str(anchor), str(folder / "many.h5")], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])

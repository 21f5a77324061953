"""Programs of others: with the recorder they compute the same, and it counts what a counter beside it does.

``python -m tests.benchmarks.mini_apps LAUNCHER COMPILER RANKS PROGRAM [WORD ...]`` runs the program in turns
without and with the recorder, and once with a counter beside it (tests/programs/counter.c, built with the
COMPILER), which wraps the calls by itself. What it prints without its numbers of time is compared, each call
of each rank, messages, collectives, bytes of messages and of one-sided calls. Prints a row of a table; ends
with 1 where one differs.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

from desktop.data import recording
from desktop.data.events import MessageKind
from desktop.data.opening import open_trace
from desktop.data.store import TraceStore
from tests.data_layer.test_recorded import PROGRAMS, told

TURNS = 3
#: Lines that say how long something took, or when it was.
OF_TIME = re.compile(
    r"time|sec|flop|mop|rate|date|:\d\d|bandwidth|latency|speed|elapsed|fom|clock|step\b.*\d|\d{4}-\d\d|%",
    re.IGNORECASE,
)


def main() -> None:
    launcher, compiler, ranks, program, *words = sys.argv[1:]
    command = [*launcher.split(), "-n", ranks, program, *words]
    library = str(recording.recorder())
    with tempfile.TemporaryDirectory() as scratch:
        here = Path(scratch)
        counter = here / "counter.so"
        source = str(PROGRAMS / "counter.c")
        subprocess.run([compiler, "-w", "-O1", "-shared", "-fPIC", "-o", str(counter), source], check=True)
        seconds: dict[str, list[float]] = {"bare": [], "recorded": []}
        said: dict[str, list[str]] = {}
        for turn in range(TURNS):
            said["bare"], used = ran(command, {})
            seconds["bare"].append(used)
            folder = here / f"run{turn}"
            folder.mkdir()
            said["recorded"], used = ran(command, {"LD_PRELOAD": library, recording.FOLDER: str(folder)})
            seconds["recorded"].append(used)
        counts, both = here / "counts", here / "both"
        counts.mkdir()
        both.mkdir()
        preloaded = {
            "LD_PRELOAD": f"{counter} {library}",
            recording.FOLDER: str(both),
            "COUNTED": str(counts),
        }
        ran(command, preloaded)
        wrong = [] if said["bare"] == said["recorded"] else ["results"]
        calls = messages = 0
        with open_trace(both) as store:
            for rank in sorted({location.rank for location in store.locations}):
                found: Counter[str] = Counter()
                for place, location in enumerate(store.locations):
                    if location.rank == rank:  # a thread of it
                        found.update(recorded(store, place))
                counted = dict(row.split() for row in (counts / str(rank)).read_text().splitlines())
                wrong += [
                    f"rank {rank} {name}: {found[name]}, not {number}"
                    for name, number in counted.items()
                    if found[name] != int(number)
                ]
                calls += sum(int(number) for name, number in counted.items() if name.startswith("MPI_"))
                messages += int(counted["sends"])
            if store.report.lossy:
                wrong.append("losses in the trace")
    cost = min(seconds["recorded"]) / min(seconds["bare"]) - 1
    equal = "equal" if not wrong else "; ".join(wrong[:4])
    print(f"| {Path(program).name} | {ranks} | {calls} | {messages} | {equal} | {cost:+.1%} |", flush=True)
    sys.exit(bool(wrong))


def ran(command: list[str], more: dict[str, str]) -> tuple[list[str], float]:
    """What a program prints that is not of time, and the processor-seconds of it and its launcher."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", env={**os.environ, **more}, timeout=300
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{command} ended with {done.returncode}: {done.stderr[-500:]}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    lines = [line for line in done.stdout.splitlines() if not OF_TIME.search(line)]
    # A benchmark's table: only the first one of several columns is no time.
    table = [re.fullmatch(r"\s*([\d.]+)(\s+[\d.]+)*\s*", line) for line in lines]
    pairs = zip(table, lines, strict=True)
    return [line if row is None else row[1] if row[2] else "number" for row, line in pairs], used


def recorded(store: TraceStore, place: int) -> dict[str, int]:
    """The same of a recording: calls by name, messages, collectives."""
    found = dict.fromkeys((region.name for region in store.regions), 0)
    names = list(found)
    for kind, region in store.blocks("events", place, "kind", "region"):
        for number, times in enumerate(np.bincount(region[kind == 0], minlength=len(names)).tolist()):
            found[names[number]] += times
    found["sends"], found["bytes"] = told(store, place, MessageKind.SEND, MessageKind.ISEND)
    found["receives"], _ = told(store, place, MessageKind.RECV, MessageKind.IRECV)
    found["collectives"] = store.rows("collectives", place)
    one_sided = [i for i, text in enumerate(store.texts) if text.startswith("one-sided")]
    found["moved"] = round(
        sum(
            float(value[np.isin(metric, one_sided)].sum())
            for metric, value in store.blocks("metrics", place, "metric", "value")
        )
    )
    return found


if __name__ == "__main__":
    main()

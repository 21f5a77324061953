"""Dimemas as an oracle: its trace (``.dim``) of a stored run, its configuration, and what it says.

    python -m tests.oracles.dimemas PATH/TO/Dimemas TRACE...

prints the duration that Dimemas simulates and the one that is predicted here, on the ideal network and with
10 us and 100 MB/s, as a table. Dimemas (Barcelona Supercomputing Center, LGPL, its public sources,
version 5.5.0) is built from its sources; it is no part of the tests, which keep what it said as facts
(``tests/data/dimemas.json``).

Written from Dimemas' sources: bursts between calls of MPI, messages in the order of their records. Sends of
calls that begin one (MPI_Isend, which OTF does not tell from others), and those that share their call with
others (MPI_Sendrecv, a broadcast of PICL), are immediate: nothing waits there. Collective operations: the
defaults of Dimemas, in which all members wait for all, and the LOG model.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from desktop.data.classify import is_communication, mpi_call
from desktop.data.events import MessageKind
from desktop.data.store import TraceStore

#: Dimemas' numbers of operations.
OPERATIONS = {
    name: k
    for k, name in enumerate(
        [
            "barrier",
            "bcast",
            "gather",
            "gatherv",
            "scatter",
            "scatterv",
            "allgather",
            "allgatherv",
            "alltoall",
            "alltoallv",
            "reduce",
            "allreduce",
            "reduce_scatter",
            "reduce_scatter_block",
            "scan",
            "alltoallw",
        ]
    )
}
_CONFIGURATION = """\
"wide area network information" {{"", 1, 0, 4, 0.0, 0.0, 1}};;
"environment information" {{"", 0, "", 1024, {bandwidth}, {buses}, 3}};;
"multi node information" {{0, 1024, "", 32, 1.0, 0.0, 0.0, 0, 0, 0, {latency}, 0, 0, 0.0}};;
"predefined mapping information" {{"1 TASKS_PER_NODE"}};;
"configuration files" {{"", "", "", ""}};;
"file system parameters" {{0.0, 0.0, 8.0, 0, 1.0}};;
"""


def write(store: TraceStore, output: Path) -> None:
    """The run as Dimemas reads it; a location is a task of one thread."""
    tasks = [i for i, at in enumerate(store.locations) if at.kind == "cpu" and at.first is not None]
    number = {location: k for k, location in enumerate(tasks)}
    origin = min(store.locations[i].clock(store.repair).common(store.locations[i].first) for i in tasks)
    members: dict[int, list[int]] = {}
    for i in tasks:
        for (communicators,) in store.blocks("collectives", i, "communicator"):
            for communicator in np.unique(communicators).tolist():
                members.setdefault(communicator, []).append(number[i])
    known = {c: k for k, (c, found) in enumerate(sorted(members.items()), 2) if len(found) > 1}
    lines = [f"d:1:1:{len(tasks)}:" + ":".join(map(str, range(len(tasks))))]
    lines += [f"d:1:{k}:{len(members[c])}:" + ":".join(map(str, members[c])) for c, k in known.items()]
    head = '#DIMEMAS:"{}":1,{:012}:{}({}),{},0,0\n'
    facts = len(tasks), ",".join("1" * len(tasks)), 1 + len(known)
    at = len(head.format(output.name, 0, *facts))
    for line in lines:
        at += len(line) + 1
    places = []
    for i in tasks:
        places.append(at)
        found = _task(store, i, number, known, origin)
        lines += found
        at += sum(len(line) + 1 for line in found)
    lines += [f"s:{k}:{place}" for k, place in enumerate(places)]
    text = head.format(output.name, at, *facts) + "\n".join(lines) + "\n"
    output.write_text(text, encoding="ascii")


def _task(store: TraceStore, i: int, number: dict[int, int], known: dict[int, int], origin: int) -> list[str]:
    clock = store.locations[i].clock(store.repair)
    calls = _calls(store, i)
    records: list[tuple[int, int, str]] = []  # time, order, text without the task
    columns = "time", "kind", "peer", "communicator", "tag", "bytes", "request"
    rows = list(zip(*(store.column("messages", name, i).tolist() for name in columns), strict=True))
    sent = [time for time, kind, *_ in rows if kind in (MessageKind.SEND, MessageKind.ISEND)]
    received = [time for time, kind, *_ in rows if kind in (MessageKind.RECV, MessageKind.IRECV)]
    coming: dict[int, list[tuple[int, int, int]]] = {}
    for _, kind, peer, communicator, tag, size, request in reversed(rows):
        if kind == MessageKind.IRECV:
            coming.setdefault(request, []).append((number[peer], size, _tag(communicator, tag)))
    for time, kind, peer, communicator, tag, size, request in rows:
        if kind in (MessageKind.SEND, MessageKind.ISEND):
            call = next((c for c in calls if c[0] <= time <= c[1]), (time, time, ""))
            beside = [t for t in sent if call[0] <= t <= call[1]]
            later = kind == MessageKind.ISEND or any(call[0] <= t <= call[1] for t in received)
            later |= len(beside) > 1 or call[2].startswith("i")
            records.append(
                (
                    time,
                    0,
                    f"2:{{}}:0:{number[peer]}:-1:{size}:{_tag(communicator, tag)}:1:{2 if later else 0}",
                )
            )
        elif kind == MessageKind.IRECV_POST and coming.get(request):
            source, size, tag = coming[request][-1]
            records.append((time, 1, f"3:{{}}:0:{source}:-1:{size}:{tag}:1:1"))
        elif kind == MessageKind.IRECV:
            source, size, tag = coming[request].pop()
            posted = any(k == MessageKind.IRECV_POST and r == request for _, k, *_, r in rows)
            records.append((time, 2, f"3:{{}}:0:{source}:-1:{size}:{tag}:1:{2 if posted else 0}"))
        elif kind == MessageKind.RECV:
            records.append((time, 2, f"3:{{}}:0:{number[peer]}:-1:{size}:{_tag(communicator, tag)}:1:0"))
    names = ("begin", "operation", "communicator", "root", "sent", "received")
    for begin, operation, communicator, root, sent, got in zip(
        *(store.column("collectives", name, i).tolist() for name in names), strict=True
    ):
        text = store.texts[operation]
        code = OPERATIONS.get(mpi_call(text) or text.lower())
        if code is not None and communicator in known:
            is_root = int(root == i)
            records.append((begin, 3, f"10:{{}}:0:{code}:{known[communicator]}:{is_root}:0:{sent}:{got}:1"))
    records.sort(key=lambda record: record[:2])
    found = [f"1:{number[i]}:0:0.000000000"]  # or it would not be simulated
    task, unit = number[i], 1.0 / store.ticks_per_second
    last, at = clock.common(store.locations[i].last), 0
    free_from = origin

    def burst(until: int) -> None:
        if until > free_from:
            found.append(f"1:{task}:0:{(until - free_from) * unit:.9f}")

    for begin, end in [*((clock.common(a), clock.common(b)) for a, b, _ in calls), (last, last)]:
        while at < len(records) and clock.common(records[at][0]) < begin:  # outside of all calls
            when = clock.common(records[at][0])
            burst(when)
            free_from = max(free_from, when)
            found.append(records[at][2].format(task))
            at += 1
        burst(begin)
        free_from = max(free_from, end)
        while at < len(records) and clock.common(records[at][0]) <= end:
            found.append(records[at][2].format(task))
            at += 1
    return found


def _tag(communicator: int, tag: int) -> int:
    return communicator % 1000 * 100_000 + tag % 100_000


def _calls(store: TraceStore, i: int) -> list[tuple[int, int, str]]:
    """Begin and end of the outermost calls of communication, as recorded, and what MPI calls them."""
    speaks = [is_communication(region) for region in store.regions]
    depth, begin, name, found = 0, 0, "", []
    for times, kinds, regions in store.blocks("events", i, "time", "kind", "region"):
        for time, kind, region in zip(times.tolist(), kinds.tolist(), regions.tolist(), strict=True):
            if not speaks[region]:
                continue
            depth += 1 if kind == 0 else -1
            if kind == 0 and depth == 1:
                begin, name = time, mpi_call(store.regions[region].name)
            elif kind == 1 and depth == 0:
                found.append((begin, time, name))
    return found


def simulate(
    program: Path,
    trace: Path,
    latency_s: float = 0.0,
    bandwidth: float = 0.0,
    buses: int = 0,
    eager: int = 10**9,
) -> float:
    """Seconds that Dimemas simulates; `bandwidth` in MB/s, 0 is infinite."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "machine.cfg"
        text = _CONFIGURATION.format(bandwidth=bandwidth, buses=buses, latency=f"{latency_s:.9f}")
        place.write_text("#DIMEMAS_CONFIGURATION\n\n" + text, encoding="ascii")
        command = [str(program), "-S", str(eager), "--dim", str(trace), str(place)]
        told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    found = re.search(r"Execution time:\s*([\d.]+)", told.stdout)
    if found is None:
        raise RuntimeError(told.stdout[-500:] + told.stderr[-500:])
    return float(found[1])


def main(words: list[str]) -> None:
    from desktop.core.changes import Changes
    from desktop.core.machine import IDEAL, Machine
    from desktop.data.opening import open_trace
    from desktop.data.utilization import build
    from desktop.data.whatif import Rerun

    program, facts = Path(words[0]), {}
    print(f"{'trace':<44}{'':<12}{'Dimemas s':>14}{'here s':>14}{'%':>9}")
    for name in words[1:]:
        with tempfile.TemporaryDirectory() as folder, open_trace(Path(name)) as store:
            dim = Path(folder) / "run.dim"
            write(store, dim)
            run = Rerun(store, build(store))
            facts[Path(name).name] = found = {}
            for what, latency, wide, eager in (
                ("ideal", 0.0, 0.0, 10**9),
                ("network", 1e-5, 100.0, 10**9),
                ("rendezvous", 1e-5, 100.0, 0),
            ):
                theirs = simulate(program, dim, latency, wide, eager=eager)
                on = (
                    IDEAL
                    if what == "ideal"
                    else Machine(
                        latency,
                        wide * 2.0**20,  # what it calls a megabyte
                        np.inf if eager else 0,
                    )
                )
                ours = run.predict(Changes(network=on)).duration_s
                found[what] = theirs
                off = 100 * (ours / theirs - 1)
                print(f"{Path(name).name:<44}{what:<12}{theirs:>14.9f}{ours:>14.9f}{off:>9.4f}")
    print(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])

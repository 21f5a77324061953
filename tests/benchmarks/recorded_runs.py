"""Random programs with and without the recorder, and recorded ones that are killed.

``python -m tests.benchmarks.recorded_runs SECONDS [SEED] [BIN ...]`` goes on for so long, with all libraries
of MPI on the machine and those whose ``mpicc`` and ``mpirun`` are in the folders BIN. Of each random program
(tests/programs/results.c), what all ranks compute has to be the same; of each that was killed at a random
moment (one rank, all ranks, or its launcher too), what was recorded has to open, and to hold all calls that
the files do. Prints one line per library; ends with 1 where anything was wrong.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil

from desktop.data import recording
from desktop.data.importers.recorded import COMMUNICATOR, HEAD, RECORD, files
from desktop.data.opening import open_trace
from desktop.errors import DesktopError
from tests.data_layer.test_recorded import PROGRAMS, Mpi, libraries

#: Seconds that one program may take.
LIMIT = 120
#: Random programs that one process is.
PROGRAMS_EACH = 10


def main() -> None:
    os.environ |= {
        f"{name}_ALLOW_RUN_AS_ROOT{more}": "1" for name in ("OMPI", "PRTE") for more in ("", "_CONFIRM")
    }
    draw = random.Random(sys.argv[2] if len(sys.argv) > 2 else None)
    more = [
        Mpi(place, f"{place}/mpicc", (f"{place}/mpirun", *(("--oversubscribe",) if "open" in place else ())))
        for place in sys.argv[3:]
    ]
    found: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        here, until = Path(folder), time.monotonic() + float(sys.argv[1])
        every = []
        for number, mpi in enumerate([*libraries(), *more]):
            program = here / f"results{number}"
            subprocess.run(
                [mpi.compiler, "-w", "-O1", "-o", str(program), str(PROGRAMS / "results.c")], check=True
            )
            every.append((mpi, str(program), found.setdefault(mpi.name, Counter())))
        count = 0
        while time.monotonic() < until:
            for mpi, program, told in every:
                count += 1
                told[compared(mpi, program, draw, here / f"run{count}")] += PROGRAMS_EACH
                told[killed(mpi, program, draw, here / f"killed{count}")] += 1
    for name, told in found.items():
        print(f"{name}: {', '.join(f'{number} {what}' for what, number in sorted(told.items()))}")
    sys.exit(any("WRONG" in what for told in found.values() for what in told))


def compared(mpi: Mpi, program: str, draw: random.Random, folder: Path) -> str:
    """One random program, bare and recorded."""
    words = [program, str(draw.randrange(2**31)), str(draw.randint(5, 40)), str(PROGRAMS_EACH)]
    command = [*mpi.launcher, "-n", str(draw.randint(1, 4)), *words]
    said = []
    for more in ({}, {"LD_PRELOAD": str(recording.recorder()), recording.FOLDER: str(folder)}):
        folder.mkdir(exist_ok=True)
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, env={**os.environ, **more}, timeout=LIMIT
            )
        except subprocess.TimeoutExpired:
            print("did not end:", *command, more)
            return "programs that did not end, WRONG"
        said.append((done.returncode, sorted(done.stdout.splitlines())))
    if said[0][0] or not said[0][1]:
        print(said[0], *command)
        return "programs that failed without the recorder"
    if said[0] != said[1] or not any(folder.glob("*.pwr")):
        print(said, *command)
        return "programs that computed otherwise, WRONG"
    return "programs equal"


def killed(mpi: Mpi, program: str, draw: random.Random, folder: Path) -> str:
    """One that goes on for ever, and is killed."""
    folder.mkdir()
    command = [*mpi.launcher, "-n", str(draw.randint(1, 3)), program, str(draw.randrange(2**31)), str(2**30)]
    environment = {"LD_PRELOAD": str(recording.recorder()), recording.FOLDER: str(folder)}
    how, after = draw.choice(("one", "all", "group")), draw.uniform(0, 2.5)
    child = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(after)
    every = psutil.Process(child.pid).children(recursive=True)
    ranks = [one for one in every if of_program(one, program)]
    if how == "one" and ranks:
        ranks = [draw.choice(ranks)]
    for one in [*(every if how == "group" or not ranks else ranks)]:
        with suppress(psutil.Error):
            one.send_signal(signal.SIGKILL)
    if how == "group" or not ranks:
        child.kill()
    try:
        child.wait(LIMIT)
    except subprocess.TimeoutExpired:
        print("its launcher went on:", *command)
        child.kill()
        child.wait()
    psutil.wait_procs(every, 20)
    for one in every:
        with suppress(psutil.Error):
            one.kill()
    psutil.wait_procs(every, 20)
    if not files(folder):
        return "kills before the first record"
    heads = [np.fromfile(path, HEAD, 1)[0] for path in files(folder) if path.stat().st_size >= HEAD.itemsize]
    expected = sum(calls_in(folder, head) for head in heads if bytes(head["magic"]))
    try:
        with open_trace(folder) as store:
            read = sum(int(store.rows("events", place)) // 2 for place in range(len(store.locations)))
    except DesktopError as error:
        if not expected:
            return "kills before the first record"
        print("does not open:", error, *command, how, after)
        return "killed that did not open, WRONG"
    if read < expected:
        print(f"{read} calls of {expected}", *command, how, after)
        return "killed with calls missing, WRONG"
    return f"killed ({how}) whole"


def of_program(process: psutil.Process, program: str) -> bool:
    with suppress(psutil.Error):
        return process.cmdline()[:1] == [program]
    return False


def calls_in(folder: Path, head: np.void) -> int:
    """Calls that the body of a file has, by its head."""
    (path,) = folder.glob(f"{head['rank']}.{head['thread']}.*pwr")
    start = int(head["header"]) + int(head["tail"])
    with path.open("rb") as stream:
        stream.seek(start)
        body = np.fromfile(stream, RECORD, int(head["stored"]))
    assert body.size == int(head["stored"])
    return int((body["call"] < COMMUNICATOR).sum())


if __name__ == "__main__":
    main()

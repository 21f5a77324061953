"""What the window costs beside a run: ``python -m tests.benchmarks.watching [--other CHECKOUT]``.

A process writes what `phasewright record` would of RANKS ranks with CALLS calls a second each, in real time;
the real window follows it, under Xvfb where that is installed, else offscreen. The first seconds are left
out. Prints looks a second, processor time of a look, of the window's thread and of all others together, and
the part of a core. With the folder of another checkout windows of both follow the same run at the same time,
so that what else the machine does meets both.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from desktop.data.importers.recorded import HEAD, RECORD

ROOT = Path(__file__).parent.parent.parent
HEADER = TAIL = 1 << 16
CALLS = (
    "MPI_Init",
    "MPI_Allreduce",
    "MPI_Isend",
    "MPI_Irecv",
    "MPI_Waitall",
    "MPI_Bcast",
    "MPI_Send",
    "MPI_Recv",
)
#: Seconds between two appearances of the writer.
STEP = 0.01
#: The window, of whatever checkout it is started in: for each line of its input it says how many pictures it
#: has shown, and the nanoseconds of processor time of its thread and of all others.
WINDOW = """
import json, os, sys, threading
from pathlib import Path
from desktop.ui import frame, watch_page, windows
shown, show = [0], watch_page.WatchPage._show_snapshot
def counted(page, old, new):
    shown[0] += new.followed is not old.followed
    show(page, old, new)
watch_page.WatchPage._show_snapshot = counted
wide, high = map(int, sys.argv[2].split("x"))
made = frame.Frame.__init__
def sized(window, *args, **named):
    made(window, *args, **named)
    window.resize(wide, high)
    window.keep_on_screen = lambda: None
frame.Frame.__init__ = sized
def answer():
    for _ in sys.stdin:
        tasks = Path("/proc/self/task").iterdir()
        spent = {task.name: int((task / "schedstat").read_text().split()[0]) for task in tasks}
        print(json.dumps([shown[0], spent.pop(str(os.getpid())), sum(spent.values())]), flush=True)
    os._exit(0)
threading.Thread(target=answer, daemon=True).start()
windows.run([], windows.Start(safe=True), watch=(Path(sys.argv[1]), None))
"""


class Rank:
    """The file of one rank: its head and tail as the recorder maps them, its body behind."""

    def __init__(self, folder: Path, rank: int, size: int, start: int) -> None:
        names = ("\n".join(CALLS) + "\n").encode()
        self.path = folder / f"{rank}.0.pwr"
        self._file = self.path.open("w+b")
        self._file.truncate(HEADER + TAIL)
        self._map = mmap.mmap(self._file.fileno(), HEADER + TAIL)
        self._head = np.frombuffer(self._map, HEAD, 1)
        self._tail = np.frombuffer(self._map, RECORD, TAIL // RECORD.itemsize, HEADER)
        self._map[HEAD.itemsize : HEAD.itemsize + len(names)] = names
        for name, value in {
            "version": 1, "header": HEADER, "rank": rank, "size": size, "start": start, "tick0": start,
            "monotonic0": start, "real0": start, "tick1": start + 10**8, "monotonic1": start + 10**8,
            "real1": start + 10**8, "host": b"here", "program": b"app", "tail": TAIL, "names": len(names),
            "magic": b"PHASEREC",
        }.items():  # fmt: skip
            self._head[name] = value

    def add(self, records: Any) -> None:
        """Records as they are made; a full tail goes to the end of the body."""
        head = self._head
        while records.size:
            at = int(head["records"][0] - head["stored"][0])
            if at == self._tail.size:
                self._file.seek(0, os.SEEK_END)
                self._file.write(self._tail.tobytes())
                self._file.flush()
                head["stored"], at = head["records"], 0
            part = records[: self._tail.size - at]
            self._tail[at : at + part.size] = part
            head["records"] += np.uint64(part.size)
            records = records[part.size :]


def calls_between(rank: int, first: int, last: int, start: int, each: int) -> Any:
    """Calls `first` to `last` of a rank, one each `each` ns, of a program whose efficiency changes every few
    seconds and falls within some of its phases."""
    number = np.arange(first, last)
    random = np.random.default_rng([rank, first])
    when = number * (each * 1e-9)
    stage = (when / 3.1).astype(int)
    computed = np.array([0.9, 0.55, 0.75, 0.3, 0.85, 0.6])[stage % 6] - 0.05 * (stage % 3 == 1) * (when % 3.1)
    computed = np.clip(computed + 0.02 * rank / 8 + random.normal(0, 0.05, number.size), 0.02, 0.98)
    made = np.zeros(number.size, RECORD)
    made["begin"] = start + number * each + (computed * each).astype(int)
    made["duration"] = ((1 - computed) * each).astype(int)
    made["call"] = np.where(number == 0, 0, 1 + random.integers(0, len(CALLS) - 1, number.size))
    made["peer"], made["amount"] = (rank + 1) % 8, 1024
    return made


def write(folder: Path, ranks: int, calls: int) -> None:
    """Record until killed."""
    start, each, done = time.monotonic_ns(), 10**9 // calls, 0
    files = [Rank(folder, rank, ranks, start) for rank in range(ranks)]
    while True:
        time.sleep(STEP)
        over = (time.monotonic_ns() - start) // each
        for rank, file in enumerate(files):
            file.add(calls_between(rank, done, over, start, each))
        done = over


@contextmanager
def display(size: str) -> Iterator[dict[str, str]]:
    """Where windows are shown, as variables of the environment."""
    if shutil.which("Xvfb") is None:
        yield {"QT_QPA_PLATFORM": "offscreen"}
        return
    out, into = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(into), "-screen", "0", f"{size}x24", "-nolisten", "tcp"],
        pass_fds=[into], stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(into)
    with os.fdopen(out) as number:
        name = f":{number.readline().strip()}"
    yield {"DISPLAY": name, "QT_QPA_PLATFORM": "xcb"}
    server.kill()
    server.wait()


@contextmanager
def window(checkout: Path, folder: Path, size: str) -> Iterator[subprocess.Popen[str]]:
    """A window of a checkout that follows a folder."""
    with display(size) as shown:
        made = subprocess.Popen(
            [sys.executable, "-c", WINDOW, str(folder), size], cwd=checkout, text=True,
            env=os.environ | shown, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        yield made
        made.kill()
        made.wait()


def asked(process: subprocess.Popen[str]) -> np.ndarray:
    """(4,) seconds now, pictures shown, seconds of processor time of its thread and of all others."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    looks, main, others = json.loads(process.stdout.readline())
    return np.array([time.monotonic(), looks, main * 1e-9, others * 1e-9])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--other", type=Path, help="another checkout, measured at the same time")
    parser.add_argument("--size", default="1366x768")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--calls", type=int, default=2000, help="a second, of each rank")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--warm-up", type=float, default=20.0)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write is not None:
        write(options.write, options.ranks, options.calls)
        return
    checkouts = [*([options.other] if options.other else []), ROOT]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        words = ["--write", str(folder), "--ranks", str(options.ranks), "--calls", str(options.calls)]
        writer = subprocess.Popen([sys.executable, "-m", "tests.benchmarks.watching", *words], cwd=ROOT)
        stack.callback(writer.wait)
        stack.callback(writer.kill)
        windows = [stack.enter_context(window(path, folder, options.size)) for path in checkouts]
        while any(asked(one)[1] < 2 for one in windows):  # started, and kernels loaded
            time.sleep(0.5)
        time.sleep(options.warm_up)
        before = [asked(one) for one in windows]
        time.sleep(options.seconds)
        after = [asked(one) for one in windows]
    print(f"load {os.getloadavg()[0]:.1f}")
    print(
        "| checkout | looks a second | window's thread (ms a look) | others (ms) | all (ms) | of a core (%) |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for path, a, b in zip(checkouts, before, after, strict=True):
        passed, looks, main, others = b - a
        each = [1000 * v / looks for v in (main, others, main + others)]
        print(
            f"| {path.resolve().name} | {looks / passed:.2f} | {' | '.join(f'{v:.1f}' for v in each)} "
            f"| {100 * (main + others) / passed:.2f} |"
        )


if __name__ == "__main__":
    main()

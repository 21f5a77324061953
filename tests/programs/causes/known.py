"""The programs of `causes.c`: with what they are run, and what their causes are.

    python -m tests.programs.causes.known [NAME ...]      records them anew, into tests/data/causes

Needs Open MPI. What is recorded differs each time by what the machine does beside.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from desktop.data import recording
from desktop.data.importers.recorded import COMMUNICATOR, HEAD, MEMBERS, RECORD, TEXT

SOURCE = Path(__file__).with_name("causes.c")
DATA = Path(__file__).parents[2] / "data" / "causes"


@dataclass(frozen=True)
class Known:
    """`causes`: kind, region and rank (-1: none in particular) of each, the one that loses most first.

    cut : what was before the end of the first barrier is left out, as if the recording had begun there: a
        start of 0.3 s is little in a long run, and much in one whose trace is small.
    """

    name: str
    causes: tuple[tuple[str, str, int], ...]
    ranks: int
    steps: int
    grain_ms: float
    noise: float = 0.02
    seed: int = 1
    cut: bool = True
    options: tuple[str, ...] = ()


_TCP = ("--mca", "btl", "tcp,self")
IMBALANCE = ("imbalance", "relax", -1)
PIPELINE = ("serial", "solve_block", -1)
LATE = ("late sender", "update_inner", -1)
ROOT = ("late root", "choose_pivot", 0)
SMALL = ("small messages", "MPI_Sendrecv", -1)
LARGE = ("bandwidth", "MPI_Sendrecv", -1)
NOISE = ("noise", "advance", -1)
WRITING = ("I/O", "fwrite", 0)
LOCK = ("lock", "pthread_mutex_lock", -1)
MASTER = ("master", "choose_task", 0)
START = ("start", "", -1)

SINGLE = (
    Known("imbalance", (IMBALANCE,), 8, 60, 20),
    Known("serial_pipeline", (PIPELINE,), 8, 40, 20),
    Known("late_sender", (LATE,), 8, 80, 20),
    Known("late_root", (ROOT,), 8, 60, 30),
    Known("small_messages", (SMALL,), 4, 40, 3, options=_TCP),
    Known("bandwidth", (LARGE,), 4, 40, 10),
    Known("barrier_noise", (NOISE,), 8, 80, 20),
    Known("io_rank_0", (WRITING,), 8, 60, 30),
    Known("lock", (LOCK,), 2, 60, 20, cut=False),
    Known("master", (MASTER,), 8, 80, 10),
    Known("start_up", (START,), 8, 10, 20, cut=False),
    Known("slow_rank", (("slow rank", "relax", 2),), 8, 60, 30),
)
DOUBLE = (
    Known("imbalance_and_io", (IMBALANCE, WRITING), 8, 60, 20),
    Known("pipeline_and_root", (PIPELINE, ROOT), 8, 20, 15),
    Known("slow_and_noise", (("slow rank", "relax", 1), NOISE), 8, 60, 20),
    Known("master_and_start_up", (START, MASTER), 8, 10, 20, cut=False),
    Known("bandwidth_and_imbalance", (LARGE, IMBALANCE), 4, 20, 150),
    Known("small_and_late", (SMALL, LATE), 4, 30, 3, options=_TCP),
    Known("lock_and_slow", (LOCK, ("slow rank", "relax", 1)), 8, 50, 20),
)
PROGRAMS = SINGLE + DOUBLE


def held_back() -> tuple[Known, ...]:
    """The same programs with other ranks, lengths, noise and seeds; not looked at while rules were made."""
    chance = np.random.default_rng(20261123)
    found = []
    for one in PROGRAMS:
        ranks = int(chance.choice([one.ranks + 2, one.ranks * 2])) if one.ranks > 2 else 3
        found.append(
            replace(
                one,
                ranks=min(ranks, 16),
                steps=max(int(one.steps * chance.uniform(0.6, 0.9)), 6),
                grain_ms=round(one.grain_ms * chance.uniform(0.7, 1.5), 2),
                noise=round(float(chance.uniform(0.03, 0.15)), 3),
                seed=int(chance.integers(2, 1000)),
            )
        )
    return tuple(found)


def cut(file: Path) -> None:
    """Leave out what is before the end of the first barrier."""
    raw = bytearray(file.read_bytes())
    head = np.frombuffer(raw, HEAD, 1)
    names = bytes(raw[HEAD.itemsize : HEAD.itemsize + int(head["names"][0])]).split(b"\n")
    barrier = names.index(b"MPI_Barrier")
    first, tail = int(head["header"][0]), int(head["tail"][0])
    stored, count = int(head["stored"][0]), int(head["records"][0])
    body = np.frombuffer(raw, RECORD, stored, first + tail)
    records = np.concatenate([body, np.frombuffer(raw, RECORD, count - stored, first)])
    at = int(np.flatnonzero(records["call"] == barrier)[0])
    defines = np.isin(records["call"][: at + 1], (COMMUNICATOR, MEMBERS, TEXT))
    kept = np.concatenate([records[: at + 1][defines], records[at + 1 :]])
    head["start"] = records["begin"][at] + records["duration"][at]
    head["records"] = head["stored"] = kept.size
    file.write_bytes(bytes(raw[:first]) + bytes(tail) + kept.tobytes())


def build(folder: Path) -> Path:
    """The programs, compiled."""
    program = folder / "causes"
    command = ["mpicc.openmpi", "-O1", "-rdynamic", "-o", str(program), str(SOURCE), "-lm", "-lpthread"]
    subprocess.run(command, check=True)
    return program


def record(one: Known, program: Path, folder: Path) -> None:
    """Run and record it into `folder`, which is made."""
    words = (one.name, one.seed, one.steps, one.grain_ms, one.noise)
    launcher = ["mpirun.openmpi", "--oversubscribe", *one.options, "-n", str(one.ranks)]
    done = recording.record([*launcher, str(program), *map(str, words)], folder)
    assert done.code == 0, one.name
    for file in sorted(folder.glob("*.pwr")):
        if one.cut:
            cut(file)
        with file.open("r+b") as stream:  # nobody has to know on what machine it was
            for field in ("host", "program"):
                stream.seek(HEAD.fields[field][1])
                stream.write((b"node" if field == "host" else b"causes").ljust(HEAD[field].itemsize, b"\0"))


def pack(folder: Path, target: Path) -> None:
    """A small archive without times and owners."""
    with tarfile.open(target, "w:xz", preset=9) as tar:
        for file in sorted(folder.iterdir()):
            about = tarfile.TarInfo(f"{target.name.removesuffix('.tar.xz')}/{file.name}")
            about.size = file.stat().st_size
            tar.addfile(about, io.BytesIO(file.read_bytes()))


def main(names: list[str]) -> None:
    for kind in ("OMPI", "PRTE"):
        os.environ |= {f"{kind}_ALLOW_RUN_AS_ROOT": "1", f"{kind}_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with tempfile.TemporaryDirectory() as place:
        program = build(Path(place))
        for prefix, programs in (("", PROGRAMS), ("held_back_", held_back())):
            for one in programs:
                name = f"{prefix}{one.name}"
                if not names or name in names:
                    record(one, program, Path(place) / name)
                    pack(Path(place) / name, DATA / f"{name}.tar.xz")
                    print(name, (DATA / f"{name}.tar.xz").stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1:])

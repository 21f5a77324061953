"""Real runs of the programs of `phased.c`, whose phases the program itself told.

    python -m tests.programs.phased.known [NAME ...]      records them anew, into tests/data/phased

Needs Open MPI and MPICH. What is recorded differs each time by what the machine does beside. Each archive
holds what the recorder wrote, MPI calls only, from the end of the first barrier on, and ``truth.json``:
labels and seconds since then of the boundaries.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from desktop.data import recording
from desktop.data.importers.recorded import HEAD, RecordedClock
from tests.programs.causes.known import cut, pack

SOURCE = Path(__file__).with_name("phased.c")
DATA = Path(__file__).parents[2] / "data" / "phased"
TRUTH = "truth.json"


@dataclass(frozen=True)
class Run:
    """Of which program, on how many ranks, by which library of MPI."""

    program: str
    ranks: int
    noise: float
    seed: int
    library: str = "openmpi"

    @property
    def name(self) -> str:
        return f"{self.program}_{self.ranks}"


RUNS = (
    Run("pipeline", 8, 0.05, 11), Run("grids", 8, 0.1, 12), Run("farm", 8, 0.1, 13), Run("lu", 6, 0.05, 14),
    Run("fft", 4, 0.05, 15), Run("multigrid", 16, 0.05, 16), Run("irregular", 12, 0.1, 17),
    Run("checkpoints", 10, 0.1, 18), Run("ring", 6, 0.2, 19), Run("coupled", 8, 0.1, 20),
    Run("pipeline", 5, 0.2, 21, "mpich"), Run("grids", 4, 0.2, 22, "mpich"), Run("farm", 5, 0.2, 23, "mpich"),
    Run("fft", 8, 0.15, 25, "mpich"), Run("multigrid", 8, 0.1, 26, "mpich"),
    Run("coupled", 4, 0.2, 30, "mpich"),
)  # fmt: skip


def build(folder: Path, library: str) -> Path:
    """The programs, compiled."""
    program = folder / f"phased_{library}"
    subprocess.run([f"mpicc.{library}", "-O1", "-o", str(program), str(SOURCE), "-lm"], check=True)
    return program


def told(files: list[Path], start_ns: int) -> list[tuple[str, float]]:
    """What ranks wrote: labels, and seconds since the recording's start."""
    times: dict[tuple[str, str], list[int]] = {}
    for file in files:
        for line in file.read_text().splitlines():
            label, which, ns = line.rsplit(" ", 2)
            times.setdefault((label, which), []).append(int(ns) - start_ns)
    pick = {"first": min, "last": max, "median": np.median}
    return sorted(
        ((label, float(pick[which](ns)) / 1e9) for (label, which), ns in times.items()),
        key=lambda one: one[1],
    )


def record(one: Run, program: Path, folder: Path) -> None:
    """Run and record it into `folder`, which is made."""
    said = folder.parent / f"{folder.name}.said"
    said.mkdir()
    launcher = [f"mpirun.{one.library}", "-n", str(one.ranks)]
    launcher += ["--oversubscribe"] if one.library == "openmpi" else []
    words = (one.program, one.seed, one.noise, said / "rank")
    done = recording.record([*launcher, str(program), *map(str, words)], folder)
    assert done.code == 0, one.name
    files = sorted(folder.glob("*.pwr"))
    for file in files:
        cut(file)
        with file.open("r+b") as stream:  # nobody has to know on what machine it was
            for field in ("host", "program"):
                stream.seek(HEAD.fields[field][1])
                stream.write((b"node" if field == "host" else b"phased").ljust(HEAD[field].itemsize, b"\0"))
    heads = [np.frombuffer(file.read_bytes(), HEAD, 1)[0] for file in files]
    clock = RecordedClock(heads)
    start = min(int(clock.of(np.array([head["start"]], "u8"))[0]) for head in heads)
    truth = told(sorted(said.iterdir()), start)
    (folder / TRUTH).write_text(json.dumps([[label, round(t, 6)] for label, t in truth], indent=0) + "\n")


def taken(archive: Path, folder: Path) -> tuple[Path, list[tuple[str, float]]]:
    """The recording in an archive, and its boundaries."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    place = folder / archive.name.removesuffix(".tar.xz")
    truth = json.loads((place / TRUTH).read_text())
    (place / TRUTH).unlink()
    return place, [(str(label), float(t)) for label, t in truth]


def main(names: list[str]) -> None:
    for kind in ("OMPI", "PRTE"):
        os.environ |= {f"{kind}_ALLOW_RUN_AS_ROOT": "1", f"{kind}_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    DATA.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        built = {library: build(Path(place), library) for library in ("openmpi", "mpich")}
        for one in RUNS:
            if names and one.name not in names:
                continue
            record(one, built[one.library], Path(place) / one.name)
            pack(Path(place) / one.name, DATA / f"{one.name}.tar.xz")
            print(one.name, (DATA / f"{one.name}.tar.xz").stat().st_size, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

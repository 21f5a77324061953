"""What recording adds to a call of MPI, and its memory, beside EZTrace and no recorder, in turns.

``python -m tests.benchmarks.recorder`` takes the MPI libraries of Debian that are there (``mpicc.openmpi``,
``mpicc.mpich``) and ``eztrace`` where it is installed; what is missing is left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from desktop.data import recording

PROGRAM = Path(__file__).parents[1] / "programs" / "cost.c"
#: Short rounds: one of two ranks that both have a core all the while is among them on a busy machine, too.
TURNS, CALLS, ROUNDS = 3, 400, 500
MANY = 10_000_000


def main() -> None:
    for name in ("OMPI", "PRTE"):
        for more in ("", "_CONFIRM"):
            os.environ[f"{name}_ALLOW_RUN_AS_ROOT{more}"] = "1"
    library = str(recording.recorder())
    memory: list[str] = []
    print("| library | ranks | call | none ns | recorded | added | EZTrace added |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as scratch:
        for kind in ("openmpi", "mpich"):
            compiler, launcher = shutil.which(f"mpicc.{kind}"), shutil.which(f"mpirun.{kind}")
            if compiler is None or launcher is None:
                continue
            program = str(Path(scratch) / kind)
            subprocess.run([compiler, "-O2", "-o", program, str(PROGRAM), "-lpthread"], check=True)
            spin = ["--oversubscribe", "--mca", "mpi_yield_when_idle", "0"]
            start = [launcher, *(spin if kind == "openmpi" else [])]
            least: dict[tuple[str, str, str], float] = {}
            for _ in range(TURNS):
                for ranks in ("1", "2", "4"):
                    for how in ("none", "recorded", "eztrace"):
                        command = [*start, "-n", ranks], [program, str(CALLS), str(ROUNDS)]
                        for call, ns in _measured(how, kind, *command, library)[0].items():
                            key = (ranks, call, how)
                            least[key] = min(ns, least.get(key, ns))
            for ranks, call in dict.fromkeys((ranks, call) for ranks, call, _ in least):
                bare, ours, peer = (least.get((ranks, call, how)) for how in ("none", "recorded", "eztrace"))
                assert bare is not None and ours is not None
                beside = "-" if peer is None else f"{peer - bare:.0f}"
                row = (
                    f"| {kind} | {ranks} | {call} | {bare:.0f} | {ours:.0f} | {ours - bare:.0f} | {beside} |"
                )
                print(row, flush=True)
            for threads in ("1", "4"):
                memory.append(f"| {kind} | {threads} |")
                for how in ("none", "recorded", "eztrace"):
                    command = [*start, "-n", "1"], [program, "memory", str(MANY), threads]
                    said, stored = _measured(how, kind, *command, library)
                    memory[-1] += f" {said['kB']:.0f}, {stored / MANY:.1f} |" if "kB" in said else " - |"
    print(f"\nMemory in kB after {MANY:.0e} calls, and bytes of the recording a call\n")
    print("| library | threads | none | recorded | EZTrace |\n| --- | --- | --- | --- | --- |")
    print(*memory, sep="\n")


def _measured(
    how: str, kind: str, launcher: list[str], words: list[str], library: str
) -> tuple[dict[str, float], int]:
    """What the program says, and the size of what was recorded."""
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ)
        if how == "recorded":
            environment |= {"LD_PRELOAD": library, recording.FOLDER: folder}
        if how == "eztrace":
            if shutil.which("eztrace") is None:
                return {}, 0
            words = ["eztrace", "-t", kind, "-o", f"{folder}/trace", *words]
        done = subprocess.run(
            [*launcher, *words], env=environment, capture_output=True, text=True, timeout=300
        )
        stored = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    rows = [line.split() for line in done.stdout.splitlines()]
    said = {row[0]: float(row[1]) for row in rows if len(row) == 2 and row[1].replace(".", "").isdigit()}
    return said, stored


if __name__ == "__main__":
    main()

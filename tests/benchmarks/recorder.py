"""What recording adds to a call of MPI, beside EZTrace and no recorder, in turns.

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
TURNS, CALLS, ROUNDS = 3, 20000, 10


def main() -> None:
    for name in ("OMPI", "PRTE"):
        for more in ("", "_CONFIRM"):
            os.environ[f"{name}_ALLOW_RUN_AS_ROOT{more}"] = "1"
    library = str(recording.recorder())
    print("| library | call | none ns | recorded | added | EZTrace added |")
    print("| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as scratch:
        for kind in ("openmpi", "mpich"):
            compiler, launcher = shutil.which(f"mpicc.{kind}"), shutil.which(f"mpirun.{kind}")
            if compiler is None or launcher is None:
                continue
            program = str(Path(scratch) / kind)
            subprocess.run([compiler, "-O2", "-o", program, str(PROGRAM)], check=True)
            least: dict[tuple[str, str], float] = {}
            for _ in range(TURNS):
                for ranks in ("1", "2"):
                    for how in ("none", "recorded", "eztrace"):
                        for call, ns in _measured(
                            how, kind, [launcher, "-n", ranks], program, library
                        ).items():
                            least[call, how] = min(ns, least.get((call, how), ns))
            for call in dict.fromkeys(call for call, _ in least):
                bare, ours, peer = (least.get((call, how)) for how in ("none", "recorded", "eztrace"))
                assert bare is not None and ours is not None
                beside = "-" if peer is None else f"{peer - bare:.0f}"
                print(f"| {kind} | {call} | {bare:.0f} | {ours:.0f} | {ours - bare:.0f} | {beside} |")


def _measured(how: str, kind: str, launcher: list[str], program: str, library: str) -> dict[str, float]:
    words = [program, str(CALLS), str(ROUNDS)]
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ)
        if how == "recorded":
            environment |= {"LD_PRELOAD": library, recording.FOLDER: folder}
        if how == "eztrace":
            if shutil.which("eztrace") is None:
                return {}
            words = ["eztrace", "-t", kind, "-o", f"{folder}/trace", *words]
        done = subprocess.run(
            [*launcher, *words], env=environment, capture_output=True, text=True, timeout=300
        )
    rows = [line.split() for line in done.stdout.splitlines()]
    return {row[0]: float(row[1]) for row in rows if len(row) == 2 and row[1].replace(".", "").isdigit()}


if __name__ == "__main__":
    main()

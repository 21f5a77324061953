"""Lines of launchers that are not on this machine, by scripts that hand variables on as their manuals say."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from desktop.data import recording
from desktop.data.opening import open_trace
from desktop.errors import RunError
from desktop.progress import Cancelled, Progress
from tests.data_layer.test_recorded import PROGRAMS

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or not shutil.which("cc"),
    reason="programs are recorded on Linux with cc",
)

#: Takes the options in front of the program, and runs that with the variables that they leave.
STAND_IN = """#!{python} -S
import os, sys
from fnmatch import fnmatch
from pathlib import Path

name, words, given = Path(sys.argv[0]).name, sys.argv[1:], dict(os.environ)
handed = dict(given)

def only(value):
    names = value.split(",")
    if value in ("NONE", "NIL"):
        return {{}}
    handed = {{k: v for k, v in given.items() if k in names or "ALL" in names}}
    return handed | dict(name.split("=") for name in names if "=" in name)

if name == "mpiexec" and words == ["--version"]:
    print("HYDRA build details:")
    sys.exit()
if name == "flux":
    if words.pop(0) == "proxy":
        words.pop(0)
if name == "sbatch":
    handed = only(given.get("SBATCH_EXPORT", "ALL"))
if name == "srun" and "SLURM_EXPORT_ENV" in given:
    handed = only(given["SLURM_EXPORT_ENV"])
if name == "srun" and "SRUN_EXPORT_ENV" in given:
    handed = only(given["SRUN_EXPORT_ENV"])
while words[0].startswith("-"):
    option, _, value = words.pop(0).partition("=")
    if not value and not option.endswith("none") and option not in ("--wait", "--watch", "--exclusive"):
        value = words.pop(0)
    if name in ("srun", "sbatch") and option == "--export":
        handed = only(value)
    if name == "flux" and option.startswith("--env"):
        rules = ["-" + value if option == "--env-remove" else value]
        for rule in Path(value).read_text().split() if option == "--env-file" else rules:
            variable, is_set, text = rule.partition("=")
            if rule.startswith("-"):
                handed = {{k: v for k, v in handed.items() if not fnmatch(k, rule[1:])}}
            elif is_set:
                handed[variable] = text
            else:  # where it is there, and not in what is handed on
                handed = {{k: v for k, v in given.items() if k == rule}} | handed
    if (name, option) == ("mpiexec", "-genv"):
        handed[value] = words.pop(0)
    if (name, option) == ("mpiexec", "-genvlist"):
        handed = only(value)
    if (name, option) == ("mpiexec", "-genvnone"):
        handed = {{}}
Path({said!r}).write_text("\\n".join(words))
os.execve(words[0], words, handed)
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One with an MPI library of its own."""
    home = tmp_path_factory.mktemp("programs")
    source, library, made = str(PROGRAMS / "alone.c"), home / "libmpi.so", home / "alone"
    subprocess.run(["cc", "-DLIBRARY", "-shared", "-fPIC", "-o", str(library), source], check=True)
    subprocess.run(["cc", "-o", str(made), source, str(library), f"-Wl,-rpath,{home}"], check=True)
    return made


@pytest.mark.parametrize(
    "words",
    [
        "srun -n 1",
        "srun --export=NONE -n 1",
        "srun --export NIL -n 1",
        "srun -n 1 -p debug --export=HOME,PATH",
        "srun --export=ALL,HOME",
        "flux run -n 1",
        "flux run --env=-* -n 1",
        "flux run --env -PHASE* --env -LD_* --env=HOME -n 1",
        "flux run --env-remove=* -n 1",
        "flux run --env=HOME --env-remove * -n 1",
        "flux run --env-file=rules -n 1",
        "flux run -q sh -n 1 --env=-* --env=LD_PRELOAD=libm.so.6",
        "flux submit --watch -n 1",
        "flux submit -n 1 --wait-event clean",
        "flux alloc -n 1 --env=-* --env=PATH flux run --env=HOME",
        "flux alloc -n 1 flux run --env=-*",
        "flux proxy local:///here flux run --env=-*",
        "srun --export=ALL,LD_PRELOAD=libm.so.6",
        "mpiexec -genv LD_PRELOAD libm.so.6 -n 1",
        "aprun -n 1 -N 1",
        "mpiexec -n 1",
        "mpiexec -launcher ssh -f hosts -genvnone -n 1",
        "mpiexec -n 1 -genvlist HOME,PATH",
        "salloc -N 2 --exclusive srun -n 1 --export=NONE",
        "salloc -n 1 mpiexec -genvnone -n 1",
        "srun -p true -J sh --export=NONE",
        "sbatch --wait -n 1 --export=NONE",
        "env OMP_NUM_THREADS=1 srun --export NONE",
    ],
)
def test_the_recorder_reaches_the_program(
    words: str,
    program: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts").touch()
    (tmp_path / "rules").write_text("-*\nHOME\n")
    said = tmp_path / "said"
    for name in ("srun", "salloc", "sbatch", "flux", "aprun", "mpiexec"):
        launcher = tmp_path / name
        launcher.write_text(STAND_IN.format(python=sys.executable, said=str(said)))
        launcher.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    # An option of that name behind the program is the program's.
    line = [str(program), "7", "0", "--export=NONE", "--env=-*", "-genvnone"]
    command = [*words.split(), *line]
    assert recording.new_folder(command, tmp_path).name == "alone.recorded"
    assert recording.record(command, tmp_path / "run").code == 0
    assert said.read_text().splitlines() == line
    with open_trace(tmp_path / "run") as store:
        assert len(store.locations) == 1 and not store.report.lossy
    monkeypatch.setenv("SLURM_EXPORT_ENV", "NONE")  # of a batch job that was started so
    if words == "srun -n 1":
        assert recording.record(command, tmp_path / "job").code == 0
        monkeypatch.setenv("SLURM_EXPORT_ENV", "ALL")
        monkeypatch.setenv("SRUN_EXPORT_ENV", "HOME")  # which counts more
        assert recording.record(command, tmp_path / "other").code == 0
    monkeypatch.setenv("SBATCH_EXPORT", "NONE")
    if words.startswith("sbatch"):
        command.remove("--export=NONE")
        assert recording.record(command, tmp_path / "job").code == 0


@pytest.mark.parametrize(
    "line",
    [
        "sbatch -n 4 job.sh --wait",
        "sbatch --wrap 'srun ./app'",
        "flux submit -n 4 ./app --watch",
        "flux submit --wait-event=start ./app",
        "flux bulksubmit -n 4 ./app {} ::: 1 2",
        "flux batch -n 4 job.sh",
        "flux start -s 2 flux submit ./app",
        "flux alloc --bg -n 4 ./app",
    ],
)
def test_what_nobody_waits_for_is_refused(line: str, tmp_path: Path) -> None:
    name = line.split()[0] if line.startswith("sbatch") else "flux (submit|bulksubmit|batch|alloc --bg)"
    with pytest.raises(RunError, match=f"^{name} comes back"):
        recording.record(shlex.split(line), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_program_that_flux_runs_ends_when_it_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``flux run`` asks at the first Ctrl-C whether it is meant, and hands on every SIGTERM (0.88)."""
    launcher, ended = tmp_path / "flux", tmp_path / "ended"
    answers = f"trap '' INT\ntrap 'touch {ended}; exit 1' TERM\ntouch begun\n"
    launcher.write_text(f"#!/bin/sh\n{answers}while :; do sleep 0.01; done\n")
    launcher.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(recording.stopping, "request", lambda: signal.SIGINT)

    class Asked(Progress):
        def step(self, done: int, total: int, what: str) -> None:
            if (tmp_path / "begun").exists():
                raise Cancelled

    with pytest.raises(Cancelled):
        recording.record([str(launcher), "run", "./app"], tmp_path / "run", Asked())
    assert ended.exists()


def test_processes_that_do_not_know_of_each_other_are_told(
    program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As Slurm starts them where it does not speak with their library: ``srun --mpi=none``, Slurm 22.05."""
    launcher = tmp_path / "srun"
    launcher.write_text('#!/bin/sh\nshift 3\n"$@" & "$@" & "$@"\nwait\n')
    launcher.chmod(0o755)
    command = [str(launcher), "--mpi=none", "-n", "3", str(program), "7", "0"]
    assert recording.record(command, tmp_path / "run").code == 0
    with open_trace(tmp_path / "run") as store:
        assert not store.report.lossy
        told = store.report.findings["programs apart"]
        assert told.count == 3 and "--mpi=pmix" in told.text
        assert [place.name for place in store.locations] == ["rank 0", "rank 0 program 2", "rank 0 program 3"]
        for number in range(3):  # each sends to itself
            peers = np.concatenate([block[0] for block in store.blocks("messages", number, "peer")])
            assert set(peers.tolist()) == {number}

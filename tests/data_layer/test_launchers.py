"""Lines of launchers that are not on this machine, by scripts that hand variables on as their manuals say."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from desktop.data import recording
from desktop.data.opening import open_trace
from desktop.errors import RunError
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
    return {{k: v for k, v in given.items() if k in names or "ALL" in names}}

if name == "mpiexec" and words == ["--version"]:
    print("HYDRA build details:")
    sys.exit()
if name == "flux":
    assert words.pop(0) == "run"
if name == "sbatch":
    handed = only(given.get("SBATCH_EXPORT", "ALL"))
if name == "srun" and "SLURM_EXPORT_ENV" in given:
    handed = only(given["SLURM_EXPORT_ENV"])
if name == "srun" and "SRUN_EXPORT_ENV" in given:
    handed = only(given["SRUN_EXPORT_ENV"])
while words[0].startswith("-"):
    option, _, value = words.pop(0).partition("=")
    if not value and not option.endswith("none") and option not in ("--wait", "--exclusive"):
        value = words.pop(0)
    if name in ("srun", "sbatch") and option == "--export":
        handed = only(value)
    if (name, option) == ("flux", "--env") and value.startswith("-"):
        handed = {{k: v for k, v in handed.items() if not fnmatch(k, value[1:])}}
    elif (name, option) == ("flux", "--env"):
        handed |= {{value: given[value]}}
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


def test_a_batch_job_that_nobody_waits_for_is_refused(tmp_path: Path) -> None:
    for words in (["-n", "4", "job.sh", "--wait"], ["--wrap", "srun ./app"]):
        with pytest.raises(RunError, match="sbatch comes back"):
            recording.record(["sbatch", *words], tmp_path / "run")
    assert not (tmp_path / "run").exists()


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

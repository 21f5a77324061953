"""Lines of launchers that are not on this machine, by scripts that hand variables on as their manuals say."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from desktop.data import recording
from desktop.data.opening import open_trace
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
if name == "srun" and "SLURM_EXPORT_ENV" in given:
    handed = only(given["SLURM_EXPORT_ENV"])
while words[0].startswith("-"):
    option, _, value = words.pop(0).partition("=")
    if not value and not option.endswith("none"):
        value = words.pop(0)
    if (name, option) == ("srun", "--export"):
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
    said, launcher = tmp_path / "said", tmp_path / words.split()[0]
    launcher.write_text(STAND_IN.format(python=sys.executable, said=str(said)))
    launcher.chmod(0o755)
    # An option of that name behind the program is the program's.
    line = [str(program), "7", "0", "--export=NONE", "--env=-*", "-genvnone"]
    command = [str(launcher), *words.split()[1:], *line]
    assert recording.new_folder(command, tmp_path).name == "alone.recorded"
    assert recording.record(command, tmp_path / "run").code == 0
    assert said.read_text().splitlines() == line
    with open_trace(tmp_path / "run") as store:
        assert len(store.locations) == 1 and not store.report.lossy
    monkeypatch.setenv("SLURM_EXPORT_ENV", "NONE")  # of a batch job that was started so
    if words == "srun -n 1":
        assert recording.record(command, tmp_path / "job").code == 0

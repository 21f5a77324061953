"""Record a run: the recorder is compiled once for this machine and preloaded into the program.

The recorder's own source says how it works (desktop/recorder). Here is what comes before and after it: the
compiler, the environment, the words of launchers that do not hand their environment on, and what to say when
nothing was recorded.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import signal
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from desktop import stopping
from desktop.data.atomic import PartFile, scratch_folder
from desktop.data.importers.recorded import SUFFIX, VERSION
from desktop.errors import RunError, reason
from desktop.progress import Cancelled, Progress

SOURCE = Path(__file__).parents[1] / "recorder"
COMPILERS = ("cc", "gcc", "clang", "mpicc")
OPTIONS = ("-O2", "-fvisibility=hidden", "-ftls-model=initial-exec", "-shared", "-fPIC")
FOLDER = "PHASEWRIGHT_RECORD"
#: Machines whose calls pass integers, pointers and handles alike.
MACHINES = ("x86_64", "aarch64", "ppc64le", "riscv64")


@dataclass(frozen=True)
class Recorded:
    """A run that was recorded: its folder, and how the program ended (an exit code, or minus a signal)."""

    folder: Path
    code: int


def recorder(progress: Progress | None = None) -> Path:
    """The recorder as a shared object, compiled if this machine has none of this version yet.

    Raises
    ------
    RunError : the machine is of another kind, has no compiler, or the compiler fails.
    """
    machine = platform.machine()
    if not sys.platform.startswith("linux") or machine not in MACHINES:
        raise RunError(
            f"programs are recorded on Linux ({', '.join(MACHINES)}), not on {sys.platform} {machine}",
            hint="record there, and open what was recorded here",
        )
    files = sorted([*SOURCE.glob("*.c"), *SOURCE.glob("*.h")])
    digest = hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]
    cache = user_cache_path("phasewright", appauthor=False) / "recorder"
    target = cache / f"recorder-{VERSION}-{machine}-{digest}.so"
    if target.exists():
        return target
    compiler = next((found for name in COMPILERS if (found := shutil.which(name))), None)
    if compiler is None:
        raise RunError(
            "the recorder has to be compiled once, and there is no C compiler",
            hint=f"install one of {', '.join(COMPILERS)}, or load its module",
        )
    progress = progress or Progress()
    progress.step(0, 1, "compiling the recorder")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with scratch_folder() as scratch, PartFile(target) as file:
            names = ["-o", str(file.part), str(SOURCE / "recorder.c"), "-ldl", "-lpthread"]
            done = subprocess.run(
                [compiler, *OPTIONS, *names], capture_output=True, text=True, errors="replace",
                env={**os.environ, "TMPDIR": str(scratch)},  # a compiler that is ended leaves its files
            )  # fmt: skip
            progress.step(0, 1, "compiling the recorder")
            if -done.returncode in stopping.REQUESTS:  # of the whole group, and not noted here yet
                raise Cancelled
            if done.returncode:
                raise RunError(
                    f"{compiler} cannot compile the recorder",
                    hint=done.stderr.strip()[-600:] or "it says nothing",
                )
    except OSError as error:
        raise RunError(f"the recorder cannot be kept in {cache} ({reason(error)})") from None
    return target


def new_folder(command: list[str], parent: Path) -> Path:
    """A folder for a run that is not there yet, named after the program.

    >>> new_folder(["mpirun", "-n", "4", "./heat", "512"], Path("/nowhere")).name
    'heat.recorded'
    """
    name = _program(command).name or "run"
    folder, count = parent / f"{name}.recorded", 1
    while folder.exists():
        count += 1
        folder = parent / f"{name}-{count}.recorded"
    return folder


_OPEN_MPI_OR_HYDRA = ("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun")
#: Options of launchers whose value is a program, or may be called as one, but not that which is recorded.
_OF_PROGRAMS = (
    *("launcher", "launcher-exec", "bootstrap", "bootstrap-exec", "rsh", "task-prolog", "task-epilog"),
    *("partition", "job-name", "account", "qos", "J", "A"),
)
#: What Slurm's programs are told to hand on by, if not by ``--export``; the first that is set counts.
_EXPORTS = {"srun": ("SRUN_EXPORT_ENV", "SLURM_EXPORT_ENV"), "sbatch": ("SBATCH_EXPORT",)}
_LAUNCHERS = (*_OPEN_MPI_OR_HYDRA, *_EXPORTS, "salloc", "flux", "aprun", "env", "time")


def _name(word: str) -> str:
    """Of a launcher, whichever of several is installed (``mpirun.mpich``)."""
    return Path(word).name.partition(".")[0]


def _is_value(command: list[str], i: int) -> bool:
    """Whether a word is the value of an option that is one of these."""
    before = command[i - 1] if i else ""
    if before == "-p":
        return _name(command[0]) != "time"
    return before.startswith("-") and before.lstrip("-") in _OF_PROGRAMS


def _place_of_program(command: list[str]) -> int:
    """Of the first word that is a program but no launcher's; 0: there is none."""
    for i, word in enumerate(command):
        if _name(word) in _LAUNCHERS or word.startswith("-") or "=" in word or word.isdigit():
            continue
        before = command[i - 1] if i else ""
        value = _is_value(command, i) or (before.startswith("-") and not shutil.which(word))
        if not value and _name(before) != "flux":  # which is told first what to do
            return i
    return 0


def _program(command: list[str]) -> Path:
    at = _place_of_program(command)
    path = Path(command[at])
    if path.name.startswith("python") and len(command) > at + 1:
        return Path(Path(command[at + 1]).stem)
    return path if at else Path(path.name)


def with_environment(command: list[str], names: tuple[str, ...]) -> list[str]:
    """The launcher's words with those that hand variables on to other machines, where it does not by itself.

    Open MPI hands on what ``-x`` names. Hydra (MPICH, Intel), Slurm and Flux hand on all, unless they are
    told which; then these are told too. What stands behind the program is the program's. One launcher may
    start another.

    >>> with_environment(["srun", "--export=NONE", "./app"], ("A", "B"))
    ['srun', '--export=A,B', './app']
    >>> with_environment(["flux", "run", "--env=-*", "-n", "2", "./app"], ("A", "B"))
    ['flux', 'run', '--env=-*', '--env=A', '--env=B', '-n', '2', './app']
    """
    at = _place_of_program(command) or len(command)
    words, program = command[:at], command[at:]
    launchers = [i for i, word in enumerate(words) if _name(word) in _LAUNCHERS and not _is_value(words, i)]
    for i in reversed(launchers):
        words[i:] = _told(words[i], words[i + 1 :], names)
    return [*words, *program]


def _told(launcher: str, words: list[str], names: tuple[str, ...]) -> list[str]:
    """A launcher and its words, with those that hand on these variables."""
    kind = _name(launcher)
    if kind in _OPEN_MPI_OR_HYDRA:
        said = _version(launcher)
        if "open mpi" in said or "openrte" in said or "prte" in said:
            return [launcher, *(word for name in names for word in ("-x", name)), *words]
        for none, some in (("-genvnone", "-genvlist"), ("-envnone", "-envlist")):
            if none in words:
                i = words.index(none)
                words[i : i + 1] = [some, ",".join(names)]
            elif some in words[:-1]:
                i = words.index(some) + 1
                words[i] = ",".join((words[i], *names))
    if kind in _EXPORTS:
        asked = next((os.environ[name] for name in _EXPORTS[kind] if os.environ.get(name)), "")
        if asked and not any(word.partition("=")[0] == "--export" for word in words):
            words.insert(0, f"--export={asked}")
        for i, word in enumerate(words):
            start = "--export=" if word.startswith("--export=") else ""
            if start or (i and words[i - 1] == "--export"):
                kept = [one for one in word.removeprefix(start).split(",") if one not in ("NONE", "NIL")]
                words[i] = start + ",".join((*kept, *names))
    if kind == "flux":
        ruled = [i + (word == "--env") for i, word in enumerate(words) if word.partition("=")[0] == "--env"]
        if ruled:
            words[ruled[-1] + 1 : ruled[-1] + 1] = [f"--env={name}" for name in names]
    return [launcher, *words]


def _version(launcher: str) -> str:
    try:
        said = subprocess.run(
            [launcher, "--version"], capture_output=True, text=True, timeout=20, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (said.stdout + said.stderr).lower()


def record(
    command: list[str], folder: Path, progress: Progress | None = None, output: Path | None = None
) -> Recorded:
    """Run a command with the recorder; its standard streams are ours, or what it says goes to `output`.

    Parameters
    ----------
    command : a launcher's line or the program itself.
    folder : where the records go; made here, must not hold any yet.

    Raises
    ------
    RunError : it cannot be started, or nothing was recorded.
    Cancelled : by `progress`, after the command was asked to end.
    """
    progress = progress or Progress()
    options = command[: _place_of_program(command) or None]
    if _name(command[0]) == "sbatch" and not {"--wait", "-W"} & set(options):
        raise RunError(
            "sbatch comes back before the program has run",
            hint="sbatch --wait waits for it; or put phasewright record -- in front of srun in the script",
        )
    library = recorder(progress)
    if shutil.which(command[0]) is None:
        raise RunError(f"there is no program {command[0]}", hint="give its path, or load its module")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise RunError("holds files already", file=folder, hint="name a new folder after -o")
    except OSError as error:
        raise RunError(f"cannot be made ({reason(error)})", file=folder) from None
    stopping.complete[folder] = None
    preloaded = " ".join(word for word in (str(library), os.environ.get("LD_PRELOAD", "")) if word)
    ours = {"LD_PRELOAD": preloaded, FOLDER: str(folder.resolve())}
    # First, as Hydra, told which to hand on, forgets the last one of all.
    environment = ours | {name: value for name, value in os.environ.items() if name not in ours}
    try:
        code = _run(with_environment(command, ("LD_PRELOAD", FOLDER)), environment, progress, output)
    finally:
        nothing = not any(folder.glob(f"*{SUFFIX}"))
        if nothing:
            stopping.complete.pop(folder, None)
            folder.rmdir()
    if nothing:
        ended = f" (it ended with exit code {code})" if code else ""
        raise RunError(f"nothing was recorded{ended}: {_why_nothing(command)}")
    return Recorded(folder, code)


def _run(command: list[str], environment: dict[str, str], progress: Progress, output: Path | None) -> int:
    try:
        with nullcontext() if output is None else output.open("wb") as said:
            child = subprocess.Popen(command, env=environment, stdout=said, stderr=said)
    except OSError as error:
        raise RunError(f"{command[0]} cannot be started ({reason(error)})") from None
    try:
        while True:
            try:
                return child.wait(0.1)
            except subprocess.TimeoutExpired:
                progress.step(0, 0, "")
    finally:
        if child.poll() is None:
            child.send_signal(stopping.asked() or signal.SIGTERM)
            try:
                child.wait(2)
            except subprocess.TimeoutExpired:
                child.kill()


def _why_nothing(command: list[str]) -> str:
    program = next((Path(found) for word in reversed(command) if (found := shutil.which(word))), None)
    if program is not None and _is_static(program):
        return f"{program} is linked statically, so nothing can be loaded before it; link it with -dynamic"
    return (
        "the program did not come as far as MPI_Init, or is no MPI program; "
        "on other machines the folder has to be the same one (shared), and so the home folder"
    )


def _is_static(program: Path) -> bool:
    """An ELF file that asks for no loader (64 bits, little-endian)."""
    try:
        with program.open("rb") as stream:
            head = stream.read(64)
            if head[:6] != b"\x7fELF\x02\x01":
                return False
            table, size, count = (
                int.from_bytes(head[a:b], "little") for a, b in ((32, 40), (54, 56), (56, 58))
            )
            stream.seek(table)
            entries = stream.read(size * count)
    except OSError:
        return False
    loader = 3
    kinds = [int.from_bytes(entries[i : i + 4], "little") for i in range(0, len(entries), size or 1)]
    return bool(kinds) and loader not in kinds

"""Record a run: the recorder, compiled for this machine, is preloaded into the program.

The recorder's own source explains how it works (desktop/recorder). This module does what comes before and
after: the compiler, the environment, the options of launchers that do not pass their environment on, and the
explanation when nothing was recorded.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from platformdirs import user_cache_path

from desktop import stopping
from desktop.data.atomic import PartFile, scratch_folder
from desktop.data.importers.recorded import SUFFIX
from desktop.errors import RunError, reason
from desktop.progress import Cancelled, Progress
from desktop.recorder import compiling

FOLDER = "PHASEWRIGHT_RECORD"


@dataclass(frozen=True)
class Recorded:
    """A recorded run: its folder, and how the program ended (an exit code, or minus a signal)."""

    folder: Path
    code: int


def recorder(progress: Progress | None = None) -> Path:
    """The recorder as a shared object: from the installed program, else from the cache, else compiled.

    Raises
    ------
    RunError : the machine is unsupported, has no compiler, or the compiler fails.
    """
    if why := compiling.obstacle():
        raise RunError(why, hint="record there, and open what was recorded here")
    cache = user_cache_path("phasewright", appauthor=False) / "recorder"
    target = cache / compiling.name()
    installed = compiling.SOURCE / target.name
    for library in (installed, target):
        if library.exists() and _is_loaded(library):
            return library
    if {" ", ":"} & set(str(target)):  # these separate the libraries to be preloaded
        raise RunError(
            "nothing is preloaded from a folder with a blank or a colon in its name",
            file=cache,
            hint="name another cache by XDG_CACHE_HOME",
        )
    compiler = compiling.compiler()
    if compiler is None:
        unfit = ", as the one that Phasewright brings does not load here" if installed.exists() else ""
        raise RunError(
            f"the recorder has to be compiled once{unfit}, and there is no C compiler",
            hint=f"install one of {', '.join(compiling.COMPILERS)}, or load its module; or install the "
            "program from a wheel that was built on a machine of this kind with a compiler",
        )
    progress = progress or Progress()
    progress.step(0, 1, "compiling the recorder")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with scratch_folder() as scratch, PartFile(target) as file:
            # A terminated compiler leaves its files behind.
            done = compiling.compile_to(file.part, compiler, {**os.environ, "TMPDIR": str(scratch)})
            progress.step(0, 1, "compiling the recorder")
            if -done.returncode in stopping.REQUESTS:  # sent to the whole group, and not recorded here yet
                raise Cancelled
            if done.returncode:
                raise RunError(
                    f"{compiler} cannot compile the recorder",
                    hint=done.stderr.strip()[-600:] or "it says nothing",
                )
    except OSError as error:
        raise RunError(f"the recorder cannot be kept in {cache} ({reason(error)})") from None
    return target


def _is_loaded(library: Path) -> bool:
    """Whether this machine's loader preloads it: a program shows what it has loaded.

    A library for another or later C library, for another machine, or in a place where nothing may be executed
    is not loaded; it would end every program that it is preloaded into, or be ignored.
    """
    try:
        result = subprocess.run(
            ["cat", "/proc/self/maps"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            env={**os.environ, "LD_PRELOAD": str(library)},
        )  # fmt: skip
    except OSError:
        return False
    return not result.returncode and str(library.resolve()) in result.stdout


def new_folder(command: list[str], parent: Path) -> Path:
    """An unused name of a folder for a run, after the program.

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
_HYDRA_SETS = ("-genv", "-env")  # a name and a value
#: Options of launchers whose value is a program, or may have the name of one, but is not the one recorded.
_OF_PROGRAMS = (
    *("launcher", "launcher-exec", "bootstrap", "bootstrap-exec", "rsh", "task-prolog", "task-epilog"),
    *("partition", "job-name", "account", "qos", "J", "A"),
)
#: Variables that tell Slurm's programs what to pass on, if not ``--export``; the first one set counts.
_EXPORTS = {"srun": ("SRUN_EXPORT_ENV", "SLURM_EXPORT_ENV"), "sbatch": ("SBATCH_EXPORT",)}
_LAUNCHERS = (*_OPEN_MPI_OR_HYDRA, *_EXPORTS, "salloc", "flux", "aprun", "env", "time")
#: Flux's rules on the environment, applied in order.
_RULES = ("--env", "--env-remove", "--env-file")
_WAITING = {"--wait", "--watch", "--wait-event=clean", "--wait-event=finish"}
#: Launchers that return before the program has run: options that make them wait, and what to do instead.
_AT_ONCE: dict[str, tuple[set[str], str]] = {
    "sbatch": (
        {"--wait", "-W"},
        "sbatch --wait waits for it; or put phasewright record -- in front of srun in the script",
    ),
    "flux submit": (_WAITING, "flux run waits for it, and flux submit --watch"),
    "flux bulksubmit": (_WAITING, "flux bulksubmit --watch waits for it"),
    "flux batch": (
        set(),
        "flux alloc waits for it; or put phasewright record -- in front of flux run in the script",
    ),
    "flux alloc --bg": (set(), "without --bg it waits"),
}


def _name(word: str) -> str:
    """The name of a launcher, whichever variant is installed (``mpirun.mpich``)."""
    return Path(word).name.partition(".")[0]


def _is_value(command: list[str], i: int) -> bool:
    """Whether a word is the value of one of these options."""
    before = command[i - 1] if i else ""
    if before == "-p":
        return _name(command[0]) != "time"
    if command[max(i - 2, 0)] in _HYDRA_SETS:
        return True
    if before in ("-q", "-B", "proxy"):
        return "flux" in map(_name, command[:i])
    return before.startswith("-") and before.lstrip("-") in _OF_PROGRAMS


def _place_of_program(command: list[str]) -> int:
    """Index of the first word that is a program but no launcher; 0: there is none."""
    for i, word in enumerate(command):
        if _name(word) in _LAUNCHERS or word.startswith("-") or "=" in word or word.isdigit():
            continue
        before = command[i - 1] if i else ""
        value = _is_value(command, i) or (before.startswith("-") and not shutil.which(word))
        if not value and _name(before) != "flux":  # which is followed by a subcommand
            return i
    return 0


def _program(command: list[str]) -> Path:
    at = _place_of_program(command)
    path = Path(command[at])
    if path.name.startswith("python") and len(command) > at + 1:
        return Path(Path(command[at + 1]).stem)
    return path if at else Path(path.name)


def with_environment(command: list[str], names: tuple[str, ...]) -> list[str]:
    """The launcher's command, with options that pass variables on to other machines if it does not by itself.

    Open MPI passes on what ``-x`` names. Hydra (MPICH, Intel), Slurm and Flux pass on everything unless
    restricted; then these variables are added. Words after the program belong to the program. One launcher
    may start another.

    >>> with_environment(["srun", "--export=NONE", "./app"], ("A", "B"))
    ['srun', '--export=A,B', './app']
    >>> with_environment(["flux", "run", "--env=-*", "-n", "2", "./app"], ("A", "B"))
    ['flux', 'run', '--env=-*', '--env=A', '--env=B', '-n', '2', './app']
    """
    words = list(command)
    for start, end in reversed(_launchers(command)):
        words[start:end] = _handing_on(command[start], command[start + 1 : end], names)
    return words


def _launchers(command: list[str]) -> list[tuple[int, int]]:
    """Index of each launcher in a command, and the end of its own words."""
    words = command[: _place_of_program(command) or None]
    places = [i for i, word in enumerate(words) if _name(word) in _LAUNCHERS and not _is_value(words, i)]
    return list(pairwise([*places, len(words)]))


def _handing_on(launcher: str, words: list[str], names: tuple[str, ...]) -> list[str]:
    """A launcher and its words, with options that pass on these variables."""
    kind = _name(launcher)
    unset = [name for name in names if not any(f"{name}=" in word for word in words)]
    if kind in _OPEN_MPI_OR_HYDRA:
        version = _version(launcher)
        if "open mpi" in version or "openrte" in version or "prte" in version:
            return [launcher, *(word for name in unset for word in ("-x", name)), *words]
        for none, some in (("-genvnone", "-genvlist"), ("-envnone", "-envlist")):
            if none in words:
                i = words.index(none)
                words[i : i + 1] = [some, ",".join(names)]
            elif some in words[:-1]:
                i = words.index(some) + 1
                words[i] = ",".join((words[i], *names))
    if kind in _EXPORTS:
        exported = next((os.environ[name] for name in _EXPORTS[kind] if os.environ.get(name)), "")
        if exported and not any(word.partition("=")[0] == "--export" for word in words):
            words.insert(0, f"--export={exported}")
        for i, word in enumerate(words):
            start = "--export=" if word.startswith("--export=") else ""
            if start or (i and words[i - 1] == "--export"):
                handed_on = [one for one in word.removeprefix(start).split(",") if one not in ("NONE", "NIL")]
                words[i] = start + ",".join((*handed_on, *unset))
    if kind == "flux":
        ruled = [i + ("=" not in word) for i, word in enumerate(words) if word.partition("=")[0] in _RULES]
        if ruled:
            words[ruled[-1] + 1 : ruled[-1] + 1] = [f"--env={name}" for name in names]
    return [launcher, *words]


def _beside(library: Path, command: list[str]) -> list[str]:
    """The command, with the library before others that a launcher is told to preload.

    >>> _beside(Path("/r.so"), ["mpirun", "-x", "LD_PRELOAD=a.so", "./app"])
    ['mpirun', '-x', 'LD_PRELOAD=/r.so a.so', './app']
    >>> _beside(Path("/r.so"), ["mpiexec", "-genv", "LD_PRELOAD", "a.so", "./app"])
    ['mpiexec', '-genv', 'LD_PRELOAD', '/r.so a.so', './app']
    """
    words = list(command)
    for start, end in _launchers(command):
        for i in range(start + 1, end):
            words[i] = re.sub("(^|[=,])LD_PRELOAD=", lambda match: f"{match[0]}{library} ", words[i])
            if words[i - 2] in _HYDRA_SETS and words[i - 1] == "LD_PRELOAD":
                words[i] = f"{library} {words[i]}"
    return words


def _version(launcher: str) -> str:
    try:
        answer = subprocess.run(
            [launcher, "--version"], capture_output=True, text=True, timeout=20, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (answer.stdout + answer.stderr).lower()


def record(
    command: list[str], folder: Path, progress: Progress | None = None, output: Path | None = None
) -> Recorded:
    """Run a command with the recorder; its standard streams are those of this process, or go to `output`.

    Parameters
    ----------
    command : a launcher's line or the program itself.
    folder : for the records; created here, must not contain any files yet.

    Raises
    ------
    RunError : it cannot be started, or nothing was recorded.
    Cancelled : by `progress`, after the command was asked to end.
    """
    progress = progress or Progress()
    _refuse_background(command)
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
    # First, as Hydra forgets the last variable of all when told which to pass on.
    environment = ours | {name: value for name, value in os.environ.items() if name not in ours}
    try:
        line = with_environment(_beside(library, command), ("LD_PRELOAD", FOLDER))
        code = _run(line, environment, progress, output)
    finally:
        nothing = not any(folder.glob(f"*{SUFFIX}"))
        if nothing:
            stopping.complete.pop(folder, None)
            folder.rmdir()
    if nothing:
        ended = f" (it ended with exit code {code})" if code else ""
        raise RunError(f"nothing was recorded{ended}: {_why_nothing(command, library)}")
    return Recorded(folder, code)


def _refuse_background(command: list[str]) -> None:
    for start, end in _launchers(command):
        words = " ".join(command[start + 1 : end]).replace("--wait-event ", "--wait-event=").split()
        name = _name(command[start])
        if name == "flux":
            name += " " + next((word for word in words if not word.startswith("-")), "")
            name += " --bg" * ("--bg" in words)
        waiting, hint = _AT_ONCE.get(name, ({name}, ""))
        if not waiting & {name, *words}:
            raise RunError(f"{name} comes back before the program has run", hint=hint)


def _run(command: list[str], environment: dict[str, str], progress: Progress, output: Path | None) -> int:
    try:
        with nullcontext() if output is None else output.open("wb") as log:
            child = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
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
            # Flux reacts to one Ctrl-C with a question, and if it is killed the program goes on.
            asking = "flux" in (_name(command[start]) for start, _ in _launchers(command))
            child.send_signal((not asking and stopping.request()) or signal.SIGTERM)
            try:
                child.wait(2)
            except subprocess.TimeoutExpired:
                child.kill()


def _why_nothing(command: list[str], library: Path) -> str:
    program = next((Path(place) for word in reversed(command) if (place := shutil.which(word))), None)
    if program is not None and _is_static(program):
        return f"{program} is linked statically, so nothing can be loaded before it; link it with -dynamic"
    return (
        "the program did not come as far as MPI_Init, or is no MPI program; "
        f"on other machines the folder has to be the same one (shared), and so {library.parent}"
    )


def _is_static(program: Path) -> bool:
    """Whether it is an ELF file without a loader (64 bits, little-endian)."""
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

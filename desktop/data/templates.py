"""Creating an experiment on the user's own program: from its folder to a description that can be run.

The program is copied into the experiment's folder, delays are inserted into the copy, and the commands to
build and run programs of its kind are filled in. Nothing is built or run here.
"""

from __future__ import annotations

import re
import secrets
import shlex
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from desktop import resources
from desktop.core.design import smallest_runs
from desktop.data.experiment import (
    RESERVED,
    Experiment,
    Factor,
    Plan,
    Program,
    Response,
    Switch,
    checked,
    write_experiment,
)
from desktop.data.naming import DESCRIPTION
from desktop.data.places import Place, Spot, chosen, find_places, first_choice, hottest, offered, prepare
from desktop.data.syntax import language_of
from desktop.errors import ExperimentError, reason

#: The folder of the copy, below that of the experiment.
PROGRAM = "program"
#: Number of places in a new experiment if none is named.
MOST = 5
#: Initial units of a delay: short compared with a run, long compared with a call. In Python microseconds.
UNITS, MICROSECONDS = 1000, 100
REPLICATES = 3
_BUILD_FILES = {"makefile", "gnumakefile", "cmakelists.txt", "makefile.inc"}
_LARGEST, _MOST_FILES = 256 << 20, 20_000
_LEFT = shutil.ignore_patterns(
    *(".git", ".hg", ".svn", "__pycache__", ".venv", "*.o", "*.mod", "*.pyc", "builds", "CMakeCache.txt"),
    "CMakeFiles",
)
_HELPERS = {
    "c": ("spt_delay.h",), "cpp": ("spt_delay.h",), "python": ("spt_delay.py",),
    "fortran": ("spt_delay.h", "spt_delay_c.c", "spt_delay.f90"),
}  # fmt: skip
_COMPILERS = {
    "c": ("cc", "-O2"),
    "cpp": ("c++", "-O2"),
    "fortran": ("gfortran", "-O2", "-cpp", "-J", "builds"),
}


@dataclass(frozen=True)
class Template:
    """A kind of program. `language`: of programs it is meant for ("" for any compiled one). `example`: files
    of ``resources/templates`` used if no program is named. `needs`: programs that build and run it."""

    name: str
    text: str
    example: tuple[str, ...]
    needs: tuple[str, ...]
    language: str = ""


TEMPLATES = {
    one.name: one
    for one in (
        Template("make", "a program that make builds", ("heat.c", "Makefile"), ("make", "cc")),
        Template("cmake", "a program that CMake builds", ("heat.c", "CMakeLists.txt"), ("cmake", "cc")),
        Template("compiler", "C or C++, by one line of the compiler", ("heat.c",), ("cc",)),
        Template("mpi", "a program with MPI, by mpicc and a launcher", ("heat_mpi.c",), ("mpicc", "mpirun")),
        Template("openmp", "a program with OpenMP; threads are a factor", ("heat_omp.c",), ("cc",)),
        Template("fortran", "Fortran, by one line of gfortran", ("heat.f90",), ("gfortran", "cc"), "fortran"),
        Template("python", "a program in Python", ("heat.py",), ("python3",), "python"),
        Template(
            "command", "my command, set by variables of the environment", ("heat.sh",), ("sh",), "command"
        ),
    )
}


@dataclass(frozen=True)
class Request:
    """The request: `program` a folder or file (None: the template's example), `places` routines or
    ``FILE:LINE`` (none: the first `most`, or those with most time in `seconds` of a trace's regions),
    commands if those of the template do not fit, `variables` name -> (low, high) of the environment."""

    template: str
    program: Path | None = None
    places: tuple[str, ...] = ()
    most: int = MOST
    build: str = ""
    product: str = ""
    run: str = ""
    delay: int = 0
    seconds: Mapping[str, float] | None = None
    variables: Mapping[str, tuple[str, str]] | None = None


def offers_of(request: Request) -> tuple[Spot, ...]:
    """Places in a program, the hottest first if a profile is known.

    Raises
    ------
    ExperimentError : a source cannot be read.
    """
    home = home_of(request)
    offers = offered(home, _sources([name for name, _ in _files(request)]))
    return hottest(offers, request.seconds) if request.seconds else offers


def new_experiment(folder: Path, request: Request) -> Experiment:
    """Create the folder of an experiment and its contents.

    Raises
    ------
    ExperimentError : the folder contains one already, the program cannot be copied, or no place was found.
    ValueError : a named place does not exist.
    """
    folder = Path(folder)
    template = TEMPLATES[request.template]
    if (folder / DESCRIPTION).exists():
        raise ExperimentError("holds an experiment already", file=folder, hint="choose another folder")
    copy = folder / PROGRAM
    if copy.exists():
        raise ExperimentError(f"holds a folder {PROGRAM} already", file=folder, hint="choose another folder")
    home = home_of(request)
    if request.program and request.program.is_dir() and folder.resolve().is_relative_to(home.resolve()):
        raise ExperimentError(
            "lies inside the program that is to be copied", file=folder, hint="choose another folder"
        )
    files = _files(request)
    example = request.program is None and not (template.language == "command" and request.run)
    variables = dict(request.variables or (_VARIABLES.get(template.name, {}) if example else {}))
    if template.name == "openmp":
        variables = {"OMP_NUM_THREADS": ("1", "2")} | variables
    offers = () if template.language == "command" else offers_of(request)
    if template.language in _HELPERS:
        matching = tuple(one for one in offers if language_of(one.place.file) == template.language)
        if offers and not matching:
            raise ExperimentError(
                f"holds no {template.language.capitalize()}",
                file=home,
                hint="choose the template of its language, phasewright spt new --list names them",
            )
        offers = matching
    picked = chosen(offers, request.places) if request.places else first_choice(offers, request.most)
    if template.language == "command" and not variables:
        raise ValueError(
            "a command needs something to vary: give --variable NAME=LOW,HIGH, such as OMP_NUM_THREADS=8,24"
        )
    if not picked and not variables:
        raise ExperimentError(
            "offers no routine or loop to delay",
            file=home,
            hint="name its folder with --program, or a variable with --variable NAME=LOW,HIGH",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, source in files:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy / name)
        helpers = {h for one in picked for h in _HELPERS[language_of(one.place.file)]}
        for helper in sorted(helpers):
            shutil.copyfile(resources.folder() / "spt" / helper, copy / helper)
        places = [replace(one, file=f"{PROGRAM}/{one.file}") for one in prepare(copy, picked)]
        names = [f"{PROGRAM}/{n}" for n in sorted({*(n for n, _ in files), *helpers})]
        experiment = checked(_described(folder.absolute(), request, names, places, variables))
        write_experiment(experiment)
    except OSError as error:
        shutil.rmtree(copy, ignore_errors=True)
        raise ExperimentError(f"cannot be written ({reason(error)})", file=folder) from None
    except BaseException:
        shutil.rmtree(copy, ignore_errors=True)  # created by this call
        raise
    return experiment


#: Variables of the examples: enough steps that the start-up of a shell hides none of them.
_VARIABLES = {"command": {"STEPS": ("50000", "100000"), "CHECKS": ("off", "on")}}


def variables_in(words: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Variables given as ``NAME=LOW,HIGH``.

    Raises
    ------
    ValueError : a word does not have this form.
    """
    variables: dict[str, tuple[str, str]] = {}
    for word in words:
        name, equals, values = word.partition("=")
        low, comma, high = values.partition(",")
        if not (name and equals and comma):
            raise ValueError(f"{word!r} should read NAME=LOW,HIGH, as OMP_NUM_THREADS=8,24")
        variables[name] = (low, high)
    return variables


def home_of(request: Request) -> Path:
    """The folder of the requested program."""
    if request.program is None:
        return resources.folder() / "templates"
    path = Path(request.program)
    if not path.exists():
        raise ExperimentError("there is no such program", file=path, hint="name its folder, or its source")
    return path if path.is_dir() else path.parent


def _files(request: Request) -> list[tuple[str, Path]]:
    """Files to copy: names below the copy, and their paths."""
    home = home_of(request)
    if request.program is None:
        if TEMPLATES[request.template].language == "command" and request.run:
            return []  # a command of the user
        return [(name, home / name) for name in TEMPLATES[request.template].example]
    if Path(request.program).is_file():
        return [(Path(request.program).name, Path(request.program))]
    files: list[tuple[str, Path]] = []
    size, folders = 0, [home]
    for folder in folders:
        entries = sorted(folder.iterdir())
        out = _LEFT(str(folder), [one.name for one in entries])
        for one in entries:
            if one.name in out or (one.is_symlink() and not one.exists()):
                continue
            if one.is_dir() and not one.is_symlink():
                folders.append(one)
            elif one.is_file():
                size += one.stat().st_size
                files.append((one.relative_to(home).as_posix(), one))
        if size > _LARGEST or len(files) > _MOST_FILES:
            raise ExperimentError(
                f"holds more than {_LARGEST >> 20} MB or {_MOST_FILES} files",
                file=home,
                hint="name the folder of the sources alone",
            )
    return files


def _sources(names: Sequence[str]) -> list[str]:
    """The names that are sources of a program."""
    return [
        name
        for name in names
        if language_of(name)
        or PurePosixPath(name).name.casefold() in _BUILD_FILES
        or PurePosixPath(name).suffix in (".cmake", ".mk", ".inc", ".sh")
    ]


def _described(
    folder: Path,
    request: Request,
    names: Sequence[str],
    places: Sequence[Place],
    variables: Mapping[str, tuple[str, str]],
) -> Experiment:
    """The experiment; `names`: all files of the copy, relative to `folder`."""
    template = TEMPLATES[request.template]
    sources = _sources(names)
    kinds = [language_of(place.file) for place in places]
    language = template.language or next((k for k in kinds if k), "c")
    program = _program(folder, request, language, sources)
    python = language == "python"
    delay = request.delay or (MICROSECONDS if python else UNITS)
    if not python and places:
        program = program.with_delay(delay)
    factors, used = [], {"wall", "cpu"}
    for place in places:
        name = _free(
            re.sub(r"[^\w.~+-]+", ".", place.routine.rpartition("::")[2] or place.macro), place, used
        )
        factors.append(replace(place.factor(delay if python else 0), name=name))
    for variable, (low, high) in variables.items():
        name = "threads" if variable == "OMP_NUM_THREADS" and "threads" not in used else variable
        used.add(name)
        factors.append(
            Factor(
                name, Switch(environment=((variable, high),)), Switch(environment=((variable, low),)),
                means=f"{variable}={high}", low_means=f"{variable}={low}",
            )
        )  # fmt: skip
    return _planned(folder, program, factors, REPLICATES)


def _planned(folder: Path, program: Program, factors: Sequence[Factor], replicates: int) -> Experiment:
    """The experiment with the usual responses and the smallest design of resolution IV."""
    plan = Plan(runs=smallest_runs(len(factors), 4), replicates=replicates, seed=secrets.randbelow(1 << 31))
    responses = Response("wall"), Response("cpu", "cpu")
    return Experiment(folder, folder.name, program, tuple(factors), responses, plan)


def _free(name: str, place: Place, used: set[str]) -> str:
    """An unused name of a factor: for a loop, or one of several in a routine, with its line."""
    if place.construct not in ("function", "routine") or name in used or name in RESERVED:
        name = f"{name}.{place.line}"
    while name in used:
        name += "'"
    used.add(name)
    return name


def _program(folder: Path, request: Request, language: str, sources: Sequence[str]) -> Program:
    """How it is built and run: as requested, else as usual for its kind."""
    build: tuple[str, ...] = ()
    product, shell = "", False
    run: tuple[str, ...] = ("{out}",)
    name = request.template
    compiled = [s for s in sources if PurePosixPath(s).suffix.casefold() not in _HEADERS and language_of(s)]
    texts = {s: (folder / s).read_text(encoding="utf-8", errors="replace") for s in sources}
    if name == "make":
        build, product = _make(texts, language)
    elif name == "cmake":
        shell = True
        build, product = _cmake(texts)
    elif name == "python":
        mains = [s for s in compiled if language_of(s) == "python" and not s.endswith("spt_delay.py")]
        main = next((s for s in mains if "__main__" in texts[s]), mains[0] if mains else f"{PROGRAM}/main.py")
        run = ("python3", main, "{args}")
    elif name == "command":
        scripts = [s for s in sources if s.endswith(".sh")] or [f"{PROGRAM}/command"]
        run = (f"./{scripts[0]}", "{args}")
    else:
        words = _COMPILERS[language]
        if name == "mpi":
            words = ({"c": "mpicc", "cpp": "mpicxx", "fortran": "mpifort"}[language], *words[1:])
        more = ("-fopenmp",) if name == "openmp" else ()
        ordered = in_order([s for s in compiled if _fits(s, language)], texts)
        build = (*words, *more, "{flags}", "-o", "{out}", *ordered, "-lm")
    if name == "mpi":
        run = ("mpirun", "-n", "2", "{out}")
    if request.build:
        build, product = tuple(shlex.split(request.build)), request.product
        if shell:
            build = (request.build,)
    if request.run:
        run = (request.run,) if shell else _in_copy(folder, shlex.split(request.run))
    product = request.product or product
    if product and not product.startswith((f"{PROGRAM}/", "cmake/")):
        product = f"{PROGRAM}/{product}"
    return Program(run, build, tuple(sources), shell, product=product)


def _in_copy(folder: Path, words: Sequence[str]) -> tuple[str, ...]:
    """A command as typed in the program's own folder, with its files replaced by those of the copy."""
    copy = (folder / PROGRAM).resolve()

    def is_of_copy(word: str) -> bool:
        path = (copy / word).resolve()
        return path.is_file() and path.is_relative_to(copy) and not (folder / word).exists()

    return tuple(f"./{PROGRAM}/{PurePosixPath(word)}" if is_of_copy(word) else word for word in words)


_HEADERS = {".h", ".hh", ".hpp", ".hxx", ".inl", ".inc"}


def _fits(source: str, language: str) -> bool:
    """Whether a compiler of the language takes it: that of Fortran also takes the C source of the delay."""
    kind = language_of(source)
    return kind == language or (kind == "c" and (language == "cpp" or source.endswith("spt_delay_c.c")))


def in_order(names: Sequence[str], texts: Mapping[str, str]) -> tuple[str, ...]:
    """Sources of Fortran after the modules that they use; all others in the given order."""
    makes: dict[str, str] = {}
    for name in names:
        for module in re.finditer(r"^[ \t]*module[ \t]+(\w+)", texts[name], re.IGNORECASE | re.MULTILINE):
            makes.setdefault(module[1].casefold(), name)
    done: dict[str, None] = {}

    def put(name: str, above: tuple[str, ...]) -> None:
        if name in done or name in above:
            return
        for used in re.finditer(
            r"^[ \t]*use\b[^\n:]*?(?:::)?[ \t]*(\w+)", texts[name], re.IGNORECASE | re.MULTILINE
        ):
            if (maker := makes.get(used[1].casefold())) is not None and language_of(name) == "fortran":
                put(maker, (*above, name))
        done[name] = None

    for name in names:
        put(name, ())
    return tuple(done)


_ASSIGNED = re.compile(r"^[ \t]*(?:export[ \t]+)?(\w+)[ \t]*[:?]?=[ \t]*([^#\n]*)", re.MULTILINE)
_TARGET = re.compile(r"^([^\s:#=.%][^\s:#=%]*)[ \t]*:(?!=)[ \t]*([^\n]*)", re.MULTILINE)
_COMPILER_NAMES = ("CC", "CXX", "FC", "F77", "F90", "MPICC", "MPICXX", "MPIF90", "MPIFC")


def _make(texts: Mapping[str, str], language: str) -> tuple[tuple[str, ...], str]:
    """Build command and product (first target) of a Makefile. The flags are added to the compiler, so that
    those of the Makefile stay; everything is rebuilt, as make does not notice changed flags."""
    files = [s for s in texts if PurePosixPath(s).name.casefold() in ("makefile", "gnumakefile")]
    if not files:
        raise ExperimentError("holds no Makefile", where=PROGRAM, hint="choose another template")
    file = min(files, key=lambda s: s.count("/"))
    values = {matched[1]: matched[2].strip() for matched in _ASSIGNED.finditer(texts[file])}

    def expanded(text: str, depth: int = 8) -> str:
        def value(match: re.Match[str]) -> str:
            return expanded(values.get(match[1], ""), depth - 1)

        return re.sub(r"\$[({](\w+)[)}]", value, text) if depth else text

    usual = {"c": ("CC", "cc"), "cpp": ("CXX", "c++"), "fortran": ("FC", "gfortran")}[language]
    commands = {name: expanded(values[name]) for name in _COMPILER_NAMES if name in values} or dict([usual])
    words = [f"{k}={v}{' -cpp' if 'gfortran' in v else ''} {{flags}}" for k, v in commands.items()]
    first = _TARGET.search(texts[file])
    targets, needs = (expanded(first[k]).split() if first else [] for k in (1, 2))
    product = next(iter((targets[:1] == ["all"] and needs) or targets), "program")
    folder = PurePosixPath(file).parent.as_posix()
    return ("make", "-B", "-C", folder, *words), f"{folder}/{product}"


def _cmake(texts: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """Build command (for a shell, as it is two) and product of a CMake project; CMake notices new flags."""
    names = [
        match[1]
        for s, text in texts.items()
        if s.casefold().endswith("cmakelists.txt")
        for match in re.finditer(r"\badd_executable\s*\(\s*([\w.+-]+)", text, re.IGNORECASE)
    ]
    flags = " ".join(f"-DCMAKE_{one}_FLAGS='{{flags}}'" for one in ("C", "CXX", "Fortran"))
    configure = f"cmake -S {PROGRAM} -B cmake -DCMAKE_BUILD_TYPE=Release {flags} --no-warn-unused-cli"
    return (f"{configure} && cmake --build cmake",), f"cmake/{names[0] if names else 'program'}"


def of_prepared(folder: Path) -> Experiment:
    """The experiment for sources in a folder, in place: their prepared places become factors, and they are
    built by one command of the compiler of their language. Nothing is copied or written.

    Raises
    ------
    ExperimentError : the folder contains an experiment.
    """
    if (folder / DESCRIPTION).exists():
        raise ExperimentError("holds an experiment already", file=folder, hint="open it instead")
    files = sorted(p.name for p in folder.iterdir() if language_of(p.name) and p.suffix not in _HEADERS)
    own = [name for name in files if name not in _HELPERS["fortran"] and name != "spt_delay.py"]
    kinds = [kind for name in own if (kind := language_of(name)) in _COMPILERS]
    kind = max(sorted(set(kinds)), key=kinds.count) if kinds else ""
    sources = tuple(name for name in files if _fits(name, kind)) if kind == "fortran" else tuple(
        name for name in own if language_of(name) == kind and kind
    )  # fmt: skip
    first = Factor("F1", Switch(("-DF1",)) if kind else Switch(arguments=("--f1",)))
    factors = [place.factor() for place in find_places(folder, sources)] or [first]
    texts = {s: (folder / s).read_text(encoding="utf-8", errors="replace") for s in sources}
    build = (*_COMPILERS[kind], "{flags}", "-o", "{out}", *in_order(sources, texts)) if kind else ()
    program = Program(("{out}",) if kind else ("./program", "{args}"), build, sources)
    return _planned(folder, program.with_delay(100 if kind else 0), factors, 2)

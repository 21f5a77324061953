"""What is handed over: the archives hold every file and nothing else, and what is installed of them runs."""

from __future__ import annotations

import email
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from desktop import __version__
from desktop.recorder import compiling

ROOT = Path(__file__).parent.parent
NAME = f"phasewright-{__version__}"
DROPPINGS = {".pyc", ".nbi", ".nbc", ".part", ".orig", ".h5"}
#: Whether the wheel brings the recorder compiled.
COMPILED = not compiling.obstacle() and compiling.compiler() is not None
TAG = f"linux_{platform.machine()}" if COMPILED else "any"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None,
    reason="hatchling, which builds the archives, is not installed",
)


def build(tree: Path, target: Path, *kinds: str, path: str = os.environ["PATH"]) -> str:
    """Build there; what it said."""
    words = [word for kind in kinds for word in ("-t", kind)]
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(target), *words]
    done = subprocess.run(command, cwd=tree, env=os.environ | {"PATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A PATH with a compiler that does not optimise the recorder, which is what building mostly waits for."""
    folder, compiler = tmp_path_factory.mktemp("quick"), compiling.compiler()
    if compiler is not None:
        (folder / "cc").write_text(f'#!/bin/sh\nexec "{compiler}" "$@" -O0\n')
        (folder / "cc").chmod(0o755)
    return os.pathsep.join([str(folder), os.environ["PATH"]])


@pytest.fixture(scope="module")
def archives(tmp_path_factory, quick):
    """The wheel and the source archive, built of this tree."""
    folder = tmp_path_factory.mktemp("archives")
    build(ROOT, folder, "wheel", "sdist", path=quick)
    return folder / f"{NAME}-py3-none-{TAG}.whl", folder / f"{NAME}.tar.gz"


@pytest.fixture(scope="module")
def installed(archives, tmp_path_factory):
    """A folder with the wheel installed into it by pip."""
    target = tmp_path_factory.mktemp("installed")
    quiet = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-index")
    command = [sys.executable, "-m", "pip", "install", *quiet, "--target", str(target), str(archives[0])]
    subprocess.run(command, check=True)
    # Compiling all kernels anew would take a minute; those of the tree are of the same sources.
    for file in (target / "desktop").rglob("*.py"):
        source = ROOT / file.relative_to(target)
        if "resources" in source.parts:
            continue
        shutil.copystat(source, file)
        for kernel in source.parent.glob(f"__pycache__/{source.stem}.*.nb[ic]"):
            copy = target / kernel.relative_to(ROOT)
            copy.parent.mkdir(exist_ok=True)
            shutil.copy2(kernel, copy)
    return target


def run(installed, folder, *words, **more):
    """The command of `installed`, from a folder far from any tree."""
    home = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), "PYTHONPATH": str(installed)}
    command = [sys.executable, str(installed / "bin" / "phasewright"), *map(str, words)]
    return subprocess.run(command, cwd=folder, env=os.environ | home | more, capture_output=True, text=True)


def files_of(folder: Path, ending: str = "*") -> set[str]:
    found = (path.relative_to(folder) for path in folder.rglob(ending) if path.is_file())
    return {str(PurePosixPath(path)) for path in found if "__pycache__" not in path.parts}


def test_the_wheel_holds_the_program_its_resources_and_nothing_else(archives):
    with zipfile.ZipFile(archives[0]) as wheel:
        names = wheel.namelist()
        facts = email.message_from_bytes(wheel.read(f"{NAME}.dist-info/METADATA"))
        commands = wheel.read(f"{NAME}.dist-info/entry_points.txt").decode()
        kind = email.message_from_bytes(wheel.read(f"{NAME}.dist-info/WHEEL"))
        resources = {
            name: hashlib.sha256(wheel.read(f"desktop/resources/{name}")).hexdigest()
            for name in files_of(ROOT / "resources")
        }
    code = {f"desktop/{name}" for name in files_of(ROOT / "desktop", "*.py")} | {"desktop/py.typed"}
    code |= {f"desktop/recorder/{name}" for name in files_of(ROOT / "desktop" / "recorder")}
    code |= {f"desktop/recorder/{compiling.name()}"} if COMPILED else set()
    code ^= {"desktop/phasewright.py", "phasewright.py"}  # at the top level, where users import it
    about = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    expected = (
        code
        | {f"desktop/resources/{name}" for name in resources}
        | {f"{NAME}.dist-info/{name}" for name in about}
    )
    assert sorted(names) == sorted(expected)
    for name, digest in resources.items():
        assert hashlib.sha256((ROOT / "resources" / name).read_bytes()).hexdigest() == digest
    assert facts["Version"] == __version__
    assert (kind["Tag"], kind["Root-Is-Purelib"]) == (f"py3-none-{TAG}", str(not COMPILED).lower())
    assert "phasewright = desktop.__main__:main" in commands
    assert "phasewright-window = desktop.__main__:window" in commands


def test_licences_of_what_others_made_are_in_the_wheel(archives):
    with zipfile.ZipFile(archives[0]) as wheel:
        names = {PurePosixPath(name).name for name in wheel.namelist()}
    assert {"LICENSE", "LICENSE-DejaVu.txt", "MPICH-NOTICE.txt"} <= names


def test_the_source_archive_makes_the_very_same_wheel(archives, quick, tmp_path):
    with tarfile.open(archives[1]) as packed:
        # Our own archive; Python 3.11.2 does not know filters, and later ones want one named.
        packed.extractall(tmp_path, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    tree = tmp_path / NAME
    inside = files_of(tree)
    assert {
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "dev.py",
        "constraints.txt",
        "packaging/freeze.py",
    } <= inside
    assert {f"tests/{name}" for name in files_of(ROOT / "tests", "*.py")} <= inside
    build(tree, tmp_path, "wheel", path=quick)
    assert (tmp_path / archives[0].name).read_bytes() == archives[0].read_bytes()


@pytest.mark.parametrize("compiler", ["none", "one that fails"])
def test_where_nothing_compiles_the_wheel_is_for_every_machine(archives, compiler, tmp_path):
    said = "there is no C compiler"
    if compiler != "none":
        (tmp_path / "cc").write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "cc").chmod(0o755)
        said = f"{tmp_path}/cc cannot compile it"
    lines = build(ROOT, tmp_path, "wheel", path=str(tmp_path)).splitlines()
    if not compiling.obstacle():
        (line,) = (line for line in lines if "recorder" in line)
        assert line.startswith(f"The wheel brings no compiled recorder: here {said}")
    with zipfile.ZipFile(tmp_path / f"{NAME}-py3-none-any.whl") as pure, zipfile.ZipFile(archives[0]) as own:
        assert {*own.namelist()} - {*pure.namelist()} <= {f"desktop/recorder/{compiling.name()}"}
        assert b"Root-Is-Purelib: true" in pure.read(f"{NAME}.dist-info/WHEEL")


def test_no_droppings_and_no_bulk(archives):
    with zipfile.ZipFile(archives[0]) as wheel, tarfile.open(archives[1]) as source:
        names = [PurePosixPath(name) for name in (*wheel.namelist(), *source.getnames())]
    kept = [name for name in names if "tests/data" not in str(name)]  # tests may need a store
    assert not [name for name in kept if name.suffix in DROPPINGS]
    assert not [name for name in names if {"__pycache__", ".git", ".venv", "out", "dist"} & set(name.parts)]
    with tarfile.open(archives[1]) as source:
        assert not [name for name in source.getnames() if name.endswith(".so")]
    assert archives[0].stat().st_size < 8e6
    assert archives[1].stat().st_size < 12e6


def test_the_installed_program_starts_elsewhere_and_finds_its_resources(installed, tmp_path):
    told = run(installed, tmp_path, "--version")
    assert (told.returncode, told.stdout) == (0, f"phasewright {__version__}\n")
    sample = installed / "desktop" / "resources" / "samples" / "lu_8_picl" / "v1-lu8-compact.trf"
    told = run(installed, tmp_path, "phases", sample, "-n", 4, "--csv")
    assert told.returncode == 0, told.stderr
    assert len(told.stdout.splitlines()) == 1 + 4
    code = (
        "import phasewright; from desktop import resources as r; "
        "print(r.folder(), *(path.exists() for path in phasewright.samples().values()))"
    )
    environment = os.environ | {"PYTHONPATH": str(installed)}
    told = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    where, *there = told.stdout.split()
    assert Path(where) == installed / "desktop" / "resources"
    assert there and set(there) == {"True"}


def test_the_installed_program_records_where_there_is_no_compiler(installed, tmp_path):
    if not COMPILED:
        pytest.skip("the wheel has no recorder")
    source, library, program = (ROOT / "tests/programs/alone.c", tmp_path / "libmpi.so", tmp_path / "alone")
    compiler = str(compiling.compiler())
    subprocess.run([compiler, "-DLIBRARY", "-shared", "-fPIC", "-o", library, source], check=True)
    subprocess.run([compiler, "-o", program, source, library, f"-Wl,-rpath,{tmp_path}"], check=True)
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "cat").symlink_to(shutil.which("cat"))
    words = ("record", "--no-open", "-o", "made", "--", program, "20")
    told = run(installed, tmp_path, *words, PATH=str(tools))
    assert told.returncode == 0 and "made: " in told.stdout, told.stderr
    assert not [*tmp_path.rglob("cache/**/*.so")]


@pytest.fixture
def one_file(tmp_path, monkeypatch):
    """A frozen program of one file that says its words and ends with 3, and a start of it in a new home."""
    if sys.platform != "linux" or not shutil.which("xz"):
        pytest.skip("a .run is for Linux, and unpacks itself with xz")
    monkeypatch.syspath_prepend(ROOT / "packaging")
    freeze = importlib.import_module("freeze")
    folder = tmp_path / "dist" / "phasewright"
    folder.mkdir(parents=True)
    (folder / "phasewright").write_text('#!/bin/sh\nprintf "%s\\n" "$0" "$@"\nexit 3\n')
    (folder / "phasewright").chmod(0o755)
    monkeypatch.setattr(freeze, "DIST", folder.parent)
    monkeypatch.setattr(freeze, "FOLDER", folder)
    file = freeze.pack()
    shutil.rmtree(folder)
    home = tmp_path / "a home"

    def start(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {"HOME": str(home), "PATH": os.environ["PATH"]}
        return subprocess.run([file, *words], env=environment, capture_output=True, text=True, timeout=60)

    return file, home, start


def test_one_file_unpacks_itself_once_and_passes_words_and_exit_code(one_file):
    file, home, start = one_file
    assert file.suffix == ".run"
    for told in ("phasewright: unpacks into ", ""):
        done = start("phases", "a b", "*", "")
        assert done.returncode == 3 and done.stderr.startswith(told) and bool(done.stderr) == bool(told)
        program, *words = done.stdout[:-1].split("\n")
        assert words == ["phases", "a b", "*", ""] and Path(program).is_relative_to(home)
    (place,) = (home / ".local/share/phasewright").iterdir()
    assert f"-{__version__}-" in place.name
    assert sorted(path.name for path in place.rglob("*")) == ["phasewright", "phasewright"]


def test_one_file_that_is_cut_off_leaves_nothing(one_file):
    file, home, start = one_file
    file.write_bytes(file.read_bytes()[:-40])
    done = start("--version")
    assert done.returncode not in (0, 3) and done.stdout == ""
    assert not [*(home / ".local/share/phasewright").iterdir()]

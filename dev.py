#!/usr/bin/env python3
"""Set everything up and do the main job, or the tests. Needs nothing but Python 3.11 or newer.

    python3 dev.py run [FILE...]    the window on a bundled trace (or FILE); without a display its picture
    python3 dev.py test [ARGS...]   format, lint, types and tests (ARGS go to pytest)
    python3 dev.py bench            the benchmark tables beside their peers (takes minutes)
    python3 dev.py pictures [NAME...|--check]   draw the handbook's pictures, or say which are stale
    python3 dev.py freeze [--archive]   the program as a folder that needs no Python, and its trial

All can be run again at no cost: what is already there is not installed twice.
"""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
SAMPLES = ROOT / "resources" / "samples"
#: What installers say goes here; of one that fails the last lines are shown.
LOG = ROOT / "out" / "set-up.log"
LAST_LINES = 15
#: Free bytes from which on tests have their files in memory; they take a tenth of it.
SCRATCH_BYTES = 2 << 30

# What Qt's wheels expect of a Debian or Ubuntu system, for a screen and without one.
SYSTEM_PACKAGES = (
    "python3-venv",
    "libgl1",
    "libegl1",
    "libglib2.0-0",
    "libfontconfig1",
    "libdbus-1-3",
    "libxkbcommon0",
    "libxcb-cursor0",
    "libxcb-icccm4",
    "libxcb-keysyms1",
    "libxcb-shape0",
    "libxkbcommon-x11-0",
)


# What tests need besides: pages are opened and driven in a browser.
TEST_PACKAGES = ("chromium", "chromium-driver")

# What freezing needs besides, of a Python that the system brought.
FREEZE_PACKAGES = ("binutils", f"libpython3.{sys.version_info.minor}")


def run(*words: str | Path, **environment: str) -> None:
    """Run a command; if it fails, end with its exit code."""
    code = subprocess.call([str(word) for word in words], cwd=ROOT, env={**os.environ, **environment})
    if code:
        sys.exit(code)


def step(what: str, *words: str | Path) -> None:
    """Run a command of the set-up: one line here, its own words in the log. If it fails, show the last of
    them and end with its exit code."""
    shown = LOG.relative_to(ROOT)
    print(f"{what} (details: {shown})", flush=True)
    LOG.parent.mkdir(exist_ok=True)
    with LOG.open("a", encoding="utf-8") as log:
        print(f"\n== {what}\n$ {' '.join(map(str, words))}", file=log, flush=True)
        # Nobody sees a question in the log, so nobody could answer it. (sudo asks on the terminal.)
        code = subprocess.call(
            [str(word) for word in words], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    if code:
        said = LOG.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:]
        print("\n".join(f"  {line}" for line in said), file=sys.stderr)
        print(f"{what} failed with exit code {code}; all it said is in {shown}", file=sys.stderr)
        sys.exit(code)


def install_system_packages(wanted: Sequence[str]) -> None:
    """On Debian and its kin, install the missing libraries, or say the one line that does."""
    if not shutil.which("dpkg-query"):
        return
    query = subprocess.run(
        ["dpkg-query", "-W", "-f=${Package} ${Provides} ${db:Status-Status}\n"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    there = {
        word.strip(",")
        for line in query.stdout.splitlines()
        if line.endswith(" installed")
        for word in line.split()
    }
    # A Python from elsewhere (pyenv, python.org) brings its own venv.
    missing = [p for p in wanted if p not in there and not (p == "python3-venv" and has_venv())]
    if not missing:
        return
    admin = [] if os.geteuid() == 0 else ["sudo"]
    line = " ".join([*admin, "apt-get install --yes --no-install-recommends", *missing])
    if admin and not shutil.which("sudo"):
        sys.exit(f"Some system libraries are missing. As root, run this and then repeat:\n  {line}")
    apt = [*admin, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    step("Reading the lists of system packages", *apt, "update")
    step(f"Installing {len(missing)} system packages, such as {missing[0]}",
         *apt, "install", "--yes", "--no-install-recommends", *missing)  # fmt: skip


def has_venv() -> bool:
    return subprocess.call([sys.executable, "-c", "import ensurepip"], stderr=subprocess.DEVNULL) == 0


def set_up(*extras: str, system: Sequence[str] = SYSTEM_PACKAGES) -> None:
    """Make .venv with Phasewright and the packages of `extras`; nothing to do if they are there already."""
    if sys.version_info < (3, 11):  # noqa: UP036 - this file is what an older Python meets first
        sys.exit(f"Phasewright needs Python 3.11 or newer, this is {sys.version.split()[0]}")
    install_system_packages(system)
    wanted = hashlib.sha256(abi().encode())
    for name in ("pyproject.toml", "constraints.txt"):
        wanted.update((ROOT / name).read_bytes())
    there = installed(VENV, wanted.hexdigest()) if PYTHON.exists() else None
    if there is None or not there.issuperset(extras):
        if not PYTHON.exists() or not fits(VENV):
            print("Making .venv", flush=True)
            venv.create(VENV, with_pip=True, clear=True)
        target = f".[{','.join(extras)}]" if extras else "."
        step("Installing Python packages into .venv (once, about a minute)", PYTHON, "-m", "pip", "install",
             "--disable-pip-version-check", "-c", "constraints.txt", "-e", target)  # fmt: skip
        note_installed(VENV, wanted.hexdigest(), {*extras, *(there or ())})
    drop_stale_kernels(ROOT / "desktop", VENV / "kernels")


def abi() -> str:
    """What packages are installed for: another one needs others. A mere rebuild or patch of Python, as a
    system's update brings, is the same."""
    compiled = sysconfig.get_config_var("SOABI") or sysconfig.get_config_var("EXT_SUFFIX") or ""
    version = ".".join(map(str, sys.version_info[:2]))
    return " ".join([sys.implementation.name, version, compiled, sysconfig.get_platform()])


def fits(folder: Path) -> bool:
    """Whether an environment was made by a Python of this version; that of another one does not work."""
    known = folder / "pyvenv.cfg"
    for line in known.read_text().splitlines() if known.exists() else ():
        name, _, value = line.partition("=")
        if name.strip() in ("version", "version_info"):
            return value.strip().split(".")[:2] == [str(part) for part in sys.version_info[:2]]
    return False


def installed(folder: Path, state: str) -> set[str] | None:
    """The extras that are installed in the environment; None if it was made for another state, or not."""
    stamp = folder / "set-up"
    lines = stamp.read_text().splitlines() if stamp.exists() else []
    return set(lines[1:]) if lines[:1] == [state] else None


def note_installed(folder: Path, state: str, extras: set[str]) -> None:
    (folder / "set-up").write_text("\n".join([state, *sorted(extras)]))


def drop_stale_kernels(package: Path, stamp: Path) -> None:
    """Forget all compiled kernels if a source of any has changed since the last time.

    Numba looks at the file of a kernel only. A kernel that calls another file's, or was compiled with its
    constants, would go on as that file was before.
    """
    digest = hashlib.sha256()
    for file in sorted(kernel_sources(package)):
        digest.update(f"{file.relative_to(package)}\0".encode() + file.read_bytes())
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    for ending in ("nbi", "nbc"):
        for file in package.rglob(f"__pycache__/*.{ending}"):
            file.unlink(missing_ok=True)
    stamp.write_text(digest.hexdigest())


def kernel_sources(package: Path) -> set[Path]:
    """The files with kernels, and the package's files that they import."""
    jit = f"{package.name}.core.jit"
    found = set()
    for file in package.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if jit not in text:
            continue
        names = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        if jit in names:
            places = {package.parent / f"{name.replace('.', '/')}.py" for name in names}
            found |= {file, *(place for place in places if place.exists())}
    return found


def has_display() -> bool:
    return not sys.platform.startswith("linux") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )


def main_job(files: list[str]) -> None:
    set_up()
    if not files:
        files = [str(SAMPLES / "cholesky_16" / "traces.otf2")]
    if has_display():
        print(f"Opening the window on {files[0]}", flush=True)
        run(PYTHON, "-m", "desktop", *files)
        return
    picture = ROOT / "out" / "phasewright.png"
    picture.parent.mkdir(exist_ok=True)
    print("There is no display: the window is rendered into a picture instead.", flush=True)
    run(PYTHON, "-m", "desktop", "snapshot", files[0], "-o", picture)


def tests(arguments: list[str]) -> None:
    set_up("test", "cluster", "sql", system=(*SYSTEM_PACKAGES, *TEST_PACKAGES))
    # Kernels are compiled on the core that the types leave free, as processes that begin at once would each
    # compile the same ones. What it cannot do, tests say.
    offscreen = {"QT_QPA_PLATFORM": "offscreen"}
    words = [str(PYTHON), "-m", "desktop", "warm-up", "--attached"]
    quiet = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(words, cwd=ROOT, env={**os.environ, **offscreen}, **quiet) as warm_up:
        try:
            run(PYTHON, "-m", "ruff", "format", "--check", "--quiet", ".")
            run(PYTHON, "-m", "ruff", "check", "--quiet", ".")
            run(PYTHON, "-m", "mypy")
            with suppress(subprocess.TimeoutExpired):
                warm_up.wait(300)
        finally:
            warm_up.terminate()
            with suppress(subprocess.TimeoutExpired):
                warm_up.wait(60)
            warm_up.kill()  # the tests can do without it
    # A file stays in one process: its tests share what is dear to make. Two processes more than cores, for
    # at times tests wait for windows and other processes. The order of the files is that of
    # tests/conftest.py, not that of how many tests are in them.
    side_by_side = ("-n", str(min((os.cpu_count() or 1) + 2, 4)), "--dist", "loadfile")
    side_by_side += ("--no-loadscope-reorder",)
    with scratch() as folder:
        more = {"TMPDIR": folder} if folder else {}
        run(PYTHON, "-m", "pytest", *side_by_side, *arguments, QT_QPA_PLATFORM="offscreen", **more)


@contextmanager
def scratch(memory: Path = Path("/dev/shm")) -> Iterator[str]:
    """A folder in memory where tests, which make and remove ten thousand files, need not wait for a disk.

    "" where the system has none with room in which programs may be started: then their files are where
    temporary files always are.
    """
    try:
        room = shutil.disk_usage(memory).free >= SCRATCH_BYTES and os.access(memory, os.W_OK)
        room = room and not os.statvfs(memory).f_flag & os.ST_NOEXEC
    except (OSError, AttributeError):
        room = False
    if not room:
        yield ""
        return
    with tempfile.TemporaryDirectory(
        prefix="phasewright-tests-", dir=memory, ignore_cleanup_errors=True
    ) as name:
        yield name


def bench() -> None:
    set_up("test", "bench")
    for name in ("phases", "text_import", "otf2_import", "live", "factor_model"):
        run(PYTHON, "-m", f"tests.benchmarks.{name}", QT_QPA_PLATFORM="offscreen")


def freeze(arguments: list[str]) -> None:
    more = FREEZE_PACKAGES if sys.base_prefix == "/usr" else FREEZE_PACKAGES[:1]
    set_up("freeze", system=(*SYSTEM_PACKAGES, *more))
    run(PYTHON, ROOT / "packaging" / "freeze.py", *arguments)


def pictures(arguments: list[str]) -> None:
    set_up()
    run(PYTHON, "packaging/pictures.py", *arguments)


def main(words: list[str]) -> None:
    match words:
        case ["run", *files]:
            main_job(files)
        case ["test", *arguments]:
            tests(arguments)
        case ["bench"]:
            bench()
        case ["pictures", *arguments]:
            pictures(arguments)
        case ["freeze", *arguments]:
            freeze(arguments)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])

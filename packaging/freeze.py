"""Freeze Phasewright into a folder that needs no Python, and try what came out.

    python3 dev.py freeze               make dist/phasewright and try it
    python3 dev.py freeze --archive     also pack it: .run and .tar.xz, on Windows .zip, on macOS .dmg
    python3 dev.py freeze --only-try    try what was made before
    python3 dev.py freeze --only-pack   pack what was made before

A trial runs the program as on a machine where it has never been: with empty folders for settings and cache,
without a display, and with nothing of this environment. The first that fails ends with a sentence and exit
code 1.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from desktop import __version__  # noqa: E402 - found by the line before
from desktop.core.compiler import AHEAD, COMPILE_AHEAD  # noqa: E402
from desktop.recorder import compiling  # noqa: E402

DIST = ROOT / "dist"
FOLDER = DIST / "phasewright"
SAMPLE = Path("samples", "cholesky_16", "traces.otf2")
ENDING = ".exe" if os.name == "nt" else ""
#: What a program needs of a Windows system to start; elsewhere nothing.
KEPT = ("SYSTEMROOT", "COMSPEC", "PATHEXT", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE")
#: Seconds that the window must stay open.
OPEN_S = 20
#: What a .run begins with; behind it is the .tar.xz.
RUN = r"""#!/bin/sh
# Phasewright @version@: unpacks itself once, then starts. Needs tail, tar and xz.
set -e
home=${XDG_DATA_HOME:-$HOME/.local/share}/phasewright/program-@version@-@digest@
if [ ! -x "$home/phasewright/phasewright" ]; then
    mkdir -p "${home%/*}"
    part=$(mktemp -d "$home.XXXXXX")
    trap 'rm -rf "$part"' EXIT
    trap 'exit 130' INT TERM HUP
    echo "phasewright: unpacks into $home, once" >&2
    tail -n +@lines@ "$0" | tar -xJf - -C "$part"
    # Another start may have been faster.
    mv -T "$part" "$home" 2>/dev/null || [ -x "$home/phasewright/phasewright" ]
    rm -rf "$part"
    trap - EXIT INT TERM HUP
fi
exec "$home/phasewright/phasewright" "$@"
"""


def freeze() -> None:
    """Make `FOLDER` anew, with its kernels compiled for all processors of a kind."""
    from PyInstaller.__main__ import run

    run(["--noconfirm", "--log-level", "WARN", "--distpath", str(DIST), "--workpath", str(ROOT / "build"),
         str(ROOT / "packaging" / "phasewright.spec")])  # fmt: skip
    if sys.platform == "linux":
        one_of_equals()
    if platform.machine().lower() in ("x86_64", "amd64"):
        with tempfile.TemporaryDirectory(prefix="phasewright-") as folder:
            trial = Trial(Path(folder))
            trial.environment |= COMPILE_AHEAD
            every_kernel(trial)


def one_of_equals() -> None:
    """Equal files become one under several names: both commands, which start differently by theirs, and
    libraries that more than one package brings."""
    known: dict[bytes, Path] = {}
    for file in sorted(FOLDER.rglob("*")):
        if file.is_symlink() or not file.is_file():
            continue
        with file.open("rb") as opened:
            first = known.setdefault(hashlib.file_digest(opened, "sha256").digest(), file)
        if first is not file:
            file.unlink()
            file.hardlink_to(first)


def every_kernel(trial: Trial) -> None:
    """Use the program so that all kernels which a first session needs are compiled."""
    resources = next(FOLDER.rglob("desktop/resources"))
    (resources.parent / AHEAD.name).mkdir()
    trial.run("warm-up")
    trial.run("report", resources / SAMPLE, "-n", "3", "-o", trial.home / "report.pptx")
    trial.run("report", resources / SAMPLE, "-o", trial.home / "live.html", "--live")
    trial.run("phases", resources / SAMPLE, "--max-n", "20")
    trial.run("model", resources / "examples" / "npb_class_a_constructed.csv", "--json")


class Trial:
    """Starts the frozen program in an empty home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        folders = {"HOME": "", "USERPROFILE": "", "APPDATA": "roaming", "LOCALAPPDATA": "local"}
        folders |= {"TEMP": "tmp", "TMP": "tmp", "TMPDIR": "tmp"}
        self.environment = {name: str(home / folder) for name, folder in folders.items()}
        self.environment |= {name: os.environ[name] for name in KEPT if name in os.environ}
        self.environment |= {"QT_QPA_PLATFORM": "offscreen", "LANG": "C.UTF-8", "PATH": os.defpath}
        for place in self.environment.values():
            if place.startswith(str(home)):
                Path(place).mkdir(exist_ok=True)

    def run(self, *words: str | Path) -> str:
        """What the program printed; its times are told."""
        began, before = time.perf_counter(), os.times()
        command = [str(FOLDER / f"phasewright{ENDING}"), *map(str, words)]
        done = subprocess.run(
            command, cwd=self.home, env=self.environment, capture_output=True, text=True, encoding="utf-8"
        )
        after, seconds = os.times(), time.perf_counter() - began
        worked = after.children_user + after.children_system - before.children_user - before.children_system
        what = " ".join(Path(word).name for word in words)
        print(f"  {seconds:7.2f} s, processors {worked:6.2f} s  phasewright {what}", flush=True)
        if done.returncode:
            sys.exit(f"'{what}' ends with {done.returncode}:\n{done.stderr}")
        return done.stdout

    def window(self, trace: Path) -> None:
        """Open a trace in the window, which must stay."""
        command = [str(FOLDER / f"phasewright-window{ENDING}"), str(trace)]
        child = subprocess.Popen(
            command, cwd=self.home, env=self.environment, stderr=subprocess.PIPE, text=True
        )
        try:
            _, told = child.communicate(timeout=OPEN_S)
        except subprocess.TimeoutExpired:
            child.terminate()
            child.communicate()
        else:
            sys.exit(f"the window ends by itself with {child.returncode}:\n{told}")
        for log in self.home.rglob("phasewright.log"):
            text = log.read_text(encoding="utf-8")
            check("uncaught" not in text, f"the window's log tells of an error:\n{text}")
        print(f"  the window stays open for {OPEN_S} s", flush=True)


def check(holds: object, otherwise: str) -> None:
    if not holds:
        sys.exit(otherwise)


def attempt() -> None:
    """Start the program in every way that differs once it is frozen."""
    resources = next(FOLDER.rglob("desktop/resources"))
    trace = resources / SAMPLE
    files = [file for file in FOLDER.rglob("*") if file.is_file() and not file.is_symlink()]
    size = sum({file.stat().st_ino: file.stat().st_size for file in files}.values())
    print(f"{FOLDER}: {size / 1e6:.0f} MB, {len(files)} files", flush=True)
    with tempfile.TemporaryDirectory(prefix="phasewright-") as folder:
        trial = Trial(Path(folder))
        for _ in range(2):
            check(trial.run("--version").split()[-1] == __version__, "another version answers")
        for _ in range(2):
            found = json.loads(trial.run("phases", trace, "-n", "4", "--json"))
            check(found["n"] == 4, f"4 phases were asked for, {found['n']} are there")
        picture = trial.home / "window.png"
        for _ in range(2):
            trial.run("snapshot", trace, "-o", picture, "--size", "1280x720")
            head = picture.read_bytes()[:24]
            size_of = int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
            check(size_of == (1280, 720), f"the picture has the size {size_of}")
        trial.run("report", trace, "-n", "3", "-o", trial.home / "report.pptx")
        trial.run("model", resources / "examples" / "npb_class_a_constructed.csv", "--json")
        side_by_side(trial)
        recorded(trial)
        trial.window(trace)


def side_by_side(trial: Trial) -> None:
    """Import two curves of a size from which on each gets a process of its own, if there are processors."""
    from desktop.data.opening import SIDE_BY_SIDE

    curves = [trial.home / f"curve-{k}.csv" for k in (1, 2)]
    rows = SIDE_BY_SIDE // 16
    for k, curve in enumerate(curves):
        with curve.open("w") as file:
            file.writelines(f"{i:>12}, {(7 * i + k) % 10}\n" for i in range(rows))  # 16 bytes each
            file.write(f"{rows}, 0\n")
    check(sum(curve.stat().st_size for curve in curves) >= SIDE_BY_SIDE, "the curves are too small")
    told = json.loads(trial.run("import", *curves, "--json"))
    events = [one["totals"]["events"] for one in told["imports"]]
    check(events == [rows + 1] * 2, f"the two curves have {events} events")


def recorded(trial: Trial) -> None:
    """Record a program where there is no compiler, if there was one to compile the recorder with."""
    compiler = compiling.compiler()
    if compiling.obstacle() or compiler is None:
        return
    source, library, program = ROOT / "tests/programs/alone.c", trial.home / "libmpi.so", trial.home / "alone"
    subprocess.run([compiler, "-DLIBRARY", "-shared", "-fPIC", "-o", library, source], check=True)
    subprocess.run([compiler, "-o", program, source, library, f"-Wl,-rpath,{trial.home}"], check=True)
    tools = trial.home / "tools"
    tools.mkdir()
    (tools / "cat").symlink_to(str(shutil.which("cat")))
    path, trial.environment["PATH"] = trial.environment["PATH"], str(tools)
    said = trial.run("record", "--json", "-o", trial.home / "run", "--", program, "20")
    told = json.loads(said.partition("\n")[2])  # what the program itself says comes first
    trial.environment["PATH"] = path
    check(told["totals"]["events"], "nothing was recorded")


def pack() -> Path:
    """One file to hand over."""
    machine = platform.machine().lower()
    name = f"phasewright-{__version__}-{platform.system().lower()}-{machine}"
    kinds: dict[str, Callable[[Path], Path]] = {"win32": _zip, "darwin": _dmg}
    return kinds.get(sys.platform, _tar)(DIST / name)


def _tar(target: Path) -> Path:
    """The folder packed, and the same as a program that unpacks itself; the latter is given."""
    file = target.with_name(f"{target.name}.tar.xz")
    with tarfile.open(file, "w:xz", preset=2) as packed:  # higher ones take minutes for a few per cent
        packed.add(FOLDER, FOLDER.name)
    program = target.with_name(f"{target.name}.run")
    with file.open("rb") as content, program.open("wb") as made:
        digest = hashlib.file_digest(content, "sha256").hexdigest()[:12]
        head = RUN.replace("@version@", __version__).replace("@digest@", digest)
        made.write(head.replace("@lines@", str(head.count("\n") + 1)).encode())
        content.seek(0)
        shutil.copyfileobj(content, made)
    program.chmod(0o755)
    return program


def _zip(target: Path) -> Path:
    return Path(shutil.make_archive(str(target), "zip", DIST, FOLDER.name))


def _dmg(target: Path) -> Path:
    file = target.with_name(f"{target.name}.dmg")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(DIST / "Phasewright.app", Path(folder, "Phasewright.app"), symlinks=True)
        Path(folder, "Applications").symlink_to("/Applications")
        subprocess.run(
            ["hdiutil", "create", "-ov", "-volname", "Phasewright", "-srcfolder", folder, "-format", "UDZO",
             str(file)], check=True,
        )  # fmt: skip
    return file


def main(words: list[str]) -> None:
    match words:
        case [] | ["--archive"]:
            freeze()
            attempt()
        case ["--only-try"]:
            attempt()
        case ["--only-pack"]:
            pass
        case _:
            sys.exit(__doc__)
    if {"--archive", "--only-pack"} & {*words}:
        file = pack()
        print(f"{file}: {file.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])

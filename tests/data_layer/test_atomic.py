"""Where results go: regular files only, links are written through; errors name the file in plain words."""

from __future__ import annotations

import errno
import os
import signal
import socket
import stat
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import h5py
import pytest

from desktop.cli import run
from desktop.data.atomic import PartFile, into_place, place_of, write_text
from desktop.data.opening import open_trace
from desktop.data.project_file import write
from desktop.errors import DesktopError, FileError, reason, sentence
from desktop.resources import folder as resources
from desktop.workbench.keeping import read_workspace
from desktop.workbench.model import KeptTable, Workspace

SAMPLE = resources() / "samples" / "cholesky_16" / "traces.otf2"
CURVE = "0,2\n1,3\n2,1\n4,0\n"
posix = pytest.mark.skipif(os.name == "nt", reason="no such files on that system")


@pytest.fixture
def curve(tmp_path: Path) -> Path:
    file = tmp_path / "curve.csv"
    file.write_text(CURVE)
    return file


def pipe(place: Path) -> None:
    os.mkfifo(place)


def folder(place: Path) -> None:
    place.mkdir()


def listening(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as opened:
        here = Path.cwd()
        os.chdir(place.parent)  # the path of a socket must be short
        try:
            opened.bind(place.name)
        finally:
            os.chdir(here)


def endless(place: Path) -> None:
    place.symlink_to(place.name)


def device(place: Path) -> None:
    place.symlink_to("/dev/null")


COMMANDS = {
    "import {curve} -o {out} --force": ".h5",
    "import {curve} -o {out} --force --start 0 --end 2": ".h5",
    "report {curve} -o {out} --plots curve": ".html",
    "snapshot {curve} -o {out}": ".png",
    "spt design --factors 3 --runs 4 -o {out}": ".csv",
}


@posix
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("make", [pipe, folder, listening, endless, device])
def test_no_command_replaces_what_is_no_file(
    tmp_path: Path,
    curve: Path,
    command: str,
    make: Callable[[Path], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / f"out{COMMANDS[command]}"
    make(out)
    before = os.lstat(out)
    if make is folder and "--start" not in command and command.startswith("import"):
        out = out / "curve.csv.h5"  # into a folder is right, unless there is one of that name again
        out.mkdir()
        before = os.lstat(out)
        given = command.format(curve=curve, out=out.parent)
    else:
        given = command.format(curve=curve, out=out)
    assert run(given.split()) == 1
    said = capsys.readouterr().err
    assert said.startswith("phasewright: ") and said.count("\n") == 1
    assert "it is a" in said or "needs a file" in said
    after = os.lstat(out)
    assert (after.st_ino, after.st_mode, after.st_dev) == (before.st_ino, before.st_mode, before.st_dev)
    assert not list(tmp_path.rglob("*.part"))


@posix
def test_a_device_stays_a_device(tmp_path: Path) -> None:
    """Only root may make one; what is at /dev/null is left to be looked at."""
    before = os.stat("/dev/null")
    for attempt in (place_of, PartFile, lambda path: write_text(path, "")):
        with pytest.raises(FileError, match="it is a device"):
            attempt(Path("/dev/null"))
    assert os.stat("/dev/null").st_rdev == before.st_rdev and stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert not list(Path("/dev").glob("null.*"))


@posix
@pytest.mark.parametrize("command", COMMANDS)
def test_a_link_is_written_through(tmp_path: Path, curve: Path, command: str) -> None:
    (tmp_path / "kept").mkdir()
    real, link = tmp_path / "kept" / "real", tmp_path / f"link{COMMANDS[command]}"
    link.symlink_to("kept/real")
    assert run(command.format(curve=curve, out=link).split()) == 0
    assert link.is_symlink() and real.is_file() and real.stat().st_size > 20
    first = real.stat().st_ino
    assert run(command.format(curve=curve, out=link).split()) == 0
    assert link.is_symlink() and real.is_file()
    if "design" not in command:
        assert real.stat().st_ino != first  # replaced, not written into
    assert sorted(p.name for p in (tmp_path / "kept").iterdir()) == ["real"]


@posix
def test_a_part_is_not_cleaned_up_by_others_before_it_is_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process that writes the same file removes parts that nobody has locked."""
    target, replace = tmp_path / "result.txt", os.replace

    def meanwhile(part: Path, place: Path) -> None:
        if Path(part).read_text() == "first":
            write_text(target, "second")
        replace(part, place)

    monkeypatch.setattr(os, "replace", meanwhile)
    write_text(target, "first")
    assert target.read_text() == "first" and list(tmp_path.iterdir()) == [target]


@posix
@posix
def test_temporary_folders_of_killed_processes_are_removed(tmp_path: Path) -> None:
    """Those in use stay, also of other processes, and so do those of other programs."""
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from desktop.data.atomic import scratch\n"
        "folder = scratch()\n"
        "Path(folder.name, 'rows').write_bytes(bytes(100))\n"
        "print(folder.name, flush=True)\n"
        "sys.stdin.readline()\n"
        "os.kill(os.getpid(), signal.SIGKILL) if sys.argv[1:] else folder.cleanup()"
    )
    other = tmp_path / "phasewright-scratch-is-a-file"
    other.write_text("")
    (tmp_path / "phasewright-else").mkdir()

    def begin(*words: str) -> tuple[subprocess.Popen[str], Path]:
        process = subprocess.Popen(
            [sys.executable, "-c", program, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )  # fmt: skip
        assert process.stdout is not None
        return process, Path(process.stdout.readline().strip())

    killed, left = begin("kill")
    killed.communicate("\n")
    assert killed.returncode == -signal.SIGKILL and (left / "rows").exists()
    first, used = begin()
    assert not left.exists() and (used / "rows").exists()
    second, also = begin()
    assert (used / "rows").exists() and (also / "rows").exists()
    for process in (first, second):
        process.communicate("\n")
        assert process.returncode == 0
    assert sorted(tmp_path.iterdir()) == [tmp_path / "phasewright-else", other]


@posix
def test_all_of_a_folder_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a crash of the machine could leave the name with empty files, which are never made again."""
    made, there = tmp_path / "made", tmp_path / "there"
    (made / "below").mkdir(parents=True)
    (made / "one").write_text("1")
    (made / "below" / "two").write_text("2")
    (made / "below" / "read only").write_text("3")
    (made / "below" / "read only").chmod(0o444)
    expected = {path.stat().st_ino for path in (made, *made.rglob("*"))}
    done: list[int] = []
    fsync, replaces = os.fsync, os.replace

    def synced(fd: int) -> None:
        done.append(os.fstat(fd).st_ino)
        fsync(fd)

    def renamed(a: Path, b: Path) -> None:
        assert set(done) == expected
        replaces(a, b)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    into_place(made, there)
    assert done[-1] == tmp_path.stat().st_ino and (there / "below" / "two").read_text() == "2"


def test_a_project_behind_a_link_finds_its_files(tmp_path: Path) -> None:
    """Its paths count from where the file is, whatever it was called when it was saved."""
    home, elsewhere = tmp_path / "home", tmp_path / "desk"
    home.mkdir()
    elsewhere.mkdir()
    link = elsewhere / "p.phasewright"
    link.symlink_to(home / "p.phasewright")
    workspace = Workspace(tables=(KeptTable(home / "runs.csv"),))
    for _ in range(2):  # the second time there is a version before
        write(link, workspace)
    assert link.is_symlink() and (home / "p.phasewright~").is_file()
    assert read_workspace(link) == read_workspace(home / "p.phasewright") == workspace
    assert '"runs.csv"' in (home / "p.phasewright").read_text()


@posix
def test_a_project_is_not_saved_over_a_pipe(tmp_path: Path) -> None:
    place = tmp_path / "p.phasewright"
    os.mkfifo(place)
    with pytest.raises(FileError, match="a pipe"):
        write(place, Workspace())
    assert stat.S_ISFIFO(place.stat().st_mode) and [*tmp_path.iterdir()] == [place]


# ---- words


def caught(call: Callable[[], object]) -> BaseException:
    with pytest.raises(BaseException) as found:
        call()
    return found.value


def test_words_of_libraries_are_not_shown(tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.write_bytes(b"no such thing at all" * 40)
    errors = [
        caught(lambda: h5py.File(bad)),
        caught(lambda: zipfile.ZipFile(bad)),
        caught(lambda: tarfile.open(bad)),  # noqa: SIM115 - it is not opened
        caught(lambda: zlib.decompress(b"xx")),
        caught(lambda: b"\xff".decode()),
        RuntimeError("Can't decrement id ref count (unable to close file)"),
    ]
    for error in errors:
        assert reason(error) == "it is cut or damaged"
    full = (
        "(file write failed: time = Sun, filename = 'x', file descriptor = 5, errno = 28, error message = 'No"
    )
    for error in (OSError(f"Can't write data {full}"), RuntimeError(f"Can't decrement id ref count {full}")):
        assert reason(error) == os.strerror(errno.ENOSPC)
        assert "decrement" not in sentence(error) and "make room" in sentence(error)
    starved = sentence(RuntimeError("can't start new thread"))
    assert starved.startswith("the system allows no more threads or processes, close other programs")
    assert sentence(KeyError("x")) == ""
    assert sentence(DesktopError("is odd", file="a b", hint="look")) == "a b: is odd, look"


def test_a_full_disk_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "result.csv"
    target.write_text("before")

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    error = caught(lambda: write_text(target, "after"))
    said = sentence(error)
    assert said == f"{target}: No space left on device, make room there or choose another place"
    assert target.read_text() == "before" and [*tmp_path.iterdir()] == [target]


LIMITED = """
import os, resource, sys
from desktop.cli import run
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
sys.exit(run(sys.argv[1:]))
"""


@posix
@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_may_not_grow_is_told_by_its_name(tmp_path: Path, curve: Path, command: str) -> None:
    """The limit of 4096 bytes stands for a full disk: each write beyond it fails."""
    trace = SAMPLE
    if not command.endswith("--force"):  # else an import into the cache would fail before
        trace = tmp_path / "stored.h5"
        open_trace(SAMPLE, output=trace).close()
    out = tmp_path / f"out{COMMANDS[command]}"
    words = command.format(curve=trace, out=out).replace("3 --runs 4", "7 --runs 128 --replicates 4").split()
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "HOME": str(tmp_path / "home")}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", "")}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *words], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert done.returncode == 1, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("phasewright:")]
    assert len(lines) == 1 and str(out) in lines[0] and os.strerror(errno.EFBIG) in lines[0], done.stderr
    for foreign in ("decrement", "errno", "Errno", "Error", "Traceback"):
        assert foreign not in done.stderr
    assert not out.exists() and not list(tmp_path.rglob("*.part")) and not list(tmp_path.rglob("*.work"))


FULL = """
import resource, signal, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import numpy as np
from desktop.core.gantt import next_bin
print(next_bin(np.array([0, 4], np.uint64), 0, 2, 0, 1, np.uint64(4)))
"""


@posix
def test_a_kernel_that_cannot_be_kept_is_used_all_the_same(tmp_path: Path) -> None:
    """As where the disk of the cache is full."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", FULL], capture_output=True, text=True, env=environment)
    assert (done.stdout, done.returncode) == ("1\n", 0), done.stderr


@pytest.mark.parametrize("command", list(COMMANDS)[:4])
def test_a_system_without_threads_to_spare_is_told_so(
    tmp_path: Path,
    curve: Path,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def start(thread: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", start)
    code = run(command.format(curve=curve, out=tmp_path / f"out{COMMANDS[command]}").split())
    said = capsys.readouterr().err
    assert code == 1 and "the system allows no more threads or processes, close other programs" in said
    assert "can't start" not in said and said.count("\n") == 1
    assert not list(tmp_path.glob("*.part"))

"""Requests to end: nothing is left behind, the exit code says what happened, and the words are true.

The requests come at steps of the work, chosen at random, in this process; `tests.benchmarks.signals` sends
them to processes at any moment.
"""

from __future__ import annotations

import builtins
import os
import random
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from desktop import cli, stopping
from desktop.data import atomic, recording
from desktop.data.experiment import read_journal
from desktop.data.store import open_store
from desktop.progress import ENDING, Cancelled, Progress
from desktop.recorder import compiling
from tests.data_layer.archives import unpack
from tests.experiments import needs_shell, small

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows ends a process without asking it")
#: Requests of each command.
TIMES = 6


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Places of their own; nobody loses patience with this process; under nohup they would be ignored."""
    for name in ("made", "scratch"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    monkeypatch.setattr(stopping, "PATIENCE", 1e5)
    before = {number: signal.signal(number, signal.SIG_DFL) for number in stopping.REQUESTS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def ask(number: int) -> None:
    """Send a request to this process, and wait until it was heard."""
    signal.raise_signal(number)
    end = time.monotonic() + 60
    while not ENDING[0] and time.monotonic() < end:
        time.sleep(0.001)


class AtStep:
    """Asks this process to end at step number `at` of whatever work."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at, self.number, self.count = -1, int(signal.SIGTERM), 0
        self._lock = threading.Lock()
        plain = Progress.step

        def step(progress: Progress, done: float, total: float, text: str = "") -> None:
            with self._lock:
                self.count += 1
                mine = self.count == self.at
            if mine:
                ask(self.number)
            plain(progress, done, total, text)

        monkeypatch.setattr(Progress, "step", step)

    def run(self, words: list[str], at: int = -1, number: int = signal.SIGTERM) -> int:
        self.at, self.number, self.count = at, int(number), 0
        return cli.run(words)


@pytest.fixture
def at_step(monkeypatch: pytest.MonkeyPatch) -> AtStep:
    return AtStep(monkeypatch)


def picl(path: Path, events: int = 3000) -> Path:
    path.write_text("".join(f"15 {k} 0 {k % 8} 1\n" for k in range(events)))
    return path


def left(folder: Path) -> list[Path]:
    patterns = ("made/*.part", "made/*.work", "cache/**/*.part", "cache/**/*.work", "scratch/*")
    return [path for pattern in patterns for path in folder.glob(pattern)]


def import_words(folder: Path) -> list[str]:
    return ["import", str(picl(folder / "run.trf")), "-o", str(folder / "made" / "x.h5"), "--force"]


def archive_words(folder: Path) -> list[str]:
    packed = folder / "run.tar.gz"
    with tarfile.open(packed, "w:gz") as tar:
        tar.add(unpack("ezt_wave1d_4", folder), "run")
    return ["import", str(packed), "-o", str(folder / "made" / "x.h5"), "--force"]


def stats_words(folder: Path) -> list[str]:
    return ["stats", str(next(unpack("ezt_farm_8_dilated", folder).glob("*.otf2"))), "-n", "3"]


def report_words(folder: Path) -> list[str]:
    trace = next(unpack("ezt_openmp_4", folder).glob("*.otf2"))
    return ["report", str(trace), "-o", str(folder / "made" / "x.html"), "--plots", "curve,phases"]


@pytest.mark.parametrize("words", [import_words, archive_words, stats_words, report_words])
def test_requests_at_any_step(
    tmp_path: Path,
    at_step: AtStep,
    capsys: pytest.CaptureFixture[str],
    words: Callable[[Path], list[str]],
) -> None:
    command = words(tmp_path)
    assert at_step.run(command) == 0
    generator = random.Random(words.__name__)
    steps = at_step.count
    made = tmp_path / "made" / command[command.index("-o") + 1] if "-o" in command else None
    for k in sorted(generator.sample(range(1, steps + 1), min(TIMES, steps))):
        if made is not None:
            made.unlink(missing_ok=True)
        for store in (tmp_path / "cache").rglob("*.h5"):
            store.unlink()
        capsys.readouterr()
        number = generator.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
        code = at_step.run(command, k, number)
        out, err = capsys.readouterr()
        assert code == 128 + number and not left(tmp_path), (k, steps, code, err)
        cached = list((tmp_path / "cache").rglob("*.h5"))
        kept = [path for path in (made, *cached) if path is not None and path.exists()]
        said = f"complete is {kept[0]}" if kept else "nothing was written"
        assert (out, err) == ("", f"phasewright: stopped, {said}\n")
        assert signal.getsignal(number) is signal.SIG_DFL and not ENDING[0], "all is as it was"


@needs_shell
def test_an_experiment_that_is_asked_to_end_goes_on(
    tmp_path: Path, at_step: AtStep, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = small(tmp_path / "made")
    words = ["spt", "run", str(experiment.folder), "--yes"]
    done = [0]
    for number in (signal.SIGTERM, signal.SIGINT):
        # Three steps of the check, four builds, then trials.
        assert at_step.run(words, 10, number) == 128 + number
        out, err = capsys.readouterr()
        assert err == "stopped; the same command goes on from here\n" and "of 8 trials are done" in out
        done.append(len(read_journal(experiment)))
        assert done[-1] > done[-2]
    assert at_step.run(words) == 0 and len(read_journal(experiment)) == 8
    assert "8 of 8 trials are done" in capsys.readouterr().out
    assert not left(tmp_path)


@needs_shell
def test_a_program_that_runs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command waits for it, and sees no step meanwhile."""
    experiment = small(tmp_path / "made", "#!/bin/sh\ntouch running\nsleep 600\n")

    def watch() -> None:
        until = time.monotonic() + 120
        while not (experiment.folder / "running").exists() and time.monotonic() < until:
            time.sleep(0.01)
        signal.raise_signal(signal.SIGTERM)

    watcher = threading.Thread(target=watch)
    watcher.start()
    assert cli.run(["spt", "run", str(experiment.folder), "--yes"]) == 143
    watcher.join()


@needs_shell
def test_a_request_while_the_user_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = small(tmp_path / "made")

    def asked(_: str) -> str:
        signal.raise_signal(signal.SIGTERM)
        time.sleep(60)
        return "y"

    monkeypatch.setattr(builtins, "input", asked)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    begun = time.monotonic()
    assert cli.run(["spt", "run", str(experiment.folder)]) == 143
    assert not ENDING[0], "also if it is noted late"
    assert time.monotonic() - begun < 60
    assert capsys.readouterr().err.endswith("phasewright: stopped, nothing was written\n")


@needs_shell
def test_a_compiler_that_hears_the_request_first_is_no_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\nkill -TERM $$\n")
    compiler.chmod(0o755)
    monkeypatch.setattr(compiling, "COMPILERS", (str(compiler),))
    with pytest.raises(Cancelled):
        recording.recorder()
    assert not left(tmp_path)


def test_of_several_sources_those_that_are_imported_are_named(
    tmp_path: Path, at_step: AtStep, capsys: pytest.CaptureFixture[str]
) -> None:
    traces = [str(picl(tmp_path / f"{name}.trf")) for name in "abc"]
    words = ["import", *traces, "-o", str(tmp_path / "made")]
    assert at_step.run([*words, "--force"]) == 0
    steps = at_step.count
    for path in (tmp_path / "made").iterdir():
        path.unlink()
    capsys.readouterr()
    assert at_step.run(words, steps // 2) == 143
    out, err = capsys.readouterr()
    store = tmp_path / "made" / "a.trf.h5"
    assert out == f"{traces[0]}: kept in {store}\n"
    assert err == "phasewright: stopped, 1 of 3 sources are imported\n"
    assert list((tmp_path / "made").iterdir()) == [store] and not left(tmp_path)
    open_store(store).close()


def test_what_is_complete_is_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The request comes when the store has got its name: it is too late, and nobody says otherwise."""
    plain = os.replace

    def replace(part: Path, target: Path) -> None:
        plain(part, target)
        ask(signal.SIGTERM)

    words = import_words(tmp_path)
    monkeypatch.setattr(os, "replace", replace)
    code = cli.run(words)
    out, err = capsys.readouterr()
    assert (tmp_path / "made" / "x.h5").exists() and "nothing" not in err
    assert (
        (code, err) == (0, "")
        if "kept in" in out
        else (143, f"phasewright: stopped, complete is {words[3]}\n")
    )


class Interrupted(BaseException):
    """What may come between any two lines."""


@pytest.mark.parametrize("make", [atomic.PartFile, atomic.WorkFolder])
def test_what_is_interrupted_while_it_is_made_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], object]
) -> None:
    def lock(fd: int) -> bool:
        raise Interrupted

    monkeypatch.setattr(atomic, "_lock", lock)
    with pytest.raises(Interrupted):
        make(tmp_path / "made" / "x")
    assert not list((tmp_path / "made").iterdir())


def test_a_store_that_is_interrupted_while_it_is_begun_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def file(*_: Any, **__: Any) -> None:
        raise Interrupted

    monkeypatch.setattr("desktop.data.store.writer.h5py.File", file)
    with pytest.raises(Interrupted):
        cli.run(import_words(tmp_path))
    assert not left(tmp_path)


#: The program, which waits for a request at its first step after it has begun to write.
HELD = """
import sys, time
from pathlib import Path
from desktop import __main__, stopping
from desktop.printing import TerminalProgress
from desktop.progress import ENDING
stopping.PATIENCE = 60.0  # it ends by itself, however busy the machine
made = Path(sys.argv[-1]).parent
def show(progress, *_):
    if not ENDING[0] and any(made.iterdir()):
        print("ready", flush=True)
        while not ENDING[0]:
            time.sleep(0.001)
TerminalProgress.show = show
sys.exit(__main__.main())
"""


@pytest.mark.parametrize("number", stopping.REQUESTS)
def test_an_import_that_is_asked_to_end_leaves_nothing(tmp_path: Path, number: int) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path / "scratch")}
    words = ["import", str(picl(tmp_path / "run.trf")), "-o", str(tmp_path / "made" / "x.h5")]
    with subprocess.Popen(
        [sys.executable, "-c", HELD, *words], cwd=ROOT, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as held:  # fmt: skip
        assert held.stdout is not None and held.stdout.readline() == "ready\n"
        assert left(tmp_path)
        held.send_signal(number)
        out, err = held.communicate(timeout=60)
    assert (held.returncode, out, err) == (128 + number, "", "phasewright: stopped, nothing was written\n")
    assert not list((tmp_path / "made").iterdir()) and not left(tmp_path)


#: Something of every kind that must not be left behind, in a process that never comes to a step.
STUCK = """
import sys, threading
from pathlib import Path
from desktop import stopping
from desktop.data.atomic import PartFile, WorkFolder, scratch_folder
from desktop.ui.settings import Settings
home, stopping.PATIENCE = Path(sys.argv[1]), float(sys.argv[2])
stopping.listen()
part = PartFile(home / "made" / "x")
settings = Settings.passing()
with WorkFolder(home / "made" / "y") as work, scratch_folder() as folder:
    for place in (work, folder):
        (place / "deep").mkdir()
        (place / "deep" / "file").write_text("x")
    print("ready", flush=True)
    threading.Lock().acquire() and threading.Event().wait()
"""


@pytest.mark.parametrize(("patience", "requests"), [(0.1, 1), (1e5, 2)])
def test_what_cannot_end_by_itself_is_ended(tmp_path: Path, patience: float, requests: int) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path / "scratch")}
    with subprocess.Popen(
        [sys.executable, "-c", STUCK, str(tmp_path), str(patience)], cwd=ROOT, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as stuck:  # fmt: skip
        assert stuck.stdout is not None and stuck.stdout.readline() == "ready\n"
        assert len(left(tmp_path)) == 4
        stuck.send_signal(signal.SIGINT)
        while requests > 1 and stuck.poll() is None:
            time.sleep(0.1)
            stuck.send_signal(signal.SIGTERM)
        said = stuck.communicate(timeout=60)[1]
    assert stuck.returncode == 130 and said == "" and not left(tmp_path)


#: Tasks in processes of their own that write for ever.
FARM = """
import sys, time
from concurrent.futures import process
from pathlib import Path
from desktop import stopping
from desktop.data.farm import Farm
from desktop.progress import Cancelled, Progress
from tests.test_stopping import write_for_ever
plain = process._ThreadWakeup.close
def close(of):  # takes its time, as on a busy machine
    of._writer.close()
    time.sleep(0.5)
    plain(of)
process._ThreadWakeup.close = close
stopping.listen()
with Farm(Path(sys.argv[1]) / "farm", 2) as farm:
    try:
        farm.run(write_for_ever, [(Path(sys.argv[1]) / "made", sys.argv[2])] * 2, Progress(), "")
    except Cancelled:
        sys.exit(stopping.code())
"""


def write_for_ever(folder: Path, how: str, progress: Progress) -> None:
    part = atomic.PartFile(folder / str(os.getpid()))
    try:
        while True:
            time.sleep(0.01)
            if how == "steps":
                progress.step(0, 1)
    finally:
        part.discard()


@pytest.mark.parametrize("how", ["steps", "never"])
def test_processes_of_a_group_end_silently(tmp_path: Path, how: str) -> None:
    (tmp_path / "farm").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", FARM, str(tmp_path), how], cwd=ROOT, text=True, stderr=subprocess.PIPE,
        start_new_session=True,
    ) as parent:  # fmt: skip
        while len(left(tmp_path)) < 2:
            assert parent.poll() is None
            time.sleep(0.01)
        os.killpg(parent.pid, signal.SIGINT)
        said = parent.communicate(timeout=60)[1]
    assert parent.returncode == 130 and said == "" and not left(tmp_path)


def test_what_is_left_is_removed_the_last_first_whatever_one_of_it_raises(tmp_path: Path) -> None:
    """And requests that come together are one, also for whoever begins to listen after the first."""
    script = tmp_path / "script.py"
    script.write_text(
        """
import signal, time
from desktop import stopping

def fails():
    print("fails", flush=True)
    raise ValueError

for name, remove in (("a", lambda: print("a", flush=True)), ("b", fails), ("c", lambda: print("c")),
                     ("d", lambda: print("d", flush=True))):
    stopping.leave_no(name, remove)
stopping.left("c")
stopping.listen()
for _ in range(3):
    signal.raise_signal(signal.SIGTERM)
    time.sleep(0.02)
heard = []
with stopping.answered_by(heard.append):
    print(heard == [stopping.request()] == [signal.SIGTERM], flush=True)
stopping.end(7)
"""
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.returncode, done.stdout.split()) == (7, ["True", "d", "fails", "a"]), done.stderr

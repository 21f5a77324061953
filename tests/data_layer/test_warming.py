"""What is compiled before the first trace is opened: all that any needs, once, and not without end."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from desktop.data import warming
from desktop.data.warming import alone, in_background, needed
from desktop.progress import Cancelled, Progress
from desktop.resources import samples

DATA = Path(__file__).parent.parent / "data"
#: Real traces, none of which the warm-up opens.
OTHERS = (
    samples()[0].path,
    DATA / "picl" / "v1-fft16-upshot.trf",
    DATA / "picl" / "v1-heat4-verbose.trf",
    DATA / "picl" / "v2-ncptl-butterfly8.trf",
    DATA / "otf1" / "farm_6_short_zlib_3streams.tar.xz",
    DATA / "otf1" / "wave1d_16_long_ascii_4streams.tar.xz",
    DATA / "paraver" / "cholesky_ring_16.prv.xz",
)
SIGNATURES = """
import gc, os, sys
os.environ["QT_QPA_PLATFORM"] = "offscreen"
from pathlib import Path
from numba.core.dispatcher import Dispatcher
from desktop.commands import warm_up
from desktop.data.opening import open_trace
from desktop.progress import Progress

def known():
    gc.unfreeze()  # what is set aside is not listed
    return {
        (d.py_func.__module__, d.py_func.__name__, str(signature))
        for d in gc.get_objects() if isinstance(d, Dispatcher) and d.py_func.__module__.startswith("desktop.")
        for signature in d.signatures
    }

warm_up._compile(Progress(), False)
before = known()
for number, place in enumerate(sys.argv[2:]):
    with open_trace(Path(place), output=Path(sys.argv[1]) / f"{number}.h5", workers=1) as store:
        warm_up._look_at(store, Path(sys.argv[1]) / "window.png")
for one in sorted(known() - before):
    print(one)
print(len(before), "before")
"""


def test_no_trace_needs_a_kernel_that_was_not_compiled_before(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SIGNATURES, str(tmp_path), *map(str, OTHERS)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    *more, last = done.stdout.splitlines()
    assert more == [] and int(last.split()[0]) > 80


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    stamp = tmp_path / "kept" / "stamp"
    monkeypatch.setattr(warming, "stamp_place", lambda: stamp)
    return stamp


def test_it_is_done_once_for_each_state_of_the_program(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert needed()
    with alone() as mine:
        assert mine and needed()
    assert not needed()
    monkeypatch.setattr(warming, "_state", lambda: "another version")
    assert needed()
    with pytest.raises(Cancelled), alone():
        raise Cancelled
    assert needed(), "what was stopped is not all"


def test_where_nothing_can_be_kept_nothing_is_compiled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(warming, "stamp_place", lambda: None)
    assert not needed()
    with alone() as mine:
        assert not mine
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setattr(warming, "stamp_place", lambda: file / "below" / "stamp")
    with alone() as mine:
        assert not mine


@pytest.mark.skipif(os.name == "nt", reason="there are no such locks")
def test_two_processes_do_not_compile_the_same_at_once(place: Path) -> None:
    inside, go = multiprocessing.Event(), multiprocessing.Event()

    def hold() -> None:
        with alone():
            inside.set()
            go.wait(60)

    process = multiprocessing.get_context("fork").Process(target=hold)
    process.start()
    assert inside.wait(60)
    with alone() as mine:
        assert not mine
    assert needed(), "who did nothing says nothing"
    go.set()
    process.join()
    assert not needed()


class Watching(Progress):
    """Stops as soon as the process is under way, and remembers what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        self.child: psutil.Process | None = None

    def show(self, done: float, total: float, text: str) -> None:
        children = [one for one in psutil.Process().children() if "warm-up" in " ".join(one.cmdline())]
        self.child = children[0] if children else self.child
        self.told.append(text)
        if text:
            self.cancel()


@pytest.mark.parametrize("listens", [True, False], ids=["ends", "has to be killed"])
def test_a_stop_ends_the_process_too(listens: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not listens:
        monkeypatch.setattr(subprocess.Popen, "terminate", lambda _process: None)
        monkeypatch.setattr("desktop.data.warming._GRACE_S", 0.1)
    for name, folder in (("NUMBA_CACHE_DIR", "kernels"), ("TMPDIR", "scratch"), ("XDG_CACHE_HOME", "cache")):
        (tmp_path / folder).mkdir()
        monkeypatch.setenv(name, str(tmp_path / folder))
    watching = Watching()
    with pytest.raises(Cancelled):
        in_background(watching)
    assert watching.child is not None and not watching.child.is_running()
    assert watching.told[-1] == "trace 1 of 6"
    assert not [*(tmp_path / "kernels").rglob("*.stamp")] and not [*(tmp_path / "scratch").iterdir()]


@pytest.mark.skipif(os.name == "nt", reason="signals of that kind are of other systems")
def test_it_ends_with_the_program_however_that_ends(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "QT_QPA_PLATFORM": "offscreen"}
    starts = (
        "from desktop.data.warming import in_background\n"
        "from desktop.progress import Progress\n"
        "in_background(Progress())\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", starts], env=environment)
    end = time.monotonic() + 120
    children: list[psutil.Process] = []
    while not children and time.monotonic() < end:
        time.sleep(0.05)
        children = psutil.Process(parent.pid).children()
    parent.kill()
    parent.wait()
    _, alive = psutil.wait_procs(children, timeout=60)
    assert children and not alive

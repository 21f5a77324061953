"""Tasks side by side: all that ends well, what raises, what dies, and what is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from desktop.data.farm import Farm
from desktop.errors import DesktopError, TraceFormatError
from desktop.progress import Cancelled, Progress


def square(number: int, progress: Progress) -> int:
    progress.step(1, 2)
    if number < 0:
        raise TraceFormatError("is negative", file="number", where=str(number), hint="take another")
    return number * number


def die(times: int, folder: Path, progress: Progress) -> int:
    """End the process without a word, as often as said; then tell which process did the work."""
    died = len(list(folder.iterdir()))
    if died < times:
        (folder / str(died)).touch()
        os._exit(9)
    progress.step(1, 1)
    return os.getpid()


def last(folder: Path, progress: Progress) -> None:
    """Work until stopped, and tell who does."""
    (folder / str(os.getpid())).touch()
    while True:
        progress.step(0, 1)
        time.sleep(0.01)


def made(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / name
    folder.mkdir()
    return folder


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"


def test_results_stand_in_order_and_errors_come_across(tmp_path: Path) -> None:
    seen = []

    class Watch(Progress):
        def show(self, done: float, total: float, text: str) -> None:
            seen.append((done, total, text))

    numbers = [3, -1, 4, 0]
    with Farm(tmp_path, 2) as farm:
        ended = farm.run(square, [(n,) for n in numbers], Watch(), "squares")
    assert [future.result() for future in ended if future.exception() is None] == [9, 16, 0]
    error = ended[1].exception()
    assert isinstance(error, TraceFormatError) and str(error) == "number: is negative, -1, take another"
    assert seen[-1] == (4, 4, "squares") and [done for done, *_ in seen] == sorted(done for done, *_ in seen)


def test_a_process_that_dies_is_replaced_once(tmp_path: Path) -> None:
    often, once, never = (made(tmp_path, name) for name in ("often", "once", "never"))
    tasks = [(99, often), (1, once), (0, never), (0, never)]
    with Farm(made(tmp_path, "farm"), 2) as farm:
        ended = farm.run(die, tasks, Progress(), "")
        again = farm.run(square, [(5,), (6,)], Progress(), "")
    assert [future.result() for future in again] == [25, 36]
    error = ended[0].exception()
    assert isinstance(error, DesktopError) and "died, twice" in str(error)
    assert len(list(often.iterdir())) == 2, "tried again more often than once"
    assert all(future.result() != os.getpid() for future in ended[1:])


def test_processes_that_cannot_start_are_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop.data.farm._begin", abort)
    with Farm(tmp_path, 1) as farm:
        (ended,) = farm.run(square, [(3,)], Progress(), "")
    assert "no process could be started" in str(ended.exception())


def abort() -> None:
    os._exit(1)


def test_a_stop_reaches_all(tmp_path: Path) -> None:
    workers = made(tmp_path, "workers")

    class Stopper(Progress):
        def show(self, done: float, total: float, text: str) -> None:
            if len(list(workers.iterdir())) == 2:
                self.cancel()

    with pytest.raises(Cancelled), Farm(made(tmp_path, "farm"), 2) as farm:
        farm.run(last, [(workers,)] * 4, Stopper(), "")
    pids = [int(path.name) for path in workers.iterdir()]
    assert len(pids) == 2 and all(gone(pid) for pid in pids)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    farm, workers = made(tmp_path, "farm"), made(tmp_path, "workers")
    code = (
        "from pathlib import Path; from desktop.data.farm import Farm; "
        "from desktop.progress import Progress; from tests.data_layer.test_farm import last; "
        f"Farm(Path({str(farm)!r}), 1).run(last, [(Path({str(workers)!r}),)], Progress(), '')"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    end = time.monotonic() + 30
    while not list(workers.iterdir()) and time.monotonic() < end:
        time.sleep(0.02)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    (worker,) = workers.iterdir()
    while not gone(int(worker.name)) and time.monotonic() < end:
        time.sleep(0.02)
    assert gone(int(worker.name))

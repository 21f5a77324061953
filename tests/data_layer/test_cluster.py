"""The same import on a cluster: two workers over loopback, one of which may be killed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from desktop import cli
from desktop.data import farm, opening, parts
from desktop.data.farm import Cluster
from desktop.data.opening import open_trace
from desktop.errors import DesktopError, TraceFormatError
from desktop.progress import Cancelled, Progress
from tests.data_layer.test_parts import DATA, same

distributed = pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")

SAMPLE = DATA / "otf2" / "ezt_cholesky_bcast_8_dilated.tar.gz"
DAMAGED = DATA / "otf2" / "damaged_b_evt_missing.tar.gz"


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0",
        silence_logs=50,
    ) as cluster:  # fmt: skip
        yield cluster.scheduler_address


@pytest.fixture
def scheduler(cluster: str) -> str:
    """The address, once both workers are there: one may have been killed just before."""
    with distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
    return cluster


@pytest.mark.parametrize("sample", [SAMPLE, DAMAGED], ids=lambda path: path.name)
def test_the_result_is_that_of_a_local_import(scheduler: str, tmp_path: Path, sample: Path) -> None:
    with (
        open_trace(sample, output=tmp_path / "there.h5", scheduler=scheduler) as there,
        open_trace(sample, output=tmp_path / "here.h5", workers=1) as here,
    ):
        same(here, there)
    assert {path.name for path in tmp_path.iterdir()} == {"there.h5", "here.h5"}


def test_the_work_is_done_there(scheduler: str, tmp_path: Path) -> None:
    with Cluster(tmp_path, scheduler, Progress()) as cluster:
        assert cluster.workers == 2
        done = cluster.run(whoami, [(0.2,)] * 4, Progress(), "")
    pids = {future.result() for future in done}
    assert len(pids) == 2 and os.getpid() not in pids


def whoami(seconds: float, progress: Progress) -> int:
    time.sleep(seconds)
    return os.getpid()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_worker_costs_time_and_no_data(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "import_part", killed_once)
    with (
        open_trace(SAMPLE, output=tmp_path / "there.h5", scheduler=scheduler) as there,
        open_trace(SAMPLE, output=tmp_path / "here.h5", workers=1) as here,
    ):
        same(here, there)
    assert {path.name for path in tmp_path.iterdir()} == {"there.h5", "here.h5", "killed"}


_IMPORT_PART = parts.import_part


def killed_once(*task: Any) -> Any:
    """Read the part, and end as if the machine had failed before anybody heard of it."""
    part = _IMPORT_PART(*task)
    number, target = task[3], task[6]
    killed = target.parent.parent / "killed"
    if number == 1 and not killed.exists():
        killed.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return part


def test_a_stop_reaches_the_workers(scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopper(Progress):
        def show(self, done: float, total: float, text: str) -> None:
            if len(list(tmp_path.glob("begun*"))) == 2:
                self.cancel()

    monkeypatch.setattr(parts, "import_part", read_for_ever)
    begin = time.monotonic()
    with pytest.raises(Cancelled):
        open_trace(SAMPLE, Stopper(), output=tmp_path / "there.h5", scheduler=scheduler)
    assert time.monotonic() - begin < farm.PATIENCE
    assert {path.name for path in tmp_path.iterdir()} == {"begun0", "begun1", "stopped0", "stopped1"}


def read_for_ever(*task: Any) -> None:
    number, target, progress = task[3], task[6], task[7]
    notes = target.parent.parent
    (notes / f"begun{number}").touch()
    try:
        while True:
            progress.step(0, 1)
            time.sleep(0.01)
    except Cancelled:
        (notes / f"stopped{number}").touch()
        raise


def test_what_is_wrong_there_is_a_sentence(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "bad.otf2"
    empty.write_bytes(b"\x03\x42OTF2\0")
    with pytest.raises(TraceFormatError, match="cut"):
        open_trace(empty, output=tmp_path / "bad.h5", scheduler=scheduler)
    monkeypatch.setattr(parts, "import_part", stumble)
    with pytest.raises(DesktopError, match=r"workers of the cluster failed \(KeyError") as caught:
        open_trace(SAMPLE, output=tmp_path / "bad.h5", scheduler=scheduler)
    assert caught.value.file == str(SAMPLE)
    monkeypatch.setattr(farm, "__version__", "0.0.1")
    with pytest.raises(DesktopError, match=r"has version .* and not 0\.0\.1"):
        open_trace(SAMPLE, output=tmp_path / "bad.h5", scheduler=scheduler)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.otf2"]


def stumble(*task: Any) -> None:
    raise KeyError("no such thing")


@pytest.fixture
def frail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """The address of a scheduler with one worker, of which nobody takes care; and its process."""
    known = tmp_path_factory.mktemp("frail") / "scheduler.json"
    root = {"PYTHONPATH": os.pathsep.join(sys.path)}  # with this module in it
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": os.environ | root}
    python = [sys.executable, "-m"]
    words = ["--scheduler-file", str(known), "--no-dashboard"]
    started = []
    try:
        there = ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
        started.append(subprocess.Popen([*python, *there, *words], **quiet))
        there = ["distributed.cli.dask_worker", "--no-nanny", "--nthreads", "1", "--death-timeout", "60"]
        started.append(subprocess.Popen([*python, *there, *words], **quiet))
        while not known.exists():
            time.sleep(0.05)
        yield json.loads(known.read_text())["address"], started[0].pid
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("victim", ["scheduler", "worker"])
def test_a_cluster_that_is_gone_is_a_sentence(
    frail: tuple[str, int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    victim: str,
) -> None:
    address, scheduler = frail
    monkeypatch.setattr(parts, "import_part", fell_scheduler if victim == "scheduler" else fell_worker)
    monkeypatch.setattr(farm, "ANSWER", 30)  # the worker is starting
    monkeypatch.setattr(farm, "DESERTED", 2.0)
    (tmp_path / "scheduler").write_text(str(scheduler))
    with pytest.raises(DesktopError, match="scheduler of the cluster or all of its workers are gone"):
        open_trace(SAMPLE, output=tmp_path / "there.h5", scheduler=address)
    assert [path.name for path in tmp_path.iterdir()] == ["scheduler"]
    assert capfd.readouterr().err == "", "the sentence says it all"


def fell_scheduler(*task: Any) -> None:
    os.kill(int((task[6].parent.parent / "scheduler").read_text()), signal.SIGKILL)
    time.sleep(60)


def fell_worker(*task: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_who_answers_is_asked_first(scheduler: str, tmp_path: Path) -> None:
    with distributed.Client(scheduler, set_as_default=False) as client:
        worker = next(iter(client.nthreads()))
    with pytest.raises(DesktopError, match=r"no scheduler answers at .* \(it is a Worker"):
        Cluster(tmp_path, worker, Progress())
    with pytest.raises(DesktopError, match=r"no scheduler answers at .*missing port"):
        Cluster(tmp_path, "", Progress())
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            connection, _ = server.accept()
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.recv(1)
            connection.close()

        Thread(target=greet, daemon=True).start()
        with pytest.raises(DesktopError, match="something else does"):
            Cluster(tmp_path, f"tcp://127.0.0.1:{server.getsockname()[1]}", Progress())


def test_waiting_for_an_answer_can_be_stopped(tmp_path: Path) -> None:
    class Stopper(Progress):
        def show(self, done: float, total: float, text: str) -> None:
            self.cancel()

    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(Cancelled):  # it says nothing
        Cluster(tmp_path, f"tcp://127.0.0.1:{server.getsockname()[1]}", Stopper())


def test_no_scheduler_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(farm, "ANSWER", 1)
    with pytest.raises(DesktopError, match=r"no scheduler answers at tcp://127\.0\.0\.1:9"):
        open_trace(SAMPLE, output=tmp_path / "there.h5", scheduler="tcp://127.0.0.1:9")
    with pytest.raises(DesktopError, match="no scheduler answers at nonsense"):
        open_trace(SAMPLE, output=tmp_path / "there.h5", scheduler="nonsense://x")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(DesktopError, match=r"install phasewright\[cluster\]"):
        open_trace(SAMPLE, output=tmp_path / "there.h5", scheduler="tcp://127.0.0.1:9")
    assert list(tmp_path.iterdir()) == []


def test_the_command(scheduler: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = [str(SAMPLE), str(DAMAGED)]
    code = cli.run(["import", *sources, "-o", str(tmp_path), "--scheduler", scheduler])
    assert code == 3, capsys.readouterr().err  # the damaged one has lost a location
    assert {path.name for path in tmp_path.iterdir()} == {f"{Path(path).name}.h5" for path in sources}


def test_a_format_that_cannot_be_divided_is_read_here(scheduler: str, tmp_path: Path) -> None:
    curve = tmp_path / "curve.csv"
    curve.write_text("0 1\n1 4\n2 0\n")
    with open_trace(curve, output=tmp_path / "curve.h5", scheduler=scheduler) as store:
        assert store.importer.id == "curve" and not opening.importers.importer("curve").divisible

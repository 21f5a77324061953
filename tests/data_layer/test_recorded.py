"""Runs recorded by the program itself hold what the recorded programs counted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from desktop.cli import run as phasewright
from desktop.data import recording
from desktop.data.consistency import doubt
from desktop.data.events import Activity, MessageKind
from desktop.data.following import Follower
from desktop.data.importers.recorded import ABORTED, ENTER, FINISHED, HEAD, LONG, RECORD, RUNNING
from desktop.data.opening import open_trace
from desktop.data.store import TraceStore
from desktop.data.utilization import UNCLOSED
from desktop.data.utilization import build as build_utilization
from desktop.errors import DesktopError, RunError
from desktop.progress import Cancelled, Progress
from desktop.recorder import compiling
from tests.data_layer.recordings import written

PROGRAMS = Path(__file__).parents[1] / "programs"
PATH = os.environ["PATH"]
#: Parts of `calls.c`, those that one run has together; to start one takes longer than what it does.
PARTS = (
    "blocking completion persistent exchange probes types",
    "collective groups windows files regions neighbours",
    "targets shared asked ports partitioned large",
    "later",
    "prepared",
)


@dataclass(frozen=True)
class Mpi:
    """An MPI library of this machine: its compiler and launcher."""

    name: str
    compiler: str
    launcher: tuple[str, ...]


def libraries() -> list[Mpi]:
    """The package that the tests bring, and what the machine has."""
    own = Path(sys.prefix) / "bin"
    places = [("package", own / "mpicc", own / "mpirun")]
    places += [
        (kind, Path(f"/usr/bin/mpicc.{kind}"), Path(f"/usr/bin/mpirun.{kind}"))
        for kind in ("mpich", "openmpi")
    ]
    more = {"openmpi": ("--oversubscribe",)}
    return [
        Mpi(name, str(compiler), (str(launcher), *more.get(name, ())))
        for name, compiler, launcher in places
        if compiler.exists() and launcher.exists() and shutil.which("cc")
    ]


@pytest.fixture(scope="module", params=libraries() or [None], ids=lambda mpi: mpi.name if mpi else "none")
def mpi(request: pytest.FixtureRequest) -> Mpi:
    if request.param is None:
        pytest.skip("there is no MPI library or no C compiler on this machine")
    found: Mpi = request.param
    return found


@pytest.fixture(autouse=True)
def as_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open MPI refuses to run for root unless it is told twice."""
    for name in ("OMPI", "PRTE"):
        monkeypatch.setenv(f"{name}_ALLOW_RUN_AS_ROOT", "1")
        monkeypatch.setenv(f"{name}_ALLOW_RUN_AS_ROOT_CONFIRM", "1")


Build = Callable[..., str]


@pytest.fixture(scope="module")
def build(mpi: Mpi, tmp_path_factory: pytest.TempPathFactory) -> Build:
    made: dict[str, str] = {}

    def make(name: str) -> str:
        if name not in made:
            target = tmp_path_factory.mktemp("programs") / Path(name).stem
            subprocess.run([mpi.compiler, "-w", "-O1", "-o", str(target), str(PROGRAMS / name)], check=True)
            made[name] = str(target)
        return made[name]

    return make


def told(store: TraceStore, location: int, *kinds: MessageKind) -> tuple[int, int]:
    """How many messages of these kinds a location has, and their bytes."""
    columns = list(store.blocks("messages", location, "kind", "bytes"))
    if not columns:
        return 0, 0
    kind, size = (np.concatenate(parts) for parts in zip(*columns, strict=True))
    which = np.isin(kind, kinds)
    return int(which.sum()), int(size[which].sum())


@pytest.mark.parametrize("parts", PARTS)
def test_what_a_program_counts_is_recorded(
    mpi: Mpi,
    build: Build,
    parts: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "run"
    ranks = 2 if parts == "prepared" else 4  # with more, Debian's MPICH 4.0.2 fails by itself
    done = recording.record([*mpi.launcher, "-n", str(ranks), build("calls.c"), *parts.split()], folder)
    assert done.code == 0
    said = capfd.readouterr().out
    counts = {int(row[0]): [int(word) for word in row[1:]] for row in map(str.split, said.splitlines())}
    assert sorted(counts) == list(range(ranks))
    with open_trace(folder) as store:
        assert [place.rank for place in store.locations] == list(range(ranks))
        assert not store.report.lossy
        assert store.notes["threads"] == ranks
        assert 1 <= store.notes["cores"] <= len(os.sched_getaffinity(0))
        for place, (sends, receives, out, into, collectives, moved) in counts.items():
            assert told(store, place, MessageKind.SEND, MessageKind.ISEND) == (sends, out)
            assert told(store, place, MessageKind.RECV, MessageKind.IRECV) == (receives, into)
            assert store.rows("collectives", place) == collectives
            columns = (("collectives", "sent"), ("metrics", "value"))
            assert moved == sum(
                block[0].sum() for name, row in columns for block in store.blocks(name, place, row)
            )
            posted, _ = told(store, place, MessageKind.IRECV_POST)
            ended, _ = told(store, place, MessageKind.IRECV, MessageKind.CANCELLED)
            assert ended - posted == (2 if parts == "later" and receives else 0)  # MPI_Isendrecv posts none
        if "completion" in parts:
            assert told(store, 0, MessageKind.CANCELLED)[0] == 6 * 25
        if "regions" in parts:
            names = [region.name for region in store.regions]
            assert "solve the equations of the twenty-fourth day" in names and "inner" in names
            assert "MEASUREMENT OFF" in names
        if "neighbours" in parts:
            names = {region.name for region in store.regions}
            assert {
                "MPI_Neighbor_alltoallw",
                "MPI_Ineighbor_allgather",
                "MPI_Dist_graph_create_adjacent",
            } <= names
        if "windows" in parts:
            assert {"MPI_Put", "MPI_Get", "MPI_Win_fence"} <= {region.name for region in store.regions}


def counted(said: str, store: TraceStore, place: int, words: int = 1) -> None:
    """Of a line of words that say who, sends receives bytes-sent bytes-received collectives."""
    sends, receives, out, into, collectives = (int(word) for word in said.split()[words:])
    assert told(store, place, MessageKind.SEND, MessageKind.ISEND) == (sends, out)
    assert told(store, place, MessageKind.RECV, MessageKind.IRECV) == (receives, into)
    assert store.rows("collectives", place) == collectives
    assert sends and receives and collectives


def test_programs_that_are_spawned(
    mpi: Mpi, build: Build, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = build("spawn.c")
    if subprocess.run([*mpi.launcher, "-n", "2", program], capture_output=True, timeout=120).returncode:
        pytest.skip("this MPI library cannot spawn programs on this machine")
    capfd.readouterr()
    assert recording.record([*mpi.launcher, "-n", "2", program], tmp_path / "run").code == 0
    rows = sorted(capfd.readouterr().out.splitlines())
    assert len(rows) == 5
    with open_trace(tmp_path / "run") as store:
        assert not store.report.lossy
        names = [place.name for place in store.locations]
        assert names == ["rank 0", "rank 1", *(f"rank {k} spawned 1" for k in range(3))]
        for row, place in zip(rows, range(5), strict=True):
            counted(row, store, place, 2)
        ring = [
            {
                (int(p), int(q))
                for block in store.blocks("messages", place, "peer", "kind")
                for p, q in zip(*block, strict=True)
            }
            for place in range(5)
        ]
        # Of the rings, both ends are known; of what goes to the other program, one.
        for place, (around, back) in enumerate([(1, 1), (0, 0), (3, 4), (4, 2), (2, 3)]):
            assert {(around, int(MessageKind.SEND)), (back, int(MessageKind.RECV))} <= ring[place]
            assert {p for p, _ in ring[place]} <= {around, back, -1}


def test_programs_that_follow_each_other_are_kept_apart(
    mpi: Mpi, build: Build, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    one = " ".join([*mpi.launcher, "-n", "2", build("calls.c"), "blocking"])
    assert recording.record(["sh", "-c", f"{one}; {one}"], tmp_path / "run").code == 0
    assert len(capfd.readouterr().out.splitlines()) == 4
    with open_trace(tmp_path / "run") as store:
        assert not store.report.lossy and store.report.findings["programs apart"].count == 2
        names = [place.name for place in store.locations]
        assert names == ["rank 0", "rank 1", "rank 0 program 2", "rank 1 program 2"]
        assert len({place.id for place in store.locations}) == 4
        communicators = []
        for place in range(4):
            peers = np.concatenate([block[0] for block in store.blocks("messages", place, "peer")])
            assert set(peers.tolist()) <= {place // 2 * 2, place // 2 * 2 + 1}
            used = np.concatenate([b[0] for b in store.blocks("collectives", place, "communicator")])
            communicators.append(set(used.tolist()))
        assert communicators[0] & communicators[1] and communicators[2] & communicators[3]
        assert not (communicators[0] | communicators[1]) & (communicators[2] | communicators[3])


def test_sessions_without_init(mpi: Mpi, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = str(tmp_path / "sessions")
    words = [mpi.compiler, "-w", "-o", program, str(PROGRAMS / "sessions.c")]
    if subprocess.run(words, capture_output=True).returncode:
        pytest.skip("this MPI library has no sessions")
    words = [*mpi.launcher, "-n", "3", program]
    if not subprocess.run([*words, "2"], capture_output=True, timeout=120).returncode:
        words.append("2")  # one after another, which some libraries do not survive
    capfd.readouterr()
    assert recording.record(words, tmp_path / "run").code == 0
    rows = sorted(capfd.readouterr().out.splitlines())
    with open_trace(tmp_path / "run") as store:
        assert not store.report.lossy and "not ended" not in store.report.findings
        assert len(rows) == len(store.locations) == 3
        for place, row in enumerate(rows):
            counted(row, store, place)


def test_what_was_recorded_before_a_kill_is_read(mpi: Mpi, build: Build, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    library = recording.recorder()
    folder.mkdir()
    environment = {**os.environ, "LD_PRELOAD": str(library), recording.FOLDER: str(folder)}
    command = [*mpi.launcher, "-n", "2", build("endless.c")]
    child = subprocess.Popen(
        recording.with_environment(command, ("LD_PRELOAD", recording.FOLDER)), env=environment,
        stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    with child:
        assert child.stdout is not None
        pids = [int(child.stdout.readline()) for _ in range(2)]
        until = time.monotonic() + 60
        while time.monotonic() < until and not all(
            np.fromfile(folder / f"{k}.0.pwr", HEAD, 1)["stored"] for k in (0, 1)
        ):
            time.sleep(0.05)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        child.wait()
    with open_trace(folder) as store:
        assert "not ended" in store.report.findings
        sent = [told(store, place, MessageKind.SEND)[0] for place in (0, 1)]
        received = [told(store, place, MessageKind.RECV)[0] for place in (0, 1)]
    # All but the last few records of each; more than a tail of them, so that the body was written too.
    assert min(sent) > 1000 and abs(sent[0] - received[1]) < 2 + 65536 // RECORD.itemsize
    raw = np.fromfile(folder / "0.0.pwr", HEAD, 1)[0]
    assert raw["records"] > raw["stored"] > 0


def test_a_program_gets_the_same_results(mpi: Mpi, build: Build, tmp_path: Path) -> None:
    command = [*mpi.launcher, "-n", "3", build("results.c"), "17", "20", "3"]
    bare = subprocess.run(command, capture_output=True, text=True)
    environment = {**os.environ, "LD_PRELOAD": str(recording.recorder()), recording.FOLDER: str(tmp_path)}
    beside = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert bare.returncode == beside.returncode == 0
    assert sorted(bare.stdout.splitlines()) == sorted(beside.stdout.splitlines()) != []
    assert any(tmp_path.glob("*.pwr"))


def test_a_full_disk_ends_the_recording_only(mpi: Mpi, build: Build, tmp_path: Path) -> None:
    environment = {**os.environ, "LD_PRELOAD": str(recording.recorder()), recording.FOLDER: str(tmp_path)}
    command = [*mpi.launcher, "-n", "2", build("endless.c"), "20000", "500000"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0
    assert "is not recorded further" in done.stderr
    with open_trace(tmp_path) as store:
        assert store.report.findings["not recorded"].severity == "loss"
        assert told(store, 0, MessageKind.SEND)[0] > 1000


def test_the_command(
    mpi: Mpi, build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [
        "record",
        "--no-open",
        "--repeat",
        "2",
        "--",
        *mpi.launcher,
        "-n",
        "2",
        build("calls.c"),
        "exchange",
    ]
    assert phasewright(words) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["calls-2.recorded", "calls.recorded"]
    said = capfd.readouterr().out
    assert "2 processors" in said and "phasewright compare" in said
    assert phasewright(["record", "--no-open", "--", *mpi.launcher, "-n", "2", build("endless.c"), "-3"]) == 1
    assert "ended with exit code" in capfd.readouterr().err


def test_requests_of_several_threads_are_kept_apart(mpi: Mpi, build: Build, tmp_path: Path) -> None:
    done = recording.record([*mpi.launcher, "-n", "2", build("several.c"), "200"], tmp_path / "run")
    if done.code == 77:
        pytest.skip("this MPI library does not serve several threads")
    assert done.code == 0
    with open_trace(tmp_path / "run") as store:
        assert not store.report.lossy and "clocks contradict" not in store.report.findings
        threads = [i for i, place in enumerate(store.locations) if place.thread]
        assert len(threads) == 6
        assert [told(store, i, MessageKind.IRECV) for i in threads] == [(200, 800)] * 6
        assert [told(store, i, MessageKind.ISEND) for i in threads] == [(200, 800)] * 6


def test_threads_of_openmp_wait_for_each_other(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """In each round, threads 0, 1, 2 come 0, 20, 40 ms late to a barrier, and 0 works 30 ms alone."""
    clang = next((found for name in ("clang", "clang-14") if (found := shutil.which(name))), None)
    program = tmp_path / "threads"
    words = [str(clang), "-fopenmp", "-O1", "-o", str(program), str(PROGRAMS / "threads.c")]
    if clang is None or subprocess.run(words, capture_output=True).returncode:
        pytest.skip("there is no clang with its OpenMP on this machine")
    rounds = 5
    assert recording.record([str(program), str(rounds)], tmp_path / "run").code == 0
    assert capfd.readouterr().out.split() == [str(rounds * (44850 + 3)), str(4 * rounds)]
    followed = Follower(tmp_path / "run").look()
    assert followed is not None and (followed.processes, followed.ended) == (1, 1)
    with open_trace(tmp_path / "run") as store:
        assert [(place.rank, place.thread) for place in store.locations] == [(0, 0), (0, 1), (0, 2)]
        assert not store.report.lossy
        entered = np.zeros(len(store.regions), int)
        for place in range(3):
            for kind, region in store.blocks("events", place, "kind", "region"):
                entered += np.bincount(region[kind == 0], minlength=entered.size)
        counts = dict(zip([region.name for region in store.regions], entered.tolist(), strict=True))
        each = ("parallel", "barrier", "for", "critical", "set lock")
        assert [counts[f"OpenMP {name}"] for name in each] == [3 * rounds] * len(each)
        assert counts["OpenMP single"] == rounds
        assert counts["OpenMP task"] >= 4 * rounds
        used = build_utilization(store)
        idle = used.count(Activity.IDLE) @ np.diff(used.edges) * used.unit
        # Alone, late to the barrier, one after another in the critical section; a busy machine shortens some.
        assert idle > rounds * (2 * 0.03 + 0.06 + 0.03) / 2
        assert followed.seconds["idle"] == pytest.approx(idle, rel=0.2)


def test_what_is_no_mpi_program_is_said(tmp_path: Path) -> None:
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler on this machine")
    with pytest.raises(RunError, match="nothing was recorded"):
        recording.record(["true"], tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(RunError, match="there is no program"):
        recording.record(["./nonsense"], tmp_path / "run")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(RunError, match="holds files already"):
        recording.record(["true"], tmp_path / "full")


def test_a_program_that_is_linked_statically_is_said(tmp_path: Path) -> None:
    program, source = tmp_path / "whole", tmp_path / "whole.c"
    source.write_text("int main(void) { return 0; }\n")
    words = ["cc", "-static", "-o", str(program), str(source)]
    if not shutil.which("cc") or subprocess.run(words, capture_output=True).returncode:
        pytest.skip("nothing can be linked statically on this machine")
    with pytest.raises(RunError, match="whole is linked statically, so nothing can be loaded before it"):
        recording.record([str(program)], tmp_path / "run")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that brought its recorder compiled, on a machine without a compiler."""
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler on this machine")
    compiled = recording.recorder()
    monkeypatch.setattr(compiling, "SOURCE", shutil.copytree(compiling.SOURCE, tmp_path / "recorder"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "cat").symlink_to(str(shutil.which("cat")))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Path(shutil.copy(compiled, compiling.SOURCE))


def test_the_recorder_that_came_with_the_program_is_taken(installed: Path, tmp_path: Path) -> None:
    assert recording.recorder() == installed and not (tmp_path / "cache").exists()


def test_one_of_other_sources_is_not_taken(installed: Path) -> None:
    with (compiling.SOURCE / "calls.h").open("a") as file:
        file.write("/* changed */")
    with pytest.raises(RunError, match="has to be compiled once, and there is no C compiler"):
        recording.recorder()


def test_a_cache_from_which_nothing_is_preloaded_is_said(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed.unlink()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    with pytest.raises(RunError, match="a folder with a blank or a colon in its name"):
        recording.recorder()


def test_one_that_this_machine_does_not_load_is_not_taken(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed, source = tmp_path / "libnone.so", tmp_path / "none.c"
    source.write_text("int none(void) { return 0; }\n")
    words = [str(shutil.which("cc", path=PATH)), "-shared", "-fPIC", str(source), "-o"]
    linked = [*words, str(installed), "-Wl,--no-as-needed", str(needed)]
    for command in ([*words, str(needed)], linked):
        subprocess.run(command, env={"PATH": PATH}, check=True)
    assert recording.recorder() == installed
    said = "as the one that Phasewright brings does not load here, and there is no C compiler"
    needed.unlink()  # now loaders end the program
    with pytest.raises(RunError, match=said):
        recording.recorder()
    installed.write_bytes(installed.read_bytes()[:1000])  # this one they pass over
    with pytest.raises(RunError, match=said):
        recording.recorder()
    # Nor is one that a machine with the same home has left: it is made anew.
    kept = tmp_path / "cache" / "phasewright" / "recorder" / installed.name
    kept.parent.mkdir(parents=True)
    shutil.copy(installed, kept)
    monkeypatch.setenv("PATH", PATH)
    monkeypatch.setattr(compiling, "OPTIONS", (*compiling.OPTIONS, "-O0"))  # takes a sixth of the time
    assert recording.recorder() == kept and kept.read_bytes() != installed.read_bytes()
    assert recording.recorder() == kept


def test_without_a_compiler_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(RunError, match="no C compiler, install one of cc, gcc, clang, mpicc"):
        recording.recorder()


def test_a_program_with_a_library_of_its_own(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler on this machine")
    source, library, program = str(PROGRAMS / "alone.c"), tmp_path / "libmpi.so", tmp_path / "alone"
    subprocess.run([compiler, "-DLIBRARY", "-shared", "-fPIC", "-o", str(library), source], check=True)
    subprocess.run([compiler, "-o", str(program), source, str(library), f"-Wl,-rpath,{tmp_path}"], check=True)
    assert recording.record([str(program), "3000"], tmp_path / "run").code == 0
    assert capfd.readouterr().out == f"{sum(range(3000))}\n"
    assert recording.record([str(program), "20", "300"], tmp_path / "left").code == 0
    with open_trace(tmp_path / "left") as store:
        (place,) = store.locations
        assert place.last is not None and place.last > 3e8  # by exit, in a region, long after the last record
        assert UNCLOSED in store.report.findings and "not ended" not in store.report.findings
        assert not store.report.lossy
    with open_trace(tmp_path / "run") as store:
        assert told(store, 0, MessageKind.SEND) == told(store, 0, MessageKind.RECV) == (3000, 12000)
        assert store.rows("collectives", 0) == 1  # neither the child's nor that while the recording was off
        names = [region.name for region in store.regions]
        (columns,) = [
            np.concatenate(parts) for parts in zip(*store.blocks("events", 0, "region"), strict=True)
        ]
        assert np.bincount(columns)[names.index("a message to oneself")] == 6000
        assert np.bincount(columns)[names.index("MEASUREMENT OFF")] == 2
        assert not store.report.lossy
    assert not any(path.name.startswith("1.") for path in (tmp_path / "run").iterdir())
    # On a network file system: sent off as it goes on, and waited for before its head says that it has ended.
    monkeypatch.setenv("FAR", str(HEAD.fields["state"][1]))
    capfd.readouterr()
    assert recording.record([str(program), "30"], tmp_path / "far").code == 0
    (row,) = (row for row in capfd.readouterr().out.splitlines() if row.startswith("sent"))
    sent, waited = (int(word) for word in row.split()[1::2])
    assert sent >= 2 and waited == 1


@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        ("exec", 0, "another program\n"),
        ("abort", -signal.SIGABRT, ""),
        ("term", -signal.SIGTERM, ""),
        ("alarm", 0, f"{sum(range(3000))}\n"),
        ("memory", 0, f"{sum(range(3000))}\n"),
        ("session", 0, f"{sum(range(3000))}\n"),
        ("requests", 0, f"{sum(range(3000))}\n"),
    ],
)
def test_what_befalls_a_program_befalls_it_alone(
    how: str, code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler on this machine")
    source, library, program = str(PROGRAMS / "alone.c"), tmp_path / "libmpi.so", tmp_path / "alone"
    subprocess.run([compiler, "-DLIBRARY", "-shared", "-fPIC", "-o", str(library), source], check=True)
    subprocess.run([compiler, "-o", str(program), source, str(library), f"-Wl,-rpath,{tmp_path}"], check=True)
    (tmp_path / "run").mkdir()
    more = {"LD_PRELOAD": str(recording.recorder()), recording.FOLDER: str(tmp_path / "run")}
    ended = [
        subprocess.run(
            [str(program), "3000", how], capture_output=True, text=True, env={**os.environ, **own}, timeout=60
        )
        for own in ({}, more)
    ]
    assert [(done.returncode, done.stdout) for done in ended] == [(code, said)] * 2
    if how == "memory":  # not even for a file of its own, which it says
        assert "is not recorded further" in ended[1].stderr
        return
    with open_trace(tmp_path / "run") as store:
        if how == "requests":  # those that no memory was found for are posted, and their ends a loss
            ended_with = told(store, 0, MessageKind.IRECV)[0]
            assert told(store, 0, MessageKind.SEND) == (3000, 12000)
            assert told(store, 0, MessageKind.IRECV_POST)[0] == 3000 > ended_with
            assert store.report.findings["not recorded"].count == 3000 - ended_with
            return
        sent, received = (1501, 1500) if code or how == "exec" else (3000, 3000)
        assert told(store, 0, MessageKind.SEND) == (sent, 4 * sent)
        assert told(store, 0, MessageKind.RECV) == (received, 4 * received)


@pytest.mark.parametrize("dialect", ["F08", "MODULE", "MPIF"])
def test_what_a_program_of_fortran_counts_is_recorded(
    mpi: Mpi, dialect: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    compiler = Path(mpi.compiler.replace("mpicc", "mpif90"))
    if not compiler.exists() or not shutil.which("gfortran"):
        pytest.skip("there is no Fortran compiler of MPI on this machine")
    program = str(tmp_path / "languages")
    options = ["-w", "-cpp", "-ffree-line-length-none", "-fallow-argument-mismatch", f"-D{dialect}"]
    if mpi.name != "openmpi" and dialect == "F08":
        options.append("-DWITHOUT_SOME")  # a gap that the handbook tells
    words = [str(compiler), *options, "-o", program, str(PROGRAMS / "languages.f90")]
    subprocess.run(words, check=True, cwd=tmp_path)
    assert recording.record([*mpi.launcher, "-n", "3", program], tmp_path / "run").code == 0
    rows = sorted(row.rpartition(" ") for row in capfd.readouterr().out.splitlines())
    assert len(rows) == 3
    with open_trace(tmp_path / "run") as store:
        assert not store.report.lossy
        for place, (row, _, moved) in enumerate(rows):
            counted(row, store, place)
            sent = sum(block[0].sum() for block in store.blocks("collectives", place, "sent"))
            assert sent == int(moved)


def test_a_program_of_cpp_has_regions(mpi: Mpi, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    compiler = Path(mpi.compiler.replace("mpicc", "mpicxx"))
    if not compiler.exists() or not shutil.which("g++"):
        pytest.skip("there is no C++ compiler of MPI on this machine")
    program, source = tmp_path / "plus", tmp_path / "plus.cpp"
    source.write_text(
        f'#include <mpi.h>\n#include <stdexcept>\n#include "{compiling.SOURCE / "phasewright.h"}"\n'
        """
static void step(int i)
{
    phasewright_region("step");
    MPI_Barrier(MPI_COMM_WORLD);
    if (i % 2) throw std::runtime_error("a region ends by it");
}

int main()
{
    MPI_Init(nullptr, nullptr);
    for (int i = 0; i < 6; i++)
        try { step(i); } catch (const std::runtime_error &) {}
    MPI_Finalize();
}
"""
    )
    subprocess.run([str(compiler), "-w", "-o", str(program), str(source)], check=True)
    assert recording.record([*mpi.launcher, "-n", "2", str(program)], tmp_path / "run").code == 0
    with open_trace(tmp_path / "run") as store:
        assert not store.report.lossy and UNCLOSED not in store.report.findings
        number = [region.name for region in store.regions].index("step")
        for place in (0, 1):
            assert store.rows("collectives", place) == 6
            assert entries(store, place, number) == (6, 6)


def entries(store: TraceStore, place: int, region: int) -> tuple[int, int]:
    """How often a region is entered and left."""
    kinds = [kind[which == region] for kind, which in store.blocks("events", place, "kind", "region")]
    entered = sum(int((kind == 0).sum()) for kind in kinds)
    return entered, sum(len(kind) for kind in kinds) - entered


def test_regions_of_python(mpi: Mpi, build: Build, tmp_path: Path) -> None:
    linked = subprocess.run(["ldd", build("calls.c")], capture_output=True, text=True).stdout
    library = next((row.split()[2] for row in linked.splitlines() if "libmpi" in row), None)
    if library is None:
        pytest.skip("the MPI library is no shared one")
    script = tmp_path / "regions.py"
    script.write_text(
        f"""
import ctypes, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from desktop.recorder import region
ctypes.CDLL({library!r}, ctypes.RTLD_GLOBAL)
mpi = ctypes.CDLL(None)
mpi.MPI_Init(None, None)
for turn in range(5):
    with region("solve"):
        with region("inner"):
            pass
mpi.MPI_Finalize()
"""
    )
    words = [*mpi.launcher, "-n", "2", sys.executable, str(script)]
    assert recording.record(words, tmp_path / "run").code == 0
    with open_trace(tmp_path / "run") as store:
        names = [region.name for region in store.regions]
        for place in (0, 1):
            assert entries(store, place, names.index("solve")) == (5, 5)
            assert entries(store, place, names.index("inner")) == (5, 5)


def test_what_a_program_of_mpi4py_counts_is_recorded(
    mpi: Mpi, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "counts.py"
    script.write_text(
        """
from array import array
from mpi4py import MPI
world = MPI.COMM_WORLD
me, size = world.rank, world.size
a, b = array("i", [me] * 4), array("i", [0] * 4)
for turn in range(5):
    posted = world.Irecv(b, source=MPI.ANY_SOURCE, tag=turn)
    world.Send([a, turn % 4 + 1, MPI.INT], dest=(me + 1) % size, tag=turn)
    posted.Wait()
    world.Barrier()
world.Allreduce(a, b)
got = world.sendrecv({"from": me}, dest=(me + 1) % size, source=(me - 1) % size)
assert got == {"from": (me - 1) % size}
print(me, flush=True)
"""
    )
    pythons = [sys.executable, shutil.which("python3") or sys.executable]
    tried = [*mpi.launcher, "-n", "2"]
    for python in pythons:
        bare = subprocess.run([*tried, python, str(script)], capture_output=True, text=True, timeout=120)
        if not bare.returncode and len(set(bare.stdout.splitlines())) == 2:
            break
    else:
        pytest.skip("there is no mpi4py for this MPI library")
    capfd.readouterr()
    assert recording.record([*tried, python, str(script)], tmp_path / "run").code == 0
    rows = sorted(capfd.readouterr().out.splitlines())
    with open_trace(tmp_path / "run") as store:
        assert len(rows) == len(store.locations) == 2 and not store.report.lossy
        for place in (0, 1):
            # One more of each: that of the object, whose pickled bytes are Python's matter.
            sends, out = told(store, place, MessageKind.SEND, MessageKind.ISEND)
            receives, into = told(store, place, MessageKind.RECV, MessageKind.IRECV)
            assert (sends, receives) == (6, 6) and out == into > 44
            assert store.rows("collectives", place) == 6


def test_regions_of_fortran_and_functions_of_c(
    mpi: Mpi, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    compiler = Path(mpi.compiler.replace("mpicc", "mpif90"))
    if not compiler.exists() or not shutil.which("gfortran"):
        pytest.skip("there is no Fortran compiler of MPI on this machine")
    module, program = compiling.SOURCE / "phasewright.f90", tmp_path / "regions"
    words = [str(compiler), "-w", "-o", str(program), str(module), str(PROGRAMS / "regions.f90")]
    subprocess.run(words, check=True, cwd=tmp_path)
    recording.record([*mpi.launcher, "-n", "3", str(program)], tmp_path / "run")
    sent = {int(row.split()[0]): int(row.split()[2]) for row in capfd.readouterr().out.splitlines()}
    with open_trace(tmp_path / "run") as store:
        for place in (0, 1, 2):
            assert told(store, place, MessageKind.ISEND) == (6, sent[place])
            assert told(store, place, MessageKind.IRECV) == (6, sent[place])
        assert "exchange" in [region.name for region in store.regions]
    words = [
        mpi.compiler,
        "-w",
        "-finstrument-functions",
        "-rdynamic",
        "-o",
        str(program),
        str(PROGRAMS / "calls.c"),
    ]
    subprocess.run(words, check=True)
    recording.record([*mpi.launcher, "-n", "2", str(program), "exchange"], tmp_path / "run2")
    with open_trace(tmp_path / "run2") as store:
        assert any(region.name.startswith("regions+0x") for region in store.regions)  # it is static
        assert not store.report.lossy


# ---- files from strangers -------------------------------------------------------------------------------


def test_a_call_of_any_length_is_whole(tmp_path: Path) -> None:
    saturated = 2**32 - 1
    records = [(10, 5, 0, 0, -1, 0, 0), (20, saturated, 1, 1, 1, 7, 8), (20 + 2**40, 0, LONG, 0, 0, 0, 0)]
    with open_trace(written(tmp_path / "run", records)) as store:
        times = np.concatenate([block[0] for block in store.blocks("events", 0, "time")])
        assert times.tolist() == [10, 15, 20, 20 + 2**40]
        assert told(store, 0, MessageKind.SEND) == (1, 8)


@pytest.mark.parametrize(
    ("head", "said"),
    [({"version": 9}, "version 9"), ({"header": 2**31}, "damaged head"), ({"names": 2**31}, "damaged head")],
)
def test_damaged_heads_are_said(tmp_path: Path, head: dict[str, int], said: str) -> None:
    with pytest.raises(DesktopError, match=said):
        open_trace(written(tmp_path / "run", [(10, 5, 0, 0, -1, 0, 0)], **head))


def test_records_out_of_order_end_a_file_and_are_told(tmp_path: Path) -> None:
    records = [(10, 5, 0, 0, -1, 0, 0), (20, 5, 1, 1, 1, 7, 8), (3, 5, 1, 1, 1, 7, 8), (40, 5, 1, 1, 1, 7, 8)]
    with open_trace(written(tmp_path / "run", records)) as store:
        assert store.report.lossy and "damaged records" in store.report.findings
        assert told(store, 0, MessageKind.SEND) == (1, 8)


_SENT = [(10 * i, 5, 1, 0, 1, 7, 8) for i in range(1, 90)]
_GOT = [(10 * i, 7, 2, 0, 0, 7, 8) for i in range(1, 90) if i != 40]
_ENTERED = [(3, 0, ENTER, 0, 0, 0, 0)]


@pytest.mark.parametrize(
    ("killed", "rest", "found"),
    [
        # Both end at once, the second within a region: what it did not receive is no damage.
        (RUNNING, [], {"not ended": "notice", "sends without partner": "notice"}),
        (ABORTED, [], {"sends without partner": "notice"}),
        # The others go on for ten times as long, and what it did meanwhile is not known.
        (RUNNING, [(10_000, 5, 1, 0, 0, 7, 8)], {"cut off": "loss", "not ended": "notice"}),
        # It ended by itself, so records are missing.
        (FINISHED, [], {"sends without partner": "loss"}),
    ],
)  # fmt: skip
def test_a_killed_process_is_no_damage_but_what_it_did_may_be_unknown(
    killed: int, rest: list[tuple[int, ...]], found: dict[str, str], tmp_path: Path
) -> None:
    written(tmp_path, [*_SENT, *rest], rank=0)
    written(tmp_path, _ENTERED + _GOT, rank=1, state=killed)
    with open_trace(tmp_path) as store:
        said = {finding.name: finding.severity for finding in store.report}
        assert found.items() <= said.items() and "broken nesting: open" not in said
        assert store.report.lossy == ("loss" in found.values())
        if "cut off" in found:
            assert (known := doubt(store)) is not None and known.seconds == pytest.approx(9.1e-6, rel=0.01)


def test_threads_end_with_their_process(tmp_path: Path) -> None:
    written(tmp_path, _SENT, rank=0, size=1)
    written(tmp_path, _SENT[:4], rank=0, thread=1, state=RUNNING, size=1)
    with open_trace(tmp_path) as store:
        assert {"not ended", "cut off"}.isdisjoint(store.report.findings)


def test_any_bytes_end_in_a_trace_or_one_sentence(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    records = [(10 * i, 5, i % 3, 1, 1, 7, 8) for i in range(1, 60)]
    sound = (written(tmp_path / "run", records) / "0.0.pwr").read_bytes()
    for trial in range(60):
        raw = bytearray(sound)
        for _ in range(rng.integers(1, 4)):
            at = rng.integers(0, 736) if trial % 2 else rng.integers(4096, len(raw))
            raw[at] = rng.integers(0, 256)
        if trial % 5 == 0:
            del raw[rng.integers(0, len(raw)) :]
        folder = tmp_path / f"t{trial}"
        folder.mkdir()
        (folder / "0.0.pwr").write_bytes(bytes(raw))
        try:
            open_trace(folder).close()
        except DesktopError as error:
            assert str(error)


def test_a_stop_while_the_recorder_is_compiled_is_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ctrl-C ends all of the terminal's programs: the compiler too, which leaves its files."""
    compiler, progress = tmp_path / "bin" / "cc", Progress()
    compiler.parent.mkdir()
    compiler.write_text(f'#!/bin/sh\necho x > "$TMPDIR/left.s"\ntouch {tmp_path}/began\nexit 1\n')
    compiler.chmod(0o755)
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("PATH", f"{compiler.parent}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))

    def step(*_: object) -> None:
        if (tmp_path / "began").exists():
            raise Cancelled

    monkeypatch.setattr(progress, "step", step)
    with pytest.raises(Cancelled):
        recording.record(["true"], tmp_path / "run", progress)
    assert (tmp_path / "began").exists()
    assert not [*(tmp_path / "scratch").iterdir(), *(tmp_path / "cache").rglob("*.*")]
    assert not (tmp_path / "run").exists()

"""Traces on other machines: the line, what comes over it, and what of a store is here."""

from __future__ import annotations

import gc
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from threading import Lock

import numpy as np
import pytest

import desktop
from desktop import cli, notebook
from desktop.data import remote, serving
from desktop.data.events import TABLES
from desktop.data.opening import open_trace
from desktop.data.parts import DIGESTS
from desktop.data.presence import structure
from desktop.data.project_file import Decoder
from desktop.data.remote_frames import MAGIC, MOST_BODY, NoFrame, frame, hello, receive
from desktop.data.store import DERIVED, Blocks, TraceStore, open_store
from desktop.data.store.blocks import AT_ONCE, REQUESTS
from desktop.data.structure import Misfit, encode
from desktop.data.utilization import build
from desktop.errors import DesktopError, StoreError
from desktop.progress import Cancelled, Progress, working
from desktop.remote import RemotePath, named, place
from tests.benchmarks.statistics import write
from tests.data_layer import archives

SAMPLE = Path(__file__).parents[2] / "resources" / "samples" / "cholesky_16" / "traces.otf2"
SERVE = f"exec {sys.executable} -m desktop serve"


@pytest.fixture
def fake_ssh(tmp_path, monkeypatch):
    """ssh that runs the command here; a function that makes it another program, in Python."""
    script = tmp_path / "ssh"

    def put(text: str) -> Path:
        script.write_text(text)
        script.chmod(0o755)
        return script

    put('#!/bin/sh\nexec sh -c "$2"\n')
    monkeypatch.setenv("PHASEWRIGHT_SSH", str(script))
    monkeypatch.setenv("PHASEWRIGHT_REMOTE_COMMAND", SERVE)
    monkeypatch.setattr(remote, "AGAIN", 0.05)
    for kind in ("STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind))
    return lambda text: put(f"#!{sys.executable}\n{text}")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    path = tmp_path_factory.mktemp("far") / "store.h5"
    open_trace(SAMPLE, output=path).close()
    return path


def far(path: Path) -> RemotePath:
    found = named(f"ssh://user@far.example:2222{path}")
    assert isinstance(found, RemotePath)
    return found


def ended(condition) -> bool:
    """Whether it holds within half a minute."""
    until = time.monotonic() + 30
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    return condition()


# ---- places


def test_a_place_is_a_path_that_stays_as_it_is():
    path = place("ssh://me@host:22/scratch/run/traces.otf2")
    assert isinstance(path, RemotePath)
    assert (path.destination, path.remote_path) == ("me@host:22", "/scratch/run/traces.otf2")
    assert str(path) == path.as_posix() == os.fspath(path) == "ssh://me@host:22/scratch/run/traces.otf2"
    assert path.absolute() is path.resolve() is path.expanduser() is path
    assert (path.name, path.stem, str(path.parent)) == (
        "traces.otf2",
        "traces",
        "ssh://me@host:22/scratch/run",
    )
    assert place(str(path)) == path == place("ssh:/me@host:22/scratch/run/traces.otf2")
    assert place("ssh://host/~/a.h5").remote_path == "~/a.h5"
    assert place("ssh://[::1]:22/a").destination == "[::1]:22"
    assert type(place("runs/ssh.otf2")) is type(Path())


@pytest.mark.parametrize(
    "text",
    [
        "ssh://-oProxyCommand=x/a",
        "ssh://h",
        "ssh:///a",
        "ssh://a b/c",
        "ssh://$(x)/a",
        "ssh://-l@h/a",
        "ssh://h;x/a",
        "ssh://h:0/a",
        "ssh://h:65536/a",
    ],
)
def test_what_ssh_could_take_for_an_option_or_a_command_is_no_place(text):
    with pytest.raises(ValueError, match="is no place on another machine"):
        place(text)


def test_a_project_names_it_and_a_host_that_nobody_named_is_never_called(tmp_path, fake_ssh, capsys):
    path = place("ssh://elsewhere/run.otf2")
    assert encode((path,), tmp_path) == [str(path)]
    assert Decoder(tmp_path).decode(Path, str(path)) == path
    assert isinstance(Decoder(tmp_path).decode(Path, str(path)), RemotePath)
    assert not isinstance(Decoder(tmp_path, closed=True).decode(Path, str(path)), RemotePath)
    with pytest.raises(Misfit):
        Decoder(tmp_path, closed=True).decode(Path, "/run.otf2")
    called = tmp_path / "called"
    fake_ssh(f"open({str(called)!r}, 'w')")
    assert not path.exists()
    with pytest.raises(StoreError, match="a host that you have not named yet"):
        open_trace(path)
    assert not called.exists()
    assert cli.run(["info", str(path)]) == 1  # who types it has named it
    assert called.exists() and path.exists()
    assert "Phasewright there cannot be reached" in capsys.readouterr().err


# ---- frames


def test_frames_are_bounded_and_make_sense_or_end_the_line():
    body = bytes(1000) + os.urandom(100)
    told = receive(io.BytesIO(frame({"id": 1, "at": 2}, body)).read)
    assert told == ({"id": 1, "at": 2}, body)
    whole = frame({"id": 1}, body)
    wrong = [
        whole[:-1], b"", os.urandom(12), frame({"id": 1}, bytes(MOST_BODY + 1)),
        whole.replace(b'{"id": 1}', b'["id", 1]'), whole.replace(b'{"id": 1}', b'{"id": 1]'),
        (2**31).to_bytes(4, "big") + whole[4:], whole[:8] + (999).to_bytes(4, "big") + whole[12:],
    ]  # fmt: skip
    for one in wrong:
        with pytest.raises(NoFrame):
            receive(io.BytesIO(one).read)


# ---- a store over a line


def test_a_store_elsewhere_reads_as_one_here_and_only_what_is_read_comes(fake_ssh, made):
    with open_store(made) as here, open_trace(far(made)) as there:
        assert there.elsewhere is not None and there.elsewhere.size == made.stat().st_size
        first = there.elsewhere.here
        assert build(there).edges.size == build(here).edges.size
        assert there.elsewhere.here < 0.8 * there.elsewhere.size
        assert np.array_equal(
            there.part("events", 3, 10, 20, "time")[0], here.part("events", 3, 10, 20, "time")[0]
        )
        with open_store(there.path) as again:  # another user of what is here
            for table in TABLES | DERIVED:
                assert again.has(table) == here.has(table)
                for location in range(len(here.locations)):
                    for a, b in zip(here.blocks(table, location), again.blocks(table, location), strict=True):
                        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
                if here.has(table):
                    whole = [store.whole(table, *(TABLES | DERIVED)[table])[1] for store in (here, again)]
                    assert all(np.array_equal(x, y) for x, y in zip(*whole, strict=True))
        came = there.elsewhere.here
        assert first < came
        copy = there.path
    with pytest.raises(StoreError, match="parts of a trace on another machine"):
        open_store(copy)
    with open_trace(far(made)) as later:
        assert later.elsewhere.here == came  # nothing of it comes twice


@pytest.fixture
def blocks(tmp_path):
    """Makes the parts here of a store elsewhere, whose bytes come once `fetch` returns; its bytes."""
    content = np.random.default_rng(1).integers(0, 256, 5 * AT_ONCE + 77, np.uint8).tobytes()

    def make(fetch) -> Blocks:
        def brought(ranges, take):
            fetch(ranges)
            for at, size in ranges:
                take(at, content[at : at + size])

        return Blocks(tmp_path / "parts.h5", len(content), brought, lambda: None, lambda request, most: b"")

    return make, content


def test_several_requests_are_on_their_way_at_a_time_and_each_byte_comes_once(blocks):
    make, content = blocks
    asked: list[tuple[int, int]] = []
    together = threading.Barrier(REQUESTS)

    def fetch(ranges):
        assert sum(size for _, size in ranges) <= AT_ONCE
        asked.extend(ranges)
        if len(asked) <= REQUESTS:
            together.wait(30)  # breaks, and with it the test, where the second waits for the first

    parts = make(fetch)
    assert parts.read(0, len(content)) == content
    spans = sorted(asked)
    assert spans[0][0] == 0 and all(a + n == b for (a, n), (b, _) in pairwise(spans))
    assert sum(spans[-1]) == len(content)
    parts.bring([(0, len(content))])
    assert sorted(asked) == spans
    parts.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "bytes"]


@pytest.mark.parametrize("error", [StoreError("no", file="far"), Cancelled()])
def test_a_request_that_fails_leaves_none_on_its_way_and_can_be_made_again(blocks, error):
    make, content = blocks
    failing = [True]

    def fetch(ranges):
        if failing[0] and ranges[0][0] >= AT_ONCE:
            raise error

    parts = make(fetch)
    with pytest.raises(type(error)):
        parts.bring([(0, len(content))])
    assert not [thread for thread in threading.enumerate() if thread.name == "bytes"]
    failing[0] = False
    assert parts.read(0, len(content)) == content
    parts.close()


def killed(parts: Blocks) -> None:
    """As if the process of a store's parts were killed: nothing is recorded."""
    Blocks._open.pop(parts.place, None)
    parts._file.close()


def test_what_is_recorded_of_a_file_that_is_gone_does_not_count(blocks):
    make, content = blocks
    parts = make(lambda ranges: None)
    parts.bring([(0, len(content))])
    parts.close()
    parts.place.unlink()
    killed(make(lambda ranges: None))
    again = make(lambda ranges: None)
    assert again.read(0, len(content)) == content
    again.close()


def test_what_one_process_has_is_not_recorded_of_a_file_that_another_has_made_anew(blocks):
    make, content = blocks
    parts = make(lambda ranges: None)
    parts.bring([(0, len(content))])
    parts.place.unlink()  # by another process, which makes room and then opens the same store
    Blocks._open.pop(parts.place)
    other = make(lambda ranges: None)
    parts.close()
    killed(other)
    again = make(lambda ranges: None)
    assert again.read(0, len(content)) == content
    again.close()


def test_bytes_that_do_not_fit_onto_the_disk_are_not_taken_for_written(blocks):
    make, content = blocks
    parts, room = make(lambda ranges: None), [1000]

    class Full:
        """A file that takes as much as there is room for, as the system does."""

        def write(self, data: bytes) -> int:
            return file.write(data[: room[0]])

        def __getattr__(self, name: str):
            return getattr(file, name)

    file, parts._file = parts._file, Full()
    with pytest.raises(StoreError, match="No space left"):
        parts.read(0, len(content))
    room[0] = len(content)
    assert parts.read(0, len(content)) == content
    parts.close()


def test_an_exact_curve_and_its_events_come_with_few_requests(fake_ssh, tmp_path, monkeypatch):
    path = tmp_path / "made.h5"
    write(path, 16, 80_000, DIGESTS, True)
    ranges: list[int] = []
    fetch = remote._Remote.fetch
    monkeypatch.setattr(
        remote._Remote, "fetch", lambda self, *a: (ranges.append(sum(n for _, n in a[0])), fetch(self, *a))
    )
    with open_store(path) as here, open_trace(far(path)) as there:
        assert there.elsewhere is not None
        ranges.clear()
        for store in (here, there):
            found = structure(store, build(store))
            assert found.stretches.begin.size
        assert sum(ranges) > 3 * AT_ONCE
        # Of each of three tables one request may have less than it could.
        assert len(ranges) <= sum(ranges) // AT_ONCE + 3


def test_every_command_takes_a_place_elsewhere(fake_ssh, made, tmp_path, capsys):
    answers = []
    for name in (str(made), str(far(made))):
        assert cli.run(["phases", name, "-n", "3", "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] == answers[1]
    copy = tmp_path / "copy.h5"
    assert cli.run(["import", str(far(made)), "-o", str(copy)]) == 0
    assert copy.read_bytes() == made.read_bytes()
    assert cli.run(["import", str(far(made)), "-o", str(copy)]) == 1
    assert "exists" in capsys.readouterr().err
    assert cli.run(["info", str(far(made.with_name("nothing.otf2")))]) == 1
    assert capsys.readouterr().err == f"phasewright: {far(made.with_name('nothing.otf2'))}: does not exist\n"


def test_a_notebook_takes_a_place_elsewhere(fake_ssh, made):
    with notebook.open(f"ssh://far.example{made}") as run, notebook.open(made) as here:
        assert run.phases(3).breaks == here.phases(3).breaks
        assert run.path == place(f"ssh://far.example{made}")


def test_a_scheduler_is_asked_by_the_other_side(fake_ssh, tmp_path, capsys):
    archive = tmp_path / "run"
    shutil.copytree(SAMPLE.parent, archive)
    with socket.socket() as taken:  # and nobody listens there
        taken.bind(("127.0.0.1", 0))
        scheduler = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        words = ["import", str(far(archive / SAMPLE.name)), "-o", str(tmp_path / "copy.h5")]
        assert cli.run([*words, "--scheduler", scheduler]) == 1
    said = capsys.readouterr().err
    assert f"no scheduler answers at {scheduler}" in said and "ssh://user@far.example" in said
    assert cli.run(words) == 0


def test_a_lost_line_is_made_again_and_what_was_asked_for_comes(fake_ssh, made, tmp_path, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(remote, "listeners", [said.append])
    mine = tmp_path / "store.h5"
    shutil.copy(made, mine)
    with open_store(made) as here, open_trace(far(mine)) as there:
        line = next(iter(remote.Line._all.values()))
        line._process.kill()
        for location in range(2):
            for a, b in zip(here.blocks("events", location), there.blocks("events", location), strict=True):
                assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
        assert line.connections == 2
        assert (
            any(words.startswith("The line to far.example:2222 is lost") for words in said) and said[-1] == ""
        )
        os.utime(mine, ns=(1, 1))  # written anew meanwhile
        line._process.kill()
        with pytest.raises(StoreError, match="has changed on far"):
            list(there.blocks("messages", 0))
        mine.unlink()
        process = line._process
    assert not remote.Line._all and process.wait(10) is not None


@pytest.mark.parametrize("noticed", [False, True])
@pytest.mark.parametrize("alike", [False, True])  # whether both wait for the same bytes
def test_who_waits_for_a_line_can_be_cancelled(fake_ssh, made, noticed, alike):
    with open_trace(far(made)) as there:
        line = next(iter(remote.Line._all.values()))
        fake_ssh("import sys; sys.exit('down')")
        line._process.kill()
        assert not noticed or ended(lambda: line._process is None)
        jobs = [Progress(), Progress()]

        def work(job: Progress, location: int) -> None:
            with working(job), pytest.raises(Cancelled):
                list(there.blocks("events", location))

        # The first tries to reach the host again, the second waits for what the first does.
        threads = [
            threading.Thread(target=work, args=(job, k * (not alike)), daemon=True)
            for k, job in enumerate(jobs)
        ]
        threads[0].start()
        assert ended(lambda: line.words)
        threads[1].start()
        time.sleep(1)
        for job, thread in zip(reversed(jobs), reversed(threads), strict=True):
            assert thread.is_alive()
            job.cancel()
            thread.join(10)
            assert not thread.is_alive()


# ---- ssh as a child


def of_ssh() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.endswith("ssh")]


#: Greets, then reads nothing, and takes no notice of being told to end.
STUBBORN = f"""import signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.path.insert(0, {str(Path(desktop.__file__).parents[1])!r})
from desktop.data.remote_frames import MAGIC, frame, hello
sys.stdout.buffer.write(MAGIC + frame(hello()))
sys.stdout.buffer.flush()
time.sleep(120)
"""


def test_ssh_that_obeys_nothing_is_ended_all_the_same_and_nobody_waits_for_it(fake_ssh, monkeypatch):
    monkeypatch.setattr(remote, "OBEY", 0.2)
    fake_ssh(STUBBORN)
    line = remote.Line.to("far.example")
    progress, stopped = Progress(), threading.Event()

    def work() -> None:
        # More than any pipe holds, so that whoever writes it waits.
        with pytest.raises(Cancelled):
            line.ask({"open": "x" * (1 << 19)}, lambda *_: None, progress)
        stopped.set()

    threading.Thread(target=work, daemon=True).start()
    assert ended(lambda: line._process is not None and line._waiting)
    process = line._process
    progress.cancel()
    assert stopped.wait(30)
    line.release()  # while its pipe is full
    assert process.stdin is not None
    assert ended(lambda: process.returncode == -signal.SIGKILL)
    assert ended(lambda: process.stdin.closed and process.stdout.closed and process.stderr.closed)
    assert ended(lambda: not of_ssh())


def test_ssh_that_does_not_greet_and_does_not_end_is_given_up(fake_ssh, monkeypatch, capsys):
    monkeypatch.setattr(remote, "OBEY", 0.2)
    monkeypatch.setattr(remote, "GREETING", 0.5)
    fake_ssh(STUBBORN.replace("sys.stdout", "sys.stderr"))
    assert cli.run(["info", str(far(Path("/run.otf2")))]) == 1
    assert "cannot be reached" in capsys.readouterr().err
    assert ended(lambda: not of_ssh())


def test_a_grandchild_that_holds_the_line_keeps_nobody(fake_ssh, tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "SILENCE", 0.5)
    monkeypatch.setattr(remote, "QUIET", 0.1)
    number = tmp_path / "grandchild"
    note = f"open({str(number)!r}, 'w').write(str(os.getpid()))"
    fake_ssh(f"import os, time\nif os.fork(): time.sleep(120)\n{note}\n{STUBBORN}")
    line = remote.Line.to("far.example")
    try:
        with pytest.raises(remote.LineLost):
            line.ask({"open": "/run.otf2"}, lambda *_: None, Progress())
    finally:
        line.release()
        assert len(of_ssh()) > 0  # its output has not ended yet
        os.kill(int(number.read_text()), signal.SIGKILL)
    assert ended(lambda: not of_ssh())


def test_nothing_is_left_open_when_a_line_ends(fake_ssh, made):
    with open_trace(far(made)) as there:
        assert there.locations
        process = next(iter(remote.Line._all.values()))._process
    assert ended(lambda: process.returncode is not None)
    assert ended(lambda: process.stdin.closed and process.stdout.closed and process.stderr.closed)
    assert ended(lambda: not of_ssh())


def test_a_store_that_nobody_closes_keeps_no_line(fake_ssh, made):
    there = open_trace(far(made))  # as what was opened when its window had gone
    process = remote.Line._all["user@far.example:2222"]._process
    del there
    gc.collect()
    assert ended(lambda: process.returncode is not None)
    assert not Blocks._open and not remote.Line._all


def test_a_program_that_is_still_written_is_started_once_it_is_there(fake_ssh, made, tmp_path, monkeypatch):
    script = tmp_path / "ssh"
    writing = script.open("ab")
    threading.Timer(0.3, writing.close).start()
    with open_trace(far(made)) as there:
        assert writing.closed and there.locations
    monkeypatch.setattr(remote, "_BUSY", 2)
    with script.open("ab"), pytest.raises(StoreError, match="cannot be started"):
        open_trace(far(made))
    assert not remote.Line._all


def test_what_needs_all_events_is_found_where_they_lie(fake_ssh, made):
    from desktop.data.remembered import Ranges, recall, remote_path
    from desktop.data.statistics import Statistics

    with open_store(made) as here, open_trace(far(made)) as there:
        use = build(here)
        curve = use.curve()
        breaks = [curve.start, curve.start + curve.duration / 3, curve.start + curve.duration]
        spans = [(breaks[0], breaks[-1]), *pairwise(breaks)]
        of = Ranges(use.rules, breaks, ("first", "second"), {})
        stats = Statistics(there).ranges(spans, use)
        assert recall(there, of, stats, True) is None
        came = there.elsewhere.here
        found = recall(there, of, stats, True, elsewhere=True)
        assert found is not None and there.elsewhere.here == came  # no events came for it
        for one, same in zip(found[0], Statistics(here).ranges(spans, use, replay=True), strict=True):
            assert np.array_equal(one.accounts, same.accounts)
            assert one.replayed.ideal_s == same.replayed.ideal_s
        assert found[1] is not None and len(found[1].phases) == 2
        assert recall(there, of, stats, True) is not None  # kept here too
        there.elsewhere._state[:] = 0  # nothing of it is here now
        statistics = Statistics(there)
        for one, same in zip(statistics.ranges(spans, use), Statistics(here).ranges(spans, use), strict=True):
            assert np.array_equal(one.seconds, same.seconds) and np.array_equal(one.calls, same.calls)
        came = there.elsewhere.here
        path, own = remote_path(there, use), Statistics(here).causes(use).path_line(use)
        assert path is not None and path.location.size > 1 and there.elsewhere.here == came
        assert all(np.array_equal(a, b) for a, b in zip(path, own, strict=True))
        with pytest.raises(DesktopError):  # what makes no sense is answered with a sentence
            there.elsewhere.ask({"accounts": {"rules": {}}}, 100)


@pytest.mark.parametrize(
    "numbers",
    [
        [[0, 99], [0, 5], [5, 9]], [[0, -1], [0, 5], [5, 9]], [[0, 1], [0, 4], [5, 9]],
        [[0, 1], [6, 5], [5, 9]],
        [[0, 1], [0, 5], [5, 1 << 62]], [[0, 1, 2, 3]],
    ],
)  # fmt: skip
def test_a_path_that_makes_no_sense_is_none(made, monkeypatch, numbers):
    from desktop.data.remembered import remote_path

    class Other:
        def ask(self, request, most):
            return zlib.compress(np.array(numbers, np.int64).tobytes())

    with open_store(made) as store:
        use = build(store)
        with monkeypatch.context() as patch:
            patch.setattr(store, "elsewhere", Other())
            assert remote_path(store, use) is None
            numbers[:] = [[0, 1], [0, 5], [5, 9]]
            assert remote_path(store, use) is not None


def test_a_run_with_changes_is_replayed_where_it_lies(fake_ssh, made, monkeypatch, capsys):
    from desktop.core.changes import Changes
    from desktop.core.machine import Machine
    from desktop.data import whatif_there
    from desktop.data.helping import helps, prepared
    from desktop.data.statistics import Statistics

    with open_store(made) as here, open_trace(far(made)) as there:
        use = build(here)
        curve = use.curve()
        breaks = [curve.start + curve.duration * part for part in (0.3, 0.6)]
        own = prepared(Statistics(here), use, breakpoints=breaks)
        there.elsewhere._state[:] = 0  # as in a large trace, of which little is here
        far_run = whatif_there.rerun(there, use, breakpoints=breaks)
        assert isinstance(far_run, whatif_there.RerunThere)
        assert (far_run.phases, far_run.start_s, far_run.recorded_s) == (3, own.start_s, own.recorded_s)
        assert far_run.estimate == own.estimate
        assert far_run.regions == own.regions != ()
        for changes in (
            Changes(),
            Changes(phases=((1, 2.0),), balanced=(0,)),
            Changes(network=Machine(1e-4), regions=((far_run.regions[0], 3.0),)),
        ):
            found, same = far_run.predict(changes), own.predict(changes)
            assert found.duration_s == same.duration_s and found.recorded_s == same.recorded_s
            assert np.array_equal(found.ends_s, same.ends_s)
            assert np.array_equal(found.breaks_s, same.breaks_s)
            assert np.array_equal(found.curve.edges, same.curve.edges)
            assert np.array_equal(found.curve.level, same.curve.level)
        assert whatif_there.would_help_most(far_run, Progress()) == helps(own) != ()
        assert there.elsewhere.here == 0  # no events came for it
        answer = whatif_there.Reruns(Statistics(here)).answer  # of a long curve come means
        with monkeypatch.context() as patch:
            patch.setattr(whatif_there, "STEPS", 16)
            patch.setattr(there.elsewhere, "ask", lambda of, _: answer(of["whatif"], Progress(), Lock()))
            few = far_run.predict(changes).curve
        assert few.segments == 16 and few.integral == pytest.approx(same.curve.integral, rel=1e-9)
        with pytest.raises(DesktopError, match="there is no region"):
            far_run.predict(Changes(regions=(("no such", 2.0),)))
    asked = ["whatif", "", "-n", "3", "--phase", "2=2", "--json"]
    told = []
    for path in (str(made), str(far(made))):
        asked[1] = path
        assert cli.run(asked) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0] == told[1] and told[0]["predicted_s"] < told[0]["recorded_s"]


@pytest.fixture
def served(made):
    """A service in this process: a function that sends a request, and one that returns the next frame."""
    (theirs, ours), (answers, sink) = os.pipe(), os.pipe()
    with (
        open(theirs, "rb") as source, open(ours, "wb", buffering=0) as to,
        open(answers, "rb") as back, open(sink, "wb", buffering=0) as out,
    ):  # fmt: skip
        thread = threading.Thread(target=serving.Service(source, out).run)
        thread.start()
        assert back.read(len(MAGIC)) == MAGIC
        assert receive(back.read)[0] == hello()
        to.write(frame(hello()))
        yield lambda request: to.write(frame(request)), lambda: receive(back.read)
        to.close()
        thread.join()


def test_a_request_that_fails_in_an_unexpected_way_is_answered(served, made, monkeypatch):
    """Without an answer, the other side would wait for ever: its pings are answered."""

    def fail(*_: object) -> None:
        raise RuntimeError("a kernel cannot be loaded")

    monkeypatch.setattr(serving, "open_trace", fail)
    send, answer = served
    send({"id": 1, "open": str(made)})
    send({"ping": True})
    frames = [answer()[0]]
    if "pong" in frames[0]:
        frames.append(answer()[0])
    assert [about["error"] for about in frames if about.get("id") == 1] == ["RuntimeError"]


def test_two_stores_opened_at_once_are_not_confused(served, made, tmp_path, monkeypatch):
    """Each keeps its number, whichever is ready first."""
    other = shutil.copy(made, tmp_path / "other.h5")
    barrier = threading.Barrier(2)

    class Waits(serving.Reruns):
        def __init__(self, *args: object) -> None:
            with suppress(threading.BrokenBarrierError):  # both are about to be added
                barrier.wait(0.5)
            super().__init__(*args)

    monkeypatch.setattr(serving, "Reruns", Waits)
    send, answer = served
    for number, path in enumerate([made, other]):
        send({"id": number, "open": str(path)})
    ends = []
    while len(ends) < 2:
        about = answer()[0]
        ends += [about["store"]] if about.get("end") else []
    assert sorted(ends) == [0, 1]


def test_a_store_that_is_replaced_while_it_is_opened_is_not_mixed_with_the_new_one(
    served, made, tmp_path, monkeypatch
):
    """The structure would be that of the one, the blocks those of the other."""
    place = Path(shutil.copy(made, tmp_path / "replaced.h5"))
    path, opened = next(archives.unpack("ezt_farm_8_dilated", tmp_path).rglob("*.otf2")), []
    with open_trace(path, output=tmp_path / "new.h5") as new:
        ranges = np.asarray(new.skeleton()).tobytes()

    def slowly(*words: object, **options: object) -> TraceStore:
        opened.append(open_trace(*words, **options))
        if len(opened) == 1:
            os.replace(tmp_path / "new.h5", place)
        return opened[-1]

    monkeypatch.setattr(serving, "open_trace", slowly)
    send, answer = served
    body, about = b"", {}
    send({"id": 1, "open": str(place)})
    while not about.get("end"):
        about, part = answer()
        body += part
    assert len(opened) == 2 and about["size"] == place.stat().st_size
    assert body == ranges


def test_a_coarse_curve_comes_from_where_the_trace_lies(fake_ssh, made, monkeypatch):
    from desktop.core.envelope import envelope
    from desktop.data import coarse
    from desktop.data.utilization import Rules

    with open_store(made) as here, open_trace(far(made)) as there:
        use = build(here)
        assert coarse.remote_coarse(here, Rules()) is None  # all of it is here
        assert coarse.remote_coarse(there, Rules()) is None  # the exact one is small
        monkeypatch.setattr(coarse, "FEW", 100)
        assert coarse.remote_coarse(there, Rules(repaired=False)) is None  # not that which the import kept
        assert (
            there.brought("utilization") and coarse.remote_coarse(there, Rules()) is None
        )  # little: it is here
        there.elsewhere._state[:] = 0
        there.column("outline", "end")
        came = there.elsewhere.here
        found = coarse.remote_coarse(there, Rules())
        assert there.elsewhere.here == came and not there.brought("utilization")
        curve, exact = found.curve(), use.curve()
        assert curve.segments <= coarse.STEPS and (curve.start, curve.duration) == (
            exact.start,
            exact.duration,
        )
        want = envelope(exact).columns(curve.edges * curve.unit).mean
        assert np.allclose(curve.level, want, rtol=1e-6, atol=1e-6)
        assert curve.integral == pytest.approx(exact.integral, rel=1e-6)
        assert (found.processors, found.defined, found.start) == (use.processors, use.defined, use.start)
        assert np.array_equal(found.totals, use.totals)
        # what makes no sense is none
        whole = zlib.decompress(coarse.coarse_for(here, Progress()))
        for content in (whole[:-4], whole + b"abcd", b"", bytes([255]) * len(whole), b"\x7f" * len(whole)):
            monkeypatch.setattr(there.elsewhere, "ask", lambda _, __, c=content: zlib.compress(c))
            assert coarse.remote_coarse(there, Rules()) is None
        monkeypatch.setattr(there.elsewhere, "ask", lambda _, __: zlib.compress(whole))
        assert coarse.remote_coarse(there, Rules()) is not None
        build(there)
        assert there.brought("utilization") and coarse.remote_coarse(there, Rules()) is None  # it is here now


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("duration_s", -1.0), ("duration_s", None), ("sizes", [16, 0]), ("sizes", [16, 1, 2, 5]),
        ("sizes", [15, 1, 3, 2]), ("sizes", [-1, 17, 3, 2]), ("sizes", "many"), ("ends", -1.0),
        ("ends", np.nan), ("level", 17.0), ("edges", 7.0),
    ],
)  # fmt: skip
def test_a_prediction_that_makes_no_sense_is_refused(made, monkeypatch, name, value):
    from desktop.data.whatif_there import RerunThere

    about = {"note": "", "duration_s": 1.0, "sizes": [16, 1, 3, 2]}
    numbers = {"ends": np.ones(16), "breaks": [0.5], "edges": [0.0, 5.0, 9.0], "level": [3.0, 16.0]}

    class Other:
        def ask(self, request, most):
            if "changes" not in request["whatif"]:
                told, values = {"regions": ["no such"], "estimate": None}, b""
            else:
                told = about
                values = b"".join(np.asarray(part, float).tobytes() for part in numbers.values())
            words = json.dumps(told).encode()
            return zlib.compress(len(words).to_bytes(8, "little") + words + values)

    with open_store(made) as store:
        use = build(store)
        with monkeypatch.context() as patch:
            patch.setattr(store, "elsewhere", Other())
            asked = RerunThere(store, use, breakpoints=[0.4 * use.curve().duration])
            assert asked.regions == () and asked.predict().curve.level.tolist() == [3.0, 16.0]
            if name in about:
                about[name] = value
            else:
                numbers[name] = np.array(numbers[name])
                numbers[name][1] = value
                if name == "edges":
                    numbers[name][2] = 6.0  # before
            with pytest.raises(StoreError, match="makes no sense"):
                asked.predict()


# ---- the other side is not believed


def answers(*frames: str, greet: str = repr(frame(hello()))) -> str:
    """A program that greets and answers the first requests with these."""
    return f"""import os, sys
sys.path.insert(0, {str(Path(desktop.__file__).parents[1])!r})
def send(data): os.write(1, data)
send({b"Welcome!" + MAGIC!r} + {greet})
from desktop.data.remote_frames import frame, receive
receive(sys.stdin.buffer.read)
for answer in [{", ".join(frames)}]:
    number = receive(sys.stdin.buffer.read)[0]["id"]
    for about, body in answer: send(frame(dict(about, id=number), body))
os.read(0, 1)
"""


OPENED = '[({"end": True, "store": 0, "state": "0123456789abcdef", "size": %s}, b"")]'
PLACES = "[({}, bytes(%d) + (%d).to_bytes(8, 'little') * %d), *" + OPENED % "100" + "]"
SENT = '[({"at": 0}, bytes(%d)), ({"end": True}, b"")]'


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (answers(greet=repr(frame(hello() | {"version": "0.1\x1b[2J"}))), "has Phasewright 0.1\ufffd[2J ("),
        (
            answers('[({"error": "\\x1b]0;you are mine\\x07no", "hint": "\\u202ereally"}, b"")]'),
            "\ufffd]0;you are mine\ufffdno, \ufffdreally",
        ),
        (answers(OPENED % "1 << 60"), "answers with no store"),
        (answers(OPENED % "True"), "answers with no store"),
        (answers(OPENED.replace("01234", "../..") % "100"), "answers with no store"),
        (answers(PLACES % (0, 5, 2), SENT % 200), "does not send what it was asked for"),
        (answers(PLACES % (8, 100, 1), SENT % 100), "cannot be opened"),
        ("import sys; sys.stdout.write('x' * 100000)", "cannot be reached"),
        ("import sys; sys.exit('sh: phasewright: not found')", "not found), install the same"),
    ],
)
def test_what_the_other_side_says_is_not_believed(fake_ssh, program, words, capsys):
    fake_ssh(program)
    assert cli.run(["info", str(far(Path("/run.otf2")))]) == 1
    said = capsys.readouterr().err
    assert words in said and said.count("\n") == 1 and "\x1b" not in said
    assert not Blocks._open and not remote.Line._all


# ---- a real sshd


def test_over_ssh_on_the_loopback_with_delay(made, tmp_path, monkeypatch, capsys):
    sshd = shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
    if sshd is None or shutil.which("ssh") is None:
        pytest.skip("OpenSSH's client or server is not installed")
    keys = [tmp_path / name for name in ("host", "user")]
    for key in keys:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    (tmp_path / "authorized").write_text(keys[1].with_suffix(".pub").read_text())
    # One connection, over pipes: no port is needed, not even on the loopback.
    told = {
        "HostKey": keys[0], "AuthorizedKeysFile": tmp_path / "authorized", "StrictModes": "no",
        "UsePAM": "no", "PasswordAuthentication": "no", "PidFile": "none",
    }  # fmt: skip
    (tmp_path / "sshd").write_text("".join(f"{key} {value}\n" for key, value in told.items()))
    slow = Path(__file__).parents[1] / "benchmarks" / "slow_line.py"
    proxy = f"{sys.executable} {slow} 50 10 {sshd} -i -f {tmp_path / 'sshd'}"
    (tmp_path / "config").write_text(
        f"Host far.example\n  ProxyCommand {proxy}\n  IdentityFile {keys[1]}\n  IdentitiesOnly yes\n"
        f"  StrictHostKeyChecking no\n  UserKnownHostsFile {tmp_path / 'known'}\n"
    )
    monkeypatch.setenv("PHASEWRIGHT_SSH", f"ssh -T -F {tmp_path / 'config'}")
    monkeypatch.setenv("PHASEWRIGHT_REMOTE_COMMAND", f"cd {Path.cwd()} && {SERVE}")
    Path("/run/sshd").mkdir(exist_ok=True) if os.access("/run", os.W_OK) else None
    path = f"ssh://far.example{made}"
    code = cli.run(["info", path, "--json"])
    told = capsys.readouterr()
    if code and "Connection closed" in told.err:
        pytest.skip("sshd does not run for this user")
    assert code == 0, told.err
    with open_trace(made) as here:
        assert json.loads(told.out)["totals"]["events"] > 0
        assert len(json.loads(told.out)["locations"]) == len(here.locations)

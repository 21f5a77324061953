"""A recording that is followed while it grows says what it says when it has ended."""

from __future__ import annotations

import math
from io import RawIOBase
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.data import following
from desktop.data.following import Follower
from desktop.data.importers.recorded import (
    COMMUNICATOR,
    ENTER,
    FINISHED,
    LEAVE,
    LONG,
    NAMED,
    RUNNING,
    SATURATED,
)
from desktop.data.opening import open_trace
from desktop.data.utilization import build
from desktop.errors import DesktopError
from tests.data_layer.recordings import written

#: Ticks at which two readings of the clock tell its rate.
CLOCK = {"tick1": 10**8, "monotonic1": 10**8}


def calls(rank: int, many: int) -> list[tuple[int, ...]]:
    """MPI_Init, then sends and receives of a millisecond or so, one of 300 longer than a record can say."""
    random = np.random.default_rng(rank)
    records: list[tuple[int, ...]] = [(100, 4_000_000, 0, 0, -1, 0, 0)]
    time = 4_000_200
    for k in range(many):
        time += int(random.integers(0, 3_000_000))
        length = int(random.integers(1, 2_000_000))
        if k == many // 2:
            records += [(time, 2**32 - 1, 2, 0, 1 - rank, 7, 8), (time + 2**33, 0, LONG, 0, 0, 0, 0)]
            time += 2**33
        else:
            records.append((time, length, 1 + k % 2, 0, 1 - rank, 7, 8))
            time += length
    return records


def test_what_is_seen_in_parts_is_the_whole(tmp_path: Path) -> None:
    every = [calls(rank, 300) for rank in (0, 1)]
    follower = Follower(tmp_path / "run")
    (tmp_path / "run").mkdir()
    assert follower.look() is None
    before = 0.0
    for end in (1, 2, 3, 40, 41, 152, 153, 200):
        for rank, records in enumerate(every):
            # Two records at most are still in the tail.
            many = {"records": end, "stored": max(0, end - 2)}
            written(tmp_path / "run", records[:end], rank=rank, state=0, **many, **CLOCK)
        seen = follower.look()
        if seen is not None:
            assert seen.latest_s >= before and seen.ended == 0 and seen.records <= 2 * end
            before = seen.latest_s
    assert follower.look() is None
    for rank, records in enumerate(every):
        written(tmp_path / "run", records, rank=rank, state=1, **CLOCK)
    seen = follower.look()
    assert seen is not None and seen.curve is not None
    assert (seen.processes, seen.expected, seen.ended) == (2, 2, 2)
    assert seen.records == sum(map(len, every))
    with open_trace(tmp_path / "run") as store:
        use = build(store)
        curve = use.curve()
        # Up to one bin at the end is not shown yet.
        width = (seen.curve.edges[1] - seen.curve.edges[0]) * 1e-9
        assert curve.duration - seen.curve.duration == pytest.approx(0, abs=width)
        assert seen.curve.integral == pytest.approx(curve.integral, abs=2 * width)
        assert seen.calls[0][0] == "MPI_Recv"
        numbers = {name: number for name, number, _ in seen.calls}
        assert numbers == {"MPI_Init": 2, "MPI_Send": 298, "MPI_Recv": 302}


def test_a_change_while_the_tail_is_stored_is_not_read_twice(tmp_path: Path) -> None:
    records = calls(0, 6)
    folder = written(tmp_path / "run", records[:4], records=4, stored=2, state=0, size=1, **CLOCK)
    follower = Follower(folder)
    first = follower.look()
    assert first is not None and first.records == 3  # the last one may still be changed
    written(tmp_path / "run", records, records=len(records), stored=len(records), state=1, size=1, **CLOCK)
    last = follower.look()
    assert last is not None and last.records == len(records) and last.ended == 1


def test_processors_are_ordered_by_rank_however_they_come(tmp_path: Path) -> None:
    """Rank 0, which waits for the others, is seen last; of two threads the second comes first."""
    busy = [(0, 100, 0, 0, -1, 0, 0), (10**8, 100, 1, 0, 0, 7, 8)]
    waits = [(0, 10**8, 2, 0, 1, 7, 8)]
    folder = tmp_path / "run"
    follower = Follower(folder)
    for rank, thread, records in ((1, 1, waits), (10, 0, busy), (1, 0, busy), (0, 0, waits)):
        written(folder, records, rank=rank, thread=thread, size=11, **CLOCK)
        seen = follower.look()
    assert seen is not None and seen.names == ("rank 0", "rank 1", "rank 1 thread 1", "rank 10")
    assert seen.share[:, :-1].mean(1) == pytest.approx([0, 1, 0, 1], abs=0.01)


def test_strangers_files_are_said(tmp_path: Path) -> None:
    follower = Follower(written(tmp_path / "run", calls(0, 3), version=9))
    with pytest.raises(DesktopError, match="version 9"):
        follower.look()
    assert Follower(tmp_path / "nowhere").look() is None


def test_who_begins_later_and_what_is_missing_is_said(tmp_path: Path) -> None:
    """One of four has not come yet; another began later, and lost records; the third switched its recording
    off, and on again."""
    ms = 10**6
    calls = [(k * ms, 1000, 1, 0, 1, 7, 8) for k in range(1, 100)]
    off = [(20 * ms, 0, 0, 0, -1, 0, 0), (60 * ms, 0, 0, 0, -1, 1, 0), (90 * ms, 1000, 1, 0, 1, 7, 8)]
    written(tmp_path, calls, rank=0, size=4, state=0, **CLOCK)
    written(tmp_path, calls[50:], rank=1, size=4, start=50 * ms, lost=3, **CLOCK)
    written(tmp_path, off, rank=2, size=4, lost=2, **CLOCK)
    file = tmp_path / "2.0.pwr"
    file.write_bytes(
        file.read_bytes().replace(b"MPI_Init\nMPI_Send\nMPI_Recv\n", b"MPI_Pcontrol\nMPI_Send\nXXXX\n")
    )
    follower = Follower(tmp_path)
    seen = follower.look()
    assert seen is not None and (seen.processes, seen.expected, seen.lost, seen.ended) == (3, 4, 5, 2)
    assert seen.known_s == pytest.approx(0.098001), "of the one that goes on, but for its last record"
    spent = seen.seconds
    assert spent["unmeasured"] == pytest.approx(0.040, abs=1e-4)
    whole = sum(spent.values())
    assert whole == pytest.approx(0.098 + 0.048 + 0.090, abs=1e-3), "nobody is there before it began"
    assert [name for name, _, _ in seen.calls] == ["MPI_Send", "MPI_Pcontrol"]


@pytest.mark.parametrize("state", [RUNNING, FINISHED])
def test_a_tail_that_is_stored_while_it_is_read_is_read_again(
    state: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the process has already said that it ends."""
    records = calls(0, 6)
    written(tmp_path, records[:4], records=4, stored=2, state=state, size=1, **CLOCK)
    follower, real, count = Follower(tmp_path), following.head_in, 0

    def head(stream: RawIOBase, path: Path) -> object:
        nonlocal count
        count += 1
        if count == 2:  # the tail has been read, and the head is asked for once more
            written(tmp_path, records, records=len(records), stored=len(records), state=1, size=1, **CLOCK)
        return real(stream, path)

    monkeypatch.setattr(following, "head_in", head)
    first = follower.look()
    assert first is not None and (first.records, first.ended) == (2, 0)
    last = follower.look()
    assert last is not None and (last.records, last.ended) == (len(records), 1)


def test_a_thread_that_waits_does_not_hold_up_the_others(tmp_path: Path) -> None:
    """A worker of OpenMP says nothing while it waits; it is idle as long as the first thread goes on."""
    names = b"MPI_Init\nMPI_Send\nOpenMP parallel\nOpenMP implicit barrier\n"
    parallel, barrier = NAMED + 2, NAMED + 3
    worker = [
        (6_000_000, parallel, ENTER), (16_000_000, barrier, ENTER), (18_000_000, barrier, LEAVE),
        (18_000_000, parallel, LEAVE), (38_000_000, parallel, ENTER), (48_000_000, barrier, ENTER),
    ]  # fmt: skip
    first = [(k * 10_000_000, 1000, 1, 0, 0, 7, 8) for k in range(1, 10)]
    folder = written(tmp_path / "run", first[:6], names_=names, size=1, state=RUNNING, **CLOCK)
    rows = [(when, number, call, 0, -1, 0, 0) for when, number, call in worker]
    written(folder, rows, names_=names, rank=0, thread=1, start=6_000_000, size=1, state=RUNNING, **CLOCK)
    follower = Follower(folder)
    follower.look()
    second = follower.look()
    assert second is not None and second.known_s > 0.049  # the first thread's, and not the worker's
    written(folder, first, names_=names, size=1, **CLOCK)
    follower.look()
    last = follower.look()
    assert last is not None and (last.processes, last.ended) == (1, 1)
    assert last.known_s == pytest.approx(0.09, rel=0.02)
    # Until 90 ms: 2 ms in the first barrier, 20 ms between the regions, and from 48 ms on.
    assert last.seconds["idle"] == pytest.approx(0.002 + 0.02 + 0.042, abs=2e-4)


@pytest.mark.parametrize("tail", [False, True])
def test_records_that_come_after_their_head_are_waited_for(tail: bool, tmp_path: Path) -> None:
    """As over a network: the head says 20, of which 12 have come; the rest is zeros, or a tail of before."""
    records = calls(0, 19)
    there = records[:12] + ([records[3], records[4]] if tail else [(0,) * 7] * 8)
    said = {"records": 14 if tail else 20, "stored": 12 if tail else 20}
    written(tmp_path, there, state=RUNNING, size=1, **said, **CLOCK)
    follower = Follower(tmp_path)
    first = follower.look()
    assert first is not None and (first.records, first.ended) == (12, 0)
    assert follower.look() is None
    written(tmp_path, records, state=FINISHED, size=1, **CLOCK)
    last = follower.look()
    assert last is not None and (last.records, last.ended) == (len(records), 1)
    assert sum(number for _, number, _ in last.calls) == 20


#: Of a record: the gap before it and its length (ns), and what it is: a call by number, a long call, a mark
#: of OpenMP, or a definition.
steps = st.lists(
    st.tuples(
        st.integers(0, 3_000_000), st.integers(0, 2_000_000),
        st.sampled_from([*range(5), "long", "enter", "leave", "definition"]),
    ),
    min_size=1, max_size=30,
)  # fmt: skip


@settings(deadline=None)  # the kernel may have to be compiled
@given(made=steps, ends=st.lists(st.integers(0, 60_000_000) | st.integers(2**33, 2**35), max_size=4))
def test_any_records_in_any_parts_are_the_whole(
    made: list[tuple[int, int, int | str]], ends: list[int]
) -> None:
    names = b"MPI_Init\nMPI_Send\nMPI_Pcontrol\nOpenMP parallel\nOpenMP implicit barrier\n"
    time, every = 1000, []  # when each record was made, and what it says
    for gap, length, what in made:
        time += gap
        begin, mark = time, NAMED + 3 + length % 2
        if what == "long":
            time += 2**33
            rows = [(begin, SATURATED, 1, 0, 0, 0, 0), (time, 0, LONG, 0, 0, 0, 0)]
        elif what == "definition":
            rows = [(length, 2, COMMUNICATOR, 0, 0, 0, 0)]
        elif isinstance(what, str):
            rows = [(begin, mark, ENTER if what == "enter" else LEAVE, 0, -1, 0, 0)]
        else:
            time += length
            rows = [(begin, length, what, 0, 0, length % 2, 8)]
        every += [(time, row) for row in rows]

    def write(folder: Path, end: float, state: int) -> None:
        rows = [row for time, row in every if time <= end]
        stored = max(len(rows) - 2, 0) if state == RUNNING else len(rows)
        head = {"state": state, "stored": stored, "thread": 1, "start": 500, "size": 1, **CLOCK}
        written(folder, rows, names_=names, **head)

    with TemporaryDirectory() as name:
        growing, whole = Follower(Path(name) / "growing"), Follower(Path(name) / "whole")
        for end in sorted(ends):
            write(growing.folder, end, RUNNING)
            growing.look()
        write(growing.folder, math.inf, FINISHED)
        write(whole.folder, math.inf, FINISHED)
        seen, expected = growing.look(), whole.look()
    assert seen is not None and expected is not None
    assert (seen.calls, seen.records, seen.latest_s) == (expected.calls, expected.records, expected.latest_s)
    assert seen.curves.keys() == expected.curves.keys()
    for name, curve in expected.curves.items():
        assert np.array_equal(seen.curves[name].edges, curve.edges)
        np.testing.assert_allclose(seen.curves[name].level, curve.level, atol=1e-9)
    np.testing.assert_allclose(seen.share, expected.share, atol=1e-9)

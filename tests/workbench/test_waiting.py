"""Who waited for whom: found out beside the window, once for a run and its rules, and kept."""

from __future__ import annotations

import dataclasses
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from desktop.core.changes import Changes
from desktop.core.machine import IDEAL
from desktop.data import remembered
from desktop.data.events import Activity
from desktop.data.whatif import RunPrediction
from desktop.workbench.imagining import Imagined
from desktop.workbench.workbench import Workbench
from tests.data_layer import archives
from tests.inline import Inline, Later


@pytest.fixture
def traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    for name in ("CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    return [
        next(archives.unpack(name, tmp_path).rglob("*.otf2"))
        for name in ("mpt_farm_6_dilated", "ezt_wave1d_4")
    ]


@pytest.fixture
def held() -> Later:
    return Later()


@pytest.fixture
def bench(held: Later) -> Iterator[Workbench]:
    lanes = {name: Inline() for name in ("store", "fit", "sweep", "statistics")}
    made = Workbench(executors={**lanes, "waiting": held})
    made.settle = 0.0
    made.watch("a panel", frozenset({"ranges", "accounts"}))
    yield made
    made.close()


def test_it_follows_the_rules_and_stays_with_the_trace(
    bench: Workbench, held: Later, traces: list[Path]
) -> None:
    bench.open(traces[0])
    first = bench.snapshot.explained
    assert first.scopes and not first.replayed and first.stats[0].accounts is None
    assert "waiting" in bench.fits_under_way
    # Rules that change while it is found out: the answer is of the new ones.
    bench.set_computing(frozenset({Activity.COMPUTING, Activity.OVERHEAD}))
    assert not bench.snapshot.explained.replayed
    held.run()
    found = bench.snapshot.explained
    assert found.replayed and found.causality is not None
    assert Activity.OVERHEAD in found.causality.rules.computing
    assert all(one.accounts is not None for one in found.stats)
    # Another n, another trace, and back: nothing is found out again.
    bench.set_n(2)
    assert bench.snapshot.explained.replayed and not held.waiting
    mine = bench.branch
    bench.open(traces[1])
    assert len(held.waiting) == 1
    bench.open(traces[0], asked=mine)
    held.run()
    again = bench.snapshot.explained
    assert again.replayed and again.causality is found.causality


def test_it_can_be_given_up(bench: Workbench, held: Later, traces: list[Path]) -> None:
    bench.open(traces[0])
    _, give_up = bench.fits_under_way["waiting"]
    give_up()
    held.run()
    bench.set_n(2)
    assert not bench.snapshot.explained.replayed and not held.waiting and not bench.fits_under_way


def test_what_if_waits_for_the_one_pass_that_all_need(held: Later, traces: list[Path]) -> None:
    lanes = {name: Inline() for name in ("store", "fit", "sweep", "statistics", "whatif", "helps")}
    bench = Workbench(executors={**lanes, "waiting": held})
    bench.settle = 0.0
    bench.watch("a panel", frozenset({"whatif"}))
    bench.open(traces[0])
    assert bench.snapshot.imagined.prediction is None and len(held.waiting) == 1
    bench.watch("another", frozenset({"words"}))
    assert len(held.waiting) == 1
    held.waiting.pop(0)()
    shown = bench.snapshot
    assert (
        shown.imagined.prediction is not None and not shown.imagined.outdated and not shown.imagined.problem
    )
    program = bench._imagining._program
    assert program is not None and program.causality is shown.explained.causality
    # Other rules: what is drawn is of the former until all is known, and without the pass each is on its own.
    bench.set_computing(frozenset({Activity.COMPUTING, Activity.OVERHEAD}))
    assert bench.snapshot.imagined.outdated
    bench.cancel_waiting()
    again = bench.snapshot.imagined
    assert again.prediction is not None and not again.outdated and bench._imagining._program is not program
    bench.close()


def test_words_come_whatever_was_under_way_before(traces: list[Path]) -> None:
    """Traces are opened over each other, given up and shown again, while any number of jobs has been done."""
    draw, jobs = random.Random(17), (Later(), Later())
    lanes = {name: Inline() for name in ("store", "fit", "sweep")}
    bench = Workbench(executors={**lanes, "statistics": jobs[0], "waiting": jobs[1]})
    bench.settle = 0.0
    bench.watch("phases", frozenset({"words"}))
    branches: dict[Path, Any] = {}

    def show(trace: Path) -> None:
        bench.open(trace, asked=branches.get(trace))
        branches[trace] = bench.branch

    def go_on(lane: Later, steps: int) -> None:
        while lane.waiting and steps:
            lane.waiting.pop(0)()
            steps -= 1

    for _ in range(4):
        for _ in range(draw.randint(1, 3)):
            show(draw.choice(traces))
            for lane in jobs:
                go_on(lane, draw.randint(0, 3))
            for _, give_up in list(bench.fits_under_way.values()):
                if draw.random() < 0.3:
                    give_up()
        last = draw.choice(traces)
        show(last)
        while any(lane.waiting for lane in jobs):
            go_on(draw.choice(jobs), 1)
        shown, found = bench.snapshot, bench.snapshot.explained
        assert shown.document is not None and shown.document.source == last
        assert found.words is not None and found.fit is shown.fit and not found.outdated
        assert found.causes is not None and found.replayed and not found.problem
    bench.close()


def test_too_little_memory_is_said(
    bench: Workbench, held: Later, traces: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("desktop.data.memory.available", lambda: 1000)
    bench.open(traces[0])
    assert "being found out" in bench.snapshot.explained.waits
    held.run()
    assert "GiB" in bench.snapshot.explained.waits and bench.snapshot.explained.stats
    bench.set_n(2)
    assert "GiB" in bench.snapshot.explained.waits and not held.waiting


def test_of_large_runs_what_is_looked_at_comes_first(
    bench: Workbench, held: Later, traces: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("desktop.workbench.explaining.AT_ONCE", 0)
    bench.open(traces[0])
    bench.set_n(3)
    bench.select_phase(1)
    seen: list[list[bool]] = []
    bench.subscribe(lambda _, new: seen.append([one.accounts is not None for one in new.explained.stats]))
    held.run()
    known = [one for k, one in enumerate(seen) if k == 0 or one != seen[k - 1]]
    assert known == [[False] * 4, [False, False, True, False], [True] * 4]


def test_it_is_there_at_once_when_the_trace_is_opened_again(
    traces: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the user's cache; never of other phases, names or rules, nor from a file that is damaged."""
    lanes = {name: Inline() for name in ("store", "fit", "sweep", "statistics")}
    kept = tmp_path / "cache" / "phasewright" / "accounts"

    def opened() -> tuple[Workbench, Later]:
        held = Later()
        made = Workbench(executors={**lanes, "waiting": held})
        made.settle = 0.0
        made.watch("a panel", frozenset({"ranges", "accounts", "words"}))
        made.open(traces[0])
        return made, held

    bench, held = opened()
    assert not bench.snapshot.explained.replayed and bench.snapshot.explained.words is None
    while held.waiting:
        held.run()
    first = bench.snapshot.explained
    bench.close()
    assert first.replayed and first.causes is not None and len(list(kept.iterdir())) == 1

    bench, held = opened()
    again = bench.snapshot.explained
    assert again.replayed and again.causality is None and again.words == first.words
    for ours, theirs in zip(again.stats, first.stats, strict=True):
        assert ours.account_s == theirs.account_s and ours.accounts is not None
        assert ours.transfer_efficiency == theirs.transfer_efficiency
        for name in ("replayed", "caused"):
            mine, other = getattr(ours, name), getattr(theirs, name)
            for field in dataclasses.fields(mine):
                a, b = getattr(mine, field.name), getattr(other, field.name)
                assert (
                    np.array_equal(a, b, equal_nan=True) if isinstance(a, np.ndarray) else repr(a) == repr(b)
                )
    while held.waiting:
        held.run()
    assert bench.snapshot.explained.stats[0].account_s == first.stats[0].account_s
    # Of other rules, and of another number of phases, nothing is known.
    bench.set_computing(frozenset({Activity.COMPUTING, Activity.OVERHEAD}))
    assert not bench.snapshot.explained.replayed
    bench.close()

    # A damaged file is as none, as is a folder that cannot be written.
    (file,) = kept.iterdir()
    file.write_bytes(file.read_bytes()[:-200])
    bench, held = opened()
    assert not bench.snapshot.explained.replayed
    bench.close()
    shutil.rmtree(kept)
    kept.write_text("in the way")
    bench, held = opened()
    while held.waiting:
        held.run()
    assert bench.snapshot.explained.replayed and not bench.snapshot.explained.problem
    bench.close()


def test_what_is_kept_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "FILES", 3)
    for k in range(5):
        (tmp_path / f"{k}.npz").write_bytes(b"x" * 10)
        os.utime(tmp_path / f"{k}.npz", (k, k))
    remembered._bound(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2.npz", "3.npz", "4.npz"]
    monkeypatch.setattr(remembered, "BYTES", 15)
    remembered._bound(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["4.npz"]


def test_what_is_drawn_has_a_curve_that_was_made_beside_the_window() -> None:
    """Of the run as it was there is none while changes are on their way: the window would make it itself."""
    as_recorded, other = Changes(), Changes(network=IDEAL)
    before = Imagined(other, RunPrediction(as_recorded, 1.0, 1.0), outdated=True)
    assert before.drawn is None
    found = RunPrediction(other, 0.5, 1.0)
    assert Imagined(other, found).drawn is found
    assert Imagined(None, found).drawn is None

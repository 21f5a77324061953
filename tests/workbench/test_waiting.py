"""Who waited for whom: found out beside the window, once for a run and its rules, and kept."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import os
import random
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from desktop.core.changes import Changes
from desktop.core.machine import IDEAL
from desktop.data import remembered
from desktop.data.events import Activity
from desktop.data.remembered import recall
from desktop.data.store import open_store
from desktop.data.whatif import RunPrediction
from desktop.workbench.phase_statistics import PhaseStatistics
from desktop.workbench.what_if import WhatIf
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
    first = bench.snapshot.statistics
    assert first.scopes and not first.replayed and first.stats[0].accounts is None
    assert "waiting" in bench.running_fits
    # Rules that change while it is found out: the answer is of the new ones.
    bench.set_computing(frozenset({Activity.COMPUTING, Activity.OVERHEAD}))
    assert not bench.snapshot.statistics.replayed
    held.run()
    found = bench.snapshot.statistics
    assert found.replayed and found.causality is not None
    assert Activity.OVERHEAD in found.causality.rules.computing
    assert all(one.accounts is not None for one in found.stats)
    # Another n, another trace, and back: nothing is found out again.
    bench.set_n(2)
    assert bench.snapshot.statistics.replayed and not held.waiting
    mine = bench.branch
    bench.open(traces[1])
    assert len(held.waiting) == 1
    bench.open(traces[0], branch=mine)
    held.run()
    again = bench.snapshot.statistics
    assert again.replayed and again.causality is found.causality


def test_it_can_be_given_up(bench: Workbench, held: Later, traces: list[Path]) -> None:
    bench.open(traces[0])
    _, give_up = bench.running_fits["waiting"]
    give_up()
    held.run()
    bench.set_n(2)
    assert not bench.snapshot.statistics.replayed and not held.waiting and not bench.running_fits


def test_what_if_waits_for_the_one_pass_that_all_need(held: Later, traces: list[Path]) -> None:
    lanes = {name: Inline() for name in ("store", "fit", "sweep", "statistics", "whatif")}
    helping = Later()
    bench = Workbench(executors={**lanes, "waiting": held, "helps": helping})
    bench.settle = 0.0
    bench.watch("a panel", frozenset({"whatif"}))
    bench.open(traces[0])
    assert bench.snapshot.what_if.prediction is None and len(held.waiting) == 1
    bench.watch("another", frozenset({"words"}))
    assert len(held.waiting) == 1
    held.waiting.pop(0)()
    shown = bench.snapshot
    assert shown.what_if.prediction is not None and not shown.what_if.outdated and not shown.what_if.problem
    program = bench._what_if._program
    assert program is not None and program.causality is shown.statistics.causality
    assert shown.what_if.helps is None
    task, give_up = bench.running_fits["helps"]
    assert task.title == "What would help most"
    give_up()
    helping.run()
    assert bench.snapshot.what_if.helps == () and "helps" not in bench.running_fits
    # Other rules: what is drawn is of the former until all is known, and without the pass each is on its own.
    bench.set_computing(frozenset({Activity.COMPUTING, Activity.OVERHEAD}))
    assert bench.snapshot.what_if.outdated
    bench.cancel_waiting()
    again = bench.snapshot.what_if
    assert again.prediction is not None and not again.outdated and bench._what_if._program is not program
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
        bench.open(trace, branch=branches.get(trace))
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
            for _, give_up in list(bench.running_fits.values()):
                if draw.random() < 0.3:
                    give_up()
        last = draw.choice(traces)
        show(last)
        while any(lane.waiting for lane in jobs):
            go_on(draw.choice(jobs), 1)
        shown, found = bench.snapshot, bench.snapshot.statistics
        assert shown.document is not None and shown.document.source == last
        assert found.words is not None and found.fit is shown.fit and not found.outdated
        assert found.causes is not None and found.replayed and not found.problem
    bench.close()


def test_too_little_memory_is_said(
    bench: Workbench, held: Later, traces: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("desktop.data.memory.available", lambda: 1000)
    bench.open(traces[0])
    assert "being computed" in bench.snapshot.statistics.waits
    held.run()
    assert "GiB" in bench.snapshot.statistics.waits and bench.snapshot.statistics.stats
    bench.set_n(2)
    assert "GiB" in bench.snapshot.statistics.waits and not held.waiting


def test_of_large_runs_what_is_looked_at_comes_first(
    bench: Workbench, held: Later, traces: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("desktop.workbench.phase_statistics.AT_ONCE", 0)
    bench.open(traces[0])
    bench.set_n(3)
    bench.select_phase(1)
    seen: list[list[bool]] = []
    bench.subscribe(lambda _, new: seen.append([one.accounts is not None for one in new.statistics.stats]))
    held.run()
    known = [one for k, one in enumerate(seen) if k == 0 or one != seen[k - 1]]
    assert known == [[False] * 4, [False, False, True, False], [True] * 4]


def test_it_is_there_at_once_when_the_trace_is_opened_again(
    traces: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the store, also on another machine; never of other phases, names or rules, nor what is damaged or
    a stranger has made up. From the user's cache where the store must not be written."""
    lanes = {name: Inline() for name in ("store", "fit", "sweep", "statistics")}
    cache = tmp_path / "cache" / "phasewright" / "accounts"

    def opened(trace: Path) -> tuple[Workbench, Later]:
        held = Later()
        made = Workbench(executors={**lanes, "waiting": held})
        made.settle = 0.0
        made.watch("a panel", frozenset({"ranges", "accounts", "words"}))
        made.open(trace)
        return made, held

    def found(trace: Path) -> PhaseStatistics:
        bench, held = opened(trace)
        while held.waiting:
            held.run()
        bench.close()
        assert bench.snapshot.statistics.replayed and not bench.snapshot.statistics.problem
        return bench.snapshot.statistics

    bench, held = opened(traces[0])
    assert not bench.snapshot.statistics.replayed and bench.snapshot.statistics.words is None
    bench.close()
    (store,) = (tmp_path / "cache" / "phasewright" / "imports").glob("*.h5")
    before = store.stat().st_mtime_ns, store.stat().st_size
    first = found(traces[0])
    assert first.causes is not None and not cache.exists()
    assert (store.stat().st_mtime_ns, store.stat().st_size) == before

    # Another machine: another place and name, an empty cache, no source.
    moved = tmp_path / "moved.h5"
    shutil.copyfile(store, moved)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other cache"))
    for trace in traces:
        shutil.rmtree(trace.parent)
    asked: list[Any] = []
    monkeypatch.setattr(remembered, "recall", lambda *given: asked.append(given) or recall(*given))
    bench, held = opened(moved)
    again = bench.snapshot.statistics
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
    assert bench.snapshot.statistics.stats[0].account_s == first.stats[0].account_s
    # Of other rules, and of another number of phases, nothing is known.
    bench.set_computing(frozenset({Activity.COMPUTING, Activity.OVERHEAD}))
    assert not bench.snapshot.statistics.replayed
    bench.close()

    with open_store(moved) as it:
        assert it.slot is not None
        _, of, stats, *_ = asked[0]
        key = remembered._key(it, of)
        kept = it.slot.get(key)
        assert kept is not None and recall(it, of, stats, True) is not None
        for packed in (kept[:-200], kept[:100] + bytes(100) + kept[200:], *made_up(kept), b""):
            assert it.slot.put(key, packed) and recall(it, of, stats, True) is None

    # It must not be written: the cache, of which a damaged file is as none, as is a folder in the way.
    moved.chmod(0o444)
    found(moved)
    (file,) = (kept_there := tmp_path / "other cache" / "phasewright" / "accounts").iterdir()
    bench, held = opened(moved)
    assert bench.snapshot.statistics.replayed
    bench.close()
    file.write_bytes(file.read_bytes()[:-200])
    bench, held = opened(moved)
    assert not bench.snapshot.statistics.replayed
    bench.close()
    shutil.rmtree(kept_there)
    kept_there.write_text("in the way")
    found(moved)


def made_up(packed: bytes) -> Iterator[bytes]:
    """What a stranger might say instead."""
    about, at, content = remembered._unpacked(packed)
    arrays = np.frombuffer(content[at:], np.int64).copy()

    def of(change: Callable[[Any], object], numbers: np.ndarray = arrays) -> bytes:
        other = copy.deepcopy(about)
        change(other)
        text = json.dumps(other).encode()
        return zlib.compress(len(text).to_bytes(8, "little") + text + numbers.tobytes())

    yield zlib.compress(b"[" * 100_000)
    yield zlib.compress((5).to_bytes(8, "little") + b'"hop"')
    yield zlib.compress(bytes(remembered.MOST + 1), 9)  # packed 1000 times smaller
    yield of(lambda it: it["ranges"].pop())
    yield of(lambda it: it["ranges"][1].update(span=[0, 1]))
    yield of(lambda it: it["ranges"][0].update(arrays=["accounts", "accounts"]))
    yield of(lambda it: it["ranges"][0].update(replayed=None))
    yield of(lambda it: it["ranges"][0]["replayed"].update(ideal_s="<b>1</b>"))
    yield of(lambda it: it["ranges"][0]["caused"]["delays"][0].update(location=1 << 40))
    yield of(lambda it: it["ranges"][0]["caused"].update(unexplained_s=math.nan))
    yield of(lambda it: it["words"].update(level=["<img src=x>"]))
    yield of(lambda it: it["words"].update(named=99))
    yield of(lambda it: it["words"]["phases"].pop())
    yield of(lambda it: it["words"]["causes"][0].update(about=6))
    yield of(lambda it: it["words"]["causes"][0].update(locations=[0, -2]))
    yield of(lambda it: it["words"]["causes"][0].update(phase=7))
    for k, number in ((0, arrays[0] + 1), (1, -1), (len(arrays) - 1, 0x7FF0000000000000)):
        wrong = arrays.copy()
        wrong[k] = number
        yield of(lambda it: None, wrong)


def test_what_is_kept_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "FILES", 3)
    for k in range(5):
        (tmp_path / f"{k}.kept").write_bytes(b"x" * 10)
        os.utime(tmp_path / f"{k}.kept", (k, k))
    remembered._bound(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2.kept", "3.kept", "4.kept"]
    monkeypatch.setattr(remembered, "BYTES", 15)
    remembered._bound(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["4.kept"]


def test_what_is_drawn_has_a_curve_that_was_made_beside_the_window() -> None:
    """Of the run as it was there is none while changes are on their way: the window would make it itself."""
    as_recorded, other = Changes(), Changes(network=IDEAL)
    before = WhatIf(other, RunPrediction(as_recorded, 1.0, 1.0), outdated=True)
    assert before.drawn is None
    found = RunPrediction(other, 0.5, 1.0)
    assert WhatIf(other, found).drawn is found
    assert WhatIf(None, found).drawn is None

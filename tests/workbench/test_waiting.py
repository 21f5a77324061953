"""Who waited for whom: found out beside the window, once for a run and its rules, and kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from desktop.data.events import Activity
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

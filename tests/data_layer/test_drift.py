"""A trace whose clocks drift, from its import to what is shown: everything uses the same corrected times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from desktop.data import importers, opening
from desktop.data.events import Activity, Importer, Location, Region, Sink
from desktop.data.info import info
from desktop.data.opening import open_trace
from desktop.data.statistics import Statistics
from desktop.data.store import TraceStore, open_store
from desktop.data.timeline import Timeline
from desktop.data.trim import trim
from desktop.data.utilization import Rules, build
from desktop.progress import Progress

RANKS, ROUNDS, LENGTH = 4, 200, 1_000_000
DRIFT = np.array([0.0, 2e-4, -3e-4, 1e-4])


def drifting(path: Path, sink: Sink, progress: Progress) -> None:
    """All meet in a barrier every millisecond; clocks show up to 60 us too much or too little at the end."""
    sink.describe(ticks_per_second=1e9, repair=True)
    region, name = sink.region(Region("MPI_Barrier", "barrier", "mpi")), sink.text("Barrier")
    at = LENGTH * (1 + np.arange(ROUNDS))
    for rank in range(RANKS):
        true = np.sort(np.concatenate([at - 1000 * (1 + rank), at + 3000]))
        shown = np.rint(true * (1 + DRIFT[rank])).astype(np.int64)
        here = sink.location(
            Location(rank, f"rank {rank}", rank, records=shown.size, first=int(shown[0]), last=int(shown[-1]))
        )
        kind = np.tile([0, 1], ROUNDS)
        sink.append("events", here, time=shown, kind=kind, region=np.full(shown.size, region))
        same = {key: np.zeros(ROUNDS, np.int64) for key in ("communicator", "sent", "received")}
        begin, end = shown[::2], shown[1::2]
        operation, root = np.full(ROUNDS, name), np.full(ROUNDS, -1)
        sink.append("collectives", here, begin=begin, end=end, operation=operation, root=root, **same)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TraceStore:
    source = tmp_path / "run.txt"
    source.write_text("made")
    made = Importer("made", "Made", "1", lambda p, h: True, drifting, lambda p: [p])
    monkeypatch.setattr(importers, "detect", lambda path: made)
    monkeypatch.setattr(opening.importers, "detect", lambda path: made)
    with open_trace(source, output=tmp_path / "run.h5") as store:
        yield store


def test_everything_uses_the_corrected_times(store: TraceStore, tmp_path: Path) -> None:
    facts = info(store)
    assert facts["clock"]["repair"] == "linear"
    assert facts["clock"]["violations_before"] > 0 == facts["clock"]["violations_after"]
    (told,) = (finding for finding in store.report if finding.name == "clocks contradict")
    assert "drifts" in told.text and "a second" in told.text
    rates = np.array([at.drift for at in store.locations])
    assert np.allclose(rates - rates[0], DRIFT[0] - DRIFT, atol=3e-5)
    # At every barrier the clocks agree again to what it leaves open.
    ends = [
        at.clock(True).common(np.concatenate([c[0] for c in store.blocks("collectives", i, "end")]))
        for i, at in enumerate(store.locations)
    ]
    assert np.ptp(np.stack(ends), axis=0).max() < 8000

    use, recorded = build(store), build(store, Rules(repaired=False))
    assert use.edges[-1] != recorded.edges[-1]
    statistics = Statistics(store)
    curve = use.curve()
    middle = curve.start + curve.duration / 2
    for a, b in ((curve.start, curve.start + curve.duration), (curve.start, middle), (middle, 0.199)):
        (stats,) = statistics.ranges([(a, b)], use)
        assert stats.computing == pytest.approx(curve.window(a, b).mean, rel=1e-4)
    with open_store(store.path) as again:
        timeline = Timeline(again, Rules())
        assert timeline.end_s == pytest.approx(curve.start + curve.duration, abs=1e-8)
        for rank in range(RANKS):
            clock = store.locations[rank].clock(True)
            (begin, *_) = next(store.blocks("collectives", rank, "begin"))
            entered = (clock.common(begin) - use.start) * use.unit
            inside = timeline.at(rank, float(entered[100] + 1e-9))
            assert inside.activity == Activity.IDLE
            assert inside.begin_s == pytest.approx(entered[100], abs=1e-12)
            assert timeline.at(rank, float(entered[100] - 2e-9)).activity == Activity.COMPUTING
            found = timeline.find([0], float(entered[100] - 2e-9), among=[rank])
            assert found is not None and found[1] == pytest.approx(entered[100], abs=1e-12)

    part = trim(store, tmp_path / "part.h5", 0.05, 0.15)
    with open_store(part) as cut:
        a = build(cut).curve()
        b = curve.window(0.05, 0.15)
        assert a.duration == pytest.approx(b.duration, abs=1e-8)
        assert a.mean == pytest.approx(b.mean, rel=1e-6)
        assert [at.drift for at in cut.locations] == [at.drift for at in store.locations]

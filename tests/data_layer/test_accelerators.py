"""A program that uses an accelerator: its host waits, launches, copies; streams and metrics do not count."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from desktop.data import opening
from desktop.data.events import Activity
from desktop.data.info import info
from desktop.data.opening import open_trace
from desktop.data.statistics import Statistics
from desktop.data.store import TraceStore
from desktop.data.timeline import Timeline
from desktop.data.utilization import build
from desktop.ui.plots.timeline_rows import TimelineRows
from tests.data_layer.otf2_writer import DOUBLE, Event, Place, write

MS = 1_000_000
MAIN, LAUNCH, COPY, WAIT, KERNEL = range(5)
REGIONS = {
    MAIN: "main",
    LAUNCH: "hipLaunchKernel",
    COPY: "hipMemcpy",
    WAIT: "hipEventSynchronize",
    KERNEL: "void step<double>(double*, int)",
}
HIP = 24


def inside(region: int, begin: int, end: int) -> list[Event]:
    return [Event(begin * MS, "Enter", (region,)), Event(end * MS, "Leave", (region,))]


def sampled(*times: int) -> list[Event]:
    return [Event(at * MS, "Metric", (0, (DOUBLE, float(at)))) for at in times]


@pytest.fixture(params=[1, 3], ids=["a thread with metrics only", "a metric location"])
def store(tmp_path: Path, request: pytest.FixtureRequest) -> TraceStore:
    """Of 100 ms the host computes 5, launches 2, copies 5, and waits 88 for a kernel of 80."""
    host = [
        Event(0, "Enter", (MAIN,)),
        *inside(COPY, 3, 8),
        *inside(LAUNCH, 8, 10),
        *inside(WAIT, 10, 98),
        Event(100 * MS, "Leave", (MAIN,)),
    ]
    places = [
        Place(0, host),
        Place(1, inside(KERNEL, 15, 95), kind=2, thread_of=0),
        Place(2, sampled(0, 50, 120), kind=request.param, thread_of=0),
    ]
    paradigms = dict.fromkeys((LAUNCH, COPY, WAIT, KERNEL), HIP)
    archive = write(tmp_path, places, regions=REGIONS, paradigms=paradigms, members=["power"])
    with open_trace(archive, output=tmp_path / "trace.h5") as opened:
        yield opened


def test_the_host_waits_and_is_the_only_processor(store: TraceStore) -> None:
    use = build(store)
    assert (use.processors, use.defined) == (1, 1)
    seconds = use.seconds
    assert seconds[0].tolist() == pytest.approx([0.005, 0.007, 0.088, 0, 0])
    assert not seconds[1:].any()
    curve = use.curve()
    assert (curve.duration, curve.mean) == pytest.approx((0.1, 0.05))
    facts = info(store)
    assert sorted(x["kind"] for x in facts["locations"]) == ["accelerator", "cpu", "metric"]
    assert facts["utilization"]["processors_defined"] == 1


def test_statistics_say_the_same(store: TraceStore) -> None:
    use = build(store)
    (stats,) = Statistics(store).ranges([(0.0, 0.1)], use)
    assert (stats.processors, stats.is_processor.tolist()) == (1, [True, False, False])
    assert stats.computing == pytest.approx(0.05)
    assert stats.useful_s.sum() == pytest.approx(0.005)


def test_the_timeline_has_the_stream_with_its_kernel_and_no_row_of_metrics(store: TraceStore) -> None:
    timeline = Timeline(store)
    host, stream, metrics = (
        next(i for i, x in enumerate(store.locations) if x.kind == kind)
        for kind in ("cpu", "accelerator", "metric")
    )
    assert timeline.present[[host, stream, metrics]].tolist() == [True, True, False]
    rows = TimelineRows(store.locations, timeline.present.tolist(), [0.0] * 3, [0.0] * 3).rows
    assert {i for row in rows for i in row.locations} == {host, stream}
    tile = timeline.refine(timeline.tile([[host], [stream]], 0.0, 0.1, 100))
    share = [(tile.dominant[0] == a).mean() for a in (Activity.COMPUTING, Activity.OVERHEAD, Activity.IDLE)]
    assert share == pytest.approx([0.05, 0.07, 0.88])
    kernel = np.flatnonzero(tile.dominant[1] == Activity.COMPUTING)
    assert (kernel[0], kernel[-1]) == (15, 94)


def test_the_report_says_what_is_there_but_not_shown(store: TraceStore) -> None:
    found = {f.name: (f.severity, f.count) for f in store.report}
    assert found["accelerators"] == ("info", 1)
    assert found["metric locations"] == ("info", 1)
    assert found["metrics"] == ("info", 3)


def test_a_divided_import_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "DIVIDED", 0)
    host = [Event(0, "Enter", (MAIN,)), *inside(WAIT, 10, 98), Event(100 * MS, "Leave", (MAIN,))]
    places = [Place(i, host) for i in range(4)] + [Place(9, sampled(0, 50), thread_of=0)]
    archive = write(tmp_path, places, regions=REGIONS, members=["power"])
    found = []
    for workers in (1, 2):
        with open_trace(archive, output=tmp_path / f"{workers}.h5", workers=workers) as opened:
            found.append(
                (
                    [(x.kind, x.base, x.name) for x in opened.locations],
                    {f.name: f.count for f in opened.report},
                    build(opened).seconds.tolist(),
                )
            )
    assert found[0] == found[1]
    assert found[0][1]["metric locations"] == 1

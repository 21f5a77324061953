"""What figures are drawn from, and their CSV, add up to what statistics say, of every bundled trace."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from desktop.data.events import Activity
from desktop.data.material import Material, Subject, bars, gather, stack, tables
from desktop.data.opening import open_trace
from desktop.data.statistics import NO_REGION, RangeStats, Statistics
from desktop.data.utilization import Rules, Utilization, build
from desktop.printing import as_csv
from desktop.resources import samples

DATA = Path(__file__).parents[1] / "data"
ENDINGS = {"otf1": (".xz",), "otf2": (".gz",), "paraver": (".prv", ".prv.xz"), "picl": (".trf",)}
_FILES = [p for kind, ends in ENDINGS.items() for p in (DATA / kind).iterdir() if p.name.endswith(ends)]
# One archive is cut so that nothing is left of it; two samples are among the tests' traces.
TRACES = [sample.path for sample in samples() if sample.path.suffix == ".otf2"] + sorted(
    file for file in _FILES if "anchor_truncated" not in file.name
)
# A sum of so many parts of so many seconds.
NEAR: dict[str, Any] = {"rel": 1e-9, "abs": 1e-12}
#: Ends of a range as parts of the run, no bin's ends.
RANGE = (0.2371, 0.6129)


#: One of each format goes the whole way through CSV, which takes as long as all else.
PRINTED = (
    "traces.otf2",
    "psort_8_short_ascii_1stream_collbeginend.tar.xz",
    "farm_6.prv",
    "v1-fft4-bufferfull.trf",
)


def rows_of(
    material: Material,
    figure: str,
    name: str,
    span: tuple[float, float] | None = None,
    *,
    printed: bool = False,
) -> pd.DataFrame:
    """A table behind a figure; `printed`: as it is read from CSV."""
    heads, *rows = tables(material, figure, span)[name]
    if printed:
        text = io.StringIO("".join(as_csv([heads, *rows])))
        return pd.read_csv(text, keep_default_na=False)
    return pd.DataFrame(rows, columns=list(map(str, heads)))


def spent(rows: pd.DataFrame, what: str, a: float, b: float) -> dict[tuple[str, str], float]:
    """Seconds by row and class between two times, which have to be ends of columns."""
    start, end, time = (rows[name].to_numpy(float) for name in ("start_s", "end_s", "time_s"))
    assert (time > 0).all() and (time <= (end - start) * rows["processors"] * (1 + 1e-9)).all()
    begun = a * (1 - 1e-9) <= start
    assert ((end <= a * (1 + 1e-9)) | (start >= b * (1 - 1e-9)) | begun).all()
    inside = rows[begun & (end <= b * (1 + 1e-9))]
    found: dict[tuple[str, str], float] = inside.groupby(["row", what])["time_s"].sum().to_dict()
    return found


def by_activity(kept: Statistics, stats: RangeStats) -> dict[tuple[str, str], float]:
    return {
        (kept.name(i), activity.name.lower()): float(stats.seconds[i, activity])
        for i in np.flatnonzero(stats.is_processor).tolist()
        for activity in Activity
        if stats.seconds[i, activity]
    }


def check_curves(material: Material, use: Utilization, stats: RangeStats, span: Any, printed: bool) -> None:
    """The curve and the classes of the stack have the areas that statistics give them."""
    for figure, name in (("curve", "curve"), *(("stack", name) for name in material.stack)):
        rows = rows_of(material, figure, name, span, printed=printed)
        area = float(((rows["end_s"] - rows["start_s"]) * rows["processors"]).sum())
        counted = use.rules.computing
        if name not in ("curve", "computing"):
            counted = frozenset({Activity[name.upper()]}) - counted
        assert area == pytest.approx(sum(stats.by_activity[a] for a in counted), **NEAR)


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_a_timeline_adds_up_to_the_statistics(path: Path, own_cache: None) -> None:
    printed = path.name in PRINTED
    with open_trace(path) as store:
        kept = Statistics(store)
        material, use = gather(Subject(store, "x", n=4))
        assert material.bars is not None
        breaks = material.fit.breaks.tolist()
        curve = material.curve
        part = tuple(curve.start + f * curve.duration for f in RANGE)
        ranges = [(breaks[0], breaks[-1]), *pairwise(breaks), part]
        whole, *phases, within = kept.ranges(ranges, use)
        rows = rows_of(material, "timeline", "timeline", printed=printed)
        for stats in (whole, *phases):
            told = spent(rows, "activity", stats.start_s, stats.end_s)
            assert told == pytest.approx(by_activity(kept, stats), **NEAR)
        near = bars(store, use.rules, curve, span=part, by_region=True)
        assert near is not None
        close = replace(material, bars=near)
        close_rows = rows_of(close, "timeline", "timeline", printed=printed)
        told = spent(close_rows, "region", within.start_s, within.end_s)
        regions: dict[str, float] = {}
        for (_, region), time in told.items():
            regions[region] = regions.get(region, 0.0) + time
        exclusive = {r.name: r.exclusive_s for r in kept.flat(within, use) if r.exclusive_s}
        others = {name: exclusive.pop(name) for name in exclusive.keys() - regions.keys()}
        assert regions.pop("(other regions)", 0.0) == pytest.approx(sum(others.values()), **NEAR)
        assert regions == pytest.approx(exclusive, **NEAR)
        assert NO_REGION in regions or not within.outside_s
        check_curves(material, use, whole, None, printed)
        check_curves(material, use, within, part, printed)
        means = rows_of(material, "phases", "phases", printed=printed)["mean"]
        for mean, stats in zip(means, phases, strict=True):
            # A break may lie within a tick, whose whole statistics count.
            ticks = 2 * stats.processors * use.unit / stats.duration_s
            assert mean == pytest.approx(stats.computing, rel=1e-9, abs=ticks)


def test_rows_that_processors_share_add_up_too(own_cache: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """More processors than rows: neighbours share one, and none is left out."""
    monkeypatch.setattr("desktop.data.material._ROWS", 5)
    rules = Rules({"role:receive": Activity.OVERHEAD}, frozenset({Activity.COMPUTING, Activity.OVERHEAD}))
    with open_trace(DATA / "otf2" / "mpt_jacobi2d_9_dilated.tar.gz") as store:
        use = build(store, rules)
        (stats,) = Statistics(store).ranges([(0.0, use.curve().duration)], use)
        found = bars(store, rules, use.curve())
    assert found is not None and found.merged == (2, 2, 2, 2, 1) and "–" in found.names[0]
    sums = dict(zip(found.classes, found.ticks.sum(axis=(0, 1)) * found.unit, strict=True))
    assert sums == pytest.approx({a.name.lower(): t for a, t in stats.by_activity.items() if t}, **NEAR)
    assert found.shares.max() <= 1 and found.shares.sum(axis=2).max() == pytest.approx(1)
    assert stack(use)["computing"].integral == pytest.approx(float(stats.useful_s.sum()), **NEAR)

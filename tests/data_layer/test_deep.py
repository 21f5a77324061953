"""Very deep recursion and regions that cross without end: what is kept stays in proportion to the events."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from desktop.core.open_regions import OpenRegions
from desktop.data.opening import open_trace
from desktop.data.profile import FOLDED_PATHS
from desktop.data.timeline import LEVELS, ROWS_FOR_EACH, STEP, Timeline
from tests.data_layer import otf1_oracle, otf2_writer
from tests.data_layer.otf2_writer import Event, Place

DEEP = 30_000


def picl(folder: Path) -> Path:
    file = folder / "deep.trf"
    lines = [f"-3 7 {i}e-6 0 0 0" for i in range(DEEP)] + [f"-4 7 {DEEP + i}e-6 0 0 0" for i in range(DEEP)]
    file.write_text("\n".join(["-3 -901 0 0 0 0", *lines, f"-4 -901 {2 * DEEP}e-6 0 0 0\n"]))
    return file


def paraver(folder: Path) -> Path:
    file = folder / "deep.prv"
    lines = [f"2:1:1:1:1:{i}:60000019:{5 if i < DEEP else 0}" for i in range(2 * DEEP)]
    file.write_text("\n".join([f"#Paraver (01/01/2020 at 00:00):{2 * DEEP}_ns:1(1):1:1(1:1)", *lines, ""]))
    return file


def otf1(folder: Path) -> Path:
    lines = [f"{i:x}\n*1\n{'E1' if i < DEEP else 'L1'}" for i in range(2 * DEEP)]
    names = 'DTR1000000\nDP1NM"a"\nDF1NM"f"\n'
    return otf1_oracle.write(folder, {"": "1:1\n", "0.def": names, "1.events": "\n".join([*lines, ""])})


def otf2(folder: Path) -> Path:
    events = [Event(i, "Enter" if i < DEEP else "Leave", (0,)) for i in range(2 * DEEP)]
    return otf2_writer.write(folder, [Place(1, events)], regions={0: "f"})


@pytest.mark.parametrize("made", [picl, paraver, otf1, otf2])
def test_checkpoints_of_a_deep_recursion_are_fewer_than_its_events(
    tmp_path: Path, made: Callable[[Path], Path]
) -> None:
    with open_trace(made(tmp_path), output=tmp_path / "deep.h5") as store:
        events = store.rows("events", 0)
        assert events in (2 * DEEP, 2 * DEEP + 2)
        assert store.rows("checkpoints", 0) <= events // ROWS_FOR_EACH + events // STEP + 1
        assert store.report.findings[FOLDED_PATHS].count == 1
        line = Timeline(store)
        framed = events > 2 * DEEP  # PICL: tracing begins and ends
        unit = line.end_s / (2 * DEEP - 1 + framed)
        for at in (0, 5, 500, 20_000, 29_999, 45_000, 59_990):
            moment = line.at(0, line.first_s(0) + (at + 0.5) * unit)
            inside = (at + 1 if at < DEEP else 2 * DEEP - 1 - at) + framed
            assert moment.depth == inside
            assert len(moment.levels) == min(inside, LEVELS)
            innermost = moment.levels[-1]
            assert innermost.begin_s == pytest.approx((inside - 1 - framed) * unit, abs=unit / 2)
            assert innermost.end_s == pytest.approx(2 * DEEP * unit - innermost.begin_s, abs=1.5 * unit)


def test_regions_that_cross_for_ever_take_no_more_room(tmp_path: Path) -> None:
    """Each is entered before the one before is left, so the stack is never empty."""
    events, time = [], 0
    for i in range(40_000):
        events.append(Event(time, "Enter", (i % 3,)))
        if i:
            events.append(Event(time + 1, "Leave", ((i - 1) % 3,)))
        time += 2
    source = otf2_writer.write(tmp_path, [Place(1, events)], regions=dict(enumerate("fgh")))
    with open_trace(source, output=tmp_path / "crossed.h5") as store:
        names = [region.name for region in store.regions]
        line = Timeline(store)
        for i in (1, 100, 9_999, 39_998):
            moment = line.at(0, (2 * i + 1) * line.unit)
            assert [names[level.region] for level in moment.levels] == ["fgh"[i % 3]]
            assert moment.levels[0].begin_s == pytest.approx(2 * i * line.unit, abs=line.unit / 2)
            assert moment.levels[0].end_s == pytest.approx((2 * i + 3) * line.unit, abs=line.unit / 2)
        time, kind, region = (
            np.concatenate(c) for c in zip(*store.blocks("events", 0, "time", "kind", "region"), strict=True)
        )
        regions = OpenRegions(line._rule)
        top = np.empty(time.size, np.int32)
        assert regions.feed(time, kind, region, states=(top, np.empty(time.size, np.uint8)))
        assert regions.opened.entries.shape[1] == 64
        assert top[2::2].tolist() == region[1::2].tolist()


def test_leaves_of_the_outer_ones_first_close_the_right_ones(tmp_path: Path) -> None:
    """100 of one region, then 100 of another inside; the outer ones are left first."""
    order = [0] * 100 + [1] * 100
    events = [Event(i, "Enter", (r,)) for i, r in enumerate(order)]
    events += [Event(200 + i, "Leave", (r,)) for i, r in enumerate(order)]
    source = otf2_writer.write(tmp_path, [Place(1, events)], regions={0: "outer", 1: "inner"})
    with open_trace(source, output=tmp_path / "turned.h5") as store:
        line = Timeline(store)
        for at, outer, inner in ((199, 100, 100), (249, 50, 100), (299, 0, 100), (349, 0, 50)):
            levels = line.at(0, at * line.unit).levels
            assert [store.regions[level.region].name for level in levels] == ["outer"] * outer + [
                "inner"
            ] * inner
            assert [round(level.begin_s / line.unit) for level in levels] == [
                *range(outer),
                *range(100, 100 + inner),
            ]

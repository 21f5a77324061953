"""The same runs in several formats have the same statistics, as far as the formats record them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from desktop.data.opening import open_trace
from desktop.data.statistics import RangeStats, Statistics
from desktop.data.store import TraceStore
from desktop.data.utilization import build
from tests.data_layer.archives import FOLDERS

DATA = Path(__file__).parents[1] / "data"
OTF1 = {
    "cholesky_ring_16": "cholesky_ring_16_short_ascii",
    "farm_6": "farm_6_short_zlib_3streams",
    "jacobi2d_9": "jacobi2d_9_short_zlib9",
    "psort_8": "psort_8_short_ascii_1stream_collbeginend",
    "wave1d_16": "wave1d_16_long_ascii_4streams",
}
OTF2 = {
    "cholesky_ring_16": "mpt_cholesky_ring_16_dilated",
    "farm_6": "mpt_farm_6_dilated",
    "jacobi2d_9": "mpt_jacobi2d_9_dilated",
    "psort_8": "ezt_psort_8_dilated",
    "wave1d_16": "mpt_wave1d_16_fine_dilated",
}
PARAVER = {"cholesky_ring_16": "cholesky_ring_16.prv.xz", "farm_6": "farm_6.prv"}


def otf2_of(name: str) -> Path | None:
    found = [folder / f"{OTF2[name]}.tar.gz" for folder in FOLDERS]
    return next((path for path in found if path.exists()), None)


@contextmanager
def whole(path: Path, folder: Path) -> Iterator[tuple[TraceStore, Statistics, RangeStats]]:
    with open_trace(path, output=folder / "trace.h5") as store:
        statistics = Statistics(store)
        curve = build(store).curve()
        (stats,) = statistics.ranges([(curve.start, curve.start + curve.duration)], replay=True)
        yield store, statistics, stats


def told(store: TraceStore, statistics: Statistics, stats: RangeStats) -> dict[str, object]:
    """What does not depend on numbers of regions."""
    assert stats.replayed is not None
    talk = stats.messages
    rows = {row.name: (row.calls, row.exclusive_s, row.inclusive_s) for row in statistics.flat(stats)}
    return {
        "duration": stats.duration_s,
        "rows": rows,
        "activities": stats.seconds.tolist(),
        "messages": None
        if talk is None
        else [column.tolist() for column in (talk.sent, talk.bytes_sent, talk.received, talk.bytes_received)],
        "pairs": None
        if talk is None
        else [column.tolist() for column in (talk.sender, talk.receiver, talk.count, talk.bytes)],
        "waiting": None if stats.replayed.waiting_s is None else stats.replayed.waiting_s.tolist(),
        "communication": stats.replayed.communication_s.tolist(),
        "ideal": stats.replayed.ideal_s,
        "accounts": stats.account_s,
        "efficiencies": (
            stats.load_balance,
            stats.serialisation_efficiency,
            stats.transfer_efficiency,
        ),
        "clock": (store.clock.checked, store.clock.violations_before, store.clock.repair),
        "shifts": [(at.shift - store.locations[0].shift, at.half_width) for at in store.locations],
    }


@pytest.mark.parametrize("name", sorted(OTF1))
def test_otf_and_otf2_say_the_same(name: str, tmp_path: Path) -> None:
    """Rooted collectives of OTF waited for nobody: 0.015 s of 0.454 s."""
    other = otf2_of(name)
    if other is None:
        pytest.skip("this run is not bundled as OTF2")
    found = []
    for number, path in enumerate((DATA / "otf1" / f"{OTF1[name]}.tar.xz", other)):
        folder = tmp_path / str(number)
        folder.mkdir()
        with whole(path, folder) as run:
            found.append(told(*run))
    for key, value in found[0].items():
        assert value == found[1][key], key
    if name == "psort_8":
        assert np.sum(found[0]["waiting"]) == pytest.approx(0.45359, abs=1e-4)


@pytest.mark.parametrize("name", sorted(PARAVER))
def test_paraver_says_what_it_records(name: str, tmp_path: Path) -> None:
    """Not recorded there: when a process that has no event yet began (the run is shorter by less than 0.1 %),
    sizes and roots of collectives, so that those with a root wait for nobody. Threads that have ended are in
    a state of their own until the run ends, which is communication and idle there, absent in OTF."""
    found = []
    for number, path in enumerate((DATA / "otf1" / f"{OTF1[name]}.tar.xz", DATA / "paraver" / PARAVER[name])):
        folder = tmp_path / str(number)
        folder.mkdir()
        with whole(path, folder) as run:
            found.append(told(*run))
    otf, paraver = found
    assert paraver["messages"] == otf["messages"]
    assert paraver["pairs"] == otf["pairs"]
    called = {row: values for row, values in otf["rows"].items() if values[0]}  # type: ignore[attr-defined]
    for row, (calls, exclusive, _) in called.items():
        assert paraver["rows"][row][0] == calls, row  # type: ignore[index]
        assert paraver["rows"][row][1] == pytest.approx(exclusive, abs=1e-9), row  # type: ignore[index]
    assert paraver["duration"] == pytest.approx(otf["duration"], rel=1e-3)
    assert np.sum(paraver["waiting"]) == pytest.approx(np.sum(otf["waiting"]), rel=1e-5)
    assert paraver["efficiencies"] == pytest.approx(otf["efficiencies"], rel=1e-3)

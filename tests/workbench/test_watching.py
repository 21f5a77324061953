"""A run that is followed: what each look fits, suggested and chosen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from desktop.core.phases import AS_SUGGESTED, fit
from desktop.workbench.watching import Watcher
from tests.data_layer.recordings import written
from tests.inline import Inline

MS = 1_000_000
CLOCK = {"tick1": 10**8, "monotonic1": 10**8}


def grow(folder: Path, calls: int) -> None:
    """Two ranks that compute half of 10 ms, then a tenth, in turns of half a second."""
    for rank in range(2):
        records: list[tuple[int, ...]] = [(100, MS, 0, 0, -1, 0, 0)]
        for k in range(calls):
            part = 9 if k // 50 % 2 else 5
            records.append(((10 * k + 10 - part + 2) * MS, (part - 1) * MS, 2, 0, 0, 7, 8))
        written(folder, records, rank=rank, state=0, **CLOCK)


@pytest.fixture
def watcher(tmp_path: Path) -> Watcher:
    made = Watcher(lambda old, new: None, executor=Inline())
    grow(tmp_path / "run", 120)
    made.start(tmp_path / "run")
    made.look()
    return made


def test_each_look_has_the_phases_of_what_has_arrived(watcher: Watcher, tmp_path: Path) -> None:
    for calls in (130, 180, 230, 395):
        grow(tmp_path / "run", calls)
        watcher.look()
        fitted, curve = watcher.snapshot.fit, watcher.snapshot.followed.curve
        assert fitted is not None and curve is not None and fitted.note == AS_SUGGESTED
        assert fitted.breaks[-1] == pytest.approx(curve.start + curve.duration)
        expected = 0.5 * np.arange(1, -(-calls // 50))
        np.testing.assert_allclose(fitted.breaks[1:-1], expected, atol=0.02)


def test_a_number_that_is_chosen_is_fitted_whatever_was_fitted_before(
    watcher: Watcher, tmp_path: Path
) -> None:
    for calls, n, model in (
        (380, 3, "mixed"),
        (385, 7, "constant"),
        (390, 1, "constant"),
        (395, 20, "mixed"),
    ):
        grow(tmp_path / "run", calls)
        watcher.look()
        watcher.choose(n=n, model=model)
        for more in (1, 2):
            shown = watcher.snapshot
            assert shown.fit is not None and (shown.fit.requested, shown.fit.model) == (n, model)
            assert shown.followed.curve is not None
            best = fit(shown.followed.curve, n, model)
            assert shown.fit.epsilon == pytest.approx(best.epsilon, rel=1e-9)
            grow(tmp_path / "run", calls + more)
            watcher.look()
        watcher.choose(model="mixed")
        shown = watcher.snapshot
        assert shown.n is None and shown.fit is not None and shown.fit.n == 8

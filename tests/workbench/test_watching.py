"""A run that is followed: what each look fits, and when a number of phases is suggested anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from desktop.core.phases import fit
from desktop.workbench.watching import _AGED, _FEW, Watcher
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


def test_each_look_has_the_best_fit_of_what_has_arrived(watcher: Watcher, tmp_path: Path) -> None:
    anew = []
    for calls in range(400, 400 + 3 * (_AGED + 2), 3):  # grows by less than a fifth
        grow(tmp_path / "run", calls)
        watcher.look()
        shown = watcher.snapshot
        assert shown.swept is not None and shown.fit is not None and shown.followed.curve is not None
        anew.append(shown.swept.n.size >= _FEW)
        assert shown.fit.requested == shown.suggested
        best = fit(shown.followed.curve, shown.suggested)
        assert shown.fit.epsilon == pytest.approx(best.epsilon, rel=1e-9)
    assert anew == [k % _AGED == 0 for k in range(_AGED + 2)]
    grow(tmp_path / "run", 600)  # by more
    watcher.look()
    assert watcher.snapshot.swept is not None and watcher.snapshot.swept.n.size >= _FEW


def test_a_number_that_is_chosen_is_fitted_whatever_was_fitted_before(
    watcher: Watcher, tmp_path: Path
) -> None:
    for calls, n, model in (
        (400, 3, "mixed"),
        (405, 7, "constant"),
        (410, 1, "constant"),
        (415, 20, "mixed"),
    ):
        grow(tmp_path / "run", calls)
        watcher.look()
        suggested = watcher.snapshot.suggested
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
        assert watcher.snapshot.n is None and watcher.snapshot.suggested == suggested

"""The critical path in the timeline, its figure, and what processors make others wait in the profile."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from desktop.data.material import bars
from desktop.data.store import open_store
from desktop.ui.frame import Frame
from desktop.ui.trace_page import TracePage
from tests.programs import exact
from tests.programs.exact import Steps

TIMEOUT = 60_000


@pytest.fixture
def window(qtbot, settings, no_thread_left, tmp_path: Path):
    """A chain of four ranks in which rank 0 is late once, open."""
    steps: list[Steps] = [[] for _ in range(4)]
    for k in range(3):
        for r in range(4):
            steps[r] += [("recv", r - 1, k)] if r else []
            steps[r].append(("work", "solve", 5_000_000 if (r, k) == (0, 1) else 100_000))
            steps[r] += [("send", r + 1, k)] if r < 3 else []
    path = exact.write(exact.run(steps, [0] * 4, overhead=1000), tmp_path / "chain.h5")
    made = Frame(settings).trace
    qtbot.addWidget(made.frame)
    made.frame.resize(1400, 900)
    made.frame.show()
    made.open_path(path)
    qtbot.waitUntil(
        lambda: made.workbench.snapshot.fit is not None and not made.workbench.busy, timeout=TIMEOUT
    )
    yield made
    made.frame.close_unasked()


def drawn(window: TracePage) -> list[str]:
    described = window.timeline.view.description()
    return [] if described is None else [entry.words for entry in described.legend]


def test_a_switch_draws_it_and_a_project_keeps_that(qtbot, window: TracePage) -> None:
    view = window.timeline.view
    qtbot.waitUntil(lambda: view.timeline is not None and bool(drawn(window)), timeout=TIMEOUT)
    assert "Critical path" not in drawn(window)
    before = view.grab().toImage()
    window.actions_by_id["critical_path"].trigger()
    qtbot.waitUntil(lambda: "Critical path" in drawn(window), timeout=TIMEOUT)
    qtbot.waitUntil(lambda: not window.workbench.busy, timeout=TIMEOUT)
    assert view.grab().toImage() != before
    assert window.desk._seen().critical_path
    shown = window.workbench.snapshot
    path, document, run = shown.statistics.path, shown.document, shown.run
    assert path is not None and document is not None and run is not None
    with open_store(document.store) as store:
        figure = bars(store, run.rules, run.curve, path=path)
    assert figure is not None and figure.path is not None
    # From row 0 on, where the late rank is, down to the last one.
    assert figure.path[0, 1] == 0.5 and figure.path[:, 3].max() == 3.5
    window.actions_by_id["critical_path"].trigger()
    assert "Critical path" not in drawn(window)


def test_processors_say_whom_they_make_wait(qtbot, window: TracePage) -> None:
    window.show_panel("profile")
    panel = window.panel("profile")
    panel.kind.setCurrentIndex(panel.kind.findData("locations"))
    panel.kind.activated.emit(panel.kind.currentIndex())
    qtbot.waitUntil(lambda: window.workbench.snapshot.statistics.causes is not None, timeout=TIMEOUT)
    qtbot.waitUntil(lambda: panel.model.frame is not None and "costs" in panel.model.frame, timeout=TIMEOUT)
    table = panel.model.frame
    assert list(table["location"]) == [f"rank {r}" for r in range(4)]
    assert table["costs"].sum() == pytest.approx(table["waits"].sum()) and table["costs"].argmax() == 0
    assert table["costs"][0] == pytest.approx(3 * 5e-3, rel=0.1)
    assert np.isclose(table["path"].sum(), window.workbench.snapshot.run.curve.duration)
    assert table["slack"][0] == 0

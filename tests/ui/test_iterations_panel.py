"""The panel of iterations in the real window: what it finds, shows, draws, and makes phases of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Thread, current_thread
from typing import Any

import pytest
from PySide6.QtCore import Qt

from desktop import resources
from desktop.core.units import brief
from desktop.data import iterations
from desktop.ui.frame import Frame

pytestmark = pytest.mark.usefixtures("own_cache")

TIMEOUT = 60_000


@pytest.fixture
def window(qtbot, settings, no_thread_left):
    made = Frame(settings).trace
    qtbot.addWidget(made.frame)
    made.frame.resize(1500, 950)
    made.frame.show()
    yield made
    made.frame.close_unasked()


def looked_at(qtbot, window, trace: Path):
    window.open_path(trace)
    qtbot.waitUntil(
        lambda: window.workbench.snapshot.fit is not None and not window.workbench.busy, timeout=TIMEOUT
    )
    assert window.workbench.snapshot.statistics.iterations is None  # nobody has asked
    window.show_panel("iterations")
    qtbot.waitUntil(
        lambda: (
            window.workbench.snapshot.statistics.iterations is not None
            and not window.workbench.snapshot.statistics.outdated
            and not window.workbench.busy
        ),
        timeout=TIMEOUT,
    )
    return window.panel("iterations")


def seen_in(threads: list[Thread], call: Callable[..., Any]) -> Callable[..., Any]:
    """A call that notes its thread."""

    def noted(*given: Any) -> Any:
        threads.append(current_thread())
        return call(*given)

    return noted


def test_the_loop_of_a_program_is_shown_drawn_and_taken_as_phases(qtbot, window, monkeypatch):
    sample = next(s.path for s in resources.samples() if "wave1d" in str(s.path))
    panel = looked_at(qtbot, window, sample)
    workbench = window.workbench
    place = [level.loop.count for level in workbench.snapshot.statistics.iterations.levels].index(100)
    panel.level.setCurrentIndex(place)
    panel.level.activated.emit(place)
    qtbot.waitUntil(lambda: not workbench.busy, timeout=TIMEOUT)
    level = panel.selected_level
    said = panel.words.text()
    first, last = level.loop.bounds[[0, -1]].tolist()
    assert said.startswith(
        f"100 iterations of {brief(level.loop.period)} from {brief(first)} to {brief(last)},"
    ), said
    band, median, fitted, *_ = panel.chart.content.series
    assert band.kind == "band" and len(median.x) == 2 * level.fold.middle.size
    assert fitted.label.endswith("phases")

    threads: list[Thread] = []
    monkeypatch.setattr(iterations, "over_iterations", seen_in(threads, iterations.over_iterations))
    panel.phases.setValue(3)
    panel.phases.setValue(2)  # fitted live
    qtbot.waitUntil(lambda: not workbench.busy, timeout=TIMEOUT)
    assert threads and current_thread() not in threads
    assert len(panel.chart.content.verticals) == 1
    firm = panel.chart.content.series[-1]
    assert firm.label.endswith("over 99 of 100 iterations")  # where its breakpoint lies in them
    assert firm.x[0] <= panel.chart.content.verticals[0][0] <= firm.x[1]

    workbench.name_region(level.region, "the step")
    assert panel.words.text() == said.replace(f"each begins with {level.region}", "each begins with the step")
    workbench.name_region(level.region, "")
    assert panel.words.text() == said
    found = workbench.snapshot.statistics.iterations
    panel.drawn.setChecked(True)
    qtbot.waitUntil(lambda: bool(workbench.snapshot.boundaries))
    assert workbench.snapshot.boundaries == tuple(level.loop.bounds.tolist())
    before = window.curve_view.picture(1.0)
    panel.drawn.setChecked(False)
    qtbot.waitUntil(lambda: not workbench.snapshot.boundaries)
    assert window.curve_view.picture(1.0) != before

    before_split = workbench.snapshot.project.phases
    panel.split.click()
    qtbot.waitUntil(lambda: not workbench.busy, timeout=TIMEOUT)
    bounds = workbench.snapshot.fit.breaks
    assert set(level.loop.bounds[1:-1].tolist()) <= set(bounds.tolist())
    assert workbench.snapshot.fit.n in (101, 102)  # what comes before and after the loop
    assert workbench.snapshot.statistics.iterations is found  # not searched for again
    workbench.history.undo()
    assert workbench.snapshot.project.phases == before_split

    panel.inner.click()
    qtbot.waitUntil(lambda: not workbench.busy, timeout=TIMEOUT)
    assert workbench.snapshot.fit.n in (201, 202)
    qtbot.waitUntil(lambda: any(workbench.snapshot.firm), timeout=TIMEOUT)
    told = [one for one in workbench.snapshot.firm if one is not None]
    assert len(told) >= 100, "each breakpoint inside of an iteration has its interval"
    shown = window.panel("table").model
    heads = [shown.headerData(k, Qt.Orientation.Horizontal) for k in range(shown.columnCount())]
    assert "Over repeats" in [head.strip() for head in heads]
    with_bars, said = window.curve_view.picture(1.0), "Its interval over iterations"
    assert said in [entry.words for entry in window.curve_view.description().legend]
    window.curve_view.show_over(firm=())
    assert window.curve_view.picture(1.0) != with_bars
    assert said not in [entry.words for entry in window.curve_view.description().legend]


def test_an_odd_iteration_is_shown_in_the_plots(qtbot, window):
    panel = looked_at(qtbot, window, Path("tests/data/otf2/mpt_jacobi2d_9_dilated.tar.gz"))
    worst = panel.selected_level.odd[0]
    assert panel.odd.frames.rowCount() == len(panel.selected_level.odd)
    panel.odd.chosen.emit(worst.index)
    assert window.workbench.snapshot.project.view.selection == (worst.start_s, worst.end_s)
    a, b = window.curve_view.visible_range()
    assert a < worst.start_s < worst.end_s < b < 3 * (worst.end_s - worst.start_s) + worst.end_s


def test_none_is_an_answer_and_another_trace_has_its_own(qtbot, window):
    panel = looked_at(qtbot, window, Path("tests/data/otf2/mpt_farm_6_dilated.tar.gz"))
    assert panel.words.text().startswith("No iterations were found.")
    assert not panel.tools.isVisible() and not panel._has_content
    window.workbench.close_document()
    assert "No trace is open" in panel.words.text()

"""Curves of anything in the window: the dialog, lanes below, units, the phase table, figures, the report."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtWidgets import QDialog
from pytestqt.qtbot import QtBot

from desktop import cli
from desktop.core.envelope import envelope
from desktop.data.curves import build_curve
from desktop.data.opening import open_trace
from desktop.data.utilization import build
from desktop.ui.curves import CurvesDialog
from desktop.ui.exporting import material_of
from desktop.ui.frame import Frame
from desktop.ui.plots import scales
from desktop.ui.plots.scales import LaneBox
from desktop.ui.settings import Settings
from desktop.ui.trace_page import TracePage
from desktop.workbench.time_plots import Words, figure_plot

TRACE = Path(__file__).parents[1] / "data/otf2/public_scorep_pingpong_papi_2.tar.gz"
CYCLES = "metric:PAPI_TOT_CYC"


@pytest.fixture
def window(qtbot: QtBot, own_places: None, settings: Settings, no_thread_left: None) -> Iterator[TracePage]:
    made = Frame(settings).trace
    qtbot.addWidget(made.frame)
    made.frame.resize(1366, 768)
    made.frame.show()
    made.open_path(TRACE)
    qtbot.waitUntil(lambda: not made.busy, timeout=60_000)
    yield made
    made.frame.close_unasked()


def choose(qtbot: QtBot, window: TracePage, curve: str, *tracks: str) -> None:
    window.workbench.set_curve(curve)
    qtbot.waitUntil(lambda: not window.busy, timeout=60_000)
    for track in tracks:
        window.workbench.toggle_track(track)
    qtbot.waitUntil(lambda: not window.busy and len(window.workbench.snapshot.tracks) == len(tracks))


def test_the_dialog_fits_and_draws_below(qtbot: QtBot, window: TracePage) -> None:
    window.choose_curves()
    dialog = window.findChild(QDialog, "curves")
    assert isinstance(dialog, CurvesDialog)
    qtbot.keyClicks(dialog.search, "tot_cyc")
    seen = [item for item in dialog._items() if not item.isHidden()]
    assert seen[0].text() == "Metric PAPI_TOT_CYC (/s)"
    seen[0].setCheckState(Qt.CheckState.Checked)
    qtbot.waitUntil(lambda: [name for name, _ in window.workbench.snapshot.tracks] == [CYCLES])
    dialog.list.setCurrentItem(seen[0])
    dialog.fit.click()
    qtbot.waitUntil(lambda: not window.busy, timeout=60_000)
    run = window.workbench.snapshot.run
    assert run is not None and run.name == CYCLES
    assert seen[0].font().bold()
    seen[0].setCheckState(Qt.CheckState.Unchecked)
    assert window.workbench.snapshot.project.tracks == ()
    dialog.reject()


def test_lanes_below_have_their_own_axes_and_the_same_phases(qtbot: QtBot, window: TracePage) -> None:
    choose(qtbot, window, "computing", CYCLES, "bytes", "communication")
    view = window.curve_view
    plot = view.description()
    assert plot is not None
    assert [lane.note for lane in plot.lanes[-3:]] == [
        "PAPI_TOT_CYC per second (G/s)",
        "Bytes in flight (MB)",
        "Communication",
    ]
    shown = window.workbench.snapshot
    for (_, curve), lane, box in zip(shown.tracks, plot.lanes[-3:], view._track_boxes, strict=True):
        (series,) = lane.series
        expected = envelope(curve).columns(series.x)
        for name in ("minimum", "maximum", "mean"):
            drawn = getattr(series.columns, name)
            np.testing.assert_array_equal(drawn, getattr(expected, name))
        assert lane.axis.low <= curve.level.min() and lane.axis.high >= curve.level.max()
        assert (box.rect.left(), box.rect.width()) == (view._main.rect.left(), view._main.rect.width())
        assert box.rect.height() >= 2 * view.fontMetrics().height()
    boxes = [view._main.rect, *(box.rect for box in view._track_boxes)]
    assert all(a.bottom() <= b.top() for a, b in itertools.pairwise(boxes))
    assert boxes[-1].bottom() <= view._axis.top() < view.height()
    # The pointer is over the same time everywhere.
    place = QPointF(boxes[-1].center())
    assert view._region(place) == "plot"
    told = view._tell(0.2, view._map())
    assert any(line.startswith("PAPI_TOT_CYC per second") for line in told)


def test_a_title_does_not_reach_into_the_labels_of_lanes_below(
    qtbot: QtBot, window: TracePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    window.frame.resize(1920, 1080)
    choose(qtbot, window, CYCLES.replace("metric", "metric-rate"), "messages", "bytes")
    said: dict[float, str] = {}

    def note(
        painter: object, lane: LaneBox, ticks: object, theme: object, title: str, *_: object, **__: object
    ):
        said[lane.rect.top()] = title
        if lane.rect == view._residual.rect:
            assert view.fontMetrics().horizontalAdvance(title) <= lane.rect.height()

    view = window.curve_view
    monkeypatch.setattr(scales, "level_axis", note)
    view.grab()
    assert view._residual.rect.height() and said[view._residual.rect.top()] == "G/s"


def test_units_follow_the_curve(qtbot: QtBot, window: TracePage) -> None:
    choose(qtbot, window, "bytes", CYCLES)
    plot = window.curve_view.description()
    assert plot is not None
    assert plot.lanes[0].axis.words == "Bytes in flight (MB)"
    assert plot.legend[0].words == "Bytes in flight"
    phases = window.panel("phases")
    assert phases._values["epsilon"].text().endswith("B·√s")
    table = window.panel("table").model
    titles = [table.headerData(k, Qt.Orientation.Horizontal) for k in range(table.columnCount())]
    assert any(title.startswith("Integral") and "B·" in title for title in titles)
    assert not any(title.startswith("Efficiency") for title in titles)
    assert titles[-1].startswith("PAPI_TOT_CYC per second")
    assert "Bytes in flight" in window._cursor_text.text()
    assert window.chips.texts == ["fitted curve: bytes in flight"]
    shown = window.workbench.snapshot
    assert shown.fit is not None
    curve = dict(shown.tracks)[CYCLES]
    ends = zip(shown.fit.breaks[:-1], shown.fit.breaks[1:], strict=True)
    for row, (a, b) in enumerate(ends):
        mean = float(table.text(row, table.columnCount() - 1))
        assert mean == pytest.approx(curve.window(a, b).mean, rel=1e-3)
    window.chips._end("curve")
    qtbot.waitUntil(lambda: not window.busy, timeout=60_000)
    titles = [table.headerData(k, Qt.Orientation.Horizontal) for k in range(table.columnCount())]
    assert any(title.startswith("Efficiency") for title in titles)


def test_a_figure_on_paper_has_the_lanes_too(qtbot: QtBot, window: TracePage) -> None:
    choose(qtbot, window, CYCLES, "messages")
    made = material_of(window.workbench.snapshot)
    assert made is not None
    plot = figure_plot("curve", made, Words(), 200)
    assert plot.title == f"PAPI_TOT_CYC per second and its phases: {made.title}"
    assert [plot.lanes[0].axis.words, plot.lanes[1].note] == [
        "PAPI_TOT_CYC per second (G/s)",
        "Messages in flight",
    ]


def test_a_report_is_of_the_curve(
    tmp_path: Path, own_places: None, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "report.html"
    words = ["report", str(TRACE), "-o", str(out), "--curve", CYCLES, "--track", "bytes", "--json"]
    words += ["--also", "saturation", "--seconds", "0.001", "-n", "3"]
    assert cli.run([*words, "--plots", "curve,phases", "--no-statistics"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert "--model mixed --also saturation --seconds 0.001 -n 3" in told["command"]
    assert f"--curve {CYCLES} --track bytes" in told["command"]
    text = out.read_text(encoding="utf-8")
    assert "PAPI_TOT_CYC per second: on average" in text
    assert "Bytes in flight, mean (B)" in text
    assert "G/s" in text


def test_metrics_are_rows_of_the_statistics(qtbot: QtBot, window: TracePage) -> None:
    """Of the run and of each phase, by what the curve of the metric holds; made once for all n."""
    window.show_panel("statistics")
    with open_trace(TRACE) as store:
        curve = build_curve(store, build(store), CYCLES)
    made = []
    for n in (2, 3):
        window.workbench.set_n(n)
        qtbot.waitUntil(lambda: not window.busy, timeout=60_000)
        found = window.workbench.snapshot.statistics
        made.append(found.metrics)
        assert len(found.scopes) == n + 1
        shown = window.panel("statistics").model
        titles = [shown.text(row, 0) for row in range(shown.rowCount())]
        assert titles[-3:] == [f"PAPI_{name} per second" for name in ("TOT_CYC", "L2_TCM", "BR_MSP")]
        for k, scope in enumerate(found.scopes, 1):
            number, unit = shown.text(titles.index("PAPI_TOT_CYC per second"), k).split()
            assert unit == "G/s"
            mean = curve.window(scope.start_s, scope.end_s).mean
            assert float(number) * 1e9 == pytest.approx(mean, rel=1e-3)
    assert made[0] is made[1]

"""A right click on every plot: what it offers, and that it does it, for all classes that there are."""

from __future__ import annotations

import csv
import importlib
import io
import math
import pkgutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtWidgets import QApplication, QMenu, QWidget
from pytestqt.qtbot import QtBot

import desktop.ui
from desktop import resources
from desktop.core import phases
from desktop.core.curve import StepCurve
from desktop.data.chart import Axis, Content, Series
from desktop.ui.compare.runs_view import RunsView
from desktop.ui.experiment.charts import CORNERS, cube
from desktop.ui.frame import Frame
from desktop.ui.model.contents import cell_map
from desktop.ui.panels.messages import MessagesPanel
from desktop.ui.plots import plot_menu
from desktop.ui.plots.chart import Chart
from desktop.ui.plots.curve_view import CurveView
from desktop.ui.plots.navigation import Navigation
from desktop.ui.plots.sweep_plots import BreakpointPicture, EpsilonPlot
from desktop.ui.plots.timeline_view import TimelineView
from desktop.ui.settings import Settings
from desktop.ui.trace_page import TracePage
from desktop.ui.workers import MainThread

#: What paints itself and is no plot.
OTHERS = {
    "Presentation": "a window of its own with its own keys",
    "_Pane": "a picture of the presentation, for the speaker",
    "FrameView": "a table, whose menu copies",
    "CellsTable": "a table, whose menu copies",
    "SheetView": "a table, whose menu copies",
    "Elided": "a line of text",
    "_Words": "lines of text",
    "MessageBar": "a sentence with a stripe beside it",
    "SweepPlot": "what two plots have in common",
    "PlotView": "what all plots on pyqtgraph have in common",
    "TimePlot": "what three plots have in common",
}
NAMES = {"plot_picture", "plot_export", "plot_tsv", "plot_csv", "plot_help"}


def painting() -> dict[str, type[QWidget]]:
    """All widgets of the program that paint themselves, by their own or an inherited method of ours."""
    for found in pkgutil.walk_packages(desktop.ui.__path__, "desktop.ui."):
        importlib.import_module(found.name)
    classes: dict[str, type[QWidget]] = {}
    left = [QWidget]
    while left:
        kind = left.pop()
        left += kind.__subclasses__()
        ours = [k for k in kind.__mro__ if k.__module__.startswith("desktop.ui")]
        if (
            ours
            and any({"paintEvent", "drawForeground"} & set(vars(k)) for k in ours)
            and kind.__module__.startswith("desktop.ui")
        ):
            classes[kind.__name__] = kind
    return classes


def curve() -> StepCurve:
    return StepCurve([0, 1, 2, 4], [3, 1, 2], 4)


def made(kind: type[QWidget]) -> Any:
    """A plot that shows something."""
    match kind.__name__:
        case "CurveView":
            plot: Any = CurveView()
            plot.set_curve(curve())
            plot.show_over(fit=phases.fit(curve(), 2, "constant"))
        case "EpsilonPlot":
            plot = EpsilonPlot()
            plot.set_sweep([3.0, 2.0, 1.0], 2, "constant")
        case "BreakpointPicture":
            plot = BreakpointPicture()
            rows = [phases.fit(curve(), n, "constant") for n in (1, 2)]
            plot.set_sweep([(f.breaks, f.breakpoint_low, f.breakpoint_high) for f in rows])
        case "Chart":
            plot = Chart("chart")
            series = Series(
                "points", np.array([0.0, 1.0]), np.array([2.5, math.nan]), "=1+1", names=("a", "b")
            )
            plot.set_content(Content(Axis("x", categories=("left", "right")), Axis("y (s)"), (series,)))
        case "RunsView":
            plot = RunsView()
        case "TimelineView":
            from desktop.ui.plots.timeline_tiles import Tiles
            from desktop.workbench.jobs import Lane

            lane = Lane("tiles", latest=True, deliver=MainThread().deliver)
            plot = TimelineView(lambda changed: Tiles(lane, changed, lambda error: None), Navigation())
        case name:
            raise AssertionError(
                f"{name} paints itself: give it a menu and try it here, or say why it has none"
            )
    return plot


def shown(content: Content) -> Chart:
    plot = Chart("chart")
    plot.set_content(content)
    return plot


def cells() -> Content:
    return cell_map("t", ("r",), ("c", "d"), np.array([[1.5, math.nan]]))


def a_cube() -> Content:
    return cube(("A", "B", "C"), {corner: float(k) for k, corner in enumerate(CORNERS)}, "s")[0]


def messages() -> Content:
    names = ("rank 0", "rank 1")
    return MessagesPanel._matrix(QWidget(), np.array([0]), np.array([1]), np.array([512]), names, "B")[0]  # type: ignore[arg-type]  # for its tr


PLOTS = {name: kind for name, kind in painting().items() if name not in OTHERS}


def test_all_plots_are_known() -> None:
    assert set(PLOTS) == {
        "BreakpointPicture", "Chart", "CurveView", "EpsilonPlot", "RunsView", "TimelineView",
    }  # fmt: skip
    assert set(OTHERS) <= set(painting())


@pytest.fixture
def no_menu_opens(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[QMenu]]:
    opened: list[QMenu] = []
    monkeypatch.setattr(QMenu, "popup", lambda menu, *_: opened.append(menu))
    yield opened


@pytest.mark.parametrize("name", sorted(PLOTS))
def test_every_plot_offers_its_picture_its_data_and_what_it_means(
    qtbot: QtBot, name: str, no_menu_opens: list[QMenu], monkeypatch: pytest.MonkeyPatch
) -> None:
    plot = made(PLOTS[name])
    qtbot.addWidget(plot)
    plot.resize(500, 400)
    plot.show()
    plot.grab()
    place = QPoint(250, 200)
    event = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, place, plot.mapToGlobal(place))
    QApplication.sendEvent(plot, event)
    (menu,) = no_menu_opens
    actions = {action.objectName(): action for action in menu.actions() if action.objectName()}
    assert set(actions) >= NAMES
    assert ("plot_all" in actions) == hasattr(plot, "show_all")
    texts = [action.text() for action in menu.actions() if action.text()]
    keys = [text[text.index("&") + 1].lower() for text in texts if "&" in text]
    assert len(keys) == len(set(keys)) == len(texts), "a mnemonic of its own for each"
    # data
    clipboard = QGuiApplication.clipboard()
    actions["plot_csv"].trigger()
    rows = list(csv.reader(io.StringIO(clipboard.text())))
    actions["plot_tsv"].trigger()
    lines = clipboard.text().splitlines()
    assert len(lines) == len(rows)
    if name not in ("RunsView", "TimelineView"):  # which show nothing here
        assert len(rows) > 1 and len({len(row) for row in rows}) == 1
        assert all(heading for heading in rows[0])
    # picture
    if hasattr(plot, "pictureRequested"):
        with qtbot.waitSignal(plot.pictureRequested):
            actions["plot_picture"].trigger()
    else:
        clipboard.clear()
        actions["plot_picture"].trigger()
        assert clipboard.image().width() >= 900
    assert plot.picture().width() >= 900
    # the handbook has the place that it names
    place_named = getattr(plot, "HELP", "")
    assert place_named or name == "Chart"  # whose panels say it
    if place_named:
        page, _, heading = place_named.partition("#")
        text = (resources.folder() / "docs" / page).read_text() if hasattr(resources, "folder") else ""
        headings = [
            line.lstrip("# ").lower().replace(" ", "-") for line in text.splitlines() if line[:1] == "#"
        ]
        assert not text or not heading or heading in headings


def test_the_data_are_the_numbers_that_are_drawn(qtbot: QtBot) -> None:
    view = made(CurveView)
    qtbot.addWidget(view)
    view.resize(600, 400)
    view.grab()
    head, *rows = view.table()
    table = [dict(zip(head, row, strict=True)) for row in rows]
    fit = phases.fit(curve(), 2, "constant")
    ends = sorted({0, 1, 2, 4, float(fit.breaks[1])})
    assert [r["start_s"] for r in table] == ends[:-1] and [r["end_s"] for r in table] == ends[1:]
    assert all(r["computing"] == (3 if r["end_s"] <= 1 else 1 if r["end_s"] <= 2 else 2) for r in table)
    for r in table:
        mean = (r["fit_at_start"] + r["fit_at_end"]) / 2
        assert r["residual"] == pytest.approx(r["computing"] - mean)
    view.zoom_to(0.5, 1.5)
    first, *_, last = list(view.table())[1:]
    assert (first[0], last[1]) == (0.5, 1.5)
    assert plot_menu.texts(made(Chart).table()) == [
        ["series", "x", "y (s)", "low", "high", "name"],
        ["=1+1", "left", "2.5", "", "", "a"],
        ["=1+1", "right", "", "", "", "b"],
    ]
    assert list(shown(messages()).table())[1:] == [("rank 0", "rank 1", 512)]
    assert plot_menu.texts(shown(cells()).table()) == [["t", "c", "d"], ["r", "1.5", ""]]
    assert len(list(shown(a_cube()).table())) == 9
    assert list(made(EpsilonPlot).table())[1:] == [(1, 3.0), (2, 2.0), (3, 1.0)]
    ((n, k, at, low, high),) = list(made(BreakpointPicture).table())[1:]
    assert (n, k) == (2, 1) and low <= at <= high


def test_a_picture_goes_into_a_file(qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plot = made(RunsView)
    qtbot.addWidget(plot)
    plot.resize(300, 200)
    for target, there in ((tmp_path / "map.png", True), (tmp_path / "no" / "map.png", False)):
        monkeypatch.setattr(plot_menu.QFileDialog, "getSaveFileName", lambda *_, t=target: (str(t), ""))
        plot_menu.export(plot)
        assert target.is_file() is there
        boxes = [w for w in plot.children() if type(w).__name__ == "QMessageBox"]
        assert bool(boxes) is not there
    assert "cannot be written" in boxes[0].text()


@pytest.fixture
def opened(qtbot: QtBot, own_places: None, settings: Settings, no_thread_left: None) -> Iterator[TracePage]:
    window = Frame(settings).trace
    qtbot.addWidget(window.frame)
    window.frame.resize(1366, 768)
    window.frame.show()
    window.open_path(Path(resources.samples()[0].path))
    qtbot.waitUntil(lambda: not window.busy, timeout=60_000)
    window.grab()
    qtbot.waitUntil(lambda: not window.busy, timeout=60_000)
    yield window
    window.frame.close_unasked()


def test_in_the_window_they_export_the_figure_explain_and_copy_rows(
    qtbot: QtBot, opened: TracePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(TracePage, "show_help", lambda _, place="": asked.append(place))
    monkeypatch.setattr(TracePage, "export_figure", lambda _, figure="": asked.append(figure))
    rows = opened.timeline.view
    chart = opened.panel("statistics").chart
    for plot, figure, place in (
        (opened.curve_view, "curve", "guide.md#the-curve"),
        (rows, "timeline", "guide.md#the-timeline"),
    ):
        menu = plot.menu_at(QPointF(plot.rect().center()))
        found = {action.objectName(): action for action in menu.actions()}
        found["plot_export"].trigger()
        found["plot_help"].trigger()
        assert asked == [figure, place]
        asked.clear()
    opened.show_panel("statistics")
    plot_menu.explain(chart)
    assert asked and asked[0].startswith("statistics.md")
    head, *body = rows.table()
    assert head == ("row", "name", "start_s", "end_s", "state")
    assert {row[0] for row in body} == {row.label for row in rows.rows.rows}
    a, b = rows.visible_range()
    for label in ("0", "7"):
        mine = [row for row in body if row[0] == label]
        assert all(a <= row[2] < row[3] <= b for row in mine)
        assert all(x[3] == y[2] for x, y in pairwise(mine))


def test_a_right_click_beside_the_plot_opens_the_menu_too(
    qtbot: QtBot, opened: TracePage, no_menu_opens: list[QMenu]
) -> None:
    view = opened.curve_view
    for place in (QPoint(20, round(view._main.rect.center().y())), view._axis.center().toPoint()):
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.RightButton, pos=place)
        assert len(no_menu_opens) == 1
        no_menu_opens.clear()


@pytest.mark.parametrize("size", [(1366, 768), (1920, 1080)])
def test_panels_below_start_with_room_for_what_they_show(
    qtbot: QtBot, opened: TracePage, size: tuple[int, int]
) -> None:
    opened.frame.resize(*size)
    opened.reset_layout()
    QApplication.processEvents()
    opened.show_panel("statistics")
    # Of a small screen the plots keep their third and their quarter, and eight rows are seen.
    last, lines = (7, 9) if size[1] < 800 else (11, 10)
    table = opened.panel("statistics").table
    seen = lambda: table.rowAt(table.viewport().height() - 2)  # noqa: E731 - asked again and again
    qtbot.waitUntil(lambda: seen() == -1 or seen() >= last)
    opened.show_panel("messages")
    matrix = opened.panel("messages").matrix
    # All that it needs, or what is left where the plots keep their third and their quarter.
    spared = lambda: opened._plots.height() - opened._plots_need() <= 2  # noqa: E731
    qtbot.waitUntil(lambda: matrix.height() >= matrix.sizeHint().height() or spared())
    qtbot.waitUntil(lambda: not opened.busy and matrix.content.shown, timeout=60_000)
    matrix.grab()
    laid = matrix.current_layout
    assert laid.scale is not None and laid.scale[0] > laid.right
    assert all(word.x + word.width / 2 <= matrix.width() for word in laid.scale_words) and laid.scale_words
    assert laid.width >= lines * matrix.fontMetrics().height()
    # After that it is the user's.
    dock = opened._docks["messages"]
    opened.resizeDocks([dock], [150], Qt.Orientation.Vertical)
    QApplication.processEvents()
    small = dock.height()
    opened.show_panel("statistics")
    opened.show_panel("messages")
    qtbot.wait(20)
    assert abs(opened._docks["messages"].height() - small) <= 2

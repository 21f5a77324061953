"""The chart and the map of cells: what a click hits, what keys reach, what is drawn."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from desktop.core.ticks import doubling_ticks, power_ticks
from desktop.data.chart import Axis, Content, Series, ramp
from desktop.ui.app import load_font
from desktop.ui.model.contents import cell_map
from desktop.ui.plots.chart import Chart
from desktop.ui.theme import DARK, LIGHT

# A tool tip raises its window, which the offscreen platform cannot.
pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints", "does not support raise")

FIVE = np.arange(5.0)


@pytest.fixture
def chart(qtbot: QtBot, qapp: QApplication) -> Chart:
    load_font(qapp)
    made = Chart("test")
    qtbot.addWidget(made)
    made.resize(600, 400)
    made.show()
    return made


def place(chart: Chart, series: int, k: int) -> QPointF:
    return chart.place_of((series, k))


def click(qtbot: QtBot, widget, at: QPointF, held=Qt.KeyboardModifier.NoModifier) -> None:
    qtbot.mouseClick(widget.viewport(), Qt.MouseButton.LeftButton, held, at.toPoint())


def colours(image: QImage) -> set[str]:
    return {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}


def points(**more) -> Content:
    series = Series("points", FIVE, FIVE**2, names=tuple("abcde"), keys=(10, 11, 12, 13, 14), **more)
    return Content(Axis("x (s)"), Axis("y (s)"), (series,))


def test_a_click_emits_the_key_of_the_nearest_point(qtbot: QtBot, chart: Chart) -> None:
    chart.set_content(points(), "five points")
    assert chart.accessibleDescription() == "five points"
    for k in (0, 3):
        with qtbot.waitSignal(chart.clicked) as told:
            click(qtbot, chart, place(chart, 0, k) + QPointF(3, -3))
        assert told.args == [10 + k, False]
    with qtbot.waitSignal(chart.clicked) as told:
        click(qtbot, chart, place(chart, 0, 1), Qt.KeyboardModifier.ControlModifier)
    assert told.args == [11, True]
    with qtbot.assertNotEmitted(chart.clicked):
        click(qtbot, chart, place(chart, 0, 2) + QPointF(40, 40))


def test_points_without_a_value_are_neither_hit_nor_drawn(qtbot: QtBot, chart: Chart) -> None:
    y = FIVE.copy()
    y[2] = np.nan
    chart.set_content(Content(Axis("x"), Axis("y"), (Series("points", FIVE, y, keys=range(5)),)))
    assert chart.mark_at(place(chart, 0, 3)) == (0, 3)
    assert all(chart.mark_at(QPointF(x, 200)) != (0, 2) for x in range(0, 600, 3))


def test_arrow_keys_go_through_all_series_and_return_chooses(qtbot: QtBot, chart: Chart) -> None:
    two = Series("points", FIVE[:2], FIVE[:2], keys=np.array([20, 21]), names=lambda k: f"second {k}")
    content = points()
    line = Series("line", FIVE, FIVE)
    chart.set_content(Content(content.x, content.y, (line, content.series[0], two)))
    chart.setFocus()
    found = []
    chart.clicked.connect(lambda key, _: found.append(key))
    for key in [Qt.Key.Key_Right] * 8:
        qtbot.keyClick(chart, key)
        qtbot.keyClick(chart, Qt.Key.Key_Return)
    qtbot.keyClick(chart, Qt.Key.Key_Left)
    assert chart.name_of(chart._hover) == "second 1"
    qtbot.keyClick(chart, Qt.Key.Key_Return)
    assert found == [10, 11, 12, 13, 14, 20, 21, 10, 21]


def test_a_hundred_thousand_points_are_drawn_hit_and_selected(qtbot: QtBot, chart: Chart) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 100_000))
    x[77], y[77] = 6.0, 6.0
    keys = np.arange(100_000) + 5
    content = Content(Axis("x"), Axis("y"), (Series("points", x, y, keys=keys),), selected=frozenset({82}))
    chart.set_content(content)
    image = chart.grab().toImage()
    far = place(chart, 0, 77).toPoint()
    ring = {image.pixelColor(far.x() + dx, far.y()).name() for dx in range(-12, 13)}
    assert QColor(LIGHT.text).name() in ring, "a selected point is ringed even in a cloud"
    with qtbot.waitSignal(chart.clicked) as told:
        click(qtbot, chart, QPointF(far))
    assert told.args == [82, False]


def test_a_band_does_not_stretch_the_axis(chart: Chart) -> None:
    p = np.array([1.0, 10.0, 100.0])
    line = Series("line", p, 100 / p)
    band = Series("band", p, 100 / p, low=np.array([-5.0, 1e-9, 1e-9]), high=np.array([1e9, 1e9, 1e9]))
    axes = Axis("p", log=True), Axis("t (s)", log=True)
    chart.set_content(Content(*axes, (line,)))
    alone = chart.current_layout.y
    chart.set_content(Content(*axes, (band, line)))
    assert chart.current_layout.y == alone
    assert not chart.grab().isNull()


@pytest.mark.parametrize("size", [(400, 20), (20, 300), (5, 5)], ids=str)
def test_a_chart_without_room_is_still_drawn(chart: Chart, size: tuple[int, int]) -> None:
    """With large text in a small window nothing may be left between title and axis."""
    x = np.array([1.0, 2.0, 4.0])
    band = Series("band", x, x, low=x - 1, high=x + 1)
    whiskers = Series("points", x, x, low=x - 0.5, high=x + 0.5, keys=(0, 1, 2))
    chart.set_content(Content(Axis("x (s)"), Axis("y (s)"), (band, whiskers)))
    chart.resize(*size)
    assert not chart.grab().isNull()
    assert chart.current_layout.width >= 1 and chart.current_layout.height >= 1


def test_bars_lie_beside_each_other_and_are_hit(qtbot: QtBot, chart: Chart) -> None:
    at = np.array([0.0, 1.0])
    one = Series("bars", at + 0.2, np.array([2.0, -1.0]), keys=(0, 1), thickness=0.38)
    two = Series("bars", at - 0.2, np.array([3.0, 4.0]), keys=(2, 3), thickness=0.38)
    spread = Series(
        "whiskers", at, np.array([2.0, 1.0]), low=np.array([1.0, np.nan]), high=np.array([9.0, np.nan])
    )
    chart.set_content(
        Content(
            Axis("speed", zero=True),
            Axis("", categories=("a", "b")),
            (one, two, spread),
            horizontal_bars=True,
        )
    )
    boxes = [QRectF(*box) for series in (one, two) for box in chart.current_layout.bars(series)]
    assert not any(a.intersects(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert chart.current_layout.x[1] > 9, "whiskers count for the range"
    for key, box in enumerate(boxes):
        with qtbot.waitSignal(chart.clicked) as told:
            click(qtbot, chart, box.center())
        assert told.args[0] == key
    assert not chart.grab().isNull()


def test_many_names_wrap_and_very_many_say_so(chart: Chart) -> None:
    def legend(count: int) -> list[str]:
        series = tuple(Series("points", FIVE, FIVE, f"system number {k}", k) for k in range(count))
        chart.set_content(Content(Axis("x"), Axis("y"), series))
        laid = chart.current_layout
        assert 0 < sum(laid.columns) <= chart.width()
        assert max(entry.row for entry in laid.legend) < 4
        return [entry.text for entry in laid.legend]

    assert legend(9) == [f"system number {k}" for k in range(9)]
    many = legend(60)
    assert many[-1] == "and more" and len(many) < 60
    assert not chart.grab().isNull()


@pytest.mark.parametrize("low", [-0.7, -1234.5, 0.0001])
def test_numbers_of_the_axis_have_room(chart: Chart, low: float) -> None:
    chart.set_content(Content(Axis("x"), Axis("y"), (Series("points", FIVE, low + FIVE * abs(low)),)))
    metrics = chart.fontMetrics()
    labels, left = chart.current_layout.y_ticks.labels, chart.current_layout.left
    assert labels and max(map(metrics.horizontalAdvance, labels)) + metrics.height() < left


def test_processors_have_ticks_at_powers_of_two() -> None:
    assert doubling_ticks(0.0, np.log10(256), 20).labels == [
        "1",
        "2",
        "4",
        "8",
        "16",
        "32",
        "64",
        "128",
        "256",
    ]
    assert doubling_ticks(0.0, np.log10(1 << 20), 6).labels == ["1", "16", "256", "4096", "65536", "1048576"]
    assert len(doubling_ticks(np.log10(24), np.log10(30), 6).labels) > 1
    assert power_ticks(-2.0, 1.0, 20).labels[:4] == ["0.01", "0.02", "0.05", "0.1"]


def test_a_picture_is_twice_as_large_and_white_whatever_the_theme(chart: Chart) -> None:
    chart.set_theme(DARK)
    chart.set_content(points())
    image = chart.picture()
    assert (image.width(), image.height()) == (1200, 800)
    assert image.pixelColor(3, 3).name() == "#ffffff"
    assert QColor(DARK.background).name() in colours(chart.grab().toImage())


# --- the map of cells ---


@pytest.fixture
def heat(qtbot: QtBot, qapp: QApplication) -> Chart:
    load_font(qapp)
    made = Chart("cells")
    qtbot.addWidget(made)
    made.resize(600, 400)
    made.show()
    values = np.array([[1.0, 20.0], [np.nan, 300.0], [4.0, 5.0]])
    made.set_content(cell_map("Error (%)", ("BT", "LU", "SP"), ("one", "two"), values, (0, 1)), "map")
    return made


def test_a_cell_is_clicked_and_walked_to(qtbot: QtBot, heat: Chart) -> None:
    for cell in ((0, 0), (2, 1)):
        with qtbot.waitSignal(heat.cellClicked) as told:
            click(qtbot, heat, heat.place_of(cell))
        assert told.args == list(cell)
    heat.setFocus()
    heat._point_at(None)
    for key in (Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Up, Qt.Key.Key_Up):
        qtbot.keyClick(heat, key)
    with qtbot.waitSignal(heat.cellClicked) as told:
        qtbot.keyClick(heat, Qt.Key.Key_Return)
    assert told.args == [2, 0], "from the selected cell down, left, up and up round the edge"


def test_a_cell_says_its_value_or_that_there_is_none(heat: Chart) -> None:
    assert heat.name_of((1, 1)) == "LU on two\nError (%): 300"
    assert heat.name_of((1, 0)) == "LU on one\nError (%): nothing there"


def test_the_map_is_drawn_with_all_its_names(heat: Chart) -> None:
    image = heat.grab().toImage()
    left = int(heat.current_layout.left)
    for row in range(3):
        middle = round(heat.place_of((row, 0)).y())
        ink = [
            image.pixelColor(x, y).lightness() for x in range(left - 4) for y in range(middle - 8, middle + 8)
        ]
        assert min(ink) < 100, f"row {row} has no name"
    assert QColor(*ramp("cividis", 1.0, False).tolist()).name() in colours(image)


def test_the_colours_grow_lighter_all_the_way() -> None:
    def luminance(colour: QColor) -> float:
        parts = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour.getRgbF()[:3])
        return float(np.dot(list(parts), (0.2126, 0.7152, 0.0722)))

    steps = [
        luminance(QColor(*ramp("cividis", k / 50, dark).tolist()))
        for dark in (True, False)
        for k in range(51)
    ]
    assert (np.diff(np.reshape(steps, (2, 51))) > 0).all()


def test_an_empty_map_says_why(heat: Chart) -> None:
    before = heat.grab().toImage()
    heat.set_content(cell_map("Error", ("BT",), ("one",), np.array([[np.nan]]), empty="Press the button."))
    assert heat.grab().toImage() != before
    assert heat.content.empty == "Press the button."


def test_charts_that_nobody_owns_are_freed_as_one(qapp: QApplication) -> None:
    """By the collector, which would take a scene and its items apart in any order."""
    load_font(qapp)
    for _ in range(3):
        made = Chart("x")
        made.set_content(points(label="named", labels=frozenset({1})))
        made.grab()
        del made
        gc.collect()

"""What plots on pyqtgraph stand on: errors are told and end nothing, pixels are exact, items are drawn."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyqtgraph as pg
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QAccessible, QColor, QImage, QMouseEvent, QPainter
from PySide6.QtWidgets import QApplication, QGraphicsView
from pytestqt.qtbot import QtBot

from desktop.ui import theme
from desktop.ui.guard import guarded, saved
from desktop.ui.plots.scene import DrawnAxis, PixelItem, PlotView, QuietBox, blit, lane_plot, place_lane

ROOT = Path(__file__).parent.parent.parent
LANE = QRectF(50, 10, 200, 100)


class Lanes(PlotView):
    """A plot of one lane, which is red, and of an axis, which is blue."""

    fails = ""

    def __init__(self) -> None:
        super().__init__()
        self.prepared: list[float] = []
        self.plot = lane_plot(DrawnAxis("left", self._axis))
        self.scene().addItem(self.plot)
        self.item = PixelItem(self._lane, self.plot.vb)
        self.resize(300, 150)

    def prepare(self, dpr: float) -> None:
        self.prepared.append(dpr)
        place_lane(self.plot, LANE)
        self.plot.vb.show_range(0, 10, 0, 5)

    def _lane(self, painter: QPainter, rect: QRectF) -> None:
        painter.translate(17, 4)  # which nobody else must notice
        if self.fails == "paint":
            _ = 1 / 0
        painter.fillRect(rect.translated(-17, -4), QColor("red"))

    def _axis(self, painter: QPainter, rect: QRectF) -> None:
        painter.fillRect(rect, QColor("blue"))

    @guarded
    def resizeEvent(self, event: object) -> None:
        super().resizeEvent(event)
        if self.fails == "resize":
            _ = 1 / 0

    @guarded
    def mousePressEvent(self, event: object) -> None:
        if self.fails == "mouse":
            _ = 1 / 0


@pytest.fixture
def view(qtbot: QtBot) -> Iterator[Lanes]:
    made = Lanes()
    qtbot.addWidget(made)
    made.show()
    qtbot.waitExposed(made)
    return made


def at(view: Lanes, x: float, y: float) -> str:
    return view.grab().toImage().pixelColor(round(x), round(y)).name()


def press(view: Lanes) -> None:
    p, button = QPointF(60, 60), Qt.MouseButton.LeftButton
    event = QMouseEvent(QEvent.Type.MouseButtonPress, p, p, button, button, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(view.viewport(), event)


@pytest.mark.parametrize("fails", ["paint", "resize", "mouse"])
def test_an_error_in_what_qt_calls_is_told_and_the_plot_goes_on(view: Lanes, fails: str) -> None:
    told: list[str] = []
    hook = sys.excepthook
    sys.excepthook = lambda kind, value, trace: told.append(kind.__name__)
    try:
        view.fails = fails
        view.grab()
        view.resize(310, 160)
        press(view)
        QApplication.processEvents()
    finally:
        sys.excepthook = hook
    assert set(told) == {"ZeroDivisionError"}
    view.fails = ""
    assert at(view, 60, 60) == "#ff0000" and at(view, 20, 60) == "#0000ff"


def test_the_painter_has_its_state_again_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr(sys, "excepthook", lambda *args: told.append(args[1]))

    class Thing:
        @guarded
        def paint(self, painter: QPainter) -> None:
            painter.translate(5, 5)
            with saved(painter):
                painter.setPen(QColor("red"))
                raise ValueError("here")

        @guarded(otherwise=lambda: 7)
        def ask(self) -> int:
            return [][3]

    image = QImage(10, 10, QImage.Format.Format_RGB32)
    with QPainter(image) as painter:
        painter.setPen(QColor("blue"))
        Thing().paint(painter)
        assert painter.transform().isIdentity() and painter.pen().color() == QColor("blue")
    assert Thing().ask() == 7
    assert [type(error) for error in told] == [ValueError, IndexError]


@pytest.mark.parametrize("kind", [pg.PlotCurveItem, pg.ScatterPlotItem])
def test_errors_in_items_of_pyqtgraph_are_told(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, kind: type
) -> None:
    told: list[type] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, *_: told.append(kind))
    view, box = PlotView(), QuietBox()
    qtbot.addWidget(view)
    view.scene().addItem(box)
    box.setGeometry(QRectF(0, 0, 100, 100))
    item = kind([0.0, 1.0], [0.0, 1.0], pen="r")
    box.addItem(item)
    box.show_range(0, 1, 0, 1)
    view.resize(100, 100)
    view.show()
    view.grab()
    assert told == []
    item.opts = {}  # without which it cannot be painted
    view.grab()
    assert set(told) == {KeyError}, "and the view is still there"


SCRIPT = """
import sys
from PySide6.QtCore import QPointF, QRectF, QTimer, QEvent, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication, QMainWindow
from desktop.ui.crashes import Watch, start_log
from desktop.ui.guard import guarded
from desktop.ui.plots.scene import PixelItem, PlotView
app = QApplication([])
start_log("info", None, passing=True)
watch = Watch(lambda: True)

class View(PlotView):
    @guarded
    def resizeEvent(self, event):
        super().resizeEvent(event)
        if sys.argv[1] == "resize" and self.isVisible():
            1 / 0
    @guarded
    def mouseMoveEvent(self, event):
        if sys.argv[1] == "mouse":
            1 / 0

def draw(painter, rect):
    if sys.argv[1] == "paint":
        1 / 0

window, view = QMainWindow(), View()
item = PixelItem(draw)
view.scene().addItem(item)
item.place(QRectF(0, 0, 100, 100))
window.setCentralWidget(view)
window.resize(200, 200)
window.show()

def act():
    window.resize(300, 250)
    p = QPointF(20, 20)
    none = Qt.MouseButton.NoButton
    event = QMouseEvent(QEvent.Type.MouseMove, p, p, none, none, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(view.viewport(), event)

def look():
    assert window.isVisible() and view.isVisible()
    print("told:", watch.dialog is not None and watch.dialog.isVisible())
    watch.dialog.accept()
    app.quit()

QTimer.singleShot(50, act)
QTimer.singleShot(400, look)
app.exec()
print("alive")
"""


@pytest.mark.parametrize("fails", ["paint", "resize", "mouse"])
def test_an_error_in_the_running_program_ends_neither_process_nor_window(tmp_path: Path, fails: str) -> None:
    """In a process of its own and its event loop: an unguarded one dies there on Python 3.11."""
    env = os.environ | {"QT_QPA_PLATFORM": "offscreen", "XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, fails], capture_output=True, text=True, env=env, cwd=ROOT, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["told: True", "alive"]
    assert "ZeroDivisionError" in done.stderr


def test_what_scripts_add_in_data_coordinates_is_drawn_where_it_belongs(view: Lanes) -> None:
    modes = QGraphicsView.ViewportUpdateMode
    assert at(view, 150, 60) == "#ff0000" and view.viewportUpdateMode() == modes.NoViewportUpdate
    points = pg.ScatterPlotItem([5.0], [2.5], size=9, pen=None, brush="#00ff00", symbol="s")
    view.plot.addItem(points)
    # in the middle of the lane, over its picture
    assert at(view, LANE.center().x(), LANE.center().y()) == "#00ff00"
    QApplication.processEvents()
    seen = len(view.prepared)
    points.setData([2.5], [2.5])
    QApplication.processEvents()
    assert len(view.prepared) > seen, "what moves is painted again without being asked"
    assert at(view, LANE.center().x(), LANE.center().y()) == "#ff0000"
    assert at(view, LANE.left() + LANE.width() / 4, LANE.center().y()) == "#00ff00"
    view.plot.removeItem(points)
    assert at(view, LANE.left() + LANE.width() / 4, LANE.center().y()) == "#ff0000"
    assert view.viewportUpdateMode() == modes.NoViewportUpdate


def test_only_what_is_dirty_is_painted_and_once(view: Lanes, monkeypatch: pytest.MonkeyPatch) -> None:
    QApplication.processEvents()
    painted: list[QRectF] = []
    monkeypatch.setattr(view.item, "_draw", lambda painter, rect: painted.append(rect))
    view.plot.vb.setRange(xRange=(0, 3), padding=0)
    QApplication.processEvents()
    assert not painted, "a change of range alone paints nothing"
    view.dirty(QRectF(60, 20, 10, 10))
    view.dirty(QRectF(90, 20, 10, 10))
    QApplication.processEvents()
    assert painted == [LANE], "one paint, in the view's own pixels"


@pytest.mark.parametrize("dpr", [1.0, 1.5, 2.0])
def test_pictures_are_put_on_device_pixels_without_scaling(qtbot: QtBot, dpr: float) -> None:
    view = Lanes()
    qtbot.addWidget(view)
    marks = QImage(round(40 * dpr), round(20 * dpr), QImage.Format.Format_RGB32)
    for x in range(marks.width()):
        for y in range(marks.height()):
            marks.setPixelColor(x, y, QColor("black" if (x + y) % 2 else "white"))
    left, top = round(61 * dpr) / dpr, round(20 * dpr) / dpr
    there = QRectF(left, top, marks.width() / dpr, marks.height() / dpr)
    view.item._draw = lambda painter, rect: blit(painter, there, marks)
    image = QImage(round(300 * dpr), round(150 * dpr), QImage.Format.Format_ARGB32_Premultiplied)
    image.setDevicePixelRatio(dpr)
    view.paint_on(image)
    got = image.convertToFormat(QImage.Format.Format_RGB32).copy(
        round(left * dpr), round(top * dpr), marks.width(), marks.height()
    )
    got.setDevicePixelRatio(1)
    assert got == marks and view.prepared[-1] == dpr


def test_the_ground_follows_the_theme_and_the_viewport_is_named_but_no_stop(view: Lanes) -> None:
    view.set_opaque(LANE)
    assert at(view, 280, 140) == theme.LIGHT.background and at(view, 60, 60) == "#ff0000"
    view._theme = theme.DARK
    assert at(view, 280, 140) == theme.DARK.background
    view.setAccessibleName("Lanes")
    view.setAccessibleDescription("One")
    port = QAccessible.queryAccessibleInterface(view.viewport())
    assert port.text(QAccessible.Text.Name) == "Lanes" and port.text(QAccessible.Text.Description) == "One"
    assert view.viewport().focusPolicy() == Qt.FocusPolicy.NoFocus
    assert view.focusPolicy() == Qt.FocusPolicy.StrongFocus


def test_a_closed_plot_can_be_shown_again(view: Lanes, qtbot: QtBot) -> None:
    view.close()
    view.show()
    qtbot.waitExposed(view)
    assert at(view, 60, 60) == "#ff0000"
    assert view.viewport().rect().contains(QPoint(60, 60))

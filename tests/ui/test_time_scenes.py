"""Plots over time as scenes: what is painted in parts is what is painted whole, exact in the deepest zoom and
at rest, with what scripts add; an error in one part leaves the rest."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyqtgraph as pg
import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QAccessible, QImage, QMouseEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from desktop.core import phases
from desktop.core.curve import StepCurve
from desktop.ui import theme
from desktop.ui.plots import time_plot
from desktop.ui.plots.curve_view import CurveView
from desktop.ui.plots.plot_menu import AxisDialog
from desktop.ui.plots.time_plot import TimePlot
from desktop.workbench.model import Annotation

ROOT = Path(__file__).parent.parent.parent
SIZE = (900, 620)


def noisy(m: int = 4000) -> StepCurve:
    rng = np.random.default_rng(2)
    edges = 10**6 + np.concatenate(([0], np.cumsum(rng.integers(1, 2000, m)))).astype(float)
    base = np.repeat([10, 50, 25, 60], -(-m // 4))[:m]
    return StepCurve(edges, np.clip(base + rng.integers(-4, 5, m), 0, 64), 64, 1e-9)


CURVE = noisy()
FITS = [phases.fit(CURVE, n, "mixed") for n in (2, 4, 9)]


def made() -> CurveView:
    view = CurveView()
    view.resize(*SIZE)
    view.set_curve(CURVE)
    view.show_over(fit=FITS[1])
    view.show()
    QApplication.processEvents()
    return view


@pytest.fixture
def view(qtbot: QtBot) -> CurveView:
    view = made()
    qtbot.addWidget(view)
    return view


def pixels(image: QImage) -> np.ndarray:
    image = image.convertToFormat(QImage.Format.Format_RGB32)
    return np.ndarray((image.height(), image.width()), np.uint32, image.constBits()) & 0xFFFFFF


def on_screen(view: TimePlot) -> QImage:
    """What has been painted there, in parts."""
    image = view.window().backingStore().paintDevice()
    assert isinstance(image, QImage)
    ratio = view.devicePixelRatioF()
    return image.copy(0, 0, round(view.width() * ratio), round(view.height() * ratio))


def mouse(view: TimePlot, kind: QEvent.Type, p: QPointF, held: Qt.MouseButton) -> None:
    button = Qt.MouseButton.NoButton if kind == QEvent.Type.MouseMove else Qt.MouseButton.LeftButton
    event = QMouseEvent(kind, p, view.mapToGlobal(p), button, held, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(view.viewport(), event)


def actions(view: CurveView, rng: np.random.Generator) -> list[Callable[[], object]]:
    """What a user does, anywhere."""
    a, b = view.navigation.start, view.navigation.end
    length = b - a
    left, none = Qt.MouseButton.LeftButton, Qt.MouseButton.NoButton

    def at() -> QPointF:
        return QPointF(rng.uniform(0, view.width()), rng.uniform(0, view.height()))

    def drag() -> None:
        p, q = at(), at()
        mouse(view, QEvent.Type.MouseButtonPress, p, left)
        mouse(view, QEvent.Type.MouseMove, (p + q) / 2, left)
        mouse(view, QEvent.Type.MouseMove, q, left)
        QApplication.processEvents()
        if rng.random() < 0.7:
            mouse(view, QEvent.Type.MouseButtonRelease, q, none)
        else:
            view.cancel_drag()

    some = lambda: float(rng.uniform(a, b))  # noqa: E731 - short names for random things
    return [
        drag,
        lambda: mouse(view, QEvent.Type.MouseMove, at(), none),
        lambda: mouse(view, QEvent.Type.MouseMove, at(), none),
        lambda: view.zoom(float(rng.choice([0.5, 2, 5]))),
        lambda: view.pan(float(rng.uniform(-0.4, 0.4))),
        view.show_all,
        lambda: view.show_over(fit=FITS[rng.integers(len(FITS))]),
        lambda: view.show_over(fit=None),
        lambda: view.show_over(phase=int(rng.integers(2)) if rng.random() < 0.7 else None),
        lambda: view.show_over(locked=(float(FITS[1].breaks[1]),)),
        lambda: view.set_selection(tuple(sorted((some(), some()))) if rng.random() < 0.7 else None),
        lambda: view.show_over(limit=(a + 0.1 * length, a + 0.8 * length) if rng.random() < 0.5 else None),
        lambda: view.set_cursor(some()),
        lambda: view.zoom_levels(float(rng.choice([0.5, 2]))),
        view.fit_levels,
        view.reset_levels,
        lambda: view.set_logarithmic(bool(rng.random() < 0.5)),
        lambda: view.set_percent(bool(rng.random() < 0.5)),
        lambda: view.set_theme(theme.DARK if rng.random() < 0.5 else theme.LIGHT),
        lambda: view.set_annotations((Annotation(some(), "here"),) if rng.random() < 0.6 else ()),
        lambda: view.resize(int(rng.integers(500, 1000)), int(rng.integers(200, 700))),
        view.setFocus,
        view.clearFocus,
    ]


def differing(seed: int, steps: int) -> str:
    """Where the window's pixels are not those of a whole paint after one of many random actions; "" if
    nowhere."""
    view, rng = made(), np.random.default_rng(seed)
    done: list[int] = []
    for _ in range(steps):
        choices = actions(view, rng)
        done.append(int(rng.integers(len(choices))))
        choices[done[-1]]()
        QApplication.processEvents()
        QApplication.processEvents()
        seen = pixels(on_screen(view))
        whole = pixels(view.grab().toImage())
        rows, columns = (min(n, m) for n, m in zip(seen.shape, whole.shape, strict=True))
        seen, whole = seen[:rows, :columns], whole[:rows, :columns]  # a size may be rounded otherwise
        if (seen != whole).any():
            rows, columns = np.nonzero(seen != whole)
            return f"{done}: {rows.size} at {rows[0]}, {columns[0]} and {rows[-1]}, {columns[-1]}"
    view.deleteLater()
    return ""


@pytest.mark.parametrize("seed", range(2))
def test_what_is_painted_in_parts_is_what_is_painted_whole(qapp: QApplication, seed: int) -> None:
    assert differing(seed, 50) == ""


@pytest.mark.parametrize("scale", ["1.5", "2"])
def test_and_so_it_is_on_fine_screens(scale: str) -> None:
    code = (
        "from PySide6.QtWidgets import QApplication; app = QApplication([]);"
        "from tests.ui.test_time_scenes import differing; assert app.primaryScreen().devicePixelRatio() > 1;"
        "print(differing(7, 25))"
    )
    env = os.environ | {"QT_SCALE_FACTOR": scale, "QT_QPA_PLATFORM": "offscreen"}
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.strip() == "", done.stdout + done.stderr


def test_lines_are_exact_where_the_narrowest_time_is_seen(view: CurveView) -> None:
    """2000 neighbouring doubles over the width, far from 0: breakpoints, cursor, selection, to the pixel."""
    at = 1e3 + 1 / 3
    curve = StepCurve(np.array([0.0, at, 2e3]), np.array([10.0, 30.0]), 64)
    fit = phases.fit(curve, 2, "constant")
    view.set_curve(curve)
    view.show_over(fit=fit)
    ulp = np.spacing(at)
    view.zoom_to(at - 700 * ulp, at + 1300 * ulp)
    a, b = view.visible_range()
    assert round((b - a) / view.navigation.narrowest, 6) == 1
    view.set_cursor(float(at + 400 * ulp))
    view.set_selection((float(at - 350 * ulp), float(at - 175 * ulp)))
    image, r = view.grab().toImage(), view._main.rect
    y = round(view._main.y(50.0))  # above the curve, no grid line
    line = [int(view._map().x(fit.breaks[1])), int(view._map().x(at + 400 * ulp))]
    expected = [(t - a) / (b - a) * r.width() + r.left() for t in (fit.breaks[1], at + 400 * ulp)]
    assert np.allclose(line, expected, atol=1)
    dark = [
        x
        for x in range(int(r.left()), int(r.right()))
        if any(image.pixelColor(x, y + d).lightness() < 110 for d in range(6))
    ]
    assert set(line) <= set(dark) and len(dark) <= 6, (line, dark)
    ends = [view._map().x(at - k * ulp) for k in (350, 175)]
    colours = [image.pixelColor(round(x) + d, y).name() for x, d in zip(ends, (-3, 3), strict=True)]
    inside = [image.pixelColor(round(x) + d, y).name() for x, d in zip(ends, (3, -3), strict=True)]
    assert inside[0] == inside[1] and colours[0] == colours[1] != inside[0], "the selection ends there"


def test_an_axis_shows_its_name_below_its_numbers(view: CurveView) -> None:
    image, em = pixels(view.grab().toImage()), view.fontMetrics().height()
    top = round(view._axis.top()) + 5 + em
    assert (image[top : top + em, 300:600] != image[top, 5]).any(), "Time (ms)"


@pytest.mark.parametrize("log", [False, True])
def test_items_of_scripts_stand_at_their_data(view: CurveView, log: bool) -> None:
    view.show_over(fit=None)
    view.set_logarithmic(log)
    t, level = CURVE.start + 0.45 * CURVE.duration, 40.0
    value = np.log10(level) if log else level
    points = pg.ScatterPlotItem([t], [value], size=9, pen=None, brush="#ff00ff", symbol="s")
    view.lanes["curve"].addItem(points)
    line = pg.InfiniteLine(t, pen=pg.mkPen("#00ff00", width=3))
    view.lanes["residual"].addItem(line)
    for act in (lambda: None, lambda: view.zoom_to(t - 0.1, t + 0.2), view.fit_levels, view.reset_levels):
        act()
        image = view.grab().toImage()
        x = round(float(view._map().x(t)))
        assert image.pixelColor(x, round(float(view._main.y(level)))).name() == "#ff00ff"
        assert image.pixelColor(x, round(view._residual.rect.center().y())).name() == "#00ff00"
        QApplication.processEvents()
        seen = on_screen(view)
        assert (pixels(seen) == pixels(image)).all(), "on the screen as well"
    view.lanes["curve"].removeItem(points)
    view.lanes["residual"].removeItem(line)
    assert view.grab().toImage().pixelColor(x, round(float(view._main.y(level)))).name() != "#ff00ff"


@pytest.fixture
def small_screens_count_as_large(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(time_plot, "MANY_PIXELS", 10_000)
    yield


@pytest.mark.usefixtures("small_screens_count_as_large")
def test_many_pixels_are_drawn_coarsely_while_they_move_and_exactly_at_rest(
    view: CurveView, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[Callable[[], object]] = [
        lambda: view.zoom(3.0),
        lambda: view.pan(0.2),
        lambda: view.show_over(fit=FITS[2]),
        lambda: view.zoom_levels(1.5),
    ]
    view.clearFocus()
    for step in steps:
        step()
        QApplication.processEvents()
        coarse = view._sheets["curve"].image
        assert coarse.width() == pytest.approx(view._main.rect.width() / 2, abs=1)
        moving = pixels(view.grab().toImage())
        qtbot.waitUntil(
            lambda: view._sheets["curve"].image.width() == round(view._main.rect.width()), timeout=20_000
        )
        seen = pixels(on_screen(view))
        assert (seen != moving).any()
        fresh = CurveView()
        qtbot.addWidget(fresh)
        fresh.resize(*SIZE)
        fresh.set_curve(CURVE)
        fresh.show_over(fit=view._over.fit)
        with monkeypatch.context() as patch:
            patch.setattr(time_plot, "MANY_PIXELS", 1 << 40)
            fresh.zoom_to(*view.visible_range())
            fresh.set_levels(view.levels)
            assert (pixels(fresh.grab().toImage()) == seen).all(), "to the pixel"
    view.zoom(2.0)
    assert (pixels(view.picture(1.0)) == pixels(fresh_picture(view, qtbot, monkeypatch))).all()


def fresh_picture(view: CurveView, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> QImage:
    other = CurveView()
    qtbot.addWidget(other)
    other.resize(*SIZE)
    other.set_curve(CURVE)
    other.show_over(fit=view._over.fit)
    with monkeypatch.context() as patch:
        patch.setattr(time_plot, "MANY_PIXELS", 1 << 40)
        other.zoom_to(*view.visible_range())
        other.set_levels(view.levels)
        return other.picture(1.0)


@pytest.mark.parametrize("part", ["_paint_levels", "_draw_main", "_paint_marks", "_draw_anew", "_mark_rects"])
def test_an_error_in_a_part_is_told_and_the_rest_is_seen(
    view: CurveView, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    told: list[type[BaseException]] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, value, trace: told.append(kind))

    def fails(*_: object, **__: object) -> None:
        _ = 1 / 0

    broken = {"_paint_levels": "curve", "_draw_main": "curve"}.get(part)
    if broken is None:
        monkeypatch.setattr(view, part, fails)
    else:
        plot = view.lanes[broken]
        item = plot.getAxis("left") if part == "_paint_levels" else plot.vb.pictures[0]
        monkeypatch.setattr(item, "_draw", fails)
    p = view._main.rect.center()
    mouse(view, QEvent.Type.MouseMove, p, Qt.MouseButton.NoButton)
    view.resize(880, 600)
    mouse(view, QEvent.Type.MouseMove, p, Qt.MouseButton.NoButton)
    view.grab()
    QApplication.processEvents()
    assert set(told) == {ZeroDivisionError}
    assert view.isVisible()
    told.clear()
    monkeypatch.undo()
    view.set_curve(CURVE)
    image = view.grab().toImage()
    r = view._main.rect.toAlignedRect()
    assert len({image.pixelColor(x, r.center().y()).rgb() for x in range(r.left(), r.right(), 7)}) > 1
    assert not told


def test_a_screen_reader_meets_one_plot_with_a_name(view: CurveView) -> None:
    for widget in (view, view.viewport()):
        found = QAccessible.queryAccessibleInterface(widget)
        assert found.text(QAccessible.Text.Name) == "Processor-utilization curve"
        assert "processors over" in found.text(QAccessible.Text.Description)
    assert view.focusPolicy() == Qt.FocusPolicy.StrongFocus
    assert view.viewport().focusPolicy() == Qt.FocusPolicy.NoFocus


def test_axes_and_grid_are_asked_for_in_the_menu(view: CurveView, qtbot: QtBot) -> None:
    names = {action.objectName(): action for action in view.menu_at(view._main.rect.center()).actions()}
    assert {"plot_axes", "plot_grid"} <= set(names) and names["plot_grid"].isChecked()
    with_grid = pixels(view.grab().toImage())
    names["plot_grid"].trigger()
    assert not view.grid and (pixels(view.grab().toImage()) != with_grid).any()
    dialog = AxisDialog(view)
    qtbot.addWidget(dialog)
    time, levels = dialog.forms
    a, b = CURVE.start + 0.2 * CURVE.duration, CURVE.start + 0.4 * CURVE.duration
    time.free.setChecked(False)
    time.low.setText(f"{a!r}")
    time.high.setText(f"{b!r}")
    levels.free.setChecked(False)
    levels.low.setText("5")
    levels.high.setText("40")
    with qtbot.waitSignals([view.rangeChanged, view.levelsChanged]):
        assert dialog.apply()
    assert view.visible_range() == (a, b)
    view.grab()
    assert (view._main.low, view._main.high) == (5.0, 40.0)
    assert view.lanes["curve"].vb.viewRange() == [[a, b], [5.0, 40.0]]
    levels.free.setChecked(True)
    assert dialog.apply() and view.levels.mode == "start" and view.visible_range() == (a, b)


def test_a_range_that_is_only_read_stays_as_it_is(view: CurveView, qtbot: QtBot) -> None:
    """In the deepest zoom the dialog says enough digits, and applies only what was entered."""
    view.zoom_to(CURVE.start + 0.3 * CURVE.duration, CURVE.start + 0.3 * CURVE.duration)
    before = view.visible_range()
    dialog = AxisDialog(view)
    qtbot.addWidget(dialog)
    time, levels = dialog.forms
    assert float(time.low.text()) < float(time.high.text())
    levels.log.setChecked(True)
    assert dialog.apply() and view.levels.log
    assert view.visible_range() == before

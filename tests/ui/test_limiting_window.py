"""The analysis limited to a range, in the real window: asked for, seen, and let go."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QToolButton
from pytestqt.qtbot import QtBot

from desktop.resources import samples
from desktop.ui.exporting import FigureDialog, material_of
from desktop.ui.frame import Frame
from desktop.ui.settings import Settings
from desktop.ui.trace_page import TracePage

pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture
def window(qtbot: QtBot, settings: Settings, no_thread_left: None) -> Iterator[TracePage]:
    made = Frame(settings).trace
    qtbot.addWidget(made.frame)
    made.frame.resize(1366, 768)
    made.frame.show()
    made.open_path(next(Path(s.path) for s in samples() if "fft" in str(s.path)))
    settle(qtbot, made)
    yield made
    made.frame.close_unasked()


def settle(qtbot: QtBot, window: TracePage) -> None:
    qtbot.waitUntil(lambda: not window.busy, timeout=60_000)


def ends(window: TracePage) -> tuple[float, float]:
    fit = window.workbench.snapshot.fit
    assert fit is not None
    return float(fit.breaks[0]), float(fit.breaks[-1])


def colours(window: TracePage, time_s: float) -> list[set[int]]:
    """What is painted at a time, in the main lane and in the timeline."""
    view, rows = window.curve_view, window.timeline.view
    curve, timeline = view.grab().toImage(), rows.grab().toImage()
    x = round(view._map().x(time_s))
    lanes = ((curve, view._main.rect), (timeline, rows._plot))
    return [
        {image.pixel(x, y) for y in range(round(r.top()) + 2, round(r.bottom()) - 2)} for image, r in lanes
    ]


def test_a_selected_range_alone_is_analysed_until_its_chip_is_clicked(
    qtbot: QtBot, window: TracePage
) -> None:
    bench = window.workbench
    whole = bench.snapshot
    assert whole.run is not None and not window.actions_by_id["unlimit"].isEnabled()
    assert not window.actions_by_id["limit"].isEnabled(), "nothing is selected"
    length = whole.run.curve.duration
    span = (0.3 * length, 0.6 * length)
    plain = colours(window, 0.1 * length)
    visible = window.curve_view.visible_range()
    bench.select(span)
    window.frame.activateWindow()
    window.curve_view.setFocus()
    qtbot.keyClick(window.curve_view, Qt.Key.Key_L, Qt.KeyboardModifier.ControlModifier)
    settle(qtbot, window)
    part = bench.snapshot
    assert part.project.limit == span and part.project.view.selection is None
    assert ends(window) == pytest.approx(span)
    assert window.curve_view.visible_range() == visible, "what is in view stays"
    assert window.curve_view._curve is whole.run.curve, "the whole run is still drawn"
    (text,) = window.chips.texts
    assert text.startswith("analysis limited to")
    assert "analysed: " in window._cursor_text.text()
    assert window.panel("table").model.rowCount() == len(part.rows)
    for before, after in zip(plain, colours(window, 0.1 * length), strict=True):
        assert before != after, "greyed"
    veil = QColor(window._theme.surface)
    for painted in colours(window, 0.1 * length):
        for value in painted:
            assert abs(QColor(value).lightness() - veil.lightness()) < 60
    material = material_of(part)
    assert material is not None and material.curve.duration == pytest.approx(0.3 * length)
    qtbot.mouseClick(window.chips.findChild(QToolButton, "chip_limit"), Qt.MouseButton.LeftButton)
    settle(qtbot, window)
    assert bench.snapshot.project.limit is None and bench.snapshot.run is whole.run
    assert window.chips.texts == []
    qtbot.waitUntil(lambda: colours(window, 0.1 * length) == plain)
    assert ends(window) == (0.0, pytest.approx(length))
    window.actions_by_id["undo"].trigger()
    settle(qtbot, window)
    assert ends(window) == pytest.approx(span)
    assert window.actions_by_id["unlimit"].isEnabled()
    window.actions_by_id["unlimit"].trigger()
    settle(qtbot, window)
    assert ends(window) == (0.0, pytest.approx(length))


def test_the_context_menus_limit_to_what_is_selected_or_to_the_phase(qtbot: QtBot, window: TracePage) -> None:
    bench = window.workbench
    fit = bench.snapshot.fit
    assert fit is not None and fit.n > 1
    length = ends(window)[1]
    view, rows = window.curve_view, window.timeline.view

    def choose(plot, at: QPointF, wanted: str) -> None:  # type: ignore[no-untyped-def]  # either plot
        menu = plot.menu_at(at)
        (action,) = [a for a in menu.actions() if a.text().replace("&", "") == wanted]
        assert action.isEnabled()
        action.trigger()
        menu.close()
        settle(qtbot, window)

    middle = float(fit.breaks[:2].mean())
    place = QPointF(view._map().x(middle), view._main.rect.center().y())
    choose(view, place, "Limit analysis to this phase")
    assert ends(window) == pytest.approx((fit.breaks[0], fit.breaks[1]))
    outside = QPointF(view._map().x(0.5 * float(fit.breaks[1] + length)), view._main.rect.center().y())
    assert view._phase_span(view._time(outside.x())) is None
    texts = {a.text().replace("&", ""): a.isEnabled() for a in view.menu_at(outside).actions()}
    assert not texts["Add breakpoint here"] and not texts["Zoom to phase"]
    with qtbot.assertNotEmitted(view.phaseSelected):
        qtbot.mouseDClick(view.viewport(), Qt.MouseButton.LeftButton, pos=outside.toPoint())
        rail = QPoint(round(outside.x()), round(view._rail.center().y()))
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=rail)
    bench.select((0.2 * length, 0.4 * length))
    choose(rows, rows._plot.center(), "Limit analysis to this range")
    assert ends(window) == pytest.approx((0.2 * length, 0.4 * length))
    choose(rows, rows._plot.center(), "Remove limit of the analysis")
    assert ends(window) == (0.0, pytest.approx(length))


@pytest.mark.parametrize("part", [(0.0, 0.2), (0.4, 0.6), (0.8, 1.0)])
def test_everything_is_painted_wherever_the_range_is_and_whatever_is_in_view(
    qtbot: QtBot, window: TracePage, part: tuple[float, float]
) -> None:
    length = ends(window)[1]
    span = (part[0] * length, part[1] * length)
    window.workbench.limit_to(span)
    settle(qtbot, window)
    window.frame.resize(window.frame.width(), 1000)  # with room for the residual
    settle(qtbot, window)
    for view in ((0.0, 1.0), (0.3, 0.5), (0.7, 0.9), (0.05, 0.1)):
        window.curve_view.zoom_to(view[0] * length, view[1] * length)
        window.grab()
        residual = window.curve_view._residual
        assert residual.high > 0 and residual.low < 0
    shown = window.workbench.snapshot
    dialog = FigureDialog(shown, window._results.deliver, (0.05 * length, 0.1 * length), window)
    dialog.open()
    inside = part[0] < 0.1
    assert (dialog.range.itemData(1) is None) == (not inside), "nothing analysed is in view"
    dialog.reject()
    qtbot.waitUntil(lambda: not any("export" in thread.name for thread in threading.enumerate()))

"""The plots as the user meets them: real mouse events, and pixels compared with exact values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QImage,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPen,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication

from desktop.core import phases
from desktop.core.curve import StepCurve
from desktop.core.envelope import envelope
from desktop.core.pieces import residual
from desktop.core.ticks import level_ticks, time_ticks
from desktop.data.sweep_charts import links
from desktop.ui import theme
from desktop.ui.plots import scales
from desktop.ui.plots.curve_lanes import HALF
from desktop.ui.plots.curve_view import CurveView
from desktop.ui.plots.raster import Tint, mix, stroke
from desktop.ui.plots.sweep_plots import BreakpointPicture, EpsilonPlot
from desktop.workbench.levels import AT_FIRST, Levels

NONE, SHIFT = Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier
LEFT, RIGHT, MIDDLE = Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton, Qt.MouseButton.MiddleButton


def noisy(m: int = 5000, seed: int = 2) -> StepCurve:
    rng = np.random.default_rng(seed)
    edges = 10**6 + np.concatenate(([0], np.cumsum(rng.integers(1, 2000, m)))).astype(float)
    base = np.repeat([10, 50, 25, 60], -(-m // 4))[:m]
    return StepCurve(edges, np.clip(base + rng.integers(-4, 5, m), 0, 64), 64, 1e-9)


@pytest.fixture(scope="module")
def curve() -> StepCurve:
    return noisy()


@pytest.fixture(scope="module")
def fit(curve):
    return phases.fit(curve, 4, "constant")


@pytest.fixture
def view(qtbot, curve, fit):
    v = CurveView()
    qtbot.addWidget(v)
    v.resize(1000, 640)
    v.set_curve(curve)
    v.show_over(fit=fit)
    v.show()
    qtbot.waitExposed(v)
    v.grab()
    return v


def test_what_lies_over_is_drawn_anew_only_where_it_differs(view, fit, monkeypatch):
    drawn = []
    whole = view._draw_anew
    monkeypatch.setattr(view, "_draw_anew", lambda dpr: (drawn.append(view._base_stale), whole(dpr)))
    view.show_over(fit=fit, limit=None, locked=(), phase=None, firm=(), boundaries=())
    view.grab()
    assert not drawn
    view.show_over(fit=fit, phase=2)
    view.grab()
    assert drawn == [False], "the curve below stays"
    view.show_over(phase=2, limit=(1.0, 2.0))
    view.grab()
    assert drawn == [False, True]


def send(view, kind, x, y, button=LEFT, buttons=None, modifiers=NONE):
    p = QPointF(x, y)
    held = button if buttons is None else buttons
    QApplication.sendEvent(
        view.viewport(), QMouseEvent(kind, p, view.mapToGlobal(p), button, held, modifiers)
    )


def drag(view, x0, x1, y, button=LEFT, modifiers=NONE, release=True):
    send(view, QEvent.Type.MouseButtonPress, x0, y, button, modifiers=modifiers)
    for f in (0.3, 0.7, 1.0):
        at = x0 + f * (x1 - x0)
        send(view, QEvent.Type.MouseMove, at, y, Qt.MouseButton.NoButton, button, modifiers)
    if release:
        send(view, QEvent.Type.MouseButtonRelease, x1, y, button, Qt.MouseButton.NoButton, modifiers)


def wheel(view, x, y, turn, modifiers=NONE):
    p = QPointF(x, y)
    phase = Qt.ScrollPhase.NoScrollPhase
    event = QWheelEvent(
        p, view.mapToGlobal(p), QPoint(), QPoint(0, turn), Qt.MouseButton.NoButton, modifiers, phase, False
    )
    QApplication.sendEvent(view.viewport(), event)


def x_of(view, t):
    return view._map().x(t)


def middle(view):
    return view._main.rect.center().y()


# ---- pixels ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", [theme.LIGHT, theme.DARK], ids=lambda s: s.name)
def test_the_mean_line_is_where_the_curve_is(view, curve, scheme):
    """Every painted column against the brute-force mean of its stretch of time, in two views."""
    view.show_over(fit=None)
    view.set_theme(scheme)
    a, b = curve.start, curve.start + curve.duration
    for span in ((a, b), (a + 0.2 * (b - a), a + 0.21 * (b - a))):
        view.zoom_to(*span)
        image = view.grab().toImage()
        r = view._main.rect
        edges = np.linspace(*view.visible_range(), int(r.width()) + 1)
        line = QColor(scheme.curve)
        for k in range(3, int(r.width()) - 3, 37):
            part = curve.window(edges[k], edges[k + 1])
            column = [image.pixelColor(int(r.left()) + k, y) for y in range(int(r.top()), int(r.bottom()))]
            # Grid lines lie over the curve and tint it a little.
            near = [y for y, c in enumerate(column) if _distance(c, line) < 60]
            assert near, k
            expected = view._main.y(part.mean) - r.top()
            assert min(near) - 1.5 <= expected <= max(near) + 1.5, k


def _distance(c: QColor, d: QColor) -> int:
    return abs(c.red() - d.red()) + abs(c.green() - d.green()) + abs(c.blue() - d.blue())


def test_a_dip_of_one_step_among_a_million_is_visible(qtbot):
    m = 1_000_000
    level = np.full(m, 64.0)
    level[333_333] = 0
    v = CurveView()
    qtbot.addWidget(v)
    v.resize(900, 600)
    v.set_curve(StepCurve(np.arange(m + 1.0), level, 64, 1e-9))
    image = v.grab().toImage()
    r = v._main.rect
    y = int(v._main.y(10.0))  # no grid line
    row = [image.pixelColor(x, y).rgb() for x in range(int(r.left()), int(r.right()))]
    full = max(set(row), key=row.count)
    other = [k for k, c in enumerate(row) if c != full]
    assert int(r.width() * 333_333 / m) in other


@pytest.mark.parametrize("model", ["constant", "linear", "quadratic"])
def test_residual_columns_enclose_every_step_and_their_mean_is_exact(curve, model):
    fitted = phases.fit(curve, 9, model)
    x = np.linspace(curve.start, curve.start + curve.duration, 102)
    got = residual(envelope(curve), fitted, x)
    for k in range(101):
        t = np.linspace(x[k], x[k + 1], 2001)[:-1] + (x[k + 1] - x[k]) / 4000
        left = curve.at(t) - fitted.value(t)
        assert got.minimum[k] <= left.min() + 1e-9
        assert got.maximum[k] >= left.max() - 1e-9
        assert got.mean[k] == pytest.approx(left.mean(), abs=0.08)
    # Columns of the curve that are known already need not be asked for again; in a view that cuts phases too.
    for edges in (x, x[20:41]):
        known = residual(envelope(curve), fitted, edges, envelope(curve).columns(edges))
        for column, again in zip(got, known, strict=True):
            part = column if edges is x else column[20:40]
            np.testing.assert_allclose(again, part, rtol=0, atol=1e-9)
    # Tight where the fit is level.
    if model == "constant":
        j = np.searchsorted(fitted.breaks, curve.start + curve.duration / 8) - 1
        assert got.maximum[12] <= curve.level.max() - fitted.coefficients[j, 0]


def test_the_residual_of_one_phase_and_of_columns_without_width():
    curve = StepCurve([1e15, 1e15 + 1, 1e15 + 2], [3.0, 7.0], 8, 1e-9)
    whole = phases.fit(curve, 1, "constant")
    x = np.sort(np.append(np.linspace(curve.start, curve.start + curve.duration, 41), curve.start))
    got = residual(envelope(curve), whole, x)
    # Forty columns share about twenty times: where among them the step lies is a matter of rounding.
    np.testing.assert_allclose(got.mean[:15], -2, atol=1e-6)
    np.testing.assert_allclose(got.mean[-15:], 2, atol=1e-6)
    assert (got.minimum <= got.mean).all() and (got.mean <= got.maximum).all()


def test_the_fit_is_drawn_at_its_values(view, curve, fit):
    image = view.grab().toImage()
    for i in range(fit.n):
        t = (fit.breaks[i] + fit.breaks[i + 1]) / 2
        x, y = round(x_of(view, t)), round(view._main.y(float(fit.value(t))))
        colours = [image.pixelColor(x, y + d) for d in (-1, 0, 1)]
        assert min(_distance(c, QColor(theme.LIGHT.fit)) for c in colours) < 60, i


@pytest.mark.parametrize("dpr", [1.0, 1.5])
def test_tinted_columns_are_what_a_painter_makes_of_them(dpr):
    """Two colours over columns, against translucent rectangles."""
    rng = np.random.default_rng(5)
    image = QImage(60, 40, QImage.Format.Format_RGB32)
    for x in range(60):
        for y in range(40):
            image.setPixel(x, y, QColor(*rng.integers(0, 256, 3).tolist()).rgb())
    image.setDevicePixelRatio(dpr)
    expected, tint = image.copy(), Tint(60)
    with QPainter(expected) as painter:
        painter.scale(1 / dpr, 1 / dpr)
        for colour, opacity in ((QColor(191, 61, 0), rng.random(60)), (QColor(0, 0, 255), np.ones(60))):
            opacity[rng.random(60) < 0.5] = 0
            tint.lay(opacity, colour)
            for k in range(60):
                colour.setAlphaF(opacity[k])
                painter.fillRect(k, 0, 1, 40, colour)
    tint.over(image)
    for x in range(60):
        for y in range(40):
            assert _distance(image.pixelColor(x, y), expected.pixelColor(x, y)) <= 6, (x, y)
            assert image.pixelColor(x, y).alpha() == 255


@pytest.mark.parametrize("dpr", [1.0, 2.0])
def test_smooth_pieces_are_what_a_painter_makes_of_them(dpr):
    """Level, straight and bent lines of two widths, one leaving the image, against filled vector paths."""
    x = np.array([[5.3, 40.0, 80.2, 110.7, 150.1], [35.1, 75.8, 108.4, 145.0, 185.9]])
    y = np.array(
        [[20.4, 60.0, 15.0, 40.0, 30.0], [20.4, 40.0, 35.0, 41.5, -25.0], [20.4, 20.0, 18.0, 60.0, 30.0]]
    )
    width = np.array([2.0, 2.0, 4.0, 2.0, 2.0])
    got = QImage(round(200 * dpr), round(80 * dpr), QImage.Format.Format_RGB32)
    got.setDevicePixelRatio(dpr)
    got.fill(QColor("white"))
    expected = got.copy()
    stroke(got, x, y, width, QColor("black"))
    with QPainter(expected) as painter:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for i in range(5):
            pen = QPen(QColor("black"), width[i], Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap)
            path = QPainterPath(QPointF(x[0, i], y[0, i]))
            path.quadTo((x[0, i] + x[1, i]) / 2, y[1, i], x[1, i], y[2, i])
            painter.strokePath(path, pen)
    ours, theirs = (
        np.array(
            [[255 - i.pixelColor(c, r).red() for c in range(i.width())] for r in range(i.height())], float
        )
        for i in (got, expected)
    )
    rows = np.arange(got.height())
    for i in range(5):
        # Ends are cut upright instead of across the line; a painter's curves are chords.
        columns = slice(math.ceil((x[0, i] + 3) * dpr), math.floor((x[1, i] - 3) * dpr))
        ink, known = ours[:, columns].sum(axis=0), theirs[:, columns].sum(axis=0)
        np.testing.assert_allclose(ink, known, rtol=0.15, atol=20)
        middles = [rows @ v[:, columns] / np.maximum(v[:, columns].sum(axis=0), 1) for v in (ours, theirs)]
        np.testing.assert_allclose(*(v[known > 255] for v in middles), rtol=0, atol=0.3 * dpr)


def test_what_is_narrower_than_a_pixel_still_shows():
    image = QImage(20, 20, QImage.Format.Format_RGB32)
    image.fill(QColor("white"))
    stroke(
        image,
        np.array([[7.0], [7.01]]),
        np.full((3, 1), 9.0),
        np.array([2.0]),
        QColor("black"),
    )
    assert [image.pixelColor(7, y).name() for y in (8, 9)] == ["#000000", "#000000"]


@pytest.mark.parametrize(("lines", "parts"), [(11, 1), (18, 2), (40, 3)])
def test_what_finds_no_room_is_left_out_and_the_rest_works(qtbot, view, lines, parts):
    """The curve always, the overview from 16 lines of text on, the residual from 21 on."""
    view.resize(700, lines * view.fontMetrics().height())
    image = view.grab().toImage()
    view.set_selection((0.2 * view.navigation.end, 0.4 * view.navigation.end))
    assert view.grab().toImage() != image
    x = view._main.rect.center().x()
    found = {view._region(QPointF(x, y)) for y in range(view.height())}
    assert ("run" in found) == (parts > 1) and {"rail", "plot", "axis"} <= found
    assert len(view._lanes) == (2 if parts > 2 else 1)
    assert view._main.rect.height() > 2 * view.fontMetrics().height()
    ground = QColor(theme.LIGHT.background)
    below = round(view._axis.top()) + 4
    rows = [
        [image.pixelColor(k, y) == ground for k in range(0, 700, 3)] for y in range(below, view.height() - 2)
    ]
    assert all(np.mean(row) > 0.5 for row in rows), "nothing is drawn where the axis is"


def test_pictures_are_white_in_dark_too(view):
    view.set_theme(theme.DARK)
    image = view.picture()
    assert (image.width(), image.height()) == (2000, 1280)
    assert image.pixelColor(2, 2) == QColor("#ffffff")
    assert view.grab().toImage().pixelColor(5, 5) == QColor(theme.DARK.background)


def test_nothing_open_and_odd_curves_can_be_painted(qtbot):
    v = CurveView()
    qtbot.addWidget(v)
    v.grab()
    for c in (
        StepCurve([0, 1], [0.0]),
        StepCurve([1e15, 1e15 + 1], [5.0], 8, 1e-9),
        StepCurve([0, 1, 9], [1, 2]),
    ):
        v.set_curve(c, {"computing": c})
        for shown in ({"computing"}, {"idle"}, {"computing", "idle"}, set()):
            v.set_shown(frozenset(shown))
            v.show_over(fit=phases.fit(c, 3))
            v.set_levels(Levels("all" if "idle" in shown else "fit", log="computing" in shown))
            v.zoom(1e9)
            v.grab()
            v.show_all()


# ---- mouse -----------------------------------------------------------------------------------------


def test_left_drag_selects_a_time_range(view, qtbot):
    y, m = middle(view), view._map()
    with qtbot.waitSignal(view.selectionChanged):
        drag(view, 350, 450, y)
    assert view._selection == pytest.approx((m.time(350), m.time(450)))
    drag(view, 450, 600, y)  # its right edge
    assert view._selection == pytest.approx((m.time(350), m.time(600)))
    with qtbot.waitSignal(view.selectionChanged) as seen:
        drag(view, 400, 400, y)  # a click ends it
    assert seen.args == [None]


def test_dragging_a_break_moves_it_live_and_never_past_its_neighbours(view, fit):
    moved, dropped, selected = [], [], []
    view.breakpointDragged.connect(lambda i, t: moved.append((i, t)))
    view.breakpointDropped.connect(lambda i, t: dropped.append((i, t)))
    view.selectionChanged.connect(selected.append)
    x = float(x_of(view, fit.breaks[2]))
    drag(view, x, x + 60, middle(view))
    assert len(moved) == 3 and not selected
    assert dropped == [moved[-1]]
    assert dropped[0] == (2, pytest.approx(view._map().time(x + 60)))
    drag(view, x, 995, middle(view))
    assert fit.breaks[2] < dropped[-1][1] < fit.breaks[3]
    drag(view, x, x + 60, middle(view), release=False)
    assert view.cancel_drag() and moved[-1] == (2, fit.breaks[2])
    assert len(dropped) == 2 and not view.cancel_drag()


def test_wheel_zooms_at_the_pointer(view):
    t = view._map().time(700)
    before = np.diff(view.visible_range())
    wheel(view, 700, middle(view), 120)
    assert np.diff(view.visible_range()) == pytest.approx(before / 1.25)
    assert view._map().time(700) == pytest.approx(t)
    a, _ = view.visible_range()
    wheel(view, 700, middle(view), -120, SHIFT)
    assert view.visible_range()[0] > a


# ---- the vertical axis -----------------------------------------------------------------------------


@pytest.fixture
def low(qtbot):
    """Twelve processors of which 6 % of one computes, in a stack as the window shows it."""
    edges = np.arange(200_001) * 1000.0
    level = np.tile(np.r_[np.ones(6), np.zeros(94)], 2000)
    curve = StepCurve(edges, level, 12, 1e-6)
    v = CurveView()
    qtbot.addWidget(v)
    v.resize(1000, 640)
    v.show()
    v.set_curve(curve, {"computing": curve, "idle": StepCurve(edges, 12 - level, 12, 1e-6)})
    v.set_shown(frozenset({"computing", "idle"}))
    v.show_over(fit=phases.fit(curve, 1, "constant"))
    v.grab()
    return v


def seen(v):
    """The levels at the lower and the upper end of the plot that is drawn now."""
    v.grab()
    return v._main.low, v._main.high


def painted(v, rect):
    """Rows of a lane in which computing is seen, also where it is less for a part of a column."""
    image = v.grab().toImage()
    t = v._theme
    colours = [QColor(t.computing), mix(t.computing, t.background, HALF), QColor(t.idle), QColor(t.fit)]
    x = range(round(rect.left()) + 2, round(rect.right()) - 2)

    def computing(y):
        pixels = [image.pixelColor(k, y) for k in x[::7]]
        return (
            sum(min(range(4), key=lambda c: _distance(p, colours[c])) < 2 for p in pixels) > len(pixels) / 2
        )

    return [y for y in range(round(rect.top()) + 2, round(rect.bottom()) - 2) if computing(y)]


def test_a_low_curve_fills_the_plot_at_first_with_a_mark_and_so_do_fit_overview_and_residual(low):
    assert seen(low) == (0, 0.08)
    assert low.levels_note == "0–0.08 of 12 processors, peaks to 1"
    for lane in (low._main, low._run):
        rows = painted(low, lane.rect)
        assert len(rows) > 0.5 * lane.rect.height(), "what was an empty plot"
    # the fit, 0.06, at three quarters of the height
    image = low.grab().toImage()
    y = round(low._main.y(0.06))
    assert abs(y - (low._main.rect.bottom() - 0.75 * low._main.rect.height())) < 2
    fit = QColor(low._theme.fit)
    x = round(low._main.rect.left() + 0.3 * low._main.rect.width())
    assert min(_distance(image.pixelColor(x, y + d), fit) for d in (-1, 0, 1)) < 40
    assert low._residual.high <= 0.08 * 1.5
    # The mark's box in the upper corner, of which its text has half at most.
    corner = low._main.rect.topRight()
    mark = [image.pixelColor(round(corner.x()) - 12 - k, round(corner.y()) + 9) for k in range(40)]
    assert sum(_distance(c, QColor(low._theme.raised)) < 12 for c in mark) > 10
    low.show_all_levels()
    assert seen(low) == (0, 12.6) and low.levels_note == ""
    assert not painted(low, low._main.rect)[:-8]


def test_the_wheel_over_the_axis_zooms_levels_at_the_pointer_and_time_stays(view, qtbot, curve):
    before, span = seen(view), view.visible_range()
    r = view._main.rect
    y = r.top() + 0.4 * r.height()
    level = view._main.value(y)
    with qtbot.waitSignal(view.levelsChanged):
        wheel(view, r.left() - 20, y, 120)
    low, high = seen(view)
    assert high - low == pytest.approx((before[1] - before[0]) / 1.25)
    assert view._main.value(y) == pytest.approx(level)
    assert view.visible_range() == span
    assert view.levels_note
    wheel(view, r.left() - 20, y, 120, SHIFT)
    assert seen(view)[1] - seen(view)[0] == pytest.approx(high - low) and seen(view) != (low, high)
    for _ in range(9):
        wheel(view, r.left() - 20, y, -120)
    assert seen(view) == before and view.levels.mode == "all"
    wheel(view, r.center().x(), y, 120)  # over the plot it is time
    assert seen(view) == before and view.visible_range() != span


def test_a_drag_on_the_axis_stretches_it_and_a_double_click_resets_it(view, qtbot):
    r, x = view._main.rect, view._main.rect.left() - 20
    before = seen(view)
    level = view._main.value(r.bottom() - 0.3 * r.height())
    send(view, QEvent.Type.MouseButtonPress, x, r.bottom() - 0.3 * r.height(), LEFT)
    send(view, QEvent.Type.MouseMove, x, r.bottom() - 0.45 * r.height(), Qt.MouseButton.NoButton, LEFT)
    send(view, QEvent.Type.MouseMove, x, r.bottom() - 0.6 * r.height(), Qt.MouseButton.NoButton, LEFT)
    send(view, QEvent.Type.MouseButtonRelease, x, r.bottom() - 0.6 * r.height(), LEFT)
    low, high = seen(view)
    assert low == before[0] and view._main.y(level) == pytest.approx(r.bottom() - 0.6 * r.height(), abs=1)
    send(view, QEvent.Type.MouseButtonPress, x, r.center().y(), MIDDLE)
    send(view, QEvent.Type.MouseMove, x, r.center().y() + 40, Qt.MouseButton.NoButton, MIDDLE)
    send(view, QEvent.Type.MouseButtonRelease, x, r.center().y() + 40, MIDDLE)
    assert seen(view)[0] == pytest.approx(low + 40 / r.height() * (high - low), rel=0.02)
    qtbot.mouseDClick(view.viewport(), LEFT, pos=QPoint(round(x), round(r.center().y())))
    assert seen(view) == before and view.levels == AT_FIRST
    # given up by Esc
    send(view, QEvent.Type.MouseButtonPress, x, r.center().y(), LEFT)
    send(view, QEvent.Type.MouseMove, x, r.top() + 9, Qt.MouseButton.NoButton, LEFT)
    assert seen(view) != before
    view.cancel_drag()
    assert seen(view) == before


def test_levels_are_fitted_to_what_is_visible_in_a_stack_too(view, curve):
    view.set_shown(frozenset({"computing", "idle"}))
    view.fit_levels()
    env = envelope(curve)
    for a, b in ((0.1, 0.2), (0.5, 0.9)):
        view.zoom_to(a * view.navigation.end, b * view.navigation.end)
        least, most, _ = env.range(*view.visible_range())
        low, high = seen(view)
        assert low <= least and most <= high and (high - low) <= 1.11 * (most - least)


def test_a_logarithmic_axis_draws_levels_at_their_logarithm(view, curve):
    c = StepCurve([0, 1, 2, 3, 4], [1, 10, 100, 1000], 1000)
    view.set_curve(c)
    view.set_shown(frozenset({"computing"}))
    view.show_over(fit=phases.fit(c, 4, "constant"))
    view.set_logarithmic(True)
    seen(view)
    m, lane = view._map(), view._main
    steps = [lane.y(v) for v in (1, 10, 100, 1000)]
    assert np.diff(steps) == pytest.approx([steps[1] - steps[0]] * 3)
    image = view.grab().toImage()
    for k, y in enumerate(steps):
        x = round(m.x(k + 0.5))
        rows = [_distance(image.pixelColor(x, round(y) + d), QColor(view._theme.fit)) for d in (-1, 0, 1)]
        assert min(rows) < 60, f"the fit of level {10**k} is not at its height"
    view.set_logarithmic(False)
    assert seen(view)[0] == 0


@pytest.mark.parametrize("how", ["middle", "mode", "space"])
def test_panning(view, qtbot, curve, how):
    view.zoom_to(curve.start + 0.3 * curve.duration, curve.start + 0.5 * curve.duration)
    t = view._map().time(600)
    if how == "mode":
        view.set_mode("pan")
    elif how == "space":
        qtbot.keyPress(view, Qt.Key.Key_Space)
    drag(view, 600, 520, middle(view), MIDDLE if how == "middle" else LEFT)
    assert view._map().time(520) == pytest.approx(t)
    assert view._selection is None


def test_right_drag_zooms_and_the_history_returns(view, qtbot):
    ranges = []
    view.rangeChanged.connect(lambda a, b: ranges.append((a, b)))
    first, m = view.visible_range(), view._map()
    drag(view, 400, 300, middle(view), RIGHT)
    second = view.visible_range()
    assert second == pytest.approx((m.time(300), m.time(400)))
    view.back()
    assert view.visible_range() == first
    view.forward()
    assert view.visible_range() == second == ranges[-1]
    axis = view._axis.top() + 8
    send(view, QEvent.Type.MouseButtonDblClick, 500, axis)
    assert view.visible_range() == first


def test_double_click_selects_the_phase(view, qtbot, fit):
    x = float(x_of(view, (fit.breaks[1] + fit.breaks[2]) / 2))
    for y in (middle(view), view._residual.rect.center().y()):
        with qtbot.waitSignal(view.phaseSelected) as seen:
            send(view, QEvent.Type.MouseButtonDblClick, x, y)
        assert seen.args == [1]
    with qtbot.waitSignal(view.phaseSelected) as seen:
        send(view, QEvent.Type.MouseButtonPress, x, view._rail.center().y())
    assert seen.args == [1]


def test_context_menu(view, fit, qtbot):
    def enabled(x):
        menu = view.menu_at(QPointF(x, middle(view)))
        return {a.text().replace("&", ""): a for a in menu.actions() if a.text() and a.isEnabled()}

    near, far = float(x_of(view, fit.breaks[1])), float(x_of(view, (fit.breaks[0] + fit.breaks[1]) / 2))
    assert "Add breakpoint here" in enabled(far) and "Remove breakpoint" not in enabled(far)
    assert "Add breakpoint here" not in enabled(near)
    with qtbot.waitSignal(view.breakpointAddRequested) as seen:
        enabled(far)["Add breakpoint here"].trigger()
    assert seen.args[0] == pytest.approx(view._map().time(far))
    for text, signal in (
        ("Remove breakpoint", view.breakpointRemoveRequested),
        ("Lock breakpoint", view.breakpointLockToggled),
    ):
        with qtbot.waitSignal(signal) as seen:
            enabled(near)[text].trigger()
        assert seen.args == [1]
    view.show_over(locked=(float(fit.breaks[1]),))
    assert "Unlock breakpoint" in enabled(near)
    enabled(far)["Zoom to phase"].trigger()
    assert view.visible_range() == pytest.approx(tuple(fit.breaks[:2]))


def test_the_overview_frame_moves_the_view(view, curve):
    a, d = curve.start, curve.duration
    view.zoom_to(a + 0.4 * d, a + 0.6 * d)
    run, y = view._run_map(), view._run.rect.center().y()
    drag(view, run.x(a + 0.5 * d), run.x(a + 0.6 * d), y)
    assert view.visible_range() == pytest.approx((a + 0.5 * d, a + 0.7 * d))
    drag(view, run.x(a + 0.5 * d), run.x(a + 0.3 * d), y)  # its left edge
    assert view.visible_range() == pytest.approx((a + 0.3 * d, a + 0.7 * d))
    send(view, QEvent.Type.MouseButtonPress, run.x(a + 0.9 * d), y)
    assert view.visible_range() == pytest.approx((a + 0.6 * d, a + 1.0 * d))


def test_the_cursor_tells_its_time_and_leaves(view, qtbot):
    with qtbot.waitSignal(view.cursorMoved) as seen:
        send(view, QEvent.Type.MouseMove, 450, middle(view), Qt.MouseButton.NoButton)
    assert seen.args[0] == pytest.approx(view._map().time(450))
    with qtbot.waitSignal(view.cursorMoved) as seen:
        QApplication.sendEvent(view, QEvent(QEvent.Type.Leave))
    assert math.isnan(seen.args[0])


def test_setters_are_silent(view, fit, qtbot):
    with (
        qtbot.assertNotEmitted(view.selectionChanged),
        qtbot.assertNotEmitted(view.phaseSelected),
        qtbot.assertNotEmitted(view.cursorMoved),
    ):
        view.set_selection((fit.breaks[0], fit.breaks[1]))
        view.show_over(phase=2)
        view.set_cursor(fit.breaks[1])
    view.grab()


# ---- axes ------------------------------------------------------------------------------------------


def test_ticks_follow_the_span():
    assert time_ticks(0, 0.3, 8).unit == "ms"
    assert time_ticks(0, 0.3, 8).labels == ["0", "50", "100", "150", "200", "250", "300"]
    deep = time_ticks(12.345, 12.345 + 40e-9, 5)
    assert deep.unit == "ns" and deep.offset.startswith("+12.345") and max(map(len, deep.labels)) <= 3
    assert level_ticks(0, 3.2, 20, whole=True).labels == ["0", "1", "2", "3"]


@pytest.mark.parametrize("a", [0.0, 1.0, 987.654321, 86400.0])
@pytest.mark.parametrize("span", [3e-8, 1e-6, 2.7e-3, 0.9, 50.0])
def test_labels_and_offset_add_up_to_the_position(a, span):
    ticks = time_ticks(a, a + span, 8)
    scale = {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[ticks.unit]
    offset = float(ticks.offset.removesuffix(" s") or 0)
    assert 2 <= len(ticks.positions) <= 10
    for p, label in zip(ticks.positions, ticks.labels, strict=True):
        assert offset + float(label) * scale == pytest.approx(p, abs=span * 1e-3)
    assert len(set(ticks.labels)) == len(ticks.labels)


# ---- which n ---------------------------------------------------------------------------------------


def at_n(plot, n):
    """Where a number of phases stands, in pixels from the left."""
    return float(plot.current_layout.px(n))


def test_a_click_on_the_error_curve_sets_n(qtbot):
    p = EpsilonPlot()
    qtbot.addWidget(p)
    p.resize(400, 260)
    p.set_sweep(np.append(10.0 ** -np.arange(11), 0.0), 4, "mixed")
    p.set_n(2)
    p.grab()
    for n in (1, 7, 12):
        with qtbot.waitSignal(p.nClicked) as seen:
            qtbot.mouseClick(p.viewport(), LEFT, pos=QPoint(round(at_n(p, n)), 120))
        assert seen.args == [n]
    with qtbot.waitSignal(p.nClicked) as seen:
        qtbot.keyClick(p, Qt.Key.Key_Right)
    assert seen.args == [3]
    # Equal factors are equal distances on the logarithmic axis.
    heights = np.diff([p.current_layout.py(e) for e in (1.0, 0.1, 0.01)])
    assert heights[0] == pytest.approx(heights[1]) and heights[0] > 0
    with qtbot.assertNotEmitted(p.nClicked):
        p.set_n(5)


def test_an_n_that_was_not_swept_paints_nothing(qtbot, monkeypatch):
    p = EpsilonPlot()
    qtbot.addWidget(p)
    p.resize(400, 260)
    p.set_sweep(1 / np.arange(1, 21), 4, "mixed")
    p.show()
    qtbot.waitExposed(p)
    paints: list[int] = []
    paint = p.drawForeground
    monkeypatch.setattr(p, "drawForeground", lambda *given: (paints.append(p._n), paint(*given)))
    for n in (19, 180, 181, 182, 3):
        p.set_n(n)
        QApplication.processEvents()
    assert paints == [19, 180, 3], "the mark appears, goes, stays away, comes back"


def test_the_n_in_use_is_shown_where_the_sweep_does_not_reach_it(qtbot):
    p = EpsilonPlot()
    qtbot.addWidget(p)
    p.resize(400, 260)
    p.set_sweep(1 / np.arange(1, 21), 4, "mixed")
    p.set_n(70)
    p.set_beyond(70, 0.002)
    image, at = p.grab().toImage(), QPointF(at_n(p, 70), p.current_layout.py(0.002))
    assert (
        p.current_layout.left <= at.x() <= p.current_layout.right
        and p.current_layout.top <= at.y() <= p.current_layout.bottom
        and at_n(p, 20) < at.x() / 2
    )
    assert _distance(image.pixelColor(at.toPoint()), QColor(theme.LIGHT.fit)) < 30
    p.set_sweep(1 / np.arange(1, 81), 4, "mixed")  # the sweep has come that far
    p.grab()
    assert at_n(p, 80) > 0.9 * p.width() and p._beyond is None


def test_a_drag_beyond_the_sweep_draws_no_chart_anew(qtbot, monkeypatch):
    p = EpsilonPlot()
    qtbot.addWidget(p)
    p.resize(400, 260)
    p.set_sweep(1 / np.arange(1, 181), 4, "mixed")
    p.set_n(180)
    p.show()
    qtbot.waitExposed(p)
    p.set_beyond(181, 1 / 181)
    p.set_n(181)
    p.grab()
    made: list[str] = []
    for name in ("set_content", "_rebuild"):
        whole = getattr(p, name)
        monkeypatch.setattr(
            p, name, lambda *given, name=name, whole=whole: (made.append(name), whole(*given))
        )
    p.repaint()
    made.clear()
    drawn = p._still
    assert drawn is not None
    for n in (*range(182, 221), *range(219, 174, -1)):
        p.set_beyond(n, 1 / n)
        p.set_n(n)
        p.viewport().repaint()
        assert p.content.chosen.x == n and p.content.chosen.y == pytest.approx(1 / n)
        layout = p.current_layout
        assert layout.left < at_n(p, n) < layout.right and layout.top < layout.py(1 / n) < layout.bottom
    assert not made and p._still is drawn
    p.set_n(40)
    p.set_beyond(40, 1 / 40)
    assert at_n(p, 180) > 0.9 * p.width(), "the axis is the sweep's again"


def test_breaks_set_by_hand_are_marked_at_their_own_error(qtbot):
    p = EpsilonPlot()
    qtbot.addWidget(p)
    p.resize(400, 260)
    p.set_sweep(10.0 ** -np.arange(8), 4, "mixed")
    p.set_n(5)
    p.grab()
    mark, x = QColor(theme.LIGHT.fit), at_n(p, 5)

    def marked(epsilon: float) -> bool:
        image, y = p.grab().toImage(), round(p.current_layout.py(epsilon))
        return _distance(image.pixelColor(round(x) + 2, y), mark) < 30

    assert marked(1e-4) and not marked(1e-2)
    p.set_by_hand(1e-2)
    assert marked(1e-2) and not marked(1e-4)
    p.set_by_hand(None)
    assert marked(1e-4)


def test_a_click_on_the_break_picture_sets_n(qtbot, curve):
    p = BreakpointPicture()
    qtbot.addWidget(p)
    p.resize(400, 300)
    fits = phases.sweep(curve, "constant", 8).fits
    p.set_sweep([(f.breaks, f.breakpoint_low, f.breakpoint_high) for f in fits])
    p.set_n(4)
    image = p.grab().toImage()
    for n in (1, 8):
        y = round(p.current_layout.top + (n - 0.5) / 8 * p.current_layout.height)
        with qtbot.waitSignal(p.nClicked) as seen:
            qtbot.mouseClick(p.viewport(), LEFT, pos=QPoint(200, y))
        assert seen.args == [n]
    # The three jumps of the curve last from n = 4 on, and are painted in their rows.
    laid, breaks = p.current_layout, fits[3].breaks
    for t in breaks[1:-1]:
        x = laid.left + (t - breaks[0]) / (breaks[-1] - breaks[0]) * laid.width
        colour = image.pixelColor(int(x), round(laid.top + 3.5 / 8 * laid.height))
        assert colour != image.pixelColor(int(x) + 6, round(laid.top + 3.5 / 8 * laid.height))
        assert any(abs(a - t) < 1e-9 for k, a, _ in links(p._rows) if k == 3)


def test_plots_without_a_sweep_say_so(qtbot):
    for p in (EpsilonPlot(), BreakpointPicture()):
        qtbot.addWidget(p)
        p.resize(300, 200)
        p.grab()
        with qtbot.assertNotEmitted(p.nClicked):
            qtbot.mouseClick(p.viewport(), LEFT)
        assert p.accessibleName()


def test_the_title_of_a_lane_does_not_ask_the_size_of_what_is_painted_on():
    """A widget says its height in logical pixels, a picture in device pixels; at scale 2 titles were cut."""
    image = QImage(100, 100, QImage.Format.Format_RGB32)
    image.fill(QColor("white"))
    with QPainter(image) as painter:
        painter.setFont(QFont("DejaVu Sans", 9))
        painter.translate(0, -450)
        lane = scales.LaneBox(QRectF(80, 400, 20, 200), 0.0, 1.0)
        scales.level_axis(painter, lane, level_ticks(0.0, 1.0, 2.0), theme.LIGHT, "WWWW", 1000)
    dark = [y for y in range(100) for x in range(60) if image.pixelColor(x, y).lightness() < 128]
    assert abs((min(dark) + max(dark)) / 2 - 50) < 3, "in the middle of its lane"


@pytest.mark.parametrize("dpr", [1.0, 1.5, 2.0])
def test_the_title_of_a_low_lane_stays_within_a_picture_of_any_scale(dpr):
    """The lane is at the lower end, its title longer than it: the title ends where the picture does."""
    image = QImage(round(200 * dpr), round(160 * dpr), QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(dpr)
    image.fill(QColor("white"))
    lane = scales.LaneBox(QRectF(120, 130, 70, 20), 0.0, 1.0)
    with QPainter(image) as painter:
        painter.setFont(QFont("DejaVu Sans", 9))
        long = QFontMetricsF(painter.font()).horizontalAdvance("W" * 9)
        scales.level_axis(painter, lane, level_ticks(0.0, 1.0, 2.0), theme.LIGHT, "W" * 9, 160)
    inked = [
        y
        for y in range(image.height())
        for x in range(image.width() // 2)
        if image.pixelColor(x, y).lightness() < 128
    ]
    assert 40 < long < 158
    assert (max(inked) - min(inked)) / dpr > 0.8 * long, "nothing of the title is cut off"
    assert max(inked) < image.height() - 1

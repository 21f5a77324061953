"""The presentation: one figure over the whole screen, to be read from the back of a room.

Capital letters are at least a fortieth of the screen's height, black on white or white on black; lines are
twice as wide as on paper. The speaker changes n, phases and views by keys, clicker, wheel or a slider that
shows while the mouse moves; the curve is drawn once, and only its fit again for another n. `KEYS` says all.
Notes are on the speaker's screen alone, see `SpeakerView`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QEvent, QPointF, QRectF, QSignalBlocker, Qt, QTimer, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QColor,
    QFont,
    QFontMetricsF,
    QGuiApplication,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPixmap,
    QRadialGradient,
    QResizeEvent,
    QScreen,
    QWheelEvent,
)
from PySide6.QtWidgets import QSlider, QWidget

from desktop.core import bases
from desktop.core.quantity import PROCESSORS
from desktop.core.units import digits, format_number, instant, percent, quantity
from desktop.data.chart import Axis, Content
from desktop.printing import printable
from desktop.ui import figures
from desktop.ui.drawing import FAMILY, MM_PER_POINT, QtSheet
from desktop.ui.exporting import material_of, read_bars
from desktop.ui.figures import Layer, Look
from desktop.ui.guard import guarded, saved
from desktop.ui.pages import set_up
from desktop.ui.panels.statistics import accounts
from desktop.ui.theme import Theme
from desktop.workbench import presenting
from desktop.workbench.jobs import Deliver, Lane
from desktop.workbench.workbench import Snapshot, Workbench

if TYPE_CHECKING:
    from desktop.core.explanation import Explanation
    from desktop.data.material import Bars, Material
    from desktop.ui.speaker import SpeakerView

# The height (mm) that the screen is taken to have, and the size of text; capital letters are 0.73 of that.
_HIGH = 190.0
_TEXT = _HIGH / 28
_LINES = 2.2
# Heights of the head and the foot, and of the slider, as parts of the screen.
_HEAD, _FOOT, _STRIP = 0.13, 0.09, 0.07
# Seconds after which slider and mouse pointer hide, and in which the pointer's trail fades.
_IDLE, _TRAIL = 2.5, 0.5
#: The figures that the arrow keys step through.
FIGURE_KEYS = ("curve", "timeline", "accounts", "stack", "residual", "epsilon")

KEYS: tuple[tuple[str, str], ...] = (
    ("[  ]  wheel", "Fewer, more phases"),
    ("Left, Right", "Previous, next phase"),
    ("Page Up, Page Down", "Previous, next view (without views: phase)"),
    ("1 … 9", "The view of that number"),
    ("Up, Down", "Another figure"),
    ("Z  Home", "Zoom to the phase, whole run"),
    ("N", "Suggested number of phases"),
    ("P, or mouse button", "Pointer, while held"),
    ("B  .", "Black screen, and back"),
    ("S", "Speaker's view with notes"),
    ("D", "Dark or white"),
    ("?", "These keys"),
    ("Esc, F11", "Leave"),
)


class Presentation(QWidget):
    """A full-screen window on `workbench`, presented from the window `over`; its owner calls `show_snapshot`
    after every change of the workbench."""

    left = Signal()
    redrawn = Signal()

    def __init__(
        self,
        workbench: Workbench,
        over: QWidget,
        theme: Theme,
        deliver: Deliver,
        span: tuple[float, float] | None = None,
    ) -> None:
        super().__init__(None, Qt.WindowType.Window | Qt.WindowType.FramelessWindowHint)
        set_up(
            self, objectName="presentation", windowTitle="Phasewright presentation",
            accessibleName="Presentation", attribute=Qt.WidgetAttribute.WA_OpaquePaintEvent,
            mouseTracking=True, focusPolicy=Qt.FocusPolicy.StrongFocus,
        )  # fmt: skip
        self._bench, self._over = workbench, over
        self.begun = time.monotonic()
        self.dark = theme.dark
        self._colours = theme.colours
        self.figure = "curve"
        self.span = span
        self.view = -1  # place among the project's views
        self.keys_shown = self.black = False
        self.speaker: SpeakerView | None = None
        self._material: Material | None = None
        self._lane = Lane("presentation", latest=True, deliver=deliver)  # reads the timeline
        self._bars: tuple[object, Bars | None] | None = None  # of what, as `_timeline_key` says
        # Breakpoints (s), and why time is lost between them.
        self._words: tuple[list[float], Explanation | None] = ([], None)
        self._below: QPixmap | None = None
        self._scene: QPixmap | None = None
        self._trail: list[tuple[float, QPointF]] = []
        self._pointing: set[str] = set()  # what holds the pointer: "key", "mouse"
        self._wheel = 0
        self._slider = set_up(
            QSlider(Qt.Orientation.Horizontal, self), objectName="presented_n",
            accessibleName="Number of phases", focusPolicy=Qt.FocusPolicy.NoFocus, mouseTracking=True,
            valueChanged=self._slid,
        )  # fmt: skip
        self._slider.hide()
        idle_ms = round(1000 * _IDLE)
        self._idle = set_up(QTimer(self), singleShot=True, interval=idle_ms, timeout=self._hide_idle)
        self._fading = set_up(QTimer(self), interval=16, timeout=self._fade)
        app = cast(QGuiApplication, QGuiApplication.instance())
        for changed in (app.screenAdded, app.screenRemoved):
            changed.connect(self.arrange, Qt.ConnectionType.QueuedConnection)  # once windows have moved
        self.show_snapshot(Snapshot(), workbench.snapshot)

    # ---- what is shown

    def show_snapshot(self, old: Snapshot, new: Snapshot) -> None:
        """Draw what differs; without a run the window closes."""
        if new.run is None:
            self.close()
            return
        afresh = new.run is not old.run
        self._material = material_of(new)
        if afresh or self.figure != "curve":
            self._below = None
        results = ("run", "fit", "sweep", "statistics")
        changed = any(getattr(new, name) is not getattr(old, name) for name in results)
        if changed or (new.project, new.refining) != (old.project, old.refining):
            self._redraw(below=False)
        n = new.project.phases.n
        with QSignalBlocker(self._slider):
            self._slider.setRange(self._bench.least_n, max(20, n))
            self._slider.setValue(n)

    def _timeline_key(self) -> tuple[object, ...]:
        snapshot = self._bench.snapshot
        return snapshot.run, snapshot.fit, self.span

    def _read_timeline(self) -> None:
        """If the timeline is shown, read it again for another fit or range."""
        snapshot, key, span = self._bench.snapshot, self._timeline_key(), self.span
        visible = self.figure == "timeline" or self.speaker is not None
        if not visible or snapshot.run is None or snapshot.fit is None:
            return
        if self._bars is not None and self._bars[0] == key:
            return

        def done(bars: Bars | None) -> None:
            self._bars = (key, bars)
            self._redraw()

        self._lane.submit(
            "Reading the timeline", lambda job: read_bars(snapshot, job, span), done, lambda _error: None
        )

    def available(self) -> tuple[str, ...]:
        """The figures that can be shown now, or once they have been read."""
        snapshot = self._bench.snapshot
        names = () if self._material is None else self._material.figures()
        if snapshot.document is not None and snapshot.document.locations:
            names = (*names, "timeline", "accounts")
        return tuple(name for name in FIGURE_KEYS if name in names)

    def drawn(self, figure: str) -> Material | Content | None:
        """What a figure is drawn from; None while it is being read."""
        if figure == "timeline":
            if self._material is None or self._bars is None or self._bars[0] != self._timeline_key():
                return None
            if self._bars[1] is None:
                return Content(Axis(""), Axis(""), empty="No processor has states here.")
            return replace(self._material, bars=self._bars[1])
        if figure != "accounts":
            return self._material
        snapshot, phase = self._bench.snapshot, self._bench.snapshot.project.view.phase
        statistics = snapshot.statistics
        for scope, stats in zip(statistics.scopes, statistics.stats, strict=False):
            if scope.phase == (-1 if phase is None else phase) and statistics.fit is snapshot.fit:
                return accounts(scope.label, stats, statistics.waits)[0]
        return None

    def _redraw(self, *, below: bool = True) -> None:
        if below:
            self._below = None
        self._scene = None
        self._read_timeline()
        self.update()
        self.redrawn.emit()

    def _font(self, *, bold: bool = False, factor: float = 1.0) -> QFont:
        pixels = max(1, round(factor * self.height() * _TEXT / _HIGH))
        return set_up(QFont(FAMILY), pixelSize=pixels, bold=bold)

    def _look(self, layer: Layer) -> Look:
        scale = self.height() / _HIGH
        look = self.look(self.figure, self._room().width() / scale, self._room().height() / scale)
        return replace(look, layer=layer if self.figure == "curve" else "all")

    def look(self, figure: str, width: float, height: float, points: float = _TEXT / MM_PER_POINT) -> Look:
        """The look of a figure of this size in mm."""
        snapshot = self._bench.snapshot
        model = snapshot.fit.model if snapshot.fit is not None else ""
        # The number of phases stands above; in the legend it would change what lies below.
        words = {"title": "", "fit": f"Phases ({model})"} if figure == "curve" else {"title": ""}
        return Look(
            width=width,
            height=height,
            points=points,
            dark=self.dark,
            colours=self._colours,
            lines=_LINES,
            span=self.span,
            phase=snapshot.project.view.phase,
            words=words,
        )

    def _room(self) -> QRectF:
        """The rectangle of the figure."""
        top = _HEAD * self.height()
        return QRectF(0, top, self.width(), (1 - _HEAD - _FOOT) * self.height())

    @guarded
    def paintEvent(self, _event: QPaintEvent) -> None:
        if self._scene is None:
            self._scene = self._make_scene()
        with QPainter(self) as painter:
            if self.black:
                painter.fillRect(self.rect(), Qt.GlobalColor.black)
                return
            painter.drawPixmap(0, 0, self._scene)
            if self._pointing:
                self._paint_pointer(painter)

    def _make_scene(self) -> QPixmap:
        dpr = self.devicePixelRatioF()
        if self._below is None:
            self._below = QPixmap(round(self.width() * dpr), round(self.height() * dpr))
            self._below.setDevicePixelRatio(dpr)
            self._below.fill(QColor(figures.ink(self._look("below")).ground))
            with QPainter(self._below) as painter:
                self._paint_figure(painter, "below")
        scene = self._below.copy()
        with QPainter(scene) as painter:
            if self.figure == "curve":
                self._paint_figure(painter, "above")
            self._paint_texts(painter)
            if self.keys_shown:
                self._paint_keys(painter)
        return scene

    def _paint_figure(self, painter: QPainter, layer: Layer) -> None:
        painter.setFont(self._font())
        self.paint_figure(painter, self.figure, self._room(), self._look(layer))

    def paint_figure(self, painter: QPainter, figure: str, room: QRectF, look: Look) -> None:
        """Paint a figure of this `look` into a rectangle of its shape, or why it is not there."""
        available, drawn = figure in self.available(), self.drawn(figure)
        if not available or drawn is None:
            painter.setPen(QColor(figures.ink(look).text))
            words = "…" if available else f"This source has no {figure}."
            painter.drawText(room, Qt.AlignmentFlag.AlignCenter, words)
        elif look.width >= figures.SMALLEST[0] and look.height >= figures.SMALLEST[1]:
            with saved(painter):
                painter.translate(room.topLeft())
                sheet = QtSheet(painter, look.width, look.height, room.width() / look.width)
                figures.draw(sheet, figure, drawn, look)

    def _paint_texts(self, painter: QPainter) -> None:
        snapshot, material = self._bench.snapshot, self._material
        if material is None or snapshot.run is None or snapshot.document is None:
            return
        colours = figures.ink(self._look("below"))
        margin, high = 0.03 * self.height(), self.height()
        box = QRectF(margin, 0, self.width() - 2 * margin, _HEAD * high)
        painter.setRenderHint(QPainter.RenderHint.TextAntialiasing)
        big = self._font(bold=True, factor=1.7)
        painter.setFont(big)
        painter.setPen(QColor(colours.fit))
        count = f"n = {snapshot.project.phases.n}" + ("  …" if snapshot.refining else "")
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, count)
        right = QFontMetricsF(big).horizontalAdvance(count) + margin
        painter.setPen(QColor(colours.text))
        fit = material.fit
        unit = snapshot.run.curve.quantity.of_error
        error = "" if snapshot.refining else f"ε = {digits(fit.epsilon, 3)} {unit}"
        name = snapshot.project.views[self.view].name if 0 <= self.view < len(snapshot.project.views) else ""
        half = QRectF(box.left(), 0.12 * box.height(), box.width() - right, 0.44 * box.height())
        self._line(painter, half, name or snapshot.document.title, bold=True)
        why = "" if self.figure in ("epsilon", "residual") else self.why_text()
        self._line(painter, half.translated(0, half.height()), why or error)
        foot = QRectF(margin, (1 - _FOOT) * high, box.width(), _FOOT * high)
        self._line(painter, foot, self.phase_text())

    def why_text(self) -> str:
        """Why time is lost in the chosen phase, else in the run; "" while that is unknown."""
        snapshot = self._bench.snapshot
        words, phase = snapshot.statistics.words, snapshot.project.view.phase
        if words is None or snapshot.statistics.fit is not snapshot.fit:
            return ""
        scope = words.phases[phase] if phase is not None and phase < len(words.phases) else words
        if not scope.causes:
            return ""
        first = scope.causes[0]
        place = f" in {first.region}" if first.region else ""
        return f"{first.title}{place}: {percent(first.part)} of what is lost"

    def _line(self, painter: QPainter, box: QRectF, text: str, *, bold: bool = False) -> None:
        font = self._font(bold=bold)
        painter.setFont(font)
        text = QFontMetricsF(font).elidedText(printable(text), Qt.TextElideMode.ElideRight, box.width())
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)

    def notes(self) -> list[str]:
        """The speaker's notes on the run, then on each phase."""
        from desktop.data.speaking import notes

        snapshot = self._bench.snapshot
        assert snapshot.fit is not None and snapshot.document is not None
        breakpoints, fit = snapshot.fit.breaks.tolist(), snapshot.statistics.fit
        if fit is not None and snapshot.statistics.words is not None:
            self._words = fit.breaks.tolist(), snapshot.statistics.words
        # Another fit with these breakpoints may differ in the last digits.
        times, words = self._words
        if len(times) != len(breakpoints) or math.dist(times, breakpoints) >= 1e-9 * breakpoints[-1]:
            words = None
        marks = presenting.marks(snapshot.project.annotations, snapshot.document.locations)
        return notes(words, breakpoints, marks, snapshot.project.speaker_notes)

    def phase_text(self) -> str:
        """The chosen phase, else the run, in words."""
        snapshot = self._bench.snapshot
        assert snapshot.run is not None
        curve, phase = snapshot.run.curve, snapshot.project.view.phase
        if phase is None or phase >= len(snapshot.rows):
            if curve.quantity != PROCESSORS:
                mean = f"{digits(curve.mean, 3)} {curve.quantity.unit}".rstrip()
                return f"{quantity(curve.duration, 's', 3)}: {curve.quantity.name}, on average {mean}"
            part = f" ({100 * curve.mean / curve.capacity:.0f} %)" if curve.capacity else ""
            return (
                f"{quantity(curve.duration, 's', 3)}: on average {digits(curve.mean, 3)} of "
                f"{format_number(curve.capacity)} processors compute{part}"
            )
        row = snapshot.rows[phase]
        kind = ("level", "line", "parabola", *(space.noun for space in bases.TABLE))[row.degree]
        start = instant(row.start_s, curve.duration)
        return (
            f"Phase {phase + 1} of {len(snapshot.rows)}, a {kind}: from {start}, "
            f"{quantity(row.end_s - row.start_s, 's', 3)} long, mean {digits(row.mean, 3)} "
            + (f"({100 * row.efficiency:.0f} %)" if math.isfinite(row.efficiency) else curve.quantity.unit)
        )

    def _paint_keys(self, painter: QPainter) -> None:
        font, bold = self._font(), self._font(bold=True)
        metrics = QFontMetricsF(bold)
        step = 1.25 * metrics.height()
        wide = max(metrics.horizontalAdvance(keys) for keys, _ in KEYS) + metrics.height()
        width = wide + max(QFontMetricsF(font).horizontalAdvance(text) for _, text in KEYS)
        colours = figures.ink(self._look("below"))
        box = QRectF(0, 0, width + 2 * step, step * (len(KEYS) + 1))
        box.moveCenter(QRectF(self.rect()).center())
        painter.setPen(QColor(colours.border))
        painter.setBrush(QColor(colours.ground))
        painter.drawRoundedRect(box, step / 3, step / 3)
        painter.setPen(QColor(colours.text))
        for k, (keys, text) in enumerate(KEYS):
            y = box.top() + step * (k + 1.2)
            painter.setFont(bold)
            painter.drawText(QPointF(box.left() + step, y), keys)
            painter.setFont(font)
            painter.drawText(QPointF(box.left() + step + wide, y), text)

    def _paint_pointer(self, painter: QPainter) -> None:
        """A bright spot with a fading trail, in a red that no curve has, ringed to show on any ground."""
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        now, radius = time.monotonic(), 0.014 * self.height()
        painter.setPen(Qt.PenStyle.NoPen)
        for when, place in self._trail[:-1]:
            part = 1 - (now - when) / _TRAIL
            if part > 0:
                colour = QColor("#e6003c")
                colour.setAlphaF(0.35 * part)
                painter.setBrush(colour)
                painter.drawEllipse(place, radius * (0.3 + 0.6 * part), radius * (0.3 + 0.6 * part))
        place = self._trail[-1][1]
        glow = set_up(QRadialGradient(place, 2 * radius), colorAt=(0, QColor(230, 0, 60, 130)))
        glow.setColorAt(1, QColor(230, 0, 60, 0))
        painter.setBrush(glow)
        painter.drawEllipse(place, 2 * radius, 2 * radius)
        painter.setPen(QColor("#ffffff"))
        painter.setBrush(QColor("#e6003c"))
        painter.drawEllipse(place, radius, radius)

    # ---- the speaker's hand

    @guarded
    def keyPressEvent(self, event: QKeyEvent) -> None:
        bench, key, text = self._bench, event.key(), event.text()
        repeated = event.isAutoRepeat()
        was_black, self.black = self.black, False
        if key in (Qt.Key.Key_Escape, Qt.Key.Key_F11, Qt.Key.Key_Q) and not repeated:
            self.close()
        elif text in ("[", "]", "+", "-"):
            bench.step_n(1 if text in "]+" else -1)
        elif text == "," or key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self._step_phase(1 if key == Qt.Key.Key_Right else -1)
        elif key in (Qt.Key.Key_PageDown, Qt.Key.Key_Space, Qt.Key.Key_PageUp, Qt.Key.Key_Backspace):
            self.step_view(1 if key in (Qt.Key.Key_PageDown, Qt.Key.Key_Space) else -1)
        elif len(text) == 1 and text in "123456789":
            self._show_number(int(text))
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self._step_figure(1 if key == Qt.Key.Key_Down else -1)
        elif key == Qt.Key.Key_Home:
            self._zoom(None)
        elif key == Qt.Key.Key_Z:
            self._zoom_to_phase()
        elif key in (Qt.Key.Key_B, Qt.Key.Key_Period):
            self.black = not was_black if not repeated else was_black
        elif key == Qt.Key.Key_S and not repeated:
            self.show_speaker(None if self.speaker is not None else self._screen_of_speaker())
        elif key == Qt.Key.Key_N:
            bench.use_suggestion()
        elif key == Qt.Key.Key_P and not repeated:
            self._point("key", QPointF(self.mapFromGlobal(self.cursor().pos())))
        elif key == Qt.Key.Key_D and not repeated:
            self.dark = not self.dark
            self._redraw()
        elif text == "?" or key == Qt.Key.Key_F1:
            self.keys_shown = not self.keys_shown
            self._redraw(below=False)
        else:
            self.black = was_black
            super().keyPressEvent(event)
        if was_black != self.black:
            self.update()
            self.redrawn.emit()

    def arrange(self) -> None:
        """Fill the screen of the audience: if there are two, not that of the window, where the speaker then
        has curve, timeline, accounts and notes. If there is one, the audience has it alone."""
        desk = self._over.screen()
        second = _another(desk)
        if self.screen() is not (second or desk) or not self.isFullScreen():
            self.setWindowState(Qt.WindowState.WindowNoState)  # in which it can be moved
            self.setGeometry((second or desk).geometry())
            self.showFullScreen()
            self.activateWindow()
            self.setFocus()
        self.show_speaker(None if second is None else desk)

    def _screen_of_speaker(self) -> QScreen:
        """That of the window, if the audience does not see it; else another, if there is one."""
        own, desk = self.screen(), self._over.screen()
        return desk if desk is not own else _another(own) or own

    def show_speaker(self, screen: QScreen | None) -> None:
        """Show the speaker's view on a screen; None: close it."""
        if self.speaker is not None:
            self.speaker.close()
        if screen is not None:
            from desktop.ui.speaker import SpeakerView

            self.speaker = SpeakerView(self, self._bench)
            self.speaker.closed.connect(lambda: setattr(self, "speaker", None))
            self.speaker.setGeometry(screen.availableGeometry())
            self.speaker.showFullScreen()
            self.speaker.activateWindow()
            self.speaker.setFocus()  # not the notes, so that keys go to the presentation
            self._redraw()

    @guarded
    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_P and not event.isAutoRepeat():
            self._let_go("key")
        else:
            super().keyReleaseEvent(event)

    def step_view(self, by: int) -> None:
        """Go to the next or previous kept view; if there are none, phase."""
        views = self._bench.snapshot.project.views
        if not views:
            self._step_phase(by)
            return
        start = (0 if by > 0 else len(views) - 1) if self.view < 0 else self.view + by
        self._show_view(max(0, min(len(views) - 1, start)))

    def _show_number(self, number: int) -> None:
        for place, view in enumerate(self._bench.snapshot.project.views):
            if view.number == number:
                self._show_view(place)

    def _show_view(self, place: int) -> None:
        view = self._bench.snapshot.project.views[place].view
        self.view, self.span = place, view.span
        self._bench.select_phase(view.phase)
        self._redraw()

    def _step_phase(self, by: int) -> None:
        self._bench.step_phase(by)
        rows, phase = self._bench.snapshot.rows, self._bench.snapshot.project.view.phase
        if self.span is not None and phase is not None:
            row = rows[phase]
            if row.start_s < self.span[0] or row.end_s > self.span[1]:
                self._zoom_to_phase()

    def _step_figure(self, by: int) -> None:
        names = self.available()
        if self.figure in names:
            self.figure = names[(names.index(self.figure) + by) % len(names)]
            self._redraw()

    def _zoom(self, span: tuple[float, float] | None) -> None:
        self.span, self.view = span, -1
        self._redraw()

    def _zoom_to_phase(self) -> None:
        """Zoom to the chosen phase with some room around it."""
        snapshot = self._bench.snapshot
        phase = snapshot.project.view.phase
        if phase is not None and phase < len(snapshot.rows):
            row = snapshot.rows[phase]
            room = 0.15 * (row.end_s - row.start_s)
            self._zoom((row.start_s - room, row.end_s + room))

    def _slid(self, n: int) -> None:
        self._bench.set_n(n)
        self._stir()

    @guarded
    def wheelEvent(self, event: QWheelEvent) -> None:
        self._wheel += event.angleDelta().y()
        steps = int(self._wheel / 120)
        if steps:
            self._wheel -= 120 * steps
            self._bench.step_n(steps)

    @guarded
    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._point("mouse", event.position())

    @guarded
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._let_go("mouse")

    @guarded
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._pointing:
            self._trail.append((time.monotonic(), event.position()))
            self.update()
        else:
            self._stir()

    def _point(self, holder: str, place: QPointF) -> None:
        self._pointing.add(holder)
        self._trail = [(time.monotonic(), place)]
        self._slider.hide()
        self.setCursor(Qt.CursorShape.BlankCursor)
        self._fading.start()
        self.update()

    def _let_go(self, holder: str) -> None:
        self._pointing.discard(holder)
        if not self._pointing:
            self._trail.clear()
            self._fading.stop()
            self.update()

    def _fade(self) -> None:
        oldest = time.monotonic() - _TRAIL
        # The last place is where the pointer is, however long it has stood there.
        self._trail = [spot for spot in self._trail[:-1] if spot[0] > oldest] + self._trail[-1:]
        self.update()

    def _stir(self) -> None:
        """The mouse has moved: show slider and arrow for a while."""
        self._slider.setVisible(True)
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self._idle.start()

    def _hide_idle(self) -> None:
        self._slider.hide()
        self.setCursor(Qt.CursorShape.BlankCursor)

    # ---- the window

    @guarded
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        strip, margin = round(_STRIP * self.height()), self.width() // 6
        bottom = round((1 - _FOOT) * self.height())
        self._slider.setGeometry(margin, bottom - strip, self.width() - 2 * margin, strip)
        thick = max(8, strip // 3)
        groove = f"height: {thick}px; background: #808080; border-radius: {thick // 2}px;"
        handle = (
            f"width: {2 * thick}px; margin: -{thick // 2}px 0; background: #e6003c;"
            f" border: 2px solid white; border-radius: {thick}px;"
        )
        self._slider.setStyleSheet(
            f"QSlider::groove:horizontal {{ {groove} }} QSlider::handle:horizontal {{ {handle} }}"
        )
        self._redraw()

    @guarded
    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self._redraw()
        super().changeEvent(event)

    @guarded
    def closeEvent(self, event: QCloseEvent) -> None:
        for timer in (self._idle, self._fading):
            timer.stop()
        self.show_speaker(None)
        self._lane.close(wait=False)
        super().closeEvent(event)
        self.left.emit()


def _another(screen: QScreen) -> QScreen | None:
    """A screen beside this one, if there is one."""
    return next((one for one in screen.virtualSiblings() if one is not screen), None)


def present(
    workbench: Workbench,
    over: QWidget,
    theme: Theme,
    deliver: Deliver,
    span: tuple[float, float] | None,
    left: Callable[[], None],
) -> Presentation:
    """Show a presentation on a whole screen, see `Presentation.arrange`."""
    presentation = Presentation(workbench, over, theme, deliver, span)
    set_up(presentation, attribute=Qt.WidgetAttribute.WA_DeleteOnClose, left=left)
    presentation.arrange()
    return presentation

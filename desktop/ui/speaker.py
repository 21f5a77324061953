"""The speaker's view of a presentation: curve, timeline and accounts, notes, the time.

It stands on the screen that the audience does not see. Keys typed outside of the notes go to the
presentation.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol, cast

from PySide6.QtCore import (
    QCoreApplication,
    QEvent,
    QObject,
    QRectF,
    Qt,
    QTime,
    QTimer,
    Signal,
    SignalInstance,
)
from PySide6.QtGui import QCloseEvent, QColor, QKeyEvent, QPainter, QPaintEvent, QPixmap, QResizeEvent
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QSizePolicy, QVBoxLayout, QWidget

from desktop.printing import printable
from desktop.ui import figures
from desktop.ui.guard import guarded
from desktop.ui.pages import button, fill_layout, row, set_up
from desktop.workbench.workbench import Workbench

if TYPE_CHECKING:
    from desktop.ui.figures import Look


class Presented(Protocol):
    """What a speaker's view needs of a presentation."""

    figure: str
    black: bool
    begun: float
    redrawn: SignalInstance

    def paint_figure(self, painter: QPainter, figure: str, room: QRectF, look: Look) -> None: ...
    def look(self, figure: str, width: float, height: float, points: float) -> Look: ...
    def notes(self) -> list[str]: ...
    def phase_text(self) -> str: ...
    def why_text(self) -> str: ...


# The figures from top to bottom, with their parts of the height.
_FIGURES = (("curve", 5), ("timeline", 5), ("accounts", 4))
_POINTS = 10.0
# Keys of a clicker, which go to the presentation even while notes are written.
_CLICKER = (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown, Qt.Key.Key_F11)


class _Pane(QWidget):
    """A figure of the presentation, as large as there is room for."""

    def __init__(self, presentation: Presented, figure: str) -> None:
        super().__init__()
        self._presentation, self._figure = presentation, figure
        self._scene: QPixmap | None = None
        set_up(self, accessibleName=figure.capitalize(), objectName=f"speaker_{figure}")
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)

    def redraw(self) -> None:
        self._scene = None
        self.update()

    @guarded
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.redraw()

    @guarded
    def paintEvent(self, _event: QPaintEvent) -> None:
        if self._scene is None:
            dpr = self.devicePixelRatioF()
            self._scene = QPixmap(round(self.width() * dpr), round(self.height() * dpr))
            self._scene.setDevicePixelRatio(dpr)
            self._draw(self._scene)
        with QPainter(self) as painter:
            painter.drawPixmap(0, 0, self._scene)

    def _draw(self, scene: QPixmap) -> None:
        scale = self.fontMetrics().height() / 5.0  # dots to a mm
        look = self._presentation.look(self._figure, self.width() / scale, self.height() / scale, _POINTS)
        scene.fill(QColor(figures.ink(look).ground))
        with QPainter(scene) as painter:
            self._presentation.paint_figure(painter, self._figure, QRectF(self.rect()), look)


class SpeakerView(QWidget):
    """A window of its own beside `presentation`, closed with it."""

    closed = Signal()

    def __init__(self, presentation: Presented, workbench: Workbench) -> None:
        super().__init__(None, Qt.WindowType.Window)
        set_up(
            self, objectName="speaker", windowTitle="Phasewright speaker's view",
            accessibleName="Speaker's view", focusPolicy=Qt.FocusPolicy.StrongFocus,
        )  # fmt: skip
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._presentation, self._bench = presentation, workbench
        self._panes = [_Pane(presentation, figure) for figure, _ in _FIGURES]
        self.clock = set_up(QLabel(), accessibleName="Time")
        self.words = set_up(QLabel(), wordWrap=True, accessibleName="What the audience sees")
        self.notes = set_up(QPlainTextEdit(), accessibleName="Notes", objectName="speaker_notes")
        self.notes.setPlaceholderText("Notes of what you want to say; the audience does not see them.")
        self.notes.setTabChangesFocus(True)
        self.notes.installEventFilter(self)
        self.notes.textChanged.connect(self._written)
        self.suggested = button("As suggested", self._suggest, autoDefault=False)
        for label, factor in ((self.clock, 1.8), (self.notes, 1.3), (self.words, 1.15)):
            font = label.font()
            font.setPointSizeF(font.pointSizeF() * factor)
            label.setFont(font)
        left, right = QVBoxLayout(), QVBoxLayout()
        for pane, (_, part) in zip(self._panes, _FIGURES, strict=True):
            left.addWidget(pane, part)
        hint = set_up(QLabel("Esc leaves the notes, then the presentation; S hides this view; ? lists keys"),
                      wordWrap=True)  # fmt: skip
        fill_layout(right, self.clock, self.words, (self.notes, 1), row(self.suggested, None), hint)
        self.setLayout(row((left, 3), (right, 2), spacing=self.fontMetrics().height()))
        self._ticking = set_up(QTimer(self), interval=1000, timeout=self._tick)
        self._ticking.start()
        presentation.redrawn.connect(self.show_state)
        self._tick()
        self.show_state()

    @property
    def _phase(self) -> int | None:
        """The phase that the notes are on; None: the run."""
        snapshot = self._bench.snapshot
        phase = snapshot.project.view.phase
        return phase if phase is not None and phase < len(snapshot.rows) else None

    def show_state(self) -> None:
        """Show the present state of the presentation."""
        snapshot = self._bench.snapshot
        if snapshot.run is None or snapshot.fit is None or snapshot.document is None:
            return
        for pane in self._panes:
            pane.redraw()
        on = "black" if self._presentation.black else self._presentation.figure
        lines = (f"Audience: {on}", self._presentation.phase_text(), self._presentation.why_text())
        self.words.setText("\n".join(printable(text) for text in lines if text))
        text = self._presentation.notes()[0 if self._phase is None else self._phase + 1]
        if text != self.notes.toPlainText():
            self.notes.blockSignals(True)
            self.notes.setPlainText(text)
            self.notes.blockSignals(False)

    def _written(self) -> None:
        self._bench.write_note(self._phase, self.notes.toPlainText())

    def _suggest(self) -> None:
        self._bench.write_note(self._phase, None)
        self.show_state()

    def _tick(self) -> None:
        minutes, seconds = divmod(round(time.monotonic() - self._presentation.begun), 60)
        self.clock.setText(f"{minutes}:{seconds:02d}   {QTime.currentTime().toString('HH:mm')}")

    @guarded
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.notes and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() == Qt.Key.Key_Escape:
                self.setFocus()
                return True
            if event.key() in _CLICKER:
                self._press(event)
                return True
        return super().eventFilter(watched, event)

    @guarded
    def keyPressEvent(self, event: QKeyEvent) -> None:
        self._press(event)

    def _press(self, event: QKeyEvent) -> None:
        QCoreApplication.sendEvent(cast(QObject, self._presentation), event)

    @guarded
    def closeEvent(self, event: QCloseEvent) -> None:
        self._ticking.stop()
        super().closeEvent(event)
        self.closed.emit()

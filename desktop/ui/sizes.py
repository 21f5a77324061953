"""Sizes and positions of windows: in heights of the text, within the screen."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

#: How far one window stands from the one before, pixels.
STEP = 32


def fitting(widget: QWidget, width: float, height: float) -> QSize:
    """A size in heights of the text, as far as the screen allows."""
    em, room = widget.fontMetrics().height(), widget.screen().availableSize()
    limit = QSize(int(0.92 * room.width()), int(0.88 * room.height()))
    return QSize(int(width * em), int(height * em)).boundedTo(limit)


def inside(frame: QRect, room: QRect) -> QRect:
    """A rectangle wholly within `room`: no larger, and moved as little as it needs."""
    size = frame.size().boundedTo(room.size())
    left = min(max(frame.left(), room.left()), room.left() + room.width() - size.width())
    top = min(max(frame.top(), room.top()), room.top() + room.height() - size.height())
    return QRect(QPoint(left, top), size)


def room_for(frame: QRect) -> QRect:
    """The usable part of the screen that most of a rectangle is on, else of the primary screen."""

    def shared(room: QRect) -> int:
        both = room.intersected(frame)
        return both.width() * both.height()

    rooms = [screen.availableGeometry() for screen in QGuiApplication.screens()]
    primary = QGuiApplication.primaryScreen().availableGeometry()
    best = max(rooms, key=shared)
    return best if shared(best) > 0 else primary


def keep_on_screen(window: QWidget) -> None:
    """Move and shrink a window, with its frame, onto the screen that most of it is on.

    Before it is in view its frame is not known: call it again then.
    """
    if window.isMaximized() or window.isFullScreen() or window.isMinimized():
        return
    frame, inner = window.frameGeometry(), window.geometry()
    target = inside(frame, room_for(frame))
    if target != frame:
        border = frame.size() - inner.size()
        window.resize(target.size() - border)
        window.move(target.topLeft())


def stand_beside(window: QWidget, last: QWidget, *, other_screen: bool = False) -> None:
    """A little right of and below another window; where there is no room, at the screen's edge again.

    `other_screen`: on a screen that the other window is not on, where there is one.
    """
    room = room_for(last.frameGeometry())
    free = [s.availableGeometry() for s in QGuiApplication.screens() if s.availableGeometry() != room]
    if other_screen and free:
        window.move(free[0].topLeft())
        keep_on_screen(window)
        return
    place, size = last.pos() + QPoint(STEP, STEP), window.frameGeometry().size()
    if place.x() + size.width() > room.left() + room.width():
        place.setX(room.left())
    if place.y() + size.height() > room.top() + room.height():
        place.setY(room.top())
    window.move(place)
    keep_on_screen(window)

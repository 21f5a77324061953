"""Overrides of Qt's virtual methods that let no exception out, and painters whose state is restored.

An exception that leaves such an override while it runs inside another Python call into Qt ends the process on
Python 3.11 (PySide6 6.8.3 to 6.10.3): everything that pyqtgraph paints is in that place.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TypeVar, overload

from PySide6.QtCore import QSize
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

Method = TypeVar("Method", bound=Callable[..., object])


class saved:
    """Restores the painter's state at the end of the block, also after an error."""

    # A class, as a generator's context takes three times as long.

    def __init__(self, painter: QPainter) -> None:
        self._painter = painter

    def __enter__(self) -> None:
        self._painter.save()

    def __exit__(self, *_: object) -> None:
        self._painter.restore()


@overload
def guarded(method: Method) -> Method: ...
@overload
def guarded(*, otherwise: Callable[[], object]) -> Callable[[Method], Method]: ...
def guarded(
    method: Callable[..., object] | None = None, *, otherwise: Callable[[], object] = lambda: None
) -> object:
    """An override whose errors go to `sys.excepthook`; its caller then gets `otherwise()`.

    The state of a painter that is its first argument is restored.
    """
    if method is None:
        return functools.partial(guarded, otherwise=otherwise)

    @functools.wraps(method)
    def safe(*args: object, **named: object) -> object:
        try:
            for painter in args[1:2]:
                if isinstance(painter, QPainter):
                    with saved(painter):
                        return method(*args, **named)
            return method(*args, **named)
        except BaseException:  # Ctrl-C as well: it would leave in the same way
            sys.excepthook(*sys.exc_info())
            return otherwise()

    return safe


def in_ems(wide: float, high: float) -> Callable[[QWidget], QSize]:
    """A `sizeHint` or `minimumSizeHint` of so many heights of the widget's text."""

    @guarded(otherwise=QSize)
    def hint(widget: QWidget) -> QSize:
        em = widget.fontMetrics().height()
        return QSize(int(wide * em), int(high * em))

    return hint


def in_pixels(wide: int, high: int) -> Callable[[QWidget], QSize]:
    """A `sizeHint` of logical pixels."""
    return lambda _: QSize(wide, high)

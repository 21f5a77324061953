"""Line icons in the colour of the text, so that they are right on light and dark."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

#: name -> strokes on a field of 24 x 24
_STROKES = {
    "open": "M3 19V6h6l2 2h8v3M3 19l3-8h16l-3 8z",
    "undo": "M8 5 3.5 9.5 8 14M4 9.5h10a5.5 5.5 0 0 1 0 11h-4",
    "redo": "M16 5l4.5 4.5L16 14M20 9.5H10a5.5 5.5 0 0 0 0 11h4",
    "select": "M6 4v16M18 4v16M9 12h6M11 9.5 8.5 12l2.5 2.5M13 9.5l2.5 2.5-2.5 2.5",
    "pan": "M12 3v18M3 12h18M9.5 5.5 12 3l2.5 2.5M9.5 18.5 12 21l2.5-2.5"
    "M5.5 9.5 3 12l2.5 2.5M18.5 9.5 21 12l-2.5 2.5",
    "zoom": "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.2 15.2 21 21M10.5 7.5v6M7.5 10.5h6",
    "all": "M3 6v12M21 6v12M6 12h12M9 9l-3 3 3 3M15 9l3 3-3 3",
    "fit": "M4 4v16M20 4v16M8 8h8v8H8z",
    "back": "M14.5 5 7.5 12l7 7",
    "forward": "M9.5 5l7 7-7 7",
    "fewer": "M5 12h14",
    "more": "M5 12h14M12 5v14",
    "copy": "M8 8h12v12H8zM4 16V4h12",
    "hidden": "M5 5l7 7-7 7M12 5l7 7-7 7",
}


def icon(name: str, colour: QColor, faint: QColor) -> QIcon:
    """The icon in `colour`, and in `faint` where it is disabled."""
    result = QIcon()
    for mode, ink in ((QIcon.Mode.Normal, colour), (QIcon.Mode.Disabled, faint)):
        svg = (
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" '
            f'stroke="{ink.name()}" stroke-width="1.7" stroke-linecap="round" stroke-linejoin="round">'
            f'<path d="{_STROKES[name]}"/></svg>'
        )
        renderer = QSvgRenderer(QByteArray(svg.encode()))
        for side in (20, 40, 80):
            picture = QPixmap(side, side)
            picture.fill(Qt.GlobalColor.transparent)
            with QPainter(picture) as painter:
                renderer.render(painter, QRectF(0, 0, side, side))
            result.addPixmap(picture, mode)
    return result

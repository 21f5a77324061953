"""A sheet of paper in millimetres, drawn on by a few verbs, that becomes SVG, PDF or pixels.

Figures are the same everywhere because they are laid out once, with the bundled font's own widths: `SvgSheet`
writes its own SVG (text stays text, anchored where it is centred or ends, so that another font does no harm;
hatches are patterns; the same figure gives the same bytes), `QtSheet` drives a QPainter on a picture, a PDF
page or a widget. x grows to the right, y downwards; lengths and sizes of text in mm.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from html import escape
from itertools import pairwise
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike
from PySide6.QtCore import QBuffer, QIODevice, QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import (
    QBrush,
    QColor,
    QFont,
    QFontMetricsF,
    QImage,
    QPaintEngine,
    QPainter,
    QPainterPath,
    QPen,
    QPolygonF,
)

from desktop.core.arrays import Bytes, Flags, Floats
from desktop.printing import printable
from desktop.ui.guard import saved

MM_PER_POINT = 25.4 / 72
FAMILY = "DejaVu Sans"

Anchor = Literal["start", "middle", "end"]
Hatch = Literal["", "/", "\\", "x", "-", "."]
Point = tuple[float, float]
#: Corners of the lines of a mark.
Outlines = Sequence[Sequence[Point]]
# mm between the lines of a hatch, and their width
_APART, _THIN = 1.3, 0.18


@dataclass(frozen=True)
class Stroke:
    """A line: colour, width in mm, dashes and gaps in multiples of the width."""

    colour: str
    width: float
    dash: tuple[float, ...] = ()


@dataclass(frozen=True)
class Fill:
    """An area: colour, how much of it covers (0 to 1), and a hatch over it in the colour `ink`."""

    colour: str
    opacity: float = 1.0
    hatch: Hatch = ""
    ink: str = "#000000"


@dataclass(frozen=True)
class SheetText:
    """A text on a sheet, see `Sheet.text`."""

    x: float
    y: float
    words: str
    size: float
    colour: str
    anchor: Anchor
    bold: bool
    upright: bool

    @property
    def lead(self) -> float:
        """The part of the width of the words that lies to the left of x."""
        return {"start": 0.0, "middle": 0.5, "end": 1.0}[self.anchor]


@dataclass(frozen=True)
class Ink:
    """The colours of a look. `limit`: of lines at a level of a chart. `regions`: by the numbers of
    `desktop.core.gantt`. `dashed`: lines differ by dashes too."""

    ground: str
    text: str
    muted: str
    border: str
    grid: str
    curve: str
    fit: str
    residual: str
    mark: str
    limit: str
    areas: Mapping[str, Fill]
    regions: Mapping[int, Fill]
    dashed: bool
    runs: tuple[str, ...]


class Sheet(Protocol):
    """What figures draw with. Points are arrays (k, 2), lines (k, 4), rectangles (k, 4) as x, y, w, h."""

    width: float
    height: float

    def steps(self, x: ArrayLike, y: ArrayLike, stroke: Stroke) -> None:
        """A step function as a line: `y` (k,) between the k+1 places `x`."""
        self.line(_corners(x, y), stroke)

    def band(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, fill: Fill) -> None:
        """The area between two step functions."""
        self.area(np.concatenate([_corners(x, high), _corners(x, low)[::-1]]), fill)

    def rects(self, rects: ArrayLike, fill: Fill) -> None:
        """Rectangles (n, 4): x, y, width, height."""

    def shade(self, opacity: Bytes, colour: str, box: tuple[float, float, float, float]) -> None:
        """A colour over a box (x, y, w, h), with an opacity, 0 to 255, at each point (rows, columns)."""

    def area(self, points: ArrayLike, fill: Fill) -> None:
        """A polygon."""

    def line(self, points: ArrayLike, stroke: Stroke) -> None:
        """A line through points (n, 2)."""

    def lines(self, lines: ArrayLike, stroke: Stroke) -> None:
        """Separate straight lines (n, 4): x and y of the start, x and y of the end."""

    def bend(self, start: Point, control: Point, end: Point, stroke: Stroke) -> None:
        """A quadratic Bezier curve, by which any parabola is exact."""

    def circle(self, x: float, y: float, r: float, fill: Fill | None, stroke: Stroke | None) -> None:
        """A circle about (x, y), filled, outlined or both."""

    def text(
        self,
        x: float,
        y: float,
        words: str,
        size: float,
        colour: str,
        anchor: Anchor = "start",
        *,
        bold: bool = False,
        upright: bool = False,
    ) -> None:
        """`words` with their baseline at y; `upright`: turned to be read from the right."""
        self._write(SheetText(x, y, printable(words), size, colour, anchor, bold, upright))

    def _write(self, text: SheetText) -> None: ...

    def clipped(self, x: float, y: float, w: float, h: float) -> AbstractContextManager[None]:
        """While the context is open, draw only inside of the rectangle."""

    def marks(
        self, places: ArrayLike, outlines: Outlines, reach: float, fill: Fill | None, stroke: Stroke
    ) -> None:
        """The same mark at many places: lines and what they surround, in parts of its `reach`; without any
        outline a circle."""
        for x, y in _array(places, 2).tolist():
            if not outlines:
                self.circle(x, y, reach, fill, stroke)
            for outline in outlines:
                corners = np.array(outline) * reach + (x, y)
                if fill is not None:
                    self.area(corners, fill)
                self.line(corners, stroke)

    def dots(self, places: ArrayLike, side: float, fill: Fill) -> None:
        """Squares with these upper left corners, in place of marks that are too many."""
        corners = _array(places, 2)
        self.rects(np.column_stack([corners, np.full(corners.shape, side)]), fill)

    def cells(self, colours: Bytes, filled: Flags, box: tuple[float, float, float, float]) -> None:
        """Fill a box (x, y, w, h) with even cells of these colours (rows, columns, 3), where they are
        `filled` (rows, columns)."""
        (x, y, width, height), (rows, columns) = box, filled.shape
        w, h = width / columns, height / rows
        by_colour: dict[tuple[int, ...], list[tuple[float, float, float, float]]] = {}
        for i in range(rows):
            differs = np.any(np.diff(colours[i].astype(int), axis=0), axis=1)
            changes = np.flatnonzero(differs | np.diff(filled[i]))
            for a, b in pairwise([0, *(changes + 1).tolist(), columns]):  # neighbours that are alike as one
                if filled[i, a]:
                    rect = (x + a * w, y + i * h, (b - a) * w, h)
                    by_colour.setdefault(tuple(colours[i, a].tolist()), []).append(rect)
        for colour, rects in by_colour.items():
            self.rects(rects, Fill("#{:02x}{:02x}{:02x}".format(*colour)))


@lru_cache(maxsize=2)
def _metrics(bold: bool) -> QFontMetricsF:
    font = QFont(FAMILY)
    font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    font.setPixelSize(1000)
    font.setFeature(QFont.Tag("liga"), 0)
    font.setBold(bold)
    return QFontMetricsF(font)


def text_width(words: str, size: float, *, bold: bool = False) -> float:
    """mm that `words` take at `size` mm."""
    return _metrics(bold).horizontalAdvance(printable(words)) * size / 1000


def fitted(words: str, size: float, room: float, *, bold: bool = False) -> str:
    """`words`, cut with an ellipsis to `room` mm; empty if not even that fits."""
    words = printable(words)
    if text_width(words, size, bold=bold) <= room:
        return words
    letters = bisect_right(
        range(1, len(words) + 1), room, key=lambda n: text_width(words[:n] + "…", size, bold=bold)
    )
    return words[:letters].rstrip() + "…" if letters else ""


def _array(values: ArrayLike, columns: int) -> Floats:
    return np.asarray(values, np.float64).reshape(-1, columns)


def around(x: float, y: float, w: float, h: float) -> list[list[float]]:
    """The line around a rectangle."""
    return [[x, y], [x + w, y], [x + w, y + h], [x, y + h], [x, y]]


def _corners(x: ArrayLike, y: ArrayLike) -> Floats:
    """(2k, 2) the corners of a step function."""
    return np.stack([np.repeat(np.asarray(x, np.float64), 2)[1:-1], np.repeat(y, 2)], axis=1)


def shaded(opacity: Bytes, colour: str) -> QImage:
    """An image of one colour with these opacities (rows, columns), 0 to 255."""
    rgb, alpha = QColor(colour), opacity.astype(np.uint32)
    pixels = alpha << 24
    for shift, part in ((16, rgb.red()), (8, rgb.green()), (0, rgb.blue())):
        pixels |= ((alpha * part + 127) // 255) << shift
    height, width = pixels.shape
    image = QImage(pixels.data, width, height, 4 * width, QImage.Format.Format_ARGB32_Premultiplied)
    return image.copy()


class SvgSheet(Sheet):
    """A sheet that becomes SVG text.

    `prefix` begins the ids of patterns and clips, which must differ where several stand in one document.
    """

    def __init__(self, width: float, height: float, prefix: str = "") -> None:
        self.width, self.height = width, height
        self._prefix = prefix
        self._parts: list[str] = []
        self._patterns: dict[Fill, str] = {}
        self._clips: list[str] = []

    def svg(self, title: str, text: str = "", *, inline: bool = False) -> str:
        """The document; `inline`: without XML head, for HTML. `title` and `text` are for screen readers."""
        size = f'width="{_n(self.width)}mm" height="{_n(self.height)}mm"'
        if inline:
            size = 'width="100%"'
        head = "" if inline else '<?xml version="1.0" encoding="UTF-8"?>\n'
        about = f"<title>{_x(title)}</title>" + (f"<desc>{_x(text, 2000)}</desc>" if text else "")
        defs = "".join(_pattern(fill, name) for fill, name in self._patterns.items()) + "".join(self._clips)
        return (
            f'{head}<svg xmlns="http://www.w3.org/2000/svg" version="1.1" {size} role="img" '
            f'viewBox="0 0 {_n(self.width)} {_n(self.height)}" '
            f'font-family="&apos;{FAMILY}&apos;, Verdana, sans-serif" fill="none">\n{about}\n'
            f"<defs>{defs}</defs>\n" + "\n".join(self._parts) + "\n</svg>\n"
        )

    def rects(self, rects: ArrayLike, fill: Fill) -> None:
        path = "".join(
            f"M{_n(x)} {_n(y)}h{_n(w)}v{_n(h)}h{_n(-w)}z" for x, y, w, h in _array(rects, 4).tolist()
        )
        if path:
            self._shape(path, fill)

    def shade(self, opacity: Bytes, colour: str, box: tuple[float, float, float, float]) -> None:
        buffer = QBuffer()
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        shaded(opacity, colour).save(buffer, "PNG")  # type: ignore[call-overload]  # takes text, not bytes as its stub says
        x, y, w, h = map(_n, box)
        place = f'x="{x}" y="{y}" width="{w}" height="{h}" preserveAspectRatio="none"'
        link = f"data:image/png;base64,{buffer.data().toBase64().toStdString()}"
        self._parts.append(f'<image {place} href="{link}"/>')

    def area(self, points: ArrayLike, fill: Fill) -> None:
        self._shape(_path(_array(points, 2)) + "Z", fill)

    def line(self, points: ArrayLike, stroke: Stroke) -> None:
        self._parts.append(f'<path d="{_path(_array(points, 2))}" {_pen(stroke)}/>')

    def lines(self, lines: ArrayLike, stroke: Stroke) -> None:
        path = "".join(f"M{_n(a)} {_n(b)}L{_n(c)} {_n(d)}" for a, b, c, d in _array(lines, 4).tolist())
        if path:
            self._parts.append(f'<path d="{path}" {_pen(stroke)}/>')

    def bend(self, start: Point, control: Point, end: Point, stroke: Stroke) -> None:
        a, b, c, d, e, f = map(_n, (*start, *control, *end))
        self._parts.append(f'<path d="M{a} {b}Q{c} {d} {e} {f}" {_pen(stroke)}/>')

    def circle(self, x: float, y: float, r: float, fill: Fill | None, stroke: Stroke | None) -> None:
        inside = f' fill="{_x(fill.colour)}"' if fill else ""
        line = f" {_pen(stroke)}" if stroke else ""
        self._parts.append(f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(r)}"{inside}{line}/>')

    def _write(self, text: SheetText) -> None:
        x, y, size = map(_n, (text.x, text.y, text.size))
        turn = f' transform="rotate(-90 {x} {y})"' if text.upright else ""
        weight = ' font-weight="bold"' if text.bold else ""
        place = "" if text.anchor == "start" else f' text-anchor="{text.anchor}"'
        self._parts.append(
            f'<text x="{x}" y="{y}" font-size="{size}" fill="{_x(text.colour)}"{place}{weight}{turn}>'
            f"{_x(text.words)}</text>"
        )

    @contextmanager
    def clipped(self, x: float, y: float, w: float, h: float) -> Iterator[None]:
        name = f"{self._prefix}c{len(self._clips)}"
        place = f'x="{_n(x)}" y="{_n(y)}" width="{_n(w)}" height="{_n(h)}"'
        self._clips.append(f'<clipPath id="{name}"><rect {place}/></clipPath>')
        self._parts.append(f'<g clip-path="url(#{name})">')
        yield
        self._parts.append("</g>")

    def _shape(self, path: str, fill: Fill) -> None:
        cover = "" if fill.opacity >= 1 else f' fill-opacity="{_n(fill.opacity)}"'
        self._parts.append(f'<path d="{path}" fill="{_x(fill.colour)}"{cover}/>')
        if fill.hatch:
            name = self._patterns.setdefault(fill, f"{self._prefix}p{len(self._patterns)}")
            self._parts.append(f'<path d="{path}" fill="url(#{name})"/>')


def _n(value: float) -> str:
    """A number in hundredths of a millimetre, finer than visible dots of a printer."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _x(text: str, limit: int = 200) -> str:
    return escape(printable(text, limit))


def _path(points: Floats) -> str:
    return "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in points.tolist())


def _pen(stroke: Stroke) -> str:
    dash = ""
    if stroke.dash:
        dash = f' stroke-dasharray="{" ".join(_n(d * stroke.width) for d in stroke.dash)}"'
    return f'stroke="{_x(stroke.colour)}" stroke-width="{_n(stroke.width)}" stroke-linejoin="round"{dash}'


def _pattern(fill: Fill, name: str) -> str:
    side, pen = _n(_APART), f'stroke="{_x(fill.ink)}" stroke-width="{_n(_THIN)}"'
    turn = {"/": 45, "\\": -45}.get(fill.hatch, 0)
    half = _n(_APART / 2)
    drawn = {
        "-": f'<path d="M0 {half}H{side}" {pen}/>',
        "x": f'<path d="M0 {half}H{side}M{half} 0V{side}" {pen}/>',
        ".": f'<circle cx="{half}" cy="{half}" r="{_n(1.1 * _THIN)}" fill="{_x(fill.ink)}"/>',
    }.get(fill.hatch, f'<path d="M{half} 0V{side}" {pen}/>')
    return (
        f'<pattern id="{name}" patternUnits="userSpaceOnUse" width="{side}" height="{side}" '
        f'patternTransform="rotate({turn})">{drawn}</pattern>'
    )


class QtSheet(Sheet):
    """A sheet drawn by `painter`, `scale` device units to the mm, its corner at the painter's origin.

    `unit`: mm to its unit of length, where that is another one.
    """

    unit = 1.0

    def __init__(self, painter: QPainter, width: float, height: float, scale: float) -> None:
        self.width, self.height = width, height
        self._painter, self._scale = painter, scale
        self._pixels = painter.paintEngine().type() == QPaintEngine.Type.Raster
        painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)

    @cached_property
    def _font(self) -> QFont:
        font = QFont(FAMILY)
        font.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
        # Ligatures in a PDF are not found by their letters.
        font.setFeature(QFont.Tag("liga"), 0)
        return font

    def steps(self, x: ArrayLike, y: ArrayLike, stroke: Stroke) -> None:
        corners = _corners(x, y)
        if self._pixels:  # a long thick path costs the rasteriser a hundred times its pieces
            self.lines(np.concatenate([corners[:-1], corners[1:]], axis=1), stroke)
        else:
            self.line(corners, stroke)

    def band(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, fill: Fill) -> None:
        if self._pixels and not fill.hatch:
            left, bottom, top = (np.asarray(v, np.float64) for v in (x, low, high))
            self._painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)  # columns must join
            self.rects(np.stack([left[:-1], top, np.diff(left), bottom - top], axis=1), fill)
            self._painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            return
        super().band(x, low, high, fill)

    def rects(self, rects: ArrayLike, fill: Fill) -> None:
        placed = [QRectF(*rect) for rect in (_array(rects, 4) * self._scale).tolist()]
        if fill.hatch:
            path = QPainterPath()
            for rect in placed:
                path.addRect(rect)
            self._shape(path, fill)
        else:
            self._painter.setPen(Qt.PenStyle.NoPen)
            self._painter.setBrush(_brush(fill))
            self._painter.drawRects(placed)

    def shade(self, opacity: Bytes, colour: str, box: tuple[float, float, float, float]) -> None:
        x, y, w, h = (v * self._scale for v in box)
        self._painter.drawImage(QRectF(x, y, w, h), shaded(opacity, colour))

    def area(self, points: ArrayLike, fill: Fill) -> None:
        path = QPainterPath()
        path.addPolygon(QPolygonF(self._points(points)))
        path.closeSubpath()
        self._shape(path, fill)

    def line(self, points: ArrayLike, stroke: Stroke) -> None:
        self._painter.setPen(self._pen(stroke))
        self._painter.drawPolyline(QPolygonF(self._points(points)))

    def lines(self, lines: ArrayLike, stroke: Stroke) -> None:
        placed = [QLineF(*line) for line in (_array(lines, 4) * self._scale).tolist()]
        if placed:
            self._painter.setPen(self._pen(stroke))
            self._painter.drawLines(placed)

    def bend(self, start: Point, control: Point, end: Point, stroke: Stroke) -> None:
        begin, bent, last = self._points([start, control, end])
        path = QPainterPath(begin)
        path.quadTo(bent, last)
        self._painter.strokePath(path, self._pen(stroke))

    def circle(self, x: float, y: float, r: float, fill: Fill | None, stroke: Stroke | None) -> None:
        self._painter.setPen(self._pen(stroke) if stroke else QPen(Qt.PenStyle.NoPen))
        self._painter.setBrush(_brush(fill) if fill else QBrush())
        self._painter.drawEllipse(QPointF(x, y) * self._scale, r * self._scale, r * self._scale)

    def _write(self, text: SheetText) -> None:
        painter = self._painter
        self._font.setPointSizeF(text.size * self._scale * 72 / painter.device().logicalDpiY())
        self._font.setBold(text.bold)
        painter.setFont(self._font)
        painter.setPen(QColor(text.colour))
        # The width by the painter's metrics, so that anchored text ends at x on every device.
        wide = QFontMetricsF(self._font, painter.device()).horizontalAdvance(text.words)
        painter.save()
        painter.translate(QPointF(text.x, text.y) * self._scale)
        if text.upright:
            painter.rotate(-90)
        painter.drawText(QPointF(-text.lead * wide, 0), text.words)
        painter.restore()

    @contextmanager
    def clipped(self, x: float, y: float, w: float, h: float) -> Iterator[None]:
        k = self._scale
        with saved(self._painter):
            self._painter.setClipRect(QRectF(x * k, y * k, w * k, h * k), Qt.ClipOperation.IntersectClip)
            yield

    def _shape(self, path: QPainterPath, fill: Fill) -> None:
        self._painter.fillPath(path, _brush(fill))
        if fill.hatch:
            self._painter.save()
            self._painter.setClipPath(path, Qt.ClipOperation.IntersectClip)
            self._hatch(path.boundingRect(), fill)
            self._painter.restore()

    def _hatch(self, box: QRectF, fill: Fill) -> None:
        """Lines over `box`, at places that do not depend on it, so that neighbours of one hatch join."""
        k = self._scale / self.unit
        apart = _APART * k
        self._painter.setPen(QPen(QColor(fill.ink), _THIN * k))
        if fill.hatch == ".":
            self._painter.setBrush(QColor(fill.ink))
            for x in _grid(box.left(), box.right(), apart):
                for y in _grid(box.top(), box.bottom(), apart):
                    self._painter.drawEllipse(QPointF(x, y), 1.1 * _THIN * k, 1.1 * _THIN * k)
            return
        lines: list[QLineF] = []
        if fill.hatch in ("-", "x"):
            lines += [QLineF(box.left(), y, box.right(), y) for y in _grid(box.top(), box.bottom(), apart)]
        if fill.hatch == "x":
            lines += [QLineF(x, box.top(), x, box.bottom()) for x in _grid(box.left(), box.right(), apart)]
        step, high = apart * 2**0.5, box.height()
        if fill.hatch == "\\":
            offsets = _grid(box.left() - box.bottom(), box.right() - box.top(), step)
            lines += [QLineF(c + box.top(), box.top(), c + box.bottom(), box.bottom()) for c in offsets]
        if fill.hatch == "/":
            offsets = _grid(box.left() + box.top(), box.right() + box.bottom(), step)
            lines += [QLineF(c - box.top(), box.top(), c - box.top() - high, box.bottom()) for c in offsets]
        self._painter.drawLines(lines)

    def _points(self, points: ArrayLike) -> list[QPointF]:
        return [QPointF(x, y) for x, y in (_array(points, 2) * self._scale).tolist()]

    def _pen(self, stroke: Stroke) -> QPen:
        pen = QPen(QColor(stroke.colour), stroke.width * self._scale)
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
        if stroke.dash:
            pen.setDashPattern(list(stroke.dash))
        return pen


def _brush(fill: Fill) -> QBrush:
    colour = QColor(fill.colour)
    colour.setAlphaF(fill.opacity)
    return QBrush(colour)


def _grid(low: float, high: float, apart: float) -> Sequence[float]:
    first, last = int(np.ceil(low / apart)), int(np.floor(high / apart))
    return [k * apart for k in range(first, last + 1)]

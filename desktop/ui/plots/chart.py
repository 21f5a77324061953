"""A small chart: points, lines, bands and bars on two axes, with names on hover and a click that selects.

For results (effects, residuals, run times), up to some hundred thousand points; the utilization curve has a
plot of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QLineF, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QContextMenuEvent, QImage, QPainter, QPainterPath, QPen, QPolygonF
from PySide6.QtWidgets import QToolTip, QWidget

from desktop.ui.plots import plot_menu, scales
from desktop.ui.plots.scales import Lane, Ticks
from desktop.ui.theme import LIGHT, SERIES, Theme, paint_focus, paint_note

Floats = NDArray[np.float64]
Mark = Literal["circle", "square", "diamond", "triangle", "cross", "plus"]
MARKS: tuple[Mark, ...] = ("circle", "square", "diamond", "triangle", "cross", "plus")


@dataclass(frozen=True, eq=False)
class Series:
    """What is drawn as one.

    x, y : (K,). `low`, `high` (K,): error bars of points, edges of a band, ends of whiskers, or base of bars
    (`low`). `names` (K,): told on hover, or what makes the name of a place; `keys` (K,): emitted on a click;
    `labels`: which marks bear their name. `colour`: index into the theme's `series`, or the name of a theme
    token. `faint`: left out or out of focus. `thickness`: of bars, in categories.
    """

    kind: Literal["points", "line", "band", "bars", "whiskers"]
    x: Floats
    y: Floats
    label: str = ""
    colour: int | str = 0
    mark: Mark = "circle"
    dashed: bool = False
    low: Floats | None = None
    high: Floats | None = None
    names: Sequence[str] | Callable[[int], str] = ()
    keys: Sequence[int] | NDArray[np.int64] = ()
    labels: frozenset[int] = frozenset()
    faint: frozenset[int] = frozenset()
    width: float = 1.6
    thickness: float = 0.72

    def name(self, k: int) -> str:
        if callable(self.names):
            return self.names(k)
        return self.names[k] if self.names else ""


@dataclass(frozen=True)
class Axis:
    """`title` with its unit. `categories`: names at 0, 1, 2, ... instead of numbers. `doubling`: ticks of a
    logarithmic axis at powers of two (processors)."""

    title: str
    log: bool = False
    categories: tuple[str, ...] = ()
    zero: bool = False
    low: float | None = None
    high: float | None = None
    whole: bool = False
    doubling: bool = False


@dataclass(frozen=True, eq=False)
class Content:
    """A whole chart. `levels`: horizontal lines with a name (limits). `empty`: what to say without series."""

    x: Axis
    y: Axis
    series: tuple[Series, ...] = ()
    levels: tuple[tuple[float, str], ...] = ()
    verticals: tuple[tuple[float, str], ...] = ()
    empty: str = ""
    horizontal_bars: bool = False
    selected: frozenset[int] = field(default_factory=frozenset)


class Chart(QWidget):
    """Draws a `Content`; emits the key of a mark that is clicked, with whether Ctrl was held."""

    clicked = Signal(int, bool)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme: Theme = LIGHT
        self._content = Content(Axis(""), Axis(""))
        self._lane = Lane(QRectF())
        self._x = (0.0, 1.0)
        self._hover: tuple[int, int] | None = None
        self.setAccessibleName(name)
        self.setAccessibleDescription(self._content.empty)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def set_content(self, content: Content, description: str = "") -> None:
        """Show another chart; the description says the same in words, for those who cannot see it."""
        self._content = content
        self._hover = None
        self.setAccessibleDescription(description or content.empty)
        self.update()

    @property
    def content(self) -> Content:
        return self._content

    def table(self) -> Iterable[plot_menu.Row]:
        """The places of all marks, by series."""
        content = self._content
        yield "series", content.x.title or "x", content.y.title or "y", "low", "high", "name"
        for series in content.series:
            for k, (x, y) in enumerate(zip(series.x.tolist(), series.y.tolist(), strict=True)):
                names = content.x.categories
                at = names[int(x)] if names and x == int(x) and 0 <= x < len(names) else x
                ends = (None if v is None else float(v[k]) for v in (series.low, series.high))
                yield series.label, at, y, *ends, series.name(k)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        plot_menu.popup(self, event)

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(em * 26, em * 17)

    def minimumSizeHint(self) -> QSize:
        em = self.fontMetrics().height()
        return QSize(em * 12, em * 7)

    # ---- geometry

    def _range(self, axis: Axis, values: list[Floats]) -> tuple[float, float]:
        found = np.concatenate([v.ravel() for v in values]) if values else np.empty(0)
        found = found[np.isfinite(found)]
        if axis.log:
            found = np.log10(found[found > 0])
        if axis.categories:
            return -0.6, len(axis.categories) - 0.4
        low, high = (float(found.min()), float(found.max())) if found.size else (0.0, 1.0)
        if axis.zero and not axis.log:
            low, high = min(low, 0.0), max(high, 0.0)
        if high - low < 1e-12 * max(abs(low), abs(high), 1e-300):
            low, high = low - 0.5, high + 0.5
        room = 0.05 * (high - low)
        low, high = low - room * (low != 0 or not axis.zero), high + room * (high != 0 or not axis.zero)
        if axis.low is not None:
            low = math.log10(axis.low) if axis.log else axis.low
        if axis.high is not None:
            high = math.log10(axis.high) if axis.log else axis.high
        return low, high

    def _layout(self) -> None:
        content, metrics = self._content, self.fontMetrics()
        em = metrics.height()
        # A band may reach out of the picture: what it belongs to decides the range.
        firm = [s for s in content.series if s.kind != "band"] or content.series
        xs = [s.x for s in firm] + [np.array([v for v, _ in content.verticals])]
        ys: list[Floats] = [np.array([v for v, _ in content.levels])]
        for series in firm:
            ys += [v for v in (series.y, series.low, series.high) if v is not None]
        if content.horizontal_bars:
            xs, ys = ys, xs
        self._x = self._range(content.x, xs)
        low, high = self._range(content.y, ys)
        top, bottom = em * (0.6 + 1.3 * len(self._legend_rows())), em * 2 + 12
        left = em * 1.2 + 16
        if content.y.categories:
            widest = max(metrics.horizontalAdvance(name) for name in content.y.categories)
            left += min(widest + 2, self.width() // 3)
        else:
            ticks = self._ticks(content.y, (low, high), self.height() - top - bottom)
            left += max((metrics.horizontalAdvance(label) for label in ticks.labels), default=0)
        self._lane = Lane(
            QRectF(left + 0.5, top + 0.5, self.width() - left - em, self.height() - top - bottom), low, high
        )

    def _px(self, value):
        r, (a, b) = self._lane.rect, self._x
        value = np.log10(np.maximum(value, 1e-300)) if self._content.x.log else np.asarray(value, float)
        return r.left() + (value - a) / (b - a) * r.width()

    def _py(self, value):
        value = np.log10(np.maximum(value, 1e-300)) if self._content.y.log else np.asarray(value, float)
        return self._lane.y(value)

    def _places(self, series: Series) -> tuple[Floats, Floats]:
        """Logical pixels (K,) of all marks."""
        x, y = (series.y, series.x) if self._content.horizontal_bars else (series.x, series.y)
        return self._px(x), self._py(y)

    def _point(self, series: Series, k: int) -> QPointF:
        x, y = series.x[k], series.y[k]
        if self._content.horizontal_bars:
            x, y = y, x
        return QPointF(float(self._px(x)), float(self._py(y)))

    def _ticks(self, axis: Axis, span: tuple[float, float], length: float) -> Ticks:
        count = max(2.0, length / (self.fontMetrics().height() * 2.4))
        if axis.categories:
            return Ticks([float(k) for k in range(len(axis.categories))], list(axis.categories))
        if axis.log:
            return _doubling_ticks(*span, count) if axis.doubling else _log_ticks(*span, count)
        return scales.level_ticks(*span, count, whole=axis.whole)

    # ---- mouse and keys

    def _at(self, place: QPointF) -> tuple[int, int] | None:
        """The mark under the pointer: series and index."""
        best, found = 12.0, None
        for i, series in enumerate(self._content.series):
            if series.kind == "bars":
                k = self._bar_at(series, place)
                if k is not None:
                    return i, k
            if series.kind != "points" or not series.x.size:
                continue
            x, y = self._places(series)
            with np.errstate(invalid="ignore"):
                distance = np.hypot(x - place.x(), y - place.y())
            distance = np.where(np.isfinite(distance), distance, np.inf)
            k = int(np.argmin(distance))
            if distance[k] < best:
                best, found = float(distance[k]), (i, k)
        return found

    def _bar_at(self, series: Series, place: QPointF) -> int | None:
        return next((k for k in range(series.x.size) if self._bar(series, k).contains(place)), None)

    def _bar(self, series: Series, k: int) -> QRectF:
        p = self._point(series, k)
        base = 0.0 if series.low is None else float(series.low[k])
        if self._content.horizontal_bars:
            half = abs(float(self._py(0.0) - self._py(1.0))) * series.thickness / 2
            x0 = float(self._px(base))
            return QRectF(min(x0, p.x()), p.y() - half, abs(p.x() - x0), 2 * half)
        half = abs(float(self._px(1.0) - self._px(0.0))) * series.thickness / 2
        y0 = float(self._py(base))
        return QRectF(p.x() - half, min(y0, p.y()), 2 * half, abs(p.y() - y0))

    def mouseMoveEvent(self, event) -> None:
        found = self._at(event.position())
        if found != self._hover:
            self._hover = found
            name = self._name(found)
            if name:
                QToolTip.showText(event.globalPosition().toPoint(), name, self)
            else:
                QToolTip.hideText()
            pointing = found is not None and len(self._content.series[found[0]].keys) > 0
            self.setCursor(Qt.CursorShape.PointingHandCursor if pointing else Qt.CursorShape.ArrowCursor)
            self.update()

    def leaveEvent(self, event) -> None:
        self._hover = None
        self.update()
        super().leaveEvent(event)

    def mousePressEvent(self, event) -> None:
        found = self._at(event.position())
        if event.button() == Qt.MouseButton.LeftButton and found is not None:
            self._choose(found, bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier))

    def keyPressEvent(self, event) -> None:
        """Left and right step through the marks, Return chooses one."""
        marks = [
            (i, series.x.size)
            for i, series in enumerate(self._content.series)
            if series.kind in ("points", "bars") and len(series.keys)
        ]
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(event.key())
        if marks and step is not None:
            self._hover = _neighbour(marks, self._hover, step)
            place = self._point(self._content.series[self._hover[0]], self._hover[1]).toPoint()
            QToolTip.showText(self.mapToGlobal(place), self._name(self._hover), self)
            self.update()
        elif self._hover is not None and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Space):
            self._choose(self._hover, bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier))
        else:
            super().keyPressEvent(event)

    def _choose(self, found: tuple[int, int], more: bool) -> None:
        keys = self._content.series[found[0]].keys
        if len(keys):
            self.clicked.emit(int(keys[found[1]]), more)

    def _name(self, found: tuple[int, int] | None) -> str:
        return "" if found is None else self._content.series[found[0]].name(found[1])

    # ---- painting

    def paintEvent(self, _event: QEvent) -> None:
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), QColor(self._theme.background))
            if not self._content.series:
                paint_note(painter, self, self._theme, self._content.empty)
            else:
                self._layout()
                self._paint_axes(painter)
                painter.save()
                painter.setClipRect(self._lane.rect.adjusted(-6, -6, 6, 6))
                for kind in ("band", "bars", "line", "whiskers", "points"):
                    for i, series in enumerate(self._content.series):
                        if series.kind == kind:
                            getattr(self, f"_paint_{kind}")(painter, i, series)
                self._paint_levels(painter)
                painter.restore()
                self._paint_labels(painter)
                self._paint_legend(painter)
            paint_focus(painter, self, self._theme)

    def _colour(self, series: Series) -> QColor:
        if isinstance(series.colour, str):
            return QColor(getattr(self._theme, series.colour))
        return QColor(self._theme.series[series.colour % SERIES])

    def _paint_axes(self, painter: QPainter) -> None:
        t, r, metrics = self._theme, self._lane.rect, self.fontMetrics()
        em = metrics.height()
        y_ticks = self._ticks(self._content.y, (self._lane.low, self._lane.high), r.height())
        numbers = [] if self._content.y.categories else y_ticks.labels
        widest = max((metrics.horizontalAdvance(s) for s in numbers), default=1)
        x_ticks = self._ticks(
            self._content.x, self._x, r.width() * 2.4 * em / (em + 1.6 * max(widest, 2 * em))
        )
        xs = [float(self._px(10.0**v if self._content.x.log else v)) for v in x_ticks.positions]
        ys = [float(self._lane.y(v)) for v in y_ticks.positions]
        scales.grid(painter, self._lane, t, [] if self._content.x.categories else xs, ys)
        # Widths are rounded, so a label may be wider by half a pixel than was said.
        room = math.ceil(r.left() - em * 1.2 - 16) + 1
        labels = y_ticks.labels
        if self._content.y.categories:
            labels = [metrics.elidedText(s, Qt.TextElideMode.ElideMiddle, room) for s in labels]
        scales.level_axis(painter, self._lane, Ticks(y_ticks.positions, labels), t, self._content.y.title)
        painter.setPen(QColor(t.muted))
        wide = r.width() / max(len(xs), 1)
        for x, label in zip(xs, x_ticks.labels, strict=True):
            painter.drawLine(QLineF(x, r.bottom(), x, r.bottom() + 4))
            text = label
            if self._content.x.categories:
                text = metrics.elidedText(label, Qt.TextElideMode.ElideMiddle, int(wide) - 4)
            box = QRectF(x - 200, r.bottom() + 5, 400, em)
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
        painter.setPen(QColor(t.text))
        row = QRectF(0, r.bottom() + 5 + em, self.width(), em + 4)
        row.setLeft(max(0.0, 2 * r.center().x() - self.width()))
        painter.drawText(row, Qt.AlignmentFlag.AlignCenter, self._content.x.title)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(t.border), 0))
        painter.drawRect(r)

    def _paint_band(self, painter: QPainter, _i: int, series: Series) -> None:
        if series.low is None or series.high is None:
            return
        colour = self._colour(series)
        colour.setAlpha(44)
        upper = [
            QPointF(float(self._px(x)), float(self._py(y)))
            for x, y in zip(series.x, series.high, strict=True)
        ]
        lower = [
            QPointF(float(self._px(x)), float(self._py(y))) for x, y in zip(series.x, series.low, strict=True)
        ]
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        painter.drawPolygon(QPolygonF([*upper, *reversed(lower)]))

    def _paint_line(self, painter: QPainter, _i: int, series: Series) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        style = Qt.PenStyle.DashLine if series.dashed else Qt.PenStyle.SolidLine
        painter.setPen(QPen(self._colour(series), series.width, style))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        path, drawing = QPainterPath(), False
        for x, y in zip(series.x, series.y, strict=True):
            shown = np.isfinite(y) and (y > 0 or not self._content.y.log)
            place = QPointF(float(self._px(x)), float(self._py(y))) if shown else QPointF()
            if shown and drawing:
                path.lineTo(place)
            elif shown:
                path.moveTo(place)
            drawing = bool(shown)
        painter.drawPath(path)

    def _paint_bars(self, painter: QPainter, i: int, series: Series) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        for k in range(series.x.size):
            colour = self._colour(series)
            chosen = len(series.keys) > 0 and int(series.keys[k]) in self._content.selected
            if k in series.faint:
                colour.setAlpha(80)
            painter.setBrush(colour)
            edge = self._theme.text if chosen or (i, k) == self._hover else self._theme.border
            painter.setPen(QPen(QColor(edge), 2 if chosen else 0))
            painter.drawRect(self._bar(series, k))

    def _paint_whiskers(self, painter: QPainter, _i: int, series: Series) -> None:
        if series.low is None or series.high is None:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setPen(QPen(self._colour(series), 1.4))
        cap = max(3.0, self.fontMetrics().height() * 0.22)
        across = self._content.horizontal_bars
        at = self._py(series.x) if across else self._px(series.x)
        ends = [(self._px if across else self._py)(v) for v in (series.low, series.high)]
        for c, a, b in zip(at.tolist(), ends[0].tolist(), ends[1].tolist(), strict=True):
            if not (math.isfinite(a) and math.isfinite(b)):
                continue
            lines = [(c, a, c, b), (c - cap, a, c + cap, a), (c - cap, b, c + cap, b)]
            if across:
                lines = [(y0, x0, y1, x1) for x0, y0, x1, y1 in lines]
            painter.drawLines([QLineF(*line) for line in lines])

    def _paint_points(self, painter: QPainter, i: int, series: Series) -> None:
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colour = self._colour(series)
        em = self.fontMetrics().height()
        size = max(3.2, em * 0.24)
        xs, ys = self._places(series)
        seen = np.flatnonzero(np.isfinite(xs) & np.isfinite(ys))
        picked = self._picked(series)
        if seen.size > _MANY:
            self._paint_cloud(painter, colour, xs[seen], ys[seen])
            seen = np.array(sorted(picked & set(seen.tolist())), np.int64)
            if seen.size > _MANY:
                self._paint_cloud(painter, QColor(self._theme.text), xs[seen], ys[seen])
                seen = seen[:0]
        for k in seen.tolist():
            place = QPointF(float(xs[k]), float(ys[k]))
            tint = QColor(colour)
            if k in series.faint:
                tint.setAlpha(70)
            if series.low is not None and series.high is not None:
                painter.setPen(QPen(tint, 1))
                y0, y1 = float(self._py(series.low[k])), float(self._py(series.high[k]))
                painter.drawLine(QLineF(place.x(), y0, place.x(), y1))
            if k in picked or (i, k) == self._hover:
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(QColor(self._theme.text), 2 if k in picked else 1))
                painter.drawEllipse(place, size + 4, size + 4)
            painter.setPen(QPen(tint, 1.4))
            painter.setBrush(tint if series.mark not in ("cross", "plus") else Qt.BrushStyle.NoBrush)
            draw_mark(painter, series.mark, place, size)

    def _picked(self, series: Series) -> set[int]:
        """Places whose keys are selected."""
        selected = self._content.selected
        if not selected or not len(series.keys):
            return set()
        keys = np.asarray(series.keys)
        return set(np.flatnonzero(np.isin(keys, np.fromiter(selected, np.int64, len(selected)))).tolist())

    def _paint_cloud(self, painter: QPainter, colour: QColor, xs: Floats, ys: Floats) -> None:
        """So many points that marks would cover each other: one dot for each pixel that has any."""
        ratio = self.devicePixelRatioF()
        pixels = np.unique(np.stack([np.floor(xs * ratio), np.floor(ys * ratio)], axis=1), axis=0) / ratio
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setPen(QPen(colour, 2))
        painter.drawPoints([QPointF(x, y) for x, y in pixels.tolist()])

    def _paint_levels(self, painter: QPainter) -> None:
        r, metrics = self._lane.rect, self.fontMetrics()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setPen(QPen(QColor(self._theme.break_line), 1, Qt.PenStyle.DashLine))
        lines = [
            (QLineF(r.left(), float(self._py(v)), r.right(), float(self._py(v))), s)
            for v, s in self._content.levels
        ]
        if self._content.horizontal_bars:
            lines = [
                (QLineF(float(self._px(v)), r.top(), float(self._px(v)), r.bottom()), s)
                for v, s in self._content.levels
            ]
        lines += [
            (QLineF(float(self._px(v)), r.top(), float(self._px(v)), r.bottom()), s)
            for v, s in self._content.verticals
        ]
        for line, name in lines:
            painter.drawLine(line)
            if line.x1() == line.x2():
                beside = line.x1() + 4
                if beside + metrics.horizontalAdvance(name) > r.right():
                    beside = line.x1() - 4 - metrics.horizontalAdvance(name)
                painter.drawText(QPointF(beside, r.top() + metrics.ascent()), name)
            else:
                width = metrics.horizontalAdvance(name)
                painter.drawText(QPointF(r.right() - width - 4, line.y1() - 3), name)

    def _paint_labels(self, painter: QPainter) -> None:
        """Names beside marks, where they do not cover each other if there is such a place."""
        metrics, r = self.fontMetrics(), self._lane.rect
        taken: list[QRectF] = []
        painter.setPen(QColor(self._theme.text))
        for series in self._content.series:
            for k in sorted(series.labels):
                place = self._point(series, k)
                text = series.name(k).split("\n")[0]
                w, h = metrics.horizontalAdvance(text), metrics.height()
                across, up = QPointF(w / 2 + 9, 0), QPointF(0, h / 2 + 7)
                centres = (place + across, place - across, place - up, place + up)
                choices = [QRectF(c.x() - w / 2, c.y() - h / 2, w, h) for c in centres]
                inside = [c for c in choices if r.contains(c)] or choices[:1]
                box = next((c for c in inside if not any(c.intersects(other) for other in taken)), inside[0])
                taken.append(box)
                painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)

    def _legend_rows(self) -> list[list[tuple[int, str, float]]]:
        """Rows of (series, text, width); where there are too many names the last says so."""
        metrics, em = self.fontMetrics(), self.fontMetrics().height()
        room = self.width() - 3.5 * em
        named = [(i, s.label) for i, s in enumerate(self._content.series) if s.label]
        rows: list[list[tuple[int, str, float]]] = []
        x = math.inf
        for i, label in named:
            text = metrics.elidedText(label, Qt.TextElideMode.ElideMiddle, int(room - 2 * em))
            width = metrics.horizontalAdvance(text) + 2.8 * em
            if x + width - em > room:
                if len(rows) == _LEGEND_ROWS:
                    rows[-1][-1] = (rows[-1][-1][0], "and more", rows[-1][-1][2])
                    break
                rows.append([])
                x = 0.0
            rows[-1].append((i, text, width))
            x += width
        return rows

    def _paint_legend(self, painter: QPainter) -> None:
        metrics = self.fontMetrics()
        em = metrics.height()
        for number, row in enumerate(self._legend_rows()):
            # Right of the axis' title, which may be longer than the axis.
            x, y = em * 2.2, em * (0.9 + 1.3 * number)
            for i, text, width in row:
                self._paint_legend_entry(painter, self._content.series[i], x, y)
                painter.setPen(QColor(self._theme.text))
                painter.drawText(QPointF(x + 1.6 * em, y + metrics.ascent() / 2 - 1), text)
                x += width

    def _paint_legend_entry(self, painter: QPainter, series: Series, x: float, y: float) -> None:
        em = self.fontMetrics().height()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colour = self._colour(series)
        style = Qt.PenStyle.DashLine if series.dashed else Qt.PenStyle.SolidLine
        painter.setPen(QPen(colour, 1.8, style))
        if series.kind == "line":
            painter.drawLine(QLineF(x, y, x + 1.3 * em, y))
            return
        if series.kind == "band":
            colour.setAlpha(70)
            painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour if series.mark not in ("cross", "plus") else Qt.BrushStyle.NoBrush)
        mark = "square" if series.kind in ("bars", "band") else series.mark
        draw_mark(painter, mark, QPointF(x + em * 0.65, y), em * 0.28)

    # ---- showing to others

    def picture(self, scale: float = 2.0) -> QImage:
        """The chart at `scale` times its size, on white whatever the theme."""
        theme, hover = self._theme, self._hover
        self._theme, self._hover = theme.on_white, None
        image = QImage(self.size() * scale, QImage.Format.Format_RGB32)
        image.setDevicePixelRatio(scale)
        try:
            self.render(image)
        finally:
            self._theme, self._hover = theme, hover
        return image


#: Points of a series beyond which they are drawn as a cloud; rows of a legend.
_MANY, _LEGEND_ROWS = 3000, 4


def _neighbour(marks: list[tuple[int, int]], hover: tuple[int, int] | None, step: int) -> tuple[int, int]:
    """The next or last mark among series and their sizes, from one end to the other."""
    starts = np.cumsum([0, *(size for _, size in marks)])
    order = [i for i, _ in marks]
    at = -1 if step > 0 else 0
    if hover is not None and hover[0] in order:
        at = int(starts[order.index(hover[0])]) + hover[1]
    at = (at + step) % int(starts[-1])
    which = int(np.searchsorted(starts, at, side="right")) - 1
    return order[which], at - int(starts[which])


def draw_mark(painter: QPainter, mark: Mark, p: QPointF, s: float) -> None:
    """A mark about `p` that reaches `s` far, with the painter's pen and brush."""
    if mark == "circle":
        painter.drawEllipse(p, s, s)
    elif mark == "square":
        painter.drawRect(QRectF(p.x() - s, p.y() - s, 2 * s, 2 * s))
    elif mark == "diamond":
        d = 1.3 * s
        points = [
            QPointF(p.x(), p.y() - d),
            QPointF(p.x() + d, p.y()),
            QPointF(p.x(), p.y() + d),
            QPointF(p.x() - d, p.y()),
        ]
        painter.drawPolygon(QPolygonF(points))
    elif mark == "triangle":
        d = 1.2 * s
        points = [QPointF(p.x(), p.y() - d), QPointF(p.x() + d, p.y() + d), QPointF(p.x() - d, p.y() + d)]
        painter.drawPolygon(QPolygonF(points))
    elif mark == "cross":
        painter.drawLines(
            [
                QLineF(p.x() - s, p.y() - s, p.x() + s, p.y() + s),
                QLineF(p.x() - s, p.y() + s, p.x() + s, p.y() - s),
            ]
        )
    else:
        painter.drawLines(
            [QLineF(p.x() - s, p.y(), p.x() + s, p.y()), QLineF(p.x(), p.y() - s, p.x(), p.y() + s)]
        )


def _doubling_ticks(low: float, high: float, count: float) -> Ticks:
    """Powers of two between two powers of ten, as many as there is room for."""
    first, last = math.ceil(low / math.log10(2) - 1e-9), math.floor(high / math.log10(2) + 1e-9)
    if last - first < 1:
        return _log_ticks(low, high, count)
    step = max(1, math.ceil((last - first + 1) / max(count, 1.0)))
    powers = range(first, last + 1, step)
    return Ticks([k * math.log10(2) for k in powers], [scales.format_number(2.0**k) for k in powers])


def _log_ticks(low: float, high: float, count: float) -> Ticks:
    """Ticks of a logarithmic axis whose ends are given as powers of ten: powers, or 1-2-5 between them."""
    powers = range(math.floor(low), math.ceil(high) + 1)
    steps: Sequence[int] = (1, 2, 5) if (high - low) * 3 <= count else (1,)
    values = [
        m * 10.0**e for e in powers for m in steps if low - 1e-9 <= math.log10(m * 10.0**e) <= high + 1e-9
    ]
    if len(values) < 2:
        ticks = scales.level_ticks(10.0**low, 10.0**high, count)
        values = [v for v in ticks.positions if v > 0]
    thin = max(1, math.ceil(len(values) / max(count, 1.0)))
    values = values[::thin]
    # 1-2-5 times a power of ten need no more digits than that.
    labels = [f"{v:g}" if 1e-4 <= v < 1e6 else scales.format_number(v, 1) for v in values]
    return Ticks([math.log10(v) for v in values], labels)

"""Charts, laid out by `desktop.data.chart.Layout`, drawn on a sheet of paper or the window's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import ArrayLike

from desktop.core.arrays import Floats
from desktop.data import chart
from desktop.data.chart import MANY, Content, Layout, Series, Word
from desktop.ui.drawing import MM_PER_POINT, Fill, Hatch, Ink, Sheet, Stroke, around, text_width
from desktop.ui.plots.raster import mix

#: Height of a line, and of the middle of its letters over their foot, in sizes of text.
LINE, MIDDLE = 1.164, 0.36
#: mm to a logical pixel of the window, in which lines and marks are measured.
PIXEL = 0.75 * MM_PER_POINT
_HATCHES: Sequence[Hatch] = ("", "/", "x", ".", "\\", "-")
#: Dots of a cloud, mm; how far marks reach over the edge of the values, logical pixels.
_DOT, OVER = 0.3, 6
#: Opacity of what is left out.
_FAINT = 0.27


def lay_out(sheet: Sheet, content: Content, em: float, top: float) -> Layout:
    """The layout of a chart on a sheet, below `top` (mm), in text of `em` mm."""
    return chart.lay_out(
        content, sheet.width, sheet.height, LINE * em, lambda text: text_width(text, em), start=top
    )


def paint(sheet: Sheet, content: Content, ink: Ink, em: float, top: float = 0.0, lines: float = 1.0) -> None:
    """Draw a chart below `top` mm; `lines` multiplies the widths of lines."""
    painter = Painter(sheet, lay_out(sheet, content, em, top), ink, em, lines)
    painter.paint()
    painter.paint_chosen()


class Painter:
    """Draws a chart on a sheet in text of `em`, with lines `lines` times as wide. `pixel`: a logical pixel of
    the window in the sheet's unit."""

    #: Dots where marks are many: how far they are apart at least, and their side.
    dot = (_DOT, _DOT)
    #: Whether segments become dots too where they are many.
    dotted_segments = False

    def __init__(
        self, sheet: Sheet, layout: Layout, ink: Ink, em: float, lines: float = 1.0, pixel: float = PIXEL
    ) -> None:
        self.sheet, self.layout, self.ink, self.em, self.lines = sheet, layout, ink, em, lines
        self.pixel, self.hair = pixel, 0.5 * MM_PER_POINT * pixel / PIXEL

    def paint(self, *, grid: bool = True) -> None:
        """All but what is chosen along an axis."""
        layout, content = self.layout, self.layout.content
        if not content.shown:
            self._word(
                Word(content.empty, self.sheet.width / 2, layout.top + layout.height / 2, 0), self.ink.muted
            )
            return
        if content.axes:
            self._axes(grid)
        with self._clipped():
            if content.cells is not None:
                self._cells(content.cells)
            for kind in chart.KINDS:
                for number, series in enumerate(content.series):
                    if series.kind == kind:
                        getattr(self, f"_{kind}")(series, number)
            self._limits()
        if content.axes:
            self._frame((layout.left, layout.top, layout.width, layout.height))
        self._words()
        self._legend()

    def paint_map(self) -> None:
        """The map of a chart of nothing else, drawn over an older one."""
        layout, cells = self.layout, self.layout.content.cells
        box = layout.left, layout.top, layout.width, layout.height
        assert cells is not None
        self.sheet.rects([box], Fill(self.ink.ground))
        with self._clipped():
            self._cells(cells)
        self._frame(box)

    def paint_chosen(self) -> None:
        """What is chosen along an axis; it may be drawn again over all else."""
        chosen, layout = self.layout.content.chosen, self.layout
        if chosen is None or not layout.content.shown:
            return
        with self._clipped():
            self._chosen_row()
            self._chosen()
        if chosen.label:
            self._entry(layout.legend[0])

    def _clipped(self) -> AbstractContextManager[None]:
        """Clip to the area of the marks: those on its edge stay whole."""
        layout, over = self.layout, OVER * self.pixel
        return self.sheet.clipped(
            layout.left - over, layout.top - over, layout.width + 2 * over, layout.height + 2 * over
        )

    # ---- how things look

    def colour(self, series: Series) -> str:
        """The colour of a series as `#rrggbb`, from its number among runs or the name of its ink."""
        ink, colour = self.ink, series.colour
        if isinstance(colour, int):
            return ink.runs[colour % len(ink.runs)]
        return {
            "curve": ink.curve, "fit": ink.fit, "band": ink.fit, "residual": ink.residual,
            "border": ink.border, "muted": ink.muted, "error": ink.mark,
            "computing": ink.areas["computing"].colour,
        }.get(colour, ink.text)  # fmt: skip

    def stroke(self, colour: str, pixels: float, dashed: bool = False) -> Stroke:
        """A line of a width in a screen's pixels, at least 0.6, in units of the sheet."""
        return Stroke(colour, max(pixels, 0.6) * self.pixel * self.lines, (4.0, 2.0) if dashed else ())

    def fill(self, series: Series, number: int, opacity: float = 1.0) -> Fill:
        """The fill of a series; with a hatch where colours may not suffice."""
        hatch: Hatch = _HATCHES[number % len(_HATCHES)] if self.ink.dashed else ""
        return Fill(self.colour(series), opacity, hatch, self.ink.text)

    def _frame(self, box: Sequence[float], stroke: Stroke | None = None) -> None:
        self.sheet.line(around(*box), stroke or Stroke(self.ink.border, self.hair))

    def _word(self, word: Word, colour: str) -> None:
        if word.text:
            self.sheet.text(word.x, word.y + MIDDLE * self.em, word.text, self.em, colour, "middle")

    # ---- axes and words

    def _axes(self, grid: bool) -> None:
        layout, sheet, ink, em = self.layout, self.sheet, self.ink, self.em
        xs = layout.along_x(layout.x_ticks.positions).tolist()
        ys = layout.along_y(layout.y_ticks.positions).tolist()
        content = layout.content
        if content.cells is None and grid:
            hair = Stroke(ink.grid, 0.8 * self.hair)
            if not content.x.categories:
                sheet.lines([[x, layout.top, x, layout.bottom] for x in xs], hair)
            sheet.lines([[layout.left, y, layout.right, y] for y in ys], hair)
        thin, tick = Stroke(ink.border, self.hair), 0.3 * em
        sheet.lines([[x, layout.bottom, x, layout.bottom + tick] for x in xs], thin)
        sheet.lines([[layout.left - tick, y, layout.left, y] for y in ys], thin)
        for x, label in zip(xs, layout.x_ticks.labels, strict=True):
            sheet.text(x, layout.bottom + 1.35 * em, label, em, ink.muted, "middle")
        for y, label in zip(ys, layout.y_ticks.labels, strict=True):
            sheet.text(layout.left - 0.5 * em, y + MIDDLE * em, label, em, ink.muted, "end")
        half = text_width(layout.x_title, em) / 2
        middle = min(max(layout.left + layout.width / 2, half), sheet.width - half)
        sheet.text(middle, layout.bottom + 2.7 * em, layout.x_title, em, ink.text, "middle")
        if layout.x_ticks.offset:
            sheet.text(layout.left, layout.bottom + 2.7 * em, layout.x_ticks.offset, em, ink.muted)
        half = text_width(layout.y_title, em) / 2
        middle = min(max(layout.top + layout.height / 2, half), max(sheet.height - half, half))
        widest = max((text_width(label, em) for label in layout.y_ticks.labels), default=0.0)
        beside = layout.left - 0.5 * em - widest - 0.6 * em
        sheet.text(beside, middle, layout.y_title, em, ink.text, "middle", upright=True)

    def _words(self) -> None:
        layout, ink = self.layout, self.ink
        boxed = [(s, k) for s in layout.content.series if s.kind == "boxes" for k in range(s.x.size)]
        for number, word in enumerate(layout.names):
            if boxed:
                series, k = boxed[number]
                part = float(series.high[k]) if series.high is not None else 0.0
                fill = mix(self.colour(series), ink.ground, 0.15 + 0.85 * part).name()
                w, h = word.width + 0.9 * self.em, 1.8 * self.em
                box = (word.x - w / 2, word.y - h / 2, w, h)
                self.sheet.rects([box], Fill(fill))
                self._frame(box, self.stroke(ink.text if part == 1.0 else ink.border, 1.2))
            self._word(word, ink.text)
        for word in layout.limits:
            self._word(word, ink.limit if layout.content.axes else ink.text)
        for word in (*layout.scale_words, *([] if layout.heading is None else [layout.heading])):
            self._word(word, ink.text)
        if layout.scale is not None and layout.content.cells is not None:
            self._scale(layout.content.cells, layout.scale)

    def _legend(self) -> None:
        for entry in self.layout.legend:
            if entry.series >= 0:
                self._entry(entry)

    def _entry(self, entry: chart.Entry) -> None:
        """A name of the legend with its sample."""
        layout, sheet = self.layout, self.sheet
        x, y, line = entry.x, entry.y, layout.line
        middle = x + 0.8 * line
        if entry.series < 0:
            sheet.circle(middle, y, 0.25 * line, Fill(self.ink.fit), None)
        else:
            series = layout.content.series[entry.series]
            if series.kind in ("line", "segments"):
                stroke = self.stroke(self.colour(series), 1.8, series.dashed)
                sheet.lines([[x + 0.1 * line, y, x + 1.5 * line, y]], stroke)
            elif series.kind == "points":
                self._marks(series, [(middle, y)], 0.28 * line)
            else:
                side = 0.56 * line
                opacity = max(chart.band_opacity(series) if series.kind == "band" else series.opacity, 0.27)
                fill = self.fill(series, entry.series if series.kind == "bars" else 0, opacity)
                sheet.rects([[middle - side / 2, y - side / 2, side, side]], fill)
        sheet.text(x + 1.9 * line, y + MIDDLE * self.em, entry.text, self.em, self.ink.text)

    def _limits(self) -> None:
        layout, content = self.layout, self.layout.content
        upright = [v for v, _ in content.levels] if content.horizontal_bars else []
        xs = [float(layout.px(v)) for v in (*upright, *(v for v, _ in content.verticals))]
        ys = [] if content.horizontal_bars else [float(layout.py(v)) for v, _ in content.levels]
        lines = [[x, layout.top, x, layout.bottom] for x in xs]
        lines += [[layout.left, y, layout.right, y] for y in ys]
        self.sheet.lines(
            [line for line in lines if np.isfinite(line).all()], self.stroke(self.ink.limit, 1.0, True)
        )

    def _chosen_row(self) -> None:
        layout, chosen = self.layout, self.layout.content.chosen
        assert chosen is not None
        for row, opacity in ((chosen.row, 0.18), (chosen.pointed, 0.06)):
            if row is not None:
                low, high = sorted(layout.along_y([row - 0.5, row + 0.5]).tolist())
                self.sheet.rects([[layout.left, low, layout.width, high - low]], Fill(self.ink.mark, opacity))

    def _chosen(self) -> None:
        layout, chosen, ink = self.layout, self.layout.content.chosen, self.ink
        if chosen is None or chosen.x is None:
            return
        x = float(layout.px(chosen.x))
        self.sheet.lines([[x, layout.top, x, layout.bottom]], self.stroke(ink.fit, 1.0, ink.dashed))
        if chosen.y is not None:
            y = min(max(float(layout.py(chosen.y)), layout.top), layout.bottom)
            self.sheet.circle(x, y, 4 * self.pixel, Fill(ink.fit), None)

    # ---- series

    def _places(self, series: Series) -> Floats:
        return np.stack(self.layout.marks(series), axis=1)

    def _band(self, series: Series, _number: int) -> None:
        low, high = self.layout.ends(series)
        x, _ = self.layout.marks(series)
        seen = np.isfinite(x) & np.isfinite(low) & np.isfinite(high)
        edge = np.concatenate([np.stack([x, high], axis=1)[seen], np.stack([x, low], axis=1)[seen][::-1]])
        if edge.size:
            self.sheet.area(edge, Fill(self.colour(series), chart.band_opacity(series)))

    def _line(self, series: Series, _number: int) -> None:
        places = self._places(series)
        seen = np.isfinite(places.sum(axis=1))
        stroke = self.stroke(self.colour(series), series.width, series.dashed)
        for piece in np.split(np.arange(seen.size), np.flatnonzero(np.diff(seen)) + 1):
            if piece.size > 1 and seen[piece[0]]:
                self.sheet.line(places[piece], stroke)

    def _segments(self, series: Series, _number: int) -> None:
        ends = self._places(series).reshape(-1, 4)
        if self.dotted_segments and len(ends) > MANY:
            self._cloud(series, 1)
            return
        self.sheet.lines(ends, self.stroke(self.colour(series), series.width, series.dashed))

    def _bars(self, series: Series, number: int) -> None:
        rects, picked = self.layout.bars(series), set(series.picked(self.layout.content.selected).tolist())
        for faint in (False, True):
            these = [k for k in range(series.x.size) if (k in series.faint) == faint]
            if these:
                self.sheet.rects(rects[these], self.fill(series, number, 0.31 if faint else series.opacity))
        if series.opacity == 1:
            for k, rect in enumerate(rects.tolist()):
                self._frame(rect, self.stroke(self.ink.text, 2.0) if k in picked else None)

    def _whiskers(self, series: Series, _number: int, width: float = 1.4, cap: float = 0.22) -> None:
        low, high = self.layout.ends(series)
        x, y = self.layout.marks(series)
        across, beam = self.layout.content.horizontal_bars, cap * self.layout.line
        lines = []
        for c, a, b in zip((y if across else x).tolist(), low.tolist(), high.tolist(), strict=True):
            if math.isfinite(a) and math.isfinite(b) and math.isfinite(c):
                ends = [(c, a, c, b)]
                if cap:
                    ends += [(c - beam, a, c + beam, a), (c - beam, b, c + beam, b)]
                lines += [(q, p, s, r) for p, q, r, s in ends] if across else ends
        if lines:
            self.sheet.lines(lines, self.stroke(self.colour(series), width))

    def _points(self, series: Series, number: int) -> None:
        if series.low is not None and series.high is not None:
            self._whiskers(series, number, 1.0, 0.0)
        places = self._places(series)
        seen = np.flatnonzero(np.isfinite(places).all(axis=1))
        if seen.size > MANY:
            self._cloud(series, self.dot[1])
            seen = seen[:0]
        reach = 0.24 * self.layout.line * series.size
        dim = np.isin(seen, list(series.faint))
        self._marks(series, places[seen[~dim]], reach)
        self._marks(series, places[seen[dim]], reach, _FAINT)
        for k in series.picked(self.layout.content.selected).tolist():
            if np.isfinite(places[k]).all():
                x, y = places[k].tolist()
                self.sheet.circle(x, y, reach + 4 * self.pixel, None, self.stroke(self.ink.text, 2.0))

    def _cloud(self, series: Series, side: float) -> None:
        """Dots instead of marks: one where many would lie."""
        for faint in (True, False) if series.faint else (False,):
            dots = self.layout.dots(series, self.dot[0], faint=faint) * self.dot[0]
            self.sheet.dots(dots, side, Fill(self.colour(series), _FAINT if faint else 1.0))

    def _marks(self, series: Series, places: ArrayLike, reach: float, opacity: float = 1.0) -> None:
        colour = self.colour(series)
        if opacity < 1:
            colour = mix(colour, self.ink.ground, opacity).name()
        open_ = series.hollow or series.mark in ("cross", "plus")
        stroke = self.stroke(colour, 2.0 if series.hollow else 1.4)
        outlines = chart.OUTLINES.get(series.mark, ())
        self.sheet.marks(places, outlines, reach, None if open_ else Fill(colour), stroke)

    def _boxes(self, _series: Series, _number: int) -> None:
        """Words in frames, which `_words` draws."""

    def _cells(self, cells: chart.Cells) -> None:
        layout, sheet = self.layout, self.sheet
        parts = cells.parts
        rgb = chart.ramp(cells.colours, parts, self._dark)
        filled = np.isfinite(parts)
        rows, columns = parts.shape
        w, h = layout.width / columns, layout.height / rows
        sheet.cells(rgb, filled, (layout.left, layout.top, layout.width, layout.height))
        if cells.numbers:
            missing = [layout.cell(i, j) for i, j in np.argwhere(~filled).tolist()]
            if missing:
                sheet.rects(missing, Fill(self.ink.ground, 1.0, "\\", self.ink.muted))
            ground = Stroke(self.ink.ground, 2 * self.pixel)
            ys = [layout.top + k * h for k in range(1, rows)]
            xs = [layout.left + k * w for k in range(1, columns)]
            sheet.lines([[layout.left, y, layout.right, y] for y in ys], ground)
            sheet.lines([[x, layout.top, x, layout.bottom] for x in xs], ground)
        for i, j, word in layout.cell_words:
            light = (int(rgb[i, j].max()) + int(rgb[i, j].min())) / 510 >= 0.5
            self._word(word, "#101010" if light else "#ffffff")
        if cells.selected is not None:
            # A frame that is seen on every colour: the ground's inside the selection's.
            for colour, width, inset in ((self.ink.mark, 3.0, 0.5), (self.ink.ground, 1.5, 2.5)):
                (x, y, w, h), by = layout.cell(*cells.selected), inset * self.pixel
                self._frame((x + by, y + by, w - 2 * by, h - 2 * by), self.stroke(colour, width))

    @property
    def _dark(self) -> bool:
        return sum(int(self.ink.ground[k : k + 2], 16) for k in (1, 3, 5)) < 384

    def _scale(self, cells: chart.Cells, box: tuple[float, float, float, float]) -> None:
        x, y, w, h = box
        low, high = cells.ends
        steps = 64 if high > low else 1
        colours = chart.ramp(cells.colours, np.linspace(1, 0, steps) if steps > 1 else np.ones(1), self._dark)
        for k, colour in enumerate(colours.tolist()):
            top, bottom = y + h * k / steps, y + h * (k + 1) / steps
            self.sheet.rects([[x, top, w, bottom - top]], Fill("#{:02x}{:02x}{:02x}".format(*colour)))
        self._frame(box)

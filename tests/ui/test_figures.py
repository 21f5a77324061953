"""Figures as files: nothing leaves the sheet, what is drawn is the curve, text stays text, styles differ."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QByteArray
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication

from desktop.core.contrast import Contrast, Phased, align, place
from desktop.core.curve import StepCurve
from desktop.core.gantt import NO_REGION, OTHER_REGION
from desktop.core.labels import ACTIVITIES, FIGURES
from desktop.core.phase_stats import phase_table
from desktop.core.phases import PhaseFit, fit_breakpoints, sweep
from desktop.core.selection import suggest
from desktop.data.material import Bars, Mark, Material, tables
from desktop.printing import printable
from desktop.ui import figures
from desktop.ui.app import load_font
from desktop.ui.drawing import Fill, QtSheet, Stroke, SvgSheet, fitted, text_width
from desktop.ui.figures import Look
from desktop.ui.plots.raster import mix
from desktop.ui.settings import COLOUR_SETS
from desktop.ui.theme import DARK, LIGHT, coloured

SVG = "{http://www.w3.org/2000/svg}"
STYLES = ("colour", "grey", "patterns")


@pytest.fixture(autouse=True, scope="module")
def font(qapp: QApplication) -> None:
    load_font(qapp)


def material(levels: list[float], n: int = 3, title: str = "run", names: tuple[str, ...] = ()) -> Material:
    """A curve of one second a level, with idle time on top and a timeline whose rows differ."""
    edges = np.arange(len(levels) + 1, dtype=float)
    most = max(levels)
    curve = StepCurve(edges, levels, most)
    swept = sweep(curve, "quadratic", 6)
    fit = swept.fit(n)
    rows = names or tuple(f"rank {k}" for k in range(5))
    return Material(
        title,
        curve,
        {"computing": curve, "idle": StepCurve(edges, most - np.array(levels), most)},
        fit,
        tuple(phase_table(curve, fit)),
        swept,
        suggest(swept),
        timeline_of(rows, float(edges[-1])),
        (Mark(1.0, "here"), Mark(2.0, "a stretch of time", 4.5), Mark(2.1, "and another remark")),
        compared(title, curve, fit),
    )


def timeline_of(rows: tuple[str, ...], end: float, columns: int = 40) -> Bars:
    """A timeline in which every row spends other parts of each column in each class."""
    cells = np.arange(len(rows) * columns * len(ACTIVITIES)).reshape(len(rows), columns, -1) * 7919 % 100
    ticks = np.maximum(cells - 60, 0) * (1000 // cells.max(initial=1) // len(ACTIVITIES))
    return Bars(
        rows,
        (1,) * len(rows),
        np.arange(columns + 1, dtype=np.int64) * 1000,
        end / columns / 1000,
        ticks.astype(np.int64),
        tuple(ACTIVITIES),
    )


def compared(title: str, curve: StepCurve, fit: PhaseFit) -> Contrast:
    """With a run that is half as busy and has idled before."""
    edges = np.append(0.0, curve.edges + 4.0)
    other = StepCurve(edges, np.append(0.0, curve.level / 2), curve.capacity)
    second = Phased(f"{title}, again", other, sweep(other, "quadratic", 6).fit(4))
    alignment = align([Phased(title, curve, fit), second])
    return Contrast(alignment, place(alignment, "phases"))


WAVE = [4.0, 4, 6, 7, 2, 1, 1, 3, 8, 8, 8, 5, 0, 4, 4, 7]


def walk(root: ElementTree.Element) -> Iterator[ElementTree.Element]:
    return (element for element in root.iter() if element.tag == f"{SVG}text")


def extent(text: ElementTree.Element) -> tuple[float, float, float, float]:
    """Left, top, right, bottom of a text of an SVG, mm."""
    x, y, size = (float(text.attrib[name]) for name in ("x", "y", "font-size"))
    bold = text.attrib.get("font-weight") == "bold"
    wide = text_width(text.text or "", size, bold=bold)
    before = {"start": 0.0, "middle": wide / 2, "end": wide}[text.attrib.get("text-anchor", "start")]
    up, down = 0.76 * size, 0.24 * size
    if "transform" in text.attrib:  # turned to be read from the right
        return x - up, y - (wide - before), x + down, y + before
    return x - before, y - up, x - before + wide, y + down


@settings(max_examples=60, deadline=None)
@example("residual", 90.0, 60.0, 12.0, "colour", 1, 1.0)  # no room for a row of annotations
@given(
    st.sampled_from(sorted(FIGURES)),
    st.floats(90, 400),
    st.floats(60, 250),
    st.floats(5, 12),
    st.sampled_from(STYLES),
    st.integers(1, 6),
    st.floats(1e-6, 1e6),
)
def test_no_text_leaves_the_sheet(
    figure: str, width: float, height: float, points: float, style: Any, n: int, high: float
) -> None:
    """Neither large levels, nor long titles, nor long names of rows push a text over the edge."""
    made = material([v * high for v in WAVE], n, "a name " * 30, tuple("a long name " * k for k in range(9)))
    look = Look(width=width, height=height, points=points, style=style)
    root = ElementTree.fromstring(figures.svg(figure, made, look))
    assert root.attrib["viewBox"].split()[:2] == ["0", "0"]
    for text in walk(root):
        left, top, right, bottom = extent(text)
        assert left >= -0.05 and right <= width + 0.05, (text.text, left, right)
        assert top >= -0.05 and bottom <= height + 0.05, (text.text, top, bottom)


def test_the_curve_drawn_is_the_curve() -> None:
    """The line of an exact curve, read back from the SVG, has its levels over its times."""
    made = material(WAVE)
    look = Look(width=200, height=100)
    root = ElementTree.fromstring(figures.svg("curve", made, look))
    colour = figures.ink(look).curve
    paths = [p.attrib["d"] for p in root.iter(f"{SVG}path") if p.attrib.get("stroke") == colour]
    line = max(paths, key=len)
    points = np.array([[float(v) for v in pair.split()] for pair in re.split("[ML]", line)[1:]])
    assert points.shape == (2 * len(WAVE), 2)
    x, y = points[:, 0], points[:, 1]
    times = (x - x[0]) / (x[-1] - x[0]) * len(WAVE)
    assert times[::2] == pytest.approx(np.arange(len(WAVE)), abs=0.01)
    levels = np.array(WAVE)
    zero, eight = y[2 * WAVE.index(0.0)], y[2 * WAVE.index(8.0)]
    assert 8 * (y[::2] - zero) / (eight - zero) == pytest.approx(levels, abs=0.01)
    assert (y[::2] == y[1::2]).all()


def test_the_compared_curves_are_those_of_the_axis() -> None:
    made = material(WAVE)
    assert made.contrast is not None
    root = ElementTree.fromstring(figures.svg("comparison", made, Look(width=200, height=120)))
    placed, colours = made.contrast.placement, figures.ink(Look()).runs
    lines: list[list[np.ndarray]] = []
    for colour in colours[: len(placed.curves)]:
        paths = [p.attrib["d"] for p in root.iter(f"{SVG}path") if p.attrib.get("stroke") == colour]
        points = [
            np.array([[float(v) for v in pair.split()] for pair in re.split("[ML]", d)[1:]]) for d in paths
        ]
        # A run is drawn where it has phases; where it is not, there is no line.
        lines.append([p for p in points if len(p) > 2 and p[:, 1].max() < 80])
    curve, (line,) = placed.curves[0], lines[0]
    assert len(line) == 2 * curve.segments
    x, y = line[::2].T
    scale = np.polyfit(x, curve.edges[:-1] * curve.unit, 1)
    level = np.polyfit(y, curve.level, 1)
    for curve, own in zip(placed.curves, lines, strict=True):
        assert own
        for part in own:
            middle = np.polyval(scale, (part[::2, 0] + part[1::2, 0]) / 2)
            assert np.polyval(level, part[::2, 1]) == pytest.approx(curve.at(middle), abs=0.05)
    shown = sum(float(np.diff(np.polyval(scale, part[[0, -1], 0]))[0]) for part in lines[1])
    expected = sum(float(b - a) for a, b in placed.spans[1])
    assert shown == pytest.approx(expected, abs=0.1)
    names = [text.text for text in walk(root)]
    assert "run (reference): 8 processors, 16.00 s" in names and "Difference (proc)" in names
    assert "run, again: 8 processors, 20.00 s" in names
    data = tables(made, "comparison")
    assert set(data) == {"cells", "run1", "run2", "difference2"}
    rows = list(data["difference2"])[1:]
    assert sum((end - start) * level for start, end, level in rows) == pytest.approx(  # type: ignore[operator]
        placed.areas[1].signed if placed.areas[1] else None
    )


def test_a_parabola_is_one_exact_curve() -> None:
    made = material(WAVE, 1)
    assert made.fit.degree.tolist() == [2]
    root = ElementTree.fromstring(figures.svg("curve", made, Look(width=200, height=100)))
    bends = [re.findall(r"-?[\d.]+", p.attrib["d"]) for p in root.iter(f"{SVG}path") if "Q" in p.attrib["d"]]
    x0, y0, xc, yc, x1, y1 = map(float, bends[-1])
    assert xc == pytest.approx((x0 + x1) / 2, abs=0.02)
    middle = (y0 + 2 * yc + y1) / 4  # of a Bezier curve at its half
    start, half, end = made.fit.value([0.0, 8.0, 16.0])
    assert (middle - y0) / (y1 - y0) == pytest.approx((half - start) / (end - start), abs=0.01)


nasty = st.text(
    st.one_of(st.characters(), st.sampled_from("<>&\"'\x00\x1b\u202e\ufffe\ud800")), min_size=1, max_size=20
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(nasty, nasty, nasty)
def test_texts_of_a_trace_stay_texts(title: str, row: str, mark: str) -> None:
    made = material(WAVE, 2, title, (row, "b"))
    made.marks[0].__dict__["text"] = mark
    plain = ElementTree.fromstring(figures.svg("timeline", material(WAVE, 2, "x", ("a", "b")), Look()))
    for figure in ("timeline", "curve"):
        svg = figures.svg(figure, made, Look(width=300))
        root = ElementTree.fromstring(svg)
        assert not set(svg) & set(map(chr, range(32))) - {"\n"}
        known = {e.tag for e in plain.iter()} | {f"{SVG}{tag}" for tag in ("clipPath", "rect", "g")}
        assert {e.tag for e in root.iter()} <= known
        shown = [text.text or "" for text in walk(root)]
        for name in (row,) if figure == "timeline" else (mark,):
            assert fitted(name, 9 * 25.4 / 72, 75) in shown or not printable(name)


@pytest.mark.parametrize("figure", sorted(FIGURES))
@pytest.mark.parametrize("style", STYLES)
def test_svg_and_pixels_show_the_same(figure: str, style: Any) -> None:
    """Qt's own SVG renderer, which knows nothing of how we draw, makes the same picture of our SVG."""
    made, look = material(WAVE), Look(width=160, height=90, style=style)
    ours = figures.image(figure, made, look, 100)
    theirs = QImage(ours.size(), QImage.Format.Format_RGB32)
    theirs.fill(QColor("white"))
    renderer = QSvgRenderer(QByteArray(figures.svg(figure, made, look).encode()))
    assert renderer.isValid()
    with QPainter(theirs) as painter:
        renderer.render(painter)
    a, b = (blurred(image) for image in (ours, theirs))
    # Patterns begin elsewhere in Qt's renderer, which keeps their cells in pixels.
    assert np.abs(a - b).mean() < (7 if style == "patterns" else 4)
    assert (a.max() - a.min()) > 60, "nothing is drawn"


def blurred(image: QImage) -> np.ndarray:
    """Mean brightness of squares of 5 by 5 pixels."""
    grey = image.convertToFormat(QImage.Format.Format_Grayscale8)
    pixels = np.frombuffer(grey.constBits(), np.uint8).reshape(grey.height(), grey.bytesPerLine())
    high, wide = grey.height() // 5 * 5, grey.width() // 5 * 5
    return pixels[:high, :wide].reshape(high // 5, 5, wide // 5, 5).mean(axis=(1, 3))


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_styles_tell_areas_apart_without_colour() -> None:
    grey = figures.ink(Look(style="grey"))
    for one, other in itertools.combinations((luminance(grey.areas[name].colour) for name in ACTIVITIES), 2):
        assert (max(one, other) + 0.05) / (min(one, other) + 0.05) > 1.1
    hatched = figures.ink(Look(style="patterns"))
    assert len({hatched.areas[name].hatch for name in ACTIVITIES}) == len(ACTIVITIES)
    for style in ("grey", "patterns"):
        svg = figures.svg("epsilon", material(WAVE, 2), Look(style=style))  # type: ignore[arg-type] # of two
        assert "stroke-dasharray" in svg
    assert "stroke-dasharray" not in figures.svg("epsilon", material(WAVE, 2), Look())
    assert figures.ink(Look(style="grey", dark=True)).ground == "#ffffff", "paper is white in any theme"


def test_png_and_pdf_have_the_size_asked_for() -> None:
    made, look = material(WAVE), Look(width=127, height=63.5)
    png = figures.file("curve", made, look, "png", 200)
    image = QImage.fromData(png)
    assert (image.width(), image.height()) == (1000, 500)
    assert image.dotsPerMeterX() == pytest.approx(200 / 0.0254, abs=1)
    assert figures.file("curve", made, look, "png", 200) == png
    pdf = figures.file("curve", made, look, "pdf")
    box = re.search(rb"/MediaBox \[([^\]]*)\]", pdf)
    assert box and [float(v) for v in box[1].split()] == pytest.approx([0, 0, 360, 180], abs=1)
    assert b"/FontFile2" in pdf and b"/Subtype /Image" not in pdf, "text and lines, not pixels"


def test_texts_can_be_replaced_and_the_view_be_narrowed() -> None:
    made = material(WAVE)
    words = {"title": "My title", "time": "Zeit", "processors": "Prozessoren", "fit": ""}
    svg = figures.svg("curve", made, Look(words=words, span=(3.0, 5.0)))
    shown = [text.text for text in walk(ElementTree.fromstring(svg))]
    assert "My title" in shown and "Prozessoren" in shown and "Zeit (s)" in shown
    assert "3.0" in shown and "5.0" in shown and "10" not in shown
    assert set(words) <= set(figures.texts("curve", made))
    with pytest.raises(ValueError, match="or more"):
        figures.svg("curve", made, Look(width=20))
    with pytest.raises(ValueError, match="no figure"):
        figures.svg("timeline", Material("x", made.curve, {}, made.fit, made.rows), Look())


@pytest.mark.parametrize("count", [1, 3, 12, 60])
def test_annotations_stand_where_no_curve_is(count: int) -> None:
    """Above the phases, none over another; those for which there is no room are counted."""
    notes = tuple(Mark(16.0 * k / count, f"remark number {k} on the run") for k in range(count))
    made = replace(material(WAVE), marks=notes)
    root = ElementTree.fromstring(figures.svg("curve", made, Look(width=160, height=90)))
    texts = [(text.text or "", extent(text)) for text in walk(root)]
    rail = next(box[1] for name, box in texts if name == "1")
    shown = [box for name, box in texts if name.startswith("rem")]
    left = [re.fullmatch(r"… and (\d+) more", name) for name, _ in texts]
    more = sum(int(found[1]) for found in left if found)
    assert len(shown) + more == count and shown and (more > 0) == (count == 60)
    assert all(bottom <= rail for _, _, _, bottom in shown)
    for one, other in itertools.combinations(shown, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


@pytest.mark.parametrize("dark", [False, True])
def test_the_chosen_colours_are_those_of_the_figure(dark: bool) -> None:
    made = material(WAVE)
    assert made.bars is not None
    by_region = replace(made, bars=replace(made.bars, shades=(3, 7, NO_REGION, 0, OTHER_REGION)))
    for name in COLOUR_SETS:
        theme = coloured(DARK if dark else LIGHT, name)
        look = Look(dark=dark, colours=name)
        for key in ACTIVITIES:
            assert figures.ink(look).areas[key].colour == getattr(theme, key)
            assert getattr(theme, key) in figures.svg("timeline", made, look)
        # Whatever a region is called, the figure's own texts stay.
        assert by_region.bars is not None
        called = replace(by_region, bars=replace(by_region.bars, classes=("title", "time", "a", "b", "c")))
        assert figures.texts("timeline", called)["title"] == "Timeline: run"
        svg = figures.svg("timeline", by_region, look)
        share = 0.78 if dark else 0.85
        assert all(mix(theme.regions[k], theme.background, share).name() in svg for k in (0, 3, 7))
        assert theme.curve in figures.svg("curve", made, look)


def test_heights_in_a_row_are_parts_of_its_time() -> None:
    """Read back from the SVG: each class covers of the rows what it takes of their time."""
    made = material(WAVE)
    assert made.bars is not None
    look = Look(width=200, height=100)
    root = ElementTree.fromstring(figures.svg("timeline", made, look))
    areas = []
    for name in made.bars.classes:
        colour = figures.ink(look).areas[name].colour
        paths = [p.attrib["d"] for p in root.iter(f"{SVG}path") if p.attrib.get("fill") == colour]
        area = 0.0
        for path in (path for path in paths if "h" not in path):  # others are swatches
            x, y = np.array([pair.split() for pair in re.split("[ML]", path.rstrip("Z"))[1:]], float).T
            area += abs(float(x @ np.roll(y, 1) - np.roll(x, 1) @ y)) / 2
        areas.append(area)
    # Each reaches down to the bottom of its row, under those of the classes below it.
    parts = np.diff(areas, prepend=0.0)
    expected = made.bars.shares.sum(axis=(0, 1))
    assert parts / parts.sum() == pytest.approx(expected / expected.sum(), abs=2e-3)


def test_the_error_that_is_shown_is_that_of_the_fit() -> None:
    """Breaks set by hand are no best fit, and its figure and its data say so."""
    best = material(WAVE)
    by_hand = fit_breakpoints(best.curve, [0.0, 3.0, 9.0, 16.0], "quadratic")
    made = replace(best, fit=by_hand, rows=tuple(phase_table(best.curve, by_hand)))
    heads, *rows = tables(made, "epsilon")["epsilon"]
    told = [dict(zip(heads, row, strict=True)) for row in rows]
    assert [row["epsilon"] for row in told if row["shown"]] == [by_hand.epsilon]
    assert len(told) == 7 and len(list(tables(best, "epsilon")["epsilon"])) == 7

    def dots(of: Material) -> list[float]:
        circles = ElementTree.fromstring(figures.svg("epsilon", of, Look())).iter(f"{SVG}circle")
        fill = figures.ink(Look()).fit
        return [float(c.attrib["cy"]) for c in circles if c.attrib.get("fill") == fill]

    (shown, legend), (least, same) = dots(made), dots(best)
    assert shown != least and legend == same, "one in the chart, and one that explains it"


def test_many_steps_keep_every_peak() -> None:
    """A single step among a hundred thousand is seen in the band of extremes."""
    levels = np.ones(100_000)
    levels[61_803] = 9.0
    curve = StepCurve(np.arange(levels.size + 1.0), levels, 10)
    fit = sweep(curve, "constant", 1).fit(1)
    made = Material("x", curve, {"computing": curve}, fit, tuple(phase_table(curve, fit)))
    look = Look(width=160, height=80)
    band = figures.ink(look).curve
    svg = figures.svg("curve", made, look)
    assert len(svg) < 300_000
    paths = [
        p.attrib["d"]
        for p in ElementTree.fromstring(svg).iter(f"{SVG}path")
        if p.attrib.get("fill") == band and "fill-opacity" in p.attrib
    ]
    area = max(paths, key=len)
    y = np.array([float(pair.split()[1]) for pair in re.split("[ML]", area.rstrip("Z"))[1:]])
    assert y.max() - y.min() > 0.75 * (80 - 25) * 8 / 10.4


def test_layers_together_are_the_figure(qapp: QApplication) -> None:
    made = material(WAVE)
    images = []
    for layers in (("all",), ("below", "above")):
        image = QImage(640, 360, QImage.Format.Format_RGB32)
        image.fill(QColor("white"))
        with QPainter(image) as painter:
            for layer in layers:
                look = Look(width=160, height=90, layer=layer)  # type: ignore[arg-type] # of three words
                figures.draw(QtSheet(painter, 160, 90, 4.0), "curve", made, look)
        images.append(image)
    a, b = (blurred(image) for image in images)
    assert np.abs(a - b).mean() < 0.5


def test_what_a_sheet_draws_it_draws_on_both() -> None:
    """Circles and areas come out alike in SVG and in pixels, and hatches as dark; where their lines begin is
    for the renderer, and Qt's turns no patterns and knows no clips."""
    for hatch in ("", "x", "-", "."):
        svg = SvgSheet(40, 30)
        image = QImage(400, 300, QImage.Format.Format_RGB32)
        image.fill(QColor("white"))
        with QPainter(image) as painter:
            for sheet in (svg, QtSheet(painter, 40, 30, 10.0)):
                fill = Fill("#dddddd", 1.0, hatch, "#000000")  # type: ignore[arg-type] # of the six
                sheet.rects([[5, 5, 20, 20]], fill)
                sheet.circle(15, 15, 4, Fill("#ff0000"), Stroke("#0000ff", 0.5))
        other = QImage(400, 300, QImage.Format.Format_RGB32)
        other.fill(QColor("white"))
        with QPainter(other) as painter:
            QSvgRenderer(QByteArray(svg.svg("t").encode())).render(painter)
        a, b = blurred(image), blurred(other)
        if not hatch:
            assert np.abs(a - b).mean() < 1
        assert a.mean() == pytest.approx(b.mean(), abs=8), hatch
        assert a[2, 2] == 255 and a[20, 20] < 240
    image.fill(QColor("white"))
    with QPainter(image) as painter:
        sheet = QtSheet(painter, 40, 30, 10.0)
        with sheet.clipped(5, 5, 20, 20):
            sheet.rects([[0, 0, 40, 30]], Fill("#000000"))
        sheet.rects([[35, 25, 5, 5]], Fill("#000000"))
    dark = np.argwhere(blurred(image) < 128)
    assert len(dark) == 40 * 40 + 10 * 10, "a clip ends with its block"

"""A chart in the window and the same chart on a sheet state the same: values, marks, ticks, words, titles."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyqtgraph as pg
import pytest
from PySide6.QtCore import QBuffer, QIODevice, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from desktop.core import phases
from desktop.core.accounts import Account
from desktop.core.array_search import LevelMean
from desktop.core.curve import StepCurve
from desktop.core.effect_tables import dose, over_processors
from desktop.core.effects import analyse, trials
from desktop.core.iterations import Repeat, fold
from desktop.core.phase_model import ScalingRuns, model_phases
from desktop.core.phase_stats import Firm
from desktop.core.response_power import powers
from desktop.data import chart, phase_scaling_words
from desktop.data.chart import Axis, AxisChoice, Content, Layout, Series
from desktop.data.following import Followed
from desktop.data.iteration_charts import fold_chart
from desktop.data.iterations import Level
from desktop.resources import example_table
from desktop.ui import chart_sheet, drawing, figures
from desktop.ui.app import load_font
from desktop.ui.experiment import charts
from desktop.ui.experiment.compare import _level_means
from desktop.ui.exporting import ChartDialog
from desktop.ui.figures import Look
from desktop.ui.model import contents
from desktop.ui.panels import statistics
from desktop.ui.panels.messages import MessagesPanel
from desktop.ui.plots import plot_menu
from desktop.ui.plots.chart import Chart, _WindowPainter
from desktop.ui.plots.plot_menu import AxisDialog
from desktop.ui.plots.raster import mix
from desktop.ui.plots.sweep_plots import BreakpointPicture, EpsilonPlot
from desktop.ui.theme import DARK, LIGHT
from desktop.ui.watch_page import _processors
from desktop.workbench.effect_comparison import ScaledEffect
from desktop.workbench.modelling import ModelBench
from tests.inline import Inline

# A tool tip raises its window, which the offscreen platform cannot.
pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints", "does not support raise")

FIRST = np.arange(3.0)
RNG = np.random.default_rng(3)
SVG = "{http://www.w3.org/2000/svg}"


def effects() -> tuple[Any, Any, Any]:
    names = ("loop A", "loop B", "sort", "exchange")
    x = np.array([[1 if k >> j & 1 else -1 for j in range(4)] for k in range(16)] * 2, float)
    y = 40 + x @ np.array([4, -2.5, 1, 0.1]) + 1.5 * x[:, 0] * x[:, 1] + RNG.normal(size=32) * 0.5
    y[7] += 5
    data = trials(names, x, y, np.repeat([0, 1], 16))
    every = analyse(data)
    return analyse(data, terms=[e.members for e in every.effects][:10]), every, data


def steps() -> StepCurve:
    levels = np.concatenate([RNG.integers(2, 6, 30), RNG.integers(9, 13, 40), RNG.integers(4, 8, 30)])
    return StepCurve(np.arange(101) * 10, levels.astype(float), 16)


def matrix() -> Content:
    sender, receiver = np.nonzero(RNG.random((9, 9)) < 0.4)
    names = tuple(f"rank {k}" for k in range(9))
    holder: Any = QWidget()  # for its translations
    weight = RNG.integers(100, 10**6, sender.size)
    return MessagesPanel._matrix(holder, sender, receiver, weight, names, "B")[0]


def iterations() -> Content:
    edges = np.concatenate([[0.0], np.cumsum(np.repeat([0.8, 0.2], 12) + 0.01 * RNG.random(24))])
    curve = StepCurve(edges, np.tile([7.0, 2.0], 12), 8)
    loop = Repeat(edges[::2], np.ones(12, bool))
    level = Level(loop, "events", "solve", fold(curve, loop, bins=20), (), 0)
    firm = Firm(0.75, 0.85, 0.95, 12, 12, "iterations")
    return fold_chart(level, phases.fit(level.fold.curve(8), 2, "constant"), [firm])


def scaled_phases() -> Any:
    p = np.array([2.0, 4.0, 8.0, 16.0])
    duration = np.stack([0.5 + 0 * p, 40 / p], axis=1)
    parts = np.stack([duration * 0.9, duration * 0.1], axis=2)
    names, kinds = tuple(f"run {x:g}" for x in p), ("Computing", "Moving data")
    return model_phases(ScalingRuns(names, ("read", "solve"), p, duration, parts, parts, kinds))


def of_a_range() -> Any:
    """What the statistics of a range say of its four locations."""
    return SimpleNamespace(
        levels=np.array([0.0, 1.0, 3.0]), shares=np.array([0.1, 0.3, 0.6]), processors=4, computing=2.1,
        is_processor=np.array([True, True, False, True]), utilization=np.array([0.5, 0.9, 0.0, 0.7]),
        parallel_efficiency=0.7, duration_s=4.0,
        account_parts=lambda: [(Account.COMPUTING, 0.7), (Account.MOVING, 0.3)],
    )  # fmt: skip


#: The functions of the program that have made a chart for these tests.
MADE: set[tuple[str, str]] = set()


@pytest.fixture(scope="module")
def kinds(qapp: QApplication) -> Iterator[dict[str, Content]]:
    """A chart of every kind that the program draws."""
    make = Content.__init__

    def noted(self: Content, *given: Any, **named: Any) -> None:
        by = sys._getframe(1).f_code
        MADE.add((Path(by.co_filename).name, by.co_name))
        make(self, *given, **named)

    load_font(qapp)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Content, "__init__", noted)
        yield every_kind()


def every_kind() -> dict[str, Content]:
    found, every, data = effects()
    bench = ModelBench(executors={"fit": Inline(), "more": Inline()})
    bench.open(example_table())
    shown = bench.snapshot
    d, p = np.array([1.0, 2, 4, 8]), np.array([2.0, 4, 8, 16])
    doses = [("loop A", dose(d, 2 * d + 0.1, 0.1 * d)), ("sort", dose(d, 0.3 * d**1.4, 0.1 * d))]
    scaled = [ScaledEffect("sort", tuple(p), tuple(20 / p + 1), (0.2,) * 4, over_processors(p, 20 / p + 1))]
    sweep = phases.sweep(steps(), "mixed", 12)
    epsilon, breaks = EpsilonPlot(), BreakpointPicture()
    epsilon.set_sweep(sweep.epsilon, 3, "mixed", int(sweep.n[0]))
    breaks.set_sweep([(f.breaks, f.breakpoint_low, f.breakpoint_high) for f in sweep.fits], int(sweep.n[0]))
    for plot in (epsilon, breaks):
        plot.set_n(5)
    return {
        "half-normal": charts.half_normal(found, every, False, "s", every.effects[0].term),
        "pareto": charts.pareto(found, every, False, "s", every.effects[1].term),
        "main effects": charts.main_effects(found, every, "time (s)", ""),
        "interaction": charts.interaction(found, "loop A", "loop B", "time (s)"),
        "effect residuals": charts.residuals(found, charts.RESIDUALS[1], "time (s)"),
        "delay sizes": charts.over_delay(doses, ["loop A", "sort"], "s", "", False),
        "over processors": charts.over_scale(scaled, ["sort"], "s", ""),
        "region in phases": charts.in_phases(FIRST, FIRST + 1, FIRST / 4, "r"),
        "cube": charts.cube(("A", "B", "C"), {c: 40.0 + k for k, c in enumerate(charts.CORNERS)}, "s")[0],
        "scaling": contents.scaling(shown, "time", "cell", True)[0],
        "scaling of all codes": contents.scaling(shown, "efficiency", "system", True)[0],
        "model residuals": contents.residuals(shown, "system")[0],
        "quantiles": contents.quantiles(shown)[0],
        "relative": contents.relative(shown, "speed")[0],
        "shares": contents.shares(shown)[0],
        "cells": contents.cells(shown, "error")[0],
        "matrix": matrix(),
        "epsilon": epsilon.content,
        "breakpoints": breaks.content,
        "powers": charts.powers(powers(data, True), 1.0),
        "power": charts.power(2.0, 1.0, 8, 8.0, 3),
        "level means": _level_means([LevelMean("A", k, 4.0 + k, 2) for k in (0.0, 1.0, 2.0)], ["A"], "s"),
        "iterations": iterations(),
        "phases over p": phase_scaling_words.chart(scaled_phases()),
        "efficiencies over p": phase_scaling_words.chart(scaled_phases(), "efficiency"),
        "concurrency": statistics._concurrency("run", of_a_range())[0],
        "utilization": statistics._utilization("run", of_a_range(), ("a", "b", "c", "d"))[0],
        "accounts": statistics.accounts("run", of_a_range(), "")[0],
        "watched processors": _processors(
            Followed(names=("rank 0", "rank 1"), share=RNG.random((2, 12)), edges_s=np.linspace(0, 3, 13))
        ),
    }  # fmt: skip


KINDS = (
    "half-normal", "pareto", "main effects", "interaction", "effect residuals", "delay sizes",
    "over processors", "region in phases", "cube", "scaling", "scaling of all codes", "model residuals",
    "quantiles", "relative", "shares", "cells", "matrix", "epsilon", "breakpoints", "powers", "power",
    "level means", "iterations", "phases over p", "efficiencies over p", "concurrency", "utilization",
    "accounts", "watched processors",
)  # fmt: skip


def test_no_chart_of_the_program_is_left_out(kinds: dict[str, Content]) -> None:
    """Every function that puts a chart together has made one of them."""
    assert set(kinds) == set(KINDS)
    found: set[tuple[str, str]] = set()

    def walk(node: ast.AST, file: str, function: str) -> None:
        if isinstance(node, ast.FunctionDef):
            function = node.name
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Content":
            only_words = {one.arg for one in node.keywords} <= {"empty"} and len(node.args) < 3
            if not only_words:
                found.add((file, function))
        for child in ast.iter_child_nodes(node):
            walk(child, file, function)

    for path in Path(chart.__file__).parents[1].rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "Content(" in text:
            walk(ast.parse(text), path.name, "")
    assert len(found) > 20
    assert found <= MADE, f"drawn by no test: {found - MADE}"


@pytest.fixture
def drawn(qtbot: QtBot, kinds: dict[str, Content]) -> Callable[[str], Chart]:
    def draw(name: str) -> Chart:
        made = Chart(name)
        qtbot.addWidget(made)
        made.resize(680, 460)
        made.set_content(kinds[name])
        made.show()
        made.grab()
        return made

    return draw


# ------------------------------------------------------------------ what the window states


def spoken(plot: Chart) -> str:
    """All that the window writes, without spaces: Qt draws a text in runs of one font each."""
    plot.grab()
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QSvgGenerator()
    writer.setOutputDevice(buffer)
    writer.setSize(plot.size())
    with QPainter(writer) as painter:
        painter.setFont(plot.font())
        plot.render(painter, QRectF(plot.rect()), plot.rect())
        if plot.content.shown:
            drawn = _WindowPainter(painter, plot.size(), plot.current_layout, LIGHT, LIGHT.selection)
            drawn.paint()
    root = ElementTree.fromstring(bytes(buffer.data().data()))
    return bare(*("".join(node.itertext()) for node in root.iter(f"{SVG}text")))


def bare(*texts: str) -> str:
    return re.sub(r"\s", "", "".join(texts))


def same_words(plot: Chart, texts: list[str]) -> None:
    """The window writes each of these texts, and nothing else."""
    assert Counter(filter(None, in_window(plot).texts)) == Counter(filter(None, texts))
    said = spoken(plot)
    assert Counter(said) == Counter(bare(*texts))
    assert not [text for text in texts if bare(text) not in said]


def points(values: Any) -> list[tuple[float, ...]]:
    """In an order that does not depend on who draws first."""
    if not len(values):
        return []
    found = np.round(np.asarray(values, float).reshape(len(values), -1), 5) + 0.0
    return sorted(map(tuple, found.tolist()))


class Recorder:
    """A sheet that notes what is drawn on it, by the part of the chart that draws."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.part = ""
        self.calls: list[tuple[str, str, Any]] = []

    def text(self, x: float, y: float, words: str, *_: Any, **__: Any) -> None:
        self.calls.append((self.part, "text", words))

    @contextmanager
    def clipped(self, *_: Any) -> Iterator[None]:
        yield

    def __getattr__(self, verb: str) -> Any:
        return lambda *given: self.calls.append((self.part, verb, given))

    def of(self, part: str, verb: str) -> list[Any]:
        return [given for p, v, given in self.calls if (p, v) == (part, verb)]

    @property
    def texts(self) -> list[str]:
        return [given for _, verb, given in self.calls if verb == "text"]


@contextmanager
def noting(sheet: Any) -> Iterator[None]:
    """Tell a recorder which part of the chart draws."""
    parts = (*(f"_{kind}" for kind in chart.KINDS), "_limits", "_chosen", "_chosen_row", "_cells", "_entry")
    with pytest.MonkeyPatch.context() as patch:
        for part in parts:
            method = getattr(chart_sheet.Painter, part)

            def noted(self: Any, *given: Any, method: Any = method, part: str = part) -> None:
                before, sheet.part = sheet.part, part if sheet.part in ("", part) else sheet.part
                method(self, *given)
                sheet.part = before

            patch.setattr(chart_sheet.Painter, part, noted)
        yield


def in_window(plot: Chart) -> Recorder:
    """What the window draws of the chart."""
    sheet: Any = Recorder(plot.width(), plot.height())
    with noting(sheet), pytest.MonkeyPatch.context() as patch:
        patch.setattr("desktop.ui.plots.chart._WindowSheet", lambda *_: sheet)
        plot._rebuild()
        plot.prepare(1.0)
        image = QImage(8, 8, QImage.Format.Format_RGB32)
        with QPainter(image) as painter:
            plot._paint_over(painter, QRectF(plot.rect()))
    plot._rebuild()
    return sheet


def on_sheet(plot: Chart) -> tuple[Recorder, Layout]:
    """The chart on a sheet in which text is as large, compared with all else, as in the window."""
    look = Look()
    em = look.points * drawing.MM_PER_POINT
    scale = chart_sheet.LINE * em / plot.current_layout.line
    sheet: Any = Recorder(plot.width() * scale, plot.height() * scale)
    with noting(sheet):
        chart_sheet.paint(sheet, plot.content, figures.ink(look), em)
    return sheet, chart_sheet.lay_out(sheet, plot.content, em, 0.0)


def values_at(laid: Layout, places: Any) -> np.ndarray:
    """Places on the sheet as values of the box; the layout's own arithmetic the other way round."""
    at = np.asarray(places, float).reshape(-1, 2)
    x = laid.x[0] + (at[:, 0] - laid.left) / laid.width * (laid.x[1] - laid.x[0])
    part = (at[:, 1] - laid.top) / laid.height
    part = part if laid.content.y.down else 1 - part
    return np.stack([x, laid.y[0] + part * (laid.y[1] - laid.y[0])], axis=1)


def facts_of(sheet: Recorder, laid: Layout) -> dict[str, list[Any]]:
    """What was drawn, in values of the box."""
    across = laid.content.horizontal_bars
    facts: dict[str, list[Any]] = {}
    marked = [np.asarray(places).reshape(-1, 2) for places, *_ in sheet.of("_points", "marks")]
    marked += [np.array([[x, y]]) for x, y, *_ in sheet.of("_points", "circle")]
    facts["points"] = values_at(laid, np.concatenate(marked)).tolist() if marked else []
    facts["lines"] = [p for path, _ in sheet.of("_line", "line") for p in values_at(laid, path).tolist()]
    facts["segments"] = [
        p for ends, _ in sheet.of("_segments", "lines") for p in values_at(laid, ends).reshape(-1, 4).tolist()
    ]
    facts["bars"] = []
    for rects, _ in sheet.of("_bars", "rects"):
        for x, y, w, h in np.asarray(rects).tolist():
            (x0, y1), (x1, y0) = values_at(laid, [(x, y), (x + w, y + h)]).tolist()
            facts["bars"].append(((y0 + y1) / 2, x0, x1) if across else ((x0 + x1) / 2, y0, y1))
    facts["band"] = [p for path, _ in sheet.of("_band", "area") for p in values_at(laid, path).tolist()]
    facts["spread"] = []
    for part in ("_whiskers", "_points"):
        for lines, _ in sheet.of(part, "lines"):
            for line in lines:
                (xa, ya), (xb, yb) = values_at(laid, np.reshape(line, (2, 2))).tolist()
                if across and abs(ya - yb) < 1e-9 and abs(xa - xb) > 1e-9:
                    facts["spread"].append((ya, xa, xb))
                elif not across and abs(xa - xb) < 1e-9:
                    facts["spread"].append((xa, ya, yb))
    facts["levels"] = []
    for lines, _ in sheet.of("_limits", "lines"):
        for line in lines:
            (xa, ya), (xb, _yb) = values_at(laid, np.reshape(line, (2, 2))).tolist()
            facts["levels"].append((1.0, xa) if abs(xa - xb) < 1e-9 else (0.0, ya))
    facts["chosen"] = [(1.0, values_at(laid, np.reshape(lines[0], (2, 2)))[0][0])
                       for lines, _ in sheet.of("_chosen", "lines")]  # fmt: skip
    facts["chosen"] += [values_at(laid, [(x, y)])[0].tolist() for x, y, *_ in sheet.of("_chosen", "circle")]
    for rects, _ in sheet.of("_chosen_row", "rects"):
        ((x, y, w, h),) = rects
        facts["chosen"].append(tuple(sorted(values_at(laid, [(x, y), (x + w, y + h)])[:, 1].tolist())))
    return facts


def facts_stated(content: Content, laid: Layout) -> dict[str, list[Any]]:
    """What the description itself says of marks, lines and bars, in values of the box."""
    facts: dict[str, list[Any]] = {what: [] for what in ("points", "lines", "segments", "bars")}
    across = content.horizontal_bars
    low = [ends[0] if axis.floor else np.nan for axis, ends in ((content.x, laid.x), (content.y, laid.y))]
    for series in content.series:
        values = (series.y, series.x) if across else (series.x, series.y)
        axes = zip((content.x, content.y), values, low, strict=True)
        places = np.stack([axis.place(v, floor) for axis, v, floor in axes], axis=1)
        seen = np.isfinite(places).all(axis=1)
        if series.kind == "points":
            chosen = np.isin(series.keys, list(content.selected)) if len(series.keys) else np.zeros(0, bool)
            facts["points"] += [*places[seen].tolist(), *places[np.flatnonzero(chosen)].tolist()]
        elif series.kind == "line":
            facts["lines"] += places[seen].tolist()
        elif series.kind == "segments":
            facts["segments"] += places.reshape(-1, 4).tolist()
        elif series.kind == "bars":
            base = np.zeros(series.x.size) if series.low is None else series.low
            ends = np.sort([base, series.y], axis=0).T.tolist()
            facts["bars"] += [(at, *both) for at, both in zip(series.x.tolist(), ends, strict=True)]
    return facts


@pytest.mark.parametrize("name", KINDS)
def test_window_and_sheet_state_the_same(drawn: Callable[[str], Chart], name: str) -> None:
    plot = drawn(name)
    (sheet, laid), layout = on_sheet(plot), plot.current_layout
    # words: titles with units, ticks, legend, names beside marks, limits, numbers in cells
    same_words(plot, sheet.texts)
    assert {layout.x_title, layout.y_title, *layout.x_ticks.labels} <= {*sheet.texts, ""}
    assert (laid.x_ticks, laid.y_ticks) == (layout.x_ticks, layout.y_ticks)
    assert (laid.x, laid.y) == (layout.x, layout.y)
    assert [e.text for e in layout.legend] == [e.text for e in laid.legend]
    # values and marks
    window = in_window(plot)
    seen, there = facts_of(window, plot.current_layout), facts_of(sheet, laid)
    near = 1e-4 * max(laid.x[1] - laid.x[0], laid.y[1] - laid.y[0])
    assert set(seen) == set(there)
    for what in seen:
        assert len(seen[what]) == len(there[what]), what
        assert np.allclose(points(seen[what]), points(there[what]), atol=near), what
    for what, stated in facts_stated(plot.content, laid).items():
        assert len(seen[what]) == len(stated), what
        assert np.allclose(points(seen[what]), points(stated), atol=near), what
    # cells
    cells = plot.content.cells
    for drawn_on in (window, sheet):
        found = drawn_on.of("_cells", "cells")
        assert len(found) == (cells is not None)
        for colours, shown, _box in found:
            assert cells is not None
            assert (shown == np.isfinite(cells.parts)).all()
            assert (colours == chart.ramp(cells.colours, cells.parts, False)).all()


def test_cells_that_are_alike_are_drawn_as_one_and_each_in_its_colour() -> None:
    colours = RNG.integers(0, 2, (6, 9, 3)).astype(np.uint8) * 200
    shown = RNG.random((6, 9)) < 0.7
    sheet: Any = Recorder(90, 60)
    drawing.Sheet.cells(sheet, colours, shown, (5.0, 7.0, 90.0, 60.0))
    found = [["" for _ in range(9)] for _ in range(6)]
    for rects, fill in sheet.of("", "rects"):
        for x, y, w, _h in np.asarray(rects).tolist():
            for column in range(9):
                if x <= 5 + 10 * (column + 0.5) <= x + w:
                    row = int((y + 5 - 7) // 10)
                    assert not found[row][column]
                    found[row][column] = fill.colour
    wanted = [
        [QColor(*c.tolist()).name() if there else "" for c, there in zip(row, seen, strict=True)]
        for row, seen in zip(colours, shown, strict=True)
    ]
    assert found == wanted


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_all_parts_follow_the_theme(drawn: Callable[[str], Chart], theme: Any) -> None:
    plot = drawn("scaling")
    plot.set_theme(theme)
    image = plot.grab().toImage()
    assert image.pixelColor(2, image.height() - 3).name() == theme.background
    noted: Any = Recorder(plot.width(), plot.height())
    noted.text = lambda *given, **_: noted.calls.append((noted.part, "text", given))
    painter: Any = SimpleNamespace(device=lambda: plot.viewport())
    with pytest.MonkeyPatch.context() as patch, noting(noted):
        patch.setattr("desktop.ui.plots.chart._WindowSheet", lambda *_: noted)
        _WindowPainter(painter, plot.viewport().size(), plot.current_layout, theme, theme.selection).paint()
    texts = {given[4] for _, verb, given in noted.calls if verb == "text"}
    assert theme.text in texts <= {theme.text, theme.muted, theme.breakpoint}
    assert all(stroke.colour == theme.breakpoint for _, stroke in noted.of("_limits", "lines"))
    marks = [fill for *_, fill, _ in noted.of("_points", "marks") if fill is not None]
    faint = {mix(colour, theme.background, 0.27).name() for colour in theme.series}
    assert marks and {fill.colour for fill in marks} <= {*theme.series, *faint}


# ------------------------------------------------------------------ files


def texts_of_axes(content: Content) -> set[str]:
    title = content.y.title or content.heading or content.x.title
    return {title} if content.axes and title else set()


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_the_same_chart_gives_the_same_bytes_and_text_stays_text(
    kinds: dict[str, Content], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    for name in kinds if kind == "svg" else ("half-normal", "cells", "breakpoints"):
        look = Look(words={"title": "A title"})
        first, second = (figures.file("", kinds[name], look, kind) for _ in range(2))
        assert first == second
        if kind == "svg":
            texts = [node.text for node in ElementTree.fromstring(first).iter(f"{SVG}text")]
            assert "A title" in texts and texts_of_axes(kinds[name]) <= set(texts)
        if kind == "pdf":
            assert first.startswith(b"%PDF") and b"/FontFile2" in first and b"/Subtype /Image" not in first
            assert b"CreationDate (D:" not in first, "when it was made is no part of it"


@pytest.mark.parametrize("style", ["colour", "grey", "patterns"])
def test_every_chart_is_drawn_in_every_style_and_on_small_sheets(
    kinds: dict[str, Content], style: Any
) -> None:
    for name, content in kinds.items():
        for look in (Look(style=style), Look(width=60, height=45, style=style), Look(dark=True, style=style)):
            text = figures.file("", content, look, "svg").decode()
            numbers = re.findall(r'(?:d|cx|cy|x|y)="([^"]*)"', text)
            assert not any("nan" in n or "inf" in n for n in numbers), (name, look)


def test_a_description_needs_no_qt() -> None:
    code = (
        "import sys, desktop.data.chart, desktop.data.sweep_charts, desktop.ui.experiment.charts;"
        "import desktop.ui.model.contents;"
        "print([m for m in sys.modules if m.startswith(('PySide6', 'pyqtgraph'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_chart_is_exported_from_its_menu(
    qtbot: QtBot, drawn: Callable[[str], Chart], tmp_path: Path
) -> None:
    plot = drawn("pareto")
    plot_menu.export(plot)
    (dialog,) = [w for w in plot.children() if isinstance(w, ChartDialog)]
    assert dialog.high.value() == pytest.approx(160 * 460 / 680, abs=1)
    dialog._words["x"].setText("Size (s)")
    dialog.with_csv.setChecked(True)
    for kind in ("svg", "pdf", "png"):
        dialog.format.setCurrentIndex(dialog.format.findData(kind))
        dialog.status.setText("")
        dialog.save_to(tmp_path / f"pareto.{kind}")
        qtbot.waitUntil(lambda: dialog.status.text().startswith("Written"), timeout=20_000)
    assert ">Size (s)</text>" in (tmp_path / "pareto.svg").read_text()
    lines = (tmp_path / "pareto-data.csv").read_text().splitlines()
    assert lines[0].startswith("series,") and len(lines) > 10
    dialog._show_preview()
    assert not dialog.preview.pixmap().isNull()
    dialog.save_to(tmp_path / "no" / "pareto.svg")
    qtbot.waitUntil(lambda: "Nothing was written" in dialog.status.text(), timeout=20_000)
    dialog.close()


# ------------------------------------------------------------------ axes as they are asked for


def test_axis_options_and_grid_change_window_and_sheet(qtbot: QtBot, drawn: Callable[[str], Chart]) -> None:
    plot = drawn("over processors")
    x, y = plot.axis_options()
    assert ((x.title, x.log, x.free) == ("processors", True, True) and y.log is True) or y.log is False
    dialog = AxisDialog(plot)
    qtbot.addWidget(dialog)
    forms = dialog.forms
    forms[0].log.setChecked(False)
    forms[1].free.setChecked(False)
    forms[1].low.setText("5")
    forms[1].high.setText("2")
    assert not dialog.apply() and "must end above" in dialog.words.text()
    forms[1].high.setText("wide")
    assert not dialog.apply() and "numbers" in dialog.words.text()
    forms[1].high.setText("12.5")
    assert dialog.apply()
    assert not plot.content.x.log and plot.current_layout.y == (5.0, 12.5)
    plot.grab()
    assert plot.plot.vb.viewRange()[1] == [5.0, 12.5]
    sheet, laid = on_sheet(plot)
    assert laid.y == (5.0, 12.5) and not laid.content.x.log
    same_words(plot, sheet.texts)
    with_grid = plot.grab().toImage()
    plot.set_grid(False)
    assert plot.grab().toImage() != with_grid
    plot.show_all()
    assert plot.content.x.log and plot.current_layout.y[0] <= 0
    dialog.close()


def test_only_what_can_be_logarithmic_is_offered_so(kinds: dict[str, Content]) -> None:
    assert chart.may_log(kinds["scaling"], "x") and chart.may_log(kinds["scaling"], "y")
    never = ("pareto", "x"), ("pareto", "y"), ("cells", "x"), ("cube", "x"), ("breakpoints", "x")
    for name, way in (*never, ("model residuals", "y")):
        assert not chart.may_log(kinds[name], way), name  # type: ignore[arg-type]  # of two
    same = chart.with_choices(kinds["model residuals"], {"y": AxisChoice(log=True)})
    assert not same.y.log
    assert chart.with_choices(kinds["scaling"], {"y": AxisChoice(-1.0, 5.0)}).y.low is None


# ------------------------------------------------------------------ scripts, errors


def test_what_a_script_adds_is_drawn_and_stays(qtbot: QtBot, drawn: Callable[[str], Chart]) -> None:
    plot = drawn("quantiles")
    before = plot.grab().toImage()
    line = pg.InfiniteLine(0.0, angle=0, pen=pg.mkPen("#ff00ff", width=5))
    plot.plot.addItem(line)

    def magenta() -> bool:
        image = plot.grab().toImage()
        y = round(float(plot.current_layout.py(0.0)))
        return image.pixelColor(round(plot.current_layout.left) + 30, y) == QColor("#ff00ff")

    assert plot.grab().toImage() != before and magenta()
    plot.set_content(plot.content)
    plot.set_theme(LIGHT)
    assert magenta(), "another content leaves it"
    plot.plot.removeItem(line)
    assert not magenta()


def test_an_error_in_painting_is_told_and_the_window_lives(
    qtbot: QtBot, drawn: Callable[[str], Chart], monkeypatch: pytest.MonkeyPatch
) -> None:
    plot = drawn("pareto")
    told: list[type] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, *_: told.append(kind))

    def divide(*_: Any) -> float:
        return 1 // 0

    monkeypatch.setattr(chart_sheet.Painter, "_bars", divide)
    plot.set_content(plot.content)
    plot.viewport().repaint()
    plot.grab()
    assert told and set(told) == {ZeroDivisionError}, "within what is drawn once"
    told.clear()
    monkeypatch.undo()
    monkeypatch.setattr(sys, "excepthook", lambda kind, *_: told.append(kind))
    plot.set_content(plot.content)
    monkeypatch.setattr(plot, "mark_at", divide)
    monkeypatch.setattr(plot._layers[-1], "_draw", divide)
    plot.viewport().repaint()
    middle = plot.viewport().rect().center()
    qtbot.mouseClick(plot.viewport(), Qt.MouseButton.LeftButton, pos=middle)
    qtbot.mouseMove(plot.viewport(), middle)
    assert len(told) >= 2 and set(told) == {ZeroDivisionError}, "within the chart's own, and the mouse"
    monkeypatch.undo()
    plot.set_content(plot.content)
    assert plot.isVisible() and not plot.grab().isNull()


def test_keys_names_and_places_are_as_before(qtbot: QtBot, drawn: Callable[[str], Chart]) -> None:
    plot = drawn("half-normal")
    assert plot.viewport().accessibleName() == "half-normal" == plot.accessibleName()
    assert plot.viewport().focusPolicy() == Qt.FocusPolicy.NoFocus
    assert plot.focusPolicy() == Qt.FocusPolicy.StrongFocus
    for i, series in enumerate(plot.content.series):
        for k in range(series.x.size if series.kind == "points" else 0):
            at = plot.mark_at(plot.place_of((i, k)))
            assert at is not None
            other = plot.place_of(at)
            assert QPointF(other - plot.place_of((i, k))).manhattanLength() < 3


def test_hostile_names_are_shown_as_they_are(qtbot: QtBot, kinds: dict[str, Content]) -> None:
    plot = Chart("x")
    qtbot.addWidget(plot)
    plot.resize(500, 300)
    name = "<b onload=x>&amp; \u202ename"
    series = Series("points", np.arange(3.0), np.arange(3.0), name, names=(name,) * 3, labels=frozenset({1}))
    plot.set_content(Content(Axis("<i>x</i>"), Axis("y"), (series,)))
    words = spoken(plot)
    assert "<i>x</i>" in words and words.count("<bonload=x>&amp;") == 2 and "\u202e" not in words


def test_a_chart_of_nothing_says_why(qtbot: QtBot, kinds: dict[str, Content]) -> None:
    plot = Chart("x")
    qtbot.addWidget(plot)
    plot.resize(300, 200)
    plot.set_content(Content(Axis(""), Axis(""), empty="There is nothing."))
    assert spoken(plot) == "Thereisnothing."
    assert ">There is nothing.</text>" in figures.file("", plot.content, Look(), "svg").decode()
    assert plot.axis_options() == [] and plot.mark_at(QPointF(10, 10)) is None

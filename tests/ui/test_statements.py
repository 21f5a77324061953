"""What a figure states: the same in every format and every time, and what the window states."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from desktop.core.contrast import Contrast, place
from desktop.core.curve import StepCurve
from desktop.core.envelope import envelope
from desktop.core.gantt import OTHER_REGION
from desktop.core.labels import FIGURES
from desktop.core.phase_stats import Firm, phase_arrays, phase_table
from desktop.core.phases import fit_breakpoints
from desktop.core.quantity import CurveQuantity
from desktop.data.material import Mark, Material, Predicted, Subject, bars, gather
from desktop.data.message_filter import MessageFilter
from desktop.data.store import open_store
from desktop.data.timeline import open_timeline
from desktop.data.utilization import Rules
from desktop.ui import figures
from desktop.ui.app import load_font
from desktop.ui.compare.runs_view import RunsView
from desktop.ui.figures import Look
from desktop.ui.panels.table import ON_PAPER, TablePanel, phase_sheet
from desktop.ui.plots.curve_view import CurveView
from desktop.ui.plots.navigation import Navigation
from desktop.ui.plots.time_plot import TimePlot
from desktop.ui.plots.timeline_rows import TimelineRows
from desktop.ui.plots.timeline_tiles import Tiles
from desktop.ui.plots.timeline_view import OpenTimeline, TimelineView
from desktop.ui.workers import MainThread
from desktop.workbench.jobs import Lane
from desktop.workbench.levels import AT_FIRST, Levels
from desktop.workbench.model import Annotation
from desktop.workbench.time_plots import Comparing, PlotData, Strip
from desktop.workbench.workbench import Workbench
from tests.ui.pdf_text import pdf_text
from tests.ui.test_figures import SVG, WAVE, material
from tests.ui.test_timeline_window import write


@pytest.fixture(autouse=True, scope="module")
def font(qapp: QApplication) -> None:
    load_font(qapp)


# ------------------------------------------------------------------ files


@pytest.mark.parametrize("figure", FIGURES)
def test_text_stays_text_in_svg_and_pdf(figure: str) -> None:
    """The same words, signs and numbers in both; a PDF has text of several scripts in parts."""
    made, look = material(WAVE), Look()
    root = ElementTree.fromstring(figures.svg(figure, made, look))
    drawn = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert len(drawn) > 8 and "".join(pdf_text(figures.file(figure, made, look, "pdf"))) == "".join(drawn)


@pytest.mark.parametrize("figure", FIGURES)
def test_two_exports_of_one_state_are_equal(figure: str) -> None:
    """Byte by byte, and nothing in a file says when it was made."""
    look = Look(width=120, height=80)
    files = [
        (
            figures.svg(figure, made, look),
            figures.file(figure, made, look, "png", 100),
            figures.file(figure, made, look, "pdf"),
        )
        for made in (material(WAVE), material(WAVE))
    ]
    assert files[0] == files[1]
    pdf = files[0][2]
    assert not re.search(rb"Date[ =(\"]*D?:?[12]\d{3}", pdf)
    identity = re.findall(rb"/ID \[ <(\w+)> <(\w+)> \]", pdf)
    assert len(identity) == 1 and len(set(identity[0])) == 1
    other = figures.file(figure, material(WAVE, title="another"), look, "pdf")
    assert re.findall(rb"/ID \[ <(\w+)>", other) != [identity[0][0]]


def test_another_process_writes_the_same_pdf() -> None:
    """Where Qt has other random numbers."""
    code = (
        "import hashlib, desktop.__main__\n"
        "from PySide6.QtWidgets import QApplication\n"
        "app = QApplication(['x', '-platform', 'offscreen'])\n"
        "from desktop.ui import figures\n"
        "from desktop.ui.app import load_font\n"
        "from desktop.core.curve import StepCurve\n"
        "from desktop.core.phases import fit\n"
        "from desktop.data.material import Material\n"
        "load_font(app)\n"
        "curve = StepCurve([0, 1, 2], [1, 2])\n"
        "made = Material('run', curve, {'computing': curve}, fit(curve, 2, 'constant'), ())\n"
        "pdf = figures.file('curve', made, figures.Look(), 'pdf')\n"
        "print(hashlib.sha256(pdf).hexdigest())\n"
    )
    found = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(found) == 1 and len(found.pop().strip()) == 64


# ------------------------------------------------------------------ the window and the figure


@pytest.fixture
def painted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that is painted, on whatever."""
    found: list[str] = []
    original = QPainter.drawText

    def record(painter: QPainter, *given: Any) -> Any:
        found.extend(one for one in given if isinstance(one, str))
        return original(painter, *given)

    monkeypatch.setattr(QPainter, "drawText", record)
    return found


def texts_of(figure: str, made: Material, look: Look) -> list[str]:
    root = ElementTree.fromstring(figures.svg(figure, made, look))
    return [text.text or "" for text in root.iter(f"{SVG}text")]


def paint(qtbot: QtBot, view: TimePlot, painted: list[str]) -> list[str]:
    """What a widget says when it is painted anew, in whole."""
    qtbot.addWidget(view)
    view.show()
    view.grab()
    painted.clear()
    view._redraw()
    view.dirty()
    view.grab()
    return list(painted)


def said(plot: PlotData) -> set[str]:
    """What must be read of a plot, apart from its ticks and the numbers of its phases."""
    shown = [entry.words for entry in plot.legend if entry.shown]
    lanes = [text for lane in plot.lanes for text in (lane.axis.words, lane.note)]
    notes = [note.located_text for note in plot.notes]
    return {t for t in (*shown, *lanes, *notes, *plot.remarks, plot.doubt, plot.axis.words) if t}


def phases_of(plot: PlotData) -> list[tuple[list[str], list[list[float]], int | None]]:
    return [(numbers(strip), strip.spans.tolist(), strip.marked) for strip in plot.strips]


def numbers(strip: Strip) -> list[str]:
    return [strip.label(k) for k in range(len(strip.spans))]


def breakpoints_of(plot: PlotData) -> list[list[float]]:
    assert plot.breakpoints is not None
    b = plot.breakpoints
    return [v.tolist() for v in (b.time, b.low, b.high, b.locked)]


def same(one: PlotData, other: PlotData) -> None:
    """Both state the same of time, phases, breakpoints, notes, limits and doubt, and in the same words."""
    assert one.axis == other.axis
    assert [lane.axis for lane in one.lanes] == [lane.axis for lane in other.lanes]
    shown = [[(e.words, e.ink) for e in plot.legend if e.shown] for plot in (one, other)]
    assert shown[0] == shown[1]
    assert phases_of(one) == phases_of(other)
    told = [(plot.notes, plot.remarks, plot.doubt, plot.limit, plot.firm) for plot in (one, other)]
    assert told[0] == told[1] and one.boundaries.tolist() == other.boundaries.tolist()
    assert [lane.moved.tolist() for lane in one.lanes] == [lane.moved.tolist() for lane in other.lanes]


def run_of(limited: bool = False) -> Material:
    """With a breakpoint that is held, remarks, and a doubt."""
    made = material(WAVE, 4)
    held = (float(made.fit.breaks[1]),)
    return replace(made, locked=held, doubt="up to 3 of 40 processor-seconds (7 %) are in doubt")


def view_of(made: Material) -> CurveView:
    view = CurveView()
    view.resize(1000, 640)
    view.set_curve(made.curve, made.stack)
    view.show_over(fit=made.fit)
    view.show_over(locked=made.locked)
    view.show_over(doubt=made.doubt)
    view.set_annotations(tuple(Annotation(m.start_s, m.text, m.end_s, m.colour) for m in made.marks))
    return view


@pytest.mark.parametrize("figure", ["curve", "stack"])
@pytest.mark.parametrize("levels", [AT_FIRST, Levels("hand", 1.0, 6.5), Levels(log=True)])
def test_the_curve_page_states_what_its_figures_state(
    qtbot: QtBot, painted: list[str], figure: str, levels: Levels
) -> None:
    made, view = run_of(), view_of(run_of())
    view.set_shown(frozenset({"computing"} if figure == "curve" else made.stack))
    view.show_over(phase=2)
    view.set_levels(levels)
    view.zoom_to(1.5, 15.0)
    on_screen = paint(qtbot, view, painted)
    here, look = view.description(), Look(width=200, height=120, span=(1.5, 15.0), levels=levels, phase=2)
    assert here is not None and here.figure == figure and len(here.lanes) == 2
    assert view.activities == (frozenset({"computing"}) if figure == "curve" else frozenset(made.stack))
    there = figures.describe(figure, made, look)
    curve, left = here.lanes
    same(replace(here, lanes=(curve,)), there)
    assert breakpoints_of(here) == breakpoints_of(there) and any(breakpoints_of(there)[3])
    residual = figures.describe("residual", made, look)
    assert left.axis == residual.lanes[0].axis and left.entries == residual.legend
    assert residual.remarks == (left.note,)
    assert left.spread is not None and residual.lanes[0].spread is not None
    assert left.spread.level.tolist() == residual.lanes[0].spread.level.tolist()
    # What is painted is what is described, on both.
    sheet = texts_of(figure, made, look)
    assert said(there) <= set(sheet) and said(there) <= set(on_screen)
    assert said(residual) <= set(texts_of("residual", made, look))
    assert {entry.words for entry in left.entries} | {left.axis.words, left.note} <= set(on_screen)
    phases = [str(k + 1) for k in range(made.fit.n) if made.fit.breaks[k + 1] > 1.5]
    assert set(phases) <= set(sheet) and set(phases) <= set(on_screen)
    # So are the ticks that there is room for.
    em, height = view.fontMetrics().height(), view._main.rect.height()
    labels = curve.axis.upright(height, em).labels
    assert len(labels) >= 2 and set(labels) <= set(on_screen)
    across = here.axis.across(view._main.rect.width(), view.fontMetrics().horizontalAdvance)
    assert len(across.labels) >= 4 and set(across.labels) <= set(on_screen)
    size = 9 * 25.4 / 72
    root = ElementTree.fromstring(figures.svg(figure, made, look))
    ends = [t.text for t in root.iter(f"{SVG}text") if t.attrib.get("text-anchor") == "end"]
    expected = [there.lanes[0].axis.upright(h, 1.164 * size).labels for h in np.arange(30.0, 110.0, 0.5)]
    assert ends in expected


def test_what_else_is_drawn_into_the_curve_is_in_its_figure(qtbot: QtBot, painted: list[str]) -> None:
    """The run with changes, intervals of breakpoints, boundaries of iterations, curves below."""
    plain = replace(run_of(), doubt="")
    changed = Predicted(StepCurve([0, 6, 12], [3.0, 5.0], 8), np.array([6.0]), 12.0, "CPUs twice as fast")
    inner = plain.fit.breaks[1:-1].tolist()
    firm = (Firm(inner[0] - 0.4, inner[0] + 0.3, 0.9, 8, 9, "iterations"), *(None for _ in inner[1:]))
    track = StepCurve(
        [0, 4, 16],
        [1e6, 3e6],
        4e6,
        quantity=CurveQuantity("Memory used", "Memory used (B)", "B", "B", counted=False),
    )
    made = replace(plain, predicted=changed, firm=firm, boundaries=(0.5, 2.0, 9.0), tracks=(track,))
    view = view_of(made)
    view.resize(1800, 900)
    view.show_over(predicted=changed)
    view.show_over(firm=firm)
    view.show_over(boundaries=made.boundaries)
    view.set_tracks(made.tracks)
    view.zoom_to(1.0, 15.0)
    on_screen = paint(qtbot, view, painted)
    here, look = view.description(), Look(width=220, height=160, span=(1.0, 15.0))
    there = figures.describe("curve", made, look)
    assert here is not None and here.boundaries.tolist() == [2.0, 9.0] and len(here.firm) == 1
    same(replace(here, lanes=tuple(lane for lane in here.lanes if not lane.zero)), there)
    assert there.lanes[0].moved.tolist() == [6.0] and there.lanes[1].axis.unit == here.lanes[-1].axis.unit
    words = {entry.words for entry in there.legend}
    assert {"Its interval over iterations", "What if: 12.00 s"} <= words <= set(on_screen)
    assert said(there) <= set(texts_of("curve", made, look))
    # And it is drawn, on both: each changes pixels of the window and paths of the sheet.
    whole = figures.svg("curve", made, look)
    for change in ({"firm": ()}, {"boundaries": ()}, {"predicted": None}):
        less = replace(made, **change)
        drawn, before = figures.svg("curve", less, look), view.grab().toImage()
        assert Counter(whole.split("<path")) - Counter(drawn.split("<path")), change
        view.show_over(firm=less.firm)
        view.show_over(boundaries=less.boundaries)
        view.show_over(predicted=less.predicted)
        assert view.grab().toImage() != before, change
        view.show_over(firm=made.firm)
        view.show_over(boundaries=made.boundaries)
        view.show_over(predicted=made.predicted)


@pytest.mark.parametrize("figure", ["curve", "stack", "residual", "timeline"])
def test_the_chosen_phase_is_seen_on_paper(figure: str) -> None:
    made = material(WAVE, 4)
    breaks, plain = made.fit.breaks, Look(width=160, height=90)

    def tinted(look: Look) -> list[float]:
        svg = ElementTree.fromstring(figures.svg(figure, made, look))
        found = [p.attrib["d"] for p in svg.iter(f"{SVG}path") if p.attrib.get("fill-opacity") == "0.12"]
        return [float(v) for d in found for v in re.findall(r"[Mh](-?[\d.]+)", d)[:2]]

    left, wide = tinted(replace(plain, phase=1))
    assert tinted(plain) == []
    _, next_wide = tinted(replace(plain, phase=2))
    lengths = np.diff(breaks)
    assert wide / next_wide == pytest.approx(lengths[1] / lengths[2], rel=0.01)
    assert left == pytest.approx(
        tinted(replace(plain, phase=0))[0] + wide * lengths[0] / lengths[1], rel=0.01
    )


def test_values_in_columns_are_the_same_on_the_screen_and_on_paper(qtbot: QtBot, painted: list[str]) -> None:
    """Levels read off the window's pixels and off the path in the SVG, in every step; and of a curve of more
    steps than columns the described extremes."""
    made = replace(run_of(), marks=(), fit=fit_breakpoints(run_of().curve, [0.0, 16.0], "constant"))
    view = view_of(made)
    view.show_over(fit=None)
    paint(qtbot, view, painted)
    image, lane, m = view.grab().toImage(), view._main, view._map()
    svg = ElementTree.fromstring(figures.svg("curve", made, Look(width=200, height=100)))
    ink = figures.ink(Look()).curve
    paths = [p.attrib["d"] for p in svg.iter(f"{SVG}path") if p.attrib.get("stroke") == ink]
    y = np.array([[float(v) for v in p.split()] for p in re.split("[ML]", max(paths, key=len))[1:]])[:, 1]
    plot = figures.describe("curve", made, Look(width=200, height=100))
    zero, eight = y[2 * WAVE.index(0.0)], y[2 * WAVE.index(8.0)]
    for k, level in enumerate(WAVE):
        column = round(m.x(k + 0.37))
        rows = range(round(lane.rect.top()) + 1, round(lane.rect.bottom()))
        darkest = min(rows, key=lambda r, x=column: image.pixelColor(x, r).lightness())  # type: ignore[misc]
        assert lane.value(darkest + 0.5) == pytest.approx(level, abs=0.06)
        assert 8 * (y[2 * k] - zero) / (eight - zero) == pytest.approx(level, abs=0.02)
        assert plot.lanes[0].series[0].columns.mean[k] == level
    rng = np.random.default_rng(5)
    many = StepCurve(np.arange(40_001) * 1e-3, rng.integers(0, 9, 40_000).astype(float), 8)
    found = fit_breakpoints(many, [0.0, 13.0, 40.0], "linear")
    dense = Material("dense", many, {"computing": many}, found, tuple(phase_table(many, found)))
    view = view_of(dense)
    paint(qtbot, view, painted)
    here, there = view.description(), figures.describe("curve", dense, Look(width=160))
    assert here is not None
    same(replace(here, lanes=here.lanes[:1]), there)
    for plot in (here, there):
        (series,) = plot.lanes[0].series
        known = envelope(many).columns(series.x)
        assert not series.exact
        for name in ("mean", "minimum", "maximum"):
            assert getattr(series.columns, name) == pytest.approx(getattr(known, name))


@pytest.mark.parametrize("axis", ["start", "normalised", "phases"])
@pytest.mark.parametrize("how", [Comparing(), Comparing(side_by_side=True, relative=True, row=1)])
def test_the_comparison_states_what_its_figure_states(
    qtbot: QtBot, painted: list[str], axis: str, how: Comparing
) -> None:
    made = material(WAVE)
    assert made.contrast is not None
    placement = place(made.contrast.alignment, axis, share=how.relative)
    made = replace(made, contrast=Contrast(made.contrast.alignment, placement))
    view = RunsView()
    view.resize(1100, 800)
    view.set_runs(made.contrast.alignment, placement)  # type: ignore[union-attr]  # there is one
    view.set_look(side_by_side=how.side_by_side, relative=how.relative)
    view.set_row(how.row)
    on_screen = paint(qtbot, view, painted)
    here, look = view.description(), Look(width=260, height=200, how=how)
    there = figures.describe("comparison", made, look)
    assert here is not None and [lane.note for lane in here.lanes] == [lane.note for lane in there.lanes]
    assert here.links == there.links
    if how.relative:  # means of columns, which are others here and there
        there = replace(there, lanes=(*there.lanes[:-1], here.lanes[-1]))
    same(here, there)
    sheet = texts_of("comparison", made, look)
    assert said(there) <= set(sheet) and said(there) <= set(on_screen)
    for strip in there.strips:
        assert set(numbers(strip)) <= set(sheet) and set(numbers(strip)) <= set(on_screen)


@pytest.mark.parametrize("by_region", [False, True])
def test_the_timeline_states_what_its_figure_states(
    qtbot: QtBot, painted: list[str], tmp_path: Path, by_region: bool
) -> None:
    write(tmp_path / "made.h5")
    wanted = MessageFilter()
    with open_store(tmp_path / "made.h5") as store:
        made, use = gather(Subject(store, "made", n=3, marks=(Mark(0.3, "here"),)))
        breaks = made.fit.breaks[1:-1]
        found = bars(store, Rules(), made.curve, breakpoints=breaks, by_region=by_region, messages=wanted)
        made = replace(made, bars=found)
        timeline = open_timeline(store, Rules())
        assert found is not None and timeline is not None
        lane = Lane("tiles", latest=True, deliver=MainThread().deliver)
        navigation = Navigation()
        navigation.reset(made.curve.start, made.curve.start + made.curve.duration)
        view = TimelineView(lambda changed: Tiles(lane, changed, lambda error: None), navigation)
        view.resize(1300, 420)
        first = [timeline.first_s(k) for k in range(len(store.locations))]
        rows = TimelineRows(store.locations, timeline.present.tolist(), use.seconds[:, 0].tolist(), first)
        view.set_timeline(OpenTimeline(timeline, rows, timeline.weights(), use.seconds.sum(0)))
        view.set_by_region(by_region)
        view.show_over(fit=made.fit)
        view.set_annotations((Annotation(0.3, "here"),))
        paint(qtbot, view, painted)
        qtbot.waitUntil(lambda: not lane.busy and view.tiles.marks is not None, timeout=20_000)
        on_screen = paint(qtbot, view, painted)
        here, there = view.description(), figures.describe("timeline", made, Look(width=260, height=110))
        assert here is not None
        # What takes next to no time has no colour of its own on paper, and no line in the window's legend.
        named = [(e.words, e.ink) for e in there.legend if e.words != "(other regions)"]
        assert [(e.words, e.ink) for e in here.legend] == named
        assert here.axis == there.axis and here.notes == there.notes
        assert (
            [lane.axis.title for lane in here.lanes] == [lane.axis.title for lane in there.lanes] == ["Rank"]
        )
        assert breakpoints_of(here) == breakpoints_of(there)
        assert set(there.rows) <= set(here.rows), "the window has a row of each process as well"
        sheet = texts_of("timeline", made, Look(width=260, height=110))
        assert said(there) <= set(sheet) and {e.words for e in here.legend} | {"Rank"} <= set(on_screen)
        assert set(there.rows) <= set(sheet) and {"Collective begins", "Message"} <= said(there)
        same_cells(here, there)
        view.set_timeline(None)
        lane.close()


def same_cells(screen: PlotData, sheet: PlotData) -> None:
    """Where one thing fills a column of the sheet, all columns of the screen within it show that; and what is
    exact on paper is what the screen's columns add up to."""
    here, there, bars = screen.cells, sheet.cells, sheet.bars
    assert here is not None and there is not None and bars is not None
    pure, spent, compared = bars.shares.max(axis=2) > 0.9999, bars.shares * np.diff(bars.times)[:, None], 0
    for k, name in enumerate(there.rows):
        row = list(here.rows).index(name)
        for c in np.flatnonzero(pure[k]).tolist():
            ink = there.inks[there.most[k, c]]
            within = (here.x[:-1] >= there.x[c] - 1e-12) & (here.x[1:] <= there.x[c + 1] + 1e-12)
            if ink != f"shade {OTHER_REGION}":
                assert {here.inks[m] for m in here.most[row, within].tolist()} <= {ink}
                compared += int(within.sum())
        for at, ink in enumerate(there.inks):
            if ink != f"shade {OTHER_REGION}":
                shown = sum(b - a for a, b, m in here.stretches(row) if here.inks[m] == ink)
                assert shown == pytest.approx(spent[k, :, at].sum(), abs=0.05 * (here.x[-1] - here.x[0]))
    assert compared > 100


def test_the_table_of_phases_states_what_its_figure_states(qtbot: QtBot) -> None:
    made = material(WAVE, 4)
    panel = TablePanel(Workbench())
    qtbot.addWidget(panel)
    panel.view.show_frame(phase_arrays(made.rows, made.fit))
    frames = panel.model
    on_screen = [
        [one.head, *(frames.text(k, c) for k in range(made.fit.n))]
        for c, one in enumerate(frames.cells)
        if one.column.name in ON_PAPER
    ]
    sheet = phase_sheet(made.rows, made.fit)
    assert [list(column) for column in zip(*sheet, strict=True)] == on_screen and len(on_screen) == 7
    drawn = texts_of("phases", made, Look(width=200, height=120))
    assert drawn[-len(sheet) * 7 :] == [cell for line in sheet for cell in line]


def test_what_the_window_leaves_out_its_export_leaves_out(qtbot: QtBot, painted: list[str]) -> None:
    made, view = run_of(), view_of(run_of())
    view.set_shown(frozenset({"idle"}))
    on_screen = paint(qtbot, view, painted)
    here, look = view.description(), Look(width=200, height=100, activities=view.activities)
    assert here is not None
    there = figures.describe("stack", made, look)
    same(replace(here, lanes=here.lanes[:1]), there)
    assert not there.lanes[0].fitted and [one.ink for one in there.lanes[0].series] == ["idle"]
    assert "Computing" in on_screen and "Computing" not in texts_of("stack", made, look), (
        "it can be switched on"
    )


def test_held_breakpoints_and_limits_are_seen_on_paper() -> None:
    """A padlock above the breakpoint that is held, a veil over what is not analysed."""
    made, look = run_of(), Look(width=200, height=100)
    free = figures.svg("curve", replace(made, locked=()), look)
    held = ElementTree.fromstring(figures.svg("curve", made, look))
    drawn = {p.attrib["d"] for p in ElementTree.fromstring(free).iter(f"{SVG}path")}
    (body,) = [
        p.attrib["d"] for p in held.iter(f"{SVG}path") if p.attrib["d"] not in drawn and "h" in p.attrib["d"]
    ]
    left, wide = (float(v) for v in re.findall(r"M([\d.]+) [\d.]+h([\d.]+)", body)[0])
    lines = {float(x) for d in drawn for x, y in re.findall(r"M([\d.]+) [\d.]+L\1 ([\d.]+)", d)}
    assert min(abs(left + wide / 2 - x) for x in lines) < 0.02
    limited = figures.svg("curve", replace(made, limit=(2.0, 12.0)), look)
    ground = figures.ink(look).ground
    veils = [
        p.attrib["d"].count("z")
        for p in ElementTree.fromstring(limited).iter(f"{SVG}path")
        if p.attrib.get("fill") == ground and p.attrib.get("fill-opacity") == "0.6"
    ]
    assert veils == [2] and 'fill-opacity="0.6"' not in figures.svg("curve", made, look)

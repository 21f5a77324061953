"""Numbers beside each other have one prefix, and times are those of the run: no remainders of arithmetic."""

from __future__ import annotations

import re
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import settings as deadlines
from hypothesis import strategies as st
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from desktop.commands.terminal import column
from desktop.core.frames import TABLES, Field, frame
from desktop.core.ticks import time_unit
from desktop.core.units import instant
from desktop.data.columns import Column
from desktop.resources import samples
from desktop.ui.compare.cells import COLUMNS
from desktop.ui.exporting import FigureDialog
from desktop.ui.frame import Frame
from desktop.ui.panels import why_empty
from desktop.ui.panels.profile import FLAT, TREE
from desktop.ui.plots.navigation import Navigation
from desktop.ui.settings import Settings
from desktop.ui.tables import FrameModel
from desktop.workbench.workbench import Snapshot
from tests.ui.scene import Scene

TIME = st.floats(1e-9, 1e6)


@deadlines(deadline=None)  # the first example loads pandas
@given(st.lists(TIME, min_size=1, max_size=8))
def test_a_column_has_one_prefix(values: list[float]) -> None:
    made = frame([Field("time_s", "float64", "s", "")], {"time_s": values})
    model = FrameModel()
    model.show(made, [Column("Time", name="time_s")])
    unit = model.headerData(0, Qt.Orientation.Horizontal).split("\n")[1]
    seconds = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9, "ps": 1e-12}[unit]
    for row, value in enumerate(values):
        assert float(model.text(row, 0).replace("−", "-")) * seconds == pytest.approx(value, rel=1e-3)
    assert len({text[-1:] if text[-1:].isalpha() else "" for text in column(values)}) == 1


@given(st.floats(1e-6, 1e4), st.lists(st.tuples(st.floats(0, 1), st.floats(1e-3, 1.2)), max_size=12))
def test_a_view_ends_with_the_run(end: float, looks: list[tuple[float, float]]) -> None:
    """Whatever was seen before, zooming out shows all of it: nothing a little after the start."""
    nav = Navigation()
    nav.reset(0.1 * end, 1.1 * end)
    for place, span in looks:
        middle = nav.start + place * (nav.end - nav.start)
        nav.show(middle - span * end / 2, middle + span * end / 2)
        assert nav.start <= nav.a < nav.b <= nav.end
    for _ in range(40):
        nav.show(nav.a - (nav.b - nav.a) / 2, nav.b + (nav.b - nav.a) / 2)
    assert (nav.a, nav.b) == (nav.start, nav.end)


def test_a_remainder_at_the_start_is_none() -> None:
    nav = Navigation()
    nav.reset(0.0, 4.231)
    nav.show(1.0, 2.0)
    nav.show(8.882e-16, 4.231)
    assert (nav.a, nav.b) == (0.0, 4.231)


@given(st.floats(0, 1), st.floats(1e-8, 1e4))
def test_the_status_line_has_the_unit_of_the_axis(part: float, span: float) -> None:
    assert instant(part * span, span).split(" ")[-1] == time_unit(span)[1]


def test_kept_views_and_selections_say_times_in_the_unit_of_the_run(scene: Scene) -> None:
    main = scene.main
    duration = main.workbench.snapshot.run.curve.duration  # type: ignore[union-attr]  # a trace is open
    main.curve_view.zoom_to(0.2 * duration, 0.2 * duration + 2e-6)
    main.desk.keep_view(2)
    main.curve_view.show_all()
    for _ in range(9):
        main.curve_view.zoom(2.0)
    for _ in range(12):
        main.curve_view.zoom(0.5)
    main.desk.keep_view(3)
    rows = main.panel("views").view_table.model()
    texts = [rows.index(row, 2).data() for row in range(rows.rowCount())]
    unit = time_unit(duration)[1]
    assert all(re.fullmatch(rf"[\d.]+ {unit} – [\d.]+ {unit}", text) for text in texts), texts
    assert texts[-1].startswith("0 ")
    main.workbench.select((0.3 * duration, 0.3 * duration + 1e-5))
    assert re.findall(r"[\d.]+ (\w+)\b", main._selection_text.text()) == [unit] * 3


def test_processor_seconds_are_said(qtbot: QtBot, scene: Scene) -> None:
    """Waiting of all processors is longer than the run: its unit says why."""
    main = scene.main
    main.show_panel("statistics")
    panel = main.panel("statistics")
    qtbot.waitUntil(lambda: bool(panel._statistics.replayed) and not main.busy, timeout=60_000)
    model = panel.model
    rows = {model.index(row, 0).data(): model.index(row, 1).data() for row in range(model.rowCount())}
    assert rows["Waiting"].split(" ")[1].startswith("proc·") and "proc" not in rows["Duration"]
    for columns, fields in ((FLAT, TABLES["profile"]), (TREE, TABLES["calls"])):
        units = {field.name: field.unit for field in fields}
        said = {units[c.source] for c in columns if c.title in ("Inclusive", "Exclusive")}
        assert said == {"proc·s"}


def test_empty_panels_say_why(qtbot: QtBot, own_places: None, settings: Settings) -> None:
    window = Frame(settings).trace
    qtbot.addWidget(window.frame)
    window.frame.show()
    said: list[tuple[Snapshot, list[str]]] = []

    def note(_: Snapshot, new: Snapshot) -> None:
        texts = [window.panel("statistics").note.text(), window.panel("profile").about.text()]
        texts.append(window.panel("changes").text.toPlainText())
        said.append((new, texts))

    window.workbench.subscribe(note)
    note(Snapshot(), window.workbench.snapshot)
    window.open_path(samples()[0].path)
    qtbot.waitUntil(lambda: window.workbench.snapshot.run is not None and not window.busy, timeout=60_000)
    assert any("The trace is being read." in texts for _, texts in said)
    for shown, texts in said[1:]:
        for text in texts:
            assert shown.run is None or "No trace" not in text
            assert shown.opening is None or shown.run is not None or text == "The trace is being read."
    window.frame.close()


def test_every_reason_is_another() -> None:
    curve = SimpleNamespace(locations=())
    trace = SimpleNamespace(locations=("rank 0",))
    reasons = [
        why_empty(SimpleNamespace(opening=opening, run=run, document=document, fit=fit))  # type: ignore[arg-type]
        for opening, run, document, fit in (
            (None, None, None, None),
            (object(), None, None, None),
            (None, object(), curve, None),
            (None, object(), trace, None),
            (None, object(), trace, object()),
        )
    ]
    assert all(a != b for a, b in pairwise(sorted(reasons)))


def test_a_comparison_has_one_prefix_acolumn() -> None:
    """Of a run of some microseconds: work is in the unit of its times, and differences in that of both."""
    given = {"duration_s": 4e-6, "work_s": 8e-6, "work_difference_s": -3e-9, "mean": 2.0}
    texts = {"label": "run", "run": "a", "phase": None}
    names = [field.name for field in TABLES["comparison"]]
    model, shown = FrameModel(), COLUMNS[2:]
    made = frame(TABLES["comparison"], {name: [texts.get(name, given.get(name, 1e-6))] for name in names})
    model.show(made, shown)
    heads = [model.headerData(k, Qt.Orientation.Horizontal).split("\n") for k in range(len(shown))]
    units = {head[0]: head[1] if len(head) > 1 else "" for head in heads}
    assert {units[name] for name in ("Start", "Length", "± Length")} == {"µs"}
    assert {units[name] for name in ("Work", "± Work")} == {"proc·µs"}


def test_what_is_exported_says_its_range_and_what_is_empty_says_why(
    qtbot: QtBot, scene: Scene, own_places: None, settings: Settings
) -> None:
    main = scene.main
    curve = main.workbench.snapshot.run.curve  # type: ignore[union-attr]  # a trace is open
    main.curve_view.zoom_to(0.25 * curve.duration, 0.5 * curve.duration)
    made = FigureDialog(
        main.workbench.snapshot, lambda call: call(), (0.25 * curve.duration, 0.5 * curve.duration)
    )
    qtbot.addWidget(made)
    unit = time_unit(curve.duration)[1]
    assert re.fullmatch(rf"What is in view \([\d.]+ {unit} – [\d.]+ {unit}\)", made.range.itemText(1))
    made.close()
    assert main.panel("classes").note.isHidden()
    window = Frame(settings)
    qtbot.addWidget(window)
    note = window.trace.panel("classes").note
    assert "File > Open" in note.text() and not note.isHidden()
    window.close()

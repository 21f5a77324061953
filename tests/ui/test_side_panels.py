"""Effects and factor model beside the trace: the numbers of their pages, and what they say about this run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QFileDialog
from pytestqt.qtbot import QtBot

from desktop import cli, resources
from desktop.data.experiment import Journal, Trial, state_of, write_experiment
from desktop.data.opening import open_trace
from desktop.data.statistics import Statistics
from desktop.ui.frame import Frame
from desktop.ui.model_page import ModelPage
from desktop.ui.panels.effects import EffectsPanel
from desktop.ui.panels.model import ModelPanel
from desktop.ui.settings import Settings
from desktop.ui.tables import FrameView
from desktop.ui.trace_page import TracePage
from desktop.ui.windows import Windows
from desktop.workbench.keeping import read_workspace
from desktop.workbench.pinning import PhaseOf, PinnedFactor
from desktop.workbench.side import EffectsSide, ModelSide
from tests.experiments import small

pytestmark = pytest.mark.usefixtures("own_cache")

SPT = Path(__file__).parent.parent / "data" / "spt"
SCREEN = SPT / "measured_2026-11-21_screen_2p6m2.csv"
TIMEOUT = 60_000


@pytest.fixture(scope="module")
def sample() -> Path:
    """The bundled Cholesky trace."""
    return next(s.path for s in resources.samples() if "cholesky" in str(s.path))


@pytest.fixture
def window(qtbot: QtBot, settings: Settings, no_thread_left: None, sample: Path) -> Iterator[TracePage]:
    """The sample open in four phases."""
    made = Frame(settings).trace
    qtbot.addWidget(made.frame)
    made.frame.resize(1500, 950)
    made.frame.show()
    made.open_path(sample)
    settle(qtbot, made)
    made.workbench.set_n(4)
    settle(qtbot, made)
    yield made
    made.frame.close_unasked()


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """Of two factors, both trials of each treatment in: A is the forward solve, `factor` a region's name."""
    made = small(tmp_path / "plan")
    made = replace(
        made,
        factors=(
            replace(made.factors[0], routine="forward_solve"),
            replace(made.factors[1], name="factor", routine=""),
        ),
    )
    write_experiment(made)
    levels = made.design().levels
    with Journal(made) as journal:
        for order, (block, treatment) in made.planned().items():
            a, b = levels[treatment]
            value = 12.0 + 2 * a + 3.5 * b + 0.25 * ((order * 7) % 5)
            journal.add(Trial(order, block, treatment, 1, "ok", (value, value / 2)))
        assert len(state_of(made, journal.trials).good) == 8
    return made.folder


@pytest.fixture
def times(tmp_path: Path) -> Path:
    """Two codes on two systems."""
    rows = [
        f"{code},{system},{p},{amount * slow * (9 / p + 0.2 / p**0.5) + 0.01 * (p * 7 % 3):.6f}"
        for code, amount in (("cholesky", 1.0), ("LU", 1.7))
        for system, slow in (("cluster", 1.0), ("laptop", 0.6))
        for p in (1, 2, 4, 8, 32)
    ]
    file = tmp_path / "times.csv"
    file.write_text("\n".join(["code,system,p,time", *rows]) + "\n", encoding="utf-8")
    return file


def settle(qtbot: QtBot, window: TracePage) -> None:
    def idle() -> bool:
        found = window.workbench.snapshot.statistics
        busy = window.busy or window.desk.projects.busy or found.outdated
        return not busy and not any(side.busy for side in window.desk.sides.values())

    qtbot.waitUntil(idle, timeout=TIMEOUT)
    QApplication.processEvents()
    qtbot.waitUntil(idle, timeout=TIMEOUT)


def effects(qtbot: QtBot, window: TracePage) -> tuple[EffectsPanel, EffectsSide]:
    """The panel, on top."""
    window.show_panel("effects")
    side = window.desk.sides["effects"]
    assert isinstance(side, EffectsSide)
    settle(qtbot, window)
    content = side.snapshot.content
    if side.snapshot.names and content is not None and content.effects is not None:
        qtbot.waitUntil(
            lambda: side.snapshot.pinned is not None and window.panel("effects").pages.currentIndex() == 1,
            timeout=TIMEOUT,
        )
    return window.panel("effects"), side


def model(qtbot: QtBot, window: TracePage) -> tuple[ModelPanel, ModelSide]:
    window.show_panel("model")
    side = window.desk.sides["model"]
    assert isinstance(side, ModelSide)
    qtbot.waitUntil(lambda: not side.snapshot.names or side.snapshot.content is not None, timeout=TIMEOUT)
    settle(qtbot, window)
    shown = side.snapshot.content
    if shown is not None and shown.project.table is not None:
        qtbot.waitUntil(lambda: window.panel("model").pages.currentIndex() == 1, timeout=TIMEOUT)
    return window.panel("model"), side


def told(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, object]:
    """What the command line says."""
    assert cli.run([str(word) for word in words]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


# ---- nothing to see


def test_without_a_project_each_panel_says_why_and_what_to_do(
    qtbot: QtBot, window: TracePage, experiment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel, _ = effects(qtbot, window)
    assert "holds no experiment" in panel.why.text()
    assert panel.add.isVisible() and not panel.choice.isVisible() and not panel.page.isVisible()
    chosen = [str(experiment / "experiment.toml")]
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", staticmethod(lambda *_: (chosen, "")))
    qtbot.mouseClick(panel.add, Qt.MouseButton.LeftButton)
    effects(qtbot, window)
    assert panel.pages.currentIndex() == 1 and panel.effects.frames.rowCount() == 3
    other, _ = model(qtbot, window)
    assert "holds no table" in other.why.text() and other.add.isVisible() and other.add_run.isEnabled()


def test_nothing_is_opened_or_loaded_before_a_panel_is_in_front(
    qtbot: QtBot, window: TracePage, experiment: Path, times: Path
) -> None:
    projects = window.desk.projects
    projects.add_files(experiments=(experiment,), tables=(times,))
    settle(qtbot, window)
    assert all(side.bench is None and side.snapshot.content is None for side in window.desk.sides.values())
    assert window.desk.sides["effects"].snapshot.names == ("plan",)
    _, side = effects(qtbot, window)
    bench = side.bench
    assert bench is not None and window.desk.sides["model"].bench is None
    window.show_panel("table")
    qtbot.waitUntil(lambda: side.bench is None)
    bench.set_analysis("halve", half=True)
    assert side.snapshot.content is None, "nobody looks"
    effects(qtbot, window)
    assert side.bench is bench and side.snapshot.content is bench.snapshot


def test_the_window_starts_without_what_computes_them() -> None:
    code = (
        "import sys; from desktop.ui.app import application; from desktop.ui.frame import Frame;"
        "from desktop.ui.settings import Settings; application(); w = Frame(Settings.passing());"
        "w.show(); print(*sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = ("pandas", "scipy.special", "scipy.optimize", "scipy.linalg", "desktop.core.factor_model")
    pages = ("desktop.ui.experiment", "desktop.ui.model")
    assert [name for name in found.stdout.split() if name in heavy or name.startswith(pages)] == []


# ---- effects


def test_effects_are_those_of_the_command_line_and_of_the_page(
    qtbot: QtBot, window: TracePage, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    window.desk.projects.add_files(experiments=(SCREEN,))
    panel, side = effects(qtbot, window)
    said = told(capsys, "spt", "effects", SCREEN, "--json")
    frame = panel.effects.frames.frame
    assert frame is not None and isinstance(said["effects"], list)
    ranked = sorted(said["effects"], key=lambda one: -abs(one["value"]))  # told in standard order
    assert list(frame["Term"]) == [one["term"] for one in ranked]
    for name, key in (("Effect", "value"), ("SE", "se"), ("t", "t"), ("p", "p")):
        assert list(frame[name]) == [one[key] for one in ranked], name
    panel.numbers.setCurrentIndex(1)
    panel.numbers.activated.emit(1)
    ranks = panel.rank.frames.frame
    assert ranks is not None and isinstance(said["ranks"], list)
    assert list(ranks["Factor"]) == [one["term"] for one in said["ranks"]]
    panel.numbers.setCurrentIndex(0)
    panel.numbers.activated.emit(0)
    assert panel.chart.content.y.title == "Half-normal quantile" and panel.chart.isVisible()
    panel.picture.setCurrentIndex(1)
    panel.picture.activated.emit(1)
    assert panel.chart.accessibleName() == "Pareto chart"
    assert {one.kind for one in panel.chart.content.series} >= {"bars"}

    bench = window.desk.projects.bench("experiments", 0)
    page = window.frame.open_experiment(bench)  # type: ignore[arg-type]  # of an experiment
    window.frame.go_to(window)
    settle(qtbot, window)
    assert page.bench is side.bench
    own = page.read_page.effects.frames.frame
    assert own is not None and own.drop(columns="In").equals(frame.drop(columns="In"))
    page.bench.set_analysis("halve", half=True)
    settle(qtbot, window)
    assert list(panel.effects.frames.frame["Half effect"]) == [v / 2 for v in frame["Effect"]]
    panel.effects.select_key("F4")
    panel._toggle("F4")
    settle(qtbot, window)
    assert page.bench.snapshot.project.analysis.terms is not None
    assert not page.read_page.effects.frames.frame.loc["F4", "In"]
    assert window.workbench.history.undo_label == "drop a term"
    window.workbench.undo()
    window.workbench.undo()
    settle(qtbot, window)
    assert list(panel.effects.frames.frame["Effect"]) == list(frame["Effect"])
    window.workbench.redo()
    assert page.bench.snapshot.project.analysis.half
    page.close_shown()
    assert side.bench is page.bench and side.bench.snapshot.effects is not None, "the panel has it still"


def test_an_effect_is_marked_with_its_seconds_in_every_phase(
    qtbot: QtBot, window: TracePage, experiment: Path, sample: Path
) -> None:
    window.desk.projects.add_files(experiments=(experiment,))
    panel, side = effects(qtbot, window)
    panel.effects.chosen.emit("A:factor")
    settle(qtbot, window)
    shown = window.workbench.snapshot
    assert [(place.factor, place.region) for place in side.snapshot.places] == [
        ("A", "forward_solve"),
        ("factor", "factor"),
    ]
    assert shown.fit is not None
    breaks = shown.fit.breaks.tolist()
    with open_trace(sample) as store:
        names = [region.name for region in store.regions]
        stats = Statistics(store).ranges(list(pairwise(breaks)))
    for place in side.snapshot.places:
        seconds = np.array([one.inclusive_s[names.index(place.region)] for one in stats])
        assert [one.phase for one in place.phases] == np.flatnonzero(seconds > 0).tolist()
        for one in place.phases:
            assert one.inclusive_s == pytest.approx(seconds[one.phase], rel=1e-9, abs=1e-9)
    last = f"{stats[3].inclusive_s[names.index('forward_solve')]:.4g} proc·s"
    assert "forward_solve" in panel.places_text.text() and f"phase 4</a>: {last}" in panel.places_text.text()

    # In the timeline as by finding it, in the statistics and in the profile.
    assert shown.marked == ("forward_solve", "factor")
    assert window.timeline._search.text() == "forward_solve | factor"
    assert window.timeline.view._marked_rows == frozenset(range(16))
    panel.places_text.linkActivated.emit("3")
    assert window.workbench.snapshot.project.view.phase == 3
    window.show_panel("statistics")
    settle(qtbot, window)
    table = window.panel("statistics").table.frames
    assert [table.index(row, 0).data() for row in (0, 1)] == ["forward_solve", "factor"]
    assert table.index(0, 5).data() == last
    window.show_panel("profile")
    settle(qtbot, window)
    qtbot.waitUntil(lambda: bool(window.panel("profile").view.selectedIndexes()), timeout=TIMEOUT)
    rows = {index.siblingAtColumn(0).data() for index in window.panel("profile").view.selectedIndexes()}
    there = {name for name in shown.marked if stats[3].inclusive_s[names.index(name)] > 0}
    assert rows == there, "of the phase in focus"
    for _ in range(2):
        window.actions_by_id["nothing"].trigger()
    assert window.workbench.snapshot.marked == () and window.timeline._search.text() == ""


def test_a_factor_without_a_region_is_told_of_and_given_one(
    qtbot: QtBot, window: TracePage, tmp_path: Path
) -> None:
    projects = window.desk.projects
    projects.add_files(experiments=(SCREEN,))
    panel, side = effects(qtbot, window)
    panel.effects.chosen.emit("F2")
    settle(qtbot, window)
    assert "No region has the name of <b>F2</b>" in panel.places_text.text()
    assert window.workbench.snapshot.marked == ()
    names = [panel.region.itemText(k) for k in range(panel.region.count())]
    assert {"factor", "forward_solve", "MPI_Recv"} < set(names)
    panel.region.setCurrentIndex(names.index("factor"))
    panel.region.activated.emit(panel.region.currentIndex())
    settle(qtbot, window)
    assert window.workbench.snapshot.marked == ("factor",)
    assert side.snapshot.places[0].phases and "phase 1</a>" in panel.places_text.text()
    assert window.workbench.history.undo_label == "pin F2 to a region"
    projects.save(tmp_path / "p.phasewright")
    assert read_workspace(tmp_path / "p.phasewright").experiments[0].regions == {"F2": "factor"}
    window.workbench.undo()
    settle(qtbot, window)
    assert window.workbench.snapshot.marked == () and panel.region.currentText() == "by its name"


def test_of_several_experiments_one_is_chosen_and_a_response(
    qtbot: QtBot, window: TracePage, experiment: Path
) -> None:
    window.desk.projects.add_files(experiments=(SCREEN, experiment))
    panel, side = effects(qtbot, window)
    assert [panel.choice.itemText(k) for k in range(panel.choice.count())] == [SCREEN.name, "plan"]
    assert side.snapshot.index == 0 and panel.effects.frames.rowCount() == 15
    panel.choice.setCurrentIndex(1)
    panel.choice.activated.emit(1)
    effects(qtbot, window)
    first = list(panel.effects.frames.frame["Effect"])
    assert panel.effects.frames.rowCount() == 3 and panel.response.currentText() == "value"
    panel.response.activated.emit(1)
    settle(qtbot, window)
    assert panel.response.currentText() == "wall"
    assert list(panel.effects.frames.frame["Effect"]) == pytest.approx([v / 2 for v in first])
    window.desk.projects.remove("experiments", 1)
    effects(qtbot, window)
    assert panel.choice.count() == 1 and panel.effects.frames.rowCount() == 15


@pytest.mark.parametrize("content", [None, b"\x00\xff\x13PNG" * 50, b"a,b\n1,2\n", b"A,B,y_s\n-,+,1e999\n"])
def test_what_cannot_be_read_is_told_in_a_sentence(
    qtbot: QtBot, window: TracePage, tmp_path: Path, content: bytes | None
) -> None:
    """Missing, no text, no trials, no number: the panel says so, and reads it again when that is mended."""
    file = tmp_path / "runs.csv"
    if content is not None:
        file.write_bytes(content)
    window.desk.projects.add_files(experiments=(file,))
    panel, side = effects(qtbot, window)
    assert panel.pages.currentIndex() == 0
    assert len(panel.why.text()) > 30 and "Traceback" not in panel.why.text()
    shutil.copy(SCREEN, file)
    side.read_again()
    effects(qtbot, window)
    assert panel.pages.currentIndex() == 1 and panel.effects.frames.rowCount() == 15


def test_a_curve_without_events_has_effects_and_no_places(
    qtbot: QtBot, settings: Settings, no_thread_left: None, experiment: Path, tmp_path: Path
) -> None:
    curve = tmp_path / "run.csv"
    curve.write_text("0,1\n1,5\n2,2\n3,6\n4,0\n")
    window = Frame(settings).trace
    qtbot.addWidget(window.frame)
    window.frame.show()
    window.open_path(curve)
    settle(qtbot, window)
    window.desk.projects.add_files(experiments=(experiment,))
    window.show_panel("effects")
    panel = window.panel("effects")
    qtbot.waitUntil(lambda: panel.pages.currentIndex() == 1, timeout=TIMEOUT)
    panel.effects.chosen.emit("A")
    settle(qtbot, window)
    assert "names no regions" in panel.places_text.text()
    assert window.workbench.snapshot.marked == ()
    window.frame.close_unasked()


def test_names_of_a_stranger_are_no_markup(window: TracePage) -> None:
    panel = window.panel("effects")
    said = panel._factor_words(PinnedFactor("<b>A&B</b>", "<img src=x>", (PhaseOf(0, 1.5, 1.0),)))
    assert "&lt;img" in said and "&lt;b&gt;A&amp;B" in said and "<img" not in said
    assert "<img" not in panel._factor_words(PinnedFactor("<img src=x>"))


# ---- factor model


def test_the_model_is_that_of_the_command_line_and_of_the_page(
    qtbot: QtBot, window: TracePage, settings: Settings, times: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    window.desk.projects.add_files(tables=(times,))
    panel, side = model(qtbot, window)
    said = told(capsys, "model", times, "--json")
    assert isinstance(said["parameters"], list)
    fit = side.snapshot.content.fit if side.snapshot.content is not None else None
    assert fit is not None and fit.sse == said["sse"]
    shown = _column(panel.parameters, "value")
    assert shown == [one["value"] for one in said["parameters"]]
    page = window.frame.open_model(window.desk.projects.bench("tables", 0))  # type: ignore[arg-type]  # of a table
    window.frame.go_to(window)
    settle(qtbot, window)
    assert page.bench is side.bench and _column(page.tables.parameters, "value") == shown
    page.bench.set_functions(("1/p", "1"))
    settle(qtbot, window)
    own = told(capsys, "model", times, "--functions", "1/p,1", "--json")
    assert isinstance(own["parameters"], list)
    assert _column(panel.parameters, "value") == [one["value"] for one in own["parameters"]]
    panel.code.setCurrentText("LU")
    panel.code.activated.emit(panel.code.currentIndex())
    assert page.plots.code.currentText() == "LU"
    content = panel.scaling.content
    (points,) = (s for s in content.series if s.kind == "points")
    assert points.x.tolist() == [1, 2, 4, 8, 32]
    window.workbench.undo()
    settle(qtbot, window)
    assert _column(panel.parameters, "value") == shown and page.bench.snapshot.fit is not None
    page.close_shown()


def _column(table: FrameView, name: str) -> list[float]:
    """Values of a column, in the order of the table."""
    assert table.frames.frame is not None
    found: list[float] = table.frames.frame[name].tolist()
    return found


def test_this_run_begins_a_table_and_is_marked(qtbot: QtBot, window: TracePage, tmp_path: Path) -> None:
    projects, bench = window.desk.projects, window.workbench
    window.actions_by_id["add_run_to_model"].trigger()
    panel, side = model(qtbot, window)
    assert bench.history.undo_label == "add runs of traces" and side.snapshot.names == ("runs of traces",)
    (row,) = side.snapshot.rows
    assert bench.snapshot.run is not None and row.time == bench.snapshot.run.curve.duration
    assert (row.code, row.system, row.p) == ("cholesky", "this system", 16)
    assert not panel.add_run.isEnabled() and "already" in panel.add_run.toolTip()
    bench.undo()
    model(qtbot, window)
    assert side.snapshot.names == () and panel.add_run.isEnabled()
    bench.redo()
    model(qtbot, window)
    assert [one.time for one in side.snapshot.rows] == [row.time]

    panel.phases.setChecked(True)
    assert panel.add_run.isEnabled(), "its phases are not there yet"
    qtbot.mouseClick(panel.add_run, Qt.MouseButton.LeftButton)
    settle(qtbot, window)
    assert bench.snapshot.fit is not None
    assert [one.time for one in side.snapshot.rows[1:]] == bench.snapshot.fit.duration.tolist()
    assert [one.code for one in side.snapshot.rows[1:]] == [f"cholesky, phase {k}" for k in (1, 2, 3, 4)]
    assert bench.history.undo_label == "add 4 rows"
    projects.save(tmp_path / "p.phasewright")
    (kept,) = read_workspace(tmp_path / "p.phasewright").tables
    assert kept.edits is not None and kept.edits.added == side.snapshot.rows
    bench.undo()
    settle(qtbot, window)
    assert len(side.snapshot.rows) == 1


def test_this_run_goes_into_the_table_that_is_chosen(
    qtbot: QtBot, window: TracePage, times: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.csv"
    other.write_text("code,system,p,t_prime\nLU,a,1,2\nLU,a,2,2.5\nLU,a,4,4\n")
    window.desk.projects.add_files(tables=(times, other))
    panel, side = model(qtbot, window)
    assert panel.choice.count() == 2 and side.snapshot.index == 0
    panel.on_system.setEditText(" ")
    assert not panel.add_run.isEnabled() and "Name the code" in panel.add_run.toolTip()
    panel.on_system.setEditText("cluster")
    qtbot.mouseClick(panel.add_run, Qt.MouseButton.LeftButton)
    settle(qtbot, window)
    (row,) = side.snapshot.rows
    shown = side.snapshot.content
    assert shown is not None and shown.project.table is not None and shown.view.lines == {row.line}
    assert len(shown.project.table.rows) == 21 and (shown.view.code, shown.view.system) == (
        "cholesky",
        "cluster",
    )
    (mine,) = (s for s in panel.scaling.content.series if s.label == "This run")
    assert (mine.x.tolist(), mine.y.tolist()) == ([16], [pytest.approx(row.time)])
    assert times.read_text().count("\n") == 21, "the file is as it was"
    panel.choice.activated.emit(1)
    model(qtbot, window)
    assert not panel.add_run.isEnabled() and "t'" in panel.add_run.toolTip()
    window.workbench.undo()
    panel.choice.activated.emit(0)
    model(qtbot, window)
    assert side.snapshot.rows == () and panel.add_run.isEnabled()


def test_a_table_that_is_still_to_be_read_gets_the_run(qtbot: QtBot, window: TracePage, times: Path) -> None:
    """The command does it without the panel ever having been in front; a lost table is told of."""
    window.desk.projects.add_files(tables=(times,))
    side = window.desk.sides["model"]
    assert isinstance(side, ModelSide)
    side.add_run("cholesky", "cluster", phases=False)
    bench = window.desk.projects.bench("tables", 0)
    qtbot.waitUntil(lambda: not bench.busy, timeout=TIMEOUT)
    panel, _ = model(qtbot, window)
    assert len(side.snapshot.rows) == 1
    times.rename(times.with_name("moved.csv"))
    window.desk.projects.remove("tables", 0)
    window.desk.projects.add_files(tables=(times,))
    model(qtbot, window)
    assert "times.csv cannot be read" in panel.why.text() and panel.find_it.isVisible()
    side.add_run("cholesky", "cluster", phases=False)
    settle(qtbot, window)
    times.with_name("moved.csv").rename(times)
    qtbot.mouseClick(panel.read_again, Qt.MouseButton.LeftButton)
    model(qtbot, window)
    assert panel.pages.currentIndex() == 1 and side.snapshot.rows == ()


def test_pages_opened_from_a_panel_work_on_the_same_and_leave_it_when_they_open_another(
    qtbot: QtBot, qapp: QApplication, settings: Settings, sample: Path, times: Path, tmp_path: Path
) -> None:
    windows = Windows(qapp, settings)
    home = windows.open([sample]).trace
    settle(qtbot, home)
    home.desk.projects.add_files(tables=(times,))
    panel, side = model(qtbot, home)
    qtbot.mouseClick(panel.page, Qt.MouseButton.LeftButton)
    page = home.frame.current
    home.frame.go_to(home)
    model(qtbot, home)
    assert isinstance(page, ModelPage) and page.bench is side.bench
    other = tmp_path / "other.csv"
    other.write_text("code,system,p,time\nLU,a,1,2\nLU,a,2,1.5\nLU,a,4,1\n")
    page.bench.open(other)
    qtbot.waitUntil(lambda: page.bench.snapshot.source == other and not page.bench.busy, timeout=TIMEOUT)
    model(qtbot, home)
    assert side.bench is not page.bench and side.snapshot.content is not None
    assert side.snapshot.content.source == times, "the panel shows the project's table"
    page.bench.set_positive(True)
    assert home.desk.projects.workspace.tables[0].settings is None or (
        not home.desk.projects.workspace.tables[0].settings.positive
    )
    qtbot.waitUntil(lambda: not page.bench.busy)
    assert page.bench.snapshot.fit is not None
    home.frame.close_unasked()


def test_the_commands_show_the_panels(qtbot: QtBot, window: TracePage) -> None:
    for name, command in (("effects", "show_effects"), ("model", "show_model")):
        window.show_panel("table")
        window.actions_by_id[command].trigger()
        QApplication.processEvents()
        dock = window._docks[name]
        assert not dock.visibleRegion().isEmpty() and dock.isAncestorOf(window.focusWidget())

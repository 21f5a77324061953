"""The real window of experiments, without a display: programs that really run, and what is then shown."""

from __future__ import annotations

import csv
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QColor, QDropEvent, QGuiApplication
from PySide6.QtWidgets import (
    QApplication,
    QCommandLinkButton,
    QFileDialog,
    QMessageBox,
    QPlainTextEdit,
    QWidget,
)
from pytestqt.qtbot import QtBot

from desktop import resources
from desktop.core.units import digits
from desktop.data.experiment import (
    JOURNAL,
    Experiment,
    Factor,
    Plan,
    Switch,
    read_experiment,
    read_journal,
    write_experiment,
)
from desktop.ui.experiment.actions import EXPERIMENT_COMMANDS
from desktop.ui.experiment.design import write_pdf
from desktop.ui.experiment.parts import ErrandDialog, Step
from desktop.ui.experiment_page import ExperimentPage
from desktop.ui.frame import Frame
from desktop.ui.handbook import handbook
from desktop.ui.plots.chart import Chart
from desktop.ui.settings import Settings
from desktop.ui.tables import FrameView, comma_separated, latex, markdown
from desktop.ui.theme import DARK, LIGHT
from desktop.ui.windows import Windows
from tests.experiments import SCRIPT, needs_shell, small
from tests.ui.scene import alone

DATA = Path(__file__).parent.parent / "data" / "spt"


pytestmark = pytest.mark.usefixtures("own_places")


@pytest.fixture
def window(
    qtbot: QtBot, settings: Settings, no_thread_left: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ExperimentPage]:
    """pytest-qt fails a test whose slots raise."""
    discard = QMessageBox.StandardButton.Discard
    monkeypatch.setattr(QMessageBox, "question", lambda *_: discard)
    monkeypatch.setattr(QMessageBox, "exec", lambda _: discard)
    settings.theme = "light"
    made = alone(ExperimentPage, settings)
    qtbot.addWidget(made.frame)
    made.frame.resize(1280, 720)
    made.frame.show()
    frame = made.frame
    yield made
    frame.close_unasked()
    frame.deleteLater()
    QApplication.sendPostedEvents(frame, QEvent.Type.DeferredDelete.value)


def settle(qtbot: QtBot, window: ExperimentPage) -> None:
    qtbot.waitUntil(lambda: not window.busy, timeout=60_000)


def opened(qtbot: QtBot, window: ExperimentPage, path: Path) -> ExperimentPage:
    window.open_path(path)
    settle(qtbot, window)
    assert window.bench.snapshot.problem == ""
    return window


def cells(table: FrameView, title: str) -> dict[str, str]:
    """What a column shows, by the key of the row."""
    column = table.frames.column(title)
    return dict(
        zip(keys(table), (table.frames.text(k, column) for k in range(len(keys(table)))), strict=True)
    )


def keys(table: FrameView) -> list[str]:
    """What its rows stand for, from the top."""
    model = table.frames
    return [] if model.frame is None else model.frame.index[model.order].tolist()


def marked(chart: Chart) -> frozenset[int]:
    return chart.content.selected


def slow(folder: Path, replicates: int = 3) -> Experiment:
    """Trials that can be seen to run."""
    return small(folder, SCRIPT.replace("echo", "sleep 0.05; echo"), plan=Plan(replicates=replicates, seed=3))


# --- the whole way ---


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler on this machine")
def test_the_quicksort_is_built_run_and_read_through_the_window(
    qtbot: QtBot, window: ExperimentPage, tmp_path: Path
) -> None:
    folder = tmp_path / "quicksort"
    window.bench.open_example(folder)
    settle(qtbot, window)
    # Step 1: a small program whose machine may be busy, a longer delay, two places of the six.
    program, page = window.program_page, window.run_page
    program.run_words.setText("{out} -n 50000 -t 1")
    program.run_words.editingFinished.emit()
    program.flags.setText("-DSPT_DELAY=300")
    program.flags.editingFinished.emit()
    program.busy.setValue(64)
    program.busy.editingFinished.emit()
    program.find_button.click()
    assert {"F7", "CS1", "FB1_1"} <= set(keys(program.factors))
    settle(qtbot, window)
    nanoseconds = 300e9 * window.bench.snapshot.unit_s
    assert program.delay.text() == f"300 units, {digits(nanoseconds, 2)} ns a call here"
    for name in ("F2", "F3", "F5", "F6"):
        program.factors.frames.toggled.emit(name, False)
    settle(qtbot, window)
    experiment = window.bench.snapshot.project.experiment
    assert experiment is not None and experiment.names == ("F1", "F4")
    # Step 2: the full factorial, twice.
    window.show_step(1)
    window.design_page.offers.chosen.emit("full:4")
    window.design_page.replicates.setValue(2)
    settle(qtbot, window)
    assert "full factorial" in window.design_page.relation.toPlainText()
    # Step 3: nothing before the yes.
    window.show_step(2)
    assert not page.run.isEnabled() and not (folder / "builds").exists()
    assert "-DF4" in page.commands.toPlainText() and "-n 50000 -t 1" in page.commands.toPlainText()
    qtbot.mouseClick(page.agree, Qt.MouseButton.LeftButton, pos=page.agree.rect().center() / 8)
    if not window.bench.snapshot.consented:
        page.agree.click()
    page.check.click()
    settle(qtbot, window)
    assert window.bench.snapshot.problem == "" and window.bench.snapshot.estimate is not None
    assert (
        "One unperturbed run takes" in page.stands.text() or "one unperturbed run takes" in page.stands.text()
    )
    page.run.click()
    settle(qtbot, window)
    assert window.bench.snapshot.problem == ""
    assert len(list((folder / "builds").iterdir())) == 4
    statuses = cells(page.trials, "Status")
    assert len(statuses) == 8 and set(statuses.values()) == {"ok"}
    # Step 4: swap() is what the run depends on.
    window.show_step(3)
    effects = keys(window.read_page.effects)
    assert set(effects) == {"F1", "F4", "F1:F4"} and len(effects) == 3
    assert set(keys(window.read_page.rank)) == {"F1", "F4"}
    assert cells(window.read_page.rank, "Routine")["F4"] == "swap"
    # Processor time hardly depends on what else the machine does: calls times delay, and none comes near.
    read = window.read_page
    read.response.setCurrentText("cpu")
    read.response.activated.emit(read.response.currentIndex())
    settle(qtbot, window)
    import resource  # is not there on Windows

    found = window.bench.snapshot.effects
    assert found is not None and window.bench.snapshot.project.analysis.response == "cpu"
    swap = found.effect("F4")
    built = next(iter((folder / "builds").iterdir()))
    said = subprocess.run(
        [built, "-n", "50000", "-t", "1"], capture_output=True, text=True, check=True
    ).stdout
    calls = int(said.partition("calls_swap=")[2].split()[0])
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([built, "--calibrate"], check=True, stdout=subprocess.DEVNULL)
    unit = (resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before) / 100e6
    expected = calls * 300 * unit
    # Of real time, on machines with other work: a quarter of it.
    assert abs(swap.value - expected) < 0.25 * expected + 4 * swap.se and swap.se < 0.1 * expected
    assert swap.significant and swap.value > 5 * abs(found.effect("F1").value)
    assert cells(read.rank, "Rank")["F4"] == "1" and cells(read.effects, "Marked")["F4"] == "★"


@needs_shell
def test_pause_go_on_and_stop(qtbot: QtBot, window: ExperimentPage, tmp_path: Path) -> None:
    """However slow the machine: no more trials go on than a file allows."""
    gate = 'while [ "$(wc -l < ran.txt)" -gt "$(cat allowed)" ]; do sleep 0.02; done'
    script = SCRIPT.replace("value=10", f"{gate}\nvalue=10")
    experiment = small(tmp_path / "e", script, plan=Plan(replicates=5, seed=3))

    def allow(trials: int) -> None:
        (experiment.folder / "next").write_text(f"{trials}")
        (experiment.folder / "next").replace(experiment.folder / "allowed")

    def recorded() -> int:
        return len(read_journal(experiment))

    allow(2)
    opened(qtbot, window, experiment.folder)
    window.show_step(2)
    page, bench = window.run_page, window.bench
    page.agree.click()
    page.run.click()
    assert not page.run.isEnabled() and page.pause.isEnabled()
    qtbot.waitUntil(lambda: len(bench.snapshot.trials) == 2, timeout=20_000)
    page.pause.click()
    assert page.pause.text().replace("&", "") == "Go on"
    allow(20)
    qtbot.waitUntil(lambda: recorded() == 3, timeout=20_000)
    time.sleep(0.2)
    assert recorded() == 3, "nothing runs while it is paused"
    allow(5)
    page.pause.click()
    qtbot.waitUntil(lambda: len(bench.snapshot.trials) == 5, timeout=20_000)
    page.stop.click()
    allow(20)
    settle(qtbot, window)
    assert bench.snapshot.running == "idle" and recorded() == 6, "that which was running is kept"
    assert page.run.isEnabled() and "6 of 20 trials done" in page.stands.text()
    assert bench.snapshot.effects is not None, "what is there is read at any moment"
    page.run.click()
    settle(qtbot, window)
    done = read_journal(experiment)
    assert sorted(t.order for t in done) == list(range(1, 21)), "none is lost, none is run twice"


@needs_shell
def test_opening_runs_nothing_and_closing_stops_at_once(
    qtbot: QtBot, window: ExperimentPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = slow(tmp_path / "e", replicates=50)
    opened(qtbot, window, experiment.folder)
    for number in range(5):
        window.show_step(number)
        qtbot.wait(20)
    assert not (experiment.folder / "ran.txt").exists() and not (experiment.folder / JOURNAL).exists()
    assert not window.actions_by_id["run"].isEnabled()
    window.bench.run()
    assert window.frame.problem_bar.isVisible() and "read the commands" in window.frame.problem_bar.sentence
    window.run_page.agree.click()
    assert window.frame.problem_bar.isHidden() and window.actions_by_id["run"].isEnabled()
    window.actions_by_id["run"].trigger()
    qtbot.waitUntil(lambda: len(window.bench.snapshot.trials) >= 1, timeout=20_000)
    window.frame.close()
    (box,) = window.frame.findChildren(QMessageBox)
    assert box.text() == "Close anyway?" and box.informativeText().startswith("Trials are running")
    assert window.isVisible()
    box.button(QMessageBox.StandardButton.Discard).click()
    assert not window.isVisible()
    count = len(read_journal(experiment))
    time.sleep(0.3)
    assert len(read_journal(experiment)) == count < 200


@needs_shell
def test_a_pilot_is_read_run_and_taken(qtbot: QtBot, window: ExperimentPage, tmp_path: Path) -> None:
    folder = slow(tmp_path / "e").folder
    (folder / "program.sh").write_text(
        "#!/bin/sh\necho ran >> ran.txt\n"
        "echo done in $((100 + $(wc -l < ran.txt) % 3 + ${A:-0} + 9 * ${B:-0})) s\n"
    )
    factors = tuple(Factor(n, Switch(environment=((n, "{delay}"),)), delay=9) for n in "AB")
    experiment = replace(read_experiment(folder), factors=factors)
    write_experiment(experiment)
    opened(qtbot, window, folder)
    page, bench = window.program_page, window.bench
    assert page.take.isHidden() and page.pilot_words.isHidden()
    page.pilot.click()
    dialog = window.findChild(ErrandDialog)
    assert "B=2187 ./program.sh" in dialog.findChild(QPlainTextEdit).toPlainText()
    dialog.reject()
    settle(qtbot, window)
    assert not (folder / "ran.txt").exists()
    bench.run_errand(replace(bench.pilot(), commands=("something else",)))
    assert "agreed to them" in window.frame.problem_bar.sentence and not (folder / "ran.txt").exists()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    window.actions_by_id["pilot"].trigger()
    window.findChild(ErrandDialog).accept()
    settle(qtbot, window)
    found = bench.snapshot.pilot
    assert found.size == max(place.delay for place in found.places) > found.places[1].delay > 0
    assert "shows as the last" in page.pilot_words.text() and page.take.text() == "Use a size for each place"
    assert bench.snapshot.trials == () and not bench.snapshot.consented, "it is no yes to the trials"
    window.compare_page.tabs.setCurrentIndex(5)
    assert len(bench.snapshot.project.tables) >= 2
    assert keys(window.compare_page.doses) == ["A"], "B showed at the first size"
    page.take.click()
    settle(qtbot, window)
    assert {f.name: f.delay for f in bench.snapshot.project.experiment.factors} == found.sizes
    assert bench.history.undo_label == "use the delays of the pilot" and page.take.isHidden()


@needs_shell
def test_a_check_that_is_stopped_leaves_the_window_ready(
    qtbot: QtBot, window: ExperimentPage, tmp_path: Path
) -> None:
    folder = slow(tmp_path / "e").folder
    (folder / "program.sh").write_text("#!/bin/sh\ntouch begun\nsleep 60\n")
    opened(qtbot, window, folder)
    window.bench.consent()
    window.bench.check()
    qtbot.waitUntil((folder / "begun").exists, timeout=20_000)
    window.actions_by_id["stop_now"].trigger()
    settle(qtbot, window)
    assert window.bench.snapshot.running == "idle" and window.run_page.run.isEnabled()


@needs_shell
def test_a_finished_experiment_is_folded_over(qtbot: QtBot, window: ExperimentPage, tmp_path: Path) -> None:
    folder = slow(tmp_path / "e").folder
    factors = tuple(Factor(name, Switch(arguments=(f"-{name}",))) for name in "ABC")
    experiment = replace(read_experiment(folder), factors=factors, plan=Plan(runs=4, replicates=2, seed=3))
    write_experiment(experiment)
    opened(qtbot, window, folder)
    page, run = window.design_page, window.run_page
    window.bench.consent()
    window.bench.run()
    settle(qtbot, window)
    first = [(t.order, t.replicate, t.treatment, t.start) for t in read_journal(experiment)]
    page.fold.setCurrentIndex(page.fold.findData("all"))
    page.fold.activated.emit(page.fold.currentIndex())
    settle(qtbot, window)
    assert window.frame.problem_bar.isHidden() and "added after 2 replicates" in page.warning.text()
    assert page.seed.text().startswith("3, then ") and page.sheet.frames.rowCount() == 16
    assert len(first) == 8 and "8 of 16 trials done" in run.stands.text()
    window.bench.run()
    assert "read the commands" in window.frame.problem_bar.sentence, "new treatments are new commands"
    window.bench.consent()
    window.bench.run()
    settle(qtbot, window)
    done = [(t.order, t.replicate, t.treatment, t.start) for t in read_journal(read_experiment(folder))]
    assert done[:8] == first and [t[0] for t in done] == list(range(1, 17))
    assert "halves" in {row.source for row in window.bench.snapshot.effects.anova}
    # It cannot be taken back now; that is said at once, and nothing is lost.
    page.fold.setCurrentIndex(0)
    page.fold.activated.emit(0)
    settle(qtbot, window)
    assert window.frame.problem_bar.isVisible() and not window.bench.save()
    window.actions_by_id["undo"].trigger()
    settle(qtbot, window)
    assert window.frame.problem_bar.isHidden() and len(window.bench.snapshot.trials) == 16


# --- reading ---


def test_a_chosen_effect_is_marked_everywhere(qtbot: QtBot, window: ExperimentPage) -> None:
    opened(qtbot, window, DATA / "measured_2026-11-21_screen_2p6m2.csv")
    page = window.read_page
    assert page.isVisible(), "a table of runs is there to be read"
    page.effects.chosen.emit("F4")
    place = [e.term for e in window.bench.snapshot.every.effects].index("F4")
    for table in (page.effects, page.rank, page.anova):
        assert table.key == "F4"
    for chart in (page.half_normal, page.pareto, page.main_effects):
        assert marked(chart) == {place}
    labelled = [s.name(k) for s in page.half_normal.content.series for k in s.labels]
    assert len(labelled) <= 6 and any(name.startswith("F4\n") for name in labelled)
    # A click on a bar does the same the other way round.
    page.pareto.clicked.emit(place + 1, False)
    chosen = window.bench.snapshot.every.effects[place + 1].term
    assert page.effects.key == chosen == window.bench.snapshot.selected
    page.effects.chosen.emit("F1:F4")
    assert (page.first.currentData(), page.second.currentData()) == ("F1", "F4")
    window.actions_by_id["nothing"].trigger()
    assert page.effects.key == "" and marked(page.half_normal) == frozenset()


def test_terms_are_clicked_off_and_on(qtbot: QtBot, window: ExperimentPage) -> None:
    opened(qtbot, window, DATA / "measured_2026-11-21_screen_2p6m2.csv")
    page = window.read_page
    index = page.effects.frames.index(0, 0)
    assert page.effects.frames.data(index, Qt.ItemDataRole.CheckStateRole) == Qt.CheckState.Checked
    page.effects.frames.setData(index, Qt.CheckState.Unchecked.value, Qt.ItemDataRole.CheckStateRole)
    settle(qtbot, window)
    assert len(window.bench.snapshot.effects.effects) == 14 and page.effects.frames.rowCount() == 15
    assert window.actions_by_id["undo"].text() == "Undo drop a term"
    assert "without F4" in page.notes.text()  # the largest stands first
    window.actions_by_id["undo"].trigger()
    settle(qtbot, window)
    assert len(window.bench.snapshot.effects.effects) == 15
    page.pareto.clicked.emit(2, True)
    settle(qtbot, window)
    assert len(window.bench.snapshot.effects.effects) == 14, "Ctrl+click takes a term out"
    window.keep_marked()
    settle(qtbot, window)
    kept = {e.term for e in window.bench.snapshot.effects.effects}
    assert kept == {"F3", "F4", "F6"} and window.actions_by_id["all_terms"].isEnabled()


def test_half_effects_are_one_switch(qtbot: QtBot, window: ExperimentPage) -> None:
    opened(qtbot, window, DATA / "measured_2026-11-21_screen_2p6m2.csv")
    page = window.read_page
    full = cells(page.effects, "Effect")["F4"]
    assert full == "1.694" and "Numbers are effects" in page.words.text()
    share = cells(page.effects, "Share")["F4"]
    window.actions_by_id["half"].trigger()
    settle(qtbot, window)
    assert cells(page.effects, "Half effect")["F4"] == "0.8470"
    assert cells(page.rank, "Half effect")["F4"] == "0.8470"
    assert cells(page.effects, "Share")["F4"] == share, "percent is always of the full effect"
    assert page.half_normal.content.x.title.startswith("Size of half effect")
    assert "half effects" in page.words.text() and "coefficient" in page.words.text()
    assert window.actions_by_id["undo"].text() == "Undo show half effects"
    # What was noted beside the trials can be taken off, and residuals stand against it.
    at = page.covariate.findData("other_busy_cores")
    assert at > 0 and page.against.findData("other_busy_cores") > 0
    page.covariate.setCurrentIndex(at)
    page.covariate.activated.emit(at)
    settle(qtbot, window)
    assert "The effects are adjusted for other_busy_cores: " in page.notes.text()
    assert "other_busy_cores" in keys(page.anova)
    assert window.actions_by_id["undo"].text() == "Undo adjust for other_busy_cores"


def test_a_bad_run_is_named_and_left_out(qtbot: QtBot, window: ExperimentPage) -> None:
    opened(qtbot, window, DATA / "nistir5131_table3_runs_implied.csv")
    read, run = window.read_page, window.run_page
    assert "Trial 9 does not fit" in read.notes.text() and "t = 32.4" in read.notes.text()
    window.keep_marked()
    settle(qtbot, window)
    named = [s.name(k) for s in read.residuals.content.series for k in s.labels]
    assert len(named) == 1 and named[0].startswith("trial 9")
    window.actions_by_id["all_terms"].trigger()
    window.show_step(2)
    run.trials.select_key("9")
    run.leave_out.click()
    assert "reason" in window.frame.problem_bar.sentence
    run.reason.setText("clock stood still")
    run.leave_out.click()
    settle(qtbot, window)
    assert cells(run.trials, "Status")["9"] == "left out"
    assert "Left out: 9 (clock stood still)" in read.notes.text()
    assert window.bench.snapshot.effects.effect("c").value > 20


def test_an_array_is_read_without_an_experiment(qtbot: QtBot, window: ExperimentPage) -> None:
    opened(qtbot, window, DATA / "nistir5131_table4_printed_rows.csv")
    page = window.compare_page
    assert page.isVisible() and page.tabs.tabText(page.tabs.currentIndex()) == "Array search"
    assert list(cells(page.ranking, "Run").values()) == ["16", "7", "25", "1"]
    assert cells(page.ranking, "Share")["16"] == "50.0" and cells(page.ranking, "F5")["16"] == "28"
    assert "run 16 with 33.00" in page.search_words.text() and not page.level_chart.content.empty
    assert cells(window.run_page.trials, "F4")["25"] == "14"


def test_a_table_of_delay_sizes_is_pasted(
    qtbot: QtBot, window: ExperimentPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "pasted.csv"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(kept), ""))
    QGuiApplication.clipboard().clear()
    window.actions_by_id["paste_runs"].trigger()
    assert "holds no text" in window.frame.problem_bar.sentence and not kept.exists()
    text = "place\tdelay\twall\n\t0\t10\n\t0\t10.2\n"
    text += "".join(f"f\t{d}\t{10 + 0.02 * d + e}\n" for d in (100, 300, 900) for e in (0, 0.2))
    QGuiApplication.clipboard().setText(text)
    window.actions_by_id["paste_runs"].trigger()
    settle(qtbot, window)
    assert window.bench.snapshot.problem == "" and kept.read_text() == text
    page = window.compare_page
    assert page.isVisible() and page.tabs.tabText(page.tabs.currentIndex()) == "Delay sizes"
    assert (
        cells(page.doses, "Linear") == {"f": "yes"}
        and cells(page.doses, "Per unit, largest")["f"] == "0.02000"
    )
    (points,) = [s for s in page.dose_chart.content.series if s.kind == "points"]
    assert points.x.tolist() == [100, 300, 900] and points.y == pytest.approx(0.02)


@pytest.mark.parametrize(
    "name", ["measured_2026-11-21_screen_2p6m2.csv", "nistir5131_table4_printed_rows.csv"]
)
def test_a_small_screen_holds_the_window(qtbot: QtBot, window: ExperimentPage, name: str) -> None:
    opened(qtbot, window, DATA / name)
    window.frame.resize(800, 500)
    for number in range(5):
        window.show_step(number)
        QApplication.processEvents()
        assert (window.frame.width(), window.frame.height()) == (800, 500)
    window.frame.resize(1280, 720)
    for number in range(5):
        window.show_step(number)
        page = next(step for step in window.findChildren(Step) if step.isVisible())
        QApplication.processEvents()
        assert page.content.height() <= page.height(), "nothing has to be scrolled on a usual screen"


def test_an_effect_is_pinned_only_to_its_own_region(
    qtbot: QtBot, window: ExperimentPage, tmp_path: Path
) -> None:
    """By the name of its routine, or as the user says; never to whatever runs longest."""
    runs = tmp_path / "runs.csv"
    runs.write_text("MPI_Isend,mystery,wall\n-,-,1.5\n+,-,2.5\n-,+,1.6\n+,+,2.9\n")
    opened(qtbot, window, runs)
    sample = next(s for s in resources.samples() if "wave1d" in str(s.path))
    window.bench.pin(sample.path)
    settle(qtbot, window)
    panel = window.read_page.pinning
    window.bench.select("MPI_Isend")
    assert (
        panel.region.currentData() == "MPI_Isend" and "MPI_Isend is pinned to MPI_Isend" in panel.words.text()
    )
    window.bench.select("mystery")
    assert "No region has the name of mystery" in panel.words.text() and "pinned" not in panel.words.text()
    panel.region.setCurrentText("MPI_Waitall")
    panel.region.activated.emit(panel.region.currentIndex())
    assert "mystery is pinned to MPI_Waitall" in panel.words.text()
    window.bench.select("MPI_Isend")
    window.bench.select("mystery")
    assert panel.region.currentData() == "MPI_Waitall", "what the user said is remembered"


def test_cube_and_prediction_are_means_and_sums(qtbot: QtBot, window: ExperimentPage) -> None:
    opened(qtbot, window, DATA / "nistir5131_table2_runs.csv")
    page, found = window.read_page, window.bench.snapshot.effects
    with (DATA / "nistir5131_table2_runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    column = "response_mean_s"
    at = [float(r[column]) for r in rows if (r["f1"], r["f2"], r["f3"]) == ("+", "-", "+")]
    mean = sum(at) / len(at)
    assert f"f1 + f2 − f3 +: {mean:.2f}" in page.cube.accessibleDescription()
    assert page.cube.grab().toImage().width() > 50
    assert f"{rows[0][column]}" in page.predicted.text(), "all terms predict the unperturbed run exactly"
    page.setting["f4"].setCurrentIndex(2)
    page.setting["f4"].activated.emit(2)
    value = found.predict([-1, -1, -1, 1, -1, -1]).value
    assert f"{value:.2f}" in page.predicted.text()


# --- responses from elsewhere, files ---


@needs_shell
def test_responses_are_typed_and_pasted(qtbot: QtBot, window: ExperimentPage, tmp_path: Path) -> None:
    experiment = slow(tmp_path / "e", replicates=1)
    opened(qtbot, window, experiment.folder)
    page = window.run_page
    assert set(cells(page.trials, "Status").values()) == {"planned"}
    column = page.trials.frames.column("value")
    page.trials.frames.setData(page.trials.frames.index(0, column), "fast")
    assert "'fast' is no number" in window.frame.problem_bar.sentence
    page.trials.frames.setData(page.trials.frames.index(0, column), "12.5")
    settle(qtbot, window)
    assert cells(page.trials, "value")["1.1"] == "12.50" and window.frame.problem_bar.isHidden()
    page.trials.select_key("2.0")
    QGuiApplication.clipboard().setText("13\n14.25\n15\n")
    page.trials.paste()
    settle(qtbot, window)
    assert [t.responses[0] for t in read_journal(experiment)] == [12.5, 13.0, 14.25, 15.0]
    assert window.bench.snapshot.effects is not None and not (experiment.folder / "ran.txt").exists()
    table = tmp_path / "back.csv"
    table.write_text("B,A,value\n+,+,1\n")
    page.open_responses(table)
    settle(qtbot, window)
    assert len(read_journal(experiment)) == 6, "the former value is excluded, both stay"


@needs_shell
def test_run_sheet_on_paper_and_as_table(qtbot: QtBot, window: ExperimentPage, tmp_path: Path) -> None:
    experiment = slow(tmp_path / "e")
    opened(qtbot, window, experiment.folder)
    assert window.bench.export_sheet(tmp_path / "runs.csv")
    with (tmp_path / "runs.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 12
    write_pdf(experiment, tmp_path / "runs.pdf")
    assert (tmp_path / "runs.pdf").read_bytes().startswith(b"%PDF")
    assert window.bench.write_job_script(tmp_path / "trials.sh")
    assert "--array=1-12" in (tmp_path / "trials.sh").read_text()
    assert not window.bench.export_sheet(tmp_path / "gone" / "runs.csv")
    assert window.frame.problem_bar.isVisible() and "runs.csv" in window.frame.problem_bar.sentence
    orders = cells(window.design_page.sheet, "Order").values()
    assert list(orders) == [str(k) for k in range(1, 13)]


@needs_shell
def test_the_design_follows_the_choice(qtbot: QtBot, window: ExperimentPage, tmp_path: Path) -> None:
    experiment = slow(tmp_path / "e")
    factors = tuple(Factor(n, Switch(arguments=(f"-{n}={{delay}}",)), delay=7) for n in "abcde")
    experiment = replace(experiment, factors=factors, plan=Plan(runs=8, replicates=2))
    write_experiment(experiment)
    opened(qtbot, window, experiment.folder)
    page = window.design_page
    assert page.offers.key == "regular:8" and cells(page.offers, "Resolution")["regular:16"] == "V"
    assert cells(page.offers, "Clear pairs")["regular:16"] == "10"
    page.least.setCurrentIndex(page.least.findData("5"))
    page.least.activated.emit(page.least.currentIndex())
    assert set(cells(page.offers, "Treatments")) == {"regular:16", "full:32"}
    page.budget.setValue(8)
    assert not keys(page.offers) and page.why.text() == (
        "None fits: 5 factors in resolution V need 16 treatments."
    )
    page.budget.setValue(16)
    assert set(cells(page.offers, "Treatments")) == {"regular:16"}
    page.offers.chosen.emit("regular:16")
    settle(qtbot, window)
    assert window.bench.snapshot.design.runs == 16 and page.generators.text() == "e=-abcd"
    page.generators.setText("e=a")
    page.generators.editingFinished.emit()
    assert "equal to another" in window.frame.problem_bar.sentence and window.bench.snapshot.design.runs == 16
    page.generators.setText("e=abcd")
    page.generators.editingFinished.emit()
    settle(qtbot, window)
    assert "run without any delay is not among these" in page.warning.text() and page.warning.isVisibleTo(
        page
    )
    assert "I = a:b:c:d:e" in page.relation.toPlainText()
    page.sigma.setValue(0.5)
    assert "chance of 90 %" in page.power.text()
    page.fold.setCurrentIndex(1)
    page.fold.activated.emit(1)
    settle(qtbot, window)
    assert window.bench.snapshot.design.runs == 32
    page.kind.setCurrentIndex(page.kind.findData("orthogonal-array"))
    page.kind.activated.emit(2)
    settle(qtbot, window)
    assert window.bench.snapshot.project.experiment.plan.array == "L25"
    seed = page.seed.text()
    page.draw.click()
    assert page.seed.text() != seed
    labels = []
    while window.bench.history.undo_label is not None:
        labels.append(window.bench.history.undo_label)
        window.actions_by_id["undo"].trigger()
    assert labels[0] == "draw another order" and labels[-1] == "take 16 treatments"
    assert window.bench.snapshot.project.experiment == experiment


@needs_shell
def test_fields_write_the_description(qtbot: QtBot, window: ExperimentPage, tmp_path: Path) -> None:
    experiment = slow(tmp_path / "e")
    opened(qtbot, window, experiment.folder)
    page = window.program_page
    assert not window.isWindowModified()
    page.delay.setValue(250)
    page.delay.editingFinished.emit()
    assert window.bench.snapshot.project.experiment.program.flags == ("-DSPT_DELAY=250",)
    assert window.isWindowModified() and window.actions_by_id["undo"].text() == "Undo change the delay"
    page.run_words.setText('./program.sh "two words" {args}')
    page.run_words.editingFinished.emit()
    assert window.bench.snapshot.project.experiment.program.run == ("./program.sh", "two words", "{args}")
    page.run_words.setText('./program.sh "open')
    page.run_words.editingFinished.emit()
    assert "quotation mark" in window.frame.problem_bar.sentence
    page.factors.frames.edited.emit("A", 4, "DELAY_A=2 MODE=x")
    assert window.bench.snapshot.project.experiment.factors[0].high.environment == (
        ("DELAY_A", "2"), ("MODE", "x"),
    )  # fmt: skip
    page.factors.frames.edited.emit("A", 6, "no cache")
    page.factors.frames.edited.emit("A", 7, "64 kB")
    assert window.bench.snapshot.project.experiment.factors[0].levels == ("no cache", "64 kB")
    assert "64 kB" in cells(page.factors, "High means").values()
    page.factors.frames.edited.emit("A", 5, "many")
    assert "'many', it must be a whole number" in window.frame.problem_bar.sentence
    page.responses.frames.edited.emit("wall", 1, "beauty")
    assert "'beauty' is not known" in window.frame.problem_bar.sentence
    page.add_factor("C")
    assert window.bench.snapshot.design.runs == 8
    window.actions_by_id["save"].trigger()
    assert not window.isWindowModified()
    assert 'name = "C"' in (experiment.folder / "experiment.toml").read_text()


# --- comparing ---


def test_comparisons_say_what_they_need(qtbot: QtBot, window: ExperimentPage) -> None:
    opened(qtbot, window, DATA / "measured_2026-11-21_screen_2p6m2.csv")
    page = window.compare_page
    window.show_step(4)
    assert "needs 3 or more numbers of processors, has 0" in page.over_p_words.text()
    assert "orthogonal array" in page.search_words.text() and "there are none" in page.barrier_words.text()
    window.bench.add_table(DATA / "measured_2026-11-21_second_2p5m1.csv")
    settle(qtbot, window)
    assert {"F1", "F5"} <= set(cells(page.versions, "Factor").values())
    page.tables.frames.edited.emit("here", 1, "2")
    page.tables.frames.edited.emit("0", 1, "8")
    settle(qtbot, window)
    assert {"F1", "F2"} <= set(cells(page.scaling, "Effect").values())
    for text in ("lots", "1e305"):  # of which the second would be one that no project can hold
        page.tables.frames.edited.emit("0", 1, text)
        assert f"{text!r} is no number of processors" in window.frame.problem_bar.sentence
    window.bench.select("F2")
    assert page.scaling.key == page.versions.key == "F2"


def test_barrier_pairs_and_the_scale(qtbot: QtBot, window: ExperimentPage) -> None:
    opened(qtbot, window, DATA / "measured_2026-11-21_barriers_spin_2p6m2.csv")
    assert list(cells(window.compare_page.barriers, "Before").values()) == ["FB1_1", "FB1_2", "FB1_3"]
    opened(qtbot, window, DATA / "measured_2026-11-21_scaling_2p2.csv")
    rows = window.read_page.rows
    rows.setCurrentIndex(rows.findData("factor=F4"))
    rows.activated.emit(rows.currentIndex())
    settle(qtbot, window)
    page = window.compare_page
    assert (page.factor.currentData(), page.scale.currentData()) == ("x_factor", "x_s")
    assert page.verdict.text().startswith("<b>scales</b>")
    assert cells(page.single, "Half effect")["mean"] == "0.8753"


# --- the window ---


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_both_themes_and_every_step_are_drawn(qtbot: QtBot, window: ExperimentPage, theme) -> None:
    opened(qtbot, window, DATA / "measured_2026-11-21_screen_2p6m2.csv")
    window.frame.use_theme(theme)
    for number in range(5):
        window.show_step(number)
        qtbot.wait(10)
        picture = window.grab().toImage()
        assert not picture.isNull() and picture.width() == 1280
    window.show_step(3)
    qtbot.wait(10)
    chart = window.read_page.half_normal.grab().toImage()
    assert chart.pixelColor(3, 3) == QColor(theme.background)


def test_empty_steps_say_what_to_do(qtbot: QtBot, window: ExperimentPage, tmp_path: Path) -> None:
    links = [link.text() for link in window.findChildren(QCommandLinkButton)]
    assert links == [
        "New experiment…",
        "Open experiment…",
        "Open table of runs…",
        "Paste table of runs…",
        "Copy the bundled example…",
    ]
    assert not window.actions_by_id["step_3"].isEnabled()
    opened(qtbot, window, DATA / "measured_2026-11-21_screen_2p6m2.csv")
    for page in (window.program_page, window.design_page):
        assert "table of runs" in page._why.text() and page._stack.currentIndex() == 1
    window.bench.open_example(tmp_path / "quicksort")
    settle(qtbot, window)
    assert window.steps.currentIndex() == 0 and window.program_page._stack.currentIndex() == 0
    assert "Run trials in step 3" in window.read_page._why.text()


def test_everything_has_a_name_and_a_key(qtbot: QtBot, window: ExperimentPage) -> None:
    for widget in window.findChildren(QWidget):
        if isinstance(widget, (FrameView, Chart)):
            assert widget.accessibleName()
            assert widget.focusPolicy() & Qt.FocusPolicy.TabFocus
    keys = [key for command in EXPERIMENT_COMMANDS for key in command.keys]
    assert len(keys) == len(set(keys)) and {f"Ctrl+{k}" for k in range(1, 6)} <= set(keys)
    assert all(command.tip for command in EXPERIMENT_COMMANDS)
    window.actions_by_id["handbook"].trigger()
    shown = handbook()
    assert shown.isVisible() and "spt_delay" in shown.page.toPlainText(), "the page on experiments"
    shown.close()
    assert "Ctrl+1" in window.keys_html()


def test_tables_are_copied_with_headings(qtbot: QtBot, window: ExperimentPage) -> None:
    opened(qtbot, window, DATA / "measured_2026-11-21_screen_2p6m2.csv")
    window.actions_by_id["copy_table"].trigger()
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0].split("\t")[:3] == ["In", "Term", "Effect [s]"] and len(lines) == 16
    found = {line.split("\t")[1]: line.split("\t")[2] for line in lines[1:]}
    assert float(found["F4"]) == window.bench.snapshot.effects.effect("F4").value, "with all digits"
    table = window.read_page.effects
    table.copy(comma_separated, everything=True)
    parsed = list(csv.reader(QGuiApplication.clipboard().text().splitlines()))
    assert {len(row) for row in parsed} == {13}, "aliases hold commas, which are quoted"
    table.copy(markdown, everything=True)
    assert QGuiApplication.clipboard().text().startswith("| In | Term |")
    table.copy(latex, everything=True)
    assert r"\begin{tabular}" in QGuiApplication.clipboard().text()
    table.sortByColumn(2, Qt.SortOrder.DescendingOrder)
    assert keys(table)[0] == "F4"
    table.sortByColumn(2, Qt.SortOrder.AscendingOrder)
    assert keys(table)[-1] == "F4"


def test_dropped_files_and_windows_by_content(
    qtbot: QtBot,
    window: ExperimentPage,
    qapp: QApplication,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def drop(path: Path) -> None:
        mime = QMimeData()
        mime.setUrls([QUrl.fromLocalFile(str(path))])
        where = QPointF(100, 100)
        buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        window.frame.dropEvent(QDropEvent(where, Qt.DropAction.CopyAction, mime, buttons, keys))
        settle(qtbot, window)

    drop(DATA / "nistir5131_table2_runs.csv")
    assert window.bench.snapshot.name == "nistir5131_table2_runs.csv"
    assert window.windowTitle().startswith("nistir5131_table2_runs.csv")
    window.show_step(4)
    drop(DATA / "nistir5131_table2b_runs_implied.csv")
    assert len(window.bench.snapshot.project.tables) == 1
    windows = Windows(qapp, window.settings)
    made = windows.open([DATA / "nistir5131_table2_runs.csv"]).current
    assert isinstance(made, ExperimentPage)
    settle(qtbot, made)
    assert made.bench.snapshot.effects is not None
    made.frame.close()
    assert windows._open == []


def test_experiments_go_to_pages_of_the_window(
    qtbot: QtBot, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = Frame(settings).trace
    qtbot.addWidget(main.frame)
    asked: list[str] = []
    monkeypatch.setattr(ExperimentPage, "choose_new", lambda page: asked.append(page.name))
    main.open_path(DATA / "nistir5131_table2_runs.csv")
    first = main.frame.current
    main.open_path(resources.folder() / "examples" / "quicksort")
    second = main.frame.current
    assert isinstance(first, ExperimentPage) and isinstance(second, ExperimentPage) and first is not second
    for page in (first, second):
        settle(qtbot, page)
    assert [page.name for page in (first, second)] == ["nistir5131_table2_runs.csv", "Parallel quicksort"]
    main.actions_by_id["new_experiment"].trigger()
    assert asked == [""], "on a page with nothing on it"
    assert main.workbench.snapshot.opening is None
    assert all(word in {c.id for c in EXPERIMENT_COMMANDS} for word in ("new", "open", "open_runs"))
    main.frame.close()


def test_what_cannot_be_opened_is_a_sentence(qtbot: QtBot, window: ExperimentPage, tmp_path: Path) -> None:
    (tmp_path / "experiment.toml").write_text("format = 1\n")
    window.open_path(tmp_path)
    settle(qtbot, window)
    assert window.frame.problem_bar.isVisible() and "names no factors" in window.frame.problem_bar.sentence
    assert "Traceback" not in window.frame.problem_bar.sentence

"""A program of one's own in the window: a new experiment of it, the answer, and reports on it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pptx import Presentation
from PySide6.QtWidgets import QPlainTextEdit

from desktop import cli, resources
from desktop.core.effects import analyse
from desktop.data.answer import MeasuredResponse
from desktop.data.experiment import Plan, read_experiment, read_journal
from desktop.data.report import Looks, ReportTable
from desktop.data.runner import Runner
from desktop.data.runs import read_runs
from desktop.progress import Progress
from desktop.ui.experiment.new import NewExperimentDialog
from desktop.ui.experiment.parts import ErrandDialog
from desktop.ui.experiment.report import compose
from desktop.ui.experiment_page import ExperimentPage
from desktop.ui.reporting import write
from tests.experiments import SCRIPT, needs_shell, small
from tests.ui.scene import alone

TABLE = Path(__file__).parent.parent / "data" / "spt" / "nistir5131_table2_runs.csv"


def settled(qtbot, page: ExperimentPage) -> None:
    qtbot.waitUntil(lambda: not page.busy, timeout=20_000)


@pytest.fixture
def page(qtbot, settings, no_thread_left):
    made = alone(ExperimentPage, settings)
    qtbot.addWidget(made.frame)
    yield made
    made.frame.close_unasked()


def test_reports_and_figures_by_commands(qapp, tmp_path, capsys):
    for kind in ("html", "pdf", "pptx"):
        out = tmp_path / f"report.{kind}"
        assert cli.run(["spt", "report", str(TABLE), "-o", str(out)]) == 0
        assert out.stat().st_size > 10_000
    page = (tmp_path / "report.html").read_text()
    said = "f4 is what the response depends on"
    assert page.count("<svg") == 4 and said in page
    deck = Presentation(str(tmp_path / "report.pptx"))
    texts = [s.text_frame.text for slide in deck.slides for s in slide.shapes if s.has_text_frame]
    assert any(text.startswith(said) for text in texts)
    heads = [
        tuple(cell.text for cell in shape.table.rows[0].cells)
        for slide in deck.slides
        for shape in slide.shapes
        if shape.has_table
    ]
    assert len(heads) == len(set(heads)) and [head[0] for head in heads].count("Factor") == 1, "none twice"
    (ranks,) = [head for head in heads if head[0] == "Factor"]
    assert not {"Low means", "High means", "File", "Line"} & set(ranks), "no column is empty"
    capsys.readouterr()
    words = ["spt", "figures", str(TABLE), "-o", str(tmp_path / "figures"), "--data", "--json"]
    assert cli.run(words) == 0
    files = [Path(name) for name in json.loads(capsys.readouterr().out)["files"]]
    assert len(files) == 8 and all(file.stat().st_size for file in files)
    assert cli.run([*words[:-2], "--plots", "cake"]) == 1
    assert "no chart 'cake'" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["html", "pdf", "pptx"])
def test_a_report_on_a_model_without_main_effects(qapp, tmp_path, kind):
    table = read_runs(TABLE)
    effects, measured = analyse(table.data, terms=((0, 1),)), MeasuredResponse.of(table)
    report = compose("pairs", effects, measured.answer(effects), measured)
    (factors,) = [b for s in report.sections if s.title == "Factors" for b in s.blocks]
    assert isinstance(factors, ReportTable) and factors.heads[0] == "Factor" and not factors.rows
    write(report, tmp_path / f"report.{kind}", Looks(), Progress())
    assert (tmp_path / f"report.{kind}").stat().st_size > 10_000


def test_a_report_of_a_table_is_that_of_the_window(qtbot, page, tmp_path, capsys):
    """The command left out what the table says of its levels; the window gave logarithms in seconds."""
    rows = ["order,A,threads,wall_s"]
    for order, (a, p) in enumerate(2 * [("-", 8), ("+", 8), ("-", 24), ("+", 24)], 1):
        rows.append(f"{order},{a},{p},{80 / p * (1.1 if a == '+' else 1) + 0.01 * order}")
    (tmp_path / "runs.csv").write_text("\n".join(rows))
    assert cli.run(["spt", "report", str(tmp_path / "runs.csv"), "-o", str(tmp_path / "asked.html")]) == 0
    page.open_path(tmp_path / "runs.csv")
    qtbot.waitUntil(lambda: page.bench.snapshot.effects is not None, timeout=20_000)
    page.write_report(tmp_path / "shown.html")
    settled(qtbot, page)
    for name in ("asked", "shown"):
        text = (tmp_path / f"{name}.html").read_text()
        assert ">threads=8<" in text and ">threads=24<" in text and "Effect [s]" in text
    page.bench.set_analysis("logarithm", transform=0.0)
    qtbot.waitUntil(lambda: page.bench.snapshot.effects.transform == 0, timeout=20_000)
    page.write_report(tmp_path / "log.html")
    settled(qtbot, page)
    text = (tmp_path / "log.html").read_text()
    assert "Effect [ln]" in text and "Effect [s]" not in text
    residuals = page.read_page.residuals.content
    assert residuals is not None and residuals.y.title == "Residual of ln wall_s"


def test_a_column_that_is_no_factor_is_named(qtbot, page, tmp_path):
    """Threads of three numbers were left out without a word, as in the command."""
    rows = [f"{n},{s},{8 + 8 * (n % 3)},{10 + n % 2 + (s == '+')}" for n in range(6) for s in "-+"]
    (tmp_path / "runs.csv").write_text(
        "order,swap,threads,seconds\n" + "\n".join([*rows, "6,-,8,oops"]) + "\n"
    )
    page.bench.open(tmp_path / "runs.csv")
    qtbot.waitUntil(lambda: page.bench.snapshot.effects is not None, timeout=20_000)
    settled(qtbot, page)
    assert "Not read is threads: no factor" in page.read_page.notes.text()
    assert "runs.csv: line 14, column seconds: 'oops' is no number" in page.read_page.notes.text()
    page.bench.set_analysis("take threads off", covariate="threads")
    settled(qtbot, page)
    assert "Not read" not in page.read_page.notes.text()


def test_a_new_experiment_of_a_program(qtbot, page, tmp_path):
    """Its places stand beside their source; what is ticked gets a delay in a copy."""
    own = tmp_path / "own"
    own.mkdir()
    source = (resources.folder() / "templates" / "heat.c").read_text()
    (own / "heat.c").write_text(source)
    page.actions_by_id["new"].trigger()
    dialog = page.findChild(NewExperimentDialog)
    settled(qtbot, page)
    dialog.kind.setCurrentIndex(dialog.kind.findData("compiler"))
    dialog.program.setText(str(own / "nothing"))
    dialog.look()
    settled(qtbot, page)
    assert "no such program" in dialog.words.text()
    dialog.program.setText(str(own))
    dialog.look()
    settled(qtbot, page)
    assert dialog.request.places == ("heat.c:8", "heat.c:15", "heat.c:21")
    assert not dialog.make.isEnabled(), "no folder is named"
    dialog.places.select_key("heat.c:15")
    dialog._show_source("heat.c:15")
    assert "heat_end" in dialog.source.textCursor().block().text()
    dialog.places.frames.toggled.emit("heat.c:21", False)
    dialog.folder.setText(str(tmp_path / "e"))
    dialog._ready()
    assert dialog.words.text() == "2 of 5 places get a delay."
    dialog.make.click()
    settled(qtbot, page)
    assert page.snapshot.project.experiment == read_experiment(tmp_path / "e")
    assert [f.name for f in page.snapshot.project.experiment.factors] == ["smooth", "heat_end"]
    assert (own / "heat.c").read_text() == source
    assert "#ifdef F2" in (tmp_path / "e" / "program" / "heat.c").read_text()


def test_a_new_experiment_of_a_command(qtbot, page, tmp_path):
    """Its factors are the variables that are named."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "own.sh").write_text("echo $SIZE")
    page.actions_by_id["new"].trigger()
    dialog = page.findChild(NewExperimentDialog)
    dialog.kind.setCurrentIndex(dialog.kind.findData("command"))
    for field, text in (
        (dialog.program, tmp_path / "own"),
        (dialog.run_words, "sh own.sh"),
        (dialog.folder, tmp_path / "e"),
    ):
        field.setText(str(text))
        field.editingFinished.emit()
    settled(qtbot, page)
    assert "name those that are to be varied" in dialog.words.text() and not dialog.make.isEnabled()
    for typed, said in (
        ("SIZE=1", "'SIZE=1' should read NAME=LOW,HIGH"),
        ("SIZE=1,3 MODE=a,b", "SIZE, MODE"),
    ):
        dialog.variables.setText(typed)
        dialog.variables.editingFinished.emit()
        assert said in dialog.words.text()
    assert dialog.make.isEnabled()
    dialog.make.click()
    settled(qtbot, page)
    made = page.snapshot.project.experiment
    assert made.names == ("SIZE", "MODE") and made.program.run == ("sh", "./program/own.sh")


@needs_shell
def test_the_answer_stands_above_and_is_confirmed(qtbot, page, tmp_path):
    script = SCRIPT.replace("value=10", "n=$(wc -l < ran.txt); value=$((10 + (n * n * 5 + n) % 7 % 3))")
    experiment = small(tmp_path / "e", script, plan=Plan(replicates=4, seed=5))
    Runner(experiment).run()
    page.open_path(tmp_path / "e")
    settled(qtbot, page)
    read = page.read_page
    assert read.answer.text().startswith("B is what value depends on most: --slow in place of --fast takes ")
    page.actions_by_id["confirm"].trigger()
    dialog = read.findChild(ErrandDialog)
    assert "./program.sh --slow" in dialog.findChild(QPlainTextEdit).toPlainText()
    before = len(read_journal(experiment))
    page.bench.run_errand(replace(page.bench.confirmation(("B",)), commands=("something else",)))
    assert "agreed to them" in page.snapshot.problem
    dialog.accept()
    settled(qtbot, page)
    one = page.snapshot.confirmed
    assert 5.5 <= one.measured <= 8.5 and one.setting == ("B",)
    assert read.confirmed.text().startswith(f"{one.verdict.capitalize()}: B should change the response by ")
    assert len(read_journal(experiment)) == before
    page.write_report(tmp_path / "said.html")
    settled(qtbot, page)
    assert "B is what value depends on" in (tmp_path / "said.html").read_text()
    page.design_page.take_advice.click()
    plan = page.snapshot.project.experiment.plan
    assert (plan.runs, plan.seed) == (4, 5) and plan.replicates != 4
    assert replace(plan, replicates=4, runs=None) == experiment.plan

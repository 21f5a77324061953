"""A report on a factor model: of a table in the window, and of the tables of a project."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from desktop import cli
from desktop.data.project_file import write as write_project
from desktop.data.report import Paragraph, Picture, Points, ReportTable
from desktop.progress import Progress
from desktop.resources import example_table
from desktop.ui.model.report import compose, sections
from desktop.workbench import model_results
from desktop.workbench.model import KeptTable, Workspace
from desktop.workbench.model_results import parameter_sheet
from desktop.workbench.modelling import ModelSnapshot, model_of


@pytest.fixture(scope="module")
def shown() -> ModelSnapshot:
    found = model_of(KeptTable(example_table()), Progress())
    return replace(found, view=replace(found.view, code="SP", system="IBM SP2", p=200.0))


def test_it_says_what_the_window_says_of_the_chosen_cell(shown: ModelSnapshot) -> None:
    made, slides = sections(shown, "class A", number=4)
    assert [one.title for one in made][:3] == [
        "Factor model of class A", "SP on IBM SP2", "On 200 processors",
    ]  # fmt: skip
    pictures = [block for one in made for block in one.blocks if isinstance(block, Picture)]
    assert [one.number for one in pictures] == [4, 5, 6, 7]
    tables = [block for one in made for block in one.blocks if isinstance(block, ReportTable)]
    assert shown.fit is not None
    assert len(tables[1].rows) == 2 * 8 and {row[0] for row in tables[1].rows} == {"work", "speed"}
    frame = parameter_sheet(shown.fit).frame
    assert frame is not None
    known = frame[np.isfinite(frame["low"])]
    around = (known["low"] <= 0) & (known["high"] >= 0)
    assert (known["verdict"].str.contains("not different") == around).all() and 0 < around.sum() < len(known)
    assert len(tables[0].rows) == shown.fit.points.size
    predicted = float(shown.fit.predict(*(shown.cell or (0, 0)), [200.0])[0][0]) / 200  # type: ignore[arg-type]  # what numpy takes
    row = next(row for row in tables[0].rows if row[:2] == ("SP", "IBM SP2"))
    assert float(row[3].replace("\u2009", "")) == pytest.approx(predicted, rel=1e-3)
    assert "200 processors" in slides[0].title and slides[1].title == shown.headline[0]
    first, second = made[0].blocks[:2]
    assert isinstance(first, Paragraph) and first.text.startswith("IBM SP2 is 1.8 times as efficient as ")
    assert isinstance(second, Points) and any("product form" in line for line in second.items)


def test_rows_that_stand_out_are_told_by_their_lines(
    shown: ModelSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown.selection is not None
    monkeypatch.setattr(model_results, "suspects", lambda fit: np.array([2, 5, 7]))
    monkeypatch.setattr(model_results, "accused", lambda fit: np.array([5]))
    notes = [b.items for b in sections(shown, "t")[0][0].blocks if isinstance(b, Points)][-1]
    a, b, c = (shown.selection.lines[k] for k in (5, 2, 7))
    assert f"in the table. Accused: line {a}; worth a look: line {b}, {c}. Accused are rows " in notes[-1]
    assert "at most 5 % of sound tables have one" in notes[-1]


def test_nothing_fitted_is_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="no model to report on"):
        compose(ModelSnapshot(), "none")


def test_a_project_of_a_table_is_reported_on(
    qapp: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project, out = tmp_path / "of.phasewright", tmp_path / "told.html"
    write_project(project, Workspace(tables=(KeptTable(example_table()),)))
    assert cli.run(["report", str(project), "-o", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["figure"] for one in told["figures"]] == ["scaling", "shares", "speeds", "works"]
    page = out.read_text(encoding="utf-8")
    assert "the product form does not hold" in page and told["command"] in page
    assert len(re.findall("<svg", page)) == len(told["figures"])

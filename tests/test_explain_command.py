"""`phasewright explain`: the causes in words, as text and as plain values."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from desktop.cli import run
from tests.programs.causes.known import DATA


def test_it_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", str(DATA / "late_root.tar.xz"), "-n", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["n"] == len(told["phases"]) == 2 and len(told["breaks_s"]) == 3
    first = told["causes"][0]
    assert (first["key"], first["region"], first["locations"]) == ("late root", "choose_pivot", [0])
    assert first["strength"] == "strong" and first["phase"] in (1, 2)
    assert told["paragraph"].startswith(first["sentence"])
    assert sum(cause["lost_s"] for cause in told["causes"]) == pytest.approx(told["lost_s"])
    assert sum(phase["lost_s"] for phase in told["phases"]) == pytest.approx(told["lost_s"])
    assert run(["explain", str(DATA / "late_root.tar.xz"), "-n", "1"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("The root of MPI_Bcast, rank 0, comes late") and "strong evidence:" in said


def test_lines_keep_numbers_and_units_together_and_only_words_that_are_used_are_explained(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = Path(__file__).parent / "data" / "otf2" / "mpt_jacobi2d_9_dilated.tar.gz"
    assert run(["explain", str(path)]) == 0
    said = capsys.readouterr().out
    assert not re.search(r"\d\n(%|proc·|[kM]?B\b|[mµ]?s\b|\d{3}\b)", said) and "\u00a0" not in said
    assert re.search(r"\b1 440 messages", said.replace("\n", " "))
    text, _, meaning = said.partition("\n\nstrong evidence:")
    for strength in ("fair", "weak"):
        assert (f"{strength} evidence:" in meaning) is (f"{strength} evidence" in text)
    assert max(map(len, said.splitlines())) <= 98


def test_of_a_curve_nothing_is_known(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "curve.csv").write_text("0,1\n1,2\n2,0\n")
    assert run(["explain", str(tmp_path / "curve.csv"), "-n", "1"]) == 0
    assert "nothing else is known" in capsys.readouterr().out

"""`phasewright explain`: the causes in words, as text and as plain values."""

from __future__ import annotations

import json
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


def test_of_a_curve_nothing_is_known(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "curve.csv").write_text("0,1\n1,2\n2,0\n")
    assert run(["explain", str(tmp_path / "curve.csv"), "-n", "1"]) == 0
    assert "nothing else is known" in capsys.readouterr().out

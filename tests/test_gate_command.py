"""``phasewright compare BASE... --against NEW... --fail-over``: verdict, exit code, files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from desktop import cli
from desktop.resources import samples
from tests.test_compare_command import curve

pytestmark = pytest.mark.usefixtures("own_cache")


def side(
    folder: Path, name: str, middle: float, scatter: tuple[float, ...] = (0.99, 1.0, 1.01)
) -> list[Path]:
    """Runs of three phases, the second of which lasts `middle` seconds; each as much longer as `scatter`."""
    return [
        curve(folder / f"{name}-{k}.csv", (4 * by, 8), (middle * by, 2), (5 * by, 6))
        for k, by in enumerate(scatter)
    ]


def gate(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, Any]:
    code = cli.run(["compare", *map(str, words), "-n", "3", "--json"])
    captured = capsys.readouterr()
    assert captured.err == ""
    return code, json.loads(captured.out)


def test_a_slower_phase_fails_and_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, new = side(tmp_path, "base", 6), side(tmp_path, "new", 7.5)
    code, told = gate(capsys, *base, "--against", *new, "--fail-over", "5%")
    assert code == 4
    assert told["failed"] is True
    rows = {one["phase"]: one for one in told["differences"]}
    assert [row["over"] for row in rows.values()] == [True, False, True, False]
    assert rows["phase 2"]["change"] == pytest.approx(0.25)
    assert (rows["phase 2"]["base_s"], rows["phase 2"]["new_s"]) == pytest.approx((6, 7.5), rel=1e-3)
    assert rows["phase 1"]["significant"] is False
    assert "phase 2 +25 %" in told["verdict"]
    # Faster is a difference, and no failure; nor is what is not over the limit.
    code, told = gate(capsys, *new, "--against", *base, "--fail-over", "5%")
    assert (code, [one["significant"] for one in told["differences"]]) == (0, [True, False, True, False])
    assert gate(capsys, *base, "--against", *new, "--fail-over", "30%")[0] == 0
    assert gate(capsys, *base, "--against", *new)[0] == 0


def test_a_slower_side_that_scatters_as_much_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, new = (
        side(tmp_path, name, 6, by) for name, by in (("base", (0.8, 1, 1.2)), ("new", (0.9, 1.1, 1.3)))
    )
    code, told = gate(capsys, *base, "--against", *new, "--fail-over", "5%")
    assert (code, told["differences"][0]["significant"]) == (0, False)
    whole = told["differences"][0]
    assert whole["change"] > 0.05
    # It passes, but nobody reads that it is not slower.
    passed, _, open_still = told["verdict"].partition(" The scatter does not rule out: ")
    assert passed.startswith("Passed, nothing is seen to be slower by more than 5 %.")
    assert open_still.startswith(f"the whole run +{100 * whole['high']:.3g} %, phase 1 ")
    # Runs that hardly scatter rule it out.
    base, new = side(tmp_path, "base", 6), side(tmp_path, "same", 6)
    assert "rule out" not in gate(capsys, *base, "--against", *new, "--fail-over", "5%")[1]["verdict"]


def test_one_run_a_side_says_what_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The second phase is longer by 10 %, the run by 4 %.
    base, new = side(tmp_path, "base", 6, (1.0,)), side(tmp_path, "new", 6.6, (1.0,))
    code, told = gate(capsys, *base, *new, "--fail-over", "5%")
    assert code == 0
    assert [one["significant"] for one in told["differences"]] == [None] * 4
    assert "too few to know how much runs scatter" in told["judged"]
    assert gate(capsys, *base, *new, "--fail-over", "3%")[0] == 4
    base, new = (side(tmp_path, name, 6, (0.99, 1.01)) for name in ("base", "new"))
    md = tmp_path / "gate.md"
    _, told = gate(capsys, *base, "--against", *new, "--markdown", md)
    assert len(told["judged"]) > 200 and "can pass for a difference" in md.read_text()


def test_markdown_and_junit_hold_what_strangers_wrote_as_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = side(tmp_path, "<b>|`x`&\x1b", 6)
    new = side(tmp_path, "[new](http:x)", 7.5)
    md, xml = tmp_path / "gate.md", tmp_path / "gate.xml"
    words = [*base, "--against", *new, "--fail-over", "5", "--markdown", md, "--junit", xml]
    assert cli.run(["compare", *map(str, words), "-n", "3"]) == 4
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 100
    assert "over the limit" in out
    text = md.read_text()
    assert text.startswith("### Phasewright: failed\n")
    assert r"\<b\>\|\`x\`\&" in text
    assert "<b>" not in text and "](http" not in text and "\x1b" not in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 6
    suite = ElementTree.parse(xml).getroot()
    assert suite.attrib["tests"] == "4" and suite.attrib["failures"] == "2" and suite.attrib["skipped"] == "0"
    failed = [case.attrib["name"] for case in suite.iter("testcase") if case.find("failure") is not None]
    assert failed == ["the whole run", "phase 2"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["a", "b", "c", "--fail-over", "5%"], 1, "say which of the 3 files"),
        (["a", "b", "--fail-over", "5%"], 1, "a: does not exist"),
        (["a", "--against", "b", "--axis", "start"], 1, "do not go with two sides"),
        (["a", "b", "--fail-over=-3%"], 2, "should read like 5%"),
        (["a", "b", "--fail-over", "nan"], 2, "should read like 5%"),
    ],
)
def test_wrong_words(words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["compare", *words]) == code
    assert said in capsys.readouterr().err


def test_its_phases_are_those_of_the_window(capsys: pytest.CaptureFixture[str]) -> None:
    """They once ended elsewhere: structure events did not count."""
    sample = str(samples()[0].path)
    code, result = gate(capsys, sample, "--against", sample)
    assert code == 0
    assert cli.run(["phases", sample, "-n", "3", "--json"]) == 0
    fit = json.loads(capsys.readouterr().out)
    assert cli.run(["phases", sample, "-n", "3", "--json", "--curve-only"]) == 0
    alone = json.loads(capsys.readouterr().out)
    lengths = [np.diff(one["breaks_s"]).tolist() for one in (fit, alone)]
    assert [one["base_s"] for one in result["differences"][1:]] == pytest.approx(lengths[0])
    assert lengths[0] != pytest.approx(lengths[1])

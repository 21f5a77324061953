"""``phasewright compare``: the table and the differences, in three forms that agree with the curves."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from desktop import cli
from desktop.data.project_file import write
from desktop.workbench.model import Comparison, Matched, PhaseSettings, Workspace, run_keys
from desktop.workbench.run_comparison import plain_run
from tests.data_layer import archives

pytestmark = pytest.mark.usefixtures("own_cache")


def curve(path: Path, *parts: tuple[float, float]) -> Path:
    """A curve file: levels, each held for so many seconds."""
    widths, levels = zip(*parts, strict=True)
    times = np.append(0.0, np.cumsum(widths))
    rows = [f"{t:g},{h:g}" for t, h in zip(times, [*levels, 0], strict=True)]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """The same three phases, slower and with one more between them, on twice as many processors."""
    return [
        curve(tmp_path / "small.csv", (4, 8), (6, 2), (5, 6)),
        curve(tmp_path / "large.csv", (3, 16), (5, 4), (2, 9), (4, 12)),
    ]


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = cli.run(["compare", *(str(word) for word in words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def as_json(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    code, out, err = run(capsys, *words, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def phases_of(told: Any) -> dict[str, list[int | None]]:
    rows: dict[str, list[int | None]] = {}
    for cell in told["cells"]:
        rows.setdefault(cell["label"], []).append(cell["phase"])
    return rows


def test_phases_are_matched_and_the_numbers_are_the_curves(capsys, runs) -> None:  # type: ignore[no-untyped-def]
    told = as_json(capsys, *runs, "-n", 4, "--model", "constant")
    assert [(one["n"], one["processors"]) for one in told["runs"]] == [(3, 8), (4, 16)]
    rows = {"phase 1": [1, 1], "phase 2": [2, 2], "phase 3 of large.csv": [None, 3], "phase 3": [3, 4]}
    assert phases_of(told) == {"run": [0, 0], **rows}
    assert told["runs"][1]["match"] == [1, 2, 4] and told["runs"][0]["match"] is None
    whole, second = (next(c for c in told["cells"] if c["label"] == name and c["run"] == "large.csv")
                     for name in ("run", "phase 2"))  # fmt: skip
    assert whole["duration_s"] == 14 and whole["work_s"] == 48 + 20 + 18 + 48
    assert second["duration_ratio"] == pytest.approx(5 / 6) and second["mean_difference"] == pytest.approx(2)
    assert second["efficiency_difference"] == 0
    (apart,) = told["differences"]
    assert apart["area"] == pytest.approx(whole["work_s"] - (32 + 12 + 30))
    assert apart["area"] == pytest.approx(apart["more"] - apart["less"])
    gap = next(c for c in told["cells"] if c["phase"] is None)
    assert gap["run"] == "small.csv" and gap["mean"] is None


def test_three_forms_agree(capsys, runs) -> None:  # type: ignore[no-untyped-def]
    words = (*runs, "-n", 4, "--model", "constant", "--axis", "normalised", "--share")
    told = as_json(capsys, *words)
    code, out, _ = run(capsys, *words, "--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0 and len(rows) == len(told["cells"])
    for row, cell in zip(rows, told["cells"], strict=True):
        assert {name: value or None for name, value in row.items()} == {
            name: None if value is None else str(value) for name, value in cell.items()
        }
    code, out, _ = run(capsys, *words)
    assert code == 0 and max(map(len, out.splitlines())) <= 100
    (apart,) = told["differences"]
    assert f"{apart['area']:+.4g} parts of all processors (" in " ".join(out.split())
    mean = {one["run"]: one for one in told["cells"] if one["label"] == "run"}
    assert apart["area"] == pytest.approx(mean["large.csv"]["efficiency"] - mean["small.csv"]["efficiency"])


def test_runs_are_compared_by_any_curve(capsys) -> None:  # type: ignore[no-untyped-def]
    trace = Path("tests/data/otf2/mpt_farm_6_dilated.tar.gz")
    told = as_json(capsys, trace, trace, "--curve", "messages", "-n", 2)
    assert (told["curve"], told["unit"]) == ("messages", "messages")
    assert all(cell["efficiency"] is None for cell in told["cells"]), "messages are no share of anything"
    whole = [cell for cell in told["cells"] if cell["phase"] == 0]
    assert whole[0]["mean"] == whole[1]["mean"] > 0 and told["differences"][0]["area"] == 0
    code, out, _ = run(capsys, trace, trace, "--curve", "messages", "-n", 2)
    assert code == 0 and "phases of Messages in flight" in out and "messages*s" in out
    code, _, err = run(capsys, trace, trace, "--curve", "metric:none")
    assert code == 1 and "metric:none" in err


def test_a_match_can_be_corrected(capsys, runs) -> None:  # type: ignore[no-untyped-def]
    words = (*runs, "-n", 4, "--model", "constant")
    told = as_json(capsys, *words, "--match", "2:3=3", "--match", "2:-=2")
    assert told["runs"][1]["match"] == [1, None, 3]
    assert phases_of(told)["phase 3"] == [3, 3]
    other = as_json(capsys, *words, "--reference", 2)
    assert other["reference"] == "large.csv" and phases_of(other)["phase 3"] == [None, 3]


def test_a_project_says_what_to_compare(capsys, runs, tmp_path) -> None:  # type: ignore[no-untyped-def]
    kept = tuple(plain_run(path, PhaseSettings("constant", 4)) for path in runs)
    kept = tuple(replace(one, trace=replace(one.trace, sha256=f"{k}" * 64)) for k, one in enumerate(kept))
    small, large = run_keys(kept)
    matched = Matched(large, small, 4, 3, ((2, 1),))
    file = tmp_path / "p.phasewright"
    write(file, Workspace(kept, comparison=Comparison(large, axis="phases", matched=(matched,))))
    told = as_json(capsys, file)
    assert (told["reference"], told["axis"]) == ("large.csv", "phases")
    assert told["runs"][0]["match"] == [1, None, 2, 3], "the pair that was set by hand holds"
    third = curve(tmp_path / "third.csv", (4, 8), (6, 2), (5, 6))
    # A hidden run of the same trace: the project calls the others by numbers that count it.
    again = (kept[0], *kept)
    numbered = Matched(large, f"{small}#2", 4, 3, ((2, 1),))
    hiding = Comparison(large, hidden=frozenset({small}), axis="phases", matched=(numbered,))
    write(file, Workspace(again, comparison=hiding))
    assert as_json(capsys, file)["runs"][0]["match"] == [1, None, 2, 3]
    assert len(as_json(capsys, file, third, "-n", 3)["runs"]) == 3
    told = as_json(capsys, file, "-n", 2)
    assert [one["n"] for one in told["runs"]] == [2, 2] and told["axis"] == "phases"


def test_sentences_are_printed_whole(capsys, tmp_path) -> None:  # type: ignore[no-untyped-def]
    names = [f"{letter * 90}.csv" for letter in "ab"]
    files = [curve(tmp_path / name, (4, 8), (6 + k, 2), (5, 6)) for k, name in enumerate(names)]
    said = as_json(capsys, *files)["sentences"]
    assert len(said[0]) > 200
    printed = run(capsys, *files)[1].partition("\n\n")[0]
    assert printed.split() == " ".join(said).split()


def test_the_suggested_number_is_taken_for_each(capsys, runs) -> None:  # type: ignore[no-untyped-def]
    told = as_json(capsys, *runs)
    for one, path in zip(told["runs"], runs, strict=True):
        assert cli.run(["phases", str(path), "--max-n", "20", "--json"]) == 0
        suggested = json.loads(capsys.readouterr().out)["suggested_n"]
        assert cli.run(["phases", str(path), "-n", str(suggested), "--json"]) == 0
        alone = json.loads(capsys.readouterr().out)
        assert (one["n"], one["breaks_s"], one["epsilon"]) == (
            alone["n"],
            alone["breaks_s"],
            alone["epsilon"],
        )


def test_lost_input_is_told_by_the_exit_code(capsys, runs, tmp_path) -> None:  # type: ignore[no-untyped-def]
    damaged = next(archives.unpack("damaged_a_evt_truncated_half", tmp_path).rglob("*.otf2"))
    code, out, err = run(capsys, runs[0], damaged, "-n", 2)
    assert code == 3 and "\n\n1  small.csv" in out and "phasewright: " in err
    assert run(capsys, *runs, "-n", 2)[0] == 0


def test_what_cannot_be_is_said_in_one_sentence(capsys, runs) -> None:  # type: ignore[no-untyped-def]
    code, _, err = run(capsys, runs[0])
    assert code == 1 and "two runs or more" in err
    code, _, err = run(capsys, *runs, "--reference", 3)
    assert code == 1 and "--reference 3" in err
    code, _, err = run(capsys, *runs, "-n", 4, "--model", "constant", "--match", "2:1=2", "--match", "2:2=1")
    assert code == 1 and "cross" in err
    code, _, err = run(capsys, *runs, "--match", "1:1=1")
    assert code == 1 and "--match 1" in err
    code, _, err = run(capsys, *runs, "--model", "linear")
    assert code == 1 and "-n N" in err
    assert err.count("\n") == 1
    assert run(capsys, *runs, "--match", "2:x=1")[0] == 2

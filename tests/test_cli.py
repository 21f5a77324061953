"""The command line as scripts use it: words, keys, exit codes and sentences are a contract."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import subprocess
import sys

import pytest

from desktop import cli
from desktop.resources import samples
from tests.limits import limited

CURVE = "# time, processors\n0, 4\n2, 1\n3, 2\n5, 0\n"

INFO_KEYS = {
    "format", "source", "importer", "ticks_per_second", "duration_s", "totals", "mpi_calls", "locations",
    "utilization", "clock", "report",
}  # fmt: skip
PHASE_KEYS = {
    "start_s", "end_s", "degree", "coefficients", "error", "mean", "min", "max", "efficiency", "work_s",
    "name",
}  # fmt: skip


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def curve_file(tmp_path):
    path = tmp_path / "curve.csv"
    path.write_text(CURVE)
    return path


def run(capsys, *words):
    code = cli.run([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_phases_of_a_curve_worked_out_by_hand(capsys, curve_file):
    code, out, err = run(capsys, "phases", curve_file, "-n", 2, "--model", "constant", "--json")
    fit = json.loads(out)
    assert (code, err) == (0, "")
    # The break lies x after 2 s, where both squared errors are equal: 18 x / (2 + x) on the left, and
    # 2 (1 - x) / (3 - x) on the right, so 8 x^2 - 28 x + 2 = 0.
    x = (28 - math.sqrt(720)) / 16
    assert fit["breaks_s"] == pytest.approx([0, 2 + x, 5], rel=1e-9)
    assert fit["epsilon"] == pytest.approx(math.sqrt(18 * x / (2 + x)), rel=1e-9)
    assert fit["n"] == 2 and len(fit["phases"]) == 2
    errors = [phase["error"] for phase in fit["phases"]]
    assert max(errors) == pytest.approx(fit["epsilon"], rel=1e-9)
    assert fit["sse"] == pytest.approx(sum(error**2 for error in errors), rel=1e-9)
    assert sum(phase["work_s"] for phase in fit["phases"]) == pytest.approx(2 * 4 + 1 * 1 + 2 * 2)
    assert all(set(phase) == PHASE_KEYS for phase in fit["phases"])
    assert fit["phases"][0]["coefficients"][0] == pytest.approx(fit["phases"][0]["mean"])


@pytest.mark.parametrize("model", ["mixed", "constant", "budget"])
def test_without_a_number_the_suggested_phases_are_fitted(capsys, curve_file, model):
    sweep = json.loads(run(capsys, "phases", curve_file, "--max-n", 5, "--model", model, "--json")[1])
    code, out, err = run(capsys, "phases", curve_file, "--model", model, "--json")
    fit = json.loads(out)
    assert (code, err, fit["reason"]) == (0, "", sweep["reason"])
    assert fit["breaks_s"] == sweep["suggested_breaks_s"]
    said = f"n = {sweep['suggested_n']} is suggested: {fit['reason']}"
    assert said in run(capsys, "phases", curve_file, "--model", model)[1]


def test_how_firm_a_break_is_over_runs_of_the_same_program(capsys, tmp_path):
    files = []
    for k in range(6):
        files.append(tmp_path / f"run{k}.csv")
        files[-1].write_text(f"0,4\n{1 + k / 10:g},1\n3,0\n")
    words = [word for file in files[1:] for word in ("--repeat", file)]
    code, out, _ = run(capsys, "phases", files[0], "-n", 2, "--model", "constant", *words, "--json")
    (one,) = json.loads(out)["break_intervals"]
    assert code == 0 and (one["repeats"], one["of"], one["what"]) == (6, 6, "runs")
    assert (one["low_s"], one["high_s"]) == pytest.approx((1, 1.5), abs=0.01)
    assert one["level"] == pytest.approx(1 - 2 / 64)
    code, out, _ = run(capsys, "phases", files[0], "-n", 2, "--model", "constant", *words)
    assert code == 0 and "median end of phase 1: 1 s to 1.5 s, 60 to 97 % over 6 runs" in out
    code, out, _ = run(capsys, "phases", files[0], "-n", 2, "--json")
    assert json.loads(out)["break_intervals"] == [None]


def test_fewer_phases_than_asked_for_where_fewer_suffice(capsys, curve_file):
    _, out, _ = run(capsys, "phases", curve_file, "-n", 9, "--model", "linear", "--json")
    fit = json.loads(out)
    assert fit["epsilon"] == 0 and fit["n"] == 3
    assert fit["breaks_s"] == [0, 2, 3, 5]


def test_a_window_is_fitted_alone(capsys, curve_file):
    _, out, _ = run(
        capsys, "phases", curve_file, "-n", 1, "--model", "constant", "--start", 1, "--end", 3, "--json"
    )
    fit = json.loads(out)
    assert fit["breaks_s"] == [1, 3]
    assert fit["phases"][0]["mean"] == pytest.approx(2.5)
    assert fit["epsilon"] == pytest.approx(math.sqrt(2 * 1.5**2))


def test_sweep_suggests(capsys, curve_file):
    code, out, _ = run(capsys, "phases", curve_file, "--max-n", 4, "--model", "constant", "--json")
    sweep = json.loads(out)
    keys = {"model", "sweep", "suggested_n", "suggested_breaks_s", "reason", "limit_reached", "in_doubt_s"}
    keys |= {"runner_up", "suggested_break_events", "curve", "curve_name", "unit"}
    assert code == 0 and set(sweep) == keys and sweep["limit_reached"] is False
    (suggested,) = [row for row in sweep["sweep"] if row["n"] == sweep["suggested_n"]]
    assert suggested["breaks_s"] == sweep["suggested_breaks_s"]
    epsilons = [row["epsilon"] for row in sweep["sweep"]]
    assert epsilons == sorted(epsilons, reverse=True) and epsilons[2] == 0
    assert sweep["suggested_n"] in {row["n"] for row in sweep["sweep"]} and sweep["reason"]


def test_the_suggestion_does_not_depend_on_how_far_one_looks(capsys, curve_file):
    """Three levels need three phases, also where two were asked for."""
    found = {}
    for most in (1, 2, 4, 30):
        _, out, _ = run(capsys, "phases", curve_file, "--max-n", most, "--model", "constant", "--json")
        told = json.loads(out)
        assert [row["n"] for row in told.pop("sweep")] == list(range(1, most + 1))
        found[most] = told
    assert all(one == found[1] for one in found.values()) and found[1]["suggested_n"] == 3
    _, out, _ = run(capsys, "phases", curve_file, "--max-n", 2, "--model", "constant")
    assert "3 would be suggested, more than asked for" in out


def test_csv_has_one_row_a_phase(capsys, curve_file):
    _, out, _ = run(capsys, "phases", curve_file, "-n", 3, "--model", "constant", "--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [float(row["c0"]) for row in rows] == [4, 1, 2]
    assert [float(row["start_s"]) for row in rows] == [0, 2, 3]


@pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.path.parent.name)
def test_info_of_every_bundled_trace(capsys, sample):
    code, out, _ = run(capsys, "info", sample.path, "--json")
    facts = json.loads(out)
    assert code == 0 and set(facts) >= INFO_KEYS
    places = [place for place in facts["locations"] if place["kind"] == "cpu"]
    use = facts["utilization"]
    assert use["processors"] == len(places)
    assert use["integral_s"] == pytest.approx(sum(place["computing_s"] for place in places), rel=1e-9)
    assert use["mean"] == pytest.approx(use["integral_s"] / facts["duration_s"], rel=1e-9)
    assert facts["clock"]["violations_after"] <= facts["clock"]["violations_before"]


def test_import_writes_a_store_that_opens_without_its_source(capsys, tmp_path, curve_file):
    output = tmp_path / "out.h5"
    code, out, _ = run(capsys, "import", curve_file, "-o", output, "--json")
    assert code == 0 and json.loads(out)["format"] == "curve"
    curve_file.unlink()
    code, out, _ = run(capsys, "info", output, "--json")
    assert code == 0 and json.loads(out)["utilization"]["integral_s"] == pytest.approx(13)
    assert [path.name for path in tmp_path.glob("*.part")] == []


def test_time_unit_of_a_curve(capsys, tmp_path, curve_file):
    _, out, _ = run(capsys, "import", curve_file, "--time-unit", "ms", "-o", tmp_path / "ms.h5", "--json")
    assert json.loads(out)["duration_s"] == pytest.approx(0.005)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"\x89PNG\r\n\x1a\n" + bytes(200), "no format"),
        (b"0 1\n2 2\n1 3\n4 0\n", "line 3"),
        (b"0 1\n1 oops\n2 0\n", "line 2"),
    ],
)
def test_bad_input_is_one_sentence(capsys, tmp_path, content, said):
    path = tmp_path / "bad"
    path.write_bytes(content)
    code, out, err = run(capsys, "info", path)
    assert code == 1 and out == ""
    assert err.startswith("phasewright: ") and str(path) in err and said in err
    assert err.count("\n") == 1 and "Traceback" not in err


@pytest.mark.parametrize(
    "words",
    [
        ["phases", "x", "-n", "0"],
        ["phases", "x", "-n", "2", "--model", "cubic"],
        ["snapshot", "x", "-o", "y.gif"],
        ["snapshot", "x", "-o", "y.png", "--size", "wide"],
        ["import"],
        ["nonsense"],
        ["--nonsense"],
    ],
)
def test_wrong_words_end_with_2(capsys, words):
    code, out, err = run(capsys, *words)
    assert code == 2 and out == "" and err


def test_missing_file_ends_with_1(capsys, tmp_path):
    code, _, err = run(capsys, "info", tmp_path / "nowhere.otf2")
    assert code == 1 and "nowhere.otf2" in err and err.count("\n") == 1


def test_without_a_display_the_window_says_so(tmp_path, curve_file):
    environment = {
        key: value
        for key, value in os.environ.items()
        if key not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    }
    ended = subprocess.run(
        [sys.executable, "-m", "desktop", str(curve_file)],
        capture_output=True, text=True, env=environment, check=False, timeout=60,
    )  # fmt: skip
    if sys.platform.startswith("linux"):
        assert ended.returncode == 1 and "display" in ended.stderr and "snapshot" in ended.stderr


def test_snapshot_draws_the_window(tmp_path):
    from PySide6.QtGui import QImage

    picture = tmp_path / "window.png"
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "XDG_CACHE_HOME": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-m", "desktop", "snapshot", str(samples()[2].path), "-o", str(picture),
         "-n", "4", "--model", "constant", "--size", "1280x800"],
        capture_output=True, text=True, env=environment, check=False, timeout=180,
    )  # fmt: skip
    assert ended.returncode == 0 and "Traceback" not in ended.stderr, ended.stderr
    assert "constant, n = 4" in ended.stdout
    image = QImage(str(picture))
    assert (image.width(), image.height()) == (1280, 800)
    colours = {image.pixel(x, y) for x in range(0, 1280, 3) for y in range(0, 800, 3)}
    assert len(colours) > 30


@pytest.fixture
def started(monkeypatch):
    """How the window would have been started, without one."""
    from desktop.ui import windows

    calls = []
    monkeypatch.setattr(windows, "run", lambda files, how: calls.append((files, how)) or 0)
    return calls


def test_the_window_is_told_how_to_start(capsys, curve_file, tmp_path, started):
    assert run(capsys, curve_file)[0] == 0
    assert run(capsys, "--safe-mode", curve_file)[0] == 0
    assert run(capsys, "--log-level", "debug", "--log-file", tmp_path / "log.txt")[0] == 0
    (files, usual), (same, safe), (none, logged) = started
    assert files == same == [str(curve_file)] and none == []
    assert (usual.safe, usual.log_level, usual.log_file, usual.notice) == (False, "info", None, "")
    assert safe.safe and (logged.log_level, logged.log_file) == ("debug", tmp_path / "log.txt")
    assert run(capsys, "--", curve_file)[0] == 0 and started[-1][0] == [str(curve_file)]


def test_wrong_options_of_the_window_end_with_2(capsys, tmp_path, started):
    code, out, err = run(capsys, "--safe-mood")
    assert code == 2 and not out and "there is no option --safe-mood" in err
    assert run(capsys, "--log-level", "loud")[0] == 2
    assert run(capsys, "--safe-mode", tmp_path / "nothing.trf")[0] == 1
    assert not started
    code, out, _ = run(capsys, "--version")
    assert code == 0 and out.startswith("phasewright ")
    code, out, _ = run(capsys, "--help")
    assert code == 0 and "--safe-mode" in out and "--reset-settings" in out
    assert "one for each file named" in " ".join(out.split())


def test_settings_are_put_aside_and_it_says_where(capsys, tmp_path, started):
    from PySide6.QtCore import QSettings, QStandardPaths

    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, str(tmp_path))
    try:
        code, _, err = run(capsys, "--reset-settings")
        assert code == 0 and "there were no settings to be reset" in err
        file = tmp_path / "Phasewright" / "phasewright.ini"
        file.parent.mkdir()
        file.write_text("[General]\ntheme=dark\n")
        code, _, err = run(capsys, "--reset-settings")
        (kept,) = file.parent.iterdir()
        assert code == 0 and str(kept) in err and kept.read_text() == "[General]\ntheme=dark\n"
        assert str(kept) in started[-1][1].notice, "the window says it too"
    finally:
        usual = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.GenericConfigLocation)
        QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, usual)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
@pytest.mark.parametrize(
    "words",
    ["info", "import", "phases -n 2", "model", "spt effects", "spt run", "compare", "report -o x.html"],
)
def test_a_pipe_is_not_waited_for(capsys, tmp_path, words):
    """Nobody writes into it, so reading would never end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command, *options = words.split(" -")
    given = [*command.split(), *[str(pipe)] * (1 + (command == "compare")), *(f"-{o}" for o in options)]
    with limited(60):
        code, _, err = run(capsys, *(w for g in given for w in g.split()))
    assert code == 1 and "a pipe or a device" in err and err.count("\n") == 1

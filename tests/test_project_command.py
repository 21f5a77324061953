"""The command line takes a project where it takes a trace, and its settings where the words say nothing."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from desktop import cli, notebook
from desktop.data.events import Activity
from desktop.data.opening import open_trace
from desktop.data.project_file import write
from desktop.data.utilization import Rules
from desktop.workbench.keeping import read_workspace
from desktop.workbench.model import KeptRun, OpenOptions, PhaseSettings, Project, TraceId, Workspace
from tests.data_layer import archives


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    trace = next(archives.unpack("mpt_farm_6_dilated", tmp_path).rglob("*.otf2"))
    kept = Project(PhaseSettings("linear", 3, locked=(0.012,)), Rules({"MPI_Recv": Activity.COMPUTING}))
    file = tmp_path / "p.phasewright"
    write(file, Workspace((KeptRun(TraceId(trace, trace.name, 1, "", "otf2", "1"), kept),)))
    return file


def run(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    code = cli.run([str(word) for word in words] + ["--json"])
    captured = capsys.readouterr()
    assert (code, captured.err) == (0, "")
    return json.loads(captured.out)


def trace_of(project: Path) -> Path:
    return read_workspace(project).runs[0].trace.path


def test_its_phases_are_those_that_were_kept(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = run(capsys, "phases", project)
    assert (told["model"], told["n"]) == ("linear", 3)
    assert any(abs(t - 0.012) < 1e-9 for t in told["breaks_s"]), "the locked breakpoint"
    other = run(capsys, "phases", project, "-n", 2, "--model", "constant")
    assert (other["model"], other["n"]) == ("constant", 2)
    plain = run(capsys, "phases", trace_of(project), "-n", 2, "--model", "constant")
    assert plain["epsilon"] != other["epsilon"], "the project counts MPI_Recv as computing"
    own = run(capsys, "phases", project, "--model", "mixed", "--also", "periodic", "--seconds", 0.002)
    assert (own["model"], own["n"], own["period_s"]) == ("mixed", 3, pytest.approx(0.002))
    part = run(capsys, "phases", project, "--start", 0.001, "--end", 0.01)
    assert part["n"] == 3 and part["breaks_s"][0] == pytest.approx(0.001)


def test_a_trace_is_opened_as_the_project_says(
    project: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    curve = tmp_path / "curve.csv"
    curve.write_text("0,4\n1,2\n2,8\n3,0\n", encoding="utf-8")
    trace = TraceId(curve, curve.name, 1, "", "curve", "1", OpenOptions(time_unit="ms"))
    write(project, Workspace((KeptRun(trace, Project(PhaseSettings("constant", 3))),)))
    assert run(capsys, "info", project)["duration_s"] == pytest.approx(0.003)
    assert run(capsys, "phases", project)["breaks_s"] == pytest.approx([0.0, 0.001, 0.002, 0.003])
    with notebook.open(project) as opened:
        assert opened.phases().breaks == pytest.approx([0.0, 0.001, 0.002, 0.003])
    assert cli.run(["snapshot", str(project), "-o", str(tmp_path / "p.png")]) == 0
    assert "3ms" in capsys.readouterr().out.replace(" ", "")


def test_explanations_are_of_the_phases_of_its_curve(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (kept,) = read_workspace(project).runs
    settings = Project(PhaseSettings("constant", 4), curve="communication")
    write(project, Workspace((replace(kept, project=settings),)))
    breaks = run(capsys, "phases", project)["breaks_s"]
    assert breaks != run(capsys, "phases", project, "--curve", "computing")["breaks_s"]
    assert run(capsys, "explain", project)["breaks_s"] == breaks
    assert run(capsys, "stats", project)["breaks_s"] == breaks
    with notebook.open(project) as opened:
        assert opened.phases().breaks == breaks


def test_figures_of_notebooks_have_its_names_of_regions(project: Path) -> None:
    (kept,) = read_workspace(project).runs
    write(project, Workspace((replace(kept, project=Project(names={"MPI_Recv": "wait for work"})),)))
    with notebook.open(project) as opened:
        drawn = opened.timeline(by="region").material.bars
    assert drawn is not None and "wait for work" in drawn.classes and "MPI_Recv" not in drawn.classes


def test_all_that_is_made_from_it_has_its_names_of_regions(
    project: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    trace = next(archives.unpack("ezt_cholesky_bcast_8_dilated", tmp_path).rglob("*.otf2"))
    with open_trace(trace) as store:
        names = {region.name: f"name {k} of it" for k, region in enumerate(store.regions)}
    own = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in names))
    settings = Project(PhaseSettings("mixed", 4), names=names)
    run_of = KeptRun(TraceId(trace, trace.name, 1, "", "otf2", "1"), settings)
    write(project, Workspace((run_of, replace(run_of, project=replace(settings, limit=(0.2, 1.0))))))
    page = tmp_path / "page.html"
    commands: tuple[tuple[object, ...], ...] = (
        *(("phases",), ("phases", "--max-n", 6), ("stats",), ("explain",), ("iterations",), ("compare",)),
        *(("whatif",), ("whatif", "--region", f"{names['Working']}=2"), ("report", "-o", page)),
    )
    found = 0
    for command in commands:
        for form in ((), ("--json",)):
            assert cli.run([str(word) for word in (*command, project, *form)]) == 0
            told = re.sub('"trace_name": "[^"]*"', "", capsys.readouterr().out)
            assert not own.findall(told), (command, form)
            found += len(re.findall("name . of it", told))
    assert found > 50
    listed = re.compile(r"Region [^<]*</td><td[^>]*>called [^<]*<")
    written, settled = listed.subn("", page.read_text(encoding="utf-8"))
    assert settled == 2 * len(names) and not own.findall(re.sub('data:[^"]*', "", written))
    predicted = run(capsys, "whatif", project, "--region", f"{names['Working']}=2")
    assert predicted == run(capsys, "whatif", project, "--region", "Working=2")
    assert predicted["changes"] == f"{names['Working']} 2 times faster"
    regions = run(capsys, "stats", project)["ranges"][0]["regions"]
    assert regions and {row["trace_name"] for row in regions} & {*names}
    assert all(row["name"] == names.get(row["trace_name"], row["trace_name"]) for row in regions)
    with notebook.open(project) as opened:
        of_it = set(opened.regions().to_frame()["region"]) | set(opened.events().to_frame()["region"])
    assert of_it - {"(no region)"} <= {*names.values()} and len(of_it) > 3


def test_every_n_is_fitted_around_locked_breakpoints(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for row in run(capsys, "phases", project, "--max-n", 6)["sweep"]:
        assert any(abs(t - 0.012) < 1e-9 for t in row["breaks_s"]), row["n"]
    assert cli.run(["phases", str(project), "--max-n", "1"]) == 1
    assert "--max-n 1: with the locked breakpoints n is at least 2" in capsys.readouterr().err


def test_locked_breakpoints_stay_with_another_n_or_model(
    project: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def holds_it(*words: object) -> bool:
        told = run(capsys, "phases", project, *words)
        return any(abs(t - 0.012) < 1e-9 for t in told["breaks_s"])

    assert holds_it("-n", 5) and holds_it("-n", 2, "--model", "constant") and holds_it("--model", "budget")
    assert holds_it("-n", 4, "--start", 0.006) and not holds_it("-n", 4, "--end", 0.01)
    assert cli.run(["phases", str(project), "-n", "1"]) == 1
    assert "needs at least 2 phases with 1 locked breakpoint, got 1" in capsys.readouterr().err
    for command in (["phases"], ["snapshot", "-o", str(tmp_path / "p.png")]):
        assert cli.run([*command, str(project), "-n", "5"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "phase" not in line]
    assert lines[: len(lines) // 2] == lines[len(lines) // 2 :], "commands differ"


def test_a_fit_by_the_curve_alone_stays_one_with_another_n(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (kept,) = read_workspace(project).runs
    assert any(run(capsys, "phases", project, "-n", 6)["break_events"])
    write(project, Workspace((replace(kept, project=Project(PhaseSettings("linear", 3, pure=True))),)))
    for words in ((), ("-n", 6), ("--model", "mixed", "-n", 6)):
        assert not any(run(capsys, "phases", project, *words)["break_events"])


def test_breaks_by_hand_hold(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (kept,) = read_workspace(project).runs
    end = run(capsys, "info", project)["duration_s"]
    phases = PhaseSettings("constant", 2, (), (0.0, 0.011, end))
    write(project, Workspace((replace(kept, project=Project(phases)),)))
    assert run(capsys, "phases", project)["breaks_s"] == pytest.approx([0.0, 0.011, end])
    stats = run(capsys, "stats", project)
    assert stats["breaks_s"] == pytest.approx([0.0, 0.011, end]) and len(stats["ranges"]) == 3


def test_info_and_snapshot_take_it(project: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(capsys, "info", project) == run(capsys, "info", trace_of(project))
    out = tmp_path / "p.png"
    words = ["snapshot", str(project), "-o", str(out)]
    assert cli.run(words) == 0
    assert out.exists() and "linear, n = 3" in capsys.readouterr().out
    assert cli.run([*words, "--also", "periodic"]) == 1
    assert "also is periodic, allowed are" in capsys.readouterr().err
    assert cli.run([*words, "--model", "mixed", "--also", "saturation", "-n", "4"]) == 0
    told = capsys.readouterr().out
    assert "mixed, n = 4" in told and "time constant" in told


def test_a_moved_trace_is_found_beside_it_or_missed_in_one_sentence(
    project: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    trace = trace_of(project)
    before = run(capsys, "info", project)["source"]["sha256"]
    trace.parent.rename(tmp_path / "moved")
    assert run(capsys, "info", project)["source"]["sha256"] == before
    (tmp_path / "moved").rename(tmp_path.parent / f"{tmp_path.name}-away")
    assert cli.run(["phases", str(project)]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "its trace" in err and "save" in err


@pytest.mark.parametrize("model", ["constant", "budget"])
def test_phases_in_an_iteration_are_of_its_model(
    project: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, model: str
) -> None:
    """As in the window; of a budget, whose parameters are those of the run, with the model mixed."""
    curve = tmp_path / "teeth.csv"
    teeth = [f"{k + part},{level}" for k in range(30) for part, level in ((0, 8), (0.4, 0), (0.6, 3))]
    curve.write_text("\n".join([*teeth, "30,0"]) + "\n", encoding="utf-8")
    trace = TraceId(curve, curve.name, 1, "", "curve", "1")
    write(project, Workspace((KeptRun(trace, Project(PhaseSettings(model, 7))),)))
    inside = {"constant": "constant", "budget": "mixed"}[model]
    assert run(capsys, "iterations", project)["levels"][0]["fold"]["model"] == inside
    (level,) = run(capsys, "iterations", project, "-n", 3)["levels"]
    assert (level["fold"]["model"], len(level["fold"]["breaks_s"])) == (inside, 4)
    (level,) = run(capsys, "iterations", project, "--model", "linear")["levels"]
    assert level["fold"]["model"] == "linear"

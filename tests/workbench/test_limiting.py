"""An analysis limited to a range of time: as --start and --end on the command line, undone and kept, and no
break is lost by it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop import cli
from desktop.commands.phases import PHASE_COLUMNS
from desktop.commands.terminal import plain_values
from desktop.core import tree
from desktop.core.labels import MODELS
from desktop.core.phase_stats import phase_table
from desktop.core.phases import fit
from desktop.data.explain import explained
from desktop.data.project_file import write
from desktop.data.statistics import Statistics
from desktop.workbench.keeping import ProjectStore
from desktop.workbench.limiting import count_outside, limited
from desktop.workbench.model import KeptRun, PhaseSettings, Project, SetAside, TraceId, Workspace
from desktop.workbench.run_comparison import RunComparison
from desktop.workbench.workbench import Workbench
from tests.data_layer import archives
from tests.inline import Inline

LANES = ("store", "fit", "sweep", "statistics", "waiting")
WHOLE = (0.0, 100.0)
#: Parts of the run: its start, its middle, its end, and nearly all of it.
PARTS = ((0.0, 0.1), (0.31, 0.64), (0.9, 1.0), (0.01, 0.99))

inner = st.lists(st.integers(1, 99).map(float), unique=True, max_size=6).map(sorted)
spans = st.tuples(st.integers(0, 200), st.integers(1, 200)).map(
    lambda x: (min(x[0] / 2, 99.0), min(100.0, min(x[0] / 2, 99.0) + x[1] / 2))
)


@st.composite
def projects(draw: st.DrawFn) -> Project:
    model = draw(st.sampled_from(list(MODELS)))
    locked = tuple(draw(inner))
    n = draw(st.integers(1, 9)) + 2 * len(locked) + 1
    found = PhaseSettings(model, n, locked)
    if draw(st.booleans()):
        breaks = (WHOLE[0], *draw(inner), WHOLE[1])
        found = found.by_hand(breaks, [(a, b, draw(st.integers(0, 2))) for a, b in pairwise(breaks)])
    return Project(found)


@settings(deadline=None, max_examples=300)
@given(projects(), st.lists(spans, min_size=1, max_size=3))
def test_all_breaks_come_back_when_the_limit_goes(
    project: Project, limits: list[tuple[float, float]]
) -> None:
    part = project
    for limit in limits:
        part = limited(part, limit, WHOLE)
        assert part.limit == limit and part.problem() == "" and part.phases.problem() == ""
        inside = [t for t in (project.phases.breaks or ())[1:-1] if limit[0] < t < limit[1]]
        if project.phases.breaks is not None:
            assert part.phases.breaks == (limit[0], *inside, limit[1])
        assert set(part.phases.locked) == {t for t in project.phases.locked if limit[0] < t < limit[1]}
        hidden = {*project.phases.locked, *(project.phases.breaks or ())[1:-1]}
        assert count_outside(part) == len([t for t in hidden if not limit[0] < t < limit[1]])
    assert limited(part, None, WHOLE) == project


def test_what_is_changed_by_hand_inside_stays_when_the_limit_goes() -> None:
    whole = Project(PhaseSettings("mixed", 4, (20.0,), (0.0, 20.0, 50.0, 80.0, 100.0), (0, 1, 2, 0)))
    part = limited(whole, (30.0, 70.0), WHOLE)
    assert part.phases == PhaseSettings("mixed", 2, (), (30.0, 50.0, 70.0), (-1, -1))
    moved = part.phases.by_hand((30.0, 40.0, 60.0, 70.0), [(40.0, 60.0, 2)])
    back = limited(Project(moved, limit=part.limit, aside=part.aside), None, WHOLE).phases
    assert back.breaks == (0.0, 20.0, 40.0, 60.0, 80.0, 100.0) and back.locked == (20.0,)
    assert back.degrees == (0, -1, 2, -1, 0), "phases that are as they were keep their degree"
    free = Project(part.phases.free(), limit=part.limit, aside=part.aside)
    assert limited(free, None, WHOLE).phases == whole.phases, "another fit inside changes nothing outside"
    assert Project(aside=SetAside((1.0,))).problem() != ""
    assert Project(limit=(2.0, 1.0)).problem() != ""


def test_limits_that_end_at_a_break_and_projects_without_any() -> None:
    whole = Project(PhaseSettings("mixed", 4, (), (0.0, 20.0, 50.0, 80.0, 100.0), (0, 1, 2, 0)))
    near = limited(whole, (50.0 - 1e-10, 80.0 + 1e-10), WHOLE)
    assert near.phases.breaks == (50.0 - 1e-10, 80.0 + 1e-10)
    assert limited(Project(), (10.0, 20.0), WHOLE).aside is None
    budget = limited(Project(PhaseSettings("budget", 8, (20.0, 50.0))), (60.0, 70.0), WHOLE)
    fewer = replace(budget, phases=replace(budget.phases, n=2))
    back = limited(fewer, None, WHOLE).phases
    assert (back.locked, back.n, back.problem()) == ((20.0, 50.0), 6, "")


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    return next(archives.unpack("mpt_farm_6_dilated", tmp_path).rglob("*.otf2"))


@pytest.fixture
def bench(trace: Path) -> Iterator[Workbench]:
    made = Workbench(executors={name: Inline() for name in LANES})
    made.settle = 0.0
    made.open(trace)
    made.watch("a panel", frozenset({"ranges", "calls", "accounts"}))
    assert made.snapshot.problem is None
    yield made
    made.close()


def told(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    assert cli.run([str(word) for word in words] + ["--json"]) == 0
    return json.loads(capsys.readouterr().out)


def shown_stats(bench: Workbench) -> list[dict[str, Any]]:
    """What the panels show, in the words of the command."""
    kept, run, found = Statistics(bench._store), bench.snapshot.run, bench.snapshot.statistics
    assert run is not None
    plain = [explained(kept, run.utilization, found.stats[0], one) for one in found.stats]
    rows: list[dict[str, Any]] = plain_values(plain)
    return rows


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("model", ["mixed", "budget"])
def test_the_numbers_are_those_of_start_and_end(
    bench: Workbench, trace: Path, capsys: pytest.CaptureFixture[str], part: tuple[float, float], model: str
) -> None:
    assert bench.snapshot.run is not None
    length = bench.snapshot.run.curve.duration
    start, end = (share * length for share in part)
    words = ("--start", repr(start), "--end", repr(end), "--model", model)
    bench.set_model(model)
    bench.limit_to((start, end))
    bench.set_n(6)
    found = bench.snapshot
    phases = told(capsys, "phases", trace, "-n", 6, *words)
    assert found.fit is not None and found.run is not None and not found.refining
    alone = fit(found.run.curve, 6, model)
    assert phases["breaks_s"] == alone.breaks.tolist() and phases["epsilon"] == alone.epsilon
    alone = replace(alone, names=found.fit.names)
    rows = [[getattr(row, name) for name in PHASE_COLUMNS] for row in phase_table(found.run.curve, alone)]
    assert [[row[name] for name in PHASE_COLUMNS] for row in phases["phases"]] == plain_values(rows)
    # The fit that is shown is from all n in one go: the same error, its breaks within their rounding.
    assert found.fit.epsilon == pytest.approx(alone.epsilon, rel=1e-9)
    assert found.fit.breaks.tolist() == pytest.approx(alone.breaks.tolist(), abs=1e-5 * length)
    sweep = told(capsys, "phases", trace, "--max-n", 12, *words)
    assert found.suggestion is not None and found.suggestion.n == sweep["suggested_n"]
    assert found.suggestion.reason == sweep["reason"]
    stats = told(capsys, "stats", trace, "-n", 6, *words)["ranges"]
    bench._show_fit(alone)
    shown = shown_stats(bench)
    assert [scope.label for scope in found.statistics.scopes][:2] == ["Limited range", "Phase 1"]
    assert len(shown) == len(stats) and stats[0]["name"] == "window"
    for own, theirs in zip(shown, stats, strict=True):
        assert own.pop("changes") == [] and theirs.pop("changes") is not None
        assert own == {key: value for key, value in theirs.items() if key not in ("name", "level")}
    calls = Statistics(bench._store).calls((start, end), found.run.utilization)
    assert list(found.statistics.calls) == calls


def test_it_is_undone_and_kept_and_the_command_line_takes_it_from_a_project(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Workbench(executors={name: Inline() for name in LANES})
    projects = ProjectStore(
        bench, lambda _: None, print, lambda: None, folder=tmp_path / "kept", executor=Inline()
    )
    bench.open(trace)
    whole = bench.snapshot
    assert whole.run is not None and whole.fit is not None
    length = whole.run.curve.duration
    span = (0.25 * length, 0.75 * length)
    bench.limit_to(span)
    part = bench.snapshot
    assert (
        bench.history.undo_label == "limit the analysis"
        and part.run is not None
        and part.run.whole is whole.run
    )
    assert part.project.limit == span and projects.modified and projects.by_hand
    assert (part.run.curve.start, part.run.curve.duration) == pytest.approx((span[0], 0.5 * length))
    bench.undo()
    assert bench.snapshot.run is whole.run and bench.snapshot.fit is whole.fit
    bench.redo()
    assert bench.snapshot.project == part.project and bench.history.redo_label is None
    bench.set_n(4)
    bench.move_breakpoint(2, 0.6 * length)
    last = bench.snapshot
    assert last.fit is not None
    file = tmp_path / "p.phasewright"
    projects.save(file)
    bench.close_document()
    projects.open(file)
    again = bench.snapshot
    assert again.project.limit == span and again.project.phases == last.project.phases
    assert again.fit is not None and again.fit.breaks.tolist() == last.fit.breaks.tolist()
    of_project = told(capsys, "phases", file)
    assert of_project["breaks_s"] == pytest.approx(last.fit.breaks.tolist(), rel=1e-12)
    assert told(capsys, "stats", file)["ranges"][0]["name"] == "window"
    wider = told(capsys, "phases", file, "--start", 0, "--end", 0.9 * length)
    assert wider["breaks_s"][0] == 0 and wider["breaks_s"][-1] == pytest.approx(0.9 * length)
    before = [t for t in whole.fit.breaks[1:-1].tolist() if not span[0] < t < span[1] and t < 0.9 * length]
    by_hand = last.fit.breaks[1:-1].tolist()
    assert wider["breaks_s"][1:-1] == pytest.approx(sorted([*before, *by_hand])), (
        "outside as before the limit"
    )
    bench.limit_to(None)
    assert (
        bench.snapshot.project.limit is None
        and bench.history.undo_label == "remove the limit of the analysis"
    )
    assert bench.snapshot.fit is not None and bench.snapshot.fit.breaks[-1] == pytest.approx(length)
    projects.close()
    bench.close()


def test_a_range_without_ticks_is_refused_and_all_of_the_run_is_no_limit(bench: Workbench) -> None:
    before = bench.snapshot
    assert before.run is not None
    length, unit = before.run.curve.duration, before.run.curve.unit
    bench.limit_to((0.5 * length, 0.5 * length + unit))
    assert bench.snapshot.problem is not None and "too short" in bench.snapshot.problem.sentence
    assert bench.snapshot.run is before.run and bench.history.undo_label is None
    bench.limit_to((2 * length, 3 * length))
    assert bench.snapshot.project.limit is None
    bench.limit_to((-1.0, 2 * length))
    assert bench.snapshot.project.limit is None and bench.history.undo_label is None


def test_who_took_what_was_suggested_gets_what_is_suggested_of_the_range(bench: Workbench) -> None:
    first = bench.snapshot
    assert first.as_suggested and first.fit is not None and first.run is not None
    length = first.run.curve.duration
    bench.limit_to((0.3 * length, 0.9 * length))
    assert bench.snapshot.as_suggested and bench.snapshot.project.limit is not None
    bench.history.undo()
    assert bench.snapshot.project == first.project and bench.history.undo_label is None
    bench.history.redo()
    assert bench.snapshot.as_suggested
    bench.limit_to(None)
    assert bench.snapshot.as_suggested and bench.snapshot.project.phases == first.project.phases
    bench.set_n(first.fit.n + 2)
    bench.limit_to((0.3 * length, 0.9 * length))
    assert not bench.snapshot.as_suggested


def test_nothing_is_built_anew_while_n_is_changed_within_the_limit(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bench.snapshot.run is not None
    length = bench.snapshot.run.curve.duration
    bench.limit_to((0.2 * length, 0.7 * length))
    monkeypatch.setattr(tree, "_build", lambda _: pytest.fail("the moments were computed again"))
    for n in (2, 9, 30, 3):
        bench.set_n(n)
        assert bench.snapshot.fit is not None and bench.snapshot.fit.requested == n
    bench.drag_breakpoint(1, 0.4 * length)
    bench.move_breakpoint(1, 0.4 * length)
    bench.undo()
    bench.limit_to(None)  # the whole run is still there
    assert bench.snapshot.run is not None and bench.snapshot.run.limit is None


def test_other_rules_within_the_limit(bench: Workbench) -> None:
    assert bench.snapshot.run is not None
    length = bench.snapshot.run.curve.duration
    bench.limit_to((0.2 * length, 0.7 * length))
    part = bench.snapshot.run
    assert part is not None
    bench.set_repaired(not bench.snapshot.document.repaired if bench.snapshot.document else False)
    other = bench.snapshot.run
    assert other is not None and other is not part and other.limit == part.limit
    assert other.whole is not part.whole and other.rules != part.rules
    bench.undo()
    assert bench.snapshot.run is not None and bench.snapshot.run.rules == part.rules
    bench.undo()
    assert bench.snapshot.run.limit is None


def test_a_comparison_takes_each_run_within_its_own_limit(
    tmp_path: Path, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Workbench(executors={name: Inline() for name in LANES})
    projects = ProjectStore(
        bench, lambda _: None, print, lambda: None, folder=tmp_path / "kept", executor=Inline()
    )
    bench.open(trace)
    projects.add_run(trace)
    assert bench.snapshot.run is not None
    length = bench.snapshot.run.curve.duration
    run_comparison = RunComparison(bench, projects, executor=Inline())
    run_comparison.watch(True)
    spans = (0.2 * length, 0.5 * length), (0.5 * length, 0.9 * length)
    bench.limit_to(spans[0])
    projects.show_run(0)
    bench.limit_to(spans[1])
    run_comparison.refresh()
    found = run_comparison.snapshot
    assert found.alignment is not None and not found.problem
    for run, span in zip(found.alignment.runs, reversed(spans), strict=True):
        assert (run.curve.start, run.curve.duration) == pytest.approx((span[0], span[1] - span[0]))
        assert run.name.endswith(f"(from {span[0]:.4g} s to {span[1]:.4g} s)")
    assert {cell.run for cell in found.cells} == {run.name for run in found.alignment.runs}
    file = tmp_path / "p.phasewright"
    projects.save(file)
    phased = [(run.name, run.fit.breaks.tolist()) for run in found.alignment.runs]
    run_comparison.close()
    projects.close()
    bench.close()
    again = told(capsys, "compare", file)["runs"]
    assert [run["run"] for run in again] == [name for name, _ in phased]
    for run, (_, breaks) in zip(again, phased, strict=True):
        assert run["breaks_s"] == pytest.approx(breaks, abs=1e-5 * length)


def test_report_and_picture_take_the_range_too(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    length = told(capsys, "info", trace)["duration_s"]
    start, end = 0.25 * length, 0.5 * length
    words = ("--start", repr(start), "--end", repr(end))
    html = tmp_path / "r.html"
    made = told(capsys, "report", trace, "-o", html, *words)
    phases = told(capsys, "phases", trace, "-n", made["runs"][0]["n"], *words)
    (run,) = made["runs"]
    assert run["limited"] and run["start_s"] == pytest.approx(start)
    assert run["duration_s"] == pytest.approx(end - start)
    assert run["breaks_s"] == pytest.approx(phases["breaks_s"], abs=1e-5 * length)
    assert f"--start {start!r} --end {end!r}" in made["command"]
    assert "everything stated about the run refers to this part" in html.read_text()
    whole = told(capsys, "report", trace, "-o", html, "--no-statistics")
    assert not whole["runs"][0]["limited"] and "--start" not in whole["command"]
    project = Project(PhaseSettings("linear", 3), limit=(start, end))
    file = tmp_path / "p.phasewright"
    write(file, Workspace((KeptRun(TraceId(trace, trace.name, 1, "", "otf2", "1"), project),)))
    (kept,) = told(capsys, "report", file, "-o", html, "--no-statistics")["runs"]
    assert kept["limited"] and kept["duration_s"] == pytest.approx(end - start)
    other = told(capsys, "report", file, "-o", html, "--no-statistics", "--end", repr(end))
    assert other["runs"][0]["start_s"] == 0 and other["runs"][0]["duration_s"] == pytest.approx(end)
    assert other["command"].endswith(f"--end {end!r} --no-statistics")
    picture = tmp_path / "p.png"
    for source, more in ((trace, words), (file, ())):
        assert cli.run([str(w) for w in ("snapshot", source, "-o", picture, "-n", 3, *more)]) == 0
        lines = [line.split() for line in capsys.readouterr().out.splitlines()]
        (first,) = [line for line in lines if line[:1] == ["1"]]
        shown = float(first[1]) * {"s": 1.0, "ms": 1e-3, "µs": 1e-6}[first[2]]
        assert shown == pytest.approx(start, rel=1e-3), "the first phase begins where the range does"

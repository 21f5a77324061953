"""The comparison of a project's runs without a window: what is asked, kept, and computed when."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.core.accounts import Account
from desktop.core.charges import RunCosts
from desktop.core.curve import StepCurve
from desktop.data.causality import Causality
from desktop.data.store import TraceStore
from desktop.errors import ProjectError
from desktop.progress import Progress
from desktop.remote import named
from desktop.resources import samples
from desktop.workbench.keeping import ProjectStore
from desktop.workbench.model import (
    Comparison,
    Matched,
    PhaseSettings,
    TraceId,
    Workspace,
    contradict,
    run_keys,
)
from desktop.workbench.run_comparison import (
    MOST,
    RunComparison,
    contrast,
    load_costs,
    load_curve,
    load_phased,
    phased,
    plain_run,
    run_names,
)
from desktop.workbench.workbench import Workbench
from tests.inline import Inline, Later

pytestmark = pytest.mark.usefixtures("own_places")

LANES = ("store", "fit", "sweep", "statistics", "waiting")


def curve(path: Path, *levels: float) -> Path:
    rows = [f"{k},{h:g}" for k, h in enumerate([*levels, 0])]
    path.write_text("\n".join(rows) + "\n")
    return path


def made(tmp_path: Path, count: int, rise: float = 1) -> tuple[Workbench, ProjectStore, RunComparison]:
    """A project with so many runs, all done at once."""
    bench = Workbench(executors={name: Inline() for name in LANES})
    projects = ProjectStore(
        bench, lambda _: None, lambda _: None, lambda: None, folder=tmp_path, executor=Inline()
    )
    for k in range(count):
        path = curve(tmp_path / f"run{k}.csv", 4, 4, 1, 1, 3, 3 + rise * k)
        projects.add_run(path) if k else bench.open(path)
        bench.set_model("constant")
        bench.set_n(3)
    run_comparison = RunComparison(bench, projects, executor=Inline())
    run_comparison.watch(True)
    return bench, projects, run_comparison


def test_only_what_changes_is_computed_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, _, run_comparison = made(tmp_path, 3)
    first = run_comparison.snapshot
    assert first.alignment is not None and first.placement is not None and not first.problem
    assert [run.name for run in first.alignment.runs] == ["run0.csv", "run1.csv", "run2.csv"]
    assert ["run1.csv takes 6 s" in first.sentences[0], "run2.csv takes 6 s" in first.sentences[1]] == [
        True
    ] * 2
    for reads in ("_opened", "load_costs"):
        monkeypatch.setattr(f"desktop.workbench.run_comparison.{reads}", lambda *_: pytest.fail("read again"))
    run_comparison.refresh()
    assert run_comparison.snapshot.alignment is first.alignment, "nothing was asked"
    run_comparison.change(axis="normalised")
    second = run_comparison.snapshot
    assert second.alignment is not None and second.placement is not None
    assert second.placement.axis == "normalised"
    assert all(a is b for a, b in zip(first.alignment.runs[:2], second.alignment.runs[:2], strict=True))
    bench.set_n(2)
    run_comparison.refresh()
    third = run_comparison.snapshot
    assert third.alignment is not None and third.alignment.runs[2].fit.n == 2
    assert third.placement is not None and third.placement.differences is second.placement.differences


def test_nothing_is_computed_for_nobody(tmp_path: Path) -> None:
    _, _, run_comparison = made(tmp_path, 2)
    run_comparison.watch(False)
    before = run_comparison.snapshot
    run_comparison.change(axis="absolute")
    assert run_comparison.snapshot is before
    run_comparison.watch(True)
    assert (
        run_comparison.snapshot.placement is not None and run_comparison.snapshot.placement.axis == "absolute"
    )


def test_intervals_over_the_runs_need_no_comparison(tmp_path: Path) -> None:
    bench, _, run_comparison = made(tmp_path, 4, rise=0.1)
    run_comparison.watch(False)
    shown = run_comparison.snapshot
    for n in (2, 3):  # the others have three phases
        bench.set_n(n)
        run_comparison.refresh()
    firm = bench.snapshot.firm
    assert len(firm) == 2
    for one, at in zip(firm, bench.snapshot.fit.breaks[1:-1], strict=True):
        # It holds the median of the four, beside which that of one run may lie.
        assert one is not None and one.low_s - 0.1 <= at <= one.high_s + 0.1
        assert (one.repeats, one.of, one.what) == (4, 4, "runs")
    assert run_comparison.snapshot.alignment is shown.alignment, "the page that nobody looks at stays"


def test_intervals_over_the_runs_leave_out_one_that_is_gone(tmp_path: Path) -> None:
    bench, projects, run_comparison = made(tmp_path, 4, rise=0.1)
    run_comparison.close()
    (tmp_path / "run1.csv").unlink()
    again = RunComparison(bench, projects, executor=Inline())
    again.refresh()
    assert [one.of for one in bench.snapshot.firm if one] == [3, 3]
    assert again.snapshot.problem == ""


def test_as_many_as_can_be_told_apart(tmp_path: Path) -> None:
    _, _, run_comparison = made(tmp_path, MOST + 1)
    assert [entry.shown for entry in run_comparison.snapshot.entries] == [True] * MOST + [False]
    run_comparison.show_run(run_comparison.snapshot.entries[0].key, False)
    assert [entry.shown for entry in run_comparison.snapshot.entries] == [False] + [True] * MOST
    assert run_comparison.snapshot.reference == run_comparison.snapshot.entries[1].key


def test_a_run_that_is_gone_is_said_and_can_be_left_out(tmp_path: Path) -> None:
    bench, projects, run_comparison = made(tmp_path, 3)
    run_comparison.watch(False)
    projects.save(tmp_path / "p.phasewright")
    bench.close_document()
    (tmp_path / "run0.csv").unlink()
    projects.open(tmp_path / "p.phasewright")
    again = RunComparison(bench, projects, executor=Inline())
    again.watch(True)
    assert "run0.csv is not at" in again.snapshot.problem and again.snapshot.alignment is None
    again.show_run(again.snapshot.entries[0].key, False)
    assert not again.snapshot.problem and again.snapshot.alignment is not None


def test_sentences_stay_whole_while_costs_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_trace: TraceId, _rules: object, span: tuple[float, float], *_: object) -> RunCosts:
        return RunCosts(4.0, {(int(Account.COMPUTING), "relax", "0"): np.array([4 * (span[1] - span[0]), 0])})

    monkeypatch.setattr("desktop.workbench.run_comparison.load_costs", load)
    _, projects, run_comparison = made(tmp_path, 2)
    projects.add_run(curve(tmp_path / "longer.csv", *[4] * 9))
    run_comparison.refresh()
    told: list[tuple[str, ...]] = []
    run_comparison.subscribe(lambda _, new: told.append(new.sentences))
    run_comparison.change(axis="normalised")
    assert set(told) == {run_comparison.snapshot.sentences}, "and nothing shorter meanwhile"
    assert any("computing in relax +3 s" in text for text in told[0])


def test_costs_are_not_asked_for_where_nothing_is_left_to_compare(tmp_path: Path) -> None:
    bench, projects, _ = made(tmp_path, 2)
    later = Later()
    run_comparison = RunComparison(bench, projects, executor=later)
    run_comparison.watch(True)
    later.waiting.pop(0)()
    assert run_comparison.snapshot.alignment is not None and len(later.waiting) == 1, "costs are to come"
    run_comparison.show_run(run_comparison.snapshot.keys[1], False)
    for file in tmp_path.glob("run*.csv"):
        file.unlink()
    later.run()
    left = run_comparison.snapshot
    assert left.alignment is None and (left.sentences, left.task, left.problem) == ((), None, "")


def test_a_trace_elsewhere_is_not_connected_to_for_its_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop.data.opening.open_trace", lambda *_, **__: pytest.fail("connected"))
    trace = TraceId(named("ssh://host/run/traces.otf2"), "traces.otf2", 0, "", "", "")
    assert load_costs(trace, None, (0.0, 1.0), None, Progress()) is None


def test_pairs_are_kept_and_undone_with_the_project(tmp_path: Path) -> None:
    bench, projects, run_comparison = made(tmp_path, 2)
    key = run_comparison.snapshot.entries[1].key
    run_comparison.pair(key, 0, 1)
    run_comparison.pair(key, 1, 2)
    (kept,) = projects.workspace.comparison.matched
    assert kept.pairs == ((0, 1), (1, 2)) and run_comparison.by_hand == {key: kept.pairs}
    run_comparison.pair(key, 2, 1)
    assert projects.workspace.comparison.matched[0].pairs == ((2, 1),), "what contradicts it is let go"
    bench.undo()
    run_comparison.refresh()
    assert projects.workspace.comparison.matched == (kept,)
    assert run_comparison.snapshot.alignment is not None
    assert run_comparison.snapshot.alignment.rows.tolist() == [[-1, 0], [0, 1], [1, 2], [2, -1]]
    run_comparison.match_again()
    assert not projects.workspace.comparison.matched and not run_comparison.by_hand


pairs = st.tuples(st.integers(-1, 4), st.integers(-1, 4)).filter(lambda p: p != (-1, -1))


@settings(deadline=None, max_examples=200)
@given(st.lists(pairs, max_size=4, unique=True))
def test_pairs_contradict_if_no_alignment_holds_all(some: list[tuple[int, int]]) -> None:
    from desktop.core.matching import Shapes, match

    five = Shapes(np.zeros((5, 3)), np.full(5, 0.2), np.full(5, 0.2))
    try:
        match(five, five, some)
        possible = True
    except ValueError:
        possible = False
    assert contradict(some) == (not possible)


def test_names_tell_runs_apart() -> None:
    def trace(path: str) -> TraceId:
        return TraceId(Path(path), Path(path).name, 0, "", "", "")

    assert run_names([trace("/a/x.otf2"), trace("/b/y.otf2")]) == ("x.otf2", "y.otf2")
    assert run_names([trace("/a/x.otf2"), trace("/b/x.otf2")]) == ("a/x.otf2", "b/x.otf2")
    assert run_names([trace("/a/x.otf2")] * 2) == ("a/x.otf2 (1)", "a/x.otf2 (2)")
    assert run_names([trace("/r/a/traces.otf2"), trace("/r/b/traces.otf2")]) == ("a", "b")
    assert run_names([trace("/r/a/traces.otf2"), trace("/s/a/traces.otf2")]) == ("r/a", "s/a")


def test_a_project_without_a_window(tmp_path: Path) -> None:
    runs = tuple(
        plain_run(curve(tmp_path / f"{k}.csv", 4, 1, k), PhaseSettings("constant", 3)) for k in (2, 3)
    )
    runs = tuple(replace(run, trace=replace(run.trace, sha256=run.trace.name * 20)) for run in runs)
    curves = [load_curve(run, None, Progress())[0] for run in runs]
    made = [phased(run.trace.name, c, run.project.phases) for run, c in zip(runs, curves, strict=True)]
    first, second = run_keys(runs)
    asked = Comparison(second, axis="phases", matched=(Matched(second, first, 3, 3, ((2, 0),)),))
    found = contrast(Workspace(runs, comparison=asked), made)
    assert found is not None and found.alignment.reference == 1 and found.placement.axis == "phases"
    assert [0, 2] in found.alignment.rows.tolist()
    hidden = replace(asked, hidden=frozenset({first}))
    assert contrast(Workspace(runs, comparison=hidden), made) is None
    (tmp_path / "2.csv").unlink()
    with pytest.raises(ProjectError, match="is not at"):
        load_curve(runs[0], None, Progress())


def test_the_suggested_phases_are_those_of_the_curve() -> None:
    steps = StepCurve(np.arange(41.0), np.repeat([8.0, 2.0, 6.0, 1.0], 10))
    assert phased("x", steps, None).fit.n == 4


def test_phases_of_a_run_that_is_not_shown_are_those_of_the_window() -> None:
    """They once ended elsewhere, by up to a tenth of the run: structure events did not count."""
    sample = samples()[0].path
    bench = Workbench(executors={name: Inline() for name in LANES})
    bench.open(sample)
    bench.set_n(5)
    fit, asked = bench.snapshot.fit, bench.snapshot.project.phases
    assert fit is not None and asked.breaks is None
    found, _ = load_phased("x", plain_run(sample, asked), asked, None, Progress())
    assert found.fit.breaks.tolist() == fit.breaks.tolist()
    assert phased("x", found.curve, asked).fit.breaks.tolist() != fit.breaks.tolist()
    bench.close()


def test_who_waited_in_the_window_is_not_found_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The costs of the run that is shown are those of a copy that is read again."""
    sample = next(one.path for one in samples() if one.path.suffix == ".trf")
    copy = tmp_path / "copy.trf"
    copy.write_bytes(sample.read_bytes())
    bench = Workbench(executors={name: Inline() for name in LANES})
    bench.settle = 0.0
    bench.watch("panel", frozenset({"accounts"}))
    projects = ProjectStore(
        bench, lambda _: None, lambda _: None, lambda: None, folder=tmp_path, executor=Inline()
    )
    bench.open(copy)
    projects.add_run(sample)
    assert bench.waits is not None
    found: list[str] = []

    def noted(store: TraceStore, *request: object) -> Causality:
        found.append(store.source.name)
        return Causality(store, *request)  # type: ignore[arg-type]  # as it was asked

    monkeypatch.setattr("desktop.data.statistics.Causality", noted)
    run_comparison = RunComparison(bench, projects, executor=Inline())
    run_comparison.watch(True)
    assert found == ["copy.trf"] and not run_comparison.snapshot.problem
    (_, read), (_, shown) = run_comparison._costs
    assert read is not None and shown is not None and read.processors == shown.processors
    assert {about: time.tolist() for about, time in read.times.items()} == {
        about: time.tolist() for about, time in shown.times.items()
    }

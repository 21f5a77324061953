"""Experiments and tables of run times in a project: they come back as they were left, and nothing is run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.data import project_file
from desktop.data.tables import Table, TableEdits, read_table, with_values
from desktop.data.trace_rows import Quantity
from desktop.resources import example_table, samples
from desktop.workbench.experimenting import ExperimentBench
from desktop.workbench.keeping import read_workspace
from desktop.workbench.model import AnalysisSettings, KeptComparison, KeptExperiment, KeptTable, Workspace
from desktop.workbench.modelling import ModelBench
from tests.experiments import small
from tests.inline import Inline
from tests.workbench.test_keeping import Desk

pytestmark = pytest.mark.usefixtures("own_places")

SPT = Path(__file__).parent.parent / "data" / "spt"
SCREEN = SPT / "measured_2026-11-21_screen_2p6m2.csv"


def model_bench() -> ModelBench:
    return ModelBench(executors={"fit": Inline(), "more": Inline()})


@pytest.fixture
def benches() -> Iterator[tuple[ExperimentBench, ExperimentBench]]:
    lanes = ("files", "plan", "run", "analyse", "trace")
    made = tuple(ExperimentBench(executors={name: Inline() for name in lanes}) for _ in range(2))
    yield made[0], made[1]
    for bench in made:
        bench.close()


def saved(folder: Path, *records: KeptExperiment | KeptTable) -> Workspace:
    """As the project file gives them back."""
    file = folder / "p.phasewright"
    experiments = tuple(one for one in records if isinstance(one, KeptExperiment))
    tables = tuple(one for one in records if isinstance(one, KeptTable))
    project_file.write(file, Workspace(experiments=experiments, tables=tables))
    return read_workspace(file)


# --- tables and models

TEXT = "code,system,p,time\n" + "".join(
    f"{code},{system},{p},{10 * k / p!r}\n"
    for k, code in enumerate(("LU", "lu ", "BT"), 1)
    for system in ("one", "two")
    for p in (1, 2, 4)
)
NAMES = ("LU", "lu", "BT", "one", "two", "new")
steps = st.one_of(
    st.tuples(st.just("exclude"), st.lists(st.integers(2, 25), max_size=4), st.sampled_from(["", "outlier"])),
    st.tuples(st.just("rename"), st.lists(st.sampled_from(NAMES), max_size=2), st.sampled_from(NAMES)),
    st.tuples(st.just("add"), st.integers(1, 3), st.sampled_from(NAMES)),
    st.tuples(
        st.just("values"),
        st.sampled_from(["work", "peak"]),
        st.dictionaries(st.sampled_from(NAMES), st.floats(1, 1e9)),
    ),
)  # fmt: skip


def edited(table: Table, step: tuple[str, object, object], folder: Path) -> Table:
    kind, first, second = step
    if kind == "exclude":
        return table.exclude(first, second)  # type: ignore[arg-type]  # as the strategy makes them
    if kind == "rename":
        return table.rename(first, second)  # type: ignore[arg-type]  # as the strategy makes them
    if kind == "add":
        return table.with_rows([replace(table.rows[0], code=str(second), time=1.5)] * int(str(first)))
    of = "code" if first == "work" else "system"
    values = second if isinstance(second, dict) else {}
    if not any(getattr(row, of) in values for row in table.rows):
        return table
    source = folder / "values.csv"
    source.write_text(f"{of},{first}\n" + "".join(f"{name},{value!r}\n" for name, value in values.items()))
    return with_values(table, source, first)  # type: ignore[arg-type]  # "work" or "peak"


@settings(deadline=None, max_examples=100)
@given(st.lists(steps, max_size=6))
def test_any_changes_of_a_table_come_back(changes: list[tuple[str, object, object]]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        read = now = read_table(TEXT)
        for step in changes:
            now = edited(now, step, folder)
        (kept,) = saved(folder, KeptTable(text=TEXT, edits=TableEdits.between(read, now))).tables
        assert kept.edits is not None
        back = kept.edits.on(read)
        # What is no number is equal to nothing, but looks alike.
        assert repr(replace(back, columns={})) == repr(replace(now, columns={}))
        assert back.columns == now.columns


def test_a_model_comes_back_as_it_was_left(tmp_path: Path) -> None:
    table = Path(shutil.copy(example_table(), tmp_path / "times.csv"))
    bench, other = model_bench(), model_bench()
    assert bench.record() is None
    bench.open(table)
    bench.set_functions(("1/p", "log(p)/p"))
    bench.set_repeats("median")
    bench.set_joint(False)
    bench.exclude([5, 7], "outlier")
    row = bench.snapshot.project.table.rows[0]  # type: ignore[union-attr]  # it is open
    bench.merge_names((row.code,), "renamed")
    kept = bench.record()
    assert kept is not None and kept.path == table and kept.sha256
    (back,) = saved(tmp_path, kept).tables
    assert back == kept
    other.open_record(back)
    assert other.snapshot.problem == "" and other.history.undo_label is None
    assert repr(other.snapshot.project) == repr(bench.snapshot.project)
    assert other.snapshot.fit is not None and bench.snapshot.fit is not None
    assert other.snapshot.fit.sse == bench.snapshot.fit.sse and other.record() == kept

    table.write_text(table.read_text() + "LU,T3E,1,10\n")
    other.open_record(back)
    assert "times.csv is not as it was" in other.snapshot.problem and other.snapshot.fit is not None
    table.unlink()
    other.open_record(back)
    assert "times.csv" in other.snapshot.problem


def test_pasted_tables_and_rows_of_traces_are_in_the_project_itself(tmp_path: Path) -> None:
    for make in (
        lambda bench: bench.open(TEXT),
        lambda bench: bench.add_runs([samples()[0].path], "cholesky", "here", Quantity()),
    ):
        bench, other = model_bench(), model_bench()
        make(bench)
        bench.set_positive(True)
        kept = bench.record()
        assert kept is not None and kept.path is None
        other.open_record(saved(tmp_path, kept).tables[0])
        assert repr(other.snapshot.project) == repr(bench.snapshot.project)
        assert other.record() == kept
    empty = model_bench()
    empty.open_record(KeptTable())
    assert "no rows" in empty.snapshot.problem and empty.record() is None


# --- experiments


def test_a_table_of_runs_comes_back_as_it_was_read(
    benches: tuple[ExperimentBench, ExperimentBench], tmp_path: Path
) -> None:
    bench, other = benches
    bench.open(SPT / "measured_2026-11-21_scaling_2p2.csv")
    bench.choose_rows("cpu_s", (("factor", "F2"),))
    bench.set_analysis("halve", half=True, threshold="2")
    bench.toggle_term(bench.snapshot.every.effects[-1].term)  # type: ignore[union-attr]  # it was read
    imported = bench.snapshot.project.imported
    assert imported is not None and imported.table is not None
    bench.leave_out(imported.table.data.label[0], "a typo")
    bench.add_table(SCREEN)
    bench.set_table(0, processors=4.0, delay=100.0)
    bench.pin(samples()[0].path)
    kept = bench.record()
    assert kept is not None and kept.compared == (KeptComparison(SCREEN, 4.0, 100.0),)
    assert kept.where == (("factor", "F2"),) and kept.left_out[0][1] == "a typo"
    assert kept.trace == samples()[0].path
    (back,) = saved(tmp_path, kept).experiments
    assert back == kept
    other.open_record(back)
    assert other.snapshot.problem == "" and other.record() == kept
    assert other.snapshot.effects is not None and bench.snapshot.effects is not None
    assert [(e.term, e.value) for e in other.snapshot.effects.effects] == [
        (e.term, e.value) for e in bench.snapshot.effects.effects
    ]


def test_what_is_not_as_it_was_is_told(
    benches: tuple[ExperimentBench, ExperimentBench], tmp_path: Path
) -> None:
    bench, _ = benches
    small(tmp_path / "plan")
    bench.open(tmp_path / "plan")
    bench.set_analysis("read", response="wall", terms=((0,), (0, 1)))
    kept = bench.record()
    assert kept is not None and kept.path == tmp_path / "plan"
    experiment = bench.snapshot.project.experiment
    assert experiment is not None
    small(tmp_path / "plan", factors=experiment.factors[:1])
    bench.open_record(replace(kept, compared=(KeptComparison(tmp_path / "gone.csv"),)))
    for sentence in ("plan is not as it was", "factors that it no longer has", "compared with gone.csv"):
        assert sentence in bench.snapshot.problem
    project = bench.snapshot.project
    assert project.analysis == AnalysisSettings("wall") and project.tables == ()


@pytest.mark.skipif(os.name == "nt", reason="the programs of these tests are shell scripts")
def test_a_strangers_bundle_runs_nothing(
    benches: tuple[ExperimentBench, ExperimentBench], tmp_path: Path
) -> None:
    """Not by opening it, nor by asking for it to be run before the commands were agreed to."""
    bench, _ = benches
    theirs, ours = Desk(), Desk()
    folder, trace = tmp_path / "theirs" / "plan", tmp_path / "theirs" / "a.txt"
    folder.parent.mkdir()
    trace.write_text("0 1\n1 5\n2 2\n3 0\n")
    small(folder)
    bench.open(folder)
    bench.consent()  # theirs is not ours
    bench.add_table(SCREEN)
    kept = bench.record()
    assert kept is not None
    theirs.bench.open(trace)
    theirs.projects.add(kept)
    bundle = tmp_path / "b.zip"
    theirs.projects.save(folder.parent / "p.phasewright")
    theirs.projects.export_bundle(bundle, lambda _: None, frozenset({SCREEN.resolve()}))
    shutil.rmtree(folder.parent)
    ours.projects.open(bundle)
    (found,) = ours.projects.workspace.experiments
    assert ours.bench.snapshot.problem is None and found.settings == kept.settings
    bench.open_record(found)
    assert bench.snapshot.problem == "" and len(bench.snapshot.project.tables) == 1
    for act in (bench.run, bench.check):
        act()
        assert "read the commands" in bench.snapshot.problem
    assert (found.path / "program.sh").exists() and not list(tmp_path.rglob("ran.txt"))
    theirs.close()
    ours.close()

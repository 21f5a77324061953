"""One bench for each experiment and table of a project, whoever shows it; what side panels show of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from desktop import resources
from desktop.workbench.bench import Bench
from desktop.workbench.experimenting import ExperimentBench
from desktop.workbench.keeping import FileRecord, ProjectStore, RecordBench, read_workspace
from desktop.workbench.model import KeptExperiment
from desktop.workbench.modelling import ModelBench, ModelSnapshot
from desktop.workbench.side import EffectsSide, ModelSide
from desktop.workbench.workbench import Workbench
from tests.inline import Inline

pytestmark = pytest.mark.usefixtures("own_places")

SPT = Path(__file__).parent.parent / "data" / "spt"
LANES = ("store", "fit", "sweep", "statistics", "waiting", "files", "plan", "run", "analyse", "trace", "more")
TABLE = "code,system,p,time\nLU,a,1,10\nLU,a,2,6\nLU,a,4,4\n"


class Desk:
    """A workbench, its projects and its sides, without threads."""

    def __init__(self) -> None:
        executors: dict[str, Any] = {name: Inline() for name in LANES}
        self.made: list[RecordBench] = []
        self.bench = Workbench(executors=executors)
        self.bench.settle = 0.0
        self.sides: list[EffectsSide | ModelSide] = []

        def make(record: FileRecord) -> RecordBench:
            kind = ExperimentBench if isinstance(record, KeptExperiment) else ModelBench
            self.made.append(kind(executors=executors, history=self.bench.history))
            return self.made[-1]

        self.projects = ProjectStore(
            self.bench, lambda _: None, lambda _: None, self._changed, executor=Inline(), make_bench=make
        )
        self.effects = EffectsSide(self.bench, self.projects, executor=Inline())
        self.model = ModelSide(self.bench, self.projects)
        self.sides = [self.effects, self.model]

    def _changed(self) -> None:
        for side in self.sides:
            side.refresh()

    def close(self) -> None:
        for side in self.sides:
            side.close()
        self.projects.close()
        self.bench.close()


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.close()


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "run_16.csv"
    file.write_text("0 1\n1 5\n2 2\n3 6\n4 0\n")
    return file


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "times.csv"
    file.write_text(TABLE)
    return file


def test_a_bench_lives_as_long_as_anybody_uses_it() -> None:
    closed: list[str] = []

    class Watched(Bench[ModelSnapshot]):
        def close(self) -> None:
            super().close()
            closed.append("closed")

    bench, heard = Watched(ModelSnapshot()), list[str]()
    bench.share()

    def listener(_: ModelSnapshot, new: ModelSnapshot) -> None:
        heard.append(new.problem)

    bench.subscribe(listener)
    bench._show(problem="one")
    bench.release(listener)
    bench._show(problem="two")
    assert heard == ["one"] and closed == []
    bench.release()
    assert closed == ["closed"]


def test_a_panel_that_is_looked_at_turns_to_the_bench_of_a_page(desk: Desk, trace: Path, table: Path) -> None:
    """No bench is made between the one that is given back and the one that takes its place."""
    desk.bench.open(trace)
    desk.projects.add_files(tables=(table,))
    desk.model.watch(True)
    page = ModelBench(executors={"fit": Inline(), "more": Inline()}, history=desk.bench.history)
    page.open(table)
    page.set_positive(True)
    before, kept = len(desk.made), page.record()
    assert kept is not None
    desk.projects.work_on("tables", 0, page, kept)
    assert len(desk.made) == before == 1 and desk.model.bench is page
    assert desk.projects.workspace.tables == (kept,)
    page.set_joint(True)
    assert desk.projects.workspace.tables == (page.record(),), "and it is listened to"
    page.release()


def test_everybody_works_on_the_same_bench_and_the_project_keeps_it(
    desk: Desk, trace: Path, table: Path, tmp_path: Path
) -> None:
    desk.bench.open(trace)
    desk.projects.add_files(tables=(table,))
    bench = desk.projects.bench("tables", 0)
    assert isinstance(bench, ModelBench) and desk.projects.bench("tables", 0) is bench
    assert len(desk.made) == 1
    bench.set_functions(("1/p", "1"))
    bench.exclude([2], "cold")
    desk.projects.save(tmp_path / "p.phasewright")
    (kept,) = read_workspace(tmp_path / "p.phasewright").tables
    assert kept.settings is not None and kept.settings.functions == ("1/p", "1")
    assert kept.edits is not None and kept.edits.reasons == ((2, "cold"),)

    # A page that shows it turns to another file: the project's is opened anew for the others.
    bench.share()
    desk.model.watch(True)
    other = tmp_path / "other.csv"
    other.write_text(TABLE.replace("LU", "SP"))
    bench.open(other)
    assert desk.model.bench is not bench and desk.model.bench is desk.projects.bench("tables", 0)
    assert desk.model.snapshot.content is not None and desk.model.snapshot.content.source == table
    bench.set_positive(True)
    now = desk.projects.workspace.tables[0].settings
    assert now is not None and not now.positive and now.functions == ("1/p", "1")

    # With another project nothing of this one is worked on.
    desk.bench.open(trace)
    assert desk.model.snapshot.names == () and desk.model.bench is None
    assert desk.bench.history.undo_label == "keep parameters positive", "the page has it still"
    bench.release()
    assert desk.bench.history.undo_label is None


def test_steps_are_undone_in_the_order_in_which_they_were_made_wherever_that_was(
    desk: Desk, trace: Path, table: Path
) -> None:
    bench = desk.bench
    bench.open(trace)
    bench.set_n(2)
    desk.projects.add_files(tables=(table,), experiments=(SPT / "nistir5131_table2_runs.csv",))
    model, effects = desk.projects.bench("tables", 0), desk.projects.bench("experiments", 0)
    assert isinstance(model, ModelBench) and isinstance(effects, ExperimentBench)
    model.set_functions(("1/p",))
    bench.annotate("here", 1.0)
    effects.set_analysis("halve", half=True)
    labels = []
    for _ in range(5):
        labels.append(bench.history.undo_label)
        bench.undo()
    assert labels == ["halve", "add annotation", "fit 1/p", "add 2 files", "set 2 phases"]
    assert not effects.snapshot.project.analysis.half and desk.projects.workspace.tables == ()
    for label in reversed(labels):
        assert bench.history.redo_label == label
        bench.redo()
    assert effects.snapshot.project.analysis.half and bench.history.redo_label is None
    assert model.snapshot.project.settings.functions == ("1/p",)
    bench.undo()
    bench.undo()
    model.set_positive(True)
    assert bench.history.redo_label is None and bench.history.undo_label == "keep parameters positive"
    assert effects.history.redo_label is None, "a step anywhere forgets what was undone elsewhere"


def test_nothing_is_made_while_nobody_looks(desk: Desk, trace: Path, table: Path) -> None:
    desk.bench.open(trace)
    desk.projects.add_files(tables=(table,), experiments=(SPT / "nistir5131_table2_runs.csv",))
    assert desk.made == [] and desk.effects.snapshot.names == ("nistir5131_table2_runs.csv",)
    desk.effects.watch(True)
    assert len(desk.made) == 1 and desk.effects.snapshot.content is not None
    desk.effects.watch(False)
    assert desk.effects.snapshot.content is None and desk.effects.bench is None
    desk.effects.watch(True)
    assert len(desk.made) == 1, "it is still there"


def test_a_run_is_known_by_its_content(desk: Desk, trace: Path, table: Path, tmp_path: Path) -> None:
    desk.bench.open(trace)
    desk.projects.add_files(tables=(table,))
    desk.model.watch(True)
    # Six processors, so the 16 in the name is no p.
    assert desk.model.names_of_run() == ("run_16", "a")
    desk.bench.limit_to((1.0, 3.0))
    desk.bench.set_n(2)
    desk.model.add_run("LU", " b ", phases=True)
    whole, *phases = desk.model.snapshot.rows
    assert (whole.code, whole.system, whole.p, whole.time, whole.note) == ("LU", "b", 6, 4.0, "run time")
    assert [row.time for row in phases] == [1.0, 1.0]
    assert [row.note for row in phases] == [f"phase {k} of 2 (mixed) from 1 to 3 s" for k in (1, 2)]
    assert desk.model.rows_of_run("LU", "b", phases=True) == ()
    assert len(desk.model.rows_of_run("LU", "c", phases=True)) == 3
    desk.projects.save(tmp_path / "p.phasewright")

    moved = tmp_path / "elsewhere.csv"
    shutil.copy(trace, moved)
    desk.projects.add_run(moved)
    assert len(desk.model.snapshot.rows) == 3 and desk.model.names_of_run() == ("elsewhere", "b")
    other = tmp_path / "another.csv"
    other.write_text("0 3\n1 7\n2 4\n3 0\n")
    desk.projects.add_run(other)
    assert desk.model.snapshot.rows == ()


def test_the_name_of_a_trace_goes_without_its_p(desk: Desk) -> None:
    sample = next(s.path for s in resources.samples() if "cholesky" in str(s.path))
    desk.bench.open(sample)
    assert desk.model.names_of_run() == ("cholesky", "this system")

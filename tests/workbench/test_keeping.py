"""The project of a window: what is kept, found again, noticed, and what a killed process leaves."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Any, Literal
from unittest.mock import Mock

import psutil
import pytest

from desktop.data import project_file
from desktop.data.events import Activity
from desktop.data.naming import DESCRIPTION
from desktop.data.project_file import BUNDLED, SCHEMA, backup_of
from desktop.data.utilization import Rules
from desktop.errors import ProjectError
from desktop.workbench.bundling import Outside
from desktop.workbench.keeping import (
    DEPTH,
    ProjectStore,
    find_trace,
    read_workspace,
    recoveries,
    recovery_folder,
)
from desktop.workbench.model import (
    AnalysisSettings,
    KeptComparison,
    KeptExperiment,
    NamedView,
    OpenOptions,
    Recovery,
    TraceId,
    View,
    Workspace,
    names,
)
from desktop.workbench.workbench import Workbench
from tests.data_layer.damage import sample
from tests.inline import Inline
from tests.workbench import saving

pytestmark = pytest.mark.usefixtures("own_places")

ROOT = Path(__file__).parent.parent.parent
#: Processes that are killed, of each kind.
KILLS = int(os.environ.get("PHASEWRIGHT_KILLS", "12"))


@pytest.fixture
def traces(tmp_path: Path) -> tuple[Path, Path]:
    files = tmp_path / "work" / "a.txt", tmp_path / "work" / "b.txt"
    files[0].parent.mkdir()
    files[0].write_text("0 1\n1 5\n2 2\n3 6\n4 0\n")
    files[1].write_text("0 3\n1 7\n2 4\n3 0\n")
    return files


class Desk:
    """A workbench and its projects, and what they said."""

    def __init__(self) -> None:
        self.bench = Workbench(executors={"store": Inline(), "fit": Inline(), "sweep": Inline()})
        self.told: list[str] = []
        self.asked: list[TraceId] = []
        self.answer: Path | None = None
        self.projects = ProjectStore(
            self.bench, self.locate, self.told.append, lambda: None, executor=Inline()
        )

    def locate(self, trace: TraceId) -> Path | None:
        self.asked.append(trace)
        return self.answer

    def close(self) -> None:
        self.projects.close()
        self.bench.close()


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.close()


@pytest.fixture
def other() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.close()


def test_everything_that_was_asked_for_comes_back(
    desk: Desk, other: Desk, traces: tuple[Path, Path], tmp_path: Path
) -> None:
    file, bench = tmp_path / "work" / "p.phasewright", desk.bench
    bench.open(traces[0])
    assert not desk.projects.modified and desk.projects.path is None
    bench.set_model("constant")
    bench.set_n(3)
    bench.move_breakpoint(1, 1.25)
    bench.toggle_lock(1)
    bench.set_computing(frozenset({Activity.COMPUTING, Activity.OVERHEAD}))
    bench.annotate("a peak", 1.0)
    bench.annotate("calm", 2.0, 3.0, location=0)
    bench.select((0.5, 1.5))
    bench.keep_view(4, View(span=(0.25, 2.0), order="busy"), "the peak")
    bench.name_region("f_1", "factorise")
    assert desk.projects.modified and desk.projects.by_hand
    seen = View((0.5, 1.5), None, bench.snapshot.project.view.shown, (0.1, 3.9), "first")
    desk.projects.save(file, seen)
    assert not desk.projects.modified

    other.projects.open(file)
    project = other.bench.snapshot.project
    assert project == replace(bench.snapshot.project, view=seen)
    assert project.rules == Rules(computing=frozenset({Activity.COMPUTING, Activity.OVERHEAD}))
    assert project.phases.breaks is not None and project.phases.breaks[1] == 1.25
    assert project.views == (NamedView(4, "the peak", project.views[0].view),)
    fit, before = other.bench.snapshot.fit, bench.snapshot.fit
    assert fit is not None and before is not None
    assert fit.breaks.tolist() == before.breaks.tolist() and fit.epsilon == before.epsilon
    assert not other.projects.modified and other.told == [] and other.bench.snapshot.problem is None
    assert other.bench.history.undo_label is None, "opening is no step"


def test_every_edit_is_undone_and_undoing_all_is_no_change(desk: Desk, traces: tuple[Path, Path]) -> None:
    bench = desk.bench
    bench.open(traces[0])
    first = bench.snapshot.project
    bench.annotate("one", 1.0)
    bench.change_annotation(0, text="two", colour=5)
    bench.change_annotation(0, hidden=True)
    bench.remove_annotation(0)
    bench.keep_view(1, View(span=(0.0, 1.0)))
    bench.rename_view(1, "start")
    bench.remove_view(1)
    bench.name_region("f", "g")
    labels = []
    while bench.history.undo_label:
        labels.append(bench.history.undo_label)
        bench.undo()
    assert labels[::-1] == [
        "add annotation", "edit annotation", "hide annotation", "delete annotation",
        "keep view 1", "rename view 1", "delete view 1", "rename f",
    ]  # fmt: skip
    assert bench.snapshot.project == first and not desk.projects.modified
    for _ in range(3):
        bench.redo()
    (note,) = bench.snapshot.project.annotations
    assert (note.text, note.colour, note.hidden) == ("two", 5, True)


def test_looking_is_no_change(desk: Desk, traces: tuple[Path, Path]) -> None:
    desk.bench.open(traces[0])
    desk.bench.select((0.0, 1.0))
    desk.bench.select_phase(0)
    desk.bench.toggle_class("idle")
    assert not desk.projects.modified and not desk.projects.by_hand


def test_several_runs_each_with_its_own_history(
    desk: Desk, other: Desk, traces: tuple[Path, Path], tmp_path: Path
) -> None:
    bench, projects = desk.bench, desk.projects
    bench.open(traces[0])
    bench.annotate("in a", 1.0)
    projects.add_run(traces[1])
    assert projects.current == 1 and bench.snapshot.project.annotations == ()
    bench.annotate("in b", 2.0)
    projects.add_files(tables=(tmp_path / "work" / "times.csv",))
    projects.save(tmp_path / "p.phasewright")
    projects.show_run(0)
    assert [note.text for note in bench.snapshot.project.annotations] == ["in a"]
    assert bench.history.undo_label == "add times.csv"
    for label in ("add b.txt", "add annotation", None):
        bench.undo()
        assert bench.history.undo_label == label, "what was done before can still be undone"
    assert projects.modified and not bench.snapshot.project.annotations
    for _ in range(3):
        bench.redo()
    assert not projects.modified
    bench.undo()
    bench.undo()
    bench.undo()
    bench.redo()
    bench.annotate("again", 1.0)
    assert bench.history.redo_label is None, "a new step forgets what was undone, of both"
    projects.add_run(traces[1])
    projects.add_files(tables=(tmp_path / "work" / "times.csv",))
    bench.annotate("in b", 2.0)
    projects.save()
    projects.show_run(0)
    projects.show_run(1)
    assert [note.text for note in bench.snapshot.project.annotations] == ["in b"]
    projects.remove("runs", 0)
    projects.save()
    bench.undo()
    assert [run.trace.name for run in projects.workspace.runs] == ["a.txt", "b.txt"] and projects.modified
    projects.save()
    other.projects.open(tmp_path / "p.phasewright")
    runs = other.projects.workspace.runs
    assert [run.trace.name for run in runs] == ["a.txt", "b.txt"] and other.projects.current == 1
    assert [len(run.project.annotations) for run in runs] == [2, 1]
    assert [one.path for one in other.projects.workspace.tables] == [tmp_path / "work" / "times.csv"]
    other.projects.remove("runs", 0)
    assert [run.trace.name for run in other.projects.workspace.runs] == ["b.txt"]
    assert other.projects.current == 0 and other.projects.modified
    assert [note.text for note in other.bench.snapshot.project.annotations] == ["in b"]


def test_undoing_a_run_that_is_shown_shows_another(desk: Desk, traces: tuple[Path, Path]) -> None:
    bench, projects = desk.bench, desk.projects
    bench.open(traces[0])
    projects.add_run(traces[1])
    bench.undo()
    assert bench.snapshot.document is not None and bench.snapshot.document.source == traces[0]
    assert (
        projects.current == 0
        and len(projects.workspace.runs) == 1
        and bench.history.redo_label == "add b.txt"
    )
    projects.remove("runs", 0)
    assert len(projects.workspace.runs) == 1, "the last run stays"
    bench.redo()
    assert [run.trace.name for run in projects.workspace.runs] == ["a.txt", "b.txt"] and projects.current == 0
    projects.show_run(1)
    bench.annotate("in b", 1.0)
    projects.remove("runs", 1)
    assert projects.current == 0 and bench.history.undo_label == "take b.txt out"
    bench.undo()
    projects.show_run(1)
    assert [note.text for note in bench.snapshot.project.annotations] == ["in b"]


def test_what_was_said_of_an_experiment_or_table_is_kept_with_it(
    desk: Desk, other: Desk, traces: tuple[Path, Path], tmp_path: Path
) -> None:
    """A window of its own changes it; taking it out and putting it back loses nothing of that."""
    bench, projects = desk.bench, desk.projects
    bench.open(traces[0])
    plan, table = tmp_path / "work" / "plan", tmp_path / "work" / "times.csv"
    projects.add_files(experiments=(plan, plan), tables=(table,))
    assert bench.history.undo_label == "add 2 files" and projects.by_hand
    projects.save(tmp_path / "work" / "p.phasewright")
    (number,) = projects.numbers("experiments")
    projects.keep(
        number,
        replace(projects.workspace.experiments[0], settings=AnalysisSettings("wall", terms=((0,), (0, 1)))),
    )
    assert projects.modified
    projects.remove("experiments", 0)
    projects.add_files(tables=(table,))
    assert bench.history.undo_label == "take plan out", "a table that is there is not added again"
    bench.undo()
    assert projects.workspace.experiments[0].settings.terms == ((0,), (0, 1))
    projects.relocate("tables", 0, tmp_path / "elsewhere.csv")
    assert bench.history.undo_label == "find times.csv elsewhere"
    projects.save()
    other.projects.open(tmp_path / "work" / "p.phasewright")
    assert other.projects.workspace == projects.workspace
    assert other.projects.workspace.tables[0].path == tmp_path / "elsewhere.csv"
    bench.undo()
    assert projects.workspace.tables[0].path == table


def test_a_project_without_a_trace(
    desk: Desk, other: Desk, traces: tuple[Path, Path], tmp_path: Path
) -> None:
    desk.projects.add_files(tables=(tmp_path / "times.csv",))
    assert desk.bench.history.undo_label == "add times.csv"
    desk.projects.save(tmp_path / "p.phasewright")
    other.bench.open(traces[0])
    other.projects.open(tmp_path / "p.phasewright")
    assert other.bench.snapshot.document is None and other.projects.workspace == desk.projects.workspace
    assert other.projects.path == tmp_path / "p.phasewright" and not other.projects.modified
    other.projects.add_run(traces[1])
    assert other.projects.path is not None and len(other.projects.workspace.runs) == 1
    other.bench.undo()
    assert other.projects.workspace == desk.projects.workspace


def saved(desk: Desk, trace: Path, file: Path) -> None:
    desk.bench.open(trace)
    desk.bench.set_model("constant")
    desk.bench.set_n(2)
    desk.bench.move_breakpoint(1, 2.5)
    desk.bench.annotate("here", 1.0)
    desk.projects.save(file)


def test_a_moved_trace_is_found_or_asked_for(
    desk: Desk, other: Desk, traces: tuple[Path, Path], tmp_path: Path
) -> None:
    file = tmp_path / "work" / "p.phasewright"
    saved(desk, traces[0], file)
    below = tmp_path / "work" / "moved" / "here"
    below.mkdir(parents=True)
    traces[0].rename(below / "a.txt")
    other.projects.open(file)
    assert other.asked == [] and "moved" in other.told[0] and str(below) in other.told[0]
    assert other.bench.snapshot.project.annotations[0].text == "here"
    assert other.projects.modified, "the new place is worth saving"
    away = tmp_path / "away.txt"
    (below / "a.txt").rename(away)
    other.projects.open(file)
    assert [trace.name for trace in other.asked] == ["a.txt"]
    assert other.bench.snapshot.problem is not None
    assert "not where it was" in other.bench.snapshot.problem.sentence
    other.answer = away
    other.projects.open(file)
    other.projects.save()
    (run,) = read_workspace(file).runs
    assert run.trace.path == away and run.project.annotations[0].text == "here"


def test_a_changed_trace_is_noticed_and_what_fits_is_kept(
    desk: Desk, other: Desk, traces: tuple[Path, Path], tmp_path: Path
) -> None:
    file = tmp_path / "work" / "p.phasewright"
    saved(desk, traces[0], file)
    traces[0].write_text("0 1\n1 5\n2 0\n")
    other.projects.open(file)
    (sentence,) = other.told
    assert "a.txt is not as it was" in sentence and "21 bytes then" not in sentence
    snapshot = other.bench.snapshot
    assert snapshot.problem is None and snapshot.fit is not None
    assert snapshot.project.phases.breaks == (0.0, 2.0), "the breakpoint at 2.5 s is beyond the end now"
    assert snapshot.project.annotations[0].text == "here"


def test_how_a_trace_was_opened_is_kept(
    desk: Desk, other: Desk, traces: tuple[Path, Path], tmp_path: Path
) -> None:
    """Or else milliseconds would come back as seconds, and nobody knew which trace of an archive it was."""
    archive = tmp_path / "two.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for trace in traces:
            packed.write(trace, f"{trace.stem}/run.csv")
    desk.bench.open(archive, OpenOptions(time_unit="ms", member="b/run.csv", force=True, workers=1))
    desk.projects.save(tmp_path / "kept.phasewright")
    bundle = tmp_path / "kept.zip"
    desk.projects.export_bundle(bundle, lambda _: None, everything(desk))
    for file in (tmp_path / "kept.phasewright", bundle):
        other.projects.open(file)
        shown = other.bench.snapshot
        assert shown.problem is None and shown.run is not None
        assert shown.run.curve.duration == pytest.approx(0.003)
        assert shown.run.curve.level.tolist() == [3.0, 7.0, 4.0]


def test_a_newer_project_is_refused_and_nothing_changes(
    desk: Desk, traces: tuple[Path, Path], tmp_path: Path
) -> None:
    file = tmp_path / "p.phasewright"
    saved(desk, traces[0], file)
    newer = f'"schema": {SCHEMA + 1}'
    file.write_text(file.read_text().replace(f'"schema": {SCHEMA}', newer))
    before = desk.bench.snapshot
    desk.projects.open(file)
    after = desk.bench.snapshot
    assert after.problem is not None and f"newer version (schema {SCHEMA + 1}" in after.problem.sentence
    assert after.run is before.run and len(desk.projects.workspace.runs) == 1


def test_what_another_window_has_saved_is_not_overwritten(
    desk: Desk, other: Desk, traces: tuple[Path, Path], tmp_path: Path
) -> None:
    file = tmp_path / "work" / "p.phasewright"
    saved(desk, traces[0], file)
    other.projects.open(file)
    other.bench.annotate("theirs", 2.0)
    other.projects.save()
    desk.bench.annotate("ours", 3.0)
    with pytest.raises(ProjectError, match="changed by another window"):
        desk.projects.save()
    assert [n.text for n in read_workspace(file).runs[0].project.annotations] == ["here", "theirs"]
    desk.projects.save(tmp_path / "ours.phasewright")
    assert [n.text for n in read_workspace(tmp_path / "ours.phasewright").runs[0].project.annotations] == [
        "here",
        "ours",
    ]
    desk.projects.save(file)
    assert [n.text for n in read_workspace(file).runs[0].project.annotations] == ["here", "ours"]


def test_what_is_saved_elsewhere_while_it_is_opened_is_not_overwritten(
    desk: Desk, other: Desk, traces: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "work" / "p.phasewright"
    saved(desk, traces[0], file)

    def read(path: Path, **more: Any) -> Workspace:
        workspace = read_workspace(path, **more)
        desk.bench.annotate("theirs, meanwhile", 2.0)
        desk.projects.save()
        return workspace

    monkeypatch.setattr("desktop.workbench.keeping.read_workspace", read)
    other.projects.open(file)
    other.bench.annotate("ours", 3.0)
    with pytest.raises(ProjectError, match="changed by another window"):
        other.projects.save()


def test_a_bundle_that_two_windows_open_at_once_is_unpacked_once(
    desk: Desk, other: Desk, traces: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "sent.zip"
    saved(desk, traces[0], tmp_path / "work" / "p.phasewright")
    desk.projects.export_bundle(bundle, lambda _: None, everything(desk))
    unpack = project_file.unpack_bundle

    def meanwhile(*args: Any) -> Path:
        monkeypatch.setattr(project_file, "unpack_bundle", unpack)
        other.projects.open(bundle)
        return unpack(*args)

    monkeypatch.setattr(project_file, "unpack_bundle", meanwhile)
    desk.projects.open(bundle)
    for one in (desk, other):
        assert one.bench.snapshot.problem is None and one.projects.folder is not None
        assert not (one.projects.folder / "unpacked").exists()
    assert desk.projects.folder == other.projects.folder
    assert len(list(desk.projects.folder.parent.iterdir())) == 1


def test_a_bundle_is_opened_in_one_step(
    desk: Desk, other: Desk, traces: tuple[Path, Path], tmp_path: Path
) -> None:
    saved(desk, traces[0], tmp_path / "work" / "p.phasewright")
    desk.projects.add_run(traces[1])
    table = tmp_path / "times.csv"
    table.write_text("p,t\n1,2\n")
    plan = tmp_path / "screen"
    (plan / "runs").mkdir(parents=True)
    (plan / "runs" / "1.txt").write_text("one")
    (plan / DESCRIPTION).write_text("")
    desk.projects.add_files(tables=(table,), experiments=(plan,))
    done: list[Path] = []
    desk.projects.export_bundle(tmp_path / "b.zip", done.append, everything(desk))
    assert done == [tmp_path / "b.zip"] and desk.bench.snapshot.problem is None
    for path in (*traces, table):
        path.unlink()
    other.projects.open(tmp_path / "b.zip")
    assert other.bench.snapshot.problem is None and other.told == [] and other.asked == []
    assert [run.trace.name for run in other.projects.workspace.runs] == ["a.txt", "b.txt"]
    assert other.projects.path is None, "it has no place before it is saved"
    other.projects.show_run(0)
    assert other.bench.snapshot.project.annotations[0].text == "here"
    (kept,) = other.projects.workspace.tables
    assert kept.path is not None and kept.path.read_text() == "p,t\n1,2\n"
    assert (other.projects.workspace.experiments[0].path / "runs" / "1.txt").read_text() == "one"


def test_a_bundle_holds_traces_where_they_are_found(
    desk: Desk, other: Desk, traces: tuple[Path, Path], tmp_path: Path
) -> None:
    file = tmp_path / "p.phasewright"
    saved(desk, traces[0], file)
    desk.projects.add_run(traces[1])
    desk.projects.save()
    (tmp_path / "moved").mkdir()
    traces[0].rename(tmp_path / "moved" / traces[0].name)  # it is not the one that is shown
    other.projects.open(file)
    found: list[Path] = []
    other.projects.find_outside(lambda outside: found.extend(one.path for one in outside))
    assert found == [] and other.bench.snapshot.problem is None
    other.projects.export_bundle(tmp_path / "b.zip", found.append)
    assert found == [tmp_path / "b.zip"] and other.bench.snapshot.problem is None


def test_a_bundle_holds_what_it_names_and_nothing_else(
    desk: Desk, other: Desk, traces: tuple[Path, Path], tmp_path: Path
) -> None:
    """A stranger's project does not make us give a folder away, nor a stranger's bundle look into ours."""
    letters = tmp_path / "letters"
    letters.mkdir()
    (letters / "private.txt").write_text("private")
    desk.bench.open(traces[0])
    desk.projects.add_files(experiments=(letters,), tables=(letters,))
    bundle = tmp_path / "b.zip"
    desk.projects.export_bundle(bundle, lambda _: None, everything(desk))
    with zipfile.ZipFile(bundle) as packed:
        assert not [name for name in packed.namelist() if "private" in name]
        content = json.loads(packed.read(BUNDLED))
    content["tree"]["tables"] = [{"path": "../../../letters/private.txt"}]
    with zipfile.ZipFile(tmp_path / "theirs.zip", "w") as packed:
        packed.writestr(BUNDLED, json.dumps(content))
    other.projects.open(tmp_path / "theirs.zip")
    problem = other.bench.snapshot.problem
    assert problem is not None and "tables[0].path" in problem.sentence
    assert "must be inside of the bundle" in problem.sentence and other.projects.workspace == Workspace()


def everything(desk: Desk) -> frozenset[Path]:
    """All files outside of the project's folder, as if each had been ticked."""
    found: list[tuple[Outside, ...]] = []
    desk.projects.find_outside(found.append)
    return frozenset(one.real for one in found[0])


def names_in(bundle: Path) -> list[str]:
    with zipfile.ZipFile(bundle) as packed:
        return sorted(packed.namelist())


@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
def test_nothing_outside_of_the_project_goes_into_a_bundle_unasked(
    desk: Desk, other: Desk, traces: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project from a stranger names the user's files in every way that there is."""
    home, theirs = tmp_path / "home", tmp_path / "theirs"
    monkeypatch.setenv("HOME", str(home))
    (home / ".ssh").mkdir(parents=True)
    theirs.mkdir()
    secrets = {}
    for name in ("id_rsa", "compared", "linked", "in_plan", "trace"):
        secrets[name] = home / ".ssh" / name
        secrets[name].write_text(f"0 1\n1 5\n{len(name)} 2\n33 0\n")
    (theirs / ".hidden").mkdir()
    (theirs / ".hidden" / "token").write_text("hidden")
    (theirs / "own.csv").write_text("p,t\n1,2\n")
    (theirs / "link.csv").symlink_to(secrets["linked"])
    (theirs / "way").symlink_to(home / ".ssh")
    plan = theirs / "plan"
    plan.mkdir()
    (plan / DESCRIPTION).write_text("")
    (plan / "own.txt").write_text("own")
    (plan / "notes.txt").symlink_to(secrets["in_plan"])
    shutil.copy(traces[0], theirs / "a.txt")
    desk.bench.open(theirs / "a.txt")
    desk.bench.open(theirs / "a.txt")
    desk.projects.add(
        KeptExperiment(plan, compared=(KeptComparison(secrets["compared"]),), trace=secrets["trace"])
    )
    tables = (secrets["id_rsa"], theirs / "link.csv", theirs / "own.csv", theirs / ".hidden" / "token")
    desk.projects.add_files(tables=(*tables, theirs / "way" / "id_rsa"))
    desk.projects.save(theirs / "p.phasewright")

    other.projects.open(theirs / "p.phasewright")
    assert other.bench.snapshot.problem is None
    found: list[tuple[Outside, ...]] = []
    other.projects.find_outside(found.append)
    listed = {one.real: one for one in found[0]}
    assert set(listed) == {*secrets.values(), theirs / ".hidden" / "token"}
    assert {one.kind for one in found[0]} == {"trace", "table", "experiment"}
    assert all(one.size == one.real.stat().st_size for one in found[0])
    assert listed[secrets["linked"]].path == theirs / "link.csv"

    bundle = tmp_path / "b.zip"
    other.projects.export_bundle(bundle, lambda _: None)
    assert other.bench.snapshot.problem is None
    inside = names_in(bundle)
    assert {Path(name).name.split("-", 1)[-1] for name in inside} == {
        "own.txt", DESCRIPTION, "project.phasewright", "a.h5", "own.csv"
    }  # fmt: skip
    with zipfile.ZipFile(bundle) as packed:
        assert not any(b"33 0" in packed.read(name) or packed.read(name) == b"hidden" for name in inside)

    one = frozenset({secrets["id_rsa"]})
    other.projects.export_bundle(bundle, lambda _: None, one)
    added = set(names_in(bundle)) - set(inside)
    assert {name.split("-", 1)[-1] for name in added} == {"id_rsa"}
    desk.projects.open(bundle)
    assert desk.bench.snapshot.problem is None, "what is not there is named and does not stop it"
    assert len(desk.projects.workspace.tables) == 5
    again: list[tuple[Outside, ...]] = []
    desk.projects.find_outside(again.append)
    assert again == [()], "all of a bundle is in its folder"


@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
def test_a_trace_of_which_one_file_is_elsewhere_is_outside(desk: Desk, tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "mine", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    files = sample("otf1", "farm_6")
    for name, data in files.items():
        ((elsewhere if ".events" in name and "2" in name else folder) / name).write_bytes(data)
    for file in elsewhere.iterdir():
        (folder / file.name).symlink_to(file)
    desk.bench.open(folder / "trace.otf")
    desk.projects.save(folder / "p.phasewright")
    found: list[tuple[Outside, ...]] = []
    desk.projects.find_outside(found.append)
    (one,) = found[0]
    assert (one.kind, one.size) == ("trace", sum(map(len, files.values())))
    desk.projects.export_bundle(tmp_path / "b.zip", lambda _: None)
    assert not [name for name in names_in(tmp_path / "b.zip") if name.startswith("stores")]
    desk.projects.export_bundle(tmp_path / "b.zip", lambda _: None, frozenset({one.real}))
    assert [name for name in names_in(tmp_path / "b.zip") if name.startswith("stores")]


def test_a_project_in_the_home_folder_owns_nothing_there(
    desk: Desk, traces: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    table = tmp_path / "letters.csv"
    table.write_text("p,t\n1,2\n")
    desk.bench.open(traces[0])
    desk.projects.add_files(tables=(table,))
    assert everything(desk) == {traces[0].resolve(), table.resolve()}, "it has no folder yet"
    desk.projects.save(tmp_path / "p.phasewright")
    assert everything(desk) == {traces[0].resolve(), table.resolve()}
    monkeypatch.setenv("HOME", str(tmp_path.parent / "nobody"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path.parent / "nobody"))
    assert everything(desk) == set()


def test_a_recovery_that_cannot_be_kept_anew_stays(
    desk: Desk, other: Desk, traces: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    saved(desk, traces[0], tmp_path / "work" / "p.phasewright")
    file, full = tmp_path / "left.phasewright", OSError(28, "No space left on device")
    found = Recovery(desk.projects.workspace, None, 1, 0.0, "", 0.0)
    project_file.write(file, found, project_file.RECOVERY)
    monkeypatch.setattr(project_file, "write", Mock(side_effect=full))
    other.projects.recover(file, found)
    assert file.exists() and "No space left" in str(other.bench.snapshot.problem)
    assert other.projects.workspace.runs == found.workspace.runs, "and the work is there"


def test_recovery_is_tried_again_when_there_is_room(
    desk: Desk, traces: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.bench.open(traces[0])
    desk.bench.annotate("here", 1.0)
    with monkeypatch.context() as patch:
        patch.setattr(project_file, "write", Mock(side_effect=OSError(28, "No space left on device")))
        desk.projects.autosave()
    assert "No space left" in str(desk.bench.snapshot.problem)
    desk.projects.autosave()
    (file,) = recovery_folder().iterdir()
    left = project_file.read(file, Recovery, names(), project_file.RECOVERY)
    assert [note.text for note in left.workspace.runs[0].project.annotations] == ["here"]


@pytest.mark.skipif(not psutil.LINUX, reason="elsewhere the system notes when a process began by the clock")
@pytest.mark.parametrize("remembers", [False, True])
@pytest.mark.parametrize("set_s", [-3600.0, 1.0, 86400.0])
def test_a_session_that_goes_on_has_not_crashed_when_the_clock_is_set(
    desk: Desk, traces: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, set_s: float, remembers: bool
) -> None:
    """`remembers`: psutil up to 7.0, to whose processes the start of the system is added that was asked for
    last."""
    if remembers:
        last = [psutil.boot_time()]
        monkeypatch.setattr(psutil, "boot_time", lambda: last.append(psutil._pslinux.boot_time()) or last[-1])
        monkeypatch.setattr(psutil.Process, "create_time", lambda one: one._proc.create_time(True) + last[-1])
    desk.bench.open(traces[0])
    desk.bench.annotate("here", 1.0)
    desk.projects.autosave()
    assert list(recovery_folder().iterdir()) and recoveries() == []
    booted = psutil.boot_time() + set_s
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: booted)
    assert recoveries() == []


def test_recovery_is_kept_until_saved_or_discarded(
    desk: Desk, traces: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "state" / "phasewright" / "recovery"
    desk.bench.open(traces[0])
    desk.projects.autosave()
    assert not folder.exists(), "nothing has changed"
    desk.bench.annotate("here", 1.0)
    desk.projects.autosave()
    assert len(list(folder.iterdir())) == 1
    assert recoveries() == [], "whoever keeps it is still there"
    desk.projects.save(tmp_path / "p.phasewright")
    assert list(folder.iterdir()) == []
    desk.bench.undo()
    desk.projects.autosave()
    assert len(list(folder.iterdir())) == 1
    desk.projects.close()
    assert list(folder.iterdir()) == []


def test_what_is_kept_now_is_not_overtaken_by_an_autosave(
    desk: Desk, traces: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.bench.open(traces[0])
    desk.bench.annotate("here", 1.0)
    begun, go_on, write = threading.Event(), threading.Event(), project_file.write

    def slowly(*args: Any, **more: Any) -> None:
        begun.set()
        go_on.wait(10)
        write(*args, **more)

    monkeypatch.setattr(project_file, "write", slowly)
    autosave = threading.Thread(target=desk.projects.autosave)
    autosave.start()
    assert begun.wait(10)
    desk.bench.annotate("there", 2.0)
    now = threading.Thread(target=desk.projects.keep_now)
    now.start()
    now.join(0.1)
    go_on.set()
    for thread in (autosave, now):
        thread.join()
    (file,) = recovery_folder().iterdir()
    left = project_file.read(file, Recovery, names(), project_file.RECOVERY)
    assert [note.text for note in left.workspace.runs[0].project.annotations] == ["here", "there"]


def test_a_crashed_session_is_taken_up(other: Desk, traces: tuple[Path, Path], tmp_path: Path) -> None:
    file = tmp_path / "work" / "p.phasewright"
    script = f"""
import os
from pathlib import Path
from tests.workbench.test_keeping import Desk, saved
desk = Desk()
saved(desk, Path({str(traces[0])!r}), Path({str(file)!r}))
desk.bench.annotate("not saved", 3.0)
desk.projects.autosave()
os._exit(1)
"""
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False).returncode == 1
    ((left, found),) = recoveries()
    assert found.of == file and len(read_workspace(file).runs[0].project.annotations) == 1
    other.projects.recover(left, found)
    assert [note.text for note in other.bench.snapshot.project.annotations] == ["here", "not saved"]
    assert other.projects.modified and other.projects.path == file
    assert not left.exists() and recoveries() == []
    other.projects.save()
    assert len(read_workspace(file).runs[0].project.annotations) == 2
    assert len(read_workspace(backup_of(file)).runs[0].project.annotations) == 1


def test_damaged_recoveries_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "1-a.phasewright").write_text("{")
    (tmp_path / "2-b.phasewright").write_text('{"tree": 3}')
    assert recoveries(tmp_path) == [] and len(list(tmp_path.iterdir())) == 2


def killed(
    mode: Literal["save", "autosave"], folder: Path, delay: float, interval: float
) -> list[tuple[str, int, float]]:
    """What the process told before it was killed."""
    forks = multiprocessing.get_context("forkserver")  # which imports the program once
    forks.set_forkserver_preload([saving.__name__])
    hear, tell = forks.Pipe(duplex=False)
    words = mode, folder / "p.phasewright", folder / "r", interval, tell
    process = forks.Process(target=saving.main, args=words)
    process.start()
    tell.close()
    told = [hear.recv()]
    timer = Timer(delay, process.kill)
    timer.start()
    with hear, suppress(EOFError):
        while True:
            told.append(hear.recv())
    timer.join()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    return told


def test_what_was_saved_survives_a_kill_at_any_moment(tmp_path: Path) -> None:
    rng = random.Random(6)
    for number in range(KILLS):
        folder = tmp_path / str(number)
        folder.mkdir()
        told = killed("save", folder, rng.uniform(0.0, 0.4), 0)
        last = max((n for word, n, _ in told if word == "saved"), default=0)
        file = folder / "p.phasewright"
        found = len(read_workspace(file).tables) if file.exists() else 0
        assert last <= found <= last + 1
        if backup_of(file).exists():
            before = len(read_workspace(backup_of(file)).tables)
            assert found - 1 <= before <= found
        else:
            assert found <= 1


def test_autosave_loses_no_more_than_its_interval(tmp_path: Path) -> None:
    rng, interval = random.Random(7), 0.1
    for number in range(KILLS):
        folder = tmp_path / str(number)
        folder.mkdir()
        told = killed("autosave", folder, rng.uniform(0.0, 0.6), interval)
        said = {
            word: [(n, t) for about, n, t in told if about == word] for word in ("edited", "begun", "saved")
        }
        kept = max((n for n, _ in said["saved"]), default=0)
        left = recoveries(folder / "r")
        found = len(left[0][1].workspace.tables) if left else 0
        assert found >= kept, "what was kept is lost"
        # Whatever the machine: lost is what was edited since the last one that has returned was begun, and
        # one is begun as soon as the interval has passed since the one before.
        begun = [t for n, t in said["begun"] if n <= kept]
        assert not begun or all(t >= begun[-1] for n, t in said["edited"] if n > found)
        for (_, a), (_, done), (_, b) in zip(said["begun"], said["saved"], said["begun"][1:], strict=False):
            assert sum(max(a + interval, done) < t < b for _, t in said["edited"]) <= 2


@pytest.mark.parametrize(("later_s", "refused"), [(-1.0, False), (0.0, False), (1.0, True)])
def test_a_recovery_is_saved_over_its_project_unless_that_was_saved_later(
    desk: Desk, other: Desk, traces: tuple[Path, Path], tmp_path: Path, later_s: float, refused: bool
) -> None:
    """Of one time, to the tick of the file system, both are from the session that crashed."""
    file = tmp_path / "work" / "p.phasewright"
    saved(desk, traces[0], file)
    kept = 1e9
    os.utime(file, (kept + later_s, kept + later_s))
    found = Recovery(desk.projects.workspace, file, 1, 0.0, "", kept)
    other.projects.recover(tmp_path / "left.phasewright", found)
    before = len(read_workspace(file).runs[0].project.annotations)
    other.bench.annotate("gone on", 1.0)
    with pytest.raises(ProjectError, match="was changed") if refused else nullcontext():
        other.projects.save()
    assert len(read_workspace(file).runs[0].project.annotations) == before + (not refused)


@pytest.mark.parametrize(("folders", "found"), [(DEPTH, True), (DEPTH + 1, False)])
def test_a_moved_trace_is_looked_for_so_many_folders_deep(tmp_path: Path, folders: int, found: bool) -> None:
    below = tmp_path.joinpath(*(f"f{i}" for i in range(folders)))
    below.mkdir(parents=True)
    (below / "a.txt").write_text("0 1\n")
    trace = TraceId(tmp_path / "gone" / "a.txt", "a.txt", 4, "", "curve", "1")
    assert (find_trace(trace, tmp_path / "p.phasewright") is not None) is found

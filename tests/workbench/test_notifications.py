"""How often panels are told of an edit: once, and once for each answer that comes later."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from desktop.data.classify import Activity
from desktop.errors import StoreError
from desktop.workbench.experimenting import ExperimentBench
from desktop.workbench.keeping import ProjectStore
from desktop.workbench.model import View
from desktop.workbench.modelling import ModelBench
from desktop.workbench.phase_statistics import StatisticsRequest
from desktop.workbench.workbench import Workbench
from tests.inline import Inline

SPT = Path(__file__).parent.parent / "data" / "spt"


class Held:
    """An executor whose work waits until it is told to run."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def submit(self, function: Callable[[], None], /) -> Future[None]:
        self.waiting.append(function)
        return Future()

    def run(self) -> None:
        while self.waiting:
            self.waiting.pop(0)()

    def shutdown(self, wait: bool = True) -> None:
        self.waiting.clear()


class Room:
    """A workbench with its project, panels that watch its statistics, and who counts what they are told."""

    def __init__(self) -> None:
        self.lanes = {name: Held() for name in ("store", "fit", "sweep", "statistics")}
        executors: dict[str, Any] = dict(self.lanes)
        self.bench = Workbench(executors=executors)
        self.bench.settle = 0.0
        self.projects = ProjectStore(
            self.bench, lambda _: None, lambda _: None, lambda: None, executor=Inline(), make_bench=self._make
        )
        self.bench.watch("statistics", frozenset({"ranges", "calls"}))
        self.told = 0
        self.bench.subscribe(lambda old, new: self._count())

    def _make(self, record: Any) -> Any:
        executors: dict[str, Any] = {
            name: Inline() for name in ("files", "plan", "run", "analyse", "trace", "fit", "more")
        }
        kind = ExperimentBench if record.path.name != "times.csv" else ModelBench
        return kind(executors=executors, history=self.bench.history)

    def _count(self) -> None:
        self.told += 1

    def run(self) -> None:
        """Let all work that was asked for be done, and what that asks for."""
        while any(lane.waiting for lane in self.lanes.values()):
            for lane in self.lanes.values():
                lane.run()

    def of(self, act: Callable[[], object]) -> int:
        """How often panels are told by an edit, before any work that it asks for is done."""
        before = self.told
        act()
        return self.told - before


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    for name in ("CACHE", "STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    rng = np.random.default_rng(3)
    level = np.repeat([1.0, 6.0, 3.0], 200) + rng.choice([0.0, 0.5, 1.0], 600)
    rows = [f"{t:.6f} {h:g}" for t, h in zip(np.arange(601) / 200, [*level, 0.0], strict=True)]
    file = tmp_path / "three.txt"
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    made = Room()
    made.bench.open(file)
    made.run()
    assert made.bench.snapshot.statistics.stats and made.bench.snapshot.problem is None
    yield made
    made.projects.close()
    made.bench.close()


def test_one_edit_tells_the_panels_once(room: Room) -> None:
    bench = room.bench
    edits: list[tuple[str, Callable[[], object]]] = [
        ("n", lambda: bench.set_n(7)),
        ("more", lambda: bench.step_n(1)),
        ("model", lambda: bench.set_model("linear")),
        ("add", lambda: bench.add_breakpoint(0.31)),
        ("move", lambda: bench.move_breakpoint(1, 0.32)),
        ("lock", lambda: bench.toggle_lock(1)),
        ("remove", lambda: bench.remove_breakpoint(2)),
        ("refit", bench.refit),
        ("rules", lambda: bench.set_computing(frozenset({Activity.COMPUTING, Activity.IDLE}))),
        ("limit", lambda: bench.limit_to((0.5, 2.5))),
        ("no limit", lambda: bench.limit_to(None)),
        ("annotate", lambda: bench.annotate("here", 1.0)),
        ("hide", lambda: bench.change_annotation(0, hidden=True)),
        ("delete", lambda: bench.remove_annotation(0)),
        ("keep view", lambda: bench.keep_view(1, View(span=(0.0, 1.0)))),
        ("rename region", lambda: bench.name_region("f", "g")),
        ("select", lambda: bench.select((0.5, 1.0))),
        ("phase", lambda: bench.select_phase(1)),
        ("class", lambda: bench.toggle_class("idle")),
        ("drag", lambda: bench.drag_breakpoint(1, 0.4)),
        ("drop", bench.cancel_drag),
        ("scope", lambda: bench.set_scope("run")),
        ("undo", bench.undo),
        ("redo", bench.redo),
    ]
    told = {}
    for name, edit in edits:
        told[name] = room.of(edit)
        room.run()
    assert told == dict.fromkeys(told, 1)


def test_every_answer_tells_them_once_more(room: Room) -> None:
    """Of n at hand only the statistics are still to come: two in all, of which the first says so."""
    bench, lanes = room.bench, room.lanes
    assert room.of(lambda: bench.set_n(9)) == 1
    assert bench.snapshot.statistics.outdated and not bench.snapshot.refining
    assert [name for name, lane in lanes.items() if lane.waiting] == ["statistics"]
    assert room.of(room.run) == 1
    assert not bench.snapshot.statistics.outdated
    # Nobody looks at statistics: one.
    bench.watch("statistics", frozenset())
    assert room.of(lambda: bench.set_n(10)) == 1 and not bench.busy


def test_what_is_done_to_tables_and_experiments_tells_the_panels_of_the_trace_nothing(
    room: Room, tmp_path: Path
) -> None:
    table = tmp_path / "times.csv"
    table.write_text("code,system,p,time\nLU,a,1,10\nLU,a,2,6\nLU,a,4,4\n")
    runs = SPT / "nistir5131_table2_runs.csv"
    assert room.of(lambda: room.projects.add_files(tables=(table,), experiments=(runs,))) == 0
    model, effects = room.projects.bench("tables", 0), room.projects.bench("experiments", 0)
    assert isinstance(model, ModelBench) and isinstance(effects, ExperimentBench)
    assert room.of(lambda: model.set_functions(("1/p",))) == 0
    assert room.of(lambda: effects.set_analysis("halve", half=True)) == 0
    assert room.bench.history.undo_label == "halve"
    assert room.of(room.bench.undo) == 0 and not effects.snapshot.project.analysis.half


def test_opening_tells_of_the_task_and_of_the_trace(room: Room, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("0 1\n1 5\n2 2\n3 6\n4 0\n")
    assert room.of(lambda: room.bench.open(other)) == 1
    seen: list[tuple[bool, bool]] = []
    room.bench.subscribe(lambda old, new: seen.append((new.fit is not None, new.opening is not None)))
    room.lanes["store"].run()
    shown = [one for one in seen if not one[1]]
    assert shown == [(True, False)], "curve, fit and every n in one"
    assert room.of(room.run) == 1, "the statistics"


def test_what_fails_is_tried_again_when_it_is_looked_at_again_and_not_for_ever(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, tried, answer = room.bench, [], StatisticsRequest.answer

    def fail(self: StatisticsRequest, *rest: Any) -> Any:
        tried.append(self)
        if len(tried) < 10:
            raise StoreError("cannot be read", file="three.h5")
        return answer(self, *rest)

    monkeypatch.setattr(StatisticsRequest, "answer", fail)
    bench.set_n(7)
    room.run()
    assert len(tried) == 1 and "cannot be read" in bench.snapshot.statistics.problem
    bench.set_n(6)
    room.run()
    assert len(tried) == 2
    bench.watch("statistics", frozenset())
    bench.watch("statistics", frozenset({"ranges", "calls"}))
    room.run()
    assert len(tried) == 3

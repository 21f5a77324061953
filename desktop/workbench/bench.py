"""Base of all benches: a snapshot, its listeners, and lanes of work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Generic, TypeVar

from desktop.errors import sentence as of_error
from desktop.workbench.history import History
from desktop.workbench.jobs import Deliver, Executor, Job, Lane, Task, at_once

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

S = TypeVar("S", bound="DataclassInstance")
Tree = TypeVar("Tree")
R = TypeVar("R")


def changed(value: S, changes: Mapping[str, object]) -> S:
    """A frozen value with these fields changed: `replace` for field names known only at run time."""
    return replace(value, **changes)


class Bench(Generic[S]):
    """Holds a frozen snapshot of what is to be shown; only its owner's thread reads and changes it."""

    def __init__(
        self, snapshot: S, deliver: Deliver = at_once, executors: dict[str, Executor] | None = None
    ) -> None:
        """`deliver` calls a function in the owner's thread; `executors`: of lanes by their names, a thread
        for each that is not named."""
        self.snapshot = snapshot
        self._deliver, self._executors = deliver, executors or {}
        self._lanes: list[Lane] = []
        self._listeners: list[Callable[[S, S], None]] = []
        self._users = 1

    def _lane(self, name: str, thread: str = "", *, latest: bool = True) -> Lane:
        """A new lane, closed with the bench; `thread`: name of its thread, "" for the lane's."""
        lane = Lane(thread or name, latest=latest, deliver=self._deliver, executor=self._executors.get(name))
        self._lanes.append(lane)
        return lane

    @property
    def busy(self) -> bool:
        """Whether a job is running or waiting."""
        return any(lane.busy for lane in self._lanes)

    def subscribe(self, listener: Callable[[S, S], None]) -> None:
        """Call ``listener(old, new)`` after every change."""
        self._listeners.append(listener)

    def unsubscribe(self, listener: Callable[[S, S], None]) -> None:
        """Do not call it any more; without effect if it is not subscribed."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def share(self) -> None:
        """Count one more user, until its `release`."""
        self._users += 1

    def release(self, listener: Callable[[S, S], None] | None = None) -> None:
        """Count one user less and remove its `listener`; the last one closes the bench."""
        if listener is not None:
            self.unsubscribe(listener)
        self._users -= 1
        if not self._users:
            self.close()

    def close(self) -> None:
        """End all work; listeners are not called any more."""
        self._listeners.clear()
        for lane in self._lanes:
            lane.close()

    def complain(self, problem: str) -> None:
        """Show a problem from outside of the bench."""
        self._show(problem=problem)

    def dismiss_problem(self) -> None:
        self._show(problem="")

    def _show(self, **changes: object) -> None:
        """Publish a snapshot in which these fields differ."""
        self._publish(changed(self.snapshot, changes))

    def _publish(self, snapshot: S) -> None:
        old, self.snapshot = self.snapshot, snapshot
        for listener in tuple(self._listeners):
            if listener in self._listeners:  # an earlier one may have removed it
                listener(old, self.snapshot)


class EditBench(Bench[S], Generic[S, Tree]):
    """A bench whose `project` is a branch of the window's history: its edits are steps of undo."""

    def __init__(
        self,
        snapshot: S,
        project: Tree,
        deliver: Deliver,
        executors: dict[str, Executor] | None,
        history: History | None,
    ) -> None:
        super().__init__(snapshot, deliver, executors)
        self.history = history or History()
        self.branch = self.history.branch(project, self.turn)

    @property
    def project(self) -> Tree:
        """The project as last edited; the snapshot follows when its results are there."""
        return self.branch.value

    def close(self) -> None:
        super().close()
        self.history.forget(self.branch)

    def undo(self) -> None:
        """Take back the last step, wherever in the window it was made."""
        self.history.undo()

    def redo(self) -> None:
        self.history.redo()

    def _edit(self, label: str, project: Tree, key: str | None = None) -> None:
        self.branch.edit(label, project, key)
        self.turn(project)

    def _begin_work(
        self, lane: Lane, title: str, work: Callable[[Job], R], done: Callable[[R], None]
    ) -> None:
        """Work in a lane, shown as a task with its progress until `done` or `_failed` is called."""
        self._show(task=Task(title), problem="")
        lane.submit(title, work, done, self._failed, lambda task: self._show(task=task))

    def _failed(self, error: BaseException) -> None:
        self._show(problem=problem_text(error), task=None)

    def _restart(self, project: Tree) -> None:
        """Another document: nothing of the old one can be undone."""
        self.history.forget(self.branch)
        self.branch = self.history.branch(project, self.turn)

    def turn(self, project: Tree) -> None:
        """Show a project after an edit, undo or redo, and compute what follows from it."""
        raise NotImplementedError


def problem_text(error: BaseException, *expected: type[Exception]) -> str:
    """What went wrong; unexpected errors (none of ours, of `expected`, no ValueError) are called so."""
    text = str(error) if isinstance(error, expected) else of_error(error)
    return text or f"something went wrong ({type(error).__name__}: {error})"

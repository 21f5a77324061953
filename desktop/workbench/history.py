"""One history for all that is edited in a window: a tree of frozen values, and the steps that changed it.

Steps keep the old values, so that undo needs no inverse of an edit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

Tree = TypeVar("Tree")
#: Of any tree: one history holds the steps of branches of several types.
AnyBranch: TypeAlias = "Branch[Any]"
AnyStep: TypeAlias = "HistoryStep[Any]"


@dataclass(frozen=True, eq=False)
class HistoryStep(Generic[Tree]):
    """An edit by its name ("move breakpoint 3"): a branch of the tree, its value before and after."""

    label: str
    key: str | None
    branch: Branch[Tree]
    before: Tree
    after: Tree


class Branch(Generic[Tree]):
    """A branch of the tree, such as what is asked of one run; `value` is what it is now.

    `turn` is called with the value whenever undo or redo has made it another. While it is `parked` (a run
    that is not shown), its steps are left out.
    """

    def __init__(self, history: History, value: Tree, turn: Callable[[Tree], None]) -> None:
        self.value = value
        self.turn = turn
        self.parked = False
        self._history = history

    @property
    def edited(self) -> bool:
        """Whether a step of it can be undone."""
        return bool(self.steps)

    @property
    def steps(self) -> list[HistoryStep[Tree]]:
        """Its steps that can be undone, the last one last."""
        return [step for step in self._history.done if step.branch is self]

    def edit(self, label: str, value: Tree, key: str | None = None) -> None:
        """Go to `value`: one step. Undone steps cannot be redone after that, in any branch.

        Consecutive edits with the same `key` fold into one step, so that a turn of a wheel is undone at once.
        """
        self._history.add(HistoryStep(label, key, self, self.value, value))


class History:
    """The steps of all branches in the order in which they were made: those done, and those undone."""

    def __init__(self) -> None:
        self.done: list[AnyStep] = []
        self._undone: list[AnyStep] = []
        self._sealed = True
        #: called after every change of what can be undone or made again
        self.changed: Callable[[], None] = lambda: None

    def branch(self, value: Tree, turn: Callable[[Tree], None] = lambda _: None) -> Branch[Tree]:
        return Branch(self, value, turn)

    @property
    def undo_label(self) -> str | None:
        """Name of the step that `undo` takes back; None if there is none."""
        return _label(self.done)

    @property
    def redo_label(self) -> str | None:
        return _label(self._undone)

    def add(self, step: AnyStep) -> None:
        last = self.done[-1] if self.done and not self._sealed and not self._undone else None
        if last is not None and step.key is not None and (last.branch, last.key) == (step.branch, step.key):
            self.done[-1] = HistoryStep(step.label, step.key, step.branch, last.before, step.after)
        else:
            self.done.append(step)
        self._undone.clear()
        self._sealed = False
        step.branch.value = step.after
        self.changed()

    def seal(self) -> None:
        """Let the next edit be a step of its own."""
        self._sealed = True

    def undo(self) -> AnyBranch | None:
        """Take back the last step; the branch that it was of. At the beginning nothing happens."""
        return self._turned(self.back())

    def redo(self) -> AnyBranch | None:
        return self._turned(self.forth())

    def back(self, of: AnyBranch | None = None) -> AnyBranch | None:
        """`undo`, of a certain branch if given, without calling its `turn`."""
        return self._move(self.done, self._undone, of)

    def forth(self, of: AnyBranch | None = None) -> AnyBranch | None:
        return self._move(self._undone, self.done, of)

    def forget(self, *branches: AnyBranch, parked: bool = False) -> None:
        """Drop the steps of branches, and of all that are `parked` if asked."""
        for steps in (self.done, self._undone):
            steps[:] = [s for s in steps if s.branch not in branches and not (parked and s.branch.parked)]
        self._sealed = True
        self.changed()

    def _move(self, source: list[AnyStep], to: list[AnyStep], of: AnyBranch | None) -> AnyBranch | None:
        self._sealed = True
        step = _last(source, of)
        if step is None:
            return None
        source.remove(step)
        to.append(step)
        step.branch.value = step.before if source is self.done else step.after
        self.changed()
        return step.branch

    @staticmethod
    def _turned(branch: AnyBranch | None) -> AnyBranch | None:
        if branch is not None:
            branch.turn(branch.value)
        return branch


def _last(steps: list[AnyStep], of: AnyBranch | None = None) -> AnyStep | None:
    visible = (step for step in reversed(steps) if not step.branch.parked)
    return next((step for step in visible if of in (None, step.branch)), None)


def _label(steps: list[AnyStep]) -> str | None:
    step = _last(steps)
    return None if step is None else step.label

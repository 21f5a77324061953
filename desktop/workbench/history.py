"""Undo by keeping the old trees: nothing has to be inverted, so nothing can fail to be."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Generic, TypeVar

Tree = TypeVar("Tree")
#: Numbers of steps in the order in which they are made, in whichever history.
_numbers = count(1)


@dataclass(frozen=True)
class Step(Generic[Tree]):
    """The tree after an edit, and the edit's name ("move break 3"). `number`: when, among all histories."""

    label: str
    key: str | None
    project: Tree
    number: int = 0


class History(Generic[Tree]):
    """A line of steps with a place in it.

    Consecutive edits with the same merge key fold into one step, so that a turn of a wheel is undone
    at once; `seal` ends such a run.
    """

    def __init__(self, project: Tree) -> None:
        self._steps: list[Step[Tree]] = [Step("", None, project)]
        self._at = 0
        self._sealed = True

    @property
    def project(self) -> Tree:
        return self._steps[self._at].project

    @property
    def undo_label(self) -> str | None:
        """Name of the step that `undo` takes back; None if there is none."""
        return self._steps[self._at].label if self._at else None

    @property
    def redo_label(self) -> str | None:
        return self._steps[self._at + 1].label if self._at + 1 < len(self._steps) else None

    @property
    def undo_number(self) -> int:
        """When the step that `undo` takes back was made; 0 if there is none."""
        return self._steps[self._at].number

    @property
    def redo_number(self) -> int | None:
        """When the step that `redo` makes again was made; None if there is none."""
        return self._steps[self._at + 1].number if self._at + 1 < len(self._steps) else None

    def edit(self, label: str, project: Tree, key: str | None = None) -> None:
        """Go to `project`; steps that were undone are forgotten."""
        self.forget_undone()
        last, step = self._steps[self._at], Step(label, key, project, next(_numbers))
        if key is not None and key == last.key and not self._sealed:
            self._steps[self._at] = step
        else:
            self._steps.append(step)
            self._at += 1
        self._sealed = False

    def forget_undone(self) -> None:
        """Nothing can be done again."""
        del self._steps[self._at + 1 :]

    def seal(self) -> None:
        """Let the next edit be a step of its own."""
        self._sealed = True

    def undo(self) -> Tree:
        """One step back; at the beginning the tree stays as it is."""
        self._at = max(0, self._at - 1)
        self._sealed = True
        return self.project

    def redo(self) -> Tree:
        self._at = min(len(self._steps) - 1, self._at + 1)
        self._sealed = True
        return self.project

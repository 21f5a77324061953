"""What all benches are: a snapshot, and those who are told of every new one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from desktop.errors import sentence as of_error
from desktop.workbench.history import History

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

S = TypeVar("S", bound="DataclassInstance")
Tree = TypeVar("Tree")


class Bench(Generic[S]):
    """Holds a frozen snapshot of what is to be shown; only its owner's thread reads and changes it."""

    def __init__(self, snapshot: S) -> None:
        self.snapshot = snapshot
        self._listeners: list[Callable[[S, S], None]] = []
        self._users = 1

    def subscribe(self, listener: Callable[[S, S], None]) -> None:
        """Call ``listener(old, new)`` after every change."""
        self._listeners.append(listener)

    def unsubscribe(self, listener: Callable[[S, S], None]) -> None:
        """Do not call it any more; nothing if it never was."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def share(self) -> None:
        """One more uses it, beside the one that made it, until `release`."""
        self._users += 1

    def release(self, listener: Callable[[S, S], None] | None = None) -> None:
        """One user less, who had subscribed with `listener`; the last one closes it."""
        if listener is not None:
            self.unsubscribe(listener)
        self._users -= 1
        if not self._users:
            self.close()

    def close(self) -> None:
        """Nobody is told of anything any more."""
        self._listeners.clear()

    def _show(self, **changes: Any) -> None:
        """Tell of a snapshot in which these fields differ."""
        self._tell(replace(self.snapshot, **changes))

    def _tell(self, snapshot: S) -> None:
        old, self.snapshot = self.snapshot, snapshot
        for listener in tuple(self._listeners):
            if listener in self._listeners:  # one before it may have taken it away
                listener(old, self.snapshot)


class EditBench(Bench[S], Generic[S, Tree]):
    """A bench with a branch of the window's tree: what is asked, whose edits are steps of the one history."""

    def __init__(self, snapshot: S, asked: Tree, history: History | None) -> None:
        super().__init__(snapshot)
        self.history = history or History()
        self.branch = self.history.branch(asked, self.turn)

    @property
    def asked(self) -> Tree:
        """The tree as it is now."""
        return self.branch.value

    def close(self) -> None:
        super().close()
        self.history.forget(self.branch)

    def undo(self) -> None:
        """Take back the last step, wherever in the window it was made."""
        self.history.undo()

    def redo(self) -> None:
        self.history.redo()

    def _edit(self, label: str, asked: Tree, key: str | None = None) -> None:
        self.branch.edit(label, asked, key)
        self.turn(asked)

    def _restart(self, asked: Tree) -> None:
        """Another document: nothing of the old one can be undone."""
        self.history.forget(self.branch)
        self.branch = self.history.branch(asked, self.turn)

    def turn(self, asked: Tree) -> None:
        """The tree has become another: show it, and what follows from it."""
        raise NotImplementedError


def sentence(error: BaseException, *known: type[Exception]) -> str:
    """What went wrong; errors that nobody foresaw (none of ours, of `known`, no ValueError) are called so."""
    said = str(error) if isinstance(error, known) else of_error(error)
    return said or f"something went wrong ({type(error).__name__}: {error})"

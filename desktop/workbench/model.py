"""What the user has asked for: one frozen tree of plain values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # brings numba, which the window loads only after it is on screen
    from desktop.data.utilization import Rules

#: Classes that can be drawn above each other, in drawing order.
CLASSES = ("computing", "overhead", "io", "idle", "unmeasured")
DEFAULT_MODEL = "mixed"


@dataclass(frozen=True)
class PhaseSettings:
    """The wanted fit.

    `n` counts phases, for the model ``"budget"`` parameters. `locked` are times (s) that have to be
    breaks, sorted. `breaks` (n+1,) in seconds are set by hand and hold until another fit is asked for;
    None lets the algorithm find them.
    """

    model: str = DEFAULT_MODEL
    n: int = 1
    locked: tuple[float, ...] = ()
    breaks: tuple[float, ...] | None = None

    def free(self) -> PhaseSettings:
        """The same without breaks set by hand; locked ones stay."""
        return replace(self, breaks=None)


@dataclass(frozen=True)
class View:
    """What is looked at: of the project, but no step of undo. Times in seconds, `phase` from 0."""

    selection: tuple[float, float] | None = None
    phase: int | None = None
    shown: frozenset[str] = frozenset(CLASSES)


@dataclass(frozen=True)
class Project:
    """Everything the user has asked for about one trace. `rules` None: as the store has it."""

    phases: PhaseSettings = PhaseSettings()
    rules: Rules | None = None
    view: View = View()

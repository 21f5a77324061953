"""The base class of the steps of an experiment, and what they share."""

from __future__ import annotations

import functools
import shlex
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Concatenate, ParamSpec, TypeVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialogButtonBox, QPlainTextEdit, QStackedLayout, QWidget

from desktop.core.units import count
from desktop.data.experiment import Experiment
from desktop.ui.dialogs import Dialog
from desktop.ui.pages import lay_out, quiet, scrolled, set_up
from desktop.ui.tables import FrameView, keyed
from desktop.workbench.experimenting import Errand, ExperimentBench, ExperimentSnapshot

S = TypeVar("S", bound="Step")
A = ParamSpec("A")
R = TypeVar("R")


def described(act: Callable[Concatenate[S, Experiment, A], R]) -> Callable[Concatenate[S, A], R | None]:
    """Decorates a method of a step that gets the experiment as its first argument: it is not called, and the
    result is None, while there is none; fields report the end of editing also when it is closed."""

    @functools.wraps(act)
    def call(step: S, /, *args: A.args, **kwargs: A.kwargs) -> R | None:
        experiment = step.bench.snapshot.project.experiment
        return None if experiment is None else act(step, experiment, *args, **kwargs)

    return call


class StepContent(QWidget):
    """Scrolls only where it cannot be smaller; Qt would do so where it would like to be larger."""

    def heightForWidth(self, width: int) -> int:
        layout = self.layout()
        return -1 if layout is None else layout.minimumHeightForWidth(width)


class Step(QWidget):
    """A step: its content, or a sentence on why there is none and what to do."""

    title = ""

    def __init__(self, bench: ExperimentBench) -> None:
        super().__init__()
        self.bench = bench
        self.content = StepContent()
        self._why = quiet(alignment=Qt.AlignmentFlag.AlignCenter, contentsMargins=(40, 40, 40, 40))
        self._stack = set_up(QStackedLayout(self), contentsMargins=(0, 0, 0, 0))
        # A window that is smaller than the content scrolls it.
        self._stack.addWidget(scrolled(self.content))
        self._stack.addWidget(self._why)

    def set_empty(self, why: str) -> None:
        """Say why there is nothing; "" shows the content."""
        self._why.setText(why)
        self._stack.setCurrentIndex(1 if why else 0)

    @abstractmethod
    def show_snapshot(self, old: ExperimentSnapshot, new: ExperimentSnapshot) -> None:
        """Draw what differs."""


def let_toggle(table: FrameView, toggle: Callable[[str], None]) -> None:
    """Take terms out of the model, or put them back, by the boxes of a table of effects, Space or Del."""
    table.frames.toggled.connect(lambda term, _: toggle(term))
    keyed(table, "In the model", "Del", "Space", act=lambda: toggle(table.key))


def command_list(name: str, commands: Sequence[str] = ()) -> QPlainTextEdit:
    """Commands to be read, one a line."""
    unwrapped = QPlainTextEdit.LineWrapMode.NoWrap
    text = "\n".join(commands)
    return set_up(QPlainTextEdit(text), readOnly=True, accessibleName=name, lineWrapMode=unwrapped)


class ErrandDialog(Dialog):
    """Shows what an errand is for (`text`) and its commands, which are run when it is accepted."""

    def __init__(
        self, parent: QWidget, bench: ExperimentBench, errand: Errand[R], title: str, text: str
    ) -> None:
        super().__init__(parent, title=title)
        experiment = bench.snapshot.project.experiment
        folder = "" if experiment is None else str(experiment.folder)
        listed = command_list("Commands that are run", errand.commands)
        buttons = self.ending("I have read them, &run")
        buttons.buttons()[0].setObjectName("run_errand")
        buttons.button(QDialogButtonBox.StandardButton.Cancel).setDefault(True)
        heading = quiet(f"Up to {count(len(errand.commands), 'command')} in {folder}:")
        lay_out(self, quiet(text), heading, (listed, 1), buttons)
        self.resize(720, 440)
        self.accepted.connect(lambda: bench.run_errand(errand))


def shown_words(words: Sequence[str], shell: bool) -> str:
    """A command as it would be typed; placeholders stay readable."""
    if shell:
        return " ".join(words)
    return " ".join(w if w.startswith("{") and w.endswith("}") else shlex.quote(w) for w in words)


def typed_words(text: str, shell: bool) -> tuple[str, ...]:
    """The words of a typed command.

    Raises
    ------
    ValueError : a quotation mark is not closed.
    """
    if shell:
        return (text,) if text.strip() else ()
    try:
        return tuple(shlex.split(text))
    except ValueError:
        raise ValueError(f"{text!r} has a quotation mark that is not closed") from None

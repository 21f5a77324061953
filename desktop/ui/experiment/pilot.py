"""What a pilot or a confirmation runs, for the user to read before it does."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtWidgets import QDialogButtonBox, QVBoxLayout, QWidget

from desktop.core.units import count
from desktop.data.confirm import CONFIRMATION, RUNS
from desktop.data.pilot import PILOT, SIZES, STEP
from desktop.ui.dialogs import Dialog
from desktop.ui.experiment.parts import command_list
from desktop.ui.pages import fill_layout, quiet
from desktop.workbench.experimenting import ExperimentSnapshot


class CommandsDialog(Dialog):
    """Accepted: the user has read what it is for, has seen `commands` and wants them run."""

    def __init__(
        self, parent: QWidget, shown: ExperimentSnapshot, commands: tuple[str, ...], title: str, text: str
    ) -> None:
        super().__init__(parent, title=title)
        experiment = shown.project.experiment
        folder = "" if experiment is None else str(experiment.folder)
        listed = command_list("Commands that are run", commands)
        buttons = self.ending("I have read them, &run")
        buttons.buttons()[0].setObjectName("run_pilot")
        buttons.button(QDialogButtonBox.StandardButton.Cancel).setDefault(True)
        where = quiet(f"Up to {count(len(commands), 'command')} in {folder}:")
        fill_layout(QVBoxLayout(self), quiet(text), where, (listed, 1), buttons)
        self.resize(720, 440)


class PilotDialog(CommandsDialog):
    """Before a pilot."""

    def __init__(self, parent: QWidget, shown: ExperimentSnapshot, commands: tuple[str, ...]) -> None:
        super().__init__(
            parent, shown, commands, "Pilot",
            f"The pilot delays one place at a time, {STEP} times as long in every round, {SIZES} rounds "
            "at most; a place that shows is left out of the next. It ends when all show. Its runs go to "
            f"{PILOT} and not to the trials; stopped, it goes on from there when it is run again.",
        )  # fmt: skip


class ConfirmDialog(CommandsDialog):
    """Before runs that confirm the effects of the factors `names`."""

    def __init__(
        self, parent: QWidget, shown: ExperimentSnapshot, commands: tuple[str, ...], names: Sequence[str]
    ) -> None:
        super().__init__(
            parent, shown, commands, "Confirm",
            f"{' and '.join(names)} alone and the program as it is are run {RUNS} times each, in turn and in "
            f"random order; the runs go to {CONFIRMATION} and not to the trials. The verdict says whether "
            "they agree with the effects.",
        )  # fmt: skip

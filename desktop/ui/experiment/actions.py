"""All that the window of experiments can be told to do; menus, keys and the key list follow from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from desktop.ui.settings import TEXT_SIZES, ThemeChoice
from desktop.workbench.experimenting import ExperimentSnapshot

if TYPE_CHECKING:
    from desktop.ui.experiment_window import ExperimentWindow

STEPS = ("Program", "Design", "Run", "Read", "Compare")


def _always(_: ExperimentSnapshot) -> bool:
    return True


def _described(shown: ExperimentSnapshot) -> bool:
    return shown.project.experiment is not None


def _something(shown: ExperimentSnapshot) -> bool:
    return _described(shown) or shown.project.imported is not None


def _ready(shown: ExperimentSnapshot) -> bool:
    return _described(shown) and shown.consented and shown.running == "idle"


def _read(shown: ExperimentSnapshot) -> bool:
    return shown.effects is not None


@dataclass(frozen=True)
class ExperimentCommand:
    """One row: `menu` as ``"View"`` or ``"View/Theme"``; `mark`: is it checked; `rule`: a line above it."""

    id: str
    text: str
    menu: str
    tip: str
    run: Callable[[ExperimentWindow], object]
    keys: tuple[str, ...] = ()
    enabled: Callable[[ExperimentSnapshot], bool] = _always
    mark: Callable[[ExperimentWindow], bool] | None = None
    rule: bool = False


def _theme(choice: ThemeChoice, text: str, tip: str) -> ExperimentCommand:
    return ExperimentCommand(
        f"theme_{choice}", text, "View/Theme", tip, lambda w: w.choose_theme(choice),
        mark=lambda w: w.settings.theme == choice,
    )  # fmt: skip


def _text_size(percent: int) -> ExperimentCommand:
    return ExperimentCommand(
        f"text_{percent}", f"{percent} %", "View/Text size", f"Text at {percent} % of its usual size",
        lambda w: w.choose_text_size(percent), mark=lambda w: w.settings.text_size == percent,
    )  # fmt: skip


def _step(number: int, name: str) -> ExperimentCommand:
    return ExperimentCommand(
        f"step_{number + 1}", f"Step {number + 1}: {name}", "View", f"Show the step {name.lower()}",
        lambda w: w.show_step(number), (f"Ctrl+{number + 1}",), _something,
        lambda w: w.steps.currentIndex() == number,
    )  # fmt: skip


EXPERIMENT_COMMANDS: tuple[ExperimentCommand, ...] = (
    ExperimentCommand("new", "New experiment…", "File", "Describe the program in a folder of sources",
                      lambda w: w.choose_new(), ("Ctrl+N",)),
    ExperimentCommand("open", "Open experiment…", "File", "Open the folder of an experiment; nothing runs",
                      lambda w: w.choose_experiment(), ("Ctrl+O",)),
    ExperimentCommand("open_runs", "Open table of runs…", "File", "Read trials that were run elsewhere",
                      lambda w: w.choose_runs(), ("Ctrl+Shift+O",)),
    ExperimentCommand("example", "Copy the bundled example…", "File",
                      "A parallel quicksort in C with six places, copied to a folder of yours",
                      lambda w: w.choose_example()),
    ExperimentCommand("save", "Save", "File", "Write experiment.toml",
                      lambda w: w.bench.save(), ("Ctrl+S",), _described, rule=True),
    ExperimentCommand("close", "Close", "File", "Close this window",
                      lambda w: w.close(), ("Ctrl+W",), rule=True),
    ExperimentCommand("undo", "Undo", "Edit", "Take back the last change",
                      lambda w: w.bench.undo(), ("Ctrl+Z",), lambda s: s.undo is not None),
    ExperimentCommand("redo", "Redo", "Edit", "Do again what was taken back",
                      lambda w: w.bench.redo(), ("Ctrl+Shift+Z", "Ctrl+Y"), lambda s: s.redo is not None),
    ExperimentCommand("copy_picture", "Copy chart", "Edit", "Copy the chart that has the focus",
                      lambda w: w.copy_picture(), ("Ctrl+Shift+C",), _read, rule=True),
    ExperimentCommand("copy_table", "Copy effect table", "Edit", "With headings, for a spreadsheet",
                      lambda w: w.copy_effects(), ("Ctrl+Alt+C",), _read),
    *(_step(number, name) for number, name in enumerate(STEPS)),
    ExperimentCommand("half", "Half effects", "View", "Show the model's coefficients instead of full effects",
                      lambda w: w.toggle_half(), ("H",), _something,
                      lambda w: w.bench.snapshot.project.analysis.half, rule=True),
    ExperimentCommand("nothing", "Select nothing", "View", "Mark no effect",
                      lambda w: w.bench.select(""), ("Esc",), _something),
    _theme("light", "Light", "Dark on light"),
    _theme("dark", "Dark", "Light on dark"),
    _theme("system", "As the system", "Follow the desktop's light or dark setting"),
    *(_text_size(percent) for percent in TEXT_SIZES),
    ExperimentCommand("check", "Check and estimate", "Run", "Build and run the base and everything on",
                      lambda w: w.bench.check(), ("F7",), _ready),
    ExperimentCommand("run", "Run", "Run", "All trials that are not done yet",
                      lambda w: w.bench.run(), ("F5",), _ready),
    ExperimentCommand("pause", "Pause or go on", "Run", "Wait after the trial that is running",
                      lambda w: w.pause_or_go_on(), ("F6",), lambda s: s.running in ("running", "paused")),
    ExperimentCommand("stop", "Stop after this trial", "Run", "What is done is kept",
                      lambda w: w.bench.stop(), ("Shift+F5",), lambda s: s.running in ("running", "paused")),
    ExperimentCommand("stop_now", "Stop at once", "Run", "The trial that is running is dropped",
                      lambda w: w.bench.stop(at_once=True), (), lambda s: s.running != "idle"),
    ExperimentCommand("all_terms", "All terms", "Model", "Take every term back into the model",
                      lambda w: w.bench.set_analysis("all terms", terms=None), (),
                      lambda s: s.project.analysis.terms is not None),
    ExperimentCommand("marked_terms", "Only what stands out", "Model",
                      "Keep the terms that are marked, and their main effects",
                      lambda w: w.keep_marked(), (), _read),
    ExperimentCommand("pin", "Pin to a trace…", "Model", "In which phases of a trace its routine runs",
                      lambda w: w.choose_trace(), (), _read, rule=True),
    ExperimentCommand("guide", "Guide to experiments", "Help", "How to instrument, design, run and read",
                      lambda w: w.show_guide(), ("F1",)),
)  # fmt: skip
EXPERIMENT_MENUS = ("File", "Edit", "View", "Run", "Model", "Help")

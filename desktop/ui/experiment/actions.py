"""The commands of the page of experiments; menus, keys and the key list follow from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from desktop.ui import commands
from desktop.ui.commands import When, with_common
from desktop.workbench.experimenting import ExperimentSnapshot

if TYPE_CHECKING:
    from desktop.ui.experiment_page import ExperimentPage

ExperimentCommand: TypeAlias = commands.Command["ExperimentPage", ExperimentSnapshot]

STEPS = ("Program", "Design", "Run", "Read", "Compare")


def _is_described(snapshot: ExperimentSnapshot) -> bool:
    return snapshot.project.experiment is not None


def _is_something(snapshot: ExperimentSnapshot) -> bool:
    return _is_described(snapshot) or snapshot.project.imported is not None


def _is_ready(snapshot: ExperimentSnapshot) -> bool:
    return _is_described(snapshot) and snapshot.consented and snapshot.running == "idle"


_described = When(_is_described, "the description of an experiment")
_something = When(_is_something, "an experiment or a table of runs")
_ready = When(_is_ready, "an experiment whose commands you have agreed to, without running trials")
_idle = When[ExperimentSnapshot](
    lambda s: _is_described(s) and s.running == "idle", "an experiment without running trials"
)
_under_way = When[ExperimentSnapshot](lambda s: s.running in ("running", "paused"), "running trials")
_running = When[ExperimentSnapshot](lambda s: s.running != "idle", "a running task")
_read = When[ExperimentSnapshot](lambda s: s.effects is not None, "responses of enough trials")
_read_idle = When[ExperimentSnapshot](
    lambda s: _is_described(s) and s.running == "idle" and s.answer is not None and bool(s.answer.named),
    "an experiment that names an effect, without running trials",
)
_reduced = When[ExperimentSnapshot](
    lambda s: s.project.analysis.terms is not None, "a model without some of its terms"
)


def _step(number: int, name: str) -> ExperimentCommand:
    return ExperimentCommand(
        f"step_{number + 1}", f"Step {number + 1}: {name}", "View", f"Show the step {name.lower()}",
        lambda w: w.show_step(number), (f"Ctrl+{number + 1}",), _something,
        lambda w: w.steps.currentIndex() == number,
    )  # fmt: skip


EXPERIMENT_COMMANDS: tuple[ExperimentCommand, ...] = with_common((
    ExperimentCommand("new", "New experiment…", "File", "Delay places in a copy of your program",
                      lambda w: w.choose_new(), ("Ctrl+N",)),
    ExperimentCommand("open", "Open experiment…", "File", "Open the folder of an experiment; nothing runs",
                      lambda w: w.choose_experiment(), ("Ctrl+O",)),
    ExperimentCommand("open_runs", "Open table of runs…", "File", "Open trials that were run elsewhere",
                      lambda w: w.choose_runs(), ("Ctrl+Shift+O",)),
    ExperimentCommand("paste_runs", "Paste table of runs…", "File",
                      "Open a table from the clipboard and keep it in a file",
                      lambda w: w.choose_paste(), ("Ctrl+Shift+V",)),
    ExperimentCommand("example", "Copy the bundled example…", "File",
                      "Copy a parallel quicksort in C with six places to a folder",
                      lambda w: w.choose_example()),
    ExperimentCommand("save", "Save", "File", "Write experiment.toml",
                      lambda w: w.bench.save(), ("Ctrl+S",), _described, rule=True),
    ExperimentCommand("report", "Report…", "File", "Write a report on the experiment as HTML, PDF or slides",
                      lambda w: w.choose_report(), (), _read),
    ExperimentCommand("to_project", "Add to project…", "File",
                      "Keep the experiment and its analysis in a project",
                      lambda w: w.frame.keep_in_project(w), ("Ctrl+Alt+S",), _something),
    ExperimentCommand("new_window", "New window", "File", "Open a window for a trace",
                      lambda w: w.frame.new_window(), ("Ctrl+Shift+N",), rule=True),
    ExperimentCommand("copy_picture", "Copy chart", "Edit", "Copy the chart that has the focus",
                      lambda w: w.copy_picture(), ("Ctrl+Shift+C",), _read, rule=True),
    ExperimentCommand("copy_table", "Copy effect table", "Edit",
                      "Copy the table with headings, for a spreadsheet",
                      lambda w: w.copy_effects(), ("Ctrl+Alt+C",), _read),
    *(_step(number, name) for number, name in enumerate(STEPS)),
    ExperimentCommand("half", "Coefficients (half effects)", "View", "Show the model's coefficients",
                      lambda w: w.toggle_half(), ("H",), _something,
                      lambda w: w.bench.snapshot.project.analysis.half, rule=True),
    ExperimentCommand("nothing", "Clear selection", "View", "Unmark the effect",
                      lambda w: w.bench.select(""), ("Esc",), _something),
    ExperimentCommand("check", "Check and estimate", "Run",
                      "Build and run it without delays and with all of them",
                      lambda w: w.bench.check(), ("F7",), _ready),
    ExperimentCommand("pilot", "Pilot…", "Run", "Find the size of the delay for one place at a time",
                      lambda w: w.ask_pilot(), ("Shift+F7",), _idle),
    ExperimentCommand("confirm", "Confirm…", "Run", "Run the largest effect alone and the unchanged program",
                      lambda w: w.ask_confirmation(), (), _read_idle),
    ExperimentCommand("run", "Run", "Run", "Run all remaining trials",
                      lambda w: w.bench.run(), ("F5",), _ready),
    ExperimentCommand("pause", "Pause or continue", "Run", "Pause after the running trial",
                      lambda w: w.bench.pause_or_go_on(), ("F6",), _under_way),
    ExperimentCommand("stop", "Stop after this trial", "Run", "Keep the finished trials",
                      lambda w: w.bench.stop(), ("Shift+F5",), _under_way),
    ExperimentCommand("stop_now", "Stop at once", "Run", "Discard the running trial",
                      lambda w: w.bench.stop(at_once=True), (), _running),
    ExperimentCommand("all_terms", "All terms", "Model", "Put every term back into the model",
                      lambda w: w.bench.set_analysis("all terms", terms=None), (), _reduced),
    ExperimentCommand("marked_terms", "Only marked terms", "Model",
                      "Keep the marked terms and their main effects",
                      lambda w: w.keep_marked(), (), _read),
    ExperimentCommand("pin", "Pin to a trace…", "Model", "Show in which phases of a trace its routine runs",
                      lambda w: w.choose_trace(), (), _read, rule=True),
))  # fmt: skip
EXPERIMENT_MENUS = ("File", "Edit", "View", "Run", "Model", "Help")
#: Gestures, listed beside the keys.
EXPERIMENT_MOUSE: tuple[tuple[str, str], ...] = (
    ("Click a bar or a point", "Mark the effect everywhere"),
    ("Ctrl+click on a bar or point", "Remove the term from the model"),
    ("Drop files on step 5", "Add tables to compare with"),
)

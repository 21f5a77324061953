"""The commands of the page of traces; menus, toolbar, keys and the key list follow from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from desktop.core import bases
from desktop.core.labels import ACTIVITIES, MODELS
from desktop.ui import commands
from desktop.ui.commands import When, moves, with_common
from desktop.workbench.model import VIEWS
from desktop.workbench.workbench import Snapshot

if TYPE_CHECKING:
    from desktop.ui.trace_page import TracePage

Command: TypeAlias = commands.Command["TracePage", Snapshot]

#: Curves that need no name, as `desktop.data.curves` has them, which the window loads after it is on screen.
PLAIN_CURVES = {
    "computing": "Processors computing",
    "overhead": "Processors in overhead",
    "idle": "Processors idle",
    "io": "Processors in I/O",
    "communication": "Processors in communication",
    "accelerators": "Accelerator streams busy",
    "messages": "Messages in flight",
    "bytes": "Bytes in flight",
}
MODEL_TIPS = {
    "constant": "Each phase is a level",
    "linear": "Each phase is a straight line",
    "quadratic": "Each phase is a parabola",
    "mixed": "Each phase is as simple as it can be; n counts phases",
    "budget": "As mixed, with one best answer; n counts parameters: 2, 3, 4 per level, line, parabola",
} | {space.model: space.tip for space in bases.TABLE}


def _breakpoint_selected(snapshot: Snapshot) -> bool:
    phase = snapshot.project.view.phase
    return phase is not None and phase < len(snapshot.rows) - 1


def _range_selected(snapshot: Snapshot) -> bool:
    view = snapshot.project.view
    return snapshot.run is not None and (view.selection is not None or view.phase is not None)


_document = When[Snapshot](lambda s: s.run is not None, "an open trace")
_fitted = When[Snapshot](lambda s: s.fit is not None, "an open trace with phases")
#: While the curve comes from another machine, a coarse one is shown, of which nothing is saved.
_exact = When[Snapshot](
    lambda s: s.fit is not None and s.run is not None and not s.run.coarse,
    "the exact curve of an open trace, with phases",
)
_coarse = When[Snapshot](lambda s: s.run is not None and s.run.coarse, "a coarse curve from another machine")
_selected = When(_range_selected, "a selected range or phase")
#: The selected phase ends at an inner breakpoint.
_on_breakpoint = When(_breakpoint_selected, "a selected phase that is not the last one")
_by_hand = When[Snapshot](lambda s: s.project.phases.breaks is not None, "breakpoints set by hand")
_limited = When[Snapshot](lambda s: s.project.limit is not None, "a limited analysis")
_suggested = When[Snapshot](lambda s: s.suggestion is not None, "a trace whose fits for every n are ready")


def _pointer(mode: str, text: str, tip: str) -> Command:
    return Command(
        f"mode_{mode}", text, "View", tip, lambda w: w.set_mode(mode), enabled=_document,
        mark=lambda w: w.mode == mode, icon=mode,
    )  # fmt: skip


def _class_drawn(name: str, title: str, key: str, rule: bool) -> Command:
    return Command(
        f"show_{name}",
        f"{title} processors",
        "View",
        f"Show or hide the processors in the class {title.lower()}",
        lambda w: w.workbench.toggle_class(name),
        (key,),
        When[Snapshot](
            lambda s: s.run is not None and name in s.run.stack, f"a trace with {title.lower()} processors"
        ),
        mark=lambda w: name in w.workbench.snapshot.project.view.shown,
        rule=rule,
    )


def _model(model: str, rule: bool) -> Command:
    return Command(
        f"model_{model}", f"{MODELS[model]} phases", "Analyse", MODEL_TIPS[model],
        lambda w: w.workbench.set_model(model), enabled=_document, rule=rule,
        mark=lambda w: w.workbench.snapshot.project.phases.model == model,
    )  # fmt: skip


def _has_curve(snapshot: Snapshot, curve: str) -> bool:
    document = snapshot.document
    return document is not None and any(one["curve"] == curve for one in document.info["curves"])


def _curve(kind: str, title: str, rule: bool) -> Command:
    return Command(
        f"curve_{kind}",
        title,
        "Analyse/Curve",
        f"Fit the phases to the curve of {title[:1].lower()}{title[1:]}",
        lambda w: w.workbench.set_curve(kind),
        enabled=When[Snapshot](lambda s: _has_curve(s, kind), f"a trace with {title[:1].lower()}{title[1:]}"),
        mark=lambda w: w.workbench.snapshot.project.curve == kind,
        rule=rule,
    )


def _view(number: int) -> Command:
    return Command(
        f"view_{number}", f"View {number}", "View/Kept views",
        f"Return to kept view {number}",
        lambda w: w.desk.show_view(number), (str(number),), _document,
    )  # fmt: skip


def _keep(number: int) -> Command:
    return Command(
        f"keep_view_{number}", f"Keep as view {number}", "View/Kept views",
        f"Keep the current view as view {number}",
        lambda w: w.desk.keep_view(number), (f"Ctrl+{number}",), _document, rule=number == 1,
    )  # fmt: skip


COMMANDS: tuple[Command, ...] = with_common((
    Command("open", "Open…", "File", "Open a trace, a curve or an imported file",
            lambda w: w.choose_file(), ("Ctrl+O",), icon="open"),
    Command("open_folder", "Open folder…", "File", "Open a trace that is a folder of files",
            lambda w: w.choose_folder(), ("Ctrl+Shift+O",)),
    Command("open_with", "Open with options…", "File",
            "Choose the format and the unit of time, or import on a cluster",
            lambda w: w.choose_with_options(), ("Ctrl+Alt+O",)),
    Command("open_remote", "Open remote…", "File", "Open a trace on another machine, over ssh",
            lambda w: w.choose_remote(), ("Ctrl+Alt+R",)),
    Command("export_figure", "Export figure…", "File", "Save a plot as PNG, SVG or PDF at a size in mm",
            lambda w: w.export_figure(), ("Ctrl+E",), _exact, rule=True),
    Command("report", "Report…", "File", "Write a report on the run and its phases as HTML, PDF or slides",
            lambda w: w.make_report(), ("Ctrl+R",), _exact),
    Command("save", "Save project", "File", "Save traces, fits, views and annotations as a project",
            lambda w: w.desk.save(), ("Ctrl+S",), rule=True),
    Command("save_as", "Save project as…", "File", "Save the project under another name",
            lambda w: w.desk.save_as(), ("Ctrl+Shift+S",)),
    Command("add_run", "Add trace to project…", "File", "Add another run to this project",
            lambda w: w.desk.add_run()),
    Command("add_files", "Add experiment or table to project…", "File",
            "Add experiments and tables of run times to this project",
            lambda w: w.desk.add_files()),
    Command("export_bundle", "Export bundle…", "File", "Pack the project and its traces into one file",
            lambda w: w.desk.export_bundle()),
    Command("save_part", "Save selection as new trace…", "File",
            "Save the selected range or phase, of all or some ranks, as a trace",
            lambda w: w.desk.save_part(), (), _selected),
    Command("export_trace", "Export trace…", "File",
            "Write the whole trace as an OTF2 archive or a Paraver trace",
            lambda w: w.desk.export_trace(), (), _document),
    Command("copy_picture", "Copy picture", "Edit", "Copy curve and timeline, or the picture in focus",
            lambda w: w.copy_picture(), ("Ctrl+Shift+C",), _document, icon="copy", rule=True),
    Command("copy_table", "Copy phase table", "Edit", "Copy all phases with their headers, for a spreadsheet",
            lambda w: w.copy_table(), ("Ctrl+Alt+C",), _exact),
    Command("find", "Find region…", "Edit", "Find where a region is entered, in the timeline",
            lambda w: w.find_region(), ("Ctrl+F",), _document, rule=True),
    Command("find_next", "Find next", "Edit", "Go to the next time the region is entered",
            lambda w: w.find_next(), ("F3",), _document),
    Command("find_previous", "Find previous", "Edit", "Go to the previous time the region is entered",
            lambda w: w.find_next(False), ("Shift+F3",), _document),
    _pointer("select", "Select", "Drag selects a range of time"),
    _pointer("pan", "Pan", "Drag moves the view"),
    _pointer("zoom", "Zoom", "Drag zooms to a range of time"),
    *moves(lambda w: w.curve_view, _document, arrows=True),
    Command("zoom_selection", "Zoom to selection", "View", "Show only the selected range or phase",
            lambda w: w.zoom_to_selection(), ("Z", "F"), _selected, icon="fit"),
    Command("show_all", "Whole run", "View", "Show the run from beginning to end",
            lambda w: w.curve_view.show_all(), ("Home", "Ctrl+0"), _document, icon="all"),
    Command("back", "Back", "View", "Return to the previous view",
            lambda w: w.curve_view.back(), ("Alt+Left", "Backspace"), _document, icon="back"),
    Command("forward", "Next view", "View", "Return to the next view",
            lambda w: w.curve_view.forward(), ("Alt+Right",), _document, icon="forward"),
    Command("timeline", "Timeline", "View", "Show the activity of every location over time, below the curve",
            lambda w: w.set_timeline_shown(not w.settings.timeline_shown), ("T",), _document,
            mark=lambda w: w.settings.timeline_shown),
    Command("messages", "Messages", "View", "Show or hide messages in the timeline",
            lambda w: w.timeline.show_messages(not w.timeline.message_filter.shown), ("M",), _document,
            mark=lambda w: w.timeline.message_filter.shown),
    Command("critical_path", "Critical path", "View",
            "Draw in the timeline the chain of work and messages that decides how long the run takes",
            lambda w: w.show_critical_path(not w.timeline.view.path_shown), (), _document,
            mark=lambda w: w.timeline.view.path_shown),
    Command("residual", "Residual before overview", "View",
            "Show the residual instead of the overview in a low window",
            lambda w: w.curve_view.set_residual_first(not w.curve_view.residual_first), (), _document,
            mark=lambda w: w.curve_view.residual_first),
    Command("percent", "Percent of all processors", "View", "Show a second scale on the right",
            lambda w: w.set_percent(not w.percent), ("P",), _document, mark=lambda w: w.percent),
    Command("levels_in", "Zoom levels in", "View/Levels", "Show half the range of processors",
            lambda w: w.curve_view.zoom_levels(2.0), ("Shift+Up",), _document),
    Command("levels_out", "Zoom levels out", "View/Levels", "Show twice the range of processors",
            lambda w: w.curve_view.zoom_levels(0.5), ("Shift+Down",), _document),
    Command("levels_up", "Higher levels", "View/Levels", "Move up by a quarter of the range",
            lambda w: w.curve_view.move_levels(0.25), ("Ctrl+Shift+Up",), _document),
    Command("levels_down", "Lower levels", "View/Levels", "Move down by a quarter of the range",
            lambda w: w.curve_view.move_levels(-0.25), ("Ctrl+Shift+Down",), _document),
    Command("levels_fit", "Fit levels to the visible part", "View/Levels",
            "Fit the vertical range to the visible part of the curve",
            lambda w: w.curve_view.fit_levels(), ("V",), _document, rule=True,
            mark=lambda w: w.curve_view.levels.mode == "fit"),
    Command("levels_reset", "Reset levels", "View/Levels",
            "Show all processors, or only what the curve needs if it stays below a tenth of them",
            lambda w: w.curve_view.reset_levels(), ("Shift+V",), _document,
            mark=lambda w: w.curve_view.levels.mode == "start"),
    Command("vertical_locked", "Lock vertical range", "View/Levels", "Always show 0 to all processors",
            lambda w: w.set_vertical_locked(not w.vertical_locked), (), _document,
            mark=lambda w: w.vertical_locked),
    Command("levels_log", "Logarithmic levels", "View/Levels", "Use a logarithmic vertical axis",
            lambda w: w.curve_view.set_logarithmic(not w.curve_view.levels.log), ("G",), _document,
            mark=lambda w: w.curve_view.levels.log, rule=True),
    Command("present", "Presentation", "View", "Show the curve on the whole screen, for an audience",
            lambda w: w.present(), ("F11",), _fitted, mark=lambda w: w.presentation is not None),
    *(_class_drawn(name, title, f"Alt+{k}", k == 1) for k, (name, title) in enumerate(ACTIVITIES.items(), 1)),
    *(_view(k) for k in range(1, VIEWS + 1)),
    *(_keep(k) for k in range(1, VIEWS + 1)),
    Command("next_trace", "Next trace", "View/Pages", "Show the next open trace of the project",
            lambda w: w.step_run(1), ("Ctrl+Tab",), _document, rule=True),
    Command("previous_trace", "Previous trace", "View/Pages", "Show the previous open trace of the project",
            lambda w: w.step_run(-1), ("Ctrl+Shift+Tab",), _document),
    Command("trace_beside", "Trace in another window", "View/Pages",
            "Show this trace in another window, for example on a second screen",
            lambda w: w.show_beside(), (), _document),
    Command("console", "Python console…", "View", "Use Python on the open trace, after a confirmation",
            lambda w: w.turn_console(), (), _document, mark=lambda w: w.console is not None, rule=True),
    Command("reset_layout", "Reset layout", "View", "Put all panels back to their default places",
            lambda w: w.reset_layout(), rule=True),
    Command("fewer", "Fewer phases", "Analyse", "Fit with one phase fewer",
            lambda w: w.workbench.step_n(-1), ("[",), _document, icon="fewer"),
    Command("more", "More phases", "Analyse", "Fit with one phase more",
            lambda w: w.workbench.step_n(1), ("]",), _document, icon="more"),
    Command("suggested", "Suggested number", "Analyse", "Use the suggested number of phases",
            lambda w: w.workbench.use_suggestion(), ("N",), _suggested),
    *(_model(model, model == "constant") for model in MODELS),
    Command("curves", "Curves…", "Analyse/Curve",
            "Choose the fitted curve and those drawn below it: regions, messages, metrics",
            lambda w: w.choose_curves(), ("Shift+C",), _document),
    Command("exact_curve", "Exact curve", "Analyse/Curve",
            "Load the exact curve of a remote trace again, after it was stopped or failed",
            lambda w: w.workbench.sharpen(), enabled=_coarse),
    *(_curve(kind, title, kind == "computing") for kind, title in PLAIN_CURVES.items()),
    Command("previous_phase", "Previous phase", "Analyse", "Select the previous phase",
            lambda w: w.workbench.step_phase(-1), (",",), _fitted, rule=True),
    Command("next_phase", "Next phase", "Analyse", "Select the next phase",
            lambda w: w.workbench.step_phase(1), (".",), _fitted),
    Command("nothing", "Clear selection", "Analyse",
            "Cancel dragging a breakpoint, else clear the selection",
            lambda w: w.escape(), ("Esc",), _document),
    Command("add_break", "Add breakpoint at pointer", "Analyse", "Add a breakpoint at the pointer",
            lambda w: w.add_breakpoint(), ("B",), _fitted, rule=True),
    Command("annotate", "Annotate…", "Edit", "Add a remark to the selection, at the pointer, or to the phase",
            lambda w: w.annotate(), ("I",), _document),
    Command("annotate_location", "Add remark to this location…", "Edit",
            "Add a remark to the timeline row at the pointer, or to the state that was clicked or found",
            lambda w: w.annotate_location(), ("Shift+I",), _document),
    Command("lock_break", "Lock breakpoint", "Analyse",
            "Lock or unlock the end of the selected phase",
            lambda w: w.on_selected_breakpoint(w.workbench.toggle_lock), ("L",), _on_breakpoint),
    Command("remove_break", "Remove breakpoint", "Analyse", "Merge the selected phase with the next one",
            lambda w: w.on_selected_breakpoint(w.workbench.remove_breakpoint), ("Del",), _on_breakpoint),
    Command("refit", "Find breakpoints again", "Analyse",
            "Compute all breakpoints that are not locked",
            lambda w: w.workbench.refit(), ("R",), _by_hand),
    Command("limit", "Limit analysis to this range", "Analyse",
            "Limit all analysis and reports to the selected range or phase",
            lambda w: w.limit_analysis(w.selected_range()), ("Ctrl+L",), _selected, rule=True),
    Command("unlimit", "Remove limit of the analysis", "Analyse", "Analyse the whole run again",
            lambda w: w.limit_analysis(None), ("Ctrl+Shift+L",), _limited),
    Command("compare", "Compare runs…", "Analyse", "Compare runs of the project, overlaid or side by side",
            lambda w: w.frame.show_kind("compare"), ("Ctrl+Shift+R",), rule=True),
    Command("new_experiment", "New experiment…", "Experiment", "Describe an experiment of artificial delays",
            lambda w: w.frame.open_experiment("new")),
    Command("open_experiment", "Open experiment…", "Experiment", "Open the folder of an experiment",
            lambda w: w.frame.open_experiment("open")),
    Command("open_runs", "Open table of runs…", "Experiment", "Open trials that were run elsewhere",
            lambda w: w.frame.open_experiment("open_runs")),
    Command("experiment_window", "Experiments…", "Experiment",
            "Open the page of experiments, which includes an example",
            lambda w: w.frame.open_experiment(), rule=True),
    Command("show_effects", "Show effects", "Experiment",
            "Show the effects of the project's experiment beside the trace",
            lambda w: w.go_to_panel("effects"), ("Ctrl+Alt+E",), _document),
    Command("show_model", "Show factor model", "Model",
            "Show the factor model of the project's table beside the trace",
            lambda w: w.go_to_panel("model"), ("Ctrl+Alt+M",), _document),
    Command("add_run_to_model", "Add this run to the factor model", "Model",
            "Add the time of this run to the project's table of run times",
            lambda w: w.add_run_to_model(), ("Ctrl+Alt+A",), _document),
    Command("factor_model", "Factor model…", "Model",
            "Separate code and system in a table of run times",
            lambda w: w.frame.open_model()),
))  # fmt: skip

#: Gestures, listed beside the keys.
MOUSE: tuple[tuple[str, str], ...] = (
    ("Left drag", "Select a range of time"),
    ("Drag a breakpoint", "Move it; the error follows"),
    ("Click a phase in the table", "Select it everywhere"),
    ("Double-click a phase", "Select it"),
    ("Wheel", "Zoom at the pointer"),
    ("Middle drag, or Space and left drag", "Move the view"),
    ("Shift+wheel", "Move the view"),
    ("Right drag", "Zoom to a range"),
    ("Double-click the time axis", "Whole run"),
    ("Wheel over the vertical axis", "Zoom levels at the pointer (Shift: move)"),
    ("Drag on the vertical axis", "Stretch it; with the middle button, move it"),
    ("Double-click the vertical axis", "Reset levels"),
    ("Double-click an annotation", "Change it"),
    ("Click a name in the legend", "Show or hide the class"),
    ("Click in the timeline", "Show the call stack there"),
    ("Click a process in the timeline", "Show its threads, or one row for all"),
    ("Drag a process in the timeline", "Move it (Alt+Up, Alt+Down: the row under the pointer)"),
    ("Ctrl+wheel in the timeline", "Higher or lower rows; a double-click on the ranks shows all"),
    ("Wheel on the ranks, Up, Down, Page Up, Page Down", "Scroll the rows"),
    ("Click in the error or breakpoint picture", "Use that number of phases"),
)
MENUS = ("File", "Edit", "View", "Analyse", "Experiment", "Model", "Help")

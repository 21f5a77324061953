"""The commands of the factor model's page; menus, keys and the key list follow from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from desktop.ui import commands
from desktop.ui.commands import When, with_common
from desktop.workbench.modelling import ModelSnapshot

if TYPE_CHECKING:
    from desktop.ui.model_page import ModelPage

ModelCommand: TypeAlias = commands.Command["ModelPage", ModelSnapshot]


def _rows_selected(snapshot: ModelSnapshot) -> bool:
    return snapshot.project.table is not None and bool(snapshot.view.lines)


def _fitted_together(snapshot: ModelSnapshot) -> bool:
    return snapshot.fit is not None and snapshot.fit.kind == "joint"


_table = When[ModelSnapshot](lambda s: s.project.table is not None, "a table of run times")
_source = When[ModelSnapshot](lambda s: s.source is not None, "a table that was opened or pasted")
_fitted = When[ModelSnapshot](lambda s: s.fit is not None, "a table with a fitted model")
_ranked = When[ModelSnapshot](lambda s: s.selection is not None, "a table with enough runs for a fit")
_selected = When(_rows_selected, "selected rows")
_joint = When(_fitted_together, "a fit of all cells together")


MODEL_COMMANDS: tuple[ModelCommand, ...] = with_common((
    ModelCommand("open", "Open table…", "File",
                 "Open a table of run times: CSV, TSV, spreadsheet or NPB listing",
                 lambda w: w.choose_table(), ("Ctrl+O",)),
    ModelCommand("open_folder", "Open folder of NPB listings…", "File",
                 "Open all result listings of the NAS parallel benchmarks in a folder",
                 lambda w: w.choose_folder(), ("Ctrl+Shift+O",)),
    ModelCommand("example", "Open the bundled example", "File",
                 "Open four codes on four systems; values are constructed, not measured",
                 lambda w: w.open_example()),
    ModelCommand("columns", "Assign columns…", "File", "Say what the columns of the table mean",
                 lambda w: w.bench.assign(), (), _source),
    ModelCommand("peaks", "Add peak rates of systems…", "File",
                 "Open a table with a system and its peak rate in every row",
                 lambda w: w.choose_values("peak"), (), _table, rule=True),
    ModelCommand("operations", "Add operations of codes…", "File",
                 "Open a table with a code and its operations in every row",
                 lambda w: w.choose_values("work"), (), _table),
    ModelCommand("add_runs", "Add runs from imported traces…", "File",
                 "Add run times, or durations of a phase, of traces as measurements",
                 lambda w: w.ask_runs(), ("Ctrl+R",)),
    ModelCommand("to_project", "Add to project…", "File", "Keep the table and this model in a project",
                 lambda w: w.frame.keep_in_project(w), ("Ctrl+Alt+S",), _table, rule=True),
    ModelCommand("export", "Export table as CSV…", "File", "Save the table that was used last as CSV",
                 lambda w: w.export_table(), ("Ctrl+E",), _table, rule=True),
    ModelCommand("report", "Report…", "File", "Write a report on the model as HTML, PDF or slides",
                 lambda w: w.choose_report(), (), _fitted),
    ModelCommand("save_picture", "Save picture…", "File", "Save the plot as PNG",
                 lambda w: w.save_picture(), (), _fitted),
    ModelCommand("paste", "Paste table", "Edit", "Open the table on the clipboard",
                 lambda w: w.paste(), ("Ctrl+V",), rule=True),
    ModelCommand("copy_table", "Copy whole table", "Edit",
                 "Copy the table that was used last with its headings, for a spreadsheet",
                 lambda w: w.copy_table(), ("Ctrl+Alt+C",), _table),
    ModelCommand("copy_picture", "Copy picture", "Edit", "Copy the plot at twice its size, on a white ground",
                 lambda w: w.copy_picture(), ("Ctrl+Shift+C",), _fitted),
    ModelCommand("exclude", "Exclude rows…", "Edit", "Exclude the selected rows, with a reason",
                 lambda w: w.ask_reason(), ("Del",), _selected, rule=True),
    ModelCommand("include", "Include rows again", "Edit", "Include the selected rows again",
                 lambda w: w.include_again(), ("Shift+Del",), _selected),
    ModelCommand("suspects", "Select rows that stand out", "Edit",
                 "Select the rows that stand out; accused rows stand out even under heavy tails",
                 lambda w: w.select_suspects(), ("Ctrl+D",), _fitted),
    ModelCommand("nothing", "Clear selection", "Edit", "Clear the selection of rows",
                 lambda w: w.bench.pick(()), ("Esc",), _selected),
    ModelCommand("joint", "All cells together", "Model", "Fit one work per code and one speed per system",
                 lambda w: w.bench.set_joint(True), ("Ctrl+J",), _table,
                 mark=lambda w: w.bench.snapshot.project.settings.joint),
    ModelCommand("individual", "Every cell by itself", "Model", "Fit a curve for every code on every system",
                 lambda w: w.bench.set_joint(False), ("Ctrl+I",), _table,
                 mark=lambda w: not w.bench.snapshot.project.settings.joint),
    ModelCommand("rank", "Fit all pairs", "Model",
                 "Fit and compare every single function and every pair of the seven",
                 lambda w: w.rank(), ("Ctrl+P",), _ranked, rule=True),
    ModelCommand("leave_out", "Leave cells out", "Model", "Predict every cell from a fit to all others",
                 lambda w: w.leave_cells_out(), ("Ctrl+L",), _joint),
    ModelCommand("forms", "Search normal forms", "Model",
                 "Search a function of p for every cell, as Extra-P does, with cross-validation",
                 lambda w: w.search_forms(), (), _ranked),
    ModelCommand("answers", "Answers", "Model", "Show what the model says about the chosen cell, in words",
                 lambda w: w.show_answers(), ("Ctrl+T",), _fitted),
    ModelCommand("reset_layout", "Reset layout", "View", "Put everything back to its default place",
                 lambda w: w.reset_layout(), rule=True),
))  # fmt: skip

MODEL_MENUS = ("File", "Edit", "Model", "View", "Help")
#: Gestures, listed beside the keys.
MODEL_MOUSE: tuple[tuple[str, str], ...] = (
    ("Click a point", "Select its row everywhere (Ctrl: add it)"),
    ("Left, Right and Return in a plot", "Step through the points, select one"),
    ("Click a heading", "Sort by it; again: the other way; a third time: as in the source"),
    ("Double-click a pair", "Fit it"),
    ("Click a cell of the map, a bar, a prediction", "Show that cell"),
    ("Drop a file or folder", "Open it as a table"),
)

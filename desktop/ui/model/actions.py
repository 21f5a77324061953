"""All that the window of the factor model can be told to do; menus, keys and the key list follow from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from desktop.ui.settings import TEXT_SIZES, ThemeChoice
from desktop.workbench.modelling import ModelSnapshot

if TYPE_CHECKING:
    from desktop.ui.model_window import ModelWindow


def _always(_: ModelSnapshot) -> bool:
    return True


def _table(shown: ModelSnapshot) -> bool:
    return shown.project.table is not None


def _fitted(shown: ModelSnapshot) -> bool:
    return shown.fit is not None


def _selected(shown: ModelSnapshot) -> bool:
    return _table(shown) and bool(shown.view.lines)


def _joint(shown: ModelSnapshot) -> bool:
    return shown.fit is not None and shown.fit.kind == "joint"


@dataclass(frozen=True)
class ModelCommand:
    """One row: `menu` as ``"View"`` or ``"View/Theme"``; `mark`: is it checked; `rule`: a line above it."""

    id: str
    text: str
    menu: str
    tip: str
    run: Callable[[ModelWindow], object]
    keys: tuple[str, ...] = ()
    enabled: Callable[[ModelSnapshot], bool] = _always
    mark: Callable[[ModelWindow], bool] | None = None
    rule: bool = False


def _theme(choice: ThemeChoice, text: str, tip: str) -> ModelCommand:
    return ModelCommand(
        f"theme_{choice}", text, "View/Theme", tip, lambda w: w.choose_theme(choice),
        mark=lambda w: w.settings.theme == choice,
    )  # fmt: skip


def _text_size(percent: int) -> ModelCommand:
    return ModelCommand(
        f"text_{percent}", f"{percent} %", "View/Text size", f"Text at {percent} % of its usual size",
        lambda w: w.choose_text_size(percent), mark=lambda w: w.settings.text_size == percent,
    )  # fmt: skip


MODEL_COMMANDS: tuple[ModelCommand, ...] = (
    ModelCommand("open", "Open table…", "File", "A table of run times: CSV, TSV, spreadsheet, NPB listing",
                 lambda w: w.choose_table(), ("Ctrl+O",)),
    ModelCommand("open_folder", "Open folder of NPB listings…", "File",
                 "Result listings of the NAS parallel benchmarks, all in a folder",
                 lambda w: w.choose_folder(), ("Ctrl+Shift+O",)),
    ModelCommand("example", "Open the bundled example", "File",
                 "Four codes on four systems; constructed values, no measurements",
                 lambda w: w.open_example()),
    ModelCommand("columns", "Assign columns…", "File", "Say what the columns of the table mean",
                 lambda w: w.bench.assign(), (), lambda s: s.source is not None),
    ModelCommand("peaks", "Add peak rates of systems…", "File",
                 "A table with a system and its peak rate in every row",
                 lambda w: w.choose_values("peak"), (), _table, rule=True),
    ModelCommand("operations", "Add operations of codes…", "File",
                 "A table with a code and its operations in every row",
                 lambda w: w.choose_values("work"), (), _table),
    ModelCommand("add_runs", "Add runs from imported traces…", "File",
                 "Run time, or the duration of a phase, of traces as measurements",
                 lambda w: w.ask_runs(), ("Ctrl+R",)),
    ModelCommand("export", "Export table as CSV…", "File", "Save the table that was used last",
                 lambda w: w.export_table(), ("Ctrl+E",), _table, rule=True),
    ModelCommand("save_picture", "Save picture…", "File", "Save the plot as PNG",
                 lambda w: w.save_picture(), (), _fitted),
    ModelCommand("close", "Close", "File", "Close this window",
                 lambda w: w.close(), ("Ctrl+W",), rule=True),
    ModelCommand("undo", "Undo", "Edit", "Take back the last change",
                 lambda w: w.bench.undo(), ("Ctrl+Z",), lambda s: s.undo is not None),
    ModelCommand("redo", "Redo", "Edit", "Do again what was taken back",
                 lambda w: w.bench.redo(), ("Ctrl+Shift+Z", "Ctrl+Y"), lambda s: s.redo is not None),
    ModelCommand("paste", "Paste table", "Edit", "Open the table on the clipboard",
                 lambda w: w.paste(), ("Ctrl+V",), rule=True),
    ModelCommand("copy_table", "Copy whole table", "Edit",
                 "Copy the table that was used last with its headings, for a spreadsheet",
                 lambda w: w.copy_table(), ("Ctrl+Alt+C",), _table),
    ModelCommand("copy_picture", "Copy picture", "Edit", "Copy the plot at twice its size, on white",
                 lambda w: w.copy_picture(), ("Ctrl+Shift+C",), _fitted),
    ModelCommand("exclude", "Exclude rows…", "Edit", "Leave the selected rows out, for a reason",
                 lambda w: w.ask_reason(), ("Del",), _selected, rule=True),
    ModelCommand("include", "Take rows back", "Edit", "Let the selected rows take part again",
                 lambda w: w.take_back(), ("Shift+Del",), _selected),
    ModelCommand("suspects", "Select rows that stand out", "Edit",
                 "Rows whose residual is too large for so many rows",
                 lambda w: w.select_suspects(), ("Ctrl+D",), _fitted),
    ModelCommand("nothing", "Select nothing", "Edit", "Let go of the selected rows",
                 lambda w: w.bench.pick(()), ("Esc",), _selected),
    ModelCommand("joint", "All cells together", "Model", "One work per code, one speed per system",
                 lambda w: w.bench.set_joint(True), ("Ctrl+J",), _table,
                 mark=lambda w: w.bench.snapshot.project.settings.joint),
    ModelCommand("individual", "Every cell by itself", "Model", "A curve for every code on every system",
                 lambda w: w.bench.set_joint(False), ("Ctrl+I",), _table,
                 mark=lambda w: not w.bench.snapshot.project.settings.joint),
    ModelCommand("rank", "Fit all pairs", "Model", "Compare every one and every two of the seven functions",
                 lambda w: w.rank(), ("Ctrl+P",), lambda s: s.selection is not None, rule=True),
    ModelCommand("leave_out", "Leave cells out", "Model", "Predict every cell from a fit to all others",
                 lambda w: w.leave_cells_out(), ("Ctrl+L",), _joint),
    ModelCommand("answers", "Answers", "Model", "What the model says of the chosen cell, in words",
                 lambda w: w.show_answers(), ("Ctrl+T",), _fitted),
    _theme("light", "Light", "Dark on light"),
    _theme("dark", "Dark", "Light on dark"),
    _theme("system", "As the system", "Follow the desktop's light or dark setting"),
    *(_text_size(percent) for percent in TEXT_SIZES),
    ModelCommand("reset_layout", "Reset layout", "View", "Put everything where it was at first",
                 lambda w: w.reset_layout(), rule=True),
    ModelCommand("keys", "Keys and mouse", "Help", "List all keys",
                 lambda w: w.show_keys(), ("F1",)),
)  # fmt: skip

MODEL_MENUS = ("File", "Edit", "Model", "View", "Help")
#: Gestures, listed beside the keys.
MODEL_MOUSE: tuple[tuple[str, str], ...] = (
    ("Click a point", "Select its row everywhere (with Ctrl: as well)"),
    ("Left, Right and Return in a plot", "Step through the points, select one"),
    ("Click a heading", "Sort by it; again: the other way; a third time: as in the source"),
    ("Double-click a pair", "Fit it"),
    ("Click a cell of the map, a bar, a prediction", "Look at that cell"),
    ("Drop a file or folder", "Open it as a table"),
)

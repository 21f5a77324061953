"""The commands of the page of comparisons; menus, keys and the key list follow from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from desktop.ui import commands
from desktop.ui.commands import When, moves, with_common
from desktop.workbench.run_comparison import ComparisonSnapshot

if TYPE_CHECKING:
    from desktop.ui.compare_page import ComparePage

CompareCommand: TypeAlias = commands.Command["ComparePage", ComparisonSnapshot]

#: The axes with their names and what they are for.
AXES = {
    "absolute": ("Absolute time", "Times as in the traces"),
    "start": ("Time from start", "Every run begins at 0"),
    "normalised": ("Part of each run", "Every run fills the whole width"),
    "phases": (
        "Matched phases",
        "Matched phases lie over each other, stretched to the reference's duration",
    ),
}

_compared = When[ComparisonSnapshot](lambda s: s.alignment is not None, "two compared runs")
_paired = When[ComparisonSnapshot](lambda s: bool(s.comparison.matched), "matches set by hand")


def _axis(axis: str) -> CompareCommand:
    (title, tip), key = AXES[axis], f"Ctrl+{list(AXES).index(axis) + 1}"
    return commands.Command(
        f"axis_{axis}", title, "View", tip, lambda w: w.bench.change(axis=axis), (key,),
        mark=lambda w: w.bench.snapshot.comparison.axis == axis, rule=axis == "absolute",
    )  # fmt: skip


def _flag(name: str, text: str, key: str, tip: str, *, rule: bool = False) -> CompareCommand:
    """A command that switches a field of the comparison on and off."""
    return commands.Command(
        name, text, "View", tip,
        lambda w: w.bench.change(**{name: not getattr(w.bench.snapshot.comparison, name)}), (key,),
        mark=lambda w: getattr(w.bench.snapshot.comparison, name), rule=rule,
    )  # fmt: skip


COMPARE_COMMANDS: tuple[CompareCommand, ...] = with_common((
    commands.Command("add_run", "Add trace to project…", "File", "Add another run to compare",
                     lambda w: w.add_run(), ("Ctrl+O",)),
    commands.Command("export_figure", "Export figure…", "File",
                     "Save the comparison as PNG, SVG or PDF at a size in mm, with its data",
                     lambda w: w.export_figure(), ("Ctrl+E",), _compared, rule=True),
    commands.Command("export", "Export table as CSV…", "File", "Save the table of phases with full precision",
                     lambda w: w.export_table(), ("Ctrl+Shift+E",), _compared),
    commands.Command("copy_table", "Copy whole table", "Edit", "Copy the table with its headings",
                     lambda w: w.copy_table(), ("Ctrl+Alt+C",), _compared, rule=True),
    commands.Command("copy_picture", "Copy picture", "Edit",
                     "Copy the plots at twice their size, on a white ground",
                     lambda w: w.copy_picture(), ("Ctrl+Shift+C",), _compared),
    commands.Command("choose_phase", "Choose matching phase", "Compare",
                     "Choose another phase for the selected row of the table",
                     lambda w: w.table.choose_phase(), ("F2",), _compared),
    commands.Command("match_again", "Match again", "Compare", "Discard manual matches",
                     lambda w: w.bench.match_again(), ("R",), _paired),
    commands.Command("over_p", "Phases over p", "Compare",
                     "Show how each phase scales with the processors, and predict it at other p",
                     lambda w: w.show_over_p(not w.over_p), ("M",), _compared,
                     mark=lambda w: w.over_p, rule=True),
    commands.Command("systems", "Systems of the runs…", "Compare",
                     "Say on which system each run was, for phases over p and the factor model",
                     lambda w: w.choose_systems(), (), _compared),
    commands.Command("to_model", "Send durations to the factor model", "Compare",
                     "Use the named systems, else one unless two runs have the same number of processors",
                     lambda w: w.to_model(None), ("Ctrl+M",), _compared),
    commands.Command("to_model_one", "Send durations to the factor model, as one system", "Compare",
                     "Treat all runs as one system, on different numbers of processors",
                     lambda w: w.to_model(True), (), _compared),
    commands.Command("to_model_each", "Send durations to the factor model, a system for each run", "Compare",
                     "Treat every run as a system of its own",
                     lambda w: w.to_model(False), (), _compared),
    *moves(lambda w: w.view, _compared),
    commands.Command("zoom_selection", "Zoom to selection", "View", "Show only the selected range",
                     lambda w: w.zoom_to_selection(), ("Z", "F"), _compared),
    commands.Command("show_all", "Whole runs", "View", "Show the runs from beginning to end",
                     lambda w: w.view.show_all(), ("Home", "Ctrl+0"), _compared),
    commands.Command("back", "Back", "View", "Return to the previous view",
                     lambda w: w.view.back(), ("Alt+Left", "Backspace"), _compared),
    commands.Command("forward", "Next view", "View", "Return to the next view",
                     lambda w: w.view.forward(), ("Alt+Right",), _compared),
    commands.Command("nothing", "Clear selection", "View", "Cancel dragging, else clear the selection",
                     lambda w: w.escape(), ("Esc",), _compared),
    *(_axis(axis) for axis in AXES),
    _flag("side_by_side", "Side by side", "L", "Show every run in its own plot, on one axis", rule=True),
    _flag("share", "Share of all processors", "P", "Show heights as shares of each run's processors"),
    _flag("relative", "Relative differences", "Q", "Show differences in percent of the reference"),
))  # fmt: skip

COMPARE_MENUS = ("File", "Edit", "View", "Compare", "Help")
#: Gestures, listed beside the keys.
COMPARE_MOUSE: tuple[tuple[str, str], ...] = (
    ("Drag a phase onto one of the reference, or the other way", "Match them"),
    ("Click a phase", "Select its row in the table"),
    ("Choose another phase in the table", "Match it"),
    ("Left drag", "Select a range"),
    ("Wheel", "Zoom at the pointer"),
    ("Middle drag, or Space and left drag", "Move the view"),
    ("Right drag", "Zoom to a range"),
)

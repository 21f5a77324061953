"""The commands that every page has, and the class of a row in the table of a page's commands.

A page has one table: its own rows (such as `desktop.ui.actions`) and those of `COMMON`. Menus, toolbar,
keys, the key list, the command palette and the preferences' page of keys are all made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from desktop.ui.settings import TEXT_SIZES, ThemeChoice

if TYPE_CHECKING:
    from desktop.ui.page import Page

W = TypeVar("W", contravariant=True)
S = TypeVar("S", contravariant=True)


@dataclass(frozen=True)
class When(Generic[S]):
    """A condition that can say what is missing: `needs` continues "This needs"."""

    test: Callable[[S], bool]
    needs: str

    def __call__(self, snapshot: S) -> bool:
        return self.test(snapshot)


def always(_: object) -> bool:
    """The `enabled` of a command that can be run at any time."""
    return True


@dataclass(frozen=True)
class Command(Generic[W, S]):
    """One row: `text` and `tip`; `menu` as ``"View"`` or ``"View/Theme"``; `mark`: whether it is checked;
    `rule`: a line above it; `keys`: unless the user has chosen others; `common`: a row that every page has,
    whose `enabled` gets the page, that of others its snapshot."""

    id: str
    text: str
    menu: str
    tip: str
    run: Callable[[W], object]
    keys: tuple[str, ...] = ()
    enabled: Callable[[S], bool] = always
    mark: Callable[[W], bool] | None = None
    icon: str = ""
    rule: bool = False
    common: bool = False

    @property
    def title(self) -> str:
        """Its text without the dots that announce a dialog."""
        return self.text.rstrip("…")

    @property
    def obstacle(self) -> str:
        """Why it is disabled, as a sentence."""
        needs = getattr(self.enabled, "needs", "")
        if not needs:
            return "This is not available now."
        return f"This needs {needs}."


#: A row of every page, and one of whatever page: menus, keys and the palette take those of all kinds alike.
PageCommand: TypeAlias = "Command[Page, Any]"
AnyCommand: TypeAlias = Command[Any, Any]


def _theme(choice: ThemeChoice, text: str, tip: str) -> PageCommand:
    return Command(
        f"theme_{choice}", text, "View/Theme", tip, lambda p: p.frame.choose_theme(choice),
        mark=lambda w: w.settings.theme == choice, common=True,
    )  # fmt: skip


def _text_size(percent: int) -> PageCommand:
    return Command(
        f"text_{percent}", f"{percent} %", "View/Text size", f"Text at {percent} % of its usual size",
        lambda p: p.frame.choose_text_size(percent), mark=lambda p: p.settings.text_size == percent,
        common=True,
    )  # fmt: skip


def _page(kind: str, title: str, number: int) -> PageCommand:
    return Command(
        f"page_{kind}", title, "View/Pages", f"Go to the page {title.lower()} of this project",
        lambda p: p.frame.show_kind(kind), (f"Alt+Shift+{number}",), mark=lambda p: kind == p.KIND,
        common=True,
    )  # fmt: skip


#: The kinds of pages in the order of their tabs, and what the tabs are called.
KINDS = {"trace": "Trace", "compare": "Compare", "experiment": "Experiment", "model": "Model"}
#: And those that stand behind them while there is something to show.
PASSING = {"watch": "Watch"}
TITLES = KINDS | PASSING

#: Rows of every page: those of the menu Edit, which come first in it, and those after its own in each menu.
STEPS: tuple[PageCommand, ...] = (
    Command("undo", "Undo", "Edit", "Undo the last change, on whichever page it was made",
            lambda p: p.frame.undo(), ("Ctrl+Z",),
            When(lambda p: p.frame.history.undo_label is not None, "a change that can be undone"),
            icon="undo", common=True),
    Command("redo", "Redo", "Edit", "Redo what was undone",
            lambda p: p.frame.redo(), ("Ctrl+Shift+Z", "Ctrl+Y"),
            When(lambda p: p.frame.history.redo_label is not None, "a change that was undone"),
            icon="redo", common=True),
)  # fmt: skip
COMMON: tuple[PageCommand, ...] = (
    Command("new_window", "New window", "File", "Open another window, for another project",
            lambda p: p.frame.new_window(), ("Ctrl+N",), rule=True, common=True),
    Command("close", "Close", "File", "Close what this page shows, or the window if nothing is open",
            lambda p: p.close_shown(), ("Ctrl+W",), common=True),
    Command("quit", "Quit", "File", "Close all windows",
            lambda p: p.frame.quit(), ("Ctrl+Q",), rule=True, common=True),
    *(_page(kind, title, k) for k, (kind, title) in enumerate(KINDS.items(), 1)),
    Command("next_page", "Next page", "View/Pages", "Go to the next page",
            lambda p: p.frame.step_page(1), ("Ctrl+PgDown",), rule=True, common=True),
    Command("previous_page", "Previous page", "View/Pages", "Go to the previous page",
            lambda p: p.frame.step_page(-1), ("Ctrl+PgUp",), common=True),
    Command("detach", "Move page to its own window", "View/Pages",
            "Give this page a window of its own, for example on a second screen",
            lambda p: p.frame.detach(p), (),
            When(lambda p: p.frame.can_detach, "a page in the main window, with another page beside it"),
            rule=True, common=True),
    Command("attach", "Return page to the main window", "View/Pages",
            "Move a page that has its own window back",
            lambda p: p.frame.attach(), (),
            When(lambda p: p.frame.main is not p.frame, "a page in a window of its own"), common=True),
    Command("preferences", "Preferences…", "Edit", "Colours, text size, keys, units and memory",
            lambda p: p.frame.show_preferences(), ("Ctrl+,",), rule=True, common=True),
    _theme("light", "Light", "Dark on light"),
    _theme("dark", "Dark", "Light on dark"),
    _theme("system", "Follow the system", "Use the desktop's light or dark setting"),
    *(_text_size(percent) for percent in TEXT_SIZES),
    Command("palette", "Command palette…", "Help", "Find a command by its name",
            lambda p: p.frame.show_palette(), ("Ctrl+Shift+P",), common=True),
    Command("what_is_this", "What is this?", "Help", "Open the handbook page on what has the focus",
            lambda w: w.explain_focus(), ("Shift+F1",), rule=True, common=True),
    Command("handbook", "Contents", "Help", "Open the handbook, which needs no network",
            lambda w: w.show_help(), ("Ctrl+F1",), common=True),
    Command("keys", "Keys and mouse", "Help", "List all keys",
            lambda w: w.show_keys(), ("F1", "?"), common=True),
    Command("log_folder", "Show log folder", "Help", "Open the folder of the log and of crash reports",
            lambda p: p.frame.show_log_folder(), rule=True, common=True),
    Command("about", "About Phasewright", "Help", "Version, licences, how to cite, and libraries",
            lambda p: p.frame.show_about(), common=True),
)  # fmt: skip


def moves(
    view: Callable[[Any], Any], enabled: Callable[[Any], bool], *, arrows: bool = False
) -> tuple[AnyCommand, ...]:
    """Zoom and pan of a plot over time, the `view` of a page; `arrows`: also by the keys Left and Right."""
    left, right = (("Left",), ("Right",)) if arrows else ((), ())
    return (
        Command("zoom_in", "Zoom in", "View", "Show half the range",
                lambda w: view(w).zoom(2.0), ("W", "+", "="), enabled, rule=arrows),
        Command("zoom_out", "Zoom out", "View", "Show twice the range",
                lambda w: view(w).zoom(0.5), ("S", "-"), enabled),
        Command("earlier", "Earlier", "View", "Move back by a quarter of the view",
                lambda w: view(w).pan(-0.25), ("A", *left), enabled),
        Command("later", "Later", "View", "Move on by a quarter of the view",
                lambda w: view(w).pan(0.25), ("D", *right), enabled),
    )  # fmt: skip


def with_common(commands: Sequence[AnyCommand]) -> tuple[AnyCommand, ...]:
    """All commands of a page: `commands`, and the common ones that have none of their ids."""
    ids = {command.id for command in commands}
    file_commands = [command for command in commands if command.menu == "File"]
    others = [command for command in commands if command.menu != "File"]
    return (*file_commands, *STEPS, *others, *(command for command in COMMON if command.id not in ids))

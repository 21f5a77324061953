"""What every window can be told to do, and what a row of a window's own table is.

A window has one table: its own rows (`desktop.ui.actions` and its likes) and those of `COMMON`. Menus,
toolbar, keys, the key list, the command palette and the preferences' page of keys all follow from it.
Texts stand in the tables as they are in English; they are translated where they are shown, in the context
``commands``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from PySide6.QtCore import QCoreApplication

from desktop.ui.settings import TEXT_SIZES, ThemeChoice

if TYPE_CHECKING:
    from desktop.ui.page import Page

W = TypeVar("W", contravariant=True)
S = TypeVar("S", contravariant=True)


def translated(text: str) -> str:
    """A text of the tables, in the user's language."""
    return QCoreApplication.translate("commands", text)


@dataclass(frozen=True)
class When(Generic[S]):
    """A condition that says itself what is missing: `needs` goes on after "This needs"."""

    test: Callable[[S], bool]
    needs: str

    def __call__(self, shown: S) -> bool:
        return self.test(shown)


UNDOABLE = When[Any](lambda shown: shown.undo is not None, "a change that can be taken back")
REDOABLE = When[Any](lambda shown: shown.redo is not None, "a change that was taken back")


def always(_: object) -> bool:
    return True


@dataclass(frozen=True)
class Command(Generic[W, S]):
    """One row: `english` and `says`, its text and tip; `menu` as ``"View"`` or ``"View/Theme"``; `mark`: is
    it checked; `rule`: a line above it; `keys`: unless the user has chosen others; `common`: one of the rows
    that every window has."""

    id: str
    english: str
    menu: str
    says: str
    run: Callable[[W], object]
    keys: tuple[str, ...] = ()
    enabled: Callable[[S], bool] = always
    mark: Callable[[W], bool] | None = None
    icon: str = ""
    rule: bool = False
    common: bool = False

    @property
    def text(self) -> str:
        return translated(self.english)

    @property
    def tip(self) -> str:
        return translated(self.says)

    @property
    def title(self) -> str:
        """Its text without the sign that a dialog follows."""
        return self.text.rstrip("…")

    @property
    def obstacle(self) -> str:
        """Why it cannot be had where it is disabled, as a sentence."""
        needs = getattr(self.enabled, "needs", "")
        if not needs:
            return translated("There is nothing to do this with now.")
        return translated("This needs {0}.").format(translated(needs))


def _theme(choice: ThemeChoice, text: str, tip: str) -> Command[Page, Any]:
    return Command(
        f"theme_{choice}", text, "View/Theme", tip, lambda w: w.choose_theme(choice),
        mark=lambda w: w.settings.theme == choice, common=True,
    )  # fmt: skip


def _text_size(percent: int) -> Command[Page, Any]:
    return Command(
        f"text_{percent}", f"{percent} %", "View/Text size", f"Text at {percent} % of its usual size",
        lambda w: w.choose_text_size(percent), mark=lambda w: w.settings.text_size == percent, common=True,
    )  # fmt: skip


#: Rows of every window, after its own in each menu.
COMMON: tuple[Command[Page, Any], ...] = (
    Command("preferences", "Preferences…", "Edit", "Colours, text size, keys, units and memory",
            lambda w: w.show_preferences(), ("Ctrl+,",), rule=True, common=True),
    _theme("light", "Light", "Dark on light"),
    _theme("dark", "Dark", "Light on dark"),
    _theme("system", "As the system", "Follow the desktop's light or dark setting"),
    *(_text_size(percent) for percent in TEXT_SIZES),
    Command("palette", "Command palette…", "Help", "Find a command by words",
            lambda w: w.show_palette(), ("Ctrl+Shift+P",), common=True),
    Command("what_is_this", "What is this?", "Help", "The page of the handbook on what has the focus",
            lambda w: w.explain_focus(), ("Shift+F1",), rule=True, common=True),
    Command("handbook", "Contents", "Help", "The handbook, without the network",
            lambda w: w.show_help(), ("Ctrl+F1",), common=True),
    Command("keys", "Keys and mouse", "Help", "List all keys",
            lambda w: w.show_keys(), ("F1", "?"), common=True),
    Command("log_folder", "Show log folder", "Help", "Open the folder of the log and of crash reports",
            lambda w: w.show_log_folder(), rule=True, common=True),
    Command("about", "About Phasewright", "Help", "Version, licences, how to cite, and libraries",
            lambda w: w.show_about(), common=True),
)  # fmt: skip


def with_common(own: Iterable[Command[Any, Any]]) -> tuple[Command[Any, Any], ...]:
    """A window's whole table."""
    return (*own, *COMMON)

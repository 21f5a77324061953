"""Letters that are underlined: which key with Alt opens a menu, presses a button or goes to a field.

Texts propose a letter (``"&Find"``). Where two share one, Qt only moves the focus between them. So letters
are given out here, for all that is in a window: menus first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QAbstractButton,
    QGroupBox,
    QLabel,
    QMainWindow,
    QMenu,
    QStackedLayout,
    QStackedWidget,
    QTabBar,
    QWidget,
)


def plain(text: str) -> str:
    """A text of a menu or button as it is read, without its mark."""
    return text.replace("&&", "\0").replace("&", "").replace("\0", "&")


def letter(text: str) -> str:
    """The marked letter, in lower case; "" if there is none."""
    unescaped = text.replace("&&", "  ")
    at = unescaped.find("&")
    return unescaped[at + 1 : at + 2].lower() if at >= 0 else ""


def _marked(text: str, key: str) -> str:
    """The text with that letter marked, at the beginning of a word if there is one; "" marks none."""
    read = plain(text)
    low = read.lower()
    marked_at = text.replace("&&", "\0").find("&")
    starts = [k for k in range(len(low)) if low[k] == key and (k == 0 or not low[k - 1].isalnum())]
    if letter(text) == key and key:
        at = marked_at
    else:
        at = starts[0] if starts else low.find(key) if key else -1
    if at < 0:
        return read.replace("&", "&&")
    return read[:at].replace("&", "&&") + "&" + read[at:].replace("&", "&&")


def lettered(texts: Sequence[str], together: Callable[[int, int], bool] = lambda _a, _b: True) -> list[str]:
    """The texts, each with a letter marked that no other has which is in view `together` with it.

    The letter that a text would like goes to the first that asks for it; then come the first letters of
    words, then all others. Where all are taken, none is marked.
    """
    letters = [""] * len(texts)

    def give(candidates: Callable[[str], Sequence[str]]) -> None:
        for k, text in enumerate(texts):
            if not letters[k]:
                wanted = candidates(text)
                used = {key for i, key in enumerate(letters) if key and key in wanted and together(i, k)}
                letters[k] = next((key for key in wanted if key not in used), "")

    give(lambda text: [letter(text)] if letter(text) else [])
    give(lambda text: [word[0] for word in plain(text).lower().split() if word[0].isalnum()])
    give(lambda text: [key for key in plain(text).lower() if key.isalnum()])
    return [_marked(text, key) for text, key in zip(texts, letters, strict=True)]


def letter_menu(menu: QMenu) -> None:
    """Give the entries of a menu their letters; those that are not in view need none."""
    _letter([action for action in menu.actions() if action.isVisible() and not action.isSeparator()])


def _letter(entries: Sequence[QAction]) -> None:
    for action, text in zip(entries, lettered([action.text() for action in entries]), strict=True):
        if text != action.text():
            action.setText(text)


class _Target:
    """Something with a letter: how its text is read and set, and on which pages it stands."""

    def __init__(self, widget: QWidget, text: str, put: Callable[[str], object]) -> None:
        self.widget, self.text, self.put = widget, text, put
        self._pages: dict[int, int] = {}
        parent = widget.parentWidget()
        while parent is not None:
            if isinstance(parent, QStackedWidget) or isinstance(parent.layout(), QStackedLayout):
                self._pages[id(parent)] = id(widget)
            widget, parent = parent, parent.parentWidget()

    def beside(self, other: _Target) -> bool:
        """Both can be in view at once: they are not on different pages."""
        return all(other._pages.get(stack, page) == page for stack, page in self._pages.items())


def _targets(window: QWidget) -> list[_Target]:
    """What has a letter in a window or on a page of one, but for the menus."""
    targets: list[_Target] = []
    for widget in window.findChildren(QWidget):
        texts: list[tuple[str, Callable[[str], object]]] = []
        if (isinstance(widget, QLabel) and widget.buddy() is not None) or isinstance(widget, QAbstractButton):
            texts = [(widget.text(), widget.setText)]
        elif isinstance(widget, QGroupBox):
            texts = [(widget.title(), widget.setTitle)]
        elif isinstance(widget, QTabBar):
            texts = [(widget.tabText(k), partial(widget.setTabText, k)) for k in range(widget.count())]
        texts = [(text, put) for text, put in texts if letter(text)]
        # Not in a window of its own, such as an open dialog.
        if texts and (widget.isHidden() or widget.window() is window.window()):
            targets += [_Target(widget, *text) for text in texts]
    return targets


def settle(window: QWidget, menus: Sequence[QAction] = ()) -> None:
    """Give out the letters of a window or a page: its menus have theirs first, then what asks for one."""
    _letter(menus)
    _give([_Target(window, action.text(), action.setText) for action in menus] + _targets(window))


def join(part: QWidget) -> None:
    """Give out the letters of a part of a page that is made later: what has one keeps it."""
    page = part
    while not isinstance(page, QMainWindow) and (parent := page.parentWidget()) is not None:
        page = parent
    menus = page.findChildren(QMenu, options=Qt.FindChildOption.FindDirectChildrenOnly)
    targets = [_Target(page, menu.title(), menu.setTitle) for menu in menus]
    _give(targets + sorted(_targets(page), key=lambda target: part.isAncestorOf(target.widget)))


def _give(targets: Sequence[_Target]) -> None:
    texts = lettered([target.text for target in targets], lambda a, b: targets[a].beside(targets[b]))
    for target, text in zip(targets, texts, strict=True):
        if text != target.text:
            target.put(text)


def rename(widget: QLabel | QAbstractButton, text: str) -> None:
    """Set another text; its letter stays the same, if the text has it."""
    widget.setText(_marked(text, letter(widget.text())))

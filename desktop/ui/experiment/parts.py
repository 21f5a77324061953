"""Small things that all steps use."""

from __future__ import annotations

import shlex
from abc import abstractmethod
from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QComboBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QStackedLayout,
    QWidget,
)

from desktop.ui.pages import scrolled, set_up
from desktop.workbench.experimenting import ExperimentBench, ExperimentSnapshot


class StepContent(QWidget):
    """Scrolls only where it cannot be smaller; Qt would do so where it would like to be larger."""

    def heightForWidth(self, width: int) -> int:
        layout = self.layout()
        return -1 if layout is None else layout.minimumHeightForWidth(width)


class Step(QWidget):
    """A step: its content, or a sentence on why there is none and what to do."""

    title = ""

    def __init__(self, bench: ExperimentBench) -> None:
        super().__init__()
        self.bench = bench
        self.content = StepContent()
        self._why = quiet("")
        self._why.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._why.setContentsMargins(40, 40, 40, 40)
        self._stack = set_up(QStackedLayout(self), contentsMargins=(0, 0, 0, 0))
        # A window that is smaller than the content scrolls it.
        self._stack.addWidget(scrolled(self.content))
        self._stack.addWidget(self._why)

    def set_empty(self, why: str) -> None:
        """Say why there is nothing; "" shows the content."""
        self._why.setText(why)
        self._stack.setCurrentIndex(1 if why else 0)

    @abstractmethod
    def show_snapshot(self, old: ExperimentSnapshot, new: ExperimentSnapshot) -> None:
        """Draw what differs."""


def quiet(text: str) -> QLabel:
    """A paragraph."""
    label = set_up(QLabel(text), wordWrap=True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label


def command_list(name: str, commands: Sequence[str] = ()) -> QPlainTextEdit:
    """Commands to be read, one a line."""
    unwrapped = QPlainTextEdit.LineWrapMode.NoWrap
    text = "\n".join(commands)
    return set_up(QPlainTextEdit(text), readOnly=True, accessibleName=name, lineWrapMode=unwrapped)


def button(text: str, act: Callable[[], object], tip: str = "", name: str = "") -> QPushButton:
    return set_up(QPushButton(text), toolTip=tip, objectName=name, clicked=lambda: act())


def choice(name: str, items: Sequence[tuple[str, str]], act: Callable[[str], object]) -> QComboBox:
    """A combo whose items carry a word; `act` gets it when the user chooses."""
    made = set_up(QComboBox(), accessibleName=name, objectName=name.lower().replace(" ", "_"))
    fill(made, items)
    made.activated.connect(lambda _: act(str(made.currentData())))
    return made


def fill(combo: QComboBox, items: Sequence[tuple[str, str]], chosen: str | None = None) -> None:
    """Other items, keeping what is chosen where it is still there."""
    kept = chosen if chosen is not None else combo.currentData()
    now = [(combo.itemText(k), combo.itemData(k)) for k in range(combo.count())]
    if now != list(items):
        combo.clear()
        for text, word in items:
            combo.addItem(text, word)
    at = combo.findData(kept)
    combo.setCurrentIndex(max(at, 0))


def line(name: str, act: Callable[[str], object], tip: str = "") -> QLineEdit:
    """A line of text; `act` gets it when the user has finished with it."""
    made = set_up(QLineEdit(), accessibleName=name, objectName=name.lower().replace(" ", "_"), toolTip=tip)
    made.editingFinished.connect(lambda: act(made.text()))
    return made


def form(*rows: tuple[str, QWidget | QHBoxLayout]) -> QFormLayout:
    layout = set_up(QFormLayout(), fieldGrowthPolicy=QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
    for text, field in rows:
        label = QLabel(text)
        item = field.itemAt(0) if isinstance(field, QHBoxLayout) else None
        first = field if isinstance(field, QWidget) else item and item.widget()
        if first:
            label.setBuddy(first)
        layout.addRow(label, field)
    return layout


def shown_words(words: Sequence[str], shell: bool) -> str:
    """A command as it would be typed; placeholders stay readable."""
    if shell:
        return " ".join(words)
    return " ".join(w if w.startswith("{") and w.endswith("}") else shlex.quote(w) for w in words)


def typed_words(text: str, shell: bool) -> tuple[str, ...]:
    """The words of a typed command.

    Raises
    ------
    ValueError : a quotation mark is not closed.
    """
    if shell:
        return (text,) if text.strip() else ()
    try:
        return tuple(shlex.split(text))
    except ValueError:
        raise ValueError(f"{text!r} has a quotation mark that is not closed") from None

"""Edit > Preferences: what the user likes otherwise. Every change acts at once, in all windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialogButtonBox,
    QFormLayout,
    QKeySequenceEdit,
    QLabel,
    QPushButton,
    QSpinBox,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from desktop.ui import theme as themes
from desktop.ui.commands import COMMON, STEPS, AnyCommand
from desktop.ui.dialogs import Dialog
from desktop.ui.pages import (
    PathField,
    button,
    choices,
    fill_layout,
    lay_out,
    listing,
    row,
    search_field,
    set_up,
    tabbed,
    titled,
)
from desktop.ui.settings import COLOUR_SETS, MEMORY, TEXT_SIZES, TIME_UNITS, Settings
from desktop.ui.sizes import fitting

K = TypeVar("K")
Field = TypeVar("Field", QComboBox, QCheckBox, QSpinBox, PathField)
_PORTABLE = QKeySequence.SequenceFormat.PortableText
_NATIVE = QKeySequence.SequenceFormat.NativeText


class Preferences(Dialog):
    """Four pages; `changed` is emitted after every change."""

    changed = Signal()

    def __init__(self, settings: Settings, parent: QWidget | None = None) -> None:
        super().__init__(parent, "preferences", "Preferences")
        self.general = _General(settings, self.changed.emit)
        self.appearance = _Appearance(settings, self.changed.emit)
        self.reports = _Reports(settings, self.changed.emit)
        self.keys = _Keys(settings, self.changed.emit)
        pages = {"&General": self.general, "&Appearance": self.appearance, "Re&ports": self.reports,
                 "&Keys": self.keys}  # fmt: skip
        self.pages = set_up(tabbed(pages), documentMode=False)
        buttons = self.closing()
        self.reset_page = buttons.addButton("&Reset this page", QDialogButtonBox.ButtonRole.ResetRole)
        self.reset_page.clicked.connect(lambda: self._reset([self.pages.currentWidget()]))
        self.reset_all = buttons.addButton("Reset a&ll pages", QDialogButtonBox.ButtonRole.ResetRole)
        self.reset_all.clicked.connect(lambda: self._reset(list(pages.values())))
        for widget in buttons.buttons():
            if isinstance(widget, QPushButton):
                widget.setAutoDefault(False)  # Return in a field is no answer
        lay_out(self, self.pages, buttons)
        self.resize(fitting(self, 40, 32))

    def _reset(self, pages: Iterable[QWidget]) -> None:
        for page in pages:
            assert isinstance(page, _Form | _Keys)
            page.reset()
        self.changed.emit()


class _Form(QWidget):
    """Labelled fields, each of one setting."""

    def __init__(self, settings: Settings, changed: Callable[[], None]) -> None:
        super().__init__()
        self._settings, self._changed = settings, changed
        self._fields: dict[str, QComboBox | QCheckBox | QSpinBox | PathField] = {}
        self._form = set_up(QFormLayout(self), verticalSpacing=self.fontMetrics().height() // 2)

    def _add(self, name: str, label: str, field: Field, hint: str) -> Field:
        """A field of a setting, with its hint below it."""
        set_up(field, objectName=name, toolTip=hint)
        self._fields[name] = field
        column = QVBoxLayout()
        self._form.addRow(titled(label, field), column)
        fill_layout(column, field, set_up(QLabel(hint), wordWrap=True), spacing=2)
        return field

    def _choice(self, name: str, label: str, options: Mapping[K, str], hint: str) -> QComboBox:
        return self._add(name, label, choices(options, act=partial(self._take, name)), hint)

    def _take(self, name: str, value: object) -> None:
        if value != getattr(self._settings, name):
            setattr(self._settings, name, value)
            self._changed()

    def reset(self) -> None:
        """Set all to their defaults."""
        self._settings.reset(*self._fields)
        self.show_settings()

    def show_settings(self) -> None:
        """Show the settings as they are now."""
        for name, field in self._fields.items():
            value = getattr(self._settings, name)
            if isinstance(field, QComboBox):
                field.setCurrentIndex(field.findData(value))
            else:
                set_up(field, **{"checked" if isinstance(field, QCheckBox) else "value": value})


class _General(_Form):
    def __init__(self, settings: Settings, changed: Callable[[], None]) -> None:
        super().__init__(settings, changed)
        self.reopen = self._add(
            "reopen", "", QCheckBox("&Open the last project at the start"),
            "Only if no file is named and nothing is to be recovered.",
        )  # fmt: skip
        self.reopen.clicked.connect(lambda on: self._take("reopen", on))
        names = {"": "Automatic", "s": "Seconds", "ms": "Milliseconds (ms)",
                 "µs": "Microseconds (µs)", "ns": "Nanoseconds (ns)"}  # fmt: skip
        self.unit = self._choice(
            "time_unit", "&Unit of time", {unit: names[unit] for unit in TIME_UNITS},
            "On axes, in tables and in sentences. Automatic chooses the most readable unit.",
        )  # fmt: skip
        memory = set_up(
            QSpinBox(), range=(MEMORY[0], MEMORY[2]), singleStep=64, suffix=" MiB", keyboardTracking=False,
            valueChanged=lambda value: self._take("memory", value),
        )  # fmt: skip
        self.memory = self._add(
            "memory", "&Memory for caches", memory,
            "Of an open trace: positions of the profile, messages, events and cells of a picture. With "
            "less, more is read again, and of traces with very many messages none are drawn. Curves and "
            "phases are not limited by it, and an import has a limit of its own.",
        )  # fmt: skip
        self.show_settings()


class _Reports(_Form):
    """The user's own template and style sheet."""

    def __init__(self, settings: Settings, changed: Callable[[], None]) -> None:
        super().__init__(settings, changed)
        self._file(
            "template", "&Template of slides", "Templates (*.potx *.pptx)",
            "A .potx or .pptx with your layouts, fonts and colours.",
        )  # fmt: skip
        self._file(
            "css", "&Style sheet of HTML reports", "Style sheets (*.css)",
            "CSS added after the program's own; it may not load anything.",
        )  # fmt: skip
        self.show_settings()

    def _file(self, name: str, title: str, files: str, hint: str) -> None:
        field = PathField(title.replace("&", ""), files)
        field.changed.connect(partial(self._take, name))
        self._add(name, title, field, hint)


class _Appearance(_Form):
    def __init__(self, settings: Settings, changed: Callable[[], None]) -> None:
        super().__init__(settings, changed)
        self.theme = self._choice(
            "theme", "&Theme", {"system": "Follow the system", "light": "Light", "dark": "Dark"},
            "Exported figures always have a white ground.",
        )  # fmt: skip
        self.text = self._choice(
            "text_size", "Te&xt size", {percent: f"{percent} %" for percent in TEXT_SIZES},
            "Of all text, in percent of the system's text size.",
        )  # fmt: skip
        self.colours = self._choice(
            "colours", "&Colours", COLOUR_SETS,
            "Colours of states, regions and lines. All sets are safe for the colour-blind.",
        )  # fmt: skip
        self._samples = set_up(QLabel(), accessibleName="Samples of the colours")
        self._form.addRow("", self._samples)
        self.show_settings()

    def _take(self, name: str, value: object) -> None:
        super()._take(name, value)
        self._show_samples()

    def _show_samples(self) -> None:
        dark = self.palette().window().color().lightnessF() < 0.5
        theme = themes.coloured(themes.DARK if dark else themes.LIGHT, self._settings.colours)
        rows = (
            ("States", (theme.computing, theme.overhead, theme.io, theme.idle, theme.unmeasured)),
            ("Regions", theme.regions),
            ("Lines", (theme.curve, theme.fit, theme.residual, *theme.series)),
        )
        self._samples.setText(
            "<table cellspacing='4'>"
            + "".join(
                f"<tr><td>{title}&nbsp;</td>"
                + "".join(f"<td style='background: {colour}'>&nbsp;&nbsp;&nbsp;&nbsp;</td>" for colour in row)
                + "</tr>"
                for title, row in rows
            )
            + "</table>"
        )

    def show_settings(self) -> None:
        super().show_settings()
        self._show_samples()


def _windows() -> dict[str, tuple[str, tuple[AnyCommand, ...]]]:
    """Kinds of pages by their names in the settings: title, and table."""
    from desktop.ui.actions import COMMANDS
    from desktop.ui.compare.actions import COMPARE_COMMANDS
    from desktop.ui.experiment.actions import EXPERIMENT_COMMANDS
    from desktop.ui.model.actions import MODEL_COMMANDS

    return {
        "main": ("Trace", COMMANDS),
        "compare": ("Compare runs", COMPARE_COMMANDS),
        "model": ("Factor model", MODEL_COMMANDS),
        "experiment": ("Experiments", EXPERIMENT_COMMANDS),
    }


class _Keys(QWidget):
    """Every command with its keys; those of the selected one can be changed."""

    def __init__(self, settings: Settings, changed: Callable[[], None]) -> None:
        super().__init__()
        self._settings, self._changed = settings, changed
        self._windows = _windows()
        self.filter = search_field("Words of a command, or a key", lambda _: self._filter())
        self.table = listing("Commands and their keys", "Command", "Keys", "Default")
        self.table.currentItemChanged.connect(lambda *_: self._row_chosen())
        self.edit = set_up(QKeySequenceEdit(), maximumSequenceLength=1, clearButtonEnabled=True)
        self.edit.setAccessibleName("New key")
        self.edit.keySequenceChanged.connect(self._tell)
        self.table.itemActivated.connect(lambda *_: self.edit.setFocus())
        # No default: Return in the words above is no answer.
        self.apply = button("&Set", lambda: self._assign(self._new_keys()), autoDefault=False)
        self.add = button("A&dd", self._append, autoDefault=False)
        self.none = button("&No key", lambda: self._assign(()), autoDefault=False)
        self.restore = button("&Default", lambda: self._assign(None), autoDefault=False)
        self.note = set_up(QLabel(), wordWrap=True, minimumHeight=2 * self.fontMetrics().height())
        self.note.setAlignment(Qt.AlignmentFlag.AlignTop)
        line = row(
            titled("Ne&w key:", self.edit), (self.edit, 1), self.apply, self.add, self.none, self.restore
        )
        lay_out(self, self.filter, (self.table, 1), line, self.note)
        self._fill()

    def _fill(self) -> None:
        self._heads: list[QTreeWidgetItem] = []
        for name, (title, commands) in {"all": ("All pages", (*STEPS, *COMMON)), **self._windows}.items():
            head = QTreeWidgetItem([title])
            self.table.addTopLevelItem(head)
            self._heads.append(head)
            for command in commands:
                if command.common == (name == "all"):
                    below = command.menu.partition("/")[2]
                    words = f"{below}: {command.title}" if below else command.title
                    item = set_up(
                        QTreeWidgetItem([words, "", _key_names(command.keys)]), toolTip=(0, command.tip)
                    )
                    item.setData(0, Qt.ItemDataRole.UserRole, (name, command))
                    head.addChild(item)
            head.setExpanded(True)
        self.show_settings()
        self.table.setCurrentItem(self._heads[0].child(0))

    def show_settings(self) -> None:
        """Write the keys of every command."""
        for item, (window, command) in self._rows():
            keys = self._settings.keys(window, command)
            item.setText(1, _key_names(keys))
            font = item.font(1)
            font.setBold(keys != command.keys)
            item.setFont(1, font)
        self._filter()

    def reset(self) -> None:
        self._settings.reset("keys")
        self.show_settings()
        self._row_chosen()

    def choose(self, window: str, command_id: str) -> None:
        """Select a row."""
        for item, (name, command) in self._rows():
            if (name, command.id) == (window, command_id):
                self.table.setCurrentItem(item)

    # ---- inside

    def _rows(self) -> list[tuple[QTreeWidgetItem, tuple[str, AnyCommand]]]:
        items = [head.child(k) for head in self._heads for k in range(head.childCount())]
        return [(item, item.data(0, Qt.ItemDataRole.UserRole)) for item in items]

    def _filter(self) -> None:
        words = self.filter.text().lower().split()
        for item, _ in self._rows():
            text = f"{item.text(0)} {item.text(1)} {item.toolTip(0)}".lower()
            item.setHidden(not all(word in text for word in words))
        for head in self._heads:
            head.setHidden(all(head.child(k).isHidden() for k in range(head.childCount())))

    def _current(self) -> tuple[str, AnyCommand] | None:
        item = self.table.currentItem()
        row: tuple[str, AnyCommand] | None = None if item is None else item.data(0, Qt.ItemDataRole.UserRole)
        return row

    def _new_keys(self) -> tuple[str, ...]:
        key = self.edit.keySequence().toString(_PORTABLE)
        return (key,) if key else ()

    def _row_chosen(self) -> None:
        self.edit.clear()
        self._tell()

    def _tell(self) -> None:
        """Say which commands would lose the new key."""
        current, keys = self._current(), self._new_keys()
        for one in (self.apply, self.add):
            one.setEnabled(current is not None and bool(keys))
        for widget in (self.none, self.restore, self.edit):
            widget.setEnabled(current is not None)
        if current is None:
            self.note.setText("Choose a command to change its keys.")
            return
        window, command = current
        if not keys:
            self.note.setText(f"{command.title}: {command.tip}.")
            return
        native = QKeySequence(keys[0]).toString(_NATIVE)
        owned = self._owners(window, command, keys[0])
        owners = ", ".join(f"“{other.title}” ({page})" for page, _, other in owned)
        belongs = f"belongs to {owners}, which loses it if you set it here"
        self.note.setText(f"{native} {belongs if owned else 'is free'}.")

    def _owners(self, window: str, command: AnyCommand, key: str) -> list[tuple[str, str, AnyCommand]]:
        """Commands that have `key` where `command` is too: title and name of the window, and the command."""
        owners: dict[tuple[str, str], tuple[str, str, AnyCommand]] = {}
        for kind, (title, commands) in self._windows.items():
            for other in commands if window in ("all", kind) else ():
                name = "all" if other.common else kind
                if (name, other.id) != (window, command.id) and key in self._settings.keys(name, other):
                    owners[name, other.id] = ("all windows" if other.common else title, name, other)
        return list(owners.values())

    def _append(self) -> None:
        if (current := self._current()) is not None:
            self._assign(tuple(dict.fromkeys((*self._settings.keys(*current), *self._new_keys()))))

    def _assign(self, keys: tuple[str, ...] | None) -> None:
        """Give the selected command these keys (None: those it had at first) and take them from others."""
        current = self._current()
        if current is None:
            return
        window, command = current
        for key in command.keys if keys is None else keys:
            for _, name, other in self._owners(window, command, key):
                remaining = tuple(k for k in self._settings.keys(name, other) if k != key)
                self._settings.set_keys(name, other, remaining)
        self._settings.set_keys(window, command, keys)
        self.show_settings()
        self._row_chosen()
        self._changed()


def _key_names(keys: Sequence[str]) -> str:
    return ", ".join(QKeySequence(key).toString(_NATIVE) for key in keys)

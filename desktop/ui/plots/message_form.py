"""The fields that say which messages the timeline shows."""

from __future__ import annotations

import re
from dataclasses import replace

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtWidgets import QCheckBox, QCompleter, QLabel, QLineEdit, QWidget

from desktop.core.units import quantity, read_quantity
from desktop.data.message_filter import MessageFilter
from desktop.ui.pages import button, form, lay_out, set_up
from desktop.workbench.bench import changed


class MessageForm(QWidget):
    """Bytes, duration, communicator, rank and tag; an empty field leaves no message out. Input that cannot be
    read is reported and changes nothing."""

    changed = Signal(object)  # a MessageFilter

    def __init__(self) -> None:
        super().__init__()
        self._filter = MessageFilter()
        self._communicators: dict[int, str] = {}
        self.show_box = QCheckBox("&Show messages")
        self.show_box.toggled.connect(lambda on: self._say(replace(self._filter, shown=on)))
        self.fields: dict[str, QLineEdit] = {}
        rows: list[tuple[str, QLineEdit]] = []
        for name, title, hint, tip in (
            ("least_bytes", "&Bytes, at least", "64 KiB", "Messages with at least this many bytes"),
            ("least_s", "&Duration, at least", "10 µs", "From the send to the receive"),
            ("communicator", "&Communicator", "any", "Its name or number in the trace"),
            ("partner", "&Rank", "any", "The sender or the receiver"),
            ("tag", "&Tag", "any", "The tag of the message"),
        ):
            field = set_up(QLineEdit(), objectName=f"messages_{name}", placeholderText=hint, toolTip=tip)
            field.setClearButtonEnabled(True)
            field.setMaximumWidth(16 * self.fontMetrics().averageCharWidth())
            field.textChanged.connect(self._typed)
            self.fields[name] = field
            rows.append((title, field))
        self.problem = set_up(QLabel(), objectName="messages_problem")
        self.reset = button("Show &all messages", lambda: self.show_filter(MessageFilter(), tell=True))
        lay_out(self, self.show_box, form(*rows), self.problem, self.reset)
        self.show_filter(self._filter)

    def set_communicators(self, names: dict[int, str]) -> None:
        """Set the names of the trace's communicators, as far as they have any."""
        if names != self._communicators:
            self._communicators = names
            field = self.fields["communicator"]
            completer = set_up(QCompleter([*names.values()], field), filterMode=Qt.MatchFlag.MatchContains)
            completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
            field.setCompleter(completer)
            self.show_filter(self._filter)

    def show_filter(self, criteria: MessageFilter, tell: bool = False) -> None:
        """Fill the fields; `tell`: emit `changed`."""
        self._filter = criteria
        texts = {
            "least_bytes": quantity(criteria.least_bytes, "B") if criteria.least_bytes else "",
            "least_s": quantity(criteria.least_s, "s") if criteria.least_s else "",
        }
        if criteria.communicator in self._communicators:
            texts["communicator"] = self._communicators[criteria.communicator]
        for name, field in self.fields.items():
            value = getattr(criteria, name)
            with QSignalBlocker(field):
                field.setText(texts.get(name, "" if value is None else str(value)))
        if criteria.least_bytes and read_quantity(texts["least_bytes"], "B") != criteria.least_bytes:
            with QSignalBlocker(self.fields["least_bytes"]):  # rounded for reading, it would be another one
                self.fields["least_bytes"].setText(str(criteria.least_bytes))
        with QSignalBlocker(self.show_box):
            self.show_box.setChecked(criteria.shown)
        self._mark("")
        if tell:
            self.changed.emit(criteria)

    def _typed(self) -> None:
        values: dict[str, float | int | None] = {}
        numbers = {called: number for number, called in self._communicators.items()}
        for name, field in self.fields.items():
            text = field.text().strip()
            if name in ("least_bytes", "least_s"):
                value = read_quantity(text, "B" if name == "least_bytes" else "s") if text else 0.0
                if value is None:
                    self._mark(f"“{text}” is not a number with a unit")
                    return
                values[name] = round(value) if name == "least_bytes" else value
            elif name == "communicator" and text in numbers:
                values[name] = numbers[text]
            elif name == "communicator" and numbers and re.search(r"[^\d−-]", text):
                self._mark(f"no communicator is called “{text}”")
                return
            else:
                if text and not re.fullmatch(r"[-−]?\d{1,18}", text):
                    self._mark(f"“{text}” is not a whole number")
                    return
                values[name] = int(text.replace("−", "-")) if text else None
        self._mark("")
        self._say(changed(MessageFilter(self._filter.shown), values))

    def _mark(self, problem: str) -> None:
        self.problem.setText(problem)
        self.problem.setVisible(bool(problem))

    def _say(self, criteria: MessageFilter) -> None:
        if criteria != self._filter:
            self._filter = criteria
            self.changed.emit(criteria)

"""Opening with options: what kind a trace is said to be, where it is read; and which of several to open."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialogButtonBox,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QSpinBox,
    QWidget,
)

from desktop.core.units import capital
from desktop.remote import RemotePath, hosts, how, named, place
from desktop.ui.dialogs import Dialog
from desktop.ui.pages import asked_path, button, choices, form, lay_out, quiet, row, set_up
from desktop.ui.settings import Settings
from desktop.workbench.model import AS_FOUND, UNITS, OpenOptions

_MOST_PROCESSES = 1024


class OpenDialog(Dialog):
    """Asks for a trace and how to open it; `opened` gets both. What was chosen last comes first again."""

    last: ClassVar[OpenOptions] = AS_FOUND

    def __init__(
        self, opened: Callable[[Path, OpenOptions], None], folder: str, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent, "open_with", "Open with options")
        self._opened, self._folder = opened, folder
        self._make_fields()
        fields = form(
            ("&Trace", self._source_row()), ("&Kind", self.kind), ("&Unit of time", self.unit),
            ("&Processes", self.workers), ("&Scheduler", self.scheduler), ("", self.force),
        )  # fmt: skip
        self._buttons = self.ending(QDialogButtonBox.StandardButton.Open)
        lay_out(self, fields, self._buttons)
        self.resize(34 * self.fontMetrics().height(), self.sizeHint().height())
        self._show(self.last)

    def _make_fields(self) -> None:
        from desktop.data.importers import FORMATS, importer

        self.source = set_up(QLineEdit(), objectName="source", textChanged=lambda _: self._refresh())
        titles = {format_id: importer(format_id).title for format_id in FORMATS}
        kinds = {None: "Detect"} | {key: capital(title) for key, title in titles.items()}
        self.kind = choices(kinds, objectName="kind", currentIndexChanged=lambda _: self._refresh())
        self.unit = choices({unit: unit for unit in UNITS}, objectName="unit")
        self.unit.setToolTip("Of the times in a curve file, or in an OTF trace that does not say it")
        self.workers = set_up(QSpinBox(), objectName="workers", range=(0, _MOST_PROCESSES))
        self.workers.setSpecialValueText("As many as pay")
        self.workers.setToolTip("That read the locations of a large trace side by side, here")
        self.scheduler = set_up(QLineEdit(), objectName="scheduler")
        if importlib.util.find_spec("distributed") is None:
            self.scheduler.setEnabled(False)
            self.scheduler.setPlaceholderText("for a cluster, install phasewright[cluster]")
        else:
            self.scheduler.setPlaceholderText("none; such as tcp://host:8786")
        self.scheduler.setToolTip(
            "Of a dask.distributed cluster that reads instead; it must see the trace and your cache"
        )
        self.force = set_up(QCheckBox("&Import anew, even if it was imported before"), objectName="force")

    def _source_row(self) -> QHBoxLayout:
        return row(
            (self.source, 1),
            button("&File…", self._choose_file, autoDefault=False),
            button("Fol&der…", self._choose_folder, autoDefault=False),
        )

    def _choose_file(self) -> None:
        self._take(asked_path(self, "Open a trace", self._folder))

    def _choose_folder(self) -> None:
        self._take(asked_path(self, "Open a trace that is a folder", self._folder, way="folder"))

    def _take(self, path: Path | None) -> None:
        if path is not None:
            self.source.setText(str(path))

    def _refresh(self) -> None:
        self.unit.setEnabled(self.kind.currentData() in (None, "curve", "otf1"))
        there = self.source.text().strip()
        self._buttons.button(QDialogButtonBox.StandardButton.Open).setEnabled(
            bool(there) and _is_place(there)
        )

    def _show(self, options: OpenOptions) -> None:
        self.kind.setCurrentIndex(max(0, self.kind.findData(options.format_id)))
        self.unit.setCurrentIndex(self.unit.findData(options.time_unit))
        self.workers.setValue(options.workers or 0)
        if self.scheduler.isEnabled():
            self.scheduler.setText(options.scheduler or "")
        self._refresh()

    def options(self) -> OpenOptions:
        """As the fields say."""
        return OpenOptions(
            format_id=self.kind.currentData(),
            time_unit=self.unit.currentData() if self.unit.isEnabled() else AS_FOUND.time_unit,
            force=self.force.isChecked(),
            workers=self.workers.value() or None,
            scheduler=self.scheduler.text().strip() or None,
        )

    def accept(self) -> None:
        path, options = named(self.source.text().strip()).expanduser(), self.options()
        OpenDialog.last = options
        super().accept()
        self._opened(path, options)


class RemoteDialog(Dialog):
    """Asks for a trace on another machine; `opened` gets it, and the scheduler that its import is to use."""

    def __init__(
        self, opened: Callable[[Path, OpenOptions], None], settings: Settings, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent, "open_remote", "Open remote")
        self._opened, self._settings = opened, settings
        recent = [path for path in settings.recent if isinstance(path, RemotePath)]
        self.host = set_up(QComboBox(), objectName="host", editable=True)
        self.host.addItems(hosts())
        self.host.setToolTip("As ssh knows it: a name of ~/.ssh/config, or [user@]host[:port]")
        self.path = set_up(QComboBox(), objectName="path", editable=True)
        self.path.addItems([path.there for path in recent])
        self.path.setToolTip("Of the trace there; what begins with ~/ is in your home there")
        self.host.setCurrentText(recent[0].destination if recent else "")
        self.path.setCurrentText(recent[0].there if recent else "")
        self.scheduler = set_up(QLineEdit(), objectName="scheduler", placeholderText="none")
        self.scheduler.setToolTip("Of a dask.distributed cluster there that imports, such as tcp://host:8786")
        self.command = set_up(QLineEdit(settings.remote_command), objectName="command")
        self.command.setPlaceholderText("phasewright serve, as a login shell finds it")
        self.command.setToolTip("What ssh runs there; kept for all hosts")
        fields = form(
            ("&Host", self.host), ("&Trace", self.path), ("&Scheduler", self.scheduler),
            ("&Program there", self.command),
        )  # fmt: skip
        note = quiet("Your own ssh connects. The trace is imported there; what you look at comes here.")
        self._buttons = self.ending(QDialogButtonBox.StandardButton.Open)
        lay_out(self, fields, note, self._buttons)
        self.host.editTextChanged.connect(lambda _: self._refresh())
        self.path.editTextChanged.connect(lambda _: self._refresh())
        self.resize(34 * self.fontMetrics().height(), self.sizeHint().height())
        self._refresh()

    def _place(self) -> str:
        return f"ssh://{self.host.currentText().strip()}/{self.path.currentText().strip().lstrip('/')}"

    def _refresh(self) -> None:
        self._buttons.button(QDialogButtonBox.StandardButton.Open).setEnabled(_is_place(self._place()))

    def accept(self) -> None:
        path, scheduler = named(self._place()), self.scheduler.text().strip() or None
        self._settings.remote_command = how.command = self.command.text().strip()
        super().accept()
        self._opened(path, OpenOptions(scheduler=scheduler))


def _is_place(text: str) -> bool:
    """Whether there can be something: on another machine nobody has looked."""
    try:
        path = place(text)
    except ValueError:
        return False
    return isinstance(path, RemotePath) or path.expanduser().exists()


class ChoiceDialog(Dialog):
    """Asks which one of several traces in an archive is opened; `chosen` gets its name."""

    def __init__(self, names: Sequence[str], chosen: Callable[[str], None], parent: QWidget) -> None:
        super().__init__(parent, "choose", "Open one of several traces")
        question = f"There are {len(names)} traces in it. Which one is to be opened?"
        self.list = QListWidget()
        self.list.addItems(list(names))
        set_up(self.list, currentRow=0, accessibleName=question, itemActivated=lambda _: self.accept())
        lay_out(self, quiet(question), self.list, self.ending())
        self.accepted.connect(lambda: chosen(self.list.currentItem().text()))
        em = self.fontMetrics().height()
        self.resize(32 * em, 18 * em)

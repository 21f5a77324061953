"""Dialogs that ask what to open: with options, on another machine, one of several traces."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

from PySide6.QtWidgets import QCheckBox, QDialogButtonBox, QLineEdit, QListWidget, QSpinBox, QWidget

from desktop.core.units import capital
from desktop.remote import RemotePath, hosts, how, named, place
from desktop.ui.dialogs import Dialog
from desktop.ui.pages import asked_path, button, by_text, choices, form, lay_out, quiet, row, set_up
from desktop.ui.settings import Settings
from desktop.workbench.model import DETECT, UNITS, OpenOptions

_MOST_PROCESSES = 1024


class OpenDialog(Dialog):
    """Asks for a trace and how to open it; `open_trace` gets both. The last choice is offered again."""

    last: ClassVar[OpenOptions] = DETECT

    def __init__(
        self, open_trace: Callable[[Path, OpenOptions], None], folder: str, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent, "open_with", "Open with options")
        self._open_trace, self._folder = open_trace, folder
        self._make_fields()
        file, folders = partial(self._choose, "Open a trace", "open"), "Open a trace that is a folder"
        source = row(
            (self.source, 1), button("&File…", file, autoDefault=False),
            button("Fol&der…", partial(self._choose, folders, "folder"), autoDefault=False),
        )  # fmt: skip
        fields = form(
            ("&Trace", source), ("&Kind", self.kind), ("&Unit of time", self.unit),
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
        times = "Of the times in a curve file, or in an OTF trace that does not say it"
        self.unit = choices(by_text(UNITS), objectName="unit", toolTip=times)
        self.workers = set_up(
            QSpinBox(), objectName="workers", range=(0, _MOST_PROCESSES), specialValueText="Automatic",
            toolTip="Processes that read the locations of a large trace in parallel, on this machine",
        )  # fmt: skip
        none = importlib.util.find_spec("distributed") is None
        self.scheduler = set_up(
            QLineEdit(), objectName="scheduler", enabled=not none,
            placeholderText="for a cluster, install phasewright[cluster]" if none
            else "none; such as tcp://host:8786",
            toolTip="A dask.distributed cluster that reads instead and sees the trace and your cache",
        )  # fmt: skip
        self.force = set_up(QCheckBox("&Import again, even if it was imported before"), objectName="force")

    def _choose(self, title: str, mode: str) -> None:
        if (path := asked_path(self, title, self._folder, mode=mode)) is not None:
            self.source.setText(str(path))

    def _refresh(self) -> None:
        self.unit.setEnabled(self.kind.currentData() in (None, "curve", "otf1"))
        text = self.source.text().strip()
        opens = self._buttons.button(QDialogButtonBox.StandardButton.Open)
        opens.setEnabled(bool(text) and _is_place(text))

    def _show(self, options: OpenOptions) -> None:
        self.kind.setCurrentIndex(max(0, self.kind.findData(options.format_id)))
        self.unit.setCurrentIndex(self.unit.findData(options.time_unit))
        self.workers.setValue(options.workers or 0)
        if self.scheduler.isEnabled():
            self.scheduler.setText(options.scheduler or "")
        self._refresh()

    def options(self) -> OpenOptions:
        """How to open the trace, as the fields say."""
        return OpenOptions(
            format_id=self.kind.currentData(),
            time_unit=self.unit.currentData() if self.unit.isEnabled() else DETECT.time_unit,
            force=self.force.isChecked(),
            workers=self.workers.value() or None,
            scheduler=self.scheduler.text().strip() or None,
        )

    def accept(self) -> None:
        path, options = named(self.source.text().strip()).expanduser(), self.options()
        OpenDialog.last = options
        super().accept()
        self._open_trace(path, options)


class RemoteDialog(Dialog):
    """Asks for a trace on another machine; `open_it` gets it, and the scheduler of its import."""

    def __init__(
        self, open_it: Callable[[Path, OpenOptions], None], settings: Settings, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent, "open_remote", "Open remote")
        self._open_trace, self._settings = open_it, settings
        recent = [path for path in settings.recent if isinstance(path, RemotePath)]
        host, path = (recent[0].destination, recent[0].remote_path) if recent else ("", "")
        self.host = choices(
            by_text(hosts()), objectName="host", editable=True, currentText=host,
            toolTip="As ssh knows it: a name of ~/.ssh/config, or [user@]host[:port]",
        )  # fmt: skip
        self.path = choices(
            by_text(p.remote_path for p in recent), objectName="path", editable=True, currentText=path,
            toolTip="Path of the trace there; ~/ is your home directory there",
        )  # fmt: skip
        self.scheduler = set_up(
            QLineEdit(), objectName="scheduler", placeholderText="none",
            toolTip="Scheduler of a dask.distributed cluster there that imports, as tcp://host:8786",
        )  # fmt: skip
        self.command = set_up(
            QLineEdit(settings.remote_command), objectName="command",
            placeholderText="phasewright serve, as a login shell finds it",
            toolTip="The command that ssh runs there; kept for all hosts",
        )  # fmt: skip
        fields = form(
            ("&Host", self.host), ("&Trace", self.path), ("&Scheduler", self.scheduler),
            ("&Program there", self.command),
        )  # fmt: skip
        note = quiet(
            "Your own ssh connects. The trace is imported there; only what you look at is transferred."
        )
        self._buttons = self.ending(QDialogButtonBox.StandardButton.Open)
        lay_out(self, fields, note, self._buttons)
        for box in (self.host, self.path):
            box.editTextChanged.connect(lambda _: self._refresh())
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
        self._open_trace(path, OpenOptions(scheduler=scheduler))


def _is_place(text: str) -> bool:
    """Whether a trace may be there: always on another machine, which is not asked."""
    try:
        path = place(text)
    except ValueError:
        return False
    return isinstance(path, RemotePath) or path.expanduser().exists()


class ChoiceDialog(Dialog):
    """Asks which one of several traces in an archive is opened; `choose` gets its name."""

    def __init__(self, names: Sequence[str], choose: Callable[[str], None], parent: QWidget) -> None:
        super().__init__(parent, "choose", "Open one of several traces")
        question = f"It contains {len(names)} traces. Which one should be opened?"
        self.list = QListWidget()
        self.list.addItems(list(names))
        set_up(self.list, currentRow=0, accessibleName=question, itemActivated=lambda _: self.accept())
        lay_out(self, quiet(question), self.list, self.ending())
        self.accepted.connect(lambda: choose(self.list.currentItem().text()))
        em = self.fontMetrics().height()
        self.resize(32 * em, 18 * em)

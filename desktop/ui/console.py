"""A Python console in the window, bound to the open trace: pyqtgraph's, off until the user turns it on.

Nothing in a file turns it on or runs in it, and it goes off with the trace, so that the user is asked again
for every file.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QDockWidget, QMainWindow, QMessageBox, QWidget

from desktop.ui.guard import guarded
from desktop.ui.pages import set_up
from desktop.workbench.jobs import Deliver, Job, Lane
from desktop.workbench.workbench import Workbench

_QUESTION = "Turn on the Python console for {}?"
_RIGHTS = (
    "Code typed there runs with all your rights. The trace or project runs nothing in it; "
    "type only what you understand. It goes off with this trace."
)
_GREETING = """run      {title}, as pw.open opens a project (handbook: Python and notebooks), with the
         curve, limit, rules, phases and names that the window has now: run.phases()
pw       import phasewright as pw
n        the number of these phases
window   this page, as window.curve_view.lanes["curve"].addItem(...)
"""


class PythonConsole(QDockWidget):
    """The console as a dock of `page`, a tab with `beside`; `say` tells what fails, `gone` is called when it
    is off again."""

    def __init__(
        self,
        page: QMainWindow,
        workbench: Workbench,
        deliver: Deliver,
        say: Callable[[str], object],
        gone: Callable[[], object],
        beside: QDockWidget,
    ) -> None:
        super().__init__("Python console", page)
        set_up(self, objectName="dock_console", attribute=Qt.WidgetAttribute.WA_DeleteOnClose)
        self._page, self._bench, self._say, self._gone = page, workbench, say, gone
        self._run: Any = None  # of `desktop.notebook`, which stands above
        self._beside = beside
        self.console: Any = None  # pyqtgraph's, which has no types
        self.document = workbench.snapshot.document
        self._lane = Lane("console", latest=True, deliver=deliver)
        self._box: QMessageBox | None = None
        self._ask()

    def _ask(self) -> None:
        assert self.document is not None
        button = QMessageBox.StandardButton
        text = _QUESTION.format(self.document.title)
        box = QMessageBox(QMessageBox.Icon.Question, "Phasewright", text, button.Yes | button.No, self._page)
        set_up(box, objectName="console_question", informativeText=_RIGHTS, defaultButton=button.No)
        box.setTextFormat(Qt.TextFormat.PlainText)

        def answered(answer: int) -> None:
            self._box = None
            box.deleteLater()
            if answer == button.Yes:
                self._open()
            else:
                self.close()

        self._box = box
        box.finished.connect(answered)
        box.open()

    def _open(self) -> None:
        document, project = self.document, self._bench.snapshot.project
        assert document is not None
        library = import_module("desktop.notebook")  # what users import as phasewright

        def work(_job: Job) -> object:
            words = dict.fromkeys(("start", "end", "curve", "as_recorded"))  # as the project says
            return library.Run(document.store, words, project)

        def done(run: object) -> None:
            self._run = run
            names = {"run": run, "pw": library, "n": project.phases.n, "window": self._page}
            for name in ("exit", "quit"):
                names[name] = self.close
            from pyqtgraph.console import ConsoleWidget

            self.console = ConsoleWidget(self, namespace=names, text=_GREETING.format(title=document.title))
            for widget in (self.console, *self.console.findChildren(QWidget)):
                vars(widget).pop("layout", None)  # hides Qt's method of this name
            set_up(self.console.input, accessibleName="Python", objectName="console_input")
            set_up(self.console.output, accessibleName="Output of the Python console")
            self.setWidget(self.console)
            self._page.tabifyDockWidget(self._beside, self)
            self.show()
            self.raise_()
            self.console.input.setFocus()

        def failed(error: BaseException) -> None:
            self._say(f"The Python console cannot be turned on: {error}")
            self.close()

        self._lane.submit("Turning on the Python console", work, done, failed)

    @property
    def busy(self) -> bool:
        """Whether it is being turned on."""
        return self._lane.busy

    @guarded
    def closeEvent(self, event: QCloseEvent) -> None:
        super().closeEvent(event)
        self.turn_off()

    def turn_off(self) -> None:
        """Close the trace and the console's jobs."""
        if self._box is not None:
            self._box.close()
        self._lane.close(wait=False)
        if self._run is not None:
            self._run.close()
            self._run = None
        self._gone()

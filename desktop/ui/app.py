"""The application object: names, style, font, and when garbage is collected."""

from __future__ import annotations

import gc
import sys

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QTimer, Signal, qInstallMessageHandler
from PySide6.QtGui import QFileOpenEvent, QFont, QFontDatabase, QIcon
from PySide6.QtWidgets import QApplication

import desktop
from desktop import resources
from desktop.ui.crashes import qt_says
from desktop.ui.guard import guarded
from desktop.ui.pages import set_up
from desktop.ui.settings import APPLICATION, ORGANISATION


class Application(QApplication):
    """Emits the file that macOS asks the running program to open; other systems start it anew."""

    fileAsked = Signal(str)

    @guarded(otherwise=bool)
    def event(self, event: QEvent) -> bool:
        if isinstance(event, QFileOpenEvent) and event.file():
            self.fileAsked.emit(event.file())
            return True
        return super().event(event)


def application() -> QApplication:
    """The one QApplication, with names, style and the bundled font."""
    app = QApplication.instance()
    if isinstance(app, QApplication):
        return app
    QCoreApplication.setOrganizationName(ORGANISATION)
    QCoreApplication.setApplicationName(APPLICATION)
    QCoreApplication.setApplicationVersion(desktop.__version__)
    qInstallMessageHandler(qt_says)
    icon = QIcon(str(resources.folder() / "icons" / "phasewright.svg"))
    app = set_up(
        Application(sys.argv[:1]), applicationDisplayName="Phasewright", style="Fusion", windowIcon=icon,
        desktopFileName=resources.DESKTOP_ID,
    )  # fmt: skip
    load_font(app)
    Garbage(app)
    return app


class Garbage(QObject):
    """Collects Python's garbage in the window's thread, and only there.

    Python collects in whichever thread happens to allocate. A closed window is often part of a cycle, and a
    widget that is freed by a worker's thread aborts the program.

    To search all objects takes longer than a picture may, and most of them are of imported modules. So what
    is there when modules have been imported, and what a full search has left, is set aside, until a window is
    closed, another trace is shown (`gc.unfreeze`), or so many searches have been made.
    """

    INTERVAL_MS = 500
    WHOLE = 10

    def __init__(self, app: QApplication) -> None:
        super().__init__(app)
        gc.disable()
        self._modules, self._full = len(sys.modules), 0
        self._timer = set_up(QTimer(self), timeout=self.collect)
        self._timer.start(self.INTERVAL_MS)

    def collect(self) -> None:
        """Collect what Python's own collector would have by now."""
        if len(sys.modules) > self._modules:
            self._modules = len(sys.modules)
            gc.freeze()
            return
        for generation, (count, limit) in enumerate(zip(gc.get_count(), gc.get_threshold(), strict=True)):
            if limit and count > limit:
                gc.collect(generation)
                if generation == 2:
                    self._full += 1
                    (gc.freeze if self._full % self.WHOLE else gc.unfreeze)()


def load_font(app: QApplication) -> None:
    """Use the bundled font: text and pictures are alike on all machines, and exist where no font is."""
    families: list[str] = []
    for file in sorted((resources.folder() / "fonts").glob("*.ttf")):
        number = QFontDatabase.addApplicationFont(str(file))
        families += QFontDatabase.applicationFontFamilies(number)
    if families:
        font = QFont(families[0])
        font.setPointSizeF(max(9.0, app.font().pointSizeF()))
        app.setFont(font)

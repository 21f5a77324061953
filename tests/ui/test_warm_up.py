"""The window tells of kernels that are compiled beforehand, and stops that on request and at its end."""

from __future__ import annotations

from threading import Event

from PySide6.QtWidgets import QMainWindow
from pytestqt.qtbot import QtBot

from desktop.progress import Progress
from desktop.ui.warming import WarmUp


class Work:
    def __init__(self) -> None:
        self.begun, self.go, self.ended = Event(), Event(), Event()

    def __call__(self, progress: Progress) -> bool:
        self.begun.set()
        try:
            while not self.go.wait(0.01):
                progress.step(0.5, 1.0, "trace 3 of 6")
        finally:
            self.ended.set()
        return True


def made(qtbot: QtBot) -> tuple[QMainWindow, Work, WarmUp]:
    window, work = QMainWindow(), Work()
    qtbot.addWidget(window)
    window.show()
    warm = WarmUp(window, work)
    warm.begin()
    assert warm.line is not None
    qtbot.waitUntil(lambda: "trace 3 of 6" in warm.line.text)  # type: ignore[union-attr]  # it is there
    assert warm.line.isVisible() and warm.line.progress.value() == 500
    return window, work, warm


def test_it_is_told_of_and_goes_when_all_is_compiled(qtbot: QtBot) -> None:
    _, work, warm = made(qtbot)
    work.go.set()
    qtbot.waitUntil(lambda: not warm.busy)
    assert warm.line is not None and not warm.line.isVisible()
    warm.close()


def test_cancel_ends_it(qtbot: QtBot) -> None:
    _, work, warm = made(qtbot)
    assert warm.line is not None
    warm.line.cancel.click()
    assert work.ended.wait(10) and not warm.line.isVisible()
    warm.close()


def test_it_outlives_its_window_and_ends_with_the_program(qtbot: QtBot) -> None:
    window, work, warm = made(qtbot)
    window.deleteLater()
    qtbot.waitUntil(lambda: warm.line is None)
    qtbot.wait(50)
    assert not work.ended.is_set()
    warm.close()
    assert work.ended.is_set()


def test_what_fails_is_no_trouble_of_the_user(qtbot: QtBot) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)

    def fails(progress: Progress) -> bool:
        raise OSError("no process")

    warm = WarmUp(window, fails)
    warm.begin()
    qtbot.waitUntil(lambda: not warm.busy)
    assert warm.line is not None and not warm.line.isVisible()
    warm.close()

"""The window tells of kernels that are compiled beforehand, and stops that on request and at its end."""

from __future__ import annotations

from threading import Event

from pytestqt.qtbot import QtBot

from desktop.progress import Progress
from desktop.ui.frame import Frame
from desktop.ui.settings import Settings
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


def made(qtbot: QtBot, settings: Settings) -> tuple[Frame, Work, WarmUp]:
    window, work = Frame(settings), Work()
    qtbot.addWidget(window)
    window.show()
    warm = WarmUp(window, work)
    warm.begin()
    qtbot.waitUntil(lambda: "trace 3 of 6" in window.task_list.text)
    assert window.task_list.isVisible() and window.task_list.lines[0].progress.value() == 500
    return window, work, warm


def test_it_is_told_of_and_goes_when_all_is_compiled(qtbot: QtBot, settings: Settings) -> None:
    window, work, warm = made(qtbot, settings)
    work.go.set()
    qtbot.waitUntil(lambda: not warm.busy)
    assert not window.task_list.isVisible()
    warm.close()


def test_cancel_ends_it(qtbot: QtBot, settings: Settings) -> None:
    window, work, warm = made(qtbot, settings)
    window.task_list.lines[0].cancel.click()
    assert work.ended.wait(10) and not window.task_list.isVisible()
    warm.close()


def test_it_outlives_its_window_and_ends_with_the_program(qtbot: QtBot, settings: Settings) -> None:
    window, work, warm = made(qtbot, settings)
    window.close()
    qtbot.wait(50)
    assert warm.busy and not work.ended.is_set()
    warm.close()
    assert work.ended.is_set()


def test_what_fails_is_no_trouble_of_the_user(qtbot: QtBot, settings: Settings) -> None:
    window = Frame(settings)
    qtbot.addWidget(window)

    def fails(progress: Progress) -> bool:
        raise OSError("no process")

    warm = WarmUp(window, fails)
    warm.begin()
    qtbot.waitUntil(lambda: not warm.busy)
    assert window.task_list.text == "" and not window.problem_bar.sentence
    warm.close()
    window.close()

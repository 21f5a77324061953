"""Nothing moves under the pointer: what can be clicked stays where it is while sentences come and go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QHeaderView,
    QLineEdit,
    QPlainTextEdit,
    QProgressBar,
    QScrollBar,
    QStatusBar,
    QToolBar,
    QWidget,
)
from pytestqt.qtbot import QtBot

from desktop.ui.chips import ChipBar
from desktop.ui.compare_page import ComparePage
from desktop.ui.experiment_page import ExperimentPage
from desktop.ui.message_bar import MessageBar
from desktop.ui.model_page import ModelPage
from desktop.ui.page import Page
from desktop.ui.plots.chart import Chart
from desktop.ui.plots.time_plot import TimePlot
from desktop.ui.task_line import Running, TaskLine
from desktop.workbench.jobs import Task
from tests.ui.scene import Scene

LONG = "a sentence that is so long that it needs more than one line of any window, " * 8
USED = (
    *(QAbstractButton, QAbstractItemView, QAbstractSlider, QAbstractSpinBox, QComboBox, QLineEdit),
    *(QPlainTextEdit, QProgressBar, Chart, TimePlot),
)


def places(window: QWidget) -> dict[str, QRect]:
    """Where everything is that can be clicked in a page and the frame around it, but for what comes and goes
    itself."""
    QApplication.processEvents()
    found: dict[str, QRect] = {}
    window = window.window()
    for widget in window.findChildren(QWidget):
        if not widget.isVisible() or widget.window() is not window or not isinstance(widget, USED):
            continue
        above: list[QWidget] = []
        parent = widget.parentWidget()
        while parent is not None:
            above.append(parent)
            parent = parent.parentWidget()
        if isinstance(widget, QScrollBar | QHeaderView) or any(
            isinstance(one, MessageBar | ChipBar | TaskLine | QStatusBar | QScrollBar) for one in above
        ):
            continue
        if any(isinstance(one, QToolBar) for one in above) and not widget.objectName():
            continue  # the button with what a bar has no room for
        name = f"{type(widget).__name__} {widget.objectName() or widget.accessibleName()} {id(widget)}"
        place = QRect(widget.mapTo(window, QPoint()), widget.size())
        if place.intersects(window.rect()):  # what lies behind another panel is moved out of sight by Qt
            found[name] = place
    return found


def moved(window: QWidget, acts: dict[str, Callable[[], object]], settle: Callable[[], object]) -> list[str]:
    """What was elsewhere after any of the acts, one after the other."""
    settle()
    found, before = [], places(window)
    assert before
    for name, act in acts.items():
        act()
        settle()
        now = places(window)
        found += [
            f"{name}: {key} {before[key].getRect()} {now[key].getRect()}"
            for key in before.keys() & now.keys()
            if before[key] != now[key]
        ]
        before = now
    return found


def bars(window: Page) -> dict[str, Callable[[], object]]:
    """What any window may have to say at any time."""
    problem = window.frame.problem_bar  # type: ignore[attr-defined]  # every window has one
    line = window.frame.task_list  # type: ignore[attr-defined]
    return {
        "a problem": lambda: problem.show_message(LONG, "details"),
        "its details": lambda: problem._fold.setChecked(True),
        "no problem": problem.hide,
        "a task": lambda: line.show_tasks({line: (Running(Task("Reading", LONG, 1, 3)), "")}),
        "no task": lambda: line.show_tasks({}),
        "a message": lambda: window.frame.statusBar().showMessage(LONG),
        "no message": lambda: window.frame.statusBar().clearMessage(),
    }


def test_the_trace_window_is_still(scene: Scene) -> None:
    main = scene.main
    bench = main.workbench
    bench.select(None)
    bench.select_phase(None)
    acts = bars(main) | {
        "a selection": lambda: bench.select((0.1, 0.2)),
        "another": lambda: bench.select((0.1, 0.9)),
        "the pointer": lambda: main._show_cursor(0.3),
        "no selection": lambda: bench.select(None),
        "a phase": lambda: bench.select_phase(1),
        "computing otherwise": lambda: bench.set_repaired(not bench.snapshot.document.repaired),  # type: ignore[union-attr]
        "as before": bench.reset_clocks,
        "no phase": lambda: bench.select_phase(None),
        "a notice": lambda: main.frame.notice_bar.show_message(LONG),
        "no notice": main.frame.notice_bar.hide,
    }
    main.show_panel("phases")
    found = moved(main, acts, scene.settle)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("n", range(3, 9))
def test_a_click_in_the_pictures_of_the_error_moves_none_of_them(scene: Scene, n: int) -> None:
    main = scene.main
    main.show_panel("phases")
    main.workbench.set_n(n - 1)
    found = moved(main, {f"n = {n}": lambda: main.workbench.set_n(n)}, scene.settle)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("kind", "number"),
    [(ComparePage, 0), (ModelPage, 0), (ExperimentPage, 0), (ExperimentPage, 1)],
)
def test_other_windows_are_still(scene: Scene, kind: type[Page], number: int) -> None:
    window = scene.page(kind, number)
    found = moved(window, bars(window), scene.settle)
    assert not found, "\n".join(found)


def test_the_run_page_is_still(qtbot: QtBot, scene: Scene) -> None:
    """While trials run, its buttons and its table stay where they are."""
    window = scene.page(ExperimentPage, 1)
    window.show_step(2)
    page, now = window.run_page, window.bench.snapshot
    running = replace(now, running="running", consented=True, task=Task("Trials", "trial 3 of 8, F1 + F2"))
    said = replace(running, task=Task("Trials", LONG[:250]))
    shown = [
        now,
        running,
        said,
        replace(running, running="paused"),
        replace(running, running="stopping"),
        now,
    ]
    acts = {
        f"{k} {new.running}": lambda old=old, new=new: page.show_snapshot(old, new)
        for k, (old, new) in enumerate(pairwise(shown))
    }
    found = moved(window, acts, scene.settle)
    assert not found, "\n".join(found)

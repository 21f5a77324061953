"""Windows of one test after another in one process."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QSettings
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from desktop.ui.app import load_font
from desktop.ui.settings import Settings
from tests.ui.scene import Scene

# Where much else runs, what takes a moment takes ten seconds; pytest-qt would wait for five.
for wait in (QtBot.waitUntil, QtBot.waitSignal, QtBot.waitExposed):
    wait.__kwdefaults__["timeout"] = 60_000

#: The oldest generation that is searched for garbage when a test has ended: what it has made is in the first
#: two. (In the last are, once a window that closes has called `gc.unfreeze`, all modules.) When the last test
#: of a file has, all are searched.
SEARCHED = [1]


@pytest.fixture(scope="module", autouse=True)
def garbage_is_collected_here(collector_runs: None) -> Iterator[None]:
    """As in the program (`desktop.ui.app.Garbage`): widgets freed by a worker's thread abort the process."""
    gc.disable()
    SEARCHED[0] = 1
    yield
    gc.unfreeze()
    SEARCHED[0] = 2


def pytest_runtest_logfinish() -> None:
    """A test's windows go when nothing of it is left; what has stayed need not be looked through again."""
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    gc.collect(SEARCHED[0])
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def clipboard_is_left_empty(qapp: QApplication) -> Iterator[None]:
    """The offscreen clipboard would free what Python made after Python has ended, which ends the process."""
    yield
    QGuiApplication.clipboard().clear()


@pytest.fixture
def settings(qapp: QApplication, tmp_path: Path) -> Settings:
    """As at first, for windows that show the program's font."""
    load_font(qapp)
    return Settings(QSettings(str(tmp_path / "settings.ini"), QSettings.Format.IniFormat))


@pytest.fixture
def no_thread_left() -> Iterator[None]:
    """What is asked for after it must have ended its threads, of which some need a moment: a presentation
    that closes does not wait for its own."""
    yield
    for _ in range(100):
        left = [t.name for t in threading.enumerate() if t.name.startswith("phasewright")]
        if not left:
            break
        time.sleep(0.05)
    assert not left


@pytest.fixture(scope="module")
def scene(qapp: QApplication, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """All windows of the program, for all tests of a file."""
    place = tmp_path_factory.mktemp("scene")
    for name in ("CACHE", "STATE", "DATA"):
        os.environ[f"XDG_{name}_HOME"] = str(place / name.lower())
    load_font(qapp)
    made = Scene(qapp, Settings(QSettings(str(place / "s.ini"), QSettings.Format.IniFormat)), place)
    yield made
    made.close()
    for name in ("CACHE", "STATE", "DATA"):
        del os.environ[f"XDG_{name}_HOME"]

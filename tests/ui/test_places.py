"""Windows and dialogs open wholly on a screen: small ones, several, and those that are there no more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QRect, QSettings
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QWidget

from desktop.ui.app import application
from desktop.ui.frame import Frame
from desktop.ui.settings import Settings
from desktop.ui.sizes import inside
from desktop.ui.windows import Windows
from tests.ui.scene import OPENERS, Scene, free, open_handbook, wait

ROOT = Path(__file__).parent.parent.parent
SIDE = st.integers(1, 4000)
PLACE = st.integers(-5000, 5000)


RECT = st.builds(QRect, PLACE, PLACE, SIDE, SIDE)


@given(RECT, RECT)
def test_a_frame_is_put_inside(frame: QRect, room: QRect) -> None:
    found = inside(frame, room)
    assert room.contains(found)
    assert found.size() == frame.size().boundedTo(room.size())
    if room.contains(frame):
        assert found == frame


#: A small one, and a larger one that stands lower.
SCREENS = [(0, 0, 800, 600), (800, 200, 1920, 1080)]


def test_everything_opens_on_a_screen(tmp_path: Path) -> None:
    """Windows that were on a screen that is gone, that were too large, and several beside each other."""
    screens = [
        {"name": f"s{k}", "x": x, "y": y, "width": w, "height": h, "logicalDpi": 96, "dpr": 1}
        for k, (x, y, w, h) in enumerate(SCREENS)
    ]
    config = tmp_path / "screens.json"
    config.write_text(json.dumps({"screens": screens}))
    environment = os.environ | {
        f"XDG_{one}_HOME": str(tmp_path / one) for one in ("CACHE", "STATE", "DATA", "CONFIG")
    }
    environment["QT_QPA_PLATFORM"] = f"offscreen:configfile={config}"
    words = [sys.executable, "-X", "faulthandler", "-m", "tests.ui.test_places", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{len(screens)} screens\n"), (
        done.stdout + done.stderr[-3000:]
    )


def off(widget: QWidget) -> str:
    """Where a window is, if that is not wholly on one screen."""
    wait(1)
    QApplication.processEvents()
    frame = widget.frameGeometry()
    if any(screen.availableGeometry().contains(frame) for screen in QGuiApplication.screens()):
        return ""
    return f"{type(widget).__name__} {frame.getRect()}"


def problems(place: Path) -> Iterator[str]:
    app: Any = application()
    app.setQuitOnLastWindowClosed(False)
    settings = Settings(QSettings(str(place / "s.ini"), QSettings.Format.IniFormat))
    # As left by a window on a screen that is far away, and larger than any.
    for rect in ((9000, 5000, 1200, 800), (-4000, -3000, 900, 700), (100, 100, 5000, 3000)):
        kept = Frame(settings)
        kept.setGeometry(*rect)
        geometry = kept.saveGeometry()
        kept.close()
        settings.save_geometry(geometry)
        again = Windows(app, settings).open()
        wait(20)
        yield off(again)
        again.close()
    yield from side_by_side(app, place)
    scene = Scene(app, settings, place)
    for _ in range(6):
        scene.windows.open([])
    wait(20)
    for window in scene.windows._open:
        yield off(window)
    scene.main.frame.move(
        scene.main.frame.screen().availableGeometry().bottomRight()
    )  # by the user, out of sight
    for made in (*OPENERS.values(), open_handbook):
        dialog = made(scene)
        wait(20)
        yield off(dialog)
        dialog.close()
        free()
    scene.close()


def side_by_side(app: Any, place: Path) -> Iterator[str]:
    """Two traces, a page and a panel on two screens, and all in their places at the next start."""
    from desktop.resources import samples

    settings = Settings(QSettings(str(place / "beside.ini"), QSettings.Format.IniFormat))

    def on(window: QWidget) -> str:
        return window.windowHandle().screen().name()

    def settled(windows: Windows) -> None:
        while any(page.busy for frame in windows._open for page in [frame.trace]):
            wait(5)
        wait(50)

    windows = Windows(app, settings)
    first = windows.open([samples()[0].path])
    settled(windows)
    first.trace.actions_by_id["trace_beside"].trigger()
    settled(windows)
    _, second = windows._open
    if (on(first), on(second)) != ("s0", "s1") or not all(f.trace.snapshot.run for f in windows._open):
        yield f"the traces are on {on(first)} and {on(second)}"
    yield from map(off, windows._open)
    second.close_unasked()
    first.trace.present()
    if (on(first), on(first.trace.presentation)) != ("s0", "s1"):
        yield f"the window is on {on(first)}, what it presents on {on(first.trace.presentation)}"
    first.trace.presentation.close()
    first.show_kind("compare").actions_by_id["detach"].trigger()
    first.go_to(first.trace)
    first.trace.show_panel("statistics")
    dock = first.trace._docks["statistics"]
    dock.setFloating(True)
    dock.move(1000, 300)
    wait(50)
    (torn,) = first.torn
    torn.move(torn.pos().x() + 60, torn.pos().y() + 40)
    before = on(torn), torn.pos(), torn.size(), on(dock), dock.pos()
    if before[0] != "s1" or before[3] != "s1":
        yield f"the page is on {before[0]}, the panel on {before[3]}"
    first.close_unasked()
    again = Windows(app, settings)
    frame = again.open([samples()[0].path])
    frame.restore_session(None)
    settled(again)
    (torn,), dock = frame.torn, frame.trace._docks["statistics"]
    after = on(torn), torn.pos(), torn.size(), on(dock), dock.pos()
    if after != before or not (dock.isFloating() and dock.isVisible() and torn.isVisible()):
        yield f"at the next start {after}, before {before}"
    frame.close_unasked()


def main(place: Path) -> int:
    found = [one for one in problems(place) if one]
    print(f"{len(QGuiApplication.screens())} screens", *found, sep="\n", flush=True)
    return len(found)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

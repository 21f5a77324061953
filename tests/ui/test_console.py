"""The Python console of the window: off until it is agreed to, for every trace anew."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QMessageBox
from pytestqt.qtbot import QtBot

from desktop.ui.frame import Frame
from desktop.ui.settings import Settings


def test_it_is_on_by_consent_and_for_one_trace(
    qtbot: QtBot, own_places: None, settings: Settings, no_thread_left: None, tmp_path: Path
) -> None:
    for name in ("a", "<b>b"):
        (tmp_path / f"{name}.csv").write_text("0,2\n1,3\n2,1\n4,2\n6,0\n")
    page = Frame(settings).trace
    qtbot.addWidget(page.frame)
    page.frame.show()

    def opened(name: str) -> None:
        page.workbench.open(tmp_path / f"{name}.csv")

        def there() -> bool:
            shown = page.workbench.snapshot
            named = shown.document is not None and shown.document.source.stem == name
            return named and not page.busy and shown.fit is not None

        qtbot.waitUntil(there, timeout=60_000)

    def asked(answer: QMessageBox.StandardButton) -> None:
        page.actions_by_id["console"].trigger()
        box = page.findChildren(QMessageBox, "console_question")[-1]
        assert page.workbench.snapshot.document.title in box.text()
        assert page.console is not None and page.console.console is None, "nothing before the answer"
        qtbot.mouseClick(box.button(answer), Qt.MouseButton.LeftButton)

    assert not page.actions_by_id["console"].isEnabled()
    opened("a")
    page.workbench.set_n(2)
    qtbot.waitUntil(lambda: not page.busy, timeout=60_000)
    page.workbench.move_breakpoint(1, 3.25)
    page.workbench.name_phase(0, "first")
    asked(QMessageBox.StandardButton.No)
    assert page.console is None and not page.actions_by_id["console"].isChecked()
    QApplication.processEvents()
    asked(QMessageBox.StandardButton.Yes)
    qtbot.waitUntil(lambda: page.console is not None and page.console.console is not None, timeout=60_000)
    console = page.console.console
    for words, said in (
        ("run.curve().to_frame()['level'].max()", "3.0"),
        ("n == window.workbench.snapshot.project.phases.n", "True"),
        ("run.phases().breaks", "[0.0, 3.25, 6.0]"),
        ("run.phases().names[0]", "'first'"),
        ("1 / 0", "ZeroDivisionError"),
    ):
        console.input.setText(words)
        qtbot.keyClick(console.input, Qt.Key.Key_Return)
        assert said in console.output.toPlainText()
    opened("<b>b")
    assert page.console is None, "another trace, and it is off"
    layout = page.saveState()
    page.restoreState(layout)
    assert page.console is None and "Python console" not in [d.windowTitle() for d in page._docks.values()]
    page.frame.close_unasked()
    QApplication.processEvents()

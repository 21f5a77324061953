"""For those who see badly or use no mouse: names, keys, focus, contrast and room, in every window, panel
and dialog.

A check gets a window, what is seen of it, and what it has already looked at elsewhere.

Contrast is that of the WCAG: 4.5 for text, 3 for lines and for text that is switched off.
"""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from PySide6.QtCore import QSettings, Qt
from PySide6.QtGui import QAccessible, QGuiApplication, QImage, QPalette
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractScrollArea,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QCheckBox,
    QComboBox,
    QDockWidget,
    QHeaderView,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QRadioButton,
    QScrollBar,
    QStatusBar,
    QTabBar,
    QTableView,
    QTextEdit,
    QToolBar,
    QToolButton,
    QWidget,
)

from desktop.ui import theme as themes
from desktop.ui.app import application
from desktop.ui.plots.chart import Chart
from desktop.ui.plots.notes import COLOURS
from desktop.ui.plots.time_plot import TimePlot
from desktop.ui.settings import COLOUR_SETS, Settings
from desktop.ui.tables import FrameTree, FrameView, comma_separated, html, latex, markdown, tab_separated
from tests.ui.scene import Scene, wait
from tests.ui.test_mnemonics import doubled, marked
from tests.ui.test_theme import contrast

PLOTS = (Chart, TimePlot)
#: What Qt makes inside of other widgets: reached through them.
PARTS = (QScrollBar, QHeaderView, QToolBar)
TEXTS = (QLabel, QPushButton, QToolButton, QCheckBox, QRadioButton)
ROOT = Path(__file__).parent.parent.parent
Found = dict[str, set[str]]


def seen(root: QWidget) -> list[QWidget]:
    """All widgets of a window that are in view, but for what Qt makes inside of others."""
    return [
        widget
        for widget in root.findChildren(QWidget)
        if widget.isVisible() and widget.window() is root and not inner(widget) and not behind(widget)
    ]


def behind(widget: QWidget | None) -> bool:
    """In a dock that is behind another tab, which Qt takes for visible."""
    while widget is not None and not isinstance(widget, QDockWidget):
        widget = widget.parentWidget()
    return widget is not None and widget.visibleRegion().isEmpty()


def inner(widget: QWidget) -> bool:
    parent = widget.parentWidget()
    return (
        isinstance(widget, PARTS)
        or isinstance(parent, (QComboBox, QAbstractSpinBox, QLineEdit, QTabBar, QDockWidget, *PARTS))
        or (isinstance(parent, QAbstractScrollArea) and parent.viewport() is widget)
        or widget.objectName().startswith("qt_")
        or (isinstance(parent, QAbstractItemView) and isinstance(widget, QAbstractButton))
    )


def controls(there: list[QWidget]) -> list[QWidget]:
    """What can be used."""
    kinds = (
        *(QAbstractButton, QAbstractItemView, QAbstractSlider, QAbstractSpinBox, QComboBox, QLineEdit),
        *(QPlainTextEdit, QTextEdit, QTabBar),
    )
    return [
        widget
        for widget in there
        if isinstance(widget, (*kinds, *PLOTS)) and not (isinstance(widget, QTabBar) and widget.count() < 2)
    ]


def told(widget: QWidget) -> str:
    """Of what kind a widget is, and where it is, for a failure to be understood."""
    names = [widget.objectName() or type(widget).__name__]
    while widget.parentWidget() is not None:
        widget = widget.parentWidget()
        names.append(widget.objectName() or type(widget).__name__)
    return " < ".join(names[:5])


def said(widget: QWidget) -> str:
    """What a screen reader calls it."""
    found = QAccessible.queryAccessibleInterface(widget)
    return "" if found is None else found.text(QAccessible.Text.Name).strip()


Check = Callable[[QWidget, list[QWidget], set[Hashable]], Iterator[str]]


def walk(
    scene: Scene,
    theme: themes.Theme,
    size: tuple[int, int],
    checks: Iterable[Check],
    *,
    dialogs: bool = True,
) -> Found:
    """What each check finds, by its name, in one walk through all looks of all windows."""
    for window in scene.windows._open:
        window.use_theme(theme)
        window.resize(*size)
    found: Found = {check.__name__: set() for check in checks}
    done: set[Hashable] = set()
    for name, root in scene.looks(dialogs=dialogs):
        there = seen(root)
        for check in checks:
            found[check.__name__] |= {f"{name}: {fault}" for fault in check(root, there, done)}
    return found


@pytest.fixture(scope="module")
def faults(scene: Scene) -> Found:
    return walk(scene, themes.LIGHT, LARGE, CHECKS)


@pytest.fixture(scope="module")
def when_dark_and_small(scene: Scene, faults: Found) -> Found:
    return walk(scene, themes.DARK, SMALL, (faint, cut))


def nameless(root: QWidget, there: list[QWidget], done: set[Hashable]) -> Iterator[str]:
    for widget in controls(there):
        if not isinstance(widget, QTabBar) and not said(widget):
            yield told(widget)


def undescribed(root: QWidget, there: list[QWidget], done: set[Hashable]) -> Iterator[str]:
    for widget in controls(there):
        if isinstance(widget, PLOTS) and not widget.accessibleDescription():
            yield told(widget)


def test_everything_that_can_be_used_has_a_name(faults: Found) -> None:
    assert not faults["nameless"], listed(faults["nameless"])
    assert not faults["undescribed"], listed(faults["undescribed"])


def unreached(root: QWidget, there: list[QWidget], done: set[Hashable]) -> Iterator[str]:
    chain, widget = {root}, root.nextInFocusChain()
    while widget not in chain:
        chain.add(widget)
        widget = widget.nextInFocusChain()
    group = {id(b) for b in root.findChildren(QRadioButton)}
    for widget in controls(there):
        if not widget.isEnabled() or isinstance(widget.parentWidget(), QToolBar) or id(widget) in group:
            continue
        tab = Qt.FocusPolicy.TabFocus.value & widget.focusPolicy().value
        if widget not in chain or not tab:
            yield f"{told(widget)} {said(widget)!r}"


def test_everything_that_can_be_used_is_reached_by_tab(faults: Found) -> None:
    """Buttons of toolbars are not, as their commands are in the menus and the palette; nor are the buttons
    of docks, which View > Panels stands for."""
    assert not faults["unreached"], listed(faults["unreached"])


def lost(root: QWidget, there: list[QWidget], done: set[Hashable]) -> Iterator[str]:
    for label in there:
        if isinstance(label, QLabel) and has_mnemonic(label) and label.buddy() is None:
            yield repr(label.text())


def uncopied(root: QWidget, there: list[QWidget], done: set[Hashable]) -> Iterator[str]:
    """Every table that is seen: copied in all forms and written as CSV and spreadsheet, all rows with all
    headings come back."""
    for view in there:
        if isinstance(view, (QTableView, FrameTree)) and id(view) not in done:
            done.add(id(view))
            if not isinstance(view, (FrameView, FrameTree)):
                yield f"{told(view)} is no table of ours"
            elif view.frames.order.size:
                heads = [view.frames.cells[k].head for k in view._copied_columns()]
                yield from (f"{told(view)}: {fault}" for fault in copies(view, len(heads)))
                yield from (f"{told(view)}: {fault}" for fault in files(view, heads))


def copies(view: FrameView | FrameTree, columns: int) -> Iterator[str]:
    rows, board = view.frames.order.size, QGuiApplication.clipboard()
    for form in (tab_separated, comma_separated, markdown, latex, html):
        board.setText("")
        view.copy(form, everything=True)
        limit = time.monotonic() + 20
        while not board.text() and time.monotonic() < limit:
            wait(5)  # of many cells in the background
        text = board.text()
        if form is comma_separated:
            found = [len(line) for line in csv.reader(text.splitlines(keepends=True))]
        elif form is html:
            found = [len(re.findall("<t[dh]", row)) for row in text.split("<tr>")[1:]]
        else:
            cell = {tab_separated: "\t", markdown: r"(?<!\\)\|", latex: r"(?<!\\)&"}[form]
            lines = [line for line in text.splitlines() if form is not latex or line.endswith("\\\\")]
            found = [len(re.split(cell, line)) - 2 * (form is markdown) for line in lines]
        if found != [columns] * (rows + 1 + (form is markdown)):
            yield f"{form.__name__}: {found} for {rows} rows of {columns}"


def files(view: FrameView | FrameTree, heads: list[str]) -> Iterator[str]:
    with TemporaryDirectory() as folder:
        for suffix in ("csv", "xlsx"):
            path = Path(folder) / f"table.{suffix}"
            view.export_to(path)
            limit = time.monotonic() + 20
            while not path.exists() and time.monotonic() < limit:
                wait(5)
            read = pd.read_csv(path) if suffix == "csv" else pd.read_excel(path)
            if len(read) != view.frames.order.size or list(read.columns) != heads:
                yield f"{suffix}: {read.shape} of {view.frames.order.size} rows, {list(read.columns)}"


def test_every_table_is_copied_and_written_in_all_forms(faults: Found) -> None:
    assert not faults["uncopied"], listed(faults["uncopied"])


def test_labels_with_a_mnemonic_lead_somewhere(faults: Found) -> None:
    assert not faults["lost"], listed(faults["lost"])


def has_mnemonic(label: QLabel) -> bool:
    rich = label.textFormat() == Qt.TextFormat.RichText or "<" in label.text()
    return not rich and "&" in label.text().replace("&&", "")


def twice(root: QWidget, there: list[QWidget], done: set[Hashable]) -> Iterator[str]:
    yield from doubled(marked(root))


def test_no_letter_is_given_twice_in_any_look_of_any_window(faults: Found) -> None:
    assert not faults["twice"], listed(faults["twice"])


#: As if by a key: the style shows the focus only to those who use keys.
KEYS = Qt.FocusReason.ShortcutFocusReason


def unmarked(root: QWidget, there: list[QWidget], done: set[Hashable]) -> Iterator[str]:
    """Of what can have the focus: what looks with it as it does without; each once, whatever is beside it."""
    root.activateWindow()
    QApplication.processEvents()
    usable = [widget for widget in controls(there) if widget.isEnabled()]
    for widget in usable:
        if (
            (unmarked, widget) in done
            or not widget.focusPolicy() & Qt.FocusPolicy.TabFocus
            or not widget.isEnabled()
        ):
            continue
        done.add((unmarked, widget))
        next((one for one in usable if one is not widget and one.isEnabled()), root).setFocus(KEYS)
        QApplication.processEvents()
        without = around(widget)
        widget.setFocus(KEYS)
        QApplication.processEvents()
        if widget.hasFocus() and around(widget) == without:
            yield f"{told(widget)} {said(widget)!r}"


def test_what_has_the_focus_looks_otherwise(faults: Found) -> None:
    assert not faults["unmarked"], listed(faults["unmarked"])


def around(widget: QWidget) -> QImage:
    """As it looks with what is drawn right around it, such as the frame of a combo box."""
    return widget.grab().toImage()


THEMES = [themes.coloured(base, colours) for base in (themes.LIGHT, themes.DARK) for colours in COLOUR_SETS]


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: f"{theme.name}-{theme.colours}")
def test_the_palette_has_contrast(theme: themes.Theme) -> None:
    """Every text role on every ground it stands on, and on what is selected; switched off, 3 at least."""
    role, group = QPalette.ColorRole, QPalette.ColorGroup
    made = themes.palette(theme)
    pairs = [
        (text, ground)
        for text in (role.WindowText, role.Text, role.ButtonText, role.PlaceholderText, role.Link)
        for ground in (role.Window, role.Base, role.AlternateBase, role.Button)
    ]
    pairs += [(role.ToolTipText, role.ToolTipBase), (role.HighlightedText, role.Highlight)]
    for of, least in ((group.Active, 4.5), (group.Inactive, 4.5), (group.Disabled, 3.0)):
        for text, ground in pairs:
            found = contrast(made.color(of, text).name(), made.color(of, ground).name())
            assert found >= least, (of, text, ground, round(found, 2))


def test_annotations_are_seen_on_every_ground() -> None:
    for theme in THEMES:
        assert all(contrast(colour, theme.background) >= 3 for colour in COLOURS), theme.name


@pytest.mark.qt_log_ignore("does not support raise")  # the offscreen platform, of the tip
def test_the_matrix_is_read_by_arrow_keys(scene: Scene) -> None:
    panel = scene.main.panel("messages")
    scene.main.show_panel("messages")
    scene.settle()
    matrix = panel.matrix
    first = matrix.accessibleDescription()
    for _ in range(40):
        QTest.keyClick(matrix, Qt.Key.Key_Left)
        QTest.keyClick(matrix, Qt.Key.Key_Up)
    corner = matrix.accessibleDescription()
    QTest.keyClick(matrix, Qt.Key.Key_Right)
    beside = matrix.accessibleDescription()
    assert corner.split(" to ")[0] == beside.split(" to ")[0] and len({first, corner, beside}) == 3
    QTest.keyClick(matrix, Qt.Key.Key_Down)
    assert matrix.accessibleDescription().split(" to ")[0] != beside.split(" to ")[0]


def faint(root: QWidget, there: list[QWidget], done: set[Hashable]) -> Iterator[str]:
    """From the picture: what differs most from the ground of a label, button, box, table or plot; once
    for what it says in a size."""
    root.ensurePolished()
    for widget in there:
        text = widget.text() if isinstance(widget, TEXTS) else said(widget)
        drawn = isinstance(widget, (*TEXTS, *PLOTS, QComboBox, QLineEdit, QAbstractItemView))
        empty = isinstance(widget, QAbstractItemView) and not widget.model().rowCount()
        empty |= isinstance(widget, QComboBox) and not widget.currentText()
        empty |= isinstance(widget, QLineEdit) and not (widget.text() or widget.placeholderText())
        if not drawn or empty or not text or min(widget.width(), widget.height()) < 8:
            continue
        look = (
            faint,
            widget,
            text,
            widget.accessibleDescription(),
            widget.isEnabled(),
            widget.size().toTuple(),
        )
        if look in done:
            continue
        done.add(look)
        found = strongest(widget.grab().toImage())
        if found < (4.5 if widget.isEnabled() else 3.0):
            yield f"{told(widget)} {text[:30]!r} {found:.2f}"


def test_texts_as_they_are_drawn_have_contrast_when_light(faults: Found) -> None:
    assert not faults["faint"], listed(faults["faint"])


def test_texts_as_they_are_drawn_have_contrast_when_dark(when_dark_and_small: Found) -> None:
    assert not when_dark_and_small["faint"], listed(when_dark_and_small["faint"])


def pixels(image: QImage) -> NDArray[np.uint32]:
    image = image.convertToFormat(QImage.Format.Format_RGB32)
    stride = image.bytesPerLine() // 4
    flat: NDArray[np.uint32] = np.frombuffer(image.constBits(), np.uint32)
    return flat.reshape(image.height(), stride)[:, : image.width()] & 0xFFFFFF


def strongest(image: QImage) -> float:
    """The contrast of what differs most from the commonest colour."""
    flat = pixels(image).ravel()
    begins = np.flatnonzero(np.r_[True, flat[1:] != flat[:-1]])  # of runs, far fewer than pixels
    colours, which = np.unique(flat[begins], return_inverse=True)
    counts = np.bincount(which, np.diff(begins, append=flat.size))
    ground = f"#{colours[counts.argmax()]:06x}"
    return max(contrast(f"#{colour:06x}", ground) for colour in colours.tolist())


def cut(root: QWidget, there: list[QWidget], done: set[Hashable]) -> Iterator[str]:
    """Texts that have less room than they need."""
    for widget in there:
        if (
            not isinstance(widget, TEXTS)
            or not widget.text()
            or isinstance(widget.parentWidget(), QStatusBar)
        ):
            continue
        if isinstance(widget, QLabel) and widget.wordWrap():
            needed = widget.heightForWidth(widget.width())
            short = needed > widget.height() + 1
        else:
            short = widget.minimumSizeHint().width() > widget.width() + 1
            short |= widget.minimumSizeHint().height() > widget.height() + 1
        if short:
            yield f"{told(widget)} {widget.text()[:40]!r} {widget.size().toTuple()}"


#: `unmarked` is the last, as it moves the focus.
CHECKS = (nameless, undescribed, unreached, uncopied, lost, twice, faint, cut, unmarked)
LARGE, SMALL = (1280, 720), (800, 500)


def test_no_text_is_cut_in_large_windows(scene: Scene, faults: Found) -> None:
    assert scene.main.devicePixelRatioF() == 1
    assert not faults["cut"], listed(faults["cut"])


def test_no_text_is_cut_in_small_windows(when_dark_and_small: Found) -> None:
    assert not when_dark_and_small["cut"], listed(when_dark_and_small["cut"])


def test_no_text_is_cut_where_all_is_drawn_twice_as_large(tmp_path: Path) -> None:
    environment = os.environ | {
        f"XDG_{name}_HOME": str(tmp_path / name) for name in ("CACHE", "STATE", "DATA")
    }
    environment["QT_SCALE_FACTOR"] = "2"
    words = [sys.executable, "-m", "tests.ui.test_accessibility", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ratio 2\n"), done.stdout + done.stderr[-3000:]


def listed(problems: set[str]) -> str:
    return "\n".join(["", *sorted(problems)])


def main(place: Path) -> int:
    """Print what is cut in any window, large or small, and in dialogs, which do not follow their window."""
    app = application()
    app.setQuitOnLastWindowClosed(False)
    scene = Scene(app, Settings(QSettings(str(place / "s.ini"), QSettings.Format.IniFormat)), place)
    print("ratio", f"{scene.main.devicePixelRatioF():g}")
    problems = walk(scene, themes.LIGHT, LARGE, (cut,))["cut"]
    problems |= walk(scene, themes.LIGHT, SMALL, (cut,), dialogs=False)["cut"]
    for problem in sorted(problems):
        print(problem)
    scene.close()
    return len(problems)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

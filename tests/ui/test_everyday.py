"""What is expected of any program: preferences, palette, handbook, About, dropped files, the first start."""

from __future__ import annotations

import gc
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, QSettings, QStandardPaths, Qt, QUrl
from PySide6.QtGui import (
    QAction,
    QDesktopServices,
    QDragEnterEvent,
    QDropEvent,
    QGuiApplication,
    QKeySequence,
)
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QDockWidget,
    QLabel,
    QMenu,
    QMessageBox,
    QPushButton,
    QTextBrowser,
    QWidget,
    QWidgetAction,
)
from pytestqt.qtbot import QtBot

from desktop import resources
from desktop.core import compiler, units
from desktop.data import memory
from desktop.ui import handbook
from desktop.ui.about import About, versions_text
from desktop.ui.commands import COMMON, STEPS, always
from desktop.ui.compare_page import ComparePage
from desktop.ui.experiment_page import ExperimentPage
from desktop.ui.handbook import contents, docs, search, slug
from desktop.ui.model_page import ModelPage
from desktop.ui.page import Page
from desktop.ui.palette import Palette, entries, score
from desktop.ui.panels import panels
from desktop.ui.preferences import Preferences
from desktop.ui.settings import COLOUR_SETS, Settings, put_settings_aside
from desktop.ui.trace_page import TracePage
from desktop.ui.windows import Windows

KINDS = (TracePage, ComparePage, ModelPage, ExperimentPage)
# Who goes to another window raises it, which the offscreen platform cannot.
pytestmark = pytest.mark.qt_log_ignore("propagateSizeHints", "does not support raise")
LINK = re.compile(r"\]\(([^)]+)\)")


@pytest.fixture(autouse=True)
def as_at_first(own_places: None) -> Iterator[None]:
    yield
    units.set_time_unit("")
    memory.set_limit(memory.DEFAULT)


@pytest.fixture
def windows(qtbot: QtBot, qapp: QApplication, settings: Settings) -> Iterator[Windows]:
    """The program with one empty window; all are closed after."""
    made = Windows(qapp, settings)
    made.open()
    yield made
    for window in list(made._open):
        window.close_unasked()
    if handbook.Handbook.last is not None:
        handbook.Handbook.last.close()


@pytest.fixture
def window(windows: Windows) -> TracePage:
    (first,) = windows._open
    return first.trace


@pytest.fixture
def curve(tmp_path: Path) -> Path:
    file = tmp_path / "curve.csv"
    rng = np.random.default_rng(5)
    rows = [f"{t / 1000:.6f},{h}" for t, h in enumerate(rng.integers(0, 9, 400))]
    file.write_text("\n".join([*rows, "0.4,0"]) + "\n", encoding="utf-8")
    return file


@pytest.fixture
def opened(qtbot: QtBot, window: TracePage, curve: Path) -> TracePage:
    window.open_path(curve)
    qtbot.waitUntil(lambda: not window.busy, timeout=60_000)
    assert window.workbench.snapshot.problem is None
    return window


def dialog(window: QWidget, name: str) -> QDialog:
    (found,) = (one for one in window.window().findChildren(QDialog, name) if one.isVisible())
    assert isinstance(found, QDialog)
    return found


def preferences(window: TracePage) -> Preferences:
    window.actions_by_id["preferences"].trigger()
    found = dialog(window, "preferences")
    assert isinstance(found, Preferences)
    return found


def make(kind: type[Page], main: TracePage) -> Page:
    return main if kind is TracePage else main.frame.show_kind(kind.KIND)


# ---- commands


@pytest.mark.parametrize("kind", KINDS)
def test_every_action_is_found_and_says_what_it_does(
    qtbot: QtBot, window: TracePage, settings: Settings, kind: type[Page]
) -> None:
    shown = make(kind, window)
    listed = [entry.action for entry in entries(shown)]
    menus = [menu.menuAction() for menu in shown.findChildren(QMenu)]
    # Docks are turned by actions of the menu View, which also bring them to the front.
    menus += [dock.toggleViewAction() for dock in shown.findChildren(QDockWidget)]
    for action in shown.findChildren(QAction):
        if isinstance(action, QWidgetAction):
            continue  # a field in a bar
        if action.isSeparator() or action in menus or action.objectName().startswith("_q_"):
            continue
        assert action in listed or action.shortcuts() or not action.isVisible(), action.text()
    for action in listed:
        assert action.statusTip(), f"{action.text()} has no tip"
    for command in shown.COMMANDS:
        assert command.enabled is always or getattr(command.enabled, "needs", ""), f"{command.id}: why not?"
    for key in {key for command in shown.COMMANDS for key in command.keys}:
        owners = [command.id for command in shown.COMMANDS if key in command.keys]
        assert len(owners) == 1, (key, owners)
        assert QKeySequence(key).toString() == key, "as it is stored and compared"


def test_words_are_found_in_any_order() -> None:
    assert score("zoom sel", "Zoom to selection") == score("sel zoom", "Zoom to selection") > 0
    assert score("zoom", "Zoom in") > score("zoom", "Lazoom it") > 0, "the beginning of a word counts more"
    assert score("zin", "Zoom in") == 0 and score("zmin", "Zoomin") > 0, "letters with gaps, within a word"
    assert score("view", "Zoom in", "View") > 0 and score("zoom", "Zoom in") > score("zoom", "All", "Zoom")
    assert score("", "Zoom in") > 0 and score("nothing such", "Zoom in") == 0


def test_the_palette_runs_what_is_chosen(qtbot: QtBot, opened: TracePage) -> None:
    before = opened.workbench.snapshot.project.phases.n
    opened.actions_by_id["palette"].trigger()
    palette = dialog(opened, "palette")
    assert isinstance(palette, Palette)
    QTest.keyClicks(palette.words, "phases mor")
    entry = palette.current_entry()
    assert entry is not None and entry.action is opened.actions_by_id["more"]
    row = palette.list.currentItem()
    assert row is not None and [row.text(c) for c in range(3)] == ["More phases", "Analyse", "]"]
    QTest.keyClick(palette.words, Qt.Key.Key_Return)
    assert not palette.isVisible()
    assert opened.workbench.snapshot.project.phases.n == before + 1


def test_the_palette_says_why_a_command_cannot_be_had(qtbot: QtBot, window: TracePage) -> None:
    window.actions_by_id["palette"].trigger()
    palette = dialog(window, "palette")
    assert isinstance(palette, Palette)
    palette.words.setText("zoom selection")
    assert palette.note.text().startswith("This needs a selected range or phase.")
    QTest.keyClick(palette.words, Qt.Key.Key_Return)
    assert palette.isVisible(), "nothing happened"
    palette.words.setText("xyzzy")
    assert palette.current_entry() is None and palette.list.topLevelItemCount() == 0
    palette.reject()


def test_the_palette_reaches_other_windows(qtbot: QtBot, windows: Windows, window: TracePage) -> None:
    other = windows.open()
    model = other.open_model()
    window.actions_by_id["palette"].trigger()
    palette = dialog(window, "palette")
    assert isinstance(palette, Palette)
    palette.words.setText("bundled example")
    entry = palette.current_entry()
    assert entry is not None and entry.page is model
    QTest.keyClick(palette.words, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: model.bench.snapshot.project.table is not None, timeout=60_000)


def test_names_of_commands_are_read_however_long_those_of_pages(
    qtbot: QtBot, windows: Windows, opened: TracePage
) -> None:
    """The menus of a page behind are called after it; commands had 20 pixels beside them."""
    page = opened.frame.open_experiment(resources.folder() / "examples" / "quicksort")
    qtbot.waitUntil(lambda: len(opened.frame.title_of(page)) > 20)
    opened.frame.go_to(opened)
    opened.actions_by_id["palette"].trigger()
    palette = dialog(opened, "palette")
    assert isinstance(palette, Palette)
    QApplication.processEvents()
    header = palette.list.header()
    assert header.sectionSize(0) >= 0.3 * palette.list.viewport().width()
    item = next(
        palette.list.topLevelItem(k) for k in range(200) if len(palette.list.topLevelItem(k).text(1)) > 30
    )
    assert item.toolTip(1) == item.text(1)
    palette.reject()


def test_the_palette_has_each_command_once(
    qtbot: QtBot, windows: Windows, opened: TracePage, settings: Settings
) -> None:
    """However many windows and pages there are; what the page in front can do is done there."""
    other = windows.open()
    for frame in (opened.frame, other):
        for kind in KINDS:
            frame.show_kind(kind.KIND)
    for page in [page for frame in windows._open for page in frame.all_pages]:
        page.frame.go_to(page)
        page.actions_by_id["palette"].trigger()
        palette = dialog(page, "palette")
        assert isinstance(palette, Palette)
        told = [(e.command.id, e.text) if e.command else (e.place, e.text) for e in palette._entries]
        assert len(told) == len(set(told))
        here = {e.command.id for e in palette._entries if e.command and e.page is page}
        assert here == {command.id for command in page.COMMANDS}
        palette.words.setText("undo")
        rows = [palette.list.topLevelItem(k).text(0) for k in range(palette.list.topLevelItemCount())]
        assert len([row for row in rows if row.startswith("Undo")]) == 1
        palette.reject()


# ---- preferences


def test_a_changed_key_is_shown_everywhere_and_kept(
    qtbot: QtBot, windows: Windows, window: TracePage, settings: Settings
) -> None:
    shown = preferences(window)
    keys = shown.keys
    keys.choose("main", "show_all")
    keys.edit.setKeySequence(QKeySequence("Ctrl+G"))
    assert keys.note.text() == "Ctrl+G is free."
    keys.apply.click()
    assert [k.toString() for k in window.actions_by_id["show_all"].shortcuts()] == ["Ctrl+G"]
    assert "Ctrl+G" in window.keys_html() and "Ctrl+G" in window.actions_by_id["show_all"].toolTip()
    assert any("Ctrl+G" in [k.toString() for k in e.action.shortcuts()] for e in entries(window))
    # A key that belongs to another command is named, then taken from it.
    keys.edit.setKeySequence(QKeySequence("Ctrl+S"))
    assert "“Save project” (Trace)" in keys.note.text() and "loses it" in keys.note.text()
    keys.add.click()
    assert window.settings.keys("main", command(window, "show_all")) == ("Ctrl+G", "Ctrl+S")
    assert window.actions_by_id["save"].shortcuts() == []
    again = Settings(QSettings(settings._store.fileName(), QSettings.Format.IniFormat))
    settings._store.sync()
    assert again.keys("main", command(window, "show_all")) == ("Ctrl+G", "Ctrl+S")
    # One, and all, as at first; then nothing is left in the file.
    keys.restore.click()
    assert window.settings.keys("main", command(window, "show_all")) == ("Home", "Ctrl+0")
    assert window.actions_by_id["save"].shortcuts() == []
    keys.choose("all", "undo")
    keys.none.click()
    assert window.actions_by_id["undo"].shortcuts() == []
    shown.pages.setCurrentWidget(keys)
    shown.reset_page.click()
    assert window.actions_by_id["undo"].shortcuts() and window.actions_by_id["save"].shortcuts()
    assert not [key for key in settings._store.allKeys() if key.startswith("keys/")]
    shown.reject()


def command(window: Page, name: str):
    return next(c for c in window.COMMANDS if c.id == name)


def test_a_key_of_all_windows_is_taken_from_each(qtbot: QtBot, windows: Windows, window: TracePage) -> None:
    model = windows.open().open_model()
    shown = preferences(window)
    shown.keys.choose("all", "palette")
    shown.keys.edit.setKeySequence(QKeySequence("Ctrl+J"))
    assert "All cells together" in shown.keys.note.text()
    shown.keys.apply.click()
    for each in (window, model):
        assert [k.toString() for k in each.actions_by_id["palette"].shortcuts()] == ["Ctrl+J"]
    assert model.actions_by_id["joint"].shortcuts() == []
    shown.reject()


def test_looks_and_units_act_at_once_in_all_windows(
    qtbot: QtBot, windows: Windows, opened: TracePage, settings: Settings
) -> None:
    other = windows.open().open_experiment()
    shown = preferences(opened)
    pictures = set()
    for name in COLOUR_SETS:
        shown.appearance.colours.setCurrentIndex(shown.appearance.colours.findData(name))
        shown.appearance.colours.activated.emit(shown.appearance.colours.currentIndex())
        assert opened._theme.colours == other._theme.colours == name
        picture = opened.curve_view.picture(1.0)  # which its bytes do not keep
        pictures.add(bytes(picture.constBits()))
    assert len(pictures) == len(COLOUR_SETS), "each set looks otherwise"
    before = opened._cursor_text.text()
    assert before.startswith("400.0 ms")
    box = shown.general.unit
    box.setCurrentIndex(box.findData("µs"))
    box.activated.emit(box.currentIndex())
    assert settings.time_unit == "µs" and opened._cursor_text.text().startswith("400000 µs")
    shown.general.memory.setFocus()
    QTest.keyClick(shown.general.memory, Qt.Key.Key_Return)
    assert settings.time_unit == "µs" and shown.isVisible(), "Return resets nothing"
    shown.general.memory.setValue(128)
    assert memory.limit() == 128 << 20
    said = [label.text() for label in shown.general.findChildren(QLabel)]
    assert any("phases are not limited by it, and an import has a limit of its own" in text for text in said)
    shown.reset_all.click()
    assert (settings.colours, settings.time_unit, settings.memory) == ("soft", "", 512)
    assert opened._cursor_text.text() == before and memory.limit() == memory.DEFAULT
    assert shown.general.memory.value() == 512 and other._theme.colours == "soft"
    shown.reject()


def test_broken_settings_that_cannot_be_moved_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "phasewright.ini"
    file.write_bytes(b"[General\n\x00\xff no settings at all")

    def refused(*_: object) -> Path:
        raise PermissionError("read-only")

    monkeypatch.setattr(Path, "replace", refused)
    found = Settings(QSettings(str(file), QSettings.Format.IniFormat))
    found.theme = "dark"
    found._store.sync()
    assert found.theme == "dark" and found.aside is None
    assert file.read_bytes().startswith(b"[General\n"), "as it was"


def test_no_key_is_kept_as_no_key(tmp_path: Path) -> None:
    """Read from the file, as at the next start: settings of one process share what they hold."""
    names, preferences = [str(tmp_path / name) for name in ("a.ini", "b.ini")], COMMON[0]
    ours = Settings(QSettings(names[0], QSettings.Format.IniFormat))
    for keys in ((), ("Ctrl+,",), ("Ctrl+,", "Ctrl+K"), None):
        ours.set_keys("main", preferences, keys)
        ours._store.sync()
        shutil.copy(*names)
        later = QSettings(names[1], QSettings.Format.IniFormat)
        later.sync()
        expected = preferences.keys if keys is None else keys
        assert Settings(later).keys("main", preferences) == expected


def test_broken_settings_are_put_aside(tmp_path: Path) -> None:
    file = tmp_path / "phasewright.ini"
    file.write_bytes(b"[General\n\x00\xff no settings at all")
    found = Settings(QSettings(str(file), QSettings.Format.IniFormat))
    assert found.aside is not None and found.aside.read_bytes().startswith(b"[General\n")
    assert not file.exists() and found.theme == "system"
    found.theme = "dark"
    found._store.sync()
    assert Settings(QSettings(str(file), QSettings.Format.IniFormat)).theme == "dark"
    store = QSettings(str(tmp_path / "odd.ini"), QSettings.Format.IniFormat)
    for name in ("time_unit", "memory", "colours", "reopen", "keys/main/open"):
        store.setValue(name, QPoint(1, 2))
    odd = Settings(store)
    assert (odd.time_unit, odd.memory, odd.colours, odd.reopen) == ("", 512, "soft", False)
    from desktop.ui.actions import COMMANDS

    assert odd.keys("main", COMMANDS[0]) == ()


def test_passing_settings_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = Settings.passing()
    found.theme = "dark"
    assert Settings.passing().theme == "system" and found.theme == "dark"
    del found
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_settings_are_reset_with_a_backup(tmp_path: Path) -> None:
    QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, str(tmp_path))
    try:
        assert put_settings_aside() is None
        own = Settings()
        own.theme = "dark"
        own._store.sync()
        kept = put_settings_aside()
        assert kept is not None and "theme=dark" in kept.read_text() and kept.parent.is_relative_to(tmp_path)
        assert Settings().theme == "system"
    finally:
        usual = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.GenericConfigLocation)
        QSettings.setPath(QSettings.Format.IniFormat, QSettings.Scope.UserScope, usual)


def test_the_last_project_is_opened_again_if_wanted(
    qtbot: QtBot, windows: Windows, opened: TracePage, settings: Settings, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = tmp_path / "kept.phasewright"
    assert opened.desk._save(project)
    assert settings.last_project == project
    frame = windows.open()
    second = frame.trace
    windows.go_on(frame, reopen=True)
    qtbot.waitUntil(lambda: second.desk.projects.path == project and not second.busy, timeout=60_000)
    project.unlink()
    assert settings.last_project is None


def test_files_that_are_named_get_a_window_each_and_are_not_asked_about(
    qtbot: QtBot, windows: Windows, curve: Path
) -> None:
    other = curve.with_name("other.txt")
    other.write_bytes(curve.read_bytes())
    before = len(windows._open)
    windows.open([curve, other])
    made = [frame.trace for frame in windows._open[before:]]
    for window, path in zip(made, (curve, other), strict=True):
        qtbot.waitUntil(lambda shown=window: shown.workbench.snapshot.document is not None, timeout=60_000)
        assert window.workbench.snapshot.document.source == path
        assert window.frame.findChild(QMessageBox, "several_question") is None


# ---- handbook


def test_every_link_of_the_handbook_leads_somewhere() -> None:
    pages = [page for _, page in contents()]
    assert pages[0] == "index.md" and "window.md" in pages and len(pages) == len(set(pages))
    headings = {}
    for page in pages:
        text = (docs() / page).read_text(encoding="utf-8")
        headings[page] = {slug(line.lstrip("#")) for line in text.splitlines() if line.startswith("#")}
    for spec in panels():
        page, _, anchor = spec.page.partition("#")
        assert page in pages and (not anchor or anchor in headings[page]), spec.page


def test_all_pages_are_searched(qapp: QApplication) -> None:
    found = [section.place for section, _ in search("waiting message")]
    assert "statistics.md#messages-and-waiting" in found
    assert found == [section.place for section, _ in search("MESSAGE waiting")]
    assert search("") == [] and search("waiting xyzzy") == []


def test_the_handbook_goes_back_and_asks_before_it_leaves(
    qtbot: QtBot, window: TracePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    went: list[QUrl] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: went.append(url) or True)
    window.actions_by_id["handbook"].trigger()
    shown = handbook.handbook()
    page = shown.page
    assert shown.isVisible() and page.source().fileName() == "index.md"
    page.anchorClicked.emit(QUrl("statistics.md#messages-and-waiting"))
    assert page.source().fileName() == "statistics.md" and page.verticalScrollBar().value() > 0
    assert page.textCursor().block().text() == "Messages and waiting"
    page.backward()
    assert page.source().fileName() == "index.md"
    page.forward()
    assert page.source().fileName() == "statistics.md"
    for outside in ("https://example.org/x", "../../README.md", "file:///etc/hostname"):
        page.anchorClicked.emit(QUrl(outside))
        assert page.source().fileName() == "statistics.md" and outside in shown._outside_text.text()
    assert went == [], "not opened without being asked"
    next(b for b in window.start_page.findChildren(QPushButton) if "Tour" in b.text()).click()
    assert page.source().fileName() == "tour.md"
    page.backward()
    page.anchorClicked.emit(QUrl("https://example.org/x"))
    next(b for b in shown.findChildren(QPushButton) if "browser" in b.text()).click()
    assert len(went) == 1
    shown.words.setText("alias resolution")
    shown._choose(shown.list.item(0))
    assert page.source().fileName() == "spt.md" and page.extraSelections()
    shown.words.setText("xyzzy")
    assert shown.list.item(0).text() == "No page holds all these words."
    shown.close()
    assert handbook.Handbook.last is None


def test_what_is_this_opens_the_page_of_what_has_the_focus(qtbot: QtBot, opened: TracePage) -> None:
    opened.show_panel("statistics")
    opened.panel("statistics").picture.setFocus()
    assert opened.place_about(opened.focusWidget()) == "statistics.md#levels-and-efficiencies"
    opened.actions_by_id["what_is_this"].trigger()
    page = handbook.handbook().page
    assert page.textCursor().block().text() == "Levels and efficiencies"
    opened.curve_view.setFocus()
    page_name, _, heading = opened.place_about(opened.focusWidget()).partition("#")
    assert heading == "the-curve" and "## The curve" in (docs() / page_name).read_text(encoding="utf-8")
    explained = [e for e in entries(opened) if e.place == "Help › Panels explained"]
    assert [e.text for e in explained] == [spec.title for spec in panels()]


def test_the_handbook_is_found_where_the_resources_are(
    qtbot: QtBot, qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a frozen program; its pictures too, and no others."""
    elsewhere = tmp_path / "resources"
    shutil.copytree(resources.folder() / "docs", elsewhere / "docs")
    pictures = elsewhere / "docs" / "pictures"
    pictures.mkdir(exist_ok=True)
    shutil.copy(resources.folder() / "icons" / "phasewright.svg", pictures / "shot.svg")
    (tmp_path / "secret.svg").write_text("<svg/>")
    (elsewhere / "docs" / "new.md").write_text("# New\n\n![a](pictures/shot.svg) ![b](../../secret.svg)\n")
    index = elsewhere / "docs" / "index.md"
    index.write_text(index.read_text(encoding="utf-8") + "\n- [A new page](new.md)\n", encoding="utf-8")
    monkeypatch.setattr(resources, "folder", lambda: elsewhere)
    handbook.sections.cache_clear()
    try:
        assert ("A new page", "new.md") in contents()
        shown = handbook.handbook()
        shown.show_place("new.md")
        image = 2  # QTextDocument.ResourceType.ImageResource
        assert shown.page.loadResource(image, QUrl("pictures/shot.svg")) is not None
        assert shown.page.loadResource(image, QUrl("../../secret.svg")) is None
        assert shown.page.loadResource(image, QUrl("https://example.org/a.png")) is None
        shown.close()
    finally:
        handbook.sections.cache_clear()


# ---- the rest


def test_about_names_versions_citations_and_licences(qtbot: QtBot, window: TracePage) -> None:
    window.actions_by_id["about"].trigger()
    about = dialog(window, "about")
    assert isinstance(about, About)
    pages = [about.pages.widget(i) for i in range(about.pages.count())]
    texts = [page.toPlainText() for page in pages if isinstance(page, QTextBrowser)]
    assert "numba" in texts[0] and "ORNL/TM-11637" in texts[1] and "UTK-CS-97-354" in texts[1]
    assert "Bitstream" in texts[2] and "MPICH" in texts[2] and "cholesky_16" in texts[2]
    copy = about.findChild(QPushButton, "copy")
    assert isinstance(copy, QPushButton)
    copy.click()
    assert QGuiApplication.clipboard().text() == versions_text()
    about.reject()


@pytest.mark.parametrize("kind", KINDS)
def test_files_are_dropped_on_any_part_of_any_window(
    qtbot: QtBot, window: TracePage, settings: Settings, kind: type[Page], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    shown = make(kind, window)
    dropped: list[Path] = []
    monkeypatch.setattr(shown, "open_paths", dropped.extend)
    targets: list[QWidget] = [shown.frame]
    if shown is window:
        dock = window._docks["statistics"]
        dock.show()
        targets.append(dock)
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / name)) for name in ("a.csv", "b.csv")])
    none, copy, left = Qt.KeyboardModifier.NoModifier, Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    for target in targets:
        dropped.clear()
        for child in target.findChildren(QWidget):
            assert not child.acceptDrops() or isinstance(child, QDockWidget), f"{child} would take the drop"
        enter = QDragEnterEvent(QPoint(5, 5), copy, data, left, none)
        QApplication.sendEvent(target, enter)
        assert enter.isAccepted() and shown.frame._drop_hint.isVisible()
        QApplication.sendEvent(target, QDropEvent(QPointF(5, 5), copy, data, left, none))
        assert not shown.frame._drop_hint.isVisible()
        assert [path.name for path in dropped] == ["a.csv", "b.csv"]


def test_the_first_start_is_told_while_kernels_are_compiled(qtbot: QtBot, window: TracePage) -> None:
    told: list[tuple[int, bool]] = []
    end = compiler.watch(lambda count, more: told.append((count, more)))

    def twice(x: int) -> int:
        return 2 * x

    kernel = compiler.njit(twice)
    assert kernel(2) == 4
    end()
    assert kernel(2.0) == 4.0
    (first, more), (last, after) = told
    assert more and not after and first == last
    bench = window.workbench
    bench._compiling(3, True)
    qtbot.wait(20)
    assert bench.snapshot.preparing is None, "a few are compiled at every start"
    bench._compiling(60, True)
    qtbot.waitUntil(window.frame.task_list.isVisible)
    assert (
        "for the first time" in window.frame.task_list.text
        and window.frame.task_list.lines[0].progress.value() == 300
    )
    bench._compiling(60, False)
    qtbot.waitUntil(lambda: not window.frame.task_list.isVisible() or bench.snapshot.opening is not None)


def test_statistics_can_be_read_in_a_narrow_panel(qtbot: QtBot, opened: TracePage) -> None:
    opened.frame.resize(1500, 900)
    opened.show_panel("statistics")
    panel = opened.panel("statistics")
    qtbot.waitUntil(lambda: panel.model.rowCount() > 0, timeout=60_000)

    def narrow() -> bool:
        return panel.picture.findData("numbers") >= 0

    assert not narrow() and panel.table.isVisible() and panel.chart.isVisible()
    opened.frame.resize(800, 600)
    qtbot.waitUntil(narrow)
    assert panel.table.isVisible() and not panel.chart.isVisible()
    panel.picture.setCurrentIndex(panel.picture.findData("concurrency"))
    panel.picture.activated.emit(panel.picture.currentIndex())
    assert panel.chart.isVisible() and not panel.table.isVisible()
    opened.frame.resize(1500, 900)
    qtbot.waitUntil(lambda: not narrow())
    assert panel.table.isVisible() and panel.chart.isVisible()


@pytest.mark.parametrize(("size", "high"), [((1280, 720), 200), ((1400, 950), 240), ((1600, 1100), 340)])
def test_pictures_of_panels_are_whole_in_low_windows(
    qtbot: QtBot, opened: TracePage, size: tuple[int, int], high: int
) -> None:
    opened.frame.resize(*size)
    opened.resizeDocks([opened._docks["statistics"]], [high], Qt.Orientation.Vertical)
    for name, part in (("statistics", "chart"), ("messages", "matrix")):
        opened.show_panel(name)
        panel = opened.panel(name)
        viewport = panel.parentWidget()
        if name == "statistics":  # there is room for the note once the panel has been given its own
            qtbot.waitUntil(lambda panel=panel: high < 300 or not panel.note.isHidden(), timeout=20_000)
        qtbot.waitUntil(lambda panel=panel, viewport=viewport: panel.size() == viewport.size())
        picture = getattr(panel, part)
        corner = picture.mapTo(viewport, picture.rect().bottomRight())
        assert viewport.rect().contains(corner) and picture.height() >= picture.minimumSizeHint().height()
    assert high < 300 or not opened.panel("statistics").note.isHidden()


def test_common_commands_are_in_every_window() -> None:
    for kind in KINDS:
        ids = [c.id for c in kind.COMMANDS]
        assert {c.id for c in (*STEPS, *COMMON)} <= set(ids) and len(ids) == len(set(ids))

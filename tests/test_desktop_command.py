"""``phasewright desktop``: what is installed for the user, and that exactly that is removed."""

from __future__ import annotations

import codecs
import configparser
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop import cli
from desktop.commands import integration
from desktop.data import project_file
from desktop.progress import Progress
from desktop.resources import DESKTOP_ID, folder, samples

pytestmark = pytest.mark.skipif(
    sys.platform in ("win32", "darwin"), reason="menus of this system are not made of desktop entries"
)
MIME = "{http://www.freedesktop.org/standards/shared-mime-info}"
OURS = folder() / "desktop"
PARAVER = Path(__file__).parent / "data" / "paraver"


def entry(file: Path) -> configparser.SectionProxy:
    parser = configparser.RawConfigParser()
    parser.optionxform = str
    parser.read(file, encoding="utf-8")
    return parser["Desktop Entry"]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty data folder, and the command of an installed program with a name that needs quoting."""
    commands = tmp_path / 'my $tools "50%" \\ `new`'
    commands.mkdir()
    window = commands / integration.WINDOW
    window.write_text('#!/bin/sh\nprintf \'%s\\n\' "$0" "$@"\n')
    window.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(commands / "phasewright"), "desktop", "install"])
    data = tmp_path / "data"
    monkeypatch.setenv("XDG_DATA_HOME", str(data))
    return data


def files(home: Path) -> dict[str, bytes]:
    """What is below `home`, but for the databases that the desktop's own tools make of it."""
    made = ("mime/packages/", "applications/mimeinfo.cache")
    every = {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}
    return {
        name: content
        for name, content in every.items()
        if name.startswith(made[0]) or not name.startswith(("mime/", made[1]))
    }


def split_exec(value: str) -> list[str]:
    """The words of a key Exec, by the two rules of the Desktop Entry Specification: escapes, then quotes."""
    text, k = "", 0
    while k < len(value):
        if value[k] == "\\":
            text += {"\\": "\\", "n": "\n", "t": "\t", "r": "\r", "s": " "}[value[k + 1]]
            k += 1
        else:
            text += value[k]
        k += 1
    words, word, inside, k = [], "", False, 0
    while k < len(text):
        if inside and text[k] == "\\":
            assert text[k + 1] in '\\"`$'
            word, k = word + text[k + 1], k + 1
        elif text[k] == '"':
            inside = not inside
        elif text[k] == " " and not inside:
            words, word = [*words, word], ""
        else:
            assert not (inside and text[k] in "`$")
            word += text[k]
        k += 1
    assert not inside
    return [word.replace("%%", "%") for word in [*words, word]]


def test_install_twice_is_install_once_and_remove_leaves_what_was_there(home, capsys):
    other = home / "applications" / "other.desktop"
    other.parent.mkdir(parents=True)
    other.write_text("[Desktop Entry]\n")
    before = files(home)
    assert cli.run(["desktop", "install"]) == 0
    once = files(home)
    assert set(once) - set(before) == set(integration.places())
    out = capsys.readouterr().out
    assert all(place in out for place in integration.places())
    assert cli.run(["desktop", "install"]) == 0
    assert files(home) == once
    assert cli.run(["desktop", "remove"]) == 0
    assert files(home) == before
    assert cli.run(["desktop", "remove"]) == 0
    assert "Nothing" in capsys.readouterr().out


def test_the_entry_starts_the_running_programs_window(home):
    cli.run(["desktop", "install"])
    program, files_word = split_exec(entry(home / "applications" / f"{DESKTOP_ID}.desktop")["Exec"])
    assert Path(program) == Path(sys.argv[0]).with_name(integration.WINDOW)
    assert files_word == "%F"
    told = subprocess.run([program, "a.otf2"], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines() == [program, "a.otf2"]


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=40))
def test_any_path_survives_the_key_exec(name):
    command = Path("/") / name / integration.WINDOW
    value = integration.quoted(command)
    assert "\n" not in value
    assert split_exec(f"{value} %F") == [str(command), "%F"]


def test_a_relative_data_home_is_ignored_as_the_specification_says(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", "data")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert integration.data_home() == tmp_path / ".local" / "share"


def test_without_an_installed_command_nothing_is_written(home, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "pytest")])
    monkeypatch.setattr(integration.sysconfig, "get_path", lambda name: str(tmp_path))
    assert cli.run(["desktop", "install"]) == 1
    assert "install Phasewright with pip" in capsys.readouterr().err
    assert not home.exists()


@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_other_systems_get_one_sentence(home, monkeypatch, capsys, system):
    monkeypatch.setattr(integration.sys, "platform", system)
    assert cli.run(["desktop", "install"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert not home.exists()


def test_names_agree_everywhere():
    """The entry, the icon and the metadata go by one name, and all list the same types of files."""
    about = ET.parse(OURS / f"{DESKTOP_ID}.metainfo.xml").getroot()
    types = [kind.get("type") for kind in ET.parse(OURS / f"{DESKTOP_ID}.mime.xml").getroot()]
    said = entry(OURS / f"{DESKTOP_ID}.desktop")
    assert about.findtext("id") == said["Icon"] == DESKTOP_ID
    assert about.findtext("launchable") == f"{DESKTOP_ID}.desktop"
    assert [kind.text for kind in about.iter("mediatype")] == types
    assert said["MimeType"].rstrip(";").split(";") == types
    assert [kind.text for kind in about.iter("category")] == said["Categories"].split(";")[:2]


@pytest.mark.parametrize(
    ("tool", "words", "name"),
    [
        ("desktop-file-validate", (), f"{DESKTOP_ID}.desktop"),
        ("appstreamcli", ("validate", "--no-net"), f"{DESKTOP_ID}.metainfo.xml"),
    ],
)
def test_the_desktops_own_tools_find_nothing_wrong(tool, words, name):
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    told = subprocess.run([tool, *words, str(OURS / name)], capture_output=True, text=True)
    assert told.returncode == 0, told.stdout + told.stderr


def test_qt_names_its_windows_like_the_entry():
    code = (
        "from desktop.ui.app import application; a = application();"
        "print(a.desktopFileName(), a.applicationName(), a.windowIcon().isNull())"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    window_class = entry(OURS / f"{DESKTOP_ID}.desktop")["StartupWMClass"]
    assert told.stdout.split() == [DESKTOP_ID, window_class, "False"]


def test_a_running_program_opens_the_files_that_it_is_handed(tmp_path):
    """As the Finder does it, with a file and afterwards with a page of the web, which is none."""
    code = """
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication, QTimer, QUrl
from PySide6.QtGui import QFileOpenEvent
from desktop.ui import windows
from desktop.ui.app import application
opened = []
windows.Windows.open = lambda self, files=(): opened.append([Path(file).name for file in files])
def hand():
    for what in (sys.argv[1], QUrl("https://example.org/")):
        QCoreApplication.sendEvent(application(), QFileOpenEvent(what))
    QCoreApplication.quit()
QTimer.singleShot(0, application(), hand)
windows.run([], windows.Start(safe=True))
print(opened)
"""
    words = [sys.executable, "-c", code, str(tmp_path / "run.otf2")]
    told = subprocess.run(words, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[[], ['run.otf2']]"


@dataclass
class Nothing:
    """A project of nothing."""


def begins_like(rule: ET.Element, content: bytes) -> bool:
    """Whether a rule of the MIME database applies; of nested rules one must too."""
    value = codecs.escape_decode(rule.get("value").encode())[0]
    first, _, last = rule.get("offset").partition(":")
    there = any(content.startswith(value, k) for k in range(int(first), int(last or first) + 1))
    return there and (not len(rule) or any(begins_like(inner, content) for inner in rule))


def test_types_are_recognised_by_name_and_content(tmp_path):
    project = tmp_path / project_file.BUNDLED
    project_file.write(project, Nothing())
    bundle = tmp_path / "run.phasewright.zip"
    project_file.pack(bundle, tmp_path, {}, Progress())
    otf2 = [sample.path for sample in samples() if sample.path.suffix == ".otf2"]
    examples = {
        "application/vnd.phasewright.project+json": [project],
        "application/vnd.phasewright.bundle+zip": [bundle],
        "application/x-otf2-trace": otf2,
        "application/x-paraver-trace": sorted(PARAVER.rglob("*.prv")),
    }
    kinds = ET.parse(OURS / f"{DESKTOP_ID}.mime.xml").getroot()
    assert {kind.get("type") for kind in kinds} == set(examples)
    for kind in kinds:
        for name, paths in examples.items():
            assert paths
            for path in paths:
                ours = name == kind.get("type")
                assert any(begins_like(rule, path.read_bytes()) for rule in kind.find(f"{MIME}magic")) == ours
                longest = kind.find(f"{MIME}glob").get("pattern")
                assert path.match(longest) == ours

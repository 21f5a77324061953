"""``phasewright desktop``: the program in the menus of a Linux desktop, for the user who asks.

What is installed are the files of ``resources/desktop`` and the icon, at the places that the specifications
of freedesktop.org give them below the user's data folder (XDG_DATA_HOME); nothing outside of it is touched.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from desktop.commands.terminal import DONE
from desktop.errors import DesktopError

#: The command of the window, which the menu starts.
WINDOW = "phasewright-window"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("what", choices=("install", "remove"), help="for you alone; can be repeated")


def run(options: argparse.Namespace) -> list[str]:
    """Install or remove, as the options say; what was done, as lines.

    Raises
    ------
    DesktopError : this is no Linux or BSD, or there is no command that a menu could start.
    OSError : the folder cannot be written.
    """
    if sys.platform in ("win32", "darwin"):
        raise DesktopError(
            "menus of this system are not made of desktop entries",
            hint="pin the program to the task bar or the Dock instead",
        )
    home = data_home()
    if options.what == "install":
        files = install(home, window_command())
        return [f"Phasewright is in the menu and opens its files. Written, below {home}:", *files]
    files = remove(home)
    if not files:
        return [f"Nothing of Phasewright is installed below {home}."]
    return [f"Phasewright is out of the menu. Removed, below {home}:", *files]


def data_home() -> Path:
    """Where the user's applications, icons and types of files are."""
    folder = Path(os.environ.get("XDG_DATA_HOME", ""))
    return folder if folder.is_absolute() else Path.home() / ".local" / "share"


def window_command() -> Path:
    """The command of the window that belongs to the running program.

    Raises
    ------
    DesktopError : there is none, as in a source tree that is not installed.
    """
    beside = Path(sys.executable if getattr(sys, "frozen", False) else sys.argv[0]).absolute().parent
    for folder in (beside, Path(sysconfig.get_path("scripts"))):
        if os.access(folder / WINDOW, os.X_OK):
            return folder / WINDOW
    raise DesktopError(f"there is no command {WINDOW} here", hint="install Phasewright with pip first")


def places() -> dict[str, Path]:
    """Where each file goes, relative to the data folder, and the resource that it is."""
    from desktop.resources import DESKTOP_ID, folder

    home = folder()
    ours = home / "desktop" / DESKTOP_ID
    return {
        f"applications/{DESKTOP_ID}.desktop": ours.with_name(f"{DESKTOP_ID}.desktop"),
        f"icons/hicolor/scalable/apps/{DESKTOP_ID}.svg": home / "icons" / "phasewright.svg",
        f"metainfo/{DESKTOP_ID}.metainfo.xml": ours.with_name(f"{DESKTOP_ID}.metainfo.xml"),
        f"mime/packages/{DESKTOP_ID}.xml": ours.with_name(f"{DESKTOP_ID}.mime.xml"),
    }


def install(home: Path, command: Path) -> list[str]:
    """Write all files below `home`, over those of an earlier time; `command` is what the entry starts.

    Raises
    ------
    OSError : `home` cannot be written.
    """
    from desktop.data.atomic import write_text

    for place, source in places().items():
        text = source.read_text(encoding="utf-8")
        if place.startswith("applications/"):
            text = text.replace(
                f"Exec={WINDOW} ", f"TryExec={_escaped(str(command))}\nExec={quoted(command)} "
            )
        target = home / place
        target.parent.mkdir(parents=True, exist_ok=True)
        write_text(target, text)
    _refresh(home)
    return list(places())


def remove(home: Path) -> list[str]:
    """Remove what `install` wrote below `home`; what was there to remove.

    Raises
    ------
    OSError : a file cannot be removed.
    """
    present = [place for place in places() if (home / place).exists()]
    for place in present:
        (home / place).unlink()
    if present:
        _refresh(home)
    return present


def quoted(command: Path) -> str:
    """A program as the key Exec of a desktop entry wants it: quoted, then escaped as every text there."""
    text = str(command).replace("%", "%%")
    for sign in ("\\", '"', "`", "$"):
        text = text.replace(sign, f"\\{sign}")
    return _escaped(f'"{text}"')


def _escaped(text: str) -> str:
    for sign, name in (("\\", "\\\\"), ("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r")):
        text = text.replace(sign, name)
    return text


def _refresh(home: Path) -> None:
    """Update the desktop's databases of file types and entries, where their tools are installed."""
    for tool, folder in (("update-mime-database", "mime"), ("update-desktop-database", "applications")):
        program = shutil.which(tool)
        if program and (home / folder).is_dir():
            subprocess.run([program, str(home / folder)], capture_output=True, check=False)
    icons = home / "icons" / "hicolor"
    if icons.is_dir():
        os.utime(icons)  # icon caches are older than the folder, then


def main(options: argparse.Namespace) -> int:
    print("\n  ".join(run(options)))
    return DONE

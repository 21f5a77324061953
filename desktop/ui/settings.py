"""What the program remembers between two starts; a typed view of QSettings."""

from __future__ import annotations

import json
from collections.abc import Callable, Container
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Literal, Protocol, TypeVar, cast, get_args
from weakref import finalize

import platformdirs
from PySide6.QtCore import QByteArray, QSettings

from desktop import stopping
from desktop.data.atomic import scratch
from desktop.remote import RemotePath, place

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory


ORGANISATION = "Phasewright"
APPLICATION = "phasewright"
RECENT = 10
#: Raised when docks or toolbars change, so that an old state is not restored into a new window.
STATE_VERSION = 3

ThemeChoice = Literal["light", "dark", "system"]
TEXT_SIZES = (100, 125, 150, 200)
#: Units of time that can be asked for; "" chooses by what is seen.
TIME_UNITS = ("", "s", "ms", "µs", "ns")
#: Sets of colours for what is told apart by colour, each safe for the colour-blind (see `desktop.ui.theme`).
COLOUR_SETS = {"soft": "Soft", "okabe-ito": "Okabe-Ito", "tol": "Tol, bright"}
#: MiB for what is kept of an open trace: least, at first, most.
MEMORY = (64, 512, 1 << 16)


class Keyed(Protocol):
    """The part of a command by which its keys are kept."""

    @property
    def id(self) -> str: ...
    @property
    def keys(self) -> tuple[str, ...]: ...
    @property
    def common(self) -> bool: ...


def log_folder() -> Path:
    """The folder of the log and of crash reports."""
    return Path(platformdirs.user_log_dir(APPLICATION, appauthor=False))


def settings_file() -> Path:
    """The file of the user's settings."""
    return Path(_users_store().fileName())


def put_settings_aside() -> Path | None:
    """Rename the file of settings, so that the next start is as the first; None if there is none.

    OSError: it cannot be renamed.
    """
    file = settings_file()
    if not file.exists():
        return None
    return file.replace(file.with_name(f"{file.stem}.backup-{_now()}{file.suffix}"))


def _forget(store: QSettings, folder: TemporaryDirectory[str]) -> None:
    with suppress(RuntimeError):  # at the program's end Qt may have written it already
        store.sync()  # or it would make the folder again to write what it holds
    folder.cleanup()
    stopping.left(folder.name)


def _now() -> str:
    return f"{datetime.now():%Y%m%d-%H%M%S}"


def _users_store() -> QSettings:
    # A file on every system, also where the native way is a registry: only a file can be put aside.
    return QSettings(QSettings.Format.IniFormat, QSettings.Scope.UserScope, ORGANISATION, APPLICATION)


T = TypeVar("T")


class _Setting(Generic[T]):
    """A value by its name in the file; `first` if there is none that `read` accepts and that is `allowed`."""

    def __init__(self, first: T, read: Callable[[str], T], allowed: Container[object] | None = None) -> None:
        self._first, self._read, self._allowed = first, read, allowed

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, settings: Settings, owner: type) -> T:
        try:
            value = self._read(str(settings._store.value(self._name)))
        except (ValueError, KeyError):
            return self._first
        return value if self._allowed is None or value in self._allowed else self._first

    def __set__(self, settings: Settings, value: T) -> None:
        if value is None:
            settings._store.remove(self._name)
        elif isinstance(value, list):
            settings._store.setValue(self._name, "\t".join(value))
        else:
            settings._store.setValue(self._name, str(value).lower() if isinstance(value, bool) else value)


_yes = {"true": True, "false": False}.__getitem__


def _text(text: str) -> str:
    return "" if text == "None" else text  # as an absent value reads


def _titles(text: str) -> list[str] | None:
    return None if text == "None" else [title for title in text.split("\t") if title]


def _share(text: str) -> float | None:
    return float(text) if 0.1 <= float(text) <= 0.8 else None


class Settings:
    """The user's settings. A value that makes no sense counts as absent. A file that cannot be read is put
    aside, where `aside` says."""

    #: open the last project at the start
    reopen = _Setting(False, _yes)
    time_unit = _Setting("", str, TIME_UNITS)
    #: MiB for what is kept of an open trace
    memory = _Setting(MEMORY[1], int, range(MEMORY[0], MEMORY[2] + 1))
    #: what ssh runs on other machines, "" as usual
    remote_command = _Setting("", _text)
    colours = _Setting(next(iter(COLOUR_SETS)), str, COLOUR_SETS)
    theme = _Setting[ThemeChoice]("system", lambda text: cast(ThemeChoice, text), get_args(ThemeChoice))
    #: percent of the system's text size
    text_size = _Setting(100, int, TEXT_SIZES)
    #: of the user's own: a template for slides, a style sheet for HTML; "": none
    template = _Setting("", _text)
    css = _Setting("", _text)
    timeline_shown = _Setting(True, _yes)
    #: of the height of the plots, 0.1 to 0.8; None: the user has not moved it
    timeline_share = _Setting[float | None](None, _share)
    #: titles of the phase table's columns that are left out; None: those that are at first
    hidden_columns = _Setting[list[str] | None](None, _titles)

    def __init__(self, store: QSettings | None = None) -> None:
        self._store = store or _users_store()
        self.aside: Path | None = None
        if self._store.status() == QSettings.Status.FormatError:
            file = Path(self._store.fileName())
            try:
                self.aside = file.replace(file.with_name(f"{file.name}.broken-{_now()}"))
                self._store = QSettings(str(file), QSettings.Format.IniFormat)
            except OSError:  # it stays where it is, and nothing is kept
                self._pass()

    @classmethod
    def passing(cls) -> Settings:
        """Settings as at the first start, forgotten with the last reference."""
        settings = cls.__new__(cls)
        settings.aside = None
        settings._pass()
        return settings

    def _pass(self) -> None:
        folder = scratch(whatever_happens=True)
        self._store = QSettings(str(Path(folder.name) / "settings.ini"), QSettings.Format.IniFormat)
        finalize(self, _forget, self._store, folder)

    # ---- preferences

    def user_file(self, kind: str) -> Path | None:
        """The user's template or style sheet for a report with this suffix, without its dot."""
        path = {"pptx": self.template, "html": self.css}.get(kind, "")
        return Path(path) if path else None

    def keys(self, window: str, command: Keyed) -> tuple[str, ...]:
        """Keys that the user has chosen, else those that the command has at first."""
        value = self._store.value(_place(window, command))
        if value is None and command.common:  # as chosen when the command was one of that table alone
            value = self._store.value(f"keys/{window}/{command.id}")
        return command.keys if value is None else tuple(_names(value))

    def set_keys(self, window: str, command: Keyed, keys: tuple[str, ...] | None) -> None:
        """Choose keys of a command; () for no key, None for those that it has at first."""
        if keys is None or keys == command.keys:
            self._store.remove(_place(window, command))
        else:
            # An empty list would be read as nothing at all.
            self._store.setValue(_place(window, command), list(keys) or "")

    def reset(self, *names: str) -> None:
        """Set preferences to their defaults, by their names in the file; "keys" stands for all keys."""
        for name in names:
            self._store.remove(name)

    # ---- what was done last

    @property
    def recent(self) -> list[Path]:
        """Files opened last, the latest first."""
        paths = []
        for name in _names(self._store.value("recent")):
            with suppress(ValueError):  # no place that there can be
                paths.append(place(name))
        return paths[:RECENT]

    def add_recent(self, path: Path) -> None:
        """Put a file first among the recent ones, of which `RECENT` are remembered."""
        path = path.absolute()
        self._store.sync()  # another process may have put files there
        paths = [path, *(other for other in self.recent if other != path)]
        self._store.setValue("recent", [str(other) for other in paths[:RECENT]])

    def clear_recent(self) -> None:
        self._store.remove("recent")

    @property
    def folder(self) -> str:
        """The folder of the last file on this machine; "" if there is none."""
        local = [path for path in self.recent if not isinstance(path, RemotePath)]
        return str(local[0].parent) if local else ""

    @property
    def geometry(self) -> QByteArray | None:
        """The size and place of the last window that was closed; None if there was none."""
        return self._bytes("geometry")

    def save_geometry(self, geometry: QByteArray) -> None:
        """Remember the size and place of a window."""
        self._store.setValue("geometry", geometry)

    def page_state(self, page: str) -> QByteArray | None:
        """How a page is divided, by its name: splits, and the docks of the page of traces."""
        return self._bytes("state" if page == "main" else f"{page}/state")

    def keep_page_state(self, page: str, state: QByteArray) -> None:
        """Remember how a page is divided; see `page_state`."""
        self._store.setValue("state" if page == "main" else f"{page}/state", state)

    def forget_page(self, page: str) -> None:
        """Divide a page as at first when it is made next."""
        self._store.remove("state" if page == "main" else f"{page}/state")

    def session(self, project: Path | None) -> str:
        """What `keep_session` was last given for a project; "" if nothing."""
        text = self._sessions().get(str(project or ""), "")
        return text if isinstance(text, str) else ""

    def keep_session(self, project: Path | None, session: str) -> None:
        """Which pages are open with a project (None: without one), of as many projects as recent files."""
        self._store.sync()  # another process may have kept some
        sessions = self._sessions()
        sessions.pop(str(project or ""), None)
        recent = [*sessions.items(), (str(project or ""), session)][-RECENT:]
        self._store.setValue("sessions", json.dumps(dict(recent)))

    def _sessions(self) -> dict[str, object]:
        try:
            sessions = json.loads(str(self._store.value("sessions", "{}")))
        except ValueError:
            return {}
        return sessions if isinstance(sessions, dict) else {}

    @property
    def last_project(self) -> Path | None:
        """The project that was opened or saved last, if it is still there."""
        projects = (path for path in self.recent if path.suffix == ".phasewright")
        return next((path for path in projects if path.is_file()), None)

    def _bytes(self, key: str) -> QByteArray | None:
        value = self._store.value(key)
        return value if isinstance(value, QByteArray) and not value.isEmpty() else None


def _place(window: str, command: Keyed) -> str:
    return f"keys/{'all' if command.common else window}/{command.id}"


def _names(value: object) -> list[str]:
    """A list as QSettings reads it: of one entry the text alone."""
    names = value if isinstance(value, list) else [value]
    return [name for name in names if isinstance(name, str) and name]

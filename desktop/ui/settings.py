"""What the program remembers between two starts; a typed view of QSettings."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, cast

from PySide6.QtCore import QByteArray, QSettings

ORGANISATION = "Phasewright"
APPLICATION = "phasewright"
RECENT = 10
#: Raised when docks or toolbars change, so that an old state is not restored into a new window.
STATE_VERSION = 2

ThemeChoice = Literal["light", "dark", "system"]
TEXT_SIZES = (100, 125, 150, 200)


class Settings:
    """Reads forgive: a value that makes no sense counts as absent."""

    def __init__(self, store: QSettings | None = None) -> None:
        self._store = store or QSettings(ORGANISATION, APPLICATION)

    @property
    def recent(self) -> list[Path]:
        """Files opened last, the latest first."""
        value = self._store.value("recent", [])
        names = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        return [Path(name) for name in names if isinstance(name, str) and name][:RECENT]

    def add_recent(self, path: Path) -> None:
        path = path.absolute()
        kept = [path, *(other for other in self.recent if other != path)]
        self._store.setValue("recent", [str(other) for other in kept[:RECENT]])

    def clear_recent(self) -> None:
        self._store.remove("recent")

    @property
    def folder(self) -> str:
        """Where the last file came from."""
        recent = self.recent
        return str(recent[0].parent) if recent else ""

    @property
    def theme(self) -> ThemeChoice:
        value = self._store.value("theme")
        return cast(ThemeChoice, value) if value in ("light", "dark", "system") else "system"

    @theme.setter
    def theme(self, value: ThemeChoice) -> None:
        self._store.setValue("theme", value)

    @property
    def text_size(self) -> int:
        """Percent of the system's text size."""
        try:
            value = int(str(self._store.value("text_size", 100)))
        except ValueError:
            value = 100
        return value if value in TEXT_SIZES else 100

    @text_size.setter
    def text_size(self, value: int) -> None:
        self._store.setValue("text_size", value)

    @property
    def timeline_shown(self) -> bool:
        return str(self._store.value("timeline_shown", "true")) != "false"

    @timeline_shown.setter
    def timeline_shown(self, value: bool) -> None:
        self._store.setValue("timeline_shown", "true" if value else "false")

    @property
    def timeline_share(self) -> float:
        """Of the height of the plots, 0.1 to 0.8."""
        try:
            value = float(str(self._store.value("timeline_share", 0.34)))
        except ValueError:
            value = 0.34
        return value if 0.1 <= value <= 0.8 else 0.34

    @timeline_share.setter
    def timeline_share(self, value: float) -> None:
        self._store.setValue("timeline_share", round(value, 4))

    @property
    def geometry(self) -> QByteArray | None:
        return self._bytes("geometry")

    @property
    def state(self) -> QByteArray | None:
        return self._bytes("state")

    def save_window(self, geometry: QByteArray, state: QByteArray) -> None:
        self._store.setValue("geometry", geometry)
        self._store.setValue("state", state)

    def geometry_of(self, window: str) -> tuple[QByteArray | None, QByteArray | None]:
        """Geometry and state of a window beside the main one."""
        return self._bytes(f"{window}/geometry"), self._bytes(f"{window}/state")

    def keep_geometry(self, window: str, geometry: QByteArray, state: QByteArray) -> None:
        self._store.setValue(f"{window}/geometry", geometry)
        self._store.setValue(f"{window}/state", state)

    def forget_window(self) -> None:
        self._store.remove("geometry")
        self._store.remove("state")

    def _bytes(self, key: str) -> QByteArray | None:
        value = self._store.value(key)
        return value if isinstance(value, QByteArray) and not value.isEmpty() else None

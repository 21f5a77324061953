"""Paths on other machines, ``ssh://[user@]host[:port]/path``, used like local ones in the whole program.

``ssh://host/~/run/traces.otf2`` is below the home there. Hosts that the user has named are
remembered; others, which a stranger's project may name, are never contacted.
"""

from __future__ import annotations

import os
import re
from argparse import ArgumentTypeError
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# Nothing that ssh could take for an option or a command. One slash: as paths are normalised.
_PLACE = re.compile(
    r"ssh:/{1,2}((?:[A-Za-z0-9_][\w.-]*@)?(?:[A-Za-z0-9][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?)(/.+)",
    re.ASCII,
)
_MOST_HOSTS = 100

#: Called with a sentence on the connections to hosts, "" if there is none, in any thread.
listeners: list[Callable[[str], None]] = []


@dataclass
class How:
    """What ssh runs there ("": the default), and whether a lost connection is retried without end, as the
    user sees that and can cancel it."""

    command: str = ""
    patient: bool = False


how = How()


class NoPlace(ValueError, ArgumentTypeError):
    """A path that begins as one on another machine, and is none."""


def place(text: str | os.PathLike[str]) -> Path:
    """A path as the user names it, here or on another machine.

    Raises
    ------
    NoPlace : it begins as one on another machine, and is none.
    """
    text = os.fspath(text)
    if not text.startswith("ssh:/"):
        return Path(text)
    match = _PLACE.fullmatch(text)
    if match is None or not 0 < int(match[2] or 22) < 1 << 16 or "\0" in text:
        raise NoPlace(f"{text!r} is no place on another machine, write ssh://host/path/of/trace")
    return RemotePath("ssh:", match[1], match[3].lstrip("/"))


def named(text: str | os.PathLike[str]) -> Path:
    """As `place`, for a path that the user has typed: its host may be contacted from now on."""
    path = place(text)
    if isinstance(path, RemotePath):
        know(path)
    return path


class RemotePath(type(Path())):  # type: ignore[misc]  # the concrete class of this system
    """A path on another machine, made by `place`; its methods contact nobody."""

    @property
    def destination(self) -> str:
        """``[user@]host[:port]``, as ssh takes it."""
        return str(self.parts[1])

    @property
    def remote_path(self) -> str:
        """The path on that machine; what begins with ``~/`` is below the home."""
        path = "/".join(self.parts[2:])
        return path if path.startswith("~/") else f"/{path}"

    def __str__(self) -> str:
        return "ssh://" + "/".join(self.parts[1:])

    def as_posix(self) -> str:
        return str(self)

    def absolute(self) -> RemotePath:
        return self

    def resolve(self, strict: bool = False) -> RemotePath:
        return self

    def expanduser(self) -> RemotePath:
        return self

    def exists(self, **_: object) -> bool:
        """Whether it may be read: the user has named its host before."""
        return self.destination in hosts()


def _list() -> Path:
    from platformdirs import user_state_path

    return user_state_path("phasewright", appauthor=False) / "remote-hosts"


def hosts() -> list[str]:
    """Hosts that the user has named, the latest first."""
    try:
        return _list().read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        return []


def know(path: RemotePath) -> None:
    """Remember the host of a path that the user has named."""
    former = hosts()
    if former[:1] != [path.destination]:
        every = dict.fromkeys([path.destination, *former])
        with suppress(OSError):
            _list().parent.mkdir(parents=True, exist_ok=True)
            _list().write_text("\n".join([*every][:_MOST_HOSTS]), encoding="utf-8")

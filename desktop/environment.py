"""Environment variables that this program sets for itself, and the environment without them."""

from __future__ import annotations

import os

_ours: dict[str, str] = {}
_alone = False


def alone() -> bool:
    """Whether this process is the program itself, rather than a notebook or another that imports it."""
    return _alone


def set_for_ourselves(name: str, value: str) -> None:
    """Set a variable for this program, which this process is, unless the user has."""
    global _alone
    _alone = True
    if name not in os.environ:
        os.environ[name] = _ours[name] = value


def user_environment() -> dict[str, str]:
    """The environment as the user gave it: what a measured program must run in."""
    return {name: value for name, value in os.environ.items() if _ours.get(name) != value}

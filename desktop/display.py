"""Whether a window can be opened here, found out before Qt is asked: where it cannot, Qt aborts."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path


def obstacle() -> str:
    """Why no window can be opened, in words; empty if nothing is in its way."""
    if not sys.platform.startswith("linux"):
        return ""
    chosen = os.environ.get("QT_QPA_PLATFORM", "wayland;xcb")
    obstacles = []
    for platform in chosen.split(";"):
        kind = platform.partition(":")[0]
        if kind == "xcb":
            found = _x_obstacle()
        elif kind.startswith("wayland"):
            found = _wayland_obstacle()
        else:
            return ""  # a platform without a display, such as "offscreen", or one that only Qt knows
        if found == "":
            return ""
        obstacles += [found] if found else []
    return " and ".join(obstacles) or "there is no display to open a window on"


def _x_obstacle() -> str | None:
    """None: nobody says that there is an X server."""
    name = os.environ.get("DISPLAY")
    if not name:
        return None
    try:
        for plugin in _plugins("xcb"):
            ctypes.CDLL(str(plugin))  # fails as Qt would, and then names the library that is missing
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError as error:
        return f"Qt cannot be loaded for the display {name} ({error})"
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    xcb.xcb_connection_has_error.argtypes = xcb.xcb_disconnect.argtypes = [ctypes.c_void_p]
    connection = xcb.xcb_connect(None, None)
    failed = xcb.xcb_connection_has_error(connection)
    xcb.xcb_disconnect(connection)
    return f"the display {name} (DISPLAY) cannot be reached" if failed else ""


def _wayland_obstacle() -> str | None:
    """None: nobody says that there is a Wayland server."""
    if os.environ.get("WAYLAND_SOCKET"):
        return ""
    name = os.environ.get("WAYLAND_DISPLAY")
    if not name:
        return None
    place = Path(os.environ.get("XDG_RUNTIME_DIR", "")) / name
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(str(place))
    except OSError:
        return f"the display {name} (WAYLAND_DISPLAY) cannot be reached"
    return ""


def _plugins(name: str) -> Iterator[Path]:
    """Where the wheel of Qt keeps the plugin of a platform; a distribution's Qt has it elsewhere."""
    spec = importlib.util.find_spec("PySide6")
    for folder in (spec and spec.submodule_search_locations) or ():
        plugin = Path(folder) / "Qt" / "plugins" / "platforms" / f"libq{name}.so"
        if plugin.exists():
            yield plugin

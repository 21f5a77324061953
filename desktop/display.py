"""Whether a window can be opened here; tested before Qt is loaded, as Qt aborts where it cannot."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path


def obstacle() -> str:
    """Why no window can be opened, in words; "" if one can."""
    if not sys.platform.startswith("linux"):
        return ""
    platforms = os.environ.get("QT_QPA_PLATFORM", "wayland;xcb")
    obstacles = []
    for platform in platforms.split(";"):
        kind = platform.partition(":")[0]
        if kind == "xcb":
            problem = _x_obstacle()
        elif kind.startswith("wayland"):
            problem = _wayland_obstacle()
        else:
            return ""  # a platform without a display, such as "offscreen", or one that only Qt knows
        if problem == "":
            return ""
        obstacles += [problem] if problem else []
    return " and ".join(obstacles) or "there is no display to open a window on"


def _x_obstacle() -> str | None:
    """Why the X server cannot be reached, "" if it can; None where no variable names one."""
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
    """Why the Wayland server cannot be reached, "" if it can; None where no variable names one."""
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

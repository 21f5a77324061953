"""A display that cannot be had ends in a sentence before Qt aborts; one that can stands in nobody's way."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from desktop import display

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="other systems always have a display"
)


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "QT_QPA_PLATFORM", "XAUTHORITY"):
        monkeypatch.delenv(name, raising=False)


# What an X server says first (X Window System Protocol, chapter 8): it refuses, or it has one small screen.
REFUSAL = struct.pack("<BBHHH", 0, 4, 11, 0, 1) + b"sent"
SCREEN = struct.pack("<IIIIIHHHHHHIBBBB", 64, 65, 0, 0xFFFFFF, 0, 640, 480, 200, 150, 1, 1, 66, 0, 0, 24, 0)
ROOM = struct.pack("<IIIIHHBBBBBBBB4x", 1, 1 << 21, (1 << 21) - 1, 0, 0, 1 << 15, 1, 0, 0, 0, 32, 32, 8, 255)
WELCOME = struct.pack("<BxHHH", 1, 11, 0, len(ROOM + SCREEN) // 4) + ROOM + SCREEN


@contextmanager
def x_server(answer: bytes) -> Iterator[str]:
    """Something that answers every client so; its display name."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()

        def serve() -> None:
            while True:
                client, _ = server.accept()
                with client:
                    if not client.recv(4096):
                        return
                    client.sendall(answer)
                    client.recv(4096)

        thread = Thread(target=serve, daemon=True)
        thread.start()
        port = server.getsockname()[1]
        yield f"127.0.0.1:{port - 6000}"
        socket.create_connection(("127.0.0.1", port)).close()  # says nothing, and so ends the server
        thread.join(10)


def test_an_unreachable_display_ends_the_command_with_one_sentence(tmp_path):
    curve = tmp_path / "curve.csv"
    curve.write_text("0,1\n1,1\n")
    ended = subprocess.run(
        [sys.executable, "-m", "desktop", str(curve)],
        capture_output=True, text=True, check=False, timeout=60, env={**os.environ, "DISPLAY": ":4711"},
    )  # fmt: skip
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1 and ":4711" in ended.stderr and "snapshot" in ended.stderr


def test_an_x_server_that_answers_is_no_obstacle(monkeypatch):
    with x_server(WELCOME) as name:
        monkeypatch.setenv("DISPLAY", name)
        assert display.obstacle() == ""
        monkeypatch.setenv("WAYLAND_DISPLAY", "/nowhere/wayland-0")
        assert display.obstacle() == "", "Qt tries the other one"


def test_an_x_server_that_refuses_is_one(monkeypatch):
    with x_server(REFUSAL) as name:
        monkeypatch.setenv("DISPLAY", name)
        assert name in display.obstacle()


def test_a_wayland_server_is_found_by_its_socket(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-1")
    assert "wayland-1" in display.obstacle()
    # From the folder itself, as the name of a socket may have some hundred characters only.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", ".")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("wayland-1")
        server.listen()
        assert display.obstacle() == ""
    assert "wayland-1" in display.obstacle(), "its socket is left over"


def test_a_library_that_qt_lacks_is_named(monkeypatch, tmp_path):
    broken = tmp_path / "libqxcb.so"
    broken.write_bytes(b"no library")
    monkeypatch.setattr(display, "_plugins", lambda name: [broken])
    monkeypatch.setenv("DISPLAY", ":0")
    assert str(broken) in display.obstacle()


@pytest.mark.parametrize(
    ("platform", "free"), [("offscreen", True), ("xcb", False), ("xcb;offscreen", True), ("wayland", False)]
)
def test_a_platform_that_was_chosen_is_asked_for_alone(monkeypatch, platform, free):
    monkeypatch.setenv("QT_QPA_PLATFORM", platform)
    assert (display.obstacle() == "") is free


def test_the_plugin_of_qt_is_where_it_is_looked_for():
    assert [path.name for path in display._plugins("xcb")] == ["libqxcb.so"]
    assert list(display._plugins("none")) == []


def test_without_any_display_there_is_one_plain_reason():
    assert display.obstacle() == "there is no display to open a window on"

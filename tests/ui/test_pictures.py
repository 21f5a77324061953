"""The script that makes the handbook's pictures: they show the program, and stale ones are told."""

from __future__ import annotations

import importlib.util
import sys
import threading
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PySide6.QtGui import QColor, QImage
from pytestqt.qtbot import QtBot

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "packaging" / "pictures.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_picture_has_its_file(pictures: ModuleType) -> None:
    assert {file.stem for file in pictures.FOLDER.glob("*.png")} == {*pictures.PICTURES, *pictures.OF_RUNS}


def test_pictures_show_the_program(pictures: ModuleType, qtbot: QtBot) -> None:
    for name, image in pictures.draw(["window", "statistics"]):
        kept = QImage(str(pictures.FOLDER / f"{name}.png"))
        for shown in (image, kept):
            assert shown.width() > 400 and shown.height() > 200, name
            places = ((x, y) for x in range(0, shown.width(), 5) for y in range(0, shown.height(), 5))
            assert len({shown.pixel(x, y) for x, y in places}) > 20, f"{name} is empty"
        assert pictures.difference(image, image) == 0
    assert not [t.name for t in threading.enumerate() if t.name.startswith("phasewright")]


def test_a_stale_picture_is_told_from_another_rendering(pictures: ModuleType) -> None:
    image = QImage(200, 160, QImage.Format.Format_RGB32)
    image.fill("white")
    shifted, moved = image.copy(), image.copy()
    for y in range(10, 150, 20):  # thin lines, one pixel lower: another version of Qt
        for x in range(200):
            image.setPixelColor(x, y, QColor("#a0a0a0"))
            shifted.setPixelColor(x, y + 1, QColor("#a0a0a0"))
    assert pictures.difference(image, shifted) <= pictures.TOLERANCE
    for y in range(40, 80):
        for x in range(20, 80):
            moved.setPixelColor(x, y, QColor("#0060a0"))
    assert pictures.difference(image, moved) > pictures.TOLERANCE
    assert pictures.difference(image, image.copy(0, 0, 100, 160)) == 1


def test_few_colours_keep_large_areas_exact(pictures: ModuleType) -> None:
    image = QImage(256, 256, QImage.Format.Format_RGB32)
    for y in range(256):
        for x in range(256):
            image.setPixelColor(x, y, QColor(x, y, (x * y) % 256) if y < 64 else QColor(3, 201, 97))
    made = pictures.few_colours(image)
    assert made.colorCount() <= 256
    assert made.pixelColor(100, 200) == QColor(3, 201, 97)
    off = np.abs(pictures._pixels(image).astype(int) - pictures._pixels(made)).max(2)
    assert off[64:].max() == 0 and off[:64].mean() < 16

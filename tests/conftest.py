"""Tests need no display, whoever starts them, and what they start need not compile the program anew."""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# A process that may not keep what Python compiles spends a third of a second on that whenever it starts.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

#: Files of ten seconds and more of processor time: first, lest one of them runs alone in the end.
LONGEST = (
    "test_accessibility.py", "test_window.py", "test_places.py", "test_statistics.py", "test_trim.py",
    "test_timeline_window.py", "test_experiment_window.py", "test_model_window.py", "test_warming.py",
    "test_ending.py", "test_atomic.py", "test_time_scenes.py", "test_recorded.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in LONGEST)

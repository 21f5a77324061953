"""Windows of one test after another in one process."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def garbage_is_collected_here() -> Iterator[None]:
    """As in the program (`desktop.ui.app.Garbage`): widgets freed by a worker's thread abort the process."""
    gc.disable()
    yield
    gc.collect()

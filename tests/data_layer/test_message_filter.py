"""Which messages are looked at."""

from __future__ import annotations

import math

import pytest

from desktop.data.message_filter import ALL_MESSAGES, MessageFilter


def test_everything() -> None:
    assert ALL_MESSAGES.everything and MessageFilter(shown=False).everything
    assert not MessageFilter(least_bytes=1).everything and not MessageFilter(False, tag=0).everything


@pytest.mark.parametrize("least", [-1.0, math.inf, math.nan])
def test_a_file_may_hold_nonsense(least: float) -> None:
    assert MessageFilter(least_s=least).problem() and not MessageFilter(least_s=1.0).problem()
    assert MessageFilter(least_bytes=-1).problem()

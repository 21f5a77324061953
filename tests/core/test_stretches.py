"""The recorded run as operations that release each other."""

from __future__ import annotations

import numpy as np
import pytest

from desktop.core import machine, stretches


def test_messages_have_no_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of messages do not lead beyond the collective operations, of which there may be fewer."""
    kind = np.array([machine.SEND, machine.SEND, machine.RECEIVE, machine.RECEIVE], np.uint8)
    point, over, key = np.array([10, 20, 5, 12]), np.array([10, 20, 11, 22]), np.array([0, 1, 0, 1])
    sent, posted, early = np.array([10, 20]), np.array([5, 12]), np.zeros(2, np.int64)
    root, latest, let_go = np.zeros(0, np.int64), np.zeros(0, np.int64), np.full(4, stretches.BEGIN)
    ends, did = (np.array([0, 2]), np.array([2, 4])), np.full(2, machine.EAGER, np.uint8)
    monkeypatch.setattr(stretches, "awaited", stretches.awaited.py_func)
    # In Python an index beyond an array is an error; compiled, it reads what lies there.
    stretches.release.py_func(
        *ends, kind, key, root, point, over, sent, posted, did, early, latest, let_go
    )  # fmt: skip
    assert let_go.tolist() == [stretches.BEGIN] * 2 + [10, 20]

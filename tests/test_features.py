"""No command, key, panel, figure, format or word of the command line is lost."""

from __future__ import annotations

from tests.features import LIST, features


def test_nothing_that_was_offered_is_lost() -> None:
    lost = set(LIST.read_text(encoding="utf-8").splitlines()) - features()
    assert not lost, "\n".join(sorted(lost))

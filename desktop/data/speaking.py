"""Speaker's notes: the user's own, else the known sentences about a run, and the annotations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from desktop.core.units import seconds

if TYPE_CHECKING:
    from desktop.core.explanation import Explanation
    from desktop.data.material import Mark


def notes(
    explanation: Explanation | None,
    breakpoints: Sequence[float],
    marks: Iterable[Mark],
    user_notes: Iterable[tuple[float | None, str]],
) -> list[str]:
    """Notes about the run, then about each phase between `breakpoints` (s).

    `explanation`: why time is lost, if known; `marks`: annotations, each mentioned with the phase in which it
    begins, those outside of all phases with the run; `user_notes`: each with a time inside its
    phase (None: of the run), which replace everything else.
    """
    ends = list(pairwise(breakpoints))
    texts: list[list[str]] = [[] for _ in range(len(ends) + 1)]
    mine: dict[int, str] = {}

    def place(at: float) -> int:
        return next((k for k, (start, end) in enumerate(ends, 1) if start <= at < end), 0)

    if explanation is not None:
        texts[0].append(explanation.paragraph)
        for k, phase in enumerate(explanation.phases[: len(ends)], 1):
            texts[k].append(phase.sentence)
    for mark in sorted(marks, key=lambda one: one.start_s):
        when = seconds(mark.start_s) + ("" if mark.end_s is None else f" to {seconds(mark.end_s)}")
        texts[place(mark.start_s)].append(f"{when}: {mark.located_text}")
    for at, text in user_notes:
        if at is None or (phase_at := place(at)):
            mine[0 if at is None else phase_at] = text
    return [mine.get(k, "\n".join(filter(None, lines))) for k, lines in enumerate(texts)]

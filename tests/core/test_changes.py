"""What is different in a predicted run, in words, and what cannot be."""

from __future__ import annotations

import math

import pytest

from desktop.core.changes import COLLECTIVES, MESSAGES, NONE, Changes
from desktop.core.machine import IDEAL, Machine


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (NONE, ""),
        (Changes(IDEAL), "ideal network"),
        (Changes(Machine(2e-6, 1e8)), "latency 2.000 µs, bandwidth 100.0 MB/s"),
        (
            Changes(Machine(2e-6, math.inf, eager=8000, buses=3)),
            "latency 2.000 µs, bandwidth infinite, rendezvous above 8.000 kB, 3 buses",
        ),
        (
            Changes(regions=(("solve", 2.0),), longer=(("read", 0.25),), phases=((1, 0.5),), balanced=(0, 2)),
            "solve 2 times faster; each call of read 250.0 ms longer; phase 2 0.5 times faster; "
            "phase 1 balanced; phase 3 balanced",
        ),
        (
            Changes(slower=((3, 3, 1.5), (4, 7, 2.0)), no_wait=(MESSAGES, COLLECTIVES, "MPI_Bcast")),
            "rank 3 1.5 times slower; ranks 4 to 7 2 times slower; no waiting for messages; "
            "no waiting in collectives; no waiting in MPI_Bcast",
        ),
    ],
)
def test_the_words_of_each_change(changes: Changes, words: str) -> None:
    assert changes.sentence == words


@pytest.mark.parametrize("factor", [0.0, -1.0, math.inf, math.nan])
def test_factors_that_are_none_are_refused_by_name(factor: float) -> None:
    for changed, name in (
        ({"regions": (("solve", factor),)}, "solve"),
        ({"phases": ((1, factor),)}, "phase 2"),
        ({"slower": ((0, 3, factor),)}, "ranks 0 to 3"),
    ):
        with pytest.raises(ValueError, match=f"of {name} is not possible"):
            Changes(**changed)  # type: ignore[arg-type]  # one of its fields

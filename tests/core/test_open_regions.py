"""The rule by which open regions say what a location does, against plain Python."""

from __future__ import annotations

import numpy as np

from desktop.core.open_regions import FIELDS, OUTERMOST, Classes, OpenEntries, code_now


def test_the_strongest_class_that_is_open_counts_whichever_number_it_has() -> None:
    chance = np.random.default_rng(5)
    classes, entries = np.zeros(1, np.uint8), np.zeros((6, 4), np.int64)
    state = np.zeros(FIELDS, np.int64)
    state[OUTERMOST] = 0
    for _ in range(300):
        n = int(chance.integers(2, 8))
        strength = np.r_[0, 1 + chance.permutation(n - 1)]
        counts = chance.integers(0, 2, n) * chance.integers(1, 4, n)
        counts[1 + chance.integers(n - 1)] = 1
        expected = max((k for k in range(n) if counts[k]), key=lambda k: strength[k])
        rule, opened = Classes(classes, classes, strength, True), OpenEntries(classes, entries, state, counts)
        assert code_now(rule, opened) == expected

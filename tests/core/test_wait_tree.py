"""Who hangs below whom, and what it costs, against a count instant by instant."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.core.wait_tree import COLUMNS, charge, who_hangs

END = 12
PLACES = 4


@st.composite
def some_waits(draw: st.DrawFn) -> list[tuple[int, int, int, int, int]]:
    """Begin, end, who, partner (-1: nobody known), family; those of a location do not overlap."""
    found = []
    for who in range(PLACES):
        at = 0
        while at < END - 1 and draw(st.booleans()):
            begin = draw(st.integers(at, END - 1))
            end = draw(st.integers(begin + 1, END))
            partner = draw(st.sampled_from([-1, *(p for p in range(PLACES) if p != who)]))
            found.append((begin, end, who, partner, draw(st.integers(0, COLUMNS // 2 - 1))))
            at = end
    return found


@settings(deadline=None)  # the first call compiles
@given(some_waits(), st.integers(1, END - 1), st.lists(st.integers(0, 2), min_size=END, max_size=END))
def test_every_waiting_instant_is_charged_to_the_root(
    waits: list[tuple[int, int, int, int, int]], cut: int, doing: list[int]
) -> None:
    columns = np.array(waits, np.int64).reshape(-1, 5).T
    *below, left_out = who_hangs(*columns, PLACES)
    time, where, column, number = below
    cuts = np.array([0, cut, END], np.int64)
    found = np.zeros((PLACES, 2, 3, 1 + COLUMNS), np.int64)
    waiting = np.full((PLACES, END), -1)  # which wait each location is in
    for w, (begin, end, who, *_) in enumerate(waits):
        if not left_out[w]:
            waiting[who, begin:end] = w
    for place in range(PLACES):
        states = np.where(waiting[place] >= 0, -1, doing)
        mine = where == place
        at = np.arange(END)
        charge(
            at, at + 1, states, cuts, time[mine], column[mine], number[mine], found[place],
            np.zeros((2, 3), np.int64),
        )  # fmt: skip
    expected = np.zeros_like(found)
    for at in range(END):
        segment = int(at >= cut)
        for place in range(PLACES):
            if waiting[place, at] < 0:
                expected[place, segment, doing[at], 0] += 1
                continue
            root, hops = place, 0
            while waiting[root, at] >= 0:
                wait = waiting[root, at]
                root, hops = int(columns[3, wait]), hops + 1
                assert hops <= PLACES  # those in a circle were left out
            expected[root, segment, doing[at], 1 + 2 * int(columns[4, wait]) + (hops > 1)] += 1
    np.testing.assert_array_equal(found, expected)
    assert found.sum() == PLACES * END


def test_a_circle_is_left_out_and_a_chain_is_not() -> None:
    begin, end = np.array([0, 0, 1]), np.array([4, 4, 3])
    who, partner, family = np.array([0, 1, 2]), np.array([1, 2, 0]), np.zeros(3, np.int64)
    assert who_hangs(begin, end, who, partner, family, 3)[-1].tolist() == [False, False, True]

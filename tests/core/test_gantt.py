"""Rows of the timeline at the pixels, and sets of many regions, against plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop.core import gantt

LEFT, GROUND = 7, 99  # what was there before, and what lies between rows


def pixel(
    x: int, y: int, band: tuple[int, int], cells: list[tuple[int, int] | None], order: list[int], gap: int
):
    """The class that a pixel of a band shows, None between rows. `cells`: main class and set of a column."""
    inner = band[1] - band[0]
    space = gap if inner >= 5 * gap else 0
    if y >= band[1] - space:
        return None
    inner -= space
    here = cells[x]
    assert here is not None
    around = {c[0] for c in cells[max(x - 1, 0) : x + 2] if c is not None}
    unseen = [k for k in order if here[1] >> k & 1 and k not in around]
    if not unseen:
        return here[0]
    if inner >= 4 * gap:
        marked = y >= band[1] - space - max(gap, inner // 4)
    else:
        marked = (x + y) % 3 == 0
    return unseen[0] if marked else here[0]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 13), st.integers(1, 2))
def test_every_pixel_of_a_row_shows_its_column_or_the_rarest_that_it_hides(
    seed: int, high: int, gap: int
) -> None:
    rng = np.random.default_rng(seed)
    width, height, columns = (int(rng.integers(1, n)) for n in (30, 40, 30))
    bands = int(rng.integers(1, 6))
    tops = np.arange(bands) * high - int(rng.integers(0, 4))
    rows = rng.integers(-1, 4, bands)
    low = rng.integers(0, columns, width)
    until = np.minimum(low + rng.integers(0, 5, width), columns)
    dominant = rng.choice([0, 1, 3, gantt.NO_REGION, gantt.ABSENT], (4, columns)).astype(np.uint8)
    some = (rng.random((4, columns, gantt.ABSENT)) < 0.15) << np.arange(gantt.ABSENT)
    hidden = some.sum(axis=2).astype(np.uint16)
    order = rng.permutation(gantt.ABSENT)
    colours = np.arange(200, 200 + gantt.CLASSES, dtype=np.uint32)
    pixels = np.full((height, width), LEFT, np.uint32)
    gantt.paint(pixels, tops, tops + high, rows, low, until, dominant, hidden, colours, order, gap, GROUND)
    expected = np.full((height, width), LEFT, np.uint32)
    for top, row in zip(tops.tolist(), rows.tolist(), strict=True):
        if row < 0:
            continue
        cells = [
            (int(dominant[row, (a + b) // 2]), int(np.bitwise_or.reduce(hidden[row, a:b]))) if b > a else None
            for a, b in zip(low.tolist(), until.tolist(), strict=True)
        ]
        for y in range(max(top, 0), min(top + high, height)):
            for x in range(width):
                if cells[x] is not None:
                    shown = pixel(x, y, (top, top + high), cells, order.tolist(), gap)
                    expected[y, x] = GROUND if shown is None else colours[shown]
    assert np.array_equal(pixels, expected)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_sets_of_regions_stand_for_all_their_classes(seed: int) -> None:
    """Any of the 64 bits, in several locations of one row: their classes and no others."""
    rng = np.random.default_rng(seed)
    locations, cells = int(rng.integers(1, 4)), 16
    present = np.zeros(locations * cells, np.uint64)
    for bit in rng.integers(0, gantt.BITS + 1, 40).tolist():
        present[rng.integers(0, present.size)] |= np.uint64(1) << np.uint64(bit)
    bits = (1 << rng.integers(0, gantt.ABSENT, gantt.BITS + 1)).astype(np.uint16)
    value = rng.integers(-1, 5, present.size).astype(np.int32)
    lut = rng.integers(0, gantt.NO_REGION, 6).astype(np.uint8)
    edges = np.arange(0, 8 * cells + 1, 16)  # two cells of eight ticks in a column
    each = np.ones(locations, np.int64)
    before = np.zeros(locations, np.uint8)
    dominant = np.empty((1, cells // 2), np.uint8)
    hidden = np.empty((1, cells // 2), np.uint16)
    gantt.add_strips(
        np.array([0, locations]), np.arange(locations), edges, 0 * each, 0.0 * each, 0 * each,
        3 * each, 0 * each, (8 * cells - 1) * each, each, cells * np.arange(locations), value, present,
        lut, bits, 0 * each, (8 * cells - 1) * each, before, before, dominant, hidden,
    )  # fmt: skip
    for column in range(cells // 2):
        expected = 0
        for location in range(locations):
            for cell in (2 * column, 2 * column + 1):
                at = location * cells + cell
                expected |= 1 << int(lut[value[at] + 1])
                for bit in range(gantt.BITS + 1):
                    if int(present[at]) >> bit & 1:
                        expected |= int(bits[bit])
        assert int(hidden[0, column]) == expected
        assert expected >> int(dominant[0, column]) & 1


def test_a_bin_of_states_without_duration_shows_one_of_them() -> None:
    """Whichever activity it is: none stands for it that does not occur."""
    for activity in range(5):
        bins, ticks = np.array([4, 4, 9]), np.array([0, 0, 5])
        keys = np.array([3 << 3 | activity, 2 << 3 | activity, 1 << 3 | (activity + 1) % 5])
        region, does = np.zeros(2, np.int32), np.zeros(2, np.uint8)
        regions, activities = np.zeros(2, np.uint64), np.zeros(2, np.uint8)
        spent, by_activity = np.zeros(5, np.int64), np.zeros(8, np.int64)
        of = np.arange(8, dtype=np.uint8)
        assert (
            gantt.cells(bins, keys, ticks, 3, of, spent, by_activity, region, does, regions, activities) == 2
        )
        assert does.tolist() == [activity, (activity + 1) % 5]
        assert region[0] in (1, 2) and activities[0] == 1 << activity and not spent.any()


def test_a_column_of_a_class_without_duration_shows_that_class() -> None:
    for kind in range(15):
        acc, mask = np.zeros((2, 16)), np.array([1 << kind, 0b110], np.int64)
        acc[1, 1], acc[1, 2] = 3.0, 4.0
        dominant, hidden = np.zeros(2, np.uint8), np.zeros(2, np.uint16)
        gantt.settle(np.array([0, 10, 20]), acc, mask, dominant, hidden)
        assert dominant.tolist() == [kind, 2] and hidden.tolist() == [1 << kind, 0b110]
        assert not acc.any() and not mask.any()
